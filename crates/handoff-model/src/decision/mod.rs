//! Decisions: what should happen next to a handoff, by the protocol's first rule that applies and
//! can be carried out; and who decides.
//!
//! `advice` is the result of a rule, `circumstances` evaluates rules, `authority` says who decides,
//! `requirement` what a merge requires, `due` what a person has to decide about one.
//! The planner asks when a decision may end an issue, `view` for queries.

mod advice;
mod authority;
mod circumstances;
mod due;
mod requirement;

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_protocol::{Action, Circumstances, DecisionRule, Event, Protocol, State};

use crate::record::{Issue, Record};
use crate::step::Receipt;

pub use advice::{Advice, Choice};
pub use authority::{acts_as_person, answer, decider, note_fact, note_own_fact, person};
pub(crate) use authority::{
    answer_command, answer_keys, answers, is_for_decider, is_to_decide, needed, not_working,
    standing_status,
};
use circumstances::Case;
pub use due::Decider;
pub(crate) use due::{after_overruled, due, may_be_due};
pub use requirement::{
    Answered, JudgedCode, Remedy, Said, approve_command, disapproval, kept_apart, required,
    said_by_worker, send_again, sent_in_vain,
};
pub(crate) use requirement::{Objection, disapproved};

/// A handoff's state at a moment, even if an expiry is not recorded yet: then it has failed or,
/// without retries left, is dead.
pub fn state_at(protocol: &Protocol, record: &Record, at: Moment) -> State {
    Case::new(protocol, None, record, None, at).state
}

/// The event that gives a handoff in this state another attempt. With a reason, a dead handoff is
/// redriven, which restarts the count of attempts; repeating that request gives the same event.
pub fn another_attempt(record: &Record, state: State, has_reason: bool) -> Event {
    let revived = record.latest().and_then(|last| last.event) == Some(Event::Redrive);
    if has_reason && (state == State::Dead || revived && state == State::Pending) {
        Event::Redrive
    } else {
        Event::Retry
    }
}

/// The choices that the protocol allows for a handoff that needs attention.
pub(crate) fn choices(protocol: &Protocol, record: &Record, at: Moment) -> Vec<Choice> {
    let case = Case::new(protocol, None, record, None, at);
    let mut choices = Vec::new();
    match case.state {
        State::Failed => {
            if case.retries_left {
                choices.push(Choice::Retry);
            }
            let others = case.others().into_iter().cloned();
            choices.extend(others.map(Choice::Reassign));
        }
        State::Dead => choices.push(Choice::Redrive),
        State::Blocked => choices.push(Choice::Answer),
        _ => return choices,
    }
    choices.extend(case.person_to_ask());
    choices.push(Choice::Terminate);
    choices
}

/// Advises about a handoff that failed, is dead, blocked or expired; about one with this answer; or
/// about one whose contract is with the agent that decides.
pub(crate) fn advise(
    protocol: &Protocol,
    issue: &Issue,
    record: &Record,
    answer: Option<&Record>,
    at: Moment,
) -> Option<Advice> {
    let case = Case::new(protocol, Some(issue), record, answer, at);
    let own = &protocol.definition().decisions;
    let usual = usual();
    let mut rules = own.iter().chain(&usual);
    rules.find_map(|rule| case.apply(rule))
}

/// Whether a rule about completed handoffs applies to this one and its answer, so that somebody
/// decides.
pub(crate) fn is_to_settle(
    protocol: &Protocol,
    issue: &Issue,
    record: &Record,
    answer: Option<&Record>,
    at: Moment,
) -> bool {
    let case = Case::new(protocol, Some(issue), record, answer, at);
    let mut rules = protocol.definition().decisions.iter();
    let about = |rule: &&DecisionRule| rule.when.state == Some(State::Completed);
    answer.is_some() && rules.any(|rule| about(&rule) && case.apply(rule).is_some())
}

/// The agent that decides about a handoff now: the one that the rules name, else the decider for
/// its sender.
pub(crate) fn decides(protocol: &Protocol, issue: &Issue, record: &Record) -> AgentName {
    let last = record.latest().filter(|_| record.state.is_stuck());
    let advice = last.and_then(|last| advise(protocol, issue, record, None, last.at));
    advice.map_or_else(
        || decider(protocol, &record.from).clone(),
        |advice| advice.agent,
    )
}

impl Receipt {
    /// Adds the protocol's advice on how the work can continue, for receipts that are shown.
    #[must_use]
    pub fn advised(mut self, protocol: &Protocol, by: &AgentName) -> Self {
        let Record {
            from,
            to,
            contract_type,
            ..
        } = &self.record;
        self.onward = protocol.onward(to.as_str(), Some((from, contract_type.as_str())));
        let again = protocol.named_type(from.as_str(), to.as_str(), contract_type);
        self.again = again.map(str::to_owned);
        self.approval = after_overruled(protocol, &self.issue, &self.record);
        self.approves_merge = protocol.definition().approves_merge(contract_type);
        let mut kinds = protocol.definition().contracts.iter();
        let spent = |name| self.issue.attempts_spent(protocol, name);
        // If an answer reported the failure, the protocol's rules decide, which may demand
        // something other than a retry.
        let is_other = |rule: &DecisionRule| {
            rule.when.state == Some(State::Failed) && rule.action != Action::Retry
        };
        let mut rules = protocol.definition().decisions.iter();
        let code = self.record.failure().map(|failure| failure.code.as_str());
        let is_spent = self.record.why_spent(protocol, code).is_some();
        self.needs_decision = kinds.any(|kind| spent(&kind.name).is_some())
            || self.record.state == State::Failed && is_spent
            || self.record.answers.is_some() && rules.any(is_other)
            || is_to_end(protocol, &self.issue, &self.record);
        // A person decides in their own name.
        let person = protocol
            .definition()
            .people()
            .find(|person| *person == by)
            .cloned();
        self.lead = person.or_else(|| Some(decides(protocol, &self.issue, &self.record)));
        self
    }
}

/// Whether the protocol's rules end this stuck work, so that no agent can retry it.
pub(crate) fn is_to_end(protocol: &Protocol, issue: &Issue, record: &Record) -> bool {
    let last = record.latest().filter(|_| record.state.is_stuck());
    let advice = last.and_then(|last| advise(protocol, issue, record, None, last.at));
    advice.is_some_and(|advice| advice.action == Action::Terminate)
}

/// The default rules, which apply after the protocol's own.
fn usual() -> [DecisionRule; 4] {
    let rule = |state, recoverable, action, why: &str| DecisionRule {
        when: Circumstances {
            state: Some(state),
            recoverable,
            ..Circumstances::default()
        },
        action,
        to: None,
        why: why.to_owned(),
    };
    [
        rule(
            State::Blocked,
            None,
            Action::Ask,
            "the work waits for an answer",
        ),
        rule(
            State::Failed,
            Some(true),
            Action::Retry,
            "another attempt may succeed",
        ),
        rule(
            State::Failed,
            None,
            Action::Reassign,
            "another agent can do the same",
        ),
        DecisionRule {
            when: Circumstances::default(),
            action: Action::Escalate,
            to: None,
            why: "nothing that an agent may do is left".to_owned(),
        },
    ]
}
