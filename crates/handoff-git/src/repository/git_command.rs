//! The git command for an open repository, and the programs that it must not run.

use std::collections::BTreeSet;
use std::process::Command;

use git2::ConfigLevel;

use super::Repository;
use crate::error::GitError;
use crate::process::git;

/// An empty environment variable, for filters whose names `-c` can't express.
const EMPTY: &str = "GIT_HANDOFF_EMPTY";

impl Repository {
    /// The git command for this repository, without the environment's settings for another one.
    pub(crate) fn git(&self) -> Command {
        // Relative paths in the configuration start in the folder where git itself would run.
        let mut command = git(self.path(), self.workdir().filter(|root| root.is_dir()));
        command.env_remove("GIT_INDEX_FILE");
        // Replacement objects would stand in for the commit.
        command.env("GIT_NO_REPLACE_OBJECTS", "1");
        command.env("GIT_TERMINAL_PROMPT", "0");
        command
    }

    /// Disables the filters in the repository's own configuration, which anybody who works in it
    /// can write. Those of the user and the system stay.
    pub(crate) fn without_own_filters(&self, command: &mut Command) -> Result<(), GitError> {
        let mut names = BTreeSet::new();
        let config = self.inner.config()?.snapshot()?;
        let mut entries = config.entries(Some("filter\\..*"))?;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let is_own = matches!(entry.level(), ConfigLevel::Local | ConfigLevel::Worktree);
            let name = entry.name()?.strip_prefix("filter.");
            if let Some((name, _)) = name.and_then(|name| name.rsplit_once('.'))
                && is_own
            {
                names.insert(name.to_owned());
            }
        }
        for name in names {
            for key in ["clean", "smudge", "process"] {
                // Names without `=` use `-c`, which older versions of git support, too.
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
