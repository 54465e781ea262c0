//! Remembers the last survey, so that the next one reads only what changed.
//!
//! It is a note of this clone and may be lost at any time: a line that names the program, a checksum,
//! and the survey with the trees that it was made from. One that is incomplete, changed, or of another
//! program is ignored, and written anew.

use handoff_base::ObjectId;
use handoff_git::Scratch;
use libdeflater::crc32;
use serde::{Deserialize, Serialize};

use super::issues::{Encoded, Issues};

/// The program whose notes are used: another version may use another format.
const PROGRAM: &str = concat!("git-handoff ", env!("CARGO_PKG_VERSION"), " 15\n");

/// The largest note that is read, in bytes: that of some three million handoffs.
const LARGEST: u64 = 1 << 30;

/// What a survey is made from.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trees {
    /// The folder of all issues.
    pub(super) issues: Option<ObjectId>,
    /// The index of archived issues.
    pub(super) archived: Option<ObjectId>,
}

/// Reads the note: a survey, and what it was made from.
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

/// Replaces the note. If that fails, the next survey just goes without it.
pub(super) fn write(note: &Scratch, trees: Trees, issues: &Issues) {
    if let Ok(content) = postcard::to_allocvec(&(trees, issues.encoded())) {
        let sum = crc32(&content).to_le_bytes();
        let _ = note.write(&[PROGRAM.as_bytes(), &sum, &content].concat());
    }
}
