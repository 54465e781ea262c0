//! A valid protocol, and queries about it.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::AgentName;
use handoff_base::pointer::escaped_part;
use handoff_base::text::closest;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::check::faults;
use crate::definition::{
    Agent, AgentKind, Check, ContractType, Definition, Ends, Fields, Forbidden, Github, Outcome,
    Policy, RoundLimit, Route, TaskFields, TaskState,
};
use crate::lifecycle::State;
use crate::moved::{named, renewed};

/// A valid protocol: its parts fit together.
#[derive(Clone, Debug)]
pub struct Protocol {
    definition: Definition,
}

impl Protocol {
    /// Loads a `protocol.json`.
    ///
    /// # Errors
    /// Every fault found, each with its place as a JSON Pointer.
    pub fn load(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        match Self::with_faults(bytes)? {
            (protocol, found) if found.is_empty() => Ok(protocol),
            (_, found) => Err(found),
        }
    }

    /// Loads a built-in `protocol.json` without checking its consistency, which tests do.
    ///
    /// # Errors
    /// If it does not have the form of a protocol.
    pub fn sound(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        let definition = read_whole(bytes).map_err(|finding| vec![*finding])?;
        Ok(Self { definition })
    }

    /// Loads a `protocol.json` even if it is inconsistent, so that the files it names can be
    /// checked too; the second part lists the inconsistencies.
    ///
    /// # Errors
    /// If it does not have the form of a protocol.
    pub fn with_faults(bytes: &[u8]) -> Result<(Self, Vec<Finding>), Vec<Finding>> {
        let definition = match read(bytes) {
            Ok(definition) => definition,
            Err(finding) => {
                // It may be of an earlier form: convert it and read it again.
                let Some(now) = renewed(bytes) else {
                    return Err(vec![*finding]);
                };
                let placed = |mut finding: Finding| {
                    finding.path = now.as_written(&finding.path);
                    (finding.line, finding.column) = (None, None);
                    finding
                };
                let read = read(&now.definition);
                let definition = read.map_err(|finding| vec![placed(*finding)])?;
                let found = faults(&definition).into_iter().map(placed);
                let found = found.collect();
                return Ok((Self { definition }, found));
            }
        };
        let found = faults(&definition);
        Ok((Self { definition }, found))
    }

    /// Wraps a definition without checking its consistency.
    pub(crate) fn of(definition: Definition) -> Self {
        Self { definition }
    }

    /// The protocol's name.
    pub fn name(&self) -> &str {
        self.definition.name.as_str()
    }

    /// The content of the file.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Finds an agent by its name or by one of its other names.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.definition.agent(name)
    }

    /// The agent that decides when others can't: the orchestrator.
    pub fn lead(&self) -> Option<&AgentName> {
        let mut agents = self.definition.agents.iter();
        let lead = agents.find(|a| a.kind == AgentKind::Orchestrator);
        lead.map(|a| &a.id)
    }

    /// Whether an agent is a person, as [`Definition::is_person`] says.
    pub fn is_person(&self, name: &str) -> bool {
        self.definition.is_person(name)
    }

    /// When an issue ends.
    pub fn ends(&self) -> Ends {
        if self.definition.has_end() {
            Ends::ClosingContract
        } else {
            Ends::NothingOpen
        }
    }

    /// The place of an envelope field in contracts of this type.
    pub fn field<'a>(
        &'a self,
        kind: &'a ContractType,
        field: impl Fn(&'a Fields) -> &'a Option<String>,
    ) -> Option<&'a str> {
        let own = field(&kind.fields).as_deref();
        own.or_else(|| field(&self.definition.fields).as_deref())
    }

    /// Whether an agent is of this kind.
    pub fn is_kind(&self, name: &str, kind: AgentKind) -> bool {
        self.agent(name).is_some_and(|a| a.kind == kind)
    }

    /// The names of all agents that can act, in the definition's order.
    pub fn agent_names(&self) -> Vec<&str> {
        let acting = |a: &&Agent| a.kind != AgentKind::End;
        let agents = self.definition.agents.iter().filter(acting);
        agents.map(|a| a.id.as_str()).collect()
    }

    /// Finds a contract type by name.
    pub fn contract_type(&self, name: &str) -> Option<&ContractType> {
        self.definition.contracts.iter().find(|c| c.name == name)
    }

    /// Every root element that a contract may have.
    pub fn roots(&self) -> Vec<&str> {
        let roots: BTreeSet<&str> = self
            .definition
            .contracts
            .iter()
            .map(|c| c.root.as_str())
            .collect();
        roots.into_iter().collect()
    }

    /// The routes from one agent to another, including wildcards.
    pub fn routes<'a>(&'a self, from: &'a str, to: &'a str) -> impl Iterator<Item = &'a Route> {
        self.routes_from(from).filter(move |r| r.to.as_str() == to)
    }

    /// The routes that leave an agent, including wildcards.
    pub fn routes_from<'a>(&'a self, from: &'a str) -> impl Iterator<Item = &'a Route> {
        self.definition.routes.iter().filter(move |r| {
            r.from == from || (r.from == "*" && r.to.as_str() != from && !self.is_end(from))
        })
    }

    /// The receiver and the type of the contract by which an agent reports that a task is done, in
    /// the protocol's first format. The receiver is `asker` if there is such a route.
    pub fn reports_to<'a>(
        &'a self,
        agent: &'a str,
        asker: &AgentName,
    ) -> Option<(&'a AgentName, &'a ContractType)> {
        let first = self.definition.formats.first();
        let reports = |kind: &&ContractType| {
            kind.tasks.as_ref().is_some_and(|t| t.completes.is_some())
                && first.is_none_or(|format| kind.has_format(format))
        };
        let routes = self.routes_from(agent).flat_map(|route| {
            let types = route.contracts.iter();
            types.filter_map(move |name| Some((&route.to, self.contract_type(name)?)))
        });
        let mut found: Vec<_> = routes.filter(|(_, kind)| reports(kind)).collect();
        found.sort_by_key(|(to, _)| *to != asker);
        found.first().copied()
    }

    /// The agents that an agent may hand on to, without duplicates; itself only if there is no
    /// other. Those that do the work come first, then those that step in; else in the definition's
    /// order.
    pub fn receivers<'a>(&'a self, from: &'a str) -> Vec<&'a AgentName> {
        let mut receivers: Vec<&AgentName> = Vec::new();
        for route in self.routes_from(from) {
            if !receivers.contains(&&route.to) {
                receivers.push(&route.to);
            }
        }
        if receivers.len() > 1 {
            receivers.retain(|to| to.as_str() != from);
        }
        // Last, because they are for when the usual route is not possible.
        receivers.sort_by_key(|to| self.steps_in(to));
        receivers
    }

    /// Whether an agent is an orchestrator or a person, who step in rather than do the work.
    pub fn steps_in(&self, agent: &AgentName) -> bool {
        self.is_kind(agent.as_str(), AgentKind::Orchestrator) || self.is_person(agent.as_str())
    }

    /// The contract's type, if sender and receiver do not determine it.
    pub fn named_type<'k>(&self, from: &str, to: &str, kind: &'k str) -> Option<&'k str> {
        (self.types_between(from, to).len() > 1).then_some(kind)
    }

    /// The types of contract that one agent can send to another: along a route, as an answer, or as
    /// a note.
    pub fn types_between(&self, from: &str, to: &str) -> Vec<&ContractType> {
        let sent = |from: &str, to: &str, kind: &str| {
            let mut routes = self.routes_from(from).filter(|r| r.to.as_str() == to);
            routes.any(|r| r.contracts.iter().any(|c| c == kind))
        };
        let can = |kind: &&ContractType| {
            if kind.travels() {
                return sent(from, to, &kind.name);
            }
            let takes_notes = kind.implied_to.as_ref().or_else(|| self.lead());
            // A note that names its receiver may go to anyone.
            let may_get = kind.fields.to.is_some() && self.agent(to).is_some()
                || takes_notes.is_some_and(|agent| agent.as_str() == to);
            kind.answers.iter().any(|asked| sent(to, from, asked))
                || kind.note && self.agent(from).is_some() && may_get
        };
        self.definition.contracts.iter().filter(can).collect()
    }

    /// Whether a contract of this type from one agent to another may open an issue.
    pub fn opens(&self, from: &str, to: &str, kind: &str) -> bool {
        let mut routes = self.routes(from, to).filter(|route| route.opens);
        routes.any(|route| route.contracts.iter().any(|own| own == kind))
    }

    /// The contract types that answer one of this type.
    pub fn answers_to(&self, kind: &str) -> Vec<&ContractType> {
        let answers = |c: &&ContractType| c.answers.iter().any(|asked| asked == kind);
        self.definition.contracts.iter().filter(answers).collect()
    }

    /// The receivers to which an agent may hand on, each with the contract's type if sender and
    /// receiver do not determine it. If the agent in `asked` needs an answer, it comes first.
    pub fn onward(
        &self,
        agent: &str,
        asked: Option<(&AgentName, &str)>,
    ) -> Vec<(AgentName, Option<String>)> {
        // A request must be answered before anything is sent to others.
        let answers = asked.map_or_else(Vec::new, |(_, kind)| self.answers_to(kind));
        let first = self.definition.formats.first();
        let fits = |kind: &&ContractType| first.is_none_or(|f| kind.has_format(f)) && !kind.note;
        let between = |to: &AgentName| -> Vec<&ContractType> {
            let types = self.types_between(agent, to.as_str()).into_iter();
            types.filter(fits).collect()
        };
        let named = |to: &AgentName, kind: &ContractType| {
            let several = between(to).len() > 1;
            (to.clone(), several.then(|| kind.name.clone()))
        };
        let mut onward = Vec::new();
        if let Some((asker, _)) = asked {
            onward.extend(answers.iter().map(|kind| named(asker, kind)));
        }
        let is_answered =
            |to: &AgentName| !answers.is_empty() && asked.is_some_and(|(asker, _)| asker == to);
        for to in self.receivers(agent) {
            if !is_answered(to) {
                let types = between(to).into_iter().filter(|kind| kind.travels());
                onward.extend(types.map(|kind| named(to, kind)));
            }
        }
        onward
    }

    /// The receivers to which a sender could send a contract of this type instead.
    pub fn others_for<'a>(&'a self, from: &'a str, to: &str, kind: &str) -> Vec<&'a AgentName> {
        let mut others: Vec<&AgentName> = Vec::new();
        for route in self.routes_from(from) {
            let other = route.to.as_str() != to && route.to.as_str() != from;
            let takes =
                route.contracts.iter().any(|c| c == kind) && !self.is_end(route.to.as_str());
            if other && takes && !others.contains(&&route.to) {
                others.push(&route.to);
            }
        }
        others
    }

    /// Why failed work is not retried: its failure's code, or the number of retries it had. `most`
    /// is the maximum that its contract sets.
    pub fn why_spent(&self, code: Option<&str>, retries: u32, most: Option<u32>) -> Option<String> {
        let policy = self.definition.retry();
        let never = policy.map_or(&[][..], |policy| &policy.never);
        if let Some(code) = code.filter(|code| never.iter().any(|n| n == code)) {
            return Some(format!("what fails with {code} is not tried again"));
        }
        let most = most.or(policy.and_then(|policy| policy.max_retries));
        let spent = most.is_some_and(|most| retries >= most);
        let times = if retries == 1 {
            "once"
        } else {
            &format!("{retries} times")
        };
        spent.then(|| format!("it was retried {times}, as often as it may be"))
    }

    /// The seconds in which a contract of this type must be claimed; `None` if there is no limit.
    /// `own` is the contract's own limit, which does not apply to a person.
    pub fn acknowledge_seconds(
        &self,
        from: &str,
        to: &str,
        kind: &str,
        own: Option<u64>,
    ) -> Option<u64> {
        let mut routes = self.routes(from, to);
        let route = routes.find(|route| route.contracts.iter().any(|c| c == kind))?;
        let time = self.definition.limits.as_ref();
        let usual = || time.and_then(|time| time.acknowledge_seconds);
        if self.is_person(to) {
            return route.acknowledge_seconds;
        }
        own.or(route.acknowledge_seconds).or_else(usual)
    }

    /// The default length of an agent's lease, in seconds; `None` if it does not end. `own` is the
    /// contract's own length; one that the protocol sets for persons overrides it.
    pub fn lease_seconds(&self, agent: &str, own: Option<u64>) -> Option<u64> {
        let time = self.definition.limits.as_ref();
        let person = time.and_then(|time| time.person_lease_seconds);
        let person = person.filter(|_| self.is_person(agent));
        person.or(own).or(time.and_then(|time| time.lease_seconds))
    }

    /// The agent whose turn it is for a task in this state: the one that hands over, breaks down or
    /// completes tasks. `None` if several agents do: then the one with the lower phase goes first.
    pub fn turn_of(&self, state: TaskState) -> Option<&AgentName> {
        let acts = |tasks: &TaskFields| match state {
            TaskState::None => tasks.opens.is_some() && tasks.parent.is_none(),
            TaskState::InProgress => tasks.completes.is_some(),
            TaskState::Completed => false,
            // In any other state, even while it waits, it is the turn of the agent that breaks it
            // down.
            _ => tasks.opens.is_some() && tasks.parent.is_some(),
        };
        let acts = |name: &String| {
            let tasks = self.contract_type(name).and_then(|k| k.tasks.as_ref());
            tasks.is_some_and(acts)
        };
        let routes = self.definition.routes.iter();
        let mut senders = routes.filter(|route| route.contracts.iter().any(acts));
        let sender = &senders.next()?.from;
        let is_alone = senders.all(|route| route.from == *sender);
        self.agent(sender).filter(|_| is_alone).map(|a| &a.id)
    }

    /// The limits on rounds, by name, that count another attempt at a contract of this type.
    pub fn attempt_rounds<'a>(
        &'a self,
        kind: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a RoundLimit)> {
        let limits = self.definition.limits.iter();
        let rounds = limits.flat_map(|limits| &limits.rounds);
        rounds.filter(move |(_, round)| round.attempts && round.contracts.iter().any(|c| c == kind))
    }

    /// The policy for checks that have none of their own.
    pub fn usual_policy(&self, ledger: Policy) -> Policy {
        let rules = self.definition.evidence.as_ref();
        rules.and_then(|rules| rules.policy).unwrap_or(ledger)
    }

    /// The policy for a contradicted statement: the check's, else the protocol's, else the ledger's.
    pub fn policy(&self, check: Check, ledger: Policy) -> Policy {
        let rules = self.definition.evidence.as_ref();
        let own = rules.and_then(|rules| rules.checks.get(&check).copied());
        own.unwrap_or_else(|| self.usual_policy(ledger))
    }

    /// The rule that forbids a route, if there is one.
    pub fn forbidden(&self, from: &str, to: &str) -> Option<&Forbidden> {
        let mut forbidden = self.definition.routes.forbidden.iter();
        forbidden.find(|f| f.from == from && f.to.as_str() == to)
    }

    fn is_end(&self, name: &str) -> bool {
        self.is_kind(name, AgentKind::End)
    }

    /// The rank of a priority word, 0 being the most urgent; an unknown or missing word ranks in
    /// the middle.
    pub fn priority_rank(&self, word: Option<&str>) -> usize {
        let words = &self.definition.words.priorities;
        word.and_then(|w| words.iter().position(|p| p == w))
            .unwrap_or(words.len() / 2)
    }

    /// The outcome of the sender's handoff for a contract of this type with this status: the type's
    /// own meaning of the word, else the protocol's.
    pub fn outcome(&self, kind: &ContractType, status: Option<&str>) -> Outcome {
        let Some(word) = status else {
            return Outcome::Complete;
        };
        let own = kind.outcome.get(word).copied();
        own.unwrap_or_else(|| match self.definition.words.status.get(word) {
            Some(State::Failed | State::Dead) => Outcome::Fail,
            Some(State::Blocked) => Outcome::Block,
            _ => Outcome::Complete,
        })
    }
}

/// Parses the stored form; a fault has its place.
pub(crate) fn read(bytes: &[u8]) -> Result<Definition, Box<Finding>> {
    let definition = read_whole(bytes)?;
    if let Some(github) = &definition.github {
        let text = github.text();
        read_part::<Github>(text.as_bytes()).map_err(|mut finding| {
            finding.path.insert_str(0, "/github");
            let before = str::from_utf8(bytes).ok().and_then(|all| {
                let start = all.find(text)?;
                all.get(..start)
            });
            finding.line = finding.line.zip(before).map(|(line, before)| {
                let above = before.matches('\n').count();
                line + u32::try_from(above).unwrap_or_default()
            });
            finding
        })?;
    }
    Ok(definition)
}

/// Parses everything except the rules for GitHub's events.
fn read_whole(bytes: &[u8]) -> Result<Definition, Box<Finding>> {
    let mut definition: Definition = read_part(bytes).map_err(named)?;
    let types = definition.contracts.iter_mut();
    types.for_each(ContractType::name_files);
    Ok(definition)
}

/// The message for a value that is not an object where one is expected.
pub(crate) const NOT_AN_OBJECT: &str = "expected an object, in braces";

/// A serde message without the names of Rust types.
fn without_rust_types(said: &str) -> String {
    let wanted_object = |wanted: &str| wanted == "a map" || wanted.starts_with("struct ");
    match said.split_once(", expected ") {
        // serde accepts a list for an object, as the values of its members in order.
        Some((found, wanted)) if wanted_object(wanted) && found.starts_with("invalid length ") => {
            NOT_AN_OBJECT.to_owned()
        }
        Some((found, wanted)) if wanted_object(wanted) => format!("{found}, {NOT_AN_OBJECT}"),
        Some((found, wanted)) => {
            let wanted = match wanted {
                "a boolean" => "true or false",
                "a sequence" => "a list, in brackets",
                "a string" => "a text, in quotes",
                "f64" => "a number",
                "u32" | "u64" | "usize" => "a whole number of at least 0",
                _ if wanted.starts_with("tuple variant") => "a list of two terms",
                other => other,
            };
            format!("{found}, expected {wanted}")
        }
        // Of a text that is JSON, only a comparison has a fixed number of items.
        None if said == "trailing characters" => "a comparison has two terms".to_owned(),
        _ => said.to_owned(),
    }
}

/// The finding about a file that is not JSON, at its place.
pub fn not_json(code: FindingCode, path: &str, error: &serde_json::Error) -> Finding {
    let shown = error.to_string();
    let said = shown.split(" at line ").next().unwrap_or_default();
    let mut finding = Finding::error(code, path, format!("it is not JSON: {said}"));
    if error.line() > 0 {
        finding.line = u32::try_from(error.line()).ok();
        // At the end of the text, it counts from 0.
        finding.column = u32::try_from(error.column().max(1)).ok();
    }
    finding.fix(if said == "trailing comma" {
        "leave out the comma before this place"
    } else {
        "look at the commas, quotes and brackets up to this place"
    })
}

/// Parses a value; a fault has its place within the text.
fn read_part<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Box<Finding>> {
    let syntax = |pointer: String, error: &serde_json::Error| {
        let shown = error.to_string();
        let said = shown
            .rsplit_once(" at line ")
            .map_or(&*shown, |(said, _)| said);
        let said = without_rust_types(said);
        let mut finding = Finding::error(FindingCode::ProtocolSyntax, pointer, &*said);
        // serde's message quotes the unknown name, then the known ones.
        if said.starts_with("unknown ") {
            let mut names = said.split('`').skip(1).step_by(2);
            let name = names.next().unwrap_or_default();
            finding.fix = closest(name, names)
                .map(|known| format!("did you mean `{known}`?"))
                .or_else(|| {
                    let is_key = said.starts_with("unknown field");
                    Some(
                        if is_key {
                            "leave it out, or use one of these"
                        } else {
                            "use one of these"
                        }
                        .to_owned(),
                    )
                });
        } else if let Some(name) = said.strip_prefix("missing field ") {
            finding.fix = Some(format!("add {name} here"));
        } else if said.contains(": string \"") && said.ends_with(" number of at least 0") {
            finding.fix = Some("write it without the quotes".to_owned());
        }
        if error.line() > 0 {
            finding.line = u32::try_from(error.line()).ok();
            finding.column = u32::try_from(error.column()).ok();
        }
        Box::new(finding)
    };
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    // Determining the path is slow, so it is done only after a fault.
    let whole: Result<Value, _> = serde_json::from_slice(bytes);
    whole.map_err(|e| Box::new(not_json(FindingCode::ProtocolSyntax, "protocol.json", &e)))?;
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let pointer = error
            .path()
            .iter()
            .fold(String::new(), |at, segment| match segment {
                Segment::Seq { index } => format!("{at}/{index}"),
                Segment::Map { key } => {
                    format!("{at}/{}", escaped_part(key))
                }
                Segment::Enum { .. } | Segment::Unknown => at,
            });
        syntax(pointer, error.inner())
    })
}
