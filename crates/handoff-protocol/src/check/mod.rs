//! Checks whether the parts of a definition fit together.
//!
//! [`faults`] runs all checks; those of one subject are in a separate file next to it. The
//! definition does not depend on them.

mod alerts;
mod attention;
mod budgets;
mod checker;
mod consistency;
mod evidence;
mod findings;
mod github;
mod opinions;
mod reachability;
mod requirement;
mod time;
mod traces;

use std::collections::BTreeSet;

use checker::Checker;
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::pointer::escaped_part;
use handoff_base::text::{marked, quoted};

use crate::definition::{AgentKind, ContractType, Definition, FactRule, Fields, Route, Style};

/// The format of `protocol.json` that this program reads.
const FORMAT: u32 = 1;

/// The longest version, in characters. It appears in commit messages.
const VERSION: usize = 64;

/// The formats that contracts may have.
const FORMATS: [&str; 3] = ["xml", "json", "md"];

/// Checks a definition; each finding names its place as a JSON Pointer.
pub(crate) fn faults(definition: &Definition) -> Vec<Finding> {
    let mut checker = Checker::new(definition);
    checker.formats();
    checker.fields();
    checker.agents_and_words();
    checker.contracts();
    checker.routes();
    checker.undecidable();
    checker.unreachable();
    checker.forbidden();
    checker.facts();
    checker.traces();
    checker.rules();
    checker.time_and_failure();
    checker.budgets();
    checker.attention();
    checker.evidence();
    checker.consistency();
    checker.findings_and_answers();
    checker.exclusive();
    checker.requirements();
    checker.alerts();
    checker.opinions();
    checker.github();
    checker.found
}

impl Checker<'_> {
    fn formats(&mut self) {
        let definition = self.definition;
        if definition.format != FORMAT {
            let text = format!(
                "form {} of protocol.json is not known; this program reads {FORMAT}",
                definition.format
            );
            self.fault(FindingCode::ProtocolFormat, "/format", text);
        }
        if !is_version(&definition.version) {
            let text = format!(
                "{} cannot be a version: 1 to {VERSION} letters, digits, `.`, `-`, `_` and `+`",
                quoted(&definition.version)
            );
            self.fault(FindingCode::ProtocolVersion, "/version", text);
        }
        if definition.title.trim().is_empty() || !is_one_line(&definition.title) {
            let text = "the title is one line that says what the protocol is for";
            self.fault(FindingCode::ProtocolTitle, "/title", text);
        }
        self.lines();
        if definition.formats.is_empty() {
            let text = format!(
                "there is no format that a contract may have; use {}",
                FORMATS.join(", ")
            );
            self.fault(FindingCode::ProtocolFormat, "/formats", text);
        }
        for (i, format) in definition.formats.iter().enumerate() {
            if !FORMATS.contains(&format.as_str()) {
                let text = format!(
                    "`{format}` is not a contract format; use {}",
                    FORMATS.join(", ")
                );
                self.fault(FindingCode::ProtocolFormat, format!("/formats/{i}"), text);
            }
        }
    }

    /// Views show titles and roles beside their own words.
    fn lines(&mut self) {
        let definition = self.definition;
        let agents = definition.agents.iter().enumerate();
        let roles = agents.map(|(i, agent)| (format!("/agents/{i}/role"), &agent.role));
        let contracts = definition.contracts.iter().enumerate();
        let titles = contracts.map(|(i, one)| (format!("/contracts/{i}/title"), &one.title));
        let documents = definition.documents.iter();
        let documents =
            documents.map(|(name, one)| (format!("/documents/{name}/title"), &one.title));
        for (path, _) in roles
            .chain(titles)
            .chain(documents)
            .filter(|(_, text)| !is_one_line(text))
        {
            let text = "titles and roles are one line, without invisible characters";
            self.fault(FindingCode::ProtocolTitle, path, text);
        }
    }

    fn fields(&mut self) {
        self.pointers("/fields", &self.definition.fields);
        for (i, contract) in self.definition.contracts.iter().enumerate() {
            self.pointers(&format!("/contracts/{i}/fields"), &contract.fields);
            let has = |field: fn(&Fields) -> &Option<String>| {
                field(&contract.fields).is_some() || field(&self.definition.fields).is_some()
            };
            let implied = contract.implied_from.is_some() && contract.implied_to.is_some();
            for (key, missing) in [
                ("from", !has(|f| &f.from) && !contract.note && !implied),
                ("to", !has(|f| &f.to) && contract.travels() && !implied),
            ] {
                if missing {
                    let text = format!("nothing says where `{}` has its `{key}`", contract.name);
                    self.fault(
                        FindingCode::ProtocolField,
                        format!("/contracts/{i}/fields/{key}"),
                        text,
                    );
                }
            }
        }
    }

    fn pointers(&mut self, at: &str, fields: &Fields) {
        for (key, pointer) in fields.given() {
            // The key of a new issue may be a fixed name.
            if key != "new_issue" || pointer.starts_with('/') {
                self.pointer(format!("{at}/{key}"), pointer);
            } else if pointer.parse::<IssueKey>().is_err() {
                let text = format!("`{pointer}` is neither a JSON Pointer nor an issue key");
                self.fault(FindingCode::ProtocolPointer, format!("{at}/{key}"), text);
            }
        }
    }

    fn agents_and_words(&mut self) {
        let definition = self.definition;
        let mut seen = BTreeSet::new();
        for (i, agent) in definition.agents.iter().enumerate() {
            if !seen.insert(agent.id.as_str()) {
                let text = format!("agent `{}` is defined twice", agent.id);
                self.fault(
                    FindingCode::ProtocolDuplicate,
                    format!("/agents/{i}/id"),
                    text,
                );
            }
            for (j, alias) in agent.aliases.iter().enumerate() {
                if !seen.insert(alias) {
                    let text = format!("`{alias}` is another agent's name already");
                    self.fault(
                        FindingCode::ProtocolDuplicate,
                        format!("/agents/{i}/aliases/{j}"),
                        text,
                    );
                }
            }
            let allowed: BTreeSet<&String> = agent.allowed.iter().collect();
            for (j, action) in agent.forbidden.iter().enumerate() {
                if allowed.contains(action) {
                    let text = format!("`{action}` is both allowed and forbidden");
                    self.fault(
                        FindingCode::ProtocolAction,
                        format!("/agents/{i}/forbidden/{j}"),
                        text,
                    );
                }
            }
        }
        let mut seen = BTreeSet::new();
        for (i, word) in definition.words.priorities.iter().enumerate() {
            if !seen.insert(word) {
                let text = format!("priority `{word}` is listed twice");
                self.fault(
                    FindingCode::ProtocolDuplicate,
                    format!("/words/priorities/{i}"),
                    text,
                );
            }
        }
    }

    fn contracts(&mut self) {
        let definition = self.definition;
        let mut seen = BTreeSet::new();
        for (i, contract) in definition.contracts.iter().enumerate() {
            let at = |key: &str| format!("/contracts/{i}/{key}");
            if !seen.insert(&contract.name) {
                let text = format!("contract type `{}` is defined twice", contract.name);
                self.fault(FindingCode::ProtocolDuplicate, at("type"), text);
            }
            if !is_name(&contract.root) {
                let text = format!("`{}` cannot be a root element", contract.root);
                self.fault(FindingCode::ProtocolRoot, at("root"), text);
            }
            for place in contract.places() {
                // An empty one is the entry itself.
                if !place.is_in_entry() || !place.pointer.is_empty() {
                    self.pointer(at(&place.at), place.pointer);
                }
            }
            for (key, file) in [
                ("schema", Some(&contract.schema)),
                ("template", Some(&contract.template)),
                ("xsd", contract.xsd.as_ref()),
            ] {
                if let Some(file) = file.filter(|f| !is_plain_path(f)) {
                    let text = format!("`{file}` is not a plain relative path");
                    self.fault(FindingCode::ProtocolPath, at(key), text);
                }
            }
            for (key, name) in [
                ("implied_from", &contract.implied_from),
                ("implied_to", &contract.implied_to),
            ] {
                if let Some(name) = name {
                    self.known_agent(at(key), name.as_str());
                }
            }
            self.contract_rules(i, contract);
            for word in contract.outcome.keys() {
                if !definition.words.status.contains_key(word) {
                    let text = format!("`{word}` is not a word in `status`");
                    self.fault(FindingCode::ProtocolUnknownStatus, at("outcome"), text);
                }
            }
        }
    }

    fn routes(&mut self) {
        let definition = self.definition;
        let mut written = BTreeSet::new();
        for route in &definition.routes {
            let at = &route.at;
            if route.from != "*" {
                self.known_agent(at.from.clone(), &route.from);
            }
            self.known_agent(at.to.clone(), route.to.as_str());
            if route
                .via
                .as_ref()
                .is_some_and(|via| *via == route.to || via.as_str() == route.from)
            {
                let via = route.via.iter().map(AgentName::as_str).collect::<String>();
                let text = format!("`{via}` is a party of the route already");
                self.fault(
                    FindingCode::ProtocolRoute,
                    format!("{}/via", at.route),
                    text,
                );
            }
            if self.is_end(&route.from) {
                let text = format!("`{}` is the end, and sends nothing", route.from);
                self.fault(FindingCode::ProtocolRoute, &at.from, text);
            }
            if written.insert(&at.route) {
                self.route(route);
            }
        }
        if !definition.routes.iter().any(|route| route.opens) {
            let text = "no route opens an issue, so that none can begin";
            self.fault(FindingCode::ProtocolRoute, "/routes", text);
        }
    }

    /// What all routes of one entry have.
    fn route(&mut self, route: &Route) {
        let at = &route.at.route;
        if let Some(via) = &route.via {
            self.known_agent(format!("{at}/via"), via.as_str());
        }
        if route.contracts.is_empty() {
            let text = "no contract type travels this route";
            self.fault(FindingCode::ProtocolRoute, format!("{at}/contracts"), text);
        }
        for (j, name) in route.contracts.iter().enumerate() {
            self.known_type(format!("{at}/contracts/{j}"), name);
            let mut types = self.definition.contracts.iter();
            if types.any(|c| c.name == *name && !c.travels()) {
                let text = format!("`{name}` is an answer or a note, which needs no route");
                let at = format!("{at}/contracts/{j}");
                self.fault(FindingCode::ProtocolRoute, at, text);
            }
        }
        let at = format!("{at}/acknowledge_seconds");
        self.time(&at, route.acknowledge_seconds, 1);
    }

    fn is_end(&self, name: &str) -> bool {
        let named = self
            .definition
            .agents
            .iter()
            .find(|a| a.id.as_str() == name);
        named.is_some_and(|agent| agent.kind == AgentKind::End)
    }

    fn forbidden(&mut self) {
        let definition = self.definition;
        for forbidden in &definition.routes.forbidden {
            let (from, to, at) = (&*forbidden.from, forbidden.to.as_str(), &forbidden.at);
            self.known_agent(at.from.clone(), from);
            self.known_agent(at.to.clone(), to);
            if forbidden.reason.trim().is_empty() {
                let text = "there is no reason to show";
                let at = format!("{}/forbidden", at.route);
                self.fault(FindingCode::ProtocolRoute, at, text);
            }
            let goes = |route: &Route| {
                route.to.as_str() == to && (route.from == from || (route.from == "*" && from != to))
            };
            if definition.routes.iter().any(goes) {
                let text = format!("a route goes from {from} to {to}");
                self.fault(FindingCode::ProtocolRoute, &at.route, text);
            }
        }
    }

    fn facts(&mut self) {
        for (name, fact) in &self.definition.facts {
            let rule = &fact.rule;
            let at = format!("/facts/{}", escaped_part(name));
            let (types, pointers) = (rule.types(), rule.pointers());
            for (key, list) in types.iter().chain(&pointers) {
                if list.is_empty() {
                    let text = "nothing is gathered from an empty list";
                    self.fault(FindingCode::ProtocolFact, format!("{at}/{key}"), text);
                }
            }
            if let Some((key, list)) = types {
                for (i, entry) in list.iter().enumerate() {
                    // A type that is missing from `newest` is a warning.
                    if matches!(rule, FactRule::Count(_)) {
                        self.known_type(format!("{at}/{key}/{i}"), entry);
                    }
                }
            }
            if let Some((key, list)) = pointers {
                for (i, entry) in list.iter().enumerate() {
                    self.pointer(format!("{at}/{key}/{i}"), entry);
                }
            }
        }
    }

    /// Checks the lists of a contract type: its formats, what it answers, its examples.
    fn contract_lists(&mut self, i: usize, contract: &ContractType) {
        for (j, format) in contract.formats.iter().enumerate() {
            if !self.definition.formats.contains(format) {
                let text = format!("`{format}` is not a format that the protocol has");
                self.fault(
                    FindingCode::ProtocolFormat,
                    format!("/contracts/{i}/formats/{j}"),
                    text,
                );
            }
        }
        for (j, answered) in contract.answers.iter().enumerate() {
            self.known_type(format!("/contracts/{i}/answers/{j}"), answered);
            let mut types = self.definition.contracts.iter();
            if types.any(|c| c.name == *answered && !c.travels()) {
                let text = format!("`{answered}` is an answer or a note, and asks nothing");
                self.fault(
                    FindingCode::ProtocolAnswer,
                    format!("/contracts/{i}/answers/{j}"),
                    text,
                );
            }
        }
        for (j, digest) in contract.examples.iter().enumerate() {
            let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            if digest.len() != 64 || !digest.bytes().all(is_digit) {
                let text =
                    "an example is named by its SHA-256: 64 hexadecimal digits in lower case";
                let at = format!("/contracts/{i}/examples/{j}");
                self.fault(FindingCode::ProtocolExample, at, text);
            }
        }
    }

    fn contract_rules(&mut self, i: usize, contract: &ContractType) {
        let at = |key: &str| format!("/contracts/{i}/{key}");
        self.contract_lists(i, contract);
        for (pointer, words) in &contract.when {
            if words.texts().is_empty() {
                let text = format!("no text at `{pointer}` would do");
                self.fault(FindingCode::ProtocolWhen, at("when"), text);
            }
        }
        if let Some(failure) = &contract.failure
            && !failure.code.starts_with('/')
            && !self.definition.words.errors.is_empty()
            && !self.definition.words.errors.contains_key(&failure.code)
        {
            let text = format!("`{}` is not a code in `errors`", failure.code);
            self.fault(FindingCode::ProtocolErrorCode, at("failure"), text);
        }
        if let Some(tasks) = &contract.tasks {
            let text = match (&tasks.opens, &tasks.completes) {
                _ if self.definition.style() == Style::Call => {
                    Some("only a protocol without `answers` has tasks")
                }
                (Some(_), Some(_)) => Some("a contract opens tasks or completes one, not both"),
                (None, None) => Some("a contract with tasks opens or completes some"),
                _ => None,
            };
            if let Some(text) = text {
                self.fault(FindingCode::ProtocolTasks, at("tasks"), text);
            }
        }
        if contract.note && !contract.answers.is_empty() {
            let text = "a note answers nothing";
            self.fault(FindingCode::ProtocolNote, at("note"), text);
        }
        if contract.foreign.is_some() && !contract.note {
            let text = "what a file of another system says is a note";
            self.fault(FindingCode::ProtocolNote, at("foreign"), text);
        }
        for word in contract
            .after
            .values()
            .flat_map(|rule| rule.values().flatten())
        {
            if !self.definition.words.status.contains_key(word) {
                let text = format!("`{word}` is not a word in `status`");
                self.fault(FindingCode::ProtocolUnknownStatus, at("after"), text);
            }
        }
        if contract.actions.is_some() && self.lead().is_none() {
            let text = "no agent is of the kind to whom work goes after a violation";
            self.fault(FindingCode::ProtocolAction, at("actions"), text);
        }
    }

    fn lead(&self) -> Option<&AgentName> {
        let mut agents = self.definition.agents.iter();
        agents
            .find(|a| a.kind == AgentKind::Orchestrator)
            .map(|a| &a.id)
    }

    /// Checks the rules of the protocol as a whole.
    fn rules(&mut self) {
        let definition = self.definition;
        for (name, document) in &definition.documents {
            if !is_plain_path(&document.schema) {
                let text = format!("`{}` is not a plain relative path", document.schema);
                self.fault(
                    FindingCode::ProtocolPath,
                    format!("/documents/{name}/schema"),
                    text,
                );
            }
        }
        for (profile, imports) in &definition.imports {
            for (kind, imported) in &imports.contracts {
                let at = format!("/imports/{profile}/contracts/{kind}");
                self.known_type(at.clone(), kind);
                let times = [("at", &imported.at), ("claimed_at", &imported.claimed_at)];
                for (name, pointer) in times {
                    if let Some(pointer) = pointer {
                        self.pointer(format!("{at}/{name}"), pointer);
                    }
                }
                for (i, pointer) in imported.unknown.iter().enumerate() {
                    self.pointer(format!("{at}/unknown/{i}"), pointer);
                }
            }
        }
        let loops = definition.limits.as_ref().and_then(|l| l.loops.as_ref());
        if loops.is_some() && definition.style() == Style::Relay {
            let text = "only a protocol with `answers` has requests that wait";
            self.fault(FindingCode::ProtocolLoops, "/limits/loops", text);
        }
    }
}

/// Whether a text is one line of which every character can be seen.
fn is_one_line(text: &str) -> bool {
    !marked(text).any(|(_, _, hidden)| hidden)
}

fn is_version(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._+-".contains(&b);
    !text.is_empty() && text.len() <= VERSION && text.bytes().all(fits)
}

fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(first)
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// Whether a path stays inside the protocol's folder.
fn is_plain_path(path: &str) -> bool {
    path.split('/').all(|part| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    })
}
