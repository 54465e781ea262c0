//! Notices: a person is notified once of what needs attention, and again when it changes or is
//! settled.
//!
//! [`run`] follows the ledger. `notice` is the message, and `changes` compares what needs attention
//! now with the last notices; `told` stores those between runs, and `channel` delivers. Nothing is
//! written to the ledger.

mod changes;
mod channel;
mod notice;
mod told;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use handoff::base::ids::{AgentName, HandoffId};
use handoff::base::text::continued;
use handoff::base::{Moment, ObjectId};
use handoff::ledger::Snapshot;
use handoff::ledger::attention::{Attention, Protocols, Watched, protocols};
use handoff::model::{View, acts_as_person};
use handoff::protocol::{Need, Protocol, State};

pub use channel::{Channel, Form};
pub use notice::Notice;

use self::channel::Undelivered;
use self::told::Told;
use handoff_cli::args::remote::PollArgs;
use handoff_cli::context::Context;
use handoff_cli::context::interruption::Interruption;
use handoff_cli::context::lookout::{Lookout, Place, unreached};
use handoff_cli::environment::now;
use handoff_cli::failure::{ErrorCode, Failure};
use handoff_cli::output::{Output, SCHEMA};

/// The maximum time between two evaluations: handoffs become late without a step.
const FRESH: Duration = Duration::from_secs(60);
/// The pause after the first failed delivery; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The maximum pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How often a run with `--once` tries each delivery.
const TRIES: u32 = 3;

/// Whom to notify, of what, and how.
pub struct Plan {
    /// The channel.
    pub channel: Channel,
    /// The agents whose notices are sent; if empty, the persons.
    pub agents: Vec<AgentName>,
    /// The needs; if empty, all.
    pub needs: Vec<Need>,
    /// The minimum age of a need.
    pub after: Duration,
    /// Whether it looks once and ends.
    pub once: bool,
    /// How the remote is polled.
    pub looks: PollArgs,
}

impl Plan {
    /// Whether the plan covers this.
    fn includes(&self, found: &Attention, protocol: &Protocol) -> bool {
        let mut told = found.told.iter();
        let is_for_them = match &self.agents[..] {
            [] => told.any(|agent| acts_as_person(protocol, agent)),
            agents => told.any(|agent| agents.contains(agent)),
        };
        is_for_them && (self.needs.is_empty() || self.needs.contains(&found.need))
    }

    /// Reports a failed delivery, and when it is retried.
    fn failed(
        &self,
        backoff: &mut Backoff,
        trouble: &Undelivered,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let channel = self.channel.shown();
        let text = format!("{channel} did not get the notice: {trouble}");
        if self.once && backoff.failed + 1 >= TRIES {
            return Err(Failure::new(ErrorCode::NotDelivered, text)
                .hint("fix that and run it again: what was delivered is not sent twice"));
        }
        let pause = backoff.failed().as_secs();
        output.say(&continued(&format!("{text}; trying again in {pause} s")));
        Ok(())
    }

    /// The key of a plan's notes in a clone.
    fn key(&self, branch: &str) -> String {
        let agents: Vec<&str> = self.agents.iter().map(AgentName::as_str).collect();
        let needs: Vec<&str> = self.needs.iter().map(|need| need.as_str()).collect();
        let channel = self.channel.key();
        format!(
            "{branch}\n{channel}\n{}\n{}",
            agents.join(","),
            needs.join(",")
        )
    }
}

/// When a failed delivery is retried.
#[derive(Default)]
struct Backoff {
    failed: u32,
    until: Option<Instant>,
}

impl Backoff {
    fn failed(&mut self) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failed.min(10));
        let pause = pause.min(LONGEST_PAUSE);
        self.failed += 1;
        self.until = Some(Instant::now() + pause);
        pause
    }

    fn is_due(&self) -> bool {
        self.until.is_none_or(|until| until <= Instant::now())
    }
}

/// Sends notices until it is interrupted.
///
/// # Errors
/// A [`Failure`] if it can't start, if the ledger can't be read, or if it looks once and a delivery
/// failed.
pub fn run(plan: &Plan, context: &Context, output: &mut Output) -> Result<(), Failure> {
    output.one_line_each();
    let repository = context.repository()?;
    let ledger = context.ledger(&repository)?;
    let place = Place::of(plan.looks, context, &repository)?;
    let mut told = Told::open(repository.common_dir(), &plan.key(ledger.refname()))?;
    let mut lookout = Lookout::open(ledger, place, plan.looks.poll, None)?;
    let interruption = lookout.catch()?;
    let mut teller = Teller {
        plan,
        watched: Watched::default(),
        seen: None,
        unreached: Backoff::default(),
        refused: HashMap::new(),
    };
    let ended = teller.follow(&mut lookout, &mut told, &interruption, output);
    lookout.leave_fetched();
    ended
}

struct Teller<'a> {
    plan: &'a Plan,
    watched: Watched,
    /// The tip that was evaluated last, and until when the result is valid.
    seen: Option<(ObjectId, Moment)>,
    /// The backoff while no delivery succeeds.
    unreached: Backoff,
    /// The backoffs of refused deliveries, which don't delay others.
    refused: HashMap<String, Backoff>,
}

impl Teller<'_> {
    fn follow(
        &mut self,
        lookout: &mut Lookout<'_>,
        told: &mut Told,
        interruption: &Interruption,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let is_asked = || interruption.requested().load(Ordering::SeqCst);
        while !is_asked() {
            lookout.tips(output)?;
            if lookout.has_looked() {
                let tip = lookout.ledger().newest()?;
                let now = now()?;
                let is_same = self
                    .seen
                    .is_some_and(|(commit, until)| commit == tip.commit() && now < until);
                if self.unreached.is_due() && (!is_same || self.is_due_again()) {
                    self.look(&tip, told, now, &is_asked, output)?;
                }
                if self.plan.once && self.again().is_none() {
                    // With the remote out of reach, the notices from the local ledger were sent.
                    return match lookout.trouble() {
                        Some(_) => Err(unreached(lookout)),
                        None => Ok(()),
                    };
                }
            }
            let pause = self.pause()?;
            if self.plan.once && self.again().is_some() {
                thread::sleep(pause);
            } else {
                lookout.pause(Some(pause), output);
            }
        }
        Ok(())
    }

    /// When the next failed delivery is retried.
    fn again(&self) -> Option<Instant> {
        let refused = self.refused.values().filter_map(|one| one.until);
        // While no delivery succeeds, refused ones are not retried either.
        self.unreached.until.or_else(|| refused.min())
    }

    fn is_due_again(&self) -> bool {
        self.again().is_some_and(|until| until <= Instant::now())
    }

    /// How long to wait if the ledger does not change.
    fn pause(&self) -> Result<Duration, Failure> {
        let now = now()?;
        let fresh = self.seen.map(|(_, until)| (until - now).to_std());
        let fresh = fresh.map_or(FRESH, Result::unwrap_or_default);
        let again = self.again();
        let again = again.map(|until| until.saturating_duration_since(Instant::now()));
        let pause = again.unwrap_or(FRESH).min(fresh).min(FRESH);
        Ok(pause.max(Duration::from_millis(50)))
    }

    /// Sends notices of what changed since the last evaluation.
    fn look(
        &mut self,
        tip: &Snapshot<'_>,
        told: &mut Told,
        now: Moment,
        is_asked: &impl Fn() -> bool,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let protocols = protocols(tip, now)?;
        self.ensure_agents(&protocols)?;
        let (current, until) = self.current(tip, &protocols, told, now, is_asked)?;
        if is_asked() {
            return Ok(());
        }
        let ledger = tip.urn();
        let events = changes::between(&told.notices, current, &ledger);
        let is_wanted = |delivery: &String| events.iter().any(|one| one.delivery == *delivery);
        self.refused.retain(|delivery, _| is_wanted(delivery));
        for mut change in events {
            if is_asked() {
                return Ok(());
            }
            let refused = self.refused.get(&change.delivery);
            if refused.is_some_and(|refused| !refused.is_due()) {
                continue;
            }
            if change.is_settled() {
                let state = state(tip, &change.about.id)?;
                change = change.in_state(state);
            }
            let before = told.delivering(&change)?;
            match self.plan.channel.deliver(&change, before.as_ref()) {
                Ok(handle) => {
                    told.delivered(&change, handle)?;
                    self.refused.remove(&change.delivery);
                    say(&change, output)?;
                }
                Err(undelivered) => {
                    if !undelivered.is_unsure() {
                        told.refused(&change, before)?;
                    }
                    let of_all = undelivered.stops();
                    let backoff = if of_all {
                        &mut self.unreached
                    } else {
                        self.refused.entry(change.delivery).or_default()
                    };
                    self.plan.failed(backoff, &undelivered, output)?;
                    if of_all {
                        self.seen = Some((tip.commit(), until));
                        return Ok(());
                    }
                }
            }
        }
        self.seen = Some((tip.commit(), until));
        self.unreached = Backoff::default();
        Ok(())
    }

    /// Refuses an agent's name that is in no protocol in force: it would never be notified.
    fn ensure_agents(&self, protocols: &Protocols) -> Result<(), Failure> {
        let mut named = self.plan.agents.iter();
        let unknown = |name: &&AgentName| {
            let mut protocols = protocols.values();
            protocols.all(|protocol| protocol.agent(name.as_str()).is_none())
        };
        let Some(name) = named.find(unknown) else {
            return Ok(());
        };
        let agents = protocols.values().flat_map(|p| &p.definition().agents);
        let agents: BTreeSet<&str> = agents.map(|agent| agent.id.as_str()).collect();
        let agents: Vec<&str> = agents.into_iter().collect();
        let text = format!("{name} is not an agent of a protocol in force");
        Err(Failure::new(ErrorCode::UnknownAgent, text)
            .hint(format!("agents are: {}", agents.join(", "))))
    }

    /// What to notify of now, and when that changes without a step.
    fn current(
        &mut self,
        tip: &Snapshot<'_>,
        protocols: &Protocols,
        told: &Told,
        now: Moment,
        is_asked: &impl Fn() -> bool,
    ) -> Result<(Vec<Attention>, Moment), Failure> {
        let standing = self.watched.look(tip, protocols, now, is_asked)?;
        let mut until = now + FRESH;
        until = standing.until.map_or(until, |end| end.min(until));
        let mut current = Vec::new();
        for (found, record) in standing.needs {
            if !self.plan.includes(&found, &protocols[&record.protocol]) {
                continue;
            }
            let ripe = found.since + self.plan.after;
            // A clock that is ahead may have dated the need; a notice that was sent stays valid.
            let is_told = told.notices.contains_key(&found.id);
            if self.plan.after.is_zero() || ripe <= now || is_told {
                current.push(found);
            } else {
                until = until.min(ripe);
            }
        }
        // One notice per handoff: for its most urgent need and, of several agents to notify, the
        // first.
        current.sort_by(|a, b| {
            (&a.id, a.need, a.since, &a.turn).cmp(&(&b.id, b.need, b.since, &b.turn))
        });
        current.dedup_by(|later, first| later.id == first.id);
        Ok((current, until))
    }
}

/// The state of a handoff whose need is settled.
fn state(tip: &Snapshot<'_>, id: &HandoffId) -> Result<Option<State>, Failure> {
    let record = tip.issue(id.issue())?.record(id.number())?;
    Ok(record.map(|record| record.state))
}

/// Prints a delivered notice.
fn say(notice: &Notice, output: &mut Output) -> Result<(), Failure> {
    let line = if output.is_json() {
        let line = serde_json::json!({"schema": SCHEMA, "ok": true, "data": notice});
        format!("{line}\n")
    } else {
        format!("{}\n", continued(&notice.text))
    };
    // The output may be closed: the notice was delivered anyway.
    output.stream(line.as_bytes())?;
    Ok(())
}
