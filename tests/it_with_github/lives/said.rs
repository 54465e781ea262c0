//! What reviewers, checks and comments say of the code, by chance, and what GitHub tells of it.

use serde_json::json;

use super::Life;
use super::hub::{BRANCH, address, repository, shown};
use test_support::events::person;

/// Who reviews, and what GitHub says they may do; of a program it says nothing.
const REVIEWERS: [(&str, Option<&str>); 5] = [
    ("ada", Some("write")),
    ("grace", Some("admin")),
    ("linus", Some("read")),
    ("mallory", Some("none")),
    ("renovate[bot]", None),
];

/// A workflow's run that has not ended.
pub(super) struct Run {
    id: u64,
    attempt: u64,
    name: &'static str,
    commit: String,
    is_fork: bool,
    started: i64,
}

/// A review that can be dismissed.
pub(super) struct Review {
    id: u64,
    /// What it says besides.
    body: &'static str,
    pull: u64,
    by: &'static str,
    at: i64,
    commit: String,
}

/// What goes on apart from the issues.
#[derive(Default)]
pub(super) struct Afoot {
    pub(super) running: Vec<Run>,
    ended: Vec<Run>,
    reviews: Vec<Review>,
}

impl Life {
    pub(super) fn review_event(
        &mut self,
        action: &str,
        (review, says): (&Review, &str),
        permission: Option<&'static str>,
    ) {
        let at = self.hub.now();
        let described = self.hub.pull_told(review.pull, at);
        let closes = self.hub.pull(review.pull).closes.clone();
        let kind = if review.by.ends_with("[bot]") {
            "Bot"
        } else {
            "User"
        };
        let id = review.id;
        let payload = json!({
            "action": action,
            "review": {
                "id": id, "user": { "login": review.by, "type": kind }, "state": says, "body": review.body,
                "commit_id": review.commit, "submitted_at": shown(review.at), "author_association": "MEMBER",
                "html_url": format!("{}#review-{id}", address(review.pull)),
            },
            "pull_request": described, "repository": repository(), "sender": person("octocat"),
        });
        self.hub.runner.api.is_reviewed(
            review.pull,
            json!({ "id": id, "state": says.to_uppercase() }),
        );
        let may = matches!(permission, Some("write" | "admin"));
        let counts = says == "dismissed" || says != "commented" && may;
        if may {
            let word = (says, &*review.commit, review.id);
            self.hub
                .model
                .persons
                .push((word.0.to_owned(), word.1.to_owned(), word.2, review.at));
        }
        if counts {
            self.hub
                .model
                .reviewed(review.by, says, review.pull, review.at);
            let number = [
                ("pr_number", json!(review.pull)),
                ("pr_url", json!(address(review.pull))),
            ];
            self.hub.model.known(&closes, at, &number);
        }
        let what = format!("{} {says} pull request {}", review.by, review.pull);
        self.tell("pull_request_review", payload, permission, what);
    }

    /// Of a fork's pull request, the intake does not run.
    pub(super) fn own_open(&self) -> Option<u64> {
        self.hub
            .own_pull()
            .filter(|pull| pull.open)
            .map(|pull| pull.number)
    }

    pub(super) fn review(&mut self) {
        let Some(pull) = self.own_open() else { return };
        let (by, permission) = *self.dice.one(&REVIEWERS);
        let says = *self.dice.one(&[
            "approved",
            "approved",
            "changes_requested",
            "changes_requested",
            "commented",
        ]);
        let commit = self.hub.pull(pull).head.clone();
        let at = self.hub.now();
        let body = if says == "approved" && self.dice.percent(50) {
            "/handoff approve"
        } else {
            "It is said"
        };
        let review = Review {
            id: 70_000 + self.hub.id(),
            body,
            pull,
            by,
            at,
            commit,
        };
        self.review_event("submitted", (&review, says), permission);
        if says != "commented" {
            self.hub.afoot.reviews.push(review);
        }
    }

    pub(super) fn dismiss(&mut self) {
        let Some(pull) = self.own_open() else { return };
        let mut own = self.hub.afoot.reviews.iter();
        let Some(index) = own.position(|review| review.pull == pull) else {
            return;
        };
        let review = self.hub.afoot.reviews.remove(index);
        let (_, permission) = REVIEWERS
            .into_iter()
            .find(|(by, _)| *by == review.by)
            .unwrap();
        self.review_event("dismissed", (&review, "dismissed"), permission);
    }

    pub(super) fn request_review(&mut self) {
        let Some(number) = self.own_open() else {
            return;
        };
        let pull = self.hub.pull(number);
        let action = if pull.reviewers.pop().is_some() {
            "review_request_removed"
        } else {
            pull.reviewers.push("ada");
            "review_requested"
        };
        self.pull_event(action, number, &["reviewers"]);
    }

    pub(super) fn start_run(&mut self) {
        let Some(number) = self.open_one() else {
            return;
        };
        let started = self.hub.now();
        let again = self.dice.percent(40) && !self.hub.afoot.ended.is_empty();
        let run = if again {
            let mut run = self.hub.afoot.ended.remove(0);
            run.attempt += 1;
            run.started = started;
            run
        } else {
            let id = 9000 + self.hub.id();
            let name = *self.dice.one(&["CI", "Lint"]);
            let pull = self.hub.pull(number);
            Run {
                id,
                attempt: 1,
                name,
                commit: pull.head.clone(),
                is_fork: pull.is_fork,
                started,
            }
        };
        self.hub.afoot.running.push(run);
    }

    pub(super) fn end_run(&mut self) {
        let count = self.hub.afoot.running.len() as u64;
        if count == 0 {
            return;
        }
        let index = usize::try_from(self.dice.below(count)).unwrap();
        let run = self.hub.afoot.running.remove(index);
        let conclusion = *self.dice.one(&[
            "success",
            "success",
            "failure",
            "cancelled",
            "timed_out",
            "neutral",
        ]);
        let at = self.hub.now();
        let from = if run.is_fork {
            json!({ "id": 2, "full_name": "mallory/desk" })
        } else {
            repository()
        };
        let payload = json!({
            "action": "completed",
            "workflow_run": {
                "id": run.id, "run_attempt": run.attempt, "name": run.name, "event": "pull_request",
                "status": "completed", "conclusion": conclusion, "head_branch": BRANCH, "head_sha": run.commit,
                "head_repository": from, "pull_requests": [],
                "run_started_at": shown(run.started), "updated_at": shown(at),
                "html_url": format!("https://github.com/owner/desk/actions/runs/{}", run.id),
            },
            "repository": repository(), "sender": person("octocat"),
        });
        if !run.is_fork {
            self.hub
                .model
                .checked(run.name, conclusion, &run.commit, run.started);
        }
        let what = format!(
            "run {} attempt {} of {} ends: {conclusion}",
            run.id, run.attempt, run.name
        );
        self.tell("workflow_run", payload, None, what);
        self.hub.afoot.ended.push(run);
    }

    pub(super) fn set_status(&mut self) {
        let Some(number) = self.own_open() else {
            return;
        };
        let state = *self.dice.one(&["success", "failure", "pending", "error"]);
        let at = self.hub.now();
        let commit = self.hub.pull(number).head.clone();
        let id = self.hub.id();
        let payload = json!({
            "id": id, "sha": commit, "state": state, "context": "build/arm", "target_url": null,
            "branches": [{ "name": BRANCH }], "created_at": shown(at), "updated_at": shown(at),
            "repository": repository(), "sender": person("builder"),
        });
        self.hub.model.checked("build/arm", state, &commit, at);
        self.tell(
            "status",
            payload,
            None,
            format!("status build/arm: {state}"),
        );
    }

    /// Commands of those who may not give them, and lines that are no command.
    pub(super) fn comment(&mut self) {
        let Some(number) = self.some_issue() else {
            return;
        };
        let (by, permission) = *self.dice.one(&REVIEWERS[2..]);
        let text = *self.dice.one(&[
            "/handoff cancel",
            "Thank you",
            "> /handoff cancel",
            "/handoff approve",
        ]);
        let at = self.hub.now();
        let id = self.hub.id();
        let kind = if by.ends_with("[bot]") { "Bot" } else { "User" };
        let mut payload = self.issue_event("created", number, at);
        payload["comment"] = json!({
            "id": id, "body": text, "user": { "login": by, "type": kind }, "author_association": "CONTRIBUTOR",
            "created_at": shown(at), "updated_at": shown(at), "performed_via_github_app": null,
            "html_url": format!("https://github.com/owner/desk/issues/{number}#issuecomment-{id}"),
        });
        self.tell(
            "issue_comment",
            payload,
            permission,
            format!("{by} says {text:?} on issue {number}"),
        );
    }
}
