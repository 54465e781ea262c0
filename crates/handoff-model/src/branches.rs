//! Code branches: which issue a branch is named after, and which branches agents may write to.

use std::sync::LazyLock;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{HandoffId, IssueKey};
use handoff_base::text::{is_misleading, quoted};
use regex::Regex;

/// The patterns by which branches are named after issues.
#[derive(Clone, Debug, Default)]
pub struct BranchPatterns(Vec<String>);

/// What decides whether agents may write to a branch.
#[derive(Clone, Copy, Debug)]
pub struct BranchContext<'a> {
    /// The issue that the agents work on.
    pub issue: &'a IssueKey,
    /// The ledger's branch.
    pub ledger_branch: &'a str,
    /// The default branch, if known: the remote's, or what stands in for it.
    pub default_branch: Option<&'a str>,
    /// The base branch of the issue's work, if known.
    pub base: Option<&'a str>,
    /// The patterns of branch names.
    pub patterns: &'a BranchPatterns,
    /// Whether the branch was created for this issue.
    pub made_here: bool,
}

/// Why agents may not write to a branch, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BranchRefusal {
    /// It is not the name of a branch.
    #[error(
        "{} is not the name of a branch: {why}; name it as `git branch` lists it",
        quoted(branch)
    )]
    NotAName {
        /// The name.
        branch: String,
        /// Why.
        why: &'static str,
    },
    /// It is the ledger's branch, or conflicts with its name.
    #[error("{} {}; name the branch that the work is on", quoted(branch), clash.of("the ledger's branch", ledger))]
    Ledger {
        /// The name.
        branch: String,
        /// The ledger's branch.
        ledger: String,
        /// The kind of conflict.
        clash: BranchClash,
    },
    /// It is a base branch, or conflicts with the name of one.
    #[error("{} {}; agents do not write to it: use handoff/{issue}, or another branch named after the issue", quoted(branch), clash.of("a branch that work is merged into", protected))]
    Protected {
        /// The name.
        branch: String,
        /// The base branch.
        protected: String,
        /// The kind of conflict.
        clash: BranchClash,
        /// The issue.
        issue: IssueKey,
    },
    /// It belongs to another issue, or to none.
    #[error("{} is not named after issue {issue}{}; use handoff/{issue}, or say in `github.branches` of the protocol how branches are named", quoted(branch), named_after(named.as_ref()))]
    NotTheIssues {
        /// The name.
        branch: String,
        /// The issue.
        issue: IssueKey,
        /// The issue that it is named after, if any.
        named: Option<IssueKey>,
    },
}

/// How the names of two branches conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchClash {
    /// Their names are equal, ignoring case.
    Same,
    /// One is a parent folder of the other.
    Folder,
}

impl BranchClash {
    fn between(branch: &str, other: &str) -> Option<Self> {
        let (branch, other) = (folded(branch), folded(other));
        let is_below = |one: &str, other: &str| {
            let below = one.strip_prefix(other);
            below.is_some_and(|below| below.starts_with('/'))
        };
        if branch == other {
            Some(Self::Same)
        } else if is_below(&branch, &other) || is_below(&other, &branch) {
            Some(Self::Folder)
        } else {
            None
        }
    }

    fn of(self, what: &str, name: &str) -> String {
        match self {
            Self::Same => format!("is {what}, {name}"),
            Self::Folder => format!("can't be there beside {what}, {name}"),
        }
    }
}

fn named_after(named: Option<&IssueKey>) -> String {
    named.map_or_else(String::new, |named| format!(", but after {named}"))
}

/// Base branches in every repository, whatever its default branch is.
const USUAL_BASES: [&str; 2] = ["main", "master"];

/// Decides whether agents may commit to a branch. It must belong to the issue: by name, as
/// `handoff/ISSUE` or below it, as a part's branch, or because it was created for the issue. It
/// must not be a base branch or the ledger's. Case is ignored, as some file systems do.
///
/// # Errors
/// A [`BranchRefusal`].
pub fn branch_for_agents(branch: &str, context: &BranchContext<'_>) -> Result<(), BranchRefusal> {
    let issue = context.issue;
    let not_a_name = |why| BranchRefusal::NotAName {
        branch: branch.to_owned(),
        why,
    };
    if let Some(why) = name_fault(branch).or_else(|| ambiguity(branch)) {
        return Err(not_a_name(why));
    }
    nameable(branch, Some(context.ledger_branch))?;
    let known = [context.default_branch, context.base];
    let known = known.into_iter().flatten().map(short_name);
    for protected in known.chain(USUAL_BASES) {
        if let Some(clash) = BranchClash::between(branch, protected) {
            return Err(BranchRefusal::Protected {
                branch: branch.to_owned(),
                protected: protected.to_owned(),
                clash,
                issue: issue.clone(),
            });
        }
    }
    let own = format!("handoff/{issue}");
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    let part = branch.strip_prefix("handoff/").map(str::parse::<HandoffId>);
    if context.made_here
        || branch.strip_prefix(&own).is_some_and(is_below)
        || part.is_some_and(|part| part.is_ok_and(|part| part.issue() == issue))
        || context.patterns.is_named_after(branch, issue)
    {
        return Ok(());
    }
    Err(BranchRefusal::NotTheIssues {
        branch: branch.to_owned(),
        issue: issue.clone(),
        named: context.patterns.issue(branch),
    })
}

/// Refuses a name that a contract can't give as its code branch: an invalid branch name, or the
/// ledger's branch. A leading `refs/heads/` is allowed.
///
/// # Errors
/// A [`BranchRefusal`].
pub fn nameable(branch: &str, ledger_branch: Option<&str>) -> Result<(), BranchRefusal> {
    let name = branch.strip_prefix("refs/heads/").unwrap_or(branch);
    if let Some(why) = name_fault(name) {
        return Err(BranchRefusal::NotAName {
            branch: branch.to_owned(),
            why,
        });
    }
    let ledger = ledger_branch.map(short_name);
    let clash = ledger.and_then(|ledger| Some((ledger, BranchClash::between(name, ledger)?)));
    match clash {
        Some((ledger, clash)) => Err(BranchRefusal::Ledger {
            branch: branch.to_owned(),
            ledger: ledger.to_owned(),
            clash,
        }),
        None => Ok(()),
    }
}

impl BranchRefusal {
    /// The finding for a contract that names the branch at this place.
    pub fn finding(&self, at: &str) -> Finding {
        Finding::error(FindingCode::BranchRefused, at, self.to_string())
    }
}

/// A branch name without `refs/heads/`.
pub fn short_name(branch: &str) -> &str {
    let prefixes = ["refs/heads/", "refs/remotes/origin/", "origin/"];
    let mut found = prefixes.iter().filter_map(|p| branch.strip_prefix(p));
    found.next().unwrap_or(branch)
}

/// A case-folded name, for comparisons as on case-insensitive file systems.
fn folded(name: &str) -> String {
    // To upper case first, which turns the long s into an S.
    name.to_uppercase().to_lowercase()
}

/// Why a text is not usable as a branch name: the rules of `git check-ref-format --branch`, and
/// names that git would read as something else, or that are unreadable.
fn name_fault(name: &str) -> Option<&'static str> {
    let is_bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let parts = || name.split('/');
    Some(match name {
        "" => "it is empty",
        "@" => "it stands for HEAD",
        _ if name.starts_with(['-', '+']) => "it begins like an option",
        _ if name.contains(is_bad) => "it has a blank or a sign that git keeps for itself",
        _ if name.contains("..") || name.contains("@{") => "it has .. or @{",
        _ if name.chars().any(is_misleading) => "it has a character that is not seen",
        _ if parts().any(str::is_empty) => "a part of it is empty",
        _ if name.ends_with('.') || parts().any(|part| part.starts_with('.')) => {
            "a part of it begins, or all of it ends, with a dot"
        }
        _ if parts().any(|part| folded(part).ends_with(".lock")) => "a part of it ends with .lock",
        _ if parts().any(|part| stands_for_a_commit(&folded(part))) => "it stands for a commit",
        _ if name.starts_with("refs/") => "it is a ref of another kind",
        _ => return None,
    })
}

/// Whether a part of a name is HEAD, a similar pseudo-ref, or an object id.
fn stands_for_a_commit(part: &str) -> bool {
    let is_id = [40, 64].contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit());
    part == "head" || part.ends_with("_head") || is_id
}

/// Why git could resolve a branch's name to another ref.
fn ambiguity(name: &str) -> Option<&'static str> {
    let first = folded(name.split_once('/')?.0);
    let is_kind = ["refs", "heads", "remotes", "tags", "origin"].contains(&&*first);
    is_kind.then_some("git may take it for another ref")
}

impl BranchPatterns {
    /// Compiles patterns such as `{type}/{issue}-*`; the default ones, if there are none.
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p String>) -> Self {
        Self(patterns.into_iter().cloned().collect())
    }

    /// The number of the issue that a branch is named after, if any.
    pub fn issue(&self, branch: &str) -> Option<IssueKey> {
        if self.0.is_empty() {
            return usually_named_by(branch);
        }
        if REVERT.is_match(branch) {
            return None;
        }
        let regexes = self.0.iter().filter_map(|one| pattern_regex(one, NUMBER));
        let found = regexes.into_iter().find_map(|regex| {
            let found = regex.captures(branch)?;
            Some(found.name("number")?.as_str().to_owned())
        });
        found?.parse().ok()
    }

    /// Whether a branch is named after an issue, whose key may be any text.
    pub fn is_named_after(&self, branch: &str, issue: &IssueKey) -> bool {
        if is_number(issue.as_str()) {
            return self.issue(branch).as_ref() == Some(issue);
        }
        if REVERT.is_match(branch) {
            return false;
        }
        let key = regex::escape(issue.as_str());
        if !self.0.is_empty() {
            let mut regexes = self.0.iter().filter_map(|one| pattern_regex(one, &key));
            return regexes.any(|regex| regex.is_match(branch));
        }
        // No number may follow the key: PROJ-1-2 may be another key.
        let last = format!("^(?:.*/)?{WORD}?{key}(?:[-_](?:[^0-9/][^/]*)?)?$");
        let folder = format!("^(?:.*/)?{WORD}?{key}/[^0-9].*$");
        let matches = |text: &str| Regex::new(text).is_ok_and(|regex| regex.is_match(branch));
        let is_other = || DATE.is_match(branch) || OTHER_BRANCH.is_match(branch);
        let is_folder = || matches(&folder) && usually_named_by(branch).is_none();
        (matches(&last) || is_folder()) && !is_other()
    }
}

/// A regex for an issue's number.
const NUMBER: &str = "(?P<number>[1-9][0-9]{0,17})";

/// A regex for words before an issue's key.
const WORD: &str = "(?i:(?:issues?|gh|(?:bug|hot)?fix|bug|feat|feature|task)[-_]?)";

/// Whether a key is such a number.
fn is_number(key: &str) -> bool {
    let digits = (1..=18).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_digit());
    digits && !key.starts_with('0')
}

/// Compiles a pattern such as `{type}/{issue}-*`, with `issue` as the regex for the key. `None` for
/// patterns that `protocol check` reports as faulty.
fn pattern_regex(pattern: &str, issue: &str) -> Option<Regex> {
    let mut text = String::from("^");
    let mut rest = pattern;
    while let Some(at) = rest.find(['{', '*']) {
        text += &regex::escape(&rest[..at]);
        if let Some(name) = rest[at..].strip_prefix('{') {
            let (name, after) = name.split_once('}')?;
            text += match name {
                "issue" => issue,
                _ => "[^/]+",
            };
            rest = after;
        } else {
            text += ".*";
            rest = &rest[at + 1..];
        }
    }
    text += &regex::escape(rest);
    Regex::new(&(text + "$")).ok()
}

// Matches 12, issue-12, feature/12-title, feature/issue_12/more, codex/issue12, copilot/fix-12.
#[allow(clippy::expect_used)]
static BRANCH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        "^(?P<before>.*/)?(?P<word>{WORD})?{NUMBER}(?:[-_/].*)?$"
    ))
    .expect("the expression is one")
});

// GitHub's branch name for reverting pull request 46, whatever its branch was named.
#[allow(clippy::expect_used)]
static REVERT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^revert-[0-9]+-").expect("the expression is one"));

// Not issues: revert-46-feature/12-title reverts pull request 46; release/62, backport/12.
#[allow(clippy::expect_used)]
static OTHER_BRANCH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:.*/)?(?:revert-|(?:[a-z]+-?)?releases?/|(?:rel|versions?|v|tags?|stable|support|sprints?|milestones?|backports?|bp|mergify|dependabot|renovate)/)")
        .expect("the expression is one")
});

// Not issues: 2024-12-01, feature/2024_12-notes.
#[allow(clippy::expect_used)]
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:.*/)?(?:19|20)[0-9]{2}[-_/.]?(?:0[1-9]|1[0-2])(?:[-_/.]|[0-3][0-9]|$)")
        .expect("the expression is one")
});

/// The issue that a branch is named after by the default patterns, unless the number is a date, a
/// year, a release, or belongs to another kind of branch.
fn usually_named_by(branch: &str) -> Option<IssueKey> {
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

#[cfg(test)]
mod tests {
    use handoff_base::ids::IssueKey;

    use super::{
        BranchClash, BranchContext, BranchPatterns, BranchRefusal, NUMBER, branch_for_agents,
        nameable, pattern_regex, usually_named_by,
    };

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
            let found = usually_named_by(branch);
            assert_eq!(found.as_ref().map(|k| k.as_str()), issue, "{branch}");
        }
    }

    #[test]
    fn a_pattern_says_how_branches_are_named() {
        let number = |pattern: &str, branch: &str| {
            let found = pattern_regex(pattern, NUMBER)?.captures(branch)?["number"].to_owned();
            Some(found)
        };
        let some = |number: &str| Some(number.to_owned());
        assert_eq!(number("{type}/{issue}-*", "feat/12-more/x"), some("12"));
        assert_eq!(number("{type}/{issue}-*", "a/b/12-more"), None);
        assert_eq!(number("copilot/fix-{issue}", "copilot/fix-12"), some("12"));
        assert_eq!(number("copilot/fix-{issue}", "copilot/fix-12x"), None);
        assert_eq!(number("a.b/{issue}", "axb/12"), None);
    }
    fn key(text: &str) -> IssueKey {
        text.parse().expect("a key")
    }

    fn judged(
        branch: &str,
        issue: &str,
        with: impl Fn(&mut BranchContext<'_>),
    ) -> Result<(), BranchRefusal> {
        let (issue, patterns) = (key(issue), BranchPatterns::default());
        let mut context = BranchContext {
            issue: &issue,
            ledger_branch: "handoffs",
            default_branch: Some("trunk"),
            base: Some("origin/develop"),
            patterns: &patterns,
            made_here: false,
        };
        with(&mut context);
        branch_for_agents(branch, &context)
    }

    #[test]
    fn agents_write_to_the_branch_of_their_issue() {
        for (branch, issue) in [
            ("issue-12", "12"),
            ("12", "12"),
            ("feature/12-größe", "12"),
            ("copilot/fix-12", "12"),
            ("handoff/12", "12"),
            ("handoff/12/second-try", "12"),
            ("handoff/12.3", "12"),
            ("handoff/PROJ-12", "PROJ-12"),
            ("PROJ-12", "PROJ-12"),
            ("feature/PROJ-12-more", "PROJ-12"),
            ("issue/PROJ-12_more", "PROJ-12"),
            ("PROJ-12/part", "PROJ-12"),
            ("art-1", "art-1"),
            ("fix/art-1", "art-1"),
            ("issue-12", "issue-12"),
            ("0", "0"),
        ] {
            assert_eq!(judged(branch, issue, |_| ()), Ok(()), "{branch} {issue}");
        }
        let mine = |context: &mut BranchContext<'_>| context.made_here = true;
        assert_eq!(judged("tidy-up", "12", mine), Ok(()));
    }

    #[test]
    fn what_is_no_branch_is_refused_even_if_it_was_made_here() {
        for branch in [
            "",
            "@",
            "HEAD",
            "head",
            "Head",
            "origin/HEAD",
            "FETCH_HEAD",
            "issue-12/HEAD",
            "-x",
            "+x",
            "--force",
            "issue-12..main",
            "issue-12@{1}",
            "issue 12",
            "issue-12^",
            "issue-12~1",
            "issue-12:main",
            "issue-12*",
            "issue-12?",
            "issue-12[",
            "issue-12\\",
            "issue-12\n",
            "issue-12\u{7f}",
            "issue-12.lock",
            "issue-12.LOCK",
            "issue-12.lock/x",
            "issue-12.",
            ".issue-12",
            "x/.issue-12",
            "/issue-12",
            "issue-12/",
            "x//issue-12",
            "refs/heads/issue-12",
            "refs/heads/main",
            "refs/12",
            "heads/main",
            "heads/issue-12",
            "origin/main",
            "origin/issue-12",
            "Origin/12",
            "tags/12",
            "remotes/origin/12",
            "issue-12\u{200b}",
            "\u{202e}issue-12",
            "ma\u{200c}in",
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        ] {
            let mine = |context: &mut BranchContext<'_>| context.made_here = true;
            let refused = judged(branch, "12", mine);
            assert!(
                matches!(refused, Err(BranchRefusal::NotAName { .. })),
                "{branch:?}: {refused:?}"
            );
        }
    }

    #[test]
    fn no_agent_writes_to_what_work_is_merged_into() {
        for branch in [
            "main",
            "Main",
            "MAIN",
            "master",
            "MaSter",
            "ma\u{17f}ter",
            "trunk",
            "Trunk",
            "develop",
            "Develop",
            "main/12",
            "develop/issue-12",
            "TRUNK/issue-12",
        ] {
            let mine = |context: &mut BranchContext<'_>| context.made_here = true;
            let refused = judged(branch, "12", mine);
            let is_it = matches!(refused, Err(BranchRefusal::Protected { .. }));
            assert!(is_it, "{branch}: {refused:?}");
        }
        // A base branch stays protected even if it is named after the issue.
        let stacked = |context: &mut BranchContext<'_>| context.base = Some("issue-12");
        let refused = judged("Issue-12", "12", stacked).expect_err("the base");
        assert_eq!(
            refused.to_string(),
            "\"Issue-12\" is a branch that work is merged into, issue-12; agents do not write to it: use handoff/12, \
             or another branch named after the issue"
        );
        for branch in ["main", "main/x"] {
            assert!(judged(branch, "main", |_| ()).is_err(), "{branch}");
        }
    }

    #[test]
    fn nobody_writes_to_the_ledger() {
        for (branch, ledger, clash) in [
            ("handoffs", "handoffs", BranchClash::Same),
            ("HANDOFFS", "handoffs", BranchClash::Same),
            ("handoffs", "refs/heads/handoffs", BranchClash::Same),
            ("handoffs/12", "handoffs", BranchClash::Folder),
            ("agents", "agents/ledger", BranchClash::Folder),
        ] {
            let refused = nameable(branch, Some(ledger));
            let is_it = matches!(&refused, Err(BranchRefusal::Ledger { clash: found, .. }) if *found == clash);
            assert!(is_it, "{branch}: {refused:?}");
            let of = |context: &mut BranchContext<'_>| {
                context.ledger_branch = ledger;
                context.made_here = true;
            };
            assert_eq!(judged(branch, "12", of), refused, "{branch}");
        }
        assert!(nameable("refs/heads/handoffs", Some("handoffs")).is_err());
        assert!(nameable("handoffs", None).is_ok());
    }

    #[test]
    fn no_agent_writes_to_the_branch_of_another_issue() {
        for (branch, issue) in [
            ("issue-13", "12"),
            ("issue-120", "12"),
            ("3/12-title", "3"),
            ("handoff/120", "12"),
            ("handoff/12x", "12"),
            ("handoff/120.1", "12"),
            ("handoff/12.x", "12"),
            ("Handoff/PROJ-12/x", "PROJ-1"),
            ("tidy-up", "12"),
            ("release/12", "12"),
            ("2024-roadmap", "2024"),
            ("revert-46-feature/12-title", "12"),
            ("PROJ-1-2", "PROJ-1"),
            ("PROJ-12", "PROJ-1"),
            ("XPROJ-1", "PROJ-1"),
            ("proj-1", "PROJ-1"),
            ("release/PROJ-1", "PROJ-1"),
            ("feature/12-title", "feature"),
            ("feature/issue-12", "feature"),
            ("a.b", "aXb"),
        ] {
            let refused = judged(branch, issue, |_| ());
            let is_it = matches!(refused, Err(BranchRefusal::NotTheIssues { .. }));
            assert!(is_it, "{branch} {issue}: {refused:?}");
        }
        let refused = judged("issue-13", "12", |_| ()).expect_err("another issue's");
        assert_eq!(
            refused.to_string(),
            "\"issue-13\" is not named after issue 12, but after 13; use handoff/12, or say in `github.branches` of \
             the protocol how branches are named"
        );
    }

    #[test]
    fn patterns_say_which_branches_are_the_issues() {
        let patterns =
            BranchPatterns::new(&["bot/{issue}".to_owned(), "{user}/{issue}-*".to_owned()]);
        for (branch, issue, is_allowed) in [
            ("bot/12", "12", true),
            ("ann/12-x", "12", true),
            ("issue-12", "12", false),
            ("handoff/12", "12", true),
            ("bot/PROJ-1", "PROJ-1", true),
            ("bot/PROJ-12", "PROJ-1", false),
        ] {
            let issue = key(issue);
            let context = BranchContext {
                issue: &issue,
                ledger_branch: "handoffs",
                default_branch: None,
                base: None,
                patterns: &patterns,
                made_here: false,
            };
            let found = branch_for_agents(branch, &context);
            assert_eq!(found.is_ok(), is_allowed, "{branch}: {found:?}");
        }
    }
}
