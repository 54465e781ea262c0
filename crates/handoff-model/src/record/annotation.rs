//! Notes that correct the record; the record itself stays unchanged.

use handoff_base::ids::{AgentName, HandoffId, WorkerId};
use handoff_base::{Code, Moment, short_id};
use handoff_macros::skip_serializing_none;
use handoff_protocol::EventKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::DeliveryName;

/// A note, which may correct the record.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Annotation {
    /// When it was added.
    pub at: Moment,
    /// The agent that added it.
    pub by: AgentName,
    /// The handoff that it is about; `None` if it is about the whole issue.
    pub id: Option<HandoffId>,
    /// The text; empty in an approval without one, or where the note is only a usage report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The outside event that it reports, if any.
    pub event: Option<DeliveryName>,
    /// The facts that it states, by their placeholder names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Value>,
    /// A person's approval or disapproval of the handoff, if it is one.
    pub approval: Option<Approval>,
    /// The worker that added it.
    pub worker: Option<WorkerId>,
}

/// A person's approval or disapproval of a handoff's result.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Whether the person approves; otherwise, requirements for approval stay unmet.
    pub approved: bool,
    /// The code that was judged, if known.
    pub code: Option<Code>,
}

impl Approval {
    /// The decision in words: `approved at 1a2b3c4d5e`.
    pub fn done(&self) -> String {
        let word = if self.approved {
            "approved"
        } else {
            "disapproved"
        };
        match &self.code {
            Some(code) => format!("{word} at {}", short_id(&code.commit)),
            None => word.to_owned(),
        }
    }
}

impl Annotation {
    /// When its facts began to hold, if stated: outside events may be noted late and out of order.
    pub fn said_at(&self) -> Option<Moment> {
        let mut kinds = EventKind::ALL.iter();
        let noted = kinds.find_map(|kind| self.facts.get(&kind.since_fact())?.as_str());
        noted?.parse().ok()
    }

    /// Whether it is only a usage report, whose content is in the record.
    pub fn is_usage(&self) -> bool {
        self.note.is_empty() && self.facts.is_empty() && self.approval.is_none()
    }

    /// The decision, the text and the facts.
    pub fn text(&self) -> String {
        let fact = |(name, value): (&String, &Value)| match value {
            Value::String(text) => format!("{name} {text}"),
            Value::Null => format!("{name} none"),
            other => format!("{name} {other}"),
        };
        let facts: Vec<String> = self.facts.iter().map(fact).collect();
        let note = match &self.approval {
            Some(approval) if self.note.is_empty() => approval.done(),
            Some(approval) => format!("{}: {}", approval.done(), self.note),
            None if self.is_usage() => "what the work took".to_owned(),
            None => self.note.clone(),
        };
        if facts.is_empty() {
            note
        } else {
            format!("{note} ({})", facts.join(", "))
        }
    }
}
