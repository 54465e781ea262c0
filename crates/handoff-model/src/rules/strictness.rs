//! Compares the strictness of two protocols, as far as that is possible.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode};
use handoff_protocol::{Check, Claims, ConsistencyRule, Definition, Policy, Protocol, SIGNERS};

/// A protocol, and whether it requires signatures.
#[derive(Clone, Copy)]
pub struct Strictness<'a> {
    /// The protocol.
    pub protocol: &'a Protocol,
    /// Whether it lists keys.
    pub is_signed: bool,
}

/// Something that a protocol checks less strictly than another one.
pub struct Weakness {
    /// Its name: `signers`, `secrets`, or the key of a setting such as `evidence.coverage`.
    pub key: String,
    /// The finding with its place and the other protocol's behaviour.
    pub finding: Finding,
}

impl Weakness {
    /// A weakness of a new version compared with the one in force.
    pub fn of_version((key, at): (String, String)) -> Self {
        let mut text = format!("`{key}` may let pass what the version in force refuses");
        text.extend(why_weaker(&key).map(|why| format!(": {why}")));
        let finding = Finding::error(FindingCode::ProtocolWeaker, at, text);
        Self { key, finding }
    }
}

/// Why a key is weaker, if it does not say so itself.
pub fn why_weaker(key: &str) -> Option<&'static str> {
    let why = "a merge waits for other requirements than before; without one, for the issue's end";
    (key == "merge").then_some(why)
}

/// What a protocol checks less strictly than another one, in a ledger with this evidence policy.
pub fn weaker(one: Strictness<'_>, than: Strictness<'_>, ledger: Policy) -> Vec<Weakness> {
    let mut comparison = Comparison {
        other: than.protocol.name(),
        found: Vec::new(),
    };
    if than.is_signed && !one.is_signed {
        let text = "the protocol lists no keys, so that nothing has to be signed";
        comparison.add("signers".to_owned(), SIGNERS.to_owned(), text);
    }
    comparison.evidence(one.protocol, than.protocol, ledger);
    let (own, other) = (one.protocol.definition(), than.protocol.definition());
    comparison.claims(own, other);
    comparison.consistency(own, other);
    comparison.secrets(own, other);
    comparison.found
}

struct Comparison<'a> {
    other: &'a str,
    found: Vec<Weakness>,
}

impl Comparison<'_> {
    fn add(&mut self, key: String, at: String, text: impl Into<String>) {
        let text = format!("{}: {} is stricter", text.into(), self.other);
        let finding = Finding::error(FindingCode::ProtocolWeaker, at, text);
        self.found.push(Weakness { key, finding });
    }

    fn evidence(&mut self, own: &Protocol, other: &Protocol, ledger: Policy) {
        for check in Check::ALL {
            let (is, asked) = (own.policy(check, ledger), other.policy(check, ledger));
            if rank(is) < rank(asked) {
                let (name, is, asked) = (check.as_str(), is.as_str(), asked.as_str());
                let text = format!("the check `{name}` is {is}, not {asked}");
                let at = format!("/evidence/checks/{name}");
                self.add(format!("evidence.{name}"), at, text);
            }
        }
    }

    /// Compares the claims of contract types that both have. Claims that are not declared are not
    /// checked.
    fn claims(&mut self, own: &Definition, other: &Definition) {
        for (i, kind) in own.contracts.iter().enumerate() {
            let Some(there) = other.contracts.iter().find(|c| c.name == kind.name) else {
                continue;
            };
            let given = |claims: &Option<Claims>| -> BTreeSet<String> {
                let given = claims.as_ref().map_or_else(Vec::new, Claims::places);
                let names = given.iter().filter_map(|place| place.at.split('/').next());
                names.map(str::to_owned).collect()
            };
            for claim in given(&there.claims).difference(&given(&kind.claims)) {
                let name = &kind.name;
                let text =
                    format!("the contract type {name} does not say where `{claim}` is stated");
                let key = format!("claims.{name}.{claim}");
                self.add(key, format!("/contracts/{i}/claims"), text);
            }
        }
    }

    /// Compares the rules for contract types that both have.
    fn consistency(&mut self, own: &Definition, other: &Definition) {
        let has = |name: &str| own.contracts.iter().any(|c| c.name == name);
        let applies = |rule: &ConsistencyRule| match &rule.of[..] {
            [] => other.contracts.iter().any(|c| has(&c.name)),
            of => of.iter().any(|name| has(name)),
        };
        for rule in other.consistency.iter().filter(|rule| applies(rule)) {
            let name = &rule.name;
            let mut rules = own.consistency.iter().enumerate();
            let here = rules.find(|(_, here)| here.name == *name);
            let is = here.map_or(Policy::Off, |(_, here)| here.policy);
            if rank(is) < rank(rule.policy) {
                let (is, asked) = (is.as_str(), rule.policy.as_str());
                let at = match here {
                    Some((i, _)) => format!("/consistency/{i}/policy"),
                    None => "/consistency".to_owned(),
                };
                let text = format!("the rule `{name}` is {is}, not {asked}");
                self.add(format!("consistency.{name}"), at, text);
            }
        }
    }

    fn secrets(&mut self, own: &Definition, other: &Definition) {
        let allowed = |of: &Definition| of.secrets.clone().map_or_else(Vec::new, |s| s.allow);
        let there = allowed(other);
        for (i, allowed) in allowed(own).iter().enumerate() {
            let covers = there.iter().any(|other| {
                other.rule == allowed.rule && (other.at.is_none() || other.at == allowed.at)
            });
            if !covers {
                let text = format!(
                    "what looks like a secret of the rule `{}` is allowed",
                    allowed.rule
                );
                self.add("secrets".to_owned(), format!("/secrets/allow/{i}"), text);
            }
        }
    }
}

/// A policy's strictness.
fn rank(policy: Policy) -> u8 {
    match policy {
        Policy::Off => 0,
        Policy::Warn => 1,
        Policy::Enforce => 2,
    }
}
