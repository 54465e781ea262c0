//! Lists of keys that may sign.

use handoff::base::Moment;
use handoff::protocol::{Signer, Signers};

use super::{Target, corpus};

const WORDS: &[&str] = &[
    "namespaces=\"git\"",
    "namespaces=\"file\"",
    "valid-after=\"20260101Z\"",
    "valid-before=\"99991231235959Z\"",
    "valid-before=\"20260229Z\"",
    "valid-after=\"20261231235960Z\"",
    "cert-authority",
    "openpgp",
    "ssh-ed25519",
    "ssh-dss",
    "sk-ssh-ed25519@openssh.com",
    "*",
    "!",
    "?",
    "*@*",
    ",",
    "\"",
    "\\\"",
    "#",
    "\t",
    "\n",
    "@handoff.invalid",
];

pub(super) fn target() -> Target {
    Target {
        samples: corpus("signers"),
        words: WORDS,
        check: Box::new(check),
    }
}

type Facts = (String, String, [bool; 7]);

fn facts(signer: &Signer) -> Facts {
    let at = |seconds: i64| signer.is_valid(Moment::from_timestamp_millis(seconds * 1000).unwrap());
    let is = [
        signer.is_agents("prep-agent"),
        signer.is_agents("a"),
        signer.is_persons("ada@example.com"),
        signer.is_persons("b@example.com"),
        signer.is_of_a_person(),
        at(0),
        at(4_000_000_000),
    ];
    let key = format!("{} {}", signer.key.kind(), signer.key.fingerprint());
    (signer.principals.clone(), key, is)
}

/// Each line means the same alone, and no line is both a key and a fault.
fn check(bytes: &[u8]) {
    let (signers, found) = Signers::parse(bytes);
    let lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    let mut numbers: Vec<u32> = signers.iter().map(Signer::line).collect();
    numbers.extend(found.iter().filter_map(|finding| finding.line));
    assert_eq!(numbers.len(), signers.iter().count() + found.len());
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(
        numbers
            .iter()
            .all(|line| (1..=lines.len()).contains(&(*line as usize)))
    );
    for signer in signers.iter() {
        let line = lines[signer.line() as usize - 1];
        let (alone, found) = Signers::parse(line);
        assert!(found.is_empty(), "{found:?}");
        let alone: Vec<Facts> = alone.iter().map(facts).collect();
        assert_eq!(alone, [facts(signer)]);
        // Nobody who is named by nobody else.
        assert!(!signer.is_persons("prep-agent") && !signer.is_persons("a@handoff.invalid"));
    }
}

#[test]
fn prove_signers() {
    super::prove("fuzz-signers", &target());
}
