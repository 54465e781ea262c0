//! Handoffs as rows of a table.

use handoff_base::Moment;
use handoff_model::{Record, overdue_text};
use handoff_protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::view::Look;

/// A handoff's state, with whether its time ran out or when it can be claimed.
fn status_text(record: &Record, look: &Look) -> String {
    let shown = look.state(record.state);
    match record.waits_until(look.now()) {
        _ if record.is_expired(look.now()) => {
            format!("{shown}, {}", look.urgent(overdue_text(record.state)))
        }
        Some(at) if look.is_for_terminal() => format!("{shown}, claimable {}", look.ago(at)),
        Some(at) => format!("{shown} from {}", look.ago(at)),
        None => shown,
    }
}

/// One handoff as a row of a table.
pub(crate) fn row(record: &Record, look: &Look) -> Vec<String> {
    let since = record.latest().map(|t| look.time(t.at));
    vec![
        look.id(&record.id),
        status_text(record, look),
        format!("{} {} {}", record.from, look.arrow(), record.to),
        look.cell(record.priority.as_deref().unwrap_or_default()),
        since.unwrap_or_default(),
        look.cell(&about(record)),
    ]
}

/// The subject of a handoff: why it needs attention, or else its summary.
fn about(record: &Record) -> String {
    let needs_reason = matches!(record.state, State::Failed | State::Blocked | State::Dead);
    let last = record.latest().filter(|_| needs_reason);
    let why = last.and_then(|t| {
        let failure = t.failure.as_ref().map(|f| f.message.clone());
        failure.or_else(|| t.reason.clone())
    });
    let text = why.unwrap_or_else(|| record.summary.clone());
    let text = match &record.task {
        Some(task) => format!("{}: {text}", task.id),
        None => text,
    };
    let waits = if record.state == State::Pending {
        &record.waits_for[..]
    } else {
        &[]
    };
    match waits {
        [] => text,
        [first, ..] => format!("waits for {first}: {text}"),
    }
}

pub(crate) fn table<'a>(handoffs: impl Iterator<Item = &'a Record>, look: &Look) -> String {
    let rows: Vec<Vec<String>> = handoffs.map(|record| row(record, look)).collect();
    look.table(&rows)
}

/// One handoff, with whether its time ran out.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Handoff")]
pub(crate) struct RecordView {
    #[serde(flatten)]
    pub(crate) record: Record,
    /// whether its lease, or the time to claim it, expired and nobody has recorded it yet
    expired: bool,
}

impl RecordView {
    /// These handoffs, at a moment.
    pub(crate) fn all(records: Vec<Record>, now: Moment) -> Vec<Self> {
        let view = |record: Record| Self {
            expired: record.is_expired(now),
            record,
        };
        records.into_iter().map(view).collect()
    }
}
