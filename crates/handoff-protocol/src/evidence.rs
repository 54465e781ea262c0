//! What contracts claim about the repository, and what becomes of a claim that
//! does not hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::faults::Checker;

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

impl Checker<'_> {
    /// What is wrong with the claims of the contract types, and with the paths of
    /// the agents.
    pub(super) fn evidence(&mut self) {
        let definition = self.definition;
        for (i, kind) in definition.contracts.iter().enumerate() {
            let claims = kind.claims.as_ref();
            for (at, pointer, _) in claims.map(Claims::given).unwrap_or_default() {
                self.pointer(format!("/contracts/{i}/claims/{at}"), &pointer);
            }
            let tests = claims.and_then(|claims| claims.tests.as_ref());
            if tests.is_some_and(|tests| tests.given().next().is_none()) {
                let text = "nothing says where the tests' counts are";
                self.fault(
                    "protocol.claims",
                    format!("/contracts/{i}/claims/tests"),
                    text,
                );
            }
            let merge = claims.and_then(|claims| claims.merge.as_ref());
            if merge.is_some_and(|m| m.strategy.is_none() && !m.strategies.is_empty()) {
                let text = "words stand for strategies, and nothing says where the word is";
                let at = format!("/contracts/{i}/claims/merge/strategies");
                self.fault("protocol.claims", at, text);
            }
            if let Some(artifacts) = &kind.artifacts
                && artifacts.kind.is_none()
                && !artifacts.files.is_empty()
            {
                let text = "some kinds are files, and nothing says where the kind is";
                let at = format!("/contracts/{i}/artifacts/files");
                self.fault("protocol.claims", at, text);
            }
        }
        for (i, agent) in definition.agents.iter().enumerate() {
            for (j, text) in agent.paths.iter().enumerate() {
                if let Err(error) = PathPattern::new(text) {
                    let text = format!("`{text}` is no pattern of paths: {error}");
                    self.fault("protocol.paths", format!("/agents/{i}/paths/{j}"), text);
                }
            }
        }
    }
}

/// A pattern of paths: `*` and `?` stay within one name, `**` is any number of
/// folders.
pub struct PathPattern(glob::Pattern);

/// Why a text is no pattern of paths.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It matches nothing that a repository holds.
    #[error("it is a path from the repository's root, without a leading `/`, without `.` and `..`")]
    NoPath,
    /// It is not well formed.
    #[error("{0}")]
    Malformed(&'static str),
}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`PatternError`] when it is none.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let plain = |part: &str| !matches!(part, "" | "." | "..");
        // A folder stands for all that is in it.
        let (folder, whole) = match text.strip_suffix('/') {
            Some(folder) => (folder, format!("{text}**")),
            None => (text, text.to_owned()),
        };
        if !folder.split('/').all(plain) {
            return Err(PatternError::NoPath);
        }
        let pattern = glob::Pattern::new(&whole);
        pattern
            .map(Self)
            .map_err(|e| PatternError::Malformed(e.msg))
    }

    /// Says whether a path fits it.
    pub fn matches(&self, path: &str) -> bool {
        let options = glob::MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        self.0.matches_with(path, options)
    }
}

#[cfg(test)]
mod tests {
    use super::{PathPattern, PatternError};

    #[test]
    fn a_pattern_stays_within_its_folders() {
        let fits = |pattern: &str, path: &str| {
            PathPattern::new(pattern).is_ok_and(|pattern| pattern.matches(path))
        };
        assert!(fits("src/**", "src/a/b.rs") && fits("src/", "src/a/b.rs"));
        assert!(fits("**/*.md", "docs/a.md") && fits("**/*.md", "a.md"));
        assert!(fits("src/*.rs", "src/a.rs") && !fits("src/*.rs", "src/a/b.rs"));
        assert!(!fits("src/**", "srcs/a.rs") && !fits("src/", "src"));
        assert!(fits("**", ".github/workflows/test.yml"));
        for none in ["", "/src", "a//b", "../a", "./a", "/"] {
            let found = PathPattern::new(none).err();
            assert_eq!(found, Some(PatternError::NoPath), "{none}");
        }
        assert!(PathPattern::new("a[").is_err() && PathPattern::new("a**b").is_err());
    }
}
