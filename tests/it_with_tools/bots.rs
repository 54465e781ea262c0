//! The examples of bots, in each language, do their work.

#[path = "../../crates/handoff/examples/bot.rs"]
mod bot;

use std::path::Path;

use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::tools::AGENT;

/// A ledger in which something waits for `prep-agent`.
fn waiting() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env
}

/// Asserts that the bot's work is on record, and how it says so.
#[track_caller]
fn assert_done(env: &TestEnvironment, said: &str) {
    assert_eq!(
        said,
        "completed 87.1: Dispatchers ask for their delivery history as a file"
    );
    let shown = env.data(&["show", "87.1"]);
    assert_eq!(shown["handoff"]["state"], "completed");
    env.assert_sound();
}

#[test]
fn in_rust_with_the_library() {
    let env = waiting();
    std::env::set_current_dir(env.repo()).unwrap();
    let said = bot::work(&"prep-agent".parse().unwrap()).unwrap();
    let none = bot::work(&"prep-agent".parse().unwrap()).unwrap_err();
    assert!(none.to_string().contains("nothing"), "{none}");
    assert_done(&env, &said);
}

#[test]
fn in_python_and_typescript_with_json() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let python = (["python3".to_owned()].to_vec(), "python/bot.py");
    let node = AGENT.folder().join("node_modules/sucrase/bin/sucrase-node");
    let node = ["node".to_owned(), node.to_str().unwrap().to_owned()];
    for (words, script) in [python, (node.to_vec(), "typescript/bot.ts")] {
        let env = waiting();
        let script = examples.join(script);
        let run = || {
            let mut command = env.command(&words[0]);
            command.args(&words[1..]).arg(&script).arg("prep-agent");
            command.output().unwrap()
        };
        let ran = run();
        let said = String::from_utf8(ran.stdout).unwrap();
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        assert_done(&env, said.trim_end());
        let none = run();
        assert!(!none.status.success());
        let why = String::from_utf8_lossy(&none.stderr).into_owned();
        assert!(why.contains("nothing_to_claim"), "{why}");
    }
}
