//! Positions in valid JSON text, for findings with a line and for edits that keep all other bytes.
//!
//! Functions take and return byte offsets of values. For invalid JSON, the offsets are meaningless
//! but still within the text.

use std::collections::HashSet;
use std::ops::Range;

use handoff_base::pointer::push_part;
use handoff_base::text::without_mark;

use super::text;

/// The offset of the text's value, after a byte order mark.
pub fn root(text: &str) -> usize {
    let bytes = text.as_bytes();
    skip_blanks(bytes, bytes.len() - without_mark(bytes).len())
}

/// The offset after the value that starts at `start`.
pub fn value_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            _ if depth == 0 => return scalar_end(bytes, at),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// An item of a list or an object.
pub struct Item {
    /// The offset of its first byte, which in an object is its key's.
    pub start: usize,
    /// The offset of its value.
    pub value: usize,
    key: Option<Range<usize>>,
}

impl Item {
    /// Its unescaped key; items of lists have none.
    pub fn key(&self, text: &str) -> Option<String> {
        self.key.clone().map(|range| unquoted(text, range))
    }
}

/// The items of the list or object that starts at `start`; other values have none.
pub fn items(text: &str, start: usize) -> Items<'_> {
    let first = text.as_bytes().get(start);
    Items {
        text,
        is_object: first == Some(&b'{'),
        is_over: !matches!(first, Some(b'{' | b'[')),
        at: start + 1,
        value: None,
    }
}

/// The items of a list or object, in order.
pub struct Items<'t> {
    text: &'t str,
    is_object: bool,
    is_over: bool,
    at: usize,
    /// The last item's value, until its end is known.
    value: Option<usize>,
}

impl Items<'_> {
    /// Continues at `end`, the end of the last item's value, which the caller has found by walking
    /// it.
    fn go_on_at(&mut self, end: usize) {
        self.at = end;
        self.value = None;
    }
}

impl Iterator for Items<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.is_over {
            return None;
        }
        let bytes = self.text.as_bytes();
        if let Some(value) = self.value.take() {
            self.at = value_end(self.text, value);
        }
        let mut at = skip_blanks(bytes, self.at);
        if bytes.get(at) == Some(&b',') {
            at = skip_blanks(bytes, at + 1);
        }
        self.at = at;
        if matches!(bytes.get(at), None | Some(b'}' | b']')) {
            self.is_over = true;
            return None;
        }
        let key = self.is_object.then(|| at..string_end(bytes, at));
        let value = match &key {
            Some(key) => skip_blanks(bytes, skip_blanks(bytes, key.end) + 1),
            None => at,
        };
        self.value = Some(value);
        Some(Item {
            start: at,
            value,
            key,
        })
    }
}

/// What [`walk`] visits.
pub enum Seen<'t> {
    /// A key, and whether its object already had it: parsers differ in which one they use.
    Key {
        /// The unescaped key.
        key: &'t str,
        /// Whether it is a duplicate.
        again: bool,
    },
    /// An unescaped string.
    Text(&'t str),
    /// A number, `true`, `false` or `null`, as written.
    Scalar(&'t str),
}

/// Visits every key and scalar in document order, with its pointer and offset. Recursion is as deep
/// as the text, which must be limited beforehand.
pub fn walk(text: &str, visit: &mut impl FnMut(&str, usize, Seen<'_>)) {
    walk_value(text, root(text), &mut String::new(), visit);
}

/// Visits the content of a value, and returns the offset after it.
fn walk_value(
    text: &str,
    start: usize,
    pointer: &mut String,
    visit: &mut impl FnMut(&str, usize, Seen<'_>),
) -> usize {
    let bytes = text.as_bytes();
    match bytes.get(start) {
        Some(b'{' | b'[') => {}
        Some(b'"') => {
            let end = string_end(bytes, start);
            visit(pointer, start, Seen::Text(&unquoted(text, start..end)));
            return end;
        }
        _ => {
            let end = scalar_end(bytes, start);
            let raw = text.get(start..end).unwrap_or_default();
            visit(pointer, start, Seen::Scalar(raw));
            return end;
        }
    }
    let mut keys = HashSet::new();
    let length = pointer.len();
    let mut items = items(text, start);
    let mut index = 0_usize;
    while let Some(item) = items.next() {
        match item.key(text) {
            Some(key) => {
                push_part(pointer, &key);
                let again = keys.contains(&key);
                visit(pointer, item.start, Seen::Key { key: &key, again });
                keys.insert(key);
            }
            None => push_part(pointer, &index.to_string()),
        }
        items.go_on_at(walk_value(text, item.value, pointer, visit));
        pointer.truncate(length);
        index += 1;
    }
    (items.at + 1).min(bytes.len())
}

/// Locates a value by a pointer's parts: returns the offset of the deepest existing value.
pub(super) fn locate(text: &str, parts: &[String]) -> usize {
    let mut here = root(text);
    for part in parts {
        let position: Option<usize> = part.parse().ok();
        let mut items = items(text, here).enumerate();
        let found = items.find(|(index, item)| match item.key(text) {
            Some(key) => key == *part,
            None => position == Some(*index),
        });
        match found {
            Some((_, item)) => here = item.value,
            None => break,
        }
    }
    here
}

/// The offset of the first bracket nested deeper than `levels`. The text need not be valid JSON.
pub(super) fn too_deep(text: &str, levels: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at) - 1,
            b'{' | b'[' => {
                depth += 1;
                if depth > levels {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

fn unquoted(text: &str, range: Range<usize>) -> String {
    let raw = text.get(range).unwrap_or_default();
    serde_json::from_str(raw).unwrap_or_default()
}

fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|&byte| text::is_blank_byte(byte)) {
        at += 1;
    }
    at
}

/// The offset after the string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}') || text::is_blank_byte(*byte);
    let length = bytes.iter().skip(start).position(ends);
    length.map_or(bytes.len(), |length| start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#" {"a": [1 , {"b\"": "x,]", "\u0062\"": null}], "c": {}, "a/": []} "#;

    #[test]
    fn items_are_found_by_their_offsets() {
        let root = root(TEXT);
        let found: Vec<(String, &str)> = items(TEXT, root)
            .map(|item| {
                let value = &TEXT[item.value..value_end(TEXT, item.value)];
                (item.key(TEXT).unwrap_or_default(), value)
            })
            .collect();
        let list = r#"[1 , {"b\"": "x,]", "\u0062\"": null}]"#;
        let expected = [("a", list), ("c", "{}"), ("a/", "[]")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value)));
        assert_eq!(items(TEXT, root + 1).count(), 0, "a text has no items");
        assert_eq!(value_end(TEXT, root), TEXT.len() - 1);
    }

    #[test]
    fn a_walk_comes_by_every_key_and_scalar_once() {
        let mut seen = Vec::new();
        walk(TEXT, &mut |pointer, offset, what| {
            let begins = match what {
                Seen::Key { again, .. } => format!("key {again}"),
                Seen::Text(text) => format!("text {text}"),
                Seen::Scalar(raw) => raw.to_owned(),
            };
            assert!(!TEXT[offset..].starts_with([' ', ',']));
            seen.push(format!("{pointer} {begins}"));
        });
        let expected = [
            "/a key false",
            "/a/0 1",
            "/a/1/b\" key false",
            "/a/1/b\" text x,]",
            "/a/1/b\" key true",
            "/a/1/b\" null",
            "/c key false",
            "/a~1 key false",
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_not_json_gives_offsets_within_it() {
        for text in [
            "",
            "{",
            "{\"a",
            "{\"a\\",
            "{\"a\":",
            "[1",
            "[\"\\",
            "{\"a\":{\"b\"",
            "]",
        ] {
            let mut offsets = Vec::new();
            walk(text, &mut |_, offset, _| offsets.push(offset));
            offsets.push(value_end(text, root(text)));
            offsets.push(locate(text, &["a".to_owned(), "b".to_owned()]));
            let inside = |offset: &usize| *offset <= text.len() + 1;
            assert!(offsets.iter().all(inside), "{text}: {offsets:?}");
        }
    }
}
