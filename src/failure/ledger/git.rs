//! What libgit2 reports.

use handoff_git::GitError;

use crate::failure::{ErrorCode, Failure, obstacle};

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let message = error.to_string();
        let at = |code| Self::new(code, message.clone());
        if error.is_left_out() {
            return at(ErrorCode::LeftOut).hint(LEFT_OUT);
        }
        if error.is_damage() {
            return at(ErrorCode::LedgerDamaged)
                .hint("`git handoff verify` shows what is missing; another clone may have it");
        }
        let (what, fix) =
            obstacle(&message).unwrap_or(("git failed", "check permissions and free space"));
        Self::new(ErrorCode::Git, format!("{what}: {message}")).hint(format!(
            "nothing was acknowledged; {fix}, then run the command again"
        ))
    }
}

/// How to get the history that a shallow clone lacks.
pub(crate) const DEEPEN: &str = "`git handoff fetch --full` gets the rest; if the ledger has no remote (handoff.remote), use `git fetch --unshallow`";

/// How to get the objects that a partial clone lacks.
pub(crate) const LEFT_OUT: &str = "this clone was made without some objects: `git handoff fetch` gets those of the current ledger, `git handoff fetch --full` those of its history; if it has no remote, set one: `git config handoff.remote NAME`";
