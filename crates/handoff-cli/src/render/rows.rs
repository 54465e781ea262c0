//! Handoffs as rows of a table.

use handoff::base::Moment;
use handoff::base::ids::AgentName;
use handoff::base::text::one_line;
use handoff::model::{Detail, Handoff, Record, overdue_text};
use handoff::protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::view::Look;

/// The maximum width of an agent's name in a row.
const NAME: usize = 30;

/// The maximum width of a worker's id in a row.
pub const WORKER: usize = 24;

/// The maximum width of a priority in a row.
const PRIORITY: usize = 12;

/// The maximum width of what is wanted, before a title.
const WANTED: usize = 40;

/// The maximum width of a title with text after it.
const TITLE: usize = 36;

/// A handoff's state, and whether it is overdue or when it can be claimed.
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

/// A handoff as a table row, described by what is wanted, which may be empty, and this subject.
fn row(record: &Record, (wanted, subject): (&str, &str), look: &Look) -> Vec<String> {
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
        look.cell(&about(record, (wanted, subject), look)),
    ]
}

/// A row's text about a handoff: worker, what is wanted, subject, attempt, and the reason for its
/// state.
fn about(record: &Record, (wanted, subject): (&str, &str), look: &Look) -> String {
    let attempt = attempt_text(record);
    let reason = record.reason();
    let mut text = match (record.state, &record.waits_for[..]) {
        (State::Pending, [first, ..]) => format!("waits for {first}: "),
        _ => String::new(),
    };
    if let Some(lease) = &record.lease {
        text += &format!("worker {}: ", look.cut(lease.worker.as_str(), WORKER));
    }
    // The worker from which it was taken learns the reason here.
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
    // Questions must be visible: a long title must not crowd them out.
    let asked = asked_text(record);
    let title = match (&attempt, reason, &asked) {
        (None, None, None) => subject.to_owned(),
        _ => look.cut(&look.cell(subject), TITLE),
    };
    text += &match wanted {
        "" => title,
        wanted => format!("{} ({title})", look.cut(&look.cell(wanted), WANTED)),
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

/// The question or missing inputs of an open handoff's sender, in one line.
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

/// The number of an attempt after the first, and whether an earlier attempt's work is kept.
pub fn attempt_text(record: &Record) -> Option<String> {
    let attempt = record.attempt;
    if has_kept_work(record) {
        return Some(format!("attempt {attempt}, has kept work"));
    }
    (attempt > 1).then(|| format!("attempt {attempt}"))
}

/// Whether work of an earlier attempt or claim is kept for the next one.
pub fn has_kept_work(record: &Record) -> bool {
    let mut all = record.transitions.iter();
    all.any(|t| t.kept_work().is_some()) && !record.state.is_terminal()
}

/// A table of several issues' handoffs, with their issues' titles; tasks have their own.
pub fn table<'a>(handoffs: impl Iterator<Item = &'a Record>, look: &Look) -> String {
    wanted_table(handoffs.map(|record| (record, "")), look)
}

/// The same, with what is wanted of the reader before each title.
pub fn wanted_table<'a>(
    handoffs: impl Iterator<Item = (&'a Record, &'a str)>,
    look: &Look,
) -> String {
    let rows: Vec<Vec<String>> = handoffs
        .map(|(record, wanted)| match record.skipped() {
            Some(word) => {
                let subject = format!("{word}: {}", record.subject());
                row(record, (wanted, &subject), look)
            }
            None => row(record, (wanted, record.subject()), look),
        })
        .collect();
    look.rows(&rows)
}

/// A table of one issue's handoffs, with their own summaries.
pub fn issue_table<'a>(handoffs: impl Iterator<Item = &'a Record>, look: &Look) -> String {
    let rows: Vec<Vec<String>> = handoffs
        .map(|record| row(record, ("", &record.summary), look))
        .collect();
    look.rows(&rows)
}

/// A handoff with its stored record.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ListedHandoff")]
pub struct ListedHandoff {
    #[serde(flatten)]
    handoff: Handoff,
    /// what else is stored of it
    record: Detail<Record>,
}

impl ListedHandoff {
    /// Lists handoffs as of a moment.
    pub fn all(records: Vec<Record>, now: Moment) -> Vec<Self> {
        let listed = records.into_iter().map(|record| Self {
            handoff: Handoff::new(&record, now),
            record: Detail(record),
        });
        listed.collect()
    }

    /// Its record.
    pub fn record(&self) -> &Record {
        &self.record.0
    }
}
