//! Records, issues and receipts, as text and as JSON.
//!
//! `receipt` renders the result of a write, `rows` handoffs as a table, `kept` a failure's context,
//! `policy` the policy in force, `advice` next commands, `audit` an audit. These modules arrange
//! values; a `Look` adapts them to the terminal.

pub mod advice;
pub mod attention;
pub mod audit;
pub mod kept;
mod policy;
pub mod receipt;
pub mod rows;
pub mod stored;

pub use policy::{REFUSED_ANYWAY, in_force, policies, policies_text, policy_line};

use std::collections::BTreeMap;

use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::short_id;
use handoff::base::text::{continued, fenced, set_off, word};
use handoff::ledger::{
    Briefing, IssueReport, OtherProtocol, Rejection, Said, WorkBranch, WorkBrief,
};
use handoff::model::evidence::NOT_APPLICABLE;
use handoff::model::{
    Annotation, AnswerGiven, Artifact, Decision, Evidence, FailureContext, IssueStatus,
    NotApplicable, Paused, Record, RefusedContract, ReviewFinding, Spent, Task, Told, Transition,
    Verdict, issue_folder, kept_option, overdue_text,
};
use handoff::protocol::{Check, Event, State};
use serde_json::Value;

use crate::output::counted;
use crate::render::attention::attention_text;
use crate::view::{Look, colored};

/// The maximum number of an issue's attention entries that are printed.
const NEEDS_PRINTED: usize = 5;

/// One handoff on one line.
pub fn headline(record: &Record) -> String {
    let (id, from, to) = (&record.id, &record.from, &record.to);
    format!("{id} {from} → {to}: {}", colored(record.state))
}

/// One handoff with its history.
pub fn record_text(record: &Record, look: &Look) -> String {
    let (id, from, to) = (&record.id, &record.from, &record.to);
    let (arrow, state) = (look.arrow(), look.state(record.state));
    let summary = continued(&record.summary);
    let mut text = format!("{id} {from} {arrow} {to}: {state}\n  summary   {summary}\n");
    let details = [
        contract_details(record),
        lease_details(record, look),
        work_details(record, look),
        sender_details(record),
        usage_details(record),
    ];
    for (name, value) in details.into_iter().flatten() {
        if !value.is_empty() {
            text += &format!("  {name:<9} {value}\n");
        }
    }
    if record.state == State::Blocked && !record.questions().is_empty() {
        text += "  asked\n";
        text += &set_off(&advice::questions_text(record.questions()));
    }
    text + &history_text(record, look)
}

/// What happened to a handoff, step by step.
pub fn history_text(record: &Record, look: &Look) -> String {
    let mut text = String::new();
    let mut reports = &record.progress[..];
    for (i, t) in record.transitions.iter().enumerate() {
        text += &transition_text(t, look);
        // Progress reports are listed between the claim they belong to and the next transition.
        let next = record.transitions.get(i + 1).map(|next| next.at);
        let claimed = t.event == Some(Event::Claim);
        let until = reports.partition_point(|p| claimed && next.is_none_or(|next| p.at <= next));
        let (made, later) = reports.split_at(until);
        reports = later;
        for report in made {
            let (at, said) = (look.moment(report.at), &report.text);
            text += &indented(&format!("progress, {at}: {said}"));
        }
        if let Some(context) = &t.context {
            let option = kept_option(&context.folder);
            let see = format!("git handoff restore {} {option}", record.id);
            let has_work = context.files > 0 || !option.starts_with("--attempt");
            let see = if has_work {
                format!(": see `{see}`")
            } else {
                "; nothing of the work was kept".to_owned()
            };
            text += &indented(&(kept(record, context) + &see));
        }
    }
    text
}

/// A handoff's detail: name and value; not shown if the value is empty.
type Detail = (&'static str, String);

fn contract_details(record: &Record) -> Vec<Detail> {
    let (contract, kind) = (&record.contract, &record.contract_type);
    let priority = record.priority.as_deref().map(continued);
    let follows = record.follows.as_ref().map(ToString::to_string);
    let replaces = record.replaces.as_ref().map(ToString::to_string);
    let mut details = vec![
        ("type", format!("{kind} ({})", contract.format)),
        ("sha256", contract.sha256.clone()),
        ("priority", priority.unwrap_or_default()),
        ("follows", follows.unwrap_or_default()),
        ("replaces", replaces.unwrap_or_default()),
    ];
    if let Some(code) = &record.code {
        // A tampered record may contain any text here.
        let commit = short_id(&code.commit);
        let at = format!("{} at {}", continued(&code.branch), continued(&commit));
        details.push(("branch", at));
    }
    details
}

fn lease_details(record: &Record, look: &Look) -> Vec<Detail> {
    let Some(lease) = &record.lease else {
        return Vec::new();
    };
    let end = lease.expires_at.map(|end| {
        let ran_out = record.is_expired(look.now());
        let word = if ran_out { "ran out" } else { "until" };
        format!(", {word} {}", look.moment(end))
    });
    let held = format!(
        "{} (worker {}) since {}{}, token {}",
        lease.holder,
        lease.worker,
        look.moment(lease.since),
        end.unwrap_or_default(),
        lease.token
    );
    let progress = lease
        .progress
        .as_ref()
        .map(|progress| format!("{} ({})", continued(&progress.text), look.ago(progress.at)));
    vec![
        ("held by", held),
        ("progress", progress.unwrap_or_default()),
    ]
}

/// The reported usage of each claim.
fn usage_details(record: &Record) -> Vec<Detail> {
    let usage = record.usage.iter().filter_map(|usage| {
        let took = Spent::of(&usage.models).text()?;
        let names = usage
            .models
            .iter()
            .filter_map(|model| model.model.as_deref());
        let names: Vec<String> = names.map(continued).collect();
        let names = if names.is_empty() {
            String::new()
        } else {
            format!(", {}", names.join(" and "))
        };
        Some((
            "took",
            format!("{took}{names} ({}, attempt {})", usage.by, usage.attempt),
        ))
    });
    usage.collect()
}

/// What the handoff answers, waits for, expects and delivers.
fn work_details(record: &Record, look: &Look) -> Vec<Detail> {
    let ids = |ids: &[HandoffId]| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        ids.join(", ")
    };
    let not_before = record.not_before.map(|at| look.moment(at));
    let claim_by = record.acknowledge_by.map(|at| look.moment(at));
    let intended = record.intended.as_ref().map(ToString::to_string);
    let recommended = record.recommended.as_ref().map(ToString::to_string);
    let task = record.task.as_ref().map(|task| {
        let of = task.parent.as_ref().map(|p| format!(" of {p}"));
        continued(&format!("{}{}", task.id, of.unwrap_or_default()))
    });
    let expects = record.expects.as_ref().map(|expected| {
        continued(&format!(
            "{} at {}",
            expected.artifact_type, expected.destination
        ))
    });
    let imported = record.imported.as_ref();
    let from_file = imported.map(|imported| {
        let profile = imported.profile.as_ref().map(|p| format!(", by {p}"));
        continued(&format!("{}{}", imported.file, profile.unwrap_or_default()))
    });
    let unknown = imported.map(|imported| continued(&imported.unknown.join(", ")));
    let mut details = vec![
        ("imported from", from_file.unwrap_or_default()),
        ("unknown", unknown.unwrap_or_default()),
        ("not before", not_before.unwrap_or_default()),
        ("claim by", claim_by.unwrap_or_default()),
        ("answers", ids(record.answers.as_slice())),
        ("meant for", intended.unwrap_or_default()),
        ("recommends", recommended.unwrap_or_default()),
        ("task", task.unwrap_or_default()),
        ("waits for", ids(&record.waits_for)),
        ("parts", ids(&record.parts)),
        ("expects", expects.unwrap_or_default()),
    ];
    let artifacts = record.artifacts.iter();
    details.extend(artifacts.map(|delivered| ("artifact", continued(&artifact(delivered)))));
    let claims = record.evidence.iter();
    details.extend(claims.map(|checked| ("statement", continued(&claim(checked)))));
    let contradictions = record.contradictions.iter();
    let said = contradictions.map(|known| ("contradicts", continued(&known.message)));
    details.extend(said);
    let absent = record.not_applicable.iter();
    let said = absent.map(|known| {
        (
            "n/a",
            continued(&format!("{}: {}", known.path, known.reason)),
        )
    });
    details.extend(said);
    details
}

/// The sender's session and violations, and the number of the attempt.
fn sender_details(record: &Record) -> Vec<Detail> {
    let session = record.session.as_deref().map(continued);
    let mut details = vec![("session", session.unwrap_or_default())];
    if let Some(violation) = record.violation() {
        details.push(("violation", continued(&violation)));
    } else if let Some(fault) = record.fault() {
        details.push(("no success", continued(&fault)));
    }
    if record.attempt > 1 {
        details.push(("attempt", record.attempt.to_string()));
    }
    details
}

/// A line for each paused issue.
pub fn pauses_text<'a>(paused: impl IntoIterator<Item = (&'a IssueKey, &'a Paused)>) -> String {
    let line = |(key, paused)| format!("issue {key} is {paused}\n");
    paused.into_iter().map(line).collect()
}

/// One transition, with its time and its reasons.
pub fn transition_text(t: &Transition, look: &Look) -> String {
    let event = t.event.map_or("send", handoff::protocol::Event::as_str);
    let sent = t
        .sent
        .as_ref()
        .map(|id| format!(" with {id}"))
        .unwrap_or_default();
    let mut text = format!(
        "  {} {event} by {} {} {}{sent}\n",
        look.moment(t.at),
        t.by,
        look.arrow(),
        look.state(t.to)
    );
    if let Some(receiver) = &t.receiver {
        text += &indented(&format!("now with {receiver}"));
    }
    if let Some(reason) = &t.reason {
        text += &set_off(reason);
    }
    for allowed in &t.allowed_secrets {
        text += &indented(&format!(
            "allowed although it looks like a secret: {allowed}"
        ));
    }
    for (key, value) in &t.values {
        text += &set_off(&fact(key, value));
    }
    if let Some(failure) = &t.failure {
        let retry = if failure.no_retry {
            "no further attempt"
        } else if failure.recoverable {
            "recoverable"
        } else {
            "not recoverable"
        };
        text += &indented(&format!(
            "{}: {} ({retry})",
            failure.named(),
            failure.message
        ));
        for more in [&failure.details, &failure.suggested_action]
            .into_iter()
            .flatten()
        {
            text += &set_off(more);
        }
    }
    text
}

/// The location and size of a failure's context.
fn kept(record: &Record, context: &FailureContext) -> String {
    let folder = issue_folder(record.id.issue());
    let (files, bytes) = (context.files, context.bytes);
    let held = match files {
        0 => String::new(),
        _ => format!(
            ", with {} of {}",
            counted(files, "file"),
            counted(bytes, "byte")
        ),
    };
    format!("kept in {folder}/{}{held}", context.folder)
}

/// An indented line below a transition.
fn indented(text: &str) -> String {
    format!("      {}\n", continued(text))
}

/// The work's needs: task, title, requirements, open findings, answers, workspace and branch,
/// without what the contract below states.
fn work_text(work: &WorkBrief, record: &Record, contract: &str) -> String {
    let (title, summary) = (&work.title, &record.summary);
    let mut lines: Vec<String> = work.answers.iter().flat_map(answer_lines).collect();
    if let Some(task) = &record.task {
        lines.push(format!("task {}: {summary}", task.id));
    }
    let is_told = record.task.is_some() && title == summary;
    // Later contracts may have the title as something else: as a commit's message.
    let is_first = record.id.number() == 1;
    if !(is_told || is_first && has_text(contract, title)) {
        lines.push(format!("title: {title}"));
    }
    let opening = work.opening.iter();
    let opening = opening.filter(|text| !has_text(contract, text));
    lines.extend(opening.map(|text| format!("opened with: {text}")));
    for (name, value) in &work.facts {
        if work.changed.contains(name)
            || !(has_texts(contract, value) || states(contract, name, value))
        {
            lines.extend(fact_lines(&work.told(name), value));
        }
    }
    if !record.evidence.is_empty() {
        lines.push(format!("statements: {}", verdicts(&record.evidence)));
    }
    let contradicted = record.contradicted().into_iter();
    lines.extend(contradicted.map(|one| format!("contradicted: {one}")));
    let findings = work.findings.iter().map(ReviewFinding::line);
    lines.extend(finding_lines(
        findings.chain(work.asked.iter().map(Said::line)),
    ));
    lines.extend(work.branch.as_ref().map(branch_text));
    lines.extend(work.rejected.iter().map(rejection_text));
    lines.extend(work.decisions.iter().map(decision_text));
    let shown = lines.iter().map(|line| format!("  {}\n", continued(line)));
    if lines.is_empty() {
        return String::new();
    }
    format!("\nthe work\n{}", shown.collect::<String>())
}

/// Findings of reviews, with their outcomes.
fn finding_lines(findings: impl Iterator<Item = String>) -> Vec<String> {
    let lines: Vec<String> = findings.map(|one| format!("  - {one}")).collect();
    let head = (!lines.is_empty()).then(|| "findings:".to_owned());
    head.into_iter().chain(lines).collect()
}

/// Remarks from outside the ledger, by kind.
fn said_lines(said: &[Said]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut title = None;
    for one in said {
        if title
            .replace(&one.title)
            .is_none_or(|title| *title != one.title)
        {
            lines.push(format!("{}:", one.title));
        }
        lines.push(format!("  - {}", one.line()));
    }
    lines
}

/// The code branch, and whether it is in this clone.
pub fn branch_text(branch: &WorkBranch) -> String {
    let name = &branch.name;
    match (&branch.commit, &branch.sent) {
        (Some(here), Some(sent)) if branch.behind => {
            let (here, sent, branch) = (short_id(here), short_id(sent), word(name));
            format!(
                "branch: {name} at {here} here, behind {sent}, where it was when this was sent (`git switch {branch}` and `git merge --ff-only {sent}`)"
            )
        }
        (Some(here), Some(sent)) if here != sent => {
            let (here, sent) = (short_id(here), short_id(sent));
            format!(
                "branch: {name} at {here} here; it was at {sent} when this was sent (`git fetch` if that is missing)"
            )
        }
        (Some(here), _) => {
            let origin = if branch.is_local { "" } else { "origin/" };
            format!("branch: {origin}{name} at {}", short_id(here))
        }
        (None, Some(sent)) => {
            let sent = short_id(sent);
            format!(
                "branch: {name} is not in this clone (`git fetch`); it was at {sent} when this was sent"
            )
        }
        (None, None) => format!("branch: {name} is not in this clone (`git fetch`)"),
    }
}

/// The rejection of an earlier handoff, for the agent that works on its successor.
pub fn rejection_text(rejection: &Rejection) -> String {
    let (by, id) = (&rejection.by, &rejection.id);
    let why = rejection.why.iter().map(|why| format!(": {why}"));
    format!("{by} rejected {id}{}", why.collect::<String>())
}

/// A decision, for the agent that works on its subject.
pub fn decision_text(decision: &Decision) -> String {
    let (by, id, why) = (&decision.by, &decision.id, &decision.why);
    format!("{by} decided on {id}: {}: {why}", decision.action.as_str())
}

/// An answer and its question.
fn answer_lines(answer: &AnswerGiven) -> Vec<String> {
    let (id, by) = (&answer.id, &answer.by);
    let asked = answer.asked.as_ref();
    let asked = asked.map(|asked| format!(", which asked: {asked}"));
    let head = format!("answered by {by} for {id}{}", asked.unwrap_or_default());
    let text = answer.text.as_ref().map(|text| format!("  - {text}"));
    let values = answer.values.iter().map(|(key, value)| {
        let mut all = answer.questions.iter();
        let question = all.find(|question| question.key == *key);
        let meaning = question.and_then(|question| question.description.as_ref());
        let meaning = meaning.map(|meaning| format!(" ({meaning})"));
        let outdated = if answer.outdated.contains(key) {
            "; a contract has stated it since"
        } else {
            ""
        };
        let meaning = meaning.unwrap_or_default();
        format!("  - {key}: {}{meaning}{outdated}", inline(value))
    });
    [head].into_iter().chain(text).chain(values).collect()
}

/// A fact; lists and objects get a line for each member.
fn fact_lines(name: &str, value: &Value) -> Vec<String> {
    let under = |lines: Vec<String>| [format!("{name}:")].into_iter().chain(lines).collect();
    match value {
        Value::Array(items) if !items.is_empty() => {
            let lines = items.iter().map(|item| format!("  - {}", inline(item)));
            under(lines.collect())
        }
        Value::Object(members) if !members.is_empty() => {
            let lines = members
                .iter()
                .map(|(k, v)| format!("  - {k}: {}", inline(v)));
            under(lines.collect())
        }
        value => vec![format!("{name}: {}", inline(value))],
    }
}

/// A value on one line.
pub fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(members) => {
            let one = |(k, v): (&String, &Value)| match v {
                Value::String(text) => format!("{k}: {text}"),
                other => format!("{k}: {other}"),
            };
            members.iter().map(one).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}

/// The briefing of a claim: what the work needs, what earlier attempts left, the contract, and
/// further facts.
pub fn briefing_text(brief: &Briefing, record: &Record) -> String {
    let contract = &brief.contract;
    let basis = brief.decided_on.as_ref().map(|basis| &*basis.text);
    let told = format!("{}{}", contract.text, basis.unwrap_or_default());
    let mut text = work_text(&brief.work, record, &told) + &kept::kept_text(&brief.failures);
    let format = record.contract.format.extension();
    text += &format!("\n{}", fenced(&contract.text, format));
    if let Some(basis) = &brief.decided_on {
        let contract = fenced(&basis.text, basis.format.extension());
        text += &format!("\nit was decided on {}:\n\n{contract}", basis.id);
    }
    let (agent, id, session) = match &brief.decided_on {
        Some(basis) => (&basis.agent, &basis.id, &basis.session),
        None => (&record.from, &record.id, &record.session),
    };
    if let Some(session) = session {
        text += &format!(
            "\nit continues the work of {agent} ({id}), whose session is {}\n",
            continued(session)
        );
    }
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text += &format!("\n{title}\n");
            text.extend(lines.iter().map(|line| format!("  {}\n", continued(line))));
        }
    };
    section(
        "budget",
        brief
            .budget
            .iter()
            .map(handoff::model::Left::text)
            .collect(),
    );
    section("limits", brief.limits.clone());
    // Facts that the lines above or the contract state are not repeated.
    let is_said = |name: &str, value: &Value| {
        let title = value.as_str() == Some(record.title.as_str());
        title || states(&told, name, value)
    };
    let facts = brief
        .facts
        .iter()
        .filter(|(name, value)| !is_said(name, value));
    let facts = facts.map(|(name, value)| fact(name, value));
    section("known about the issue", facts.collect());
    let issue = record.id.issue();
    let before = format!("see `git handoff context {issue}`");
    section(
        "what was requested, contract by contract",
        (record.id.number() > 1)
            .then_some(before)
            .into_iter()
            .collect(),
    );
    let delivered = record.artifacts.iter().chain(&brief.artifacts);
    let delivered = delivered.map(|one| format!("- {}", artifact(one)));
    section("delivered", delivered.collect());
    let tasks = brief.tasks.iter();
    let tasks = tasks.map(task);
    section("tasks", tasks.collect());
    let notes = brief.annotations.iter().filter(|note| !note.is_usage());
    section("notes", notes.map(note).collect());
    let documents = brief.documents.iter();
    section(
        "shared documents",
        documents.map(|(name, value)| fact(name, value)).collect(),
    );
    text
}

/// Whether a contract states this field and value, in any format.
fn states(contract: &str, name: &str, value: &Value) -> bool {
    let text = inline(value);
    let forms = [
        format!("<{name}>{text}</{name}>"),
        format!("\"{name}\": {value}"),
        format!("\"{name}\":{value}"),
    ];
    // A number ends there.
    let is_whole = |end: usize| {
        let mut rest = contract[end..].chars();
        rest.next().is_none_or(|c| !c.is_ascii_digit() && c != '.')
    };
    forms.iter().any(|form| {
        let mut found = contract.match_indices(form.as_str());
        found.any(|(at, form)| is_whole(at + form.len()))
    })
}

/// Whether a contract contains this text as a value, in any format.
fn has_text(contract: &str, text: &str) -> bool {
    contract.contains(&format!(">{text}<")) || contract.contains(&Value::from(text).to_string())
}

/// Whether a contract contains a value's texts; false for a value with anything but texts.
fn has_texts(contract: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => has_text(contract, text),
        Value::Array(items) => items.iter().all(|item| has_texts(contract, item)),
        Value::Object(members) => members.values().all(|member| has_texts(contract, member)),
        _ => false,
    }
}

fn fact(name: &str, value: &Value) -> String {
    let shown = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    format!("{name}: {shown}")
}

fn artifact(artifact: &Artifact) -> String {
    let held = match (&artifact.sha256, artifact.bytes) {
        (Some(sha256), Some(bytes)) => format!("{bytes} bytes, sha256 {sha256}"),
        _ => "no such file when it was handed over".to_owned(),
    };
    format!("{}: {held}", artifact.path)
}

/// The verdict on a claim.
fn claim(checked: &Evidence) -> String {
    let (name, result) = (checked.check.as_str(), checked.result.as_str());
    match &checked.reason {
        Some(why) => format!("{name} {result}: {why}"),
        None => format!("{name} {result}"),
    }
}

/// The verdicts on all claims, in one line.
fn verdicts(evidence: &[Evidence]) -> String {
    let all = [Verdict::Passed, Verdict::Contradicted, Verdict::Skipped];
    let named = all.into_iter().filter_map(|verdict| {
        let of = evidence.iter().filter(|e| e.result == verdict);
        let names: Vec<String> = of
            .map(|e| match (&e.reason, verdict) {
                (Some(why), Verdict::Skipped) => format!("{} ({why})", e.check.as_str()),
                _ => e.check.as_str().to_owned(),
            })
            .collect();
        (!names.is_empty()).then(|| format!("{} {}", verdict.as_str(), names.join(", ")))
    });
    named.collect::<Vec<_>>().join("; ")
}

/// The verdicts on all claims, for their sender.
fn claims(evidence: &[Evidence]) -> String {
    let named = verdicts(evidence);
    let lacks = |checks: &[Check]| {
        let mut skipped = evidence.iter().filter(|e| e.result == Verdict::Skipped);
        // What does not apply has no report.
        skipped.any(|e| {
            let why = e.reason.as_deref().unwrap_or_default();
            let applies = !why.starts_with(NOT_APPLICABLE);
            checks.contains(&e.check) && e.files.is_empty() && applies
        })
    };
    let options = [
        (&[Check::Tests, Check::TestsAdded][..], "--tests FILE"),
        (&[Check::Coverage], "--coverage FILE"),
    ];
    let options = options.into_iter().filter(|(checks, _)| lacks(checks));
    let options: Vec<&str> = options.map(|(_, option)| option).collect();
    if options.is_empty() {
        return named;
    }
    format!(
        "{named}; `send` takes reports with {}",
        options.join(" and ")
    )
}

/// The number of places that do not apply, and their names.
fn absent(places: &[NotApplicable]) -> String {
    let named = places
        .iter()
        .map(|place| format!("{} ({})", place.path, place.reason));
    let named = continued(&named.collect::<Vec<_>>().join(", "));
    format!("  n/a in {}: {named}\n", counted(places.len(), "place"))
}

fn task(task: &Task) -> String {
    let of = task.parent.as_ref().map(|p| format!(" of {p}"));
    let on = match task.depends_on.join(", ") {
        none if none.is_empty() => none,
        on => format!(", after {on}"),
    };
    let (name, of, state) = (&task.id, of.unwrap_or_default(), task.state.as_str());
    format!("task {name}{of}: {state} ({}{on})", task.handoff)
}

/// Refused contracts that are on record.
pub fn refusals_text(refusals: &[RefusedContract], look: &Look) -> String {
    let line = |refused: &RefusedContract| {
        let (at, by, kind) = (look.moment(refused.at), &refused.by, refused.kind.title());
        let (code, why) = (continued(&refused.code), continued(&refused.why));
        format!("  {at} {by} was refused for {kind} [{code}]: {why}\n")
    };
    refusals.iter().map(line).collect()
}

/// A protocol other than the ledger's default one.
pub fn other_protocol(other: Option<&OtherProtocol>) -> String {
    other.map_or_else(String::new, |other| format!("  {other}\n"))
}

/// Notes that correct the record.
pub fn notes_text(notes: &[Annotation]) -> String {
    notes.iter().map(|n| format!("  {}\n", note(n))).collect()
}

fn note(note: &Annotation) -> String {
    let about = note.id.as_ref().map(|id| format!(" of {id}"));
    let (at, by) = (note.at, &note.by);
    let about = about.unwrap_or_default();
    let text = continued(&note.text());
    let event = note.event.as_ref().map_or("", |_| ", of an event");
    format!("{at} {by} notes{about}{event}: {text}")
}

/// An issue's usage in total and by agent; empty if none was reported.
pub fn issue_usage<'a>(handoffs: impl IntoIterator<Item = &'a Record>) -> String {
    let mut all = Spent::default();
    let mut agents: BTreeMap<&AgentName, Spent> = BTreeMap::new();
    for usage in handoffs.into_iter().flat_map(|record| &record.usage) {
        let spent = Spent::of(&usage.models);
        all.add(&spent);
        agents.entry(&usage.by).or_default().add(&spent);
    }
    let Some(sum) = all.text() else {
        return String::new();
    };
    let each = agents
        .into_iter()
        .filter_map(|(agent, spent)| Some(format!("    {agent} {}\n", spent.text()?)));
    format!("  took {sum}\n{}", each.collect::<String>())
}

/// The contradicted statements of work that was not turned down.
fn contradicted_text(handoffs: &[&Record]) -> String {
    let counted = handoffs.iter().filter(|record| !record.is_turned_down());
    let lines = counted.flat_map(|record| {
        let each = record.contradicted().into_iter();
        each.map(|one| format!("  {} contradicted: {}\n", record.id, continued(&one)))
    });
    lines.collect()
}

/// An issue's facts, but for its title.
fn known_lines(report: &IssueReport) -> impl Iterator<Item = String> {
    let issue = &report.record.0;
    issue.facts.iter().flat_map(|(name, stated)| {
        let known = report.known.get(name).unwrap_or(stated);
        let told = Told::beside(&report.sources, name, name);
        let is_title = told == *name && known.as_str() == Some(&issue.title);
        let lines = (!is_title).then(|| fact_lines(&told, known));
        lines.unwrap_or_default()
    })
}

/// An issue with its facts.
pub fn issue_text<'a>(
    report: &IssueReport,
    (handoffs, usage): (impl Iterator<Item = &'a Record>, &str),
    look: &Look,
) -> String {
    let issue = &report.record.0;
    let paused = issue.paused.as_ref().map_or("", |_| ", paused");
    let mut text = format!(
        "issue {}: {}{paused} ({}, {}, since {})\n",
        issue.issue,
        issue.status.as_str(),
        issue.protocol,
        counted(
            usize::try_from(issue.handoffs).unwrap_or(usize::MAX),
            "handoff"
        ),
        look.moment(issue.opened_at),
    );
    text += &format!("  title: {}\n", continued(&issue.title));
    if let Some(at) = issue.completed_at {
        text += &format!("  completed {}\n", look.moment(at));
    }
    text += usage;
    if let Some(paused) = &issue.paused {
        text += &format!("  {paused}\n");
    }
    let given_up = issue.given_up.last();
    if let Some(last) = given_up.filter(|_| issue.status == IssueStatus::Cancelled) {
        let (at, by, why) = (look.moment(last.at), &last.by, continued(&last.reason));
        text += &format!("  {at} {by} gave it up: {why}\n");
    }
    let findings = finding_lines(issue.findings.iter().map(ReviewFinding::line));
    for line in known_lines(report)
        .chain(findings)
        .chain(said_lines(&report.said))
        .chain(issue.answers.iter().flat_map(answer_lines))
    {
        text += &format!("  {}\n", continued(&line));
    }
    for one in &issue.tasks {
        text += &format!("  {}\n", continued(&task(one)));
    }
    for open in &issue.open {
        let late = open.expires_at.is_some_and(|end| end <= look.now());
        let late = if late {
            format!(", {}", look.urgent(overdue_text(open.state)))
        } else {
            String::new()
        };
        text += &format!(
            "  {} is {}{late} with {}\n",
            open.id,
            look.state(open.state),
            open.to
        );
    }
    for id in &issue.unfollowed {
        text += &format!("  {id} is completed, and waits to be sent on\n");
    }
    for decision in &issue.decisions {
        let (at, by) = (look.moment(decision.at), &decision.by);
        let why = continued(&decision.why);
        text += &format!(
            "  {at} {by} decided to {}: {why}\n",
            decision.action.as_str()
        );
    }
    text += &refusals_text(&issue.refusals, look);
    text += &notes_text(&issue.annotations);
    let handoffs: Vec<&Record> = handoffs.collect();
    text += &contradicted_text(&handoffs);
    look.sentences(&text)
        + &attention_text(
            &report.attention,
            (NEEDS_PRINTED, report.attention.len(), "--json"),
            look,
        )
        + &rows::issue_table(handoffs.into_iter(), look)
}
