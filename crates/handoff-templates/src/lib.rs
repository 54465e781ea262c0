//! What ships with the binary: the built-in protocols, skeletons of contracts, and the files of a
//! new protocol.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod builtin;
mod contract;
mod folder_check;
mod known;
mod scaffold;
mod skeleton;

pub use builtin::{BUILT_IN, Folder, FolderError, FolderSchemas, SMALL, built_in, shipped};
pub use contract::{skeleton, usual_format, with_answers, written};
pub use folder_check::check_folder;
pub use known::{known, known_at_tip, with_current_branch, with_workspace};
pub use scaffold::{ADDED, file_part, relay, renamed};
pub use skeleton::{Known, fill, left_to_fill, takes};
