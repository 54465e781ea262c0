//! Tests of the contract pipeline.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

mod check;
mod markdown;
mod oracle;
mod strict;

use serde_json::{Value, json};

/// A schema with every feature of the XML form.
pub(super) fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["from", "to", "count", "commits"],
        "properties": {
            "from": {"type": "string", "minLength": 1},
            "to": {"enum": ["reviewer", "closer"]},
            "count": {"type": "integer", "minimum": 0, "description": "How many files changed."},
            "ratio": {"type": "number"},
            "done": {"type": "boolean"},
            "at": {"type": "string", "format": "date-time"},
            "branch": {"type": "string", "pattern": "^[a-z/-]+$"},
            "tag": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "label": {"type": "string", "xml": {"name": "label-text"}},
            "commits": {
                "type": "array",
                "xml": {"nodeType": "element"},
                "items": {"$ref": "#/$defs/commit"}
            },
            "checks": {
                "type": "object",
                "additionalProperties": false,
                "required": ["build"],
                "properties": {"build": {"enum": ["passing", "failing"]}, "lint": {"type": "string"}}
            },
            "tree": {"$ref": "#/$defs/tree"},
            "extra": {"$ref": "#/$defs/open"}
        },
        "$defs": {
            "open": {"type": "object"},
            "commit": {
                "type": "object",
                "xml": {"name": "commit"},
                "additionalProperties": false,
                "required": ["sha", "message"],
                "properties": {
                    "sha": {"type": "string", "pattern": "^[0-9a-f]{4,40}$", "xml": {"nodeType": "attribute"}},
                    "message": {"type": "string", "xml": {"nodeType": "text"}}
                }
            },
            "tree": {
                "type": "object",
                "additionalProperties": false,
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "child": {"type": "array", "items": {"$ref": "#/$defs/tree"}}
                }
            }
        }
    })
}
