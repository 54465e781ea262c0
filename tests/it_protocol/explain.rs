//! What a code means, and that every refusal says what to do next.

use insta::assert_snapshot;
use serde_json::Value;
use test_support::TestEnvironment;
use test_support::contracts::{opening, prepared};
use test_support::team::{BUILT_IN, with_protocol};

#[test]
fn a_code_is_explained_with_a_case_and_a_cure() {
    let env = TestEnvironment::new();
    let explain = |code: &str| env.handoff_in(env.root(), &["explain", code]);
    assert_snapshot!(explain("lease_lost").success().shown, @"
    $ git handoff explain lease_lost
    lease_lost  (error, exit 5)
      cause    the sender's lease ran out, its worker was replaced on record (`claim --take-over`), or another claim holds the handoff
      example  an agent claimed for 45 minutes and sent after an hour; by then another agent had claimed 123.2
      cure     nothing was recorded, so keep your work; then retry or claim as the hint says
    ");
    assert_snapshot!(explain("import_refused").success().shown, @"
    $ git handoff explain import_refused
    import_refused  (error, exit 3 or 4 or 5)
      cause    `import`: items were refused. The first of them decides the exit code: 3 for a contract or an unreadable item, 4 for the protocol, 5 for a different step in the ledger
      example  `git handoff import old-workflow` when one of forty contracts has no receiver
      cure     fix what `refused` lists and import again; after exit 5, import into a new ledger
    ");
    assert_snapshot!(explain("field.undecided").success().shown, @"
    $ git handoff explain field.undecided
    field.undecided  (finding in contracts)
      cause    the value lists all choices; a warning in the examples that the protocol names
      example  `<type>feature, bug, enhancement, refactor or chore</type>`
      cure     pick one
    ");
    assert_snapshot!(explain("8").success().shown, @"
    $ git handoff explain 8
    8  (exit code)
      cause    it is recorded in this clone, but not on the remote
      example  `git handoff send contract.xml` without a network
      cure     `git handoff sync` once the remote can be reached; nothing is lost until then
    ");
    assert_snapshot!(explain("task.o").success().shown, @"
    $ git handoff explain task.o
    Findings in contracts
      task.orphan  a task has no known parent, or no place in the plan
      task.order   a task is listed before one that it depends on
    ");
    assert_snapshot!(explain("filed.missing").exits(6).shown, @r#"
    $ git handoff explain filed.missing
    --- stderr
    error: no error, finding or exit has the code "filed.missing"
    hint: the closest code: `git handoff explain file.missing`
    --- exit 6
    "#);
    assert_snapshot!(explain("\u{1b}[31m").exits(6).shown, @r#"
    $ git handoff explain [31m
    --- stderr
    error: no error, finding or exit has the code "\u{1b}[31m"
    hint: `git handoff explain` lists every code
    --- exit 6
    "#);
}

/// The command lines between backticks in a hint.
fn commands(hint: &str) -> Vec<&str> {
    let parts = hint.split('`').skip(1).step_by(2);
    parts.filter(|part| part.starts_with("git ")).collect()
}

#[test]
fn every_refusal_names_a_command_that_there_is_and_a_code_that_is_explained() {
    let env = TestEnvironment::with_repository();
    let refused = |args: &[&str]| {
        let mut all = args.to_vec();
        all.push("--json");
        let ran = env.handoff(&all);
        let document = ran.json();
        let error = &document["error"];
        let code = error["code"]
            .as_str()
            .unwrap_or_else(|| panic!("{args:?} is not refused"));
        let explained = env.data(&["explain", code])["codes"][0].clone();
        assert_eq!(explained["code"], code, "{args:?}");
        let exits = explained["exit"].as_array().unwrap();
        assert!(exits.contains(&Value::from(ran.status)), "{args:?}: {code}");
        let hint = error["hint"].as_str().unwrap();
        let named = commands(hint);
        assert!(!named.is_empty(), "{args:?}: {hint}");
        for command in named.iter().filter(|c| c.starts_with("git handoff ")) {
            let words = command.split(' ').skip(2).map(|word| match word {
                "ID" => "1.1",
                "CODE" => "usage",
                word => word,
            });
            let words: Vec<&str> = ["git-handoff"].into_iter().chain(words).collect();
            if words.last() == Some(&"-h") {
                continue;
            }
            let parsed = git_handoff::command().try_get_matches_from(&words);
            assert!(
                parsed.is_ok(),
                "{args:?}: {command}: {}",
                parsed.unwrap_err()
            );
        }
        for finding in error["findings"].as_array().unwrap() {
            let code = finding["code"].as_str().unwrap();
            let known = env.data(&["explain", code]);
            assert_eq!(known["codes"][0]["code"], code);
        }
    };
    refused(&["status"]);
    refused(&["inbox"]);
    refused(&["nonsense"]);
    env.handoff(&["init"]).success();
    let contract = env.file("contract.xml", opening(87));
    let empty = env.file("empty.xml", "");
    let second = env.file("second.xml", prepared(87));
    for args in [
        &["claim"][..],
        &["claim", "87..1", "--as", "prep-agent"],
        &["claim", "--next", "--as", "prep-agent"],
        &["claim", "--next", "--as", "nobody"],
        &["inbox"],
        &["inbox", "--as", "no body"],
        &["show", "87.1"],
        &["status", "87"],
        &["send", "no-file.xml"],
        &["send", &empty],
        &["send", &second],
        &["send", &contract, "--as", "fixer-agent"],
        &["send", &contract, "--allow-secret", "no-such-rule"],
        &["check", &empty],
        &[
            "new",
            "--issue",
            "87",
            "--from",
            "prep-agent",
            "--to",
            "closer-agent",
        ],
        &["gate", "--issue", "87"],
        &["protocol", "show", "none"],
        &["protocol", "check", "./none"],
        &["document", "show", "none"],
        &["restore", "87.1"],
        #[cfg(feature = "report")]
        &["graph", "87"],
        &["sync"],
        &["fetch"],
        &["refused", "show", "x"],
        &["watch", "--from", "abcdef0", "--once"],
        #[cfg(feature = "exchange")]
        &["import", "none"],
        #[cfg(feature = "exchange")]
        &["export", "--format", "files", "."],
        &["-C", "none", "status"],
        &["--branch", "main", "status"],
        &["init", "--protocol", "delegation"],
        #[cfg(feature = "report")]
        &["metrics", "--since", "soon"],
        &["explain", "none"],
        &["wait", "87.1"],
        &["reopen", "87", "--as", "closer-agent", "--reason", "why"],
    ] {
        refused(args);
    }
    env.handoff(&["send", &contract]).success();
    for args in [
        &["send", &second][..],
        &["complete", "87.1", "--as", "prep-agent"],
        &["fail", "87.1", "--as", "fixer-agent", "--message", "no"],
        &["answer", "87.1", "main", "--as", "orchestrator"],
        &["retry", "87.1", "--as", "orchestrator"],
        &[
            "reassign",
            "87.1",
            "--as",
            "orchestrator",
            "--to",
            "closer-agent",
        ],
        &["reopen", "87", "--as", "closer-agent", "--reason", "why"],
        &["claim", "87.1", "--as", "fixer-agent"],
        &["claim", "87.1", "--as", "prep-agent", "--lease", "99999h"],
        &["gate", "--issue", "87"],
        &["gate", "--issue", "87", "--require", "none"],
        #[cfg(feature = "report")]
        &["graph", "--tasks", "87"],
        &["next", "87", "--apply", "--as", "orchestrator"],
        &["restore", "87.1"],
        &["wait", "87.1", "--timeout", "0s"],
    ] {
        refused(args);
    }
    env.claim("87.1", "prep-agent").success();
    let other = ["claim", "87.1", "--as", "prep-agent", "--worker", "other"];
    refused(&other);
    refused(&["extend", "87.1", "--as", "fixer-agent"]);
    env.handoff(&[
        "fail",
        "87.1",
        "--as",
        "prep-agent",
        "--message",
        "no space",
    ])
    .success();
    refused(&["send", &second]);
    refused(&["restore", "87.1", "--attempt", "2"]);
}

/// "`SCHEMA_VALIDATION_FAILED` | Input doesn't match schema | Fix input, retry": the failure codes of the
/// protocols in force, and of the built-in ones where there is no ledger.
#[test]
fn the_codes_of_failures_are_explained() {
    let env = TestEnvironment::new();
    let explain = |code: &str| env.handoff_in(env.root(), &["explain", code]);
    assert_snapshot!(explain("SCHEMA_VALIDATION_FAILED").success().shown, @"
    $ git handoff explain SCHEMA_VALIDATION_FAILED
    SCHEMA_VALIDATION_FAILED  (failure in orchestrator-specialist)
      cause    The input is not what its schema asks for
      cure     Correct the input, then retry
    ");
    assert_snapshot!(explain("TIMEOUT").success().shown, @"
    $ git handoff explain TIMEOUT
    TIMEOUT  (failure in any protocol)
      cause    the lease ran out, or the time that the contract gives
      cure     find out whether the agent still runs; then `git handoff next`
    TIMEOUT  (failure in orchestrator-specialist)
      cause    The time ran out before the specialist was done
      cure     Give it more time, then retry
    ");
    for protocol in BUILT_IN {
        let env = with_protocol(protocol);
        let shown = env.data(&["protocol", "show", protocol])["definition"].take();
        let codes = shown["words"]["errors"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        for (code, _) in codes {
            let known = env.data(&["explain", &code])["failures"].take();
            let is_own = |one: &Value| one["code"] == code && one["protocol"] == protocol;
            assert!(known.as_array().unwrap().iter().any(is_own), "{code}");
        }
    }
}

/// The codes of runs, those that a type of contracts gives by itself, and those that an agent chose.
#[test]
fn every_code_that_a_failure_may_have_is_explained() {
    let env = TestEnvironment::with_ledger();
    let explained = |code: &str| env.data(&["explain", code])["failures"].take();
    for run in handoff::protocol::RunFailure::ALL {
        let known = explained(run.as_str());
        assert_eq!(known[0]["code"], run.as_str(), "{known:#}");
    }
    for code in ["FAILED", "TIMEOUT", "NOT_ACKNOWLEDGED", "ROLE_VIOLATION"] {
        assert_eq!(explained(code)[0]["code"], code);
    }
    let delegation = with_protocol("delegation");
    let known = delegation.data(&["explain", "NOT_RESOLVED"])["failures"].take();
    assert_eq!(known[0]["protocol"], "delegation");
    env.send(opening(87)).success();
    env.handoff(&["claim", "87.1", "--as", "prep-agent"])
        .success();
    env.handoff(&["explain", "DiskFull"]).exits(6);
    let fail = [
        "fail",
        "87.1",
        "--as",
        "prep-agent",
        "--code",
        "DiskFull",
        "--message",
        "no space",
    ];
    env.handoff(&fail).success();
    let known = explained("DiskFull");
    assert_eq!(known[0]["cause"], "its agent's own word, of 87.1: no space");
}
