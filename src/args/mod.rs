//! Values on the command line that commands share, and the options of a gate.

pub(crate) mod gate;

pub(crate) use handoff_cli::args::{duration, filter, moment, protocols, reference, remote, text};
