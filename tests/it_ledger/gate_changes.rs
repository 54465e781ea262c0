//! An approval holds while a pull request's own changes stay the same.

use std::fs;
use std::path::Path;

use test_support::TestEnvironment;
use test_support::contracts::{Format, sample};

/// An issue whose changes were approved: one to a file that the base has too, and a new file.
struct Desk {
    env: TestEnvironment,
    branch: String,
    approved: String,
}

const LINES: &str = "a\nb\nc\nd\n\nx\n\na\nb\nc\nd\n\ne\nf\ng\nh\n";

impl Desk {
    fn new() -> Self {
        let env = TestEnvironment::with_ledger();
        let branch = sample("prep-agent-to-implementer-agent", Format::Xml, 87);
        let branch = branch.split("<branch>").nth(1).unwrap();
        let branch = branch.split("</branch>").next().unwrap().to_owned();
        let mut desk = Self {
            env,
            branch,
            approved: String::new(),
        };
        desk.commit("Base", &[("shared.txt", LINES), ("run.sh", "echo\n")]);
        desk.git(&["checkout", "-q", "-b", &desk.branch]);
        let changed = LINES.replacen("b\n", "B\n", 1);
        desk.commit("Work", &[("shared.txt", &changed), ("new.bin", "\0one")]);
        for (agent, contract) in [
            ("", "issue-manager-to-prep-agent"),
            ("prep-agent", "prep-agent-to-implementer-agent"),
            ("implementer-agent", "implementer-agent-to-reviewer-agent"),
            ("reviewer-agent", "reviewer-agent-to-validator-agent"),
        ] {
            if !agent.is_empty() {
                desk.env.claim("87", agent).success();
            }
            desk.env.send(sample(contract, Format::Xml, 87)).success();
        }
        desk.approved = desk.git(&["rev-parse", "HEAD"]);
        desk
    }

    fn git(&self, args: &[&str]) -> String {
        let args = [&["-c", "advice.detachedHead=false"][..], args].concat();
        self.env.git(&self.env.repo(), &args).trim().to_owned()
    }

    fn commit(&self, message: &str, files: &[(&str, &str)]) {
        for (path, text) in files {
            fs::write(self.env.repo().join(path), text).unwrap();
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// The base branch gets a commit, in another file and at another place of the same one.
    fn base_moves(&self) {
        self.git(&["checkout", "-q", "main"]);
        let shared = fs::read_to_string(self.env.repo().join("shared.txt")).unwrap();
        let shared = shared.replace("h\n", "H\n");
        self.commit(
            "Others' work",
            &[("shared.txt", &shared), ("else.txt", "1\n")],
        );
        self.git(&["checkout", "-q", &self.branch]);
    }

    /// As `git merge` leaves it before the commit.
    fn merge_base(&self) {
        self.git(&["merge", "-q", "--no-commit", "--no-ff", "main"]);
    }

    #[track_caller]
    fn holds(&self) {
        let head = self.git(&["rev-parse", "HEAD"]);
        let ran = self.env.handoff(&["gate", "87", "--head", &head]).success();
        assert!(ran.stdout.contains("✓ approved: "), "{}", ran.shown);
        // Nothing of the repository knows about the comparison.
        assert_eq!(self.git(&["status", "--porcelain"]), "");
    }

    #[track_caller]
    fn ended(&self, why: &str) {
        let head = self.git(&["rev-parse", "HEAD"]);
        let ran = self.env.handoff(&["gate", "87", "--head", &head]).exits(1);
        assert!(ran.stdout.contains(why), "no {why:?} in {}", ran.shown);
    }
}

#[test]
fn a_newer_base_keeps_an_approval_whichever_way_it_comes() {
    let desk = Desk::new();
    desk.holds();
    desk.base_moves();
    // The base branch alone changes nothing.
    desk.holds();
    desk.git(&["merge", "-q", "--no-edit", "main"]);
    desk.holds();
    let ran = desk.env.handoff(&["gate", "87", "--head", "HEAD"]);
    let head = desk.git(&["rev-parse", "HEAD"]);
    let expected = format!(
        "✓ approved: 87.4 (reviewer-agent-to-validator-agent) by reviewer-agent, of commit {}, whose changes are those of {}\n",
        &desk.approved[..10],
        &head[..10]
    );
    assert_eq!(ran.success().stdout, expected);
    // Again, on top of that.
    desk.base_moves();
    desk.git(&["merge", "-q", "--no-edit", "main"]);
    desk.holds();
    // A rebase, other words, one commit in place of two.
    desk.git(&["reset", "-q", "--hard", &desk.approved]);
    desk.git(&["rebase", "-q", "main"]);
    desk.holds();
    desk.git(&["commit", "-q", "--amend", "-m", "Other words"]);
    desk.holds();
    desk.git(&["reset", "-q", "--soft", "main"]);
    desk.git(&["commit", "-q", "-m", "Squashed"]);
    desk.holds();
    // A commit and its revert leave the same changes.
    desk.commit("Try", &[("try.txt", "1\n")]);
    desk.ended("is about commit");
    desk.git(&["revert", "--no-edit", "HEAD"]);
    desk.holds();
    // After the merge, nothing is left to merge but what was approved.
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["merge", "-q", "--no-ff", "--no-edit", &desk.branch]);
    desk.ended("is on the base branch already");
    desk.env.assert_sound();
}

#[test]
fn an_added_change_ends_it_and_is_named() {
    let desk = Desk::new();
    desk.base_moves();
    let short = |desk: &Desk| desk.git(&["rev-parse", "HEAD"])[..10].to_owned();
    for (path, text) in [
        ("late.txt", "late\n"),
        // Blanks alone, and bytes of a file that is not text.
        ("shared.txt", &LINES.replacen("b\n", "B \n", 1)),
        ("new.bin", "\0two"),
        // What a merge does is not for the files of a commit to say.
        (".gitattributes", "* merge=union\n"),
    ] {
        desk.commit("Late", &[(path, text)]);
        desk.ended(&format!(": commit {} came after it", short(&desk)));
        // A merge of the base on top of it hides nothing.
        let late = short(&desk);
        desk.git(&["merge", "-q", "--no-edit", "main"]);
        desk.ended(&format!(": commit {late} came after it"));
        desk.git(&["reset", "-q", "--hard", &desk.approved]);
    }
    // A mode, a name.
    desk.git(&["update-index", "--chmod=+x", "run.sh"]);
    desk.git(&["commit", "-q", "-m", "Mode"]);
    desk.git(&["reset", "-q", "--hard"]);
    desk.ended(&format!(": commit {} came after it", short(&desk)));
    desk.git(&["reset", "-q", "--hard", &desk.approved]);
    desk.git(&["mv", "new.bin", "moved.bin"]);
    desk.git(&["commit", "-q", "-m", "Move"]);
    desk.ended("came after it");
    // In a rebase, by itself or into the commit itself.
    desk.git(&["rebase", "-q", "main"]);
    desk.ended("does not bring the same changes");
    desk.git(&["reset", "-q", "--hard", &desk.approved]);
    desk.git(&["rebase", "-q", "main"]);
    desk.holds();
    desk.commit("x", &[("late.txt", "late\n")]);
    desk.git(&["reset", "-q", "--soft", "HEAD~1"]);
    desk.git(&["commit", "-q", "--amend", "--no-edit"]);
    desk.ended("does not bring the same changes");
    // Part of the changes alone was not approved either.
    desk.git(&["reset", "-q", "--hard", "main"]);
    desk.commit("Half", &[("new.bin", "\0one")]);
    desk.ended("does not bring the same changes");
}

#[test]
fn a_merge_that_changes_more_ends_it() {
    let desk = Desk::new();
    desk.base_moves();
    desk.merge_base();
    desk.commit("Merge", &[("else.txt", "1\nand more\n")]);
    let merge = desk.git(&["rev-parse", "--short=10", "HEAD"]);
    desk.ended(&format!(": the merge {merge} changes more than it merges"));
    desk.git(&["reset", "-q", "--hard", &desk.approved]);
    // The same files as approved: the merge would take the others' work back.
    desk.git(&["merge", "-q", "--no-edit", "-s", "ours", "main"]);
    desk.ended("changes more than it merges");
    desk.git(&["reset", "-q", "--hard", &desk.approved]);
    // Lines that both sides changed, put together by hand.
    desk.git(&["checkout", "-q", "main"]);
    let other = LINES.replacen("b\n", "other\n", 1);
    desk.commit("Same place", &[("shared.txt", &other)]);
    desk.git(&["checkout", "-q", &desk.branch]);
    let merge = ["merge", "-q", "--no-edit", "-X", "ours", "main"];
    desk.git(&merge);
    desk.ended("changes more than it merges");
}

#[test]
fn the_same_lines_at_another_place_are_another_change() {
    let desk = Desk::new();
    desk.base_moves();
    desk.git(&["reset", "-q", "--hard", "main"]);
    // The same hunk with the same lines around it, which has one patch id.
    let (before, after) = LINES.split_once("x\n").unwrap();
    let after = after.replacen("b\n", "B\n", 1).replace("h\n", "H\n");
    let moved = format!("{before}x\n{after}");
    desk.commit("Work", &[("shared.txt", &moved), ("new.bin", "\0one")]);
    desk.ended("does not bring the same changes");
}

#[test]
fn what_is_missing_is_said_and_fetched_where_that_can_be_done() {
    let desk = Desk::new();
    desk.base_moves();
    desk.git(&["rebase", "-q", "main"]);
    let head = desk.git(&["rev-parse", "HEAD"]);
    // The default branch of whoever clones it.
    desk.git(&["checkout", "-q", "main"]);
    let url = format!("file://{}", desk.env.repo().display());
    let clone = |name: &str, args: &[&str]| {
        let path = desk.env.root().join(name);
        let words = ["clone", "-q", "--bare", "--single-branch"];
        let place = [&*url, path.to_str().unwrap()];
        let all = [&words[..], args, &place].concat();
        desk.env.git(desk.env.root(), &all);
        path
    };
    let gate = |path: &Path| desk.env.handoff_in(path, &["gate", "87", "--head", &head]);
    let state = |path: &Path| {
        let refs = desk.env.git(path, &["for-each-ref"]);
        let objects = desk.env.git(path, &["count-objects", "-v"]);
        let config = fs::read_to_string(path.join("config")).unwrap();
        (refs, objects, config)
    };
    // A ledger without code, and without a remote to ask.
    let ledger = clone("ledger", &["--branch", "handoffs"]);
    let said = gate(&ledger).exits(1);
    assert!(
        said.stdout.contains("the base branch is not known here"),
        "{}",
        said.shown
    );
    desk.env
        .git(&ledger, &["config", "handoff.remote", "origin"]);
    desk.env.handoff_in(&ledger, &["status"]).success();
    let after = state(&ledger);
    gate(&ledger).success();
    // What was fetched for it is gone, and nothing else has changed.
    assert_eq!(state(&ledger), after);
    // The remote does not have the commit that was approved.
    let copy = clone("copy", &["--branch", "handoffs"]);
    let other = clone("other", &["--branch", "main"]);
    desk.env.git(
        &copy,
        &["config", "remote.origin.url", other.to_str().unwrap()],
    );
    desk.env.git(&copy, &["config", "handoff.remote", "origin"]);
    let said = gate(&copy).exits(1);
    assert!(
        said.stdout.contains("is not here, and can't be fetched"),
        "{}",
        said.shown
    );
    // A history that is cut off.
    let shallow = clone("shallow", &["--depth=1", "--no-single-branch"]);
    let said = gate(&shallow).exits(1);
    assert!(
        said.stdout.contains("the history is cut off"),
        "{}",
        said.shown
    );
}

#[test]
fn the_users_settings_and_attributes_do_not_merge() {
    let desk = Desk::new();
    desk.base_moves();
    desk.git(&["merge", "-q", "--no-edit", "main"]);
    desk.holds();
    // A driver that takes one side would call another tree the merge.
    let settings = [
        ["merge.ours.driver", "true"],
        ["merge.default", "ours"],
        ["merge.renames", "false"],
    ];
    for setting in settings {
        desk.git(&["config", setting[0], setting[1]]);
    }
    let info = desk.env.repo().join(".git/info");
    fs::create_dir_all(&info).unwrap();
    fs::write(info.join("attributes"), "* merge=ours\n").unwrap();
    desk.holds();
    desk.git(&["reset", "-q", "--hard", &desk.approved]);
    desk.git(&["merge", "-q", "--no-edit", "-s", "ours", "main"]);
    desk.ended("changes more than it merges");
}

#[test]
fn what_a_merge_dropped_a_rebase_brings_back() {
    // A commit that nobody saw, and a merge that has the approved files again.
    let desk = Desk::new();
    desk.git(&["checkout", "-q", "-b", "side"]);
    desk.commit("Unseen", &[("evil.txt", "1\n")]);
    desk.git(&["checkout", "-q", &desk.branch]);
    desk.git(&["merge", "-q", "--no-edit", "-s", "ours", "side"]);
    desk.ended("a rebase merge would drop a merge commit");
    // It is the same in the very commit that is approved.
    desk.env.claim("87", "validator-agent").success();
    let approve = [
        "approve",
        "87.4",
        "--as",
        "maintainer",
        "--worker",
        "robin",
        "--head",
        "HEAD",
    ];
    desk.env.handoff(&approve).success();
    let head = desk.git(&["rev-parse", "HEAD"]);
    let gate = [
        "gate",
        "87",
        "--require",
        "approved-by-person",
        "--head",
        &head,
    ];
    desk.env
        .handoff(&gate)
        .exits(1)
        .says("a rebase merge would drop a merge commit");
    // A conflict where the branch left the base keeps no rebase from the base as it is now, which has
    // had one of the commits, and took it back.
    let gated = |is_open: bool| {
        let head = desk.git(&["rev-parse", "HEAD"]);
        desk.env.handoff(&approve).success();
        let args = [
            "gate",
            "87",
            "--require",
            "approved-by-person",
            "--head",
            &head,
        ];
        let ran = desk.env.handoff(&args);
        assert_eq!(ran.status == 0, is_open, "{}", ran.shown);
    };
    desk.git(&["reset", "-q", "--hard", &desk.approved]);
    desk.git(&["checkout", "-q", "-b", "other-side", "HEAD~1"]);
    desk.commit("Other", &[("run.sh", "Z\n"), ("evil.txt", "1\n")]);
    desk.git(&["checkout", "-q", &desk.branch]);
    desk.commit("Try", &[("run.sh", "Y\n")]);
    let tried = desk.git(&["rev-parse", "HEAD"]);
    desk.git(&["merge", "-q", "--no-edit", "-s", "ours", "other-side"]);
    gated(true);
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["cherry-pick", &tried]);
    desk.git(&["revert", "--no-edit", "HEAD"]);
    desk.git(&["checkout", "-q", &desk.branch]);
    gated(false);
    // One that only brings the base is none.
    desk.git(&["reset", "-q", "--hard", &desk.approved]);
    desk.base_moves();
    desk.git(&["merge", "-q", "--no-edit", "main"]);
    gated(true);
    // One that resolves a conflict with the base is none, either.
    desk.git(&["reset", "-q", "--hard", &desk.approved]);
    desk.git(&["checkout", "-q", "main"]);
    desk.commit("Conflict", &[("new.bin", "\0two")]);
    desk.git(&["checkout", "-q", &desk.branch]);
    desk.git(&["merge", "-q", "--no-edit", "-X", "ours", "main"]);
    gated(true);
}
