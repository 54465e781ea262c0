//! Checks for requirements that nothing can meet or that are not defined.

use handoff_base::finding::FindingCode;

use super::checker::Checker;
use crate::definition::COMPLETED;

impl Checker<'_> {
    pub(super) fn requirements(&mut self) {
        let definition = self.definition;
        for (name, requirement) in &definition.requirements {
            let at = format!("/requirements/{name}");
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                let text = "a requirement's name has letters, digits, `-` and `_`";
                self.fault(FindingCode::ProtocolRequirement, &at, text);
            }
            if name == COMPLETED {
                let text = "every protocol has `completed`: the issue is completed";
                self.fault(FindingCode::ProtocolRequirement, &at, text);
            }
            if requirement.shown_by.is_empty() {
                let text = "no contract can show it";
                self.fault(
                    FindingCode::ProtocolRequirement,
                    format!("{at}/shown_by"),
                    text,
                );
            }
            for (i, word) in requirement.status.iter().enumerate() {
                if !definition.status.contains_key(word) {
                    let text = format!("the protocol has no status word `{word}`");
                    self.fault(
                        FindingCode::ProtocolUnknownStatus,
                        format!("{at}/status/{i}"),
                        text,
                    );
                }
            }
            let both = requirement
                .undone_by
                .iter()
                .find(|t| requirement.shown_by.contains(t));
            if let Some(kind) = both {
                let text = format!("`{kind}` can't both show and undo it");
                self.fault(
                    FindingCode::ProtocolRequirement,
                    format!("{at}/undone_by"),
                    text,
                );
            }
        }
        for (i, name) in definition.merge.iter().enumerate() {
            if name != COMPLETED && !definition.requirements.contains_key(name) {
                let text = format!("there is no requirement `{name}`");
                self.fault(
                    FindingCode::ProtocolRequirement,
                    format!("/merge/{i}"),
                    text,
                );
            }
        }
    }
}
