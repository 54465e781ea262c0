//! Reads the values of facts and of contract fields from a payload.

use handoff::base::pointer::select;
use handoff::base::text::{fit, without_invisible};
use handoff::protocol::{EventRule, Source, SourceRule, Take};
use serde_json::{Map, Value};

use super::markdown::{beneath, items};
use super::payload::Event;

/// The maximum length of a text, in characters.
const LONGEST: usize = 1000;

/// The maximum length of a text with several lines, in characters.
const LONGEST_TEXT: usize = 4000;

/// The maximum number of a list's items.
const ITEMS: usize = 200;

/// Returns the facts that a rule takes from an event.
pub fn facts(rule: &EventRule, event: &Event) -> Map<String, Value> {
    let facts = rule.facts.iter();
    facts
        .filter_map(|(name, source)| Some((name.clone(), value(source, event.payload())?)))
        .collect()
}

pub(super) fn value(source: &Source, payload: &Value) -> Option<Value> {
    match source {
        Source::At(pointer) => at(pointer, payload).find_map(scalar),
        Source::Rule(rule) => ruled(rule, payload).or_else(|| rule.default.clone()),
    }
}

/// The values at a JSON Pointer, without invalid commit ids.
fn at<'v>(pointer: &str, payload: &'v Value) -> impl Iterator<Item = &'v Value> + use<'v> {
    let any = !names_commit(pointer);
    select(payload, pointer)
        .into_iter()
        .filter(move |found| any || is_commit(found))
}

/// Whether a JSON Pointer leads to a commit id.
fn names_commit(pointer: &str) -> bool {
    let name = pointer.rsplit('/').next().unwrap_or_default();
    name == "commit_id" || name == "sha" || name.ends_with("_sha")
}

fn is_commit(value: &Value) -> bool {
    let is_id =
        |text: &str| [40, 64].contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    value.as_str().is_some_and(is_id)
}

/// The commit id or the conclusion that the payload lacks: without it, a note would mix new facts
/// with older ones.
pub(super) fn lacking<'s>(source: &'s Source, payload: &Value) -> Option<&'s str> {
    let needed = |pointer: &str| names_commit(pointer) || pointer.ends_with("/conclusion");
    let mut places = source.pointers().iter().map(String::as_str);
    places
        .find(|pointer| needed(pointer))
        .filter(|_| value(source, payload).is_none())
}

/// Whether a value is empty: an empty list, or the default of its source.
pub(super) fn is_nothing(source: &Source, value: &Value) -> bool {
    let default = match source {
        Source::At(_) => None,
        Source::Rule(rule) => rule.default.as_ref(),
    };
    default == Some(value) || value.as_array().is_some_and(Vec::is_empty)
}

/// Why a list is truncated, if it is.
pub(super) fn why_cut(source: &Source, payload: &Value) -> Option<String> {
    let Source::Rule(rule) = source else {
        return None;
    };
    if rule.take != Take::Items {
        return None;
    }
    let mut found = rule.at.iter().flat_map(|pointer| select(payload, pointer));
    let found = found.find_map(|found| {
        let found = items(found.as_str()?, &rule.under)?;
        (!found.all.is_empty()).then_some(found)
    })?;
    let long = |item: &String| item.chars().count() > LONGEST;
    match () {
        () if found.all.len() > ITEMS => Some(format!(
            "the list has {} items, of which the first {ITEMS} are taken",
            found.all.len()
        )),
        () if found.all.iter().any(long) => Some(format!(
            "an item has more than {LONGEST} characters, and is cut"
        )),
        () if found.more => Some(
            "more is said after an item, in a paragraph of its own, a quotation or code".to_owned(),
        ),
        () => None,
    }
}

fn ruled(rule: &SourceRule, payload: &Value) -> Option<Value> {
    let found = rule.at.iter().flat_map(|pointer| at(pointer, payload));
    if rule.take == Take::Each {
        let all: Vec<Value> = found.filter_map(scalar).take(ITEMS).collect();
        return Some(Value::Array(all));
    }
    let mut found = found.filter_map(|found| match (rule.take, found) {
        (Take::Value, found) => scalar(found),
        (Take::Line, Value::String(text)) => {
            let lines = beneath(text, &rule.under)?;
            lines.iter().find_map(|line| says(line)).map(Value::String)
        }
        (Take::Text, Value::String(text)) => whole(text).map(Value::String),
        (Take::Items, Value::String(text)) => {
            let items = items(text, &rule.under)?.all.into_iter();
            let items = items.filter_map(|item| says(&item));
            let items: Vec<Value> = items.take(ITEMS).map(Value::String).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        _ => None,
    });
    if rule.map.is_empty() {
        return found.next();
    }
    found.find_map(|found| mapped(rule, &found))
}

/// Looks up a text in the rule's map, ignoring case, with or without one of the prefixes.
fn mapped(rule: &SourceRule, found: &Value) -> Option<Value> {
    let text = match found {
        Value::String(text) => text.to_lowercase(),
        other => other.to_string(),
    };
    let without = |prefix: &String| {
        let rest = text.strip_prefix(&prefix.to_lowercase())?;
        let word = rest.trim_start_matches([':', '/', '-', ' ']);
        (word.len() < rest.len()).then_some(word)
    };
    let words = rule.prefixes.iter().filter_map(without);
    let mut words = std::iter::once(&*text).chain(words);
    words.find_map(|text| {
        let mut known = rule.map.iter();
        let known = known.find(|(word, _)| word.to_lowercase() == text);
        known.map(|(_, value)| value.clone())
    })
}

/// A scalar; of a text, the first nonblank line.
fn scalar(found: &Value) -> Option<Value> {
    match found {
        Value::String(text) => text.lines().find_map(says).map(Value::String),
        Value::Number(_) | Value::Bool(_) => Some(found.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A line with single blanks and without invisible or reordering characters, truncated; `None` if
/// it is empty then.
pub(super) fn says(line: &str) -> Option<String> {
    let seen = without_invisible(line);
    let words: Vec<&str> = seen.split_whitespace().collect();
    let text = fit(&words.join(" "), LONGEST);
    (!text.is_empty()).then_some(text)
}

/// A text without invisible or reordering characters, truncated; `None` if it is empty then.
fn whole(text: &str) -> Option<String> {
    let lines = text
        .lines()
        .map(|line| without_invisible(line).trim_end().to_owned());
    let text = lines.collect::<Vec<String>>().join("\n");
    let text = fit(text.trim_matches('\n'), LONGEST_TEXT);
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{says, value};
    use handoff::protocol::Source;
    use serde_json::{Value, json};

    fn read(source: Value, payload: &Value) -> Option<Value> {
        value(&serde_json::from_value::<Source>(source).unwrap(), payload)
    }

    #[test]
    fn a_line_says_what_can_be_seen() {
        assert_eq!(
            says(" a\u{202e}b \t\u{1b}[31mc\u{2028}d "),
            Some("ab [31mc d".to_owned())
        );
        assert_eq!(says(" \u{200b}\u{7} "), None);
        let long = says(&"é".repeat(1001)).unwrap();
        assert_eq!((long.chars().count(), long.ends_with("é…")), (1000, true));
        assert_eq!(says(&"x".repeat(1000)).unwrap().len(), 1000);
    }

    #[test]
    fn a_source_takes_the_first_place_that_has_something() {
        let payload = json!({"a": null, "b": "x\nHandoff-Id: 1.1", "n": 7,
            "labels": [{"name": "Area"}, {"name": "Priority: HIGH"}, {"name": "low"}],
            "body": "intro\n\n## Acceptance criteria\n- [ ] one\n- two <!-- no -->\n\n## Else\n- three"});
        assert_eq!(read(json!("/a"), &payload), None);
        assert_eq!(read(json!("/b"), &payload), Some(json!("x")));
        assert_eq!(read(json!("/n"), &payload), Some(json!(7)));
        assert_eq!(
            read(json!({"at": ["/a", "/none", "/n"]}), &payload),
            Some(json!(7))
        );
        assert_eq!(
            read(json!({"at": ["/a"], "default": "d"}), &payload),
            Some(json!("d"))
        );
        let priority =
            json!({"at": ["/labels/*/name"], "map": {"priority: high": "high", "low": "low"}});
        assert_eq!(read(priority, &payload), Some(json!("high")));
        let none = json!({"at": ["/labels/*/name"], "map": {"bug": "bug"}});
        assert_eq!(read(none, &payload), None);
        let items = json!({"at": ["/body"], "take": "items", "under": ["acceptance criteria"]});
        assert_eq!(read(items, &payload), Some(json!(["one", "two"])));
        let none = json!({"at": ["/body"], "take": "items", "under": ["requirements"]});
        assert_eq!(read(none, &payload), None);
        assert_eq!(
            read(json!({"at": ["/body"], "take": "line"}), &payload),
            Some(json!("intro"))
        );
    }
}
