//! Escaping of foreign text.

use std::fmt;
use std::fmt::{Display, Write};

use handoff::base::text::marked;

/// A text for an element's content or a double-quoted attribute. HTML's special characters are
/// escaped; invisible characters and those that reorder text are made visible.
pub(super) struct Escaped<T>(T);

pub(super) fn escaped<T: AsRef<str>>(text: T) -> Escaped<T> {
    Escaped(text)
}

impl<T: AsRef<str>> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.0.as_ref())
    }
}

pub(super) fn escape_into(page: &mut String, text: &str) {
    page.reserve(text.len());
    // Writing to a string can't fail.
    let _ = write_escaped(page, text);
}

fn write_escaped(out: &mut impl Write, text: &str) -> fmt::Result {
    let mut plain = 0;
    for (at, c, hidden) in marked(text) {
        let shown = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\'' => "&#39;",
            '\n' | '\t' => continue,
            // A CRLF line break.
            '\r' if text[at + 1..].starts_with('\n') => "",
            c if hidden => {
                out.write_str(&text[plain..at])?;
                write!(out, "{}", c.escape_unicode())?;
                plain = at + c.len_utf8();
                continue;
            }
            _ => continue,
        };
        out.write_str(&text[plain..at])?;
        out.write_str(shown)?;
        plain = at + c.len_utf8();
    }
    out.write_str(&text[plain..])
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn markup_quotes_and_what_is_not_seen_come_out_as_text() {
        for (text, shown) in [
            ("plain, with ü and 漢", "plain, with ü and 漢"),
            (
                "</script><b a='\"'>",
                "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;",
            ),
            ("&lt;", "&amp;lt;"),
            ("a\r\nb\tc\rd", "a\nb\tc\\u{d}d"),
            (
                "\u{202e}evil\u{0}\u{1b}[2J",
                "\\u{202e}evil\\u{0}\\u{1b}[2J",
            ),
            ("", ""),
        ] {
            assert_eq!(escaped(text).to_string(), shown);
        }
    }
}
