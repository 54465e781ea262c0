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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_shown_escaped_and_short() {
        assert_eq!(quoted("a\n\u{1b}b"), "\"a\\n\\u{1b}b\"");
        assert!(quoted(&"x".repeat(10_000)).chars().count() < 70);
    }
}
