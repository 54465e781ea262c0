//! What a person has to decide about a merge: an approval that it lacks, or that it came before its
//! review.

use handoff_base::ids::AgentName;
use handoff_base::text::word;
use handoff_protocol::{Need, Protocol, State};

use crate::decision::requirement::{handed_in_again, lacks_approval};
use crate::decision::{approve_command, decider, disapproved, person};
use crate::record::{Issue, IssueStatus, Record, View};

/// The agent that decides about a handoff.
#[derive(Clone, Debug)]
pub struct Decider {
    /// The agent.
    pub agent: AgentName,
    /// The need of a handoff that is not stuck.
    pub need: Need,
    /// The command by which it carries out what the protocol advises about a stuck one.
    pub command: Option<String>,
    /// Why, if the handoff's own state does not say it.
    pub why: Option<String>,
    /// Whether a report on the handoff is with the agent, which decides by taking that up.
    pub by_report: bool,
}

impl From<(AgentName, Need)> for Decider {
    fn from((agent, need): (AgentName, Need)) -> Self {
        Self {
            agent,
            need,
            command: None,
            why: None,
            by_report: false,
        }
    }
}

/// Whether a person may have to decide about a handoff of this issue.
pub(crate) fn may_be_due(protocol: &Protocol, issue: &Issue) -> bool {
    protocol.definition().merge_takes_a_person()
        || is_merged(protocol, issue)
        || objects(issue, |_| true)
        || may_be_handed_in_again(protocol, issue)
}

/// Whether an open handoff may hand in code that a person rejected.
fn may_be_handed_in_again(protocol: &Protocol, issue: &Issue) -> bool {
    let definition = protocol.definition();
    let mut merge = definition.requirements.values().filter(|one| one.merge);
    issue.handoffs > 1
        && !issue.open.is_empty()
        && definition.people().next().is_some()
        && merge.any(|one| !one.undone_by.is_empty())
}

/// Whether a person ever rejected one of these completed handoffs.
fn objects(issue: &Issue, is_asked: impl Fn(u32) -> bool) -> bool {
    let mut notes = issue.annotations.iter();
    notes.any(|note| {
        let about = note.id.as_ref();
        about.is_some_and(|id| is_asked(id.number()))
            && note.approval.as_ref().is_some_and(|one| !one.approved)
    })
}

/// The person who has to decide about a handoff that is not stuck: they rejected the code with which
/// its issue ended or that it hands in again, its merge lacks their approval, or its code was merged while it, which comes
/// before the approval, is open.
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
    if issue.status == IssueStatus::Completed
        && objects(issue, |known| known == number)
        && let Some(one) = disapproved(view, protocol, issue)?.filter(|one| one.id == record.id)
    {
        return Ok(Some(Decider {
            command: Some(one.reopen()),
            why: Some(one.why()),
            ..(one.by, Need::Rejected).into()
        }));
    }
    let is_due = match issue.status {
        IssueStatus::Open => !state.is_terminal() && !state.is_stuck(),
        IssueStatus::Completed => state == State::Completed && definition.ends_unmerged(kind),
        IssueStatus::Cancelled => false,
    };
    if !is_due {
        return Ok(None);
    }
    if issue.status == IssueStatus::Open
        && let Some(one) = handed_in_again(view, protocol, &record)?
    {
        let by = (&record.id, one.by.as_str());
        return Ok(Some(Decider {
            command: Some(approve_command(view, protocol, by)?),
            why: Some(one.of_same_code()),
            ..(one.by, Need::Unapproved).into()
        }));
    }
    if definition.takes_approval(kind)
        && let Some(agent) = lacks_approval(view, protocol, &record)?
    {
        return Ok(Some((agent, Need::Unapproved).into()));
    }
    let is_early = !state.is_terminal() && definition.is_before_merge(kind);
    let person = person(protocol).unwrap_or(decider(protocol, &record.from));
    let merged = is_early && is_merged(protocol, issue);
    Ok(merged.then(|| (person.clone(), Need::Merged).into()))
}

/// The command by which an agent gives the approval that its findings kept back, once a person
/// turned these down and none that is left prevents it.
pub(crate) fn after_overruled(
    protocol: &Protocol,
    issue: &Issue,
    record: &Record,
) -> Option<String> {
    let (kind, from) = (&*record.contract_type, &record.from);
    let last = record.latest()?;
    let is_overruled = issue.status == IssueStatus::Open
        && matches!(record.state, State::Rejected | State::Cancelled)
        && protocol.is_person(last.by.as_str())
        && protocol.contract_type(kind)?.raises.is_some()
        && !issue.findings.iter().any(|one| one.state.is_unanswered());
    if !is_overruled {
        return None;
    }
    let mut undone = protocol.definition().requirements.values();
    let undone = undone.find(|one| {
        one.undone_by.iter().any(|undone| undone == kind) && !one.shown_by.is_empty()
    })?;
    let mut routes = protocol.routes_from(from.as_str()).flat_map(|route| {
        let contracts = route.contracts.iter();
        contracts.map(move |contract| (&route.to, contract))
    });
    let (to, approval) = routes.find(|(_, contract)| undone.shown_by.contains(contract))?;
    let named = protocol.named_type(from.as_str(), to.as_str(), approval);
    let named = named.map_or_else(String::new, |kind| format!(" --type {}", word(kind)));
    let key = &issue.issue;
    Some(format!(
        "git handoff send --issue {key} --to {to}{named} --as {from}"
    ))
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
