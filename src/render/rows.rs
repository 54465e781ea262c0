//! Handoffs as rows of a table.

use std::collections::BTreeMap;

use handoff_base::Moment;
use handoff_base::ids::{AgentName, IssueKey, WorkerId};
use handoff_base::text::one_line;
use handoff_model::{Handoff, Record, overdue_text};
use handoff_protocol::State;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;

use crate::view::Look;

/// The most columns of an agent's name in a row.
const NAME: usize = 30;

/// The most columns of a worker's id in a row.
const WORKER: usize = 24;

/// The most columns of a priority in a row.
const PRIORITY: usize = 12;

/// The most columns of a title that something follows.
const TITLE: usize = 36;

/// A handoff's state, with whether its time ran out or when it can be claimed.
fn status_text(record: &Record, look: &Look) -> String {
    let shown = look.state(record.state);
    match record.waits_until(look.now()) {
        _ if record.is_expired(look.now()) => {
            format!("{shown}, {}", look.urgent(overdue_text(record.state)))
        }
        Some(at) => format!("{shown}, claimable {}", look.relative(at)),
        None => shown,
    }
}

/// One handoff as a row of a table: its text is about this subject.
fn row(record: &Record, subject: &str, look: &Look) -> Vec<String> {
    let since = record.latest().map(|t| look.age(t.at));
    let cell = |text: &str, most: usize| look.cut(&look.cell(text), most);
    let name = |agent: &AgentName| cell(agent.as_str(), NAME);
    let (from, to) = (name(&record.from), name(&record.to));
    vec![
        look.id(&record.id),
        status_text(record, look),
        format!("{from} {} {to}", look.arrow()),
        cell(record.priority.as_deref().unwrap_or_default(), PRIORITY),
        since.unwrap_or_default(),
        look.cell(&about(record, subject, look)),
    ]
}

/// What a row says about a handoff: who works on it, the subject, the attempt, and why it is in its
/// state.
fn about(record: &Record, subject: &str, look: &Look) -> String {
    let attempt = attempt_text(record);
    let reason = record.reason();
    let mut text = match (record.state, &record.waits_for[..]) {
        (State::Pending, [first, ..]) => format!("waits for {first}: "),
        _ => String::new(),
    };
    if let Some(lease) = &record.lease {
        text += &format!("worker {}: ", look.cut(lease.worker.as_str(), WORKER));
    }
    // The worker that it was taken from reads it here.
    if let Some(why) = record.taken_over().and_then(|t| t.reason.as_ref()) {
        text += &format!("taken over, {}: ", one_line(why));
    }
    if let parts @ [_, ..] = &record.parts[..] {
        let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
        text += &format!("its parts run ({}): ", parts.join(", "));
    }
    if let Some(violation) = record.violation() {
        text += &format!("role violation, {violation}: ");
    }
    if let Some(task) = &record.task {
        text += &format!("{}: ", task.id);
    }
    // A reason that the title leaves no room for would be missed.
    let asked = asked_text(record);
    text += &match (&attempt, reason, &asked) {
        (None, None, None) => subject.to_owned(),
        _ => look.cut(&look.cell(subject), TITLE),
    };
    if let Some(attempt) = attempt {
        text += &format!(", {attempt}");
    }
    if let Some(reason) = reason.filter(|reason| *reason != subject) {
        text += &format!(": {}", one_line(reason));
    }
    if let Some(asked) = asked {
        text += &format!(": asks {asked}");
    }
    text
}

/// What the sender of an open handoff asks or lacks, on one line.
fn asked_text(record: &Record) -> Option<String> {
    let [first, more @ ..] = record.asked() else {
        return None;
    };
    let more = match more.len() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(one_line(&first.key) + &more)
}

/// The number of a handoff's attempt, if it is not the first, and whether work of an earlier one is
/// kept for whoever goes on.
pub(crate) fn attempt_text(record: &Record) -> Option<String> {
    let mut contexts = record.transitions.iter().filter_map(|t| t.context.as_ref());
    let kept = contexts.any(|context| context.files > 0);
    let attempt = record.attempt;
    if kept && !record.state.is_terminal() {
        return Some(format!("attempt {attempt}, has kept work"));
    }
    (attempt > 1).then(|| format!("attempt {attempt}"))
}

/// Handoffs of several issues, by the titles of these; those of tasks by their own.
pub(crate) fn table<'a>(handoffs: impl Iterator<Item = &'a Record>, look: &Look) -> String {
    let rows: Vec<Vec<String>> = handoffs
        .map(|record| row(record, record.subject(), look))
        .collect();
    look.rows(&rows)
}

/// Handoffs of one issue, by their own summaries: they have its title in common.
pub(crate) fn issue_table<'a>(handoffs: impl Iterator<Item = &'a Record>, look: &Look) -> String {
    let rows: Vec<Vec<String>> = handoffs
        .map(|record| row(record, &record.summary, look))
        .collect();
    look.rows(&rows)
}

/// A handoff's record, with what it lacks of a [`Handoff`].
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ListedHandoff", transform = requires_all)]
pub(crate) struct RecordView {
    #[serde(flatten)]
    pub(crate) record: Record,
    /// its issue
    issue: IssueKey,
    /// whether its lease, or the time to claim it, expired and nobody has recorded it yet
    expired: bool,
    /// the worker that holds it; null if nobody works on it
    worker: Option<WorkerId>,
    /// the claim that holds it, for `--token`; null if nobody works on it
    token: Option<u32>,
    /// when its lease ends, or when it must be claimed; null if there is no such time
    expires_at: Option<Moment>,
    /// The members of a [`Handoff`] that a record leaves out if they are null.
    #[serde(flatten)]
    #[schemars(skip)]
    left_out: BTreeMap<&'static str, ()>,
}

/// The members of a [`Handoff`] that a record may leave out.
const OPTIONAL: [&str; 2] = ["priority", "not_before"];

/// States that a row has these members too.
fn requires_all(schema: &mut Schema) {
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.extend(OPTIONAL.map(Value::from));
    }
}

impl RecordView {
    /// These handoffs, at a moment.
    pub(crate) fn all(records: Vec<Record>, now: Moment) -> Vec<Self> {
        records.into_iter().map(|r| Self::new(r, now)).collect()
    }

    fn new(record: Record, now: Moment) -> Self {
        let Handoff {
            issue,
            expired,
            worker,
            token,
            expires_at,
            priority,
            not_before,
            ..
        } = Handoff::new(&record, now);
        let lacks = [priority.is_none(), not_before.is_none()];
        let left_out = OPTIONAL.into_iter().zip(lacks).filter(|(_, lacks)| *lacks);
        Self {
            record,
            issue,
            expired,
            worker,
            token,
            expires_at,
            left_out: left_out.map(|(name, _)| (name, ())).collect(),
        }
    }
}
