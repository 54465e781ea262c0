//! One handoff: sender, receiver, course and contract.

use std::fmt::Write;

use handoff::base::Moment;
use handoff::ledger::{Contents, LedgerError, PastFailure};
use handoff::model::{Evidence, Question, Record, Transition, Verdict, issue_folder};
use handoff::protocol::{Event, State};

use super::escape::{escape_into, escaped};
use super::issue::Facts;
use super::words::{badge, counted, minute, size};
use handoff::ledger::attention::Attention;
use handoff::protocol::Need;

/// A handoff with everything that its section shows.
pub(super) struct HandoffDetails {
    pub(super) record: Record,
    /// The rendered contract.
    pub(super) contract: String,
    /// Its failures, the oldest first, each with its kept context.
    pub(super) failures: Vec<(PastFailure, Option<Result<Contents, LedgerError>>)>,
}

/// Writes the section of one handoff, including events in other handoffs that its sending caused.
pub(super) fn handoff(
    page: &mut String,
    details: &HandoffDetails,
    (title, troubles): (&str, &[String]),
    stuck: Option<&Attention>,
    facts: &Facts<'_>,
) {
    let record = &details.record;
    let id = &record.id;
    *page += &format!("<li id=\"h-{id}\"><h4>{title} · {id}");
    // A completed handoff needs no badge: its successor follows.
    if record.state != State::Completed {
        *page += &format!(" {}", badge(record.state));
    }
    // The state implies the other needs.
    let more = [
        Need::Stranded,
        Need::Unapproved,
        Need::Merged,
        Need::LeaseRanOut,
        Need::NotHandedOn,
        Need::Unclaimed,
        Need::LeaseEnding,
        Need::Answered,
    ];
    if let Some(stuck) = stuck.filter(|stuck| more.contains(&stuck.need)) {
        *page += &format!(" <b class=\"s stuck\">{}</b>", stuck.what());
    }
    page.push_str("</h4><p>");
    escape_into(page, &record.summary);
    page.push_str("</p>");
    for line in troubles {
        *page += &format!("<p class=\"why\">{line}</p>");
    }
    for line in faults(record) {
        *page += &format!("<p class=\"why\">{line}</p>");
    }
    page.push_str("<details><summary>");
    page.push_str(&how(record, facts.now));
    page.push_str("</summary><pre>");
    escape_into(page, &details.contract);
    page.push_str("\n\n");
    escape_into(page, &history(details));
    page.push_str("</pre></details></li>");
}

/// A handoff's type and relations, in one line.
fn how(record: &Record, now: Moment) -> String {
    let (kind, format) = (escaped(&record.contract_type), record.contract.format);
    let mut parts = vec![format!("Contract {kind} ({format})")];
    let mut add = |text: String| parts.push(text);
    if let Some(priority) = &record.priority {
        add(format!("priority {}", escaped(priority)));
    }
    if record.attempt > 1 {
        add(format!("attempt {}", record.attempt));
    }
    if let Some(task) = &record.task {
        add(format!("task {}", escaped(&task.id)));
    }
    if let Some(failed) = &record.replaces {
        add(format!("replaces {failed}"));
    }
    if let Some(request) = &record.answers {
        add(format!("answers {request}"));
    } else if let Some(before) = &record.follows {
        add(format!("follows {before}"));
    }
    if !record.waits_for.is_empty() && record.state == State::Pending {
        let ids: Vec<String> = record.waits_for.iter().map(ToString::to_string).collect();
        add(format!("waits for {}", ids.join(", ")));
    }
    if let Some(at) = record.waits_until(now) {
        add(format!("not before {}", minute(at)));
    }
    if let Some(lease) = &record.lease {
        let held = format!("held by {}", escaped(lease.holder.as_str()));
        add(match lease.expires_at {
            Some(end) => format!("{held} until {}", minute(end)),
            None => held,
        });
        if let Some(progress) = &lease.progress {
            let (at, text) = (minute(progress.at), escaped(&progress.text));
            add(format!("{at}: {text}"));
        }
    }
    parts.join(" · ")
}

/// A failure as a sentence; `index` is that of its transition.
pub(super) fn failed(details: &HandoffDetails, index: usize) -> String {
    let record = &details.record;
    let is_failure = |t: &&Transition| matches!(t.event, Some(Event::Fail | Event::Expire));
    let so_far = record.transitions[..=index].iter().filter(is_failure);
    let Some((failure, _)) = details.failures.get(so_far.count().saturating_sub(1)) else {
        return format!("{} has no attempt left", record.id);
    };
    let mut line = format!(
        "<b>Attempt {} failed</b> at {} with {}",
        failure.attempt,
        record.id,
        escaped(failure.by.as_str())
    );
    if let Some(error) = &failure.error {
        line += &format!(
            ": <code>{}</code> {}",
            escaped(error.named()),
            escaped(&error.message)
        );
        if let Some(action) = &error.suggested_action {
            line += &format!(" Suggested: {}", escaped(action));
        }
    }
    if let Some(context) = &failure.context {
        line += &format!(
            " Kept: {}, <code>git handoff restore {} --attempt {}</code>",
            match context.files {
                0 => "the circumstances".to_owned(),
                files => {
                    let files = usize::try_from(files).unwrap_or(usize::MAX);
                    format!("{} of {}", counted(files, "file"), size(context.bytes))
                }
            },
            record.id,
            failure.attempt
        );
    }
    let next = record.transitions.get(index + 1);
    if next.is_some_and(|next| next.event == Some(Event::Exhaust)) {
        line += " <b>No attempt is left.</b>";
    }
    line
}

/// What an agent waits for, as a sentence.
pub(super) fn waits(record: &Record, block: &Transition) -> String {
    let (by, id) = (escaped(block.by.as_str()), &record.id);
    let why = block.reason.as_deref();
    let why = why.map(|why| format!(": {}", escaped(why)));
    let mut line = format!("<b>{by} asked about {id}</b>{}", why.unwrap_or_default());
    if !block.questions.is_empty() {
        let questions: Vec<String> = block.questions.iter().map(question).collect();
        line += &format!(" Asked: {}", escaped(questions.join("; ")));
    }
    line
}

/// One line of HTML for each contradicted statement, role violation and missing input.
fn faults(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    let contradicted = |e: &&Evidence| e.result == Verdict::Contradicted;
    for claim in record.evidence.iter().filter(contradicted) {
        let why = claim
            .reason
            .as_deref()
            .unwrap_or("the repository says otherwise");
        let check = claim.check.as_str();
        lines.push(format!(
            "<b>Claim contradicted</b> ({check}): {}",
            escaped(why)
        ));
    }
    if !record.violations.is_empty() {
        let (by, what) = (escaped(record.from.as_str()), record.violations.join(", "));
        lines.push(format!(
            "<b>Against its role</b> {by} attempted {}",
            escaped(what)
        ));
    }
    for missing in &record.missing {
        lines.push(format!("<b>Missing</b> {}", escaped(question(missing))));
    }
    lines
}

fn question(question: &Question) -> String {
    let kind = question.kind.as_ref().map(|kind| format!(" ({kind})"));
    let what = question
        .description
        .as_ref()
        .map(|what| format!(": {what}"));
    let optional = if question.optional { ", optional" } else { "" };
    let (kind, what) = (kind.unwrap_or_default(), what.unwrap_or_default());
    format!("{}{kind}{optional}{what}", question.key)
}

/// A handoff's transitions with their details, as lines.
fn history(details: &HandoffDetails) -> String {
    let record = &details.record;
    let mut text = String::from("History\n");
    // Writing to a string can't fail.
    for one in &record.transitions {
        change(&mut text, one);
    }
    for delivered in &record.artifacts {
        let held = match (&delivered.sha256, delivered.bytes) {
            (Some(sha256), Some(bytes)) => format!("{}, sha256 {sha256}", size(bytes)),
            _ => "no such file when it was handed over".to_owned(),
        };
        let _ = writeln!(text, "  artifact {}: {held}", delivered.path);
    }
    for checked in &record.evidence {
        let why = checked.reason.as_ref().map(|why| format!(": {why}"));
        let (check, result) = (checked.check.as_str(), checked.result.as_str());
        let _ = writeln!(
            text,
            "  statement {check} {result}{}",
            why.unwrap_or_default()
        );
    }
    if let Some(code) = &record.code {
        let _ = writeln!(text, "  code {} at {}", code.branch, code.commit);
    }
    if let Some(session) = &record.session {
        let _ = writeln!(text, "  session {session}");
    }
    for (failure, kept) in &details.failures {
        match kept {
            None => {}
            Some(Ok(contents)) => context(&mut text, failure, contents),
            Some(Err(error)) => {
                let attempt = failure.attempt;
                let _ = writeln!(
                    text,
                    "\nThe context of attempt {attempt} can't be read: {error}"
                );
            }
        }
    }
    let (folder, file) = (issue_folder(record.id.issue()), &record.contract.file);
    let _ = write!(
        text,
        "  file {folder}/{file}\n  sha256 {}",
        record.contract.sha256
    );
    text
}

/// One transition as lines.
fn change(text: &mut String, one: &Transition) {
    let event = one.event.map_or("send", Event::as_str);
    let at = one.at;
    let sent = one.sent.as_ref().map(|id| format!(", with {id}"));
    let (by, to) = (&one.by, one.to.words());
    let _ = writeln!(
        text,
        "  {at} {event} by {by} → {to}{}",
        sent.unwrap_or_default()
    );
    let mut below = |what: &str| {
        for line in what.lines() {
            let _ = writeln!(text, "    | {line}");
        }
    };
    if let Some(receiver) = &one.receiver {
        below(&format!("now with {receiver}"));
    }
    if let Some(reason) = &one.reason {
        below(reason);
    }
    for one in &one.questions {
        below(&format!("asks {}", question(one)));
    }
    for (key, value) in &one.values {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        below(&format!("{key}: {value}"));
    }
    for allowed in &one.allowed_secrets {
        below(&format!(
            "allowed although it looks like a secret: {allowed}"
        ));
    }
    if let Some(failure) = &one.failure {
        let again = if failure.no_retry {
            "no further attempt"
        } else if failure.recoverable {
            "recoverable"
        } else {
            "not recoverable"
        };
        below(&format!(
            "{}: {} ({again})",
            failure.named(),
            failure.message
        ));
        for more in [&failure.details, &failure.suggested_action]
            .into_iter()
            .flatten()
        {
            below(more);
        }
    }
}

/// A failure's kept context as lines.
fn context(text: &mut String, failure: &PastFailure, kept: &Contents) {
    add(
        text,
        "failure",
        &format!("attempt {}, kept in {}", failure.attempt, kept.path),
    );
    let host = kept
        .host
        .name
        .as_deref()
        .unwrap_or("a machine without a name");
    add(
        text,
        "machine",
        &format!("{host} ({}, {})", kept.host.os, kept.host.arch),
    );
    let tools = kept
        .tools
        .iter()
        .map(|(name, version)| format!("{name} {version}"));
    add(text, "tools", &tools.collect::<Vec<_>>().join(", "));
    let branch = kept.code.branch.as_deref().unwrap_or("no branch");
    let commit = kept.code.commit.as_deref().unwrap_or("no commit yet");
    add(text, "code", &format!("{branch} at {commit}"));
    if let Some(snapshot) = &kept.snapshot {
        let (files, staged) = (snapshot.files.len(), snapshot.staged.len());
        add(
            text,
            "unfinished",
            &format!("{}, {staged} staged", counted(files, "file")),
        );
    }
    if let Some(command) = &kept.restore {
        add(text, "restore", command);
    }
    for shown in &kept.attachments {
        let attached = &shown.attachment;
        add(
            text,
            "attached",
            &format!("{}, {}", attached.path, size(attached.bytes)),
        );
        if let Some(tail) = &shown.tail {
            if shown.cut {
                text.push_str("    | …\n");
            }
            text.extend(tail.lines().map(|line| format!("    | {line}\n")));
        }
    }
}

fn add(text: &mut String, name: &str, what: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(text, "  {name:<10} {what}");
}
