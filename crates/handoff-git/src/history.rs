//! Commits as data.

use std::fmt;

use chrono::{DateTime, FixedOffset, Utc};
use git2::{ObjectType, Oid};
use handoff_base::ObjectId;

use super::error::GitError;
use super::object_id::{ToOid, object_id};
use super::repository::Repository;

/// An author or a committer, with a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The name, without `<`, `>`, line breaks or NUL.
    pub name: String,
    /// The address, with the same restrictions.
    pub email: String,
    /// The date, to the second, in its recorded time zone.
    pub at: DateTime<FixedOffset>,
}

impl Person {
    /// Creates a person. Characters that would break a commit's header are dropped, as git does. An
    /// empty name becomes `unknown`, since git refuses a commit without one.
    pub fn new(name: &str, email: &str, at: DateTime<FixedOffset>) -> Self {
        let clean = |text: &str| -> String {
            let kept = text
                .chars()
                .filter(|c| !c.is_control() && !"<>".contains(*c));
            kept.collect::<String>().trim().to_owned()
        };
        let name = match clean(name) {
            nothing if nothing.is_empty() => "unknown".to_owned(),
            name => name,
        };
        Self {
            name,
            email: clean(email),
            at,
        }
    }
}

impl fmt::Display for Person {
    /// The form in a commit object.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.timestamp();
        let zone = self.at.format("%z");
        write!(f, "{} <{}> {seconds} {zone}", self.name, self.email)
    }
}

/// A commit.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its id.
    pub id: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, in order.
    pub parents: Vec<ObjectId>,
    /// Who wrote the change.
    pub author: Person,
    /// Who made the commit.
    pub committer: Person,
    /// The message; bytes that are not UTF-8 are replaced.
    pub message: String,
    /// Whether its parents are missing from this shallow clone.
    pub cut_off: bool,
}

/// A commit and its stored bytes.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The parsed commit.
    pub commit: Commit,
    raw: Vec<u8>,
}

impl Stored {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.raw
    }

    /// The header without its last line break, and the message.
    pub fn parts(&self) -> (String, &[u8]) {
        let end = self.raw.windows(2).position(|two| two == b"\n\n");
        let end = end.unwrap_or(self.raw.len());
        let message = self.raw.get(end + 2..).unwrap_or_default();
        (
            String::from_utf8_lossy(&self.raw[..end]).into_owned(),
            message,
        )
    }
}

/// Parses a commit in exactly the form of ledger steps; libgit2 parses all others.
fn plain_commit(id: ObjectId, raw: &[u8]) -> Option<Commit> {
    fn line<'a>(raw: &mut &'a str, start: &str) -> Option<&'a str> {
        let (line, rest) = raw.strip_prefix(start)?.split_once('\n')?;
        *raw = rest;
        Some(line)
    }
    fn oid(line: &str) -> Option<ObjectId> {
        let oid = (line.len() == 40).then(|| Oid::from_str(line).ok())??;
        Some(object_id(oid))
    }
    let mut rest = std::str::from_utf8(raw)
        .ok()
        .filter(|t| !t.contains('\0'))?;
    let tree = oid(line(&mut rest, "tree ")?)?;
    let mut parents = Vec::new();
    while let Some(parent) = line(&mut rest, "parent ") {
        parents.push(oid(parent)?);
    }
    let author = plain_person(line(&mut rest, "author ")?)?;
    let committer = plain_person(line(&mut rest, "committer ")?)?;
    let message = rest.strip_prefix('\n').filter(|m| !m.starts_with('\n'))?;
    Some(Commit {
        id,
        tree,
        parents,
        author,
        committer,
        message: message.to_owned(),
        cut_off: false,
    })
}

fn plain_person(line: &str) -> Option<Person> {
    // What git trims from names, and what would end them.
    let crud = |b: u8| b <= b' ' || b".,:;<>\"\\'".contains(&b);
    let clean = |text: &str| {
        let bytes = text.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        ends.iter().all(|end| end.is_some_and(|&b| !crud(b))) && !text.contains(['<', '>'])
    };
    let (name, rest) = line.split_once(" <")?;
    let (email, when) = rest.split_once("> ")?;
    let (seconds, zone) = when.split_once(' ')?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let seconds_fit = (1..=11).contains(&seconds.len()) && digits(seconds);
    let (sign, zone) = zone.split_at_checked(1)?;
    let east = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    if !clean(name) || !clean(email) || !seconds_fit || zone.len() != 4 || !digits(zone) {
        return None;
    }
    let (hours, minutes) = (
        zone[..2].parse::<i32>().ok()?,
        zone[2..].parse::<i32>().ok()?,
    );
    if hours > 14 || minutes > 59 {
        return None;
    }
    let zone = FixedOffset::east_opt(east * (hours * 3600 + minutes * 60))?;
    Some(Person {
        name: name.to_owned(),
        email: email.to_owned(),
        at: DateTime::from_timestamp(seconds.parse().ok()?, 0)?.with_timezone(&zone),
    })
}

fn stored_parents(header: &[u8]) -> Vec<ObjectId> {
    let lines = header.split(|&b| b == b'\n');
    let named = lines.filter_map(|line| line.strip_prefix(b"parent "));
    let ids = named.filter_map(|id| Oid::from_str(std::str::from_utf8(id).ok()?).ok());
    ids.map(object_id).collect()
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
        let commit = self.patiently(|| self.inner.find_commit(id.oid()))?;
        let parents = stored_parents(commit.raw_header_bytes());
        let cut_off = !parents.is_empty() && self.is_boundary(id);
        Ok(Commit {
            id,
            tree: object_id(commit.tree_id()),
            parents: if cut_off { Vec::new() } else { parents },
            author: person(&commit.author()),
            committer: person(&commit.committer()),
            message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
            cut_off,
        })
    }

    /// The commit that a revision expression names; `None` if it is missing or ambiguous.
    ///
    /// # Errors
    /// [`GitError`] when it can't be looked up.
    pub fn commit_named(&self, text: &str) -> Result<Option<ObjectId>, GitError> {
        use git2::{ErrorClass as C, ErrorCode as E};
        let found = self.inner.revparse_single(text);
        match found.and_then(|object| object.peel_to_commit()) {
            Ok(commit) => Ok(Some(object_id(commit.id()))),
            Err(error) => match error.code() {
                E::NotFound | E::Ambiguous | E::InvalidSpec | E::Peel => Ok(None),
                // libgit2 has several errors for what it can't parse.
                E::GenericError | E::Invalid
                    if [C::None, C::Invalid, C::Regex].contains(&error.class()) =>
                {
                    Ok(None)
                }
                _ => Err(error.into()),
            },
        }
    }

    pub(super) fn stored(&self, id: ObjectId) -> Result<Stored, GitError> {
        self.stored_in(id, self.is_shallow())
    }

    fn stored_in(&self, id: ObjectId, shallow: bool) -> Result<Stored, GitError> {
        let raw = self.object(id, ObjectType::Commit)?.to_vec();
        let plain = plain_commit(id, &raw).filter(|_| !shallow);
        Ok(Stored {
            commit: plain.map_or_else(|| self.commit(id), Ok)?,
            raw,
        })
    }

    /// A commit and its first parents, the newest first, up to the end of a shallow clone.
    ///
    /// # Errors
    /// Each item may be a [`GitError`]; the walk ends there.
    pub fn history(&self, tip: ObjectId) -> impl Iterator<Item = Result<Stored, GitError>> + '_ {
        let shallow = self.is_shallow();
        let mut next = Some(tip);
        std::iter::from_fn(move || {
            let stored = self.stored_in(next.take()?, shallow);
            if let Ok(stored) = &stored {
                next = stored.commit.parents.first().copied();
            }
            Some(stored)
        })
    }

    /// The ids of a commit and its first parents, the newest first, up to the end of a shallow
    /// clone.
    ///
    /// They are read one after the other: libgit2's own walk reads all of them before it returns
    /// the first, and returns none if one is missing.
    ///
    /// # Errors
    /// Each item may be a [`GitError`]; the walk ends there.
    pub fn first_parents(
        &self,
        tip: ObjectId,
    ) -> impl Iterator<Item = Result<ObjectId, GitError>> + '_ {
        let shallow = self.is_shallow();
        let mut next = Some(tip);
        std::iter::from_fn(move || {
            let id = next.take()?;
            Some(match self.patiently(|| self.inner.find_commit(id.oid())) {
                Ok(commit) => {
                    let before = stored_parents(commit.raw_header_bytes()).into_iter().next();
                    next = before.filter(|_| !shallow || !self.is_boundary(id));
                    Ok(id)
                }
                Err(error) => Err(error.into()),
            })
        })
    }

    /// Counts the commits that only the first of two histories has, and those that only the second
    /// has.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn ahead_and_behind(
        &self,
        one: ObjectId,
        other: ObjectId,
    ) -> Result<(usize, usize), GitError> {
        if self.is_shallow() {
            let (one, _) = self.ancestors(one, |_| false)?;
            let (other, _) = self.ancestors(other, |_| false)?;
            return Ok((
                one.difference(&other).count(),
                other.difference(&one).count(),
            ));
        }
        Ok(self.inner.graph_ahead_behind(one.oid(), other.oid())?)
    }
}
