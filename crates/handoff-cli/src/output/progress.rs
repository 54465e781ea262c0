//! The progress of long work: one line on a terminal, removed when the work is done.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use handoff::base::text::grouped;
use handoff::ledger::{Reached, Tally, Work};

use super::Output;
use crate::view::{Screen, cut_to_columns, is_dumb};

/// Shorter work shows no line.
const LONG: Duration = Duration::from_secs(1);

/// The redraw interval.
const DRAWN: Duration = Duration::from_millis(100);

/// Returns to the line's start and clears it.
const CLEAR: &str = "\r\x1b[K";

impl Output {
    /// Does the work, and shows its progress from the tally if stderr is a terminal.
    pub fn during<T>(&self, tally: &Tally, work: impl FnOnce() -> T) -> T {
        let screen = Screen::of_stderr().filter(|_| !self.is_json() && !is_dumb());
        let Some(screen) = screen else {
            return work();
        };
        let (working, done) = channel();
        thread::scope(|scope| {
            scope.spawn(move || draw(tally, screen, &done));
            let result = work();
            drop(working);
            result
        })
    }
}

/// Draws until the work is done.
fn draw(tally: &Tally, screen: Screen, done: &Receiver<()>) {
    let begun = Instant::now();
    let (mut stage, mut drawn) = ((None, begun), false);
    while done.recv_timeout(DRAWN) == Err(RecvTimeoutError::Timeout) {
        let Some(reached) = tally.reached() else {
            continue;
        };
        if stage.0 != Some(reached.work) {
            stage = (Some(reached.work), Instant::now());
        }
        if begun.elapsed() < LONG {
            continue;
        }
        let line = line(reached, stage.1.elapsed());
        let shown = cut_to_columns(&line, screen.width().saturating_sub(1), "");
        drawn |= put(&format!("{CLEAR}{shown}"));
    }
    if drawn {
        put(CLEAR);
    }
}

/// Writes to the terminal; returns whether it succeeded.
fn put(text: &str) -> bool {
    let mut stderr = io::stderr().lock();
    let written = stderr.write_all(text.as_bytes());
    written.and_then(|()| stderr.flush()).is_ok()
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A progress line: kind of work, amount and rate.
fn line(reached: Reached, elapsed: Duration) -> String {
    let Reached { work, done, of } = reached;
    let (doing, unit) = match work {
        Work::Verifying => ("verifying", "commits"),
        Work::Importing => ("importing", "items"),
        Work::Exporting => ("exporting", "steps"),
        Work::Fetching => ("asking the remote", ""),
        Work::MakingAgain => ("making again on the remote's state", "steps"),
        Work::Sending => ("sending to the remote", "steps"),
    };
    let seconds = elapsed.as_secs();
    let count = match of {
        // The transferred amount is known only at the end.
        Some(of) if work == Work::Sending => format!("{} {unit}", grouped(wide(of))),
        Some(of) if of > 0 => {
            let percent = done.min(of) * 100 / of;
            format!(
                "{} of {} {unit} ({percent}%)",
                grouped(wide(done)),
                grouped(wide(of))
            )
        }
        _ if unit.is_empty() || work == Work::Sending => String::new(),
        _ => format!("{} {unit}", grouped(wide(done))),
    };
    let rate = match wide(done).checked_div(seconds) {
        Some(rate) if rate > 0 => format!(", {} a second", grouped(rate)),
        _ => format!(", {seconds} s"),
    };
    match count.as_str() {
        "" => format!("{doing}{rate}"),
        count => format!("{doing}: {count}{rate}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Reached, Work, line};

    #[test]
    fn a_line_says_what_and_how_much_and_how_fast() {
        for (work, done, of, seconds, expected) in [
            (
                Work::Verifying,
                12_345,
                None,
                3,
                "verifying: 12,345 commits, 4,115 a second",
            ),
            (
                Work::Importing,
                999,
                Some(1_000_000),
                2,
                "importing: 999 of 1,000,000 items (0%), 499 a second",
            ),
            (
                Work::Importing,
                3,
                Some(4),
                60,
                "importing: 3 of 4 items (75%), 60 s",
            ),
            (Work::Fetching, 0, None, 7, "asking the remote, 7 s"),
            (
                Work::Sending,
                0,
                Some(12),
                1,
                "sending to the remote: 12 steps, 1 s",
            ),
            (
                Work::MakingAgain,
                5,
                Some(0),
                0,
                "making again on the remote's state: 5 steps, 0 s",
            ),
        ] {
            let reached = Reached { work, done, of };
            assert_eq!(line(reached, Duration::from_secs(seconds)), expected);
        }
    }
}
