//! Edits a JSON text by inserting, replacing or removing a value; every other byte stays.

use std::ops::Range;

use handoff_base::text::without_mark;

use super::scan::{self, Item, Seen};
use serde_json::Value;

/// Why a text can't be edited.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not JSON.
    #[error("it is not JSON: {0}")]
    Syntax(String),
    /// The text is another value of JSON.
    #[error("it is not a JSON object")]
    NotObject,
    /// A value along the path has the wrong type.
    #[error("`{0}` in it is neither a list nor an object")]
    Shape(String),
    /// Duplicate keys: parsers differ in which one they use.
    #[error("`{0}` appears twice in one object")]
    Duplicate(String),
}

/// Parses a text, which must be an object without comments or duplicate keys.
///
/// # Errors
/// [`EditError`] if it is not.
pub fn read(text: &str) -> Result<Value, EditError> {
    let value: Value = serde_json::from_slice(without_mark(text.as_bytes()))
        .map_err(|e| EditError::Syntax(e.to_string()))?;
    if !value.is_object() {
        return Err(EditError::NotObject);
    }
    let mut duplicate = None;
    scan::walk(text, &mut |_, _, seen| {
        if let Seen::Key { key, again: true } = seen {
            duplicate.get_or_insert_with(|| key.to_owned());
        }
    });
    match duplicate {
        Some(key) => Err(EditError::Duplicate(key)),
        None => Ok(value),
    }
}

/// What to insert at the end of a path.
#[derive(Clone, Copy)]
pub enum Leaf<'a> {
    /// An element of a list.
    Element(&'a Value),
    /// A member of an object.
    Member(&'a str, &'a Value),
}

/// Appends a value to the list or object at a path, creating what is missing along the path.
///
/// # Errors
/// [`EditError`] if the text is not JSON, or has another type along the path.
pub fn add(text: &str, path: &[&str], leaf: Leaf<'_>) -> Result<String, EditError> {
    read(text)?;
    let mut here = scan::root(text);
    for (depth, key) in path.iter().enumerate() {
        let found = member(text, here, key, &path[..depth])?;
        match found {
            Some(item) => here = item.value,
            None if text.as_bytes()[here] != b'{' => {
                return Err(EditError::Shape(path[..depth].join(".")));
            }
            None => {
                let value = nested(&path[depth + 1..], leaf);
                return Ok(insert(text, here, Some(key), &value));
            }
        }
    }
    let fault = || EditError::Shape(path.join("."));
    match (leaf, text.as_bytes()[here]) {
        (Leaf::Element(value), b'[') => Ok(insert(text, here, None, value)),
        (Leaf::Member(key, value), b'{') => Ok(insert(text, here, Some(key), value)),
        _ => Err(fault()),
    }
}

/// Replaces the first value at a path that `matches` accepts; `None` if it accepts none.
///
/// # Errors
/// [`EditError`] if the text is not JSON, or has another type along the path.
pub fn replace(
    text: &str,
    path: &[&str],
    matches: impl Fn(Option<&str>, &Value) -> bool,
    value: &Value,
) -> Result<Option<String>, EditError> {
    let Some((_, items, at)) = find(text, path, matches)? else {
        return Ok(None);
    };
    let value_range = value_range(text, &items[at]);
    let indent = indent_of(text, items[at].start);
    let shown = pretty(value, &indent, &unit(text));
    Ok(Some(format!(
        "{}{shown}{}",
        &text[..value_range.start],
        &text[value_range.end..]
    )))
}

/// Removes the first value at a path that `matches` accepts, and the containers that [`add`] would
/// have created for it; `None` if it accepts none.
///
/// # Errors
/// [`EditError`] if the text is not JSON, or has another type along the path.
pub fn remove(
    text: &str,
    path: &[&str],
    matches: impl Fn(Option<&str>, &Value) -> bool,
) -> Result<Option<String>, EditError> {
    let Some((here, items, at)) = find(text, path, matches)? else {
        return Ok(None);
    };
    let value: Value = serde_json::from_str(&text[value_range(text, &items[at])])
        .map_err(|e| EditError::Syntax(e.to_string()))?;
    let key = items[at].key(text);
    let leaf = match &key {
        Some(key) => Leaf::Member(key, &value),
        None => Leaf::Element(&value),
    };
    let mut without = without(text, here, &items, at);
    // Removes as few containers as possible such that adding the value again gives the original
    // text.
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

/// The offset of the container at a path, its items, and the index of the first match.
fn find(
    text: &str,
    path: &[&str],
    matches: impl Fn(Option<&str>, &Value) -> bool,
) -> Result<Option<(usize, Vec<Item>, usize)>, EditError> {
    read(text)?;
    let mut here = scan::root(text);
    for (depth, key) in path.iter().enumerate() {
        match member(text, here, key, &path[..depth])? {
            Some(item) => here = item.value,
            None => return Ok(None),
        }
    }
    let items: Vec<Item> = scan::items(text, here).collect();
    let is_match = |item: &Item| {
        let value = serde_json::from_str(&text[value_range(text, item)]);
        value.is_ok_and(|value| matches(item.key(text).as_deref(), &value))
    };
    let at = items.iter().position(is_match);
    Ok(at.map(|at| (here, items, at)))
}

/// The item under a key; in a list, the key is an index.
fn member(text: &str, here: usize, key: &str, path: &[&str]) -> Result<Option<Item>, EditError> {
    if text.as_bytes()[here] != b'{' {
        let at: Option<usize> = key.parse().ok();
        let at = at.filter(|_| text.as_bytes()[here] == b'[');
        let at = at.ok_or_else(|| EditError::Shape(path.join(".")))?;
        return Ok(scan::items(text, here).nth(at));
    }
    Ok(scan::items(text, here).find(|item| item.key(text).as_deref() == Some(key)))
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

fn value_range(text: &str, item: &Item) -> Range<usize> {
    item.value..scan::value_end(text, item.value)
}

/// The indentation of the line that contains an offset.
fn indent_of(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let blanks = text[line..at].len() - text[line..at].trim_start_matches([' ', '\t']).len();
    text[line..line + blanks].to_owned()
}

/// The text's indentation unit.
fn unit(text: &str) -> String {
    let indented = text.lines().find(|line| line.starts_with([' ', '\t']));
    let blanks = indented.map(|line| &line[..line.len() - line.trim_start().len()]);
    blanks
        .filter(|blanks| blanks.len() <= 8)
        .unwrap_or("  ")
        .to_owned()
}

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

fn insert(text: &str, here: usize, key: Option<&str>, value: &Value) -> String {
    let items: Vec<Item> = scan::items(text, here).collect();
    let (unit, end) = (unit(text), line_break(text));
    let own = key
        .map(|key| format!("{}: ", Value::from(key)))
        .unwrap_or_default();
    let (at, added) = match items.last() {
        Some(last) => {
            let first = items[0].start;
            let inline = !text[here..first].contains('\n');
            let added = if inline {
                format!(", {own}{value}")
            } else {
                let indent = indent_of(text, last.start);
                format!(",\n{indent}{own}{}", pretty(value, &indent, &unit))
            };
            (value_range(text, last).end, added)
        }
        // On a separate line if the container has line breaks, so that removing it restores them.
        None if text[here..scan::value_end(text, here)].contains('\n') => {
            let indent = format!("{}{unit}", indent_of(text, here));
            let shown = pretty(value, &indent, &unit);
            (here + 1, format!("\n{indent}{own}{shown}"))
        }
        None => (here + 1, format!("{own}{value}")),
    };
    format!("{}{}{}", &text[..at], added.replace('\n', end), &text[at..])
}

fn without(text: &str, here: usize, items: &[Item], at: usize) -> String {
    let item = &items[at];
    let end = |item| value_range(text, item).end;
    let (from, to) = match (at.checked_sub(1), items.get(at + 1)) {
        (Some(before), _) => (end(&items[before]), end(item)),
        (None, Some(after)) => (item.start, after.start),
        (None, None) => (here + 1, end(item)),
    };
    format!("{}{}", &text[..from], &text[to..])
}

#[cfg(test)]
mod tests {
    use super::{EditError, Leaf, add, read, remove};
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
            assert!(matches!(added, Err(EditError::Syntax(_))), "{text}");
        }
        let text = "{\"a\": 1, \"b\": [{\"c\": 1, \"\\u0063\": 2}]}";
        let added = add(text, &["a"], Leaf::Element(&value));
        assert_eq!(added, Err(EditError::Duplicate("c".to_owned())));
        for text in ["[]", "null", "1"] {
            let added = add(text, &["a"], Leaf::Element(&value));
            assert_eq!(added, Err(EditError::NotObject), "{text}");
        }
        for text in ["{\"hooks\": []}", "{\"hooks\": {\"Stop\": {}}}"] {
            let added = add(text, &["hooks", "Stop"], Leaf::Element(&value));
            assert!(matches!(added, Err(EditError::Shape(_))), "{text}");
        }
    }
}
