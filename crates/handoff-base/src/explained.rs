//! Errors with an explanation for users.

use std::error::Error;

use crate::codes::ErrorCode;
use crate::finding::Finding;
use crate::hint::Hint;

/// An error that can end a command.
pub trait Explained: Error {
    /// The explanation for users, besides the message.
    fn explanation(&self) -> Explanation;
}

/// What a user is told about an error besides its message.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The error's public code, which implies its exit code.
    pub code: ErrorCode,
    /// What failed, if the error's own message does not say it.
    pub problem: Option<&'static str>,
    /// The next safe thing to do.
    pub hint: Option<Hint>,
    /// Every fault, for errors with several.
    pub findings: Vec<Finding>,
}

impl ErrorCode {
    /// An explanation with this code and hint.
    pub fn hint(self, hint: impl Into<Hint>) -> Explanation {
        Explanation {
            hint: Some(hint.into()),
            ..self.into()
        }
    }
}

impl From<ErrorCode> for Explanation {
    fn from(code: ErrorCode) -> Self {
        Self {
            code,
            problem: None,
            hint: None,
            findings: Vec::new(),
        }
    }
}

impl Explanation {
    /// Sets what failed.
    #[must_use]
    pub fn because(self, problem: &'static str) -> Self {
        let problem = Some(problem);
        Self { problem, ..self }
    }

    /// Adds the faults.
    #[must_use]
    pub fn findings(self, findings: &[Finding]) -> Self {
        let findings = findings.to_vec();
        Self { findings, ..self }
    }
}

/// An error's message and those of its causes, in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text += &format!(": {source}");
        cause = source.source();
    }
    text
}
