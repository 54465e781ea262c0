//! Git: the only place that names libgit2.
//!
//! Everything else sees these types. A [`Repository`] reads objects and refs, a
//! [`Prepared`] is a commit that is written but that nothing points to yet, and
//! its one useful method publishes it by compare-and-swap. `tree` edits and
//! compares trees in their stored form, `history` reads commits, `code` answers
//! questions about the user's own branches, `evidence` about their commits,
//! `merging` about how they were merged. Nothing here knows what a handoff
//! is, or moves any ref but the one that a [`Prepared`] names. `worktree` reads
//! what a working tree holds beyond HEAD and touches neither it nor its index;
//! `ref_files` tells from git's locks and logs what it is about to do to a ref; `sign` has
//! git make signed commits, `signature` says which key made one. `maintenance` has git pack
//! what many steps leave. `restore` writes into a worktree that it just made, and into no other.

mod code;
mod disk;
mod error;
mod evidence;
mod history;
mod index;
mod maintenance;
mod merging;
mod object_cache;
mod object_id;
mod packs;
mod position;
mod process;
mod program;
mod queue;
mod racy_files;
mod ref_files;
mod refs;
mod remote;
mod repository;
mod restore;
mod scratch;
mod shallow;
mod sign;
mod signature;
mod stripspace;
mod tree;
mod tree_transfer;
mod watch;
mod worktree;

pub use code::CodeCommit;
pub use evidence::{Added, Differences, FactError, Named, Unknown};
pub use history::{Commit, Person, Stored};
pub use index::{IndexError, PathPatterns, StagedFile};
pub use object_cache::{ById, Recent};
pub use object_id::blob_id;
pub use position::{Position, Unpublished};
pub use process::Patience;
pub use program::{Program, ProgramError, Setting, Version};
pub use queue::Queue;
pub use refs::Kept as KeptCommit;
pub use remote::{Depth, Pushed, Remote, RemoteError, masked};
pub use repository::{GitError, OpenError, Prepared, Proposal, PublishError, Repository, tune};
pub use restore::{NewWorktree, RestoreError, is_ignored_by_hfs, is_inside, put_file};
pub use scratch::Scratch;
pub use sign::SignError;
pub use signature::{Key, Signature, SignatureError};
pub use stripspace::{Cleanup, cleaned, comment_of};
pub use tree::{Change, Entry, EntryKind, FlatEntry, Listing, Mode, Tree};
pub use watch::{RefWatch, Waker};
pub use worktree::{Caps, CaptureError, Hidden, KeptFile, RawPath, Unfinished};
