//! The subject of a page for a workflow, and the file that it is appended to.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use handoff::base::ids::IssueKey;
use handoff_github::status::{self, Issue};

use super::whole_ledger::ledger_status;
use crate::args::gate::GateArgs;
use crate::context::Context;
use crate::environment::now;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Output, replace};

// The subject of a page, and where the page goes. No doc comment: it would become the help of
// the commands that take it.
#[derive(Args)]
pub(super) struct Page {
    /// The issue; by default the whole ledger
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    #[command(flatten)]
    gate: GateArgs,
    /// Append to this file instead; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Page {
    /// Renders the status of the named issue, which may be unknown to the ledger, or of the whole
    /// ledger.
    pub(super) fn render<T>(
        &self,
        context: &Context,
        of_issue: impl FnOnce(&IssueKey, Option<&Issue>) -> T,
        of_ledger: impl FnOnce(&status::Ledger) -> T,
    ) -> Result<T, Failure> {
        let repository = match &self.issue {
            Some(_) => context.repository()?,
            None => context.repository_to_survey()?,
        };
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let Some(key) = &self.issue else {
            if self.gate.is_given() {
                let text = "a gate is about an issue, and none is given";
                return Err(Failure::usage(text).hint("name the issue"));
            }
            return Ok(of_ledger(&ledger_status(&ledger, &tip, now()?)?));
        };
        let key = key.parse()?;
        let request = self.gate.read(context, (&ledger, &tip), &key)?;
        let issue = Issue::read(&tip, &key, &request, now()?)?;
        Ok(of_issue(&key, issue.as_ref()))
    }

    /// The file to append to: the requested one, or else the one that this variable of the runner
    /// names. `None` if the document goes to standard output.
    pub(super) fn file(&self, output: &Output, variable: &str) -> Result<Option<PathBuf>, Failure> {
        if output.is_json() && self.output.is_none() {
            Ok(None)
        } else {
            target(self.output.as_ref(), variable).map(Some)
        }
    }
}

/// The requested file, or else the one that this variable of the runner names.
///
/// # Errors
/// A usage [`Failure`] if there is neither.
fn target(given: Option<&PathBuf>, variable: &str) -> Result<PathBuf, Failure> {
    let named = || std::env::var_os(variable).filter(|name| !name.is_empty());
    let file = given.cloned().or_else(|| named().map(PathBuf::from));
    file.ok_or_else(|| {
        let text = format!("{variable} is not set: this is not a step of a workflow");
        Failure::new(ErrorCode::NoWorkflow, text).hint("use --output FILE; `-` is standard output")
    })
}

/// Returns whether a file does not end with a line break. Reads only regular files, no devices.
fn ends_within_line(path: &Path) -> bool {
    let last = || {
        let is_file = path.metadata()?.is_file();
        let mut last = Vec::new();
        if is_file {
            let mut file = File::open(path)?;
            let end = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(end.saturating_sub(1)))?;
            file.take(1).read_to_end(&mut last)?;
        }
        std::io::Result::Ok(last)
    };
    last().is_ok_and(|last| last.first().is_some_and(|byte| *byte != b'\n'))
}

/// Appends a text to a file, on a new line; an empty text adds nothing.
pub(super) fn append(path: &Path, text: &str) -> Result<(), Failure> {
    replace::ensure_no_git_directory(path)?;
    let written = OpenOptions::new().append(true).create(true).open(path);
    let is_open = !text.is_empty() && ends_within_line(path);
    let before = if is_open { "\n" } else { "" };
    let written = written.and_then(|mut file| file.write_all(format!("{before}{text}").as_bytes()));
    written.map_err(|error| replace::failed(path, &error))
}
