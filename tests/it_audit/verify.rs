//! The audit, on real ledgers that somebody tampered with through plain git.
//!
//! A line of a snapshot is: the number of the commit in the history, the finding's code, its path.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::keys::header;
use insta::assert_snapshot;
use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::tamper::{BRANCH, Commit, Edit, Ledger, contract, folder, remove, set};

/// What the audit finds. It must not stop there: the damage that comes after it is found as well.
fn damage(ledger: &Ledger) -> String {
    let found = ledger.damage(&[]);
    ledger.add(&[set("late.txt", "x")]);
    let with_later = ledger.damage(&[]);
    let number = ledger.commits().len() - 1;
    assert!(
        with_later.contains(&format!("{number} step.none late.txt")),
        "{with_later:#?}"
    );
    // What was found in the commits before is still found; the tip alone is another one now.
    let tip = format!("{} ", number - 1);
    let lost: Vec<&String> = found
        .iter()
        .filter(|line| !line.starts_with(&tip) && !with_later.contains(line))
        .collect();
    assert!(lost.is_empty(), "{lost:#?}");
    found.join("\n")
}

fn replaced(ledger: &Ledger, path: &str, from: &str, to: &str) -> String {
    let text = ledger.file(path);
    assert!(text.contains(from), "{path}: {text}");
    text.replacen(from, to, 1)
}

#[test]
fn a_legal_ledger_is_sound() {
    let ledger = Ledger::new();
    let data = ledger.assert_sound(&[]);
    assert_eq!(data["commits"], 10);
    assert_eq!(data["handoffs"], 6);
    assert_eq!(data["cut_off"], false);
    let data = ledger.assert_sound(&["87"]);
    assert_eq!(data["commits"], 6, "the first commit is everyone's");
    assert_eq!(data["handoffs"], 3);
    ledger.git(&["fsck", "--strict"]);
}

#[test]
fn a_legal_ledger_stays_sound_when_packed_and_cloned() {
    let ledger = Ledger::new();
    ledger.git(&["gc", "-q", "--prune=now"]);
    ledger.assert_sound(&[]);
    let clone = ledger.clone_with(&[]);
    clone.assert_sound(&[]);
    clone.assert_sound(&["88"]);
    ledger.handoff(10, &["claim", "89.1", "--as", "prep-agent"], "");
    ledger.assert_sound(&[]);
}

#[test]
fn a_shallow_clone_is_verified_as_far_as_it_goes() {
    let ledger = Ledger::new();
    for (depth, commits) in [("--depth=1", 0), ("--depth=5", 4)] {
        let clone = ledger.clone_with(&[depth]);
        let data = clone.assert_sound(&[]);
        assert_eq!(data["cut_off"], true, "{depth}");
        assert_eq!(data["commits"], commits, "{depth}");
    }
    let path = format!("{}/0001.json", folder(87));
    let altered = replaced(&ledger, &path, "\"attempt\": 1", "\"attempt\": 2");
    ledger.rewrite(9, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &[set(&path, &*altered)]);
    });
    assert_snapshot!(ledger.clone_with(&["--depth=5"]).damage(&[]).join("\n"), @"4 step.many issues/89/00/89");
}

#[test]
fn a_ledger_with_every_kind_of_step_is_sound() {
    let ledger = Ledger::new();
    let mut minute = 10;
    let mut run = |args: &[&str], input: &str| {
        ledger.handoff(minute, args, input);
        minute += 1;
    };
    run(&["claim", "89.1", "--as", "prep-agent"], "");
    run(
        &[
            "fail",
            "89.1",
            "--as",
            "prep-agent",
            "--message",
            "no space",
        ],
        "",
    );
    run(&["retry", "89.1", "--as", "issue-manager"], "");
    run(&["claim", "--next", "--as", "prep-agent"], "");
    run(
        &[
            "block",
            "89.1",
            "--as",
            "prep-agent",
            "--reason",
            "which branch?",
        ],
        "",
    );
    run(&["answer", "89.1", "that one", "--as", "issue-manager"], "");
    run(&["claim", "89.1", "--as", "prep-agent"], "");
    run(&["complete", "89.1", "--as", "prep-agent"], "");
    run(
        &["send", "-"],
        &contract("prep-agent-to-implementer-agent", 89),
    );
    run(
        &[
            "reject",
            "89.2",
            "--as",
            "implementer-agent",
            "--reason",
            "no commits",
        ],
        "",
    );
    run(
        &[
            "cancel",
            "88.2",
            "--as",
            "orchestrator",
            "--reason",
            "not now",
        ],
        "",
    );
    run(&["claim", "87.3", "--as", "reviewer-agent"], "");
    run(
        &["send", "-"],
        &contract("reviewer-agent-to-fixer-agent", 87),
    );
    run(&["claim", "87.4", "--as", "fixer-agent"], "");
    run(
        &["send", "-"],
        &contract("fixer-agent-to-reviewer-agent", 87),
    );
    run(&["claim", "87.5", "--as", "reviewer-agent"], "");
    run(
        &["send", "-"],
        &contract("reviewer-agent-to-validator-agent", 87),
    );
    run(&["claim", "87.6", "--as", "validator-agent"], "");
    run(
        &["send", "-"],
        &contract("validator-agent-to-closer-agent", 87),
    );
    run(&["claim", "87.7", "--as", "closer-agent"], "");
    run(&["send", "-"], &contract("workflow-complete", 87));
    run(
        &[
            "reopen",
            "87",
            "--as",
            "orchestrator",
            "--reason",
            "it is back",
        ],
        "",
    );
    let commits = ledger.commits().len();
    assert_eq!(ledger.assert_sound(&[])["commits"], commits);
    ledger.git(&["fsck", "--strict"]);
    // And each of them is checked: with its files but without it, the next step is not legal.
    let found = |number: usize| {
        let copy = ledger.clone_with(&[]);
        let before = copy.commits()[number - 1].id.clone();
        copy.rewrite(number + 1, |at, commit| {
            if at == number + 1 {
                commit.parents = vec![before.clone()];
            }
        });
        copy.verify(&[]).0
    };
    for number in (1..commits - 1).step_by(2) {
        assert_eq!(found(number), 10, "without {number}");
    }
}

#[test]
fn whatever_file_is_changed_is_found_by_its_path() {
    let ledger = Ledger::new();
    let start = ledger.tip();
    let listed = ledger.git(&["ls-tree", "-r", "--name-only", BRANCH]);
    let protocol = |path: &&str| path.starts_with("protocols/") && !path.ends_with("protocol.json");
    let paths: Vec<&str> = listed.lines().filter(|path| !protocol(path)).collect();
    assert!(paths.len() > 18, "{paths:#?}");
    for path in paths {
        let text = ledger.file(path);
        let executable = Edit(path, Some(("100755", text.clone().into())));
        for edit in [set(path, format!("{text} ")), remove(path), executable] {
            ledger.set_branch(&start.id);
            ledger.add(&[edit]);
            let found = ledger.damage(&[]);
            // Another blank makes it another version of the protocol, of which
            // the message tells nothing.
            let message = path.ends_with("/protocol.json") && found == ["10 commit.message"];
            let named = message
                || found
                    .iter()
                    .any(|line| line.starts_with("10 ") && line.ends_with(path));
            assert!(named, "{path}: {found:#?}");
        }
    }
}

#[test]
fn a_step_made_by_plain_git_with_the_same_bytes_passes() {
    let ledger = Ledger::new();
    let other = Ledger::new();
    other.handoff(10, &["claim", "89.1", "--as", "prep-agent"], "");
    let path = folder(89);
    let files = [
        format!("{path}/0001.json"),
        format!("{path}/issue.json"),
        other.entry("89.1"),
    ];
    let was = ledger.entry("89.1");
    let mut edits = vec![remove(&was)];
    edits.extend(files.iter().map(|path| set(path, other.file(path))));
    let (tip, made) = (ledger.tip(), other.tip());
    let id = ledger.write(&Commit {
        tree: ledger.edited(&tip.tree, &edits),
        parents: vec![tip.id],
        ..made.clone()
    });
    ledger.set_branch(&id);
    assert_eq!(id, made.id);
    ledger.assert_sound(&[]);
    // Who recorded it is anyone's business.
    let mut again = made;
    again.committer = "Someone <someone@example.org> 1772604000 +0000".to_owned();
    ledger.set_branch(&ledger.write(&again));
    ledger.assert_sound(&[]);
}

#[test]
fn an_altered_contract_is_found() {
    let ledger = Ledger::new();
    let path = format!("{}/0001-issue-manager-to-prep-agent.xml", folder(87));
    let altered = replaced(&ledger, &path, "medium", "low");
    ledger.add(&[set(&path, altered)]);
    assert_snapshot!(damage(&ledger), @"
    10 contract.altered issues/87/00/87/0001-issue-manager-to-prep-agent.xml
    10 commit.message
    ");
}

#[test]
fn a_contract_altered_in_the_commit_that_sent_it_is_found() {
    let ledger = Ledger::new();
    let path = format!("{}/0001-issue-manager-to-prep-agent.xml", folder(87));
    let altered = replaced(&ledger, &path, "medium", "low");
    ledger.rewrite(1, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &[set(&path, &*altered)]);
    });
    assert_snapshot!(damage(&ledger), @"
    1 record.altered issues/87/00/87/0001.json
    1 issue.altered issues/87/00/87/issue.json
    1 file.stray open/prep-agent/ready.medium.issue-to-pr.20260304T050100000.-.87.1.json
    1 file.missing open/prep-agent/ready.low.issue-to-pr.20260304T050100000.-.87.1.json
    1 commit.message
    9 contract.altered issues/87/00/87/0001-issue-manager-to-prep-agent.xml
    ");
}

#[test]
fn a_contract_reformatted_without_a_change_of_meaning_is_found() {
    let ledger = Ledger::new();
    let path = format!("{}/0001-issue-manager-to-prep-agent.xml", folder(88));
    let altered = replaced(&ledger, &path, "\n", "\n\n");
    ledger.rewrite(2, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &[set(&path, &*altered)]);
    });
    assert_snapshot!(damage(&ledger), @"
    2 record.altered issues/88/00/88/0001.json
    2 open.stale open/prep-agent/ready.medium.issue-to-pr.20260304T050200000.-.88.1.json
    2 commit.message
    9 contract.altered issues/88/00/88/0001-issue-manager-to-prep-agent.xml
    ");
}

#[test]
fn a_missing_contract_is_found() {
    let ledger = Ledger::new();
    let path = format!("{}/0001-issue-manager-to-prep-agent.xml", folder(87));
    ledger.add(&[remove(&path)]);
    assert_snapshot!(damage(&ledger), @"
    10 contract.altered issues/87/00/87/0001-issue-manager-to-prep-agent.xml
    10 commit.message
    10 file.missing issues/87/00/87/0001-issue-manager-to-prep-agent.xml
    ");
}

#[test]
fn an_altered_record_is_found() {
    let ledger = Ledger::new();
    let path = format!("{}/0001.json", folder(87));
    let altered = replaced(
        &ledger,
        &path,
        "\"priority\": \"medium\"",
        "\"priority\": \"low\"",
    );
    ledger.add(&[set(&path, altered)]);
    assert_snapshot!(damage(&ledger), @"
    10 record.altered issues/87/00/87/0001.json
    10 commit.message
    ");
}

#[test]
fn a_record_altered_together_with_its_entry_is_found() {
    let ledger = Ledger::new();
    let record = format!("{}/0003.json", folder(87));
    let altered = replaced(
        &ledger,
        &record,
        "\"to\": \"reviewer-agent\"",
        "\"to\": \"closer-agent\"",
    );
    let was = ledger.entry("87.3");
    let is = was.replace("reviewer-agent", "closer-agent");
    ledger.rewrite(9, |_, commit| {
        let edits = [set(&record, &*altered), remove(&was), set(&is, &*altered)];
        commit.tree = ledger.edited(&commit.tree, &edits);
    });
    assert_snapshot!(damage(&ledger), @"9 step.many issues/89/00/89");
}

#[test]
fn a_record_that_is_no_json_and_one_of_a_later_version_are_found() {
    let ledger = Ledger::new();
    let record = format!("{}/0003.json", folder(87));
    let later = replaced(&ledger, &record, "\"version\": 4", "\"version\": 7");
    ledger.add(&[set(&record, "{")]);
    ledger.add(&[set(&record, later)]);
    assert_snapshot!(damage(&ledger), @"
    10 record.altered issues/87/00/87/0003.json
    10 commit.message
    11 record.altered issues/87/00/87/0003.json
    11 commit.message
    11 file.unreadable issues/87/00/87/0003.json
    ");
}

#[test]
fn an_altered_issue_file_is_found() {
    let ledger = Ledger::new();
    let path = format!("{}/issue.json", folder(87));
    let altered = replaced(&ledger, &path, "\"steps\": 5", "\"steps\": 4");
    ledger.add(&[set(&path, altered)]);
    assert_snapshot!(damage(&ledger), @"
    10 issue.altered issues/87/00/87/issue.json
    10 commit.message
    ");
}

#[test]
fn an_issue_file_altered_within_a_step_is_found() {
    let ledger = Ledger::new();
    let path = format!("{}/issue.json", folder(88));
    let altered = replaced(&ledger, &path, "\"handoffs\": 2", "\"handoffs\": 3");
    ledger.rewrite(8, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &[set(&path, &*altered)]);
    });
    assert_snapshot!(damage(&ledger), @"
    8 issue.altered issues/88/00/88/issue.json
    9 file.missing issues/88/00/88/0003.json
    ");
}

#[test]
fn a_missing_record_is_found() {
    let ledger = Ledger::new();
    ledger.add(&[remove(&format!("{}/0001.json", folder(87)))]);
    ledger.add(&[remove(&format!("{}/0003.json", folder(87)))]);
    assert_snapshot!(damage(&ledger), @"
    10 record.altered issues/87/00/87/0001.json
    10 commit.message
    11 record.altered issues/87/00/87/0003.json
    11 commit.message
    11 file.missing issues/87/00/87/0003.json
    ");
}

#[test]
fn a_missing_issue_file_is_found() {
    let ledger = Ledger::new();
    ledger.add(&[remove(&format!("{}/issue.json", folder(87)))]);
    assert_snapshot!(damage(&ledger), @"10 file.missing issues/87/00/87/issue.json");
}

#[test]
fn a_stale_open_entry_is_found() {
    let ledger = Ledger::new();
    let record = ledger.file(&format!("{}/0001.json", folder(87)));
    let entry = ledger.entry_in(&ledger.commits()[1].id, "87.1");
    ledger.add(&[set(&entry, record)]);
    assert_snapshot!(damage(&ledger), @"
    10 file.stray open/prep-agent/ready.medium.issue-to-pr.20260304T050100000.-.87.1.json
    10 commit.message
    10 open.stale open/prep-agent/ready.medium.issue-to-pr.20260304T050100000.-.87.1.json
    ");
}

#[test]
fn an_open_entry_that_the_step_should_have_removed_is_found() {
    let ledger = Ledger::new();
    let commits = ledger.commits();
    let entry = ledger.entry_in(&commits[6].id, "87.2");
    let old = ledger.git(&["cat-file", "blob", &format!("{}:{entry}", commits[6].id)]);
    ledger.rewrite(7, |_, commit| {
        let edits = [set(&entry, format!("{old}\n"))];
        commit.tree = ledger.edited(&commit.tree, &edits);
    });
    assert_snapshot!(damage(&ledger), @"
    7 file.missing open/implementer-agent/held.medium.issue-to-pr.20260304T050400000.20260304T090600000.87.2.json
    ");
}

#[test]
fn a_missing_open_entry_is_found() {
    let ledger = Ledger::new();
    ledger.add(&[remove(&ledger.entry("87.3"))]);
    assert_snapshot!(damage(&ledger), @"
    10 open.stale open/reviewer-agent/ready.medium.issue-to-pr.20260304T050700000.-.87.3.json
    10 commit.message
    10 open.missing open/reviewer-agent/ready.medium.issue-to-pr.20260304T050700000.-.87.3.json
    ");
}

#[test]
fn an_open_entry_that_is_no_handoff_is_found() {
    let ledger = Ledger::new();
    ledger.add(&[set("open/readme", "x")]);
    ledger.add(&[set("open/prep-agent/readme", "x")]);
    ledger.add(&[set("open/prep-agent/99.1.json", "x")]);
    assert_snapshot!(damage(&ledger), @"
    10 step.none open/readme
    11 step.none open/prep-agent/readme
    12 file.missing issues/99/00/99/issue.json
    12 open.stale open/prep-agent/99.1.json
    ");
}

#[test]
fn a_stray_file_in_an_issue_is_found() {
    let ledger = Ledger::new();
    let path = format!("{}/notes.txt", folder(87));
    ledger.add(&[set(&path, "x")]);
    assert_snapshot!(damage(&ledger), @"
    10 file.stray issues/87/00/87/notes.txt
    10 commit.message
    ");
}

#[test]
fn a_stray_file_within_a_step_is_found() {
    let ledger = Ledger::new();
    ledger.rewrite(9, |_, commit| {
        let (inside, deeper) = (
            format!("{}/notes.txt", folder(89)),
            format!("{}/x/y", folder(89)),
        );
        let edits = [set(&inside, "x"), set(&deeper, "x"), set("stray", "x")];
        commit.tree = ledger.edited(&commit.tree, &edits);
    });
    assert_snapshot!(damage(&ledger), @"
    9 file.stray issues/89/00/89/notes.txt
    9 file.stray issues/89/00/89/x/y
    9 file.stray stray
    ");
}

#[test]
fn a_stray_file_at_the_top_is_found() {
    let ledger = Ledger::new();
    ledger.add(&[set("stray.txt", "x")]);
    assert_snapshot!(damage(&ledger), @"10 step.none stray.txt");
}

#[test]
fn a_stray_file_in_the_first_commit_is_found() {
    let ledger = Ledger::new();
    ledger.rewrite(0, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &[set("stray.txt", "x")]);
    });
    assert_snapshot!(damage(&ledger), @"0 file.stray stray.txt");
}

#[test]
fn a_changed_protocol_is_found() {
    let ledger = Ledger::new();
    let path = "protocols/issue-to-pr/protocol.json";
    let route = r#""to": "validator-agent", "contracts""#;
    let altered = replaced(&ledger, path, route, r#""to": "closer-agent", "contracts""#);
    ledger.add(&[set(path, altered)]);
    assert_snapshot!(damage(&ledger), @"10 step.illegal protocols/issue-to-pr/protocol.json");
}

#[test]
fn a_protocol_changed_within_a_step_is_found() {
    let ledger = Ledger::new();
    let path = "protocols/issue-to-pr/protocol.json";
    let altered = replaced(&ledger, path, "1.9.0", "1.9.1");
    ledger.rewrite(5, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &[set(path, &*altered)]);
    });
    assert_snapshot!(damage(&ledger), @"5 file.altered protocols/issue-to-pr/protocol.json");
}

#[test]
fn a_protocol_that_cannot_be_read_is_found_at_every_step_that_needs_it() {
    let ledger = Ledger::new();
    ledger.rewrite(0, |number, commit| {
        let edits = [set("protocols/issue-to-pr/protocol.json", "{")];
        if number >= 7 {
            commit.tree = ledger.edited(&commit.tree, &edits);
        }
    });
    assert_snapshot!(damage(&ledger), @"
    7 file.altered protocols/issue-to-pr/protocol.json
    8 file.unreadable protocols/issue-to-pr/protocol.json
    9 file.unreadable protocols/issue-to-pr/protocol.json
    ");
}

#[test]
fn a_missing_or_altered_manifest_is_found() {
    let ledger = Ledger::new();
    let altered = replaced(&ledger, "ledger.json", "\"version\": 4", "\"version\": 9");
    ledger.rewrite(9, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &[set("ledger.json", &*altered)]);
    });
    let found = ledger.damage(&[]);
    assert_snapshot!(found.join("\n"), @"
    9 file.altered ledger.json
    9 file.unreadable ledger.json
    ");
    ledger.add(&[remove("ledger.json")]);
    assert_snapshot!(ledger.damage(&[]).join("\n"), @"
    9 file.altered ledger.json
    10 file.unreadable ledger.json
    10 file.missing ledger.json
    ");
}

#[test]
fn a_merge_commit_is_found() {
    let ledger = Ledger::new();
    let commits = ledger.commits();
    ledger.rewrite(9, |_, commit| commit.parents.push(commits[3].id.clone()));
    assert_snapshot!(damage(&ledger), @"9 history.merge");
}

#[test]
fn a_removed_commit_is_found() {
    let ledger = Ledger::new();
    ledger.replay(2, &[4, 5, 6, 7, 8, 9]);
    assert_snapshot!(damage(&ledger), @"
    3 step.illegal issues/87/00/87/0002.json
    8 open.stale open/prep-agent/ready.medium.issue-to-pr.20260304T050100000.-.87.1.json
    ");
}

#[test]
fn a_removed_commit_whose_files_stay_is_found() {
    let ledger = Ledger::new();
    let commits = ledger.commits();
    ledger.rewrite(4, |number, commit| {
        if number == 4 {
            commit.parents = vec![commits[2].id.clone()];
        }
    });
    assert_snapshot!(damage(&ledger), @"3 step.illegal issues/87/00/87/0002.json");
}

#[test]
fn reordered_commits_are_found() {
    let ledger = Ledger::new();
    ledger.replay(2, &[4, 3, 5, 6, 7, 8, 9]);
    assert_snapshot!(damage(&ledger), @"
    3 step.illegal issues/87/00/87/0002.json
    4 step.illegal issues/87/00/87/0001.json
    4 step.backdated issues/87/00/87/issue.json
    6 issue.altered issues/87/00/87/issue.json
    ");
}

#[test]
fn steps_of_different_issues_that_change_places_are_found_by_their_dates() {
    let ledger = Ledger::new();
    ledger.replay(2, &[5, 3, 4, 6, 8, 7, 9]);
    assert_snapshot!(damage(&ledger), @"
    4 step.backdated issues/87/00/87/issue.json
    8 step.backdated issues/87/00/87/issue.json
    ");
}

#[test]
fn a_claim_by_the_wrong_agent_is_found() {
    let ledger = Ledger::new();
    let other = Ledger::new();
    other.handoff(10, &["claim", "89.1", "--as", "prep-agent"], "");
    let tip = ledger.tip();
    let files = [
        format!("{}/0001.json", folder(89)),
        format!("{}/issue.json", folder(89)),
        other.entry("89.1"),
    ];
    let was = ledger.entry("89.1");
    let edits: Vec<Edit<'_>> = std::iter::once(remove(&was))
        .chain(files.iter().map(|path| {
            let text = other.file(path);
            let by = text.replace("\"holder\": \"prep-agent\"", "\"holder\": \"fixer-agent\"");
            let last = by.rfind("\"by\": \"prep-agent\"");
            let forged = match last {
                Some(at) => format!(
                    "{}{}",
                    &by[..at],
                    by[at..].replacen("prep-agent", "fixer-agent", 1)
                ),
                None => by,
            };
            set(path, forged)
        }))
        .collect();
    let made = other.tip();
    let id = ledger.write(&Commit {
        tree: ledger.edited(&tip.tree, &edits),
        parents: vec![tip.id],
        author: made.author.replace("prep-agent", "fixer-agent"),
        ..made
    });
    ledger.set_branch(&id);
    assert_snapshot!(damage(&ledger), @"
    10 record.altered issues/89/00/89/0001.json
    10 open.stale open/prep-agent/held.medium.issue-to-pr.20260304T050900000.20260304T091000000.89.1.json
    10 commit.author
    ");
}

#[test]
fn a_send_without_a_claim_is_found() {
    let ledger = Ledger::new();
    // The claim's commit is gone, and the rest looks as if it had been there.
    ledger.replay(4, &[5, 7]);
    assert_snapshot!(damage(&ledger), @"
    6 step.illegal issues/87/00/87/0003.json
    6 open.stale open/implementer-agent/ready.medium.issue-to-pr.20260304T050400000.-.87.2.json
    ");
}

#[test]
fn a_forged_author_is_found() {
    let ledger = Ledger::new();
    ledger.rewrite(7, |number, commit| {
        if number == 7 {
            commit.author = commit.author.replace("implementer-agent", "reviewer-agent");
        }
        if number == 8 {
            commit.author = commit.author.replace("handoff.invalid", "example.org");
        }
    });
    assert_snapshot!(damage(&ledger), @"
    7 commit.author
    8 commit.author
    ");
}

#[test]
fn a_forged_time_is_found() {
    let ledger = Ledger::new();
    ledger.rewrite(9, |_, commit| {
        let (who, _) = commit.author.rsplit_once("> ").unwrap();
        commit.author = format!("{who}> 1700000000 +0000");
    });
    assert_snapshot!(damage(&ledger), @"9 commit.message");
}

#[test]
fn an_altered_message_or_trailer_is_found() {
    let ledger = Ledger::new();
    ledger.rewrite(6, |number, commit| match number {
        6 => {
            commit.message = commit
                .message
                .replace("To: implementer-agent", "To: fixer-agent")
        }
        7 => commit.message = commit.message.replacen(' ', "  ", 1),
        8 => commit.message += "Signed-off-by: Someone <someone@example.org>\n",
        9 => commit.message = commit.message.trim_end().to_owned(),
        _ => {}
    });
    assert_snapshot!(damage(&ledger), @"
    6 commit.message
    7 commit.message
    8 commit.message
    9 commit.message
    ");
}

#[test]
fn a_header_that_hides_something_is_found_and_a_signature_is_not() {
    let ledger = Ledger::new();
    ledger.rewrite(8, |number, commit| {
        let more = match number {
            8 => format!(
                "{} -----BEGIN PGP SIGNATURE-----\n \n abcd\n -----END PGP SIGNATURE-----",
                header()
            ),
            _ => "encoding ISO-8859-1".to_owned(),
        };
        commit.committer = format!("{}\n{more}", commit.committer);
    });
    assert_snapshot!(damage(&ledger), @"9 commit.header");
}

#[test]
fn an_executable_or_a_link_in_place_of_a_file_is_found() {
    let ledger = Ledger::new();
    let contract = format!(
        "{}/0003-implementer-agent-to-reviewer-agent.xml",
        folder(87)
    );
    let record = format!("{}/0001.json", folder(89));
    let (text, stored) = (ledger.file(&contract), ledger.file(&record));
    ledger.rewrite(7, |number, commit| {
        let executable = Edit(&contract, Some(("100755", text.clone().into())));
        let link = Edit(&record, Some(("120000", stored.clone().into())));
        let edits = if number < 9 {
            vec![executable]
        } else {
            vec![executable, link]
        };
        commit.tree = ledger.edited(&commit.tree, &edits);
    });
    ledger.add(&[Edit(&contract, Some(("120000", text.into())))]);
    assert_snapshot!(damage(&ledger), @"
    7 contract.altered issues/87/00/87/0003-implementer-agent-to-reviewer-agent.xml
    9 record.altered issues/89/00/89/0001.json
    10 contract.altered issues/87/00/87/0003-implementer-agent-to-reviewer-agent.xml
    10 commit.message
    ");
}

#[test]
fn a_submodule_is_found() {
    let ledger = Ledger::new();
    let tip = ledger.tip();
    let index = ledger.path().join("module-index");
    let tree = {
        let run = |args: &[&str]| {
            let output = std::process::Command::new("git")
                .current_dir(ledger.path())
                .env("GIT_INDEX_FILE", &index)
                .args(args)
                .output()
                .unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        run(&["read-tree", &tip.tree]);
        let info = format!("160000,{},{}/module", tip.id, folder(87));
        run(&["update-index", "--add", "--cacheinfo", &info]);
        run(&["write-tree"])
    };
    let id = ledger.write(&Commit {
        tree,
        parents: vec![tip.id.clone()],
        ..tip
    });
    ledger.set_branch(&id);
    assert_snapshot!(damage(&ledger), @"
    10 file.stray issues/87/00/87/module
    10 file.missing issues/87/00/87/0004.json
    ");
}

#[test]
fn an_empty_commit_is_found() {
    let ledger = Ledger::new();
    ledger.add(&[]);
    assert_snapshot!(damage(&ledger), @"10 step.none");
}

#[test]
fn two_issues_in_one_commit_are_found() {
    let ledger = Ledger::new();
    let commits = ledger.commits();
    ledger.rewrite(9, |_, commit| {
        commit.parents = vec![commits[7].id.clone()];
    });
    assert_snapshot!(damage(&ledger), @"8 step.many issues/89/00/89");
}

#[test]
fn a_missing_object_is_found() {
    let ledger = Ledger::new();
    let contract = format!("{}/0001-issue-manager-to-prep-agent.xml", folder(87));
    let blob = ledger.git(&["rev-parse", &format!("{BRANCH}:{contract}")]);
    fs::remove_file(ledger.loose(&blob)).unwrap();
    assert_snapshot!(damage(&ledger), @"
    1 object.unreadable issues/87/00/87/0001-issue-manager-to-prep-agent.xml
    ");
}

#[test]
fn a_missing_tree_is_found() {
    let ledger = Ledger::new();
    let commits = ledger.commits();
    let tree = ledger.git(&["rev-parse", &format!("{}:issues", commits[4].id)]);
    fs::remove_file(ledger.loose(&tree)).unwrap();
    assert_snapshot!(damage(&ledger), @"
    4 object.unreadable
    5 object.unreadable
    ");
}

#[test]
fn a_missing_commit_is_found() {
    let ledger = Ledger::new();
    let commits = ledger.commits();
    fs::remove_file(ledger.loose(&commits[4].id)).unwrap();
    // Git lists nothing of such a history: the commits have no numbers.
    ledger.add(&[set("late.txt", "x")]);
    assert_snapshot!(ledger.damage(&[]).join("\n"), @"
    ? history.broken
    ? step.none late.txt
    ");
}

#[test]
fn a_corrupt_object_is_found() {
    let ledger = Ledger::new();
    let record = format!("{}:{}/0001.json", BRANCH, folder(88));
    let path = ledger.loose(&ledger.git(&["rev-parse", &record]));
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    assert_snapshot!(damage(&ledger), @"
    8 object.unreadable issues/88/00/88/0001.json
    ");
}

#[test]
fn an_object_with_the_bytes_of_another_is_found() {
    let ledger = Ledger::new();
    let id = |path: &str| ledger.git(&["rev-parse", &format!("{BRANCH}:{path}")]);
    let one = ledger.loose(&id(&format!(
        "{}/0001-issue-manager-to-prep-agent.xml",
        folder(87)
    )));
    let other = ledger.loose(&id(&format!(
        "{}/0001-issue-manager-to-prep-agent.xml",
        folder(88)
    )));
    fs::remove_file(&one).unwrap();
    fs::copy(other, one).unwrap();
    assert_snapshot!(damage(&ledger), @"
    1 object.unreadable issues/87/00/87/0001-issue-manager-to-prep-agent.xml
    ");
}

#[test]
fn an_incomplete_contract_committed_by_hand_is_found() {
    let ledger = Ledger::new();
    let other = Ledger::new();
    let whole = contract("issue-manager-to-prep-agent", 90);
    other.handoff(10, &["send", "-"], &whole);
    let start = whole.find("<summary>").unwrap();
    let end = whole.find("</summary>").unwrap() + "</summary>".len();
    let less = format!("{}{}", &whole[..start], &whole[end..]);
    // The record fits the incomplete contract: size and digest are its own.
    let digest = |text: &str| {
        use sha2::{Digest, Sha256};
        let hash = Sha256::digest(text.as_bytes());
        hash.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let fit = |text: String| {
        text.replace(&digest(&whole), &digest(&less)).replace(
            &format!("\"bytes\": {}", whole.len()),
            &format!("\"bytes\": {}", less.len()),
        )
    };
    let at = folder(90);
    let files = [
        (
            format!("{at}/0001-issue-manager-to-prep-agent.xml"),
            less.clone(),
        ),
        (
            format!("{at}/0001.json"),
            fit(other.file(&format!("{at}/0001.json"))),
        ),
        (
            format!("{at}/issue.json"),
            other.file(&format!("{at}/issue.json")),
        ),
        (other.entry("90.1"), fit(other.file(&other.entry("90.1")))),
    ];
    let edits: Vec<Edit<'_>> = files
        .iter()
        .map(|(path, text)| set(path, &**text))
        .collect();
    let (tip, made) = (ledger.tip(), other.tip());
    let id = ledger.write(&Commit {
        tree: ledger.edited(&tip.tree, &edits),
        parents: vec![tip.id],
        message: fit(made.message.clone()),
        ..made
    });
    ledger.set_branch(&id);
    assert_snapshot!(damage(&ledger), @"10 field.missing issues/90/00/90/0001-issue-manager-to-prep-agent.xml");
}

#[test]
fn an_issue_folder_under_a_wrong_fan_out_is_found() {
    let ledger = Ledger::new();
    let issue = ledger.file(&format!("{}/issue.json", folder(87)));
    ledger.add(&[set("issues/99/00/87/issue.json", issue)]);
    assert_snapshot!(damage(&ledger), @"10 step.none issues/99/00/87/issue.json");
}

#[test]
fn damage_in_one_issue_does_not_show_when_another_is_verified() {
    let ledger = Ledger::new();
    let path = format!("{}/0001.json", folder(87));
    let altered = replaced(
        &ledger,
        &path,
        "\"priority\": \"medium\"",
        "\"priority\": \"low\"",
    );
    ledger.add(&[set(&path, altered)]);
    ledger.assert_sound(&["88"]);
    assert_snapshot!(ledger.damage(&["87"]).join("\n"), @"
    10 record.altered issues/87/00/87/0001.json
    10 commit.message
    ");
}

#[test]
fn a_history_whose_beginning_was_cut_off_is_found() {
    let ledger = Ledger::new();
    let mut first = ledger.tip();
    first.parents.clear();
    ledger.set_branch(&ledger.write(&first));
    assert_snapshot!(ledger.damage(&[]).join("\n"), @"
    0 file.stray issues/87/00/87/0001-issue-manager-to-prep-agent.xml
    0 file.stray issues/87/00/87/0001.json
    0 file.stray issues/87/00/87/0002-prep-agent-to-implementer-agent.xml
    0 file.stray issues/87/00/87/0002.json
    0 file.stray issues/87/00/87/0003-implementer-agent-to-reviewer-agent.xml
    0 file.stray issues/87/00/87/0003.json
    0 file.stray issues/87/00/87/issue.json
    0 file.stray issues/88/00/88/0001-issue-manager-to-prep-agent.xml
    0 file.stray issues/88/00/88/0001.json
    0 file.stray issues/88/00/88/0002-prep-agent-to-implementer-agent.xml
    0 file.stray issues/88/00/88/0002.json
    0 file.stray issues/88/00/88/issue.json
    0 file.stray issues/89/00/89/0001-issue-manager-to-prep-agent.xml
    0 file.stray issues/89/00/89/0001.json
    0 file.stray issues/89/00/89/issue.json
    0 file.stray open/implementer-agent/ready.medium.issue-to-pr.20260304T050800000.-.88.2.json
    0 file.stray open/prep-agent/ready.medium.issue-to-pr.20260304T050900000.-.89.1.json
    0 file.stray open/reviewer-agent/ready.medium.issue-to-pr.20260304T050700000.-.87.3.json
    0 commit.author
    0 commit.message
    ");
}

#[test]
fn what_stands_beside_the_message_is_found() {
    let ledger = Ledger::new();
    let tip = ledger.tip();
    let stored = ledger.git(&["cat-file", "commit", &tip.id]);
    let stored = format!("{}\n", stored.trim_end());
    let rewritten = |text: String| {
        let mut child = std::process::Command::new("git")
            .args([
                "hash-object",
                "-t",
                "commit",
                "-w",
                "--stdin",
                "--literally",
            ])
            .current_dir(ledger.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let id = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        ledger.set_branch(id.trim());
        damage(&ledger)
    };
    assert_snapshot!(rewritten(stored.replacen("\n\n", "\nfoo bar\n\n", 1)), @"9 commit.header");
    assert_snapshot!(rewritten(format!("{stored}\0hidden\n")), @r"
    9 commit.header
    9 commit.message
    ");
}

#[test]
fn what_others_write_during_an_audit_is_no_damage() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(1)).success();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 2..40 {
                env.send(opening(number)).success();
            }
            over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) {
            for words in [&["verify"][..], &["doctor"], &["status"]] {
                let ran = env.handoff(words);
                assert!(!ran.shown.contains("rewritten"), "{}", ran.shown);
            }
        }
    });
    env.assert_sound();
}
