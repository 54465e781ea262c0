//! Another repository's branch, read through the `git` command, so that
//! credentials, ssh and proxies work as the user set them up.

use std::path::PathBuf;
use std::process::Command;

use super::process::{self, Patience, ProcessError};
use super::repository::{ObjectId, Repository};

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

/// Runs git to its end and returns what it printed.
fn run(command: Command, patience: &Patience<'_>) -> Result<Vec<u8>, RemoteError> {
    let ended = process::run(command, None, patience).map_err(|error| match error {
        ProcessError::NoStart(source) => RemoteError::NoGit(source),
        ProcessError::TimedOut => RemoteError::TimedOut,
        ProcessError::Interrupted => RemoteError::Interrupted,
    })?;
    match ended.status.success() {
        true => Ok(ended.stdout),
        false => Err(RemoteError::Failed { said: ended.said() }),
    }
}
