//! Applies the protocol's rules to work that failed or whose lease expired, as far as no judgement
//! is needed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use handoff::base::Moment;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::ledger::Snapshot;
use handoff::ledger::attention::{self, Attention};
use handoff::model::{Advice, Record, View, decider, needs_attention};
use handoff::protocol::{Action, Need};
use schemars::JsonSchema;
use serde::Serialize;

use super::Supervisor;
use super::program::Actor;
use handoff_cli::failure::Failure;
use handoff_cli::output::Output;

/// How long a decision may take to become visible here.
const SHOWN_BY: Duration = Duration::from_secs(60);

/// The maximum difference of two machines' clocks: a deadline older than that has passed by both.
const APART: TimeDelta = TimeDelta::minutes(30);

/// The deciding worker of a clone, and what it remembers.
#[derive(Default)]
pub(super) struct Decider {
    /// The clone's lock for deciding, if this worker holds it.
    lock: Option<File>,
    /// When a handoff with this number of transitions was decided, so that a stale read or a wrong
    /// clock does not repeat the decision.
    done: BTreeMap<(HandoffId, usize), Instant>,
    /// Each handoff's deadline, and when this worker first saw it.
    seen: BTreeMap<HandoffId, (Moment, Instant)>,
    /// Why something was left undecided in the last pass.
    pub(super) undecided: Vec<Undecided>,
}

/// Why nothing was decided about a handoff, or about any.
#[derive(Clone, Serialize, JsonSchema)]
pub struct Undecided {
    /// the handoff; null if it is about all
    pub id: Option<HandoffId>,
    /// why
    pub why: String,
}

impl Decider {
    /// Makes this worker the deciding one, unless another worker of the clone is. If that one is
    /// killed, the next one takes over.
    fn take_over(&mut self, folder: &Path) -> Result<(), String> {
        if self.lock.is_some() {
            return Ok(());
        }
        let path = folder.join("decide.lock");
        self.lock = handoff_cli::process::locked(&path)
            .map_err(|error| format!("{} can't be locked: {error}", path.display()))?;
        match self.lock {
            Some(_) => Ok(()),
            None => Err("another worker of this clone decides".to_owned()),
        }
    }
}

impl Decider {
    /// How long to wait with a handoff whose deadline has passed by this machine's clock. That
    /// clock may be ahead of the one that dated the claim, so a whole lease has to pass since this
    /// worker first saw the deadline.
    fn left_of(&mut self, record: &Record, now: Moment) -> Option<Duration> {
        let end = record.expires_at()?;
        let since = self.seen.entry(record.id.clone());
        let seen = since.or_insert_with(|| (end, Instant::now()));
        if seen.0 != end {
            *seen = (end, Instant::now());
        }
        let (lease, sent) = (record.lease.as_ref(), record.latest()?.at);
        let length = match lease.and_then(|lease| lease.seconds) {
            Some(seconds) => Duration::from_secs(seconds),
            None => (end - sent).to_std().unwrap_or_default(),
        };
        let left = length.saturating_sub(seen.1.elapsed());
        let is_long_over = now - end >= APART;
        (end <= now).then_some(if is_long_over { Duration::ZERO } else { left })
    }
}

impl Supervisor<'_> {
    /// Executes one due step. Returns whether the ledger changed.
    pub(super) fn decide(
        &mut self,
        tip: &Snapshot<'_>,
        now: Moment,
        output: &mut Output,
    ) -> Result<bool, Failure> {
        if let Err(why) = self.decider.take_over(&self.folder) {
            self.decider.undecided = vec![Undecided { id: None, why }];
            return Ok(false);
        }
        let mut records = Vec::new();
        for entry in tip.open()? {
            records.push(tip.open_record(&entry)?);
        }
        self.decider
            .seen
            .retain(|id, _| records.iter().any(|record| record.id == *id));
        let left = |record: &Record| Some((record.id.clone(), self.decider.left_of(record, now)?));
        let times: BTreeMap<HandoffId, Duration> = records.iter().filter_map(left).collect();
        let protocols = attention::protocols(tip, now)?;
        let mut undecided = Vec::new();
        for one in attention::of_tip(tip, &records, &protocols, now)? {
            let is_other = |key: &IssueKey| *key != one.issue;
            if self.plan.issue.as_ref().is_some_and(is_other) {
                continue;
            }
            let record = records.iter().find(|record| record.id == one.id);
            let mut left = |why: String| {
                let id = Some(one.id.clone());
                undecided.push(Undecided { id, why });
            };
            let (agent, words) = match due(tip, &one, times.get(&one.id), now)? {
                Due::Step(agent, words) => (agent, words),
                Due::Judgement(why) => {
                    left(why);
                    continue;
                }
                Due::Nothing => continue,
            };
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let transitions = record.map_or(0, |record| record.transitions.len());
            let about = (one.id.clone(), transitions);
            let decided = self.decider.done.get(&about);
            if decided.is_some_and(|at| at.elapsed() < SHOWN_BY) {
                left("a decision was made, and is not visible here yet".to_owned());
                continue;
            }
            let actor = Actor {
                agent,
                worker: self.base.clone(),
            };
            let said = self.program.run(&actor, &words);
            // If nothing was reaped, the lease has not expired yet by the clock that dates the
            // steps.
            let reaped = said.data()["handoffs"].as_array();
            let is_early = reaped.is_some_and(Vec::is_empty);
            if matches!(said.exit, 0 | 8) && !is_early {
                let action = said.data()["action"].as_str().unwrap_or("reap");
                output.say(&format!("{} {}: {action}", one.id, actor.agent));
                self.decider.done.insert(about, Instant::now());
                self.done.decided += 1;
                return Ok(true);
            }
            if said.code() == "nothing_to_decide" {
                // Another writer was faster.
                continue;
            }
            let why = if is_early {
                "its deadline has not passed by the clock that dates the steps"
            } else {
                said.message()
            };
            let told = format!("{}: not decided: {why}", one.id);
            left(why.to_owned());
            if self.told.insert(told.clone()) {
                output.say(&told);
            }
        }
        self.decider.undecided = undecided;
        Ok(false)
    }
}

/// The due step for what needs attention.
enum Due {
    /// A step of this agent.
    Step(AgentName, Vec<String>),
    /// A judgement, which is left to this agent.
    Judgement(String),
    Nothing,
}

fn due(
    tip: &Snapshot<'_>,
    one: &Attention,
    left: Option<&Duration>,
    now: Moment,
) -> Result<Due, Failure> {
    match one.need {
        Need::LeaseRanOut | Need::Unclaimed => Ok(match left {
            None => Due::Nothing,
            Some(&Duration::ZERO) => {
                let words = vec!["reap".to_owned(), one.id.to_string()];
                Due::Step(one.turn.clone(), words)
            }
            Some(left) => Due::Judgement(format!(
                "its time is over by this machine's clock, which may be ahead: it is given {} s more",
                left.as_secs() + 1
            )),
        }),
        Need::Failed | Need::Dead => {
            let folder = tip.issue(&one.issue)?;
            let Some(issue) = folder.issue()? else {
                return Ok(Due::Nothing);
            };
            let rules = tip.rules(issue.protocol.as_str())?;
            let advised = needs_attention(rules.protocol(), &folder, &issue, now)?;
            let Some((advice, record)) = advised else {
                return Ok(Due::Nothing);
            };
            let code = record.failure().map(|failure| failure.code.as_str());
            // The same contract again would fail again.
            let is_corrected = rules.protocol().definition().takes_correction(code);
            if !needs_no_mind(&advice) || is_corrected && advice.action == Action::Retry {
                return Ok(judgement(one));
            }
            // Nothing is done in the name of a person. What one would retry, its agent may.
            let is_person = |agent: &AgentName| rules.protocol().is_person(agent.as_str());
            let mut agent = decider(rules.protocol(), &record.from).clone();
            if is_person(&agent) && advice.action == Action::Retry {
                agent.clone_from(&record.to);
            }
            if is_person(&agent) {
                return Ok(judgement(one));
            }
            let key = one.issue.to_string();
            let words = ["next", &key, "--apply"].map(str::to_owned);
            Ok(Due::Step(agent, words.to_vec()))
        }
        Need::Blocked | Need::Escalated | Need::Stranded => Ok(judgement(one)),
        _ => Ok(Due::Nothing),
    }
}

fn judgement(one: &Attention) -> Due {
    let (what, turn, next) = (one.need.title(), &one.turn, &one.next);
    Due::Judgement(format!("{what}: it is for {turn} to decide: `{next}`"))
}

/// Whether advice can be carried out without a judgement, and without losing anything.
fn needs_no_mind(advice: &Advice) -> bool {
    let moves = matches!(advice.action, Action::Retry | Action::Reassign);
    let asks_person = advice.action.is_with_person();
    !advice.by_contract && (moves || asks_person && advice.decided.is_none())
}
