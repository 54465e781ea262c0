//! Whether an issue of a ledger meets its protocol's requirements.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::rc::Rc;

use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::text::word;
use handoff_base::{Code, ObjectId, short_id};
use handoff_git::{Named, Repository, Stored, Tree, undone_by_rebase};
use handoff_model::branches::{nameable, short_name};
use handoff_model::trailers::unfolded;
use handoff_model::value::scalar;
use handoff_model::{
    Annotation, Answered, Evidence, GatePolicy, Issue, IssueStatus, JudgedCode, LookupRefusal,
    Record, Refusal, Remedy, Said, StepEvent, Verdict, View, disapproval, layout, person,
    said_by_worker, trailers,
};
use handoff_protocol::{
    BASE, BRANCH, Check, Definition, Event, HEAD, Identity, PULL_REQUEST_STATE, Requirement,
    Signers,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::base_branch::base_branch;
use super::context::contract_value;
use super::error::LedgerError;
use super::origin_code::{OnOrigin, asked, on_origin, push_command};
use super::recorded_step::StepReader;
use super::signing::{By, Demand, judge};
use super::snapshot::{IssueFolder, Rules, Snapshot};

/// The number of newest steps whose issues are looked at for a merge that is left.
const RECENT: usize = 32;

/// A branch and its commit.
type Branch = (String, ObjectId);

/// A request to a gate.
#[derive(Clone, Debug, Default)]
pub struct GateRequest {
    /// The required conditions.
    pub policy: GatePolicy,
    /// The commit that must meet them; by default, the newest known one of the issue's open pull
    /// request, else its branch's.
    pub head: Option<ObjectId>,
    /// The commit that it is merged into; by default, its branch's.
    pub base: Option<ObjectId>,
    /// The branch that it is merged into; by default, the one noted for the issue, else the default
    /// branch.
    pub into: Option<String>,
    /// Whether `origin` must not be asked for the issue's branch.
    pub offline: bool,
    /// The reason for an exemption, if there is one.
    pub exempt: Option<String>,
    /// Why the ledger proves nothing, if it was verified and is damaged.
    pub damage: Option<String>,
}

/// The results of a gate.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The judged commit, if there is one.
    pub head: Option<ObjectId>,
    /// The result for each requirement.
    pub requirements: Vec<Answered>,
}

impl GateRequest {
    /// The commit that the code is merged into, on this branch if it is named.
    ///
    /// # Errors
    /// Why it is unknown, in words.
    pub fn base(&self, tip: &Snapshot<'_>, into: Option<&str>) -> Result<ObjectId, String> {
        if let Some(base) = self.base {
            return Ok(base);
        }
        let store = tip.code_store()?;
        let Some(into) = into else {
            return store.base();
        };
        let into = short_name(into);
        store.branch(into, known_here(tip, Some(into)))
    }
}

/// The commit of a branch, or of the default one, as this clone knows it.
fn known_here(tip: &Snapshot<'_>, branch: Option<&str>) -> Option<ObjectId> {
    let repository = tip.repository();
    let default = || repository.base_branch();
    let branch = branch.map(str::to_owned).or_else(default)?;
    base_tip(repository, &branch)
}

/// Refuses if a merge by rebase would undo a merge in the approved commit itself, if its history is
/// known here: the approval of that commit depends on its id.
fn ensure_kept(
    tip: &Snapshot<'_>,
    request: &GateRequest,
    into: Option<&str>,
    head: ObjectId,
) -> Result<(), String> {
    let base = match request.into {
        Some(_) => request.base(tip, into).ok(),
        None => request.base.or_else(|| known_here(tip, into)),
    };
    let is_here = request.into.is_some() || tip.repository().has(head);
    let Some(base) = base.filter(|_| is_here) else {
        return Ok(());
    };
    match tip
        .code_store()
        .and_then(|store| store.is_replayed(base, head))
    {
        Ok(false) => Err(undone_by_rebase(head)),
        Ok(true) | Err(_) => Ok(()),
    }
}

impl Judgement {
    /// A result that belongs to no requirement of a protocol.
    pub fn single(head: Option<ObjectId>, name: &str, met: bool, why: String) -> Self {
        let one = Answered {
            requirement: name.to_owned(),
            met,
            by: None,
            why,
            remedy: Remedy::None,
        };
        Self {
            head,
            requirements: vec![one],
        }
    }

    /// Whether every requirement is met.
    pub fn passes(&self) -> bool {
        self.requirements.iter().all(|one| one.met)
    }
}

/// The newest known commit of the issue's pull request, while that is open.
fn noted_head(issue: &Issue, rules: &Rules<'_>) -> Option<ObjectId> {
    let definition = rules.protocol().definition();
    let fact = |name: &str| issue.fact(definition, name)?.value.as_str();
    let is_open = fact(PULL_REQUEST_STATE) == Some("open");
    is_open.then(|| fact(HEAD))??.parse().ok()
}

/// An issue's code branch and its commit, on `origin` if the ledger is shared, else here; `None` if
/// it is gone.
fn branch_tip(
    repository: &Repository,
    issue: &Issue,
    rules: &Rules<'_>,
    offline: bool,
) -> Option<Branch> {
    let known = issue.fact(rules.protocol().definition(), BRANCH)?;
    let branch = known.value.as_str()?;
    let is_base = repository.base_branch().as_deref() == Some(branch);
    let tip = if is_base || nameable(branch, None).is_err() {
        None
    } else if has_origin(repository) && offline {
        repository.on_origin(branch)
    } else if has_origin(repository) {
        asked(repository, branch).unwrap_or_else(|_| repository.on_origin(branch))
    } else {
        repository.local_branch(branch)
    };
    Some((branch.to_owned(), tip?))
}

/// Whether others get code from `origin`.
fn has_origin(repository: &Repository) -> bool {
    repository.config("handoff.remote").is_some() && repository.remote_url("origin").is_some()
}

/// Whether an issue meets each requirement, for the requested commit. An issue of another protocol
/// than the requested one meets nothing, since somebody else defined what its words mean. If keys
/// are listed or signatures required, the default protocol is requested.
///
/// # Errors
/// [`LedgerError`] if the protocol refuses the query or something can't be read.
pub fn judge_gate(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    issue: &Issue,
    rules: &Rules<'_>,
    request: &GateRequest,
) -> Result<Judgement, LedgerError> {
    let noted = request.head.or_else(|| noted_head(issue, rules));
    if let Some(why) = &request.exempt {
        return Ok(Judgement::single(noted, "exempt", true, why.clone()));
    }
    let branch = match noted {
        Some(_) => None,
        None => branch_tip(tip.repository(), issue, rules, request.offline),
    };
    let head = noted.or(branch.as_ref().map(|(_, tip)| *tip));
    let noted = issue.fact(rules.protocol().definition(), BASE);
    let noted = noted.and_then(|fact| fact.value.as_str()).map(str::trim);
    let into = request.into.as_deref().or(noted);
    let other = |known: &Code| {
        let (Some(head), Ok(known)) = (head, known.commit.parse()) else {
            return Err("its id is abbreviated; give the full one".to_owned());
        };
        if known == head {
            return ensure_kept(tip, request, into, head);
        }
        let store = tip.code_store()?;
        let same = store.ensure_same_change(request.base(tip, into)?, known, head);
        same.map_err(|why| match &branch {
            Some((branch, _)) => format!("{why}, and {branch} is at {}", head.short()),
            None => why,
        })
    };
    let code = head.map(|head| JudgedCode {
        commit: head.to_string(),
        other: &other,
    });
    let mut requirements = required(tip, folder, rules, &request.policy, code.as_ref())?;
    if let Some(into) = &request.into {
        let into = short_name(into);
        for one in requirements.iter_mut().filter(|one| one.met) {
            if let Some(before) = retargeted(folder, issue, one, into)? {
                let by = one.by.as_ref().map(ToString::to_string).unwrap_or_default();
                one.met = false;
                one.why = format!(
                    "{by} was said of a merge into {before}, and it is to be merged into {into} now: that takes a new approval"
                );
            }
        }
    }
    for one in requirements.iter_mut().filter(|one| one.met) {
        if let Some((met, why)) = place(tip, folder, issue, rules, one, head.is_none())? {
            (one.met, one.why) = (met, format!("{}; {why}", one.why));
        }
    }
    for one in requirements.iter_mut().filter(|one| one.met) {
        if let Some(contradicted) = contradicted(folder, one)? {
            one.why += &format!("; contradicted: {contradicted}");
            break;
        }
    }
    if let Some(damage) = &request.damage {
        let sound = Judgement::single(head, "sound", false, damage.clone());
        requirements.extend(sound.requirements);
    }
    Ok(Judgement { head, requirements })
}

/// The contradicted statements about the commit with which a requirement was met, if any.
fn contradicted(folder: &IssueFolder<'_>, met: &Answered) -> Result<Option<String>, LedgerError> {
    let (Some(by), records) = (&met.by, folder.records()?) else {
        return Ok(None);
    };
    let commit = |record: &Record| record.code.as_ref().map(|code| code.commit.clone());
    let judged = records.iter().find(|record| record.id == *by);
    let judged = judged.and_then(commit);
    let about = records
        .iter()
        .filter(|one| judged.is_some() && commit(one) == judged && !one.is_turned_down());
    let said = about.flat_map(|record| {
        let each = record.contradicted().into_iter();
        each.map(|one| format!("{} {one}", record.id))
    });
    let said = said.collect::<Vec<_>>().join("; ");
    Ok((!said.is_empty()).then_some(said))
}

/// The base branch that was noted when a requirement was met, if it differs from `into`. If none
/// was noted by then, the first one noted afterwards.
fn retargeted(
    folder: &IssueFolder<'_>,
    issue: &Issue,
    met: &Answered,
    into: &str,
) -> Result<Option<String>, LedgerError> {
    let Some(id) = &met.by else { return Ok(None) };
    let approvals = issue.annotations.iter().rev().filter(|note| {
        let approves = note.approval.as_ref().is_some_and(|one| one.approved);
        approves && note.id.as_ref() == Some(id)
    });
    let approved = approvals.map(|note| note.at).next();
    let sent = folder
        .record(id.number())?
        .and_then(|record| record.sent_at());
    let Some(at) = approved.max(sent) else {
        return Ok(None);
    };
    let notes = issue.annotations.iter();
    let bases = notes.filter_map(|note| Some((note.at, note.facts.get(BASE)?.as_str()?.trim())));
    let bases: Vec<_> = bases.collect();
    let before = bases.iter().rfind(|(noted, _)| *noted <= at);
    let base = before.or(bases.first()).map(|(_, base)| short_name(base));
    Ok(base.filter(|base| *base != into).map(str::to_owned))
}

/// Whether a requirement is met by where its commit is, and why: not by a merge that is not on its
/// base, or, if no commit is judged, by one that is neither on its base nor on the remote's branch.
fn place(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    issue: &Issue,
    rules: &Rules<'_>,
    one: &Answered,
    is_any: bool,
) -> Result<Option<(bool, String)>, LedgerError> {
    let record = match &one.by {
        Some(by) => folder.record(by.number())?,
        None => None,
    };
    let Some(record) = record else {
        return Ok(None);
    };
    let (repository, protocol) = (tip.repository(), rules.protocol());
    let known = Some((issue, protocol.definition()));
    let kind = protocol.contract_type(&record.contract_type);
    let claims = kind.and_then(|kind| kind.claims.as_ref());
    if let Some(claim) = claims.and_then(|claims| claims.merge.as_ref()) {
        let passed = |one: &Evidence| one.check == Check::Merge && one.result == Verdict::Passed;
        if record.evidence.iter().any(passed) {
            return Ok(None);
        }
        let value = contract_value(rules, &record, &folder.contract(&record)?)?;
        let merged = value.and_then(|value| value.pointer(&claim.commit).and_then(scalar));
        let code = merged.map(|commit| Code {
            branch: String::new(),
            commit: commit.to_ascii_lowercase(),
            tree: None,
        });
        if let Some((merged, own)) = code.as_ref().zip(record.code.as_ref())
            && lacks_work(repository, &record, merged, own)
        {
            let (merged, own) = (short_id(&merged.commit), short_id(&own.commit));
            let why = format!("commit {merged} does not have the work, commit {own}");
            return Ok(Some((false, why)));
        }
        let base = base_branch(repository, known, None, None);
        return Ok(code.zip(base).and_then(|(code, base)| {
            let is_there = is_on(repository, &code, &base);
            let why = || format!("commit {} is not on {base}", short_id(&code.commit));
            (!is_there).then(|| (false, why()))
        }));
    }
    let Some(code) = record.code.as_ref().filter(|_| is_any) else {
        return Ok(None);
    };
    let base = base_branch(repository, known, Some(&code.branch), None);
    let here = repository.local_branch(&code.branch);
    // The remote's branch may be gone after the merge.
    if let Some(base) = base
        .as_ref()
        .filter(|base| is_merged(repository, code, base))
    {
        let is_later = here.is_some_and(|here| here.to_string() != code.commit);
        let later = is_later.then(|| format!("; {} has other commits here", code.branch));
        let why = format!("it is merged into {base}{}", later.unwrap_or_default());
        return Ok(Some((true, why)));
    }
    if !has_origin(repository) {
        return Ok(None);
    }
    let missing = match on_origin(repository, code, base.as_deref(), false) {
        OnOrigin::There => None,
        OnOrigin::Not(why) if here.is_some() => {
            let push = push_command(repository, &code.branch)?;
            Some(format!("{why}: `{push}`"))
        }
        OnOrigin::Not(why) | OnOrigin::Unknown(why) => {
            Some(format!("{why}: name the commit with `--head COMMIT`"))
        }
    };
    Ok(missing.map(|why| (false, why)))
}

/// Whether a merge that the record contradicts lacks the work, as far as this clone knows.
fn lacks_work(repository: &Repository, record: &Record, merged: &Code, own: &Code) -> bool {
    let is_false =
        |one: &Evidence| one.check == Check::Merge && one.result == Verdict::Contradicted;
    let (Ok(Named::Commit(merged)), Ok(own)) =
        (repository.named(&merged.commit), own.commit.parse())
    else {
        return false;
    };
    record.evidence.iter().any(is_false) && !repository.has_work(merged, own).unwrap_or(true)
}

/// How an open issue's code was merged without a step that reports it: the work that was handed
/// over is on its base, as far as this clone knows. Runs no git process.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn unreported_merge(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    issue: &Issue,
    rules: &Rules<'_>,
) -> Result<Option<String>, LedgerError> {
    let definition = rules.protocol().definition();
    let known = issue.known(definition);
    let is_reported = definition
        .merge_facts()
        .any(|fact| known.contains_key(fact));
    if is_reported || issue.status != IssueStatus::Open {
        return Ok(None);
    }
    // A branch without commits of its own is on its base from the start.
    let is_of_work = |one: &Evidence| matches!(one.check, Check::Commits | Check::CommitsAdded);
    let work = newest(folder, issue, |record| {
        record.evidence.iter().any(is_of_work)
    })?;
    let passed = |one: &Evidence| is_of_work(one) && one.result == Verdict::Passed;
    let work = work.filter(|record| record.evidence.iter().any(passed));
    let Some(code) = work.and_then(|record| record.code) else {
        return Ok(None);
    };
    let base = merged_base(tip.repository(), (issue, definition), &code);
    Ok(base.map(|base| {
        let (key, commit) = (&issue.issue, short_id(&code.commit));
        let branch = &code.branch;
        let here = tip.repository().code(branch).map(|here| here.commit);
        let what = match here.filter(|here| *here != code.commit) {
            Some(here) => format!(
                "commit {commit} of {branch}, which is at {} here,",
                short_id(&here)
            ),
            None => format!("{branch}, at {commit},"),
        };
        format!("{what} is merged into {base}, and no step of issue {key} says so")
    }))
}

/// The newest handoff of an issue that is such a one.
fn newest(
    folder: &IssueFolder<'_>,
    issue: &Issue,
    is_it: impl Fn(&Record) -> bool,
) -> Result<Option<Record>, LedgerError> {
    for number in (1..=issue.handoffs).rev() {
        if let Some(record) = folder.record(number)?.filter(&is_it) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// That the merge of a completed issue's approved code is what is left, as far as this clone knows.
/// Runs no git process.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn merge_left(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    issue: &Issue,
    rules: &Rules<'_>,
) -> Result<Option<MergeLeft>, LedgerError> {
    if issue.status != IssueStatus::Completed {
        return Ok(None);
    }
    let approved = approved_merge(tip, folder, issue, rules)?;
    Ok(approved.and_then(|(left, is_merged)| (!is_merged).then_some(left)))
}

/// The merge of an issue's approved code, and whether its base has it already, as far as this
/// clone knows: of an open issue if the approval's receiver, who holds it, reports the merge, else
/// of a completed one.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn approved_merge(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    issue: &Issue,
    rules: &Rules<'_>,
) -> Result<Option<(MergeLeft, bool)>, LedgerError> {
    let definition = rules.protocol().definition();
    let noted = issue.fact(definition, PULL_REQUEST_STATE);
    let is_noted = noted.is_some_and(|fact| fact.value == "merged");
    let is_open = issue.status == IssueStatus::Open;
    let is_reported = definition.merge_facts().next().is_some();
    if issue.status == IssueStatus::Cancelled || is_open != is_reported || is_noted {
        return Ok(None);
    }
    let approval = newest(folder, issue, |record| {
        let counts = if is_open {
            record.lease.is_some()
        } else {
            record.is_completed()
        };
        counts && definition.shows_merge(&record.contract_type)
    })?;
    let approval = approval.and_then(|record| Some((record.from, record.code?)));
    let Some((by, code)) = approval else {
        return Ok(None);
    };
    let repository = tip.repository();
    // What a squash brought can't be compared in a clone without the branch.
    if !matches!(repository.named(&code.commit), Ok(Named::Commit(_))) {
        return Ok(None);
    }
    let known = Some((issue, definition));
    let base = base_branch(repository, known, Some(&code.branch), None);
    Ok(base.map(|base| {
        let is_here = is_merged(repository, &code, &base);
        let shared = repository.on_origin(&base);
        let is_there = |tip| is_merged_at(repository, &code, tip);
        let is_merged = is_here && shared.is_none_or(is_there);
        let merge = MergeLeft {
            issue: issue.issue.clone(),
            is_shared: shared.is_some(),
            is_here,
            by,
            code,
            base,
        };
        (merge, is_merged)
    }))
}

/// The base branch that has the code of an issue's newest approval, as far as this clone knows.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn merged_into(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    issue: &Issue,
    rules: &Rules<'_>,
) -> Result<Option<String>, LedgerError> {
    let definition = rules.protocol().definition();
    let repository = tip.repository();
    let approval = newest(folder, issue, |record| {
        !record.is_turned_down() && definition.shows_merge(&record.contract_type)
    })?;
    let code = approval.and_then(|record| record.code);
    let known = |code: &Code| matches!(repository.named(&code.commit), Ok(Named::Commit(_)));
    let Some(code) = code.filter(known) else {
        return Ok(None);
    };
    let base = merged_base(repository, (issue, definition), &code);
    Ok(base.filter(|base| {
        let is_there = |tip| is_merged_at(repository, &code, tip);
        repository.on_origin(base).is_none_or(is_there)
    }))
}

/// The merge of an issue's approved code.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MergeLeft {
    /// The issue.
    pub issue: IssueKey,
    /// Who approved it.
    pub by: AgentName,
    /// The approved code.
    pub code: Code,
    /// The branch that it is merged into.
    pub base: String,
    /// Whether others may have merged it without this clone knowing.
    #[serde(skip)]
    is_shared: bool,
    /// Whether the base has it here, though not on `origin` yet.
    #[serde(skip)]
    is_here: bool,
}

impl MergeLeft {
    /// What is left to do.
    pub fn merge(&self) -> String {
        let (branch, base) = (word(&self.code.branch), word(&self.base));
        if self.is_here {
            return format!("`git push origin {base}`: {base} has it here alone");
        }
        let push = if self.is_shared { ", and push it" } else { "" };
        let commit = short_id(&self.code.commit);
        format!(
            "merge {branch} at {commit} into {base}{push}{}",
            self.caveat()
        )
    }

    /// That others may have merged it.
    fn caveat(&self) -> &'static str {
        if self.is_shared {
            " (as of the last `git fetch`)"
        } else {
            ""
        }
    }
}

impl fmt::Display for MergeLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (branch, base, commit) = (&self.code.branch, &self.base, short_id(&self.code.commit));
        let at = format!("issue {} is completed; the merge is left", self.issue);
        if self.is_here {
            return write!(f, "{at} to be pushed: {}", self.merge());
        }
        let caveat = self.caveat();
        write!(
            f,
            "{at}, once its gate is open: {branch}, at {commit}, is not in {base} yet{caveat}"
        )
    }
}

/// What [`merge_left`] says of the issue whose branch is checked out.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn merge_left_here(tip: &Snapshot<'_>) -> Result<Option<MergeLeft>, LedgerError> {
    let repository = tip.repository();
    let branch = repository.current_branch();
    let branch = branch.filter(|branch| repository.base_branch().as_ref() != Some(branch));
    let issues = branch.map(|branch| tip.issues_on(&branch)).transpose()?;
    let mut left = merges_left_of(tip, issues.unwrap_or_default())?;
    Ok((!left.is_empty()).then(|| left.swap_remove(0)))
}

/// What [`merge_left`] says of the issues that the last 32 steps were about; nothing in a
/// partial clone.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn merges_left(tip: &Snapshot<'_>) -> Result<Vec<MergeLeft>, LedgerError> {
    let mut recent = BTreeSet::new();
    // A partial clone would have to fetch each issue.
    if tip.repository().is_partial() {
        return Ok(Vec::new());
    }
    for id in tip.repository().first_parents(tip.commit()).take(RECENT) {
        // A light clone lacks older steps.
        let Ok(commit) = id.and_then(|id| tip.repository().commit(id)) else {
            break;
        };
        // What ends an issue completes a handoff.
        if !commit.message.contains("..completed") {
            continue;
        }
        let named = trailers(&commit.message).into_iter();
        let named = named.filter(|(name, _)| *name == "Issue");
        recent.extend(named.filter_map(|(_, value)| unfolded(value).parse().ok()));
    }
    merges_left_of(tip, recent)
}

fn merges_left_of(
    tip: &Snapshot<'_>,
    keys: impl IntoIterator<Item = IssueKey>,
) -> Result<Vec<MergeLeft>, LedgerError> {
    let mut all = Vec::new();
    for key in keys {
        let folder = tip.issue(&key)?;
        let Some(issue) = folder.current_issue()? else {
            continue;
        };
        let rules = tip.rules(issue.protocol.as_str())?;
        all.extend(merge_left(tip, &folder, &issue, &rules)?);
    }
    Ok(all)
}

/// Whether a branch has the work up to a commit, as far as this clone knows: the commit itself, or
/// what a squash or a rebase made of it.
fn is_merged(repository: &Repository, code: &Code, base: &str) -> bool {
    base_tip(repository, base).is_some_and(|tip| is_merged_at(repository, code, tip))
}

/// The base branch of an issue's code, if it has that, as far as this clone knows.
fn merged_base(
    repository: &Repository,
    known: (&Issue, &Definition),
    code: &Code,
) -> Option<String> {
    let base = base_branch(repository, Some(known), Some(&code.branch), None);
    base.filter(|base| is_merged(repository, code, base))
}

/// Like [`is_merged`], for a commit of the base.
fn is_merged_at(repository: &Repository, code: &Code, tip: ObjectId) -> bool {
    let by_other_commits = || repository.is_merged_into(&tip.to_string(), &code.commit);
    is_below(repository, code, tip) || by_other_commits().unwrap_or_default()
}

/// The commits on an issue's branch that came after the approved work and were not handed on, and
/// what their agent does. Runs no git process.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn unsent_commits(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    issue: &Issue,
    rules: &Rules<'_>,
) -> Result<Option<String>, LedgerError> {
    let protocol = rules.protocol();
    let definition = protocol.definition();
    let known = issue.known(definition);
    let is_merged = definition
        .merge_facts()
        .any(|fact| known.contains_key(fact));
    if is_merged || issue.status == IssueStatus::Cancelled {
        return Ok(None);
    }
    let requirements = || definition.requirements.values();
    let shows = |kind: &String| requirements().any(|one| one.shown_by.contains(kind));
    let hands_in = |kind: &String| requirements().any(|one| one.undone_by.contains(kind));
    let (mut is_approved, mut work) = (false, None);
    for number in (1..=issue.handoffs).rev() {
        let record = folder.record(number)?.filter(|one| !one.is_turned_down());
        let Some(record) = record else { continue };
        if hands_in(&record.contract_type) && record.code.is_some() {
            work = Some(record);
            break;
        }
        is_approved |= shows(&record.contract_type);
    }
    let Some((work, code)) = work.and_then(|work| work.code.clone().map(|code| (work, code)))
    else {
        return Ok(None);
    };
    let approves = |note: &Annotation| {
        let id = note.id.as_ref();
        let is_of_it = id.is_some_and(|id| id.number() >= work.id.number());
        is_of_it && note.approval.as_ref().is_some_and(|one| one.approved)
    };
    let is_at_work = issue.held_by(&work.from).next().is_some();
    if is_at_work || !is_approved && !issue.annotations.iter().any(approves) {
        return Ok(None);
    }
    let repository = tip.repository();
    let newest = repository.base_code(&code.branch).ok().flatten();
    let Some(newest) = newest.filter(|one| one.commit != code.commit) else {
        return Ok(None);
    };
    if !is_on(repository, &code, &code.branch) {
        return Ok(None);
    }
    let (key, id, from, to) = (&issue.issue, &work.id, &work.from, &work.to);
    let kind = protocol.named_type(from.as_str(), to.as_str(), &work.contract_type);
    let kind = kind.map_or_else(String::new, |kind| format!(" --type {}", word(kind)));
    let by = person(protocol).map_or("AGENT", |person| person.as_str());
    let reopened = match issue.status {
        IssueStatus::Open => String::new(),
        _ => format!(", once it is open again (`git handoff reopen {key} --as {by} --reason WHY`)"),
    };
    Ok(Some(format!(
        "{} is at {}, after {id} at {}, which was approved: {from} hands that on{reopened}: `git handoff new --issue {key} --from {from} --to {to}{kind}`",
        word(&code.branch),
        short_id(&newest.commit),
        short_id(&code.commit),
    )))
}

/// Whether a commit, by an abbreviated id, is on a branch, here or on `origin`.
fn is_on(repository: &Repository, code: &Code, branch: &str) -> bool {
    base_tip(repository, branch).is_some_and(|tip| is_below(repository, code, tip))
}

/// The newest commit of a base branch that is known here.
fn base_tip(repository: &Repository, branch: &str) -> Option<ObjectId> {
    repository.base_code(branch).ok()??.commit.parse().ok()
}

/// Whether a commit, by an abbreviated id, is in the history of another one.
fn is_below(repository: &Repository, code: &Code, tip: ObjectId) -> bool {
    let Ok(Named::Commit(commit)) = repository.named(&code.commit) else {
        return false;
    };
    repository.is_in_history(commit, tip).unwrap_or_default()
}

/// Like [`judge_gate`], but a requirement that the issue's protocol does not define is not met.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn judge_any(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    issue: &Issue,
    rules: &Rules<'_>,
    request: &GateRequest,
) -> Result<Judgement, LedgerError> {
    match judge_gate(tip, folder, issue, rules, request) {
        Err(LedgerError::Refused(Refusal::Lookup(LookupRefusal::NoRequirement {
            name,
            protocol,
            ..
        }))) => {
            let head = request.head.or_else(|| noted_head(issue, rules));
            let why = format!("protocol {protocol} has no such requirement");
            Ok(Judgement::single(head, &name, false, why))
        }
        judged => judged,
    }
}

/// The objection to a contract before a merge, in words. If it reports a merge: a requirement of
/// the merge that is unmet, and that it does not meet itself. If it would meet such a requirement,
/// or hands in code for it: a person's objection to its code, with the command by which that person
/// ends it. The last is whether it only hands in code, which is not refused for that.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub(crate) fn hindrance(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    rules: &Rules<'_>,
    record: &Record,
) -> Result<Option<(String, Option<String>, bool)>, LedgerError> {
    let (protocol, kind) = (rules.protocol(), &record.contract_type);
    let definition = protocol.definition();
    let kind_of = protocol.contract_type(kind);
    let merge = definition.requirements.iter().filter(|(_, of)| of.merge);
    let (meets, others): (Vec<_>, Vec<_>) =
        merge.partition(|(_, of)| of.approved_by.is_empty() && of.shown_by.contains(kind));
    let raises = kind_of.is_some_and(|kind| kind.raises.is_some());
    let hands_in = |of: &Requirement| of.undone_by.contains(kind) && !raises;
    let of_code = others.iter().filter(|(_, of)| hands_in(of));
    for (_, requirement) in meets.iter().chain(of_code) {
        if let Some(one) = disapproval(folder, protocol, requirement, record, None)? {
            let own = hands_in(requirement);
            let about = folder.record(one.id.number())?;
            let id = match (about, &record.follows) {
                _ if own => &record.id,
                (Some(about), Some(held)) if about.is_turned_down() => held,
                _ => &one.id,
            };
            let end = format!("git handoff approve {id} --as {}", one.by);
            return Ok(Some((one.of_same_code(), Some(end), own)));
        }
    }
    let claims = kind_of.and_then(|kind| kind.claims.as_ref());
    if others.is_empty() || claims.is_none_or(|claims| claims.merge.is_none()) {
        return Ok(None);
    }
    let policy = GatePolicy {
        require: others.into_iter().map(|(name, _)| name.clone()).collect(),
        protocol: Some(definition.name.clone()),
        ..GatePolicy::default()
    };
    let answered = required(tip, folder, rules, &policy, None)?;
    let unmet = answered.into_iter().find(|one| !one.met);
    Ok(unmet.map(|one| (format!("not {}: {}", one.requirement, one.why), None, false)))
}

fn required(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    rules: &Rules<'_>,
    policy: &GatePolicy,
    code: Option<&JudgedCode<'_>>,
) -> Result<Vec<Answered>, LedgerError> {
    let repository = tip.repository();
    let own = &rules.protocol().definition().name;
    let default = &tip.manifest().default_protocol;
    let asked = match &policy.protocol {
        // Where no signature is required, any protocol counts.
        None if own == default || !(policy.signed || tip.lists_keys()?) => own,
        asked => asked.as_ref().unwrap_or(default),
    };
    if own != asked {
        let other = tip.other_protocol(own)?;
        let is_unsigned = other.is_some_and(|other| other.unsigned);
        let unsigned = if is_unsigned {
            ", which is unsigned"
        } else {
            ""
        };
        return Ok(vec![Answered {
            requirement: "protocol".to_owned(),
            met: false,
            by: None,
            why: format!("the issue follows {own}{unsigned}, not {asked}"),
            remedy: Remedy::None,
        }]);
    }
    let sent = OnceCell::new();
    let sender = |said: Said<'_>, by: Identity| {
        if by == Identity::Worker {
            return said_by_worker(said, by);
        }
        if sent.get().is_none() {
            let found = saying_commits(tip, folder)?;
            sent.get_or_init(|| found);
        }
        let key = match said {
            Said::Contract(record) => record.id.to_string(),
            Said::Approval(id, note) => approval_key(&id.to_string(), note.by.as_str()),
        };
        let commit = sent.get().and_then(|sent| sent.get(&key));
        Ok(commit.and_then(|stored| match by {
            Identity::Key => {
                let signature = stored.signature().ok()??;
                let key = signature.key(repository).ok()?;
                Some(key.fingerprint())
            }
            _ => Some(stored.commit.committer.email.to_lowercase()),
        }))
    };
    let (key, protocol) = (folder.key(), rules.protocol());
    let wanted = &policy.require;
    let mut answered = handoff_model::required(folder, key, protocol, wanted, code, sender)?;
    if policy.signed {
        let signers = policy.signers.clone().map(Rc::new);
        let fault = unsigned(tip, folder, own, signers)?;
        answered.push(Answered {
            requirement: "signed".to_owned(),
            met: fault.is_none(),
            by: None,
            why: fault
                .unwrap_or_else(|| "each step of the issue is signed with a listed key".to_owned()),
            remedy: Remedy::None,
        });
    }
    Ok(answered)
}

/// Why some step of an issue lacks an accepted signature. With `pinned` keys, it must be by one of
/// them, under a protocol that their owners put in force; else by a key that the protocol listed
/// before the step.
fn unsigned(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    protocol: &AgentName,
    pinned: Option<Rc<Signers>>,
) -> Result<Option<String>, LedgerError> {
    let repository = tip.repository();
    let mut reader = StepReader::new(repository);
    let steps = issue_steps(tip, folder)?;
    for (stored, parent) in &steps.commits {
        let id = stored.commit.id.short();
        let trailers = trailers(&stored.commit.message);
        let by = match stored.commit.author.name.parse() {
            _ if trailers.contains(&("Event", Event::Expire.as_str())) => By::Anybody,
            Ok(agent) => By::Agent(agent),
            Err(_) => return Ok(Some(format!("the author of step {id} is not an agent"))),
        };
        let demand = match &pinned {
            Some(signers) => Some(Demand::new(Rc::clone(signers), by)),
            None => {
                let rules = reader.rules(Tree::new(repository, *parent), protocol.as_str())?;
                Demand::of(&rules, by)?
            }
        };
        let Some(demand) = demand else {
            return Ok(Some(format!("{protocol} listed no keys at the step {id}")));
        };
        if let Some(finding) = judge(repository, stored, Some(&demand)) {
            return Ok(Some(format!("the step {id}: {}", finding.message)));
        }
    }
    if !steps.are_all {
        return Ok(Some(
            "this clone lacks part of the issue's history".to_owned(),
        ));
    }
    let first = steps.commits.last().map(|(stored, _)| stored.commit.id);
    match pinned {
        Some(signers) => foreign(tip, protocol.as_str(), signers, first),
        None => Ok(None),
    }
}

/// Why a protocol can't be trusted at some step since `first`: its version is neither shipped with
/// the program, nor put in force by a person with one of these keys, so that any writer may have
/// decided what its words mean.
fn foreign(
    tip: &Snapshot<'_>,
    protocol: &str,
    signers: Rc<Signers>,
    first: Option<ObjectId>,
) -> Result<Option<String>, LedgerError> {
    let repository = tip.repository();
    let demand = Demand::new(signers, By::Committer);
    let folder = layout::protocol_file(protocol, "");
    let is_shipped = |tree| {
        let rules = Rules::read(repository, Tree::new(repository, tree), protocol)?;
        Ok::<_, LedgerError>(rules.protocol().name() == protocol && rules.is_shipped()?)
    };
    let mut is_before = false;
    let mut newer: Option<(Stored, ObjectId)> = None;
    let history = repository.history(tip.commit()).map(Some);
    for stored in history.chain([None]) {
        let stored = stored.transpose()?;
        let here = match &stored {
            Some(stored) => {
                Tree::new(repository, stored.commit.tree).entry(folder.trim_end_matches('/'))?
            }
            None => None,
        };
        let here = here.map(|(_, id)| id);
        if let Some((after, id)) = newer.take()
            && here != Some(id)
        {
            if !is_shipped(after.commit.tree)?
                && let Some(finding) = judge(repository, &after, Some(&demand))
            {
                return Ok(Some(format!(
                    "{protocol} is neither as the program ships it nor put in force by a listed person, in {}: {}",
                    after.commit.id.short(),
                    finding.message
                )));
            }
            if is_before {
                break;
            }
        }
        if let Some(stored) = stored.as_ref().filter(|one| Some(one.commit.id) == first) {
            is_before = true;
            if is_shipped(stored.commit.tree)? {
                break;
            }
        }
        newer = stored.zip(here);
    }
    Ok(None)
}

/// The commits that changed an issue's folder.
struct IssueSteps {
    /// Each such commit with its parent's tree, newest first.
    commits: Vec<(Stored, ObjectId)>,
    /// Whether they go back to its first step.
    are_all: bool,
}

/// Finds the commits that changed an issue's folder, whatever their messages say.
fn issue_steps(tip: &Snapshot<'_>, folder: &IssueFolder<'_>) -> Result<IssueSteps, LedgerError> {
    let (repository, key) = (tip.repository(), folder.key());
    let path = layout::issue_folder(key);
    let first = format!("{key}.1 none..");
    let mut commits = Vec::new();
    // The folder in the newer commit; one that removes it moves it to the archive.
    let mut newer: Option<(Stored, Option<ObjectId>)> = None;
    let mut is_found = false;
    for stored in repository.history(tip.commit()) {
        let stored = stored?;
        let entry = Tree::new(repository, stored.commit.tree).entry(&path)?;
        let here = entry.map(|(_, id)| id);
        if let Some((after, Some(there))) = newer.take()
            && here != Some(there)
        {
            let begins = trailers(&after.commit.message)
                .iter()
                .any(|(name, value)| *name == "Transition" && value.starts_with(&first));
            commits.push((after, stored.commit.tree));
            if here.is_none() && begins {
                return Ok(IssueSteps {
                    commits,
                    are_all: true,
                });
            }
        }
        if let Some(here) = here.filter(|_| !is_found) {
            is_found = true;
            // An archiving commit names the folder of its parent; otherwise it is not a step.
            if Some(here) != folder.tree() {
                break;
            }
        }
        newer = Some((stored, here));
    }
    Ok(IssueSteps {
        commits,
        are_all: false,
    })
}

/// The key of the newest approval of a handoff by a person.
fn approval_key(id: &str, by: &str) -> String {
    format!("{id} {by}")
}

/// The commits that sent an issue's handoffs, by handoff id, and the newest one in which a person
/// approved each. Reads from the newest to the one that opened the issue.
fn saying_commits(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
) -> Result<HashMap<String, Stored>, LedgerError> {
    let mut found = HashMap::new();
    for (stored, _) in issue_steps(tip, folder)?.commits {
        let trailers = trailers(&stored.commit.message);
        if trailers.contains(&("Event", StepEvent::Approve.as_str())) {
            let id = trailers.iter().find(|(name, _)| *name == "Handoff-Id");
            let key = id.map(|(_, id)| approval_key(id, &stored.commit.author.name));
            if let Some(key) = key {
                found.entry(key).or_insert_with(|| stored.clone());
            }
        }
        let new = trailers.iter().filter_map(|(name, value)| {
            let (id, change) = value.split_once(' ')?;
            (*name == "Transition" && change.starts_with("none..")).then(|| id.to_owned())
        });
        found.extend(
            new.collect::<Vec<_>>()
                .into_iter()
                .map(|id| (id, stored.clone())),
        );
    }
    Ok(found)
}
