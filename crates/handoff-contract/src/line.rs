//! A line of a Markdown message, classified as heading, rule, fence, bullet or text.

use super::text;

/// The maximum length of a bullet's key, in characters; longer text is prose with a colon.
const KEY_LENGTH: usize = 64;

/// Derives a key from a heading or bullet: lower case, with `_` for each run of characters other
/// than letters and digits.
fn key_of(words: &str) -> String {
    let mut key = String::new();
    for c in words.chars() {
        if c.is_alphanumeric() {
            key.extend(c.to_lowercase());
        } else if !key.is_empty() && !key.ends_with('_') {
            key.push('_');
        }
    }
    key.truncate(key.trim_end_matches('_').len());
    key
}

/// Like [`key_of`], but a name such as `AUTH-3` (one word with a digit) stays as it is.
fn name_of(words: &str) -> String {
    if words.contains(|c: char| c.is_ascii_digit()) && !words.contains(char::is_whitespace) {
        words.to_owned()
    } else {
        key_of(words)
    }
}

pub(super) fn heading_of(key: &str) -> String {
    key.replace('_', " ").to_uppercase()
}

/// The words of a bullet that has this key.
pub(super) fn words_of(key: &str) -> String {
    if key.contains(|c: char| c.is_ascii_digit()) {
        return key.to_owned();
    }
    let words = key.replace('_', " ");
    let mut chars = words.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

/// The offset after the first colon that is followed by a blank or the end.
fn after_colon(words: &str) -> Option<usize> {
    let mut colons = words.match_indices(':').map(|(at, _)| at + 1);
    colons.find(|&end| words[end..].is_empty() || words[end..].starts_with([' ', '\t', '\r']))
}

/// The backticks or tildes that open or close a code block.
#[derive(Clone, Copy)]
pub(super) struct Fence<'a> {
    mark: char,
    length: usize,
    pub(super) language: &'a str,
}

impl<'a> Fence<'a> {
    pub(super) fn of(line: &'a str) -> Option<Self> {
        let line = text::trim(line);
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let language = line.trim_start_matches(mark);
        let length = line.len() - language.len();
        let fence = Self {
            mark,
            length,
            language: text::trim(language),
        };
        (length >= 3 && !language.contains(mark)).then_some(fence)
    }

    pub(super) fn closes(self, opened: Fence<'_>) -> bool {
        self.mark == opened.mark && self.length >= opened.length && self.language.is_empty()
    }
}

/// A line without its line break.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) offset: usize,
    pub(super) text: &'a str,
}

pub(super) struct Heading<'a> {
    pub(super) key: String,
    /// The line's text.
    pub(super) text: &'a str,
    pub(super) offset: usize,
}

impl<'a> Line<'a> {
    pub(super) fn is_blank(self) -> bool {
        text::is_blank(self.text)
    }

    pub(super) fn is_rule(self) -> bool {
        let shown = self.text.trim_end_matches([' ', '\t', '\r']);
        shown.len() >= 3 && shown.bytes().all(|byte| byte == b'=')
    }

    pub(super) fn fence(self) -> Option<Fence<'a>> {
        Fence::of(self.text).filter(|fence| self.text.starts_with(fence.mark))
    }

    pub(super) fn heading(self) -> Option<Heading<'a>> {
        let end = after_colon(self.text)?;
        let label = &self.text[..end - 1];
        let fits = |c: char| {
            (c.is_alphanumeric() && !c.is_lowercase())
                || matches!(
                    c,
                    ' ' | '_' | '-' | '/' | '&' | '(' | ')' | '.' | ',' | '+' | '#'
                )
        };
        let is_heading = label.starts_with(char::is_alphanumeric)
            && label.contains(char::is_uppercase)
            && label.chars().all(fits);
        is_heading.then(|| Heading {
            key: key_of(label),
            text: text::trim(&self.text[end..]),
            offset: self.offset + end + self.blanks(end),
        })
    }

    pub(super) fn ends_section(self) -> bool {
        self.is_rule() || self.heading().is_some()
    }

    /// The number of blank bytes from an offset on.
    pub(super) fn blanks(self, start: usize) -> usize {
        self.text.len() - start - text::trim_start(&self.text[start..]).len()
    }

    /// The indentation of a bullet, and the offset of its text in the line.
    pub(super) fn bullet(self) -> Option<(usize, usize)> {
        let indent = self.blanks(0);
        let rest = self.text[indent..].strip_prefix(['-', '*'])?;
        let is_bullet = rest.is_empty() || rest.starts_with([' ', '\t', '\r']);
        is_bullet.then(|| (indent, indent + 1 + self.blanks(indent + 1)))
    }
}

pub(super) struct Bullet {
    pub(super) offset: usize,
    pub(super) text: String,
    /// The key, and the offset of its value in `text`.
    pub(super) key: Option<(String, usize)>,
}

impl Bullet {
    /// Parses the first line of a bullet.
    pub(super) fn read(line: Line<'_>, start: usize) -> Self {
        let words = text::trim(&line.text[start..]);
        let key = after_colon(words).and_then(|end| {
            let label = &words[..end - 1];
            let fits = label.starts_with(char::is_alphanumeric)
                && label.chars().take(KEY_LENGTH + 1).count() <= KEY_LENGTH;
            fits.then(|| (name_of(label), end))
        });
        Self {
            offset: line.offset + start,
            text: words.to_owned(),
            key,
        }
    }
}
