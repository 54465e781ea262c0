//! Files that a sandboxed agent leaves for its worker. Within a run of `work`, a sandbox may forbid
//! writes to the git directory, or the network: then `send`, `block` and `fail` record nothing, but
//! leave a file in the run's folder, which the worker records at the end of the run. `send` does
//! the same if the branch is not on the remote yet.

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

/// The file with the contract to send.
pub const CONTRACT_FILE: &str = "contract";

/// The file with a question for a person: the work is blocked with this text as the reason.
pub const BLOCKED: &str = "blocked.md";

/// The file with a reason to fail: the first line is the message.
pub const FAILED: &str = "failed.md";

/// The folder for left files.
pub struct LeftForWorker {
    run: Run,
    why: &'static str,
}

/// A left file.
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
    /// Where to leave a file if recording is not possible here; `None` if it is possible, or
    /// outside of a run of `work`. Writability of the git directory is checked without writing.
    pub fn left_for_worker(
        &self,
        ledger: &mut Ledger<'_>,
        session: &Session,
    ) -> Option<LeftForWorker> {
        // A server runs outside of the sandbox and records directly.
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

    /// Where to leave a contract whose branch `origin` does not have in this state: the worker
    /// pushes it first.
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

/// Whether the git directory is writable, determined without writing.
fn can_write(repository: &Repository) -> bool {
    let folder = repository.common_dir();
    // This changes nothing, and a sandbox treats it like a write.
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
    /// Refuses ids of other work than the run's.
    ///
    /// # Errors
    /// A usage [`Failure`].
    pub fn ensure_own(&self, id: &str) -> Result<(), Failure> {
        let own = &self.run.id;
        let is_own = id == own.to_string() || id == own.issue().as_str();
        self.ensure(is_own, id, own)
    }

    /// Refuses contracts of other issues than the run's.
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

    /// Writes one of the files, and says so.
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
