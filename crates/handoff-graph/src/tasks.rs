//! The graph of an issue's tasks: parents, dependencies, and which are claimable.

use std::collections::{BTreeMap, HashMap};

use handoff::base::Moment;
use handoff::ledger::{HandoffSurvey, IssueSurvey};
use handoff::model::{Issue, Task, overdue_text};
use handoff::protocol::{State, TaskState};

use super::{Edge, EdgeKind, Graph, Group, Kind, Mark, Node, NodeId, Shape, is_late};

/// The graph of an issue's tasks; `survey` is of the same issue. Without tasks, it has no nodes.
pub fn task_graph(issue: &Issue, survey: &IssueSurvey<'_>, now: Moment) -> Graph {
    let tasks = &issue.tasks;
    let places: HashMap<(Option<&str>, &str), NodeId> = tasks
        .iter()
        .enumerate()
        .map(|(i, task)| ((task.parent.as_deref(), task.id.as_str()), NodeId(i)))
        .collect();
    let parents = tasks.iter().filter_map(|task| task.parent.as_deref());
    let mut group_of: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    for parent in parents {
        group_of.entry(parent).or_insert_with(|| {
            names.push(parent);
            names.len() - 1
        });
    }
    let mut nodes = Vec::with_capacity(tasks.len());
    let mut edges = Vec::new();
    for (i, task) in tasks.iter().enumerate() {
        let id = NodeId(i);
        let handoff = survey.handoff(task.handoff.number());
        let mut node = node(id, task, handoff, now);
        if let Some(parent) = task.parent.as_deref() {
            node.group = group_of.get(parent).copied();
            let whole = places.get(&(None, parent));
            edges.extend(whole.map(|from| Edge::new(*from, id, EdgeKind::Part)));
        }
        nodes.push(node);
        for on in &task.depends_on {
            let before = places.get(&(task.parent.as_deref(), on.as_str()));
            let edge = before.map(|from| {
                let mut edge = Edge::new(*from, id, EdgeKind::Dependency);
                if tasks[from.0].state == TaskState::Completed {
                    edge.mark = Mark::Done;
                }
                edge
            });
            edges.extend(edge);
        }
    }
    let groups = names.iter().map(|parent| {
        let parts = || tasks.iter().filter(|t| t.parent.as_deref() == Some(parent));
        let done = parts().filter(|t| t.state == TaskState::Completed).count();
        Group {
            title: format!("parts of {parent}: {done} of {} done", parts().count()),
        }
    });
    let count = |mark: Mark| nodes.iter().filter(|n: &&Node| n.mark == mark).count();
    let mut title = format!(
        "tasks of issue {}: {} of {} done, {} ready",
        issue.issue,
        count(Mark::Done),
        tasks.len(),
        count(Mark::Claimable)
    );
    for (mark, what) in [
        (Mark::Failed, "failed"),
        (Mark::Late, "late"),
        (Mark::Blocked, "blocked"),
    ] {
        if count(mark) > 0 {
            title += &format!(", {} {what}", count(mark));
        }
    }
    Graph {
        kind: Kind::Tasks,
        name: issue.issue.to_string(),
        title,
        groups: groups.collect(),
        nodes,
        edges,
        loops: Vec::new(),
        rounds: BTreeMap::new(),
        steps: Vec::new(),
    }
}

fn node(id: NodeId, task: &Task, handoff: Option<&HandoffSurvey<'_>>, now: Moment) -> Node {
    let with = handoff.map(|h| h.to.to_string()).unwrap_or_default();
    let waits = handoff.is_some_and(|h| !h.waits_for.is_empty());
    let later = handoff
        .and_then(|h| h.not_before)
        .is_some_and(|at| at > now);
    let (mark, words) = match (task.state, handoff.map(|h| h.state)) {
        (TaskState::Completed, _) => (Mark::Done, "done".to_owned()),
        (TaskState::None, _) => (Mark::None, "not handed over".to_owned()),
        (_, Some(state)) if handoff.is_some_and(|h| is_late(h, now)) => {
            let broken = task.state == TaskState::BrokenDown;
            let before = if broken { "broken down, and " } else { "" };
            let late = overdue_text(state);
            (Mark::Late, format!("{before}{late}, with {with}"))
        }
        (TaskState::BrokenDown, _) => (Mark::Working, format!("broken down, with {with}")),
        (_, Some(State::Pending)) if waits => (Mark::Waiting, "waits".to_owned()),
        (_, Some(State::Pending)) if later => (
            Mark::Waiting,
            format!("waits for another attempt by {with}"),
        ),
        (_, Some(State::Pending)) | (_, None) => (Mark::Claimable, format!("ready for {with}")),
        (_, Some(State::InProgress)) => (Mark::Working, format!("{with} works on it")),
        (_, Some(State::Completed)) => (Mark::Done, "done".to_owned()),
        (_, Some(state)) => (state.into(), format!("{}, with {with}", state.words())),
    };
    Node {
        id,
        name: task.id.clone(),
        shape: Shape::Task,
        mark,
        here: matches!(
            mark,
            Mark::Working | Mark::Blocked | Mark::Late | Mark::Failed
        ),
        lines: vec![format!("{words} ({})", task.handoff)],
        group: None,
    }
}
