use std::path::{Path, PathBuf};

use clap::Args;
use handoff_base::text::plain;
use handoff_git::{Obstacle, RestoreError};
use handoff_ledger::{
    Kept, PastFailure, Place, RestoreFailure, Restored, failures, restore, restore_attachments,
};
use handoff_model::{Refusal, SnapshotManifest, View};
use serde_json::{Value, json};

use crate::context::{Context, handoff_id};
use crate::environment::session;
use crate::failure::{ErrorCode, Failure, Hint, chain, explained};
use crate::output::Output;
use crate::render::kept::contents_text;

/// Restore what was kept of a failed attempt
///
/// With --worktree, the unfinished work is restored to a new worktree, bit for bit:
/// every changed, added and untracked file, every deletion, and what was staged,
/// so that `git status` there prints what it printed then. With --new-branch alone,
/// it is restored as one commit on a new branch. Without either, what was kept is
/// listed. Nothing that exists is overwritten, and no hook runs.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff restore 123.2                                  (what was kept)
  git handoff restore 123.2 --worktree ../issue-123
  git handoff restore 123.2 --worktree ../issue-123 --new-branch fix/123
  git handoff restore 123.2 --attempt 1 --new-branch attempt-1
  git handoff restore 123.2 --attachments ../logs")]
pub(crate) struct Arguments {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// The attempt; by default the newest with something kept
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Create a worktree in this folder, which must be new or empty
    #[arg(long, value_name = "DIR")]
    worktree: Option<PathBuf>,
    /// Create this branch, which must not exist, at the commit that the work is based on;
    /// without --worktree, the work is added to it as one commit
    #[arg(long, value_name = "NAME")]
    new_branch: Option<String>,
    /// Write the attached files into this folder, which must be new or empty
    #[arg(long, value_name = "DIR")]
    attachments: Option<PathBuf>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let id = handoff_id(&tip, &self.id, context.agent(&repository)?.as_ref())?;
        let record = tip.issue(id.issue())?.record(id.number())?;
        let record = record.ok_or_else(|| Refusal::no_handoff(&id))?;
        let past = failures(&record);
        let failure = self.failure(&id.to_string(), &past)?;
        let Some(context) = &failure.context else {
            let text = format!("nothing was kept of attempt {} of {id}", failure.attempt);
            return Err(Failure::new(ErrorCode::NoContext, text)
                .hint(format!("see what is known of it: `git handoff show {id}`")));
        };
        let kept = Kept::open(&repository, &id, context)?;
        let contents = kept.contents()?;
        let mut data = json!({
            "id": id,
            "attempt": failure.attempt,
            "error": kept.file.error,
            "kept": contents,
        });
        let mut text = format!("attempt {} of {id} failed\n", failure.attempt);
        let wants_work = self.worktree.is_some() || self.new_branch.is_some();
        if !wants_work && self.attachments.is_none() {
            text += &contents_text(&contents);
            return output.answer(&data, &text);
        }
        if wants_work {
            let manifest = contents.snapshot.as_ref().ok_or_else(|| {
                let text = format!(
                    "attempt {} of {id} kept no unfinished work",
                    failure.attempt
                );
                Failure::new(ErrorCode::NoSnapshot, text)
                    .hint(format!("see what was kept: `git handoff restore {id}`"))
            })?;
            let place = Place {
                worktree: self.worktree.as_deref(),
                branch: self.new_branch.as_deref(),
                committer: session(&repository)?.committer(),
            };
            let restored = restore(&repository, &kept, manifest, &place)?;
            data["restored"] = self.restored_json(&restored);
            text += &self.restored_text(&restored, manifest);
        }
        if let Some(dir) = &self.attachments {
            let count = restore_attachments(&kept, dir)?;
            data["attachments_written"] = json!(count);
            text += &format!("  {count} attached files in {}\n", shown(dir));
        }
        output.answer(&data, &text)
    }

    /// The failure of the chosen attempt.
    fn failure<'a>(&self, id: &str, past: &'a [PastFailure]) -> Result<&'a PastFailure, Failure> {
        let newest = || past.iter().rev();
        let found = match self.attempt {
            Some(attempt) => newest().find(|f| f.attempt == attempt),
            None => newest()
                .find(|f| f.context.as_ref().is_some_and(|c| c.files > 0))
                .or(past.last()),
        };
        found.ok_or_else(|| {
            let text = match self.attempt {
                Some(attempt) => format!("attempt {attempt} of {id} did not fail"),
                None => format!("no attempt of {id} failed"),
            };
            let known: Vec<String> = past.iter().map(|f| f.attempt.to_string()).collect();
            let failure = Failure::new(ErrorCode::NoFailure, text);
            if known.is_empty() {
                failure.hint(format!("see `git handoff show {id}`"))
            } else {
                failure.advice(format!("attempts that failed: {}", known.join(", ")))
            }
        })
    }

    fn restored_json(&self, restored: &Restored) -> Value {
        let work = &restored.unfinished;
        json!({
            "worktree": self.worktree.as_deref().map(shown),
            "branch": self.new_branch,
            "commit": restored.commit.to_string(),
            "made_base": restored.made_base,
            "files": work.files.len(),
            "deleted": work.deleted.len(),
            "staged": work.staged.len(),
            "removed": work.removed.len(),
            "operation": restored.operation.as_ref().map(|(name, again)| {
                json!({ "name": name, "continued": again })
            }),
        })
    }

    fn restored_text(&self, restored: &Restored, manifest: &SnapshotManifest) -> String {
        let work = &restored.unfinished;
        let place = match (&self.worktree, &self.new_branch) {
            (Some(dir), Some(branch)) => format!("in {} on branch {branch}", shown(dir)),
            (Some(dir), None) => format!("in {}", shown(dir)),
            (None, branch) => format!("on branch {}", branch.as_deref().unwrap_or_default()),
        };
        let mut text = format!(
            "  restored {place}, at {}: {} files, {} deleted, {} staged\n",
            restored.commit.short(),
            work.files.len(),
            work.deleted.len(),
            work.staged.len() + work.removed.len()
        );
        if restored.made_base {
            let missing = manifest.base.commit.as_deref().unwrap_or("none yet");
            text += &format!(
                "  the history of its commit ({missing}) is not in this clone: a commit with the same files and no parents replaces it\n"
            );
        }
        if self.worktree.is_none() && work.staged.len() + work.removed.len() > 0 {
            text +=
                "  a branch does not record what was staged; use --worktree to restore that too\n";
        }
        match &restored.operation {
            Some((name, true)) => {
                text += &format!("  the {name} that was in progress continues there\n")
            }
            Some((name, false)) => {
                text += &format!(
                    "  a {name} was in progress and is not restored; its files and conflicts are\n"
                );
            }
            None => {}
        }
        if work.sparse > 0 {
            text += &format!(
                "  {} files that a sparse checkout had left out are restored too\n",
                work.sparse
            );
        }
        text
    }
}

fn shown(path: &Path) -> String {
    plain(&path.display().to_string())
}

impl From<RestoreFailure> for Failure {
    fn from(error: RestoreFailure) -> Self {
        let message = chain(&error);
        let at = |code| Self::new(code, message.clone());
        match error {
            RestoreFailure::Exists { .. } => at(ErrorCode::Exists)
                .advice("nothing was changed; name a folder that is new or empty"),
            RestoreFailure::Registered { .. } => at(ErrorCode::Exists).hint(
                "nothing was changed; name another folder, or run `git worktree prune` to remove the records of worktrees that are gone",
            ),
            RestoreFailure::BranchExists { .. } => at(ErrorCode::Exists)
                .advice("nothing was changed; give the branch another name"),
            RestoreFailure::BranchName { .. } => at(ErrorCode::Usage),
            RestoreFailure::NoBase { commit } => at(ErrorCode::NoBase).hint(format!(
                "nothing was changed; fetch it, for example with `git fetch origin {commit}`, and run the command again"
            )),
            RestoreFailure::Write(RestoreError::Outside(_)) => {
                at(ErrorCode::LedgerDamaged).hint("`git handoff verify` shows where the damage began")
            }
            RestoreFailure::Folder { source, .. } => undone(&message, Obstacle::of(&source)),
            RestoreFailure::Write(error) => undone(&message, error.obstacle()),
            RestoreFailure::Ledger(error) => error.into(),
        }
    }
}

/// The failure where some of the work, or all of it, could not be written.
fn undone(message: &str, obstacle: Option<Obstacle>) -> Failure {
    let unknown = || ("it was not restored", Hint::advice("see what it says"));
    let (what, fix) = obstacle.map_or_else(unknown, explained);
    let failure = Failure::new(ErrorCode::Restore, format!("{what}: {message}"));
    failure.hint(fix.map(|fix| {
        format!("{fix}, and restore it to another place: what was written so far stays")
    }))
}
