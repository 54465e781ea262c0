use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::error::{DEEPEN, Failure};
use crate::cli::exit;
use crate::cli::interruption::Interruption;
use crate::cli::output::{Output, SCHEMA};
use crate::git::{ObjectId, RefWatch, Repository};
use crate::ids::{AgentName, IssueKey, quoted};
use crate::ledger::{
    FollowError, Happening, Ledger, LedgerError, Refusal, View, commits_after, happenings,
};

/// Print what happens in the ledger, as one JSON document a line
///
/// Goes on until it is interrupted or nobody reads any more, and then exits 0.
/// Every line names the commit that it comes from. The lines of a commit are
/// printed together and counted (`n` of `of`): after the last of them, `--from
/// COMMIT` goes on with what came after it, and nothing is lost or told twice.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff watch
  git handoff watch 123 --all --once
  git handoff watch --agent fixer-agent --from 4f2c81d90b")]
pub(crate) struct Arguments {
    /// Only what happens in this issue
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    /// Begin after this commit; without it, after the newest
    #[arg(long, value_name = "COMMIT", conflicts_with = "all")]
    from: Option<String>,
    /// Begin with the ledger's first commit
    #[arg(long)]
    all: bool,
    /// Only what this agent did, sent or receives
    #[arg(long = "agent", value_name = "AGENT")]
    involved: Option<AgentName>,
    /// Print what there is and end, instead of waiting for more
    #[arg(long, visible_alias = "no-follow")]
    once: bool,
}

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    commit: &'a str,
    n: usize,
    of: usize,
    #[serde(flatten)]
    happening: &'a Happening,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.one_line_each();
        let issue = self.issue.as_deref().map(str::parse::<IssueKey>);
        let issue = issue.transpose()?;
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        // Before the first look: what comes after that wakes it.
        let mut watch = RefWatch::new(repository.common_dir(), ledger.refname());
        let tip = ledger.tip()?;
        if let Some(key) = &issue
            && tip.issue(key)?.issue()?.is_none()
        {
            return Err(Refusal::NoIssue { issue: key.clone() }.into());
        }
        let mut seen = match &self.from {
            None if self.all => None,
            None => Some(tip.commit()),
            Some(text) => Some(named(&repository, text)?),
        };
        let history = Repository::open_for_history()?;
        let waker = watch.waker();
        let interruption = Interruption::catch({
            let waker = waker.clone();
            move || waker.wake()
        });
        let interruption = interruption.map_err(|error| {
            let text = format!("signals cannot be caught: {error}");
            Failure::new(exit::ENVIRONMENT, "signals", text)
        })?;
        interruption.or_reader_gone(move || waker.wake());
        if !self.once
            && let Some(trouble) = watch.trouble()
        {
            output.say(&format!("looking at the branch every second: {trouble}"));
        }
        let mut newest = tip.commit();
        loop {
            if seen != Some(newest) {
                let commits = commits_after(&history, seen, newest);
                for id in commits.map_err(|error| self.lost(&ledger, error))? {
                    let text = self.lines(&history, id, issue.as_ref())?;
                    let is_read = output.stream(text.as_bytes())?;
                    if !is_read || interruption.asked().load(Ordering::SeqCst) {
                        return Ok(());
                    }
                    seen = Some(id);
                }
            }
            if self.once || interruption.asked().load(Ordering::SeqCst) {
                return Ok(());
            }
            watch.wait(None);
            newest = ledger.tip_id()?.ok_or_else(|| gone(&ledger, seen))?;
        }
    }

    /// The lines about a commit.
    fn lines(
        &self,
        history: &Repository,
        id: ObjectId,
        issue: Option<&IssueKey>,
    ) -> Result<String, Failure> {
        let commit = history.commit(id).map_err(LedgerError::from)?;
        let mut all = happenings(history, &commit)?;
        all.retain(|h| issue.is_none() || h.issue.as_ref() == issue);
        all.retain(|h| self.involved.as_ref().is_none_or(|agent| h.concerns(agent)));
        let (commit, of, mut text) = (id.to_string(), all.len(), String::new());
        for (i, happening) in all.iter().enumerate() {
            let line = Line {
                schema: SCHEMA,
                commit: &commit,
                n: i + 1,
                of,
                happening,
            };
            let line = serde_json::to_string(&line).unwrap_or_default();
            // Writing into a text can't fail.
            let _ = writeln!(text, "{line}");
        }
        Ok(text)
    }

    fn lost(&self, ledger: &Ledger<'_>, error: FollowError) -> Failure {
        let message = error.to_string();
        let branch = ledger.branch();
        match error {
            FollowError::CutOff(_) => Failure::new(exit::NOT_FOUND, "shallow", message)
                .hint(format!("{DEEPEN}; or watch from now on: git handoff watch")),
            FollowError::NotInHistory(_) => {
                let failure = Failure::new(exit::INTEGRITY, "not_in_history", message);
                failure.hint(format!("see what the branch holds: git log {branch}; from its beginning: git handoff watch --all"))
            }
            FollowError::Ledger(error) => error.into(),
        }
    }
}

fn named(repository: &Repository, text: &str) -> Result<ObjectId, Failure> {
    repository.commit_named(text)?.ok_or_else(|| {
        let text = format!("there is no commit {} here", quoted(text));
        Failure::new(exit::NOT_FOUND, "no_commit", text)
            .hint("take the `commit` of a line that `git handoff watch` printed")
    })
}

fn gone(ledger: &Ledger<'_>, seen: Option<ObjectId>) -> Failure {
    let text = format!("branch {} was deleted", ledger.branch());
    let failure = Failure::new(exit::ENVIRONMENT, "no_ledger", text);
    match seen {
        Some(seen) => failure.hint(format!(
            "once it is back, go on with: git handoff watch --from {seen}"
        )),
        None => failure,
    }
}
