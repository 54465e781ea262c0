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

use std::collections::{BTreeMap, BTreeSet};

use checker::{Checker, placed};
use handoff_base::finding::{Finding, FindingCode as Code};
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::pointer::escaped_part;
use handoff_base::text::{marked, quoted};

use crate::definition::{AgentKind, ContractType, Definition, FactRule, Fields, Route, Style};

/// The format of `protocol.json` that this program reads.
const FORMAT: u32 = 1;

/// The maximum length of a version, in characters: commit messages contain it.
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
            self.fault(Code::ProtocolFormat, "/format", text);
        }
        if !is_version(&definition.version) {
            let text = format!(
                "{} cannot be a version: 1 to {VERSION} letters, digits, `.`, `-`, `_` and `+`",
                quoted(&definition.version)
            );
            self.fault(Code::ProtocolVersion, "/version", text);
        }
        if definition.title.trim().is_empty() || !is_one_line(&definition.title) {
            let text = "the title is one line that says what the protocol is for";
            self.fault(Code::ProtocolTitle, "/title", text);
        }
        self.lines();
        if definition.formats.is_empty() {
            let text = format!(
                "there is no format that a contract may have; use {}",
                FORMATS.join(", ")
            );
            self.fault(Code::ProtocolFormat, "/formats", text);
        }
        let code = Code::ProtocolFormat;
        self.each("/formats", &definition.formats, code, |format| {
            let known = FORMATS.join(", ");
            let is_known = FORMATS.contains(&format.as_str());
            (!is_known).then(|| format!("`{format}` is not a contract format; use {known}"))
        });
    }

    /// Checks that titles and roles are one visible line each, because views show them in tables.
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
            self.fault(Code::ProtocolTitle, path, text);
        }
    }

    fn fields(&mut self) {
        self.envelope("/fields", &self.definition.fields);
        for (i, contract) in self.definition.contracts.iter().enumerate() {
            self.envelope(&format!("/contracts/{i}/fields"), &contract.fields);
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
                        Code::ProtocolField,
                        format!("/contracts/{i}/fields/{key}"),
                        text,
                    );
                }
            }
        }
    }

    fn envelope(&mut self, at: &str, fields: &Fields) {
        for (key, pointer) in fields.given() {
            // `new_issue` may be an issue key instead of a pointer.
            if key != "new_issue" || pointer.starts_with('/') {
                self.pointer(format!("{at}/{key}"), pointer);
            } else if pointer.parse::<IssueKey>().is_err() {
                let text = format!("`{pointer}` is neither a JSON Pointer nor an issue key");
                self.fault(Code::ProtocolPointer, format!("{at}/{key}"), text);
            }
        }
    }

    fn agents_and_words(&mut self) {
        let definition = self.definition;
        let mut seen = BTreeSet::new();
        for (i, agent) in definition.agents.iter().enumerate() {
            if !seen.insert(agent.id.as_str()) {
                let text = format!("`{}` is another agent's name or alias already", agent.id);
                self.fault(Code::ProtocolDuplicate, format!("/agents/{i}/id"), text);
            }
            let (at, code) = (format!("/agents/{i}/aliases"), Code::ProtocolDuplicate);
            self.each(&at, &agent.aliases, code, |alias| {
                let is_taken = !seen.insert(alias);
                is_taken.then(|| format!("`{alias}` is another agent's name already"))
            });
            let at = format!("/agents/{i}/forbidden");
            self.each(&at, &agent.forbidden, Code::ProtocolAction, |action| {
                let is_allowed = agent.allowed.contains(action);
                is_allowed.then(|| format!("`{action}` is both allowed and forbidden"))
            });
        }
        let mut seen = BTreeSet::new();
        let (words, code) = (&definition.words.priorities, Code::ProtocolDuplicate);
        self.each("/words/priorities", words, code, |word| {
            (!seen.insert(word)).then(|| format!("priority `{word}` is listed twice"))
        });
    }

    fn contracts(&mut self) {
        let definition = self.definition;
        let mut seen = BTreeSet::new();
        for (i, contract) in definition.contracts.iter().enumerate() {
            let at = |key: &str| format!("/contracts/{i}/{key}");
            if !seen.insert(&contract.name) {
                let text = format!("contract type `{}` is defined twice", contract.name);
                self.fault(Code::ProtocolDuplicate, at("type"), text);
            }
            if !is_name(&contract.root) {
                let text = format!("`{}` cannot be a root element", contract.root);
                self.fault(Code::ProtocolRoot, at("root"), text);
            }
            for place in contract.places() {
                // The empty pointer is the entry itself.
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
                    self.fault(Code::ProtocolPath, at(key), text);
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
            self.known_status(contract.outcome.keys().map(|word| (at("outcome"), word)));
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
            let is_party = |via: &&AgentName| **via == route.to || via.as_str() == route.from;
            if let Some(via) = route.via.as_ref().filter(is_party) {
                let text = format!("`{via}` is a party of the route already");
                self.fault(Code::ProtocolRoute, format!("{}/via", at.route), text);
            }
            if self.is_end(&route.from) {
                let text = format!("`{}` is the end, and sends nothing", route.from);
                self.fault(Code::ProtocolRoute, &at.from, text);
            }
            if written.insert(&at.route) {
                self.route(route);
            }
        }
        if !definition.routes.iter().any(|route| route.opens) {
            let text = "no route opens an issue, so that none can begin";
            let finding = Finding::error(Code::ProtocolRoute, "/routes", text);
            self.found.push(
                finding.fix("add `\"opens\": true` to the route of an issue's first contract"),
            );
        }
    }

    /// Checks the keys that all routes of one entry share.
    fn route(&mut self, route: &Route) {
        let at = &route.at.route;
        if let Some(via) = &route.via {
            self.known_agent(format!("{at}/via"), via.as_str());
        }
        if route.contracts.is_empty() {
            let text = "no contract type travels this route";
            self.fault(Code::ProtocolRoute, format!("{at}/contracts"), text);
        }
        let (at_types, definition) = (format!("{at}/contracts"), self.definition);
        self.known_types(&at_types, &route.contracts);
        self.each(&at_types, &route.contracts, Code::ProtocolRoute, |name| {
            let mut types = definition.contracts.iter();
            let goes_back = types.any(|kind| kind.name == *name && !kind.travels());
            goes_back.then(|| format!("`{name}` is an answer or a note, which needs no route"))
        });
        let at = format!("{at}/acknowledge_seconds");
        self.time(&at, route.acknowledge_seconds, 1);
    }

    fn is_end(&self, name: &str) -> bool {
        let mut agents = self.definition.agents.iter();
        agents.any(|agent| agent.id.as_str() == name && agent.kind == AgentKind::End)
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
                self.fault(Code::ProtocolRoute, at, text);
            }
            let goes = |route: &Route| {
                route.to.as_str() == to && (route.from == from || (route.from == "*" && from != to))
            };
            if definition.routes.iter().any(goes) {
                let text = format!("a route goes from {from} to {to}");
                self.fault(Code::ProtocolRoute, &at.route, text);
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
                    self.fault(Code::ProtocolFact, format!("{at}/{key}"), text);
                }
            }
            if let Some((key, list)) = types {
                // In `newest`, a type that is not defined is only a warning.
                if matches!(rule, FactRule::Count(_)) {
                    self.known_types(&format!("{at}/{key}"), list);
                }
            }
            if let Some((key, list)) = pointers {
                let pointers = placed(format!("{at}/{key}"), list);
                pointers.for_each(|(at, pointer)| self.pointer(at, pointer));
            }
        }
    }

    /// Checks the lists of a contract type: its formats, what it answers, its examples.
    fn contract_lists(&mut self, i: usize, contract: &ContractType) {
        let definition = self.definition;
        let at = |key: &str| format!("/contracts/{i}/{key}");
        let (formats, code) = (&contract.formats, Code::ProtocolFormat);
        self.each(&at("formats"), formats, code, |format| {
            let is_known = definition.formats.contains(format);
            (!is_known).then(|| format!("`{format}` is not a format that the protocol has"))
        });
        self.known_types(&at("answers"), &contract.answers);
        let (answers, code) = (&contract.answers, Code::ProtocolAnswer);
        self.each(&at("answers"), answers, code, |answered| {
            let mut types = definition.contracts.iter();
            let asks = !types.any(|kind| kind.name == *answered && !kind.travels());
            (!asks).then(|| format!("`{answered}` is an answer or a note, and asks nothing"))
        });
        let (examples, code) = (&contract.examples, Code::ProtocolExample);
        self.each(&at("examples"), examples, code, |digest| {
            let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            let is_digest = digest.len() == 64 && digest.bytes().all(is_digit);
            let text = "an example is named by its SHA-256: 64 hexadecimal digits in lower case";
            (!is_digest).then(|| text.to_owned())
        });
    }

    fn contract_rules(&mut self, i: usize, contract: &ContractType) {
        let at = |key: &str| format!("/contracts/{i}/{key}");
        self.contract_lists(i, contract);
        for (pointer, words) in &contract.when {
            if words.texts().is_empty() {
                let text = format!("`when` accepts no text at `{pointer}`");
                self.fault(Code::ProtocolWhen, at("when"), text);
            }
        }
        let code = contract.failure.as_ref().map(|failure| &failure.code);
        if let Some(code) = code.filter(|code| !code.starts_with('/')) {
            self.known_code(at("failure"), code);
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
                self.fault(Code::ProtocolTasks, at("tasks"), text);
            }
        }
        if contract.note && !contract.answers.is_empty() {
            let text = "a note answers nothing";
            self.fault(Code::ProtocolNote, at("note"), text);
        }
        if contract.foreign.is_some() && !contract.note {
            let text = "a contract type with `foreign` must be a note";
            self.fault(Code::ProtocolNote, at("foreign"), text);
        }
        let after = contract.after.values().flat_map(BTreeMap::values).flatten();
        self.known_status(after.map(|word| (at("after"), word)));
        if contract.actions.is_some() && self.lead().is_none() {
            let text = "no agent is of the kind to whom work goes after a violation";
            self.fault(Code::ProtocolAction, at("actions"), text);
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
                    Code::ProtocolPath,
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
                let unknown = placed(format!("{at}/unknown"), &imported.unknown);
                unknown.for_each(|(at, pointer)| self.pointer(at, pointer));
            }
        }
        let loops = definition.limits.as_ref().and_then(|l| l.loops.as_ref());
        if loops.is_some() && definition.style() == Style::Relay {
            let text = "only a protocol with `answers` has requests that wait";
            self.fault(Code::ProtocolLoops, "/limits/loops", text);
        }
    }
}

/// Whether a text is one line without invisible characters.
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
