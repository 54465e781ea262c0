//! The base branch of an issue's work, for evidence, templates, briefings and views. A gate uses
//! the base branch of the pull request instead.

use handoff_base::text::word;
use handoff_base::{Code, ObjectId, short_id};
use handoff_git::Repository;
use handoff_model::Issue;
use handoff_model::branches::{nameable, short_name};
use handoff_protocol::{BASE, Definition};

use super::error::LedgerError;

/// The base branch of a code branch: the one noted for its issue, else the one in its contract,
/// else the repository's default. No branch is its own base.
pub fn base_branch(
    repository: &Repository,
    issue: Option<(&Issue, &Definition)>,
    branch: Option<&str>,
    stated: Option<&str>,
) -> Option<String> {
    let noted = issue.and_then(|(issue, definition)| {
        let noted = issue.fact(definition, BASE)?.value.as_str()?;
        Some(short_name(noted.trim())).filter(|noted| nameable(noted, None).is_ok())
    });
    let is_other = |base: &String| branch.map(short_name) != Some(base);
    let known = [noted, stated].into_iter().flatten().map(str::to_owned);
    let known = known.chain(std::iter::once_with(|| repository.base_branch()).flatten());
    known.into_iter().find(is_other)
}

/// The commits whose difference is the work of a handoff, or why this clone can't show it.
///
/// # Errors
/// [`LedgerError`] if history can't be read.
pub fn changes_of(
    repository: &Repository,
    issue: (&Issue, &Definition),
    code: &Code,
) -> Result<Result<(ObjectId, ObjectId), String>, LedgerError> {
    let tip = code.commit.parse().ok();
    let Some(tip) = tip.filter(|tip| repository.has(*tip)) else {
        let (short, branch) = (short_id(&code.commit), word(&code.branch));
        return Ok(Err(format!(
            "commit {short} is not in this clone: `git fetch origin {branch}`"
        )));
    };
    let base = base_branch(repository, Some(issue), Some(&code.branch), None);
    let fork = match base {
        Some(base) => repository.fork_of(&base, tip)?,
        None => None,
    };
    Ok(fork
        .map(|fork| (fork, tip))
        .ok_or_else(|| "no base branch is known to compare with".to_owned()))
}
