//! What others say about an issue while an agent works on it.

use handoff_base::Moment;

use crate::record::{Annotation, Issue, Record};

/// What others have noted or set on a claimed handoff's issue since it was claimed, and since a moment
/// up to which its holder was told: the requirements may have changed.
pub fn news<'i>(
    issue: &'i Issue,
    record: &Record,
    told: Option<Moment>,
) -> impl Iterator<Item = &'i Annotation> {
    let since = record.lease.as_ref().map(|lease| lease.since);
    let since = since.max(told).filter(|_| record.lease.is_some());
    let (key, to) = (record.id.clone(), record.to.clone());
    issue.annotations.iter().filter(move |note| {
        let is_about = note.id.as_ref().is_none_or(|id| *id == key);
        is_about && note.by != to && since.is_some_and(|since| note.at > since)
    })
}
