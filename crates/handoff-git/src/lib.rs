//! Git: the only crate that names libgit2.
//!
//! Its layers, each of which uses only those before it:
//!
//! - `files` and `process`: files without a repository, and other programs; `error`;
//! - `objects`: ids, and readers and writers of loose objects and packs;
//! - `repository`: an open [`Repository`], its configuration, objects and refs. Only its `objects`
//!   writes objects, and only refs named by the caller move;
//! - `program`: the output of the `git` command; `configuration`: its settings, for libgit2;
//!   `tree`: trees in their stored form;
//! - `commits`: a [`Prepared`] commit is written but unreachable; its one useful method publishes
//!   it by compare-and-swap;
//! - `refs`: the storage formats of refs; `open` opens a repository;
//! - `worktree`: uncommitted changes, read without touching the working tree or its index, and
//!   restored into a new worktree; `remote`: fetches and pushes; `code`: the user's branches,
//!   read-only; `maintenance`: git's own packing, and repairs.
//!
//! Nothing here knows what a handoff is.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod code;
mod commits;
mod configuration;
mod error;
mod files;
mod maintenance;
mod objects;
mod open;
mod pins;
mod process;
mod program;
mod refs;
mod remote;
mod repository;
mod tree;
mod worktree;

pub use code::{
    Added, CodeCommit, CodeStore, Differences, FactError, Named, Unknown, undone_by_rebase,
};
pub use commits::{
    Cleanup, Commit, Key, Person, Prepared, Proposal, SignError, Signature, SignatureError, Stored,
    cleaned, comment_of,
};
pub use error::{GitError, LEFT_OUT, NEWER_GIT, OpenError, PublishError, REPAIR};
pub use files::{
    Obstacle, Queue, RefWatch, Scratch, SharedModes, Waker, git_directory_of, is_ignored_by_hfs,
    is_inside, leads_out, led_to, new_beside, read_regular, replace,
};
pub use maintenance::Aside;
pub use objects::{ById, Recent, blob_id};
pub use open::{Surroundings, tune};
pub use pins::programs;
pub use process::{Patience, Pins, ensure_addresses, pin, pinned, pinned_pack, pins};
pub use program::{Program, ProgramError, Setting, Version};
pub use refs::Kept as KeptCommit;
pub use remote::{Below, Contents, Depth, Pushed, Remote, RemoteError, masked, tells_of_damage};
pub use repository::Repository;
pub use tree::{
    Change, Divided, Entry, EntryKind, FlatEntry, Listing, MOST_ENTRIES, MOST_IN_ALL, Mode, Shape,
    Tree,
};
pub use worktree::{
    Caps, CaptureError, Hidden, IndexError, KeptFile, NewWorktree, PathMatch, PathPatterns,
    Position, RawPath, RestoreError, StagedFile, Unfinished, Unpublished, put_file,
};
