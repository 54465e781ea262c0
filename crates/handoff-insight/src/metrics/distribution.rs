//! Distributions of measured times.

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::Serialize;

/// The upper bounds of the histogram's buckets, in seconds: a second to a month.
pub const BUCKETS: [i64; 12] = [
    1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 604_800, 2_592_000,
];

/// Measured times in whole seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<i64>);

impl Samples {
    pub(super) fn add(&mut self, length: impl IntoIterator<Item = TimeDelta>) {
        self.0.extend(length.into_iter().map(|l| l.num_seconds()));
    }
}

/// The distribution of samples. Without samples, there is no average and no quantile.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Distribution {
    /// How many were measured.
    pub count: usize,
    /// All of them together, in seconds.
    pub(crate) sum: i64,
    /// Their average; null if nothing was measured, as are the following.
    pub average: Option<f64>,
    /// What half of them don't exceed.
    pub p50: Option<i64>,
    /// What 95 of 100 don't exceed.
    pub p95: Option<i64>,
    /// What 99 of 100 don't exceed.
    pub p99: Option<i64>,
    /// The longest.
    pub longest: Option<i64>,
    /// How many don't exceed each of [`BUCKETS`].
    #[serde(skip)]
    pub(crate) buckets: [usize; BUCKETS.len()],
}

impl Distribution {
    pub(super) fn of(Samples(mut sorted): Samples) -> Self {
        sorted.sort_unstable();
        let sum = sorted.iter().sum();
        let quantile = |q| sorted.get(rank(q, sorted.len())?.checked_sub(1)?).copied();
        let upto = |end: i64| sorted.partition_point(|&length| length <= end);
        Self {
            count: sorted.len(),
            sum,
            average: average(sum, sorted.len()),
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            longest: sorted.last().copied(),
            buckets: BUCKETS.map(upto),
        }
    }
}

/// The nearest rank of a quantile, from 1; `None` without samples.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
pub(crate) fn rank(quantile: f64, count: usize) -> Option<usize> {
    // Rounds off the error of the product, so that whole numbers stay whole.
    let exact = (quantile * count as f64 * 1e9).round() / 1e9;
    (count > 0).then(|| (exact.ceil() as usize).clamp(1, count))
}

/// The average; `None` without samples.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn average(sum: i64, count: usize) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::{Distribution, Samples, rank};

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
        let none = Distribution::of(samples.clone());
        assert_eq!((none.average, none.p50, none.longest), (None, None, None));
        samples.add([TimeDelta::seconds(60)]);
        let one = Distribution::of(samples);
        assert_eq!(
            (one.p50, one.p99, one.longest),
            (Some(60), Some(60), Some(60))
        );
        assert_eq!(one.buckets[2..4], [0, 1]);
    }
}
