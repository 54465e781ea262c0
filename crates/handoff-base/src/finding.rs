//! Findings: faults as data, each with a stable code, a place and a cure.

use std::borrow::Cow;

use serde::Serialize;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; refuses nothing.
    Note,
    /// Suspicious; refuses nothing.
    Warning,
    /// Refuses the contract, or says that the ledger is damaged.
    Error,
}

/// One fault found in a contract, a protocol or a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable, dotted, lower case: `field.missing`, `xml.syntax`.
    pub code: Cow<'static, str>,
    /// How much it weighs.
    pub severity: Severity,
    /// Where in the document or the ledger: a JSON Pointer, an element path, or a file path.
    pub path: String,
    /// Line in the source, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in the source in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The commit in the ledger's history that it was found in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What is wrong, in one sentence without a final period.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    /// Makes an error without a place in the source.
    pub fn error(
        code: impl Into<Cow<'static, str>>,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
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

    /// Adds what to do about it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Adds the commit it was found in.
    #[must_use]
    pub fn in_commit(mut self, commit: impl ToString) -> Self {
        self.commit = Some(commit.to_string());
        self
    }

    /// Says whether this finding refuses what it was found in.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
