//! What needs attention: with whom, since when, and why; and work ends with its lease.

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, implementer_error, opening, prepared, sample, valid};
use test_support::team::{run, sent, with_protocol};
use test_support::workflow::completed;

fn stuck(env: &TestEnvironment) -> Vec<Value> {
    let data = env.data(&["status"]);
    data["attention"].as_array().unwrap().clone()
}

#[cfg(feature = "report")]
/// How long one agent worked, and how long nobody decided about what it had, in seconds.
fn spent(env: &TestEnvironment, agent: &str) -> (i64, i64) {
    let data = env.data(&["metrics"]);
    let agents = data["agents"].as_array().unwrap();
    let one = agents.iter().find(|a| a["agent"] == agent).unwrap();
    let of = |name: &str| one[name].as_i64().unwrap();
    (of("working_seconds"), of("failed_seconds"))
}

#[cfg(feature = "report")]
#[test]
fn work_ends_with_its_lease_whoever_records_that_and_when() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    env.handoff(&["claim", "7.1", "--as", "prep-agent", "--lease", "45m"])
        .success();
    env.wait_minutes(30);
    assert!(stuck(&env).is_empty());
    let (working, failed) = spent(&env, "prep-agent");
    assert!((1800..2000).contains(&working), "{working}");
    assert_eq!(failed, 0);

    env.wait_minutes(20 * 60);
    let found = stuck(&env);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["need"], "lease_ran_out");
    let retry = "git handoff retry 7.1 --as orchestrator --reason WHY";
    assert_eq!(found[0]["next"], retry);
    let since = found[0]["since"].clone();
    let (working, failed) = spent(&env, "prep-agent");
    assert_eq!(working, 45 * 60);
    assert!(failed > 19 * 3600);

    // That it is recorded moves nothing.
    env.handoff(&["reap"]).success();
    let found = stuck(&env);
    assert_eq!(found[0]["need"], "failed");
    assert_eq!(found[0]["since"], since);
    let (again, still) = spent(&env, "prep-agent");
    assert_eq!(again, 45 * 60);
    assert!(still >= failed);
    let alerts = env.handoff(&["alerts", "--json"]);
    let alerts: Value = serde_json::from_str(&alerts.stdout).unwrap();
    let firing = alerts["error"]["data"].get("firing");
    let firing = firing.or(alerts["data"].get("firing")).unwrap();
    let firing = firing.as_array().unwrap();
    assert!(
        firing.iter().any(|alert| alert["name"] == "left-failed"),
        "{alerts}"
    );
}

#[test]
fn what_takes_a_contract_is_not_applied_and_said_to_need_its_agent() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    let reject = [
        "reject",
        "7.1",
        "--as",
        "prep-agent",
        "--reason",
        "no scope",
    ];
    env.handoff(&reject).success();
    let before = env.tip();
    let refused = env.handoff(&["next", "7", "--apply", "--as", "orchestrator"]);
    assert_eq!(refused.status, 6, "{}", refused.shown);
    insta::assert_snapshot!(refused.stderr, @"
    error: nothing to apply in issue 7: 7.1 needs issue-manager, not a decision (rejected: no scope)
    hint: run `git handoff new --issue 7 --from issue-manager --to prep-agent`
    ");
    assert_eq!(env.tip(), before);
    // With nothing that needs anybody, it says so.
    env.send(opening(8)).success();
    let refused = env.handoff(&["next", "8", "--apply", "--as", "orchestrator"]);
    refused.says("nothing in issue 8 needs attention");
}

/// Asserts what somebody has to take up in an issue in which nothing is open, and how.
#[track_caller]
fn assert_next(env: &TestEnvironment, issue: &str, agent: &str, found: &Value) {
    let (id, command) = (&found["id"], found["next"].as_str().unwrap());
    assert_eq!(found["turn"], agent);
    let next = env.data(&["next", issue]);
    assert_eq!(next["action"], "advance");
    assert_eq!(next["agent"], agent);
    assert_eq!(next["handoff"]["id"], *id);
    assert_eq!(next["commands"], json!([command]));
    assert_eq!(next["attention"], json!([found]));
    let told = env.handoff(&["next", issue]).success();
    let begins = format!("{agent} with {}: ", id.as_str().unwrap());
    assert!(told.stdout.starts_with(&begins), "{}", told.shown);
    assert_eq!(told.stderr, format!("next: {command}\n"));
    #[cfg(feature = "github")]
    {
        let values = env.data(&["github", "output", issue]);
        assert_eq!(values["next_action"], "advance");
        assert_eq!(values["next_agent"], agent);
        assert_eq!(values["next_id"], *id);
        assert_eq!(values["attention"], "1");
    }
}

#[test]
fn what_ended_in_an_issue_with_nothing_open_awaits_somebody() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    env.claim("7.1", "prep-agent").success();
    env.handoff(&["complete", "7.1", "--as", "prep-agent"])
        .success();
    let found = stuck(&env);
    assert_eq!(found[0]["need"], "not_handed_on");
    // Of several receivers it names the one that most likely is next, and the command runs.
    let send = "git handoff new --issue 7 --from prep-agent --to implementer-agent";
    assert_eq!(found[0]["next"], send);
    let args: Vec<&str> = send.split(' ').skip(2).collect();
    env.handoff(&args).success();
    // What is next is the same, wherever it is asked for.
    assert_next(&env, "7", "prep-agent", &found[0]);
    // What was taken back is its sender's to send again.
    env.send(opening(8)).success();
    let cancel = ["cancel", "8", "--as", "issue-manager", "--reason", "no"];
    env.handoff(&cancel).success();
    let again = "git handoff new --issue 8 --from issue-manager --to prep-agent";
    let found = stuck(&env);
    let cancelled = found.iter().find(|one| one["id"] == "8.1").unwrap();
    assert_eq!(cancelled["next"], again);
    assert_eq!(cancelled["why"], "no");
    assert_next(&env, "8", "issue-manager", cancelled);
    // Once it is sent again, nobody needs it any more.
    env.send(opening(8)).success();
    assert_eq!(stuck(&env).len(), 1);
    env.assert_sound();
    // So it is once an issue that was done is open again.
    let done = completed(|_| Format::Xml);
    let asked = done.handoff(&["next", "87"]).success();
    assert_eq!(asked.stdout, "nothing is open in issue 87\n");
    assert_eq!(done.data(&["next", "87"])["action"], Value::Null);
    let reopen = ["reopen", "87", "--as", "orchestrator", "--reason", "again"];
    done.handoff(&reopen).success();
    let found = stuck(&done);
    assert_next(&done, "87", "closer-agent", &found[0]);

    // An answered request is done, and no protocol says of its issue that it is.
    let env = with_protocol("delegation");
    env.pace(1);
    let trace = "7b1c9f52-0d3e-4f38-9c64-d07e1f2a3b4c";
    let mut request = test_support::exchange::sample("delegation", "request");
    request["traceId"] = json!(trace);
    let mut answer = test_support::exchange::sample("delegation", "response");
    answer["traceId"] = json!(trace);
    env.send(request.to_string()).success();
    let id = format!("{trace}.1");
    let to = request["handoffTo"].as_str().unwrap();
    answer["respondingAgent"] = json!(to);
    let claim = ["claim", &id, "--as", to, "--lease", "1h"];
    env.handoff(&claim).success();
    env.send(answer.to_string()).success();
    // Who asked is told of the answer, until it does anything in the issue.
    assert!(stuck(&env).is_empty(), "nobody has to act");
    let asker = request["sourceAgent"].as_str().unwrap();
    let told = env.data(&["inbox", "--as", asker])["attention"].clone();
    assert_eq!(told.as_array().unwrap().len(), 1, "{told:#}");
    assert_eq!(told[0]["need"], "answered");
    assert_eq!(told[0]["turn"], request["sourceAgent"]);
    let next = told[0]["next"].as_str().unwrap();
    let args: Vec<&str> = next.split(' ').skip(2).collect();
    env.handoff(&args).success();
    let told = env.data(&["inbox", "--as", asker])["attention"].clone();
    assert_eq!(told, json!([]));
}

/// What needs somebody, a line for each: `ID need, TURN`.
fn needs(env: &TestEnvironment) -> Vec<String> {
    let line = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap().to_owned();
        format!("{} {}, {}", text("id"), text("need"), text("turn"))
    };
    stuck(env).iter().map(line).collect()
}

#[test]
fn a_report_to_an_agent_that_sends_nothing_on_leaves_the_work_with_its_sender() {
    let report = sample("error", Format::Xml, 7);
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    run(&env, "claim 7.1 --as prep-agent");
    run(&env, "complete 7.1 --as prep-agent");
    env.send(&report).success();
    run(&env, "claim 7.2 --as orchestrator");
    run(&env, "complete 7.2 --as orchestrator");
    assert_eq!(needs(&env), ["7.1 not_handed_on, prep-agent"]);
    env.send(prepared(7)).success();
    assert_eq!(needs(&env), [""; 0]);
    env.assert_sound();

    // What its own sender cancelled needs nobody until nothing else is left.
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    run(&env, "claim 7.1 --as prep-agent");
    env.send(&report).success();
    run(&env, "cancel 7.1 --as issue-manager");
    run(&env, "claim 7.2 --as orchestrator");
    assert_eq!(needs(&env), [""; 0]);
    run(&env, "complete 7.2 --as orchestrator");
    assert_eq!(needs(&env), ["7.1 cancelled, issue-manager"]);
    env.assert_sound();
}

#[test]
fn a_note_does_not_take_the_place_of_what_was_rejected() {
    let env = with_protocol("delegation");
    env.pace(1);
    let request = test_support::exchange::sample("delegation", "request");
    let (from, to) = ("document_generator", "research_agent");
    let trace = request["traceId"].as_str().unwrap();
    env.send(request.to_string()).success();
    let reject = ["reject", trace, "--as", to, "--reason", "busy"];
    env.handoff(&reject).success();
    let rejected = format!("{trace}.1 rejected, {from}");
    assert_eq!(needs(&env), [rejected.as_str()]);
    let note = test_support::exchange::sample("delegation", "decision");
    let args = ["send", "-", "--issue", trace, "--as", from];
    env.handoff_with(&args, note.to_string()).success();
    assert_eq!(needs(&env), [rejected.as_str()]);
    env.assert_sound();
}

#[test]
fn an_issue_that_ended_by_itself_and_is_reopened_needs_whoever_ended_it() {
    let env = with_protocol("task-breakdown");
    let opening = valid("task-breakdown", "environment-to-planning.json");
    let data = sent(&env, opening);
    let issue = data["issue"]["key"].as_str().unwrap();
    let open = env.data(&["status", issue])["handoffs"].take();
    let ids = open.as_array().unwrap().iter();
    let ids: Vec<String> = ids.map(|h| h["id"].as_str().unwrap().to_owned()).collect();
    for id in &ids[1..] {
        run(
            &env,
            &format!("reject {id} --as task-orchestrator --reason no"),
        );
    }
    run(&env, &format!("claim {} --as task-orchestrator", ids[0]));
    run(&env, &format!("complete {} --as task-orchestrator", ids[0]));
    run(
        &env,
        &format!("reopen {issue} --as operator --reason again"),
    );
    let done = format!("{} not_handed_on, task-orchestrator", ids[0]);
    assert_eq!(needs(&env), [done]);
    env.assert_sound();
}

/// `| `failure` | Agent failed, may need retry or escalation |` and `<recoverable>`: what its agent calls
/// hopeless is a person's turn at once, in every view, and the orchestrator is told.
#[test]
fn an_error_that_is_not_recoverable_reaches_the_person() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    env.claim("7.1", "prep-agent").success();
    env.send(prepared(7)).success();
    env.claim("7.2", "implementer-agent").success();
    let error = implementer_error(Format::Xml, 7);
    let hopeless = error.replace("<recoverable>true", "<recoverable>false");
    env.send(&hopeless).success();
    let reaches = |need: &str| {
        // `prime` says more in between.
        let line = if need == "failed" {
            "7.2 "
        } else {
            "7.2 waits for a person"
        };
        for args in [
            &["inbox", "--as", "maintainer"][..],
            #[cfg(feature = "agents")]
            &["prime", "--as", "maintainer"],
            &["wait", "--inbox", "--as", "maintainer", "--timeout", "5s"],
            &["status"],
        ] {
            env.handoff(args).success().says(line);
        }
        let turn = "maintainer's turn";
        env.handoff(&["status", "7"]).success().says(turn);
        env.handoff(&["inbox", "--as", "orchestrator"])
            .success()
            .says(turn);
        let next = env.data(&["next", "7"]);
        assert_eq!(
            (&next["action"], &next["agent"]),
            (&json!("escalate"), &json!("maintainer"))
        );
    };
    reaches("failed");
    #[cfg(feature = "notify")]
    env.handoff(&["notify", "--once", "--exec", "cat", "--json"])
        .success()
        .says("maintainer");
    let applied = env.data(&["next", "7", "--apply", "--as", "orchestrator"]);
    // What it did is no longer offered.
    assert_eq!(
        (&applied["commands"], &applied["attention"]),
        (&Value::Null, &json!([]))
    );
    reaches("waits for a person");
    env.handoff(&[
        "retry",
        "7.2",
        "--as",
        "maintainer",
        "--reason",
        "it is back",
    ])
    .success();
    assert!(needs(&env).is_empty(), "{:?}", needs(&env));
    env.assert_sound();
}
