//! Positions in a text, and escaping for display.

use handoff_base::text::{cut, marked};

/// The line and column of a byte offset, both from 1; the column counts characters.
pub(super) fn position(text: &str, offset: usize) -> (u32, u32) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before[start..].chars().filter(|&c| c != '\u{feff}').count() + 1;
    (clamp(line), clamp(column))
}

/// The line and column for a line and a byte column, both from 1.
pub(super) fn position_in_line(text: &str, line: usize, byte_column: usize) -> (u32, u32) {
    let content = text
        .split('\n')
        .nth(line.saturating_sub(1))
        .unwrap_or_default();
    let mut end = byte_column.saturating_sub(1).min(content.len());
    while !content.is_char_boundary(end) {
        end -= 1;
    }
    let column = content[..end].chars().count() + 1;
    (clamp(line.max(1)), clamp(column))
}

fn clamp(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Whether XML 1.0 allows the character.
pub(super) fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Whether the byte is XML white space.
pub(super) fn is_blank_byte(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether the text is only XML white space.
pub(super) fn is_blank(text: &str) -> bool {
    text.bytes().all(is_blank_byte)
}

/// Trims XML white space.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\r', '\n'])
}

/// Trims XML white space at the start.
pub(super) fn trim_start(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\r', '\n'])
}

/// Whether the text is an XML name without a colon.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(is_name_start) && chars.all(is_name_char)
}

/// Whether a name may start with the character.
pub(super) fn is_name_start(c: char) -> bool {
    matches!(c, 'A'..='Z' | 'a'..='z' | '_' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}'
        | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
        | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

/// Whether a name may contain the character.
pub(super) fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// Truncates a text to 60 characters and escapes what a terminal or log would interpret.
pub(super) fn short(text: &str) -> String {
    let (text, mut shown) = (cut(text, 60), String::new());
    for (_, c, hidden) in marked(&text) {
        if hidden || !is_xml_char(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Truncates a path to 1,000 bytes.
pub(super) fn bound(path: &mut String) {
    const LIMIT: usize = 1_000;
    if path.len() > LIMIT {
        let end = (0..=LIMIT).rev().find(|&end| path.is_char_boundary(end));
        path.truncate(end.unwrap_or(0));
        path.push('…');
    }
}

/// The one of `names` that is closest to a misspelt `name`, if any is close.
pub(super) fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > 64 {
        return None;
    }
    let allowed = (length / 3).clamp(1, 3);
    names
        .filter(|other| other.chars().count().abs_diff(length) <= allowed)
        .map(|other| (distance(name, other), other))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, other)| other)
}

/// The edit distance of two words, ignoring case and `-`/`_`.
fn distance(a: &str, b: &str) -> usize {
    let fold = |text: &str| -> Vec<char> {
        text.chars()
            .map(|c| {
                if c == '-' {
                    '_'
                } else {
                    c.to_ascii_lowercase()
                }
            })
            .collect()
    };
    let (a, b) = (fold(a), fold(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        assert_eq!(position("ab\nçdé", 0), (1, 1));
        assert_eq!(position("ab\nçdé", "ab\nçd".len()), (2, 3));
        assert_eq!(position("\u{feff}<a/>", 3), (1, 1));
        assert_eq!(position_in_line("a\nçx", 2, 3), (2, 2));
    }

    #[test]
    fn shown_values_are_short_and_inert() {
        assert_eq!(short("a\u{1b}[31m"), "a\\u{1b}[31m");
        assert_eq!(short("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(short(&"x".repeat(100)).chars().count(), 61);
    }

    #[test]
    fn close_names_are_found() {
        let names = ["issue_number", "summary", "to"];
        assert_eq!(
            closest("issue-number", names.into_iter()),
            Some("issue_number")
        );
        assert_eq!(closest("sumary", names.into_iter()), Some("summary"));
        assert_eq!(closest("branch", names.into_iter()), None);
    }
}
