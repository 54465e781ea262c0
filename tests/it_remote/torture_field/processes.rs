//! Processes of this environment: what a program started, and what still runs.

use std::fs;

use rustix::process::{Pid, Signal, kill_process_group};

use test_support::{TestEnvironment, until};

/// Kills the git commands that a process runs now, with all that they started; says
/// whether there were any. Each is the head of a group of its own.
pub(crate) fn kill_children(parent: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    let mut killed = false;
    for thread in threads.into_iter().flatten().flatten() {
        let children = fs::read_to_string(thread.path().join("children"));
        for child in children.unwrap_or_default().split_whitespace() {
            let child = child.parse().ok().and_then(Pid::from_raw);
            killed |= child.is_some_and(|child| kill_process_group(child, Signal::KILL).is_ok());
        }
    }
    killed
}

/// The processes that run in an environment, by their command lines; those left out that
/// have one of these words there.
fn running(env: &TestEnvironment, but: &[&str]) -> Vec<String> {
    let home = format!("HOME={}/home", env.root().display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let is_ours = read("environ")
            .split(|byte| *byte == 0)
            .any(|line| line == home.as_bytes());
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        if is_ours && !line.is_empty() && !but.iter().any(|but| line.contains(but)) {
            found.push(line);
        }
    }
    found
}

/// Waits until none of them runs.
#[track_caller]
pub(crate) fn wait_for_none(env: &TestEnvironment, but: &[&str]) {
    until("no process is left", || running(env, but).is_empty());
}
