//! All issues of a ledger, packed; each is unpacked when it is looked at.

use std::collections::HashSet;
use std::ops::Range;

use handoff_base::Moment;
use handoff_base::ids::IssueKey;

use super::packed::{Packed, Table, Unpacking, read_number, write_number};
use super::types::IssueSurvey;

/// Summaries of issues, sorted by number, then by name. They take some 80 bytes for each handoff.
#[derive(Debug, Default)]
pub struct Issues {
    table: Table,
    parts: Vec<Part>,
    /// The part and the place in it of each issue.
    sorted: Vec<(usize, usize)>,
}

/// Issues that were read together.
#[derive(Debug, Default)]
struct Part {
    numbers: Vec<u8>,
    text: String,
    places: Vec<Place>,
}

/// Where an issue is in its part.
#[derive(Debug)]
struct Place {
    key: IssueKey,
    is_active: bool,
    /// The last time in it, in milliseconds since 1970.
    newest: i64,
    numbers: Range<usize>,
    text: Range<usize>,
}

/// A packed issue with its handoffs.
pub(super) struct PackedIssue {
    pub(super) key: IssueKey,
    pub(super) packed: Packed,
}

/// Packed issues as bytes: those that changed, the keys of those that are gone, and the names that
/// no earlier part has.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) numbers: Vec<u8>,
    pub(super) text: String,
}

impl Issues {
    /// The number of issues.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there is no issue.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Unpacks each issue, sorted by number, then by name.
    pub fn iter(&self) -> impl Iterator<Item = IssueSurvey<'_>> {
        let all = self.sorted.iter();
        all.filter_map(|(part, at)| self.unpacked(*part, *at))
    }

    /// Unpacks the issues in which something may still need somebody: those that are open, have an
    /// open handoff, or await somebody or have yet to tell somebody.
    pub fn active(&self) -> impl Iterator<Item = IssueSurvey<'_>> {
        self.active_since(Some(Moment::LAST))
    }

    /// The same with the issues that have a time after this one: of a change, of a lease's end, or
    /// of a pause's. All issues without it.
    pub fn active_since(&self, since: Option<Moment>) -> impl Iterator<Item = IssueSurvey<'_>> {
        let since = since.map(|since| since.timestamp_millis());
        let counts =
            move |place: &Place| place.is_active || since.is_none_or(|since| place.newest >= since);
        let all = self.sorted.iter();
        let some = all.filter(move |(part, at)| self.place(*part, *at).is_some_and(counts));
        some.filter_map(|(part, at)| self.unpacked(*part, *at))
    }

    /// An issue by its key.
    pub fn get(&self, key: &IssueKey) -> Option<IssueSurvey<'_>> {
        let found = self.sorted.binary_search_by(|(part, at)| {
            let place = self.place(*part, *at);
            place.map(|place| order(&place.key)).cmp(&Some(order(key)))
        });
        let (part, at) = self.sorted.get(found.ok()?)?;
        self.unpacked(*part, *at)
    }

    fn place(&self, part: usize, at: usize) -> Option<&Place> {
        self.parts.get(part)?.places.get(at)
    }

    fn unpacked(&self, part: usize, at: usize) -> Option<IssueSurvey<'_>> {
        let part = self.parts.get(part)?;
        let place = part.places.get(at)?;
        let unpacking = Unpacking {
            numbers: part.numbers.get(place.numbers.clone())?,
            text: part.text.get(place.text.clone())?,
            table: &self.table,
            time: 0,
        };
        unpacking.issue(&place.key)
    }

    /// The names that its issues use.
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// The size of its parts in bytes: the first, and the others.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let mut sizes = self.parts.iter().map(|p| p.numbers.len() + p.text.len());
        (sizes.next().unwrap_or(0), sizes.sum())
    }

    /// Adds a part; `None` if it is not as it was written, or does not follow the others.
    pub(super) fn add(&mut self, stored: Stored) -> Option<()> {
        let Stored { numbers, text } = stored;
        let (mut rest, mut text_at) = (numbers.as_slice(), 0);
        let known = [self.table.agents.len(), self.table.words.len()];
        for known in known {
            (read_number(&mut rest)? == known as u64).then_some(())?;
        }
        let mut table = self.table.clone();
        for _ in 0..read_number(&mut rest)? {
            table.agents.push(name(&mut rest)?.parse().ok()?);
        }
        for _ in 0..read_number(&mut rest)? {
            table.words.push(name(&mut rest)?.to_owned());
        }
        let mut replaced: HashSet<String> = HashSet::new();
        for _ in 0..read_number(&mut rest)? {
            replaced.insert(name(&mut rest)?.to_owned());
        }
        let count = usize::try_from(read_number(&mut rest)?).ok()?;
        // Each issue takes more than a byte.
        let mut places = Vec::with_capacity(count.min(rest.len()));
        for _ in 0..count {
            let key: IssueKey = name(&mut rest)?.parse().ok()?;
            let is_active = read_number(&mut rest)? == 1;
            let newest = read_number(&mut rest)?.cast_signed();
            let length = usize::try_from(read_number(&mut rest)?).ok()?;
            let text_length = usize::try_from(read_number(&mut rest)?).ok()?;
            let at = numbers.len() - rest.len();
            (_, rest) = rest.split_at_checked(length)?;
            let text_end = text_at + text_length;
            text.get(text_at..text_end)?;
            places.push(Place {
                key,
                is_active,
                newest,
                numbers: at..at + length,
                text: text_at..text_end,
            });
            text_at = text_end;
        }
        (rest.is_empty() && text_at == text.len()).then_some(())?;
        self.table = table;
        if !self.sorted.is_empty() {
            replaced.extend(places.iter().map(|place| place.key.to_string()));
            let parts = &self.parts;
            let stays = |(part, at): &(usize, usize)| {
                let key = parts[*part].places[*at].key.as_str();
                !replaced.contains(key)
            };
            self.sorted.retain(stays);
        }
        self.sorted
            .extend((0..places.len()).map(|at| (self.parts.len(), at)));
        self.parts.push(Part {
            numbers,
            text,
            places,
        });
        let key = |(part, at): &(usize, usize)| order(&self.parts[*part].places[*at].key);
        // Each part is sorted.
        self.sorted.sort_by(|a, b| key(a).cmp(&key(b)));
        Some(())
    }

    /// All issues in one part.
    pub(super) fn as_one(&self) -> Stored {
        let mut stored = Stored::start(&Table::default(), &self.table, &[], self.len());
        for (part, at) in &self.sorted {
            let Part {
                numbers,
                text,
                places,
            } = &self.parts[*part];
            let place = &places[*at];
            let issue = (&numbers[place.numbers.clone()], &text[place.text.clone()]);
            stored.push(&place.key, (place.is_active, place.newest), issue);
        }
        stored
    }
}

impl Stored {
    /// A part with these issues, which were read anew. `before` has the names of earlier parts,
    /// `table` all.
    pub(super) fn new(
        (before, table): (&Table, &Table),
        gone: &[String],
        mut issues: Vec<PackedIssue>,
    ) -> Self {
        issues.sort_unstable_by(|a, b| order(&a.key).cmp(&order(&b.key)));
        let mut stored = Self::start(before, table, gone, issues.len());
        for issue in &issues {
            let packed = &issue.packed;
            let content = (packed.numbers.as_slice(), packed.text.as_str());
            stored.push(&issue.key, (packed.is_active, packed.newest), content);
        }
        stored
    }

    fn start(before: &Table, table: &Table, gone: &[String], issues: usize) -> Self {
        let mut numbers = Vec::new();
        let (agents, words) = (before.agents.len(), before.words.len());
        let new_agents: Vec<&str> = table.agents[agents..].iter().map(|a| a.as_str()).collect();
        let new_words: Vec<&str> = table.words[words..].iter().map(String::as_str).collect();
        let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
        write_number(&mut numbers, agents as u64);
        write_number(&mut numbers, words as u64);
        for names in [new_agents, new_words, gone] {
            write_number(&mut numbers, names.len() as u64);
            names
                .into_iter()
                .for_each(|name| write_name(&mut numbers, name));
        }
        write_number(&mut numbers, issues as u64);
        Self {
            numbers,
            text: String::new(),
        }
    }

    fn push(
        &mut self,
        key: &IssueKey,
        (is_active, newest): (bool, i64),
        (numbers, text): (&[u8], &str),
    ) {
        write_name(&mut self.numbers, key.as_str());
        write_number(&mut self.numbers, u64::from(is_active));
        write_number(&mut self.numbers, newest.cast_unsigned());
        write_number(&mut self.numbers, numbers.len() as u64);
        write_number(&mut self.numbers, text.len() as u64);
        self.numbers.extend(numbers);
        self.text.push_str(text);
    }
}

fn write_name(bytes: &mut Vec<u8>, name: &str) {
    write_number(bytes, name.len() as u64);
    bytes.extend(name.as_bytes());
}

fn name<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::try_from(read_number(bytes)?).ok()?;
    let (name, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    std::str::from_utf8(name).ok()
}

/// Sorts numbers by value, then names.
fn order(key: &IssueKey) -> (usize, &str) {
    let text = key.as_str();
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    (if is_number { text.len() } else { usize::MAX }, text)
}
