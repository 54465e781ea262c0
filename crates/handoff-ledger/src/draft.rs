//! What a request comes to before it is written: a commit with all that it needs, or nothing.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_model::{FileChanges, Planned, Receipt};

use super::error::LedgerError;
use super::signing::{By, Demand};
use super::snapshot::Rules;

/// A commit that is decided on and not yet written.
pub(super) struct Draft {
    /// The agent whose step it is; without one, it is whoever runs the program.
    pub(super) author: Option<AgentName>,
    /// What it changes.
    pub(super) files: FileChanges,
    /// Its message.
    pub(super) message: String,
    /// When its issue's step before it was made, if there is one.
    pub(super) previous: Option<Moment>,
    /// What is asked of its signature.
    pub(super) demand: Option<Demand>,
}

impl Draft {
    /// The same, on which nobody decided.
    pub(super) fn by_anybody(self) -> Self {
        Self {
            demand: self.demand.map(Demand::by_anybody),
            ..self
        }
    }
}

/// What is decided on a tip. `T` is what it comes to.
pub(super) enum Decided<T> {
    /// A commit.
    Write(Draft, T),
    /// A commit that must come first; then it is decided again.
    First(Draft),
    /// Nothing: the ledger holds it already.
    Nothing(T),
}

impl Decided<Receipt> {
    /// What an agent's request leads to; the agent has the name that the protocol has for it.
    ///
    /// # Errors
    /// [`LedgerError`] when the list of keys can't be read.
    pub(super) fn of(
        rules: &Rules<'_>,
        agent: AgentName,
        planned: Planned,
    ) -> Result<Self, LedgerError> {
        let demand = Demand::of(rules, By::Agent(agent.clone()))?;
        Ok(match planned {
            Planned::Repeat(receipt) => Self::Nothing(*receipt),
            Planned::Write(step) => {
                let draft = Draft {
                    author: Some(agent),
                    files: step.files,
                    message: step.message,
                    previous: step.previous,
                    demand,
                };
                Self::Write(draft, step.receipt)
            }
        })
    }
}
