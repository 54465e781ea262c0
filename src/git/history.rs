//! Commits as data: who, when, what was said, which tree.

use std::fmt;

use git2::ObjectType;

use super::repository::{GitError, ObjectId, Repository};
use chrono::{DateTime, FixedOffset, Utc};

/// An author or a committer, with the time of the act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The name, without `<`, `>`, line breaks and NUL.
    pub name: String,
    /// The address, likewise.
    pub email: String,
    /// When, to the second, with the zone it was recorded in.
    pub at: DateTime<FixedOffset>,
}

impl Person {
    /// Makes a person whose name and address can stand in a commit: what would
    /// break its header is dropped, as git drops it.
    pub fn new(name: &str, email: &str, at: DateTime<FixedOffset>) -> Self {
        let clean = |text: &str| -> String {
            let kept = text
                .chars()
                .filter(|c| !c.is_control() && !"<>".contains(*c));
            kept.collect::<String>().trim().to_owned()
        };
        Self {
            name: clean(name),
            email: clean(email),
            at,
        }
    }
}

/// A time in UTC, cut to the seconds that a commit can hold.
pub fn to_second(at: DateTime<FixedOffset>) -> DateTime<Utc> {
    DateTime::from_timestamp(at.timestamp(), 0).unwrap_or_default()
}

impl fmt::Display for Person {
    /// Writes the form that a commit object holds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.timestamp();
        let zone = self.at.format("%z");
        write!(f, "{} <{}> {seconds} {zone}", self.name, self.email)
    }
}

/// A commit, read whole.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its id.
    pub id: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, in order.
    pub parents: Vec<ObjectId>,
    /// Who wrote it.
    pub author: Person,
    /// Who recorded it.
    pub committer: Person,
    /// The whole message; bytes that are not UTF-8 are replaced.
    pub message: String,
    /// Whether it has parents that are not in this shallow clone.
    pub cut_off: bool,
}

fn person(signature: &git2::Signature<'_>) -> Person {
    let when = signature.when();
    let at = DateTime::<Utc>::from_timestamp(when.seconds(), 0).unwrap_or_default();
    let offset = FixedOffset::east_opt(when.offset_minutes().saturating_mul(60));
    Person {
        name: String::from_utf8_lossy(signature.name_bytes()).into_owned(),
        email: String::from_utf8_lossy(signature.email_bytes()).into_owned(),
        at: at.with_timezone(&offset.unwrap_or_else(utc)),
    }
}

fn utc() -> FixedOffset {
    DateTime::<Utc>::UNIX_EPOCH
        .fixed_offset()
        .offset()
        .to_owned()
}

impl Repository {
    /// Reads a commit.
    ///
    /// # Errors
    /// [`GitError`] when it is missing, damaged, or not a commit.
    pub fn commit(&self, id: ObjectId) -> Result<Commit, GitError> {
        let commit = self.inner.find_commit(id.0)?;
        Ok(Commit {
            id,
            tree: ObjectId(commit.tree_id()),
            parents: commit.parent_ids().map(ObjectId).collect(),
            author: person(&commit.author()),
            committer: person(&commit.committer()),
            message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
            cut_off: commit.parent_count() == 0
                && self.inner.is_shallow()
                && commit
                    .raw_header_bytes()
                    .split(|&b| b == b'\n')
                    .any(|l| l.starts_with(b"parent ")),
        })
    }

    /// A commit as it is stored: its header's lines and its message's bytes.
    ///
    /// # Errors
    /// [`GitError`] when it is missing, damaged, or not a commit.
    pub fn stored_commit(&self, id: ObjectId) -> Result<(String, Vec<u8>), GitError> {
        let mut raw = self.object(id, ObjectType::Commit)?;
        let end = raw.windows(2).position(|two| two == b"\n\n");
        let message = end.map_or(Vec::new(), |end| raw.split_off(end + 2));
        raw.truncate(end.map_or(raw.len(), |end| end + 1));
        Ok((String::from_utf8_lossy(&raw).into_owned(), message))
    }

    /// The ids of a commit and its first parents, the newest first. Stops where
    /// a shallow clone ends.
    ///
    /// One commit is read after the other: libgit2's own walk reads all of them
    /// before it names the first, and names none where one is missing.
    ///
    /// # Errors
    /// Each item may be a [`GitError`]; the walk ends there.
    pub fn first_parents(
        &self,
        tip: ObjectId,
    ) -> impl Iterator<Item = Result<ObjectId, GitError>> + '_ {
        let mut next = Some(tip.0);
        std::iter::from_fn(move || {
            let id = next.take()?;
            Some(match self.inner.find_commit(id) {
                Ok(commit) => {
                    next = commit.parent_id(0).ok();
                    Ok(ObjectId(id))
                }
                Err(error) => Err(error.into()),
            })
        })
    }

    /// Says whether history was cut off when this repository was cloned.
    pub fn is_shallow(&self) -> bool {
        self.inner.is_shallow()
    }
}
