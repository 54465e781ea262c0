//! Checks before a push: the ledger's branch, and code branches that another agent holds.

use std::ffi::OsString;

use handoff::base::finding::FindingCode;
use handoff::base::text::quoted;
use handoff::git::Repository;
use handoff::ledger::{BranchMove, Ledger};

use super::{judge, lines, object, refusal};
use crate::context::Context;
use crate::environment;
use crate::failure::{Failure, hint};

/// Refuses a push that does not add legal steps to the ledger, and, if `handoff.pushGuard` is set,
/// one of a code branch whose issue the agent does not hold.
pub(crate) fn pre_push(context: &Context, arguments: &[OsString]) -> Result<(), Failure> {
    const WORDS: usize = 4;
    let pushed = lines(WORDS)?;
    if pushed.is_empty() {
        return Ok(());
    }
    let repository = context.repository()?;
    let ledger = context.ledger(&repository)?;
    let remote = arguments.first().and_then(|name| name.to_str());
    let mut branches = Vec::new();
    for line in &pushed {
        let [_, local, name, there] = &line[..] else {
            continue;
        };
        if name == ledger.refname() {
            let moved = BranchMove {
                from: object(there)?,
                to: object(local)?,
            };
            // A branch of that name that is no ledger may begin there, and not replace one.
            if let (None, Some(tip)) = (moved.from, moved.to)
                && ledger.never_was_a_ledger(tip).unwrap_or(false)
            {
                continue;
            }
            judge(&repository, &ledger, moved)
                .map_err(|failure| fetched_first(failure, remote, &ledger))?;
        } else if let Some(branch) = name.strip_prefix("refs/heads/") {
            branches.push(branch);
        }
    }
    if branches.is_empty() || !is_guarded(&repository)? {
        return Ok(());
    }
    guard(context, &repository, &ledger, &branches)
}

/// Whether code branches may be pushed only by the agent that holds their issue.
fn is_guarded(repository: &Repository) -> Result<bool, Failure> {
    let guarded = repository.config_bool("handoff.pushguard").map_err(|_| {
        let value = repository.config("handoff.pushguard").unwrap_or_default();
        let text = format!("handoff.pushGuard is {}, which is neither true nor false", quoted(&value));
        refusal(text, Vec::new()).hint("nothing was pushed. Use `git config handoff.pushGuard true` to check code branches, or `git config handoff.pushGuard false` to leave them unchecked")
    })?;
    Ok(guarded.unwrap_or_default())
}

/// If the branch is behind or has diverged, hints to fetch first.
fn fetched_first(failure: Failure, remote: Option<&str>, ledger: &Ledger<'_>) -> Failure {
    let behind = [FindingCode::BranchUnknown, FindingCode::HistoryRewritten];
    if !failure.findings.iter().any(|f| behind.contains(&f.code)) {
        return failure;
    }
    let branch = ledger.branch();
    failure.hint(hint!("nothing was pushed. `git config handoff.remote {}` and `git handoff sync` replay your new steps on its {} and push them: nothing is lost", remote.unwrap_or("origin"), branch))
}

/// Refuses code branches whose issues the agent does not hold.
fn guard(
    context: &Context,
    repository: &Repository,
    ledger: &Ledger<'_>,
    branches: &[&str],
) -> Result<(), Failure> {
    let agent = context.agent(repository)?;
    let (tip, now) = (ledger.tip()?, environment::now()?);
    let mut findings = Vec::new();
    for branch in branches {
        findings.extend(tip.pushed_without_holding(branch, agent.as_ref(), now)?);
    }
    if findings.is_empty() {
        return Ok(());
    }
    let text = "according to the ledger, you do not hold what you push";
    Err(refusal(text, findings).hint(
        "nothing was pushed, and your commits are kept; push again once you hold the issue. `handoff.pushGuard` in git's configuration enables this check",
    ))
}
