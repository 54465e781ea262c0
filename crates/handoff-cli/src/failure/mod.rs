//! Output of a failed command: a [`Failure`] has an exit code, a stable code, a message and the
//! next safe thing to do. What it says of a library's error stands beside the error ([`Explained`]).

pub use handoff::base::codes::ErrorCode;
pub use handoff::base::explained::chain;
pub use handoff::base::hint;
pub use handoff::base::hint::Hint;

use handoff::base::explained::Explained;
use handoff::base::finding::Finding;
use serde::Serialize;
use serde_json::Value;

/// A failed command.
#[derive(Debug)]
pub struct Failure {
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
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code: Some(code),
            message: message.into(),
            ..Self::reported(code.exits()[0])
        }
    }

    /// Makes a failure that has already been reported.
    pub fn reported(exit: u8) -> Self {
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
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Usage, message)
    }

    /// The word of its code, if it has one.
    pub fn word(&self) -> &'static str {
        self.code.map_or("", ErrorCode::as_str)
    }

    /// Ends the process with another of the exit codes that go with the code.
    #[must_use]
    pub fn exit(mut self, exit: u8) -> Self {
        debug_assert!(self.code.is_some_and(|code| code.exits().contains(&exit)));
        self.exit = exit;
        self
    }

    /// Adds the next safe thing to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The next safe thing to do. It always names a command, at least the one that
    /// explains the code.
    pub fn next(&self) -> Hint {
        let hint = self.hint.clone().unwrap_or_default();
        hint.or_see(hint!("`git handoff explain {}`", self.word()))
    }

    /// Adds a command to the hint unless it already names one.
    pub fn see(&mut self, command: Hint) {
        self.hint = Some(self.hint.take().unwrap_or_default().or_see(command));
    }

    /// Adds the answer that goes with the failure: what was done despite it.
    #[must_use]
    pub fn data(mut self, answer: &impl Serialize) -> Self {
        self.data = serde_json::to_value(answer).ok().map(Box::new);
        self
    }

    /// The failure of a command that had made some of its steps: what was done, and its answer.
    #[must_use]
    pub fn half_way(self, done: Option<String>, answer: &impl Serialize) -> Self {
        let Some(done) = done else { return self };
        let message = format!("{done}, but not the rest: {}", self.message);
        let hint = "what was recorded stays; once the cause is gone, run the command again";
        Self { message, ..self }.hint(hint).data(answer)
    }

    /// Adds every fault.
    #[must_use]
    pub fn findings(mut self, findings: Vec<Finding>) -> Self {
        self.findings = findings;
        self
    }
}

impl<E: Explained> From<E> for Failure {
    fn from(error: E) -> Self {
        let explanation = error.explanation();
        let problem = explanation.problem.map(|problem| format!("{problem}: "));
        let message = problem.unwrap_or_default() + &chain(&error);
        Self {
            hint: explanation.hint,
            findings: explanation.findings,
            ..Self::new(explanation.code, message)
        }
    }
}
