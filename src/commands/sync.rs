use clap::Args;
use handoff::base::ObjectId;
use handoff::base::text::continued;
use handoff::git::{masked, tells_of_damage};
use handoff::ledger::{CodePush, Ledger, LedgerError, Rejected, Renamed, UpstreamError};
use schemars::JsonSchema;
use serde::Serialize;

use super::status::unpushed_text;
use crate::args::remote::Timeout;
use crate::context::Context;
use crate::context::writer::say_synced;
use crate::environment::now;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output, counted};
use crate::view::Look;

/// Synchronize this clone's ledger with the remote's
///
/// Steps made offline are replayed on the remote's state, in order, and sent in one
/// push. A handoff whose number was taken in the meantime gets the next one. Code that
/// was handed on offline is pushed first, by the rules of `git handoff send`. A step
/// that the new state refuses is kept: see `git handoff refused`. Nothing on the
/// remote is ever rewritten. Every write does the same before its own step.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff sync
  git handoff sync --set-aside      (if a hook of the remote refuses a step)")]
pub(crate) struct Arguments {
    /// Set aside steps that a hook of the remote refuses, and send the rest
    #[arg(long)]
    set_aside: bool,
    #[command(flatten)]
    timeout: Timeout,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let context = context.with(self.timeout.into());
        let (mut ledger, session) = context.writer_apart(&repository, output)?;
        let remote = context.remote(&repository)?;
        let remote = masked(&remote.ok_or(UpstreamError::NoRemote)?);
        let is_lost = |seen: &ObjectId| matches!(ledger.lost(*seen), Ok(Some(_)));
        let lost = ledger.seen().filter(is_lost);
        let synced = output
            .during(&session.tally, || ledger.sync(&session, self.set_aside))
            .map_err(|error| left_here(&ledger, error))?;
        let view = SyncView {
            remote: &remote,
            commit: ledger.tip_id()?,
            brought: synced.brought,
            sent: synced.pushed,
            made_again: synced.rerun,
            renamed: &synced.renamed,
            rejected: &synced.rejected,
            code: &synced.code,
        };
        // The fetch may have restored what this clone had lost.
        let lost = lost.map(|seen| ledger.lost(seen)).transpose()?.flatten();
        if let Some(finding) = lost.filter(|_| synced.rejected.is_empty()) {
            let failure = Failure::new(ErrorCode::LedgerDamaged, finding.message);
            let failure = failure.hint(finding.fix.unwrap_or_default());
            if output.is_json() {
                return Err(failure.data(&view));
            }
            output.answer(&view)?;
            return Err(failure);
        }
        if synced.rejected.is_empty() {
            output.answer(&view)?;
            say_synced(&synced, output);
            return say_unpushed(&ledger, output);
        }
        let text = view.text(&output.look(now()?));
        if output.is_json() {
            let failure = Failure::new(ErrorCode::Rejected, text.trim_end());
            return Err(failure.hint("`git handoff refused` lists them").data(&view));
        }
        output.raw(text.as_bytes())?;
        say_synced(&synced, output);
        Err(Failure::reported(exit::CONFLICT))
    }
}

/// Prints which code is only here: handoffs that were sent offline may be on the remote without it.
pub(super) fn say_unpushed(ledger: &Ledger<'_>, output: &mut Output) -> Result<(), Failure> {
    let unpushed = ledger.unpushed_code(&ledger.tip()?)?;
    if !unpushed.is_empty() {
        output.say(unpushed_text(&unpushed).trim_end());
    }
    Ok(())
}

/// The result of a synchronization.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Sync")]
pub(crate) struct SyncView<'a> {
    /// the remote
    remote: &'a str,
    /// where the branch is now, here and there
    commit: Option<ObjectId>,
    /// how many commits the remote had that were not here
    brought: usize,
    /// how many commits were pushed
    sent: usize,
    /// how many of those are steps that were made again on the remote's state
    made_again: usize,
    /// the handoffs that have a new id
    renamed: &'a [Renamed],
    /// the steps that the remote's state refused; if there are any, this accompanies the error
    /// `rejected`
    rejected: &'a [Rejected],
    /// code branches that were pushed with steps that hand them on, or refused
    code: &'a [CodePush],
}

impl Answer for SyncView<'_> {
    fn text(&self, _: &Look) -> String {
        let remote = continued(self.remote);
        let text = match (self.sent, self.brought) {
            (0, 0) => format!("{remote} and this clone are in sync\n"),
            (sent, brought) => format!(
                "sent {} to {remote}, received {brought}\n",
                counted(sent, "commit")
            ),
        };
        match self.rejected.len() {
            0 => text,
            refused => format!("{text}refused: {}\n", counted(refused, "step")),
        }
    }
}

/// What the remote lacks, if it can't be reached.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NotPublished")]
pub(crate) struct NotPublishedView<'a> {
    /// the remote
    remote: &'a str,
    /// how many commits are only here
    unpublished: usize,
}

/// The failure if the remote is unreachable: names the steps that are only in this clone.
fn left_here(ledger: &Ledger<'_>, error: LedgerError) -> Failure {
    let beside = ledger.beside_remote().ok().flatten();
    let left = beside.map_or(0, |beside| beside.unpublished);
    match error {
        LedgerError::Upstream(UpstreamError::Unreachable { remote, trouble }) if left > 0 => {
            let text = format!(
                "not on {remote} yet: {}: {trouble}",
                counted(left, "commit")
            );
            let failure = Failure::new(ErrorCode::NotPublished, text);
            let failure = if tells_of_damage(&trouble) {
                failure.hint("they stay recorded here; `git handoff fetch --repair` repairs this clone's copy, then run the command again")
            } else {
                failure.hint("they stay recorded here; run the command again later")
            };
            failure.data(&NotPublishedView {
                remote: &remote,
                unpublished: left,
            })
        }
        error => error.into(),
    }
}
