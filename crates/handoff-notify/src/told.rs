//! The sent notices, in a file of the git directory, so that the next run resumes after a crash.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use handoff::base::digest;
use handoff::base::ids::HandoffId;
use handoff::git::new_beside;
use serde::{Deserialize, Serialize};

use super::notice::Notice;
use handoff_cli::failure::{ErrorCode, Failure};
use handoff_cli::process::locked;

/// The unsettled notices that a channel was sent.
#[derive(Debug)]
pub(super) struct Told {
    file: PathBuf,
    /// Only one process sends to a channel at a time.
    _lock: File,
    pub(super) notices: BTreeMap<HandoffId, Known>,
}

/// A notice that was delivered, or may have been.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    pub(super) notice: Notice,
    /// Its handle in the channel, if it can be replaced there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) handle: Option<String>,
    /// Whether the delivery's result is unknown: it was interrupted, or not answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unsure: bool,
}

impl Known {
    pub(super) fn of(notice: Notice, handle: Option<String>) -> Self {
        Self {
            notice,
            handle,
            unsure: false,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    notices: Vec<Known>,
}

impl Told {
    /// Reads the sent notices, and locks them.
    ///
    /// # Errors
    /// A [`Failure`] if another process has the lock, or the file can't be read or written.
    pub(super) fn open(common_dir: &Path, key: &str) -> Result<Self, Failure> {
        let folder = common_dir.join("handoff/notify");
        let name = &digest(key.as_bytes())[..16];
        let file = folder.join(format!("{name}.json"));
        let unusable = |error: &io::Error| failed(&file, &error.to_string());
        let lock = locked(&folder.join(format!("{name}.lock")));
        let Some(lock) = lock.map_err(|error| unusable(&error))? else {
            let text = "another `git handoff notify` of this clone already sends these notices";
            return Err(Failure::new(ErrorCode::AlreadyNotified, text)
                .hint("leave it to that one, or stop it first"));
        };
        let stored = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice::<Stored>(&bytes).map_err(|e| e.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Stored {
                version: 1,
                notices: Vec::new(),
            }),
            Err(error) => Err(error.to_string()),
        };
        let stored = stored.and_then(|stored| match stored.version {
            1 => Ok(stored),
            other => Err(format!("its version is {other}, not 1")),
        });
        let stored = stored.map_err(|why| failed(&file, &why))?;
        let notices = stored.notices.into_iter();
        Ok(Self {
            _lock: lock,
            notices: notices
                .map(|known| (known.notice.about.id.clone(), known))
                .collect(),
            file,
        })
    }

    /// Notes that a notice is about to be delivered, so that after a kill its result counts as
    /// unknown. Returns the earlier note.
    pub(super) fn delivering(&mut self, notice: &Notice) -> Result<Option<Known>, Failure> {
        let before = self.notices.get(&notice.about.id).cloned();
        let handle = before.as_ref().and_then(|known| known.handle.clone());
        let known = Known {
            unsure: true,
            ..Known::of(notice.clone(), handle)
        };
        self.notices.insert(notice.about.id.clone(), known);
        self.write()?;
        Ok(before)
    }

    /// Notes that a notice was not delivered: the earlier note is valid again.
    pub(super) fn refused(
        &mut self,
        notice: &Notice,
        before: Option<Known>,
    ) -> Result<(), Failure> {
        match before {
            Some(known) => self.notices.insert(notice.about.id.clone(), known),
            None => self.notices.remove(&notice.about.id),
        };
        self.write()
    }

    /// Notes that a notice was delivered, so that it is not repeated.
    pub(super) fn delivered(
        &mut self,
        notice: &Notice,
        handle: Option<String>,
    ) -> Result<(), Failure> {
        if notice.is_settled() {
            self.notices.remove(&notice.about.id);
        } else {
            let known = Known::of(notice.clone(), handle);
            self.notices.insert(notice.about.id.clone(), known);
        }
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
        self.replace()
            .map_err(|error| failed(&self.file, &error.to_string()))
    }

    fn replace(&self) -> io::Result<()> {
        let stored = Stored {
            version: 1,
            notices: self.notices.values().cloned().collect(),
        };
        let mut new = new_beside(&self.file)?;
        new.write_all(serde_json::to_string(&stored)?.as_bytes())?;
        new.as_file().sync_data()?;
        new.persist(&self.file)?;
        Ok(())
    }
}

fn failed(file: &Path, why: &str) -> Failure {
    let text = format!("{} can't be used: {why}", file.display());
    Failure::new(ErrorCode::WorkerFile, text).hint(
        "it notes what was sent; without it, everything that needs somebody is sent once more",
    )
}
