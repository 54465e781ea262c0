//! Checks a protocol's folder: the definition, its files, and how they fit together.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::pointer::{self, escaped_part};
use handoff_base::text::{counted_as, quoted};
use handoff_contract::{Cost, MAX_FINDINGS, Schema, SchemaError, is_rule, scan};
use handoff_protocol::{
    Agent, AgentKind, ContractType, Definition, Fact, FactRule, Partial, Place, Protocol, SIGNERS,
    Signer, Signers, SigningKey, State, Traces, not_json, renewed, schema_nodes, schema_types,
    schema_values,
};
use serde_json::Value;

use crate::layout::DEFINITION;
use crate::rules::contradictions::Contradictions;
use crate::rules::mistakes::{
    meant_field, repeated_keys, route_mistakes, schema_mistakes, stuck, too_few,
};
use crate::rules::template_check::{lacking, misspelt, unfit, unknown};

/// A protocol's files, by path in its folder.
pub type ProtocolFiles = [(String, Vec<u8>)];

/// The note about a protocol whose contracts claim nothing about the repository.
pub const NO_CLAIMS: &str = "no contract type declares claims, so that `evidence` checks nothing";

/// What a protocol is checked for: later checks refuse nothing that is in force already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ProtocolScope {
    /// A step on record: faults only, as contradictory rules were not looked for at first.
    OnRecord,
    /// Another setting in force: contradictory rules, too.
    Setting,
    /// A folder: mistakes of its author, too.
    Folder,
}

/// Checks a protocol's folder. A finding names a file or, in the definition, a JSON Pointer. Keys
/// of an earlier form are understood, and reported with their new places.
pub fn check_protocol(files: &ProtocolFiles) -> Vec<Finding> {
    check_protocol_for(files, ProtocolScope::Folder)
}

/// Checks a protocol's folder as far as this scope goes.
pub fn check_protocol_for(files: &ProtocolFiles, scope: ProtocolScope) -> Vec<Finding> {
    let written = file(files, DEFINITION).unwrap_or_default();
    let now = renewed(written);
    let as_written = |at: &str| match &now {
        Some(now) => now.as_written(at),
        None => at.to_owned(),
    };
    let placed = |at: &str| position(written, &as_written(at));
    let mut found = Vec::new();
    if let Some(now) = &now {
        let mut renewed_files = files.to_vec();
        let definitions = renewed_files.iter_mut();
        for (_, definition) in definitions.filter(|(path, _)| path == DEFINITION) {
            definition.clone_from(&now.definition);
        }
        let moved = now.findings().map(|finding| Finding {
            severity: Severity::Warning,
            ..finding
        });
        found.extend(moved);
        found.extend(check(&renewed_files, scope, placed));
    } else {
        found = check(files, scope, placed);
    }
    for finding in &mut found {
        if finding.path.is_empty() || finding.path.starts_with('/') {
            finding.path = as_written(&finding.path);
            if now.is_some() || finding.line.is_none() {
                (finding.line, finding.column) = position(written, &finding.path).unzip();
            }
        }
    }
    if scope == ProtocolScope::Folder {
        repeated_keys(files, &mut found);
        for finding in found
            .iter_mut()
            .filter(|one| one.severity != Severity::Note)
        {
            let cure = || finding.code.cure().to_owned();
            finding.fix = finding.fix.take().or_else(|| Some(cure()));
        }
    }
    capped(found)
}

/// Checks a folder whose definition has the current form; `placed` returns where a part of it is
/// written.
fn check(
    files: &ProtocolFiles,
    scope: ProtocolScope,
    placed: impl Fn(&str) -> Option<(u32, u32)>,
) -> Vec<Finding> {
    let Some(definition) = file(files, DEFINITION) else {
        let text = "the folder has no protocol.json";
        let missing = Finding::error(FindingCode::FileMissing, DEFINITION, text);
        return without_definition(files, vec![missing]);
    };
    let mut read = Partial::read(definition);
    let found = std::mem::take(&mut read.findings);
    let Some(protocol) = &read.protocol else {
        return without_definition(files, found);
    };
    let mut checker = Checker {
        files,
        definition: protocol.definition(),
        protocol,
        compiled: BTreeMap::new(),
        found,
    };
    if let Some(beyond) = beyond_cost(files) {
        checker.found.push(beyond);
        return checker.found;
    }
    let schemas = checker.schemas();
    checker.templates(&schemas);
    if scope == ProtocolScope::Folder {
        checker.placeholders();
        checker.constants(&schemas);
    }
    checker.pointers(&schemas);
    checker.words(&schemas);
    checker.parties(&schemas);
    checker.secrets();
    checker.signers();
    checker.requirements(scope);
    checker.facts();
    let mut found = checker.found;
    if scope == ProtocolScope::OnRecord {
        found.retain(|finding| !finding.path.starts_with("/consistency/"));
    } else if !found.iter().any(Finding::is_error) {
        let contradictions = Contradictions {
            protocol,
            schemas: &schemas,
            position: placed,
        };
        found.extend(contradictions.find());
    }
    if scope == ProtocolScope::Folder {
        let is_contradictory = found
            .iter()
            .any(|finding| finding.code == FindingCode::ProtocolContradiction);
        found.extend(too_few(protocol).filter(|_| !is_contradictory));
        if !found.iter().any(Finding::is_error) {
            found.extend(stuck(protocol));
        }
        found.extend(route_mistakes(protocol, &schemas));
        found.extend(files.iter().flat_map(schema_mistakes));
    }
    if !found.iter().any(Finding::is_error) && protocol.definition().claims_nothing() {
        let mut finding = Finding::error(FindingCode::ProtocolClaims, "/contracts", NO_CLAIMS);
        finding.severity = Severity::Note;
        found.push(
            finding.fix("if contracts name branches, commits or files, say where with `claims`"),
        );
    }
    for (name, of) in protocol.definition().unbounded_budgets() {
        let of = of.as_str();
        let at = format!("/limits/budgets/{}/{of}", escaped_part(name));
        let text = format!(
            "claims that begin at the same time can exceed this together: no budget per run limits their `{of}`"
        );
        let finding = Finding::warning(FindingCode::ProtocolLimit, at, text);
        found.push(finding.fix("add a budget per run, or claim one at a time"));
    }
    read.settle(&mut found);
    found
}

/// Adds the faults of the other files in a folder whose definition can't be parsed.
fn without_definition(files: &ProtocolFiles, mut found: Vec<Finding>) -> Vec<Finding> {
    for (path, bytes) in files {
        let name = path.as_str();
        if name.starts_with("schemas/") && name.ends_with(".json") {
            found.extend(read_schema(name, bytes).err().into_iter().flatten());
        } else if name.starts_with("templates/") {
            found.extend(template_fault(name, bytes));
        }
    }
    found
}

/// The line and column of a pointer in a JSON text, or of the part that lacks it.
pub(super) fn position(text: &[u8], pointer: &str) -> Option<(u32, u32)> {
    let text = str::from_utf8(text).ok()?;
    let mut at = scan::root(text);
    let mut found = pointer.is_empty().then_some(at);
    for part in pointer::parts(pointer) {
        let index: Option<usize> = part.parse().ok();
        let mut items = scan::items(text, at).enumerate();
        let item = items.find(|(i, item)| match item.key(text) {
            Some(key) => key == part,
            None => index == Some(*i),
        });
        let Some((_, item)) = item else { break };
        at = item.value;
        found = Some(at);
    }
    line_and_column(text, found?)
}

/// The line and column of an offset in a text, from 1.
pub(super) fn line_and_column(text: &str, at: usize) -> Option<(u32, u32)> {
    let before = text.get(..at)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next()?.chars().count() + 1;
    Some((u32::try_from(line).ok()?, u32::try_from(column).ok()?))
}

/// Reads and compiles a schema.
///
/// # Errors
/// Every fault of it.
fn read_schema(path: &str, bytes: &[u8]) -> Result<(Value, Schema), Vec<Finding>> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| vec![not_json(FindingCode::ProtocolSchema, path, &error)])?;
    let error = match Schema::compile(&value) {
        Ok(compiled) => return Ok((value, compiled)),
        Err(error) => error,
    };
    let mut errors = match error {
        SchemaError::Invalid { .. } => Schema::invalid_places(&value),
        _ => Vec::new(),
    };
    if errors.is_empty() {
        errors.push(error);
    }
    let faults = errors
        .iter()
        .map(|error| schema_fault(path, bytes, &value, error));
    let mut faults: Vec<Finding> = faults.collect();
    faults.sort_by_key(|finding| (finding.line, finding.column));
    faults.dedup();
    Err(faults)
}

fn schema_fault(path: &str, bytes: &[u8], value: &Value, error: &SchemaError) -> Finding {
    let mut text = error.to_string();
    if let Some(cause) = std::error::Error::source(&error) {
        text += &format!(": {cause}");
    }
    let mut finding = Finding::error(FindingCode::ProtocolSchema, path, text);
    if let SchemaError::Invalid { path: at, .. } | SchemaError::Pattern { path: at } = error {
        (finding.line, finding.column) = position(bytes, at).unzip();
        let given = value.pointer(at).and_then(Value::as_str);
        if let Some(given) = given.filter(|_| at.ends_with("/type")) {
            finding.message = format!("`{given}` is not a type of JSON Schema");
            finding = finding.meant(given, TYPES);
        }
    }
    finding
}

/// The types of JSON Schema.
pub(super) const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

fn template_fault(path: &str, bytes: &[u8]) -> Option<Finding> {
    let code = FindingCode::ProtocolTemplate;
    match serde_json::from_slice::<Value>(bytes) {
        Err(error) => Some(not_json(code, path, &error)),
        Ok(value) if !value.is_object() => {
            let finding = Finding::error(code, path, "it is not an object");
            Some(finding.fix("write the contract in braces, with a member for each field"))
        }
        Ok(_) => None,
    }
}

/// Warnings about required fields that a type's template lacks, so that commands built from it are
/// incomplete.
fn lacks(kind: &ContractType, schema: Option<&Value>, bytes: &[u8]) -> Vec<Finding> {
    let template: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let places = schema.map(|schema| lacking(schema, &template));
    let warnings = places.into_iter().flatten().map(|place| {
        let text = format!("it lacks `{place}`, which {} requires", kind.schema);
        let mut finding = Finding::warning(FindingCode::ProtocolTemplate, &*kind.template, text);
        let at = position(bytes, &place).or_else(|| position(bytes, ""));
        (finding.line, finding.column) = at.unzip();
        let answers = kind.fixes.as_ref().is_some_and(|fixes| fixes.list == place);
        finding.fix(if answers {
            "add the field as [\"{{fixes: an answer to each finding}}\"]"
        } else {
            "add the field, such as with \"{{fill: what belongs there}}\""
        })
    });
    warnings.collect()
}

/// Truncates findings to the maximum for one contract, and adds a finding with the number of the
/// rest, as severe as the worst of these.
fn capped(mut findings: Vec<Finding>) -> Vec<Finding> {
    let more = findings.len().saturating_sub(MAX_FINDINGS);
    if more > 0 {
        let severity = findings[MAX_FINDINGS..]
            .iter()
            .map(|finding| finding.severity);
        let worst = severity.min_by_key(|severity| match severity {
            Severity::Error => 0,
            Severity::Warning => 1,
            Severity::Note => 2,
        });
        findings.truncate(MAX_FINDINGS);
        let text = counted_as(more, "more fault", [" is not listed", "s are not listed"]);
        let mut finding = Finding::error(FindingCode::FindingsMore, "", text);
        finding.severity = worst.unwrap_or(Severity::Note);
        findings.push(finding);
    }
    findings
}

fn file<'f>(files: &'f ProtocolFiles, path: &str) -> Option<&'f [u8]> {
    let found = files.iter().find(|(p, _)| p == path);
    found.map(|(_, bytes)| bytes.as_slice())
}

struct Checker<'a> {
    files: &'a ProtocolFiles,
    definition: &'a Definition,
    protocol: &'a Protocol,
    /// The schemas that compile, by path.
    compiled: BTreeMap<String, Schema>,
    found: Vec<Finding>,
}

/// The maximum cost of all schemas of a protocol: about a hundred large ones.
const MAX_COST: Cost = Cost {
    steps: 1_000_000,
    patterns: 2_000,
};

/// The schema that exceeds the protocol's total cost, if any. Nothing is compiled, so a protocol
/// can be tested before it is trusted.
pub fn beyond_cost(files: &ProtocolFiles) -> Option<Finding> {
    let mut all = Cost::default();
    let schemas = files
        .iter()
        .filter(|(path, _)| path.starts_with("schemas/"));
    for (path, bytes) in schemas {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            continue;
        };
        let text = match Schema::cost_of(&value) {
            None => SchemaError::TooLarge.to_string(),
            Some(cost) => {
                all.steps = all.steps.saturating_add(cost.steps);
                all.patterns += cost.patterns;
                if all.steps <= MAX_COST.steps && all.patterns <= MAX_COST.patterns {
                    continue;
                }
                format!(
                    "the schemas up to here have more than {} patterns, or apply more than {} schemas",
                    MAX_COST.patterns, MAX_COST.steps
                )
            }
        };
        return Some(Finding::error(FindingCode::ProtocolSchema, path, text));
    }
    None
}

/// The schema of each contract type, if it could be read.
type Schemas = Vec<Option<Value>>;

impl Checker<'_> {
    fn fault(&mut self, code: FindingCode, path: impl Into<String>, text: impl Into<String>) {
        self.found.push(Finding::error(code, path, text));
    }

    /// Reads and compiles a schema.
    fn schema(&mut self, at: String, path: &str, as_xml: bool) -> Option<Value> {
        let Some(bytes) = file(self.files, path) else {
            let text = format!("no file {path} describes it");
            let finding = Finding::error(FindingCode::ProtocolMissingFile, at, text);
            let fix = "copy schema and template of a type like it, and change agents and fields";
            self.found.push(finding.fix(fix));
            return None;
        };
        match read_schema(path, bytes) {
            Ok((value, schema)) => {
                if let Some(error) = schema.without_xml().filter(|_| as_xml) {
                    let text = format!("contracts may be XML, and {error}");
                    let finding = Finding::error(FindingCode::ProtocolSchema, path, text);
                    let fix = "say how with the keyword `xml`, such as {\"xml\": {\"name\": …}}, or leave xml out of `formats`";
                    self.found.push(finding.fix(fix));
                }
                self.compiled.insert(path.to_owned(), schema);
                Some(value)
            }
            Err(faults) => {
                self.found.extend(faults);
                None
            }
        }
    }

    fn schemas(&mut self) -> Schemas {
        let definition = self.definition;
        let mut used = BTreeSet::new();
        let mut schemas = Vec::new();
        for (i, kind) in definition.contracts.iter().enumerate() {
            used.insert(kind.schema.as_str());
            let as_xml = kind.has_format("xml") && definition.formats.iter().any(|f| f == "xml");
            let at = format!("/contracts/{i}/schema");
            schemas.push(self.schema(at, &kind.schema, as_xml));
        }
        for (name, document) in &definition.documents {
            used.insert(document.schema.as_str());
            self.schema(format!("/documents/{name}/schema"), &document.schema, false);
        }
        // Contracts can name the other schemas, so these are compiled too.
        for (path, _) in self.files {
            if path.ends_with(".json") && path.starts_with("schemas/") && !used.contains(&**path) {
                self.schema(String::new(), path, false);
            }
        }
        schemas
    }

    fn secrets(&mut self) {
        let rules = self.definition.secrets.iter().flat_map(|s| &s.allow);
        for (i, allowed) in rules.enumerate() {
            if !is_rule(&allowed.rule) {
                let text = format!("there is no rule {} for secrets", quoted(&allowed.rule));
                self.fault(
                    FindingCode::ProtocolUnknownRule,
                    format!("/secrets/allow/{i}/rule"),
                    text,
                );
            }
        }
    }

    /// Reports unknown contract types in requirements: no contract of them meets one, or undoes it.
    /// What is in force keeps them.
    fn requirements(&mut self, scope: ProtocolScope) {
        let severity = match scope {
            ProtocolScope::Folder => Severity::Error,
            ProtocolScope::OnRecord | ProtocolScope::Setting => Severity::Warning,
        };
        for (name, requirement) in &self.definition.requirements {
            let lists = [
                ("shown_by", &requirement.shown_by),
                ("undone_by", &requirement.undone_by),
                ("apart_from", &requirement.apart_from),
            ];
            for (key, types) in lists {
                let at = format!("/requirements/{}/{key}", escaped_part(name));
                self.unknown_types(&at, types, severity);
            }
        }
    }

    /// Reports names in a list that are not contract types.
    fn unknown_types(&mut self, at: &str, types: &[String], severity: Severity) {
        for (i, kind) in types.iter().enumerate() {
            if self.protocol.contract_type(kind).is_none() {
                let text = format!("no contract type is called `{kind}`");
                let at = format!("{at}/{i}");
                let mut finding = Finding::error(FindingCode::ProtocolUnknownType, at, text);
                finding.severity = severity;
                let types = self.definition.contracts.iter().map(|kind| &*kind.name);
                self.found.push(finding.meant(kind, types));
            }
        }
    }

    /// Warns about unknown contract types in facts, and about unknown facts in the briefing.
    fn facts(&mut self) {
        let facts = &self.definition.facts;
        for (name, Fact { rule, .. }) in facts {
            let types = rule
                .types()
                .filter(|_| matches!(rule, FactRule::Newest { .. }));
            if let Some((key, types)) = types {
                let at = format!("/facts/{}/{key}", escaped_part(name));
                self.unknown_types(&at, types, Severity::Warning);
            }
        }
        for name in facts
            .briefing
            .iter()
            .filter(|name| !facts.contains_key(*name))
        {
            let at = format!("/facts/{}/briefing", escaped_part(name));
            let text = format!("no fact is called `{name}`");
            let finding = Finding::warning(FindingCode::ProtocolFact, at, text);
            self.found
                .push(finding.meant(name, facts.keys().map(String::as_str)));
        }
    }

    /// Checks the signers: warns about agents, and people, without a key.
    fn signers(&mut self) {
        let Some(bytes) = file(self.files, SIGNERS) else {
            return;
        };
        let (signers, faults) = Signers::parse(bytes);
        let whole = faults.is_empty();
        self.found.extend(faults);
        // A list with faults may still contain these keys.
        if !whole || signers.is_empty() {
            return;
        }
        let agents = self.protocol.agent_names();
        for (line, name) in signers.iter().flat_map(|line| line.unknown(&agents)) {
            let text = format!("no agent is called `{name}`, so that its key signs nothing here");
            let mut finding = Finding::warning(FindingCode::ProtocolUnknownAgent, SIGNERS, text);
            (finding.line, finding.column) = (Some(line), Some(1));
            self.found.push(finding.meant(name, agents.iter().copied()));
        }
        let mut warn = |code: FindingCode, text: String, fix: String| {
            let finding = Finding::warning(code, SIGNERS, text).fix(fix);
            self.found.push(finding);
        };
        for agent in agents {
            if !signers.iter().any(|line| line.is_agents(agent)) {
                let text =
                    format!("no key is listed for {agent}, so that every step of it is refused");
                let fix = format!("add a line: {agent} TYPE KEY");
                warn(FindingCode::SignersNoKey, text, fix);
            }
        }
        for line in signers.iter() {
            if let SigningKey::OpenPgp(fingerprint) = &line.key {
                let text = format!(
                    "nothing here says whether there is a key {fingerprint}, and whether it may sign"
                );
                let fix = format!("look: gpg --list-keys {fingerprint}");
                warn(FindingCode::SignersUnjudged, text, fix);
            }
        }
        if !signers.iter().any(Signer::is_of_a_person) {
            let text = "no key is listed for a person, so that nobody can change the protocol or the list later";
            let fix = "add a line with the e-mail address that git has for whoever may";
            warn(
                FindingCode::SignersNoPerson,
                text.to_owned(),
                fix.to_owned(),
            );
        }
    }

    fn templates(&mut self, schemas: &Schemas) {
        let definition = self.definition;
        let types = definition.contracts.iter().zip(schemas).enumerate();
        for (i, (kind, schema)) in types {
            let at = |key: &str| format!("/contracts/{i}/{key}");
            match file(self.files, &kind.template) {
                None => {
                    let text = format!("there is no file {}", kind.template);
                    let code = FindingCode::ProtocolMissingFile;
                    let finding = Finding::error(code, at("template"), text);
                    let fix = "write the contract there as JSON, with \"{{fill: what belongs here}}\" for each field";
                    self.found.push(finding.fix(fix));
                }
                Some(bytes) => {
                    self.found.extend(template_fault(&kind.template, bytes));
                    self.found.extend(lacks(kind, schema.as_ref(), bytes));
                }
            }
            let xsd = kind.xsd.as_deref();
            if let Some(xsd) = xsd.filter(|xsd| file(self.files, xsd).is_none()) {
                let text = format!("there is no file {xsd}");
                self.fault(FindingCode::ProtocolMissingFile, at("xsd"), text);
            }
        }
    }

    /// Warns about placeholders with misspelt names in the types' templates.
    fn placeholders(&mut self) {
        let rules = self.definition.event_rules();
        let noted = rules.iter().flat_map(|rule| rule.facts.keys());
        let facts = self.definition.facts.keys().chain(noted);
        let facts: BTreeSet<&str> = facts.map(String::as_str).collect();
        let contracts = self.definition.contracts.iter();
        let paths: BTreeSet<&str> = contracts.map(|kind| &*kind.template).collect();
        for path in paths {
            let bytes = file(self.files, path).unwrap_or_default();
            self.found.extend(misspelt((path, bytes), &facts));
        }
    }

    /// Reports fields and constants in templates that their schemas refuse.
    fn constants(&mut self, schemas: &Schemas) {
        let types = self.definition.contracts.iter().zip(schemas);
        let mut seen = BTreeSet::new();
        for (kind, schema) in types {
            let (template, path) = (&*kind.template, &*kind.schema);
            if let (Some(schema), Some(bytes)) = (schema, file(self.files, template))
                && seen.insert((template, path))
            {
                let (template, schema) = ((template, bytes), (path, schema));
                self.found.extend(unknown(template, schema));
                let compiled = self.compiled.get(path);
                let faults = compiled.map(|compiled| unfit(template, schema, compiled));
                self.found.extend(faults.into_iter().flatten());
            }
        }
    }

    /// Reports pointers to places that no schema has.
    fn pointers(&mut self, schemas: &Schemas) {
        let definition = self.definition;
        let anywhere = |pointer: &str| {
            let mut known = schemas.iter().flatten();
            // A schema that can't be read was reported already, and may have the place.
            schemas.iter().any(Option::is_none) || known.any(|s| has(s, pointer))
        };
        let mut shared = shared_pointers(definition);
        shared.retain(|(_, pointer)| !anywhere(pointer));
        let mut missing = Vec::new();
        for (i, (kind, schema)) in definition.contracts.iter().zip(schemas).enumerate() {
            let Some(schema) = schema else { continue };
            for place in kind.places() {
                let (at, pointer) = (format!("/contracts/{i}/{}", place.at), place.whole());
                if !pointer.starts_with('/') {
                    continue;
                } else if has(schema, &pointer) {
                    self.found.extend(mistyped(&place, &at, &pointer, schema));
                } else if has(schema, place.base()) {
                    // Without its list, only that is reported.
                    missing.push((at, place.base().to_owned(), place.pointer.to_owned(), i));
                }
            }
            let root = String::new;
            for (key, pointer) in kind.fields.given() {
                if pointer.starts_with('/') && !has(schema, pointer) {
                    let at = format!("/contracts/{i}/fields/{key}");
                    missing.push((at, root(), pointer.to_owned(), i));
                }
            }
            let implied = kind.implied_from.is_some() && kind.implied_to.is_some();
            let parties = [
                ("from", !kind.note, self.protocol.field(kind, |f| &f.from)),
                ("to", kind.travels(), self.protocol.field(kind, |f| &f.to)),
            ];
            for (key, needed, pointer) in parties {
                let pointer = pointer.filter(|p| needed && !implied && !has(schema, p));
                let at = format!("/contracts/{i}/fields/{key}");
                missing.extend(pointer.map(|p| (at, root(), p.to_owned(), i)));
            }
        }
        let shared = shared.into_iter().map(|(at, pointer)| {
            let text = format!("no schema has a field `{pointer}`");
            (at, text, String::new(), pointer, 0..schemas.len())
        });
        let own = missing.into_iter().map(|(at, base, pointer, i)| {
            let schema = &definition.contracts[i].schema;
            let text = format!("`{base}{pointer}` is a field that {schema} does not have");
            (at, text, base, pointer, i..i + 1)
        });
        let mut all: Vec<_> = shared.chain(own).collect();
        all.sort_by(|(at, ..), (other, ..)| at.cmp(other));
        all.dedup();
        for (at, text, base, pointer, types) in all {
            let finding = Finding::error(FindingCode::ProtocolUnknownField, at, text);
            let schemas = schemas[types].iter().flatten();
            let entries = schemas.flat_map(|schema| schema_nodes(schema, &base));
            self.found.push(meant_field(finding, &pointer, entries));
        }
    }

    /// Reports routes whose contract's schema does not allow the names of their sender or receiver.
    fn parties(&mut self, schemas: &Schemas) {
        let definition = self.definition;
        let named = |schema: &Value, at: Option<&str>, agent: &Agent| {
            let words = at.and_then(|at| schema_values(schema, at));
            let names = agent.aliases.iter().map(String::as_str);
            let mut names = names.chain([agent.id.as_str()]);
            words.is_none_or(|words| names.any(|name| words.contains(name)))
        };
        let mut faults = Vec::new();
        for route in &definition.routes {
            for name in &route.contracts {
                let mut types = definition.contracts.iter().zip(schemas);
                let Some((kind, Some(schema))) = types.find(|(kind, _)| kind.name == *name) else {
                    continue;
                };
                let from = self.protocol.field(kind, |f| &f.from);
                let to = self.protocol.field(kind, |f| &f.to);
                // With `*`, a person need not be able to send.
                let sends = |agent: &&Agent| match route.from.as_str() {
                    "*" => {
                        let reports = [AgentKind::Orchestrator, AgentKind::Specialist];
                        agent.id != route.to && reports.contains(&agent.kind)
                    }
                    from => agent.id.as_str() == from,
                };
                let agents = definition.agents.iter();
                let senders = agents.clone().filter(sends).map(|agent| (from, agent));
                let receivers = agents.filter(|agent| agent.id == route.to);
                let receivers = receivers.map(|agent| (to, agent));
                let strange = senders.chain(receivers);
                faults.extend(strange.filter(|(at, agent)| !named(schema, *at, agent)).map(
                    |(at, agent)| {
                        let (schema, at) = (&kind.schema, at.unwrap_or_default());
                        let text = format!(
                            "a contract of type `{name}` can't name `{}`: {schema} lists others at `{at}`",
                            agent.id
                        );
                        let fix = format!("add `{}` there, or correct the route", agent.id);
                        (route.place("contracts"), text, fix)
                    },
                ));
            }
        }
        for (at, text, fix) in faults {
            let finding = Finding::error(FindingCode::ProtocolRoute, at, text);
            self.found.push(finding.fix(fix));
        }
    }

    /// Reports status words that no schema allows.
    fn words(&mut self, schemas: &Schemas) {
        let definition = self.definition;
        let types = definition.contracts.iter().zip(schemas).enumerate();
        let mut said: BTreeSet<String> = BTreeSet::new();
        let mut open = false;
        let mut faults = Vec::new();
        for (i, (kind, schema)) in types {
            let Some(schema) = schema else {
                open = true;
                continue;
            };
            let Some(pointer) = self.protocol.field(kind, |f| &f.status) else {
                continue;
            };
            let Some(words) = schema_values(schema, pointer) else {
                open |= has(schema, pointer);
                continue;
            };
            for word in kind.outcome.keys().filter(|word| !words.contains(*word)) {
                let text = format!(
                    "no contract of type `{}` can have the status `{word}`",
                    kind.name
                );
                let at = format!("/contracts/{i}/outcome/{}", escaped_part(word));
                faults.push((at, text));
            }
            said.extend(words);
        }
        for (word, state) in &definition.words.status {
            // These words exist only so that contracts with them are refused.
            let unfinished = matches!(state, State::Pending | State::InProgress);
            if !open && !unfinished && !said.contains(word) {
                let text = format!(
                    "no contract can have the status `{word}`, so that {state} is not reached by it"
                );
                faults.push((format!("/words/status/{word}"), text));
            }
        }
        for (at, text) in faults {
            let finding = Finding::error(FindingCode::ProtocolUnreachableState, at, text);
            self.found
                .push(finding.fix("leave it out, or let a schema allow it at the status field"));
        }
    }
}

/// The fault of a place whose schema has the wrong type.
fn mistyped(place: &Place<'_>, at: &str, pointer: &str, schema: &Value) -> Option<Finding> {
    let wanted = place.types.join(" or ");
    match schema_types(schema, pointer) {
        _ if wanted.is_empty() => None,
        Some(types) if place.types.iter().any(|known| types.contains(*known)) => None,
        Some(_) => {
            let text = format!("`{pointer}` is not of the type {wanted}");
            Some(Finding::error(FindingCode::ProtocolFieldType, at, text))
        }
        None if schema_values(schema, pointer).is_some() => None,
        None => {
            let text = format!(
                "no schema says of which type `{pointer}` is, so that this can't be checked"
            );
            let finding = Finding::warning(FindingCode::ProtocolFieldType, at, text);
            Some(finding.fix(format!("give it a type: {wanted}")))
        }
    }
}

/// The pointers that apply to contracts of any type, with their paths.
fn shared_pointers(definition: &Definition) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let fields = definition.fields.given();
    let fields = fields.filter(|(_, pointer)| pointer.starts_with('/'));
    found.extend(fields.map(|(key, pointer)| (format!("/fields/{key}"), pointer.to_owned())));
    for (name, Fact { rule, .. }) in &definition.facts {
        if let Some((key, list)) = rule.pointers() {
            for (i, pointer) in list.iter().enumerate() {
                found.push((format!("/facts/{name}/{key}/{i}"), pointer.clone()));
            }
        }
    }
    for (i, rule) in definition.consistency.iter().enumerate() {
        found.extend(
            rule.placed()
                .map(|(at, pointer)| (format!("/consistency/{i}/{at}"), pointer.to_owned())),
        );
    }
    let traces = definition.traces.iter().flat_map(Traces::pointers);
    found.extend(traces.map(|(at, pointer)| (at, pointer.to_owned())));
    if let Some(limits) = &definition.limits {
        let item = limits.item.iter();
        found.extend(item.map(|item| ("/limits/item/at".to_owned(), item.at.clone())));
        let cycle = limits.cycle.iter();
        found.extend(cycle.map(|cycle| ("/limits/cycle/reason".to_owned(), cycle.reason.clone())));
        for (name, round) in &limits.rounds {
            for (key, fields) in [("when", &round.when), ("unless", &round.unless)] {
                let at = format!("/limits/rounds/{name}/{key}");
                found.extend(fields.keys().map(|p| (at.clone(), p.clone())));
            }
        }
    }
    found
}

fn has(schema: &Value, pointer: &str) -> bool {
    handoff_protocol::schema_has(schema, pointer)
}
