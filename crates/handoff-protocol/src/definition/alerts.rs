//! Alerts: thresholds of metrics, and what to do when one is crossed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use serde_with::skip_serializing_none;

/// A metric that a threshold can be about; its name is the same in `protocol.json` and in output.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Failed attempts, including those whose lease or time to claim them ran out.
    Failures,
    /// Attempts whose lease or time to claim them ran out.
    Timeouts,
    /// Retries of failed work.
    Retries,
    /// Handoffs that were escalated to a person.
    Escalated,
    /// Handoffs that their receivers rejected.
    Rejected,
    /// Cancelled handoffs.
    Cancelled,
    /// Statements of contracts that the repository contradicts.
    Contradicted,
    /// Role violations of agents.
    Violations,
    /// Contracts refused because the work would have gone in circles.
    CyclesBlocked,
    /// Contracts refused for any reason.
    ContractsRefused,
    /// The most retries of one handoff.
    RetriesOfOne,
    /// The fewest rounds that an open issue has left.
    RoundsLeft,
    /// The largest share of a budget that is spent: in an open issue, or today.
    BudgetSpent,
    /// Handoffs that wait for their receivers.
    Pending,
    /// Handoffs that wait for an answer.
    Blocked,
    /// Handoffs that failed and that nobody has decided about.
    Failed,
    /// Handoffs without an attempt left.
    Dead,
    /// Handoffs in progress whose lease ran out.
    LeasesExpired,
    /// Handoffs that wait for a person: escalated, past their issue's deadline, or out of budget.
    NeedsPerson,
    /// Open issues without an open handoff.
    IdleIssues,
    /// From sending to the end.
    Duration,
    /// From sending to the first claim.
    AcknowledgmentTime,
    /// From a failure to the claim that resumes the work.
    RecoveryTime,
    /// From opening an issue to its completion.
    CycleTime,
    /// The share of completed handoffs among those that ended or need attention.
    SuccessRate,
    /// The share of sent handoffs that were claimed.
    AcknowledgmentRate,
    /// Faults found by the last audit in this clone.
    Corruption,
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
    /// The metric's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Timeouts => "timeouts",
            Self::Retries => "retries",
            Self::Escalated => "escalated",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::Contradicted => "contradicted",
            Self::Violations => "violations",
            Self::CyclesBlocked => "cycles_blocked",
            Self::ContractsRefused => "contracts_refused",
            Self::RetriesOfOne => "retries_of_one",
            Self::RoundsLeft => "rounds_left",
            Self::BudgetSpent => "budget_spent",
            Self::Pending => "pending",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::LeasesExpired => "leases_expired",
            Self::NeedsPerson => "needs_person",
            Self::IdleIssues => "idle_issues",
            Self::Duration => "duration",
            Self::AcknowledgmentTime => "acknowledgment_time",
            Self::RecoveryTime => "recovery_time",
            Self::CycleTime => "cycle_time",
            Self::SuccessRate => "success_rate",
            Self::AcknowledgmentRate => "acknowledgment_rate",
            Self::Corruption => "corruption",
        }
    }

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

/// How serious an alert is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing.
    Info,
    /// Something is going wrong.
    Warning,
    /// Work stops or is lost.
    Critical,
}

impl Level {
    /// Every level, the least serious first.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Critical];

    /// The level's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
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

/// A number, and the side of it that triggers an alert.
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
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alert {
    /// Its name, in lower-case letters, digits and `-`.
    pub name: String,
    /// The metric, one of [these](metrics.md#what-an-alert-can-watch).
    pub metric: Metric,
    /// Fires above this: a number of things, seconds (fractions allowed), or a share from 0 to 1.
    /// An alert has one of the four thresholds.
    pub above: Option<Number>,
    /// Fires at this and above.
    pub at_least: Option<Number>,
    /// Fires below this.
    pub below: Option<Number>,
    /// Fires at this and below.
    pub at_most: Option<Number>,
    /// For events, times and shares: counts only what happened in this many seconds before now;
    /// everything, if not given.
    pub within_seconds: Option<u64>,
    /// For current states: counts only what has been in that state for this many seconds.
    pub longer_than_seconds: Option<u64>,
    /// For times: the quantile that counts, above 0, with 1 for the longest; the average, if not
    /// given.
    pub quantile: Option<Number>,
    /// How serious it is.
    pub severity: Level,
    /// What to do about it, in one line.
    pub action: String,
}

impl Alert {
    /// The thresholds that it names; a valid alert has exactly one.
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

    /// The threshold to compare with.
    pub fn threshold(&self) -> Option<Threshold> {
        self.thresholds().next()
    }
}
