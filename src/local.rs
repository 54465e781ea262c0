//! Local data for metrics and alerts, besides the survey of the ledger.

use handoff::base::Moment;
use handoff::ledger::{Ledger, Snapshot};
use handoff_report::metrics::Local;

use crate::failure::Failure;

/// Reads this clone's notes.
///
/// # Errors
/// A [`Failure`] if the steps refused at a sync can't be read.
pub(crate) fn local(
    ledger: &Ledger<'_>,
    tip: &Snapshot<'_>,
    now: Moment,
) -> Result<Local, Failure> {
    let audited = ledger.audited();
    let is_bad = audited.as_ref().is_some_and(|audited| audited.faults > 0);
    Ok(Local {
        refused: ledger.refused(),
        rejected_steps: ledger.rejected()?.len(),
        audited: if is_bad {
            audited
        } else {
            ledger.damage(tip, now).or(audited)
        },
    })
}
