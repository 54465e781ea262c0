//! How `git` is run: in which repository and working tree, and without the programs that a
//! repository's own configuration names, where none of them is needed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use git2::ConfigLevel;

use super::error::GitError;
use super::repository::Repository;

/// Settings under which git runs no hook and no monitor of files.
const NO_PROGRAMS: [&str; 2] = ["core.hooksPath=/dev/null", "core.fsmonitor=false"];

/// An empty variable, for the names of filters that `-c` can't take.
const EMPTY: &str = "GIT_HANDOFF_EMPTY";

/// The git command for this repository and working tree, whatever the environment and the folder in
/// which it runs say.
pub(super) fn git(git_dir: &Path, work_tree: Option<&Path>) -> Command {
    let mut command = Command::new("git");
    command.arg("--git-dir").arg(git_dir);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    if let Some(work_tree) = work_tree {
        command.arg("--work-tree").arg(work_tree);
        command.current_dir(work_tree);
    }
    command
}

/// The same, where it runs neither hooks nor a monitor of files.
pub(super) fn git_alone(git_dir: &Path, work_tree: Option<&Path>) -> Command {
    let mut command = git(git_dir, work_tree);
    for setting in NO_PROGRAMS {
        command.args(["-c", setting]);
    }
    command
}

impl Repository {
    /// Keeps git from running the filters that the repository's own configuration names: whoever
    /// works in it can write that. Those of the user and the system stay.
    pub(super) fn without_own_filters(&self, command: &mut Command) -> Result<(), GitError> {
        let mut names = BTreeSet::new();
        let config = self.inner.config()?.snapshot()?;
        let mut entries = config.entries(Some("filter\\..*"))?;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let is_users = matches!(
                entry.level(),
                ConfigLevel::ProgramData
                    | ConfigLevel::System
                    | ConfigLevel::XDG
                    | ConfigLevel::Global
            );
            let name = entry.name()?.strip_prefix("filter.");
            if let Some((name, _)) = name.and_then(|name| name.rsplit_once('.'))
                && !is_users
            {
                names.insert(name.to_owned());
            }
        }
        for name in names {
            for key in ["clean", "smudge", "process"] {
                // Without a sign of equality in the name, an older git takes it, too.
                if name.contains('=') {
                    command.arg(format!("--config-env=filter.{name}.{key}={EMPTY}"));
                    command.env(EMPTY, "");
                } else {
                    command.args(["-c", &format!("filter.{name}.{key}=")]);
                }
            }
            if !name.contains('=') {
                command.args(["-c", &format!("filter.{name}.required=false")]);
            }
        }
        Ok(())
    }
}
