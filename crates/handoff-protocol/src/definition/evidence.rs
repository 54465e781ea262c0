//! What contracts claim about the repository, and what becomes of a claim that
//! does not hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What becomes of a claim that the repository contradicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The contract is refused.
    Enforce,
    /// The contract is accepted, and the contradiction recorded and shown.
    Warn,
    /// Claims are recorded as they are made.
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

/// One thing that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The code branch exists.
    Branch,
    /// The commits exist, and the branch added them to its base.
    Commits,
    /// As many paths differ as the contract says.
    FilesChanged,
    /// As many commits were added as the contract says.
    CommitsAdded,
    /// The merge commit is on the base branch, and made as the contract says.
    Merge,
    /// The files that are delivered exist.
    Artifacts,
    /// The sender changed only what its role may.
    Paths,
    /// The test report has the counts that the contract has.
    Tests,
    /// The coverage report has the percentage that the contract has.
    Coverage,
}

impl Check {
    /// Every check, in the order in which they are recorded.
    pub const ALL: [Self; 9] = [
        Self::Branch,
        Self::Commits,
        Self::FilesChanged,
        Self::CommitsAdded,
        Self::Merge,
        Self::Artifacts,
        Self::Paths,
        Self::Tests,
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
            Self::Coverage => "coverage",
        }
    }

    /// The code of the finding that it contradicts a contract.
    pub fn code(self) -> &'static str {
        match self {
            Self::Branch => "evidence.branch",
            Self::Commits => "evidence.commits",
            Self::FilesChanged => "evidence.files_changed",
            Self::CommitsAdded => "evidence.commits_added",
            Self::Merge => "evidence.merge",
            Self::Artifacts => "evidence.artifacts",
            Self::Paths => "evidence.paths",
            Self::Tests => "evidence.tests",
            Self::Coverage => "evidence.coverage",
        }
    }
}

/// What a protocol says of its contracts' claims.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceRules {
    /// The policy of every check; the ledger's, if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// The policies of single checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<Check, Policy>,
}

/// How a branch is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// By a commit with both lines as its parents.
    Merge,
    /// By one commit that holds all that the branch changed.
    Squash,
    /// By the branch's commits, written again on the base branch.
    Rebase,
}

impl Strategy {
    /// The strategy that a protocol calls by its usual name.
    pub fn usual(word: &str) -> Option<Self> {
        match word {
            "merge" => Some(Self::Merge),
            "squash" => Some(Self::Squash),
            "rebase" => Some(Self::Rebase),
            _ => None,
        }
    }
}

/// Where a contract lists commits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitsClaim {
    /// The list.
    pub list: String,
    /// The commit's id, from the entry; without it, the entry is the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Where a contract says how its branch was merged.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeClaim {
    /// The commit on the base branch.
    pub commit: String,
    /// The word for how it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// What the words stand for, if they are not the usual ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub strategies: BTreeMap<String, Strategy>,
}

/// Where a contract says how its tests went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestsClaim {
    /// How many passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<String>,
    /// How many failed or broke off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// How many were skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<String>,
    /// Whether none failed, as `true` or `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passing: Option<String>,
    /// The outcome in words, with some of the counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl TestsClaim {
    /// Every pointer that is given, by name.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("passed", &self.passed),
            ("failed", &self.failed),
            ("skipped", &self.skipped),
            ("total", &self.total),
            ("passing", &self.passing),
            ("text", &self.text),
        ];
        all.into_iter()
            .filter_map(|(name, field)| Some((name, field.as_deref()?)))
    }
}

/// Where a contract says what can be checked: a JSON Pointer each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The code branch, if not where the envelope has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch that the work is to be merged into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<CommitsClaim>,
    /// How many paths the branch changes, or a list of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<String>,
    /// How many commits the sender added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits_added: Option<String>,
    /// The merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeClaim>,
    /// The tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestsClaim>,
    /// The coverage: a number, or a text such as `96%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<String>,
}

/// A pointer with its place in the claims, and the types of which one must be
/// where it leads to.
pub type ClaimedPlace<'c> = (String, String, &'c [&'c str]);

impl Claims {
    /// Every pointer from the contract's root, with its place in the claims and
    /// the types of which one must be there. A list's first entry stands for all.
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
        add(
            "coverage",
            self.coverage.as_ref(),
            &["number", "integer", "string"],
        );
        if let Some(commits) = &self.commits {
            add("commits/list", Some(&commits.list), &["array"]);
            let inside = commits
                .id
                .iter()
                .map(|id| format!("{}/0{id}", commits.list));
            inside.for_each(|pointer| add("commits/id", Some(&pointer), TEXT));
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
