//! One value put into a JSON text, or taken out of it; every other byte stays.

use std::collections::BTreeSet;

use serde_json::Value;

/// Why a text can't be edited.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    Syntax(String),
    /// A value on the way is not what it should be.
    #[error("`{0}` in it is not what a hook can be added to")]
    Shape(String),
    /// A key stands twice in an object, and readers differ in which one they take.
    #[error("`{0}` stands twice in one object")]
    Twice(String),
}

/// A value's place in the text.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
}

/// An item of a list or an object: where it begins, with its key, and where its value is.
struct Item {
    key: Option<String>,
    start: usize,
    value: Span,
}

/// Reads a text, which must be one object, without comments.
pub(super) fn read(text: &str) -> Result<Value, Fault> {
    let value: Value = serde_json::from_str(text).map_err(|e| Fault::Syntax(e.to_string()))?;
    if !value.is_object() {
        return Err(Fault::Shape("the whole".to_owned()));
    }
    match twice(text, root(text)) {
        Some(key) => Err(Fault::Twice(key)),
        None => Ok(value),
    }
}

/// A key that an object at or below this place has twice.
fn twice(text: &str, here: Span) -> Option<String> {
    let mut keys = BTreeSet::new();
    for item in items(text, here) {
        let again = item.key.filter(|key| !keys.insert(key.clone()));
        if again.is_some() {
            return again;
        }
        if let Some(key) = twice(text, item.value) {
            return Some(key);
        }
    }
    None
}

/// What is put in at the end of a path: an element of the list there, or a member of the object.
#[derive(Clone, Copy)]
pub(super) enum Leaf<'a> {
    Element(&'a Value),
    Member(&'a str, &'a Value),
}

/// Adds a value at the end of the list or object at a path, with what is missing on the way.
pub(super) fn add(text: &str, path: &[&str], leaf: Leaf<'_>) -> Result<String, Fault> {
    read(text)?;
    let mut here = root(text);
    for (depth, key) in path.iter().enumerate() {
        let found = member(text, here, key, &path[..depth])?;
        match found {
            Some(item) => here = item.value,
            None if text.as_bytes()[here.start] != b'{' => {
                return Err(Fault::Shape(path[..depth].join(".")));
            }
            None => {
                let value = nested(&path[depth + 1..], leaf);
                return Ok(insert(text, here, Some(key), &value));
            }
        }
    }
    let fault = || Fault::Shape(path.join("."));
    match (leaf, text.as_bytes()[here.start]) {
        (Leaf::Element(value), b'[') => Ok(insert(text, here, None, value)),
        (Leaf::Member(key, value), b'{') => Ok(insert(text, here, Some(key), value)),
        _ => Err(fault()),
    }
}

/// Puts another value in the place of the one that `is_it` names at a path.
pub(super) fn replace(
    text: &str,
    path: &[&str],
    is_it: impl Fn(Option<&str>, &Value) -> bool,
    value: &Value,
) -> Result<Option<String>, Fault> {
    let Some((_, items, at)) = find(text, path, is_it)? else {
        return Ok(None);
    };
    let place = items[at].value;
    let indent = indent_of(text, items[at].start);
    let shown = pretty(value, &indent, &unit(text));
    Ok(Some(format!(
        "{}{shown}{}",
        &text[..place.start],
        &text[place.end..]
    )))
}

/// Takes out what `is_it` names at a path; what was added with it goes too.
pub(super) fn remove(
    text: &str,
    path: &[&str],
    is_it: impl Fn(Option<&str>, &Value) -> bool,
) -> Result<Option<String>, Fault> {
    let Some((here, items, at)) = find(text, path, is_it)? else {
        return Ok(None);
    };
    let place = items[at].value;
    let value: Value = serde_json::from_str(&text[place.start..place.end])
        .map_err(|e| Fault::Syntax(e.to_string()))?;
    let leaf = match &items[at].key {
        Some(key) => Leaf::Member(key, &value),
        None => Leaf::Element(&value),
    };
    let mut without = without(text, here, &items, at);
    // As many of the empty lists and objects around it go as came with it.
    let mut shortest = None;
    let mut candidate = without.clone();
    for depth in (0..path.len()).rev() {
        if add(&candidate, path, leaf).as_deref() == Ok(text) {
            shortest = Some(candidate.clone());
        }
        let (key, above) = (path[depth], &path[..depth]);
        let Some((here, items, at)) = find(&candidate, above, |own, value| {
            own == Some(key) && is_empty(value)
        })?
        else {
            break;
        };
        candidate = self::without(&candidate, here, &items, at);
        without.clone_from(&candidate);
    }
    if add(&candidate, path, leaf).as_deref() == Ok(text) {
        shortest = Some(candidate);
    }
    Ok(Some(shortest.unwrap_or(without)))
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(|o| o.is_empty()) || value.as_array().is_some_and(Vec::is_empty)
}

/// The container at a path, its items, and which of them is meant.
fn find(
    text: &str,
    path: &[&str],
    is_it: impl Fn(Option<&str>, &Value) -> bool,
) -> Result<Option<(Span, Vec<Item>, usize)>, Fault> {
    read(text)?;
    let mut here = root(text);
    for (depth, key) in path.iter().enumerate() {
        match member(text, here, key, &path[..depth])? {
            Some(item) => here = item.value,
            None => return Ok(None),
        }
    }
    let items = items(text, here);
    let meant = |item: &Item| {
        let value = serde_json::from_str(&text[item.value.start..item.value.end]);
        value.is_ok_and(|value| is_it(item.key.as_deref(), &value))
    };
    let at = items.iter().position(meant);
    Ok(at.map(|at| (here, items, at)))
}

fn root(text: &str) -> Span {
    let start = blank_end(text, 0);
    Span {
        start,
        end: value_end(text, start),
    }
}

/// What a key leads to; in a list, a number.
fn member(text: &str, here: Span, key: &str, path: &[&str]) -> Result<Option<Item>, Fault> {
    if text.as_bytes()[here.start] != b'{' {
        let at: Option<usize> = key.parse().ok();
        let at = at.filter(|_| text.as_bytes()[here.start] == b'[');
        let at = at.ok_or_else(|| Fault::Shape(path.join(".")))?;
        return Ok(items(text, here).into_iter().nth(at));
    }
    Ok(items(text, here)
        .into_iter()
        .find(|item| item.key.as_deref() == Some(key)))
}

fn nested(path: &[&str], leaf: Leaf<'_>) -> Value {
    let last = match leaf {
        Leaf::Element(value) => Value::Array(vec![value.clone()]),
        Leaf::Member(key, value) => serde_json::json!({ key: value }),
    };
    path.iter()
        .rev()
        .fold(last, |value, key| serde_json::json!({ *key: value }))
}

/// The items of the list or object at a place. The text is known to be JSON.
fn items(text: &str, here: Span) -> Vec<Item> {
    let bytes = text.as_bytes();
    let is_object = bytes[here.start] == b'{';
    let mut items = Vec::new();
    if !is_object && bytes[here.start] != b'[' {
        return items;
    }
    let mut at = blank_end(text, here.start + 1);
    while at + 1 < here.end {
        let start = at;
        let mut key = None;
        if is_object {
            let end = value_end(text, at);
            key = serde_json::from_str(&text[at..end]).ok();
            at = blank_end(text, blank_end(text, end) + 1);
        }
        let value = Span {
            start: at,
            end: value_end(text, at),
        };
        items.push(Item { key, start, value });
        at = blank_end(text, value.end);
        if bytes.get(at) == Some(&b',') {
            at = blank_end(text, at + 1);
        }
    }
    items
}

fn blank_end(text: &str, from: usize) -> usize {
    let rest = text[from..].trim_start_matches([' ', '\t', '\r', '\n']);
    text.len() - rest.len()
}

/// Where the value ends that begins here.
fn value_end(text: &str, start: usize) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate().skip(start) {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            if !quoted && depth == 0 {
                return at + 1;
            }
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// The blanks that the line begins with on which this place is, if nothing else is before it.
fn indent_of(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let blanks = text[line..at].len() - text[line..at].trim_start_matches([' ', '\t']).len();
    text[line..line + blanks].to_owned()
}

/// What the text indents by.
fn unit(text: &str) -> String {
    let indented = text.lines().find(|line| line.starts_with([' ', '\t']));
    let blanks = indented.map(|line| &line[..line.len() - line.trim_start().len()]);
    blanks
        .filter(|blanks| blanks.len() <= 8)
        .unwrap_or("  ")
        .to_owned()
}

/// The line break that the text has.
fn line_break(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn pretty(value: &Value, indent: &str, unit: &str) -> String {
    let shown = format!("{value:#}");
    let lines = shown.lines().map(|line| {
        let rest = line.trim_start_matches(' ');
        unit.repeat((line.len() - rest.len()) / 2) + rest
    });
    lines.collect::<Vec<_>>().join(&format!("\n{indent}"))
}

fn insert(text: &str, here: Span, key: Option<&str>, value: &Value) -> String {
    let items = items(text, here);
    let (unit, end) = (unit(text), line_break(text));
    let own = key
        .map(|key| format!("{}: ", Value::from(key)))
        .unwrap_or_default();
    let (at, added) = match items.last() {
        Some(last) => {
            let first = items[0].start;
            let inline = !text[here.start..first].contains('\n');
            if inline {
                (last.value.end, format!(", {own}{value}"))
            } else {
                let indent = indent_of(text, last.start);
                (
                    last.value.end,
                    format!(",\n{indent}{own}{}", pretty(value, &indent, &unit)),
                )
            }
        }
        // On a line of its own where there is one already, so that taking it out again leaves
        // what was there, and not what would look like it.
        None if text[here.start..here.end].contains('\n') => {
            let indent = format!("{}{unit}", indent_of(text, here.start));
            let shown = pretty(value, &indent, &unit);
            (here.start + 1, format!("\n{indent}{own}{shown}"))
        }
        None => (here.start + 1, format!("{own}{value}")),
    };
    format!("{}{}{}", &text[..at], added.replace('\n', end), &text[at..])
}

fn without(text: &str, here: Span, items: &[Item], at: usize) -> String {
    let item = &items[at];
    let (from, to) = match (at.checked_sub(1), items.get(at + 1)) {
        (Some(before), _) => (items[before].value.end, item.value.end),
        (None, Some(after)) => (item.start, after.start),
        (None, None) => (here.start + 1, item.value.end),
    };
    format!("{}{}", &text[..from], &text[to..])
}

#[cfg(test)]
mod tests {
    use super::{Fault, Leaf, add, read, remove};
    use serde_json::json;

    #[test]
    fn what_was_added_can_be_taken_out_and_every_byte_is_as_before() {
        let value = json!({ "command": "ours \"quoted\" ] }", "list": [1, { "a": null }] });
        let is_ours = |_: Option<&str>, value: &serde_json::Value| {
            value["command"]
                .as_str()
                .is_some_and(|c| c.starts_with("ours"))
        };
        for text in [
            "{}",
            "{}\n",
            "{\n}\n",
            "{ }",
            "{\"a\":1}",
            "{\n  \"version\": 1\n}\n",
            "{\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"command\": \"theirs\" }\n\t\t]\n\t}\n}",
            "{\"hooks\":{\"Stop\":[{\"command\":\"theirs\"}]},\"z\":\"\\\"}{\"}",
            "{\n  \"hooks\": {\n    \"Other\": []\n  },\n  \"b\": [1,2 , 3]\n}\n",
            "{\n  \"hooks\": {},\n  \"b\": 2\n}\n",
            "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
            "{\r\n  \"b\": \"\u{e9}\u{1f600}\"\r\n}\r\n",
        ] {
            let path = ["hooks", "Stop"];
            let with =
                add(text, &path, Leaf::Element(&value)).unwrap_or_else(|e| panic!("{text}: {e}"));
            let parsed = read(&with).unwrap_or_else(|e| panic!("{with}: {e}"));
            let list = parsed["hooks"]["Stop"].as_array().map(Vec::len);
            let before = read(text)
                .ok()
                .and_then(|v| v["hooks"]["Stop"].as_array().map(Vec::len));
            assert_eq!(list, Some(before.unwrap_or(0) + 1), "{with}");
            let again = remove(&with, &path, is_ours);
            assert_eq!(again, Ok(Some(text.to_owned())), "{with}");
            let member = add(text, &["servers"], Leaf::Member("ours", &value))
                .unwrap_or_else(|e| panic!("{e}"));
            let out = remove(&member, &["servers"], |key, _| key == Some("ours"));
            assert_eq!(out, Ok(Some(text.to_owned())), "{member}");
            assert_eq!(remove(text, &path, is_ours), Ok(None));
        }
    }

    #[test]
    fn what_is_no_plain_json_is_left_alone() {
        let value = json!(1);
        for text in ["", "// a comment\n{}", "{\"a\": 1,}", "{} {}"] {
            let added = add(text, &["a"], Leaf::Element(&value));
            assert!(matches!(added, Err(Fault::Syntax(_))), "{text}");
        }
        let text = "{\"a\": 1, \"b\": [{\"c\": 1, \"\\u0063\": 2}]}";
        let added = add(text, &["a"], Leaf::Element(&value));
        assert_eq!(added, Err(Fault::Twice("c".to_owned())));
        for text in ["[]", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": {}}}"] {
            let added = add(text, &["hooks", "Stop"], Leaf::Element(&value));
            assert!(matches!(added, Err(Fault::Shape(_))), "{text}");
        }
    }
}
