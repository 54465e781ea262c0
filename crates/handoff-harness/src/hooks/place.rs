//! The folder that git takes a repository's hooks from.

use std::path::{Path, PathBuf};

use handoff_git::{Program, ProgramError, Repository, Setting};

/// The setting that has git look for hooks elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksPath {
    /// Its value, as it stands there.
    pub value: String,
    /// Where it is set, as git names the place.
    pub origin: String,
}

/// Where git takes hooks from.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder.
    pub folder: PathBuf,
    /// `core.hooksPath`, where it is set.
    pub hooks_path: Option<HooksPath>,
    /// Whether the folder is inside of the repository's git directory, so that nobody else
    /// has hooks in it and no commit changes it.
    pub own: bool,
    /// The folder that git would take them from without `core.hooksPath`.
    pub(super) usual: PathBuf,
    /// The working tree's root, or the git directory of a bare repository.
    pub(super) root: PathBuf,
    /// Whether the repository has no working tree.
    pub bare: bool,
}

impl Place {
    /// Asks git.
    ///
    /// # Errors
    /// [`ProgramError`] when git does not say it.
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

    /// Says whether `core.hooksPath` has git pass by the repository's own folder.
    pub(super) fn is_elsewhere(&self) -> bool {
        real(&self.folder) != real(&self.usual)
    }

    /// Why the folder is not only this repository's.
    pub(super) fn whose(&self) -> String {
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

/// A path without links, as far as it exists.
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
