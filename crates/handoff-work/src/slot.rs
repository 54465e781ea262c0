//! Slots: each runs one piece of work at a time, under a worker id of its own.
//!
//! A slot's lock is held as long as its process lives, and its note says what runs there. A note
//! whose lock is free was left by a killed process: the next holder resumes the work, as the same
//! worker.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use handoff::base::ids::{AgentName, HandoffId, WorkerId};
use handoff::git::replace;
use handoff::model::ModelUsage;
use serde::{Deserialize, Serialize};

use handoff_cli::process::{ProcessGroup, locked};

/// A slot that this process holds.
#[derive(Debug)]
pub(super) struct Slot {
    folder: PathBuf,
    pub(super) number: usize,
    _lock: File,
}

/// What runs in a slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    /// Who works there.
    pub(super) agent: AgentName,
    pub(super) worker: WorkerId,
    /// Its handoff; `None` while it is about to claim one.
    pub(super) id: Option<HandoffId>,
    /// How often a process was killed over this piece of work.
    pub(super) cut_off: u32,
    /// Whether the process that wrote the note ended by itself, leaving the work to the next one.
    pub(super) is_left: bool,
    /// Whether the command was started.
    #[serde(default)]
    pub(super) has_run: bool,
    /// Whether the command still ran when the work was resumed: then its result is incomplete.
    #[serde(skip)]
    pub(super) was_running: bool,
    /// The usage of earlier runs of the work.
    #[serde(default)]
    pub(super) usage: Vec<ModelUsage>,
    /// The agent's processes.
    pub(super) group: Option<ProcessGroup>,
}

/// The folder for the notes of a clone's workers.
pub(super) fn folder(common_dir: &Path) -> PathBuf {
    common_dir.join("handoff/work")
}

impl Slot {
    /// Takes the free slot with the lowest number that has no note of a killed process.
    ///
    /// # Errors
    /// The system's error, if a lock can't be created.
    pub(super) fn take(folder: &Path) -> io::Result<Self> {
        for number in 1.. {
            let slot = Self::lock(folder, number)?;
            if let Some(slot) = slot.filter(|slot| slot.note().is_none()) {
                return Ok(slot);
            }
        }
        unreachable!("numbers do not end")
    }

    /// The slots of killed processes that nobody has taken since.
    pub(super) fn left_behind(folder: &Path) -> Vec<Self> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let number = |entry: fs::DirEntry| {
            let name = entry.file_name();
            name.to_str()?.strip_suffix(".json")?.parse::<usize>().ok()
        };
        let mut numbers: Vec<usize> = entries.filter_map(number).collect();
        numbers.sort_unstable();
        let free = numbers
            .into_iter()
            .filter_map(|number| Self::lock(folder, number).ok().flatten());
        // A process may have ended between the two checks.
        free.filter(|slot| slot.note().is_some()).collect()
    }

    /// Whether another process of this clone holds a slot.
    pub(super) fn is_any_held(folder: &Path) -> bool {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut locks = entries.map(|entry| entry.path());
        locks.any(|path| {
            let is_lock = path.extension().is_some_and(|ending| ending == "lock");
            is_lock && matches!(locked(&path), Ok(None))
        })
    }

    fn lock(folder: &Path, number: usize) -> io::Result<Option<Self>> {
        let lock = locked(&folder.join(format!("{number}.lock")))?;
        Ok(lock.map(|lock| Self {
            folder: folder.to_owned(),
            number,
            _lock: lock,
        }))
    }

    /// The note about what runs there, or ran when its process was killed.
    pub(super) fn note(&self) -> Option<Note> {
        serde_json::from_slice(&fs::read(self.file()).ok()?).ok()
    }

    /// Writes the note before the work begins.
    pub(super) fn write(&self, note: &Note) -> io::Result<()> {
        replace(&self.file(), serde_json::to_string(note)?.as_bytes())
    }

    /// Marks the work as left to the next process.
    pub(super) fn leave(&self) {
        if let Some(note) = self.note() {
            // If the note can't be written, the work counts as cut off.
            let _ = self.write(&Note {
                is_left: true,
                ..note
            });
        }
    }

    /// The folder for the worker's own files of a run.
    pub(super) fn run_folder(&self) -> PathBuf {
        self.folder.join(format!("{}.run", self.number))
    }

    /// Removes the note.
    pub(super) fn clear(&self) {
        let _ = fs::remove_dir_all(self.run_folder());
        // If the note can't be removed, its next reader finds that the work has ended.
        let _ = fs::remove_file(self.file());
    }

    fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.number))
    }
}
