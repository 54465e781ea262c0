//! What contracts claim about the repository, and what happens if a claim does not hold.

use handoff_base::words;
use std::collections::BTreeMap;

use handoff_base::finding::FindingCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::named;

words! {
    /// What happens if the repository contradicts a statement.
    #[derive(Default)]
    pub enum Policy {
        /// The contract is refused.
        Enforce = "enforce",
        /// The contract is accepted, and the contradiction is recorded and shown.
        Warn = "warn",
        /// Claims are recorded unchecked.
        #[default]
        Off = "off",
    }
}

words! {
    /// A check of a claim.
    pub enum Check {
        /// The code branch exists.
        Branch = "branch",
        /// The commits exist, and the branch added them to its base.
        Commits = "commits",
        /// The number of changed paths is the claimed one.
        FilesChanged = "files_changed",
        /// The number of added commits is the claimed one.
        CommitsAdded = "commits_added",
        /// The merge commit is on the base branch and was made as claimed.
        Merge = "merge",
        /// The delivered files exist.
        Artifacts = "artifacts",
        /// The sender changed only what its role allows.
        Paths = "paths",
        /// The test report has the claimed counts.
        Tests = "tests",
        /// The test report has as many tests as were added.
        TestsAdded = "tests_added",
        /// The coverage report has the claimed percentage.
        Coverage = "coverage",
    }
}

impl Check {
    /// The code of the finding that this check contradicts a contract.
    pub fn code(self) -> FindingCode {
        match self {
            Self::Branch => FindingCode::EvidenceBranch,
            Self::Commits => FindingCode::EvidenceCommits,
            Self::FilesChanged => FindingCode::EvidenceFilesChanged,
            Self::CommitsAdded => FindingCode::EvidenceCommitsAdded,
            Self::Merge => FindingCode::EvidenceMerge,
            Self::Artifacts => FindingCode::EvidenceArtifacts,
            Self::Paths => FindingCode::EvidencePaths,
            Self::Tests => FindingCode::EvidenceTests,
            Self::TestsAdded => FindingCode::EvidenceTestsAdded,
            Self::Coverage => FindingCode::EvidenceCoverage,
        }
    }
}

/// A protocol's policies for its contracts' statements.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceRules {
    /// The policy of every check; the default is the ledger's.
    pub policy: Option<Policy>,
    /// The policies of single checks.
    #[serde(default)]
    pub checks: BTreeMap<Check, Policy>,
}

/// How a branch is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// With a commit that has both branches as its parents.
    Merge,
    /// With one commit that has all the branch's changes.
    Squash,
    /// By recreating the branch's commits on the base branch.
    Rebase,
}

impl Strategy {
    /// The strategy that this word usually means.
    pub fn usual(word: &str) -> Option<Self> {
        match word {
            "merge" => Some(Self::Merge),
            "squash" => Some(Self::Squash),
            "rebase" => Some(Self::Rebase),
            _ => None,
        }
    }
}

/// The places where a contract lists commits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitsClaim {
    /// The list.
    pub list: String,
    /// The commit's id in an entry; else the entry is the id.
    pub id: Option<String>,
    /// The commit's message or subject, in an entry.
    pub message: Option<String>,
    /// Whether it has each of the branch's own commits once, except merges.
    #[serde(default)]
    pub all: bool,
}

/// The places where a contract states how its branch was merged.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeClaim {
    /// The commit on the base branch.
    pub commit: String,
    /// The word for the merge strategy.
    pub strategy: Option<String>,
    /// The meaning of the words, if not the common one.
    #[serde(default)]
    pub strategies: BTreeMap<String, Strategy>,
}

/// The places where a contract states its test results.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestsClaim {
    /// The number that passed.
    pub passed: Option<String>,
    /// The number that failed or were aborted.
    pub failed: Option<String>,
    /// The number that were skipped.
    pub skipped: Option<String>,
    /// The total number.
    pub total: Option<String>,
    /// Whether none failed, as `true` or `false`.
    pub passing: Option<String>,
    /// The result in words, with some of the counts.
    pub text: Option<String>,
}

impl TestsClaim {
    /// Every pointer that is set, by name.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        named([
            ("passed", self.passed.as_ref()),
            ("failed", self.failed.as_ref()),
            ("skipped", self.skipped.as_ref()),
            ("total", self.total.as_ref()),
            ("passing", self.passing.as_ref()),
            ("text", self.text.as_ref()),
        ])
    }
}

/// The places of statements that can be checked, as JSON Pointers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The code branch, if not at the envelope's place.
    pub branch: Option<String>,
    /// The branch that the work will be merged into.
    pub base: Option<String>,
    /// The commits.
    pub commits: Option<CommitsClaim>,
    /// The number of paths that the branch changes, or a list.
    pub files_changed: Option<String>,
    /// The number of commits that the sender added.
    pub commits_added: Option<String>,
    /// The merge.
    pub merge: Option<MergeClaim>,
    /// The tests.
    pub tests: Option<TestsClaim>,
    /// The number of tests that were added.
    pub tests_added: Option<String>,
    /// The coverage: a number, or a text such as `96%`.
    pub coverage: Option<String>,
}
