//! What newcomers are told in the protocol `review`: what opens the first issue, what a refused
//! command asks for, whose turn it is, and what was checked.

use test_support::team::{refused_command, run};
use test_support::{Ran, TestEnvironment};

/// A repository with a ledger of `review`, on a branch `b` with one commit.
fn begun() -> TestEnvironment {
    TestEnvironment::prepared("first-words", || {
        let env = TestEnvironment::with_repository();
        run(&env, "init --protocol review");
        env
    })
}

/// Issue 5, which its coder has claimed.
fn in_hand() -> TestEnvironment {
    let env = begun();
    let open = "--to coder --as maintainer --set summary=Lines --set findings.0.text=Wish";
    run(&env, &format!("send --issue 5 {open}"));
    run(&env, "claim 5.1 --as coder");
    env
}

/// Commits the work on a branch.
fn commit(env: &TestEnvironment) {
    env.git(&env.repo(), &["switch", "-q", "-C", "b"]);
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Work"],
    );
}

const WORK: &str = "send --issue 5 --to reviewer --as coder --set summary=Done";
const ANSWER: &str = "--set findings.0.text=did --set findings.0.finding=F1";

fn try_line(env: &TestEnvironment, line: &str) -> Ran {
    let args: Vec<&str> = line.split(' ').collect();
    env.handoff(&args)
}

#[test]
fn the_first_command_is_accepted_with_a_number_in_its_place() {
    let env = begun();
    let next = env.data(&[])["next"][0].as_str().unwrap().to_owned();
    let said = "git handoff send --issue N --to coder --as maintainer --set summary=TEXT --set findings.0.text=TEXT";
    assert_eq!(next, said);
    run(
        &env,
        &next.replace("git handoff ", "").replace(" N ", " 5 "),
    );
}

#[test]
fn a_finding_is_named_as_the_contract_can() {
    let env = in_hand();
    commit(&env);
    let line = format!("{WORK} --set branch=b --set findings.0.text=t --set findings.0.finding=F9");
    let refused = try_line(&env, &line).exits(4);
    let refused = refused.says("name a finding by its id (`finding`)\n");
    assert!(!refused.shown.contains("location"), "{}", refused.shown);
}

#[test]
fn a_branch_is_asked_for_before_what_is_on_it() {
    let env = in_hand();
    let refused = refused_command(&env, &format!("{WORK} {ANSWER}"));
    assert_eq!(
        refused.findings,
        ["field.unfilled /branch: branch with the change"]
    );
    assert!(!refused.hint.contains("commits"), "{}", refused.hint);
    let refused = refused_command(&env, &format!("{WORK} {ANSWER} --set branch=nosuch"));
    let missing = "field.unfilled /branch: there is no branch \"nosuch\" here";
    assert_eq!(refused.findings, [missing]);
}

#[test]
fn who_may_not_send_is_told_so_before_what_is_missing() {
    let env = in_hand();
    commit(&env);
    let args = ["new", "--issue", "5", "--from", "coder", "--to", "reviewer"];
    let unfilled = env.handoff(&args).success().stdout;
    let file = env.file("work.json", unfilled);
    run(&env, "block 5.1 --as coder --reason Which?");
    let hint = "`git handoff answer 5.1 ANSWER --as maintainer` first; then `git handoff claim 5.1 --as coder`";
    let from_file = format!("send {file} --as coder");
    let edited = "send --issue 5 --to reviewer --as coder --edit";
    for line in [WORK, edited, &from_file] {
        let refused = refused_command(&env, line);
        assert_eq!(refused.says(), (4, "not_working"), "{line}");
        assert_eq!(
            refused.message,
            "coder is not working on 5.1, which is blocked"
        );
        assert_eq!(refused.hint, hint, "{line}");
    }
    // What it lacks is still asked of `check`.
    let check = env.handoff(&["check", &file, "--as", "coder"]).exits(3);
    check.says("/summary field.unfilled");
}

#[test]
fn who_has_nothing_to_do_sees_whose_turn_it_is() {
    let env = in_hand();
    run(&env, "fail 5.1 --as coder --message lost");
    let shown = env.handoff(&["--as", "coder"]).success();
    shown
        .says("! 5.1 failed, maintainer's turn")
        .says("next: git handoff retry 5.1 --as maintainer --reason WHY")
        .says("you: coder; you hold nothing; 0 for you to claim");
}

#[test]
fn a_number_that_was_not_checked_is_marked_where_it_is_read() {
    let env = in_hand();
    commit(&env);
    run(&env, &format!("{WORK} {ANSWER} --set branch=b"));
    let claimed = run(&env, "claim 5.2 --as reviewer");
    claimed.says("  statements: passed branch, commits\n");
}

#[test]
fn a_linked_worktree_is_told_how_it_sets_its_own_agent() {
    let env = begun();
    let missing = |dir: &std::path::Path| {
        let ran = env.handoff_in(dir, &["inbox"]);
        ran.exits(2).shown
    };
    let alone = missing(&env.repo());
    assert!(
        alone.contains("`git config handoff.agent AGENT`"),
        "{alone}"
    );
    let tree = env.root().join("tree");
    let tree_name = tree.to_str().unwrap();
    env.git(
        &env.repo(),
        &["worktree", "add", "-q", "-b", "t", tree_name],
    );
    let said = missing(&tree);
    let set =
        "git config extensions.worktreeConfig true && git config --worktree handoff.agent AGENT";
    assert!(said.contains(set), "{said}");
    env.git(&tree, &["config", "extensions.worktreeConfig", "true"]);
    env.git(&tree, &["config", "--worktree", "handoff.agent", "coder"]);
    env.handoff_in(&tree, &["inbox"]).success();
    missing(&env.repo());
}

#[test]
fn another_worker_is_told_who_holds_the_work_before_what_is_missing() {
    let env = in_hand();
    let refused = refused_command(&env, &format!("{WORK} --worker other"));
    assert_eq!(refused.says(), (5, "held_by_worker"));
    assert!(refused.message.starts_with("5.1 is held by coder (worker "));
}

#[test]
fn a_second_answer_is_told_the_first() {
    let env = in_hand();
    run(&env, "block 5.1 --as coder --reason Which?");
    run(&env, "answer 5.1 both --as maintainer --worker desk");
    let refused = refused_command(&env, "answer 5.1 one --as maintainer");
    assert_eq!(refused.says(), (4, "illegal_transition"));
    let said = "5.1 was answered by maintainer at ";
    assert!(refused.message.starts_with(said), "{}", refused.message);
    assert!(
        refused.message.ends_with(": \"both\""),
        "{}",
        refused.message
    );
    let more = "to add to it: `git handoff annotate 5.1 --note TEXT --as maintainer`, which whoever works on it is told";
    assert_eq!(refused.hint, more);
}

#[test]
fn the_values_of_an_entry_are_told() {
    let env = in_hand();
    commit(&env);
    run(&env, &format!("{WORK} {ANSWER} --set branch=b"));
    let claimed = run(&env, "claim 5.2 --as reviewer");
    claimed.says(
        "; severity: blocking or suggestion; optional: location, finding; what to fix; at least one \
         finding is blocking. A review that has only suggestions is `done`\n",
    );
}
