//! HTTP: the `server` that shows a page on this machine, and the `collector` that traces are sent to.
//!
//! What enters here knows the protocol, and nothing of ledgers.

#[cfg(feature = "https")]
mod authorities;
pub(crate) mod collector;
pub(crate) mod server;
