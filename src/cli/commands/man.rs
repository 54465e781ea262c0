use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::error::Failure;
use crate::cli::exit;
use crate::cli::output::Output;

/// Print the manual page, or install all of them
///
/// `git handoff --help` makes git look for the page git-handoff(1), and
/// `git handoff send --help` for nothing: read `man git-handoff-send`.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff man | man -l -
  git handoff man --dir ~/.local/share/man/man1     (one page for each command)")]
pub struct Arguments {
    /// Write git-handoff.1 and a page for each command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub fn run(&self, output: &mut Output) -> Result<(), Failure> {
        let mut command = crate::cli::command();
        command.build();
        let Some(dir) = &self.dir else {
            return output.raw(&page(&command, "git-handoff")?);
        };
        let write = |name: &str, bytes: Vec<u8>| {
            let path = dir.join(format!("{name}.1"));
            fs::write(&path, bytes).map_err(|error| unwritable(&path, &error))
        };
        fs::create_dir_all(dir).map_err(|error| unwritable(dir, &error))?;
        write("git-handoff", page(&command, "git-handoff")?)?;
        for sub in command.get_subcommands() {
            let name = format!("git-handoff-{}", sub.get_name());
            write(&name, page(sub, &name)?)?;
        }
        output.say(&format!("wrote the manual pages into {}", dir.display()));
        Ok(())
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let text = format!("{} cannot be written: {error}", path.display());
    Failure::new(exit::ENVIRONMENT, "output", text)
}

fn page(command: &clap::Command, name: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let named = command.clone().name(name.to_owned());
    clap_mangen::Man::new(named)
        .render(&mut bytes)
        .map_err(|error| unwritable(Path::new(name), &error))?;
    Ok(bytes)
}
