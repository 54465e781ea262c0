//! One issue's section: its status, its course, and each handoff.

use std::collections::BTreeSet;

use handoff::base::Moment;
use handoff::base::text::{cut, fit};
use handoff::ledger::{HandoffSurvey, IssueSurvey};
use handoff::model::{Issue, IssueStatus, Spent, words_of};
use handoff::protocol::{Definition, State};

use super::escape::{Escaped, escaped};
use super::flow::flow;
use super::handoff::HandoffDetails;
use super::story::story;
use super::words::{ago, badge, counted, length, time};
use handoff::ledger::attention::Attention;
use handoff::protocol::Need;
use handoff_graph::times::{Times, times};

/// The keywords of notable facts of an issue, and their labels.
pub(super) const FOUND: [(&str, &str); 4] = [
    ("unsettled", "open findings of a review"),
    ("found", "findings of a review"),
    ("contradicted", "a contradicted statement"),
    ("violation", "an act against a role"),
];

/// The data of an issue's section.
pub(super) struct Facts<'a> {
    pub(super) issue: &'a Issue,
    /// Its protocol, if known here.
    pub(super) definition: Option<&'a Definition>,
    pub(super) survey: &'a IssueSurvey<'a>,
    pub(super) handoffs: &'a [HandoffDetails],
    pub(super) stuck: &'a [Attention],
    /// The time of the page.
    pub(super) now: Moment,
}

impl Facts<'_> {
    /// The value of a fact, as a list of texts.
    fn words(&self, name: &str) -> Vec<String> {
        let fact = match self.definition {
            Some(definition) => self.issue.fact(definition, name).map(|fact| fact.value),
            None => self.issue.facts.get(name),
        };
        fact.map(words_of).unwrap_or_default()
    }

    fn labels(&self) -> BTreeSet<String> {
        let named = ["labels", "label"].iter();
        named.flat_map(|name| self.words(name)).collect()
    }

    fn branches(&self) -> BTreeSet<String> {
        let records = self.handoffs.iter().map(|one| &one.record);
        let code = records.filter_map(|record| record.code.as_ref());
        let code = code.map(|code| code.branch.clone());
        self.words("branch").into_iter().chain(code).collect()
    }
}

/// An attribute for the filters: each value on its own line.
fn list(name: &str, values: &BTreeSet<String>) -> String {
    if values.is_empty() {
        return String::new();
    }
    let values = values.iter().map(|value| value.replace('\n', " "));
    let values: Vec<String> = values.collect();
    format!(" data-{name}=\"{}\"", escaped(values.join("\n")))
}

pub(super) fn section(page: &mut String, facts: &Facts<'_>) {
    let (issue, now) = (facts.issue, facts.now);
    let key = &issue.issue;
    let (labels, branches) = (facts.labels(), facts.branches());
    *page += &format!(
        "<section class=\"issue\"{ended}{}{} id=\"i-{key}\" aria-labelledby=\"t-{key}\">\
         <h3 id=\"t-{key}\">Issue {key} <b class=\"s {status}\">{status}</b> {title}</h3>",
        list("l", &labels),
        list("b", &branches),
        ended = if issue.status == IssueStatus::Open {
            ""
        } else {
            " data-ended"
        },
        title = escaped(&issue.title),
        status = status(facts.survey)
    );
    *page += &format!("<p class=\"meta\">{}</p>", about(facts));
    for one in facts.stuck {
        *page += &note(one, now);
    }
    flow(page, facts.survey);
    spent(page, facts.survey, now);
    known(page, issue);
    story(page, facts);
    page.push_str("</section>\n");
}

/// An issue's protocol, times and size, in one line.
fn about(facts: &Facts<'_>) -> String {
    let (issue, now) = (facts.issue, facts.now);
    let mut parts = vec![
        escaped(issue.protocol.as_str()).to_string(),
        counted(facts.handoffs.len(), "handoff"),
        format!("opened {}", time(issue.opened_at)),
    ];
    match issue.completed_at {
        Some(at) => parts.push(format!("completed {}", time(at))),
        None => parts.push(format!(
            "last step {} ({})",
            time(issue.updated_at),
            ago(issue.updated_at, now)
        )),
    }
    let mut sum = Spent::default();
    let handoffs = facts.survey.handoffs.iter();
    handoffs
        .flat_map(|handoff| &handoff.usage)
        .for_each(|usage| sum.add(&usage.spent));
    parts.extend(sum.text());
    for (name, words) in [("label", facts.labels()), ("branch", facts.branches())] {
        let words = words
            .iter()
            .map(|word| format!("{name} {}", title(word, 60)));
        parts.extend(words);
    }
    parts.join(" · ")
}

/// A need, in one line.
fn note(stuck: &Attention, now: Moment) -> String {
    let what = format!("<a href=\"#h-{0}\">{0}</a> ", stuck.id);
    format!(
        "<p class=\"note\"><strong>{what}{}</strong> since {} ({}). Next: <code>{}</code></p>\n",
        stuck.what(),
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

/// An issue's title, truncated to `most` characters.
pub(super) fn title(text: &str, most: usize) -> Escaped<String> {
    escaped(fit(text.lines().next().unwrap_or_default(), most))
}

/// Whether an issue is open, paused, completed or cancelled.
pub(super) fn status(survey: &IssueSurvey<'_>) -> &'static str {
    match survey.paused {
        Some(_) => "paused",
        None => survey.status.as_str(),
    }
}

/// The filters' keywords: whether an issue is open, the states of its handoffs, and its notable
/// facts.
pub(super) fn states(survey: &IssueSurvey<'_>) -> String {
    let mut words = vec![survey.status.as_str()];
    let handoffs = &survey.handoffs;
    let found = [
        survey.unsettled > 0,
        survey.findings > 0,
        handoffs.iter().any(|handoff| handoff.contradicted > 0),
        handoffs.iter().any(|handoff| handoff.violations > 0),
    ];
    let found = FOUND.iter().zip(found).filter(|(_, is_there)| *is_there);
    words.extend(found.map(|((word, _), _)| *word));
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

/// The state of the handoff where an issue's work currently is.
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
