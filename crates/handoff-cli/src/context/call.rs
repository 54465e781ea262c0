//! A command that a server runs within its own process.

use std::ffi::OsString;

use super::interruption::Interruption;
use crate::failure::Failure;
use crate::output::Kept;

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

/// Words what is wrong with the arguments of a call, where it can.
pub type Misused<'a> = &'a dyn Fn(&clap::Error) -> Option<Failure>;

/// The commands of the program, for a server that runs them within its own process.
#[derive(Clone, Copy)]
pub struct Commands {
    /// The definition of the command line.
    pub definition: fn() -> clap::Command,
    /// Whether a command takes these arguments.
    pub accepts: fn(&[OsString]) -> bool,
    /// Runs a command, and returns the document that it prints with `--json`. Its arguments are like
    /// the program's, without `-C`: the folder is this process's own.
    pub run: fn(&[OsString], Call, Misused<'_>) -> Kept,
}
