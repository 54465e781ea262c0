//! The status of an issue or a ledger as Markdown, for the summary of a run or the comment of a pull
//! request. Foreign text is shown as code, so that it cannot act as markup.

use handoff::base::Moment;
use handoff::base::ids::IssueKey;
use handoff::base::text::counted;
use handoff::ledger::attention::Attention;
use handoff::ledger::{HandoffSurvey, PastFailure, failures};
use handoff::model::{Answered, Record, Remedy, ReviewFinding, Spent, Verdict};
use handoff::protocol::{Command, Need, State};
use handoff_graph::times::times;
use handoff_graph::{mermaid, span};

use super::answering::answer_lines;
use super::comment::{MOST_COMMENT, marker};
use super::event::unproven;
use super::parts::{Part, fit};
use super::status::{Issue, Ledger};
use super::text::{block, cell, code};

pub use super::parts::Fitted;

/// GitHub's limit for the summaries of one step, in bytes.
pub const MOST_SUMMARY: usize = 1 << 20;

// Limits of texts in tables and of reasons, in characters.
const MOST_CELL: usize = 120;
const MOST_REASON: usize = 400;

/// The maximum number of findings that are named.
const MOST_FINDINGS: usize = 3;

/// The maximum size of details, in bytes.
const MOST_DETAILS: usize = 4096;

/// Renders the page of an issue, in at most `most` bytes.
pub fn of_issue(standing: &Issue, most: usize) -> Fitted {
    let mut parts = vec![brief(standing, None)];
    parts.extend(rest(standing));
    fit(parts, most, &more(standing))
}

fn more(standing: &Issue) -> String {
    let key = &standing.issue.issue;
    format!("`git handoff status {key}` has all of it.")
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

/// Renders the body of the comment about an issue: the most important part, and the rest folded.
/// `report` is the URL of the ledger's report, `branch` its branch.
pub fn comment(standing: &Issue, report: Option<&str>, branch: &str) -> Fitted {
    let marker = format!("{}\n", marker(&standing.issue.issue, branch));
    let fold = (
        "<details><summary>What happened</summary>\n\n",
        "</details>\n",
    );
    let most = MOST_COMMENT - marker.len() - fold.0.len() - fold.1.len();
    let more = more(standing);
    let first = fit(vec![brief(standing, report)], most, &more);
    let rest = fit(rest(standing), most - first.text.len(), &more);
    let (open, close) = fold;
    Fitted {
        text: format!("{marker}{}{open}{}{close}", first.text, rest.text),
        left_out: [first.left_out, rest.left_out].concat(),
    }
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
        .map(|(state, n)| format!("{n} {}", state.words()))
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
            record
                .sent_at()
                .map(|at| at.to_string())
                .unwrap_or_default(),
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

/// The first part: whose turn it is, open questions, unmet requirements, findings of reviews.
fn brief(standing: &Issue, report: Option<&str>) -> Part {
    let mut rows: Vec<String> = standing
        .records
        .iter()
        .filter_map(|r| asked(standing, r).or_else(|| about(standing, r)))
        .collect();
    let gate = standing.gate.requirements.iter();
    rows.extend(gate.map(|one| gate_row(standing, one)));
    rows.extend(open_findings(standing));
    rows.extend(unproven(&standing.issue).map(|note| {
        let text = code(&note.note, MOST_REASON);
        format!("- Not counted: {text}\n")
    }));
    Part {
        name: "lines",
        head: head(standing),
        rows,
        tail: format!("\n{}\n", figures(standing, report)),
    }
}

/// The subject of work that is held or can be claimed, and its newest note.
fn about(standing: &Issue, record: &Record) -> Option<String> {
    if ![State::Pending, State::InProgress].contains(&record.state) {
        return None;
    }
    let notes = standing.issue.annotations.iter();
    let mut notes = notes.zip(&standing.witnesses).rev();
    let note =
        notes.find(|(note, _)| note.id.as_ref() == Some(&record.id) && !note.note.is_empty());
    let note = note.map(|(note, source)| {
        let source = code(&source.to_string(), MOST_CELL);
        format!("; {source}: {}", code(&note.note, MOST_REASON))
    });
    Some(format!(
        "- {} for {}: {}{}\n",
        record.id,
        code(record.to.as_str(), MOST_CELL),
        code(&record.summary, MOST_REASON),
        note.unwrap_or_default()
    ))
}

/// The request that a comment can fulfil: to answer, or to retry.
fn asked(standing: &Issue, record: &Record) -> Option<String> {
    let (command, (what, how), lines) = match record.state {
        State::Blocked => (
            Command::Answer,
            ("asks", "Answer in a comment"),
            answer_lines(record),
        ),
        State::Failed | State::Dead => {
            let line = format!("/handoff retry {}", record.id);
            let words = ("failed", "Give it another attempt in a comment");
            (Command::Retry, words, line)
        }
        _ => return None,
    };
    let why = code(record.reason().unwrap_or_default(), MOST_REASON);
    let mut text = format!(
        "- **{} {what}**, {}: {why}",
        record.id,
        code(record.to.as_str(), MOST_CELL)
    );
    let described = record
        .questions()
        .iter()
        .filter(|_| command == Command::Answer);
    for question in described {
        if let Some(purpose) = &question.description {
            text += &format!(
                "; {}: {}",
                code(&question.key, MOST_CELL),
                code(purpose, MOST_CELL)
            );
        }
    }
    if standing.commands.contains(&command) {
        let block = block(&lines, MOST_DETAILS);
        let inside: String = block.lines().map(|line| format!("  {line}\n")).collect();
        text += &format!(". {how}:\n\n{inside}");
    }
    Some(text + "\n")
}

/// A requirement of a merge.
fn gate_row(standing: &Issue, one: &Answered) -> String {
    let (mark, not) = if one.met {
        ("✓", "")
    } else {
        ("✗", "not ")
    };
    let why = code(&one.why, MOST_REASON);
    let name = code(&one.requirement, MOST_CELL);
    let by_comment = match &one.remedy {
        Remedy::Approve(id, _) | Remedy::ApproveCode(id, _)
            if standing.commands.contains(&Command::Approve) =>
        {
            format!("; `/handoff approve {id}` in a comment approves")
        }
        _ => String::new(),
    };
    let of = match standing.gate.head {
        Some(head) => format!("of {}", code(&head.short(), MOST_CELL)),
        None => "(no commit of an open pull request is known)".to_owned(),
    };
    format!("- Required of a merge {of}: {mark} {not}{name}: {why}{by_comment}\n")
}

/// The unanswered findings of reviews, in one line.
fn open_findings(standing: &Issue) -> Option<String> {
    let open = standing.issue.findings.iter();
    let open: Vec<&ReviewFinding> = open.filter(|f| f.state.is_unanswered()).collect();
    let shown = open.iter().take(MOST_FINDINGS);
    let shown: Vec<String> = shown
        .map(|finding| code(&format!("{}: {}", finding.name(), finding.text), MOST_CELL))
        .collect();
    let more = if open.len() > MOST_FINDINGS {
        ", …"
    } else {
        ""
    };
    (!open.is_empty()).then(|| {
        let count = counted(open.len(), "open finding");
        format!("- {count}: {}{more}\n", shown.join(", "))
    })
}

/// The size and the cost of an issue, and links to more.
fn figures(standing: &Issue, report: Option<&str>) -> String {
    let issue = &standing.issue;
    let mut spent = Spent::default();
    standing
        .records
        .iter()
        .for_each(|record| spent.add(&record.all_spent()));
    let spent = spent.text().map(|spent| format!(", {spent}"));
    let link = report.map(|report| format!(" [The report]({report}#i-{})", issue.issue));
    format!(
        "{}{}, protocol {}, ledger at {}.{}",
        counted(standing.records.len(), "handoff"),
        spent.unwrap_or_default(),
        code(issue.protocol.as_str(), MOST_CELL),
        code(&standing.commit.short(), 40),
        link.unwrap_or_default()
    )
}

/// The parts below the first one.
fn rest(standing: &Issue) -> Vec<Part> {
    let mut parts = Vec::new();
    parts.extend(attention(&standing.stuck, false));
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
    text.trim_end().to_owned() + "\n\n"
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
            stuck.what(),
            turn,
            stuck.since,
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

/// The failures, newest first, with their details.
fn failed(records: &[Record]) -> Option<Part> {
    let mut all: Vec<PastFailure> = records.iter().flat_map(failures).collect();
    all.sort_by_key(|failure| std::cmp::Reverse(failure.at));
    let rows = all.iter().map(|failure| {
        let by = code(failure.by.as_str(), MOST_CELL);
        let mut text = format!(
            "- {}, attempt {}, {}, {by}",
            failure.id, failure.attempt, failure.at
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
        record
            .sent_at()
            .map(|at| at.to_string())
            .unwrap_or_default(),
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
    let mark = handoff_graph::Mark::from(state);
    format!("{} {}", mark.symbol(), state.words())
}
