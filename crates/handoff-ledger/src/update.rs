//! Changes of existing work: claims, and every other update.

use handoff_base::finding::Finding;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_model::{EventArgs, Request, Update, View};
use handoff_protocol::Event;

use super::claim_queue::claimable;
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
            let step = session.step(agent.clone(), at, Request::Update(claim));
            let decided = ledger.plan_on(tip, id.issue(), step, false)?;
            if let (Some(_), receipt) = &decided {
                warnings = changed(ledger.repository(), &receipt.record)?;
                if warnings.iter().any(Finding::is_error) {
                    let findings = std::mem::take(&mut warnings);
                    return Err(ContractError::Delivered(findings).into());
                }
            }
            Ok(decided)
        })?;
        done.warnings.extend(warnings);
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
            let step = session.step(agent.clone(), at, Request::Update(update.clone()));
            ledger.plan_on(tip, issue, step, false)
        })
    }

    /// Applies an update that was decided on when its issue had so many steps. `None` if it has more by
    /// now: then it has to be decided again.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn update_as_of(
        &mut self,
        session: &Session,
        agent: &AgentName,
        key: &IssueKey,
        update: &Update,
        steps: u32,
    ) -> Result<Option<Done>, LedgerError> {
        let (receipt, commit) = self.write(session, |ledger, tip, at| {
            let issue = tip.issue(key)?.issue()?;
            if issue.is_some_and(|issue| issue.steps != steps) {
                return Ok((None, None));
            }
            let step = session.step(agent.clone(), at, Request::Update(update.clone()));
            let (draft, receipt) = ledger.plan_on(tip, key, step, false)?;
            Ok((draft, Some(receipt)))
        })?;
        Ok(receipt.map(|receipt| Done {
            receipt,
            commit,
            warnings: Vec::new(),
        }))
    }
}
