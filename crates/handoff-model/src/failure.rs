//! `failure.json` and `snapshot.json`: what is kept of a failed attempt.

use std::collections::BTreeMap;

use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::{Moment, moment};
use serde::{Deserialize, Serialize};

use crate::record::Failure;

/// The machine that an attempt failed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its operating system.
    pub os: String,
    /// Its processor's architecture.
    pub arch: String,
}

/// Where the code stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stand {
    /// The branch; none where HEAD was detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// HEAD's commit; none where there was no commit yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// That commit's tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// A file that was attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Its name in `attachments`, escaped.
    pub name: String,
    /// Its path as it was given, escaped.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// Its mode: `100644` or `100755`.
    pub mode: String,
}

/// What a snapshot comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// How many files of the worktree it has.
    pub files: u64,
    /// Their size with what is staged, in bytes.
    pub bytes: u64,
    /// How many entries of the index it has.
    pub staged: u64,
    /// How many files were deleted.
    pub deleted: u64,
    /// The commit that it is over; none where there was no commit yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// How many commits are kept, that no remote had.
    pub commits: u64,
}

/// `failure.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureFile {
    /// The version of the stored form: 1.
    pub version: u32,
    /// The handoff.
    pub handoff: HandoffId,
    /// Which attempt failed.
    pub attempt: u32,
    /// When.
    #[serde(with = "moment")]
    pub at: Moment,
    /// By which agent.
    pub by: AgentName,
    /// What went wrong.
    pub error: Failure,
    /// Where.
    pub host: Host,
    /// The version of each tool.
    pub tools: BTreeMap<String, String>,
    /// Where the code stood.
    pub code: Stand,
    /// The files that were attached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The unfinished work, where it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Summary>,
}

/// A file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotFile {
    /// Its path, escaped.
    pub path: String,
    /// Its mode as git writes it.
    pub mode: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its content's object.
    pub blob: String,
    /// Its stage in the index, where it is in conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u16>,
    /// Where it is in the folder, escaped.
    pub stored: String,
}

/// A mark of the index that hides a file's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// `git update-index --assume-unchanged`.
    AssumeUnchanged,
    /// `git update-index --skip-worktree`.
    SkipWorktree,
}

/// An unfinished merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// The commits that are merged.
    pub heads: Vec<String>,
    /// The message so far, escaped.
    pub message: String,
}

/// `snapshot.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the stored form: 1.
    pub version: u32,
    /// The commit that it is over.
    pub base: Stand,
    /// What the worktree was in the middle of, in git's word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The merge that it was in the middle of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// Changed, added and untracked files.
    pub files: Vec<SnapshotFile>,
    /// Paths without a file, escaped.
    pub deleted: Vec<String>,
    /// Entries of the index that the base does not have so.
    pub staged: Vec<SnapshotFile>,
    /// Paths of the base that the index does not have, escaped.
    pub removed: Vec<String>,
    /// Paths that are only intended to be added, escaped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intended: Vec<String>,
    /// Marks of the index on files that differ from it, by escaped path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hidden: BTreeMap<String, Mark>,
    /// How many files a sparse checkout left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sparse: u64,
    /// The kept commits, parents first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// Whether there were too many commits to keep more than the newest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_commits: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
