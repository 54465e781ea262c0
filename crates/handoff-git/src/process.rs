//! Other programs, run to their end within a time.

use std::io;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The longest that one run may take.
const LONGEST: Duration = Duration::from_secs(300);

/// How often a run is looked at: at first, and when it takes long.
const LOOK: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(5)];

/// How many bytes of what a program says are kept.
const KEPT: u64 = 1 << 16;

/// When to give up on another program.
pub struct Patience<'a> {
    /// At this moment.
    pub deadline: Option<Instant>,
    /// When this is set.
    pub interrupted: &'a AtomicBool,
}

/// Why a program did not come to its end.
#[derive(Debug)]
pub(super) enum ProcessError {
    /// It does not start.
    NoStart(io::Error),
    /// It took too long, and was ended.
    TimedOut,
    /// It was ended because someone asked for that.
    Interrupted,
}

/// How a program ended, and what it said.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Ended {
    /// What it complained of, in one line.
    pub(super) fn complaint(&self) -> String {
        let said = String::from_utf8_lossy(&self.stderr);
        // What gpg says to programs is not for people.
        let told = |line: &&str| !line.is_empty() && !line.starts_with("[GNUPG:]");
        let lines = said.lines().map(str::trim).filter(told);
        match lines.collect::<Vec<_>>() {
            lines if lines.is_empty() => self.status.to_string(),
            lines => lines.join("; "),
        }
    }
}

/// A run, ended with all that it started when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Ok(None) = self.0.try_wait() {
            use rustix::process::{Pid, Signal, kill_process_group};
            let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
            // What is gone by itself needs no end.
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program to its end, with `input` on its standard input, or nothing.
pub(super) fn run(
    mut command: Command,
    input: Option<Vec<u8>>,
    patience: &Patience<'_>,
) -> Result<Ended, ProcessError> {
    // Of its own, so that what it started ends with it where it hangs.
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
        // A program that reads no further says itself what is wrong.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let start = Instant::now();
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
        let [first, later] = LOOK;
        std::thread::sleep(if now - start < later * 4 {
            first
        } else {
            later
        });
    };
    // A connection that ssh shares keeps these open after its program has ended.
    let end = |said: Receiver<Vec<u8>>| {
        let said = said.recv_timeout(Duration::from_secs(1));
        said.unwrap_or_default()
    };
    Ok(Ended {
        status,
        stdout: end(stdout),
        stderr: end(stderr),
    })
}

/// Reads all that a pipe gives, and hands over its first part.
fn kept(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before a fault is what there is.
            let _ = (&mut pipe).take(KEPT).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
            let _ = sender.send(bytes);
        });
    }
    receiver
}
