//! What an agent in a sandbox leaves for the worker that runs it. Within a run of `work`, a sandbox
//! may forbid to write the git directory, or the network: then `send`, `block` and `fail` record
//! nothing, and leave in the run's folder what the worker records once the run ends. So does `send`
//! where the branch is not on the remote yet.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use handoff::base::ids::{HandoffId, IssueKey};
use handoff::base::text::quoted;
use handoff::git::Repository;
use handoff::ledger::{Ledger, Session};
use schemars::JsonSchema;
use serde::Serialize;

use super::Context;
use crate::environment::{Run, run_of_work};
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output};
use crate::view::Look;

/// The file with the contract that hands the work on.
pub const CONTRACT_FILE: &str = "contract";

/// The file with what only a person can answer: the work is blocked, with its text as the reason.
pub const BLOCKED: &str = "blocked.md";

/// The file with why the work can't be done: it fails, with its first line as the message.
pub const FAILED: &str = "failed.md";

/// The place for what an agent leaves.
pub struct LeftForWorker {
    run: Run,
    why: &'static str,
}

/// What was left, and where.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Left")]
pub struct LeftView {
    /// the file from which the worker records it when the run ends
    left_in: PathBuf,
    /// why it was not recorded now
    because: &'static str,
}

impl Answer for LeftView {
    fn text(&self, _: &Look) -> String {
        format!(
            "left in {}\n  {}: the worker records it when this run ends\n",
            self.left_in.display(),
            self.because
        )
    }
}

impl Context {
    /// Where to leave what can't be recorded here; `None` if it can be, and outside of a run of
    /// `work`. A git directory that can't be written is not tried.
    pub fn left_for_worker(
        &self,
        ledger: &mut Ledger<'_>,
        session: &Session,
    ) -> Option<LeftForWorker> {
        // A server that runs outside of the sandbox records it itself.
        let run = run_of_work().filter(|_| self.call().is_none())?;
        if !can_write(ledger.repository()) {
            let why = "the git directory can't be written here";
            return Some(LeftForWorker { run, why });
        }
        let is_away = ledger.is_shared()
            && !session.offline
            && ledger.catch_up(session).is_ok()
            && ledger.out_of_reach().is_some();
        let why = "the remote is out of reach here";
        is_away.then_some(LeftForWorker { run, why })
    }

    /// Where to leave a contract whose branch `origin` does not have as it is here: the worker pushes
    /// it first.
    pub fn left_until_pushed(&self, ledger: &Ledger<'_>) -> Option<LeftForWorker> {
        let run = run_of_work().filter(|_| self.call().is_none())?;
        let repository = ledger.repository();
        repository
            .remote_url("origin")
            .filter(|_| ledger.is_shared())?;
        let branch = run.branch.as_deref()?;
        let tip = repository.resolve(&format!("refs/heads/{branch}")).ok()??;
        let mut known = [Some(branch.to_owned()), repository.base_branch()]
            .into_iter()
            .flatten();
        let is_there = known.any(|name| {
            let there = repository.on_origin(&name);
            there.is_some_and(|there| repository.is_in_history(tip, there).unwrap_or(true))
        });
        let why = "origin does not have its branch as it is here";
        (!is_there).then_some(LeftForWorker { run, why })
    }
}

/// Whether the git directory can be written, found out without writing.
fn can_write(repository: &Repository) -> bool {
    let folder = repository.common_dir();
    // It changes nothing, and a sandbox answers as it would for a write.
    let opens = OpenOptions::new().append(true).open(folder.join("HEAD"));
    opens.is_ok() && is_accessible(folder)
}

#[cfg(unix)]
fn is_accessible(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn is_accessible(_: &Path) -> bool {
    true
}

impl LeftForWorker {
    /// Refuses what is about other work than the run's.
    ///
    /// # Errors
    /// A usage [`Failure`].
    pub fn ensure_own(&self, id: &str) -> Result<(), Failure> {
        let own = &self.run.id;
        let is_own = id == own.to_string() || id == own.issue().as_str();
        self.ensure(is_own, id, own)
    }

    /// Refuses a contract of another issue than the run's.
    ///
    /// # Errors
    /// A usage [`Failure`].
    pub fn ensure_issue(&self, issue: &IssueKey) -> Result<(), Failure> {
        let own = &self.run.id;
        self.ensure(issue == own.issue(), issue.as_str(), own)
    }

    /// The issue of the run's work.
    pub fn issue(&self) -> &IssueKey {
        self.run.id.issue()
    }

    fn ensure(&self, is_own: bool, named: &str, own: &HandoffId) -> Result<(), Failure> {
        if is_own {
            return Ok(());
        }
        let text = format!(
            "{}, so only what is about {own} can be left for the worker, not {}",
            self.why,
            quoted(named)
        );
        Err(Failure::usage(text).hint("run it outside of the sandbox"))
    }

    /// Leaves a text in one of the files, and says so.
    pub fn leave(&self, name: &str, text: &str, output: &mut Output) -> Result<(), Failure> {
        let file = match name {
            CONTRACT_FILE => self.run.contract.clone(),
            other => self.run.contract.with_file_name(other),
        };
        fs::write(&file, text).map_err(|error| {
            let said = format!("{} can't be written: {error}", file.display());
            Failure::new(ErrorCode::Output, said)
                .hint("write the text to that file in another way; the worker records it")
        })?;
        output.answer(&LeftView {
            left_in: file,
            because: self.why,
        })
    }
}
