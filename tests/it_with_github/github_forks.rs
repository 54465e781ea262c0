//! What opens the gate for strangers' code, and what GitHub refuses: nothing by accident, and nothing is lost.

use std::fs;

use crate::github_status::Desk;
use crate::runner::api::Fault;
use crate::runner::{Event, Run};
use serde_json::{Value, json};
use test_support::events::person;

/// A desk whose policy asks for a person's approval, and what is known of who may write.
fn desk() -> Desk {
    let desk = Desk::new();
    let policy = json!({ "format": 1, "require": ["approved-by-person"] });
    desk.git(&["checkout", "-q", "main"]);
    fs::create_dir_all(desk.env().repo().join(".github")).unwrap();
    desk.commit(
        "Policy",
        &[(".github/handoff-gate.json", &policy.to_string())],
    );
    desk.git(&["push", "-q", "origin", "main"]);
    let may = json!([
        ["maintainer", "write"],
        ["mallory", "write"],
        ["passer", "read"]
    ]);
    let file = desk.env().root().join("github/collaborators.json");
    fs::write(file, may.to_string()).unwrap();
    desk.git(&["checkout", "-q", "-b", "patch-1"]);
    desk
}

impl Desk {
    fn at(&self) -> String {
        let at = chrono::DateTime::from_timestamp(self.env().now(), 0).unwrap();
        at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The stranger's pull request 99, as it is now.
    fn stranger(&self) -> Value {
        let mut described = self.pull_request(99, "patch-1", "Closes #87");
        described["head"]["repo"] = json!({ "id": 2, "full_name": "mallory/desk" });
        described["user"] = person("mallory");
        described["updated_at"] = json!(self.at());
        described
    }

    fn pushed(&self, action: &str, run: u32) {
        self.env().wait_minutes(1);
        let described = self.stranger();
        let payload = json!({ "action": action, "number": 99, "pull_request": described,
            "repository": described["base"]["repo"], "sender": person("mallory") });
        let event = Event::new("pull_request_target", run, payload);
        let run = self.runner.run("handoff-intake.yml", &event);
        run.job("record", "success");
    }

    fn said(&self, id: u32, by: &str, body: &str) -> Run {
        self.runner
            .run("handoff-intake.yml", &self.says(id, by, body))
    }

    fn says(&self, id: u32, by: &str, body: &str) -> Event {
        self.env().wait_minutes(1);
        let comment = json!({ "id": id, "body": body, "user": person(by), "created_at": self.at(),
            "html_url": format!("https://github.com/owner/desk/pull/99#c{id}") });
        let on = json!({ "number": 99, "state": "open", "title": "x", "body": "Closes #87",
            "user": person("mallory"), "pull_request": {} });
        let payload = json!({ "action": "created", "issue": on, "comment": comment,
            "repository": { "id": 1, "full_name": "owner/desk" }, "sender": person(by) });
        Event::new("issue_comment", 1000 + id, payload)
    }

    fn reviewed(&self, id: u32, by: &str, commit: &str) -> Run {
        self.env().wait_minutes(1);
        let review = json!({ "id": id, "state": "APPROVED", "body": "/handoff approve", "user": person(by),
            "commit_id": commit, "submitted_at": self.at(), "author_association": "NONE",
            "html_url": format!("https://github.com/owner/desk/pull/99#pullrequestreview-{id}") });
        self.runner.api.is_reviewed(99, review);
        self.sweep()
    }

    #[track_caller]
    fn opens(&self, run: &Run) {
        let set = self.runner.api.status(&self.head()).unwrap();
        assert_eq!(set.0, "success", "{}\n{}", set.1, run.log);
    }

    fn sweep(&self) -> Run {
        let sweep = Event::new("schedule", 91, json!({ "schedule": "11 * * * *" }));
        let run = self.runner.run("handoff-gate.yml", &sweep);
        self.env().handoff(&["fetch"]).success();
        run
    }

    fn next(&self, text: &str) -> String {
        self.commit("More", &[("more.txt", text)]);
        self.head()
    }

    fn tip(&self) -> String {
        let server = self.runner.server();
        self.env().git(&server, &["rev-parse", "handoffs"])
    }
}

#[test]
fn a_strangers_code_passes_by_a_maintainers_approval_of_this_very_commit() {
    let desk = desk();
    let shut = |why: &str| assert_eq!(desk.state(), "failure", "{why}");
    // Nothing is known of it yet, and the issue has code of its own, which nobody looked at.
    let own = desk.git(&["rev-parse", &desk.branch]);
    desk.next("0");
    desk.runner.api.knows(&desk.stranger());
    desk.said(1, "maintainer", "/handoff approve");
    desk.env().handoff(&["fetch"]).success();
    let gate = [
        "gate",
        "--issue",
        "87",
        "--require",
        "approved-by-person",
        "--head",
        &own,
    ];
    desk.env().handoff(&gate).exits(1);
    let first = desk.next("1");
    desk.pushed("opened", 1);
    shut("nobody approved it");
    desk.said(2, "passer", "/handoff approve");
    shut("who may not write");
    desk.said(3, "mallory", "/handoff approve")
        .says("the author of a pull request can't approve it");
    shut("its author");
    desk.next("2");
    desk.pushed("synchronize", 2);
    desk.said(4, "maintainer", &format!("/handoff approve {first}"));
    shut("an older commit");
    desk.opens(&desk.said(5, "maintainer", "/handoff approve"));
    // Pushed after the approval; and pushed before the event of that has come: also one whose id begins alike.
    let third = desk.next("3");
    desk.pushed("synchronize", 3);
    shut("it was approved before");
    let fourth = desk.next("4");
    desk.runner.api.knows(&desk.stranger());
    desk.said(6, "maintainer", "/handoff approve");
    shut("what came unseen");
    desk.said(
        7,
        "maintainer",
        &format!("/handoff approve {}", &fourth[..10]),
    );
    shut("what begins alike");
    // Reviews of forks come with the sweep.
    desk.reviewed(1, "maintainer", &third);
    shut("a review of another commit");
    desk.reviewed(2, "passer", &fourth);
    shut("a review by who may not write");
    desk.reviewed(3, "mallory", &fourth);
    shut("a review by its author");
    desk.opens(&desk.reviewed(4, "maintainer", &fourth));
    let status = desk.env().data(&["status", "87"]).to_string();
    assert!(
        status.contains("\"other_review_state\":\"approved\""),
        "{status}"
    );
    let tip = desk.tip();
    desk.sweep().job("gate", "success");
    assert_eq!(desk.tip(), tip, "each counts once");
    // Each command in a review is answered, once.
    let replies = desk.runner.kept("comments.json");
    let replies = replies.as_array().unwrap().iter();
    let replies = replies.filter_map(|one| one["body"].as_str().filter(|_| one["number"] == 99));
    let replies: Vec<&str> = replies
        .filter(|body| body.contains("git-handoff-reply:review-"))
        .collect();
    assert_eq!(replies.len(), 3, "{replies:#?}");
    assert!(
        replies[0].contains("passer may not write to the repository"),
        "{}",
        replies[0]
    );
    assert!(
        replies[2].starts_with("<!-- git-handoff-reply:review-4 -->\n"),
        "{}",
        replies[2]
    );
    desk.next("5");
    desk.pushed("synchronize", 4);
    shut("it was approved before");
    desk.env().assert_sound();
}

#[test]
fn an_approval_by_a_review_ends_with_it() {
    let desk = desk();
    let first = desk.next("0");
    desk.pushed("opened", 1);
    desk.opens(&desk.reviewed(1, "maintainer", &first));
    let submitted = std::cell::RefCell::new(std::collections::BTreeMap::from([(1, desk.at())]));
    let told = |id: u32, by: &str, state: &str| {
        desk.env().wait_minutes(1);
        let mut submitted = submitted.borrow_mut();
        let at = submitted.entry(id).or_insert_with(|| desk.at()).clone();
        let review = json!({ "id": id, "state": state, "body": "It is said", "user": person(by),
            "commit_id": first, "submitted_at": at, "author_association": "NONE",
            "html_url": format!("https://github.com/owner/desk/pull/99#pullrequestreview-{id}") });
        desk.runner.api.is_reviewed(99, review);
        desk.sweep();
        desk.state()
    };
    assert_eq!(told(2, "passer", "CHANGES_REQUESTED"), "success");
    assert_eq!(told(3, "maintainer", "CHANGES_REQUESTED"), "failure");
    // Another word of a person counts again, and what was said before does not end it.
    desk.opens(&desk.said(4, "maintainer", "/handoff approve"));
    assert_eq!(told(1, "maintainer", "DISMISSED"), "success");
    desk.opens(&desk.reviewed(5, "maintainer", &first));
    assert_eq!(told(5, "maintainer", "DISMISSED"), "failure");
    assert_eq!(desk.sweep().jobs["gate"], "success");
    assert_eq!(desk.state(), "failure");
    // The last that the same person said counts, in whatever order it arrives; another's review is another's.
    desk.opens(&desk.said(6, "maintainer", "/handoff approve"));
    assert_eq!(told(7, "passer", "DISMISSED"), "success");
    assert_eq!(told(8, "maintainer", "APPROVED"), "success");
    assert_eq!(told(8, "maintainer", "DISMISSED"), "failure");
    for (id, state) in [(9, "DISMISSED"), (10, "CHANGES_REQUESTED")] {
        let early = desk.says(20 + id, "maintainer", "/handoff approve");
        assert_eq!(told(id, "maintainer", state), "failure");
        let late = desk.runner.run("handoff-intake.yml", &early);
        late.says("since then, ");
        assert_eq!(desk.state(), "failure");
    }
    desk.opens(&desk.said(31, "maintainer", "/handoff approve"));
    desk.env().assert_sound();
}

#[test]
fn a_command_is_not_lost_while_github_does_not_say_who_may() {
    let desk = desk();
    desk.next("0");
    desk.pushed("opened", 1);
    let limit = |seconds: &str| {
        desk.runner.api.fails(Fault {
            at: "GET /repos/owner/desk/collaborators",
            status: 429,
            headers: vec![("retry-after", seconds.to_owned())],
            times: 1,
        });
    };
    // What the job has time for is waited for.
    limit("1");
    desk.opens(&desk.said(1, "maintainer", "/handoff approve"));
    desk.next("1");
    desk.pushed("synchronize", 2);
    let (tip, event) = (desk.tip(), desk.says(2, "maintainer", "/handoff approve"));
    limit("3600");
    let run = desk.runner.run("handoff-intake.yml", &event);
    run.job("record", "failure");
    run.says("asks to wait 3600 s");
    assert_eq!(desk.tip(), tip);
    assert_eq!(desk.state(), "failure");
    desk.opens(&desk.runner.run("handoff-intake.yml", &event.again()));
    desk.env().assert_sound();
}

/// A request is refused: whether by `gh`, and with what.
const REFUSALS: [(bool, u16); 4] = [(false, 403), (false, 429), (false, 502), (true, 403)];

/// Runs something once for each request that it makes, each time with that one refused, for a commit that nobody
/// approved. The next sweep does what is left.
fn refused_in_turn(run: impl Fn(&Desk, usize, &Value) -> Run) {
    let desk = desk();
    desk.git(&["checkout", "-q", &desk.branch]);
    let refuse = |by_gh: bool, at: usize, status: u16| {
        if by_gh {
            let file = desk.env().root().join("github/refuse.json");
            fs::write(file, json!([at, status]).to_string()).unwrap();
        } else {
            desk.runner.api.refuses(at, status);
        }
    };
    let mut runs = 0;
    for (by_gh, status) in REFUSALS {
        for at in 0.. {
            let about = format!("{by_gh} {status} {at}");
            desk.next(&about);
            desk.env().wait_minutes(1);
            let mut described = desk.pull_request(7, &desk.branch, "Closes #87");
            described["updated_at"] = json!(desk.at());
            desk.runner.api.knows(&described);
            runs += 1;
            refuse(by_gh, at, status);
            let ran = run(&desk, runs, &described);
            let was_refused = if by_gh {
                desk.runner.kept("refuse.json") == json!([])
            } else {
                desk.runner.api.refuses(usize::MAX, 200)
            };
            refuse(by_gh, usize::MAX >> 1, 200);
            let set = desk.runner.api.status(&desk.head());
            assert_ne!(set.map(|set| set.0).as_deref(), Some("success"), "{about}");
            if ran
                .jobs
                .get("record")
                .is_some_and(|result| result == "failure")
            {
                run(&desk, runs, &described).job("record", "success");
            }
            desk.sweep().job("gate", "success");
            assert_eq!(desk.state(), "failure", "{about}");
            if ran.jobs.contains_key("record") {
                let noted = desk.env().data(&["status", "87"]).to_string();
                assert!(noted.contains(&desk.head()), "{about}: lost");
            }
            if !was_refused {
                break;
            }
        }
    }
    assert!(runs > 4 * REFUSALS.len(), "{runs}");
    desk.env().assert_sound();
}

#[test]
fn whatever_request_of_a_sweep_is_refused_the_gate_stays_closed_and_is_set_later() {
    refused_in_turn(|desk, _, _| desk.sweep());
}

#[test]
fn whatever_request_of_an_event_is_refused_the_gate_stays_closed_and_nothing_is_lost() {
    let before = std::cell::Cell::new(0);
    refused_in_turn(|desk, number, described| {
        let payload = json!({ "action": "synchronize", "number": 7, "pull_request": described,
            "repository": described["base"]["repo"], "sender": person("octocat") });
        let event = Event::new(
            "pull_request_target",
            100 + u32::try_from(number).unwrap(),
            payload,
        );
        let is_again = before.replace(number) == number;
        let event = if is_again { event.again() } else { event };
        desk.runner.run("handoff-intake.yml", &event)
    });
}
