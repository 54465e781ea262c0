//! The commands that change one handoff's state and differ only in the event.

use clap::Args;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::text::quoted;
use handoff::contract::{Allowance, Input};
use handoff::ledger::attention::turn_in;
use handoff::ledger::{Ledger, Offer, Session, Snapshot};
use handoff::model::{
    EventArgs, Issue, IssueStatus, ModelUsage, Question, Record, Refusal, SendOptions, Update,
    View, another_attempt, may_give_up, state_at,
};
use handoff::protocol::{Event, State};

use crate::args::duration;
use crate::args::text::{self, OptionalReason, Reason};
use crate::commands::approve;
use crate::commands::each::{Target, Where, each, found, issues, of};
use crate::commands::fail::KeptArgs;
use crate::commands::send::deliver;
use crate::commands::set::ensure_linkable;
use crate::context::left_for_worker::BLOCKED;
use crate::context::writer::catch_up;
use crate::context::{Context, handoff_id};
use crate::contracts::input;
use crate::contracts::usage::UsageReport;
use crate::environment::{drawn, now};
use crate::failure::{Failure, hint};
use crate::output::Output;
use crate::render::receipt::ReceiptView;

/// Finish a handoff that you hold, without a contract
///
/// Sending a contract onward also finishes the handoff, in the same step. Use this command if
/// nothing is sent on, or if the contract follows later.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff complete 123.3 --as orchestrator --reason 'retried by hand'"
)]
pub(crate) struct Complete {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    why: OptionalReason,
    #[command(flatten)]
    usage: UsageReport,
    /// Your claim's token; others are refused
    #[arg(long, value_name = "N")]
    token: Option<u32>,
}

/// Block a handoff until you get the answer that you need
///
/// With --needs, you name the values that you need: `git handoff answer` then requires each by
/// its key, and refuses a value of another type.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff block 123.2 --as implementer-agent --reason 'which login page?'
  git handoff block 123.2 --as implementer-agent \\
      --reason 'two values are missing' \\
      --needs 'port:integer=the port of the test server' --needs 'host'")]
pub(crate) struct Block {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    why: Reason,
    /// A value that you need: KEY, KEY:TYPE or KEY:TYPE=PURPOSE; types are string, number,
    /// integer, boolean, list and object
    #[arg(long, value_name = "KEY[:TYPE][=TEXT]", value_parser = question)]
    needs: Vec<Question>,
    #[command(flatten)]
    usage: UsageReport,
    /// Your claim's token; others are refused
    #[arg(long, value_name = "N")]
    token: Option<u32>,
}

/// Give back a handoff that you hold, unfinished
///
/// Another claim takes it up at once, or after --after. This is no failure: it uses up no attempt,
/// and nobody is told. Use it when the work can't go on here and now: a provider's limit, no
/// network, a broken machine, a context that is full. What the work itself makes impossible is a
/// `fail`, a question is a `block`. With --snapshot, the issue keeps your unfinished work, as `fail`
/// does: the next claim shows it, and `git handoff restore` restores it.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff release 123.2 --as implementer-agent \\
      --reason 'rate limited' --after 15m
  git handoff release 123.2 --as implementer-agent \\
      --reason 'the context is full' --progress '3 of 7 tests pass' --snapshot")]
pub(crate) struct Release {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    why: Reason,
    /// How long nobody can claim it, such as 15m or 2h; at most the longest lease
    #[arg(long, value_name = "DURATION", value_parser = duration::seconds)]
    after: Option<u64>,
    /// The progress so far, for the next claim
    #[arg(long, short, value_name = "TEXT")]
    progress: Option<String>,
    #[command(flatten)]
    kept: KeptArgs,
    #[command(flatten)]
    usage: UsageReport,
    /// Your claim's token; others are refused
    #[arg(long, value_name = "N")]
    token: Option<u32>,
}

/// Give failed or dead work another attempt
///
/// It can be claimed again once the protocol's delay has passed. Its sender, its receiver or an
/// orchestrator can retry it.
///
/// A handoff is dead once its attempts are used up, or when it failed in a way that the protocol
/// does not retry. It gets new attempts, and its whole history is kept; this takes a reason.
///
/// With --with, its sender corrects the contract: a new handoff takes the place of what failed. It
/// keeps the contract's own id, goes on counting the attempts, and names what it replaces. A reason
/// becomes a note on that.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff retry 123.2 --as orchestrator \\
      --reason 'the module is published now'
  git handoff retry 123.2 --with corrected.xml
  git handoff retry --where 'to=fixer-agent' --as orchestrator \\
      --reason 'the provider is back'")]
pub(crate) struct Retry {
    /// The handoff
    #[arg(
        value_name = "ID",
        required_unless_present = "query",
        conflicts_with = "query"
    )]
    id: Option<String>,
    #[command(flatten)]
    which: Where,
    #[command(flatten)]
    why: OptionalReason,
    /// The corrected contract; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "query")]
    with: Option<String>,
    /// Accept text that a rule takes for a secret
    #[arg(long, value_name = "RULE[@PLACE]", requires = "with")]
    allow_secret: Vec<Allowance>,
}

/// Give a handoff to another agent
///
/// The handoff must have failed or be waiting for its receiver, and its sender must be allowed to
/// send the same contract to the other agent. Its sender, its receiver or an orchestrator can
/// reassign it.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff reassign 7b1c9f52-0d3e-4a86-9b14-6f2a5c8e7d10.1 --to human \\\n      --as orchestrator --reason 'no agent knows the rules'"
)]
pub(crate) struct Reassign {
    /// The handoff
    #[arg(
        value_name = "ID",
        required_unless_present = "query",
        conflicts_with = "query"
    )]
    id: Option<String>,
    #[command(flatten)]
    which: Where,
    /// The new receiver
    #[arg(long, value_name = "AGENT")]
    to: String,
    #[command(flatten)]
    why: OptionalReason,
}

/// Reject a handoff that is waiting for you
///
/// This ends the handoff; its sender may send again. A person can reject what is waiting for
/// anybody. If the work was taken up already, a person's reject changes no state: the gate stays
/// closed to this code until that person approves it.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff reject 123.2 --as implementer-agent \\\n      --reason 'the branch has no commits'"
)]
pub(crate) struct Reject {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    why: Reason,
}

/// Withdraw a handoff, or give up an issue in which nothing is open
///
/// This ends the handoff; its sender may send again. Its sender, its receiver or an orchestrator
/// can cancel it.
///
/// With an issue in which nothing is open, this ends the issue as cancelled: nobody is told of it
/// any more, and nothing can be added until `git handoff reopen`. The sender of its first handoff,
/// an agent that it awaits, an orchestrator or a person can give it up. It takes a reason: another
/// one than your cancel of a handoff had, since a cancel that is repeated writes nothing.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff cancel 123.2 --as prep-agent --reason 'wrong branch'
  git handoff cancel 124 --as issue-manager --reason 'no longer needed'
  git handoff cancel 124 --all --as orchestrator --reason 'the customer left'
  git handoff cancel 124 --duplicate-of 123 --as orchestrator
  git handoff cancel --where 'title~csv' --all --as orchestrator \\
      --reason 'dropped'")]
pub(crate) struct Cancel {
    /// The handoff, or the issue
    #[arg(
        value_name = "ID",
        required_unless_present = "query",
        conflicts_with = "query"
    )]
    id: Option<String>,
    #[command(flatten)]
    which: Where,
    /// All that is open in the issue, also what an agent works on, and the issue itself
    #[arg(long)]
    all: bool,
    /// The same, since this issue is about the same; both say so
    #[arg(long, value_name = "ISSUE", conflicts_with = "query")]
    duplicate_of: Option<String>,
    #[command(flatten)]
    why: OptionalReason,
}

/// The arguments of an event that takes only a reason.
fn because(reason: impl Into<Option<String>>) -> EventArgs {
    EventArgs {
        reason: reason.into(),
        ..EventArgs::default()
    }
}

/// Implements `run` for commands, from an event and its arguments.
macro_rules! changes {
    ($($command:ident: $event:ident, $args:expr, $usage:expr;)+) => {$(
        impl $command {
            /// Runs the command.
            ///
            /// # Errors
            /// A [`Failure`] with its exit code.
            pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
                let args: fn(&Self) -> EventArgs = $args;
                let usage: fn(&Self) -> Option<&UsageReport> = $usage;
                let usage = usage(self).map(|usage| usage.read(context)).transpose()?;
                let change_to = (Event::$event, args(self));
                change(context, output, &self.id, change_to, usage.unwrap_or_default())
            }
        }
    )+};
}

changes! {
    Complete: Complete, |a| EventArgs {
        token: a.token,
        ..because(a.why.reason.clone())
    }, |a| Some(&a.usage);
    Reject: Reject, |a| because(a.why.reason.clone()), |_| None;
}

impl Reassign {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let args = EventArgs {
            receiver: Some(context.named(&repository, &self.to)?),
            ..because(self.why.reason.clone())
        };
        let Some(id) = &self.id else {
            let args = EventArgs {
                reason: args.reason.as_deref().map(text::kept).transpose()?,
                ..args
            };
            let states = [State::Pending, State::Failed];
            return self.which.change(context, output, &states, |_, record| {
                Ok(Update::change(
                    record.id.number(),
                    Event::Reassign,
                    args.clone(),
                ))
            });
        };
        let change_to = (Event::Reassign, args);
        change(context, output, id, change_to, Vec::new())
    }
}

impl Retry {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let reason = self.why.reason.as_deref().map(text::kept).transpose()?;
        let jitter = drawn();
        let Some(id) = &self.id else {
            let states = [State::Failed, State::Dead];
            return self.which.change(context, output, &states, |tip, record| {
                let (event, args) = attempt(tip, Some(record), reason.clone(), jitter)?;
                Ok(Update::change(record.id.number(), event, args))
            });
        };
        if let Some(file) = &self.with {
            return self.corrected(context, output, (id, file), reason);
        }
        let repository = context.repository()?;
        let writer = context.requester(&repository, output)?;
        act(writer, context, output, id, |tip, id| {
            let record = tip.issue(id.issue())?.record(id.number())?;
            attempt(tip, record.as_ref(), reason, jitter)
        })
    }

    /// Sends the corrected contract. A reason is noted on the handoff that it replaces.
    fn corrected(
        &self,
        context: &Context,
        output: &mut Output,
        (id, file): (&str, &str),
        reason: Option<String>,
    ) -> Result<(), Failure> {
        let repository = context.repository()?;
        let (mut ledger, session) = context.writer(&repository, output)?;
        let agent = match &reason {
            Some(_) => Some(context.acting_agent(&repository)?),
            None => context.agent(&repository)?,
        };
        let bytes = input::contract(context, file)?;
        let id = handoff_id(&ledger.tip()?, id, agent.as_ref())?;
        let offer = Offer {
            input: &Input::read(&bytes),
            agent: agent.as_ref(),
            issue: Some(id.issue()),
            protocol: None,
            options: &SendOptions {
                replaces: Some(id.number()),
                allowed_secrets: self.allow_secret.clone(),
                ..SendOptions::default()
            },
            reports: None,
        };
        deliver(&mut ledger, &session, &offer, None, output)?;
        if let (Some(note), Some(agent)) = (reason, &agent) {
            let annotate = Update::Annotate {
                handoff: Some(id.number()),
                note,
                facts: serde_json::Map::new(),
                approval: None,
            };
            ledger.update(&session, agent, id.issue(), &annotate)?;
            output.follow(&ledger);
            output.say(&format!("the reason is noted on {id}"));
        }
        Ok(())
    }
}

/// The event that retries a handoff.
fn attempt(
    tip: &Snapshot<'_>,
    record: Option<&Record>,
    reason: Option<String>,
    jitter: u32,
) -> Result<(Event, EventArgs), Failure> {
    let event = match record {
        Some(record) => {
            let rules = tip.rules(record.protocol.as_str())?;
            let state = state_at(rules.protocol(), record, now()?);
            another_attempt(record, state, reason.is_some())
        }
        None => Event::Retry,
    };
    let args = EventArgs {
        jitter: (event == Event::Retry).then_some(jitter),
        ..because(reason)
    };
    Ok((event, args))
}

impl Where {
    /// Applies an event to each handoff in these states that meets the conditions.
    fn change(
        &self,
        context: &Context,
        output: &mut Output,
        states: &[State],
        update: impl Fn(&Snapshot<'_>, &Record) -> Result<Update, Failure>,
    ) -> Result<(), Failure> {
        let Some(query) = &self.query else {
            return Ok(());
        };
        each(context, output, |tip, _| {
            let found = found(tip, query, states)?;
            let target = |record: &Record| Ok(of(&record.id, update(tip, record)?));
            found.iter().map(target).collect()
        })
    }
}

/// The target of a cancel.
enum Cancelled {
    Handoff(HandoffId),
    /// A handoff of the named issue, whose cancel this repeats.
    Repeated(HandoffId),
    /// An issue without open handoffs.
    Issue(IssueKey),
}

impl Cancel {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let reason = self.why.reason.as_deref().map(text::kept).transpose()?;
        let id = match &self.id {
            Some(id) if !self.all && self.duplicate_of.is_none() => id,
            None if !self.all => {
                return self.which.change(context, output, &[], |_, record| {
                    let args = because(reason.clone());
                    Ok(Update::change(record.id.number(), Event::Cancel, args))
                });
            }
            _ => return self.whole(context, output, reason),
        };
        let repository = context.repository()?;
        let agent = context.acting_agent(&repository)?;
        let (mut ledger, session) = context.writer(&repository, output)?;
        let cancelled = cancelled(&ledger.tip()?, id, &agent, reason.as_deref())?;
        let (issue, update) = match &cancelled {
            Cancelled::Handoff(id) | Cancelled::Repeated(id) => {
                let change = Update::change(id.number(), Event::Cancel, because(reason));
                (id.issue(), change)
            }
            Cancelled::Issue(issue) => (issue, given_up(issue, reason)?),
        };
        let done = ledger.update(&session, &agent, issue, &update)?;
        output.follow(&ledger);
        let receipt = ReceiptView::new(&done, output)?;
        let text = match (&cancelled, done.commit) {
            (Cancelled::Handoff(_), _) | (Cancelled::Repeated(_), Some(_)) => None,
            (Cancelled::Repeated(id), None) => Some(format!(
                "{id} was already cancelled for this reason; nothing was written\n"
            )),
            (Cancelled::Issue(issue), Some(commit)) => Some(format!(
                "issue {issue} is cancelled\n  commit {}\n",
                commit.short()
            )),
            (Cancelled::Issue(issue), None) => Some(format!(
                "issue {issue} was already cancelled; nothing was written\n"
            )),
        };
        let receipt = match text {
            Some(text) => receipt.with_text(text),
            None => receipt,
        };
        output.answer(&receipt)?;
        receipt.say_next(output);
        // An issue was named.
        if !id.contains('.') && done.receipt.issue.status == IssueStatus::Open {
            say_all(&ledger.tip()?, &done.receipt.issue, &agent, output)?;
        }
        Ok(())
    }

    /// Cancels the open handoffs of an issue, and the issue.
    fn whole(
        &self,
        context: &Context,
        output: &mut Output,
        reason: Option<String>,
    ) -> Result<(), Failure> {
        let other = self.duplicate_of.as_deref();
        let other = other.map(str::parse::<IssueKey>).transpose()?;
        let duplicates = other
            .as_ref()
            .map(|other| format!("a duplicate of issue {other}"));
        let reason = reason.or(duplicates);
        each(context, output, |tip, _| {
            let keys = match (&self.id, &self.which.query) {
                (Some(id), _) => vec![id.parse::<IssueKey>()?],
                (None, Some(query)) => issues(tip, query)?.into_iter().collect(),
                (None, None) => Vec::new(),
            };
            let mut targets = Vec::new();
            for key in keys {
                let issue = tip.issue(&key)?.issue()?;
                let issue = issue.ok_or_else(|| Refusal::no_issue(&key))?;
                if let Some(other) = &other {
                    targets.extend(duplicate(tip, &key, other, reason.as_deref())?);
                }
                for open in &issue.open {
                    let args = because(reason.clone());
                    let cancel = Update::change(open.id.number(), Event::Cancel, args);
                    targets.push(of(&open.id, cancel));
                }
                let end = given_up(&key, reason.clone())?;
                targets.push((format!("issue {key}"), key, Ok(end)));
            }
            Ok(targets)
        })
    }
}

/// Links an issue and its duplicate in both directions.
fn duplicate(
    tip: &Snapshot<'_>,
    key: &IssueKey,
    other: &IssueKey,
    reason: Option<&str>,
) -> Result<[Target; 2], Failure> {
    ensure_linkable(tip, key, "duplicate_of", other)?;
    let facts = [("duplicate_of".to_owned(), other.as_str().into())];
    let set = Update::Set {
        facts: facts.into_iter().collect(),
        reason: reason.unwrap_or_default().to_owned(),
        after: None,
        assignee: None,
    };
    let about = |key: &IssueKey, update| (format!("issue {key}"), key.clone(), Ok(update));
    let said = format!("issue {key} is a duplicate of this one");
    Ok([about(key, set), about(other, Update::note(said))])
}

/// The target of a cancel: of a named issue, its open handoff, or the issue itself if nothing is
/// open. A cancel by the same agent for the same reason is a repeat, so that a retried command does
/// not go on to cancel the issue.
fn cancelled(
    tip: &Snapshot<'_>,
    named: &str,
    agent: &AgentName,
    reason: Option<&str>,
) -> Result<Cancelled, Failure> {
    let handoff = || handoff_id(tip, named, Some(agent)).map(Cancelled::Handoff);
    if named.contains('.') {
        return handoff();
    }
    let key: IssueKey = named.parse()?;
    let folder = tip.issue(&key)?;
    let Some(issue) = folder.issue()?.filter(|issue| issue.open.is_empty()) else {
        return handoff();
    };
    for awaiting in &issue.awaiting {
        let record = folder.record(awaiting.id.number())?;
        let last = record.as_ref().and_then(Record::latest);
        let is_repeat = last.is_some_and(|last| {
            last.event == Some(Event::Cancel)
                && last.by == *agent
                && last.reason.as_deref() == reason
        });
        if is_repeat {
            return Ok(Cancelled::Repeated(awaiting.id.clone()));
        }
    }
    Ok(Cancelled::Issue(key))
}

/// Prints how to give up an issue itself: as this agent, or as its opener if the agent may not.
fn say_all(
    tip: &Snapshot<'_>,
    issue: &Issue,
    agent: &AgentName,
    output: &mut Output,
) -> Result<(), Failure> {
    let Some(first) = tip.issue(&issue.issue)?.record(1)? else {
        return Ok(());
    };
    let rules = tip.rules(issue.protocol.as_str())?;
    let may = may_give_up(rules.protocol(), issue, &first, agent);
    let (key, by) = (&issue.issue, if may { agent } else { &first.from });
    let all = output.command(&format!(
        "git handoff cancel {key} --all --as {by} --reason WHY"
    ));
    output.say(&format!("to give up issue {key} itself: {all}"));
    Ok(())
}

/// The update that cancels an issue; requires a reason.
fn given_up(issue: &IssueKey, reason: Option<String>) -> Result<Update, Failure> {
    let reason = reason.ok_or_else(|| {
        let text = format!("giving up issue {issue} takes a reason");
        Failure::usage(text).hint(hint!("`git handoff cancel {} --all --reason WHY`", issue))
    })?;
    Ok(Update::GiveUp { reason })
}

impl Block {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        for (i, question) in self.needs.iter().enumerate() {
            if self.needs[..i].iter().any(|q| q.key == question.key) {
                let text = format!("{} is requested twice", quoted(&question.key));
                return Err(Failure::usage(text).hint("request each value once"));
            }
        }
        let args = EventArgs {
            token: self.token,
            questions: self.needs.clone(),
            ..because(text::kept(&self.why.reason)?)
        };
        let usage = self.usage.read(context)?;
        let repository = context.repository()?;
        let (mut ledger, session) = context.requester(&repository, output)?;
        if let Some(left) = context.left_for_worker(&mut ledger, &session) {
            left.ensure_own(&self.id)?;
            return left.leave(BLOCKED, &self.asked(), output);
        }
        let session = Session { usage, ..session };
        act((ledger, session), context, output, &self.id, |_, _| {
            Ok((Event::Block, args))
        })
    }

    /// The question as text, for the person to answer.
    fn asked(&self) -> String {
        let needs = self.needs.iter().map(|one| {
            let kind = one.kind.as_ref().map(|kind| format!(" ({kind})"));
            let about = one.description.as_ref().map(|text| format!(": {text}"));
            format!(
                "- {}{}{}\n",
                one.key,
                kind.unwrap_or_default(),
                about.unwrap_or_default()
            )
        });
        let reason = self.why.reason.trim();
        format!("{reason}\n{}", needs.collect::<String>())
    }
}

impl Release {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let args = EventArgs {
            token: self.token,
            after: self.after,
            progress: self.progress.as_deref().map(text::kept).transpose()?,
            ..because(text::kept(&self.why.reason)?)
        };
        let repository = context.repository()?;
        let (ledger, mut session) = context.requester(&repository, output)?;
        session.usage = self.usage.read(context)?;
        let (writer, change) = ((ledger, session), (Event::Release, args));
        self.kept.leave(context, output, writer, &self.id, change)
    }
}

/// Parses `KEY`, `KEY:TYPE`, `KEY=TEXT` or `KEY:TYPE=TEXT`.
fn question(text: &str) -> Result<Question, String> {
    let (name, description) = match text.split_once('=') {
        Some((name, description)) => (name, Some(description.trim().to_owned())),
        None => (text, None),
    };
    let (key, kind) = match name.split_once(':') {
        Some((key, kind)) => (key.trim(), Some(kind.trim().to_owned())),
        None => (name.trim(), None),
    };
    if key.is_empty() || kind.as_deref() == Some("") {
        return Err("write KEY, KEY:TYPE or KEY:TYPE=TEXT".to_owned());
    }
    Ok(Question {
        key: key.to_owned(),
        kind,
        description: description.filter(|text| !text.is_empty()),
        optional: false,
    })
}

/// Applies an event to a handoff, with its usage report, and prints the outcome.
pub(super) fn change(
    context: &Context,
    output: &mut Output,
    id: &str,
    (event, mut args): (Event, EventArgs),
    usage: Vec<ModelUsage>,
) -> Result<(), Failure> {
    args.reason = args.reason.as_deref().map(text::kept).transpose()?;
    let repository = context.repository()?;
    let (ledger, session) = context.requester(&repository, output)?;
    let session = Session { usage, ..session };
    act((ledger, session), context, output, id, |_, _| {
        Ok((event, args))
    })
}

/// Applies an event, chosen from its newest state, to a handoff of an open ledger.
pub(super) fn act(
    (mut ledger, session): (Ledger<'_>, Session),
    context: &Context,
    output: &mut Output,
    id: &str,
    choose: impl FnOnce(&Snapshot<'_>, &HandoffId) -> Result<(Event, EventArgs), Failure>,
) -> Result<(), Failure> {
    let agent = context.acting_agent(ledger.repository())?;
    catch_up(&mut ledger, &session, output)?;
    let tip = ledger.tip()?;
    let id = handoff_id(&tip, id, Some(&agent))?;
    let (event, args) = choose(&tip, &id)?;
    let change = Update::change(id.number(), event, args);
    let done = ledger.update(&session, &agent, id.issue(), &change)?;
    output.follow(&ledger);
    let receipt = ReceiptView::new(&done, output)?;
    // A person rejects work that was claimed already.
    if event == Event::Reject && done.receipt.record.state != State::Rejected {
        let mut receipt = receipt.with_text(approve::said(&done, &agent).unwrap_or_default());
        let tip = ledger.tip()?;
        let rules = tip.rules(done.receipt.issue.protocol.as_str())?;
        let (_, next) = turn_in(&tip.issue(id.issue())?, rules.protocol(), now()?)?;
        let is_ended = done.receipt.issue.status != IssueStatus::Open;
        let next = next.as_ref().filter(|_| is_ended);
        if let Some((next, command)) = next.and_then(|next| Some((next, next.commands.first()?))) {
            receipt = receipt.with_next(command, &next.agent, output);
        }
        output.answer(&receipt)?;
        receipt.say_next(output);
        return Ok(());
    }
    output.answer(&receipt)?;
    receipt.say_next(output);
    Ok(())
}
