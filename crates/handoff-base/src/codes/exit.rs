//! Exit codes. They are public: scripts branch on them.

use super::{ExplainedCode, after};

macro_rules! exits {
    ($(
        #[doc = $cause:literal] #[doc = $example:literal] #[doc = $cure:literal]
        $name:ident = $exit:literal;
    )+) => {
        $(#[doc = concat!("Exit code ", $exit)] pub const $name: u8 = $exit;)+

        /// Every exit code.
        pub(super) const EXPLAINED: &[ExplainedCode] = &[$(ExplainedCode {
            code: stringify!($exit),
            kind: "Exit codes",
            exit: &[],
            cause: after($cause, " - cause: "),
            example: after($example, " - example: "),
            cure: after($cure, " - cure: "),
            meaning: None,
        },)+];
    };
}

exits! {
    /// - cause: success. A report exits 0 however bad its news
    /// - example: `git handoff status` when handoffs have failed
    /// - cure: continue: the receipt names the commands that can come next
    DONE = 0;

    /// - cause: the answer is no: a protocol has faults, what was waited for failed, the gate is closed, a threshold is crossed, or a hook refuses
    /// - example: `git handoff protocol check ./our-way` when a route leads to an undefined agent
    /// - cure: read the findings: each gives its place and what to do about it
    NO = 1;

    /// - cause: the command was used wrongly. Nothing was written
    /// - example: `git handoff claim` without an id and without `--next`
    /// - cure: `git handoff COMMAND -h` shows its arguments, with examples
    USAGE = 2;

    /// - cause: the contract was refused: it can't be read, is incomplete, or is contradicted by the repository. Nothing was written
    /// - example: `git handoff send contract.xml` when `{{fill: …}}` is left in it
    /// - cure: fix what the findings name until `git handoff check FILE` exits 0, then send it again
    CONTRACT = 3;

    /// - cause: the protocol refuses it: route, state, role, limit, cycle or key. Nothing was written
    /// - example: prep-agent sends on work that it did not claim
    /// - cure: do what the hint says; `git handoff next ISSUE` shows what should happen, `git handoff show ID` what can
    PROTOCOL = 4;

    /// - cause: someone else was first, or your lease ran out. Nothing was written
    /// - example: two agents claim one handoff: the second gets this code
    /// - cure: `git handoff claim --next` claims another; if you lost the lease, keep your work, and retry or claim as the hint says
    CONFLICT = 5;

    /// - cause: it does not exist, or there is nothing to do
    /// - example: `git handoff claim --next` when nothing waits
    /// - cure: correct the name, or try again later: `git handoff wait --inbox` waits for you
    NOT_FOUND = 6;

    /// - cause: the time ran out: what was waited for did not happen, or other writers kept the branch busy
    /// - example: `git handoff wait 123.4 --timeout 30m`
    /// - cure: run the same command again
    TIMED_OUT = 7;

    /// - cause: it is recorded in this clone, but not on the remote
    /// - example: `git handoff send contract.xml` without a network
    /// - cure: `git handoff sync` once the remote can be reached; nothing is lost until then
    NOT_PUBLISHED = 8;

    /// - cause: the environment: no repository, no ledger, no access to the remote, an unsupported format, or signing failed
    /// - example: `git handoff status` before `git handoff init`
    /// - cure: read the message and the hint; nothing was acknowledged
    ENVIRONMENT = 9;

    /// - cause: the ledger is damaged, or does not match what this clone saw before
    /// - example: `git handoff verify` when a record does not match its step
    /// - cure: write nothing; `git handoff verify` names the commit, and another clone has what was lost
    INTEGRITY = 10;
}
