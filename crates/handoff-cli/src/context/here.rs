//! Determines the issue from the current branch.

use handoff::base::ids::IssueKey;
use handoff::git::Repository;
use handoff::ledger::Snapshot;

use super::Context;
use crate::failure::Failure;

/// The hint if the issue is not clear.
const ADVICE: &str = "name the issue: `git handoff list` shows each";

impl Context {
    /// The given issue, or the one whose branch is checked out.
    ///
    /// # Errors
    /// A usage [`Failure`] if none was given and the branch belongs to none or to several.
    pub fn issue_or_here(
        &self,
        named: Option<&str>,
        repository: &Repository,
        tip: &Snapshot<'_>,
    ) -> Result<IssueKey, Failure> {
        match (named, repository.current_branch()) {
            (Some(named), _) => Ok(named.parse()?),
            (None, Some(branch)) => issue_of(&branch, tip),
            (None, None) => Err(Failure::usage("no issue is named").hint(ADVICE)),
        }
    }
}

/// The only open issue with a branch; if there is none, the only one that was not cancelled.
///
/// # Errors
/// A usage [`Failure`] if there is none, or several.
pub fn issue_of(branch: &str, tip: &Snapshot<'_>) -> Result<IssueKey, Failure> {
    let found = tip.issues_on(branch)?;
    let text = match &found[..] {
        [key] => return Ok(key.clone()),
        [] => format!("no issue is named, and none has the branch {branch}"),
        several => {
            let keys: Vec<String> = several.iter().map(ToString::to_string).collect();
            let keys = keys.join(", ");
            format!("no issue is named, and several have the branch {branch}: {keys}")
        }
    };
    Err(Failure::usage(text).hint(ADVICE))
}
