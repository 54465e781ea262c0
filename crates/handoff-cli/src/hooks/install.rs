//! Installing and uninstalling hooks: all changes are planned first, then applied.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use handoff::base::codes::ErrorCode;
use handoff::base::explained::{Explained, Explanation};
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::hint;
use handoff::base::text::counted_as;
use handoff::git::{Obstacle, Program, ProgramError, Setting, Version, read_regular};
use schemars::JsonSchema;
use serde::Serialize;

use super::configured::Configured;
use super::faults::{
    at, early_exit, elsewhere, linked, managed, not_executable, not_shell, read_only, unclear,
};
use super::file::{Found, WriteError};
use super::hooks_folder::HooksFolder;
use super::manager::Manager;
use super::{Hook, block, configured, file, own_lines};

/// Where hooks are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallMethod {
    /// In git's configuration if this git supports it, else in files.
    Best,
    /// In files, which every git version supports.
    Files,
}

/// What happens to a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "HookAction")]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A new file is created.
    Create,
    /// The block is added to the user's file.
    Add,
    /// The block or the configuration is updated to this version's.
    Update,
    /// It is added to git's configuration.
    Configure,
    /// It is up to date.
    Keep,
    /// The user's own lines call the program; they stay.
    Leave,
    /// The block is removed from the user's file.
    TakeOut,
    /// The file that was created for the block is deleted.
    Remove,
    /// The section is removed from the configuration.
    Unconfigure,
    /// There is nothing to remove.
    Nothing,
}

impl Action {
    /// The word for it in output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Add => "add",
            Self::Update => "update",
            Self::Configure => "configure",
            Self::Keep => "keep",
            Self::Leave => "leave",
            Self::TakeOut => "take_out",
            Self::Remove => "remove",
            Self::Unconfigure => "unconfigure",
            Self::Nothing => "nothing",
        }
    }

    /// Whether it modifies anything.
    pub fn changes(self) -> bool {
        !matches!(self, Self::Keep | Self::Leave | Self::Nothing)
    }
}

/// The change of one hook, in a file or the configuration.
#[derive(Debug)]
pub struct Change {
    /// The hook.
    pub hook: Hook,
    /// The kind of change.
    pub action: Action,
    /// The file; `None` for the configuration.
    pub path: Option<PathBuf>,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl Change {
    /// The difference as lines that begin with `+` or `-`.
    pub fn difference(&self) -> String {
        if !self.action.changes() {
            return String::new();
        }
        if self.path.is_none() {
            let sign = match self.action {
                Action::Unconfigure => '-',
                _ => '+',
            };
            let (section, command) = (
                configured::section(self.hook),
                configured::command(self.hook),
            );
            let command = command.replace('\n', &format!("\n{sign}  "));
            return format!(
                "{sign}{section}.command = {command}\n{sign}{section}.event = {}\n",
                self.hook
            );
        }
        difference(self.before.as_deref(), self.after.as_deref())
    }
}

/// Why no change was made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Hooks can't be installed.
    #[error("nothing was changed: {} in the way", counted_as(findings.len(), "hook", [" is", "s are"]))]
    Refused {
        /// The reasons, and how to proceed.
        findings: Vec<Finding>,
    },
    /// A hook can't be read.
    #[error("{} cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Explained for PlanError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Refused { findings } => {
                Explanation::from(ErrorCode::HooksRefused).findings(findings)
            }
            Self::Io { source, .. } => unusable(source),
        }
    }
}

/// The explanation for a hook's file that the system denies access to.
fn unusable(source: &io::Error) -> Explanation {
    let unknown = ("a hook's file is not accessible", "check it with `ls -ld`");
    let (problem, fix) = Obstacle::explained(Obstacle::of(source), unknown);
    let hint = hint!("the file is unchanged; ").and(fix);
    let explanation = ErrorCode::HookFile.hint(hint.and(", and run the same command again"));
    explanation.because(problem)
}

/// The difference of two files as lines that begin with `+` or `-`, with line numbers.
pub fn difference(before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    let lines = |bytes: Option<&[u8]>| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        text.lines().map(str::to_owned).collect()
    };
    let (before, after) = (lines(before), lines(after));
    let both = before.iter().zip(&after);
    let same = both.take_while(|(a, b)| a == b).count();
    let (old, new) = (&before[same..], &after[same..]);
    let both = old.iter().rev().zip(new.iter().rev());
    let end = both.take_while(|(a, b)| a == b).count();
    let mut text = format!("@@ line {} @@\n", same + 1);
    for (sign, lines) in [
        ('-', &old[..old.len() - end]),
        ('+', &new[..new.len() - end]),
    ] {
        for line in lines {
            text += &format!("{sign}{line}\n");
        }
    }
    text
}

/// Planned changes.
#[must_use = "nothing changes unless the plan is carried out"]
#[derive(Debug)]
pub struct Plan {
    changes: Vec<Change>,
}

impl Plan {
    /// Plans an installation; `anywhere` allows a folder outside the git directory.
    ///
    /// # Errors
    /// [`PlanError`] with everything that prevents it.
    pub fn install(
        hooks_folder: &HooksFolder,
        (version, settings): (Version, &[Setting]),
        hooks: &[Hook],
        method: InstallMethod,
        anywhere: bool,
    ) -> Result<Self, PlanError> {
        let mut draft = Draft::default();
        let able = version >= configured::SINCE;
        let configurable = able && method == InstallMethod::Best;
        for &hook in hooks {
            let known = Configured::read(hook, settings);
            if able && known.is_there() {
                let action = if known.is_current(hook) {
                    Action::Keep
                } else {
                    Action::Update
                };
                draft.configure(hook, action);
                continue;
            }
            let (path, found) = hook_file(hooks_folder, hook)?;
            match found {
                Found::File(bytes, metadata) => {
                    let file = (&bytes[..], &metadata);
                    match plan_file(hooks_folder, hook, &path, file, anywhere, configurable) {
                        FilePlan::Configure => draft.configure(hook, Action::Configure),
                        FilePlan::Do(action, after) => {
                            draft.file(hook, action, path, Some(bytes), after);
                        }
                        FilePlan::Refuse(finding) => draft.refused.push(finding),
                    }
                }
                Found::Link(_) if leads_to_call(&path, hook) => {
                    let bytes = read_regular(&path).unwrap_or_default();
                    match own_lines::fault(hook, &path, &bytes) {
                        Some(finding) => draft.refused.push(finding),
                        None => draft.file(hook, Action::Leave, path, None, None),
                    }
                }
                _ if configurable => draft.configure(hook, Action::Configure),
                Found::Link(target) => draft.refused.push(linked(&path, &target, hook)),
                Found::Other => {
                    let finding = at(FindingCode::HookNotAFile, &path, "it is not a regular file");
                    draft.refused.push(finding.fix("move it away"));
                }
                Found::Nothing if hooks_folder.is_unusable() => {
                    draft.refused.push(elsewhere(hooks_folder, &path));
                }
                Found::Nothing
                    if let Some(manager) = Manager::writes(&path, hook, &hooks_folder.root) =>
                {
                    draft.refused.push(managed(manager, hook, &path));
                }
                Found::Nothing if !hooks_folder.own && !anywhere => {
                    draft.refused.push(elsewhere(hooks_folder, &path));
                }
                Found::Nothing => {
                    let bytes = Some(block::new_file(hook));
                    draft.file(hook, Action::Create, path, None, bytes);
                }
            }
        }
        draft.plan()
    }

    /// Plans the removal of hooks, from files and the configuration.
    ///
    /// # Errors
    /// [`PlanError`] with everything that prevents it.
    pub fn uninstall(
        hooks_folder: &HooksFolder,
        own_settings: &[Setting],
        hooks: &[Hook],
        anywhere: bool,
    ) -> Result<Self, PlanError> {
        let mut draft = Draft::default();
        for &hook in hooks {
            let before = draft.changes.len() + draft.refused.len();
            if Configured::read(hook, own_settings).is_there() {
                draft.configure(hook, Action::Unconfigure);
            }
            let name = hook.name();
            let mut paths = vec![
                (hooks_folder.folder.join(name), hooks_folder.own),
                (
                    hooks_folder.folder.join(format!("{name}.legacy")),
                    hooks_folder.own,
                ),
            ];
            if hooks_folder.is_elsewhere() {
                paths.push((hooks_folder.usual.join(name), true));
            }
            for (path, own) in paths {
                let Found::File(bytes, metadata) = read_path(&path)? else {
                    continue;
                };
                let found = match block::find(&bytes) {
                    Ok(Some(found)) => found,
                    Ok(None) => {
                        if hook.is_called_in(&String::from_utf8_lossy(&bytes)) {
                            draft.file(hook, Action::Leave, path, None, None);
                        }
                        continue;
                    }
                    Err(fault) => {
                        draft.refused.push(unclear(&path, &fault));
                        continue;
                    }
                };
                if !own && !anywhere {
                    draft.refused.push(elsewhere(hooks_folder, &path));
                } else if metadata.permissions().readonly() {
                    draft.refused.push(read_only(&path));
                } else {
                    let after = block::without(&bytes, &found);
                    let action = match after {
                        Some(_) => Action::TakeOut,
                        None => Action::Remove,
                    };
                    draft.file(hook, action, path, Some(bytes), after);
                }
            }
            if draft.changes.len() + draft.refused.len() == before {
                let path = hooks_folder.folder.join(name);
                draft.file(hook, Action::Nothing, path, None, None);
            }
        }
        draft.plan()
    }

    /// The change of each hook.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Applies the changes.
    ///
    /// # Errors
    /// [`CarryOutError`] for the first change that fails; those before it stay.
    pub fn carry_out(self, git: &Program) -> Result<(), CarryOutError> {
        for change in self.changes.iter().filter(|c| c.action.changes()) {
            let hook = change.hook;
            match (&change.path, change.action) {
                (Some(path), _) => {
                    file::replace(path, change.before.as_deref(), change.after.as_deref())?;
                }
                (None, Action::Unconfigure) => git.remove_section(&configured::section(hook))?,
                (None, _) => {
                    let section = configured::section(hook);
                    // The command first: git fails on an event without a command.
                    git.set(&format!("{section}.command"), &configured::command(hook))?;
                    git.set(&format!("{section}.event"), hook.name())?;
                }
            }
        }
        Ok(())
    }
}

/// Why a plan was not fully applied.
#[derive(Debug, thiserror::Error)]
pub enum CarryOutError {
    /// A file can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The configuration can't be written.
    #[error(transparent)]
    Git(#[from] ProgramError),
}

impl Explained for CarryOutError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Write(WriteError::Changed(_)) => {
                ErrorCode::HookChanged.hint("the file was left alone; run the same command again")
            }
            Self::Write(WriteError::Io { source, .. }) => unusable(source),
            Self::Git(error) => error.explanation(),
        }
    }
}

/// A plan under construction.
#[derive(Default)]
struct Draft {
    changes: Vec<Change>,
    refused: Vec<Finding>,
}

impl Draft {
    fn configure(&mut self, hook: Hook, action: Action) {
        self.changes.push(Change {
            hook,
            action,
            path: None,
            before: None,
            after: None,
        });
    }

    fn file(
        &mut self,
        hook: Hook,
        action: Action,
        path: PathBuf,
        before: Option<Vec<u8>>,
        after: Option<Vec<u8>>,
    ) {
        self.changes.push(Change {
            hook,
            action,
            path: Some(path),
            before,
            after,
        });
    }

    fn plan(self) -> Result<Plan, PlanError> {
        if self.refused.is_empty() {
            return Ok(Plan {
                changes: self.changes,
            });
        }
        Err(PlanError::Refused {
            findings: self.refused,
        })
    }
}

/// The hook's file; or the file that the pre-commit framework moved aside but still runs, if our
/// block is in that.
pub(super) fn hook_file(
    hooks_folder: &HooksFolder,
    hook: Hook,
) -> Result<(PathBuf, Found), PlanError> {
    let path = hooks_folder.folder.join(hook.name());
    let found = read_path(&path)?;
    if let Found::File(bytes, _) = &found
        && Manager::of(&path, bytes) == Some(Manager::PreCommit)
    {
        let kept = path.with_extension("legacy");
        let at_kept = read_path(&kept)?;
        if let Found::File(bytes, _) = &at_kept
            && !matches!(block::find(bytes), Ok(None))
        {
            return Ok((kept, at_kept));
        }
    }
    Ok((path, found))
}

fn read_path(path: &Path) -> Result<Found, PlanError> {
    file::read_path(path).map_err(|source| PlanError::Io {
        path: path.to_owned(),
        source,
    })
}

/// The change planned for an existing file.
enum FilePlan {
    /// Write these bytes; `None` leaves the file as it is.
    Do(Action, Option<Vec<u8>>),
    /// Use the configuration instead.
    Configure,
    Refuse(Finding),
}

/// Plans the change of an existing file.
fn plan_file(
    hooks_folder: &HooksFolder,
    hook: Hook,
    path: &Path,
    (bytes, metadata): (&[u8], &Metadata),
    anywhere: bool,
    configurable: bool,
) -> FilePlan {
    let executable = file::is_executable(metadata);
    let there = |action| {
        if executable {
            FilePlan::Do(action, None)
        } else {
            FilePlan::Refuse(not_executable(path))
        }
    };
    let found = match block::find(bytes) {
        Ok(found) => found,
        Err(fault) => return FilePlan::Refuse(unclear(path, &fault)),
    };
    if let Some(block) = &found {
        if let Some(line) = block::early_end(bytes, block) {
            return FilePlan::Refuse(early_exit(path, line, "the block"));
        }
        if block::is_current(bytes, block, hook) {
            return there(Action::Keep);
        }
    } else {
        let manager = Manager::of(path, bytes);
        if let Some(finding) = own_lines::fault(hook, path, bytes) {
            return FilePlan::Refuse(finding);
        }
        if hook.is_called_in(&String::from_utf8_lossy(bytes))
            || manager.is_some_and(|manager| manager.calls(&hooks_folder.root, hook))
        {
            return there(Action::Leave);
        }
        if configurable {
            return FilePlan::Configure;
        }
        if let Some(manager) = manager {
            return FilePlan::Refuse(managed(manager, hook, path));
        }
    }
    if !hooks_folder.own && !anywhere {
        return FilePlan::Refuse(elsewhere(hooks_folder, path));
    }
    if !executable {
        return FilePlan::Refuse(not_executable(path));
    }
    if metadata.permissions().readonly() {
        return FilePlan::Refuse(read_only(path));
    }
    match block::with(bytes, found.as_ref(), hook) {
        Ok(after) if found.is_some() => FilePlan::Do(Action::Update, Some(after)),
        Ok(after) => FilePlan::Do(Action::Add, Some(after)),
        Err(foreign) => FilePlan::Refuse(not_shell(path, &foreign, hook)),
    }
}

/// Whether a link points to a script that calls the program.
fn leads_to_call(path: &Path, hook: Hook) -> bool {
    read_regular(path).is_ok_and(|bytes| hook.is_called_in(&String::from_utf8_lossy(&bytes)))
}
