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
        ("issue 6 is paused", "git handoff resume 6 "),
        ("step.none", "git handoff verify"),
        ("ran out", "git handoff reap"),
        ("2.1 failed", "git handoff retry 2.1 --as maintainer"),
        ("3.1 ", "git handoff answer 3.1 ANSWER"),
        ("5.1 ", "git handoff retry 5.1 --as maintainer"),
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

#[test]
fn ten_other_wrongs_are_named_each_with_a_cure_that_runs() {
    let env = TestEnvironment::with_repository();
    let origin = remote::origin(&env);
    env.handoff(&["init", "--remote", "origin"]).success();
    env.handoff(&["hooks", "install"]).success();
    #[cfg(feature = "agents")]
    env.handoff(&["agents", "install", "claude-code"]).success();
    for issue in 1..=4 {
        env.send(opening(issue)).success();
    }
    let sent = env.tip();
    let prep = ["--as", "prep-agent"];
    let run = |args: &[&str], more: &[&str]| env.handoff(&[args, more].concat());
    // A lease that ran out, a question, work that is dead.
    run(&["claim", "1.1", "--lease", "1m"], &prep).success();
    run(&["claim", "2.1"], &prep).success();
    run(&["block", "2.1", "--reason", "which table?"], &prep).success();
    let lead = ["--as", "orchestrator", "--reason", "again"];
    for _ in 0..5 {
        run(&["claim", "3.1"], &prep).success();
        run(&["fail", "3.1", "--message", "no disk"], &prep).success();
        if env.data(&["show", "3.1"])["handoff"]["state"] == "dead" {
            break;
        }
        run(&["retry", "3.1"], &lead).success();
        env.wait_minutes(30);
    }
    // A clock three hours ahead, and a step that is only here.
    env.wait_minutes(180);
    run(&["claim", "4.1"], &prep).success();
    env.wait_minutes(-180);
    run(&["annotate", "4", "--note", "n", "--offline"], &prep);
    // The remote is reset, a hook is gone, the settings of a harness are of nobody.
    let bare = ["--git-dir", origin.to_str().unwrap(), "update-ref"];
    let reset = ["refs/heads/handoffs", &sent];
    env.git(&env.repo(), &[&bare[..], &reset].concat());
    fs::remove_file(env.repo().join(".git/hooks/pre-push")).unwrap();
    // A stray commit, and a file of an object that is empty.
    let tree = env.git(&env.repo(), &["rev-parse", "handoffs^{tree}"]);
    let args = ["commit-tree", "-p", "handoffs", "-m", "stray", tree.trim()];
    let stray = env.git(&env.repo(), &args);
    let unguarded = ["-c", "core.hooksPath=/dev/null", "update-ref"];
    let args = [&unguarded[..], &["refs/heads/handoffs", stray.trim()]].concat();
    env.git(&env.repo(), &args);
    let listed = env.git(&env.repo(), &["ls-tree", "-r", "handoffs", "issues"]);
    let contract = listed.lines().find(|line| line.contains("0001-")).unwrap();
    let id = contract.split_whitespace().nth(2).unwrap();
    let object = env
        .repo()
        .join(".git/objects")
        .join(&id[..2])
        .join(&id[2..]);
    fs::remove_file(&object).unwrap();
    fs::write(&object, "").unwrap();

    let shown = env.handoff(&["doctor"]).exits(1).shown;
    let wrongs = [
        ("1 handoff ran out of time", "`git handoff reap`"),
        (
            "2.1 blocked",
            "`git handoff answer 2.1 ANSWER --as orchestrator`",
        ),
        (
            "3.1 dead",
            "`git handoff retry 3.1 --as maintainer --reason WHY`",
        ),
        ("s after this machine's clock", "`git handoff log 4`"),
        ("not on origin", "`git handoff sync`"),
        ("the remote's branch was rewritten", "`git handoff fetch`"),
        ("hook.missing", "`git handoff hooks install pre-push`"),
        #[cfg(feature = "agents")]
        ("agents.", "`git handoff agents doctor`"),
        ("step.none", "`git handoff verify --quarantine "),
        ("object.unreadable", "`git handoff fetch --repair`"),
    ];
    for (wrong, cure) in wrongs {
        assert!(shown.contains(wrong), "{wrong}: {shown}");
        assert!(shown.contains(cure), "{cure}: {shown}");
    }
    assert!(shown.lines().count() <= 45, "{shown}");
    let ran = |cure: &str, exit: i32| {
        let args: Vec<&str> = cure.split(' ').skip(2).collect();
        env.handoff(&args).exits(exit)
    };
    ran("git handoff fetch", 10).says("restores this clone's copy");
    ran("git handoff fetch --repair", 0);
    // The repair does not hide that; what that fetch printed puts the steps back.
    ran("git handoff fetch", 10).says("restores this clone's copy");
    let push = ["push", "-q", "origin", "handoffs~1:handoffs"];
    env.git(&env.repo(), &push);
    ran("git handoff hooks install pre-push", 0);
    ran("git handoff sync", 5).says("is not a ledger step");
    ran("git handoff reap", 0);
    ran("git handoff next 2", 0);
    ran("git handoff next 3", 0);
    ran("git handoff log 4", 0);
    let shown = env.handoff(&["doctor"]).shown;
    for gone in [
        "object.",
        "rewritten",
        "hook.missing",
        "nobody recorded",
        "not on",
    ] {
        assert!(!shown.contains(gone), "{gone}: {shown}");
    }
}
