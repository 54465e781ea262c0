//! What a failed command says: a [`Failure`] has an exit code, a stable code, a message and the
//! next safe thing to do.
//!
//! `library` makes one of every error of the libraries, `refusal` of what a protocol refuses, and
//! `codes` explains every code. No hint is written that is not a failure's.

mod code;
pub(crate) mod codes;
mod library;
mod refusal;

pub(crate) use code::ErrorCode;
pub(crate) use library::{DEEPEN, LEFT_OUT, obstacle};

use std::error::Error;

use handoff_base::finding::Finding;
use serde_json::Value;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The process's exit code.
    pub exit: u8,
    /// What programs know it by; none where everything about it was printed already.
    pub code: Option<ErrorCode>,
    /// What was refused and why.
    pub message: String,
    /// The next safe thing to do.
    pub hint: Option<String>,
    /// Every fault, where there can be several.
    pub findings: Vec<Finding>,
    /// What was done all the same.
    pub data: Option<Box<Value>>,
}

impl Failure {
    /// Makes a failure without a hint.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            exit: code.exits()[0],
            code: Some(code),
            message: message.into(),
            hint: None,
            findings: Vec::new(),
            data: None,
        }
    }

    /// Makes a failure about which everything was printed already.
    pub(crate) fn reported(exit: u8) -> Self {
        Self {
            exit,
            code: None,
            message: String::new(),
            hint: None,
            findings: Vec::new(),
            data: None,
        }
    }

    /// Makes a failure of usage.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Usage, message)
    }

    /// The word of its code, if it has one.
    pub(crate) fn word(&self) -> &'static str {
        self.code.map_or("", ErrorCode::as_str)
    }

    /// Ends the process with another of the exit codes that go with the code.
    #[must_use]
    pub(crate) fn exit(mut self, exit: u8) -> Self {
        debug_assert!(self.code.is_some_and(|code| code.exits().contains(&exit)));
        self.exit = exit;
        self
    }

    /// Adds the next safe thing to do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The next safe thing to do: always one that names a command, if only the one
    /// that explains the code.
    pub(crate) fn next(&self) -> String {
        let explain = format!("`git handoff explain {}` tells more", self.word());
        match &self.hint {
            Some(hint) if names_a_command(hint) => hint.clone(),
            Some(hint) => format!("{hint}; {explain}"),
            None => explain,
        }
    }

    /// Points to a command, where no command is named yet.
    pub(crate) fn see(&mut self, command: &str) {
        self.hint = Some(match self.hint.take() {
            Some(hint) if names_a_command(&hint) => hint,
            Some(hint) => format!("{hint}; see `{command}`"),
            None => format!("see `{command}`"),
        });
    }

    /// Adds what was done all the same.
    #[must_use]
    pub(crate) fn data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// Adds every fault.
    #[must_use]
    pub(crate) fn findings(mut self, findings: Vec<Finding>) -> Self {
        self.findings = findings;
        self
    }
}

/// Whether a hint says what to run.
fn names_a_command(hint: &str) -> bool {
    hint.contains("`git ") || hint.contains("`ls ")
}

/// An error's message and those of its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text += &format!(": {source}");
        cause = source.source();
    }
    text
}
