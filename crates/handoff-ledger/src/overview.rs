//! An agent's overview: its work, its queue, and the handoffs that need its decision.

use std::collections::HashMap;

use handoff_base::ids::AgentName;
use handoff_base::{Moment, ObjectId};
use handoff_model::claim_queue::ClaimVerdict;
use handoff_model::{Record, layout};
use handoff_protocol::{AgentKind, Protocol, State, Style};

use super::claim_queue::Notes;
use super::error::LedgerError;
use super::snapshot::Snapshot;

/// An agent's open handoffs, as far as they were read.
#[derive(Debug, Default)]
pub struct Overview {
    /// The handoffs it works on, the oldest first.
    pub held: Bucket,
    /// The handoffs it can claim now, the most urgent first, then the oldest.
    pub waiting: Bucket,
    /// The handoffs it can't claim yet, because of other handoffs or a pause.
    pub later: Bucket,
    /// Its own handoffs that failed or are blocked or dead.
    pub stuck: Bucket,
    /// Other agents' handoffs that failed or are blocked or dead and that it decides about.
    pub to_decide: Bucket,
    /// The number of open handoffs that were not read.
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

/// Builds an agent's overview. Reads only the tip, and no more of it than `limits` allows.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn overview(
    tip: &Snapshot<'_>,
    agent: &AgentName,
    protocols: &[&Protocol],
    now: Moment,
    limits: OverviewLimits,
) -> Result<Overview, LedgerError> {
    let mut notes = Notes::read(tip.repository());
    let sorted = sort(tip, agent, protocols, now, limits, &mut notes)?;
    // Notes only save reading: the output comes from the records.
    match sorted {
        Some(overview) => Ok(overview),
        None => {
            notes.forget();
            let sorted = sort(tip, agent, protocols, now, limits, &mut notes)?;
            Ok(sorted.unwrap_or_default())
        }
    }
}

/// The sort key of an entry in its bucket, and its blob.
type Place<'n> = ((usize, i64, &'n str), ObjectId);

/// The overview; `None` if a record contradicts the notes.
fn sort(
    tip: &Snapshot<'_>,
    agent: &AgentName,
    protocols: &[&Protocol],
    now: Moment,
    limits: OverviewLimits,
    notes: &mut Notes,
) -> Result<Option<Overview>, LedgerError> {
    // A deciding agent sees every handoff that needs attention; in a call, that is the requester.
    let leads = |p: &Protocol| p.is_kind(agent.as_str(), AgentKind::Orchestrator);
    let asks = |p: &Protocol| p.definition().style == Style::Call;
    let everywhere = protocols.iter().any(|p| leads(p) || asks(p));
    let known: HashMap<&str, &Protocol> = protocols.iter().map(|p| (p.name(), *p)).collect();
    let open = tip.open_listing()?;
    let mut buckets: [Vec<Place<'_>>; 5] = Default::default();
    let [held, waiting, later, stuck, others] = &mut buckets;
    let (mut read, mut unread) = (0, 0);
    // Its own handoffs come first, so that the read limit does not cut them off.
    let own = |name: &str| layout::open_with(name, agent).is_some();
    let all = [true, false].into_iter().filter(|mine| *mine || everywhere);
    let all = all.flat_map(|mine| open.named().filter(move |(name, _)| own(name) == mine));
    for (name, blob) in all {
        if !notes.knows(blob) {
            if read == limits.records {
                unread += 1;
                continue;
            }
            read += 1;
        }
        let (brief, sent) = notes.brief(tip, name, blob)?;
        let brief = notes.noted(brief);
        let is_stuck = matches!(brief.state, State::Failed | State::Blocked | State::Dead);
        let bucket = match (own(name), brief.state) {
            (false, _) if !is_stuck => continue,
            (false, _) => &mut *others,
            (_, State::InProgress) => &mut *held,
            _ if is_stuck => &mut *stuck,
            _ => match brief.hindrance(now) {
                None => &mut *waiting,
                Some(ClaimVerdict::Waits | ClaimVerdict::Later(_)) => &mut *later,
                Some(_) => continue,
            },
        };
        let protocol = known.get(brief.protocol.as_str());
        let rank = protocol.map_or(0, |p| p.priority_rank(brief.priority.as_deref()));
        bucket.push(((rank, sent, name), blob));
    }
    held.sort_by_key(|((_, sent, name), _)| (*sent, *name));
    for bucket in [&mut *waiting, later, stuck, &mut *others] {
        bucket.sort();
    }
    let mut overview = Overview {
        unread,
        ..Overview::default()
    };
    let counted = [
        &mut overview.held,
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
    // Only the records show which of the others are for this agent.
    for ((_, _, name), blob) in &buckets[4] {
        if read == limits.records {
            overview.unread += 1;
            continue;
        }
        read += 1;
        let record = tip.record_in(name, *blob)?;
        let own = |p: &&Protocol| leads(p) || asks(p) && record.from == *agent;
        if known.get(record.protocol.as_str()).is_some_and(own) {
            overview.to_decide.count += 1;
            if overview.to_decide.first.len() < limits.each {
                overview.to_decide.first.push(record);
            }
        }
    }
    Ok(Some(overview))
}
