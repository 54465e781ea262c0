//! Every way in which the parts of a definition do not fit together.

use std::collections::BTreeSet;

use super::definition::{AgentKind, ContractType, Definition, FactRule, Route};
use crate::finding::Finding;

/// The form of `protocol.json` that this program reads.
const FORMAT: u32 = 1;

/// Checks a definition; each finding names its place as a JSON Pointer.
pub(super) fn faults(definition: &Definition) -> Vec<Finding> {
    let mut checker = Checker {
        definition,
        agents: definition.agents.iter().map(|a| a.id.as_str()).collect(),
        types: definition.contracts.iter().map(|c| &*c.name).collect(),
        found: Vec::new(),
    };
    checker.formats();
    checker.fields();
    checker.agents_and_words();
    checker.contracts();
    checker.routes();
    checker.undecidable();
    checker.forbidden();
    checker.facts();
    checker.found
}

struct Checker<'d> {
    definition: &'d Definition,
    agents: BTreeSet<&'d str>,
    types: BTreeSet<&'d str>,
    found: Vec<Finding>,
}

impl Checker<'_> {
    fn fault(&mut self, code: &'static str, path: impl Into<String>, message: impl Into<String>) {
        self.found.push(Finding::error(code, path, message));
    }

    fn known_agent(&mut self, path: String, name: &str) {
        if !self.agents.contains(name) {
            let text = format!("no agent is called `{name}`");
            self.fault("protocol.unknown_agent", path, text);
        }
    }

    fn known_type(&mut self, path: String, name: &str) {
        if !self.types.contains(name) {
            let text = format!("no contract type is called `{name}`");
            self.fault("protocol.unknown_type", path, text);
        }
    }

    fn pointer(&mut self, path: String, pointer: &str) {
        if !is_pointer(pointer) {
            let text = format!("`{pointer}` is not a JSON Pointer to a field, such as /from");
            self.fault("protocol.pointer", path, text);
        }
    }

    fn formats(&mut self) {
        let definition = self.definition;
        if definition.format != FORMAT {
            let text = format!(
                "form {} of protocol.json is not known; this program reads {FORMAT}",
                definition.format
            );
            self.fault("protocol.format", "/format", text);
        }
        if definition.formats.is_empty() {
            let text = "there is no format that a contract may have; use xml or json";
            self.fault("protocol.format", "/formats", text);
        }
        for (i, format) in definition.formats.iter().enumerate() {
            if format != "xml" && format != "json" {
                let text = format!("`{format}` is not a contract format; use xml or json");
                self.fault("protocol.format", format!("/formats/{i}"), text);
            }
        }
    }

    fn fields(&mut self) {
        let fields = &self.definition.fields;
        let optional = [
            ("status", &fields.status),
            ("at", &fields.at),
            ("priority", &fields.priority),
            ("summary", &fields.summary),
            ("branch", &fields.branch),
        ];
        let required = [
            ("issue", &fields.issue),
            ("from", &fields.from),
            ("to", &fields.to),
        ];
        let given = optional
            .into_iter()
            .filter_map(|(key, pointer)| Some((key, pointer.as_ref()?)));
        for (key, pointer) in required.into_iter().chain(given) {
            self.pointer(format!("/fields/{key}"), pointer);
        }
    }

    fn agents_and_words(&mut self) {
        let definition = self.definition;
        let mut seen = BTreeSet::new();
        for (i, agent) in definition.agents.iter().enumerate() {
            if !seen.insert(agent.id.as_str()) {
                let text = format!("agent `{}` is defined twice", agent.id);
                self.fault("protocol.duplicate", format!("/agents/{i}/id"), text);
            }
        }
        let mut seen = BTreeSet::new();
        for (i, word) in definition.priorities.iter().enumerate() {
            if !seen.insert(word) {
                let text = format!("priority `{word}` is listed twice");
                self.fault("protocol.duplicate", format!("/priorities/{i}"), text);
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
                self.fault("protocol.duplicate", at("type"), text);
            }
            if !is_name(&contract.root) {
                let text = format!("`{}` cannot be a root element", contract.root);
                self.fault("protocol.root", at("root"), text);
            }
            for pointer in contract.when.keys() {
                self.pointer(at("when"), pointer);
            }
            if let Some(pointer) = &contract.summary {
                self.pointer(at("summary"), pointer);
            }
            if let Some(failure) = &contract.failure {
                let optional = [
                    &failure.details,
                    &failure.recoverable,
                    &failure.suggested_action,
                ];
                let pointers = [&failure.code, &failure.message].into_iter();
                for pointer in pointers.chain(optional.into_iter().flatten()) {
                    self.pointer(at("failure"), pointer);
                }
            }
            for (key, file) in [
                ("schema", Some(&contract.schema)),
                ("template", Some(&contract.template)),
                ("xsd", contract.xsd.as_ref()),
            ] {
                if let Some(file) = file.filter(|f| !is_plain_path(f)) {
                    let text = format!("`{file}` is not a plain relative path");
                    self.fault("protocol.path", at(key), text);
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
            for word in contract.outcome.keys() {
                if !definition.status.contains_key(word) {
                    let text = format!("`{word}` is not a word in `status`");
                    self.fault("protocol.unknown_status", at("outcome"), text);
                }
            }
        }
    }

    fn routes(&mut self) {
        let definition = self.definition;
        for (i, route) in definition.routes.iter().enumerate() {
            if route.from != "*" {
                self.known_agent(format!("/routes/{i}/from"), &route.from);
            }
            self.known_agent(format!("/routes/{i}/to"), route.to.as_str());
            if self.is_end(&route.from) {
                let text = format!("`{}` is the end, and sends nothing", route.from);
                self.fault("protocol.route", format!("/routes/{i}/from"), text);
            }
            if route.contracts.is_empty() {
                let text = "no contract type travels this route";
                self.fault("protocol.route", format!("/routes/{i}/contracts"), text);
            }
            for (j, name) in route.contracts.iter().enumerate() {
                self.known_type(format!("/routes/{i}/contracts/{j}"), name);
            }
        }
        if !definition.routes.iter().any(|route| route.opens) {
            let text = "no route opens an issue, so that none can begin";
            self.fault("protocol.route", "/routes", text);
        }
    }

    fn is_end(&self, name: &str) -> bool {
        let named = self
            .definition
            .agents
            .iter()
            .find(|a| a.id.as_str() == name);
        named.is_some_and(|agent| agent.kind == AgentKind::End)
    }

    /// Types between the same agents that no field tells apart.
    fn undecidable(&mut self) {
        let definition = self.definition;
        let mut pairs = BTreeSet::new();
        for to in &definition.agents {
            for from in &definition.agents {
                let goes = |route: &&Route| {
                    route.to == to.id
                        && (route.from == from.id.as_str()
                            || (route.from == "*" && from.id != to.id))
                };
                let travel: BTreeSet<usize> = definition
                    .routes
                    .iter()
                    .filter(goes)
                    .flat_map(|route| &route.contracts)
                    .filter_map(|name| definition.contracts.iter().position(|c| c.name == *name))
                    .collect();
                for &a in &travel {
                    for &b in travel.range(a + 1..) {
                        let (one, other) = (&definition.contracts[a], &definition.contracts[b]);
                        // Only XML always shows its root.
                        let by_root = definition.formats == ["xml"] && one.root != other.root;
                        if !by_root && alike(one, other) {
                            pairs.insert((b, a));
                        }
                    }
                }
            }
        }
        for (b, a) in pairs {
            let (first, second) = (&definition.contracts[a].name, &definition.contracts[b].name);
            let text = format!(
                "`{first}` and `{second}` travel between the same agents, and no field in `when` tells them apart"
            );
            self.fault("protocol.ambiguous", format!("/contracts/{b}/when"), text);
        }
    }

    fn forbidden(&mut self) {
        let definition = self.definition;
        for (i, forbidden) in definition.forbidden.iter().enumerate() {
            let (from, to) = (forbidden.from.as_str(), forbidden.to.as_str());
            self.known_agent(format!("/forbidden/{i}/from"), from);
            self.known_agent(format!("/forbidden/{i}/to"), to);
            let goes = |route: &Route| {
                route.to.as_str() == to && (route.from == from || (route.from == "*" && from != to))
            };
            if definition.routes.iter().any(goes) {
                let text = format!("a route goes from {from} to {to}");
                self.fault("protocol.route", format!("/forbidden/{i}"), text);
            }
        }
    }

    fn facts(&mut self) {
        for (name, rule) in &self.definition.facts {
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let (key, list) = match rule {
                FactRule::Last(list) => ("last", list),
                FactRule::Sum(list) => ("sum", list),
                FactRule::Count(list) => ("count", list),
            };
            let at = format!("/facts/{escaped}/{key}");
            if list.is_empty() {
                let text = "nothing is gathered from an empty list";
                self.fault("protocol.fact", at.clone(), text);
            }
            for (i, entry) in list.iter().enumerate() {
                let at = format!("{at}/{i}");
                if key == "count" {
                    self.known_type(at, entry);
                } else {
                    self.pointer(at, entry);
                }
            }
        }
    }
}

/// Says whether no field that both types discriminate by has another text in each.
fn alike(a: &ContractType, b: &ContractType) -> bool {
    !a.when
        .iter()
        .any(|(pointer, text)| b.when.get(pointer).is_some_and(|other| other != text))
}

fn is_pointer(text: &str) -> bool {
    let escapes = text.split('~').skip(1);
    text.len() > 1 && text.starts_with('/') && { escapes }.all(|rest| rest.starts_with(['0', '1']))
}

fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(first)
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// Says whether a file named in a protocol stays inside the protocol's folder.
fn is_plain_path(path: &str) -> bool {
    path.split('/').all(|part| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    })
}
