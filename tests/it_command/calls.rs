//! Requests to specialists and their answers: the protocol orchestrator-specialist, by the program in real
//! repositories.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::contracts::value;
use test_support::exchange::{exported, fresh, trees};
use test_support::repository_kind;
use test_support::running::Running;
use test_support::team::record;
use test_support::{Ran, TestEnvironment, stored_issue};

const REACT: &str = "@react-specialist";
const FRONTEND: &str = "@frontend-specialist";
const ARTIFACT: &str = "artifacts/react/loan-list-1777883050.json";

fn env() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "orchestrator-specialist"])
        .success();
    env
}

/// A sample under an id of its own, with some places changed.
fn contract(name: &str, id: &str, changes: &[(&str, Value)]) -> String {
    let mut value = value("orchestrator-specialist", name, &[]);
    value["handoff_id"] = id.into();
    for (pointer, new) in changes {
        *value.pointer_mut(pointer).unwrap() = new.clone();
    }
    format!("{value:#}\n")
}

fn request(id: &str, changes: &[(&str, Value)]) -> String {
    contract("request", id, changes)
}

fn response(id: &str, changes: &[(&str, Value)]) -> String {
    contract("response", id, changes)
}

/// The failure of a React request.
fn failure(id: &str, changes: &[(&str, Value)]) -> String {
    let mut all = vec![
        ("/source/agent_id", json!(FRONTEND)),
        ("/target/agent_id", json!(REACT)),
    ];
    all.extend(changes.iter().cloned());
    contract("failure", id, &all)
}

/// An artifact as the React specialist's output schema wants it.
fn artifact(env: &TestEnvironment, path: &str) -> String {
    let text = json!({
        "artifact_id": "react-loan-list-1777883050",
        "artifact_type": "react-components",
        "files": [{"path": "src/LoanList.tsx", "summary": "The list"}],
    })
    .to_string();
    write(env, path, &text);
    text
}

fn write(env: &TestEnvironment, path: &str, text: &str) {
    test_support::files::write(&env.repo().join(path), text);
}

/// What Example 1 of the document writes: no priority, no policy, and half of the data.
fn foreign_request(id: &str) -> String {
    let mut value: Value = serde_json::from_str(&request(id, &[])).unwrap();
    let members = value.as_object_mut().unwrap();
    for name in ["expected_output", "priority", "retry_policy"] {
        members.shift_remove(name);
    }
    let props = json!({"name": "TestComponent", "type": "functional", "props": {}});
    value["input"]["data"] = json!({"component_requirements": [props]});
    value.to_string()
}

/// A request that was sent and claimed.
fn claimed(id: &str, changes: &[(&str, Value)]) -> TestEnvironment {
    let env = env();
    env.send(request(id, changes)).success();
    env.claim(id, REACT).success();
    env
}

/// Sends what must be refused; nothing may be written.
#[track_caller]
fn refused(env: &TestEnvironment, contract: impl AsRef<[u8]>, exit: i32, code: &str) -> Value {
    let before = env.tip();
    let ran = env.handoff_with(&["send", "-", "--json"], contract);
    no(ran, exit, code, || assert_eq!(env.tip(), before))
}

/// Runs what must be refused.
#[track_caller]
fn denied(env: &TestEnvironment, args: &[&str], exit: i32, code: &str) -> Value {
    let before = env.tip();
    let mut all = args.to_vec();
    all.push("--json");
    no(env.handoff(&all), exit, code, || {
        assert_eq!(env.tip(), before);
    })
}

#[track_caller]
fn no(ran: Ran, exit: i32, code: &str, unchanged: impl Fn()) -> Value {
    let mut document = ran.exits(exit).json();
    assert_eq!(document["ok"], false);
    assert_eq!(document["error"]["code"], code, "{document:#}");
    unchanged();
    document["error"].take()
}

/// A repeat writes nothing and names the first receipt.
#[track_caller]
fn repeated(env: &TestEnvironment, contract: impl AsRef<[u8]>, id: &str) {
    let before = env.tip();
    let document = env
        .handoff_with(&["send", "-", "--json"], contract)
        .success()
        .json();
    assert_eq!(document["data"]["repeated"], true, "{document:#}");
    assert_eq!(document["data"]["commit"], Value::Null);
    assert_eq!(document["data"]["handoff"]["id"], id);
    assert_eq!(env.tip(), before);
}

#[test]
fn a_request_is_answered_and_its_issue_is_complete() {
    let env = env();
    let bytes = artifact(&env, ARTIFACT);
    let mut text = env.send(request("loan-list-21", &[])).success().shown;
    text += &env.claim("loan-list-21", REACT).success().shown;
    text += &env.send(response("loan-list-21", &[])).success().shown;
    for args in [
        &["show", "loan-list-21.1"][..],
        &["show", "loan-list-21.2"],
        &["status", "loan-list-21"],
        &["log", "loan-list-21"],
        &["inbox", "--as", FRONTEND],
    ] {
        let shown = env.handoff(args).success().shown;
        text += shown.split("\n\n```json\n").next().unwrap().trim_end();
        text += "\n";
    }
    // The contract that a claim prints is the one that was sent.
    let (start, end) = (text.find("\n{\n").unwrap(), text.find("\n}\n").unwrap());
    let printed: Value = serde_json::from_str(&text[start..end + 2]).unwrap();
    assert_eq!(printed, value("orchestrator-specialist", "request", &[]));
    text.replace_range(start + 1..end + 2, "[request]");
    insta::assert_snapshot!(text, @"
    $ git handoff send -
    loan-list-21.1 @frontend-specialist → @react-specialist: pending
      commit [commit]
    --- stderr
    next, for @react-specialist: git handoff claim loan-list-21.1 --as @react-specialist
    $ git handoff claim loan-list-21 --as @react-specialist
    loan-list-21.1 @frontend-specialist → @react-specialist: in_progress
      held until 2026-03-02 09:21:00Z, token 1, worker repo
      commit [commit]
      your part: Makes React components
      if you are stuck: git handoff block loan-list-21.1 --as @react-specialist --reason WHAT, or: git handoff fail loan-list-21.1 --as @react-specialist --message WHY --recoverable --snapshot

    ```json
    [request]
    ```
    --- stderr
    next: git handoff send --issue loan-list-21 --to @frontend-specialist --type response --as @react-specialist --set FIELD=VALUE…   # Work delivered
        execution_time_seconds (number): seconds that the work took
        output.artifact_id: id of the artifact
        output.artifact_path: path of the artifact
        validation.typescript_errors (integer): number of errors of the TypeScript compiler
        validation.eslint_warnings (integer): number of warnings of ESLint
        validation.tests_passing (boolean): true or false
        validation.coverage_percentage (number): test coverage in percent
        validation.accessibility_violations (integer): number of accessibility rules that are broken
        metadata.components_generated (integer): number of components
        metadata.custom_hooks_generated (integer): number of hooks
        metadata.test_files_generated (integer): number of test files
        metadata.total_lines_generated (integer): number of lines
        next_steps (once for each entry): one thing to do next
    $ git handoff send -
    loan-list-21.2 @react-specialist → @frontend-specialist: completed
      loan-list-21.1 in_progress..completed
      statements: passed artifacts; skipped tests (no test report was given), coverage (no coverage report was given); `send` takes reports with --tests FILE and --coverage FILE
      issue loan-list-21 is complete: no work is left in it
      commit [commit]
    $ git handoff show loan-list-21.1
    loan-list-21.1 @frontend-specialist → @react-specialist: completed
      summary   react-components
      type      request (json)
      sha256    [sha256]
      priority  normal
      expects   react-components at artifacts/react/loan-list-{timestamp}.json
      2026-03-02 09:05:00Z send by @frontend-specialist → pending
      2026-03-02 09:06:00Z claim by @react-specialist → in_progress
      2026-03-02 09:07:00Z complete by @react-specialist → completed with loan-list-21.2
    $ git handoff show loan-list-21.2
    loan-list-21.2 @react-specialist → @frontend-specialist: completed
      summary   artifacts/react/loan-list-[commit].json
      type      response (json)
      sha256    [sha256]
      follows   loan-list-21.1
      answers   loan-list-21.1
      artifact  artifacts/react/loan-list-[commit].json: 138 bytes, sha256 [sha256]
      statement artifacts passed
      statement tests skipped: no test report was given
      statement coverage skipped: no coverage report was given
      2026-03-02 09:07:00Z send by @react-specialist → completed
      contracts' statements are checked: warn
    $ git handoff status loan-list-21
    issue loan-list-21: completed (orchestrator-specialist, 2 handoffs, since 2026-03-02 09:05:00Z)
      title: react-components
      completed 2026-03-02 09:07:00Z
      expected_output:
        - artifact_type: react-components
        - schema: react-specialist.output.schema.json
        - destination: artifacts/react/loan-list-{timestamp}.json
      framework: React
      project_id: loan-desk
      tech_stack_artifact_id: stack-loan-desk-3
      artifact_id: react-loan-list-[commit]
      artifact_path: artifacts/react/loan-list-[commit].json
      coverage: 93.4
      next_steps:
        - Put the list on the reader's page
      warnings:
        - Renewals are not limited yet
    loan-list-21.1  completed  @frontend-specialist → @react-specialist  normal  3 minutes ago  react-components
    loan-list-21.2  completed  @react-specialist → @frontend-specialist          3 minutes ago  artifacts/react/loan-list-[commit].json
    $ git handoff log loan-list-21
    [commit]  2026-03-02 09:07:00Z  @react-specialist     held 1m    loan-list-21.1 completed: artifacts/react/loan-list-[commit].json
    [commit]  2026-03-02 09:06:00Z  @react-specialist     waited 1m  loan-list-21.1 claimed, until 09:21
    [commit]  2026-03-02 09:05:00Z  @frontend-specialist             loan-list-21.1 sent to @react-specialist: react-components
    --- stderr
    the same with git: git log handoffs -- issues/21/t-/loan-list-21
    $ git handoff inbox --as @frontend-specialist
    needs attention
    ! loan-list-21.2 answered, @frontend-specialist's turn, 5 minutes ago
        | react-components
        | artifacts/react/loan-list-[commit].json
        read it first: git handoff show loan-list-21.2
        next: git handoff annotate loan-list-21.2 --as @frontend-specialist --note seen
    ");
    let answer = record(&env, "loan-list-21.2");
    assert_eq!(answer["answers"], "loan-list-21.1");
    assert_eq!(answer["follows"], "loan-list-21.1");
    assert_eq!(answer["from"], REACT);
    assert_eq!(answer["to"], FRONTEND);
    assert_eq!(answer["artifacts"][0]["bytes"], bytes.len());
    let message = env.git(&env.repo(), &["log", "-1", "--format=%B", "handoffs"]);
    insta::assert_snapshot!(env.filtered(&message), @"
    loan-list-21.1 completed: artifacts/react/loan-list-[commit].json

    react-components

    Handoff-Id: loan-list-21.2
    Issue: loan-list-21
    From: @react-specialist
    To: @frontend-specialist
    Transition: loan-list-21.1 in_progress..completed
    Transition: loan-list-21.2 none..completed
    Contract-Type: response
    Contract-Sha256: [sha256]
    Protocol: orchestrator-specialist
    Event: complete
    Request: send
    By: @react-specialist
    Worker: repo
    At: 2026-03-02T09:07:00Z
    Attempt: 1
    Held-Seconds: 60
    ");
    env.assert_sound();
}

#[test]
fn the_most_urgent_request_comes_first() {
    let env = env();
    env.pace(1);
    for priority in ["low", "normal", "critical", "high"] {
        let id = format!("loans-{priority}");
        env.send(request(&id, &[("/priority", json!(priority))]))
            .success();
    }
    // The same priority as another: the older one first.
    env.send(request("loans-again", &[("/priority", json!("high"))]))
        .success();
    let inbox = env.data(&["inbox", "--as", REACT]);
    let ids: Vec<&str> = inbox["handoffs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| h["id"].as_str().unwrap())
        .collect();
    let order = [
        "loans-critical.1",
        "loans-high.1",
        "loans-again.1",
        "loans-normal.1",
        "loans-low.1",
    ];
    assert_eq!(ids, order);
    for id in order {
        let ran = env.handoff(&["claim", "--next", "--as", REACT]).success();
        assert!(ran.stdout.starts_with(id), "{}", ran.shown);
    }
    denied(
        &env,
        &["claim", "--next", "--as", REACT],
        6,
        "nothing_to_claim",
    );
    // Each request is an issue of its own, so all of them can be in hand.
    for id in order {
        let id = id.trim_end_matches(".1");
        env.send(response(id, &[])).success();
    }
    assert_eq!(env.data(&["status"])["open"]["in_progress"], 0);
    env.assert_sound();
}

#[test]
fn an_answer_needs_a_claim_and_is_given_once() {
    let env = env();
    env.pace(1);
    let asked = request("loans", &[]);
    refused(&env, response("loans", &[]), 6, "no_issue");
    env.send(&asked).success();
    repeated(&env, &asked, "loans.1");
    let error = refused(&env, response("loans", &[]), 4, "not_claimed");
    assert!(error["hint"].as_str().unwrap().contains("claim loans.1"));
    refused(
        &env,
        request("loans", &[("/priority", json!("low"))]),
        5,
        "id_taken",
    );
    env.claim("loans", REACT).success();
    refused(
        &env,
        request("loans", &[("/timeout_seconds", json!(60))]),
        5,
        "id_taken",
    );
    // Only the one who was asked can answer, and only to the one who asked.
    let other = [("/target/agent_id", json!("@dotnet-specialist"))];
    refused(&env, response("loans", &other), 4, "not_held");
    let other = [("/source/agent_id", json!("@backend-specialist"))];
    refused(&env, response("loans", &other), 4, "not_held");
    let answer = response("loans", &[]);
    env.send(&answer).success();
    repeated(&env, &answer, "loans.2");
    repeated(&env, &asked, "loans.1");
    let error = refused(
        &env,
        response("loans", &[("/execution_time_seconds", json!(1))]),
        5,
        "already_answered",
    );
    assert!(error["hint"].as_str().unwrap().contains("show loans.2"));
    refused(&env, failure("loans", &[]), 5, "already_answered");
    refused(
        &env,
        request("loans", &[("/priority", json!("low"))]),
        5,
        "id_taken",
    );
    assert_eq!(record(&env, "loans.1")["state"], "completed");
    env.assert_sound();
}

#[test]
fn a_request_that_was_given_up_is_not_answered() {
    let env = claimed("loans", &[]);
    env.handoff(&["cancel", "loans.1", "--as", FRONTEND, "--reason", "not now"])
        .success();
    let error = refused(&env, response("loans", &[]), 4, "not_working");
    let said = error["message"].as_str().unwrap();
    assert!(said.contains("cancelled"), "{said}");
    // The same bytes ask for it once more.
    env.send(request("loans", &[])).success();
    env.claim("loans.2", REACT).success();
    env.send(response("loans", &[])).success();
    assert_eq!(record(&env, "loans.3")["answers"], "loans.2");
    env.assert_sound();
}

#[test]
fn two_answers_at_once_are_one_answer() {
    let env = claimed("loans", &[]);
    let spawn = |seconds: u32| {
        let text = response("loans", &[("/execution_time_seconds", json!(seconds))]);
        let file = env.file(&format!("answer-{seconds}.json"), text);
        env.program(&["send", &file, "--json"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let running: Vec<_> = (1..=6).map(spawn).collect();
    let ended = running.into_iter().map(|c| c.wait_with_output().unwrap());
    let mut codes: Vec<Option<i32>> = ended.map(|o| o.status.code()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 5, 5, 5, 5, 5].map(Some));
    assert_eq!(env.data(&["status", "loans"])["record"]["handoffs"], 2);
    env.assert_sound();
}

#[test]
fn a_failure_fails_the_request_and_says_what_to_do() {
    let env = claimed("loans", &[]);
    env.send(failure("loans", &[])).success();
    let asked = record(&env, "loans.1");
    assert_eq!(asked["state"], "failed");
    let told = &asked["transitions"].as_array().unwrap().last().unwrap()["failure"];
    assert_eq!(told["code"], "SCHEMA_VALIDATION_FAILED");
    // The contract's own advice comes first.
    assert_eq!(told["suggested_action"], "Use int for the number of days");
    let details = told["details"].as_str().unwrap();
    assert!(details.contains("Type dayz is unknown"), "{details}");
    // "Fix input, retry": every view names the command that corrects it, and the findings.
    let command = format!("git handoff retry loans.1 --with FILE --as {FRONTEND}");
    for args in [
        &["next", "loans"][..],
        &["show", "loans.1"],
        &["status", "loans"],
        &["status"],
        &["inbox", "--as", FRONTEND],
        &["prime", "--as", FRONTEND],
    ] {
        env.handoff(args).success().says(&command);
    }
    for args in [
        &["next", "loans"][..],
        &["show", "loans.1"],
        &["status", "loans"],
    ] {
        env.handoff(args).success().says("Type dayz is unknown");
    }
    let told_of = env.data(&["inbox", "--as", FRONTEND])["attention"][0]["why"].clone();
    assert!(
        told_of.as_str().unwrap().contains("Type dayz is unknown"),
        "{told_of}"
    );
    assert_eq!(told["recoverable"], true);
    assert_eq!(record(&env, "loans.2")["to"], FRONTEND);
    let issue = stored_issue(&env.data(&["status", "loans"]));
    assert_eq!(issue["status"], "open");
    assert_eq!(issue["facts"]["failures"], 1);
    refused(&env, response("loans", &[]), 4, "not_working");
    // Without one, the protocol's for the code does.
    env.handoff(&["retry", "loans.1", "--as", FRONTEND])
        .success();
    env.claim("loans", REACT).success();
    let silent = |retries: u32| {
        let changes = [
            ("/error/code", json!("DEPENDENCY_MISSING")),
            ("/recovery_actions", json!([])),
            ("/retry_count", json!(retries)),
        ];
        failure("loans", &changes)
    };
    env.send(silent(1)).success();
    repeated(&env, silent(1), "loans.3");
    let asked = record(&env, "loans.1");
    let told = &asked["transitions"].as_array().unwrap().last().unwrap()["failure"];
    assert_eq!(
        told["suggested_action"],
        "Have that artifact made first, then retry"
    );
    // After a retry, the same failure is a report of another attempt.
    env.handoff(&["retry", "loans.1", "--as", FRONTEND])
        .success();
    env.claim("loans", REACT).success();
    env.send(silent(2)).success().says("loans.4");
    // The request allows no third retry.
    assert_eq!(record(&env, "loans.1")["state"], "dead");
    env.assert_sound();
}

#[test]
fn a_request_is_retried_as_often_as_it_says() {
    for (most, name) in [(0, "never"), (2, "twice")] {
        let env = claimed(name, &[("/retry_policy/max_retries", json!(most))]);
        let id = format!("{name}.1");
        for attempt in 0..=most {
            if attempt > 0 {
                env.handoff(&["retry", &id, "--as", FRONTEND]).success();
                env.claim(name, REACT).success();
            }
            assert_eq!(record(&env, &id)["attempt"], attempt + 1);
            env.send(failure(name, &[("/retry_count", json!(attempt))]))
                .success();
        }
        let error = denied(&env, &["retry", &id, "--as", FRONTEND], 4, "retries_spent");
        assert!(error["hint"].as_str().unwrap().contains("git handoff next"));
        env.handoff(&["cancel", &id, "--as", FRONTEND]).success();
        env.assert_sound();
    }
}

#[test]
fn error_codes_are_the_protocols() {
    let env = claimed("loans", &[]);
    let unknown = failure("loans", &[("/error/code", json!("NETWORK_DOWN"))]);
    let error = refused(&env, unknown, 3, "contract_refused");
    assert_eq!(error["findings"][0]["path"], "/error/code");
    let fail = |code: &'static str| {
        vec![
            "fail", "loans.1", "--as", REACT, "--reason", "it broke", "--code", code,
        ]
    };
    let error = denied(&env, &fail("NETWORK_DOWN"), 4, "unknown_error_code");
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("DEPENDENCY_MISSING")
    );
    env.handoff(&fail("TIMEOUT")).success();
    let before = env.tip();
    env.handoff(&fail("TIMEOUT")).success();
    assert_eq!(env.tip(), before, "the same again is a repeat");
    let shown = env.handoff(&["show", "loans.1"]).success();
    shown
        .says("TIMEOUT: it broke")
        .says("Give it more time, then retry");
    env.assert_sound();
}

#[test]
fn an_issue_ends_with_the_answer_to_its_request_and_not_with_a_failure() {
    let env = claimed("loans", &[]);
    let status = || env.data(&["status", "loans"])["issue"]["status"].clone();
    env.send(failure("loans", &[])).success();
    assert_eq!(status(), "open");
    env.handoff(&["gate", "loans"]).exits(1);
    env.wait(3600);
    let retry = ["retry", "loans.1", "--as", FRONTEND, "--reason", "again"];
    env.handoff(&retry).success();
    env.claim("loans.1", REACT).success();
    env.send(response("loans", &[])).success();
    assert_eq!(status(), "completed");
    env.handoff(&["gate", "loans"]).success();
    env.handoff(&["wait", "loans", "--timeout", "0s"]).success();
    // Another request under the same id is another contract.
    let other = request("loans", &[("/priority", json!("low"))]);
    refused(&env, other, 5, "id_taken");
    env.assert_sound();
}

#[test]
fn a_request_is_answered_and_not_only_completed() {
    let env = claimed("loans", &[]);
    let error = denied(
        &env,
        &["complete", "loans.1", "--as", REACT],
        4,
        "needs_answer",
    );
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("new --issue loans --from @react-specialist --to @frontend-specialist"));
    env.handoff(&["block", "loans.1", "--as", REACT, "--reason", "Which page?"])
        .success();
    refused(&env, response("loans", &[]), 4, "not_working");
    env.handoff(&["answer", "loans.1", "The reader's page", "--as", FRONTEND])
        .success();
    env.claim("loans", REACT).success();
    env.send(response("loans", &[])).success();
    env.assert_sound();
}

#[test]
fn data_is_checked_against_the_schema_that_the_request_names() {
    let env = env();
    let faulty = request(
        "loans",
        &[(
            "/input/data/component_requirements/0/api_integration/1/method",
            json!("FETCH"),
        )],
    );
    let line = 1 + faulty.lines().position(|l| l.contains("FETCH")).unwrap();
    let text = faulty.lines().nth(line - 1).unwrap();
    let column = 1 + text.find("\"FETCH\"").unwrap();
    let error = refused(&env, &faulty, 3, "contract_refused");
    let [finding] = &error["findings"].as_array().unwrap()[..] else {
        panic!("{error:#}");
    };
    assert_eq!(
        finding["path"],
        "/input/data/component_requirements/0/api_integration/1/method"
    );
    assert_eq!(
        (&finding["line"], &finding["column"]),
        (&json!(line), &json!(column))
    );
    // The same data under the schema of another specialist.
    let other = request(
        "loans",
        &[(
            "/input/schema",
            json!("database-specialist.input.schema.json"),
        )],
    );
    let error = refused(&env, other, 3, "contract_refused");
    let inside = |f: &Value| f["path"].as_str().unwrap().starts_with("/input/data/");
    let mut faults = error["findings"].as_array().unwrap().iter();
    assert!(faults.all(|f| inside(f) || f["severity"] == "warning"));
    // Schemas that the protocol does not have.
    for (at, name) in [
        ("/input/schema", "vue-specialist.input.schema.json"),
        (
            "/expected_output/schema",
            "vue-specialist.output.schema.json",
        ),
    ] {
        let error = refused(
            &env,
            request("loans", &[(at, json!(name))]),
            3,
            "contract_refused",
        );
        let findings = error["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 1, "{error:#}");
        assert_eq!(findings[0]["code"], "schema.unknown");
        assert_eq!(findings[0]["path"], at);
        assert!(findings[0]["line"].is_u64());
    }
    assert_eq!(env.data(&["list"])["handoffs"], json!([]));
    env.assert_sound();
}

#[test]
fn an_answer_delivers_what_was_asked_for() {
    let env = claimed("loans", &[]);
    env.pace(6);
    let unfit = |at: &str, value: &str, code: &str| {
        let error = refused(
            &env,
            response("loans", &[(at, json!(value))]),
            3,
            "contract_refused",
        );
        let findings = error["findings"].as_array().unwrap();
        let codes: Vec<&str> = findings
            .iter()
            .map(|f| f["code"].as_str().unwrap())
            .collect();
        assert_eq!(codes, [code], "{error:#}");
        assert_eq!(findings[0]["path"], at);
    };
    unfit("/output/artifact_type", "vue-components", "artifact.type");
    for path in [
        "artifacts/react/loan-list.json",
        "artifacts/react/loan-list-.json",
        "artifacts/react/loan-list-{timestamp}.json",
        "artifacts/react/loan-list-latest.json",
        "artifacts/vue/loan-list-1777883050.json",
        "artifacts/react/loan-list-1777883050.json.bak",
    ] {
        unfit("/output/artifact_path", path, "artifact.destination");
    }
    // What is there must be what the schema says.
    for (text, said) in [
        (
            "{\"artifact_id\": \"a\", \"artifact_type\": \"react-components\"}",
            "files",
        ),
        ("{\"files\": [", ""),
        ("[1]", ""),
        ("", ""),
        ("\u{0}\u{1}", ""),
    ] {
        write(&env, ARTIFACT, text);
        let error = refused(&env, response("loans", &[]), 3, "artifact_refused");
        let finding = &error["findings"][0];
        assert_eq!(finding["code"], "artifact.schema", "{text:?}: {error:#}");
        assert_eq!(finding["path"], "/output/artifact_path");
        assert!(finding["message"].as_str().unwrap().contains(said));
    }
    // A failure delivers nothing, whatever lies there.
    let text = artifact(&env, ARTIFACT);
    env.send(response("loans", &[])).success();
    let kept = record(&env, "loans.2")["artifacts"].clone();
    let sha256 = env.git(&env.repo(), &["hash-object", ARTIFACT]);
    assert_eq!(sha256.trim().len(), repository_kind::digits());
    assert_eq!(kept[0]["path"], ARTIFACT);
    assert_eq!(kept[0]["bytes"], text.len());
    assert_eq!(kept[0]["sha256"], sha256_of(&env, ARTIFACT));
    env.assert_sound();
    // What happens to the file afterwards does not change what was recorded.
    fs::remove_file(env.repo().join(ARTIFACT)).unwrap();
    assert_eq!(record(&env, "loans.2")["artifacts"], kept);
    env.assert_sound();
}

fn sha256_of(env: &TestEnvironment, path: &str) -> String {
    let output = env.command("sha256sum").arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(' ').next().unwrap().to_owned()
}

#[test]
fn an_artifact_that_is_not_there_is_recorded_as_such() {
    let env = claimed("loans", &[]);
    env.send(response("loans", &[])).success();
    assert_eq!(
        record(&env, "loans.2")["artifacts"],
        json!([{"path": ARTIFACT}])
    );
    let shown = env.handoff(&["show", "loans.2"]).success();
    assert!(shown.stdout.contains(&format!("{ARTIFACT}: no such file")));
    env.assert_sound();
}

/// A ledger with a changed copy of the protocol.
fn changed(change: impl FnOnce(&Path)) -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    let folder = env.root().join("changed");
    let path = folder.to_str().unwrap();
    env.handoff(&["protocol", "copy", "orchestrator-specialist", path])
        .success();
    change(&folder);
    env.handoff(&["init", "--protocol", path]).success();
    env
}

fn edit(file: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    change(&mut value);
    fs::write(file, value.to_string()).unwrap();
}

#[test]
fn an_artifact_is_compared_with_the_request_that_is_answered() {
    let schema = "stories.output.schema.json";
    // One issue for all requests of a project, and a schema of its own.
    let env = changed(|folder| {
        let stories = json!({"type": "object", "required": ["stories"]});
        fs::write(folder.join("schemas").join(schema), stories.to_string()).unwrap();
        edit(&folder.join("protocol.json"), |definition| {
            definition["fields"]["issue"] = json!("/context/project_id");
            for kind in definition["contracts"].as_array_mut().unwrap() {
                if kind["type"] != "request" {
                    kind["fields"]["issue"] = json!("/output/artifact_id");
                }
            }
            definition["contracts"][2]["fields"]["issue"] = json!("/error/message");
        });
    });
    let project = ("/context/project_id", json!("desk"));
    let answer = |id: &str| response(id, &[("/output/artifact_id", json!("desk"))]);
    env.send(request("one", std::slice::from_ref(&project)))
        .success();
    env.send(request(
        "two",
        &[
            project,
            ("/expected_output/schema", json!(schema)),
            ("/priority", json!("low")),
        ],
    ))
    .success();
    artifact(&env, ARTIFACT);
    env.claim("desk.1", REACT).success();
    env.send(answer("one")).success();
    assert_eq!(record(&env, "desk.3")["answers"], "desk.1");
    env.claim("desk.2", REACT).success();
    let error = refused(&env, answer("two"), 3, "artifact_refused");
    assert_eq!(error["findings"][0]["code"], "artifact.schema");
    let said = error["findings"][0]["fix"].as_str().unwrap();
    assert!(said.contains(schema), "{said}");
    env.assert_sound();
}

#[test]
fn artifacts_are_read_only_inside_the_working_tree() {
    let env = changed(|folder| {
        for name in ["response", "request"] {
            edit(&folder.join(format!("schemas/{name}.schema.json")), |s| {
                s["$defs"]["path"] = json!({"type": "string"});
            });
        }
    });
    let text = artifact(&env, "inside/a.json");
    fs::write(env.root().join("secret.json"), &text).unwrap();
    fs::write(env.repo().join(".git/own.json"), &text).unwrap();
    symlink(env.root().join("secret.json"), env.repo().join("link.json")).unwrap();
    symlink(env.root(), env.repo().join("up")).unwrap();
    symlink(env.repo().join(".git"), env.repo().join("own")).unwrap();
    symlink("inside/a.json", env.repo().join("fine.json")).unwrap();
    symlink("loop.json", env.repo().join("loop.json")).unwrap();
    let absolute = env.repo().join("inside/a.json");
    let paths = [
        ("inside/a.json", true),
        ("./inside/a.json", true),
        ("fine.json", true),
        ("../secret.json", false),
        ("inside/../../secret.json", false),
        ("inside/../inside/a.json", false),
        (absolute.to_str().unwrap(), false),
        ("/etc/passwd", false),
        ("link.json", false),
        ("up/secret.json", false),
        (".git/own.json", false),
        ("own/own.json", false),
        ("inside", false),
        ("loop.json", false),
        ("missing.json", false),
        ("inside/a.json/x", false),
    ];
    let nowhere = ["missing.json", "inside/a.json/x"];
    for (number, (path, read)) in paths.into_iter().enumerate() {
        let id = format!("loans-{number}");
        let asked = request(&id, &[("/expected_output/destination", json!(path))]);
        env.send(asked).success();
        env.claim(&id, REACT).success();
        let answer = response(&id, &[("/output/artifact_path", json!(path))]);
        // What is there and can't be looked at is not taken for what is not there.
        if !read && !nowhere.contains(&path) {
            let error = refused(&env, answer, 3, "artifact_refused");
            assert_eq!(error["findings"][0]["code"], "artifact.schema", "{path}");
            continue;
        }
        env.send(answer).success();
        let kept = &record(&env, &format!("{id}.2"))["artifacts"][0];
        assert_eq!(kept["path"], path);
        assert_eq!(kept["sha256"].is_string(), read, "{path}");
        assert_eq!(kept["bytes"].is_u64(), read, "{path}");
    }
    env.assert_sound();
}

#[test]
fn documents_are_shared_by_all_issues() {
    let env = env();
    let set = |name: &'static str, value: &Value| {
        let file = env.file("document.json", value.to_string());
        let args = ["document", "set", name, &file, "--as", FRONTEND, "--json"];
        env.handoff(&args)
    };
    let stack = json!({"framework": "React", "version": "19.1", "layers": {}});
    let before = env.tip();
    denied(&env, &["document", "show", "tech-stack"], 6, "no_document");
    // What its schema refuses is not kept, and neither is what nobody shares.
    let error = no(
        set("tech-stack", &json!({"framework": "React"})),
        3,
        "document_refused",
        || {},
    );
    assert_eq!(error["findings"][0]["path"], "/version");
    assert_eq!(error["findings"][0]["line"], 1);
    no(set("menu", &stack), 6, "no_document", || {});
    let file = env.file("broken.json", "{");
    let args = ["document", "set", "tech-stack", &file, "--as", FRONTEND];
    denied(&env, &args, 3, "document_refused");
    let file = env.file("stack.json", stack.to_string());
    let args = ["document", "set", "tech-stack", &file, "--as", "stranger"];
    denied(&env, &args, 4, "unknown_agent");
    assert_eq!(env.tip(), before);

    set("tech-stack", &stack).success();
    let tip = env.tip();
    assert_ne!(tip, before);
    set("tech-stack", &stack).success();
    assert_eq!(env.tip(), tip, "the same again is no commit");
    assert_eq!(
        env.data(&["document", "show", "tech-stack"])["value"],
        stack
    );
    let listed = env.data(&["document", "list"]);
    let set_ones: Vec<&str> = listed["documents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|d| d["set"] == true)
        .map(|d| d["document"].as_str().unwrap())
        .collect();
    assert_eq!(set_ones, ["tech-stack"]);
    let message = env.git(&env.repo(), &["log", "-1", "--format=%an%n%B", "handoffs"]);
    insta::assert_snapshot!(env.filtered(&message), @"
    @frontend-specialist
    Set document tech-stack

    Document: tech-stack
    Document-Sha256: [sha256]
    From: @frontend-specialist
    Protocol: orchestrator-specialist
    ");

    // A claim comes with them.
    env.send(request("loans", &[])).success();
    let claim = env.claim("loans", REACT).success();
    assert!(claim.stdout.contains("tech-stack"), "{}", claim.shown);
    env.send(request("loans-2", &[])).success();
    let claim = env.data(&["claim", "loans-2", "--as", REACT]);
    assert_eq!(claim["documents"]["tech-stack"], stack, "{claim:#}");
    // A later version takes its place.
    let newer = json!({"framework": "React", "version": "20.0"});
    set("tech-stack", &newer).success();
    assert_eq!(
        env.data(&["document", "show", "tech-stack"])["value"],
        newer
    );
    env.assert_sound();
}

/// Fills what a skeleton leaves open, by the place of each mark.
fn filled(skeleton: &str, with: &Value) -> Value {
    fn fill(value: &mut Value, with: &Value) {
        match value {
            Value::String(text) if text.contains("{{fill") => *value = with.clone(),
            Value::Array(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    fill(item, &with[i]);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    fill(member, &with[key.as_str()]);
                }
            }
            _ => {}
        }
    }
    let mut value: Value = serde_json::from_str(skeleton).unwrap();
    fill(&mut value, with);
    value
}

#[test]
fn skeletons_of_requests_and_answers_pass_once_they_are_filled() {
    let new = |env: &TestEnvironment, from: &str, to: &str, kind: &str| {
        let args = [
            "new", "--issue", "loans", "--from", from, "--to", to, "--type", kind,
        ];
        let text = env.handoff(&args).success().stdout;
        env.send(&text).exits(3).says("field.unfilled");
        text
    };
    for (kind, outcome) in [("response", "completed"), ("failure", "failed")] {
        let env = env();
        let text = new(&env, FRONTEND, REACT, "request");
        let asked = filled(&text, &value("orchestrator-specialist", "request", &[]));
        assert_eq!(asked["handoff_id"], "loans");
        env.send(asked.to_string()).success();
        env.claim("loans", REACT).success();
        let text = new(&env, REACT, FRONTEND, kind);
        let answer = filled(&text, &value("orchestrator-specialist", kind, &[]));
        assert_eq!(answer["source"]["agent_id"], FRONTEND);
        assert_eq!(answer["target"]["agent_id"], REACT);
        let check = env.handoff_with(&["check", "-"], answer.to_string());
        check.success().says(&format!("complete ({kind})"));
        env.send(answer.to_string()).success();
        assert_eq!(record(&env, "loans.1")["state"], outcome);
        env.assert_sound();
    }
}

#[test]
fn without_a_ledger_check_knows_every_protocol_by_the_contract() {
    let env = TestEnvironment::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut taken = 0;
    for name in handoff::templates::BUILT_IN {
        let entries = fs::read_dir(samples.join(name).join("valid")).unwrap();
        let files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let files = files.iter().map(|path| path.to_str().unwrap());
        let check: Vec<&str> = ["check"].into_iter().chain(files).collect();
        let found = env.data(&check);
        let named = env.data(&[&check[..], &["--protocol", name]].concat());
        assert_eq!(found, named, "{name}");
        taken += check.len() - 1;
    }
    assert!(taken > 100);
}

#[test]
fn what_is_tampered_with_is_found() {
    let env = claimed("loans", &[]);
    artifact(&env, ARTIFACT);
    env.send(response("loans", &[])).success();
    env.assert_sound();
    let sound = env.tip();
    let sha256 = sha256_of(&env, ARTIFACT);
    let folder = env.git(&env.repo(), &["ls-tree", "-r", "--name-only", "handoffs"]);
    let path = folder.lines().find(|l| l.ends_with("/0002.json")).unwrap();
    let worktree = env.root().join("ledger");
    env.git(
        &env.repo(),
        &[
            "worktree",
            "add",
            "-q",
            "--detach",
            worktree.to_str().unwrap(),
            "handoffs",
        ],
    );
    let file = worktree.join(path);
    let text = fs::read_to_string(&file).unwrap();
    for (from, to) in [
        (&*sha256, &*"0".repeat(64)),
        ("\"bytes\": 138", "\"bytes\": 139"),
        ("\"answers\": \"loans.1\"", "\"answers\": \"loans.2\""),
        ("\"follows\": \"loans.1\"", "\"follows\": \"loans.2\""),
        ("\"path\": \"artifacts/", "\"path\": \"elsewhere/"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        fs::write(&file, text.replace(from, to)).unwrap();
        // On top of the last step, and in its place.
        for commit in [&["-m", "x"][..], &["--amend", "--no-edit"]] {
            env.git(&worktree, &["reset", "-q", "--soft", &sound]);
            env.git(&worktree, &[&["commit", "-q", "-a"], commit].concat());
            env.git(&worktree, &["update-ref", "refs/heads/handoffs", "HEAD"]);
            // This clone saw what was amended; what else there is to find is the question here.
            env.handoff(&["verify", "--accept-rewritten"]).exits(10);
        }
    }
    env.git(&env.repo(), &["update-ref", "refs/heads/handoffs", &sound]);
    env.handoff(&["verify", "--accept-rewritten"]).success();
    env.assert_sound();
}

#[test]
fn check_and_send_say_that_the_record_of_a_request_is_gone() {
    let env = TestEnvironment::with_repository();
    let init = ["init", "--protocol", "orchestrator-specialist"];
    env.handoff(&[&init[..], &["--evidence", "warn"]].concat())
        .success();
    env.send(request("loans", &[])).success();
    env.claim("loans", REACT).success();
    artifact(&env, ARTIFACT);
    let answer = response("loans", &[]);
    env.handoff_with(&["check", "-"], &answer).success();
    let files = env.git(&env.repo(), &["ls-tree", "-r", "--name-only", "handoffs"]);
    let path = files.lines().find(|l| l.ends_with("/0001.json")).unwrap();
    let worktree = env.root().join("ledger");
    let folder = worktree.to_str().unwrap();
    env.git(
        &env.repo(),
        &["worktree", "add", "-q", "--detach", folder, "handoffs"],
    );
    env.git(&worktree, &["rm", "-q", path]);
    env.git(&worktree, &["commit", "-q", "-m", "x"]);
    env.git(&worktree, &["update-ref", "refs/heads/handoffs", "HEAD"]);
    refused(&env, &answer, 6, "no_handoff");
    let ran = env.handoff_with(&["check", "-", "--json"], &answer);
    no(ran, 6, "no_handoff", || {});
}

#[test]
fn an_inbox_ends_the_wait_when_a_request_of_the_agent_is_answered() {
    let env = claimed("loans", &[]);
    let args = ["wait", "--inbox", "--as", FRONTEND];
    let wait = Running::start(&env, &env.repo(), &args).waits();
    env.send(response("loans", &[])).success();
    let (stdout, stderr) = wait.ends(0);
    assert_eq!(stdout, format!("loans.2 answered: {ARTIFACT}\n"));
    let known = format!("next: git handoff annotate loans.2 --as {FRONTEND} --note seen\n");
    assert_eq!(stderr, known);
}

#[test]
fn a_failure_that_allows_no_further_attempt_ends_the_retries() {
    let env = claimed("loans", &[]);
    env.send(failure("loans", &[("/retry_available", json!(false))]))
        .success();
    let asked = record(&env, "loans.1");
    assert_eq!(asked["state"], "dead");
    let changes = asked["transitions"].as_array().unwrap();
    let [.., failed, given_up] = &changes[..] else {
        panic!("{asked:#}");
    };
    assert_eq!(failed["failure"]["no_retry"], true);
    assert_eq!(failed["sent"], "loans.2");
    assert_eq!(
        given_up["reason"],
        "@react-specialist says that there is no further attempt"
    );
    let error = denied(
        &env,
        &["retry", "loans.1", "--as", FRONTEND],
        4,
        "retries_spent",
    );
    assert_eq!(
        error["message"],
        "loans.1 cannot be retried: @react-specialist says that there is no further attempt"
    );
    let next = env.data(&["next", "loans"]);
    assert!(!next.to_string().contains("\"retry\""), "{next}");
    let shown = env.handoff(&["show", "loans.1"]).success();
    assert!(
        shown.stdout.contains("no further attempt"),
        "{}",
        shown.shown
    );

    // Whoever is in charge can still begin anew, and the count does.
    let revive = [
        "retry",
        "loans.1",
        "--as",
        FRONTEND,
        "--reason",
        "a new start",
    ];
    env.handoff(&revive).success();
    env.claim("loans", REACT).success();
    env.send(failure("loans", &[("/retry_count", json!(0))]))
        .success();
    assert_eq!(record(&env, "loans.1")["state"], "failed");
    env.assert_sound();
}

#[test]
fn a_failure_counts_the_retries_that_the_ledger_counts() {
    let env = claimed("loans", &[]);
    let wrong = failure("loans", &[("/retry_count", json!(50))]);
    let told =
        "`retry_count` is 50, and the ledger's count of retries of loans.1 is 0 (rule `retries`)";
    let error = refused(&env, &wrong, 4, "inconsistent");
    assert_eq!(error["findings"][0]["path"], "/retry_count");
    assert_eq!(error["findings"][0]["message"], told);
    env.handoff_with(&["check", "-", "--as", REACT], &wrong)
        .exits(4)
        .says(told);

    env.send(failure("loans", &[])).success();
    env.handoff(&["retry", "loans.1", "--as", FRONTEND])
        .success();
    env.claim("loans", REACT).success();
    // A skeleton has the right figure.
    let to = ["--to", FRONTEND, "--type", "failure"];
    let new = ["new", "--issue", "loans", "--from", REACT];
    let skeleton = env.handoff(&[&new[..], &to].concat()).success().stdout;
    let skeleton: Value = serde_json::from_str(&skeleton).unwrap();
    assert_eq!(skeleton["retry_count"], 1);
    refused(&env, failure("loans", &[]), 4, "inconsistent");
    env.send(failure("loans", &[("/retry_count", json!(1))]))
        .success();
    env.assert_sound();
}

/// A request that failed, and its corrected form in a file.
fn failed_and_corrected() -> (TestEnvironment, String, String) {
    let env = claimed("loans", &[]);
    env.send(failure("loans", &[])).success();
    let corrected = request("loans", &[("/context/tech_stack/version", json!("19.2"))]);
    let file = env.file("corrected.json", &corrected);
    (env, corrected, file)
}

#[test]
fn a_failed_request_is_corrected_under_its_own_id() {
    let (env, corrected, file) = failed_and_corrected();
    let error = refused(&env, &corrected, 5, "id_taken");
    let hint = error["hint"].as_str().unwrap();
    assert!(
        hint.contains("git handoff retry loans.1 --with FILE"),
        "{hint}"
    );

    let why = ["--reason", "it named no schema", "--as", FRONTEND];
    let done = env
        .handoff(&[&["retry", "loans.1", "--with", &file][..], &why].concat())
        .success();
    done.says("loans.3")
        .says("the reason is noted on loans.1\n");
    let failed = record(&env, "loans.1");
    assert_eq!(failed["state"], "cancelled");
    let last = failed["transitions"].as_array().unwrap().last().unwrap();
    assert_eq!(last["sent"], "loans.3");
    let next = record(&env, "loans.3");
    assert_eq!(
        (
            &next["state"],
            &next["attempt"],
            &next["replaces"],
            &next["contract_id"]
        ),
        (
            &json!("pending"),
            &json!(2),
            &json!("loans.1"),
            &json!("loans")
        )
    );
    let subject = env.git(&env.repo(), &["log", "-1", "--format=%s", "handoffs~1"]);
    env.claim("loans", REACT).success();
    env.handoff(&["show", "loans.1"]).says("it named no schema");
    assert!(
        subject.starts_with("loans.3 sent to @react-specialist, corrected, attempt 2"),
        "{subject}"
    );
    let shown = env.handoff(&["show", "loans.3"]).success();
    assert!(shown.stdout.contains("replaces"), "{}", shown.shown);
    assert_eq!(env.data(&["metrics"])["figures"]["retries"], 1);
    let told = env.data(&["inbox", "--as", FRONTEND]);
    assert_eq!(told["handoffs"], json!([]), "{told:#}");

    // Once more is a repeat.
    let before = env.tip();
    let again = env.handoff(&["retry", "loans.1", "--with", &file, "--json"]);
    assert_eq!(again.success().json()["data"]["repeated"], true);
    assert_eq!(env.tip(), before);

    // The next attempt counts on.
    refused(&env, failure("loans", &[]), 4, "inconsistent");
    env.send(failure("loans", &[("/retry_count", json!(1))]))
        .success();
    let third = request("loans", &[("/context/tech_stack/version", json!("19.3"))]);
    let third = env.file("third.json", third);
    env.handoff(&["retry", "loans.3", "--with", &third])
        .success();
    env.claim("loans", REACT).success();
    env.send(failure("loans", &[("/retry_count", json!(2))]))
        .success();
    assert_eq!(record(&env, "loans.5")["state"], "dead");
    let fourth = request("loans", &[("/context/tech_stack/version", json!("19.4"))]);
    let fourth = env.file("fourth.json", fourth);
    denied(
        &env,
        &["retry", "loans.5", "--with", &fourth],
        4,
        "retries_spent",
    );
    env.assert_sound();

    // It goes there and back.
    let out = exported(&env, "archive", "out");
    let copy = fresh(&env, "copy", "orchestrator-specialist");
    env.handoff_in(&copy, &["import", out.to_str().unwrap()])
        .success();
    assert_eq!(trees(&env, &copy), trees(&env, &env.repo()));
}

#[test]
fn a_corrected_request_waits_as_long_as_another_attempt_would() {
    let delay = ("/retry_policy/retry_delay_seconds", json!(600));
    let env = claimed("loans", std::slice::from_ref(&delay));
    env.send(failure("loans", &[])).success();
    let version = ("/context/tech_stack/version", json!("19.2"));
    let file = env.file("corrected.json", request("loans", &[delay, version]));
    env.handoff(&["retry", "loans.1", "--with", &file])
        .success();
    assert_eq!(
        record(&env, "loans.3")["not_before"],
        "2026-03-02T09:17:00Z"
    );
    denied(&env, &["claim", "loans.3", "--as", REACT], 4, "too_early");
    env.assert_sound();
}

#[test]
fn only_the_same_request_corrects_a_failed_one() {
    let (env, _, file) = failed_and_corrected();
    let refused = "correction_refused";
    let told = |contract: String| {
        let corrected = env.file("other.json", contract);
        let args = ["retry", "loans.1", "--with", &corrected];
        denied(&env, &args, 4, refused)["message"].clone()
    };
    assert_eq!(
        told(request("loans", &[])),
        "loans.1 cannot be retried with this contract: this is the contract that failed, byte for byte"
    );
    assert_eq!(
        told(contract(
            "request-database",
            "loans",
            &[("/source/agent_id", json!(FRONTEND))]
        )),
        "loans.1 cannot be retried with this contract: it is for @react-specialist, and this is for @database-specialist"
    );
    let other = env.file("failure.json", failure("loans", &[]));
    let args = ["retry", "loans.1", "--with", &other];
    let error = denied(&env, &args, 4, refused);
    assert!(error["message"].as_str().unwrap().contains("it is from"));
    let as_another = ["retry", "loans.1", "--with", &file, "--as", REACT];
    denied(&env, &as_another, 4, "not_the_sender");
    let incomplete = env.file("bad.json", request("loans", &[("/target", Value::Null)]));
    denied(
        &env,
        &["retry", "loans.1", "--with", &incomplete],
        3,
        "contract_refused",
    );
    // What did not fail is not retried.
    env.handoff(&["retry", "loans.1", "--as", FRONTEND])
        .success();
    denied(
        &env,
        &["retry", "loans.1", "--with", &file],
        4,
        "illegal_transition",
    );
    env.assert_sound();
}

/// "Write to pending directory": what refuses the file of another system names the command that takes it.
#[test]
fn a_file_of_another_system_is_for_an_import() {
    let env = env();
    write(
        &env,
        "handoffs/pending/hoff-1.json",
        &foreign_request("hoff-1"),
    );
    let file = "handoffs/pending/hoff-1.json";
    let takes = "`git handoff import` and `git handoff exchange` take it as it is, by the profile `state-files`";
    env.handoff(&["check", file]).exits(3).says(takes);
    env.handoff(&["send", file]).exits(3).says(takes);
    env.handoff(&["hooks", "install"]).success();
    env.git(&env.repo(), &["add", "handoffs"]);
    let commit = env.git_any(&env.repo(), &["commit", "-m", "A request"]);
    commit.exits(1).says(takes);
    env.handoff(&["import", "handoffs"]).success();
    // What no profile takes is not said to be for it.
    let broken = foreign_request("hoff-2").replace("\"pending\"", "\"waiting\"");
    let refused = env.send(broken);
    assert!(
        !refused.shown.contains("take it as it is"),
        "{}",
        refused.shown
    );
    env.assert_sound();
}

/// `"typescript_errors": 0` to `"total_lines_generated": 290`, and `"state_management": "Redux Toolkit"`: a
/// printed command has what the contract needs for React, and nothing of it for others.
#[test]
fn printed_commands_have_what_react_needs() {
    let env = claimed("loans", &[]);
    let prime = env.handoff(&["prime", "--as", REACT]).success().stdout;
    let figures = [
        "validation.typescript_errors",
        "validation.eslint_warnings",
        "validation.accessibility_violations",
        "metadata.components_generated",
        "metadata.custom_hooks_generated",
        "metadata.test_files_generated",
        "metadata.total_lines_generated",
    ];
    for field in figures {
        assert!(
            prime.contains(&format!("      {field} (integer): ")),
            "{field}: {prime}"
        );
    }
    let asks = ["send", "--issue", "more", "--to", REACT, "--as", FRONTEND];
    let told = env.handoff(&asks).exits(3).stderr;
    for part in ["state_management", "styling", "testing"] {
        let option = format!("--set context.tech_stack.{part}");
        assert!(told.contains(&option), "{part}: {told}");
    }
    // Of another artifact, a compiler of TypeScript is not asked for.
    env.send(contract("request-database", "tables", &[]))
        .success();
    let database = "@database-specialist";
    env.claim("tables", database).success();
    let prime = env.handoff(&["prime", "--as", database]).success().stdout;
    assert!(
        prime.contains("      execution_time_seconds (number): "),
        "{prime}"
    );
    assert!(
        !figures
            .iter()
            .any(|field| prime.contains(&format!("      {field}"))),
        "{prime}"
    );
}

/// "schema": "react-specialist.input.schema.json": the schemas that contracts name are listed and shown.
#[test]
fn the_schemas_that_requests_name_are_shown() {
    let env = env();
    let show = ["protocol", "show", "orchestrator-specialist"];
    let page = env.handoff(&show).success();
    let page = page.says("dotnet-specialist.input.schema.json");
    page.says("the fields are ours, for you to replace");
    let named = [
        &show[..],
        &["--type", "dotnet-specialist.input.schema.json"],
    ]
    .concat();
    env.handoff(&named).success().says("/endpoint_requirements");
    let unknown = [&show[..], &["--type", "go-specialist.input.schema.json"]].concat();
    env.handoff(&unknown).exits(6).says("has no contract type");
}
