//! Findings: faults as data, each with a stable code, a place and a fix.

use handoff_macros::skip_serializing_none;
use schemars::JsonSchema;
use serde::Serialize;

pub use crate::codes::FindingCode;
use crate::text::closest;

/// The number of known names that are compared with an unknown one, and that are listed.
const MOST_NAMES: usize = 2000;
const FEW_NAMES: usize = 8;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
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
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Its stable, dotted, lower-case code: [codes](codes.md).
    pub code: FindingCode,
    /// `error` refuses; `warning` and `note` do not.
    pub severity: Severity,
    /// A path in XML, a JSON Pointer or a file of the ledger; may be empty.
    pub path: String,
    /// Line in the contract, from 1.
    pub line: Option<u32>,
    /// Column in characters, from 1.
    pub column: Option<u32>,
    /// The ledger commit in which it was found.
    pub commit: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub fix: Option<String>,
    /// The file, as given, in findings of `check`.
    pub file: Option<String>,
}

impl Finding {
    /// Makes a warning without a position in the source.
    pub fn warning(code: FindingCode, path: impl Into<String>, message: impl Into<String>) -> Self {
        let severity = Severity::Warning;
        Self {
            severity,
            ..Self::error(code, path, message)
        }
    }

    /// Makes an error without a position in the source.
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
            file: None,
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

    /// Adds what to write in place of an unknown name: the closest known one, else all of a few.
    #[must_use]
    pub fn meant<'n>(self, name: &str, known: impl IntoIterator<Item = &'n str>) -> Self {
        let known: Vec<&str> = known.into_iter().take(MOST_NAMES).collect();
        match closest(name, known.iter().copied()) {
            Some(known) => self.fix(format!("did you mean `{known}`?")),
            None => match &known[..] {
                [known] => self.fix(format!("use `{known}`")),
                [_, .., _] if known.len() <= FEW_NAMES => {
                    self.fix(format!("use one of `{}`", known.join("`, `")))
                }
                _ => self.fix("define it, or correct the name"),
            },
        }
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
