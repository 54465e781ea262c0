//! Opens the ledger for writing, synchronized with its remote.

use handoff::base::Moment;
use handoff::base::text::{continued, quoted, word};
use handoff::git::{Repository, Scratch};
use handoff::ledger::{CodePush, Ledger, Rejected, Renamed, Session, Synced, UpstreamError};
use handoff::model::view::news;
use handoff::model::{Lease, Record, View};
use handoff::protocol::Event;
use schemars::JsonSchema;
use serde::Serialize;

use super::Context;
use super::elsewhere::{copied_from, takeover};
use crate::environment;
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;
use crate::output::page::{ROWS, rest};

impl Context {
    /// Opens the ledger for writing, and synchronizes it with its remote, if it has one.
    ///
    /// # Errors
    /// A [`Failure`], before anything was written.
    pub fn writer<'r>(
        &self,
        repository: &'r Repository,
        output: &mut Output,
    ) -> Result<(Ledger<'r>, Session), Failure> {
        let (mut ledger, session) = self.requester(repository, output)?;
        catch_up(&mut ledger, &session, output)?;
        Ok((ledger, session))
    }

    /// Opens the ledger for writing. Call [`catch_up`] before reading.
    ///
    /// # Errors
    /// A [`Failure`] of usage or the environment.
    pub fn requester<'r>(
        &self,
        repository: &'r Repository,
        output: &mut Output,
    ) -> Result<(Ledger<'r>, Session), Failure> {
        let (ledger, mut session) = self.writer_apart(repository, output)?;
        // Only now: a write that is refused above must not create the worker's id.
        session.worker = Some(self.acting_worker(repository)?.id);
        output.carry(self.carried(repository));
        if let Some(remote) = copied_from(repository, ledger.branch()) {
            let share = takeover(&remote, ledger.branch());
            let text = format!("{remote} does not get it; `{share}` shares the ledger");
            output.notice_later("what is recorded stays in this clone", text);
        }
        Ok((ledger, session))
    }

    /// If something was not found and the remote was not read, adds a hint to fetch.
    pub fn may_be_behind(&self, failure: &mut Failure, output: &Output) {
        let not_found = matches!(
            failure.code,
            Some(ErrorCode::NoIssue | ErrorCode::NoHandoff)
        );
        if !not_found || output.has_remote() {
            return;
        }
        let is_shared = self.repository().is_ok_and(|repository| {
            let ledger = self.ledger(&repository);
            ledger.is_ok_and(|ledger| ledger.is_shared())
        });
        if is_shared && let Some(hint) = failure.hint.take() {
            failure.hint = Some(hint.and("; `git handoff fetch` brings what the remote has"));
        }
    }

    /// Opens the ledger for writing, without giving the working tree a worker id.
    ///
    /// # Errors
    /// A [`Failure`] of usage.
    pub fn writer_apart<'r>(
        &self,
        repository: &'r Repository,
        output: &mut Output,
    ) -> Result<(Ledger<'r>, Session), Failure> {
        self.remote(repository)?;
        self.writer_through(repository, None, output)
    }

    /// Opens the ledger for writing through this remote, or the configured one.
    ///
    /// # Errors
    /// A [`Failure`] of usage.
    pub fn writer_through<'r>(
        &self,
        repository: &'r Repository,
        remote: Option<&str>,
        output: &mut Output,
    ) -> Result<(Ledger<'r>, Session), Failure> {
        let mut ledger = self.ledger(repository)?;
        if let Some(remote) = remote {
            ledger = ledger.shared_through(remote);
        }
        let mut session = self.remote_args().session(repository, ledger.is_shared())?;
        let ledger = ledger.fetching_within(session.patience, session.offline);
        session.worker = self.worker(repository)?.map(|worker| worker.id);
        match environment::traceparent() {
            Ok(traceparent) => session.traceparent = traceparent,
            Err(why) => output.say(&why),
        }
        output.follow(&ledger);
        output.carry(self.carried(repository));
        Ok((ledger, session))
    }
}

/// Synchronizes a ledger with its remote, unless that was done or there is none.
///
/// # Errors
/// A [`Failure`], before anything was written.
pub fn catch_up(
    ledger: &mut Ledger<'_>,
    session: &Session,
    output: &mut Output,
) -> Result<(), Failure> {
    let synced = ledger.catch_up(session)?;
    if let Some(missed) = ledger.out_of_reach() {
        let trouble = missed.trouble.unwrap_or_default();
        if ledger.tip_id()?.is_none() {
            let remote = missed.remote;
            return Err(UpstreamError::Unreachable { remote, trouble }.into());
        }
        output.judge_by_what_is_here(format!(
            "{} is out of reach ({trouble}), so this is what is known here",
            missed.remote
        ));
    }
    if synced.rejected.is_empty() && synced.renamed.is_empty() {
        say_synced(&synced, output);
        // Read errors are reported by the command.
        let _ = tell_news(ledger, true, output);
        return Ok(());
    }
    say_synced(&synced, output);
    Err(not_as_it_was(&synced))
}

/// Tells the acting agent others' new remarks on what it holds, and what was cancelled under it. If the command `writes`, they count
/// as told. Skipped in a partial clone, which would have to fetch them.
///
/// # Errors
/// A [`Failure`] if something can't be read.
pub fn tell_news(ledger: &Ledger<'_>, writes: bool, output: &mut Output) -> Result<(), Failure> {
    if ledger.repository().is_partial() {
        return Ok(());
    }
    let Some((Some(agent), Some(worker))) = output
        .carried()
        .map(|carried| (carried.agent.clone(), carried.worker.clone()))
    else {
        return Ok(());
    };
    let tip = ledger.tip()?;
    let note = Scratch::new(ledger.repository().common_dir(), &format!("told/{worker}"));
    let told = note
        .read()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut last: Option<Moment> = told;
    for record in tip.held_by(&agent)? {
        let is_own = |lease: &Lease| lease.worker == worker;
        if !record.lease.as_ref().is_some_and(is_own) {
            continue;
        }
        let folder = tip.issue(record.id.issue())?;
        let Some(issue) = folder.shared_issue()? else {
            continue;
        };
        for said in news(&folder, &issue, &record, told)? {
            let text = continued(&said.text);
            output.say(&format!(
                "{}, new since you claimed it, from {}: {text}",
                record.id, said.by
            ));
            last = last.max(Some(said.at));
        }
    }
    for record in tip.cancelled_under(&agent)? {
        let mut newest = record.transitions.iter().rev();
        let claim = newest.find(|t| t.event == Some(Event::Claim));
        let is_own = claim.is_some_and(|claim| claim.worker.as_ref() == Some(&worker));
        let at = record.latest().map(|cancel| cancel.at);
        if is_own && at > told {
            output.say(&cancelled(&record));
            last = last.max(at);
        }
    }
    if writes && last != told {
        let bytes = serde_json::to_vec(&last).unwrap_or_default();
        // If the note can't be written, the agent is told again next time.
        let _ = note.write(&bytes);
    }
    Ok(())
}

/// Who cancelled a handoff, and why.
pub fn cancelled(record: &Record) -> String {
    let Some(cancel) = record.latest() else {
        return String::new();
    };
    let why = cancel
        .reason
        .as_ref()
        .map(|why| format!(": {}", quoted(why)));
    let why = why.unwrap_or_default();
    continued(&format!(
        "{} was cancelled by {}{why}",
        record.id, cancel.by
    ))
}

/// The failure of a write because its synchronization renamed or refused offline steps, which the
/// request may depend on.
fn not_as_it_was(synced: &Synced) -> Failure {
    let text = |outcome: &str| {
        format!("steps that only this clone had {outcome}, and nothing else was done")
    };
    let failure = if synced.rejected.is_empty() {
        Failure::new(ErrorCode::Renamed, text("have other ids now"))
    } else {
        Failure::new(ErrorCode::Rejected, text("were refused"))
    };
    failure
        .hint("see `git handoff refused` and `git handoff status`; run the same again if it still is what you want")
        .data(&ReplayedView {
            renamed: &synced.renamed,
            rejected: &synced.rejected,
        })
}

/// The outcome of offline steps that stopped a write.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Replayed")]
pub struct ReplayedView<'a> {
    /// the handoffs that have a new id
    renamed: &'a [Renamed],
    /// the steps that the remote's state refused
    rejected: &'a [Rejected],
}

/// Prints the outcome of offline steps.
pub fn say_synced(synced: &Synced, output: &mut Output) {
    for CodePush { branch, refused } in &synced.code {
        let branch = word(branch);
        output.say(&match refused {
            None => format!("pushed {branch} to origin, with what was handed on offline"),
            Some(why) => continued(&format!("{branch} can't be pushed to origin: {why}")),
        });
    }
    for renamed in synced.renamed.iter().take(ROWS) {
        output.say(&format!(
            "{} was taken meanwhile: what was {} here is {} now",
            renamed.was, renamed.was, renamed.is
        ));
    }
    let more = rest(synced.renamed.len(), &output.command("git handoff log"));
    if !more.is_empty() {
        output.say(more.trim_end());
    }
    for rejected in synced.rejected.iter().take(ROWS) {
        output.say(&continued(&format!(
            "refused, and kept as {}: {}: {}",
            rejected.name, rejected.subject, rejected.reason
        )));
    }
    if !synced.rejected.is_empty() {
        output.say("next: git handoff refused");
    }
}
