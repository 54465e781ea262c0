//! The usage that `--usage` reports.

use clap::Args;
use handoff::model::{ModelUsage, RequestRefusal, read_usage};

use super::input;
use crate::context::Context;
use crate::failure::Failure;

/// A report of usage.
#[derive(Args)]
pub struct UsageReport {
    /// What the work took (`help work.md`): JSON, or a file with it
    #[arg(long, value_name = "JSON|FILE")]
    usage: Option<String>,
}

impl UsageReport {
    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        self.usage.is_some()
    }

    /// Reads it.
    ///
    /// # Errors
    /// A [`Failure`] if it can't be read, or is not a report.
    pub fn read(&self, context: &Context) -> Result<Vec<ModelUsage>, Failure> {
        let Some(text) = &self.usage else {
            return Ok(Vec::new());
        };
        let bytes = if text.trim_start().starts_with(['{', '[']) {
            text.as_bytes().to_vec()
        } else {
            input::report(context, text)?
        };
        Ok(read_usage(&bytes).map_err(RequestRefusal::Usage)?)
    }
}
