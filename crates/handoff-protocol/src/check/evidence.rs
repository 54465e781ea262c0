//! Checks for claims that can't be compared with anything, and path patterns that match nothing.

use handoff_base::finding::FindingCode as Code;

use super::checker::Checker;
use crate::path_pattern::PathPattern;

impl Checker<'_> {
    /// Checks the claims of the contract types and the paths of the agents.
    pub(super) fn evidence(&mut self) {
        let definition = self.definition;
        for (i, kind) in definition.contracts.iter().enumerate() {
            let claims = kind.claims.as_ref();
            let tests = claims.and_then(|claims| claims.tests.as_ref());
            if tests.is_some_and(|tests| tests.given().next().is_none()) {
                let text = "nothing says where the tests' counts are";
                self.fault(
                    Code::ProtocolClaims,
                    format!("/contracts/{i}/claims/tests"),
                    text,
                );
            }
            let merge = claims.and_then(|claims| claims.merge.as_ref());
            if merge.is_some_and(|m| m.strategy.is_none() && !m.strategies.is_empty()) {
                let text = "words stand for strategies, and nothing says where the word is";
                let at = format!("/contracts/{i}/claims/merge/strategies");
                self.fault(Code::ProtocolClaims, at, text);
            }
            if let Some(artifacts) = &kind.artifacts
                && artifacts.kind.is_none()
                && !artifacts.files.is_empty()
            {
                let text = "some kinds are files, and nothing says where the kind is";
                let at = format!("/contracts/{i}/artifacts/files");
                self.fault(Code::ProtocolClaims, at, text);
            }
        }
        for (i, agent) in definition.agents.iter().enumerate() {
            let at = format!("/agents/{i}/paths");
            self.each(&at, &agent.paths, Code::ProtocolPaths, |text| {
                let error = PathPattern::new(text).err()?;
                Some(format!("`{text}` is not a path pattern: {error}"))
            });
        }
    }
}
