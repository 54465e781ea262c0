//! Checks the names and values of traces: invalid ones, and reserved ones.

use handoff_base::finding::FindingCode;

use super::checker::Checker;

/// Prefixes of names that have the same meaning for every protocol's handoffs.
const RESERVED: [&str; 4] = ["git_handoff.", "gen_ai.", "error.", "service."];

impl Checker<'_> {
    pub(super) fn traces(&mut self) {
        let definition = self.definition;
        let Some(traces) = &definition.traces else {
            return;
        };
        for (at, pointer) in traces.pointers() {
            self.pointer(at, pointer);
        }
        for name in traces.attributes.keys() {
            self.trace_name("/traces/attributes".to_owned(), name);
        }
        for (i, event) in traces.events.iter().enumerate() {
            let at = format!("/traces/events/{i}");
            self.trace_name(format!("{at}/name"), &event.name);
            for name in event.attributes.keys() {
                self.trace_name(format!("{at}/attributes"), name);
            }
            if event.contracts.is_empty() {
                let text = "no contract is such an event";
                self.fault(FindingCode::ProtocolTrace, format!("{at}/contracts"), text);
            }
            for (j, kind) in event.contracts.iter().enumerate() {
                self.known_type(format!("{at}/contracts/{j}"), kind);
            }
        }
    }

    fn trace_name(&mut self, at: String, name: &str) {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        let first = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !first || name.len() > 128 || !name.bytes().all(fits) {
            let text = format!(
                "`{}` is no name: up to 128 letters, digits, `.`, `_` and `-`, a letter first",
                name.escape_debug()
            );
            self.fault(FindingCode::ProtocolTrace, at, text);
        } else if RESERVED.iter().any(|start| name.starts_with(start)) {
            let text = format!("`{name}` is a name that every protocol's traces have");
            self.fault(FindingCode::ProtocolTrace, at, text);
        }
    }
}
