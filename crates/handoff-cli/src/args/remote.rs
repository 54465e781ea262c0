//! Options of commands that write to a ledger with a remote, wait for it, or query it.

use std::time::Duration;

use clap::Args;
use handoff::git::Repository;
use handoff::ledger::Session;

use super::duration;
use crate::environment;
use crate::failure::Failure;

// No doc comment: it would become the help of every command with these options.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Options for a ledger with a remote")]
#[allow(missing_docs, reason = "clap would take it for the command's help")]
pub struct RemoteArgs {
    /// Record locally only, and exit 8; `git handoff sync` sends it to the remote
    #[arg(long, global = true)]
    offline: bool,
    #[command(flatten)]
    timeout: Timeout,
}

// No doc comment, as above.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Options for a ledger with a remote")]
#[allow(missing_docs, reason = "clap would take it for the command's help")]
pub struct Timeout {
    /// How long the command may take, including all waiting [default: 25s with a remote, else
    /// 10s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, global = true)]
    timeout: Option<Duration>,
}

impl From<Timeout> for RemoteArgs {
    fn from(timeout: Timeout) -> Self {
        Self {
            offline: false,
            timeout,
        }
    }
}

// How a reading command treats the remote.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Options for a ledger with a remote")]
#[allow(missing_docs, reason = "clap would take it for the command's help")]
pub struct AskArgs {
    /// Do not ask the remote first
    #[arg(long)]
    pub offline: bool,
}

// How a waiting command polls the remote.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Options for a ledger with a remote")]
#[allow(missing_docs, reason = "clap would take it for the command's help")]
pub struct PollArgs {
    /// Read the local ledger only, not its remote
    #[arg(long)]
    pub offline: bool,
    /// How often to poll the remote [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "offline")]
    pub poll: Option<Duration>,
}

// A writing command with its remote options. The doc comment on the command itself is its help.
#[derive(Args)]
#[allow(missing_docs, reason = "clap would take it for the command's help")]
pub struct Write<A: Args> {
    #[command(flatten)]
    pub own: A,
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// How long a write waits for other writers and a remote, by default.
const PATIENCE: Duration = Duration::from_secs(10);
const REMOTE_PATIENCE: Duration = Duration::from_secs(25);

impl RemoteArgs {
    /// Whether the remote must not be contacted.
    pub fn is_offline(self) -> bool {
        self.offline
    }

    /// The time limit from `--timeout`, if given.
    pub fn timeout(self) -> Option<Duration> {
        self.timeout.timeout
    }

    /// Builds the session of a write from these options and the environment.
    ///
    /// # Errors
    /// A usage [`Failure`] if the environment sets an invalid date.
    pub fn session(&self, repository: &Repository, has_remote: bool) -> Result<Session, Failure> {
        let default = if has_remote {
            REMOTE_PATIENCE
        } else {
            PATIENCE
        };
        Ok(Session {
            patience: self.timeout.timeout.unwrap_or(default),
            offline: self.offline,
            ..environment::session(repository)?
        })
    }
}
