//! Ledgers that a report has something to say about, and a browser to look at it with.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use test_support::TestEnvironment;
use test_support::contracts::{Format, implementer_error, opening, prepared, sample};
use test_support::tools::WEB;
use test_support::workflow::{run, workflow};

/// What nobody may read as markup, or not see.
pub(crate) const HOSTILE: &str = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> ]]> --> <!-- '\" &amp; </pre></style>";

/// One ledger with the five protocols: an issue that was completed with every detour, and others
/// that need attention, each for another reason.
pub(crate) fn troubled() -> TestEnvironment {
    TestEnvironment::prepared("troubled", made_troubled)
}

fn made_troubled() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    for name in [
        "orchestrator-specialist",
        "task-breakdown",
        "delegation",
        "directive",
    ] {
        env.handoff(&["protocol", "add", name, "--as", "issue-manager"])
            .success();
    }
    run(&env, &workflow(|_| Format::Xml));
    let step = |line: &str| {
        let args: Vec<&str> = line.split(' ').collect();
        env.handoff(&args).success();
    };
    // 88 failed, with what was kept of it; 89 waits for an answer; 90 has no attempt left.
    for issue in [88, 89, 90] {
        env.send(opening(issue)).success();
        env.claim(&format!("{issue}.1"), "prep-agent").success();
        env.send(prepared(issue)).success();
        env.claim(&format!("{issue}.2"), "implementer-agent")
            .success();
    }
    let log = env.file("build.log", format!("the last lines\n{HOSTILE}\n"));
    let implementer = ["--as", "implementer-agent"];
    let fail = [
        "fail",
        "88.2",
        "--code",
        "BuildTimeout",
        "--message",
        HOSTILE,
    ];
    let more = ["--details", "The runner was stopped", "--attach", &log];
    env.handoff(&[&fail[..], &more, &implementer].concat())
        .success();
    let block = [
        "block",
        "89.2",
        "--reason",
        "Which encoding?",
        "--needs",
        "encoding",
    ];
    env.handoff(&[&block[..], &implementer].concat()).success();
    for attempt in 1..=4 {
        let fail = [
            "fail",
            "90.2",
            "--message",
            "503",
            "--code",
            "Registry",
            "--recoverable",
        ];
        env.handoff(&[&fail[..], &implementer].concat()).success();
        if attempt < 4 {
            step("retry 90.2 --as orchestrator --reason again");
            env.wait_minutes(30);
            env.claim("90.2", "implementer-agent").success();
        }
    }
    // 91 is reported as an error, and its report is left lying; 92 is not taken up.
    env.send(opening(91)).success();
    env.claim("91.1", "prep-agent").success();
    env.send(prepared(91)).success();
    env.claim("91.2", "implementer-agent").success();
    env.send(implementer_error(Format::Json, 91)).success();
    env.send(opening(92)).success();
    // 93 was turned down: nobody is working on it.
    env.send(opening(93)).success();
    env.handoff(&[
        "reject",
        "93.1",
        "--as",
        "prep-agent",
        "--reason",
        "It is 87 again",
    ])
    .success();
    let note = ["annotate", "87.1", "--as", "prep-agent", "--note", HOSTILE];
    env.handoff(&note).success();
    for (protocol, name) in [
        ("orchestrator-specialist", "request"),
        ("delegation", "request"),
        ("directive", "handoff"),
        ("task-breakdown", "environment-to-planning"),
    ] {
        let path = format!("tests/samples/{protocol}/valid/{name}.json");
        let contract = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        env.handoff_with(&["send", "-", "--protocol", protocol], contract)
            .success();
    }
    env.send(hostile(666)).success();
    env.wait_minutes(300);
    env
}

/// A contract whose texts are markup, scripts, ends of everything and a text that runs backwards.
pub(crate) fn hostile(issue: u32) -> String {
    let mut contract: Value =
        serde_json::from_str(&sample("issue-manager-to-prep-agent", Format::Json, issue)).unwrap();
    let text = format!("{HOSTILE} \u{202e}txt.exe");
    contract["issue_title"] = text.clone().into();
    contract["summary"] = text.clone().into();
    contract["requirements"] = json!([text, "<li>one</li>", "line\n</pre>\nline"]);
    contract.to_string()
}

/// Writes the report of an environment and returns its path and its text.
#[track_caller]
pub(crate) fn report(env: &TestEnvironment, args: &[&str]) -> (PathBuf, String) {
    let path = env.root().join("report.html");
    let all = [&["report", "--output", path.to_str().unwrap()], args].concat();
    env.handoff(&all).success();
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Looks at a page with a real browser: what `look.mjs` says of it.
#[track_caller]
pub(crate) fn look(address: &str, plan: &Value) -> Value {
    let said = WEB.run("look.mjs", &[address], &plan.to_string());
    serde_json::from_str(&said).unwrap()
}
