//! A rehearsal: workflows from the event's file to the summary, by the templates' own steps, with agents in between.

use std::fs;
use std::path::Path;
use std::thread;

use crate::runner::{Event, Runner, TOKEN, files};
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, prepared, sample};
use test_support::files::script;

/// A repository on the server, with a ledger, and a clone in which agents work.
pub(crate) fn desk() -> Runner {
    let runner = Runner::new(TestEnvironment::with_repository());
    let (env, repo) = (&runner.env, runner.env.repo());
    env.git(&repo, &["remote", "add", "origin", "../owner/desk"]);
    env.git(&repo, &["push", "-q", "origin", "main"]);
    env.handoff(&["init", "--remote", "origin"]).success();
    runner
}

pub(crate) fn here() -> Value {
    json!({ "id": 1, "full_name": "owner/desk" })
}

pub(crate) fn person(login: &str) -> Value {
    json!({ "login": login, "type": "User" })
}

/// An issue that says all that the first contract needs.
pub(crate) fn opened(number: u32, run: u32) -> Event {
    let issue = json!({
        "number": number,
        "state": "open",
        "title": "Export delivery history as CSV",
        "html_url": format!("https://github.com/owner/desk/issues/{number}"),
        "labels": [{ "name": "enhancement" }, { "name": "priority: high" }],
        "body": "@octocat wants it.\n\n### Requirements\n- a download\n- in the order on screen\n",
        "user": person("octocat"),
        "author_association": "NONE",
    });
    let payload = json!({ "action": "opened", "issue": issue, "repository": here(), "sender": person("octocat") });
    Event::new("issues", run, payload)
}

/// The pull request 7 of issue 87, as it is now.
fn pull_request(runner: &Runner) -> Value {
    let env = &runner.env;
    let repo = env.repo();
    env.git(
        &repo,
        &["push", "-q", "-f", "origin", "HEAD:refs/pull/7/head"],
    );
    let head = env.git(&repo, &["rev-parse", "HEAD"]);
    json!({
        "number": 7,
        "state": "open",
        "title": "Export",
        "body": "Closes #87; $(touch sly)",
        "html_url": "https://github.com/owner/desk/pull/7",
        "draft": false,
        "merged": false,
        "merge_commit_sha": null,
        "user": person("octocat"),
        "author_association": "MEMBER",
        "head": { "ref": "export", "sha": head.trim(), "repo": here() },
        "base": { "ref": "main", "sha": "2".repeat(40), "repo": here() },
    })
}

pub(crate) fn pull(runner: &Runner, action: &str, run: u32) -> Event {
    let payload = json!({
        "action": action,
        "number": 7,
        "pull_request": pull_request(runner),
        "repository": here(),
        "sender": person("octocat"),
    });
    Event::new("pull_request_target", run, payload)
}

/// The workflow's comment on an issue or a pull request: there is one.
pub(crate) fn comment_on(runner: &Runner, number: u32) -> Value {
    let all = runner.kept("comments.json");
    let all = all.as_array().unwrap().iter();
    let own: Vec<&Value> = all
        .filter(|one| one["number"] == number && one["user"]["type"] == "Bot")
        .filter(|one| {
            one["body"]
                .as_str()
                .unwrap()
                .starts_with("<!-- git-handoff:")
        })
        .collect();
    assert_eq!(own.len(), 1, "{own:#?}");
    own[0].clone()
}

/// The ledger's commit on the server.
pub(crate) fn tip(runner: &Runner) -> String {
    let args = ["rev-parse", "refs/heads/handoffs"];
    runner.env.git(&runner.server(), &args).trim().to_owned()
}

/// The ids of an issue's handoffs on the server.
fn handoffs(runner: &Runner, issue: u32) -> Vec<String> {
    runner.env.handoff(&["fetch"]).success();
    let data = runner.env.data(&["status", &issue.to_string()]);
    let all = data["handoffs"].as_array().unwrap().iter();
    all.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

/// An agent's step, about the repository and the pull request of the events.
pub(crate) fn step(runner: &Runner, agent: &str, contract: String) {
    let contract = contract
        .replace("quayside/parcel-desk/pull/91", "owner/desk/pull/7")
        .replace("quayside/parcel-desk", "owner/desk")
        .replace("<pr_number>91<", "<pr_number>7<");
    runner.env.claim("87", agent).success();
    runner.env.send(contract).success();
}

#[test]
fn an_issue_goes_from_its_event_to_an_open_gate() {
    let runner = desk();
    let env = &runner.env;
    let repo = env.repo();
    // Somebody has pasted the line that the comment begins with.
    let pasted = json!([{
        "id": 1, "number": 7, "user": { "login": "mallory", "type": "User" }, "body": "<!-- git-handoff:87 -->\nmine"
    }]);
    let github = env.root().join("github");
    fs::write(github.join("comments.json"), pasted.to_string()).unwrap();
    // What GitHub answers when it is asked who may write.
    let collaborators = json!([["maintainer", "write"]]);
    fs::write(github.join("collaborators.json"), collaborators.to_string()).unwrap();

    // The issue is opened, and the run is started once more.
    let event = opened(87, 1);
    let run = runner.run("handoff-intake.yml", &event);
    run.job("record", "success");
    let body = comment_on(&runner, 87)["body"].as_str().unwrap().to_owned();
    assert!(body.contains("With `prep-agent`."), "{body}");
    assert!(
        run.summary.starts_with("## Issue `87`: open\n"),
        "{}",
        run.summary
    );
    assert!(run.summary.contains("```mermaid\n"), "{}", run.summary);
    let sent = tip(&runner);
    assert_eq!(handoffs(&runner, 87), ["87.1"]);
    let again = runner.run("handoff-intake.yml", &event.again());
    again.job("record", "success");
    assert_eq!(tip(&runner), sent);

    // Agents take it to a pull request.
    step(&runner, "prep-agent", prepared(87));
    let prepared = prepared(87);
    let branch = prepared.split("<branch>").nth(1).unwrap();
    let branch = branch.split("</branch>").next().unwrap();
    env.git(&repo, &["checkout", "-q", "-b", branch]);
    fs::write(repo.join("export.txt"), "a,b\n").unwrap();
    env.git(&repo, &["add", "."]);
    env.git(&repo, &["commit", "-q", "-m", "Export"]);
    let review = sample("implementer-agent-to-reviewer-agent", Format::Xml, 87);
    step(&runner, "implementer-agent", review);

    let event = pull(&runner, "opened", 2);
    let run = runner.run("handoff-intake.yml", &event);
    run.job("record", "success");
    run.says("::warning title=not approved::");
    let comments = runner.kept("comments.json");
    assert_eq!(comments[0]["body"], "<!-- git-handoff:87 -->\nmine");
    assert_eq!(comments.as_array().unwrap().len(), 3);
    let body = comment_on(&runner, 7)["body"].as_str().unwrap().to_owned();
    assert!(
        body.starts_with("<!-- git-handoff:87 -->\n## Issue `87`: open\n"),
        "{body}"
    );
    assert!(body.contains("With `reviewer-agent`."), "{body}");

    // The reviewer approves, in the ledger and on GitHub: the comment is written again.
    let approval = sample("reviewer-agent-to-validator-agent", Format::Xml, 87);
    step(&runner, "reviewer-agent", approval);
    let mut payload = pull(&runner, "submitted", 3).payload;
    payload["review"] = json!({
        "state": "approved",
        "body": null,
        "commit_id": payload["pull_request"]["head"]["sha"],
        "user": person("maintainer"),
        "author_association": "MEMBER",
        "html_url": "https://github.com/owner/desk/pull/7#pullrequestreview-1",
        "submitted_at": "2026-03-02T10:00:00Z",
    });
    let reviewed = Event::new("pull_request_review", 3, payload);
    let run = runner.run("handoff-intake.yml", &reviewed);
    run.job("record", "success").says("review_state approved");
    // So is that of the issue, and both say the same.
    let comments = runner.kept("comments.json");
    assert_eq!(comments.as_array().unwrap().len(), 3);
    let own = comment_on(&runner, 7);
    assert_eq!(own["edits"], 1);
    assert_eq!(comment_on(&runner, 87)["edits"], 3);
    assert_eq!(comment_on(&runner, 87)["body"], own["body"]);
    let body = own["body"].as_str().unwrap();
    assert!(body.contains("With `validator-agent`."), "{body}");
    assert!(body.contains(": ✓ `approved`: "), "{body}");
    assert!(
        body.contains("[The report](https://octo.github.io/desk/#i-87)"),
        "{body}"
    );
    run.says("::notice title=approved::");
    assert!(run.summary.contains(": ✓ `approved`: "), "{}", run.summary);

    // A review from a fork may not write, and is left out.
    let mut fork = reviewed.clone();
    fork.payload["pull_request"]["head"]["repo"] = json!({ "id": 2, "full_name": "mallory/desk" });
    let run = runner.run("handoff-intake.yml", &fork);
    run.job("record", "skipped");

    // All of it is sound, here and there, and the token is nowhere.
    handoffs(&runner, 87);
    env.assert_sound();
    let run = runner.run("handoff-verify.yml", &Event::new("schedule", 4, json!({})));
    run.job("verify", "success").says("the ledger is sound");
    let run = runner.run("handoff-audit.yml", &Event::new("schedule", 5, json!({})));
    run.job("audit", "success").job("tell", "skipped");
    for (path, bytes) in files(env.root()) {
        let holds = bytes.windows(TOKEN.len()).any(|w| w == TOKEN.as_bytes());
        assert!(!holds, "{}", path.display());
        assert!(path.file_name().unwrap() != "sly");
    }
}

#[test]
fn a_pull_request_that_closes_several_issues_shows_what_each_requires() {
    let runner = desk();
    for (issue, run) in [(87, 1), (88, 2)] {
        let run = runner.run("handoff-intake.yml", &opened(issue, run));
        run.job("record", "success");
    }
    let mut event = pull(&runner, "opened", 3);
    event.payload["pull_request"]["body"] = json!("Closes #87. Closes #88");
    for event in [event.clone(), event.again()] {
        let run = runner.run("handoff-intake.yml", &event);
        run.job("record", "success");
        for issue in [87, 88] {
            let title = format!("## Issue `{issue}`: open\n");
            assert!(run.summary.contains(&title), "{}", run.summary);
        }
    }
    let all = runner.kept("comments.json");
    let on = |number: u32| -> Vec<&str> {
        let all = all.as_array().unwrap().iter();
        let own = all.filter(|one| one["number"] == number);
        own.map(|one| one["body"].as_str().unwrap()).collect()
    };
    let own = on(7);
    assert_eq!(own.len(), 2, "{own:#?}");
    for (body, issue) in own.iter().zip([87, 88]) {
        assert!(
            body.contains(&format!("## Issue `{issue}`: open\n")),
            "{body}"
        );
        assert!(body.contains(": ✗ not `approved`: "), "{body}");
    }
    assert_eq!((on(87).len(), on(88).len()), (1, 1));
}

#[test]
fn what_broke_off_is_done_once_when_it_is_started_again() {
    let runner = desk();
    let before = tip(&runner);
    // The server takes no push.
    let hook = runner.server().join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    script(&hook, "#!/bin/sh\necho no >&2\nexit 1\n");
    let event = opened(87, 1);
    let run = runner.run("handoff-intake.yml", &event);
    run.job("record", "failure");
    assert_eq!(tip(&runner), before);
    fs::remove_file(hook).unwrap();

    // It is pushed, and the machine is gone before anything is told.
    let stop = ("Set the status".to_owned(), "exit 1".to_owned());
    *runner.sabotage.lock().unwrap() = Some(stop);
    let run = runner.run("handoff-intake.yml", &event.again());
    run.job("record", "failure");
    let sent = tip(&runner);
    assert_ne!(sent, before);
    *runner.sabotage.lock().unwrap() = None;

    let run = runner.run("handoff-intake.yml", &event.again().again());
    run.job("record", "success");
    assert_eq!(tip(&runner), sent);
    assert!(
        run.summary.contains("## Issue `87`: open"),
        "{}",
        run.summary
    );
    assert_eq!(handoffs(&runner, 87), ["87.1"]);
    runner.env.assert_sound();
}

#[test]
fn thirty_runs_at_once_each_do_their_part() {
    let runner = desk();
    // As many as labels, assignments and pushes bring at once.
    let mut events: Vec<Event> = (0..29).map(|n| opened(87 + n, 1 + n)).collect();
    events.push(opened(87, 1).again());
    thread::scope(|scope| {
        for event in &events {
            scope.spawn(|| {
                let run = runner.run("handoff-intake.yml", event);
                run.job("record", "success");
            });
        }
    });
    for issue in 87..116 {
        assert_eq!(handoffs(&runner, issue), [format!("{issue}.1")]);
    }
    runner.env.assert_sound();
}

#[test]
fn a_ledger_that_was_rewritten_or_forged_is_found() {
    let runner = desk();
    let env = &runner.env;
    for (issue, run) in [(87, 1), (88, 2)] {
        let run = runner.run("handoff-intake.yml", &opened(issue, run));
        run.job("record", "success");
    }
    let verify = |run: u32| {
        runner.run(
            "handoff-verify.yml",
            &Event::new("schedule", run, json!({})),
        )
    };
    verify(3).job("verify", "success");
    let whole = tip(&runner);
    // Someone takes the last step back.
    let back = ["update-ref", "refs/heads/handoffs", &format!("{whole}~1")];
    env.git(&runner.server(), &back);
    let run = verify(4);
    run.job("verify", "failure").says("::error ");
    // It is found again until it is put right.
    verify(5).job("verify", "failure");
    env.git(
        &runner.server(),
        &["update-ref", "refs/heads/handoffs", &whole],
    );
    verify(6).job("verify", "success");
    // What is kept is small, and is kept once for each state.
    let kept = files(&env.root().join("caches"));
    let size: usize = kept.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!((1..2048).contains(&size), "{size}: {kept:?}");
    let named = |file: &str| kept.iter().filter(|(path, _)| path.ends_with(file)).count();
    assert_eq!(named("verified/refs/heads/handoffs"), 1, "{kept:?}");

    // Someone commits by hand.
    let tree = env.root().join("ledger");
    let tree_shown = tree.to_str().unwrap();
    env.git(
        &runner.server(),
        &["worktree", "add", "-q", "--detach", tree_shown, "handoffs"],
    );
    fs::write(tree.join("note.txt"), "by hand\n").unwrap();
    env.git(&tree, &["add", "."]);
    env.git(&tree, &["commit", "-q", "-m", "By hand"]);
    let forged = env.git(&tree, &["rev-parse", "HEAD"]);
    env.git(
        &runner.server(),
        &["update-ref", "refs/heads/handoffs", forged.trim()],
    );
    let run = verify(7);
    run.job("verify", "failure").says("::error ");
    let audit = |run: u32| runner.run("handoff-audit.yml", &Event::new("schedule", run, json!({})));
    let run = audit(8);
    run.job("audit", "failure").job("tell", "success");
    assert!(env.root().join("artifacts/handoffs/handoffs.html").exists());
    audit(9).job("tell", "success");
    let issues = runner.kept("issues.json");
    assert_eq!(issues.as_array().unwrap().len(), 1);
    assert_eq!(issues[0]["title"], "The handoff ledger is damaged");
    assert_eq!(issues[0]["comments"].as_array().unwrap().len(), 1);
    assert_eq!(runner.kept("labels.json"), json!(["handoff-audit"]));
}

/// A comment on issue 87, which is an event of its own.
pub(crate) fn said(runner: &Runner, id: u32, body: &str) -> Event {
    let at = chrono::DateTime::from_timestamp(runner.env.now() + 3600, 0).unwrap();
    let payload = json!({
        "action": "created",
        "issue": { "number": 87, "state": "open" },
        "comment": {
            "id": id,
            "body": body,
            "user": person("maintainer"),
            "created_at": at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "html_url": format!("https://github.com/owner/desk/issues/87#issuecomment-{id}"),
        },
        "repository": here(),
        "sender": person("maintainer"),
    });
    Event::new("issue_comment", 100 + id, payload)
}

#[test]
fn commands_get_a_reaction_and_a_reply() {
    let runner = desk();
    let github = runner.env.root().join("github");
    let collaborators = json!([["maintainer", "write"]]);
    fs::write(github.join("collaborators.json"), collaborators.to_string()).unwrap();
    let run = runner.run("handoff-intake.yml", &opened(87, 1));
    run.job("record", "success");
    let replies = || {
        let all = runner.kept("comments.json");
        let all = all.as_array().unwrap().iter();
        let all = all.filter(|one| one["body"].as_str().unwrap().contains("git-handoff-reply"));
        all.cloned().collect::<Vec<_>>()
    };

    let wrong = said(&runner, 31, "/handoff cancle $(touch sly) `@octocat`");
    let run = runner.run("handoff-intake.yml", &wrong);
    run.job("record", "success");
    runner.run("handoff-intake.yml", &wrong.again());
    assert_eq!(runner.kept("reactions.json"), json!([[31, "confused"]]));
    let all = replies();
    assert_eq!(all.len(), 1, "{all:#?}");
    let body = all[0]["body"].as_str().unwrap();
    assert!(
        body.contains("there is no such command: the commands are"),
        "{body}"
    );
    assert!(
        body.contains("```text\n/handoff cancel $(touch sly) `@octocat`\n```"),
        "{body}"
    );

    // Corrected, it takes effect, and the reply says so.
    let mut right = wrong.clone();
    right.run += 100;
    right.payload["action"] = json!("edited");
    right.payload["changes"] = json!({ "body": { "from": right.payload["comment"]["body"] } });
    right.payload["comment"]["body"] = json!("/handoff cancel");
    right.payload["comment"]["updated_at"] = right.payload["comment"]["created_at"].clone();
    for event in [right.clone(), right.again()] {
        let run = runner.run("handoff-intake.yml", &event);
        run.job("record", "success");
    }
    let all = replies();
    let body = all[0]["body"].as_str().unwrap();
    assert!(
        all.len() == 1 && body.contains("✓ `87.1 was cancelled"),
        "{all:#?}"
    );
    assert_eq!(runner.kept("reactions.json"), json!([[31, "rocket"]]));

    // What is taken at once gets no reply, and what is no command nothing.
    runner.run("handoff-intake.yml", &said(&runner, 32, "/handoff status"));
    let run = runner.run("handoff-intake.yml", &said(&runner, 33, "> /handoff retry"));
    run.job("record", "success");
    let plain = runner.run("handoff-intake.yml", &said(&runner, 34, "Thank you"));
    plain.job("record", "skipped");
    assert_eq!(replies().len(), 1);
    assert_eq!(runner.kept("reactions.json")[1], json!([32, "+1"]));
    assert!(
        !files(runner.env.root())
            .iter()
            .any(|(path, _)| path.ends_with("sly"))
    );
    runner.env.handoff(&["fetch"]).success();
    runner.env.assert_sound();
}

#[test]
fn the_report_becomes_a_page_with_a_part_for_each_issue() {
    let runner = desk();
    let run = runner.run("handoff-intake.yml", &opened(87, 1));
    run.job("record", "success");
    let run = runner.run("handoff-pages.yml", &Event::new("schedule", 2, json!({})));
    run.job("report", "success").job("deploy", "success");
    let root = runner.env.root();
    let page = fs::read_to_string(root.join("pages/index.html")).unwrap();
    // The comment's link leads there.
    assert!(page.contains("id=\"i-87\""), "{page}");
    let body = comment_on(&runner, 87)["body"].to_string();
    assert!(body.contains("https://octo.github.io/desk/#i-87"), "{body}");
    let kept = root.join("artifacts/handoff-report/index.html");
    assert_eq!(fs::read_to_string(kept).unwrap(), page);
}

#[test]
fn checks_and_statuses_of_others_are_recorded_and_the_gates_own_starts_nothing() {
    let runner = desk();
    let env = &runner.env;
    let run = runner.run("handoff-intake.yml", &opened(87, 1));
    run.job("record", "success");
    let event = pull(&runner, "opened", 2);
    let run = runner.run("handoff-intake.yml", &event);
    run.job("record", "success");
    let head = event.payload["pull_request"]["head"]["sha"].clone();
    let here = json!({ "id": 1, "full_name": "owner/desk", "default_branch": "main" });
    let at = chrono::DateTime::from_timestamp(env.now() + 3600, 0).unwrap();
    let at = at.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let number = std::cell::Cell::new(10);
    let run = |name: &'static str, payload: Value| {
        number.set(number.get() + 1);
        runner.run(
            "handoff-intake.yml",
            &Event::new(name, number.get(), payload),
        )
    };
    let suite = |conclusion: &str, pull_requests: Value| {
        let suite = json!({
            "id": 5, "head_sha": head, "head_branch": "export", "status": "completed", "conclusion": conclusion,
            "app": { "name": "Builder" }, "pull_requests": pull_requests, "created_at": at, "updated_at": at,
        });
        run(
            "check_suite",
            json!({ "action": "completed", "check_suite": suite, "repository": here, "sender": person("builder") }),
        )
    };
    let status = |context: &str, state: &str, branches: Value| {
        run(
            "status",
            json!({
                "id": 7, "sha": head, "state": state, "context": context, "description": "$(touch sly)", "target_url": null,
                "branches": branches, "created_at": at, "updated_at": at, "repository": here, "sender": person("builder"),
            }),
        )
    };
    let branch = |name: &str| json!([{ "name": name, "commit": { "sha": head } }]);

    suite("failure", json!([{ "number": 7 }]))
        .job("record", "success")
        .says("check_suite completed, issue 87, ")
        .says("ci_conclusion failure")
        .says("ci_name Builder");
    for branches in [branch("export"), json!([])] {
        status("build/arm", "success", branches)
            .job("record", "success")
            .says("status, issue 87, ");
    }
    // A failure outweighs what passes beside it, and is not taken back by a status of the same name.
    status("Builder", "success", branch("export")).job("record", "success");
    handoffs(&runner, 87);
    let known = env.data(&["status", "87"])["known"].clone();
    assert_eq!(known["ci_conclusion"], "failure", "{known:#}");
    let before = tip(&runner);
    for run in [
        suite("success", json!([])),
        status("handoff gate", "failure", branch("export")),
        status("build/arm", "pending", branch("export")),
        status(
            "build/arm",
            "failure",
            json!([{ "name": "export" }, { "name": "main" }]),
        ),
    ] {
        run.job("record", "skipped");
    }
    assert_eq!(tip(&runner), before);
    // A review and a run of a workflow are as they were.
    let mut payload = pull(&runner, "submitted", 3).payload;
    payload["review"] = json!({ "state": "commented", "body": null, "user": person("octocat") });
    run("pull_request_review", payload).job("record", "success");
    env.assert_sound();
}

#[test]
fn labels_count_as_they_are_now() {
    let runner = desk();
    let mut event = opened(87, 1);
    event.payload["issue"]["labels"] = json!([]);
    let run = runner.run("handoff-intake.yml", &event);
    run.job("record", "success");
    handoffs(&runner, 87);
    let waits = runner.env.data(&["status", "87"]);
    assert_eq!(waits["handoffs"][0]["to"], "issue-manager", "{waits:#}");
    // A bot sets three labels and takes one: the run that is left is of that one, and has none of them.
    let mut event = opened(87, 2);
    event.payload["action"] = json!("unlabeled");
    event.payload["label"] = json!({ "name": "triage" });
    runner.api.knows_issue(&event.payload["issue"]);
    event.payload["issue"]["labels"] = json!([]);
    event.attempt = 2;
    let run = runner.run("handoff-intake.yml", &event);
    run.job("record", "success")
        .says("  sent 87.2 by issue-manager");
    handoffs(&runner, 87);
    runner.env.assert_sound();
}

#[test]
fn an_approving_review_can_approve_in_the_ledger() {
    let runner = desk();
    let github = runner.env.root().join("github");
    fs::write(
        github.join("collaborators.json"),
        json!([["maintainer", "write"]]).to_string(),
    )
    .unwrap();
    runner
        .run("handoff-intake.yml", &opened(87, 1))
        .job("record", "success");
    runner.env.handoff(&["fetch"]).success();
    step(&runner, "prep-agent", prepared(87));
    let review = sample("implementer-agent-to-reviewer-agent", Format::Xml, 87);
    step(&runner, "implementer-agent", review);
    let event = pull(&runner, "opened", 2);
    runner
        .run("handoff-intake.yml", &event)
        .job("record", "success");
    let at = chrono::DateTime::from_timestamp(runner.env.now() + 3600, 0).unwrap();
    let mut payload = event.payload.clone();
    payload["action"] = json!("submitted");
    payload["review"] = json!({
        "id": 51, "state": "approved", "body": "Good.\n\n/handoff approve", "user": person("maintainer"),
        "commit_id": payload["pull_request"]["head"]["sha"], "author_association": "MEMBER",
        "html_url": "https://github.com/owner/desk/pull/7#pullrequestreview-51",
        "submitted_at": at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    // One that was dismissed before its run began, of which GitHub tells later.
    let mut early = payload.clone();
    early["review"]["id"] = json!(50);
    let dismissed = json!({ "id": 50, "state": "DISMISSED" });
    runner.api.is_reviewed(7, dismissed);
    let early = Event::new("pull_request_review", 4, early);
    let run = runner.run("handoff-intake.yml", &early);
    run.job("record", "success")
        .says("the review was dismissed");
    let reviewed = Event::new("pull_request_review", 3, payload);
    let run = runner.run("handoff-intake.yml", &reviewed);
    run.job("record", "success")
        .says("review_state approved")
        .says("  taken: 87.3 was approved at ");
    let replies = runner.kept("comments.json").to_string();
    assert!(
        replies.contains("<!-- git-handoff-reply:review-51 -->"),
        "{replies}"
    );
    // An issue that was opened again before the run of its closing began.
    let open = opened(87, 5);
    let mut closed = open.payload.clone();
    closed["action"] = json!("closed");
    closed["issue"]["state"] = json!("closed");
    runner.api.knows_issue(&open.payload["issue"]);
    let run = runner.run(
        "handoff-intake.yml",
        &Event::new("issues", 5, closed).again(),
    );
    run.job("record", "success")
        .says("GitHub says that the issue is open now");
}

/// With one job for each step and the gate beside the intake, they were 30 jobs and 139 requests.
#[test]
fn a_pull_request_of_one_round_takes_few_jobs_and_requests() {
    let runner = desk();
    let (env, repo) = (&runner.env, runner.env.repo());
    let github = env.root().join("github");
    fs::write(
        github.join("collaborators.json"),
        json!([["maintainer", "write"]]).to_string(),
    )
    .unwrap();
    let (mut jobs, mut number) = (0, 0);
    let mut play = |name: &'static str, payload: Value| {
        number += 1;
        for file in ["handoff-intake.yml", "handoff-gate.yml"] {
            let file = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("templates/github")
                .join(file);
            let file = crate::yaml(&file);
            let event = Event::new(name, number, payload.clone());
            if crate::runner::is_started(&file, &event) {
                let run = runner.run_workflow(&file, &event);
                assert!(
                    !run.jobs.values().any(|result| result == "failure"),
                    "{}",
                    run.log
                );
                jobs += run
                    .jobs
                    .values()
                    .filter(|result| *result == "success")
                    .count();
            }
        }
    };
    let later = || {
        env.wait_minutes(1);
        let at = chrono::DateTime::from_timestamp(env.now() + 3600, 0).unwrap();
        at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
    };
    let commit = |text: &str| {
        fs::write(repo.join("export.txt"), text).unwrap();
        env.git(&repo, &["add", "."]);
        env.git(&repo, &["commit", "-q", "-m", "Export"]);
    };
    let handed = |agent: &str, contract: &str| {
        env.handoff(&["fetch"]).success();
        step(&runner, agent, sample(contract, Format::Xml, 87));
    };
    play("issues", opened(87, 1).payload);
    env.handoff(&["fetch"]).success();
    step(&runner, "prep-agent", prepared(87));
    env.git(
        &repo,
        &["checkout", "-q", "-b", "enhancement/87-csv-export"],
    );
    commit("a,b\n");
    let told = |action: &str| {
        let mut payload = pull(&runner, action, 0).payload;
        payload["pull_request"]["updated_at"] = json!(later());
        payload["pull_request"]["head"]["ref"] = json!("enhancement/87-csv-export");
        payload
    };
    let ci = |conclusion: &str| {
        let head = env.git(&repo, &["rev-parse", "HEAD"]);
        let run = json!({ "id": env.now(), "run_attempt": 1, "name": "CI", "event": "pull_request", "conclusion": conclusion,
            "head_branch": "enhancement/87-csv-export", "head_sha": head.trim(), "head_repository": here(), "pull_requests": [],
            "run_started_at": later(), "updated_at": later(), "html_url": "https://github.com/owner/desk/actions/runs/1" });
        json!({ "action": "completed", "workflow_run": run, "repository": here(), "sender": person("octocat") })
    };
    let review = |says: &str, id: u32| {
        let mut payload = told("submitted");
        payload["review"] = json!({ "id": id, "state": says, "body": "", "user": person("maintainer"),
            "commit_id": payload["pull_request"]["head"]["sha"], "submitted_at": later(),
            "html_url": "https://github.com/owner/desk/pull/7#r" });
        payload
    };
    play("pull_request_target", told("opened"));
    handed("implementer-agent", "implementer-agent-to-reviewer-agent");
    play("workflow_run", ci("success"));
    for id in 41..44 {
        play(
            "issue_comment",
            said(&runner, id, "What do you think?").payload,
        );
    }
    play("pull_request_review", review("changes_requested", 1));
    handed("reviewer-agent", "reviewer-agent-to-fixer-agent");
    commit("a,b,c\n");
    play("pull_request_target", told("synchronize"));
    handed("fixer-agent", "fixer-agent-to-reviewer-agent");
    play("workflow_run", ci("success"));
    play("pull_request_review", review("approved", 2));
    let approval = sample("reviewer-agent-to-validator-agent", Format::Xml, 87);
    step(&runner, "reviewer-agent", approval);
    play("workflow_dispatch", json!({ "inputs": { "issue": "87" } }));
    let mut merged = told("closed");
    merged["pull_request"]["merged"] = json!(true);
    merged["pull_request"]["state"] = json!("closed");
    merged["pull_request"]["merge_commit_sha"] = merged["pull_request"]["head"]["sha"].clone();
    play("pull_request_target", merged);
    let mut closed = opened(87, 1).payload;
    closed["action"] = json!("closed");
    closed["issue"]["state"] = json!("closed");
    closed["issue"]["state_reason"] = json!("completed");
    closed["issue"]["closed_at"] = json!(later());
    play("issues", closed);
    // What `gh` asks the stand-in of the API for is not counted twice.
    let calls = fs::read_to_string(github.join("calls.txt")).unwrap();
    let mut asked = runner.api.asked();
    let own = calls.lines().filter(|line| !line.contains("/pulls/"));
    asked.extend(own.map(str::to_owned));
    let requests = asked.len();
    assert_eq!((jobs, requests), (10, 68), "{asked:#?}");
}
