//! Ledger events as CloudEvents 1.0, in structured JSON.

use handoff::base::ObjectId;
use handoff::ledger::{Happening, Kind};
use handoff::model::TraceParent;
use serde::Serialize;
use serde_with::skip_serializing_none;

/// The prefix of every event type.
const DOMAIN: &str = "io.git-handoff";

/// An event of a ledger; `T` is its data.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
pub struct CloudEvent<'a, T> {
    specversion: &'static str,
    id: String,
    source: &'a str,
    #[serde(rename = "type")]
    kind: String,
    subject: Option<String>,
    time: String,
    datacontenttype: &'static str,
    traceparent: Option<TraceParent>,
    data: T,
}

impl<'a, T> CloudEvent<'a, T> {
    /// Creates the event for the `n`th effect of a commit, counted from 1 over all its effects, so
    /// that the id does not depend on filters.
    pub fn new(
        source: &'a str,
        commit: ObjectId,
        n: usize,
        happening: &Happening,
        data: T,
    ) -> Self {
        let handoff = happening.handoff.as_ref();
        let subject = handoff
            .map(|handoff| handoff.id.to_string())
            .or_else(|| happening.key().map(ToString::to_string))
            .or_else(|| happening.name.clone());
        Self {
            specversion: "1.0",
            id: format!("{commit}.{n}"),
            source,
            kind: format!("{DOMAIN}.{}", type_of(happening)),
            subject,
            time: happening.at.rfc3339(),
            datacontenttype: "application/json",
            traceparent: happening.traceparent,
            data,
        }
    }
}

/// The type of an event without its prefix.
fn type_of(happening: &Happening) -> &'static str {
    match happening.kind {
        Kind::Transition => match happening.event {
            Some("claim") => "handoff.claimed",
            Some("complete") => "handoff.completed",
            Some("fail") => "handoff.failed",
            Some("block") => "handoff.blocked",
            Some("reject") => "handoff.rejected",
            Some("cancel") => "handoff.cancelled",
            Some("retry") => "handoff.retried",
            Some("answer") => "handoff.answered",
            Some("exhaust") => "handoff.exhausted",
            Some("redrive") => "handoff.redriven",
            Some("reassign") => "handoff.reassigned",
            Some("expire") => "handoff.expired",
            Some("release") => "handoff.released",
            _ => "handoff.sent",
        },
        Kind::Record => "handoff.extended",
        Kind::Issue => "issue.changed",
        Kind::Protocol => "protocol.changed",
        Kind::Document => "document.changed",
        Kind::Archive => "archive.changed",
        Kind::Ledger => "ledger.started",
        Kind::Other => "other",
    }
}
