//! Findings of reviews: raised, answered, disputed and resolved by contracts.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::pointer::{lookup, parts};
use handoff_base::text::quoted;
use handoff_protocol::{ContractType, Event, FixFields, Outcome, Protocol, RaisedFields};
use serde_json::{Map, Value};

use crate::contract::Contract;
use crate::planner::Planner;
use crate::record::{FindingState, Issue, Record, ReviewFinding, View};
use crate::refusal::ContractRefusal;
use crate::value::{is_true, scalar};

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Applies what a contract says about findings. Refuses it if it answers an unknown finding,
    /// leaves one unanswered, or approves the work while one is open.
    pub(super) fn follow_findings(
        &self,
        issue: &mut Issue,
        kind: &ContractType,
        contract: &Contract,
    ) -> Result<(), ContractRefusal> {
        let id = self.id(issue.handoffs + 1);
        let faults = follow(self.protocol, &mut issue.findings, kind, contract, &id);
        if faults.is_empty() {
            return Ok(());
        }
        Err(ContractRefusal::Findings {
            issue: self.key.clone(),
            findings: faults,
        })
    }
}

/// The faults in what a contract says about an issue's review findings.
pub(super) fn answer_mismatches(
    protocol: &Protocol,
    issue: &Issue,
    kind: &ContractType,
    contract: &Contract,
) -> Vec<Finding> {
    let id = HandoffId::new(issue.issue.clone(), issue.handoffs + 1);
    follow(protocol, &mut issue.findings.clone(), kind, contract, &id)
}

/// Applies what a contract says about findings; returns its faults.
fn follow(
    protocol: &Protocol,
    known: &mut Vec<ReviewFinding>,
    kind: &ContractType,
    contract: &Contract,
    id: &HandoffId,
) -> Vec<Finding> {
    let outcome = protocol.outcome(kind, contract.status.as_deref());
    let is_done = outcome.event() == Event::Complete;
    let mut faults = Vec::new();
    if let Some(fields) = &kind.raises {
        faults.extend(raise(known, fields, &contract.value, id));
    }
    if let Some(fields) = &kind.fixes {
        faults.extend(answer(known, fields, &contract.value, id));
        if outcome == Outcome::Skip {
            let why = protocol.field(kind, |f| &f.summary);
            skip(known, text(&contract.value, why), id);
        }
        if is_done {
            let skipped = fields
                .skipped
                .as_deref()
                .map(|at| at.trim_start_matches('/'));
            let skipped = skipped
                .map(|name| format!(" (`{name}`: true)"))
                .unwrap_or_default();
            let ways = ways(fields.finding.as_deref(), fields.location.as_deref());
            let list = fields.list.trim_start_matches('/').replace('/', ".");
            let open = known.iter().filter(|one| one.state.is_unanswered());
            let unanswered = unanswered(known, &fields.list, "is not answered");
            faults.extend(unanswered.zip(open).map(|(finding, open)| {
                let entry = example(fields, open);
                finding.fix(format!(
                    "answer each finding as fixed, or as skipped{skipped} with the reason: {ways}, such as `--set {list}='{entry}'`; `git handoff new` lists them"
                ))
            }));
        }
    }
    if kind.settles && outcome == Outcome::Complete {
        let sender = contract.from.as_ref().or(kind.implied_from.as_ref());
        take_back(protocol, known, sender);
        faults.extend(settle(known, id));
    }
    faults
}

/// The entries of a list, with their pointers.
fn entries<'v>(value: &'v Value, list: &str) -> Vec<(String, &'v Value)> {
    let entries = value.pointer(list).and_then(Value::as_array);
    let entries = entries.into_iter().flatten().enumerate();
    entries
        .map(|(i, entry)| (format!("{list}/{i}"), entry))
        .collect()
}

/// A text of an entry, trimmed.
fn text(entry: &Value, at: Option<&str>) -> Option<String> {
    let text = scalar(lookup(entry, at?)?)?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Adds a review's findings. A known one becomes disputed if it was answered before.
fn raise(
    known: &mut Vec<ReviewFinding>,
    fields: &RaisedFields,
    value: &Value,
    id: &HandoffId,
) -> Vec<Finding> {
    let mut faults = Vec::new();
    for (at, entry) in entries(value, &fields.list) {
        let Some(said) = text(entry, Some(&fields.text)) else {
            continue;
        };
        let (place, named) = place_of(known, fields, entry, &said);
        match (place, named) {
            (Some(place), _) => dispute(&mut known[place], said, id),
            (None, Some(name)) => {
                let at = format!("{at}{}", fields.finding.as_deref().unwrap_or_default());
                let fix = ways(fields.finding.as_deref(), None);
                faults.push(unknown(known, &at, &quoted(&name)).fix(fix));
            }
            (None, None) => known.push(ReviewFinding {
                id: format!("F{}", known.len() + 1),
                state: FindingState::Open,
                raised_by: id.clone(),
                objector: None,
                location: text(entry, fields.location.as_deref()),
                severity: text(entry, fields.severity.as_deref()),
                text: said,
                answered_by: None,
                answer: None,
                skipped: false,
                commit: None,
                disputed_by: None,
                dispute: None,
                resolved_by: None,
            }),
        }
    }
    faults
}

/// The index of the known finding that an entry raises again, and the id that the entry names.
fn place_of(
    known: &[ReviewFinding],
    fields: &RaisedFields,
    entry: &Value,
    said: &str,
) -> (Option<usize>, Option<String>) {
    let location = text(entry, fields.location.as_deref());
    let named = text(entry, fields.finding.as_deref());
    let place = known.iter().position(|f| match &named {
        Some(name) => f.id == *name,
        None => f.location == location && f.text == said,
    });
    (place, named)
}

/// The findings that a review raises again although they were skipped with a reason, each with its
/// pointer in the contract.
pub fn dismissed_before<'i>(
    issue: &'i Issue,
    kind: &ContractType,
    contract: &Contract,
) -> Vec<(String, &'i ReviewFinding)> {
    let Some(fields) = kind.raises.as_ref().filter(|fields| fields.once) else {
        return Vec::new();
    };
    let entries = entries(&contract.value, &fields.list).into_iter();
    let again = entries.filter_map(|(at, entry)| {
        let said = text(entry, Some(&fields.text))?;
        let place = place_of(&issue.findings, fields, entry, &said).0?;
        Some((at, &issue.findings[place]))
    });
    let is_dismissed = |f: &ReviewFinding| {
        f.skipped && matches!(f.state, FindingState::Answered | FindingState::Resolved)
    };
    again.filter(|(_, finding)| is_dismissed(finding)).collect()
}

/// Raises a known finding again.
fn dispute(finding: &mut ReviewFinding, said: String, id: &HandoffId) {
    match finding.state {
        FindingState::Open if finding.objector.is_none() => {}
        FindingState::Open | FindingState::Withdrawn => {
            finding.state = FindingState::Open;
            finding.raised_by = id.clone();
            finding.objector = None;
        }
        FindingState::Answered | FindingState::Disputed | FindingState::Resolved => {
            finding.state = FindingState::Disputed;
            finding.disputed_by = Some(id.clone());
            finding.dispute = Some(said).filter(|said| *said != finding.text);
            finding.resolved_by = None;
            finding.objector = None;
        }
    }
}

/// Answers findings: those that an entry names by id or location. Those left without a location are
/// answered by entries that name none, if there are as many, or if answers have no ids here.
fn answer(
    known: &mut [ReviewFinding],
    fields: &FixFields,
    value: &Value,
    id: &HandoffId,
) -> Vec<Finding> {
    let mut faults = Vec::new();
    let unplaced = |f: &ReviewFinding| f.state.is_unanswered() && f.location.is_none();
    let fixes = entries(value, &fields.list);
    // If there are no findings, they were raised before the protocol recorded them.
    let is_any = !known.is_empty();
    let any_unplaced = known.iter().any(unplaced);
    let mut answered: Vec<usize> = Vec::new();
    let mut unnamed = Vec::new();
    for (at, entry) in &fixes {
        let named = text(entry, fields.finding.as_deref());
        let location = text(entry, fields.location.as_deref());
        let meant = |f: &ReviewFinding| match (&named, &location) {
            (Some(name), _) => f.id == *name,
            (None, Some(location)) if f.location.is_some() => f.location.as_ref() == Some(location),
            (None, Some(location)) => f.state.is_unanswered() && begins_with(&f.text, location),
            (None, None) => false,
        };
        let mut places: Vec<usize> = (0..known.len()).filter(|i| meant(&known[*i])).collect();
        if places.is_empty() {
            let (key, which) = match (&named, &location) {
                (Some(name), _) => (&fields.finding, quoted(name)),
                (None, Some(at)) => (&fields.location, format!("at {}", quoted(at))),
                (None, None) if fields.location.is_some() => {
                    (&fields.location, "without a location".to_owned())
                }
                (None, None) => (&fields.finding, "without an id".to_owned()),
            };
            if named.is_some() || is_any && !any_unplaced {
                let at = format!("{at}{}", key.as_deref().unwrap_or_default());
                let fix = ways(fields.finding.as_deref(), fields.location.as_deref());
                faults.push(unknown(known, &at, &which).fix(fix));
                continue;
            }
        }
        let is_about = |i: &usize| known[*i].state.is_unanswered();
        if named.is_none() && !places.iter().any(is_about) {
            unnamed.push(*entry);
        }
        places.retain(|i| apply(&mut known[*i], fields, entry));
        answered.extend(places);
    }
    let left = (0..known.len()).filter(|i| unplaced(&known[*i]) && !answered.contains(i));
    let left: Vec<usize> = left.collect();
    match (&left[..], &unnamed[..]) {
        (_, []) => {}
        ([only], [.., entry]) if !apply(&mut known[*only], fields, entry) => {}
        _ if unnamed.len() >= left.len() || fields.finding.is_none() => answered.extend(left),
        _ => {}
    }
    for i in answered {
        known[i].state = FindingState::Answered;
        known[i].answered_by = Some(id.clone());
    }
    faults
}

/// Notes an entry's answer to a finding; false if it is none.
fn apply(finding: &mut ReviewFinding, fields: &FixFields, entry: &Value) -> bool {
    let said = text(entry, Some(&fields.text));
    let skipped = fields.skipped.as_deref().and_then(|at| entry.pointer(at));
    let skipped = skipped.is_some_and(is_true);
    // Skipping a finding takes a reason.
    let is_answer = finding.state.is_unanswered() && (!skipped || said.is_some());
    if is_answer {
        finding.commit = text(entry, fields.commit.as_deref());
        (finding.answer, finding.skipped) = (said, skipped);
    }
    is_answer
}

/// Skips all unanswered findings, with the reason of the contract as a whole.
fn skip(known: &mut [ReviewFinding], why: Option<String>, id: &HandoffId) {
    for finding in known.iter_mut().filter(|f| f.state.is_unanswered()) {
        finding.state = FindingState::Answered;
        finding.answered_by = Some(id.clone());
        (finding.answer, finding.commit, finding.skipped) = (why.clone(), None, true);
    }
}

/// Ends the objections of reviews that others rejected or cancelled, if the agent that raised them,
/// or a person, approves the work.
fn take_back(protocol: &Protocol, known: &mut [ReviewFinding], by: Option<&AgentName>) {
    let is_person = by.is_some_and(|by| protocol.is_person(by.as_str()));
    for finding in known.iter_mut().filter(|f| f.objector.is_some()) {
        if !is_person && finding.objector.as_ref() != by {
            continue;
        }
        match finding.state {
            FindingState::Open => finding.state = FindingState::Withdrawn,
            FindingState::Disputed => agree(finding),
            _ => {}
        }
    }
}

/// Resolves the answered findings; the others prevent the approval and are returned.
fn settle(known: &mut [ReviewFinding], id: &HandoffId) -> Vec<Finding> {
    let open = unanswered(known, "", "prevents the approval");
    let open: Vec<Finding> = open
        .map(|finding| finding.fix("send it to be fixed; an answer to it can be approved"))
        .collect();
    for finding in known {
        if finding.state == FindingState::Answered {
            finding.state = FindingState::Resolved;
            finding.resolved_by = Some(id.clone());
        }
    }
    open
}

/// A fault for each finding that is open or disputed.
fn unanswered<'f>(
    known: &'f [ReviewFinding],
    at: &'f str,
    why: &'f str,
) -> impl Iterator<Item = Finding> + 'f {
    let open = known.iter().filter(|f| f.state.is_unanswered());
    open.map(move |f| {
        let by = f
            .disputed_by
            .as_ref()
            .map(|by| format!(", disputed in {by}"));
        let text = format!(
            "{}, raised in {}{}, {why}: {}",
            f.name(),
            f.raised_by,
            by.unwrap_or_default(),
            f.text
        );
        Finding::error(FindingCode::FindingOpen, at, text)
    })
}

/// A fault: the issue has no such finding.
fn unknown(known: &[ReviewFinding], at: &str, which: &str) -> Finding {
    let open = known.iter().filter(|f| f.state.is_unanswered());
    let open: Vec<String> = open.map(ReviewFinding::name).collect();
    let open = match &open[..] {
        [] => "none is open".to_owned(),
        open => format!("open: {}", open.join("; ")),
    };
    let text = format!("the issue has no finding {which}; {open}");
    Finding::error(FindingCode::FindingUnknown, at, text)
}

/// An entry that answers a finding.
fn example(fields: &FixFields, finding: &ReviewFinding) -> Value {
    let mut entry = Value::Object(Map::new());
    let mut set = |at: Option<&str>, text: &str| {
        let Some(at) = at else { return };
        let mut here = &mut entry;
        for part in parts(at) {
            here = &mut here[part.as_str()];
        }
        *here = text.into();
    };
    if fields.finding.is_none() {
        let location = finding.location.as_deref();
        set(fields.location.as_deref(), location.unwrap_or("WHERE"));
    }
    set(fields.finding.as_deref(), &finding.id);
    set(Some(&fields.text), "WHAT WAS DONE");
    entry
}

/// How a contract with these fields names a finding.
fn ways(finding: Option<&str>, location: Option<&str>) -> String {
    let way = |at: Option<&str>, what: &str| {
        let name = at?.trim_start_matches('/').replace('/', ".");
        Some(format!("by its {what} (`{name}`)"))
    };
    let ways = [way(finding, "id"), way(location, "exact location")];
    let ways: Vec<String> = ways.into_iter().flatten().collect();
    format!("name a finding {}", ways.join(" or "))
}

/// Whether a text starts with this location, and the location ends there.
fn begins_with(text: &str, location: &str) -> bool {
    let rest = text.strip_prefix(location).map(|rest| rest.chars().next());
    rest.is_some_and(|next| next.is_none_or(|c| !c.is_alphanumeric()))
}

/// Ends the dispute about an answer.
fn agree(finding: &mut ReviewFinding) {
    finding.state = FindingState::Answered;
    (finding.disputed_by, finding.dispute) = (None, None);
}

/// Undoes the effect of a rejected or cancelled handoff on findings. Its objections stay, unless
/// the handoff was taken back.
pub(super) fn undo(known: &mut [ReviewFinding], record: &Record, is_taken_back: bool) {
    let id = &record.id;
    let by = |who: &Option<HandoffId>| who.as_ref() == Some(id);
    for finding in known {
        if by(&finding.resolved_by) {
            finding.state = FindingState::Answered;
            finding.resolved_by = None;
            continue;
        }
        if finding.state == FindingState::Answered && by(&finding.answered_by) {
            finding.state = match finding.disputed_by {
                Some(_) => FindingState::Disputed,
                None => FindingState::Open,
            };
            continue;
        }
        let is_disputed = finding.state == FindingState::Disputed && by(&finding.disputed_by);
        let is_raised = finding.state == FindingState::Open && finding.raised_by == *id;
        if (is_disputed || is_raised) && !is_taken_back {
            finding.objector = Some(record.from.clone());
        } else if is_disputed {
            agree(finding);
        } else if is_raised {
            finding.state = FindingState::Withdrawn;
        }
    }
}
