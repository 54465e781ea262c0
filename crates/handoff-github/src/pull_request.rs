//! A pull request as GitHub describes it, in an event or by its API: its issues, and whether a
//! gate's policy exempts it.

use handoff::base::ObjectId;
use handoff::base::ids::IssueKey;
use handoff::base::text::cut;
use handoff::ledger::{LedgerError, Snapshot};
use handoff::model::{Exemption, GatePolicy};
use regex::Regex;
use serde_json::{Value, json};

use super::event::{Event, Naming, Subject};

/// The maximum length of a name that is shown, in characters.
const SHOWN: usize = 80;

/// A pull request.
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Its newest commit.
    pub head: ObjectId,
    /// Whether it is open.
    pub is_open: bool,
    /// An event about it.
    event: Event,
    author: String,
    labels: Vec<String>,
    /// Its branch, if it is in the repository itself.
    branch: Option<String>,
    /// The branch that it is to be merged into.
    pub into: String,
    /// The issues that it closes, from GitHub, if it was asked.
    closes: Vec<IssueKey>,
    /// Why GitHub did not answer, if it was asked.
    pub unasked: Option<String>,
}

/// Why a description of a pull request is invalid.
#[derive(Debug, thiserror::Error)]
#[error("it is not a pull request as GitHub describes it: {place} is missing or invalid")]
pub struct NoPullRequest {
    place: &'static str,
}

/// The parsed name of a merge queue's branch for a pull request.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueBranch<'a> {
    /// The branch into which it is to be merged.
    pub into: &'a str,
    /// The number of the pull request.
    pub number: u64,
    /// The commit that it is merged into, from the name.
    pub base: Option<ObjectId>,
}

impl PullRequest {
    /// Parses it, from a payload or the API.
    ///
    /// # Errors
    /// [`NoPullRequest`] if a required member is missing.
    pub fn read(described: &Value) -> Result<Self, NoPullRequest> {
        let text = |place: &'static str| {
            let found = described.pointer(place).and_then(Value::as_str);
            found.ok_or(NoPullRequest { place })
        };
        let repository = described.pointer("/base/repo");
        let payload = json!({
            "action": "synchronize",
            "pull_request": described,
            "repository": repository,
        });
        let payload = payload.to_string();
        let event = Event::read("pull_request", payload.as_bytes());
        let event = event.map_err(|_| NoPullRequest { place: "/" })?;
        let number = described.get("number").and_then(Value::as_u64);
        let head = text("/head/sha")?.parse();
        let labels = described.get("labels").and_then(Value::as_array);
        let labels = labels.into_iter().flatten();
        Ok(Self {
            number: number.ok_or(NoPullRequest { place: "/number" })?,
            head: head.map_err(|_| NoPullRequest { place: "/head/sha" })?,
            is_open: text("/state")? == "open",
            // A deleted account has no login, and matches nobody.
            author: text("/user/login").unwrap_or_default().to_owned(),
            labels: labels
                .filter_map(|label| Some(label.get("name")?.as_str()?.to_owned()))
                .collect(),
            branch: if event.is_from_fork() {
                None
            } else {
                Some(text("/head/ref")?.to_owned())
            },
            into: text("/base/ref")?.to_owned(),
            closes: Vec::new(),
            unasked: None,
            event,
        })
    }

    /// Sets the issues that GitHub says the pull request closes; without any, its text and
    /// its branch decide.
    pub fn closing(&mut self, issues: Vec<IssueKey>) {
        self.closes = issues;
    }

    /// Finds its issues: those that it names, else the ledger's open ones with this pull request.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger can't be read.
    pub fn issues(&self, tip: &Snapshot<'_>) -> Result<Vec<IssueKey>, LedgerError> {
        Subject::of(&self.event, &Naming::of(tip, &self.closes)?).known(tip, &self.event)
    }

    /// The reason for its exemption, with the conditions that it meets; `None` if it is not exempt.
    /// `changes_only` tells whether it changes only paths that match the patterns.
    ///
    /// Why the exemption can't be judged, as a sentence, if nothing else exempts it.
    pub fn exemption(
        &self,
        policy: &GatePolicy,
        has_issue: bool,
        changes_only: impl Fn(&[String]) -> Result<bool, String>,
    ) -> Result<Option<String>, String> {
        let mut trouble = None;
        for exemption in &policy.exempt {
            let Some(met) = self.meets(exemption, has_issue) else {
                continue;
            };
            match exemption.paths.as_deref().map(&changes_only) {
                Some(Ok(false)) => {}
                Some(Err(why)) => trouble = Some(why),
                None | Some(Ok(true)) => {
                    let paths = exemption
                        .paths
                        .iter()
                        .map(|p| format!("only {}", p.join(", ")));
                    let met: Vec<String> = met.into_iter().chain(paths).collect();
                    return Ok(Some(format!("{} ({})", exemption.reason, met.join("; "))));
                }
            }
        }
        trouble.map_or(Ok(None), Err)
    }

    /// The conditions of an exemption that it meets; `None` if it misses any. Paths are not checked
    /// here.
    fn meets(&self, exemption: &Exemption, has_issue: bool) -> Option<Vec<String>> {
        let mut met = Vec::new();
        let mut one = |what: &str, found: Option<&str>| {
            met.push(format!("{what} {}", cut(found?, SHOWN)));
            Some(())
        };
        if let Some(authors) = &exemption.authors {
            let mut authors = authors.iter();
            // GitHub ignores the case of logins.
            let is_by = |name: &&String| name.eq_ignore_ascii_case(&self.author);
            one("by", authors.find(is_by).map(String::as_str))?;
        }
        if let Some(labels) = &exemption.labels {
            let mut own = self.labels.iter();
            let is_listed = |own: &&String| labels.iter().any(|one| one.eq_ignore_ascii_case(own));
            one("label", own.find(is_listed).map(String::as_str))?;
        }
        if let Some(patterns) = &exemption.branches {
            let branch = self.branch.as_deref();
            one("from", branch.filter(|branch| is_any(patterns, branch)))?;
        }
        if let Some(patterns) = &exemption.into {
            one(
                "into",
                Some(&*self.into).filter(|into| is_any(patterns, into)),
            )?;
        }
        if exemption.without_issue.is_some() {
            // An issue may be linked only on GitHub: if GitHub did not answer, there may be one.
            let has_none = !has_issue && self.unasked.is_none();
            one("without", has_none.then_some("an issue"))?;
        }
        Some(met)
    }
}

impl<'a> QueueBranch<'a> {
    /// Parses `refs/heads/gh-readonly-queue/main/pr-104-COMMIT`.
    pub fn read(name: &'a str) -> Option<Self> {
        let name = name.strip_prefix("refs/heads/").unwrap_or(name);
        let name = name.strip_prefix("gh-readonly-queue/")?;
        let (into, entry) = name.rsplit_once('/')?;
        let (number, base) = entry.strip_prefix("pr-")?.split_once('-')?;
        Some(Self {
            into,
            number: number.parse().ok()?,
            base: base.parse().ok(),
        })
    }
}

/// Whether a name matches one of these patterns, in which `*` stands for any characters.
fn is_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| {
        let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
        let whole = Regex::new(&format!("(?s)^{}$", parts.join(".*")));
        whole.is_ok_and(|whole| whole.is_match(name))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{PullRequest, QueueBranch, is_any};
    use handoff::model::GatePolicy;
    use serde_json::{Value, json};

    fn described() -> Value {
        let here = json!({ "id": 1, "full_name": "octo/parcels" });
        json!({
            "number": 7, "state": "open", "title": "x", "body": null,
            "user": { "login": "renovate[bot]" }, "labels": [{ "name": "Dependencies" }],
            "head": { "sha": "1".repeat(40), "ref": "renovate/serde", "repo": here },
            "base": { "ref": "main", "repo": here },
        })
    }

    fn exempt(described: &Value, exempt: &Value) -> Result<Option<String>, String> {
        let policy = json!({ "format": 1, "exempt": [exempt] }).to_string();
        let policy = GatePolicy::parse(policy.as_bytes()).unwrap();
        let pull_request = PullRequest::read(described).unwrap();
        pull_request.exemption(&policy, false, |patterns| match &patterns[0][..] {
            "gone" => Err("commit 1 is not here".to_owned()),
            pattern => Ok(pattern == "Cargo.lock"),
        })
    }

    #[test]
    fn each_condition_must_hold() {
        let own = described();
        let says = |rule: Value| exempt(&own, &rule).map(|found| found.unwrap_or_default());
        let all = json!({ "reason": "updates", "authors": ["Renovate[bot]"], "labels": ["dependencies"],
            "paths": ["Cargo.lock"], "branches": ["renovate/*"], "into": ["main"], "without_issue": true });
        assert_eq!(
            says(all.clone()).unwrap(),
            "updates (by Renovate[bot]; label Dependencies; from renovate/serde; into main; without an issue; only Cargo.lock)"
        );
        for (name, value) in [
            ("authors", json!(["renovate"])),
            ("labels", json!(["dependencies "])),
            ("paths", json!(["src/**"])),
            ("branches", json!(["renovate"])),
            ("into", json!(["release/*"])),
        ] {
            let mut rule = all.clone();
            rule[name] = value;
            assert_eq!(says(rule).unwrap(), "", "{name}");
        }
        let mut rule = all;
        rule["paths"] = json!(["gone"]);
        assert_eq!(says(rule).unwrap_err(), "commit 1 is not here");
    }

    #[test]
    fn the_branch_of_a_fork_is_nobodys_rule() {
        let mut fork = described();
        fork["head"]["repo"] = json!({ "id": 2, "full_name": "mallory/parcels" });
        let rule = json!({ "reason": "bots", "branches": ["*"] });
        assert_eq!(exempt(&fork, &rule), Ok(None));
        fork["head"]["repo"] = Value::Null;
        assert_eq!(exempt(&fork, &rule), Ok(None));
        assert!(exempt(&described(), &rule).unwrap().is_some());
    }

    #[test]
    fn patterns_and_queue_branches_are_read() {
        let is = |pattern: &str, name: &str| is_any(&[pattern.to_owned()], name);
        assert!(is("release/*", "release/1.2") && is("*", "x\ny") && is("a*c", "abc"));
        assert!(!is("release/*", "prerelease/1") && !is("a.c", "abc") && !is("a", "ab"));
        let id = "2".repeat(40);
        let name = format!("refs/heads/gh-readonly-queue/release/1/pr-104-{id}");
        let read = QueueBranch::read(&name).unwrap();
        assert_eq!((read.into, read.number), ("release/1", 104));
        assert_eq!(read.base.unwrap().to_string(), id);
        for other in [
            "main",
            "gh-readonly-queue/main",
            "gh-readonly-queue/main/pr-x-1",
        ] {
            assert_eq!(QueueBranch::read(other), None, "{other}");
        }
    }
}
