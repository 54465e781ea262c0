//! The figures at a glance, and each agent's open work.

use std::collections::BTreeMap;

use handoff::base::Moment;
use handoff::base::ids::AgentRef;
use handoff::ledger::{HandoffSurvey, IssueSurvey};
use handoff::model::IssueStatus;
use handoff::protocol::State;

use super::Shown;
use super::charts::median;
use super::escape::escaped;
use super::issue::{is_late, title};
use super::words::{ago, length, minute, sign, thousands};
use handoff::ledger::attention::Attention;
use handoff::protocol::Need;
use handoff_graph::times::cycle_time;

/// How many handoffs of an agent are listed.
const NAMED: usize = 8;
/// The maximum length of a title, in characters.
const TITLE: usize = 60;

/// The maximum length of an agent name that is not wrapped.
const LONG: usize = 32;

pub(super) fn figures(page: &mut String, issues: &[&IssueSurvey<'_>], stuck: &[Attention]) {
    let handoffs: usize = issues.iter().map(|issue| issue.handoffs.len()).sum();
    let all = issues.iter().flat_map(|issue| &issue.handoffs);
    let open = all.filter(|h| !h.state.is_terminal()).count();
    let is_open = |issue: &&&IssueSurvey<'_>| issue.status == IssueStatus::Open;
    let open_issues = issues.iter().filter(is_open).count();
    let cycles = issues.iter().filter_map(|issue| cycle_time(issue));
    let cycle = median(cycles.collect()).map_or("–".to_owned(), length);
    let one = |name: &str, value: &str, more: &str, class: &str| {
        let more = match more {
            "" => String::new(),
            more => format!(" <small>{more}</small>"),
        };
        format!("<div{class}><dt>{name}</dt><dd>{value}{more}</dd></div>\n")
    };
    page.push_str("<dl class=\"figures\">\n");
    let alarm = if stuck.is_empty() {
        ""
    } else {
        " class=\"alarm\""
    };
    *page += &one("Needs attention", &thousands(stuck.len()), "", alarm);
    let of = format!("of {}", thousands(issues.len()));
    *page += &one("Open issues", &thousands(open_issues), &of, "");
    let of = format!("of {}", thousands(handoffs));
    *page += &one("Open handoffs", &thousands(open), &of, "");
    *page += &one("Cycle time of an issue", &cycle, "median", "");
    page.push_str("</dl>\n");
}

/// An agent's open handoffs.
type Held<'a> = Vec<(&'a IssueSurvey<'a>, &'a HandoffSurvey<'a>, Moment)>;

/// Writes the table of open handoffs by agent.
pub(super) fn section(
    page: &mut String,
    issues: &[&IssueSurvey<'_>],
    shown: &Shown<'_>,
    now: Moment,
) {
    page.push_str(
        "<section id=\"open\" aria-labelledby=\"open-title\">\n<h2 id=\"open-title\">Open work by agent</h2>\n",
    );
    let mut agents: BTreeMap<AgentRef<'_>, Held<'_>> = BTreeMap::new();
    for issue in issues {
        for handoff in issue.handoffs.iter().filter(|h| !h.state.is_terminal()) {
            if let Some(last) = handoff.changes.last() {
                let held = agents.entry(handoff.to).or_default();
                held.push((issue, handoff, last.at));
            }
        }
    }
    if agents.is_empty() {
        page.push_str("<p class=\"calm\">No handoff is open.</p>\n</section>\n");
        return;
    }
    let columns = [
        ("Waiting", State::Pending),
        ("Working", State::InProgress),
        ("Blocked", State::Blocked),
        ("Failed", State::Failed),
        ("Dead", State::Dead),
    ];
    page.push_str(
        "<table class=\"agents\"><caption>Handoffs that are open, by the agent that has them; those that have not changed for longest come first</caption>\n<thead><tr><th scope=\"col\">Agent</th>",
    );
    for (name, _) in columns {
        *page += &format!("<th scope=\"col\" class=\"r\">{name}</th>");
    }
    page.push_str("<th scope=\"col\">Unchanged since</th><th scope=\"col\">Handoffs</th></tr></thead>\n<tbody>\n");
    let mut agents: Vec<(AgentRef<'_>, Held<'_>)> = agents.into_iter().collect();
    for (_, held) in &mut agents {
        held.sort_by_key(|(.., since)| *since);
    }
    agents.sort_by_key(|(_, held)| held[0].2);
    for (agent, held) in &agents {
        let class = match agent.as_str().chars().count() {
            0..=LONG => "",
            _ => " class=\"long\"",
        };
        let name = escaped(agent.as_str());
        *page += &format!("<tr id=\"w-{name}\"><th scope=\"row\"{class}>{name}</th>");
        for (name, state) in columns {
            let count = held.iter().filter(|(_, h, _)| h.state == state).count();
            *page += &match count {
                0 => format!("<td class=\"r none\" data-l=\"{name}\">0</td>"),
                count => format!(
                    "<td class=\"r\" data-l=\"{name}\"><b class=\"c {}\">{}</b></td>",
                    state.as_str(),
                    thousands(count)
                ),
            };
        }
        let oldest = held[0].2;
        *page += &format!(
            "<td data-l=\"Unchanged since\">{} <span class=\"meta\">({})</span></td><td data-l=\"Handoffs\"><ul class=\"ids\">",
            minute(oldest),
            ago(oldest, now)
        );
        for (issue, handoff, _) in held.iter().take(NAMED) {
            let id = issue.id(handoff);
            let (sign, what) = if is_late(handoff, now) {
                ('!', Need::LeaseRanOut.title())
            } else {
                (sign(handoff.state), handoff.state.words())
            };
            let name = title(issue.title, TITLE);
            *page += &if shown.has(&issue.key) {
                format!("<li><a href=\"#h-{id}\" title=\"{what}\">{sign} {id}</a> {name}")
            } else {
                format!("<li>{sign} {id} {name}")
            };
        }
        if held.len() > NAMED {
            *page += &format!("<li>and {} more", thousands(held.len() - NAMED));
        }
        page.push_str("</ul></td></tr>\n");
    }
    page.push_str("</tbody></table>\n</section>\n");
}
