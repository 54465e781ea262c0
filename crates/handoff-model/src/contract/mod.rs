//! Contracts: how a document becomes a step, under one protocol.
//!
//! [`intake`] is the pipeline from bytes to a checked [`Contract`]. `wrapper` locates the contract
//! in a document, `semantic` checks what schemas can't express, `consistency` compares the contract
//! with itself and its issue, [`evidence`] extracts claims about the repository, [`artifacts`] the
//! delivered files. `recognition` tells contracts from other files.

pub mod artifacts;
pub(crate) mod consistency;
mod content;
pub mod evidence;
pub mod intake;
mod recognition;
mod schemas;
pub mod semantic;
mod wrapper;

pub use content::Contract;
pub(crate) use intake::still_at_work;
pub use intake::{Review, first_match, review, review_imported};
pub use recognition::is_contract_of;
pub use schemas::Schemas;
pub use wrapper::Opened;
