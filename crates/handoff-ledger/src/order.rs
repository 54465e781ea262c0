//! Times of steps. The order of the ledger is its branch's, whatever clocks say;
//! but no time on it runs backwards, so that a step can't be made to look older
//! than what it follows.
//!
//! A commit is recorded no earlier than its parent: where a clock is behind, the
//! parent's time is taken. The step's own time, its author's, is what its machine
//! said, which may be hours off; then it was recorded at its parent's time. Where
//! it was recorded later than that, its machine's clock was not behind, and a time
//! before the last step was put in by hand.

use chrono::{DateTime, FixedOffset, TimeDelta};
use handoff_base::{Moment, to_second};
use handoff_git::Commit;

/// When a commit was recorded, as those after it count; the first commit of a
/// ledger binds nobody, so that older steps can be imported after it.
pub(super) fn recorded(commit: &Commit) -> Option<Moment> {
    let first = commit.parents.is_empty() && !commit.cut_off;
    (!first).then(|| to_second(commit.committer.at))
}

/// The time at which a step is recorded after a commit.
pub(super) fn recorded_after(
    parent: Option<Moment>,
    clock: DateTime<FixedOffset>,
) -> DateTime<FixedOffset> {
    match parent {
        Some(parent) if parent > clock => parent.with_timezone(clock.offset()),
        _ => clock,
    }
}

/// How far a clock may be behind another.
const BEHIND: TimeDelta = TimeDelta::days(1);

/// Says whether a step's time was put in by hand, and is before the last step of
/// its issue. `recorded` is when it was recorded, `parent` when its parent was. A last
/// step that was dated ahead binds nobody, and no clock is a day behind.
pub(super) fn is_backdated(
    at: Moment,
    previous: Option<Moment>,
    recorded: Moment,
    parent: Option<Moment>,
) -> bool {
    let before = |previous: Moment| at < parent.map_or(previous, |parent| previous.min(parent));
    let by_hand = |parent: Moment| recorded > parent || parent - at > BEHIND;
    previous.is_some_and(before) && parent.is_none_or(by_hand)
}
