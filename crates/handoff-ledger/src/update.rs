//! Changes of existing work: claims, and every other update.

use handoff_base::finding::Finding;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_model::{EventArgs, Issue, Refusal, Update, View};
use handoff_protocol::Event;

use super::claim_queue::claimable;
use super::draft::Decided;
use super::error::{ContractError, LedgerError};
use super::evidence::changed;
use super::ledger::Ledger;
use super::session::Session;
use super::write::Done;

/// The handoff to claim: a given one, or the next in the queue.
pub enum Target {
    /// A given handoff.
    Handoff(HandoffId),
    /// The most urgent handoff that waits for the agent, the oldest first.
    Next,
}

impl<'r> Ledger<'r> {
    /// Claims a handoff, or takes it over (`event`). If artifact checks are enforced, refuses it when delivered files have
    /// changed.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn claim(
        &mut self,
        session: &Session,
        agent: &AgentName,
        target: &Target,
        event: Event,
        args: &EventArgs,
    ) -> Result<Done, LedgerError> {
        let mut warnings = Vec::new();
        let mut done = self.publish(session, |ledger, tip, at| {
            let id = match target {
                Target::Handoff(id) => id.clone(),
                Target::Next => {
                    let found = claimable(tip, agent, at)?;
                    match found.first {
                        Some(id) => id,
                        None => return Err(found.refusal(agent).into()),
                    }
                }
            };
            let claim = Update::change(id.number(), event, args.clone());
            let decided = ledger.plan_on(tip, &session.actor(agent, at), id.issue(), &claim)?;
            if let Decided::Write(_, receipt) = &decided {
                warnings = changed(ledger.repository(), &receipt.record)?;
                if warnings.iter().any(Finding::is_error) {
                    let findings = std::mem::take(&mut warnings);
                    return Err(ContractError::Delivered(findings).into());
                }
            }
            Ok(decided)
        })?;
        done.warnings = warnings;
        Ok(done)
    }

    /// Applies an update to an existing issue.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn update(
        &mut self,
        session: &Session,
        agent: &AgentName,
        issue: &IssueKey,
        update: &Update,
    ) -> Result<Done, LedgerError> {
        self.publish(session, |ledger, tip, at| {
            ledger.plan_on(tip, &session.actor(agent, at), issue, update)
        })
    }

    /// Applies the update that follows from an issue as it is at the tip, and is decided again
    /// whenever another process has moved that. Writes nothing if none follows.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn update_if(
        &mut self,
        session: &Session,
        agent: &AgentName,
        key: &IssueKey,
        mut decide: impl FnMut(&Issue) -> Option<Update>,
    ) -> Result<Option<Done>, LedgerError> {
        let (receipt, commit) = self.write(session, |ledger, tip, at| {
            let issue = tip.issue(key)?.issue()?;
            let issue = issue.ok_or_else(|| Refusal::no_issue(key))?;
            let Some(update) = decide(&issue) else {
                return Ok(Decided::Nothing(None));
            };
            let decided = ledger.plan_on(tip, &session.actor(agent, at), key, &update);
            Ok(match decided? {
                Decided::Write(draft, receipt) => Decided::Write(draft, Some(receipt)),
                Decided::First(draft) => Decided::First(draft),
                Decided::Nothing(receipt) => Decided::Nothing(Some(receipt)),
            })
        })?;
        Ok(receipt.map(|receipt| Done {
            receipt,
            commit,
            warnings: Vec::new(),
        }))
    }
}
