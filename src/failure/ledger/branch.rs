//! The ledger's branch.

use handoff_base::text::word;
use handoff_ledger::{BranchError, DEFAULT_BRANCH};

use crate::failure::{ErrorCode, Failure, chain};

impl From<BranchError> for Failure {
    fn from(error: BranchError) -> Self {
        let message = chain(&error);
        let at = |code| Self::new(code, message);
        match error {
            BranchError::NoLedger { branch, seen: Some(seen), .. } => at(ErrorCode::NoLedger).hint(format!(
                "it existed, but is gone: `git branch {} {seen}` restores what this clone last saw",
                word(&branch)
            )),
            BranchError::NoLedger { remote: Some(remote), .. } => at(ErrorCode::NoLedger).hint(format!(
                "`git handoff fetch` gets the one on {remote}; if there is none yet, `git handoff init` starts one there and here"
            )),
            BranchError::NoLedger { branch, .. } => {
                let option = if branch == DEFAULT_BRANCH {
                    String::new()
                } else {
                    format!(" --branch {}", word(&branch))
                };
                at(ErrorCode::NoLedger).hint(format!(
                    "start one with `git handoff init{option}`, or join a remote's: `git handoff init --remote origin{option}`"
                ))
            }
            BranchError::NotALedger(_) => at(ErrorCode::NotALedger)
                .advice("name the ledger's branch with --branch, or start one on another branch"),
            BranchError::Name(_) => at(ErrorCode::Usage),
            BranchError::CheckedOut { path, .. } => at(ErrorCode::CheckedOut).hint(format!(
                "the next commit there would undo a step; free the branch: `git -C {} checkout --detach`",
                word(&path.display().to_string())
            )),
            BranchError::Symbolic(_) => at(ErrorCode::SymbolicBranch)
                .advice("name the branch itself with --branch"),
        }
    }
}
