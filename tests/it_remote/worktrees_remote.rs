//! Agents in linked worktrees of one clone share its ledger, and its looks at the
//! remote.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::team::commits_in;
use test_support::until;

use crate::clones::is_in_queue;

/// A ledger with a remote, in a repository with these worktrees beside it.
fn with_worktrees(names: &[&str]) -> (TestEnvironment, Vec<PathBuf>) {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    env.git(env.root(), &["init", "-q", "--bare", "origin.git"]);
    env.git(&repo, &["remote", "add", "origin", "../origin.git"]);
    env.handoff(&["init", "--remote", "origin"]).success();
    let mut folders = vec![repo.clone()];
    for name in names {
        let folder = env.root().join(name);
        let add = ["worktree", "add", "-q", "-b", name];
        let mut add = add.to_vec();
        add.push(folder.to_str().unwrap());
        env.git(&repo, &add);
        folders.push(folder);
    }
    (env, folders)
}

/// A program that sends, not started yet.
fn sender(env: &TestEnvironment, folder: &PathBuf, issue: u32, more: &[&str]) -> Command {
    let contract = env.file(&format!("{issue}.xml"), opening(issue));
    let mut args = vec!["send", &contract];
    args.extend(more);
    let mut command = env.program(&args);
    command.current_dir(folder).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The file at which the processes of the clone queue for the remote.
fn turn(env: &TestEnvironment) -> File {
    let path = env.repo().join(".git/handoff/remote.lock");
    File::options().read(true).write(true).open(path).unwrap()
}

fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn agents_in_linked_worktrees_share_one_ledger() {
    let (env, folders) = with_worktrees(&["left", "right"]);
    env.run(sender(&env, &folders[1], 1, &[]), &["send"], None)
        .success();
    let claim = ["claim", "1.1", "--as", "prep-agent"];
    env.handoff_in(&folders[2], &claim).success();
    env.handoff_in(&folders[0], &["claim", "1.1", "--as", "prep-agent"])
        .exits(5);
    for folder in &folders {
        env.handoff_in(folder, &["show", "1.1"])
            .success()
            .says("in_progress");
        let status = env.git(folder, &["status", "--porcelain"]);
        assert_eq!(status, "");
    }
    assert_eq!(commits_in(&env, &env.root().join("origin.git")), 3);
    assert_eq!(commits_in(&env, &env.root().join("repo")), 3);
    env.assert_sound();
}

#[cfg(target_os = "linux")]
#[test]
fn one_look_at_the_remote_serves_all_that_wait() {
    const WRITERS: usize = 8;
    let (env, folders) = with_worktrees(&["left", "right"]);
    // Someone else's step, which the look has to bring.
    let other = env.root().join("other");
    env.git(env.root(), &["clone", "-q", "origin.git", "other"]);
    env.git(&other, &["config", "handoff.remote", "origin"]);
    env.run(sender(&env, &other, 100, &[]), &["send"], None)
        .success();
    let trace = env.root().join("trace");
    let turn = turn(&env);
    turn.lock().unwrap();
    let children: Vec<Child> = (1..=WRITERS)
        .map(|n| {
            let folder = &folders[n % folders.len()];
            let mut command = sender(&env, folder, u32::try_from(n).unwrap(), &[]);
            command.env("GIT_TRACE2_EVENT", &trace);
            command.spawn().unwrap()
        })
        .collect();
    until("all of them wait", || children.iter().all(is_in_queue));
    turn.unlock().unwrap();
    for child in children {
        let (status, said) = ended(child);
        assert_eq!(status, Some(0), "{said}");
    }
    let text = fs::read_to_string(&trace).unwrap();
    let starts = |what: &str| {
        let starts = text.lines().filter(|l| l.contains(r#""event":"start""#));
        starts.filter(|line| line.contains(what)).count()
    };
    assert_eq!(starts("receive-pack"), WRITERS, "each sends its own");
    assert_eq!(starts("upload-pack"), 1, "one of them looks");
    assert_eq!(
        commits_in(&env, &env.root().join("origin.git")),
        2 + WRITERS
    );
    assert_eq!(commits_in(&env, &env.root().join("repo")), 2 + WRITERS);
    env.assert_sound();
}

#[test]
fn who_is_stuck_in_its_turn_does_not_hold_up_the_others() {
    let (env, folders) = with_worktrees(&["left"]);
    let stuck = turn(&env);
    stuck.lock().unwrap();
    // It ends while the turn is still another's.
    let child = sender(&env, &folders[1], 1, &["--timeout", "1s"]).spawn();
    let (status, said) = ended(child.unwrap());
    assert!(matches!(status, Some(0 | 8)), "{status:?} {said}");
    env.handoff_in(&folders[0], &["show", "1.1"]).success();
    stuck.unlock().unwrap();
    env.handoff_in(&folders[0], &["sync"]).success();
    assert_eq!(commits_in(&env, &env.root().join("origin.git")), 2);
    env.assert_sound();
}

#[test]
fn who_is_killed_in_its_turn_gives_it_up() {
    let (env, folders) = with_worktrees(&["left"]);
    // A remote that hangs while a file is there.
    let (hangs, begun) = (env.root().join("hangs"), env.root().join("begun"));
    fs::write(&hangs, "").unwrap();
    let script = format!(
        "#!/bin/sh\n>'{}'\nwhile [ -e '{}' ]; do sleep 0.05; done\nexec git-upload-pack \"$@\"\n",
        begun.display(),
        hangs.display()
    );
    let script = env.file("upload-pack", script);
    let mut chmod = env.command("chmod");
    assert!(chmod.args(["+x", &script]).status().unwrap().success());
    env.git(
        &env.repo(),
        &["config", "remote.origin.uploadpack", &script],
    );
    let mut child = sender(&env, &folders[1], 1, &[]).spawn().unwrap();
    until("it asks the remote", || begun.exists());
    // The next one waits behind it.
    let next = sender(&env, &folders[0], 2, &[]).spawn().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(&hangs).unwrap();
    let (status, said) = ended(next);
    assert_eq!(status, Some(0), "{said}");
    env.run(sender(&env, &folders[1], 1, &[]), &["send"], None)
        .success();
    assert_eq!(commits_in(&env, &env.root().join("origin.git")), 3);
    env.assert_sound();
}
