//! The issue that an event is about.

use std::sync::LazyLock;

use handoff_base::ids::IssueKey;
use handoff_ledger::{LedgerError, Snapshot};
use handoff_model::View;
use handoff_protocol::EventKind;
use regex::Regex;

use super::markdown::spoken;
use super::payload::Event;

/// The limit of open issues to search for a pull request.
const LOOK_THROUGH: usize = 2000;

/// The fact that names an issue's pull request.
pub(super) const PULL_REQUEST: &str = "pr_number";

/// The associations of those who are trusted to say which issue their pull request is about. It gives
/// no right: who answers is asked of GitHub.
const KNOWN: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];

/// The issue and the pull request that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The issue, if the event names it.
    pub issue: Option<IssueKey>,
    /// The number of the pull request, if any.
    pub pull_request: Option<u64>,
}

// A keyword, then the number or the URL of an issue.
#[allow(clippy::expect_used)]
static CLOSING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:^|[^[:alnum:]])(?:close|fix|resolve)(?:s|d|es|ed)?:?[ \t]+(?:(?P<short>[\w.-]+/[\w.-]+)?#|https?://[\w.-]+/(?P<long>[\w.-]+/[\w.-]+)/issues/|gh-)(?P<number>[1-9][0-9]{0,17})\b",
    )
    .expect("the expression is one")
});

// 12, issue-12, feature/12-title, feature/issue_12/more, codex/issue12, copilot/fix-12.
#[allow(clippy::expect_used)]
static BRANCH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?P<before>.*/)?(?P<word>(?i:(?:issues?|gh|(?:bug|hot)?fix|bug|feat|feature|task)[-_]?))?(?P<number>[1-9][0-9]{0,17})(?:[-_/].*)?$",
    )
    .expect("the expression is one")
});

// revert-46-feature/12-title is GitHub's own for what undoes pull request 46; release/62, backport/12.
#[allow(clippy::expect_used)]
static OTHER_BRANCH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:.*/)?(?:revert-|(?:[a-z]+-?)?releases?/|(?:rel|versions?|v|tags?|stable|support|sprints?|milestones?|backports?|bp|mergify|dependabot|renovate)/)")
        .expect("the expression is one")
});

/// How far before a keyword it is looked for what denies it, in characters.
const NEGATED_WITHIN: usize = 120;

// Before a keyword: it is not closed.
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
    /// Finds the issue of an event: its own, the one that the text of a pull request closes, or the
    /// one that the branch is named after.
    pub fn of(event: &Event) -> Self {
        let repository = event.text("/repository/full_name");
        let closes = |body: Option<&str>| body.and_then(|body| closed_by(body, repository));
        let named = |branch: Option<&str>| branch.and_then(named_by);
        let key = |number: u64| {
            let number = Some(number).filter(|number| *number > 0)?;
            number.to_string().parse::<IssueKey>().ok()
        };
        let none = Self {
            issue: None,
            pull_request: None,
        };
        let Some(kind) = event.kind() else {
            return none;
        };
        match kind {
            EventKind::Issues => Self {
                issue: event.number("/issue/number").and_then(key),
                ..none
            },
            EventKind::IssueComment => {
                let number = event.number("/issue/number");
                match event.payload().pointer("/issue/pull_request") {
                    None | Some(serde_json::Value::Null) => Self {
                        issue: number.and_then(key),
                        ..none
                    },
                    // The payload does not say which repository the pull request is from, only
                    // its author: a stranger's text must not choose the issue that a comment answers.
                    Some(_) => Self {
                        issue: closes(event.text("/issue/body"))
                            .filter(|_| is_known(event.text("/issue/author_association"))),
                        pull_request: number,
                    },
                }
            }
            EventKind::PullRequest | EventKind::PullRequestReview => Self {
                issue: closes(event.text("/pull_request/body"))
                    .or_else(|| named(event.text("/pull_request/head/ref"))),
                pull_request: event.number("/pull_request/number"),
            },
            EventKind::WorkflowRun => Self {
                issue: named(event.text("/workflow_run/head_branch")),
                pull_request: event.number("/workflow_run/pull_requests/0/number"),
            },
            EventKind::CheckSuite => Self {
                issue: named(event.text("/check_suite/head_branch")),
                pull_request: event.number("/check_suite/pull_requests/0/number"),
            },
        }
    }
}

/// The issue that a text closes, unless it is in another repository.
fn closed_by(text: &str, repository: Option<&str>) -> Option<IssueKey> {
    let lines = spoken(text);
    let found = lines.iter().enumerate().flat_map(|(i, line)| {
        let last = i.checked_sub(1).map_or("", |last| &*lines[last]);
        let all = CLOSING.captures_iter(line);
        all.filter(move |found| {
            let all = found.get(0);
            all.is_some_and(|all| !is_negated(last, &line[..all.start()]))
        })
    });
    let mut own = found.filter(|found| {
        let of = found.name("short").or_else(|| found.name("long"));
        of.is_none_or(|of| repository.is_some_and(|own| own.eq_ignore_ascii_case(of.as_str())))
    });
    own.next()?["number"].parse().ok()
}

/// Whether what comes after this text, in its line and the last one, is denied.
fn is_negated(last: &str, before: &str) -> bool {
    let text = format!("{last} {before}");
    // What denies is near; a long text with many keywords would be read again for each.
    let start = text.char_indices().rev().nth(NEGATED_WITHIN);
    NEGATED.is_match(&text[start.map_or(0, |(start, _)| start)..])
}

// 2024-12-01, feature/2024_12-notes.
#[allow(clippy::expect_used)]
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:.*/)?(?:19|20)[0-9]{2}[-_/.]?(?:0[1-9]|1[0-2])(?:[-_/.]|[0-3][0-9]|$)")
        .expect("the expression is one")
});

/// The issue that a branch is named after, unless that is a date, a year, a release, or what a
/// branch of another kind is named after.
fn named_by(branch: &str) -> Option<IssueKey> {
    let line = branch.lines().next()?;
    if DATE.is_match(line) || OTHER_BRANCH.is_match(line) {
        return None;
    }
    let found = BRANCH.captures(line)?;
    let number = found.name("number")?.as_str();
    let is_bare = found.name("before").is_none() && found.name("word").is_none();
    let is_year = number.len() == 4 && (number.starts_with("19") || number.starts_with("20"));
    (!(is_bare && is_year)).then(|| number.parse().ok())?
}

/// The number in a fact, which may be a string.
pub(super) fn number_in(fact: &serde_json::Value) -> Option<u64> {
    let text = fact.as_str().and_then(|text| text.parse().ok());
    fact.as_u64().or(text)
}

/// Finds the open issue whose contracts or notes name this pull request.
///
/// # Errors
/// [`LedgerError`] if the ledger cannot be read.
pub fn pull_request_of(tip: &Snapshot<'_>, number: u64) -> Result<Option<IssueKey>, LedgerError> {
    let mut seen: Vec<IssueKey> = Vec::new();
    for entry in tip.open()? {
        let key = entry.id.issue();
        if seen.contains(key) {
            continue;
        }
        if seen.len() == LOOK_THROUGH {
            break;
        }
        seen.push(key.clone());
        let Some(issue) = tip.issue(key)?.issue()? else {
            continue;
        };
        let noted = issue.annotations.iter().rev();
        let noted = noted.filter_map(|note| note.facts.get(PULL_REQUEST));
        let mut told = issue.facts.get(PULL_REQUEST).into_iter().chain(noted);
        if told.any(|told| number_in(told) == Some(number)) {
            return Ok(Some(key.clone()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::{closed_by, named_by};

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
            assert_eq!(found.as_ref().map(|k| k.as_str()), issue, "{text}");
        }
    }

    #[test]
    fn a_branch_is_named_after_its_issue() {
        for (branch, issue) in [
            ("12", Some("12")),
            ("issue-12", Some("12")),
            ("Issue_12", Some("12")),
            ("feature/12-title", Some("12")),
            ("feature/12_title", Some("12")),
            ("agents/fix/issue-7-more", Some("7")),
            ("12/part", Some("12")),
            ("3/12-title", Some("12")),
            ("main", None),
            ("v2", None),
            ("release-12", None),
            ("12x", None),
            ("0", None),
            ("2024-12-01-notes", None),
            ("notes/2024-12", None),
            ("2024-notes", None),
            ("2024-roadmap", None),
            ("feature/2024-notes", Some("2024")),
            ("copilot/fix-12", Some("12")),
            ("codex/issue12", Some("12")),
            ("bug-12-title", Some("12")),
            ("revert-46-feature/12-title", None),
            ("revert-46-main", None),
            ("release/62", None),
            ("team/releases/62-rc", None),
            ("dependabot/npm/12", None),
            ("team/revert-46-feature/12-title", None),
            ("changeset-release/12", None),
            ("backport/12", None),
            ("20240101-x", None),
            ("hotfix-12", Some("12")),
            ("issues/12", Some("12")),
            ("issue-2024-12-01", Some("2024")),
            ("", None),
        ] {
            let found = named_by(branch);
            assert_eq!(found.as_ref().map(|k| k.as_str()), issue, "{branch}");
        }
    }
}
