//! What people do on GitHub, by chance, and what GitHub tells of it.

use serde_json::{Value, json};

use super::hub::{BRANCH, Pull, address, repository};
use super::model::Rest;
use super::{ISSUE, Life, OTHER};
use test_support::events::person;

impl Life {
    /// What is not in the ledger yet is not known there; so the opening comes first.
    pub(super) fn open_issues(&mut self) {
        let numbers: Vec<u64> = self.hub.issues.keys().copied().collect();
        for number in numbers {
            // One that lacks something waits in the ledger until it is there.
            let whole = self.hub.issues[&number].labels.clone();
            let lacks = self.dice.percent(30);
            if lacks {
                self.hub.issues.get_mut(&number).unwrap().labels.clear();
            }
            let at = self.hub.now();
            let payload = self.issue_event("opened", number, at);
            let title = json!(self.hub.issues[&number].title);
            let requirements = json!(self.hub.issues[&number].requirements);
            self.hub.model.known(
                &[number],
                at,
                &[("issue_title", title), ("requirements", requirements)],
            );
            self.tell("issues", payload, None, format!("issue {number} is opened"));
            self.deliver_all();
            if lacks {
                self.hub.env().handoff(&["fetch"]).success();
                let draft = self.hub.env().data(&["show", &format!("{number}.1")]);
                assert_eq!(draft["handoff"]["contract_type"], "issue-draft");
                self.hub
                    .issues
                    .get_mut(&number)
                    .unwrap()
                    .labels
                    .clone_from(&whole);
                let at = self.hub.now();
                let payload = self.issue_event("labeled", number, at);
                self.hub
                    .model
                    .known(&[number], at, &[("labels", json!(whole))]);
                self.tell(
                    "issues",
                    payload,
                    None,
                    format!("issue {number} is labeled"),
                );
                self.deliver_all();
            }
        }
        self.hub.model.turn = "prep-agent";
    }

    /// One thing happens.
    pub(super) fn act(&mut self) {
        // Once the agents are done, it is seen whether it is.
        let after = if self.hub.model.completed.is_some() {
            25
        } else {
            0
        };
        // What an agent waits for is likely to come.
        let own = self.hub.own_pull().map(|pull| pull.open);
        let (lacks, ready) = match (self.hub.model.turn, own) {
            ("implementer-agent", None) => (60, 0),
            ("validator-agent", Some(true)) => (0, 60),
            _ => (0, 0),
        };
        let of = [
            (14, Self::edit as fn(&mut Self)),
            (10 + lacks, Self::open_pull),
            (6, Self::draft),
            (8, Self::push),
            (4, Self::update_branch),
            (12, Self::review),
            (4, Self::dismiss),
            (3, Self::request_review),
            (7, Self::start_run),
            (9, Self::end_run),
            (3, Self::set_status),
            (3, Self::close_pull),
            (4 + ready, Self::merge),
            (4 + after, Self::close_issue),
            (5 + after, Self::reopen_issue),
            (1, Self::go_away),
            (4, Self::comment),
            (if self.asks { 12 } else { 0 }, Self::back_at_once),
            (self.diligence, Self::agent_acts),
        ];
        let all: u64 = of.iter().map(|(weight, _)| weight).sum();
        let mut at = self.dice.below(all);
        for (weight, does) in of {
            if at < weight {
                return does(self);
            }
            at -= weight;
        }
    }

    /// Something is done and undone within a second, which only GitHub can tell apart.
    fn back_at_once(&mut self) {
        self.hub.now();
        self.hub.at_once = true;
        match self.dice.below(4) {
            0 => {
                self.close_issue();
                self.reopen_issue();
            }
            1 => {
                self.edit_so(2);
                self.edit_so(2);
            }
            2 => {
                if let Some(number) = self.open_one() {
                    self.ready(number);
                    self.ready(number);
                }
            }
            _ => {
                self.review();
                self.dismiss();
            }
        }
        self.hub.at_once = false;
    }

    pub(super) fn issue_event(&self, action: &str, number: u64, at: i64) -> Value {
        let issue = self.hub.issue_told(number, at);
        json!({ "action": action, "issue": issue, "repository": repository(), "sender": person("octocat") })
    }

    /// An issue that people still see.
    pub(super) fn some_issue(&mut self) -> Option<u64> {
        let seen = self.hub.issues.values().filter(|issue| !issue.gone);
        let seen: Vec<u64> = seen.map(|issue| issue.number).collect();
        (!seen.is_empty()).then(|| *self.dice.one(&seen))
    }

    fn edit(&mut self) {
        let what = self.dice.below(6);
        self.edit_so(what);
    }

    fn edit_so(&mut self, what: u64) {
        let Some(number) = self.some_issue() else {
            return;
        };
        let at = self.hub.now();
        let flip = self.dice.percent(40);
        let issue = self.hub.issues.get_mut(&number).unwrap();
        let action = match what {
            0 => {
                // Back and forth.
                let titles = [
                    "Parcels are lost",
                    "Parcels are lost at sea",
                    "Parcels sink",
                ];
                issue.title = (*self.dice.one(&titles)).to_owned();
                "edited"
            }
            1 => {
                issue.requirements.truncate(1);
                issue
                    .requirements
                    .extend(flip.then(|| "ships are insured".to_owned()));
                "edited"
            }
            2 | 3 => match issue.labels.iter().position(|label| *label == "sea") {
                Some(index) => {
                    issue.labels.remove(index);
                    "unlabeled"
                }
                None => {
                    issue.labels.push("sea");
                    "labeled"
                }
            },
            4 if issue.milestone.is_some() => {
                issue.milestone = None;
                "demilestoned"
            }
            4 => {
                issue.milestone = Some("Spring");
                "milestoned"
            }
            _ if issue.assignees.is_empty() => {
                issue.assignees.push("grace");
                "assigned"
            }
            _ => {
                issue.assignees.clear();
                "unassigned"
            }
        };
        let facts = [
            ("issue_title", json!(issue.title)),
            ("requirements", json!(issue.requirements)),
            ("labels", json!(issue.labels)),
            ("milestone", json!(issue.milestone.unwrap_or("none"))),
            ("assignees", json!(issue.assignees)),
        ];
        self.hub.model.known(&[number], at, &facts);
        let mut payload = self.issue_event(action, number, at);
        payload["assignee"] = person("grace");
        self.tell(
            "issues",
            payload,
            None,
            format!("issue {number} {action}: {what}"),
        );
    }

    /// Tells of a pull request, and what follows for the model.
    pub(super) fn pull_event(&mut self, action: &str, number: u64, facts: &[&'static str]) {
        let at = self.hub.now();
        let described = self.hub.pull_told(number, at);
        self.hub.runner.api.knows(&described);
        let pull = self.hub.pull(number);
        let (is_fork, closes) = (pull.is_fork, pull.closes.clone());
        let mut known = vec![
            ("pr_number", json!(number)),
            ("pr_url", json!(address(number))),
            ("pr_state", described["state"].clone()),
        ];
        for name in facts {
            let value = match *name {
                "head" => described["head"]["sha"].clone(),
                "branch" => described["head"]["ref"].clone(),
                "base" => described["base"]["ref"].clone(),
                "pr_draft" => described["draft"].clone(),
                "merge_sha" => described["merge_commit_sha"].clone(),
                "reviewers" => json!(self.hub.pull(number).reviewers),
                other => panic!("{other}"),
            };
            known.push((name, value));
        }
        // What a fork has proves nothing but that it was merged.
        if !is_fork || self.hub.pull(number).merge_sha.is_some() {
            self.hub.model.known(&closes, at, &known);
        }
        let payload = json!({
            "action": action, "number": number, "pull_request": described,
            "repository": repository(), "sender": person("octocat"),
        });
        self.tell(
            "pull_request_target",
            payload,
            None,
            format!("pull request {number} {action}"),
        );
    }

    fn open_pull(&mut self) {
        let own = self.hub.own_pull().is_some();
        let is_fork = own || self.dice.percent(15);
        // A new one counts once it is known that the one before was closed.
        if is_fork && self.hub.pulls.iter().any(|pull| pull.is_fork) {
            return;
        }
        if !is_fork && (self.is_told_of_a_pull() || self.hub.issues[&ISSUE].gone) {
            return;
        }
        if !self.hub.pulls.is_empty() {
            self.deliver_all();
        }
        let number = 7 + self.hub.pulls.len() as u64;
        let main = self.hub.main.clone();
        let refs = [
            format!("refs/pull/{number}/head"),
            format!("refs/heads/{BRANCH}"),
        ];
        let refs: Vec<&str> = refs.iter().map(String::as_str).collect();
        let head = self
            .hub
            .commit(&[&main], &refs[..if is_fork { 1 } else { 2 }]);
        let both = self.hub.issues.contains_key(&OTHER) && self.dice.percent(70);
        let closes = if both {
            vec![ISSUE, OTHER]
        } else {
            vec![ISSUE]
        };
        self.hub.pulls.push(Pull {
            number,
            closes,
            head,
            is_fork,
            draft: self.dice.percent(30),
            open: true,
            merge_sha: None,
            reviewers: Vec::new(),
        });
        self.pull_event("opened", number, &["branch", "head", "base", "pr_draft"]);
    }

    /// One that is open; rather of the repository itself.
    pub(super) fn open_one(&mut self) -> Option<u64> {
        let open = self.hub.pulls.iter().filter(|pull| pull.open);
        let open: Vec<u64> = open.map(|pull| pull.number).collect();
        (!open.is_empty()).then(|| *self.dice.one(&open))
    }

    fn draft(&mut self) {
        if let Some(number) = self.open_one() {
            self.ready(number);
        }
    }

    /// A draft is one no more, or the other way round.
    fn ready(&mut self, number: u64) {
        let pull = self.hub.pull(number);
        pull.draft = !pull.draft;
        let action = if pull.draft {
            "converted_to_draft"
        } else {
            "ready_for_review"
        };
        self.pull_event(action, number, &["branch", "head", "base", "pr_draft"]);
    }

    fn refs(&mut self, number: u64) -> Vec<String> {
        let mut refs = vec![format!("refs/pull/{number}/head")];
        if !self.hub.pull(number).is_fork {
            refs.push(format!("refs/heads/{BRANCH}"));
        }
        refs
    }

    fn push(&mut self) {
        let Some(number) = self.open_one() else {
            return;
        };
        let refs = self.refs(number);
        let refs: Vec<&str> = refs.iter().map(String::as_str).collect();
        let before = self.hub.pull(number).head.clone();
        let head = self.hub.commit(&[&before], &refs);
        self.hub.pull(number).head = head;
        self.pull_event("synchronize", number, &["branch", "head"]);
    }

    /// The base gets a commit, and is merged into the branch.
    fn update_branch(&mut self) {
        let Some(number) = self.open_one() else {
            return;
        };
        let main = self.hub.main.clone();
        self.hub.main = self.hub.commit(&[&main], &["refs/heads/main"]);
        let refs = self.refs(number);
        let refs: Vec<&str> = refs.iter().map(String::as_str).collect();
        let (main, before) = (self.hub.main.clone(), self.hub.pull(number).head.clone());
        let head = self.hub.commit(&[&before, &main], &refs);
        self.hub.merges.insert(head.clone(), before);
        self.hub.pull(number).head = head;
        self.pull_event("synchronize", number, &["branch", "head"]);
    }

    fn close_pull(&mut self) {
        // One before another of the repository stays closed: agents have named the newer one.
        let newest = self.hub.pulls.iter().rev().find(|pull| !pull.is_fork);
        let newest = newest.map(|pull| pull.number);
        let mut closed = self.hub.pulls.iter().filter(|pull| !pull.open);
        let closed = closed
            .find(|pull| pull.merge_sha.is_none() && (pull.is_fork || newest == Some(pull.number)));
        let closed = closed.map(|pull| (pull.number, pull.is_fork));
        match closed {
            Some((number, is_fork)) => {
                if !is_fork {
                    self.deliver_all();
                }
                self.hub.pull(number).open = true;
                self.pull_event("reopened", number, &["branch", "head", "base", "pr_draft"]);
            }
            None => {
                let Some(number) = self.open_one() else {
                    return;
                };
                self.hub.pull(number).open = false;
                self.pull_event("closed", number, &[]);
            }
        }
    }

    /// As a merge queue does it: its commit is what the merge gives, and becomes the base.
    fn merge(&mut self) {
        let only = self
            .hub
            .pulls
            .first()
            .filter(|only| only.is_fork && only.open);
        let only = only.filter(|_| self.hub.pulls.len() == 1);
        let Some(number) = self.own_open().or(only.map(|only| only.number)) else {
            return;
        };
        if self.hub.pull(number).draft {
            return self.ready(number);
        }
        let (main, head) = (self.hub.main.clone(), self.hub.pull(number).head.clone());
        let queued = format!("refs/heads/gh-readonly-queue/main/pr-{number}-{main}");
        let merged = self.hub.commit(&[&main, &head], &[&queued]);
        self.judge_queue(number, (&queued, &main, &merged));
        if self.dice.percent(30) {
            // It is taken out of the queue.
            return;
        }
        let server = self.hub.runner.server();
        self.hub
            .env()
            .git(&server, &["update-ref", "refs/heads/main", &merged]);
        self.hub
            .refs
            .insert("refs/heads/main".to_owned(), merged.clone());
        self.hub.main.clone_from(&merged);
        let pull = self.hub.pull(number);
        (pull.open, pull.merge_sha) = (false, Some(merged));
        let closes = pull.closes.clone();
        self.pull_event("closed", number, &["merge_sha", "base"]);
        for issue in closes {
            if self.hub.issues[&issue].closed.is_none() && !self.hub.issues[&issue].gone {
                self.closed(issue, "completed");
            }
        }
    }

    fn closed(&mut self, number: u64, reason: &'static str) {
        // Of a completed issue it is not recorded that it was closed: a reopening from before that has to come first.
        if self.hub.model.completed.is_some() {
            self.deliver_all();
        }
        let at = self.hub.now();
        self.hub.issues.get_mut(&number).unwrap().closed = Some(reason);
        let why = if reason == "completed" {
            Rest::Done
        } else {
            Rest::GivenUp
        };
        self.hub.model.rests(number, at, why);
        let payload = self.issue_event("closed", number, at);
        self.tell(
            "issues",
            payload,
            None,
            format!("issue {number} is closed as {reason}"),
        );
    }

    fn close_issue(&mut self) {
        let Some(number) = self.some_issue() else {
            return;
        };
        if self.hub.issues[&number].closed.is_none() {
            let reason = *self.dice.one(&["completed", "not_planned", "duplicate"]);
            self.closed(number, reason);
        }
    }

    fn reopen_issue(&mut self) {
        let closed = self
            .hub
            .issues
            .values()
            .find(|issue| issue.closed.is_some() && !issue.gone);
        let Some(number) = closed.map(|issue| issue.number) else {
            return;
        };
        let at = self.hub.now();
        self.hub.issues.get_mut(&number).unwrap().closed = None;
        self.hub.model.goes_on(number, at);
        let mut payload = self.issue_event("reopened", number, at);
        payload["issue"]["state_reason"] = json!("reopened");
        self.tell(
            "issues",
            payload,
            None,
            format!("issue {number} is reopened"),
        );
    }

    fn go_away(&mut self) {
        let Some(number) = self.some_issue() else {
            return;
        };
        let at = self.hub.now();
        let action = *self.dice.one(&["transferred", "deleted"]);
        self.hub.issues.get_mut(&number).unwrap().gone = true;
        self.hub.model.rests(number, at, Rest::Gone);
        let mut payload = self.issue_event(action, number, at);
        if action == "transferred" {
            payload["changes"] =
                json!({ "new_issue": { "html_url": "https://github.com/octo/other/issues/1" } });
        }
        self.tell(
            "issues",
            payload,
            None,
            format!("issue {number} is {action}"),
        );
    }
}
