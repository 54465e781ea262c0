//! Checks for findings that no contract can answer, and answers that can't be matched to questions.

use handoff_base::finding::FindingCode as Code;

use super::checker::{Checker, placed};
use crate::definition::{ContractType, FixFields, ReviewFields};

impl Checker<'_> {
    /// Checks the places where contracts raise, answer and settle findings, and where they answer
    /// questions.
    pub(super) fn findings_and_answers(&mut self) {
        let definition = self.definition;
        let any = |has: fn(&ContractType) -> bool| definition.contracts.iter().any(has);
        let (raised, fixed) = (any(|c| c.raises.is_some()), any(|c| c.fixes.is_some()));
        for (i, kind) in definition.contracts.iter().enumerate() {
            let at = |key: &str| format!("/contracts/{i}/{key}");
            let does = [
                ("raises", kind.raises.is_some()),
                ("fixes", kind.fixes.is_some()),
                ("settles", kind.settles),
            ];
            let does: Vec<&str> = does
                .iter()
                .filter(|(_, has)| *has)
                .map(|(k, _)| *k)
                .collect();
            if let [first, second, ..] = does[..] {
                let text = format!(
                    "a type has one of `raises`, `fixes` and `settles`, not also `{first}`"
                );
                self.fault(Code::ProtocolFindings, at(second), text);
            }
            for key in &does {
                let text = match *key {
                    _ if !kind.travels() => "an answer or a note has no part in findings",
                    "raises" if !fixed => "no type answers findings with `fixes`",
                    "fixes" | "settles" if !raised => "no type raises findings with `raises`",
                    _ => continue,
                };
                self.fault(Code::ProtocolFindings, at(key), text);
            }
            let names = |f: &FixFields| f.location.is_some() || f.finding.is_some();
            if kind.fixes.as_ref().is_some_and(|fixes| !names(fixes)) {
                let text = "nothing says which finding an entry answers: `location` or `finding`";
                self.fault(Code::ProtocolFindings, at("fixes"), text);
            }
            self.given(i, kind);
            let of_none =
                |reviews: &ReviewFields| reviews.commit.is_none() && reviews.fact.is_none();
            if kind.reviews.as_ref().is_some_and(of_none) {
                let text = "nothing says which commit it is: `commit` or `fact`";
                self.fault(Code::ProtocolFindings, at("reviews"), text);
            }
        }
    }

    fn given(&mut self, i: usize, kind: &ContractType) {
        let Some(given) = &kind.given else { return };
        let at = format!("/contracts/{i}/given");
        if given.key.is_some() != given.value.is_some() {
            let text = "an entry of a list has both a `key` and a `value`";
            self.fault(Code::ProtocolAnswer, &at, text);
        }
        self.known_status(placed(format!("{at}/complete"), &given.complete));
    }
}
