//! Commits on the ledger's branch that are no steps: a person takes them back, and they are named from
//! then on.

use serde_json::Value;
use test_support::tamper::{BRANCH, Ledger, contract, folder, remove, set};

const WHY: [&str; 2] = ["--reason", "committed by hand"];

fn quarantined<'a>(commit: &'a str, by: &'a str) -> Vec<&'a str> {
    [&["--quarantine", commit, "--as", by], &WHY[..]].concat()
}

fn quarantine(ledger: &Ledger, minute: u32, commit: &str, more: &[&str]) {
    let args = [&["verify"], &quarantined(commit, "maintainer")[..], more].concat();
    ledger.handoff(minute, &args, "");
}

fn codes(answer: &Value) -> Vec<&str> {
    let findings = answer["data"]["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|one| one["code"].as_str().unwrap())
        .collect()
}

#[test]
fn a_person_takes_a_stray_commit_back_and_it_is_named_from_then_on() {
    let ledger = Ledger::new();
    let issue = format!("{}/issue.json", folder(89));
    let altered = ledger.file(&issue).replace("medium", "low");
    ledger.add(&[set("stray.txt", "1"), set(&issue, altered.as_str())]);
    let stray = ledger.tip().id;
    let before = ledger.commits()[9].tree.clone();
    // Work on other issues goes on, and every writer and reader is told.
    ledger.handoff(21, &["claim", "88.2", "--as", "implementer-agent"], "");
    let status = ledger.git(&["-c", "alias.s=!git-handoff status --offline", "s"]);
    assert!(status.contains("the ledger is damaged: "), "{status}");
    assert!(status.contains("`git handoff verify`"), "{status}");
    let (code, answer) = ledger.verify(&quarantined(&stray, "orchestrator"));
    assert_eq!(
        (code, &answer["error"]["code"]),
        (4, &"not_yours".into()),
        "{answer}"
    );
    let sound = ledger.tip().id;
    let (_, answer) = ledger.verify(&quarantined(&sound, "maintainer"));
    assert_eq!(answer["error"]["code"], "illegal_transition", "{answer}");
    quarantine(&ledger, 22, &stray[..10], &[]);
    let (code, answer) = ledger.verify(&[]);
    assert_eq!((code, codes(&answer)), (0, vec!["history.quarantined"]));
    let finding = &answer["data"]["findings"][0];
    assert_eq!(finding["commit"], stray);
    let text = finding["message"].as_str().unwrap();
    assert!(
        text.contains("maintainer") && text.contains("by hand"),
        "{text}"
    );
    let verdict = ledger.git(&["-c", "alias.v=!git-handoff verify", "v"]);
    assert!(
        verdict.contains("legal under the rules of its time, but what was taken back on record\n"),
        "{verdict}"
    );
    // The claim counts, and the stray content does not.
    let changed = ledger.git(&["diff", "--name-only", &before, "handoffs"]);
    assert!(
        !changed.contains("stray.txt") && !changed.contains("/89/"),
        "{changed}"
    );
    assert!(
        changed.contains("/88/") && changed.contains("ledger.json"),
        "{changed}"
    );
    let status = ledger.git(&["-c", "alias.s=!git-handoff status --offline", "s"]);
    assert!(!status.contains("damaged"), "{status}");
    let commits = ledger.commits().len();
    quarantine(&ledger, 23, &stray, &[]);
    assert_eq!(ledger.commits().len(), commits);
}

#[test]
fn what_stands_on_a_stray_commit_is_undone_only_if_the_person_says_so() {
    let ledger = Ledger::new();
    let issue = format!("{}/issue.json", folder(89));
    let altered = ledger.file(&issue).replace("medium", "low");
    ledger.add(&[set(&issue, altered.as_str())]);
    let stray = ledger.tip().id;
    let before = ledger.commits()[9].tree.clone();
    ledger.handoff(
        21,
        &["annotate", "89", "--as", "prep-agent", "-m", "a note"],
        "",
    );
    let later = ledger.tip().id;
    let (_, answer) = ledger.verify(&quarantined(&stray, "maintainer"));
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains(&later[..10]), "{answer}");
    quarantine(&ledger, 22, &stray, &["--with-later"]);
    let changed = ledger.git(&["diff", "--name-only", &before, "handoffs"]);
    assert_eq!(changed.trim(), "ledger.json");
    let (code, answer) = ledger.verify(&[]);
    assert_eq!((code, codes(&answer)), (0, vec!["history.quarantined"]));
}

#[test]
fn each_of_several_commits_is_taken_back_in_any_order_and_no_other_is_blamed() {
    let ledger = Ledger::new();
    let path = format!("{}/0001-issue-manager-to-prep-agent.xml", folder(88));
    let altered = ledger.file(&path).replacen("medium", "low", 1);
    ledger.add(&[set(&path, altered.as_str())]);
    let first = ledger.tip().id;
    let entry = format!("{}/issue.json", folder(89));
    ledger.add(&[remove(&entry)]);
    let second = ledger.tip().id;
    ledger.handoff(
        21,
        &["send", "-"],
        &contract("issue-manager-to-prep-agent", 95),
    );
    let blamed = |answer: &Value| {
        let findings = answer["data"]["findings"].as_array().unwrap().clone();
        let errors = findings
            .into_iter()
            .filter(|one| one["severity"] == "error");
        let commits = errors.map(|one| one["commit"].as_str().unwrap().to_owned());
        commits.collect::<std::collections::BTreeSet<_>>()
    };
    let both = [&first, &second].map(Clone::clone).into();
    assert_eq!(blamed(&ledger.verify(&[]).1), both);
    let by = ["--as", "maintainer", "--reason", "x"];
    let back = [&["--quarantine", &second[..]], &by[..]].concat();
    let (code, answer) = ledger.verify(&back);
    assert_eq!(code, 10);
    assert_eq!(blamed(&answer), [first.clone()].into(), "{answer:#}");
    let hint = answer["error"]["hint"].as_str().unwrap();
    assert!(hint.contains(&first[..10]), "{hint}");
    quarantine(&ledger, 24, &first, &[]);
    assert_eq!(ledger.verify(&[]).0, 0);
}

#[test]
fn what_later_steps_wrote_and_removed_is_not_removed_again() {
    let ledger = Ledger::new();
    let issue = format!("{}/issue.json", folder(89));
    let altered = ledger.file(&issue).replace("medium", "low");
    ledger.add(&[set(&issue, altered.as_str())]);
    let stray = ledger.tip().id;
    let cancel = |minute, what, by| {
        ledger.handoff(minute, &["cancel", what, "--as", by, "--reason", "no"], "");
        let awaited = ledger.git(&["ls-tree", "-r", "--name-only", "handoffs", "awaiting/"]);
        awaited.contains("89.1")
    };
    assert!(cancel(21, "89.1", "issue-manager"));
    assert!(!cancel(22, "89", "maintainer"));
    quarantine(&ledger, 23, &stray, &["--with-later"]);
    let (code, answer) = ledger.verify(&[]);
    assert_eq!((code, codes(&answer)), (0, vec!["history.quarantined"]));
}

#[test]
fn a_ledger_that_a_commit_destroyed_comes_back() {
    let ledger = Ledger::new();
    let before = ledger.tip().tree;
    ledger.add(&[remove("ledger.json"), set("a.txt", "1")]);
    let stray = ledger.tip().id;
    quarantine(&ledger, 22, &stray, &[]);
    let changed = ledger.git(&["diff", "--name-only", &before, "handoffs"]);
    assert_eq!(changed.trim(), "ledger.json");
    assert_eq!(ledger.verify(&[]).0, 0);
}

#[test]
fn nobody_forges_a_quarantine() {
    let quarantined = || {
        let ledger = Ledger::new();
        ledger.add(&[set("stray.txt", "1")]);
        let stray = ledger.tip().id;
        quarantine(&ledger, 22, &stray, &[]);
        (ledger, stray)
    };
    let (ledger, stray) = quarantined();
    let manifest = ledger.file("ledger.json");
    let sound = ledger.commits()[9].id.clone();
    for (from, to, code) in [
        (stray.as_str(), sound.as_str(), "step.illegal"),
        ("\"maintainer\"", "\"prep-agent\"", "step.illegal"),
        ("by hand", "by nobody", "commit.message"),
        ("05:22:00Z", "05:21:00Z", "step.none"),
    ] {
        let changed = manifest.replace(from, to);
        assert_ne!(changed, manifest, "{from}");
        let (ledger, _) = quarantined();
        ledger.rewrite(11, |_, commit| {
            commit.tree = ledger.edited(&commit.tree, &[set("ledger.json", changed.as_str())]);
        });
        let found = ledger.damage(&[]);
        // What is forged forgives nothing.
        for code in ["10 step.none", &format!("11 {code}")] {
            assert!(
                found.iter().any(|line| line.starts_with(code)),
                "{code}: {found:?}"
            );
        }
    }
}

#[test]
fn the_hint_names_the_commit_that_can_be_quarantined() {
    let ledger = Ledger::new();
    let issue = format!("{}/issue.json", folder(89));
    let altered = ledger.file(&issue).replace("medium", "low");
    ledger.add(&[set(&issue, altered.as_str()), set("ledger.md", "1")]);
    let stray = ledger.tip().id;
    ledger.handoff(21, &["claim", "88.2", "--as", "implementer-agent"], "");
    let innocent = ledger.tip().id;
    let (code, answer) = ledger.verify(&[]);
    assert_eq!(code, 10, "{answer}");
    let hint = answer["error"]["hint"].as_str().unwrap();
    assert!(hint.contains(&stray[..10]), "{hint}");
    assert!(!hint.contains(&innocent[..10]), "{hint}");
    // `doctor` says the same.
    let doctor = "alias.d=!git-handoff doctor --offline || true";
    let doctor = ledger.git(&["-c", doctor, "d"]);
    assert!(
        doctor.contains(&format!("--quarantine {}", &stray[..10])),
        "{doctor}"
    );
    let innocent = format!("--quarantine {}", &innocent[..10]);
    assert!(!doctor.contains(&innocent), "{doctor}");
}

#[test]
fn damage_that_was_taken_out_is_over() {
    let ledger = Ledger::new();
    let sound = ledger.tip().id;
    ledger.add(&[set("stray.txt", "1")]);
    assert_eq!(ledger.verify(&[]).0, 10);
    let status = || ledger.git(&["-c", "alias.s=!git-handoff status --offline", "s"]);
    assert!(status().contains("the ledger is damaged"), "{}", status());
    ledger.git(&["update-ref", BRANCH, &sound]);
    assert!(!status().contains("damaged"), "{}", status());
}
