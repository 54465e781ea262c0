//! Git: the only place that names libgit2.
//!
//! Everything else sees these types. A [`Repository`] reads objects and refs; `objects` is the one
//! door through which objects are written, and a [`Prepared`] (`prepare`, or `sign`, which has git
//! sign it) is a commit that is written but that nothing points to yet: its one useful method
//! publishes it by compare-and-swap. `tree` edits and compares trees in their stored form,
//! `tree_transfer` carries whole ones from one repository to another, `history` reads commits,
//! `shallow` and `boundary` know what a clone does not have, `object_cache` what was read lately.
//! `code` answers questions about the user's own branches, `evidence` about their commits,
//! `merging` about how they were merged, `signature` about which key made one. `worktree` reads
//! what a working tree holds beyond HEAD (`capture`, `disk`, `racy_files`) and touches neither it
//! nor its index; `restore` writes into a worktree that it just made, and into no other.
//! `ref_files` learns from git's locks and logs what git is about to do to a ref, `maintenance` has
//! git pack what many steps leave. Nothing here knows what a handoff is, or moves any ref but the
//! one that its caller names.

mod boundary;
mod capture;
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
mod objects;
mod packs;
mod position;
mod prepare;
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

pub use capture::{CaptureError, RawPath};
pub use code::CodeCommit;
pub use error::{GitError, OpenError, PublishError};
pub use evidence::{Added, Differences, FactError, Named, Unknown};
pub use history::{Commit, Person, Stored};
pub use index::{IndexError, PathPatterns, StagedFile};
pub use object_cache::{ById, Recent};
pub use object_id::blob_id;
pub use position::{Position, Unpublished};
pub use prepare::{Prepared, Proposal};
pub use process::Patience;
pub use program::{Program, ProgramError, Setting, Version};
pub use queue::Queue;
pub use refs::Kept as KeptCommit;
pub use remote::{Depth, Pushed, Remote, RemoteError, masked};
pub use repository::{Repository, tune};
pub use restore::{NewWorktree, RestoreError, is_ignored_by_hfs, is_inside, put_file};
pub use scratch::Scratch;
pub use sign::SignError;
pub use signature::{Key, Signature, SignatureError};
pub use stripspace::{Cleanup, cleaned, comment_of};
pub use tree::{Change, Entry, EntryKind, FlatEntry, Listing, Mode, Tree};
pub use watch::{RefWatch, Waker};
pub use worktree::{Caps, Hidden, KeptFile, Unfinished};
