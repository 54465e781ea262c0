//! Waiting for what others do, and choosing what to take up.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use test_support::contracts::{Format, implementer_error, opening, prepared, sample};
use test_support::files::script;
use test_support::running::Running;
use test_support::workflow::{run, workflow};
use test_support::{Ran, TestEnvironment};

/// A wait, which says on standard error when it has begun.
fn waiting(env: &TestEnvironment, args: &[&str]) -> Running {
    Running::of(env.program(&[&["wait", "--timeout", "60s"], args].concat()))
}

fn opened() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env
}

fn claimed() -> TestEnvironment {
    let env = opened();
    env.claim("87.1", "prep-agent").success();
    env
}

const COMPLETE: [&str; 6] = ["complete", "87.1", "--as", "prep-agent", "--reason", "done"];
const FAIL: [&str; 6] = ["fail", "87.1", "--as", "prep-agent", "--reason", "no disk"];

#[test]
fn what_is_done_already_ends_the_wait_at_once() {
    let env = claimed();
    env.handoff(&COMPLETE).success();
    let ran = env.handoff(&["wait", "87.1"]).success();
    insta::assert_snapshot!(ran.shown, @"
    $ git handoff wait 87.1
    87.1 issue-manager → prep-agent: completed
      2026-03-02 09:07:00Z complete by prep-agent → completed
          | done
    ");
    let data = env.data(&["wait", "87.1"]);
    let target = &data["targets"][0];
    assert_eq!(target["handoff"]["id"], "87.1");
    assert_eq!(target["handoff"]["state"], "completed");
    assert_eq!(target["outcome"], "completed");
    assert_eq!(target["handoff"]["id"], "87.1");
    assert_eq!(data["commit"], env.tip());
}

#[test]
fn a_wait_ends_when_the_handoff_is_completed() {
    let env = opened();
    let wait = waiting(&env, &["87.1"]).waits();
    env.claim("87.1", "prep-agent").success();
    env.handoff(&COMPLETE).success();
    let (stdout, _) = wait.ends(0);
    assert!(
        stdout.starts_with("87.1 issue-manager → prep-agent: completed\n"),
        "{stdout}"
    );
}

#[test]
fn a_handoff_that_is_handed_on_is_completed() {
    let env = claimed();
    let wait = waiting(&env, &["87.1"]).waits();
    env.send(prepared(87)).success();
    wait.ends(0);
}

#[test]
fn failed_rejected_and_cancelled_are_no() {
    let env = claimed();
    let wait = waiting(&env, &["87.1"]).waits();
    let json = env.program(&["wait", "--timeout", "60s", "87.1", "--json"]);
    let json = Running::silent(json);
    env.handoff(&FAIL).success();
    let (stdout, _) = wait.ends(1);
    assert!(stdout.contains("FAILED: no disk"), "{stdout}");
    let (stdout, stderr) = json.ends(1);
    assert_eq!(stderr, "");
    let document: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["ok"], false);
    assert_eq!(document["error"]["code"], "wait_failed");
    assert_eq!(document["error"]["message"], "87.1 is failed");
    assert_eq!(document["data"]["targets"][0]["handoff"]["state"], "failed");
    let shown = env.handoff(&["wait", "87.1"]).exits(1).shown;
    insta::assert_snapshot!(shown, @"
    $ git handoff wait 87.1
    87.1 issue-manager → prep-agent: failed
      2026-03-02 09:09:00Z fail by prep-agent → failed
          FAILED: no disk (not recoverable)
    --- stderr
    next: git handoff show 87.1
    --- exit 1
    ");

    for (event, agent) in [("reject", "prep-agent"), ("cancel", "issue-manager")] {
        let env = opened();
        let wait = waiting(&env, &["87.1"]).waits();
        let args = [event, "87.1", "--as", agent, "--reason", "not now"];
        env.handoff(&args).success();
        let (stdout, _) = wait.ends(1);
        assert!(stdout.contains("not now"), "{stdout}");
    }
}

#[test]
fn a_question_ends_the_wait_only_where_that_is_asked_for() {
    let env = claimed();
    let patient = waiting(&env, &["87.1"]);
    let wait = waiting(&env, &["87.1", "--blocked"]).waits();
    let block = [
        "block",
        "87.1",
        "--as",
        "prep-agent",
        "--reason",
        "which disk?",
    ];
    env.handoff(&block).success();
    let (stdout, _) = wait.ends(1);
    assert!(stdout.contains("which disk?"), "{stdout}");
    let patient = patient.waits();
    env.handoff(&["answer", "87.1", "the second", "--as", "orchestrator"])
        .success();
    env.claim("87.1", "prep-agent").success();
    env.handoff(&COMPLETE).success();
    patient.ends(0);
}

#[test]
fn time_that_is_up_exits_7_and_says_where_things_stand() {
    let env = claimed();
    let shown = env
        .handoff(&["wait", "87.1", "--timeout", "500ms"])
        .exits(7);
    insta::assert_snapshot!(shown.shown, @"
    $ git handoff wait 87.1 --timeout 500ms
    --- stderr
    waiting for changes of refs/heads/handoffs
    error: timed out: 87.1 is in_progress
    hint: nothing was changed; run the command again to keep waiting; see `git handoff explain timed_out`
    --- exit 7
    ");
    let ran = env.handoff(&["wait", "87.1", "87", "--timeout", "50ms", "--json"]);
    let document = ran.exits(7).json();
    assert_eq!(document["error"]["code"], "timed_out");
    assert_eq!(
        document["data"]["targets"][0]["handoff"]["state"],
        "in_progress"
    );
    assert_eq!(document["data"]["targets"][1]["outcome"], "waiting");
}

#[test]
fn several_end_together_and_any_ends_with_the_first() {
    let env = claimed();
    env.send(opening(88)).success();
    let all = waiting(&env, &["87.1", "88.1"]);
    let any = waiting(&env, &["87.1", "88.1", "--any"]).waits();
    env.handoff(&COMPLETE).success();
    let (stdout, _) = any.ends(0);
    assert!(
        stdout.contains("87.1") && !stdout.contains("88.1"),
        "{stdout}"
    );
    let all = all.waits();
    env.handoff(&["reject", "88.1", "--as", "prep-agent", "--reason", "no"])
        .success();
    let (stdout, _) = all.ends(1);
    assert!(
        stdout.contains("87.1") && stdout.contains("88.1"),
        "{stdout}"
    );
}

#[test]
fn an_inbox_ends_the_wait_when_something_can_be_claimed() {
    let env = TestEnvironment::with_ledger();
    let there = ["wait", "--inbox", "--as", "prep-agent"];
    let wait = waiting(&env, &there[1..]).waits();
    env.send(opening(87)).success();
    let (stdout, _) = wait.ends(0);
    assert_eq!(stdout, "87.1 issue-manager → prep-agent: pending\n");
    let target = &env.data(&there)["targets"][0];
    assert_eq!(target["handoff"]["id"], "87.1");
    assert_eq!(target["agent"], "prep-agent");
    assert_eq!(target["handoff"]["state"], "pending");
    // What is there already, and then nothing more.
    insta::assert_snapshot!(env.handoff(&there).success().shown, @"
    $ git handoff wait --inbox --as prep-agent
    87.1 issue-manager → prep-agent: pending
    --- stderr
    next: git handoff claim --next --as prep-agent
    ");
    env.claim("87.1", "prep-agent").success();
    let none = [&there[..], &["--timeout", "50ms"]].concat();
    env.handoff(&none)
        .exits(7)
        .says("nothing waits for prep-agent");
    env.handoff(&["wait", "--inbox", "--as", "nobody"])
        .exits(4)
        .says("nobody is not an agent");
    env.handoff(&["wait", "--inbox"]).exits(2);
}

#[test]
fn an_issue_ends_when_it_is_completed_or_when_nothing_in_it_moves() {
    let env = TestEnvironment::with_ledger();
    let steps = workflow(|_| Format::Xml);
    let (last, before) = steps.split_last().unwrap();
    run(&env, before);
    let wait = waiting(&env, &["87"]).waits();
    run(&env, std::slice::from_ref(last));
    let (stdout, _) = wait.ends(0);
    assert_eq!(stdout, "issue 87 is completed\n");

    // A failure that is reported goes on with whoever decides about it.
    let env = claimed();
    env.send(prepared(87)).success();
    env.claim("87.2", "implementer-agent").success();
    let wait = waiting(&env, &["87"]).waits();
    env.send(implementer_error(Format::Json, 87)).success();
    env.claim("87.3", "orchestrator").success();
    let complete = [
        "complete",
        "87.3",
        "--as",
        "orchestrator",
        "--reason",
        "seen",
    ];
    env.handoff(&complete).success();
    let (stdout, stderr) = wait.ends(1);
    assert_eq!(stdout, "issue 87 cannot continue: 87.2\n");
    assert_eq!(stderr, "next: git handoff status 87\n");
}

#[test]
fn what_is_not_there_is_not_waited_for() {
    let env = opened();
    env.handoff(&["wait", "99"])
        .exits(6)
        .says("there is no issue 99");
    env.handoff(&["wait", "87.9"]).exits(6).says("87.9");
    env.handoff(&["wait", "../87"]).exits(2);
    env.handoff(&["wait"]).exits(2);
    env.handoff(&["wait", "87", "--timeout", "0s"]).exits(7);
    for bad in ["5", "soon", "99999999999999999999s", "20years"] {
        env.handoff(&["wait", "87", "--timeout", bad])
            .exits(2)
            .says("--timeout <DURATION>");
    }
    env.handoff(&["wait", "87", "--poll", "1s"]).exits(2);
    let other = TestEnvironment::with_repository();
    other.handoff(&["wait", "87"]).exits(9);
}

#[test]
fn refs_that_are_packed_before_and_meanwhile_are_watched() {
    for branch in ["handoffs", "team/agents/ledger"] {
        let env = TestEnvironment::with_repository();
        let on = |args: &[&str]| env.handoff(&[args, &["--branch", branch][..]].concat());
        on(&["init"]).success();
        let file = env.file("87.xml", opening(87));
        on(&["send", &file]).success();
        env.git(&env.repo(), &["pack-refs", "--all"]);
        let folder = env.repo().join(".git/refs/heads").join(branch);
        assert!(!folder.exists(), "the ref is packed");
        let wait = waiting(&env, &["87.1", "--branch", branch]).waits();
        on(&["claim", "87.1", "--as", "prep-agent"]).success();
        env.git(&env.repo(), &["pack-refs", "--all"]);
        on(&COMPLETE).success();
        wait.ends(0);
        // Moved in packed-refs alone.
        let wait = waiting(&env, &["--inbox", "--as", "prep-agent", "--branch", branch]);
        let file = env.file("88.xml", opening(88));
        on(&["send", &file]).success();
        env.git(&env.repo(), &["pack-refs", "--all"]);
        wait.ends(0);
    }
}

#[test]
fn a_linked_worktree_waits_for_the_ledger_that_it_shares() {
    let env = claimed();
    let linked = env.root().join("linked");
    env.git(
        &env.repo(),
        &["worktree", "add", "-q", linked.to_str().unwrap()],
    );
    let mut command = env.program(&["wait", "87.1", "--timeout", "60s"]);
    command.current_dir(&linked);
    let wait = Running::of(command).waits();
    env.handoff(&COMPLETE).success();
    wait.ends(0);
}

#[test]
fn a_branch_that_is_deleted_ends_the_wait() {
    let env = claimed();
    let wait = waiting(&env, &["87.1"]).waits();
    env.git(&env.repo(), &["update-ref", "-d", "refs/heads/handoffs"]);
    let (_, stderr) = wait.ends(9);
    assert!(stderr.contains("there is no branch handoffs"), "{stderr}");
}

/// A clone that has nothing of the ledger, with the other side's ledger as remote
/// `origin`.
fn with_remote() -> (TestEnvironment, String) {
    let env = claimed();
    let bare = env.root().join("bare.git");
    let bare = bare.to_str().unwrap().to_owned();
    env.git(&env.repo(), &["init", "-q", "--bare", &bare]);
    env.git(&env.repo(), &["push", "-q", &bare, "main", "handoffs"]);
    let clone = env.root().join("clone");
    let args = ["clone", "-q", "--single-branch", "-b", "main", &bare];
    env.git(
        env.root(),
        &[&args[..], &[clone.to_str().unwrap()]].concat(),
    );
    // Every fetch that may write refs would write this one.
    let refspec = "+refs/heads/*:refs/remotes/origin/*";
    env.git(&clone, &["config", "remote.origin.fetch", refspec]);
    (env, bare)
}

fn away(env: &TestEnvironment, args: &[&str]) -> Command {
    let mut command = env.program(&[&["wait"][..], args].concat());
    command.current_dir(env.root().join("clone"));
    command
}

#[test]
fn a_remote_is_looked_at_and_only_its_tracking_ref_is_written() {
    let (env, bare) = with_remote();
    let clone = env.root().join("clone");
    let state = || {
        let refs = env.git(&clone, &["for-each-ref"]);
        let tracking = "refs/handoff/remotes/origin/handoffs";
        let others = refs.lines().filter(|line| !line.ends_with(tracking));
        let refs: Vec<String> = others.map(str::to_owned).collect();
        let mut files = BTreeSet::new();
        for entry in fs::read_dir(clone.join(".git")).unwrap() {
            files.insert(entry.unwrap().file_name());
        }
        // What the program's own processes queue at.
        files.remove(OsStr::new("handoff"));
        let config = fs::read_to_string(clone.join(".git/config")).unwrap();
        (refs, files, config)
    };
    let before = state();
    let args = [
        "87.1",
        "--remote",
        "origin",
        "--poll",
        "100ms",
        "--timeout",
        "60s",
    ];
    let wait = Running::of(away(&env, &args)).waits();
    // More than one thing happens there while it waits.
    env.send(opening(88)).success();
    env.git(&env.repo(), &["push", "-q", &bare, "handoffs"]);
    env.handoff(&COMPLETE).success();
    env.git(&env.repo(), &["push", "-q", &bare, "handoffs"]);
    let (stdout, _) = wait.ends(0);
    assert!(
        stdout.contains("87.1 issue-manager → prep-agent: completed"),
        "{stdout}"
    );
    assert_eq!(state(), before);
    let fsck = env.git_any(&clone, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(fsck.status, 0, "{}", fsck.stderr);
}

#[test]
fn a_remote_that_does_not_answer_does_not_outlast_the_timeout() {
    let (env, bare) = with_remote();
    let args = [
        "87.1",
        "--remote",
        "origin",
        "--poll",
        "50ms",
        "--timeout",
        "600ms",
    ];
    let on = |command: Command| env.run(command, &args, None);
    on(away(&env, &args)).exits(7).says("87.1 is in_progress");
    fs::rename(&bare, format!("{bare}.gone")).unwrap();
    let ran = on(away(&env, &args)).exits(7);
    assert_eq!(ran.stderr.matches("trying on").count(), 1, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("the remote could not be read: git says"),
        "{}",
        ran.stderr
    );

    // A git that hangs where it asks the remote, with a child of its own that keeps the pipes open.
    let bin = env.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let pids = env.root().join("pids");
    let path = std::env::var("PATH").unwrap();
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *' for-each-ref '*|*' symbolic-ref '*) PATH='{path}' exec git \"$@\";; esac\n\
         sleep 1000 &\necho $! >> '{}'\nwait\n",
        pids.display()
    );
    script(&bin.join("git"), text);
    let mut command = away(&env, &args);
    command.env("PATH", format!("{}:{path}", bin.display()));
    on(command).exits(7).says("git did not answer in time");
    for pid in fs::read_to_string(&pids).unwrap().lines() {
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let runs = !status.is_empty() && !status.contains(") Z ");
        assert!(
            !runs || !cfg!(target_os = "linux"),
            "{pid} was left behind: {status}"
        );
    }
}

#[test]
fn a_remote_that_is_none_is_refused() {
    let (env, _) = with_remote();
    let on = |args: &[&str]| env.run(away(&env, args), args, None);
    on(&["87.1", "--remote", "upstream"])
        .exits(2)
        .says("there is no remote");
    on(&["87.1", "--remote=--upload-pack=x"]).exits(2);
    on(&["87.1", "--remote", "origin", "--branch", "ledger"])
        .exits(9)
        .says("has no branch ledger");
    on(&["99", "--remote", "origin"]).exits(6);
}

#[test]
fn an_interrupted_wait_on_a_remote_leaves_nothing_behind() {
    let (env, _) = with_remote();
    let args = ["87.1", "--remote", "origin", "--timeout", "60s"];
    let wait = Running::of(away(&env, &args)).waits();
    wait.signal(Signal::TERM);
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(wait.end().0.signal(), Some(15));
}

/// The program with the system's clock.
fn by_the_clock(env: &TestEnvironment, args: &[&str]) -> Command {
    let mut command = env.program(args);
    command.env_remove("GIT_AUTHOR_DATE");
    command.env_remove("GIT_COMMITTER_DATE");
    command
}

#[test]
fn a_lease_that_runs_out_ends_the_wait_before_anyone_records_it() {
    let env = opened();
    let claim = ["claim", "87.1", "--as", "prep-agent", "--lease", "2s"];
    env.run(by_the_clock(&env, &claim), &claim, None).success();
    let before = env.tip();
    let wait =
        |targets: &[&str]| by_the_clock(&env, &[&["wait", "--timeout", "60s"], targets].concat());
    let handoff = Running::silent(wait(&["87.1", "--json"]));
    let issue = Running::of(wait(&["87"]));
    let (stdout, _) = handoff.ends(1);
    let document: Value = serde_json::from_str(&stdout).unwrap();
    let target = &document["data"]["targets"][0];
    assert_eq!(target["outcome"], "failed");
    assert_eq!(target["handoff"]["expired"], true);
    assert_eq!(target["handoff"]["state"], "in_progress");
    let told = "87.1 is failed [TIMEOUT]: its lease ran out";
    assert_eq!(document["error"]["message"], told);
    let (stdout, _) = issue.ends(1);
    assert_eq!(stdout, "issue 87 cannot continue: 87.1\n");
    assert_eq!(env.tip(), before, "nothing was written");
}

/// A ledger under a protocol whose failed handoffs can be claimed again later.
fn delaying(seconds: u64) -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    let folder = env.root().join("own");
    let shown = folder.to_str().unwrap();
    env.handoff(&["protocol", "copy", "issue-to-pr", shown])
        .success();
    let file = folder.join("protocol.json");
    let mut protocol: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    protocol["limits"]["retry"] =
        serde_json::json!({ "max_retries": 3, "delays_seconds": [seconds] });
    fs::write(&file, protocol.to_string()).unwrap();
    env.handoff(&["init", "--protocol", shown]).success();
    env
}

fn retried(env: &TestEnvironment) {
    let run = |args: &[&str]| env.run(by_the_clock(env, args), args, None).success();
    let file = env.file("87.xml", opening(87));
    run(&["send", &file]);
    run(&["claim", "87.1", "--as", "prep-agent"]);
    let failure = [
        "--code",
        "DOWN",
        "--message",
        "registry down",
        "--recoverable",
    ];
    run(&[&["fail", "87.1", "--as", "prep-agent"], &failure[..]].concat());
    run(&["retry", "87.1", "--as", "orchestrator", "--reason", "again"]);
}

#[test]
fn what_may_begin_later_is_skipped_until_then_and_then_ends_the_wait() {
    let env = delaying(3600);
    retried(&env);
    let run = |args: &[&str]| env.run(by_the_clock(&env, args), args, None);
    let next = ["claim", "--next", "--as", "prep-agent"];
    run(&next)
        .exits(6)
        .says("nothing waits for prep-agent that can be claimed yet")
        .says("hint: 87.1 can be claimed from ");
    run(&["wait", "--inbox", "--as", "prep-agent", "--timeout", "50ms"]).exits(7);
    // What came later and may begin is taken.
    let file = env.file("88.xml", opening(88));
    run(&["send", &file]).success();
    run(&next).success().says("88.1 issue-manager");

    let env = delaying(3);
    retried(&env);
    let wait = ["wait", "--inbox", "--as", "prep-agent", "--timeout", "60s"];
    let (stdout, _) = Running::of(by_the_clock(&env, &wait)).ends(0);
    assert!(stdout.starts_with("87.1 "), "{stdout}");
    env.run(by_the_clock(&env, &next), &next, None)
        .success()
        .says("87.1 issue-manager");
}

fn next(env: &TestEnvironment) -> Ran {
    env.handoff(&["claim", "--next", "--as", "prep-agent"])
}

/// More than a folder holds undivided, of three priorities, sent in turn.
#[test]
fn the_most_urgent_of_very_many_comes_first_then_the_oldest() {
    let env = TestEnvironment::with_ledger();
    let mut wanted = Vec::new();
    for issue in 1..=150_u32 {
        let priority = ["medium", "low", "critical"][issue as usize % 3];
        let text = sample("issue-manager-to-prep-agent", Format::Json, issue);
        let text = text.replace("\"medium\"", &format!("\"{priority}\""));
        env.send(text).success();
        wanted.push((
            ["critical", "medium", "low"]
                .iter()
                .position(|p| *p == priority),
            issue,
        ));
    }
    wanted.sort();
    let open = env.git(
        &env.repo(),
        &["ls-tree", "-d", "--name-only", "handoffs:open/prep-agent"],
    );
    assert!(open.lines().count() > 1, "it is divided: {open}");
    env.assert_sound();
    let inbox = ["inbox", "--as", "prep-agent", "--limit", "2"];
    env.handoff(&inbox)
        .success()
        .says("2 of 150 shown; the rest: git handoff ");
    let first = env.data(&inbox);
    assert_eq!(
        (first["total"].as_u64(), &first["handoffs"][1]["id"]),
        (Some(150), &"5.1".into())
    );
    let all = env.data(&["inbox", "--as", "prep-agent", "-n", "0"]);
    assert_eq!(all["handoffs"].as_array().unwrap().len(), 150);
    assert!(all["cursor"].is_null());
    for (_, issue) in wanted {
        let id = format!("{issue}.1 issue-manager");
        next(&env).success().says(&id);
    }
    next(&env).exits(6).says("nothing waits for prep-agent");
    env.assert_sound();
}
