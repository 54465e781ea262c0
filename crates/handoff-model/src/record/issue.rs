//! `issue.json`: the state of an issue.

use handoff_base::words;
use std::collections::BTreeMap;

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::one_line;
use handoff_macros::{apply, skip_serializing_none};
use handoff_protocol::{Action, OnRecord, Protocol, State, TaskState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::stored_form::stored;
use crate::record::{
    Annotation, Delivered, Delivery, FindingState, Paused, Question, Resumed, ReviewFinding,
    Spending,
};

words! {
    /// Whether an issue is open, completed or cancelled.
    pub enum IssueStatus {
        /// Work continues.
        Open = "open",
        /// The closing contract was sent, or the issue ended by itself.
        Completed = "completed",
        /// It was given up: nothing can be added until it is reopened.
        Cancelled = "cancelled",
    }
}

/// An open handoff, as its issue lists it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenHandoff {
    /// Its id.
    pub id: HandoffId,
    /// Its receiver.
    pub to: AgentName,
    /// Its state.
    pub state: State,
    /// When the holder's lease ends, or when it must be claimed.
    pub expires_at: Option<Moment>,
}

/// A handoff that awaits somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Awaiting {
    /// Its id.
    pub id: HandoffId,
    /// The agent that it awaits: the sender of a rejected or cancelled one, the requester of an
    /// answer, the agent that completed work without handing it on, or the person whose approval
    /// its merge lacks.
    pub agent: AgentName,
}

/// A handoff that the protocol's limits count.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// Its number.
    pub number: u32,
    /// Its sender.
    pub from: AgentName,
    /// The receiver that its contract names.
    pub to: AgentName,
    /// When it was sent.
    pub at: Moment,
    /// What it is about.
    pub item: Option<String>,
    /// The reason its contract gives.
    pub reason: Option<String>,
    /// The kinds of rounds that it counts as.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<String>,
    /// Whether it is another attempt at a handoff, which counts only as a round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attempt: bool,
}

/// A decision about a handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// When it was made.
    pub at: Moment,
    /// The agent that made it.
    pub by: AgentName,
    /// The handoff.
    pub id: HandoffId,
    /// The action to take.
    pub action: Action,
    /// Why.
    pub why: String,
}

/// An answer to the question of a blocked agent.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerGiven {
    /// When it was given.
    pub at: Moment,
    /// The agent that answered.
    pub by: AgentName,
    /// The handoff that was blocked.
    pub id: HandoffId,
    /// Why the agent was blocked, in its words.
    pub asked: Option<String>,
    /// The values it asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The answer, if it is text.
    pub text: Option<String>,
    /// The answers, by the questions' keys.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// The keys that a contract has stated as facts since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outdated: Vec<String>,
}

impl AnswerGiven {
    /// Marks the values that a contract now states as facts.
    pub(crate) fn outdate(&mut self, stated: &[&str]) {
        let keys: Vec<String> = self.by_key().map(|(key, _)| key.to_owned()).collect();
        for key in keys {
            if stated.contains(&key.as_str()) && !self.outdated.contains(&key) {
                self.outdated.push(key);
            }
        }
    }

    /// Its values by key; a text is the value of the only question.
    pub fn by_key(&self) -> impl Iterator<Item = (&str, Value)> {
        let only = match &self.questions[..] {
            [only] if self.values.is_empty() => Some(only.key.as_str()),
            _ => None,
        };
        let text = self.text.as_ref().map(|text| Value::from(text.as_str()));
        let values = self.values.iter();
        values
            .map(|(key, value)| (key.as_str(), value.clone()))
            .chain(only.zip(text))
    }
}

/// The giving up of an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenUp {
    /// When it was given up.
    pub at: Moment,
    /// The agent that gave it up.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// The handoffs then without a successor; a reopening restores them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfollowed: Vec<HandoffId>,
    /// The handoffs that then awaited somebody; a reopening restores them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaiting: Vec<Awaiting>,
}

/// A reopening of a completed or cancelled issue.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reopening {
    /// When it was reopened.
    pub at: Moment,
    /// The agent that reopened it.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// The number of handoffs in the issue then.
    pub handoffs: u32,
    /// When it was said, if elsewhere and earlier.
    pub said_at: Option<Moment>,
}

/// A refused contract, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusedContract {
    /// When it was refused.
    pub at: Moment,
    /// The agent that sent it.
    pub by: AgentName,
    /// Its kind, by the protocol.
    pub kind: OnRecord,
    /// The code of the refusal.
    pub code: String,
    /// Why, in one line.
    pub why: String,
}

/// A task that a contract handed over.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name.
    pub id: String,
    /// The task that it is part of.
    pub parent: Option<String>,
    /// Its newest handoff.
    pub handoff: HandoffId,
    /// Sibling tasks that must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Its state.
    pub state: TaskState,
}

/// `issue.json`: the state of an issue.
#[apply(
    Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")],
    BTreeMap => #[serde(default, skip_serializing_if = "BTreeMap::is_empty")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Issue {
    /// The version of the stored form: 4.
    pub version: u32,
    /// Its key.
    pub issue: IssueKey,
    /// Its title: a contract's, else its first contract's summary.
    pub title: String,
    /// The protocol it is bound to.
    pub protocol: AgentName,
    /// Whether it is open.
    pub status: IssueStatus,
    /// When its first contract was sent.
    pub opened_at: Moment,
    /// When its last step was made.
    pub updated_at: Moment,
    /// When it was completed, if it is.
    pub completed_at: Option<Moment>,
    /// The number of its handoffs, which is the newest one's number.
    pub handoffs: u32,
    /// The number of commits that wrote to it.
    pub steps: u32,
    /// Its open handoffs, the oldest first.
    #[skip_apply]
    pub open: Vec<OpenHandoff>,
    /// Completed handoffs without a successor: their receivers may still send.
    pub unfollowed: Vec<HandoffId>,
    /// Handoffs that await somebody.
    pub awaiting: Vec<Awaiting>,
    /// Ended handoffs that need nothing more, but whose agents have yet to be told: until they act
    /// in the issue.
    pub to_tell: Vec<Awaiting>,
    /// When and why it was given up.
    pub given_up: Vec<GivenUp>,
    /// When and why it was reopened.
    pub reopened: Vec<Reopening>,
    /// The pause during which no work is handed out, if any.
    pub paused: Option<Paused>,
    /// The resumptions after pauses.
    pub resumed: Vec<Resumed>,
    /// The handoffs that the protocol's limits count, the oldest first.
    pub counted: Vec<Counted>,
    /// Decisions about its handoffs, the oldest first.
    pub decisions: Vec<Decision>,
    /// The newest answers to blocked agents, the oldest first.
    pub answers: Vec<AnswerGiven>,
    /// The findings of its reviews, in the order of their ids.
    pub findings: Vec<ReviewFinding>,
    /// The newest refused contracts on record, the oldest first.
    pub refusals: Vec<RefusedContract>,
    /// Notes that correct what was recorded, the oldest first.
    pub annotations: Vec<Annotation>,
    /// The effects of outside events applied to it, the oldest first.
    pub deliveries: Vec<Delivered>,
    /// The tasks that were handed over, in that order.
    pub tasks: Vec<Task>,
    /// The contracts' own ids, by contract type, with their handoffs' numbers.
    pub contract_ids: BTreeMap<String, BTreeMap<String, u32>>,
    /// What agents have spent in it, if its protocol has budgets.
    #[serde(default, skip_serializing_if = "Spending::is_empty")]
    pub spent: Spending,
    /// The facts stated by its contracts.
    pub facts: Map<String, Value>,
}

impl Issue {
    /// Why it was reopened last after its completion, if it was: by whom, and the disapproval before
    /// that, if there was one.
    pub(crate) fn why_reopened(&self) -> Option<String> {
        let last = self.reopened.last()?;
        let before = self.reopened.iter().rev().nth(1).map(|before| before.at);
        let since = |at: Moment| at <= last.at && before.is_none_or(|before| at >= before);
        // What was given up is as it was before.
        if self.given_up.iter().any(|one| since(one.at)) {
            return None;
        }
        let mut said = self.annotations.iter().rev();
        let said = said.find(|note| note.approval.is_some() && note.at <= last.at);
        let said = said.filter(|note| since(note.at));
        let no = said.and_then(|note| {
            let (id, no) = (note.id.as_ref()?, note.approval.as_ref()?);
            let why = Some(&note.note).filter(|why| !why.is_empty());
            let why = why.map_or_else(String::new, |why| format!(": {}", one_line(why)));
            (!no.approved).then(|| format!("; {id} {} by {}{why}", no.done(), note.by))
        });
        let (by, reason) = (&last.by, one_line(&last.reason));
        Some(format!(
            "reopened by {by}: {reason}{}",
            no.unwrap_or_default()
        ))
    }

    /// Why the issue was reopened after its completion, if that was after this handoff.
    pub(crate) fn reopened_since(&self, id: &HandoffId) -> Option<String> {
        let last = self.reopened.last()?;
        (id.number() <= last.handoffs).then(|| self.why_reopened())?
    }

    /// Takes the findings up again that a handoff resolved which a person disapproves, or resolves
    /// them once that person approves it.
    pub(crate) fn judge_resolved(&mut self, id: &HandoffId, is_approved: bool) {
        let (from, to) = if is_approved {
            (FindingState::Answered, FindingState::Resolved)
        } else {
            (FindingState::Resolved, FindingState::Answered)
        };
        for one in &mut self.findings {
            if one.resolved_by.as_ref() == Some(id) && one.state == from {
                one.state = to;
            }
        }
    }

    /// Whether a note still counts: a note about the time before the last reopening does not,
    /// whenever it was recorded.
    pub(crate) fn is_current(&self, note: &Annotation) -> bool {
        let Some(last) = self.reopened.last() else {
            return true;
        };
        match note.said_at() {
            // GitHub's times are in whole seconds.
            Some(at) => at.timestamp() >= last.said_at.unwrap_or(last.at).timestamp(),
            None => note.at >= last.at,
        }
    }

    /// The pause that holds an agent's work back, if any.
    pub fn held_back(&self, agent: &AgentName) -> Option<&Paused> {
        self.paused
            .as_ref()
            .filter(|paused| paused.holds_back(agent))
    }

    /// The handoffs that an agent works on.
    pub fn held_by(
        &self,
        agent: &AgentName,
    ) -> impl DoubleEndedIterator<Item = &OpenHandoff> + Clone {
        let held = |open: &&OpenHandoff| open.to == *agent && open.state == State::InProgress;
        self.open.iter().filter(held)
    }

    /// Whether work on an open handoff can continue: it is in progress, or pending and not held
    /// back.
    pub fn goes_on(&self, open: &OpenHandoff) -> bool {
        match open.state {
            State::InProgress => true,
            State::Pending => self.held_back(&open.to).is_none(),
            _ => false,
        }
    }

    /// When the issue was last said to continue, by a reopening or a resumption.
    pub fn goes_on_since(&self) -> Option<Moment> {
        let reopened = self
            .reopened
            .last()
            .map(|last| last.said_at.unwrap_or(last.at));
        let resumed = self
            .resumed
            .last()
            .map(|last| last.said_at.unwrap_or(last.at));
        reopened.max(resumed)
    }

    /// When it was opened or last reopened, from when limits count.
    pub fn counts_since(&self) -> Moment {
        self.reopened.last().map_or(self.opened_at, |r| r.at)
    }

    /// The number of its rounds of this kind since then.
    pub fn rounds(&self, name: &str) -> u32 {
        let since = self.reopened.last().map_or(0, |r| r.handoffs);
        let counted = self.counted.iter().filter(|c| c.number > since);
        let rounds = counted.filter(|c| c.rounds.iter().any(|round| round == name));
        u32::try_from(rounds.count()).unwrap_or(u32::MAX)
    }

    /// The limits of which at most one round or two handoffs are left, as `rounds of changes: 4 of 5`.
    pub fn near_limits(&self, protocol: &Protocol) -> Vec<String> {
        let Some(limits) = &protocol.definition().limits else {
            return Vec::new();
        };
        let since = self.reopened.last().map_or(0, |r| r.handoffs);
        let sent = self.counted.iter().filter(|c| c.number > since);
        let sent = u32::try_from(sent.filter(|c| !c.attempt).count()).unwrap_or(u32::MAX);
        let handoffs = limits.handoffs.map(|most| ("handoffs", sent, most, 2));
        let rounds = limits.rounds.iter();
        let rounds = rounds.map(|(name, round)| (&**name, self.rounds(name), round.most, 1));
        let near = handoffs.into_iter().chain(rounds);
        near.filter(|(_, used, most, few)| *used > 0 && most.saturating_sub(*used) <= *few)
            .map(|(name, used, most, _)| format!("{name}: {used} of {most}"))
            .collect()
    }

    /// Why another attempt at a contract of this type is refused: a limit of rounds is reached.
    pub fn attempts_spent(&self, protocol: &Protocol, kind: &str) -> Option<String> {
        let mut rounds = protocol.attempt_rounds(kind);
        let (name, round) = rounds.find(|(name, round)| self.rounds(name) >= round.most)?;
        let most = round.most;
        Some(format!("issue {} has had its {most} {name}", self.issue))
    }

    /// The findings that are not settled.
    pub fn unsettled(&self) -> impl Iterator<Item = &ReviewFinding> {
        let all = self.findings.iter();
        all.filter(|finding| !finding.state.is_settled())
    }

    /// An event's effect, if it was applied.
    pub fn delivered(&self, delivery: &Delivery) -> Option<&Delivered> {
        self.deliveries.iter().find(|known| known.is(delivery))
    }
}

stored!(Issue);
