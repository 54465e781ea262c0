//! What must be known of the issues once everything has arrived: what was said last of each thing, by the time at which
//! it happened, in whatever order it arrived.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Why nobody is handed an issue's work, and who goes on all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It was closed as completed: who validates and closes goes on.
    Done,
    GivenUp,
    /// It was transferred or deleted.
    Gone,
}

impl Rest {
    pub(super) fn except(self) -> Value {
        match self {
            Self::Done => json!(["closer-agent", "validator-agent"]),
            Self::GivenUp | Self::Gone => Value::Null,
        }
    }
}

/// What a reviewer said of a pull request, or a check of a commit.
#[derive(Debug)]
struct Word {
    by: String,
    says: String,
    /// The pull request, or the commit.
    about: String,
    at: i64,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    /// By issue and name: the value, and since when.
    facts: BTreeMap<(u64, &'static str), (Value, i64)>,
    reviews: Vec<Word>,
    checks: Vec<Word>,
    /// What those say in reviews who may write: what, of which commit, in which review, and when.
    pub(super) persons: Vec<(String, String, u64, i64)>,
    /// By issue.
    rests: BTreeMap<u64, Vec<(i64, Rest)>>,
    reopened: BTreeMap<u64, Vec<i64>>,
    /// When the agents completed the first issue, in the ledger.
    pub(super) completed: Option<i64>,
    /// Who has the work.
    pub(super) turn: &'static str,
    /// The commit that the agents' review approves.
    pub(super) approved: Option<String>,
    /// The commit to which the validator objects: that ends with other code, or by who objects.
    pub(super) objected: Option<String>,
}

impl Model {
    pub(super) fn known(&mut self, issues: &[u64], at: i64, facts: &[(&'static str, Value)]) {
        for issue in issues {
            for (name, value) in facts {
                self.facts.insert((*issue, name), (value.clone(), at));
            }
        }
    }

    pub(super) fn reviewed(&mut self, by: &str, says: &str, pull: u64, at: i64) {
        let about = pull.to_string();
        word(&mut self.reviews, (by, says, about), at);
    }

    pub(super) fn checked(&mut self, by: &str, says: &str, commit: &str, at: i64) {
        word(&mut self.checks, (by, says, commit.to_owned()), at);
    }

    pub(super) fn rests(&mut self, issue: u64, at: i64, why: Rest) {
        self.rests.entry(issue).or_default().push((at, why));
    }

    pub(super) fn goes_on(&mut self, issue: u64, at: i64) {
        self.reopened.entry(issue).or_default().push(at);
    }

    fn last_reopened(&self, issue: u64) -> i64 {
        let all = self.reopened.get(&issue).into_iter().flatten();
        all.copied().max().unwrap_or_default()
    }

    /// When the first issue was reopened after the agents had completed it; what was said before is of the round before.
    pub(super) fn again(&self, issue: u64) -> Option<i64> {
        let completed = self.completed.filter(|_| issue == super::ISSUE)?;
        let all = self.reopened.get(&issue).into_iter().flatten();
        all.copied().find(|at| *at > completed)
    }

    pub(super) fn is_completed(&self, issue: u64) -> bool {
        issue == super::ISSUE && self.completed.is_some() && self.again(issue).is_none()
    }

    /// The pause, if nobody is handed the issue's work.
    pub(super) fn resting(&self, issue: u64) -> Option<Rest> {
        if self.is_completed(issue) {
            return None;
        }
        let all = self.rests.get(&issue).into_iter().flatten();
        let newest = all.max_by_key(|(at, _)| *at)?;
        (newest.0 > self.last_reopened(issue)).then_some(newest.1)
    }

    /// Whether it may be that an agent is refused work now, for a pause.
    pub(super) fn was_ever_at_rest(&self, issue: u64) -> bool {
        self.rests.contains_key(&issue)
    }

    pub(super) fn facts(&self, issue: u64) -> BTreeMap<&'static str, Value> {
        let since = self.again(issue).unwrap_or_default();
        let own = self
            .facts
            .iter()
            .filter(|((of, _), (_, at))| *of == issue && *at > since);
        own.map(|((_, name), (value, _))| (*name, value.clone()))
            .collect()
    }

    /// Whether a person may have approved a commit: a review that approves it was not dismissed, and nobody asked for
    /// changes to it since.
    pub(super) fn may_be_approved_by_person(&self, commit: &str) -> bool {
        let all = &self.persons;
        let ends = |id: u64, at: i64| {
            all.iter().any(|(says, of, other, when)| match &**says {
                "dismissed" => *other == id,
                "changes_requested" => of == commit && *when >= at,
                _ => false,
            })
        };
        all.iter()
            .any(|(says, of, id, at)| says == "approved" && of == commit && !ends(*id, *at))
    }

    /// The reviewers of an issue's pull request, and what each said last.
    pub(super) fn review_words(&self, issue: u64, pull: u64) -> BTreeMap<String, String> {
        let since = self.again(issue).unwrap_or_default();
        newest(&self.reviews, &pull.to_string(), since)
    }

    pub(super) fn check_words(&self, issue: u64, head: &str) -> BTreeMap<String, String> {
        // Checks name their issue by the branch, and that is the first one.
        if issue != super::ISSUE {
            return BTreeMap::new();
        }
        newest(&self.checks, head, self.again(issue).unwrap_or_default())
    }
}

/// Adds a word; one that says `dismissed` is about an earlier one, by its time.
fn word(words: &mut Vec<Word>, (by, says, about): (&str, &str, String), at: i64) {
    words.push(Word {
        by: by.to_owned(),
        says: says.to_owned(),
        about,
        at,
    });
}

/// What each said last. What is taken back has the time of what it takes back, and comes after it.
fn newest(words: &[Word], about: &str, since: i64) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, (i64, String)> = BTreeMap::new();
    for word in words
        .iter()
        .filter(|word| word.about == about && word.at > since)
    {
        let known = found.get(&word.by).map_or(i64::MIN, |(at, _)| *at);
        if word.at >= known {
            found.insert(word.by.clone(), (word.at, word.says.clone()));
        }
    }
    found
        .into_iter()
        .map(|(by, (_, says))| (by, says))
        .collect()
}

/// Whether this is what all of them say together: of those that ask for something, else of those that neither ask nor agree,
/// else of those that agree, any may be shown.
pub(super) fn decides(words: &BTreeMap<String, String>, shown: Option<&str>) -> bool {
    let weight = |says: &str| match says {
        "changes_requested" | "failure" | "timed_out" | "startup_failure" | "action_required"
        | "error" => 3,
        "dismissed" => 0,
        "approved" | "success" | "neutral" | "skipped" => 1,
        _ => 2,
    };
    let most = words.values().map(|says| weight(says)).max();
    match shown {
        Some(shown) => words.values().any(|says| says == shown) && most == Some(weight(shown)),
        None => words.is_empty(),
    }
}
