//! Pictures: what happened in an issue, what a protocol allows, and what its tasks
//! wait for.
//!
//! There is one model, [`Graph`]. `issue`, `protocol` and `tasks` each make one;
//! `mermaid`, `dot` and `terminal` each draw any. `loops` finds the ways that work
//! went more than once, `text` makes foreign words harmless in one line. Names in a
//! graph are as the ledger has them: every drawing escapes them for itself.

mod dot;
mod issue;
mod loops;
mod mermaid;
mod protocol;
mod tasks;
mod terminal;
mod text;

pub use dot::dot;
pub use issue::issue_graph;
pub use mermaid::mermaid;
pub use protocol::protocol_graph;
pub use tasks::task_graph;
pub use terminal::{Paint, ascii, terminal};
pub use text::span;

use chrono::TimeDelta;
use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_ledger::HandoffSurvey;
use handoff_protocol::{AgentKind, State};
use serde::{Serialize, Serializer};

/// What a graph shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// What happened in one issue.
    Issue,
    /// The ways of a protocol, and how they were used.
    Protocol,
    /// The tasks of one issue.
    Tasks,
}

/// A picture, not drawn yet.
#[derive(Clone, Debug, Serialize)]
pub struct Graph {
    /// What it shows.
    pub kind: Kind,
    /// The issue's key or the protocol's name.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// Its nodes; the one with id N is the Nth, from 0.
    pub nodes: Vec<Node>,
    /// Its edges, in the order in which they were first used or are defined.
    pub edges: Vec<Edge>,
    /// Nodes that belong together.
    pub groups: Vec<Group>,
    /// The ways around that work took, the most frequent first.
    pub loops: Vec<Loop>,
    /// Of an issue: its handoffs, the oldest first.
    pub steps: Vec<Step>,
}

/// A node's place in its graph; printed as `n0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

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
#[derive(Clone, Debug, Serialize)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// What it is.
    pub shape: Shape,
    /// How it stands.
    pub mark: Mark,
    /// Whether the work is here now.
    pub here: bool,
    /// What is said beneath its name, a line each.
    pub lines: Vec<String>,
    /// The number of the group that it is in, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
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

/// How something stands; each has a symbol, so that no colour is needed. The order
/// is that of urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Nothing is to be said.
    None,
    /// Refused or withdrawn.
    Dropped,
    /// Done.
    Done,
    /// It waits for something else.
    Waiting,
    /// It can be taken up.
    Claimable,
    /// Someone works on it.
    Working,
    /// Whoever works on it waits for an answer.
    Blocked,
    /// Whoever works on it has not been heard of in time.
    Late,
    /// It failed.
    Failed,
}

impl Mark {
    /// The symbol that stands for it; empty for none.
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

/// Whether a handoff is worked on by someone whose time is up.
fn is_late(handoff: &HandoffSurvey, now: Moment) -> bool {
    let is_over = handoff.expires_at.is_some_and(|end| end <= now);
    handoff.state == State::InProgress && is_over
}

/// A way from one node to another.
#[derive(Clone, Debug, Serialize)]
pub struct Edge {
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// What it stands for.
    pub kind: EdgeKind,
    /// How the most urgent handoff on it stands.
    pub mark: Mark,
    /// The types of contract that travel it.
    pub types: Vec<String>,
    /// How many handoffs took it.
    pub count: usize,
    /// Of an issue: their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<u32>,
    /// How many of them are in which state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<(State, usize)>,
    /// Of an issue: how often one of them failed, the newest time included.
    #[serde(skip_serializing_if = "is_zero")]
    pub failures: usize,
    /// Of an issue: how many of them are in progress, and their leases ran out.
    #[serde(skip_serializing_if = "is_zero")]
    pub late: usize,
    /// How long they waited to be taken up, in seconds: all together for an issue,
    /// the median from the sending to the first claim for a protocol.
    #[serde(
        rename = "waited_seconds",
        serialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub waited: Option<TimeDelta>,
    /// How long they were worked on, in seconds: all together for an issue, the
    /// median of what has ended for a protocol.
    #[serde(
        rename = "worked_seconds",
        serialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub worked: Option<TimeDelta>,
    /// What else is to be said: why it is forbidden, whom it goes by, what it answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What an edge stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// Work was handed over, or can be.
    Handoff,
    /// A request was answered.
    Answer,
    /// Work went to another agent than it was sent to.
    Reassigned,
    /// It must not be taken.
    Forbidden,
    /// The task at its end waits for the one at its beginning.
    Dependency,
    /// The task at its end is part of the one at its beginning.
    Part,
}

impl Edge {
    /// A way on which nothing has gone yet.
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

    /// Counts a handoff's state.
    fn count(&mut self, state: State) {
        self.count += 1;
        self.mark = self.mark.max(Mark::from(state));
        match self.states.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => self.states.push((state, 1)),
        }
    }

    /// Adds a type, once.
    fn carry(&mut self, kind: &str) {
        if !self.types.iter().any(|known| known == kind) {
            self.types.push(kind.to_owned());
        }
    }

    /// Says whether it is a way of the protocol that nothing has gone.
    pub fn is_unused(&self) -> bool {
        self.kind == EdgeKind::Handoff && self.count == 0
    }
}

/// Nodes that belong together.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// What they are.
    pub title: String,
}

/// A way around: work came back to an agent that had handed it on.
#[derive(Clone, Debug, Serialize)]
pub struct Loop {
    /// The agents on it, the first again at the end.
    pub agents: Vec<NodeId>,
    /// Each round, by the numbers of its first and its last handoff.
    pub rounds: Vec<(u32, u32)>,
}

/// One handoff of an issue.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Its number.
    pub number: u32,
    /// Its sender.
    pub from: NodeId,
    /// The receiver that it was sent to.
    pub to: NodeId,
    /// The one that has it now, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now_with: Option<NodeId>,
    /// Whom it is for, where another decides on it first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meant_for: Option<AgentName>,
    /// One line about it.
    pub summary: String,
    /// Its contract's type.
    pub contract_type: String,
    /// Its state.
    pub state: State,
    /// How it stands.
    pub mark: Mark,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The number of the request that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<u32>,
    /// The task that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// How long it waited to be taken up, in seconds.
    #[serde(
        rename = "waited_seconds",
        serialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub waited: Option<TimeDelta>,
    /// How long it was worked on, in seconds.
    #[serde(
        rename = "worked_seconds",
        serialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub worked: Option<TimeDelta>,
    /// What went wrong on the way, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<Trouble>,
}

/// What kept a handoff from being done.
#[derive(Clone, Debug, Serialize)]
pub struct Trouble {
    /// How it stood then.
    pub mark: Mark,
    /// What went wrong, what was asked, or why.
    pub text: String,
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
    /// A node by its id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// The edges that a drawing has: that a task is part of another is only drawn
    /// where nothing else leads to it.
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

    /// A loop in words: how often, and along whom.
    fn loop_text(&self, around: &Loop) -> String {
        let names: Vec<&str> = around
            .agents
            .iter()
            .map(|id| self.node(*id).name.as_str())
            .collect();
        let count = around.rounds.len();
        let rounds = if count == 1 { "round" } else { "rounds" };
        format!("{count} {rounds}: {}", names.join(" → "))
    }
}
