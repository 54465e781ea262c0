//! Git: the only crate that names libgit2.
//!
//! A [`Repository`] reads objects and refs; only `objects` writes objects. A [`Prepared`] commit
//! (from `prepare`, or from `sign`, which has git sign it) is written, but no ref points to it yet:
//! its one useful method publishes it by compare-and-swap. `tree` edits and compares trees in their
//! stored form, `tree_transfer` copies whole trees between repositories, `history` reads commits,
//! `shallow` and `boundary` know what a clone is missing, `object_cache` holds recently read
//! objects, `pack_reader` reads packs for walks that read nearly all of them; `bulk` keeps the new objects of many commits in memory, until `pack_writer` has a
//! pack of them. `code` queries the user's branches, `evidence` their commits, `merging` how they were
//! merged, and `signature` verifies who signed one. `worktree` reads uncommitted changes
//! (`capture`, `disk`, `racy_files`) without touching the working tree or its index; `restore`
//! writes only into a worktree that it just created. `refs` reads and moves refs in both of git's forms, `maintenance` starts git's own packing. Nothing here knows
//! what a handoff is, or moves a ref that its caller did not name.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod boundary;
mod bulk;
mod capture;
mod code;
mod disk;
mod divided;
mod durability;
mod error;
mod evidence;
mod git_directory;
mod history;
mod index;
mod loose;
mod maintenance;
mod merging;
mod object_cache;
mod object_id;
mod object_reader;
mod objects;
mod obstacle;
mod own_change;
mod pack_index;
mod pack_reader;
mod pack_writer;
mod packs;
mod position;
mod prepare;
mod process;
mod program;
mod queue;
mod racy_files;
mod read_at;
mod refs;
mod remote;
mod repair;
mod repository;
mod restore;
mod scratch;
mod shallow;
mod sign;
mod signature;
mod spawn;
mod stripspace;
mod tree;
mod tree_transfer;
mod watch;
mod worktree;

pub use capture::{CaptureError, RawPath};
pub use code::CodeCommit;
pub use divided::Divided;
pub use error::{GitError, OpenError, PublishError};
pub use evidence::{Added, Differences, FactError, Named, Unknown};
pub use git_directory::{git_directory_of, led_to};
pub use history::{Commit, Person, Stored};
#[doc(hidden)]
pub use index::index_files;
pub use index::{IndexError, PathMatch, PathPatterns, StagedFile};
pub use object_cache::{ById, Recent};
pub use object_id::blob_id;
pub use obstacle::Obstacle;
pub use own_change::CodeStore;
pub use position::{Position, Unpublished};
pub use prepare::{Prepared, Proposal};
pub use process::Patience;
pub use program::{Program, ProgramError, Setting, Version};
pub use queue::Queue;
pub use refs::Kept as KeptCommit;
pub use remote::{Below, Contents, Depth, Pushed, Remote, RemoteError, masked, tells_of_damage};
pub use repository::{Repository, Surroundings, tune};
pub use restore::{NewWorktree, RestoreError, is_ignored_by_hfs, is_inside, put_file};
pub use scratch::Scratch;
pub use sign::SignError;
pub use signature::{Key, Signature, SignatureError};
pub use stripspace::{Cleanup, cleaned, comment_of};
pub use tree::{
    Change, Entry, EntryKind, FlatEntry, Listing, MOST_ENTRIES, MOST_IN_ALL, Mode, Shape, Tree,
};
pub use watch::{RefWatch, Waker};
pub use worktree::{Caps, Hidden, KeptFile, Unfinished};
