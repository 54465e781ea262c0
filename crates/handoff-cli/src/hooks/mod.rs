//! git's hooks, as guests in the user's folders.
//!
//! `block` edits a file's marked block. `hooks_folder` finds the folder that git uses, and whether
//! it is shared. `install` plans and applies changes; `status` reports whether a hook would run.
//! `faults` words findings, `own_lines` examines the user's own lines. `manager` knows hook
//! managers, `configured` hooks in git's configuration. What a hook checks is decided elsewhere.

mod block;
mod configured;
mod faults;
mod file;
mod hooks_folder;
mod install;
mod manager;
mod own_lines;
mod status;
mod without_program;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

pub use block::{Block, BlockFault, find_between};

pub use file::{Found, WriteError, read_path, replace_as};
pub use hooks_folder::{HooksFolder, HooksPath};
pub use install::difference;
pub use install::{Action, CarryOutError, Change, InstallMethod, Plan, PlanError};
pub use status::{Report, State, Surroundings};

/// A git hook that the program can handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// Before a commit is made.
    PreCommit,
    /// When a commit's message is written.
    CommitMsg,
    /// Before refs are pushed.
    PrePush,
    /// When refs move.
    ReferenceTransaction,
    /// On a server, before any pushed ref moves.
    PreReceive,
    /// On a server, before each pushed ref moves.
    Update,
}

/// The name of no supported hook.
#[derive(Debug, thiserror::Error)]
#[error("no such hook")]
pub struct UnknownHook;

impl Hook {
    /// Every supported hook.
    pub const ALL: [Self; 6] = [
        Self::PreCommit,
        Self::CommitMsg,
        Self::PrePush,
        Self::ReferenceTransaction,
        Self::PreReceive,
        Self::Update,
    ];
    /// The hooks of a working clone.
    pub const LOCAL: [Self; 4] = [
        Self::PreCommit,
        Self::CommitMsg,
        Self::PrePush,
        Self::ReferenceTransaction,
    ];
    /// The hooks of a server. `update` would check each push twice; it is for servers whose
    /// `pre-receive` is taken.
    pub const SERVER: [Self; 1] = [Self::PreReceive];

    /// git's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreCommit => "pre-commit",
            Self::CommitMsg => "commit-msg",
            Self::PrePush => "pre-push",
            Self::ReferenceTransaction => "reference-transaction",
            Self::PreReceive => "pre-receive",
            Self::Update => "update",
        }
    }

    /// Whether git writes to its standard input.
    fn reads_input(self) -> bool {
        matches!(
            self,
            Self::PrePush | Self::ReferenceTransaction | Self::PreReceive
        )
    }

    /// Whether git never runs it in a bare repository.
    fn needs_working_tree(self) -> bool {
        matches!(self, Self::PreCommit | Self::CommitMsg)
    }

    /// Whether a script calls the program for this hook, outside of comments: in words of a shell, or
    /// in a list of them, as other languages have it.
    fn is_called_in(self, text: &str) -> bool {
        let words = |line: &str| {
            let words = line.split(|c: char| c.is_whitespace() || "\"',[]()".contains(c));
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            words.join(" ")
        };
        let mut lines = text.lines();
        lines.any(|line| self.call_in(line).is_some() || self.call_in(&words(line)).is_some())
    }

    /// The rest of a line after the call for this hook, unless it is a comment.
    fn call_in(self, line: &str) -> Option<&str> {
        let line = line.trim_start();
        let calls = ["git handoff hook ", "git-handoff hook "];
        let mut called = calls.iter().flat_map(|call| line.split(call).skip(1));
        let rest = called.find_map(|rest| {
            let rest = rest.strip_prefix(self.name())?;
            let goes_on = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
            (!goes_on).then_some(rest)
        });
        rest.filter(|_| !line.starts_with('#'))
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Hook {
    type Err = UnknownHook;

    fn from_str(name: &str) -> Result<Self, UnknownHook> {
        let found = Self::ALL.into_iter().find(|hook| hook.name() == name);
        found.ok_or(UnknownHook)
    }
}
