//! Proofs: tests over arbitrarily many random or enumerated cases.
//!
//! Each has a short, deterministic form, and a long one that is limited by time: `scripts/prove`.
//! Long ones report to the file that `PROVE_REPORT` names.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

fn set(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}

/// The factor by which tests multiply their short form's cases: `GIT_HANDOFF_TEST_TIMES`, set by
/// `scripts/test --all`.
pub fn times() -> u32 {
    let times = set("GIT_HANDOFF_TEST_TIMES").unwrap_or(1);
    u32::try_from(times).unwrap()
}

/// The cases of one proof: `while let Some(seed) = proof.case() { … }`.
pub struct Proof {
    name: &'static str,
    short: u64,
    /// The duration of the long form.
    long: Option<Duration>,
    first: u64,
    started: Instant,
    cases: u64,
}

impl Proof {
    /// A proof with this many cases in its short form. `PROVE_SECONDS` is the long form's duration,
    /// `PROVE_SEED` its first seed.
    pub fn new(name: &'static str, short: u64) -> Self {
        Self {
            name,
            short,
            long: set("PROVE_SECONDS").map(Duration::from_secs),
            first: set("PROVE_SEED").unwrap_or(0),
            started: Instant::now(),
            cases: 0,
        }
    }

    /// Whether this is the long form.
    pub fn is_long(&self) -> bool {
        self.long.is_some()
    }

    /// The seed of the next case; `None` after the last.
    pub fn case(&mut self) -> Option<u64> {
        let goes_on = match self.long {
            Some(long) => self.started.elapsed() < long,
            None => self.cases < self.short,
        };
        goes_on.then(|| {
            self.cases += 1;
            self.first.wrapping_add(self.cases - 1)
        })
    }

    /// Reports success: `counts` are what was tried, such as `("mutants", 2000)`.
    ///
    /// # Panics
    /// Panics if the long form's report can't be written.
    pub fn passed(self, counts: &[(&str, u64)]) {
        let Ok(report) = std::env::var("PROVE_REPORT") else {
            return;
        };
        let counts: Vec<String> = counts
            .iter()
            .map(|(what, n)| format!("{n} {what}"))
            .collect();
        let line = format!(
            "{}: {} in {} s, first seed {}\n",
            self.name,
            counts.join(", "),
            self.started.elapsed().as_secs(),
            self.first
        );
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(report)
            .unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}
