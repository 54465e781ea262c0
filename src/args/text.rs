//! Texts that a step keeps.

use clap::Args;
use handoff_model::MAX_TEXT;

use crate::failure::Failure;

/// Why; for commands that must be given a reason
#[derive(Args)]
pub(crate) struct Reason {
    /// Why; the step keeps it
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "message",
        visible_short_alias = 'm'
    )]
    pub(crate) reason: String,
}

/// Why; for commands that speak for themselves
#[derive(Args)]
pub(crate) struct OptionalReason {
    /// Why; the step keeps it
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "message",
        visible_short_alias = 'm'
    )]
    pub(crate) reason: Option<String>,
}

/// A text that a step can keep: not blank, and at most [`MAX_TEXT`] bytes.
///
/// # Errors
/// [`Failure`], a wrong use of the command.
pub(crate) fn kept(text: &str) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("the text is empty: say what or why"));
    }
    if text.len() > MAX_TEXT {
        let text = format!(
            "the text has {} bytes, and at most {MAX_TEXT} are kept",
            text.len()
        );
        return Err(Failure::usage(text));
    }
    Ok(text.to_owned())
}
