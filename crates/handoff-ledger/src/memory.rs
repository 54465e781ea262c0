//! A clone's notes about a ledger, outside the branch: the last commit that was written or found
//! valid here, and how far it was audited.
//!
//! The branch alone can't show that commits were removed from its end or that it was rebuilt; a
//! clone that saw it before can. The notes may be lost at any time; earlier states are unknown
//! then.

use handoff_base::{Moment, ObjectId};
use handoff_git::{GitError, Repository, Scratch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many commits a writer looks back for the last one this clone saw, if others moved the
/// branch. Reading them costs a tenth of a write. The next audit covers the rest.
pub(super) const LOOK_BACK: usize = 16;

pub(super) struct Memory<'r> {
    repository: &'r Repository,
    refname: String,
    seen: Scratch,
    verified: Scratch,
    survey: Scratch,
    audited: Scratch,
    kept: Scratch,
}

/// What a clone noted of the branch.
struct Noted {
    seen: ObjectId,
    sound: Option<ObjectId>,
    from: Option<ObjectId>,
}

/// The result of the last audit in this clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Audited {
    /// The commit that the branch was at.
    pub commit: String,
    /// When it was audited.
    pub at: Moment,
    /// The number of faults found.
    pub faults: u64,
    /// Their codes, without duplicates.
    pub codes: Vec<String>,
}

/// How far a ledger was audited and found valid.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Verified {
    commit: String,
    /// The program that audited it; another version may check more.
    program: String,
}

/// The program whose audits are trusted.
const PROGRAM: &str = concat!("git-handoff ", env!("CARGO_PKG_VERSION"));

impl<'r> Memory<'r> {
    pub(super) fn new(repository: &'r Repository, refname: &str) -> Self {
        let note = |kind: &str| {
            let name = format!("{kind}/{refname}");
            Scratch::new(repository.common_dir(), &name)
        };
        Self {
            repository,
            refname: refname.to_owned(),
            seen: note("seen"),
            verified: note("verified"),
            survey: note("survey"),
            audited: note("audited"),
            kept: note("kept"),
        }
    }

    /// The note of the last survey.
    pub(super) fn survey(&self) -> &Scratch {
        &self.survey
    }

    /// The last commit of the branch that was written or found valid here.
    pub(super) fn seen(&self) -> Option<ObjectId> {
        let noted = self.noted()?;
        // A process was killed before it moved the branch as it had announced.
        let is_there =
            |from: &ObjectId| self.repository.resolve(&self.refname).ok() == Some(Some(*from));
        Some(noted.from.filter(is_there).unwrap_or(noted.seen))
    }

    /// The commit up to which the ledger is sound by this program: an audit found it so, or it was
    /// written here on what is.
    pub(super) fn sound(&self) -> Option<ObjectId> {
        self.noted()
            .and_then(|noted| noted.sound)
            .or_else(|| self.verified())
    }

    /// A line each: what was seen, what is sound, and from where the branch was about to move there.
    fn noted(&self) -> Option<Noted> {
        let text = String::from_utf8(self.seen.read()?).ok()?;
        let mut lines = text.lines();
        let seen = lines.next()?.parse().ok()?;
        let sound = lines.next().and_then(|line| line.strip_suffix(PROGRAM));
        Some(Noted {
            seen,
            sound: sound.and_then(|sound| sound.trim_end().parse().ok()),
            from: lines.next().and_then(|line| line.parse().ok()),
        })
    }

    /// Notes that the branch is about to move, to a commit that does not descend from where it is.
    pub(super) fn about_to_move(&self, from: ObjectId, to: ObjectId) {
        self.note(to, self.sound(), Some(from));
    }

    /// Notes a commit that was written here, as the branch moved to it from this one.
    pub(super) fn wrote(&self, parent: Option<ObjectId>, commit: ObjectId) {
        let sound = self.sound();
        // Steps of others may stand between them.
        let is_next = |from| {
            let before = self.repository.first_parents(commit).nth(1);
            sound == Some(from) && matches!(before, Some(Ok(id)) if id == from)
        };
        let extends = parent.is_none_or(is_next);
        self.follow(parent, commit, if extends { Some(commit) } else { sound });
    }

    /// Notes where the branch moved from this commit, with steps of others.
    pub(super) fn moved(&self, from: Option<ObjectId>, commit: ObjectId) {
        self.follow(from, commit, self.sound());
    }

    /// An earlier note stays as evidence if its commit is not an ancestor.
    fn follow(&self, parent: Option<ObjectId>, commit: ObjectId, sound: Option<ObjectId>) {
        let announced = self.noted().and_then(|noted| noted.from);
        let follows = match (self.seen(), parent) {
            (None, _) => true,
            (Some(seen), Some(parent)) if seen == parent || announced == Some(parent) => true,
            (Some(seen), Some(parent)) => {
                let recent = self.repository.first_parents(parent).take(LOOK_BACK);
                recent.map_while(Result::ok).any(|id| id == seen)
            }
            (Some(_), None) => false,
        };
        if follows {
            self.note(commit, sound, None);
        }
    }

    /// Notes a commit, replacing any earlier note. A failure to write it is ignored: the next audit
    /// goes without it.
    pub(super) fn saw(&self, commit: ObjectId) {
        let is_noted = |noted: &Noted| noted.seen == commit && noted.from.is_none();
        if !self.noted().is_some_and(|noted| is_noted(&noted)) {
            self.note(commit, self.sound(), None);
        }
    }

    /// Notes that the ledger is sound up to its tip.
    pub(super) fn sound_to(&self, tip: ObjectId) {
        if self.sound() != Some(tip) {
            self.note(tip, Some(tip), None);
        }
    }

    fn note(&self, seen: ObjectId, sound: Option<ObjectId>, from: Option<ObjectId>) {
        let sound = sound.map(|sound| format!("{sound} {PROGRAM}"));
        let from = from.map(|from| format!("{from}\n"));
        let (sound, from) = (sound.unwrap_or_default(), from.unwrap_or_default());
        let text = format!("{seen}\n{sound}\n{from}");
        let _ = self.seen.write_over(text.as_bytes());
    }

    /// The commit up to which this program audited the ledger.
    pub(super) fn verified(&self) -> Option<ObjectId> {
        let noted: Verified = serde_json::from_slice(&self.verified.read()?).ok()?;
        (noted.program == PROGRAM).then(|| noted.commit.parse().ok())?
    }

    /// Notes how far the ledger was audited.
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

    /// The tags of this clone's refused steps; a fetch of all refs also brings those of other
    /// clones.
    pub(super) fn kept(&self) -> Vec<ObjectId> {
        let text = self.kept.read().unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Notes the tag of a refused step.
    ///
    /// # Errors
    /// [`GitError`] if it can't be noted.
    pub(super) fn keeps(&self, tag: ObjectId) -> Result<(), GitError> {
        let noted = self.kept.append(format!("{tag}\n").as_bytes());
        let path = self.repository.common_dir().join("handoff/kept");
        noted
            .map(drop)
            .map_err(|error| GitError::unwritable(&path, &error))
    }

    /// The result of the last audit here, if there was one.
    pub(super) fn audited(&self) -> Option<Audited> {
        serde_json::from_slice(&self.audited.read()?).ok()
    }

    /// Notes the result of an audit. Write errors are ignored.
    pub(super) fn note_audit(&self, audited: &Audited) {
        if let Ok(bytes) = serde_json::to_vec(audited) {
            let _ = self.audited.write(&bytes);
        }
    }
}
