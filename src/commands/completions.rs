use clap::Args;
use clap_complete::Shell;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// Print shell completions
///
/// They complete `git-handoff`; `scripts/install` installs them where shells look for them.
#[derive(Args)]
#[command(
    after_help = "Example:\n  D=~/.local/share/bash-completion/completions; mkdir -p $D; \\\n  git handoff completions bash > $D/git-handoff"
)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Arguments {
    pub(crate) fn run(&self, _: &Context, output: &mut Output) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "git-handoff", &mut bytes);
        output.raw(&bytes)
    }
}
