//! Protocols as data: agents, contract types, routes and the lifecycle.
//!
//! A [`Protocol`] is loaded from a `protocol.json` and answers questions about itself: the type of
//! a contract, the routes, and what each agent may do. Everything here is pure: no Git, no clock,
//! no environment, and no protocol is known by name.
//!
//! Its layers, each of which uses only those before it:
//!
//! - `lifecycle`: the states that every protocol shares; `term`: what consistency rules compare;
//!   `path_pattern`: paths that an agent may touch; `pointers`: the target of a pointer in a schema;
//! - `definition`: the stored form; `tasks`: reads tasks from contracts;
//! - `check`: finds parts of a definition that don't fit together;
//! - `moved`: former places of keys; `protocol`: a valid protocol; `partial_protocol`: reads an
//!   invalid one as far as possible;
//! - `resolution`: a contract's type; `facts`: facts in contracts.
//!
//! `signers` maps keys to their owners.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod check;
mod definition;
mod facts;
mod lifecycle;
mod moved;
mod partial_protocol;
mod path_pattern;
mod pointers;
mod protocol;
mod resolution;
mod signers;
mod tasks;
mod term;

pub use definition::*;
pub use lifecycle::{Event, IllegalEvent, State};
pub use moved::{Renewed, renewed};
pub use partial_protocol::Partial;
pub use path_pattern::{PathPattern, PatternError};
pub use pointers::{schema_has, schema_nodes, schema_types, schema_values};
pub use protocol::{Protocol, not_json};
pub use resolution::{Envelope, Resolved, Unresolved};
pub use signers::{Signer, Signers, SigningKey, Verdict};
pub use tasks::TaskPlan;
pub use term::{Known, Subject, Term};

/// The protocol's file that lists the keys that may sign.
pub const SIGNERS: &str = "allowed_signers";
