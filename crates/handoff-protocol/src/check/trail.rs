//! Checks what commit messages say: facts that nothing states, and names of counts.

use handoff_base::finding::FindingCode;
use handoff_base::pointer::escaped_part;

use super::checker::Checker;

impl Checker<'_> {
    pub(super) fn trail(&mut self) {
        let definition = self.definition;
        let Some(trail) = &definition.trail else {
            return;
        };
        for (at, pointer) in trail.pointers() {
            self.pointer(at, pointer);
        }
        for name in trail.findings.keys() {
            let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
            if name.is_empty() || name.len() > 32 || !name.bytes().all(fits) {
                let text = format!(
                    "`{}` cannot name a count: up to 32 lower-case letters, digits, `_` and `-`",
                    name.escape_debug()
                );
                let at = format!("/trail/findings/{}", escaped_part(name));
                self.fault(FindingCode::ProtocolTrail, at, text);
            }
        }
        if let Some(name) = trail.pull_request.as_ref().filter(|n| !self.states(n)) {
            let text = format!("no fact is called `{}`", name.escape_debug());
            self.fault(FindingCode::ProtocolTrail, "/trail/pull_request", text);
        }
    }
}
