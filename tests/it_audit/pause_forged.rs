//! What pauses an issue, or keeps it from being paused, without being the step that does.

use test_support::tamper::{Edit, Ledger, remove, set};

const FILE: &str = "paused/89.json";

/// A ledger whose newest commit paused issue 89, and the number of that commit.
fn paused() -> (Ledger, usize) {
    let ledger = Ledger::new();
    let pause = ["pause", "89", "--as", "orchestrator", "--reason", "closed"];
    ledger.handoff(20, &pause, "");
    let number = ledger.commits().len() - 1;
    ledger.assert_sound(&[]);
    (ledger, number)
}

/// What the audit finds once the newest commit has another tree.
fn forged(ledger: &Ledger, edits: &[Edit<'_>]) -> Vec<String> {
    let newest = ledger.commits().len() - 1;
    ledger.rewrite(newest, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, edits);
    });
    ledger.damage(&[])
}

#[test]
fn a_pause_without_its_file_hands_out_work() {
    let (ledger, at) = paused();
    let found = forged(&ledger, &[remove(FILE)]);
    assert_eq!(found, [format!("{at} file.missing {FILE}")]);
}

#[test]
fn a_file_that_lets_another_agent_go_on() {
    let (ledger, at) = paused();
    let file = ledger
        .file(FILE)
        .replace("\"closed\"", "\"closed\",\"except\":[\"prep-agent\"]");
    assert!(file.contains("except"), "{file}");
    let found = forged(&ledger, &[set(FILE, file)]);
    assert_eq!(found, [format!("{at} file.altered {FILE}")]);
}

#[test]
fn a_file_that_holds_back_an_issue_that_is_not_paused() {
    let (ledger, at) = paused();
    let file = ledger.file(FILE);
    let found = forged(&ledger, &[set("paused/87.json", file)]);
    assert_eq!(
        found,
        [
            format!("{at} step.many issues/89/00/89"),
            format!("{at} file.altered paused/87.json"),
        ]
    );
}

#[test]
fn a_pause_that_is_taken_away_without_a_resumption() {
    let (ledger, at) = paused();
    ledger.add(&[remove(FILE)]);
    let at = at + 1;
    assert_eq!(
        ledger.damage(&[]),
        [
            format!("{at} file.altered {FILE}"),
            format!("{at} commit.message"),
            format!("{at} file.missing {FILE}"),
        ]
    );
}
