//! An agent's queue: chooses among the handoffs that wait for it.

use std::collections::HashMap;

use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::{Moment, ObjectId};
use handoff_git::{ById, Listing, Repository, Scratch};
use handoff_model::claim_queue::{Brief, ClaimVerdict, sent_at};
use handoff_model::{Claimable, Record, Refusal, layout};
use serde::{Deserialize, Serialize};

use super::error::LedgerError;
use super::snapshot::{Rules, Snapshot};

/// Chooses among the handoffs that wait for an agent at this moment.
///
/// # Errors
/// [`LedgerError`] if something can't be read, or if no active protocol knows the agent.
pub fn claimable(
    tip: &Snapshot<'_>,
    agent: &AgentName,
    now: Moment,
) -> Result<Claimable, LedgerError> {
    choose(tip, agent, now, &mut Notes::read(tip.repository())).map(|(ready, _)| ready)
}

/// Like [`claimable`], and saves notes for the next choice.
pub(super) fn claimable_noting(
    tip: &Snapshot<'_>,
    agent: &AgentName,
    now: Moment,
) -> Result<Claimable, LedgerError> {
    let mut notes = Notes::read(tip.repository());
    let (ready, open) = choose(tip, agent, now, &mut notes)?;
    notes.leave(&open);
    Ok(ready)
}

fn choose(
    tip: &Snapshot<'_>,
    agent: &AgentName,
    now: Moment,
    notes: &mut Notes,
) -> Result<(Claimable, Listing), LedgerError> {
    let open = tip.open_listing()?;
    let agent = tip.receiver(&open, agent)?;
    let choice = Choice {
        tip,
        open: &open,
        agent: &agent,
        now,
    };
    let mut found = choice.make(notes)?;
    // Notes only save reading: both results are confirmed by the records.
    let confirmed = match &found.first {
        Some(id) => choice.confirm(notes, id)?,
        None => notes.used == 0,
    };
    if !confirmed {
        notes.forget();
        found = choice.make(notes)?;
    }
    if found == Claimable::default() {
        let mut known = Vec::new();
        for name in tip.protocols()? {
            known.push(tip.rules(&name)?);
        }
        let knows = |rules: &Rules<'_>| rules.protocol().agent(agent.as_str()).is_some();
        if let Some(first) = known.first().filter(|_| !known.iter().any(knows)) {
            return Err(Refusal::unknown_agent(&agent, first.protocol()).into());
        }
    }
    Ok((found, open))
}

struct Choice<'a, 'r> {
    tip: &'a Snapshot<'r>,
    open: &'a Listing,
    agent: &'a AgentName,
    now: Moment,
}

impl Choice<'_, '_> {
    fn make(&self, notes: &mut Notes) -> Result<Claimable, LedgerError> {
        let mut verdicts: Vec<Option<ClaimVerdict>> = Vec::new();
        let mut best: Option<(usize, i64, &str)> = None;
        let mut later: Option<(Moment, &str)> = None;
        let mut waits: Option<(&str, usize)> = None;
        let mut late: Option<&str> = None;
        for (name, blob) in self.open.named() {
            let Some(id) = layout::open_with(name, self.agent) else {
                continue;
            };
            let Noted { brief, sent, .. } = notes.brief(self.tip, name, blob)?;
            if verdicts.len() <= brief {
                verdicts.resize(brief + 1, None);
            }
            let verdict = match verdicts[brief] {
                Some(verdict) => verdict,
                None => *verdicts[brief].insert(self.judge(&notes.briefs[brief])?),
            };
            match verdict {
                ClaimVerdict::Claimable(rank) => {
                    // Ties in age are broken by id.
                    let is_better = best.is_none_or(|(best_rank, best_sent, best_id)| {
                        let order = (rank, sent).cmp(&(best_rank, best_sent));
                        order.then_with(|| by_id(id, best_id)).is_lt()
                    });
                    best = if is_better {
                        Some((rank, sent, id))
                    } else {
                        best
                    };
                }
                ClaimVerdict::Waits if waits.is_none_or(|(first, _)| by_id(id, first).is_lt()) => {
                    waits = Some((id, brief));
                }
                ClaimVerdict::Later(at) if later.is_none_or(|(first, _)| at < first) => {
                    later = Some((at, id));
                }
                ClaimVerdict::Late if late.is_none_or(|first| by_id(id, first).is_lt()) => {
                    late = Some(id);
                }
                ClaimVerdict::Waits
                | ClaimVerdict::Later(_)
                | ClaimVerdict::Late
                | ClaimVerdict::No => {}
            }
        }
        let id = |text: &str| text.parse::<HandoffId>().ok();
        Ok(Claimable {
            first: best.and_then(|(.., text)| id(text)),
            waits: waits.and_then(|(text, brief)| {
                Some((id(text)?, notes.briefs[brief].waits_for.clone()?))
            }),
            later: later.and_then(|(at, text)| Some((at, id(text)?))),
            late: late.and_then(id),
        })
    }

    fn judge(&self, brief: &Brief) -> Result<ClaimVerdict, LedgerError> {
        if let Some(verdict) = brief.hindrance(self.now) {
            return Ok(verdict);
        }
        let rules = self.tip.rules(&brief.protocol)?;
        let rank = rules.protocol().priority_rank(brief.priority.as_deref());
        Ok(ClaimVerdict::Claimable(rank))
    }

    /// Whether a handoff's record agrees with its note.
    fn confirm(&self, notes: &Notes, id: &HandoffId) -> Result<bool, LedgerError> {
        let name = layout::open_name(id, self.agent);
        let Some(blob) = self.open.find(&name)? else {
            return Ok(false);
        };
        let record = self.tip.record_in(&name, blob)?;
        Ok(notes.agrees(blob, &record))
    }
}

fn by_id(a: &str, b: &str) -> std::cmp::Ordering {
    let id = |text: &str| text.parse::<HandoffId>().ok();
    id(a).cmp(&id(b))
}

/// Data about records that were read before, by the ids of their blobs, so that it can't be
/// outdated. It only saves time: it may be lost or wrong at any time.
pub(super) struct Notes {
    file: Scratch,
    briefs: Vec<Brief>,
    known: ById<Noted>,
    /// The index of each brief, filled once one is added.
    places: HashMap<Brief, usize>,
    /// The number of blobs that were read now.
    added: usize,
    /// The number of blobs that were already known.
    used: usize,
}

/// What is noted about a record.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    /// The index of its brief.
    pub(super) brief: usize,
    /// When it was sent, in milliseconds since 1970.
    pub(super) sent: i64,
    /// When its lease ends, or when it must be claimed, likewise.
    pub(super) due: Option<i64>,
}

/// The name of the notes file; a new format gets a new name.
const FILE: &str = "open-2.json";

/// How many new blobs make rewriting the file worthwhile.
const WORTH: usize = 16;

/// The stored form of the notes.
#[derive(Serialize, Deserialize)]
struct Left<T> {
    briefs: Vec<Brief>,
    /// The blob, the index of its brief, the time of sending, and the end of its lease.
    known: Vec<(T, usize, i64, Option<i64>)>,
}

/// When a record's lease ends, or when it must be claimed, in milliseconds since 1970.
fn due(record: &Record) -> Option<i64> {
    record.expires_at().map(|end| end.timestamp_millis())
}

impl Notes {
    pub(super) fn read(repository: &Repository) -> Self {
        let file = Scratch::new(repository.common_dir(), FILE);
        let bytes = file.read().unwrap_or_default();
        let mut notes = Self {
            file,
            briefs: Vec::new(),
            known: ById::default(),
            places: HashMap::new(),
            added: 0,
            used: 0,
        };
        if let Ok(left) = serde_json::from_slice::<Left<&str>>(&bytes) {
            notes.briefs = left.briefs;
            let kept = left
                .known
                .into_iter()
                .filter_map(|(blob, brief, sent, due)| {
                    let is_there = blob.len() == 40 && brief < notes.briefs.len();
                    let noted = Noted { brief, sent, due };
                    Some((is_there.then(|| blob.parse().ok())??, noted))
                });
            notes.known = kept.collect();
        }
        notes
    }

    /// What is noted about a record.
    pub(super) fn brief(
        &mut self,
        tip: &Snapshot<'_>,
        name: &str,
        blob: ObjectId,
    ) -> Result<Noted, LedgerError> {
        if let Some(&known) = self.known.get(&blob) {
            self.used += 1;
            return Ok(known);
        }
        let record = tip.record_in(name, blob)?;
        if self.places.is_empty() {
            let all = self.briefs.iter().cloned().enumerate();
            self.places = all.map(|(place, brief)| (brief, place)).collect();
        }
        let brief = Brief::of(&record);
        let place = *self.places.entry(brief).or_insert_with_key(|brief| {
            self.briefs.push(brief.clone());
            self.briefs.len() - 1
        });
        let known = Noted {
            brief: place,
            sent: sent_at(&record).unwrap_or_default(),
            due: due(&record),
        };
        self.known.insert(blob, known);
        self.added += 1;
        Ok(known)
    }

    /// Whether a record's brief is known without reading the record.
    pub(super) fn knows(&self, blob: ObjectId) -> bool {
        self.known.contains_key(&blob)
    }

    pub(super) fn noted(&self, place: usize) -> &Brief {
        &self.briefs[place]
    }

    /// Whether a record agrees with its note.
    pub(super) fn agrees(&self, blob: ObjectId, record: &Record) -> bool {
        let noted = self.known.get(&blob);
        noted.is_some_and(|noted| {
            self.briefs[noted.brief] == Brief::of(record)
                && Some(noted.sent) == sent_at(record)
                && noted.due == due(record)
        })
    }

    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.briefs.clear();
        self.places.clear();
        (self.added, self.used) = (0, 0);
    }

    /// Saves the notes about open handoffs for the next choice.
    fn leave(self, open: &Listing) {
        if self.added < WORTH {
            return;
        }
        let mut left = Left {
            briefs: Vec::new(),
            known: Vec::new(),
        };
        // The briefs of closed handoffs are dropped.
        let mut places: Vec<Option<usize>> = vec![None; self.briefs.len()];
        for (_, blob) in open.named() {
            if let Some(&Noted { brief, sent, due }) = self.known.get(&blob) {
                let place = *places[brief].get_or_insert_with(|| {
                    left.briefs.push(self.briefs[brief].clone());
                    left.briefs.len() - 1
                });
                left.known.push((blob.to_string(), place, sent, due));
            }
        }
        if let Ok(bytes) = serde_json::to_vec(&left) {
            // If saving fails, the records are read again next time.
            let _ = self.file.write(&bytes);
        }
    }
}
