//! The rules, and which of them apply to a text.
//!
//! Rules are tables, which a test generates from `rules.toml` and the crate `nosecrets-rules`.
//! Compiling a regex costs more than parsing a contract, so a rule is compiled only if its words
//! occur in the text; for most contracts, none is.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use super::value::{is_blank, is_chosen, is_drawn, is_placeholder};

include!("table.rs");

/// A kind of secret.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its stable id.
    pub(super) id: &'static str,
    /// Its name in words.
    pub(super) name: &'static str,
    pattern: &'static str,
    form: Form,
    /// Lists of words, by index: the rule is tried if the text contains all words of one list.
    needs: &'static [&'static [usize]],
    /// Patterns of values that are not secrets.
    allowed: &'static [&'static str],
}

impl Rule {
    /// Whether the rule is for tokens with a distinctive prefix, which is one of the rule's words.
    fn is_token(&self) -> bool {
        self.form == Form::Own && self.pattern.starts_with("\\b")
    }

    /// The regex without word boundaries, to find tokens within other text.
    fn unbound(&self) -> String {
        if self.form != Form::Own {
            return self.pattern.to_owned();
        }
        let pattern = self.pattern.replacen("(?i)\\b", "(?i)", 1);
        let pattern = pattern.strip_prefix("\\b").unwrap_or(&pattern);
        pattern.strip_suffix("\\b").unwrap_or(pattern).to_owned()
    }
}

/// Whether a match is part of a longer word. Then it must also look random: the end of `task-` is
/// the start of a token (`sk-`).
fn is_glued(text: &[u8], token: &Range<usize>) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let before = token.start.checked_sub(1).and_then(|at| text.get(at));
    is_word(before) || is_word(text.get(token.end))
}

/// Whether a match within a longer word is really a token: it contains a long random-looking run of
/// letters and digits, and is not the start of a longer hexadecimal number.
fn is_token_in(text: &[u8], range: &Range<usize>) -> bool {
    const RUN: usize = 16;
    let value = &text[range.clone()];
    let mut runs = value.split(|byte| !byte.is_ascii_alphanumeric());
    let is_hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let tail = &value[value.len().saturating_sub(2 * RUN)..];
    let goes_on = text.get(range.end).is_some_and(u8::is_ascii_hexdigit) && is_hex(tail);
    !goes_on && runs.any(|run| run.len() >= RUN && is_drawn(run))
}

/// How a secret is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// By its own form, such as a prefix.
    Own,
    /// By the name beside it, and because it looks random.
    Drawn,
    /// By the name beside it, and because it looks like a password.
    Chosen,
}

/// A word that triggers a rule. A lower-case word also matches in upper case; one that ends in `=`
/// matches only beside a value.
struct Word {
    pair: u16,
    text: &'static str,
    number: usize,
}

/// A match of a rule.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) rule: &'static Rule,
    pub(super) range: Range<usize>,
}

/// Finds every secret in a text, in order. Of overlapping matches, one of a rule of [`Form::Own`]
/// wins.
pub(super) fn hits(text: &[u8]) -> Vec<Hit> {
    let mut found: Vec<Hit> = Vec::new();
    for (number, rule) in called_for(text) {
        if let Some(compiled) = Compiled::get(number) {
            let ranges = compiled.matches(rule, text);
            found.extend(ranges.map(|range| Hit { rule, range }));
        }
    }
    found.sort_by_key(|hit| (hit.rule.form != Form::Own, hit.range.start));
    // Kept matches do not overlap, so only the last one that starts before the new one's end can
    // overlap it.
    let mut kept: BTreeMap<usize, Hit> = BTreeMap::new();
    for hit in found {
        let before = kept.range(..hit.range.end).next_back();
        if before.is_none_or(|(_, kept)| kept.range.end <= hit.range.start) {
            kept.insert(hit.range.start, hit);
        }
    }
    kept.into_values().collect()
}

/// The rules whose words occur in a text.
fn called_for(text: &[u8]) -> impl Iterator<Item = (usize, &'static Rule)> {
    let words = words_in(text).unwrap_or_default();
    let all = if words.is_empty() { &[] } else { RULES };
    all.iter().enumerate().filter(move |(_, rule)| {
        let mut needs = rule.needs.iter();
        needs.any(|all| all.iter().all(|&number| words[number]))
    })
}

/// Whether this is the id of a rule.
pub fn is_rule(id: &str) -> bool {
    RULES.iter().any(|rule| rule.id == id)
}

/// The ids of all rules, in alphabetical order.
pub(super) fn ids() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.id)
}

/// A rule's compiled regexes.
struct Compiled {
    pattern: Regex,
    allowed: Vec<Regex>,
}

impl Compiled {
    /// A rule's regexes, compiled on first use.
    fn get(number: usize) -> Option<&'static Self> {
        static COMPILED: LazyLock<Vec<OnceLock<Option<Compiled>>>> =
            LazyLock::new(|| RULES.iter().map(|_| OnceLock::new()).collect());
        let compile = || {
            let rule = &RULES[number];
            let allowed = rule.allowed.iter().map(|text| expression(text));
            Some(Compiled {
                pattern: expression(&rule.unbound())?,
                allowed: allowed.collect::<Option<_>>()?,
            })
        };
        COMPILED[number].get_or_init(compile).as_ref()
    }

    fn matches<'t>(
        &'t self,
        rule: &'t Rule,
        text: &'t [u8],
    ) -> impl Iterator<Item = Range<usize>> + 't {
        let values = self.pattern.captures_iter(text).filter_map(|captures| {
            let all = captures.get(0)?.range();
            let group = captures.iter().skip(1).flatten().next();
            Some((
                group.map_or_else(|| all.clone(), |found| found.range()),
                all,
            ))
        });
        let values = values.filter(move |(range, all)| {
            let value = &text[range.clone()];
            if rule.is_token() && is_glued(text, all) && !is_token_in(text, range) {
                return false;
            }
            let fits = match rule.form {
                Form::Own => !is_blank(value),
                Form::Drawn => is_drawn(value) && !is_placeholder(value),
                Form::Chosen => is_chosen(value) && !is_placeholder(value),
            };
            fits && !self.allowed.iter().any(|a| a.is_match(value))
        });
        values.map(|(range, _)| range)
    }
}

/// Compiles a regex for bytes, without Unicode classes, which takes a fraction of the time.
fn expression(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).build().ok()
}

/// Two characters, case-folded, as a ten-bit index.
pub(super) fn pair(first: u8, second: u8) -> u16 {
    u16::from(first & 31) << 5 | u16::from(second & 31)
}

/// Marks the words that occur in a text; `None` if none does.
fn words_in(text: &[u8]) -> Option<Vec<bool>> {
    // A bit set of the character pairs that words start with.
    let mut begins = [0_u64; 16];
    for word in WORDS {
        begins[usize::from(word.pair >> 6)] |= 1 << (word.pair & 63);
    }
    let mut found: Option<Vec<bool>> = None;
    let longer = |word: &&Word| word.text.len() > 1;
    for at in 1..text.len() {
        let pair = pair(text[at - 1], text[at]);
        if begins[usize::from(pair >> 6)] & (1 << (pair & 63)) == 0 {
            continue;
        }
        let first = WORDS.partition_point(|word| word.pair < pair);
        for word in WORDS[first..]
            .iter()
            .take_while(|word| word.pair == pair)
            .filter(longer)
        {
            let (name, assigned) = match word.text.strip_suffix('=') {
                Some(name) => (name.as_bytes(), true),
                None => (word.text.as_bytes(), false),
            };
            let end = at - 1 + name.len();
            let stands = text.get(at - 1..end).is_some_and(|here| {
                if name.iter().any(u8::is_ascii_uppercase) {
                    here == name
                } else {
                    here.eq_ignore_ascii_case(name)
                }
            });
            let stands = stands && (!assigned || has_value(&text[end..]));
            if stands {
                found.get_or_insert_with(|| vec![false; WORDS.len()])[word.number] = true;
            }
        }
    }
    // A one-character word counts only if another word was found.
    if let Some(found) = &mut found {
        for word in WORDS.iter().filter(|word| word.text.len() == 1) {
            found[word.number] = text.contains(&word.text.as_bytes()[0]);
        }
    }
    found
}

/// Whether a name is followed by an assignment of a possible secret. Without this test, prose about
/// passwords would cost as much to screen as passwords.
fn has_value(rest: &[u8]) -> bool {
    let between = |byte: &u8| b"\"'`\\ \t\r\n".contains(byte);
    let sign = rest.iter().position(|byte| !between(byte));
    let Some((b'=' | b':', rest)) = sign.and_then(|at| rest[at..].split_first()) else {
        return false;
    };
    let value = rest
        .iter()
        .position(|byte| !between(byte) && !b"=>".contains(byte));
    value.is_some_and(|at| {
        let value = rest[at..].iter().take_while(|byte| !between(byte));
        value.take(8).count() == 8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles_and_can_be_called_for() {
        for (number, rule) in RULES.iter().enumerate() {
            let compiled = Compiled::get(number);
            assert!(compiled.is_some(), "{} does not compile", rule.id);
            assert!(!rule.needs.is_empty(), "{} has no word", rule.id);
            assert!(!rule.name.is_empty(), "{} has no name", rule.id);
            assert_eq!(
                rule.allowed.len(),
                compiled.map_or(0, |c| c.allowed.len()),
                "{}",
                rule.id
            );
        }
        assert!(RULES.len() > 80, "the crate's rules and the own ones");
        assert!(RULES.windows(2).all(|two| two[0].id < two[1].id));
    }

    #[test]
    fn words_are_found_wherever_they_stand() {
        for word in WORDS.iter().filter(|word| word.text.len() > 1) {
            for text in [
                format!("a {}", word.text),
                word.text.to_owned(),
                format!("a {} b", word.text),
            ] {
                let text = text.replace('=', "=abcdefgh");
                let found = words_in(text.as_bytes());
                assert!(found.is_some_and(|f| f[word.number]), "{text}");
            }
        }
        let prose = b"the password is reset by a token: see there; the API key is in src/key_1.rs";
        let called: Vec<&str> = called_for(prose).map(|(_, rule)| rule.id).collect();
        assert!(called.is_empty(), "{called:?}");
        assert!(words_in(b"").is_none());
        assert!(words_in(b"a").is_none());
        assert!(words_in("übrig geblieben".as_bytes()).is_none());
    }
}
