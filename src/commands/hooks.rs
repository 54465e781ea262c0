use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::text::{continued, plain};
use handoff::git::{Program, Repository};
use handoff_cli::hooks::{
    Action, CarryOutError, Hook, HooksFolder, HooksPath, InstallMethod, Plan, PlanError, Report,
    State, Surroundings, WriteError,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::environment::found_on_path;
use crate::failure::{ErrorCode, Failure, chain};
use crate::output::{Answer, Output, render};
use crate::view::{Look, columns};

/// The settings about hooks, by git's names.
const SETTINGS: &str = "^(core\\.hookspath$|hook\\.)";

/// Install or uninstall the Git hooks, and show whether they would run
///
/// In a hook that you already have, this adds a marked block below the first line, and everything
/// else in the file stays unchanged. If git takes hooks from its configuration (2.54 and later),
/// the configuration is used instead. The default hooks are pre-commit, commit-msg, pre-push and
/// reference-transaction; in a bare repository, or with --server, pre-receive. Use update if
/// pre-receive is taken. core.hooksPath is followed, and never set.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff hooks install --dry-run
  git handoff hooks install
  git handoff hooks status
  git handoff hooks uninstall
  git handoff hooks install --server      (in the repository that is pushed to)")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Install hooks
    ///
    /// Installs all of them or none: if one cannot be installed, nothing changes, and each
    /// obstacle is reported with how to proceed.
    #[command(after_help = "Example:\n  git handoff hooks install pre-commit commit-msg")]
    Install {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        how: How,
        /// Write files even if this git could take hooks from its configuration
        #[arg(long)]
        files: bool,
    },
    /// Uninstall hooks, and leave every file as it was before
    #[command(after_help = "Example:\n  git handoff hooks uninstall --dry-run")]
    Uninstall {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        how: How,
    },
    /// Show which hooks would run, and why the others would not
    #[command(after_help = "Example:\n  git handoff hooks status --json")]
    Status {
        #[command(flatten)]
        which: Which,
    },
}

/// The hooks to act on.
#[derive(Args)]
struct Which {
    /// Only these hooks
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(Hook::ALL.map(Hook::name)))]
    names: Vec<String>,
    /// The hook for a repository that is pushed to
    #[arg(long, conflicts_with = "names")]
    server: bool,
}

impl Which {
    /// The hooks that were named, if any.
    fn named(&self) -> Option<Vec<Hook>> {
        if self.server {
            return Some(Hook::SERVER.to_vec());
        }
        let named: Vec<Hook> = self.names.iter().filter_map(|n| n.parse().ok()).collect();
        (!named.is_empty()).then_some(named)
    }

    /// The failure if nothing could be planned; if only the folder is in the way, with the command
    /// that proceeds.
    fn refused(&self, error: PlanError, verb: &str, files: bool, folder: &HooksFolder) -> Failure {
        let failure = Failure::from(error);
        let is_elsewhere = |found: &Finding| found.code == FindingCode::HookElsewhere;
        if failure.findings.is_empty() || !failure.findings.iter().all(is_elsewhere) {
            return failure;
        }
        let mut command = format!("git handoff hooks {verb}");
        for (option, given) in [(" --files", files), (" --server", self.server)] {
            command += if given { option } else { "" };
        }
        for name in &self.names {
            command += &format!(" {name}");
        }
        failure.hint(if folder.is_unusable() {
            format!("`{}`, then `{command}`", folder.to_own_folder())
        } else {
            format!("`{command} --into-hooks-path` does it in that folder")
        })
    }

    /// The named hooks, or else the default ones for this kind of repository.
    fn hooks(&self, hooks_folder: &HooksFolder) -> Vec<Hook> {
        self.named().unwrap_or_else(|| usual(hooks_folder))
    }
}

/// The default hooks for this kind of repository.
fn usual(hooks_folder: &HooksFolder) -> Vec<Hook> {
    if hooks_folder.bare {
        Hook::SERVER.to_vec()
    } else {
        Hook::LOCAL.to_vec()
    }
}

/// Options for changing files.
#[derive(Args)]
struct How {
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Change hooks even if core.hooksPath leads out of this repository's git directory
    #[arg(long)]
    into_hooks_path: bool,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let git = Program::new(&repository);
        let (worded, version) = git.version()?;
        let settings = git.settings(SETTINGS)?;
        let hooks_folder = HooksFolder::find(&repository, &git, &settings)?;
        match &self.verb {
            Verb::Install { which, how, files } => {
                let way = if *files {
                    InstallMethod::Files
                } else {
                    InstallMethod::Best
                };
                let plan = Plan::install(
                    &hooks_folder,
                    (version, &settings),
                    &which.hooks(&hooks_folder),
                    way,
                    how.into_hooks_path,
                )
                .map_err(|error| which.refused(error, "install", *files, &hooks_folder))?;
                finish(plan, how, &git, &hooks_folder, output)?;
                if program(&git)?.is_none() {
                    output.say("warning: git-handoff is not on the PATH, and hooks that cannot find it check nothing, and refuse what concerns the ledger's branch: add its folder to the PATH");
                }
                Ok(())
            }
            Verb::Uninstall { which, how } => {
                let own = git.own_settings(SETTINGS)?;
                let hooks = which.named().unwrap_or_else(|| Hook::ALL.to_vec());
                let plan = Plan::uninstall(&hooks_folder, &own, &hooks, how.into_hooks_path)
                    .map_err(|error| which.refused(error, "uninstall", false, &hooks_folder))?;
                finish(plan, how, &git, &hooks_folder, output)
            }
            Verb::Status { which } => {
                let around = Surroundings {
                    hooks_folder: &hooks_folder,
                    version,
                    settings: &settings,
                    program: program(&git)?,
                };
                status(which, &around, &worded, output)
            }
        }
    }
}

/// Installs the default hooks; returns each changed one, with its action.
pub(super) fn install(repository: &Repository) -> Result<Vec<String>, Failure> {
    let git = Program::new(repository);
    let (_, version) = git.version()?;
    let settings = git.settings(SETTINGS)?;
    let folder = HooksFolder::find(repository, &git, &settings)?;
    let (hooks, way) = (usual(&folder), InstallMethod::Best);
    let plan = Plan::install(&folder, (version, &settings), &hooks, way, false);
    carried_out(plan?, &git, &folder)
}

/// Uninstalls all hooks; returns each changed one, with its action.
pub(super) fn uninstall(repository: &Repository) -> Result<Vec<String>, Failure> {
    let git = Program::new(repository);
    let settings = git.settings(SETTINGS)?;
    let folder = HooksFolder::find(repository, &git, &settings)?;
    let own = git.own_settings(SETTINGS)?;
    let plan = Plan::uninstall(&folder, &own, &Hook::ALL, false)?;
    carried_out(plan, &git, &folder)
}

/// What is wrong with the installed hooks, and which default ones are missing beside them.
pub(super) fn faults(repository: &Repository) -> Result<Vec<Finding>, Failure> {
    let git = Program::new(repository);
    let (_, version) = git.version()?;
    let settings = git.settings(SETTINGS)?;
    let hooks_folder = HooksFolder::find(repository, &git, &settings)?;
    let around = Surroundings {
        hooks_folder: &hooks_folder,
        version,
        settings: &settings,
        program: program(&git)?,
    };
    let reports = Hook::ALL.map(|hook| Report::of(hook, &around));
    let reports = reports.into_iter().collect::<Result<Vec<_>, _>>()?;
    let is_there = |report: &Report| report.state != State::Missing;
    let local = Hook::LOCAL;
    let mut all = reports.iter();
    let is_part = all.any(|one| is_there(one) && local.contains(&one.hook));
    let counts = |one: &Report| is_there(one) || is_part && local.contains(&one.hook);
    let counting = reports.into_iter().filter(counts);
    Ok(counting.flat_map(|one| one.findings).collect())
}

fn carried_out(plan: Plan, git: &Program, folder: &HooksFolder) -> Result<Vec<String>, Failure> {
    let changed = plan
        .changes()
        .iter()
        .filter(|change| change.action.changes());
    let lines = changed.map(|change| {
        let path = change.path.as_ref().map(|path| path.display().to_string());
        let path = path.unwrap_or_else(|| "git's configuration".to_owned());
        let done = action_text(change.action, &continued(&path), false);
        format!("{}: {done}", change.hook)
    });
    let lines = lines.collect();
    plan.carry_out(git).map_err(|error| undone(error, folder))?;
    Ok(lines)
}

/// The program that hooks would find.
fn program(git: &Program) -> Result<Option<PathBuf>, Failure> {
    let own_folder = git.own_folder()?;
    Ok(found_on_path("git-handoff", own_folder))
}

/// Executes a plan, unless this is a dry run, and prints the actions.
fn finish(
    plan: Plan,
    how: &How,
    git: &Program,
    hooks_folder: &HooksFolder,
    output: &mut Output,
) -> Result<(), Failure> {
    let hooks = plan.changes().iter().map(|change| HookChange {
        hook: change.hook,
        action: change.action,
        path: change.path.as_ref().map(|path| path.display().to_string()),
        difference: change.difference(),
    });
    let view = HooksChangeView {
        folder: hooks_folder.folder.display().to_string(),
        dry_run: how.dry_run,
        hooks: hooks.collect(),
    };
    if !how.dry_run {
        plan.carry_out(git)
            .map_err(|error| undone(error, hooks_folder))?;
    }
    output.answer(&view)
}

/// The changes to hooks, done or planned.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "HooksChange")]
pub(crate) struct HooksChangeView {
    /// the folder that git takes hooks from
    folder: String,
    /// nothing was written
    dry_run: bool,
    /// what is done, in order
    hooks: Vec<HookChange>,
}

/// The change to one hook in one place.
#[derive(Serialize, JsonSchema)]
struct HookChange {
    /// the hook
    hook: Hook,
    /// what is done; `create`: a file; `add`: a block to the user's file; `configure`: in git's
    /// configuration; `keep`: already there; `leave`: called by lines that are not ours, which stay;
    /// `remove`: the file had only the block
    action: Action,
    /// the file; null for git's configuration
    path: Option<String>,
    /// What changes, in lines that begin with `+` or `-`.
    #[serde(skip)]
    difference: String,
}

impl Answer for HooksChangeView {
    fn text(&self, _: &Look) -> String {
        let mut text = String::new();
        for change in &self.hooks {
            // A hook that was never installed gets no line.
            if change.action != Action::Nothing {
                let path = change.path.as_deref().unwrap_or("git's configuration");
                let done = action_text(change.action, &continued(path), self.dry_run);
                text += &format!("{}: {done}\n", change.hook);
            }
            if self.dry_run {
                for line in change.difference.lines() {
                    text += &format!("  {}\n", plain(line));
                }
            }
        }
        if self.dry_run {
            text += "this is a dry run: nothing was written\n";
        } else if !self.hooks.iter().any(|change| change.action.changes()) {
            text += "nothing to change\n";
        }
        text
    }
}

fn action_text(action: Action, path: &str, dry_run: bool) -> String {
    let (would, did) = match action {
        Action::Create => ("create", "created"),
        Action::Add => ("add a block to", "added a block to"),
        Action::Update => ("bring up to date", "brought up to date"),
        Action::Configure => ("set in", "set in"),
        Action::TakeOut => ("remove the block from", "removed the block from"),
        Action::Remove => (
            "remove, since nothing else is in it,",
            "removed, since nothing else was in it,",
        ),
        Action::Unconfigure => ("remove from", "removed from"),
        Action::Keep => return format!("is already in {path}"),
        Action::Leave => return format!("is called in your own lines, which stay: {path}"),
        Action::Nothing => return format!("is not in {path}"),
    };
    if dry_run {
        format!("would {would} {path}")
    } else {
        format!("{did} {path}")
    }
}

/// Reports for each hook whether it would run.
fn status(
    which: &Which,
    around: &Surroundings<'_>,
    git: &str,
    output: &mut Output,
) -> Result<(), Failure> {
    let hooks_folder = around.hooks_folder;
    let (named, usual) = (which.named(), usual(hooks_folder));
    let mut hooks = Vec::new();
    for hook in named.clone().unwrap_or_else(|| Hook::ALL.to_vec()) {
        let report = Report::of(hook, around)?;
        // A clone needs no server hooks.
        let wanted = named.is_some() || usual.contains(&hook);
        if wanted || report.state != State::Missing {
            hooks.push(HookStatus {
                hook,
                state: report.state,
                by: report.by,
                path: report.path.display().to_string(),
                findings: report.findings,
            });
        }
    }
    output.answer(&HooksStatusView {
        folder: hooks_folder.folder.display().to_string(),
        hooks_path: hooks_folder.hooks_path.as_ref(),
        git,
        program: around.program.as_ref().map(|p| p.display().to_string()),
        hooks,
    })
}

/// The hooks, and which of them would run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "HooksStatus")]
pub(crate) struct HooksStatusView<'a> {
    /// the folder that git takes hooks from
    folder: String,
    /// `core.hooksPath`, if set
    hooks_path: Option<&'a HooksPath>,
    /// the version of git
    git: &'a str,
    /// the `git-handoff` that hooks would find, if any
    program: Option<String>,
    /// each hook
    hooks: Vec<HookStatus>,
}

/// Whether a hook would run.
#[derive(Serialize, JsonSchema)]
struct HookStatus {
    /// the hook
    hook: Hook,
    /// its state; `outdated`: it runs, but another version wrote it; `broken`: it is there,
    /// but does not do what it should
    state: State,
    /// what calls the program: `block`, `configuration`, `hand` (lines that are not ours), or a
    /// tool's name; null if nothing does
    by: Option<&'static str>,
    /// the file that git would run
    path: String,
    /// the reasons
    findings: Vec<Finding>,
}

impl Answer for HooksStatusView<'_> {
    fn text(&self, _: &Look) -> String {
        let mut text = format!("hooks are in {}", continued(&self.folder));
        if let Some(path) = self.hooks_path {
            let set = format!(" (core.hooksPath, {})", path.origin);
            text += &continued(&set);
        }
        text += &format!("\ngit {}", continued(self.git));
        match &self.program {
            Some(path) => text += &format!(" finds {}\n", continued(path)),
            None => text += " finds no git-handoff\n",
        }
        let rows = self.hooks.iter().map(|status| {
            let by = match status.by {
                None => String::new(),
                Some("block") => "by a block in the hook's file".to_owned(),
                Some("configuration") => "by git's configuration".to_owned(),
                Some("hand") => "by your own lines".to_owned(),
                Some(manager) => format!("by {manager}"),
            };
            vec![
                status.hook.name().to_owned(),
                status.state.word().to_owned(),
                by,
            ]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        for (line, status) in columns(&rows).lines().zip(&self.hooks) {
            text += &format!("{line}\n");
            text.extend(status.findings.iter().map(render));
        }
        text
    }
}

/// The failure if a plan was executed only in part.
fn undone(error: CarryOutError, folder: &HooksFolder) -> Failure {
    // The folder of core.hooksPath may be read-only.
    let is_elsewhere =
        matches!(error, CarryOutError::Write(WriteError::Io { .. })) && folder.is_elsewhere();
    if !is_elsewhere {
        return error.into();
    }
    Failure::new(ErrorCode::HookFile, chain(&error)).hint(format!(
        "the file is unchanged; `{}` has git use this repository's own folder, then run the same command again",
        folder.to_own_folder()
    ))
}
