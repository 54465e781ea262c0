//! `doctor`: what is wrong, how bad it is, and what cures it.

use std::fs;

use test_support::TestEnvironment;
use test_support::contracts::opening;

#[test]
fn ten_wrongs_at_once_are_on_one_screen_each_with_its_cure() {
    let env = TestEnvironment::with_ledger();
    env.handoff(&["doctor"]).success().says("nothing is wrong");
    for issue in 1..=5 {
        env.send(opening(issue)).success();
        let id = format!("{issue}.1");
        let lease = if issue == 1 { "1m" } else { "8h" };
        env.handoff(&["claim", &id, "--as", "prep-agent", "--lease", lease])
            .success();
    }
    let prep = ["--as", "prep-agent", "--reason", "which table?"];
    env.handoff(&[&["fail", "2.1"], &prep[..]].concat())
        .success();
    env.handoff(&[&["block", "3.1"], &prep[..]].concat())
        .success();
    env.handoff(&["cancel", "4.1", "--as", "orchestrator", "--reason", "wrong"])
        .success();
    env.handoff(&["complete", "5.1", "--as", "prep-agent"])
        .success();
    env.wait_minutes(30);
    env.handoff(&["hooks", "install"]).success();
    let hook = env.repo().join(".git/hooks/pre-commit");
    if let Ok(text) = fs::read_to_string(&hook) {
        fs::write(&hook, text.replace("git-handoff", "git-handof")).unwrap();
    }
    let lead = ["--as", "orchestrator", "--reason", "a look at it"];
    env.handoff(&[&["pause", "--all"], &lead[..]].concat())
        .success();
    env.handoff(&[&["pause", "--agent", "fixer-agent"], &lead[..]].concat())
        .success();
    // A stray commit, and one that changes a file that no step writes.
    let tree = env.git(&env.repo(), &["rev-parse", "handoffs^{tree}"]);
    let args = ["commit-tree", "-p", "handoffs", "-m", "stray", tree.trim()];
    let stray = env.git(&env.repo(), &args);
    // The hook of this clone would refuse it.
    let unguarded = ["-c", "core.hooksPath=/dev/null", "update-ref"];
    let args = [&unguarded[..], &["refs/heads/handoffs", stray.trim()]].concat();
    env.git(&env.repo(), &args);
    let shown = env.handoff(&["doctor"]).exits(1).shown;
    for (wrong, cure) in [
        ("all work is paused", "git handoff resume --all"),
        (
            "work of fixer-agent is paused",
            "git handoff resume --agent fixer-agent",
        ),
        ("step.none", "git handoff verify"),
        ("ran out of time", "git handoff reap"),
        ("2.1 failed", "git handoff next 2"),
        ("3.1 blocked", "git handoff next 3"),
    ] {
        assert!(
            shown.contains(wrong) && shown.contains(cure),
            "{wrong}: {shown}"
        );
    }
    assert!(shown.lines().count() <= 40, "{shown}");
}
