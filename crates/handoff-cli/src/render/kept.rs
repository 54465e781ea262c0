//! The kept context of failed attempts and of claims that were given back, as text.

use handoff::base::short_id;
use handoff::base::text::{continued, set_off};
use handoff::ledger::{Contents, PastFailure, Shown};
use handoff::model::SnapshotManifest;

use crate::output::counted;

/// The maximum number of a snapshot's paths that are listed.
const MOST_PATHS: usize = 50;

/// The earlier failures, and the context of the newest one that has any.
pub fn kept_text(failures: &[PastFailure]) -> String {
    let mut text = String::new();
    for failure in failures {
        let error = failure.error.as_ref();
        let why = error.map(|error| format!("{}: {}", error.named(), error.message));
        let why = why.or_else(|| failure.reason.clone());
        let why = continued(&why.map_or(String::new(), |why| format!(": {why}")));
        let (id, name, end) = (&failure.id, failure.name(), failure.end());
        text += &format!("\n{id}, {name} {end}{why}\n");
        if let Some(kept) = &failure.kept {
            text += &contents_text(kept);
        }
    }
    text
}

/// The context of a failure, and how to restore it.
pub fn contents_text(kept: &Contents) -> String {
    let mut text = format!("  kept in {}\n", continued(&kept.path));
    let host = kept.host.name.as_deref().unwrap_or("an unnamed machine");
    let tools: Vec<String> = kept
        .tools
        .iter()
        .map(|(tool, v)| format!("{tool} {v}"))
        .collect();
    let on = format!(
        "on {host} ({}, {}), {}",
        kept.host.os,
        kept.host.arch,
        tools.join(", ")
    );
    text += &format!("  {}\n", continued(&on));
    let code = &kept.code;
    let branch = match &code.branch {
        Some(branch) => format!("branch {branch}"),
        None => "no branch".to_owned(),
    };
    let commit = code.commit.as_deref().map(short_id);
    let commit = commit.unwrap_or_else(|| "no commit yet".to_owned());
    text += &format!("  {}\n", continued(&format!("on {branch} at {commit}")));
    for file in &kept.attachments {
        text += &attachment_text(file);
    }
    if let Some(snapshot) = &kept.snapshot {
        text += &snapshot_text(snapshot);
    }
    if let Some(command) = &kept.restore {
        text += &format!("  restore it: {command}\n");
    }
    text
}

fn attachment_text(file: &Shown) -> String {
    let (name, bytes) = (continued(&file.attachment.name), file.attachment.bytes);
    let mut text = format!("  attached {name}, {}", counted(bytes, "byte"));
    match &file.tail {
        Some(tail) if tail.is_empty() => text.push('\n'),
        Some(tail) => {
            let cut = if file.cut {
                format!(", the last {} of them", tail.len())
            } else {
                String::new()
            };
            text += &format!("{cut}:\n{}", set_off(tail));
        }
        None => text += ", not text\n",
    }
    text
}

fn snapshot_text(snapshot: &SnapshotManifest) -> String {
    let mut text = format!(
        "  unfinished work: {}, {} deleted, {} staged",
        counted(snapshot.files.len(), "file"),
        snapshot.deleted.len(),
        snapshot.staged.len() + snapshot.removed.len()
    );
    if let Some(operation) = &snapshot.operation {
        text += &format!(", during a {}", continued(operation));
    }
    text.push('\n');
    let commits = snapshot.commits.len();
    if commits > 0 {
        let more = if snapshot.more_commits {
            ", the newest of them"
        } else {
            ""
        };
        text += &match commits {
            1 => "  its base commit is kept with it\n".to_owned(),
            _ => format!("  {commits} commits are kept with it, its base among them{more}\n"),
        };
    }
    let files = snapshot
        .files
        .iter()
        .map(|file| format!("{} ({})", file.path, counted(file.bytes, "byte")));
    let deleted = snapshot
        .deleted
        .iter()
        .map(|path| format!("{path} (deleted)"));
    let mut lines = files.chain(deleted);
    for line in lines.by_ref().take(MOST_PATHS) {
        text += &set_off(&line);
    }
    let more = lines.count();
    if more > 0 {
        text += &format!("    and {more} more, which --json lists\n");
    }
    text
}
