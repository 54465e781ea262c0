use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use handoff_github::summary::{MOST_SUMMARY, of_issue, of_ledger, of_none};
use handoff_github::text::open_fence;
use schemars::JsonSchema;
use serde::Serialize;

use super::page::{Page, append};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::replace::{failed, is_stdout};
use crate::output::{Answer, Output};
use crate::view::Look;

/// Add the status of an issue or the ledger to the summary of a workflow run
///
/// Appends Markdown to the file that GITHUB_STEP_SUMMARY names: the status, what needs attention,
/// what a merge requires, what failed, a drawing of what happened, and the handoffs. GitHub
/// accepts 1 MiB per step, including what is already in the file: anything beyond that is left
/// out from the end, with a note. Text from contracts is shown as code, so that nobody is
/// mentioned and nothing is a link.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github summary 123
  git handoff github summary 123 --require approved --head HEAD
  git handoff github summary --output -      (of the whole ledger, to look at)")]
pub(crate) struct Arguments {
    #[command(flatten)]
    page: Page,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let file = self.page.file(output, "GITHUB_STEP_SUMMARY")?;
        let file = file.filter(|file| !is_stdout(file));
        let there = file.as_deref().map(there).transpose()?;
        let there = there.unwrap_or_default();
        // Close an open code block, which would contain the page otherwise.
        let close = open_fence(&there).map(|fence| format!("{fence}\n\n"));
        let close = close.unwrap_or_default();
        // One byte for the line break, if the file does not end with one.
        let room = MOST_SUMMARY.saturating_sub(there.len() + close.len() + 1);
        let of_issue = |key: &_, issue: Option<&_>| {
            issue.map_or_else(|| of_none(key, room), |issue| of_issue(issue, room))
        };
        let of_ledger = |ledger: &_| of_ledger(ledger, room);
        let page = self.page.render(context, of_issue, of_ledger)?;
        if !page.left_out.is_empty() {
            output.say(&format!("left out: {}", page.left_out.join(", ")));
        }
        if let Some(file) = &file {
            let text = if page.text.is_empty() {
                String::new()
            } else {
                format!("{close}{}", page.text)
            };
            append(file, &text)?;
        }
        output.answer(&SummaryView {
            bytes: page.text.len(),
            left_out: page.left_out,
            text: page.text,
            file,
        })
    }
}

/// A page for the summary of a workflow run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GithubSummary")]
pub(crate) struct SummaryView {
    /// how long the page is
    bytes: usize,
    /// what did not fit GitHub's limit
    left_out: Vec<String>,
    /// the page, Markdown
    text: String,
    /// The file that it was written to; `None` if the page is printed.
    #[serde(skip)]
    file: Option<PathBuf>,
}

impl Answer for SummaryView {
    fn text(&self, _: &Look) -> String {
        match &self.file {
            Some(file) => format!("{} bytes written to {}\n", self.bytes, file.display()),
            None => self.text.clone(),
        }
    }
}

/// The file's current content, up to GitHub's limit; empty if it is not a regular file.
fn there(path: &Path) -> Result<String, Failure> {
    if !path.metadata().is_ok_and(|found| found.is_file()) {
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(MOST_SUMMARY as u64).read_to_end(&mut bytes));
    read.map_err(|error| failed(path, &error))?;
    // Only its length and its fences matter; invalid UTF-8 becomes as long or longer.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
