//! Patterns of ECMA 262, matched in time that is linear in the text.
//!
//! They compile on first use, for short texts with an engine that compiles fast and matches slowly:
//! a contract needs few of them, and compiling a single one (a timestamp with leap years) takes
//! longer than the rest of a check.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use regex_syntax::ast::{ErrorKind, parse::Parser};

/// The most common pattern in protocols, "not blank", is matched without a regex.
const NOT_BLANK: &str = r"[^ \t\n\r]";

/// The bytes that the engine that compiles fast matches against one pattern.
const BRIEF: usize = 16 << 10;

/// The maximum size of what it compiles, in bytes: its time is in proportion to that, too.
const SMALL: usize = 64 << 10;

/// The compiled patterns of a schema.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    known: Mutex<HashMap<String, Arc<Pattern>>>,
    /// The number of patterns in the schema, which share one limit on compiled size.
    number: usize,
}

#[derive(Debug, Default)]
struct Pattern {
    /// How many bytes were matched by `brief`.
    read: AtomicUsize,
    brief: OnceLock<Option<regex_lite::Regex>>,
    full: OnceLock<Option<regex::Regex>>,
}

/// Why a pattern can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It is not a regular expression.
    Malformed,
    /// It may take more than linear time, or is too large.
    Unbounded,
}

impl Patterns {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// Whether a text matches; `None` if the pattern can't be used.
    pub(super) fn matches(&self, pattern: &str, text: &str) -> Option<bool> {
        if pattern == NOT_BLANK {
            return Some(text.contains(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')));
        }
        let known = self.known(pattern);
        let read = known.read.fetch_add(text.len(), Ordering::Relaxed);
        if known.full.get().is_none() && read.saturating_add(text.len()) <= BRIEF {
            let brief = known.brief.get_or_init(|| {
                let (pattern, is_common) = translated(pattern)?;
                let mut builder = regex_lite::RegexBuilder::new(&pattern);
                is_common.then(|| builder.size_limit(SMALL).build().ok())?
            });
            if let Some(brief) = brief {
                return Some(brief.is_match(text));
            }
        }
        let full = known.full.get_or_init(|| self.compiled(pattern).ok());
        full.as_ref().map(|regex| regex.is_match(text))
    }

    fn known(&self, pattern: &str) -> Arc<Pattern> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(pattern) {
            return Arc::clone(found);
        }
        let new = Arc::<Pattern>::default();
        known.insert(pattern.to_owned(), Arc::clone(&new));
        new
    }

    /// Why a pattern can't be used, if it can't.
    pub(super) fn unusable(&self, pattern: &str) -> Option<Unusable> {
        let known = self.known(pattern);
        if known.full.get().is_some_and(Option::is_some) {
            return None;
        }
        let compiled = self.compiled(pattern);
        let unusable = compiled.as_ref().err().copied();
        known.full.get_or_init(|| compiled.ok());
        unusable
    }

    fn compiled(&self, pattern: &str) -> Result<regex::Regex, Unusable> {
        let share = (32 << 20) / self.number.max(32);
        let (translated, _) = translated(pattern).ok_or(Unusable::Malformed)?;
        let mut builder = regex::RegexBuilder::new(&translated);
        builder.size_limit(share).dfa_size_limit(share);
        builder.build().map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => Unusable::Unbounded,
            _ if is_unbounded(&translated) => Unusable::Unbounded,
            _ => Unusable::Malformed,
        })
    }
}

/// Whether a text is a regular expression, even one that can't be used.
pub(super) fn is_expression(text: &str) -> bool {
    translated(text)
        .is_some_and(|(text, _)| Parser::new().parse(&text).is_ok() || is_unbounded(&text))
}

/// Whether an expression has look-around or back-references.
fn is_unbounded(expression: &str) -> bool {
    Parser::new().parse(expression).is_err_and(|error| {
        matches!(
            error.kind(),
            ErrorKind::UnsupportedLookAround | ErrorKind::UnsupportedBackreference
        )
    })
}

/// ECMA 262's `\s`, as ranges of a class.
const SPACE: &str = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff";

/// What a `-` in a class is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hyphen {
    /// Itself.
    Literal,
    /// The middle of a range.
    Range,
    /// Itself, and what comes next ends a range.
    InRange,
}

/// A pattern in the syntax of both engines, and whether both read it alike: one knows Unicode's
/// cases and words, one ASCII's. `None` for what ECMA 262 doesn't have.
fn translated(pattern: &str) -> Option<(String, bool)> {
    let mut text = String::with_capacity(pattern.len() + 16);
    let (mut is_common, mut in_class) = (true, false);
    let mut hyphen = Hyphen::Literal;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        let was = std::mem::replace(&mut hyphen, Hyphen::Range);
        match character {
            '\\' => {
                let escaped = characters.next()?;
                hyphen = escape(escaped, &mut characters, &mut text)?;
                is_common &= !matches!(escaped, 'b' | 'B' | '<' | '>' | 'p' | 'P');
                if was == Hyphen::InRange {
                    hyphen = Hyphen::Literal;
                }
                continue;
            }
            '[' if !in_class => {
                in_class = true;
                hyphen = Hyphen::Literal;
                if characters.next_if_eq(&'^').is_some() {
                    text.push_str("[^");
                    continue;
                }
            }
            ']' => in_class = false,
            '-' if in_class && was == Hyphen::Range && next != Some(']') => {
                hyphen = Hyphen::InRange
            }
            // What only the engines' classes have operators for.
            '-' | '&' | '~' | '[' if in_class => text.push('\\'),
            '(' if !in_class && next == Some('?') => {
                is_common &= characters.clone().nth(1) == Some(':');
            }
            _ => {}
        }
        if in_class && was == Hyphen::InRange {
            hyphen = Hyphen::Literal;
        }
        text.push(character);
    }
    Some((text, is_common))
}

/// Adds an escaped character, and returns what a `-` after it is.
fn escape(
    escaped: char,
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    text: &mut String,
) -> Option<Hyphen> {
    match escaped {
        'd' => text.push_str("[0-9]"),
        'D' => text.push_str("[^0-9]"),
        'w' => text.push_str("[A-Za-z0-9_]"),
        'W' => text.push_str("[^A-Za-z0-9_]"),
        's' => text.push_str(&format!("[{SPACE}]")),
        'S' => text.push_str(&format!("[^{SPACE}]")),
        'c' if rest.peek().is_some_and(char::is_ascii_alphabetic) => {
            let letter = rest.next()?;
            text.push_str(&format!(r"\x{{{:x}}}", letter as u32 % 32));
            return Some(Hyphen::Range);
        }
        'a' => return None,
        other => {
            text.extend(['\\', other]);
            return Some(Hyphen::Range);
        }
    }
    Some(Hyphen::Literal)
}
