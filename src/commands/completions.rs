use clap::Args;
use clap_complete::Shell;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// The function that git's own completion calls for `git handoff`. Other shells complete
/// `git-handoff`.
const CALLED_BY_GIT: &str = r#"
_git_handoff() {
    local n=${__git_cmd_idx:-1}
    # git before 2.31 does not tell where the command is.
    [[ -n ${__git_cmd_idx-} ]] || until ((n >= cword)) || [[ ${words[n]} == handoff ]]; do ((n++)); done
    local COMP_WORDS=(git-handoff "${words[@]:n+1}") COMP_CWORD=$((cword - n))
    compopt +o nospace 2>/dev/null
    _git__handoff git-handoff "$cur" "$prev"
}
"#;

/// Print shell completions
///
/// They complete `git-handoff`, and `git handoff` where git is completed; `scripts/install` installs them where shells look for them.
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
        if self.shell == Shell::Bash {
            // clap_complete spells the `-` of the program's name in two ways.
            let script = String::from_utf8_lossy(&bytes);
            let script = script.replace("git__subcmd__handoff", "git__handoff");
            return output.raw((script + CALLED_BY_GIT).as_bytes());
        }
        output.raw(&bytes)
    }
}
