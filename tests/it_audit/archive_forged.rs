//! What takes issues out of the tip without being the step that archives them, and what brings them
//! back without being the step that does.

use serde_json::Value;
use test_support::tamper::{BRANCH, Edit, Ledger, contract, folder, remove, set};

/// A ledger in which issues 86 and 96 were given up and 89 is open. Its newest commit, which
/// archived 86 and 96, has the number given.
fn archived() -> (Ledger, usize) {
    let ledger = ended();
    ledger.handoff(30, &["archive", "--before", "2026-03-04T05:29:00Z"], "");
    let number = ledger.commits().len() - 1;
    ledger.assert_sound(&[]);
    (ledger, number)
}

/// The same before the issues were archived.
fn ended() -> Ledger {
    let ledger = Ledger::new();
    for (minute, issue) in [(20, 86), (24, 96)] {
        let open = contract("issue-manager-to-prep-agent", issue);
        ledger.handoff(minute, &["send", "-"], &open);
        let (id, key) = (format!("{issue}.1"), issue.to_string());
        let reject = ["reject", &id, "--as", "prep-agent", "--reason", "no"];
        ledger.handoff(minute + 1, &reject, "");
        let cancel = ["cancel", &key, "--as", "issue-manager", "--reason", "no"];
        ledger.handoff(minute + 2, &cancel, "");
    }
    ledger
}

fn index(issue: u32) -> String {
    format!("archived/{issue}/00.jsonl")
}

/// Makes the newest commit again with another tree.
fn forge(ledger: &Ledger, edits: &[Edit<'_>]) {
    let newest = ledger.commits().len() - 1;
    ledger.rewrite(newest, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, edits);
    });
}

/// The newest commit with another message.
fn say(ledger: &Ledger, from: &str, to: &str) {
    let newest = ledger.commits().len() - 1;
    ledger.rewrite(newest, |_, commit| {
        assert!(commit.message.contains(from), "{}", commit.message);
        commit.message = commit.message.replace(from, to);
    });
}

/// The line of an issue in the index, with another value in one member.
fn line(ledger: &Ledger, issue: u32, member: &str, value: Value) -> String {
    let line = ledger.file(&index(issue));
    let mut line: Value = serde_json::from_str(&line).unwrap();
    line[member] = value;
    format!("{}\n", serde_json::to_string(&line).unwrap())
}

/// The files of an issue's folder in a commit, as edits that put them there.
fn files(ledger: &Ledger, commit: &str, issue: u32) -> Vec<(String, String)> {
    let listed = ledger.git(&["ls-tree", "-r", "--name-only", commit, &folder(issue)]);
    let file = |path: &str| {
        let bytes = ledger.git_raw(
            &["cat-file", "blob", &format!("{commit}:{path}")],
            None,
            b"",
        );
        (path.to_owned(), String::from_utf8(bytes).unwrap())
    };
    listed.lines().map(file).collect()
}

#[test]
fn a_line_that_differs_from_the_issue_is_found() {
    for (member, value) in [
        ("title", Value::from("Something else")),
        ("status", "completed".into()),
        ("handoffs", 2.into()),
        ("protocol", "delegation".into()),
        ("updated_at", "2026-03-04T05:22:01Z".into()),
        ("commit", "0123456789012345678901234567890123456789".into()),
        ("tree", "0123456789012345678901234567890123456789".into()),
    ] {
        let (ledger, at) = archived();
        let other = line(&ledger, 86, member, value);
        forge(&ledger, &[set(&index(86), other)]);
        let found = ledger.damage(&["--accept-rewritten"]);
        let wanted = format!("{at} file.altered {}", index(86));
        assert_eq!(found[0], wanted, "{member}");
    }
}

#[test]
fn a_commit_that_archives_something_else_is_found() {
    let (ledger, at) = archived();
    // An issue whose folder stays, an issue without a line, and one that nobody archived.
    let parent = ledger.commits()[at - 1].id.clone();
    let kept = files(&ledger, &parent, 96);
    let kept: Vec<Edit<'_>> = kept
        .iter()
        .map(|(path, text)| set(path, text.as_str()))
        .collect();
    forge(&ledger, &kept);
    let found = ledger.damage(&["--accept-rewritten"]);
    assert_eq!(
        found[0],
        format!("{at} file.stray {}", index(96)),
        "{found:?}"
    );

    let (ledger, at) = archived();
    forge(&ledger, &[remove(&index(96))]);
    let found = ledger.damage(&["--accept-rewritten"]);
    assert_eq!(found, [format!("{at} file.missing {}", index(96))]);

    let (ledger, at) = archived();
    let line = line(&ledger, 86, "issue", "97".into());
    forge(&ledger, &[set("archived/97/00.jsonl", line)]);
    let found = ledger.damage(&["--accept-rewritten"]);
    assert_eq!(found, [format!("{at} file.stray archived/97/00.jsonl")]);

    // The folder alone, without a word in the index.
    let ledger = ended();
    let at = ledger.commits().len();
    let gone = files(&ledger, BRANCH, 86);
    let gone: Vec<Edit<'_>> = gone.iter().map(|(path, _)| remove(path)).collect();
    ledger.add(&gone);
    let found = ledger.damage(&[]);
    assert!(
        found[0].starts_with(&format!("{at} file.missing {}", folder(86))),
        "{found:?}"
    );
}

#[test]
fn an_issue_that_may_not_be_archived_is_found_in_the_archive() {
    // An open one, with the line that it would have.
    let (ledger, at) = archived();
    let parent = ledger.commits()[at - 1].id.clone();
    let tree = ledger.git(&["rev-parse", &format!("{parent}:{}", folder(89))]);
    let text = line(&ledger, 86, "issue", "89".into());
    let mut text: Value = serde_json::from_str(&text).unwrap();
    text["tree"] = tree.into();
    let mut edits = vec![set("archived/89/00.jsonl", format!("{text}\n"))];
    let gone = files(&ledger, BRANCH, 89);
    edits.extend(gone.iter().map(|(path, _)| remove(path)));
    forge(&ledger, &edits);
    let found = ledger.damage(&["--accept-rewritten"]);
    assert!(
        found[0].starts_with(&format!("{at} step.illegal ")),
        "{found:?}"
    );

    // One that ended after the moment that the message names, or that is dated after the step.
    for to in ["2026-03-04T05:26:00Z", "2026-03-04T05:40:00Z"] {
        let (ledger, at) = archived();
        say(&ledger, "2026-03-04T05:29:00Z", to);
        let found = ledger.damage(&["--accept-rewritten"]);
        let code = if to < "2026-03-04T05:27" {
            "step.illegal"
        } else {
            "commit.message"
        };
        assert!(
            found[0].starts_with(&format!("{at} {code}")),
            "{to}: {found:?}"
        );
    }
    let (ledger, at) = archived();
    say(&ledger, "Archive 2 issues", "Archive all issues");
    let found = ledger.damage(&["--accept-rewritten"]);
    assert_eq!(found, [format!("{at} commit.message")]);
}

#[test]
fn a_line_that_another_step_changes_is_found() {
    let (ledger, at) = archived();
    ledger.handoff(31, &["claim", "89.1", "--as", "prep-agent"], "");
    forge(&ledger, &[remove(&index(96))]);
    let found = ledger.damage(&["--accept-rewritten"]);
    assert!(
        found[0].starts_with(&format!("{} step.none", at + 1)),
        "{found:?}"
    );
    // Alone, too.
    let (ledger, at) = archived();
    ledger.add(&[remove(&index(96))]);
    let found = ledger.damage(&[]);
    assert!(
        found[0].starts_with(&format!("{} step.none", at + 1)),
        "{found:?}"
    );
}

#[test]
fn an_archived_issue_is_not_opened_a_second_time() {
    let ledger = ended();
    let open = contract("issue-manager-to-prep-agent", 86);
    // The step that opened it, after it was archived.
    let commits = ledger.commits();
    let first = commits
        .iter()
        .position(|c| c.message.contains("Handoff-Id: 86.1"))
        .unwrap();
    assert_eq!(
        ledger.file(&format!(
            "{}/0001-issue-manager-to-prep-agent.xml",
            folder(86)
        )),
        open
    );
    ledger.handoff(30, &["archive", "86"], "");
    let at = ledger.commits().len();
    let entry = ledger.entry_in(&commits[first].id, "86.1");
    let listed = ledger.git_raw(
        &[
            "cat-file",
            "blob",
            &format!("{}:{entry}", commits[first].id),
        ],
        None,
        b"",
    );
    let tip = ledger.tip();
    let again = files(&ledger, &commits[first].id, 86);
    let mut edits: Vec<Edit<'_>> = again
        .iter()
        .map(|(path, text)| set(path, text.as_str()))
        .collect();
    edits.push(set(&entry, listed));
    let mut commit = commits[first].clone();
    commit.tree = ledger.edited(&tip.tree, &edits);
    commit.parents = vec![tip.id];
    commit.committer = tip.committer.clone();
    let id = ledger.write(&commit);
    ledger.set_branch(&id);
    let found = ledger.damage(&[]);
    assert_eq!(
        found[0],
        format!("{at} step.illegal {}/issue.json", folder(86))
    );
}

#[test]
fn bringing_an_issue_back_changes_nothing_else() {
    let brought = || {
        let (ledger, at) = archived();
        let reopen = ["reopen", "86", "--as", "issue-manager", "--reason", "yes"];
        ledger.handoff(31, &reopen, "");
        // Only the step that brings it back.
        let back = ledger.commits()[at + 1].id.clone();
        ledger.set_branch(&back);
        ledger.assert_sound(&[]);
        (ledger, at + 1)
    };
    let (ledger, at) = brought();
    let altered = ledger.file(&format!("{}/issue.json", folder(86)));
    let altered = altered.replace("cancelled", "open");
    forge(
        &ledger,
        &[set(&format!("{}/issue.json", folder(86)), altered)],
    );
    let found = ledger.damage(&["--accept-rewritten"]);
    assert!(
        found[0].starts_with(&format!("{at} ")) && found[0].ends_with(&folder(86)),
        "{found:?}"
    );

    let (ledger, at) = brought();
    let before = ledger.commits()[at - 1].id.clone();
    let line = ledger.git_raw(
        &["cat-file", "blob", &format!("{before}:{}", index(86))],
        None,
        b"",
    );
    let kept = String::from_utf8(line).unwrap();
    // The line stays: then the archive is as it was, and the issue is there twice.
    forge(&ledger, &[set(&index(86), kept)]);
    let found = ledger.damage(&["--accept-rewritten"]);
    assert!(found[0].starts_with(&format!("{at} ")), "{found:?}");

    let (ledger, at) = brought();
    forge(&ledger, &[remove(&index(96))]);
    let found = ledger.damage(&["--accept-rewritten"]);
    assert_eq!(found[0], format!("{at} file.altered {}", index(96)));
}

#[cfg(unix)]
#[test]
fn where_keys_are_listed_any_of_them_archives_and_brings_back() {
    use crate::keys::{ed25519, findings, team, with_key};
    use test_support::contracts::opening;

    let env = team();
    with_key(&env, "manager", &["send", "-"], &opening(1)).success();
    let reject = ["reject", "1.1", "--as", "prep-agent", "--reason", "no"];
    with_key(&env, "prep", &reject, "").success();
    let cancel = ["cancel", "1", "--as", "issue-manager", "--reason", "no"];
    with_key(&env, "manager", &cancel, "").success();
    ed25519(&env, "stranger");
    let tip = env.tip();
    let archive = ["archive", "1", "--json"];
    let refused = with_key(&env, "stranger", &archive, "");
    let said = findings(refused, 4, "signature_refused");
    assert!(said.starts_with("signature.unknown"), "{said}");
    assert_eq!(env.tip(), tip);
    with_key(&env, "prep", &archive, "").success();
    env.assert_sound();
    // Bringing it back is signed as the step after it is.
    let reopen = ["reopen", "1", "--as", "issue-manager", "--reason", "yes"];
    with_key(&env, "manager", &reopen, "").success();
    env.assert_sound();
    // Without its signature, the step is found.
    let unsigned = env.git(&env.repo(), &["log", "-1", "--format=%T %P", "handoffs~1"]);
    let (tree, parent) = unsigned.trim().split_once(' ').unwrap();
    let message = env.git(&env.repo(), &["log", "-1", "--format=%B", "handoffs~1"]);
    let commit = ["commit-tree", tree, "-p", parent, "-m", message.trim()];
    let commit = env.git(&env.repo(), &commit);
    env.git(
        &env.repo(),
        &["update-ref", "refs/heads/handoffs", commit.trim()],
    );
    let found = env
        .handoff(&["verify", "--accept-rewritten"])
        .exits(10)
        .shown;
    assert!(found.contains("signature.missing"), "{found}");
}

#[test]
fn a_rule_that_plain_git_spoiled_archives_nothing() {
    for rule in ["0", "-1", "\"soon\"", "1e300", "[]"] {
        let ledger = ended();
        let path = "protocols/issue-to-pr/protocol.json";
        let mut definition: Value = serde_json::from_str(&ledger.file(path)).unwrap();
        let rule: Value = serde_json::from_str(rule).unwrap();
        definition["archive"] = serde_json::json!({ "after_seconds": rule });
        ledger.add(&[set(path, definition.to_string())]);
        let tip = ledger.tip().id;
        for args in [
            &["handoff", "archive"][..],
            &["handoff", "archive", "--before", "2026-03-04T05:29:00Z"],
        ] {
            let (exit, said) = ledger.git_any(args);
            assert_eq!(exit, 10, "{rule}: {said}");
            assert!(said.contains("after_seconds"), "{said}");
        }
        assert_eq!(ledger.tip().id, tip, "nothing was written");
        assert!(!ledger.damage(&[]).is_empty(), "{rule}");
    }
}
