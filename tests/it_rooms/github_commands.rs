//! Commands in comments: what each does, once; and what is refused, why, and what to write instead.

use serde_json::{Value, json};
use test_support::contracts::{Format, opening, prepared, sample};
use test_support::events::{at, comment, did, event, issue, permitted, pull, pull_request, why};
use test_support::team::Folder;
use test_support::{TestEnvironment, stored};

/// A ledger in which prep-agent has work in issue 12.
fn started() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(12)).success();
    env.claim("12.1", "prep-agent").success();
    env
}

/// A comment with an id of its own.
fn said(env: &TestEnvironment, id: u64, body: &str) -> Value {
    env.wait_minutes(1);
    let mut payload = comment(env, issue(12), body);
    payload["comment"]["id"] = json!(id);
    payload
}

/// The same comment after its author edited it.
fn edited(env: &TestEnvironment, before: &Value, body: &str) -> Value {
    env.wait_minutes(1);
    let mut payload = before.clone();
    payload["action"] = json!("edited");
    payload["changes"] = json!({"body": {"from": before["comment"]["body"]}});
    payload["comment"]["body"] = json!(body);
    payload["comment"]["updated_at"] = json!(at(env, 0));
    payload
}

fn say(env: &TestEnvironment, payload: &Value) -> Value {
    event(env, "issue_comment", payload)
}

/// What became of each command: `✓ sentence` or `✗ sentence → next`.
fn commands(data: &Value) -> Vec<String> {
    let all = data["commands"].as_array().unwrap().iter();
    all.map(|one| {
        let sentence = one["sentence"].as_str().unwrap();
        match (one["accepted"] == true, one["next"].as_str()) {
            (true, _) => format!("✓ {sentence}"),
            (false, None) => format!("✗ {sentence}"),
            (false, Some(next)) => format!("✗ {sentence} → {next}"),
        }
    })
    .collect()
}

#[track_caller]
fn assert_says(env: &TestEnvironment, id: u64, body: &str, expected: &[&str]) {
    let data = say(env, &said(env, id, body));
    assert_eq!(commands(&data), expected, "{data:#}");
}

fn fail(env: &TestEnvironment) {
    let fail = ["fail", "12.1", "--as", "prep-agent", "--recoverable"];
    env.handoff(&[&fail[..], &["--message", "no space left"]].concat())
        .success();
}

fn last(env: &TestEnvironment, id: &str) -> Value {
    let record = stored(&env.data(&["show", id]));
    record["transitions"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone()
}

#[test]
fn failed_work_is_retried_given_away_and_withdrawn() {
    let env = started();
    assert_says(
        &env,
        1,
        "/handoff retry",
        &["✗ nothing in issue 12 failed → /handoff status"],
    );
    fail(&env);
    let data = say(
        &env,
        &said(
            &env,
            2,
            "it has space now\n/handoff retry the disk is larger",
        ),
    );
    assert_eq!(did(&data), ["retried 12.1"], "{data:#}");
    assert_eq!(commands(&data), ["✓ 12.1 was retried"]);
    let retried = last(&env, "12.1");
    assert_eq!(retried["by"], "orchestrator");
    assert_eq!(
        retried["reason"],
        "the disk is larger (by maintainer, https://github.com/quayside/parcel-desk/issues/12#issuecomment-1)"
    );

    assert_says(
        &env,
        3,
        "/handoff assign",
        &["✗ it names no agent that the work is given to → /handoff assign 12.1 AGENT"],
    );
    let data = say(
        &env,
        &said(&env, 4, "/handoff assign 12.1 revewer-agent now"),
    );
    let all = commands(&data);
    assert!(
        all[0].starts_with("✗ revewer-agent is not an agent of protocol issue-to-pr: its agents are issue-manager, ")
            && all[0].ends_with(" → /handoff assign 12.1 reviewer-agent now"),
        "{all:?}"
    );
    let data = say(&env, &said(&env, 5, "/handoff assign closer-agent"));
    let all = commands(&data);
    assert!(
        all[0].contains("closer-agent cannot take over 12.1"),
        "{all:?}"
    );

    assert_says(
        &env,
        6,
        "/handoff cancel 13.1",
        &["✗ 13.1 is not of issue 12 → /handoff status"],
    );
    assert_says(
        &env,
        7,
        "/handoff cancel it is not wanted",
        &["✓ 12.1 was cancelled"],
    );
    assert_says(
        &env,
        8,
        "/handoff cancel",
        &["✗ nothing in issue 12 is open → /handoff status"],
    );
    env.assert_sound();
}

#[test]
fn work_is_given_to_another_agent() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "ours");
    folder.define(|definition| {
        let other = json!({"from": "issue-manager", "to": "fixer-agent", "contracts": ["issue-manager-to-prep-agent"]});
        definition["routes"].as_array_mut().unwrap().push(other);
    });
    let schema = "schemas/issue-manager-to-prep-agent.schema.json";
    folder.edit(schema, |schema| {
        schema["properties"]["to"] = json!({"enum": ["prep-agent", "fixer-agent"]});
    });
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    env.send(opening(12)).success();
    assert_says(
        &env,
        1,
        "/handoff assign closer-agent",
        &[
            "✗ closer-agent cannot take over 12.1: no route lets the same sender send it such a contract → /handoff assign 12.1 fixer-agent",
        ],
    );
    let data = say(
        &env,
        &said(&env, 2, "/handoff assign fixer-agent it is free"),
    );
    assert_eq!(did(&data), ["reassigned 12.1"], "{data:#}");
    assert_eq!(commands(&data), ["✓ 12.1 was given to fixer-agent"]);
    env.assert_sound();
}

#[test]
fn dead_work_gets_new_attempts() {
    let env = started();
    let fail = ["fail", "12.1", "--as", "prep-agent", "--message", "gone"];
    env.handoff(&fail).success();
    let state = env.data(&["show", "12.1"])["handoff"]["state"].clone();
    let data = say(&env, &said(&env, 1, "/handoff retry 12.1"));
    assert_eq!(did(&data), ["retried 12.1"], "{state}: {data:#}");
    assert_eq!(env.data(&["show", "12.1"])["handoff"]["state"], "pending");
    env.assert_sound();
}

#[test]
fn a_command_that_is_wrong_says_why_and_what_to_write() {
    let env = started();
    let ask = ["block", "12.1", "--as", "prep-agent", "--reason", "which?"];
    let needs = ["--needs", "port:integer=the port", "--needs", "host"];
    env.handoff(&[&ask[..], &needs].concat()).success();
    let lines = "/handoff answer 12.1 port=INTEGER\n/handoff answer 12.1 host=VALUE";
    for (id, body, starts) in [
        (
            1,
            "/handoff",
            "✗ it names no command: the commands are /handoff answer, approve, retry, assign, cancel, status → /handoff status",
        ),
        (
            2,
            "/handoff awnser 12.1 port=1",
            "✗ there is no such command: the commands are /handoff answer, approve, retry, assign, cancel, status → /handoff answer 12.1 port=1",
        ),
        (
            3,
            "/handoffs retry",
            "✗ there is no such command: the commands are /handoff answer, approve, retry, assign, cancel, status → /handoff retry",
        ),
        (
            4,
            "/handoff merge",
            "✗ there is no such command: the commands are /handoff answer, approve, retry, assign, cancel, status → /handoff status",
        ),
        (
            5,
            "/handoff answer",
            &format!("✗ it has no answer that can be seen → {lines}"),
        ),
        (
            6,
            "/handoff answer port=x host=h",
            &format!(
                "✗ the answer to 12.1 does not match the question: \"port\" must be of type \"integer\", as asked in 12.1, and this is a text: \"x\" → {lines}"
            ),
        ),
        (
            7,
            "/handoff answer 12.9 x",
            "✗ there is no handoff 12.9 → /handoff status",
        ),
        (
            8,
            "/handoff approve",
            "✗ there is nothing to approve yet: no commit of its work is known → /handoff status",
        ),
    ] {
        let data = say(&env, &said(&env, id, body));
        assert_eq!(commands(&data), [starts], "{body}");
        let reply = data["reply"].as_str().unwrap();
        assert!(
            reply.starts_with(&format!("<!-- git-handoff-reply:comment-{id} -->\n")),
            "{reply}"
        );
    }
    // Several are each taken or refused.
    assert_says(
        &env,
        9,
        "/handoff answer port=1\n/handoff retyr\n/handoff answer host=a b\n/handoff status",
        &[
            "✓ 12.1 was answered",
            "✗ there is no such command: the commands are /handoff answer, approve, retry, assign, cancel, status → /handoff retry",
            "✓ the comment about issue 12 is written again",
        ],
    );
    let values = json!({"port": 1, "host": "a b"});
    assert_eq!(last(&env, "12.1")["values"], values);
    env.assert_sound();
}

#[test]
fn an_edited_comment_counts_once() {
    let env = started();
    fail(&env);
    let wrong = said(&env, 7, "/handoff rtry");
    assert!(did(&say(&env, &wrong)).is_empty());
    // The correction of what was refused counts.
    let right = edited(&env, &wrong, "/handoff retry");
    assert_eq!(did(&say(&env, &right)), ["retried 12.1"]);
    assert_eq!(did(&say(&env, &right)), ["retried 12.1 again"]);
    // Whatever else is edited then, what was taken is not taken again.
    env.claim("12.1", "prep-agent").success();
    fail(&env);
    let more = edited(&env, &right, "Please.\n\n/handoff retry");
    let data = say(&env, &more);
    assert!(
        did(&data).is_empty() && commands(&data).is_empty(),
        "{data:#}"
    );
    assert!(why(&data).contains("the same commands before it was edited"));
    let back = edited(&env, &edited(&env, &more, "no"), "/handoff  retry");
    assert_eq!(did(&say(&env, &back)), ["retried 12.1 again"]);
    assert_eq!(env.data(&["show", "12.1"])["handoff"]["state"], "failed");
    // Nor is what was refused judged again when something else is edited.
    let early = said(&env, 8, "/handoff answer x");
    assert!(did(&say(&env, &early)).is_empty());
    let data = say(
        &env,
        &edited(&env, &early, "/handoff answer x\n/handoff retry 12.1"),
    );
    assert_eq!(commands(&data), ["✓ 12.1 was retried"]);

    // Who may edit others' comments does not speak for them.
    let mut other = edited(&env, &said(&env, 9, "hello"), "/handoff cancel");
    other["sender"]["login"] = json!("mallory");
    let data = say(&env, &other);
    assert!(
        did(&data).is_empty() && why(&data).contains("edited by someone other than its author"),
        "{data:#}"
    );
    env.assert_sound();
}

#[test]
fn who_may_not_is_told_and_programs_are_not() {
    let env = started();
    let payload = said(&env, 1, "/handoff cancel\n/handoff status");
    let data = permitted(&env, "issue_comment", &payload, "triage");
    assert_eq!(
        commands(&data),
        [
            "✗ maintainer may not write to the repository, which it takes to cancel",
            "✓ the comment about issue 12 is written again",
        ]
    );
    // What nobody asked GitHub about is noted once for the comment, and told.
    let mut stranger = said(&env, 2, "/handoff cancel 12.1\n/handoff cancel");
    stranger["comment"]["author_association"] = json!("NONE");
    let data = say(&env, &stranger);
    assert_eq!(did(&data), ["noted 12.1"], "{data:#}");
    assert!(
        commands(&data)
            .iter()
            .all(|one| one.contains("nothing proves that maintainer may write"))
    );
    assert_eq!(did(&say(&env, &stranger)), ["noted 12.1 again"]);
    let mut program = said(&env, 3, "/handoff cancel");
    program["comment"]["user"]["type"] = json!("Bot");
    let data = say(&env, &program);
    assert_eq!(
        (&data["commands"], &data["reply"]),
        (&json!([]), &Value::Null)
    );
    let data = permitted(&env, "issue_comment", &stranger, "write");
    assert_eq!(commands(&data)[0], "✓ 12.1 was cancelled");
    env.assert_sound();
}

/// A ledger in which the reviewer has pull request 5 of issue 12.
fn in_review() -> TestEnvironment {
    let env = started();
    env.send(prepared(12)).success();
    env.claim("12.2", "implementer-agent").success();
    let contract = sample("implementer-agent-to-reviewer-agent", Format::Json, 12);
    let mut contract: Value = serde_json::from_str(&contract).unwrap();
    contract["pr_number"] = json!(5);
    contract["pr_url"] = json!("https://github.com/quayside/parcel-desk/pull/5");
    env.send(contract.to_string()).success();
    env
}

fn pushed(env: &TestEnvironment, action: &str, head: &str) {
    env.wait_minutes(1);
    let mut own = pull_request(5, 12);
    own["html_url"] = json!("https://github.com/quayside/parcel-desk/pull/5");
    own["head"]["sha"] = json!(head.repeat(40));
    own["updated_at"] = json!(at(env, 0));
    let data = event(env, "pull_request", &pull(action, own));
    assert_eq!(did(&data).len(), 1, "{data:#}");
}

#[test]
fn a_person_approves_the_newest_commit_that_is_known() {
    let env = in_review();
    pushed(&env, "opened", "1");
    let early = said(&env, 1, "/handoff approve fine");
    pushed(&env, "synchronize", "3");
    // What was pushed after it was said is not approved.
    let data = say(&env, &early);
    assert_eq!(
        commands(&data),
        [
            "✗ the pull request's newest commit that is known is 3333333333, which came after this was said → /handoff approve 3333333333"
        ]
    );
    assert_says(
        &env,
        2,
        "/handoff approve 1111111",
        &[
            "✗ the pull request's newest commit that is known is 3333333333, and not 1111111 → /handoff approve 3333333333",
        ],
    );
    let gate = ["gate", "--issue", "12", "--require", "approved-by-person"];
    env.handoff(&gate).exits(1);
    let data = say(&env, &said(&env, 3, "/handoff approve 3333333 tried it"));
    assert_eq!(did(&data), ["approved 12.3"], "{data:#}");
    assert_eq!(
        commands(&data),
        ["✓ 12.3 was approved at 3333333333, in the name of maintainer"]
    );
    let notes = env.data(&["status", "12"])["record"]["annotations"].clone();
    let approval = notes.as_array().unwrap().last().unwrap().clone();
    assert_eq!(approval["by"], "maintainer");
    assert_eq!(approval["approval"]["code"]["commit"], "3".repeat(40));
    assert_eq!(
        approval["note"],
        "tried it (by maintainer, https://github.com/quayside/parcel-desk/issues/12#issuecomment-1)"
    );
    let again = env.handoff(&gate);
    assert!(again.shown.contains("12.3"), "{}", again.shown);
    env.assert_sound();
}

#[test]
fn a_protocol_says_which_commands_it_takes() {
    let env = started();
    let folder = Folder::copy(&env, "issue-to-pr", "ours");
    let with = |commands: Value, agent: &str| {
        folder.define(|definition| {
            definition["github"]["rules"] = json!([{
                "name": "say", "on": {"issue_comment": ["created"]}, "as": agent, "do": commands
            }]);
        });
        env.handoff(&["protocol", "check", &folder.path()])
    };
    with(json!({"commands": []}), "orchestrator")
        .exits(1)
        .says("it names no command");
    with(json!({"commands": ["merge"]}), "orchestrator").exits(1);
    with(json!({"commands": ["approve"]}), "maintainer").success();
    with(json!("answer"), "orchestrator").success();

    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "ours");
    folder.define(|definition| {
        definition["github"]["rules"] = json!([{
            "name": "say", "on": {"issue_comment": ["created"]}, "as": "orchestrator", "do": "answer"
        }]);
    });
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    env.send(opening(12)).success();
    assert_says(
        &env,
        1,
        "/handoff cancel",
        &[
            "✗ protocol issue-to-pr does not take `cancel` from comments: the commands are /handoff answer, status",
        ],
    );
}
