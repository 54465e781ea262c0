//! What can be done when work stands still.

use serde::{Deserialize, Serialize};

/// What should happen next to a handoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The work goes on: someone claims it, or sends it on.
    Advance,
    /// Someone has to answer.
    Ask,
    /// The same agent tries again, with adjusted instructions.
    Retry,
    /// Another agent tries.
    Reassign,
    /// The work goes on with what was delivered.
    ProceedPartial,
    /// The work goes on without it.
    Skip,
    /// A person does by hand what no agent did.
    FallBack,
    /// A person decides.
    Escalate,
    /// The work ends here.
    Terminate,
}
