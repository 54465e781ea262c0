//! Classifies git's messages about a remote.
//!
//! git has one exit code for all failures, so only messages tell them apart. They are parsed in the
//! C locale and only at positions that git controls: the reason on a ref's line, an error after
//! `fatal: ` at a line's start. URLs, names and hook output are never matched.

use super::outcome::{Pushed, RemoteError};
use crate::process::knows_no_tables;

/// The maximum number of a remote's lines that are kept; below, of bytes per line.
const LINES: usize = 40;
const LENGTH: usize = 400;

/// Classifies a failed push. `stdout` is what `git push --porcelain` printed about `refname`.
pub(super) fn of_push(refname: &str, stdout: &[u8], stderr: &[u8]) -> Result<Pushed, RemoteError> {
    let report = String::from_utf8_lossy(stdout);
    let lines = lines(stderr);
    let Some((summary, reason)) = report.lines().find_map(|line| refused(line, refname)) else {
        return Err(of_contact(&lines));
    };
    match summary {
        "rejected" => match reason {
            "fetch first"
            | "non-fast-forward"
            | "stale info"
            | "already exists"
            | "remote ref updated since checkout" => Ok(Pushed::Behind),
            _ => Err(failed(Some(reason), &lines)),
        },
        "remote rejected" => of_server(reason, refname, &lines),
        _ => Err(failed(Some(reason), &lines)),
    }
}

/// Classifies a successful push; [`RemoteError::Failed`] if git does not report the ref.
pub(super) fn of_pushed(refname: &str, stdout: &[u8]) -> Result<Pushed, RemoteError> {
    let report = String::from_utf8_lossy(stdout);
    let about = report.lines().filter_map(|line| about(line, refname));
    // A remote with several URLs has a line for each.
    let flags: Vec<&str> = about.map(|(flag, _)| flag).collect();
    match flags.as_slice() {
        [] => Err(RemoteError::Failed {
            message: format!("git did not report {refname}"),
        }),
        flags if flags.iter().all(|flag| *flag == "=") => Ok(Pushed::Already),
        _ => Ok(Pushed::Done),
    }
}

/// Classifies why git could not communicate with the remote.
pub(super) fn of_contact(lines: &[String]) -> RemoteError {
    let hook = |line: &String| {
        line == "fatal: ref updates aborted by hook" || is_aborted(line, "fatal: in '")
    };
    if let Some(at) = lines.iter().position(hook) {
        let message = lines[..at].iter().map(|line| from_remote(line)).collect();
        return RemoteError::Refused { message };
    }
    if knows_no_tables(&lines.join("\n")) {
        RemoteError::OldGit
    } else if lines.iter().any(|line| is_of_other_format(line)) {
        RemoteError::Format
    } else if lines.iter().any(|line| is_denial(line)) {
        RemoteError::Denied {
            message: one_line(None, lines),
        }
    } else {
        failed(None, lines)
    }
}

/// Whether git's message is about unreadable local objects.
pub fn tells_of_damage(message: &str) -> bool {
    const SIGNS: [&str; 5] = [
        ") is corrupt",
        " does not exist",
        " is empty",
        "bad tree object ",
        "bad object ",
    ];
    let mut own = message
        .split("; ")
        .filter(|line| !line.starts_with("remote:"));
    own.any(|line| line.contains("object") && SIGNS.iter().any(|sign| line.contains(sign)))
}

/// Whether a fetch failed because the branch was rewritten.
pub(super) fn is_rewritten(lines: &[String]) -> bool {
    let rewritten =
        |line: &String| line.starts_with("! [rejected] ") && line.ends_with(" (non-fast-forward)");
    lines.iter().any(rewritten)
}

/// Whether a fetch failed because another process updates local refs: it holds their lock, or moved
/// the ref meanwhile, such as the fetch of a process that was killed.
pub(super) fn is_locked(lines: &[String]) -> bool {
    let moved = |line: &String| {
        line.starts_with("error: cannot lock ref '")
            && (line.contains("': is at ") && line.contains(" but expected ")
                || line.ends_with("': reference already exists"))
    };
    lines
        .iter()
        .any(|line| line.ends_with("cannot lock references") || moved(line))
}

/// Whether a fetch skipped a ref because the remote is shallow. git reports this and exits
/// successfully.
pub(super) fn is_cut_off(stderr: &[u8]) -> bool {
    const TEXT: &[u8] = b" because shallow roots are not allowed to be updated";
    stderr.windows(TEXT.len()).any(|text| text == TEXT)
}

/// Whether a fetch failed because the remote has no such branch.
pub(super) fn is_missing(refname: &str, lines: &[String]) -> bool {
    let missing = format!("fatal: couldn't find remote ref {refname}");
    lines.contains(&missing)
}

/// git's error lines, without terminal escapes and secrets.
pub(super) fn lines(stderr: &[u8]) -> Vec<String> {
    let message = String::from_utf8_lossy(stderr);
    let each = message.split(['\n', '\r']).map(|line| {
        let line = masked(&without_colours(line));
        line.trim().chars().take(LENGTH).collect::<String>()
    });
    let kept = each.filter(|line| {
        let word = line.strip_prefix("remote:").unwrap_or(line).trim();
        // gpg's status lines are for programs, and hints do not apply here.
        !(word.is_empty() || word.starts_with("[GNUPG:]") || line.starts_with("hint:"))
    });
    kept.take(LINES).collect()
}

/// The flag and the summary of a `--porcelain` line about a ref.
fn about<'a>(line: &'a str, refname: &str) -> Option<(&'a str, &'a str)> {
    let mut parts = line.splitn(3, '\t');
    let (flag, refs, outcome) = (parts.next()?, parts.next()?, parts.next()?);
    let (_, to) = refs.rsplit_once(':')?;
    (to == refname).then_some((flag, outcome))
}

/// Who refused a ref (`rejected`: git, `remote rejected`: the remote), and why.
fn refused<'a>(line: &'a str, refname: &str) -> Option<(&'a str, &'a str)> {
    let (_, outcome) = about(line, refname).filter(|(flag, _)| *flag == "!")?;
    let (summary, reason) = outcome.strip_prefix('[')?.split_once(']')?;
    let reason = reason.trim().strip_prefix('(').unwrap_or_default();
    Some((summary, reason.strip_suffix(')').unwrap_or(reason)))
}

/// Classifies a server's reason.
fn of_server(reason: &str, refname: &str, lines: &[String]) -> Result<Pushed, RemoteError> {
    let has = |words: &str| reason.contains(words);
    // JGit and Azure say "has already been updated by another client".
    let raced = [
        "incorrect old value provided",
        "reference already exists",
        "reference does not exist",
        "non-fast-forward",
        "non-fast forward",
        "fetch first",
        "failed to lock",
    ];
    if raced.contains(&reason) || reason.starts_with("TF401028:") {
        return Ok(Pushed::Behind);
    }
    if reason.starts_with("cannot lock ref '") || reason.starts_with("failed to update ref") {
        return of_update(reason, lines);
    }
    let message = remote_messages(lines);
    let in_one = |own: &str| {
        if message.is_empty() {
            own.to_owned()
        } else {
            message.join("; ")
        }
    };
    // Refs that git itself protects; its advice is long, and for administrators.
    let kept = [
        "deny updating a hidden ref",
        "branch is currently checked out",
    ];
    if kept.contains(&reason) || reason == "creation prohibited" {
        let message = reason.to_owned();
        return Err(RemoteError::Protected { message });
    }
    if has("protected branch")
        || reason.starts_with("push declined due to repository rule violations")
        || reason.starts_with("TF402455:")
    {
        let message = if reason.starts_with("TF") {
            reason.to_owned()
        } else {
            in_one(reason)
        };
        return Err(RemoteError::Protected { message });
    }
    let wanted = reason.starts_with("TF401027:") || reason.starts_with("prohibited by Gerrit");
    if wanted || reason.to_lowercase().starts_with("permission denied") {
        let message = reason.to_owned();
        return Err(RemoteError::Denied { message });
    }
    if reason.ends_with("hook declined") || reason.starts_with("push declined") {
        if message.iter().any(|line| is_protection(line)) {
            let message = in_one(reason);
            return Err(RemoteError::Protected { message });
        }
        // git appends this to an `update` hook's output.
        let own = format!("error: hook declined to update {refname}");
        let mut message = message;
        message.retain(|line| *line != own);
        if message.is_empty() {
            message.push(reason.to_owned());
        }
        return Err(RemoteError::Refused { message });
    }
    if reason == "unpacker error" && lines.iter().any(|line| is_unwritable(line)) {
        let message = one_line(None, lines);
        return Err(RemoteError::Denied { message });
    }
    Err(failed(Some(reason), lines))
}

/// Classifies why a server failed to update a ref that it accepted.
fn of_update(reason: &str, lines: &[String]) -> Result<Pushed, RemoteError> {
    let message = remote_messages(lines);
    // Servers put details beside the reason, or into it.
    let own = message
        .iter()
        .filter_map(|line| line.strip_prefix("error: "));
    let all: Vec<&str> = own.chain([reason]).collect();
    if all.iter().any(|line| may_not_write(line)) {
        let message = one_line(Some(reason), lines);
        return Err(RemoteError::Denied { message });
    }
    let hook = |line: &&str| *line == "ref updates aborted by hook" || is_aborted(line, "in '");
    if all.iter().any(hook) {
        let mut message: Vec<String> = message.clone();
        message.retain(|line| !hook(&line.trim_start_matches("error: ")));
        return Err(RemoteError::Refused { message });
    }
    let lasting = |line: &&str| {
        let line = line.trim_end_matches('.');
        line.ends_with(": No space left on device")
            || line.ends_with(": Disk quota exceeded")
            || line.ends_with(": Input/output error")
            || line.contains("' exists; cannot create '")
    };
    if all.iter().any(lasting) {
        Err(failed(Some(reason), lines))
    } else {
        Ok(Pushed::Behind)
    }
}

/// Whether a `reference-transaction` hook aborted the update.
fn is_aborted(line: &str, start: &str) -> bool {
    let end = "' phase, update aborted by the reference-transaction hook";
    line.starts_with(start) && line.ends_with(end)
}

/// Whether a system call failed for lack of permission.
fn may_not_write(line: &str) -> bool {
    let line = line.trim_end_matches('.');
    let refused = [
        ": Permission denied",
        ": Read-only file system",
        ": Operation not permitted",
    ];
    refused.iter().any(|end| line.ends_with(end))
}

/// Whether the user lacks permission to write objects on the remote.
fn is_unwritable(line: &str) -> bool {
    let line = line.strip_prefix("remote: ").unwrap_or(line);
    let Some(line) = ["error: ", "fatal: "]
        .iter()
        .find_map(|start| line.strip_prefix(start))
    else {
        return false;
    };
    // git gives no reason for failing to create a folder; usually it is permission.
    line == "remote unpack failed: unable to create temporary object directory"
        || line.starts_with("insufficient permission for adding an object to repository database")
        || may_not_write(line)
}

/// Whether a line is a host's message about branch protection, where the reason names only a hook.
fn is_protection(line: &str) -> bool {
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let starts = [
        "GH006: ",
        "GH013: ",
        "GitLab: You are not allowed to push code to protected branches",
        "GitLab: You are not allowed to push code to a protected branch",
        "GitLab: You are not allowed to force push code to a protected branch",
        "Gitea: Not allowed to push to protected branch ",
        "Forgejo: Not allowed to push to protected branch ",
        "Branch restrictions prevented the push",
    ];
    let bitbucket = line.starts_with("Branch refs/heads/")
        && line.contains(" can only be modified through pull requests");
    bitbucket || starts.iter().any(|start| line.starts_with(start))
}

/// Whether the remote uses another object format, in the words of fetch and of push.
fn is_of_other_format(line: &str) -> bool {
    line.starts_with("fatal: mismatched algorithms: client ")
        // A git before 2.41 takes the longer id for a protocol error.
        || line == "fatal: protocol error: unexpected capabilities^{}"
        || line == "fatal: the receiving end does not support this repository's hash algorithm"
}

/// Whether the user is not authenticated or not authorized.
fn is_denial(line: &str) -> bool {
    let starts = [
        "fatal: Authentication failed for '",
        "fatal: could not read Username for '",
        "fatal: could not read Password for '",
        "fatal: remote error: access denied or repository not exported: ",
        "fatal: remote error: service not enabled: ",
        "fatal: remote error: repository not exported: ",
        "fatal: detected dubious ownership in repository at '",
        "error: RPC failed; HTTP 401 ",
        "error: RPC failed; HTTP 403 ",
        // Messages of large hosts before they close an ssh connection.
        "ERROR: Write access to repository not granted.",
        "ERROR: The key you are authenticating with has been marked as read only.",
        "ERROR: This repository was archived so it is read-only.",
        "remote: ERROR: You are not allowed to push code to this project.",
        "conq: repository access denied.",
    ];
    if starts.iter().any(|start| line.starts_with(start)) {
        return true;
    }
    // After the URL, which may contain anything.
    let http = line
        .strip_prefix("fatal: unable to access '")
        .and_then(|line| line.rsplit_once("': "))
        .is_some_and(|(_, why)| {
            why == "The requested URL returned error: 401"
                || why == "The requested URL returned error: 403"
        });
    let ssh = line
        .trim_end_matches('.')
        .strip_suffix(')')
        .and_then(|line| line.rsplit_once("Permission denied ("))
        .is_some_and(|(who, ways)| {
            let one = |part: &str| !part.contains(char::is_whitespace);
            one(ways) && (who.is_empty() || who.strip_suffix(": ").is_some_and(one))
        });
    let github = line
        .strip_prefix("ERROR: Permission to ")
        .is_some_and(|line| line.contains(" denied to "));
    http || ssh || github
}

/// The remote's own messages, without git's prefix.
fn remote_messages(lines: &[String]) -> Vec<String> {
    let message = lines.iter().filter_map(|line| line.strip_prefix("remote:"));
    message.map(|line| line.trim().to_owned()).collect()
}

fn from_remote(line: &str) -> String {
    line.strip_prefix("remote:")
        .unwrap_or(line)
        .trim()
        .to_owned()
}

fn failed(reason: Option<&str>, lines: &[String]) -> RemoteError {
    RemoteError::Failed {
        message: one_line(reason, lines),
    }
}

/// All messages as one line, deduplicated.
fn one_line(reason: Option<&str>, lines: &[String]) -> String {
    let repeated = |line: &&str| {
        line.starts_with("error: failed to push some refs to '")
            || *line == "Please make sure you have the correct access rights"
            || *line == "and the repository exists."
    };
    let message = lines
        .iter()
        .map(String::as_str)
        .filter(|line| !repeated(line));
    let all: Vec<&str> = reason.into_iter().chain(message).collect();
    if all.is_empty() {
        return "it failed, and does not say why".to_owned();
    }
    // git wraps lines after a colon.
    let all = all.join("; ").replace(":; ", ": ");
    all.chars().take(3 * LENGTH).collect()
}

/// A line without control characters and terminal escapes.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            // Skips the parameters and the final letter of an escape sequence.
            while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
        } else if c == '\t' {
            plain.push(' ');
        } else if !c.is_control() {
            plain.push(c);
        }
    }
    plain
}

/// Removes user and password from URLs in a text. `ssh://git@host` contains no secret.
pub fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        masked.push_str(before);
        masked.push_str("://");
        let ends = |c: char| c == '/' || c.is_whitespace() || c == '\'' || c == '"';
        let host = &after[..after.find(ends).unwrap_or(after.len())];
        rest = after;
        if let Some((user, _)) = host.rsplit_once('@')
            && (user.contains(':') || !before.ends_with("ssh"))
        {
            masked.push_str("***");
            rest = &after[user.len()..];
        }
    }
    masked + rest
}

#[cfg(test)]
mod tests;
