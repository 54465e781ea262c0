//! The steps of an issue in causal order, which is that of the log.
//!
//! Records tell times to the second, and clocks differ. So causality comes first: handoffs are sent
//! in the order of their numbers, each passes through its transitions in order, and a sending and
//! the transitions that it caused are one step. Time decides only between independent steps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use handoff::base::Moment;
use handoff::base::ids::HandoffId;
use handoff::model::{
    Annotation, Decision, GivenUp, Issue, Paused, Record, Reopening, Resumed, Transition,
};
use handoff::protocol::Event;

#[derive(Clone, Debug)]
pub(super) struct Step<'a> {
    /// Its time, but not before the steps that it depends on.
    pub(super) at: Moment,
    pub(super) what: What<'a>,
}

/// What a step did. Handoffs and transitions are given by index.
#[derive(Clone, Debug)]
pub(super) enum What<'a> {
    /// A handoff was sent, which caused these transitions in others.
    Sent(usize, Vec<(usize, usize)>),
    /// A transition, and the decision behind it, if any.
    Changed((usize, usize), Option<&'a Decision>),
    Decided(&'a Decision),
    Noted(&'a Annotation),
    GivenUp(&'a GivenUp),
    Reopened(&'a Reopening),
    Paused(&'a Paused),
    Resumed(&'a Resumed),
}

/// The steps of an issue, the oldest first; the records must be sorted by number.
pub(super) fn steps<'a>(issue: &'a Issue, records: &[&'a Record]) -> Vec<Step<'a>> {
    let mut order = Order {
        issue,
        records,
        sent: 0,
        last_sent: Moment::FIRST,
        next: vec![1; records.len()],
        since: vec![Moment::FIRST; records.len()],
        ready: BinaryHeap::new(),
        held: BTreeMap::new(),
        needed: BTreeMap::new(),
        remarks: [0; 6],
        steps: Vec::new(),
    };
    for (at, record) in records.iter().enumerate() {
        for transition in record.transitions.iter().skip(1) {
            // Exhausting the attempts belongs to the transition before.
            let is_own = transition.event != Some(Event::Exhaust);
            if let Some(sending) = order.sent_with(at, transition).filter(|_| is_own) {
                *order.needed.entry(sending).or_default() += 1;
            }
        }
    }
    while order.step() {}
    order.steps
}

/// Orders independent steps: by time, then kind, then number.
type Key = (Moment, u8, usize);

struct Order<'a, 'r> {
    issue: &'a Issue,
    records: &'r [&'a Record],
    /// How many handoffs have been sent, and when the last one was.
    sent: usize,
    last_sent: Moment,
    /// Each handoff's next transition, and the time of the one before it.
    next: Vec<usize>,
    since: Vec<Moment>,
    /// Handoffs whose next transition may follow now.
    ready: BinaryHeap<Reverse<Key>>,
    /// Handoffs whose next transition is part of a later sending.
    held: BTreeMap<usize, Vec<usize>>,
    /// How many transitions are part of each sending.
    needed: BTreeMap<usize, usize>,
    /// For each kind of remark on the issue, the index of the next one.
    remarks: [usize; 6],
    steps: Vec<Step<'a>>,
}

impl<'a> Order<'a, '_> {
    /// Adds the next step; returns whether there was one.
    fn step(&mut self) -> bool {
        let sending = self.sending();
        let ready = self.ready.peek().map(|Reverse(key)| *key);
        let remark = self.remark();
        let first = [sending, ready, remark.as_ref().map(|(key, ..)| *key)];
        let Some(first) = first.into_iter().flatten().min() else {
            // A tampered record may depend on a step that does not exist.
            let is_left = self.sent < self.records.len();
            if is_left {
                self.send();
            }
            return is_left;
        };
        if ready == Some(first) {
            self.change();
        } else if sending == Some(first) {
            self.send();
        } else if let Some(((at, ..), list, what)) = remark {
            self.remarks[list] += 1;
            self.steps.push(Step { at, what });
        }
        true
    }

    /// When the next handoff can be sent.
    fn sending(&self) -> Option<Key> {
        let record = self.records.get(self.sent)?;
        let held = self.held.get(&self.sent).map_or(&[][..], Vec::as_slice);
        let needed = self.needed.get(&self.sent).copied().unwrap_or(0);
        let again = self.issue.reopened.get(self.remarks[3]);
        let is_reopened = again.is_none_or(|again| again.handoffs as usize > self.sent);
        if held.len() < needed || !is_reopened {
            return None;
        }
        let before = held.iter().map(|at| self.since[*at]).max();
        let at = record.sent_at()?.max(self.last_sent);
        Some((before.map_or(at, |before| before.max(at)), 1, self.sent))
    }

    fn send(&mut self) {
        let sent = self.sent;
        let at = self.sending().map_or(self.last_sent, |(at, ..)| at);
        let held = self.held.remove(&sent).unwrap_or_default();
        let with = held.iter().map(|at| (*at, self.next[*at])).collect();
        self.steps.push(Step {
            at,
            what: What::Sent(sent, with),
        });
        (self.sent, self.last_sent) = (sent + 1, at);
        for changed in held {
            self.passed(changed, at);
        }
        self.since[sent] = at;
        self.await_next(sent);
    }

    /// Adds the first transition that is ready.
    fn change(&mut self) {
        let Some(Reverse((at, _, changed))) = self.ready.pop() else {
            return;
        };
        let index = self.next[changed];
        let transition = &self.records[changed].transitions[index];
        let decision = self.issue.decisions.get(self.remarks[0]);
        let decision = decision.filter(|one| decides(one, &self.records[changed].id, transition));
        self.remarks[0] += usize::from(decision.is_some());
        self.steps.push(Step {
            at,
            what: What::Changed((changed, index), decision),
        });
        self.passed(changed, at);
    }

    /// Advances a handoff past its transition.
    fn passed(&mut self, changed: usize, at: Moment) {
        self.since[changed] = at;
        self.next[changed] += 1;
        let transitions = &self.records[changed].transitions;
        let next = transitions.get(self.next[changed]);
        if next.is_some_and(|next| next.event == Some(Event::Exhaust)) {
            self.next[changed] += 1;
        }
        self.await_next(changed);
    }

    fn await_next(&mut self, changed: usize) {
        let record = self.records[changed];
        let Some(next) = record.transitions.get(self.next[changed]) else {
            return;
        };
        match self.sent_with(changed, next) {
            Some(sending) if sending >= self.sent => {
                self.held.entry(sending).or_default().push(changed);
            }
            _ => {
                let at = next.at.max(self.since[changed]);
                self.ready.push(Reverse((at, rank(next.event), changed)));
            }
        }
    }

    /// The later handoff whose sending caused a transition.
    fn sent_with(&self, changed: usize, transition: &Transition) -> Option<usize> {
        let number = transition.sent.as_ref()?.number() as usize;
        let sent = number.checked_sub(1).filter(|sent| *sent > changed)?;
        let sending = self.records.get(sent)?.transitions.first()?;
        let is_same = sending.at == transition.at && sending.by == transition.by;
        is_same.then_some(sent)
    }

    /// The earliest remark on the issue that may follow now, and the list it is in.
    fn remark(&self) -> Option<(Key, usize, What<'a>)> {
        let issue = self.issue;
        let [decision, note, end, again, pause, resumed] = self.remarks;
        let is_sent = |id: &HandoffId| id.number() as usize <= self.sent;
        let decision = issue.decisions.get(decision);
        let decision = decision.filter(|one| is_sent(&one.id) && !self.is_next(one));
        let decision = decision.map(|one| (one.at, 2, 0, What::Decided(one)));
        let note = issue.annotations.get(note);
        let note = note.filter(|one| one.id.as_ref().is_none_or(is_sent));
        let note = note.map(|one| (one.at, 3, 1, What::Noted(one)));
        let end = issue.given_up.get(end);
        let end = end.map(|one| (one.at, 5, 2, What::GivenUp(one)));
        let again = issue.reopened.get(again);
        let again = again.filter(|one| one.handoffs as usize <= self.sent);
        let again = again.map(|one| (one.at, 6, 3, What::Reopened(one)));
        // An entry in `resumed` may end a pause: that pause has to come first.
        let ended = issue.resumed.iter().take(resumed + 1);
        let ended = ended.filter(|end| end.paused.is_some()).count();
        let resumed = issue.resumed.get(resumed).filter(|_| pause >= ended);
        let resumed = resumed.map(|one| (one.at, 6, 5, What::Resumed(one)));
        let pauses = issue.resumed.iter().filter_map(|end| end.paused.as_ref());
        let pause = pauses.chain(&issue.paused).nth(pause);
        let pause = pause.map(|one| (one.at, 5, 4, What::Paused(one)));
        let all = [decision, note, end, again, pause, resumed]
            .into_iter()
            .flatten();
        let first = all.min_by_key(|(at, rank, ..)| (*at, *rank));
        first.map(|(at, rank, list, what)| ((at, rank, 0), list, what))
    }

    /// Whether a decision caused the next transition of its handoff.
    fn is_next(&self, decision: &Decision) -> bool {
        let at = (decision.id.number() as usize).saturating_sub(1);
        let record = self.records.get(at);
        let next = record.and_then(|record| record.transitions.get(self.next[at]));
        next.is_some_and(|next| decides(decision, &decision.id, next))
    }
}

/// Whether a decision caused a transition of a handoff, in the same step.
fn decides(decision: &Decision, id: &HandoffId, transition: &Transition) -> bool {
    let may = !matches!(
        transition.event,
        None | Some(
            Event::Fail
                | Event::Expire
                | Event::Block
                | Event::Claim
                | Event::TakeOver
                | Event::Release
        )
    );
    may && decision.id == *id && decision.at == transition.at && decision.by == transition.by
}

/// The rank of a transition among steps of the same second: remarks come after those that stop
/// work, and before those that resume it.
fn rank(event: Option<Event>) -> u8 {
    match event {
        Some(Event::Retry | Event::Redrive | Event::Reassign | Event::Answer) => 4,
        _ => 1,
    }
}
