//! An issue as every answer shows it.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, IssueKey};
use schemars::JsonSchema;
use serde::Serialize;

use crate::record::{Issue, IssueStatus, Paused};

/// An issue. Every member is always present.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Issue")]
pub struct IssueSummary {
    /// Its key.
    pub key: IssueKey,
    /// Its title: a contract's, else its first contract's summary.
    pub title: String,
    /// The protocol it is bound to.
    pub protocol: AgentName,
    /// Whether it is open.
    pub status: IssueStatus,
    /// When its first contract was sent.
    pub opened_at: Moment,
    /// When its last step was made.
    pub updated_at: Moment,
    /// When it was completed; null if it is not.
    pub completed_at: Option<Moment>,
    /// Its pause, during which no work is handed out; null if it is not paused.
    pub paused: Option<Paused>,
}

impl From<&Issue> for IssueSummary {
    fn from(issue: &Issue) -> Self {
        Self {
            key: issue.issue.clone(),
            title: issue.title.clone(),
            protocol: issue.protocol.clone(),
            status: issue.status,
            opened_at: issue.opened_at,
            updated_at: issue.updated_at,
            completed_at: issue.completed_at,
            paused: issue.paused.clone(),
        }
    }
}
