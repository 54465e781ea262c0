//! Audit reports for people who know neither Git nor JSON.

use handoff::base::Moment;
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::ids::IssueKey;
use handoff::base::short_id;
use handoff::base::text::continued;
use handoff::git::Repository;
use handoff::ledger::{Audit, DEEPEN};

use crate::output::{counted, render};

/// The report of an audit of a ledger, or of one issue: the verdict, then the findings on the page.
pub fn report(
    verdict: &str,
    audit: &Audit,
    repository: &Repository,
    (branch, issue): (&str, Option<&IssueKey>),
) -> String {
    let mut text = format!("{verdict}\n");
    text += &checked(audit, repository, branch, issue);
    let mut commits: Vec<Option<&str>> = Vec::new();
    for finding in &audit.findings {
        let commit = finding.commit.as_deref();
        if !commits.contains(&commit) {
            commits.push(commit);
        }
    }
    for (number, commit) in commits.iter().enumerate() {
        let of_it = |f: &&Finding| f.commit.as_deref() == *commit;
        text += &format!("\n{}. {}", number + 1, step(*commit, repository));
        let mut meanings: Vec<&str> = Vec::new();
        for finding in audit.findings.iter().filter(of_it) {
            let meant = finding.code.meaning();
            if !meanings.contains(&meant) {
                text += &format!("   {meant}\n");
                meanings.push(meant);
            }
        }
        for finding in audit.findings.iter().filter(of_it) {
            let mut bare = finding.clone();
            bare.commit = None;
            for line in render(&bare).lines() {
                text += &format!("   {line}\n");
            }
        }
    }
    text
}

/// The verdict and the audited scope, in one line.
pub fn verdict(audit: &Audit) -> String {
    let checked = format!(
        "{}, {}, up to {}",
        counted(audit.commits, "commit"),
        counted(audit.handoffs, "handoff"),
        short_id(&audit.tip)
    );
    let faults = audit.findings.iter().filter(|f| f.is_error()).count();
    match faults {
        0 if audit.cut_off => format!(
            "what this clone has of the ledger is sound: {checked}; older history is not here"
        ),
        0 => format!("the ledger is sound: {checked}"),
        faults => format!(
            "the ledger is damaged: {} in {checked}",
            counted(faults, "finding")
        ),
    }
}

fn checked(
    audit: &Audit,
    repository: &Repository,
    branch: &str,
    issue: Option<&IssueKey>,
) -> String {
    let tip = audit
        .tip
        .parse()
        .ok()
        .and_then(|tip| repository.commit(tip).ok());
    let when = tip.map(|commit| Moment::from(commit.committer.at).to_string());
    let from = match &audit.since {
        Some(since) => format!("after commit {}", short_id(since)),
        None if audit.cut_off => "from the first commit in this clone".to_owned(),
        None => "from the first commit".to_owned(),
    };
    let mut text = format!(
        "  audited: {}branch {}, {from} to the last, recorded {}\n",
        issue.map_or_else(String::new, |key| format!(
            "only issue {key}, and the rules; "
        )),
        continued(branch),
        when.as_deref().unwrap_or("at an unknown time"),
    );
    if audit.is_clean() {
        let is_taken_back = |one: &Finding| one.code == FindingCode::HistoryQuarantined;
        text += if audit.findings.iter().any(is_taken_back) {
            "  every step was legal under the rules of its time, but what was taken back on record\n"
        } else {
            "  every step was legal under the rules of its time, and nothing was changed since\n"
        };
    }
    if audit.cut_off {
        text += &format!("  older history: {DEEPEN}\n");
    }
    text
}

/// The step of a commit, with its author and time.
fn step(commit: Option<&str>, repository: &Repository) -> String {
    let Some(id) = commit else {
        return "the ledger\n".to_owned();
    };
    let short = short_id(id);
    let Some(found) = id.parse().ok().and_then(|id| repository.commit(id).ok()) else {
        return format!("commit {short}\n");
    };
    let subject = found.message.lines().next().unwrap_or_default();
    format!(
        "commit {short} \"{}\"\n   in the name of {}, recorded by {} on {}\n",
        continued(subject),
        continued(&found.author.name),
        continued(&found.committer.name),
        Moment::from(found.committer.at),
    )
}
