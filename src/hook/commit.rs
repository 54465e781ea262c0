//! Checks before a commit: staged contracts, and steps that are made with plain git.

use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;

use handoff::base::ObjectId;
use handoff::base::finding::Finding;
use handoff::contract::{Format, Input, MAX_BYTES, Outline};
use handoff::git::{Cleanup, PathMatch, PathPatterns, Repository, StagedFile, cleaned, comment_of};
use handoff::ledger::{Ledger, NextCommit, Offer};
use handoff::model::SendOptions;

use super::{argument, refusal};
use crate::context::Context;
use crate::contracts::against::Against;
use crate::environment;
use crate::failure::{Failure, chain, hint};

/// The folders in which every file is a contract, if `handoff.contracts` names none.
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
    let staged = repository.newly_staged(index.as_deref(), may_be_contract);
    let mut staged = staged.map_err(|error| unreadable(&error))?;
    staged.retain(|file| patterns.matched(&file.path) != PathMatch::Excluded);
    if staged.is_empty() {
        return Ok(());
    }
    let against = Against::choose(context, Some(&repository), None)?;
    let mut contracts = Vec::new();
    for file in staged {
        let is_listed = patterns.matched(&file.path) == PathMatch::Taken;
        if let Some(bytes) = contract(&repository, &against, &file, is_listed)? {
            contracts.push((file.path, bytes));
        }
    }
    if contracts.is_empty() {
        return Ok(());
    }
    if let (None, Some(seen)) = (ledger.tip_id()?, ledger.seen()) {
        return Err(gone(&ledger, seen));
    }
    let agent = context.agent(&repository)?;
    let (mut findings, mut incomplete) = (Vec::new(), 0);
    for (path, bytes) in &contracts {
        let review = against.review(&Offer {
            input: &Input::read(bytes),
            agent: agent.as_ref(),
            issue: None,
            protocol: None,
            options: &SendOptions::default(),
            reports: None,
        })?;
        incomplete += usize::from(!review.is_complete());
        if !review.is_complete() {
            findings.extend(review.findings.into_iter().map(|f| in_file(path, f)));
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
        "fix what the findings name, `git add` it, and commit again; to commit the rest first, unstage it: `git restore --staged FILE` keeps the file. For a file that is not to be sent, such as a sample: `git config --add handoff.contracts '!FILE'`",
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
    let parent = repository.resolve(ledger.refname())?;
    if let Some(parent) = parent
        && ledger.never_was_a_ledger(parent).unwrap_or(false)
    {
        return Ok(());
    }
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
        parent,
        tree,
        author: &author,
        committer: &committer,
        message,
    };
    let mut findings = next.findings(repository, environment::system_time())?;
    findings.retain(Finding::is_error);
    if findings.is_empty() {
        return Ok(());
    }
    let text = format!(
        "this commit on branch {} is not a step that the ledger accepts",
        ledger.branch()
    );
    Err(refusal(text, findings).hint(
        "nothing was committed, and your files are unchanged. `git checkout --detach` keeps them and frees the branch, so that `git handoff` (send, claim, complete …) can make the step; `git handoff help hooks.md` explains how to make one by hand",
    ))
}

fn is_on_ledger(repository: &Repository, ledger: &Ledger<'_>) -> Result<bool, Failure> {
    Ok(repository.symbolic_target("HEAD")?.as_deref() == Some(ledger.refname()))
}

/// The refusal if the ledger, whose protocol applies to contracts, is gone.
fn gone(ledger: &Ledger<'_>, seen: ObjectId) -> Failure {
    let branch = ledger.branch();
    let text = format!("branch {branch}, which has the rules for checking contracts, is gone");
    refusal(text, Vec::new()).hint(hint!(
        "this clone saw it at commit {}: `git branch {} {}` brings it back",
        seen.short(),
        branch,
        seen
    ))
}

fn patterns(repository: &Repository) -> Result<PathPatterns, Failure> {
    let mut patterns = repository.config_all("handoff.contracts")?;
    if patterns.iter().all(|pattern| pattern.starts_with('!')) {
        patterns.extend(CONTRACTS.map(str::to_owned));
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

/// Whether a path has the extension of a contract.
fn may_be_contract(path: &[u8]) -> bool {
    // This runs for every file of the index.
    let last = path.last().map(u8::to_ascii_lowercase);
    if !matches!(last, Some(b'l' | b'n' | b'd')) {
        return false;
    }
    let ends = |extension: &&str| {
        let start = path.len().checked_sub(extension.len());
        start.is_some_and(|start| path[start..].eq_ignore_ascii_case(extension.as_bytes()))
    };
    [".xml", ".json", ".md"].iter().any(ends)
}

/// The content of a staged file if it is a contract: in folders of contracts any file but notes,
/// elsewhere a file of a contract type.
fn contract(
    repository: &Repository,
    against: &Against<'_>,
    file: &StagedFile,
    is_listed: bool,
) -> Result<Option<Rc<[u8]>>, Failure> {
    if !is_listed && repository.size(file.id)? > MAX_BYTES {
        return Ok(None);
    }
    let bytes = repository.blob(file.id)?;
    let outline = Outline::of(&bytes);
    let is_message = |outline: &Outline<'_>| outline.format() == Format::Markdown;
    let is_markdown = file.path.to_ascii_lowercase().ends_with(".md");
    let is_contract = match &outline {
        outline if is_markdown && !outline.as_ref().is_some_and(is_message) => false,
        _ if is_listed => true,
        Some(outline) => against.is_contract(outline)? && !is_skeleton(repository, &file.path),
        None => false,
    };
    Ok(is_contract.then_some(bytes))
}

/// Whether a file is in a protocol's folder: contracts there are templates.
fn is_skeleton(repository: &Repository, path: &str) -> bool {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let above = folder.parent().filter(|_| folder.ends_with("templates"));
    let root = repository.workdir();
    let mut folders = root
        .into_iter()
        .flat_map(|root| [Some(folder), above].map(|f| (root, f)));
    folders.any(|(root, folder)| {
        folder.is_some_and(|folder| root.join(folder).join("protocol.json").is_file())
    })
}

/// A finding in a contract, with the contract's file as its path and the field in its message.
fn in_file(path: &str, mut finding: Finding) -> Finding {
    let field = std::mem::replace(&mut finding.path, path.to_owned());
    if !field.is_empty() {
        finding.message = format!("{field}: {}", finding.message);
    }
    finding
}
