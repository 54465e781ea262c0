//! Makes untrusted text safe to show, and shortens it.

/// Shows untrusted text in quotes, escaped and cut to 60 characters.
pub fn quoted(text: &str) -> String {
    let shown: String = cut(text, 60).chars().flat_map(char::escape_debug).collect();
    format!("\"{shown}\"")
}

/// Any text as one word of a POSIX shell's command line, in single quotes.
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The start of a text: at most this many characters, followed by `…` if there are more.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text in at most this many characters, the last of which is `…` if there are more.
pub fn fit(text: &str, most: usize) -> String {
    match text.chars().nth(most) {
        Some(_) => cut(text, most.saturating_sub(1)),
        None => text.to_owned(),
    }
}

/// Whether a character reorders or hides the text around it.
pub fn is_misleading(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Untrusted text for people: characters that could move the cursor or hide or reorder text are
/// made visible. Line breaks and tabs stay.
pub fn plain(text: &str) -> String {
    visible(text, |c| matches!(c, '\n' | '\t').then_some(c))
}

/// Untrusted text for people on one line: like [`plain`], but line breaks and tabs become blanks,
/// and blanks around it are removed.
pub fn one_line(text: &str) -> String {
    let breaks = |c| matches!(c, '\n' | '\t' | '\r' | '\u{2028}' | '\u{2029}');
    visible(text.trim(), |c| breaks(c).then_some(' '))
}

/// Makes characters that could move the cursor or hide or reorder text visible, except those for
/// which `instead` gives a replacement.
fn visible(text: &str, instead: impl Fn(char) -> Option<char>) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match instead(c) {
            Some(other) => shown.push(other),
            None if c.is_control() || is_misleading(c) => shown.extend(c.escape_unicode()),
            None => shown.push(c),
        }
    }
    shown
}

/// The longest summary line, in characters.
const SUMMARY: usize = 200;

/// Untrusted text as the summary of a commit: one line, white space folded, control and direction
/// characters dropped, at most 200 characters.
///
/// A line that begins with `-` or `#` could be read as the divider before a patch or as a comment,
/// so it is prefixed with a middle dot.
pub fn summary_line(text: &str) -> String {
    message_line(text, SUMMARY)
}

/// Like [`summary_line`], with at most this many characters.
pub fn message_line(text: &str, most: usize) -> String {
    let spaced: String = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !c.is_control() && !is_misleading(*c))
        .collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut line = fit(&words.join(" "), most);
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

    #[test]
    fn what_is_cut_off_is_marked() {
        assert_eq!(
            (cut("äöü", 2), cut("äöü", 3)),
            ("äö…".to_owned(), "äöü".to_owned())
        );
        assert_eq!(
            (fit("äöü", 2), fit("äöü", 3)),
            ("ä…".to_owned(), "äöü".to_owned())
        );
        assert_eq!((cut("a", 0), fit("a", 0)), ("…".to_owned(), "…".to_owned()));
    }

    #[test]
    fn one_line_hides_nothing() {
        assert_eq!(one_line(" a\nb\u{1b}[31m\n"), "a b\\u{1b}[31m");
        assert_eq!(one_line("x\u{202e}y\u{2028}z"), "x\\u{202e}y z");
        assert_eq!(plain("x\u{202e}y\n\tz\r"), "x\\u{202e}y\n\tz\\u{d}");
    }

    #[test]
    fn a_summary_is_one_harmless_line() {
        assert_eq!(summary_line("a\n\nIssue: 9\r\n\tb"), "a Issue: 9 b");
        assert_eq!(summary_line("--- \nx"), "· --- x");
        assert_eq!(
            summary_line("# ------------------------ >8 ---"),
            "· # ------------------------ >8 ---"
        );
        assert_eq!(summary_line("\u{1b}[31mred\u{202e}"), "[31mred");
        assert_eq!(summary_line(&"x".repeat(5000)).chars().count(), 200);
    }
}
