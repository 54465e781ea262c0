use clap::Args;
use handoff::base::text::{continued, word};
use handoff_harness::workflows;
use schemars::JsonSchema;
use serde::Serialize;

use super::init::changed_files;
use super::{agents, hooks};
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
        let mut removed = hooks::uninstall(&repository)?;
        if repository.workdir().is_some() {
            let root = agents::worktree(&repository)?;
            removed.extend(changed_files(&workflows::uninstall(&root)?, "removed"));
            removed.extend(agents::changed_files(&agents::uninstall(&repository)?));
        }
        let ledger = context.ledger(&repository)?;
        let branch = ledger.tip_id()?.map(|_| ledger.branch().to_owned());
        output.answer(&UninstallView { removed, branch })
    }
}

/// What was removed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Uninstall")]
pub(crate) struct UninstallView {
    /// each hook and file that was changed, with what was done
    removed: Vec<String>,
    /// the ledger's branch, which stays; null if there is none
    branch: Option<String>,
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
        if let Some(branch) = &self.branch {
            text += &format!(
                "the ledger stays: branch {branch}, refs/handoff/, this clone's notes and its settings handoff.*; \
                 to delete it here for good: git branch -D {} && rm -r \"$(git rev-parse --git-common-dir)/handoff\"\n",
                word(branch)
            );
        }
        text
    }
}
