//! A key, its owner, and when it may sign.

use handoff_base::Moment;
use ssh_key::HashAlg;
use ssh_key::public::KeyData;

/// The key type of OpenPGP keys in a line.
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
    /// The fingerprint, in the form that its owner's tools print.
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Ssh(key) => key.fingerprint(HashAlg::Sha256).to_string(),
            Self::OpenPgp(fingerprint) => fingerprint.clone(),
        }
    }

    /// The key type, as written in its line.
    pub fn kind(&self) -> String {
        match self {
            Self::Ssh(key) => key.algorithm().as_str().to_owned(),
            Self::OpenPgp(_) => OPENPGP.to_owned(),
        }
    }
}

/// A line with a key and its owner.
#[derive(Clone, Debug)]
pub struct Signer {
    /// The names of its owners: patterns, as written in the line.
    pub principals: String,
    /// The key.
    pub key: SigningKey,
    /// The first moment at which it may sign.
    pub valid_after: Option<Moment>,
    /// The last moment at which it may sign.
    pub valid_before: Option<Moment>,
    pub(super) line: u32,
}

impl Signer {
    /// Whether this is a key of the agent.
    pub fn is_agents(&self, agent: &str) -> bool {
        let address = format!("{agent}{AGENTS}");
        self.covers(&[agent, &address], |_| true)
    }

    /// Whether this is a key of the person with that address. Signers choose their address, so only
    /// patterns that are addresses count: otherwise one could choose an agent's name.
    pub fn is_persons(&self, email: &str) -> bool {
        is_persons(email) && self.covers(&[email], is_persons)
    }

    /// The names in it that belong to none of these agents and are no person's address, with its line.
    pub fn unknown(&self, agents: &[&str]) -> impl Iterator<Item = (u32, &str)> {
        let is_known = |name: &str| {
            let of =
                |agent: &&str| matches(name, agent) || matches(name, &format!("{agent}{AGENTS}"));
            name.starts_with('!') || is_persons(name) || agents.iter().any(of)
        };
        let names = self.principals.split(',');
        names
            .filter(move |name| !is_known(name))
            .map(|name| (self.line, name))
    }

    /// Whether this is a key of any person.
    pub fn is_of_a_person(&self) -> bool {
        self.principals.split(',').any(is_persons)
    }

    /// Whether a pattern that `counts` accepts matches one of these names, and no negated one does.
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

    /// Whether the key may sign at that time.
    pub fn is_valid(&self, at: Moment) -> bool {
        self.valid_after.is_none_or(|from| at >= from)
            && self.valid_before.is_none_or(|until| at <= until)
    }

    /// The number of its line.
    pub fn line(&self) -> u32 {
        self.line
    }
}

/// The domain of agents' addresses.
pub(super) const AGENTS: &str = "@handoff.invalid";

/// Whether a text is a person's address, or a pattern for one.
fn is_persons(text: &str) -> bool {
    text.contains('@') && !text.starts_with('!') && !text.to_ascii_lowercase().ends_with(AGENTS)
}

/// Whether a name matches a pattern with `*` and `?`.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // `star`: the position of the last star, and where the part of the name that it covers ends.
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
