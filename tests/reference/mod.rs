//! The reference of what is printed and of what protocols hold, made from the types: a JSON Schema
//! for each command's answer in `schemas/output` and one for `protocol.json`, the generated pages
//! of docs (here those with the fields of types, in `pages` all others), and XML Schemas
//! (`xsd`).
//!
//! `UPDATE_REFERENCE=1 cargo test --lib reference` writes them; without it, a test compares.

#![allow(clippy::unwrap_used)]

mod pages;
mod xsd;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::commands;
use crate::context::left_for_worker::LeftView;
use crate::context::writer::ReplayedView;
use crate::output::{Document, SCHEMA, pretty};
use crate::render::receipt::ReceiptView;

/// Begins the line in a page's frame in whose place the fields of a type come.
const BEGIN: &str = "<!-- fields of ";

/// Lists the commands, each with the types of its answers.
macro_rules! answers {
    ($generator:ident: $($($command:literal),+ => $($answer:ty),+;)+) => {
        [$((
            vec![$($command),+],
            vec![$($generator.subschema_for::<$answer>().to_value()),+],
        ),)+]
    };
}

/// The schemas of all answers by command, and the definitions that they share.
#[expect(clippy::too_many_lines, reason = "it is one table")]
fn schemas() -> (BTreeMap<String, Value>, Map<String, Value>) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    let answers = answers! { generator:
        "agents doctor" => commands::agents::AgentsDoctorView;
        "agents install", "agents uninstall" => commands::agents::AgentsChangeView;
        "agents list" => commands::agents::AgentsListView;
        "alerts" => commands::alerts::AlertsView;
         "annotate", "answer", "approve", "complete", "extend", "reject",
         "release", "reopen" => ReceiptView, ReplayedView;
        "cancel", "reassign", "retry" => ReceiptView, commands::each::EachView, ReplayedView;
        "set" => commands::each::EachView, ReplayedView;
        "pause" => ReceiptView, commands::pause::PausesView, commands::each::EachView, ReplayedView;
        "resume" => ReceiptView, commands::pause::PausesView, commands::each::EachView, ReplayedView;
         "block", "fail", "send" => ReceiptView, ReplayedView, LeftView;
        "archive" => commands::archive::ArchiveView, ReplayedView;
        "check" => commands::check::CheckView;
        "claim" => commands::claim::ClaimView, ReplayedView;
        "context" => commands::context::ContextView;
        "demo" => commands::demo::DemoView;
        "doctor" => commands::doctor::DoctorView;
        "document list" => commands::document::DocumentsView;
        "document set" => commands::document::DocumentSetView, ReplayedView;
        "document show" => commands::document::DocumentView;
        "explain" => commands::explain::ExplainView;
        "exchange" => commands::exchange::ExchangeView, ReplayedView;
        "export otlp" => commands::otlp::TracesFileView, commands::otlp::TracesPushView;
        "export" => commands::export::folder::ExportView;
        "fetch" => commands::fetch::FetchView, commands::fetch::RepairView;
        "gate" => commands::gate::GateView;
        "github comment" => commands::github::comment::CommentView;
        "github status" => commands::github::status::StatusesView;
        "github event" => commands::github::event::EventView, ReplayedView;
        "github issue" => commands::github::issue::SubjectView;
        "github setup" => commands::github::setup::SetupView;
        "github output" => commands::github::output::ValuesView;
        "github summary" => commands::github::summary::SummaryView;
        "graph" => commands::graph::GraphView;
        "here" => commands::here::HereView;
        "hook" => commands::hook::HookView;
        "hooks install", "hooks uninstall" => commands::hooks::HooksChangeView;
        "hooks status" => commands::hooks::HooksStatusView;
        "import" => commands::import::ImportView, ReplayedView;
        "inbox" => commands::inbox::InboxView;
        "init" => commands::init::InitView;
        "list" => commands::list::ListView;
        "log" => commands::log::LogView;
        "man" => commands::man::ManView;
        "metrics" => commands::metrics::MetricsView;
        "new" => crate::contracts::skeleton::Skeleton;
        "next" => commands::next::NextView, ReplayedView;
        "notify" => handoff_notify::Notice;
        "prime" => handoff_agents::prime::Prime;
        "protocol add", "protocol update" => commands::protocol::ChangeView, ReplayedView;
        "protocol check" => commands::protocol::ProtocolCheckView;
        "protocol copy" => commands::protocol::ProtocolCopyView;
        "protocol new" => commands::protocol::new::ProtocolNewView;
        "protocol test" => commands::protocol::test::ProtocolTestView;
        "protocol list" => commands::protocol::ProtocolsView;
        "protocol use" => handoff::ledger::DefaultChange, ReplayedView;
        "protocol set" => commands::protocol::ChangeView, commands::protocol::SettingsView, ReplayedView;
        "protocol show" => commands::protocol::ProtocolView, commands::protocol::ContractTypeView;
        "reap" => commands::reap::ReapView, ReplayedView;
        "refused drop" => commands::refused::EndedView;
        "refused retry" => commands::refused::EndedView, ReplayedView;
        "refused show" => commands::refused::RejectedStepView;
        "refused" => commands::refused::RejectedView;
        "report" => commands::report::ReportView;
        "restore" => commands::restore::RestoreView;
        "serve" => commands::serve::ServeView;
        "show" => handoff_cli::render::stored::ShowView;
        "status" => commands::status::StatusView, commands::status::IssueView;
        "sync" => commands::sync::SyncView, commands::sync::NotPublishedView;
        "uninstall" => commands::uninstall::UninstallView;
        "verify" => commands::verify::VerifyView;
        "wait" => commands::wait::WaitView;
        "work" => handoff_work::WorkView, handoff_work::Listing;
        "workers" => commands::workers::WorkersView;
    };
    let documents = answers.into_iter().flat_map(|(commands, answers)| {
        let document = |command: &str| document(command, &answers);
        let named = commands
            .into_iter()
            .map(|command| (command.replace(' ', "-"), document(command)));
        named.collect::<Vec<_>>()
    });
    let mut documents: BTreeMap<_, _> = documents.collect();
    let line = generator.subschema_for::<commands::watch::Line<'_>>();
    documents.insert("watch".to_owned(), line_schema(line.to_value()));
    generator.subschema_for::<Document<'_, Map<String, Value>>>();
    // What a recovery reads beside a failure's files.
    generator.subschema_for::<handoff::model::FailureFile>();
    let mut definitions = generator.take_definitions(true);
    definitions.values_mut().for_each(open);
    (documents, definitions)
}

/// The schema of `protocol.json`, and all that it defines.
fn protocol() -> (Value, Map<String, Value>) {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let root = generator.subschema_for::<handoff::protocol::Definition>();
    let definitions = generator.take_definitions(true);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "protocol.json of git handoff",
        "$ref": root.to_value()["$ref"],
        "$defs": definitions,
    });
    (schema, definitions)
}

/// Lets objects have fields that a later version adds.
fn open(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members
                .remove("additionalProperties")
                .filter(|more| *more != false)
                .map(|more| members.insert("additionalProperties".to_owned(), more));
            members.values_mut().for_each(open);
        }
        Value::Array(items) => items.iter_mut().for_each(open),
        _ => {}
    }
}

/// The schema of what a command prints.
fn document(command: &str, answers: &[Value]) -> Value {
    let answers: Vec<Value> = answers.iter().cloned().map(elsewhere).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("git handoff{} --json", title(command)),
        "type": "object",
        "properties": {
            "schema": { "const": SCHEMA },
            "ok": { "type": "boolean" },
            "error": { "$ref": "definitions.json#/$defs/Error" },
            "work_paused": { "type": "array", "items": { "$ref": "definitions.json#/$defs/Halt" } },
            "data": { "anyOf": answers },
        },
        "required": ["schema", "ok"],
        "oneOf": [
            { "properties": { "ok": { "const": true } }, "required": ["data"], "not": { "required": ["error"] } },
            { "properties": { "ok": { "const": false } }, "required": ["error"] },
        ],
    })
}

/// The words of a command in a title. What is printed without one is filed as `here`.
fn title(command: &str) -> String {
    match command {
        "here" => String::new(),
        command => format!(" {command}"),
    }
}

/// The schema of a line that `watch` prints: there is no document around it.
fn line_schema(line: Value) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of git handoff watch",
        "anyOf": [
            elsewhere(line),
            {
                "type": "object",
                "properties": {
                    "schema": { "const": SCHEMA },
                    "ok": { "const": false },
                    "error": { "$ref": "definitions.json#/$defs/Error" },
                },
                "required": ["schema", "ok", "error"],
            },
        ],
    })
}

/// A reference within `definitions.json`, as another file makes it.
fn elsewhere(mut schema: Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        schema["$ref"] = format!("definitions.json{name}").into();
    }
    schema
}

/// The name of a definition that a schema refers to.
fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// A page with the tables of fields that its frame names.
struct Page<'a> {
    definitions: &'a Map<String, Value>,
    /// The heading above the fields of each type that has a place of its own.
    headings: BTreeMap<String, String>,
    /// The heading above what is written.
    heading: String,
    /// What is to be described beneath the table that is written.
    pending: Vec<String>,
    /// For a page that leaves all but the answers' own members to the schemas: the members that many
    /// types share, each with its type and its meaning.
    shared: Option<BTreeMap<String, (String, String)>>,
}

impl<'a> Page<'a> {
    fn new(text: &str, definitions: &'a Map<String, Value>) -> Self {
        let (mut heading, mut headings) = (String::new(), BTreeMap::new());
        for line in text.lines() {
            if line.starts_with('#') {
                heading = line.trim_start_matches('#').trim().to_owned();
            }
            if let Some((name, _)) = begun(line) {
                headings.insert(name.to_owned(), heading.clone());
            }
        }
        Self {
            definitions,
            headings,
            heading: String::new(),
            pending: Vec::new(),
            shared: shared(text),
        }
    }

    fn filled(mut self, frame: &str) -> String {
        let mut out = String::new();
        for line in frame.lines() {
            if line.starts_with('#') {
                self.heading = line.trim_start_matches('#').trim().to_owned();
            }
            out += &match begun(line) {
                Some((name, other)) => self.fields(name, other),
                None => format!("{line}\n"),
            };
        }
        out
    }

    /// The fields of a type that another does not have, and those of types that are described
    /// nowhere else.
    fn fields(&mut self, name: &str, other: Option<&str>) -> String {
        let mut text = self.table(name, other);
        while let Some(name) = self.pending.pop() {
            text += &match self.shared {
                Some(_) => format!("\n`{name}`: {}.\n", self.listed(&name)),
                None => format!("\n`{name}`:\n\n{}", self.table(&name, None)),
            };
        }
        text
    }

    /// The members of a type or its words, for whose meaning the schema is the reference.
    fn listed(&mut self, name: &str) -> String {
        let definition = &self.definitions[name];
        if let Some(words) = words(definition) {
            return words;
        }
        let properties = definition["properties"].as_object();
        let members = properties.into_iter().flatten().map(|(field, schema)| {
            let kind = self.kind(schema);
            let kind = kind.trim_end_matches("/null");
            let optional = if is_required(definition, field) {
                ""
            } else {
                "?"
            };
            if kind.contains('`') || kind.contains("](") {
                format!("`{field}`{optional} ({kind})")
            } else {
                format!("`{field}`{optional}")
            }
        });
        members.collect::<Vec<_>>().join(", ")
    }

    /// The fields of a type that another does not have. What a page shares is named there and not
    /// described again.
    fn table(&mut self, name: &str, other: Option<&str>) -> String {
        let others = other.map(|other| &self.definitions[other]["properties"]);
        let definition = &self
            .definitions
            .get(name)
            .unwrap_or_else(|| panic!("no type {name}"));
        let (mut text, mut known) = (String::new(), Vec::new());
        for (field, schema) in definition["properties"].as_object().into_iter().flatten() {
            if others.is_some_and(|others| others.get(field).is_some()) {
                continue;
            }
            let optional = if is_required(definition, field) {
                ""
            } else {
                "?"
            };
            let mut kind = self.kind(schema);
            if !optional.is_empty() {
                kind = kind.replace("/null", "");
            }
            let about = schema["description"].as_str();
            let about = about.unwrap_or_else(|| panic!("{name}.{field} has no description"));
            let mut about = meaning(about);
            if self.shared.is_some() {
                about = clause(&about, 9);
            }
            let shared = self.shared.as_ref().and_then(|shared| shared.get(field));
            // A longer text says more than the shared one.
            let is_shared = shared.is_some_and(|(of, meaning)| {
                *of == kind.trim_end_matches("/null")
                    && (about == *meaning || about.split_whitespace().count() <= 4)
            });
            if is_shared {
                known.push(format!("`{field}`{optional}"));
            } else {
                text += &format!("|`{field}`{optional}|{kind}|{about}|\n");
            }
        }
        if !known.is_empty() {
            text += &format!("|{}||[shared](#shared-members)|\n", known.join(", "));
        }
        format!("|member|type|meaning|\n|---|---|---|\n{text}")
    }

    /// The type of a field, in words.
    fn kind(&mut self, schema: &Value) -> String {
        if let Some(name) = referred(schema) {
            return self.named(name);
        }
        if let Some(words) = words(schema) {
            return words;
        }
        for of in ["anyOf", "oneOf"] {
            if let Some(parts) = schema[of].as_array() {
                let kinds: BTreeSet<String> = parts.iter().map(|part| self.kind(part)).collect();
                let (null, mut kinds): (Vec<_>, Vec<_>) =
                    kinds.into_iter().partition(|kind| kind == "null");
                kinds.extend(null);
                return kinds.join("/");
            }
        }
        let format = schema["format"].as_str();
        match &schema["type"] {
            Value::String(kind) => self.simple(kind, format, schema),
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let kinds: Vec<String> = kinds
                    .map(|kind| self.simple(kind, format, schema))
                    .collect();
                kinds.join("/")
            }
            _ if schema["const"].is_string() => "text".to_owned(),
            _ => "any".to_owned(),
        }
    }

    fn simple(&mut self, kind: &str, format: Option<&str>, schema: &Value) -> String {
        match kind {
            "string" if format == Some("date-time") => "time".to_owned(),
            "string" => "text".to_owned(),
            "integer" => "number".to_owned(),
            "object" if schema["additionalProperties"].is_object() => {
                match self.kind(&schema["additionalProperties"]).as_str() {
                    "any" => "object".to_owned(),
                    value => format!("{{{value}}}"),
                }
            }
            "array" if schema["prefixItems"].is_array() => "pair".to_owned(),
            "array" => match self.kind(&schema["items"]).as_str() {
                "any" => "list".to_owned(),
                item => format!("{item}[]"),
            },
            other => other.to_owned(),
        }
    }

    fn named(&mut self, name: &str) -> String {
        let definition = &self.definitions[name];
        let is_long = |words: String| words.split(", ").count() > 3;
        let is_listed = self.shared.is_some() && words(definition).is_some_and(is_long);
        if definition["properties"].is_null() && !is_listed {
            return self.kind(&definition.clone());
        }
        if is_listed && self.headings.contains_key(name) {
            return format!("`{name}`");
        }
        let Some(heading) = self.headings.get(name) else {
            self.pending.push(name.to_owned());
            self.headings.insert(name.to_owned(), self.heading.clone());
            return format!("`{name}`");
        };
        let anchor = heading.to_lowercase().replace(' ', "-");
        let anchor: String = anchor
            .chars()
            .filter(|c| c.is_alphanumeric() || "-_".contains(*c))
            .collect();
        format!("[{name}](#{anchor})")
    }
}

/// The members of the table beneath a page's heading `Shared members`, each with its type and meaning.
fn shared(text: &str) -> Option<BTreeMap<String, (String, String)>> {
    let (_, section) = text.split_once("\n### Shared members\n")?;
    let (section, _) = section.split_once("\n#").unwrap_or((section, ""));
    let rows = section.lines().filter_map(|line| line.strip_prefix("|`"));
    let member = |row: &str| {
        let mut cells = row.split('|');
        let name = cells.next()?.strip_suffix('`')?;
        let (kind, about) = (cells.next()?, cells.next()?);
        Some((name.to_owned(), (kind.to_owned(), about.to_owned())))
    };
    rows.map(member).collect()
}

fn is_required(definition: &Value, field: &str) -> bool {
    let names = definition["required"].as_array();
    names.is_some_and(|names| names.iter().any(|name| name == field))
}

/// The words that a text may be.
fn words(schema: &Value) -> Option<String> {
    let parts = schema["oneOf"].as_array().or(schema["enum"].as_array())?;
    let word = |part: &Value| Some(format!("`{}`", part["const"].as_str().or(part.as_str())?));
    let words: Option<Vec<String>> = parts.iter().map(word).collect();
    Some(words?.join(", "))
}

/// The type whose fields begin, and the type whose fields are left out of them.
fn begun(line: &str) -> Option<(&str, Option<&str>)> {
    let names = line.strip_prefix(BEGIN)?.strip_suffix(" -->")?;
    let both = names.split_once(" beyond those of ");
    Some(both.map_or((names, None), |(name, other)| (name, Some(other))))
}

/// A description as a cell of a table: one line that begins small and ends without a period.
pub(super) fn meaning(about: &str) -> String {
    let line = about.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.strip_suffix('.').unwrap_or(&line);
    let mut rest = line.chars();
    let first = rest.next().map(|c| c.to_lowercase().to_string());
    let is_word = rest
        .clone()
        .next()
        .is_some_and(|c| c.is_lowercase() || c == ' ');
    if is_word {
        first.unwrap_or_default() + rest.as_str()
    } else {
        line.to_owned()
    }
}

/// The first clause of a text, without what follows a comma if it has more words than these.
pub(super) fn clause(text: &str, most: usize) -> String {
    let is_even = |at: &usize| {
        let count = |mark: char| text[..*at].matches(mark).count();
        count('`') % 2 == 0 && count('(') == count(')')
    };
    let words = |text: &str| text.split_whitespace().count();
    // What precedes a colon may be the commands that a text is about.
    let is_end = |at: usize, end: &str| {
        end != ": "
            || words(&text[..at]) > 3 && !(text.starts_with('`') && text[..at].ends_with('`'))
    };
    let ends = ["; ", ". ", ": "];
    let ends = ends.into_iter().flat_map(|end| text.match_indices(end));
    let ends = ends.filter(|(at, end)| is_even(at) && is_end(*at, end));
    let mut kept = &text[..ends.map(|(at, _)| at).min().unwrap_or(text.len())];
    // A list stays whole; so do a unit and what is printed.
    let is_list = [", or ", ", and ", ", but "]
        .iter()
        .any(|word| kept.contains(word));
    while !is_list && words(kept) > most {
        let mut commas = kept.rmatch_indices(", ").map(|(at, _)| at);
        let at = commas.find(|at| {
            is_even(at)
                && words(&kept[*at..]) > 3
                && words(&kept[..*at]) > 2
                && !kept[*at..].contains('`')
                && !kept[..*at].ends_with('`')
        });
        let Some(at) = at else { break };
        kept = &kept[..at];
    }
    kept.trim_end_matches('.').to_owned()
}

/// The first line of each generated page.
pub(super) fn generated(from: &str) -> String {
    format!(
        "<!-- Generated from {from} by `UPDATE_REFERENCE=1 cargo test --lib reference`. -->\n\n"
    )
}

/// Adds a page of docs whose frame is in tests/reference.
fn page(
    name: &str,
    definitions: &Map<String, Value>,
    root: &Path,
    files: &mut BTreeMap<PathBuf, String>,
) {
    let path = format!("tests/reference/{name}");
    let frame = fs::read_to_string(root.join(&path)).unwrap();
    let page = Page::new(&frame, definitions).filled(&frame);
    let head = generated(&format!("the types and {path}"));
    files.insert(Path::new("docs").join(name), head + &page);
}

/// What the files of the reference must hold.
fn expected(root: &Path) -> BTreeMap<PathBuf, String> {
    let (documents, definitions) = schemas();
    let folder = Path::new("schemas/output");
    let mut files: BTreeMap<PathBuf, String> = documents
        .iter()
        .map(|(command, schema)| (folder.join(format!("{command}.json")), pretty(schema)))
        .collect();
    let shared = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the answers of git handoff are made of",
        "$defs": definitions,
    });
    files.insert(folder.join("definitions.json"), pretty(&shared));
    page("json.md", &definitions, root, &mut files);
    let (protocol, definitions) = protocol();
    files.insert("schemas/protocol.json".into(), pretty(&protocol));
    page("protocol-keys.md", &definitions, root, &mut files);
    pages::files(&definitions, &mut files);
    xsd::files(&mut files);
    files
}

#[test]
fn reference_is_what_the_types_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let expected = expected(root);
    let folder = root.join("schemas/output");
    if env::var_os("UPDATE_REFERENCE").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (path, text) in &expected {
            fs::write(root.join(path), text).unwrap();
        }
    }
    for (path, text) in &expected {
        let found = fs::read_to_string(root.join(path)).unwrap_or_default();
        assert!(
            found == *text,
            "{} is out of date: UPDATE_REFERENCE=1 cargo test --lib reference",
            path.display()
        );
    }
    let files = fs::read_dir(folder).unwrap().count();
    let answers = expected
        .keys()
        .filter(|path| path.starts_with("schemas/output"));
    assert_eq!(files, answers.count(), "a schema of no command");
}
