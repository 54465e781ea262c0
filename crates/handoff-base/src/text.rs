//! Foreign text, made safe to show.

/// Shows foreign text inside quotes, escaped and cut to 60 characters.
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

/// Says whether a character reorders or hides the text around it.
pub fn is_misleading(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Foreign text for people: what could move a cursor, hide or turn text around is made
/// visible. Line breaks and tabs stay.
pub fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && c != '\n' && c != '\t') || is_misleading(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Longest summary line, in characters.
const SUMMARY: usize = 200;

/// Foreign text as one harmless line: white space folded, control and
/// direction characters dropped, at most 200 characters.
///
/// A line that begins with `-` or `#` could be read as the divider before a
/// patch or as a comment, and is set off by a middle dot.
pub fn one_line(text: &str) -> String {
    let spaced: String = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !c.is_control() && !is_misleading(*c))
        .collect();
    let mut line = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().nth(SUMMARY).is_some() {
        line = line.chars().take(SUMMARY - 1).collect();
        line.push('…');
    }
    if line.starts_with(['-', '#']) {
        line.insert_str(0, "· ");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_shown_escaped_and_short() {
        assert_eq!(quoted("a\n\u{1b}b"), "\"a\\n\\u{1b}b\"");
        assert!(quoted(&"x".repeat(10_000)).chars().count() < 70);
    }
}
