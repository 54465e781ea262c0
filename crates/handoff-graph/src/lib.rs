//! Graphs: the history of an issue, the routes of a protocol, and the dependencies of tasks.
//!
//! All are a [`Graph`]: `issue`, `protocol` and `tasks` build one; `mermaid` and `terminal` draw
//! any. `loops` finds loops of work, `text` formats texts and times. Names in a graph are those of
//! the ledger; each drawing escapes them itself. `times` computes how a handoff spent its time.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod issue;
mod loops;
mod mermaid;
mod protocol;
mod tasks;
mod terminal;
mod text;
pub mod times;

pub use issue::issue_graph;
pub use mermaid::mermaid;
pub use protocol::protocol_graph;
pub use tasks::task_graph;
pub use terminal::{Paint, ascii, terminal};
pub use text::span;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use handoff::base::Moment;
use handoff::base::ids::AgentName;
use handoff::base::text::counted;
use handoff::ledger::HandoffSurvey;
use handoff::protocol::{AgentKind, State};
use handoff_macros::skip_serializing_none;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// What a graph shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "GraphKind")]
pub enum Kind {
    /// The history of one issue.
    Issue,
    /// The routes of a protocol, and how often they were used.
    Protocol,
    /// The tasks of one issue.
    Tasks,
}

/// A graph, independent of how it is drawn.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Graph {
    /// What it shows.
    pub(crate) kind: Kind,
    /// The issue's key or the protocol's name.
    pub(crate) name: String,
    /// What it shows, in one line.
    pub(crate) title: String,
    /// Agents or tasks; node `nN` is at index N.
    pub nodes: Vec<Node>,
    /// Edges between nodes, in the order in which they were first used or are defined.
    pub edges: Vec<Edge>,
    /// Groups of nodes; a node's `group` is an index from 0.
    pub(crate) groups: Vec<Group>,
    /// The loops that the work took, the most frequent first.
    pub(crate) loops: Vec<Loop>,
    /// An issue's rounds, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) rounds: BTreeMap<String, u64>,
    /// For an issue, its handoffs, the oldest first.
    pub steps: Vec<Step>,
}

/// A node's index in its graph; printed as `n0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "String")]
pub(crate) struct NodeId(pub usize);

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl Serialize for NodeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An agent, the end of the work, or a task.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Node {
    /// `n0`, `n1` ….
    pub(crate) id: NodeId,
    /// The name of the agent or the task.
    pub(crate) name: String,
    /// What it represents; `anyone`: a route that every agent has.
    pub(crate) shape: Shape,
    /// Its mark; `waiting`: it waits for other handoffs; `ready`: it can be claimed; `late`:
    /// its lease expired.
    pub(crate) mark: Mark,
    /// Whether the work is here now.
    pub(crate) here: bool,
    /// The lines below its name.
    pub(crate) lines: Vec<String>,
    /// The group that it is in.
    pub(crate) group: Option<usize>,
}

/// What a node represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    /// An agent that routes work.
    Orchestrator,
    /// An agent that does one kind of work.
    Specialist,
    /// A person.
    Human,
    /// The end of the work.
    End,
    /// Any agent of the protocol.
    Anyone,
    /// A task.
    Task,
}

impl From<AgentKind> for Shape {
    fn from(kind: AgentKind) -> Self {
        match kind {
            AgentKind::Orchestrator => Self::Orchestrator,
            AgentKind::Specialist => Self::Specialist,
            AgentKind::Human => Self::Human,
            AgentKind::End => Self::End,
        }
    }
}

/// The condition of a node or handoff, in order of urgency. Each has a symbol, so colour is not
/// required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "GraphMark")]
pub enum Mark {
    /// No condition.
    None,
    /// Rejected or cancelled.
    Dropped,
    /// Completed.
    Done,
    /// It waits for other handoffs.
    Waiting,
    /// It can be claimed.
    #[serde(rename = "ready")]
    Claimable,
    /// In progress.
    Working,
    /// Its agent waits for an answer.
    Blocked,
    /// Its lease or the time to claim it ran out.
    Late,
    /// It failed.
    Failed,
}

impl Mark {
    /// The mark's symbol; empty for [`Mark::None`].
    pub fn symbol(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Dropped => "–",
            Self::Done => "✓",
            Self::Waiting => "◌",
            Self::Claimable => "○",
            Self::Working => "◐",
            Self::Blocked => "?",
            Self::Late => "!",
            Self::Failed => "✗",
        }
    }
}

impl From<State> for Mark {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Claimable,
            State::InProgress => Self::Working,
            State::Blocked => Self::Blocked,
            State::Failed | State::Dead => Self::Failed,
            State::Completed => Self::Done,
            State::Rejected | State::Cancelled => Self::Dropped,
        }
    }
}

/// Whether a handoff's lease or the time to claim it ran out.
fn is_late(handoff: &HandoffSurvey<'_>, now: Moment) -> bool {
    handoff.expires_at.is_some_and(|end| end <= now)
}

/// An edge from one node to another.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Edge {
    /// The node where it begins.
    pub(crate) from: NodeId,
    /// The node where it ends.
    pub(crate) to: NodeId,
    /// What it represents; `handoff`: in a protocol, a route; `dependency`: the first precedes the
    /// second; `part`: the second is part of the first.
    pub(crate) kind: EdgeKind,
    /// The mark of the most urgent handoff on it.
    pub(crate) mark: Mark,
    /// The contract types on it.
    pub(crate) types: Vec<String>,
    /// How many handoffs took it.
    pub(crate) count: usize,
    /// For an issue, the numbers of those handoffs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) handoffs: Vec<u32>,
    /// The number of them in each state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) states: Vec<(State, usize)>,
    /// In an issue, how often one of them failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) failures: usize,
    /// In an issue, how many of them are in progress with an expired lease.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) late: usize,
    /// In an issue, the total waiting time; in a protocol, the median time from sending to the
    /// first claim.
    #[serde(rename = "waited_seconds", serialize_with = "seconds")]
    #[schemars(with = "Option<i64>")]
    pub(crate) waited: Option<TimeDelta>,
    /// In an issue, the total working time; in a protocol, the median of completed work.
    #[serde(rename = "worked_seconds", serialize_with = "seconds")]
    #[schemars(with = "Option<i64>")]
    pub(crate) worked: Option<TimeDelta>,
    /// Remarks: why it is forbidden, which agent decides first, the intended receiver, the answered
    /// request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

/// What an edge represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EdgeKind {
    /// Work was handed over, or may be.
    Handoff,
    /// A request was answered.
    Answer,
    /// Work went to another agent than it was sent to.
    Reassigned,
    /// A forbidden route.
    Forbidden,
    /// The task at its end waits for the one at its start.
    Dependency,
    /// The task at its end is part of the one at its start.
    Part,
}

impl Edge {
    fn new(from: NodeId, to: NodeId, kind: EdgeKind) -> Self {
        Self {
            from,
            to,
            kind,
            mark: Mark::None,
            types: Vec::new(),
            count: 0,
            handoffs: Vec::new(),
            states: Vec::new(),
            failures: 0,
            late: 0,
            waited: None,
            worked: None,
            notes: Vec::new(),
        }
    }

    fn count(&mut self, state: State) {
        self.count += 1;
        self.mark = self.mark.max(Mark::from(state));
        match self.states.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => self.states.push((state, 1)),
        }
    }

    /// Adds a contract type, unless it is there.
    fn carry(&mut self, kind: &str) {
        if !self.types.iter().any(|known| known == kind) {
            self.types.push(kind.to_owned());
        }
    }

    /// Whether it is a route that was never used.
    pub(crate) fn is_unused(&self) -> bool {
        self.kind == EdgeKind::Handoff && self.count == 0
    }
}

/// A group of nodes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "GraphGroup")]
pub(crate) struct Group {
    /// Its title.
    pub(crate) title: String,
}

/// A loop: work returned to an agent that had handed it on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Loop {
    /// The agents on it, the first repeated at the end.
    pub(crate) agents: Vec<NodeId>,
    /// Each time that it was taken: the numbers of the first and the last handoff.
    pub(crate) rounds: Vec<(u32, u32)>,
}

/// One handoff of an issue.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "GraphStep")]
pub struct Step {
    /// The handoff's number.
    pub(crate) number: u32,
    /// The sender's node.
    pub(crate) from: NodeId,
    /// The node of the receiver that it was sent to.
    pub(crate) to: NodeId,
    /// The node that has it now, if it was reassigned.
    pub(crate) now_with: Option<NodeId>,
    /// Its intended receiver, if another agent decides first.
    pub(crate) meant_for: Option<AgentName>,
    /// One line about it.
    pub(crate) summary: String,
    /// Its contract's type.
    pub(crate) contract_type: String,
    /// Its state.
    pub(crate) state: State,
    /// Its mark.
    pub(crate) mark: Mark,
    /// Which attempt this is, from 1.
    pub(crate) attempt: u32,
    /// The request that it answers.
    pub(crate) answers: Option<u32>,
    /// The task that it is about.
    pub(crate) task: Option<String>,
    /// How long it waited.
    #[serde(rename = "waited_seconds", serialize_with = "seconds")]
    #[schemars(with = "Option<i64>")]
    pub(crate) waited: Option<TimeDelta>,
    /// How long it was worked on.
    #[serde(rename = "worked_seconds", serialize_with = "seconds")]
    #[schemars(with = "Option<i64>")]
    pub(crate) worked: Option<TimeDelta>,
    /// Its failures and obstacles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) troubles: Vec<Trouble>,
}

/// A failure or interruption of a handoff.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Trouble {
    /// Its mark at that time.
    pub(crate) mark: Mark,
    /// The failure's message, the question, or the reason.
    pub(crate) text: String,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes what it serializes by reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[expect(
    clippy::ref_option,
    reason = "serde passes what it serializes by reference"
)]
fn seconds<S: Serializer>(time: &Option<TimeDelta>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.num_seconds()).serialize(serializer)
}

impl Graph {
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// The edges to draw: one to a task's parent only if no other edge leads to the task.
    fn drawn(&self) -> Vec<&Edge> {
        let waits: std::collections::HashSet<NodeId> = self
            .edges
            .iter()
            .filter(|edge| edge.kind == EdgeKind::Dependency)
            .map(|edge| edge.to)
            .collect();
        let drawn = |edge: &&Edge| edge.kind != EdgeKind::Part || !waits.contains(&edge.to);
        self.edges.iter().filter(drawn).collect()
    }

    /// A loop in words: how often it was taken, and its agents.
    fn loop_text(&self, around: &Loop) -> String {
        let names: Vec<&str> = around
            .agents
            .iter()
            .map(|id| self.node(*id).name.as_str())
            .collect();
        let loops = counted(around.rounds.len(), "loop");
        format!("{loops}: {}", names.join(" → "))
    }

    /// The rounds in words.
    fn round_texts(&self) -> impl Iterator<Item = String> {
        let rounds = self.rounds.iter();
        rounds.map(|(name, count)| format!("{name}: {count}"))
    }
}
