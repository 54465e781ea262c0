use clap::Args;
use handoff::base::Moment;
use handoff::base::ids::{AgentName, HandoffId, WorkerId};
use handoff::model::Record;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::remote::AskArgs;
use crate::context::Context;
use crate::context::fresh::Reading;
use crate::environment::now;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::view::{Look, columns};

/// List the workers: who they act as, what they have in hand, their last sign of life
///
/// A worker is a working tree, a session or one of `git handoff work`; its name begins with its host's or its folder's. What it last
/// recorded, an extension of its lease too, is its sign of life. One whose lease ran out is lost: `git handoff reap` records that.
#[derive(Args)]
#[command(after_help = "Example:\n  git handoff workers")]
pub(crate) struct Arguments {
    #[command(flatten)]
    asks: AskArgs,
}

/// The workers, and what they hold.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Workers")]
pub(crate) struct WorkersView {
    /// each worker that holds something, with each handoff that it holds
    workers: Vec<Worker>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WorkerInHand")]
struct Worker {
    /// its id
    worker: WorkerId,
    /// the agent that it acts as
    agent: AgentName,
    /// the handoff that it holds
    holds: HandoffId,
    /// since when
    since: Moment,
    /// when it last recorded something of it
    seen: Moment,
    /// when its lease ends; null if it has none
    expires_at: Option<Moment>,
    /// whether its lease ran out: nobody heard of it
    lost: bool,
}

impl Worker {
    fn of(record: &Record, now: Moment) -> Option<Self> {
        let lease = record.lease.as_ref()?;
        // An extension is not a transition: its time is the end of the lease minus the length.
        let extended = lease.expires_at.zip(lease.seconds);
        let extended = extended.and_then(|(end, seconds)| {
            end.checked_sub_signed(chrono::TimeDelta::seconds(seconds.try_into().ok()?))
        });
        let reported = record.progress.last().map(|progress| progress.at);
        let seen = [extended, reported];
        Some(Self {
            worker: lease.worker.clone(),
            agent: lease.holder.clone(),
            holds: record.id.clone(),
            since: lease.since,
            seen: seen.into_iter().flatten().fold(lease.since, Moment::max),
            expires_at: lease.expires_at,
            lost: record.is_expired(now),
        })
    }
}

impl Answer for WorkersView {
    fn text(&self, look: &Look) -> String {
        if self.workers.is_empty() {
            return "no worker holds anything\n".to_owned();
        }
        let rows = self.workers.iter().map(|one| {
            let seen = look.age(one.seen);
            let sign = if one.lost {
                look.urgent("lost: its lease ran out")
            } else {
                format!("last heard of {seen}")
            };
            vec![
                one.worker.to_string(),
                one.agent.to_string(),
                look.id(&one.holds),
                sign,
            ]
        });
        columns(&rows.collect::<Vec<_>>())
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let Reading { tip, .. } = context.fresh(&repository, self.asks.offline, output)?;
        let now = now()?;
        let mut workers = Vec::new();
        for entry in tip.open()? {
            workers.extend(Worker::of(&tip.open_record(&entry)?, now));
        }
        workers.sort_by(|a, b| (&a.worker, &a.holds).cmp(&(&b.worker, &b.holds)));
        output.answer(&WorkersView { workers })
    }
}
