//! Signed commits, made by the `git` command, so that the user's keys, agents and programs are
//! used.

use std::process::Command;
use std::time::Instant;

use git2::ObjectType;
use handoff_base::ObjectId;

use super::prepared_commit::{Prepared, Proposal};
use super::{Person, Stored};
use crate::error::GitError;
use crate::process::{self, Ended, ProcessError};
use crate::repository::Repository;

/// Why a commit could not be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The `git` command could not be started.
    #[error("git cannot be started")]
    NoGit(#[source] std::io::Error),
    /// git or the signing program failed.
    #[error("git says: {message}")]
    Failed {
        /// Its message, in one line.
        message: String,
    },
    /// It took too long and was killed.
    #[error("the program that signs did not answer in time")]
    TimedOut,
    /// git wrote another commit than the one proposed.
    #[error("git wrote a different commit from the one to be signed: {difference}")]
    Other {
        /// The difference.
        difference: &'static str,
    },
    /// A setting is not a boolean.
    #[error("{key} in git's configuration is not a boolean")]
    Configuration {
        /// The key.
        key: String,
    },
    /// Objects can't be read or written.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The settings that request signatures, by precedence.
const SIGN_SETTINGS: [&str; 2] = ["handoff.sign", "commit.gpgSign"];

impl Repository {
    /// Whether the user's configuration requests signed commits.
    ///
    /// # Errors
    /// [`SignError`] when a setting is not a boolean.
    pub fn wants_signatures(&self) -> Result<bool, SignError> {
        for key in SIGN_SETTINGS {
            match self.config_bool(key) {
                Ok(Some(sign)) => return Ok(sign),
                Ok(None) => {}
                Err(_) => {
                    return Err(SignError::Configuration {
                        key: key.to_owned(),
                    });
                }
            }
        }
        Ok(false)
    }

    /// Like [`Repository::prepare`], but the commit is signed. Apart from the signature, it is the
    /// same.
    ///
    /// # Errors
    /// [`SignError`].
    pub fn prepare_signed(
        &self,
        proposal: &Proposal<'_>,
        deadline: Instant,
    ) -> Result<(Prepared<'_>, Stored), SignError> {
        let tree = self.write_proposed(proposal)?;
        let mut command = self.git();
        command.args(["-c", "i18n.commitEncoding=UTF-8"]);
        command.args(["commit-tree", "-S", &tree.to_string()]);
        if let Some((parent, _)) = proposal.parent {
            command.args(["-p", &parent.to_string()]);
        }
        command.args(["-F", "-"]);
        for (whose, person) in [
            ("AUTHOR", proposal.author),
            ("COMMITTER", proposal.committer),
        ] {
            let at = format!("@{} {}", person.at.timestamp(), person.at.format("%z"));
            command.env(format!("GIT_{whose}_NAME"), &person.name);
            command.env(format!("GIT_{whose}_EMAIL"), &person.email);
            command.env(format!("GIT_{whose}_DATE"), at);
        }
        // There may be no terminal for a prompt; agents and graphical prompts still work.
        command.env("SSH_ASKPASS_REQUIRE", "force");
        let message = proposal.message.as_bytes().to_vec();
        let ended = run(command, message, Some(deadline))?;
        if !ended.status.success() {
            return Err(SignError::Failed {
                message: ended.complaint(),
            });
        }
        let output = String::from_utf8_lossy(&ended.stdout);
        let commit: ObjectId = output.trim().parse().map_err(GitError::from)?;
        let stored = self.stored(commit)?;
        let bytes = self.object(commit, ObjectType::Commit)?;
        let mut fresh = self.fresh.borrow_mut();
        fresh.note(commit, ObjectType::Commit, &bytes);
        drop(fresh);
        match other(&stored, tree, proposal) {
            Some(difference) => Err(SignError::Other { difference }),
            None => Ok((self.prepared(proposal, commit), stored)),
        }
    }
}

fn run(command: Command, input: Vec<u8>, deadline: Option<Instant>) -> Result<Ended, SignError> {
    process::run_until(deadline, command, Some(input)).map_err(|error| match error {
        ProcessError::NoStart(source) => SignError::NoGit(source),
        ProcessError::TimedOut | ProcessError::Interrupted => SignError::TimedOut,
    })
}

/// How a signed commit differs from the proposal; `None` if it does not.
fn other(stored: &Stored, tree: ObjectId, proposal: &Proposal<'_>) -> Option<&'static str> {
    let commit = &stored.commit;
    let parent: Vec<ObjectId> = proposal.parent.iter().map(|(id, _)| *id).collect();
    let message = stored.message();
    let same = |made: &Person, wanted: &Person| {
        // git versions differ in which characters they trim from names.
        let crud = |c: char| c <= ' ' || ".,:;<>\"\\'".contains(c);
        let name = |person: &Person| person.name.trim_matches(crud).to_owned();
        let when = |person: &Person| (person.at.timestamp(), *person.at.offset());
        name(made) == name(wanted) && made.email == wanted.email && when(made) == when(wanted)
    };
    let author = &commit.author;
    match () {
        () if !matches!(stored.signature(), Ok(Some(_))) => Some("it has no signature"),
        () if stored.difference().is_some() => Some("its form"),
        () if commit.tree != tree => Some("its tree"),
        () if commit.parents != parent => Some("its parent"),
        () if !same(author, proposal.author) || author.name != proposal.author.name => {
            Some("its author")
        }
        () if !same(&commit.committer, proposal.committer) => Some("its committer"),
        () if message != proposal.message.as_bytes() => Some("its message"),
        () => None,
    }
}
