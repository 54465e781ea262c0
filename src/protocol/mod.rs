//! Protocols as data: agents, contract types, routes and the lifecycle.
//!
//! A [`Protocol`] is loaded from a `protocol.json` and answers questions about
//! itself: which type a contract is, whether a route exists, who may do what.
//! Everything here is pure: no Git, no clock, no environment, and no protocol's
//! name. `definition` holds the stored form, `lifecycle` the states that every
//! protocol shares, `resolve` the choice of a contract's type, `faults` the checks of a
//! definition.

mod definition;
mod facts;
mod faults;
mod lifecycle;
mod resolve;

pub use definition::{
    Agent, AgentKind, ContractType, Definition, FactRule, FailureFields, Fields, Forbidden,
    Outcome, Protocol, Route, Style,
};
pub use lifecycle::{Event, IllegalEvent, State};
pub use resolve::{Envelope, Resolved, Unresolved};
