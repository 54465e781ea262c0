mod changed_fields;
pub(crate) mod new;
mod rules;
#[cfg(feature = "trial")]
pub(crate) mod test;

use std::iter;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use handoff::base::Moment;
use handoff::base::finding::Finding;
use handoff::base::ids::AgentName;
use handoff::base::text::{counted, counted_as, one_line, plain, quoted, word};
use handoff::ledger::{
    Consent, DefaultChange, KeptSetting, Ledger, ProtocolChange, ProtocolError, PutMode,
    RequiredFields, open_issues,
};
use handoff::model::{Assignment, NO_CLAIMS, SETTINGS, why_weaker};
use handoff::protocol::{Definition, Policy, Protocol, SIGNERS, Signer, Signers, Style};
use handoff::templates::{BUILT_IN, Folder, built_in, check_folder};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::args::protocols;
use crate::context::Context;
use crate::contracts::fields::{Field, fields};
use crate::contracts::skeleton::opening_command;
use crate::exit;
use crate::failure::{ErrorCode, Failure, hint};
use crate::output::page::{Page, PageArgs};
use crate::output::{Answer, Output, render};
use crate::render::{in_force, policy_line};
use crate::view::{Look, columns};
use changed_fields::{ChangedFields, changed_fields};
use new::{New, write_folder};
#[cfg(feature = "trial")]
use test::Test;

/// List, show, make (`new`), check, test, copy, add, update, adjust (`set`) and choose (`use`) protocols
///
/// A protocol is a folder of data: protocol.json, schemas and templates. A
/// ledger can hold several; each issue follows one. What is in force is kept in
/// the ledger, so that every step is checked against the definition of its time.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff protocol list
  git handoff protocol show issue-to-pr
  git handoff protocol new our-way --agents writer,editor
  git handoff protocol check ./our-way
  git handoff protocol test ./our-way
  git handoff protocol add ./our-way
  git handoff protocol set issue-to-pr evidence enforce")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the protocols in force here, and the built-in ones
    #[command(after_help = "Example:\n  git handoff protocol list --json")]
    List(PageArgs),
    /// Show a protocol: its agents, routes, contract types, rules, limits and signers
    ///
    /// With --type, shows each field of a contract of that type, or of a schema that contracts
    /// name. With --json, prints the whole definition, or the whole schema.
    #[command(after_help = "Examples:
  git handoff protocol show delegation
  git handoff protocol show issue-to-pr --type workflow-complete")]
    Show {
        /// A protocol in force here, a built-in one, or a folder; by default the
        /// one that new issues follow
        #[arg(value_name = "NAME|FOLDER")]
        name: Option<String>,
        /// Show the fields of a contract of this type, or of the schema of this name
        #[arg(long = "type", value_name = "TYPE")]
        contract_type: Option<String>,
    },
    New(New),
    /// Check a protocol and report every fault
    ///
    /// Exits 1 if there is one.
    #[command(after_help = "Example:\n  git handoff protocol check ./our-way")]
    Check {
        /// One in force here, a built-in one, or a folder
        #[arg(value_name = "NAME|FOLDER")]
        name: String,
    },
    #[cfg(feature = "trial")]
    Test(Test),
    /// Copy a protocol's files to a new folder, to start your own
    #[command(after_help = "Example:\n  git handoff protocol copy issue-to-pr ./our-way")]
    Copy {
        /// A protocol in force here, or a built-in one
        #[arg(value_name = "NAME")]
        name: String,
        /// The folder, which must be new or empty
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Add a protocol to those in force
    #[command(after_help = "Example:\n  git handoff protocol add delegation")]
    Add {
        /// A built-in one, or a folder
        #[arg(value_name = "NAME|FOLDER")]
        name: String,
        /// It may check less than the ledger's default protocol: needed where keys are listed. Elsewhere
        /// a person's change is recorded anyway, and an agent's refused
        #[arg(long)]
        weaker: bool,
    },
    /// Put a new version of a protocol in force
    ///
    /// Says what it checks less and more, and which open issues are beyond its limits. Refused while
    /// an open handoff could not continue under it. Earlier steps are still checked against the
    /// version that was in force at the time. What was set by `protocol set` stays set.
    #[command(after_help = "Example:\n  git handoff protocol update ./our-way")]
    Update {
        /// A built-in one, or a folder
        #[arg(value_name = "NAME|FOLDER")]
        name: String,
        /// Take the new version as it is, without what was set by `protocol set`
        #[arg(long)]
        drop_settings: bool,
        /// It may leave open issues past its limits, where nothing can be sent
        #[arg(long)]
        past_limits: bool,
        /// It may check less than the ledger's default protocol: needed where keys are listed. Elsewhere
        /// a person's change is recorded anyway, and an agent's refused
        #[arg(long)]
        weaker: bool,
    },
    /// Make a protocol in force the one that new issues follow
    ///
    /// Issues keep theirs. Where the default protocol lists keys, a listed person signs the change.
    #[command(after_help = "Example:\n  git handoff protocol use issue-to-pr")]
    Use {
        /// A protocol in force here
        #[arg(value_name = "NAME")]
        name: String,
        /// It may check less strictly than the one before it; what it checks less is recorded
        #[arg(long)]
        weaker: bool,
    },
    /// Set one policy of a protocol in force
    ///
    /// Writes a new version that differs in this alone: 1.2.0 becomes 1.2.0+1. Without
    /// a key, lists what can be set. A later update keeps it. Only a person raises a limit, or
    /// has less checked: an agent that is named (`--as`) can't.
    #[command(after_help = "Examples:
  git handoff protocol set issue-to-pr
  git handoff protocol set issue-to-pr evidence enforce
  git handoff protocol set issue-to-pr evidence.coverage default")]
    Set {
        /// A protocol in force here
        #[arg(value_name = "NAME")]
        name: String,
        /// What to set
        #[arg(value_name = "KEY", requires = "value")]
        key: Option<String>,
        /// Its value; `default` takes it back
        #[arg(value_name = "VALUE")]
        value: Option<String>,
        /// It may check less than the ledger's default protocol: needed where keys are listed. Elsewhere
        /// a person's change is recorded anyway, and an agent's refused
        #[arg(long)]
        weaker: bool,
    },
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        match &self.action {
            Action::List(page) => list(context, page, output),
            Action::Show {
                name,
                contract_type,
            } => show(context, output, name.as_deref(), contract_type.as_deref()),
            Action::New(new) => new.run(context, output),
            #[cfg(feature = "trial")]
            Action::Test(test) => test.run(context, output),
            Action::Check { name } => check(context, output, name),
            Action::Copy { name, folder } => copy(context, output, name, folder),
            Action::Add { name, weaker } => {
                let consent = Consent {
                    weaker: *weaker,
                    past_limits: false,
                };
                put(context, output, name, PutMode::Add, consent)
            }
            Action::Update {
                name,
                drop_settings,
                past_limits,
                weaker,
            } => {
                let consent = Consent {
                    weaker: *weaker,
                    past_limits: *past_limits,
                };
                let kept = if *drop_settings {
                    PutMode::Replace
                } else {
                    PutMode::Update
                };
                put(context, output, name, kept, consent)
            }
            Action::Use { name, weaker } => use_by_default(context, output, name, *weaker),
            Action::Set {
                name,
                key,
                value,
                weaker,
            } => match key.as_deref().zip(value.as_deref()) {
                Some(setting) => set(context, output, name, setting, *weaker),
                None => settings(context, output, name),
            },
        }
    }
}

/// A protocol's files, by their paths.
type Files = Vec<(String, Vec<u8>)>;

/// The files of a protocol in force, a built-in one or a folder.
fn files(context: &Context, output: &mut Output, name: &str) -> Result<Files, Failure> {
    let Some((files, is)) = named_files(context, name)? else {
        return Ok(protocols::folder(name)?.into_files());
    };
    if Path::new(name).is_dir() {
        output.say(&format!(
            "{name} is {is}, and that is meant; the folder is ./{name}"
        ));
    }
    Ok(files)
}

/// The files of a protocol in force or a built-in one, and which it is.
fn named_files(context: &Context, name: &str) -> Result<Option<(Files, &'static str)>, Failure> {
    if let Ok(repository) = context.repository() {
        let ledger = context.ledger(&repository)?;
        if ledger.tip_id()?.is_some() {
            let tip = ledger.tip()?;
            if tip.protocols()?.iter().any(|known| known == name) {
                return Ok(Some((tip.rules(name)?.files()?, "in force here")));
            }
        }
    }
    Ok(built_in(name).map(|folder| (folder.into_files(), "built in")))
}

/// Refuses a name that is a folder's as well, if the two differ: a verdict on one would be taken
/// for one on the other.
fn ensure_one_meaning(context: &Context, verb: &str, name: &str) -> Result<(), Failure> {
    let path = Path::new(name);
    if !path.join("protocol.json").is_file() {
        return Ok(());
    }
    let Some((mut named, is)) = named_files(context, name)? else {
        return Ok(());
    };
    named.sort();
    let is_same = Folder::read(path).is_ok_and(|folder| {
        let mut files = folder.into_files();
        files.sort();
        files == named
    });
    if is_same {
        return Ok(());
    }
    let text = format!("{name} is {is}, and the folder ./{name} differs from it");
    Err(Failure::usage(text).hint(hint!(
        "for the folder: `git handoff protocol {} ./{}`",
        verb,
        name
    )))
}

fn list(context: &Context, page: &PageArgs, output: &mut Output) -> Result<(), Failure> {
    let mut listed: Vec<ListedProtocol> = Vec::new();
    let repository = context.repository().ok();
    if let Some(repository) = &repository {
        let ledger = context.ledger(repository)?;
        if ledger.tip_id()?.is_some() {
            let tip = ledger.tip()?;
            for name in tip.protocols()? {
                let rules = tip.rules(&name)?;
                listed.push(ListedProtocol {
                    in_force: true,
                    default: tip.manifest().default_protocol.as_str() == name,
                    open_issues: open_issues(&tip, &name)?,
                    ..ListedProtocol::built_in(rules.protocol().definition())
                });
            }
        }
    }
    for name in BUILT_IN {
        if listed.iter().any(|known| known.name.as_str() == name) {
            continue;
        }
        let protocol = protocols::load(name, &built_in(name).unwrap_or_default())?;
        listed.push(ListedProtocol::built_in(protocol.definition()));
    }
    let page = page.cut(&mut listed, |one| one.name.to_string(), output)?;
    output.answer(&ProtocolsView {
        protocols: listed,
        page,
    })
}

/// The available protocols.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Protocols")]
pub(crate) struct ProtocolsView {
    /// each protocol, those in force first
    protocols: Vec<ListedProtocol>,
    #[serde(flatten)]
    page: Page,
}

/// A protocol in force, or a built-in one.
#[derive(Serialize, JsonSchema)]
struct ListedProtocol {
    /// its name
    name: AgentName,
    /// its version
    version: String,
    /// what it is for
    title: String,
    /// how work moves from one agent to the next
    style: Style,
    /// whether it is in force here
    in_force: bool,
    /// whether new issues follow it
    default: bool,
    /// how many open issues follow it
    open_issues: usize,
}

impl ListedProtocol {
    /// A protocol that is not in force.
    fn built_in(definition: &Definition) -> Self {
        Self {
            name: definition.name.clone(),
            version: definition.version.clone(),
            title: definition.title.clone(),
            style: definition.style(),
            in_force: false,
            default: false,
            open_issues: 0,
        }
    }
}

impl Answer for ProtocolsView {
    fn text(&self, _: &Look) -> String {
        let rows = self.protocols.iter().map(|protocol| {
            let standing = match (protocol.in_force, protocol.default) {
                (_, true) => "default",
                (true, false) => "in force",
                (false, false) => "built in",
            };
            vec![
                protocol.name.to_string(),
                one_line(&protocol.version),
                standing.to_owned(),
                one_line(&protocol.title),
            ]
        });
        columns(&rows.collect::<Vec<_>>()) + self.page.text()
    }
}

pub(super) fn show(
    context: &Context,
    output: &mut Output,
    name: Option<&str>,
    contract_type: Option<&str>,
) -> Result<(), Failure> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => {
            let repository = context.repository()?;
            let tip = context.tip(&repository)?;
            tip.manifest().default_protocol.to_string()
        }
    };
    let files = files(context, output, &name)?;
    let definition = files.iter().find(|(path, _)| path == "protocol.json");
    let bytes = definition
        .map(|(_, bytes)| bytes.as_slice())
        .unwrap_or_default();
    let protocol = protocols::parse(&name, bytes)?;
    if let Some(contract_type) = contract_type {
        return show_type(output, protocol.definition(), &files, contract_type);
    }
    let signers = files.iter().find(|(path, _)| path == SIGNERS);
    let (signers, _) = Signers::parse(signers.map_or(&[], |(_, bytes)| bytes));
    let (policy, default) = standing(context, &name)?;
    output.answer(&ProtocolView {
        policy,
        default,
        schemas: named_schemas(protocol.definition(), &files),
        definition: serde_json::from_slice(bytes).unwrap_or_default(),
        signers: signers.iter().map(SignerView::new).collect(),
        protocol: &protocol,
    })
}

/// The policy of a protocol, if it is in force here, and whether new issues follow it.
fn standing(context: &Context, name: &str) -> Result<(Option<String>, bool), Failure> {
    let Ok(repository) = context.repository() else {
        return Ok((None, false));
    };
    if context.ledger(&repository)?.tip_id()?.is_none() {
        return Ok((None, false));
    }
    let tip = context.tip(&repository)?;
    if tip.rules_id(name)?.is_none() {
        return Ok((None, false));
    }
    let default = tip.manifest().default_protocol.as_str() == name;
    Ok((Some(in_force(&tip, name)?), default))
}

/// A protocol.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Protocol")]
pub(crate) struct ProtocolView<'a> {
    /// how it treats statements that the repository contradicts, and what was set in it; null if it
    /// is not in force here
    policy: Option<String>,
    /// whether new issues follow it
    default: bool,
    /// the whole `protocol.json`
    #[schemars(with = "serde_json::Map<String, Value>")]
    definition: Value,
    /// the lines of `allowed_signers`
    signers: Vec<SignerView>,
    /// the schemas that its contracts name
    schemas: Vec<NamedSchemaView>,
    #[serde(skip)]
    protocol: &'a Protocol,
}

/// A schema that contracts name.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NamedSchema")]
struct NamedSchemaView {
    /// the file's name
    name: String,
    /// what it describes
    description: String,
}

/// The schemas in a protocol's folder other than those of contract types and documents.
fn named_schemas(definition: &Definition, files: &[(String, Vec<u8>)]) -> Vec<NamedSchemaView> {
    let types = definition.contracts.iter().map(|kind| &kind.schema);
    let documents = definition
        .documents
        .values()
        .map(|document| &document.schema);
    let used: Vec<&String> = types.chain(documents).collect();
    let others = files.iter().filter(|(path, _)| !used.contains(&path));
    let found = others.filter_map(|(path, bytes)| {
        let name = path.strip_prefix("schemas/")?;
        let schema: Value = serde_json::from_slice(bytes).ok()?;
        let description = schema["description"].as_str().unwrap_or_default();
        Some(NamedSchemaView {
            name: name.to_owned(),
            description: description.to_owned(),
        })
    });
    found.collect()
}

/// A line of `allowed_signers`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Signer")]
struct SignerView {
    /// the names of its owners
    principals: String,
    /// the key's type
    #[serde(rename = "type")]
    kind: String,
    /// the key's fingerprint
    fingerprint: String,
    /// from when it may sign; null if there is no such limit
    valid_after: Option<Moment>,
    /// until when it may sign; null if there is no such limit
    valid_before: Option<Moment>,
}

impl SignerView {
    fn new(line: &Signer) -> Self {
        Self {
            principals: line.principals.clone(),
            kind: line.key.kind(),
            fingerprint: line.key.fingerprint(),
            valid_after: line.valid_after,
            valid_before: line.valid_before,
        }
    }
}

impl Answer for ProtocolView<'_> {
    fn text(&self, _: &Look) -> String {
        let text = described(self.protocol.definition(), &self.definition, &self.schemas);
        let policy = self.policy.as_deref().map(policy_line);
        let text = text + &policy.unwrap_or_default();
        let is_default = self
            .default
            .then_some("new issues follow it, unless another one is named\n");
        let text = text + is_default.unwrap_or_default();
        if self.signers.is_empty() {
            return text;
        }
        let rows = self.signers.iter().map(|line| {
            let from = line.valid_after.map(|at| format!("from {at}"));
            let until = line.valid_before.map(|at| format!("until {at}"));
            let valid: Vec<String> = from.into_iter().chain(until).collect();
            vec![
                format!("  {}", one_line(&line.principals)),
                line.kind.clone(),
                line.fingerprint.clone(),
                valid.join(" "),
            ]
        });
        let rows = columns(&rows.collect::<Vec<_>>());
        format!("{text}\nsigners (every step must be signed)\n{rows}")
    }
}

/// Shows the fields of a contract type.
fn show_type(
    output: &mut Output,
    definition: &Definition,
    files: &[(String, Vec<u8>)],
    name: &str,
) -> Result<(), Failure> {
    let mut types = definition.contracts.iter();
    let kind = types.find(|kind| kind.name == name);
    let path = kind.map_or_else(|| format!("schemas/{name}"), |kind| kind.schema.clone());
    let has_xml = definition.formats.iter().any(|format| format == "xml");
    let Some((_, schema)) = files.iter().find(|(known, _)| *known == path) else {
        let known: Vec<&str> = definition
            .contracts
            .iter()
            .map(|k| k.name.as_str())
            .collect();
        let text = format!("{} has no contract type {}", definition.name, quoted(name));
        return Err(Failure::new(ErrorCode::NoType, text).hint(hint!(
            "it has: {}; use `git handoff protocol show {}` to see which agents send them",
            known.join(", "),
            definition.name
        )));
    };
    let schema: Value = serde_json::from_slice(schema).unwrap_or_default();
    output.answer(&ContractTypeView {
        name,
        fields: fields(&schema),
        definition: schema,
        is_xml: has_xml && kind.is_none_or(|kind| kind.has_format("xml")),
    })
}

/// A contract type.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ContractTypeFields")]
pub(crate) struct ContractTypeView<'a> {
    /// its name
    #[serde(rename = "type")]
    name: &'a str,
    /// each field of a contract of this type
    fields: Vec<Field>,
    /// the whole schema
    definition: Value,
    #[serde(skip)]
    is_xml: bool,
}

impl Answer for ContractTypeView<'_> {
    fn text(&self, _: &Look) -> String {
        let rows = self.fields.iter().map(|field| {
            let needed = if field.required {
                "required"
            } else {
                "optional"
            };
            let cells = [&field.path, needed, &field.holds, &field.about];
            cells.map(one_line).to_vec()
        });
        let xml = if self.is_xml {
            "in XML, some fields are attributes or element text: `git handoff new` shows which\n"
        } else {
            ""
        };
        format!("{}\n{}{xml}", self.name, columns(&rows.collect::<Vec<_>>()))
    }
}

/// A protocol as a page of text.
fn described(definition: &Definition, stored: &Value, schemas: &[NamedSchemaView]) -> String {
    let style = match definition.style() {
        Style::Relay => "relay: sending on completes the handoff that the sender held",
        Style::Call => "call: the receiver of a request answers its requester",
    };
    let mut text = format!(
        "{} {}: {}\n  {style}\n  formats: {}\n",
        definition.name,
        one_line(&definition.version),
        one_line(&definition.title),
        definition.formats.join(", "),
    );
    let mut section = |title: &str, rows: &[Vec<String>]| {
        if !rows.is_empty() {
            text += &format!("\n{title}\n{}", columns(rows));
        }
    };
    section("agents", &agents(definition));
    section("routes", &routes(definition));
    let forbidden = definition.routes.forbidden.iter();
    let rows = forbidden.map(|f| vec![format!("  {} → {}", f.from, f.to), one_line(&f.reason)]);
    section("forbidden", &rows.collect::<Vec<_>>());
    section("contract types", &contract_types(definition));
    section("rules", &rules::rules(definition));
    section("requirements", &rules::requirements(definition));
    section(
        "decisions: the first that applies",
        &rules::decisions(stored),
    );
    section(
        "limits, by the keys of protocol set",
        &rules::limits(stored),
    );
    if let Some(evidence) = &definition.evidence {
        let policy = evidence.policy.map_or("set by the ledger", Policy::as_str);
        let checks = evidence.checks.iter();
        let own = checks.map(|(check, policy)| (check.as_str(), policy.as_str()));
        let rows = iter::once(("all", policy)).chain(own);
        let rows = rows.map(|(check, policy)| vec![format!("  {check}"), policy.to_owned()]);
        section("statements about the repository", &rows.collect::<Vec<_>>());
    }
    let rows = definition.words.errors.iter().map(|(code, error)| {
        let recovery = format!("{}; {}", error.meaning, error.recovery);
        vec![format!("  {}", one_line(code)), one_line(&recovery)]
    });
    section("error codes", &rows.collect::<Vec<_>>());
    let documents = definition.documents.iter();
    let rows =
        documents.map(|(name, document)| vec![format!("  {name}"), one_line(&document.title)]);
    section("shared documents", &rows.collect::<Vec<_>>());
    if !schemas.is_empty() {
        let rows = schemas.iter().map(|schema| {
            let name = format!("  {}", one_line(&schema.name));
            vec![name, one_line(&schema.description)]
        });
        section("schemas that contracts name", &rows.collect::<Vec<_>>());
        text += &format!(
            "to replace one: git handoff protocol copy {} FOLDER, its file in FOLDER/schemas/, git handoff protocol update FOLDER\n",
            definition.name
        );
    }
    text
}

fn agents(definition: &Definition) -> Vec<Vec<String>> {
    let rows = definition.agents.iter().map(|agent| {
        let phase = agent.phase.map(|p| p.to_string()).unwrap_or_default();
        let mut role = agent.role.clone();
        if !agent.aliases.is_empty() {
            role += &format!(" (also {})", agent.aliases.join(", "));
        }
        for (title, words) in [
            ("may", &agent.allowed),
            ("must not", &agent.forbidden),
            ("may change", &agent.paths),
        ] {
            if !words.is_empty() {
                role += &format!("; {title}: {}", words.join(", "));
            }
        }
        vec![
            format!("  {}", agent.id),
            agent.kind.as_str().to_owned(),
            phase,
            one_line(&role),
        ]
    });
    rows.collect()
}

fn routes(definition: &Definition) -> Vec<Vec<String>> {
    let rows = definition.routes.iter().map(|route| {
        let mut remarks = Vec::new();
        remarks.extend(route.opens.then(|| "opens an issue".to_owned()));
        remarks.extend(route.via.as_ref().map(|via| format!("{via} decides first")));
        let seconds = route.acknowledge_seconds;
        remarks.extend(seconds.map(|seconds| format!("to be claimed in {seconds} s")));
        vec![
            format!("  {} → {}", route.from, route.to),
            route.contracts.join(", "),
            remarks.join("; "),
        ]
    });
    rows.collect()
}

fn contract_types(definition: &Definition) -> Vec<Vec<String>> {
    let rows = definition.contracts.iter().map(|kind| {
        let mut remarks = Vec::new();
        if !kind.answers.is_empty() {
            remarks.push(format!("answers {}", kind.answers.join(", ")));
        }
        remarks.extend(kind.note.then(|| "recorded only".to_owned()));
        if !kind.formats.is_empty() {
            remarks.push(kind.formats.join(", "));
        }
        vec![
            format!("  {}", kind.name),
            one_line(&kind.title),
            remarks.join("; "),
        ]
    });
    rows.collect()
}

fn check(context: &Context, output: &mut Output, name: &str) -> Result<(), Failure> {
    ensure_one_meaning(context, "check", name)?;
    let files = files(context, output, name)?;
    let findings = check_folder(&files);
    let count = findings.iter().filter(|f| f.is_error()).count();
    if count == 0 {
        output.answer(&ProtocolCheckView {
            protocol: name,
            files: files.len(),
            findings,
        })?;
        if cfg!(feature = "trial") && Path::new(name).is_dir() {
            let folder = protocols::again(name);
            output.say(&format!(
                "next: git handoff protocol test {}",
                word(&folder)
            ));
        }
        return Ok(());
    }
    let faults = counted(count, "fault");
    if !output.is_json() {
        let mut text = format!("{}: {faults}\n", one_line(name));
        text.extend(findings.iter().map(render));
        output.raw(text.as_bytes())?;
        output.say(&format!(
            "next: correct it, then git handoff protocol check {}",
            word(&protocols::again(name))
        ));
        return Err(Failure::reported(exit::NO));
    }
    let text = format!("{faults} found");
    Err(Failure::new(ErrorCode::ProtocolFaults, text)
        .hint("fix what the findings name and check again")
        .findings(findings))
}

/// A protocol without errors.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProtocolCheck")]
pub(crate) struct ProtocolCheckView<'a> {
    /// the name or folder as given
    protocol: &'a str,
    /// how many files it has
    files: usize,
    /// warnings and notes
    findings: Vec<Finding>,
}

impl Answer for ProtocolCheckView<'_> {
    fn text(&self, _: &Look) -> String {
        let mut text = format!(
            "{}: sound ({})\n",
            one_line(self.protocol),
            counted(self.files, "file")
        );
        text.extend(self.findings.iter().map(render));
        text
    }
}

fn copy(context: &Context, output: &mut Output, name: &str, folder: &Path) -> Result<(), Failure> {
    let files = files(context, output, name)?;
    write_folder(folder, &files)?;
    let shown = folder.display().to_string();
    output.answer(&ProtocolCopyView {
        protocol: name,
        folder: shown.clone(),
        files: files.len(),
    })?;
    output.say(&format!(
        "next: edit the files (change `name` to add it as another protocol), then git handoff protocol check {}",
        word(&protocols::as_folder(&shown))
    ));
    Ok(())
}

/// A copy of a protocol.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProtocolCopy")]
pub(crate) struct ProtocolCopyView<'a> {
    /// the protocol
    protocol: &'a str,
    /// the new folder
    folder: String,
    /// how many files were written
    files: usize,
}

impl Answer for ProtocolCopyView<'_> {
    fn text(&self, _: &Look) -> String {
        let Self {
            protocol,
            folder,
            files,
        } = self;
        format!("{protocol}: {} in {folder}\n", counted(*files, "file"))
    }
}

fn put(
    context: &Context,
    output: &mut Output,
    name: &str,
    change: PutMode,
    consent: Consent,
) -> Result<(), Failure> {
    let verb = if change == PutMode::Add {
        "add"
    } else {
        "update"
    };
    ensure_one_meaning(context, verb, name)?;
    let (_, files) = protocols::sound(name)?;
    let repository = context.repository()?;
    let (mut ledger, mut session) = context.writer(&repository, output)?;
    session.agent = context.agent(&repository)?;
    if let (None, Err(error)) = (ledger.tip_id()?, ledger.tip()) {
        let hint = hint!(
            "start one with it: `git handoff init --protocol {}`",
            protocols::again(name)
        );
        return Err(Failure::from(error).hint(hint));
    }
    let before = in_force_files(&ledger, &files)?;
    let changed = ledger.put_protocol(&session, &files, change, consent);
    let changed = changed.map_err(|error| protocols::given(name, error))?;
    output.follow(&ledger);
    let fields = match changed.commit {
        Some(_) => changed_fields(&files, &before),
        None => Vec::new(),
    };
    let view = ChangeView {
        change: &changed,
        fields,
    };
    output.answer(&view)?;
    if changed.commit.is_some() && changed.before.is_none() {
        let rules = ledger.tip()?.rules(changed.name.as_str())?;
        let protocol = format!(" --protocol {}", word(&changed.name));
        if let Some(command) = opening_command(&rules, None, &protocol)? {
            output.say(&format!("next: {command}"));
        }
    }
    Ok(())
}

/// The files of the version in force of a protocol; none if it is new.
fn in_force_files(ledger: &Ledger<'_>, files: &Files) -> Result<Files, Failure> {
    let definition = files.iter().find(|(path, _)| path == "protocol.json");
    let protocol = definition.and_then(|(_, bytes)| Protocol::load(bytes).ok());
    let tip = ledger.tip()?;
    match protocol {
        Some(protocol) if tip.rules_id(protocol.name())?.is_some() => {
            Ok(tip.rules(protocol.name())?.files()?)
        }
        _ => Ok(Files::new()),
    }
}

fn use_by_default(
    context: &Context,
    output: &mut Output,
    name: &str,
    weaker: bool,
) -> Result<(), Failure> {
    let repository = context.repository()?;
    let (mut ledger, mut session) = context.writer(&repository, output)?;
    session.agent = context.agent(&repository)?;
    let changed = ledger.use_protocol(&session, name, weaker)?;
    output.follow(&ledger);
    output.answer(&DefaultView(&changed))
}

/// The change of the default protocol.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
struct DefaultView<'a>(&'a DefaultChange);

impl Answer for DefaultView<'_> {
    fn text(&self, _: &Look) -> String {
        let DefaultChange {
            protocol,
            before,
            weaker,
            commit,
        } = self.0;
        let Some(commit) = commit else {
            return format!("{protocol} is the default protocol already\n");
        };
        let mut text = format!("new issues follow {protocol}, not {before}\n");
        if !weaker.is_empty() {
            text += &format!("  checks less, on record: {}\n", weaker.join(", "));
        }
        text + &format!("  commit {}\n", commit.short())
    }
}

fn set(
    context: &Context,
    output: &mut Output,
    name: &str,
    (key, value): (&str, &str),
    weaker: bool,
) -> Result<(), Failure> {
    let assignment = Assignment::new(key, value).map_err(|source| {
        let name = one_line(name);
        ProtocolError::Setting { name, source }
    })?;
    let repository = context.repository()?;
    let (mut ledger, mut session) = context.writer(&repository, output)?;
    session.agent = context.agent(&repository)?;
    let changed = ledger.set_in_protocol(&session, name, &assignment, weaker);
    let cure = hint!("`git handoff protocol set {}` lists what can be set", name);
    let changed = changed.map_err(|error| protocols::refused(error, cure))?;
    output.follow(&ledger);
    output.answer(&ChangeView {
        change: &changed,
        fields: Vec::new(),
    })?;
    let is_checked = key.split('.').next() == Some("evidence") && value != "off";
    let rules = ledger.tip()?.rules(name)?;
    if is_checked && rules.protocol().definition().claims_nothing() {
        output.say(&format!(
            "{NO_CLAIMS}: see `git handoff explain protocol.claims`"
        ));
    }
    Ok(())
}

/// Lists the settings of a protocol.
fn settings(context: &Context, output: &mut Output, name: &str) -> Result<(), Failure> {
    let repository = context.repository()?;
    let tip = context.tip(&repository)?;
    let known = tip.protocols()?;
    if !known.iter().any(|protocol| protocol == name) {
        let name = name.to_owned();
        return Err(ProtocolError::Unknown { name, known }.into());
    }
    let files = tip.rules(name)?.files()?;
    let definition = files.iter().find(|(path, _)| path == "protocol.json");
    let definition = definition.map_or(&[][..], |(_, bytes)| bytes);
    let definition: Value = serde_json::from_slice(definition).unwrap_or_default();
    let settings = SETTINGS.iter().flat_map(|setting| {
        let given = setting.values(&definition).into_iter();
        given.map(|(key, value)| SettingView {
            key,
            value,
            takes: setting.takes(),
            about: setting.about,
        })
    });
    output.answer(&SettingsView {
        protocol: name,
        policy: in_force(&tip, name)?,
        settings: settings.collect(),
    })
}

/// The settings of a protocol.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProtocolSettings")]
pub(crate) struct SettingsView<'a> {
    /// the protocol
    protocol: &'a str,
    /// how it treats statements that the repository contradicts, and what was set in it
    policy: String,
    /// each setting
    settings: Vec<SettingView>,
}

/// A setting of a protocol.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Setting")]
struct SettingView {
    /// its key; `*` stands for a name
    key: String,
    /// its value; `default` if it is left out
    value: String,
    /// the values that it takes
    takes: String,
    /// what it sets
    about: &'static str,
}

impl Answer for SettingsView<'_> {
    fn text(&self, _: &Look) -> String {
        let rows = self.settings.iter().map(|setting| {
            let cells = [&*setting.key, &setting.value, &setting.takes, setting.about];
            cells.map(one_line).to_vec()
        });
        columns(&rows.collect::<Vec<_>>()) + &format!("in force: {}\n", self.policy)
    }
}

/// A change of a protocol.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProtocolChange")]
pub(crate) struct ChangeView<'a> {
    #[serde(flatten)]
    change: &'a ProtocolChange,
    /// fields that are checked less or more
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<ChangedFields>,
}

impl Answer for ChangeView<'_> {
    fn text(&self, _: &Look) -> String {
        let ProtocolChange {
            name,
            before,
            version,
            commit,
            kept,
            weaker,
            checks_less,
            changed,
            requires,
            checks_more,
            limited,
            open_issues,
        } = self.change;
        let mut text = match (commit, before) {
            (None, _) => {
                format!("protocol {name} {version} is already in force; nothing changed\n")
            }
            (Some(commit), None) => {
                format!(
                    "added protocol {name} {version}\n  commit {}\n",
                    commit.short()
                )
            }
            (Some(commit), Some(before)) => {
                format!(
                    "updated protocol {name} from {before} to {version}\n  commit {}\n",
                    commit.short()
                )
            }
        };
        for KeptSetting { key, value } in kept {
            text += &format!("  still set: {key} {value}\n");
        }
        let listed = |keys: &[String]| -> String {
            let keys = keys.iter().map(|key| match why_weaker(key) {
                Some(why) => format!("{key} ({why})"),
                None => key.clone(),
            });
            keys.collect::<Vec<_>>().join(", ")
        };
        let less = [
            ("checks less, on record", weaker),
            ("checks less than before", checks_less),
            ("changed", changed),
        ];
        for (what, keys) in less.iter().filter(|(_, keys)| !keys.is_empty()) {
            text += &format!("  {what}: {}\n", listed(keys));
        }
        let more = checks_more.iter().map(|one| match (one.before, one.now) {
            (Some(before), Some(now)) => format!("{} ({before} before, now {now})", one.key),
            (None, Some(now)) => format!("{} ({now})", one.key),
            (_, None) => one.key.clone(),
        });
        let more: Vec<String> = more.collect();
        if !more.is_empty() {
            text += &format!("  checks more than before: {}\n", more.join(", "));
        }
        for RequiredFields { contract, fields } in requires {
            text += &format!("  {contract} now requires {}\n", fields.join(", "));
        }
        for fields in &self.fields {
            text += &format!("  {}\n", fields.line());
        }
        for one in limited {
            let what = if one.stranded {
                "nothing can be sent in it"
            } else {
                "not all can be sent in it"
            };
            text += &format!(
                "  issue {} is beyond a limit, and {what}: {}\n",
                one.issue, one.limit
            );
        }
        if let Some(open) = open_issues.filter(|open| *open > 0) {
            let open = counted_as(open, "open issue", [" follows it", "s follow it"]);
            text += &format!("  {open}\n");
        }
        plain_lines(&text)
    }
}

/// Makes the values in generated lines safe to print.
fn plain_lines(text: &str) -> String {
    text.lines()
        .map(|line| format!("{}\n", plain(line)))
        .collect()
}
