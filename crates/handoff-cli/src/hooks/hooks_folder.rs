//! The folder that git reads a repository's hooks from.

use handoff::base::text::word;
use std::path::{Path, PathBuf};

use handoff::git::{Program, ProgramError, Repository, Setting};
use schemars::JsonSchema;
use serde::Serialize;

/// The setting `core.hooksPath`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HooksPath {
    /// Its value, as written.
    pub value: String,
    /// The file that sets it, as git names it.
    pub origin: String,
}

/// The folder that git reads a repository's hooks from.
#[derive(Clone, Debug)]
pub struct HooksFolder {
    /// The folder's path.
    pub folder: PathBuf,
    /// `core.hooksPath`, if it is set.
    pub hooks_path: Option<HooksPath>,
    /// Whether it is inside the git directory, so neither shared nor under version control.
    pub(crate) own: bool,
    /// The default folder, without `core.hooksPath`.
    pub(super) usual: PathBuf,
    /// The working tree's root, or the git directory of a bare repository.
    pub(super) root: PathBuf,
    /// Whether the repository has no working tree.
    pub bare: bool,
}

impl HooksFolder {
    /// Asks git for the folder.
    ///
    /// # Errors
    /// [`ProgramError`] when git fails.
    pub fn find(
        repository: &Repository,
        git: &Program,
        settings: &[Setting],
    ) -> Result<Self, ProgramError> {
        let folder = git.hooks_folder()?;
        let set = settings.iter().rfind(|s| s.key == "core.hookspath");
        let hooks_path = set.map(|setting| HooksPath {
            value: setting.value.clone().unwrap_or_default(),
            origin: setting.origin.clone(),
        });
        let common = repository.common_dir();
        Ok(Self {
            own: real(&folder).starts_with(real(common)),
            folder,
            hooks_path,
            usual: common.join("hooks"),
            root: repository.workdir().unwrap_or(common).to_owned(),
            bare: repository.workdir().is_none(),
        })
    }

    /// Whether git ignores the repository's own hooks folder.
    pub fn is_elsewhere(&self) -> bool {
        real(&self.folder) != real(&self.usual)
    }

    /// Whether no hook can exist there: `core.hooksPath` is empty, a file or a device.
    pub fn is_unusable(&self) -> bool {
        let is_empty = |path: &HooksPath| path.value.is_empty();
        let existing = self
            .folder
            .ancestors()
            .find_map(|path| path.metadata().ok());
        self.hooks_path.as_ref().is_some_and(is_empty) || existing.is_none_or(|at| !at.is_dir())
    }

    /// The command that switches git back to the repository's own folder.
    pub fn to_own_folder(&self) -> String {
        let usual = real(&self.usual).display().to_string();
        format!("git config core.hooksPath {}", word(&usual))
    }

    /// Why other repositories may share the folder.
    pub(super) fn why_shared(&self) -> String {
        match &self.hooks_path {
            Some(path) => format!(
                "core.hooksPath is {} ({}), so that hooks are in {}, which is not in this repository's git directory",
                path.value,
                path.origin,
                self.folder.display()
            ),
            None => format!(
                "hooks are in {}, which a link puts outside of this repository's git directory",
                self.folder.display()
            ),
        }
    }
}

/// A path with links resolved, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for (at, existing) in path.ancestors().enumerate() {
        if let Ok(found) = existing.canonicalize() {
            let missing: Vec<_> = path.iter().rev().take(at).collect();
            return missing
                .into_iter()
                .rev()
                .fold(found, |p, part| p.join(part));
        }
    }
    path.to_owned()
}
