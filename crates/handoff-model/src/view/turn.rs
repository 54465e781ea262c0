//! Whose turn it is among several agents.

use handoff_base::ids::{AgentName, HandoffId};
use handoff_protocol::{Protocol, State, TaskState};

use crate::record::{Halt, Issue, OpenHandoff, Task};

/// The agent whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The agent.
    pub agent: AgentName,
    /// Its open handoff, if it has one.
    pub handoff: Option<HandoffId>,
    /// Why.
    pub why: String,
}

/// Decides whose turn it is in an issue. If a task is named and the protocol assigns its state to
/// an agent, that agent; otherwise the agent of the lowest phase among `between` or, if that is
/// empty, among those with an open handoff. Agents that can act now come first. If the issue's
/// pause or `halts` hold all of them back, it is nobody's turn.
pub fn turn(
    protocol: &Protocol,
    issue: &Issue,
    halts: &[Halt],
    (task, between): (Option<&str>, &[AgentName]),
) -> Option<Turn> {
    let known: Option<&Task> = task.and_then(|id| issue.tasks.iter().rev().find(|t| t.id == id));
    let state = match (task, known) {
        (Some(_), None) => Some(TaskState::None),
        (_, known) => known.map(|task| task.state),
    };
    let about = known.map(|task| concerned(issue, task));
    let is_halted = |open: &OpenHandoff| {
        let mut halts = halts.iter();
        let holds = |halt: &Halt| halt.holds_back(&open.to, protocol.name());
        open.state == State::Pending && halts.any(holds)
    };
    let actionable = |open: &&OpenHandoff| {
        issue.goes_on(open)
            && !is_halted(open)
            && !waits(issue, open)
            && about.as_ref().is_none_or(|about| about(open))
    };
    let acting: Vec<&OpenHandoff> = issue.open.iter().filter(actionable).collect();
    let handoff = |agent: &AgentName| {
        let mut mine = acting.iter().filter(|open| open.to == *agent);
        let own = |open: &&&OpenHandoff| known.is_none_or(|task| task.handoff == open.id);
        let own = mine.clone().find(own).or_else(|| mine.next());
        own.map(|open| open.id.clone())
    };
    let acts = |agent: &AgentName| acting.iter().any(|open| open.to == *agent);
    let mut agents: Vec<&AgentName> = match between {
        [] => acting.iter().map(|open| &open.to).collect(),
        between => between.iter().collect(),
    };
    if let Some(state) = state
        && let Some(agent) = protocol.turn_of(state)
        && (between.is_empty() || between.contains(agent))
        && (acts(agent) || !agents.iter().any(|other| acts(other)))
    {
        return Some(Turn {
            agent: agent.clone(),
            handoff: handoff(agent),
            why: format!("the task is {}", state.as_str()),
        });
    }
    let phase = |name: &AgentName| protocol.agent(name.as_str()).and_then(|a| a.phase);
    agents.sort_by_key(|name| {
        let phase = phase(name).unwrap_or(u32::MAX);
        (!acts(name), phase, name.as_str().to_owned())
    });
    agents.dedup();
    let Some(first) = agents.first().map(|first| (*first).clone()) else {
        let open = issue.open.iter().find(|open| !is_halted(open))?;
        if issue.paused.is_some() {
            return None;
        }
        return Some(Turn {
            agent: protocol.lead().unwrap_or(&open.to).clone(),
            handoff: Some(open.id.clone()),
            why: format!("{} is {}", open.id, open.state),
        });
    };
    // Agents that can't act now leave the turn to those that can.
    let equals = |other: &&AgentName| acts(other) == acts(&first);
    let others: Vec<&AgentName> = agents[1..].to_vec();
    let decides = others.iter().any(equals);
    let yields = if others.len() == 1 { "yields" } else { "yield" };
    let others: Vec<&str> = others.iter().map(|a| a.as_str()).collect();
    let others = others.join(", ");
    let why = match phase(&first) {
        _ if others.is_empty() && !acts(&first) => "no other agent is named".to_owned(),
        _ if others.is_empty() => "no other agent can act".to_owned(),
        _ if !decides => format!("no other agent can act; {others} {yields}"),
        Some(phase) => format!("its phase, {phase}, is the lowest; {others} {yields}"),
        None => format!("no phase decides; {others} {yields}"),
    };
    Some(Turn {
        handoff: handoff(&first),
        agent: first,
        why,
    })
}

/// Whether the receiver of an open handoff can only wait for the parts of its task, or for
/// dependencies.
fn waits(issue: &Issue, open: &OpenHandoff) -> bool {
    let Some(task) = issue.tasks.iter().find(|t| t.handoff == open.id) else {
        return false;
    };
    let is_open = |task: &Task| issue.open.iter().any(|open| open.id == task.handoff);
    let mut parts = parts(issue, task);
    task.state == TaskState::BrokenDown && parts.any(is_open)
        || open.state == State::Pending
            && before(issue, task).any(|t| t.state != TaskState::Completed)
}

/// The parts of a task.
fn parts<'i>(issue: &'i Issue, task: &'i Task) -> impl Iterator<Item = &'i Task> {
    let whole = task.parent.is_none();
    let of = move |part: &&Task| whole && part.parent.as_ref() == Some(&task.id);
    issue.tasks.iter().filter(of)
}

/// The dependencies of a task.
fn before<'i>(issue: &'i Issue, task: &'i Task) -> impl Iterator<Item = &'i Task> {
    let on = |t: &&Task| t.parent == task.parent && task.depends_on.contains(&t.id);
    issue.tasks.iter().filter(on)
}

/// Whether an open handoff advances a task: it is the task's own, or that of one of its parts or of
/// a dependency. For a whole or a completed task also reports, which belong to no task.
fn concerned<'i>(issue: &'i Issue, task: &'i Task) -> impl Fn(&OpenHandoff) -> bool {
    let mut about: Vec<&Task> = vec![task];
    let mut next = 0;
    while let Some(one) = about.get(next) {
        next += 1;
        let more: Vec<&Task> = parts(issue, one).chain(before(issue, one)).collect();
        for task in more {
            if !about.iter().any(|known| known.handoff == task.handoff) {
                about.push(task);
            }
        }
    }
    let reported = task.parent.is_none() || task.state == TaskState::Completed;
    move |open| {
        let own = about.iter().any(|task| task.handoff == open.id);
        own || reported && issue.tasks.iter().all(|task| task.handoff != open.id)
    }
}
