//! News: what others did in an issue while an agent works on it.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_protocol::State;

use crate::record::{Issue, Record, View};

/// A note or a contract of somebody else.
pub struct News {
    /// When.
    pub at: Moment,
    /// Who.
    pub by: AgentName,
    /// The note, the changed fact, or the contract that was sent again.
    pub text: String,
}

/// The news for the holder of a handoff, the oldest first: what was added after its claim, and
/// after the moment `told`, up to which it knows them. They are notes about the issue, the handoff
/// and earlier ones, and contracts that were sent again, because requirements may have changed.
///
/// # Errors
/// If a record can't be read.
pub fn news<E>(
    view: &impl View<E>,
    issue: &Issue,
    record: &Record,
    told: Option<Moment>,
) -> Result<Vec<News>, E> {
    let Some(lease) = &record.lease else {
        return Ok(Vec::new());
    };
    let since = told.map_or(lease.since, |told| told.max(lease.since));
    let number = record.id.number();
    let notes = issue.annotations.iter().filter(|note| {
        let is_before = note.id.as_ref().is_none_or(|id| id.number() <= number);
        // An agent of the same name may work on another issue.
        let is_own =
            note.by == record.to && note.worker.as_ref().is_none_or(|by| *by == lease.worker);
        is_before && !note.is_usage() && note.at > since && !is_own
    });
    let mut found: Vec<News> = notes
        .map(|note| News {
            at: note.at,
            by: note.by.clone(),
            text: note.text(),
        })
        .collect();
    let is_again = |sent: &Record| -> Result<bool, E> {
        for before in 1..=number {
            let before = view.shared_record(before)?;
            let is_same = |one: &Record| {
                one.from == sent.from
                    && one.to == sent.to
                    && one.contract_type == sent.contract_type
            };
            if before.is_some_and(|one| is_same(&one)) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    for later in number + 1..=issue.handoffs {
        let Some(sent) = view.shared_record(later)? else {
            continue;
        };
        let at = sent
            .sent_at()
            .filter(|at| *at > since && sent.from != record.to);
        if let Some(at) = at.filter(|_| sent.state == State::Pending)
            && is_again(&sent)?
        {
            let (kind, id) = (&sent.contract_type, &sent.id);
            found.push(News {
                at,
                by: sent.from.clone(),
                text: format!("{kind} was sent again, as {id}: {}", sent.summary),
            });
        }
    }
    found.sort_by_key(|one| one.at);
    Ok(found)
}
