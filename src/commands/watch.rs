use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use clap::Args;
use handoff::base::ObjectId;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::{quoted, word};
use handoff::git::Repository;
use handoff::ledger::{
    DEEPEN, FollowError, Happening, LedgerError, Snapshot, commits_after, happenings,
};
use handoff::model::{Refusal, View};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::remote::PollArgs;
use crate::context::Context;
use crate::context::interruption::Interruption;
use crate::context::lookout::{Lookout, Place, gone, unreached};
use crate::failure::{ErrorCode, Failure};
use crate::output::{Output, SCHEMA};

/// Print the ledger's events, one JSON document per line
///
/// Runs until it is interrupted or its output is closed, and then exits 0; through `git handoff`, git
/// exits with the signal's code (130, 143). The lines of a commit are printed together and numbered
/// (`n` of `of`): after the last of them, `--from COMMIT` goes on, and nothing is lost or repeated.
///
/// With a remote (handoff.remote), its steps are printed, those of other clones included: it is polled
/// every few seconds. An offline step is printed once the remote has it; with `--offline` at once, and
/// again if `sync` makes it again. At the end, the branch here has what was fetched, unless steps here
/// are not on the remote yet.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff watch
  git handoff watch 123 --all --once
  git handoff watch --agent fixer-agent --from 4f2c81d90b
  git handoff watch --poll 30s     (how often to poll the ledger's remote)
  git handoff watch --offline      (only what this clone has)")]
pub(crate) struct Arguments {
    /// Only events in this issue
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    /// Start after this commit; by default after the newest
    #[arg(long, value_name = "COMMIT", conflicts_with = "all")]
    from: Option<String>,
    /// Start with the ledger's first commit
    #[arg(long)]
    all: bool,
    /// Only events by this agent, or of handoffs it sent or receives
    #[arg(long = "agent", value_name = "AGENT")]
    involved: Option<String>,
    /// Print the events so far and exit, instead of waiting for more
    #[arg(long, visible_alias = "no-follow")]
    once: bool,
    #[command(flatten)]
    looks: PollArgs,
}

/// The filter of events.
struct Wanted {
    issue: Option<IssueKey>,
    involved: Option<AgentName>,
}

/// An output line.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WatchLine")]
pub(crate) struct Line<'a> {
    /// `git-handoff/2`
    schema: &'static str,
    /// the commit that did it
    commit: ObjectId,
    /// which of the commit's lines this is, from 1
    n: usize,
    /// how many lines the commit has, of those requested
    of: usize,
    #[serde(flatten)]
    happening: &'a Happening,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.one_line_each();
        let issue = self.issue.as_deref().map(str::parse::<IssueKey>);
        let issue = issue.transpose()?;
        let repository = context.repository()?;
        let involved = self.involved.as_deref();
        let involved = involved.map(|name| context.named(&repository, name));
        let wanted = Wanted {
            issue,
            involved: involved.transpose()?,
        };
        let ledger = context.ledger(&repository)?;
        let place = Place::of(self.looks, context, &repository)?;
        let mut lookout = Lookout::open(ledger, place, self.looks.poll, None)?;
        let (waker, interruption) = (lookout.waker(), lookout.catch()?);
        interruption.or_reader_gone(move || waker.wake());
        let ended = self.follow(&repository, &wanted, &mut lookout, &interruption, output);
        lookout.leave_fetched();
        ended
    }

    /// Prints the events until it is interrupted.
    fn follow(
        &self,
        repository: &Repository,
        wanted: &Wanted,
        lookout: &mut Lookout<'_>,
        interruption: &Interruption,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let is_asked = || interruption.requested().load(Ordering::SeqCst);
        let mut newest = loop {
            match lookout.followed(output)? {
                Some(tip) => break tip,
                None if is_asked() => return Ok(()),
                None if lookout.has_looked() && (self.once || lookout.remote().is_none()) => {
                    return Err(unreached(lookout));
                }
                None => lookout.pause(None, output),
            }
        };
        let tip = Snapshot::at(repository, newest, lookout.ledger().branch())?;
        if let Some(key) = &wanted.issue
            && tip.issue(key)?.issue()?.is_none()
        {
            return Err(Refusal::no_issue(key).into());
        }
        let mut seen = match &self.from {
            None if self.all => None,
            None => Some(newest),
            Some(text) => Some(named(repository, text)?),
        };
        let history = Repository::open_for_history()?;
        loop {
            if seen != Some(newest) {
                let ledger = lookout.ledger();
                let from = seen.map(|seen| ledger.going_on_after(seen, newest));
                let commits = commits_after(&history, from.transpose()?, newest);
                for id in commits.map_err(|error| self.lost(lookout, error))? {
                    let text = lines(&history, id, wanted)?;
                    let is_read = output.stream(text.as_bytes())?;
                    if !is_read || is_asked() {
                        return Ok(());
                    }
                    seen = Some(id);
                }
            }
            if is_asked() {
                return Ok(());
            }
            if self.once {
                if self.from.is_none() && !self.all {
                    output.say("nothing is after the newest commit: --all starts with the first");
                }
                return match lookout.trouble() {
                    Some(_) => Err(unreached(lookout)),
                    None => Ok(()),
                };
            }
            lookout.pause(None, output);
            newest = match lookout.followed(output)? {
                Some(tip) => tip,
                None => return Err(gone(lookout.ledger(), seen)),
            };
        }
    }

    fn lost(&self, lookout: &Lookout<'_>, error: FollowError) -> Failure {
        let message = error.to_string();
        let branch = lookout.ledger().branch();
        match error {
            FollowError::CutOff(_) => Failure::new(ErrorCode::Shallow, message)
                .hint(format!("{DEEPEN}; or watch from now on: git handoff watch")),
            FollowError::NotInHistory(_) => {
                let failure = Failure::new(ErrorCode::NotInHistory, message);
                failure.hint(format!("to see what the branch holds: git log {}; to start at its beginning: git handoff watch --all", word(branch)))
            }
            FollowError::Ledger(error) => error.into(),
        }
    }
}

/// The lines of a commit.
fn lines(history: &Repository, id: ObjectId, wanted: &Wanted) -> Result<String, Failure> {
    let commit = history.commit(id).map_err(LedgerError::from)?;
    let mut all = happenings(history, &commit)?;
    all.retain(|h| wanted.issue.is_none() || h.key() == wanted.issue.as_ref());
    let involved = wanted.involved.as_ref();
    all.retain(|h| involved.is_none_or(|agent| h.concerns(agent)));
    let mut text = String::new();
    for (i, happening) in all.iter().enumerate() {
        let line = Line {
            schema: SCHEMA,
            commit: id,
            n: i + 1,
            of: all.len(),
            happening,
        };
        let line = serde_json::to_string(&line).unwrap_or_default();
        // Writing to a `String` can't fail.
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

fn named(repository: &Repository, text: &str) -> Result<ObjectId, Failure> {
    repository.commit_named(text)?.ok_or_else(|| {
        let text = format!("there is no commit {} here", quoted(text));
        Failure::new(ErrorCode::NoCommit, text)
            .hint("use the `commit` of a line that `git handoff watch` printed")
    })
}
