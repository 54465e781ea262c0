use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Args, Subcommand};
use handoff::base::finding::Finding;
use handoff::base::ids::AgentName;
use handoff::base::text::{continued, plain};
use handoff::git::{Program, Queue, Repository};
use handoff_agents::harness::{
    Action, Acts, Change, HARNESSES, Harness, Plan, Surroundings, examine, is_installed,
};
use handoff_agents::prime::session_hook::{self, When};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::{Context, worktree};
use crate::environment::{found_by_shell, home, own_version, version_of, version_text};
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output, counted, render};
use crate::view::{Look, columns};

/// Install what agent harnesses read from the repository, and check whether it would run
///
/// Each harness gets a skill, a marked block in its instructions file, and hooks in its own
/// configuration. When a session begins, the hooks show the agent the output of `prime`; if it
/// stops while it holds a handoff, they ask it once to continue. Everything else in these files
/// stays unchanged, byte for byte.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff agents list
  git handoff agents install claude-code --dry-run
  git handoff agents install claude-code --mcp
  git handoff agents doctor claude-code
  git handoff agents uninstall claude-code")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Install what harnesses read
    ///
    /// Installs everything or nothing: if a file is in the way, nothing changes. Sessions act as the
    /// agent in GIT_HANDOFF_AGENT or the configuration. With --as, the hooks and servers name that
    /// agent: once they are committed, every session acts as it.
    #[command(after_help = "Example:\n  git handoff agents install codex cursor --mcp")]
    Install {
        #[command(flatten)]
        which: Which,
        /// Also add git-handoff as an MCP server, if the harness reads that from the repository
        #[arg(long)]
        mcp: bool,
        /// Only show what would change
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove what was installed, and leave every file as it was before
    #[command(after_help = "Example:\n  git handoff agents uninstall codex --dry-run")]
    Uninstall {
        #[command(flatten)]
        which: Which,
        /// Only show what would change
        #[arg(long)]
        dry_run: bool,
    },
    /// List the harnesses and the files that each reads
    #[command(after_help = "Example:\n  git handoff agents list --json")]
    List,
    /// Report what would silently not run, and how to fix it; exits 1 if anything would not
    #[command(after_help = "Example:\n  git handoff agents doctor claude-code")]
    Doctor {
        /// The harnesses; by default, all that something is installed for
        #[arg(value_name = "NAME", value_parser = names())]
        names: Vec<String>,
    },
    /// Run a harness's hook
    ///
    /// Hooks call this. It reads the harness's input on standard input, prints what the harness
    /// reads, and always exits 0, so that it never breaks a session.
    #[command(after_help = "Example:\n  git handoff agents hook claude-code stop < input.json")]
    Hook {
        /// The harness
        #[arg(value_name = "NAME")]
        name: String,
        /// The event that triggers the hook
        #[arg(value_name = "EVENT")]
        event: When,
    },
}

/// The harnesses to act on.
#[derive(Args)]
struct Which {
    /// The harnesses
    #[arg(value_name = "NAME", required = true, value_parser = names())]
    names: Vec<String>,
}

pub(super) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(HARNESSES.iter().map(|h| h.name.as_str()))
}

/// The question for a harness, if `agents install` or `uninstall` names none that there is.
pub(crate) fn which(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let kinds = [ErrorKind::MissingRequiredArgument, ErrorKind::InvalidValue];
    let verbs = ["install", "uninstall"];
    let mut verbs = verbs.iter().filter(|verb| {
        let mut pairs = arguments.windows(2);
        pairs.any(|pair| pair[0] == "agents" && pair[1] == **verb)
    });
    let verb = verbs.next().filter(|_| kinds.contains(&error.kind()))?;
    let names: Vec<&str> = HARNESSES.iter().map(|h| h.name.as_str()).collect();
    Some(format!(
        "which harness? Name it, such as `git handoff agents {verb} claude-code`; there are: {}",
        names.join(", ")
    ))
}

fn harnesses(names: &[String]) -> Vec<&'static Harness> {
    let found = names.iter().filter_map(|name| Harness::find(name));
    found.collect()
}

impl Arguments {
    /// Returns whether this is the run of a harness's hook, which must never fail.
    pub(crate) fn is_hook(&self) -> bool {
        matches!(self.verb, Verb::Hook { .. })
    }

    /// Returns whether the command changes nothing.
    pub(crate) fn only_reads(&self) -> bool {
        matches!(
            self.verb,
            Verb::List | Verb::Doctor { .. } | Verb::Hook { .. }
        )
    }

    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        match &self.verb {
            Verb::List => list(output),
            Verb::Hook { name, event } => {
                // A closed pipe means that nobody reads the answer.
                let _ = session_hook::answer(context, output, name, *event);
                Ok(())
            }
            Verb::Install {
                which,
                mcp,
                dry_run,
            } => {
                let repository = context.repository()?;
                let root = worktree(&repository)?;
                let agent = context
                    .named_agent()
                    .map(str::parse::<AgentName>)
                    .transpose()?;
                // Reject an invalid branch name now, before the hooks use it.
                context.ledger(&repository)?;
                let acts = Acts {
                    agent: agent.map(|agent| agent.to_string()),
                    branch: context.branch().map(str::to_owned),
                };
                let _turn = turn(&repository, *dry_run)?;
                let harnesses = harnesses(&which.names);
                let plan = Plan::install(&root, &harnesses, &acts, *mcp)?;
                finish(plan, *dry_run, output)?;
                if let Some(agent) = &acts.agent {
                    let set = repository.setting_command("handoff.agent AGENT");
                    output.say(&format!(
                        "these files name {agent}: whoever gets them with a commit acts as it; without --as, GIT_HANDOFF_AGENT or `{set}` says who a session is"
                    ));
                }
                for harness in harnesses {
                    if let Some(note) = &harness.note {
                        output.say(&format!("{}: {note}", harness.name));
                    }
                    if *mcp && harness.mcp.is_none() {
                        output.say(&format!(
                            "{}: it reads MCP servers only from the user's configuration: add one named git-handoff there, with the command `git-handoff mcp`",
                            harness.name
                        ));
                    }
                }
                output.say(&format!(
                    "check whether it would run: git handoff agents doctor {}",
                    which.names.join(" ")
                ));
                Ok(())
            }
            Verb::Uninstall { which, dry_run } => {
                let repository = context.repository()?;
                let root = worktree(&repository)?;
                let _turn = turn(&repository, *dry_run)?;
                let plan = Plan::uninstall(&root, &harnesses(&which.names))?;
                finish(plan, *dry_run, output)
            }
            Verb::Doctor { names } => doctor(context, output, &harnesses(names)),
        }
    }
}

/// Locks the files that harnesses share; a dry run needs no lock.
fn turn(repository: &Repository, dry_run: bool) -> Result<Option<Queue>, Failure> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let turn = (!dry_run).then(|| Queue::join(repository.common_dir(), "agents.lock", PATIENCE));
    if turn.as_ref().is_some_and(Queue::is_taken) {
        let text = "another `agents install` or `uninstall` is running here";
        return Err(Failure::new(ErrorCode::AgentsBusy, text)
            .hint("nothing was changed; run the same command again when it is done"));
    }
    Ok(turn)
}

/// Installs what some harnesses read, or all of them; returns each changed file, with what was done.
pub(super) fn install(
    context: &Context,
    repository: &Repository,
    names: &[String],
) -> Result<Vec<String>, Failure> {
    // Shared files name no agent unless one was requested.
    let acts = Acts {
        agent: None,
        branch: context.branch().map(str::to_owned),
    };
    let _turn = turn(repository, false)?;
    let root = worktree(repository)?;
    let all = HARNESSES.iter().collect();
    let named = if names.is_empty() {
        all
    } else {
        harnesses(names)
    };
    let plan = Plan::install(&root, &named, &acts, false)?;
    carried_out(plan)
}

/// Removes what any harness reads; returns each changed file, with what was done.
pub(super) fn uninstall(repository: &Repository) -> Result<Vec<String>, Failure> {
    if repository.workdir().is_none() {
        return Ok(Vec::new());
    }
    let _turn = turn(repository, false)?;
    let root = worktree(repository)?;
    let plan = Plan::uninstall(&root, &installed(&root))?;
    carried_out(plan)
}

fn carried_out(plan: Plan) -> Result<Vec<String>, Failure> {
    let files = files(&plan);
    plan.carry_out()?;
    let changed = files.iter().filter(|file| file.action != Action::Keep);
    let line = |file: &AgentFileChange| {
        let done = match file.action {
            Action::Create => "created",
            Action::Remove => "removed",
            Action::Keep | Action::Change => "changed",
        };
        format!("{}: {done}", file.path)
    };
    Ok(changed.map(line).collect())
}

fn list(output: &mut Output) -> Result<(), Failure> {
    let harnesses = HARNESSES.iter().map(|h| ListedHarness {
        name: &h.name,
        title: &h.title,
        instructions: &h.instructions,
        skill: h.skill.as_deref(),
        hooks: h.hooks.as_ref().map(|hooks| hooks.file.as_str()),
        mcp: h.mcp.as_ref().map(|mcp| mcp.file.as_str()),
    });
    let harnesses = harnesses.collect();
    output.answer(&AgentsListView { harnesses })
}

/// The harnesses, and the files that each reads.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentsList")]
pub(crate) struct AgentsListView {
    /// each harness
    harnesses: Vec<ListedHarness>,
}

/// A harness, and the files that it reads.
#[derive(Serialize, JsonSchema)]
struct ListedHarness {
    /// its name in commands
    name: &'static str,
    /// its own name
    title: &'static str,
    /// the path of its instructions
    instructions: &'static str,
    /// the path of the skill; null if it reads none
    skill: Option<&'static str>,
    /// the path of its hooks; null if it has none
    hooks: Option<&'static str>,
    /// the path of its configuration of MCP servers; null if there is none
    mcp: Option<&'static str>,
}

impl Answer for AgentsListView {
    fn text(&self, _: &Look) -> String {
        let rows = self.harnesses.iter().map(|h| {
            let cells = [h.name, h.title, h.instructions, h.hooks.unwrap_or_default()];
            cells.map(str::to_owned).to_vec()
        });
        columns(&rows.collect::<Vec<_>>())
    }
}

/// Executes a plan, unless this is a dry run, and prints the actions.
fn finish(plan: Plan, dry_run: bool, output: &mut Output) -> Result<(), Failure> {
    let files = files(&plan);
    if !dry_run {
        plan.carry_out()?;
    }
    output.answer(&AgentsChangeView { dry_run, files })
}

fn files(plan: &Plan) -> Vec<AgentFileChange> {
    let file = |change: &Change| AgentFileChange {
        path: change.path.clone(),
        action: change.action(),
        difference: change.difference(),
    };
    plan.changes().iter().map(file).collect()
}

/// The changes to files that harnesses read, done or planned.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentsChange")]
pub(crate) struct AgentsChangeView {
    /// whether nothing was written
    dry_run: bool,
    /// each file
    files: Vec<AgentFileChange>,
}

/// The change to a file.
#[derive(Serialize, JsonSchema)]
struct AgentFileChange {
    /// its path
    path: String,
    /// what is done about it
    action: Action,
    /// What changes, in lines that begin with `+` or `-`.
    #[serde(skip)]
    difference: String,
}

impl Answer for AgentsChangeView {
    fn text(&self, _: &Look) -> String {
        let mut text = String::new();
        for change in &self.files {
            let done = match (change.action, self.dry_run) {
                (Action::Keep, _) => "is up to date",
                (Action::Create, false) => "created",
                (Action::Change, false) => "changed",
                (Action::Remove, false) => "removed",
                (Action::Create, true) => "would be created",
                (Action::Change, true) => "would be changed",
                (Action::Remove, true) => "would be removed",
            };
            text += &format!("{}: {done}\n", continued(&change.path));
            if self.dry_run {
                for line in change.difference.lines() {
                    text += &format!("  {}\n", plain(line));
                }
            }
        }
        if self.dry_run {
            text += "this is a dry run: nothing was written\n";
        }
        text
    }
}

/// The faults of what is installed for harnesses.
pub(super) fn faults(context: &Context, repository: &Repository) -> Result<Vec<Finding>, Failure> {
    let examined = examined(context, repository, &[])?.into_iter();
    Ok(examined.flat_map(|harness| harness.findings).collect())
}

fn doctor(
    context: &Context,
    output: &mut Output,
    harnesses: &[&'static Harness],
) -> Result<(), Failure> {
    let repository = context.repository()?;
    let examined = examined(context, &repository, harnesses)?;
    let view = AgentsDoctorView {
        faults: examined.iter().map(ExaminedHarness::faults).sum(),
        harnesses: examined,
    };
    output.answer(&view)?;
    match view.faults {
        0 => Ok(()),
        _ => Err(Failure::reported(exit::NO)),
    }
}

fn examined(
    context: &Context,
    repository: &Repository,
    harnesses: &[&'static Harness],
) -> Result<Vec<ExaminedHarness>, Failure> {
    let root = worktree(repository)?;
    let git = Program::new(repository);
    let named = match harnesses {
        [] => installed(&root),
        named => named.to_vec(),
    };
    let harnesses = &named[..];
    let program = found_by_shell("git-handoff");
    let paths: Vec<String> = harnesses
        .iter()
        .flat_map(|harness| harness.files())
        .map(str::to_owned)
        .collect();
    let mut around = Surroundings {
        program: program.map(|path| {
            let version = version_of(&path);
            (path, version)
        }),
        version: own_version().to_owned(),
        home: home(),
        agent: context.agent(repository)?.map(|agent| agent.to_string()),
        agents: agents_of(context, repository),
        harness_program: None,
        ignored: git.ignored(&paths).unwrap_or_default(),
        root,
    };
    let examined = harnesses.iter().map(|harness| {
        let program = harness.program.as_ref();
        let path = program.and_then(|program| found_by_shell(&program.name));
        around.harness_program = path.and_then(|path| version_text(&path));
        ExaminedHarness {
            name: &harness.name,
            findings: examine(harness, &around),
            note: harness.note.as_deref(),
        }
    });
    Ok(examined.collect())
}

/// The harnesses, each with its faults.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentsDoctor")]
pub(crate) struct AgentsDoctorView {
    /// each harness
    harnesses: Vec<ExaminedHarness>,
    /// how many of the findings are errors: exit 1 if there are any
    faults: usize,
}

/// The findings about a harness.
#[derive(Serialize, JsonSchema)]
struct ExaminedHarness {
    /// its name in commands
    name: &'static str,
    /// what would not run, and why
    findings: Vec<Finding>,
    /// a required step that no file shows, if there is one
    note: Option<&'static str>,
}

impl ExaminedHarness {
    fn faults(&self) -> usize {
        self.findings.iter().filter(|f| f.is_error()).count()
    }
}

impl Answer for AgentsDoctorView {
    fn text(&self, _: &Look) -> String {
        let mut text = String::new();
        for harness in &self.harnesses {
            text += &match harness.faults() {
                0 => format!("{}: would run\n", harness.name),
                faults => format!("{}: {}\n", harness.name, counted(faults, "fault")),
            };
            text.extend(harness.findings.iter().map(render));
            if let Some(note) = harness.note {
                text += &format!("  {note}\n");
            }
        }
        if self.harnesses.is_empty() {
            text += "nothing is installed for any harness: see `git handoff agents install -h`\n";
        }
        text
    }
}

/// The harnesses that something is installed for.
fn installed(root: &Path) -> Vec<&'static Harness> {
    let all = HARNESSES.iter();
    all.filter(|harness| is_installed(harness, root)).collect()
}

/// The agents that the ledger's protocols know; `None` if there is no ledger.
fn agents_of(context: &Context, repository: &Repository) -> Option<Vec<String>> {
    let tip = context.ledger(repository).ok()?.tip().ok()?;
    let mut agents = Vec::new();
    for name in tip.protocols().ok()? {
        let rules = tip.rules(&name).ok()?;
        for agent in &rules.protocol().definition().agents {
            agents.push(agent.id.to_string());
            agents.extend(agent.aliases.iter().cloned());
        }
    }
    Some(agents)
}
