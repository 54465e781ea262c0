//! Remembers the last survey, so that the next one reads only what changed.
//!
//! It is a note of this clone and may be lost at any time. A note that is incomplete, or of another
//! branch or program, is ignored.

use handoff_base::ObjectId;
use handoff_git::Scratch;
use serde::{Deserialize, Serialize};

use super::types::IssueSurvey;

/// The program whose notes are used: another version may use another format.
const PROGRAM: &str = concat!("git-handoff ", env!("CARGO_PKG_VERSION"), " 6");

/// The largest note that is read, in bytes: that of some three million handoffs.
const LARGEST: u64 = 1 << 30;

/// A survey, and the tree it was made from.
#[derive(Serialize, Deserialize)]
pub(super) struct Remembered {
    /// The id of the folder of all issues.
    issues_folder: String,
    pub(super) issues: Vec<IssueSurvey>,
}

impl Remembered {
    pub(super) fn new(issues_folder: ObjectId, issues: Vec<IssueSurvey>) -> Self {
        Self {
            issues_folder: issues_folder.to_string(),
            issues,
        }
    }

    /// The id of the folder of all issues that it was made from.
    pub(super) fn folder(&self) -> Option<ObjectId> {
        self.issues_folder.parse().ok()
    }

    pub(super) fn read(note: &Scratch) -> Option<Self> {
        let bytes = note.read_up_to(LARGEST)?;
        let (sum, rest) = bytes.split_first_chunk()?;
        let rest = rest
            .strip_prefix(PROGRAM.as_bytes())
            .filter(|_| crc32fast::hash(rest) == u32::from_le_bytes(*sum))?;
        postcard::from_bytes(rest).ok()
    }

    /// Writes a note. If that fails, the next survey just goes without it.
    pub(super) fn write(&self, note: &Scratch) {
        let start = [&[0; 4], PROGRAM.as_bytes()].concat();
        let Ok(mut bytes) = postcard::to_extend(self, start) else {
            return;
        };
        let sum = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        let _ = note.write(&bytes);
    }
}
