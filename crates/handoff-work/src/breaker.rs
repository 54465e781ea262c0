//! A pause for each profile whose runs can't take place now: a provider that refuses, a login that is
//! missing, a machine that is broken. It grows. A provider that says it is busy is asked again for as
//! long as it takes; after another failure on three pieces of work nothing more is claimed for that
//! profile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use handoff::base::text::one_line;

use super::piece::Later;

/// The first pause; each further one is three times as long.
const FIRST: Duration = Duration::from_secs(10);

/// The longest pause, unless the provider names a longer one.
const LONGEST: Duration = Duration::from_secs(900);

/// After how many failures in a row a profile is stopped.
const MOST: u32 = 3;

/// The pauses of a worker's profiles.
#[derive(Debug, Default)]
pub(super) struct Breakers(BTreeMap<String, Breaker>);

#[derive(Debug)]
struct Breaker {
    failures: u32,
    /// How many of them a person may have to end.
    lasting: u32,
    until: Instant,
    why: String,
}

impl Breaker {
    fn is_stopped(&self) -> bool {
        self.lasting >= MOST
    }
}

impl Breakers {
    /// A run took place: what went wrong before is over.
    pub(super) fn close(&mut self, profile: &str) {
        self.0.remove(profile);
    }

    /// A run could not take place. Returns what to say.
    pub(super) fn open(&mut self, profile: &str, why: &str, later: Later, jitter: u32) -> String {
        let now = Instant::now();
        let breaker = self.0.entry(profile.to_owned()).or_insert(Breaker {
            failures: 0,
            lasting: 0,
            until: now,
            why: String::new(),
        });
        // What ran at the same time met the same.
        if now >= breaker.until {
            breaker.failures += 1;
            breaker.lasting = if later.passes { 0 } else { breaker.lasting + 1 };
        }
        breaker.why = one_line(why);
        if breaker.is_stopped() {
            return format!(
                "{profile}: nothing more is claimed after {} failures in a row: {}; start it again once that is over",
                breaker.failures, breaker.why
            );
        }
        let grown = (FIRST * 3_u32.pow((breaker.failures - 1).min(5))).min(LONGEST);
        // Workers that met the same at once do not come back at once.
        let spread = if breaker.failures > 1 {
            grown / 4 * (jitter % 100) / 100
        } else {
            Duration::ZERO
        };
        let pause = (grown + spread).max(later.after.unwrap_or_default());
        let end = now.checked_add(pause).unwrap_or(now + LONGEST);
        breaker.until = breaker.until.max(end);
        let pause = humantime::format_duration(Duration::from_secs(pause.as_secs()));
        format!("{profile}: pauses for {pause}: {}", breaker.why)
    }

    /// Whether nothing is claimed for a profile now.
    pub(super) fn rests(&self, profile: &str) -> bool {
        let breaker = self.0.get(profile);
        breaker.is_some_and(|one| one.is_stopped() || Instant::now() < one.until)
    }

    /// Whether nothing is claimed for a profile any more.
    pub(super) fn is_stopped(&self, profile: &str) -> bool {
        self.0.get(profile).is_some_and(Breaker::is_stopped)
    }

    /// Whether a pause ends before long.
    pub(super) fn is_waiting(&self) -> bool {
        let soon = Instant::now() + LONGEST;
        self.next_end().is_some_and(|end| end <= soon)
    }

    /// When the next pause ends; none if there is none.
    pub(super) fn next_end(&self) -> Option<Instant> {
        let paused = self.0.values().filter(|one| !one.is_stopped());
        let now = Instant::now();
        paused
            .map(|one| one.until)
            .filter(|until| *until > now)
            .min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Breakers, Later};

    impl Breakers {
        /// Opens one whose pause is over.
        fn again(&mut self, why: &str, after: Option<Duration>, passes: bool) -> String {
            if let Some(one) = self.0.get_mut("claude") {
                one.until = Instant::now();
            }
            self.open("claude", why, Later { after, passes }, 0)
        }
    }

    #[test]
    fn a_pause_grows_until_the_profile_is_stopped_and_a_run_that_takes_place_ends_it() {
        let mut all = Breakers::default();
        let said = all.again("401\nlog in", None, false);
        assert_eq!(said, "claude: pauses for 10s: 401 log in");
        assert!(all.rests("claude") && !all.rests("codex") && !all.is_stopped("claude"));
        assert!(all.next_end().is_some());
        all.close("claude");
        assert!(!all.rests("claude") && all.next_end().is_none());
        let wait = Some(Duration::from_secs(3600));
        let said = all.again("429", wait, false);
        assert_eq!(said, "claude: pauses for 1h: 429");
        let said = all.again("429", None, false);
        assert_eq!(said, "claude: pauses for 30s: 429");
        let said = all.again("401", None, false);
        assert!(
            said.contains("nothing more is claimed after 3 failures"),
            "{said}"
        );
        assert!(all.rests("claude") && all.is_stopped("claude") && all.next_end().is_none());
    }

    #[test]
    fn a_busy_provider_is_asked_again_and_what_ran_at_once_counts_once() {
        let mut all = Breakers::default();
        all.again("429", None, true);
        let at_once = Later {
            after: None,
            passes: false,
        };
        assert_eq!(
            all.open("claude", "429", at_once, 0),
            "claude: pauses for 10s: 429"
        );
        for pause in ["30s", "1m 30s", "4m 30s", "13m 30s", "15m", "15m"] {
            let said = all.again("503", None, true);
            assert_eq!(said, format!("claude: pauses for {pause}: 503"));
        }
        assert!(!all.is_stopped("claude") && all.is_waiting());
        let said = all.open("claude", "503", Later::default(), 99);
        assert!(said.starts_with("claude: pauses for 18m"), "{said}");
    }
}
