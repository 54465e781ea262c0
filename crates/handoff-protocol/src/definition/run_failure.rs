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
    }
}
