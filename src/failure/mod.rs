//! Output of a failed command: a [`Failure`] has an exit code, a stable code, a message and the
//! next safe thing to do.
//!
//! `refusal` converts a protocol's refusals and `ledger` the ledger's errors, one file for each of
//! their subjects; `library` converts what is left, and `codes` explains every code. Only failures
//! have hints.

mod code;
pub(crate) mod codes;
mod hint;
mod ledger;
mod library;
mod obstacle;
mod refusal;

pub(crate) use code::ErrorCode;
pub(crate) use hint::Hint;
pub(crate) use ledger::{DEEPEN, LEFT_OUT, OLD_GIT, REPAIR};
pub(crate) use obstacle::explained;
pub(crate) use refusal::usage_refused;

use std::error::Error;

use handoff_base::finding::Finding;
use serde::Serialize;
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
    pub hint: Option<Hint>,
    /// Every fault, if there can be several.
    pub findings: Vec<Finding>,
    /// What was done despite the failure.
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

    /// Makes a failure that has already been reported.
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

    /// Makes a usage error.
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

    /// Adds the next safe thing to do. A text is one that names a command; for others there is
    /// [`Self::advice`].
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint that names no command.
    #[must_use]
    pub(crate) fn advice(self, text: impl Into<String>) -> Self {
        self.hint(Hint::advice(text))
    }

    /// The next safe thing to do. It always names a command, at least the one that
    /// explains the code.
    pub(crate) fn next(&self) -> String {
        let explain = format!("see `git handoff explain {}`", self.word());
        debug_assert!(self.hint.as_ref().is_none_or(Hint::is_true));
        match &self.hint {
            Some(hint) if hint.names_command => hint.text.clone(),
            Some(hint) => format!("{}; {explain}", hint.text),
            None => explain,
        }
    }

    /// Adds a command to the hint unless it already names one.
    pub(crate) fn see(&mut self, command: &str) {
        match &mut self.hint {
            Some(hint) if hint.names_command => {}
            Some(hint) => hint.add(&format!("; see `{command}`")),
            None => self.hint = Some(format!("see `{command}`").into()),
        }
    }

    /// Adds the answer that goes with the failure: what was done despite it.
    #[must_use]
    pub(crate) fn data(mut self, answer: &impl Serialize) -> Self {
        self.data = serde_json::to_value(answer).ok().map(Box::new);
        self
    }

    /// The failure of a command that had made some of its steps: what was done, and its answer.
    #[must_use]
    pub(crate) fn half_way(self, done: Option<String>, answer: &impl Serialize) -> Self {
        let Some(done) = done else { return self };
        let message = format!("{done}, but not the rest: {}", self.message);
        let advice = "what was recorded stays; once the cause is gone, run the command again";
        Self { message, ..self }.advice(advice).data(answer)
    }

    /// Adds every fault.
    #[must_use]
    pub(crate) fn findings(mut self, findings: Vec<Finding>) -> Self {
        self.findings = findings;
        self
    }
}

/// An error's message, followed by those of its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text += &format!(": {source}");
        cause = source.source();
    }
    text
}
