//! Alerts: which thresholds of the protocols are crossed now, since when, and by which handoffs.
//!
//! Each metric is a set of samples: values with a beginning and an end. Its value at a moment is an
//! aggregate of the current samples, so going through all beginnings and ends finds the moment
//! since which a threshold is crossed.

use std::collections::BinaryHeap;
use std::convert::Infallible;

use chrono::TimeDelta;
use handoff::base::Moment;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::ledger::{ChangeSurvey, HandoffSurvey, IssueSurvey, Issues};
use handoff::model::spending::used;
use handoff::model::{IssueStatus, Spending};
use handoff::protocol::{
    Alert, Event, Level, Measure, Metric, Need, Per, Protocol, Side, State, Threshold,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Number;

use super::events::events;
use super::metrics::{Local, average};
use handoff::ledger::attention::{Protocols, of_issue};
use handoff_graph::times::{self, rank};

/// A threshold that is crossed now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Firing {
    /// The protocol that defines it.
    pub protocol: AgentName,
    /// Its name there.
    pub name: String,
    /// Its severity.
    pub severity: Level,
    /// Its metric: one of [these](metrics.md#what-an-alert-can-watch).
    pub metric: Metric,
    /// Which quantile of times; null if it is their average, or not about times.
    pub quantile: Option<f64>,
    /// The value now.
    pub value: f64,
    /// `seconds`, `ratio`, or empty.
    pub unit: &'static str,
    /// On which side of the threshold the value is.
    pub side: Side,
    /// What it is compared with.
    pub threshold: f64,
    /// Only events within this time count.
    pub within_seconds: Option<u64>,
    /// Only handoffs and issues in this state for longer than this count.
    pub longer_than_seconds: Option<u64>,
    /// Since when it has been crossed.
    pub since: Moment,
    /// The ids of the handoffs responsible, the oldest issue first.
    pub ids: Vec<HandoffId>,
    /// The keys of their issues, or of the issues responsible.
    pub keys: Vec<IssueKey>,
    /// What to do.
    pub action: String,
}

/// Every threshold that is crossed now: the most severe first, then the oldest. With an issue, only
/// its handoffs count.
pub fn firing(
    issues: &Issues,
    protocols: &Protocols,
    local: &Local,
    issue: Option<&IssueKey>,
    now: Moment,
) -> Vec<Firing> {
    let mut found = Vec::new();
    for (name, protocol) in protocols.iter() {
        let input = AlertInput {
            name,
            protocol,
            today: protocols.spent_today(name),
            all: issues,
            local,
            issue,
            now,
        };
        let definition = protocol.definition();
        let (own, usual) = (&definition.alerts, usual_alerts());
        let lacks = |alert: &&Alert| !own.iter().any(|known| known.metric == alert.metric);
        let all = own.iter().chain(usual.iter().filter(lacks));
        found.extend(all.filter_map(|alert| input.judge(alert)));
    }
    found.sort_by(|a, b| (b.severity, a.since).cmp(&(a.severity, b.since)));
    found
}

/// The default alerts, for protocols without an alert about their metrics.
fn usual_alerts() -> [Alert; 2] {
    let alert = |name: &str, metric, at_least, severity, action: &str| Alert {
        name: name.to_owned(),
        metric,
        above: None,
        at_least: Number::from_f64(at_least),
        below: None,
        at_most: None,
        within_seconds: None,
        longer_than_seconds: None,
        quantile: None,
        severity,
        action: action.to_owned(),
    };
    let (budget, person) = (
        "see what it was spent on, and raise the budget or end the work",
        "`git handoff next ISSUE` says what a person has to decide, or which limit to raise",
    );
    [
        alert("budget", Metric::BudgetSpent, 0.8, Level::Warning, budget),
        alert(
            "needs-person",
            Metric::NeedsPerson,
            1.0,
            Level::Critical,
            person,
        ),
    ]
}

/// A value that counts from one moment to another.
struct Sample {
    from: Moment,
    /// `None` while it lasts.
    until: Option<Moment>,
    /// In thousandths: seconds, 1 or 0 for a ratio, or a number of rounds.
    amount: i64,
    issue: Option<IssueKey>,
    number: Option<u32>,
}

/// An amount of 1.
const ONE: i64 = 1000;

/// A sample's beginning, end and amount.
type Period = (Moment, Option<Moment>, i64);

/// The aggregate of samples.
#[derive(Clone, Copy)]
enum Sum {
    Count,
    Average,
    /// 0 is the minimum, 1 the maximum.
    Quantile(f64),
}

/// Which samples are collected.
#[derive(Clone, Copy)]
enum Extent {
    /// At least those that count now.
    Now,
    /// Also those that have ended.
    Ever,
}

/// The input for one protocol's thresholds.
struct AlertInput<'s> {
    name: &'s AgentName,
    protocol: &'s Protocol,
    /// Today's spending under the protocol, if a budget counts per day.
    today: Option<&'s Spending>,
    all: &'s Issues,
    local: &'s Local,
    issue: Option<&'s IssueKey>,
    now: Moment,
}

fn seconds(seconds: Option<u64>) -> Option<TimeDelta> {
    TimeDelta::try_seconds(i64::try_from(seconds?).ok()?)
}

impl<'s> AlertInput<'s> {
    /// The time of a recorded event, capped at now: the clock that dated it may be ahead.
    fn past(&self, at: Moment) -> Moment {
        at.min(self.now)
    }

    /// Evaluates an alert.
    fn judge(&self, alert: &Alert) -> Option<Firing> {
        let threshold = alert.threshold()?;
        let quantile = alert.quantile.as_ref().and_then(|q| q.as_f64());
        let sum = match (alert.metric, alert.metric.measure(), quantile) {
            (Metric::RetriesOfOne | Metric::Corruption | Metric::BudgetSpent, ..) => {
                Sum::Quantile(1.0)
            }
            (Metric::RoundsLeft, ..) => Sum::Quantile(0.0),
            (_, Measure::Times, Some(quantile)) => Sum::Quantile(quantile),
            (_, Measure::Times | Measure::Share, _) => Sum::Average,
            (_, Measure::Events | Measure::WaitStatus | Measure::Level, _) => Sum::Count,
        };
        let mut current = self.counted(alert, Extent::Now);
        current.retain(|s| s.until.is_none_or(|until| until > self.now));
        let value = value(&current, sum).filter(|value| threshold.is_crossed_by(*value))?;
        // Evaluate the history only for a threshold that is crossed now.
        let since = self.crossed_since(&self.counted(alert, Extent::Ever), sum, threshold)?;
        let guilty = current.into_iter().filter(|sample| match sum {
            Sum::Count => matches!(threshold.side, Side::Above | Side::AtLeast),
            Sum::Average | Sum::Quantile(_) => threshold.is_crossed_by(as_number(sample.amount)),
        });
        let (mut ids, mut keys) = (Vec::new(), Vec::new());
        for sample in guilty {
            if let (Some(issue), Some(number)) = (&sample.issue, sample.number) {
                ids.push(HandoffId::new(issue.clone(), number));
            }
            keys.extend(sample.issue);
        }
        // Samples are in the survey's order, with an issue's samples together.
        ids.dedup();
        keys.dedup();
        Some(Firing {
            protocol: self.name.clone(),
            name: alert.name.clone(),
            severity: alert.severity,
            metric: alert.metric,
            quantile,
            value,
            unit: alert.metric.unit(),
            side: threshold.side,
            threshold: threshold.value,
            within_seconds: alert.within_seconds,
            longer_than_seconds: alert.longer_than_seconds,
            since,
            ids,
            keys,
            action: alert.action.clone(),
        })
    }

    /// The samples for an alert that began by now, each ending at the latest when it leaves the
    /// alert's time window.
    fn counted(&self, alert: &Alert, extent: Extent) -> Vec<Sample> {
        let mut samples = self.samples(alert, extent);
        if let Some(window) = seconds(alert.within_seconds) {
            for sample in &mut samples {
                let end = sample.from.checked_add_signed(window);
                sample.until = [sample.until, end].into_iter().flatten().min();
            }
        }
        samples.retain(|s| s.from <= self.now && s.until.is_none_or(|until| until > s.from));
        samples
    }

    /// The issues that may have samples for an alert.
    fn issues(&self, alert: &Alert, extent: Extent) -> impl Iterator<Item = IssueSurvey<'s>> {
        let begin = match extent {
            Extent::Now => self.looks_back_to(alert),
            Extent::Ever => None,
        };
        let (name, only) = (self.name, self.issue);
        let issues = self.all.active_since(begin);
        let issues = issues.filter(move |issue| issue.protocol == *name);
        issues.filter(move |issue| only.is_none_or(|key| issue.key == *key))
    }

    /// The moment before which nothing in an issue without open handoffs counts; `None` if all of
    /// history may count.
    fn looks_back_to(&self, alert: &Alert) -> Option<Moment> {
        let is_of_the_open = match alert.metric.measure() {
            Measure::WaitStatus => true,
            Measure::Level => alert.metric != Metric::Corruption,
            Measure::Events | Measure::Times | Measure::Share => false,
        };
        if is_of_the_open {
            return Some(self.now);
        }
        let patience = seconds(alert.longer_than_seconds).unwrap_or_default();
        let length = seconds(alert.within_seconds)?.checked_add(&patience)?;
        self.now.checked_sub_signed(length)
    }

    /// When a threshold was crossed; `None` if it is not crossed now.
    fn crossed_since(&self, samples: &[Sample], sum: Sum, threshold: Threshold) -> Option<Moment> {
        let mut steps: Vec<(Moment, i64, i64, i64)> = Vec::with_capacity(2 * samples.len());
        for sample in samples {
            let below = i64::from(is_below(sample.amount, threshold));
            steps.push((sample.from, 1, sample.amount, below));
            if let Some(until) = sample.until.filter(|until| *until <= self.now) {
                steps.push((until, -1, -sample.amount, -below));
            }
        }
        let crossed = |count: i64, amount: i64, below: i64| match sum {
            Sum::Count => threshold.is_crossed_by(as_number(count * ONE)),
            Sum::Average => {
                let average = usize::try_from(count).ok().and_then(|n| mean(amount, n));
                average.is_some_and(|average| threshold.is_crossed_by(average))
            }
            Sum::Quantile(quantile) => {
                let rank = usize::try_from(count).ok().and_then(|n| rank(quantile, n));
                let rank = rank.and_then(|rank| i64::try_from(rank).ok());
                rank.is_some_and(|rank| match threshold.side {
                    Side::Above | Side::AtLeast => below < rank,
                    Side::Below | Side::AtMost => below >= rank,
                })
            }
        };
        let (mut count, mut amount, mut below) = (0, 0, 0);
        for (_, n, a, b) in &steps {
            (count, amount, below) = (count + n, amount + a, below + b);
        }
        // Walk back to the last moment at which it was not crossed: usually a few steps.
        let mut steps = BinaryHeap::from(steps);
        let mut since = None;
        while crossed(count, amount, below) {
            let Some((at, n, a, b)) = steps.pop() else {
                // If it was crossed even before the first sample, it has been since the first issue
                // was opened.
                let issues = self.all.iter().filter(|issue| issue.protocol == *self.name);
                let own = issues.filter(|issue| self.issue.is_none_or(|key| issue.key == *key));
                return Some(own.map(|i| i.opened_at).min().unwrap_or(self.now));
            };
            (count, amount, below) = (count - n, amount - a, below - b);
            // Apply changes of the same moment together.
            while steps.peek().is_some_and(|next| next.0 == at) {
                if let Some((_, n, a, b)) = steps.pop() {
                    (count, amount, below) = (count - n, amount - a, below - b);
                }
            }
            since = Some(at);
        }
        since
    }

    /// The samples of an alert's metric.
    fn samples(&self, alert: &Alert, extent: Extent) -> Vec<Sample> {
        let patience = seconds(alert.longer_than_seconds).unwrap_or_default();
        match alert.metric {
            Metric::CyclesBlocked | Metric::ContractsRefused => self.refused(alert.metric),
            Metric::Corruption => self.corruption(),
            Metric::BudgetSpent => self.budgets(self.issues(alert, extent)),
            Metric::NeedsPerson => self.hindered(self.issues(alert, extent), patience),
            Metric::IdleIssues => self.idle(self.issues(alert, extent), patience),
            Metric::RoundsLeft => self.rounds_left(|| self.issues(alert, extent)),
            Metric::CycleTime => self.cycle_times(self.issues(alert, extent)),
            Metric::AcknowledgmentRate => self.acknowledged(alert, patience, extent),
            _ => {
                let mut found = Vec::new();
                for issue in self.issues(alert, extent) {
                    self.add_samples(&issue, alert.metric, patience, &mut found);
                }
                found
            }
        }
    }

    fn add_samples(
        &self,
        issue: &IssueSurvey<'s>,
        metric: Metric,
        patience: TimeDelta,
        found: &mut Vec<Sample>,
    ) {
        let sample = |number: u32, (from, until, amount): Period| Sample {
            from,
            until: until.map(|until| self.past(until)),
            amount,
            issue: Some(issue.key.clone()),
            number: Some(number),
        };
        if metric.measure() == Measure::Events && metric != Metric::RetriesOfOne {
            let happened = events(issue, Some(self.protocol), metric).into_iter();
            found.extend(happened.map(|(at, number)| sample(number, (self.past(at), None, ONE))));
            return;
        }
        for handoff in issue.handoffs.iter().filter(|h| !h.is_note()) {
            let is_claimed = claimed_at(handoff).is_some();
            if !is_claimed && issue.holds_back(handoff.to) {
                continue;
            }
            let periods = match metric {
                Metric::RetriesOfOne => self.retries(handoff),
                Metric::LeasesExpired => expiry(handoff, patience).into_iter().collect(),
                Metric::SuccessRate => self.outcomes(handoff),
                Metric::Duration | Metric::AcknowledgmentTime | Metric::RecoveryTime => {
                    let measured = measured(metric, handoff).into_iter();
                    let period = |(at, length): (_, TimeDelta)| {
                        (self.past(at), None, length.num_milliseconds())
                    };
                    measured.map(period).collect()
                }
                _ => self.waits(issue, handoff, metric, patience),
            };
            found.extend(
                periods
                    .into_iter()
                    .map(|period| sample(handoff.number, period)),
            );
        }
    }

    fn retries(&self, handoff: &HandoffSurvey<'_>) -> Vec<Period> {
        let retried = |event| matches!(event, Some(Event::Retry | Event::Redrive));
        let retries = handoff.changes.iter().filter(|c| retried(c.event));
        let counted = (1..).zip(retries);
        counted
            .map(|(nth, change)| (self.past(change.at), None, nth * ONE))
            .collect()
    }

    /// A sample per end or failure, until the handoff's next event: 1 for success, else 0.
    fn outcomes(&self, handoff: &HandoffSurvey<'_>) -> Vec<Period> {
        let outcome = |(change, until): (&ChangeSurvey<'_>, _)| {
            let success = match change.to {
                State::Completed => ONE,
                State::Failed | State::Dead | State::Rejected => 0,
                _ => return None,
            };
            Some((self.past(change.at), until, success))
        };
        with_ends(handoff).filter_map(outcome).collect()
    }

    /// The periods in the state that a metric counts; each counts once it has lasted for
    /// `patience`.
    fn waits(
        &self,
        issue: &IssueSurvey<'_>,
        handoff: &HandoffSurvey<'_>,
        metric: Metric,
        patience: TimeDelta,
    ) -> Vec<Period> {
        let counted = match metric {
            Metric::Pending => State::Pending,
            Metric::Blocked => State::Blocked,
            Metric::Failed => State::Failed,
            Metric::Dead => State::Dead,
            _ => return Vec::new(),
        };
        if issue.holds_back(handoff.to) {
            return Vec::new();
        }
        let spells = times::spells(handoff).into_iter();
        let period = |spell: times::Spell<'_>| {
            let since = self.past(spell.since);
            let from = if spell.until.is_none() && spell.state == State::Pending {
                self.claimable_from(issue, handoff)?.max(since)
            } else {
                since
            };
            Some((from.checked_add_signed(patience)?, spell.until, ONE))
        };
        spells
            .filter(|spell| spell.state == counted)
            .filter_map(period)
            .collect()
    }

    /// When a handoff becomes claimable: the handoffs it waits for are completed, and the pause
    /// before another attempt is over. `None` if that is not yet known.
    fn claimable_from(
        &self,
        issue: &IssueSurvey<'_>,
        handoff: &HandoffSurvey<'_>,
    ) -> Option<Moment> {
        let mut from = self
            .past(handoff.sent_at()?)
            .max(handoff.not_before.unwrap_or_default());
        for number in &handoff.waits_for {
            let before = issue.handoff(*number)?;
            let completed = before.state == State::Completed;
            from = from.max(self.past(before.changes.last().filter(|_| completed)?.at));
        }
        Some(from)
    }

    /// A sample per handoff: whether it was claimed. It counts once `patience` is over since it
    /// became claimable.
    fn acknowledged(&self, alert: &Alert, patience: TimeDelta, extent: Extent) -> Vec<Sample> {
        let window = seconds(alert.within_seconds);
        let mut found = Vec::new();
        for issue in self.issues(alert, extent) {
            for handoff in issue.handoffs.iter().filter(|h| !h.is_note()) {
                let begin = self
                    .claimable_from(&issue, handoff)
                    .and_then(|at| at.checked_add_signed(patience));
                let Some(begin) = begin else {
                    continue;
                };
                let end = window.and_then(|window| begin.checked_add_signed(window));
                let claim = claimed_at(handoff).map(|at| self.past(at).max(begin));
                let sample = |from: Moment, until: Option<Moment>, amount| Sample {
                    from,
                    until: [until, end].into_iter().flatten().min(),
                    amount,
                    issue: Some(issue.key.clone()),
                    number: Some(handoff.number),
                };
                found.push(sample(begin, claim, 0));
                found.extend(claim.map(|claim| sample(claim, None, ONE)));
            }
        }
        found
    }

    /// Contracts refused in this clone.
    fn refused(&self, metric: Metric) -> Vec<Sample> {
        let own = self.local.refused.iter().filter(|refused| {
            let protocol = refused.protocol.as_ref();
            protocol.is_none_or(|protocol| protocol == self.name)
                && (metric == Metric::ContractsRefused || refused.is_cycle())
                && self
                    .issue
                    .is_none_or(|key| refused.issue.as_ref() == Some(key))
        });
        let sample = own.map(|refused| Sample {
            from: self.past(refused.at),
            until: None,
            amount: ONE,
            issue: refused.issue.clone(),
            number: None,
        });
        sample.collect()
    }

    /// The findings of this clone's last audit, which belong to no issue.
    fn corruption(&self) -> Vec<Sample> {
        let audited = self.local.audited.as_ref().filter(|_| self.issue.is_none());
        let sample = audited.map(|audited| Sample {
            from: self.past(audited.at),
            until: None,
            amount: i64::try_from(audited.faults).map_or(i64::MAX, |n| n.saturating_mul(ONE)),
            issue: None,
            number: None,
        });
        sample.into_iter().collect()
    }

    /// The needs of handoffs that wait for a person.
    fn hindered(
        &self,
        issues: impl Iterator<Item = IssueSurvey<'s>>,
        patience: TimeDelta,
    ) -> Vec<Sample> {
        let needed = issues.flat_map(|issue| {
            // Of what a person decides, only the number counts.
            let decides = |number| {
                let mut awaiting = issue.awaiting.iter().filter(|(one, _)| *one == number);
                let is_due = issue.status == IssueStatus::Completed
                    || issue
                        .handoff(number)
                        .is_some_and(|one| !one.state.is_terminal());
                let due = awaiting.next().filter(|_| is_due);
                Ok::<_, Infallible>(due.map(|(_, agent)| (agent.clone(), Need::Unapproved).into()))
            };
            let Ok(needed) = of_issue(&issue, self.protocol, (self.today, &[]), self.now, decides);
            needed
        });
        let sample = needed
            .filter(|one| one.need.is_hindrance())
            .filter_map(|one| {
                Some(Sample {
                    from: self.past(one.since).checked_add_signed(patience)?,
                    until: None,
                    amount: ONE,
                    number: Some(one.id.number()),
                    issue: Some(one.issue),
                })
            });
        sample.collect()
    }

    /// Open issues that need attention although no handoff is open in them.
    fn idle(
        &self,
        issues: impl Iterator<Item = IssueSurvey<'s>>,
        patience: TimeDelta,
    ) -> Vec<Sample> {
        let ended = |issue: &IssueSurvey<'_>| {
            let mut handoffs = issue.handoffs.iter();
            issue.status == IssueStatus::Open && handoffs.all(|h| h.state.is_terminal())
        };
        let awaits = |issue: &IssueSurvey<'_>| {
            let mut awaiting = issue.awaiting.iter();
            awaiting.any(|(_, agent)| !issue.holds_back(agent.borrowed()))
        };
        let idle = issues.filter(|i| ended(i) && awaits(i));
        let sample = idle.filter_map(|issue| {
            Some(Sample {
                from: self.past(issue.updated_at).checked_add_signed(patience)?,
                until: None,
                amount: ONE,
                issue: Some(issue.key.clone()),
                number: None,
            })
        });
        sample.collect()
    }

    /// For each open issue, how many rounds each limit left after each round.
    fn rounds_left<I: Iterator<Item = IssueSurvey<'s>>>(
        &self,
        issues: impl Fn() -> I,
    ) -> Vec<Sample> {
        let mut found = Vec::new();
        let limits = self.protocol.definition().limits.as_ref();
        for (name, limit) in limits.iter().flat_map(|limits| &limits.rounds) {
            for issue in issues().filter(|i| i.status == IssueStatus::Open) {
                let own = issue
                    .rounds
                    .iter()
                    .filter(|round| round.name == *name && round.number > issue.counts_after);
                let sent = |number| issue.handoff(number).and_then(HandoffSurvey::sent_at);
                let at =
                    own.filter_map(|round| Some((round.number, self.past(sent(round.number)?))));
                let at: Vec<(u32, Moment)> = at.collect();
                let ends = at.iter().skip(1).map(|(_, at)| Some(*at)).chain([None]);
                for (nth, ((number, from), until)) in (1..).zip(at.iter().zip(ends)) {
                    found.push(Sample {
                        from: *from,
                        until,
                        amount: (i64::from(limit.most) - nth) * ONE,
                        issue: Some(issue.key.clone()),
                        number: Some(*number),
                    });
                }
            }
        }
        found
    }

    /// The largest share of a budget that is spent, in each open issue and today.
    fn budgets(&self, issues: impl Iterator<Item = IssueSurvey<'s>>) -> Vec<Sample> {
        let definition = self.protocol.definition();
        let sample = |from, share: u64, issue| Sample {
            from,
            until: None,
            amount: i64::try_from(share).unwrap_or(i64::MAX),
            issue,
            number: None,
        };
        let open = issues.filter(|issue| issue.status == IssueStatus::Open);
        let in_issues = open.filter_map(|issue| {
            let share = used(definition, Per::Issue, &issue.spent)?;
            Some(sample(
                self.past(issue.updated_at),
                share,
                Some(issue.key.clone()),
            ))
        });
        let mut found: Vec<Sample> = in_issues.collect();
        // A day's budget spans all issues.
        let today = self.today.filter(|_| self.issue.is_none());
        if let Some(share) = today.and_then(|today| used(definition, Per::Day, today)) {
            found.push(sample(self.now, share, None));
        }
        found
    }

    /// A sample per completed issue: the time from its opening to its completion.
    fn cycle_times(&self, issues: impl Iterator<Item = IssueSurvey<'s>>) -> Vec<Sample> {
        let completed = issues.filter_map(|issue| {
            let end = issue.completed_at?;
            Some(Sample {
                from: self.past(end),
                until: None,
                amount: (end - issue.opened_at).num_milliseconds().max(0),
                issue: Some(issue.key.clone()),
                number: None,
            })
        });
        completed.collect()
    }
}

/// Each event of a handoff, with the time of the next one.
fn with_ends<'h>(
    handoff: &'h HandoffSurvey<'h>,
) -> impl Iterator<Item = (&'h ChangeSurvey<'h>, Option<Moment>)> {
    let ends = handoff.changes.iter().skip(1).map(|change| Some(change.at));
    handoff.changes.iter().zip(ends.chain([None]))
}

/// A period that begins `patience` after the end of the lease of work in progress.
fn expiry(handoff: &HandoffSurvey<'_>, patience: TimeDelta) -> Option<Period> {
    let end = handoff.expires_at;
    let end = end.filter(|_| handoff.state == State::InProgress)?;
    Some((end.checked_add_signed(patience)?, None, ONE))
}

/// The times that a metric measures in a handoff, each with the moment it ended.
fn measured(metric: Metric, handoff: &HandoffSurvey<'_>) -> Vec<(Moment, TimeDelta)> {
    let one =
        |end: Option<Moment>, length: Option<TimeDelta>| end.zip(length).into_iter().collect();
    match metric {
        Metric::Duration => {
            let last = handoff.changes.last().map(|change| change.at);
            one(last, times::resolution(handoff))
        }
        Metric::AcknowledgmentTime => one(claimed_at(handoff), times::acknowledgment(handoff)),
        _ => times::recovered(handoff),
    }
}

/// When a handoff was first claimed.
fn claimed_at(handoff: &HandoffSurvey<'_>) -> Option<Moment> {
    let mut changes = handoff.changes.iter();
    Some(changes.find(|c| c.event == Some(Event::Claim))?.at)
}

/// Whether a sample is below a threshold; a quantile is judged by the number of such samples.
fn is_below(amount: i64, threshold: Threshold) -> bool {
    let amount = as_number(amount);
    match threshold.side {
        Side::Above | Side::AtMost => amount <= threshold.value,
        Side::AtLeast | Side::Below => amount < threshold.value,
    }
}

/// The aggregate of samples; `None` without samples.
fn value(samples: &[Sample], sum: Sum) -> Option<f64> {
    match sum {
        Sum::Count => Some(as_number(i64::try_from(samples.len()).ok()? * ONE)),
        Sum::Average => mean(samples.iter().map(|s| s.amount).sum(), samples.len()),
        Sum::Quantile(quantile) => {
            let mut amounts: Vec<i64> = samples.iter().map(|s| s.amount).collect();
            amounts.sort_unstable();
            let nth = rank(quantile, amounts.len())?.checked_sub(1)?;
            amounts.get(nth).copied().map(as_number)
        }
    }
}

/// The average of amounts; `None` without any.
fn mean(sum: i64, count: usize) -> Option<f64> {
    average(sum, count).map(|thousandths| thousandths / as_number(ONE * ONE))
}

#[allow(clippy::cast_precision_loss)]
fn as_number(amount: i64) -> f64 {
    amount as f64 / ONE as f64
}
