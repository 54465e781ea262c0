//! What a page for a workflow is about, and the file that it is added to.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::Repository;

use crate::context::commit_id;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Output, replace};

// What is told of, and where it goes; without a doc comment, which would become the help of
// the commands that take it.
#[derive(Args)]
pub(super) struct Page {
    /// The issue; without one, the ledger
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    #[command(flatten)]
    pub(super) gate: Gate,
    /// Append to this file instead; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Page {
    /// The issue, if one is named.
    pub(super) fn issue(&self) -> Result<Option<IssueKey>, Failure> {
        Ok(self.issue.as_deref().map(str::parse).transpose()?)
    }

    /// The file to append to: the one that the runner named in this variable, unless
    /// another is asked for. None, where the document is the answer.
    pub(super) fn file(&self, output: &Output, variable: &str) -> Result<Option<PathBuf>, Failure> {
        if output.is_json() && self.output.is_none() {
            Ok(None)
        } else {
            target(self.output.as_ref(), variable).map(Some)
        }
    }
}

/// What a merge requires, and of which code.
#[derive(Args)]
pub(super) struct Gate {
    /// What must be shown; by default what the protocol requires of a merge
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', requires = "issue")]
    require: Vec<String>,
    /// The commit that it must have been shown of, or one with the same files
    #[arg(long, value_name = "COMMIT", requires = "issue")]
    head: Option<String>,
}

impl Gate {
    /// What is asked of the issue.
    pub(super) fn requirements(
        &self,
        repository: &Repository,
    ) -> Result<(&[String], Option<ObjectId>), Failure> {
        let head = self.head.as_deref().map(|text| commit_id(repository, text));
        Ok((&self.require, head.transpose()?))
    }
}

/// The file that the runner named in this variable, unless another is asked for.
///
/// # Errors
/// A [`Failure`] of usage when there is neither.
fn target(asked: Option<&PathBuf>, variable: &str) -> Result<PathBuf, Failure> {
    let named = || std::env::var_os(variable).filter(|name| !name.is_empty());
    let file = asked.cloned().or_else(|| named().map(PathBuf::from));
    file.ok_or_else(|| {
        let text = format!("there is no {variable}: this is no step of a workflow");
        Failure::new(ErrorCode::NoWorkflow, text)
            .hint("say where to with --output FILE; `-` is standard output")
    })
}

/// Says whether a file ends within a line. What is no file, such as a device, is not read.
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

/// Adds a text to a file, on a line of its own; nothing, where there is none.
///
/// # Errors
/// A [`Failure`] when it can't be written.
pub(super) fn append(path: &Path, text: &str) -> Result<(), Failure> {
    let written = OpenOptions::new().append(true).create(true).open(path);
    let is_open = !text.is_empty() && ends_within_line(path);
    let before = if is_open { "\n" } else { "" };
    let written = written.and_then(|mut file| file.write_all(format!("{before}{text}").as_bytes()));
    written.map_err(|error| replace::failed(path, &error))
}
