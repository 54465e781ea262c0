//! The report of an audit, for people who know neither Git nor JSON.

use super::output::{plain, render};
use crate::finding::Finding;
use crate::git::Repository;
use crate::ledger::{Audit, meaning};

/// The report of an audit of the ledger on this branch.
pub(super) fn report(audit: &Audit, repository: &Repository, branch: &str) -> String {
    let mut text = verdict(audit);
    text += &format!("\n{}", checked(audit, repository, branch));
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
        let mut said: Vec<&str> = Vec::new();
        for finding in audit.findings.iter().filter(of_it) {
            let meant = meaning(&finding.code);
            if !said.contains(&meant) {
                text += &format!("   {meant}\n");
                said.push(meant);
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

fn verdict(audit: &Audit) -> String {
    let errors = audit.findings.iter().filter(|f| f.is_error()).count();
    let all = audit.findings.len();
    match (errors, all) {
        (0, 0) if audit.cut_off => {
            "SOUND, as far as this clone goes: every step that is here is one that the rules of its time allowed.\n".to_owned()
        }
        (0, 0) => "SOUND: every step is one that the rules of its time allowed, and nothing was changed since.\n".to_owned(),
        (0, _) => format!("SOUND, with {all} remarks.\n"),
        (1, _) => "DAMAGED: 1 fault.\n".to_owned(),
        (errors, _) => format!("DAMAGED: {errors} faults.\n"),
    }
}

fn checked(audit: &Audit, repository: &Repository, branch: &str) -> String {
    let short = |id: &str| id.chars().take(10).collect::<String>();
    let when = { audit.tip.parse() }
        .ok()
        .and_then(|tip| repository.commit(tip).ok())
        .map(|commit| {
            commit
                .committer
                .at
                .format(", recorded %Y-%m-%d %H:%M %z")
                .to_string()
        });
    let from = match &audit.since {
        Some(since) => format!("after {}", short(since)),
        None if audit.cut_off => "from where this clone begins".to_owned(),
        None => "from the first".to_owned(),
    };
    let mut text = format!(
        "Checked: {} commits of branch {}, {from} to {}{}\n",
        audit.commits,
        plain(branch),
        short(&audit.tip),
        when.unwrap_or_default(),
    );
    text += &format!(
        "         {} handoffs: sender, receiver, contract, rules, record, signature and date of each\n",
        audit.handoffs
    );
    if audit.cut_off {
        text += "         older history is not in this clone: `git fetch --unshallow` brings it\n";
    }
    text
}

/// Which step a commit is, who made it, and when it was recorded.
fn step(commit: Option<&str>, repository: &Repository) -> String {
    let Some(id) = commit else {
        return "the ledger\n".to_owned();
    };
    let short: String = id.chars().take(10).collect();
    let Some(found) = id.parse().ok().and_then(|id| repository.commit(id).ok()) else {
        return format!("commit {short}\n");
    };
    let subject = found.message.lines().next().unwrap_or_default();
    format!(
        "commit {short} \"{}\"\n   in the name of {}, recorded by {} on {}\n",
        plain(subject),
        plain(&found.author.name),
        plain(&found.committer.name),
        found.committer.at.format("%Y-%m-%d %H:%M %z"),
    )
}
