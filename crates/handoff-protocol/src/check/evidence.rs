//! Checks for claims that can't be compared with anything, and path patterns that match nothing.

use handoff_base::finding::FindingCode;

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
                    FindingCode::ProtocolClaims,
                    format!("/contracts/{i}/claims/tests"),
                    text,
                );
            }
            let merge = claims.and_then(|claims| claims.merge.as_ref());
            if merge.is_some_and(|m| m.strategy.is_none() && !m.strategies.is_empty()) {
                let text = "words stand for strategies, and nothing says where the word is";
                let at = format!("/contracts/{i}/claims/merge/strategies");
                self.fault(FindingCode::ProtocolClaims, at, text);
            }
            if let Some(artifacts) = &kind.artifacts
                && artifacts.kind.is_none()
                && !artifacts.files.is_empty()
            {
                let text = "some kinds are files, and nothing says where the kind is";
                let at = format!("/contracts/{i}/artifacts/files");
                self.fault(FindingCode::ProtocolClaims, at, text);
            }
        }
        for (i, agent) in definition.agents.iter().enumerate() {
            for (j, text) in agent.paths.iter().enumerate() {
                if let Err(error) = PathPattern::new(text) {
                    let text = format!("`{text}` is no pattern of paths: {error}");
                    self.fault(
                        FindingCode::ProtocolPaths,
                        format!("/agents/{i}/paths/{j}"),
                        text,
                    );
                }
            }
        }
    }
}
