//! An issue as a narrative: a sentence for each step, and what is open now.

use handoff::base::text::cut;
use handoff::ledger::HandoffSurvey;
use handoff::model::{Annotation, Decision, IssueStatus, Record, Transition};
use handoff::protocol::{Event, State};

use super::escape::escaped;
use super::handoff::{HandoffDetails, failed, handoff, waits};
use super::issue::{Facts, is_late};
use super::order::{Step, What, steps};
use super::words::{badge, length, minute};
use handoff::protocol::Need;
use handoff_graph::times::times;

/// How many open handoffs and findings the end of a story names.
const OPEN: usize = 20;

/// Writes an issue's story.
pub(super) fn story(page: &mut String, facts: &Facts<'_>) {
    let records: Vec<&Record> = facts.handoffs.iter().map(|one| &one.record).collect();
    page.push_str("<ol class=\"hs\">");
    for step in steps(facts.issue, &records) {
        let at = minute(step.at);
        match step.what {
            What::Sent(sent, with) => {
                let details = &facts.handoffs[sent];
                let stuck = facts.stuck.iter();
                let mut stuck = stuck.filter(|stuck| stuck.id == details.record.id);
                let told = sending(facts, details, &with);
                let troubles = with.iter().filter_map(|place| ended(facts, *place));
                let troubles: Vec<String> = troubles.collect();
                let title = format!("{at} {told}");
                handoff(page, details, (&title, &troubles), stuck.next(), facts);
            }
            What::Changed(place, decision) => {
                let (class, told) = changed(facts, place, decision);
                *page += &format!("<li{class}>{at} {told}</li>");
            }
            What::Decided(_)
            | What::Noted(_)
            | What::GivenUp(_)
            | What::Reopened(_)
            | What::Paused(_)
            | What::Resumed(_) => {
                *page += &format!("<li class=\"said\">{at} {}</li>", remark(&step));
            }
        }
    }
    now(page, facts);
    page.push_str("</ol>");
}

/// A step in a few words, for a list of steps of several issues; `None` if its handoff is missing.
pub(super) fn line(step: &Step<'_>, records: &[&Record]) -> (Option<String>, String) {
    match &step.what {
        What::Sent(sent, _) => {
            let record = records[*sent];
            let (from, to) = (&record.from, sent_to(record));
            let told = format!("sent to {} by {}", escaped(to), escaped(from.as_str()));
            (Some(record.id.to_string()), told)
        }
        What::Changed((at, index), _) => {
            let record = records[*at];
            let transition = &record.transitions[*index];
            let what = transition.event.map_or("send", Event::as_str);
            let by = escaped(transition.by.as_str());
            let why = transition
                .why()
                .map(|why| format!(" – {}", escaped(first_line(why))));
            let told = format!(
                "{what}, now {} by {by}{}",
                transition.to.words(),
                why.unwrap_or_default()
            );
            (Some(record.id.to_string()), told)
        }
        _ => (None, remark(step)),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A remark on an issue, as a sentence.
fn remark(step: &Step<'_>) -> String {
    match step.what {
        What::Decided(decision) => {
            let (by, action) = (escaped(decision.by.as_str()), decision.action.as_str());
            let (id, why) = (&decision.id, escaped(&decision.why));
            format!("{by} decided on {id}: <b>{action}</b> – {why}")
        }
        What::Noted(note) => noted(note),
        What::GivenUp(end) => {
            let (by, why) = (escaped(end.by.as_str()), escaped(&end.reason));
            format!("{by} gave the issue up: {why}")
        }
        What::Reopened(again) => {
            let (by, why) = (escaped(again.by.as_str()), escaped(&again.reason));
            format!("{by} opened the issue again: {why}")
        }
        What::Paused(paused) => {
            let (by, why) = (escaped(paused.by.as_str()), escaped(&paused.reason));
            let until = escaped(paused.until());
            format!("{by} paused the issue{until}: {why}")
        }
        What::Resumed(end) => {
            let (by, why) = (escaped(end.by.as_str()), escaped(&end.reason));
            let done = match end.paused {
                Some(_) => "resumed the issue",
                None => "noted that the work goes on",
            };
            format!("{by} {done}: {why}")
        }
        What::Sent(..) | What::Changed(..) => String::new(),
    }
}

fn noted(note: &Annotation) -> String {
    let (by, text) = (escaped(note.by.as_str()), note.text());
    let of = note.id.as_ref().map(|id| format!(" on {id}"));
    format!("{by} noted{}: {}", of.unwrap_or_default(), escaped(text))
}

/// The receiver that a handoff was sent to.
fn sent_to(record: &Record) -> String {
    HandoffSurvey::of(record).sent_to.to_string()
}

/// A sending as a sentence: who sent which handoff to whom, and why.
fn sending(facts: &Facts<'_>, details: &HandoffDetails, with: &[(usize, usize)]) -> String {
    let record = &details.record;
    let survey = facts.survey.handoff(record.id.number());
    let to = survey.map_or_else(|| sent_to(record), |one| one.sent_to.to_string());
    let (from, to) = (escaped(record.from.as_str()), escaped(to));
    let is_note = record
        .transitions
        .first()
        .is_some_and(|t| t.to.is_terminal());
    // The handoff that its sender worked on until then.
    let held = record.follows.as_ref().or(record.answers.as_ref());
    let held = held.filter(|held| {
        with.iter()
            .any(|(at, _)| facts.handoffs[*at].record.id == **held)
    });
    let held = held.and_then(|held| facts.survey.handoff(held.number()));
    let worked = held.map(|held| times(held, facts.now).working);
    let worked = worked.filter(|worked| worked.num_seconds() > 0);
    let after = worked.map(|worked| format!(", after {} of work", length(worked)));
    let told = if let Some(request) = &record.answers {
        format!("{from} answered {to} on {request}")
    } else if let Some(before) = &record.replaces {
        format!("{from} corrected {before} for {to}")
    } else if is_note || with.iter().any(|place| is_stopped(facts, *place)) {
        format!("{from} reported to {to}")
    } else if record.follows.is_some() {
        format!("{from} handed on to {to}")
    } else {
        format!("{from} asked {to}")
    };
    format!("{told}{}", after.unwrap_or_default())
}

fn transition<'a>(facts: &'a Facts<'_>, (at, index): (usize, usize)) -> &'a Transition {
    &facts.handoffs[at].record.transitions[index]
}

fn is_stopped(facts: &Facts<'_>, place: (usize, usize)) -> bool {
    let event = transition(facts, place).event;
    matches!(event, Some(Event::Fail | Event::Block | Event::Reject))
}

/// The transitions that a sending caused, apart from completing the work it hands on.
fn ended(facts: &Facts<'_>, place: (usize, usize)) -> Option<String> {
    let one = transition(facts, place);
    match one.event? {
        Event::Complete => None,
        Event::Cancel => {
            let id = &facts.handoffs[place.0].record.id;
            Some(format!("With it, {id} was cancelled"))
        }
        _ => Some(changed(facts, place, None).1),
    }
}

/// A transition as a sentence, with its CSS class.
fn changed(
    facts: &Facts<'_>,
    (at, index): (usize, usize),
    decision: Option<&Decision>,
) -> (&'static str, String) {
    let details = &facts.handoffs[at];
    let record = &details.record;
    let one = &record.transitions[index];
    let (id, by) = (&record.id, escaped(one.by.as_str()).to_string());
    let before = index
        .checked_sub(1)
        .map(|before| &record.transitions[before]);
    let after = before.map(|before| length(one.at - before.at));
    let after = after.filter(|after| after != "0 s");
    let after = after.map_or_else(String::new, |after| format!(", after {after}"));
    let plain = |text: String| ("", text);
    let why = |text: String| {
        let reason = one.why().filter(|_| decision.is_none());
        reason.map_or_else(|| text.clone(), |why| format!("{text}: {}", escaped(why)))
    };
    let (class, told) = match one.event {
        None => plain(format!("{by} sent {id}")),
        Some(Event::Claim) => plain(format!("{by} took {id}{after}")),
        Some(Event::TakeOver) => plain(why(format!("another worker of {by} took {id} over"))),
        Some(Event::Extend) => plain(format!("{by} went on with {id}")),
        Some(Event::Complete) => plain(why(format!("{by} completed {id}{after}"))),
        Some(Event::Fail | Event::Expire | Event::Exhaust) => {
            (" class=\"why\"", failed(details, index))
        }
        Some(Event::Block) => (" class=\"why\"", waits(record, one)),
        Some(Event::Answer) => {
            let values = one.answer_text().filter(|_| one.reason.is_none());
            let values = values.map(|values| format!(": {}", escaped(values)));
            let told = why(format!("{by} answered the question of {id}"));
            plain(told + &values.unwrap_or_default())
        }
        Some(Event::Retry) => plain(why(format!("{by} let {id} be tried again"))),
        Some(Event::Redrive) => plain(why(format!("{by} gave {id} new attempts"))),
        Some(Event::Reassign) => {
            let to = one.receiver.as_ref().unwrap_or(&record.to);
            plain(why(format!("{by} gave {id} to {}", escaped(to.as_str()))))
        }
        Some(Event::Reject) => (
            " class=\"why\"",
            why(format!("<b>{by} turned {id} down</b>")),
        ),
        Some(Event::Cancel) => plain(why(format!("{by} cancelled {id}"))),
        Some(Event::Release) => plain(why(format!("{by} gave {id} back{after}"))),
    };
    match decision {
        Some(decision) => {
            let (action, why) = (decision.action.as_str(), escaped(&decision.why));
            (class, format!("{told}, decided to <b>{action}</b>: {why}"))
        }
        None => (class, told),
    }
}

/// The end of a story: how the issue ended, or what is open now.
fn now(page: &mut String, facts: &Facts<'_>) {
    let (issue, survey) = (facts.issue, facts.survey);
    match (issue.status, issue.completed_at) {
        (IssueStatus::Completed, Some(at)) => {
            let took = length(at - issue.opened_at);
            *page += &format!(
                "<li class=\"now\">{} The issue was completed, after {took}</li>",
                minute(at)
            );
        }
        (IssueStatus::Open, _) => {
            let open = survey
                .handoffs
                .iter()
                .filter(|one| !one.state.is_terminal());
            let mut lines: Vec<String> = open.map(|one| open_line(facts, one)).collect();
            if lines.is_empty() {
                lines.push("nobody is working on it".to_owned());
            }
            let unsettled = issue.unsettled();
            lines.extend(unsettled.map(|finding| {
                let what = cut(&finding.text, 200);
                let (name, state) = (escaped(finding.name()), finding.state.as_str());
                format!("finding {name} {state}: {}", escaped(what))
            }));
            let paused = issue.paused.as_ref().map(|paused| {
                let at = minute(paused.at);
                let (by, why) = (escaped(paused.by.as_str()), escaped(&paused.reason));
                let until = escaped(paused.until());
                format!("<li class=\"now\">Paused since {at} by {by}{until}: {why}</li>")
            });
            page.push_str(&paused.unwrap_or_default());
            let more = lines.len().saturating_sub(OPEN);
            lines.truncate(OPEN);
            if more > 0 {
                lines.push(format!("{more} more"));
            }
            *page += &format!("<li class=\"now\">Open now: {}</li>", lines.join("; "));
        }
        _ => {}
    }
}

fn open_line(facts: &Facts<'_>, one: &HandoffSurvey<'_>) -> String {
    let id = facts.survey.id(one);
    let late = is_late(one, facts.now);
    let badge = match one.state {
        State::InProgress if late => {
            format!("<b class=\"s late\">{}</b>", Need::LeaseRanOut.title())
        }
        state => badge(state),
    };
    let to = escaped(one.to.as_str());
    let since = one
        .changes
        .last()
        .map(|last| format!(", since {}", minute(last.at)));
    format!(
        "<a href=\"#h-{id}\">{id}</a> {badge} with {to}{}",
        since.unwrap_or_default()
    )
}
