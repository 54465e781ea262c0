//! The table of all issues, narrowed by filters.

use std::collections::BTreeSet;

use handoff_base::Moment;
use handoff_base::ids::IssueKey;
use handoff_base::text::cut;
use handoff_ledger::IssueSurvey;
use handoff_model::IssueStatus;
use handoff_protocol::State;

use super::Shown;
use super::escape::escaped;
use super::issue::{states, status_line};
use super::words::{counted, length, minute, state, thousands};
use crate::times::cycle_time;

/// Writes the section.
pub(super) fn section(
    page: &mut String,
    issues: &[&IssueSurvey<'_>],
    stuck: &BTreeSet<&IssueKey>,
    shown: &Shown<'_>,
    now: Moment,
) {
    // An estimate of its height while it is not rendered.
    let size = match issues.len() {
        0..=50 => "short",
        51..=500 => "long",
        501..=5000 => "longer",
        _ => "longest",
    };
    *page += &format!(
        "<section id=\"issues\" class=\"{size}\" aria-labelledby=\"issues-title\">\n<h2 id=\"issues-title\">Issues</h2>\n",
    );
    filters(page, issues);
    page.push_str(
        "<table class=\"index\" id=\"index\"><caption>Every issue: what is open first, then what moved last</caption>\n\
         <thead><tr><th scope=\"col\">Issue</th><th scope=\"col\">State</th><th scope=\"col\">With</th><th scope=\"col\">Protocol</th>\
         <th scope=\"col\" class=\"r\">Handoffs</th><th scope=\"col\" class=\"r\">Took</th><th scope=\"col\">Last step</th><th scope=\"col\">Newest handoff</th></tr></thead>\n<tbody>\n",
    );
    for issue in issues {
        row(page, issue, stuck.contains(&issue.key), shown, now);
    }
    page.push_str("</tbody></table>\n</section>\n");
}

fn row(page: &mut String, issue: &IssueSurvey<'_>, is_stuck: bool, shown: &Shown<'_>, now: Moment) {
    let key = &issue.key;
    let mut agents: Vec<&str> = Vec::new();
    for handoff in &issue.handoffs {
        for agent in [handoff.from.as_str(), handoff.to.as_str()] {
            if !agents.contains(&agent) {
                agents.push(agent);
            }
        }
    }
    let name = if shown.has(key) {
        format!("<a href=\"#i-{key}\">{key}</a>")
    } else {
        key.to_string()
    };
    let status = issue.status.as_str();
    let alarm = if is_stuck {
        " <b class=\"s stuck\">stuck</b>"
    } else {
        ""
    };
    let took = match issue.status {
        IssueStatus::Cancelled => String::new(),
        IssueStatus::Completed => cycle_time(issue).map(length).unwrap_or_default(),
        IssueStatus::Open => format!("{} so far", length(now - issue.opened_at)),
    };
    let newest = issue.handoffs.last().map_or("", |handoff| handoff.summary);
    *page += &format!(
        "<tr data-k=\"{key}\" data-s=\"{}\" data-a=\"{}\"><th scope=\"row\">{name}</th><td><b class=\"s {status}\">{status}</b>{alarm}</td>\
         <td>{}</td><td>{}</td><td class=\"r\">{}</td><td class=\"r\">{took}</td><td>{}</td><td>{}</td></tr>",
        states(issue, is_stuck),
        escaped(agents.join(" ")),
        status_line(issue, now),
        escaped(issue.protocol.as_str()),
        thousands(issue.handoffs.len()),
        minute(issue.updated_at),
        escaped(first_part(newest))
    );
}

/// As much of a summary as fits into a row.
fn first_part(text: &str) -> String {
    const MOST: usize = 120;
    let line = text.lines().next().unwrap_or_default();
    cut(line, MOST)
}

/// Writes the filters, which stay hidden without a script.
fn filters(page: &mut String, issues: &[&IssueSurvey<'_>]) {
    let handoffs = || issues.iter().flat_map(|issue| &issue.handoffs);
    let agents = handoffs().flat_map(|h| [h.from.as_str(), h.to.as_str()]);
    let agents: BTreeSet<&str> = agents.collect();
    let protocols = issues.iter().map(|issue| issue.protocol.as_str());
    let protocols: BTreeSet<&str> = protocols.collect();
    let there: BTreeSet<State> = handoffs().map(|h| h.state).collect();
    page.push_str(
        "<div class=\"filters\" id=\"filters\" role=\"search\" hidden>\n\
         <label>Search <input type=\"search\" id=\"f-text\" autocomplete=\"off\" spellcheck=\"false\" placeholder=\"words of a contract, an id, an agent\"></label>\n\
         <label>State <select id=\"f-state\"><option value=\"\">any</option><option value=\"stuck\">needs attention</option><option value=\"open\">open</option>",
    );
    let handoff_states = there.into_iter().filter(|s| *s != State::Completed);
    let choices =
        handoff_states.map(|one| (one.as_str(), format!("with a handoff {}", state(one))));
    page.push_str("<option value=\"completed\">completed</option>");
    for (value, name) in choices {
        *page += &format!("<option value=\"{value}\">{name}</option>");
    }
    page.push_str("</select></label>\n");
    for (id, label, names) in [
        ("f-agent", "Agent", agents),
        ("f-protocol", "Protocol", protocols),
    ] {
        *page += &format!("<label>{label} <select id=\"{id}\"><option value=\"\">any</option>");
        for name in names {
            *page += &format!("<option>{}</option>", escaped(name));
        }
        page.push_str("</select></label>\n");
    }
    *page += &format!(
        "<button type=\"button\" id=\"f-clear\">Clear</button>\n<p id=\"f-count\" role=\"status\" aria-live=\"polite\">{}</p>\n</div>\n",
        counted(issues.len(), "issue")
    );
}
