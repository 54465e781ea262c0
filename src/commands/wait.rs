use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chrono::{DateTime, FixedOffset};
use clap::Args;
use handoff::base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff::base::text::continued;
use handoff::base::{Moment, ObjectId};
use handoff::git::Repository;
use handoff::ledger::{OverviewLimits, Snapshot, claimable, overview};
use handoff::model::planner::Holder;
use handoff::model::{
    Detail, Handoff, Issue, IssueStatus, IssueSummary, Outcome, Record, Refusal, View, WaitStatus,
};
use handoff::protocol::{Protocol, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::duration;
use crate::args::remote::PollArgs;
use crate::context::interruption::Interruption;
use crate::context::lookout::{Lookout, Place};
use crate::context::{Context, remote_named};
use crate::environment::SystemClock;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output};
use crate::view::{Look, colored};
use crate::{exit, render};

/// Wait until handoffs or issues are done, or until something waits for you
///
/// A handoff ends the wait when it is completed (exit 0), or when it is failed, dead, rejected or
/// cancelled, or its time ran out (exit 1). An issue ends it when it is completed, or can no longer
/// progress: nothing in it is worked on, can be claimed or is to be answered. With several targets, all
/// must end. With --inbox, it ends when you can claim something, when it is your turn, or when a
/// request of yours ends that was open. Exits 7 on timeout.
///
/// Returns as soon as something changes here; a remote (handoff.remote) is polled. At the end, the
/// branch here has what was fetched, unless steps here are not on the remote yet: then `git handoff
/// sync`.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff wait 123.4
  git handoff wait 123 124 --timeout 30m
  git handoff wait --inbox --as fixer-agent
  git handoff wait 123.4 --poll 10s --timeout 1h   (polls its remote)
  git handoff wait 123.4 --remote origin      (until origin has it)")]
pub(crate) struct Arguments {
    /// Handoffs (123.4) and issues (123)
    #[arg(value_name = "TARGET", required_unless_present = "inbox")]
    targets: Vec<String>,
    /// Wait until the acting agent can claim something or something else needs it
    #[arg(long, conflicts_with = "targets")]
    inbox: bool,
    /// Wait for the first target to end, instead of all
    #[arg(long)]
    any: bool,
    /// Also end, with exit 1, when an answer is needed to continue
    #[arg(long)]
    blocked: bool,
    /// Give up after this time: 90s, 5m, 1h30m; by default never
    #[arg(long, value_name = "DURATION", value_parser = duration::any)]
    timeout: Option<Duration>,
    /// Look only at the ledger of this remote, given by name or address
    #[arg(long, value_name = "REMOTE", conflicts_with = "offline")]
    remote: Option<String>,
    #[command(flatten)]
    looks: PollArgs,
}

/// A target of the wait.
enum Target {
    Handoff(HandoffId),
    Issue(IssueKey),
    Inbox(Inbox),
}

/// The inbox that is waited for.
struct Inbox {
    agent: AgentName,
    worker: Option<WorkerId>,
}

/// The state of the targets.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Wait")]
pub(crate) struct WaitView<'a> {
    /// how long it took, in milliseconds
    waited_ms: u64,
    /// the last ledger commit that was read, here or on the remote, whichever is newer; null if there
    /// was none
    commit: Option<ObjectId>,
    /// why the remote can't be read now; then this is the state of the ledger here, or of the remote
    /// when last read
    trouble: Option<&'a str>,
    /// what was waited for, in the order of the arguments
    targets: &'a [Seen],
    /// The text about those that ended.
    #[serde(skip)]
    text: String,
}

impl<'a> WaitView<'a> {
    fn new(
        commit: Option<ObjectId>,
        targets: &'a [Seen],
        lookout: &'a Lookout<'_>,
        start: Instant,
    ) -> Self {
        Self {
            waited_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            commit,
            trouble: lookout.trouble(),
            targets,
            text: String::new(),
        }
    }
}

impl Answer for WaitView<'_> {
    fn text(&self, _: &Look) -> String {
        self.text.clone()
    }
}

/// The last observation of a target.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WaitTarget")]
struct Seen {
    /// the issue; null for a handoff and an inbox
    issue: Option<IssueSummary>,
    /// the handoff: the named one, or the first in the inbox that can be claimed or needs the agent;
    /// null for an issue, and while nothing waits in an inbox
    handoff: Option<Handoff>,
    /// what else is stored of the handoff
    record: Option<Detail<Record>>,
    /// whose inbox it is
    agent: Option<AgentName>,
    /// `completed`, `failed`, `blocked` or `waiting`; an inbox in which something waits is `completed`,
    /// and a handoff that expired is `failed`, even before that is recorded
    outcome: Outcome,
    /// the handoffs that determine the outcome
    by: Vec<HandoffId>,
    /// The moment at which it changes without a step.
    #[serde(skip)]
    wake: Option<Moment>,
    #[serde(skip)]
    text: String,
    /// Its state, as part of a sentence.
    #[serde(skip)]
    state_text: String,
    /// The command to run next.
    #[serde(skip)]
    next: Option<String>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let start = Instant::now();
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let targets = self.targets(context, &repository)?;
        output.carry(match ledger.tip() {
            Ok(tip) => context.carried_at(&repository, &tip),
            // The ledger may be created or fetched before the wait ends.
            Err(_) => context.carried(&repository),
        });
        let place = match &self.remote {
            Some(name) => Place::There(remote_named(&repository, name.clone())?),
            None if self.looks.offline => Place::Here,
            None => Place::Both(context.remote(&repository)?),
        };
        let deadline = self.timeout.and_then(|t| start.checked_add(t));
        let mut lookout = Lookout::open(ledger, place, self.looks.poll, deadline)?;
        let interruption = context.interruption(&lookout)?;
        let ended = self.wait(&mut lookout, &targets, interruption.as_ref(), start, output);
        if ended.is_err() {
            lookout.leave_fetched();
        }
        ended
    }

    /// Waits, and prints the result.
    fn wait(
        &self,
        lookout: &mut Lookout<'_>,
        targets: &[Target],
        interruption: Option<&Interruption>,
        start: Instant,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let clock = SystemClock::from_environment()?;
        let mut last: Option<(ObjectId, Vec<Seen>)> = None;
        loop {
            let left = self.timeout.map(|t| t.saturating_sub(start.elapsed()));
            let is_last = left == Some(Duration::ZERO);
            if is_last {
                lookout.finish();
            }
            let tips = lookout.tips(output)?;
            if let Some(interruption) = interruption
                && interruption.requested().load(Ordering::SeqCst)
            {
                lookout.leave_fetched();
                lookout.stop();
                interruption.pass_on();
                return Err(
                    Failure::new(ErrorCode::Interrupted, "the wait was interrupted")
                        .hint("nothing was changed; run the command again to keep waiting"),
                );
            }
            let now = clock.earlier();
            let mut wake = None;
            if let Some(seen) = self.seen(&tips, targets, Moment::from(now), lookout.is_read())? {
                if self.is_over(&seen) {
                    lookout.leave_fetched();
                    return self.report(&tips, &seen, lookout, start, output);
                }
                wake = seen.iter().filter_map(|s| s.wake).min();
                last = tips.first().map(|tip| (tip.commit(), seen));
            }
            if is_last {
                return Err(self.timed_out(last, start, lookout));
            }
            let pauses = [left, wake.map(|wake| until(wake, clock.earlier()))];
            lookout.pause(pauses.into_iter().flatten().min(), output);
        }
    }

    /// The state of each target; `None` if one is missing, perhaps because the remote could not be
    /// read.
    fn seen(
        &self,
        tips: &[Snapshot<'_>],
        targets: &[Target],
        now: Moment,
        all_read: bool,
    ) -> Result<Option<Vec<Seen>>, Failure> {
        let mut seen = Vec::with_capacity(targets.len());
        for target in targets {
            match self.seen_in(tips, target, now) {
                Ok(Some(found)) => seen.push(found),
                Ok(None) => return Ok(None),
                Err(failure) if failure.exit == exit::NOT_FOUND && !all_read => return Ok(None),
                Err(failure) => return Err(failure),
            }
        }
        Ok(Some(seen))
    }

    /// The state of a target in the tip where it ended, or else in the first tip that has it.
    fn seen_in(
        &self,
        tips: &[Snapshot<'_>],
        target: &Target,
        now: Moment,
    ) -> Result<Option<Seen>, Failure> {
        let (mut found, mut missing) = (None, None);
        for tip in tips {
            match target_state(tip, target, now) {
                Ok(seen) if self.ends(seen.outcome) => return Ok(Some(seen)),
                Ok(seen) => found = found.or(Some(seen)),
                Err(failure) if failure.exit == exit::NOT_FOUND => missing = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        match (found, missing) {
            (None, Some(failure)) => Err(failure),
            (found, _) => Ok(found),
        }
    }

    fn targets(&self, context: &Context, repository: &Repository) -> Result<Vec<Target>, Failure> {
        if self.inbox {
            let worker = context.worker(repository)?.map(|worker| worker.id);
            return Ok(vec![Target::Inbox(Inbox {
                agent: context.acting_agent(repository)?,
                worker,
            })]);
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
        let mut ended = seen.iter().map(|s| self.ends(s.outcome));
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
        tips: &[Snapshot<'_>],
        seen: &[Seen],
        lookout: &Lookout<'_>,
        start: Instant,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let ended = || seen.iter().filter(|s| self.ends(s.outcome));
        let bad = ended().find(|s| s.outcome != Outcome::Completed);
        let commit = tips.first().map(Snapshot::commit);
        let mut view = WaitView::new(commit, seen, lookout, start);
        view.text.extend(ended().map(|s| s.text.as_str()));
        let Some(bad) = bad else {
            output.answer(&view)?;
            for next in ended().filter_map(|s| s.next.as_ref()) {
                let next = output.command(next);
                output.say(&format!("next: {next}"));
            }
            return Ok(());
        };
        if output.is_json() {
            let failure = Failure::new(ErrorCode::WaitFailed, bad.state_text.clone()).data(&view);
            return Err(match &bad.next {
                Some(next) => failure.hint(format!("see `{next}`")),
                None => failure,
            });
        }
        output.raw(view.text.as_bytes())?;
        if let Some(next) = &bad.next {
            let next = output.command(next);
            output.say(&format!("next: {next}"));
        }
        Err(Failure::reported(exit::NO))
    }

    fn timed_out(
        &self,
        last: Option<(ObjectId, Vec<Seen>)>,
        start: Instant,
        lookout: &Lookout<'_>,
    ) -> Failure {
        let (commit, seen) = match last {
            Some((commit, seen)) => (Some(commit), seen),
            None => (None, Vec::new()),
        };
        let waiting = seen.iter().filter(|s| !self.ends(s.outcome));
        let state_text: Vec<&str> = waiting.map(|s| s.state_text.as_str()).collect();
        let mut text = "timed out".to_owned();
        if !state_text.is_empty() {
            text += &format!(": {}", state_text.join(", "));
        }
        if let Some(trouble) = lookout.trouble() {
            text += &format!("; the remote could not be read: {trouble}");
        }
        Failure::new(ErrorCode::TimedOut, text)
            .hint("nothing was changed; run the command again to keep waiting")
            .data(&WaitView::new(commit, &seen, lookout, start))
    }
}

/// The time until `wake`, at most a minute, because clocks can be set and machines can sleep.
fn until(wake: Moment, now: DateTime<FixedOffset>) -> Duration {
    let left = wake.signed_duration_since(now).to_std();
    left.unwrap_or(Duration::ZERO)
        .clamp(Duration::from_millis(1), Duration::from_secs(60))
}

fn target_state(tip: &Snapshot<'_>, target: &Target, now: Moment) -> Result<Seen, Failure> {
    match target {
        Target::Handoff(id) => Ok(handoff(found(tip, id)?, now)),
        Target::Issue(key) => {
            let folder = tip.issue(key)?;
            let no_issue = || Refusal::no_issue(key);
            let issue = folder.issue()?.ok_or_else(no_issue)?;
            let open = issue.open.iter().map(|open| found(tip, &open.id));
            let open: Result<Vec<Record>, Failure> = open.collect();
            let newest = found(tip, &HandoffId::new(key.clone(), issue.handoffs))?;
            let status = issue.wait_status(&open?, &newest, now);
            Ok(issue_state(&issue, status))
        }
        Target::Inbox(inbox) => inbox.state(tip, now),
    }
}

fn found(tip: &Snapshot<'_>, id: &HandoffId) -> Result<Record, Failure> {
    let folder = tip.issue(id.issue())?;
    if folder.issue()?.is_none() {
        let issue = id.issue().clone();
        return Err(Refusal::no_issue(&issue).into());
    }
    let record = folder.record(id.number())?;
    Ok(record.ok_or_else(|| Refusal::no_handoff(id))?)
}

fn handoff(record: Record, now: Moment) -> Seen {
    let (id, status) = (&record.id, record.wait_status(now));
    let current = record.state_at(now);
    let expired = current != record.state;
    let ran_out = match record.state {
        _ if !expired => "",
        State::Pending => " [NOT_ACKNOWLEDGED]: nobody claimed it in time",
        _ => " [TIMEOUT]: its lease ran out",
    };
    let next = match status.outcome {
        Outcome::Completed | Outcome::Waiting => None,
        Outcome::Failed | Outcome::Blocked => Some(format!("git handoff show {id}")),
    };
    let mut text = format!(
        "{id} {} → {}: {}{ran_out}\n",
        record.from,
        record.to,
        colored(current)
    );
    if let Some(latest) = record.latest().filter(|_| !expired) {
        text += &render::transition_text(latest, &Look::plain(now));
    }
    Seen {
        issue: None,
        agent: None,
        outcome: status.outcome,
        by: status.by,
        wake: status.wake,
        text,
        state_text: format!("{id} is {current}{ran_out}"),
        next,
        handoff: Some(Handoff::new(&record, now)),
        record: Some(Detail(record)),
    }
}

fn issue_state(issue: &Issue, status: WaitStatus) -> Seen {
    let key = &issue.issue;
    let ids: Vec<String> = status.by.iter().map(ToString::to_string).collect();
    let ids = ids.join(", ");
    let state_text = match status.outcome {
        Outcome::Completed => "is completed".to_owned(),
        Outcome::Failed if issue.status == IssueStatus::Cancelled => "is cancelled".to_owned(),
        Outcome::Failed => format!("cannot continue: {ids}"),
        Outcome::Blocked => format!("waits for an answer: {ids}"),
        Outcome::Waiting => format!("is still open: {ids}"),
    };
    let state_text = format!("issue {key} {state_text}");
    let ended = status.outcome == Outcome::Completed;
    Seen {
        issue: Some(IssueSummary::from(issue)),
        agent: None,
        outcome: status.outcome,
        by: status.by,
        handoff: None,
        record: None,
        wake: status.wake,
        text: format!("{state_text}\n"),
        state_text,
        next: (!ended).then(|| format!("git handoff status {key}")),
    }
}

impl Inbox {
    /// The handoff that the agent can claim, else one that needs it, else an answered request of
    /// its own.
    fn state(&self, tip: &Snapshot<'_>, now: Moment) -> Result<Seen, Failure> {
        let agent = &self.agent;
        let queue = claimable(tip, agent, now)?;
        let mut protocols = Vec::new();
        for name in tip.protocols()? {
            protocols.push(tip.rules(&name)?.protocol().clone());
        }
        let known: Vec<&Protocol> = protocols.iter().collect();
        let name = known
            .iter()
            .find_map(|p| Some(&p.agent(agent.as_str())?.id));
        let who = Holder {
            agent: name.unwrap_or(agent),
            worker: self.worker.as_ref(),
        };
        let overview = overview(tip, who, &known, now, OverviewLimits::ALL)?;
        let mut own = overview.attention.iter();
        let needed = own.find(|one| one.is_up_to(who.agent, &known));
        let later = queue.later.map(|(at, _)| at);
        let wake = [later, overview.next_change].into_iter().flatten().min();
        let (text, next, id) = match (queue.first, needed) {
            (Some(id), _) => {
                let text = format!("{}\n", render::headline(&found(tip, &id)?));
                let next = format!("git handoff claim --next --as {agent}");
                (text, next, Some(id))
            }
            (None, Some(one)) => {
                let why = continued(&one.why);
                let text = format!("{} {}: {why}\n", one.id, one.what());
                (text, one.next.clone(), Some(one.id.clone()))
            }
            (None, None) => (String::new(), String::new(), None),
        };
        self.seen(tip, (text, next, id), (now, wake))
    }

    /// The observation, with the handoff that ends the wait, if any.
    fn seen(
        &self,
        tip: &Snapshot<'_>,
        (text, next, id): (String, String, Option<HandoffId>),
        (now, wake): (Moment, Option<Moment>),
    ) -> Result<Seen, Failure> {
        let record = id.as_ref().map(|id| found(tip, id)).transpose()?;
        let outcome = match &record {
            Some(_) => Outcome::Completed,
            None => Outcome::Waiting,
        };
        Ok(Seen {
            issue: None,
            agent: Some(self.agent.clone()),
            outcome,
            by: id.into_iter().collect(),
            wake,
            text,
            state_text: match record {
                Some(_) => String::new(),
                None => format!("nothing waits for {}", self.agent),
            },
            next: record.as_ref().map(|_| next),
            handoff: record.as_ref().map(|record| Handoff::new(record, now)),
            record: record.map(Detail),
        })
    }
}
