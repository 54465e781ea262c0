//! Stored forms without the members that answers show elsewhere.

use schemars::JsonSchema;
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::record::{Issue, Record};

/// A stored form, some members of which answers show in another way.
pub trait Summarized: Serialize + JsonSchema {
    /// The schema name of the remaining members.
    const REST: &str;
    /// The members that are left out.
    const ELSEWHERE: &[&str];
}

/// Answers show the lease in [`Handoff`](super::Handoff) and in the transitions.
impl Summarized for Record {
    const REST: &str = "Record";
    const ELSEWHERE: &[&str] = &[
        "id",
        "title",
        "contract_type",
        "from",
        "to",
        "state",
        "priority",
        "summary",
        "attempt",
        "not_before",
        "acknowledge_by",
        "lease",
    ];
}

/// Answers show handoffs and facts beside an [`IssueSummary`](super::IssueSummary).
impl Summarized for Issue {
    const REST: &str = "IssueRecord";
    const ELSEWHERE: &[&str] = &[
        "issue",
        "title",
        "protocol",
        "status",
        "opened_at",
        "updated_at",
        "completed_at",
        "paused",
        "open",
        "facts",
    ];
}

/// A stored form that is serialized without `Summarized::ELSEWHERE`.
#[derive(Clone, Debug)]
pub struct Detail<T>(pub T);

impl<T: Summarized> Serialize for Detail<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(&self.0).map_err(S::Error::custom)?;
        if let Value::Object(members) = &mut value {
            members.retain(|name, _| !T::ELSEWHERE.contains(&name.as_str()));
        }
        value.serialize(serializer)
    }
}

schemars::generated! {
    impl<T: Summarized> JsonSchema for Detail<T> {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            T::REST.into()
        }

        fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
            let mut schema = T::json_schema(generator);
            let is_elsewhere = |name: &str| T::ELSEWHERE.contains(&name);
            if let Some(Value::Object(members)) = schema.get_mut("properties") {
                members.retain(|name, _| !is_elsewhere(name));
            }
            if let Some(Value::Array(required)) = schema.get_mut("required") {
                required.retain(|name| !name.as_str().is_some_and(is_elsewhere));
            }
            schema
        }
    }
}
