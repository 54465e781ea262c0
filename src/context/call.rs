//! A command that no process of its own runs: a server does, and has its
//! document.

use super::interruption::Interruption;

/// What such a command gets in place of a process's standard input and signals.
pub(crate) struct Call {
    input: Vec<u8>,
    interruption: Interruption,
}

impl Call {
    /// A call with this on its standard input, which ends early when it is asked to.
    pub(crate) fn new(input: Vec<u8>, interruption: Interruption) -> Self {
        Self {
            input,
            interruption,
        }
    }

    /// Its standard input.
    pub(crate) fn input(&self) -> &[u8] {
        &self.input
    }

    /// What asks it to end.
    pub(crate) fn interruption(&self) -> &Interruption {
        &self.interruption
    }
}
