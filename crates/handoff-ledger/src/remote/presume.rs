//! Presuming where the remote's branch is: a clone whose own step was the last there plans the next
//! one on it and pushes at once. The push goes through only if the branch is still there, so nobody
//! has to look first.
//!
//! Only a published step makes a presumed state a fact. A refusal, a repeat or a lost push that
//! rests on it counts for nothing: whoever presumed catches up and makes the request again.

use std::time::Duration;

use super::{Attempts, Reach, Upstream, nanoseconds};
use crate::error::LedgerError;
use crate::session::Session;
use crate::write::Ledger;

/// How old the last look or push may be.
const FRESH: Duration = Duration::from_mins(10);

/// A clone that pushes without looking is quicker than those that look first. After a pause of this
/// length between two steps they had their chance.
const SPACED: Duration = Duration::from_secs(5);

/// How many steps of this clone follow each other, with none of another clone between them.
///
/// Below zero after a step of another clone came where this one would have presumed that there is
/// none: agents that take turns would otherwise presume in vain at each turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnSteps(i8);

impl OwnSteps {
    /// So many steps in a row let a clone presume.
    const ENOUGH: i8 = 2;
    /// With so many, it looks before the next one. `docs/scale.md` has what others gain by that.
    const MOST: i8 = 5;
    /// From here it takes eight steps in a row.
    const DISPROVED: i8 = -6;

    /// After a push, so long after the last push or look.
    pub(super) fn pushed(self, after: Duration) -> Self {
        let row = if after >= SPACED {
            self.seen_alone()
        } else {
            self
        };
        Self(row.0.saturating_add(1))
    }

    /// After a look that found no step of another clone: the steps that follow are counted anew.
    pub(super) fn seen_alone(self) -> Self {
        Self(self.0.min(Self::ENOUGH))
    }

    /// After a look that found steps of other clones.
    pub(super) fn seen_others(self) -> Self {
        let would_be_wrong = self.0 < 0 || self.0 >= Self::ENOUGH;
        Self(if would_be_wrong { Self::DISPROVED } else { 0 })
    }

    /// Whether the next step may be planned without a look, so long after the last push or look.
    pub(super) fn lets_presume(self, after: Duration) -> bool {
        let few = self.0 < Self::MOST || after >= SPACED;
        self.0 >= Self::ENOUGH && few && after <= FRESH
    }

    pub(super) fn text(self) -> String {
        self.0.to_string()
    }

    /// Nothing that can't be read lets a clone presume.
    pub(super) fn parse(text: Option<&str>) -> Self {
        Self(text.and_then(|text| text.parse().ok()).unwrap_or_default())
    }
}

impl Upstream<'_> {
    /// Whether it is only presumed where the remote's branch is.
    pub(super) fn is_presumed(&self) -> bool {
        self.presumed.is_some()
    }

    /// Goes back to where the remote was not contacted. The time that was spent stays spent.
    pub(super) fn forget_presumed(&mut self) {
        self.end();
        self.presumed = None;
        self.reach = Reach::Unasked;
        self.attempts.lost = 0;
    }

    /// The remote's branch is where it was presumed to be.
    pub(super) fn confirm(&mut self) {
        self.presumed = None;
    }
}

impl Ledger<'_> {
    /// Presumes that the remote's branch is where this clone's last step left it, if the last
    /// writes speak for it; returns whether it does. Then make the request, and if
    /// [`Self::is_presumed`] afterwards, [`Self::catch_up`] and make it again, whatever its outcome.
    ///
    /// # Errors
    /// [`LedgerError`] if this branch must not be written, or a ref can't be read.
    pub fn presume(&mut self, session: &Session) -> Result<bool, LedgerError> {
        if !self.is_shared() || session.offline {
            return Ok(false);
        }
        self.with_upstream(|ledger, upstream| {
            if upstream.is_settled() {
                return Ok(false);
            }
            ledger.guard(session)?;
            let now = nanoseconds((session.wall)());
            let Some(known) = upstream.known()? else {
                return Ok(false);
            };
            // Steps that were made here offline are published first.
            if !upstream.peek_group().lets_presume(known, now)
                || !ledger.follow_known(session, upstream)?
            {
                return Ok(false);
            }
            upstream.attempts = Attempts::within(session.patience);
            upstream.reach = Reach::Reached;
            upstream.presumed = Some(known);
            Ok(true)
        })
    }

    /// Whether the last request's outcome rests on a state that was only presumed.
    pub fn is_presumed(&self) -> bool {
        self.upstream().is_some_and(Upstream::is_presumed)
    }

    /// Notes that a step was published, or recorded where the remote is out of reach.
    pub(crate) fn confirm_presumed(&mut self) {
        if let Some(upstream) = self.upstream_mut() {
            upstream.confirm();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::OwnSteps;

    const SOON: Duration = Duration::from_millis(50);
    const LATER: Duration = Duration::from_mins(1);

    /// Which of so many writes of a lone clone presume.
    fn presuming(mut own: OwnSteps, writes: usize, pause: Duration) -> Vec<bool> {
        let mut presumed = Vec::new();
        for _ in 0..writes {
            let presumes = own.lets_presume(pause);
            presumed.push(presumes);
            if !presumes {
                own = own.seen_alone();
            }
            own = own.pushed(pause);
        }
        presumed
    }

    #[test]
    fn a_lone_clone_presumes_from_its_third_step_and_looks_now_and_then() {
        let first = OwnSteps::default().seen_others();
        let expected = [
            false, false, true, true, true, false, true, true, false, true,
        ];
        assert_eq!(presuming(first, 10, SOON), expected);
    }

    #[test]
    fn who_works_between_its_steps_need_not_look() {
        let presumed = presuming(OwnSteps::default(), 20, LATER);
        assert!(presumed[2..].iter().all(|presumed| *presumed));
    }

    #[test]
    fn after_a_long_pause_it_looks() {
        let own = OwnSteps::default().pushed(SOON).pushed(SOON);
        assert!(own.lets_presume(SOON));
        assert!(!own.lets_presume(Duration::from_mins(11)));
    }

    #[test]
    fn after_others_came_between_it_takes_eight_steps_in_a_row() {
        let own = OwnSteps::default().pushed(SOON).pushed(SOON).seen_others();
        let presumed = presuming(own, 9, LATER);
        assert_eq!(presumed.iter().position(|presumed| *presumed), Some(8));
        // Agents that take turns at two steps each never presume again.
        let mut own = own;
        for _ in 0..10 {
            own = own.pushed(SOON).pushed(SOON).seen_others();
            assert!(!own.lets_presume(SOON));
        }
    }

    #[test]
    fn a_note_that_says_nothing_lets_nobody_presume() {
        for text in [None, Some(""), Some("-"), Some("x"), Some("300")] {
            assert!(!OwnSteps::parse(text).lets_presume(SOON), "{text:?}");
        }
        let own = OwnSteps(3);
        assert_eq!(OwnSteps::parse(Some(&own.text())), own);
    }
}
