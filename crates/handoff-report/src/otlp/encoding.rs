//! OTLP in JSON: hexadecimal ids, 64-bit numbers as strings, enumerations as numbers.

use handoff::base::Moment;
use handoff_macros::skip_serializing_none;
use serde::Serialize;
use serde_json::Value;

/// One document: a line of a file, or a request to a collector.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TracesData<'a> {
    pub(super) resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceSpans<'a> {
    pub(super) resource: Attributed<'a>,
    pub(super) scope_spans: [ScopeSpans<'a>; 1],
    pub(super) schema_url: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Attributed<'a> {
    pub(super) attributes: &'a [Attribute],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScopeSpans<'a> {
    pub(super) scope: Scope,
    pub(super) spans: &'a [Span],
    pub(super) schema_url: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Scope {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

/// One span of a trace.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    pub(super) trace_id: String,
    pub(super) span_id: String,
    pub(super) parent_span_id: Option<String>,
    pub(super) name: String,
    pub(super) kind: u8,
    pub(super) start_time_unix_nano: String,
    pub(super) end_time_unix_nano: String,
    pub(super) attributes: Vec<Attribute>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<Event>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) links: Vec<Link>,
    pub(super) status: Option<Status>,
}

/// `SPAN_KIND_INTERNAL`.
pub(super) const INTERNAL: u8 = 1;
/// `STATUS_CODE_ERROR`.
pub(super) const ERROR: u8 = 2;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event {
    pub(super) time_unix_nano: String,
    pub(super) name: String,
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Link {
    pub(super) trace_id: String,
    pub(super) span_id: String,
    pub(super) attributes: Vec<Attribute>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) flags: u32,
}

fn is_zero(flags: &u32) -> bool {
    *flags == 0
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Status {
    pub(super) code: u8,
    pub(super) message: String,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Attribute {
    pub(super) key: String,
    value: Any,
}

#[derive(Clone, Debug, Serialize)]
enum Any {
    #[serde(rename = "stringValue")]
    Text(String),
    #[serde(rename = "boolValue")]
    Truth(bool),
    #[serde(rename = "intValue")]
    Whole(String),
    #[serde(rename = "doubleValue")]
    Fraction(f64),
    #[serde(rename = "arrayValue")]
    List(List),
}

#[derive(Clone, Debug, Serialize)]
struct List {
    values: Vec<Any>,
}

/// Attributes with unique keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes(pub(super) Vec<Attribute>);

impl Attributes {
    /// Adds an attribute, unless its key is already present.
    pub(super) fn add(&mut self, key: &str, value: impl Into<Value>) {
        let Some(value) = any(&value.into(), true) else {
            return;
        };
        if self.0.iter().all(|known| known.key != key) {
            let key = key.to_owned();
            self.0.push(Attribute { key, value });
        }
    }

    pub(super) fn add_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.add(key, value);
        }
    }
}

/// A value as an attribute; `None` unless it is a text, a number, a boolean or a list of these.
fn any(value: &Value, lists: bool) -> Option<Any> {
    Some(match value {
        Value::String(text) => Any::Text(text.clone()),
        Value::Bool(is) => Any::Truth(*is),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Any::Whole(whole.to_string()),
            None => Any::Fraction(number.as_f64()?),
        },
        Value::Array(items) if lists => {
            let values = items.iter().map(|item| any(item, false));
            let values = values.collect::<Option<_>>()?;
            Any::List(List { values })
        }
        Value::Array(_) | Value::Object(_) | Value::Null => return None,
    })
}

/// Nanoseconds since 1970.
pub(super) fn nanos(at: Moment) -> String {
    // Records hold only dates between 1970 and 9999.
    let milliseconds = u128::try_from(at.timestamp_millis()).unwrap_or(0);
    (milliseconds * 1_000_000).to_string()
}
