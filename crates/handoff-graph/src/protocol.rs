//! The graph of a protocol's routes, and how a ledger used them.

use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;
use handoff::base::Moment;
use handoff::base::text::counted;
use handoff::ledger::{HandoffSurvey, IssueSurvey};
use handoff::protocol::{Protocol, Route};

use super::{Edge, EdgeKind, Graph, Kind, Mark, Node, NodeId, Shape};
use crate::times::rank;
use crate::times::{acknowledgment, times};

/// The graph of a protocol with the handoffs of these issues, sent at or after `since` if given.
///
/// An edge of kind `handoff` is a route; routes missing from the protocol, answers and notes appear
/// only if they were used.
pub fn protocol_graph<'a>(
    protocol: &Protocol,
    issues: impl IntoIterator<Item = IssueSurvey<'a>>,
    since: Option<Moment>,
    now: Moment,
) -> Graph {
    let mut builder = Builder::new(protocol);
    builder.routes();
    let (mut issue_count, mut handoff_count) = (0usize, 0usize);
    for issue in issues {
        if issue.protocol.as_str() != protocol.name() {
            continue;
        }
        let wanted = |h: &&HandoffSurvey<'_>| since.is_none_or(|since| h.sent_at() >= Some(since));
        let before = handoff_count;
        for handoff in issue.handoffs.iter().filter(wanted) {
            builder.add(handoff, now);
            handoff_count += 1;
        }
        issue_count += usize::from(handoff_count > before);
    }
    builder.finish();
    builder.forbidden();
    Graph {
        kind: Kind::Protocol,
        name: protocol.name().to_owned(),
        title: format!(
            "protocol {}: {} in {}",
            protocol.name(),
            counted(handoff_count, "handoff"),
            counted(issue_count, "issue"),
        ),
        nodes: builder.nodes,
        edges: builder.edges,
        groups: Vec::new(),
        loops: Vec::new(),
        rounds: BTreeMap::new(),
        steps: Vec::new(),
    }
}

/// A graph under construction.
struct Builder<'p> {
    protocol: &'p Protocol,
    nodes: Vec<Node>,
    known: HashMap<String, NodeId>,
    edges: Vec<Edge>,
    ways: HashMap<(NodeId, NodeId, bool), usize>,
    /// For each edge, the times to claim and the working times.
    samples: Vec<(Vec<TimeDelta>, Vec<TimeDelta>)>,
}

impl<'p> Builder<'p> {
    fn new(protocol: &'p Protocol) -> Self {
        let mut builder = Self {
            protocol,
            nodes: Vec::new(),
            known: HashMap::new(),
            edges: Vec::new(),
            ways: HashMap::new(),
            samples: Vec::new(),
        };
        for agent in &protocol.definition().agents {
            let id = builder.node(agent.id.as_str(), agent.kind.into());
            builder.nodes[id.0].lines = vec![agent.role.clone()];
        }
        builder
    }

    fn node(&mut self, name: &str, shape: Shape) -> NodeId {
        if let Some(id) = self.known.get(name) {
            return *id;
        }
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node {
            id,
            name: name.to_owned(),
            shape,
            mark: Mark::None,
            here: false,
            lines: Vec::new(),
            group: None,
        });
        self.known.insert(name.to_owned(), id);
        id
    }

    fn sender(&mut self, name: &str) -> NodeId {
        match name {
            "*" => self.node("any agent", Shape::Anyone),
            name => self.node(name, Shape::Specialist),
        }
    }

    fn edge(&mut self, from: NodeId, to: NodeId, kind: EdgeKind) -> usize {
        let is_answer = kind == EdgeKind::Answer;
        if let Some(at) = self.ways.get(&(from, to, is_answer)) {
            return *at;
        }
        self.ways.insert((from, to, is_answer), self.edges.len());
        self.edges.push(Edge::new(from, to, kind));
        self.samples.push((Vec::new(), Vec::new()));
        self.edges.len() - 1
    }

    fn routes(&mut self) {
        for route in &self.protocol.definition().routes {
            let from = self.sender(&route.from);
            let to = self.node(route.to.as_str(), Shape::Specialist);
            let at = self.edge(from, to, EdgeKind::Handoff);
            let edge = &mut self.edges[at];
            for kind in &route.contracts {
                edge.carry(kind);
            }
            let opens = route.opens.then(|| "opens issues".to_owned());
            let via = route.via.as_ref().map(|via| format!("{via} decides first"));
            for note in opens.into_iter().chain(via) {
                if !edge.notes.contains(&note) {
                    edge.notes.push(note);
                }
            }
        }
    }

    /// The route that a handoff took: the exact one, or one with a wildcard.
    fn route(&self, handoff: &HandoffSurvey<'_>) -> Option<&'p Route> {
        let from = handoff.from.as_str();
        // If another agent decided first, the route is that to the intended receiver.
        let to = handoff.intended.unwrap_or(handoff.sent_to);
        let routes = &self.protocol.definition().routes;
        let carries = |r: &&Route| {
            let mut types = r.contracts.iter();
            types.any(|name| name == handoff.contract_type) && r.to.borrowed() == to
        };
        let own = routes.iter().filter(carries).find(|r| r.from == from);
        own.or_else(|| routes.iter().filter(carries).find(|r| r.from == "*"))
    }

    fn add(&mut self, handoff: &HandoffSurvey<'_>, now: Moment) {
        let kind = self.protocol.contract_type(handoff.contract_type);
        let at = match self.route(handoff) {
            Some(route) => {
                let from = self.sender(&route.from);
                let to = self.node(route.to.as_str(), Shape::Specialist);
                self.edge(from, to, EdgeKind::Handoff)
            }
            None => {
                let from = self.sender(handoff.from.as_str());
                let to = self.sender(handoff.sent_to.as_str());
                let is_answer = handoff.answers.is_some();
                let is_new = !self.ways.contains_key(&(from, to, is_answer));
                let kind_of = if is_answer {
                    EdgeKind::Answer
                } else {
                    EdgeKind::Handoff
                };
                let at = self.edge(from, to, kind_of);
                let edge = &mut self.edges[at];
                edge.carry(handoff.contract_type);
                if is_new && !is_answer {
                    let is_note = kind.is_some_and(|kind| kind.note);
                    let what = if is_note {
                        "only recorded"
                    } else {
                        "no route now"
                    };
                    edge.notes.push(what.to_owned());
                }
                at
            }
        };
        self.edges[at].count(handoff.state);
        let (waited, worked) = &mut self.samples[at];
        waited.extend(acknowledgment(handoff));
        // Only work that was claimed and has ended has a duration.
        if handoff.state.is_terminal() && acknowledgment(handoff).is_some() {
            worked.push(times(handoff, now).working);
        }
    }

    fn finish(&mut self) {
        for (edge, (waited, worked)) in self.edges.iter_mut().zip(&mut self.samples) {
            edge.waited = median(waited);
            edge.worked = median(worked);
        }
    }

    fn forbidden(&mut self) {
        for forbidden in &self.protocol.definition().routes.forbidden {
            let from = self.node(&forbidden.from, Shape::Specialist);
            let to = self.node(forbidden.to.as_str(), Shape::Specialist);
            let mut edge = Edge::new(from, to, EdgeKind::Forbidden);
            edge.notes = vec![forbidden.reason.clone()];
            self.edges.push(edge);
        }
    }
}

/// The median by nearest rank, as in all metrics.
fn median(times: &mut [TimeDelta]) -> Option<TimeDelta> {
    times.sort_unstable();
    times.get(rank(0.5, times.len())?.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::median;
    use chrono::TimeDelta;

    #[test]
    fn the_median_is_the_middle() {
        let of = |seconds: &[i64]| {
            let mut times: Vec<TimeDelta> =
                seconds.iter().map(|s| TimeDelta::seconds(*s)).collect();
            median(&mut times).map(|time| time.num_seconds())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7]), Some(7));
        assert_eq!(of(&[9, 1, 5]), Some(5));
        assert_eq!(of(&[9, 1, 5, 3]), Some(3));
    }
}
