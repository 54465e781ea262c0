//! The contract pipeline: turns bytes into a checked [`Contract`] or findings, by one protocol.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::pointer::lookup;
use handoff_base::text::quoted;
use handoff_contract::{Allowance, Checked, Format, Input, Place, Shape, Source};
use handoff_protocol::{
    AgentKind, ContractType, Envelope, ImportProfile, Outcome, Protocol, Resolved, State, Style,
    Unresolved,
};
use serde_json::Value;

use crate::contract::consistency::{self, Broken};
use crate::contract::evidence::branch_at;
use crate::contract::wrapper::wrapped_wrong;
use crate::contract::{Contract, Opened, Schemas, semantic};
use crate::record::{Contradiction, ImportSource};
use crate::value::{content_digest, scalar};

/// The member for content that a contract type's schema does not describe.
const FREE: &str = "data";

/// The result of the pipeline.
#[derive(Clone, Debug)]
pub struct Review {
    /// The findings, in document order.
    pub findings: Vec<Finding>,
    /// The type, if it could be determined.
    pub kind: Option<String>,
    /// The contract, if there are no errors and its issue is known.
    pub contract: Option<Contract>,
    /// The contract as far as it can be read, if its type, parties and issue are known and there are
    /// errors.
    pub draft: Option<Contract>,
    /// The issue that it would open if it names none.
    pub new_issue: Option<IssueKey>,
    /// Whether `new_issue` comes from the contract, rather than being fixed by the protocol.
    pub names_session: bool,
    /// Whether the only fault is a missing route.
    pub no_route: bool,
    /// A permission for a secret that it does not contain.
    pub unused: Option<Allowance>,
    /// The number of the protocol's envelope fields that the document has.
    known: usize,
}

impl AsRef<Self> for Review {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Review {
    /// Whether the document has no errors.
    pub fn is_complete(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }

    /// How badly the document matches the protocol: the number of unknown fields and agents, minus
    /// that of envelope fields present; then the number of all faults. If the type is unknown, all
    /// faults count instead of unknown fields and agents.
    fn mismatch_score(&self) -> (i64, usize) {
        let errors = || self.findings.iter().filter(|f| f.is_error());
        let count = |code: FindingCode| errors().filter(|f| f.code == code).count();
        let strange = match self.kind {
            Some(_) => count(FindingCode::FieldUnknown) + count(FindingCode::AgentUnknown),
            // The parties are known, and only the route between them is missing.
            None if errors().any(|f| f.code.is_route()) => 0,
            None => 3 + errors().count(),
        };
        let strange = strange + 3 * count(FindingCode::ContractRoot);
        let distance = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        (distance(strange) - distance(self.known), errors().count())
    }

    /// The review of an unreadable document.
    pub fn refused(findings: Vec<Finding>) -> Self {
        Self {
            findings,
            kind: None,
            contract: None,
            draft: None,
            new_issue: None,
            names_session: false,
            no_route: false,
            unused: None,
            known: 0,
        }
    }
}

/// Picks the protocol of a contract from its reviews by each: the first by which it has no errors
/// and names its issue, else the first by which it has no errors, else the best match. `None` if
/// there are no reviews.
///
/// # Errors
/// The first error before that review.
pub fn first_match<T: AsRef<Review>, E>(
    matches: impl IntoIterator<Item = Result<T, E>>,
) -> Result<Option<T>, E> {
    let mut nearest = None;
    for found in matches {
        let found = found?;
        let review = found.as_ref();
        if review.contract.is_some() {
            return Ok(Some(found));
        }
        // A review without errors beats any with errors.
        let is_complete = review.kind.is_some() && review.is_complete();
        let distance = (!is_complete).then(|| review.mismatch_score());
        if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
            nearest = Some((distance, found));
        }
    }
    Ok(nearest.map(|(_, found)| found))
}

/// Runs a document through the pipeline. `hint` is the issue for contracts that name none.
///
/// # Errors
/// Only if a schema is not available; faults of the document are findings.
pub fn review<S: Schemas>(
    protocol: &Protocol,
    schemas: &S,
    input: &Input<'_>,
    hint: Option<&IssueKey>,
) -> Result<Review, S::Error> {
    review_imported(protocol, schemas, input, hint, None)
}

/// The review of a contract whose fields are in another wrapper than the protocol's.
fn misplaced(protocol: &Protocol, source: &Source, wrapper: Option<&str>) -> Option<Review> {
    let mut misplaced = wrapped_wrong(protocol, source, wrapper);
    if misplaced.is_empty() {
        return None;
    }
    place_all(&mut misplaced, source, &Shape::open(), wrapper);
    // Naming the parties outweighs the faults.
    let known = 4 * (misplaced.len() + 1);
    Some(Review {
        known,
        ..Review::refused(misplaced)
    })
}

/// Like [`review`], but for import: the document may lack what its import profile allows.
///
/// # Errors
/// Only if a schema is not available; faults of the document are findings.
pub fn review_imported<S: Schemas>(
    protocol: &Protocol,
    schemas: &S,
    input: &Input<'_>,
    hint: Option<&IssueKey>,
    imported: Option<&ImportSource>,
) -> Result<Review, S::Error> {
    let source = match input.source() {
        Ok(source) => source,
        Err(findings) => return Ok(Review::refused(findings.to_vec())),
    };
    if let Some(finding) = unknown_format(protocol, source.format()) {
        return Ok(Review::refused(vec![finding]));
    }
    let opened = Opened::new(protocol, source);
    let wrapper = opened.wrapper.as_deref();
    let probe = |pointer: &str| source.probe(wrapper, pointer);
    let known = known_fields(protocol, &probe);
    if let Some(refused) = misplaced(protocol, source, wrapper) {
        return Ok(refused);
    }
    let envelope = Envelope {
        root: opened.root.as_deref(),
        format: opened.format,
        probe: &probe,
    };
    let (resolved, kind, mut findings) = match protocol.resolve(&envelope) {
        Ok(resolved) => (Some(resolved.clone()), resolved.kind, Vec::new()),
        Err(Unresolved::Envelope(findings, Some(kind))) => (None, kind, findings),
        Err(unresolved) => {
            let refused = nowhere_to_go(protocol, source, wrapper, unresolved);
            return Ok(Review { known, ..refused });
        }
    };
    let schema = schemas.schema(kind)?;
    let checked = schema.check(source, wrapper);
    place_all(&mut findings, source, schema.shape(), wrapper);
    let Checked {
        value,
        findings: mut checked,
    } = checked;
    excuse_example(kind, &value, &mut checked);
    add_all(&mut findings, checked);
    let mut found = semantic::faults(protocol, kind, schemas, &value)?;
    let new_at = protocol.field(kind, |f| &f.new_issue);
    let new_issue = new_at.and_then(|at| issue_at(at, &value));
    if let (true, Some(resolved)) = (opened.embedded, &resolved) {
        findings.extend(title_faults(protocol, source, resolved));
    }
    let issue = issue_of(protocol, kind, &value, hint, new_issue.as_ref(), &mut found);
    found.extend(unfinished(protocol, kind, &value));
    let own = consistency::own(protocol, kind, &value);
    let root = opened.root.as_deref();
    found.extend(at_sound_places(&own, &value, &findings, root));
    if let Some(to) = resolved.as_ref().and_then(|resolved| resolved.to.as_ref()) {
        found.extend(closes_badly(protocol, kind, to, &value));
    }
    place_all(&mut found, source, schema.shape(), wrapper);
    prefer_unfinished(&mut findings, &found);
    add_all(&mut findings, found);
    lie_deeper(&mut findings, |at| value.pointer(at).is_some());
    let imported = imported.map(|imported| known_unknown(protocol, kind, imported, &mut findings));
    if imported.is_none() {
        findings.extend(importable(protocol, kind, &findings));
    }
    semantic::gates(protocol, &mut findings);
    place_all(&mut findings, source, schema.shape(), wrapper);
    let is_valid = !findings.iter().any(Finding::is_error);
    let read = resolved.zip(issue).map(|(resolved, issue)| Contract {
        imported,
        contradictions: own.into_iter().map(Contradiction::from).collect(),
        ..Contract::read(protocol, input, source.format(), resolved, issue, value)
    });
    let (contract, draft) = if is_valid { (read, None) } else { (None, read) };
    by_place(&mut findings);
    Ok(Review {
        findings,
        kind: Some(kind.name.clone()),
        contract,
        draft,
        new_issue,
        names_session: new_at.is_some_and(|at| at.starts_with('/')),
        no_route: false,
        unused: None,
        known,
    })
}

/// The review of a document whose type is unknown.
fn nowhere_to_go(
    protocol: &Protocol,
    source: &Source,
    wrapper: Option<&str>,
    unresolved: Unresolved<'_>,
) -> Review {
    let (mut findings, no_route) = match unresolved {
        Unresolved::Envelope(findings, _) => (findings, false),
        Unresolved::Route(finding) => (vec![*finding], true),
    };
    lie_deeper(&mut findings, |at| source.probe(wrapper, at).is_some());
    semantic::gates(protocol, &mut findings);
    place_all(&mut findings, source, &Shape::open(), wrapper);
    Review {
        no_route,
        ..Review::refused(findings)
    }
}

/// Sorts findings by place.
fn by_place(findings: &mut [Finding]) {
    let by = |f: &Finding| (f.line, f.column, f.path.clone(), f.code.as_str());
    findings.sort_by_cached_key(by);
}

/// The contradictions of a contract that other faults can't explain.
fn at_sound_places(
    own: &[Broken<'_>],
    value: &Value,
    findings: &[Finding],
    root: Option<&str>,
) -> Vec<Finding> {
    let faults = findings.iter().filter(|finding| finding.is_error());
    let inside = |path: &'_ str| {
        let path = path.strip_prefix('/')?.strip_prefix(root?)?;
        path.starts_with('/').then(|| path.to_owned())
    };
    let faulty: Vec<String> = faults
        .map(|fault| inside(&fault.path).unwrap_or_else(|| fault.path.clone()))
        .collect();
    let is_sound = |place: &str| !faulty.iter().any(|at| meet(place, at));
    // The faulty items of a list, or members of its items, as a term names them.
    let in_list = |place: &str| {
        let Some((list, member)) = place.split_once("/*") else {
            return is_sound(place).then_some(0);
        };
        let member = member.trim_start_matches('/');
        let is_open = |at: &&str| match at.trim_start_matches('/').rsplit_once('/') {
            None => true,
            Some((_, last)) => last.trim_start_matches('@') == member,
        };
        let below = faulty.iter().filter_map(|at| at.strip_prefix(list));
        let is_whole = |at: &String| is_within(at, list);
        (!faulty.iter().any(is_whole)).then(|| below.filter(is_open).count())
    };
    let told = own
        .iter()
        .filter(|broken| broken.places().all(is_sound) || broken.is_certain(value, in_list));
    told.map(|broken| broken.finding.clone()).collect()
}

/// Whether a place is another one, or in it.
fn is_within(outer: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether two places are one, or one is in the other.
fn meet(one: &str, other: &str) -> bool {
    is_within(one, other) || is_within(other, one)
}

/// Whether a place has a fault, is in one that has, or has one in it.
fn is_faulty(place: &str, findings: &[Finding]) -> bool {
    let mut faults = findings.iter().filter(|finding| finding.is_error());
    !place.is_empty() && faults.any(|f| !f.path.is_empty() && meet(place, &f.path))
}

/// Adds what a later layer found, except at places that have faults, and what was found already.
pub fn add_later(findings: &mut Vec<Finding>, mut later: Vec<Finding>) {
    let is_told = |finding: &Finding, findings: &[Finding]| {
        let mut told = findings.iter();
        told.any(|one| one.code == finding.code && one.message == finding.message)
    };
    later.retain(|finding| !is_faulty(&finding.path, findings) && !is_told(finding, findings));
    findings.append(&mut later);
    by_place(findings);
    findings.sort_by_key(|finding| finding.code == FindingCode::StepRefused);
}

/// Which later layers have what they need of a document with faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soundness {
    /// What decides whether it may be sent now: its id, issue, status, priority and failure.
    pub step: bool,
    /// What names its code: the branch, the base and the reviewed commit.
    pub code: bool,
}

impl Soundness {
    /// Nothing is sound: the document can't be read, or its type is unknown.
    pub const NONE: Self = Self {
        step: false,
        code: false,
    };

    /// Finds what is sound in a document of this type with these findings.
    ///
    /// # Errors
    /// If its schema is not available.
    pub fn of<S: Schemas>(
        protocol: &Protocol,
        schemas: &S,
        kind: &ContractType,
        input: &Input<'_>,
        findings: &[Finding],
    ) -> Result<Self, S::Error> {
        let is_sound = |places: Vec<Option<&str>>| {
            let found = places
                .into_iter()
                .flatten()
                .filter(|at| at.starts_with('/'));
            // The code does not matter.
            let found = found.map(|at| Finding::error(FindingCode::FieldMissing, at, ""));
            let found = placed(protocol, schemas, kind, input, found.collect())?;
            Ok(!found.iter().any(|at| is_faulty(&at.path, findings)))
        };
        let (reviews, failure) = (kind.reviews.as_ref(), kind.failure.as_ref());
        Ok(Self {
            step: is_sound(vec![
                protocol.field(kind, |f| &f.id),
                protocol.field(kind, |f| &f.issue),
                protocol.field(kind, |f| &f.status),
                protocol.field(kind, |f| &f.priority),
                failure.map(|failure| failure.code.as_str()),
                failure.and_then(|failure| failure.recoverable.as_deref()),
            ])?,
            code: is_sound(vec![
                branch_at(protocol, kind),
                kind.claims
                    .as_ref()
                    .and_then(|claims| claims.base.as_deref()),
                reviews.and_then(|reviews| reviews.commit.as_deref()),
            ])?,
        })
    }
}

/// Removes the findings about members that the import profile makes optional, and records these
/// members as unknown.
fn known_unknown(
    protocol: &Protocol,
    kind: &ContractType,
    imported: &ImportSource,
    findings: &mut Vec<Finding>,
) -> ImportSource {
    let profiles = &protocol.definition().imports;
    let profile = imported.profile.as_ref().and_then(|p| profiles.get(p));
    let lenient = profile.and_then(|profile| profile.contracts.get(&kind.name));
    let mut unknown = Vec::new();
    findings.retain(|finding| {
        let allowed = finding.code == FindingCode::FieldMissing
            && lenient.is_some_and(|lenient| lenient.may_lack(&finding.path));
        if allowed && !unknown.contains(&finding.path) {
            unknown.push(finding.path.clone());
        }
        !allowed
    });
    unknown.sort();
    ImportSource {
        unknown,
        ..imported.clone()
    }
}

/// Rewrites findings about missing fields that are in [`FREE`], where they are not read.
fn lie_deeper(findings: &mut [Finding], has: impl Fn(&str) -> bool) {
    for finding in findings {
        let missing = finding.code == FindingCode::FieldMissing;
        let Some((above, name)) = finding.path.rsplit_once('/').filter(|_| missing) else {
            continue;
        };
        if above.matches('/').count() <= 1 && has(&format!("/{FREE}/{name}")) {
            finding.message = format!("`{name}` is in `{FREE}`, where it is not read");
            finding.fix = Some(format!("move it out of `{FREE}`, beside it"));
        }
    }
}

/// The note that an import profile allows all the missing members.
fn importable(protocol: &Protocol, kind: &ContractType, findings: &[Finding]) -> Option<Finding> {
    let mut faults = findings
        .iter()
        .filter(|finding| finding.is_error())
        .peekable();
    faults.peek()?;
    let faults: Vec<&Finding> = faults.collect();
    let takes = |profile: &ImportProfile| {
        let lenient = profile.contracts.get(&kind.name);
        lenient.is_some_and(|lenient| {
            let mut faults = faults.iter();
            faults.all(|fault| {
                fault.code == FindingCode::FieldMissing && lenient.may_lack(&fault.path)
            })
        })
    };
    let mut profiles = protocol.definition().imports.iter();
    let (name, _) = profiles.find(|(_, profile)| takes(profile))?;
    let text = format!(
        "`git handoff import` and `git handoff exchange` take it as it is, by the profile `{name}`"
    );
    let mut finding = Finding::error(FindingCode::ContractImportable, "", text);
    finding.severity = Severity::Note;
    Some(finding.fix("git handoff import FILE: what it lacks is recorded as unknown; git handoff exchange FOLDER, for a folder of such files"))
}

/// Reduces findings about lists of choices to warnings, if the value is an example that the
/// protocol lists by digest.
fn excuse_example(kind: &ContractType, value: &Value, findings: &mut [Finding]) {
    if kind.examples.is_empty() {
        return;
    }
    let undecided = |f: &&mut Finding| f.code == FindingCode::FieldUndecided;
    let mut undecided = findings.iter_mut().filter(undecided).peekable();
    if undecided.peek().is_some() && kind.examples.contains(&content_digest(value)) {
        undecided.for_each(|finding| finding.severity = Severity::Warning);
    }
}

/// If a status means unfinished work, drops other findings at its place: they would only list the
/// valid words.
fn prefer_unfinished(findings: &mut Vec<Finding>, found: &[Finding]) {
    let unfinished = |f: &&Finding| f.code == FindingCode::StatusUnfinished;
    if let Some(unfinished) = found.iter().find(unfinished) {
        findings.retain(|f| f.path != unfinished.path);
    }
}

fn unknown_format(protocol: &Protocol, format: Format) -> Option<Finding> {
    let formats = &protocol.definition().formats;
    let name = protocol.name();
    (!formats.contains(&format.to_string())).then(|| {
        let text = format!("protocol {name} has no contracts in {format}");
        Finding::error(FindingCode::ContractFormat, "", text)
            .fix(format!("write it as {}", formats.join(" or ")))
    })
}

/// The contradictions between a message's title and the contract in it.
fn title_faults(protocol: &Protocol, source: &Source, resolved: &Resolved<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (title, party) in [("/from", &resolved.from), ("/to", &resolved.to)] {
        let named = source.probe(None, title);
        let known = named.as_deref().and_then(|name| protocol.agent(name));
        if let (Some(named), Some(party)) = (named, party)
            && known.is_none_or(|agent| agent.id != *party)
        {
            let text = format!(
                "the title says {}, and the contract {party}",
                quoted(&named)
            );
            let mut finding = Finding::error(FindingCode::MarkdownParties, "", text);
            let place = source.place(&Shape::open(), None, title);
            (finding.line, finding.column) = (place.line, place.column);
            found.push(finding.fix("let both name the same agents"));
        }
    }
    found
}

/// An issue's key: `at` itself, or the one at the pointer `at`.
fn issue_at(at: &str, value: &Value) -> Option<IssueKey> {
    if at.starts_with('/') {
        return scalar(lookup(value, at)?)?.parse().ok();
    }
    at.parse().ok()
}

/// The number of a document's fields that identify the protocol's contracts.
fn known_fields(protocol: &Protocol, probe: &dyn Fn(&str) -> Option<String>) -> usize {
    let definition = protocol.definition();
    let own = definition.contracts.iter();
    let own = own.flat_map(|c| {
        c.fields
            .given()
            .map(|(_, at)| at)
            .chain(c.when.keys().map(|k| &**k))
    });
    let all: BTreeSet<&str> = definition
        .fields
        .given()
        .map(|(_, at)| at)
        .chain(own)
        .collect();
    all.into_iter()
        .filter(|at| at.starts_with('/') && probe(at).is_some())
        .count()
}

/// Adds the findings of a later stage, except at places that have one already.
fn add_all(findings: &mut Vec<Finding>, later: Vec<Finding>) {
    for finding in later {
        if !findings.iter().any(|f| f.path == finding.path) {
            findings.push(finding);
        }
    }
}

/// Replaces JSON Pointers by places in the source.
fn place_all(findings: &mut [Finding], source: &Source, shape: &Shape, wrapper: Option<&str>) {
    for finding in findings.iter_mut().filter(|f| f.line.is_none()) {
        let Place { path, line, column } = source.place(shape, wrapper, &finding.path);
        finding.path = path;
        finding.line = line;
        finding.column = column;
    }
}

/// Maps findings with JSON Pointers to places in the source.
///
/// # Errors
/// If its schema is not available.
pub fn placed<S: Schemas>(
    protocol: &Protocol,
    schemas: &S,
    kind: &ContractType,
    input: &Input<'_>,
    mut findings: Vec<Finding>,
) -> Result<Vec<Finding>, S::Error> {
    if let (false, Ok(source)) = (findings.is_empty(), input.source()) {
        let wrapper = Opened::new(protocol, source).wrapper;
        let schema = schemas.schema(kind)?;
        place_all(&mut findings, source, schema.shape(), wrapper.as_deref());
    }
    Ok(findings)
}

/// The issue's key, from the contract or the hint.
fn issue_of(
    protocol: &Protocol,
    kind: &ContractType,
    value: &Value,
    hint: Option<&IssueKey>,
    new_issue: Option<&IssueKey>,
    findings: &mut Vec<Finding>,
) -> Option<IssueKey> {
    let at = protocol.field(kind, |f| &f.issue);
    let Some((pointer, text)) = at.and_then(|at| Some((at, scalar(lookup(value, at)?)?))) else {
        if hint.is_none() {
            // A missing issue is only a note: the sender may name it.
            let text = match at {
                Some(at) => format!(
                    "the contract names no issue in `{}`",
                    at.trim_start_matches('/')
                ),
                None => "the contract names no issue".to_owned(),
            };
            let mut finding =
                Finding::error(FindingCode::EnvelopeIssue, at.unwrap_or_default(), text);
            finding.severity = Severity::Note;
            let mut routes = protocol.definition().routes.iter();
            let opens = routes.any(|route| route.opens && route.contracts.contains(&kind.name));
            let fix = match new_issue {
                Some(key) if opens => {
                    format!("it opens issue {key} when it is sent, or say which with --issue")
                }
                Some(key) => format!("it is taken to be about {key}, or say which with --issue"),
                None => "say which one with --issue when it is sent".to_owned(),
            };
            findings.push(finding.fix(fix));
        }
        return hint.cloned();
    };
    match text.parse::<IssueKey>() {
        Ok(key) if hint.is_none_or(|hint| *hint == key) => Some(key),
        Ok(key) => {
            let hint = hint.map(ToString::to_string).unwrap_or_default();
            let text = format!("the contract is about issue {key}, and is sent for issue {hint}");
            findings.push(Finding::error(FindingCode::EnvelopeIssue, pointer, text));
            None
        }
        Err(error) => {
            findings.push(Finding::error(
                FindingCode::EnvelopeIssue,
                pointer,
                error.to_string(),
            ));
            None
        }
    }
}

/// Reports a contract that would end the issue although its status is failed or blocked.
fn closes_badly(
    protocol: &Protocol,
    kind: &ContractType,
    to: &AgentName,
    value: &Value,
) -> Option<Finding> {
    let at = protocol.field(kind, |f| &f.status)?;
    let word = scalar(lookup(value, at)?)?;
    let fails = protocol.outcome(kind, Some(&word)) != Outcome::Complete;
    if !fails || !protocol.is_kind(to.as_str(), AgentKind::End) {
        return None;
    }
    let text = format!("status `{word}` says that the work did not succeed, and {to} would end it");
    let finding = Finding::error(FindingCode::StatusClosing, at, text);
    Some(finding.fix("send it to the agent that decides what follows, or fail or block what you hold: git handoff fail, git handoff block"))
}

/// Whether a status word in a contract of this type says that its sender is still working. In a
/// request, it says that of the receiver.
pub(crate) fn still_at_work(protocol: &Protocol, kind: &ContractType, word: &str) -> bool {
    let is_request = protocol.definition().style() == Style::Call && kind.travels();
    let state = protocol.definition().words.status.get(word);
    !is_request && matches!(state, Some(State::Pending | State::InProgress))
}

/// Reports a status that says that the sender is still working or, in a request, that its receiver
/// already is.
fn unfinished(protocol: &Protocol, kind: &ContractType, value: &Value) -> Option<Finding> {
    let at = protocol.field(kind, |f| &f.status)?;
    let word = scalar(lookup(value, at)?)?;
    if !still_at_work(protocol, kind, &word) {
        let state = *protocol.definition().words.status.get(&word)?;
        let text = format!("status `{word}` says that the receiver is at work already");
        let finding = Finding::warning(FindingCode::StatusClaimed, at, text);
        let fix = "send it as it is: it waits until its receiver claims it";
        return (state == State::InProgress).then(|| finding.fix(fix));
    }
    let text = format!("status `{word}` says that the sender is still at work");
    let finding = Finding::error(FindingCode::StatusUnfinished, at, text);
    Some(finding.fix("send the contract when the work is done, has failed or is blocked"))
}
