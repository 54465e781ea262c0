use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output};
use crate::view::Look;

/// Print the manual page, or install all of them
///
/// `git handoff --help` makes git open the page git-handoff(1). It opens none
/// for `git handoff send --help`: read `man git-handoff-send`.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff man | man -l -
  git handoff man --dir ~/.local/share/man/man1     (one page for each command)")]
pub(crate) struct Arguments {
    /// Write git-handoff.1 and a page for each command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(&self, _: &Context, output: &mut Output) -> Result<(), Failure> {
        let command = crate::full_command();
        let Some(dir) = &self.dir else {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(command).render(&mut page);
            rendered.map_err(|error| unwritable(Path::new("the page"), &error))?;
            return output.raw(&page);
        };
        crate::output::replace::ensure_no_git_directory(dir)?;
        fs::create_dir_all(dir).map_err(|error| unwritable(dir, &error))?;
        clap_mangen::generate_to(command, dir).map_err(|error| unwritable(dir, &error))?;
        let folder = dir.display().to_string();
        output.answer(&ManView { folder })
    }
}

/// The folder of the manual pages.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Man")]
pub(crate) struct ManView {
    /// the folder with the pages
    folder: String,
}

impl Answer for ManView {
    fn text(&self, _: &Look) -> String {
        format!("wrote the manual pages into {}\n", self.folder)
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let text = format!("{} cannot be written: {error}", path.display());
    Failure::new(ErrorCode::Output, text)
}
