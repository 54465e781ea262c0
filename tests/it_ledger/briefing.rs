//! What an agent is given with its work: what is required, what is open, what was answered, and why
//! work came back.

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample, valid, value};
use test_support::team::{Folder, run, sent, with_protocol};
use test_support::terminal::Terminal;
use test_support::workflow::workflow;
use unicode_width::UnicodeWidthStr;

const REQUIREMENT: &str = "Columns follow the order on screen";

/// Issue 7, whose prep-agent is blocked for want of two values.
fn blocked() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    run(&env, "claim 7.1 --as prep-agent");
    let needs = [
        "--needs",
        "port:integer=the port of the test server",
        "--needs",
        "host",
    ];
    let mut args = vec!["block", "7.1", "--as", "prep-agent"];
    args.extend(["--reason", "two values are missing"]);
    args.extend(needs);
    env.handoff(&args).success();
    env
}

/// The part of a claim's output before the contract.
fn before_the_contract(env: &TestEnvironment, line: &str) -> String {
    let claimed = run(env, line).stdout;
    let (before, _) = claimed.split_once("\n```xml\n").unwrap();
    before.to_owned()
}

#[test]
fn a_question_stands_where_its_answer_is_asked_for() {
    let env = blocked();
    insta::assert_snapshot!(run(&env, "next 7").shown, @"
    $ git handoff next 7
    ask: 7.1 is blocked: the agent cannot go on without an answer
      prep-agent: two values are missing
          |   port (integer): the port of the test server
          |   host
    --- stderr
    next: git handoff answer 7.1 port=VALUE host=VALUE --as orchestrator
    ");
    let page = run(&env, "prime --as orchestrator").stdout;
    let asked: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("  a"))
        .collect();
    insta::assert_snapshot!(asked.join("\n"), @r#"
    asks "port" ("integer"): "the port of the test server"
    asks "host"
    "#);
    assert!(
        page.contains(
            "\nTo answer: git handoff answer 7.1 port=VALUE host=VALUE --as orchestrator\n"
        ),
        "{page}"
    );
    let data = env.data(&["prime", "--as", "orchestrator"]);
    let first = &data["to_decide"]["first"][0];
    assert_eq!(first["reason"], "two values are missing");
    assert_eq!(first["questions"][0]["key"], "port");
    assert_eq!(env.data(&["next", "7"])["reason"], "two values are missing");
}

#[test]
fn an_answer_is_part_of_what_later_agents_get() {
    let env = blocked();
    run(&env, "answer 7.1 port=8080 host=quay --as orchestrator");
    let new = "new --issue 7 --from prep-agent --to implementer-agent";
    run(&env, new).says("<port>8080</port>");
    let claimed = before_the_contract(&env, "claim 7.1 --as prep-agent");
    assert!(
        claimed.contains("    - port: 8080 (the port of the test server)\n"),
        "{claimed}"
    );
    assert!(
        claimed.contains("for 7.1, which asked: two values are missing\n"),
        "{claimed}"
    );
    // It has the parts of any claim, with the answer at the top of the work.
    assert!(claimed.contains("\n  your part: "), "{claimed}");
    assert!(
        claimed.contains("\nthe work\n  answered by orchestrator"),
        "{claimed}"
    );
    assert!(!claimed.contains("\n  sha256 "), "{claimed}");
    run(&env, "prime --as prep-agent")
        .says("  answer to \"two values are missing\": \"port=8080\"; \"host=quay\"\n");
    run(&env, "context 7").says("    - host: quay\n");

    // What a contract states later is newer than the answer.
    env.send(prepared(7)).success();
    let answers = env.data(&["context", "7"])["record"]["answers"].take();
    assert_eq!(answers[0]["values"], json!({"port": 8080, "host": "quay"}));
    assert_eq!(answers[0]["outdated"], json!(["port"]));
    let stated = sample("prep-agent-to-implementer-agent", Format::Json, 7);
    let stated: Value = serde_json::from_str(&stated).unwrap();
    run(&env, new).says(&format!("<port>{}</port>", stated["port"]));
    let claimed = before_the_contract(&env, "claim 7.2 --as implementer-agent");
    assert!(claimed.contains("    - host: quay\n"), "{claimed}");
    assert!(
        claimed.contains("; a contract has stated it since\n"),
        "{claimed}"
    );
    env.assert_sound();
}

#[test]
fn a_text_answers_a_single_question_and_a_decision_is_passed_on() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    run(&env, "claim 7.1 --as prep-agent");
    run(
        &env,
        "block 7.1 --as prep-agent --reason where? --needs workspace_type",
    );
    env.handoff(&["answer", "7.1", "in-place", "--as", "orchestrator"])
        .success();
    let new = "new --issue 7 --from prep-agent --to implementer-agent";
    run(&env, new).says("<workspace_type>in-place</workspace_type>");
    run(&env, "claim 7.1 --as prep-agent");
    let fail = "fail 7.1 --as prep-agent --code Offline --message unreachable --recoverable";
    run(&env, fail);
    run(&env, "next 7 --apply --as orchestrator");
    env.wait_minutes(600);
    let claimed = before_the_contract(&env, "claim 7.1 --as prep-agent");
    assert!(
        claimed.contains("  orchestrator decided on 7.1: retry: 7.1 is failed"),
        "{claimed}"
    );
    assert!(
        claimed.contains("\n7.1, attempt 1 failed: Offline: unreachable\n"),
        "{claimed}"
    );
    run(&env, "prime --as prep-agent").says("  decided: \"orchestrator decided on 7.1: retry:");
    env.assert_sound();
}

#[test]
fn a_claim_has_the_requirements_the_open_findings_and_the_branch() {
    let env = TestEnvironment::with_ledger();
    let mut seen = Vec::new();
    for step in workflow(|_| Format::Xml) {
        match step {
            test_support::workflow::Step::Send(contract) => env.send(contract).success(),
            test_support::workflow::Step::Run(args) => {
                let ran = env.handoff(args).success();
                if args[0] == "claim" {
                    assert!(ran.stdout.contains(REQUIREMENT), "{}", ran.shown);
                    let (before, _) = ran.stdout.split_once("\n```xml\n").unwrap();
                    let findings = before.split_once("  findings:\n");
                    let first = findings.and_then(|(_, rest)| rest.lines().next());
                    let first = first.unwrap_or("    none").trim_start();
                    seen.push(format!("{}: {first}", args.last().unwrap()));
                }
                ran
            }
        };
    }
    // Findings are open from the review that has them to the review that approves.
    insta::assert_snapshot!(seen.join("\n"), @"
    prep-agent: none
    implementer-agent: none
    orchestrator: none
    implementer-agent: none
    reviewer-agent: none
    fixer-agent: - F1 (critical, src/export/csv.py:58): A cell that begins with = is run as a formula by spreadsheets; open
    reviewer-agent: - F1 (critical, src/export/csv.py:58): A cell that begins with = is run as a formula by spreadsheets; answered by 87.6: Cells that could be formulas are prefixed with a quote
    validator-agent: none
    fixer-agent: - F3 (test): tests/test_export.py::test_empty_range returned 500; open
    reviewer-agent: - F3 (test): tests/test_export.py::test_empty_range returned 500; answered by 87.9
    validator-agent: none
    closer-agent: none
    ");
}

#[test]
fn a_claim_says_whether_the_branch_is_here() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    run(&env, "claim 87.1 --as prep-agent");
    env.send(prepared(87)).success();
    let branch = env.data(&["show", "87.2"]);
    assert_eq!(branch["record"]["code"], Value::Null);
    let facts = env.data(&["status", "87"])["known"].take();
    let branch = facts["branch"].as_str().unwrap();
    let page = before_the_contract(&env, "claim 87.2 --as implementer-agent");
    assert!(
        page.contains(&format!(
            "\n  branch: {branch} is not in this clone (`git fetch`)\n"
        )),
        "{page}"
    );
    env.git(&env.repo(), &["branch", branch]);
    let head = env.git(&env.repo(), &["rev-parse", branch]);
    run(&env, "prime --as implementer-agent").says(&format!("  branch: {branch} at [commit]\n"));
    let work = env.data(&["prime", "--as", "implementer-agent"])["work"].take();
    assert_eq!(work["facts"]["requirements"][1], REQUIREMENT);
    assert_eq!(work["branch"]["name"], branch);
    assert_eq!(work["branch"]["commit"], head.trim());
}

#[test]
fn a_branch_that_only_lacks_commits_here_is_said_to_be_behind() {
    let env = TestEnvironment::with_ledger();
    let (repo, name) = (env.repo(), "enhancement/87-csv-export");
    let git = |args: &[&str]| env.git(&repo, args).trim().to_owned();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    git(&["switch", "-q", "-c", name]);
    git(&["commit", "-q", "--allow-empty", "-m", "Work"]);
    env.send(prepared(87)).success();
    let sent = git(&["rev-parse", "--short=12", name]);
    git(&["reset", "-q", "--hard", "HEAD~1"]);
    let page = env.handoff(&["claim", "87.2", "--as", "implementer-agent"]);
    assert!(
        page.success()
            .says("[commit] here, behind [commit], where it was when this was sent (`git switch ")
            .stdout
            .contains("and `git merge --ff-only ")
    );
    git(&["merge", "-q", "--ff-only", &sent]);
    run(&env, "prime --as implementer-agent").says(&format!("  branch: {name} at [commit]\n"));
}

#[test]
fn a_page_has_the_question_the_title_what_was_checked_and_no_work_that_is_here() {
    let env = TestEnvironment::with_repository();
    run(&env, "init --protocol review");
    let open = "--to coder --as maintainer --set summary=Lines --set findings.0.text=Wish";
    run(&env, &format!("send --issue 5 {open}"));
    run(&env, "claim 5.1 --as coder");
    run(&env, "block 5.1 --as coder --reason Which?");
    run(&env, "answer 5.1 comma --as maintainer");
    run(&env, "claim 5.1 --as coder");
    let answered = "  answer to \"Which?\": \"comma\"\n";
    run(&env, "prime --as coder").says(answered);
    env.git(&env.repo(), &["switch", "-q", "-c", "b"]);
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Work"],
    );
    let work = "--to reviewer --as coder --set summary=Done --set branch=b";
    let answer = "--set findings.0.text=did --set findings.0.finding=F1";
    run(&env, &format!("send --issue 5 {work} {answer}"));
    run(&env, "claim 5.2 --as reviewer");
    run(&env, "prime --as reviewer").says("  statements checked: \"branch, commits\"\n");
    let fault = "--set summary=Ends --set findings.0.text=Lost";
    run(
        &env,
        &format!("send --issue 5 --to coder --as reviewer {fault}"),
    );
    run(&env, "claim 5.3 --as coder");
    run(&env, "prime --as coder").says(": \"Lines\", \"Ends\"\n");
    // One file, though it is staged, too.
    env.file("repo/half.txt", "half\n");
    env.git(&env.repo(), &["add", "half.txt"]);
    run(
        &env,
        "fail 5.3 --as coder --message lost --recoverable --snapshot",
    )
    .says("with 1 file of 5 bytes");
    run(&env, "retry 5.3 --as maintainer --reason again");
    run(&env, "claim 5.3 --as coder").says("unfinished work: 1 file, 0 deleted, 1 staged");
    run(&env, "prime --as coder").says("; what it left: `git handoff restore 5.3 ");
    run(&env, "restore 5.3 --worktree ../tree");
    let worker = test_support::worker_of(&env.repo());
    let tree = env.root().join("tree");
    let prime = ["prime", "--as", "coder", "--worker", &worker];
    let page = env.handoff_in(&tree, &prime).success().stdout;
    assert!(page.contains("; what it left: restored here\n"), "{page}");
    assert!(!page.contains("git handoff restore"), "{page}");
}

#[test]
fn every_protocol_says_what_its_work_needs() {
    let first = |protocol: &str, file: &str| valid(protocol, file);
    let table = [
        (
            "issue-to-pr",
            first("issue-to-pr", "issue-manager-to-prep-agent.xml"),
            "prep-agent",
        ),
        (
            "delegation",
            first("delegation", "request.json"),
            "research_agent",
        ),
        (
            "directive",
            first("directive", "handoff-blocked.json"),
            "MetaGPT",
        ),
        (
            "orchestrator-specialist",
            first("orchestrator-specialist", "request.json"),
            "@react-specialist",
        ),
        (
            "task-breakdown",
            first("task-breakdown", "environment-to-planning.json"),
            "task-orchestrator",
        ),
    ];
    let mut told = String::new();
    for (protocol, contract, agent) in table {
        let env = with_protocol(protocol);
        env.pace(1);
        sent(&env, &contract);
        let claimed = run(&env, &format!("claim --next --as {agent}")).stdout;
        // What the contract states is not repeated.
        let work = claimed.split_once("\nthe work\n").map(|(_, work)| work);
        let work = work.and_then(|work| work.split("\n\n").next());
        let work = work.unwrap_or("  (the contract)");
        told += &format!("{protocol}\n{work}\n");
        // The same for a session that begins with this work.
        run(&env, &format!("prime --as {agent}")).says(" needs:\n");
    }
    insta::assert_snapshot!(told, @"
    issue-to-pr
      (the contract)
    delegation
      (the contract)
    directive
      missing inputs:
        - required: Whether beekeepers work offline; reason: Decides where counts are kept; blocking: true
    orchestrator-specialist
      (the contract)
    task-breakdown
      task 011: Environment ready
    ");
}

#[test]
fn a_retry_is_told_what_the_answer_found_wrong() {
    let env = with_protocol("orchestrator-specialist");
    sent(&env, valid("orchestrator-specialist", "request.json"));
    let claim = "claim --next --as @react-specialist";
    run(&env, claim);
    let ids = [("/handoff_id", json!("loan-list-21"))];
    let mut failure = value("orchestrator-specialist", "failure", &ids);
    failure["source"]["agent_id"] = "@frontend-specialist".into();
    failure["target"]["agent_id"] = "@react-specialist".into();
    sent(&env, failure.to_string());
    run(
        &env,
        "retry loan-list-21.1 --as @frontend-specialist --reason again",
    );
    env.wait(40);
    let work = env.handoff(&["claim", "--next", "--as", "@react-specialist", "--json"]);
    let work = work.success().json()["data"]["work"].take();
    assert_eq!(work["facts"]["findings"], failure["validation"]["errors"]);
    assert_eq!(
        work["facts"]["recovery_actions"],
        failure["recovery_actions"]
    );
}

#[test]
fn a_reason_is_shown_wherever_its_state_is() {
    for (end, state) in [
        ("reject 7.1 --as prep-agent --reason", "rejected"),
        ("cancel 7.1 --as issue-manager --reason", "cancelled"),
        ("fail 7.1 --as prep-agent --message", "failed"),
        ("block 7.1 --as prep-agent --reason", "blocked"),
    ] {
        let env = TestEnvironment::with_ledger();
        env.send(opening(7)).success();
        if state != "rejected" {
            run(&env, "claim 7.1 --as prep-agent");
        }
        let mut args: Vec<&str> = end.split(' ').collect();
        args.push("the quay is closed");
        env.handoff(&args).success();
        for view in ["show 7.1", "status 7", "list", "next 7"] {
            let ran = run(&env, view).says("the quay is closed");
            assert!(ran.stdout.contains(state), "{}", ran.shown);
        }
    }
}

#[test]
fn what_was_turned_down_later_in_an_issue_says_why() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    run(&env, "claim 7.1 --as prep-agent");
    env.send(prepared(7)).success();
    let args = ["reject", "7.2", "--as", "implementer-agent", "--reason"];
    env.handoff(&[&args[..], &["no such branch"]].concat())
        .success();
    run(&env, "next 7").says("prep-agent with 7.2: rejected: no such branch\n");
    // Whoever works on its successor is told, until another one was taken.
    let again = |packages: &str| env.send(prepared(7).replace("212 packages", packages));
    again("213 packages").success();
    let claimed = before_the_contract(&env, "claim 7.3 --as implementer-agent");
    let told = "\n  implementer-agent rejected 7.2: no such branch\n";
    assert!(claimed.contains(told), "{claimed}");
    run(&env, "prime --as implementer-agent")
        .says("  rejected before: \"implementer-agent rejected 7.2: no such branch\"\n");
}

#[test]
fn a_blocked_handoff_is_up_to_the_person_who_stands_in_for_the_orchestrator() {
    let env = blocked();
    env.handoff(&["claim", "7.1", "--as", "prep-agent"])
        .exits(4)
        .says("hint: `git handoff answer 7.1 port=VALUE host=VALUE --as orchestrator` first\n");
    let answer = "next: git handoff answer 7.1 port=VALUE host=VALUE --as maintainer\n";
    run(&env, "inbox --as maintainer").says(answer);
    run(&env, "wait --inbox --as maintainer --timeout 1s").says(answer);
    run(&env, "--as maintainer").says("; 1 thing needs you\n");
}

/// Every line of these commands is at most 80 columns wide.
#[track_caller]
fn assert_fits(env: &TestEnvironment, lines: &[&str]) {
    for line in lines {
        let words: Vec<&str> = line.split(' ').chain(["--no-pager"]).collect();
        let shown = Terminal::new(env, 80).with("NO_COLOR", "1");
        for row in shown.handoff(&words).raw.lines() {
            // A command is never cut: it is to be copied.
            let is_command = row.trim_start().starts_with("next: ");
            assert!(is_command || row.width() <= 80, "{}: {row}", row.width());
        }
    }
}

#[test]
fn a_row_shows_the_title_the_attempt_and_the_age_in_80_columns() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    run(&env, "claim 7.1 --as prep-agent");
    env.file("repo/half.txt", "half\n");
    let fail = ["fail", "7.1", "--as", "prep-agent", "--message"];
    let rest = [
        "the registry is\nout of reach",
        "--recoverable",
        "--snapshot",
    ];
    env.handoff(&[&fail[..], &rest[..]].concat()).success();
    let wide = opening(8).replace("Export delivery history as CSV", &"漢字の題名".repeat(30));
    env.send(wide).success();
    env.wait_minutes(60 * 50);
    assert_fits(
        &env,
        &[
            "status",
            "list",
            "inbox --as prep-agent",
            "inbox --as orchestrator",
        ],
    );
    insta::assert_snapshot!(run(&env, "list").shown, @"
    $ git handoff list
    7.1  failed   issue-manager → prep-agent  medium  2 days ago  Export delivery history as CSV, attempt 1, has kept work: the registry is out of reach
    8.1  pending  issue-manager → prep-agent  medium  2 days ago  漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名漢字の題名
    ");
    run(&env, "retry 7.1 --as orchestrator --reason again");
    run(&env, "list --state pending")
        .says("Export delivery history as CSV, attempt 2, has kept work\n");
    let row = env.data(&["list"])["handoffs"][0].take();
    assert_eq!(row["title"], "Export delivery history as CSV");
}

#[test]
fn long_names_do_not_break_a_row() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::new(&env, "long");
    let [from, to] = ["sender", "taker"].map(|name| format!("{name}-{}", "n".repeat(50)));
    let schema = json!({"type": "object", "required": ["key", "from", "to", "note"], "properties": {
        "key": {"description": "Key", "type": "string"}, "from": {"description": "Sender", "const": from},
        "to": {"description": "Receiver", "const": to}, "note": {"description": "Note", "type": "string"}}});
    let template =
        json!({"key": "{{key: its key}}", "from": from, "to": to, "note": "{{fill: a note}}"});
    folder.write("schemas/note.schema.json", schema.to_string());
    folder.write("templates/note.json", template.to_string());
    let definition = json!({
        "format": 1, "name": "long", "version": "1.0.0", "title": "Long names", "formats": ["json"],
        "fields": {"issue": "/key", "from": "/from", "to": "/to", "summary": "/note"},
        "agents": [{"id": from, "role": "Sends", "kind": "specialist"}, {"id": to, "role": "Takes", "kind": "specialist"}],
        "contracts": [{"type": "note", "title": "A note", "root": "note", "schema": "schemas/note.schema.json",
            "template": "templates/note.json"}],
        "routes": [{"from": from, "to": to, "contracts": ["note"], "opens": true}],
    });
    folder.write("protocol.json", definition.to_string());
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    let key = "k".repeat(64);
    let contract = json!({"key": key, "from": from, "to": to, "note": "a\tlong note, ".repeat(20)});
    sent(&env, contract.to_string());
    env.wait_minutes(60 * 24 * 3);
    assert_fits(&env, &["status", "list", &format!("inbox --as {to}")]);
    run(&env, "list").says("a long note, a long note");
    run(&env, "list").says(&format!("{key}.1"));
}
