//! Failures: an exit code, a stable code, a message, and the next safe thing to do. The explanation
//! of a library's error is defined beside the error ([`Explained`]).

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
    /// The code for programs; `None` if everything was printed already.
    pub code: Option<ErrorCode>,
    /// What was refused and why.
    pub message: String,
    /// The next safe thing to do.
    pub hint: Option<Hint>,
    /// Every fault, for errors with several.
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

    /// Makes a failure that was reported already.
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

    /// Its code as a word; empty without one.
    pub fn word(&self) -> &'static str {
        self.code.map_or("", ErrorCode::as_str)
    }

    /// Sets another exit code of those allowed for the code.
    #[must_use]
    pub fn exit(mut self, exit: u8) -> Self {
        debug_assert!(self.code.is_some_and(|code| code.exits().contains(&exit)));
        self.exit = exit;
        self
    }

    /// Sets the next safe thing to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The next safe thing to do; it names a command, at least the one that explains the code.
    pub fn next(&self) -> Hint {
        let hint = self.hint.clone().unwrap_or_default();
        hint.or_see(hint!("`git handoff explain {}`", self.word()))
    }

    /// Adds a command to the hint, unless it has one.
    pub fn see(&mut self, command: Hint) {
        self.hint = Some(self.hint.take().unwrap_or_default().or_see(command));
    }

    /// Sets the answer: what was done despite the failure.
    #[must_use]
    pub fn data(mut self, answer: &impl Serialize) -> Self {
        self.data = serde_json::to_value(answer).ok().map(Box::new);
        self
    }

    /// The failure of a command that made only some of its steps, with its answer.
    #[must_use]
    pub fn half_way(self, done: Option<String>, answer: &impl Serialize) -> Self {
        let Some(done) = done else { return self };
        let message = format!("{done}, but not the rest: {}", self.message);
        let hint = "what was recorded stays; once the cause is gone, run the command again";
        Self { message, ..self }.hint(hint).data(answer)
    }

    /// Sets the faults.
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
