//! What ships inside the binary: the built-in protocols, and the skeletons of contracts.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod builtin;
mod contract;
mod known;
mod skeleton;

pub use builtin::{BUILT_IN, Folder, FolderError, FolderSchemas, built_in, shipped};
pub use contract::{left_to_fill, skeleton, usual_format, written};
pub use known::{known, known_at_tip, with_current_branch};
pub use skeleton::{Known, fill};
