//! A command that a server runs within its own process.

use super::interruption::Interruption;

/// The replacement of a process's standard input and signals.
pub struct Call {
    input: Vec<u8>,
    interruption: Interruption,
}

impl Call {
    /// A call with this standard input, which the interruption ends early.
    pub fn new(input: Vec<u8>, interruption: Interruption) -> Self {
        Self {
            input,
            interruption,
        }
    }
    /// What takes the place of standard input.

    pub fn input(&self) -> &[u8] {
        &self.input
    }
    /// What ends the command early.

    pub fn interruption(&self) -> &Interruption {
        &self.interruption
    }
}
