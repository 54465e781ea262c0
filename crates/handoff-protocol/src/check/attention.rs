//! Checks who is notified of each need.

use std::collections::BTreeSet;

use handoff_base::finding::FindingCode as Code;

use super::checker::Checker;
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
            let agents = self.agents.clone();
            self.each(&at, told, Code::ProtocolUnknownAgent, |party| {
                let is_known = PARTIES.contains(&party.as_str()) || agents.contains(party.as_str());
                let parties = PARTIES.join(", ");
                (!is_known).then(|| format!("`{party}` is neither an agent nor one of {parties}"))
            });
        }
    }
}
