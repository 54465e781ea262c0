//! The trail says who, when, what, why and how long: subjects, trailers, `git handoff log`, and the
//! lines of git that the documents show.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::contracts::{Format, implementer_error, opening, prepared, sample, value};
use test_support::terminal::Terminal;
use test_support::time::{added, attempt, denied, done, subjects};
use test_support::workflow::completed;
use test_support::{TestEnvironment, stored};

/// The message of the newest commit.
fn message(env: &TestEnvironment) -> String {
    let text = env.git(&env.repo(), &["log", "-1", "--format=%B", "handoffs"]);
    env.filtered(text.trim_end())
}

/// An issue that meets every event that one can meet.
fn eventful() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.pace(0);
    env.send(opening(87)).success();
    for (seconds, line) in [
        (90, "claim 87.1 --as prep-agent"),
        (60, "extend 87.1 --as prep-agent --progress 'tests pass'"),
        (60, "extend 87.1 --as prep-agent"),
        (
            300,
            "fail 87.1 --as prep-agent --code BuildError --message 'linker not found' --recoverable",
        ),
        (30, "retry 87.1 --as orchestrator"),
        (20, "claim 87.1 --as prep-agent --lease 24h"),
        (
            60,
            "block 87.1 --as prep-agent --reason 'which port?' --needs port:number",
        ),
        (60, "answer 87.1 port=8080 --as orchestrator"),
        (60, "claim 87.1 --as prep-agent"),
        (60, "block 87.1 --as prep-agent --reason 'which region?'"),
        (60, "answer 87.1 'the northern one' --as orchestrator"),
        (60, "claim 87.1 --as prep-agent --lease 10m"),
        (900, "reap"),
        (60, "retry 87.1 --as orchestrator --reason 'it may be back'"),
        (60, "claim 87.1 --as prep-agent"),
    ] {
        env.wait(seconds);
        done(&env, line);
    }
    env.wait(60);
    env.send(prepared(87)).success();
    for line in [
        "reject 87.2 --as implementer-agent --reason 'the branch is not there'",
        "annotate 87 --as prep-agent --note 'the branch has another name'",
    ] {
        env.wait(60);
        done(&env, line);
    }
    env
}

#[test]
fn subjects_name_the_event() {
    let env = eventful();
    let shown = subjects(&env, 18).join("\n");
    assert_snapshot!(shown, @"
    prep-agent: 87.1 claimed, until 13:05
    prep-agent: 87.1 working, until 13:06: tests pass
    prep-agent: 87.1 working, until 13:07
    prep-agent: 87.1 failed: BuildError: linker not found
    orchestrator: 87.1 retried, attempt 2
    prep-agent: 87.1 claimed, until 2026-03-03 09:13
    prep-agent: 87.1 blocked: which port?
    orchestrator: 87.1 answered: port=8080
    prep-agent: 87.1 claimed, until 13:16
    prep-agent: 87.1 blocked: which region?
    orchestrator: 87.1 answered: the northern one
    prep-agent: 87.1 claimed, until 09:29
    prep-agent: 87.1 timed out: prep-agent was not done in time: its lease ran out at 2026-03-02T09:29:20Z
    orchestrator: 87.1 retried, attempt 3: it may be back
    prep-agent: 87.1 claimed, until 13:36
    prep-agent: 87.2 sent to implementer-agent: Export delivery history as CSV
    implementer-agent: 87.2 rejected: the branch is not there
    prep-agent: 87 annotated: the branch has another name
    ");
    env.assert_sound();
}

#[test]
fn a_failure_by_contract_is_what_the_step_is_about() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    env.send(prepared(87)).success();
    env.claim("87.2", "implementer-agent").success();
    env.send(implementer_error(Format::Json, 87)).success();
    assert_snapshot!(message(&env), @"
    87.2 failed: RegistryUnreachable: The package registry does not answer

    Export delivery history as CSV

    Handoff-Id: 87.3
    Issue: 87
    From: implementer-agent
    To: orchestrator
    Transition: 87.2 in_progress..failed
    Transition: 87.3 none..pending
    Contract-Type: error
    Contract-Sha256: [sha256]
    Protocol: issue-to-pr
    Event: fail
    Request: send
    By: implementer-agent
    Worker: repo
    At: 2026-03-02T09:09:00Z
    Reason: The package registry does not answer
    Failure-Code: RegistryUnreachable
    Attempt: 1
    Held-Seconds: 60
    ");
    env.assert_sound();

    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "orchestrator-specialist"])
        .success();
    let of = |name: &str| {
        let members = [
            ("/handoff_id", json!("loans")),
            ("/source/agent_id", json!("@frontend-specialist")),
            ("/target/agent_id", json!("@react-specialist")),
        ];
        value("orchestrator-specialist", name, &members).to_string()
    };
    env.send(of("request")).success();
    env.claim("loans", "@react-specialist").success();
    env.send(of("failure")).success();
    assert_snapshot!(message(&env), @"
    loans.1 failed: SCHEMA_VALIDATION_FAILED: The renewal has a field of an unknown type

    react-components

    Handoff-Id: loans.2
    Issue: loans
    From: @react-specialist
    To: @frontend-specialist
    Transition: loans.1 in_progress..failed
    Transition: loans.2 none..completed
    Contract-Type: failure
    Contract-Sha256: [sha256]
    Protocol: orchestrator-specialist
    Event: fail
    Request: send
    By: @react-specialist
    Worker: repo
    At: 2026-03-02T09:07:00Z
    Reason: The renewal has a field of an unknown type
    Failure-Code: SCHEMA_VALIDATION_FAILED
    Attempt: 1
    Held-Seconds: 60
    ");
    env.assert_sound();
}

#[test]
fn trailers_tell_reason_and_time_as_git_reads_them() {
    let env = completed(|_| Format::Json);
    let parsed = |rev: &str| {
        let message = env.git(&env.repo(), &["log", "-1", "--format=%B", rev]);
        let file = env.file("message", message);
        let read = env.git(&env.repo(), &["interpret-trailers", "--parse", &file]);
        env.filtered(&read)
    };
    let claim = env.git(
        &env.repo(),
        &[
            "log",
            "-1",
            "--format=%H",
            "--grep=^Contract-Type: reviewer-agent-to-fixer-agent$",
            "handoffs",
        ],
    );
    assert_snapshot!(parsed(claim.trim()), @"
    Handoff-Id: 87.5
    Issue: 87
    From: reviewer-agent
    To: fixer-agent
    Transition: 87.5 pending..in_progress
    Contract-Type: reviewer-agent-to-fixer-agent
    Contract-Sha256: [sha256]
    Protocol: issue-to-pr
    Event: claim
    By: fixer-agent
    Worker: repo
    At: 2026-03-02T09:17:00Z
    Attempt: 1
    Waited-Seconds: 60
    Pull-Request: 91
    ");
    // What was claimed.
    assert_snapshot!(parsed(&format!("{}~1", claim.trim())), @"
    Handoff-Id: 87.5
    Issue: 87
    From: reviewer-agent
    To: fixer-agent
    Transition: 87.4 in_progress..completed
    Transition: 87.5 none..pending
    Contract-Type: reviewer-agent-to-fixer-agent
    Contract-Sha256: [sha256]
    Protocol: issue-to-pr
    Event: send
    By: reviewer-agent
    Worker: repo
    At: 2026-03-02T09:16:00Z
    Held-Seconds: 60
    Findings: critical=1, important=1, suggestion=5
    Pull-Request: 91
    ");
}

#[test]
fn a_long_reason_is_cut_in_the_subject_and_whole_in_its_trailer() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let reason = format!("Issue: 9\n\n\u{1b}[31m{}", "wörter ".repeat(40));
    let args = ["reject", "87.1", "--as", "prep-agent", "--reason", &reason];
    env.handoff(&args).success();
    let message = message(&env);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0].chars().count(), 100, "{message}");
    assert!(lines[0].starts_with("87.1 rejected: Issue: 9 [31mwörter wörter"));
    assert!(lines[0].ends_with('…'));
    assert_eq!(lines[2], "Export delivery history as CSV");
    let whole = handoff::model::trailers(&message)
        .into_iter()
        .find_map(|(name, value)| (name == "Reason").then_some(value));
    let whole = whole.map(handoff::model::trailers::unfolded);
    assert_eq!(whole, Some(reason), "{message}");
    // As git reads it, the text adds no trailer.
    let format = "--format=%(trailers:key=Issue)";
    let issues = env.git(&env.repo(), &["log", "-1", format, "handoffs"]);
    assert_eq!(issues.trim(), "Issue: 87");
    env.assert_sound();
}

/// The lines of a document's code blocks that begin with this.
fn documented(start: &str) -> Vec<String> {
    let text = fs::read_to_string(test_support::project().join("docs/observability.md")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with(start));
    lines.map(str::to_owned).collect()
}

/// Runs a line of a document in a shell.
fn shell(env: &TestEnvironment, line: &str) -> String {
    let output = env.command("sh").args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    env.filtered(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_documented_line_of_git_tells_the_whole_story() {
    let env = eventful();
    let lines = documented("git log --format=");
    assert_eq!(lines.len(), 1, "{lines:?}");
    // Older gits write the zone as an offset.
    let told = shell(&env, &lines[0]).replace("+00:00 |", "Z |");
    assert_snapshot!(told, @"
    prep-agent | 2026-03-02T09:39:20Z | 87 annotated: the branch has another name | the branch has another name | 
    implementer-agent | 2026-03-02T09:38:20Z | 87.2 rejected: the branch is not there | the branch is not there | 
    prep-agent | 2026-03-02T09:37:20Z | 87.2 sent to implementer-agent: Export delivery history as CSV |  | Held-Seconds: 60
    prep-agent | 2026-03-02T09:36:20Z | 87.1 claimed, until 13:36 |  | Waited-Seconds: 60
    orchestrator | 2026-03-02T09:35:20Z | 87.1 retried, attempt 3: it may be back | it may be back | 
    prep-agent | 2026-03-02T09:34:20Z | 87.1 timed out: prep-agent was not done in time: its lease ran out at 2026-03-02T09:29:20Z | prep-agent was not done in time: its lease ran out at 2026-03-02T09:29:20Z | Held-Seconds: 600
    prep-agent | 2026-03-02T09:19:20Z | 87.1 claimed, until 09:29 |  | Waited-Seconds: 60
    orchestrator | 2026-03-02T09:18:20Z | 87.1 answered: the northern one | the northern one | 
    prep-agent | 2026-03-02T09:17:20Z | 87.1 blocked: which region? | which region? | Held-Seconds: 60
    prep-agent | 2026-03-02T09:16:20Z | 87.1 claimed, until 13:16 |  | Waited-Seconds: 60
    orchestrator | 2026-03-02T09:15:20Z | 87.1 answered: port=8080 |  | 
    prep-agent | 2026-03-02T09:14:20Z | 87.1 blocked: which port? | which port? | Held-Seconds: 60
    prep-agent | 2026-03-02T09:13:20Z | 87.1 claimed, until 2026-03-03 09:13 |  | Waited-Seconds: 20
    orchestrator | 2026-03-02T09:13:00Z | 87.1 retried, attempt 2 |  | 
    prep-agent | 2026-03-02T09:12:30Z | 87.1 failed: BuildError: linker not found | linker not found | Held-Seconds: 420
    prep-agent | 2026-03-02T09:07:30Z | 87.1 working, until 13:07 |  | 
    prep-agent | 2026-03-02T09:06:30Z | 87.1 working, until 13:06: tests pass | tests pass | 
    prep-agent | 2026-03-02T09:05:30Z | 87.1 claimed, until 13:05 |  | Waited-Seconds: 90
    issue-manager | 2026-03-02T09:04:00Z | 87.1 sent to prep-agent: Dispatchers ask for their delivery history as a file |  |
    ");
}

#[test]
fn git_finds_an_error_a_title_and_a_pull_request() {
    let env = eventful();
    let other = sample("issue-manager-to-prep-agent", Format::Json, 88)
        .replace("Export delivery history as CSV", "JWT login");
    env.send(other).success();
    let lines = documented("git log --oneline --grep=");
    let found = |part: &str| {
        let line = lines.iter().find(|line| line.contains(part)).unwrap();
        shell(&env, &line.replace("--oneline", "--format=%s"))
    };
    assert_eq!(
        found("BuildError"),
        "87.1 failed: BuildError: linker not found\n"
    );
    assert_eq!(found("JWT login").lines().count(), 1);
    assert_eq!(found("Pull-Request"), "");
    let env = completed(|_| Format::Json);
    let line = lines.iter().find(|line| line.contains("Pull-Request"));
    let found = shell(&env, line.unwrap());
    assert!(found.lines().count() > 10, "{found}");
    assert!(found.contains(" 87.4 sent to reviewer-agent: "), "{found}");
}

#[test]
fn the_log_is_the_same_in_a_pipe_and_on_a_terminal() {
    let env = eventful();
    env.wait_minutes(5);
    let shown = env.handoff(&["log", "87"]).success().stdout;
    assert_snapshot!(env.filtered(&shown), @"
    [commit]  2026-03-02 09:39:20Z  prep-agent                        87 annotated: the branch has another name
    [commit]  2026-03-02 09:38:20Z  implementer-agent                 87.2 rejected: the branch is not there
    [commit]  2026-03-02 09:37:20Z  prep-agent         held 1m        87.2 sent to implementer-agent: Export delivery history as CSV
    [commit]  2026-03-02 09:36:20Z  prep-agent         waited 1m      87.1 claimed, until 13:36
    [commit]  2026-03-02 09:35:20Z  orchestrator                      87.1 retried, attempt 3: it may be back
    [commit]  2026-03-02 09:34:20Z  prep-agent         held 10m       87.1 timed out: prep-agent was not done in time: its lease ran out at 2026-03-02T09:29:20Z
    [commit]  2026-03-02 09:19:20Z  prep-agent         waited 1m      87.1 claimed, until 09:29
    [commit]  2026-03-02 09:18:20Z  orchestrator                      87.1 answered: the northern one
    [commit]  2026-03-02 09:17:20Z  prep-agent         held 1m        87.1 blocked: which region?
    [commit]  2026-03-02 09:16:20Z  prep-agent         waited 1m      87.1 claimed, until 13:16
    [commit]  2026-03-02 09:15:20Z  orchestrator                      87.1 answered: port=8080
    [commit]  2026-03-02 09:14:20Z  prep-agent         held 1m        87.1 blocked: which port?
    [commit]  2026-03-02 09:13:20Z  prep-agent         waited 20s     87.1 claimed, until 2026-03-03 09:13
    [commit]  2026-03-02 09:13:00Z  orchestrator                      87.1 retried, attempt 2
    [commit]  2026-03-02 09:12:30Z  prep-agent         held 7m        87.1 failed: BuildError: linker not found
    [commit]  2026-03-02 09:07:30Z  prep-agent                        87.1 working, until 13:07
    [commit]  2026-03-02 09:06:30Z  prep-agent                        87.1 working, until 13:06: tests pass
    [commit]  2026-03-02 09:05:30Z  prep-agent         waited 1m 30s  87.1 claimed, until 13:05
    [commit]  2026-03-02 09:04:00Z  issue-manager                     87.1 sent to prep-agent: Dispatchers ask for their delivery history as a file
    ");
    let seen = Terminal::new(&env, 130).handoff(&["log", "87", "-n", "4", "--no-pager"]);
    assert_snapshot!(env.filtered(&seen.screen), @"
    [commit]  5 minutes ago  prep-agent                    87 annotated: the branch has another name
    [commit]  6 minutes ago  implementer-agent             87.2 rejected: the branch is not there
    [commit]  7 minutes ago  prep-agent         held 1m    87.2 sent to implementer-agent: Export delivery history as CSV
    [commit]  8 minutes ago  prep-agent         waited 1m  87.1 claimed, until 13:36
    4 shown; the rest: git handoff log 87 -n 4 --no-pager --after [commit]
    the same with git: git log -n 4 handoffs -- issues/87/00/87
    ");
    let shown = env
        .handoff(&["log", "87", "--oneline", "-n", "2"])
        .success();
    assert_snapshot!(env.filtered(&shown.stdout), @"
    [commit]  87 annotated: the branch has another name
    [commit]  87.2 rejected: the branch is not there
    2 shown; the rest: git handoff log 87 --oneline -n 2 --after [commit]
    ");
}

/// The subjects that `git handoff log` finds, and the git command that it names.
fn logged(env: &TestEnvironment, line: &str) -> (Vec<String>, String) {
    let ran = done(env, &format!("log {line} --json"));
    let data = ran.json()["data"].take();
    let steps = data["steps"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let subjects = steps.map(|step| text(&step["subject"])).collect();
    (subjects, text(&data["git"]))
}

#[test]
fn the_log_is_filtered_as_git_would() {
    let env = eventful();
    let opened = env.git(
        &env.repo(),
        &["log", "--format=%aI", "--reverse", "handoffs"],
    );
    let opened = opened.lines().nth(1).unwrap().to_owned();
    for (line, count) in [
        (String::new(), 20),
        ("87".to_owned(), 19),
        ("87 -n 3".to_owned(), 3),
        ("--author orchestrator".to_owned(), 4),
        ("--author 'Robin Doe'".to_owned(), 1),
        ("87 --event fail".to_owned(), 1),
        ("--event fail,expire,reject".to_owned(), 3),
        ("87 --event claim --author prep-agent -n 2".to_owned(), 2),
        ("--event reopen".to_owned(), 0),
        ("--author closer-agent".to_owned(), 0),
        (format!("87 --since {opened}"), 19),
        (format!("87 --until {opened}"), 0),
        ("--since 1s".to_owned(), 1),
        ("87 --since 10m --event annotate,send".to_owned(), 2),
    ] {
        let (found, command) = logged(&env, &line);
        assert_eq!(found.len(), count, "{line}: {found:#?}");
        if !line.contains("until") {
            let command = command.replace("git log", "git log --format=%s");
            let shown = shell(&env, &command);
            assert_eq!(shown.lines().collect::<Vec<_>>(), found, "{command}");
        }
    }
    let step = done(&env, "log 87 --event fail --json").json()["data"]["steps"][0].take();
    let named = ["event", "reason", "failure_code", "attempt", "held_seconds"];
    let values: Vec<&Value> = named.iter().map(|name| &step[name]).collect();
    let reason = json!("linker not found");
    assert_eq!(
        values,
        [
            &json!("fail"),
            &reason,
            &json!("BuildError"),
            &json!(1),
            &json!(420)
        ]
    );
}

#[test]
fn a_filter_that_is_invalid_is_refused() {
    let env = eventful();
    denied(&env, "log --author nobody", 4, "unknown_agent");
    let late = "log --since 2026-03-04 --until 2026-03-03";
    denied(&env, late, 2, "usage").says("--since must be earlier");
    for line in [
        "log --event claim,win",
        "log --event exhaust",
        "log --since soon",
    ] {
        let ran = attempt(&env, line).exits(2);
        assert!(ran.stdout.is_empty(), "{}", ran.shown);
    }
    attempt(&env, "log --event win").exits(2).says("annotate");
}

#[test]
fn limits_end_the_walk_before_older_history() {
    let env = TestEnvironment::with_ledger();
    for issue in 1..=3 {
        env.send(opening(issue)).success();
    }
    // Older history is damaged: whoever reads it fails.
    let old = env.git(&env.repo(), &["rev-parse", "handoffs~2"]);
    let (folder, file) = old.trim().split_at(2);
    let path = env.repo().join(".git/objects").join(folder).join(file);
    fs::remove_file(path).unwrap();
    for line in [
        "log -n 1",
        "log 3",
        "log --since 2026-03-02T09:06:30Z",
        "log 3 --event send -n 1",
    ] {
        let (found, _) = logged(&env, line.strip_prefix("log ").unwrap());
        assert_eq!(found.len(), 1, "{line}");
    }
    assert_ne!(attempt(&env, "log").status, 0);
}

#[test]
fn progress_stays_when_the_lease_is_over_and_is_told_once() {
    let env = TestEnvironment::with_ledger();
    env.pace(0);
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent");
    for (seconds, steps, line) in [
        (60, 1, "extend 87.1 --as prep-agent --progress 'half done'"),
        (0, 0, "extend 87.1 --as prep-agent --progress 'half done'"),
        // It extends the lease, and says nothing new.
        (60, 1, "extend 87.1 --as prep-agent --progress 'half done'"),
        (60, 1, "extend 87.1 --as prep-agent --progress 'all done'"),
    ] {
        env.wait(seconds);
        let (_, added) = added(&env, || done(&env, line));
        assert_eq!(added.len(), steps, "{line}");
    }
    done(&env, "complete 87.1 --as prep-agent");
    let record = stored(&env.data(&["show", "87.1"]));
    let said: Vec<&Value> = record["progress"].as_array().unwrap().iter().collect();
    assert_eq!(said.len(), 2);
    assert_eq!(
        (&said[0]["text"], &said[1]["text"]),
        (&json!("half done"), &json!("all done"))
    );
    assert_eq!(record["lease"], Value::Null);
    assert_snapshot!(env.handoff(&["show", "87.1"]).success().stdout, @"
    87.1 issue-manager → prep-agent: completed
      summary   Dispatchers ask for their delivery history as a file
      type      issue-manager-to-prep-agent (xml)
      sha256    d0e2e1eba115df4e5ba383b04f40a0d16df9332f775ae66980129842ac64cb6f
      priority  medium
      2026-03-02 09:04:00Z send by issue-manager → pending
      2026-03-02 09:04:00Z claim by prep-agent → in_progress
          progress, 2026-03-02 09:05:00Z: half done
          progress, 2026-03-02 09:07:00Z: all done
      2026-03-02 09:07:00Z complete by prep-agent → completed

    ```xml
    <handoff>
      <from>issue-manager</from>
      <to>prep-agent</to>
      <issue_url>https://github.com/quayside/parcel-desk/issues/87</issue_url>
      <issue_number>87</issue_number>
      <issue_title>Export delivery history as CSV</issue_title>
      <type>enhancement</type>
      <priority>medium</priority>
      <summary>Dispatchers ask for their delivery history as a file</summary>
      <requirements>
        <requirement>The history page offers a download as CSV</requirement>
        <requirement>Columns follow the order on screen</requirement>
        <requirement>An export of 50,000 rows takes less than ten seconds</requirement>
      </requirements>
    </handoff>
    ```
    ");
    env.assert_sound();
}
