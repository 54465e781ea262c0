//! Detects secrets in data that is about to be stored; reports them by place and rule, never by
//! value.
//!
//! A text is screened as it is and, if it parses as a contract, also by its values, because escapes
//! could hide a secret in the raw text. A value is screened together with its key, often the only
//! sign of a password. [`Secret`] exposes its rule and place, but not its text.

mod rules;
#[cfg(test)]
mod table_generator;
mod value;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::str::FromStr;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::text::{counted_as, marked, word};
use memchr::memmem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::input::Input;
use super::text;
use super::value::each_text;
pub use rules::is_rule;
use rules::{Hit, Rule, hits};

/// The maximum number of secrets that are listed, and that are compared pairwise.
const MOST: usize = 100;

/// Permission to store a match of a rule: `RULE`, or `RULE@PLACE` for one place only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// The rule's id.
    pub rule: String,
    /// The place as a finding names it: a path, `LINE:COLUMN` or `PATH:LINE:COLUMN`; every place if
    /// not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{}@{place}", self.rule),
            None => f.write_str(&self.rule),
        }
    }
}

/// A rule that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no rule {shown} for secrets{}", close.map(|rule| format!("; did you mean {rule}?")).unwrap_or_default())]
pub struct UnknownRule {
    /// The name, safe to show.
    pub shown: String,
    /// The rule that was probably meant.
    pub close: Option<&'static str>,
}

impl FromStr for Allowance {
    type Err = UnknownRule;

    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        let (rule, place) = match text.split_once('@') {
            Some((rule, place)) => (rule, Some(place.to_owned())),
            None => (text, None),
        };
        if is_rule(rule) {
            let rule = rule.to_owned();
            return Ok(Self { rule, place });
        }
        Err(UnknownRule {
            shown: format!("`{}`", text::short(rule)),
            close: text::closest(rule, rules::ids()),
        })
    }
}

/// A secret: its public rule and place, and its text, which only [`Secrets::mask`] uses.
#[derive(Clone)]
pub struct Secret {
    rule: &'static Rule,
    path: String,
    position: Option<(u32, u32)>,
    value: Vec<u8>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({}@{})", self.rule.id, self.place())
    }
}

impl Secret {
    /// Its place in an allowance: its path or, without one, its line and column.
    pub fn place(&self) -> String {
        match (self.position, self.path.is_empty()) {
            (Some((line, column)), true) => format!("{line}:{column}"),
            _ => self.path.clone(),
        }
    }

    /// The allowance for this place alone.
    pub fn allowance(&self) -> Allowance {
        Allowance {
            rule: self.rule.id.to_owned(),
            place: Some(self.place()),
        }
    }

    /// Whether an allowance covers it.
    pub fn is_allowed_by(&self, allowance: &Allowance) -> bool {
        let named = |place: &String| {
            let (line, column) = self.position.unwrap_or_default();
            *place == self.place()
                || *place == format!("{line}:{column}")
                || *place == format!("{}:{line}:{column}", self.path)
        };
        allowance.rule == self.rule.id && allowance.place.as_ref().is_none_or(named)
    }

    /// The finding for it.
    pub fn finding(&self) -> Finding {
        let Rule { id, name, .. } = self.rule;
        let text = format!("this looks like a secret: {name} (rule {id})");
        let mut finding = Finding::error(FindingCode::SecretFound, self.path.clone(), text);
        if let Some((line, column)) = self.position {
            finding = finding.at(line, column);
        }
        finding.fix(format!(
            "take it out, and replace it where it is in use; as {} it can be allowed, if it is none",
            word(&self.allowance().to_string())
        ))
    }
}

/// Every secret found.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<Secret>);

impl Secrets {
    /// Finds the secrets in a contract, or in a document that may be one, with their places.
    pub fn in_input(input: &Input<'_>) -> Self {
        let mut found = Self::default();
        let raw = found_in(input.bytes());
        if let Ok(source) = input.source() {
            let mut offsets = Vec::new();
            source.each_text(&mut |path, key, value, offset| {
                found.under(path, key, value);
                offsets.resize(found.0.len(), offset);
            });
            // Finding a value's place parses the document again, so it is done only for few
            // secrets.
            if found.0.len() + raw.len() <= MOST {
                for (secret, offset) in found.0.iter_mut().zip(offsets) {
                    secret.position = source.position(&secret.path, offset);
                }
            }
        }
        found.raw("", input.bytes(), raw);
        found.hide_paths()
    }

    /// Finds the secrets in a file of any kind; its name is screened too, and is the path in
    /// findings.
    pub fn in_file(name: &str, bytes: &[u8]) -> Self {
        let mut found = Self::default();
        found.raw(name, bytes, found_in(bytes));
        found.under(name, "", name);
        found.hide_paths()
    }

    /// Finds the secrets in a value; paths are JSON Pointers.
    pub fn in_value(value: &Value) -> Self {
        let mut found = Self::default();
        each_text(value, &mut String::new(), "", &mut |path, key, value| {
            found.under(path, key, value);
        });
        found.hide_paths()
    }

    /// Masks secrets in the paths, since a key may be a secret.
    fn hide_paths(mut self) -> Self {
        if self.0.is_empty() {
            return self;
        }
        let mask = Mask::of(&self);
        for secret in &mut self.0 {
            mask.apply(&mut secret.path);
        }
        self
    }

    /// Screens a value together with its key. Only the end of the key: many values may have the
    /// same long one.
    fn under(&mut self, path: &str, key: &str, value: &str) {
        const KEY: usize = 200;
        let start = (0..key.len()).find(|&at| key.len() - at <= KEY && key.is_char_boundary(at));
        let key = &key[start.unwrap_or(0)..];
        for hit in found_in(format!("{key}=\"{value}\"").as_bytes()) {
            let mut path = path.to_owned();
            text::bound(&mut path);
            self.0.push(Secret {
                rule: hit.rule,
                path,
                position: None,
                value: hit.value,
            });
        }
    }

    /// Adds the matches in raw bytes. If a secret was already found as a value, it only gets a more
    /// exact position.
    fn raw(&mut self, path: &str, bytes: &[u8], hits: Vec<Found>) {
        // Pairwise comparison is quadratic; among many secrets, only equal texts are recognized as
        // the same.
        let is_few = self.0.len() + hits.len() <= MOST;
        let mut known: Vec<bool> = vec![false; self.0.len()];
        let mut same_text: HashMap<Vec<u8>, VecDeque<usize>> = HashMap::new();
        for (at, secret) in self.0.iter().enumerate().filter(|_| !is_few) {
            let at_text = same_text.entry(secret.value.clone()).or_default();
            at_text.push_back(at);
        }
        let mut walk = Walk::new(bytes);
        for hit in hits {
            let position = walk.to(hit.start);
            let read = unescaped(&hit.value);
            let same = if is_few {
                self.0.iter().zip(&known).position(|(secret, known)| {
                    let alike = |value: &[u8]| {
                        contains(&secret.value, value) || contains(value, &secret.value)
                    };
                    !known && (alike(&hit.value) || read.as_deref().is_some_and(alike))
                })
            } else {
                let text = read.as_ref().unwrap_or(&hit.value);
                same_text.get_mut(text).and_then(VecDeque::pop_front)
            };
            match same {
                Some(at) => {
                    known[at] = true;
                    self.0[at].position = Some(position);
                }
                None => {
                    known.push(true);
                    self.0.push(Secret {
                        rule: hit.rule,
                        path: path.to_owned(),
                        position: Some(position),
                        value: hit.value,
                    });
                }
            }
        }
    }

    /// A finding for each of the first hundred, and one with the number of the rest.
    pub fn findings(&self) -> impl Iterator<Item = Finding> {
        let more = self.0.len().saturating_sub(MOST);
        let more = (more > 0).then(|| {
            let ending = [
                " looks like a secret and is not listed",
                "s look like secrets and are not listed",
            ];
            let text = counted_as(more, "more place", ending);
            let fix = "take out what is listed and check again, or allow a rule for all places";
            Finding::error(FindingCode::SecretFound, "", text).fix(fix)
        });
        self.0.iter().take(MOST).map(Secret::finding).chain(more)
    }

    /// Iterates over the secrets.
    pub fn iter(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter()
    }

    /// Keeps the secrets for which `keep` returns true.
    pub fn retain(&mut self, keep: impl FnMut(&Secret) -> bool) {
        self.0.retain(keep);
    }

    /// Adds other secrets.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Masks every part of a secret in findings.
    pub fn mask(&self, findings: &mut [Finding]) {
        if self.0.is_empty() {
            return;
        }
        let mask = Mask::of(self);
        for finding in findings
            .iter_mut()
            .filter(|f| f.code != FindingCode::SecretFound)
        {
            mask.apply(&mut finding.message);
            mask.apply(&mut finding.path);
            if let Some(fix) = &mut finding.fix {
                mask.apply(fix);
            }
        }
    }

    /// Masks every part of the text that also occurs in a secret.
    pub fn mask_text(&self, text: &mut String) {
        if !self.0.is_empty() {
            Mask::of(self).apply(text);
        }
    }
}

/// Every sequence of [`Mask::RUN`] bytes in a secret.
struct Mask(HashSet<[u8; Mask::RUN]>);

impl Mask {
    // Shorter sequences reveal nothing, and would match words in messages.
    const RUN: usize = 6;

    fn of(secrets: &Secrets) -> Self {
        let values = secrets.0.iter().map(|secret| &secret.value[..]);
        let runs = values.flat_map(|value| value.windows(Self::RUN));
        Self(runs.filter_map(|run| run.try_into().ok()).collect())
    }

    fn apply(&self, text: &mut String) {
        let bytes = text.as_bytes();
        let mut told = vec![false; bytes.len()];
        for (at, run) in bytes.windows(Self::RUN).enumerate() {
            if self.0.contains(run) {
                told[at..at + Self::RUN].fill(true);
            }
        }
        if !told.contains(&true) {
            return;
        }
        let mut masked = String::new();
        for (at, c) in text.char_indices() {
            if !told[at] {
                masked.push(c);
            } else if !masked.ends_with('…') {
                masked.push('…');
            }
        }
        *text = masked;
    }
}

/// A match of a rule in a text.
struct Found {
    rule: &'static Rule,
    /// Its start, in bytes.
    start: usize,
    value: Vec<u8>,
}

/// Every secret in a text: in the text as it is, and in the text without invisible characters,
/// which is how a summary or message will show it.
fn found_in(text: &[u8]) -> Vec<Found> {
    let found = |hit: Hit, text: &[u8], start: usize| Found {
        rule: hit.rule,
        start,
        value: text[hit.range].to_vec(),
    };
    let own = hits(text).into_iter();
    let mut all: Vec<Found> = own
        .map(|hit| {
            let start = hit.range.start;
            found(hit, text, start)
        })
        .collect();
    if let Some((joined, offsets)) = joined(text) {
        let known: HashSet<(usize, &str)> = all.iter().map(|f| (f.start, f.rule.id)).collect();
        let mut more = Vec::new();
        for hit in hits(&joined) {
            let start = offsets[hit.range.start];
            if !known.contains(&(start, hit.rule.id)) {
                more.push(found(hit, &joined, start));
            }
        }
        all.extend(more);
        all.sort_by_key(|found| found.start);
    }
    all
}

/// A text without its invisible characters, with the original offset of each byte; `None` if it has
/// none.
fn joined(text: &[u8]) -> Option<(Vec<u8>, Vec<usize>)> {
    let seen = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    if text.iter().all(seen) {
        return None;
    }
    let (mut joined, mut offsets) = (Vec::new(), Vec::new());
    let mut start = 0;
    for chunk in text.utf8_chunks() {
        for (at, c, hidden) in marked(chunk.valid()) {
            if !hidden || c.is_whitespace() {
                joined.extend_from_slice(&text[start + at..start + at + c.len_utf8()]);
                offsets.extend(start + at..start + at + c.len_utf8());
            }
        }
        start += chunk.valid().len();
        for &byte in chunk.invalid() {
            joined.push(byte);
            offsets.push(start);
            start += 1;
        }
    }
    (joined.len() < text.len()).then_some((joined, offsets))
}

/// Converts increasing offsets to lines and columns, in one pass.
struct Walk<'t> {
    bytes: &'t [u8],
    at: usize,
    line: u32,
    column: u32,
}

impl<'t> Walk<'t> {
    fn new(bytes: &'t [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            line: 1,
            column: 1,
        }
    }

    fn to(&mut self, offset: usize) -> (u32, u32) {
        for c in String::from_utf8_lossy(&self.bytes[self.at..offset]).chars() {
            match c {
                '\n' => (self.line, self.column) = (self.line.saturating_add(1), 1),
                '\u{feff}' => {}
                _ => self.column = self.column.saturating_add(1),
            }
        }
        self.at = offset;
        (self.line, self.column)
    }
}

/// The unescaped form of a part of JSON text.
fn unescaped(raw: &[u8]) -> Option<Vec<u8>> {
    let quoted = [b"\"", raw, b"\""].concat();
    let read: String = raw
        .contains(&b'\\')
        .then(|| serde_json::from_slice(&quoted).ok())??;
    Some(read.into_bytes())
}

/// Whether one text contains another.
fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && memmem::find(text, part).is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    // Split, so that no scanner reports it here.
    const TOKEN: &str = concat!("gh", "p_", "kX2pQv9LmT4zRb7WnY1cD5eF6gH8jK0aBcDe");

    fn rules(secrets: &Secrets) -> Vec<&str> {
        secrets.iter().map(|secret| secret.rule.id).collect()
    }

    /// A summary drops invisible characters, which joins the parts again.
    #[test]
    fn a_token_is_found_however_it_is_split() {
        let plain = rules(&Secrets::in_value(&TOKEN.into())).join(" ");
        assert!(!plain.is_empty());
        for hidden in [
            "\u{200b}",
            "\u{ad}",
            "\u{feff}",
            "\u{e0041}",
            "\u{3164}",
            "\u{202e}",
        ] {
            let split = format!("see {}{hidden}{}", &TOKEN[..9], &TOKEN[9..]);
            assert_eq!(
                rules(&Secrets::in_value(&split.clone().into())).join(" "),
                plain
            );
            assert_eq!(
                rules(&Secrets::in_file("a", split.as_bytes())).join(" "),
                plain
            );
            let json = serde_json::json!({ "summary": split }).to_string();
            let found = Secrets::in_input(&Input::read(json.as_bytes()));
            assert_eq!(rules(&found).join(" "), plain, "{json}");
        }
        let password = "pass\u{200b}word = \"corr3ct-horse-b4ttery\"";
        assert_eq!(Secrets::in_file("a", password.as_bytes()).0.len(), 1);
        let bytes = [
            b"\xff\xfe ",
            &TOKEN.as_bytes()[..9],
            "\u{200b}".as_bytes(),
            &TOKEN.as_bytes()[9..],
        ];
        let found = Secrets::in_file("a", &bytes.concat());
        assert_eq!(
            (rules(&found).join(" "), found.0[0].position),
            (plain, Some((1, 4)))
        );
    }

    /// A token is found even within other text; a word that only starts like a token is not.
    #[test]
    fn a_token_that_is_glued_to_other_text_is_found() {
        let key = concat!("AK", "IAQ7ZP3M2XKD9WLT5R");
        for token in [TOKEN, key] {
            for glued in [
                format!("x{token}"),
                format!("token_{token}"),
                format!("{token}_old"),
                format!("{token}zz"),
                format!("v1{token}_x"),
                format!("é{token}ü"),
            ] {
                assert_eq!(
                    rules(&Secrets::in_value(&glued.clone().into())).len(),
                    1,
                    "{glued}"
                );
                assert_eq!(
                    rules(&Secrets::in_file("a", glued.as_bytes())).len(),
                    1,
                    "{glued}"
                );
            }
        }
        let uri = concat!("DSN_postgres://app:", "k7Qv9LmT4z@db.internal/x");
        assert_eq!(rules(&Secrets::in_value(&uri.into())).len(), 1);
        for prose in [
            "task-admin-the-panel-for-reports-of-2026",
            "disk-proj-a-long-name-of-a-branch-without-any-secret",
            "cache-key-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        ] {
            assert!(Secrets::in_value(&prose.into()).is_empty(), "{prose}");
        }
    }

    #[test]
    fn the_name_of_a_file_is_screened() {
        let found = Secrets::in_file(&format!("logs/{TOKEN}.txt"), b"");
        assert_eq!(found.0.len(), 1);
        assert!(
            !found.0[0].place().contains(&TOKEN[4..]),
            "{:?}",
            found.0[0]
        );
    }

    #[test]
    fn many_are_found_and_the_first_hundred_are_listed() {
        let token = |n: usize| format!("{}{n:05}Qv9LmT4zRb7WnY1cD5eF6gH8jK0aBcD", &TOKEN[..4]);
        let lines: Vec<String> = (0..3000).map(token).collect();
        let file = Secrets::in_file("log", lines.join("\n").as_bytes());
        assert_eq!(file.0.len(), 3000);
        assert_eq!(file.0[2999].position, Some((3000, 1)));
        let findings: Vec<Finding> = file.findings().collect();
        assert_eq!(findings.len(), 101);
        assert!(
            findings[100].message.starts_with("2900 more places"),
            "{:?}",
            findings[100]
        );
        let json = serde_json::json!({ "requirements": lines }).to_string();
        let input = Secrets::in_input(&Input::read(json.as_bytes()));
        // Each is found as a value and located in the source.
        assert_eq!(input.0.len(), 3000);
        assert_eq!(input.0[2999].path, "/requirements/2999");
        assert!(input.iter().all(|secret| secret.position.is_some()));
        let rule = Allowance {
            rule: input.0[0].rule.id.to_owned(),
            place: None,
        };
        assert!(input.iter().all(|secret| secret.is_allowed_by(&rule)));
    }
}
