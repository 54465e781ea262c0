//! What ships inside the binary: the built-in protocols, and the skeletons that
//! `new` fills from them.

mod builtin;
mod known;
mod skeleton;

pub use builtin::{BUILT_IN, Folder, FolderError, FolderSchemas, built_in};
pub use known::{known, told};
pub use skeleton::{Known, fill};
