//! Checks who is told of what needs somebody.

use std::collections::BTreeSet;

use handoff_base::finding::FindingCode;

use super::checker::Checker;
use crate::definition::PARTIES;

impl Checker<'_> {
    pub(super) fn attention(&mut self) {
        let mut seen = BTreeSet::new();
        for (place, need, told) in &self.definition.alerts.told {
            let at = format!("/alerts/{place}/tell");
            if !seen.insert(need) {
                let text = format!("who is told of `{}` is said twice", need.as_str());
                self.fault(FindingCode::ProtocolDuplicate, at.as_str(), text);
            }
            if told.is_empty() {
                let text = "somebody has to be told; leave it out for the usual ones";
                self.fault(FindingCode::ProtocolUnknownAgent, at.as_str(), text);
            }
            for (i, party) in told.iter().enumerate() {
                if !PARTIES.contains(&party.as_str()) && !self.agents.contains(party.as_str()) {
                    let text = format!(
                        "`{party}` is neither an agent nor one of {}",
                        PARTIES.join(", ")
                    );
                    self.fault(FindingCode::ProtocolUnknownAgent, format!("{at}/{i}"), text);
                }
            }
        }
    }
}
