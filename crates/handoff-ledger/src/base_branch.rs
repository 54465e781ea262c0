//! The base branch of an issue's work, for evidence, templates, briefings and views. A gate uses
//! the base branch of the pull request instead.

use handoff_git::Repository;
use handoff_model::Issue;
use handoff_model::branches::{nameable, short_name};
use handoff_protocol::{BASE, Definition};

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
