//! Workers that run an agent's command: what it gets, what becomes of it, and what is refused.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::json;
use test_support::agents::{PREPARED, agent, opened, outcome, record, retry, work_as, worker};
use test_support::contracts::opening;
use test_support::remote::{bare, clone};
use test_support::running::Running;
use test_support::team::with_protocol;
use test_support::time::{RESEARCH, WRITER, asks, own, sample, traced};
use test_support::{Ran, TestEnvironment, stored, until};

/// Runs prep-agent's script for what waits.
fn work(env: &TestEnvironment, options: &[&str], command: &Path) -> Ran {
    let options = [&["--until-idle"], options].concat();
    work_as(env, "prep-agent", command, &options)
}

fn said(env: &TestEnvironment, name: &str) -> String {
    fs::read_to_string(env.root().join(name)).unwrap()
}

#[test]
fn an_agent_gets_its_work_and_a_worktree_and_the_contract_that_it_leaves_is_sent() {
    let env = opened();
    let before = env.git(&env.repo(), &["rev-parse", "HEAD"]);
    let text = format!(
        "cat > $OUT/prompt; env > $OUT/variables; pwd > $OUT/place; git branch --show-current > $OUT/branch\n\
         git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT"
    );
    let ran = work(&env, &[], &agent(&env, &text)).success();
    assert_eq!(outcome(&ran), ("handed_on".to_owned(), String::new()));
    let prompt = said(&env, "prompt");
    for part in [
        "You are prep-agent: Prepares branch and workspace. You hold handoff 87.1 of issue 87, attempt 1.",
        "on branch handoff/87 (base main)",
        "<issue_number>87</issue_number>",
        "<branch>handoff/87</branch>",
        "{{fill: outcome of the first build and test run}}",
        "git handoff send --issue 87 --to implementer-agent --as prep-agent",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let variables = said(&env, "variables");
    for variable in [
        "GIT_HANDOFF_AGENT=prep-agent",
        "GIT_HANDOFF_WORKER=repo/1",
        "GIT_HANDOFF_ISSUE=87",
        "GIT_HANDOFF_ID=87.1",
        "GIT_HANDOFF_BRANCH=handoff/87",
        "GIT_HANDOFF_BASE=main",
    ] {
        assert!(
            variables.lines().any(|line| line == variable),
            "{variables}"
        );
    }
    let place = env.root().join("repo.worktrees/87");
    assert_eq!(said(&env, "place").trim(), place.to_str().unwrap());
    assert_eq!(said(&env, "branch"), "handoff/87\n");
    let next = stored(&env.data(&["show", "87.2"]));
    assert_eq!(
        (&next["to"], &next["state"]),
        (&"implementer-agent".into(), &"pending".into())
    );
    // The user's own files, index and branch are as they were.
    assert_eq!(env.git(&env.repo(), &["rev-parse", "HEAD"]), before);
    assert_eq!(env.git(&env.repo(), &["status", "--porcelain"]), "");
    assert_eq!(
        env.git(&env.repo(), &["branch", "--show-current"]),
        "main\n"
    );
    env.assert_sound();
}

#[test]
fn a_refused_contract_comes_back_to_the_agent_with_its_findings() {
    let env = opened();
    let text = format!(
        "cat > $OUT/prompt\n\
         if [ -e $OUT/once ]; then git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT\n\
         else touch $OUT/once; git handoff new --to implementer-agent --issue 87 > $GIT_HANDOFF_CONTRACT; fi"
    );
    let ran = work(&env, &[], &agent(&env, &text)).success();
    assert_eq!(outcome(&ran).0, "handed_on");
    let prompt = said(&env, "prompt");
    assert!(
        prompt.starts_with("Your contract was refused, and nothing was recorded: "),
        "{prompt}"
    );
    assert!(prompt.contains("- /handoff"), "{prompt}");
    assert!(prompt.contains("<port>{{fill: "), "{prompt}");
    assert!(prompt.contains("You hold handoff 87.1"), "{prompt}");
}

#[test]
fn a_contract_that_stays_refused_fails_the_work_with_its_findings() {
    let env = opened();
    let text = "git handoff new --to implementer-agent --issue 87 > $GIT_HANDOFF_CONTRACT; echo run >> $OUT/runs";
    let ran = work(&env, &["--mend", "2"], &agent(&env, text));
    assert_eq!((ran.status, outcome(&ran).0.as_str()), (1, "failed"));
    assert_eq!(said(&env, "runs").lines().count(), 3);
    let failure = record(&env)["transitions"][2]["failure"].clone();
    assert_eq!(failure["code"], "CONTRACT_REFUSED");
    assert!(
        failure["details"].as_str().unwrap().contains("/handoff"),
        "{failure}"
    );
}

#[test]
fn what_a_failed_attempt_left_is_kept_and_is_there_for_the_next() {
    let env = opened();
    let text = format!(
        "if [ -e half.txt ]; then cat > $OUT/prompt; git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT; rm half.txt\n\
         else echo half > half.txt; echo 'the build fails'; exit 3; fi"
    );
    let agent = agent(&env, &text);
    let ran = work(&env, &[], &agent);
    assert_eq!(
        outcome(&ran),
        ("failed".to_owned(), "agent.sh exited with 3".to_owned())
    );
    let kept = env.handoff(&["restore", "87.1"]).success().stdout;
    assert!(
        kept.contains("the build fails") && kept.contains("half.txt (5 bytes)"),
        "{kept}"
    );
    let list = env.handoff(&["work", "--list"]).success().stdout;
    assert!(
        list.ends_with("issue 87: nothing that is not elsewhere\n"),
        "{list}"
    );
    retry(&env);
    let ran = work(&env, &[], &agent).success();
    assert_eq!(outcome(&ran).0, "handed_on");
    let prompt = said(&env, "prompt");
    assert!(
        prompt.contains("What an earlier attempt left is in it"),
        "{prompt}"
    );
}

#[test]
fn a_run_that_takes_too_long_ends_with_all_that_it_started() {
    let env = opened();
    let text = "trap '' TERM\nsetsid sleep 600 & sleep 600 & echo $$ > $OUT/shell\nwait; sleep 600";
    let options = ["--time", "1s", "--grace", "200ms"];
    let ran = work(&env, &options, &agent(&env, text));
    assert_eq!(
        outcome(&ran),
        ("failed".to_owned(), "it took longer than 1s".to_owned())
    );
    assert_eq!(
        record(&env)["transitions"][2]["failure"]["code"],
        "TIME_SPENT"
    );
    let mark = format!("OUT={}", env.root().display());
    let lives = |entry: &fs::DirEntry| {
        let variables = fs::read(entry.path().join("environ")).unwrap_or_default();
        variables
            .split(|byte| *byte == 0)
            .any(|one| one == mark.as_bytes())
    };
    let living = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(lives);
    assert_eq!(living.count(), 0);
}

#[test]
fn an_agent_that_needs_a_person_blocks_its_work_with_what_it_asks() {
    let env = opened();
    let agent = agent(&env, "echo 'May I delete the tests? [y/n]'");
    let roles = env.file(
        "roles.toml",
        format!(
            "[[role]]\nagent = \"prep-agent\"\nprofile = \"own\"\n\n[profile.own]\ncommand = [\"{}\"]\n\
             needs_person = ['\\[y/n\\]']\n",
            agent.display()
        ),
    );
    let args = ["--file", &roles, "--once", "--json"];
    let ran = env.run(worker(&env, &args), &args, None);
    let asked = "its agent waits for a permission: May I delete the tests? [y/n]";
    assert_eq!(outcome(&ran), ("blocked".to_owned(), asked.to_owned()));
    assert_eq!(record(&env)["state"], "blocked");
}

#[test]
fn who_lost_its_work_is_stopped() {
    let env = opened();
    let agent = agent(&env, "echo > $OUT/started; sleep 600");
    let args = [
        "--as",
        "prep-agent",
        "--once",
        "--",
        agent.to_str().unwrap(),
    ];
    let mut running = Running::silent(worker(&env, &args));
    until("it runs", || env.root().join("started").exists());
    let args = [
        "claim",
        "87.1",
        "--as",
        "prep-agent",
        "--worker",
        "other",
        "--take-over",
        "--reason",
        "it hangs",
    ];
    let mut command = env.program(&args);
    command
        .env_remove("GIT_AUTHOR_DATE")
        .env_remove("GIT_COMMITTER_DATE");
    env.run(command, &args, None).success();
    let ended = running.child.wait().unwrap();
    assert_eq!(ended.code(), Some(1));
    assert_eq!(record(&env)["lease"]["worker"], "other");
}

#[test]
fn a_halt_of_all_ends_a_run_and_the_same_attempt_goes_on_after_it() {
    let env = opened();
    let text = format!(
        "if [ -e $OUT/started ]; then git add half.txt; git commit -q -m half\n\
         git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT\n\
         else echo $$ > $OUT/started; echo half > half.txt; sleep 600; fi"
    );
    let agent = agent(&env, &text);
    let args = ["--as", "prep-agent", "--once", "--"];
    let args = [&args[..], &[agent.to_str().unwrap()]].concat();
    let mut running = Running::silent(worker(&env, &args));
    let half = env.root().join("repo.worktrees/87/half.txt");
    until("it runs", || half.exists());
    let at_once = |args: &[&str]| {
        let args = [args, &["--as", "orchestrator", "--reason", "no provider"]].concat();
        let mut command = env.program(&args);
        command
            .env_remove("GIT_AUTHOR_DATE")
            .env_remove("GIT_COMMITTER_DATE");
        env.run(command, &args, None).success();
    };
    at_once(&["pause", "--all", "--now"]);
    running.child.wait().unwrap();
    // A process that nobody waited for has no command line any more.
    let process = Path::new("/proc").join(said(&env, "started").trim());
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    assert!(line.is_empty(), "its program ended, too");
    assert_eq!(record(&env)["state"], "pending");
    let claim = ["claim", "87.1", "--as", "prep-agent"];
    env.handoff(&claim).exits(4).says("no provider");
    at_once(&["resume", "--all"]);
    let ran = work(&env, &[], &agent).success();
    assert_eq!(outcome(&ran).0, "handed_on");
    assert_eq!(record(&env)["attempt"], 1);
    assert!(half.exists(), "what it had done was there");
}

#[test]
fn the_next_worker_goes_on_where_one_was_killed() {
    let env = opened();
    let text = format!(
        "if [ -e $OUT/started ]; then cat > $OUT/prompt; git add half.txt; git commit -q -m half\n\
         git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT\n\
         else echo $$ > $OUT/started; echo half > half.txt; sleep 600; fi"
    );
    let agent = agent(&env, &text);
    let args = ["--as", "prep-agent", "--", agent.to_str().unwrap()];
    let mut running = Running::silent(worker(&env, &args));
    let half = env.root().join("repo.worktrees/87/half.txt");
    until("it runs", || half.exists());
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let first = said(&env, "started");
    // A process that nobody waited for has no command line any more.
    let runs = || {
        let line = fs::read(Path::new("/proc").join(first.trim()).join("cmdline"));
        line.is_ok_and(|line| !line.is_empty())
    };
    let ran = work(&env, &["--grace", "200ms"], &agent).success();
    assert_eq!(outcome(&ran).0, "handed_on");
    assert!(!runs());
    let prompt = said(&env, "prompt");
    assert!(
        prompt.contains("attempt 1") && prompt.contains("An earlier run of this work was cut off"),
        "{prompt}"
    );
    assert!(half.exists(), "what it left is still there");
    let list = env.handoff(&["work", "--list"]).success().stdout;
    assert!(
        list.contains("issue 87: nothing that is not elsewhere"),
        "{list}"
    );
}

#[test]
fn a_branch_that_a_person_has_checked_out_is_left_alone() {
    let env = opened();
    env.git(&env.repo(), &["switch", "-q", "-c", "handoff/87"]);
    let ran = work(&env, &[], &agent(&env, "touch $OUT/ran"));
    let (outcome, why) = outcome(&ran);
    assert_eq!(outcome, "blocked");
    let place = env.repo();
    assert!(
        why.starts_with(&format!(
            "branch handoff/87 is checked out in {}",
            place.display()
        )),
        "{why}"
    );
    assert!(!env.root().join("ran").exists());
    assert!(!env.root().join("repo.worktrees/87").exists());
}

#[test]
fn worktrees_of_a_submodule_are_beside_the_outermost_repository() {
    let env = opened();
    let modules = env.root().join("top/.git/modules/vendor");
    fs::create_dir_all(&modules).unwrap();
    let own = modules.join("lib");
    env.git(
        &env.repo(),
        &["init", "-q", "--separate-git-dir", own.to_str().unwrap()],
    );
    let text = format!("pwd > $OUT/place; git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT");
    work(&env, &[], &agent(&env, &text)).success();
    let place = env.root().join("top.vendor.lib.worktrees/87");
    assert_eq!(said(&env, "place").trim(), place.to_str().unwrap());
}

#[test]
fn worktrees_are_listed_and_nothing_that_only_they_have_is_removed_unasked() {
    let env = opened();
    let text = format!("echo note > note.txt; git handoff send {PREPARED}");
    work(&env, &[], &agent(&env, &text)).success();
    let place = env.root().join("repo.worktrees/87");
    let pruned = env.handoff(&["work", "--prune"]).success().stdout;
    assert_eq!(
        pruned,
        format!(
            "{}  issue 87: only here: 1 uncommitted file\n\
             remove one with what only it has: git handoff work --prune --discard 87\n",
            place.display()
        )
    );
    assert!(place.join("note.txt").exists());
    let pruned = env
        .handoff(&["work", "--prune", "--discard", "87"])
        .success()
        .stdout;
    assert_eq!(pruned, format!("{}  issue 87: removed\n", place.display()));
    assert!(!env.root().join("repo.worktrees").exists());
    assert_eq!(
        env.handoff(&["work", "--list"]).success().stdout,
        "no worktrees, and no branches of ended issues\n"
    );
}

#[test]
fn what_needs_no_mind_is_decided() {
    let env = opened();
    let text = format!(
        "if [ -e $OUT/once ]; then git handoff send {PREPARED}; else touch $OUT/once; exit 3; fi"
    );
    let ran = work(&env, &["--decide"], &agent(&env, &text));
    let data = &ran.json()["data"];
    let outcomes: Vec<&str> = { data["pieces"].as_array().unwrap().iter() }
        .map(|piece| piece["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(
        (outcomes, &data["decided"]),
        (vec!["failed", "handed_on"], &1.into()),
        "{}",
        ran.shown
    );
    assert_eq!(record(&env)["attempt"], 2);
}

#[test]
fn what_has_to_be_corrected_is_not_retried_as_it_is() {
    let env = with_protocol("orchestrator-specialist");
    let request = sample("orchestrator-specialist", "request", &[]);
    env.send(request.to_string()).success();
    env.claim("loan-list-21", "@react-specialist").success();
    let fail = ["fail", "loan-list-21.1", "--as", "@react-specialist"];
    let why = [
        "--code",
        "SCHEMA_VALIDATION_FAILED",
        "--message",
        "no",
        "--recoverable",
    ];
    env.handoff(&[&fail[..], &why].concat()).success();
    let tip = env.tip();
    let ran = test_support::agents::now(&env, &["work", "--decide", "--until-idle", "--json"]);
    let data = env.run(ran, &[], None).success().json()["data"].take();
    let why = data["undecided"][0]["why"].as_str().unwrap();
    assert!(
        why.contains("git handoff retry loan-list-21.1 --with FILE"),
        "{data}"
    );
    assert_eq!(env.tip(), tip);
}

/// Without an orchestrator, the person who opened an issue decides about it, not the worker. Only what
/// the agent may do itself is done: another attempt.
#[test]
fn nothing_is_decided_in_the_name_of_a_person() {
    let env = with_protocol("review");
    let send = [
        "send",
        "--issue",
        "7",
        "--to",
        "coder",
        "--as",
        "maintainer",
    ];
    let send = [
        &send[..],
        &[
            "--set",
            "summary=Do it",
            "--set",
            "findings.0.text=It fails",
        ],
    ]
    .concat();
    env.handoff(&send).success();
    env.handoff(&["claim", "7", "--as", "coder"]).success();
    let fail = [
        "fail",
        "7",
        "--as",
        "coder",
        "--message",
        "no",
        "--recoverable",
    ];
    env.handoff(&fail).success();
    let now = |args: &[&str]| {
        env.run(test_support::agents::now(&env, args), args, None)
            .success()
    };
    let decide = || now(&["work", "--decide", "--until-idle", "--json"]).json()["data"].take();
    assert_eq!(decide()["decided"], 1);
    let log = env.git(&env.repo(), &["log", "-1", "--format=%B", "handoffs"]);
    assert!(
        log.contains("Event: retry\n") && log.contains("By: coder\n"),
        "{log}"
    );
    now(&["claim", "7", "--as", "coder"]);
    now(&fail[..6]);
    let tip = env.tip();
    let data = decide();
    assert_eq!(data["decided"], 0, "{data}");
    let why = data["undecided"][0]["why"].as_str().unwrap();
    assert!(why.contains("it is for maintainer to decide"), "{data}");
    assert_eq!(env.tip(), tip);
}

#[test]
fn what_can_not_be_run_is_refused_before_anything_is_claimed() {
    let env = opened();
    let agent = agent(&env, "exit 0");
    let agent = agent.to_str().unwrap();
    let file = |text: &str| env.file("roles.toml", text);
    let plain = env.file("plain", "");
    let blocked = format!("{plain}/trees");
    let refused = |args: &[&str], expected: &str| {
        let ran = env.run(worker(&env, args), args, None);
        assert!(
            ran.status == 2 || ran.status == 9 || ran.status == 6 || ran.status == 4,
            "{}",
            ran.shown
        );
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.shown);
        assert!(ran.stderr.contains("hint: "), "{}", ran.shown);
        assert_eq!(record(&env)["state"], "pending");
    };
    let prep = ["--as", "prep-agent"];
    refused(&prep, "no command is given for prep-agent");
    refused(&["--", agent], "say which agent you are");
    refused(
        &["--as", "prep-agent", "--", "no-such-program"],
        "there is no such program",
    );
    refused(
        &["--as", "prep-agent", "--", "./no-such-program"],
        "there is no such program",
    );
    refused(&["--as", "nobody", "--", agent], "nobody is not an agent");
    refused(
        &["--as", "prep-agent", "--profile", "none"],
        "there is no profile \"none\"; there are amp, claude",
    );
    refused(
        &["--as", "prep-agent", "--worktrees", "trees", "--", agent],
        "is within the repository",
    );
    refused(
        &["--as", "prep-agent", "--worktrees", &blocked, "--", agent],
        "worktrees can't be made in",
    );
    refused(
        &[
            "--as",
            "prep-agent",
            "--in-place",
            "--jobs",
            "2",
            "--",
            agent,
        ],
        "2 jobs can't share one working tree",
    );
    refused(&["--file", "no-such-file"], "can't be read");
    refused(
        &["--file", &file("[[role]]\nagnet = \"x\"\n")],
        "unknown field `agnet`",
    );
    refused(
        &["--file", &file("[[role]]\nagent = \"prep-agent\"\n")],
        "no command is given for prep-agent",
    );
    refused(&["--file", &file("jobs = ")], "is not a file of roles");
    refused(&["--file", &file("")], "it has no [[role]]");
    let text =
        "[[role]]\nagent = \"prep-agent\"\nprofile = \"own\"\n[profile.own]\ntitle = \"Own\"\n";
    refused(
        &["--file", &file(text)],
        "profile \"own\": it has no `command`",
    );
    assert!(!env.root().join("repo.worktrees").exists());
}

#[test]
fn an_interrupted_worker_leaves_its_work_to_the_next() {
    let env = opened();
    let text = format!(
        "if [ -e $OUT/3 ]; then git handoff send {PREPARED}; exit; fi\n\
         for n in 1 2 3; do [ -e $OUT/$n ] || {{ touch $OUT/$n; exec sleep 600; }}; done"
    );
    let agent = agent(&env, &text);
    let args = ["--as", "prep-agent", "--", agent.to_str().unwrap()];
    for run in ["1", "2", "3"] {
        let mut running = Running::silent(worker(&env, &args));
        until("it runs", || env.root().join(run).exists());
        running.interrupt();
        let ended = running.child.wait().unwrap();
        assert_eq!(ended.signal(), Some(Signal::INT.as_raw()));
        assert_eq!(record(&env)["lease"]["worker"], "repo/1");
    }
    let ran = work(&env, &[], &agent).success();
    assert_eq!(outcome(&ran).0, "handed_on");
    assert_eq!(record(&env)["attempt"], 1);
    let worktrees = fs::read_dir(env.root().join("repo.worktrees")).unwrap();
    assert_eq!(worktrees.count(), 1, "each went on in the same one");
}

#[test]
fn commits_and_steps_reach_a_remote_by_a_relative_path() {
    let env = TestEnvironment::with_repository();
    env.git(env.root(), &["init", "-q", "--bare", "origin.git"]);
    env.git(&env.repo(), &["remote", "add", "origin", "../origin.git"]);
    env.git(&env.repo(), &["push", "-q", "origin", "main"]);
    env.handoff(&["init", "--remote", "origin", "--evidence", "off"])
        .success();
    env.send(opening(87)).success();
    let there = |branch: &str| env.git(&env.repo(), &["ls-remote", "origin", branch]);
    let text = format!(
        "echo work > work.txt; git add work.txt; git commit -q -m work\n\
         if [ -e $OUT/once ]; then git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT; else touch $OUT/once; exit 3; fi"
    );
    let agent = agent(&env, &text);
    let ran = work(&env, &[], &agent);
    assert_eq!(outcome(&ran).0, "failed");
    assert!(there("handoffs").starts_with(&env.tip()), "{}", ran.shown);
    retry(&env);
    let ran = work(&env, &[], &agent).success();
    assert_eq!(outcome(&ran).0, "handed_on");
    assert!(there("handoffs").starts_with(&env.tip()), "{}", ran.shown);
    let branch = env.git(&env.repo(), &["rev-parse", "handoff/87"]);
    assert!(
        there("handoff/87").starts_with(branch.trim()),
        "{}",
        ran.shown
    );
    let before = env.git(&env.repo(), &["rev-parse", "main"]);
    assert_ne!(branch, before, "its commit is on the branch");
}

#[test]
fn a_piece_of_work_fetches_only_what_it_needs() {
    let env = TestEnvironment::with_repository();
    env.git(env.root(), &["init", "-q", "--bare", "origin.git"]);
    env.git(&env.repo(), &["remote", "add", "origin", "../origin.git"]);
    env.git(&env.repo(), &["push", "-q", "origin", "main"]);
    env.handoff(&["init", "--remote", "origin", "--evidence", "off"])
        .success();
    env.send(opening(87)).success();
    let agent = agent(&env, &format!("git handoff send {PREPARED}"));
    let args = ["--as", "prep-agent", "--once", "--json", "--"];
    let args = [&args[..], &[agent.to_str().unwrap()]].concat();
    let mut traced = worker(&env, &args);
    traced.env("GIT_TRACE2_EVENT", env.root().join("trace"));
    let ran = env.run(traced, &args, None).success();
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let trace = said(&env, "trace");
    let started = trace
        .lines()
        .filter(|line| line.contains("\"event\":\"start\""));
    let fetches = started.filter(|line| line.contains("\"fetch\""));
    // For the claim, of the issue's branch and of the base.
    assert_eq!(fetches.count(), 3, "{trace}");
}

#[test]
fn a_bare_repository_that_git_takes_only_by_name_is_worked_in() {
    let env = opened();
    env.git(env.root(), &["clone", "-q", "--bare", "repo", "store.git"]);
    let own = env.root().join("home/.gitconfig");
    let config = fs::read_to_string(&own).unwrap();
    fs::write(&own, config + "[safe]\n\tbareRepository = explicit\n").unwrap();
    let text = format!("git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT");
    let agent = agent(&env, &text);
    let args = ["--as", "prep-agent", "--until-idle", "--json", "--"];
    let args = [&args[..], &[agent.to_str().unwrap()]].concat();
    let mut named = worker(&env, &args);
    named.env("GIT_DIR", env.root().join("store.git"));
    let ran = env.run(named, &args, None).success();
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
}

#[test]
fn a_worktree_that_a_person_made_in_its_folder_is_left_alone() {
    let env = opened();
    let place = env.root().join("repo.worktrees/87");
    let path = place.to_str().unwrap();
    env.git(&env.repo(), &["worktree", "add", "-q", "-b", "mine", path]);
    fs::write(place.join("notes.txt"), "mine").unwrap();
    let text = format!("pwd > $OUT/place; git handoff send {PREPARED}");
    work(&env, &[], &agent(&env, &text)).success();
    assert_eq!(said(&env, "place").trim(), format!("{path}.2"));
    assert_eq!(env.git(&place, &["branch", "--show-current"]), "mine\n");
    assert_eq!(fs::read_to_string(place.join("notes.txt")).unwrap(), "mine");
}

#[test]
fn a_worktree_whose_worker_was_killed_before_it_noted_how_it_was_made_is_used_and_removed() {
    let env = opened();
    work(&env, &[], &agent(&env, "exit 3"));
    retry(&env);
    let note = env.repo().join(".git/handoff/work/worktrees/87.json");
    let cut_off = || {
        let text = fs::read_to_string(&note).unwrap();
        let mut noted: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(noted["checkout"].is_object(), "{noted}");
        noted["checkout"].take();
        fs::write(&note, noted.to_string()).unwrap();
    };
    cut_off();
    let text = format!("pwd > $OUT/place; git handoff send {PREPARED}");
    let ran = work(&env, &[], &agent(&env, &text)).success();
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let place = env.root().join("repo.worktrees/87");
    assert_eq!(said(&env, "place").trim(), place.to_str().unwrap());
    cut_off();
    env.handoff(&["work", "--prune"]).success();
    assert!(!place.exists());
    // One of a person, who made it there in between, is left alone.
    let path = place.to_str().unwrap();
    env.git(&env.repo(), &["worktree", "add", "-q", "-b", "mine", path]);
    let noted = json!({"issue": "87", "path": place, "last": "87.2"});
    fs::write(&note, noted.to_string()).unwrap();
    let next = agent(&env, "pwd > $OUT/place; exit 3");
    work_as(&env, "implementer-agent", &next, &["--once"]).exits(1);
    assert_eq!(said(&env, "place").trim(), format!("{path}.2"));
    assert_eq!(env.git(&place, &["branch", "--show-current"]), "mine\n");
}

#[test]
fn a_contract_that_a_run_left_which_went_wrong_is_kept_and_not_sent() {
    let env = opened();
    let text = format!("git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT; exit 4");
    let ran = work(&env, &[], &agent(&env, &text));
    assert_eq!(
        outcome(&ran),
        ("failed".to_owned(), "agent.sh exited with 4".to_owned())
    );
    let kept = env.handoff(&["restore", "87.1"]).success().stdout;
    assert!(kept.contains("attached contract"), "{kept}");
}

#[test]
fn a_branch_that_would_be_an_option_of_git_is_none() {
    let env = opened();
    let text = format!(
        "git handoff send {}",
        PREPARED.replace("$GIT_HANDOFF_BRANCH", "-M")
    );
    let ran = work(&env, &[], &agent(&env, &text));
    if outcome(&ran).0 == "handed_on" {
        let roles = env.file(
            "roles.toml",
            "[[role]]\nagent = \"implementer-agent\"\ncommand = [\"true\"]\n",
        );
        let args = ["--file", &roles, "--once", "--json"];
        let ran = env.run(worker(&env, &args), &args, None);
        let (outcome, why) = outcome(&ran);
        assert_eq!(outcome, "failed");
        assert!(why.contains("is no name of a branch"), "{why}");
    }
    assert_eq!(
        env.git(&env.repo(), &["branch", "--show-current"]),
        "main\n"
    );
}

/// A ledger whose protocol has these budgets, in which issue 87 waits for prep-agent.
fn budgeted(budgets: serde_json::Value) -> TestEnvironment {
    let env = own("issue-to-pr", |protocol| {
        protocol["limits"]["budgets"] = budgets
    });
    env.send(opening(87)).success();
    env
}

#[test]
fn what_a_run_took_is_recorded_whoever_hands_the_work_on() {
    let env = opened();
    let report = r#"printf '{"model":"m","output_tokens":%s,"cost":0.5,"currency":"EUR"}' $1 > $GIT_HANDOFF_USAGE"#;
    let used = || {
        let record = stored(&env.data(&["show", "87.1"]));
        let all = record["usage"].as_array().cloned().unwrap_or_default();
        let all = all
            .iter()
            .map(|one| format!("{} {}", one["token"], one["models"]));
        all.collect::<Vec<_>>()
    };
    // It fails: with the failure.
    let failing = agent(&env, &format!("set 10\n{report}\nexit 3"));
    assert_eq!(outcome(&work(&env, &[], &failing)).0, "failed");
    let first = r#"1 [{"model":"m","output_tokens":10,"cost":0.5,"currency":"EUR"}]"#;
    assert_eq!(used(), [first]);
    retry(&env);
    // Its contract is refused first: both runs count. Then it hands the work on itself.
    let text = format!(
        "set 7\n{report}\nif [ ! -e $OUT/again ]; then\n  touch $OUT/again\n  echo '<handoff/>' > $GIT_HANDOFF_CONTRACT\n\
         else\n  git handoff send {PREPARED}\nfi"
    );
    let handing_on = agent(&env, &text);
    assert_eq!(outcome(&work(&env, &[], &handing_on)).0, "handed_on");
    let second = r#"2 [{"model":"m","output_tokens":14,"cost":1.0,"currency":"EUR"}]"#;
    assert_eq!(used(), [first, second]);
    env.assert_sound();
}

#[test]
fn a_profile_says_where_the_output_tells_what_was_used() {
    let env = opened();
    let script = agent(
        &env,
        "echo started\necho '{\"kind\": \"end\", \"tokens\": {\"in\": 5, \"out\": 6}, \"usd\": 0.125}'\nexit 1",
    );
    let roles = env.file(
        "roles.toml",
        format!(
            "[[role]]\nagent = \"prep-agent\"\nprofile = \"own\"\n\n[profile.own]\ncommand = [\"{}\"]\n\
             usage = [{{when = {{\"/kind\" = \"end\"}}, input_tokens = \"/tokens/in\", output_tokens = \"/tokens/out\", \
             cost = \"/usd\", currency = \"USD\"}}]\n",
            script.display()
        ),
    );
    let args = ["--file", &roles, "--until-idle", "--json"];
    env.run(worker(&env, &args), &args, None).exits(1);
    let models = &env.data(&["show", "87.1"])["record"]["usage"][0]["models"];
    assert_eq!(
        models.to_string(),
        r#"[{"input_tokens":5,"output_tokens":6,"cost":0.125,"currency":"USD"}]"#
    );
}

#[test]
fn a_run_ends_at_its_share_and_nothing_is_claimed_beyond_the_budget() {
    let env = budgeted(json!({
        "run": {"per": "run", "tokens": 100},
        "issue": {"per": "issue", "tokens": 150},
    }));
    let greedy = agent(
        &env,
        "echo '{\"output_tokens\": 160}' > $GIT_HANDOFF_USAGE\nsleep 600",
    );
    let (came_of_it, why) = outcome(&work(&env, &["--grace", "1s"], &greedy));
    assert_eq!(came_of_it, "failed");
    assert_eq!(
        why,
        "it used 160 of 100 tokens that were left per run (budget run)"
    );
    let failed = record(&env);
    assert_eq!(failed["transitions"][2]["failure"]["code"], "BUDGET_SPENT");
    retry(&env);
    let words = [
        "--as",
        "prep-agent",
        "--until-idle",
        "--",
        greedy.to_str().unwrap(),
    ];
    let ran = env.run(worker(&env, &words), &words, None).success();
    ran.says("prep-agent: 87.1 cannot be claimed: 160 tokens of 150 tokens per issue");
    assert!(record(&env)["lease"].is_null());
}

#[test]
fn a_report_that_can_not_be_read_when_a_run_has_ended_counts_as_spent() {
    let env = budgeted(json!({"run": {"per": "run", "tokens": 100}}));
    let new = format!("git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT");
    let unreadable = agent(
        &env,
        &format!("{new}\necho '{{\"output_' > $GIT_HANDOFF_USAGE"),
    );
    let (came_of_it, why) = outcome(&work(&env, &[], &unreadable));
    assert_eq!(came_of_it, "failed", "{why}");
    assert!(
        why.starts_with(
            "its usage report can't be read, so the rest of the budget counts as used: "
        ),
        "{why}"
    );
    let failure = record(&env)["transitions"][2]["failure"].clone();
    assert_eq!(failure["code"], "BUDGET_SPENT");
    retry(&env);
    let readable = agent(
        &env,
        &format!("{new}\necho '{{\"output_tokens\": 9}}' > $GIT_HANDOFF_USAGE"),
    );
    let ran = work(&env, &[], &readable).success();
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let used = record(&env)["usage"].to_string();
    assert!(used.contains("\"output_tokens\":9"), "{used}");
    env.assert_sound();
}

#[test]
fn what_a_command_leaves_in_place_of_its_files_stops_no_worker() {
    let env = opened();
    let odd = [
        ("ln -sf /dev/zero", "it is a link, not a regular file"),
        ("mkfifo", "it is not a regular file"),
        ("mkdir", "it is not a regular file"),
    ];
    for (made, why) in odd {
        let make = |file: &str| {
            let target = if made == "ln -sf /dev/zero" {
                format!("{made} ${file}")
            } else {
                format!("{made} \"${file}\"")
            };
            format!("rm -rf \"${file}\"\n{target}")
        };
        let script = format!(
            "{}\n{}",
            make("GIT_HANDOFF_USAGE"),
            make("GIT_HANDOFF_CONTRACT")
        );
        let command = agent(&env, &script);
        let words = [
            "--as",
            "prep-agent",
            "--until-idle",
            "--mend",
            "1",
            "--",
            command.to_str().unwrap(),
        ];
        let ran = env.run(worker(&env, &words), &words, None).exits(1);
        let ran = ran.says(&format!("its usage report is not recorded: {why}"));
        ran.says(&format!(
            "its contract was refused: the contract can't be read: {why}"
        ));
        assert!(record(&env)["usage"].is_null());
        retry(&env);
    }
    // What is not a report is named, and what the output has counts instead.
    for (report, why) in [
        ("{\"cost\": 1}", "cost and currency"),
        ("not JSON", "not JSON"),
        ("", "EOF"),
    ] {
        let command = agent(
            &env,
            &format!("printf '{report}' > $GIT_HANDOFF_USAGE\nexit 1"),
        );
        let words = [
            "--as",
            "prep-agent",
            "--until-idle",
            "--",
            command.to_str().unwrap(),
        ];
        let ran = env.run(worker(&env, &words), &words, None).exits(1);
        ran.says("its usage report is not recorded").says(why);
        retry(&env);
    }
    let big = agent(&env, "head -c 70000 /dev/zero > $GIT_HANDOFF_USAGE\nexit 1");
    let words = [
        "--as",
        "prep-agent",
        "--until-idle",
        "--",
        big.to_str().unwrap(),
    ];
    let ran = env.run(worker(&env, &words), &words, None).exits(1);
    ran.says("it has more than 65536 bytes");
    env.assert_sound();
}

/// A clone of a remote, with the example beside it and a ledger; and the issues, which are opened.
fn example(issues: &[u32]) -> (TestEnvironment, PathBuf) {
    let env = TestEnvironment::with_repository();
    let origin = bare(&env, "origin.git");
    let address = origin.to_str().unwrap();
    env.git(
        &env.repo(),
        &["push", "-q", address, "HEAD:refs/heads/main"],
    );
    let here = clone(&env, address, "here");
    for name in ["agent.sh", "loop.sh", "roles.toml"] {
        let from = test_support::project().join("examples/work").join(name);
        fs::copy(from, env.root().join(name)).unwrap();
    }
    env.handoff_in(&here, &["init", "--remote", "origin"])
        .success();
    for issue in issues {
        let address = format!("issue_url=https://github.com/octo/parcels/issues/{issue}");
        let issue = issue.to_string();
        let mut args = vec!["send", "--issue", &issue, "--to", "prep-agent"];
        args.extend(["--as", "issue-manager", "--set", &address]);
        for field in [
            "issue_title=A part",
            "type=feature",
            "priority=high",
            "requirements=It works",
            "summary=A part",
        ] {
            args.extend(["--set", field]);
        }
        env.handoff_in(&here, &args).success();
    }
    (env, here)
}

/// Insists that an issue is completed and its work merged.
#[track_caller]
fn is_merged(env: &TestEnvironment, here: &Path, issue: u32) {
    let status = env.handoff_in(here, &["status", &issue.to_string(), "--json"]);
    assert_eq!(
        status.json()["data"]["issue"]["status"],
        "completed",
        "{}",
        status.shown
    );
    env.git(here, &["fetch", "-q", "origin"]);
    env.git(
        here,
        &[
            "cat-file",
            "-e",
            &format!("origin/main:changes/{issue}.txt"),
        ],
    );
}

#[test]
fn the_example_takes_issues_to_their_merge_by_the_worker_and_by_a_loop() {
    let (env, here) = example(&[87, 88]);
    let words = ["--file", "../roles.toml", "--until-idle", "--json"];
    let mut command = worker(&env, &words);
    command.current_dir(&here);
    let ran = env.run(command, &words, None).success();
    let pieces = ran.json()["data"]["pieces"].take();
    assert_eq!(pieces.as_array().unwrap().len(), 10, "{}", ran.shown);
    is_merged(&env, &here, 87);
    is_merged(&env, &here, 88);
    let left = env.handoff_in(&here, &["work", "--list", "--json"]).json();
    assert_eq!(left["data"]["worktrees"], json!([]));

    let (env, here) = example(&[87]);
    let agent = env.root().join("agent.sh");
    let roles = [
        "prep-agent",
        "implementer-agent",
        "reviewer-agent",
        "validator-agent",
        "closer-agent",
    ];
    for role in roles {
        let mut command = env.command("sh");
        command
            .arg("../loop.sh")
            .arg(role)
            .arg(&agent)
            .current_dir(&here);
        command
            .env_remove("GIT_AUTHOR_DATE")
            .env_remove("GIT_COMMITTER_DATE");
        env.run(command, &[role], None).success();
    }
    is_merged(&env, &here, 87);
}

#[test]
fn a_run_without_a_result_fails_the_work_in_each_protocol() {
    let openings = [
        (
            "issue-to-pr",
            opening(87).to_string(),
            "87.1",
            "prep-agent",
            "EXIT",
        ),
        (
            "orchestrator-specialist",
            sample("orchestrator-specialist", "request", &[]).to_string(),
            "loan-list-21.1",
            "@react-specialist",
            "PROCESSING_ERROR (EXIT)",
        ),
        (
            "task-breakdown",
            sample("task-breakdown", "environment-to-planning", &[]).to_string(),
            "environment.1",
            "task-orchestrator",
            "EXIT",
        ),
        (
            "delegation",
            asks(WRITER, RESEARCH, &[]),
            &traced(1),
            RESEARCH,
            "EXIT",
        ),
        (
            "directive",
            sample(
                "directive",
                "handoff",
                &[("/session_id", json!("3f0c9a52"))],
            )
            .to_string(),
            "3f0c9a52.1",
            "MetaGPT",
            "EXIT",
        ),
    ];
    for (protocol, contract, id, agent, code) in openings {
        let env = with_protocol(protocol);
        let now = |args: &[&str], input: Option<&[u8]>| {
            let mut command = env.program(args);
            command
                .env_remove("GIT_AUTHOR_DATE")
                .env_remove("GIT_COMMITTER_DATE");
            env.run(command, args, input)
        };
        now(&["send", "-"], Some(contract.as_bytes())).success();
        let args = [
            "--as", agent, "--once", "--json", "--", "sh", "-c", "exit 3",
        ];
        let ran = env.run(worker(&env, &args), &args, None);
        let (outcome, why) = outcome(&ran);
        assert_eq!(outcome, "failed", "{protocol}: {why}\n{}", ran.shown);
        let record = stored(&env.data(&["show", id]));
        assert_eq!(record["state"], "failed", "{protocol}");
        let shown = env.handoff(&["show", id]).success().stdout;
        assert!(
            shown.contains(&format!("{code}: sh exited with 3")),
            "{protocol}: {shown}"
        );
        env.assert_sound();
    }
}

#[test]
fn a_lease_that_another_clock_dated_is_given_its_whole_time() {
    let claimed = |minutes: u64| {
        let env = opened();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let at = now.as_secs() - minutes * 60;
        let args = ["claim", "87.1", "--as", "prep-agent", "--lease", "2m"];
        let mut command = env.program(&args);
        command.env("GIT_AUTHOR_DATE", format!("@{at} +0000"));
        command.env_remove("GIT_COMMITTER_DATE");
        command.env("GIT_HANDOFF_WORKER", "elsewhere");
        env.run(command, &args, None).success();
        let args = ["work", "--decide", "--until-idle", "--json"];
        let mut command = env.program(&args);
        command
            .env_remove("GIT_AUTHOR_DATE")
            .env_remove("GIT_COMMITTER_DATE");
        env.run(command, &args, None).success().json()["data"].clone()
    };
    let data = claimed(10);
    let why = data["undecided"][0]["why"].as_str().unwrap();
    assert!(why.contains("may be ahead: it is given 1"), "{data}");
    assert_eq!(data["decided"], 0, "{data}");
    // No clocks are that far apart.
    assert_ne!(claimed(60)["decided"], 0);
}
