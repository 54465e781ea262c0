//! Protocols as data: agents, contract types, routes and the lifecycle.
//!
//! A [`Protocol`] is loaded from a `protocol.json` and answers questions about itself: the type of
//! a contract, the routes, and what each agent may do. Everything here is pure: no Git, no clock,
//! no environment, and no protocol's name. `definition` is the stored form, `check` finds parts
//! that don't fit together, `loaded` is a valid protocol, `partial` reads an invalid one as far as possible, `lifecycle` has the states that every
//! protocol shares, `resolve` chooses a contract's type, `tasks` reads tasks from contracts,
//! `facts` gathers facts from them, `pointers` finds the target of a pointer in a schema,
//! `term` reads what consistency rules compare, `path_pattern` matches paths that an agent may touch, `signers` maps keys to their owners.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod check;
mod definition;
mod facts;
mod lifecycle;
mod loaded;
mod partial;
mod path_pattern;
mod pointers;
mod resolve;
mod signers;
mod tasks;
mod term;

pub use definition::*;
pub use lifecycle::{Event, IllegalEvent, State};
pub use loaded::Protocol;
pub use partial::Partial;
pub use path_pattern::{PathPattern, PatternError};
pub use pointers::{schema_has, schema_nodes, schema_types, schema_values};
pub use resolve::{Envelope, Resolved, Unresolved};
pub use signers::{Signer, Signers, SigningKey, Verdict};
pub use tasks::TaskPlan;
pub use term::{Known, Subject, Term};

/// The file that lists the keys that may sign.
pub const SIGNERS: &str = "allowed_signers";
