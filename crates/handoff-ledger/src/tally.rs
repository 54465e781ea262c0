//! The progress of long operations: counted by one thread, displayed by another.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A long operation, with the unit of its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Replaying history through the protocol: commits.
    Verifying,
    /// Importing: steps or contracts.
    Importing,
    /// Writing steps to a folder.
    Exporting,
    /// Fetching from a remote.
    Fetching,
    /// Replaying steps on a remote's state.
    MakingAgain,
    /// Pushing steps to a remote.
    Sending,
}

/// The progress at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The current operation.
    pub work: Work,
    /// How much of it is done.
    pub done: usize,
    /// The total, if known.
    pub of: Option<usize>,
}

/// A progress counter that is shared between threads.
#[derive(Debug, Default)]
pub struct Tally {
    stage: Mutex<Option<(Work, Option<usize>)>>,
    done: AtomicUsize,
}

impl Tally {
    /// Starts an operation, with its total if known.
    pub fn begin(&self, work: Work, of: Option<usize>) {
        // A panic while holding the lock leaves at most a wrong count.
        let mut stage = self.stage.lock().unwrap_or_else(|held| held.into_inner());
        *stage = Some((work, of));
        self.done.store(0, Ordering::Relaxed);
    }

    /// Adds to the amount done.
    pub fn add(&self, count: usize) {
        self.done.fetch_add(count, Ordering::Relaxed);
    }

    /// The progress; `None` before the first operation.
    pub fn reached(&self) -> Option<Reached> {
        let stage = self.stage.lock().unwrap_or_else(|held| held.into_inner());
        let (work, of) = (*stage)?;
        let done = self.done.load(Ordering::Relaxed);
        Some(Reached { work, done, of })
    }
}

#[cfg(test)]
mod tests {
    use super::{Reached, Tally, Work};

    #[test]
    fn what_begins_begins_with_nothing() {
        let tally = Tally::default();
        assert_eq!(tally.reached(), None);
        tally.begin(Work::Fetching, None);
        tally.add(2);
        tally.begin(Work::Sending, Some(9));
        tally.add(3);
        tally.add(4);
        let (work, done, of) = (Work::Sending, 7, Some(9));
        assert_eq!(tally.reached(), Some(Reached { work, done, of }));
    }
}
