//! Finds secrets in what is about to be stored, and names them by place and rule without showing
//! them.
//!
//! A text is screened as it is and, if it can be parsed as a contract, by its values: escapes in
//! JSON or XML hide nothing. A value is screened together with its key, which often is the only
//! sign of a password. The secret itself is never shown: [`Secret`] only exposes its rule and its
//! place.

mod rules;
mod value;

use std::fmt;
use std::str::FromStr;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::text::word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::input::Input;
use super::text;
use super::value::each_text;
pub use rules::is_rule;
use rules::{Rule, hits};

/// Permission to store what a rule takes for a secret: `RULE`, or `RULE@PLACE` for one place only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// The rule's id.
    pub rule: String,
    /// The place as a finding names it: a path, `LINE:COLUMN`, or both as `PATH:LINE:COLUMN`; every
    /// place, if not given.
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
    /// The rule that was probably intended.
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

/// A secret: its rule and place, which are public, and its text, which only [`Secrets::mask`] uses.
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
    /// Its place as an allowance names it: its path, or its line and column if it has no path.
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

/// Every secret in what is about to be stored.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<Secret>);

impl Secrets {
    /// Finds the secrets in a contract, or in a document that may be one, with their places.
    pub fn in_input(input: &Input<'_>) -> Self {
        let mut found = Self::default();
        if let Ok(source) = input.source() {
            let mut offsets = Vec::new();
            source.each_text(&mut |path, key, value, offset| {
                found.under(path, key, value);
                offsets.resize(found.0.len(), offset);
            });
            for (secret, offset) in found.0.iter_mut().zip(offsets) {
                secret.position = source.position(&secret.path, offset);
            }
        }
        found.raw("", input.bytes());
        found.hide_paths()
    }

    /// Finds the secrets in a file of any kind; `name` is the path in findings.
    pub fn in_file(name: &str, bytes: &[u8]) -> Self {
        let mut found = Self::default();
        found.raw(name, bytes);
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

    /// Masks secrets in the paths, because a key may be one.
    fn hide_paths(mut self) -> Self {
        let mut paths: Vec<String> = self.0.iter().map(|secret| secret.path.clone()).collect();
        paths.iter_mut().for_each(|path| self.mask_text(path));
        for (secret, path) in self.0.iter_mut().zip(paths) {
            secret.path = path;
        }
        self
    }

    /// Screens a value together with its key.
    fn under(&mut self, path: &str, key: &str, value: &str) {
        let text = format!("{key}=\"{value}\"");
        for hit in hits(text.as_bytes()) {
            self.0.push(Secret {
                rule: hit.rule,
                path: path.to_owned(),
                position: None,
                value: text.as_bytes()[hit.range].to_vec(),
            });
        }
    }

    /// Screens raw bytes. A secret that was already found as a value only gets a better position.
    fn raw(&mut self, path: &str, bytes: &[u8]) {
        let mut known: Vec<bool> = vec![false; self.0.len()];
        for hit in hits(bytes) {
            let value = &bytes[hit.range.clone()];
            let read = unescaped(value);
            let position = match std::str::from_utf8(bytes) {
                Ok(text) => text::position(text, hit.range.start),
                Err(_) => {
                    let before = String::from_utf8_lossy(&bytes[..hit.range.start]);
                    text::position(&before, before.len())
                }
            };
            let same = self.0.iter().zip(&known).position(|(secret, known)| {
                let alike =
                    |value: &[u8]| contains(&secret.value, value) || contains(value, &secret.value);
                !known && (alike(value) || read.as_deref().is_some_and(alike))
            });
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
                        value: value.to_vec(),
                    });
                }
            }
        }
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

    /// Removes every part of a secret from findings.
    pub fn mask(&self, findings: &mut [Finding]) {
        if self.0.is_empty() {
            return;
        }
        for finding in findings
            .iter_mut()
            .filter(|f| f.code != FindingCode::SecretFound)
        {
            self.mask_text(&mut finding.message);
            self.mask_text(&mut finding.path);
            if let Some(fix) = &mut finding.fix {
                self.mask_text(fix);
            }
        }
    }

    /// Replaces every run of characters that is also in a secret with a mark.
    pub fn mask_text(&self, text: &mut String) {
        // Shorter runs reveal nothing, and words of messages would match them.
        const RUN: usize = 6;
        let bytes = text.as_bytes();
        let mut told = vec![false; bytes.len()];
        for (at, run) in bytes.windows(RUN).enumerate() {
            if self.0.iter().any(|secret| contains(&secret.value, run)) {
                told[at..at + RUN].fill(true);
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

/// A part of a JSON text, unescaped.
fn unescaped(raw: &[u8]) -> Option<Vec<u8>> {
    let quoted = [b"\"", raw, b"\""].concat();
    let read: String = raw
        .contains(&b'\\')
        .then(|| serde_json::from_slice(&quoted).ok())??;
    Some(read.into_bytes())
}

/// Whether one text contains another.
fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|here| here == part)
}
