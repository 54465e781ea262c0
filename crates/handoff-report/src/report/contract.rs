//! A contract for people: one field per line, with aligned values.

use handoff::model::Record;
use serde_json::Value;

use super::words::{size, thousands};

/// How many bytes of a contract are shown at most.
const MOST: usize = 64 * 1024;

/// The maximum width of the name column, in characters.
const WIDEST: usize = 28;

/// A contract's value as lines of text, or its bytes if it can't be parsed. A long one is
/// truncated, with the command that prints the rest.
pub(super) fn contract(record: &Record, value: Option<&Value>, bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().min(MOST));
    match value {
        Some(value) => fields(&mut text, value, 0),
        None => text.push_str(&String::from_utf8_lossy(bytes)),
    }
    text.truncate(text.trim_end().len());
    shortened(text, &record.id.to_string(), record.contract.bytes)
}

fn shortened(mut text: String, id: &str, bytes: u64) -> String {
    if text.len() > MOST {
        let left_out = text.len() - MOST;
        let mut end = MOST;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text += &format!(
            "…\n\n{} bytes more are not shown here; all {} of it: git handoff show {id} --contract",
            thousands(left_out),
            size(bytes)
        );
    }
    text
}

/// Writes the members of a value, one per line, with nested values indented.
fn fields(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(members) => {
            let simple = members
                .iter()
                .filter(|(_, value)| beside_name(value).is_some());
            let widths = simple.map(|(name, _)| name.chars().count());
            let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
            for (name, value) in members {
                indent(text, depth);
                text.push_str(&name.replace('\n', " "));
                member(text, name.chars().count(), width, value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                indent(text, depth);
                text.push('-');
                match beside_name(item) {
                    Some(line) => *text += &format!(" {line}\n"),
                    // The first field is next to the dash.
                    None if item.is_object() => {
                        let start = text.len();
                        fields(text, item, depth + 1);
                        let first = start + 2 * (depth + 1);
                        if text.is_char_boundary(first) && text.len() > first {
                            text.replace_range(start..first, " ");
                        }
                    }
                    None => {
                        text.push('\n');
                        below(text, item, depth + 1);
                    }
                }
            }
        }
        other => below(text, other, depth),
    }
}

/// Writes what follows a member's name.
fn member(text: &mut String, name: usize, width: usize, value: &Value, depth: usize) {
    match beside_name(value) {
        Some(line) => {
            for _ in name..width {
                text.push(' ');
            }
            *text += &format!("  {line}\n");
        }
        None => {
            text.push('\n');
            below(text, value, depth + 1);
        }
    }
}

/// Writes a value that takes several lines.
fn below(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::String(lines) => {
            for line in lines.lines() {
                indent(text, depth);
                text.push_str(line);
                text.push('\n');
            }
        }
        Value::Object(_) | Value::Array(_) => fields(text, value, depth),
        other => {
            indent(text, depth);
            *text += &format!("{other}\n");
        }
    }
}

/// A value that fits next to its name.
fn beside_name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() => Some("\"\"".to_owned()),
        Value::String(text) => (!text.contains('\n')).then(|| text.clone()),
        Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        Value::Object(members) if members.is_empty() => Some("none".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
        other => Some(other.to_string()),
    }
}

fn indent(text: &mut String, depth: usize) {
    for _ in 0..depth {
        text.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MOST, fields, shortened};

    #[test]
    fn fields_are_lined_up_and_lists_are_lists() {
        let value = json!({
            "from": "a",
            "summary": "one line",
            "notes": "first\nsecond",
            "files": [{ "path": "x.rs", "lines": 3 }, "plain", ["deep", []]],
            "empty": {},
            "done": true,
            "nothing": null,
        });
        let mut text = String::new();
        fields(&mut text, &value, 0);
        assert_eq!(
            text,
            "from     a\n\
             summary  one line\n\
             notes\n  first\n  second\n\
             files\n  - path   x.rs\n    lines  3\n  - plain\n  -\n    - deep\n    - none\n\
             empty    none\n\
             done     true\n\
             nothing  null\n"
        );
    }

    #[test]
    fn a_very_long_text_ends_with_where_the_rest_is() {
        let text = shortened("ü".repeat(MOST), "7.1", 131_072);
        assert!(text.len() < MOST + 200);
        assert!(
            text.ends_with("git handoff show 7.1 --contract"),
            "{}",
            &text[MOST..]
        );
        assert_eq!(shortened("short".to_owned(), "7.1", 5), "short");
    }
}
