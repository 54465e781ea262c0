//! A commit before it is written.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_model::{FileChanges, Planned, Receipt};

use super::error::LedgerError;
use super::signing::{By, Demand};
use super::snapshot::{Rules, Snapshot};

/// The decision on a tip: what to write, if the ledger does not have it already, and the outcome.
pub(super) type Decided<T> = Result<(Option<Draft>, T), LedgerError>;

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
    /// A change of what issues share: a protocol, a document or the archive.
    pub(super) fn shared(files: FileChanges, message: String, demand: Option<Demand>) -> Self {
        Self {
            author: None,
            files,
            message,
            previous: None,
            demand,
        }
    }

    /// The plan for an agent's request; the agent is given by its name in the protocol.
    pub(super) fn of(
        tip: &Snapshot<'_>,
        rules: &Rules<'_>,
        agent: AgentName,
        planned: Planned,
    ) -> Decided<Receipt> {
        let protocol = rules.protocol();
        let step = match planned {
            Planned::Repeat(receipt) => return Ok((None, receipt.advised(protocol))),
            Planned::Write(step) => step,
        };
        let by = By::Agent(agent.clone());
        let demand = match step.previous {
            None => Demand::of_opening(rules, by, &tip.default_rules()?)?,
            Some(_) => Demand::of(rules, by)?,
        };
        let draft = Self {
            author: Some(agent),
            files: step.files,
            message: step.message,
            previous: step.previous,
            demand,
        };
        Ok((Some(draft), step.receipt.advised(protocol)))
    }

    /// The same draft, for a step that no agent decided on.
    pub(super) fn by_anybody(self) -> Self {
        Self {
            demand: self.demand.map(Demand::by_anybody),
            ..self
        }
    }
}
