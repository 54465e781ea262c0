//! Pauses of more than an issue, written by hand.

use test_support::tamper::{Ledger, set};

const PAUSE: [&str; 6] = [
    "pause",
    "--all",
    "--as",
    "orchestrator",
    "--reason",
    "closed",
];

#[test]
fn a_pause_is_a_step_that_only_who_leads_can_make() {
    let ledger = Ledger::new();
    ledger.handoff(20, &PAUSE, "");
    ledger.assert_sound(&[]);
    let paused = ledger.file("ledger.json");
    let resume = [
        "resume",
        "--all",
        "--as",
        "orchestrator",
        "--reason",
        "open",
    ];
    ledger.handoff(21, &resume, "");
    ledger.assert_sound(&[]);
    // Another reason than the message tells, another agent, and a claim in between.
    for (from, to, code) in [
        ("\"closed\"", "\"open\"", "commit.message"),
        ("\"orchestrator\"", "\"prep-agent\"", "step.illegal"),
        ("05:20:00Z", "05:19:00Z", "step.none"),
    ] {
        let ledger = Ledger::new();
        ledger.handoff(20, &PAUSE, "");
        let changed = paused.replace(from, to);
        ledger.rewrite(10, |_, commit| {
            commit.tree = ledger.edited(&commit.tree, &[set("ledger.json", changed.as_str())]);
        });
        let found = ledger.damage(&[]);
        assert!(
            found.iter().any(|line| line.contains(code)),
            "{code}: {found:?}"
        );
    }
}
