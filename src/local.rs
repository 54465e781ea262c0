//! Local data for metrics and alerts, besides the survey of the ledger.

use handoff::ledger::Ledger;
use handoff_report::metrics::Local;

use crate::failure::Failure;

/// Reads this clone's notes.
///
/// # Errors
/// A [`Failure`] if the steps refused at a sync can't be read.
pub(crate) fn local(ledger: &Ledger<'_>) -> Result<Local, Failure> {
    Ok(Local {
        refused: ledger.refused(),
        rejected_steps: ledger.rejected()?.len(),
        audited: ledger.audited(),
    })
}
