//! Freshness of reading commands: with a remote, they ask it first, briefly, and say so if it did
//! not answer.

use std::time::{Duration, Instant, SystemTime};

use handoff::base::Moment;
use handoff::base::text::continued;
use handoff::base::to_second;
use handoff::git::{Repository, masked};
use handoff::ledger::{Ledger, RemoteLook, Session, Snapshot};
use schemars::JsonSchema;
use serde::Serialize;

use super::Context;
use super::interruption::Interruption;
use crate::environment;
use crate::failure::{ErrorCode, Failure, chain};
use crate::output::{Output, counted_as};

/// The time limit for asking the remote.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time limit for fetching an archived issue that this clone lacks.
const ARCHIVE_PATIENCE: Duration = Duration::from_secs(25);

/// How long a fetch by another command counts as current, if the remote must not be asked.
const MOMENT: Duration = Duration::from_secs(60);

/// How an answer relates to the ledger's remote.
#[derive(Clone, Serialize, JsonSchema)]
pub struct Fresh {
    /// the remote, without a password
    remote: String,
    /// whether the remote was asked for this answer; not with `--offline` or `handoff.fresh=false`
    asked: bool,
    /// why it was asked in vain: then the answer is what this clone knew before; else null
    trouble: Option<String>,
    /// when this clone last read the remote's ledger; null if that is not known
    as_of: Option<Moment>,
    /// how many steps here are not on the remote
    unpublished: usize,
    /// how many steps of the remote the answer leaves out, because steps here are not on the remote:
    /// `git handoff sync` brings both together
    left_out: usize,
    /// Whether the remote did not answer, rather than giving an unusable answer.
    #[serde(skip)]
    is_out_of_reach: bool,
    /// Whether the remote was read a moment ago, as by `git handoff fetch`.
    #[serde(skip)]
    is_recent: bool,
}

impl Fresh {
    /// Whether the answer includes everything that the remote had when it was asked, or a moment
    /// ago.
    pub fn is_current(&self) -> bool {
        let is_read = self.is_answered() || !self.asked && self.is_recent;
        is_read && self.left_out == 0
    }

    /// Whether the remote answered.
    pub fn is_answered(&self) -> bool {
        self.asked && self.trouble.is_none()
    }

    /// Whether the remote was asked in vain, which every failure says.
    pub fn is_missed(&self) -> bool {
        self.trouble.is_some()
    }

    /// What is wrong with an answering remote's ledger: it was rewritten, or is not a ledger.
    pub fn fault(&self) -> Option<&str> {
        let is_fault = self.asked && !self.is_out_of_reach;
        self.trouble.as_deref().filter(|_| is_fault)
    }

    /// The name of the remote.
    pub fn remote(&self) -> &str {
        &self.remote
    }

    /// The command that fetches what may be missing.
    pub fn command(&self) -> &'static str {
        if self.is_answered() {
            "git handoff sync"
        } else {
            "git handoff fetch"
        }
    }

    /// What may be missing, in one line; `None` if nothing is.
    pub fn text(&self) -> Option<String> {
        let remote = continued(&self.remote);
        if self.is_answered() {
            let own = counted_as(self.unpublished, "step", [" here is", "s here are"]);
            return match (self.unpublished, self.left_out) {
                (0, _) => None,
                (_, 0) => Some(format!("{own} not on {remote}: git handoff sync")),
                (_, theirs) => Some(format!(
                    "{own} not on {remote}, and {theirs} there not here: git handoff sync"
                )),
            };
        }
        let as_of = match self.as_of {
            Some(at) => format!("as of {at}"),
            None => "as of never".to_owned(),
        };
        Some(match &self.trouble {
            None => format!("{as_of}, {remote} was not asked"),
            Some(trouble) if self.is_out_of_reach => {
                let trouble = continued(trouble);
                format!("{as_of}, {remote} is out of reach ({trouble})")
            }
            Some(trouble) => format!("{as_of}: {}", continued(trouble)),
        })
    }
}

fn moment_of(at: SystemTime) -> Moment {
    to_second(at)
}

/// The state that a reading command reads.
pub struct Reading<'r> {
    /// The ledger.
    pub ledger: Ledger<'r>,
    /// Its newest state.
    pub tip: Snapshot<'r>,
    /// `None` if the ledger has no remote.
    pub fresh: Option<Fresh>,
}

impl Context {
    /// Opens the ledger for reading. With a remote, that is asked first, unless the command is
    /// offline; if this fails, the local state is used.
    ///
    /// # Errors
    /// A [`Failure`] if there is no ledger, or it cannot be read.
    pub fn fresh<'r>(
        &self,
        repository: &'r Repository,
        offline: bool,
        output: &mut Output,
    ) -> Result<Reading<'r>, Failure> {
        let ledger = self.ledger(repository)?;
        let ledger = ledger.fetching_within(ARCHIVE_PATIENCE, offline);
        let Some(remote) = super::configured_remote(repository) else {
            let tip = ledger.tip()?;
            output.carry(self.carried_at(repository, &tip));
            output.tell_pauses(&tip);
            let fresh = None;
            return Ok(Reading { ledger, tip, fresh });
        };
        let mut fresh = Fresh {
            remote: masked(&remote),
            asked: !offline
                && repository.config_bool("handoff.fresh").ok().flatten() != Some(false),
            trouble: None,
            as_of: None,
            unpublished: 0,
            left_out: 0,
            is_out_of_reach: false,
            is_recent: false,
        };
        let gone = super::configured_exists(repository, &remote).err();
        let ledger = match gone.filter(|_| fresh.asked) {
            Some(gone) => {
                fresh.trouble = Some(format!("{}; {}", gone.message, gone.next()));
                ledger
            }
            None if fresh.asked => self.ask(ledger, &mut fresh)?,
            None => ledger,
        };
        if fresh.as_of.is_none() {
            let last = ledger.last_read();
            let age = last.and_then(|at| SystemTime::now().duration_since(at).ok());
            fresh.is_recent = age.is_some_and(|age| age <= MOMENT);
            fresh.as_of = last.map(moment_of);
        }
        if fresh.is_answered() {
            output.follow(&ledger);
        } else if let Some(why) = fresh.text().filter(|_| fresh.asked) {
            output.judge_by_what_is_here(why);
        }
        let tip = ledger.newest()?;
        output.carry(self.carried_at(repository, &tip));
        output.tell_pauses(&tip);
        if let Some(beside) = ledger.beside_remote()? {
            fresh.unpublished = beside.unpublished;
            // With nothing unpublished, the remote's tip was read instead: nothing is left out.
            fresh.left_out = if beside.unpublished > 0 {
                beside.behind
            } else {
                0
            };
        }
        let fresh = Some(fresh);
        Ok(Reading { ledger, tip, fresh })
    }

    /// Asks the remote, and fast-forwards the branch here if possible.
    fn ask<'r>(&self, ledger: Ledger<'r>, fresh: &mut Fresh) -> Result<Ledger<'r>, Failure> {
        let end = Instant::now() + PATIENCE;
        let mut session = Session {
            patience: PATIENCE,
            ..environment::reader()?
        };
        let called = self.call().map(|call| call.interruption().clone());
        let is_called = called.is_some();
        let interruption = called.map_or_else(|| Interruption::catch(|| ()), Ok);
        let interruption = interruption.map_err(|error| {
            let text = format!("signals cannot be caught: {error}");
            Failure::new(ErrorCode::Signals, text)
        })?;
        let mut ledger = ledger.ended_by(interruption.flag());
        match ledger.ask(&session) {
            Ok(RemoteLook::Seen { at, .. }) => {
                fresh.as_of = Some(moment_of(at));
                session.patience = end.saturating_duration_since(Instant::now());
                // If the branch can't be moved, the fetched state is read anyway.
                let _ = ledger.follow_remote(&session);
            }
            Ok(RemoteLook::Missed(trouble)) => {
                fresh.trouble = Some(trouble);
                fresh.is_out_of_reach = true;
            }
            Err(error) => fresh.trouble = Some(chain(&error)),
        }
        if !is_called {
            interruption.release();
        }
        Ok(ledger)
    }
}

/// Prints on standard error what may be missing from an answer.
pub fn say(fresh: Option<&Fresh>, output: &mut Output) {
    if let Some(text) = fresh.and_then(Fresh::text) {
        output.say(&text);
    }
}
