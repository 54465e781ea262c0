//! The commit message of a step: subject, summary, trailers.
//!
//! `git interpret-trailers --parse` reads the trailers back. Text from a contract stays on one line
//! in its own paragraph, so that it cannot add a trailer, end the message early or move a
//! terminal's cursor.

use handoff_base::ids::{HandoffId, IssueKey};
use handoff_base::text::summary_line;
use handoff_protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::record::Record;

/// A change of one handoff's state, as trailers and receipts name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// The handoff.
    pub id: HandoffId,
    /// The state before; `None` for a new handoff.
    pub from: Option<State>,
    /// The state after.
    pub to: State,
}

impl std::fmt::Display for Change {
    /// Writes `123.3 in_progress..completed`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = self.from.map_or("none", State::as_str);
        write!(f, "{} {from}..{}", self.id, self.to)
    }
}

pub(crate) struct Message<'a> {
    pub(crate) subject: String,
    pub(crate) summary: &'a str,
    pub(crate) handoff: &'a HandoffId,
    pub(crate) issue: &'a IssueKey,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) transitions: Vec<String>,
    pub(crate) contract_type: &'a str,
    pub(crate) contract_sha256: &'a str,
    pub(crate) protocol: &'a str,
}

impl<'a> Message<'a> {
    /// The message of a step about a handoff.
    pub(crate) fn about(record: &'a Record, issue: &'a IssueKey, summary: &'a str) -> Self {
        Self {
            subject: format!(
                "{} {} → {}: {}",
                record.id, record.from, record.to, record.state
            ),
            summary,
            handoff: &record.id,
            issue,
            from: record.from.as_str(),
            to: record.to.as_str(),
            transitions: Vec::new(),
            contract_type: &record.contract_type,
            contract_sha256: &record.contract.sha256,
            protocol: record.protocol.as_str(),
        }
    }

    pub(crate) fn render(&self) -> String {
        let mut text = format!("{}\n\n", self.subject);
        let summary = summary_line(self.summary);
        if !summary.is_empty() {
            text += &format!("{summary}\n\n");
        }
        text += &format!("Handoff-Id: {}\n", self.handoff);
        text += &format!("Issue: {}\n", self.issue);
        text += &format!("From: {}\nTo: {}\n", self.from, self.to);
        for transition in &self.transitions {
            text += &format!("Transition: {transition}\n");
        }
        text += &format!("Contract-Type: {}\n", self.contract_type);
        text += &format!("Contract-Sha256: {}\n", self.contract_sha256);
        text += &format!("Protocol: {}\n", self.protocol);
        text
    }
}

/// The trailers of a message, in order: the lines of its last paragraph.
pub fn trailers(message: &str) -> Vec<(&str, &str)> {
    let last = message.trim_end().rsplit("\n\n").next().unwrap_or_default();
    last.lines()
        .filter_map(|line| line.split_once(": "))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::trailers;

    #[test]
    fn trailers_are_the_last_paragraph() {
        let message = "s\n\nIssue: 9\n\nIssue: 1\nTo: b\n";
        assert_eq!(trailers(message), [("Issue", "1"), ("To", "b")]);
    }
}
