//! Long answers through a pager, by git's own rules.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::{env, io};

use handoff::git::Program;

/// A shell's exit code if it can't start a command.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Git's default settings for pagers, unless the user sets others. `less` then keeps colours and
/// the screen, and ends at once if the text fits.
const USUAL: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// Characters that need a shell, as git sees it.
const FOR_A_SHELL: &str = "|&;<>()$`\\\"' \t\n*?[#~=%";

/// The user's pager.
pub struct Pager {
    command: String,
}

impl Pager {
    /// The pager that git names for this program; `None` if the user wants none. `own` is the
    /// value of `pager.handoff`.
    pub fn of_user(own: Option<&str>) -> Option<Self> {
        let wanted = own.map(|own| own.to_ascii_lowercase());
        let command = match (own, wanted.as_deref()) {
            (_, Some("false" | "no" | "off" | "0" | "")) => return None,
            // As in git, the environment comes before a command of the configuration.
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
            // Leaving the pager early is no failure.
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

/// While it lives, Ctrl-C is the pager's: this program would end before it, and leave
/// the terminal to two readers.
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
                // If it can't be caught, it ends the program as usual.
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
