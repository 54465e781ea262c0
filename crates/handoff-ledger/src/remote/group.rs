//! Steps that the processes of one clone publish together: each plans its own on the last one that
//! waits, and whoever has the turn to talk to the remote pushes all that wait at once.
//!
//! Nothing but a note leads to the steps that wait. They are void once the remote's branch went
//! another way; then each process plans its own step anew. So a step is never made by another
//! process than the one that was asked for it, and a process that is killed leaves at most a step
//! that was not acknowledged.

use std::time::{Duration, Instant};

use handoff_base::{ObjectId, digest};
use handoff_git::{Depth, Prepared, PublishError, Queue};

use super::presume::OwnSteps;
use super::publish::Landing;
use super::{Reach, Upstream, duration, nanoseconds};
use crate::error::{LedgerError, WriteError};
use crate::session::Session;
use crate::write::Ledger;

/// How long to wait at a queue before checking whether to go on waiting.
const STEP: Duration = Duration::from_millis(20);

/// How long to wait at least while others plan their steps.
const SHORT: Duration = Duration::from_secs(1);

/// A step that was added to a group.
#[derive(Clone, Copy)]
pub(crate) struct GroupStep<'a> {
    /// Its commit.
    pub(crate) commit: ObjectId,
    /// Whether this process made it, or only has to know what becomes of it.
    pub(crate) is_own: bool,
    /// The reflog's message.
    pub(crate) reflog: &'a str,
    /// How many attempts this process made.
    pub(crate) attempts: u32,
}

/// The steps that wait, while this process is the only one to add to them.
struct Group {
    queue: Queue,
    note: GroupNote,
}

/// What the processes of a clone tell each other about a remote's branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupNote {
    /// When the branch was looked at, and where it was.
    seen: Option<(u128, ObjectId)>,
    /// The last step that waits.
    last: Option<ObjectId>,
    /// The last step that was pushed from here and that the remote took, or may have taken.
    pushed: Option<ObjectId>,
    /// How many steps in a row were pushed from here.
    own: OwnSteps,
}

impl GroupNote {
    /// Whether the next step may be planned on where the tracking ref is, without a look.
    pub(super) fn lets_presume(&self, known: ObjectId, now: u128) -> bool {
        let Some((at, tip)) = self.seen else {
            return false;
        };
        // The clock may have been set back since.
        let after = now.checked_sub(at).map(duration);
        tip == known
            && self.pushed == Some(known)
            && after.is_some_and(|after| self.own.lets_presume(after))
    }

    /// The note after a look or a push that found, or left, the branch at a commit.
    fn seen_at(self, at: u128, tip: ObjectId) -> Self {
        let is_own = self.pushed == Some(tip);
        let own = match self.seen {
            Some((_, before)) if before == tip && is_own => self.own.seen_alone(),
            Some((_, before)) if before == tip => self.own,
            Some((before, _)) if is_own => self.own.pushed(duration(at.saturating_sub(before))),
            _ => self.own.seen_others(),
        };
        Self {
            seen: Some((at, tip)),
            last: self.last.filter(|last| *last != tip),
            own,
            ..self
        }
    }

    fn text(self) -> String {
        let word = |id: Option<ObjectId>| id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let (at, tip) = self.seen.unzip();
        format!(
            "{} {} {} {} {}",
            at.unwrap_or_default(),
            word(tip),
            word(self.last),
            word(self.pushed),
            self.own.text()
        )
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let at = words.next()?.parse().ok()?;
        let mut id = || words.next().map(|word| word.parse::<ObjectId>().ok());
        let (tip, last, pushed) = (id()?, id()?, id()?);
        Some(Self {
            seen: tip.map(|tip| (at, tip)),
            last,
            pushed,
            own: OwnSteps::parse(words.next()),
        })
    }
}

impl Group {
    fn leave(&mut self, note: GroupNote) {
        if self.note != note {
            self.note = note;
            self.queue.leave(Some(&note.text()));
        }
    }

    /// Takes all steps that wait away; each is made anew.
    fn clear(&mut self) {
        self.leave(GroupNote {
            last: None,
            ..self.note
        });
    }
}

/// Where the next step is planned.
pub(crate) enum Place {
    /// On this clone's branch; it is published by itself.
    Branch,
    /// After the steps that wait.
    Group(Box<GroupPlace>),
    /// An earlier commit of this process was published or recorded after all.
    Settled(ObjectId),
}

/// The end of the steps that wait, while no other process adds one.
pub(crate) struct GroupPlace {
    group: Group,
    /// The last step that waits, or where the remote's branch is if none waits.
    base: ObjectId,
    /// Where the remote's branch is.
    published: ObjectId,
}

impl GroupPlace {
    /// Adds a step, which then waits for the next push; returns its commit.
    pub(crate) fn add(mut self, step: &Prepared<'_>) -> ObjectId {
        let commit = step.commit();
        let last = Some(commit);
        let note = self.group.note;
        self.group.leave(GroupNote { last, ..note });
        commit
    }
}

impl Place {
    /// The commit to plan on; `None` for this clone's branch.
    pub(crate) fn base(&self) -> Option<ObjectId> {
        match self {
            Self::Group(place) => Some(place.base),
            Self::Branch | Self::Settled(_) => None,
        }
    }

    /// Where the remote's branch is, if a step is planned on others that are not there yet.
    pub(crate) fn waits_on(&self) -> Option<ObjectId> {
        match self {
            Self::Group(place) => Some(place.published).filter(|there| *there != place.base),
            Self::Branch | Self::Settled(_) => None,
        }
    }
}

/// What became of a step that was added to a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It waits; this is the last step that waits.
    Waits(ObjectId),
    /// The remote has it.
    Published,
    /// It is on this clone's branch and does not wait any more.
    Recorded,
    /// It will never be published.
    Void,
}

impl Upstream<'_> {
    /// The file of the processes that write to this branch of this remote.
    fn group_file(&self) -> String {
        const DIGITS: usize = 16;
        let digest = digest(self.tracking.as_bytes());
        format!("{}{}.lock", Queue::GROUP, &digest[..DIGITS])
    }

    /// Waits until no other process plans a step; `None` if that does not end.
    fn group(&self, patience: Duration) -> Option<Group> {
        let since = Instant::now();
        loop {
            // Who holds it may be reading this process's step, and only this process can write the
            // step's objects again. What can't be written is missed where it is needed.
            let _ = self.repository.put_back_lost();
            let left = patience.saturating_sub(since.elapsed());
            let common_dir = self.repository.common_dir();
            let queue = Queue::join(common_dir, &self.group_file(), left.min(STEP));
            if !queue.is_taken() || left.is_zero() {
                let note = queue.note().and_then(GroupNote::parse).unwrap_or_default();
                return queue.is_held().then_some(Group { queue, note });
            }
        }
    }

    /// Tells the processes of this clone where the remote's branch was.
    pub(super) fn tell_seen(&self, at: u128, tip: ObjectId) {
        if let Some(mut group) = self.group(SHORT) {
            group.leave(group.note.seen_at(at, tip));
        }
    }

    /// The note, read while others may write it.
    pub(super) fn peek_group(&self) -> GroupNote {
        let peek = || Queue::peek(self.repository.common_dir(), &self.group_file());
        let text = peek().filter(|text| peek().as_ref() == Some(text));
        text.and_then(|text| GroupNote::parse(&text))
            .unwrap_or_default()
    }

    fn has(&self, commit: ObjectId, of: ObjectId) -> Result<bool, LedgerError> {
        let is_here = self.repository.has(commit) && self.repository.has(of);
        Ok(is_here && self.repository.is_in_history(commit, of)?)
    }

    /// Whether a step was pushed from this clone, so that it is this process's if the remote has it.
    fn is_of_this_clone(&self, group: &Group, commit: ObjectId) -> Result<bool, LedgerError> {
        let is_pushed = match group.note.pushed {
            Some(pushed) => self.has(commit, pushed)?,
            None => false,
        };
        Ok(is_pushed || self.is_in_doubt(commit)?)
    }

    /// Whether it is unknown if the remote took a step in a push of this process.
    fn is_in_doubt(&self, commit: ObjectId) -> Result<bool, LedgerError> {
        for pushed in &self.pushes.doubtful {
            if self.has(commit, *pushed)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What became of a step, while no other process plans. `here` is where this clone's branch is.
    fn fate(
        &self,
        group: &Group,
        commit: ObjectId,
        known: ObjectId,
        here: Option<ObjectId>,
    ) -> Result<Fate, LedgerError> {
        if self.has(commit, known)? {
            // Another clone may have made the very same step.
            let is_own = self.is_of_this_clone(group, commit)?;
            return Ok(if is_own { Fate::Published } else { Fate::Void });
        }
        if let Some(last) = group.note.last
            && self.has(known, commit)?
            && self.has(commit, last)?
        {
            return Ok(Fate::Waits(last));
        }
        match here {
            Some(here) if self.has(commit, here)? => Ok(Fate::Recorded),
            _ => Ok(Fate::Void),
        }
    }

    /// Takes the steps that wait away if this one is among them: it is given up, or published by
    /// itself.
    fn leave_group(&mut self, commit: ObjectId) -> Result<(), LedgerError> {
        self.is_alone = true;
        if let Some(mut group) = self.group(self.left().max(SHORT))
            && let Some(last) = group.note.last
            && self.has(commit, last)?
        {
            group.clear();
        }
        Ok(())
    }

    /// Notes what is being pushed, or was pushed before; returns what was noted.
    fn note_pushed(&self, pushed: Option<ObjectId>) -> Option<ObjectId> {
        let mut group = self.group(SHORT)?;
        let before = group.note.pushed;
        group.leave(GroupNote {
            pushed,
            ..group.note
        });
        before
    }

    /// Tries for a moment to get this process's turn to talk to the remote; returns whether to go
    /// on, with or without it: `since` is when it began to wait.
    fn wait_for_turn(&mut self, session: &Session, since: Instant) -> bool {
        if self.turn.is_some() {
            return true;
        }
        let turn = Queue::join(self.repository.common_dir(), super::TURN, STEP);
        // Half of the time is kept for the remote, in case the turn never comes.
        let is_over = since.elapsed() >= session.patience / 2 || self.left() == Duration::ZERO;
        if turn.is_taken() && !is_over {
            return false;
        }
        self.take_turn(turn, session);
        true
    }

    /// Waits for this process's turn, in which it publishes a step by itself.
    fn wait_alone(&mut self, session: &Session) {
        self.is_alone = true;
        let since = Instant::now();
        while !self.wait_for_turn(session, since) {}
    }

    /// Notes that another process of this clone could not reach the remote, and recorded this
    /// process's step with its own.
    fn tell_recorded(&mut self) {
        if self.is_reached() {
            let trouble = "another process of this clone could not reach it";
            self.reach = Reach::Unreachable(trouble.to_owned());
        }
    }

    /// Pushes the last step that waits, and with it all others. If it is not the only one, the
    /// remote's branch has to be exactly where it was last seen: only then are all of them new
    /// there.
    fn push_all(
        &mut self,
        session: &Session,
        last: ObjectId,
        known: ObjectId,
    ) -> Result<(Landing, bool), LedgerError> {
        let parent = self.repository.first_parents(last).nth(1).transpose()?;
        let is_one = parent == Some(known);
        let before = self.note_pushed(Some(last));
        let was_doubtful = self.is_doubtful(last);
        let landed = self.push_from(session, last, (!is_one).then_some(known));
        let is_lost = match &landed {
            Ok(Landing::Behind) => !was_doubtful,
            Ok(Landing::There | Landing::Doubtful) => false,
            Err(_) => true,
        };
        if is_lost {
            self.note_pushed(before);
        }
        Ok((landed?, is_one))
    }
}

impl Ledger<'_> {
    /// Waits until this process has its turn at the remote, or until the remote's branch was seen
    /// since the process began and this clone's branch is where that was. Returns whether there is
    /// nothing more to do.
    pub(super) fn is_told(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
    ) -> Result<bool, LedgerError> {
        let since = Instant::now();
        loop {
            let note = upstream.peek_group();
            let meanwhile = nanoseconds(session.began)..=nanoseconds((session.wall)());
            if let (Some(known), Some((at, tip))) = (upstream.known()?, note.seen)
                && upstream.turn.is_none()
                && (known == tip && meanwhile.contains(&at))
                && self.follow_known(session, upstream)?
            {
                upstream.reach = Reach::Reached;
                return Ok(true);
            }
            if upstream.wait_for_turn(session, since) {
                return Ok(false);
            }
        }
    }

    /// Moves this clone's branch to where the remote's is, if it only has to be moved on. Returns
    /// whether it is there.
    pub(super) fn follow_known(
        &self,
        session: &Session,
        upstream: &Upstream<'_>,
    ) -> Result<bool, LedgerError> {
        loop {
            let (here, known) = (self.tip_id()?, upstream.known()?);
            let (Some(here), Some(known)) = (here, known) else {
                return Ok(false);
            };
            if here == known {
                return Ok(true);
            }
            if !upstream.has(here, known)? {
                return Ok(false);
            }
            match self.move_branch(session, Some(here), known, "handoff: publish") {
                Ok(()) => self.memory().wrote(Some(here), known),
                Err(PublishError::Moved) => {}
                Err(_) => return Ok(false),
            }
        }
    }

    /// Where the next step is planned; `earlier` are the commits that this process made for it
    /// before.
    pub(crate) fn place(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
        earlier: &[ObjectId],
    ) -> Result<Place, LedgerError> {
        let Some(known) = upstream.known()? else {
            return Ok(Place::Branch);
        };
        let patience = upstream.left().max(SHORT);
        let Some(mut group) = upstream.group(patience) else {
            upstream.wait_alone(session);
            return Ok(Place::Branch);
        };
        let here = self.tip_id()?;
        for commit in earlier {
            match upstream.fate(&group, *commit, known, here)? {
                Fate::Void => {}
                // It is made anew, so it may not be published any more.
                Fate::Waits(_) => group.clear(),
                Fate::Published => return Ok(Place::Settled(*commit)),
                Fate::Recorded => {
                    upstream.tell_recorded();
                    return Ok(Place::Settled(*commit));
                }
            }
        }
        if upstream.is_alone {
            drop(group);
            upstream.wait_alone(session);
            self.follow_known(session, upstream)?;
            return Ok(Place::Branch);
        }
        let mut base = known;
        if let Some(last) = group.note.last
            && upstream.has(known, last)?
        {
            base = last;
        }
        Ok(Place::Group(Box::new(GroupPlace {
            group,
            base,
            published: known,
        })))
    }

    /// Publishes a step that waits in the group, with all others that wait when it is this process's
    /// turn. Returns `false` if it is void, and has to be planned again.
    ///
    /// # Errors
    /// [`LedgerError`]; the step was not written then, and never will be.
    pub(crate) fn publish_waiting(
        &self,
        upstream: &mut Upstream<'_>,
        session: &Session,
        step: GroupStep<'_>,
    ) -> Result<bool, LedgerError> {
        let published = self.try_in_group(upstream, session, step);
        if published.is_err() && step.is_own {
            upstream.leave_group(step.commit)?;
        }
        published
    }

    fn try_in_group(
        &self,
        upstream: &mut Upstream<'_>,
        session: &Session,
        step: GroupStep<'_>,
    ) -> Result<bool, LedgerError> {
        let since = Instant::now();
        loop {
            let (known, last) = match self.fate_of(session, upstream, step)? {
                Ok(waits) => waits,
                Err(is_settled) => return Ok(is_settled),
            };
            if upstream.turn.is_none() {
                // What waits is published by others meanwhile, unless nobody can.
                while upstream.known()? == Some(known) && !upstream.wait_for_turn(session, since) {
                    // Whoever pushes it, only this process can write its objects again.
                    self.repository().put_back_lost()?;
                }
                if upstream.turn.as_ref().is_some_and(|turn| !turn.is_held()) {
                    upstream.leave_group(step.commit)?;
                    return Ok(false);
                }
                continue;
            }
            let (landing, is_one) = match upstream.push_all(session, last, known) {
                Err(error) if error.is_of_a_hook() => (
                    self.push_singly(upstream, session, (known, last), step, error)?,
                    false,
                ),
                pushed => pushed?,
            };
            if matches!(landing, Landing::There) {
                continue;
            }
            let is_lost =
                matches!(landing, Landing::Behind) && !upstream.is_in_doubt(step.commit)?;
            if is_lost && upstream.left() == Duration::ZERO {
                return self.out_of_time(upstream, step);
            }
            upstream.pause(session, &landing);
            if upstream.is_reached() {
                upstream.look(session, Depth::Missing)?;
            }
            if upstream.is_reached() {
                self.reconcile(session, upstream)?;
                if is_lost && !is_one && upstream.known()? == Some(known) {
                    // It is not where it was seen, and was seen there again.
                    upstream.leave_group(step.commit)?;
                }
                continue;
            }
            if is_lost && upstream.left() == Duration::ZERO {
                return self.out_of_time(upstream, step);
            }
            return Ok(step.is_own && self.record_waiting(session, upstream, step)?);
        }
    }

    /// Gives a step up that others came before, unless a process that could not reach the remote has
    /// recorded it here with its own: then it is published later.
    fn out_of_time(
        &self,
        upstream: &mut Upstream<'_>,
        step: GroupStep<'_>,
    ) -> Result<bool, LedgerError> {
        if step.is_own
            && let Some(here) = self.tip_id()?
            && upstream.has(step.commit, here)?
        {
            upstream.tell_recorded();
            return Ok(true);
        }
        Err(WriteError::Contended(step.attempts).into())
    }

    /// What became of a step: where the remote's branch is and the last step that waits, if it
    /// waits; else whether it need not be planned again.
    fn fate_of(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
        step: GroupStep<'_>,
    ) -> Result<Result<(ObjectId, ObjectId), bool>, LedgerError> {
        let patience = upstream.left().max(SHORT);
        let (Some(group), Some(known)) = (upstream.group(patience), upstream.known()?) else {
            upstream.is_alone = true;
            return Ok(Err(false));
        };
        let fate = upstream.fate(&group, step.commit, known, self.tip_id()?)?;
        drop(group);
        match fate {
            Fate::Waits(last) => return Ok(Ok((known, last))),
            Fate::Published => {
                if !self.follow_known(session, upstream)? && upstream.turn.is_some() {
                    self.reconcile_later(session, upstream);
                }
                // Another process may have moved the refs.
                self.repository().keep_written()?;
            }
            Fate::Recorded => upstream.tell_recorded(),
            // Others took it away although it could still be published.
            Fate::Void => upstream.is_alone |= upstream.has(known, step.commit)?,
        }
        Ok(Err(fate != Fate::Void))
    }

    /// Pushes the steps that wait one by one, up to this process's: a hook of the remote refused one
    /// of them. If that is another's, the rest is void.
    fn push_singly(
        &self,
        upstream: &mut Upstream<'_>,
        session: &Session,
        (known, last): (ObjectId, ObjectId),
        step: GroupStep<'_>,
        refusal: LedgerError,
    ) -> Result<Landing, LedgerError> {
        let mut steps = Vec::new();
        for id in self.repository().first_parents(last) {
            let id = id?;
            if id == known {
                break;
            }
            steps.push(id);
        }
        if steps.len() == 1 && step.is_own {
            return Err(refusal);
        }
        let mut before = known;
        for commit in steps.into_iter().rev() {
            match upstream.push_all(session, commit, before) {
                Ok((Landing::There, _)) => before = commit,
                Ok((landing, _)) => return Ok(landing),
                Err(error) if error.is_of_a_hook() && (commit != step.commit || !step.is_own) => {
                    upstream.leave_group(step.commit)?;
                    break;
                }
                Err(error) => return Err(error),
            }
            if commit == step.commit {
                break;
            }
        }
        Ok(Landing::There)
    }

    /// Records a step that waits on this clone's branch, with those before it: the remote can't be
    /// reached. Returns `false` if it has to be planned again.
    fn record_waiting(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
        step: GroupStep<'_>,
    ) -> Result<bool, LedgerError> {
        let (Some(mut group), Some(known)) = (upstream.group(SHORT), upstream.known()?) else {
            return Ok(false);
        };
        let here = self.tip_id()?;
        match upstream.fate(&group, step.commit, known, here)? {
            Fate::Waits(_) => {}
            fate => return Ok(fate != Fate::Void),
        }
        let leads_on = match here {
            Some(here) => upstream.has(here, step.commit)?,
            None => true,
        };
        let moved = if leads_on {
            self.move_branch(session, here, step.commit, step.reflog)
        } else {
            Err(PublishError::Moved)
        };
        match moved {
            Ok(()) => {
                self.memory().wrote(here, step.commit);
                Ok(true)
            }
            Err(PublishError::Moved | PublishError::Locked(_)) => {
                group.clear();
                Ok(false)
            }
            Err(PublishError::Git(error)) => Err(error.into()),
        }
    }
}
