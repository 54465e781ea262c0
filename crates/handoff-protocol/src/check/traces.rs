//! Checks the names and values of traces: invalid ones, and reserved ones.

use handoff_base::finding::FindingCode as Code;
use handoff_base::pointer::escaped_part;

use super::checker::Checker;
use crate::definition::Traces;

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
                let text = "no contract type becomes this event";
                self.fault(Code::ProtocolTrace, format!("{at}/contracts"), text);
            }
            self.known_types(&format!("{at}/contracts"), &event.contracts);
        }
        self.trailers(traces);
    }

    /// Checks the trailers of commit messages.
    fn trailers(&mut self, traces: &Traces) {
        for name in traces.findings.keys() {
            let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
            if name.is_empty() || name.len() > 32 || !name.bytes().all(fits) {
                let text = format!(
                    "`{}` cannot name a count: up to 32 lower-case letters, digits, `_` and `-`",
                    name.escape_debug()
                );
                let at = format!("/traces/findings/{}", escaped_part(name));
                self.fault(Code::ProtocolTrail, at, text);
            }
        }
        if let Some(name) = &traces.pull_request {
            let text = || format!("no fact is called `{}`", name.escape_debug());
            let at = (Code::ProtocolTrail, "/traces/pull_request".to_owned());
            self.known(at, name, self.stated(), text);
        }
    }

    fn trace_name(&mut self, at: String, name: &str) {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        let first = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !first || name.len() > 128 || !name.bytes().all(fits) {
            let text = format!(
                "`{}` is not a valid name: up to 128 letters, digits, `.`, `_` and `-`, a letter first",
                name.escape_debug()
            );
            self.fault(Code::ProtocolTrace, at, text);
        } else if RESERVED.iter().any(|start| name.starts_with(start)) {
            let text = format!("`{name}` is a name that every protocol's traces have");
            self.fault(Code::ProtocolTrace, at, text);
        }
    }
}
