use std::path::{Path, PathBuf};

use clap::Args;
use handoff::base::ObjectId;
use handoff::base::text::{continued, counted, counted_as, word};
use handoff::git::Repository;
use handoff::ledger::{
    Contents, Kept, PastFailure, Place, Restored, past_work, restore, restore_attachments,
};
use handoff::model::{self as model, Handoff, Record, Refusal, View};
use handoff_macros::skip_serializing_none;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::{Context, handoff_id};
use crate::contracts::compose::set_aside;
use crate::environment::{now, session};
use crate::failure::{ErrorCode, Failure, hint};
use crate::output::{Answer, Carried, Output};
use crate::render::kept::contents_text;
use crate::view::Look;

/// Restore what was kept of an attempt or a claim
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
    /// The attempt; by default the newest with work kept
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Or the claim that was given back
    #[arg(long, value_name = "N", conflicts_with = "attempt")]
    claim: Option<u32>,
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
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        for path in self.worktree.iter().chain(&self.attachments) {
            context.ensure_within(&repository, path)?;
        }
        let tip = context.tip(&repository)?;
        let id = handoff_id(&tip, &self.id, context.agent(&repository)?.as_ref())?;
        let record = tip.issue(id.issue())?.record(id.number())?;
        let record = record.ok_or_else(|| Refusal::no_handoff(&id))?;
        let handoff = Handoff::new(&record, now()?);
        let past = past_work(&record);
        let failure = self.failure(&id.to_string(), &past)?;
        let Some(saved) = &failure.context else {
            let text = format!("nothing was kept of {} of {id}", failure.name());
            return Err(Failure::new(ErrorCode::NoContext, text)
                .hint(hint!("see what is known of it: `git handoff show {}`", id)));
        };
        let kept = Kept::open(&repository, &id, saved)?;
        let contents = kept.contents()?;
        let (mut restored, mut next) = (None, Vec::new());
        if self.worktree.is_some() || self.new_branch.is_some() {
            let manifest = contents.snapshot.as_ref().ok_or_else(|| {
                let text = format!("{} of {id} kept no unfinished work", failure.name());
                Failure::new(ErrorCode::NoSnapshot, text)
                    .hint(hint!("see what was kept: `git handoff restore {}`", id))
            })?;
            let place = Place {
                worktree: self.worktree.as_deref(),
                branch: self.new_branch.as_deref(),
                committer: session(&repository)?.committer(),
            };
            let work = restore(&repository, &kept, manifest, &place)?;
            next = self.next(context, (&repository, &record), &contents, &work)?;
            restored = Some(self.restored(work));
        }
        let folder = self.attachments.as_deref();
        let written = folder.map(|folder| restore_attachments(&kept, folder));
        output.answer(&RestoreView {
            handoff,
            attempt: failure.attempt,
            claim: failure.claim,
            error: kept.file.error.as_ref(),
            reason: kept.file.reason.as_deref(),
            ended: format!("{} of {id} {}", failure.name(), failure.end()),
            kept: &contents,
            restored,
            attachments_written: written.transpose()?,
            attachments_folder: folder.map(shown),
        })?;
        for command in next {
            output.say(&format!("next: {}", continued(&command)));
        }
        Ok(())
    }

    /// The commands that go on with the work in the new worktree: on its branch, and as the worker
    /// that holds the handoff.
    fn next(
        &self,
        context: &Context,
        (repository, record): (&Repository, &Record),
        contents: &Contents,
        work: &Restored,
    ) -> Result<Vec<String>, Failure> {
        let (mut next, mut back) = (Vec::new(), None);
        let Some(dir) = &self.worktree else {
            return Ok(next);
        };
        let dir = word(&dir.to_string_lossy()).into_owned();
        let known = record.code.as_ref().map(|code| &code.branch);
        let branch = contents.code.branch.as_ref().or(known);
        let is_free = self.new_branch.is_none() && !matches!(work.operation, Some((_, true)));
        if let Some(branch) = branch.filter(|_| is_free) {
            let refname = format!("refs/heads/{branch}");
            let tip = repository.resolve(&refname)?;
            let goes_on = tip.map(|tip| repository.is_in_history(tip, work.commit));
            let taken_at = repository.checked_out_at(&refname);
            if taken_at.is_some() || goes_on.transpose()? == Some(false) {
                next.push(format!("git -C {dir} switch -c NEW-BRANCH"));
                back = Some(match taken_at {
                    Some(tree) => {
                        let tree = tree.to_string_lossy().into_owned();
                        let merge = format!("git -C {} merge NEW-BRANCH", word(&tree));
                        (merge, format!("; {}", set_aside(&tree)))
                    }
                    None => {
                        let branch = word(branch);
                        let merge = format!(
                            "git -C {dir} switch {branch} && git -C {dir} merge NEW-BRANCH"
                        );
                        (merge, String::new())
                    }
                });
            } else {
                next.push(format!("git -C {dir} switch -C {}", word(branch)));
            }
        }
        let carried = context.carried(repository);
        let lease = record.lease.as_ref();
        if let Some(lease) = lease.filter(|lease| carried.worker.as_ref() == Some(&lease.worker)) {
            let carried = Carried {
                agent: Some(lease.holder.clone()),
                ..carried
            };
            let prime = carried.command(&format!("git handoff prime --as {}", lease.holder));
            next.push(format!("cd {dir} && {prime}"));
        }
        // Before it is sent: `send` hands on the issue's branch.
        next.extend(
            back.map(|(back, aside)| {
                format!("{back}      (once the work is committed there{aside})")
            }),
        );
        Ok(next)
    }

    /// The chosen attempt or claim.
    fn failure<'a>(&self, id: &str, past: &'a [PastFailure]) -> Result<&'a PastFailure, Failure> {
        let mut newest = past.iter().rev();
        let found = match (self.attempt, self.claim) {
            (Some(attempt), _) => newest.find(|f| f.attempt == attempt && f.claim.is_none()),
            (_, Some(_)) => newest.find(|f| f.claim == self.claim),
            _ => match PastFailure::newest_with_work(past) {
                Some(at) => past.get(at),
                None => past.last(),
            },
        };
        found.ok_or_else(|| {
            let text = match (self.attempt, self.claim) {
                (Some(attempt), _) => format!("attempt {attempt} of {id} did not fail"),
                (_, Some(claim)) => {
                    format!("claim {claim} of {id} was not given back with its work")
                }
                _ => {
                    format!("no attempt of {id} failed, and no claim was given back with its work")
                }
            };
            let known: Vec<String> = past.iter().map(PastFailure::name).collect();
            let failure = Failure::new(ErrorCode::NoFailure, text);
            if known.is_empty() {
                failure.hint(hint!("see `git handoff show {}`", id))
            } else {
                failure.hint(format!("known are: {}", known.join(", ")))
            }
        })
    }

    fn restored(&self, restored: Restored) -> RestoredView {
        let work = &restored.unfinished;
        RestoredView {
            worktree: self.worktree.as_deref().map(shown),
            branch: self.new_branch.clone(),
            commit: restored.commit,
            made_base: restored.made_base,
            files: work.files.len(),
            deleted: work.deleted.len(),
            staged: work.staged.len(),
            removed: work.removed.len(),
            operation: restored
                .operation
                .map(|(name, continued)| OperationView { name, continued }),
            sparse: work.sparse,
        }
    }
}

/// The files kept of a failed attempt or of a claim that was given back, and what was restored.
#[skip_serializing_none]
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Restore")]
pub(crate) struct RestoreView<'a> {
    /// the handoff
    handoff: Handoff,
    /// the attempt
    attempt: u32,
    /// the claim, if it was given back
    claim: Option<u32>,
    /// what went wrong, if anything did
    error: Option<&'a model::Failure>,
    /// why it was given back
    reason: Option<&'a str>,
    #[serde(skip)]
    ended: String,
    /// what was kept
    kept: &'a Contents,
    /// with `--worktree` or `--new-branch`: the unfinished work
    restored: Option<RestoredView>,
    /// with `--attachments`: how many files were written
    attachments_written: Option<usize>,
    #[serde(skip)]
    attachments_folder: Option<String>,
}

impl Answer for RestoreView<'_> {
    fn text(&self, _: &Look) -> String {
        let mut text = format!("{}\n", self.ended);
        if let Some(restored) = &self.restored {
            let snapshot = self.kept.snapshot.as_ref();
            text += &restored.text(snapshot.and_then(|s| s.base.commit.as_deref()));
        }
        if let (Some(count), Some(folder)) = (self.attachments_written, &self.attachments_folder) {
            text += &format!("  {count} attached files in {folder}\n");
        } else if self.restored.is_none() {
            text += &contents_text(self.kept);
            if self.kept.snapshot.is_none() {
                text += "  nothing of the work was kept: `fail` keeps it with --snapshot\n";
            }
        }
        text
    }
}

/// Restored unfinished work.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Restored")]
struct RestoredView {
    /// the folder of the new worktree
    worktree: Option<String>,
    /// the new branch
    branch: Option<String>,
    /// the commit that the worktree or the branch is at
    commit: ObjectId,
    /// whether the base commit was replaced by one without its history
    made_base: bool,
    /// how many files
    files: usize,
    /// how many deleted files
    deleted: usize,
    /// how many staged files
    staged: usize,
    /// how many files were removed from the index
    removed: usize,
    /// the operation that was in progress
    operation: Option<OperationView>,
    /// How many files a sparse checkout had left out.
    #[serde(skip)]
    sparse: usize,
}

/// An operation such as a merge.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Operation")]
struct OperationView {
    /// its name
    name: String,
    /// whether it was continued
    continued: bool,
}

impl RestoredView {
    /// The text, if the work was based on this commit.
    fn text(&self, base: Option<&str>) -> String {
        let place = match (&self.worktree, &self.branch) {
            (Some(dir), Some(branch)) => format!("in {dir} on branch {branch}"),
            (Some(dir), None) => format!("in {dir}"),
            (None, branch) => format!("on branch {}", branch.as_deref().unwrap_or_default()),
        };
        let staged = self.staged + self.removed;
        let mut text = format!(
            "  restored {place}, at {}: {}, {} deleted, {staged} staged\n",
            self.commit.short(),
            counted(self.files, "file"),
            self.deleted,
        );
        if self.made_base {
            let missing = base.unwrap_or("none yet");
            text += &format!(
                "  the history of its commit ({missing}) is not in this clone: a commit with the same files and no parents replaces it\n"
            );
        }
        if self.worktree.is_none() && staged > 0 {
            text +=
                "  a branch does not record what was staged; use --worktree to restore that too\n";
        }
        if let Some(OperationView { name, continued }) = &self.operation {
            text += &if *continued {
                format!("  the {name} that was in progress continues there\n")
            } else {
                format!(
                    "  a {name} was in progress and is not restored; its files and conflicts are\n"
                )
            };
        }
        if self.sparse > 0 {
            text += &format!(
                "  {} restored too\n",
                counted_as(
                    self.sparse,
                    "file",
                    [
                        " that a sparse checkout had left out is",
                        "s that a sparse checkout had left out are"
                    ]
                )
            );
        }
        text
    }
}

fn shown(path: &Path) -> String {
    continued(&path.display().to_string())
}
