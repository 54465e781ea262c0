//! In a shared ledger, others go on with what is on the remote: claims hold only if it is there.

use insta::assert_snapshot;

use crate::desk::{BRANCH, Desk, merged};

/// A desk whose ledger and main branch are shared through `origin`.
fn shared() -> Desk {
    let desk = Desk::new("enforce");
    desk.git(&["init", "-q", "--bare", "../origin.git"]);
    desk.git(&["remote", "add", "origin", "../origin.git"]);
    desk.git(&["push", "-q", "origin", "main"]);
    desk.env.handoff(&["init", "--remote", "origin"]).success();
    desk
}

#[test]
fn a_branch_and_its_commits_must_be_on_the_remote() {
    let desk = shared();
    let [first, second] = desk.work();
    let contract = desk.implemented(2, &[&first, &second]);
    let codes = ["evidence.branch", "evidence.commits"];
    let mut found = desk.refused(&contract, &codes);
    // Half of it is there.
    desk.git(&[
        "push",
        "-q",
        "origin",
        &format!("{first}:refs/heads/{BRANCH}"),
    ]);
    found.extend(desk.refused(&contract, &codes));
    assert_snapshot!(desk.env.filtered(&found.join("\n")), @r#"
    /handoff/branch commit [commit] of "enhancement/87-csv-export" is only here: origin has no branch "enhancement/87-csv-export"
    /handoff/commits commit [commit] is only here: origin has no branch "enhancement/87-csv-export"
    /handoff/branch commit [commit] of "enhancement/87-csv-export" is only here: it is not on origin's "enhancement/87-csv-export"
    /handoff/commits commit [commit] is only here: it is not on origin's "enhancement/87-csv-export"
    "#);
    let sent = desk.env.send(&contract).exits(3);
    sent.says(&format!("push it: `git push origin {BRANCH}`"));
    desk.git(&["push", "-q", "origin", BRANCH]);
    desk.env.send(&contract).success();
    assert_eq!(desk.check("87.3", "branch"), "passed");
    assert_eq!(desk.check("87.3", "commits"), "passed");
    desk.env.assert_sound();
}

#[test]
fn a_merge_must_be_on_the_remote() {
    let desk = shared();
    let [first, second] = desk.work();
    desk.git(&["push", "-q", "origin", BRANCH]);
    desk.approved(&[&first, &second]);
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["merge", "-q", "--no-ff", "--no-edit", BRANCH]);
    let merge = desk.git(&["rev-parse", "HEAD"]);
    let contract = merged(&merge, "merge");
    let found = desk.refused(&contract, &["evidence.merge"]);
    assert_snapshot!(desk.env.filtered(&found.join("\n")), @r#"/handoff/merge_sha "[commit]" is only here: it is not on origin's "main""#);
    let sent = desk.env.send(&contract).exits(3);
    sent.says("push it: `git push origin main`");
    desk.git(&["push", "-q", "origin", "main"]);
    // What was merged is there, also without its branch.
    desk.git(&["push", "-q", "origin", "--delete", BRANCH]);
    desk.env.send(&contract).success();
    assert_eq!(desk.check("87.5", "merge"), "passed");
    desk.env.assert_sound();
}

#[test]
fn offline_what_the_remote_has_is_not_known() {
    let desk = shared();
    let [first, second] = desk.work();
    let contract = desk.implemented(2, &[&first, &second]);
    desk.env
        .handoff_with(&["send", "-", "--offline"], &contract)
        .exits(8);
    assert_snapshot!(desk.checks("87.3").join("\n"), @"
    branch skipped: whether origin has enhancement/87-csv-export as it is here is not known: it is out of reach
    commits skipped: whether origin has enhancement/87-csv-export as it is here is not known: it is out of reach
    files_changed passed
    tests_added skipped: no test report was given
    coverage skipped: no coverage report was given
    ");
}

#[test]
fn a_ledger_of_one_repository_asks_for_no_push() {
    let desk = Desk::new("enforce");
    desk.git(&["init", "-q", "--bare", "../origin.git"]);
    desk.git(&["remote", "add", "origin", "../origin.git"]);
    let [first, second] = desk.work();
    desk.env
        .send(desk.implemented(2, &[&first, &second]))
        .success();
    assert_eq!(desk.check("87.3", "branch"), "passed");
}
