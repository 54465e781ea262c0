//! What a sender holds: the handoff that its contract continues or answers.

use std::rc::Rc;

use handoff_base::ids::{AgentName, HandoffId, WorkerId};
use handoff_protocol::{ContractType, State};

use crate::contract::Contract;
use crate::planner::{recorded, task_handoff};
use crate::record::{Issue, OpenHandoff, Record, View};
use crate::step::Stop;

/// An agent and its worker, which may hold a handoff.
#[derive(Clone, Copy)]
pub struct Holder<'a> {
    /// The agent.
    pub agent: &'a AgentName,
    /// Its worker, if known.
    pub worker: Option<&'a WorkerId>,
}

impl Holder<'_> {
    /// Whether this worker of the agent holds a handoff.
    pub fn holds(self, record: &Record) -> bool {
        let lease = record.lease.as_ref();
        lease.is_some_and(|l| l.holder == *self.agent && self.worker == Some(&l.worker))
    }
}

/// The handoff that a contract's sender holds: for an answer, the request that it answers; for a
/// note, none; otherwise the one that it sends on from. `number` selects one of several requests.
/// The handoff of another worker of the agent counts only if the sender's own worker holds none.
///
/// # Errors
/// [`Stop`]: an open handoff has no record, or it can't be read.
pub fn held<E>(
    view: &impl View<E>,
    issue: &Issue,
    kind: &ContractType,
    contract: &Contract,
    number: Option<u32>,
    from: Holder<'_>,
) -> Result<Option<Record>, Stop<E>> {
    if !kind.answers.is_empty() {
        answered(view, issue, kind, contract, number, from)
    } else if kind.note {
        Ok(None)
    } else {
        basis(view, issue, kind, contract, from)
    }
}

/// The newest request that an agent works on and that this contract answers.
fn answered<E>(
    view: &impl View<E>,
    issue: &Issue,
    kind: &ContractType,
    contract: &Contract,
    number: Option<u32>,
    from: Holder<'_>,
) -> Result<Option<Record>, Stop<E>> {
    let meant = |id: &HandoffId| number.is_none_or(|n| id.number() == n);
    let mut others = None;
    for open in issue
        .held_by(from.agent)
        .rev()
        .filter(|open| meant(&open.id))
    {
        let record = recorded(view, &open.id)?;
        if answers(kind, contract, &record) {
            if from.holds(&record) {
                return Ok(Some(Rc::unwrap_or_clone(record)));
            }
            others = others.or(Some(record));
        }
    }
    Ok(others.map(Rc::unwrap_or_clone))
}

/// Whether a contract can answer this request: type, id and requester match.
pub(super) fn answers(kind: &ContractType, contract: &Contract, request: &Record) -> bool {
    kind.answers.contains(&request.contract_type)
        && (contract.id.is_none() || contract.id == request.contract_id)
        && contract.to.as_ref().is_none_or(|to| *to == request.from)
}

/// The handoff that a sender sends on from: that of the task that the contract is about; else the
/// newest that its worker holds; else the newest of another worker; else the newest completed one
/// without a successor.
fn basis<E>(
    view: &impl View<E>,
    issue: &Issue,
    kind: &ContractType,
    contract: &Contract,
    from: Holder<'_>,
) -> Result<Option<Record>, Stop<E>> {
    if let Some(id) = task_handoff(issue, kind, contract) {
        let works = |open: &OpenHandoff| open.id == id && open.state == State::InProgress;
        if issue.open.iter().any(works) || issue.unfollowed.contains(&id) {
            let record = recorded(view, &id)?;
            if record.to == *from.agent {
                return Ok(Some(Rc::unwrap_or_clone(record)));
            }
        }
    }
    let mut others = None;
    for open in issue.held_by(from.agent).rev() {
        let record = recorded(view, &open.id)?;
        if from.holds(&record) {
            return Ok(Some(Rc::unwrap_or_clone(record)));
        }
        others = others.or(Some(record));
    }
    if others.is_some() {
        return Ok(others.map(Rc::unwrap_or_clone));
    }
    // Pending work must be claimed first, before anything is sent on from completed work.
    if issue.open.iter().any(|open| open.to == *from.agent) {
        return Ok(None);
    }
    for id in issue.unfollowed.iter().rev() {
        let record = recorded(view, id)?;
        if record.to == *from.agent {
            return Ok(Some(Rc::unwrap_or_clone(record)));
        }
    }
    Ok(None)
}
