//! The stored form of the ledger: its manifest, its issues, its handoffs.

use std::collections::BTreeMap;

use handoff_base::{Moment, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::annotation::Annotation;
use crate::delivery::{Delivered, Delivery};
use crate::evidence::Evidence;
pub use crate::stored::StoredError;
pub use crate::stored::{VERSION, read, write};
use crate::traceparent::TraceParent;
use handoff_base::Code;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
pub use handoff_base::moment;
use handoff_contract::{Allowance, Format};
use handoff_protocol::{Action, Event, OwnRetry, Policy, State, TaskState};

/// `ledger.json`: what the ledger is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the stored form: 1.
    pub version: u32,
    /// The protocol that a new issue is bound to.
    pub default_protocol: AgentName,
    /// What becomes of claims that the repository contradicts, where a protocol
    /// does not say.
    pub evidence: Policy,
    /// When the ledger was started.
    #[serde(with = "moment")]
    pub created_at: Moment,
}

/// Whether an issue is still worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IssueStatus {
    /// Work goes on.
    Open,
    /// The closing contract was sent; nothing can be added.
    Completed,
}

impl IssueStatus {
    /// The status as stored and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Completed => "completed",
        }
    }
}

/// An open handoff, as its issue lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenHandoff {
    /// Its id.
    pub id: HandoffId,
    /// Its receiver.
    pub to: AgentName,
    /// Its state.
    pub state: State,
    /// When the lease of whoever works on it runs out.
    #[serde(
        default,
        with = "moment::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub expires_at: Option<Moment>,
}

/// A handoff that the protocol's limits count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// Its number.
    pub number: u32,
    /// Its sender.
    pub from: AgentName,
    /// The receiver that its contract names.
    pub to: AgentName,
    /// When it was sent.
    #[serde(with = "moment")]
    pub at: Moment,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Its contract's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rounds that it is one of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<String>,
}

/// What was decided about a handoff, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// When.
    #[serde(with = "moment")]
    pub at: Moment,
    /// By whom.
    pub by: AgentName,
    /// The handoff.
    pub id: HandoffId,
    /// What is to be done.
    pub action: Action,
    /// Why.
    pub why: String,
}

/// Why and by whom a completed issue was opened again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reopening {
    /// When.
    #[serde(with = "moment")]
    pub at: Moment,
    /// By whom.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// How many handoffs the issue had then.
    pub handoffs: u32,
}

/// `issue.json`: who holds an issue and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issue {
    /// The version of the stored form: 1.
    pub version: u32,
    /// Its key.
    pub issue: IssueKey,
    /// The protocol it is bound to.
    pub protocol: AgentName,
    /// Whether it is still worked on.
    pub status: IssueStatus,
    /// When its first contract was sent.
    #[serde(with = "moment")]
    pub opened_at: Moment,
    /// When its last step was made.
    #[serde(with = "moment")]
    pub updated_at: Moment,
    /// When it was completed.
    #[serde(
        default,
        with = "moment::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub completed_at: Option<Moment>,
    /// How many handoffs it has: the number of the newest.
    pub handoffs: u32,
    /// How many commits wrote to it.
    pub steps: u32,
    /// Its open handoffs, the oldest first.
    pub open: Vec<OpenHandoff>,
    /// Handoffs that are completed, and from which nothing was sent on yet:
    /// their receivers may still send.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfollowed: Vec<HandoffId>,
    /// When it was opened again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reopened: Vec<Reopening>,
    /// What was handed over that the protocol's limits count, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<Counted>,
    /// What was decided about its handoffs, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Notes that correct what was recorded, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotation>,
    /// The events from outside that steps of it carried out, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<Delivered>,
    /// The tasks that were handed over, in the order in which they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
    /// For each contract type, the contracts' own ids and the numbers of their
    /// handoffs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contract_ids: BTreeMap<String, BTreeMap<String, u32>>,
    /// What its contracts have told, by the protocol's rules.
    pub facts: Map<String, Value>,
}

/// A task that a contract handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name.
    pub id: String,
    /// The task that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Its newest handoff.
    pub handoff: HandoffId,
    /// Tasks with the same parent that must be done before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Where it stands.
    pub state: TaskState,
}

/// The task that a handoff is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskName {
    /// Its name.
    pub id: String,
    /// The task that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// What a request says that its answer must deliver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The kind of artifact.
    pub artifact_type: String,
    /// The name of its schema among the protocol's.
    pub schema: String,
    /// Its path, in which `{timestamp}` stands for digits.
    pub destination: String,
}

/// A file that a contract delivered, as it was when the contract was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Its path in the repository.
    pub path: String,
    /// Its size in bytes; none if it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its SHA-256, in hexadecimal; none if it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Whether the code branch's commit has it so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub committed: bool,
}

/// The file that an agent handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Who works on a handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// The agent.
    pub holder: AgentName,
    /// Since when.
    #[serde(with = "moment")]
    pub since: Moment,
    /// Which claim of this handoff this is, from 1.
    pub token: u32,
    /// How long it was when it began or was last extended, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// When it runs out; never, where the holder waits for others.
    #[serde(
        default,
        with = "moment::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub expires_at: Option<Moment>,
    /// What its holder last said of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// When.
    #[serde(with = "moment")]
    pub at: Moment,
    /// How far the work is.
    pub text: String,
}

/// What whoever is blocked needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The name that the answer has.
    pub key: String,
    /// What kind of value it is, in the words of whoever asks.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the work can go on without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// What went wrong, as the agent that failed tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// A short, stable word: `BuildError`.
    pub code: String,
    /// What happened, in one sentence.
    pub message: String,
    /// More of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Whether another attempt may succeed.
    pub recoverable: bool,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_action: Option<String>,
}

/// One change of a handoff's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// When.
    #[serde(with = "moment")]
    pub at: Moment,
    /// By which agent.
    pub by: AgentName,
    /// The event; none for the sending that began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
    /// The state before; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<State>,
    /// The state after.
    pub to: State,
    /// The handoff whose sending caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<HandoffId>,
    /// Why, or what the answer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Where the context of the failure is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<FailureContext>,
    /// What is asked, by whoever is blocked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// What was answered, by the question's key.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// The agent that is to do it from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<AgentName>,
    /// How much of the delay before another attempt was drawn, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<u32>,
    /// What came with it that looks like a secret and was allowed, where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_secrets: Vec<Allowance>,
    /// The trace that it was made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<TraceParent>,
}

impl Transition {
    /// A change to a state by an agent, of which nothing else is said.
    pub fn new(at: Moment, by: AgentName, to: State) -> Self {
        Self {
            at,
            by,
            event: None,
            from: None,
            to,
            sent: None,
            reason: None,
            failure: None,
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

/// `NNNN.json`: one handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version of the stored form: 1.
    pub version: u32,
    /// Its id.
    pub id: HandoffId,
    /// The protocol that governs it.
    pub protocol: AgentName,
    /// The contract's type.
    pub contract_type: String,
    /// The sender.
    pub from: AgentName,
    /// The receiver.
    pub to: AgentName,
    /// Its state.
    pub state: State,
    /// The protocol's priority word, the contract's own or the issue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The status word of its contract, in the protocol's own terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// One line about it.
    pub summary: String,
    /// The contract's own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_id: Option<String>,
    /// The contract.
    pub contract: ContractFile,
    /// The receiver that its contract names, where another decides first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended: Option<AgentName>,
    /// The handoff that its sender held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<HandoffId>,
    /// The request that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<HandoffId>,
    /// The task that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskName>,
    /// Handoffs that must be completed before it can be claimed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<HandoffId>,
    /// What its answer must deliver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expects: Option<Expected>,
    /// The files that its contract delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// What its contract claims, and what was found of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// How often it may be retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// How soon it is retried, as its contract says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<OwnRetry>,
    /// How long its receiver may take, as its contract says, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// What its sender lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Question>,
    /// Where its sender's own session is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What its sender did against its role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<String>,
    /// Where the code branch stood when it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The first attempt since it was given new ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven_at: Option<u32>,
    /// When it can be claimed again, while it waits for another attempt.
    #[serde(
        default,
        with = "moment::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub not_before: Option<Moment>,
    /// Who works on it, while someone does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// Every change of its state, the oldest first.
    pub transitions: Vec<Transition>,
}

impl Record {
    /// When it was sent.
    pub fn sent_at(&self) -> Option<Moment> {
        self.transitions.first().map(|t| t.at)
    }

    /// Its newest change; that its attempts are spent is part of the failure
    /// before it.
    pub fn latest(&self) -> Option<&Transition> {
        let mut newest = self.transitions.iter().rev();
        newest.find(|t| t.event != Some(Event::Exhaust))
    }

    /// What whoever is blocked asks.
    pub fn questions(&self) -> &[Question] {
        let mut newest = self.transitions.iter().rev();
        let blocked = newest.find(|t| t.event == Some(Event::Block));
        blocked.map_or(&[], |t| &t.questions)
    }

    /// Why it failed, if that is how its last attempt ended.
    pub fn failure(&self) -> Option<&Failure> {
        let stands = matches!(self.state, State::Failed | State::Dead);
        self.latest().filter(|_| stands)?.failure.as_ref()
    }

    /// How often it was retried since it was given its attempts.
    pub fn retries(&self) -> u32 {
        // A record that was tampered with may hold any numbers.
        self.attempt.saturating_sub(self.redriven_at.unwrap_or(1))
    }

    /// How often it was claimed: the token of its newest claim.
    pub fn claims(&self) -> u32 {
        let claimed = |t: &&Transition| t.event == Some(Event::Claim);
        let claims = self.transitions.iter().filter(claimed).count();
        u32::try_from(claims).unwrap_or(u32::MAX)
    }

    /// Since when it waits for another attempt, and until when.
    pub fn pause(&self) -> Option<(Moment, Moment)> {
        Some((self.latest()?.at, self.not_before?))
    }

    /// When it can be claimed, if that is later.
    pub fn waits_until(&self, at: Moment) -> Option<Moment> {
        let pause = self.pause().filter(|pause| lasts(*pause, at))?;
        Some(pause.1)
    }
}

/// Says whether a pause is not over yet. A clock that was set back is no reason
/// to wait longer than was meant.
pub fn lasts((since, end): (Moment, Moment), at: Moment) -> bool {
    end > at && since - at < end - since
}

/// What a transition says of the folder with its failure's context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureContext {
    /// The folder, from the issue's: `0002-failure/1`.
    pub folder: String,
    /// The id of its tree.
    pub tree: String,
    /// How many files are kept in it, attachments and those of a snapshot.
    pub files: u64,
    /// The size of all of them, in bytes.
    pub bytes: u64,
}

impl Issue {
    /// The effect of an event, if the issue has had it.
    pub fn delivered(&self, delivery: &Delivery) -> Option<&Delivered> {
        self.deliveries.iter().find(|known| known.is(delivery))
    }
}
