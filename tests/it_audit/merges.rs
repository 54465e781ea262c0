//! Merges that happened as a contract says, and those that did not.

use crate::desk::{BRANCH, Desk, merged};
use insta::assert_snapshot;
use test_support::stored;

/// A desk whose validator holds an approved branch, while the base went on.
fn approved() -> Desk {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    desk.approved(&[&first, &second]);
    desk.commit("main", &[("meanwhile.txt", "1\n")], "meanwhile");
    desk
}

/// Merges the branch into `main` by a commit of two lines.
fn by_merge(desk: &Desk) -> String {
    desk.git(&["merge", "-q", "--no-ff", "--no-edit", BRANCH]);
    desk.git(&["rev-parse", "HEAD"])
}

/// Merges the branch into `main` by one commit.
fn by_squash(desk: &Desk) -> String {
    desk.git(&["merge", "-q", "--squash", BRANCH]);
    desk.git(&["commit", "-q", "-m", "CSV export (#91)"]);
    desk.git(&["rev-parse", "HEAD"])
}

/// Writes the branch's commits again on `main`.
fn by_rebase(desk: &Desk) -> String {
    desk.git(&["cherry-pick", &format!("main..{BRANCH}")]);
    desk.git(&["rev-parse", "HEAD"])
}

pub(crate) type Merging = fn(&Desk) -> String;

pub(crate) const WAYS: [(&str, Merging); 3] = [
    ("merge", by_merge),
    ("squash", by_squash),
    ("rebase", by_rebase),
];

#[test]
fn each_way_to_merge_passes_under_its_own_name_and_no_other() {
    for (word, way) in WAYS {
        let desk = approved();
        let commit = way(&desk);
        for (other, _) in WAYS.iter().filter(|(other, _)| *other != word) {
            let found = desk.refused(&merged(&commit, other), &["evidence.merge"]);
            assert!(
                found[0].starts_with("/handoff/merge_strategy "),
                "{found:?}"
            );
        }
        desk.env.send(merged(&commit[..12], word)).success();
        assert_eq!(desk.check("87.5", "merge"), "passed", "{word}");
        desk.env.assert_sound();
    }
}

#[test]
fn a_branch_that_was_deleted_is_judged_by_where_the_ledger_saw_it() {
    for (word, way) in WAYS {
        let desk = approved();
        let tip = desk.git(&["rev-parse", BRANCH]);
        let commit = way(&desk);
        desk.git(&["branch", "-D", BRANCH]);
        for (other, _) in WAYS.iter().filter(|(other, _)| *other != word) {
            desk.refused(&merged(&commit, other), &["evidence.merge"]);
        }
        desk.env.send(merged(&commit, word)).success();
        assert_eq!(desk.check("87.5", "merge"), "passed", "{word}");
        let record = stored(&desk.env.data(&["show", "87.5"]));
        assert_eq!(record["evidence"][0]["tip"], tip);
        desk.env.assert_sound();
    }
}

#[test]
fn a_fast_forward_is_a_rebase() {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    desk.approved(&[&first, &second]);
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["merge", "-q", "--ff-only", BRANCH]);
    desk.refused(&merged(&second, "squash"), &["evidence.merge"]);
    desk.env.send(merged(&second, "rebase")).success();
    assert_eq!(desk.check("87.5", "merge"), "passed");
}

#[test]
fn each_lie_about_a_merge_is_named() {
    let desk = approved();
    let base = desk.git(&["rev-parse", "main"]);
    let tip = desk.git(&["rev-parse", BRANCH]);
    let squash = by_squash(&desk);
    desk.commit("main", &[("later.txt", "2\n")], "later");
    let later = desk.git(&["rev-parse", "main"]);
    let foreign = {
        desk.git(&["branch", "foreign", &base]);
        desk.commit("foreign", &[("foreign.txt", "3\n")], "not merged")
    };
    let mut found = Vec::new();
    for commit in [&*base, &tip, &later, &foreign, "1234567"] {
        found.extend(desk.refused(&merged(commit, "squash"), &["evidence.merge"]));
    }
    found.extend(desk.refused(&merged(&squash, "merge"), &["evidence.merge"]));
    assert_snapshot!(desk.env.filtered(&found.join("\n")), @r#"
    /handoff/merge_strategy commit [commit] is not what "squash" says: it changes meanwhile.txt, which the branch does not
    /handoff/merge_sha "[commit]" is not on main
    /handoff/merge_strategy commit [commit] is not what "squash" says: it changes later.txt, which the branch does not
    /handoff/merge_sha "[commit]" is not on main
    /handoff/merge_sha "1234567" is no commit of this repository
    /handoff/merge_strategy commit [commit] is not what "merge" says: it has one parent, and a merge has two
    "#);
}

#[test]
fn a_squash_that_holds_more_or_less_than_the_branch_is_named() {
    for (file, text) in [("smuggled.txt", "x\n"), ("src/export.py", "other rows\n")] {
        let desk = approved();
        desk.git(&["merge", "-q", "--squash", BRANCH]);
        let commit = desk.commit("main", &[(file, text)], "CSV export (#91)");
        let found = desk.refused(&merged(&commit, "squash"), &["evidence.merge"]);
        assert!(found[0].contains(file), "{found:?}");
    }
    let desk = approved();
    desk.git(&["merge", "-q", "--squash", BRANCH]);
    desk.git(&["rm", "-q", "-f", "src/history.py"]);
    desk.git(&["commit", "-q", "-m", "half of it"]);
    let commit = desk.git(&["rev-parse", "HEAD"]);
    let found = desk.refused(&merged(&commit, "squash"), &["evidence.merge"]);
    assert!(found[0].contains("src/history.py"), "{found:?}");
}

#[test]
fn a_file_that_both_lines_changed_is_merged_from_both() {
    let lines = |first: &str, last: &str| -> String {
        let middle: String = (0..20).map(|i| format!("line {i}\n")).collect();
        format!("{first}\n{middle}{last}\n")
    };
    for (word, way) in WAYS {
        let desk = Desk::new("enforce");
        desk.commit("main", &[("both.txt", &lines("a", "z"))], "on main");
        desk.git(&["checkout", "-q", BRANCH]);
        desk.git(&["merge", "-q", "--ff-only", "main"]);
        desk.work();
        desk.commit(BRANCH, &[("both.txt", &lines("a", "Z"))], "the end");
        let contract = desk.done(3);
        desk.env.send(contract).success();
        desk.env.claim("87.3", "reviewer-agent").success();
        let approval = test_support::contracts::sample(
            "reviewer-agent-to-validator-agent",
            test_support::contracts::Format::Xml,
            87,
        );
        desk.env.send(approval).success();
        desk.env.claim("87.4", "validator-agent").success();
        desk.commit("main", &[("both.txt", &lines("A", "z"))], "the beginning");
        let commit = way(&desk);
        desk.env.send(merged(&commit, word)).success();
        assert_eq!(desk.check("87.5", "merge"), "passed", "{word}");
        desk.env.assert_sound();
    }
}

#[test]
fn a_merge_that_only_origin_has_counts() {
    let desk = approved();
    desk.git(&["init", "-q", "--bare", "../origin.git"]);
    desk.git(&["remote", "add", "origin", "../origin.git"]);
    let commit = by_squash(&desk);
    desk.git(&["push", "-q", "origin", "main"]);
    desk.git(&["reset", "-q", "--hard", "HEAD~2"]);
    desk.env.send(merged(&commit, "squash")).success();
    assert_eq!(desk.check("87.5", "merge"), "passed");
}

/// Merges what the branch held before its last commit, while `main` is checked
/// out.
fn of_an_older_state(desk: &Desk, word: &str) -> String {
    let older = format!("{BRANCH}~1");
    match word {
        "merge" => desk.git(&["merge", "-q", "--no-ff", "--no-edit", &older]),
        "squash" => {
            desk.git(&["merge", "-q", "--squash", &older]);
            desk.git(&["commit", "-q", "-m", "CSV export (#91)"])
        }
        _ => desk.git(&["cherry-pick", &format!("main..{older}")]),
    };
    desk.git(&["rev-parse", "HEAD"])
}

#[test]
fn what_an_older_state_of_the_branch_became_is_not_its_merge() {
    for (word, _) in WAYS {
        let desk = Desk::new("enforce");
        let first = desk.commit(BRANCH, &[("src/export.py", "rows\n")], "export: rows");
        // The ledger sees the older state too.
        let contract = desk.implemented(1, &[&first]);
        desk.env.send(contract).success();
        desk.env.claim("87.3", "reviewer-agent").success();
        let newest = desk.commit(BRANCH, &[("src/history.py", "link\n")], "history: link");
        let approval = test_support::contracts::sample(
            "reviewer-agent-to-validator-agent",
            test_support::contracts::Format::Xml,
            87,
        );
        let names = format!("<reviewed_commit>{newest}</reviewed_commit></handoff>");
        desk.env
            .send(approval.replace("</handoff>", &names))
            .success();
        desk.env.claim("87.4", "validator-agent").success();
        desk.commit("main", &[("meanwhile.txt", "1\n")], "meanwhile");
        let commit = of_an_older_state(&desk, word);
        let found = desk.refused(&merged(&commit, word), &["evidence.merge"]);
        assert!(
            found[0].starts_with("/handoff/merge_strategy "),
            "{found:?}"
        );
        desk.git(&["branch", "-D", BRANCH]);
        desk.refused(&merged(&commit, word), &["evidence.merge"]);
    }
}

#[test]
fn a_branch_that_went_on_after_its_merge_was_not_merged_whole() {
    for (word, way) in WAYS {
        let desk = approved();
        let commit = way(&desk);
        desk.commit(BRANCH, &[("src/late.py", "late\n")], "one more");
        desk.refused(&merged(&commit, word), &["evidence.merge"]);
    }
    // What origin's branch has counts, where the local one stayed behind.
    let desk = approved();
    desk.git(&["init", "-q", "--bare", "../origin.git"]);
    desk.git(&["remote", "add", "origin", "../origin.git"]);
    desk.commit(BRANCH, &[("src/late.py", "late\n")], "one more");
    desk.git(&["push", "-q", "origin", BRANCH]);
    desk.git(&["reset", "-q", "--hard", "HEAD~1"]);
    desk.git(&["checkout", "-q", "main"]);
    let half = by_squash(&desk);
    desk.refused(&merged(&half, "squash"), &["evidence.merge"]);
    desk.git(&["reset", "-q", "--hard", "HEAD~1"]);
    desk.git(&["merge", "-q", "--squash", &format!("origin/{BRANCH}")]);
    desk.git(&["commit", "-q", "-m", "CSV export (#91)"]);
    let whole = desk.git(&["rev-parse", "HEAD"]);
    desk.env.send(merged(&whole, "squash")).success();
    assert_eq!(desk.check("87.5", "merge"), "passed");
    desk.env.assert_sound();
}

#[test]
fn a_clone_that_never_had_the_branch_can_not_tell() {
    let desk = approved();
    let commit = by_squash(&desk);
    desk.git(&["branch", "-D", BRANCH]);
    desk.git(&["init", "-q", "--bare", "../origin.git"]);
    desk.git(&["push", "-q", "../origin.git", "main", "handoffs"]);
    desk.git(&["clone", "-q", "../origin.git", "../fresh"]);
    let fresh = desk.env.root().join("fresh");
    desk.env
        .git(&fresh, &["branch", "handoffs", "origin/handoffs"]);
    let contract = desk.env.file("merged.xml", merged(&commit, "squash"));
    let args = ["send", &contract, "--json", "--worker", "repo"];
    let sent = desk.env.handoff_in(&fresh, &args);
    let data = sent.success().json()["data"].take();
    let entry = &data["evidence"][0];
    assert_eq!(entry["check"], "merge");
    assert_eq!(entry["result"], "skipped");
    assert_snapshot!(desk.env.filtered(entry["reason"].as_str().unwrap()), @"enhancement/87-csv-export is not here, nor is commit [commit], where the ledger last saw it");
}

#[test]
fn nothing_was_merged_of_a_branch_without_commits() {
    let desk = Desk::new("warn");
    desk.approved(&["1234567"]);
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["commit", "-q", "--allow-empty", "-m", "nothing"]);
    let commit = desk.git(&["rev-parse", "HEAD"]);
    desk.env.send(merged(&commit, "squash")).success();
    assert_snapshot!(desk.env.filtered(&desk.check("87.5", "merge")), @r#"contradicted: commit [commit] is not what "squash" says: the branch has no commits of its own that the base branch had not"#);
}

#[test]
fn what_came_after_the_squash_is_not_the_squash() {
    let undone = |desk: &Desk| {
        desk.git(&["revert", "--no-edit", "HEAD"]);
    };
    let edited = |desk: &Desk| {
        desk.commit("main", &[("src/export.py", "other rows\n")], "edit");
    };
    let edited_again = |desk: &Desk| {
        desk.commit("main", &[("src/export.py", "other rows\n")], "edit");
        desk.commit("main", &[("src/export.py", "rows again\n")], "edit again");
    };
    let empty = |desk: &Desk| {
        desk.git(&["commit", "-q", "--allow-empty", "-m", "nothing"]);
    };
    let mut found = Vec::new();
    let later: [&dyn Fn(&Desk); 4] = [&undone, &edited, &edited_again, &empty];
    for later in later {
        let desk = approved();
        let squash = by_squash(&desk);
        later(&desk);
        let commit = desk.git(&["rev-parse", "HEAD"]);
        let message = desk.refused(&merged(&commit, "squash"), &["evidence.merge"]);
        found.push(desk.env.filtered(&message[0]));
        desk.env.send(merged(&squash, "squash")).success();
    }
    assert_snapshot!(found.join("\n"), @r#"
    /handoff/merge_strategy commit [commit] is not what "squash" says: src/export.py is not as it is on the branch
    /handoff/merge_strategy commit [commit] is not what "squash" says: src/export.py is not as it is on the branch
    /handoff/merge_strategy commit [commit] is not what "squash" says: the work came with commit [commit] already
    /handoff/merge_strategy commit [commit] is not what "squash" says: the base branch had the work already
    "#);
}

#[test]
fn a_file_that_was_merged_by_hand_may_be_squashed_once() {
    let desk = approved();
    desk.commit("main", &[("src/export.py", "main's rows\n")], "ours");
    desk.commit(
        "main",
        &[("src/export.py", "main's own rows\n")],
        "ours again",
    );
    let ours = desk.git(&["rev-parse", "HEAD"]);
    desk.git(&["checkout", "-q", BRANCH, "--", "src/history.py"]);
    let squash = desk.commit("main", &[("src/export.py", "rows of both\n")], "#91");
    desk.refused(&merged(&ours, "squash"), &["evidence.merge"]);
    desk.env.send(merged(&squash, "squash")).success();
    assert_eq!(desk.check("87.5", "merge"), "passed");
    desk.env.assert_sound();
}
