//! The options of a command that writes to a ledger with a remote, or waits for one.

use std::time::Duration;

use clap::Args;
use handoff_git::Repository;
use handoff_ledger::Session;

use super::duration;
use crate::environment;
use crate::failure::Failure;

// Without a doc comment, which would become the help of every command that takes these.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Options for a ledger with a remote")]
pub(crate) struct RemoteArgs {
    /// Record it here alone for now, and exit 8; `git handoff sync` brings it to the
    /// remote
    #[arg(long, global = true)]
    offline: bool,
    #[command(flatten)]
    timeout: Timeout,
}

// Likewise.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Options for a ledger with a remote")]
pub(crate) struct Timeout {
    /// How long it may take, with all that has to be waited for [default: 25s with a
    /// remote, else 10s]
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

// How a command that waits looks at the remote.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Options for a ledger with a remote")]
pub(crate) struct PollArgs {
    /// Look at the ledger here alone, not at its remote
    #[arg(long)]
    pub(crate) offline: bool,
    /// How often to look at the remote [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "offline")]
    pub(crate) poll: Option<Duration>,
}

// A command that writes, and how it goes about the remote. The comment on the
// command itself is its help.
#[derive(Args)]
pub(crate) struct Write<A: Args> {
    #[command(flatten)]
    pub(crate) own: A,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// How long a write waits for other writers, and for a remote.
const PATIENCE: Duration = Duration::from_secs(10);
const REMOTE_PATIENCE: Duration = Duration::from_secs(25);

impl RemoteArgs {
    /// What a write gets from the outside world.
    ///
    /// # Errors
    /// A [`Failure`] of usage when the environment sets an invalid date.
    pub(crate) fn session(
        &self,
        repository: &Repository,
        has_remote: bool,
    ) -> Result<Session, Failure> {
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
