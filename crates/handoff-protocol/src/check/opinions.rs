//! Checks opinions for facts and values that leave a decision ambiguous.

use std::collections::BTreeSet;

use handoff_base::finding::FindingCode as Code;
use handoff_base::pointer::escaped_part;

use super::checker::Checker;
use crate::definition::Opinions;

impl Checker<'_> {
    pub(super) fn opinions(&mut self) {
        let mut covered = BTreeSet::new();
        for rules in &self.definition.facts.opinions {
            let at = format!("/facts/{}/opinions", escaped_part(&rules.fact));
            if rules.title.trim().is_empty() || rules.title.contains(char::is_control) {
                let text = "a title is one line";
                self.fault(Code::ProtocolFact, format!("{at}/title"), text);
            }
            let own = [&rules.by, &rules.fact].into_iter();
            for name in own.chain(&rules.commit).chain(&rules.with) {
                let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
                if name.is_empty() || !name.bytes().all(is_name) {
                    let text = format!("`{}` is not a valid fact name", name.escape_debug());
                    self.fault(Code::ProtocolFact, at.clone(), text);
                } else if !covered.insert(name) {
                    let text = format!("fact `{name}` is covered twice");
                    self.fault(Code::ProtocolDuplicate, at.clone(), text);
                }
            }
            self.opinion_values(&at, rules);
        }
    }

    /// Reports values that are in two of the lists.
    fn opinion_values(&mut self, at: &str, rules: &Opinions) {
        let mut known = BTreeSet::new();
        for value in rules
            .asks
            .iter()
            .chain(&rules.agrees)
            .chain(&rules.withdraws)
        {
            if !known.insert(value) {
                let text = format!(
                    "`{}` is in two of `asks`, `agrees` and `withdraws`",
                    value.escape_debug()
                );
                self.fault(Code::ProtocolFact, at, text);
            }
        }
    }
}
