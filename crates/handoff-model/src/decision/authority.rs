//! Who decides about a handoff, and whether it is with that agent.

use handoff_base::ids::AgentName;
use handoff_protocol::{AgentKind, Protocol, State};

use crate::record::Record;

/// The agent that decides about a sender's handoffs: the orchestrator, or else the sender.
pub fn decider<'a>(protocol: &'a Protocol, sender: &'a AgentName) -> &'a AgentName {
    // In a call, an orchestrator that made the request decides about it itself.
    let asker = protocol.is_kind(sender.as_str(), AgentKind::Orchestrator);
    protocol.lead().filter(|_| !asker).unwrap_or(sender)
}

/// The person that steps in when no attempt is left: the one that a rule names, else the first.
pub fn person(protocol: &Protocol) -> Option<&AgentName> {
    let definition = protocol.definition();
    let mut rules = definition.decisions.iter();
    let rule = rules.find(|rule| rule.when.state == Some(State::Dead));
    let named = rule.and_then(|rule| rule.to.as_ref());
    named.or_else(|| protocol.definition().people().next())
}

/// Whether an agent is a person, or stands in for one in a protocol without any.
pub fn acts_as_person(protocol: &Protocol, agent: &AgentName) -> bool {
    protocol.is_person(agent.as_str()) || person(protocol).or(protocol.lead()) == Some(agent)
}

/// The status word that counts for a handoff: its contract's or, after a role violation or if a
/// delivered file is missing, that for failed work.
pub(crate) fn standing_status<'a>(protocol: &'a Protocol, record: &'a Record) -> Option<&'a str> {
    let mut words = protocol.definition().words.status.iter();
    let failed = words.find(|(_, state)| **state == State::Failed);
    let failed = failed.filter(|_| record.fault().is_some());
    failed.map_or(record.status.as_deref(), |(word, _)| Some(word))
}

/// Whether a handoff's contract is with the agent that decides what follows.
pub(crate) fn is_to_decide(protocol: &Protocol, record: &Record) -> bool {
    let in_hand = matches!(record.state, State::Pending | State::InProgress);
    in_hand && is_for_decider(protocol, record)
}

/// Whether a handoff's contract goes to the agent that decides what follows.
pub(crate) fn is_for_decider(protocol: &Protocol, record: &Record) -> bool {
    let rules = &protocol.definition().decisions;
    record.status.is_some()
        && rules.iter().any(|rule| rule.when.to_decide)
        && protocol.is_kind(record.to.as_str(), AgentKind::Orchestrator)
}
