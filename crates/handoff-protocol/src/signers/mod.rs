//! The keys that may sign: a protocol's `allowed_signers`, in ssh's format with additional lines
//! for OpenPGP keys.

mod line;
mod signer;

use handoff_base::Moment;
use handoff_base::finding::Finding;
use line::Fault;

pub use signer::{Signer, SigningKey};

/// The verdict on a key.
#[derive(Clone, Copy, Debug)]
pub enum Verdict<'a> {
    /// It may sign.
    Allowed,
    /// It is not listed.
    Unknown,
    /// It is the key on this line, which belongs to somebody else.
    OtherAgent(&'a Signer),
    /// It is the key on this line, which is not valid at that time.
    NotValid(&'a Signer),
}

/// The keys that may sign, with their owners.
#[derive(Clone, Debug, Default)]
pub struct Signers {
    lines: Vec<Signer>,
}

impl Signers {
    /// Parses the file, and reports every fault in it.
    pub fn parse(bytes: &[u8]) -> (Self, Vec<Finding>) {
        let (mut signers, mut found) = (Self::default(), Vec::new());
        for (number, line) in (1..).zip(bytes.split(|&b| b == b'\n')) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let read = std::str::from_utf8(line)
                .map_err(|_| Fault::syntax("the line is not UTF-8"))
                .and_then(|line| Signer::parse(number, line));
            match read {
                Ok(signer) => signers.lines.extend(signer),
                Err(fault) => found.push(fault.finding(number)),
            }
        }
        (signers, found)
    }

    /// Whether the list is empty, so that nothing has to be signed.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The union of two lists.
    #[must_use]
    pub fn joined(mut self, other: &Self) -> Self {
        self.lines.extend(other.lines.iter().cloned());
        self
    }

    /// Every line, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Signer> {
        self.lines.iter()
    }

    /// The verdict on a key at a time, by the lines that `counts` accepts.
    pub fn verdict(
        &self,
        is: impl Fn(&SigningKey) -> bool,
        counts: impl Fn(&Signer) -> bool,
        at: Moment,
    ) -> Verdict<'_> {
        let mut verdict = Verdict::Unknown;
        for line in self.lines.iter().filter(|line| is(&line.key)) {
            if !counts(line) {
                if matches!(verdict, Verdict::Unknown) {
                    verdict = Verdict::OtherAgent(line);
                }
            } else if line.is_valid(at) {
                return Verdict::Allowed;
            } else {
                verdict = Verdict::NotValid(line);
            }
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use handoff_base::Moment;

    use super::signer::matches;
    use super::{Signers, SigningKey, Verdict};

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPo8Xv7Q5r0kqhTYkA7mBl3RSFhkzIpM5dEZ0n1bTqXm";
    const PRINT: &str = "0123456789ABCDEF0123456789ABCDEF01234567";

    fn faults(text: &str) -> Vec<String> {
        let (_, found) = Signers::parse(text.as_bytes());
        let shown = found.iter().map(|f| (f.line.unwrap_or(0), &f.code));
        shown.map(|(line, code)| format!("{line} {code}")).collect()
    }

    #[test]
    fn patterns_are_ssh_s() {
        for (pattern, name, fits) in [
            ("fixer", "fixer", true),
            ("fixer", "fixers", false),
            ("*", "", true),
            ("*-agent", "prep-agent", true),
            ("*-agent", "prep-agents", false),
            ("?rep", "prep", true),
            ("?rep", "rep", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
        let line = |names: &str| {
            let (signers, found) = Signers::parse(format!("{names} openpgp {PRINT}\n").as_bytes());
            assert!(found.is_empty(), "{found:?}");
            signers
        };
        assert!(line("a,b").lines[0].is_agents("b"));
        assert!(line("\"a,b\"").lines[0].is_agents("b"));
        assert!(!line("*,!b").lines[0].is_agents("b"));
        assert!(!line("!b,*").lines[0].is_agents("b"));
        assert!(
            !line("!b").lines[0].is_agents("a"),
            "what is not excluded is not named"
        );
    }

    #[test]
    fn no_agent_passes_for_a_person() {
        let (signers, _) = Signers::parse(format!("a,*-agent,*,a@handoff.invalid openpgp {PRINT}\n*@example.com,!b@example.com openpgp {PRINT}\n").as_bytes());
        let [agents, people] = &signers.lines[..] else {
            panic!("two lines");
        };
        for email in [
            "a",
            "a@evil-agent",
            "a@handoff.invalid",
            "a@Handoff.Invalid",
            "",
            "@",
        ] {
            assert!(
                !agents.is_persons(email) && !people.is_persons(email),
                "{email}"
            );
        }
        assert!(!agents.is_of_a_person() && people.is_of_a_person());
        assert!(people.is_persons("c@example.com"));
        assert!(!people.is_persons("b@example.com"));
        assert!(agents.is_agents("a") && agents.is_agents("prep-agent"));
        assert!(!people.is_agents("a"));
    }

    #[test]
    fn every_fault_names_its_line() {
        let text = format!(
            "# comment\n\n  a {KEY} me\na valid-after=\"20260101Z\",namespaces=\"file,git\" {KEY}\n\
             a\na openpgp 1234\na ssh-ed25519 AAAA\na cert-authority {KEY}\na namespaces=\"file\" {KEY}\n\
             a valid-after=\"20260101\" {KEY}\na valid-after=\"20261301Z\" {KEY}\na fancy {KEY}\n\
             a valid-after=\"20260201Z\",valid-before=\"20260101Z\" {KEY}\n,a {KEY}\n\
             a valid-after=\"20260101Z\",valid-after=\"20260102Z\" {KEY}\n\"a {KEY}\n\
             a valid-after=20260101Z {KEY}\na namespaces {KEY}\n"
        );
        let found = faults(&text);
        let expected = [
            "5 signers.syntax",
            "6 signers.key",
            "7 signers.key",
            "8 signers.authority",
            "9 signers.option",
            "10 signers.date",
            "11 signers.date",
            "12 signers.option",
            "13 signers.date",
            "14 signers.syntax",
            "15 signers.option",
            "16 signers.syntax",
            "17 signers.option",
            "18 signers.option",
        ];
        assert_eq!(found, expected);
        // Otherwise every agent's key could change the rules.
        for both in [
            "*@*",
            "a,*@*",
            "*@*.invalid",
            "robin@*",
            "*@Handoff.i*",
            "?@hand*",
        ] {
            assert_eq!(
                faults(&format!("{both} {KEY}\n")),
                ["1 signers.pattern"],
                "{both}"
            );
        }
        for one in [
            "*",
            "*@example.com",
            "*@handoff.invalid",
            "*@*.com",
            "*,!*@*",
        ] {
            assert_eq!(faults(&format!("{one} {KEY}\n")), [""; 0], "{one}");
        }
    }

    #[test]
    fn a_key_is_valid_from_the_first_to_the_last_moment() {
        let text = format!(
            "a valid-before=\"20260301Z\" openpgp {PRINT}\n\
             a valid-after=\"202604010000Z\" openpgp {PRINT}\nb openpgp {PRINT}\n"
        );
        let (signers, found) = Signers::parse(text.as_bytes());
        assert!(found.is_empty(), "{found:?}");
        let verdict = |name: &str, at: &str| {
            let at = at.parse().expect("a date");
            let is = |key: &SigningKey| key.fingerprint() == PRINT;
            match signers.verdict(is, |line| line.is_agents(name), at) {
                Verdict::Allowed => "allowed".to_owned(),
                Verdict::Unknown => "unknown".to_owned(),
                Verdict::OtherAgent(line) => format!("key of {}", line.principals),
                Verdict::NotValid(line) => format!("line {}", line.line()),
            }
        };
        assert_eq!(verdict("a", "2026-03-01T00:00:00Z"), "allowed");
        assert_eq!(verdict("a", "2026-03-01T00:00:01Z"), "line 2");
        assert_eq!(verdict("a", "2026-04-01T00:00:00Z"), "allowed");
        assert_eq!(verdict("b", "2026-03-15T00:00:00Z"), "allowed");
        assert_eq!(verdict("c", "2026-03-15T00:00:00Z"), "key of a");
        let at = Moment::default();
        assert!(matches!(
            signers.verdict(|_| false, |_| true, at),
            Verdict::Unknown
        ));
        assert!(matches!(
            signers.verdict(|_| true, |_| true, at),
            Verdict::Allowed
        ));
    }
}
