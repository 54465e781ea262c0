//! The worktrees that were made here: listed, and removed.

use std::path::PathBuf;

use handoff::base::ids::{HandoffId, IssueKey};
use handoff::git::Repository;
use handoff::model::{IssueStatus, View};
use schemars::JsonSchema;
use serde::Serialize;

use super::program::Program;
use super::slot;
use super::worktree::Worktrees;
use handoff_cli::args::page::Cut;
use handoff_cli::context::Context;
use handoff_cli::failure::{ErrorCode, Failure};
use handoff_cli::output::{Answer, Output};
use handoff_cli::view::Look;

/// What is done with them.
pub enum Wanted {
    /// What there is.
    List,
    /// Those that have nothing of their own are removed.
    Prune,
    /// Those of this issue are removed, with what they have.
    Discard(IssueKey),
}

/// The worktrees.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Worktrees")]
pub struct Listing {
    /// each worktree
    worktrees: Vec<WorktreeView>,
    #[serde(skip)]
    cut: Cut,
}

/// A worktree.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Worktree")]
struct WorktreeView {
    /// its folder
    path: PathBuf,
    /// the issue that it is for
    issue: IssueKey,
    /// the handoff that was worked on there last
    last: HandoffId,
    /// whether somebody works there now
    used: bool,
    /// whether its issue is still open
    open: bool,
    /// what nothing else has
    only_here: Vec<String>,
    /// whether it was removed
    removed: bool,
}

impl Listing {
    /// Lists, and removes what is wanted.
    ///
    /// # Errors
    /// A [`Failure`] if the ledger can't be read, or git removes none.
    pub fn of(
        context: &Context,
        repository: &Repository,
        folder: PathBuf,
        wanted: Wanted,
        output: &Output,
    ) -> Result<Self, Failure> {
        let home = repository.workdir().unwrap_or(repository.path());
        let failed = |error: String| Failure::new(ErrorCode::Git, error);
        let program = Program::new(home, None).map_err(|error| failed(error.to_string()))?;
        let trees = Worktrees::new(&program, folder, &slot::folder(repository.common_dir()));
        let tip = context.tip(repository)?;
        let mut worktrees = Vec::new();
        for found in trees.all() {
            let lock = trees.free(&found);
            let checkout = found.remembered.checkout.as_ref();
            let only_here = checkout.map_or_else(Vec::new, |checkout| trees.loses(checkout));
            let issue = &found.remembered.issue;
            let state = tip.issue(issue)?.issue()?;
            let open = state.is_none_or(|state| state.status == IssueStatus::Open);
            let (goes, may_lose) = match &wanted {
                Wanted::List => (false, false),
                Wanted::Prune => (only_here.is_empty(), false),
                Wanted::Discard(key) => (key == issue, true),
            };
            let removed = goes && lock.is_some();
            if removed {
                trees.remove(&found, may_lose).map_err(failed)?;
            }
            worktrees.push(WorktreeView {
                path: found.remembered.path.clone(),
                issue: issue.clone(),
                last: found.remembered.last.clone(),
                used: lock.is_none(),
                open,
                only_here,
                removed,
            });
        }
        Ok(Self {
            worktrees,
            cut: Cut::of(output),
        })
    }
}

impl Answer for Listing {
    fn text(&self, _: &Look) -> String {
        if self.worktrees.is_empty() {
            return "no worktrees\n".to_owned();
        }
        let line = |one: &WorktreeView| {
            let state = match one {
                one if one.removed => "removed".to_owned(),
                one if one.used => "in use".to_owned(),
                one if !one.only_here.is_empty() => {
                    format!("only here: {}", one.only_here.join(", "))
                }
                _ => "nothing that is not elsewhere".to_owned(),
            };
            let ended = if one.open { "" } else { ", ended" };
            format!(
                "{}  issue {}{ended}: {state}\n",
                one.path.display(),
                one.issue
            )
        };
        let (shown, rest) = self.cut.rows(&self.worktrees);
        let mut text: String = shown.iter().map(line).collect();
        text += &rest;
        let mut left = self
            .worktrees
            .iter()
            .filter(|one| !one.removed && !one.only_here.is_empty());
        if let Some(one) = left.next() {
            text += &format!(
                "remove one with what only it has: git handoff work --prune --discard {}\n",
                one.issue
            );
        }
        text
    }
}
