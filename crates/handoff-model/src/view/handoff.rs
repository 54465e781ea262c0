//! A handoff as every answer shows it.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff_protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::record::Record;

/// A handoff, with what programs need to act on it. Every member is always present.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Handoff {
    /// Its id.
    pub id: HandoffId,
    /// Its issue.
    pub issue: IssueKey,
    /// The title of its issue when it was sent.
    pub title: String,
    /// Its state, as recorded.
    pub state: State,
    /// Whether its lease or its time to be claimed has expired, which is not recorded yet.
    pub expired: bool,
    /// Its sender.
    pub from: AgentName,
    /// Its receiver.
    pub to: AgentName,
    /// Its contract's type.
    pub contract_type: String,
    /// Its priority, in the protocol's words; null if it has none.
    pub priority: Option<String>,
    /// One line about it.
    pub summary: String,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The worker that holds it; null if there is none.
    pub worker: Option<WorkerId>,
    /// Its current claim, for `--token`; null if there is none.
    pub token: Option<u32>,
    /// When its lease ends, or when it must be claimed; null if there is no such time.
    pub expires_at: Option<Moment>,
    /// When it can be claimed, while it waits for another attempt; otherwise null.
    pub not_before: Option<Moment>,
}

impl Handoff {
    /// A record's handoff at a moment.
    pub fn new(record: &Record, now: Moment) -> Self {
        let lease = record.lease.as_ref();
        Self {
            id: record.id.clone(),
            issue: record.id.issue().clone(),
            title: record.title.clone(),
            state: record.state,
            expired: record.is_expired(now),
            from: record.from.clone(),
            to: record.to.clone(),
            contract_type: record.contract_type.clone(),
            priority: record.priority.clone(),
            summary: record.summary.clone(),
            attempt: record.attempt,
            worker: lease.map(|lease| lease.worker.clone()),
            token: lease.map(|lease| lease.token),
            expires_at: record.expires_at(),
            not_before: record.not_before,
        }
    }
}
