//! Entries of open handoffs, whose names contain the agent, the standing and the sort order.
//!
//! An entry is `open/AGENT/STANDING.PRIORITY.PROTOCOL.SENT.DUE.ISSUE.N.json`, for example
//! `open/fixer-agent/ready.high.issue-to-pr.20260302T090000000.-.123.4.json`. So an agent's
//! claimable handoffs of one priority are adjacent, the oldest first, and a choice among thousands
//! reads only a few. The name follows from the record, and the entry's file is a copy of the
//! record.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike, Timelike};
use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId};
use handoff_protocol::{Event, Protocol, State};

use crate::layout::{AWAITING, OPEN};
use crate::record::Record;
use crate::record::claim_queue::waited_for;

/// A handoff's standing, the first word in its entry's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It can be claimed.
    Ready,
    /// It can be claimed, and its question was answered.
    Answered,
    /// It can be claimed after a delay.
    Paused,
    /// It waits for another handoff.
    Waits,
    /// An agent works on it.
    Held,
    /// Its holder waits for the parts of its task.
    Parted,
    /// It failed.
    Failed,
    /// It waits for an answer.
    Blocked,
    /// It failed for the last time.
    Dead,
}

impl Standing {
    const ALL: [(Self, &str); 9] = [
        (Self::Ready, "ready"),
        (Self::Answered, "answered"),
        (Self::Paused, "paused"),
        (Self::Waits, "waits"),
        (Self::Held, "held"),
        (Self::Parted, "parted"),
        (Self::Failed, "failed"),
        (Self::Blocked, "blocked"),
        (Self::Dead, "dead"),
    ];

    /// A handoff's standing; `None` if it ended.
    fn of(record: &Record) -> Option<Self> {
        let waits = waited_for(record).is_some();
        let answered = || {
            let tried = record.latest_tried();
            tried.is_some_and(|t| t.event == Some(Event::Answer))
        };
        Some(match record.state {
            State::Pending if waits => Self::Waits,
            State::Pending if record.pause().is_some() => Self::Paused,
            State::Pending if answered() => Self::Answered,
            State::Pending => Self::Ready,
            State::InProgress if waits => Self::Parted,
            State::InProgress => Self::Held,
            State::Failed => Self::Failed,
            State::Blocked => Self::Blocked,
            State::Dead => Self::Dead,
            State::Completed | State::Rejected | State::Cancelled => return None,
        })
    }

    /// Whether it has not been claimed yet.
    pub fn is_pending(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::Answered | Self::Paused | Self::Waits
        )
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        let words = Self::ALL.iter().find(|(standing, _)| *standing == self);
        words.map_or("", |(_, word)| word)
    }
}

/// The parsed name of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEntry {
    /// Its standing.
    pub standing: Standing,
    /// Its priority, encoded by [`label`].
    priority: String,
    /// The protocol of its issue.
    pub protocol: String,
    /// When it was sent, for comparison.
    pub sent: Stamp,
    /// When its lease ends, or when it must be claimed.
    pub due: Option<Stamp>,
    /// Its id.
    pub id: HandoffId,
}

/// A moment in a name: `20260302T090000000`, in UTC, in milliseconds. It sorts by time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(String);

const STAMP: &str = "%Y%m%dT%H%M%S%3f";

impl Stamp {
    /// The stamp of a moment.
    pub fn of(at: Moment) -> Self {
        // Formatted by hand, which is faster than with `STAMP`.
        let date = (at.year().unsigned_abs() * 100 + at.month()) * 100 + at.day();
        let time = (at.hour() * 100 + at.minute()) * 100 + at.second();
        let time = time * 1000 + at.timestamp_subsec_millis() % 1000;
        Self(format!("{date:08}T{time:09}"))
    }

    /// The moment.
    pub fn moment(&self) -> Option<Moment> {
        let at = chrono::NaiveDateTime::parse_from_str(&self.0, STAMP).ok()?;
        Some(at.and_utc().into())
    }

    fn parse(text: &str) -> Option<Self> {
        let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'T');
        (text.len() == 18 && is_plain).then(|| Self(text.to_owned()))
    }
}

/// Encodes a priority word for a name: other characters than letters, digits, `_` and `-` in
/// hexadecimal, and truncated. Without a priority, `-`.
fn label(priority: Option<&str>) -> String {
    const LONGEST: usize = 32;
    let mut label = String::new();
    for byte in priority.unwrap_or("-").bytes() {
        match byte {
            b'_' | b'-' => label.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => label.push(char::from(byte)),
            _ => label += &format!("%{byte:02x}"),
        }
    }
    label.truncate(LONGEST);
    label
}

impl OpenEntry {
    /// The entry of a record; `None` if the handoff ended.
    pub fn of(record: &Record) -> Option<Self> {
        Some(Self {
            standing: Standing::of(record)?,
            priority: label(record.priority.as_deref()),
            protocol: record.protocol.to_string(),
            sent: Stamp::of(record.sent_at().unwrap_or_default()),
            due: record.expires_at().map(Stamp::of),
            id: record.id.clone(),
        })
    }

    /// The prefix shared by the names of handoffs with the same standing and priority.
    pub fn group(&self) -> String {
        let standing = self.standing.as_str();
        format!("{standing}.{}.{}.", self.priority, self.protocol)
    }

    /// The rank of its priority under its protocol; 0 is the most urgent.
    pub fn rank(&self, protocol: &Protocol) -> usize {
        let mut words = protocol.definition().words.priorities.iter();
        let word = words.find(|word| **word == self.priority || label(Some(word)) == self.priority);
        protocol.priority_rank(word.map(String::as_str))
    }
}

impl fmt::Display for OpenEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (standing, priority) = (self.standing.as_str(), &self.priority);
        let due = self.due.as_ref().map_or("-", |due| &due.0);
        let (protocol, sent, id) = (&self.protocol, &self.sent.0, &self.id);
        write!(f, "{standing}.{priority}.{protocol}.{sent}.{due}.{id}.json")
    }
}

/// A text that is not the name of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEntry;

impl FromStr for OpenEntry {
    type Err = NoEntry;

    fn from_str(name: &str) -> Result<Self, NoEntry> {
        let read = || {
            let (rest, number) = name.strip_suffix(".json")?.rsplit_once('.')?;
            let (rest, issue) = rest.rsplit_once('.')?;
            let (rest, due) = rest.rsplit_once('.')?;
            let (rest, sent) = rest.rsplit_once('.')?;
            let (standing, rest) = rest.split_once('.')?;
            let (priority, protocol) = rest.split_once('.')?;
            let mut standings = Standing::ALL.into_iter();
            let due = match due {
                "-" => None,
                due => Some(Stamp::parse(due)?),
            };
            Some(Self {
                standing: standings.find(|(_, word)| *word == standing)?.0,
                priority: priority.to_owned(),
                protocol: protocol.to_owned(),
                sent: Stamp::parse(sent)?,
                due,
                id: format!("{issue}.{number}").parse().ok()?,
            })
        };
        read().ok_or(NoEntry)
    }
}

/// The path of an open handoff's entry; `None` if the handoff ended.
pub fn open_path(record: &Record) -> Option<String> {
    let entry = OpenEntry::of(record)?;
    Some(format!("{OPEN}/{}/{entry}", record.to))
}

/// The path of the entry of an ended handoff that awaits this agent.
pub fn awaiting_path(id: &HandoffId, agent: &AgentName) -> String {
    format!("{AWAITING}/{agent}/{id}.json")
}

/// The handoff in the name of an entry, whether it is open or awaits an agent.
pub fn id_in(name: &str) -> Option<HandoffId> {
    let name = name.strip_suffix(".json")?;
    let (rest, _) = name.rsplit_once('.')?;
    let before = rest
        .rsplit_once('.')
        .map_or(0, |(before, _)| before.len() + 1);
    name[before..].parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(name: &str) -> Option<OpenEntry> {
        name.parse().ok()
    }

    #[test]
    fn names_read_back_and_sort_by_age() {
        for name in [
            "ready.high.issue-to-pr.20260302T090000000.-.123.4.json",
            "held.-.a.b.c.20260302T090000000.20260302T130000000.a-1_b.12.json",
            "paused.very%20high.p.99991231T235959999.-.7.1.json",
        ] {
            assert_eq!(entry(name).unwrap().to_string(), name);
        }
        let read = entry("held.-.a.b.c.20260302T090000000.20260302T130000000.7.12.json").unwrap();
        assert_eq!(
            (read.standing, read.protocol.as_str()),
            (Standing::Held, "a.b.c")
        );
        assert_eq!(read.group(), "held.-.a.b.c.");
        assert_eq!(id_in(&read.to_string()), Some(read.id));
        assert_eq!(id_in("7.12.json"), Some("7.12".parse().unwrap()));
        let due = read.due.unwrap().moment().unwrap();
        assert_eq!(due.to_rfc3339(), "2026-03-02T13:00:00+00:00");
        assert!(read.sent < Stamp::of(due));
        for name in [
            "",
            "7.1",
            "done.high.p.20260302T090000000.-.7.1.json",
            "ready.high.p.20260302T090000000.7.1.json",
            "ready.high.p.2026-03-02T09:00:00.-.7.1.json",
            "ready.high.p.20260302T090000000.-.7.0.json",
        ] {
            assert_eq!(entry(name), None, "{name}");
        }
    }

    #[test]
    fn a_priority_is_plain_and_short_in_a_name() {
        assert_eq!(label(None), "-");
        assert_eq!(label(Some("P1_a-b")), "P1_a-b");
        assert_eq!(label(Some("a.b/ü")), "a%2eb%2f%c3%bc");
        assert_eq!(label(Some(&"ü".repeat(20))).len(), 32);
    }
}
