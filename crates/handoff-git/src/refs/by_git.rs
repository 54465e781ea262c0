//! Refs as the `git` command changes and lists them, in whichever form they are kept.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use git2::{ErrorClass, ErrorCode};
use handoff_base::ObjectId;

use super::super::error::GitError;
use super::super::process::{self, Ended, Patience, ProcessError};
use super::super::repository::Repository;
use super::super::spawn::git_alone;
use super::{RefUpdate, Target};

/// Has git change a ref. The transaction is one line, so that nothing is changed in part.
pub(super) fn update_ref(
    repository: &Repository,
    update: &RefUpdate<'_>,
) -> Result<Ended, GitError> {
    let mut command = git(repository, repository.path());
    command.args(["update-ref", "--no-deref", "--stdin", "-z"]);
    if !update.reflog.is_empty() {
        command.args(["-m", update.reflog]);
    }
    let from = update.from.unwrap_or(ObjectId::zero(repository.format()));
    let line = match update.to {
        Some(to) => format!("update {}\0{to}\0{from}\0", update.refname),
        None => format!("delete {}\0{from}\0", update.refname),
    };
    run(command, Some(line.into_bytes()))
}

/// git, for this repository. No hook runs, as none does when refs are files: what the ledger
/// writes was checked before.
pub(super) fn git(repository: &Repository, git_dir: &Path) -> Command {
    let mut command = git_alone(git_dir, None);
    if let Some(setting) = &repository.durable_refs {
        command.args(["-c", setting]);
    }
    command.current_dir(repository.common_dir());
    command.env("LC_ALL", "C").env_remove("LANGUAGE");
    command
}

pub(super) fn run(command: Command, input: Option<Vec<u8>>) -> Result<Ended, GitError> {
    let patience = Patience {
        deadline: None,
        // A change that has begun is not given up: it may be made already.
        interrupted: &AtomicBool::new(false),
    };
    process::run(command, input, &patience).map_err(|error| match error {
        ProcessError::NoStart(error) => failed(format!("git cannot be started: {error}")),
        ProcessError::TimedOut | ProcessError::Interrupted => {
            failed("git took too long to change a ref".to_owned())
        }
    })
}

/// The refs whose names begin with a prefix that ends in a slash, sorted by name.
pub(super) fn list(
    repository: &Repository,
    prefix: &str,
) -> Result<Vec<(String, Target)>, GitError> {
    let mut command = git(repository, repository.path());
    command.args([
        "for-each-ref",
        "--format=%(objectname) %(refname) %(symref)",
        prefix,
    ]);
    let output = command.output();
    let output = output.map_err(|error| failed(format!("git cannot be started: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("git says: {}", said.trim())));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let parsed = printed.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        let (id, name, symbolic) = (words.next()?, words.next()?, words.next()?);
        let target = match symbolic {
            "" => Target::Id(id.parse().ok()?),
            to => Target::Symbolic(to.to_owned()),
        };
        Some((name.to_owned(), target))
    });
    Ok(parsed.collect())
}

/// What git or the system says; the reason may be a full disk or a missing permission.
pub(super) fn failed(text: String) -> GitError {
    git2::Error::new(ErrorCode::GenericError, ErrorClass::Os, text).into()
}
