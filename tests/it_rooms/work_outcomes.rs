//! What comes of a run that does not simply hand on: it is told apart, and nothing is passed over.

use std::fs;

use serde_json::{Value, json};
use test_support::agents::{PREPARED, agent, once, opened, outcome, record, work, work_as, worker};
use test_support::contracts::opening;
use test_support::files::script;
use test_support::remote::bare;
use test_support::running::Running;
use test_support::team::Folder;
use test_support::time::own;
use test_support::{Ran, TestEnvironment, stored, until};

fn run(env: &TestEnvironment, args: &[&str]) -> Ran {
    work(env, &[&["--json", "--grace", "300ms"], args].concat())
}

/// Runs a file of roles with one role for prep-agent, and these lines above it.
fn by_role(env: &TestEnvironment, text: &str, above: &str, more: &str) -> Ran {
    let agent = agent(env, text);
    let roles = format!(
        "{above}\n[[role]]\nagent = \"prep-agent\"\ncommand = [\"{}\"]\n{more}\n",
        agent.display()
    );
    let roles = env.file("roles.toml", roles);
    run(env, &["--file", &roles, "--once"])
}

fn piece(ran: &Ran) -> Value {
    ran.json()["data"]["pieces"][0].clone()
}

#[test]
fn what_can_not_run_now_is_given_back_and_was_no_attempt() {
    let env = opened();
    let ran = once(&env, "echo 'slow down: 429' >&2; exit 75");
    let (came, why) = outcome(&ran);
    assert_eq!(
        (ran.status, came.as_str()),
        (1, "given_back"),
        "{}",
        ran.shown
    );
    assert!(why.contains("429"), "{why}");
    let given_back = record(&env);
    assert_eq!(
        (&given_back["state"], &given_back["attempt"]),
        (&"pending".into(), &1.into())
    );
    let ran = once(&env, &format!("git handoff send {PREPARED}"));
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    assert_eq!(record(&env)["attempt"], 1);
    env.assert_sound();
}

#[test]
fn a_worktree_that_can_not_be_set_up_is_the_machines_fault() {
    let env = opened();
    let setup = env.root().join("setup.sh");
    script(
        &setup,
        "#!/bin/sh\npwd >> $OUT/set-up\n[ -e $OUT/ready ] || { echo 'git-lfs is missing'; exit 1; }\n",
    );
    let above = format!(
        "setup = {{command = [\"{}\"], time = \"1m\"}}",
        setup.display()
    );
    let send = format!("git handoff send {PREPARED}");
    let ran = by_role(&env, &send, &above, "");
    let (came, why) = outcome(&ran);
    assert_eq!(came, "given_back", "{}", ran.shown);
    assert!(
        why.contains("can't be set up") && why.contains("git-lfs is missing"),
        "{why}"
    );
    fs::write(env.root().join("ready"), "").unwrap();
    env.handoff(&["work", "--prune", "--discard", "87"])
        .success();
    let ran = by_role(&env, &send, &above, "");
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let places = fs::read_to_string(env.root().join("set-up")).unwrap();
    assert!(
        places
            .lines()
            .all(|line| line.ends_with("repo.worktrees/87")),
        "{places}"
    );
}

#[test]
fn what_is_in_no_commit_is_sent_back_to_the_agent_or_committed_for_it() {
    let new = format!("git handoff new {PREPARED} > .git-handoff/contract");
    let env = opened();
    let text = format!(
        "cat > $OUT/prompt; echo edited > edited.txt; [ ! -e $OUT/again ] || git add edited.txt\n[ ! -e $OUT/again ] || git commit -q -m edited\ntouch $OUT/again\n{new}"
    );
    let ran = once(&env, &text);
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let prompt = fs::read_to_string(env.root().join("prompt")).unwrap();
    assert!(prompt.contains("not committed: \"edited.txt\""), "{prompt}");
    // One that never commits has failed.
    let env = opened();
    let ran = once(&env, &format!("echo edited > edited.txt\n{new}"));
    assert_eq!(outcome(&ran).0, "failed", "{}", ran.shown);
    // Where the worker commits, the agent needs no right on the repository.
    let env = opened();
    let text = format!("mkdir -p new; echo edited > 'new/a file.txt'\n{new}");
    let ran = by_role(&env, &text, "", "commit = \"worker\"");
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let log = env.git(
        &env.repo(),
        &["log", "-1", "--format=%an|%B", "handoff/87", "--name-only"],
    );
    assert!(
        log.starts_with("prep-agent|") && log.contains("Handoff-Id: 87.1"),
        "{log}"
    );
    assert!(
        log.contains("new/a file.txt") && !log.contains(".git-handoff"),
        "{log}"
    );
}

#[test]
fn a_question_and_a_failure_may_be_left_in_files() {
    let env = opened();
    let ran = once(
        &env,
        "printf 'Which port?\\nIt is not said.\\n' > .git-handoff/blocked.md",
    );
    assert_eq!(
        outcome(&ran),
        (
            "blocked".to_owned(),
            "Which port? It is not said.".to_owned()
        )
    );
    assert_eq!(record(&env)["state"], "blocked");
    let env = opened();
    let ran = once(
        &env,
        "printf 'The build needs Java 21\\nOnly 17 is here.\\n' > .git-handoff/failed.md",
    );
    assert_eq!(
        outcome(&ran),
        ("failed".to_owned(), "The build needs Java 21".to_owned())
    );
    let failure = record(&env)["transitions"][2]["failure"].clone();
    assert_eq!(failure["code"], "AGENT_FAILED");
    assert!(
        failure["details"].as_str().unwrap().contains("Only 17"),
        "{failure}"
    );
}

#[test]
fn what_the_agent_recorded_itself_is_told_as_it_is() {
    let env = opened();
    let ran = once(
        &env,
        "git handoff fail 87.1 --message 'no such port' --code X",
    );
    assert_eq!(
        (ran.status, outcome(&ran).0.as_str()),
        (1, "failed"),
        "{}",
        ran.shown
    );
    assert!(outcome(&ran).1.contains("no such port"), "{}", ran.shown);
    let env = opened();
    let ran = once(&env, "git handoff block 87.1 --reason 'which port?'");
    assert_eq!(
        outcome(&ran),
        ("blocked".to_owned(), "which port?".to_owned())
    );
    let env = opened();
    let ran = once(
        &env,
        "git handoff release 87.1 --reason 'the context is full'",
    );
    assert_eq!(outcome(&ran).0, "given_back", "{}", ran.shown);
}

#[test]
fn an_agent_can_push_to_a_remote_by_a_relative_path() {
    let env = TestEnvironment::with_repository();
    env.git(env.root(), &["init", "-q", "--bare", "origin.git"]);
    let origin = env.root().join("origin.git");
    env.git(&env.repo(), &["remote", "add", "origin", "../origin.git"]);
    env.git(&env.repo(), &["push", "-q", "origin", "main"]);
    env.handoff(&["init", "--remote", "origin"]).success();
    env.send(opening(87)).success();
    // An agent's own push by a relative path, which git takes as relative to the worktree.
    let text = format!(
        "echo x > x.txt; git add x.txt; git commit -q -m x; git push -q origin HEAD 2> $OUT/push || touch $OUT/refused\n\
         git handoff new {PREPARED} > .git-handoff/contract"
    );
    let ran = once(&env, &text);
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    assert!(
        !env.root().join("refused").exists(),
        "{:?}",
        fs::read_to_string(env.root().join("push"))
    );
    let there = env.git(&origin, &["rev-parse", "handoff/87"]);
    assert_eq!(there, env.git(&env.repo(), &["rev-parse", "handoff/87"]));
}

#[test]
fn a_branch_without_commits_is_pushed_so_that_the_next_one_has_it() {
    let env = TestEnvironment::with_repository();
    let origin = bare(&env, "origin.git");
    let address = origin.to_str().unwrap();
    env.git(&env.repo(), &["remote", "add", "origin", address]);
    env.git(&env.repo(), &["push", "-q", "origin", "main"]);
    env.handoff(&["init", "--remote", "origin", "--evidence", "enforce"])
        .success();
    env.send(opening(87)).success();
    let ran = once(
        &env,
        &format!("git handoff new {PREPARED} > .git-handoff/contract"),
    );
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    env.git(&origin, &["rev-parse", "--verify", "handoff/87"]);
}

#[test]
fn statements_that_the_repository_contradicts_are_shown() {
    let env = opened();
    env.handoff(&["protocol", "set", "issue-to-pr", "evidence", "warn"])
        .success();
    let ran = once(&env, &format!("git handoff send {PREPARED}"));
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let text = "echo x > x.txt; git add x.txt; git commit -q -m x\n\
         git handoff new --to reviewer-agent --issue 87 --set summary=s --set tests_added=0 --set coverage=80% \
         --set pr_number=13 --set pr_url=https://github.com/quayside/parcel-desk/pull/13 --set files_changed=7 \
         > .git-handoff/contract";
    let agent = agent(&env, text);
    let agent = agent.to_str().unwrap();
    let ran = run(&env, &["--as", "implementer-agent", "--once", "--", agent]);
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let contradicted = piece(&ran)["contradicted"].to_string();
    assert!(
        contradicted.contains("files_changed: the contract says 7"),
        "{contradicted}"
    );
}

#[test]
fn a_reason_that_can_not_be_recorded_as_it_is_is_recorded_without_its_secrets() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let cases = [
        ("echo \"no: $TEXT\" > .git-handoff/failed.md", "failed"),
        (
            "printf 'no:\\nsee %s' \"$TEXT\" > .git-handoff/failed.md",
            "failed",
        ),
        ("printf 'no:\\0' > .git-handoff/failed.md", "failed"),
        (
            "{ printf no:; head -c 60000 /dev/zero | tr '\\0' '\\377'; } > .git-handoff/failed.md",
            "failed",
        ),
        ("echo \"no: $TEXT\" > .git-handoff/blocked.md", "blocked"),
        ("echo \"no: $TEXT\"; exit 75", "given_back"),
    ];
    for (script, wanted) in cases {
        let env = opened();
        let ran = once(&env, &format!("TEXT={token}\n{script}"));
        let (came, why) = outcome(&ran);
        assert_eq!(came, wanted, "{script}\n{}", ran.shown);
        assert!(why.contains("no:"), "{why}");
        let record = record(&env);
        let state = if wanted == "given_back" {
            "pending"
        } else {
            wanted
        };
        assert_eq!(record["state"], state, "{script}");
        let told = format!("{}{record}", ran.shown);
        assert!(!told.contains(&token[..12]), "{told}");
        env.assert_sound();
    }
    let env = opened();
    let above = format!("setup = {{command = [\"sh\", \"-c\", \"echo no: {token}; exit 1\"]}}");
    let ran = by_role(&env, "exit 0", &above, "");
    assert_eq!(outcome(&ran).0, "given_back", "{}", ran.shown);
    assert!(!ran.shown.contains(&token[..12]), "{}", ran.shown);
}

#[test]
fn who_is_asked_is_shown_the_command_that_answers() {
    for script in [
        "echo 'which port?' > .git-handoff/blocked.md",
        "git handoff block 87.1 --reason 'which port?'",
    ] {
        let env = opened();
        let agent = agent(&env, script);
        let agent = agent.to_str().unwrap();
        let args = ["work", "--as", "prep-agent", "--once", "--", agent];
        let mut command = env.program(&args);
        command
            .env_remove("GIT_AUTHOR_DATE")
            .env_remove("GIT_COMMITTER_DATE");
        let ran = env.run(command, &args, None);
        let answer = "87.1: next: git handoff answer 87.1 ANSWER --as orchestrator";
        assert!(
            ran.stderr.lines().any(|line| line == answer),
            "{}",
            ran.shown
        );
    }
}

#[test]
fn without_a_commit_to_begin_at_the_work_waits_for_one() {
    let env = TestEnvironment::new();
    env.git(env.root(), &["init", "-q", "repo"]);
    env.handoff(&["init"]).success();
    env.send(opening(87)).success();
    let send = format!("git handoff send {PREPARED}");
    let ran = once(&env, &send);
    let wanted = "there is no worktree for it: main, where its branch begins, names no commit here";
    assert_eq!(outcome(&ran), ("given_back".into(), wanted.into()));
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Start"],
    );
    let ran = once(&env, &send);
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
}

#[test]
fn a_provider_that_a_script_names_in_its_last_line_is_waited_for() {
    let env = opened();
    let ran = once(
        &env,
        "echo 'request failed: HTTP 429 Too Many Requests'; exit 1",
    );
    let (came, why) = outcome(&ran);
    assert_eq!(came, "given_back", "{}", ran.shown);
    assert!(why.contains("429"), "{why}");
    let ran = once(&env, "echo 'expected 200, got 429'; exit 1");
    assert_eq!(outcome(&ran).0, "failed", "{}", ran.shown);
}

#[test]
fn at_a_limit_a_person_is_told_what_raises_it() {
    let env = TestEnvironment::with_ledger();
    let args = ["protocol", "set", "issue-to-pr", "limits.handoffs", "2"];
    env.handoff(&args).success();
    env.send(opening(87)).success();
    let text = format!("git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT");
    assert_eq!(outcome(&once(&env, &text)).0, "handed_on");
    let text = "echo work > work.txt; git add work.txt; git commit -q -m work\n\
         git handoff new --to reviewer-agent --issue 87 --set summary=done --set tests_added=1 \
         --set coverage=90% --set pr_number=3 --set pr_url=https://github.com/quayside/parcel-desk/pull/3 \
         > $GIT_HANDOFF_CONTRACT";
    let ran = work_as(&env, "implementer-agent", &agent(&env, text), &["--once"]);
    let (came, why) = outcome(&ran);
    assert_eq!(came, "blocked", "{why}");
    assert!(
        why.contains("`git handoff protocol set issue-to-pr limits.handoffs NUMBER`"),
        "{why}"
    );
    let held = stored(&env.data(&["show", "87.2"]));
    assert_eq!(held["attempt"], 1);
}

#[test]
fn what_one_worker_meets_pauses_the_others_of_its_clone() {
    let env = opened();
    env.send(opening(88)).success();
    let busy = agent(
        &env,
        "echo run >> $OUT/runs; echo 'HTTP 429 Too Many Requests, retry after 600' >&2; exit 1",
    );
    let args = ["--as", "prep-agent", "--", busy.to_str().unwrap()];
    let mut first = Running::silent(worker(&env, &args));
    let paused = env.repo().join(".git/handoff/work/pauses.json");
    until("it pauses", || paused.exists());
    let ran = work(&env, &[&["--timeout", "1s"], &args[..]].concat()).success();
    assert!(
        ran.stderr.contains("agent.sh: pauses: HTTP 429"),
        "{}",
        ran.shown
    );
    let runs = std::fs::read_to_string(env.root().join("runs")).unwrap();
    assert_eq!(runs.lines().count(), 1);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    // Nobody else waits any more: whoever starts it again means that it is over.
    work_as(&env, "prep-agent", &busy, &["--once"]);
    let runs = std::fs::read_to_string(env.root().join("runs")).unwrap();
    assert_eq!(runs.lines().count(), 2);
}

#[test]
fn the_protocol_says_whether_another_attempt_helps_after_each_end_of_a_run() {
    for (another, came, state) in [
        (None, "failed", "failed"),
        (Some("now"), "failed", "failed"),
        (Some("never"), "failed", "failed"),
        (Some("later"), "given_back", "pending"),
        (Some("person"), "blocked", "blocked"),
    ] {
        let env = own("issue-to-pr", |p| {
            if let Some(another) = another {
                p["limits"]["retry"]["runs"] = json!({ "EXIT": another });
            }
        });
        env.send(opening(87)).success();
        let ran = once(&env, "exit 3");
        assert_eq!(outcome(&ran).0, came, "{another:?}: {}", ran.shown);
        let record = record(&env);
        assert_eq!(record["state"], state, "{another:?}");
        let last = record["transitions"].as_array().unwrap().last().unwrap();
        let recoverable = &last["failure"]["recoverable"];
        let expected = (state == "failed").then_some(another != Some("never"));
        assert_eq!(recoverable.as_bool(), expected, "{another:?}");
        env.assert_sound();
    }
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "own");
    folder.define(|p| p["limits"]["retry"]["runs"] = json!({"EXIT": "soon"}));
    let check = ["protocol", "check", &folder.path()];
    env.handoff(&check).exits(1).says("/limits/retry/runs");
}
