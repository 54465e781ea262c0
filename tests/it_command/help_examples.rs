//! The examples in every command's help, run by a shell as they are printed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use serde_json::{Value, json};
use test_support::contracts::{Format, implementer_error, sample};
use test_support::terminal::Terminal;
use test_support::{Ran, TestEnvironment};

/// An example: the command that it belongs to, and what a shell is given.
struct Example {
    command: String,
    line: String,
}

/// Every example in the help of every command, as it is printed.
fn examples() -> Vec<Example> {
    fn of(command: &clap::Command, path: &str, found: &mut Vec<Example>) {
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        let mut lines = help.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(rest) = line.strip_prefix("  ") else {
                continue;
            };
            let mut example = rest.to_owned();
            while example.ends_with('\\') {
                example += &format!("\n{}", lines.next().unwrap());
            }
            if example.contains("git handoff") || example.starts_with("git ") {
                found.push(Example {
                    command: path.trim().to_owned(),
                    line: example,
                });
            }
        }
        for sub in command.get_subcommands() {
            of(sub, &format!("{path} {}", sub.get_name()), found);
        }
    }
    let mut found = Vec::new();
    // The first round is one script, see below.
    for sub in git_handoff::command().get_subcommands() {
        of(sub, sub.get_name(), &mut found);
    }
    found
}

/// Without the remark in parentheses at its end.
fn without_remark(line: &str) -> &str {
    match line.rfind("  (").or_else(|| line.rfind(" (")) {
        Some(at) if line.ends_with(')') => line[..at].trim_end(),
        _ => line,
    }
}

#[test]
fn no_example_is_wrapped_on_a_narrow_terminal() {
    let wide: Vec<String> = examples()
        .into_iter()
        .flat_map(|example| example.line.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.chars().count() > 78)
        .collect();
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

/// What a shell does before an example, in the words of [`WORDS`], so that it finds
/// what it is about.
fn before(command: &str, line: &str) -> &'static str {
    let has = |text: &str| line.contains(text);
    match command {
        "init" if has("git log") => "git handoff init",
        "init" if has("origin") => "shared",
        "init" | "demo" | "explain" => ":",
        "send" if has("fixer-agent") => {
            "handed 123.2; turn implementer-agent implemented.xml; git handoff claim 123.3 --as reviewer-agent"
        }
        "send" | "check" if has("--to") => {
            "handed 123.1; git handoff claim 123 --as prep-agent; git checkout -q issue-123 || git checkout -qb issue-123"
        }
        "new" | "send" if !has("error.xml") => {
            "handed 123.1; git handoff claim 123 --as prep-agent"
        }
        "send" | "extend" | "release" | "block" | "fail" => "working",
        "complete" => {
            "working; git handoff send error.xml; git handoff claim 123.3 --as orchestrator"
        }
        "answer" if has("=") || has("answers.json") => "blocked --needs port:integer --needs host",
        "answer" => "blocked",
        "retry" if has("--with") => {
            "failed --recoverable; sed s/clean/built/ $S/prepared.xml > corrected.xml"
        }
        "retry" => "failed --recoverable",
        "restore" => "failed --recoverable --snapshot --attach build.log",
        "agents hook" => "handed 123.4; echo '{}' > input.json",
        "reassign" => "asked",
        "check" => "handed 123.4; mkdir handoffs; cp contract.xml handoffs",
        "report" | "archive" => "finished",
        "work" if has("--file") => {
            "handed 123.2; printf '[[role]]\nagent = \"prep-agent\"\ncommand = [\"true\"]\n' > .handoff-work.toml"
        }
        "work" => {
            "handed 123.2; printf '#!/bin/sh\nexec sleep 9\n' > implement.sh; chmod +x implement.sh; \
             mkdir -p $S/programs; cp implement.sh $S/programs/claude"
        }
        "notify" => {
            "blocked; printf '#!/bin/sh\n' > tell.sh; chmod +x tell.sh; mkdir -p $S/programs; \
             cp tell.sh $S/programs/mail; cp tell.sh $S/programs/notify-send"
        }
        "watch" if has("--poll") => "shared; handed 123.4",
        "wait" if has("--poll") => "shared; finished",
        "claim" if has("--take-over") => {
            "handed 123.4; git handoff claim 123.4 --as fixer-agent --worker other"
        }
        "cancel" if has("124") => {
            "handed 123.2; I=124; sent opening.xml; \
             git handoff reject 124 --as prep-agent --reason no"
        }
        "set" => "handed 123.2; I=124; sent opening.xml",
        "resume" if has("--all") => {
            "handed 123.4; git handoff pause --all --as orchestrator --reason no"
        }
        "resume" => "handed 123.4; git handoff pause 123 --as orchestrator --reason no",
        "reject" | "cancel" => "handed 123.2",
        "next" if has("--task") => "tasks environment",
        "next" if has("--apply") => "failed --recoverable",
        "graph" if has("--tasks") => "tasks 123",
        "wait" if has("--remote") => "shared; finished; git push -q origin handoffs",
        "wait" if !has("--inbox") => "finished",
        "reopen" | "gate" => "finished",
        "fetch" if has("--from") => "handed 123.4; git clone -q --bare . ../backup.git",
        "sync" | "fetch" => "shared; handed 123.4",
        "refused" | "refused list" | "refused show" | "refused retry" | "refused drop" => "refused",
        "hooks uninstall" => "handed 123.4; git handoff hooks install",
        "protocol update" => "ours; git handoff protocol add ./our-way; ours_is 9.0.0",
        "protocol" | "protocol check" | "protocol test"
            if has("our-way") && !has("copy") && !has("new") =>
        {
            "ours"
        }
        "document" | "document list" | "document show" | "document set" => "documents",
        "import" if has("old-workflow") => {
            "git handoff init; mkdir -p old-workflow/pending; cp $S/opening.xml old-workflow/pending"
        }
        "import" if has("handoff_log") => "logged",
        "import" => "handed 123.4; exported archive backup; git handoff init",
        "exchange" => "git handoff init --protocol orchestrator-specialist",
        _ => "handed 123.4",
    }
}

/// The shell's words for how far the work is. Issue 123 goes its way; time passes
/// with `later`.
const WORDS: &str = r#"
later() { T=$((T + ${1:-60})); export GIT_AUTHOR_DATE="@$T +0000" GIT_COMMITTER_DATE="@$T +0000"; }
I=123
sent() { later; sed "s/123/$I/g" "$S/$1" | git handoff send -; }
turn() { later; git handoff claim $I --as "$1"; sent "$2"; }
handed() {
  git handoff init
  sent opening.xml
  if [ "$1" != 123.1 ]; then turn prep-agent prepared.xml; fi
  if [ "$1" = 123.4 ]; then turn implementer-agent implemented.xml; turn reviewer-agent review.xml; fi
}
working() { handed 123.2; git handoff claim 123.2 --as implementer-agent; }
blocked() { working; git handoff block 123.2 --as implementer-agent --reason 'which one?' "$@"; }
failed() { working; git handoff fail 123.2 --as implementer-agent --message 'no space' "$@"; }
dead() {
  failed --recoverable; later 86400
  while git handoff retry 123.2 --as orchestrator; do
    later 86400
    git handoff claim 123.2 --as implementer-agent
    git handoff fail 123.2 --as implementer-agent --message again --recoverable
    later 86400
  done
}
finished() {
  git handoff init --evidence off
  for I in 123 124; do
    handed 123.4
    turn fixer-agent fixed.xml; turn reviewer-agent approved.xml
    turn validator-agent merged.xml; turn closer-agent closed.xml
  done
}
TRACE=7b1c9f52-0d3e-4a86-9b14-6f2a5c8e7d10
asked() {
  git handoff init --protocol delegation
  git handoff send "$S/asked.json"
  git handoff claim --next --as validator
  git handoff fail "$TRACE.1" --as validator --message 'no rules'
}
tasks() {
  git handoff init --protocol task-breakdown
  git handoff send "$S/environment.json" --issue "$1"
}
shared() { git init -q --bare ../origin; git remote add origin ../origin; git config handoff.remote origin; }
refused() {
  shared; handed 123.4
  git clone -q ../origin ../other
  (cd ../other; export GIT_HANDOFF_WORKER=other; git handoff init --remote origin; git handoff claim 123.4 --as fixer-agent)
  git handoff claim 123.4 --as fixer-agent --offline || :
  git handoff sync || :
  later
  (cd ../other; export GIT_HANDOFF_WORKER=other; git handoff fail 123.4 --as fixer-agent --message 'no space' --recoverable; git handoff retry 123.4 --as orchestrator)
  git handoff sync || :
}
ours_is() { sed -i "s/\"version\": \".*\"/\"version\": \"$1\"/" our-way/protocol.json; }
ours() {
  git handoff init
  git handoff protocol copy issue-to-pr ./our-way
  sed -i 's/"name": "issue-to-pr"/"name": "our-way"/' our-way/protocol.json
}
documents() {
  git handoff init --protocol orchestrator-specialist
  git handoff document set tech-stack stack.json --as @backend-specialist
}
exported() {
  git handoff export --format "$1" "$2"
  git update-ref -d refs/heads/handoffs; rm -rf .git/handoff
}
logged() {
  tasks environment
  git handoff claim environment.1 --as task-orchestrator
  git handoff fail environment.1 --as task-orchestrator --message 'the disk is full'
  exported log log; mv log/handoff_log.json .
  git handoff init --protocol task-breakdown
}
"#;

/// A repository with the files that examples name, and the programs that they call.
fn prepared() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    let contract = |name: &str| sample(name, Format::Xml, 123);
    for (name, text) in [
        ("opening.xml", contract("issue-manager-to-prep-agent")),
        ("prepared.xml", contract("prep-agent-to-implementer-agent")),
        (
            "implemented.xml",
            contract("implementer-agent-to-reviewer-agent"),
        ),
        ("review.xml", contract("reviewer-agent-to-fixer-agent")),
        ("fixed.xml", contract("fixer-agent-to-reviewer-agent")),
        (
            "approved.xml",
            contract("reviewer-agent-to-validator-agent"),
        ),
        ("merged.xml", contract("validator-agent-to-closer-agent")),
        ("closed.xml", contract("workflow-complete")),
        ("asked.json", asked()),
        ("environment.json", environment()),
        ("issue.json", event("issue")),
    ] {
        env.file(name, text);
    }
    let error = implementer_error(Format::Xml, 123);
    fs::create_dir(repo.join("target")).unwrap();
    for (name, text) in [
        ("contract.xml", contract("prep-agent-to-implementer-agent")),
        ("error.xml", error),
        (
            "answers.json",
            json!({ "port": 8080, "host": "test.example" }).to_string(),
        ),
        (
            "stack.json",
            json!({"framework": "React", "version": "19.1", "layers": {}}).to_string(),
        ),
        (
            "target/junit.xml",
            "<testsuite tests=\"1\"><testcase name=\"a\"/></testsuite>".to_owned(),
        ),
        (
            "lcov.info",
            "SF:a\nDA:1,1\nLF:1\nLH:1\nend_of_record\n".to_owned(),
        ),
        ("build.log", "no space left\n".to_owned()),
        ("event.json", event("pull_request")),
        ("comments.json", "[]".to_owned()),
        ("gate.json", json!({ "format": 1 }).to_string()),
        ("transcript.md", "I tried.\n".to_owned()),
        ("lines", String::new()),
    ] {
        fs::write(repo.join(name), text).unwrap();
    }
    let programs = env.root().join("programs");
    fs::create_dir(&programs).unwrap();
    // What writes contracts, and what a container may lack: a manual's reader, harnesses.
    for (name, text) in [
        ("generate-contract", "#!/bin/sh\ncat \"$S/prepared.xml\"\n"),
        ("man", "#!/bin/sh\nexec cat\n"),
        ("claude", "#!/bin/sh\ntest \"$1 $2\" = 'mcp add'\n"),
        ("codex", "#!/bin/sh\ntest \"$1 $2\" = 'mcp add'\n"),
    ] {
        fs::write(programs.join(name), text).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(programs.join(name), mode).unwrap();
    }
    env
}

/// An event of GitHub about issue 123, or about a pull request for it.
fn event(what: &str) -> String {
    let about = json!({
        "number": 123, "title": "Parcels", "body": "Closes #123", "state": "open", "labels": [],
        "html_url": "https://github.com/octo/parcels/issues/123", "user": { "login": "octocat", "type": "User" },
        "head": { "ref": "issue-123", "sha": "1".repeat(40), "repo": { "full_name": "octo/parcels" } },
        "base": { "ref": "main", "repo": { "full_name": "octo/parcels" } },
    });
    json!({ "action": "opened", what: about, "repository": { "full_name": "octo/parcels" } })
        .to_string()
}

/// Runs lines of a shell that ends at the first that fails.
fn shell(env: &TestEnvironment, lines: &str, seconds: u32) -> Ran {
    let mut command = env.command("timeout");
    let path = std::env::var("PATH").unwrap();
    let binary = std::path::Path::new(test_support::program());
    let programs = env.root().join("programs");
    let folders = [
        programs.to_str().unwrap(),
        binary.parent().unwrap().to_str().unwrap(),
        &path,
    ];
    command
        .env("PATH", folders.join(":"))
        .env("S", env.root())
        .env("T", env.now().to_string())
        .env("GITHUB_OUTPUT", env.root().join("output"))
        .env("GITHUB_STEP_SUMMARY", env.root().join("summary"))
        .env("GITHUB_EVENT_NAME", "issues")
        .env("GITHUB_EVENT_PATH", env.root().join("issue.json"))
        .env("GITHUB_API_URL", "http://localhost:4318")
        .env("GITHUB_REPOSITORY", "octo/parcels")
        .env("GH_ENTERPRISE_TOKEN", "none")
        .env("GIT_HANDOFF_WEBHOOK", "http://localhost:4318/")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
    let seconds = seconds.to_string();
    let script = format!("{WORDS}\n{lines}");
    command.args(["-s", "INT", &seconds, "sh", "-e", "-c", &script]);
    env.run(command, &[lines], None)
}

/// A repository in which these lines were run.
fn ready_for(setup: &str) -> Result<TestEnvironment, String> {
    let env = prepared();
    let ran = shell(&env, setup, 60);
    match ran.status {
        0 => Ok(env),
        _ => Err(format!("before: {setup}\n{}", ran.shown)),
    }
}

/// Runs one example in a copy of what is ready for it, and says what went wrong.
fn tried(example: &Example, ready: &TestEnvironment) -> Result<(), String> {
    let Example { command, line } = example;
    let env = TestEnvironment::new();
    let copied = Command::new("cp")
        .args(["-a", &format!("{}/.", ready.root().display())])
        .arg(env.root())
        .status();
    assert!(copied.unwrap().success());
    env.wait(3_600);
    // What only a run can name.
    let mut line = without_remark(line)
        .replace("4f2c81d90b", "$(git rev-parse handoffs~1)")
        .replace("https://hooks.example", "http://localhost:4318");
    if line.contains("7.3-1a2b3c4d5e") {
        let kept = env.data(&["refused"]);
        line = line.replace(
            "7.3-1a2b3c4d5e",
            kept["rejected"][0]["name"].as_str().unwrap(),
        );
    }
    if command == "board" {
        return on_terminal(&env, &line);
    }
    // These go on until they are interrupted.
    let endless = match command.as_str() {
        "serve" | "mcp" => true,
        "watch" | "notify" => !line.contains("--once"),
        "exchange" => line.contains("--watch"),
        "work" => !line.contains("--list") && !line.contains("--prune"),
        _ => false,
    };
    let ran = shell(&env, &line, if endless { 2 } else { 60 });
    let well: &[i32] = match command.as_str() {
        // Both answers are ones.
        "gate" | "alerts" | "agents doctor" => &[0, 1],
        "approve" if line.contains("gate") => &[0, 1],
        // There may be no gh, or nobody is logged in.
        "github setup" => &[0, 1, 9],
        "agents" if line.contains("doctor") => &[0, 1],
        // No commit has that id.
        "verify" if line.contains("--quarantine") => &[6],
        // Nothing there ended so long ago.
        "archive" => &[0, 6],
        _ if endless => &[0, 124, 130],
        _ => &[0],
    };
    if well.contains(&ran.status) {
        Ok(())
    } else {
        Err(format!("{command}: {line}\n{}", ran.shown))
    }
}

/// Runs one on a terminal, and closes it once it shows the ledger.
fn on_terminal(env: &TestEnvironment, line: &str) -> Result<(), String> {
    let words: Vec<&str> = line.split(' ').skip(2).collect();
    let live = Terminal::new(env, 80).start(&words);
    live.shows("ledger handoffs at ");
    live.types("q");
    let left = live.left();
    let is_well = left.status.success() && left.changed.is_empty();
    is_well.then_some(()).ok_or_else(|| line.to_owned())
}

/// Does this for each, four at a time.
fn at_once<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

#[test]
fn every_example_works_as_it_is_printed() {
    // A collector, where the examples have it.
    let collector = tiny_http::Server::http("127.0.0.1:4318").unwrap();
    let examples = examples();
    assert!(examples.len() > 90, "{} examples", examples.len());
    // Many need the same: it is made once.
    let setups = examples.iter().map(|e| before(&e.command, &e.line));
    let setups: BTreeSet<&str> = setups.collect();
    let setups: Vec<&str> = setups.into_iter().collect();
    let (ready, faults) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    at_once(&setups, |setup| match ready_for(setup) {
        Ok(env) => drop(ready.lock().unwrap().insert(*setup, env)),
        Err(fault) => faults.lock().unwrap().push(fault),
    });
    let ready = ready.into_inner().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for request in collector.incoming_requests() {
                let answer = tiny_http::Response::from_string(answer(request.url()));
                let json = "Content-Type: application/json".parse::<tiny_http::Header>();
                request.respond(answer.with_header(json.unwrap())).unwrap();
            }
        });
        at_once(&examples, |example| {
            let ready = ready.get(before(&example.command, &example.line));
            if let Some(Err(fault)) = ready.map(|ready| tried(example, ready)) {
                faults.lock().unwrap().push(fault);
            }
        });
        collector.unblock();
    });
    let faults = faults.into_inner().unwrap();
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        examples.len(),
        faults.join("\n")
    );
}

/// What the collector answers, and GitHub's API in its place.
fn answer(path: &str) -> String {
    if path.contains("/pulls/") {
        let payload: Value = serde_json::from_str(&event("pull_request")).unwrap();
        payload["pull_request"].to_string()
    } else if path.contains("/pulls?") || path.contains("/statuses?") {
        "[]".to_owned()
    } else {
        "{}".to_owned()
    }
}

/// An agent of `delegation` asks another.
fn asked() -> String {
    let path = "tests/samples/delegation/valid/request.json";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    value["traceId"] = "7b1c9f52-0d3e-4a86-9b14-6f2a5c8e7d10".into();
    value["handoffTo"] = "validator".into();
    value.to_string()
}

/// A task of `task-breakdown` that is too hard for one piece.
fn environment() -> String {
    json!({
        "handoff_type": "environment_to_planning",
        "timestamp": "2026-03-02T06:15:00Z",
        "from_agent": "environment-architect",
        "to_agent": "task-orchestrator",
        "data": {
            "task_ids": ["12"],
            "difficulties": [8.0],
            "template_used": "greenhouse",
            "assumptions_made": ["Valves answer within a second"],
            "confidence_score": 0.7,
        },
    })
    .to_string()
}
