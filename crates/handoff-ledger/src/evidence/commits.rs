//! Checks the commits that a contract lists.

use handoff_base::ObjectId;
use handoff_base::finding::Finding;
use handoff_base::text::{quoted, word};
use handoff_git::{Added, FactError, Named, Unknown};
use handoff_model::evidence::Found;
use handoff_model::value::scalar;
use handoff_protocol::{Check, CommitsClaim};
use serde_json::Value;

use super::judge::{Judge, Pushed};

/// The maximum number of commits that a finding names.
const NAMED: usize = 5;

impl Judge<'_> {
    pub(super) fn commits(&self) -> Result<Found, FactError> {
        let claims = self.claimed.kind.claims.as_ref();
        let Some(claim) = claims.and_then(|c| c.commits.as_ref()) else {
            return Ok(Found::Passed);
        };
        let unknown = self.both().err();
        let Some(tip) = self.ground.tip else {
            return Ok(unknown.unwrap_or(Found::Passed));
        };
        // Without a base, every commit of the branch counts as its own.
        let own = match self.ground.base {
            Some(base) => match self.repository.added(base, tip) {
                Ok(added) => Some((base, added)),
                Err(FactError::Unknown(Unknown::Unrelated)) => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let (mut findings, listed) = self.listed(claim, own.as_ref(), tip)?;
        if claim.all && findings.is_empty() {
            let left_out = match &own {
                Some((_, added)) => self.left_out(claim, added, &listed)?,
                None => None,
            };
            findings.extend(left_out);
        }
        if findings.is_empty() {
            match self.all_pushed(claim, tip, &listed)? {
                Found::Passed => {}
                Found::Contradicted(unpushed) => findings.extend(unpushed),
                skipped @ Found::Skipped(_) => return Ok(skipped),
            }
        }
        match unknown {
            // It is unknown which of the branch's commits are its own.
            Some(unknown) if findings.is_empty() => Ok(unknown),
            _ => Ok(Found::unless(findings)),
        }
    }

    /// Whether `origin` has the listed commits, if required. The branch's tip decides for all of
    /// them.
    fn all_pushed(
        &self,
        claim: &CommitsClaim,
        tip: ObjectId,
        listed: &[Option<ObjectId>],
    ) -> Result<Found, FactError> {
        let branch = self.ground.branch.as_deref();
        if let Pushed::Yes = self.pushed(branch, tip)? {
            return Ok(Found::Passed);
        }
        for commit in listed.iter().rev().flatten() {
            match self.pushed(branch, *commit)? {
                Pushed::Yes => {}
                Pushed::Unknown(why) => return Ok(Found::Skipped(why)),
                Pushed::No { why, fix } => {
                    let text = format!("commit {} {why}", commit.short());
                    let finding = Finding::error(Check::Commits.code(), &claim.list, text);
                    return Ok(Found::because(finding.fix(fix)));
                }
            }
        }
        Ok(Found::Passed)
    }

    /// The listed commits, each with its pointer, and the findings about them.
    fn listed(
        &self,
        claim: &CommitsClaim,
        own: Option<&(ObjectId, Added)>,
        tip: ObjectId,
    ) -> Result<(Vec<Finding>, Vec<Option<ObjectId>>), FactError> {
        let list = self.claimed.value(Some(&claim.list));
        let entries = list.and_then(Value::as_array).into_iter().flatten();
        let own_ids: Option<Vec<(ObjectId, String)>> = own.map(|(_, added)| {
            added
                .commits
                .iter()
                .map(|(id, _)| (*id, id.to_string()))
                .collect()
        });
        let range = match own {
            Some(_) => self.base_range(),
            None => self.named_branch().to_owned(),
        };
        let (mut findings, mut listed) = (Vec::new(), Vec::new());
        for (i, entry) in entries.enumerate() {
            let at = |inside: &str| format!("{}/{i}{inside}", claim.list);
            let id_at = claim.id.as_deref().unwrap_or_default();
            let Some(text) = entry.pointer(id_at).and_then(scalar) else {
                listed.push(None);
                continue;
            };
            let id = text.to_ascii_lowercase();
            let named = |known: &&(ObjectId, String)| id.len() >= 4 && known.1.starts_with(&id);
            let known: Vec<_> = own_ids.iter().flatten().filter(named).collect();
            let why = match known.len() {
                1 => None,
                0 => self.why_not(&id, own.map(|(base, _)| *base), tip)?,
                _ => Some("may be one of several commits".to_owned()),
            };
            let mut fault = |inside: &str, text: String| {
                let finding = Finding::error(Check::Commits.code(), at(inside), text);
                findings.push(finding.fix(format!(
                    "list commits that `git log {}` shows",
                    word(&range)
                )));
            };
            if let Some(why) = why {
                fault(id_at, format!("{} {why}", quoted(&text)));
                listed.push(None);
                continue;
            }
            let commit = match known.first() {
                Some((id, _)) => Some(*id),
                None => match self.repository.named(&id)? {
                    Named::Commit(commit) => Some(commit),
                    _ => None,
                },
            };
            if claim.all
                && let Some(before) = listed
                    .iter()
                    .position(|known| *known == commit && commit.is_some())
            {
                let text = format!(
                    "{} is listed already, as number {}",
                    quoted(&text),
                    before + 1
                );
                fault(id_at, text);
            }
            if let (Some(commit), Some(message_at)) = (commit, claim.message.as_deref())
                && let Some(said) = entry.pointer(message_at).and_then(scalar)
                && let Some(subject) = self.other_message(commit, &said)?
            {
                let short = commit.short();
                let text = format!(
                    "commit {short} says {}, not {}",
                    quoted(&subject),
                    quoted(&said)
                );
                fault(message_at, text);
            }
            listed.push(commit);
        }
        Ok((findings, listed))
    }

    /// A commit's subject, if neither the subject nor the whole message equals the stated text.
    /// Whitespace may differ: an XML document folds it.
    fn other_message(&self, commit: ObjectId, said: &str) -> Result<Option<String>, FactError> {
        let message = self.repository.message_of(commit)?;
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let message = message.trim();
        let paragraph = message.split("\n\n").next().unwrap_or_default();
        let subject = message.lines().next().unwrap_or_default();
        let said = words(said);
        let same = [message, paragraph, subject]
            .iter()
            .any(|text| words(text) == said);
        Ok((!same).then(|| subject.to_owned()))
    }

    /// The branch's own commits that are not listed; merges may be omitted.
    fn left_out(
        &self,
        claim: &CommitsClaim,
        added: &Added,
        listed: &[Option<ObjectId>],
    ) -> Result<Option<Finding>, FactError> {
        let own = added.commits.iter().filter(|(_, parents)| *parents < 2);
        let missing: Vec<ObjectId> = own
            .map(|(id, _)| *id)
            .filter(|id| !listed.contains(&Some(*id)))
            .collect();
        if missing.is_empty() {
            return Ok(None);
        }
        let mut named = Vec::new();
        for id in missing.iter().rev().take(NAMED) {
            let message = self.repository.message_of(*id)?;
            let subject = quoted(message.lines().next().unwrap_or_default());
            named.push(format!("{} {subject}", id.short()));
        }
        let more = missing.len().saturating_sub(NAMED);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let range = self.base_range();
        let text = format!("not listed: {}{more}", named.join(", "));
        let finding = Finding::error(Check::Commits.code(), &claim.list, text);
        Ok(Some(finding.fix(format!(
            "list every commit that `git log --no-merges {}` shows",
            word(&range)
        ))))
    }

    /// Why a commit is not one that a branch added to its base, or, without a base, not on the
    /// branch; `None` if it is.
    pub(super) fn why_not(
        &self,
        id: &str,
        base: Option<ObjectId>,
        tip: ObjectId,
    ) -> Result<Option<String>, FactError> {
        let (branch, base_branch) = (self.named_branch(), self.named_base());
        let commit = match self.repository.named(id)? {
            Named::Nothing => return Ok(Some("is no commit of this repository".to_owned())),
            Named::Several => return Ok(Some("may be one of several objects".to_owned())),
            Named::Other(object) => return Ok(Some(format!("is {object}, not a commit"))),
            Named::Commit(commit) => commit,
        };
        if let Some(base) = base
            && self.repository.has_commit(base, commit)?
        {
            let text = format!("was on {base_branch} before the work on {branch}");
            return Ok(Some(text));
        }
        let held = self.repository.has_commit(tip, commit)?;
        Ok(match (held, base) {
            (false, _) => Some(format!("is not on {branch}")),
            (true, Some(_)) => Some(format!("is not one that {branch} added to {base_branch}")),
            (true, None) => None,
        })
    }
}
