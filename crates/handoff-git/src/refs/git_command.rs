//! Changes and lists refs through the `git` command, for any storage format.

use std::path::Path;
use std::process::Command;

use git2::ObjectType;
use handoff_base::ObjectId;

use crate::error::{GitError, PublishError};
use crate::process::{self, Ended, git_alone};
use crate::repository::Repository;
use crate::repository::{RefUpdate, Target};

/// Updates a ref through git. The transaction is a single line, so it can't be applied in part.
pub(super) fn update_ref(
    repository: &Repository,
    update: &RefUpdate<'_>,
) -> Result<Ended, GitError> {
    update_ref_by(git(repository, repository.path()), repository, update)
}

fn update_ref_by(
    mut command: Command,
    repository: &Repository,
    update: &RefUpdate<'_>,
) -> Result<Ended, GitError> {
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

/// The folder of the refs to commits that stand in for missing ones.
const STAND_INS: &str = "refs/handoff/stand-in/";

impl Repository {
    /// Moves a ref back to a commit that may be damaged or missing, which git refuses: another
    /// commit stands in for it meanwhile.
    ///
    /// # Errors
    /// [`PublishError`]; the ref is then unchanged by this call.
    pub fn move_back(
        &self,
        refname: &str,
        from: Option<ObjectId>,
        to: ObjectId,
        reflog: &str,
    ) -> Result<(), PublishError> {
        match self.move_ref(refname, from, to, reflog) {
            Err(PublishError::Git(_)) => {}
            done => return done,
        }
        let tree = self.write(ObjectType::Tree, b"")?;
        let by = "handoff <handoff> 0 +0000";
        let commit = format!("tree {tree}\nauthor {by}\ncommitter {by}\n\nstands in\n");
        let commit = self.write(ObjectType::Commit, commit.as_bytes())?;
        let stand_in = format!("{STAND_INS}{to}");
        match self.move_ref(&stand_in, None, commit, "") {
            // It is there if an earlier repair was killed.
            Ok(()) | Err(PublishError::Moved) => {}
            Err(error) => return Err(error),
        }
        let mut command = git(self, self.path());
        command.env("GIT_REPLACE_REF_BASE", STAND_INS);
        command.env_remove("GIT_NO_REPLACE_OBJECTS");
        command.args(["-c", "core.useReplaceRefs=true"]);
        let update = RefUpdate {
            refname,
            from,
            to: Some(to),
            reflog,
        };
        let moved = update_ref_by(command, self, &update);
        self.delete_ref(&stand_in, commit)?;
        let moved = moved?;
        if moved.status.success() {
            return Ok(());
        }
        Err(GitError::of_git(&moved).into())
    }
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
