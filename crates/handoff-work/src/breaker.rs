//! A pause for each profile whose runs can't take place now: a provider that refuses, a login that is
//! missing, a machine that is broken. It grows, and after the same failure on three pieces of work
//! nothing more is claimed for that profile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use handoff::base::text::one_line;

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
    until: Instant,
    why: String,
}

impl Breakers {
    /// A run took place: what went wrong before is over.
    pub(super) fn close(&mut self, profile: &str) {
        self.0.remove(profile);
    }

    /// A run could not take place. Returns what to say.
    pub(super) fn open(
        &mut self,
        profile: &str,
        why: &str,
        retry_after: Option<Duration>,
    ) -> String {
        let now = Instant::now();
        let breaker = self.0.entry(profile.to_owned()).or_insert(Breaker {
            failures: 0,
            until: now,
            why: String::new(),
        });
        breaker.failures += 1;
        breaker.why = one_line(why);
        if breaker.failures >= MOST {
            return format!(
                "{profile}: nothing more is claimed after {} failures in a row: {}; start it again once that is over",
                breaker.failures, breaker.why
            );
        }
        let grown = FIRST * 3_u32.pow(breaker.failures - 1);
        let pause = grown.min(LONGEST).max(retry_after.unwrap_or_default());
        breaker.until = now.checked_add(pause).unwrap_or(now + LONGEST);
        let pause = humantime::format_duration(Duration::from_secs(pause.as_secs()));
        format!("{profile}: pauses for {pause}: {}", breaker.why)
    }

    /// Whether nothing is claimed for a profile now.
    pub(super) fn rests(&self, profile: &str) -> bool {
        let breaker = self.0.get(profile);
        breaker.is_some_and(|one| one.failures >= MOST || Instant::now() < one.until)
    }

    /// Whether nothing is claimed for a profile any more.
    pub(super) fn is_stopped(&self, profile: &str) -> bool {
        self.0.get(profile).is_some_and(|one| one.failures >= MOST)
    }

    /// Whether a pause ends before long.
    pub(super) fn is_waiting(&self) -> bool {
        let soon = Instant::now() + LONGEST;
        self.next_end().is_some_and(|end| end <= soon)
    }

    /// When the next pause ends; none if there is none.
    pub(super) fn next_end(&self) -> Option<Instant> {
        let paused = self.0.values().filter(|one| one.failures < MOST);
        let now = Instant::now();
        paused
            .map(|one| one.until)
            .filter(|until| *until > now)
            .min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Breakers;

    #[test]
    fn a_pause_grows_until_the_profile_is_stopped_and_a_run_that_takes_place_ends_it() {
        let mut all = Breakers::default();
        let said = all.open("claude", "429\nslow down", None);
        assert_eq!(said, "claude: pauses for 10s: 429 slow down");
        assert!(all.rests("claude") && !all.rests("codex") && !all.is_stopped("claude"));
        assert!(all.next_end().is_some());
        all.close("claude");
        assert!(!all.rests("claude") && all.next_end().is_none());
        let wait = Some(Duration::from_secs(3600));
        assert_eq!(
            all.open("claude", "429", wait),
            "claude: pauses for 1h: 429"
        );
        assert_eq!(
            all.open("claude", "429", None),
            "claude: pauses for 30s: 429"
        );
        let said = all.open("claude", "401", None);
        assert!(
            said.contains("nothing more is claimed after 3 failures"),
            "{said}"
        );
        assert!(all.rests("claude") && all.is_stopped("claude") && all.next_end().is_none());
    }
}
