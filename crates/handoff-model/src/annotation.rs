//! Notes that correct the record; the record itself stays unchanged.

use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::{Moment, moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::delivery::DeliveryName;

/// A note that corrects what was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Annotation {
    /// When it was added.
    #[serde(with = "moment")]
    #[schemars(with = "Moment")]
    pub at: Moment,
    /// The agent that added it.
    pub by: AgentName,
    /// The handoff that it is about; `None` if it is about the whole issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<HandoffId>,
    /// The text of the note.
    pub note: String,
    /// The outside event that it tells, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<DeliveryName>,
    /// The facts that it states, by their names in skeletons.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Value>,
}

impl Annotation {
    /// The note followed by its facts.
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
