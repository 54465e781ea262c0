//! One issue's section: its status, its course, and each handoff.

use handoff_base::Moment;
use handoff_base::ids::HandoffId;
use handoff_base::text::cut;
use handoff_ledger::{HandoffSurvey, IssueSurvey};
use handoff_model::{Issue, IssueStatus};
use handoff_protocol::State;

use super::escape::escaped;
use super::flow::flow;
use super::handoff::{HandoffDetails, handoff};
use super::words::{ago, badge, counted, length, minute, time};
use crate::times::{Times, times};
use handoff_ledger::attention::Attention;
use handoff_protocol::Need;

/// Everything about one issue.
pub(super) struct Facts<'a> {
    pub(super) issue: &'a Issue,
    pub(super) survey: &'a IssueSurvey<'a>,
    pub(super) handoffs: &'a [HandoffDetails],
    pub(super) stuck: &'a [Attention],
    /// The time of the page.
    pub(super) now: Moment,
}

pub(super) fn section(page: &mut String, facts: &Facts<'_>) {
    let (issue, now) = (facts.issue, facts.now);
    let key = &issue.issue;
    *page += &format!(
        "<section class=\"issue\" id=\"i-{key}\" aria-labelledby=\"t-{key}\">\
         <h3 id=\"t-{key}\">Issue {key} <b class=\"s {status}\">{status}</b> {title}</h3>",
        title = escaped(&issue.title),
        status = issue.status.as_str()
    );
    *page += &format!("<p class=\"meta\">{}</p>", about(facts));
    for one in facts.stuck {
        *page += &note(one, now);
    }
    flow(page, facts.survey);
    spent(page, facts.survey, now);
    known(page, issue);
    page.push_str("<ol class=\"hs\">");
    for details in facts.handoffs {
        let stuck = facts
            .stuck
            .iter()
            .find(|stuck| stuck.id == details.record.id);
        handoff(page, details, facts.survey, stuck, now);
    }
    page.push_str("</ol>");
    decided(page, issue);
    page.push_str("</section>\n");
}

/// An issue's protocol, times and size in a line.
fn about(facts: &Facts<'_>) -> String {
    let (issue, now) = (facts.issue, facts.now);
    let mut parts = vec![
        escaped(issue.protocol.as_str()).to_string(),
        counted(facts.handoffs.len(), "handoff"),
        format!("opened {}", time(issue.opened_at)),
    ];
    match issue.completed_at {
        Some(at) => parts.push(format!(
            "completed {}, after {}",
            time(at),
            length(at - issue.opened_at)
        )),
        None => parts.push(format!(
            "last step {} ({})",
            time(issue.updated_at),
            ago(issue.updated_at, now)
        )),
    }
    let given_up = issue.given_up.last();
    if let Some(last) = given_up.filter(|_| issue.status == IssueStatus::Cancelled) {
        let (by, why) = (escaped(last.by.as_str()), escaped(&last.reason));
        parts.push(format!("given up {} by {by}: {why}", minute(last.at)));
    }
    if let Some(last) = issue.reopened.last() {
        let (by, why) = (escaped(last.by.as_str()), escaped(&last.reason));
        parts.push(format!("opened again {} by {by}: {why}", minute(last.at)));
    }
    parts.join(" · ")
}

/// A need, in one line.
fn note(stuck: &Attention, now: Moment) -> String {
    let what = format!("<a href=\"#h-{0}\">{0}</a> ", stuck.id);
    format!(
        "<p class=\"note\"><strong>{what}{}</strong> since {} ({}). Next: <code>{}</code></p>\n",
        stuck.need.title(),
        time(stuck.since),
        ago(stuck.since, now),
        escaped(&stuck.next)
    )
}

/// How an issue's handoffs spent their time, as a bar and in words.
fn spent(page: &mut String, survey: &IssueSurvey<'_>, now: Moment) {
    let mut sum = Times::default();
    for handoff in &survey.handoffs {
        let one = times(handoff, now);
        sum.waiting += one.waiting;
        sum.working += one.working;
        sum.blocked += one.blocked;
        sum.failed += one.failed;
    }
    let parts = [
        ("waiting", "pending", sum.waiting),
        ("working", "in_progress", sum.working),
        ("blocked", "blocked", sum.blocked),
        ("failed", "failed", sum.failed),
    ];
    let total: i64 = parts.iter().map(|(.., part)| part.num_seconds()).sum();
    if total <= 0 {
        return;
    }
    page.push_str(
        "<div class=\"spent\"><svg viewBox=\"0 0 1000 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
    );
    let (mut start, mut words) = (0, Vec::new());
    for (name, class, part) in parts {
        let part = part.num_seconds();
        if part == 0 {
            continue;
        }
        let end = start + part;
        let at = |seconds: i64| 1000 * seconds / total;
        *page += &format!(
            "<rect class=\"f {class}\" x=\"{}\" width=\"{}\" height=\"8\"/>",
            at(start),
            (at(end) - at(start)).max(2)
        );
        words.push(format!(
            "<span class=\"s {class}\">{name} {}</span>",
            length(chrono::TimeDelta::seconds(part))
        ));
        start = end;
    }
    *page += &format!("</svg><p>{}</p></div>", words.join(" "));
}

/// An issue's facts, findings and tasks.
fn known(page: &mut String, issue: &Issue) {
    /// The most characters of a fact.
    const FACT: usize = 2000;
    let mut lines = Vec::new();
    for (name, value) in &issue.facts {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        lines.push(format!("{name}: {}", cut(&value, FACT)));
    }
    for finding in &issue.findings {
        lines.push(format!("finding {}", cut(&finding.line(), FACT)));
    }
    for task in &issue.tasks {
        let of = task.parent.as_ref().map(|parent| format!(" of {parent}"));
        let after = match task.depends_on.join(", ") {
            none if none.is_empty() => none,
            tasks => format!(", after {tasks}"),
        };
        lines.push(format!(
            "task {}{}: {} ({}{after})",
            task.id,
            of.unwrap_or_default(),
            task.state.as_str(),
            task.handoff
        ));
    }
    if !lines.is_empty() {
        *page += &format!(
            "<details><summary>Known of the issue ({})</summary><pre>{}</pre></details>",
            lines.len(),
            escaped(lines.join("\n"))
        );
    }
}

/// The decisions and corrections.
fn decided(page: &mut String, issue: &Issue) {
    let about = |id: &HandoffId| format!("<a href=\"#h-{id}\">{id}</a>");
    let decisions = issue.decisions.iter().map(|one| {
        let (by, action) = (escaped(one.by.as_str()), one.action.as_str());
        let why = escaped(&one.why);
        let text = format!(
            "{by} decided on {}: <b>{action}</b> – {why}",
            about(&one.id)
        );
        (one.at, text)
    });
    let notes = issue.annotations.iter().map(|one| {
        let of = one.id.as_ref().map(|id| format!(" of {}", about(id)));
        let text = one.text();
        let (by, note) = (escaped(one.by.as_str()), escaped(&text));
        (
            one.at,
            format!("{by} notes{}: {note}", of.unwrap_or_default()),
        )
    });
    let mut all: Vec<(Moment, String)> = decisions.chain(notes).collect();
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|(at, _)| *at);
    page.push_str("<h4>Decisions and notes</h4>\n<ul class=\"said\">\n");
    for (at, text) in all {
        *page += &format!("<li>{} {text}</li>\n", minute(at));
    }
    page.push_str("</ul>\n");
}

/// The keywords that filters look for: whether an issue is open, whether it needs attention, and
/// the states of its handoffs.
pub(super) fn states(survey: &IssueSurvey<'_>, is_stuck: bool) -> String {
    let mut words = vec![survey.status.as_str()];
    if is_stuck {
        words.push("stuck");
    }
    for handoff in survey
        .handoffs
        .iter()
        .filter(|h| h.state != State::Completed)
    {
        if !words.contains(&handoff.state.as_str()) {
            words.push(handoff.state.as_str());
        }
    }
    words.join(" ")
}

/// Whether a handoff is in progress and its lease ran out.
pub(super) fn is_late(handoff: &HandoffSurvey<'_>, now: Moment) -> bool {
    let ran_out = handoff.expires_at.is_some_and(|end| end <= now);
    handoff.state == State::InProgress && ran_out
}

/// The state of the handoff where an issue's work is.
pub(super) fn status_line(survey: &IssueSurvey<'_>, now: Moment) -> String {
    let mut open = survey.handoffs.iter().filter(|h| !h.state.is_terminal());
    let Some(one) = open.next() else {
        return String::new();
    };
    let badge = if is_late(one, now) {
        format!("<b class=\"s late\">{}</b>", Need::LeaseRanOut.title())
    } else {
        badge(one.state)
    };
    let name = escaped(one.to.as_str());
    match open.count() {
        0 => format!("{badge} {name}"),
        more => format!("{badge} {name} and {more} more"),
    }
}
