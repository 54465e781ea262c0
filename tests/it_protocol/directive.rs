//! Contracts that are evaluated before the work moves on.

use std::fs;

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::team::{
    commits, record, refused, refused_command, run, sent, states, trailers, with_protocol,
};

/// The session by which a workflow's issue is called.
const KEY: &str = "ferry-71";

/// Work that was done, for the next agent.
fn handoff(id: &str, from: &str, to: &str, status: &str) -> Value {
    let missing = match status {
        "blocked" => json!([{
            "required": "Whether foot passengers book ahead",
            "reason": "Decides what a crossing has to count",
            "blocking": true,
        }]),
        _ => json!([]),
    };
    json!({
        "handoff_id": id,
        "from_agent": from,
        "to_agent": to,
        "timestamp": "2026-03-02T08:00:00Z",
        "status": status,
        "produced_artifacts": [],
        "assumptions": [],
        "missing_inputs": missing,
        "recommended_next_agent": to,
        "context_summary": format!("{id} of {from} is {status}"),
        "kb_updates_proposed": false,
        "session_id": KEY,
    })
}

/// What is decided about a contract.
fn decision(about: &str, to: &str, what: &str) -> Value {
    let mut decision = json!({
        "handoff_id": about,
        "from_agent": "MetaGPT",
        "to_agent": to,
        "timestamp": "2026-03-02T08:10:00Z",
        "decision": what,
        "rationale": format!("{about} was read: {what}"),
        "session_id": "meta-1",
    });
    match what {
        "ask" => decision["questions"] = json!(["Do foot passengers book ahead?"]),
        "retry" => decision["instructions"] = json!("Count them at the gate."),
        _ => {}
    }
    decision
}

/// What a person answers.
fn answer(about: &str) -> Value {
    json!({
        "handoff_id": about,
        "from_agent": "USER",
        "to_agent": "MetaGPT",
        "timestamp": "2026-03-02T08:20:00Z",
        "status": "answered",
        "answers": [{"required": "Whether foot passengers book ahead", "answer": "Only in July."}],
    })
}

/// A workflow in which research was handed over and its evaluation begun.
fn evaluated(status: &str) -> TestEnvironment {
    let env = with_protocol("directive");
    sent(
        &env,
        handoff("research-1", "ResearchGPT", "DesignGPT", status).to_string(),
    );
    run(&env, "claim ferry-71.1 --as MetaGPT");
    env
}

/// The same, with the design begun.
fn designing() -> TestEnvironment {
    let env = evaluated("success");
    sent(
        &env,
        decision("research-1", "DesignGPT", "advance").to_string(),
    );
    run(&env, "claim ferry-71.2 --as DesignGPT");
    env
}

fn status(env: &TestEnvironment) -> String {
    let data = env.data(&["status", KEY]);
    data["issue"]["status"].as_str().unwrap().to_owned()
}

#[test]
fn work_is_handed_over_when_it_has_ended() {
    let env = with_protocol("directive");
    let unfinished = handoff("research-1", "ResearchGPT", "DesignGPT", "in_progress");
    let unfinished = refused(&env, &[], unfinished.to_string());
    assert_eq!(unfinished.says(), (3, "contract_refused"));
    assert!(
        unfinished.codes().contains(&"status.unfinished"),
        "{unfinished:?}"
    );
    for status in ["success", "blocked", "failed"] {
        let env = evaluated(status);
        assert_eq!(record(&env, "ferry-71.1")["status"], status);
        env.assert_sound();
    }
}

#[test]
fn every_contract_goes_to_the_evaluator_first() {
    let env = with_protocol("directive");
    let research = handoff("research-1", "ResearchGPT", "DesignGPT", "success");
    let data = sent(&env, research.to_string());
    assert_eq!(
        (&data["handoff"]["id"], &data["handoff"]["to"]),
        (&json!("ferry-71.1"), &json!("MetaGPT"))
    );
    let first = record(&env, "ferry-71.1");
    assert_eq!(first["intended"], "DesignGPT");
    assert_eq!(first["to"], "MetaGPT");
    let shown = run(&env, "show ferry-71.1").stdout;
    assert!(shown.contains("meant for DesignGPT"), "{shown}");
    let early = refused_command(&env, "claim ferry-71.1 --as DesignGPT");
    assert_eq!(early.says(), (4, "not_yours"));
    let none = refused_command(&env, "claim --next --as DesignGPT");
    assert_eq!(none.says(), (6, "nothing_to_claim"));
    // Nor may it go on by itself.
    let design = handoff("design-1", "DesignGPT", "ImplementationGPT", "success");
    let early = refused(&env, &[], design.to_string());
    assert_eq!(early.says(), (4, "not_held"));

    run(&env, "claim ferry-71.1 --as MetaGPT");
    sent(
        &env,
        decision("research-1", "DesignGPT", "advance").to_string(),
    );
    assert_eq!(
        trailers(&env, "Transition"),
        [
            "ferry-71.1 in_progress..completed",
            "ferry-71.2 none..pending"
        ]
    );
    assert_eq!(record(&env, "ferry-71.2")["intended"], Value::Null);
    run(&env, "claim ferry-71.2 --as DesignGPT");
    sent(&env, design.to_string());
    assert_eq!(
        states(&env, KEY),
        [
            "1 completed with MetaGPT",
            "2 completed with DesignGPT",
            "3 pending with MetaGPT"
        ]
    );
    env.assert_sound();
}

#[test]
fn a_workflow_ends_with_the_last_success() {
    let env = designing();
    let mut number = 3;
    let mut step = |id: &str, from: &str, to: &str, next: &str| {
        sent(&env, handoff(id, from, to, "success").to_string());
        run(&env, &format!("claim ferry-71.{number} --as MetaGPT"));
        sent(&env, decision(id, next, "advance").to_string());
        if next != "workflow-end" {
            run(&env, &format!("claim ferry-71.{} --as {next}", number + 1));
        }
        number += 2;
    };
    step(
        "design-1",
        "DesignGPT",
        "ImplementationGPT",
        "ImplementationGPT",
    );
    step("code-1", "ImplementationGPT", "MetaGPT", "workflow-end");
    assert_eq!(status(&env), "completed");
    let late = handoff("code-2", "ImplementationGPT", "MetaGPT", "success");
    let late = refused(&env, &["--issue", KEY], late.to_string());
    assert_eq!(late.says(), (4, "issue_completed"));
    let facts = env.data(&["context", KEY])["known"].take();
    assert_eq!(
        (&facts["handoffs"], &facts["evaluations"]),
        (&json!(3), &json!(3))
    );
    env.assert_sound();
}

#[test]
fn a_decision_fits_what_it_is_about() {
    let decisions = [
        ("advance", "DesignGPT"),
        ("ask", "USER"),
        ("retry", "ResearchGPT"),
        ("terminate", "workflow-end"),
    ];
    let mut text = String::new();
    for status in ["success", "blocked", "failed"] {
        for (what, to) in decisions {
            let env = evaluated(status);
            let contract = decision("research-1", to, what).to_string();
            let ran = env.send(&contract);
            if ran.status == 0 {
                let lines: Vec<String> = states(&env, KEY);
                text += &format!("{status}, {what}: {}\n", lines.join(", "));
            } else {
                let refused = refused(&env, &[], &contract);
                assert_eq!(refused.says(), (4, "decision_refused"));
                text += &format!("{status}, {what}: {}; {}\n", refused.message, refused.hint);
            }
            env.assert_sound();
        }
    }
    insta::assert_snapshot!(text, @r#"
    success, advance: 1 completed with MetaGPT, 2 pending with DesignGPT
    success, ask: 1 completed with MetaGPT, 2 pending with USER
    success, retry: 1 completed with MetaGPT, 2 pending with ResearchGPT
    success, terminate: 1 completed with MetaGPT, 2 completed with workflow-end
    blocked, advance: `decision` cannot be "advance" after ferry-71.1, whose status is blocked; allowed: ask, terminate; see `git handoff explain decision_refused`
    blocked, ask: 1 completed with MetaGPT, 2 pending with USER
    blocked, retry: `decision` cannot be "retry" after ferry-71.1, whose status is blocked; allowed: ask, terminate; see `git handoff explain decision_refused`
    blocked, terminate: 1 completed with MetaGPT, 2 completed with workflow-end
    failed, advance: `decision` cannot be "advance" after ferry-71.1, whose status is failed; allowed: ask, retry, terminate; see `git handoff explain decision_refused`
    failed, ask: 1 completed with MetaGPT, 2 pending with USER
    failed, retry: 1 completed with MetaGPT, 2 pending with ResearchGPT
    failed, terminate: 1 completed with MetaGPT, 2 completed with workflow-end
    "#);
}

#[test]
fn a_decision_names_the_contract_in_hand() {
    let env = designing();
    let design = handoff("design-1", "DesignGPT", "ImplementationGPT", "blocked");
    sent(&env, design.to_string());
    run(&env, "claim ferry-71.3 --as MetaGPT");
    for other in ["research-1", "nobody-1"] {
        let wrong = decision(other, "USER", "ask").to_string();
        assert_eq!(
            refused(&env, &[], wrong).says(),
            (4, "not_about"),
            "{other}"
        );
    }
    sent(&env, decision("design-1", "USER", "ask").to_string());
    run(&env, "claim ferry-71.4 --as USER");
    let mut input = answer("research-1");
    let wrong = refused(&env, &[], input.to_string());
    assert_eq!(wrong.says(), (4, "not_about"));
    input["handoff_id"] = json!("design-1");
    sent(&env, input.to_string());
    run(&env, "claim ferry-71.5 --as MetaGPT");
    // After the answer it is still the design that is decided on.
    sent(&env, decision("design-1", "DesignGPT", "retry").to_string());
    env.assert_sound();
}

#[test]
fn a_block_is_lifted_by_an_answer() {
    let env = designing();
    let blocked = handoff("design-1", "DesignGPT", "ImplementationGPT", "blocked");
    sent(&env, blocked.to_string());
    assert_eq!(
        states(&env, KEY)[1..],
        ["2 blocked with DesignGPT", "3 pending with MetaGPT"]
    );
    run(&env, "claim ferry-71.3 --as MetaGPT");
    sent(&env, decision("design-1", "USER", "ask").to_string());
    // The answer may only come from whoever was asked, once that is claimed.
    let early = refused(&env, &["--issue", KEY], answer("design-1").to_string());
    assert_eq!(early.says(), (4, "not_claimed"));
    let claimed = run(&env, "claim ferry-71.4 --as USER_INPUT_REQUIRED").stdout;
    assert!(
        claimed.contains("Do foot passengers book ahead?"),
        "{claimed}"
    );
    assert!(
        claimed.contains("it was decided on ferry-71.3:"),
        "{claimed}"
    );
    sent(&env, answer("design-1").to_string());
    run(&env, "claim ferry-71.5 --as MetaGPT");
    sent(
        &env,
        decision("design-1", "DesignGPT", "advance").to_string(),
    );
    let claimed = run(&env, "claim ferry-71.6 --as DesignGPT").stdout;
    assert!(claimed.contains("Only in July."), "{claimed}");
    let design = handoff("design-2", "DesignGPT", "ImplementationGPT", "success");
    sent(&env, design.to_string());
    let expected = [
        "1 completed with MetaGPT",
        "2 cancelled with DesignGPT",
        "3 completed with MetaGPT",
        "4 completed with USER",
        "5 completed with MetaGPT",
        "6 completed with DesignGPT",
        "7 pending with MetaGPT",
    ];
    assert_eq!(states(&env, KEY), expected);
    env.assert_sound();
}

#[test]
fn a_person_sees_what_is_asked_and_the_answer_goes_back_to_the_agent_that_lacked_it() {
    const QUESTION: &str = "Do foot passengers book ahead?";
    let env = designing();
    let blocked = handoff("design-1", "DesignGPT", "ImplementationGPT", "blocked");
    sent(&env, blocked.to_string());
    run(&env, "claim ferry-71.3 --as MetaGPT");
    sent(&env, decision("design-1", "USER", "ask").to_string());
    let lines = [
        "inbox --as USER",
        #[cfg(feature = "agents")]
        "prime --as USER",
    ];
    for line in lines {
        let shown = run(&env, line).stdout;
        assert!(shown.contains(QUESTION), "{line}: {shown}");
    }
    let claimed = run(&env, "claim --next --as USER").stdout;
    assert!(claimed.contains(QUESTION), "{claimed}");
    #[cfg(feature = "agents")]
    run(&env, "prime --as USER").says(QUESTION);

    sent(&env, answer("design-1").to_string());
    run(&env, "claim --next --as MetaGPT");
    let next = env.data(&["next", KEY]);
    assert_eq!(
        (&next["action"], &next["agent"], &next["to"]),
        (&json!("advance"), &json!("MetaGPT"), &json!("DesignGPT"))
    );
    assert_eq!(
        next["why"],
        "ferry-71.5 says answered: what was asked is answered, and the agent that lacked it can go on"
    );
    let command = next["commands"][0].as_str().unwrap();
    assert_eq!(
        command,
        "git handoff new --issue ferry-71 --from MetaGPT --to DesignGPT"
    );
    run(&env, command.strip_prefix("git handoff ").unwrap());
    sent(
        &env,
        decision("design-1", "DesignGPT", "advance").to_string(),
    );
    run(&env, "claim --next --as DesignGPT");
    env.assert_sound();
}

#[test]
fn a_failure_is_tried_again() {
    let env = designing();
    let failed = handoff("design-1", "DesignGPT", "ImplementationGPT", "failed");
    sent(&env, failed.to_string());
    assert_eq!(
        states(&env, KEY)[1..],
        ["2 failed with DesignGPT", "3 pending with MetaGPT"]
    );
    run(&env, "claim ferry-71.3 --as MetaGPT");
    sent(&env, decision("design-1", "DesignGPT", "retry").to_string());
    // The work moves on with a new handoff; the one that failed is over.
    let mut changes = trailers(&env, "Transition");
    changes.sort();
    assert_eq!(
        changes,
        [
            "ferry-71.2 failed..cancelled",
            "ferry-71.3 in_progress..completed",
            "ferry-71.4 none..pending"
        ]
    );
    let claimed = run(&env, "claim ferry-71.4 --as DesignGPT").stdout;
    assert!(claimed.contains("Count them at the gate."), "{claimed}");
    let late = refused_command(&env, "retry ferry-71.2 --as MetaGPT --reason late");
    assert_eq!(late.says(), (4, "illegal_transition"));
    let again = handoff("design-2", "DesignGPT", "ImplementationGPT", "success");
    sent(&env, again.to_string());
    env.assert_sound();
}

#[test]
fn failed_work_that_a_decision_takes_up_again_is_shown() {
    let env = designing();
    let design = "--as DesignGPT";
    fs::write(env.repo().join("sketch.txt"), "half a gate\n").unwrap();
    run(
        &env,
        &format!("fail ferry-71.2 {design} --message stuck --snapshot"),
    );
    run(&env, "retry ferry-71.2 --as MetaGPT --reason again");
    run(&env, &format!("claim ferry-71.2 {design}"));
    let failed = handoff("design-1", "DesignGPT", "ImplementationGPT", "failed");
    sent(&env, failed.to_string());
    run(&env, "claim ferry-71.3 --as MetaGPT");
    sent(&env, decision("design-1", "DesignGPT", "retry").to_string());
    let claimed = env.data(&["claim", "ferry-71.4", "--as", "DesignGPT"]);
    let failures = claimed["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 2, "{failures:#?}");
    for (failure, attempt) in failures.iter().zip([1, 2]) {
        assert_eq!(failure["id"], "ferry-71.2");
        assert_eq!(failure["attempt"], attempt);
    }
    let restore = failures[0]["kept"]["restore"].as_str().unwrap();
    assert!(
        restore.starts_with("git handoff restore ferry-71.2 --attempt 1"),
        "{restore}"
    );
    env.assert_sound();
}

#[test]
fn what_follows_from_a_contract_is_said_as_the_evaluator_has_it() {
    for (status, action, to) in [
        ("success", "advance", json!("ImplementationGPT")),
        ("blocked", "ask", json!("USER")),
        ("failed", "retry", json!("DesignGPT")),
    ] {
        let env = designing();
        let contract = handoff("design-1", "DesignGPT", "ImplementationGPT", status);
        sent(&env, contract.to_string());
        let next = env.data(&["next", KEY]);
        assert_eq!(next["action"], action, "{next:#}");
        assert_eq!((&next["agent"], &next["to"]), (&json!("MetaGPT"), &to));
        assert_eq!(next["handoff"]["id"], "ferry-71.3");
        // What was reported is decided by taking up the report, in every view.
        let attention = env.data(&["status", KEY])["attention"].clone();
        for about in attention.as_array().unwrap() {
            assert_eq!(about["id"], "ferry-71.2");
            assert_eq!(about["next"], "git handoff claim ferry-71.3 --as MetaGPT");
        }
        assert_eq!(attention == json!([]), status == "success");
        let asked = next["questions"].as_array().unwrap().len();
        assert_eq!(asked > 0, status == "blocked", "{next:#}");
        // Each printed command but the last, whose contract has to be filled in, runs.
        run(&env, "claim ferry-71.3 --as MetaGPT");
        let commands = env.data(&["next", KEY])["commands"].clone();
        let new = commands[0].as_str().unwrap();
        run(&env, new.strip_prefix("git handoff ").unwrap());
        // The decision itself is a contract: applying it only records the advice.
        run(&env, "next ferry-71 --apply --as MetaGPT");
        assert_eq!(
            env.data(&["status", KEY])["record"]["decisions"][0]["action"],
            action
        );
        env.assert_sound();
    }
}

/// "IF status == failed AND retry_count >= MAX_RETRIES: TERMINATE workflow" (line 100): after the third
/// retry, nothing that is printed offers another.
#[test]
fn after_the_third_retry_no_other_is_offered() {
    let env = with_protocol("directive");
    sent(
        &env,
        handoff("research-1", "ResearchGPT", "DesignGPT", "failed").to_string(),
    );
    let id = format!("{KEY}.1");
    let mut last = String::new();
    for attempt in 0..4 {
        if attempt > 0 {
            run(&env, &format!("next {KEY} --apply --as MetaGPT"));
        }
        run(&env, &format!("claim {id} --as MetaGPT"));
        last = run(
            &env,
            &format!("fail {id} --as MetaGPT --message unreadable"),
        )
        .shown;
    }
    assert_eq!(record(&env, &id)["state"], "dead");
    let next = format!("next: git handoff next {KEY}\n");
    assert!(last.contains(&next), "{last}");
    for view in [
        "next",
        "status",
        "show",
        "inbox --as MetaGPT",
        #[cfg(feature = "agents")]
        "prime --as MetaGPT",
    ] {
        let line = match view {
            "next" | "status" => format!("{view} {KEY}"),
            "show" => format!("show {id}"),
            view => view.to_owned(),
        };
        last += &run(&env, &line).shown;
    }
    assert!(!last.contains("git handoff retry"), "{last}");
    run(&env, &format!("retry {id} --as USER --reason again"));
    assert_eq!(record(&env, &id)["state"], "pending");
    env.assert_sound();
}

#[test]
fn a_failure_may_end_the_workflow() {
    let env = designing();
    let failed = handoff("design-1", "DesignGPT", "ImplementationGPT", "failed");
    sent(&env, failed.to_string());
    run(&env, "claim ferry-71.3 --as MetaGPT");
    sent(
        &env,
        decision("design-1", "workflow-end", "terminate").to_string(),
    );
    assert_eq!(status(&env), "completed");
    assert_eq!(
        states(&env, KEY),
        [
            "1 completed with MetaGPT",
            "2 cancelled with DesignGPT",
            "3 completed with MetaGPT",
            "4 completed with workflow-end"
        ]
    );
    let shown = run(&env, "status").stdout;
    assert!(shown.contains("no handoff is open"), "{shown}");
    env.assert_sound();
}

/// Research that delivered one file of two, and was approved.
fn with_artifacts() -> (TestEnvironment, Value) {
    let env = with_protocol("directive");
    let notes = env.repo().join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("tides.md"), "High at six\n").unwrap();
    let mut research = handoff("research-1", "ResearchGPT", "DesignGPT", "success");
    research["produced_artifacts"] = json!([
        {"type": "file", "location": "notes/tides.md", "description": "When the ferry can land"},
        {"type": "file", "location": "notes/lost.md", "description": "Never written"},
    ]);
    research["assumptions"] =
        json!([{"assumption": "The pier floats", "validated": false, "risk": "high"}]);
    sent(&env, research.to_string());
    run(&env, "claim ferry-71.1 --as MetaGPT");
    let approved = decision("research-1", "DesignGPT", "advance");
    sent(&env, approved.to_string());
    (env, research)
}

#[test]
fn a_claim_brings_everything_to_begin_with() {
    let (env, research) = with_artifacts();
    let data = env.data(&["claim", "ferry-71.2", "--as", "DesignGPT"]);
    assert_eq!(data["decided_on"]["agent"], "ResearchGPT");
    assert_eq!(data["decided_on"]["session"], KEY);
    assert_eq!(data["decided_on"]["id"], "ferry-71.1");
    assert_eq!(data["decided_on"]["text"], research.to_string());
    let own = data["contract"]["text"].as_str().unwrap();
    assert!(own.contains("research-1 was read"), "{own}");
    assert_eq!(
        data["work"]["facts"]["context_summary"],
        "research-1 of ResearchGPT is success"
    );
    assert_eq!(data["facts"]["rationale"], "research-1 was read: advance");
    let artifacts = data["artifacts"].as_array().unwrap();
    assert_eq!(artifacts[0]["path"], "notes/tides.md");
    assert_eq!(artifacts[0]["bytes"], 12);
    assert_eq!(artifacts[0]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(artifacts[1]["sha256"], Value::Null);
    env.assert_sound();

    let (env, _) = with_artifacts();
    let text = run(&env, "claim ferry-71.2 --as DesignGPT").shown;
    insta::assert_snapshot!(text, @r#"
    $ git handoff claim ferry-71.2 --as DesignGPT
    ferry-71.2 MetaGPT → DesignGPT: in_progress
      held until 2026-03-02 13:08:00Z, token 1, worker repo
      commit [commit]
      your part: Writes architecture, patterns and specifications
      if you are stuck: git handoff block ferry-71.2 --as DesignGPT --reason WHAT, or: git handoff fail ferry-71.2 --as DesignGPT --message WHY --recoverable --snapshot

    the work
      title: research-1 of ResearchGPT is success

    ```json
    {"handoff_id":"research-1","from_agent":"MetaGPT","to_agent":"DesignGPT","timestamp":"2026-03-02T08:10:00Z","decision":"advance","rationale":"research-1 was read: advance","session_id":"meta-1"}
    ```

    it was decided on ferry-71.1:

    ```json
    {"handoff_id":"research-1","from_agent":"ResearchGPT","to_agent":"DesignGPT","timestamp":"2026-03-02T08:00:00Z","status":"success","produced_artifacts":[{"type":"file","location":"notes/tides.md","description":"When the ferry can land"},{"type":"file","location":"notes/lost.md","description":"Never written"}],"assumptions":[{"assumption":"The pier floats","validated":false,"risk":"high"}],"missing_inputs":[],"recommended_next_agent":"DesignGPT","context_summary":"research-1 of ResearchGPT is success","kb_updates_proposed":false,"session_id":"ferry-71"}
    ```

    it continues the work of ResearchGPT (ferry-71.1), whose session is ferry-71

    known about the issue
      artifacts: [{"type":"file","location":"notes/tides.md","description":"When the ferry can land"},{"type":"file","location":"notes/lost.md","description":"Never written"}]
      handoffs: 1
      session: meta-1
      evaluations: 1

    what was requested, contract by contract
      see `git handoff context ferry-71`

    delivered
      - notes/tides.md: 12 bytes, sha256 [sha256]
      - notes/lost.md: no such file when it was handed over
    --- stderr
    choose one: git handoff send --issue ferry-71 --to ResearchGPT --as DesignGPT --set FIELD=VALUE…   # Work handed over for evaluation
        handoff_id: an id that no other contract of the session has
        status: success, blocked or failed
        produced_artifacts (once for each entry): {"type":"{{fill: file, data or decision}}","location":"{{fill: path or address of a result}}","description":"{{fill: what the result is}}"}
        assumptions (once for each entry): {"assumption":"{{fill: one thing that was taken for granted}}","validated":"{{fill: true or false}}","risk":"{{fill: low, medium or high}}"}
        missing_inputs (once for each entry): {"required":"{{fill: one thing that is missing}}","reason":"{{fill: why it is needed}}","blocking":"{{fill: true or false}}"}
        recommended_next_agent: the agent that should go on, or USER_INPUT_REQUIRED
        context_summary: what the next agent has to know
        kb_updates_proposed (boolean): true or false
        session_id: id of the session that you did the work in
      or: git handoff send --issue ferry-71 --to ImplementationGPT --as DesignGPT --set FIELD=VALUE…   # Work handed over for evaluation
        handoff_id: an id that no other contract of the session has
        status: success, blocked or failed
        produced_artifacts (once for each entry): {"type":"{{fill: file, data or decision}}","location":"{{fill: path or address of a result}}","description":"{{fill: what the result is}}"}
        assumptions (once for each entry): {"assumption":"{{fill: one thing that was taken for granted}}","validated":"{{fill: true or false}}","risk":"{{fill: low, medium or high}}"}
        missing_inputs (once for each entry): {"required":"{{fill: one thing that is missing}}","reason":"{{fill: why it is needed}}","blocking":"{{fill: true or false}}"}
        recommended_next_agent: the agent that should go on, or USER_INPUT_REQUIRED
        context_summary: what the next agent has to know
        kb_updates_proposed (boolean): true or false
        session_id: id of the session that you did the work in
    "#);
}

#[test]
fn what_a_role_does_not_allow_stops_the_work() {
    // Forbidden, and merely not allowed.
    for action in ["testing", "juggling"] {
        let env = designing();
        let mut design = handoff("design-1", "DesignGPT", "ImplementationGPT", "success");
        design["actions"] = json!(["architecture", action]);
        let ran = env.send(design.to_string()).success();
        let words = format!("the role of DesignGPT does not allow {action}");
        assert!(ran.shown.contains(&words), "{}", ran.shown);
        assert!(
            ran.shown.contains("the work goes to MetaGPT"),
            "{}",
            ran.shown
        );
        assert_eq!(
            states(&env, KEY)[1..],
            ["2 failed with DesignGPT", "3 pending with MetaGPT"]
        );
        let third = record(&env, "ferry-71.3");
        assert_eq!(third["violations"], json!([action]));
        let held = record(&env, "ferry-71.2");
        let last = held["transitions"].as_array().unwrap().last().unwrap();
        assert_eq!(last["failure"]["code"], "ROLE_VIOLATION");
        assert_eq!(
            last["failure"]["message"],
            format!("DesignGPT attempted {action}")
        );
        let shown = run(&env, "show ferry-71.3").stdout;
        assert!(
            shown.contains(&format!("violation DesignGPT attempted {action}")),
            "{shown}"
        );
        env.assert_sound();
    }
    let env = designing();
    let mut design = handoff("design-1", "DesignGPT", "ImplementationGPT", "success");
    design["actions"] = json!(["architecture", "patterns"]);
    sent(&env, design.to_string());
    assert_eq!(record(&env, "ferry-71.2")["state"], "completed");
    assert_eq!(record(&env, "ferry-71.3")["violations"], Value::Null);
    env.assert_sound();
}

#[test]
fn a_violation_in_the_first_contract_is_recorded_too() {
    let env = with_protocol("directive");
    let mut research = handoff("research-1", "ResearchGPT", "DesignGPT", "success");
    research["actions"] = json!(["web-search", "design-decisions"]);
    sent(&env, research.to_string());
    let first = record(&env, "ferry-71.1");
    assert_eq!(first["violations"], json!(["design-decisions"]));
    assert_eq!(first["to"], "MetaGPT");
    run(&env, "claim ferry-71.1 --as MetaGPT");
    let onward = decision("research-1", "DesignGPT", "advance");
    let onward = refused(&env, &[], onward.to_string());
    assert_eq!(onward.says(), (4, "decision_refused"));
    assert!(onward.hint.starts_with("allowed: ask, retry, terminate"));
    let again = decision("research-1", "ResearchGPT", "retry");
    sent(&env, again.to_string());
    env.assert_sound();
}

#[test]
fn after_a_violation_what_is_advised_can_be_sent_and_the_violation_is_shown() {
    let env = designing();
    let mut design = handoff("design-1", "DesignGPT", "ImplementationGPT", "success");
    design["actions"] = json!(["testing"]);
    sent(&env, design.to_string());
    let violation = "DesignGPT attempted testing";
    let message = env.git(&env.repo(), &["log", "-1", "--format=%B", "handoffs"]);
    assert!(message.contains(violation), "{message}");
    for line in [
        "inbox --as MetaGPT",
        "list --issue ferry-71",
        "status ferry-71",
        "inbox --as DesignGPT",
    ] {
        let shown = run(&env, line).stdout;
        assert!(shown.contains(violation), "{line}: {shown}");
    }
    run(&env, "claim ferry-71.3 --as MetaGPT");
    let next = env.data(&["next", KEY]);
    assert_eq!(
        (&next["action"], &next["to"]),
        (&json!("retry"), &json!("DesignGPT"))
    );
    let why = next["why"].as_str().unwrap();
    assert!(
        why.starts_with("ferry-71.3 is failed, because DesignGPT attempted testing"),
        "{why}"
    );
    sent(&env, decision("design-1", "DesignGPT", "retry").to_string());
    assert_eq!(
        states(&env, KEY)[3..],
        ["4 pending with DesignGPT".to_owned()]
    );
    env.assert_sound();
}

#[test]
fn a_success_that_recommends_the_user_leads_to_the_user() {
    let env = designing();
    let mut design = handoff("design-1", "DesignGPT", "METAGPT", "success");
    design["recommended_next_agent"] = json!("USER_INPUT_REQUIRED");
    sent(&env, design.to_string());
    assert_eq!(record(&env, "ferry-71.3")["recommended"], "USER");
    let shown = run(&env, "show ferry-71.3").stdout;
    assert!(shown.contains("recommends USER"), "{shown}");
    run(&env, "claim ferry-71.3 --as MetaGPT");
    let next = env.data(&["next", KEY]);
    assert_eq!(
        (&next["action"], &next["to"]),
        (&json!("ask"), &json!("USER"))
    );
    let command = json!(["git handoff new --issue ferry-71 --from MetaGPT --to USER"]);
    assert_eq!(next["commands"], command);
    sent(&env, decision("design-1", "USER", "ask").to_string());
    run(&env, "claim ferry-71.4 --as USER");
    let mut answer = answer("design-1");
    answer["answers"][0]["required"] = json!("Do foot passengers book ahead?");
    sent(&env, answer.to_string());
    env.assert_sound();
    // Another agent that is recommended goes on.
    let env = designing();
    let mut design = handoff("design-1", "DesignGPT", "METAGPT", "success");
    design["recommended_next_agent"] = json!("ImplementationGPT");
    sent(&env, design.to_string());
    let next = env.data(&["next", KEY]);
    assert_eq!(
        (&next["action"], &next["to"]),
        (&json!("advance"), &json!("ImplementationGPT"))
    );
    env.assert_sound();
}

#[test]
fn an_evaluation_ends_with_a_decision() {
    let env = designing();
    let design = handoff("design-1", "DesignGPT", "ImplementationGPT", "success");
    sent(&env, design.to_string());
    run(&env, "claim ferry-71.3 --as MetaGPT");
    let bare = refused_command(&env, "complete ferry-71.3 --as MetaGPT");
    assert_eq!(bare.says(), (4, "needs_decision"));
    assert_eq!(bare.message, "ferry-71.3 awaits a decision of MetaGPT");
    let command = "git handoff new --issue ferry-71 --from MetaGPT --to ImplementationGPT";
    assert!(bare.hint.contains(command), "{}", bare.hint);
    run(&env, command.strip_prefix("git handoff ").unwrap());
    // A success that the evaluator disagrees with goes back with its reason.
    sent(&env, decision("design-1", "DesignGPT", "retry").to_string());
    let claimed = run(&env, "claim ferry-71.4 --as DesignGPT").stdout;
    assert!(claimed.contains("design-1 was read: retry"), "{claimed}");
    assert!(claimed.contains("Count them at the gate."), "{claimed}");
    env.assert_sound();
}

#[test]
fn after_a_violation_the_evaluator_may_retry_or_terminate() {
    let mut text = String::new();
    for (what, to) in [
        ("advance", "ImplementationGPT"),
        ("ask", "USER"),
        ("retry", "DesignGPT"),
        ("retry", "ResearchGPT"),
        ("terminate", "workflow-end"),
    ] {
        let env = designing();
        let mut design = handoff("design-1", "DesignGPT", "ImplementationGPT", "success");
        design["actions"] = json!(["testing"]);
        sent(&env, design.to_string());
        run(&env, "claim ferry-71.3 --as MetaGPT");
        let ran = env.send(decision("design-1", to, what).to_string());
        text += &format!(
            "{what} with {to}: exit {}, {}\n",
            ran.status,
            states(&env, KEY).join(", ")
        );
        env.assert_sound();
    }
    insta::assert_snapshot!(text, @"
    advance with ImplementationGPT: exit 4, 1 completed with MetaGPT, 2 failed with DesignGPT, 3 in_progress with MetaGPT
    ask with USER: exit 0, 1 completed with MetaGPT, 2 cancelled with DesignGPT, 3 completed with MetaGPT, 4 pending with USER
    retry with DesignGPT: exit 0, 1 completed with MetaGPT, 2 cancelled with DesignGPT, 3 completed with MetaGPT, 4 pending with DesignGPT
    retry with ResearchGPT: exit 0, 1 completed with MetaGPT, 2 cancelled with DesignGPT, 3 completed with MetaGPT, 4 pending with ResearchGPT
    terminate with workflow-end: exit 0, 1 completed with MetaGPT, 2 cancelled with DesignGPT, 3 completed with MetaGPT, 4 completed with workflow-end
    ");
}

#[test]
fn agents_have_other_names() {
    let env = with_protocol("directive");
    let mut research = handoff("research-1", "ResearchGPT", "METAGPT", "blocked");
    research["recommended_next_agent"] = json!("USER_INPUT_REQUIRED");
    let data = sent(&env, research.to_string());
    assert_eq!(data["handoff"]["to"], "MetaGPT");
    let inbox = run(&env, "inbox --as METAGPT").stdout;
    assert!(inbox.contains("ferry-71.1"), "{inbox}");
    run(&env, "claim --next --as METAGPT");
    let holder = record(&env, "ferry-71.1")["lease"]["holder"].take();
    assert_eq!(holder, "MetaGPT");
    let mut ask = decision("research-1", "USER_INPUT_REQUIRED", "ask");
    ask["from_agent"] = json!("METAGPT");
    let data = sent(&env, ask.to_string());
    assert_eq!(
        (&data["handoff"]["from"], &data["handoff"]["to"]),
        (&json!("MetaGPT"), &json!("USER"))
    );
    run(&env, "claim ferry-71.2 --as USER_INPUT_REQUIRED");
    let mut reply = answer("research-1");
    reply["from_agent"] = json!("USER_INPUT_REQUIRED");
    reply["to_agent"] = json!("METAGPT");
    let args = ["send", "-", "--as", "USER_INPUT_REQUIRED"];
    env.handoff_with(&args, reply.to_string()).success();
    // The author of each commit is the agent by its own name.
    let authors = env.git(&env.repo(), &["log", "--format=%an", "-3", "handoffs"]);
    assert_eq!(authors, "USER\nUSER\nMetaGPT\n");
    env.assert_sound();
}

#[test]
fn the_recommended_agent_is_one_that_takes_part() {
    let env = with_protocol("directive");
    let mut research = handoff("research-1", "ResearchGPT", "DesignGPT", "success");
    research["recommended_next_agent"] = json!("CaptainGPT");
    let unknown = refused(&env, &[], research.to_string());
    assert_eq!(unknown.says(), (3, "contract_refused"));
    assert_eq!(
        unknown
            .findings
            .iter()
            .filter(|f| !f.starts_with("envelope"))
            .collect::<Vec<_>>(),
        [
            r#"agent.unknown /recommended_next_agent: "CaptainGPT" is not an agent of protocol directive"#
        ]
    );
}

#[test]
fn an_id_belongs_to_one_contract() {
    let env = designing();
    let research = handoff("research-1", "ResearchGPT", "DesignGPT", "success");
    let again = sent(&env, research.to_string());
    assert_eq!(
        (&again["handoff"]["id"], &again["repeated"]),
        (&json!("ferry-71.1"), &json!(true))
    );
    let mut taken = handoff("research-1", "DesignGPT", "ImplementationGPT", "success");
    taken["context_summary"] = json!("Another one");
    let taken = refused(&env, &[], taken.to_string());
    assert_eq!(taken.says(), (5, "id_taken"));
    assert!(taken.message.contains("ferry-71.1"), "{}", taken.message);
    env.assert_sound();
}

#[test]
fn a_contract_that_names_no_issue_finds_it() {
    let env = with_protocol("directive");
    // The first one opens an issue by its session.
    let research = handoff("research-1", "ResearchGPT", "DesignGPT", "success");
    sent(&env, research.to_string());
    run(&env, "claim ferry-71.1 --as MetaGPT");
    sent(
        &env,
        decision("research-1", "DesignGPT", "advance").to_string(),
    );
    run(&env, "claim ferry-71.2 --as DesignGPT");
    // The next agent has a session of its own, and works in that issue.
    let mut design = handoff("design-1", "DesignGPT", "ImplementationGPT", "success");
    design["session_id"] = json!("design-session");
    let data = sent(&env, design.to_string());
    assert_eq!(
        (&data["issue"]["key"], &data["handoff"]["id"]),
        (&json!(KEY), &json!("ferry-71.3"))
    );
    let before = commits(&env);
    for contract in [&research, &design] {
        let again = sent(&env, contract.to_string());
        assert_eq!(again["repeated"], true);
        assert_eq!(again["issue"]["key"], KEY);
    }
    assert_eq!(commits(&env), before);
    // A name of its own comes before the session.
    let mut other = handoff("research-2", "ResearchGPT", "DesignGPT", "success");
    other["workflow_id"] = json!("pier-4");
    assert_eq!(sent(&env, other.to_string())["handoff"]["id"], "pier-4.1");
    // Another session opens another issue.
    let mut other = handoff("research-3", "ResearchGPT", "DesignGPT", "success");
    other["session_id"] = json!("buoys");
    assert_eq!(sent(&env, other.to_string())["handoff"]["id"], "buoys.1");
    // Who works in two has to say in which.
    run(&env, "claim pier-4.1 --as MetaGPT");
    run(&env, "claim buoys.1 --as MetaGPT");
    let next = decision("research-3", "DesignGPT", "advance").to_string();
    let unclear = refused(&env, &[], &next);
    assert_eq!(unclear.says(), (3, "contract_refused"));
    assert_eq!(unclear.codes(), ["envelope.issue"]);
    let args = ["send", "-", "--issue", "buoys"];
    env.handoff_with(&args, &next).success();
    // A session that cannot be a key is no issue's name.
    let mut strange = handoff("research-4", "ResearchGPT", "DesignGPT", "success");
    strange["session_id"] = json!("the session of Monday");
    let strange = refused(&env, &[], strange.to_string());
    assert_eq!(strange.codes(), ["envelope.issue"]);
    env.assert_sound();
}

/// "session_id": "{{SESSION_UUID}}": each agent's own.
#[test]
fn a_session_is_its_agents_own() {
    let env = designing();
    let new = [
        "new",
        "--issue",
        KEY,
        "--from",
        "DesignGPT",
        "--to",
        "ImplementationGPT",
    ];
    let skeleton = env.handoff(&new).success();
    let own = r#""session_id": "{{fill: "#;
    assert!(skeleton.stdout.contains(own), "{}", skeleton.shown);
    let mut design = handoff("design-1", "DesignGPT", "ImplementationGPT", "success");
    design["session_id"] = json!("design-session");
    let data = sent(&env, design.to_string());
    let id = data["handoff"]["id"].as_str().unwrap();
    assert_eq!(record(&env, id)["contradictions"], Value::Null);
    env.assert_sound();
}

/// "IF {{AGENT_X}} performs {{FORBIDDEN_ACTION}}: FORCE_HANDOFF to MetaGPT", whether it says so or not.
#[test]
fn a_violation_shows_without_its_agents_word() {
    let env = with_protocol("directive");
    let mut research = handoff("research-1", "ResearchGPT", "DesignGPT", "success");
    research["produced_artifacts"] = json!([
        {"type": "decision", "location": "docs/pier.md", "description": "Which pier"},
    ]);
    sent(&env, research.to_string());
    let violated = |env: &TestEnvironment| record(env, "ferry-71.1")["violations"].take();
    assert_eq!(violated(&env), json!(["design-decisions"]));
    assert_eq!(env.data(&["next", KEY])["action"], "retry");
    env.assert_sound();
    // So does one that the evaluator finds.
    let env = with_protocol("directive");
    let research = handoff("research-1", "ResearchGPT", "DesignGPT", "success");
    sent(&env, research.to_string());
    run(&env, "claim ferry-71.1 --as MetaGPT");
    let found = |to: &str, what: &str| {
        let mut found = decision("research-1", to, what);
        found["violations"] = json!(["It chose the pier"]);
        found.to_string()
    };
    assert_eq!(refused(&env, &[], found("DesignGPT", "advance")).exit, 4);
    sent(&env, found("ResearchGPT", "retry"));
    assert_eq!(violated(&env), json!(["It chose the pier"]));
    env.assert_sound();
}

#[test]
fn what_is_blocked_says_what_is_missing() {
    let env = with_protocol("directive");
    let none = || handoff("research-1", "ResearchGPT", "DesignGPT", "blocked");
    let mut empty = none();
    empty["missing_inputs"] = json!([]);
    let mut idle = none();
    idle["missing_inputs"][0]["blocking"] = json!(false);
    for contract in [empty, idle] {
        let found = refused(&env, &[], contract.to_string());
        assert_eq!(found.says(), (3, "contract_refused"));
        assert!(
            found.codes().contains(&"contract.inconsistent"),
            "{found:?}"
        );
    }
}

#[test]
fn a_user_answers_what_was_asked() {
    let env = evaluated("blocked");
    sent(&env, decision("research-1", "USER", "ask").to_string());
    run(&env, "claim ferry-71.2 --as USER");
    let new = "new --issue ferry-71 --from USER --to MetaGPT --type user-input";
    let new: Value = serde_json::from_str(&run(&env, new).stdout).unwrap();
    insta::assert_snapshot!(format!("{:#}", new["answers"]), @r#"
    [
      {
        "required": "Do foot passengers book ahead?",
        "answer": "{{fill: the answer}}"
      }
    ]
    "#);
    let with = |pairs: Value| {
        let mut contract = answer("research-1");
        contract["answers"] = pairs;
        contract.to_string()
    };
    let mut found = String::new();
    for pairs in [
        json!([{"required": "How many ferries run", "answer": "Two"}]),
        json!([{"required": "Do foot passengers book ahead?", "answer": "No"}, {"required": "Colour", "answer": "Red"}]),
    ] {
        let refused = refused(&env, &[], with(pairs));
        assert_eq!(refused.says(), (3, "contract_refused"));
        found += &format!("{}\n\n", refused.findings.join("\n"));
    }
    insta::assert_snapshot!(found, @r#"
    answer.unknown /answers/0/answer: "How many ferries run" was not asked in ferry-71.2 or ferry-71.1; asked: "Do foot passengers book ahead?", "Whether foot passengers book ahead"; given: "Two"
    answer.missing /answers: "Do foot passengers book ahead?" is asked in ferry-71.2, and not answered; given: "How many ferries run"

    answer.unknown /answers/1/answer: "Colour" was not asked in ferry-71.2 or ferry-71.1; asked: "Do foot passengers book ahead?", "Whether foot passengers book ahead"; given: "Red"
    "#);
    // The question, or what the agent lacked: both were asked.
    sent(
        &env,
        with(json!([{"required": "Do foot passengers book ahead?", "answer": "No"}])),
    );
    env.assert_sound();
}
