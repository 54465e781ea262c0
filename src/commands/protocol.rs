use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use handoff_base::moment::rfc3339;
use handoff_base::text::{plain, quoted};
use handoff_ledger::{ProtocolChange, PutMode, open_issues};
use handoff_model::check_protocol;
use handoff_protocol::{Definition, Policy, SIGNERS, Signer, Signers, Style};
use handoff_templates::{BUILT_IN, built_in};
use serde_json::{Value, json};

use crate::args::protocols;
use crate::context::Context;
use crate::contracts::fields::fields;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Output, render};
use crate::view::columns;

/// List, show, check, copy, add and update protocols
///
/// A protocol is a folder of data: protocol.json, schemas and templates. A
/// ledger can hold several; each issue follows one. What is in force is kept in
/// the ledger, so that every step is checked against the definition of its time.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff protocol list
  git handoff protocol show issue-to-pr
  git handoff protocol copy issue-to-pr ./our-way     (a folder to start from)
  git handoff protocol check ./our-way
  git handoff protocol add ./our-way")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the protocols in force here, and the built-in ones
    #[command(after_help = "Example:\n  git handoff protocol list --json")]
    List,
    /// Show a protocol: its agents, routes, contract types and signers
    ///
    /// With --type, shows each field of a contract of that type. With --json,
    /// prints the whole definition, or the whole schema.
    #[command(after_help = "Examples:
  git handoff protocol show delegation
  git handoff protocol show issue-to-pr --type workflow-complete")]
    Show {
        /// A protocol in force here, a built-in one, or a folder; by default the
        /// one that new issues follow
        #[arg(value_name = "NAME|FOLDER")]
        name: Option<String>,
        /// Show the fields of a contract of this type
        #[arg(long = "type", value_name = "TYPE")]
        contract_type: Option<String>,
    },
    /// Check a protocol and report every fault
    ///
    /// Exits 1 if there is one.
    #[command(after_help = "Example:\n  git handoff protocol check ./our-way")]
    Check {
        /// One in force here, a built-in one, or a folder
        #[arg(value_name = "NAME|FOLDER")]
        name: String,
    },
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
    },
    /// Put a new version of a protocol in force
    ///
    /// Refused while an open handoff could not continue under it. Earlier steps
    /// are still checked against the version that was in force at the time.
    #[command(after_help = "Example:\n  git handoff protocol update ./our-way")]
    Update {
        /// A built-in one, or a folder
        #[arg(value_name = "NAME|FOLDER")]
        name: String,
    },
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        match &self.action {
            Action::List => list(context, output),
            Action::Show {
                name,
                contract_type,
            } => show(context, output, name.as_deref(), contract_type.as_deref()),
            Action::Check { name } => check(context, output, name),
            Action::Copy { name, folder } => copy(context, output, name, folder),
            Action::Add { name } => put(context, output, name, PutMode::Add),
            Action::Update { name } => put(context, output, name, PutMode::Update),
        }
    }
}

/// The files of a protocol in force, a built-in one or a folder.
fn files(context: &Context, name: &str) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    if let Ok(repository) = context.repository() {
        let ledger = context.ledger(&repository)?;
        if ledger.tip_id()?.is_some() {
            let tip = ledger.tip()?;
            if tip.protocols()?.iter().any(|known| known == name) {
                return Ok(tip.rules(name)?.files()?);
            }
        }
    }
    Ok(protocols::folder(name)?.into_files())
}

fn list(context: &Context, output: &mut Output) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let mut data: Vec<Value> = Vec::new();
    let repository = context.repository().ok();
    if let Some(repository) = &repository {
        let ledger = context.ledger(repository)?;
        if ledger.tip_id()?.is_some() {
            let tip = ledger.tip()?;
            for name in tip.protocols()? {
                let rules = tip.rules(&name)?;
                let definition = rules.protocol().definition();
                let is_default = tip.manifest().default_protocol.as_str() == name;
                let issues = open_issues(&tip, &name)?;
                let standing = if is_default { "default" } else { "in force" };
                rows.push(row(definition, standing));
                data.push(json!({"name": name, "version": definition.version, "title": definition.title,
                    "style": definition.style, "in_force": true, "default": is_default, "open_issues": issues}));
            }
        }
    }
    for name in BUILT_IN {
        if data.iter().any(|known| known["name"] == name) {
            continue;
        }
        let protocol = protocols::load(&built_in(name).unwrap_or_default())?;
        let definition = protocol.definition();
        rows.push(row(definition, "built in"));
        data.push(
            json!({"name": name, "version": definition.version, "title": definition.title,
            "style": definition.style, "in_force": false, "default": false, "open_issues": 0}),
        );
    }
    output.answer(&json!({ "protocols": data }), &columns(&rows))
}

fn row(definition: &Definition, standing: &str) -> Vec<String> {
    vec![
        definition.name.to_string(),
        plain(&definition.version),
        standing.to_owned(),
        plain(&definition.title),
    ]
}

fn show(
    context: &Context,
    output: &mut Output,
    name: Option<&str>,
    contract_type: Option<&str>,
) -> Result<(), Failure> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => {
            let repository = context.repository()?;
            let tip = context.ledger(&repository)?.tip()?;
            tip.manifest().default_protocol.to_string()
        }
    };
    let files = files(context, &name)?;
    let definition = files.iter().find(|(path, _)| path == "protocol.json");
    let bytes = definition
        .map(|(_, bytes)| bytes.as_slice())
        .unwrap_or_default();
    let protocol = protocols::parse(bytes)?;
    if let Some(contract_type) = contract_type {
        return show_type(output, protocol.definition(), &files, contract_type);
    }
    let data: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let signers = files.iter().find(|(path, _)| path == SIGNERS);
    let (signers, _) = Signers::parse(signers.map_or(&[], |(_, bytes)| bytes));
    let listed: Vec<Value> = signers.iter().map(signer).collect();
    let mut text = described(protocol.definition());
    if !signers.is_empty() {
        text += "\nsigners (every step must be signed)\n";
        let rows = signers.iter().map(|line| {
            let from = line.valid_after.map(|at| format!("from {}", rfc3339(at)));
            let until = line.valid_before.map(|at| format!("until {}", rfc3339(at)));
            let valid: Vec<String> = from.into_iter().chain(until).collect();
            vec![
                format!("  {}", plain(&line.principals)),
                line.key.kind(),
                line.key.fingerprint(),
                valid.join(" "),
            ]
        });
        text += &columns(&rows.collect::<Vec<_>>());
    }
    output.answer(&json!({ "definition": data, "signers": listed }), &text)
}

/// Shows the fields of a contract type.
fn show_type(
    output: &mut Output,
    definition: &Definition,
    files: &[(String, Vec<u8>)],
    name: &str,
) -> Result<(), Failure> {
    let mut types = definition.contracts.iter();
    let Some(kind) = types.find(|kind| kind.name == name) else {
        let known: Vec<&str> = definition
            .contracts
            .iter()
            .map(|k| k.name.as_str())
            .collect();
        let text = format!("{} has no contract type {}", definition.name, quoted(name));
        return Err(Failure::new(ErrorCode::NoType, text).hint(format!(
            "it has: {}; use `git handoff protocol show {}` to see which agents send them",
            known.join(", "),
            definition.name
        )));
    };
    let schema = files.iter().find(|(path, _)| *path == kind.schema);
    let schema = schema.map_or(&[][..], |(_, bytes)| bytes);
    let schema: Value = serde_json::from_slice(schema).unwrap_or_default();
    let found = fields(&schema);
    let rows = found.iter().map(|field| {
        let needed = if field.required {
            "required"
        } else {
            "optional"
        };
        let cells = [&field.path, needed, &field.holds, &field.about];
        cells.map(plain).to_vec()
    });
    let text = format!(
        "{name}\n{}in XML, some fields are attributes or element text: `git handoff new` shows which\n",
        columns(&rows.collect::<Vec<_>>())
    );
    let data = json!({ "type": name, "fields": found, "definition": schema });
    output.answer(&data, &text)
}

/// A line of `allowed_signers` as data.
fn signer(line: &Signer) -> Value {
    json!({
        "principals": line.principals,
        "type": line.key.kind(),
        "fingerprint": line.key.fingerprint(),
        "valid_after": line.valid_after.map(rfc3339),
        "valid_before": line.valid_before.map(rfc3339),
    })
}

/// A protocol as a page of text.
fn described(definition: &Definition) -> String {
    let style = match definition.style {
        Style::Relay => "relay: sending on completes the handoff that the sender held",
        Style::Call => "call: the receiver of a request answers its requester",
    };
    let mut text = format!(
        "{} {}: {}\n  {style}\n  formats: {}\n\nagents\n",
        definition.name,
        plain(&definition.version),
        plain(&definition.title),
        definition.formats.join(", "),
    );
    let agents = definition.agents.iter().map(|agent| {
        let phase = agent.phase.map(|p| p.to_string()).unwrap_or_default();
        let mut role = agent.role.clone();
        if !agent.aliases.is_empty() {
            role += &format!(" (also {})", agent.aliases.join(", "));
        }
        if !agent.allowed.is_empty() {
            role += &format!("; may: {}", agent.allowed.join(", "));
        }
        if !agent.forbidden.is_empty() {
            role += &format!("; must not: {}", agent.forbidden.join(", "));
        }
        if !agent.paths.is_empty() {
            role += &format!("; may change: {}", agent.paths.join(", "));
        }
        vec![
            format!("  {}", agent.id),
            agent.kind.as_str().to_owned(),
            phase,
            plain(&role),
        ]
    });
    text += &columns(&agents.collect::<Vec<_>>());
    text += "\nroutes\n";
    let routes = definition.routes.iter().map(|route| {
        let mut remarks = Vec::new();
        remarks.extend(route.opens.then(|| "opens an issue".to_owned()));
        remarks.extend(route.via.as_ref().map(|via| format!("{via} decides first")));
        vec![
            format!("  {} → {}", route.from, route.to),
            route.contracts.join(", "),
            remarks.join("; "),
        ]
    });
    text += &columns(&routes.collect::<Vec<_>>());
    if !definition.forbidden.is_empty() {
        text += "\nforbidden\n";
        let rows = definition
            .forbidden
            .iter()
            .map(|f| vec![format!("  {} → {}", f.from, f.to), plain(&f.reason)]);
        text += &columns(&rows.collect::<Vec<_>>());
    }
    text += "\ncontract types\n";
    let types = definition.contracts.iter().map(|kind| {
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
            plain(&kind.title),
            remarks.join("; "),
        ]
    });
    text += &columns(&types.collect::<Vec<_>>());
    if let Some(evidence) = &definition.evidence {
        text += "\nclaims about the repository\n";
        let policy = evidence.policy.map_or("set by the ledger", Policy::as_str);
        let all = [("all".to_owned(), policy)].into_iter();
        let own = evidence
            .checks
            .iter()
            .map(|(c, p)| (c.as_str().to_owned(), p.as_str()));
        let rows = all
            .chain(own)
            .map(|(check, policy)| vec![format!("  {check}"), policy.to_owned()]);
        text += &columns(&rows.collect::<Vec<_>>());
    }
    if !definition.errors.is_empty() {
        text += "\nerror codes\n";
        let codes = definition.errors.iter();
        let rows = codes.map(|(code, error)| {
            vec![
                format!("  {}", plain(code)),
                plain(&format!("{}; {}", error.meaning, error.recovery)),
            ]
        });
        text += &columns(&rows.collect::<Vec<_>>());
    }
    if !definition.documents.is_empty() {
        text += "\nshared documents\n";
        let rows = definition
            .documents
            .iter()
            .map(|(name, document)| vec![format!("  {name}"), plain(&document.title)]);
        text += &columns(&rows.collect::<Vec<_>>());
    }
    text
}

fn check(context: &Context, output: &mut Output, name: &str) -> Result<(), Failure> {
    let files = files(context, name)?;
    let findings = check_protocol(&files);
    let count = findings.iter().filter(|f| f.is_error()).count();
    if count == 0 {
        let data = json!({ "protocol": name, "files": files.len(), "findings": findings });
        let mut text = format!("{}: sound ({} files)\n", plain(name), files.len());
        text.extend(findings.iter().map(render));
        return output.answer(&data, &text);
    }
    let plural = if count == 1 { "fault" } else { "faults" };
    if !output.is_json() {
        let mut text = format!("{}: {count} {plural}\n", plain(name));
        text.extend(findings.iter().map(render));
        output.raw(text.as_bytes())?;
        return Err(Failure::reported(exit::NO));
    }
    let text = format!("{count} {plural} found");
    Err(Failure::new(ErrorCode::ProtocolFaults, text)
        .advice("fix what the findings name and check again")
        .findings(findings))
}

fn copy(context: &Context, output: &mut Output, name: &str, folder: &Path) -> Result<(), Failure> {
    let files = files(context, name)?;
    let unusable = |error: &std::io::Error| {
        let text = format!("{} cannot be written: {error}", folder.display());
        Failure::new(ErrorCode::Output, text)
    };
    let taken = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if taken || folder.is_file() {
        let text = format!("{} exists and is not an empty folder", folder.display());
        return Err(Failure::usage(text).advice("name a new folder"));
    }
    for (path, bytes) in &files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|e| unusable(&e))?;
    }
    let shown = folder.display();
    let data = json!({ "protocol": name, "folder": shown.to_string(), "files": files.len() });
    output.answer(
        &data,
        &format!("{name}: {} files in {shown}\n", files.len()),
    )?;
    output.say(&format!(
        "next: edit the files (change `name` to add it as another protocol), then git handoff protocol check {shown}"
    ));
    Ok(())
}

fn put(context: &Context, output: &mut Output, name: &str, change: PutMode) -> Result<(), Failure> {
    let files = protocols::folder(name)?.into_files();
    let repository = context.repository()?;
    let (mut ledger, session) = context.writer(&repository, output)?;
    let done = ledger.put_protocol(&session, &files, change)?;
    output.follow(&ledger);
    let ProtocolChange {
        name,
        before,
        version,
        commit,
    } = &done;
    let text = match (commit, before) {
        (None, _) => format!("protocol {name} {version} is already in force; nothing changed\n"),
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
    let data = json!({
        "protocol": name,
        "before": before,
        "version": version,
        "commit": commit.map(|c| c.to_string()),
    });
    output.answer(&data, &plain_lines(&text))
}

/// Makes the values in our own lines safe to print.
fn plain_lines(text: &str) -> String {
    text.lines()
        .map(|line| format!("{}\n", plain(line)))
        .collect()
}
