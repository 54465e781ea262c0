//! Attention: who is needed, since when, why, and the command to run.
//!
//! No other module decides this. A handoff is judged by its summary alone, so that the tip's
//! entries and a survey of the whole ledger give the same result in every view.

use chrono::TimeDelta;
use handoff_base::Moment;
use handoff_base::ids::{AgentName, AgentRef, HandoffId, IssueKey};
use handoff_base::text::{one_line, word};
use handoff_protocol::{
    Action, Event, LEAD, Need, PERSON, Protocol, RECEIVER, SENDER, State, Style,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decision::{
    Advice, Decider, Objection, after_overruled, answer_keys, answers, approve_command, decider,
    disapproved, due, is_to_decide, kept_apart, person,
};
use crate::planner::Sending;
use crate::record::spending::{SpentSoFar, ensure_left};
use crate::record::{BudgetSpent, Halt, Issue, IssueStatus, Record, Spending, View};
use crate::refusal::{Limit, PAST_DEADLINE};
use crate::view::commands::{RESUMED, commands, correct, give_up, take_up};
use crate::view::survey::{ChangeSurvey, HandoffSurvey, IssueSurvey};
use crate::view::{Turn, needs_attention, stuck_advice, turn};

/// How long a handoff may stay unclaimed under a protocol without leases.
const PATIENCE: TimeDelta = TimeDelta::days(1);

/// How long before its end a lease counts as ending, in seconds; for a short lease, it is its last
/// tenth.
pub const ENDING: i64 = 600;

/// The failure code of a role violation; its agent is notified too.
const ROLE_VIOLATION: &str = "ROLE_VIOLATION";

/// Why an ended handoff waits for a person.
const UNAPPROVED: &str = "not approved by a person yet";

/// A handoff or issue that needs somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attention {
    /// Its issue.
    pub issue: IssueKey,
    /// The issue's title.
    pub title: String,
    /// Its handoff.
    pub id: HandoffId,
    /// Why somebody is needed.
    pub need: Need,
    /// The agent that has or had the handoff.
    pub with: AgentName,
    /// Who rejected or cancelled it, if that was not this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentName>,
    /// The agent whose turn it is.
    pub turn: AgentName,
    /// Every agent that is told, the one whose turn it is first.
    pub told: Vec<AgentName>,
    /// Since when.
    pub since: Moment,
    /// The failure, the question, the given reason, or the subject.
    pub why: String,
    /// The attempt's number.
    pub attempt: u32,
    /// The next command.
    pub next: String,
    /// What is to be read first, in `inbox`, `show` and without a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<String>,
    /// Whether the agent is only to be told: just its own views show it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_nothing: bool,
}

impl Attention {
    /// What it needs, in a few words: `rejected by maintainer`.
    pub fn what(&self) -> String {
        let by = self.by.as_ref().map(|by| format!(" by {by}"));
        self.need.title().to_owned() + &by.unwrap_or_default()
    }

    /// Whether it is up to an agent: it is its turn, or the turn of the orchestrator for whom it
    /// stands in as a person.
    pub fn is_up_to(&self, agent: &AgentName, protocols: &[&Protocol]) -> bool {
        let stands_in = |p: &&Protocol| p.is_person(agent.as_str()) && p.lead() == Some(&self.turn);
        self.turn == *agent || protocols.iter().any(stands_in)
    }

    /// Whether an agent is notified.
    pub fn is_told(&self, agent: &AgentName) -> bool {
        self.told.contains(agent)
    }
}

/// What needs attention in one issue, in the order of its handoffs, without mere notices. `today`
/// is the day's spending under the protocol, needed if a budget counts per day; `halts` are the
/// pauses of more than the issue. `decides` returns who decides about a handoff, as [`deciding`]
/// does.
///
/// # Errors
/// The error of `decides`.
pub fn of_issue<E>(
    issue: &IssueSurvey<'_>,
    protocol: &Protocol,
    (today, halts): (Option<&Spending>, &[Halt]),
    now: Moment,
    decides: impl Fn(u32) -> Result<Option<Decider>, E>,
) -> Result<Vec<Attention>, E> {
    let judge = |handoff: &HandoffSurvey<'_>, awaited: Option<&AgentName>| {
        let decides = if may_wait_for_decision(protocol, handoff, awaited, now) {
            decides(handoff.number)?
        } else {
            None
        };
        let handoff = Judged {
            id: issue.id(handoff),
            title: issue.title,
            handoff,
            issue: Some(issue),
            today,
            awaited,
            takes_nothing: false,
            decides,
            protocol,
            now,
        };
        let found = handoff.attention(|number| Some(issue.handoff(number)?.state));
        Ok::<_, E>(found)
    };
    let mut found = Vec::new();
    // During a halt nothing can be claimed; what else is needed can be done.
    let going = |agent: AgentRef<'_>, state: State| {
        let (name, own) = (agent.to_name(), protocol.name());
        let is_halted = || halts.iter().any(|halt| halt.holds_back(&name, own));
        !issue.holds_back(agent) && (state != State::Pending || !is_halted())
    };
    for handoff in &issue.handoffs {
        let about = |(number, _): &&(u32, AgentName)| *number == handoff.number;
        let awaited = issue.awaiting.iter().find(about).map(|(_, agent)| agent);
        let is_active = issue.status == IssueStatus::Open || awaited.is_some();
        if is_active
            && going(
                awaited.map_or(handoff.to, AgentName::borrowed),
                handoff.state,
            )
        {
            found.extend(judge(handoff, awaited)?);
        }
    }
    Ok(found)
}

/// Whether a decision about a handoff may be up to another agent than its own: it is stuck or has
/// expired, or has an entry for the person from whom one is `due`, or its findings were rejected.
pub fn may_wait_for_decision(
    protocol: &Protocol,
    handoff: &HandoffSurvey<'_>,
    awaited: Option<&AgentName>,
    now: Moment,
) -> bool {
    let state = handoff.state;
    let is_due = |awaited: &AgentName| {
        let ends = protocol.definition().ends_unmerged(handoff.contract_type);
        !state.is_terminal()
            || state == State::Completed && ends
            || protocol.is_person(awaited.as_str())
    };
    let is_expired = handoff.expires_at.is_some_and(|end| end <= now);
    let kind = || protocol.contract_type(handoff.contract_type);
    let raises = || kind().is_some_and(|kind| kind.raises.is_some());
    let is_overruled = awaited.is_some() && state == State::Rejected && raises();
    state.is_stuck() || is_expired || is_overruled || awaited.is_some_and(is_due)
}

/// The agent that decides about a handoff: for a stuck or an expired one, the agent named by the
/// protocol's rules, with the command for it; else the person whose approval the merge lacks, or who
/// is told that it came too early.
///
/// # Errors
/// If a record can't be read.
pub fn deciding<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    number: u32,
    now: Moment,
) -> Result<Option<Decider>, E> {
    let Some(issue) = view.shared_issue()? else {
        return Ok(None);
    };
    let Some(record) = view.record(number)? else {
        return Ok(None);
    };
    if let Some(command) = after_overruled(protocol, &issue, &record) {
        return Ok(Some(Decider {
            command: Some(command),
            ..(record.from, Need::Rejected).into()
        }));
    }
    if !record.state.is_stuck() && !record.is_expired(now) {
        let Some(due) = due(view, protocol, &issue, number)? else {
            return Ok(None);
        };
        if due.need != Need::Unapproved {
            return Ok(Some(due));
        }
        if due.command.is_some() {
            return Ok(Some(due));
        }
        let by = (&record.id, due.agent.as_str());
        let is_over = record.state == State::Completed;
        let why = is_over.then(|| unapproved(view, protocol));
        return Ok(Some(Decider {
            command: Some(approve_command(view, protocol, by)?),
            why: why.transpose()?,
            ..due
        }));
    }
    if let Some(report) = report_on(view, protocol, &issue, &record)? {
        return Ok(Some(Decider {
            command: Some(take_up(&report, &report.to, now)),
            by_report: true,
            ..(report.to, Need::Failed).into()
        }));
    }
    let Some(advice) = stuck_advice(protocol, view, &issue, &record, now)? else {
        return Ok(None);
    };
    let commands = commands((&advice, &record), view, protocol, now)?;
    let is_choice = advice.action.is_with_person() && protocol.is_person(advice.agent.as_str());
    let why = is_choice.then(|| {
        let ways = commands
            .iter()
            .filter_map(|one| match one.split(' ').nth(2)? {
                "protocol" => Some("raise the limit"),
                verb => ["retry", "cancel"].into_iter().find(|way| *way == verb),
            });
        let state = format!("{} is {}", record.id, record.state);
        let why = advice.why.split_once(": ");
        let why = why.filter(|(about, _)| about.starts_with(&state));
        let why = why.map_or(&*advice.why, |(_, why)| why);
        format!("{why}: {}", ways.collect::<Vec<_>>().join(" or "))
    });
    Ok(Some(Decider {
        command: commands.into_iter().next(),
        why,
        ..(advice.agent, Need::Failed).into()
    }))
}

/// The report that a stuck handoff's agent sent with it, while it is with the agent that decides.
fn report_on<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    issue: &Issue,
    record: &Record,
) -> Result<Option<Record>, E> {
    let sent = record.latest().and_then(|last| last.sent.as_ref());
    let open = sent.filter(|sent| issue.open.iter().any(|open| open.id == **sent));
    let report = open.map(|id| view.record(id.number())).transpose()?;
    Ok(report
        .flatten()
        .filter(|report| is_to_decide(protocol, report)))
}

/// Why an ended handoff waits for a person, and why for one who is another worker than the reader.
fn unapproved<E>(view: &impl View<E>, protocol: &Protocol) -> Result<String, E> {
    let apart = view.reader().map(|own| kept_apart(view, protocol, own));
    let sent = apart.transpose()?.flatten();
    let sent = sent.map(|(_, sent)| format!("; this worker sent {sent}, so another one approves"));
    Ok(UNAPPROVED.to_owned() + &sent.unwrap_or_default())
}

/// Whether an ended handoff may be a mere notice.
pub fn may_take_nothing(record: &Record) -> bool {
    record.state == State::Cancelled || record.answers.is_some()
}

/// Whether a deadline or a budget can stop an issue's work.
pub fn is_limited(protocol: &Protocol) -> bool {
    let definition = protocol.definition();
    let limits = definition.limits.as_ref();
    let has_deadline = limits.is_some_and(|limits| limits.deadline_seconds.is_some());
    has_deadline || !definition.budgets().is_empty()
}

/// Whose turn it is in an issue, and why.
#[derive(Clone, Debug)]
pub struct NextTurn {
    /// The next action.
    pub action: Action,
    /// Whose turn it is.
    pub agent: AgentName,
    /// The handoff concerned.
    pub id: Option<HandoffId>,
    /// Why.
    pub why: String,
    /// The commands for it, the likeliest first.
    pub commands: Vec<String>,
    /// Whether a pause holds the work back, so that the agent has to end that.
    pub is_paused: bool,
    /// The protocol's advice, with its handoff, if a decision is due.
    pub advice: Option<(Advice, Record)>,
    /// The person who can raise the limit that is reached, and their command, which is the last one.
    pub raise: Option<(AgentName, String)>,
}

impl NextTurn {
    /// The turn of an agent that needs nobody else, with the limit, if one is reached, that keeps it
    /// from sending a contract.
    ///
    /// # Errors
    /// If the record can't be read.
    pub fn of<E>(
        turn: Turn,
        view: &impl View<E>,
        (protocol, issue): (&Protocol, &Issue),
        at: Moment,
    ) -> Result<Self, E> {
        let mut open = issue.open.iter();
        let open = open.find(|open| Some(&open.id) == turn.handoff.as_ref());
        let own = open.filter(|open| open.to == turn.agent);
        let own = own.map(|open| view.shared_record(open.id.number()));
        let own = own.transpose()?.flatten();
        let mut commands: Vec<String> = own
            .iter()
            .map(|record| take_up(record, &turn.agent, at))
            .collect();
        let mut why = turn.why;
        let waits = own.as_ref().and_then(|record| record.waits_until(at));
        why.extend(waits.map(|until| format!("; it can be claimed from {until}")));
        let mut raise = None;
        if let Some((limit, is_all)) = next_limit(protocol, issue, &turn.agent, at) {
            let is_all = is_all && !own.as_ref().is_some_and(|own| is_request(protocol, own));
            why += &format!("; the issue has reached a limit: {limit}");
            let held = own.filter(|record| record.state == State::InProgress);
            let (id, by) = (&turn.handoff, &turn.agent);
            let fail = |id| format!("git handoff fail {id} --as {by} --code CODE --message WHY");
            if held.is_some() && is_all {
                commands.clear();
            }
            commands.extend(held.and(id.as_ref()).map(fail));
            // Only a person raises a limit.
            raise = limit
                .raise(protocol.name())
                .zip(person(protocol).or(protocol.lead()));
        } else {
            let near = issue.near_limits(protocol);
            why.extend(near.iter().map(|one| format!("; {one}")));
        }
        why.extend(
            raise
                .iter()
                .map(|(_, who)| format!(", which {who} can raise")),
        );
        let raise = raise.map(|(command, who)| (who.clone(), format!("{command} --as {who}")));
        commands.extend(raise.iter().map(|(_, command)| command.clone()));
        Ok(Self {
            action: Action::Advance,
            commands,
            agent: turn.agent,
            id: turn.handoff,
            why,
            is_paused: false,
            advice: None,
            raise,
        })
    }

    /// What an agent may do with its own handoff in an issue where a limit is reached, beside sending
    /// what it still can.
    ///
    /// # Errors
    /// If the record can't be read.
    pub fn at_limit<E>(
        view: &impl View<E>,
        (protocol, issue): (&Protocol, &Issue),
        own: &Record,
        at: Moment,
    ) -> Result<Option<Self>, E> {
        let Some((_, is_all)) = next_limit(protocol, issue, &own.to, at) else {
            return Ok(None);
        };
        let is_all = is_all && !is_request(protocol, own);
        let what = if is_all { "nothing" } else { "not everything" };
        let turn = Turn {
            agent: own.to.clone(),
            handoff: Some(own.id.clone()),
            why: format!("{what} can be sent"),
        };
        let mut next = Self::of(turn, view, (protocol, issue), at)?;
        // The first one takes up what it holds already.
        next.commands.drain(..usize::from(!is_all));
        Ok(Some(next))
    }

    /// The turn of whoever has to end a pause.
    fn paused((agent, why, command): (&AgentName, String, String)) -> Self {
        Self {
            action: Action::Advance,
            agent: agent.clone(),
            id: None,
            why,
            commands: vec![command],
            is_paused: true,
            advice: None,
            raise: None,
        }
    }

    /// The turn of a person who objects to the code with which an issue ended.
    fn against(objection: &Objection, approve: String) -> Self {
        Self {
            action: Action::Advance,
            agent: objection.by.clone(),
            id: Some(objection.id.clone()),
            why: objection.to_string(),
            commands: vec![objection.reopen(), approve],
            is_paused: false,
            advice: None,
            raise: None,
        }
    }

    /// What needs somebody in an issue that is open. Who may approve after all may also send such
    /// findings again.
    fn about_open<E>(
        needed: &Attention,
        view: &impl View<E>,
        protocol: &Protocol,
    ) -> Result<Self, E> {
        let mut next = Self::about(needed);
        if needed.need == Need::Rejected
            && let Some(record) = view.shared_record(needed.id.number())?
        {
            let parties = (
                record.from.borrowed(),
                record.to.borrowed(),
                &*record.contract_type,
            );
            let again = again(protocol, &needed.issue, parties);
            next.commands
                .extend((needed.next != again).then_some(again));
        }
        Ok(next)
    }

    fn about(needed: &Attention) -> Self {
        Self {
            action: Action::Advance,
            agent: needed.turn.clone(),
            id: Some(needed.id.clone()),
            why: format!("{}: {}", needed.what(), needed.why),
            commands: vec![needed.next.clone()],
            is_paused: false,
            advice: None,
            raise: None,
        }
    }
}

/// Whose turn it is in an issue, given its needs as sorted by [`sorted`]; the issue is without a
/// pause that is over. Every screen words this.
///
/// # Errors
/// If a record can't be read.
pub fn next_turn<E>(
    view: &impl View<E>,
    issue: &Issue,
    protocol: &Protocol,
    needed: &[Attention],
    now: Moment,
) -> Result<Option<NextTurn>, E> {
    if issue.status != IssueStatus::Open {
        return after_end(view, protocol, issue, needed);
    }
    let over = |about: Option<&HandoffId>| {
        let is_over = |one: &&Attention| {
            one.need == Need::PastDeadline && about.is_none_or(|id| *id == one.id)
        };
        needed.iter().find(is_over).map(NextTurn::about)
    };
    if let Some((advice, record)) = needs_attention(protocol, view, issue, now)? {
        // After the deadline nothing can be sent, so the advice can't be carried out.
        if let Some(over) = over(Some(&advice.id)) {
            return Ok(Some(over));
        }
        return Ok(Some(NextTurn {
            action: advice.action,
            agent: advice.agent.clone(),
            id: Some(advice.id.clone()),
            why: advice.why.clone(),
            commands: commands((&advice, &record), view, protocol, now)?,
            is_paused: false,
            advice: Some((advice, record)),
            raise: None,
        }));
    }
    if let Some(over) = over(None) {
        return Ok(Some(over));
    }
    let halts = view.halts()?;
    if let Some(turn) = turn(protocol, issue, &halts, (None, &[])) {
        let mut own = needed.iter();
        return Ok(Some(
            match own.find(|one| turn.handoff.as_ref() == Some(&one.id)) {
                Some(needed) => NextTurn::about(needed),
                None => NextTurn::of(turn, view, (protocol, issue), now)?,
            },
        ));
    }
    if let Some(needed) = needed.first() {
        return NextTurn::about_open(needed, view, protocol).map(Some);
    }
    let key = &issue.issue;
    if let Some(paused) = &issue.paused {
        let mut command = paused.resume(key, RESUMED);
        for before in paused.after.iter().rev() {
            if view.ended(before)? != Some(true) {
                command = format!("git handoff next {before}");
            }
        }
        let why = format!("issue {key} is {paused}");
        return Ok(Some(NextTurn::paused((&paused.by, why, command))));
    }
    let holds = |halt: &&Halt| {
        let mut open = issue.open.iter().map(|open| &open.to);
        open.any(|agent| halt.holds_back(agent, protocol.name()))
    };
    let halt = halts.iter().find(holds);
    let halt = halt.map(|halt| (&halt.by, halt.to_string(), halt.scope.resume(&halt.by)));
    Ok(halt.map(NextTurn::paused))
}

/// Whose turn it is in an issue that is over: a person's who objects to the code with which it was
/// completed, that of who is needed, or a person's whose approval the protocol requires only since.
fn after_end<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    issue: &Issue,
    needed: &[Attention],
) -> Result<Option<NextTurn>, E> {
    let approve = |id, by: &AgentName| approve_command(view, protocol, (id, by.as_str()));
    let is_completed = issue.status == IssueStatus::Completed;
    if is_completed && let Some(one) = disapproved(view, protocol, issue)? {
        let approve = approve(&one.id, &one.by)?;
        return Ok(Some(NextTurn::against(&one, approve)));
    }
    let next = needed.first().map(NextTurn::about);
    if next.is_some() || !is_completed {
        return Ok(next);
    }
    for number in 1..=issue.handoffs {
        if let Some(due) = due(view, protocol, issue, number)? {
            let id = HandoffId::new(issue.issue.clone(), number);
            return Ok(Some(NextTurn {
                action: Action::Advance,
                commands: vec![approve(&id, &due.agent)?],
                agent: due.agent,
                id: Some(id),
                why: format!("{}: {}", due.need.title(), unapproved(view, protocol)?),
                is_paused: false,
                raise: None,
                advice: None,
            }));
        }
    }
    Ok(None)
}

/// The limit that keeps an agent from sending a contract of a type in an issue, whatever it says.
pub fn limit_to_send(
    (protocol, issue): (&Protocol, &Issue),
    (from, to): (&AgentName, &AgentName),
    kind: &str,
    at: Moment,
) -> Option<Limit> {
    let value = &Value::Null;
    let sending = Sending {
        protocol,
        issue,
        kind,
        value,
        from,
        to,
        at,
    };
    sending.exceeds()
}

/// Whether a handoff asks for an answer, which no limit keeps back.
fn is_request(protocol: &Protocol, record: &Record) -> bool {
    !protocol.answers_to(&record.contract_type).is_empty()
}

/// The limit, if one is reached, that keeps an agent from sending a contract in an issue, and
/// whether limits keep it from sending any.
pub(crate) fn next_limit(
    protocol: &Protocol,
    issue: &Issue,
    agent: &AgentName,
    at: Moment,
) -> Option<(Limit, bool)> {
    let routes = protocol.routes_from(agent.as_str());
    let reached = routes.filter_map(|route| {
        let to = &protocol.agent(route.to.as_str())?.id;
        let exceeds = move |kind: &String| limit_to_send((protocol, issue), (agent, to), kind, at);
        Some(route.contracts.iter().map(exceeds))
    });
    let reached: Vec<Option<Limit>> = reached.flatten().collect();
    let is_all = reached.iter().all(Option::is_some);
    let first = reached.into_iter().flatten().next()?;
    Some((first, is_all))
}

/// Sorts by urgency, then by age, the oldest first.
pub fn sorted(mut found: Vec<Attention>) -> Vec<Attention> {
    found.sort_by(|a, b| (a.need, a.since, &a.id).cmp(&(b.need, b.since, &b.id)));
    found
}

/// Whether an agent may be notified about handoffs that it neither holds nor decides about.
pub fn hears_of_others(protocol: &Protocol, agent: &AgentName) -> bool {
    let named = |party: &String| party == SENDER || party == agent.as_str();
    let definition = protocol.definition();
    definition.style() == Style::Call
        || protocol.lead().is_none()
        || protocol.steps_in(agent)
        || person(protocol) == Some(agent)
        || definition.alerts.all_told().any(named)
}

/// A handoff, with what its needs depend on.
pub struct Judged<'a> {
    /// Its id.
    pub id: HandoffId,
    /// The issue's title.
    pub title: &'a str,
    /// Its summary.
    pub handoff: &'a HandoffSurvey<'a>,
    /// The issue; `None` if it would make no difference.
    pub issue: Option<&'a IssueSurvey<'a>>,
    /// Today's spending under the protocol.
    pub today: Option<&'a Spending>,
    /// The agent that it awaits, or that is to be notified of its end.
    pub awaited: Option<&'a AgentName>,
    /// Whether that agent is only to be notified.
    pub takes_nothing: bool,
    /// The agent that decides about it, as [`deciding`] returns it.
    pub decides: Option<Decider>,
    /// Its protocol.
    pub protocol: &'a Protocol,
    /// When.
    pub now: Moment,
}

/// A need, and since when.
type Found = (Need, Moment);

impl Judged<'_> {
    /// What the handoff needs, if anything. `state` looks up another handoff of the issue by
    /// number.
    pub fn attention(&self, state: impl Fn(u32) -> Option<State>) -> Option<Attention> {
        let handoff = self.handoff;
        let last = last(handoff)?;
        let (need, since) = self.need(last, state)?;
        let told = self.told(need, last);
        let turn = told.first()?.clone();
        let details = last.details.filter(|_| self.takes_correction(last));
        let reason = last.reason.as_ref().filter(|_| {
            !matches!(
                need,
                Need::LeaseEnding | Need::LeaseRanOut | Need::Unclaimed
            )
        });
        let is_overruled = self.is_rejected_by_person();
        Some(Attention {
            issue: self.id.issue().clone(),
            title: self.title.to_owned(),
            need,
            with: handoff.to.to_name(),
            by: Some(last.by)
                .filter(|by| *by != handoff.to)
                .filter(|_| matches!(need, Need::Rejected | Need::Cancelled) && !is_overruled)
                .map(AgentRef::to_name),
            since,
            why: self.why_hindered(need).unwrap_or_else(|| {
                let why = reason.map_or(handoff.summary, |reason| &**reason);
                let details = details.map(|details| format!("; {}", one_line(details)));
                let choice = self.why_choice(need).map(|choice| format!("; {choice}"));
                let (details, choice) = (details.unwrap_or_default(), choice.unwrap_or_default());
                format!("{why}{details}{choice}")
            }),
            attempt: handoff.attempt,
            next: self.command(need, last, &turn),
            read: (self.takes_nothing).then(|| format!("git handoff show {}", self.id)),
            turn,
            told,
            id: self.id.clone(),
            takes_nothing: self.takes_nothing,
        })
    }

    /// The need that follows from the handoff's own state, or from its issue.
    fn need(&self, last: &ChangeSurvey<'_>, state: impl Fn(u32) -> Option<State>) -> Option<Found> {
        let found = self.own_need(last, state);
        match found {
            Some((Need::Dead | Need::Failed | Need::Blocked, _)) => {
                let escalated = self.escalated(last).map(|at| (Need::Escalated, at));
                escalated.or(found)
            }
            Some((Need::Stranded | Need::LeaseRanOut, _)) => found,
            _ => self.past_deadline(found.is_some()).or(found),
        }
    }

    /// When it was escalated to a person, if nothing has happened since.
    fn escalated(&self, last: &ChangeSurvey<'_>) -> Option<Moment> {
        let mut decisions = self.issue?.decisions.iter().rev();
        let newest = decisions.find(|one| one.number == self.handoff.number)?;
        (newest.action.is_with_person() && newest.at >= last.at).then_some(newest.at)
    }

    /// Whether a person rejected it after its issue's end, or overruled its findings.
    fn is_rejected_by_person(&self) -> bool {
        let mut decides = self.decides.iter();
        decides.any(|one| one.need == Need::Rejected)
    }

    /// When and why its issue was reopened after it, if it was.
    fn reopened(&self) -> Option<(Moment, &str)> {
        let issue = self.issue?;
        let is_before = self.handoff.number <= issue.counts_after;
        let why = issue.why_reopened.as_deref();
        why.filter(|_| is_before)
            .map(|why| (issue.counts_since, why))
    }

    /// Whether it was cancelled by a decision to end its issue.
    fn is_terminated(&self) -> bool {
        let mut decisions = self
            .issue
            .iter()
            .flat_map(|issue| issue.decisions.iter().rev());
        let newest = decisions.find(|one| one.number == self.handoff.number);
        self.handoff.state == State::Cancelled
            && newest.is_some_and(|one| one.action == Action::Terminate)
    }

    /// The need `PastDeadline`, if the deadline prevents the handoff from going on.
    fn past_deadline(&self, needs: bool) -> Option<Found> {
        let issue = self.issue.filter(|_| !self.takes_nothing)?;
        let goes_on = needs || !self.handoff.state.is_terminal();
        let end = self.protocol.definition().deadline(issue.counts_since)?;
        let is_over = issue.status == IssueStatus::Open && goes_on && end <= self.now;
        is_over.then_some((Need::PastDeadline, end))
    }

    /// The budget that has nothing left for a claim of it, if any.
    fn spent(&self) -> Option<BudgetSpent> {
        let so_far = SpentSoFar {
            issue: &self.issue?.spent,
            day: self.today,
        };
        let to = self.handoff.to.to_name();
        ensure_left(self.protocol.definition(), (&to, &self.id), so_far).err()
    }

    /// The reason for a need that comes from the issue's deadline or a budget.
    fn why_hindered(&self, need: Need) -> Option<String> {
        match need {
            Need::Rejected => self.decides.as_ref()?.why.clone(),
            Need::PastDeadline => Some(PAST_DEADLINE.to_owned()),
            Need::Merged => {
                Some("its code is merged, and the review that comes before it is open".to_owned())
            }
            Need::Unapproved => {
                let why = self.decides.as_ref()?.why.clone();
                let is_over = self.handoff.state == State::Completed;
                why.or_else(|| is_over.then(|| UNAPPROVED.to_owned()))
            }
            Need::NotHandedOn => self.reopened().map(|(_, why)| why.to_owned()),
            Need::BudgetSpent => Some(format!("{} is spent or claimed", self.spent()?.left)),
            _ => None,
        }
    }

    /// Why a person has to choose what becomes of failed work, and between what.
    fn why_choice(&self, need: Need) -> Option<&str> {
        let decides = self.decides.as_ref().filter(|_| need == Need::Failed);
        decides?.why.as_deref()
    }

    /// The command by which a person raises a limit.
    fn raise(&self, key: &str) -> String {
        format!("git handoff protocol set {} {key} N", self.protocol.name())
    }

    fn own_need(
        &self,
        last: &ChangeSurvey<'_>,
        state: impl Fn(u32) -> Option<State>,
    ) -> Option<Found> {
        let handoff = self.handoff;
        if self.is_rejected_by_person() {
            return Some((Need::Rejected, last.at));
        }
        Some(match (handoff.state, self.awaited) {
            (State::Dead, _) => (Need::Dead, last.at),
            (State::Failed, _) => {
                let since = last.ran_out_at.map_or(last.at, |end| end.min(last.at));
                (Need::Failed, since)
            }
            (State::Blocked, _) => (Need::Blocked, last.at),
            (State::InProgress, _) => match handoff.expires_at.filter(|end| *end <= self.now) {
                Some(end) => (Need::LeaseRanOut, end),
                None => match &self.decides {
                    Some(decides) => (decides.need, last.at),
                    None => {
                        let at = ending(handoff).filter(|at| *at <= self.now)?;
                        (Need::LeaseEnding, at)
                    }
                },
            },
            (State::Pending, _) => return self.pending(last, state),
            (State::Rejected, Some(_)) => (Need::Rejected, last.at),
            (State::Cancelled, Some(_)) => (Need::Cancelled, last.at),
            (State::Completed, Some(_)) => match &self.decides {
                Some(decides) => (decides.need, last.at),
                None if handoff.answers.is_some() => (Need::Answered, last.at),
                None => {
                    let again = self.reopened().map(|(at, _)| at);
                    (Need::NotHandedOn, again.unwrap_or(last.at))
                }
            },
            (State::Completed | State::Rejected | State::Cancelled, None) => return None,
        })
    }

    fn pending(
        &self,
        last: &ChangeSurvey<'_>,
        state: impl Fn(u32) -> Option<State>,
    ) -> Option<Found> {
        let waits = self.handoff.waits_for.iter().filter_map(|n| state(*n));
        let waits: Vec<State> = waits.filter(|state| *state != State::Completed).collect();
        let in_vain =
            |state: &State| matches!(state, State::Dead | State::Rejected | State::Cancelled);
        if waits.iter().any(in_vain) {
            return Some((Need::Stranded, last.at));
        }
        if let Some(end) = self.handoff.expires_at.filter(|end| *end <= self.now) {
            return Some((Need::Unclaimed, end));
        }
        if let Some(decides) = self.decides.as_ref().filter(|_| waits.is_empty()) {
            return Some((decides.need, last.at));
        }
        if waits.is_empty() && self.spent().is_some() {
            return Some((Need::BudgetSpent, last.at));
        }
        if last.event == Some(Event::Answer) {
            return Some((Need::Answered, last.at));
        }
        if self.handoff.expires_at.is_some() {
            return None;
        }
        let late = unclaimed_at(self.handoff, self.protocol)?;
        let is_late = waits.is_empty() && late <= self.now;
        is_late.then_some((Need::Unclaimed, ready_at(self.handoff, last)))
    }

    /// Who is notified; the first is the one whose turn it is.
    fn told(&self, need: Need, last: &ChangeSurvey<'_>) -> Vec<AgentName> {
        if let Some(agent) = self.awaited.filter(|_| self.takes_nothing) {
            return vec![agent.clone()];
        }
        let is_limit = matches!(need, Need::PastDeadline | Need::BudgetSpent);
        let own = self.protocol.definition().alerts.told(need);
        let (from, to) = (self.handoff.from.to_name(), self.handoff.to.to_name());
        let lead = match need {
            Need::Blocked => answers(self.protocol, (&from, &to)),
            _ => decider(self.protocol, &from),
        };
        if self.is_terminated() {
            return vec![lead.clone()];
        }
        let party = |party: &str| match party {
            SENDER => Some(from.clone()),
            RECEIVER => Some(to.clone()),
            LEAD => Some(lead.clone()),
            PERSON => Some(person(self.protocol).unwrap_or(lead).clone()),
            agent => agent.parse().ok(),
        };
        let mut told: Vec<AgentName> = match own {
            Some(own) => own.iter().filter_map(|word| party(word)).collect(),
            // It can't be claimed any more, because it has failed.
            None if need == Need::Unclaimed && self.handoff.expires_at.is_some() => {
                vec![lead.clone(), to.clone()]
            }
            None => {
                // If an ended handoff awaits an agent, that agent takes the place of sender and
                // receiver.
                let awaited = self.awaited.filter(|_| self.handoff.state.is_terminal());
                let ended = |word: &&&str| awaited.is_none() || is_limit || **word == LEAD;
                let usual = need.told().iter().filter(ended);
                let usual = usual.filter_map(|word| party(word));
                let mut told: Vec<AgentName> = usual.collect();
                // Only a person raises a limit, whoever would go on.
                let at = if is_limit { told.len() } else { 0 };
                told.splice(at..at, awaited.cloned());
                told
            }
        };
        if need == Need::Failed && last.failure == Some(ROLE_VIOLATION) {
            told.push(to.clone());
        }
        if !is_limit {
            let decides = self.decides.iter().map(|decides| decides.agent.clone());
            told.splice(..0, decides);
        }
        let mut seen = Vec::new();
        told.retain(|agent| {
            let is_new = !seen.contains(agent);
            seen.push(agent.clone());
            is_new
        });
        told
    }

    /// The command for the contract that most likely follows completed work. Its receiver is the
    /// first one that does the work, if there is such a one.
    fn onward(&self) -> String {
        let (handoff, issue) = (self.handoff, self.id.issue());
        let (from, sender) = (handoff.to, handoff.from.to_name());
        let request = (&sender, handoff.contract_type);
        let mut onward = self.protocol.onward(from.as_str(), Some(request));
        onward.sort_by_key(|(to, _)| self.protocol.steps_in(to));
        let Some((to, kind)) = onward.into_iter().next() else {
            return format!("git handoff next {issue}");
        };
        let option = kind.map(|kind| format!(" --type {}", word(&kind)));
        let option = option.unwrap_or_default();
        format!("git handoff new --issue {issue} --from {from} --to {to}{option}")
    }

    /// Whether its failure must be retried with a corrected contract.
    fn takes_correction(&self, last: &ChangeSurvey<'_>) -> bool {
        self.protocol.definition().takes_correction(last.failure)
    }

    /// The command of the agent that decides about it.
    fn decided(&self, need: Need) -> String {
        let decides = self.decides.as_ref();
        let decides = decides.filter(|one| one.need != Need::Unapproved || need == one.need);
        let command = decides.and_then(|decides| decides.command.clone());
        command.unwrap_or_else(|| format!("git handoff next {}", self.id.issue()))
    }

    /// The command for the agent whose turn it is.
    fn command(&self, need: Need, last: &ChangeSurvey<'_>, turn: &AgentName) -> String {
        let (id, issue) = (&self.id, self.id.issue());
        if self.takes_nothing {
            return format!("git handoff annotate {id} --as {turn} --note seen");
        }
        if self.decides.as_ref().is_some_and(|one| one.by_report) {
            return self.decided(need);
        }
        match need {
            Need::Failed if self.takes_correction(last) && self.handoff.from == turn.borrowed() => {
                correct(id, turn)
            }
            Need::Blocked | Need::Escalated if self.handoff.state == State::Blocked => {
                answer_keys(id, &last.keys, turn)
            }
            Need::Dead
            | Need::Failed
            | Need::Stranded
            | Need::Blocked
            | Need::Escalated
            | Need::LeaseRanOut
            | Need::Unapproved => self.decided(need),
            Need::Unclaimed if self.handoff.expires_at.is_some() => self.decided(need),
            Need::PastDeadline => self.raise("limits.deadline_seconds"),
            Need::BudgetSpent => self.spent().map_or_else(String::new, |spent| {
                let (unit, name) = (spent.left.unit.as_str(), word(&spent.left.budget));
                self.raise(&format!("budgets.{unit}.{name}"))
            }),
            Need::LeaseEnding => format!("git handoff extend {id} --as {turn}"),
            Need::Unclaimed => format!("git handoff claim {id} --as {}", self.handoff.to),
            Need::Answered if self.handoff.state == State::Pending => {
                format!("git handoff claim {id} --as {}", self.handoff.to)
            }
            Need::Answered => format!("git handoff show {id}"),
            Need::Rejected if self.is_rejected_by_person() => self.decided(need),
            Need::Cancelled if self.is_terminated() => give_up(issue, turn),
            Need::Rejected | Need::Cancelled => {
                let (from, to) = (self.handoff.from, self.handoff.to);
                again(self.protocol, issue, (from, to, self.handoff.contract_type))
            }
            Need::NotHandedOn => self.onward(),
            Need::Merged => {
                format!("git handoff cancel {issue} --all --as {turn} --reason 'it is merged'")
            }
        }
    }
}

/// The command that sends a contract of the same type again.
fn again(
    protocol: &Protocol,
    issue: &IssueKey,
    (from, to, kind): (AgentRef<'_>, AgentRef<'_>, &str),
) -> String {
    let kind = protocol.named_type(from.as_str(), to.as_str(), kind);
    let kind = kind.map_or_else(String::new, |kind| format!(" --type {}", word(kind)));
    format!("git handoff new --issue {issue} --from {from} --to {to}{kind}")
}

/// The newest transition. The exhaustion of attempts counts as part of the failure before it.
fn last<'a>(handoff: &'a HandoffSurvey<'a>) -> Option<&'a ChangeSurvey<'a>> {
    let mut newest = handoff.changes.iter().rev();
    newest.find(|change| change.event != Some(Event::Exhaust))
}

/// When a lease begins to count as ending.
fn ending(handoff: &HandoffSurvey<'_>) -> Option<Moment> {
    let length = i64::try_from(handoff.lease_seconds?).ok()?;
    let before = TimeDelta::try_seconds((length / 10).min(ENDING))?;
    handoff.expires_at?.checked_sub_signed(before)
}

/// When a claimable handoff counts as unclaimed: after the length of a lease.
fn unclaimed_at(handoff: &HandoffSurvey<'_>, protocol: &Protocol) -> Option<Moment> {
    // People do not poll for work, so they are notified at once.
    if protocol.is_person(handoff.to.as_str()) {
        return Some(ready_at(handoff, last(handoff)?));
    }
    ready_at(handoff, last(handoff)?).checked_add_signed(patience(protocol))
}

fn ready_at(handoff: &HandoffSurvey<'_>, last: &ChangeSurvey<'_>) -> Moment {
    handoff.not_before.map_or(last.at, |at| at.max(last.at))
}

/// How long the handoffs of a protocol may stay unclaimed.
pub fn patience(protocol: &Protocol) -> TimeDelta {
    let time = protocol.definition().limits.as_ref();
    let seconds = time.and_then(|time| i64::try_from(time.lease_seconds?).ok());
    let lease = seconds.and_then(TimeDelta::try_seconds);
    lease.unwrap_or(PATIENCE)
}
