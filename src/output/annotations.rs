//! `--format github`: what a command found, as annotations of a workflow.

use clap::ValueEnum;
use handoff_github::annotations::{Annotation, commands};
use handoff_github::text;

use super::Output;
use crate::failure::Failure;

/// How a command reports.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Human,
    /// Workflow commands that GitHub turns into annotations
    Github,
}

impl Format {
    /// Whether the answer is annotations; if so, failures are annotations from now on too.
    pub(crate) fn is_github(self, output: &mut Output) -> bool {
        let is_github = self == Self::Github && !output.is_json();
        if is_github {
            output.annotate();
        }
        is_github
    }
}

/// Prints annotations, and the verdict for the log.
pub(crate) fn show(
    output: &mut Output,
    found: &[Annotation],
    verdict: &str,
) -> Result<(), Failure> {
    output.raw(format!("{}{}", commands(found), text::log(verdict)).as_bytes())
}
