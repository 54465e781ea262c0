//! What contracts claim about the repository, and what happens if a claim does not hold.

use std::collections::BTreeMap;

use handoff_base::finding::FindingCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::named;

/// What happens if the repository contradicts a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The contract is refused.
    Enforce,
    /// The contract is accepted, and the contradiction is recorded and shown.
    Warn,
    /// Claims are recorded unchecked.
    #[default]
    Off,
}

impl Policy {
    /// The policy as stored and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Off => "off",
        }
    }
}

/// A check of a claim.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The code branch exists.
    Branch,
    /// The commits exist, and the branch added them to its base.
    Commits,
    /// The number of changed paths is the claimed one.
    FilesChanged,
    /// The number of added commits is the claimed one.
    CommitsAdded,
    /// The merge commit is on the base branch and was made as claimed.
    Merge,
    /// The delivered files exist.
    Artifacts,
    /// The sender changed only what its role allows.
    Paths,
    /// The test report has the claimed counts.
    Tests,
    /// The test report has as many tests as were added.
    TestsAdded,
    /// The coverage report has the claimed percentage.
    Coverage,
}

impl Check {
    /// Every check, in the order of recording.
    pub const ALL: [Self; 10] = [
        Self::Branch,
        Self::Commits,
        Self::FilesChanged,
        Self::CommitsAdded,
        Self::Merge,
        Self::Artifacts,
        Self::Paths,
        Self::Tests,
        Self::TestsAdded,
        Self::Coverage,
    ];

    /// The check as stored and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::Commits => "commits",
            Self::FilesChanged => "files_changed",
            Self::CommitsAdded => "commits_added",
            Self::Merge => "merge",
            Self::Artifacts => "artifacts",
            Self::Paths => "paths",
            Self::Tests => "tests",
            Self::TestsAdded => "tests_added",
            Self::Coverage => "coverage",
        }
    }

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
    /// The strategy with this common name.
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
    /// Every given pointer, by name.
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

/// A pointer with its place in the claims, and the JSON types allowed at its target.
pub type ClaimedPlace<'c> = (String, String, &'c [&'c str]);

impl Claims {
    /// Every pointer from the contract's root, with its place in the claims and the types allowed
    /// there. A list's first entry stands for all.
    pub fn given(&self) -> Vec<ClaimedPlace<'static>> {
        const TEXT: &[&str] = &["string"];
        const COUNT: &[&str] = &["integer", "number"];
        let mut found: Vec<ClaimedPlace<'static>> = Vec::new();
        let mut add = |at: &str, pointer: Option<&String>, types| {
            found.extend(pointer.map(|pointer| (at.to_owned(), pointer.clone(), types)));
        };
        add("branch", self.branch.as_ref(), TEXT);
        add("base", self.base.as_ref(), TEXT);
        let countable: &[&str] = &["integer", "number", "array"];
        add("files_changed", self.files_changed.as_ref(), countable);
        add("commits_added", self.commits_added.as_ref(), COUNT);
        add("tests_added", self.tests_added.as_ref(), COUNT);
        add(
            "coverage",
            self.coverage.as_ref(),
            &["number", "integer", "string"],
        );
        if let Some(commits) = &self.commits {
            add("commits/list", Some(&commits.list), &["array"]);
            let inside = [("id", &commits.id), ("message", &commits.message)];
            for (name, pointer) in inside {
                let pointer = pointer.as_ref().map(|at| format!("{}/0{at}", commits.list));
                add(&format!("commits/{name}"), pointer.as_ref(), TEXT);
            }
        }
        if let Some(merge) = &self.merge {
            add("merge/commit", Some(&merge.commit), TEXT);
            add("merge/strategy", merge.strategy.as_ref(), TEXT);
        }
        for (name, pointer) in self.tests.iter().flat_map(TestsClaim::given) {
            let types: &[&str] = match name {
                "passing" => &["boolean"],
                "text" => TEXT,
                _ => COUNT,
            };
            add(&format!("tests/{name}"), Some(&pointer.to_owned()), types);
        }
        found
    }
}
