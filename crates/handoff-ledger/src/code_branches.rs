//! The code branches of issues, and which agents may push them.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{Code, Moment, ObjectId};
use handoff_git::Repository;
use handoff_model::{BranchPatterns, Issue, IssueStatus, OpenHandoff, View};
use handoff_protocol::{BRANCH, State};

use super::error::LedgerError;
use super::snapshot::{IssueFolder, Snapshot};

/// The maximum number of issues searched for a branch.
const LOOK_THROUGH: usize = 2000;

/// How many handoffs to read to find the last commit of a branch.
const LOOK_BACK: usize = 64;

impl Snapshot<'_> {
    /// The open issues with a code branch; if there is none, those that ended and were not
    /// cancelled.
    ///
    /// # Errors
    /// [`LedgerError`] if an issue can't be read.
    pub fn issues_on(&self, branch: &str) -> Result<Vec<IssueKey>, LedgerError> {
        let found = self.having(branch, self.open()?.iter().map(open_issue))?;
        if !found.is_empty() {
            return Ok(found);
        }
        let all = self.issues_within(LOOK_THROUGH).unwrap_or_default();
        self.having(branch, all.into_iter())
    }

    /// The issues besides this one that have a code branch, or that it is named after.
    ///
    /// # Errors
    /// [`LedgerError`] if an issue can't be read.
    pub fn others_on(&self, branch: &str, key: &IssueKey) -> Result<Vec<IssueKey>, LedgerError> {
        let mut found = self.issues_on(branch)?;
        let patterns = self.branch_patterns()?;
        let named = patterns.issue(branch);
        let named = named.filter(|_| !patterns.is_named_after(branch, key));
        if let Some(named) = named.filter(|named| !found.contains(named))
            && self.issue(&named)?.issue()?.is_some()
        {
            found.push(named);
        }
        found.retain(|other| other != key);
        Ok(found)
    }

    /// Which of these issues have a branch: by their facts, or by the name `handoff/ISSUE` that
    /// `work` uses.
    fn having(
        &self,
        branch: &str,
        keys: impl Iterator<Item = IssueKey>,
    ) -> Result<Vec<IssueKey>, LedgerError> {
        let by_name = branch.strip_prefix("handoff/");
        let keys: BTreeSet<IssueKey> = keys.take(LOOK_THROUGH).collect();
        let mut found = Vec::new();
        for key in keys {
            let Some(issue) = self.issue(&key)?.issue()? else {
                continue;
            };
            let rules = self.rules(issue.protocol.as_str())?;
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

    /// The patterns of the ledger's protocols for branches named after issues.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger can't be read.
    pub fn branch_patterns(&self) -> Result<BranchPatterns, LedgerError> {
        let mut patterns = Vec::new();
        for name in self.protocols()? {
            let rules = self.rules(&name)?;
            patterns.extend_from_slice(rules.protocol().definition().branch_patterns());
        }
        Ok(BranchPatterns::new(&patterns))
    }

    /// Findings against pushing a code branch: one for each open issue on it in which the agent
    /// holds no handoff.
    ///
    /// # Errors
    /// [`LedgerError`] if an issue can't be read.
    pub fn pushed_without_holding(
        &self,
        branch: &str,
        agent: Option<&AgentName>,
        now: Moment,
    ) -> Result<Vec<Finding>, LedgerError> {
        let mut findings = Vec::new();
        for issue in self.worked_on(branch)? {
            let rules = self.rules(issue.protocol.as_str())?;
            let named = agent.map(AgentName::as_str);
            let known = named.and_then(|name| rules.protocol().agent(name));
            let mut held = known.into_iter().flat_map(|known| issue.held_by(&known.id));
            if held.any(|open| open.expires_at.is_none_or(|end| now < end)) {
                return Ok(Vec::new());
            }
            let set = self.repository().setting_command("handoff.agent AGENT");
            findings.push(not_held((branch, &set), &issue, agent, now));
        }
        Ok(findings)
    }

    /// The open issues that use a code branch: those with an open handoff on it, and those whose
    /// key is part of the branch's name.
    fn worked_on(&self, branch: &str) -> Result<Vec<Issue>, LedgerError> {
        let mut keys: BTreeSet<IssueKey> = self.open()?.iter().map(open_issue).collect();
        keys.extend(keys_in(branch));
        let mut found = Vec::new();
        for issue in self.states(&keys)? {
            let own = issue.facts.get("branch").and_then(|own| own.as_str());
            let own = own.map(|own| own.trim_start_matches("refs/heads/"));
            if own == Some(branch) && issue.status == IssueStatus::Open {
                found.push(issue);
            }
        }
        Ok(found)
    }
}

/// The newest commit of an issue's code branch: the one here or on `origin`, or the one that the
/// ledger recorded last, if it follows on that or the branch is gone. This clone may be behind.
///
/// # Errors
/// [`LedgerError`] if history or the issue can't be read.
pub fn newest_code(
    repository: &Repository,
    folder: &IssueFolder<'_>,
    branch: Option<&str>,
) -> Result<Option<Code>, LedgerError> {
    let known = branch.map(|branch| repository.base_code(branch));
    let known = known.transpose()?.flatten();
    let newest = folder.issue()?.map_or(0, |issue| issue.handoffs);
    let mut recorded = None;
    let mut back = (1..=newest).rev().take(LOOK_BACK);
    while let (None, Some(number)) = (&recorded, back.next()) {
        let code = folder.record(number)?.and_then(|record| record.code);
        recorded = code.filter(|code| branch.is_none_or(|branch| code.branch == branch));
    }
    let id = |code: &Code| code.commit.parse::<ObjectId>().ok();
    let follows = match (&known, recorded.as_ref().and_then(id)) {
        (Some(known), Some(recorded)) if repository.has(recorded) => match id(known) {
            Some(known) => matches!(repository.is_in_history(known, recorded), Ok(true)),
            None => false,
        },
        (known, _) => known.is_none(),
    };
    Ok(if follows { recorded } else { known })
}

fn open_issue(entry: &super::snapshot::Listed) -> IssueKey {
    entry.id.issue().clone()
}

/// Every part of a branch's name that could be an issue's key.
fn keys_in(branch: &str) -> impl Iterator<Item = IssueKey> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let parts = branch.split(move |c: char| !is_key(c));
    parts.flat_map(|part| {
        let joints = part.match_indices(['-', '_']).map(|(at, _)| at);
        let mut ends: Vec<usize> = joints.chain([part.len()]).collect();
        ends.dedup();
        let starts = [0].into_iter().chain(ends.iter().map(|end| end + 1));
        let starts: Vec<usize> = starts.collect();
        let keys = starts.into_iter().flat_map(move |start| {
            let own = ends.clone().into_iter().filter(move |end| start < *end);
            own.filter_map(move |end| part.get(start..end)?.parse().ok())
        });
        keys.collect::<Vec<IssueKey>>()
    })
}

fn not_held(
    (branch, set): (&str, &str),
    issue: &Issue,
    agent: Option<&AgentName>,
    now: Moment,
) -> Finding {
    let key = &issue.issue;
    let who = match agent {
        Some(agent) => format!("{agent} does not hold it"),
        None => "nothing says which agent pushes".to_owned(),
    };
    let with = issue.open.iter().map(|open| {
        let OpenHandoff { id, to, state, .. } = open;
        match open.expires_at {
            Some(end) if *state == State::InProgress && end <= now => {
                format!("the lease of {to} on {id} ran out at {end}")
            }
            Some(end) if *state == State::InProgress => format!("{to} works on {id} until {end}"),
            _ if *state == State::InProgress => format!("{to} works on {id}"),
            _ => format!("{id} is {state} with {to}"),
        }
    });
    let with: Vec<String> = with.collect();
    let with = match &with[..] {
        [] => "nobody works on it".to_owned(),
        with => with.join(", "),
    };
    let text = format!("issue {key} is worked on here, and {who}: {with}");
    let waits =
        |open: &&OpenHandoff| open.state == State::Pending && agent.is_none_or(|a| *a == open.to);
    let id: Option<&HandoffId> = issue.open.iter().find(|open| waits(open)).map(|o| &o.id);
    Finding::error(FindingCode::BranchNotHeld, branch, text).fix(match (agent, id) {
        (None, _) => format!("say which agent you are, with GIT_HANDOFF_AGENT or `{set}`"),
        (Some(_), Some(id)) => format!("claim it first: `git handoff claim {id}`"),
        (Some(_), None) => format!("see whose turn it is: `git handoff status {key}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::keys_in;

    #[test]
    fn a_branch_names_every_key_that_is_a_part_of_it() {
        let keys =
            |branch: &str| -> Vec<String> { keys_in(branch).map(|key| key.to_string()).collect() };
        assert_eq!(
            keys("feature/issue-87"),
            ["feature", "issue", "issue-87", "87"]
        );
        assert_eq!(
            keys("fix_1-2"),
            ["fix", "fix_1", "fix_1-2", "1", "1-2", "2"]
        );
        assert_eq!(keys("ß/--"), Vec::<String>::new());
    }
}
