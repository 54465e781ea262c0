//! The result of a request before it is written: a complete commit, or nothing.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_model::{FileChanges, Planned, Receipt};

use super::error::LedgerError;
use super::signing::{By, Demand};
use super::snapshot::{Rules, Snapshot};

/// A commit that is planned but not written yet.
pub(super) struct Draft {
    /// The agent that makes the step; `None` for the person who runs the program.
    pub(super) author: Option<AgentName>,
    pub(super) files: FileChanges,
    pub(super) message: String,
    /// When the previous step was made, if there is one.
    pub(super) previous: Option<Moment>,
    /// The required signature.
    pub(super) demand: Option<Demand>,
}

impl Draft {
    /// The same draft, for a step that no agent decided on.
    pub(super) fn by_anybody(self) -> Self {
        Self {
            demand: self.demand.map(Demand::by_anybody),
            ..self
        }
    }
}

/// The decision on a tip, with its outcome `T`.
pub(super) enum Decided<T> {
    /// Write a commit.
    Write(Draft, T),
    /// Write this commit first, then decide again.
    First(Draft),
    /// Write nothing: the ledger already has it.
    Nothing(T),
}

impl<T> Decided<T> {
    /// Whether a commit is to be written.
    pub(super) fn is_written(&self) -> bool {
        !matches!(self, Self::Nothing(_))
    }
}

impl Decided<Receipt> {
    /// The plan for an agent's request; the agent is given by its name in the protocol.
    pub(super) fn of(
        tip: &Snapshot<'_>,
        rules: &Rules<'_>,
        agent: AgentName,
        planned: Planned,
    ) -> Result<Self, LedgerError> {
        let by = By::Agent(agent.clone());
        let demand = match &planned {
            Planned::Write(step) if step.previous.is_none() => {
                Demand::of_opening(rules, by, &tip.default_rules()?)?
            }
            _ => Demand::of(rules, by)?,
        };
        let protocol = rules.protocol();
        Ok(match planned {
            Planned::Repeat(receipt) => Self::Nothing(receipt.advised(protocol)),
            Planned::Write(step) => {
                let draft = Draft {
                    author: Some(agent),
                    files: step.files,
                    message: step.message,
                    previous: step.previous,
                    demand,
                };
                Self::Write(draft, step.receipt.advised(protocol))
            }
        })
    }
}

/// A change of what issues share: a protocol, a document or the archive.
pub(super) struct SharedStep {
    pub(super) files: FileChanges,
    pub(super) message: String,
    /// The required signature.
    pub(super) demand: Option<Demand>,
}

impl SharedStep {
    pub(super) fn draft(self, author: Option<AgentName>) -> Draft {
        Draft {
            author,
            files: self.files,
            message: self.message,
            previous: None,
            demand: self.demand,
        }
    }
}
