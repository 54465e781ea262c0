//! When what was worked on: a bar for each of the newest issues, and the last
//! steps of all.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::Shown;
use super::escape::escaped;
use super::issue::standing;
use super::words::{badge, length, minute, state};
use crate::ids::IssueKey;
use crate::insight::times::spells;
use crate::ledger::{ChangeSurvey, HandoffSurvey, IssueSurvey, Moment};
use crate::protocol::{Event, State};

/// How many issues have a bar.
const ISSUES: usize = 40;
/// How many steps are listed.
const STEPS: usize = 20;
/// How many stretches of time one bar is drawn from.
const SPELLS: usize = 400;

/// Writes the section. The issues come in the page's order: what is open first,
/// then what moved last.
pub(super) fn section(page: &mut String, issues: &[&IssueSurvey], shown: &Shown<'_>, now: Moment) {
    page.push_str(
        "<section id=\"timeline\" aria-labelledby=\"timeline-title\">\n<h2 id=\"timeline-title\">Timeline</h2>\n",
    );
    let drawn = &issues[..issues.len().min(ISSUES)];
    if drawn.is_empty() {
        page.push_str("<p class=\"calm\">There is no issue yet.</p>\n</section>\n");
        return;
    }
    let (start, end) = window(drawn, now);
    *page += &format!(
        "<table class=\"lanes\"><caption>{} Low: waiting. High: worked on. Hatched: blocked or failed.</caption>\n\
         <thead><tr><th scope=\"col\">Issue</th><th scope=\"col\"><span>{}</span><span>{}</span></th><th scope=\"col\">Now</th></tr></thead>\n<tbody>\n",
        if drawn.len() < issues.len() {
            format!("The {ISSUES} issues that are open or moved last.")
        } else {
            "Every issue.".to_owned()
        },
        minute(start),
        minute(end)
    );
    for issue in drawn {
        let name = match shown.has(&issue.key) {
            true => format!("<a href=\"#i-{0}\">{0}</a>", issue.key),
            false => issue.key.to_string(),
        };
        *page += &format!("<tr><th scope=\"row\">{name}</th><td>");
        bar(page, issue, (start, end), now);
        let stands = match (standing(issue), issue.completed_at) {
            (words, _) if !words.is_empty() => words,
            (_, Some(at)) => format!(
                "{} after {}",
                badge(State::Completed),
                length(at - issue.opened_at)
            ),
            _ => "<b class=\"s idle\">nobody is at it</b>".to_owned(),
        };
        *page += &format!("</td><td>{stands}</td></tr>\n");
    }
    page.push_str("</tbody></table>\n");
    steps(page, issues, shown);
    page.push_str("</section>\n");
}

/// The time that the bars span. A few issues that are far older than all others
/// begin before it.
fn window(issues: &[&IssueSurvey], now: Moment) -> (Moment, Moment) {
    let mut opened: Vec<Moment> = issues.iter().map(|issue| issue.opened_at).collect();
    opened.sort_unstable();
    let start = opened[opened.len() / 8];
    let ends = issues.iter().map(|issue| issue.updated_at);
    let end = ends.max().map_or(now, |at| at.max(now));
    (start.min(end - TimeDelta::minutes(1)), end)
}

fn bar(page: &mut String, issue: &IssueSurvey, (start, end): (Moment, Moment), now: Moment) {
    let span = (end - start).num_seconds().max(1);
    // In tenths of the picture's units.
    let at = |moment: Moment| 10_000 * (moment - start).num_seconds().clamp(0, span) / span;
    let tenths = |number: i64| format!("{}.{}", number / 10, number % 10);
    let mut paths: BTreeMap<State, String> = BTreeMap::new();
    let newest = issue
        .handoffs
        .iter()
        .rev()
        .flat_map(|h| spells(h).into_iter().rev());
    for spell in newest.take(SPELLS) {
        let until = spell.until.unwrap_or(now);
        if until < start {
            continue;
        }
        let (left, right) = (at(spell.since), at(until));
        let width = (right - left).max(15);
        let (y, height) = match spell.state {
            State::Pending => (8, 4),
            _ => (2, 16),
        };
        *paths.entry(spell.state).or_default() +=
            &format!("M{} {y}h{1}v{height}h-{1}z", tenths(left), tenths(width));
    }
    page.push_str(
        "<svg viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
    );
    for (state, path) in &paths {
        *page += &format!("<path class=\"f {}\" d=\"{path}\"/>", state.as_str());
    }
    if let Some(done) = issue.completed_at.filter(|at| *at >= start) {
        *page += &format!(
            "<path class=\"f completed\" d=\"M{} 0h4v20h-4z\"/>",
            tenths(at(done).min(9960))
        );
    }
    page.push_str("</svg>");
}

/// Lists the last steps of all issues.
fn steps(page: &mut String, issues: &[&IssueSurvey], shown: &Shown<'_>) {
    type Step<'a> = (&'a ChangeSurvey, &'a IssueKey, &'a HandoffSurvey);
    let mut all: Vec<Step<'_>> = Vec::new();
    let mut newest: Vec<&&IssueSurvey> = issues.iter().collect();
    newest.sort_by_key(|issue| std::cmp::Reverse(issue.updated_at));
    // An issue's last step is no older than any other of its steps.
    for issue in newest.into_iter().take(STEPS) {
        for handoff in &issue.handoffs {
            all.extend(
                handoff
                    .changes
                    .iter()
                    .map(|change| (change, &issue.key, handoff)),
            );
        }
    }
    all.sort_by_key(|(change, key, handoff)| std::cmp::Reverse((change.at, *key, handoff.number)));
    page.push_str("<h3>Last steps</h3>\n<ol class=\"steps\">\n");
    for (change, key, handoff) in all.into_iter().take(STEPS) {
        let id = format!("{key}.{}", handoff.number);
        let name = match shown.has(key) {
            true => format!("<a href=\"#h-{id}\">{id}</a>"),
            false => id,
        };
        let what = match change.event {
            None => format!("sent to {}", escaped(handoff.sent_to.as_str())),
            Some(Event::Exhaust) => "has no attempt left".to_owned(),
            Some(event) => format!("{}, now {}", event.as_str(), state(change.to)),
        };
        let why = change
            .reason
            .as_ref()
            .map(|why| format!(" – {}", escaped(why)));
        *page += &format!(
            "<li>{} {name} {what} by {}{}</li>\n",
            minute(change.at),
            escaped(change.by.as_str()),
            why.unwrap_or_default()
        );
    }
    page.push_str("</ol>\n");
}
