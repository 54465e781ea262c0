//! Checks before a ref moves: here, or where a push arrives.

use std::ffi::OsString;

use handoff::base::ObjectId;
use handoff::base::finding::{Finding, FindingCode};
use handoff::git::Repository;
use handoff::ledger::{BranchMove, Ledger};

use super::{argument, is_ledgers, judge, lines, not_legal, object};
use crate::context::Context;
use crate::environment;
use crate::failure::{Failure, Hint, hint};
use crate::output::Output;

/// Refuses a push that does not add legal steps to the ledger. Sees the objects in git's
/// quarantine.
pub(crate) fn pre_receive(context: &Context) -> Result<(), Failure> {
    const WORDS: usize = 3;
    let pushed = lines(WORDS)?;
    let repository = context.repository()?;
    let ledger = context.ledger(&repository)?;
    for line in &pushed {
        if let [old, new, name] = &line[..] {
            received(&repository, &ledger, name, old, new)?;
        }
    }
    Ok(())
}

/// Refuses one ref of such a push; the arguments name it.
pub(crate) fn update(context: &Context, arguments: &[OsString]) -> Result<(), Failure> {
    let name = argument(arguments, 0, "a ref")?;
    let old = argument(arguments, 1, "the old value of the ref")?;
    let new = argument(arguments, 2, "the new value of the ref")?;
    let repository = context.repository()?;
    let ledger = context.ledger(&repository)?;
    received(&repository, &ledger, name, old, new)
}

fn received(
    repository: &Repository,
    ledger: &Ledger<'_>,
    name: &str,
    old: &str,
    new: &str,
) -> Result<(), Failure> {
    if !is_ledgers(repository, ledger, name)? {
        return Ok(());
    }
    let moved = BranchMove {
        from: object(old)?,
        to: object(new)?,
    };
    judge(repository, ledger, moved)
}

/// Refuses a local move of the ledger's branch, unless it leads to a legal descendant.
pub(crate) fn reference_transaction(
    context: &Context,
    output: &mut Output,
    arguments: &[OsString],
) -> Result<(), Failure> {
    const WORDS: usize = 3;
    // A move can be refused only in this phase.
    if argument(arguments, 0, "the phase")? != "prepared" {
        return Ok(());
    }
    let moves = lines(WORDS)?;
    // Most transactions concern HEAD or remote-tracking refs, not the ledger.
    let is_branch = |line: &&Vec<String>| line[2].starts_with("refs/heads/");
    if !moves.iter().any(|line| is_branch(&line)) {
        return Ok(());
    }
    let repository = context.repository()?;
    let ledger = context.ledger(&repository)?;
    for line in moves.iter().filter(is_branch) {
        let name = &line[2];
        let target = repository.symbolic_target(ledger.refname())?;
        let done = match name == ledger.refname() || target.as_ref() == Some(name) {
            true => moved(&repository, &ledger, output, line, &moves),
            false if object(&line[1]).is_ok_and(|new| new.is_none()) => {
                gives_way(&repository, &ledger, name)
            }
            false => Ok(()),
        };
        done.map_err(|failure| left(&repository, name, &line[0], failure))?;
    }
    Ok(())
}

/// Refuses a move of the ledger's branch in one of the lines that git writes to the hook.
fn moved(
    repository: &Repository,
    ledger: &Ledger<'_>,
    output: &mut Output,
    line: &[String],
    moves: &[Vec<String>],
) -> Result<(), Failure> {
    let (branch, new) = (ledger.branch(), &line[1]);
    if let Some(target) = new.strip_prefix("ref:") {
        let text = format!("branch {branch} would become another name for {target}");
        let finding = Finding::error(FindingCode::BranchSymbolic, "", text);
        return Err(not_legal(ledger, vec![finding]));
    }
    // The caller may omit the old value, so use the branch's actual commit.
    let from = repository.resolve(ledger.refname())?;
    let moved = BranchMove {
        // If the branch is gone, it must continue from where this clone last saw it.
        from: from.or_else(|| ledger.seen()),
        to: object(new)?,
    };
    if let (None, Some(to)) = (moved.from, moved.to)
        && is_taken_over(repository, branch, to, moves)?
    {
        last_step(repository, ledger, to)?;
        output.say(&format!(
            "branch {branch} is taken over as the remote has it; `git handoff verify` audits its whole history"
        ));
        return Ok(());
    }
    judge(repository, ledger, moved).or_else(|failure| {
        let stays = match moved.to {
            None => repository.is_packed_for_good(ledger.refname())?,
            Some(to) => repository.is_left_in_its_file(ledger.refname(), to),
        };
        if stays { Ok(()) } else { Err(failure) }
    })
}

/// Refuses to delete another branch if that is the first part of renaming it to the ledger's: git
/// deletes the ledger's branch in the second part, and does not undo the first.
fn gives_way(repository: &Repository, ledger: &Ledger<'_>, name: &str) -> Result<(), Failure> {
    let branch = ledger.branch();
    if !repository.has_no_log(name) || environment::renamed_to().as_deref() != Some(branch) {
        return Ok(());
    }
    if repository.resolve(ledger.refname())?.is_some() {
        let name = name.trim_start_matches("refs/heads/");
        let text = format!("branch {branch} would be deleted to make way for branch {name}");
        let finding = Finding::error(FindingCode::BranchDeleted, "", text);
        return Err(not_legal(ledger, vec![finding]));
    }
    // git creates the new name without calling this hook.
    let moved = BranchMove {
        from: ledger.seen(),
        to: repository.resolve(name)?,
    };
    judge(repository, ledger, moved)
}

/// Adds the state after a refusal to the hint, and restores what git does not.
fn left(repository: &Repository, name: &str, expected: &str, mut failure: Failure) -> Failure {
    let mut more = Hint::default();
    let renamed = repository.half_renamed();
    let put_back = repository.put_log_back(name);
    let is_deletion = |f: &Finding| f.code == FindingCode::BranchDeleted;
    // git gives no old value for the renamed branch, and has deleted the other one already.
    let made_way = matches!(object(expected), Ok(None)) && failure.findings.iter().any(is_deletion);
    if let (Some(commit), false, true) = (renamed, put_back, made_way) {
        more = hint!(
            ". The branch that git began to rename has lost its name: `git branch NAME {}` brings it back; its log is logs/refs/.tmp-renamed-log in the git directory, and belongs in logs/refs/heads/NAME",
            commit
        );
    }
    if repository.workdir().is_some() {
        more = more.and(". git may have changed files before it ran this hook: see `git status`");
    }
    let hint = failure.hint.take();
    Failure {
        hint: hint.map(|hint| hint.and(more)),
        ..failure
    }
}

/// Whether a new branch is at the commit of a remote-tracking branch of its name, or of one
/// that moves there in the same transaction.
fn is_taken_over(
    repository: &Repository,
    branch: &str,
    to: ObjectId,
    moves: &[Vec<String>],
) -> Result<bool, Failure> {
    let moved_too = moves.iter().any(|line| {
        let tracking = line[2].strip_prefix("refs/remotes/");
        let same = tracking.is_some_and(|name| name.ends_with(&format!("/{branch}")));
        same && line[1] == to.to_string()
    });
    Ok(moved_too || repository.is_remotes(branch, to)?)
}

/// Judges only the last step of a history.
fn last_step(repository: &Repository, ledger: &Ledger<'_>, to: ObjectId) -> Result<(), Failure> {
    let from = repository.commit(to)?.parents.first().copied();
    // The first commit of a shallow clone has no parent here to compare with.
    let from = from.filter(|from| repository.has(*from));
    judge(repository, ledger, BranchMove { from, to: Some(to) })
}
