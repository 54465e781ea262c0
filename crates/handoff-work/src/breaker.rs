//! A pause for each profile whose runs can't take place now: a provider that refuses, a login that is
//! missing, a machine that is broken. It grows. A provider that says it is busy is asked again for as
//! long as it takes; after another failure on three pieces of work nothing more is claimed for that
//! profile. All workers of a clone pause together: they note it in one file.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use handoff::base::text::one_line;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::piece::Later;
use super::slot::Slot;

/// The first pause; each further one is three times as long.
const FIRST: Duration = Duration::from_secs(10);

/// The longest pause, unless the provider names a longer one.
const LONGEST: Duration = Duration::from_secs(900);

/// After how many failures in a row a profile is stopped.
const MOST: u32 = 3;

/// The longest pause that is believed: a clock may have been set back since.
const BELIEVED: Duration = Duration::from_secs(86_400);

/// The pauses of a clone's profiles.
#[derive(Debug)]
pub(super) struct Breakers(PathBuf);

#[derive(Debug, Serialize, Deserialize)]
struct Breaker {
    failures: u32,
    /// How many of them a person may have to end.
    lasting: u32,
    until: SystemTime,
    why: String,
}

impl Breaker {
    fn is_stopped(&self) -> bool {
        self.lasting >= MOST
    }

    /// How long it still pauses.
    fn left(&self) -> Option<Duration> {
        let left = self.until.duration_since(SystemTime::now()).ok()?;
        (!left.is_zero() && left <= BELIEVED).then_some(left)
    }
}

impl Breakers {
    /// Those that are noted in this folder. Whoever starts a worker again says that what stopped a
    /// profile is over; what others of the clone wait for now is not.
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

    /// A change that is lost to one made at the same time, or to a full disk, costs a run that can't
    /// take place, which is noted then.
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
        let written = || {
            let mut new = NamedTempFile::new_in(self.0.parent()?).ok()?;
            new.write_all(serde_json::to_string(&noted).ok()?.as_bytes())
                .ok()?;
            new.persist(&self.0).ok()
        };
        let _ = written();
    }

    /// A run took place: what went wrong before is over.
    pub(super) fn close(&self, profile: &str) {
        if self.noted().contains_key(profile) {
            self.change(|noted| drop(noted.remove(profile)));
        }
    }

    /// A run could not take place. Returns what to say.
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
            // What ran at the same time met the same.
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
            // Workers that met the same at once do not come back at once.
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

    /// Whether nothing is claimed for a profile any more.
    pub(super) fn is_stopped(&self, profile: &str) -> bool {
        self.noted().get(profile).is_some_and(Breaker::is_stopped)
    }

    /// Whether a pause ends before long.
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
        /// Opens one whose pause is over.
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
