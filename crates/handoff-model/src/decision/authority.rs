//! Who decides about a handoff, and whether it is with that agent.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::word;
use handoff_protocol::{AgentKind, Protocol, State};

use super::decides;
use crate::record::{Issue, Question, Record};
use crate::refusal::LeaseRefusal;

/// The agent that decides about a sender's handoffs: the orchestrator, or else the sender.
pub fn decider<'a>(protocol: &'a Protocol, sender: &'a AgentName) -> &'a AgentName {
    // In a call, an orchestrator that made the request decides about it itself.
    let asker = protocol.is_kind(sender.as_str(), AgentKind::Orchestrator);
    protocol.lead().filter(|_| !asker).unwrap_or(sender)
}

/// The agent that answers the receiver of a sender's handoff: who decides about it or, if that is
/// the receiver itself, a person.
pub(crate) fn answers<'a>(
    protocol: &'a Protocol,
    (sender, receiver): (&'a AgentName, &AgentName),
) -> &'a AgentName {
    let decider = decider(protocol, sender);
    let other = person(protocol).filter(|_| decider == receiver);
    other.unwrap_or(decider)
}

/// The person that steps in when no attempt is left: the one that a rule names, else the first.
pub fn person(protocol: &Protocol) -> Option<&AgentName> {
    let definition = protocol.definition();
    let mut rules = definition.decisions.iter();
    let rule = rules.find(|rule| rule.when.state == Some(State::Dead));
    let named = rule.and_then(|rule| rule.to.as_ref());
    named.or_else(|| protocol.definition().people().next())
}

/// The command by which a person, or who decides if there is none, corrects what is known of an
/// issue.
pub fn note_fact(protocol: &Protocol, issue: &IssueKey, fact: &str) -> String {
    note_fact_by(person(protocol).or(protocol.lead()), issue, fact)
}

/// The same for an agent that reads it: by itself, if it may note the fact.
pub fn note_own_fact(
    protocol: &Protocol,
    agent: &AgentName,
    issue: &IssueKey,
    fact: &str,
) -> String {
    if protocol.definition().may_note(fact, agent, false) {
        note_fact_by(Some(agent), issue, fact)
    } else {
        note_fact(protocol, issue, fact)
    }
}

fn note_fact_by(by: Option<&AgentName>, issue: &IssueKey, fact: &str) -> String {
    let by = by.map_or_else(|| "PERSON".to_owned(), ToString::to_string);
    let fact = word(&format!("{fact}=VALUE")).into_owned();
    format!("git handoff annotate {issue} --as {by} --fact {fact} --note WHY")
}

/// The command that answers a blocked handoff: with a value for each key, or with a text.
pub fn answer(record: &Record, by: &AgentName) -> String {
    answer_keys(&record.id, &needed(record.questions()), by)
}

/// The keys of the questions that need an answer.
pub(crate) fn needed(questions: &[Question]) -> Vec<String> {
    let needed = questions.iter().filter(|question| !question.optional);
    needed.map(|question| question.key.clone()).collect()
}

/// The command that answers a blocked handoff in which these keys are asked for.
pub(crate) fn answer_keys(id: &HandoffId, needed: &[String], by: &AgentName) -> String {
    format!("{} --as {by}", answer_command(id, needed))
}

/// The same, without the agent that answers.
pub(crate) fn answer_command(id: &HandoffId, needed: &[String]) -> String {
    // Other keys could be taken for an option or for prose.
    let plain_key = |key: &str| {
        let simple = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        !key.is_empty() && !key.starts_with('-') && key.chars().all(simple)
    };
    let arguments = match needed {
        [] => "ANSWER".to_owned(),
        needed if needed.iter().all(|key| plain_key(key)) => {
            let pairs: Vec<String> = needed
                .iter()
                .map(|key| word(&format!("{key}=VALUE")).into_owned())
                .collect();
            pairs.join(" ")
        }
        _ => "answers.json".to_owned(),
    };
    format!("git handoff answer {id} {arguments}")
}

/// The refusal of an agent that is not working on its handoff.
pub(crate) fn not_working(
    (protocol, issue): (&Protocol, &Issue),
    record: &Record,
    agent: &AgentName,
    at: Moment,
) -> LeaseRefusal {
    let (id, agent) = (record.id.clone(), agent.clone());
    let answer = || answer(record, &decides(protocol, issue, record));
    match record.state {
        State::Pending => LeaseRefusal::NotClaimed {
            id,
            agent,
            from: record.waits_until(at),
        },
        state => LeaseRefusal::NotWorking {
            id,
            agent,
            state,
            answer: (state == State::Blocked).then(answer),
        },
    }
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
