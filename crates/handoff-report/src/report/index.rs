//! The table of all issues, and the page's filters.

use std::collections::{BTreeMap, BTreeSet};

use handoff::base::Moment;
use handoff::base::ids::IssueKey;
use handoff::base::text::cut;
use handoff::ledger::attention::{Attention, Protocols};
use handoff::ledger::{HandoffSurvey, IssueSurvey};
use handoff::model::IssueStatus;
use handoff::protocol::{Need, State};

use super::Shown;
use super::attention::needs;
use super::escape::escaped;
use super::issue::{FOUND, states, status, status_line, title};
use super::words::{counted, length, minute, thousands};
use handoff_graph::times::cycle_time;

/// The maximum length of a title or summary in a row, in characters.
const TITLE: usize = 80;
const SUMMARY: usize = 80;
/// How many rows are printed on paper; `style.css` has the same number.
const PRINTED: usize = 60;

/// Writes the section.
pub(super) fn section(
    page: &mut String,
    issues: &[&IssueSurvey<'_>],
    stuck: &[Attention],
    shown: &Shown<'_>,
    now: Moment,
) {
    let mut needed: BTreeMap<&IssueKey, Vec<&Attention>> = BTreeMap::new();
    for one in stuck {
        needed.entry(&one.issue).or_default().push(one);
    }
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
    if issues.len() > PRINTED {
        *page += &format!(
            "<p class=\"printed\">Only the first {PRINTED} of {} are printed.</p>\n",
            counted(issues.len(), "issue")
        );
    }
    page.push_str(
        "<table class=\"index\" id=\"index\"><caption>Every issue: what is open first, then what moved last</caption>\n\
         <thead><tr><th scope=\"col\">Issue</th><th scope=\"col\">State</th><th scope=\"col\">With</th><th scope=\"col\">Protocol</th>\
         <th scope=\"col\" class=\"r\">Handoffs</th><th scope=\"col\" class=\"r\">Took</th><th scope=\"col\">Last step</th><th scope=\"col\">Newest handoff</th></tr></thead>\n<tbody>\n",
    );
    for issue in issues {
        let needed = needed.get(&issue.key).map_or(&[][..], Vec::as_slice);
        row(page, issue, needed, shown, now);
    }
    page.push_str("</tbody></table>\n</section>\n");
}

fn row(
    page: &mut String,
    issue: &IssueSurvey<'_>,
    stuck: &[&Attention],
    shown: &Shown<'_>,
    now: Moment,
) {
    let key = &issue.key;
    let mut agents: Vec<&str> = Vec::new();
    for agent in issue.handoffs.iter().flat_map(acting) {
        if !agents.contains(&agent) {
            agents.push(agent);
        }
    }
    let name = if shown.has(key) {
        format!("<a href=\"#i-{key}\">{key}</a>")
    } else {
        key.to_string()
    };
    let status = status(issue);
    let (mut alarm, mut needed) = ("", String::new());
    if !stuck.is_empty() {
        alarm = " <b class=\"s stuck\">stuck</b>";
        let words: Vec<String> = stuck.iter().map(|one| needs(one)).collect();
        needed = format!(" data-n=\"{}\"", words.join(" "));
    }
    let took = match issue.status {
        IssueStatus::Cancelled => String::new(),
        IssueStatus::Completed => cycle_time(issue).map(length).unwrap_or_default(),
        IssueStatus::Open => format!("{} so far", length(now - issue.opened_at)),
    };
    let newest = issue.handoffs.last().map_or("", |handoff| handoff.summary);
    // The first summary may equal the title.
    let newest = if newest == issue.title { "" } else { newest };
    let first = issue.title.lines().next().unwrap_or_default();
    let whole = if first.chars().count() > TITLE {
        format!(" title=\"{}\"", escaped(first))
    } else {
        String::new()
    };
    *page += &format!(
        "<tr data-k=\"{key}\" data-s=\"{}\" data-a=\"{}\"{needed}><th scope=\"row\"{whole}>{name} {}</th><td><b class=\"s {status}\">{status}</b>{alarm}</td>\
         <td>{}</td><td>{}</td><td class=\"r\">{}</td><td class=\"r\">{took}</td><td>{}</td><td>{}</td></tr>",
        states(issue),
        escaped(agents.join(" ")),
        title(issue.title, TITLE),
        status_line(issue, now),
        escaped(issue.protocol.as_str()),
        thousands(issue.handoffs.len()),
        minute(issue.updated_at),
        escaped(first_part(newest))
    );
}

/// The agents involved in a handoff: its sender, its receiver, and whoever decided about it.
fn acting<'a>(handoff: &'a HandoffSurvey<'a>) -> impl Iterator<Item = &'a str> {
    let by = handoff.changes.iter().map(|change| change.by.as_str());
    [handoff.from.as_str(), handoff.to.as_str()]
        .into_iter()
        .chain(by)
}

/// A summary truncated to fit a row.
fn first_part(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    cut(line, SUMMARY)
}

/// Writes the filters, which stay hidden without a script. Each choice names the attribute it
/// searches; choices without a match are omitted.
pub(super) fn filters(
    page: &mut String,
    issues: &[&IssueSurvey<'_>],
    stuck: &[Attention],
    known: &Protocols,
) {
    let handoffs = || issues.iter().flat_map(|issue| &issue.handoffs);
    let agents: BTreeSet<&str> = handoffs().flat_map(acting).collect();
    let is_person = |name: &&str| {
        let mut known = known.values();
        known.any(|protocol| protocol.is_person(name))
    };
    let persons: BTreeSet<&str> = agents.iter().copied().filter(is_person).collect();
    let protocols = issues.iter().map(|issue| issue.protocol.as_str());
    let protocols: BTreeSet<&str> = protocols.collect();
    let there: BTreeSet<State> = handoffs().map(|h| h.state).collect();
    page.push_str(
        "<div class=\"filters\" id=\"filters\" role=\"search\" hidden>\n\
         <label>Search <input type=\"search\" id=\"f-text\" autocomplete=\"off\" spellcheck=\"false\" placeholder=\"words of a contract, a title, an agent\"></label>\n\
         <label>Title <input type=\"search\" id=\"f-title\" autocomplete=\"off\" spellcheck=\"false\"></label>\n",
    );
    if !stuck.is_empty() {
        let needs: BTreeSet<Need> = stuck.iter().map(|one| one.need).collect();
        let turns: BTreeSet<&str> = stuck.iter().map(|one| one.turn.as_str()).collect();
        let mut choices = vec![("any".to_owned(), "needs somebody".to_owned())];
        choices.extend(
            needs
                .iter()
                .map(|need| (need.as_str().to_owned(), need.title().to_owned())),
        );
        choices.extend(
            turns
                .iter()
                .map(|turn| (format!("turn:{turn}"), format!("{turn}'s turn"))),
        );
        choice(page, ("f-attention", "Attention", "n"), &choices);
    }
    let handoff_states = there.into_iter().filter(|s| *s != State::Completed);
    let states = handoff_states.map(|one| {
        (
            one.as_str().to_owned(),
            format!("with a handoff {}", one.words()),
        )
    });
    let issue_states = ["open", "completed"].map(|word| (word.to_owned(), word.to_owned()));
    let states: Vec<(String, String)> = issue_states.into_iter().chain(states).collect();
    choice(page, ("f-state", "State", "s"), &states);
    let is_found = [
        issues.iter().any(|issue| issue.unsettled > 0),
        issues.iter().any(|issue| issue.findings > 0),
        handoffs().any(|handoff| handoff.contradicted > 0),
        handoffs().any(|handoff| handoff.violations > 0),
    ];
    let found = FOUND.iter().zip(is_found).filter(|(_, is_found)| *is_found);
    let found = found.map(|((word, name), _)| ((*word).to_owned(), format!("with {name}")));
    let found: Vec<(String, String)> = found.collect();
    if !found.is_empty() {
        choice(page, ("f-findings", "Findings", "s"), &found);
    }
    for (about, names) in [
        (("f-agent", "Agent", "a"), agents),
        (("f-person", "Person", "a"), persons),
        (("f-protocol", "Protocol", "p"), protocols),
    ] {
        if names.is_empty() {
            continue;
        }
        let names: Vec<(String, String)> = names
            .iter()
            .map(|name| ((*name).to_owned(), (*name).to_owned()))
            .collect();
        choice(page, about, &names);
    }
    // The script finds their choices in the issues' sections.
    choice(page, ("f-label", "Label", "l"), &[]);
    choice(page, ("f-branch", "Branch", "b"), &[]);
    page.push_str(
        "<label>Order <select id=\"f-order\"><option value=\"\">open first</option><option value=\"number\">by number</option></select></label>\n",
    );
    *page += &format!(
        "<button type=\"button\" id=\"f-clear\">Clear</button>\n<p id=\"f-count\" role=\"status\" aria-live=\"polite\">{}</p>\n</div>\n",
        counted(issues.len(), "issue")
    );
}

/// Writes a filter: its id, its name, the attribute it searches, and its choices.
fn choice(page: &mut String, (id, label, place): (&str, &str, &str), choices: &[(String, String)]) {
    *page += &format!(
        "<label>{label} <select id=\"{id}\" data-in=\"{place}\"><option value=\"\">any</option>"
    );
    for (value, name) in choices {
        *page += &format!(
            "<option value=\"{}\">{}</option>",
            escaped(value),
            escaped(name)
        );
    }
    page.push_str("</select></label>\n");
}
