//! Which of its protocol's requirements an issue meets.

use handoff_base::ids::{HandoffId, IssueKey};
use handoff_base::short_id;
use handoff_protocol::{COMPLETED, Identity, Protocol, Requirement, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::record::{IssueStatus, Record};
use crate::refusal::{LookupRefusal, Refusal};
use crate::step::{Stop, View};

/// Whether a requirement is met, and by which handoff.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Requirement")]
pub struct Answered {
    /// The requirement's name.
    pub requirement: String,
    /// Whether it is met.
    pub met: bool,
    /// The handoff that decides; null if there is none.
    pub by: Option<HandoffId>,
    /// Why.
    pub why: String,
}

/// Checks for each requirement whether an issue meets it; if none is named, those of a merge. Given
/// a commit and its tree, a requirement must have been met for that code. `sender` tells who sent a
/// handoff's contract, by this identity, if that is known.
///
/// # Errors
/// [`LookupRefusal`], and [`Stop::Unreadable`] if a record or the
/// commit can't be read.
pub fn required<E>(
    view: &impl View<E>,
    key: &IssueKey,
    protocol: &Protocol,
    wanted: &[String],
    code: impl FnOnce() -> Result<Option<(String, String)>, E>,
    sender: impl Fn(&Record, Identity) -> Result<Option<String>, E>,
) -> Result<Vec<Answered>, Stop<E>> {
    let definition = protocol.definition();
    let issue = view.issue().map_err(Stop::Unreadable)?;
    let issue = issue.ok_or_else(|| Refusal::no_issue(key))?;
    let own = match &definition.merge[..] {
        [] => vec![COMPLETED.to_owned()],
        merge => merge.to_vec(),
    };
    let wanted = if wanted.is_empty() { &own } else { wanted };
    let code = code().map_err(Stop::Unreadable)?;
    let mut found = Vec::new();
    for name in wanted {
        if name == COMPLETED {
            let met = issue.status == IssueStatus::Completed;
            found.push(Answered {
                requirement: name.clone(),
                met,
                by: None,
                why: format!("issue {} is {}", issue.issue, issue.status.as_str()),
            });
            continue;
        }
        let requirement = definition.requirements.get(name).ok_or_else(|| {
            let known = definition.requirements.keys().cloned();
            LookupRefusal::NoRequirement {
                name: name.clone(),
                protocol: definition.name.clone(),
                known: known.chain([COMPLETED.to_owned()]).collect(),
            }
        })?;
        let deciding = deciding(view, issue.handoffs, requirement)?;
        let (mut met, mut why) = weigh(protocol, requirement, deciding.as_ref(), code.as_ref());
        if let Some(record) = deciding.as_ref().filter(|_| met)
            && let Some(one) = not_apart(view, requirement, record, &sender)?
        {
            (met, why) = (false, one);
        }
        found.push(Answered {
            requirement: name.clone(),
            met,
            by: deciding.map(|record| record.id),
            why,
        });
    }
    Ok(found)
}

/// The newest handoff that meets or undoes a requirement, among those that were not turned down.
fn deciding<E>(
    view: &impl View<E>,
    handoffs: u32,
    requirement: &Requirement,
) -> Result<Option<Record>, Stop<E>> {
    for number in (1..=handoffs).rev() {
        let Some(record) = view.record(number).map_err(Stop::Unreadable)? else {
            continue;
        };
        let mut types = requirement.shown_by.iter().chain(&requirement.undone_by);
        let turned_down = [State::Rejected, State::Cancelled].contains(&record.state);
        if !turned_down && types.any(|kind| *kind == record.contract_type) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// Why the sender of a handoff is not known to be another than those of the contracts that a
/// requirement keeps apart from it.
fn not_apart<E>(
    view: &impl View<E>,
    requirement: &Requirement,
    shown: &Record,
    sender: impl Fn(&Record, Identity) -> Result<Option<String>, E>,
) -> Result<Option<String>, Stop<E>> {
    let by = requirement.apart_by;
    let mut approver = None;
    for number in 1..shown.id.number() {
        let Some(record) = view.record(number).map_err(Stop::Unreadable)? else {
            continue;
        };
        if !requirement.apart_from.contains(&record.contract_type) {
            continue;
        }
        if approver.is_none() {
            approver = sender(shown, by).map_err(Stop::Unreadable)?;
        }
        let own = sender(&record, by).map_err(Stop::Unreadable)?;
        let name = by.as_str();
        let unknown = |id| format!("the {name} that sent {id} is not known");
        match (&approver, own) {
            (None, _) => return Ok(Some(unknown(&shown.id))),
            (_, None) => return Ok(Some(unknown(&record.id))),
            (Some(one), Some(other)) if *one == other => {
                let (shown, record) = (&shown.id, &record.id);
                return Ok(Some(format!(
                    "{shown} and {record} were sent by the same {name}, {other}"
                )));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn weigh(
    protocol: &Protocol,
    requirement: &Requirement,
    deciding: Option<&Record>,
    code: Option<&(String, String)>,
) -> (bool, String) {
    let Some(record) = deciding else {
        let types = requirement.shown_by.join(" or ");
        return (false, format!("nobody sent {types}"));
    };
    let said = format!("{} ({})", record.id, record.contract_type);
    if !requirement.shown_by.contains(&record.contract_type) {
        return (false, format!("it has to be shown after {said}"));
    }
    let word = record.status.as_deref();
    let state = word.and_then(|word| protocol.definition().status.get(word));
    let right = match &requirement.status[..] {
        [] => state.is_none_or(|state| *state == State::Completed),
        words => words.iter().any(|known| Some(known.as_str()) == word),
    };
    if !right {
        let word = word.unwrap_or("no status");
        return (false, format!("{said} says {word}"));
    }
    let by = format!("{said} by {}", record.from);
    match (code, &record.code) {
        (None, _) => (true, by),
        (Some((commit, tree)), Some(known))
            if known.commit == *commit || known.tree.as_ref() == Some(tree) =>
        {
            let (own, asked) = (short_id(&known.commit), short_id(commit));
            let same = if own == asked {
                String::new()
            } else {
                format!(", which has the files of {asked}")
            };
            (true, format!("{by}, of commit {own}{same}"))
        }
        (Some((commit, _)), Some(known)) => {
            let (known, commit) = (short_id(&known.commit), short_id(commit));
            (false, format!("{by} is about commit {known}, not {commit}"))
        }
        (Some(_), None) => {
            let text =
                format!("{by} does not say which code it is about: its branch was not known");
            (false, text)
        }
    }
}
