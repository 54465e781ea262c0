//! Whose turn it is, where several agents could act.

use handoff_base::ids::{AgentName, HandoffId};
use handoff_protocol::{Protocol, State, TaskState};

use crate::record::{Issue, OpenHandoff, Task};

/// The agent that acts first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The agent.
    pub agent: AgentName,
    /// The handoff that it acts on, if one is open with it.
    pub handoff: Option<HandoffId>,
    /// Why.
    pub why: String,
}

/// Decides which agent acts first in an issue: by the state of the task, if one is named and the
/// protocol assigns an agent to that state; otherwise the agent of the lowest phase among
/// `between`, or among those with an open handoff.
pub fn turn(
    protocol: &Protocol,
    issue: &Issue,
    task: Option<&str>,
    between: &[AgentName],
) -> Option<Turn> {
    let known: Option<&Task> = task.and_then(|id| issue.tasks.iter().rev().find(|t| t.id == id));
    let state = match (task, known) {
        (Some(_), None) => Some(TaskState::None),
        (_, known) => known.map(|task| task.state),
    };
    let open = |agent: &AgentName| {
        let mut mine = issue.open.iter().filter(|open| open.to == *agent);
        let about = |open: &&OpenHandoff| known.is_none_or(|task| task.handoff == open.id);
        mine.clone().find(about).or_else(|| mine.next())
    };
    if let Some(state) = state
        && let Some(agent) = protocol.definition().turns.get(&state)
        && (between.is_empty() || between.contains(agent))
    {
        return Some(Turn {
            agent: agent.clone(),
            handoff: open(agent).map(|o| o.id.clone()),
            why: format!("the task is {}", state.as_str()),
        });
    }
    // An agent that broke a task down can only wait for its parts.
    let waits = |open: &OpenHandoff| {
        let mut tasks = issue.tasks.iter();
        tasks.any(|t| t.handoff == open.id && t.state == TaskState::BrokenDown)
    };
    let acting = |open: &&OpenHandoff| {
        matches!(open.state, State::Pending | State::InProgress) && !waits(open)
    };
    let waiting = issue.open.iter().filter(acting).map(|open| &open.to);
    let mut agents: Vec<&AgentName> = match between {
        [] => waiting.collect(),
        between => between.iter().collect(),
    };
    let phase = |name: &AgentName| protocol.agent(name.as_str()).and_then(|a| a.phase);
    agents.sort_by_key(|name| (phase(name).unwrap_or(u32::MAX), name.as_str().to_owned()));
    agents.dedup();
    let Some(first) = agents.first().map(|first| (*first).clone()) else {
        let open = issue.open.first()?;
        return Some(Turn {
            agent: protocol.lead().unwrap_or(&open.to).clone(),
            handoff: Some(open.id.clone()),
            why: format!("{} is {}", open.id, open.state),
        });
    };
    let others: Vec<&str> = agents[1..].iter().map(|a| a.as_str()).collect();
    let yields = if others.len() == 1 { "yields" } else { "yield" };
    let others = others.join(", ");
    let why = match phase(&first) {
        _ if others.is_empty() => "it is the only one with something to do".to_owned(),
        Some(phase) => format!("its phase, {phase}, is the lowest; {others} {yields}"),
        None => format!("no phase decides; {others} {yields}"),
    };
    Some(Turn {
        handoff: open(&first).map(|o| o.id.clone()),
        agent: first,
        why,
    })
}
