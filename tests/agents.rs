//! `agents`: what harnesses read, put in, run, examined and taken out.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use support::TestEnvironment;
use support::contracts::opening;

const NAMES: [&str; 5] = ["claude-code", "codex", "copilot", "cursor", "agents-md"];

/// Every file of the worktree with its bytes.
fn files(env: &TestEnvironment) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, root: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if path.is_dir() && name != ".git" {
                found.insert(format!("{name}/"), Vec::new());
                walk(&path, root, found);
            } else if path.is_file() {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&env.repo(), &env.repo(), &mut found);
    found
}

fn write(env: &TestEnvironment, path: &str, text: &str) {
    let path = env.repo().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn agents(env: &TestEnvironment, verb: &str, more: &[&str]) -> support::Ran {
    let args = [&["agents", verb][..], &NAMES, more].concat();
    env.handoff(&args)
}

#[test]
fn what_is_taken_out_leaves_every_byte_as_it_was() {
    for (guide, settings, hooks) in [
        (None, None, None),
        (
            Some("# Ours\n\nText.\n"),
            Some("{\n  \"permissions\": {\n    \"allow\": [\"Bash(ls)\"]\n  }\n}\n"),
            Some("{\"version\":1,\"hooks\":{\"stop\":[{\"command\":\"theirs\"}]}}"),
        ),
        (
            Some("no line break \u{1f600}"),
            Some(
                "{\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\t\t\t{ \"hooks\": [] }\r\n\t\t]\r\n\t}\r\n}",
            ),
            Some("{}"),
        ),
        (
            Some("a\r\n\r\n```\n<!-- other -->\n"),
            Some("{ \"a\" : \"}{][\\\"\" , \"hooks\":{} }"),
            Some("{\n}"),
        ),
    ] {
        let env = TestEnvironment::with_ledger();
        for (path, text) in [
            ("AGENTS.md", guide),
            ("CLAUDE.md", guide),
            (".claude/settings.json", settings),
            (".codex/hooks.json", settings),
            (".cursor/hooks.json", hooks),
            (".mcp.json", hooks),
        ] {
            if let Some(text) = text {
                write(&env, path, text);
            }
        }
        let before = files(&env);
        let dry = agents(&env, "install", &["--mcp", "--dry-run"]).success();
        assert!(dry.stdout.contains("+## Handoffs"), "{}", dry.shown);
        assert_eq!(files(&env), before);
        agents(&env, "install", &["--mcp", "--as", "prep-agent"]).success();
        let with = files(&env);
        assert!(with.len() > before.len());
        for (path, bytes) in &before {
            if !path.ends_with(".json") {
                assert!(with[path].starts_with(bytes), "{path}");
            }
        }
        // Twice is once.
        let again = agents(&env, "install", &["--mcp", "--as", "prep-agent"]).success();
        assert!(
            again
                .stdout
                .lines()
                .all(|l| l.ends_with("is as it should be")),
            "{}",
            again.shown
        );
        assert_eq!(files(&env), with);
        agents(&env, "uninstall", &["--dry-run"]).success();
        assert_eq!(files(&env), with);
        agents(&env, "uninstall", &[]).success();
        assert_eq!(files(&env), before);
        agents(&env, "uninstall", &[]).success();
        assert_eq!(files(&env), before);
    }
}

#[test]
fn a_file_that_several_read_keeps_its_block_until_the_last_is_gone() {
    let env = TestEnvironment::with_ledger();
    write(&env, "AGENTS.md", "# Ours\n");
    // Some link one of these files to the other.
    symlink("AGENTS.md", env.repo().join("CLAUDE.md")).unwrap();
    let before = files(&env);
    agents(&env, "install", &[]).success();
    let text = fs::read_to_string(env.repo().join("AGENTS.md")).unwrap();
    assert_eq!(text.matches("## Handoffs").count(), 1, "{text}");
    for name in NAMES {
        let text = fs::read_to_string(env.repo().join("AGENTS.md")).unwrap();
        let has = name != "copilot" && text.contains("## Handoffs");
        assert!(has || name == "copilot", "{name}: {text}");
        env.handoff(&["agents", "uninstall", name]).success();
    }
    assert_eq!(files(&env), before);
    assert!(env.repo().join("CLAUDE.md").is_symlink());
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_changes() {
    let env = TestEnvironment::with_ledger();
    write(&env, "CLAUDE.md", "<!-- >>> git-handoff >>> -->\nno end\n");
    write(&env, ".claude/settings.json", "{ // a comment\n}\n");
    write(&env, ".claude/skills/git-handoff/SKILL.md", "mine\n");
    write(&env, "AGENTS.md", "x\n");
    let guide = env.repo().join("AGENTS.md");
    fs::set_permissions(&guide, fs::Permissions::from_mode(0o444)).unwrap();
    let outside = env.root().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, env.repo().join(".cursor")).unwrap();
    let before = files(&env);
    let refused = agents(&env, "install", &["--json"]).exits(9).json();
    let findings = refused["error"]["findings"].as_array().unwrap();
    let codes: Vec<&str> = findings
        .iter()
        .map(|f| f["code"].as_str().unwrap())
        .collect();
    for code in [
        "agents.marker",
        "agents.config",
        "agents.skill",
        "agents.read_only",
        "agents.link",
    ] {
        assert!(codes.contains(&code), "{code}: {codes:?}");
    }
    assert_eq!(refused["error"]["code"], "agents_refused");
    assert_eq!(files(&env), before);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

/// The commands that a harness's configuration has for an event.
fn commands(env: &TestEnvironment, path: &str, event: &str) -> Vec<String> {
    fn find(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match value {
                        Value::String(text)
                            if ["command", "bash"].contains(&key.as_str())
                                && text.contains("agents hook") =>
                        {
                            found.push(text.clone())
                        }
                        other => find(other, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| find(item, found)),
            _ => {}
        }
    }
    let config: Value = serde_json::from_slice(&fs::read(env.repo().join(path)).unwrap()).unwrap();
    let mut found = Vec::new();
    find(&config["hooks"][event], &mut found);
    found
}

/// What a hook's command prints when the harness runs it with this input.
fn answer(env: &TestEnvironment, command: &str, input: &Value) -> Option<Value> {
    let mut shell = env.command("sh");
    shell.args(["-c", command]).stdin(Stdio::piped());
    let ran = env
        .run(shell, &["hook"], Some(input.to_string().as_bytes()))
        .success();
    assert_eq!(ran.stderr, "", "{}", ran.shown);
    (!ran.stdout.is_empty()).then(|| serde_json::from_str(&ran.stdout).unwrap())
}

#[test]
fn hooks_as_they_are_written_answer_in_the_form_that_the_harness_reads() {
    let env = TestEnvironment::with_ledger();
    agents(&env, "install", &["--as", "prep-agent"]).success();
    for (issue, (path, start, stop, told, kept)) in (87..).zip([
        (
            ".claude/settings.json",
            "SessionStart",
            "Stop",
            "/hookSpecificOutput/additionalContext",
            "/reason",
        ),
        (
            ".codex/hooks.json",
            "SessionStart",
            "Stop",
            "/hookSpecificOutput/additionalContext",
            "/reason",
        ),
        (
            ".github/hooks/git-handoff.json",
            "sessionStart",
            "agentStop",
            "/additionalContext",
            "/reason",
        ),
        (
            ".cursor/hooks.json",
            "sessionStart",
            "stop",
            "/additional_context",
            "/followup_message",
        ),
    ]) {
        env.send(opening(issue)).success();
        let [start] = &commands(&env, path, start)[..] else {
            panic!("{path}")
        };
        let [stop] = &commands(&env, path, stop)[..] else {
            panic!("{path}")
        };
        let context = answer(&env, start, &json!({ "source": "startup", "cwd": "/" })).unwrap();
        let page = env
            .handoff(&["prime", "--as", "prep-agent"])
            .success()
            .stdout;
        assert_eq!(context.pointer(told), Some(&json!(page)), "{path}");
        // Nothing is held: it may stop.
        let input = json!({ "stop_hook_active": false, "loop_count": 0, "status": "completed" });
        assert_eq!(answer(&env, stop, &input), None, "{path}");
        let id = env.data(&["claim", "--next", "--as", "prep-agent"])["id"].clone();
        let id = id.as_str().unwrap();
        let go_on = answer(&env, stop, &input).unwrap();
        let said = go_on.pointer(kept).and_then(Value::as_str).unwrap();
        assert!(said.contains(&format!("still hold {id}")), "{said}");
        if kept == "/reason" {
            assert_eq!(go_on["decision"], "block");
        }
        // It is kept once, and not for ever; and whoever was made to stop may.
        for input in [
            json!({ "stop_hook_active": true }),
            json!({ "loop_count": 1 }),
            json!({ "status": "aborted" }),
        ] {
            assert_eq!(answer(&env, stop, &input), None, "{path}: {input}");
        }
        // A lease that ran out holds nothing.
        env.wait_minutes(60 * 24 * 90);
        assert_eq!(answer(&env, stop, &input), None, "{path}");
    }
}

#[test]
fn a_session_is_never_broken() {
    let env = TestEnvironment::with_repository();
    let hook = |name: &str, event: &str, input: &str| {
        let ran = env
            .handoff_with(&["agents", "hook", name, event], input)
            .success();
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.as_str()),
            ("", ""),
            "{}",
            ran.shown
        );
    };
    for event in ["session-start", "stop"] {
        // No ledger, no agent, no JSON, no such harness.
        hook("claude-code", event, "{}");
        hook("codex", event, "not JSON");
        hook("cursor", event, "");
        hook("unheard-of", event, "{}");
        hook("agents-md", event, "{}");
    }
    env.handoff(&["agents", "install", "claude-code"]).success();
    for command in commands(&env, ".claude/settings.json", "Stop") {
        let mut shell = env.command("/bin/sh");
        shell.args(["-c", &command]).env("PATH", "/nowhere");
        let ran = env.run(shell, &["hook"], Some(b"{}")).success();
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    }
}

#[test]
fn the_doctor_finds_each_fault() {
    let env = TestEnvironment::with_repository();
    let codes = |agent: &[&str]| -> Vec<String> {
        let ran = env.handoff(&[&["agents", "doctor", "claude-code", "--json"], agent].concat());
        let data = ran.json()["data"].clone();
        let found = data["harnesses"][0]["findings"].as_array().unwrap().clone();
        let codes: Vec<String> = found
            .iter()
            .map(|f| f["code"].as_str().unwrap().to_owned())
            .collect();
        for finding in &found {
            assert!(finding["fix"].is_string(), "{finding}");
        }
        let errors = found.iter().filter(|f| f["severity"] == "error").count();
        assert_eq!(ran.status, i32::from(errors > 0), "{}", ran.shown);
        codes
    };
    assert_eq!(
        codes(&[]),
        [
            "agents.no_ledger",
            "agents.block",
            "agents.skill",
            "agents.entry"
        ]
    );
    env.handoff(&["init"]).success();
    env.handoff(&["agents", "install", "claude-code"]).success();
    assert_eq!(codes(&[]), ["agents.no_agent"]);
    assert_eq!(codes(&["--as", "nobody"]), ["agents.no_agent"]);
    assert_eq!(codes(&["--as", "fixer-agent"]), Vec::<String>::new());
    env.handoff(&["agents", "install", "claude-code", "--as", "prep-agent"])
        .success();
    assert_eq!(codes(&[]), Vec::<String>::new());
    let path = env.repo().join(".claude/settings.json");
    let config = fs::read_to_string(&path).unwrap();
    for (changed, code) in [
        (
            config.replacen("\"timeout\": 20", "\"timeout\": 1", 1),
            "agents.entry",
        ),
        (
            config.replacen("{\n", "{\n  \"disableAllHooks\": true,\n", 1),
            "agents.disabled",
        ),
        (format!("{config}//"), "agents.config"),
    ] {
        assert_ne!(changed, config);
        fs::write(&path, changed).unwrap();
        assert_eq!(codes(&[]), [code]);
    }
    fs::write(&path, &config).unwrap();
    let guide = env.repo().join("CLAUDE.md");
    let text = fs::read_to_string(&guide).unwrap();
    for (changed, code) in [
        (
            text.replace("<!-- <<< git-handoff <<< -->\n", ""),
            "agents.marker",
        ),
        (text.replace("## Handoffs", "## Old"), "agents.block"),
    ] {
        fs::write(&guide, changed).unwrap();
        assert_eq!(codes(&[]), [code]);
    }
    fs::write(&guide, &text).unwrap();
    fs::write(env.repo().join(".gitignore"), ".claude/\n").unwrap();
    assert_eq!(codes(&[]), ["agents.ignored", "agents.ignored"]);
    fs::remove_file(env.repo().join(".gitignore")).unwrap();
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    let program = other.join("git-handoff");
    fs::write(&program, "#!/bin/sh\necho git-handoff 0.0.1\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let git = std::env::var("PATH").unwrap();
    for (path, code) in [
        (format!("{}:{git}", other.display()), "agents.version"),
        (git, "agents.program"),
    ] {
        let args = ["agents", "doctor", "claude-code"];
        let mut command = env.program(&args);
        command.env("PATH", path);
        let ran = env.run(command, &args, None).exits(1);
        assert!(ran.stdout.contains(code), "{}", ran.shown);
    }
}

#[test]
fn two_at_once_leave_what_one_leaves() {
    let one = TestEnvironment::with_ledger();
    let env = TestEnvironment::with_ledger();
    for env in [&one, &env] {
        write(env, "AGENTS.md", "# Ours\n");
        write(env, ".claude/settings.json", "{\n  \"model\": \"x\"\n}\n");
    }
    let before = files(&env);
    agents(&one, "install", &[]).success();
    for _ in 0..4 {
        let running: Vec<_> = (0..4)
            .map(|_| {
                let args = [&["agents", "install"][..], &NAMES].concat();
                let mut command = env.program(&args);
                command.stdout(Stdio::null()).stderr(Stdio::null());
                command.spawn().unwrap()
            })
            .collect();
        for mut child in running {
            let code = child.wait().unwrap().code().unwrap();
            // Whoever came second leaves the file to the first, and says so.
            assert!([0, 5].contains(&code), "{code}");
        }
        agents(&env, "install", &[]).success();
        assert_eq!(files(&env), files(&one));
        agents(&env, "uninstall", &[]).success();
        assert_eq!(files(&env), before);
    }
}
