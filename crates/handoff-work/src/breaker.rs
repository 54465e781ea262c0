//! Circuit breakers: pauses of profiles whose runs can't start, because the provider refuses, the
//! login is missing or the machine is broken. Each pause is longer than the last. A busy provider
//! is retried indefinitely; after three other failures in a row, nothing more is claimed for that
//! profile. The workers of a clone share the pauses in one file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use handoff::base::text::one_line;
use handoff::git::replace;
use serde::{Deserialize, Serialize};

use super::piece::Later;
use super::slot::Slot;

/// The first pause; each further one is three times as long.
const FIRST: Duration = Duration::from_secs(10);

/// The maximum pause, unless the provider requests a longer one.
const LONGEST: Duration = Duration::from_secs(900);

/// The number of failures in a row after which a profile is stopped.
const MOST: u32 = 3;

/// The maximum remaining pause that is read from the file: it may be wrong after the clock was set
/// back.
const BELIEVED: Duration = Duration::from_secs(86_400);

/// The pauses of a clone's profiles.
#[derive(Debug)]
pub(super) struct Breakers(PathBuf);

#[derive(Debug, Serialize, Deserialize)]
struct Breaker {
    failures: u32,
    /// How many of the last failures in a row will not pass by themselves.
    lasting: u32,
    until: SystemTime,
    why: String,
}

impl Breaker {
    fn is_stopped(&self) -> bool {
        self.lasting >= MOST
    }

    /// The remaining pause.
    fn left(&self) -> Option<Duration> {
        let left = self.until.duration_since(SystemTime::now()).ok()?;
        (!left.is_zero() && left <= BELIEVED).then_some(left)
    }
}

impl Breakers {
    /// The breakers in this folder. A restart resets stopped profiles, and, if no other worker of
    /// the clone runs, the pauses too.
    pub(super) fn of(folder: &Path) -> Self {
        let all = Self(folder.join("pauses.json"));
        let is_alone = !Slot::is_any_held(folder);
        all.change(|noted| noted.retain(|_, one| !is_alone && !one.is_stopped()));
        all
    }

    fn noted(&self) -> BTreeMap<String, Breaker> {
        let bytes = fs::read(&self.0).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Writes a change without a lock: one that is lost to a concurrent write or a full disk costs
    /// one more run, whose failure is recorded again.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Breaker>)) {
        let mut noted = self.noted();
        let had = !noted.is_empty();
        change(&mut noted);
        if noted.is_empty() {
            if had {
                let _ = fs::remove_file(&self.0);
            }
            return;
        }
        let noted = serde_json::to_string(&noted).unwrap_or_default();
        let _ = replace(&self.0, noted.as_bytes());
    }

    /// Closes a breaker after a run that could start.
    pub(super) fn close(&self, profile: &str) {
        if self.noted().contains_key(profile) {
            self.change(|noted| drop(noted.remove(profile)));
        }
    }

    /// Opens a breaker after a run that could not start. Returns the message to print.
    pub(super) fn open(&self, profile: &str, why: &str, later: Later, jitter: u32) -> String {
        let mut said = String::new();
        self.change(|noted| {
            let now = SystemTime::now();
            let breaker = noted.entry(profile.to_owned()).or_insert(Breaker {
                failures: 0,
                lasting: 0,
                until: now,
                why: String::new(),
            });
            // Count concurrent runs that failed for the same reason once.
            if breaker.left().is_none() {
                breaker.failures += 1;
                breaker.lasting = if later.passes { 0 } else { breaker.lasting + 1 };
            }
            breaker.why = one_line(why);
            if breaker.is_stopped() {
                said = format!(
                    "{profile}: nothing more is claimed after {} failures in a row: {}; start it again once that is over",
                    breaker.failures, breaker.why
                );
                return;
            }
            let grown = (FIRST * 3_u32.pow((breaker.failures - 1).min(5))).min(LONGEST);
            // Jitter, so that workers with the same failure don't retry at the same time.
            let spread = if breaker.failures > 1 {
                grown / 4 * (jitter % 100) / 100
            } else {
                Duration::ZERO
            };
            let pause = (grown + spread).max(later.after.unwrap_or_default());
            breaker.until = breaker.until.max(now + pause.min(BELIEVED));
            let pause = humantime::format_duration(Duration::from_secs(pause.as_secs()));
            said = format!("{profile}: pauses for {pause}: {}", breaker.why);
        });
        said
    }

    /// Why nothing is claimed for a profile now.
    pub(super) fn rests(&self, profile: &str) -> Option<String> {
        let breaker = self.noted().remove(profile)?;
        (breaker.is_stopped() || breaker.left().is_some()).then_some(breaker.why)
    }

    /// Whether a profile is stopped until a restart.
    pub(super) fn is_stopped(&self, profile: &str) -> bool {
        self.noted().get(profile).is_some_and(Breaker::is_stopped)
    }

    /// Whether a pause ends soon.
    pub(super) fn is_waiting(&self) -> bool {
        self.next_end().is_some_and(|left| left <= LONGEST)
    }

    /// The time until the next pause ends; `None` without a pause.
    pub(super) fn next_end(&self) -> Option<Duration> {
        let noted = self.noted();
        let paused = noted.values().filter(|one| !one.is_stopped());
        paused.filter_map(Breaker::left).min()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{Breakers, Later, Slot};

    impl Breakers {
        /// Opens a breaker as if the last pause were over.
        fn again(&self, why: &str, after: Option<Duration>, passes: bool) -> String {
            self.change(|noted| {
                if let Some(one) = noted.get_mut("claude") {
                    one.until = SystemTime::now();
                }
            });
            self.open("claude", why, Later { after, passes }, 0)
        }
    }

    #[test]
    fn a_pause_grows_until_the_profile_is_stopped_and_a_run_that_takes_place_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let all = Breakers::of(folder.path());
        let said = all.again("401\nlog in", None, false);
        assert_eq!(said, "claude: pauses for 10s: 401 log in");
        assert_eq!(all.rests("claude").as_deref(), Some("401 log in"));
        assert!(all.rests("codex").is_none() && !all.is_stopped("claude"));
        let slot = Slot::take(folder.path()).unwrap();
        let beside = Breakers::of(folder.path());
        assert!(
            beside.rests("claude").is_some(),
            "another worker of the clone"
        );
        assert!(all.next_end().is_some());
        all.close("claude");
        assert!(beside.rests("claude").is_none() && all.next_end().is_none());
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
        assert!(
            all.rests("claude").is_some() && all.is_stopped("claude") && all.next_end().is_none()
        );
        assert!(
            Breakers::of(folder.path()).rests("claude").is_none(),
            "started again"
        );
        all.again("429", None, true);
        drop(slot);
        assert!(
            Breakers::of(folder.path()).rests("claude").is_none(),
            "nobody else waits"
        );
    }

    #[test]
    fn a_busy_provider_is_asked_again_and_what_ran_at_once_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let all = Breakers::of(folder.path());
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
