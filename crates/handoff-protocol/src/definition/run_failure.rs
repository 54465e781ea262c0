//! The ways in which the run of an agent ends without a result, as the program that ran it reports
//! them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a run had no result.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunFailure {
    /// There is no worktree for it, or not the one that was made.
    NoWorktree,
    /// Its agent says that the work can't be done.
    AgentFailed,
    /// The program could not be started.
    NotStarted,
    /// The worker that ran it was killed.
    WorkerLost,
    /// The contract that it left was refused.
    ContractRefused,
    /// It took too long.
    TimeSpent,
    /// It spent its budget.
    BudgetSpent,
    /// How it ended is not known.
    NotEnded,
    /// A signal ended it.
    Signal,
    /// It ended and handed nothing on.
    NothingHandedOn,
    /// It exited with another code than 0.
    Exit,
}

impl RunFailure {
    /// Every way.
    pub const ALL: [Self; 11] = [
        Self::NoWorktree,
        Self::AgentFailed,
        Self::NotStarted,
        Self::WorkerLost,
        Self::ContractRefused,
        Self::TimeSpent,
        Self::BudgetSpent,
        Self::NotEnded,
        Self::Signal,
        Self::NothingHandedOn,
        Self::Exit,
    ];

    /// The word in `protocol.json`, and the failure's code in a protocol that names no codes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoWorktree => "NO_WORKTREE",
            Self::AgentFailed => "AGENT_FAILED",
            Self::NotStarted => "NOT_STARTED",
            Self::WorkerLost => "WORKER_LOST",
            Self::ContractRefused => "CONTRACT_REFUSED",
            Self::TimeSpent => "TIME_SPENT",
            Self::BudgetSpent => "BUDGET_SPENT",
            Self::NotEnded => "NOT_ENDED",
            Self::Signal => "SIGNAL",
            Self::NothingHandedOn => "NOTHING_HANDED_ON",
            Self::Exit => "EXIT",
        }
    }
}
