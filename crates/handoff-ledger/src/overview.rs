//! An agent's overview: its work, its queue, and what it is notified of.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId};
use handoff_model::claim_queue::hindrance;
use handoff_model::open_entry::{Stamp, Standing};
use handoff_model::planner::Holder;
use handoff_model::{OpenEntry, Record, layout};
use handoff_protocol::{Need, Protocol};

use super::attention::of_record;
use super::claim_queue::Budgets;
use super::error::LedgerError;
use super::snapshot::{Listed, Snapshot};
use super::turns::Turns;
use handoff_model::view::needs::{
    Attention, ENDING, hears_of_others, is_limited, patience, sorted,
};

/// An agent's open handoffs and notifications, as far as they were read.
#[derive(Debug, Default)]
pub struct Overview {
    /// The handoffs that this worker works on, the oldest first.
    pub held: Bucket,
    /// The handoffs that other workers of the agent work on.
    pub held_by_others: Bucket,
    /// The handoffs it can claim now, the most urgent first, then the oldest.
    pub waiting: Bucket,
    /// The handoffs it can't claim or continue yet, because of other handoffs, a pause, a budget or
    /// the order of merges.
    pub later: Bucket,
    /// Its own handoffs that failed or are blocked or dead.
    pub stuck: Bucket,
    /// Other agents' handoffs that failed or are blocked or dead, and about which it decides.
    pub to_decide: Bucket,
    /// What it is notified of, the most urgent first.
    pub attention: Vec<Attention>,
    /// The time of the next change without a step.
    pub next_change: Option<Moment>,
    /// The number of handoffs that may need its attention and were not read.
    pub unread: usize,
    /// The number of handoffs in the buckets up to and including `after`; `None` if no bucket has
    /// it.
    pub skipped: Option<usize>,
}

/// Handoffs of one kind: their number, and the first records.
#[derive(Debug, Default)]
pub struct Bucket {
    /// The number of handoffs.
    pub count: usize,
    /// The first records.
    pub first: Vec<Record>,
}

/// Limits on reading for an overview.
#[derive(Clone, Copy, Debug)]
pub struct OverviewLimits<'a> {
    /// The maximum number of records to read to see whether they need attention.
    pub records: usize,
    /// The maximum number of records in each bucket.
    pub each: usize,
    /// The handoff after which the buckets begin.
    pub after: Option<&'a HandoffId>,
}

impl OverviewLimits<'_> {
    /// Reads everything.
    pub const ALL: Self = Self {
        records: usize::MAX,
        each: usize::MAX,
        after: None,
    };
}

/// Builds an agent's overview. Reads only the tip, within the limits; the entries' names tell what
/// to read.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn overview(
    tip: &Snapshot<'_>,
    who: Holder<'_>,
    protocols: &[&Protocol],
    now: Moment,
    limits: OverviewLimits<'_>,
) -> Result<Overview, LedgerError> {
    let mut viewer = Overviewer {
        tip,
        who,
        known: protocols.iter().map(|p| (p.name(), *p)).collect(),
        now,
        limits,
        skipped: 0,
        read: 0,
        overview: Overview {
            skipped: limits.after.is_none().then_some(0),
            ..Overview::default()
        },
    };
    let (mut own, mut others) = (viewer.own()?, Vec::new());
    let everywhere = viewer.hears_of_others();
    let agents = if everywhere {
        tip.agents_in(layout::AWAITING)?
    } else {
        vec![who.agent.clone()]
    };
    let mut awaiting = Vec::new();
    for agent in agents {
        for listed in tip.listed_with(layout::AWAITING, &agent)? {
            // During a halt nothing can be claimed; what else is needed can be done.
            if !tip.is_paused_for(listed.id.issue(), &agent)? {
                awaiting.push(listed);
            }
        }
    }
    // An open handoff that awaits a person is judged once.
    let awaits: HashSet<&HandoffId> = awaiting.iter().map(|listed| &listed.id).collect();
    if everywhere {
        for agent in tip.agents_in(layout::OPEN)? {
            if agent != *who.agent {
                others.extend(viewer.candidates(&agent)?);
            }
        }
    }
    // Its own handoffs come first, so that the read limit does not cut them off.
    for candidates in [&mut own, &mut others] {
        candidates.sort_by(|a, b| a.id.cmp(&b.id));
        for listed in candidates.iter().filter(|one| !awaits.contains(&one.id)) {
            viewer.judge(listed, None)?;
        }
    }
    for listed in &awaiting {
        viewer.judge(listed, Some(&listed.to))?;
    }
    let mut overview = viewer.overview;
    overview.attention = sorted(overview.attention);
    Ok(overview)
}

/// One of an overview's buckets.
type BucketOf = fn(&mut Overview) -> &mut Bucket;

const HELD: BucketOf = |overview| &mut overview.held;
const HELD_BY_OTHERS: BucketOf = |overview| &mut overview.held_by_others;
const WAITING: BucketOf = |overview| &mut overview.waiting;
const LATER: BucketOf = |overview| &mut overview.later;
const STUCK: BucketOf = |overview| &mut overview.stuck;
const TO_DECIDE: BucketOf = |overview| &mut overview.to_decide;

/// An overview under construction.
struct Overviewer<'a, 'r> {
    tip: &'a Snapshot<'r>,
    who: Holder<'a>,
    known: HashMap<&'a str, &'a Protocol>,
    now: Moment,
    limits: OverviewLimits<'a>,
    /// The number of handoffs in the buckets so far, until the first one to show.
    skipped: usize,
    /// The number of records read to see whether they need attention.
    read: usize,
    overview: Overview,
}

impl Overviewer<'_, '_> {
    fn hears_of_others(&self) -> bool {
        let mut protocols = self.known.values();
        protocols.any(|protocol| hears_of_others(protocol, self.who.agent))
    }

    /// Whether a pause hides an open handoff; one of more than its issue does not hide what is stuck.
    fn holds_back(&self, entry: &OpenEntry, agent: &AgentName) -> Result<bool, LedgerError> {
        let key = entry.id.issue();
        match entry.standing {
            Standing::Failed | Standing::Blocked | Standing::Dead => {
                self.tip.is_paused_for(key, agent)
            }
            _ => self.tip.holds_back(key, agent),
        }
    }

    /// Sorts the agent's own handoffs into the overview's buckets. Returns those that may need
    /// attention.
    fn own(&mut self) -> Result<Vec<Listed>, LedgerError> {
        let mut candidates = Vec::new();
        let mut held = Vec::new();
        let budgets = Budgets::new(self.tip, self.now);
        let turns = Turns::new(self.tip, self.who.agent, self.now);
        let mut buckets: [Vec<(usize, OpenEntry, Listed)>; 3] = Default::default();
        let [waiting, later, stuck] = &mut buckets;
        let now = Stamp::of(self.now);
        for entry in self.tip.open_with(self.who.agent)?.from("") {
            let (entry, listed) = entry?;
            if self.holds_back(&entry, self.who.agent)? {
                // Held work continues; nothing else is listed.
                if entry.standing == Standing::Held {
                    held.push((entry, listed));
                }
                continue;
            }
            if self.may_need(&entry) {
                candidates.push(listed.clone());
            }
            let bucket = match entry.standing {
                Standing::Held => {
                    held.push((entry, listed));
                    continue;
                }
                Standing::Parted => &mut *later,
                Standing::Failed | Standing::Blocked | Standing::Dead => &mut *stuck,
                _ if entry.due.as_ref().is_some_and(|due| *due <= now) => continue,
                Standing::Waits => &mut *later,
                Standing::Paused
                    if hindrance(&self.tip.open_record(&listed)?, self.now).is_some() =>
                {
                    &mut *later
                }
                Standing::Ready | Standing::Answered | Standing::Paused => {
                    match budgets.spent(self.who.agent, &entry)? {
                        None if turns.before(&entry.id, &entry.protocol)?.is_none() => {
                            &mut *waiting
                        }
                        _ => &mut *later,
                    }
                }
            };
            let protocol = self.known.get(entry.protocol.as_str());
            let rank = protocol.map_or(0, |protocol| entry.rank(protocol));
            bucket.push((rank, entry, listed));
        }
        held.sort_by(|(a, _), (b, _)| (&a.sent, &a.id).cmp(&(&b.sent, &b.id)));
        // Only the records show which worker holds them.
        let mut records = Vec::with_capacity(held.len());
        for (_, listed) in held {
            records.push(self.tip.open_record(&listed)?);
        }
        let who = self.who;
        let (own, others): (Vec<_>, Vec<_>) = records.into_iter().partition(|r| who.holds(r));
        for (bucket, records) in [(HELD, own), (HELD_BY_OTHERS, others)] {
            for record in records {
                if self.counts(bucket, &record.id) {
                    bucket(&mut self.overview).first.push(record);
                }
            }
        }
        for (bucket, mut places) in [WAITING, LATER, STUCK].into_iter().zip(buckets) {
            let key = |(rank, entry, _): &(usize, OpenEntry, Listed)| {
                (*rank, entry.sent.clone(), entry.id.clone())
            };
            places.sort_by_cached_key(key);
            for (_, _, listed) in &places {
                if self.counts(bucket, &listed.id) {
                    let record = self.tip.open_record(listed)?;
                    bucket(&mut self.overview).first.push(record);
                }
            }
        }
        Ok(candidates)
    }

    /// Counts a handoff in a bucket, and returns whether its record belongs to the first ones.
    fn counts(&mut self, bucket: BucketOf, id: &HandoffId) -> bool {
        let found = bucket(&mut self.overview);
        found.count += 1;
        let has_room = found.first.len() < self.limits.each;
        if self.overview.skipped.is_some() {
            return has_room;
        }
        self.skipped += 1;
        if self.limits.after == Some(id) {
            self.overview.skipped = Some(self.skipped);
        }
        false
    }

    /// Another agent's handoffs that may need this one's attention.
    fn candidates(&mut self, agent: &AgentName) -> Result<Vec<Listed>, LedgerError> {
        let mut candidates = Vec::new();
        for entry in self.tip.open_with(agent)?.from("") {
            let (entry, listed) = entry?;
            if !self.holds_back(&entry, agent)? && self.may_need(&entry) {
                candidates.push(listed);
            }
        }
        Ok(candidates)
    }

    /// Whether the record may need attention. Otherwise, notes when it may.
    fn may_need(&mut self, entry: &OpenEntry) -> bool {
        let Some(protocol) = self.known.get(entry.protocol.as_str()) else {
            return false;
        };
        let due = entry.due.as_ref().and_then(Stamp::moment);
        let pending = entry.standing.is_pending();
        // When an immediately claimable handoff has been unclaimed for too long.
        let late = || Some(entry.sent.moment()? + patience(protocol));
        let at = due.or_else(|| late().filter(|_| pending));
        let ahead = at.filter(|at| *at > self.now && (pending || entry.standing == Standing::Held));
        self.overview.next_change = [self.overview.next_change, ahead]
            .into_iter()
            .flatten()
            .min();
        match entry.standing {
            _ if is_limited(protocol) => true,
            Standing::Failed | Standing::Blocked | Standing::Dead => true,
            Standing::Answered | Standing::Waits => true,
            Standing::Held => at.is_some_and(|at| at <= self.now + TimeDelta::seconds(ENDING)),
            Standing::Parted => false,
            Standing::Ready | Standing::Paused => at.is_some_and(|at| at <= self.now),
        }
    }

    /// Adds the attention that a handoff needs, if the agent is notified of it.
    fn judge(&mut self, listed: &Listed, awaited: Option<&AgentName>) -> Result<(), LedgerError> {
        if self.read >= self.limits.records {
            self.overview.unread += 1;
            return Ok(());
        }
        self.read += 1;
        let record = self.tip.open_record(listed)?;
        let Some(protocol) = self.known.get(record.protocol.as_str()) else {
            return Ok(());
        };
        let found = of_record(self.tip, &record, awaited, protocol, self.now)?;
        // Only the worker that holds a lease is notified of its end.
        let is_told = |found: &Attention| {
            let ends = found.need == Need::LeaseEnding && found.turn == *self.who.agent;
            found.is_told(self.who.agent) && (!ends || self.who.holds(&record))
        };
        let Some(found) = found.filter(is_told) else {
            return Ok(());
        };
        let stuck = [Need::Dead, Need::Failed, Need::Blocked];
        // Others are told of it, too.
        let is_theirs = found.turn == *self.who.agent && record.to != *self.who.agent;
        if stuck.contains(&found.need) && is_theirs && self.counts(TO_DECIDE, &record.id) {
            self.overview.to_decide.first.push(record);
        }
        self.overview.attention.push(found);
        Ok(())
    }
}
