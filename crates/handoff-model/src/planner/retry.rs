//! Retries: how many are allowed, when the next may start, and what happens when none is left.

use handoff_base::Moment;
use handoff_protocol::{Event, State};

use crate::planner::Planner;
use crate::record::{Record, Transition};
use crate::step::EventArgs;

/// The whole delay, in thousandths.
const WHOLE: u32 = 1000;

impl<E, V> Planner<'_, E, V> {
    /// Why no attempt is left after a failure, if so.
    pub(super) fn why_spent(&self, record: &Record) -> Option<String> {
        record.why_spent(self.protocol, record.failure().map(|f| f.code.as_str()))
    }

    /// Marks a failed handoff without attempts left as dead.
    pub(super) fn exhaust(&self, record: &mut Record) {
        // If the protocol has no retry rules, whoever retries decides.
        if self.protocol.definition().retry().is_none() {
            return;
        }
        let Some(why) = self.why_spent(record) else {
            return;
        };
        let from = record.state;
        record.state = State::Dead;
        record.transitions.push(Transition {
            event: Some(Event::Exhaust),
            from: Some(from),
            to: State::Dead,
            reason: Some(why),
            ..Transition::new(self.step.at, self.step.by.clone(), State::Dead)
        });
    }

    /// The moment from which a retried handoff can be claimed, if that is later.
    pub(super) fn not_before(&self, record: &Record, args: &EventArgs) -> Option<Moment> {
        let policy = self.protocol.definition().retry()?;
        let own = record.retry.clone().unwrap_or_default();
        let whole = policy.delay(&own, record.retries());
        let seconds = match (policy.jitter, args.jitter) {
            (Some(_), Some(drawn)) => {
                whole.saturating_mul(drawn.min(WHOLE).into()) / u64::from(WHOLE)
            }
            _ => whole,
        };
        // A clock that was ahead when the attempt failed adds no delay.
        let failed = record.latest().map_or(self.step.at, |t| t.at);
        let at = failed.min(self.step.at).later(seconds);
        (at > self.step.at).then_some(at)
    }
}
