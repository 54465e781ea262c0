//! The status of an issue or a ledger as Markdown, for the summary of a run or the comment of a pull
//! request. Foreign text is shown as code, so that it cannot act as markup.

use handoff_base::Moment;
use handoff_base::ids::IssueKey;
use handoff_insight::graph::{mermaid, span};
use handoff_insight::times::times;
use handoff_ledger::attention::Attention;
use handoff_ledger::{HandoffSurvey, PastFailure, failures};
use handoff_model::{Record, Verdict};
use handoff_protocol::{Need, State};

use super::comment::{MOST_COMMENT, marker};
use super::parts::{Part, fit};
use super::status::{Issue, Ledger};
use super::text::{block, cell, code};

pub use super::parts::Fitted;

/// GitHub's limit for the summaries of one step, in bytes.
pub const MOST_SUMMARY: usize = 1 << 20;

// Limits of texts in tables and of reasons, in characters.
const MOST_CELL: usize = 120;
const MOST_REASON: usize = 400;

/// In bytes.
const MOST_DETAILS: usize = 4096;

/// Renders the page of an issue, in at most `most` bytes.
pub fn of_issue(standing: &Issue, most: usize) -> Fitted {
    let key = &standing.issue.issue;
    let more = format!("`git handoff status {key}` has all of it.");
    fit(parts(standing), most, &more)
}

/// Renders the page of an issue that is not in the ledger, in at most `most` bytes.
pub fn of_none(key: &IssueKey, most: usize) -> Fitted {
    let head = format!(
        "## Issue {}\n\nThe ledger does not have it.\n",
        code(key.as_str(), MOST_CELL)
    );
    let part = Part {
        name: "the issue",
        head,
        ..Part::default()
    };
    fit(vec![part], most, "`git handoff list` shows every issue.")
}

/// Renders the body of the comment about an issue.
pub fn comment(standing: &Issue) -> Fitted {
    let marker = format!("{}\n", marker(&standing.issue.issue));
    let mut page = of_issue(standing, MOST_COMMENT - marker.len());
    page.text.insert_str(0, &marker);
    page
}

/// Renders the page of a whole ledger, in at most `most` bytes.
pub fn of_ledger(standing: &Ledger, most: usize) -> Fitted {
    let (all, completed) = standing.issues;
    let mut head = format!(
        "## Handoffs on {}\n\n{}, {completed} of them completed; ",
        code(&standing.branch, MOST_CELL),
        counted(all, "issue")
    );
    let counts = standing.counts.iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(state, n)| format!("{n} {}", word(*state)))
        .collect();
    head += &if counts.is_empty() {
        "no handoff is open.".to_owned()
    } else {
        format!(
            "{} open: {}.",
            counted(standing.open.len(), "handoff"),
            counts.join(", ")
        )
    };
    head += &format!(" Commit {}.\n", code(&standing.commit.short(), 40));
    let mut parts = vec![Part {
        name: "the ledger",
        head,
        ..Part::default()
    }];
    parts.extend(attention(&standing.stuck, true));
    let alarms = standing.firing.iter().map(|alert| {
        format!(
            "- **{}** {} of {}: {}\n",
            alert.severity.as_str(),
            code(&alert.name, MOST_CELL),
            code(alert.protocol.as_str(), MOST_CELL),
            code(&alert.action, MOST_REASON)
        )
    });
    parts.extend(list(
        "thresholds",
        "### Thresholds that are crossed",
        alarms.collect(),
    ));
    let rows = standing.open.iter().map(|record| {
        format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            record.id,
            cell(record.from.as_str(), MOST_CELL),
            cell(record.to.as_str(), MOST_CELL),
            state_text(record.state),
            record.sent_at().map(minute).unwrap_or_default(),
            cell(&record.summary, MOST_CELL)
        )
    });
    let heads = ["Handoff", "From", "To", "State", "Sent", "About"];
    parts.extend(table("open handoffs", "### Open", &heads, rows.collect()));
    fit(
        parts,
        most,
        "`git handoff report --output report.html` has all of it.",
    )
}

fn parts(standing: &Issue) -> Vec<Part> {
    let mut parts = vec![Part {
        name: "the issue",
        head: head(standing),
        ..Part::default()
    }];
    parts.extend(attention(&standing.stuck, false));
    let gate = standing.gate.iter().map(|one| {
        let (mark, not) = if one.met {
            ("✓", "")
        } else {
            ("✗", "not ")
        };
        let why = code(&one.why, MOST_REASON);
        format!(
            "- {mark} {not}{}: {why}\n",
            code(&one.requirement, MOST_CELL)
        )
    });
    parts.extend(list(
        "requirements",
        "### Required of a merge",
        gate.collect(),
    ));
    parts.extend(contradicted(&standing.records));
    parts.extend(failed(&standing.records));
    let drawing = mermaid(&standing.graph);
    parts.push(Part {
        name: "the graph",
        head: format!("### What happened\n\n```mermaid\n{drawing}```\n"),
        ..Part::default()
    });
    let survey = standing.survey();
    let newest = standing.records.iter().rev();
    let rows = newest.map(|record| {
        let brief = survey.handoff(record.id.number());
        row(record, brief, standing.now)
    });
    let heads = [
        "Handoff", "From", "To", "Contract", "State", "Sent", "Waited", "Worked", "About",
    ];
    parts.extend(table(
        "handoffs",
        "### Handoffs, the newest first",
        &heads,
        rows.collect(),
    ));
    parts
}

fn head(standing: &Issue) -> String {
    let issue = &standing.issue;
    let mut text = format!(
        "## Issue {}: {}\n\n",
        code(issue.issue.as_str(), MOST_CELL),
        issue.status.as_str()
    );
    let holders: Vec<String> = standing
        .holders()
        .map(|a| code(a.as_str(), MOST_CELL))
        .collect();
    if !holders.is_empty() {
        text += &format!("With {}. ", holders.join(", "));
    }
    if let Some(paused) = &issue.paused {
        text += &format!("It is {}. ", code(&paused.to_string(), MOST_REASON));
    }
    if let Some(next) = &standing.next {
        let id = next.id.as_ref().map(|id| format!(" with {id}"));
        text += &format!(
            "Next: **{}**, by {}{}: {}. ",
            next.action.as_str(),
            code(next.agent.as_str(), MOST_CELL),
            id.unwrap_or_default(),
            code(&next.why, MOST_REASON)
        );
    }
    text += &format!(
        "{}, protocol {}, ledger at {}.\n",
        counted(standing.records.len(), "handoff"),
        code(issue.protocol.as_str(), MOST_CELL),
        code(&standing.commit.short(), 40)
    );
    text
}

fn attention(stuck: &[Attention], is_of_many: bool) -> Option<Part> {
    let rows = stuck.iter().map(|stuck| {
        let about = &stuck.id;
        let mark = if stuck.need <= Need::LeaseRanOut {
            "! "
        } else {
            ""
        };
        let turn = cell(stuck.turn.as_str(), MOST_CELL);
        format!(
            "| {about} | {mark}{} | {} | {} | {} | {} |\n",
            stuck.need.title(),
            turn,
            minute(stuck.since),
            cell(&stuck.why, MOST_CELL),
            cell(&stuck.next, MOST_REASON)
        )
    });
    let title = if is_of_many {
        format!("### Needs attention: {}", stuck.len())
    } else {
        "### Needs attention".to_owned()
    };
    let heads = ["Handoff", "What", "Whose turn", "Since", "Why", "Command"];
    table("that need attention", &title, &heads, rows.collect())
}

/// The statements of contracts that the repository contradicts.
fn contradicted(records: &[Record]) -> Option<Part> {
    let of = |record: &Record| -> Vec<String> {
        let found = record
            .evidence
            .iter()
            .filter(|e| e.result == Verdict::Contradicted);
        let line = |reason: &str| format!("- {}: {}\n", record.id, code(reason, MOST_REASON));
        found
            .map(|e| line(e.reason.as_deref().unwrap_or_else(|| e.check.as_str())))
            .collect()
    };
    let rows = records.iter().rev().flat_map(of).collect();
    list(
        "contradicted statements",
        "### Statements that the repository contradicts",
        rows,
    )
}

/// The failures, the newest first, with their details.
fn failed(records: &[Record]) -> Option<Part> {
    let mut all: Vec<PastFailure> = records.iter().flat_map(failures).collect();
    all.sort_by_key(|failure| std::cmp::Reverse(failure.at));
    let rows = all.iter().map(|failure| {
        let by = code(failure.by.as_str(), MOST_CELL);
        let mut text = format!(
            "- {}, attempt {}, {}, {by}",
            failure.id,
            failure.attempt,
            minute(failure.at)
        );
        let Some(error) = &failure.error else {
            return text + "\n";
        };
        let (kind, message) = (
            code(&error.code, MOST_CELL),
            code(&error.message, MOST_REASON),
        );
        text += &format!(": {kind} {message}\n");
        if let Some(action) = &error.suggested_action {
            text += &format!("  To do: {}\n", code(action, MOST_REASON));
        }
        if let Some(details) = &error.details {
            let block = block(details, MOST_DETAILS);
            let inside = block.lines().map(|line| format!("  {line}\n"));
            text += "  <details><summary>Details</summary>\n\n";
            text.extend(inside);
            text += "\n  </details>\n";
        }
        text
    });
    list("failures", "### Failures", rows.collect())
}

fn row(record: &Record, brief: Option<&HandoffSurvey<'_>>, now: Moment) -> String {
    let spent = brief.map(|brief| times(brief, now));
    let time = |length: Option<chrono::TimeDelta>| match length {
        Some(length) if length.num_seconds() > 0 => span(length),
        _ => String::new(),
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        record.id,
        cell(record.from.as_str(), MOST_CELL),
        cell(record.to.as_str(), MOST_CELL),
        cell(&record.contract_type, MOST_CELL),
        state_text(record.state),
        record.sent_at().map(minute).unwrap_or_default(),
        time(spent.as_ref().map(|spent| spent.waiting)),
        time(spent.as_ref().map(|spent| spent.working)),
        cell(&record.summary, MOST_CELL)
    )
}

/// A table, unless it has no rows.
fn table(name: &'static str, title: &str, heads: &[&str], rows: Vec<String>) -> Option<Part> {
    let line = "---|".repeat(heads.len());
    let head = format!("{title}\n\n| {} |\n|{line}\n", heads.join(" | "));
    (!rows.is_empty()).then_some(Part {
        name,
        head,
        rows,
        tail: String::new(),
    })
}

/// A list, unless it has no rows.
fn list(name: &'static str, title: &str, rows: Vec<String>) -> Option<Part> {
    (!rows.is_empty()).then_some(Part {
        name,
        head: format!("{title}\n\n"),
        rows,
        tail: String::new(),
    })
}

fn state_text(state: State) -> String {
    let mark = handoff_insight::graph::Mark::from(state);
    format!("{} {}", mark.symbol(), word(state))
}

fn word(state: State) -> &'static str {
    match state {
        State::InProgress => "in progress",
        state => state.as_str(),
    }
}

fn minute(at: Moment) -> String {
    at.format("%Y-%m-%d %H:%MZ").to_string()
}

fn counted(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}
