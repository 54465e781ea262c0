//! Another repository's branch, read through the `git` command, so that
//! credentials, ssh and proxies work as the user set them up.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::repository::{ObjectId, Repository};

/// The longest that one run of git may take.
const LONGEST: Duration = Duration::from_secs(300);

/// How often a run of git is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// How many bytes of what git says are kept.
const KEPT: u64 = 1 << 16;

/// Why another repository could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The `git` command does not start.
    #[error("git cannot be started")]
    NoGit(#[source] std::io::Error),
    /// It failed.
    #[error("git says: {said}")]
    Failed {
        /// What it says, in one line.
        said: String,
    },
    /// It took too long, and was ended.
    #[error("git did not answer in time")]
    TimedOut,
    /// It was ended because someone asked for that.
    #[error("git was interrupted")]
    Interrupted,
    /// What it said can't be understood.
    #[error("git's answer is not the id of a commit")]
    Answer,
}

/// A branch of another repository.
pub struct Remote {
    git_dir: PathBuf,
    name: String,
    refname: String,
}

/// When to give up on another repository.
pub struct Patience<'a> {
    /// At this moment.
    pub deadline: Option<Instant>,
    /// When this is set.
    pub interrupted: &'a AtomicBool,
}

impl Remote {
    /// Names a branch of a remote, by the remote's name, its address or its path.
    pub fn new(repository: &Repository, name: &str, refname: &str) -> Self {
        Self {
            git_dir: repository.path().to_owned(),
            name: name.to_owned(),
            refname: refname.to_owned(),
        }
    }

    /// Where the branch is; none if there is no such branch.
    ///
    /// # Errors
    /// [`RemoteError`] when that can't be found out in time.
    pub fn tip(&self, patience: &Patience<'_>) -> Result<Option<ObjectId>, RemoteError> {
        let mut command = self.git("ls-remote");
        command.args(["--quiet", "--", &self.name, &self.refname]);
        let said = run(command, patience)?;
        let said = String::from_utf8_lossy(&said);
        let ends = |line: &&str| line.split('\t').nth(1) == Some(&self.refname);
        let Some(line) = said.lines().find(ends) else {
            return Ok(None);
        };
        let id = line.split('\t').next().filter(|id| id.len() == 40);
        let id = id.and_then(|id| id.parse().ok());
        id.map(Some).ok_or(RemoteError::Answer)
    }

    /// Brings the branch's objects here, all but those that `known` reaches, and
    /// changes no ref and no other file.
    ///
    /// # Errors
    /// [`RemoteError`] when they can't be had in time.
    pub fn fetch(
        &self,
        known: Option<ObjectId>,
        patience: &Patience<'_>,
    ) -> Result<(), RemoteError> {
        let mut command = self.git("fetch");
        command.args([
            "--quiet",
            "--refmap=",
            "--no-tags",
            "--no-prune",
            "--no-filter",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--no-auto-gc",
        ]);
        // Nothing points to what was fetched before.
        command.args(known.map(|id| format!("--negotiation-tip={id}")));
        command.args(["--", &self.name, &self.refname]);
        run(command, patience).map(drop)
    }

    fn git(&self, verb: &str) -> Command {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(&self.git_dir).arg(verb);
        command.env("GIT_TERMINAL_PROMPT", "0");
        command
    }
}

/// A run of git, ended with all that it started when it is dropped.
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

/// Runs git to its end and returns what it printed.
fn run(mut command: Command, patience: &Patience<'_>) -> Result<Vec<u8>, RemoteError> {
    // Of its own, so that a transport that hangs ends with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().map_err(RemoteError::NoGit)?);
    let stdout = kept(running.0.stdout.take());
    let stderr = kept(running.0.stderr.take());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = running.0.try_wait().map_err(RemoteError::NoGit)? {
            break status;
        }
        if patience.interrupted.load(Ordering::Relaxed) {
            return Err(RemoteError::Interrupted);
        }
        let now = Instant::now();
        if patience.deadline.is_some_and(|end| now >= end) || now - start >= LONGEST {
            return Err(RemoteError::TimedOut);
        }
        std::thread::sleep(LOOK);
    };
    // A connection that ssh shares keeps these open after git has ended.
    let end = |said: Receiver<Vec<u8>>| said.recv_timeout(Duration::from_secs(1));
    if status.success() {
        return Ok(end(stdout).unwrap_or_default());
    }
    let said = end(stderr).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let said = match &lines[..] {
        [] => status.to_string(),
        lines => lines.join("; "),
    };
    Err(RemoteError::Failed { said })
}

/// Reads all that a pipe gives, and hands over its first part.
fn kept(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before a fault is what there is.
            let _ = (&mut pipe).take(KEPT).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
            let _ = sender.send(bytes);
        });
    }
    receiver
}
