//! The workflows of a repository, for `init`, `uninstall` and `setup`.

use handoff::base::github_host::{host_of, is_cloud};
use handoff::git::Repository;
use handoff_github::workflows;

use crate::context::worktree;
use crate::failure::Failure;
use crate::output::Output;

/// The host of the ledger's remote, if it has a host's name.
pub(super) fn remote_host(repository: &Repository) -> Option<String> {
    let name = repository.config("handoff.remote");
    host_of(&repository.remote_url(name.as_deref().unwrap_or("origin"))?)
}

/// Writes the workflows; returns each changed file, with what was done.
pub(crate) fn install(
    repository: &Repository,
    action: Option<&str>,
    branch: &str,
    with_agents: bool,
) -> Result<Vec<String>, Failure> {
    let root = worktree(repository)?;
    let is_server = remote_host(repository).is_some_and(|host| !is_cloud(&host));
    let written = workflows::install(&root, action, branch, with_agents, is_server)?;
    let changed = written.iter().filter(|file| file.changed);
    let line = |file: &workflows::WorkflowFile| {
        let created = file.replaced.is_empty().then_some("created");
        let lines = file.replaced.iter();
        let lines = lines.map(|(old, new)| format!("{old} → {new}"));
        let done = created.map_or_else(|| lines.collect::<Vec<_>>().join("; "), str::to_owned);
        format!("{}: {done}", file.path)
    };
    Ok(changed.map(line).collect())
}

/// Removes the workflows; returns each removed file, with what was done.
pub(crate) fn uninstall(repository: &Repository, branch: &str) -> Result<Vec<String>, Failure> {
    if repository.workdir().is_none() {
        return Ok(Vec::new());
    }
    let files = workflows::uninstall(&worktree(repository)?, branch)?;
    let changed = files.iter().filter(|file| file.changed);
    Ok(changed
        .map(|file| format!("{}: removed", file.path))
        .collect())
}

/// Prints what to replace in workflows that were written without an action.
pub(crate) fn say_action(
    repository: &Repository,
    branch: &str,
    output: &mut Output,
) -> Result<(), Failure> {
    let files = workflows::without_action(&worktree(repository)?, branch)?;
    if !files.is_empty() {
        output.say(&format!(
            "replace `{}` in {}: OWNER/git-handoff by git-handoff's repository on GitHub, the zeros by the full id of a commit in it",
            workflows::ACTION,
            files.join(", ")
        ));
    }
    Ok(())
}
