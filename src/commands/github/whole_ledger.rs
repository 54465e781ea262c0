//! The status of the whole ledger.

use handoff::base::Moment;
use handoff::ledger::attention::{of_survey, protocols};
use handoff::ledger::{Ledger, Snapshot};
use handoff::model::IssueStatus;
use handoff::protocol::State;
use handoff_github::status::{Ledger as WaitStatus, Threshold};
use handoff_report::alerts::firing;

use crate::context::Context;
use crate::failure::Failure;
use crate::local::local;

/// Collects the status.
pub(super) fn ledger_status(
    ledger: &Ledger<'_>,
    tip: &Snapshot<'_>,
    now: Moment,
) -> Result<WaitStatus, Failure> {
    let rules = protocols(tip, now)?;
    let survey = ledger.survey(tip, Context::threads())?;
    let mut open = Vec::new();
    for entry in tip.open()? {
        open.push(tip.open_record(&entry)?);
    }
    let counts = State::ALL.into_iter().filter(|state| !state.is_terminal());
    let counts = counts.map(|state| (state, open.iter().filter(|r| r.state == state).count()));
    let issues = survey.issues.iter();
    let completed = issues.filter(|i| i.status == IssueStatus::Completed);
    Ok(WaitStatus {
        branch: ledger.branch().to_owned(),
        commit: tip.commit(),
        protocol: tip.manifest().default_protocol.to_string(),
        issues: (survey.issues.len(), completed.count()),
        counts: counts.collect(),
        stuck: of_survey(tip, &survey, &rules, now)?,
        firing: firing(&survey.issues, &rules, &local(ledger, tip, now)?, None, now)
            .into_iter()
            .map(|alert| Threshold {
                protocol: alert.protocol,
                name: alert.name,
                severity: alert.severity,
                action: alert.action,
            })
            .collect(),
        open,
    })
}
