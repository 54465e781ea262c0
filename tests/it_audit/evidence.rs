//! Contracts whose claims the repository bears out, and those that it contradicts.

use std::cell::Cell;
use std::rc::Rc;
use std::time::SystemTime;

use crate::desk::{BRANCH, Desk, fixed, implemented};
use chrono::{DateTime, FixedOffset};
use handoff::contract::Input;
use handoff::git::Repository;
use handoff::ledger::{Clock, DEFAULT_BRANCH, Ledger, Offer, Session};
use handoff::model::SendOptions;
use handoff::model::branches::nameable;
use insta::assert_snapshot;
use test_support::contracts::prepared;
use test_support::{TestEnvironment, repository_kind, stored};

#[test]
fn what_holds_is_recorded_as_passed_with_the_commits_that_it_was_judged_at() {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    let sent = desk
        .env
        .send(desk.implemented(2, &[&first[..7], &second]))
        .success();
    assert_snapshot!(sent.shown, @"
    $ git handoff send -
    87.3 implementer-agent → reviewer-agent: pending
      87.2 in_progress..completed
      statements: passed branch, commits, files_changed; skipped tests_added (no test report was given), coverage (no coverage report was given); `send` takes reports with --tests FILE and --coverage FILE
      commit [commit]
    --- stderr
    next, for reviewer-agent: git handoff claim 87.3 --as reviewer-agent
    ");
    assert_snapshot!(desk.checks("87.3").join("\n"), @"
    branch passed
    commits passed
    files_changed passed
    tests_added skipped: no test report was given
    coverage skipped: no coverage report was given
    ");
    let record = stored(&desk.env.data(&["show", "87.3"]));
    let main = desk.git(&["rev-parse", "main"]);
    assert_eq!(record["evidence"][1]["tip"], second);
    assert_eq!(record["evidence"][1]["base"], main);
    assert_eq!(record["code"]["commit"], second);
    desk.env.assert_sound();
}

#[test]
fn each_lie_about_commits_is_refused_and_named() {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    let base = desk.git(&["rev-parse", "main"]);
    let other = {
        desk.git(&["branch", "other", "main"]);
        desk.commit("other", &[("other.txt", "1\n")], "elsewhere")
    };
    let tree = desk.git(&["rev-parse", &format!("{second}^{{tree}}")]);
    desk.git(&["tag", "-a", "-m", "a tag", "v1", &second]);
    let tag = desk.git(&["rev-parse", "v1"]);
    let nothing = "1234567890abcdef1234567890abcdef12345678";
    let all = [&*first, &base, &other, &tree, &tag, nothing];
    let found = desk.refused(&desk.implemented(2, &all), &["evidence.commits"; 5]);
    assert_snapshot!(desk.env.filtered(&found.join("\n")), @r#"
    /handoff/commits/commit[2]/@sha "[commit]" was on main before the work on enhancement/87-csv-export
    /handoff/commits/commit[3]/@sha "[commit]" is not on enhancement/87-csv-export
    /handoff/commits/commit[4]/@sha "[commit]" is a tree, not a commit
    /handoff/commits/commit[5]/@sha "[commit]" is a tag, not a commit
    /handoff/commits/commit[6]/@sha "[commit]" is no commit of this repository
    "#);
}

#[test]
fn an_id_that_may_be_one_of_several_objects_is_refused() {
    let desk = Desk::new("enforce");
    desk.work();
    // Among so many, two begin with the same four digits.
    let mut paths = String::new();
    for i in 0..1000 {
        paths += &format!("{}\n", desk.env.file(&format!("{i}.txt"), i.to_string()));
    }
    let mut command = desk.env.command("git");
    command.args(["hash-object", "-w", "--stdin-paths"]);
    let ids = desk
        .env
        .run(command, &[], Some(paths.as_bytes()))
        .success()
        .stdout;
    let mut starts: Vec<&str> = ids.lines().map(|id| &id[..4]).collect();
    starts.sort_unstable();
    let several = starts.windows(2).find(|two| two[0] == two[1]).unwrap()[0];
    let found = desk.refused(&desk.implemented(2, &[several]), &["evidence.commits"]);
    assert!(
        found[0].ends_with("may be one of several objects"),
        "{found:?}"
    );
}

#[test]
fn each_wrong_count_is_refused_and_named() {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    for files in [0, 1, 3, 700] {
        let found = desk.refused(&desk.done(files), &["evidence.files_changed"]);
        assert!(found[0].contains("and 2 are changed"), "{found:?}");
    }
    desk.reviewed(&[&first, &second]);
    desk.commit(
        BRANCH,
        &[("src/export.py", "safe rows\n")],
        "export: formulas",
    );
    desk.commit(
        BRANCH,
        &[("src/history.py", "batches\n")],
        "history: batches",
    );
    let found = desk.refused(&fixed(3), &["evidence.commits_added"]);
    assert_snapshot!(desk.env.filtered(&found.join("\n")), @"/handoff/commits_added the contract says 3, and enhancement/87-csv-export has 2 more commits than when its sender got the work");
    desk.env.send(fixed(2)).success();
    assert_eq!(desk.check("87.5", "commits_added"), "passed");
    desk.env.assert_sound();
}

#[test]
fn fixes_that_are_in_no_commit_are_contradicted() {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    desk.reviewed(&[&first, &second]);
    let found = desk.refused(&fixed(0), &["evidence.commits_added"]);
    assert_eq!(
        found,
        [format!(
            "/handoff/fixes_applied it lists fixes, and no commit was added to {BRANCH} since the review of {}",
            &second[..10]
        )]
    );
    // Those that are elsewhere already name their commits.
    let naming = |commit: &str| fixed(0).replace("<fix ", &format!("<fix commit=\"{commit}\" "));
    let other = desk.git(&["rev-parse", "handoffs"]);
    for elsewhere in [&*other, "deadbeef"] {
        let no_commit = [
            "evidence.commits_added",
            "evidence.commits",
            "evidence.commits",
        ];
        desk.refused(&naming(elsewhere), &no_commit);
    }
    desk.env.send(naming(&first[..8])).success();
    assert_eq!(desk.check("87.5", "commits_added"), "passed");
    desk.env.assert_sound();
}

#[test]
fn a_branch_that_is_nowhere_is_refused() {
    let desk = Desk::new("enforce");
    desk.on_branch("feature/none");
    let contract = implemented(2, &["1234567"]).replace(BRANCH, "feature/none");
    let found = desk.refused(&contract, &["evidence.branch"]);
    assert_snapshot!(found.join("\n"), @r#"/handoff/branch there is no branch "feature/none" here"#);
}

#[test]
fn under_warn_a_lie_is_accepted_recorded_and_shown() {
    let desk = Desk::new("warn");
    let [first, _] = desk.work();
    let contract = desk.implemented(9, &[&first, "1234567"]);
    let checked = desk.env.handoff_with(&["check", "-"], &contract).success();
    // The first commit's id is on the line, too.
    let column = format!("13:{} ", 69 + repository_kind::digits());
    assert_snapshot!(checked.shown.replace(&column, "13:[column] "), @r#"
    $ git handoff check -
    -: complete (implementer-agent-to-reviewer-agent)
      10:3 /handoff/files_changed warning evidence.files_changed the contract says 9 files, and 2 are changed
          see `git diff --name-only main...enhancement/87-csv-export`; `git handoff protocol set issue-to-pr evidence.files_changed enforce` refuses it
      13:[column] /handoff/commits/commit[2]/@sha warning evidence.commits "1234567" is no commit of this repository
          list commits that `git log main..enhancement/87-csv-export` shows; `git handoff protocol set issue-to-pr evidence.commits enforce` refuses it
    "#);
    let sent = desk.env.send(&contract).success();
    assert_snapshot!(sent.shown.replace(&column, "13:[column] "), @r#"
    $ git handoff send -
    87.3 implementer-agent → reviewer-agent: pending
      87.2 in_progress..completed
      statements: passed branch; contradicted commits, files_changed; skipped tests_added (no test report was given), coverage (no coverage report was given); `send` takes reports with --tests FILE and --coverage FILE
      commit [commit]
    --- stderr
      10:3 /handoff/files_changed warning evidence.files_changed the contract says 9 files, and 2 are changed
          accepted already: what you make good now, tell with `git handoff annotate 87.3 --as implementer-agent --note TEXT`; see `git diff --name-only main...enhancement/87-csv-export`; `git handoff protocol set issue-to-pr evidence.files_changed enforce` refuses it
      13:[column] /handoff/commits/commit[2]/@sha warning evidence.commits "1234567" is no commit of this repository
          accepted already: what you make good now, tell with `git handoff annotate 87.3 --as implementer-agent --note TEXT`; list commits that `git log main..enhancement/87-csv-export` shows; `git handoff protocol set issue-to-pr evidence.commits enforce` refuses it
    next, for reviewer-agent: git handoff claim 87.3 --as reviewer-agent
    "#);
    let shown = desk.env.handoff(&["show", "87.3"]).success();
    let claims: Vec<&str> = shown
        .stdout
        .lines()
        .filter(|l| l.starts_with("  statement "))
        .collect();
    assert_snapshot!(claims.join("\n"), @r#"
    statement branch passed
    statement commits contradicted: "1234567" is no commit of this repository
    statement files_changed contradicted: the contract says 9 files, and 2 are changed
    statement tests_added skipped: no test report was given
    statement coverage skipped: no coverage report was given
    "#);
    // The same again is no news, and no warning.
    let again = desk
        .env
        .handoff_with(&["send", "-", "--json"], &contract)
        .success()
        .json();
    assert_eq!(again["data"]["repeated"], true);
    assert_eq!(again["data"]["warnings"], serde_json::json!([]));
    desk.env.assert_sound();
}

#[test]
fn warnings_are_in_the_document_that_json_prints() {
    let desk = Desk::new("warn");
    desk.work();
    let sent = desk
        .env
        .handoff_with(&["send", "-", "--json"], implemented(9, &["1234567"]));
    let data = sent.success().json()["data"].take();
    let codes: Vec<&str> = data["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["evidence.files_changed", "evidence.commits"]);
    assert!(
        data["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .all(|f| f["severity"] == "warning")
    );
    assert_eq!(data["evidence"].as_array().unwrap().len(), 5);
}

#[test]
fn under_off_nothing_is_checked_and_nothing_recorded() {
    let desk = Desk::new("off");
    desk.on_branch("no/such");
    desk.env
        .send(implemented(700, &["1234567"]).replace(BRANCH, "no/such"))
        .success();
    assert!(desk.checks("87.3").is_empty());
    let status = desk.env.data(&["status"]);
    assert_eq!(status["policies"]["issue-to-pr"], "off");
    desk.env.assert_sound();
}

#[test]
fn a_check_goes_before_the_protocol_and_the_protocol_before_the_ledger() {
    let desk = Desk::with("enforce", |protocol| {
        protocol["evidence"] = serde_json::json!({
            "policy": "warn",
            "checks": {"files_changed": "off", "commits": "enforce"},
        });
    });
    desk.work();
    desk.refused(&implemented(9, &["1234567"]), &["evidence.commits"]);
    let tip = desk.git(&["rev-parse", BRANCH]);
    desk.on_branch("enhancement/87-no-export");
    let sent = desk
        .env
        .send(desk.implemented(9, &[&tip]).replace("87-csv", "87-no"));
    sent.success().says("warning evidence.branch");
    assert!(
        !desk
            .checks("87.3")
            .iter()
            .any(|line| line.starts_with("files_changed"))
    );
    let shown = desk.env.handoff(&["protocol", "show"]).success();
    let (_, rules) = shown
        .stdout
        .split_once("statements about the repository\n")
        .unwrap();
    assert_snapshot!(rules, @"
      all            warn
      commits        enforce
      files_changed  off
      contracts' statements are checked: warn (enforce for commits) (off for files_changed)
    new issues follow it, unless another one is named
    ");
    desk.env.assert_sound();
}

#[test]
fn a_repeated_contract_gets_its_receipt_whatever_became_of_its_branch() {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    let contract = desk.implemented(2, &[&first, &second]);
    let receipt = desk
        .env
        .handoff_with(&["send", "-", "--json"], &contract)
        .success()
        .json();
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["branch", "-D", BRANCH]);
    let again = desk
        .env
        .handoff_with(&["send", "-", "--json"], &contract)
        .success()
        .json();
    assert_eq!(again["data"]["repeated"], true);
    assert_eq!(
        again["data"]["handoff"]["id"],
        receipt["data"]["handoff"]["id"]
    );
}

#[test]
fn a_moved_file_may_be_counted_once_or_twice() {
    for files in [1, 2] {
        let desk = Desk::new("enforce");
        let text: String = (0..40).map(|i| format!("line {i}\n")).collect();
        desk.commit("main", &[("old.py", &text)], "on main");
        desk.git(&["checkout", "-q", BRANCH]);
        desk.git(&["merge", "-q", "--ff-only", "main"]);
        desk.git(&["mv", "old.py", "new.py"]);
        desk.git(&["commit", "-q", "-m", "move"]);
        let tip = desk.git(&["rev-parse", "HEAD"]);
        desk.env.send(desk.implemented(files, &[&tip])).success();
        assert_eq!(desk.check("87.3", "files_changed"), "passed");
        desk.env.assert_sound();
    }
}

#[test]
fn what_the_base_branch_did_meanwhile_is_not_the_branchs() {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    let foreign = desk.commit("main", &[("a.txt", "1\n"), ("b.txt", "2\n")], "meanwhile");
    desk.git(&["checkout", "-q", BRANCH]);
    desk.git(&["merge", "-q", "--no-edit", "main"]);
    let found = desk.refused(
        &desk.implemented(2, &[&first, &foreign]),
        &["evidence.commits"],
    );
    assert!(found[0].contains("was on main before"), "{found:?}");
    desk.env
        .send(desk.implemented(2, &[&first, &second]))
        .success();
    assert_eq!(desk.check("87.3", "files_changed"), "passed");
}

#[test]
fn a_branch_that_only_origin_has_counts() {
    let desk = Desk::new("enforce");
    let commits = desk.work();
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["init", "-q", "--bare", "../origin.git"]);
    desk.git(&["remote", "add", "origin", "../origin.git"]);
    desk.git(&["push", "-q", "origin", BRANCH, "main"]);
    desk.git(&["branch", "-D", BRANCH]);
    let commits = [&*commits[0], &*commits[1]];
    desk.env.send(desk.implemented(2, &commits)).success();
    assert_eq!(desk.check("87.3", "branch"), "passed");
    assert_eq!(desk.check("87.3", "commits"), "passed");
}

#[test]
fn prep_may_not_promise_a_branch_that_it_did_not_make() {
    let desk = Desk::new("enforce");
    desk.env
        .send(test_support::contracts::opening(88))
        .success();
    desk.env.claim("88.1", "prep-agent").success();
    let contract = prepared(88).replace(BRANCH, "enhancement/88");
    let found = desk.refused(&contract, &["evidence.branch"]);
    assert!(found[0].starts_with("/handoff/branch "), "{found:?}");
}

/// A desk whose implementer may change sources only.
fn with_paths(policy: &str) -> Desk {
    Desk::with(policy, |protocol| {
        let agents = protocol["agents"].as_array_mut().unwrap();
        let role = |id: &str, agents: &mut Vec<serde_json::Value>, paths: serde_json::Value| {
            let agent = agents.iter_mut().find(|agent| agent["id"] == id).unwrap();
            agent["paths"] = paths;
        };
        role(
            "implementer-agent",
            agents,
            serde_json::json!(["src/**", "tests/"]),
        );
        role("fixer-agent", agents, serde_json::json!(["src/**"]));
    })
}

#[test]
fn what_a_role_may_not_change_is_named() {
    let desk = with_paths("enforce");
    desk.work();
    desk.commit(
        BRANCH,
        &[("deploy/keys.txt", "1\n"), ("tests/a.py", "2\n")],
        "more",
    );
    let found = desk.refused(&desk.done(4), &["evidence.paths"]);
    assert_snapshot!(found.join("\n"), @r#"/handoff implementer-agent changed "deploy/keys.txt", which its role may not"#);
    desk.git(&["rm", "-q", "deploy/keys.txt"]);
    desk.git(&["commit", "-q", "-m", "not mine"]);
    desk.env.send(desk.done(3)).success();
    assert_eq!(desk.check("87.3", "paths"), "passed");
    desk.env.assert_sound();
}

#[test]
fn a_role_answers_for_what_it_changed_itself() {
    let desk = with_paths("enforce");
    desk.work();
    desk.commit(BRANCH, &[("tests/a.py", "2\n")], "the implementer's test");
    desk.env.send(desk.done(3)).success();
    desk.env.claim("87.3", "reviewer-agent").success();
    let review = test_support::contracts::sample(
        "reviewer-agent-to-fixer-agent",
        test_support::contracts::Format::Xml,
        87,
    );
    desk.env.send(review).success();
    desk.env.claim("87.4", "fixer-agent").success();
    desk.commit("main", &[("docs/base.md", "3\n")], "meanwhile");
    desk.git(&["checkout", "-q", BRANCH]);
    desk.git(&["merge", "-q", "--no-edit", "main"]);
    desk.commit(BRANCH, &[("src/export.py", "safe rows\n")], "fix");
    // With the merge or without, with what it brought or without.
    desk.refused(&fixed(4), &["evidence.commits_added"]);
    desk.env.send(fixed(1)).success();
    assert_eq!(desk.check("87.5", "paths"), "passed");
    assert_eq!(desk.check("87.5", "commits_added"), "passed");
    desk.env.assert_sound();
}

#[test]
fn an_agent_that_reports_an_error_is_not_asked_for_its_paths() {
    let desk = with_paths("enforce");
    desk.commit(BRANCH, &[("deploy/keys.txt", "1\n")], "oops");
    let error =
        test_support::contracts::implementer_error(test_support::contracts::Format::Xml, 87);
    desk.env.send(error).success();
    assert!(desk.checks("87.3").is_empty());
}

#[test]
fn a_rewritten_branch_is_not_counted() {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    desk.reviewed(&[&first, &second]);
    desk.git(&["reset", "-q", "--hard", "main"]);
    desk.commit(BRANCH, &[("src/export.py", "all anew\n")], "anew");
    desk.env.send(fixed(700)).success();
    let why = format!("skipped: {BRANCH} was rewritten since its sender got the work");
    assert_eq!(desk.check("87.5", "commits_added"), why);
    desk.env.assert_sound();
}

/// What a clone made with these options finds of an implementer's contract.
fn cloned(options: &[&str], contract: impl FnOnce(&Desk) -> String) -> Vec<String> {
    let desk = Desk::new("enforce");
    let contract = contract(&desk);
    let url = format!("file://{}", desk.env.repo().display());
    let clone = desk.env.root().join("clone");
    let args = [&["clone", "-q"], options, &[&url, clone.to_str().unwrap()]].concat();
    desk.env.git(desk.env.root(), &args);
    desk.env.git(
        &clone,
        &["fetch", "-q", "--depth=1", "origin", "handoffs:handoffs"],
    );
    // The ledger itself is here whole.
    let out = desk.env.root().join("ledger.tar");
    let out = out.to_str().unwrap();
    desk.env.git(&clone, &["archive", "-o", out, "handoffs"]);
    let path = desk.env.file("contract.xml", contract);
    desk.env
        .handoff_in(&clone, &["send", &path, "--worker", "repo"])
        .success();
    let shown = desk.env.handoff_in(&clone, &["show", "87.3"]).success();
    let claims = shown
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("  statement "));
    claims.map(str::to_owned).collect()
}

#[test]
fn what_a_shallow_clone_cannot_know_is_skipped() {
    let found = cloned(&["--depth=1", "--no-single-branch"], |desk| {
        let [first, _] = desk.work();
        desk.git(&["checkout", "-q", "main"]);
        desk.implemented(9, &[&first, "1234567"])
    });
    assert_snapshot!(found.join("\n"), @"
    branch passed
    commits skipped: this clone is shallow, and the missing history may contain the answer
    files_changed skipped: this clone is shallow, and the missing history may contain the answer
    tests_added skipped: no test report was given
    coverage skipped: no coverage report was given
    ");
}

#[test]
fn a_clone_that_follows_one_branch_says_nothing_of_others() {
    let found = cloned(&["--single-branch", "--branch", "main"], |desk| {
        desk.work();
        desk.git(&["checkout", "-q", "main"]);
        desk.done(9)
    });
    assert_snapshot!(found.join("\n"), @"
    branch skipped: this clone does not follow branch enhancement/87-csv-export of origin
    commits skipped: branch enhancement/87-csv-export is not here
    files_changed skipped: branch enhancement/87-csv-export is not here
    tests_added skipped: no test report was given
    coverage skipped: no coverage report was given
    ");
}

#[test]
fn a_clone_without_blobs_counts_all_the_same() {
    let found = cloned(&["--filter=blob:none"], |desk| {
        desk.git(&["config", "uploadpack.allowFilter", "true"]);
        desk.work();
        desk.git(&["checkout", "-q", "main"]);
        desk.done(2)
    });
    assert_snapshot!(found.join("\n"), @"
    branch passed
    commits passed
    files_changed passed
    tests_added skipped: no test report was given
    coverage skipped: no coverage report was given
    ");
}

#[test]
fn a_branch_without_a_common_history_is_judged_by_all_that_it_has() {
    let desk = Desk::new("enforce");
    desk.git(&["checkout", "-q", "--orphan", "orphan"]);
    desk.git(&["commit", "-q", "--allow-empty", "-m", "from nothing"]);
    let first = desk.git(&["rev-parse", "HEAD"]);
    let main = desk.git(&["rev-parse", "main"]);
    desk.on_branch("orphan");
    let contract = |ids: &[&str]| desk.implemented(2, ids).replace(BRANCH, "orphan");
    let found = desk.refused(
        &contract(&["deadbeef", &main, &first]),
        &["evidence.commits"; 2],
    );
    assert_snapshot!(desk.env.filtered(&found.join("\n")), @r#"
    /handoff/commits/commit[1]/@sha "deadbeef" is no commit of this repository
    /handoff/commits/commit[2]/@sha "[commit]" is not on orphan
    "#);
    desk.env.send(contract(&[&first])).success();
    assert_snapshot!(desk.checks("87.3").join("\n"), @"
    branch passed
    commits passed
    files_changed skipped: the branch and its base have no commit in common
    tests_added skipped: no test report was given
    coverage skipped: no coverage report was given
    ");
    desk.env.assert_sound();
}

#[test]
fn no_contract_names_what_is_no_code_branch_whatever_the_policy() {
    for policy in ["off", "warn", "enforce"] {
        let desk = Desk::new(policy);
        let [first, second] = desk.work();
        let contract = desk.implemented(2, &[&first, &second]);
        for (branch, why) in [
            ("Handoffs", "is the ledger's branch, handoffs"),
            ("refs/heads/handoffs", "is the ledger's branch, handoffs"),
            (
                "handoffs/12",
                "can't be there beside the ledger's branch, handoffs",
            ),
            ("HEAD", "it stands for a commit"),
            ("refs/tags/v1", "it is a ref of another kind"),
            ("--force", "it begins like an option"),
            ("main..issue", "it has .. or @{"),
        ] {
            let named = contract.replace(BRANCH, branch);
            for (verb, exit) in [("send", 3), ("check", 3)] {
                let refused = desk.env.handoff_with(&[verb, "-", "--json"], &named);
                let refused = refused.exits(exit).json();
                let found = refused["error"]["findings"].as_array().unwrap();
                let of_branch = found.iter().filter(|f| f["code"] == "branch.refused");
                let of_branch: Vec<_> = of_branch.collect();
                assert_eq!(of_branch.len(), 1, "{policy} {branch}: {refused}");
                assert_eq!(of_branch[0]["path"], "/handoff/branch");
                let text = of_branch[0]["message"].as_str().unwrap();
                assert!(text.contains(why), "{policy} {branch}: {text}");
            }
        }
        // A person may work in place, on the branch that work is merged into.
        let in_place = contract.replace(BRANCH, "main");
        let sent = desk.env.handoff_with(&["check", "-", "--json"], &in_place);
        assert!(!sent.stdout.contains("branch.refused"), "{policy}");
        desk.env.assert_sound();
    }
}

#[test]
fn what_git_takes_for_no_name_of_a_branch_no_contract_can_name() {
    let parts = [
        "issue-12", "größe", ".", "..", "a..b", "a.lock", ".a", "a.", "a b", "a~", "a^", "a:b",
        "a?", "a*", "a[", "a\\", "a@{b", "@", "", "a\u{7f}", "a\n", "-a",
    ];
    for first in parts {
        for second in parts {
            for name in [first.to_owned(), format!("{first}/{second}")] {
                let is_ref = Repository::is_ref_name(&format!("refs/heads/{name}"));
                let is_taken = nameable(&name, None).is_ok();
                assert!(is_ref || !is_taken, "{name:?}");
            }
        }
    }
    assert!(nameable("feature/12-größe", None).is_ok());
}

#[test]
fn the_noted_base_is_the_one_that_claims_are_judged_by() {
    let desk = Desk::new("enforce");
    desk.git(&["branch", "develop", "main"]);
    for n in ["1", "2", "3"] {
        desk.commit("develop", &[(&format!("d{n}.txt"), "1\n")], "develop");
    }
    desk.git(&["branch", "-f", BRANCH, "develop"]);
    let own = desk.commit(BRANCH, &[("own.txt", "1\n")], "own");
    let contract = desk.implemented(1, &[&own]);
    desk.refused(&contract, &["evidence.files_changed", "evidence.commits"]);
    let fact = ["annotate", "87", "--as", "orchestrator", "--fact"];
    let noted = [
        &fact[..],
        &["base=refs/heads/develop", "--note", "to develop"],
    ]
    .concat();
    desk.env.handoff(&noted).success();
    let held = desk
        .env
        .data(&["claim", "87.2", "--as", "implementer-agent"]);
    assert_eq!(held["work"]["base"], "develop");
    desk.env.send(contract).success();
    assert_eq!(desk.check("87.3", "commits"), "passed");
    assert_eq!(desk.check("87.3", "files_changed"), "passed");
    let record = stored(&desk.env.data(&["show", "87.3"]));
    assert_eq!(
        record["evidence"][1]["base"],
        desk.git(&["rev-parse", "develop"])
    );
    desk.env.assert_sound();
}

#[test]
fn without_a_base_branch_a_commit_that_is_nowhere_is_still_named() {
    let desk = Desk::new("enforce");
    let [first, _] = desk.work();
    let main = desk.git(&["rev-parse", "main"]);
    desk.git(&["branch", "-M", "main", "trunk"]);
    let found = desk.refused(
        &desk.implemented(2, &["deadbeef", &first]),
        &["evidence.commits"],
    );
    assert_snapshot!(found.join("\n"), @r#"/handoff/commits/commit[1]/@sha "deadbeef" is no commit of this repository"#);
    // Which of its commits are its own is not known.
    desk.env
        .send(desk.implemented(2, &[&first, &main]))
        .success();
    assert_eq!(
        desk.check("87.3", "commits"),
        "skipped: no base branch is known"
    );
    desk.env.assert_sound();
}

#[test]
fn a_new_ledger_warns_and_says_so() {
    let env = test_support::TestEnvironment::with_repository();
    let begun = env.handoff(&["init"]).success();
    assert_snapshot!(begun.shown, @"
    $ git handoff init
    started the ledger on branch handoffs, protocol issue-to-pr
      commit [commit]; kept in this repository alone (share it: git handoff init --remote NAME)
      statements that the repository contradicts: warn; a false merge is refused anyway (refuse all: git handoff protocol set issue-to-pr evidence enforce)
    --- stderr
    next: git handoff send --issue N --to prep-agent --as issue-manager      (says what to --set)
    ");
    assert_eq!(env.data(&["status"])["policies"]["issue-to-pr"], "warn");
    // The one remote there is is named as the one to share it through.
    env.git(&env.repo(), &["remote", "add", "origin", "../nowhere"]);
    for policy in ["enforce", "off"] {
        let args = ["init", "--branch", policy, "--evidence", policy];
        let begun = env.handoff(&args).success();
        assert!(!begun.shown.contains("evidence is"), "{}", begun.shown);
        assert!(
            begun.shown.contains("init --remote origin)"),
            "{}",
            begun.shown
        );
    }
}

#[test]
fn the_policy_of_a_ledger_is_set_once_and_another_is_told() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--evidence", "warn"]).success();
    env.handoff(&["init"]).success();
    env.handoff(&["init", "--evidence", "warn"]).success();
    let other = env.handoff(&["init", "--evidence", "enforce"]).exits(4);
    assert_snapshot!(other.stderr, @r#"
    error: the ledger already exists, with --evidence warn
    hint: set it in the protocol instead: `git handoff protocol set issue-to-pr evidence enforce`
    "#);
    assert_eq!(env.data(&["status"])["policies"]["issue-to-pr"], "warn");
}

#[test]
fn after_complete_check_counts_from_what_was_completed_as_send_does() {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    desk.reviewed(&[&first, &second]);
    desk.commit(BRANCH, &[("src/export.py", "safe rows\n")], "fix");
    let complete = ["complete", "87.4", "--as", "fixer-agent"];
    desk.env.handoff(&complete).success();
    let found = desk.refused(&fixed(2), &["evidence.commits_added"]);
    assert!(found[0].contains("1 more commits"), "{found:?}");
    desk.env.send(fixed(1)).success();
    assert_eq!(desk.check("87.5", "commits_added"), "passed");
    desk.env.assert_sound();
}

/// A clock at whose first look somebody notes another branch.
struct Meanwhile {
    desk: Rc<Desk>,
    over: Cell<bool>,
}

impl Clock for Meanwhile {
    fn author(&self) -> DateTime<FixedOffset> {
        if !self.over.replace(true) {
            let (env, repo) = (&self.desk.env, self.desk.env.repo());
            env.git(&repo, &["branch", "hotfix", BRANCH]);
            let noted = [
                "annotate",
                "87",
                "--note",
                "moved",
                "--fact",
                "branch=hotfix",
                "--as",
                "maintainer",
            ];
            env.handoff(&noted).success();
        }
        let now = DateTime::from_timestamp(self.desk.env.now() + 60, 0);
        now.unwrap().fixed_offset()
    }

    fn committer(&self) -> DateTime<FixedOffset> {
        self.author()
    }
}

#[test]
fn claims_are_judged_on_the_branch_whose_code_was_read() {
    let _own = crate::FOLDER.lock();
    let desk = Rc::new(Desk::new("enforce"));
    let [first, second] = desk.work();
    desk.reviewed(&[&first, &second]);
    std::env::set_current_dir(desk.env.repo()).unwrap();
    let repository = Repository::open_here().unwrap();
    let clock = Rc::new(Meanwhile {
        desk: Rc::clone(&desk),
        over: Cell::new(false),
    });
    let robin = ("Robin Doe", "robin@example.com");
    let session = Session {
        worker: Some("repo".parse().unwrap()),
        ..Session::new(clock, robin, SystemTime::now, |_| 0)
    };
    let text = fixed(0).replace("<fix ", &format!("<fix commit=\"{first}\" "));
    let offer = Offer {
        input: &Input::read(text.as_bytes()),
        agent: None,
        issue: None,
        protocol: None,
        options: &SendOptions::default(),
        reports: None,
    };
    let mut ledger = Ledger::new(&repository, DEFAULT_BRANCH).unwrap();
    let done = ledger.send(&session, &offer).unwrap();
    assert_eq!(done.receipt.record.id.to_string(), "87.5");
    // The step was decided again on the tip that it was written on; a note does not move the work.
    assert_eq!(desk.check("87.5", "commits_added"), "passed");
    assert_eq!(
        desk.env.data(&["show", "87.5"])["record"]["code"]["branch"],
        BRANCH
    );
    desk.env.assert_sound();
}

#[cfg(feature = "agents")]
#[test]
fn who_receives_work_sees_what_is_contradicted() {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    env.git(&repo, &["switch", "-q", "-c", "fix"]);
    std::fs::write(repo.join("x"), "x\n").unwrap();
    env.git(&repo, &["add", "x"]);
    env.git(&repo, &["commit", "-q", "-m", "x"]);
    let init = ["init", "--protocol", "review", "--evidence", "warn"];
    env.handoff(&init).success();
    let send = "send --issue 1 --to reviewer --as coder --set branch=fix --set summary=s --set commits=deadbeefdeadbeef";
    let words: Vec<&str> = send.split_whitespace().collect();
    env.handoff(&words).success();
    let told = "contradicted: commits: \"deadbeefdeadbeef\" is no commit of this repository";
    let claim = ["claim", "--next", "--as", "reviewer"];
    for command in [&["next", "1"][..], &claim, &["status", "1"]] {
        let shown = env.handoff(command).success().stdout;
        assert!(shown.contains(told), "{shown}");
    }
    let page = env.handoff(&["prime", "--as", "reviewer"]).success();
    assert!(page.stdout.contains("contradicted:"), "{}", page.stdout);
    assert!(page.stdout.contains("deadbeefdeadbeef"), "{}", page.stdout);
    let end = "send --issue 1 --to end --as reviewer --set summary=ok";
    let words: Vec<&str> = end.split_whitespace().collect();
    env.handoff(&words).success();
    let gate = env.handoff(&["gate", "1"]).success();
    let told = "contradicted: 1.1 commits: \"deadbeefdeadbeef\"";
    assert!(gate.stdout.contains(told), "{}", gate.stdout);
    let set = ["protocol", "set", "review", "evidence", "enforce"];
    env.handoff(&set).success();
    env.handoff(&["gate", "1"])
        .success()
        .says("are checked: enforce; this issue's, before: warn");
}

#[test]
fn work_on_the_base_goes_to_a_branch() {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    env.handoff(&["init", "--protocol", "review"]).success();
    let base = env.git(&repo, &["branch", "--show-current"]);
    let set = format!("branch={}", base.trim());
    let send = ["send", "--issue", "1", "--to", "reviewer", "--as", "coder"];
    let more = ["--set", &set, "--set", "summary=x"];
    env.handoff(&[&send[..], &more].concat())
        .exits(3)
        .says("is the base")
        .says("git switch -c NAME");
}
