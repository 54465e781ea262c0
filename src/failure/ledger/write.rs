//! Writing a step.

use handoff_git::CaptureError;
use handoff_ledger::WriteError;

use crate::failure::{ErrorCode, Failure, Hint, chain};

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let message = chain(&error);
        let at = |code| Self::new(code, message);
        match error {
            WriteError::Quarantine => at(ErrorCode::Quarantine),
            WriteError::Locked(_) => at(ErrorCode::Locked)
                .hint("nothing was written; wait for the git process that holds it, then run the command again. Check with `pgrep -a git`, and `ls -l` on the file: if no git runs on any machine that shares the disk, and the file is not new, it is stale and safe to remove"),
            WriteError::Contended(_) => {
                at(ErrorCode::Contended).advice("nothing was written; run the same command again")
            }
            WriteError::Backdated { .. } => at(ErrorCode::Backdated)
                .advice("nothing was written; unset GIT_AUTHOR_DATE, or set it to a later time; `date` shows this machine's clock"),
            WriteError::Postdated { .. } => at(ErrorCode::Postdated)
                .advice("nothing was written; unset GIT_AUTHOR_DATE and GIT_COMMITTER_DATE; `date` shows this machine's clock"),
            WriteError::Snapshot(error) => at(ErrorCode::SnapshotRefused).hint(unkept(&error)),
            WriteError::Repair(_) => at(ErrorCode::Git)
                .advice("check permissions, and that no git is running; then run the command again"),
            WriteError::Signing(_) => at(ErrorCode::SigningFailed).hint(UNSIGNED),
            WriteError::Signature(findings) => at(ErrorCode::SignatureRefused)
                .hint("nothing was written; sign with a key listed for the step's author: `git handoff protocol show` lists the keys by owner")
                .findings(findings),
        }
    }
}

/// The hint for a commit that could not be signed.
const UNSIGNED: &str = "nothing was written; `git commit-tree -S HEAD^{tree} -m test </dev/null` shows whether git can sign here, without moving a branch. Unlock a key with a passphrase first: `ssh-add`, or gpg's agent";

/// The hint for a worktree that can't be saved.
fn unkept(error: &CaptureError) -> Hint {
    let fix = match error {
        CaptureError::Bare => Hint::advice("run it in the worktree that holds the work"),
        CaptureError::Index(_) => "see what `git status` says of the index".into(),
        CaptureError::Nested { .. } => {
            Hint::advice("name it in .git/info/exclude if it is not part of the work")
        }
        CaptureError::Submodule { .. } => {
            Hint::advice("commit what is in it, and the submodule's new commit")
        }
        CaptureError::GitsOwn { .. } => Hint::advice("rename it"),
        CaptureError::Special { .. } | CaptureError::Unreadable { .. } => {
            Hint::advice("name it in .git/info/exclude, or move it away")
        }
        CaptureError::Changing { .. } => {
            Hint::advice("stop what writes to it, then run the command again")
        }
        CaptureError::TooLarge { .. }
        | CaptureError::TooMuch { .. }
        | CaptureError::TooMany { .. } => {
            Hint::advice("name in .git/info/exclude what is not part of the work")
        }
        CaptureError::NotAccepted | CaptureError::Git(_) => "see what `git status` says".into(),
    };
    fix.map(|fix| {
        format!(
            "nothing was written; {fix}, or leave out --snapshot and --attach the files that matter"
        )
    })
}
