//! Contracts: bytes in, values and findings out.
//!
//! A contract is XML, JSON or a Markdown message. It is parsed strictly and within limits
//! ([`Source`]), mapped to one value model by its schema ([`Shape`]), and validated ([`Schema`]).
//! Every fault is a [`Finding`](handoff_base::finding::Finding) that names its place in the
//! source's own terms. Nothing here depends on Git, protocols, the command line, the clock or the
//! environment.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod cost;
pub mod edit;
mod evaluate;
mod explain;
mod form;
mod format;
mod input;
mod json;
mod keyword;
mod line;
mod map;
mod markdown;
mod matching;
mod number;
mod open_places;
mod outline;
mod pattern;
mod place;
mod report;
pub mod scan;
mod schema;
mod schema_error;
mod secrets;
mod shape;
mod source;
mod text;
mod value;
mod wrapping;
mod write;
mod xml;

#[cfg(test)]
mod tests;

pub use cost::Cost;
pub use evaluate::decides;
pub use input::Input;
pub use keyword::{Form, KEYWORDS};
pub use matching::{matches_nothing, matching};
pub use open_places::Filled;
pub use outline::Outline;
pub use place::Place;
pub use report::{Coverage, MAX_REPORT, ReportFault, TestCounts};
pub use schema::{Checked, Schema};
pub use schema_error::SchemaError;
pub use secrets::{Allowance, Secret, Secrets, UnknownRule, is_rule};
pub use shape::{Shape, ShapeError};
pub use source::{Format, Source};
pub use wrapping::unwrapped;
pub use write::{write_json, write_markdown, write_message, write_xml};

/// The maximum size of a contract, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The maximum number of findings listed for one contract; a note counts the rest.
pub const MAX_FINDINGS: usize = 200;

/// The maximum nesting depth of elements, objects and arrays.
pub const MAX_DEPTH: usize = 64;

/// The maximum number of attributes of an element.
pub const MAX_ATTRIBUTES: usize = 64;

/// The placeholder that a skeleton has for a value to fill in: `{{fill: what to write}}`.
pub const FILL: &str = "{{fill";

/// The placeholder that `send` fills in: `{{fill by send: what it is}}`. It starts like every
/// placeholder, so that a contract that still contains one is refused.
pub const BY_SEND: &str = "{{fill by send";
