//! Checks that the commits named by reviews, fixes and merges exist on their branch, and that fixes
//! have commits.

use handoff_base::ObjectId;
use handoff_base::finding::{Finding, Severity};
use handoff_base::text::{quoted, word};
use handoff_git::{FactError, GitError, Named};
use handoff_model::evidence::Found;
use handoff_protocol::{Check, Policy};

use super::judge::{Judge, Merged};

impl Judge<'_> {
    /// The findings about the commits that a contract names, if evidence is checked at all. They
    /// refuse the contract, since others rely on these commits.
    pub(crate) fn misnamed(
        &self,
        policy: impl Fn(Check) -> Policy,
    ) -> Result<Vec<Finding>, GitError> {
        let is_on = |check| policy(check) != Policy::Off;
        let mut findings = Vec::new();
        if is_on(Check::Commits) {
            findings.extend(known(self.off_branch())?);
        }
        if is_on(Check::Merge) {
            findings.extend(known(self.false_merge())?);
        }
        let policy = policy(Check::CommitsAdded);
        if policy != Policy::Off {
            let mut unfixed = known(self.unfixed_and_uncounted())?;
            for finding in unfixed.iter_mut().filter(|_| policy == Policy::Warn) {
                finding.severity = Severity::Warning;
            }
            findings.extend(unfixed);
        }
        Ok(findings)
    }

    /// The finding about fixes without a commit, unless the contract states a number of commits:
    /// then that check reports it. Not recorded, so that older contracts stay valid.
    fn unfixed_and_uncounted(&self) -> Result<Vec<Finding>, FactError> {
        let claims = self.claimed.kind.claims.as_ref();
        let counted = claims.and_then(|claims| claims.commits_added.as_deref());
        let found = match (self.ground.since, self.ground.tip) {
            // A shallow or partial clone may lack the commit that the sender got.
            (Some(since), Some(tip))
                if self.claimed.value(counted).is_none()
                    && self.repository.has(since)
                    && self.repository.has_commit(since, tip)? =>
            {
                self.unfixed(since, tip)?
            }
            _ => None,
        };
        Ok(found.into_iter().collect())
    }

    /// The finding if a contract lists a fix that was not on the branch when its sender got the
    /// work, and no commit was added since.
    pub(super) fn unfixed(
        &self,
        since: ObjectId,
        tip: ObjectId,
    ) -> Result<Option<Finding>, FactError> {
        let Some((fields, fixes)) = self.claimed.fixes() else {
            return Ok(None);
        };
        for commit in fixes {
            if let Some(commit) = commit
                && let Named::Commit(id) = self.repository.named(&commit.to_ascii_lowercase())?
                && self.repository.has_commit(tip, id)?
            {
                continue;
            }
            let text = format!(
                "it lists fixes, and no commit was added to {} since the review of {}",
                self.named_branch(),
                since.short()
            );
            let finding = Finding::error(Check::CommitsAdded.code(), &*fields.list, text);
            let without = [
                (&fields.skipped, "say that it is skipped"),
                (&fields.commit, "name the commit that has its fix"),
            ];
            let without = without.into_iter().filter(|(member, _)| member.is_some());
            let without: Vec<&str> = without.map(|(_, may)| may).collect();
            let commit = self.detached(tip)?.unwrap_or("commit them".to_owned());
            let fix = match &without[..] {
                [] => commit,
                may => format!(
                    "{commit}; of a finding that needs no commit, {}",
                    may.join(", or ")
                ),
            };
            return Ok(Some(finding.fix(fix)));
        }
        Ok(None)
    }

    /// What to do if HEAD is detached, with commits that the branch at `tip` lacks.
    fn detached(&self, tip: ObjectId) -> Result<Option<String>, FactError> {
        let position = self.repository.position()?;
        let (None, Some((head, _))) = (position.branch, position.head) else {
            return Ok(None);
        };
        if self.repository.has_commit(tip, head)? || !self.repository.has_commit(head, tip)? {
            return Ok(None);
        }
        let branch = self.named_branch();
        Ok(Some(format!(
            "HEAD is detached here, with commits that are not on {branch}: `git switch -C {}`",
            word(branch)
        )))
    }

    /// The commits of reviews and fixes that are not on the code branch, if it is known here.
    fn off_branch(&self) -> Result<Vec<Finding>, FactError> {
        let named = self.claimed.named();
        let branch = self.ground.branch.as_deref().filter(|_| !named.is_empty());
        let here = branch.and_then(|branch| self.repository.code(branch));
        let here = here.and_then(|code| code.commit.parse().ok());
        let there = branch.and_then(|branch| self.repository.on_origin(branch));
        let asked = self.ground.remote.as_ref().and_then(|remote| remote.branch);
        let mut tips: Vec<ObjectId> = here.into_iter().chain(there).chain(asked).collect();
        // Where the branch was when the sender got the work: this clone may only be behind.
        if let Some(since) = self
            .ground
            .since
            .filter(|since| self.repository.has(*since))
        {
            let mut is_next = !tips.is_empty();
            for tip in &tips {
                is_next = is_next && self.repository.has_commit(since, *tip)?;
            }
            tips.extend(is_next.then_some(since));
        }
        let mut findings = Vec::new();
        // Findings may be about what was handed on, though the branch was rewritten since.
        let handed_on = self.ground.since.filter(|_| !self.claimed.kind.settles);
        let handed_on = handed_on.map(|commit| commit.to_string());
        for (at, text) in named {
            if handed_on.as_ref() == Some(&text) {
                continue;
            }
            // If the branch is missing here, it must at least be a commit.
            let mut wrong = match (
                &tips[..],
                self.repository.named(&text.to_ascii_lowercase())?,
            ) {
                ([], Named::Nothing) => Some("is no commit of this repository".to_owned()),
                _ => None,
            };
            for tip in &tips {
                wrong = self.why_not(&text.to_ascii_lowercase(), None, *tip)?;
                if wrong.is_none() {
                    break;
                }
            }
            if let Some(why) = wrong {
                let text = format!("{} {why}", quoted(&text));
                let fix = "name a commit of the branch, and fetch it if it is not here";
                findings.push(Finding::error(Check::Commits.code(), at, text).fix(fix));
            }
        }
        Ok(findings)
    }

    /// The commit named as a merge, if it is not on the base branch, not pushed there, or lacks the
    /// work.
    fn false_merge(&self) -> Result<Vec<Finding>, FactError> {
        let claim = self.claimed.kind.claims.as_ref();
        let claim = claim.and_then(|claims| claims.merge.as_ref());
        let (Some(claim), Some(text), Some(base)) = (claim, self.claimed.merge(), self.ground.base)
        else {
            return Ok(Vec::new());
        };
        let commit = match self.merged_commit(claim, text, base)? {
            Ok(commit) => commit,
            Err(finding) => return Ok(vec![finding]),
        };
        if let Err(Found::Contradicted(findings)) = self.merge_pushed(claim, text, commit)? {
            return Ok(findings);
        }
        if !self.lacks_work(commit)? {
            return Ok(Vec::new());
        }
        // What is said of the strategy says more.
        if let Found::Contradicted(findings) = self.merge(&mut None)? {
            return Ok(findings);
        }
        let why = format!("does not have the work of {}", self.named_branch());
        Ok(vec![self.not_merged(claim, text, &why)])
    }

    /// Whether a merge has neither the work that was handed over to the sender nor what the branch
    /// has now. Once the branch is gone, it may have been rebased before.
    fn lacks_work(&self, merge: ObjectId) -> Result<bool, FactError> {
        let Some(tip) = self.ground.tip else {
            return Ok(false);
        };
        let merged = match self.ground.merged {
            Merged::At(merged) => Some(merged),
            Merged::Unknown | Merged::Elsewhere(_) => None,
        };
        for work in [Some(tip), merged, self.ground.since].into_iter().flatten() {
            if self.repository.has_work(merge, work)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The findings; none if this clone can't decide.
fn known(found: Result<Vec<Finding>, FactError>) -> Result<Vec<Finding>, GitError> {
    match found {
        Ok(findings) => Ok(findings),
        Err(FactError::Unknown(_)) => Ok(Vec::new()),
        Err(FactError::Git(error)) => Err(error),
    }
}
