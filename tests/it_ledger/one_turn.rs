//! Whose turn it is: every screen names the same agent and the same command, whatever happened.

use serde_json::Value;
use test_support::team::run;
use test_support::time::own;
use test_support::{Ran, TestEnvironment};

const WORK: &str = "send --issue 7 --to reviewer --as coder --worker c --set branch=csv \
                    --set summary=Rows";
const DONE: &str = "send --issue 7 --to end --as reviewer --set summary=Right";
/// What an agent begins with: the core alone has no `prime`.
const BEGIN: &str = if cfg!(feature = "agents") {
    "git handoff prime --as reviewer"
} else {
    "git handoff inbox --as reviewer"
};
const CLAIM: &str = "claim 7.1 --as reviewer";
const FAIL: &str = "fail 7.1 --as reviewer --code NET --message gone";

/// A ledger of the `review` protocol, in which a merge takes a person's approval if it is `strict`.
fn ledger(strict: bool) -> TestEnvironment {
    let env = own("review", |definition| {
        definition["requirements"]["approved-by-person"]["merge"] = strict.into();
    });
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    let commit = ["commit", "-q", "--allow-empty", "-m", "Work"];
    env.git(&env.repo(), &commit);
    env
}

/// Runs commands, which succeed; `WAIT N` lets that many minutes pass.
fn play(env: &TestEnvironment, steps: &[&str]) {
    for step in steps {
        match step.strip_prefix("WAIT ") {
            Some(minutes) => env.wait_minutes(minutes.parse().unwrap()),
            None => {
                run(env, step).success();
            }
        }
    }
}

/// Runs a command, whatever its exit code.
fn shows(env: &TestEnvironment, line: &str) -> Ran {
    env.handoff(&line.split(' ').collect::<Vec<_>>())
}

/// Asserts that each screen says that it is an agent's turn, and names the command for it.
#[track_caller]
fn assert_turn(env: &TestEnvironment, what: &str, (agent, command): (&str, &str)) {
    let next = env.data(&["next", "7"]);
    let said = (&next["agent"], &next["commands"][0]);
    assert_eq!(
        said,
        (&Value::from(agent), &Value::from(command)),
        "{what}: next: {next}"
    );
    let says = |screen: &[&str], marks: &[String]| {
        let shown = env.handoff(screen).shown;
        let any = marks.iter().any(|mark| shown.contains(mark));
        assert!(any, "{what}: {marks:?}: {shown}");
    };
    let line = |label: &str| format!("{label}{command}\n");
    let whose = [line(&format!("next, for {agent}: ")), line("    next: ")];
    says(&["status", "7"], &whose);
    says(&["show", "7.1"], &whose[..1]);
    let hint = format!("hint: {agent}'s turn");
    says(&["gate", "7"], &[hint]);
    says(&["gate", "7"], &[format!("`{command}`")]);
    // What is open without needing somebody is listed with its state alone.
    let is_plain = next["attention"].as_array().unwrap().is_empty();
    let row = ["7.1  pending", "7.1  in_progress", "you hold 7.1"].map(str::to_owned);
    let needed = [
        line("    next: "),
        format!("`{}", command.split(" --reason").next().unwrap()),
    ];
    for screen in [&[][..], &["--as", agent], &["inbox", "--as", agent]] {
        if next["handoff"].is_null() && !screen.is_empty() {
            continue;
        }
        let marks = if is_plain { &row[..] } else { &needed[..] };
        says(screen, marks);
    }
}

#[test]
fn every_screen_names_the_same_agent_and_command() {
    let fail = [WORK, CLAIM, FAIL];
    let can_retry = format!("{FAIL} --recoverable");
    let retry = "retry 7.1 --as coder --reason again";
    let mut dead = vec![WORK];
    for _ in 0..3 {
        dead.extend([CLAIM, &can_retry, retry]);
    }
    dead.extend([CLAIM, &can_retry]);
    let cases: [(&str, &[&str], (&str, &str)); 15] = [
        (
            "pending",
            &[WORK],
            ("reviewer", "git handoff claim 7.1 --as reviewer"),
        ),
        ("claimed", &[WORK, CLAIM], ("reviewer", BEGIN)),
        (
            "blocked",
            &[WORK, CLAIM, "block 7.1 --as reviewer --reason which"],
            (
                "maintainer",
                "git handoff answer 7.1 ANSWER --as maintainer",
            ),
        ),
        (
            "failed, may be retried",
            &[WORK, CLAIM, &can_retry],
            ("coder", "git handoff retry 7.1 --as coder --reason WHY"),
        ),
        (
            "failed, up to a person",
            &fail,
            (
                "maintainer",
                "git handoff retry 7.1 --as maintainer --reason WHY",
            ),
        ),
        (
            "dead",
            &dead,
            (
                "maintainer",
                "git handoff retry 7.1 --as maintainer --reason WHY",
            ),
        ),
        (
            "rejected by its receiver",
            &[WORK, "reject 7.1 --as reviewer --reason no"],
            (
                "coder",
                "git handoff new --issue 7 --from coder --to reviewer",
            ),
        ),
        (
            "rejected by a person",
            &[WORK, "reject 7.1 --as maintainer --reason no"],
            (
                "coder",
                "git handoff new --issue 7 --from coder --to reviewer",
            ),
        ),
        (
            "cancelled",
            &[WORK, "cancel 7.1 --as coder --reason no"],
            (
                "coder",
                "git handoff new --issue 7 --from coder --to reviewer",
            ),
        ),
        (
            "the lease ran out",
            &[WORK, CLAIM, "WAIT 300"],
            ("coder", "git handoff retry 7.1 --as coder --reason WHY"),
        ),
        (
            "the issue is paused",
            &[WORK, "pause 7 --as maintainer --reason later"],
            (
                "maintainer",
                "git handoff resume 7 --as maintainer --reason 'the work goes on'",
            ),
        ),
        (
            "everything is paused",
            &[WORK, "pause --all --as maintainer --reason later"],
            (
                "maintainer",
                "git handoff resume --all --as maintainer --reason WHY",
            ),
        ),
        (
            "the agent is paused",
            &[
                WORK,
                "pause --agent reviewer --as maintainer --reason later",
            ],
            (
                "maintainer",
                "git handoff resume --agent reviewer --as maintainer --reason WHY",
            ),
        ),
        (
            "the protocol is paused",
            &[
                WORK,
                "pause --protocol review --as maintainer --reason later",
            ],
            (
                "maintainer",
                "git handoff resume --protocol review --as maintainer --reason WHY",
            ),
        ),
        (
            "after another issue",
            &[
                WORK,
                "send --issue 8 --to coder --as maintainer --set summary=Rows --set findings.0.text=x",
                "set 7 after=8 --as maintainer --reason later",
            ],
            ("maintainer", "git handoff next 8"),
        ),
    ];
    for (what, steps, turn) in cases {
        let env = ledger(false);
        play(&env, steps);
        assert_turn(&env, what, turn);
        if what.ends_with("paused") {
            let resumed = "git handoff claim 7.1 --as reviewer";
            play(
                &env,
                &[&turn
                    .1
                    .replace("git handoff ", "")
                    .replace("'the work goes on'", "on")
                    .replace("WHY", "on")],
            );
            assert_turn(&env, &format!("{what}, no longer"), ("reviewer", resumed));
        }
        env.assert_sound();
    }
}

#[test]
fn a_completed_issue_needs_a_person_until_they_approved_it() {
    let env = ledger(true);
    play(&env, &[WORK, CLAIM, DONE]);
    let approve = "git handoff approve 7.2 --as maintainer";
    assert_turn(&env, "it lacks an approval", ("maintainer", approve));
    let reopen = "git handoff reopen 7 --as maintainer --reason WHY";
    let reject = "reject 7.2 --as maintainer --worker m --reason untested";
    run(&env, reject).success().says(reopen);
    assert_turn(&env, "rejected after its end", ("maintainer", reopen));
    run(&env, "approve 7.2 --as maintainer --worker m")
        .success()
        .says("the merge is left, once `git handoff gate 7` exits 0");
    for screen in [&["next", "7"][..], &["status", "7"], &["show", "7.2"]] {
        let shown = env.handoff(screen).success().shown;
        assert!(
            !shown.contains("--as coder") && !shown.contains("approve 7.2"),
            "{shown}"
        );
    }
    env.handoff(&["gate", "7"]).success();
    let inbox = run(&env, "inbox --as maintainer").success();
    assert!(!inbox.shown.contains("reopen"), "{}", inbox.shown);
    // What is taken up again is no longer told.
    play(&env, &["reject 7.2 --as maintainer --worker m --reason no"]);
    play(&env, &["reopen 7 --as maintainer --reason no"]);
    let inbox = run(&env, "inbox --as maintainer").success();
    assert!(!inbox.shown.contains("reopen"), "{}", inbox.shown);
    env.assert_sound();
}

/// A clone whose own worker sent the work is told to approve as another one, and of the newest alone.
#[test]
fn who_sent_the_work_approves_as_another_worker() {
    let env = ledger(true);
    let work = WORK.replace(" --worker c", "");
    play(&env, &[&work, CLAIM, DONE]);
    let approve = |id: &str| format!("git handoff approve {id} --as maintainer --worker NAME");
    assert_turn(&env, "its own", ("maintainer", &approve("7.2")));
    let why = "this worker sent 7.1, so another one approves";
    for screen in ["next 7", "status 7", "gate 7", "inbox --as maintainer"] {
        env.handoff(&screen.split(' ').collect::<Vec<_>>())
            .says(why);
    }
    let gate = ["gate", "7", "--require", "approved-by-person"];
    env.handoff(&gate).exits(1).says(&approve("7.2"));
    run(&env, "status 7").success().says(&approve("7.2"));
    let because = "--as maintainer --reason no";
    play(
        &env,
        &[
            &format!("reject 7.2 {because}"),
            &format!("reopen 7 {because}"),
        ],
    );
    std::fs::write(env.repo().join("rows.csv"), "1").unwrap();
    env.git(&env.repo(), &["add", "."]);
    env.git(&env.repo(), &["commit", "-q", "-m", "More"]);
    let again = [&work, "claim 7.3 --as reviewer"];
    play(&env, &again);
    let done = run(&env, &DONE.replace("Right", "Good")).success();
    done.says(&format!("next, for maintainer: {}", approve("7.4")));
    run(&env, "approve 7.4 --as maintainer")
        .success()
        .says("does not count");
    assert_turn(&env, "it does not count", ("maintainer", &approve("7.4")));
    let inbox = env.data(&["inbox", "--as", "maintainer"]);
    let waiting: Vec<&Value> = inbox["attention"].as_array().unwrap().iter().collect();
    assert_eq!(waiting.len(), 1, "{inbox}");
    assert_eq!(waiting[0]["next"], *approve("7.4"));
    // What shows the code has a line of its own, which is never cut.
    let read = waiting[0]["read"].as_str().unwrap();
    assert!(read.starts_with("git diff "), "{read}");
    let line = "\n    read it first: git diff [commit] [commit]\n    next: ";
    run(&env, "inbox --as maintainer").success().says(line);
    play(&env, &["approve 7.4 --as maintainer --worker robin"]);
    run(&env, "gate 7").success();
    env.assert_sound();
}

/// After an issue's end, its merge is left, as its receipt says, until the base has the work.
#[test]
fn every_screen_says_that_the_merge_is_left_until_it_is_made() {
    for squash in [false, true] {
        let env = ledger(false);
        let file = env.repo().join("rows.csv");
        std::fs::write(file, "1").unwrap();
        env.git(&env.repo(), &["add", "."]);
        env.git(&env.repo(), &["commit", "-q", "-m", "Rows"]);
        play(&env, &[WORK, CLAIM]);
        let done = run(&env, DONE).success();
        done.says("the merge is left, once `git handoff gate 7` exits 0");
        let screens = [
            &["next", "7"][..],
            &["status", "7"],
            &["status"],
            &["--as", "reviewer"],
            &[],
            #[cfg(feature = "agents")]
            &["prime", "--as", "reviewer"],
        ];
        let tells = |tells: bool| {
            for screen in screens {
                let shown = env.handoff(screen).success().shown;
                let told = ["merge", "is left", "git handoff gate 7"];
                let told = told.iter().all(|one| shown.contains(one));
                assert_eq!(told, tells, "{squash}, {screen:?}: {shown}");
                let ends = ["nothing is open", "for new work", "you may stop"];
                let ends = ends.iter().any(|one| shown.contains(one));
                assert!(!(tells && ends), "{squash}, {screen:?}: {shown}");
            }
        };
        tells(true);
        run(&env, "gate 7").success().says("next: merge csv at ");
        env.git(&env.repo(), &["switch", "-q", "main"]);
        tells(true);
        if squash {
            env.git(&env.repo(), &["merge", "-q", "--squash", "csv"]);
            env.git(&env.repo(), &["commit", "-q", "-m", "Rows"]);
        } else {
            env.git(&env.repo(), &["merge", "-q", "--no-ff", "csv"]);
        }
        tells(false);
        run(&env, "gate 7").success().says("main has it\n");
        env.git(&env.repo(), &["switch", "-q", "csv"]);
        tells(false);
        env.assert_sound();
    }
}

/// Commits a file on the branch that is checked out.
fn commit(env: &TestEnvironment, name: &str) {
    std::fs::write(env.repo().join(name), "1").unwrap();
    env.git(&env.repo(), &["add", "."]);
    env.git(&env.repo(), &["commit", "-q", "-m", name]);
}

/// A branch that was rebased after its approval brings the approved change with its merge.
#[test]
fn a_merge_of_the_rebased_branch_is_the_approved_change() {
    let env = ledger(false);
    let git = |args: &[&str]| env.git(&env.repo(), args);
    commit(&env, "rows.csv");
    commit(&env, "more.csv");
    play(&env, &[WORK, CLAIM, DONE]);
    git(&["switch", "-q", "main"]);
    commit(&env, "other.txt");
    git(&["rebase", "-q", "main", "csv"]);
    git(&["switch", "-q", "main"]);
    let rebased = git(&["rev-parse", "csv"]);
    let next = format!("next: merge csv at {} into main", &rebased[..10]);
    let gate = run(&env, "gate 7").success();
    assert!(gate.stderr.contains(&next), "{next}: {}", gate.stderr);
    git(&["merge", "-q", "--no-ff", "csv"]);
    run(&env, "next 7").success();
    assert!(!shows(&env, "status 7").shown.contains("is left"));
    git(&["branch", "-q", "-D", "csv"]);
    run(&env, "gate 7").success().says("it is merged into main");
    // Another change beside it is none that was approved.
    git(&["reset", "-q", "--hard", "HEAD^2"]);
    git(&["switch", "-q", "-c", "csv"]);
    git(&["switch", "-q", "main"]);
    git(&["reset", "-q", "--hard", "HEAD~2"]);
    git(&["merge", "-q", "--no-ff", "--no-commit", "csv"]);
    commit(&env, "beside.txt");
    shows(&env, "status 7").says("is left");
}

/// Where the base is shared, its merge is left until `origin` has it.
#[test]
fn a_merge_that_is_not_pushed_is_left_to_be_pushed() {
    let env = ledger(false);
    let git = |args: &[&str]| env.git(&env.repo(), args);
    test_support::remote::origin(&env);
    git(&["push", "-q", "origin", "main"]);
    commit(&env, "rows.csv");
    play(&env, &[WORK, CLAIM, DONE]);
    git(&["switch", "-q", "main"]);
    git(&["merge", "-q", "--no-ff", "csv"]);
    run(&env, "gate 7")
        .success()
        .says("next: `git push origin main`: main has it here alone\n");
    run(&env, "status 7")
        .success()
        .says("the merge is left to be pushed: `git push origin main`");
    git(&["push", "-q", "origin", "main"]);
    run(&env, "gate 7").success().says("main has it\n");
}

/// Who asks for another commit than the approved one is told which that is.
#[test]
fn the_gate_names_the_commit_that_was_approved() {
    let env = ledger(false);
    commit(&env, "rows.csv");
    play(&env, &[WORK, CLAIM, DONE]);
    let head = env.git(&env.repo(), &["rev-parse", "HEAD"]);
    let head = head.trim();
    shows(&env, "gate 7 --head main")
        .exits(1)
        .says("7.2 is about csv at another one: `git handoff gate 7 --head [commit]`; ");
    run(&env, &format!("gate 7 --head {head}")).success();
}

/// What was approved before an issue was reopened is not approved.
#[test]
fn a_reopened_issue_takes_a_new_approval() {
    let env = ledger(false);
    play(&env, &[WORK, CLAIM, DONE]);
    run(&env, "gate 7").success();
    play(&env, &["reopen 7 --as maintainer --reason untested"]);
    let closed = shows(&env, "gate 7").exits(1);
    closed
        .says("reopened by maintainer: untested")
        .says("reviewer's turn");
    play(&env, &[DONE]);
    run(&env, "gate 7").success();
    env.assert_sound();
}

/// What was completed long ago is told where its branch is checked out.
#[test]
fn an_old_merge_that_is_left_is_told_on_its_branch() {
    let env = ledger(false);
    std::fs::write(env.repo().join("rows.csv"), "1").unwrap();
    env.git(&env.repo(), &["add", "."]);
    env.git(&env.repo(), &["commit", "-q", "-m", "Rows"]);
    play(&env, &[WORK, CLAIM, DONE]);
    for note in 0..33 {
        run(&env, &format!("annotate 7 --note n{note} --as maintainer"));
    }
    for args in [&[][..], &["--as", "reviewer"]] {
        let here = env.handoff(args).success();
        here.says("the merge is left").says("git handoff gate 7\n");
    }
}

/// Who has no finding left, because a person overruled them, is to approve.
#[test]
fn after_an_overruled_finding_the_approval_is_named_first() {
    let env = ledger(false);
    let finds = "send --issue 7 --to coder --as reviewer --set summary=Rows \
                 --set findings.0.severity=blocking --set findings.0.text=empty";
    play(&env, &[WORK, CLAIM, finds]);
    let approve = "git handoff send --issue 7 --to end --as reviewer";
    let again = "git handoff new --issue 7 --from reviewer --to coder";
    let reject = run(&env, "reject 7.2 --as maintainer --reason wanted").success();
    reject.says(&format!("next, for reviewer: {approve}\n  or: {again}"));
    assert_turn(&env, "overruled", ("reviewer", approve));
    run(&env, "next 7")
        .success()
        .says(&format!("next: {approve}\n  or: {again}"));
    play(&env, &[DONE]);
    env.handoff(&["gate", "7"]).success();
}

/// At a limit, a claim offers no contract that is refused, and the limit is raised before a retry.
#[test]
fn at_a_limit_no_contract_is_offered_and_the_limit_is_raised_first() {
    let env = own("review", |definition| {
        definition["limits"]["handoffs"] = 2.into();
    });
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Work"],
    );
    let finds = "send --issue 7 --to coder --as reviewer --set summary=Rows \
                 --set findings.0.severity=blocking --set findings.0.text=empty";
    play(&env, &[WORK, CLAIM, finds]);
    let raise = "git handoff protocol set review limits.handoffs NUMBER --as maintainer";
    let fail = "git handoff fail 7.2 --as coder --code CODE --message WHY";
    let claimed = run(&env, "claim 7.2 --as coder").success();
    let sends = ["git handoff new", "git handoff send"];
    let offers = sends.iter().any(|one| claimed.shown.contains(one));
    assert!(!offers, "{}", claimed.shown);
    claimed
        .says("nothing can be sent; the issue has reached a limit: ")
        .says(&format!("next: {fail}\n  or: {raise}"));
    play(&env, &["fail 7.2 --as coder --code NET --message gone"]);
    assert_turn(&env, "failed at a limit", ("maintainer", raise));
    let retry = "or: git handoff retry 7.2 --as maintainer";
    env.handoff(&["next", "7"]).says(retry);
}

/// Who failed is not told to retry what a person decides about.
#[test]
fn who_sends_from_failed_work_is_told_who_decides() {
    let env = ledger(false);
    play(&env, &[WORK, CLAIM, FAIL]);
    let send: Vec<&str> = DONE.split(' ').collect();
    let refused = env.handoff(&send).exits(4);
    assert!(
        !refused.shown.contains("git handoff retry"),
        "{}",
        refused.shown
    );
    refused.says("hint: `git handoff next 7` says who can give it another attempt; then reviewer");
}

/// What was skipped for a reason that the review accepts is not said to be resolved.
#[test]
fn a_skipped_finding_is_dropped_not_resolved() {
    let env = ledger(false);
    let finds = "send --issue 7 --to coder --as reviewer --set summary=Rows \
                 --set findings.0.severity=blocking --set findings.0.text=empty";
    let skips = format!(
        "{WORK} --set findings.0.finding=F1 --set findings.0.skipped=true --set findings.0.text=wanted"
    );
    let steps = [
        WORK,
        CLAIM,
        finds,
        "claim 7.2 --as coder --worker c",
        &skips,
    ];
    play(&env, &steps);
    play(&env, &["claim 7.3 --as reviewer"]);
    for shown in [run(&env, DONE), run(&env, "status 7")] {
        let dropped = "F1 (blocking): empty; skipped by 7.3: wanted; dropped by 7.4\n";
        shown.success().says(dropped);
    }
}

/// Before the reviewer's approval, the gate asks no person for theirs.
#[test]
fn the_gate_names_the_reviewer_while_their_approval_is_missing_too() {
    let env = ledger(true);
    let steps: [&[&str]; 2] = [&[WORK], &[CLAIM]];
    for (steps, command) in steps
        .into_iter()
        .zip([CLAIM, &BEGIN["git handoff ".len()..]])
    {
        play(&env, steps);
        let closed = env.handoff(&["gate", "7"]).exits(1);
        let closed = closed.says("hint: reviewer's turn with 7.1");
        let closed = closed.says(&format!("`git handoff {command}`"));
        assert!(!closed.shown.contains("approve 7.1"), "{}", closed.shown);
    }
}

/// A merge without a step is told wherever the issue's turn is.
#[test]
fn the_gate_tells_of_a_merge_that_no_step_recorded() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    std::fs::write(env.repo().join("rows.csv"), "1").unwrap();
    env.git(&env.repo(), &["add", "."]);
    env.git(&env.repo(), &["commit", "-q", "-m", "Rows"]);
    let commit = env.git(&env.repo(), &["rev-parse", "HEAD"]);
    let work = format!("{WORK} --set commits={}", commit.trim());
    play(&env, &[&work]);
    env.git(&env.repo(), &["switch", "-q", "main"]);
    env.git(&env.repo(), &["merge", "-q", "--no-ff", "csv"]);
    let told = "is merged into main, and no step of issue 7 says so";
    for screen in ["status 7", "next 7"] {
        run(&env, screen).success().says(told);
    }
    env.handoff(&["gate", "7"]).exits(1).says(told);
}

/// Commits after the approved one are their agent's to hand on, not only the person's to approve.
#[test]
fn commits_after_the_approved_one_are_handed_on_by_their_agent() {
    let env = ledger(true);
    play(&env, &[WORK, CLAIM, DONE]);
    play(&env, &["approve 7.2 --as maintainer --worker m"]);
    let new = "coder hands that on, once it is open again (`git handoff reopen 7 --as maintainer \
               --reason WHY`): `git handoff new --issue 7 --from coder --to reviewer`";
    for screen in ["next 7", "status 7"] {
        let before = run(&env, screen).success();
        assert!(!before.shown.contains("hands that on"), "{}", before.shown);
    }
    std::fs::write(env.repo().join("rows.csv"), "1").unwrap();
    env.git(&env.repo(), &["add", "."]);
    env.git(&env.repo(), &["commit", "-q", "-m", "More"]);
    for screen in ["next 7", "status 7"] {
        run(&env, screen).success().says(new);
    }
    // No person's approval makes up for the reviewer's.
    let closed = env.handoff(&["gate", "7"]).exits(1);
    let closed = closed.says(&format!(
        "hint: csv is at [commit], after 7.1 at [commit], which was approved: {new}"
    ));
    assert!(
        !closed.shown.contains("git handoff approve"),
        "{}",
        closed.shown
    );
    play(&env, &["reopen 7 --as maintainer --reason more"]);
    play(&env, &[WORK, "WAIT 1"]);
    let sent = run(&env, "next 7").success();
    assert!(!sent.shown.contains("hands that on"), "{}", sent.shown);
    env.assert_sound();
}

/// A claimed request of a person's own has no code to reject, and can be withdrawn.
#[test]
fn what_has_no_code_is_cancelled_not_rejected() {
    let env = ledger(false);
    let ask = "send --issue 7 --to coder --as maintainer --set summary=Wanted \
               --set findings.0.severity=blocking --set findings.0.text=empty";
    play(&env, &[ask, "claim 7.1 --as coder"]);
    let reject = ["reject", "7.1", "--as", "maintainer", "--reason", "no"];
    env.handoff(&reject).exits(4).says("cancel");
    env.assert_sound();
}

#[test]
fn alone_it_begins_with_what_needs_a_person_and_says_how_much_more_there_is() {
    let env = ledger(false);
    for issue in 1..=9 {
        let of = |line: &str| line.replace("--issue 7", &format!("--issue {issue}"));
        let own = |line: &str| of(line).replace("7.1", &format!("{issue}.1"));
        let retry = format!("{FAIL} --recoverable");
        let steps: &[&str] = match issue {
            1..=4 => &[WORK, CLAIM, &retry],
            5 => &[WORK, CLAIM, FAIL],
            _ => &[WORK],
        };
        for step in steps {
            play(&env, &[&own(step)]);
        }
    }
    let shown = env.handoff(&[]).success().stdout;
    let first = "needs attention\n! 5.1 failed, maintainer's turn";
    assert!(shown.starts_with(first), "{shown}");
    for more in ["and 2 more (git", "and 1 more (git"] {
        let line = format!("{more} handoff status lists all)");
        assert!(shown.contains(&line), "{more}: {shown}");
    }
    play(&env, &["pause 6 --as maintainer --reason later"]);
    let resume = "`git handoff resume 6 --as maintainer --reason WHY`";
    env.handoff(&[]).success().says(resume);
}

#[test]
fn the_gate_says_what_was_rejected_and_that_nothing_came_since() {
    let env = ledger(false);
    play(
        &env,
        &[
            WORK,
            "reject 7.1 --as maintainer --worker m --reason untested",
        ],
    );
    let rejected =
        "7.1 (work) was rejected by maintainer: \"untested\", and nothing was sent since";
    env.handoff(&["gate", "7"]).exits(1).says(rejected).says(
        "hint: coder's turn with 7.1, rejected by maintainer: untested: `git handoff new --issue 7",
    );
}

/// Work that a person rejected and that comes again unchanged, is theirs to approve.
#[test]
fn rejected_code_that_is_handed_on_again_is_up_to_who_rejected_it() {
    let env = TestEnvironment::with_repository();
    run(&env, "init --protocol review");
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    let commit = ["commit", "-q", "--allow-empty", "-m", "Work"];
    env.git(&env.repo(), &commit);
    play(&env, &[WORK, "reject 7.1 --as maintainer --reason slow"]);
    #[cfg(feature = "agents")]
    env.handoff(&["prime", "--as", "coder"])
        .says("7.1 rejected by maintainer: ");
    run(&env, "inbox --as coder").says("7.1 rejected by maintainer, coder's turn");
    let approve = "git handoff approve 7.2 --as maintainer";
    let again = run(&env, &WORK.replace("Rows", "Again")).success().stderr;
    assert!(again.contains("\"slow\"; the code is the same"), "{again}");
    assert!(again.contains(&format!("`{approve}`")), "{again}");
    assert_turn(&env, "handed on again", ("maintainer", approve));
    play(&env, &["claim 7.2 --as reviewer"]);
    assert_turn(&env, "claimed again", ("maintainer", approve));
    let refused = shows(&env, DONE).exits(3).stderr;
    assert!(refused.contains(&format!("`{approve}`")), "{refused}");
    play(&env, &["approve 7.2 --as maintainer", DONE, "gate 7"]);
    env.assert_sound();
}

/// Why a person reopened an issue, and what they disapproved, is told by every screen.
#[test]
fn a_reopened_issue_says_why_and_since_when() {
    let env = ledger(false);
    let finds = "send --issue 7 --to coder --as reviewer --set summary=Rows \
                 --set findings.0.severity=blocking --set findings.0.text=empty";
    let fixed = format!("{WORK} --set findings.0.finding=F1 --set findings.0.text=done");
    play(
        &env,
        &[WORK, CLAIM, finds, "claim 7.2 --as coder --worker c"],
    );
    play(&env, &[&fixed, "claim 7.3 --as reviewer", DONE]);
    let resolved = "resolved by 7.4";
    run(&env, "status 7").says(resolved);
    play(&env, &["reject 7.4 --as maintainer --reason slow"]);
    let lacks = |screen: &str, mark: &str| {
        let shown = shows(&env, screen).shown;
        assert!(!shown.contains(mark), "{screen}: {shown}");
    };
    lacks("status 7", resolved);
    play(&env, &["approve 7.4 --as maintainer"]);
    run(&env, "status 7").says(resolved);
    play(
        &env,
        &["reject 7.4 --as maintainer --reason slow", "WAIT 5"],
    );
    let new = "git handoff new --issue 7 --from reviewer --to coder";
    run(&env, "reopen 7 --as maintainer --reason faster")
        .success()
        .says(&format!("next, for reviewer: {new}"));
    assert_turn(&env, "reopened", ("reviewer", new));
    lacks("status 7", resolved);
    let pause = ["pause", "--all", "--as", "maintainer", "--reason", "closed"];
    for is_paused in [false, true] {
        if is_paused {
            env.handoff(&pause).success();
        }
        for screen in [
            "status 7",
            "status",
            "next 7",
            "gate 7",
            "doctor",
            "inbox --as reviewer",
            #[cfg(feature = "agents")]
            "prime --as reviewer",
        ] {
            let shown = shows(&env, screen).shown;
            let why = "reopened by maintainer: faster; 7.4 disapproved at ";
            assert!(shown.contains(why), "{screen}: {shown}");
            assert!(!shown.contains("not handed on"), "{screen}: {shown}");
        }
    }
    let issue = env.data(&["status", "7"]);
    let since = &issue["attention"][0]["since"];
    assert_eq!(since, &issue["record"]["reopened"][0]["at"], "{issue}");
    env.assert_sound();
}

/// What a failure that is not said to be recoverable asks of a person, is told by every screen.
#[test]
fn a_person_chooses_what_becomes_of_failed_work() {
    let env = ledger(false);
    play(&env, &[WORK, CLAIM, FAIL]);
    let why = "gone; its agent does not say that another attempt may succeed: retry or cancel";
    for screen in ["status", "status 7", "doctor", "inbox --as maintainer"] {
        shows(&env, screen).says(why);
    }
    run(&env, "show 7.1").says("; nothing of the work was kept\n");
    let tip = env.tip();
    let refused = shows(&env, "next 7 --apply --as maintainer")
        .exits(6)
        .stderr;
    let retry = "`git handoff retry 7.1 --as maintainer --reason WHY` or `git handoff cancel 7.1";
    assert!(refused.contains("maintainer has to choose"), "{refused}");
    assert!(refused.contains(retry), "{refused}");
    assert_eq!(env.tip(), tip);
    let take = "reassign 7.1 --to maintainer --as maintainer --reason mine";
    let hint = "`git handoff retry 7.1 --reason WHY --as maintainer`, then `git handoff claim 7.1 --as reviewer`";
    let refused = shows(&env, take).exits(4).stderr;
    assert!(refused.contains(hint), "{refused}");
    play(&env, &["retry 7.1 --reason mine --as maintainer", CLAIM]);
    play(&env, &["block 7.1 --as reviewer --reason which"]);
    let shown = run(&env, "show 7.1").shown;
    let answer = "git handoff answer 7.1 ANSWER --as maintainer\n";
    assert_eq!(shown.matches(answer).count(), 2, "{shown}");
}

/// At the limit of rounds, the reviewer is told who can raise it, and that is offered first once the
/// work has failed.
#[test]
fn the_limit_of_rounds_is_told_with_who_can_raise_it() {
    let env = own("review", |definition| {
        definition["limits"]["rounds"]["rounds of changes"]["most"] = 1.into();
    });
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Work"],
    );
    let finds = "send --issue 7 --to coder --as reviewer --set summary=Rows \
                 --set findings.0.severity=blocking --set findings.0.text=empty";
    let fixed = format!("{WORK} --set findings.0.finding=F1 --set findings.0.text=done");
    play(
        &env,
        &[WORK, CLAIM, finds, "claim 7.2 --as coder --worker c"],
    );
    play(&env, &[&fixed]);
    let limit = "the issue has reached a limit: 1 rounds of changes, which maintainer can raise";
    #[cfg(feature = "agents")]
    env.handoff(&["prime", "--as", "reviewer"]).says(limit);
    run(&env, "claim 7.3 --as reviewer").success().says(limit);
    #[cfg(feature = "agents")]
    env.handoff(&["prime", "--as", "reviewer"]).says(limit);
    play(
        &env,
        &["fail 7.3 --as reviewer --code ROUNDS --message many"],
    );
    let raise =
        "git handoff protocol set review 'limits.rounds.rounds of changes' NUMBER --as maintainer";
    for screen in ["next 7", "inbox --as maintainer"] {
        shows(&env, screen).says(&format!("next: {raise}"));
    }
}
