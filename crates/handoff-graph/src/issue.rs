//! The graph of an issue: who handed over to whom, how often, and where the work is now.

use std::collections::HashMap;

use chrono::TimeDelta;
use handoff::base::Moment;
use handoff::base::ids::{AgentName, AgentRef};
use handoff::base::text::counted;
use handoff::ledger::{ChangeSurvey, HandoffSurvey, IssueSurvey};
use handoff::model::{IssueStatus, overdue_text};
use handoff::protocol::{Event, Protocol, State};

use super::loops::{Leg, loops};
use super::text::span;
use super::{Edge, EdgeKind, Graph, Kind, Mark, Node, NodeId, Shape, Step, Trouble, is_late};
use crate::times::times;

/// The graph of an issue under its protocol.
///
/// Nodes are the agents in the order in which they received work, edges the routes taken (one edge
/// per route), steps the handoffs.
pub fn issue_graph(issue: &IssueSurvey<'_>, protocol: &Protocol, now: Moment) -> Graph {
    let mut builder = Builder {
        protocol,
        nodes: Vec::new(),
        known: HashMap::new(),
        edges: Vec::new(),
        edge_indexes: HashMap::new(),
    };
    let mut legs = Vec::with_capacity(issue.handoffs.len());
    let mut steps = Vec::with_capacity(issue.handoffs.len());
    for handoff in &issue.handoffs {
        let from = builder.agent(handoff.from);
        let to = builder.agent(handoff.sent_to);
        let with = builder.agent(handoff.to);
        legs.push(Leg {
            number: handoff.number,
            from,
            to: with,
            follows: handoff.follows,
            answers: handoff.answers,
        });
        let step = step(handoff, from, to, with, now);
        builder.add(handoff, &step);
        steps.push(step);
    }
    builder.mark_position(issue, now);
    let handoffs = counted(issue.handoffs.len(), "handoff");
    Graph {
        kind: Kind::Issue,
        name: issue.key.to_string(),
        title: format!(
            "issue {} ({}): {}, {handoffs}",
            issue.key,
            issue.protocol,
            issue.status.as_str(),
        ),
        nodes: builder.nodes,
        edges: builder.edges,
        groups: Vec::new(),
        loops: loops(&legs),
        rounds: (issue.rounds_by_name().into_iter())
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
        steps,
    }
}

fn some(time: TimeDelta) -> Option<TimeDelta> {
    Some(time).filter(|time| *time > TimeDelta::zero())
}

fn step(handoff: &HandoffSurvey<'_>, from: NodeId, to: NodeId, with: NodeId, now: Moment) -> Step {
    let spent = times(handoff, now);
    Step {
        number: handoff.number,
        from,
        to,
        now_with: Some(with).filter(|with| *with != to),
        meant_for: handoff.intended.map(AgentRef::to_name),
        summary: handoff.summary.to_owned(),
        contract_type: handoff.contract_type.to_owned(),
        state: handoff.state,
        mark: mark(handoff, now),
        attempt: handoff.attempt,
        answers: handoff.answers,
        task: handoff.task.map(str::to_owned),
        waited: some(spent.waiting),
        worked: some(spent.working),
        troubles: troubles(handoff),
    }
}

/// A handoff's mark. One that waits for others is not late, since nobody can claim it.
fn mark(handoff: &HandoffSurvey<'_>, now: Moment) -> Mark {
    match handoff.state {
        State::Pending if !handoff.waits_for.is_empty() => Mark::Waiting,
        _ if is_late(handoff, now) => Mark::Late,
        state => state.into(),
    }
}

/// A handoff's failures and interruptions, the oldest first.
fn troubles(handoff: &HandoffSurvey<'_>) -> Vec<Trouble> {
    let troubles = handoff.changes.iter().filter_map(|change| {
        let (mark, title) = match change.event? {
            Event::Fail => (Mark::Failed, "failed"),
            Event::Expire => (Mark::Failed, "timed out"),
            Event::Exhaust => (Mark::Failed, "no attempt left"),
            Event::Block => (Mark::Blocked, "blocked"),
            Event::Reject => (Mark::Dropped, "rejected"),
            Event::Cancel => (Mark::Dropped, "cancelled"),
            _ => return None,
        };
        let mut text = title.to_owned();
        let is_news = |code: &&str| change.event == Some(Event::Fail) && *code != title;
        if let Some(code) = change.failure.filter(is_news) {
            text += &format!(" with {code}");
        }
        match &change.reason {
            Some(reason) => text += &format!(": {reason}"),
            // The mark already shows it.
            None if change.to == handoff.state && handoff.state.is_terminal() => return None,
            None => {}
        }
        Some(Trouble { mark, text })
    });
    troubles.collect()
}

/// A graph under construction.
struct Builder<'p> {
    protocol: &'p Protocol,
    nodes: Vec<Node>,
    known: HashMap<AgentName, NodeId>,
    edges: Vec<Edge>,
    edge_indexes: HashMap<(NodeId, NodeId, HandoffEdge), usize>,
}

/// The kinds of edge between which an issue's handoffs are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum HandoffEdge {
    Handoff,
    Answer,
    Reassigned,
}

impl Builder<'_> {
    fn agent(&mut self, name: AgentRef<'_>) -> NodeId {
        if let Some(id) = self.known.get(name.as_str()) {
            return *id;
        }
        let id = NodeId(self.nodes.len());
        let agent = self.protocol.agent(name.as_str());
        self.nodes.push(Node {
            id,
            name: name.to_string(),
            shape: agent.map_or(Shape::Specialist, |agent| agent.kind.into()),
            mark: Mark::None,
            here: false,
            lines: Vec::new(),
            group: None,
        });
        self.known.insert(name.to_name(), id);
        id
    }

    fn edge(&mut self, from: NodeId, to: NodeId, edge_kind: HandoffEdge) -> &mut Edge {
        let edges = &mut self.edges;
        let at = *self
            .edge_indexes
            .entry((from, to, edge_kind))
            .or_insert_with(|| {
                let kind = match edge_kind {
                    HandoffEdge::Handoff => EdgeKind::Handoff,
                    HandoffEdge::Answer => EdgeKind::Answer,
                    HandoffEdge::Reassigned => EdgeKind::Reassigned,
                };
                edges.push(Edge::new(from, to, kind));
                edges.len() - 1
            });
        &mut edges[at]
    }

    fn add(&mut self, handoff: &HandoffSurvey<'_>, step: &Step) {
        let edge_kind = match step.answers {
            Some(_) => HandoffEdge::Answer,
            None => HandoffEdge::Handoff,
        };
        let edge = self.edge(step.from, step.to, edge_kind);
        edge.carry(&step.contract_type);
        edge.handoffs.push(handoff.number);
        edge.count(handoff.state);
        edge.mark = edge.mark.max(step.mark);
        let held = step.state == State::InProgress;
        edge.late += usize::from(held && step.mark == Mark::Late);
        if let Some(meant_for) = step.meant_for.as_ref().filter(|_| step.answers.is_none()) {
            let note = format!("{} for {meant_for}", handoff.number);
            match edge.notes.len() {
                0..=2 => edge.notes.push(note),
                3 => edge.notes.push("…".to_owned()),
                _ => {}
            }
        }
        let failed = |change: &&ChangeSurvey<'_>| change.to == State::Failed;
        edge.failures += handoff.changes.iter().filter(failed).count();
        for (all, one) in [
            (&mut edge.waited, step.waited),
            (&mut edge.worked, step.worked),
        ] {
            *all = match (*all, one) {
                (Some(all), Some(one)) => Some(all + one),
                (all, one) => all.or(one),
            };
        }
        if let Some(request) = step.answers {
            let note = match edge.notes.first() {
                None => format!("answers {request}"),
                Some(_) if edge.count > 6 => return,
                Some(before) => format!("{before}, {request}"),
            };
            edge.notes = vec![note];
        }
        if let Some(with) = step.now_with {
            let number = handoff.number;
            let edge = self.edge(step.to, with, HandoffEdge::Reassigned);
            edge.handoffs.push(number);
            edge.notes = vec![format!(
                "reassigned: {}",
                super::text::numbers(&edge.handoffs)
            )];
        }
    }

    /// Marks where the work is: at agents with open handoffs, or else at those that may send next.
    fn mark_position(&mut self, issue: &IssueSurvey<'_>, now: Moment) {
        if issue.status != IssueStatus::Open {
            return;
        }
        let open = issue.handoffs.iter().filter(|h| !h.state.is_terminal());
        let open: Vec<&HandoffSurvey<'_>> = open.collect();
        for handoff in &open {
            let id = self.agent(handoff.to);
            let node = &mut self.nodes[id.0];
            let mark = mark(handoff, now);
            node.here = true;
            node.mark = node.mark.max(mark);
            let since = match handoff.expires_at.filter(|_| mark == Mark::Late) {
                Some(end) => Some(format!(" {} ago", span(now - end))),
                None => handoff
                    .changes
                    .last()
                    .map(|change| format!(" for {}", span(now - change.at))),
            };
            let how = match mark {
                Mark::Waiting => "waits for others",
                Mark::Late => overdue_text(handoff.state),
                _ => handoff.state.words(),
            };
            let meant_for = handoff.intended.map(|agent| format!(", meant for {agent}"));
            node.lines.push(format!(
                "{} {} {how}{}{}",
                handoff.number,
                mark.symbol(),
                since.unwrap_or_default(),
                meant_for.unwrap_or_default(),
            ));
        }
        if open.is_empty() {
            for number in &issue.unfollowed {
                if let Some(handoff) = issue.handoff(*number) {
                    let id = self.agent(handoff.to);
                    let node = &mut self.nodes[id.0];
                    node.here = true;
                    node.mark = node.mark.max(Mark::Claimable);
                    node.lines.push(format!("may send on from {number}"));
                }
            }
        }
        // If there are many, only the newest lines are kept.
        for node in &mut self.nodes {
            if node.lines.len() > 4 {
                let more = node.lines.len() - 3;
                node.lines.drain(..more);
                node.lines.insert(0, format!("{more} more"));
            }
        }
    }
}
