//! What this clone remembers of a ledger beside the branch: the last commit of
//! it that was written or found sound here, and up to where it was audited.
//!
//! The branch alone can't show that commits were cut off its end, or that it was
//! built anew: whoever saw it before can. These notes may be lost at any time;
//! then nothing is known of what was before.

use handoff_base::{Moment, ObjectId, moment};
use handoff_git::{Repository, Scratch};
use serde::{Deserialize, Serialize};

/// How many commits a writer looks back for what this clone saw, where others
/// moved the branch: as many as cost a tenth of a write. What is beyond them, the
/// next audit finds.
const LOOK_BACK: usize = 16;

/// The notes of this clone about the ledger on one branch.
pub(super) struct Memory<'r> {
    repository: &'r Repository,
    seen: Scratch,
    verified: Scratch,
    survey: Scratch,
    audited: Scratch,
}

/// What the last audit in this clone found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audited {
    /// The commit that the branch was at.
    pub commit: String,
    /// When it was audited.
    #[serde(with = "moment")]
    pub at: Moment,
    /// How many faults were found.
    pub faults: u64,
    /// Their codes, each once.
    pub codes: Vec<String>,
}

/// Up to where a ledger was audited, and found sound.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Verified {
    /// The commit.
    commit: String,
    /// The program that did it: another one may look at more.
    program: String,
}

/// The program whose audits count.
const PROGRAM: &str = concat!("git-handoff ", env!("CARGO_PKG_VERSION"));

impl<'r> Memory<'r> {
    /// The notes about the ledger on this branch.
    pub(super) fn new(repository: &'r Repository, refname: &str) -> Self {
        let note = |kind: &str| {
            let name = format!("{kind}/{refname}");
            Scratch::new(repository.common_dir(), &name)
        };
        Self {
            repository,
            seen: note("seen"),
            verified: note("verified"),
            survey: note("survey"),
            audited: note("audited"),
        }
    }

    /// The note that the last survey left.
    pub(super) fn survey(&self) -> &Scratch {
        &self.survey
    }

    /// The last commit of the branch that was written here, or found sound.
    pub(super) fn seen(&self) -> Option<ObjectId> {
        let bytes = self.seen.read()?;
        String::from_utf8(bytes).ok()?.trim_end().parse().ok()
    }

    /// Notes a commit that was written on this parent. What was seen before it
    /// stays noted where it is not among the ancestors, as evidence.
    pub(super) fn wrote(&self, parent: Option<ObjectId>, commit: ObjectId) {
        let follows = match (self.seen(), parent) {
            (None, _) => true,
            (Some(seen), Some(parent)) if seen == parent => true,
            (Some(seen), Some(parent)) => {
                let recent = self.repository.first_parents(parent).take(LOOK_BACK);
                recent.map_while(Result::ok).any(|id| id == seen)
            }
            (Some(_), None) => false,
        };
        if follows {
            self.saw(commit);
        }
    }

    /// Notes a commit, whatever was seen before. A note that can't be left only
    /// leaves the next audit without its help.
    pub(super) fn saw(&self, commit: ObjectId) {
        if self.seen() != Some(commit) {
            let _ = self.seen.write_over(format!("{commit}\n").as_bytes());
        }
    }

    /// The commit up to which the ledger was audited by this program.
    pub(super) fn verified(&self) -> Option<ObjectId> {
        let noted: Verified = serde_json::from_slice(&self.verified.read()?).ok()?;
        (noted.program == PROGRAM).then(|| noted.commit.parse().ok())?
    }

    /// Notes up to where the ledger was audited.
    pub(super) fn found_sound(&self, commit: ObjectId) {
        if self.verified() == Some(commit) {
            return;
        }
        let noted = Verified {
            commit: commit.to_string(),
            program: PROGRAM.to_owned(),
        };
        if let Ok(bytes) = serde_json::to_vec(&noted) {
            let _ = self.verified.write(&bytes);
        }
    }

    /// What the last audit here found, if there was one.
    pub(super) fn audited(&self) -> Option<Audited> {
        serde_json::from_slice(&self.audited.read()?).ok()
    }

    /// Notes what an audit found. A note that can't be left is one that is not there.
    pub(super) fn note_audit(&self, audited: &Audited) {
        if let Ok(bytes) = serde_json::to_vec(audited) {
            let _ = self.audited.write(&bytes);
        }
    }
}
