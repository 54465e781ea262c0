//! Compares the ledger, the check and the comments with the model.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::model::decides;
use super::{ISSUE, Life};

impl Life {
    /// Whether a pull request's newest commit is approved, or only merges the base into one that is; and each of its issues
    /// has that.
    pub(super) fn may_merge(&self, number: u64) -> bool {
        let pull = self
            .hub
            .pulls
            .iter()
            .find(|pull| pull.number == number)
            .unwrap();
        let Some(approved) = &self.hub.model.approved else {
            return false;
        };
        let merges = &self.hub.merges;
        let changes_as = |head| std::iter::successors(Some(head), |head| merges.get(*head));
        let is_objected = |commit| self.hub.model.objected.as_ref() == Some(commit);
        pull.closes == [ISSUE]
            && !changes_as(approved).any(is_objected)
            && changes_as(&pull.head).any(|commit| commit == approved)
    }

    pub(super) fn judge(&mut self) {
        self.show();
        let fetched = self.hub.env().handoff(&["fetch"]);
        assert!([0, 5].contains(&fetched.status), "{}", fetched.shown);
        let issues: Vec<u64> = self.hub.issues.keys().copied().collect();
        for issue in issues {
            self.judge_issue(issue);
        }
        self.judge_checks();
        self.judge_comments();
        self.judge_repositories();
    }

    fn judge_issue(&self, issue: u64) {
        let model = &self.hub.model;
        let data = self.hub.env().data(&["status", &issue.to_string()]);
        let is = &data["issue"];
        let status = if model.is_completed(issue) {
            "completed"
        } else {
            "open"
        };
        assert_eq!(is["status"], status, "issue {issue}");
        // Whether it rests, and for whom.
        let resting = model.resting(issue);
        assert_eq!(
            !is["paused"].is_null(),
            resting.is_some(),
            "issue {issue} is paused: {}, but {resting:?}",
            is["paused"]
        );
        if let Some(rest) = resting {
            assert_eq!(
                is["paused"].get("except").cloned().unwrap_or_default(),
                rest.except()
            );
        }
        // What is known, of what was said.
        for (name, value) in model.facts(issue) {
            // That there is none of what nobody ever named is no news.
            let is_none = value == json!([]) || value == "none";
            if is_none && data["known"].get(name).is_none() {
                continue;
            }
            assert_eq!(data["known"][name], value, "{name} of issue {issue}");
        }
        let pull = self.hub.pulls.iter().rev();
        let pull = pull.filter(|pull| !pull.is_fork && pull.closes.contains(&issue));
        let known = &data["known"]["pr_number"];
        let pull = pull.clone().find(|pull| *known == pull.number);
        let (number, head) = pull
            .map(|pull| (pull.number, &*pull.head))
            .unwrap_or_default();
        for (title, fact, words) in [
            (
                "Reviews on GitHub",
                "review_state",
                model.review_words(issue, number),
            ),
            (
                "Checks of CI",
                "ci_conclusion",
                model.check_words(issue, head),
            ),
        ] {
            let said = data["said"].as_array().unwrap().iter();
            let said = said.filter(|one| one["title"] == title);
            let text = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
            let said: BTreeMap<String, String> = said
                .map(|one| (text(one, "by"), text(one, "value")))
                .collect();
            assert_eq!(said, words, "{title} of issue {issue}");
            let shown = data["known"][fact].as_str();
            assert!(
                decides(&words, shown),
                "{fact} of issue {issue} is {shown:?}: {words:?}"
            );
        }
        let notes = data["record"]["annotations"].as_array();
        let mut notes = notes.into_iter().flatten().rev();
        let word = notes.find_map(|note| note.get("approval"));
        if let Some(word) = word.filter(|word| word["approved"] == true) {
            let commit = word["code"]["commit"].as_str().unwrap();
            assert!(
                model.may_be_approved_by_person(commit),
                "a person approves {commit} of issue {issue}: {:?}",
                model.persons
            );
        }
        let deliveries = is["deliveries"].as_array();
        let deliveries = deliveries.into_iter().flatten();
        let mut once = BTreeSet::new();
        for delivery in deliveries {
            let name = format!("{} {}", delivery["id"], delivery["part"]);
            assert!(once.insert(name), "{delivery} twice");
        }
    }

    /// Whether the gate is closed because a person's approval ended.
    pub(super) fn is_taken_back(why: &str) -> bool {
        why.contains("not approved") && why.contains(" disapproved at ")
    }

    fn judge_checks(&self) {
        for pull in self.hub.pulls.iter().filter(|pull| pull.open) {
            let (state, why) = self.hub.runner.api.status(&pull.head).unwrap();
            let expected = if self.may_merge(pull.number) {
                "success"
            } else {
                "failure"
            };
            if !Self::is_taken_back(&why) {
                assert_eq!(state, expected, "pull request {}: {why}", pull.number);
            }
        }
    }

    /// Each has one comment for each issue, which says how things stand.
    fn judge_comments(&self) {
        for issue in self.hub.issues.keys() {
            let pull = self
                .hub
                .own_pull()
                .filter(|pull| pull.closes.contains(issue));
            let status = if self.hub.model.is_completed(*issue) {
                "completed"
            } else {
                "open"
            };
            for on in [Some(*issue), pull.map(|pull| pull.number)]
                .into_iter()
                .flatten()
            {
                let marker = format!("<!-- git-handoff:{issue} -->\n");
                let all = self.hub.comments(on);
                let all = all.iter().map(|one| one["body"].as_str().unwrap());
                let own: Vec<&str> = all.filter(|body| body.starts_with(&marker)).collect();
                assert_eq!(own.len(), 1, "comments on {on} about {issue}");
                let title = format!("## Issue `{issue}`: {status}\n");
                assert!(own[0].contains(&title), "no {title:?} in {}", own[0]);
                let is_paused = own[0].contains("It is `paused since ");
                assert_eq!(
                    is_paused,
                    self.hub.model.resting(*issue).is_some(),
                    "{}",
                    own[0]
                );
                if *issue == ISSUE && status == "open" && self.hub.model.again(*issue).is_none() {
                    let turn = format!("With `{}`.", self.hub.model.turn);
                    assert!(own[0].contains(&turn), "no {turn:?} in {}", own[0]);
                }
            }
        }
    }

    /// The ledger is sound and has all that was acknowledged; no other ref was moved.
    fn judge_repositories(&self) {
        let env = self.hub.env();
        env.assert_sound();
        let server = self.hub.runner.server();
        let commits = env.git(&server, &["rev-list", "handoffs"]);
        let commits: BTreeSet<&str> = commits.lines().collect();
        for commit in &self.mail.acknowledged {
            assert!(commits.contains(commit.as_str()), "{commit} is lost");
        }
        let listed = env.git(
            &server,
            &["for-each-ref", "--format=%(refname) %(objectname)"],
        );
        let refs = listed.lines().filter_map(|line| line.split_once(' '));
        let refs = refs.filter(|(name, _)| *name != "refs/heads/handoffs");
        let refs: BTreeMap<String, String> = refs
            .map(|(name, at)| (name.to_owned(), at.to_owned()))
            .collect();
        assert_eq!(refs, self.hub.refs);
        let status = env.git(&env.repo(), &["status", "--porcelain"]);
        assert_eq!(status, "");
    }
}
