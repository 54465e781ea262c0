//! How far long work has come: counted by whoever does it, read by whoever shows it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What takes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Running history through the protocol again: commits.
    Verifying,
    /// Taking in what others kept: steps or contracts.
    Importing,
    /// Writing the steps into a folder.
    Exporting,
    /// Asking a remote for what is new there.
    Fetching,
    /// Making steps again on a remote's state.
    MakingAgain,
    /// Sending steps to a remote.
    Sending,
}

/// How far work has come at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// What is being done.
    pub work: Work,
    /// How much of it is done.
    pub done: usize,
    /// How much there is to do, where that is known.
    pub of: Option<usize>,
}

/// A count that one thread reads while others go on.
#[derive(Debug, Default)]
pub struct Tally {
    stage: Mutex<Option<(Work, Option<usize>)>>,
    done: AtomicUsize,
}

impl Tally {
    /// Says what is done from now on, and how much of it there is, where that is known.
    pub fn begin(&self, work: Work, of: Option<usize>) {
        // Whoever panicked with it left no more than a wrong count.
        let mut stage = self.stage.lock().unwrap_or_else(|held| held.into_inner());
        *stage = Some((work, of));
        self.done.store(0, Ordering::Relaxed);
    }

    /// Says that so much more is done.
    pub fn add(&self, count: usize) {
        self.done.fetch_add(count, Ordering::Relaxed);
    }

    /// How far it has come; none before anything began.
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
