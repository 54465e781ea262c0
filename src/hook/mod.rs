//! Git's hooks, one file for each kind: before a commit, before a push, and before a ref moves.
//! Each refuses with a [`Failure`] that has every finding and a hint how to proceed.

mod commit;
mod push;
mod refs;

use std::ffi::OsString;
use std::io::Read;
use std::num::NonZero;
use std::thread;

pub(crate) use commit::{commit_msg, pre_commit};
pub(crate) use push::pre_push;
pub(crate) use refs::{pre_receive, reference_transaction, update};

use crate::environment;
use crate::failure::{ErrorCode, Failure};
use handoff::base::ObjectId;
use handoff::base::finding::Finding;
use handoff::base::text::quoted;
use handoff::git::Repository;
use handoff::ledger::{BranchMove, Ledger};

/// The hint after a move of the ledger's branch was refused.
const LEAVE: &str = "the branch was not moved. Use `git handoff` (send, claim, complete, annotate …), whose steps pass; a step made by hand must be exactly what the program would have written: `git handoff help hooks.md`";

fn refusal(text: impl Into<String>, findings: Vec<Finding>) -> Failure {
    Failure::new(ErrorCode::HookRefused, text).findings(findings)
}

/// The hook's argument at this index.
fn argument<'a>(arguments: &'a [OsString], at: usize, name: &str) -> Result<&'a str, Failure> {
    let found = arguments.get(at).and_then(|given| given.to_str());
    found
        .ok_or_else(|| Failure::usage(format!("git passes {name} to this hook, but it is missing")))
}

/// The lines that git writes to the hook's standard input, split into words; the last word may
/// have spaces.
fn lines(words: usize) -> Result<Vec<Vec<String>>, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| {
            refusal(
                format!("standard input cannot be read: {error}"),
                Vec::new(),
            )
        })?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let split = text.lines().map(|line| {
        let parts: Vec<String> = line.splitn(words, ' ').map(str::to_owned).collect();
        if parts.len() == words {
            Ok(parts)
        } else {
            Err(Failure::usage(format!(
                "git passes lines of {words} words to this hook, not {}",
                quoted(line)
            )))
        }
    });
    split.collect()
}

/// Parses an object id; `None` if it is all zeros, which is how git writes that a ref does not exist.
fn object(text: &str) -> Result<Option<ObjectId>, Failure> {
    if !text.is_empty() && text.bytes().all(|b| b == b'0') {
        return Ok(None);
    }
    let wrong = |_| Failure::usage(format!("{} is not the id of an object", quoted(text)));
    text.parse().map(Some).map_err(wrong)
}

/// Whether a ref is the ledger's branch, also if one of them is a symbolic ref to the other.
fn is_ledgers(
    repository: &Repository,
    ledger: &Ledger<'_>,
    refname: &str,
) -> Result<bool, Failure> {
    let own = ledger.refname();
    Ok(refname == own
        || repository.symbolic_target(refname)?.as_deref() == Some(own)
        || repository.symbolic_target(own)?.as_deref() == Some(refname))
}

/// Refuses a move of the ledger's branch that does not consist of legal steps.
fn judge(repository: &Repository, ledger: &Ledger<'_>, moved: BranchMove) -> Result<(), Failure> {
    if let Some(from) = moved.from
        && ledger.never_was_a_ledger(from).unwrap_or(false)
    {
        return Ok(());
    }
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    // The pusher may set the clock of the environment, but not the system's.
    let now = environment::system_time();
    let mut findings = moved.findings(repository, ledger.branch(), now, threads)?;
    findings.retain(Finding::is_error);
    if findings.is_empty() {
        return Ok(());
    }
    Err(not_legal(ledger, findings))
}

/// The refusal of a move of the ledger's branch.
fn not_legal(ledger: &Ledger<'_>, findings: Vec<Finding>) -> Failure {
    let branch = ledger.branch();
    let text = match ledger.tip_id() {
        Ok(None) => format!("branch {branch} is kept for a ledger, which this would not start"),
        _ => format!("branch {branch} is the ledger, and this move is not made of legal steps"),
    };
    refusal(text, findings).hint(LEAVE)
}
