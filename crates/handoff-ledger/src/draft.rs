//! A commit before it is written.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_model::{FileChanges, Planned, PlannedStep, Receipt, Step};

use super::error::LedgerError;
use super::signing::{By, Demand};
use super::snapshot::{Rules, Snapshot};

/// The decision on a tip: the commit to write, unless the ledger has it already, and the result.
pub(super) type Decided<T> = Result<(Option<Draft>, T), LedgerError>;

/// A planned commit that is not written yet.
pub(super) struct Draft {
    /// The agent that makes the step; `None` for the person who runs the program.
    pub(super) author: Option<AgentName>,
    pub(super) files: FileChanges,
    pub(super) message: String,
    /// The time of the previous step, if there is one.
    pub(super) previous: Option<Moment>,
    /// The required signature.
    pub(super) demand: Option<Demand>,
}

impl Draft {
    /// A change of files that issues share: a protocol, a document or the archive.
    pub(super) fn shared(files: FileChanges, message: String, demand: Option<Demand>) -> Self {
        Self {
            author: None,
            files,
            message,
            previous: None,
            demand,
        }
    }

    /// The commit of a planned step, and its result. `opening` is the ledger's default protocol, if
    /// the step opens its issue.
    pub(super) fn of(
        rules: &Rules<'_>,
        opening: Option<&Rules<'_>>,
        step: Step,
        planned: PlannedStep,
    ) -> Result<(Self, Receipt), LedgerError> {
        let by = By::of(&step);
        let demand = match opening {
            Some(default) => Demand::of_opening(rules, by, default)?,
            None => Demand::of(rules, by)?,
        };
        let draft = Self {
            author: Some(step.by),
            files: planned.files,
            message: planned.message,
            previous: planned.previous,
            demand,
        };
        Ok((draft, planned.receipt))
    }

    /// The draft of a planned step; none for a repeat.
    pub(super) fn decided(
        tip: &Snapshot<'_>,
        rules: &Rules<'_>,
        step: Step,
        planned: Planned,
    ) -> Decided<Receipt> {
        let by = step.by.clone();
        let (draft, receipt) = match planned {
            Planned::Repeat(receipt) => (None, *receipt),
            Planned::Write(planned) => {
                let opens = planned.previous.is_none();
                let default = opens.then(|| tip.default_rules()).transpose()?;
                let (draft, receipt) = Self::of(rules, default.as_ref(), step, *planned)?;
                (Some(draft), receipt)
            }
        };
        Ok((draft, receipt.advised(rules.protocol(), &by)))
    }
}
