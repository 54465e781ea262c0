//! Distributions of measured times.

use chrono::TimeDelta;
use handoff_graph::times::rank;
use schemars::JsonSchema;
use serde::Serialize;

/// The upper bounds of the histogram's buckets, in seconds: a second to a month.
pub const BUCKETS: [i64; 12] = [
    1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 604_800, 2_592_000,
];

/// Measured times, in milliseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<i64>);

impl Samples {
    pub(super) fn add_all(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    pub(super) fn add(&mut self, length: impl IntoIterator<Item = TimeDelta>) {
        self.0
            .extend(length.into_iter().map(|length| length.num_milliseconds()));
    }
}

/// The distribution of samples. Without samples, there is no average and no quantile.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Distribution {
    /// How many were measured.
    pub count: usize,
    /// Their sum, in seconds.
    #[serde(serialize_with = "seconds::one")]
    #[schemars(with = "f64")]
    pub(crate) sum: TimeDelta,
    /// The average; null without samples, as are the following.
    pub average: Option<f64>,
    /// The median.
    #[serde(serialize_with = "seconds::optional")]
    #[schemars(with = "Option<f64>")]
    pub p50: Option<TimeDelta>,
    /// The 95th percentile.
    #[serde(serialize_with = "seconds::optional")]
    #[schemars(with = "Option<f64>")]
    pub p95: Option<TimeDelta>,
    /// The 99th percentile.
    #[serde(serialize_with = "seconds::optional")]
    #[schemars(with = "Option<f64>")]
    pub p99: Option<TimeDelta>,
    /// The maximum.
    #[serde(serialize_with = "seconds::optional")]
    #[schemars(with = "Option<f64>")]
    pub longest: Option<TimeDelta>,
    /// The number of samples up to each of [`BUCKETS`].
    #[serde(skip)]
    pub(crate) buckets: [usize; BUCKETS.len()],
}

impl Distribution {
    /// Sorts the samples; merging several sorted runs is fast.
    pub(super) fn of(Samples(sorted): &mut Samples) -> Self {
        sorted.sort();
        let sum: i64 = sorted.iter().sum();
        let quantile = |q| {
            let nth = rank(q, sorted.len())?.checked_sub(1)?;
            sorted.get(nth).copied().map(TimeDelta::milliseconds)
        };
        let upto = |end: i64| sorted.partition_point(|&length| length <= end * 1000);
        Self {
            count: sorted.len(),
            sum: TimeDelta::milliseconds(sum),
            average: average(sum, sorted.len()).map(|ms| ms / 1000.0),
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            longest: sorted.last().copied().map(TimeDelta::milliseconds),
            buckets: BUCKETS.map(upto),
        }
    }
}

/// Serializes durations as seconds, without a fraction unless they have milliseconds.
pub(crate) mod seconds {
    use chrono::TimeDelta;
    use serde::{Serialize, Serializer};

    /// The number of seconds.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn number(length: TimeDelta) -> f64 {
        length.num_milliseconds() as f64 / 1000.0
    }

    pub(super) fn one<S: Serializer>(length: &TimeDelta, s: S) -> Result<S::Ok, S::Error> {
        match length.num_milliseconds() % 1000 {
            0 => length.num_seconds().serialize(s),
            _ => number(*length).serialize(s),
        }
    }

    #[allow(clippy::ref_option, reason = "serde calls it this way")]
    pub(super) fn optional<S: Serializer>(
        length: &Option<TimeDelta>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        match length {
            Some(length) => one(length, s),
            None => s.serialize_none(),
        }
    }
}

/// The average; `None` without samples.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn average(sum: i64, count: usize) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::{Distribution, Samples};
    use handoff_graph::times::rank;

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let ranks = |q: f64| [1, 2, 3, 20, 100].map(|count| rank(q, count).unwrap_or(0));
        assert_eq!(ranks(0.5), [1, 1, 2, 10, 50]);
        assert_eq!(ranks(0.95), [1, 2, 3, 19, 95]);
        assert_eq!(ranks(0.99), [1, 2, 3, 20, 99]);
        assert_eq!(ranks(1.0), [1, 2, 3, 20, 100]);
        assert_eq!(ranks(0.0), [1; 5]);
        // 0.07 × 100 is 7.000000000000001 in binary.
        assert_eq!(rank(0.07, 100), Some(7));
        assert_eq!(rank(0.5, 0), None);
    }

    #[test]
    fn nothing_has_no_quantile_and_one_has_every() {
        let mut samples = Samples::default();
        let none = Distribution::of(&mut samples);
        assert_eq!((none.average, none.p50, none.longest), (None, None, None));
        let minute = Some(TimeDelta::seconds(60));
        samples.add(minute);
        let one = Distribution::of(&mut samples);
        assert_eq!((one.p50, one.p99, one.longest), (minute, minute, minute));
        assert_eq!(one.buckets[2..4], [0, 1]);
    }
}
