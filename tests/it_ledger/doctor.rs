//! `doctor`: what is wrong, how bad it is, and what cures it.

use std::fs;

use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::remote;

#[test]
fn ten_wrongs_at_once_are_on_one_screen_each_with_its_cure() {
    let env = TestEnvironment::with_repository();
    let origin = remote::origin(&env);
    env.handoff(&["init", "--remote", "origin"]).success();
    env.handoff(&["doctor"]).success().says("nothing is wrong");
    for issue in 1..=6 {
        env.send(opening(issue)).success();
        let id = format!("{issue}.1");
        let lease = if issue == 1 { "1m" } else { "8h" };
        if issue < 6 {
            env.handoff(&["claim", &id, "--as", "prep-agent", "--lease", lease])
                .success();
        }
    }
    let prep = ["--as", "prep-agent", "--reason", "which table?"];
    let lead = ["--as", "orchestrator", "--reason", "a look at it"];
    let run = |verb: &[&str], why: &[&str]| env.handoff(&[verb, why].concat()).success();
    run(&["fail", "2.1"], &prep);
    run(&["block", "3.1"], &prep);
    run(&["cancel", "4.1"], &lead);
    for attempt in 1..=4 {
        if run(&["fail", "5.1"], &prep)
            .stdout
            .contains("5.1 issue-manager → prep-agent: dead")
        {
            break;
        }
        assert!(attempt < 4, "no attempt is the last");
        run(&["retry", "5.1"], &lead);
        env.wait_minutes(30);
        env.handoff(&["claim", "5.1", "--as", "prep-agent"])
            .success();
    }
    env.wait_minutes(30);
    env.handoff(&["hooks", "install"]).success();
    let hook = env.repo().join(".git/hooks/pre-commit");
    if let Ok(text) = fs::read_to_string(&hook) {
        fs::write(&hook, text.replace("git-handoff", "git-handof")).unwrap();
    }
    // The remote goes away, and a stray commit comes before what is recorded meanwhile.
    fs::rename(&origin, env.root().join("away")).unwrap();
    let tree = env.git(&env.repo(), &["rev-parse", "handoffs^{tree}"]);
    let args = ["commit-tree", "-p", "handoffs", "-m", "stray", tree.trim()];
    let stray = env.git(&env.repo(), &args);
    // The hook of this clone would refuse it.
    let unguarded = ["-c", "core.hooksPath=/dev/null", "update-ref"];
    let args = [&unguarded[..], &["refs/heads/handoffs", stray.trim()]].concat();
    env.git(&env.repo(), &args);
    for what in [
        &["pause", "6"][..],
        &["pause", "--all"],
        &["pause", "--agent", "fixer-agent"],
    ] {
        env.handoff(&[what, &lead].concat()).exits(8);
    }
    let wrongs = [
        ("all work is paused", "git handoff resume --all"),
        (
            "work of fixer-agent is paused",
            "git handoff resume --agent fixer-agent",
        ),
        ("issue 6 is paused", "git handoff reopen 6 "),
        ("step.none", "git handoff verify"),
        ("ran out", "git handoff reap"),
        ("2.1 failed", "git handoff next 2"),
        ("3.1 ", "git handoff next 3"),
        ("5.1 ", "git handoff next 5"),
        ("out of reach", "git handoff sync"),
        ("not on origin", "git handoff sync"),
    ];
    for command in ["doctor", "status"] {
        let shown = env.handoff(&[command]).shown;
        for (wrong, cure) in wrongs {
            assert!(
                shown.contains(wrong) && shown.contains(cure),
                "{command}: {wrong}: {shown}"
            );
        }
        assert!(shown.lines().count() <= 45, "{shown}");
    }
}
