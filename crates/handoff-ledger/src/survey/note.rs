//! Caches the last survey, so that the next one reads only what changed.
//!
//! The note belongs to this clone and may be lost at any time: a line with the program's version, a
//! checksum, and the survey with its trees. An incomplete or changed note, or another program's, is
//! ignored and replaced.

use handoff_base::ObjectId;
use handoff_git::Scratch;
use libdeflater::crc32;
use serde::{Deserialize, Serialize};

use super::issues::{Encoded, Issues};

/// The program whose notes are used: another version may use another format.
const PROGRAM: &str = concat!("git-handoff ", env!("CARGO_PKG_VERSION"), " 17\n");

/// The maximum size of a note, in bytes: about three million handoffs.
const LARGEST: u64 = 1 << 30;

/// The trees behind a survey.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trees {
    /// The folder of all issues.
    pub(super) issues: Option<ObjectId>,
    /// The index of archived issues.
    pub(super) archived: Option<ObjectId>,
}

/// Reads the note: a survey, and its trees.
pub(super) fn read(note: &Scratch) -> Option<(Trees, Issues)> {
    let bytes = note.read_up_to(LARGEST)?;
    let rest = bytes.strip_prefix(PROGRAM.as_bytes())?;
    let (sum, content) = rest.split_first_chunk()?;
    if crc32(content) != u32::from_le_bytes(*sum) {
        return None;
    }
    let (trees, issues): (Trees, Vec<Encoded<'_>>) = postcard::from_bytes(content).ok()?;
    let issues: Vec<_> = issues.into_iter().map(Encoded::into_owned).collect();
    Some((trees, issues.into()))
}

/// Replaces the note. A failure is ignored: the next survey then reads everything.
pub(super) fn write(note: &Scratch, trees: Trees, issues: &Issues) {
    if let Ok(content) = postcard::to_allocvec(&(trees, issues.encoded())) {
        let sum = crc32(&content).to_le_bytes();
        let _ = note.write(&[PROGRAM.as_bytes(), &sum, &content].concat());
    }
}
