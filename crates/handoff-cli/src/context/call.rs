//! A command that a server runs in its own process.

use std::ffi::OsString;

use super::interruption::Interruption;
use crate::failure::Failure;
use crate::output::Kept;

/// Replaces the process's standard input and signals.
pub struct Call {
    input: Vec<u8>,
    interruption: Interruption,
}

impl Call {
    /// A call with this standard input, which the interruption can end early.
    pub fn new(input: Vec<u8>, interruption: Interruption) -> Self {
        Self {
            input,
            interruption,
        }
    }

    /// The replacement for standard input.
    pub fn input(&self) -> &[u8] {
        &self.input
    }

    /// The replacement for signals.
    pub fn interruption(&self) -> &Interruption {
        &self.interruption
    }
}

/// Turns clap's error for a call's arguments into a better failure, if it knows one.
pub type Misused<'a> = &'a dyn Fn(&clap::Error) -> Option<Failure>;

/// The program's commands, for a server that runs them in its own process.
#[derive(Clone, Copy)]
pub struct Commands {
    /// The clap definition of the command line.
    pub definition: fn() -> clap::Command,
    /// Whether the arguments parse.
    pub accepts: fn(&[OsString]) -> bool,
    /// Runs a command and returns the document that it would print with `--json`. Arguments are the
    /// program's, without `-C`: it runs in this process's folder.
    pub run: fn(&[OsString], Call, Misused<'_>) -> Kept,
}
