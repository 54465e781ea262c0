//! Why the run of an agent ended without a result, as reported by the program that ran it.

use handoff_base::words;

words! {
    /// Why a run had no result.
    pub enum RunFailure {
        /// There is no worktree for it, or not the one that was made.
        NoWorktree = "NO_WORKTREE",
        /// Its agent says that the work can't be done.
        AgentFailed = "AGENT_FAILED",
        /// The program could not be started.
        NotStarted = "NOT_STARTED",
        /// The worker that ran it was killed.
        WorkerLost = "WORKER_LOST",
        /// The contract that it left was refused.
        ContractRefused = "CONTRACT_REFUSED",
        /// It took too long.
        TimeSpent = "TIME_SPENT",
        /// It spent its budget.
        BudgetSpent = "BUDGET_SPENT",
        /// How it ended is not known.
        NotEnded = "NOT_ENDED",
        /// A signal ended it.
        Signal = "SIGNAL",
        /// It ended and handed nothing on.
        NothingHandedOn = "NOTHING_HANDED_ON",
        /// It exited with another code than 0.
        Exit = "EXIT",
        /// Agents may not write to its branch, or it has no valid name.
        BranchRefused = "BRANCH_REFUSED",
        /// Workers were killed over it again and again.
        WorkersLost = "WORKERS_LOST",
        /// The machine is not ready for it: no folder, no worktree, or none that could be set up.
        NotReady = "NOT_READY",
        /// The provider or the network did not let it run.
        Unavailable = "UNAVAILABLE",
        /// A limit, a permission, a rule of the remote, or a branch in use.
        NeedsPerson = "NEEDS_PERSON",
    }
}

words! {
    /// Whether another attempt helps.
    pub enum AnotherTry {
        /// At once.
        Now = "now",
        /// Later: the work is given back, and the attempt does not count.
        Later = "later",
        /// No attempt does.
        Never = "never",
        /// Once a person, who is asked, has acted.
        Person = "person",
    }
}

impl RunFailure {
    /// The default answer to whether another attempt helps.
    pub fn another_try(self) -> AnotherTry {
        match self {
            Self::BranchRefused | Self::WorkersLost => AnotherTry::Never,
            Self::NotReady | Self::Unavailable => AnotherTry::Later,
            Self::NeedsPerson => AnotherTry::Person,
            Self::NoWorktree
            | Self::AgentFailed
            | Self::NotStarted
            | Self::WorkerLost
            | Self::ContractRefused
            | Self::TimeSpent
            | Self::BudgetSpent
            | Self::NotEnded
            | Self::Signal
            | Self::NothingHandedOn
            | Self::Exit => AnotherTry::Now,
        }
    }
}
