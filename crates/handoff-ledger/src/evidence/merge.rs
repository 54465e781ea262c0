//! Checks whether a branch was merged as a contract claims.

use handoff_base::ObjectId;
use handoff_base::finding::Finding;
use handoff_base::text::quoted;
use handoff_git::{FactError, Named};
use handoff_model::evidence::Found;
use handoff_protocol::{Check, MergeClaim, Strategy};

use super::judge::{Judge, Merged, Pushed};

impl Judge<'_> {
    /// Checks the merge. `tip` is set to the commit that counts as the merged tip of the branch.
    pub(super) fn merge(&self, tip: &mut Option<ObjectId>) -> Result<Found, FactError> {
        let claims = self.claimed.kind.claims.as_ref();
        let Some((claim, text)) = claims
            .and_then(|c| c.merge.as_ref())
            .zip(self.claimed.merge())
        else {
            return Ok(Found::Passed);
        };
        let base_branch = self.ground.base_branch.as_deref().unwrap_or("its base");
        let Some(base) = self.ground.base else {
            return Ok(Found::Skipped(format!(
                "base branch {base_branch} is not here"
            )));
        };
        let commit = match self.merged_commit(claim, text, base)? {
            Ok(commit) => commit,
            Err(finding) => return Ok(Found::because(finding)),
        };
        let strategy = match self.strategy(claim) {
            Ok(Some(strategy)) => strategy,
            Ok(None) => return Ok(Found::Passed),
            Err(found) => return Ok(found),
        };
        if !self.repository.is_on_line(base, commit)? {
            let why = format!(
                "came to {base_branch} with a merge, and is not one that {base_branch} got by itself"
            );
            return Ok(Found::because(self.not_merged(claim, text, &why)));
        }
        if let Err(found) = self.merge_pushed(claim, text, commit)? {
            return Ok(found);
        }
        *tip = match self.ground.merged {
            Merged::At(merged) => Some(merged),
            Merged::Unknown | Merged::Elsewhere(_) => None,
        };
        self.made_by(strategy, claim, commit, *tip)
    }

    /// The commit of the base branch that a contract names as the merge, or the finding about it.
    pub(super) fn merged_commit(
        &self,
        claim: &MergeClaim,
        text: &str,
        base: ObjectId,
    ) -> Result<Result<ObjectId, Finding>, FactError> {
        let why = match self.repository.named(&text.to_ascii_lowercase())? {
            Named::Commit(commit) if self.repository.has_commit(base, commit)? => {
                return Ok(Ok(commit));
            }
            Named::Commit(_) => format!("is not on {}", self.named_base()),
            Named::Nothing => "is no commit of this repository".to_owned(),
            Named::Several => "may be one of several objects".to_owned(),
            Named::Other(object) => format!("is {object}, not a commit"),
        };
        Ok(Err(self.not_merged(claim, text, &why)))
    }

    /// Whether `origin` has the merge, or what is found otherwise.
    pub(super) fn merge_pushed(
        &self,
        claim: &MergeClaim,
        text: &str,
        commit: ObjectId,
    ) -> Result<Result<(), Found>, FactError> {
        let base = self.ground.base_branch.as_deref();
        Ok(match self.pushed(base, commit)? {
            Pushed::Yes => Ok(()),
            Pushed::Unknown(why) => Err(Found::Skipped(why)),
            Pushed::No { why, fix } => {
                let text = format!("{} {why}", quoted(text));
                let finding = Finding::error(Check::Merge.code(), &claim.commit, text);
                Err(Found::because(finding.fix(fix)))
            }
        })
    }

    pub(super) fn not_merged(&self, claim: &MergeClaim, text: &str, why: &str) -> Finding {
        let text = format!("{} {why}", quoted(text));
        let base = self.named_base();
        Finding::error(Check::Merge.code(), &claim.commit, text).fix(format!(
            "merge the branch into {base} first, then name the commit that this left there, and fetch it if it is not here"
        ))
    }

    /// Checks that a merge of this tip by the strategy produced a commit.
    fn made_by(
        &self,
        strategy: Strategy,
        claim: &MergeClaim,
        commit: ObjectId,
        tip: Option<ObjectId>,
    ) -> Result<Found, FactError> {
        let mismatch = match strategy {
            Strategy::Merge => self.repository.not_a_merge(commit, tip),
            Strategy::Squash => self.repository.not_a_squash(commit, tip),
            Strategy::Rebase => self.repository.not_a_rebase(commit, tip),
        };
        if let Some(why) = mismatch? {
            let at = claim.strategy.as_deref().unwrap_or(&claim.commit);
            let word = self
                .claimed
                .text(claim.strategy.as_deref())
                .unwrap_or_default();
            let text = format!(
                "commit {} is not what {} says: {why}",
                commit.short(),
                quoted(word)
            );
            let finding = Finding::error(Check::Merge.code(), at, text);
            return Ok(Found::because(finding.fix(
                "say how the branch was merged, and name the commit that came of it",
            )));
        }
        Ok(match self.ground.merged {
            Merged::At(_) => Found::Passed,
            Merged::Unknown => {
                let text = "it is not known what the branch held when it was merged";
                Found::Skipped(text.to_owned())
            }
            Merged::Elsewhere(merged) => Found::Skipped(format!(
                "{} is not here, nor is commit {}, where the ledger last saw it",
                self.named_branch(),
                merged.short()
            )),
        })
    }

    /// The merge strategy that the contract states, if any.
    fn strategy(&self, claim: &MergeClaim) -> Result<Option<Strategy>, Found> {
        let Some(word) = self.claimed.text(claim.strategy.as_deref()) else {
            return Ok(None);
        };
        let strategy = if claim.strategies.is_empty() {
            Strategy::usual(word)
        } else {
            claim.strategies.get(word).copied()
        };
        match strategy {
            Some(strategy) => Ok(Some(strategy)),
            None => {
                let text = format!("the protocol does not say what {} stands for", quoted(word));
                Err(Found::Skipped(text))
            }
        }
    }
}
