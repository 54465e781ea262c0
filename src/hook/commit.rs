//! Before a commit: staged contracts, and steps that are made with plain git.

use std::ffi::OsString;

use handoff_base::ObjectId;
use handoff_base::finding::Finding;
use handoff_contract::Input;
use handoff_git::{Cleanup, PathPatterns, Repository, cleaned, comment_of};
use handoff_ledger::{Ledger, NextCommit, Offer};

use super::{argument, refusal};
use crate::context::Context;
use crate::contracts::against::Against;
use crate::environment;
use crate::failure::{Failure, chain};

/// The default patterns for contracts in a working tree, if `handoff.contracts` is not set.
const CONTRACTS: [&str; 2] = ["handoffs/**", ".handoffs/**"];

/// Refuses a commit of an incomplete contract, and one on the ledger's branch that is not a step.
pub(crate) fn pre_commit(context: &Context) -> Result<(), Failure> {
    let repository = context.repository()?;
    let ledger = context.ledger(&repository)?;
    if is_on_ledger(&repository, &ledger)? {
        return step(&repository, &ledger, None);
    }
    let index = environment::index();
    let patterns = patterns(&repository)?;
    let staged = repository.newly_staged(index.as_deref(), &patterns, is_contract);
    let staged = staged.map_err(|error| unreadable(&error))?;
    if staged.is_empty() {
        return Ok(());
    }
    if let (None, Some(seen)) = (ledger.tip_id()?, ledger.seen()) {
        return Err(gone(&ledger, seen));
    }
    let against = Against::choose(context, Some(&repository), None)?;
    let agent = context.agent(&repository)?;
    let (mut findings, mut incomplete) = (Vec::new(), 0);
    for file in &staged {
        let bytes = repository.blob(file.id)?;
        // Notes next to contracts are not contracts.
        if has_extension(&file.path, "md") && !is_message(&bytes) {
            continue;
        }
        let review = against.review(&Offer {
            input: &Input::read(&bytes),
            agent: agent.as_ref(),
            issue: None,
            protocol: None,
            answers: None,
            token: None,
            allow: &[],
            reports: None,
        })?;
        incomplete += usize::from(!review.is_complete());
        if !review.is_complete() {
            findings.extend(review.findings.into_iter().map(|f| in_file(&file.path, f)));
        }
    }
    if incomplete == 0 {
        return Ok(());
    }
    let text = match incomplete {
        1 => "a staged contract is incomplete".to_owned(),
        more => format!("{more} staged contracts are incomplete"),
    };
    Err(refusal(text, findings).hint(
        "fix what the findings name, `git add` it, and commit again; to commit the rest first, unstage it: `git restore --staged FILE` keeps the file",
    ))
}

/// Refuses a message on the ledger's branch that does not describe its step.
pub(crate) fn commit_msg(context: &Context, arguments: &[OsString]) -> Result<(), Failure> {
    let file = argument(arguments, 0, "the message's file")?;
    let repository = context.repository()?;
    let ledger = context.ledger(&repository)?;
    if !is_on_ledger(&repository, &ledger)? {
        return Ok(());
    }
    let message = std::fs::read(file)
        .map_err(|error| refusal(format!("{file} cannot be read: {error}"), Vec::new()))?;
    let configured = repository.config("commit.cleanup");
    let cleanup = Cleanup::of(configured.as_deref(), environment::is_edited());
    let comment = repository.config("core.commentstring");
    let comment = comment.or_else(|| repository.config("core.commentchar"));
    let comment = comment_of(comment.as_deref(), &message);
    let message = cleaned(&message, cleanup, comment);
    step(&repository, &ledger, Some(&message))
}

/// Refuses what is staged on the ledger's branch unless it is a step.
fn step(
    repository: &Repository,
    ledger: &Ledger<'_>,
    message: Option<&[u8]>,
) -> Result<(), Failure> {
    let index = environment::index();
    let tree = repository.tree_of_index(index.as_deref()).map_err(|error| {
        let text = format!("cannot make a tree from the index: {}", chain(&error));
        refusal(text, Vec::new()).hint(
            "see `git status`; convert a sparse or split index to a plain one: `git sparse-checkout reapply --no-sparse-index`, `git update-index --no-split-index`",
        )
    })?;
    let author = environment::author(repository)?;
    let committer = environment::session(repository)?.committer();
    let next = NextCommit {
        parent: repository.resolve(ledger.refname())?,
        tree,
        author: &author,
        committer: &committer,
        message,
    };
    let mut findings = next.findings(repository)?;
    findings.retain(Finding::is_error);
    if findings.is_empty() {
        return Ok(());
    }
    let text = format!(
        "this commit on branch {} is not a step that the ledger accepts",
        ledger.branch()
    );
    Err(refusal(text, findings).hint(
        "nothing was committed, and your files are unchanged. `git checkout --detach` keeps them and frees the branch, so that `git handoff` (send, claim, complete …) can make the step; docs/hooks.md explains how to make one by hand",
    ))
}

fn is_on_ledger(repository: &Repository, ledger: &Ledger<'_>) -> Result<bool, Failure> {
    Ok(repository.symbolic_target("HEAD")?.as_deref() == Some(ledger.refname()))
}

/// The refusal if the ledger, whose rules contracts follow, is gone.
fn gone(ledger: &Ledger<'_>, seen: ObjectId) -> Failure {
    let branch = ledger.branch();
    let text = format!("branch {branch}, which has the rules for checking contracts, is gone");
    refusal(text, Vec::new()).hint(format!(
        "this clone saw it at commit {}: `git branch {branch} {}` brings it back",
        seen.short(),
        seen
    ))
}

fn patterns(repository: &Repository) -> Result<PathPatterns, Failure> {
    let mut patterns = repository.config_all("handoff.contracts")?;
    if patterns.is_empty() {
        patterns = CONTRACTS.map(str::to_owned).to_vec();
    }
    PathPatterns::new(&patterns)
        .map_err(|error| {
            let text = format!("handoff.contracts: {}", chain(&error));
            refusal(text, Vec::new()).hint("`git config --show-origin --get-all handoff.contracts` shows where it is set; fix it there, and commit again")
        })
}

fn unreadable(error: &dyn std::error::Error) -> Failure {
    refusal(chain(error), Vec::new())
}

fn has_extension(path: &str, extension: &str) -> bool {
    let found = path.rsplit_once('.');
    found.is_some_and(|(_, own)| own.eq_ignore_ascii_case(extension))
}

fn is_contract(path: &str) -> bool {
    ["xml", "json", "md"].iter().any(|e| has_extension(path, e))
}

/// Whether a Markdown file is a message that hands work on.
fn is_message(bytes: &[u8]) -> bool {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    text.trim_ascii_start().starts_with(b"HANDOFF:")
}

/// A finding in a contract, with the contract's file as its path and the field in its message.
fn in_file(path: &str, mut finding: Finding) -> Finding {
    let field = std::mem::replace(&mut finding.path, path.to_owned());
    if !field.is_empty() {
        finding.message = format!("{field}: {}", finding.message);
    }
    finding
}
