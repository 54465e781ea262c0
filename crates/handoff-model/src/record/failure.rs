//! `failure.json` or `release.json`, and `snapshot.json`: the stored context of a failed attempt, or of a
//! claim that was given back.

use std::collections::BTreeMap;

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId};
use handoff_macros::skip_serializing_none;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::Failure;
use crate::record::stored_form::stored;

/// The machine that an attempt was made on.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name, if known.
    pub name: Option<String>,
    /// Its operating system.
    pub os: String,
    /// Its processor's architecture.
    pub arch: String,
}

/// The position of the code.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stand {
    /// The branch; `None` if HEAD was detached.
    pub branch: Option<String>,
    /// HEAD's commit; `None` if there was no commit yet.
    pub commit: Option<String>,
    /// That commit's tree.
    pub tree: Option<String>,
}

/// An attached file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Its name in `attachments`, escaped.
    pub name: String,
    /// The path that was given, escaped.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// Its mode: `100644` or `100755`.
    pub mode: String,
}

/// A summary of a snapshot.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The number of worktree files in it.
    pub files: u64,
    /// Their size, including staged content, in bytes.
    pub bytes: u64,
    /// The number of index entries in it.
    pub staged: u64,
    /// The number of deleted files.
    pub deleted: u64,
    /// The commit that it is based on; `None` if there was no commit yet.
    pub base: Option<String>,
    /// The number of stored commits: the base, and those that no remote had.
    pub commits: u64,
}

/// `failure.json`, or `release.json` for work that was given back.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureFile {
    /// The version of the stored form: 4.
    pub version: u32,
    /// The handoff.
    pub handoff: HandoffId,
    /// The attempt.
    pub attempt: u32,
    /// When it ended.
    pub at: Moment,
    /// The agent.
    pub by: AgentName,
    /// What went wrong; `None` if nothing did.
    pub error: Option<Failure>,
    /// Why it was given back, if it was.
    pub reason: Option<String>,
    /// The machine it was made on.
    pub host: Host,
    /// The version of each tool, by its name.
    pub tools: BTreeMap<String, String>,
    /// The state of the code.
    pub code: Stand,
    /// The attached files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The unfinished work, if it was kept.
    pub snapshot: Option<Summary>,
}

impl FailureFile {
    /// What went wrong, or why the work was given back.
    pub fn why(&self) -> &str {
        let error = self.error.as_ref().map(|error| &error.message);
        error.or(self.reason.as_ref()).map_or("", String::as_str)
    }
}

/// A file of a snapshot.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotFile {
    /// Its path, escaped.
    pub path: String,
    /// Its mode, as git writes it.
    pub mode: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The object with its content.
    pub blob: String,
    /// Its stage in the index, if it is in conflict.
    pub stage: Option<u16>,
    /// Its path in the folder, escaped.
    pub stored: String,
}

/// An index flag that hides a file's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// `git update-index --assume-unchanged`.
    AssumeUnchanged,
    /// `git update-index --skip-worktree`.
    SkipWorktree,
}

/// An unfinished merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// The commits being merged.
    pub heads: Vec<String>,
    /// The draft of the merge message, escaped.
    pub message: String,
}

/// `snapshot.json`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the stored form: 4.
    pub version: u32,
    /// The commit that it is based on.
    pub base: Stand,
    /// The operation in progress in the worktree, in git's word for it.
    pub operation: Option<String>,
    /// The merge in progress.
    pub merge: Option<Merge>,
    /// Changed, added and untracked files.
    pub files: Vec<SnapshotFile>,
    /// Paths whose file was deleted, escaped.
    pub deleted: Vec<String>,
    /// Index entries that differ from the base.
    pub staged: Vec<SnapshotFile>,
    /// Paths of the base that are missing from the index, escaped.
    pub removed: Vec<String>,
    /// Paths marked intent-to-add, escaped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intended: Vec<String>,
    /// Index flags of files that differ from the index, by escaped path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hidden: BTreeMap<String, Mark>,
    /// The number of files that a sparse checkout left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sparse: u64,
    /// The stored commits, parents first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// Whether there were more commits, of which only the newest are stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_commits: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

stored!(FailureFile, Manifest);
