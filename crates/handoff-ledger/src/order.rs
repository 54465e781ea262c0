//! Times of steps. The ledger's order is that of its branch, whatever clocks say. But its times
//! never decrease, so that a step can't be made to look older than the previous one.
//!
//! A commit is recorded no earlier than its parent: if a clock is behind, the parent's time is
//! used. The step's own time is its author date, from its machine's clock, which may be off by
//! hours; in that case the step was recorded at its parent's time. If it was recorded later than
//! its parent, the machine's clock was not behind, and an author date before the last step
//! was set by hand.
//!
//! A commit dated more than a day ahead of its reader's clock is not credible: it is reported, and
//! the last credible one before it limits later ones.

use chrono::{DateTime, FixedOffset, TimeDelta};
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::text::quoted;
use handoff_base::{Moment, ObjectId, to_second};
use handoff_git::{Commit, GitError, Person, Repository};
use handoff_model::{LeaseRefusal, Record, Refusal};

/// When a commit was recorded, as a lower bound for later ones. The first commit of a ledger sets
/// none, so that older steps can be imported after it.
pub(super) fn recorded(commit: &Commit) -> Option<Moment> {
    let first = commit.parents.is_empty() && !commit.cut_off;
    (!first).then(|| to_second(commit.committer.at))
}

/// The time to record for a step after a commit.
pub(super) fn recorded_after(
    parent: Option<Moment>,
    clock: DateTime<FixedOffset>,
) -> DateTime<FixedOffset> {
    match parent {
        Some(parent) if *parent > clock => parent.with_timezone(clock.offset()),
        _ => clock,
    }
}

/// The maximum lag of a clock.
const BEHIND: TimeDelta = TimeDelta::days(1);

/// The maximum lead of a clock.
const AHEAD: TimeDelta = TimeDelta::days(1);

/// The finding for a commit that is not credible, since it is dated too far ahead of the reader.
pub(super) fn misdated(committer: &Person, now: Moment) -> Option<Finding> {
    let recorded = to_second(committer.at);
    is_postdated(recorded, now).then(|| {
        let text = format!(
            "{} recorded the commit at {recorded}, and now it is {now}: its date limits no later step",
            quoted(&format!("{} <{}>", committer.name, committer.email)),
        );
        let fix = "set the clock of the machine that made it";
        Finding::error(FindingCode::StepPostdated, "", text).fix(fix)
    })
}

/// The lower bound for the time of a later commit: that of the last credible one. `recorded` is the
/// commit's own time.
pub(super) fn limit_after(
    repository: &Repository,
    mut commit: ObjectId,
    mut recorded: Option<Moment>,
    now: Moment,
) -> Result<Option<Moment>, GitError> {
    while recorded.is_some_and(|at| is_postdated(at, now)) {
        let Some(&parent) = repository.commit(commit)?.parents.first() else {
            return Ok(None);
        };
        commit = parent;
        recorded = self::recorded(&repository.commit(parent)?);
    }
    Ok(recorded)
}

/// Whether a time is too far ahead of another: of its step's recording, or of the reader's clock.
pub(super) fn is_postdated(at: Moment, recorded: Moment) -> bool {
    at - recorded > AHEAD
}

/// Refuses to expire a handoff before both known clocks have passed its deadline: the step's, and
/// that of its recording, in whole seconds. Otherwise, setting one of them would be enough to take
/// a live lease.
pub(super) fn ensure_ran_out(record: &Record, at: Moment, recorded: Moment) -> Result<(), Refusal> {
    let is_ahead = to_second(at) > recorded;
    match record.expires_at() {
        Some(end) if is_ahead && end > recorded => {
            Err(LeaseRefusal::NotOverdue(record.id.clone()).into())
        }
        _ => Ok(()),
    }
}

/// Whether a step's time was set by hand to before its issue's last step. `recorded` is when the
/// step was recorded, `parent` when its parent was. A last step with a future date sets no bound,
/// and no clock lags by a day.
pub(super) fn is_backdated(
    at: Moment,
    previous: Option<Moment>,
    recorded: Moment,
    parent: Option<Moment>,
) -> bool {
    // Commits have whole seconds, which decide.
    let before = |previous: Moment| {
        let previous = to_second(previous);
        at < parent.map_or(previous, |parent| previous.min(parent))
    };
    let by_hand = |parent: Moment| recorded > parent || parent - at > BEHIND;
    previous.is_some_and(before) && parent.is_none_or(by_hand)
}
