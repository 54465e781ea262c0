//! A command that a server runs within its own process.

use super::interruption::Interruption;

/// The replacement of a process's standard input and signals.
pub(crate) struct Call {
    input: Vec<u8>,
    interruption: Interruption,
}

impl Call {
    /// A call with this standard input, which the interruption ends early.
    pub(crate) fn new(input: Vec<u8>, interruption: Interruption) -> Self {
        Self {
            input,
            interruption,
        }
    }

    pub(crate) fn input(&self) -> &[u8] {
        &self.input
    }

    pub(crate) fn interruption(&self) -> &Interruption {
        &self.interruption
    }
}
