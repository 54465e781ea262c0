//! What a user sees of the errors of smaller libraries.

use handoff_base::ids::IdError;
use handoff_base::text::{continued, word};
use handoff_git::OpenError;
use handoff_harness::workflows::WorkflowError;
use handoff_model::ReportError;

use super::{ErrorCode, Failure, chain};

impl From<IdError> for Failure {
    fn from(error: IdError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::new(ErrorCode::ReportRefused, chain(&error))
            .advice("nothing was written; pass JUnit XML to --tests, and lcov text or Cobertura XML to --coverage")
    }
}

impl From<WorkflowError> for Failure {
    fn from(error: WorkflowError) -> Self {
        let message = chain(&error);
        match error {
            WorkflowError::Taken(path) => {
                Self::new(ErrorCode::AgentsRefused, message).advice(format!(
                    "no workflow was written; rename {} or merge the two by hand",
                    continued(&path)
                ))
            }
            WorkflowError::Io { .. } => Self::new(ErrorCode::AgentsFile, message)
                .hint("check it with `ls -ld`, and run the same command again"),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let failure = Self::new(ErrorCode::Repository, chain(&error));
        match error {
            OpenError::NotFound => failure.advice("change to a repository, or name one with -C DIR"),
            OpenError::Owner(_) => {
                failure.advice("if you trust it, add its path to git's safe.directory")
            }
            OpenError::Bare(path) => failure.hint(format!(
                "if you trust it, name it: `git --git-dir={} handoff status`",
                word(&path.to_string_lossy())
            )),
            OpenError::Unsupported(_) => failure.advice(
                "a ledger needs objects with one name each, by SHA-1 or SHA-256, and refs in files or in tables; it can live in a separate clone",
            ),
            OpenError::Git(_) => failure.hint("see what `git status` says"),
        }
    }
}
