use std::path::{Path, PathBuf};

use clap::Args;
use handoff::base::ids::IssueKey;
use handoff::base::text::{continued, counted};
use handoff::ledger::Tally;
use handoff_exchange::{Exchanger, Export};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::reference;
use crate::commands::formats::Format;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::page::Cut;
use crate::output::{Answer, Output};
use crate::view::Look;

// No doc comment: it would become the help of the command.
#[derive(Args)]
pub(crate) struct FolderArgs {
    /// The layout of the folder
    #[arg(long, value_name = "FORMAT", required = true)]
    format: Option<Format>,
    /// The folder
    #[arg(value_name = "DIR", required = true)]
    folder: Option<PathBuf>,
    /// Export only this issue
    #[arg(long, value_name = "ISSUE", value_parser = reference::issue)]
    issue: Option<IssueKey>,
}

impl FolderArgs {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let (Some(format), Some(folder)) = (self.format, &self.folder) else {
            return Err(Failure::usage(
                "the format or the folder is missing: give --format FORMAT and DIR",
            ));
        };
        crate::output::replace::ensure_no_git_directory(folder)?;
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tally = Tally::default();
        // Other processes may exchange with a folder of states at the same time.
        let _alone = match format {
            Format::Folders => Some(Exchanger::open(folder)?),
            _ => None,
        };
        let wanted = Export {
            layout: format.into(),
            issue: self.issue.as_ref(),
            tally: Some(&tally),
        };
        let exported = || handoff_exchange::export(&ledger, folder, wanted);
        let done = output.during(&tally, exported)?;
        output.answer(&ExportView {
            folder,
            steps: done.steps,
            handoffs: done.handoffs,
            files: done.files,
            kept: done.kept,
            cut: Cut::of(output),
        })
    }
}

/// An exported ledger.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Export")]
pub(crate) struct ExportView<'a> {
    /// the folder, as given
    folder: &'a Path,
    /// how many steps were written to `steps.jsonl`
    steps: usize,
    /// how many handoffs they began
    handoffs: usize,
    /// how many files were written
    files: usize,
    /// the files of other programs that are where one of `folders` would be; they stay as they are
    kept: Vec<String>,
    #[serde(skip)]
    cut: Cut,
}

impl Answer for ExportView<'_> {
    fn text(&self, _: &Look) -> String {
        let Self {
            steps,
            handoffs,
            files,
            ..
        } = self;
        let folder = self.folder.display();
        let (kept, rest) = self.cut.rows(&self.kept);
        let kept: String = kept
            .iter()
            .map(|file| format!("left as it is: {}\n", continued(file)))
            .collect();
        format!(
            "exported {} and {} to {folder}, {}\n{kept}{rest}",
            counted(*steps, "step"),
            counted(*handoffs, "handoff"),
            counted(*files, "file")
        )
    }
}
