//! What the program answers a fresh user of the protocol `review`: the next command is the one that
//! is meant.

use test_support::{Ran, TestEnvironment};

/// A ledger with issue 7, which the reviewer works on.
fn in_review() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    commit(&env);
    hand(&env, "coder", "reviewer", &["branch=csv", "summary=Done"]).success();
    env.claim("7", "reviewer").success();
    env
}

fn commit(env: &TestEnvironment) {
    let file = env.repo().join("more.txt");
    let more = std::fs::read_to_string(&file).unwrap_or_default() + "more\n";
    std::fs::write(&file, more).unwrap();
    env.git(&env.repo(), &["add", "more.txt"]);
    env.git(&env.repo(), &["commit", "-q", "-m", "More"]);
}

/// Sends a contract about issue 7 that has these fields.
fn hand(env: &TestEnvironment, from: &str, to: &str, set: &[&str]) -> Ran {
    let set = set.iter().flat_map(|one| ["--set", one]);
    let head = ["send", "--issue", "7", "--to", to, "--as", from];
    env.handoff(&head.into_iter().chain(set).collect::<Vec<_>>())
}

fn run(env: &TestEnvironment, line: &str) -> Ran {
    env.handoff(&line.split(' ').collect::<Vec<_>>())
}

/// A disapproval after the claim reaches the reviewer, and no approval of that code outweighs it.
#[test]
fn a_late_disapproval_closes_the_gate_until_the_code_is_another() {
    let env = in_review();
    env.wait(1);
    run(&env, "reject 7.1 --as maintainer --reason untested").success();
    run(&env, "prime --as reviewer")
        .says("new since you claimed it, from maintainer: \"disapproved at [commit]: untested\"");
    let finding = r#"findings={"severity":"blocking","text":"No tests"}"#;
    let end = || hand(&env, "reviewer", "end", &["summary=Good"]);
    end()
        .exits(3)
        .says("evidence.approval 7.1 disapproved at [commit] by maintainer");
    run(&env, "gate 7 --head csv").exits(1);
    // Other code that is approved is not what was disapproved.
    hand(&env, "reviewer", "coder", &["summary=Tests", finding]).success();
    env.claim("7", "coder").success();
    commit(&env);
    let fixed = r#"findings={"finding":"F1","text":"It has some"}"#;
    hand(&env, "coder", "reviewer", &["summary=Tested", fixed]).success();
    env.claim("7", "reviewer").success();
    end().success();
    run(&env, "gate 7 --head csv").success();
    env.assert_sound();
}

#[test]
fn a_reopened_issue_is_for_whoever_completed_it() {
    let env = in_review();
    hand(&env, "reviewer", "end", &["summary=Good"]).success();
    hand(&env, "coder", "reviewer", &["summary=More"])
        .exits(4)
        .says("`git handoff reopen 7 --as maintainer --reason WHY` reopens it");
    run(&env, "reopen 7 --as maintainer --reason untested")
        .success()
        .says("next, for reviewer: git handoff new --issue 7 --from reviewer --to coder\n");
    for view in [
        "prime --as reviewer",
        "inbox --as reviewer",
        "next 7",
        "status",
    ] {
        run(&env, view).says("git handoff new --issue 7 --from reviewer --to coder");
    }
}

#[test]
fn a_person_is_shown_the_answer_and_has_nothing_to_apply() {
    let env = in_review();
    let block = ["block", "7.1", "--as", "reviewer", "--reason", "Which one?"];
    env.handoff(&block).success();
    let answer = "git handoff answer 7.1 ANSWER --as maintainer";
    for line in ["status", "inbox --as maintainer"] {
        run(&env, line).says(&format!("next: {answer}"));
    }
    let before = env.tip();
    run(&env, "next 7 --apply --as maintainer")
        .exits(6)
        .says(&format!("hint: run `{answer}`"));
    assert_eq!(env.tip(), before);
    // Questions with keys are answered by these.
    let env = in_review();
    let block = [&block[..], &["--needs", "port:integer"]].concat();
    env.handoff(&block).success();
    run(&env, "status").says("next: git handoff answer 7.1 port=VALUE --as maintainer");
    run(&env, "answer 7.1 port=80 --as maintainer").success();
}

#[test]
fn after_the_last_round_next_names_the_limit_and_what_raises_it() {
    let env = in_review();
    for round in 1..=4 {
        let finding = format!(r#"findings={{"severity":"blocking","text":"No header {round}"}}"#);
        hand(&env, "reviewer", "coder", &["summary=No", &finding]).success();
        env.claim("7", "coder").success();
        commit(&env);
        let fixed = format!(r#"findings={{"finding":"F{round}","text":"It has one"}}"#);
        hand(&env, "coder", "reviewer", &["summary=Yes", &fixed]).success();
        env.claim("7", "reviewer").success();
    }
    let raise = "git handoff protocol set review 'limits.rounds.rounds of changes' NUMBER";
    // Only a person raises it; the reviewer can approve, or end its work.
    let raise = format!("{raise} --as maintainer");
    let fail = "git handoff fail 7.9 --as reviewer --code CODE --message WHY";
    run(&env, "next 7")
        .success()
        .says("the issue has reached a limit: 4 rounds of changes")
        .says("next: git handoff prime --as reviewer\n")
        .says(fail)
        .says(&raise);
    run(&env, "status 7")
        .says("next, for reviewer: git handoff prime --as reviewer\n")
        .says(&format!("or, for maintainer: {raise}\n"));
    let set = [
        "protocol",
        "set",
        "review",
        "limits.rounds.rounds of changes",
    ];
    env.handoff(&[&set[..], &["6", "--weaker"]].concat())
        .success();
    let next = run(&env, "next 7").success();
    assert!(!next.stdout.contains("limit"), "{}", next.shown);
}

/// Only what a reviewer sends back is a round.
#[test]
fn what_a_person_asks_for_first_is_no_round_of_changes() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    let most = ["limits.rounds.rounds of changes", "1", "--as", "maintainer"];
    let set = ["protocol", "set", "review"];
    env.handoff(&[&set[..], &most].concat()).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    let asked = ["summary=Rows", "findings.0.text=No rows"];
    hand(&env, "maintainer", "coder", &asked).success();
    for (round, exit) in [(1, 0), (2, 4)] {
        env.claim("7", "coder").success();
        commit(&env);
        let fixed = format!(r#"findings={{"finding":"F{round}","text":"Made"}}"#);
        let work = ["branch=csv", "summary=Made", &fixed];
        hand(&env, "coder", "reviewer", &work).success();
        env.claim("7", "reviewer").success();
        let finding = format!(r#"findings={{"severity":"blocking","text":"No header {round}"}}"#);
        hand(&env, "reviewer", "coder", &["summary=No", &finding]).exits(exit);
    }
    env.assert_sound();
}

#[test]
fn work_that_can_be_claimed_later_is_waited_for() {
    let env = in_review();
    run(&env, "release 7.1 --as reviewer --after 10m --reason busy").success();
    let wait = "git handoff wait --inbox --as reviewer";
    run(&env, "status 7").says(&format!("next, for reviewer: {wait}\n"));
    let sent = hand(&env, "reviewer", "end", &["summary=Good"]).exits(4);
    sent.says("reviewer has not claimed 7.1")
        .says("hint: it can be claimed from 2026-")
        .says(&format!("Z: `{wait}` waits for it"));
    env.wait(601);
    run(&env, "status 7").says("next, for reviewer: git handoff claim 7.1 --as reviewer");
}

#[test]
fn after_the_approval_the_merge_is_what_is_left() {
    let env = in_review();
    hand(&env, "reviewer", "end", &["summary=Good"])
        .success()
        .says("issue 7 is complete: the merge is left, once `git handoff gate 7` exits 0\n");
}

#[test]
fn a_person_has_every_merge_wait_for_a_persons_approval() {
    let env = in_review();
    hand(&env, "reviewer", "end", &["summary=Good"]).success();
    run(&env, "gate 7").success();
    let set = "protocol set review requirements.approved-by-person";
    run(&env, &format!("{set} true --as maintainer")).success();
    run(&env, "gate 7")
        .exits(1)
        .says("✗ not approved-by-person");
    run(&env, &format!("{set} default --as coder"))
        .exits(4)
        .says("maintainer");
    run(&env, "approve 7.2 --as maintainer --worker me").success();
    run(&env, "gate 7").success();
}

#[test]
fn the_base_is_no_branch_for_the_work() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    hand(&env, "coder", "reviewer", &["branch=main", "summary=Done"])
        .exits(3)
        .says("main is the base, which work is merged into\n")
        .says("put the work on a branch: `git switch -c NAME`, and name it with --set branch=NAME");
}

#[test]
fn after_a_failure_prime_names_the_command_that_restores_what_was_kept() {
    let env = in_review();
    env.file("notes.txt", "half done");
    std::fs::write(env.repo().join("notes.txt"), "half done").unwrap();
    let fail = "fail 7.1 --as reviewer --message Ill --recoverable --snapshot";
    run(&env, fail).success();
    let restore = "has kept work (`git handoff restore 7.1 --attempt 1 --worktree DIR`)";
    run(&env, "prime --as reviewer").says(restore);
    run(&env, "retry 7.1 --as maintainer --reason Well").success();
    run(&env, "prime --as reviewer").says(restore);
}

#[test]
fn all_commands_fit_ninety_lines() {
    let all = TestEnvironment::new()
        .handoff(&["help", "--all"])
        .success()
        .stdout;
    assert!(all.lines().count() <= 90, "{all}");
    let listed = git_handoff::full_command();
    for command in listed.get_subcommands().filter(|one| !one.is_hide_set()) {
        let name = format!("\n  {} ", command.get_name());
        assert!(all.contains(&name), "{name} in {all}");
    }
}

/// What a list's entry may have is named with what it must.
#[test]
fn a_list_names_every_member_of_its_entries() {
    let env = in_review();
    run(&env, "prime --as reviewer").says(
        "{\"severity\":\"blocking\",\"text\":\"{{fill: what is wrong, or to do}}\"}; severity: blocking or suggestion; optional: location, finding",
    );
}

#[test]
fn what_send_would_write_is_checked_with_the_same_options() {
    let env = in_review();
    env.git(&env.repo(), &["switch", "-q", "-c", "second"]);
    commit(&env);
    let tip = env.tip();
    for (set, exit) in [
        (&["branch=second"][..], 3),
        (&["branch=nowhere", "summary=Done"], 3),
        (&["branch=second", "summary=Done"], 0),
    ] {
        let set = set.iter().flat_map(|one| ["--set", one]);
        let options = "--issue PROJ-8 --to reviewer --type work --as coder";
        let options = options.split(' ').chain(set);
        let options: Vec<&str> = options.collect();
        let ran = |verb| env.handoff(&[&[verb], &options[..]].concat()).exits(exit);
        let checked = ran("check");
        assert_eq!(env.tip(), tip, "a check writes nothing");
        let sent = ran("send");
        if exit == 0 {
            checked.says("contract: complete (work)");
        } else {
            assert_eq!(checked.stderr, sent.stderr);
        }
    }
    run(
        &env,
        "check --issue PROJ-9 --to reviewer --as coder --set branch=nowhere",
    )
    .says("there is no branch \"nowhere\" here")
    .says("(csv, second), or make it: `git switch -c nowhere`");
    // Without a commit, no other branch can be named or made.
    let empty = env.root().join("empty");
    env.git(env.root(), &["init", "-q", "-b", "main", "empty"]);
    env.handoff_in(&empty, &["init", "--protocol", "review"])
        .success();
    let send = "check --issue 9 --to reviewer --as coder --set branch=main";
    env.handoff_in(&empty, &send.split(' ').collect::<Vec<_>>())
        .says("there is no branch \"main\": the repository has no commit yet")
        .says("make the first: `git commit`");
    run(&env, "claim proj-8.1 --as reviewer")
        .exits(6)
        .says("case counts in keys: write PROJ-8.1");
    for view in ["log PROJ-8 --offline", "show PROJ-8.1 --offline"] {
        run(&env, view).success();
    }
    env.assert_sound();
}

#[test]
fn an_answer_is_given_as_a_message_of_git_commit() {
    let env = in_review();
    run(&env, "block 7.1 --as reviewer -m which?").success();
    run(&env, "answer 7.1 -m csv --as maintainer").success();
    run(&env, "show 7.1").says("| csv");
}

#[test]
fn what_a_claim_that_was_given_back_left_is_restored_by_the_printed_command() {
    let env = in_review();
    std::fs::write(env.repo().join("notes.txt"), "half done").unwrap();
    run(&env, "release 7.1 --as reviewer -m later --snapshot").success();
    run(&env, "prime --as reviewer").says("(`git handoff restore 7.1 --claim 1 --worktree DIR`)");
    run(&env, "restore 7.1 --claim 1").success();
}

/// An objection ends by its author's approval of that code, or of newer code.
#[test]
fn an_approval_of_other_code_ends_no_objection() {
    let env = in_review();
    run(&env, "annotate 7 --as maintainer --note Hm").success();
    let code = env.git(&env.repo(), &["rev-parse", "csv"]);
    let older = env.git(&env.repo(), &["rev-parse", "csv~"]);
    run(&env, "reject 7.1 --as maintainer --reason untested").success();
    let end = || hand(&env, "reviewer", "end", &["summary=Good"]);
    let stays = |gate: &str| {
        run(&env, gate).exits(1);
        end()
            .exits(3)
            .says("7.1 disapproved at [commit] by maintainer: \"untested\"");
    };
    let approve = |head: &str| {
        let line = format!("approve 7.1 --as maintainer --worker robin --head {head}");
        run(&env, &line).success();
    };
    stays("gate 7");
    approve(older.trim());
    stays("gate 7 --head csv");
    approve(code.trim());
    end().success();
    run(&env, "gate 7 --head csv").success();
    run(&env, "reject 7.2 --as maintainer --reason late").success();
    approve(older.trim());
    let asked = "gate 7 --require approved,approved-by-person --head csv";
    run(&env, asked)
        .exits(1)
        .says("✗ not approved: 7.2 disapproved at [commit] by maintainer: \"late\"")
        .says("✗ not approved-by-person: 7.2 disapproved");
    approve(code.trim());
    run(&env, asked).success();
    env.assert_sound();
}

/// Code that a person rejected while it waited is not approved when it is sent again.
#[test]
fn a_rejection_of_pending_code_outlives_its_handoff() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    commit(&env);
    let work = || hand(&env, "coder", "reviewer", &["branch=csv", "summary=Done"]);
    work().success();
    run(&env, "reject 7.1 --as maintainer --reason never").success();
    work().success().says(
        "warning evidence.approval 7.1 (work) was rejected at [commit] by maintainer: \"never\"",
    );
    env.claim("7", "reviewer").success();
    let end = || hand(&env, "reviewer", "end", &["summary=Good"]);
    end()
        .exits(3)
        .says("7.1 (work) was rejected at [commit] by maintainer: \"never\"");
    run(&env, "gate 7 --require approved-by-person")
        .exits(1)
        .says("7.1 (work) was rejected at [commit] by maintainer: \"never\"")
        .says("`git handoff approve 7.2 --as maintainer --worker NAME`");
    run(&env, "approve 7.2 --as maintainer --worker robin").success();
    end().success();
    run(&env, "gate 7 --require approved,approved-by-person").success();
    env.assert_sound();
}

/// Whoever worked on it when it was cancelled is told by the next command, who did it and why.
#[test]
fn a_cancellation_is_told_at_the_next_command() {
    let env = in_review();
    run(&env, "cancel 7.1 --as maintainer --reason obsolete").success();
    let why = "7.1 was cancelled by maintainer: \"obsolete\"";
    let send = "send --to coder --as reviewer --set summary=No";
    let failed = run(&env, send).exits(2);
    failed.says(&format!("error: reviewer holds nothing here: {why}"));
    let env = in_review();
    run(&env, "cancel 7.1 --as maintainer --reason obsolete").success();
    hand(&env, "reviewer", "end", &["summary=Good"]).says(why);
    run(&env, send).exits(2);
}
