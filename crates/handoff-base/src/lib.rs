//! Types shared by all parts of git-handoff: [`ids`], [`ledger_names`], [`ObjectId`], [`finding`]s, the [`codes`] and
//! [`hints`](mod@hint) of [`explained`] errors, [`Moment`]s and [`text`], JSON [`mod@pointer`]s,
//! and a step's edits of files ([`Edit`]) and positions of code branches ([`Code`]).
//!
//! Nothing here reads a file, a clock or the environment, or depends on Git or protocols.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod amount;
mod code;
pub mod codes;
mod digest;
mod edit;
pub mod explained;
pub mod finding;
pub mod github_host;
pub mod hint;
pub mod ids;
pub mod ledger_names;
mod moment;
mod object_id;
pub mod pointer;
pub mod text;
mod words;

pub use amount::{Amount, Currency, NoAmount, NoCurrency};
pub use code::Code;
pub use digest::{digest, hexadecimal};
pub use edit::Edit;
pub use moment::{Moment, NoMoment, to_second};
pub use object_id::{NoObjectId, ObjectFormat, ObjectId, short_id};
