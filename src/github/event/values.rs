//! What a payload says of a fact or of a contract's field.

use serde_json::Value;

use super::markdown::{beneath, item};
use crate::ids::is_misleading;
use crate::protocol::{Source, SourceRule, Take, select};

/// The longest text that is taken over, in characters.
const LONGEST: usize = 1000;

/// How many items of a list are taken over.
const ITEMS: usize = 200;

/// The value that a source has in a payload, if it has one.
pub(super) fn value(source: &Source, payload: &Value) -> Option<Value> {
    match source {
        Source::At(pointer) => { select(payload, pointer).into_iter() }.find_map(plain),
        Source::Rule(rule) => ruled(rule, payload).or_else(|| rule.default.clone()),
    }
}

fn ruled(rule: &SourceRule, payload: &Value) -> Option<Value> {
    let found = rule.at.iter().flat_map(|pointer| select(payload, pointer));
    let mut found = found.filter_map(|found| match (rule.take, found) {
        (Take::Value, found) => plain(found),
        (Take::Line, Value::String(text)) => {
            let lines = beneath(text, &rule.under)?;
            lines.iter().find_map(|line| says(line)).map(Value::String)
        }
        (Take::Items, Value::String(text)) => {
            let lines = beneath(text, &rule.under)?;
            let items = lines.iter().filter_map(|line| says(item(line)?));
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

/// The value that a text stands for, in whatever case it is written.
fn mapped(rule: &SourceRule, found: &Value) -> Option<Value> {
    let text = match found {
        Value::String(text) => text.to_lowercase(),
        other => other.to_string(),
    };
    let mut known = rule.map.iter();
    let known = known.find(|(word, _)| word.to_lowercase() == text);
    known.map(|(_, value)| value.clone())
}

/// A scalar as it is; of a text, one line.
fn plain(found: &Value) -> Option<Value> {
    match found {
        Value::String(text) => text.lines().find_map(says).map(Value::String),
        Value::Number(_) | Value::Bool(_) => Some(found.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What a line says: without what can't be seen or turns text round, its blanks single,
/// its end cut off. None, if it says nothing.
pub(super) fn says(line: &str) -> Option<String> {
    let seen = |c: &char| !is_misleading(*c) && (!c.is_control() || c.is_whitespace());
    let seen: String = line.chars().filter(seen).collect();
    let words: Vec<&str> = seen.split_whitespace().collect();
    let mut text = words.join(" ");
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        let last = text[..end].char_indices().next_back();
        text.truncate(last.map_or(0, |(at, _)| at));
        text.push('…');
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{says, value};
    use crate::protocol::Source;
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
        let items = json!({"at": ["/body"], "take": "items", "under": ["criteria"]});
        assert_eq!(read(items, &payload), Some(json!(["one", "two"])));
        let none = json!({"at": ["/body"], "take": "items", "under": ["requirements"]});
        assert_eq!(read(none, &payload), None);
        assert_eq!(
            read(json!({"at": ["/body"], "take": "line"}), &payload),
            Some(json!("intro"))
        );
    }
}
