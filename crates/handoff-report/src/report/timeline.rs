//! The timeline: a bar for each issue that needs attention and for the newest ones, and the latest
//! steps.

use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;
use handoff::base::Moment;
use handoff::base::ids::IssueKey;
use handoff::ledger::{IssueSurvey, LedgerError, Snapshot};
use handoff::model::{IssueStatus, Record, View};
use handoff::protocol::State;

use super::Shown;
use super::issue::{is_late, status_line, title};
use super::order::steps;
use super::story::line;
use super::words::{badge, length, minute};
use handoff::ledger::attention::Attention;
use handoff_graph::times::spells;

/// The maximum number of bars; issues that need attention take precedence.
const ISSUES: usize = 40;
const STUCK: usize = 30;
/// How many steps are listed.
const STEPS: usize = 20;
/// The most characters of an issue's title.
const TITLE: usize = 60;
/// The maximum number of periods in one bar.
const SPELLS: usize = 400;

/// Writes the section. The issues are in the page's order: open ones first, then by their last
/// step.
pub(super) fn section(
    page: &mut String,
    issues: &[&IssueSurvey<'_>],
    stuck: &[Attention],
    (tip, shown): (&Snapshot<'_>, &Shown<'_>),
    now: Moment,
) -> Result<(), LedgerError> {
    page.push_str(
        "<section id=\"timeline\" aria-labelledby=\"timeline-title\">\n<h2 id=\"timeline-title\">Timeline</h2>\n",
    );
    let drawn = drawn(issues, stuck);
    if drawn.is_empty() {
        page.push_str("<p class=\"calm\">There is no issue yet.</p>\n</section>\n");
        return Ok(());
    }
    let (start, end) = window(&drawn, now);
    let is_cut = drawn.iter().any(|issue| issue.opened_at < start);
    legend(page);
    *page += &format!(
        "<table class=\"lanes\"><caption>{}{}</caption>\n\
         <thead><tr><th scope=\"col\">Issue</th><th scope=\"col\">{}</th><th scope=\"col\">Now</th></tr></thead>\n<tbody>\n",
        if drawn.len() < issues.len() {
            format!(
                "{ISSUES} issues: those that need attention longest first, then open and recently changed ones."
            )
        } else {
            "Every issue: those that need attention longest first.".to_owned()
        },
        if is_cut {
            " Where there is an arrow to the left and a day, the issue began then, before the first day drawn."
        } else {
            ""
        },
        axis(start, end, now)
    );
    for issue in drawn {
        let key = &issue.key;
        let name = if shown.has(key) {
            format!("<a href=\"#i-{key}\">{key}</a>")
        } else {
            key.to_string()
        };
        let before = if issue.opened_at < start {
            format!(" <small>← {}</small>", issue.opened_at.format("%Y-%m-%d"))
        } else {
            String::new()
        };
        *page += &format!(
            "<tr id=\"l-{key}\" data-i=\"{key}\"><th scope=\"row\">{name} {}{before}</th><td>",
            title(issue.title, TITLE)
        );
        bar(page, issue, (start, end), now);
        let stands = match (status_line(issue, now), issue.completed_at) {
            (words, _) if !words.is_empty() => words,
            (_, Some(at)) => format!(
                "{} after {}",
                badge(State::Completed),
                length(at - issue.opened_at)
            ),
            _ if issue.status == IssueStatus::Cancelled => badge(State::Cancelled),
            _ => "<b class=\"s idle\">nobody is working on it</b>".to_owned(),
        };
        *page += &format!("</td><td>{stands}</td></tr>\n");
    }
    // Repeated below the last bar, because the first axis may be scrolled out of view.
    *page += &format!(
        "</tbody><tfoot aria-hidden=\"true\"><tr><td></td><td>{}</td><td></td></tr></tfoot></table>\n",
        axis(start, end, now)
    );
    last_steps(page, issues, tip, shown)?;
    page.push_str("</section>\n");
    Ok(())
}

/// The issues with a bar: those that need attention for longest, then the others in the page's
/// order.
fn drawn<'a>(issues: &[&'a IssueSurvey<'a>], stuck: &[Attention]) -> Vec<&'a IssueSurvey<'a>> {
    let mut since: HashMap<&IssueKey, Moment> = HashMap::new();
    for one in stuck {
        let oldest = since.entry(&one.issue).or_insert(one.since);
        *oldest = one.since.min(*oldest);
    }
    let (mut first, mut others): (Vec<&IssueSurvey<'_>>, Vec<&IssueSurvey<'_>>) = issues
        .iter()
        .partition(|issue| since.contains_key(&issue.key));
    first.sort_by_key(|issue| since.get(&issue.key).copied());
    let room = STUCK.max(ISSUES.saturating_sub(others.len()));
    first.truncate(room.min(ISSUES));
    others.truncate(ISSUES - first.len());
    first.append(&mut others);
    first
}

fn legend(page: &mut String) {
    page.push_str("<ul class=\"legend\" aria-label=\"What the bars show\">\n");
    for (class, name, path) in [
        ("pending", "waiting", LOW),
        ("in_progress", "worked on", HIGH),
        ("late", "lease ran out", HIGH),
        ("blocked", "blocked", HIGH),
        ("failed", "failed", HIGH),
        ("dead", "dead: no attempt left", HIGH),
        ("completed", "completed", "M14 0h4v20h-4z"),
    ] {
        *page += &format!(
            "<li><svg viewBox=\"0 0 32 20\" aria-hidden=\"true\"><path class=\"f {class}\" d=\"{path}\"/></svg> {name}</li>\n"
        );
    }
    page.push_str("</ul>\n");
}

const LOW: &str = "M0 8h32v4h-32z";
const HIGH: &str = "M0 2h32v16h-32z";

/// The labels of the time axis: at both ends and each quarter.
fn axis(start: Moment, end: Moment, now: Moment) -> String {
    let span = end - start;
    let form = match span.num_days() {
        0 => "%H:%M",
        1..8 => "%m-%d %H:%M",
        _ => "%Y-%m-%d",
    };
    let mut shown = format!("<span class=\"axis\"><span>{}</span>", minute(start));
    for quarter in 1..4 {
        let at = start + span * quarter / 4;
        shown += &format!(" <span>{}</span>", at.format(form));
    }
    let last = if end == now {
        "now".to_owned()
    } else {
        minute(end)
    };
    shown + &format!(" <span>{last}</span></span>")
}

/// The time range of the bars. A few issues may be far older than the rest and begin before it.
fn window(issues: &[&IssueSurvey<'_>], now: Moment) -> (Moment, Moment) {
    let mut opened: Vec<Moment> = issues.iter().map(|issue| issue.opened_at).collect();
    opened.sort_unstable();
    let start = opened[opened.len() / 8];
    let ends = issues.iter().map(|issue| issue.updated_at);
    let end = ends.max().map_or(now, |at| at.max(now));
    (start.min(end - TimeDelta::minutes(1)), end)
}

fn bar(page: &mut String, issue: &IssueSurvey<'_>, (start, end): (Moment, Moment), now: Moment) {
    let span = (end - start).num_seconds().max(1);
    // In tenths of the chart's units.
    let at = |moment: Moment| 10_000 * (moment - start).num_seconds().clamp(0, span) / span;
    let tenths = |number: i64| format!("{}.{}", number / 10, number % 10);
    let mut paths: BTreeMap<&str, String> = BTreeMap::new();
    let newest = issue.handoffs.iter().rev().flat_map(|handoff| {
        let late = handoff.expires_at.filter(|_| is_late(handoff, now));
        spells(handoff).into_iter().rev().map(move |s| (s, late))
    });
    for (spell, late) in newest.take(SPELLS) {
        let until = spell.until.unwrap_or(now);
        // After the lease ran out, nobody is known to work on it.
        let late = late.filter(|_| spell.until.is_none());
        let work_ends = late.map_or(until, |late| late.clamp(spell.since, until));
        let parts = [
            (spell.state.as_str(), spell.since, work_ends),
            ("late", work_ends, until),
        ];
        let count = if late.is_some() { 2 } else { 1 };
        for (class, from, to) in parts.into_iter().take(count) {
            if to < start {
                continue;
            }
            let width = (at(to) - at(from)).max(15);
            let left = at(from).min(10_000 - width);
            let (y, height) = match spell.state {
                State::Pending => (8, 4),
                _ => (2, 16),
            };
            *paths.entry(class).or_default() +=
                &format!("M{} {y}h{1}v{height}h-{1}z", tenths(left), tenths(width));
        }
    }
    page.push_str(
        "<svg viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"grid\" d=\"M250 0v20M500 0v20M750 0v20\"/>",
    );
    for (class, path) in &paths {
        *page += &format!("<path class=\"f {class}\" d=\"{path}\"/>");
    }
    if let Some(done) = issue.completed_at.filter(|at| *at >= start) {
        *page += &format!(
            "<path class=\"f completed\" d=\"M{} 0h4v20h-4z\"/>",
            tenths(at(done).min(9960))
        );
    }
    page.push_str("</svg>");
}

/// Writes the latest steps, each issue's in the order of the log.
fn last_steps(
    page: &mut String,
    issues: &[&IssueSurvey<'_>],
    tip: &Snapshot<'_>,
    shown: &Shown<'_>,
) -> Result<(), LedgerError> {
    let mut newest: Vec<&&IssueSurvey<'_>> = issues.iter().collect();
    newest.sort_by_key(|issue| std::cmp::Reverse(issue.updated_at));
    let mut all = Vec::new();
    // The last `STEPS` steps can only be in the `STEPS` issues that changed last.
    for survey in newest.into_iter().take(STEPS) {
        let folder = tip.issue(&survey.key)?;
        let Some(issue) = folder.issue()? else {
            continue;
        };
        let records = folder.records()?;
        let records: Vec<&Record> = records.iter().collect();
        let steps = steps(&issue, &records);
        let newest = steps.iter().rev().take(STEPS);
        all.extend(newest.map(|step| (step.at, survey, line(step, &records))));
    }
    all.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    page.push_str("<h3>Last steps</h3>\n<ol class=\"steps\">\n");
    for (at, survey, (id, told)) in all.into_iter().take(STEPS) {
        let key = &survey.key;
        let name = match id {
            Some(id) if shown.has(key) => format!("<a href=\"#h-{id}\">{id}</a>"),
            Some(id) => id,
            None if shown.has(key) => format!("<a href=\"#i-{key}\">{key}</a>"),
            None => key.to_string(),
        };
        *page += &format!(
            "<li data-i=\"{key}\">{} {name} <small>{}</small> {told}</li>\n",
            minute(at),
            title(survey.title, TITLE)
        );
    }
    page.push_str("</ol>\n");
    Ok(())
}
