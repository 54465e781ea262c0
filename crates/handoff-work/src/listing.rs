//! Lists and removes what runs left here: worktrees, branches of ended issues, and files.

use std::path::PathBuf;

use handoff::base::ids::{HandoffId, IssueKey};
use handoff::git::Repository;
use handoff::ledger::Snapshot;
use handoff::model::{IssueStatus, View};
use schemars::JsonSchema;
use serde::Serialize;

use super::branches::Naming;
use super::program::Program;
use super::slot::{self, Slot};
use super::worktree::Worktrees;
use handoff_cli::context::Context;
use handoff_cli::failure::{ErrorCode, Failure};
use handoff_cli::output::page::Cut;
use handoff_cli::output::{Answer, Output};
use handoff_cli::view::Look;

/// What to remove.
pub struct Wanted {
    /// Whether to remove everything without unique work.
    pub prunes: bool,
    /// The issue whose worktrees and branches are removed with their work.
    pub discarded: Option<IssueKey>,
    /// Whether to include branches on the remote.
    pub on_remote: bool,
}

impl Wanted {
    /// Whether to remove something of an issue, and whether that may lose unique work.
    fn of(&self, issue: &IssueKey, is_needed: bool) -> (bool, bool) {
        match &self.discarded {
            Some(discarded) => (discarded == issue, true),
            None => (self.prunes && !is_needed, false),
        }
    }
}

/// The worktrees.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Worktrees")]
pub struct Listing {
    /// each worktree
    worktrees: Vec<WorktreeView>,
    /// each branch of an ended issue, of the clone and, if asked, of the remote
    branches: Vec<BranchView>,
    #[serde(skip)]
    cut: Cut,
}

/// A branch.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LeftBranch")]
struct BranchView {
    /// its name
    name: String,
    /// the remote that has it; null for one of the clone
    remote: Option<String>,
    /// the issue that it is for
    issue: IssueKey,
    /// whether it has commits that nothing else has: no other branch, or not the remote's main one
    only_here: bool,
    /// whether it was removed
    removed: bool,
    /// why it could not be removed
    trouble: Option<String>,
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
    /// Lists worktrees and branches, and removes those that are to be removed.
    ///
    /// # Errors
    /// A [`Failure`] if the ledger can't be read, or git can't remove anything.
    pub fn of(
        context: &Context,
        repository: &Repository,
        folder: PathBuf,
        wanted: Wanted,
        output: &Output,
    ) -> Result<Self, Failure> {
        let failed = |error: String| Failure::new(ErrorCode::Git, error);
        let program = Program::new(repository, None).map_err(|error| failed(error.to_string()))?;
        let slots = slot::folder(repository.common_dir());
        let trees = Worktrees::new(&program, folder, &slots);
        let tip = context.tip(repository)?;
        let mut worktrees = Vec::new();
        for found in trees.all() {
            let lock = trees.free(&found);
            let checkout = found.remembered.checkout.as_ref();
            let only_here = checkout.map_or_else(Vec::new, |checkout| trees.loses(checkout));
            let issue = &found.remembered.issue;
            let (goes, may_lose) = wanted.of(issue, !only_here.is_empty());
            let removed = goes && lock.is_some();
            if removed {
                trees.remove(&found, may_lose).map_err(failed)?;
            }
            worktrees.push(WorktreeView {
                path: found.remembered.path.clone(),
                open: !has_ended(&tip, issue)?,
                issue: issue.clone(),
                last: found.remembered.last.clone(),
                used: lock.is_none(),
                only_here,
                removed,
            });
        }
        if wanted.prunes {
            for slot in Slot::left_behind(&slots) {
                let id = slot.note().and_then(|note| note.id);
                if id.map_or(Ok(false), |id| has_ended(&tip, id.issue()))? {
                    slot.clear();
                }
            }
        }
        let ledger = context.ledger(repository)?.branch().to_owned();
        let naming = Naming {
            ledger_branch: &ledger,
            patterns: &tip.branch_patterns()?,
        };
        // After the worktrees, since a checked-out branch stays.
        let mut places = vec![None];
        if wanted.on_remote {
            let remote = super::code_remote(context, repository).ok_or_else(|| {
                Failure::usage("there is no remote that branches are pushed to".to_owned())
                    .hint("leave out --remote, or add one: git remote add origin ADDRESS")
            })?;
            places.push(Some(remote));
        }
        let mut branches = Vec::new();
        for place in places {
            let found = trees.issue_branches(&naming, place.as_deref());
            for branch in found.map_err(failed)? {
                if !has_ended(&tip, &branch.issue)? {
                    continue;
                }
                let only_here = trees.has_own_commits(&branch);
                let goes = wanted.of(&branch.issue, only_here).0;
                let trouble = goes.then(|| trees.remove_branch(&branch).err()).flatten();
                branches.push(BranchView {
                    removed: goes && trouble.is_none(),
                    name: branch.name,
                    remote: branch.remote,
                    issue: branch.issue,
                    only_here,
                    trouble,
                });
            }
        }
        Ok(Self {
            worktrees,
            branches,
            cut: Cut::of(output),
        })
    }
}

/// Whether an issue ended, by the ledger.
fn has_ended(tip: &Snapshot<'_>, issue: &IssueKey) -> Result<bool, Failure> {
    let state = tip.issue(issue)?.issue()?;
    Ok(state.is_some_and(|state| state.status != IssueStatus::Open))
}

impl Answer for Listing {
    fn text(&self, _: &Look) -> String {
        if self.worktrees.is_empty() && self.branches.is_empty() {
            return "no worktrees, and no branches of ended issues\n".to_owned();
        }
        const NOTHING: &str = "nothing that is not elsewhere";
        let worktree = |one: &WorktreeView| {
            let state = match one {
                one if one.removed => "removed".to_owned(),
                one if one.used => "in use".to_owned(),
                one if !one.only_here.is_empty() => {
                    format!("only here: {}", one.only_here.join(", "))
                }
                _ => NOTHING.to_owned(),
            };
            let ended = if one.open { "" } else { ", ended" };
            let path = one.path.display();
            format!("{path}  issue {}{ended}: {state}\n", one.issue)
        };
        let branch = |one: &BranchView| {
            let state = match one {
                BranchView { removed: true, .. } => "removed",
                BranchView {
                    trouble: Some(why), ..
                } => why,
                BranchView {
                    only_here: true,
                    remote: None,
                    ..
                } => "only here: commits that no other branch has",
                BranchView {
                    only_here: true, ..
                } => "only here: commits that are not merged",
                _ => NOTHING,
            };
            let place = one
                .remote
                .as_ref()
                .map_or_else(String::new, |remote| format!("{remote}/"));
            format!(
                "branch {place}{}  issue {}, ended: {state}\n",
                one.name, one.issue
            )
        };
        let rows: Vec<String> = { self.worktrees.iter().map(worktree) }
            .chain(self.branches.iter().map(branch))
            .collect();
        let (shown, rest) = self.cut.rows(&rows);
        let mut text = shown.concat() + &rest;
        let trees = self.worktrees.iter();
        let mut kept = trees
            .filter(|one| !one.removed && !one.only_here.is_empty())
            .map(|one| (&one.issue, ""))
            .chain(
                { self.branches.iter() }
                    .filter(|one| !one.removed && one.only_here)
                    .map(|one| {
                        (
                            &one.issue,
                            if one.remote.is_some() {
                                " --remote"
                            } else {
                                ""
                            },
                        )
                    }),
            );
        if let Some((issue, remote)) = kept.next() {
            text += &format!(
                "remove one with what only it has: git handoff work --prune --discard {issue}{remote}\n"
            );
        }
        text
    }
}
