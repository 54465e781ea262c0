//! Who may note each fact.

use handoff_base::ids::AgentName;

use super::github::{BRANCH, CHANGED_BY, Effect, EventKind, HEAD, PULL_REQUEST_STATE};
use super::{Agent, AgentKind, Definition};

/// The source of a fact, which decides whose notes of it are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactSource {
    /// Events prove it: the agents of their rules may note it, and people.
    Events,
    /// Contracts or events state it; orchestrators may correct it, and people.
    Contracts,
    /// Nothing else states it: any agent may note it.
    Anyone,
}

impl Definition {
    /// The source of a fact. No agent may claim the state of a review, a check or a pull request,
    /// nor the branch if events state it.
    pub fn source_of(&self, fact: &str) -> FactSource {
        let by_event = || {
            let mut rules = self.event_rules().iter();
            rules.any(|rule| rule.facts.contains_key(fact))
        };
        let is_since = || EventKind::ALL.iter().any(|kind| kind.since_fact() == fact);
        let reviewed = |name: &Option<String>| name.as_deref() == Some(fact);
        let is_proof = [HEAD, PULL_REQUEST_STATE, CHANGED_BY].contains(&fact)
            || is_since()
            || self.facts.opinions.iter().any(|rules| rules.covers(fact))
            || self.contracts.iter().any(|kind| {
                let reviews = kind.reviews.as_ref();
                reviews.is_some_and(|reviews| reviewed(&reviews.fact))
            })
            || fact == BRANCH && by_event();
        match () {
            () if is_proof => FactSource::Events,
            () if self.facts.contains_key(fact) || by_event() => FactSource::Contracts,
            () => FactSource::Anyone,
        }
    }

    /// Where a fact comes from under this protocol, in words: who may state or correct it, and who of
    /// them can be asked for a correction.
    pub fn told_by(&self, fact: &str) -> (String, &'static str) {
        let source = self.source_of(fact);
        let is_of_event = || {
            let mut rules = self.event_rules().iter();
            rules.any(|rule| source == FactSource::Events || rule.facts.contains_key(fact))
        };
        let is_stated = source == FactSource::Contracts && self.facts.contains_key(fact);
        let leads = |agent: &Agent| agent.kind == AgentKind::Orchestrator;
        let is_led = source == FactSource::Contracts && self.agents.iter().any(leads);
        let all = [
            (is_stated, "a contract"),
            (is_of_event(), "an event"),
            (is_led, "an orchestrator"),
            (self.people().next().is_some(), "a person"),
        ];
        let mut all: Vec<&str> = all
            .into_iter()
            .filter(|one| one.0)
            .map(|one| one.1)
            .collect();
        let last = all.pop().unwrap_or("nobody");
        let asked = if is_led {
            "a person or an orchestrator"
        } else {
            "a person"
        };
        match &all[..] {
            [] => (last.to_owned(), asked),
            others => (format!("{} or {last}", others.join(", ")), asked),
        }
    }

    /// Whether an agent may note a fact; `of_event` is whether the note comes from an event.
    pub fn may_note(&self, fact: &str, agent: &AgentName, of_event: bool) -> bool {
        let source = self.source_of(fact);
        let kind = || self.agent(agent.as_str()).map(|known| known.kind);
        // An event that states facts also notes the state of its pull request, who changed the
        // issue, and since when the facts hold.
        let is_with = || {
            let also = [PULL_REQUEST_STATE, CHANGED_BY].contains(&fact);
            also || EventKind::ALL.iter().any(|kind| kind.since_fact() == fact)
        };
        let by_rule = || {
            let rules = self.event_rules().iter();
            rules.filter(|rule| rule.agent == *agent).any(|rule| {
                let tells = !rule.facts.is_empty() || matches!(rule.effect, Some(Effect::Send(_)));
                rule.facts.contains_key(fact)
                    || tells && (source == FactSource::Contracts || is_with())
            })
        };
        source == FactSource::Anyone
            || self.is_person(agent.as_str())
            || source == FactSource::Contracts && kind() == Some(AgentKind::Orchestrator)
            || of_event && by_rule()
    }
}
