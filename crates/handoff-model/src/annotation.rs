//! Notes beside what was recorded, which stays as it is.

use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::{Moment, moment};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A note beside what was recorded: what is so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Annotation {
    /// When.
    #[serde(with = "moment")]
    pub at: Moment,
    /// By whom.
    pub by: AgentName,
    /// The handoff that it is about; none, where it is about the whole issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<HandoffId>,
    /// What is so.
    pub note: String,
    /// What is known by it, by the names that skeletons have for it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Value>,
}

impl Annotation {
    /// The note, with the facts that it brings.
    pub fn text(&self) -> String {
        let fact = |(name, value): (&String, &Value)| match value {
            Value::String(text) => format!("{name} {text}"),
            other => format!("{name} {other}"),
        };
        let facts: Vec<String> = self.facts.iter().map(fact).collect();
        if facts.is_empty() {
            self.note.clone()
        } else {
            format!("{} ({})", self.note, facts.join(", "))
        }
    }
}
