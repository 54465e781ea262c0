//! What should happen next and why, and answers to what was asked.

use std::fs;

use serde_json::{Value, json};
use test_support::contracts::{opening, prepared};
use test_support::team::{commits, record, refused_command, trailers, with_protocol};
use test_support::time::{
    RESEARCH, TRACE, WRITER, added, answers, asks, assert_goes_there_and_back, attempt, denied,
    done, own, sample, traced, words,
};
use test_support::{TestEnvironment, stored, stored_issue};

/// A trace in which an agent was asked for help and gave this answer.
fn answered(
    to: &str,
    status: &str,
    request: &[(&str, Value)],
    more: &[(&str, Value)],
) -> TestEnvironment {
    let env = with_protocol("delegation");
    env.pace(1);
    env.send(asks(WRITER, to, request)).success();
    done(&env, &format!("claim {TRACE} --as {to}"));
    env.send(answers(to, status, more)).success();
    env
}

/// Issue 87, on whose first handoff prep-agent failed.
fn failed(more: &str) -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent");
    done(
        &env,
        &format!("fail 87.1 --as prep-agent --message broken {more}"),
    );
    env
}

/// The same, as often as it may fail.
fn dead() -> TestEnvironment {
    let env = failed("--recoverable");
    for _ in 0..3 {
        done(&env, "retry 87.1 --as orchestrator");
        done(&env, "claim 87.1 --as prep-agent");
        done(
            &env,
            "fail 87.1 --as prep-agent --message broken --recoverable",
        );
    }
    env
}

/// A workflow whose evaluation failed as often as it may.
fn hopeless() -> TestEnvironment {
    let env = with_protocol("directive");
    let session = ("/session_id", json!("weir"));
    let failed = ("/status", json!("failed"));
    env.send(sample("directive", "handoff", &[session, failed]).to_string())
        .success();
    for attempt in 0..=3 {
        if attempt > 0 {
            done(&env, "retry weir.1 --as MetaGPT");
        }
        done(&env, "claim weir.1 --as MetaGPT");
        done(&env, "fail weir.1 --as MetaGPT --message unreadable");
    }
    env
}

/// A specialist's failure, which says what to do about it.
fn instructed() -> TestEnvironment {
    let env = with_protocol("orchestrator-specialist");
    env.pace(1);
    let key = ("/handoff_id", json!("renewal-api-4"));
    let request = sample("orchestrator-specialist", "request-dotnet", &[key]);
    env.send(request.to_string()).success();
    let target = request["target"]["agent_id"].as_str().unwrap().to_owned();
    done(&env, &format!("claim renewal-api-4.1 --as {target}"));
    let failure = sample("orchestrator-specialist", "failure", &[]);
    env.send(failure.to_string()).success();
    env
}

/// A protocol in which what is resolved goes on by a rule.
fn advanced() -> TestEnvironment {
    let env = own("delegation", |p| {
        p["decisions"] = json!([{
            "when": {"state": "completed", "status": ["resolved"]},
            "action": "advance",
            "why": "the request has its answer",
        }]);
    });
    env.pace(1);
    env.send(asks(WRITER, RESEARCH, &[])).success();
    done(&env, &format!("claim {TRACE} --as {RESEARCH}"));
    env.send(answers(RESEARCH, "resolved", &[])).success();
    env
}

/// One case: its ledger, its issue, the action, who carries it out, and the
/// state of the first handoff then.
struct Case {
    env: TestEnvironment,
    issue: &'static str,
    action: &'static str,
    by: &'static str,
    then: &'static str,
}

fn cases() -> Vec<Case> {
    let case = |env, issue, action, by, then| Case {
        env,
        issue,
        action,
        by,
        then,
    };
    let low = ("/priority", json!("low"));
    let tables = ("/unresolved", json!(["tide_tables", "budget"]));
    let currents = ("/unresolved", json!(["currents"]));
    vec![
        case(advanced(), TRACE, "advance", WRITER, "completed"),
        case(
            answered(RESEARCH, "partial", &[], &[tables]),
            TRACE,
            "ask",
            "orchestrator",
            "blocked",
        ),
        case(
            instructed(),
            "renewal-api-4",
            "retry",
            "@backend-specialist",
            "pending",
        ),
        case(
            answered(RESEARCH, "failed", &[], &[]),
            TRACE,
            "reassign",
            "orchestrator",
            "pending",
        ),
        case(
            answered(RESEARCH, "partial", &[], &[currents]),
            TRACE,
            "proceed_partial",
            WRITER,
            "completed",
        ),
        case(
            answered("orchestrator", "failed", &[low], &[]),
            TRACE,
            "skip",
            "orchestrator",
            "cancelled",
        ),
        case(dead(), "87", "fall_back", "orchestrator", "dead"),
        case(failed(""), "87", "escalate", "orchestrator", "failed"),
        case(hopeless(), "weir", "terminate", "MetaGPT", "cancelled"),
    ]
}

#[test]
fn each_action_is_advised_with_its_reason() {
    let mut text = String::new();
    for Case {
        env, issue, action, ..
    } in cases()
    {
        let before = env.tip();
        text += &done(&env, &format!("next {issue}")).shown;
        let data = env.data(&["next", issue]);
        assert_eq!(data["action"], action);
        assert_eq!(data["handoff"]["id"], format!("{issue}.1"));
        assert_eq!(env.tip(), before, "advice writes nothing");
    }
    insta::assert_snapshot!(text.replace(TRACE, "TRACE"), @"
    $ git handoff next TRACE
    advance: TRACE.1 is completed: the request has its answer
    $ git handoff next TRACE
    ask: TRACE.1 is blocked: the agent that was asked cannot go on without an answer
      research_agent: without a critical input: budget
          |   tide_tables (object), optional: High and low water for each month
          |   budget
    --- stderr
    next: git handoff answer TRACE.1 budget=VALUE --as orchestrator
    $ git handoff next renewal-api-4
    retry: renewal-api-4.1 is failed (SCHEMA_VALIDATION_FAILED): the request has attempts left
      @dotnet-specialist: The renewal has a field of an unknown type
          | endpoint_requirements[0].request_model.days: Type dayz is unknown: $.endpoint_requirements[*].request_model.*
      Use int for the number of days
    --- stderr
    next: git handoff retry renewal-api-4.1 --with FILE --as @backend-specialist
    $ git handoff next TRACE
    reassign to orchestrator: TRACE.1 is failed (NOT_RESOLVED): the agent that was asked first could not help
      research_agent: Answer to a request for help
    --- stderr
    next: git handoff next TRACE --apply --as orchestrator
    $ git handoff next TRACE
    proceed_partial: TRACE.1 is completed: nothing critical is missing
    --- stderr
    next: git handoff next TRACE --apply --as document_generator
    $ git handoff next TRACE
    skip: TRACE.1 is failed (NOT_RESOLVED): the request was of low priority, and the work can go on without it
      orchestrator: Answer to a request for help
    --- stderr
    next: git handoff next TRACE --apply --as orchestrator
    $ git handoff next 87
    fall_back: 87.1 is dead (FAILED): no attempt is left
      prep-agent: broken
      Read the failures and what the agent left, fix the cause, then retry the handoff or cancel it
      sent from issue-manager to prep-agent, attempt 4; see in the ledger:
        issues/87/00/87/0001-issue-manager-to-prep-agent.xml
        issues/87/00/87/0001-failure/4
    --- stderr
    next: git handoff retry 87.1 --as maintainer --reason WHY
      or: git handoff cancel 87.1 --as maintainer --reason WHY
      or: git handoff show 87.1
    $ git handoff next 87
    escalate: 87.1 is failed (FAILED): its agent does not say that another attempt may succeed
      prep-agent: broken
      sent from issue-manager to prep-agent, attempt 1; see in the ledger:
        issues/87/00/87/0001-issue-manager-to-prep-agent.xml
        issues/87/00/87/0001-failure/1
    --- stderr
    next: git handoff retry 87.1 --as maintainer --reason WHY
      or: git handoff cancel 87.1 --as maintainer --reason WHY
      or: git handoff show 87.1
    $ git handoff next weir
    terminate: weir.1 is dead (FAILED): the work failed as often as it may
      MetaGPT: unreadable
    --- stderr
    next: git handoff next weir --apply --as MetaGPT
    ");
}

#[test]
fn advice_is_data_as_well() {
    let tables = ("/unresolved", json!(["tide_tables", "budget"]));
    let env = answered(RESEARCH, "partial", &[], &[tables]);
    let data = env
        .data(&["next", TRACE])
        .to_string()
        .replace(TRACE, "TRACE");
    let mut data: Value = serde_json::from_str(&data).unwrap();
    let (issue, handoff) = (data["issue"].take(), data["handoff"].take());
    assert_eq!(
        (&issue["key"], &handoff["id"]),
        (&json!("TRACE"), &json!("TRACE.1"))
    );
    insta::assert_snapshot!(format!("{data:#}"), @r#"
    {
      "issue": null,
      "action": "ask",
      "agent": "orchestrator",
      "handoff": null,
      "why": "TRACE.1 is blocked: the agent that was asked cannot go on without an answer",
      "to": null,
      "reason": "without a critical input: budget",
      "details": null,
      "decided": null,
      "questions": [
        {
          "key": "tide_tables",
          "type": "object",
          "description": "High and low water for each month",
          "optional": true
        },
        {
          "key": "budget"
        }
      ],
      "instructions": null,
      "kept": [
        "issues/4c/3b/TRACE/0001-document_generator-to-research_agent.json"
      ],
      "commands": [
        "git handoff answer TRACE.1 budget=VALUE --as orchestrator"
      ],
      "attention": [
        {
          "issue": "TRACE",
          "title": "Tender for berth 4: tide tables are missing",
          "id": "TRACE.1",
          "need": "blocked",
          "with": "research_agent",
          "turn": "orchestrator",
          "told": [
            "orchestrator",
            "human"
          ],
          "since": "2026-03-02T09:04:03Z",
          "why": "without a critical input: budget (tide_tables: object, optional, High and low water for each month; budget)",
          "attempt": 1,
          "next": "git handoff answer TRACE.1 budget=VALUE --as orchestrator"
        },
        {
          "issue": "TRACE",
          "title": "Tender for berth 4: tide tables are missing",
          "id": "TRACE.2",
          "need": "answered",
          "with": "document_generator",
          "turn": "document_generator",
          "told": [
            "document_generator"
          ],
          "since": "2026-03-02T09:04:03Z",
          "why": "Answer to a request for help",
          "attempt": 1,
          "next": "git handoff show TRACE.2"
        }
      ],
      "fresh": null
    }
    "#);
    let env = answered(RESEARCH, "failed", &[], &[]);
    let data = env.data(&["next", TRACE]);
    assert_eq!(
        (&data["action"], &data["to"]),
        (&json!("reassign"), &json!("orchestrator"))
    );
    let data = instructed().data(&["next", "renewal-api-4"]);
    assert_eq!(data["instructions"], "Use int for the number of days");
}

#[test]
fn applied_advice_is_done_and_recorded() {
    for Case {
        env,
        issue,
        action,
        by,
        then,
    } in cases()
    {
        let id = format!("{issue}.1");
        let why = env.data(&["next", issue])["why"].take();
        let apply = format!("next {issue} --apply --as {by}");
        let (ran, new) = added(&env, || done(&env, &apply));
        // "TERMINATE workflow with explanation" (directive, line 101): the issue ends with its work.
        let steps = if action == "terminate" { 2 } else { 1 };
        assert_eq!(new.len(), steps, "{action}: {}", ran.shown);
        let change = new
            .iter()
            .find(|step| step.starts_with(&format!("{by}: {id} ")));
        assert!(change.is_some(), "{new:?}");
        assert_eq!(trailers(&env, "Transition").len(), 1, "{action}");
        let data = env.data(&["status", issue]);
        let decision = data["record"]["decisions"][0].clone();
        assert_eq!(data["record"]["decisions"].as_array().unwrap().len(), 1);
        assert_eq!(
            (
                &decision["action"],
                &decision["why"],
                &decision["by"],
                &decision["id"]
            ),
            (&json!(action), &why, &json!(by), &json!(id)),
        );
        let line = format!("{by} decided to {action}: {}", why.as_str().unwrap());
        done(&env, &format!("status {issue}")).says(&line);
        assert_eq!(record(&env, &id)["state"], then, "{action}");
        let ended = data["issue"]["status"] == "cancelled";
        assert_eq!(ended, action == "terminate", "{data}");
        // Once more, nothing more is done.
        let before = commits(&env);
        let again = attempt(&env, &format!("{apply} --json"));
        assert!([0, 6].contains(&again.status), "{action}: {}", again.shown);
        if again.status == 0 {
            assert_eq!(again.json()["data"]["applied"]["repeated"], true);
        }
        assert_eq!(commits(&env), before, "{action}: {}", again.shown);
        env.assert_sound();
    }
}

/// "Strategy 1: Try alternative agent", whatever the priority; then "Skip and Continue".
#[test]
fn what_is_of_low_priority_is_skipped_once_the_orchestrator_failed() {
    let low = ("/priority", json!("low"));
    let env = answered(RESEARCH, "failed", std::slice::from_ref(&low), &[]);
    assert_eq!(env.data(&["next", TRACE])["action"], "reassign");
    let env = answered("orchestrator", "failed", &[low], &[]);
    let advice = done(&env, &format!("next {TRACE}"));
    assert!(advice.stdout.contains("skip"), "{}", advice.shown);
    let (_, new) = added(&env, || {
        done(&env, &format!("next {TRACE} --apply --as {WRITER}"))
    });
    assert_eq!(new.len(), 1, "{new:?}");
    assert_eq!(record(&env, &traced(1))["state"], "cancelled");
    let issue = stored_issue(&env.data(&["status", TRACE]));
    assert_eq!(issue["decisions"][0]["action"], "skip");
    // The trace is over without it.
    assert_eq!(issue["status"], "completed");
    let medium = ("/priority", json!("medium"));
    let env = answered("orchestrator", "failed", &[medium], &[]);
    assert_eq!(env.data(&["next", TRACE])["action"], "escalate");
    env.assert_sound();
}

#[test]
fn decisions_go_there_and_back() {
    for (env, protocol) in [
        (answered(RESEARCH, "failed", &[], &[]), "delegation"),
        (failed(""), "issue-to-pr"),
    ] {
        let issue = if protocol == "delegation" {
            TRACE
        } else {
            "87"
        };
        done(&env, &format!("next {issue} --apply --as orchestrator"));
        assert_goes_there_and_back(&env, protocol);
    }
}

#[test]
fn who_decides_is_said_and_may() {
    for (env, issue) in [(failed(""), "87"), (failed("--recoverable"), "87")] {
        let before = env.tip();
        let ran = attempt(&env, &format!("next {issue} --apply --json")).exits(2);
        assert_eq!(test_support::time::code(&ran), "no_agent");
        denied(
            &env,
            &format!("next {issue} --apply --as fixer-agent"),
            4,
            "not_yours",
        );
        denied(
            &env,
            &format!("next {issue} --apply --as stranger"),
            4,
            "unknown_agent",
        );
        assert_eq!(env.tip(), before);
        // Its sender and its receiver may.
        done(&env, &format!("next {issue} --apply --as issue-manager"));
    }
}

#[test]
fn what_goes_on_by_itself_needs_no_decision() {
    let env = TestEnvironment::with_ledger();
    denied(&env, "next 87", 6, "no_issue");
    env.send(opening(87)).success();
    for line in [
        "claim 87.1 --as prep-agent",
        "complete 87.1 --as prep-agent",
    ] {
        let refused = refused_command(&env, "next 87 --apply --as orchestrator");
        assert_eq!(refused.says(), (6, "nothing_to_decide"));
        done(&env, "next 87");
        done(&env, line);
    }
    env.send(prepared(87)).success();
    let data = env.data(&["next", "87"]);
    assert_eq!(
        (&data["action"], &data["agent"]),
        (&json!("advance"), &json!("implementer-agent"))
    );
}

#[test]
fn what_stands_still_longest_comes_first() {
    let env = with_protocol("delegation");
    env.pace(1);
    for (to, number) in [(RESEARCH, 1), ("validator", 3)] {
        env.send(asks(WRITER, to, &[])).success();
        done(&env, &format!("claim {} --as {to}", traced(number)));
        env.send(answers(to, "failed", &[])).success();
        // The answer is a handoff of its own.
        if number == 1 {
            assert_eq!(env.data(&["next", TRACE])["handoff"]["id"], traced(1));
        }
    }
    done(&env, &format!("next {TRACE} --apply --as orchestrator"));
    assert_eq!(env.data(&["next", TRACE])["handoff"]["id"], traced(3));
    env.assert_sound();
}

#[test]
fn a_protocol_without_rules_is_advised_as_usual() {
    let plain = |more: &str| {
        let env = own("issue-to-pr", |p| {
            p.as_object_mut().unwrap().remove("decisions");
        });
        env.send(opening(87)).success();
        done(&env, "claim 87.1 --as prep-agent");
        done(&env, &format!("{more} --as prep-agent"));
        env.data(&["next", "87"])["action"].take()
    };
    assert_eq!(plain("block 87.1 --reason which?"), "ask");
    assert_eq!(plain("fail 87.1 --message no --recoverable"), "retry");
    assert_eq!(plain("fail 87.1 --message no"), "escalate");
}

/// Each option that `show` prints, run as it stands in a ledger like this one.
#[track_caller]
fn options_run(id: &str, ledger: impl Fn() -> TestEnvironment) -> Vec<String> {
    let options = ledger().data(&["show", id])["options"].take();
    let text = ledger().handoff(&["show", id]).success().stdout;
    let mut actions = Vec::new();
    for option in options.as_array().unwrap() {
        let command = option["command"].as_str().unwrap();
        let action = option["action"].as_str().unwrap();
        let line = format!("  {action:<9} {command}\n");
        assert!(text.contains(&line), "{line}{text}");
        let env = ledger();
        let filled = command
            .replace("WHY", "'so it is'")
            .replace("VALUE", "8080");
        let words = words(&filled.replace("ANSWER", "'as it is'"));
        let args: Vec<&str> = words.iter().skip(2).map(String::as_str).collect();
        env.handoff(&args).success();
        env.assert_sound();
        let to = command
            .split(" --to ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        actions.push(to.map_or(action.to_owned(), |to| format!("{action} {to}")));
    }
    actions
}

#[test]
fn show_offers_what_the_protocol_allows_and_each_option_runs() {
    let recoverable = || failed("--recoverable");
    assert_eq!(options_run("87.1", recoverable), ["retry", "terminate"]);
    assert_eq!(options_run("87.1", dead), ["retry", "terminate"]);
    let blocked = || {
        let env = TestEnvironment::with_ledger();
        env.send(opening(87)).success();
        done(&env, "claim 87.1 --as prep-agent");
        done(
            &env,
            "block 87.1 --as prep-agent --reason which? --needs port:string --needs host",
        );
        env
    };
    assert_eq!(options_run("87.1", blocked), ["ask", "terminate"]);
    let first = traced(1);
    let asked = || answered(RESEARCH, "failed", &[], &[]);
    assert_eq!(
        options_run(&first, asked),
        [
            "retry",
            "reassign validator",
            "reassign orchestrator",
            "reassign human",
            "ask human",
            "terminate"
        ]
    );
    let late = || {
        let env = TestEnvironment::with_ledger();
        env.send(opening(87)).success();
        done(&env, "claim 87.1 --as prep-agent --lease 1m");
        env.wait_minutes(2);
        env
    };
    assert_eq!(options_run("87.1", late), ["retry", "terminate"]);
    // What goes on has none.
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    assert_eq!(env.data(&["show", "87.1"])["options"], json!([]));
}

/// Issue 87, on whose first handoff prep-agent needs values.
fn needing(needs: &[&str]) -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent");
    let mut args = vec![
        "block",
        "87.1",
        "--as",
        "prep-agent",
        "--reason",
        "values are missing",
    ];
    args.extend(needs.iter().flat_map(|need| ["--needs", *need]));
    env.handoff(&args).success();
    env
}

const NEEDS: [&str; 4] = [
    "port:integer=the port of the test server",
    "host",
    "tls:boolean",
    "names:string[]",
];

#[test]
fn values_are_asked_for_by_name_and_type() {
    let env = needing(&NEEDS);
    let shown = done(&env, "show 87.1").stdout;
    let shown = shown.split("\n\n```xml\n").next().unwrap();
    insta::assert_snapshot!(shown, @"
    87.1 issue-manager → prep-agent: blocked
      summary   Dispatchers ask for their delivery history as a file
      type      issue-manager-to-prep-agent (xml)
      sha256    d0e2e1eba115df4e5ba383b04f40a0d16df9332f775ae66980129842ac64cb6f
      priority  medium
      asked
          |   port (integer): the port of the test server
          |   host
          |   tls (boolean)
          |   names (string[])
      2026-03-02 09:05:00Z send by issue-manager → pending
      2026-03-02 09:06:00Z claim by prep-agent → in_progress
      2026-03-02 09:07:00Z block by prep-agent → blocked
          | values are missing

    options
      ask       git handoff answer 87.1 port=VALUE host=VALUE tls=VALUE names=VALUE --as orchestrator
      terminate git handoff cancel 87.1 --as orchestrator --reason WHY
    ");
    let questions = env.data(&["next", "87"])["questions"].take();
    assert_eq!(questions[0]["type"], "integer");
    assert_eq!(questions[0]["description"], "the port of the test server");
    done(
        &env,
        "answer 87.1 port=8080 host=8080 tls=false 'names=[\"a\"]' --as orchestrator",
    );
    let answered = record(&env, "87.1");
    let last = answered["transitions"].as_array().unwrap().last().unwrap();
    assert_eq!(
        last["values"],
        json!({"port": 8080, "host": "8080", "tls": false, "names": ["a"]})
    );
    // Whoever takes it up again is told.
    let claimed = done(&env, "claim 87.1 --as prep-agent").stdout;
    for value in ["port: 8080", "host: 8080", "tls: false", "names: [\"a\"]"] {
        assert!(claimed.contains(value), "{value}: {claimed}");
    }
    env.assert_sound();
    assert_goes_there_and_back(&env, "issue-to-pr");
}

/// Whoever must answer sees what with, wherever the question is shown.
#[test]
fn a_question_is_shown_with_the_types_and_purposes_of_its_values() {
    let env = needing(&NEEDS);
    let asked = "values are missing (port: integer, the port of the test server; host; \
         tls: boolean; names: string[])\n";
    for view in [
        "",
        "status",
        "status 87",
        "inbox --as orchestrator",
        "doctor",
    ] {
        attempt(&env, view).says(asked);
    }
    // Keys alone are in the command.
    let plain = needing(&["host"]);
    attempt(&plain, "status").says("| values are missing\n");
}

#[test]
fn an_answer_of_the_wrong_type_is_refused() {
    let env = needing(&NEEDS);
    let wrong = "answer 87.1 port=many tls=maybe names=a colour=red --as orchestrator";
    let before = env.tip();
    let refused = attempt(&env, wrong).exits(3);
    insta::assert_snapshot!(refused.shown, @r#"
    $ git handoff answer 87.1 port=many tls=maybe names=a colour=red --as orchestrator
    --- stderr
    error: the answer to 87.1 does not match the question
      /host answer.missing "host" is asked in 87.1, and not answered; given: "port, tls, names, colour"
      /port answer.type "port" must be of type "integer", as asked in 87.1, and this is a text: "many"
      /tls answer.type "tls" must be of type "boolean", as asked in 87.1, and this is a text: "maybe"
      /names answer.type "names" must be of type "string[]", as asked in 87.1, and this is a text: "a"
      /colour answer.unknown "colour" was not asked in 87.1; asked: "port" (integer), "host", "tls" (boolean), "names" (string[]); given: "red"
    hint: `git handoff answer 87.1 port=VALUE host=VALUE tls=VALUE names=VALUE --as orchestrator`, or a JSON file with one member for each key; `git handoff show 87.1` lists the keys
    --- exit 3
    "#);
    for (line, findings) in [
        (
            wrong,
            &[
                "answer.missing",
                "answer.type",
                "answer.type",
                "answer.type",
                "answer.unknown",
            ][..],
        ),
        (
            "answer 87.1 port=1.5 host=h tls=true names=[] --as orchestrator",
            &["answer.type"],
        ),
        (
            "answer 87.1 port=1 host=h tls=1 names=[] --as orchestrator",
            &["answer.type"],
        ),
        (
            "answer 87.1 port=1 host=h tls=true names={} --as orchestrator",
            &["answer.type"],
        ),
        (
            "answer 87.1 host=h tls=true names=[] --as orchestrator",
            &["answer.missing"],
        ),
        (
            "answer 87.1 'all of them' --as orchestrator",
            &["answer.missing"; 4],
        ),
    ] {
        let refused = denied(&env, line, 3, "answer_refused").json();
        let found: Vec<&str> = refused["error"]["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["code"].as_str().unwrap())
            .collect();
        assert_eq!(found, findings, "{line}");
    }
    let twice = "answer 87.1 port=1 port=2 host=h tls=true names=[] --as orchestrator";
    denied(&env, twice, 2, "usage");
    denied(
        &env,
        "answer 87.1 port=1 host=h tls=true names=[] --as fixer-agent",
        4,
        "not_yours",
    );
    assert_eq!(env.tip(), before);
    assert_eq!(record(&env, "87.1")["state"], "blocked");
}

#[test]
fn an_answer_can_be_a_file_or_come_by_a_pipe() {
    let values = json!({"port": 8080, "host": "h", "tls": true, "names": []});
    let env = needing(&NEEDS);
    let file = env.file("answers.json", values.to_string());
    let (_, new) = added(&env, || {
        done(&env, &format!("answer 87.1 {file} --as orchestrator"))
    });
    assert_eq!(new.len(), 1);
    // The same again is no second answer.
    let (_, new) = added(&env, || {
        done(&env, &format!("answer 87.1 {file} --as orchestrator"))
    });
    assert_eq!(new.len(), 0);
    let last = record(&env, "87.1")["transitions"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last["values"], values);
    env.assert_sound();
    let env = needing(&NEEDS);
    let args = ["answer", "87.1", "-", "--as", "orchestrator"];
    env.handoff_with(&args, values.to_string()).success();
    assert_eq!(record(&env, "87.1")["state"], "pending");
    env.assert_sound();
    let env = needing(&NEEDS);
    let before = env.tip();
    let file = env.file("wrong.json", json!({"port": "8080"}).to_string());
    denied(
        &env,
        &format!("answer 87.1 {file} --as orchestrator"),
        3,
        "answer_refused",
    );
    for bad in ["[]", "{\"port\": 1, \"port\": 2}", "{", "", "\"port\""] {
        let file = env.file("bad.json", bad);
        let ran = attempt(&env, &format!("answer 87.1 {file} --as orchestrator"));
        assert_ne!(ran.status, 0, "{bad}: {}", ran.shown);
    }
    attempt(&env, "answer 87.1 none.json --as orchestrator").exits(6);
    assert_eq!(env.tip(), before);
}

#[test]
fn only_what_asked_is_answered() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let before = env.tip();
    for line in ["answer 87.1 yes", "answer 87.1 port=1"] {
        denied(
            &env,
            &format!("{line} --as orchestrator"),
            4,
            "illegal_transition",
        );
    }
    denied(&env, "answer 87.2 yes --as orchestrator", 6, "no_handoff");
    assert_eq!(env.tip(), before);
    done(&env, "claim 87.1 --as prep-agent");
    denied(
        &env,
        "answer 87.1 yes --as orchestrator",
        4,
        "illegal_transition",
    );
    // Words answer words; values that were not asked for by name are kept.
    done(&env, "block 87.1 --as prep-agent --reason which?");
    done(
        &env,
        "answer 87.1 'the one = of customers' --as orchestrator",
    );
    denied(
        &env,
        "answer 87.1 'the other' --as orchestrator",
        4,
        "illegal_transition",
    );
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "block 87.1 --as prep-agent --reason which?");
    done(&env, "answer 87.1 page=login --as orchestrator");
    let last = record(&env, "87.1")["transitions"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last["values"], json!({"page": "login"}));
    env.assert_sound();
}

#[test]
fn what_a_contract_lacks_is_what_is_asked() {
    let needs = json!([
        {"key": "audience", "expectedType": "string", "description": "Who reads it", "source": "user"},
        {"key": "pages", "expectedType": "number", "description": "How long it may be", "source": "user"},
    ]);
    let request = [("/missingInputs", needs)];
    // What is escalated asks for all; what is partial, for what is left open.
    for (status, more, asked) in [
        ("escalated", vec![], &["audience", "pages"][..]),
        (
            "partial",
            vec![
                ("/unresolved", json!(["audience"])),
                ("/providedInputs", json!({"pages": 12})),
            ],
            &["audience"],
        ),
    ] {
        let env = answered(RESEARCH, status, &request, &more);
        let questions = env.data(&["next", TRACE])["questions"].take();
        let keys: Vec<&str> = questions
            .as_array()
            .unwrap()
            .iter()
            .map(|q| q["key"].as_str().unwrap())
            .collect();
        assert_eq!(keys, asked, "{status}");
        let id = traced(1);
        if keys.len() == 2 {
            denied(
                &env,
                &format!("answer {id} audience=pilots pages=few --as {WRITER}"),
                3,
                "answer_refused",
            );
            done(
                &env,
                &format!("answer {id} audience=pilots pages=12 --as {WRITER}"),
            );
        } else {
            done(&env, &format!("answer {id} audience=pilots --as {WRITER}"));
        }
        done(&env, &format!("claim {id} --as {RESEARCH}")).says("audience: pilots");
        env.assert_sound();
    }
}

#[test]
fn failed_work_of_a_workflow_is_tried_three_times_more() {
    let env = with_protocol("directive");
    let text = |value: &Value| value.to_string();
    let handoff = |number: usize| {
        let value = sample(
            "directive",
            "handoff",
            &[
                ("/handoff_id", json!(format!("draft-{number}"))),
                ("/from_agent", json!("DesignGPT")),
                ("/to_agent", json!("ImplementationGPT")),
                ("/status", json!("failed")),
                ("/session_id", json!("weir")),
                ("/missing_inputs", json!([])),
            ],
        );
        text(&value)
    };
    let decide = |number: usize, to: &str, decision: &str| {
        let mut value = sample(
            "directive",
            "evaluation",
            &[
                ("/handoff_id", json!(format!("draft-{number}"))),
                ("/evaluation_id", json!(format!("of-{number}-{decision}"))),
                ("/to_agent", json!(to)),
                ("/decision", json!(decision)),
            ],
        );
        if decision == "retry" {
            value["instructions"] = json!("Leave the pattern out.");
        }
        text(&value)
    };
    let as_evaluator = ["send", "-", "--issue", "weir"];
    env.send(handoff(0)).success();
    for number in 0..3 {
        done(&env, "claim weir --as MetaGPT");
        env.handoff_with(&as_evaluator, decide(number, "DesignGPT", "retry"))
            .success();
        done(&env, "claim weir --as DesignGPT");
        env.send(handoff(number + 1)).success();
    }
    done(&env, "claim weir --as MetaGPT");
    let mut args = as_evaluator.to_vec();
    args.push("--json");
    let before = env.tip();
    let ran = env
        .handoff_with(&args, decide(3, "DesignGPT", "retry"))
        .exits(4);
    assert_eq!(test_support::time::code(&ran), "limit_reached");
    ran.says("3 retries of failed work");
    assert_eq!(env.tip(), before);
    // Neither the failed work itself gets another attempt, nor does a view offer one.
    for id in ["weir.6", "weir.7"] {
        let shown = done(&env, &format!("show {id}"));
        assert!(!shown.stdout.contains("handoff retry"), "{}", shown.shown);
    }
    denied(&env, "retry weir.6 --as MetaGPT", 4, "retries_spent");
    denied(
        &env,
        "reassign weir.6 --to ResearchGPT --as MetaGPT",
        4,
        "retries_spent",
    );
    assert_eq!(env.data(&["next", "weir"])["action"], "terminate");
    env.handoff_with(&as_evaluator, decide(3, "workflow-end", "terminate"))
        .success();
    assert_eq!(
        env.data(&["status", "weir"])["issue"]["status"],
        "completed"
    );
    env.assert_sound();
}

/// "IF status == "failed" AND retry_count >= {{MAX_RETRIES}}": only of what failed, not of a success that
/// its evaluator could not read.
#[test]
fn a_success_is_read_before_a_workflow_is_ended() {
    let env = with_protocol("directive");
    let session = ("/session_id", json!("weir"));
    env.send(sample("directive", "handoff", &[session]).to_string())
        .success();
    for action in ["retry", "retry", "retry", "fall_back"] {
        done(&env, "claim weir.1 --as MetaGPT");
        done(&env, "fail weir.1 --as MetaGPT --message unreadable");
        assert_eq!(env.data(&["next", "weir"])["action"], action);
        if action == "retry" {
            done(&env, "next weir --apply --as MetaGPT");
        }
    }
    done(&env, "retry weir.1 --as USER --reason Again");
    assert_eq!(record(&env, "weir.1")["state"], "pending");
    env.assert_sound();
}

#[test]
fn what_was_decided_is_not_advised_again_but_what_comes_after() {
    let cases = [
        (dead(), "fall_back", "retry", "pending"),
        (failed(""), "escalate", "cancel", "cancelled"),
    ];
    for (env, action, verb, then) in cases {
        let advised = env.data(&["next", "87"]);
        assert_eq!(advised["action"], action);
        assert_eq!(advised["decided"], json!(null));
        done(&env, "next 87 --apply --as orchestrator");
        let after = env.data(&["next", "87"]);
        assert_eq!(after["handoff"]["id"], "87.1");
        assert_eq!(after["decided"]["by"], "orchestrator");
        assert_eq!(after["decided"]["action"], action);
        let told = done(&env, "next 87");
        let begins = "maintainer's turn: 87.1 is ";
        assert!(told.stdout.starts_with(begins), "{}", told.shown);
        let decided = format!("orchestrator decided to {action} ");
        assert!(told.stdout.contains(&decided), "{}", told.shown);
        let commands = after["commands"].as_array().unwrap();
        let commands: Vec<&str> = commands.iter().map(|c| c.as_str().unwrap()).collect();
        let applies = commands.iter().any(|c| c.contains("--apply"));
        assert!(!applies, "{commands:?}");
        // What it offers instead runs, and then the decision is over.
        let verb = format!("git handoff {verb} 87.1 ");
        let command = commands.iter().find(|c| c.starts_with(&verb));
        let command = command.unwrap_or_else(|| panic!("{commands:?}"));
        let filled = command.replace("WHY", "so");
        done(&env, filled.trim_start_matches("git handoff "));
        assert_eq!(record(&env, "87.1")["state"], then);
        assert_ne!(env.data(&["next", "87"])["action"], action);
        env.assert_sound();
    }
}

#[test]
fn a_decision_to_ask_says_that_the_handoff_stays_blocked() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    let block = [
        "block",
        "87.1",
        "--as",
        "prep-agent",
        "--reason",
        "which port",
        "--needs",
        "port:integer",
    ];
    env.handoff(&block).success();
    env.handoff(&["next", "87", "--apply", "--as", "orchestrator"])
        .success()
        .says("87.1 stays blocked until it is answered\nnext, for orchestrator: git handoff answer 87.1 port=VALUE --as orchestrator\n");
}

#[test]
fn what_is_dead_gets_new_attempts_after_a_time_and_so_often() {
    let rule = r#"{"when": {"state": "dead", "after_seconds": 3600, "redriven_below": 1}, "action": "retry", "why": "the service may be back"}"#;
    let with = |rule: &str| {
        let env = TestEnvironment::with_repository();
        done(&env, "protocol copy issue-to-pr own");
        let file = env.repo().join("own/protocol.json");
        let text = fs::read_to_string(&file).unwrap();
        let first = r#""decisions": ["#;
        assert!(text.contains(first));
        fs::write(&file, text.replace(first, &format!("{first}\n    {rule},"))).unwrap();
        env
    };
    let endless = with(&rule.replace(r#", "redriven_below": 1"#, ""));
    let told = endless.handoff(&["protocol", "check", "own"]).exits(1);
    told.says("/decisions/0/when").says("redriven_below");

    let env = with(rule);
    done(&env, "init --protocol own");
    env.send(opening(87)).success();
    let fails = |env: &TestEnvironment| {
        loop {
            done(env, "claim 87.1 --as prep-agent");
            done(
                env,
                "fail 87.1 --as prep-agent --message broken --recoverable",
            );
            if env.data(&["show", "87.1"])["handoff"]["state"] == "dead" {
                break;
            }
            done(env, "retry 87.1 --as orchestrator");
            env.wait_minutes(60);
        }
    };
    fails(&env);
    assert_eq!(env.data(&["next", "87"])["action"], "fall_back");
    done(&env, "next 87 --apply --as orchestrator");
    env.wait_minutes(61);
    let advised = env.data(&["next", "87"]);
    assert_eq!(advised["action"], "retry");
    assert_eq!(advised["decided"], json!(null));
    done(&env, "next 87 --apply --as orchestrator");
    let record = stored(&env.data(&["show", "87.1"]));
    assert_eq!(record["state"], "pending");
    let last = record["transitions"].as_array().unwrap().last().unwrap();
    assert_eq!(last["event"], "redrive");
    // Once is enough: the next time a person decides.
    env.wait_minutes(60);
    fails(&env);
    env.wait_minutes(120);
    assert_eq!(env.data(&["next", "87"])["action"], "fall_back");
    env.assert_sound();
}
