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
    let commit = ["commit", "-q", "--allow-empty", "-m", "More"];
    env.git(&env.repo(), &commit);
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
    let again = env.repo();
    env.git(&again, &["branch", "kept"]);
    hand(&env, "reviewer", "end", &["summary=Good"]).success();
    run(&env, "gate 7 --head csv")
        .exits(1)
        .says("✗ not approved: 7.1 disapproved at [commit] by maintainer: \"untested\"")
        .says("only maintainer can change that: `git handoff approve 7.2 --as maintainer`");
    // Other code that is approved is not what was disapproved.
    run(&env, "reopen 7 --as maintainer --reason untested").success();
    hand(&env, "reviewer", "coder", &["summary=Tests", finding]).success();
    env.claim("7", "coder").success();
    commit(&env);
    let fixed = r#"findings={"finding":"F1","text":"It has some"}"#;
    hand(&env, "coder", "reviewer", &["summary=Tested", fixed]).success();
    env.claim("7", "reviewer").success();
    hand(&env, "reviewer", "end", &["summary=Good"]).success();
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
        .says("next: git handoff prime --as reviewer");
    run(&env, "prime --as reviewer").says("Needs you:\n- 7.1 not handed on");
}
