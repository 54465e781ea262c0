//! What a person has to decide about a merge: an approval that it lacks, or that it came before its
//! review.

use handoff_base::ids::AgentName;
use handoff_protocol::{Need, Protocol, State};

use crate::decision::requirement::lacks_approval;
use crate::decision::{decider, person};
use crate::record::{Issue, IssueStatus, View};

/// An agent that decides about a handoff, and the need of one that is not stuck.
pub type Decider = (AgentName, Need);

/// Whether a person may have to decide about a handoff of this issue.
pub(crate) fn may_be_due(protocol: &Protocol, issue: &Issue) -> bool {
    protocol.definition().merge_takes_a_person() || is_merged(protocol, issue)
}

/// The person who has to decide about a handoff that is not stuck: its merge lacks their approval,
/// or its code was merged while it, which comes before the approval, is open.
///
/// # Errors
/// If a record can't be read.
pub(crate) fn due<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    issue: &Issue,
    number: u32,
) -> Result<Option<Decider>, E> {
    let definition = protocol.definition();
    let Some(record) = view.shared_record(number)? else {
        return Ok(None);
    };
    let (state, kind) = (record.state, &record.contract_type);
    let is_due = match issue.status {
        IssueStatus::Open => !state.is_terminal() && !state.is_stuck(),
        IssueStatus::Completed => state == State::Completed && definition.ends_unmerged(kind),
        IssueStatus::Cancelled => false,
    };
    if !is_due {
        return Ok(None);
    }
    if definition.takes_approval(kind)
        && let Some(agent) = lacks_approval(view, protocol, &record)?
    {
        return Ok(Some((agent, Need::Unapproved)));
    }
    let is_early = !state.is_terminal() && definition.is_before_merge(kind);
    let person = person(protocol).unwrap_or(decider(protocol, &record.from));
    let merged = is_early && is_merged(protocol, issue);
    Ok(merged.then(|| (person.clone(), Need::Merged)))
}

/// Whether an event noted that the issue's code was merged.
fn is_merged(protocol: &Protocol, issue: &Issue) -> bool {
    let since = issue.counts_since();
    let mut notes = issue.annotations.iter().filter(|note| note.at >= since);
    notes.any(|note| {
        let mut facts = protocol.definition().merge_facts();
        facts.any(|fact| note.facts.contains_key(fact))
    })
}
