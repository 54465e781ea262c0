//! The state that all checks of a definition share: the definition, its names, and the findings.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::is_pointer;

use crate::definition::Definition;

pub(super) struct Checker<'d> {
    pub(super) definition: &'d Definition,
    pub(super) agents: BTreeSet<&'d str>,
    types: BTreeSet<&'d str>,
    pub(super) found: Vec<Finding>,
}

impl<'d> Checker<'d> {
    pub(super) fn new(definition: &'d Definition) -> Self {
        Self {
            definition,
            agents: definition.agents.iter().map(|a| a.id.as_str()).collect(),
            types: definition.contracts.iter().map(|c| &*c.name).collect(),
            found: Vec::new(),
        }
    }

    pub(super) fn fault(
        &mut self,
        code: FindingCode,
        path: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.found.push(Finding::error(code, path, message));
    }

    pub(super) fn known_agent(&mut self, path: String, name: &str) {
        if !self.agents.contains(name) {
            let text = format!("no agent is called `{name}`");
            self.fault(FindingCode::ProtocolUnknownAgent, path, text);
        }
    }

    pub(super) fn known_type(&mut self, path: String, name: &str) {
        if !self.types.contains(name) {
            let text = format!("no contract type is called `{name}`");
            self.fault(FindingCode::ProtocolUnknownType, path, text);
        }
    }

    pub(super) fn pointer(&mut self, path: String, pointer: &str) {
        if !is_pointer(pointer) {
            let text = format!("`{pointer}` is not a JSON Pointer to a field, such as /from");
            self.fault(FindingCode::ProtocolPointer, path, text);
        }
    }
}
