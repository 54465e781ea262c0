//! Parses JSON documents in a command's output as it arrives, in bounded memory: keeps only the
//! requested members.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The maximum size of a document, in bytes.
const LARGEST: usize = 1024 * 1024;

/// The maximum number of members kept where all are requested.
const MOST_MEMBERS: usize = 64;

/// The token that stands for every member.
const EVERY: &str = "*";

/// The requested places of a document, by the tokens of their JSON Pointers. A token `*` is every
/// member.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaceSet {
    children: BTreeMap<String, PlaceSet>,
}

impl PlaceSet {
    pub(super) fn insert(&mut self, pointer: &str) {
        let mut set = self;
        for token in tokens(pointer) {
            set = set.children.entry(token).or_default();
        }
    }

    fn child(&self, token: &str) -> Option<&Self> {
        self.children
            .get(token)
            .or_else(|| self.children.get(EVERY))
    }
}

/// The tokens of a JSON Pointer.
fn tokens(pointer: &str) -> impl Iterator<Item = String> + '_ {
    let tokens = pointer.split('/').skip(1);
    tokens.map(|token| token.replace("~1", "/").replace("~0", "~"))
}

/// The kept parts of a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Picked {
    /// A text, a number, true, false or null.
    Scalar(Value),
    /// Requested members of an object or an array, in order, and their total number.
    Members(Vec<(String, Picked)>, usize),
}

impl Picked {
    /// Parses a document.
    pub(super) fn read(json: &[u8], places: &PlaceSet) -> Option<Self> {
        let mut reader = serde_json::Deserializer::from_slice(json);
        let picked = Pick(places).deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        Some(picked)
    }

    /// The value at a place; a token `*` is the last member.
    pub(super) fn at(&self, pointer: &str) -> Option<&Self> {
        let mut picked = self;
        for token in tokens(pointer) {
            let (members, _) = picked.members()?;
            let mut found = members.iter().rev();
            let found = found.find(|(name, _)| token == EVERY || *name == token);
            picked = &found?.1;
        }
        Some(picked)
    }

    pub(super) fn members(&self) -> Option<(&[(String, Self)], usize)> {
        match self {
            Self::Members(members, count) => Some((members, *count)),
            Self::Scalar(_) => None,
        }
    }

    /// A text, number or boolean; `None` for null.
    pub(super) fn scalar(&self) -> Option<&Value> {
        match self {
            Self::Scalar(value) => Some(value).filter(|value| !value.is_null()),
            Self::Members(..) => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.scalar().and_then(Value::as_str)
    }
}

/// Keeps the values at these places.
#[derive(Clone, Copy)]
struct Pick<'a>(&'a PlaceSet);

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = Picked;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Picked, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = Picked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Picked, E> {
        Ok(Picked::Scalar(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Picked, E> {
        Ok(Picked::Scalar(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Picked, E> {
        Ok(Picked::Scalar(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Picked, E> {
        Ok(Picked::Scalar(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Picked, E> {
        Ok(Picked::Scalar(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Picked, E> {
        Ok(Picked::Scalar(Value::Null))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Picked, A::Error> {
        let (mut members, mut count) = (Vec::new(), 0);
        if self.0.children.is_empty() {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        }
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            keep(self, &name, (&mut members, &mut count), |pick| match pick {
                Some(pick) => map.next_value_seed(pick).map(Some),
                None => map.next_value::<IgnoredAny>().map(|_| None),
            })?;
        }
        Ok(Picked::Members(members, count))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Picked, A::Error> {
        let (mut members, mut count) = (Vec::new(), 0);
        let mut index = 0_usize;
        let mut is_over = self.0.children.is_empty();
        if is_over {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
        }
        while !is_over {
            let name = index.to_string();
            keep(self, &name, (&mut members, &mut count), |pick| {
                let value = match pick {
                    Some(pick) => seq.next_element_seed(pick)?,
                    None => {
                        is_over = seq.next_element::<IgnoredAny>()?.is_none();
                        return Ok(None);
                    }
                };
                is_over = value.is_none();
                Ok(value)
            })?;
            index += 1;
        }
        Ok(Picked::Members(members, count))
    }
}

/// Reads a member, and keeps it if it is requested and within the maximum.
fn keep<E>(
    pick: Pick<'_>,
    name: &str,
    (members, count): (&mut Vec<(String, Picked)>, &mut usize),
    read: impl FnOnce(Option<Pick<'_>>) -> Result<Option<Picked>, E>,
) -> Result<(), E> {
    let wanted = pick.0.child(name);
    let kept = wanted.filter(|_| members.len() < MOST_MEMBERS);
    let value = read(kept.map(Pick))?;
    if wanted.is_some() && (value.is_some() || kept.is_none()) {
        *count += 1;
    }
    if let Some(value) = value {
        members.push((name.to_owned(), value));
    }
    Ok(())
}

/// A part of the output.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// The text of a JSON object, which may be invalid JSON.
    Document(&'a [u8]),
    /// A part of one that exceeds the maximum size.
    Part(&'a [u8]),
}

/// Finds JSON objects that begin a line, in output that arrives in chunks. An object may span
/// several lines; a line within it that begins with `{` shows that it was cut off.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    state: State,
    /// The current document.
    kept: Vec<u8>,
    depth: u32,
    /// Whether the current document exceeds the maximum size.
    is_large: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// Before the first nonblank character of a line.
    #[default]
    Margin,
    /// In a line without a document.
    Text,
    /// In a document; whether at the beginning of a line.
    Document { at_start: bool },
    /// In a string of a document; whether after a backslash.
    Quoted { escaped: bool },
}

impl Splitter {
    pub(super) fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Found<'_>)) {
        for &byte in bytes {
            self.take(byte, &mut each);
        }
    }

    /// The size of the current document.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.len()
    }

    fn take(&mut self, byte: u8, each: &mut impl FnMut(Found<'_>)) {
        match self.state {
            State::Margin if byte == b'{' => self.begin(byte),
            State::Margin if byte.is_ascii_whitespace() => {}
            State::Margin => self.state = State::Text,
            State::Text => {
                if byte == b'\n' {
                    self.state = State::Margin;
                }
            }
            State::Document { at_start: true } if byte == b'{' => self.begin(byte),
            State::Document { .. } => {
                self.keep(byte, each);
                self.state = State::Document {
                    at_start: byte == b'\n',
                };
                match byte {
                    b'"' => self.state = State::Quoted { escaped: false },
                    b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                    b'}' | b']' => self.depth -= 1,
                    _ => {}
                }
                if self.depth == 0 {
                    each(if self.is_large {
                        Found::Part(&self.kept)
                    } else {
                        Found::Document(&self.kept)
                    });
                    self.kept.clear();
                    self.state = State::Margin;
                }
            }
            // A string can't span lines: the document was cut off.
            State::Quoted { .. } if byte == b'\n' => {
                self.kept.clear();
                self.state = State::Margin;
            }
            State::Quoted { escaped } => {
                self.keep(byte, each);
                self.state = if byte == b'"' && !escaped {
                    State::Document { at_start: false }
                } else {
                    State::Quoted {
                        escaped: byte == b'\\' && !escaped,
                    }
                };
            }
        }
    }

    fn begin(&mut self, byte: u8) {
        self.kept.clear();
        self.kept.push(byte);
        self.depth = 1;
        self.is_large = false;
        self.state = State::Document { at_start: false };
    }

    fn keep(&mut self, byte: u8, each: &mut impl FnMut(Found<'_>)) {
        /// Kept for words that span two chunks.
        const OVERLAP: usize = 1024;
        if self.kept.len() == LARGEST {
            each(Found::Part(&self.kept));
            self.kept.drain(..LARGEST - OVERLAP);
            self.is_large = true;
        }
        self.kept.push(byte);
    }
}
