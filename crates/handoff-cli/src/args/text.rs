//! Texts that are recorded in a step.

use clap::Args;
use handoff::base::text::quoted;
use handoff::contract::FILL;
use handoff::model::MAX_TEXT;

use crate::failure::Failure;

/// A reason, for commands that require one
#[derive(Args)]
pub struct Reason {
    /// Why: the step records it
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "message",
        visible_short_alias = 'm'
    )]
    pub reason: String,
}

/// A reason, for commands where it is optional
#[derive(Args)]
pub struct OptionalReason {
    /// Why: the step records it
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "message",
        visible_short_alias = 'm'
    )]
    pub reason: Option<String>,
}

/// The placeholders in printed commands for text that only the user knows.
const PLACEHOLDERS: [&str; 6] = ["WHY", "ANSWER", "VALUE", "BRANCH", "TEXT", "REASON"];

/// Refuses a placeholder that was copied from a printed command.
///
/// # Errors
/// A usage [`Failure`] for a placeholder.
pub fn no_placeholder(text: &str) -> Result<(), Failure> {
    let word = text.trim();
    if PLACEHOLDERS.contains(&word) || word.starts_with(FILL) {
        let text = format!("{} is a placeholder of a printed command", quoted(word));
        return Err(Failure::usage(text).hint("write what belongs in its place"));
    }
    Ok(())
}

/// Validates a text for a step: not blank, not a placeholder, at most [`MAX_TEXT`] bytes.
///
/// # Errors
/// A usage [`Failure`] for any other text.
pub fn kept(text: &str) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("the text is empty: say what or why"));
    }
    no_placeholder(text)?;
    if text.len() > MAX_TEXT {
        let text = format!("the text has {} bytes; the limit is {MAX_TEXT}", text.len());
        return Err(Failure::usage(text));
    }
    Ok(text.to_owned())
}
