//! Checks consistency rules: their names, the types they apply to, and facts that nothing states.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode as Code};
use handoff_base::pointer::escaped_part;
use handoff_base::text::quoted;

use super::checker::Checker;
use crate::definition::FactRule;
use crate::term::{Known, Subject, Term};

/// The maximum length of a rule's name, in bytes.
const NAME: usize = 64;

impl<'d> Checker<'d> {
    pub(super) fn consistency(&mut self) {
        let definition = self.definition;
        let mut seen = BTreeSet::new();
        for (i, rule) in definition.consistency.iter().enumerate() {
            let at = format!("/consistency/{i}");
            let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            if rule.name.is_empty() || rule.name.len() > NAME || !rule.name.bytes().all(fits) {
                let text = format!(
                    "{} cannot be a rule's name: up to {NAME} lower-case letters, digits and `-`",
                    quoted(&rule.name)
                );
                self.fault(Code::ProtocolConsistency, format!("{at}/name"), text);
            } else if !seen.insert(&rule.name) {
                let text = format!("two rules are called `{}`", rule.name);
                let fault = Finding::error(Code::ProtocolConsistency, format!("{at}/name"), text);
                self.found.push(fault.fix("rename one"));
            }
            self.known_types(&format!("{at}/of"), &rule.of);
            self.pointers(&format!("{at}/when"), rule.when.keys());
            let terms = rule.compare.terms();
            let path = format!("{at}/compare/{}", rule.compare.as_str());
            let is_about = |term: &&Term| {
                matches!(
                    term.subject(),
                    Subject::Place(_) | Subject::Known(Known::Worker, _)
                )
            };
            if !terms.iter().any(is_about) {
                let text = "neither term is a place in the contract, or the worker that sends it";
                self.fault(Code::ProtocolConsistency, path.clone(), text);
            }
            for (j, term) in terms.iter().enumerate() {
                match term.subject() {
                    Subject::Fact(name, _) => {
                        let text = || format!("no fact is called {}", quoted(name));
                        let at = (Code::ProtocolConsistency, format!("{path}/{j}"));
                        self.known(at, name, self.stated(), text);
                    }
                    Subject::Known(Known::Workers, kinds) => {
                        for kind in kinds.split_whitespace() {
                            self.known_type(format!("{path}/{j}"), kind);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Checks that exclusive facts use the rule `last`.
    pub(super) fn exclusive(&mut self) {
        for (name, fact) in &self.definition.facts {
            if fact.exclusive && !matches!(fact.rule, FactRule::Last(_)) {
                let text = "only a fact that is read with `last` can be exclusive";
                let at = format!("/facts/{}/exclusive", escaped_part(name));
                self.fault(Code::ProtocolFact, at, text);
            }
        }
    }

    /// The facts that contracts or events state.
    pub(super) fn stated(&self) -> BTreeSet<&'d str> {
        let rules = self.definition.event_rules();
        let noted = rules.iter().flat_map(|rule| rule.facts.keys());
        let facts = self.definition.facts.keys();
        facts.chain(noted).map(String::as_str).collect()
    }
}
