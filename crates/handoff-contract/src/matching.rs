//! Texts that a pattern matches.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::json;

use super::decides;

/// How often what may repeat does, in the order of preference.
const TIMES: [u32; 3] = [4, 0, 12];

/// How many texts are tried before a pattern counts as one that matches nothing.
const TRIED: u64 = 8;

/// The characters that are taken if a pattern allows them, the likeliest first.
const LIKELY: [(char, char); 4] = [('a', 'z'), ('0', '9'), ('A', 'Z'), ('!', '~')];

/// Texts that may match a pattern; other ones for each number, as far as the pattern allows. None
/// if the pattern can't be read.
fn texts(pattern: &str, number: u64) -> Vec<String> {
    let Ok(parsed) = regex_syntax::parse(pattern) else {
        return Vec::new();
    };
    let texts = TIMES.iter().filter_map(|times| {
        let (mut text, mut number) = (String::new(), number);
        write(&parsed, *times, &mut number, &mut text).then_some(text)
    });
    texts.collect()
}

/// Texts that match a pattern; other ones for each number, as far as the pattern allows.
pub fn matching(pattern: &str, number: u64) -> Vec<String> {
    let schema = json!({ "pattern": pattern });
    let accepts = |text: &String| decides(&schema, &json!(text)) == Some(true);
    let texts = texts(pattern, number).into_iter();
    texts.filter(accepts).collect()
}

/// Whether no text is found that a pattern matches, although it can be read.
pub fn matches_nothing(pattern: &str) -> bool {
    regex_syntax::parse(pattern).is_ok()
        && (0..TRIED).all(|number| matching(pattern, number).is_empty())
}

/// Adds a text that a part matches; the number decides among several. Returns whether there is one.
fn write(part: &Hir, times: u32, number: &mut u64, text: &mut String) -> bool {
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => {
            text.push_str(&String::from_utf8_lossy(&literal.0));
            true
        }
        HirKind::Class(class) => {
            let found = character(class, number);
            text.extend(found);
            found.is_some()
        }
        HirKind::Repetition(repeated) => {
            let most = repeated.max.unwrap_or(u32::MAX);
            let count = times.clamp(repeated.min, most).min(1000);
            (0..count).all(|_| write(&repeated.sub, times, number, text))
        }
        HirKind::Capture(capture) => write(&capture.sub, times, number, text),
        HirKind::Concat(all) => all.iter().all(|part| write(part, times, number, text)),
        HirKind::Alternation(any) => {
            let chosen = taken(number, any.len());
            any.get(chosen)
                .is_some_and(|part| write(part, times, number, text))
        }
    }
}

/// Splits a choice among so many off a number.
fn taken(number: &mut u64, of: usize) -> usize {
    let of = u64::try_from(of).unwrap_or(1).max(1);
    let chosen = *number % of;
    *number /= of;
    usize::try_from(chosen).unwrap_or_default()
}

/// One of a class's characters.
fn character(class: &Class, number: &mut u64) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|one| (one.start(), one.end())).collect(),
        Class::Bytes(class) => class
            .iter()
            .map(|one| (char::from(one.start()), char::from(one.end())))
            .collect(),
    };
    let within = |least: char, most: char| -> Vec<char> {
        let ranges = ranges.iter();
        let ranges = ranges.map(|(from, to)| (*from).max(least)..=(*to).min(most));
        ranges.flatten().collect()
    };
    let likely = LIKELY.iter().map(|(least, most)| within(*least, *most));
    match likely.into_iter().find(|all| !all.is_empty()) {
        Some(all) => all.get(taken(number, all.len())).copied(),
        None => ranges.first().map(|(from, _)| *from),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{matches_nothing, matching};

    #[test]
    fn a_pattern_is_matched_by_what_is_written_for_it() {
        for pattern in [
            "^[a-z]{3,20}$",
            "^Ticket [A-Z]{3}$",
            r"^\d{4}-\d{2}$",
            "^https://.+",
            "^(abc|x[0-9]+)?-$",
            "[^ ]",
            "^$",
        ] {
            assert!(!matching(pattern, 0).is_empty(), "{pattern}");
            assert!(!matches_nothing(pattern), "{pattern}");
        }
        let first = |number| matching("^art-[a-z]+$", number).into_iter().next();
        let all: BTreeSet<_> = (0..500).map(first).collect();
        assert_eq!(all.len(), 500);
        for pattern in ["^$a", "a^b", r"^[^\s\S]$"] {
            assert!(matches_nothing(pattern), "{pattern}");
        }
        // What can't be read is not judged.
        assert!(!matches_nothing("(?!a)b"));
    }
}
