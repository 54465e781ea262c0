//! Commits: as data (here), their ancestry, and how they are made, signed and verified.

mod ancestry;
mod prepared_commit;
mod signature;
mod signed_commit;
mod stripspace;

pub use prepared_commit::{Prepared, Proposal};
pub use signature::{Key, Signature, SignatureError};
pub use signed_commit::SignError;
pub use stripspace::{Cleanup, cleaned, comment_of};

use std::fmt;

use chrono::{DateTime, FixedOffset, Utc};
use git2::ObjectType;
use handoff_base::{ObjectFormat, ObjectId};

use crate::error::GitError;
use crate::objects::{ToOid, object_id};
use crate::program::Program;
use crate::repository::Repository;

/// An author or committer, with a date.
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
    /// Creates a person, dropping characters that would break a commit's header, as git does. An
    /// empty name becomes `unknown`, because git refuses it.
    pub fn new(name: &str, email: &str, at: DateTime<FixedOffset>) -> Self {
        let breaks = |c: char| c.is_control() || c == '<' || c == '>';
        let clean = |text: &str| text.replace(breaks, "").trim().to_owned();
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
        const HOUR: u32 = 60;
        let minutes = self.at.offset().local_minus_utc() / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        let (seconds, zone) = (self.at.timestamp(), minutes.unsigned_abs());
        let zone = zone / HOUR * 100 + zone % HOUR;
        write!(
            f,
            "{} <{}> {seconds} {sign}{zone:04}",
            self.name, self.email
        )
    }
}

/// The header with the signature of a commit whose ids have this format.
pub(super) fn signature_header(format: ObjectFormat) -> &'static str {
    match format {
        ObjectFormat::Sha1 => "gpgsig",
        ObjectFormat::Sha256 => "gpgsig-sha256",
    }
}

/// A commit's bytes in canonical form: the only form that this program writes, and accepts as a
/// step. `signature` is the text of the signature, as git stores it.
pub(super) fn commit_bytes(
    tree: ObjectId,
    parents: &[ObjectId],
    [author, committer]: [&Person; 2],
    signature: Option<&str>,
    message: &str,
) -> String {
    use fmt::Write;
    /// The usual size of the headers.
    const HEADER: usize = 384;
    let mut text = String::with_capacity(HEADER + message.len());
    let mut add = |line: fmt::Arguments<'_>| {
        text.write_fmt(line).expect("a string takes all text");
    };
    add(format_args!("tree {tree}\n"));
    for parent in parents {
        add(format_args!("parent {parent}\n"));
    }
    add(format_args!("author {author}\ncommitter {committer}\n"));
    for (number, line) in signature.iter().flat_map(|text| text.lines()).enumerate() {
        let header = signature_header(tree.format());
        let start = if number == 0 { header } else { "" };
        add(format_args!("{start} {line}\n"));
    }
    text.push('\n');
    text + message
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
    /// Whether its parents are missing because this clone is shallow.
    pub cut_off: bool,
}

/// A commit and its stored bytes.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The parsed commit.
    pub commit: Commit,
    raw: Vec<u8>,
    form: Form,
}

/// How a commit's stored bytes compare to the canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Canonical.
    Plain,
    /// Canonical, with a signature.
    Signed,
    /// Not canonical.
    Other,
}

impl Stored {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.raw
    }

    /// Whether it is canonical and has no signature.
    pub(super) fn is_plain(&self) -> bool {
        self.form == Form::Plain
    }

    /// The message as it is stored.
    pub fn message(&self) -> &[u8] {
        match self.form {
            Form::Plain | Form::Signed => self.commit.message.as_bytes(),
            Form::Other => split(&self.raw).1,
        }
    }

    /// The first line that is not canonical: the commit is serialized again from its parsed parts
    /// and compared byte for byte. Nothing that git and libgit2 parse differently, such as a second
    /// author, passes.
    pub fn difference(&self) -> Option<String> {
        if self.form != Form::Other {
            return None;
        }
        let Commit {
            tree,
            author,
            committer,
            message,
            ..
        } = &self.commit;
        let header = split(&self.raw).0;
        let start = format!("\n{} ", signature_header(tree.format()));
        let rest = memchr::memmem::find(header, start.as_bytes());
        let rest = rest.map(|at| String::from_utf8_lossy(&header[at + 1..]).into_owned());
        let signature = rest.and_then(|rest| Some(signature_in(&rest, tree.format())?.0));
        let parents = stored_parents(header);
        let people = [author, committer].map(Person::rewritten);
        let people = [&people[0], &people[1]];
        let again = commit_bytes(*tree, &parents, people, signature.as_deref(), message);
        let line = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut lines = again.as_bytes().split(|&b| b == b'\n');
        let mut own = self.raw.split(|&b| b == b'\n');
        let other = own.find(|own| lines.next() != Some(own));
        Some(other.map(line).unwrap_or_default())
    }
}

/// A stored commit's headers, without the last line break, and its message.
fn split(raw: &[u8]) -> (&[u8], &[u8]) {
    let end = raw.windows(2).position(|two| two == b"\n\n");
    let end = end.unwrap_or(raw.len());
    (&raw[..end], raw.get(end + 2..).unwrap_or_default())
}

/// Takes the next line, if it has this prefix.
fn line<'a>(rest: &mut &'a str, start: &str) -> Option<&'a str> {
    let (line, others) = rest.strip_prefix(start)?.split_once('\n')?;
    *rest = others;
    Some(line)
}

/// Parses a commit in canonical form; others are left to libgit2.
fn canonical_commit(id: ObjectId, raw: &[u8]) -> Option<(Commit, Form)> {
    let mut rest = std::str::from_utf8(raw).ok()?;
    let tree = line(&mut rest, "tree ")?.parse().ok()?;
    let mut parents = Vec::new();
    while let Some(parent) = line(&mut rest, "parent ") {
        parents.push(parent.parse().ok()?);
    }
    let author = person_in(line(&mut rest, "author ")?)?;
    let committer = person_in(line(&mut rest, "committer ")?)?;
    let mut signature = None;
    if rest.starts_with("gpgsig") {
        let (text, others) = signature_in(rest, id.format())?;
        (signature, rest) = (Some(text), others);
    }
    let message = rest.strip_prefix('\n')?;
    // libgit2 skips leading line breaks, and git ends the text at a NUL.
    if message.starts_with('\n') || message.contains('\0') {
        return None;
    }
    let people = [&author, &committer];
    let again = commit_bytes(tree, &parents, people, signature.as_deref(), message);
    let form = signature.map_or(Form::Plain, |_| Form::Signed);
    let commit = || Commit {
        id,
        tree,
        parents,
        message: message.to_owned(),
        author,
        committer,
        cut_off: false,
    };
    (again.as_bytes() == raw).then(|| (commit(), form))
}

/// Parses a person in canonical form.
fn person_in(line: &str) -> Option<Person> {
    let (name, rest) = line.split_once('<')?;
    let (email, when) = rest.split_once('>')?;
    let (seconds, zone) = when.strip_prefix(' ')?.split_once(' ')?;
    let zone: i32 = zone.parse().ok()?;
    let zone = FixedOffset::east_opt((zone / 100 * 60 + zone % 100) * 60)?;
    let seconds = seconds.parse().ok().filter(|s| YEARS.contains(s))?;
    let at = DateTime::from_timestamp(seconds, 0)?.with_timezone(&zone);
    Some(Person::new(name, email, at))
}

/// Valid commit times: from 1970, with a year of four digits.
const YEARS: std::ops::Range<i64> = 0..253_402_300_800;

/// The signature in the remaining headers, and what follows it; `None` if it is not one block from
/// its first to its last line.
fn signature_in(header: &str, format: ObjectFormat) -> Option<(String, &str)> {
    let mut rest = header;
    let first = line(&mut rest, signature_header(format))?.strip_prefix(' ')?;
    let kind = first.strip_prefix("-----BEGIN ")?.strip_suffix("-----")?;
    let last = format!("-----END {kind}-----");
    let mut text = format!("{first}\n");
    loop {
        let next = line(&mut rest, " ")?;
        if !next.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            return None;
        }
        text += next;
        text.push('\n');
        if next == last {
            return Some((text, rest));
        }
    }
}

fn stored_parents(header: &[u8]) -> Vec<ObjectId> {
    let lines = header.split(|&b| b == b'\n');
    let named = lines.filter_map(|line| line.strip_prefix(b"parent "));
    let ids = named.filter_map(|id| std::str::from_utf8(id).ok()?.parse().ok());
    ids.collect()
}

impl Person {
    /// The person in canonical form.
    fn rewritten(&self) -> Self {
        Self::new(&self.name, &self.email, self.at)
    }
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
        Ok(self.stored(id)?.commit)
    }

    /// Reads a commit through libgit2.
    fn commit_of_any_form(&self, id: ObjectId) -> Result<Commit, GitError> {
        let commit = self.patiently(|| self.inner.find_commit(id.oid()))?;
        Ok(Commit {
            id,
            tree: object_id(commit.tree_id()),
            parents: stored_parents(commit.raw_header_bytes()),
            author: person(&commit.author()),
            committer: person(&commit.committer()),
            message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
            cut_off: false,
        })
    }

    /// Resolves a revision expression to a commit; `None` if it is missing or ambiguous.
    ///
    /// # Errors
    /// [`GitError`] when it can't be looked up.
    pub fn commit_named(&self, text: &str) -> Result<Option<ObjectId>, GitError> {
        use git2::{ErrorClass as C, ErrorCode as E};
        if self.refs.is_gits_alone() {
            let named = Program::new(self).commit_named(text);
            return named.map_err(|error| GitError::of_system(&error.to_string()));
        }
        let found = self.inner.revparse_single(text);
        match found.and_then(|object| object.peel_to_commit()) {
            Ok(commit) => Ok(Some(object_id(commit.id()))),
            Err(error) => match error.code() {
                E::NotFound | E::Ambiguous | E::InvalidSpec | E::Peel => Ok(None),
                // libgit2 reports several codes for an invalid expression.
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
        let (mut commit, form) = match canonical_commit(id, &raw) {
            Some(parsed) => parsed,
            None => (self.commit_of_any_form(id)?, Form::Other),
        };
        if shallow && !commit.parents.is_empty() && self.is_boundary(id) {
            commit.parents.clear();
            commit.cut_off = true;
        }
        Ok(Stored { commit, raw, form })
    }
}
