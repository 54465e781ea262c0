//! Alerts: thresholds of metrics, and what to do when one is crossed.

use handoff_base::text::closest;
use handoff_base::words;
use std::fmt;
use std::ops::Deref;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;

use super::attention::Need;

words! {
    /// A metric that a threshold can be about; its name is the same in `protocol.json` and in output.
    pub enum Metric {
        /// Failed attempts, including those whose lease or time to claim them ran out.
        Failures = "failures",
        /// Attempts whose lease or time to claim them ran out.
        Timeouts = "timeouts",
        /// Retries of failed work.
        Retries = "retries",
        /// Handoffs that were escalated to a person.
        Escalated = "escalated",
        /// Handoffs that their receivers rejected.
        Rejected = "rejected",
        /// Cancelled handoffs.
        Cancelled = "cancelled",
        /// Statements of contracts that the repository contradicts.
        Contradicted = "contradicted",
        /// Role violations of agents.
        Violations = "violations",
        /// Contracts refused because the work would have gone in circles.
        CyclesBlocked = "cycles_blocked",
        /// Contracts refused for any reason.
        ContractsRefused = "contracts_refused",
        /// The most retries of one handoff.
        RetriesOfOne = "retries_of_one",
        /// The fewest rounds that an open issue has left.
        RoundsLeft = "rounds_left",
        /// The largest share of a budget that is spent: in an open issue, or today.
        BudgetSpent = "budget_spent",
        /// Handoffs that wait for their receivers.
        Pending = "pending",
        /// Handoffs that wait for an answer.
        Blocked = "blocked",
        /// Handoffs that failed and that nobody has decided about.
        Failed = "failed",
        /// Handoffs without an attempt left.
        Dead = "dead",
        /// Handoffs in progress whose lease ran out.
        LeasesExpired = "leases_expired",
        /// Handoffs that wait for a person: escalated, past their issue's deadline, or out of budget.
        NeedsPerson = "needs_person",
        /// Open issues without an open handoff.
        IdleIssues = "idle_issues",
        /// From sending to the end.
        Duration = "duration",
        /// From sending to the first claim.
        AcknowledgmentTime = "acknowledgment_time",
        /// From a failure to the claim that resumes the work.
        RecoveryTime = "recovery_time",
        /// From opening an issue to its completion.
        CycleTime = "cycle_time",
        /// The share of completed handoffs among completed, failed, dead and rejected ones.
        SuccessRate = "success_rate",
        /// The share of sent handoffs that were claimed.
        AcknowledgmentRate = "acknowledgment_rate",
        /// Faults found by the last audit in this clone.
        Corruption = "corruption",
    }
}

/// What a metric measures, which determines the settings that a threshold can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Events, counted within a period.
    Events,
    /// Current conditions, counted once they have lasted for a period.
    WaitStatus,
    /// Durations: the average or a quantile of those measured within a period.
    Times,
    /// A share of what happened within a period.
    Share,
    /// A plain number.
    Level,
}

impl Metric {
    /// What the metric measures.
    pub fn measure(self) -> Measure {
        match self {
            Self::Failures
            | Self::Timeouts
            | Self::Retries
            | Self::Escalated
            | Self::Rejected
            | Self::Cancelled
            | Self::Contradicted
            | Self::Violations
            | Self::CyclesBlocked
            | Self::ContractsRefused
            | Self::RetriesOfOne => Measure::Events,
            Self::Pending
            | Self::Blocked
            | Self::Failed
            | Self::Dead
            | Self::LeasesExpired
            | Self::NeedsPerson
            | Self::IdleIssues => Measure::WaitStatus,
            Self::Duration | Self::AcknowledgmentTime | Self::RecoveryTime | Self::CycleTime => {
                Measure::Times
            }
            Self::SuccessRate | Self::AcknowledgmentRate => Measure::Share,
            Self::RoundsLeft | Self::BudgetSpent | Self::Corruption => Measure::Level,
        }
    }

    /// The unit of its values: `seconds`, `ratio`, or none for counts.
    pub fn unit(self) -> &'static str {
        match self.measure() {
            Measure::Level if self == Self::BudgetSpent => "ratio",
            Measure::Times => "seconds",
            Measure::Share => "ratio",
            Measure::Events | Measure::WaitStatus | Measure::Level => "",
        }
    }

    /// Whether a threshold about it can be limited to a recent period.
    pub(crate) fn has_window(self) -> bool {
        matches!(
            self.measure(),
            Measure::Events | Measure::Times | Measure::Share
        )
    }

    /// Whether a threshold about it can require a minimum duration.
    pub(crate) fn has_patience(self) -> bool {
        self.measure() == Measure::WaitStatus || self == Self::AcknowledgmentRate
    }
}

words! {
    /// How serious an alert is.
    pub enum Level {
        /// Worth knowing.
        Info = "info",
        /// Something is going wrong.
        Warning = "warning",
        /// Work stops or is lost.
        Critical = "critical",
    }
}

/// The side of a number that a value must be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Greater than the number.
    Above,
    /// The number or greater.
    AtLeast,
    /// Less than the number.
    Below,
    /// The number or less.
    AtMost,
}

/// A number, and the side of it on which the alert fires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The side.
    pub side: Side,
    /// The number.
    pub value: f64,
}

impl Threshold {
    /// Whether a value crosses the threshold.
    pub fn is_crossed_by(self, value: f64) -> bool {
        match self.side {
            Side::Above => value > self.value,
            Side::AtLeast => value >= self.value,
            Side::Below => value < self.value,
            Side::AtMost => value <= self.value,
        }
    }
}

/// An alert: when it fires, and what to do then.
#[derive(Clone, Debug, Serialize)]
pub struct Alert {
    /// Its name, in lower-case letters, digits and `-`.
    pub name: String,
    /// The metric, one of [these](metrics.md#what-an-alert-can-watch).
    pub metric: Metric,
    /// Fires above this: a number, seconds, or a share from 0 to 1. One threshold of four.
    pub above: Option<Number>,
    /// Fires at this and above.
    pub at_least: Option<Number>,
    /// Fires below this.
    pub below: Option<Number>,
    /// Fires at this and below.
    pub at_most: Option<Number>,
    /// For events, times and shares: only these last seconds count; by default all.
    pub within_seconds: Option<u64>,
    /// For current states: counts what has lasted this many seconds.
    pub longer_than_seconds: Option<u64>,
    /// For times: the quantile, up to 1 for the longest; by default the average.
    pub quantile: Option<Number>,
    /// How serious it is.
    pub severity: Level,
    /// What to do about it, in one line.
    pub action: String,
}

/// The stored form of an alert.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Alert")]
pub(super) struct StoredAlert {
    /// Its name, in lower-case letters, digits and `-`; of a usual alert, the rest is usual.
    name: Option<String>,
    /// In place of an alert: what needs somebody.
    need: Option<Need>,
    /// Who is told of `need`, the turn first: `sender`, `receiver`, `lead`, `person` or an agent;
    /// else [the defaults](protocols.md#who-is-told).
    tell: Option<Vec<String>>,
    /// The metric, one of [these](metrics.md#what-an-alert-can-watch).
    metric: Option<Metric>,
    /// Fires above this: a number, seconds, or a share from 0 to 1. One threshold of four.
    above: Option<Number>,
    /// Fires at this and above.
    at_least: Option<Number>,
    /// Fires below this.
    below: Option<Number>,
    /// Fires at this and below.
    at_most: Option<Number>,
    /// For events, times and shares: only these last seconds count; by default all.
    within_seconds: Option<u64>,
    /// For current states: counts what has lasted this many seconds.
    longer_than_seconds: Option<u64>,
    /// For times: the quantile, up to 1 for the longest; by default the average.
    quantile: Option<Number>,
    /// How serious it is.
    severity: Option<Level>,
    /// What to do about it, in one line.
    action: Option<String>,
}

/// An entry of the stored list, used only for its schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "AlertEntry")]
#[expect(
    dead_code,
    reason = "only its schema is used: an entry is read as an alert"
)]
pub(super) enum StoredEntry {
    /// The name of a default alert.
    Usual(String),
    /// An alert, or a default alert with the members that override it.
    Own(StoredAlert),
}

/// The default alerts: name, metric, minimum duration in seconds, severity, and the action to take.
const USUAL: [(&str, Metric, Option<u64>, Level, &str); 8] = [
    (
        "corrupt-ledger",
        Metric::Corruption,
        None,
        Level::Critical,
        "Compare with another clone before anyone writes: `git handoff verify` says what is wrong",
    ),
    (
        "dead-work",
        Metric::Dead,
        None,
        Level::Critical,
        "Read what is kept of the failures, then retry the handoff or cancel it",
    ),
    (
        LAST_ROUND,
        Metric::RoundsLeft,
        None,
        Level::Warning,
        "Have a person look at what keeps being sent back",
    ),
    (
        "left-failed",
        Metric::Failed,
        Some(3600),
        Level::Warning,
        "`git handoff next` says what the protocol wants done about it",
    ),
    (
        "lost-agent",
        Metric::LeasesExpired,
        None,
        Level::Warning,
        "Find out whether the agent still runs; `git handoff reap` records what ran out",
    ),
    (
        "nobody-at-it",
        Metric::IdleIssues,
        Some(3600),
        Level::Info,
        "Have whoever completed the last step hand on, or complete the issue",
    ),
    (
        "not-taken-up",
        Metric::Pending,
        Some(14_400),
        Level::Warning,
        "See that its receiver runs and looks into its inbox",
    ),
    (
        "unanswered",
        Metric::Blocked,
        Some(14_400),
        Level::Warning,
        "Answer what is asked",
    ),
];

/// The default alert that fires below its threshold.
const LAST_ROUND: &str = "last-round";

impl Alert {
    /// The default alert with this name.
    fn usual(name: &str) -> Option<Self> {
        let (name, metric, longer_than_seconds, severity, action) =
            USUAL.into_iter().find(|(usual, ..)| *usual == name)?;
        let is_last = name == LAST_ROUND;
        Some(Self {
            name: name.to_owned(),
            metric,
            above: (!is_last).then(|| 0.into()),
            at_least: None,
            below: is_last.then(|| 1.into()),
            at_most: None,
            within_seconds: None,
            longer_than_seconds,
            quantile: None,
            severity,
            action: action.to_owned(),
        })
    }
}

impl StoredAlert {
    /// Fills missing members from the default alert of that name; `Err` is the key that is still
    /// missing.
    fn completed(self) -> Result<Entry, &'static str> {
        if let Some(need) = self.need {
            return Ok(Entry::Told(need, self.tell.ok_or("tell")?));
        }
        let name = self.name.ok_or("name")?;
        let usual = Alert::usual(&name);
        let usual = usual.filter(|usual| self.metric.is_none_or(|own| own == usual.metric));
        let own = [&self.above, &self.at_least, &self.below, &self.at_most];
        let kept = usual
            .clone()
            .filter(|_| own.iter().all(|own| own.is_none()));
        let (above, below) = kept.map_or((None, None), |usual| (usual.above, usual.below));
        let of = |usual: &Option<Alert>| usual.as_ref().and_then(|u| u.longer_than_seconds);
        Ok(Entry::Alert(Alert {
            name,
            metric: self
                .metric
                .or(usual.as_ref().map(|u| u.metric))
                .ok_or("metric")?,
            above: self.above.or(above),
            at_least: self.at_least,
            below: self.below.or(below),
            at_most: self.at_most,
            within_seconds: self.within_seconds,
            longer_than_seconds: self.longer_than_seconds.or(of(&usual)),
            quantile: self.quantile,
            severity: self
                .severity
                .or(usual.as_ref().map(|u| u.severity))
                .ok_or("severity")?,
            action: self.action.or(usual.map(|u| u.action)).ok_or("action")?,
        }))
    }
}

/// A parsed entry of the list.
enum Entry {
    Alert(Alert),
    /// Who is notified of a need.
    Told(Need, Vec<String>),
}

/// The alerts of a protocol, and who is notified of each need.
#[derive(Clone, Debug, Default)]
pub struct Alerts {
    alerts: Vec<Alert>,
    /// Each alert's index in the stored list.
    pub(crate) places: Vec<usize>,
    /// Who is notified of a need, with the entry's index in the stored list.
    pub(crate) told: Vec<(usize, Need, Vec<String>)>,
}

impl Alerts {
    /// Who is notified of a need; `None` if the protocol leaves it to the defaults.
    pub fn told(&self, need: Need) -> Option<&[String]> {
        let mut told = self.told.iter();
        told.find_map(|(_, of, told)| (*of == need).then_some(&told[..]))
    }

    /// Everybody who is notified of any need.
    pub fn all_told(&self) -> impl Iterator<Item = &String> {
        self.told.iter().flat_map(|(_, _, told)| told)
    }
}

impl Deref for Alerts {
    type Target = [Alert];

    fn deref(&self) -> &[Alert] {
        &self.alerts
    }
}

impl<'de> Deserialize<'de> for Alerts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut all = Self::default();
        for (i, entry) in Vec::deserialize(deserializer)?.into_iter().enumerate() {
            match entry {
                Entry::Alert(alert) => {
                    all.alerts.push(alert);
                    all.places.push(i);
                }
                Entry::Told(need, told) => all.told.push((i, need, told)),
            }
        }
        Ok(all)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object, in braces, or the name of a usual alert")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Entry, E> {
                Alert::usual(name).map(Entry::Alert).ok_or_else(|| {
                    let known = USUAL.map(|(name, ..)| name);
                    let meant = closest(name, known);
                    let meant = meant.map(|known| format!("did you mean `{known}`? "));
                    let (meant, known) = (meant.unwrap_or_default(), known.join(", "));
                    let name = name.escape_debug();
                    E::custom(format!(
                        "`{name}` is no usual alert; {meant}there are {known}"
                    ))
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Entry, A::Error> {
                let stored = StoredAlert::deserialize(MapAccessDeserializer::new(map))?;
                stored.completed().map_err(de::Error::missing_field)
            }
        }
        deserializer.deserialize_any(Entries)
    }
}

impl Alert {
    /// The thresholds that are set; a valid alert has exactly one.
    pub(crate) fn thresholds(&self) -> impl Iterator<Item = Threshold> {
        let all = [
            (Side::Above, &self.above),
            (Side::AtLeast, &self.at_least),
            (Side::Below, &self.below),
            (Side::AtMost, &self.at_most),
        ];
        all.into_iter().filter_map(|(side, number)| {
            let value = number.as_ref()?.as_f64()?;
            Some(Threshold { side, value })
        })
    }

    /// The only threshold of a valid alert.
    pub fn threshold(&self) -> Option<Threshold> {
        self.thresholds().next()
    }
}
