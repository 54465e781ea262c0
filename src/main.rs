//! The `git-handoff` binary, which git runs as `git handoff`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(git_handoff::run(std::env::args_os()))
}
