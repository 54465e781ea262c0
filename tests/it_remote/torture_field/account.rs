//! What the agents were told, kept outside of every ledger.

use std::fmt::Write;
use std::sync::Mutex;

/// What a process told of its step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The remote has it.
    Published,
    /// It is recorded in the clone, and not known to be on the remote.
    Recorded,
    /// It was refused, with this exit code and error.
    Refused(i32, String),
    /// Nothing: it was killed.
    Nothing,
}

/// One attempt at a step.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    pub(crate) clone: usize,
    #[expect(dead_code, reason = "shown where a check of it fails")]
    pub(crate) what: String,
    /// A text that is in this step and in no other.
    pub(crate) marker: Option<String>,
    pub(crate) told: Told,
    /// The commit that the receipt names.
    pub(crate) commit: Option<String>,
    /// Whether it claimed a handoff.
    pub(crate) is_claim: bool,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Account(Mutex<Vec<Act>>);

impl Account {
    pub(crate) fn note(&self, act: Act) {
        self.0.lock().unwrap().push(act);
    }

    pub(crate) fn acts(&self) -> Vec<Act> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self, is: impl Fn(&Told) -> bool) -> usize {
        self.acts().iter().filter(|act| is(&act.told)).count()
    }

    pub(crate) fn summary(&self) -> String {
        let mut text = format!(
            "{} published, {} recorded offline, {} killed",
            self.count(|told| *told == Told::Published),
            self.count(|told| *told == Told::Recorded),
            self.count(|told| *told == Told::Nothing),
        );
        let mut refused: Vec<(i32, String)> = Vec::new();
        for act in self.acts() {
            if let Told::Refused(code, error) = act.told {
                refused.push((code, error));
            }
        }
        refused.sort();
        for group in refused.chunk_by(|one, other| one == other) {
            let (code, error) = &group[0];
            write!(text, ", {} {error} ({code})", group.len()).unwrap();
        }
        text
    }

    /// Insists that much was done.
    pub(crate) fn assert_busy(&self) {
        let summary = self.summary();
        let all = self.acts().len();
        assert!(
            self.count(|told| *told == Told::Published) > all / 10,
            "{summary}"
        );
        assert!(self.count(|told| *told == Told::Recorded) > 0, "{summary}");
        assert!(self.count(|told| *told == Told::Nothing) > 0, "{summary}");
    }
}
