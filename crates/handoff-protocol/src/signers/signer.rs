//! One key, whose it is, and when it may sign.

use chrono::{DateTime, Utc};
use ssh_key::HashAlg;
use ssh_key::public::KeyData;

/// What a line has for the kind of an OpenPGP key.
pub(super) const OPENPGP: &str = "openpgp";

/// A key that may sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SigningKey {
    /// An ssh key.
    Ssh(Box<KeyData>),
    /// An OpenPGP key, by its fingerprint in upper case.
    OpenPgp(String),
}

impl SigningKey {
    /// The name that its owner knows it by.
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Ssh(key) => key.fingerprint(HashAlg::Sha256).to_string(),
            Self::OpenPgp(fingerprint) => fingerprint.clone(),
        }
    }

    /// What kind of key it is, as its line says it.
    pub fn kind(&self) -> String {
        match self {
            Self::Ssh(key) => key.algorithm().as_str().to_owned(),
            Self::OpenPgp(_) => OPENPGP.to_owned(),
        }
    }
}

/// A line that names a key and whose it is.
#[derive(Clone, Debug)]
pub struct Signer {
    /// The names that it is the key of: patterns, as the line has them.
    pub principals: String,
    /// The key.
    pub key: SigningKey,
    /// The first moment at which it may sign.
    pub valid_after: Option<DateTime<Utc>>,
    /// The last moment at which it may sign.
    pub valid_before: Option<DateTime<Utc>>,
    pub(super) line: u32,
}

impl Signer {
    /// Says whether this is a key of that agent.
    pub fn is_agents(&self, agent: &str) -> bool {
        let address = format!("{agent}{AGENTS}");
        self.covers(&[agent, &address], |_| true)
    }

    /// Says whether this is a key of the person with that address. Whoever signs
    /// chooses the address, so that no name of an agent may pass for one: only
    /// patterns that are addresses count.
    pub fn is_persons(&self, email: &str) -> bool {
        is_persons(email) && self.covers(&[email], is_persons)
    }

    /// Says whether this is a key of any person.
    pub fn is_of_a_person(&self) -> bool {
        self.principals.split(',').any(is_persons)
    }

    /// Says whether patterns that count name somebody by any of these names, and
    /// none excludes them by one.
    fn covers(&self, names: &[&str], counts: impl Fn(&str) -> bool) -> bool {
        let fits = |pattern: &str| names.iter().any(|name| matches(pattern, name));
        let mut covered = false;
        for pattern in self.principals.split(',') {
            match pattern.strip_prefix('!') {
                Some(pattern) if fits(pattern) => return false,
                Some(_) => {}
                None => covered |= counts(pattern) && fits(pattern),
            }
        }
        covered
    }

    /// Says whether the key may sign at that time.
    pub fn is_valid(&self, at: DateTime<Utc>) -> bool {
        self.valid_after.is_none_or(|from| at >= from)
            && self.valid_before.is_none_or(|until| at <= until)
    }

    /// The number of its line.
    pub fn line(&self) -> u32 {
        self.line
    }
}

/// How the addresses of agents end.
const AGENTS: &str = "@handoff.invalid";

/// Says whether a text is a person's address, or a pattern for such.
fn is_persons(text: &str) -> bool {
    text.contains('@') && !text.starts_with('!') && !text.to_ascii_lowercase().ends_with(AGENTS)
}

/// Says whether a name fits a pattern with `*` and `?`.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Where the last star stands, and how much of the name it takes.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    (p, n) = (*at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}
