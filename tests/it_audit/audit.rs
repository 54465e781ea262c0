//! What an audit looks at beside each step by itself: dates, what this clone saw
//! before, a part of the history; and how it tells.

use insta::assert_snapshot;
use serde_json::json;
use test_support::TestEnvironment;
use test_support::contracts::{opening, prepared};
use test_support::tamper::{BRANCH, Ledger, folder, remove, set};

fn redated(person: &str, minute: u32) -> String {
    let (name, _) = person.rsplit_once("> ").unwrap();
    // 2026-03-04T05:00:00Z
    format!("{name}> {} +0000", 1_772_600_400 + minute * 60)
}

#[test]
fn a_commit_that_is_dated_before_the_one_before_it_is_found() {
    let ledger = Ledger::new();
    ledger.rewrite(7, |number, commit| {
        if number == 7 {
            commit.committer = redated(&commit.committer, 5);
        }
    });
    assert_eq!(
        ledger.damage(&[]),
        ["7 step.backdated issues/87/00/87/issue.json"]
    );
    // The one after it is dated after what it follows.
    ledger.rewrite(7, |number, commit| {
        if number == 7 {
            commit.committer = redated(&commit.committer, 6);
        }
    });
    ledger.assert_sound(&[]);
}

#[test]
fn a_step_that_is_dated_before_the_last_of_its_issue_is_found() {
    let ledger = Ledger::new();
    // A claim at 05:10, made to look as if it came before the sending at 05:07.
    ledger.handoff(10, &["claim", "87.3", "--as", "reviewer-agent"], "");
    let paths = [
        format!("{}/0003.json", folder(87)),
        format!("{}/issue.json", folder(87)),
        ledger.entry("87.3"),
    ];
    let earlier = |text: String| {
        let text = text.replace("2026-03-04T05:10:00Z", "2026-03-04T05:06:00Z");
        text.replace("2026-03-04T09:10:00Z", "2026-03-04T09:06:00Z")
    };
    let files: Vec<String> = paths
        .iter()
        .map(|path| earlier(ledger.file(path)))
        .collect();
    let entry = paths[2].replace("T091000000", "T090600000");
    let places = [&paths[0], &paths[1], &entry];
    let edits = places.into_iter().zip(&files);
    let edits = edits.map(|(path, text)| set(path, text.as_bytes()));
    let edits: Vec<_> = std::iter::once(remove(&paths[2])).chain(edits).collect();
    ledger.rewrite(10, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &edits);
        commit.author = redated(&commit.author, 6);
        commit.message = commit.message.replace("until 09:10", "until 09:06");
        commit.message = earlier(std::mem::take(&mut commit.message));
        let waited = commit.message.replace("Seconds: 180", "Seconds: 0");
        assert_ne!(commit.message, waited);
        commit.message = waited;
    });
    assert_eq!(
        ledger.damage(&[]),
        ["10 step.backdated issues/87/00/87/issue.json"]
    );
    // A machine whose clock is behind records it at the time of the commit before.
    ledger.rewrite(10, |_, commit| {
        commit.committer = redated(&commit.committer, 9)
    });
    ledger.assert_sound(&[]);
}

#[test]
fn the_program_never_dates_a_commit_before_the_one_before_it() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.wait(-7200);
    env.claim("87.1", "prep-agent").success();
    env.send(prepared(87)).success();
    let times = env.git(
        &env.repo(),
        &["log", "--format=%at %ct", "--reverse", "handoffs"],
    );
    let times: Vec<Vec<i64>> = times
        .lines()
        .map(|line| line.split(' ').map(|t| t.parse().unwrap()).collect())
        .collect();
    assert_eq!(
        times[2][1], times[1][1],
        "recorded at the time of the step before"
    );
    assert!(
        times[2][0] < times[1][0] - 7000,
        "made when its own clock says"
    );
    env.assert_sound();
}

#[test]
fn a_step_is_not_dated_before_the_last_of_its_issue_by_hand() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let claim = ["claim", "87.1", "--as", "prep-agent"];
    let mut command = env.program(&claim);
    command.env("GIT_AUTHOR_DATE", "2020-01-01T00:00:00Z");
    let before = env.tip();
    assert_snapshot!(env.run(command, &claim, None).exits(2).stderr, @"
    error: the step is dated 2020-01-01 00:00:00Z, before the last step of its issue at 2026-03-02 09:05:00Z
    hint: nothing was written; unset GIT_AUTHOR_DATE, or set it to a later time; `date` shows this machine's clock; see `git handoff explain backdated`
    ");
    assert_eq!(env.tip(), before);
    env.claim("87.1", "prep-agent").success();
}

/// Moves the branch in a clone that saw it before.
fn moved(ledger: &Ledger, to: &str) {
    ledger.git(&["update-ref", BRANCH, to]);
}

#[test]
fn commits_that_are_cut_off_the_end_are_found_by_a_clone_that_saw_them() {
    let ledger = Ledger::new();
    ledger.assert_sound(&[]);
    let commits = ledger.commits();
    moved(&ledger, &commits[8].id);
    for args in [
        &[][..],
        &["89"],
        &["--incremental"],
        &["--since", "2026-03-04"],
    ] {
        // The issue that went with them can't be asked for.
        if args != ["89"] {
            assert_eq!(ledger.damage(args), ["8 history.rewritten"], "{args:?}");
        }
    }
    // Whoever sees it for the first time can't know.
    ledger.clone_with(&[]).assert_sound(&[]);
    moved(&ledger, &commits[9].id);
    ledger.assert_sound(&[]);
}

#[test]
fn nothing_is_written_on_a_branch_that_was_set_back() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let before = env.tip();
    env.claim("87.1", "prep-agent").success();
    let tip = env.tip();
    let set_back = || env.git(&env.repo(), &["update-ref", BRANCH, &before]);
    set_back();
    let refused = env.claim("87.1", "prep-agent").exits(10);
    let back = format!("`git update-ref {BRANCH} {tip} {before}`");
    assert!(refused.stderr.contains(&back), "{}", refused.shown);
    assert!(refused.stderr.contains("was set back to commit"));
    assert_eq!(env.tip(), before);
    let back: Vec<&str> = back.trim_matches('`').split(' ').skip(1).collect();
    env.git(&env.repo(), &back);
    let progress = ["extend", "87.1", "--as", "prep-agent", "--progress", "half"];
    env.handoff(&progress).success();
    // Where it is meant, it goes on from there.
    set_back();
    env.handoff(&["verify", "--accept-rewritten"]).success();
    env.claim("87.1", "prep-agent").success();
    env.assert_sound();
}

#[test]
fn a_branch_that_is_written_anew_is_found_until_that_is_accepted() {
    let ledger = Ledger::new();
    ledger.assert_sound(&[]);
    let tip = ledger.tip().id;
    ledger.rewrite(9, |_, commit| {
        commit.committer = redated(&commit.committer, 20)
    });
    let anew = ledger.tip().id;
    moved(&ledger, &tip);
    ledger.assert_sound(&[]);
    moved(&ledger, &anew);
    assert_eq!(ledger.damage(&[]), ["9 history.rewritten"]);
    // A step on top does not hide it, and is not named for it.
    ledger.handoff(30, &["claim", "89.1", "--as", "prep-agent"], "");
    assert_eq!(ledger.damage(&[]), ["9 history.rewritten"]);
    assert_eq!(ledger.damage(&["--since", &tip]), ["10 history.rewritten"]);
    ledger.assert_sound(&["--accept-rewritten"]);
    ledger.assert_sound(&[]);
}

#[test]
fn a_step_that_is_written_here_is_seen_without_an_audit() {
    let ledger = Ledger::new();
    let before = ledger.tip().id;
    ledger.handoff(10, &["claim", "89.1", "--as", "prep-agent"], "");
    moved(&ledger, &before);
    assert_eq!(ledger.damage(&[]), ["9 history.rewritten"]);
}

#[test]
fn a_branch_that_is_gone_can_be_brought_back() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.git(&env.repo(), &["branch", "-D", "handoffs"]);
    assert_snapshot!(env.filtered(&env.handoff(&["verify"]).exits(9).stderr), @"
    error: the repository has no ledger: there is no branch handoffs
    hint: it existed, but is gone: `git branch handoffs [commit]` restores what this clone last saw
    ");
}

#[test]
fn only_what_came_since_is_audited() {
    let ledger = Ledger::new();
    let tip = ledger.tip().id;
    let whole = ledger.assert_sound(&[]);
    assert_eq!(
        (&whole["commits"], &whole["since"]),
        (&json!(10), &json!(null))
    );
    let none = ledger.assert_sound(&["--incremental"]);
    assert_eq!((&none["commits"], &none["since"]), (&json!(0), &json!(tip)));
    ledger.handoff(10, &["claim", "89.1", "--as", "prep-agent"], "");
    ledger.handoff(11, &["claim", "88.2", "--as", "implementer-agent"], "");
    for args in [
        &["--incremental"][..],
        &["--since", &tip],
        &["--since", "2026-03-04T05:10:00Z"],
    ] {
        let since = ledger.assert_sound(args);
        assert_eq!(
            (&since["commits"], &since["since"]),
            (&json!(2), &json!(tip))
        );
    }
    let after = ledger.assert_sound(&["--incremental"]);
    assert_eq!(after["commits"], 0, "it goes on from where it was");
    // Damage before it is not looked for, damage after it is.
    ledger.add(&[set("late.txt", "x")]);
    assert_eq!(ledger.damage(&["--since", &tip]), ["12 step.none late.txt"]);
    // A commit that is not a ledger step is everybody's.
    let in_issue = ledger.damage(&["89", "--since", &tip]);
    assert_eq!(in_issue, ["12 step.none late.txt"]);
    let (code, answer) = ledger.verify(&["--since", "nonsense"]);
    assert_eq!((code, &answer["error"]["code"]), (6, &json!("no_commit")));
}

#[test]
fn an_audit_of_a_part_does_not_vouch_for_the_whole() {
    let ledger = Ledger::new();
    let tip = ledger.tip().id;
    ledger.assert_sound(&["--since", &tip]);
    ledger.assert_sound(&["87"]);
    let whole = ledger.assert_sound(&["--incremental"]);
    assert_eq!(whole["commits"], 10);
}

#[test]
fn the_report_can_be_read_by_people() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    assert_snapshot!(env.handoff(&["verify"]).success().shown, @"
    $ git handoff verify
    the ledger is sound: 3 commits, 1 handoff, up to [commit]
      audited: branch handoffs, from the first commit to the last, recorded 2026-03-02 09:06:00Z
      every step was legal under the rules of its time, and nothing was changed since
    ");
    let tree = env.root().join("ledger");
    env.git(
        &env.repo(),
        &["worktree", "add", "-q", tree.to_str().unwrap(), "handoffs"],
    );
    let contract = tree.join("issues/87/00/87/0001-issue-manager-to-prep-agent.xml");
    let text = std::fs::read_to_string(&contract).unwrap();
    std::fs::write(&contract, format!("{text}\n")).unwrap();
    std::fs::write(tree.join("note.txt"), "x").unwrap();
    env.git(&tree, &["add", "."]);
    env.git(&tree, &["commit", "-q", "-m", "By hand"]);
    assert_snapshot!(env.handoff(&["verify"]).exits(10).shown, @r#"
    $ git handoff verify
    the ledger is damaged: 3 findings in 4 commits, 1 handoff, up to [commit]
      audited: branch handoffs, from the first commit to the last, recorded 2026-03-02 09:10:00Z

    1. commit [commit] "By hand"
       in the name of Robin Doe, recorded by Robin Doe on 2026-03-02 09:10:00Z
       A contract is not what its sender handed over.
       A file lies in the ledger that no step put there.
       The description of the step does not tell what the step did.
         issues/87/00/87/0001-issue-manager-to-prep-agent.xml contract.altered the step has no business with this file
         note.txt file.stray the step has no business with this file
          commit.message the message does not tell a step: it has no trailer Event
    --- stderr
    error: the ledger is damaged: 3 findings in 4 commits, 1 handoff, up to [commit]
    hint: compare with another clone; `git handoff verify --quarantine [commit] --as maintainer --reason WHY` takes what is not a step back, on record
    --- exit 10
    "#);
}

#[test]
fn the_audit_of_an_issue_includes_the_rules_it_stands_on_and_vouches_for_no_other() {
    let ledger = Ledger::new();
    let good = ledger.tip().id;
    let path = "protocols/issue-to-pr/protocol.json";
    let weakened = ledger.file(path).replacen("prep-agent", "fixer-agent", 1);
    ledger.add(&[set(path, &*weakened)]);
    let found = ledger.damage(&["87"]);
    assert!(
        found[0].starts_with("10 ") && found[0].contains(path),
        "{found:?}"
    );
    // Another issue's damage is not this one's, and is not remembered as sound.
    ledger.set_branch(&good);
    let record = format!("{}/0001.json", folder(88));
    let altered = ledger
        .file(&record)
        .replacen("\"attempt\": 1", "\"attempt\": 2", 1);
    ledger.add(&[set(&record, &*altered)]);
    ledger.assert_sound(&["87"]);
    moved(&ledger, &good);
    ledger.assert_sound(&[]);
}

#[test]
fn no_clock_is_years_behind() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let claim = ["claim", "87.1", "--as", "prep-agent"];
    let mut command = env.program(&claim);
    for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        command.env(name, "2020-01-01T00:00:00Z");
    }
    let tip = env.tip();
    env.run(command, &claim, None).exits(2);
    assert_eq!(env.tip(), tip);
}

#[test]
fn a_step_that_was_dated_ahead_holds_nobody_up() {
    let env = TestEnvironment::with_ledger();
    let send = ["send", "-"];
    let mut command = env.program(&send);
    command.env("GIT_AUTHOR_DATE", "2026-03-03T08:00:00Z");
    env.run(command, &send, Some(opening(87).as_bytes()))
        .success();
    env.claim("87.1", "prep-agent").success();
    env.assert_sound();
}
