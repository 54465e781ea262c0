//! The stored form of the ledger: its manifest, its issues, its handoffs.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::{Moment, digest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::{apply, skip_serializing_none};

use crate::annotation::Annotation;
use crate::consistency::Contradiction;
use crate::delivery::{Delivered, Delivery};
use crate::evidence::Evidence;
use crate::not_applicable::NotApplicable;
use crate::spending::Spending;
pub use crate::stored::StoredError;
pub use crate::stored::{VERSION, read, write};
use crate::traceparent::TraceParent;
use crate::usage::Usage;
use crate::value::scalar;
use handoff_base::Code;
use handoff_base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff_base::text::continued;
use handoff_contract::{Allowance, Format};
use handoff_protocol::{
    Action, Definition, Event, OnRecord, OwnRetry, Policy, RunFailure, State, TaskState,
};

/// `ledger.json`: the ledger's settings.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the stored form: 4.
    pub version: u32,
    /// The protocol that a new issue is bound to.
    pub default_protocol: AgentName,
    /// The policy for statements that the repository contradicts, unless a protocol sets its own.
    pub evidence: Policy,
    /// When the ledger was created.
    pub created_at: Moment,
}

/// Whether an issue is open, completed or cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IssueStatus {
    /// Work continues.
    Open,
    /// The closing contract was sent, or the issue ended by itself.
    Completed,
    /// It was given up: nothing can be added until it is reopened.
    Cancelled,
}

impl IssueStatus {
    /// The status as stored and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
        }
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

/// A handoff that ended and awaits somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Awaiting {
    /// Its id.
    pub id: HandoffId,
    /// The agent that it awaits: the sender of one that was rejected or cancelled, the asker of an
    /// answer, and the agent that completed work without handing it on.
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
    /// The kinds of round that it counts towards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<String>,
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
    /// What it asked for by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The answer, if it is text.
    pub text: Option<String>,
    /// The answers, by the questions' keys.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// The keys that a contract stated as facts of the issue afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outdated: Vec<String>,
}

impl AnswerGiven {
    /// Marks the values that a contract states as facts now.
    pub(crate) fn outdate(&mut self, stated: &[&str]) {
        let keys: Vec<String> = self.by_key().map(|(key, _)| key.to_owned()).collect();
        for key in keys {
            if stated.contains(&key.as_str()) && !self.outdated.contains(&key) {
                self.outdated.push(key);
            }
        }
    }

    /// Its values by key; a text that answers a single question is that question's value.
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

/// The end of an issue that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenUp {
    /// When it was given up.
    pub at: Moment,
    /// The agent that gave it up.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// What nothing was sent on from at that time; a reopening restores it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfollowed: Vec<HandoffId>,
    /// What awaited somebody at that time; a reopening restores it.
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
    /// The number of handoffs the issue had at that time.
    pub handoffs: u32,
    /// When that was said, if that was earlier and elsewhere.
    pub said_at: Option<Moment>,
}

/// A pause of an issue: nobody is handed its work until it is resumed.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    /// The version of the stored form: 4.
    pub version: u32,
    /// When it was paused.
    pub at: Moment,
    /// The agent that paused it.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// When that was said, if that was earlier and elsewhere.
    pub said_at: Option<Moment>,
    /// The agents that go on all the same, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<AgentName>,
}

impl Paused {
    /// Whether it keeps an agent from being handed work.
    pub fn holds_back(&self, agent: &AgentName) -> bool {
        !self.except.contains(agent)
    }

    /// When it was said.
    pub fn since(&self) -> Moment {
        self.said_at.unwrap_or(self.at)
    }
}

impl std::fmt::Display for Paused {
    /// Writes `paused since 2026-03-02 09:00:00Z by orchestrator: it was closed`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (at, reason) = (self.at, continued(&self.reason));
        write!(f, "paused since {at} by {}", self.by)?;
        if !self.except.is_empty() {
            let names: Vec<&str> = self.except.iter().map(AgentName::as_str).collect();
            write!(f, " except for {}", names.join(", "))?;
        }
        write!(f, ": {reason}")
    }
}

/// The end of a pause, or word from elsewhere that the work goes on.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// When the issue was resumed.
    pub at: Moment,
    /// The agent that resumed it.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// When that was said, if that was earlier and elsewhere.
    pub said_at: Option<Moment>,
    /// The pause; none if the issue was not paused.
    pub paused: Option<Paused>,
}

/// A refused contract, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusedContract {
    /// When it was refused.
    pub at: Moment,
    /// The agent that sent it.
    pub by: AgentName,
    /// Which of the protocol's kinds it is.
    pub kind: OnRecord,
    /// The code of the refusal.
    pub code: String,
    /// Why, in one line.
    pub why: String,
}

/// What became of a finding of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    /// Nobody answered it.
    Open,
    /// It was fixed, or skipped with a reason; the next review decides.
    Answered,
    /// A later review does not agree with the answer; it needs another one.
    Disputed,
    /// A review approved its answer.
    Resolved,
    /// The review that raised it was turned down.
    Withdrawn,
}

impl FindingState {
    /// The state as stored and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Disputed => "disputed",
            Self::Resolved => "resolved",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Whether a review approved its answer, or it no longer counts.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Resolved | Self::Withdrawn)
    }

    /// Whether it needs an answer, and prevents an approval until it has one.
    pub fn is_unanswered(self) -> bool {
        matches!(self, Self::Open | Self::Disputed)
    }
}

/// A finding of a review.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewFinding {
    /// Its id, unique in the issue: `F1`.
    pub id: String,
    /// What became of it.
    pub state: FindingState,
    /// The handoff that raised it.
    pub raised_by: HandoffId,
    /// Where it is.
    pub location: Option<String>,
    /// How severe it is, or of which kind.
    pub severity: Option<String>,
    /// What is wrong.
    pub text: String,
    /// The handoff that answered it last.
    pub answered_by: Option<HandoffId>,
    /// What was done about it, or why nothing was; none if it was answered along with others.
    pub answer: Option<String>,
    /// Whether nothing was done about it, for the reason in its answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// The commit that fixes it, as its answer says.
    pub commit: Option<String>,
    /// The handoff that disputed its answer last.
    pub disputed_by: Option<HandoffId>,
    /// What is still wrong, if the review that disputed it says it in other words.
    pub dispute: Option<String>,
    /// The handoff that approved it.
    pub resolved_by: Option<HandoffId>,
}

impl ReviewFinding {
    /// Its id with its severity and location: `F1 (critical, src/a.rs:3)`.
    pub fn name(&self) -> String {
        let about = [self.severity.as_deref(), self.location.as_deref()];
        let about: Vec<&str> = about.into_iter().flatten().collect();
        match &about[..] {
            [] => self.id.clone(),
            about => format!("{} ({})", self.id, about.join(", ")),
        }
    }

    /// It and what became of it, in one line.
    pub fn line(&self) -> String {
        format!("{}: {}; {}", self.name(), self.text, self.standing())
    }

    /// What became of it, in words: `answered by 7.4 in 1a2b3c4: Escaped the cells`.
    pub fn standing(&self) -> String {
        let answer = || {
            let word = if self.skipped { "skipped" } else { "answered" };
            let by = self.answered_by.as_ref().map(|id| format!(" by {id}"));
            let commit = self.commit.as_ref().map(|commit| format!(" in {commit}"));
            let text = self.answer.as_ref().map(|text| format!(": {text}"));
            let parts = [by, commit, text].into_iter().flatten();
            parts.fold(word.to_owned(), |all, part| all + &part)
        };
        match (self.state, &self.disputed_by, &self.resolved_by) {
            (FindingState::Answered, ..) => answer(),
            (FindingState::Disputed, Some(by), _) => {
                let why = self.dispute.as_ref().map(|why| format!(": {why}"));
                format!("disputed by {by}{}; {}", why.unwrap_or_default(), answer())
            }
            (FindingState::Resolved, _, Some(by)) => format!("resolved by {by}; {}", answer()),
            (state, ..) => state.as_str().to_owned(),
        }
    }
}

/// `issue.json`: the state of an issue.
#[skip_serializing_none]
#[apply(
    Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")],
    BTreeMap => #[serde(default, skip_serializing_if = "BTreeMap::is_empty")],
)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Issue {
    /// The version of the stored form: 4.
    pub version: u32,
    /// Its key.
    pub issue: IssueKey,
    /// Its title: what a contract calls it, else the summary of its first contract.
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
    /// The number of its handoffs, which is the number of the newest.
    pub handoffs: u32,
    /// The number of commits that wrote to it.
    pub steps: u32,
    /// Its open handoffs, the oldest first.
    #[serde_with(skip_apply)]
    pub open: Vec<OpenHandoff>,
    /// Completed handoffs that nothing was sent on from yet: their receivers may still send.
    pub unfollowed: Vec<HandoffId>,
    /// Handoffs that ended and await somebody, the oldest first.
    pub awaiting: Vec<Awaiting>,
    /// Handoffs that ended in a way that takes nothing more of these agents, of which they have yet to
    /// be told: until they do anything in the issue.
    pub to_tell: Vec<Awaiting>,
    /// When and why it was given up.
    pub given_up: Vec<GivenUp>,
    /// When and why it was reopened.
    pub reopened: Vec<Reopening>,
    /// Since when and why nobody is handed its work, if so.
    pub paused: Option<Paused>,
    /// When and why it was resumed after a pause.
    pub resumed: Vec<Resumed>,
    /// The handoffs that the protocol's limits count, the oldest first.
    pub counted: Vec<Counted>,
    /// Decisions about its handoffs, the oldest first.
    pub decisions: Vec<Decision>,
    /// The newest answers to blocked agents, the oldest first.
    pub answers: Vec<AnswerGiven>,
    /// The findings of its reviews, in the order of their ids.
    pub findings: Vec<ReviewFinding>,
    /// The newest refused contracts that the protocol wants on record, the oldest first.
    pub refusals: Vec<RefusedContract>,
    /// Notes that correct what was recorded, the oldest first.
    pub annotations: Vec<Annotation>,
    /// The outside events that its steps carried out, the oldest first.
    pub deliveries: Vec<Delivered>,
    /// The tasks that were handed over, in that order.
    pub tasks: Vec<Task>,
    /// For each contract type, the contracts' own ids with the numbers of their handoffs.
    pub contract_ids: BTreeMap<String, BTreeMap<String, u32>>,
    /// What agents spent in it since its protocol has budgets.
    #[serde(default, skip_serializing_if = "Spending::is_empty")]
    pub spent: Spending,
    /// The facts that its contracts stated, by the protocol's rules.
    pub facts: Map<String, Value>,
}

/// What is known of an issue under a name.
#[derive(Clone, Copy, Debug)]
pub struct KnownFact<'i> {
    /// The value.
    pub value: &'i Value,
    /// The note that states it; else the issue's contracts do.
    pub note: Option<&'i Annotation>,
}

impl Issue {
    /// A fact: what the newest note since the last reopening states, else what its contracts do.
    /// Notes outrank contracts: they are what events proved, or corrections with a reason. Where
    /// several have an [opinion](crate::opinions), it is that of the one that decides.
    pub fn fact<'i>(&'i self, definition: &'i Definition, name: &str) -> Option<KnownFact<'i>> {
        if let Some(decided) = self.opinion(definition, name) {
            return decided.map(|(value, note)| KnownFact {
                value,
                note: Some(note),
            });
        }
        let mut notes = self.annotations.iter().rev();
        let note = notes.find_map(|note| {
            let value = note.facts.get(name)?;
            self.is_current(note).then_some((note, value))
        });
        match note {
            Some((note, value)) => Some(KnownFact {
                value,
                note: Some(note),
            }),
            None => self
                .facts
                .get(name)
                .map(|value| KnownFact { value, note: None }),
        }
    }

    /// Whether a note counts: what was said before the issue was last reopened is over, whenever it
    /// was noted.
    pub(crate) fn is_current(&self, note: &Annotation) -> bool {
        let Some(last) = self.reopened.last() else {
            return true;
        };
        match note.said_at() {
            // GitHub's times have whole seconds.
            Some(at) => at.timestamp() >= last.said_at.unwrap_or(last.at).timestamp(),
            None => note.at >= last.at,
        }
    }

    /// The value of every fact, by name.
    pub fn known(&self, definition: &Definition) -> Map<String, Value> {
        let facts = self.known_facts(definition);
        let facts = facts.map(|(name, fact)| (name.to_owned(), fact.value.clone()));
        facts.collect()
    }

    /// The pause that keeps an agent from being handed work of it, if one does.
    pub fn held_back(&self, agent: &AgentName) -> Option<&Paused> {
        self.paused
            .as_ref()
            .filter(|paused| paused.holds_back(agent))
    }

    /// When it was last said that the work goes on: by a reopening or a resumption.
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

    /// Every fact, by name.
    pub fn known_facts<'i>(
        &'i self,
        definition: &'i Definition,
    ) -> impl Iterator<Item = (&'i str, KnownFact<'i>)> {
        let noted = self.annotations.iter().flat_map(|note| note.facts.keys());
        let names: BTreeSet<&str> = self.facts.keys().chain(noted).map(String::as_str).collect();
        let facts = names.into_iter();
        facts.filter_map(|name| Some((name, self.fact(definition, name)?)))
    }
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

/// The task that a handoff is about.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskName {
    /// Its name.
    pub id: String,
    /// The task that it is part of.
    pub parent: Option<String>,
}

/// What a request requires of its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The kind of artifact.
    pub artifact_type: String,
    /// The name of its schema among the protocol's.
    pub schema: String,
    /// Its path, with `{timestamp}` in place of digits.
    pub destination: String,
}

/// Where an imported handoff comes from.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportSource {
    /// The file, as the import named it.
    pub file: String,
    /// The protocol's import profile by which its contract may lack members.
    pub profile: Option<AgentName>,
    /// The members that its contract lacks: what they would say is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// A file that a contract delivered, as it was when the contract was sent.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Its path in the repository.
    pub path: String,
    /// Its size in bytes; `None` if it was missing.
    pub bytes: Option<u64>,
    /// Its SHA-256, in hexadecimal; `None` if it was missing.
    pub sha256: Option<String>,
    /// Whether the code branch's commit has the same content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub committed: bool,
}

/// The contract file of a handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContractFile {
    /// Its name in the issue's folder.
    pub file: String,
    /// Its format.
    pub format: Format,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

impl ContractFile {
    /// Describes the file of this name with these bytes.
    pub fn new(file: String, format: Format, bytes: &[u8]) -> Self {
        Self {
            file,
            format,
            bytes: bytes.len() as u64,
            sha256: digest(bytes),
        }
    }
}

/// A worker's hold on a handoff.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// The agent that holds it.
    pub holder: AgentName,
    /// The worker of that agent that holds it.
    pub worker: WorkerId,
    /// When it was claimed.
    pub since: Moment,
    /// The number of this claim of the handoff, from 1.
    pub token: u32,
    /// Its length in seconds when it started or was last extended.
    pub seconds: Option<u64>,
    /// When it runs out; never, if the holder waits for others.
    pub expires_at: Option<Moment>,
    /// The holder's latest progress report.
    pub progress: Option<Progress>,
}

/// A progress report of a holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// When it was made.
    pub at: Moment,
    /// The progress made.
    pub text: String,
}

/// Something that a blocked agent needs to know.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The key of the answer.
    pub key: String,
    /// The kind of value, in the words of the agent that asks.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// What the answer is used for.
    pub description: Option<String>,
    /// Whether the work can go on without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// A failure, as the failing agent reports it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// A short, stable code: `BuildError`.
    pub code: String,
    /// What happened, in one sentence.
    pub message: String,
    /// More about it.
    pub details: Option<String>,
    /// Whether another attempt may succeed.
    pub recoverable: bool,
    /// What to do about it.
    pub suggested_action: Option<String>,
    /// Whether its agent says that there is no further attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_retry: bool,
    /// How the agent's run ended, if the code stands for that.
    pub run: Option<RunFailure>,
}

impl Failure {
    /// The code, and the way the run ended in brackets: `PROCESSING_ERROR (EXIT)`.
    pub fn named(&self) -> String {
        let run = self.run.map(|run| format!(" ({})", run.as_str()));
        format!("{}{}", self.code, run.unwrap_or_default())
    }
}

/// One change of a handoff's state.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// When it happened.
    pub at: Moment,
    /// The agent that caused it.
    pub by: AgentName,
    /// The worker that caused it; `None` if none did, as when a lease expired.
    pub worker: Option<WorkerId>,
    /// `claim`, `take_over` (by another worker), `complete`, `fail`, `expire` (its lease expired, or
    /// nobody claimed it in time), `exhaust` (no attempt is left), `release` (given back),
    /// `block`, `answer`, `retry`, `reassign`, `redrive`, `reject` or `cancel`; `None` for the sending
    /// that started the handoff.
    pub event: Option<Event>,
    /// The state before; `None` for the first.
    pub from: Option<State>,
    /// The state after.
    pub to: State,
    /// The handoff whose step caused it.
    pub sent: Option<HandoffId>,
    /// The reason, or the answer.
    pub reason: Option<String>,
    /// The failure, if there was one.
    pub failure: Option<Failure>,
    /// When its time ran out, if it expired.
    pub ran_out_at: Option<Moment>,
    /// Where the context of the failure is kept.
    pub context: Option<FailureContext>,
    /// The questions of the blocked agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The answers, by the questions' keys.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// The agent that takes over from now on.
    pub receiver: Option<AgentName>,
    /// The random part of the delay before another attempt, in thousandths.
    pub jitter: Option<u32>,
    /// Allowed matches of secret patterns that came with it, and their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_secrets: Vec<Allowance>,
    /// The trace that it belongs to.
    pub traceparent: Option<TraceParent>,
}

impl Transition {
    /// A transition to a state, with no further details.
    pub fn new(at: Moment, by: AgentName, to: State) -> Self {
        Self {
            at,
            by,
            worker: None,
            event: None,
            from: None,
            to,
            sent: None,
            reason: None,
            failure: None,
            ran_out_at: None,
            context: None,
            questions: Vec::new(),
            values: Map::new(),
            receiver: None,
            jitter: None,
            allowed_secrets: Vec::new(),
            traceparent: None,
        }
    }
}

impl Transition {
    /// The failure, the reason that was given, or the first question.
    pub fn why(&self) -> Option<&str> {
        let failure = self.failure.as_ref().map(|failure| &failure.message);
        let asked = || {
            let question = self.questions.first()?;
            question.description.as_ref().or(Some(&question.key))
        };
        let why = failure.or(self.reason.as_ref()).or_else(asked);
        why.map(String::as_str)
    }

    /// The values of an answer in words: `port=8080, host=desk`.
    pub fn answer_text(&self) -> Option<String> {
        answer_text(&self.values)
    }
}

/// Values in words: `port=8080, host=desk`.
pub fn answer_text(values: &Map<String, Value>) -> Option<String> {
    let value = |value: &Value| scalar(value).unwrap_or_else(|| value.to_string());
    let pairs = values.iter().map(|(key, v)| format!("{key}={}", value(v)));
    let text = pairs.collect::<Vec<_>>().join(", ");
    Some(text).filter(|text| !text.is_empty())
}

/// `NNNN.json`: one handoff.
#[skip_serializing_none]
#[apply(
    Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")],
)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version of the stored form: 4.
    pub version: u32,
    /// Its id.
    pub id: HandoffId,
    /// The title of its issue when it was sent.
    pub title: String,
    /// The protocol that governs it.
    pub protocol: AgentName,
    /// Where it comes from, if it was imported from another system's files.
    pub imported: Option<ImportSource>,
    /// The contract's type.
    pub contract_type: String,
    /// The sender.
    pub from: AgentName,
    /// The receiver.
    pub to: AgentName,
    /// Its state.
    pub state: State,
    /// The protocol's priority word, the contract's own or the issue's.
    pub priority: Option<String>,
    /// The status of its contract, in the protocol's own words.
    pub status: Option<String>,
    /// One line about it.
    pub summary: String,
    /// The contract's own id.
    pub contract_id: Option<String>,
    /// The contract.
    pub contract: ContractFile,
    /// The receiver that its contract names, if another agent decides first.
    pub intended: Option<AgentName>,
    /// The agent that its sender recommends for what follows, if it is not the receiver that its
    /// contract names.
    pub recommended: Option<AgentName>,
    /// The handoff that its sender held.
    pub follows: Option<HandoffId>,
    /// The request that it answers.
    pub answers: Option<HandoffId>,
    /// The failed handoff whose contract it corrects, and whose attempts it goes on counting.
    pub replaces: Option<HandoffId>,
    /// The task that it is about.
    pub task: Option<TaskName>,
    /// Handoffs that must be completed before it can be claimed.
    pub waits_for: Vec<HandoffId>,
    /// The open handoffs of the parts of its task, and of the reports on them: until they end, it
    /// waits for them.
    pub parts: Vec<HandoffId>,
    /// What its answer must deliver.
    pub expects: Option<Expected>,
    /// The files that its contract delivered.
    pub artifacts: Vec<Artifact>,
    /// The statements of its contract and the results of their checks.
    pub evidence: Vec<Evidence>,
    /// What it contradicts, where the protocol's rules only warn.
    pub contradictions: Vec<Contradiction>,
    /// The places of its contract that do not apply, each with the reason.
    pub not_applicable: Vec<NotApplicable>,
    /// The number of retries it may have.
    pub max_retries: Option<u32>,
    /// The retry delay that its contract sets.
    pub retry: Option<OwnRetry>,
    /// The time that its contract gives the receiver, in seconds.
    pub timeout_seconds: Option<u64>,
    /// The time in which its contract wants it claimed, in seconds.
    pub acknowledge_seconds: Option<u64>,
    /// The inputs that its sender lacks.
    pub missing: Vec<Question>,
    /// The location of its sender's session.
    pub session: Option<String>,
    /// Role violations of its sender.
    pub violations: Vec<String>,
    /// The tip of the code branch when it was sent.
    pub code: Option<Code>,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The number of the first attempt since it was redriven.
    pub redriven_at: Option<u32>,
    /// When it can be claimed again, while it waits for another attempt.
    pub not_before: Option<Moment>,
    /// When it fails unless it was claimed before, while it waits for its receiver.
    pub acknowledge_by: Option<Moment>,
    /// The current lease, if an agent works on it.
    pub lease: Option<Lease>,
    /// The newest progress reports of its holders, the oldest first; they stay when the lease is
    /// over.
    pub progress: Vec<Progress>,
    /// What work on it took, as its workers reported it: an entry for each claim of it.
    pub usage: Vec<Usage>,
    /// Every transition, the oldest first.
    #[serde_with(skip_apply)]
    pub transitions: Vec<Transition>,
}

/// The number of progress reports that a record keeps, and their total length in bytes.
const REPORTS: usize = 20;
const REPORTED: usize = crate::request::MAX_TEXT;

impl Record {
    /// Adds a progress report; the oldest are dropped if there are too many.
    pub fn report(&mut self, progress: Progress) {
        self.progress.push(progress);
        let mut length = 0;
        let fits = |p: &&Progress| {
            length += p.text.len();
            length <= REPORTED
        };
        let newest = self.progress.iter().rev().take(REPORTS);
        let kept = newest.take_while(fits).count().max(1);
        self.progress.drain(..self.progress.len() - kept);
    }

    /// When it was sent.
    pub fn sent_at(&self) -> Option<Moment> {
        self.transitions.first().map(|t| t.at)
    }

    /// What its sender did against its role, in one sentence.
    pub fn violation(&self) -> Option<String> {
        let done = &self.violations;
        (!done.is_empty()).then(|| violation(&self.from, done))
    }

    /// The agent that takes over next if the deciding agent agrees.
    pub fn successor(&self) -> Option<&AgentName> {
        self.recommended.as_ref().or(self.intended.as_ref())
    }

    /// What it is about among handoffs of other issues: the issue's title, or the text about its
    /// task, because the parts of a task share the title.
    pub fn subject(&self) -> &str {
        self.task.as_ref().map_or(&self.title, |_| &self.summary)
    }

    /// What its sender asks the receiver or lacks, while that can still be given.
    pub fn asked(&self) -> &[Question] {
        match self.state {
            State::Pending | State::InProgress => &self.missing,
            _ => &[],
        }
    }

    /// The takeover by which its worker holds it, if it was not claimed in the usual way.
    pub fn taken_over(&self) -> Option<&Transition> {
        let last = self.latest().filter(|_| self.state == State::InProgress)?;
        Some(last).filter(|last| last.event == Some(Event::TakeOver))
    }

    /// The agent under which it was cancelled: its receiver, if that was working on it and somebody
    /// else cancelled it.
    pub fn cancelled_under(&self) -> Option<&AgentName> {
        let cancel = self.latest().filter(|t| t.event == Some(Event::Cancel))?;
        let was_held = cancel.from == Some(State::InProgress);
        Some(&self.to).filter(|to| was_held && cancel.by != **to)
    }

    /// Its newest transition. Running out of attempts counts as part of the failure before it.
    pub fn latest(&self) -> Option<&Transition> {
        let mut newest = self.transitions.iter().rev();
        newest.find(|t| t.event != Some(Event::Exhaust))
    }

    /// The same without the claims that were given back, as if nobody had made them.
    pub fn latest_tried(&self) -> Option<&Transition> {
        let mut newest = self.transitions.iter().rev();
        let mut latest = newest.find(|t| t.event != Some(Event::Exhaust))?;
        while latest.event == Some(Event::Release) {
            newest.find(|t| t.event == Some(Event::Claim))?;
            latest = newest.next()?;
        }
        Some(latest)
    }

    /// The questions of the blocked agent.
    pub fn questions(&self) -> &[Question] {
        let mut newest = self.transitions.iter().rev();
        let blocked = newest.find(|t| t.event == Some(Event::Block));
        blocked.map_or(&[], |t| &t.questions)
    }

    /// Why it is in its state: the failure, the reason that was given, or the first question. `None`
    /// if work goes on or is done.
    pub fn reason(&self) -> Option<&str> {
        self.latest().filter(|_| self.state.is_stopped())?.why()
    }

    /// Why it failed, if its last attempt failed.
    pub fn failure(&self) -> Option<&Failure> {
        let stands = matches!(self.state, State::Failed | State::Dead);
        self.latest().filter(|_| stands)?.failure.as_ref()
    }

    /// The number of retries since it was sent or redriven.
    pub fn retries(&self) -> u32 {
        // A tampered record may hold any numbers.
        self.attempt.saturating_sub(self.redriven_at.unwrap_or(1))
    }

    /// The number of claims and takeovers, which is the token of the newest one.
    pub fn claims(&self) -> u32 {
        let claimed = |t: &&Transition| t.event.is_some_and(Event::is_claim);
        let claims = self.transitions.iter().filter(claimed).count();
        u32::try_from(claims).unwrap_or(u32::MAX)
    }

    /// When its time runs out: the holder's lease, or the time to claim it.
    pub fn expires_at(&self) -> Option<Moment> {
        match self.state {
            State::Pending => self.acknowledge_by,
            State::InProgress => self.lease.as_ref()?.expires_at,
            _ => None,
        }
    }

    /// When it had to be claimed, if it failed because nobody did.
    pub fn unacknowledged(&self) -> Option<Moment> {
        self.failure()?;
        let waited = |t: &&Transition| t.from == Some(State::Pending);
        self.latest().filter(waited)?.ran_out_at
    }

    /// The start and the end of its pause before another attempt.
    pub fn pause(&self) -> Option<(Moment, Moment)> {
        Some((self.latest()?.at, self.not_before?))
    }

    /// What it waits for in vain: a handoff that ended without being completed, by its state. It
    /// can't start until its task is planned again.
    pub fn waits_in_vain(
        &self,
        state: impl Fn(&HandoffId) -> Option<State>,
    ) -> Option<(&HandoffId, State)> {
        let ended = [State::Rejected, State::Cancelled, State::Dead];
        let mut before = self
            .waits_for
            .iter()
            .filter(|_| self.state == State::Pending);
        before.find_map(|id| Some((id, state(id).filter(|state| ended.contains(state))?)))
    }

    /// When it can be claimed, if that is later.
    pub fn waits_until(&self, at: Moment) -> Option<Moment> {
        let pause = self.pause().filter(|pause| lasts(*pause, at))?;
        Some(pause.1)
    }
}

/// A violation of an agent's role, in one sentence.
pub(crate) fn violation(agent: &AgentName, done: &[String]) -> String {
    format!("{agent} attempted {}", done.join(", "))
}

/// Whether a pause is not over yet. A clock that was set back does not make it longer.
pub fn lasts((since, end): (Moment, Moment), at: Moment) -> bool {
    end > at && since - at < end - since
}

/// What a transition records about the folder with its failure's context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureContext {
    /// The folder, relative to the issue's: `0002-failure/1`.
    pub folder: String,
    /// The id of its tree object.
    pub tree: String,
    /// The number of files in it: attachments and those of a snapshot.
    pub files: u64,
    /// Their total size, in bytes.
    pub bytes: u64,
}

impl Issue {
    /// The findings that no review has settled yet.
    pub fn unsettled(&self) -> impl Iterator<Item = &ReviewFinding> {
        let all = self.findings.iter();
        all.filter(|finding| !finding.state.is_settled())
    }

    /// The applied effect of an event, if there is one.
    pub fn delivered(&self, delivery: &Delivery) -> Option<&Delivered> {
        self.deliveries.iter().find(|known| known.is(delivery))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::{Progress, REPORTED, REPORTS, Record};
    use handoff_base::Moment;

    fn record() -> Record {
        let contract = json!({"file": "f", "format": "json", "bytes": 1, "sha256": ""});
        serde_json::from_value(json!({
            "version": 4, "id": "7.1", "title": "", "protocol": "p", "contract_type": "t",
            "from": "a", "to": "b", "state": "pending", "summary": "", "contract": contract,
            "attempt": 1, "transitions": [],
        }))
        .unwrap()
    }

    #[test]
    fn the_newest_reports_are_kept_within_bounds() {
        let at = Moment::default();
        let mut record = record();
        let mut say = |text: String| {
            record.report(Progress { at, text });
            record.progress.clone()
        };
        for i in 0..=REPORTS {
            say(i.to_string());
        }
        let kept = say("last".to_owned());
        assert_eq!(kept.len(), REPORTS);
        assert_eq!((&*kept[0].text, &*kept[REPORTS - 1].text), ("2", "last"));
        let kept = say("x".repeat(REPORTED));
        assert_eq!(kept.len(), 1);
        assert_eq!(say("y".to_owned()).len(), 1);
    }
}
