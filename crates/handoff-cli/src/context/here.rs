//! Determines the issue from the current branch.

use std::collections::BTreeSet;

use handoff::base::ids::IssueKey;
use handoff::git::Repository;
use handoff::ledger::Snapshot;
use handoff::model::{IssueStatus, View};
use handoff::protocol::BRANCH;

use super::Context;
use crate::failure::Failure;

/// The hint if the issue is not clear.
const ADVICE: &str = "name the issue: `git handoff list` shows each";

/// The maximum number of issues searched for a branch.
const LOOK_THROUGH: usize = 2000;

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
    let open = tip
        .open()?
        .into_iter()
        .map(|entry| entry.id.issue().clone());
    let mut found = issues_of(branch, tip, open)?;
    if found.is_empty() {
        let all = tip.issues_within(LOOK_THROUGH).unwrap_or_default();
        found = issues_of(branch, tip, all.into_iter())?;
    }
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

/// Which of these issues have a branch: by their facts, or by the name `handoff/ISSUE` that `work`
/// uses.
fn issues_of(
    branch: &str,
    tip: &Snapshot<'_>,
    keys: impl Iterator<Item = IssueKey>,
) -> Result<Vec<IssueKey>, Failure> {
    let by_name = branch.strip_prefix("handoff/");
    let keys: BTreeSet<IssueKey> = keys.take(LOOK_THROUGH).collect();
    let mut found = Vec::new();
    for key in keys {
        let Some(issue) = tip.issue(&key)?.issue()? else {
            continue;
        };
        let rules = tip.rules(issue.protocol.as_str())?;
        let is_it = match issue.fact(rules.protocol().definition(), BRANCH) {
            Some(known) => known.value.as_str() == Some(branch),
            None => by_name == Some(key.as_str()),
        };
        if is_it && issue.status != IssueStatus::Cancelled {
            found.push(key);
        }
    }
    Ok(found)
}
