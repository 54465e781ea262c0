//! The server of the Model Context Protocol with its project's own clients.

use std::path::Path;

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{opening, prepared};
use test_support::mcp::{HANDSHAKE, STATELESS, Wire};
use test_support::tools::MCP;

/// What an agent saw that took its part with the official Python client.
fn by_python(mode: &str) -> (TestEnvironment, Value) {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let contract = env.file("contract.xml", prepared(87));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp-tools/round.py");
    let mut command = env.command(MCP.folder().join("venv/bin/python"));
    let program = test_support::program();
    command.arg(script).args([mode, &contract, program, "mcp"]);
    let ran = env.run(command, &["round.py"], None).success();
    let seen = ran.json();
    (env, seen)
}

#[test]
fn an_agent_takes_its_part_with_the_python_client_in_both_eras() {
    for (mode, version) in [
        ("legacy", HANDSHAKE),
        (STATELESS, STATELESS),
        ("auto", STATELESS),
    ] {
        let (env, seen) = by_python(mode);
        assert_eq!(seen["version"], version, "{mode}");
        assert_eq!(seen["tools"].as_array().unwrap().len(), 15);
        let next = r#"handoff_claim {"id":"87.1","as":"prep-agent"}"#;
        assert_eq!(seen["next"], next);
        assert_eq!(seen["claimed"], "in_progress");
        assert_eq!(seen["refused"], "contract_refused");
        assert!(seen["findings"].as_i64().unwrap() > 3);
        assert_eq!(seen["checked"], true);
        assert_eq!(seen["sent"], "87.2");
        assert!(
            seen["resources"]
                .as_array()
                .unwrap()
                .contains(&json!("handoff://issue/87"))
        );
        assert_eq!(seen["templates"].as_array().unwrap().len(), 5);
        assert_eq!(seen["same"], true, "the contract, byte for byte");
        assert_eq!(seen["format"], "application/xml");
        let missing = if version == STATELESS { -32602 } else { -32002 };
        assert_eq!(seen["missing"], missing);
        env.assert_sound();
    }
}

#[test]
fn the_client_of_tasks_waits_by_a_task_in_both_eras() {
    for (version, methods) in [
        (HANDSHAKE, &["tasks/result"][..]),
        (STATELESS, &["tasks/get"]),
    ] {
        let env = TestEnvironment::with_ledger();
        env.send(opening(87)).success();
        env.send(opening(88)).success();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp-tools/tasks.mjs");
        let mut command = env.command("node");
        command.arg(script).arg(MCP.folder()).arg(version);
        command.args([test_support::program(), "mcp", "--as", "prep-agent"]);
        let seen = env.run(command, &["tasks.mjs"], None).success().json();
        assert_eq!(seen["kinds"], json!(["task", "immediate"]), "{version}");
        assert_eq!(
            (&seen["status"], &seen["ok"]),
            (&json!("completed"), &json!(true))
        );
        assert_eq!(seen["cancelled"], "cancelled");
        let asked = seen["methods"].as_array().unwrap();
        for method in [methods, &["tools/call", "tasks/cancel"]].concat() {
            assert!(asked.contains(&json!(method)), "{version}: {asked:?}");
        }
        env.assert_sound();
    }
}

/// What the Inspector's command line prints, and how it ends.
fn inspector(env: &TestEnvironment, args: &[&str]) -> test_support::Ran {
    let package = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    let mut command = env.command("node");
    command.arg(MCP.folder().join(package)).arg("--cli");
    command.args([test_support::program(), "mcp"]).args(args);
    env.run(command, args, None)
}

#[test]
fn the_inspector_lists_calls_and_reads() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let listed = inspector(&env, &["--method", "tools/list", "--strict"]).success();
    let direct = Wire::new(&env, &["--tools", "worker"]).result("tools/list", json!({}));
    let names = |tools: &Value| {
        let tools = tools["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&listed.json()), names(&direct));
    let call = |args: &[&str]| {
        let ran = inspector(
            &env,
            &[&["--method", "tools/call", "--tool-name"], args].concat(),
        );
        ran.json()["structuredContent"].clone()
    };
    assert_eq!(
        call(&["handoff_show", "--tool-arg", "id=87.1"])["data"]["handoff"]["state"],
        "pending"
    );
    let claimed = call(&["handoff_claim", "--tool-arg", "id=87.1", "as=prep-agent"]);
    assert_eq!(claimed["data"]["handoff"]["state"], "in_progress");
    let late = call(&[
        "handoff_claim",
        "--tool-arg",
        "id=87.1",
        "as=reviewer-agent",
    ]);
    assert_eq!(late["ok"], false, "{late}");
    let refused = call(&["handoff_send", "--tool-arg", "contract=<handoff/>"]);
    assert_eq!(refused["error"]["code"], "contract_refused");
    assert!(!refused["error"]["findings"].as_array().unwrap().is_empty());
    let resources = inspector(&env, &["--method", "resources/list"])
        .success()
        .json();
    assert_eq!(resources["resources"][2]["uri"], "handoff://issue/87");
    let read = [
        "--method",
        "resources/read",
        "--uri",
        "handoff://handoff/87.1/contract",
    ];
    let read = inspector(&env, &read).success().json();
    assert_eq!(read["contents"][0]["text"], opening(87));
    env.assert_sound();
}
