//! The keywords of JSON Schema 2020-12.

use serde_json::Value;

/// What a keyword takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Any value.
    Any,
    /// An object.
    Map,
    /// A schema.
    Schema,
    /// A list of schemas.
    Schemas,
    /// An object of schemas.
    SchemaMap,
    /// A whole number from 0.
    Count,
    /// A number.
    Number,
    /// A number above 0.
    Positive,
    /// True or false.
    Boolean,
    /// A list.
    List,
    /// A text.
    Text,
    /// The name of a format.
    Format,
    /// A regular expression.
    Pattern,
    /// A list of distinct texts.
    Texts,
    /// An object of such lists.
    TextsMap,
    /// A type, or a list of distinct types.
    Type,
}

/// The keywords of JSON Schema 2020-12, and `xml`, by what they take.
pub const KEYWORDS: [(Form, &[&str]); 16] = [
    (
        Form::Schema,
        &[
            "additionalProperties",
            "contains",
            "contentSchema",
            "else",
            "if",
            "items",
            "not",
            "propertyNames",
            "then",
            "unevaluatedItems",
            "unevaluatedProperties",
        ],
    ),
    (
        Form::SchemaMap,
        &[
            "$defs",
            "definitions",
            "dependentSchemas",
            "patternProperties",
            "properties",
        ],
    ),
    (Form::Schemas, &["allOf", "anyOf", "oneOf", "prefixItems"]),
    (Form::Map, &["$vocabulary", "xml"]),
    (Form::TextsMap, &["dependentRequired"]),
    (Form::List, &["enum", "examples"]),
    (Form::Texts, &["required"]),
    (
        Form::Number,
        &["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"],
    ),
    (
        Form::Count,
        &[
            "maxContains",
            "maxItems",
            "maxLength",
            "maxProperties",
            "minContains",
            "minItems",
            "minLength",
            "minProperties",
        ],
    ),
    (Form::Positive, &["multipleOf"]),
    (
        Form::Text,
        &[
            "$anchor",
            "$comment",
            "$dynamicAnchor",
            "$dynamicRef",
            "$id",
            "$ref",
            "$schema",
            "contentEncoding",
            "contentMediaType",
            "description",
            "title",
        ],
    ),
    (Form::Format, &["format"]),
    (Form::Pattern, &["pattern"]),
    (Form::Type, &["type"]),
    (
        Form::Boolean,
        &["deprecated", "readOnly", "uniqueItems", "writeOnly"],
    ),
    (Form::Any, &["const", "default"]),
];

impl Form {
    /// What a keyword takes; any value, if it is unknown.
    pub fn of(keyword: &str) -> Self {
        let mut groups = KEYWORDS.iter();
        let known = groups.find(|(_, names)| names.contains(&keyword));
        known.map_or(Self::Any, |(form, _)| *form)
    }

    /// Whether a keyword that takes this may have a value of the same type.
    pub fn takes(self, value: &Value) -> bool {
        match value {
            Value::Null => false,
            Value::Bool(_) => matches!(self, Self::Schema | Self::Boolean),
            Value::Number(_) => matches!(self, Self::Number | Self::Count | Self::Positive),
            Value::String(_) => {
                matches!(self, Self::Text | Self::Format | Self::Pattern | Self::Type)
            }
            Value::Array(_) => {
                matches!(self, Self::Schemas | Self::List | Self::Texts | Self::Type)
            }
            Value::Object(_) => matches!(
                self,
                Self::Schema | Self::SchemaMap | Self::Map | Self::TextsMap
            ),
        }
    }
}
