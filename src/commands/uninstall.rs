use std::fs;

use clap::Args;
use handoff::base::text::{continued, word};
use schemars::JsonSchema;
use serde::Serialize;

#[cfg(feature = "agents")]
use super::agents;
#[cfg(feature = "github")]
use super::github::workflows;
use super::hooks;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::view::Look;

/// Remove the hooks, workflows and harness files that were installed
///
/// Each file is left as it was before; what somebody changed since stays. The ledger itself, its
/// branch and this clone's settings stay too: nothing recorded is lost.
#[derive(Args)]
#[command(after_help = "Example:\n  git handoff uninstall")]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let removed = [
            hooks::uninstall(&repository)?,
            #[cfg(feature = "github")]
            workflows::uninstall(&repository, ledger.branch())?,
            #[cfg(feature = "agents")]
            agents::uninstall(&repository)?,
        ];
        let removed = removed.concat();
        let branch = match ledger.tip_id()? {
            Some(tip) if !ledger.never_was_a_ledger(tip)? => Some(ledger.branch().to_owned()),
            _ => None,
        };
        let folder = repository.common_dir().join("handoff/work/worktrees");
        let has_worktrees = fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
        let delete = branch.as_deref().map(deletion);
        let is_shared = repository.on_origin(ledger.branch()).is_some();
        output.answer(&UninstallView {
            removed,
            branch,
            delete,
            has_worktrees,
            is_shared,
        })
    }
}

/// The result of the removal.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Uninstall")]
pub(crate) struct UninstallView {
    /// each hook and file that was changed, with what was done
    removed: Vec<String>,
    /// the ledger's branch, which stays; null if there is none
    branch: Option<String>,
    /// the shell command that deletes the ledger from this clone, for good; null if there is none
    delete: Option<String>,
    #[serde(skip)]
    has_worktrees: bool,
    #[serde(skip)]
    is_shared: bool,
}

/// The command that deletes the ledger's refs, this clone's settings and its notes.
fn deletion(branch: &str) -> String {
    let [own, remote] = [
        format!("refs/heads/{branch}"),
        format!("refs/remotes/*/{branch}"),
    ];
    format!(
        "git for-each-ref --format='delete %(refname)' {} refs/handoff/ {} | git update-ref --stdin && \
         {{ git config --remove-section handoff 2>/dev/null; rm -rf \"$(git rev-parse --git-common-dir)/handoff\"; }}",
        word(&own),
        word(&remote)
    )
}

impl Answer for UninstallView {
    fn text(&self, _: &Look) -> String {
        let mut text: String = self
            .removed
            .iter()
            .map(|line| continued(line) + "\n")
            .collect();
        if self.removed.is_empty() {
            text += "nothing was installed here\n";
        }
        if let (Some(branch), Some(delete)) = (&self.branch, &self.delete) {
            text += &format!(
                "the ledger stays: branch {branch}, refs/handoff/, this clone's notes and its settings handoff.*\n"
            );
            if self.has_worktrees {
                text += "worktrees of `git handoff work` stay; to remove them first: git handoff work --prune\n";
            }
            if self.is_shared {
                text += "origin keeps its ledger, which other clones share\n";
            }
            text += &format!("to delete the ledger here for good: {delete}\n");
        }
        text
    }
}
