//! Without the feature `file-events`, refs are polled.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::Signal;

const POLL: Duration = Duration::from_millis(100);

pub(super) struct Source;

impl Source {
    pub(super) fn arm(_: &Path, _: &[PathBuf], _: &[PathBuf], _: &Sender<Signal>) -> Self {
        Self
    }

    /// None: the build is meant to poll.
    pub(super) fn trouble(&self) -> Option<&str> {
        None
    }

    pub(super) fn interval(&self) -> Option<Duration> {
        Some(POLL)
    }
}
