//! Shows long answers through a pager, by git's rules.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::{env, io};

use handoff::git::Program;

/// A shell's exit codes if a command can't be started.
const NOT_STARTED: [i32; 2] = [126, 127];

/// git's default variables for pagers: `less` keeps colours and the screen, and exits at once if
/// the text fits.
const USUAL: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// Characters for which git runs a command through a shell.
const FOR_A_SHELL: &str = "|&;<>()$`\\\"' \t\n*?[#~=%";

/// The user's pager.
pub struct Pager {
    command: String,
}

impl Pager {
    /// The pager that git would use; `None` if the user wants none. `own` is the value of
    /// `pager.handoff`.
    pub fn of_user(own: Option<&str>) -> Option<Self> {
        let wanted = own.map(|own| own.to_ascii_lowercase());
        let command = match (own, wanted.as_deref()) {
            (_, Some("false" | "no" | "off" | "0" | "")) => return None,
            // As in git, the environment takes precedence over a configured command.
            (Some(own), word)
                if !matches!(word, Some("true" | "yes" | "on" | "1"))
                    && env::var_os("GIT_PAGER").is_none() =>
            {
                own.to_owned()
            }
            _ => Program::here().pager().ok()?,
        };
        (!command.is_empty() && command != "cat").then_some(Self { command })
    }

    /// Shows a text; returns whether there was a pager.
    pub fn show(&self, text: &[u8]) -> bool {
        let held = Held::hold();
        let shown = self.run(text);
        drop(held);
        shown
    }

    fn run(&self, text: &[u8]) -> bool {
        let Ok(mut child) = self.start() else {
            return false;
        };
        if let Some(mut stdin) = child.stdin.take() {
            // Quitting the pager early is not an error.
            let _ = stdin.write_all(text);
        }
        match child.wait() {
            Ok(status) => !status
                .code()
                .is_some_and(|code| NOT_STARTED.contains(&code)),
            Err(_) => true,
        }
    }

    fn start(&self) -> io::Result<Child> {
        let mut command = if self.command.contains(|c| FOR_A_SHELL.contains(c)) {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(&self.command);
            shell
        } else {
            Command::new(&self.command)
        };
        for (name, value) in USUAL {
            if env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        command.env("GIT_PAGER_IN_USE", "true");
        command.stdin(Stdio::piped()).spawn()
    }
}

/// While it exists, Ctrl-C goes to the pager: otherwise this program would exit first, leaving two
/// readers on the terminal.
struct Held {
    #[cfg(unix)]
    over: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl Held {
    fn hold() -> Self {
        #[cfg(unix)]
        {
            use signal_hook::consts::{SIGINT, SIGQUIT};
            let over = std::sync::Arc::default();
            for signal in [SIGINT, SIGQUIT] {
                let flag = std::sync::Arc::clone(&over);
                // If the signal can't be caught, it ends the program as usual.
                let _ = signal_hook::flag::register_conditional_default(signal, flag);
            }
            Self { over }
        }
        #[cfg(not(unix))]
        Self {}
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        #[cfg(unix)]
        self.over.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}
