//! Trailers: the lines in a commit message's last paragraph, split like `git interpret-trailers
//! --parse`. Any text can be a trailer's value, and round-trips exactly.
//!
//! Continuation lines are indented by two blanks, and empty lines contain a dot, so that no line
//! starts a paragraph or another trailer. Characters that are invisible or could move a terminal's
//! cursor are written `\u{HEX}`.

use std::borrow::Cow;

use handoff_base::text::marked;

/// The start of a continuation line.
const NEXT_LINE: &str = "\n  ";

/// Stands for an empty line.
const EMPTY: &str = ".";

/// Encodes a text as a trailer's value.
pub fn folded(text: &str) -> Cow<'_, str> {
    let is_plain = text
        .bytes()
        .all(|b| (b' '..=b'~').contains(&b) && b != b'\\')
        && !text.starts_with(' ')
        && !text.ends_with(' ');
    if is_plain {
        return Cow::Borrowed(text);
    }
    let mut value = String::with_capacity(text.len() + 16);
    for (number, line) in text.split('\n').enumerate() {
        if number == 0 {
            fold_line(line, true, &mut value);
            continue;
        }
        value += NEXT_LINE;
        match line {
            "" => value += EMPTY,
            EMPTY => escape('.', &mut value),
            _ => fold_line(line, false, &mut value),
        }
    }
    Cow::Owned(value)
}

/// Encodes one line; leading blanks of continuation lines are preserved.
fn fold_line(line: &str, is_first: bool, value: &mut String) {
    let seen = line.trim_end_matches([' ', '\t']).len();
    let begin = line.len() - line.trim_start_matches([' ', '\t']).len();
    for (at, c, hidden) in marked(line) {
        let is_blank = matches!(c, ' ' | '\t');
        let at_edge = is_blank && (at >= seen || is_first && at < begin);
        let is_escape = c == '\\' && line[at..].starts_with(r"\u{");
        if at_edge || is_escape || hidden && c != '\t' {
            escape(c, value);
        } else {
            value.push(c);
        }
    }
}

fn escape(c: char, value: &mut String) {
    *value += &format!(r"\u{{{:x}}}", u32::from(c));
}

/// Decodes a trailer's value.
pub fn unfolded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for (number, line) in value.split('\n').enumerate() {
        let line = if number == 0 {
            line
        } else {
            text.push('\n');
            let line = line.strip_prefix("  ").unwrap_or(line);
            if line == EMPTY { "" } else { line }
        };
        unescape(line, &mut text);
    }
    text
}

fn unescape(line: &str, text: &mut String) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(r"\u{") {
        *text += before;
        let character = after.split_once('}').and_then(|(hex, after)| {
            let character = char::from_u32(u32::from_str_radix(hex, 16).ok()?)?;
            Some((character, after))
        });
        rest = match character {
            Some((character, after)) => {
                text.push(character);
                after
            }
            None => {
                *text += r"\u{";
                after
            }
        };
    }
    *text += rest;
}

/// Encodes JSON as a trailer's value; invisible characters become JSON escapes.
pub fn json_line(json: &str) -> Cow<'_, str> {
    if json.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Cow::Borrowed(json);
    }
    let mut value = String::with_capacity(json.len());
    for (_, c, hidden) in marked(json) {
        if hidden {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units).iter();
            units.for_each(|unit| value += &format!("\\u{unit:04x}"));
        } else {
            value.push(c);
        }
    }
    Cow::Owned(value)
}

/// The trailers of a message, in order: names, and values as encoded by [`folded`].
pub fn trailers(message: &str) -> Vec<(&str, &str)> {
    let last = message.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = last;
    while !rest.is_empty() {
        let mut end = 0;
        // Lines that begin with a blank continue the trailer.
        loop {
            end = rest[end..].find('\n').map_or(rest.len(), |at| end + at + 1);
            if !rest[end..].starts_with(' ') {
                break;
            }
        }
        let (one, after) = rest.split_at(end);
        let one = one.strip_suffix('\n').unwrap_or(one);
        found.extend(one.split_once(": "));
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{folded, json_line, trailers, unfolded};

    #[test]
    fn a_text_of_any_form_is_one_trailer_and_comes_back() {
        for (text, value) in [
            ("plain", "plain"),
            ("é, 漢字", "é, 漢字"),
            ("two\nlines", "two\n  lines"),
            ("a\n\n.\n  b\n", "a\n  .\n  \\u{2e}\n    b\n  ."),
            (" a ", r"\u{20}a\u{20}"),
            ("a\t\nIssue: 9\r", "a\\u{9}\n  Issue: 9\\u{d}"),
            ("C:\\users\\u{1}", r"C:\users\u{5c}u{1}"),
            ("\u{1b}[2J\u{202e}", r"\u{1b}[2J\u{202e}"),
            ("\n", "\n  ."),
            ("", ""),
            (r"\u{", r"\u{5c}u{"),
        ] {
            assert_eq!(folded(text), value, "{text:?}");
            assert_eq!(unfolded(value), text, "{value:?}");
            let message = format!("s\n\nFirst: {value}\nIssue: 1\n");
            if !value.is_empty() {
                assert_eq!(trailers(&message), [("First", value), ("Issue", "1")]);
            }
        }
    }

    #[test]
    fn a_json_text_stays_what_it_is() {
        let json = "{\"a\":\"x\u{7f}\u{e0001}é\"}";
        let line = json_line(json);
        assert_eq!(line, r#"{"a":"x\u007f\udb40\udc01é"}"#);
    }

    #[test]
    fn trailers_are_the_last_paragraph() {
        let message = "s\n\nIssue: 9\n\nIssue: 1\nTo: b\n";
        assert_eq!(trailers(message), [("Issue", "1"), ("To", "b")]);
    }
}
