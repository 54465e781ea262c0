//! `agents`: what harnesses read, put in, run, examined and taken out.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::files::script;

const NAMES: [&str; 12] = [
    "claude-code",
    "codex",
    "copilot",
    "cursor",
    "gemini",
    "qwen",
    "opencode",
    "goose",
    "amp",
    "windsurf",
    "zed",
    "agents-md",
];

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
    test_support::files::write(&env.repo().join(path), text);
}

fn agents(env: &TestEnvironment, verb: &str, more: &[&str]) -> test_support::Ran {
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
            ("GEMINI.md", guide),
            (".github/copilot-instructions.md", guide),
            (".qwen/settings.json", settings),
            (".claude/settings.json", settings),
            (".codex/hooks.json", settings),
            (".cursor/hooks.json", hooks),
            (".mcp.json", hooks),
            (".vscode/mcp.json", settings),
            (".gemini/settings.json", settings),
            ("opencode.json", settings),
            (".amp/settings.json", hooks),
            (".zed/settings.json", hooks),
            (
                ".codex/config.toml",
                guide.and(Some("model = \"x\" # ours")),
            ),
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
            again.stdout.lines().all(|l| l.ends_with("is up to date")),
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
        let has_own = name == "gemini";
        assert!(has_own || text.contains("## Handoffs"), "{name}: {text}");
        env.handoff(&["agents", "uninstall", name]).success();
    }
    assert_eq!(files(&env), before);
    assert!(env.repo().join("CLAUDE.md").is_symlink());
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_changes() {
    let env = TestEnvironment::with_ledger();
    write(&env, "GEMINI.md", "<!-- >>> git-handoff >>> -->\nno end\n");
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
        (
            ".gemini/settings.json",
            "SessionStart",
            "AfterAgent",
            "/hookSpecificOutput/additionalContext",
            "/reason",
        ),
        (
            ".qwen/settings.json",
            "SessionStart",
            "Stop",
            "/hookSpecificOutput/additionalContext",
            "/reason",
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
        let id = env.data(&["claim", "--next", "--as", "prep-agent"])["handoff"]["id"].clone();
        let id = id.as_str().unwrap();
        let go_on = answer(&env, stop, &input).unwrap();
        let said = go_on.pointer(kept).and_then(Value::as_str).unwrap();
        assert!(said.contains(&format!("still hold {id}")), "{said}");
        if kept == "/reason" {
            let no = if path.starts_with(".gemini") {
                "deny"
            } else {
                "block"
            };
            assert_eq!(go_on["decision"], no);
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
        env.wait_minutes(60 * 24 * 30);
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
    let root = env.repo().canonicalize().unwrap();
    let trusted =
        json!({ "projects": { root.to_str().unwrap(): { "hasTrustDialogAccepted": true } } });
    test_support::files::write(&env.root().join("home/.claude.json"), trusted.to_string());
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
    let guide = env.repo().join(".claude/rules/git-handoff.md");
    let text = fs::read_to_string(&guide).unwrap();
    for (changed, code) in [
        (
            text.replace("<!-- <<< git-handoff <<< -->\n", ""),
            "agents.marker",
        ),
        (
            text.replace("Handoffs between", "Handoff by"),
            "agents.block",
        ),
    ] {
        fs::write(&guide, changed).unwrap();
        assert_eq!(codes(&[]), [code]);
    }
    fs::write(&guide, &text).unwrap();
    fs::write(env.repo().join(".gitignore"), ".claude/\n").unwrap();
    assert_eq!(codes(&[]), ["agents.ignored"; 3]);
    fs::remove_file(env.repo().join(".gitignore")).unwrap();
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    let program = other.join("git-handoff");
    script(&program, "#!/bin/sh\necho git-handoff 0.0.1\n");
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
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
        assert_eq!(files(&env), files(&one));
        agents(&env, "uninstall", &[]).success();
        assert_eq!(files(&env), before);
    }
}

#[test]
fn each_of_several_at_once_is_put_in() {
    let env = TestEnvironment::with_ledger();
    let before = files(&env);
    for verb in ["install", "uninstall"] {
        let running = NAMES.map(|name| {
            let mut command = env.program(&["agents", verb, name]);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        });
        for mut child in running {
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
        let guide = fs::read_to_string(env.repo().join("AGENTS.md")).unwrap_or_default();
        let all = guide
            .contains("for: agents-md, amp, claude-code, codex, copilot, cursor, goose, opencode, qwen, windsurf, zed -->");
        assert_eq!(all, verb == "install", "{guide}");
    }
    assert_eq!(files(&env), before);
}

#[test]
fn a_file_that_can_not_be_written_leaves_the_others_as_they_were() {
    let env = TestEnvironment::with_ledger();
    // A folder's place is taken by a file, which shows only when it is written.
    write(&env, ".claude/settings.json", "{\n}\n");
    write(&env, ".claude/skills", "a file\n");
    let before = files(&env);
    let ran = env.handoff(&["agents", "install", "claude-code"]);
    assert_eq!(ran.status, 9, "{}", ran.shown);
    assert_eq!(files(&env), before);
}

#[test]
fn a_byte_order_mark_stays_and_what_is_no_object_is_named() {
    let env = TestEnvironment::with_ledger();
    for path in [
        ".claude/settings.json",
        ".mcp.json",
        ".cursor/hooks.json",
        ".gemini/settings.json",
    ] {
        write(&env, path, "\u{feff}{}\r\n");
    }
    let before = files(&env);
    let names = ["claude-code", "cursor", "gemini", "--mcp"];
    env.handoff(&[&["agents", "install"][..], &names].concat())
        .success();
    let text = fs::read_to_string(env.repo().join(".claude/settings.json")).unwrap();
    assert!(text.starts_with("\u{feff}{") && text.contains("SessionStart"));
    env.handoff(&[&["agents", "uninstall"][..], &names[..3]].concat())
        .success();
    assert_eq!(files(&env), before);
    write(&env, ".claude/settings.json", "null");
    let refused = env.handoff(&["agents", "install", "claude-code"]).exits(9);
    refused.says("can't be edited: it is not a JSON object");
}

#[test]
fn hooks_of_the_user_beside_ours_or_around_it_stay() {
    let env = TestEnvironment::with_ledger();
    let path = ".claude/settings.json";
    env.handoff(&["agents", "install", "claude-code"]).success();
    let [own] = &commands(&env, path, "Stop")[..] else {
        panic!()
    };
    let ours = json!({ "type": "command", "command": own, "timeout": 20 });
    let theirs = json!({ "type": "command", "command": "./theirs.sh" });
    let around =
        json!({ "hooks": [{ "type": "command", "command": format!("./notify.sh; {own}") }] });
    let with = |list: Value| json!({ "hooks": { "Stop": list } });
    let now =
        || serde_json::from_slice::<Value>(&fs::read(env.repo().join(path)).unwrap()).unwrap();
    let config = with(json!([{ "hooks": [theirs, ours] }, around]));
    write(&env, path, &format!("{config:#}"));
    env.handoff(&["agents", "install", "claude-code", "--as", "prep-agent"])
        .success();
    let list = &now()["hooks"]["Stop"];
    assert_eq!(list[0]["hooks"][0], theirs);
    assert!(
        list[0]["hooks"][1]["command"]
            .as_str()
            .unwrap()
            .contains("--as prep-agent")
    );
    assert_eq!(list[1], around);
    assert_eq!(list.as_array().unwrap().len(), 2);
    env.handoff(&["agents", "uninstall", "claude-code"])
        .success();
    assert_eq!(now(), with(json!([{ "hooks": [theirs] }, around])));
}

#[test]
fn a_session_is_kept_once_where_the_harness_does_not_say() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.handoff(&["claim", "--next", "--as", "prep-agent"])
        .success();
    let stop = |name: &str, input: &str| {
        let ran = env.handoff_with(
            &["agents", "hook", name, "stop", "--as", "prep-agent"],
            input,
        );
        !ran.success().stdout.is_empty()
    };
    for session in ["a", "b"] {
        let input = json!({ "sessionId": session, "stopReason": "end_turn" }).to_string();
        assert!(stop("copilot", &input));
        assert!(!stop("copilot", &input));
    }
    for input in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"stop_hook_active":"true"}"#,
        r#"{"stop_hook_active":1}"#,
    ] {
        assert!(!stop("claude-code", input), "{input}");
    }
    assert!(stop(
        "claude-code",
        r#"{"stop_hook_active":false,"session_id":"a"}"#
    ));
    // No more than a number of sessions are remembered.
    let kept = env.repo().join(".git/handoff/kept");
    for number in 0..300 {
        fs::write(kept.join(format!("{number}")), "").unwrap();
    }
    assert!(stop("copilot", r#"{"sessionId":"c"}"#));
    assert_eq!(fs::read_dir(kept).unwrap().count(), 256);
}

#[test]
fn a_hook_exits_0_whatever_it_is_given() {
    let env = TestEnvironment::with_ledger();
    for args in [
        &["agents", "hook", "codex", "unheard-of"][..],
        &["agents", "hook", "codex", "stop", "--unheard-of"],
        &["agents", "hook"],
        &["-C", "/nowhere", "agents", "hook", "codex", "stop"],
    ] {
        let ran = env.handoff_with(args, "{}").success();
        assert_eq!(ran.stdout, "", "{}", ran.shown);
    }
    // Nor does it hand on what an older program says of it.
    env.handoff(&["agents", "install", "codex"]).success();
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    script(&other.join("git-handoff"), "#!/bin/sh\nexit 2\n");
    for command in commands(&env, ".codex/hooks.json", "Stop") {
        let mut shell = env.command("/bin/sh");
        shell.args(["-c", &command]).env("PATH", &other);
        env.run(shell, &["hook"], Some(b"{}")).success();
    }
}

#[test]
fn a_hook_finds_its_repository_and_does_not_wait_for_ever() {
    let env = TestEnvironment::with_ledger();
    let args = [
        "agents",
        "hook",
        "claude-code",
        "session-start",
        "--as",
        "prep-agent",
    ];
    let input = json!({ "cwd": env.repo() }).to_string();
    let mut command = env.program(&args);
    command.current_dir("/").stdin(Stdio::piped());
    assert!(
        env.run(command, &args, Some(input.as_bytes()))
            .success()
            .stdout
            .contains("prep-agent")
    );
    let mut command = env.program(&args);
    command
        .current_dir("/")
        .env("CLAUDE_PROJECT_DIR", env.repo());
    assert!(
        env.run(command, &args, None)
            .success()
            .stdout
            .contains("prep-agent")
    );
    // Standard input stays open until it has ended.
    let mut command = env.program(&args);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let open = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(open);
}

#[test]
fn what_a_killed_process_left_is_named_and_taken_away() {
    let env = TestEnvironment::with_ledger();
    env.handoff(&["agents", "install", "codex"]).success();
    let gone = i32::MAX;
    let leftover = format!(".codex/.hooks.json.git-handoff-{gone}");
    let living = format!(".AGENTS.md.git-handoff-{}", std::process::id());
    write(&env, &leftover, "half");
    write(&env, &living, "at work");
    let doctor = env.handoff(&["agents", "doctor", "--as", "prep-agent"]);
    assert!(
        doctor.stdout.contains(&leftover) && !doctor.stdout.contains(&living),
        "{}",
        doctor.shown
    );
    assert!(doctor.stdout.starts_with("codex: "), "{}", doctor.shown);
    env.handoff(&["agents", "uninstall", "codex"]).success();
    assert_eq!(
        files(&env).into_keys().collect::<Vec<_>>(),
        [living, "README.md".to_owned()]
    );
}

#[test]
fn a_server_that_is_the_users_stays() {
    let env = TestEnvironment::with_ledger();
    let plain =
        json!({ "mcpServers": { "git-handoff": { "command": "git-handoff", "args": ["mcp"] } } });
    write(&env, ".mcp.json", &plain.to_string());
    let before = files(&env);
    env.handoff(&["agents", "uninstall", "claude-code"])
        .success();
    assert_eq!(files(&env), before);
    env.handoff(&[
        "agents",
        "install",
        "claude-code",
        "--mcp",
        "--as",
        "prep-agent",
    ])
    .success();
    let text = fs::read_to_string(env.repo().join(".mcp.json")).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    let arguments = &config["mcpServers"]["git-handoff"]["args"];
    assert_eq!(*arguments, json!(["mcp", "--as", "prep-agent"]));
    let foreign = text.replace("\"git-handoff\",", "\"/opt/git-handoff\",");
    assert_ne!(foreign, text);
    write(&env, ".mcp.json", &foreign);
    let refused = env
        .handoff(&["agents", "install", "claude-code", "--mcp", "--json"])
        .exits(9);
    assert_eq!(
        refused.json()["error"]["findings"][0]["code"],
        "agents.server"
    );
    env.handoff(&["agents", "uninstall", "claude-code"])
        .success();
    assert_eq!(
        fs::read_to_string(env.repo().join(".mcp.json")).unwrap(),
        foreign
    );
}

#[test]
fn a_branch_is_named_in_hooks_and_a_key_that_stands_twice_is_refused() {
    let env = TestEnvironment::with_ledger();
    let before = files(&env);
    env.handoff(&["agents", "install", "codex", "--branch", "it's;mine"])
        .success();
    for event in ["SessionStart", "Stop"] {
        let [command] = &commands(&env, ".codex/hooks.json", event)[..] else {
            panic!()
        };
        assert!(
            command.contains(r"--branch 'it'\''s;mine' || :"),
            "{command}"
        );
    }
    env.handoff(&["agents", "uninstall", "codex"]).success();
    assert_eq!(files(&env), before);
    write(&env, ".codex/hooks.json", r#"{"hooks":{},"hooks":{}}"#);
    let refused = env
        .handoff(&["agents", "install", "codex", "--json"])
        .exits(9)
        .json();
    let finding = &refused["error"]["findings"][0];
    assert_eq!(finding["code"], "agents.config");
    // The cure is whole.
    let fix = finding["fix"].as_str().unwrap();
    assert!(
        fix.contains("under `hooks.SessionStart`") && fix.contains("agents hook codex"),
        "{fix}"
    );
}

#[test]
fn other_line_breaks_and_empty_files_are_as_before() {
    let env = TestEnvironment::with_ledger();
    write(&env, "CLAUDE.md", "");
    write(&env, "AGENTS.md", "# Ours\r\n");
    let before = files(&env);
    agents(&env, "install", &["--mcp"]).success();
    for (path, bytes) in files(&env)
        .iter()
        .filter(|(path, _)| !path.ends_with('/') && *path != "README.md")
    {
        let text = String::from_utf8(bytes.clone())
            .unwrap()
            .replace("\r\n", "\n");
        write(&env, path, &text.replace('\n', "\r\n"));
    }
    agents(&env, "uninstall", &[]).success();
    assert_eq!(files(&env), before);
}

/// How often the text of the instructions is in these files; an import of it counts, where the
/// harness follows it.
fn times(env: &TestEnvironment, files: &[&str], follows: bool) -> usize {
    let texts = files
        .iter()
        .map(|path| fs::read_to_string(env.repo().join(path)).unwrap_or_default());
    let count = |text: String| {
        let imports = text.matches("/.agents/git-handoff.md\n").count();
        text.matches("## Handoffs").count() + if follows { imports } else { 0 }
    };
    texts.map(count).sum()
}

#[test]
fn each_harness_reads_the_instructions_once() {
    const RULE: &str = ".claude/rules/git-handoff.md";
    const COPILOT: &str = ".github/copilot-instructions.md";
    let all = ["claude-code", "codex", "copilot", "gemini"];
    for page in [None, Some("# Ours\n"), Some("@AGENTS.md\n")] {
        let env = TestEnvironment::with_ledger();
        write(&env, "AGENTS.md", "# Team\n");
        if let Some(page) = page {
            write(&env, "CLAUDE.md", page);
        }
        let before = files(&env);
        // Claude Code reads AGENTS.md where it has no page of its own, or one that imports it.
        let mut claude = vec![RULE, "CLAUDE.md"];
        if page != Some("# Ours\n") {
            claude.push("AGENTS.md");
        }
        let check = |names: &[&str]| {
            for name in names {
                let count = match *name {
                    "claude-code" => times(&env, &claude, true),
                    "gemini" => times(&env, &["GEMINI.md"], true),
                    // It does not follow an import in a rule's text or in GEMINI.md.
                    "copilot" => {
                        let read = ["AGENTS.md", "CLAUDE.md", "GEMINI.md", RULE, COPILOT];
                        times(&env, &read, false)
                    }
                    _ => times(&env, &["AGENTS.md"], false),
                };
                assert_eq!(count, 1, "{name} among {names:?} with {page:?}");
            }
        };
        // At once, or one after the other.
        for names in [
            &all[..],
            &all[..1],
            &all[..2],
            &all[1..3],
            &all[2..],
            &all[3..],
        ] {
            env.handoff(&[&["agents", "install"], names].concat())
                .success();
            check(names);
            env.handoff(&[&["agents", "uninstall"], names].concat())
                .success();
            assert_eq!(files(&env), before);
        }
        for number in 0..4 {
            env.handoff(&["agents", "install", all[number]]).success();
            check(&all[..=number]);
            let doctor = env.handoff(&["agents", "doctor"]);
            assert!(!doctor.stdout.contains("agents.block"), "{}", doctor.shown);
        }
        for number in 0..4 {
            env.handoff(&["agents", "uninstall", all[number]]).success();
            check(&all[number + 1..]);
        }
        assert_eq!(files(&env), before);
    }
}

#[test]
fn the_doctor_names_what_a_person_has_to_allow_and_an_old_program() {
    let env = TestEnvironment::with_ledger();
    let names = ["claude-code", "codex", "copilot", "gemini", "opencode"];
    env.handoff(&[&["agents", "install", "--mcp"][..], &names].concat())
        .success();
    let root = env.repo().canonicalize().unwrap();
    let above = root.parent().unwrap().to_str().unwrap();
    let root = root.to_str().unwrap();
    let programs = env.root().join("programs");
    fs::create_dir(&programs).unwrap();
    script(
        &programs.join("claude"),
        "#!/bin/sh\necho '2.0.14 (Claude Code)'\n",
    );
    script(
        &programs.join("codex"),
        "#!/bin/sh\necho codex-cli 0.171.0\n",
    );
    script(&programs.join("gemini"), "#!/bin/sh\nexit 1\n");
    let examine = || -> Vec<(String, usize)> {
        let args = [
            &["agents", "doctor", "--json", "--as", "prep-agent"][..],
            &names,
        ]
        .concat();
        let mut command = env.program(&args);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", programs.display()));
        let data = env.run(command, &args, None).json()["data"].take();
        let harnesses = data["harnesses"].as_array().unwrap().iter();
        let consents = harnesses.map(|harness| {
            let findings = harness["findings"].as_array().unwrap().iter();
            let old = findings.clone().filter(|f| f["code"] == "agents.harness");
            let is_old = old.count() == 1;
            assert_eq!(is_old, harness["name"] == "claude-code", "{harness}");
            let mut consents = findings.filter(|f| f["code"] == "agents.consent");
            assert!(
                consents
                    .clone()
                    .all(|f| f["severity"] == "warning" && f["fix"].is_string())
            );
            (
                harness["name"].as_str().unwrap().to_owned(),
                consents.by_ref().count(),
            )
        });
        consents.filter(|(_, count)| *count > 0).collect()
    };
    let count = |name: &str, count| (name.to_owned(), count);
    assert_eq!(
        examine(),
        [
            count("claude-code", 2),
            count("codex", 3),
            count("copilot", 1),
            count("gemini", 1)
        ]
    );
    let home = |path: &str, text: String| {
        test_support::files::write(&env.root().join("home").join(path), &text);
    };
    let claude = json!({ "projects": { root: { "hasTrustDialogAccepted": true, "enabledMcpjsonServers": ["git-handoff"] } } });
    home(".claude.json", claude.to_string());
    let state = |event: &str| {
        format!("[hooks.state.\"{root}/.codex/hooks.json:{event}:0:0\"]\ntrusted_hash = \"x\"\n")
    };
    let trusted = format!("[projects.\"{root}\"]\ntrust_level = \"trusted\"\n");
    home(".codex/config.toml", trusted + &state("session_start"));
    let list = json!({ "trustedFolders": [above] });
    home(".copilot/config.json", format!("// Managed.\n{list}\n"));
    let folders = json!({ above: "TRUST_FOLDER" });
    home(".gemini/trustedFolders.json", folders.to_string());
    assert_eq!(examine(), [count("codex", 1)]);
    // Another folder's trust is not this one's.
    home(
        ".gemini/trustedFolders.json",
        json!({ format!("{root}-other"): "TRUST_FOLDER" }).to_string(),
    );
    assert_eq!(examine(), [count("codex", 1), count("gemini", 1)]);
}

#[test]
fn a_text_of_the_users_in_the_place_of_ours_stays() {
    let env = TestEnvironment::with_ledger();
    write(&env, ".agents/git-handoff.md", "mine\n");
    let before = files(&env);
    let refused = env.handoff(&["agents", "install", "gemini", "--json"]);
    let findings = refused.exits(9).json()["error"]["findings"].take();
    assert_eq!(findings[0]["path"], ".agents/git-handoff.md");
    assert_eq!(files(&env), before);
}

#[test]
fn hooks_are_silent_in_a_run_of_work() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.handoff(&["claim", "--next", "--as", "prep-agent"])
        .success();
    for event in ["session-start", "stop"] {
        let args = ["agents", "hook", "codex", event, "--as", "prep-agent"];
        let input = r#"{"stop_hook_active":false}"#;
        let said = |mark: Option<&str>| {
            let mut command = env.program(&args);
            command.envs(mark.map(|mark| ("GIT_HANDOFF_RUN", mark)));
            command.stdin(Stdio::piped());
            let ran = env.run(command, &args, Some(input.as_bytes())).success();
            ran.stdout
        };
        assert_eq!(said(Some("1-2-3")), "", "{event}");
        assert_ne!(said(None), "", "{event}");
    }
    // What the agent asks for itself is answered.
    let mut command = env.program(&["prime", "--as", "prep-agent"]);
    command.env("GIT_HANDOFF_RUN", "1-2-3");
    let page = env.run(command, &["prime"], None).success().stdout;
    assert!(page.contains("prep-agent"), "{page}");
}

#[test]
fn the_schema_of_opencode_is_ours_only_if_it_was_added() {
    for (text, own) in [
        ("{}", false),
        ("{ \"mcp\": {} }\n", false),
        (
            "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n",
            true,
        ),
        (
            "{\"mcp\":{\"x\":{}},\"$schema\":\"https://opencode.ai/config.json\"}",
            true,
        ),
    ] {
        let env = TestEnvironment::with_ledger();
        write(&env, "opencode.json", text);
        env.handoff(&["agents", "install", "opencode", "--mcp"])
            .success();
        let with = fs::read_to_string(env.repo().join("opencode.json")).unwrap();
        let config: Value = serde_json::from_str(&with).unwrap();
        let schema = config["$schema"].as_str().unwrap();
        assert_eq!(!schema.ends_with('#'), own, "{with}");
        assert!(config["mcp"]["git-handoff"].is_object(), "{with}");
        env.handoff(&["agents", "uninstall", "opencode"]).success();
        let left = fs::read_to_string(env.repo().join("opencode.json")).unwrap();
        assert_eq!(left, text);
    }
}

#[test]
fn a_skill_that_several_read_stays_until_the_last_is_gone() {
    let env = TestEnvironment::with_ledger();
    let skill = env.repo().join(".agents/skills/git-handoff/SKILL.md");
    let before = files(&env);
    env.handoff(&["agents", "install", "codex", "zed", "amp"])
        .success();
    for names in [&["codex"][..], &["amp"]] {
        env.handoff(&[&["agents", "uninstall"], names].concat())
            .success();
        assert!(skill.exists(), "{names:?}");
    }
    env.handoff(&["agents", "uninstall", "zed"]).success();
    assert_eq!(files(&env), before);
}

#[test]
fn servers_are_added_in_the_form_that_each_harness_reads() {
    let env = TestEnvironment::with_ledger();
    let config = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(env.repo().join(path)).unwrap()).unwrap()
    };
    agents(&env, "install", &["--mcp"]).success();
    let plain = json!({ "command": "git-handoff", "args": ["mcp"] });
    for (path, at, server) in [
        (".mcp.json", "/mcpServers", plain.clone()),
        (".gemini/settings.json", "/mcpServers", plain.clone()),
        (".qwen/settings.json", "/mcpServers", plain.clone()),
        (".amp/settings.json", "/amp.mcpServers", plain.clone()),
        (
            ".vscode/mcp.json",
            "/servers",
            json!({ "type": "stdio", "command": "git-handoff", "args": ["mcp"] }),
        ),
        (
            ".zed/settings.json",
            "/context_servers",
            json!({ "source": "custom", "command": "git-handoff", "args": ["mcp"] }),
        ),
        (
            "opencode.json",
            "/mcp",
            json!({ "type": "local", "command": ["git-handoff", "mcp"] }),
        ),
    ] {
        let servers = config(path).pointer(at).cloned();
        assert_eq!(servers, Some(json!({ "git-handoff": server })), "{path}");
    }
    let codex = fs::read_to_string(env.repo().join(".codex/config.toml")).unwrap();
    insta::assert_snapshot!(codex, @r#"
    # >>> git-handoff >>>
    [mcp_servers.git-handoff]
    command = "git-handoff"
    args = ["mcp"]
    env_vars = ["GIT_HANDOFF_AGENT","GIT_HANDOFF_WORKER","GIT_HANDOFF_CONTRACT","GIT_HANDOFF_ISSUE","GIT_HANDOFF_ID","GIT_HANDOFF_BRANCH","GIT_HANDOFF_BASE","GIT_HANDOFF_USAGE","GIT_HANDOFF_RUN"]
    # <<< git-handoff <<<
    "#);
    // No file names an agent unless that was asked for.
    let named = files(&env).into_values();
    let named = named.filter(|bytes| String::from_utf8_lossy(bytes).contains("--as prep"));
    assert_eq!(named.count(), 0);
    let asked = agents(&env, "install", &["--mcp", "--as", "prep-agent"]).success();
    assert!(
        asked.stderr.contains("these files name prep-agent"),
        "{}",
        asked.shown
    );
    let opencode = config("opencode.json");
    assert_eq!(opencode["$schema"], "https://opencode.ai/config.json#");
    let command = &opencode["mcp"]["git-handoff"]["command"];
    assert_eq!(
        *command,
        json!(["git-handoff", "mcp", "--as", "prep-agent"])
    );
    let own = "[mcp_servers.git-handoff]\ncommand = \"mine\"\n";
    write(&env, ".codex/config.toml", own);
    let refused = env.handoff(&["agents", "install", "codex", "--mcp", "--json"]);
    let finding = refused.exits(9).json()["error"]["findings"][0].take();
    assert_eq!(finding["code"], "agents.server");
    agents(&env, "uninstall", &[]).success();
    assert_eq!(
        fs::read_to_string(env.repo().join(".codex/config.toml")).unwrap(),
        own
    );
}

#[test]
fn a_harness_that_is_not_named_is_asked_for_with_those_that_there_are() {
    let env = TestEnvironment::with_repository();
    for args in [&["agents", "install"][..], &["agents", "install", "claude"]] {
        let asked = env.handoff(args).exits(2);
        let asked =
            asked.says("`git handoff agents install claude-code`; there are: claude-code, codex, ");
        assert!(!asked.shown.contains("\"claude\""), "{}", asked.shown);
    }
    let uninstall = env.handoff(&["agents", "uninstall"]).exits(2);
    uninstall.says("`git handoff agents uninstall claude-code`");
}
