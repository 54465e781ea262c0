//! The effects of rules besides notes, commands and contracts: pausing, cancelling and reopening.

use handoff::base::Moment;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::ledger::attention::turn_in;
use handoff::ledger::{LedgerError, Rules};
use handoff::model::{EventArgs, IssueStatus, Update};
use handoff::protocol::{Event as Happens, EventRule};
use serde_json::Map;

use super::outcome::{Carried, EventContext};
use super::payload::Event;
use super::values::says;

/// An event while it is applied to an issue.
pub(super) struct Work<'w, 'a, 'r> {
    pub(super) context: &'w mut EventContext<'a, 'r>,
    pub(super) event: &'w Event,
    pub(super) key: IssueKey,
    /// All issues that the event is about, this one among them.
    pub(super) issues: Vec<IssueKey>,
    pub(super) pull_request: Option<u64>,
    pub(super) rules: Rules<'r>,
    pub(super) carried: Carried,
}

impl Work<'_, '_, '_> {
    /// Reopens the issue, or notes that it is open.
    pub(super) fn reopen(&mut self, rule: &EventRule) -> Result<(), LedgerError> {
        let delivery = self.part(rule, "reopen")?;
        if self.had(rule, "reopened", &delivery)? {
            return Ok(());
        }
        let Some(issue) = self.issue()? else {
            self.not(rule, "the ledger does not have this issue");
            return Ok(());
        };
        let ended_at = match issue.status {
            IssueStatus::Open => None,
            IssueStatus::Completed => issue.completed_at,
            IssueStatus::Cancelled => issue.given_up.last().map(|given_up| given_up.at),
        };
        let happened_at = self.event.happened_at();
        if happened_at.is_none() || issue.status != IssueStatus::Open && ended_at > happened_at {
            let status = issue.status.as_str();
            let why = format!(
                "the issue was {status} in the ledger after that, or it does not say when it was"
            );
            self.not(rule, why);
            return Ok(());
        }
        let session = self.context.session.delivering(delivery);
        let reason = if self.event.came_from_elsewhere() {
            "transferred back on GitHub"
        } else {
            "reopened on GitHub"
        };
        let reopen = Update::Reopen {
            reason: reason.to_owned(),
            said_at: happened_at,
        };
        let ledger = &mut self.context.ledger;
        let done = ledger.update(&session, &rule.agent, &self.key, &reopen);
        self.took(rule, "reopened", Map::new(), done)
    }

    /// Finds the command that continues the work of a reopened issue.
    pub(super) fn goes_on_with(&mut self) -> Result<(), LedgerError> {
        let tip = self.context.ledger.tip()?;
        let folder = tip.issue(&self.key)?;
        let now = Moment::from(self.context.session.clock.author());
        let (_, next) = turn_in(&folder, self.rules.protocol(), now)?;
        let next = next.filter(|next| !next.is_paused);
        self.carried.next = next.and_then(|next| next.commands.into_iter().next());
        Ok(())
    }

    /// Pauses the issue, except for these agents.
    pub(super) fn pause(
        &mut self,
        rule: &EventRule,
        except: &[AgentName],
    ) -> Result<(), LedgerError> {
        let delivery = self.part(rule, "pause")?;
        if self.had(rule, "paused", &delivery)? {
            return Ok(());
        }
        let Some(issue) = self.issue()? else {
            self.not(rule, "the ledger does not have this issue");
            return Ok(());
        };
        if issue.status != IssueStatus::Open {
            let status = issue.status.as_str();
            self.not(rule, format!("the issue is {status} in the ledger"));
            return Ok(());
        }
        let Some(said_at) = self.event.happened_at() else {
            self.not(rule, "it does not say when it was");
            return Ok(());
        };
        let session = self.context.session.delivering(delivery);
        let pause = Update::Pause {
            reason: why_paused(self.event),
            except: except.to_vec(),
            said_at: Some(said_at),
        };
        let ledger = &mut self.context.ledger;
        let done = ledger.update(&session, &rule.agent, &self.key, &pause);
        self.took(rule, "paused", Map::new(), done)
    }

    /// Cancels every open handoff of the issue.
    pub(super) fn cancel(&mut self, rule: &EventRule) -> Result<(), LedgerError> {
        let Some(issue) = self.issue()? else {
            self.not(rule, "the ledger does not have this issue");
            return Ok(());
        };
        let Some(said_at) = self.event.happened_at() else {
            self.not(rule, "it does not say when it was");
            return Ok(());
        };
        let before = self.carried.did.len();
        // The outcome begins with the handoffs that an earlier delivery cancelled.
        for number in 1..=issue.handoffs {
            let part = self.part(rule, &format!("cancel-{number}"))?;
            self.had(rule, "cancelled", &part)?;
        }
        for open in &issue.open {
            let part = self.part(rule, &format!("cancel-{}", open.id.number()))?;
            // Look again: the parts of a task are cancelled with it.
            let now = self.issue()?;
            let is_open = now.is_some_and(|now| now.open.iter().any(|o| o.id == open.id));
            if issue.delivered(&part).is_some() || !is_open {
                continue;
            }
            let args = EventArgs {
                reason: Some("the issue was closed on GitHub as not planned".to_owned()),
                said_at: Some(said_at),
                ..EventArgs::default()
            };
            let session = self.context.session.delivering(part);
            let cancel = Update::change(open.id.number(), Happens::Cancel, args);
            let ledger = &mut self.context.ledger;
            let done = ledger.update(&session, &rule.agent, &self.key, &cancel);
            self.took(rule, "cancelled", Map::new(), done)?;
        }
        if issue.open.is_empty() && self.carried.did.len() == before {
            self.not(rule, "nothing is open in the issue");
        }
        Ok(())
    }
}

/// The reason of a pause, from the event.
fn why_paused(event: &Event) -> String {
    let text = |place| event.text(place).and_then(says);
    let action = event.action().unwrap_or("changed");
    let (done, place) = match (action, event.text("/issue/state_reason")) {
        ("closed", Some("completed")) => ("closed as completed", "/issue/html_url"),
        ("closed", Some("not_planned")) => ("closed as not planned", "/issue/html_url"),
        ("closed", Some("duplicate")) => ("closed as a duplicate", "/issue/html_url"),
        ("transferred", _) => (
            "transferred to another repository",
            "/changes/new_issue/html_url",
        ),
        // A deleted issue has no page to link to.
        ("deleted", _) => ("deleted", ""),
        (action, _) => (action, "/issue/html_url"),
    };
    let place = Some(place).filter(|place| !place.is_empty()).and_then(text);
    let place = place.map(|place| format!(", {place}")).unwrap_or_default();
    format!("{done} on GitHub{place}")
}
