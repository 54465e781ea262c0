//! Times of steps. The order of the ledger is its branch's, whatever clocks say;
//! but no time on it runs backwards, so that a step can't be made to look older
//! than what it follows.
//!
//! A commit is recorded no earlier than its parent: where a clock is behind, the
//! parent's time is taken. The step's own time, its author's, is what its machine
//! said, which may be hours off; then it was recorded at its parent's time. Where
//! it was recorded later than that, its machine's clock was not behind: the step was
//! dated back. An import does that, and only to issues in which nobody worked yet;
//! else a late holder could come in time after all.

use chrono::{DateTime, FixedOffset, TimeDelta};

use super::record::Moment;
use super::step::Actor;
use crate::git::{Commit, to_second};
use crate::ids::AgentName;

/// When a commit was recorded, as those after it count; the first commit of a
/// ledger binds nobody, so that older steps can be imported after it.
pub(super) fn recorded(commit: &Commit) -> Option<Moment> {
    let first = commit.parents.is_empty() && !commit.cut_off;
    (!first).then(|| to_second(commit.committer.at))
}

/// The time at which a step is recorded after a commit.
pub(super) fn not_before(
    parent: Option<Moment>,
    clock: DateTime<FixedOffset>,
) -> DateTime<FixedOffset> {
    match parent {
        Some(parent) if parent > clock => parent.with_timezone(clock.offset()),
        _ => clock,
    }
}

/// How long recording a step may take: claims are checked, a signer is waited for, and who
/// makes a step by hand has a moment.
const WORK: TimeDelta = TimeDelta::minutes(10);

/// How far a clock may be behind another.
const BEHIND: TimeDelta = TimeDelta::days(1);

/// When a step is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    /// What its machine says.
    pub(super) at: Moment,
    /// Whether that is so long before it is recorded that somebody said so.
    pub(super) dated_back: bool,
}

impl Time {
    /// Weighs a step's own time, when it is recorded, and when its parent was.
    pub(super) fn of(at: Moment, recorded: Moment, parent: Option<Moment>) -> Self {
        let may_be_behind = parent == Some(recorded);
        let allowed = if may_be_behind { BEHIND } else { WORK };
        let dated_back = recorded - at > allowed;
        Self { at, dated_back }
    }

    /// An agent that acts then.
    pub(super) fn actor(self, name: &AgentName) -> Actor<'_> {
        let Self { at, dated_back } = self;
        Actor {
            name,
            at,
            dated_back,
        }
    }
}

/// Says whether a step's time was put in by hand, and is before the last step of
/// its issue. `recorded` is when it was recorded, `parent` when its parent was. A last
/// step that was dated ahead binds nobody.
pub(super) fn is_backdated(
    at: Moment,
    previous: Option<Moment>,
    recorded: Moment,
    parent: Option<Moment>,
) -> bool {
    let before = |previous: Moment| at < parent.map_or(previous, |parent| previous.min(parent));
    previous.is_some_and(before) && parent.is_none_or(|parent| recorded > parent)
}
