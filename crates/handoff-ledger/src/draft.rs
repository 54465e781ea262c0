//! What a write comes to before it is written: a commit with all that it needs.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_model::{FileChanges, Planned, Receipt};

use super::error::LedgerError;
use super::signing::{By, Demand};
use super::snapshot::Rules;

/// A commit that is decided on and not yet written.
pub(super) struct Draft<T> {
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
    /// What it comes to.
    pub(super) outcome: T,
}

impl<T> Draft<T> {
    /// The commit without what it comes to, and that.
    pub(super) fn split(self) -> (Draft<()>, Option<T>) {
        let draft = Draft {
            author: self.author,
            files: self.files,
            message: self.message,
            previous: self.previous,
            demand: self.demand,
            outcome: (),
        };
        (draft, Some(self.outcome))
    }
}

/// What a request of an agent leads to.
pub(super) struct Plan {
    /// The agent, by the name that the protocol has for it.
    agent: AgentName,
    /// What it leads to.
    pub(super) planned: Planned,
    /// What is asked of its signature.
    demand: Option<Demand>,
}

impl Plan {
    pub(super) fn new(
        rules: &Rules<'_>,
        agent: AgentName,
        planned: Planned,
    ) -> Result<Self, LedgerError> {
        let demand = Demand::of(rules, By::Agent(agent.clone()))?;
        Ok(Self {
            agent,
            planned,
            demand,
        })
    }

    /// The same, on which nobody decided.
    pub(super) fn by_anybody(mut self) -> Self {
        self.demand = self.demand.map(Demand::by_anybody);
        self
    }

    /// The commit; where none is needed, what the ledger holds already.
    pub(super) fn draft(self) -> Result<Draft<Receipt>, Box<Receipt>> {
        let step = match self.planned {
            Planned::Write(step) => *step,
            Planned::Repeat(receipt) => return Err(receipt),
        };
        Ok(Draft {
            author: Some(self.agent),
            files: step.files,
            message: step.message,
            previous: step.previous,
            demand: self.demand,
            outcome: step.receipt,
        })
    }
}

/// What is decided on a tip.
pub(super) enum Decided<T> {
    /// A commit.
    Write(Draft<T>),
    /// A commit that must come first; then it is decided again.
    First(Draft<()>),
    /// Nothing: the ledger holds it already.
    Nothing(T),
}
