//! Checks who is notified of each need.

use std::collections::BTreeSet;

use handoff_base::finding::FindingCode as Code;

use super::checker::{Checker, placed};
use crate::definition::PARTIES;

impl Checker<'_> {
    pub(super) fn attention(&mut self) {
        let mut seen = BTreeSet::new();
        for (place, need, told) in &self.definition.alerts.told {
            let at = format!("/alerts/{place}/tell");
            if !seen.insert(need) {
                let text = format!("who is told of `{}` is said twice", need.as_str());
                self.fault(Code::ProtocolDuplicate, at.as_str(), text);
            }
            if told.is_empty() {
                let text = "somebody has to be told; leave it out for the usual ones";
                self.fault(Code::ProtocolUnknownAgent, at.as_str(), text);
            }
            for (at, party) in placed(at, told) {
                let known: Vec<&str> = self.agents.iter().copied().chain(PARTIES).collect();
                let parties = PARTIES.join(", ");
                let text = || format!("`{party}` is neither an agent nor one of {parties}");
                self.known((Code::ProtocolUnknownAgent, at), party, known, text);
            }
        }
    }
}
