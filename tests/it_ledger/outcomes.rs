//! What a contract's status says is what becomes of the work that its sender held.

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample, valid};
use test_support::team::{Refused, record, run, with_protocol};
use test_support::time::own;

/// A contract of the protocol issue-to-pr with this status.
fn with_status(name: &str, status: &str) -> String {
    let contract = sample(name, Format::Xml, 87);
    let end = "</handoff>";
    assert!(contract.contains(end) && !contract.contains("<status>"));
    contract.replace(end, &format!("<status>{status}</status>\n</handoff>"))
}

/// An issue whose implementer works on it as 87.2.
fn implementing() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    run(&env, "claim 87.1 --as prep-agent");
    env.send(prepared(87)).success();
    run(&env, "claim 87.2 --as implementer-agent");
    env
}

const IMPLEMENTED: &str = "implementer-agent-to-reviewer-agent";

#[test]
fn a_status_of_failure_fails_what_its_sender_held() {
    let env = implementing();
    let told = env.send(with_status(IMPLEMENTED, "failure")).success();
    assert!(
        told.shown.contains("87.2 in_progress..failed"),
        "{}",
        told.shown
    );

    let held = record(&env, "87.2");
    assert_eq!(held["state"], "failed");
    let last = held["transitions"].as_array().unwrap().last().unwrap();
    assert_eq!(last["sent"], "87.3");
    assert_eq!(
        last["failure"],
        json!({"code": "FAILED", "message": "The history page streams its rows as CSV", "recoverable": true})
    );
    let report = record(&env, "87.3");
    assert_eq!(
        (&report["state"], &report["to"]),
        (&json!("pending"), &json!("reviewer-agent"))
    );

    // Every view says the same.
    let subject = env.git(&env.repo(), &["log", "-1", "--format=%s", "handoffs"]);
    assert_eq!(
        subject.trim(),
        "87.2 failed: The history page streams its rows as CSV"
    );
    let log = env.data(&["log", "87"]);
    assert!(log.to_string().contains("in_progress..failed"), "{log}");
    #[cfg(feature = "report")]
    {
        let metrics = env.data(&["metrics"]);
        assert_eq!(metrics["figures"]["states"]["failed"], 1, "{metrics}");
        assert_eq!(metrics["figures"]["failures"], 1, "{metrics}");
    }
    let next = env.data(&["next", "87"]);
    assert!(next.to_string().contains("\"retry\""), "{next}");
    let status = run(&env, "status 87").shown;
    assert!(status.contains("87.2 is failed"), "{status}");

    // It is tried again, and its success takes the place of the report.
    run(&env, "retry 87.2 --as orchestrator --reason again");
    run(&env, "reject 87.3 --as reviewer-agent --reason failed");
    run(&env, "claim 87.2 --as implementer-agent");
    env.send(with_status(IMPLEMENTED, "success")).success();
    assert_eq!(record(&env, "87.2")["state"], "completed");
    env.assert_sound();
}

#[test]
fn a_status_of_blocked_blocks_what_its_sender_held() {
    let env = implementing();
    env.send(with_status(IMPLEMENTED, "blocked")).success();
    let held = record(&env, "87.2");
    assert_eq!(held["state"], "blocked");
    let last = held["transitions"].as_array().unwrap().last().unwrap();
    assert_eq!(last["reason"], "The history page streams its rows as CSV");
    let waits = env.data(&["next", "87"]);
    assert!(waits.to_string().contains("\"ask\""), "{waits}");
    run(&env, "answer 87.2 yes --as orchestrator");
    assert_eq!(record(&env, "87.2")["state"], "pending");
    env.assert_sound();
}

#[test]
fn an_approval_and_a_merge_that_say_failure_show_nothing() {
    let env = implementing();
    env.send(sample(IMPLEMENTED, Format::Xml, 87)).success();
    run(&env, "claim 87 --as reviewer-agent");
    env.send(with_status("reviewer-agent-to-validator-agent", "failure"))
        .success();
    assert_eq!(record(&env, "87.3")["state"], "failed");
    let gate = env.handoff(&["gate", "--issue", "87"]).exits(1);
    assert!(gate.shown.contains("says failure"), "{}", gate.shown);

    // The validator goes on all the same, which replaces what failed.
    run(&env, "claim 87 --as validator-agent");
    env.send(with_status("validator-agent-to-closer-agent", "blocked"))
        .success();
    assert_eq!(record(&env, "87.3")["state"], "cancelled");
    assert_eq!(record(&env, "87.4")["state"], "blocked");
    let gate = env.handoff(&["gate", "--issue", "87", "--require", "validated"]);
    assert!(gate.exits(1).shown.contains("says blocked"));
    env.assert_sound();
}

#[test]
fn other_words_complete_it() {
    for word in ["success", "skipped"] {
        let env = implementing();
        env.send(with_status(IMPLEMENTED, word)).success();
        assert_eq!(record(&env, "87.2")["state"], "completed", "{word}");
    }
}

#[test]
fn a_failure_without_work_that_could_fail_is_refused() {
    let env = TestEnvironment::with_ledger();
    let json = |name: &str, status: &str| {
        let mut value: Value = serde_json::from_str(&sample(name, Format::Json, 87)).unwrap();
        value["status"] = status.into();
        value.to_string()
    };
    let send = |env: &TestEnvironment, contract: String| {
        Refused::of(&env.handoff_with(&["send", "-", "--json"], contract))
    };
    let opened = send(&env, json("issue-manager-to-prep-agent", "failure"));
    assert_eq!((opened.exit, &*opened.code), (4, "nothing_failed"));

    let env = implementing();
    run(&env, "complete 87.2 --as implementer-agent");
    let before = env.tip();
    let after = send(&env, json(IMPLEMENTED, "blocked"));
    assert_eq!((after.exit, &*after.code), (4, "nothing_failed"));
    assert_eq!(
        after.message,
        "status `blocked` says how work of implementer-agent ended, and it holds none in issue 87 that this contract would end"
    );
    assert_eq!(env.tip(), before);
    // Whoever decides what follows can still be told.
    let error = sample("error", Format::Xml, 87).replace("prep-agent", "implementer-agent");
    env.send(error).success();
    env.assert_sound();
}

#[test]
fn a_type_can_say_that_a_word_means_something_else() {
    let env = own("issue-to-pr", |definition| {
        let types = definition["contracts"].as_array_mut().unwrap();
        for kind in types {
            match kind["type"].as_str().unwrap() {
                IMPLEMENTED => kind["outcome"] = json!({"failure": "complete"}),
                "workflow-complete" => kind["outcome"] = json!({"completed": "fail"}),
                _ => {}
            }
        }
    });
    env.send(opening(87)).success();
    run(&env, "claim 87.1 --as prep-agent");
    env.send(prepared(87)).success();
    run(&env, "claim 87.2 --as implementer-agent");
    env.send(with_status(IMPLEMENTED, "failure")).success();
    assert_eq!(record(&env, "87.2")["state"], "completed");

    // What ends the work can't say that it failed.
    let end = sample("workflow-complete", Format::Json, 87);
    let refused = Refused::of(&env.handoff_with(&["send", "-", "--json"], &end));
    assert_eq!((refused.exit, &*refused.code), (3, "contract_refused"));
    assert_eq!(
        refused.findings,
        [
            "status.closing /status: status `completed` says that the work did not succeed, and workflow-complete would end it"
        ]
    );
    let checked = env.handoff_with(&["check", "-", "--json"], &end).exits(3);
    assert!(
        checked.shown.contains("status.closing"),
        "{}",
        checked.shown
    );
    env.assert_sound();
}

#[test]
fn the_sender_of_failed_work_corrects_its_contract() {
    let env = implementing();
    run(
        &env,
        "fail 87.2 --as implementer-agent --message no-such-branch --recoverable",
    );
    let corrected = prepared(87).replace("4187", "4188");
    assert_ne!(corrected, prepared(87));
    let file = env.file("corrected.xml", &corrected);
    run(&env, &format!("retry 87.2 --with {file}"));
    let next = record(&env, "87.3");
    assert_eq!(next["follows"], "87.1");
    assert_eq!(
        (&next["attempt"], &next["replaces"]),
        (&json!(2), &json!("87.2"))
    );
    assert_eq!(record(&env, "87.2")["state"], "cancelled");
    run(&env, "claim 87.3 --as implementer-agent");
    env.send(sample(IMPLEMENTED, Format::Xml, 87)).success();
    assert_eq!(record(&env, "87.3")["state"], "completed");
    env.assert_sound();
}

#[test]
fn a_value_that_lists_its_choices_is_refused_unless_the_protocol_names_the_example() {
    let opened = opening(87);
    let listed = {
        let (before, rest) = opened.split_once("<priority>").unwrap();
        let (_, after) = rest.split_once("</priority>").unwrap();
        format!("{before}<priority>critical|high|medium|low</priority>{after}")
    };
    let env = TestEnvironment::with_ledger();
    let refused = Refused::of(&env.handoff_with(&["send", "-", "--json"], &listed));
    assert_eq!((refused.exit, &*refused.code), (3, "contract_refused"));
    assert_eq!(
        refused.findings,
        [
            "field.undecided /handoff/priority: `critical|high|medium|low` lists all the choices: pick one"
        ]
    );
    env.handoff_with(&["check", "-"], &listed).exits(3);

    // The same text in another place was copied from a template too.
    let (before, rest) = opened.split_once("<summary>").unwrap();
    let (_, after) = rest.split_once("</summary>").unwrap();
    let copied = format!("{before}<summary>critical|high|medium|low</summary>{after}");
    let told = Refused::of(&env.handoff_with(&["send", "-", "--json"], &copied));
    assert_eq!((told.exit, &*told.code), (3, "contract_refused"));

    // A protocol names the examples of its document by their content.
    let mut value: Value =
        serde_json::from_str(&sample("issue-manager-to-prep-agent", Format::Json, 87)).unwrap();
    value["priority"] = "critical|high|medium|low".into();
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    let digest = handoff::base::digest(sorted.to_string().as_bytes());
    let env = own("issue-to-pr", |definition| {
        definition["contracts"][0]["examples"] = json!([digest]);
    });
    let sent = env.send(value.to_string()).success();
    assert!(sent.shown.contains("87.1"), "{}", sent.shown);
    value["issue_title"] = "Another title".into();
    env.send(value.to_string()).exits(3);
    env.assert_sound();
}

/// The last line of a receipt of a failure: the next command.
fn after_failure(env: &TestEnvironment, id: &str, agent: &str) -> String {
    run(env, &format!("claim {id} --as {agent}"));
    let failed = run(
        env,
        &format!("fail {id} --as {agent} --message late --recoverable"),
    );
    failed.stderr.lines().next().unwrap().to_owned()
}

#[test]
fn the_receipt_of_a_failure_names_who_decides() {
    // The orchestrator that sent it, not the protocol's first.
    let env = with_protocol("orchestrator-specialist");
    let request = valid("orchestrator-specialist", "request-dotnet.json");
    let sent = env
        .handoff_with(&["send", "-", "--json"], &request)
        .success()
        .json();
    let id = sent["data"]["handoff"]["id"].as_str().unwrap();
    let next = after_failure(&env, id, "@dotnet-specialist");
    assert_eq!(
        next,
        format!(
            "next, for @backend-specialist: git handoff retry {id} --as @backend-specialist --reason WHY"
        )
    );
    // The person, once no attempt is left, as `next` says.
    let env = with_protocol("task-breakdown");
    let opening = valid("task-breakdown", "environment-to-planning.json");
    let sent = env
        .handoff_with(&["send", "-", "--json"], &opening)
        .success()
        .json();
    let (id, issue) = (
        &sent["data"]["handoff"]["id"],
        &sent["data"]["issue"]["key"],
    );
    let (id, issue) = (id.as_str().unwrap(), issue.as_str().unwrap());
    let mut next = String::new();
    for _ in 0..9 {
        env.pace(15);
        next = after_failure(&env, id, "task-orchestrator");
        if record(&env, id)["state"] == "dead" {
            break;
        }
        assert!(next.contains(" --as task-orchestrator "), "{next}");
        run(&env, &format!("retry {id} --as task-orchestrator"));
    }
    assert_eq!(
        next,
        format!("next, for operator: git handoff retry {id} --as operator --reason WHY")
    );
    run(&env, &format!("next {issue}")).says("--as operator");
}
