//! The message of a step's commit. It follows from the issue, its records, the actor and the
//! request, so that an audit derives the same message.

use handoff_base::Moment;
use handoff_protocol::{ContractType, Event, State};

use crate::contract::Contract;
use crate::planner::Planner;
use crate::record::{Issue, Lease, Progress, Question, Record, Task, UNSPECIFIED, View};
use crate::step::message::{Account, Message};
use crate::step::{StepEvent, Stop, trailers};
use crate::value::scalar;

/// The seconds from one moment to another; 0 if a clock was set back.
fn seconds(since: Moment, until: Moment) -> u64 {
    u64::try_from((until - since).num_seconds()).unwrap_or(0)
}

/// The account of a handoff's newest event.
pub(super) fn account(record: &Record) -> Account {
    let about = record.id.to_string();
    let latest = record.latest();
    let Some((latest, event)) = latest.and_then(|t| Some((t, t.event?))) else {
        return Account::new(StepEvent::Send, about, format!("sent to {}", record.to));
    };
    let done = done(event, record, latest.at);
    let failure = latest.failure.as_ref();
    let code = failure.map(|failure| failure.code.clone());
    let said = match event {
        Event::Block => latest.reason.clone().or_else(|| first(&latest.questions)),
        Event::Answer => latest.answer_text(),
        _ => None,
    };
    let message = || failure.map(|failure| failure.message.clone());
    Account {
        reason: said.or_else(message).or_else(|| latest.reason.clone()),
        failure_code: code.filter(|code| code != UNSPECIFIED),
        attempt: Some(record.attempt),
        ..Account::new(StepEvent::Lifecycle(event), about, done)
    }
}

/// The account of a lease's extension.
pub(super) fn extension(record: &Record, at: Moment, news: Option<&Progress>) -> Account {
    let event = Event::Extend;
    let done = done(event, record, at);
    Account {
        reason: news.map(|progress| progress.text.clone()),
        attempt: Some(record.attempt),
        ..Account::new(StepEvent::Lifecycle(event), record.id.to_string(), done)
    }
}

/// What an event did to a handoff, in the words of a subject.
fn done(event: Event, record: &Record, at: Moment) -> String {
    let spent = match record.state {
        State::Dead => ", no attempt left",
        _ => "",
    };
    let attempt = record.attempt;
    match event {
        Event::Claim => format!("claimed{}", end(record.lease.as_ref(), at)),
        Event::TakeOver => format!("taken over{}", end(record.lease.as_ref(), at)),
        Event::Extend => format!("working{}", end(record.lease.as_ref(), at)),
        Event::Complete => "completed".to_owned(),
        Event::Fail => format!("failed{spent}"),
        Event::Expire => format!("timed out{spent}"),
        Event::Exhaust => "given up".to_owned(),
        Event::Block => "blocked".to_owned(),
        Event::Answer => "answered".to_owned(),
        Event::Reject => "rejected".to_owned(),
        Event::Cancel => "cancelled".to_owned(),
        Event::Retry => format!("retried, attempt {attempt}"),
        Event::Redrive => format!("redriven, attempt {attempt}"),
        Event::Reassign => format!("reassigned to {}", record.to),
        Event::Release => {
            let time = record.not_before.map(|start| clock(start, at));
            let start = time.map(|time| format!(", not before {time}"));
            format!("released{}", start.unwrap_or_default())
        }
    }
}

/// The end of a lease, in the words of a subject.
fn end(lease: Option<&Lease>, at: Moment) -> String {
    let end = lease.and_then(|lease| lease.expires_at);
    end.map_or_else(String::new, |end| format!(", until {}", clock(end, at)))
}

/// A moment in UTC: the time, and the date if it is not the step's.
fn clock(moment: Moment, at: Moment) -> String {
    let form = if moment.date_naive() == at.date_naive() {
        "%H:%M"
    } else {
        "%Y-%m-%d %H:%M"
    };
    moment.format(form).to_string()
}

/// The first question, in the words of the agent that asked.
fn first(questions: &[Question]) -> Option<String> {
    let question = questions.first()?;
    Some(
        question
            .description
            .as_ref()
            .unwrap_or(&question.key)
            .clone(),
    )
}

impl<E, V: View<E>> Planner<'_, E, V> {
    /// How long a lease has been held, in seconds; time after its end does not count.
    pub(super) fn held_seconds(&self, record: &Record) -> Option<u64> {
        let lease = record.lease.as_ref()?;
        let end = lease.expires_at.unwrap_or(self.step.at);
        Some(seconds(lease.since, end.min(self.step.at)))
    }

    /// How long a handoff that is now claimed was claimable before, in seconds: since it became
    /// pending, its delay ended, and its dependencies were completed.
    pub(super) fn waited_seconds(
        &self,
        issue: &Issue,
        record: &Record,
        event: Event,
    ) -> Result<Option<u64>, Stop<E>> {
        let pending = record.latest().filter(|_| event == Event::Claim);
        let Some(pending) = pending.map(|t| t.at) else {
            return Ok(None);
        };
        let mut since = record.not_before.map_or(pending, |end| end.max(pending));
        let task = issue.tasks.iter().find(|task| task.handoff == record.id);
        let siblings = task.into_iter().flat_map(|task| {
            let same = |other: &&Task| other.parent == task.parent;
            let on = |other: &&Task| task.depends_on.contains(&other.id);
            issue.tasks.iter().filter(same).filter(on)
        });
        for sibling in siblings {
            let done = self.shared_record(&sibling.handoff)?;
            since = done.latest().map_or(since, |t| t.at.max(since));
        }
        Ok(Some(seconds(since, self.step.at)))
    }

    /// The account of a sent contract, which starts a handoff.
    pub(super) fn sent_account(
        &self,
        new: &Record,
        kind: &ContractType,
        contract: &Contract,
    ) -> Account {
        let done = format!("sent to {}", new.to);
        // A contract without a summary has its type's title as summary, which says nothing.
        let own = Some(&new.summary).filter(|summary| **summary != kind.title);
        let findings = self.findings(contract);
        let said = own.or(findings.as_ref()).unwrap_or(&new.title).clone();
        Account {
            summary: Some(said),
            findings,
            ..Account::new(StepEvent::Send, new.id.to_string(), done)
        }
    }

    /// The account of a corrected contract, which starts the next attempt.
    pub(super) fn corrected_account(
        &self,
        new: &Record,
        kind: &ContractType,
        contract: &Contract,
    ) -> Account {
        let done = format!("sent to {}, corrected, attempt {}", new.to, new.attempt);
        Account {
            done,
            attempt: Some(new.attempt),
            ..self.sent_account(new, kind, contract)
        }
    }

    /// The account of a contract that may end its sender's handoff: the failure or the block, if it
    /// reports one; else that it was sent.
    pub(super) fn outcome_account(
        &self,
        new: &Record,
        kind: &ContractType,
        contract: &Contract,
        released: Option<Account>,
    ) -> Account {
        let held = released.as_ref().and_then(|account| account.held);
        let gave_up = |account: &Account| {
            let event = account.event;
            [Event::Fail, Event::Block]
                .map(StepEvent::Lifecycle)
                .contains(&event)
        };
        let given_up = released.filter(gave_up);
        let account = given_up.unwrap_or_else(|| self.sent_account(new, kind, contract));
        Account { held, ..account }
    }

    /// The counts of the findings in a contract.
    pub(super) fn findings(&self, contract: &Contract) -> Option<String> {
        let traces = self.protocol.definition().traces.as_ref()?;
        traces.counts(&contract.value)
    }

    /// The commit message of a step.
    pub(super) fn message(
        &self,
        issue: &Issue,
        record: &Record,
        transitions: &[String],
        account: &Account,
    ) -> String {
        let message = Message {
            account,
            record,
            issue,
            transitions,
            asked: trailers::write(self.step, account.event),
            is_told: account.event != StepEvent::Lifecycle(Event::Expire)
                && self.step.request.update().is_some(),
            pull_request: self.pull_request(issue),
        };
        message.render()
    }

    /// The issue's pull request, as its contracts state it, else as the newest note does.
    fn pull_request(&self, issue: &Issue) -> Option<String> {
        let traces = self.protocol.definition().traces.as_ref()?;
        let name = traces.pull_request.as_ref()?;
        let noted = || {
            issue
                .annotations
                .iter()
                .rev()
                .find_map(|note| note.facts.get(name))
        };
        let stated = issue.facts.get(name).or_else(noted)?;
        scalar(stated).filter(|text| !text.trim().is_empty())
    }
}

/// The account of a step that changes no handoff's state.
pub(super) fn remark(event: StepEvent, about: &impl ToString, done: &str, why: &str) -> Account {
    Account {
        reason: Some(why.to_owned()).filter(|why| !why.is_empty()),
        ..Account::new(event, about.to_string(), done.to_owned())
    }
}
