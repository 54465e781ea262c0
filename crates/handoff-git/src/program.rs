//! Queries to the `git` command: its version, its hooks folder, and its configuration, including
//! `git -c`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use handoff_base::ObjectId;
use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};

use crate::error::NEWER_GIT;
use crate::process::{OLD_GIT, knows_no_tables};
use crate::process::{git, git_alone};
use crate::repository::Repository;

/// Why the `git` command failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It could not be started.
    #[error("git cannot be started")]
    NoGit(#[source] std::io::Error),
    /// It exited with an error.
    #[error("git says: {message}")]
    Failed {
        /// Its message, in one line.
        message: String,
    },
    /// It is too old for the repository's ref storage.
    #[error("{}", OLD_GIT)]
    TooOld,
}

impl Explained for ProgramError {
    fn explanation(&self) -> Explanation {
        ErrorCode::Git.hint(match self {
            Self::TooOld => NEWER_GIT,
            Self::NoGit(_) | Self::Failed { .. } => {
                "check whether `git version` and `git config --list` work here"
            }
        })
    }
}

/// The first two components of a git version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first component.
    pub major: u32,
    /// The second component.
    pub minor: u32,
}

/// A value in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its scope in git's words: `system`, `global`, `local`, `worktree`, `command`.
    pub scope: String,
    /// Its origin in git's form: `file:.git/config`, `command line:`.
    pub origin: String,
    /// Its key, with section and variable in lower case.
    pub key: String,
    /// Its value; `None` for a key without one, which means true.
    pub value: Option<String>,
}

/// The `git` command, for one repository.
pub struct Program {
    /// The git directory; `None` to let git find it.
    git_dir: Option<PathBuf>,
    work_tree: Option<PathBuf>,
    directory: PathBuf,
}

impl Program {
    /// The command for this repository.
    pub fn new(repository: &Repository) -> Self {
        // Without the trailing slash, which git would repeat.
        let git_dir: PathBuf = repository.path().components().collect();
        Self {
            directory: repository.workdir().unwrap_or(&git_dir).to_owned(),
            work_tree: repository.workdir().map(Path::to_owned),
            git_dir: Some(git_dir),
        }
    }

    /// The command for the current folder's repository, if there is one.
    pub fn here() -> Self {
        Self {
            git_dir: None,
            work_tree: None,
            directory: PathBuf::from("."),
        }
    }

    /// git's version, as printed and parsed.
    ///
    /// # Errors
    /// [`ProgramError`] when git fails.
    pub fn version(&self) -> Result<(String, Version), ProgramError> {
        let output = self.run(&["version"])?;
        let words = output.trim().trim_start_matches("git version ").to_owned();
        let mut numbers = words.split(['.', ' ']).map_while(|n| n.parse().ok());
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) => Ok((words, Version { major, minor })),
            _ => Err(ProgramError::Failed { message: words }),
        }
    }

    /// The hooks folder: `core.hooksPath` or the default.
    ///
    /// # Errors
    /// [`ProgramError`] when git fails.
    pub fn hooks_folder(&self) -> Result<PathBuf, ProgramError> {
        // Asked for the folder itself, git hides that an empty core.hooksPath means the root.
        let output = self.run(&["rev-parse", "--git-path", "hooks/pre-commit"])?;
        // A relative path starts in the folder where hooks run.
        let path = self.directory.join(output.trim_end_matches(['\n', '\r']));
        Ok(path.parent().map_or_else(PathBuf::new, Into::into))
    }

    /// The git directory that git finds.
    ///
    /// # Errors
    /// [`ProgramError`] when git finds none, or refuses it.
    pub(super) fn git_dir(&self) -> Result<PathBuf, ProgramError> {
        let output = self.run(&["rev-parse", "--git-dir"])?;
        Ok(output.trim_end_matches(['\n', '\r']).into())
    }

    /// The folder of git's own programs (`git --exec-path`), which is first on the PATH of hooks.
    ///
    /// # Errors
    /// [`ProgramError`] when git fails.
    pub fn own_folder(&self) -> Result<PathBuf, ProgramError> {
        let output = self.run(&["--exec-path"])?;
        Ok(output.trim_end_matches(['\n', '\r']).into())
    }

    /// The ones among these paths that git ignores.
    ///
    /// # Errors
    /// [`ProgramError`] when git fails, and when it ignores none.
    pub fn ignored(&self, paths: &[String]) -> Result<Vec<String>, ProgramError> {
        let paths = paths.iter().map(String::as_str);
        let words: Vec<&str> = ["check-ignore", "--"].into_iter().chain(paths).collect();
        Ok(self.run(&words)?.lines().map(str::to_owned).collect())
    }

    /// Whether a submodule is unchanged in HEAD, index and working tree, by its path from the root.
    ///
    /// # Errors
    /// [`ProgramError`] when git fails.
    pub(super) fn has_same(
        repository: &Repository,
        submodule: &Path,
    ) -> Result<bool, ProgramError> {
        let mut path = OsString::from(":(top,literal)");
        path.push(submodule);
        let words = ["--ignore-submodules=none".as_ref(), "--".as_ref(), &*path];
        Ok(Self::status(repository, &words)?.is_empty())
    }

    /// The number of uncommitted files: changed, added, deleted and untracked, without ignored ones
    /// and submodules.
    ///
    /// # Errors
    /// [`ProgramError`] when git fails, as it does without a working tree.
    pub fn uncommitted(repository: &Repository) -> Result<usize, ProgramError> {
        let words = [
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=all",
        ];
        let words = words.map(OsStr::new);
        Ok(Self::status(repository, &words)?.matches('\0').count())
    }

    /// The output of `git status`, which writes nothing and runs none of the repository's programs.
    fn status(repository: &Repository, words: &[&OsStr]) -> Result<String, ProgramError> {
        let mut command = git_alone(repository.path(), repository.workdir());
        let message = "the repository's filters can't be read".to_owned();
        let without = repository.without_own_filters(&mut command);
        without.map_err(|_| ProgramError::Failed { message })?;
        command.args(["--no-optional-locks", "status", "--porcelain"]);
        let output = command.args(words).output();
        printed(output.map_err(ProgramError::NoGit)?)
    }

    /// Resolves a revision expression by all refs that git knows; `None` if it is missing or
    /// ambiguous.
    ///
    /// # Errors
    /// [`ProgramError`] when git can't be started.
    pub(super) fn commit_named(&self, text: &str) -> Result<Option<ObjectId>, ProgramError> {
        let commit = format!("{text}^{{commit}}");
        let words = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &commit,
        ];
        let output = self.output(&words)?;
        let printed = String::from_utf8_lossy(&output.stdout);
        Ok(printed.trim_end().parse().ok())
    }

    /// The pager's command: `GIT_PAGER`, `core.pager`, `PAGER`, or git's default.
    ///
    /// # Errors
    /// [`ProgramError`] when git fails.
    pub fn pager(&self) -> Result<String, ProgramError> {
        let output = self.run(&["var", "GIT_PAGER"])?;
        Ok(output.trim_end_matches(['\n', '\r']).to_owned())
    }

    /// The settings whose keys match a regex, in git's order.
    ///
    /// # Errors
    /// [`ProgramError`] when git can't read its configuration.
    pub fn settings(&self, names: &str) -> Result<Vec<Setting>, ProgramError> {
        self.configured(&["config"], names)
    }

    /// Like [`Self::settings`], from the repository's own file only.
    ///
    /// # Errors
    /// [`ProgramError`] when git can't read it.
    pub fn own_settings(&self, names: &str) -> Result<Vec<Setting>, ProgramError> {
        self.configured(&["config", "--local"], names)
    }

    fn configured(&self, config: &[&str], names: &str) -> Result<Vec<Setting>, ProgramError> {
        let listing = [
            "--null",
            "--show-scope",
            "--show-origin",
            "--get-regexp",
            names,
        ];
        let output = self.output(&[config, &listing].concat())?;
        // git's exit code for no match.
        if output.status.code() == Some(1) && output.stdout.is_empty() {
            return Ok(Vec::new());
        }
        let output = printed(output)?;
        let mut parts = output.split('\0');
        let mut found = Vec::new();
        while let (Some(scope), Some(origin), Some(entry)) =
            (parts.next(), parts.next(), parts.next())
        {
            let (key, value) = match entry.split_once('\n') {
                Some((key, value)) => (key, Some(value.to_owned())),
                None => (entry, None),
            };
            found.push(Setting {
                scope: scope.to_owned(),
                origin: origin.to_owned(),
                key: key.to_owned(),
                value,
            });
        }
        Ok(found)
    }

    /// Sets a value in the repository's own configuration.
    ///
    /// # Errors
    /// [`ProgramError`] when the configuration can't be written.
    pub fn set(&self, key: &str, value: &str) -> Result<(), ProgramError> {
        self.run(&["config", "--local", "--replace-all", key, value])
            .map(drop)
    }

    /// Removes a section from the repository's own configuration.
    ///
    /// # Errors
    /// [`ProgramError`] when it is missing or can't be removed.
    pub fn remove_section(&self, name: &str) -> Result<(), ProgramError> {
        self.run(&["config", "--local", "--remove-section", name])
            .map(drop)
    }

    fn run(&self, args: &[impl AsRef<OsStr>]) -> Result<String, ProgramError> {
        printed(self.output(args)?)
    }

    fn output(&self, args: &[impl AsRef<OsStr>]) -> Result<std::process::Output, ProgramError> {
        let mut command = match &self.git_dir {
            Some(git_dir) => git(git_dir, self.work_tree.as_deref()),
            None => Command::new("git"),
        };
        command.args(args).current_dir(&self.directory);
        command.output().map_err(ProgramError::NoGit)
    }
}

fn printed(output: std::process::Output) -> Result<String, ProgramError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    if knows_no_tables(&message) {
        return Err(ProgramError::TooOld);
    }
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(ProgramError::Failed { message })
}
