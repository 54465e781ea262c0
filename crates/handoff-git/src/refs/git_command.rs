//! Changes and lists refs through the `git` command, for any storage format.

use std::path::Path;
use std::process::Command;

use handoff_base::ObjectId;

use crate::error::GitError;
use crate::process::{self, Ended, git_alone};
use crate::repository::Repository;
use crate::repository::{RefUpdate, Target};

/// Updates a ref through git. The transaction is a single line, so it can't be applied in part.
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

/// The git command for this repository, without hooks, as with the files backend: what the ledger
/// writes was checked before.
pub(crate) fn git(repository: &Repository, git_dir: &Path) -> Command {
    let mut command = git_alone(git_dir, None);
    if let Some(setting) = &repository.durable_refs {
        command.args(["-c", setting]);
    }
    command.current_dir(repository.common_dir());
    command.env("LC_ALL", "C").env_remove("LANGUAGE");
    command
}

pub(crate) fn run(command: Command, input: Option<Vec<u8>>) -> Result<Ended, GitError> {
    // An update that has started is not interrupted: it may be committed already.
    let ended = process::run_until(None, command, input);
    ended.map_err(|error| GitError::of_system(&error.to_string()))
}

/// The ref of this name, or those under a prefix that ends in a slash, sorted by name; or the error
/// behind git's failure.
pub(crate) fn list(
    repository: &Repository,
    prefix: &str,
    failure: impl FnOnce(&Ended) -> GitError,
) -> Result<Vec<(String, Target)>, GitError> {
    let mut command = git(repository, repository.path());
    command.args([
        "for-each-ref",
        "--format=%(objectname) %(refname) %(symref)",
        prefix,
    ]);
    let ended = process::run_to_end(command);
    let ended = ended.map_err(|error| GitError::of_system(&error.to_string()))?;
    if !ended.status.success() {
        return Err(failure(&ended));
    }
    let printed = String::from_utf8_lossy(&ended.stdout);
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
