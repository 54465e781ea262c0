//! The issues that an event is about.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use handoff::base::ids::IssueKey;
use handoff::base::pointer::select;
use handoff::ledger::{LedgerError, Snapshot};
use handoff::model::{BranchPatterns, Issue, View};
use handoff::protocol::{EventKind, HEAD, PULL_REQUEST};
use regex::Regex;

use super::beside;
use super::markdown::spoken;
use super::payload::Event;
use super::staleness::noted;
use super::values::says;

/// The maximum number of open issues searched for a pull request.
const LOOK_THROUGH: usize = 2000;

/// The associations of authors who are trusted to name their pull request's issue. They grant
/// nothing; permissions are asked of GitHub.
const KNOWN: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];

/// The issues and the pull request that an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The issues that the event names, in order.
    pub issues: Vec<IssueKey>,
    /// The issues that its branch seems to be named after: `fix-404-page` need not be about issue
    /// 404.
    pub of_branch: Vec<IssueKey>,
    /// The number of the pull request, if any.
    pub pull_request: Option<u64>,
}

/// How an event's issues are found besides by its own text.
#[derive(Debug, Default)]
pub struct Naming {
    /// The issues that the pull request closes, from GitHub, if it was asked.
    closes: Vec<IssueKey>,
    branches: BranchPatterns,
    /// The prefixes of issue keys, by the ledger's repositories; empty if there is only one.
    repositories: BTreeMap<String, String>,
}

impl Naming {
    /// How issues are found without a ledger: by GitHub's answer, and by the usual branch names.
    pub fn given(closes: &[IssueKey]) -> Self {
        Self {
            closes: closes.to_vec(),
            ..Self::default()
        }
    }

    /// How issues are found with a ledger: also by its repositories, and by its protocols' branch
    /// patterns.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger cannot be read.
    pub fn of(tip: &Snapshot<'_>, closes: &[IssueKey]) -> Result<Self, LedgerError> {
        let mut naming = Self {
            branches: tip.branch_patterns()?,
            ..Self::given(closes)
        };
        for name in tip.protocols()? {
            let rules = tip.rules(&name)?;
            let served = rules.protocol().definition().repositories();
            naming.repositories.extend(served.clone());
        }
        Ok(naming)
    }

    /// Whether the ledger serves one repository.
    pub(super) fn is_alone(&self) -> bool {
        self.repositories.is_empty()
    }

    /// The prefix of a repository's issue keys; `None` if the ledger does not serve it.
    fn prefix(&self, repository: Option<&str>) -> Option<&str> {
        if self.is_alone() {
            return Some("");
        }
        let mut all = self.repositories.iter();
        let own = all.find(|(name, _)| repository.is_some_and(|of| of.eq_ignore_ascii_case(name)));
        own.map(|(_, prefix)| &**prefix)
    }

    /// The key of an issue by its number in a repository.
    fn key(&self, repository: Option<&str>, number: &str) -> Option<IssueKey> {
        format!("{}{number}", self.prefix(repository)?).parse().ok()
    }

    /// Why an event's repository is not served by the ledger, if so.
    pub(super) fn unserved(&self, event: &Event) -> Option<String> {
        let name = event.repository_name();
        self.prefix(name).is_none().then(|| {
            let name = name.and_then(says).unwrap_or_default();
            format!("it is of repository {name}, which is not in `github.repositories` of the protocol: nothing changes")
        })
    }
}

// A keyword, then the number or the URL of an issue.
#[allow(clippy::expect_used)]
static CLOSING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:^|[^[:alnum:]])(?:close|fix|resolve)(?:s|d|es|ed)?:?[ \t]+(?:(?P<short>[\w.-]+/[\w.-]+)?#|https?://[\w.-]+/(?P<long>[\w.-]+/[\w.-]+)/issues/|gh-)(?P<number>[1-9][0-9]{0,17})\b",
    )
    .expect("the expression is one")
});

/// How far before a keyword a negation is searched, in characters.
const NEGATED_WITHIN: usize = 120;

// Negates the keyword after it.
#[allow(clippy::expect_used)]
static NEGATED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)
        (?: \b (?: not | never | cannot | without | neither | nor | nothing | no[\x20\t]+longer | fails? | failed | rather[\x20\t]+than | instead[\x20\t]+of )
          | [a-z]n['’]t | \b(?: does | do | did | wo | ca | can | is | are | should | must )nt )
        (?: [\x20\t,]+ (?: actually | also | be | by | completely | even | entirely | fully | itself | need | quite | really | to | yet
          | (?: close | fix | resolve ) (?: s | d | es | ed )? (?: [\x20\t]+ \#[0-9]+ )? ,? [\x20\t]+ or ) )*
        [\x20\t,]* $",
    )
    .expect("the expression is one")
});

fn is_known(association: Option<&str>) -> bool {
    association.is_some_and(|association| KNOWN.contains(&association))
}

impl Subject {
    /// Finds the issues of an event: its own, those that GitHub says the pull request closes, those
    /// that its text closes, or the one that the branch is named after.
    pub fn of(event: &Event, naming: &Naming) -> Self {
        let repository = event.repository_name();
        let numbered = |key: &IssueKey| match key.as_str() {
            number if number.bytes().all(|b| b.is_ascii_digit()) => naming.key(repository, number),
            _ => Some(key.clone()),
        };
        let closed = |body: Option<&str>| match (&naming.closes[..], body) {
            ([], Some(body)) => closed_by(body, |of, number| match of {
                Some(of) if naming.is_alone() => {
                    let is_own = repository.is_some_and(|own| own.eq_ignore_ascii_case(of));
                    is_own.then(|| number.parse().ok())?
                }
                of => naming.key(of.or(repository), number),
            }),
            (closes, _) => closes.iter().filter_map(numbered).collect(),
        };
        let named = |branch: Option<&str>| numbered(&naming.branches.issue(branch?)?);
        let own = || {
            let number = event.number("/issue/number").filter(|number| *number > 0)?;
            naming.key(repository, &number.to_string())
        };
        // Ignore the branch name of a fork: anybody can choose it.
        let is_own = event.fork().is_none();
        let of_branch = |branch: &str, pull_request: &str| Self {
            of_branch: named(event.text(branch).filter(|_| is_own))
                .into_iter()
                .collect(),
            pull_request: event.number(pull_request),
            ..Self::default()
        };
        let Some(kind) = event.kind() else {
            return Self::default();
        };
        match kind {
            EventKind::Issues => Self {
                issues: own().into_iter().collect(),
                ..Self::default()
            },
            EventKind::IssueComment => match event.payload().pointer("/issue/pull_request") {
                None | Some(serde_json::Value::Null) => Self {
                    issues: own().into_iter().collect(),
                    ..Self::default()
                },
                // The payload does not have the pull request's repository, only its author: a
                // stranger's text must not choose the issue that a comment answers.
                Some(_) => {
                    let known = is_known(event.text("/issue/author_association"));
                    let closed = known.then(|| closed(event.text("/issue/body")));
                    Self {
                        issues: closed.unwrap_or_default(),
                        pull_request: event.number("/issue/number"),
                        ..Self::default()
                    }
                }
            },
            EventKind::PullRequest | EventKind::PullRequestReview => {
                let branch = event.text("/pull_request/head/ref");
                Self {
                    issues: closed(event.text("/pull_request/body")),
                    of_branch: named(branch).into_iter().collect(),
                    pull_request: event.number("/pull_request/number"),
                }
            }
            EventKind::WorkflowRun => of_branch(
                "/workflow_run/head_branch",
                "/workflow_run/pull_requests/0/number",
            ),
            EventKind::CheckSuite => of_branch(
                "/check_suite/head_branch",
                "/check_suite/pull_requests/0/number",
            ),
            EventKind::Status => {
                let branches = select(event.payload(), "/branches/*/name");
                let mut issues: Vec<IssueKey> = Vec::new();
                for issue in branches.iter().filter_map(|branch| named(branch.as_str())) {
                    if !issues.contains(&issue) {
                        issues.push(issue);
                    }
                }
                Self {
                    of_branch: issues,
                    ..Self::default()
                }
            }
        }
    }
}

impl Subject {
    /// The issues that the event names, else those that its branch seems to be named after.
    pub fn named(&self) -> Vec<IssueKey> {
        let of_branch = self.issues.is_empty().then_some(&self.of_branch);
        let all = self.issues.iter().chain(of_branch.into_iter().flatten());
        all.cloned().collect()
    }

    /// The issues that the event is about: those that it names; else those that its branch is named
    /// after, if the ledger has them; else the ledger's open ones with its pull request, or with
    /// its commit.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger cannot be read.
    pub fn known(&self, tip: &Snapshot<'_>, event: &Event) -> Result<Vec<IssueKey>, LedgerError> {
        if !self.issues.is_empty() {
            return Ok(self.issues.clone());
        }
        let mut named = Vec::new();
        for key in &self.of_branch {
            if tip.issue(key)?.issue()?.is_some() {
                named.push(key.clone());
            }
        }
        if !named.is_empty() {
            return Ok(named);
        }
        let found = match self.pull_request {
            Some(number) => issues_of_pull_request(tip, number)?,
            None => Vec::new(),
        };
        match event.checked_commit().filter(|_| found.is_empty()) {
            Some(commit) => issues_at(tip, commit),
            None => Ok(found),
        }
    }
}

/// The issues that a text closes, without duplicates; `key` maps the repository, if the text names
/// it, and the number to the issues that count.
fn closed_by(text: &str, key: impl Fn(Option<&str>, &str) -> Option<IssueKey>) -> Vec<IssueKey> {
    let lines = spoken(text);
    let mut issues = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let last = i.checked_sub(1).map_or("", |last| &*lines[last]);
        for found in CLOSING.captures_iter(line) {
            let at = found.get(0).map_or(0, |all| all.start());
            let of = found.name("short").or_else(|| found.name("long"));
            let issue = key(of.map(|of| of.as_str()), &found["number"]);
            let issue = issue.filter(|issue| !issues.contains(issue));
            issues.extend(issue.filter(|_| !is_negated(last, &line[..at])));
        }
    }
    issues
}

/// Whether the text before a keyword, in its line and the line above, negates it.
fn is_negated(last: &str, before: &str) -> bool {
    let text = format!("{last} {before}");
    // Search only nearby: a long text with many keywords would be searched for each again.
    let start = text.char_indices().rev().nth(NEGATED_WITHIN);
    NEGATED.is_match(&text[start.map_or(0, |(start, _)| start)..])
}

/// The number in a fact, which may be a string.
pub(super) fn number_in(fact: &serde_json::Value) -> Option<u64> {
    let text = fact.as_str().and_then(|text| text.parse().ok());
    fact.as_u64().or(text)
}

/// Returns the pull request's number in an issue's notes or contracts.
pub fn pull_request_in(issue: &Issue) -> Option<u64> {
    let noted = noted(issue, PULL_REQUEST).and_then(number_in);
    noted.or_else(|| issue.facts.get(PULL_REQUEST).and_then(number_in))
}

/// Finds the open issues whose contracts or notes name this pull request.
pub(super) fn issues_of_pull_request(
    tip: &Snapshot<'_>,
    number: u64,
) -> Result<Vec<IssueKey>, LedgerError> {
    issues_with(tip, |issue| {
        let noted = issue.annotations.iter().rev();
        let is_beside = issue
            .annotations
            .iter()
            .any(|note| beside::number(note) == Some(number));
        let noted = noted.filter_map(|note| note.facts.get(PULL_REQUEST));
        let mut told = issue.facts.get(PULL_REQUEST).into_iter().chain(noted);
        is_beside || told.any(|told| number_in(told) == Some(number))
    })
}

/// Finds the open issues whose branch has this commit as its newest noted one.
fn issues_at(tip: &Snapshot<'_>, commit: &str) -> Result<Vec<IssueKey>, LedgerError> {
    issues_with(tip, |issue| {
        let mut noted = issue.annotations.iter().rev();
        let head = noted.find_map(|note| note.facts.get(HEAD)?.as_str());
        let is_own = head.is_some_and(|head| head.eq_ignore_ascii_case(commit));
        is_own || beside::number_at(issue, commit).is_some()
    })
}

fn issues_with(
    tip: &Snapshot<'_>,
    is_it: impl Fn(&Issue) -> bool,
) -> Result<Vec<IssueKey>, LedgerError> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for entry in tip.open()? {
        let key = entry.id.issue();
        if seen.len() == LOOK_THROUGH {
            break;
        }
        if seen.insert(key.clone()) {
            let issue = tip.issue(key)?.issue()?;
            found.extend(issue.filter(&is_it).map(|_| key.clone()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use handoff::base::ids::IssueKey;

    use super::closed_by as found_by;

    fn closed_by(text: &str, own: Option<&str>) -> Vec<IssueKey> {
        found_by(text, |of, number| {
            let is_own = of.is_none_or(|of| own.is_some_and(|own| own.eq_ignore_ascii_case(of)));
            is_own.then(|| number.parse().ok())?
        })
    }

    #[test]
    fn a_keyword_names_the_issue() {
        let own = Some("Octo/Parcels");
        for (text, issue) in [
            ("Closes #12", Some("12")),
            ("a\r\nit fixes: #7, resolves #8", Some("7")),
            ("resolved octo/parcels#9", Some("9")),
            ("closes other/parcels#9 and closes #10", Some("10")),
            (
                "fixed https://github.com/octo/parcels/issues/31.",
                Some("31"),
            ),
            ("fixes https://github.com/octo/other/issues/31", None),
            ("close GH-5", Some("5")),
            ("discloses #3", None),
            ("closes #0", None),
            ("closes 12", None),
            ("see #12", None),
            ("<!-- closes #12 -->", None),
            ("```\ncloses #12\n```", None),
            ("`closes #12`", None),
            ("    closes #12", None),
            ("closes #12abc", None),
            ("this does not close #12", None),
            ("it doesn't fix #12, and closes #13", Some("13")),
            ("never fully resolves #12", None),
            ("cannot yet be closed: closes #12", Some("12")),
            ("not only style: fixes #12", Some("12")),
            ("it does not only fix #12", Some("12")),
            ("does **not** close #12", None),
            ("this does not\nclose #12", None),
            ("Is it not?\n\nCloses #12", Some("12")),
            ("no longer closes #12", None),
            ("doesnt fix #12", None),
            ("does not close #11 or fix #12", None),
            ("rather than fix #12, closes #13", Some("13")),
            ("~~closes #12~~", None),
            ("> closes #12", None),
            ("> closes #12\n\nfixes #13", Some("13")),
        ] {
            let found = closed_by(text, own);
            assert_eq!(found.first().map(|k| k.as_str()), issue, "{text}");
        }
    }

    #[test]
    fn every_issue_that_a_text_closes_counts_once() {
        let found = closed_by("Closes #12, fixes #7 and resolves #12.\nNot #9.", None);
        let found: Vec<&str> = found.iter().map(|key| key.as_str()).collect();
        assert_eq!(found, ["12", "7"]);
    }
}
