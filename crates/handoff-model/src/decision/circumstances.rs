//! Evaluates decision rules for a handoff.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_protocol::{Action, Circumstances, DecisionRule, Protocol, State};

use crate::decision::{
    Advice, Choice, answers, decider, is_for_decider, is_to_decide, standing_status,
};
use crate::record::{Decision, Issue, NOT_ACKNOWLEDGED, Record, TIMED_OUT};

/// A handoff that needs attention, as rules evaluate it.
pub(super) struct Case<'a> {
    protocol: &'a Protocol,
    issue: Option<&'a Issue>,
    record: &'a Record,
    answer: Option<&'a Record>,
    /// Whether its contract is with the agent that decides what follows.
    to_decide: bool,
    at: Moment,
    /// Its state at that moment, even if an expiry is not recorded yet.
    pub(super) state: State,
    code: Option<&'a str>,
    recoverable: bool,
    pub(super) retries_left: bool,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        protocol: &'a Protocol,
        issue: Option<&'a Issue>,
        record: &'a Record,
        answer: Option<&'a Record>,
        at: Moment,
    ) -> Self {
        let expired = record.is_expired(at);
        let failure = record.failure();
        let code = failure.map(|failure| failure.code.as_str());
        let code = match record.state {
            State::Pending if expired => Some(NOT_ACKNOWLEDGED),
            _ if expired => Some(TIMED_OUT),
            _ => code,
        };
        let rounds = || issue?.attempts_spent(protocol, &record.contract_type);
        let spent = record.why_spent(protocol, code);
        let state = match (expired, &spent) {
            (false, _) => record.state,
            (true, Some(_)) if protocol.definition().retry().is_some() => State::Dead,
            (true, _) => State::Failed,
        };
        Self {
            protocol,
            issue,
            record,
            answer,
            to_decide: !expired && is_to_decide(protocol, record),
            at,
            state,
            code,
            recoverable: expired || failure.is_some_and(|failure| failure.recoverable),
            retries_left: state == State::Failed && spent.is_none() && rounds().is_none(),
        }
    }

    pub(super) fn others(&self) -> Vec<&'a AgentName> {
        let record = self.record;
        let (from, to) = (record.from.as_str(), record.to.as_str());
        self.protocol.others_for(from, to, &record.contract_type)
    }

    /// A person to whom the deciding agent can send, or else the sender can.
    pub(super) fn person_to_ask(&self) -> Option<Choice> {
        let deciders = [decider(self.protocol, &self.record.from), &self.record.from];
        let reaches = |from: &AgentName, to: &AgentName| {
            self.protocol
                .routes(from.as_str(), to.as_str())
                .next()
                .is_some()
        };
        deciders.into_iter().find_map(|from| {
            let person = self
                .protocol
                .definition()
                .people()
                .find(|person| reaches(from, person))?;
            Some(Choice::Ask(from.clone(), person.clone()))
        })
    }

    fn applies(&self, when: &Circumstances) -> bool {
        let one_of = |words: &[String], word: Option<&str>| {
            words.is_empty() || word.is_some_and(|word| words.iter().any(|w| w == word))
        };
        // If the deciding agent failed while it held a contract, that contract's status still
        // counts.
        let is_unread = || self.state.is_stuck() && is_for_decider(self.protocol, self.record);
        let told = Some(self.record).filter(|_| self.to_decide || is_unread());
        let told = self.answer.or(told);
        let status = told.and_then(|told| standing_status(self.protocol, told));
        let recommends = |agents: &[AgentName]| {
            let agent = self.record.successor();
            agents.is_empty() || agent.is_some_and(|agent| agents.contains(agent))
        };
        let limits = self.protocol.definition().limits.as_ref();
        let is_reached = |name: &String| {
            let round = limits.and_then(|limits| limits.rounds.get(name));
            let issue = self.issue.zip(round);
            issue.is_some_and(|(issue, round)| issue.rounds(name) >= round.most)
        };
        when.to_decide == self.to_decide
            && when.reached.iter().all(is_reached)
            && when.state.is_none_or(|state| state == self.state)
            && one_of(&when.codes, self.code)
            && one_of(&when.status, status)
            && one_of(&when.priority, self.record.priority.as_deref())
            && when
                .recoverable
                .is_none_or(|wanted| wanted == self.recoverable)
            && when
                .retries_left
                .is_none_or(|wanted| wanted == self.retries_left)
            && when.after_seconds.is_none_or(|least| self.lasts(least))
            && when
                .redriven_below
                .is_none_or(|most| self.record.redriven() < most)
            && recommends(&when.recommends)
            && !when.not_to.contains(&self.record.to)
    }

    /// Whether the handoff has been in its state for this many seconds.
    fn lasts(&self, seconds: u64) -> bool {
        let ended = self.record.expires_at().filter(|end| *end <= self.at);
        let since = ended.or_else(|| Some(self.record.latest()?.at));
        let lasted = since.map(|since| (self.at - since).num_seconds());
        lasted.is_some_and(|lasted| u64::try_from(lasted).is_ok_and(|lasted| lasted >= seconds))
    }

    /// A rule's advice, if it applies and can be carried out.
    pub(super) fn apply(&self, rule: &DecisionRule) -> Option<Advice> {
        if !self.applies(&rule.when) {
            return None;
        }
        let record = self.record;
        let decider = decider(self.protocol, &record.from);
        let person = || {
            self.protocol
                .definition()
                .people()
                .next()
                .unwrap_or(decider)
        };
        let (mut agent, mut to, mut questions) = (decider, None, Vec::new());
        let failure = record.failure();
        let mut instructions = failure.and_then(|f| f.suggested_action.clone());
        match rule.action {
            action if self.to_decide => {
                agent = &record.to;
                to = match action {
                    Action::Advance => record.successor(),
                    Action::Retry => Some(&record.from),
                    Action::Ask | Action::Escalate | Action::FallBack => rule
                        .to
                        .as_ref()
                        .or_else(|| self.protocol.definition().people().next()),
                    _ => rule.to.as_ref(),
                };
                if action == Action::Ask {
                    questions.clone_from(&record.missing);
                }
            }
            Action::Retry if self.retries_left => {}
            // Redriving needs a limit, or the rule would loop forever.
            Action::Retry if self.state == State::Dead && rule.when.redriven_below.is_some() => {}
            Action::Reassign if self.state == State::Failed => {
                let others = self.others();
                let named = rule.to.as_ref();
                to = match named {
                    Some(named) => Some(*others.iter().find(|other| **other == named)?),
                    None => Some(*others.first()?),
                };
            }
            Action::Ask if self.state == State::Blocked => {
                questions = record.questions().to_vec();
                let asked = (&record.from, &record.to);
                let answers = || answers(self.protocol, asked);
                agent = rule.to.as_ref().unwrap_or_else(answers);
            }
            Action::Escalate => {
                agent = rule.to.as_ref().unwrap_or_else(person);
                // If the sender could have sent it to that person, the person takes it over
                // directly.
                let takes = |other: &&&AgentName| **other == agent;
                to = Some(agent).filter(|_| self.state == State::Failed);
                to = to.filter(|_| self.others().iter().any(|other| takes(&other)));
            }
            Action::FallBack => {
                agent = rule.to.as_ref().unwrap_or_else(person);
                let policy = self.protocol.definition().retry();
                instructions = policy.and_then(|policy| policy.manual.clone());
            }
            Action::ProceedPartial | Action::Advance if self.state == State::Completed => {
                agent = &record.from;
            }
            Action::Skip | Action::Terminate if !self.state.is_terminal() => {}
            _ => return None,
        }
        Some(Advice {
            id: record.id.clone(),
            action: rule.action,
            agent: agent.clone(),
            to: to.cloned(),
            why: self.why(&rule.why),
            questions,
            instructions,
            by_contract: self.to_decide,
            revives: self.state == State::Dead,
            decided: self.decided(rule.action).cloned(),
        })
    }

    /// The newest decision about the handoff, if it is for this action and the handoff has not
    /// changed since.
    fn decided(&self, action: Action) -> Option<&'a Decision> {
        if self.state != self.record.state {
            // It has expired since the decision, which is not recorded yet.
            return None;
        }
        let mut decisions = self.issue?.decisions.iter().rev();
        let last = decisions.find(|decision| decision.id == self.record.id)?;
        let changed = self.record.latest()?.at;
        Some(last).filter(|last| last.action == action && last.at >= changed)
    }

    /// The reason that is shown: the handoff's state, and the rule's reason.
    fn why(&self, rule: &str) -> String {
        let (id, state) = (&self.record.id, self.state);
        if self.to_decide {
            let status = standing_status(self.protocol, self.record).unwrap_or_default();
            return match self.record.fault() {
                None => format!("{id} says {status}: {rule}"),
                Some(fault) => format!("{id} is {status}, because {fault}: {rule}"),
            };
        }
        match self.code {
            Some(code) if matches!(state, State::Failed | State::Dead) => {
                format!("{id} is {state} ({code}): {rule}")
            }
            _ => format!("{id} is {state}: {rule}"),
        }
    }
}
