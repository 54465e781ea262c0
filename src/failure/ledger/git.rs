//! What libgit2 reports.

use handoff_git::GitError;

use crate::failure::{ErrorCode, Failure, Hint, explained};

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let message = error.to_string();
        if error.is_left_out() {
            return Self::new(ErrorCode::LeftOut, message).hint(LEFT_OUT);
        }
        if error.is_about_old_git() {
            return Self::new(ErrorCode::Git, message).advice(OLD_GIT);
        }
        if error.is_about_tables() {
            return Self::new(ErrorCode::LedgerDamaged, message).hint(TABLES);
        }
        if error.is_damage() {
            return Self::new(ErrorCode::LedgerDamaged, message).hint(REPAIR);
        }
        let (problem, fix) = error.obstacle().map_or_else(
            || {
                (
                    "git failed",
                    Hint::advice("check permissions and free space"),
                )
            },
            explained,
        );
        Self::new(ErrorCode::Git, format!("{problem}: {message}")).hint(
            fix.map(|fix| format!("nothing was acknowledged; {fix}, then run the command again")),
        )
    }
}

/// What to do about damage.
pub(crate) const REPAIR: &str = "`git handoff fetch --repair` brings what is missing from the ledger's remote; without one, `git handoff verify` shows what is missing, and another clone may have it";

/// What to do about tables of refs that are damaged.
const TABLES: &str = "nothing was written; git keeps its refs there: see what `git for-each-ref` says, and restore the folder from a backup, or clone the repository again";

/// What to do about a git that does not know tables of refs.
pub(crate) const OLD_GIT: &str = "nothing was written; put git 2.45 or later on the PATH: the repository keeps its refs in tables";

/// How to get the history that a shallow clone lacks.
pub(crate) const DEEPEN: &str = "`git handoff fetch --full` gets the rest; if the ledger has no remote (handoff.remote), use `git fetch --unshallow`";

/// How to get the objects that a partial clone lacks.
pub(crate) const LEFT_OUT: &str = "this clone was made without some objects: a command gets those that it reads once the remote can be reached, and `git handoff fetch --full` gets all of them; if the ledger has no remote, set one: `git config handoff.remote NAME`";
