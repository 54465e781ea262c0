//! The state that all checks of a definition share: the definition, its names, and the findings.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode as Code};
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
        code: Code,
        path: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.found.push(Finding::error(code, path, message));
    }

    /// Reports a name that is not among the known ones, with the one that is meant.
    pub(super) fn known<'n>(
        &mut self,
        (code, path): (Code, String),
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
        text: impl FnOnce() -> String,
    ) {
        let known: Vec<&str> = known.into_iter().collect();
        if !known.contains(&name) {
            let finding = Finding::error(code, path, text());
            self.found.push(finding.meant(name, known));
        }
    }

    pub(super) fn known_agent(&mut self, path: String, name: &str) {
        let text = || format!("no agent is called `{name}`");
        let agents = self.agents.clone();
        self.known((Code::ProtocolUnknownAgent, path), name, agents, text);
    }

    pub(super) fn known_type(&mut self, path: String, name: &str) {
        let text = || format!("no contract type is called `{name}`");
        let types = self.types.clone();
        self.known((Code::ProtocolUnknownType, path), name, types, text);
    }

    pub(super) fn pointer(&mut self, path: String, pointer: &str) {
        if !is_pointer(pointer) {
            let text = format!("`{pointer}` is not a JSON Pointer to a field, such as /from");
            self.fault(Code::ProtocolPointer, path, text);
        }
    }

    /// Reports every item of a list for which `fault` returns a text.
    pub(super) fn each<'l, T: 'l>(
        &mut self,
        at: &str,
        list: impl IntoIterator<Item = &'l T>,
        code: Code,
        mut fault: impl FnMut(&'l T) -> Option<String>,
    ) {
        for (i, item) in list.into_iter().enumerate() {
            if let Some(text) = fault(item) {
                self.fault(code, format!("{at}/{i}"), text);
            }
        }
    }

    pub(super) fn known_types(&mut self, at: &str, names: &[String]) {
        placed(at, names).for_each(|(at, name)| self.known_type(at, name));
    }

    pub(super) fn pointers<'p>(
        &mut self,
        at: &str,
        pointers: impl IntoIterator<Item = &'p String>,
    ) {
        let pointers = pointers.into_iter();
        pointers.for_each(|pointer| self.pointer(at.to_owned(), pointer));
    }

    /// Reports words that are not status words, each at its place.
    pub(super) fn known_status<'w>(
        &mut self,
        words: impl IntoIterator<Item = (String, &'w String)>,
    ) {
        for (at, word) in words {
            let status = self.definition.words.status.keys().map(String::as_str);
            let text = || format!("`{word}` is not a word in `words.status`");
            self.known((Code::ProtocolUnknownStatus, at), word, status, text);
        }
    }

    /// Reports a failure's code that the protocol does not list, if it lists any.
    pub(super) fn known_code(&mut self, at: String, code: &str) {
        let codes = &self.definition.words.errors;
        if !codes.is_empty() {
            let text = || format!("`{code}` is not a code in `words.errors`");
            let codes = codes.keys().map(String::as_str);
            self.known((Code::ProtocolErrorCode, at), code, codes, text);
        }
    }
}

/// Each item of a list with its place.
pub(super) fn placed<T>(at: impl Into<String>, list: &[T]) -> impl Iterator<Item = (String, &T)> {
    let at = at.into();
    let items = list.iter().enumerate();
    items.map(move |(i, item)| (format!("{at}/{i}"), item))
}
