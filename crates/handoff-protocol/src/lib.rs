//! Protocols as data: agents, contract types, routes and the lifecycle.
//!
//! A [`Protocol`] is loaded from a `protocol.json` and answers questions about
//! itself: which type a contract is, whether a route exists, who may do what.
//! Everything here is pure: no Git, no clock, no environment, and no protocol's
//! name. `definition` is the stored form, `check` whether its parts fit together, `loaded`
//! what a protocol that does says about itself, `lifecycle` the states that every protocol
//! shares, `resolve` the choice of a contract's type, `tasks` what contracts say of tasks,
//! `facts` what is gathered from contracts, `pointers` what a schema has where, `path_pattern`
//! which paths an agent may touch, `signers` whose key is whose.

mod check;
mod definition;
mod facts;
mod lifecycle;
mod loaded;
mod path_pattern;
mod pointers;
mod resolve;
mod signers;
mod tasks;

pub use definition::*;
pub use lifecycle::{Event, IllegalEvent, State};
pub use loaded::Protocol;
pub use path_pattern::{PathPattern, PatternError};
pub use pointers::{schema_has, schema_types, schema_values};
pub use resolve::{Envelope, Resolved, Unresolved};
pub use signers::{Signer, Signers, SigningKey, Verdict};
pub use tasks::TaskPlan;

/// The file that lists who may sign.
pub const SIGNERS: &str = "allowed_signers";
