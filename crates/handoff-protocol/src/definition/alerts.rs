//! Thresholds: what someone is told of, and what is to be done then.

use serde::{Deserialize, Serialize};
use serde_json::Number;

/// A figure that a threshold can be about; the words are the same in
/// `protocol.json` and in what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Attempts that failed, those whose lease ran out included.
    Failures,
    /// Attempts whose lease ran out.
    Timeouts,
    /// Further attempts at what failed.
    Retries,
    /// Handoffs that came to a person.
    Escalated,
    /// Handoffs that their receivers refused.
    Rejected,
    /// Handoffs that were withdrawn.
    Cancelled,
    /// Claims of contracts that the repository contradicts.
    Contradicted,
    /// What agents did against their roles.
    Violations,
    /// Contracts that were refused because they would have gone in circles.
    CyclesBlocked,
    /// Contracts that were refused, for whatever reason.
    ContractsRefused,
    /// The most retries of one handoff.
    RetriesOfOne,
    /// The fewest rounds that the limits leave an open issue.
    RoundsLeft,
    /// Handoffs that wait for their receivers.
    Pending,
    /// Handoffs that wait for an answer.
    Blocked,
    /// Handoffs that failed, and nobody has decided what becomes of them.
    Failed,
    /// Handoffs without an attempt left.
    Dead,
    /// Handoffs that are worked on, and whose lease ran out.
    LeasesExpired,
    /// Open issues in which no handoff is open.
    IdleIssues,
    /// From the sending to the end.
    Duration,
    /// From the sending to the first claim.
    AcknowledgmentTime,
    /// From a failure to the claim that took the work up again.
    RecoveryTime,
    /// From the opening of an issue to its completion.
    CycleTime,
    /// How much of what ended, or stands still, was completed.
    SuccessRate,
    /// How much of what was sent was claimed.
    AcknowledgmentRate,
    /// Faults that the last audit in this clone found.
    Corruption,
}

/// What a metric is a figure of, which says what a threshold about it can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Events: they are counted within a time.
    Events,
    /// Things that are so now: they are counted once they are so for a time.
    WaitStatus,
    /// Times: an average, or a quantile, of those measured within a time.
    Times,
    /// A share of what happened within a time.
    Share,
    /// A number that is what it is.
    Level,
}

impl Metric {
    /// The word for it.
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
            Self::Pending => "pending",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::LeasesExpired => "leases_expired",
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

    /// What it is a figure of.
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
            | Self::IdleIssues => Measure::WaitStatus,
            Self::Duration | Self::AcknowledgmentTime | Self::RecoveryTime | Self::CycleTime => {
                Measure::Times
            }
            Self::SuccessRate | Self::AcknowledgmentRate => Measure::Share,
            Self::RoundsLeft | Self::Corruption => Measure::Level,
        }
    }

    /// The unit of its values: `seconds`, `ratio`, or nothing for numbers of things.
    pub fn unit(self) -> &'static str {
        match self.measure() {
            Measure::Times => "seconds",
            Measure::Share => "ratio",
            Measure::Events | Measure::WaitStatus | Measure::Level => "",
        }
    }

    /// Says whether a threshold about it can be limited to the newest time.
    pub(crate) fn has_window(self) -> bool {
        matches!(
            self.measure(),
            Measure::Events | Measure::Times | Measure::Share
        )
    }

    /// Says whether a threshold about it can let a time pass first.
    pub(crate) fn has_patience(self) -> bool {
        self.measure() == Measure::WaitStatus || self == Self::AcknowledgmentRate
    }
}

/// How much an alarm weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth a look.
    Info,
    /// Something goes wrong.
    Warning,
    /// Work stops, or is lost.
    Critical,
}

impl Level {
    /// Every level, the lightest first.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Critical];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// On which side of a number a value has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// More than it.
    Above,
    /// It, or more.
    AtLeast,
    /// Less than it.
    Below,
    /// It, or less.
    AtMost,
}

/// A number, and the side of it that is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The side.
    pub side: Side,
    /// The number.
    pub value: f64,
}

impl Threshold {
    /// Says whether a value is one to tell of.
    pub fn is_crossed_by(self, value: f64) -> bool {
        match self.side {
            Side::Above => value > self.value,
            Side::AtLeast => value >= self.value,
            Side::Below => value < self.value,
            Side::AtMost => value <= self.value,
        }
    }
}

/// When someone is told, and what is to be done then.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alert {
    /// Its name, in the protocol its own.
    pub name: String,
    /// What it is about.
    pub metric: Metric,
    /// Fires above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<Number>,
    /// Fires at this and above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Number>,
    /// Fires below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Number>,
    /// Fires at this and below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Number>,
    /// Only what happened in so many seconds before now counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_seconds: Option<u64>,
    /// Only what has been so for so many seconds counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_than_seconds: Option<u64>,
    /// Of times, the quantile that counts, from 0 to 1; else it is their average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantile: Option<Number>,
    /// How much it weighs.
    pub severity: Level,
    /// What is to be done.
    pub action: String,
}

impl Alert {
    /// The thresholds that it names, of which a sound one has one.
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

    /// What it compares with.
    pub fn threshold(&self) -> Option<Threshold> {
        self.thresholds().next()
    }
}
