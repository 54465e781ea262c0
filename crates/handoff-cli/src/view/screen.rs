//! The terminal for an answer.

use std::io::IsTerminal;
use std::{env, io};

use terminal_size::{Width, terminal_size};

/// The default width.
const USUAL: usize = 80;

/// The properties of a terminal that affect layout.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Its width in columns.
    pub(super) width: usize,
    /// Whether it supports Unicode.
    pub(super) unicode: bool,
}

impl Screen {
    /// The terminal behind standard output, directly or through git's pager.
    pub fn of_stdout() -> Option<Self> {
        let there = io::stdout().is_terminal() || is_for_git_pager();
        there.then(Self::here)
    }

    /// The terminal behind standard error.
    pub fn of_stderr() -> Option<Self> {
        io::stderr().is_terminal().then(Self::here)
    }

    fn here() -> Self {
        Self {
            width: width(),
            unicode: is_unicode(),
        }
    }

    /// Its width in columns.
    pub fn width(self) -> usize {
        self.width
    }

    /// The mark of truncated text.
    pub(super) fn ellipsis(self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }
}

/// Whether standard output goes to the pager of `git -p`, by git's environment variable.
pub fn is_for_git_pager() -> bool {
    let pager_in_use = env::var("GIT_PAGER_IN_USE").unwrap_or_default();
    matches!(
        pager_in_use.to_ascii_lowercase().as_str(),
        "true" | "yes" | "on" | "1"
    )
}

/// Whether the terminal supports no cursor movement.
pub fn is_dumb() -> bool {
    env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// `COLUMNS`, which git sets for its pager's input, or the terminal's own width.
fn width() -> usize {
    let given = env::var("COLUMNS").ok().and_then(|n| n.parse().ok());
    let known = || terminal_size().map(|(Width(columns), _)| usize::from(columns));
    let wide = |width: &usize| *width > 0;
    given
        .filter(wide)
        .or_else(|| known().filter(wide))
        .unwrap_or(USUAL)
}

/// Whether the locale's characters are UTF-8.
#[cfg(not(windows))]
fn is_unicode() -> bool {
    let given = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let locale = given("LC_ALL")
        .or_else(|| given("LC_CTYPE"))
        .or_else(|| given("LANG"));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Windows consoles support Unicode in every locale.
#[cfg(windows)]
fn is_unicode() -> bool {
    true
}
