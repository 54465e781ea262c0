//! Runs other programs with a time limit.

mod git_command;
mod pinned;

pub(crate) use git_command::{git, git_alone};
pub(crate) use pinned::{PACKS, addresses};
pub use pinned::{Pins, ensure_addresses, pin, pinned, pinned_pack, pins};

use std::io;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The maximum run time of a program.
const LONGEST: Duration = Duration::from_secs(300);

/// Polling intervals: while it runs, and after it has closed its output.
const POLL: [Duration; 2] = [Duration::from_millis(5), Duration::from_micros(100)];

/// How many bytes of a program's output are kept.
const KEPT: u64 = 1 << 16;

/// When to stop waiting for another program.
pub struct Patience<'a> {
    /// The latest moment.
    pub deadline: Option<Instant>,
    /// Set when the user interrupts.
    pub interrupted: &'a AtomicBool,
}

/// Why a program did not finish.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    /// It could not be started.
    #[error("git cannot be started: {0}")]
    NoStart(io::Error),
    /// It took too long and was killed.
    #[error("git took too long")]
    TimedOut,
    /// It was killed because the user interrupted.
    #[error("it was interrupted")]
    Interrupted,
}

/// A finished program's exit status and output.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Ended {
    /// Whether git was too old for a repository.
    pub(super) fn is_of_old_git(&self) -> bool {
        !self.status.success() && knows_no_tables(&String::from_utf8_lossy(&self.stderr))
    }

    /// Its error output as one line.
    pub(super) fn complaint(&self) -> String {
        let output = String::from_utf8_lossy(&self.stderr);
        // gpg's status lines are for programs.
        let is_for_people = |line: &&str| !line.is_empty() && !line.starts_with("[GNUPG:]");
        let lines = output.lines().map(str::trim).filter(is_for_people);
        match lines.collect::<Vec<_>>() {
            lines if lines.is_empty() => self.status.to_string(),
            lines => lines.join("; "),
        }
    }
}

/// The message about a git without reftable support.
pub(super) const OLD_GIT: &str = "git is older than 2.45, the first that knows refs in tables";

/// Whether git refuses a repository because it does not support reftables: the setting's name is on
/// a line of its own, in every language.
pub(super) fn knows_no_tables(said: &str) -> bool {
    said.lines().any(|line| line.trim() == "refstorage")
}

/// A running program; dropping it kills its whole process group.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Ok(None) = self.0.try_wait() {
            use rustix::process::{Pid, Signal, kill_process_group};
            let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
            // The process may already be gone.
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program, with `input` on its standard input.
pub(super) fn run(
    mut command: Command,
    input: Option<Vec<u8>>,
    patience: &Patience<'_>,
) -> Result<Ended, ProcessError> {
    // In its own process group, so that killing it also kills its children.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdin(match input {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().map_err(ProcessError::NoStart)?);
    let stdout = kept(running.0.stdout.take());
    let stderr = kept(running.0.stderr.take());
    if let (Some(mut stdin), Some(input)) = (running.0.stdin.take(), input) {
        // Write errors are ignored: a program that stops reading says why itself.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let start = Instant::now();
    let mut output = None;
    let mut closed = None;
    let status = loop {
        if let Some(status) = running.0.try_wait().map_err(ProcessError::NoStart)? {
            break status;
        }
        if patience.interrupted.load(Ordering::Relaxed) {
            return Err(ProcessError::Interrupted);
        }
        let now = Instant::now();
        if patience.deadline.is_some_and(|end| now >= end) || now - start >= LONGEST {
            return Err(ProcessError::TimedOut);
        }
        let [coarse, fine] = POLL;
        match closed {
            // Its output ends just before it exits.
            None => match stdout.recv_timeout(coarse) {
                Err(RecvTimeoutError::Timeout) => {}
                ended => {
                    output = ended.ok();
                    closed = Some(Instant::now());
                }
            },
            Some(at) if now.saturating_duration_since(at) < coarse * 4 => {
                std::thread::sleep(fine);
            }
            Some(_) => std::thread::sleep(coarse),
        }
    };
    // A shared ssh connection keeps the pipes open after the program has exited.
    let end = |output: Receiver<Vec<u8>>| {
        let output = output.recv_timeout(Duration::from_secs(1));
        output.unwrap_or_default()
    };
    Ok(Ended {
        status,
        stdout: output.unwrap_or_else(|| end(stdout)),
        stderr: end(stderr),
    })
}

/// Runs a program to its end and keeps all of its output.
pub(super) fn run_to_end(mut command: Command) -> Result<Ended, ProcessError> {
    let output = command.output().map_err(ProcessError::NoStart)?;
    Ok(Ended {
        status: output.status,
        stdout: output.stdout,
        stderr: output.stderr,
    })
}

/// Like [`run`], but only a deadline ends it early.
pub(super) fn run_until(
    deadline: Option<Instant>,
    command: Command,
    input: Option<Vec<u8>>,
) -> Result<Ended, ProcessError> {
    let interrupted = &AtomicBool::new(false);
    let patience = Patience {
        deadline,
        interrupted,
    };
    run(command, input, &patience)
}

/// Drains a pipe and returns its first bytes.
fn kept(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // On a read error, the bytes read so far count.
            let _ = (&mut pipe).take(KEPT).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
            let _ = sender.send(bytes);
        });
    }
    receiver
}
