//! Determines the issue from the current branch.

use handoff::base::ids::IssueKey;
use handoff::git::Repository;
use handoff::ledger::Snapshot;
use handoff::model::View;
use serde_json::Value;

use super::Context;
use crate::failure::Failure;

/// The maximum number of open issues searched for a branch.
const LOOK_THROUGH: usize = 2000;

/// The fact with an issue's code branch.
const BRANCH: &str = "branch";

impl Context {
    /// The given issue, or the open one whose branch is checked out.
    ///
    /// # Errors
    /// A usage [`Failure`] if none was given and the branch belongs to none or to several.
    pub fn issue_or_here(
        &self,
        named: Option<&str>,
        repository: &Repository,
        tip: &Snapshot<'_>,
    ) -> Result<IssueKey, Failure> {
        if let Some(named) = named {
            return Ok(named.parse()?);
        }
        let advice = "name the issue: `git handoff list` shows each";
        let Some(branch) = repository.current_branch() else {
            return Err(Failure::usage("no issue is named").hint(advice));
        };
        let found = issues_of(&branch, tip)?;
        match &found[..] {
            [key] => Ok(key.clone()),
            [] => {
                let text = format!("no issue is named, and no open one has the branch {branch}");
                Err(Failure::usage(text).hint(advice))
            }
            several => {
                let keys: Vec<String> = several.iter().map(ToString::to_string).collect();
                let keys = keys.join(", ");
                let text =
                    format!("no issue is named, and several have the branch {branch}: {keys}");
                Err(Failure::usage(text).hint(advice))
            }
        }
    }
}

/// The open issues with a branch: by their facts, or by the name `handoff/ISSUE` that `work` uses.
fn issues_of(branch: &str, tip: &Snapshot<'_>) -> Result<Vec<IssueKey>, Failure> {
    let by_name = branch.strip_prefix("handoff/");
    let mut seen: Vec<IssueKey> = Vec::new();
    let mut found = Vec::new();
    for entry in tip.open()? {
        let key = entry.id.issue();
        if seen.contains(key) || seen.len() == LOOK_THROUGH {
            continue;
        }
        seen.push(key.clone());
        let Some(issue) = tip.issue(key)?.issue()? else {
            continue;
        };
        let rules = tip.rules(issue.protocol.as_str())?;
        let is_it = match issue.fact(rules.protocol().definition(), BRANCH) {
            Some(known) => known.value == &Value::from(branch),
            None => by_name == Some(key.as_str()),
        };
        if is_it {
            found.push(key.clone());
        }
    }
    Ok(found)
}
