use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, FixedOffset};
use clap::Args;
use serde_json::{Value, json};

use crate::cli::context::{Context, remote_named};
use crate::cli::environment::SystemClock;
use crate::cli::error::{Failure, chain};
use crate::cli::interruption::Interruption;
use crate::cli::output::{Output, state};
use crate::cli::{duration, exit, render};
use crate::git::{ObjectId, Patience, RefWatch, Remote, RemoteError, Repository, to_second};
use crate::ids::{AgentName, HandoffId, IssueKey, quoted};
use crate::ledger::{
    Clock, Issue, IssueStatus, Ledger, Moment, Outcome, Record, Refusal, Snapshot, Standing, View,
    ready,
};

/// Wait until handoffs or issues are done, or until there is something to claim
///
/// A handoff ends the wait when it is completed (exit 0), or when it failed, died,
/// was rejected or was cancelled (exit 1); work whose lease ran out has failed. An
/// issue ends it when it is completed, or when nothing in it moves any more: no
/// handoff that somebody works on, could claim or could send on, and no question
/// open. Of several, all must end. Exits 7 when the time is up.
///
/// Returns at once when something changes on this machine, and within the poll
/// interval when it changes on a remote.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff wait 123.4
  git handoff wait 123 124 --timeout 30m
  git handoff wait --inbox --as fixer-agent
  git handoff wait 123.4 --remote origin --poll 10s --timeout 1h")]
pub(crate) struct Arguments {
    /// Handoffs (123.4) and issues (123)
    #[arg(value_name = "TARGET", required_unless_present = "inbox")]
    targets: Vec<String>,
    /// Wait until something can be claimed by the acting agent
    #[arg(long, conflicts_with = "targets")]
    inbox: bool,
    /// Of several, wait for the first that ends
    #[arg(long)]
    any: bool,
    /// Also end, with exit 1, when an answer is needed to go on
    #[arg(long)]
    blocked: bool,
    /// Give up after this time: 90s, 5m, 1h30m; without it, never
    #[arg(long, value_name = "DURATION", value_parser = duration::any)]
    timeout: Option<Duration>,
    /// Look at the ledger of this remote instead of the one here; changes no ref
    #[arg(long, value_name = "REMOTE")]
    remote: Option<String>,
    /// How often to look at the remote
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "5s", requires = "remote")]
    poll: Duration,
}

/// What is waited for.
enum Target {
    Handoff(HandoffId),
    Issue(IssueKey),
    Inbox(AgentName),
}

/// A target as it was seen.
struct Seen {
    standing: Standing,
    data: Value,
    text: String,
    /// How it stands, for a sentence about it.
    told: String,
    /// What may be done now.
    next: Option<String>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let start = Instant::now();
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let clock = SystemClock::from_environment()?;
        let targets = self.targets(context, &repository)?;
        let mut source = Source::open(self, &repository, &ledger, start)?;
        let mut last: Option<(ObjectId, Vec<Seen>)> = None;
        loop {
            let mut wake = None;
            if let Some(tip) = source.tip(output)? {
                let now = clock.author();
                let mut seen = Vec::with_capacity(targets.len());
                for target in &targets {
                    seen.push(look(&tip, target, to_second(now))?);
                }
                if self.is_over(&seen) {
                    return self.report(tip.commit(), &seen, start, output);
                }
                wake = seen.iter().filter_map(|s| s.standing.wake).min();
                last = Some((tip.commit(), seen));
            }
            let left = self.timeout.map(|t| t.saturating_sub(start.elapsed()));
            if left == Some(Duration::ZERO) {
                return Err(self.timed_out(last, start, &source));
            }
            let pauses = [left, wake.map(|wake| until(wake, clock.author()))];
            source.pause(pauses.into_iter().flatten().min(), output);
        }
    }

    fn targets(&self, context: &Context, repository: &Repository) -> Result<Vec<Target>, Failure> {
        if self.inbox {
            return Ok(vec![Target::Inbox(context.acting_agent(repository)?)]);
        }
        let target = |text: &String| {
            Ok(if text.contains('.') {
                Target::Handoff(text.parse()?)
            } else {
                Target::Issue(text.parse()?)
            })
        };
        self.targets.iter().map(target).collect()
    }

    fn is_over(&self, seen: &[Seen]) -> bool {
        let mut ended = seen.iter().map(|s| self.ends(s.standing.outcome));
        if self.any {
            ended.any(|ended| ended)
        } else {
            ended.all(|ended| ended)
        }
    }

    fn ends(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Completed | Outcome::Failed => true,
            Outcome::Blocked => self.blocked,
            Outcome::Waiting => false,
        }
    }

    fn report(
        &self,
        commit: ObjectId,
        seen: &[Seen],
        start: Instant,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let ended = || seen.iter().filter(|s| self.ends(s.standing.outcome));
        let bad = ended().find(|s| s.standing.outcome != Outcome::Completed);
        let data = data(Some((commit, seen)), start);
        let text: String = ended().map(|s| s.text.as_str()).collect();
        let Some(bad) = bad else {
            output.answer(&data, &text)?;
            for next in ended().filter_map(|s| s.next.as_ref()) {
                output.say(&format!("next: {next}"));
            }
            return Ok(());
        };
        if output.is_json() {
            let failure = Failure::new(exit::NO, "wait_failed", bad.told.clone()).data(data);
            return Err(match &bad.next {
                Some(next) => failure.hint(format!("see `{next}`")),
                None => failure,
            });
        }
        output.raw(text.as_bytes())?;
        if let Some(next) = &bad.next {
            output.say(&format!("next: {next}"));
        }
        Err(Failure::reported(exit::NO))
    }

    fn timed_out(
        &self,
        last: Option<(ObjectId, Vec<Seen>)>,
        start: Instant,
        source: &Source<'_, '_>,
    ) -> Failure {
        let seen = last.as_ref().map(|(commit, seen)| (*commit, &seen[..]));
        let waiting = last.iter().flat_map(|(_, seen)| seen);
        let waiting = waiting.filter(|s| !self.ends(s.standing.outcome));
        let told: Vec<&str> = waiting.map(|s| s.told.as_str()).collect();
        let mut text = "the time is up".to_owned();
        if !told.is_empty() {
            text += &format!(": {}", told.join(", "));
        }
        if let Some(trouble) = source.trouble() {
            text += &format!("; the remote could not be read: {trouble}");
        }
        Failure::new(exit::TIMED_OUT, "timed_out", text)
            .hint("nothing was changed; the same command waits on")
            .data(data(seen, start))
    }
}

/// What is answered: where everything stands.
fn data(seen: Option<(ObjectId, &[Seen])>, start: Instant) -> Value {
    let waited = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (commit, targets) = match seen {
        Some((commit, seen)) => {
            let targets: Vec<&Value> = seen.iter().map(|s| &s.data).collect();
            (Some(commit.to_string()), json!(targets))
        }
        None => (None, json!([])),
    };
    json!({ "waited_ms": waited, "commit": commit, "targets": targets })
}

/// How long it is until a moment; never more than a minute, since a clock can be
/// set, and a machine can sleep.
fn until(wake: Moment, now: DateTime<FixedOffset>) -> Duration {
    let left = wake.signed_duration_since(now).to_std();
    left.unwrap_or(Duration::ZERO)
        .clamp(Duration::from_millis(1), Duration::from_secs(60))
}

fn look(tip: &Snapshot<'_>, target: &Target, now: Moment) -> Result<Seen, Failure> {
    match target {
        Target::Handoff(id) => Ok(handoff(&found(tip, id)?, now)),
        Target::Issue(key) => {
            let folder = tip.issue(key)?;
            let no_issue = || Refusal::NoIssue { issue: key.clone() };
            let issue = folder.issue()?.ok_or_else(no_issue)?;
            let open = issue.open.iter().map(|open| found(tip, &open.id));
            let open: Result<Vec<Record>, Failure> = open.collect();
            let newest = found(tip, &HandoffId::new(key.clone(), issue.handoffs))?;
            let standing = issue.standing(&open?, &newest, now);
            Ok(whole(&issue, standing))
        }
        Target::Inbox(agent) => inbox(tip, agent, now),
    }
}

fn found(tip: &Snapshot<'_>, id: &HandoffId) -> Result<Record, Failure> {
    let folder = tip.issue(id.issue())?;
    if folder.issue()?.is_none() {
        let issue = id.issue().clone();
        return Err(Refusal::NoIssue { issue }.into());
    }
    let record = folder.record(id.number())?;
    Ok(record.ok_or_else(|| Refusal::NoHandoff { id: id.clone() })?)
}

fn handoff(record: &Record, now: Moment) -> Seen {
    let (id, standing) = (&record.id, record.standing(now));
    let current = record.state_at(now);
    let expired = current != record.state;
    let ran_out = if expired {
        " [TIMEOUT]: its lease ran out"
    } else {
        ""
    };
    let next = match standing.outcome {
        Outcome::Completed | Outcome::Waiting => None,
        Outcome::Failed | Outcome::Blocked => Some(format!("git handoff show {id}")),
    };
    let mut text = format!(
        "{id} {} → {}: {}{ran_out}\n",
        record.from,
        record.to,
        state(current)
    );
    if let Some(latest) = record.latest().filter(|_| !expired) {
        text += &render::transition_text(latest);
    }
    Seen {
        data: json!({
            "issue": id.issue(),
            "id": id,
            "agent": record.to,
            "state": current,
            "outcome": standing.outcome,
            "expired": expired,
            "by": standing.by,
            "record": record,
        }),
        standing,
        text,
        told: format!("{id} is {current}{ran_out}"),
        next,
    }
}

fn whole(issue: &Issue, standing: Standing) -> Seen {
    let key = &issue.issue;
    let ids: Vec<String> = standing.by.iter().map(ToString::to_string).collect();
    let ids = ids.join(", ");
    let told = match standing.outcome {
        Outcome::Completed if issue.status == IssueStatus::Completed => "is completed".to_owned(),
        Outcome::Completed => "is done: nothing in it is open".to_owned(),
        Outcome::Failed => format!("does not go on: {ids}"),
        Outcome::Blocked => format!("waits for an answer: {ids}"),
        Outcome::Waiting => format!("goes on: {ids}"),
    };
    let told = format!("issue {key} {told}");
    let ended = standing.outcome == Outcome::Completed;
    Seen {
        data: json!({
            "issue": key,
            "id": null,
            "agent": null,
            "state": issue.status,
            "outcome": standing.outcome,
            "expired": false,
            "by": standing.by,
            "record": null,
        }),
        standing,
        text: format!("{told}\n"),
        told,
        next: (!ended).then(|| format!("git handoff status {key}")),
    }
}

fn inbox(tip: &Snapshot<'_>, agent: &AgentName, now: Moment) -> Result<Seen, Failure> {
    let found = ready(tip, agent, now)?;
    let record = found.first.as_ref().map(|id| self::found(tip, id));
    let record = record.transpose()?;
    let outcome = match &record {
        Some(_) => Outcome::Completed,
        None => Outcome::Waiting,
    };
    let (told, text) = match &record {
        Some(record) => (String::new(), format!("{}\n", render::headline(record))),
        None => (format!("nothing can be claimed by {agent}"), String::new()),
    };
    let next = found.first.as_ref();
    Ok(Seen {
        data: json!({
            "issue": next.map(HandoffId::issue),
            "id": next,
            "agent": agent,
            "state": record.as_ref().map(|r| r.state),
            "outcome": outcome,
            "expired": false,
            "by": next.into_iter().collect::<Vec<_>>(),
            "record": record,
        }),
        standing: Standing {
            outcome,
            by: next.cloned().into_iter().collect(),
            wake: found.later.map(|(at, _)| at),
        },
        text,
        told,
        next: next.map(|_| format!("git handoff claim --next --as {agent}")),
    })
}

/// Where the ledger is looked at.
enum Source<'a, 'r> {
    Here(&'a Ledger<'r>, RefWatch, bool),
    There(Box<There<'r>>),
}

/// The ledger of a remote.
struct There<'r> {
    repository: &'r Repository,
    remote: Remote,
    name: String,
    branch: String,
    poll: Duration,
    deadline: Option<Instant>,
    interruption: Interruption,
    known: Option<ObjectId>,
    trouble: Option<String>,
}

impl<'a, 'r> Source<'a, 'r> {
    fn open(
        arguments: &Arguments,
        repository: &'r Repository,
        ledger: &'a Ledger<'r>,
        start: Instant,
    ) -> Result<Self, Failure> {
        let Some(name) = &arguments.remote else {
            let watch = RefWatch::new(repository.common_dir(), ledger.refname());
            return Ok(Self::Here(ledger, watch, false));
        };
        let name = &remote_named(repository, name.clone())?;
        let main = thread::current();
        let interruption = Interruption::catch(move || main.unpark()).map_err(|error| {
            let text = format!("signals cannot be caught: {error}");
            Failure::new(exit::ENVIRONMENT, "signals", text)
        })?;
        Ok(Self::There(Box::new(There {
            repository,
            remote: Remote::new(repository, name, ledger.refname()),
            name: name.clone(),
            branch: ledger.branch().to_owned(),
            poll: arguments.poll,
            deadline: arguments.timeout.and_then(|t| start.checked_add(t)),
            interruption,
            known: None,
            trouble: None,
        })))
    }

    /// The newest state that can be had; none if none could be had yet.
    fn tip(&mut self, output: &mut Output) -> Result<Option<Snapshot<'r>>, Failure> {
        match self {
            Self::Here(ledger, ..) => Ok(Some(ledger.tip()?)),
            Self::There(there) => there.tip(output),
        }
    }

    /// Waits until there may be something new, or for this long.
    fn pause(&mut self, limit: Option<Duration>, output: &mut Output) {
        match self {
            Self::Here(_, watch, told) => {
                if let Some(trouble) = watch.trouble().filter(|_| !*told) {
                    output.say(&format!("looking at the branch every second: {trouble}"));
                    *told = true;
                }
                watch.wait(limit);
            }
            Self::There(there) => {
                let limit = limit.map_or(there.poll, |limit| limit.min(there.poll));
                thread::park_timeout(limit);
            }
        }
    }

    fn trouble(&self) -> Option<&str> {
        match self {
            Self::Here(..) => None,
            Self::There(there) => there.trouble.as_deref(),
        }
    }
}

impl<'r> There<'r> {
    fn tip(&mut self, output: &mut Output) -> Result<Option<Snapshot<'r>>, Failure> {
        match self.newest() {
            Ok(None) => {
                let text = format!("{} has no branch {}", quoted(&self.name), self.branch);
                return Err(Failure::new(exit::ENVIRONMENT, "no_ledger", text)
                    .hint("name the ledger's branch there with --branch"));
            }
            Ok(Some(id)) => {
                self.known = Some(id);
                self.trouble = None;
            }
            Err(error @ RemoteError::NoGit(_)) => {
                return Err(Failure::new(exit::ENVIRONMENT, "no_git", chain(&error))
                    .hint("a remote is read with the `git` command: put it on the PATH"));
            }
            Err(RemoteError::Interrupted) => {}
            // The last look was cut short, and an earlier one says more.
            Err(RemoteError::TimedOut) if self.is_late() && self.was_read_or_refused() => {}
            Err(error) => {
                let trouble = chain(&error);
                if self.trouble.as_ref() != Some(&trouble) {
                    output.say(&format!(
                        "{} cannot be read, trying on: {trouble}",
                        self.name
                    ));
                    self.trouble = Some(trouble);
                }
            }
        }
        // By now nothing runs that would be left behind.
        if self
            .interruption
            .asked()
            .load(std::sync::atomic::Ordering::SeqCst)
        {
            self.interruption.pass_on();
        }
        let known = self
            .known
            .map(|id| Snapshot::at(self.repository, id, &self.branch));
        Ok(known.transpose()?)
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|end| Instant::now() >= end)
    }

    fn was_read_or_refused(&self) -> bool {
        self.known.is_some() || self.trouble.is_some()
    }

    /// Where the branch is there, once its objects are here.
    fn newest(&self) -> Result<Option<ObjectId>, RemoteError> {
        let patience = Patience {
            deadline: self.deadline,
            interrupted: self.interruption.asked(),
        };
        let newest = self.remote.tip(&patience)?;
        if let Some(id) = newest
            && !self.repository.has(id)
        {
            self.remote.fetch(self.known, &patience)?;
        }
        Ok(newest)
    }
}
