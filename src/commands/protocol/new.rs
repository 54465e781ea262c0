//! A new protocol's files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use handoff::base::finding::Finding;
use handoff::base::ids::{AgentName, IdError};
use handoff::base::text::{counted, one_line, word};
use handoff::model::NO_CLAIMS;
use handoff::protocol::{AgentKind, Protocol};
use handoff::templates::{ADDED, BUILT_IN, Folder, check_folder, file_part, relay, renamed};
use schemars::JsonSchema;
use serde::Serialize;

use super::files;
use crate::args::protocols;
use crate::context::Context;
use crate::failure::{ErrorCode, Failure, hint};
use crate::output::replace::ensure_no_git_directory;
use crate::output::{Answer, Output};
use crate::view::Look;

/// Make the folder of a new protocol
///
/// Without --from, it is a relay: each agent hands on to the next, and the last one ends the issue;
/// whoever fails or is blocked reports to an orchestrator. There is a schema and a template for each
/// contract type. With --from, it is a copy of another protocol, whose agents --agents renames.
///
/// The protocol is sound as it is. Say what your contracts hold in its schemas and templates.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff protocol new press --agents writer,editor,printer
  git handoff protocol new our-way --from issue-to-pr ./protocols/our-way
  git handoff protocol new studio --from directive --agents scout,sketcher,maker")]
pub(super) struct New {
    /// The protocol's name
    #[arg(value_name = "NAME")]
    name: String,
    /// The folder, which must be new or empty [default: ./NAME]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// The agents in the order of the work, with commas between them; with --from, the new names of
    /// its specialists
    #[arg(
        long,
        value_name = "AGENTS",
        value_delimiter = ',',
        required_unless_present = "from"
    )]
    agents: Vec<String>,
    /// Start from a copy of this protocol: one in force here, a built-in one, or a folder
    #[arg(long, value_name = "NAME|FOLDER")]
    from: Option<String>,
}

impl New {
    pub(super) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let name = self.checked_name()?;
        let agents = self.checked_agents()?;
        let made = match &self.from {
            Some(from) => copied(context, output, from, &name, &agents)?,
            None => {
                ensure_a_relay(&name, &agents)?;
                relay(&name, &agents)
            }
        };
        let files = made.clone().into_files();
        let findings = check_folder(&files);
        if findings.iter().any(Finding::is_error) {
            let text = format!("{name} would not be sound");
            return Err(Failure::new(ErrorCode::ProtocolFaults, text)
                .hint("nothing was written; use other names")
                .findings(findings));
        }
        let protocol = protocols::load(name.as_str(), &made)?;
        let folder = self.folder.clone();
        let folder = folder.unwrap_or_else(|| Path::new(".").join(name.as_str()));
        write_folder(&folder, &files)?;
        let shown = folder.display().to_string();
        let agents = protocol.definition().agents.iter();
        output.answer(&ProtocolNewView {
            folder: shown.clone(),
            agents: agents.map(|agent| agent.id.clone()).collect(),
            files: files.into_iter().map(|(path, _)| path).collect(),
            protocol: name,
        })?;
        if protocol.definition().claims_nothing() {
            output.say(&format!(
                "{NO_CLAIMS}: see `git handoff explain protocol.claims`"
            ));
        }
        let folder = protocols::as_folder(&shown);
        let folder = word(&folder);
        output.say("next, as it is and after each edit:");
        output.say(&format!("  git handoff protocol check {folder}"));
        if cfg!(feature = "trial") {
            output.say(&format!("  git handoff protocol test {folder}"));
        }
        output.say("then, to use it:");
        let use_it = if has_ledger(context)? {
            "protocol add"
        } else {
            "init --protocol"
        };
        output.say(&format!("  git handoff {use_it} {folder}"));
        Ok(())
    }

    fn checked_name(&self) -> Result<AgentName, Failure> {
        let name: AgentName = self.name.parse().map_err(|error: IdError| {
            Failure::usage(error.of("protocol name").to_string()).hint(
                "use a name such as in `git handoff protocol new our-way --agents writer,editor`",
            )
        })?;
        if BUILT_IN.contains(&name.as_str()) {
            let text = format!("{name} is a built-in protocol");
            return Err(Failure::usage(text).hint(hint!("use another name: `git handoff protocol new our-{} --from {}`; `git handoff protocol copy {} FOLDER` keeps the name, for a new version", name, name, name)));
        }
        Ok(name)
    }

    fn checked_agents(&self) -> Result<Vec<AgentName>, Failure> {
        let mut agents: Vec<AgentName> = Vec::new();
        for name in &self.agents {
            let agent: AgentName = name.trim().parse().map_err(|error: IdError| {
                let text = format!("--agents: {error}");
                Failure::usage(text).hint(
                    "use names such as in `git handoff protocol new press --agents writer,editor`",
                )
            })?;
            // Two files can't have the same name, even on a case-insensitive file system.
            let part = |agent: &AgentName| file_part(agent.as_str()).to_lowercase();
            if let Some(other) = agents.iter().find(|other| part(other) == part(&agent)) {
                let text = if *other == agent {
                    format!("--agents names {agent} twice")
                } else {
                    format!("--agents: {other} and {agent} would share their files")
                };
                return Err(Failure::usage(text).hint(hint!(
                    "use another name for one of them, as in `git handoff protocol new {} --agents writer,editor`",
                    self.name
                )));
            }
            agents.push(agent);
        }
        Ok(agents)
    }
}

/// Whether there is a ledger here.
fn has_ledger(context: &Context) -> Result<bool, Failure> {
    let Ok(repository) = context.repository() else {
        return Ok(false);
    };
    Ok(context.ledger(&repository)?.tip_id()?.is_some())
}

/// Refuses agents that make no relay: fewer than two, or one that every relay has anyway.
fn ensure_a_relay(name: &AgentName, agents: &[AgentName]) -> Result<(), Failure> {
    let again = format!("`git handoff protocol new {name} --agents writer,editor`");
    if agents.len() < 2 {
        let text = "work is handed on between two agents or more";
        return Err(Failure::usage(text).hint(format!("name them all: {again}")));
    }
    let added = agents.iter().find(|agent| {
        let is_same = |added: &&str| added.eq_ignore_ascii_case(agent.as_str());
        ADDED.iter().any(is_same)
    });
    if let Some(agent) = added {
        let text = format!("--agents: every relay has {} already", ADDED.join(" and "));
        return Err(Failure::usage(text).hint(format!("leave {agent} out, such as in {again}")));
    }
    Ok(())
}

/// A copy of a protocol, with its specialists renamed if new names are given.
fn copied(
    context: &Context,
    output: &mut Output,
    from: &str,
    name: &AgentName,
    agents: &[AgentName],
) -> Result<Folder, Failure> {
    let files = files(context, output, from)?;
    let definition = files.iter().find(|(path, _)| path == "protocol.json");
    let protocol = protocols::parse(from, definition.map_or(&[][..], |(_, bytes)| bytes))?;
    let renames = renames(&protocol, agents).map_err(|text| {
        Failure::usage(format!("--agents: {text}")).hint(hint!(
            "leave --agents out to keep the names: `git handoff protocol new {} --from {}`",
            name,
            protocols::again(from)
        ))
    })?;
    renamed(&files, name, &renames).map_err(|error| {
        let text = format!(
            "{} can't be copied under another name: {error}",
            one_line(from)
        );
        Failure::new(ErrorCode::ProtocolRefused, text).hint(hint!(
            "`git handoff protocol check {}` lists every fault",
            protocols::again(from)
        ))
    })
}

/// The new name of each specialist, in order; an error if the names don't match.
fn renames<'p>(
    protocol: &'p Protocol,
    agents: &'p [AgentName],
) -> Result<BTreeMap<&'p str, &'p str>, String> {
    if agents.is_empty() {
        return Ok(BTreeMap::new());
    }
    let all = protocol.definition().agents.iter();
    let (renamed, kept): (Vec<_>, Vec<_>) =
        all.partition(|agent| agent.kind == AgentKind::Specialist);
    if renamed.len() != agents.len() {
        let names: Vec<&str> = renamed.iter().map(|agent| agent.id.as_str()).collect();
        return Err(format!(
            "{} has {} specialists, and each needs a name: {}",
            protocol.name(),
            names.len(),
            names.join(", ")
        ));
    }
    for agent in agents {
        let is_own = |name: &str| name.eq_ignore_ascii_case(agent.as_str());
        let mut kept = kept.iter();
        if kept.any(|kept| is_own(kept.id.as_str()) || kept.aliases.iter().any(|a| is_own(a))) {
            return Err(format!(
                "{} has another agent called {agent}",
                protocol.name()
            ));
        }
    }
    let old = renamed.into_iter().map(|agent| agent.id.as_str());
    Ok(old.zip(agents.iter().map(AgentName::as_str)).collect())
}

/// Writes a protocol's files to a new or empty folder.
///
/// # Errors
/// A [`Failure`] if it is neither, or can't be written.
pub(super) fn write_folder(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<(), Failure> {
    ensure_no_git_directory(folder)?;
    let taken = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if taken || folder.is_file() {
        let text = format!("{} exists and is not an empty folder", folder.display());
        return Err(Failure::usage(text).hint("name a new folder"));
    }
    for (path, bytes) in files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|error| {
                let text = format!("{} cannot be written: {error}", folder.display());
                Failure::new(ErrorCode::Output, text)
            })?;
    }
    Ok(())
}

/// A new protocol.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProtocolNew")]
pub(crate) struct ProtocolNewView {
    /// its name
    protocol: AgentName,
    /// its agents, in their order
    agents: Vec<AgentName>,
    /// its folder
    folder: String,
    /// the files that were written, by their paths in the folder
    files: Vec<String>,
}

impl Answer for ProtocolNewView {
    fn text(&self, _: &Look) -> String {
        let agents: Vec<&str> = self.agents.iter().map(AgentName::as_str).collect();
        let mut text = format!(
            "{}: {}\n{} in {}\n",
            self.protocol,
            agents.join(", "),
            counted(self.files.len(), "file"),
            one_line(&self.folder)
        );
        for path in &self.files {
            text += &format!("  {}\n", one_line(path));
        }
        text
    }
}
