//! What this clone knows beside the ledger, for metrics and alarms.

use super::error::Failure;
use crate::insight::metrics::Local;
use crate::ledger::Ledger;

/// Gathers it.
///
/// # Errors
/// A [`Failure`] when what was refused at a sync can't be read.
pub(super) fn local(ledger: &Ledger<'_>) -> Result<Local, Failure> {
    Ok(Local {
        refused: ledger.refused(),
        rejected_steps: ledger.rejected()?.len(),
        audited: ledger.audited(),
    })
}
