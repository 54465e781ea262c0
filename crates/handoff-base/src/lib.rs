//! What every part of git-handoff shares: [`ids`], [`ObjectId`], [`finding`]s, [`Moment`]s and
//! [`text`], JSON [`mod@pointer`]s, and what a step says of files ([`Edit`]) and code branches ([`Code`]).
//!
//! Nothing here reads a file, a clock or an environment, and nothing knows Git or protocols.

mod code;
mod digest;
mod edit;
pub mod finding;
pub mod ids;
pub mod moment;
mod object_id;
pub mod pointer;
pub mod text;

pub use code::Code;
pub use digest::{digest, hexadecimal};
pub use edit::Edit;
pub use moment::{Moment, to_second};
pub use object_id::{NoObjectId, ObjectId, short_id};
