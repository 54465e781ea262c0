//! What should happen next to a handoff that needs attention, and why: the first of the protocol's
//! rules that applies and can be carried out.

use std::collections::BTreeMap;

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId};
use handoff_protocol::{
    Action, AgentKind, Circumstances, DecisionRule, Event, Protocol, State, TaskState,
};

use crate::record::{
    Decision, Issue, IssueStatus, NOT_ACKNOWLEDGED, OpenHandoff, Question, Record, TIMED_OUT, Task,
    View,
};
use crate::step::{EventArgs, Receipt, Update};

/// What should happen next, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The handoff.
    pub id: HandoffId,
    /// The recommended action.
    pub action: Action,
    /// The agent that should act.
    pub agent: AgentName,
    /// The agent that should take over the work, if the action moves it.
    pub to: Option<AgentName>,
    /// Why.
    pub why: String,
    /// The questions to answer.
    pub questions: Vec<Question>,
    /// What the next attempt should do differently, or what a person must do by hand.
    pub instructions: Option<String>,
    /// Whether the agent needs a contract to carry it out.
    pub by_contract: bool,
    /// Whether the handoff is dead, so that another attempt takes new ones.
    pub revives: bool,
    /// The same decision, if it is recorded since the handoff changed.
    pub decided: Option<Decision>,
}

impl Advice {
    /// The update that carries this out, or that records it if it takes more than a state change.
    /// `jitter` is for the delay of a retry, in thousandths.
    pub fn update(&self, jitter: u32) -> Update {
        let handoff = self.id.number();
        let event = match self.action {
            Action::Retry if !self.by_contract && self.revives => Event::Redrive,
            Action::Retry if !self.by_contract => Event::Retry,
            Action::Reassign if !self.by_contract => Event::Reassign,
            Action::Escalate if self.to.is_some() && !self.by_contract => Event::Reassign,
            Action::Skip | Action::Terminate if !self.by_contract => Event::Cancel,
            action => {
                return Update::Decide {
                    handoff,
                    action,
                    why: self.why.clone(),
                };
            }
        };
        let reason = self.instructions.as_ref().unwrap_or(&self.why);
        let arguments = EventArgs {
            reason: Some(reason.clone()),
            receiver: self.to.clone(),
            jitter: Some(jitter),
            decision: Some((self.action, self.why.clone())),
            ..EventArgs::default()
        };
        Update::change(handoff, event, arguments)
    }
}

/// What can be done about a handoff that failed or waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Another attempt by the same agent.
    Retry,
    /// An attempt by another agent.
    Reassign(AgentName),
    /// An answer to the open questions.
    Answer,
    /// A question from the first agent to the second, a person.
    Ask(AgentName, AgentName),
    /// New attempts for a dead handoff.
    Redrive,
    /// Giving the handoff up.
    Terminate,
}

/// The agent that decides about a sender's handoffs: the protocol's orchestrator, else the sender.
pub fn decider<'a>(protocol: &'a Protocol, sender: &'a AgentName) -> &'a AgentName {
    // In a call, the requester decides what happens to its request.
    let asker = protocol.is_kind(sender.as_str(), AgentKind::Orchestrator);
    protocol.lead().filter(|_| !asker).unwrap_or(sender)
}

/// The agent that decides what happens to a handoff now: the one that the protocol's rules name,
/// else the one that decides about its sender's.
pub(crate) fn decides(protocol: &Protocol, issue: &Issue, record: &Record) -> AgentName {
    let needs = matches!(record.state, State::Failed | State::Dead | State::Blocked);
    let last = record.latest().filter(|_| needs);
    let advice = last.and_then(|last| advise(protocol, issue, record, None, last.at));
    advice.map_or_else(
        || decider(protocol, &record.from).clone(),
        |advice| advice.agent,
    )
}

impl Receipt {
    /// Adds what the protocol says about how the work goes on: only whoever made the request needs it.
    #[must_use]
    pub fn advised(mut self, protocol: &Protocol) -> Self {
        let Record {
            from,
            to,
            contract_type,
            ..
        } = &self.record;
        self.onward = protocol.onward(to.as_str(), Some((from, contract_type.as_str())));
        self.lead = Some(decides(protocol, &self.issue, &self.record));
        self
    }
}

/// The person that steps in when no attempt is left, by a rule or by its kind.
pub fn person(protocol: &Protocol) -> Option<&AgentName> {
    let definition = protocol.definition();
    let mut rules = definition.decisions.iter();
    let rule = rules.find(|rule| rule.when.state == Some(State::Dead));
    let mut agents = definition.agents.iter();
    let person = agents.find(|agent| agent.kind == AgentKind::Human);
    let named = rule.and_then(|rule| rule.to.as_ref());
    named.or(person.map(|person| &person.id))
}

/// The choices that the protocol leaves for a handoff that needs attention.
pub fn choices(protocol: &Protocol, record: &Record, at: Moment) -> Vec<Choice> {
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

/// Decides about a handoff that failed, is dead or blocked, or whose lease ran out; one that was
/// answered, by `answer`; or one whose contract is with the agent that decides what follows from
/// it.
fn advise(
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

/// The handoff that has needed attention longest and what to do about it; otherwise the newest
/// answer, if a rule says what follows from it.
///
/// # Errors
/// If a record can't be read.
pub fn needs_attention<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    issue: &Issue,
    at: Moment,
) -> Result<Option<(Advice, Record)>, E> {
    if issue.status != IssueStatus::Open {
        return Ok(None);
    }
    // The deciding agent may already have a report on this handoff.
    let going = || {
        issue
            .open
            .iter()
            .filter(|open| issue.held_back(&open.to).is_none())
    };
    for open in going() {
        if let Some(record) = view.record(open.id.number())?
            && is_to_decide(protocol, &record)
            && let Some(mut advice) = advise(protocol, issue, &record, None, at)
        {
            if advice.action == Action::Advance && advice.to.is_none() {
                advice.to = asker(protocol, view, &record)?;
            }
            return Ok(Some((advice, record)));
        }
    }
    let stuck = [State::Failed, State::Dead, State::Blocked];
    let late = |open: &OpenHandoff| open.expires_at.is_some_and(|end| end <= at);
    let is_stuck = |open: &&OpenHandoff| stuck.contains(&open.state) || late(open);
    // What is decided already waits for whoever has to act; the rest is still to decide.
    let mut decided = None;
    for open in going().filter(is_stuck) {
        let Some(record) = view.record(open.id.number())? else {
            continue;
        };
        let answer = record.latest().and_then(|t| t.sent.as_ref());
        let answer = answer.map(|id| view.record(id.number())).transpose()?;
        let advice = advise(protocol, issue, &record, answer.flatten().as_ref(), at);
        match advice {
            Some(advice) if advice.decided.is_none() => return Ok(Some((advice, record))),
            Some(advice) if decided.is_none() => decided = Some((advice, record)),
            _ => {}
        }
    }
    if decided.is_some() || issue.paused.is_some() {
        return Ok(decided);
    }
    if let Some(found) = waits_in_vain(protocol, view, issue)? {
        return Ok(Some(found));
    }
    answered(protocol, view, issue, at)
}

/// What follows from the newest answer, if a rule says so and nobody has decided it yet.
fn answered<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    issue: &Issue,
    at: Moment,
) -> Result<Option<(Advice, Record)>, E> {
    let Some(answer) = view.record(issue.handoffs)? else {
        return Ok(None);
    };
    let Some(request) = &answer.answers else {
        return Ok(None);
    };
    let Some(record) = view.record(request.number())? else {
        return Ok(None);
    };
    let advice = advise(protocol, issue, &record, Some(&answer), at);
    // An answered request needs no decision unless a rule covers it.
    let own = |advice: &Advice| advice.action != Action::Escalate && advice.decided.is_none();
    Ok(advice.filter(own).map(|advice| (advice, record)))
}

/// The agent that a person's answer goes back to: whoever sent the newest work before it.
fn asker<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    answer: &Record,
) -> Result<Option<AgentName>, E> {
    let is = |record: &Record, kind| protocol.is_kind(record.from.as_str(), kind);
    let passes_on =
        |record: &Record| is(record, AgentKind::Human) || is(record, AgentKind::Orchestrator);
    if !is(answer, AgentKind::Human) {
        return Ok(None);
    }
    let mut record = answer.clone();
    while passes_on(&record) {
        // A tampered record may follow a later one.
        let number = record.id.number();
        let before = record.follows.map(|id| id.number()).filter(|n| *n < number);
        let Some(before) = before else {
            return Ok(None);
        };
        record = match view.record(before)? {
            Some(before) => before,
            None => return Ok(None),
        };
    }
    Ok(Some(record.from))
}

/// The first handoff that can never start, because what it waits for was given up.
fn waits_in_vain<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    issue: &Issue,
) -> Result<Option<(Advice, Record)>, E> {
    let waiting = issue.tasks.iter().filter(|task| {
        let given_up = |on: &Task| {
            let before = on.parent == task.parent && task.depends_on.contains(&on.id);
            before && on.state == TaskState::Pending && !is_open(issue, on)
        };
        task.state == TaskState::Pending && is_open(issue, task) && issue.tasks.iter().any(given_up)
    });
    for task in waiting {
        let Some(record) = view.record(task.handoff.number())? else {
            continue;
        };
        let mut states = BTreeMap::new();
        for id in &record.waits_for {
            let before = view.record(id.number())?;
            states.extend(before.map(|before| (id.number(), before.state)));
        }
        let state = |id: &HandoffId| states.get(&id.number()).copied();
        let Some((on, state)) = record.waits_in_vain(state) else {
            continue;
        };
        let advice = Advice {
            id: record.id.clone(),
            action: Action::Escalate,
            agent: decider(protocol, &record.from).clone(),
            to: None,
            why: format!(
                "{} waits for {on}, which is {state}: plan its task again, or cancel it",
                record.id
            ),
            questions: Vec::new(),
            instructions: None,
            by_contract: false,
            revives: false,
            decided: None,
        };
        return Ok(Some((advice, record)));
    }
    Ok(None)
}

fn is_open(issue: &Issue, task: &Task) -> bool {
    issue.open.iter().any(|open| open.id == task.handoff)
}

/// Whether a rule of the protocol asks for a decision about a completed handoff and its answer.
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

/// The default rules: for a protocol that has none, and after a protocol's own.
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

/// The status word that counts for what follows from a handoff: the one of its contract; work that
/// violates a role has failed, whatever its sender says.
pub(crate) fn standing_status<'a>(protocol: &'a Protocol, record: &'a Record) -> Option<&'a str> {
    let mut words = protocol.definition().status.iter();
    let failed = words.find(|(_, state)| **state == State::Failed);
    let failed = failed.filter(|_| !record.violations.is_empty());
    failed.map_or(record.status.as_deref(), |(word, _)| Some(word))
}

/// Whether a handoff's contract is with the agent that decides what follows from it.
pub(crate) fn is_to_decide(protocol: &Protocol, record: &Record) -> bool {
    let in_hand = matches!(record.state, State::Pending | State::InProgress);
    let rules = &protocol.definition().decisions;
    in_hand
        && record.status.is_some()
        && rules.iter().any(|rule| rule.when.to_decide)
        && protocol.is_kind(record.to.as_str(), AgentKind::Orchestrator)
}

/// A handoff that needs attention, as the rules see it.
struct Case<'a> {
    protocol: &'a Protocol,
    issue: Option<&'a Issue>,
    record: &'a Record,
    answer: Option<&'a Record>,
    /// Whether its contract is with the agent that decides what follows from it.
    to_decide: bool,
    at: Moment,
    /// Its state once what is overdue is recorded.
    state: State,
    code: Option<&'a str>,
    recoverable: bool,
    retries_left: bool,
}

impl<'a> Case<'a> {
    fn new(
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
        let spent = record.why_spent(protocol, code);
        let state = match (expired, &spent) {
            (false, _) => record.state,
            (true, Some(_)) if protocol.definition().retry.is_some() => State::Dead,
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
            retries_left: state == State::Failed && spent.is_none(),
        }
    }

    fn others(&self) -> Vec<&'a AgentName> {
        let record = self.record;
        let (from, to) = (record.from.as_str(), record.to.as_str());
        self.protocol.others_for(from, to, &record.contract_type)
    }

    fn people(&self) -> impl Iterator<Item = &'a AgentName> {
        let agents = self.protocol.definition().agents.iter();
        agents.filter(|a| a.kind == AgentKind::Human).map(|a| &a.id)
    }

    /// A person that the deciding agent, or else the sender, can send something to.
    fn person_to_ask(&self) -> Option<Choice> {
        let deciders = [decider(self.protocol, &self.record.from), &self.record.from];
        let reaches = |from: &AgentName, to: &AgentName| {
            self.protocol
                .routes(from.as_str(), to.as_str())
                .next()
                .is_some()
        };
        deciders.into_iter().find_map(|from| {
            let person = self.people().find(|person| reaches(from, person))?;
            Some(Choice::Ask(from.clone(), person.clone()))
        })
    }

    fn applies(&self, when: &Circumstances) -> bool {
        let one_of = |words: &[String], word: Option<&str>| {
            words.is_empty() || word.is_some_and(|word| words.iter().any(|w| w == word))
        };
        let told = self.answer.or(Some(self.record).filter(|_| self.to_decide));
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

    /// The advice that a rule gives, if it applies and can be carried out.
    fn apply(&self, rule: &DecisionRule) -> Option<Advice> {
        if !self.applies(&rule.when) {
            return None;
        }
        let record = self.record;
        let decider = decider(self.protocol, &record.from);
        let person = || self.people().next().unwrap_or(decider);
        let (mut agent, mut to, mut questions) = (decider, None, Vec::new());
        let failure = record.failure();
        let mut instructions = failure.and_then(|f| f.suggested_action.clone());
        match rule.action {
            action if self.to_decide => {
                agent = &record.to;
                to = match action {
                    Action::Advance => record.successor(),
                    Action::Retry => Some(&record.from),
                    Action::Ask | Action::Escalate | Action::FallBack => {
                        rule.to.as_ref().or_else(|| self.people().next())
                    }
                    _ => rule.to.as_ref(),
                };
                if action == Action::Ask {
                    questions.clone_from(&record.missing);
                }
            }
            Action::Retry if self.retries_left => {}
            // Only a rule that says how often: others would go on for ever.
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
                agent = rule.to.as_ref().unwrap_or(decider);
            }
            Action::Escalate => {
                agent = rule.to.as_ref().unwrap_or_else(person);
                // A person who could have received it in the first place gets it.
                let takes = |other: &&&AgentName| **other == agent;
                to = Some(agent).filter(|_| self.state == State::Failed);
                to = to.filter(|_| self.others().iter().any(|other| takes(&other)));
            }
            Action::FallBack => {
                agent = rule.to.as_ref().unwrap_or_else(person);
                let policy = self.protocol.definition().retry.as_ref();
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

    /// The newest decision about the handoff, if it is this one and nothing has changed the handoff
    /// since.
    fn decided(&self, action: Action) -> Option<&'a Decision> {
        if self.state != self.record.state {
            // Its time ran out since, which is not recorded yet.
            return None;
        }
        let mut decisions = self.issue?.decisions.iter().rev();
        let last = decisions.find(|decision| decision.id == self.record.id)?;
        let changed = self.record.latest()?.at;
        Some(last).filter(|last| last.action == action && last.at >= changed)
    }

    /// The rationale: the handoff's state, and what the rule says.
    fn why(&self, rule: &str) -> String {
        let (id, state) = (&self.record.id, self.state);
        if self.to_decide {
            let status = standing_status(self.protocol, self.record).unwrap_or_default();
            return match self.record.violation() {
                None => format!("{id} says {status}: {rule}"),
                Some(violation) => format!("{id} is {status}, because {violation}: {rule}"),
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
