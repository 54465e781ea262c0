//! An agent's overview: its work, its queue, and what it is told of.

use std::collections::HashMap;

use handoff_base::ids::AgentName;
use handoff_base::{Moment, ObjectId};
use handoff_git::Listing;
use handoff_model::claim_queue::{Brief, ClaimVerdict};
use handoff_model::planner::Holder;
use handoff_model::{Record, layout};
use handoff_protocol::{Need, Protocol, State};

use super::attention::{Attention, ENDING, hears_of_others, of_record, patience, sorted};
use super::claim_queue::{Noted, Notes};
use super::error::LedgerError;
use super::snapshot::Snapshot;

/// An agent's open handoffs and what it is told of, as far as they were read.
#[derive(Debug, Default)]
pub struct Overview {
    /// The handoffs that this worker works on, the oldest first.
    pub held: Bucket,
    /// The handoffs that other workers of the agent work on.
    pub held_by_others: Bucket,
    /// The handoffs it can claim now, the most urgent first, then the oldest.
    pub waiting: Bucket,
    /// The handoffs it can't claim or go on with yet, because of other handoffs or a pause.
    pub later: Bucket,
    /// Its own handoffs that failed or are blocked or dead.
    pub stuck: Bucket,
    /// Other agents' handoffs that failed or are blocked or dead and that it decides about.
    pub to_decide: Bucket,
    /// What it is told of, the most urgent first.
    pub attention: Vec<Attention>,
    /// When more may need it if nobody does anything.
    pub next_change: Option<Moment>,
    /// The number of handoffs that were not read, and may need it.
    pub unread: usize,
}

/// Handoffs of one kind: their number, and the first records.
#[derive(Debug, Default)]
pub struct Bucket {
    /// The number of handoffs.
    pub count: usize,
    /// The first records.
    pub first: Vec<Record>,
}

/// How much an overview reads.
#[derive(Clone, Copy, Debug)]
pub struct OverviewLimits {
    /// The maximum number of records to read that are not in the notes.
    pub records: usize,
    /// The maximum number of records in each bucket.
    pub each: usize,
}

impl OverviewLimits {
    /// Reads everything.
    pub const ALL: Self = Self {
        records: usize::MAX,
        each: usize::MAX,
    };
}

/// Builds an agent's overview. Reads only the tip, and no more of it than `limits` allows.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn overview(
    tip: &Snapshot<'_>,
    who: Holder<'_>,
    protocols: &[&Protocol],
    now: Moment,
    limits: OverviewLimits,
) -> Result<Overview, LedgerError> {
    let mut notes = Notes::read(tip.repository());
    let sorted = sort(tip, who, protocols, now, limits, &mut notes)?;
    // Notes only save reading: the output comes from the records.
    match sorted {
        Some(overview) => Ok(overview),
        None => {
            notes.forget();
            let sorted = sort(tip, who, protocols, now, limits, &mut notes)?;
            Ok(sorted.unwrap_or_default())
        }
    }
}

/// The sort key of an entry in its bucket, and its blob.
type Place<'n> = ((usize, i64, &'n str), ObjectId);

/// The handoffs that the agent works on, those in its other buckets, and what may need somebody.
type Places<'n> = (
    Vec<Place<'n>>,
    [Vec<Place<'n>>; 3],
    Vec<(&'n str, ObjectId)>,
);

/// What an overview is built for.
struct Overviewer<'a, 'r> {
    tip: &'a Snapshot<'r>,
    who: Holder<'a>,
    known: HashMap<&'a str, &'a Protocol>,
    now: Moment,
    limits: OverviewLimits,
    /// The number of records read that are not in the notes.
    read: usize,
}

/// The overview; `None` if a record contradicts the notes.
fn sort(
    tip: &Snapshot<'_>,
    who: Holder<'_>,
    protocols: &[&Protocol],
    now: Moment,
    limits: OverviewLimits,
    notes: &mut Notes,
) -> Result<Option<Overview>, LedgerError> {
    let mut viewer = Overviewer {
        tip,
        who,
        known: protocols.iter().map(|p| (p.name(), *p)).collect(),
        now,
        limits,
        read: 0,
    };
    let open = tip.open_listing()?;
    let mut overview = Overview::default();
    let (held, buckets, candidates) = viewer.buckets(&open, notes, &mut overview)?;
    // Only the records show which worker holds them.
    for ((_, _, name), blob) in &held {
        let record = tip.record_in(name, *blob)?;
        if !notes.agrees(*blob, &record) {
            return Ok(None);
        }
        let bucket = if who.holds(&record) {
            &mut overview.held
        } else {
            &mut overview.held_by_others
        };
        bucket.count += 1;
        if bucket.first.len() < limits.each {
            bucket.first.push(record);
        }
    }
    let counted = [
        &mut overview.waiting,
        &mut overview.later,
        &mut overview.stuck,
    ];
    for (counted, places) in counted.into_iter().zip(&buckets) {
        counted.count = places.len();
        for ((_, _, name), blob) in places.iter().take(limits.each) {
            let record = tip.record_in(name, *blob)?;
            if !notes.agrees(*blob, &record) {
                return Ok(None);
            }
            counted.first.push(record);
        }
    }
    for (name, blob) in candidates {
        viewer.judge(&mut overview, None, || tip.record_in(name, blob))?;
    }
    let everywhere = viewer.hears_of_others();
    for entry in tip.awaiting()? {
        if everywhere || entry.to == *who.agent {
            viewer.judge(&mut overview, Some(&entry.to), || tip.open_record(&entry))?;
        }
    }
    overview.attention = sorted(overview.attention);
    Ok(Some(overview))
}

impl<'a> Overviewer<'a, '_> {
    fn hears_of_others(&self) -> bool {
        let mut protocols = self.known.values();
        protocols.any(|protocol| hears_of_others(protocol, self.who.agent))
    }

    /// Sorts the agent's open handoffs, and finds those of anybody that may need it.
    fn buckets<'n>(
        &mut self,
        open: &'n Listing,
        notes: &mut Notes,
        overview: &mut Overview,
    ) -> Result<Places<'n>, LedgerError> {
        let (mut held, mut candidates) = (Vec::new(), Vec::new());
        let mut buckets: [Vec<Place<'n>>; 3] = Default::default();
        let [waiting, later, stuck] = &mut buckets;
        // Its own handoffs come first, so that the read limit does not cut them off.
        let own = |name: &str| layout::open_with(name, self.who.agent).is_some();
        let everywhere = self.hears_of_others();
        let all = [true, false].into_iter().filter(|mine| *mine || everywhere);
        let all = all.flat_map(|mine| open.named().filter(move |(name, _)| own(name) == mine));
        for (name, blob) in all {
            if !notes.knows(blob) {
                if self.read == self.limits.records {
                    overview.unread += 1;
                    continue;
                }
                self.read += 1;
            }
            let noted = notes.brief(self.tip, name, blob)?;
            let brief = notes.noted(noted.brief);
            let protocol = self.known.get(brief.protocol.as_str()).copied();
            let changes = protocol.and_then(|protocol| self.changes_at(brief, noted, protocol));
            overview.next_change = [overview.next_change, changes].into_iter().flatten().min();
            if protocol.is_some_and(|protocol| self.may_need(brief, noted, protocol)) {
                candidates.push((name, blob));
            }
            let bucket = match (own(name), brief.state) {
                (false, _) => continue,
                // Its holder waits for the parts of its task.
                (_, State::InProgress) if brief.waits_for.is_some() => &mut *later,
                (_, State::InProgress) => &mut held,
                (_, State::Failed | State::Blocked | State::Dead) => &mut *stuck,
                _ => match brief.hindrance(self.now) {
                    None => &mut *waiting,
                    Some(ClaimVerdict::Waits | ClaimVerdict::Later(_)) => &mut *later,
                    Some(_) => continue,
                },
            };
            let rank = protocol.map_or(0, |p| p.priority_rank(brief.priority.as_deref()));
            bucket.push(((rank, noted.sent, name), blob));
        }
        held.sort_by_key(|((_, sent, name), _)| (*sent, *name));
        for bucket in [waiting, later, stuck] {
            bucket.sort();
        }
        Ok((held, buckets, candidates))
    }

    /// Whether the record may show that somebody is needed.
    fn may_need(&self, brief: &Brief, noted: Noted, protocol: &Protocol) -> bool {
        let now = self.now.timestamp_millis();
        match brief.state {
            State::Failed | State::Blocked | State::Dead => true,
            State::InProgress => noted.due.is_some_and(|due| due <= now + 1000 * ENDING),
            State::Pending => {
                let due = noted.due.unwrap_or_else(|| late(noted, protocol));
                brief.answered || brief.waits_for.is_some() || due <= now
            }
            State::Completed | State::Rejected | State::Cancelled => false,
        }
    }

    /// When a handoff may begin to need somebody if nobody does anything.
    fn changes_at(&self, brief: &Brief, noted: Noted, protocol: &Protocol) -> Option<Moment> {
        let at = match brief.state {
            State::InProgress => noted.due?,
            State::Pending => noted.due.unwrap_or_else(|| late(noted, protocol)),
            _ => return None,
        };
        Moment::from_timestamp_millis(at).filter(|at| *at > self.now)
    }

    /// Adds what a handoff needs, if the agent is told of it.
    fn judge(
        &mut self,
        overview: &mut Overview,
        awaited: Option<&AgentName>,
        read: impl FnOnce() -> Result<Record, LedgerError>,
    ) -> Result<(), LedgerError> {
        if self.read >= self.limits.records {
            overview.unread += 1;
            return Ok(());
        }
        self.read += 1;
        let record = read()?;
        let Some(protocol) = self.known.get(record.protocol.as_str()) else {
            return Ok(());
        };
        let found = of_record(self.tip, &record, awaited, protocol, self.now)?;
        // A lease that is about to end is for the worker that has it.
        let is_told = |found: &Attention| {
            let ends = found.need == Need::LeaseEnding && found.turn == *self.who.agent;
            found.is_told(self.who.agent) && (!ends || self.who.holds(&record))
        };
        let Some(found) = found.filter(is_told) else {
            return Ok(());
        };
        let stuck = [Need::Dead, Need::Failed, Need::Blocked];
        if stuck.contains(&found.need) && record.to != *self.who.agent {
            overview.to_decide.count += 1;
            if overview.to_decide.first.len() < self.limits.each {
                overview.to_decide.first.push(record);
            }
        }
        overview.attention.push(found);
        Ok(())
    }
}

/// When a handoff has stayed unclaimed for too long, if it could be claimed at once.
fn late(noted: Noted, protocol: &Protocol) -> i64 {
    noted
        .sent
        .saturating_add(patience(protocol).num_milliseconds())
}
