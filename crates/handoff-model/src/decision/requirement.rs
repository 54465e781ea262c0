//! Evaluates a protocol's requirements for an issue.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use handoff_base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff_base::text::quoted;
use handoff_base::{Code, Moment, short_id};
use handoff_protocol::{COMPLETED, Identity, Outcome, PERSON, Protocol, Requirement, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::decision::person;
use crate::record::{Annotation, Approval, Issue, IssueStatus, Record, View};
use crate::refusal::{LookupRefusal, Refusal};
use crate::step::Stop;

/// The verdict on a requirement.
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
    /// What a person can do about it.
    #[serde(skip)]
    pub remedy: Remedy,
}

/// What a person can do about an approval that is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing.
    #[default]
    None,
    /// Approve this handoff; only this person may, if one is named.
    Approve(HandoffId, Option<AgentName>),
    /// Approve this handoff again as this person, for the commit in question.
    ApproveCode(HandoffId, AgentName),
    /// Leave the approval of this handoff to another person.
    Another(HandoffId),
    /// Have another one send this handoff's contract again.
    Again(HandoffId),
}

/// The code that is judged, for which requirements must be met.
pub struct JudgedCode<'a> {
    /// The commit.
    pub commit: String,
    /// Why a statement about other code does not apply to this code; `Ok` if it does, because it is
    /// the same commit or makes the same changes.
    pub other: &'a dyn Fn(&Code) -> Result<(), String>,
}

/// Evaluates requirements for an issue, by default those for a merge. If code is given, they must
/// have been met for that code. `sender` returns the identity of who sent a contract or gave an
/// approval, if it is known.
///
/// # Errors
/// [`LookupRefusal`], and [`Stop::Unreadable`] if a record can't be read.
pub fn required<E>(
    view: &impl View<E>,
    key: &IssueKey,
    protocol: &Protocol,
    wanted: &[String],
    code: Option<&JudgedCode<'_>>,
    sender: impl Fn(Said<'_>, Identity) -> Result<Option<String>, E>,
) -> Result<Vec<Answered>, Stop<E>> {
    let definition = protocol.definition();
    let issue = view.issue().map_err(Stop::Unreadable)?;
    let issue = issue.ok_or_else(|| Refusal::no_issue(key))?;
    let merge = definition.requirements.iter().filter(|(_, of)| of.merge);
    let mut own: Vec<String> = merge.map(|(name, _)| name.clone()).collect();
    if own.is_empty() {
        own.push(COMPLETED.to_owned());
    }
    let wanted = if wanted.is_empty() { &own } else { wanted };
    let mut found = Vec::new();
    for name in wanted {
        if name == COMPLETED {
            found.push(completed(&issue));
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
        if !requirement.approved_by.is_empty() {
            found.push(Answered {
                requirement: name.clone(),
                ..approved(view, protocol, requirement, code, &sender)?
            });
            continue;
        }
        let types = [&requirement.shown_by, &requirement.undone_by];
        let deciding = newest_of(view, protocol, issue.handoffs, types)?;
        let (mut met, mut why) = match &deciding {
            Some(record) => weigh(protocol, (name, requirement), record, code),
            None => (
                false,
                nobody_sent(view, issue.handoffs, &requirement.shown_by)?,
            ),
        };
        let mut remedy = Remedy::None;
        if let Some(record) = deciding.as_ref().filter(|_| met)
            && let Some(reopened) = issue.reopened_since(&record.id)
        {
            (met, why) = (false, format!("{why}; since then {reopened}"));
        }
        if let Some(record) = deciding.as_ref().filter(|_| met)
            && let Some(one) =
                disapproval(view, protocol, requirement, record, code).map_err(Stop::Unreadable)?
        {
            why = if met {
                one.to_string()
            } else {
                format!("{why}; {one}")
            };
            met = false;
            remedy = Remedy::Approve(record.id.clone(), Some(one.by));
        }
        if let Some(record) = deciding.as_ref().filter(|_| met)
            && let Some(one) = objection(view, protocol, (requirement, record), code)?
        {
            (met, why) = (false, one);
        }
        if let Some(record) = deciding.as_ref().filter(|_| met)
            && let shown = Said::Contract(record)
            && let Some(one) = not_apart(view, requirement, shown, record.id.number(), &sender)?
        {
            (met, why) = (false, one);
            remedy = Remedy::Again(record.id.clone());
        }
        found.push(Answered {
            requirement: name.clone(),
            met,
            by: deciding.map(|record| record.id),
            why,
            remedy,
        });
    }
    Ok(found)
}

/// Whether an issue is completed.
fn completed(issue: &Issue) -> Answered {
    Answered {
        requirement: COMPLETED.to_owned(),
        met: issue.status == IssueStatus::Completed,
        by: None,
        why: format!("issue {} is {}", issue.issue, issue.status.as_str()),
        remedy: Remedy::None,
    }
}

/// A person's objection to code: a disapproval, or the rejection of a pending handoff.
#[derive(Clone, Debug)]
pub struct Objection {
    /// The rejected handoff.
    pub id: HandoffId,
    /// The person.
    pub by: AgentName,
    at: Moment,
    code: Option<Code>,
    text: String,
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.why())
    }
}

impl Objection {
    /// What was said, by whom: `disapproved at 1a2b3c4d5e by maintainer: "untested"`.
    pub(crate) fn why(&self) -> String {
        self.text.clone()
    }

    /// It, about a handoff of the same code.
    pub fn of_same_code(&self) -> String {
        let same = match &self.code {
            Some(_) => "; the code is the same",
            None => "",
        };
        format!("{self}{same}")
    }

    /// The command by which its person takes up an issue that ended with this code.
    pub(crate) fn reopen(&self) -> String {
        let (issue, by) = (self.id.issue(), &self.by);
        format!("git handoff reopen {issue} --as {by} --reason WHY")
    }

    fn new(
        of: (&HandoffId, &AgentName),
        at: Moment,
        no: (String, &str),
        code: Option<&Code>,
    ) -> Self {
        let ((id, by), (done, why)) = (of, no);
        let why = Some(why).filter(|why| !why.is_empty());
        let why = why.map_or_else(String::new, |why| format!(": {}", quoted(why)));
        Self {
            text: format!("{done} by {by}{why}"),
            code: code.cloned(),
            id: id.clone(),
            by: by.clone(),
            at,
        }
    }

    /// Whether an approval by the same person ends it: of the same code, or of newer code, which a
    /// later handoff handed in or which is judged.
    fn ends_by(
        &self,
        (id, code): (&HandoffId, Option<&Code>),
        handed_in: Option<&Code>,
        asked: Option<&JudgedCode<'_>>,
    ) -> bool {
        match (&self.code, code) {
            (None, _) => id.number() >= self.id.number(),
            (Some(_), None) => false,
            (Some(own), Some(code)) if is_same(own, code) => true,
            (Some(_), Some(code)) => match asked {
                Some(asked) => (asked.other)(code).is_ok(),
                None => {
                    let is_own = handed_in.is_some_and(|own| is_same(own, code));
                    is_own && id.number() > self.id.number()
                }
            },
        }
    }
}

/// Whether two commits are one, or have the same files.
fn is_same(one: &Code, other: &Code) -> bool {
    one.commit == other.commit || one.tree.is_some() && one.tree == other.tree
}

/// The objections by persons that stand, those of contracts which raise findings excepted: who
/// rejects these takes the findings back.
fn objections<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    requirement: &Requirement,
    issue: &Issue,
    asked: Option<&JudgedCode<'_>>,
) -> Result<Vec<Objection>, E> {
    let (mut found, mut handed_in) = (Vec::new(), HashMap::new());
    for number in 1..=issue.handoffs {
        let Some(record) = view.record(number)? else {
            continue;
        };
        handed_in.extend(record.code.clone().map(|code| (number, code)));
        let kind = &record.contract_type;
        let raises = protocol
            .contract_type(kind)
            .is_some_and(|kind| kind.raises.is_some());
        let counts = requirement.shown_by.contains(kind) || requirement.undone_by.contains(kind);
        if let Some(last) = record.rejection()
            && protocol.is_person(last.by.as_str())
            && counts
            && !raises
            && record.code.is_some()
        {
            let at = record.code.as_ref().map(|code| short_id(&code.commit));
            let no = format!("({kind}) was rejected at {}", at.unwrap_or_default());
            let why = last.reason.as_deref().unwrap_or_default();
            let of = (&record.id, &last.by);
            found.push(Objection::new(of, last.at, (no, why), record.code.as_ref()));
        }
    }
    for note in &issue.annotations {
        let (Some(id), Some(said)) = (&note.id, &note.approval) else {
            continue;
        };
        if said.approved {
            let (said, own) = ((id, said.code.as_ref()), handed_in.get(&id.number()));
            let is_after = |one: &Objection| one.by == note.by && one.at <= note.at;
            found.retain(|one| !(is_after(one) && one.ends_by(said, own, asked)));
        } else {
            let no = (said.done(), &*note.note);
            found.push(Objection::new(
                (id, &note.by),
                note.at,
                no,
                said.code.as_ref(),
            ));
        }
    }
    Ok(found)
}

/// A person's objection to the code of a contract that meets the requirement, or to code that makes
/// the same change.
///
/// # Errors
/// If a record can't be read.
pub fn disapproval<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    requirement: &Requirement,
    approval: &Record,
    asked: Option<&JudgedCode<'_>>,
) -> Result<Option<Objection>, E> {
    let Some(issue) = view.issue()? else {
        return Ok(None);
    };
    for one in objections(view, protocol, requirement, &issue, asked)?
        .into_iter()
        .rev()
    {
        let record = view.record(one.id.number())?;
        let counts = record.is_some_and(|record| {
            let kind = &record.contract_type;
            requirement.shown_by.contains(kind) || requirement.undone_by.contains(kind)
        });
        let is_of_it = match (&one.code, &approval.code) {
            (Some(own), Some(code)) => {
                is_same(own, code) || asked.is_some_and(|asked| (asked.other)(own).is_ok())
            }
            (own, code) => own.is_none() && code.is_none(),
        };
        if counts && is_of_it && protocol.is_person(one.by.as_str()) {
            return Ok(Some(one));
        }
    }
    Ok(None)
}

/// A person's objection to the code that an open handoff hands in again, if a merge takes that into
/// account.
///
/// # Errors
/// If a record can't be read.
pub(crate) fn handed_in_again<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    record: &Record,
) -> Result<Option<Objection>, E> {
    let kind = protocol.contract_type(&record.contract_type);
    if record.code.is_none() || kind.is_none_or(|kind| kind.raises.is_some()) {
        return Ok(None);
    }
    let requirements = protocol.definition().requirements.values();
    for requirement in requirements.filter(|one| one.merge) {
        let hands_in = requirement.undone_by.contains(&record.contract_type);
        if hands_in && let Some(one) = disapproval(view, protocol, requirement, record, None)? {
            return Ok(Some(one));
        }
    }
    Ok(None)
}

/// A person's objection to the code with which an issue ended, if a merge takes that into account.
///
/// # Errors
/// If a record can't be read.
pub(crate) fn disapproved<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    issue: &Issue,
) -> Result<Option<Objection>, E> {
    for number in (1..=issue.handoffs).rev() {
        let Some(record) = view.record(number)?.filter(|one| !one.is_turned_down()) else {
            continue;
        };
        let requirements = protocol.definition().requirements.values();
        for requirement in requirements.filter(|one| one.merge) {
            let shows = requirement.shown_by.contains(&record.contract_type);
            if shows && let Some(one) = disapproval(view, protocol, requirement, &record, None)? {
                return Ok(Some(one));
            }
        }
    }
    Ok(None)
}

/// The newest handoff that meets or undoes a requirement. One that meets it no longer counts when
/// it was rejected or cancelled; one that undoes it counts unless its sender or a person took it
/// back.
fn newest_of<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    handoffs: u32,
    [shown, undone]: [&Vec<String>; 2],
) -> Result<Option<Record>, Stop<E>> {
    if shown.is_empty() && undone.is_empty() {
        return Ok(None);
    }
    for number in (1..=handoffs).rev() {
        let Some(record) = view.record(number).map_err(Stop::Unreadable)? else {
            continue;
        };
        let counts = if shown.contains(&record.contract_type) {
            !record.is_turned_down()
        } else {
            undone.contains(&record.contract_type) && !record.is_taken_back(protocol)
        };
        if counts {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// Why an approval does not count, if a review by somebody else objects to code that makes the same
/// change, its author has neither taken it back nor approved since, and no person approved the code.
fn objection<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    (requirement, approval): (&Requirement, &Record),
    asked: Option<&JudgedCode<'_>>,
) -> Result<Option<String>, Stop<E>> {
    let settles = |record: &Record| {
        let kind = &record.contract_type;
        let is_word = requirement.shown_by.contains(kind)
            || protocol
                .contract_type(kind)
                .is_some_and(|kind| kind.settles);
        is_word && !record.is_taken_back(protocol)
    };
    let is_objection = |record: &Record| {
        let kind = &record.contract_type;
        requirement.undone_by.contains(kind)
            && !requirement.shown_by.contains(kind)
            && !requirement.apart_from.contains(kind)
            && protocol
                .contract_type(kind)
                .is_some_and(|kind| kind.raises.is_some() || kind.reviews.is_some())
            && !record.is_taken_back(protocol)
    };
    let Some(approved) = &approval.code else {
        return Ok(None);
    };
    let is_same = |code: &Code| {
        self::is_same(code, approved) || asked.is_some_and(|asked| (asked.other)(code).is_ok())
    };
    let issue = view.issue().map_err(Stop::Unreadable)?;
    let overruled = issue
        .as_ref()
        .and_then(|issue| overruled_at(issue, protocol, is_same));
    let mut settled: Vec<AgentName> = Vec::new();
    let mut stands: Option<(HandoffId, AgentName)> = None;
    for number in (1..=issue.as_ref().map_or(0, |issue| issue.handoffs)).rev() {
        let Some(record) = view.record(number).map_err(Stop::Unreadable)? else {
            continue;
        };
        if settles(&record) {
            settled.push(record.from.clone());
        }
        let is_before = number < approval.id.number();
        let is_overruled = overruled > record.sent_at();
        if is_before
            && stands.is_none()
            && is_objection(&record)
            && !settled.contains(&record.from)
            && !is_overruled
        {
            stands = Some((record.id.clone(), record.from.clone()));
        }
        // A contract that reviews no commit has the sender's own newest one: its objection is to what
        // was handed to it.
        let names_code = stands.as_ref().is_none_or(|(id, _)| *id != record.id)
            || protocol
                .contract_type(&record.contract_type)
                .is_some_and(|kind| kind.reviews.is_some());
        if let Some((id, by)) = &stands
            && names_code
            && record.code.as_ref().is_some_and(is_same)
        {
            let short = short_id(&approved.commit);
            let approval = &approval.id;
            let person = protocol.is_person(by.as_str()).then_some(by);
            let end = person
                .or_else(|| self::person(protocol))
                .map_or_else(String::new, |person| {
                    format!(", or a person's: `git handoff approve {approval} --as {person}`")
                });
            return Ok(Some(format!(
                "{by} objects with {id} to commit {short}, which {approval} approves; the objection ends by the approval of other code, by {by}'s own approval{end}"
            )));
        }
    }
    Ok(None)
}

/// When a person approved such code last, and said nothing else since.
fn overruled_at(
    issue: &Issue,
    protocol: &Protocol,
    is_same: impl Fn(&Code) -> bool,
) -> Option<Moment> {
    let mut spoken = HashSet::new();
    let said = issue.annotations.iter().rev().filter_map(|note| {
        let said = note.approval.as_ref()?;
        let is_person = protocol.is_person(note.by.as_str());
        (is_person && spoken.insert(&note.by)).then_some((note.at, said))
    });
    let approves = |said: &Approval| said.approved && said.code.as_ref().is_some_and(&is_same);
    let approved = said.filter(|(_, said)| approves(said));
    approved.map(|(at, _)| at).max()
}

/// A contract or an approval whose author matters.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// The contract of a handoff.
    Contract(&'a Record),
    /// A person's approval of a handoff.
    Approval(&'a HandoffId, &'a Annotation),
}

impl<'a> Said<'a> {
    /// The verb and the handoff: `sent` and 7.3.
    fn parts(self) -> (&'static str, &'a HandoffId) {
        match self {
            Said::Contract(record) => ("sent", &record.id),
            Said::Approval(id, _) => ("approved", id),
        }
    }
}

/// Whether a handoff can be approved: not if it was rejected or cancelled.
fn can_be_approved<E>(
    view: &impl View<E>,
    requirement: &Requirement,
    id: &HandoffId,
) -> Result<bool, Stop<E>> {
    let record = view.record(id.number()).map_err(Stop::Unreadable)?;
    let shown = &requirement.shown_by;
    Ok(record.is_some_and(|record| {
        !record.is_turned_down() && (shown.is_empty() || shown.contains(&record.contract_type))
    }))
}

/// The newest handoff from this number on that can be approved.
fn to_approve<E>(
    view: &impl View<E>,
    requirement: &Requirement,
    issue: &Issue,
    since: u32,
) -> Result<Option<HandoffId>, Stop<E>> {
    for number in (since.max(1)..=issue.handoffs).rev() {
        let id = HandoffId::new(issue.issue.clone(), number);
        if can_be_approved(view, requirement, &id)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The person whose approval the merge of this open handoff lacks: one who has not decided about it
/// yet.
///
/// # Errors
/// If a record can't be read.
pub(super) fn lacks_approval<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    record: &Record,
) -> Result<Option<AgentName>, E> {
    let merge = protocol.definition().requirements.values();
    for requirement in merge.filter(|one| one.merge && !one.approved_by.is_empty()) {
        let answered = match approved(view, protocol, requirement, None, &said_by_worker) {
            Ok(answered) => answered,
            Err(Stop::Unreadable(error)) => return Err(error),
            Err(Stop::Refused(_)) => continue,
        };
        let is_due = match &answered.remedy {
            Remedy::Approve(id, None) | Remedy::Another(id) => id == &record.id,
            // A disapproval recorded with an earlier handoff is about earlier work.
            Remedy::Approve(id, Some(_)) => id == &record.id && answered.by.as_ref() != Some(id),
            Remedy::None | Remedy::ApproveCode(..) | Remedy::Again(_) => false,
        };
        if is_due && !answered.met {
            return Ok(approver(protocol, requirement));
        }
    }
    Ok(None)
}

/// Who is asked for an approval: the agent that the requirement names, else a person.
fn approver(protocol: &Protocol, requirement: &Requirement) -> Option<AgentName> {
    let named = requirement.approved_by.iter().find(|one| *one != PERSON);
    let named = named.and_then(|one| one.parse().ok());
    named.or_else(|| person(protocol).cloned())
}

/// The requirement for which an approval by this worker does not count, and the handoff that the
/// worker sent.
///
/// # Errors
/// If a record can't be read.
pub fn kept_apart<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    worker: &WorkerId,
) -> Result<Option<(String, HandoffId)>, E> {
    let asked = protocol.definition().requirements.iter();
    let apart = |one: &Requirement| !one.approved_by.is_empty() && one.apart_by == Identity::Worker;
    let asked: Vec<_> = asked.filter(|(_, one)| apart(one)).collect();
    let handoffs = match view.shared_issue()? {
        Some(issue) if !asked.is_empty() => issue.handoffs,
        _ => 0,
    };
    for number in 1..=handoffs {
        let record = view.shared_record(number)?;
        let sent = record.filter(|record| {
            let sent = record.transitions.first();
            sent.is_some_and(|sent| sent.worker.as_ref() == Some(worker))
        });
        let Some(record) = sent else { continue };
        let of_kind = |one: &Requirement| one.apart_from.contains(&record.contract_type);
        if let Some((name, _)) = asked.iter().find(|(_, one)| of_kind(one)) {
            return Ok(Some(((*name).clone(), record.id.clone())));
        }
    }
    Ok(None)
}

/// The requirement of a merge that a contract does not meet because of the worker that sends it, and
/// why.
///
/// # Errors
/// If a record can't be read.
pub fn sent_in_vain<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    sent: &Record,
) -> Result<Option<(String, String)>, E> {
    let asked = protocol.definition().requirements.iter();
    let asked = asked.filter(|(_, one)| {
        let is_shown = one.approved_by.is_empty() && one.shown_by.contains(&sent.contract_type);
        one.merge && is_shown && one.apart_by == Identity::Worker
    });
    for (name, requirement) in asked {
        let shown = Said::Contract(sent);
        match not_apart(view, requirement, shown, sent.id.number(), said_by_worker) {
            Ok(None) | Err(Stop::Refused(_)) => {}
            Ok(Some(why)) => return Ok(Some((name.clone(), why))),
            Err(Stop::Unreadable(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// How another one sends a contract again that does not meet a requirement: what ends the handoff
/// first, and the command.
pub fn send_again(record: &Record, by: Identity) -> Option<String> {
    let (id, from, key) = (&record.id, &record.from, record.id.issue());
    let to = record.intended.as_ref().unwrap_or(&record.to);
    let end = match record.state {
        State::Pending => format!("git handoff reject {id} --as {} --reason WHY", record.to),
        state if !state.is_terminal() => {
            format!("git handoff cancel {id} --as {from} --reason WHY")
        }
        _ => return None,
    };
    let other = match by {
        Identity::Worker => " --worker NAME",
        Identity::Committer | Identity::Key => "",
    };
    Some(format!(
        "`{end}`; then another {} sends it again: `git handoff send --issue {key} --to {to} --as {from}{other}`",
        by.as_str()
    ))
}

/// The command by which a person approves a handoff: as another worker, if the reader's approval
/// would not count.
///
/// # Errors
/// If a record can't be read.
pub fn approve_command<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    (id, by): (&HandoffId, &str),
) -> Result<String, E> {
    let apart = view.reader().map(|own| kept_apart(view, protocol, own));
    let is_apart = apart.transpose()?.flatten().is_some();
    let worker = if is_apart { " --worker NAME" } else { "" };
    Ok(format!("git handoff approve {id} --as {by}{worker}"))
}

/// The worker that sent a contract or recorded an approval, if it is known.
///
/// # Errors
/// It does not fail.
pub fn said_by_worker<E>(said: Said<'_>, _: Identity) -> Result<Option<String>, E> {
    let worker = match said {
        Said::Contract(record) => record.transitions.first().map(|sent| &sent.worker),
        Said::Approval(_, note) => Some(&note.worker),
    };
    Ok(worker.and_then(|worker| worker.as_ref().map(ToString::to_string)))
}

/// The verdict on a requirement for approval. One valid approval suffices, but a disapproval
/// prevails until the same person approves.
fn approved<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    requirement: &Requirement,
    code: Option<&JudgedCode<'_>>,
    sender: &impl Fn(Said<'_>, Identity) -> Result<Option<String>, E>,
) -> Result<Answered, Stop<E>> {
    let issue = view.issue().map_err(Stop::Unreadable)?;
    let issue = issue.expect("whoever asks has read it");
    let none = Vec::new();
    let types = [&none, &requirement.undone_by];
    let undone = newest_of(view, protocol, issue.handoffs, types)?;
    let since = undone.as_ref().map_or(0, |record| record.id.number());
    // As long as no code was handed in, only an approval that names its commit counts.
    let has_code = undone.is_some() || requirement.undone_by.is_empty();
    let counts = |by: &AgentName| {
        let mut named = requirement.approved_by.iter();
        named.any(|one| match one.as_str() {
            PERSON => protocol.is_person(by.as_str()),
            one => one == by.as_str(),
        })
    };
    // For each person, the newest approval that counts, unless a disapproval came after it.
    let mut newest: BTreeMap<&AgentName, (&HandoffId, &Annotation, &Approval)> = BTreeMap::new();
    for note in issue.annotations.iter().filter(|note| counts(&note.by)) {
        let (Some(id), Some(approval)) = (&note.id, &note.approval) else {
            continue;
        };
        let is_of_code = has_code || approval.code.is_some();
        if !approval.approved {
            newest.remove(&note.by);
        } else if is_of_code && id.number() >= since && can_be_approved(view, requirement, id)? {
            newest.insert(&note.by, (id, note, approval));
        }
    }
    let answer = |met, by: Option<&HandoffId>, why, remedy| Answered {
        requirement: String::new(),
        met,
        by: by.cloned(),
        why,
        remedy,
    };
    let shown = has_code.then(|| to_approve(view, requirement, &issue, since));
    let shown = shown.transpose()?.flatten();
    let approve = |by: Option<&AgentName>| match &shown {
        Some(id) => Remedy::Approve(id.clone(), by.cloned()),
        None => Remedy::None,
    };
    let objections = objections(view, protocol, requirement, &issue, code);
    let mut against = objections.map_err(Stop::Unreadable)?.into_iter().rev();
    if let Some(one) = against.find(|one| counts(&one.by)) {
        let remedy = approve(Some(&one.by));
        let why = objected(view, shown.as_ref(), &one)?;
        return Ok(answer(false, Some(&one.id), why, remedy));
    }
    let mut unmet = None;
    for (id, note, approval) in newest.into_values() {
        let said = format!("{id} approved by {}", note.by);
        let (is_right, why) = about(said, approval.code.as_ref(), code);
        // The person names the approved commit, so all of the issue's code counts.
        let approval = Said::Approval(id, note);
        let apart = not_apart(view, requirement, approval, issue.handoffs + 1, sender)?;
        match apart {
            Some(why) => {
                let newest = shown.as_ref().unwrap_or(id).clone();
                unmet.get_or_insert((Some(id), why, Remedy::Another(newest)));
            }
            None if is_right => return Ok(answer(true, Some(id), why, Remedy::None)),
            None => {
                let remedy = Remedy::ApproveCode(id.clone(), note.by.clone());
                unmet = Some((Some(id), why, remedy));
            }
        }
    }
    if let Some((by, why, remedy)) = unmet {
        return Ok(answer(false, by, why, remedy));
    }
    let why = match &shown {
        Some(id) => {
            let who = approver(protocol, requirement);
            let who = who.map_or_else(|| "a person".to_owned(), |who| who.to_string());
            nobody_approved(id, &who)
        }
        None => nothing_to_approve(view, requirement, issue.handoffs, undone.is_some())?,
    };
    Ok(answer(false, None, why, approve(None)))
}

/// A person's objection; first what waits for them now, if it has other code.
fn objected<E>(
    view: &impl View<E>,
    shown: Option<&HandoffId>,
    objection: &Objection,
) -> Result<String, Stop<E>> {
    if let Some(id) = shown
        && let Some(record) = view.record(id.number()).map_err(Stop::Unreadable)?
        && let Some((own, objected)) = record.code.as_ref().zip(objection.code.as_ref())
        && !is_same(own, objected)
    {
        let waits = nobody_approved(id, objection.by.as_str());
        return Ok(format!("{waits}; before, {objection}"));
    }
    Ok(objection.to_string())
}

/// That a handoff is not approved, and who can do it.
fn nobody_approved(id: &HandoffId, who: &str) -> String {
    format!("nobody has approved {id} yet; it waits for {who}")
}

/// Why nothing can be approved yet.
fn nothing_to_approve<E>(
    view: &impl View<E>,
    requirement: &Requirement,
    handoffs: u32,
    is_undone: bool,
) -> Result<String, Stop<E>> {
    let types = if is_undone || requirement.undone_by.is_empty() {
        &requirement.shown_by
    } else {
        &requirement.undone_by
    };
    let why = nobody_sent(view, handoffs, types)?;
    Ok(format!("there is nothing to approve yet: {why}"))
}

/// Who rejected or cancelled a handoff, and why, if somebody did.
fn turned_down(record: &Record) -> Option<String> {
    let last = record.latest().filter(|_| record.is_turned_down())?;
    let why = last.reason.as_ref().map(|why| format!(": {}", quoted(why)));
    let (state, by) = (record.state, &last.by);
    Some(format!("was {state} by {by}{}", why.unwrap_or_default()))
}

/// Why no contract of these types counts: the newest was rejected or cancelled, or none was sent.
fn nobody_sent<E>(view: &impl View<E>, handoffs: u32, types: &[String]) -> Result<String, Stop<E>> {
    for number in (1..=handoffs).rev() {
        let record = view.record(number).map_err(Stop::Unreadable)?;
        let Some(record) = record.filter(|one| types.contains(&one.contract_type)) else {
            continue;
        };
        if let Some(end) = turned_down(&record) {
            return Ok(format!("{} ({}) {end}", record.id, record.contract_type));
        }
    }
    let newest = view.record(handoffs).map_err(Stop::Unreadable)?;
    let end = newest.and_then(|newest| {
        let end = turned_down(&newest)?;
        let (id, kind) = (&newest.id, &newest.contract_type);
        Some(format!("; {id} ({kind}) {end}, and nothing was sent since"))
    });
    let end = end.unwrap_or_default();
    Ok(format!("nobody sent {}{end}", types.join(" or ")))
}

/// Why separation of duties is not shown: the author of `shown` is, or may be, one of the senders
/// that the requirement sets apart. Only handoffs before `end` count.
fn not_apart<E>(
    view: &impl View<E>,
    requirement: &Requirement,
    shown: Said<'_>,
    end: u32,
    sender: impl Fn(Said<'_>, Identity) -> Result<Option<String>, E>,
) -> Result<Option<String>, Stop<E>> {
    let by = requirement.apart_by;
    let mut approver = None;
    for number in 1..end {
        let Some(record) = view.record(number).map_err(Stop::Unreadable)? else {
            continue;
        };
        if !requirement.apart_from.contains(&record.contract_type) {
            continue;
        }
        if approver.is_none() {
            approver = sender(shown, by).map_err(Stop::Unreadable)?;
        }
        let sent = Said::Contract(&record);
        let own = sender(sent, by).map_err(Stop::Unreadable)?;
        let name = by.as_str();
        let unknown = |said: Said<'_>| {
            let (done, id) = said.parts();
            format!("the {name} that {done} {id} is not known")
        };
        match (&approver, own) {
            (None, _) => return Ok(Some(unknown(shown))),
            (_, None) => return Ok(Some(unknown(sent))),
            (Some(one), Some(other)) if *one == other => {
                let sent = &record.id;
                return Ok(Some(match shown {
                    Said::Contract(shown) => {
                        format!("{name} {other} sent both {sent} and {}", shown.id)
                    }
                    Said::Approval(id, _) => {
                        format!("{name} {other} sent {sent} and approved {id}")
                    }
                }));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn weigh(
    protocol: &Protocol,
    (name, requirement): (&str, &Requirement),
    record: &Record,
    code: Option<&JudgedCode<'_>>,
) -> (bool, String) {
    let said = format!("{} ({})", record.id, record.contract_type);
    if !requirement.shown_by.contains(&record.contract_type) {
        let with = match record.state {
            State::Pending => format!("waits for {}", record.to),
            state => {
                turned_down(record).unwrap_or_else(|| format!("is {state} with {}", record.to))
            }
        };
        let kind = protocol.contract_type(&record.contract_type);
        if kind.is_some_and(|kind| kind.raises.is_some()) {
            return (
                false,
                format!("{said} by {} asks for changes; it {with}", record.from),
            );
        }
        let routes = protocol.definition().routes.iter();
        let shows = |kind: &String| requirement.shown_by.contains(kind);
        let mut from = routes.filter(|route| route.contracts.iter().any(shows));
        let sender = from.next().map(|route| route.from.as_str());
        let sender = sender.filter(|one| *one != "*" && from.all(|route| route.from == **one));
        let not = sender.map_or_else(|| "nobody has".to_owned(), |one| format!("{one} has not"));
        // `approved` and `validated` are participles; other names may not be.
        let why = if name.ends_with("ed") {
            format!("{not} {name} {said} yet; it {with}")
        } else {
            let shows = requirement.shown_by.join(" or ");
            format!("{not} sent {shows} since {said}; {} {with}", record.id)
        };
        return (false, why);
    }
    let word = record.status.as_deref();
    let state = word.and_then(|word| protocol.definition().words.status.get(word));
    let kind = protocol.contract_type(&record.contract_type);
    let is_skipped = kind.is_some_and(|kind| protocol.outcome(kind, word) == Outcome::Skip);
    let right = match &requirement.status[..] {
        _ if is_skipped => false,
        [] => state.is_none_or(|state| *state == State::Completed),
        words => words.iter().any(|known| Some(known.as_str()) == word),
    };
    if !right {
        let word = word.unwrap_or("no status");
        return (false, format!("{said} says {word}"));
    }
    let by = format!("{said} by {}", record.from);
    about(by, record.code.as_ref(), code)
}

/// Whether a statement applies to the judged code, with the reason in words. Without code, it does.
fn about(said: String, known: Option<&Code>, code: Option<&JudgedCode<'_>>) -> (bool, String) {
    let Some(code) = code else {
        let of = known.map(|known| format!("{said}, of commit {}", short_id(&known.commit)));
        return (true, of.unwrap_or(said));
    };
    let Some(known) = known else {
        let text = format!("{said} does not say which code it is about: its branch was not known");
        return (false, text);
    };
    let (own, judged) = (short_id(&known.commit), short_id(&code.commit));
    match (code.other)(known) {
        Ok(()) if known.commit == code.commit => (true, format!("{said}, of commit {own}")),
        Ok(()) => {
            let text = format!("{said}, of commit {own}, whose changes are those of {judged}");
            (true, text)
        }
        Err(why) => {
            let text = format!("{said} is about commit {own}, not {judged}: {why}");
            (false, text)
        }
    }
}
