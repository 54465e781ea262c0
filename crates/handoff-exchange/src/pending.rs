//! The handoffs that a contract's sender must claim before it can send the contract.

use handoff::ledger::{LedgerError, Rules, Snapshot};
use handoff::model::planner::task_handoff;
use handoff::model::{Contract, Record, View};
use handoff::protocol::{Event, State};

/// The waiting handoffs that a contract continues and its sender must claim: the task that it is
/// about, the request that it answers, or otherwise all of them.
pub(super) fn to_claim(
    tip: &Snapshot<'_>,
    rules: &Rules<'_>,
    contract: &Contract,
) -> Result<Vec<Record>, LedgerError> {
    let (Some(from), Some(kind)) = (
        &contract.from,
        rules.protocol().contract_type(&contract.kind),
    ) else {
        return Ok(Vec::new());
    };
    let folder = tip.issue(&contract.issue)?;
    let Some(issue) = folder.issue()?.filter(|_| !kind.note) else {
        return Ok(Vec::new());
    };
    let task = task_handoff(&issue, kind, contract);
    let mut found = Vec::new();
    for open in &issue.open {
        // Work that was imported while in progress elsewhere is blocked here; its outcome continues
        // it.
        let waits = open.state == State::Pending
            || open.state == State::Blocked && !kind.answers.is_empty();
        let mine = open.to == *from && waits;
        if !mine || task.as_ref().is_some_and(|task| *task != open.id) {
            continue;
        }
        let Some(record) = folder.record(open.id.number())? else {
            continue;
        };
        let answered = kind.answers.is_empty()
            || kind.answers.contains(&record.contract_type)
                && (contract.id.is_none() || contract.id == record.contract_id);
        let held_elsewhere = open.state == State::Pending || is_elsewhere(&record);
        if answered && held_elsewhere && record.waits_for.is_empty() {
            found.push(record);
        }
    }
    Ok(found)
}

/// Whether blocked work is in progress elsewhere: it was blocked at the moment of its claim, which
/// no agent here can do.
pub(super) fn is_elsewhere(record: &Record) -> bool {
    let [.., claimed, blocked] = &record.transitions[..] else {
        return false;
    };
    record.imported.is_some()
        || blocked.event == Some(Event::Block)
            && claimed.event == Some(Event::Claim)
            && blocked.at == claimed.at
            && blocked.questions.is_empty()
}
