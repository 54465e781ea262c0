//! Contracts that `send` writes: what is known, what the command line gives, and what is edited.

use handoff_base::ids::{AgentName, IssueKey};
use handoff_git::Repository;
use handoff_ledger::{OverviewLimits, Rules, Snapshot, overview};
use handoff_protocol::Protocol;
use handoff_templates::{Known, known};

use super::draft::{Draft, Remarks, about_fields};
use super::fields::fields;
use super::skeleton::Wanted;
use crate::context::Context;
use crate::context::worker::holder;
use crate::environment::now;
use crate::failure::Failure;

/// How much is read to find what an agent holds.
const LOOK: OverviewLimits = OverviewLimits {
    records: 400,
    each: 100,
};

/// The issue of the handoff that an agent holds.
///
/// # Errors
/// A usage [`Failure`] if it holds none, or some in several issues.
pub(crate) fn issue_held(
    context: &Context,
    repository: &Repository,
    tip: &Snapshot<'_>,
    agent: &AgentName,
) -> Result<IssueKey, Failure> {
    let mut protocols = Vec::new();
    for name in tip.protocols()? {
        protocols.push(tip.rules(&name)?.protocol().clone());
    }
    protocols.retain(|protocol| protocol.agent(agent.as_str()).is_some());
    let knowing: Vec<&Protocol> = protocols.iter().collect();
    let known = knowing.iter().find_map(|p| p.agent(agent.as_str()));
    let name = known.map_or(agent, |known| &known.id);
    let worker = context.worker(repository)?;
    let found = overview(tip, holder(name, worker.as_ref()), &knowing, now()?, LOOK)?;
    let held = found.held.first.iter().map(|held| held.id.issue());
    let mut issues: Vec<&IssueKey> = held.collect();
    issues.sort();
    issues.dedup();
    match issues[..] {
        [only] => Ok(only.clone()),
        [] => {
            let text =
                format!("{name} holds nothing here, so say which issue the contract is about");
            Err(Failure::usage(text).hint(format!(
                "add --issue N; `git handoff claim --next --as {name}` takes up what waits"
            )))
        }
        _ => {
            let names: Vec<&str> = issues.into_iter().map(IssueKey::as_str).collect();
            let text = format!("{name} works on several issues: {}", names.join(", "));
            Err(Failure::usage(text).advice("say which with --issue"))
        }
    }
}

/// Writes one contract.
pub(crate) struct Composer<'a> {
    repository: &'a Repository,
    rules: Rules<'a>,
    known: Known,
    wanted: Wanted<'a>,
    issue: &'a IssueKey,
}

impl<'a> Composer<'a> {
    /// Gathers what is known.
    ///
    /// # Errors
    /// A [`Failure`] if the ledger or the repository can't be read.
    pub(crate) fn new(
        repository: &'a Repository,
        tip: &Snapshot<'a>,
        wanted: Wanted<'a>,
        issue: &'a IssueKey,
    ) -> Result<Self, Failure> {
        let folder = tip.issue(issue)?;
        let rules = wanted.rules(tip, &folder)?;
        let branch = wanted.set.iter().find_map(|setting| setting.of("branch"));
        let (protocol, when) = (rules.protocol(), (branch, now()?));
        let known = known(repository, protocol, &folder, wanted.from, wanted.to, when)?;
        Ok(Self {
            repository,
            rules,
            known,
            wanted,
            issue,
        })
    }

    /// The whole contract.
    ///
    /// # Errors
    /// A [`Failure`] that lists what is missing.
    pub(crate) fn complete(&self) -> Result<String, Failure> {
        Ok(self.wanted.complete(&self.rules, &self.known)?.text)
    }

    /// Its draft, the text to begin with, and remarks about its fields.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract, or the draft can't be read.
    pub(crate) fn draft(&self) -> Result<(Draft, String, Remarks), Failure> {
        let made = self.wanted.write(&self.rules, &self.known)?;
        let draft = Draft::new(self.repository, self.issue, self.wanted.to, made.format);
        let text = match draft.kept()? {
            Some(kept) => kept,
            None => made.text,
        };
        let fields = fields(&self.wanted.schema(&self.rules)?);
        let remarks = about_fields(&text, &fields);
        Ok((draft, text, remarks))
    }
}
