//! The process between a worker and an agent's command: every process of a run is below it,
//! whatever its session, group or environment, and none outlives it.
//!
//! Linux makes a subreaper the parent of orphans below it, and signals it when its own parent ends.
//! Elsewhere only the command's process group is ended.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use handoff_cli::process::below;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// The exit code of a command that could not be started, as in `env` and `timeout`.
pub const NOT_STARTED: u8 = 125;

/// The prefix of the line with the reason.
pub const PREFIX: &str = "git-handoff work: ";

/// How often processes that were asked to end are checked.
const LOOK: Duration = Duration::from_millis(10);

/// Runs a command until it ends or this process is asked to end, then ends all its processes: asks
/// first, and kills what remains after the grace period. Returns the command's exit code; if a
/// signal ended the command, the same signal ends this process.
///
/// # Errors
/// The system's error, if the command can't be started.
pub fn run(words: &[String], grace: Duration, cgroup: Option<&Path>) -> io::Result<u8> {
    adopt_orphans()?;
    if let Some(cgroup) = cgroup {
        // Without a control group, they are still below this process.
        let _ = fs::write(cgroup.join("cgroup.procs"), "0");
    }
    let mut signals = Signals::new([SIGCHLD, SIGTERM, SIGINT, SIGHUP])?;
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let child = Command::new(program)
        .args(arguments)
        .process_group(0)
        .spawn()?;
    let main = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut status = None;
    for signal in signals.forever() {
        if signal == SIGCHLD {
            status = collect(main).or(status);
        }
        if signal != SIGCHLD || status.is_some() {
            break;
        }
    }
    let status = end_all(main, grace).or(status);
    let Some(status) = status else {
        return Ok(NOT_STARTED);
    };
    if let Some(signal) = status.terminating_signal() {
        // If the signal can't be raised here, return the code that shells use.
        let _ = emulate_default_handler(signal);
        if let Some(signal) = Signal::from_named_raw(signal) {
            let _ = kill_process(getpid(), signal);
        }
        return Ok(u8::try_from(128 + signal).unwrap_or(NOT_STARTED));
    }
    let code = status.exit_status().unwrap_or_default();
    Ok(u8::try_from(code).unwrap_or(NOT_STARTED))
}

/// Makes this process the parent of orphans below it, and lets the worker's end signal it.
#[cfg(target_os = "linux")]
fn adopt_orphans() -> io::Result<()> {
    use rustix::process::{getppid, set_child_subreaper, set_parent_process_death_signal};
    let parent = getppid();
    set_child_subreaper(Some(getpid()))?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != parent {
        return Err(io::Error::other("the worker has ended"));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Reaps every process that has ended. Returns the command's status, if it is among them.
fn collect(main: Option<Pid>) -> Option<WaitStatus> {
    let mut status = None;
    while let Ok(Some((pid, ended))) = wait(WaitOptions::NOHANG) {
        if Some(pid) == main {
            status = Some(ended);
        }
    }
    status
}

/// Ends what remains. Returns the command's status, if it ran until now.
fn end_all(main: Option<Pid>, grace: Duration) -> Option<WaitStatus> {
    let begun = Instant::now();
    let mut asked = Vec::new();
    let mut status = None;
    loop {
        status = collect(main).or(status);
        let living = below().unwrap_or_else(|| group_of(main));
        if living.is_empty() {
            return status;
        }
        let is_over = begun.elapsed() >= grace;
        for one in living {
            if is_over {
                let _ = kill_process(one, Signal::KILL);
            } else if !asked.contains(&one) {
                let _ = kill_process(one, Signal::TERM);
                // A stopped process handles no signal.
                let _ = kill_process(one, Signal::CONT);
                asked.push(one);
            }
        }
        thread::sleep(LOOK);
    }
}

/// The command itself, where processes can't be listed: its group gets the worker's signals.
fn group_of(main: Option<Pid>) -> Vec<Pid> {
    let lives = |pid: &Pid| rustix::process::test_kill_process(*pid).is_ok();
    main.filter(lives).into_iter().collect()
}
