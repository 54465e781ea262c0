//! The folder of an export while it is written.

use std::fs;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use handoff::base::ids::HandoffId;
use handoff::git::Repository;
use serde::Serialize;

use super::line::STEPS;
use super::places::Names;
use super::records::Reader;
use super::shared_folder::SharedFolder;
use super::{ExchangeError, Layout, folders, unreadable, unwritable};

pub(super) struct Out {
    root: PathBuf,
    pub(super) written: usize,
    pub(super) names: Names,
    /// The folder of states, which may exist already.
    pub(super) shared: Option<SharedFolder>,
    /// Files of other programs where an exported file would be.
    pub(super) kept: Vec<String>,
}

impl Out {
    /// Starts with a new or empty folder; a folder of states may contain files of earlier exports
    /// and of other programs.
    pub(super) fn begin(
        root: &Path,
        layout: Layout,
        repository: &Repository,
    ) -> Result<Self, ExchangeError> {
        let is_shared = layout == Layout::Folders;
        match fs::read_dir(root) {
            Ok(mut entries) => {
                if !is_shared && entries.next().is_some() {
                    return Err(ExchangeError::NotEmpty {
                        path: root.to_owned(),
                    });
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                fs::create_dir_all(root).map_err(unwritable(root))?;
            }
            Err(error) => return Err(unreadable(root)(error)),
        }
        let mut out = Self {
            root: root.to_owned(),
            written: 0,
            names: Names::default(),
            shared: None,
            kept: Vec::new(),
        };
        if is_shared {
            let folder = SharedFolder::open(root, repository.common_dir())?;
            if folder.is_foreign(STEPS)? {
                let path = root.join(STEPS);
                return Err(ExchangeError::Foreign { path });
            }
            out.shared = Some(folder);
        }
        Ok(out)
    }

    /// Writes the folders of states, and adds the steps' file to the index.
    pub(super) fn states(
        &mut self,
        reader: &mut Reader<'_, '_>,
        sent: &[HandoffId],
    ) -> Result<(), ExchangeError> {
        let Some(folder) = &mut self.shared else {
            return Ok(());
        };
        let mut sent = sent.to_vec();
        let top = folder.top();
        let done = folders::write(folder, top, reader, &mut sent, false)?;
        self.written += done.written.len();
        self.kept = done.kept;
        Ok(())
    }

    fn create(&mut self, inside: &str) -> Result<(File, PathBuf), ExchangeError> {
        let path = self.root.join(inside);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(unwritable(parent))?;
        }
        // The steps of an interrupted export are discarded and written again.
        if self.shared.is_some() && inside == part() {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(unwritable(&path)(error));
                }
                _ => {}
            }
        }
        let file = File::create_new(&path).map_err(unwritable(&path))?;
        self.written += 1;
        Ok((file, path))
    }

    /// Writes a new file; in a folder that was exported to before, an immutable file may exist.
    pub(super) fn write(&mut self, inside: &str, bytes: &[u8]) -> Result<(), ExchangeError> {
        if let Some(folder) = &self.shared
            && folder.has(inside)
        {
            let path = self.root.join(inside);
            return if folder.is(inside, bytes)? {
                Ok(())
            } else {
                Err(ExchangeError::Foreign { path })
            };
        }
        let (mut file, path) = self.create(inside)?;
        file.write_all(bytes).map_err(unwritable(&path))
    }
}

/// A file with one JSON value per line.
pub(super) struct Lines {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Lines {
    pub(super) fn begin(out: &mut Out, inside: &str) -> Result<Self, ExchangeError> {
        let (file, path) = out.create(inside)?;
        let file = BufWriter::new(file);
        Ok(Self { file, path })
    }

    pub(super) fn add(&mut self, value: &impl Serialize) -> Result<(), ExchangeError> {
        let mut line = serde_json::to_vec(value).expect("stored types have string keys");
        line.push(b'\n');
        self.file.write_all(&line).map_err(unwritable(&self.path))
    }

    pub(super) fn end(mut self) -> Result<PathBuf, ExchangeError> {
        self.file.flush().map_err(unwritable(&self.path))?;
        Ok(self.path)
    }
}

/// The temporary name of the steps' file.
pub(super) fn part() -> String {
    format!("{STEPS}.part")
}
