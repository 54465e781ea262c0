//! The commands that change one handoff's state and differ only in the event.

use clap::Args;

use crate::cli::context::{Context, handoff_id};
use crate::cli::environment::session;
use crate::cli::error::Failure;
use crate::cli::output::Output;
use crate::cli::render;
use crate::contract::Allowance;
use crate::ledger::{Failure as Reported, MAX_TEXT, Request, Target, Told, UNSPECIFIED};
use crate::protocol::Event;

/// Finish a handoff that you hold, without a contract
///
/// Sending a contract onward finishes it too, in one step; use this where
/// nothing is sent on, or where the contract follows later.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff complete 123.3 --as orchestrator --reason 'retried by hand'"
)]
pub(crate) struct Complete {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// What is worth keeping about it
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "message",
        visible_short_alias = 'm'
    )]
    reason: Option<String>,
}

/// Say that you can't do what you hold
///
/// The handoff is failed and stays open: it can be retried or cancelled.
#[derive(Args)]
#[command(after_help = "Example:
  git handoff fail 123.2 --as implementer-agent --code BuildError \\
      --message 'the build fails on a missing module' --recoverable")]
pub(crate) struct Fail {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// What happened, in one sentence
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "reason",
        visible_short_alias = 'r'
    )]
    message: String,
    /// A short, stable word for the kind of failure
    #[arg(long, value_name = "WORD", default_value = UNSPECIFIED)]
    code: String,
    /// More about it
    #[arg(long, value_name = "TEXT")]
    details: Option<String>,
    /// Another attempt may succeed
    #[arg(long)]
    recoverable: bool,
    /// What to do about it
    #[arg(long, value_name = "TEXT")]
    suggested_action: Option<String>,
    /// Keep what a rule takes for a secret, at one place or wherever it stands;
    /// that is recorded
    #[arg(long, value_name = "RULE[@PLACE]")]
    allow_secret: Vec<Allowance>,
}

/// Say that you need an answer before you can go on
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff block 123.2 --as implementer-agent --reason 'which login page?'"
)]
pub(crate) struct Block {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// What is missing
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "message",
        visible_short_alias = 'm'
    )]
    reason: String,
}

/// Answer a blocked handoff, so that it can be claimed again
///
/// Its sender, its receiver or an orchestrator can.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff answer 123.2 'the one for customers' --as orchestrator"
)]
pub(crate) struct Answer {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// The answer
    #[arg(value_name = "TEXT")]
    answer: String,
    /// Keep what a rule takes for a secret, at one place or wherever it stands;
    /// that is recorded
    #[arg(long, value_name = "RULE[@PLACE]")]
    allow_secret: Vec<Allowance>,
}

/// Give a failed handoff another attempt
///
/// Its sender, its receiver or an orchestrator can.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff retry 123.2 --as orchestrator --reason 'the module is published now'"
)]
pub(crate) struct Retry {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// Why it may succeed now
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "message",
        visible_short_alias = 'm'
    )]
    reason: Option<String>,
}

/// Refuse a handoff that waits for you
///
/// It is over; its sender may send again.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff reject 123.2 --as implementer-agent --reason 'the branch has no commits'"
)]
pub(crate) struct Reject {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// Why
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "message",
        visible_short_alias = 'm'
    )]
    reason: String,
}

/// Withdraw a handoff
///
/// It is over; its sender may send again. Its sender, its receiver or an
/// orchestrator can.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff cancel 123.2 --as prep-agent --reason 'wrong branch'"
)]
pub(crate) struct Cancel {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// Why
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "message",
        visible_short_alias = 'm'
    )]
    reason: Option<String>,
}

macro_rules! reasoned {
    ($name:ident, $event:expr, $said:expr) => {
        impl $name {
            /// Runs the command.
            ///
            /// # Errors
            /// A [`Failure`] with its exit code.
            pub(crate) fn run(
                &self,
                context: &Context,
                output: &mut Output,
            ) -> Result<(), Failure> {
                let said: fn(&Self) -> (Option<&String>, &[Allowance]) = $said;
                let (reason, allow) = said(self);
                let told = Told {
                    reason: reason.map(|reason| told(reason)).transpose()?,
                    allow: allow.to_vec(),
                    ..Told::default()
                };
                change(context, output, &self.id, $event, &told)
            }
        }
    };
}

reasoned!(Complete, Event::Complete, |a| (a.reason.as_ref(), &[]));
reasoned!(Block, Event::Block, |a| (Some(&a.reason), &[]));
reasoned!(Answer, Event::Answer, |a| (
    Some(&a.answer),
    &a.allow_secret
));
reasoned!(Retry, Event::Retry, |a| (a.reason.as_ref(), &[]));
reasoned!(Reject, Event::Reject, |a| (Some(&a.reason), &[]));
reasoned!(Cancel, Event::Cancel, |a| (a.reason.as_ref(), &[]));

impl Fail {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let reported = Reported {
            code: told(&self.code)?,
            message: told(&self.message)?,
            details: self.details.as_deref().map(told).transpose()?,
            recoverable: self.recoverable,
            suggested_action: self.suggested_action.as_deref().map(told).transpose()?,
        };
        let told = Told {
            failure: Some(reported),
            allow: self.allow_secret.clone(),
            ..Told::default()
        };
        change(context, output, &self.id, Event::Fail, &told)
    }
}

/// Refuses an empty text and one that is too long to keep in a record.
pub(super) fn told(text: &str) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("the text is empty: say what or why"));
    }
    if text.len() > MAX_TEXT {
        let text = format!(
            "the text has {} bytes, and at most {MAX_TEXT} are kept",
            text.len()
        );
        return Err(Failure::usage(text));
    }
    Ok(text.to_owned())
}

fn change(
    context: &Context,
    output: &mut Output,
    id: &str,
    event: Event,
    told: &Told,
) -> Result<(), Failure> {
    let repository = context.repository()?;
    let session = session(&repository)?;
    let ledger = context.ledger(&repository)?;
    let agent = context.acting_agent(&repository)?;
    let target = Target::Handoff(handoff_id(&ledger.tip()?, id, Some(&agent))?);
    let done = ledger.act(&session, &agent, &target, |number| Request::Change {
        number,
        event,
        told: Box::new(told.clone()),
    })?;
    output.answer(&render::done_json(&done), &render::done_text(&done))?;
    render::say_next(&done, output);
    Ok(())
}
