//! Makes untrusted text safe to show, shortens it, and orders names.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// Quotes untrusted text for display, escaped and truncated to 64 characters, the length of the
/// longest id.
pub fn quoted(text: &str) -> String {
    let text = cut(text, 64);
    let mut shown = String::from("\"");
    for (_, c, hidden) in marked(&text) {
        if hidden && !c.is_control() {
            shown.extend(c.escape_unicode());
        } else if is_misleading(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_debug());
        }
    }
    shown.push('"');
    shown
}

/// The known name that a misspelt one most likely means.
pub fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let most = (name.chars().count() / 3).clamp(1, 3);
    // The distance takes time in proportion to both lengths.
    let near = known.into_iter().filter_map(|known| {
        let is_long = known.len() > MAX_NAME || known.len().abs_diff(name.len()) > 4 * most;
        (!is_long).then(|| {
            (
                strsim::damerau_levenshtein(&name, &known.to_lowercase()),
                known,
            )
        })
    });
    let near = near.filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// The maximum length of a name that may be misspelt, in bytes.
const MAX_NAME: usize = 256;

/// Quotes a text as one word for a POSIX shell, if it needs quotes.
///
/// Every command printed for people or agents quotes its values here, except types that never need
/// it: ids, agents' names, issue keys, workers, numbers.
pub fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(quoted_word(text))
}

/// Like [`word`], but always in single quotes, for commands that are parsed again.
pub fn quoted_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Truncates a text to this many characters, followed by `…` if there were more.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Truncates a text to this many characters in all, the last one `…` if there were more.
pub fn fit(text: &str, most: usize) -> String {
    // A text has at least as many bytes as characters.
    let is_longer = text.len() > most && text.chars().nth(most).is_some();
    if is_longer {
        cut(text, most.saturating_sub(1))
    } else {
        text.to_owned()
    }
}

/// Characters that reorder or hide text, carry invisible text, or break a line: Unicode's format
/// characters, default-ignorable code points, and line and paragraph separators. A test compares
/// the table with Unicode's.
const MISLEADING: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Whether a character reorders or hides text, or is invisible.
pub fn is_misleading(c: char) -> bool {
    // Fast path: only one misleading character is below.
    if c < '\u{300}' {
        return c == '\u{ad}';
    }
    let after = MISLEADING.partition_point(|&(first, _)| first <= c);
    after > 0 && c <= MISLEADING[after - 1].1
}

/// A text's characters, each with its offset and whether it must be escaped: control characters and
/// misleading ones.
///
/// Two misleading characters are allowed where they only shape an emoji: a zero-width joiner
/// between emoji, and one variation selector 16 after an emoji or in a keycap.
pub fn marked(text: &str) -> impl Iterator<Item = (usize, char, bool)> {
    let mut last = None;
    // Whether the text so far ends with an emoji.
    let mut emoji = false;
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (at, c) = chars.next()?;
        let next = chars.peek().map(|&(_, c)| c);
        let belongs = match c {
            '\u{200d}' => emoji && next.is_some_and(is_emoji),
            '\u{fe0f}' if last.is_some_and(is_emoji) => true,
            '\u{fe0f}' => matches!(
                (last, next),
                (Some('0'..='9' | '#' | '*'), Some('\u{20e3}'))
            ),
            _ => false,
        };
        emoji = is_emoji(c) || (belongs && c == '\u{fe0f}');
        last = Some(c);
        Some((at, c, c.is_control() || (is_misleading(c) && !belongs)))
    })
}

/// Whether a character is in a block that contains emoji.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2100}'..='\u{2bff}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Removes characters that must not be shown. Those that break a line become blanks; line feeds and
/// tabs stay.
pub fn without_invisible(text: &str) -> String {
    let seen = |(_, c, hidden): (usize, char, bool)| match c {
        '\n' | '\t' => Some(c),
        _ if hidden => c.is_whitespace().then_some(' '),
        _ => Some(c),
    };
    marked(text).filter_map(seen).collect()
}

/// Escapes untrusted text for people: characters that could move the cursor or hide or reorder text
/// become visible. Line breaks and tabs stay.
pub fn plain(text: &str) -> String {
    visible(text, |c| matches!(c, '\n' | '\t').then_some(c))
}

/// Escapes a path or another name for people, including line breaks and tabs.
pub fn path(text: &str) -> String {
    visible(text, |_| None)
}

/// Like [`plain`], and prefixes every line but the first with a bar, so that none can pass for a
/// line of our own output.
pub fn continued(text: &str) -> String {
    plain(text)
        .trim_end_matches('\n')
        .replace('\n', "\n      | ")
}

/// Like [`plain`], and prefixes every line with a bar.
pub fn set_off(text: &str) -> String {
    let text = plain(text);
    text.lines()
        .map(|line| format!("      | {line}\n"))
        .collect()
}

/// A Markdown code fence longer than any run of backticks in this text, so that it can't close the
/// block.
pub fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max();
    "`".repeat(longest.unwrap_or(0).max(2) + 1)
}

/// Untrusted text in a Markdown code block that it can't close.
pub fn fenced(text: &str, kind: &str) -> String {
    let fence = fence(text);
    format!("{fence}{kind}\n{}\n{fence}\n", plain(text.trim_end()))
}

/// Like [`plain`], but on one line: line breaks and tabs become blanks, and white space is trimmed
/// and collapsed, because a wide gap could pass for the end of a column or line.
pub fn one_line(text: &str) -> String {
    let breaks = |c| matches!(c, '\n' | '\t' | '\r' | '\u{2028}' | '\u{2029}');
    let mut line = visible(text.trim(), |c| breaks(c).then_some(' '));
    let mut last = None;
    line.retain(|c| {
        let is_more = c.is_whitespace() && last.is_some_and(char::is_whitespace);
        last = Some(c);
        !is_more
    });
    line
}

/// Escapes characters that could move the cursor or hide or reorder text, unless `instead` has a
/// replacement.
fn visible(text: &str, instead: impl Fn(char) -> Option<char>) -> String {
    let mut shown = String::with_capacity(text.len());
    for (_, c, hidden) in marked(text) {
        match instead(c) {
            Some(other) => shown.push(other),
            None if hidden => shown.extend(c.escape_unicode()),
            None => shown.push(c),
        }
    }
    shown
}

/// Strips a byte order mark, which some editors write and JSON parsers refuse.
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// The maximum length of a summary line, in characters.
const SUMMARY: usize = 200;

/// Makes untrusted text a commit's summary: one line, white space collapsed, control and invisible
/// characters dropped, at most 200 characters.
///
/// A line that begins with `-` or `#` could pass for the divider before a patch or for a comment,
/// so it is prefixed with a middle dot.
pub fn summary_line(text: &str) -> String {
    message_line(text, SUMMARY)
}

/// Like [`summary_line`], with this maximum length.
pub fn message_line(text: &str, most: usize) -> String {
    // Fast path: printable ASCII without consecutive blanks.
    let is_one_line = text.bytes().all(|b| (b' '..=b'~').contains(&b))
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && !text.contains("  ");
    let mut line = if is_one_line {
        fit(text, most)
    } else {
        let seen = without_invisible(text);
        let words: Vec<&str> = seen.split_whitespace().collect();
        fit(&words.join(" "), most)
    };
    if line.starts_with(['-', '#']) {
        line.insert_str(0, "· ");
    }
    line
}

/// A number with thousands separators: `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Compares names with runs of digits by value: `7` is before `10`, and `a2.9` before `a2.10`.
pub fn natural_order(one: &str, other: &str) -> Ordering {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let zeros = |run: &[u8]| run.iter().take_while(|b| **b == b'0').count();
    let (mut a, mut b) = (one.as_bytes(), other.as_bytes());
    loop {
        let (own, its) = (digits(a), digits(b));
        let order = if own > 0 && its > 0 {
            let ((run, rest), (its_run, its_rest)) = (a.split_at(own), b.split_at(its));
            (a, b) = (rest, its_rest);
            let run = &run[zeros(run)..];
            let its_run = &its_run[zeros(its_run)..];
            run.len().cmp(&its_run.len()).then_with(|| run.cmp(its_run))
        } else {
            let (Some((first, rest)), Some((its_first, its_rest))) =
                (a.split_first(), b.split_first())
            else {
                return a.len().cmp(&b.len()).then_with(|| one.cmp(other));
            };
            (a, b) = (rest, its_rest);
            first.cmp(its_first)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// A count with its noun: `1 commit`, `2 commits`.
pub fn counted<N: fmt::Display + From<u8> + PartialEq>(count: N, noun: &str) -> String {
    counted_as(count, noun, ["", "s"])
}

/// A count with its noun and the singular or plural ending: `1 step is`, `2 steps are`.
pub fn counted_as<N>(count: N, noun: &str, [one, more]: [&str; 2]) -> String
where
    N: fmt::Display + From<u8> + PartialEq,
{
    let ending = if count == N::from(1) { one } else { more };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn foreign_text_is_shown_escaped_and_short() {
        assert_eq!(quoted("a\n\u{1b}b"), "\"a\\n\\u{1b}b\"");
        assert!(quoted(&"x".repeat(10_000)).chars().count() < 70);
    }

    #[test]
    fn what_follows_a_count_agrees_with_it() {
        let steps = |count: u32| counted_as(count, "step", [" was", "s were"]);
        assert_eq!(
            [0, 1, 2].map(steps),
            ["0 steps were", "1 step was", "2 steps were"]
        );
        assert_eq!(counted(1_u64, "file"), "1 file");
        assert_eq!(counted(12_usize, "file"), "12 files");
    }

    #[test]
    fn names_are_ordered_by_their_numbers() {
        let ordered = [
            "1",
            "2",
            "10",
            "a",
            "a-2",
            "a-02",
            "a-10",
            "a-10.9",
            "a-10.10",
            "b",
            "b1c2",
            "b1c10",
            "b18446744073709551616",
        ];
        let mut names = ordered;
        names.reverse();
        names.sort_by(|one, other| natural_order(one, other));
        // Names that differ only in leading zeros are ordered by bytes.
        names[4..6].reverse();
        assert_eq!(names, ordered);
        assert_eq!(natural_order("a1", "a1"), Ordering::Equal);
    }

    #[test]
    fn a_word_is_quoted_only_if_a_shell_would_split_or_run_it() {
        for plain in ["main", "origin/a-b_c.d", "user@host:x", "a,b=1%+"] {
            assert_eq!(word(plain), plain);
        }
        assert_eq!(word("fix;touch${IFS}X;#"), "'fix;touch${IFS}X;#'");
        assert_eq!(word("it's"), "'it'\\''s'");
        for text in [
            "", "a b", "`x`", "$x", "~", "*", "a\nb", "ä", "#", "!x", "a\\b",
        ] {
            assert_eq!(word(text), format!("'{text}'"));
        }
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
        assert_eq!(one_line("x\n   \u{3000}z \u{a0}y"), "x z y");
        assert_eq!(path("x\ny\t\u{2028}"), "x\\u{a}y\\u{9}\\u{2028}");
        assert_eq!(plain("x\u{202e}y\n\tz\r"), "x\\u{202e}y\n\tz\\u{d}");
    }

    /// The table equals the set of the Unicode version that `regex` knows; later versions only add
    /// characters.
    #[test]
    fn what_misleads_is_what_unicode_calls_so() {
        let regex = |class: &str| regex::Regex::new(class).unwrap();
        let unicode = regex(r"^[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]$");
        let emoji = regex(r"^[\p{Emoji}&&[^0-9#*]]$");
        let mut text = String::new();
        for c in '\0'..=char::MAX {
            text.clear();
            text.push(c);
            assert_eq!(is_misleading(c), unicode.is_match(&text), "{c:?}");
            assert!(is_emoji(c) || !emoji.is_match(&text), "{c:?}");
            assert!(!(is_emoji(c) && is_misleading(c)), "{c:?}");
        }
        assert!(MISLEADING.is_sorted());
    }

    /// One character for each known way to hide or disguise text.
    #[test]
    fn nothing_invisible_passes() {
        for c in "\u{61c}\u{2028}\u{2029}\u{206a}\u{206f}\u{e0041}\u{fe00}\u{fe0f}\u{e0100}\u{3164}\u{115f}\u{ad}\u{180e}\u{fff9}\u{34f}".chars()
        {
            let text = format!("a{c}b");
            assert_eq!(plain(&text), format!("a{}b", c.escape_unicode()));
            assert!(!quoted(&text).contains(c), "{c:?}");
            assert!(!one_line(&text).contains(c), "{c:?}");
            assert!(!summary_line(&text).contains(c), "{c:?}");
        }
    }

    #[test]
    fn emoji_stay_whole() {
        for text in [
            "a ⚠\u{fe0f} b",
            "1\u{fe0f}\u{20e3}",
            "👩\u{1f3fd}\u{200d}💻",
            "🏳\u{fe0f}\u{200d}🌈",
        ] {
            assert_eq!(
                (plain(text), summary_line(text)),
                (text.to_owned(), text.to_owned())
            );
        }
        assert_eq!(plain("⚠\u{fe0f}\u{fe0f}"), "⚠\u{fe0f}\\u{fe0f}");
        assert_eq!(plain("👩\u{200d}a\u{200d}💻"), "👩\\u{200d}a\\u{200d}💻");
        // A tag sequence can spell anything, so even a flag is escaped.
        assert_eq!(plain("🏴\u{e0067}"), "🏴\\u{e0067}");
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
