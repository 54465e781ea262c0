//! Findings: faults as data, each with a stable code, a place and a fix.

use serde::Serialize;

pub use crate::finding_code::FindingCode;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; prevents nothing.
    Note,
    /// Suspicious; prevents nothing.
    Warning,
    /// The contract is refused, or the ledger is damaged.
    Error,
}

/// One fault found in a contract, a protocol or a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable code: `field.missing`, `xml.syntax`.
    pub code: FindingCode,
    /// How serious it is.
    pub severity: Severity,
    /// The place in the document or the ledger: a JSON Pointer, an element path, or a file path.
    pub path: String,
    /// Line in the source, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in the source in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The commit of the ledger's history with the fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What is wrong, in one sentence without a final period.
    pub message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    /// Makes an error without a place in the source.
    pub fn error(code: FindingCode, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            path: path.into(),
            line: None,
            column: None,
            commit: None,
            message: message.into(),
            fix: None,
        }
    }

    /// Adds a position in the source: line and column, both from 1.
    #[must_use]
    pub fn at(mut self, line: u32, column: u32) -> Self {
        self.line = Some(line);
        self.column = Some(column);
        self
    }

    /// Adds how to fix it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Adds the commit with the fault.
    #[must_use]
    pub fn in_commit(mut self, commit: impl ToString) -> Self {
        self.commit = Some(commit.to_string());
        self
    }

    /// Whether the finding is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
