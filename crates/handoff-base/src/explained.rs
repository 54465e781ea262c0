//! What a user is told of an error, which stands beside the error's type.

use std::error::Error;

use crate::codes::ErrorCode;
use crate::finding::Finding;
use crate::hint::Hint;

/// An error that can end a command.
pub trait Explained: Error {
    /// What is said of it besides its message.
    fn explanation(&self) -> Explanation;
}

/// What a user is told of an error besides its message.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What programs know it by. Its exit code goes with it.
    pub code: ErrorCode,
    /// What the message begins with, if it does not say itself what failed.
    pub problem: Option<&'static str>,
    /// The next safe thing to do.
    pub hint: Option<Hint>,
    /// Every fault, if there can be several.
    pub findings: Vec<Finding>,
}

impl ErrorCode {
    /// The explanation of an error with this code and this hint.
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
    /// Adds what the message begins with.
    #[must_use]
    pub fn because(self, problem: &'static str) -> Self {
        let problem = Some(problem);
        Self { problem, ..self }
    }

    /// Adds every fault.
    #[must_use]
    pub fn findings(self, findings: &[Finding]) -> Self {
        let findings = findings.to_vec();
        Self { findings, ..self }
    }
}

/// An error's message, followed by those of its causes.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text += &format!(": {source}");
        cause = source.source();
    }
    text
}
