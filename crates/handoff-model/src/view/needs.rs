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

use crate::decision::{Advice, Decider, decider, due, person};
use crate::record::spending::{SpentSoFar, ensure_left};
use crate::record::{BudgetSpent, Issue, IssueStatus, Record, Spending, View};
use crate::view::commands::{answer_keys, correct, give_up};
use crate::view::survey::{ChangeSurvey, HandoffSurvey, IssueSurvey};
use crate::view::{Turn, needs_attention, stuck_advice, turn};

/// How long a handoff may stay unclaimed under a protocol without leases.
const PATIENCE: TimeDelta = TimeDelta::days(1);

/// How long before its end a lease counts as ending, in seconds; for a short lease, it is its last
/// tenth.
pub const ENDING: i64 = 600;

/// The failure code of a role violation; its agent is notified too.
const ROLE_VIOLATION: &str = "ROLE_VIOLATION";

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
    /// Whether the agent is only to be told: just its own views show it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_nothing: bool,
}

impl Attention {
    /// Whether an agent is notified.
    pub fn is_told(&self, agent: &AgentName) -> bool {
        self.told.contains(agent)
    }
}

/// What needs attention in one issue, in the order of its handoffs, without mere notices. `today`
/// is the day's spending under the protocol, needed if a budget counts per day. `decides` returns
/// who decides about a handoff, as [`deciding`] does.
///
/// # Errors
/// The error of `decides`.
pub fn of_issue<E>(
    issue: &IssueSurvey<'_>,
    protocol: &Protocol,
    today: Option<&Spending>,
    now: Moment,
    decides: impl Fn(u32) -> Result<Option<Decider>, E>,
) -> Result<Vec<Attention>, E> {
    let judge = |handoff: &HandoffSurvey<'_>, awaited: Option<&AgentName>| {
        let decides = if may_wait_for_decision(protocol, handoff, awaited) {
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
    let going = |agent: AgentRef<'_>| !issue.holds_back(agent);
    for handoff in &issue.handoffs {
        let about = |(number, _): &&(u32, AgentName)| *number == handoff.number;
        let awaited = issue.awaiting.iter().find(about).map(|(_, agent)| agent);
        let is_active = issue.status == IssueStatus::Open || awaited.is_some();
        if is_active && going(awaited.map_or(handoff.to, AgentName::borrowed)) {
            found.extend(judge(handoff, awaited)?);
        }
    }
    Ok(found)
}

/// Whether a decision about a handoff may be up to another agent than its own: it is stuck, or has
/// an entry for the person from whom one is `due`.
pub fn may_wait_for_decision(
    protocol: &Protocol,
    handoff: &HandoffSurvey<'_>,
    awaited: Option<&AgentName>,
) -> bool {
    let state = handoff.state;
    let is_due = || {
        let ends = protocol.definition().ends_unmerged(handoff.contract_type);
        !state.is_terminal() || state == State::Completed && ends
    };
    state.is_stuck() || awaited.is_some() && is_due()
}

/// The agent that decides about a handoff: for a stuck one, the agent named by the protocol's
/// rules; else the person whose approval the merge lacks, or who is told that it came too early.
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
    if !record.state.is_stuck() {
        return due(view, protocol, &issue, number);
    }
    let advice = stuck_advice(protocol, view, &issue, &record, now)?;
    Ok(advice.map(|advice| (advice.agent, Need::Failed)))
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
    /// The command for it, if somebody is needed.
    pub command: Option<String>,
    /// The protocol's advice, with its handoff, if a decision is due.
    pub advice: Option<(Advice, Record)>,
}

impl From<Turn> for NextTurn {
    fn from(turn: Turn) -> Self {
        Self {
            action: Action::Advance,
            agent: turn.agent,
            id: turn.handoff,
            why: turn.why,
            command: None,
            advice: None,
        }
    }
}

impl NextTurn {
    fn about(needed: &Attention) -> Self {
        Self {
            action: Action::Advance,
            agent: needed.turn.clone(),
            id: Some(needed.id.clone()),
            why: format!("{}: {}", needed.need.title(), needed.why),
            command: Some(needed.next.clone()),
            advice: None,
        }
    }
}

/// Whose turn it is in an issue, given its needs as sorted by [`sorted`].
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
    if let Some((advice, record)) = needs_attention(protocol, view, issue, now)? {
        // After the deadline nothing can be sent, so the advice can't be carried out.
        let over = |one: &&Attention| one.id == advice.id && one.need == Need::PastDeadline;
        if let Some(over) = needed.iter().find(over) {
            return Ok(Some(NextTurn::about(over)));
        }
        return Ok(Some(NextTurn {
            action: advice.action,
            agent: advice.agent.clone(),
            id: Some(advice.id.clone()),
            why: advice.why.clone(),
            command: None,
            advice: Some((advice, record)),
        }));
    }
    let is_over = |one: &&Attention| one.need == Need::PastDeadline;
    if let Some(over) = needed.iter().find(is_over) {
        return Ok(Some(NextTurn::about(over)));
    }
    let Some(turn) = turn(protocol, issue, None, &[]) else {
        return Ok(needed.first().map(NextTurn::about));
    };
    let is_spent =
        |one: &&Attention| one.need == Need::BudgetSpent && turn.handoff.as_ref() == Some(&one.id);
    Ok(Some(match needed.iter().find(is_spent) {
        Some(spent) => NextTurn::about(spent),
        None => turn.into(),
    }))
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
        Some(Attention {
            issue: self.id.issue().clone(),
            title: self.title.to_owned(),
            need,
            with: handoff.to.to_name(),
            since,
            why: self.why_hindered(need).unwrap_or_else(|| {
                let why = reason.map_or(handoff.summary, |reason| &**reason);
                let details = details.map(|details| format!("; {}", one_line(details)));
                format!("{why}{}", details.unwrap_or_default())
            }),
            attempt: handoff.attempt,
            next: self.command(need, last, &turn),
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
            Need::PastDeadline => {
                Some("the deadline has passed, so that nothing can be sent".to_owned())
            }
            Need::Merged => {
                Some("its code is merged, and the review that comes before it is open".to_owned())
            }
            Need::Unapproved if self.handoff.state == State::Completed => {
                Some("not approved by a person yet".to_owned())
            }
            Need::BudgetSpent => Some(format!("{} is spent or claimed", self.spent()?.left)),
            _ => None,
        }
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
                    Some((_, need)) => (*need, last.at),
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
                Some((_, need)) => (*need, last.at),
                None if handoff.answers.is_some() => (Need::Answered, last.at),
                None => (Need::NotHandedOn, last.at),
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
        if let Some((_, need)) = self.decides.as_ref().filter(|_| waits.is_empty()) {
            return Some((*need, last.at));
        }
        let ended = self.handoff.expires_at.filter(|end| *end <= self.now);
        if ended.is_none() && waits.is_empty() && self.spent().is_some() {
            return Some((Need::BudgetSpent, last.at));
        }
        if last.event == Some(Event::Answer) {
            return Some((Need::Answered, last.at));
        }
        if self.handoff.expires_at.is_some() {
            return ended.map(|end| (Need::Unclaimed, end));
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
        let own = self.protocol.definition().alerts.told(need);
        let (from, to) = (self.handoff.from.to_name(), self.handoff.to.to_name());
        let lead = decider(self.protocol, &from);
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
                let ended = |word: &&&str| awaited.is_none() || **word == LEAD;
                let usual = need.told().iter().filter(ended);
                let usual = usual.filter_map(|word| party(word));
                awaited.cloned().into_iter().chain(usual).collect()
            }
        };
        if need == Need::Failed && last.failure == Some(ROLE_VIOLATION) {
            told.push(to.clone());
        }
        if matches!(
            need,
            Need::Dead | Need::Failed | Need::Blocked | Need::Unapproved | Need::Merged
        ) {
            let decides = self.decides.iter().map(|(agent, _)| agent.clone());
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

    /// The command for the agent whose turn it is.
    fn command(&self, need: Need, last: &ChangeSurvey<'_>, turn: &AgentName) -> String {
        let (id, issue) = (&self.id, self.id.issue());
        if self.takes_nothing {
            return format!("git handoff annotate {id} --as {turn} --note seen");
        }
        match need {
            Need::Failed if self.takes_correction(last) && self.handoff.from == turn.borrowed() => {
                correct(id, turn)
            }
            Need::Blocked | Need::Escalated if self.handoff.state == State::Blocked => {
                answer_keys(id, &last.keys, turn)
            }
            Need::Dead | Need::Failed | Need::Stranded | Need::Blocked | Need::Escalated => {
                format!("git handoff next {issue}")
            }
            Need::PastDeadline => self.raise("limits.deadline_seconds"),
            Need::BudgetSpent => self.spent().map_or_else(String::new, |spent| {
                let (unit, name) = (spent.left.unit.as_str(), word(&spent.left.budget));
                self.raise(&format!("budgets.{unit}.{name}"))
            }),
            Need::LeaseRanOut => "git handoff reap".to_owned(),
            Need::Unclaimed if self.handoff.expires_at.is_some() => "git handoff reap".to_owned(),
            Need::LeaseEnding => format!("git handoff extend {id} --as {turn}"),
            Need::Unclaimed => format!("git handoff claim {id} --as {}", self.handoff.to),
            Need::Answered if self.handoff.state == State::Pending => {
                format!("git handoff claim {id} --as {}", self.handoff.to)
            }
            Need::Answered => format!("git handoff show {id}"),
            Need::Cancelled if self.is_terminated() => give_up(issue, turn),
            Need::Rejected | Need::Cancelled => {
                let (from, to) = (self.handoff.from, self.handoff.to);
                let kind = self.handoff.contract_type;
                let kind = self.protocol.named_type(from.as_str(), to.as_str(), kind);
                let kind = kind.map(|kind| format!(" --type {}", word(kind)));
                let kind = kind.unwrap_or_default();
                format!("git handoff new --issue {issue} --from {from} --to {to}{kind}")
            }
            Need::NotHandedOn => self.onward(),
            Need::Unapproved => format!("git handoff approve {id} --as {turn}"),
            Need::Merged => {
                format!("git handoff cancel {issue} --all --as {turn} --reason 'it is merged'")
            }
        }
    }
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
