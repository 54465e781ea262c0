//! Whether a hook would run, and why not.

use handoff::base::text::word;
use std::path::{Path, PathBuf};

use handoff::base::finding::{Finding, FindingCode, Severity};
use handoff::git::{Setting, Version, read_regular};
use schemars::JsonSchema;
use serde::Serialize;

use super::configured::Configured;
use super::faults::{at, early_exit, managed, not_executable, not_shell, unclear};
use super::file::Found;
use super::hooks_folder::HooksFolder;
use super::install::{PlanError, hook_file};
use super::manager::Manager;
use super::{Hook, block, configured, file, own_lines};

/// The first version of git with the hook `reference-transaction`.
const REFERENCE_TRANSACTION: Version = Version {
    major: 2,
    minor: 28,
};

/// The state of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "HookState")]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It would run.
    Installed,
    /// Nothing calls the program.
    Missing,
    /// It would run, but another version wrote it.
    Outdated,
    /// Something calls the program, but it would not work.
    Broken,
}

impl State {
    /// The word for it in output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Missing => "missing",
            Self::Outdated => "outdated",
            Self::Broken => "broken",
        }
    }
}

/// The environment in which git runs hooks.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// The folder of the hooks.
    pub hooks_folder: &'a HooksFolder,
    /// The version of git.
    pub version: Version,
    /// The settings about hooks.
    pub settings: &'a [Setting],
    /// The program on git's PATH.
    pub program: Option<PathBuf>,
}

/// The state of one hook.
#[derive(Debug)]
pub struct Report {
    /// The hook.
    pub hook: Hook,
    /// Its state.
    pub state: State,
    /// What calls the program: `block`, `configuration`, `hand`, or a tool's name.
    pub by: Option<&'static str>,
    /// The file that git would run.
    pub path: PathBuf,
    /// What is missing, outdated or broken.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Examines a hook.
    ///
    /// # Errors
    /// [`PlanError`] when a file can't be read.
    pub fn of(hook: Hook, around: &Surroundings<'_>) -> Result<Self, PlanError> {
        let (path, found) = hook_file(around.hooks_folder, hook)?;
        let mut findings = Vec::new();
        let by = configured_by(hook, around, &path, &mut findings);
        let by = match by {
            Some(by) => Some(by),
            None => called_by(hook, around, &path, &found, &mut findings),
        };
        let Some(by) = by else {
            ignored_by_git(hook, around, &mut findings);
            if findings.is_empty() {
                let text = "nothing calls the program";
                let finding = at(FindingCode::HookMissing, &path, text);
                findings.push(finding.fix(to_install(hook, around)));
            }
            return Ok(Self {
                hook,
                state: State::Missing,
                by: None,
                path,
                findings,
            });
        };
        unable(hook, around, &path, &mut findings);
        let state = match findings.iter().map(|finding| finding.severity).max() {
            Some(Severity::Error) => State::Broken,
            Some(_) => State::Outdated,
            None => State::Installed,
        };
        Ok(Self {
            hook,
            state,
            by: Some(by),
            path,
            findings,
        })
    }
}

/// Looks for our section in git's configuration.
fn configured_by(
    hook: Hook,
    around: &Surroundings<'_>,
    path: &Path,
    findings: &mut Vec<Finding>,
) -> Option<&'static str> {
    let known = Configured::read(hook, around.settings);
    if !known.is_there() {
        return None;
    }
    let section = configured::section(hook);
    let finding = |code, message: String| Finding::error(code, section.clone(), message);
    if around.version < configured::SINCE {
        let text = "git has it in its configuration, which only git 2.54 and later run hooks from";
        let fix = format!("`git handoff hooks install --files {hook}`, or use a newer git");
        findings.push(finding(FindingCode::HookOldGit, text.to_owned()).fix(fix));
        return None;
    }
    if let Some(key) = &known.disabled {
        let text = format!("{key} is false, so that git passes it by");
        findings.push(
            finding(FindingCode::HookDisabled, text)
                .fix(format!("`git config unset {}`", word(key))),
        );
    }
    if !known.is_current(hook) {
        let text = "what is configured is not what this version writes";
        findings.push(outdated(hook, path, text));
    }
    Some("configuration")
}

/// Looks for a call in the hook's file.
fn called_by(
    hook: Hook,
    around: &Surroundings<'_>,
    path: &Path,
    found: &Found,
    findings: &mut Vec<Finding>,
) -> Option<&'static str> {
    let root = &around.hooks_folder.root;
    let (bytes, metadata) = match found {
        Found::Nothing | Found::Other => return None,
        Found::File(bytes, metadata) => (bytes.clone(), metadata.clone()),
        Found::Link(_) => (read_regular(path).ok()?, path.metadata().ok()?),
    };
    let by = match block::find(&bytes) {
        Err(fault) => {
            findings.push(unclear(path, &fault));
            "block"
        }
        Ok(Some(block)) => {
            if let Some(line) = block::early_end(&bytes, &block) {
                findings.push(early_exit(path, line, "the block"));
            }
            if let Err(foreign) = block::with(&bytes, Some(&block), hook) {
                let finding = at(FindingCode::HookNotShell, path, foreign.to_string());
                findings.push(finding.fix("the block needs a shell: fix the first line"));
            } else if !block::is_current(&bytes, &block, hook) {
                let text = "the block is not the one that this version writes";
                findings.push(outdated(hook, path, text).at(block.line, 1));
            }
            "block"
        }
        Ok(None) if hook.is_called_in(&String::from_utf8_lossy(&bytes)) => {
            findings.extend(own_lines::fault(hook, path, &bytes));
            "hand"
        }
        Ok(None) => {
            let Some(manager) = Manager::of(path, &bytes) else {
                // `hooks install` would refuse to add to it.
                if around.version < configured::SINCE {
                    let foreign = block::with(&bytes, None, hook).err();
                    findings.extend(foreign.map(|foreign| not_shell(path, &foreign, hook)));
                    if !file::is_executable(&metadata) {
                        findings.push(not_executable(path));
                    }
                }
                return None;
            };
            if !manager.calls(root, hook) {
                findings.push(managed(manager, hook, path));
                return None;
            }
            manager.name()
        }
    };
    if !file::is_executable(&metadata) {
        findings.push(not_executable(path));
    }
    if file::runs_nothing(&around.hooks_folder.folder) {
        let text = "it is on a file system that runs no programs (noexec)";
        let fix = "have it mounted without noexec, or set core.hooksPath to a folder elsewhere";
        findings.push(at(FindingCode::HookNoexec, path, text).fix(fix));
    }
    Some(by)
}

/// Looks for a call in the default folder, which git ignores because of `core.hooksPath`.
fn ignored_by_git(hook: Hook, around: &Surroundings<'_>, findings: &mut Vec<Finding>) {
    let hooks_folder = around.hooks_folder;
    if !hooks_folder.is_elsewhere() {
        return;
    }
    let path = hooks_folder.usual.join(hook.name());
    let has_block = |bytes: Vec<u8>| {
        !matches!(block::find(&bytes), Ok(None))
            || hook.is_called_in(&String::from_utf8_lossy(&bytes))
    };
    if read_regular(&path).is_ok_and(has_block) {
        let text = format!("git passes it by: {}", hooks_folder.why_shared());
        let fix = if hooks_folder.is_unusable() {
            to_install(hook, around)
        } else {
            format!(
                "have the hooks there call `git handoff hook {hook}`, or {}",
                to_install(hook, around)
            )
        };
        findings.push(at(FindingCode::HookElsewhere, &path, text).fix(fix));
    }
}

/// The command that installs a hook here, or that makes it possible.
fn to_install(hook: Hook, around: &Surroundings<'_>) -> String {
    let folder = around.hooks_folder;
    let install = format!("git handoff hooks install {hook}");
    if folder.own || around.version >= configured::SINCE {
        return format!("`{install}`");
    }
    if folder.is_unusable() {
        return format!("`{}`, and `{install}`", folder.to_own_folder());
    }
    format!("`{install} --into-hooks-path`")
}

/// Looks for reasons why an installed hook would fail.
fn unable(hook: Hook, around: &Surroundings<'_>, path: &Path, findings: &mut Vec<Finding>) {
    if around.program.is_none() {
        let text = "git-handoff is not on the PATH, so that the hook checks nothing, and refuses what concerns the ledger's branch";
        let fix = "add the folder that it is in to the PATH that git has";
        findings.push(at(FindingCode::HookNoProgram, path, text).fix(fix));
    }
    if hook == Hook::ReferenceTransaction && around.version < REFERENCE_TRANSACTION {
        let text = "this git has no such hook; git 2.28 and later have it";
        findings.push(at(FindingCode::HookOldGit, path, text).fix("use a newer git"));
    }
    if around.hooks_folder.bare && hook.needs_working_tree() {
        let text = "git never runs it in a bare repository";
        let fix = "`git handoff hooks install --server`";
        findings.push(at(FindingCode::HookNever, path, text).fix(fix));
    }
}

fn outdated(hook: Hook, path: &Path, text: &str) -> Finding {
    let mut finding = at(FindingCode::HookOutdated, path, text);
    finding.severity = Severity::Warning;
    finding.fix(format!("`git handoff hooks install {hook}`"))
}
