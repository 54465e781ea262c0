//! Git: the only place that names libgit2.
//!
//! Everything else sees these types. A [`Repository`] reads objects and refs, a
//! [`Prepared`] is a commit that is written but that nothing points to yet, and
//! its one useful method publishes it by compare-and-swap. `tree` edits and
//! compares trees in their stored form, `history` reads commits, `code` answers
//! questions about the user's own branches. Nothing here knows what a handoff
//! is, touches a working tree or an index, or moves any ref but the one that a
//! [`Prepared`] names.

mod code;
mod history;
mod queue;
mod recent;
mod remote;
mod repository;
mod scratch;
mod tree;
mod watch;

pub use code::{Code, CodeCommit};
pub use history::{Commit, Person, Stored, to_second};
pub use queue::Queue;
pub use recent::{ById, Recent};
pub use remote::{Patience, Remote, RemoteError};
pub use repository::{GitError, ObjectId, OpenError, Prepared, PublishError, Repository, tune};
pub use scratch::Scratch;
pub use tree::{Change, Edit, Entry, EntryKind, Listing, Mode, Tree};
pub use watch::{RefWatch, Waker};
