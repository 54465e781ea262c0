//! Checks for requirements that can't be met or are undefined.

use handoff_base::finding::FindingCode as Code;
use handoff_base::ids::AgentName;

use super::checker::{Checker, placed};
use crate::definition::{COMPLETED, PERSON, Requirement};

impl Checker<'_> {
    pub(super) fn requirements(&mut self) {
        let definition = self.definition;
        for (name, requirement) in &definition.requirements {
            let at = format!("/requirements/{name}");
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                let text = "a requirement's name has letters, digits, `-` and `_`";
                self.fault(Code::ProtocolRequirement, &at, text);
            }
            if name == COMPLETED {
                let text = "every protocol has `completed`: the issue is completed";
                self.fault(Code::ProtocolRequirement, &at, text);
            }
            self.shown_or_approved(&at, requirement);
            self.known_status(placed(format!("{at}/status"), &requirement.status));
            // With `approved_by`, a type may be in both: sending it ends earlier approvals, and
            // approving it meets the requirement.
            let both = requirement
                .undone_by
                .iter()
                .filter(|_| requirement.approved_by.is_empty())
                .find(|t| requirement.shown_by.contains(t));
            if let Some(kind) = both {
                let text = format!("`{kind}` can't both show and undo it");
                self.fault(Code::ProtocolRequirement, format!("{at}/undone_by"), text);
            }
        }
    }

    /// Reports requirements that neither a contract nor an approval can meet.
    fn shown_or_approved(&mut self, at: &str, requirement: &Requirement) {
        let Requirement {
            shown_by,
            approved_by,
            status,
            ..
        } = requirement;
        let (place, text) = match (shown_by.is_empty(), approved_by.is_empty()) {
            (true, true) => ("shown_by", "neither a contract nor an approval can show it"),
            (_, false) if !status.is_empty() => ("status", "an approval has no status word"),
            _ => ("", ""),
        };
        if !text.is_empty() {
            self.fault(Code::ProtocolRequirement, format!("{at}/{place}"), text);
        }
        let definition = self.definition;
        let people: Vec<&str> = definition.people().map(AgentName::as_str).collect();
        for (at, name) in placed(format!("{at}/approved_by"), approved_by) {
            let code = Code::ProtocolRequirement;
            if name == PERSON && people.is_empty() {
                let text = "the protocol has no person: no agent is of kind `human`";
                self.fault(code, at, text);
                continue;
            }
            let known = people.iter().copied().chain([PERSON]);
            let text = || format!("`{name}` is not an agent of kind `human`");
            self.known((code, at), name, known, text);
        }
    }
}
