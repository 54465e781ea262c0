//! A session that a person starts: what reaches the model, and what asks it to go on.

use serde_json::json;

use crate::agent::{Turn, script};
use crate::harness::Harness;
use crate::trial::Trial;

/// What only the block of instructions, the page of a session, and the skill's description say.
const INSTRUCTIONS: &str = "This repository keeps a ledger of handoffs between agents";
const PAGE: &str = "You are prep-agent (specialist)";
const SKILL: &str = "Take over, do and hand on work";

/// Instructions, skill, page and the server's tools are there once; a round by the server's tools
/// works; who stops with work in hand is asked to go on.
pub(crate) fn installed(harness: &'static Harness) {
    let trial = Trial::new(harness, &[harness.with_server, &["--mcp"]].concat());
    trial.open(87);
    trial.open(88);
    let prepared = [
        "branch=main",
        "workspace_type=in-place",
        "port=3000",
        "validation.dependencies=none needed",
        "validation.build=passed",
        "validation.dev_server=n/a: a library",
    ];
    let claim = json!({"id": "88.1", "as": "prep-agent"});
    let send =
        json!({"issue": "88", "to": "implementer-agent", "set": prepared, "as": "prep-agent"});
    let shell = |line: &str| Turn::Shell(line.to_owned());
    let turns = [
        Turn::Tool("handoff_claim", claim),
        Turn::Tool("handoff_send", send),
        shell("git handoff claim 87.1 --as prep-agent 2>&1"),
        Turn::Say("I stop, with work in hand.".to_owned()),
        shell("git handoff block 87.1 --as prep-agent --reason 'I was asked to go on' 2>&1"),
    ];
    // The last turn is taken by who is asked to go on.
    trial.model.plays(move |request| script(&turns, request));
    let mut session = trial.command(harness.name);
    harness.session(&mut session, "Do your next piece of work.");
    session.env("GIT_HANDOFF_AGENT", "prep-agent");
    let ran = trial.env.run(session, &[], None);
    let story = format!("{}\n{}", trial.model.story(), ran.shown);

    let records = trial.model.records();
    let first = &records.first().expect(&story).request;
    let body = first.body.to_string();
    let count = |text: &str| body.matches(text).count();
    let tools = first
        .tools
        .iter()
        .filter(|t| t.name.ends_with("handoff_claim"));
    // Claude Code tells the names of tools that it offers once they are searched for.
    let names = if first.tools.iter().any(|tool| tool.name == "ToolSearch") {
        count("__handoff_claim")
    } else {
        tools.count()
    };
    let reached = [count(INSTRUCTIONS), count(PAGE), count(SKILL), names];
    let page = usize::from(harness.has_hooks);
    assert_eq!(
        reached,
        [1, page, 1, 1],
        "instructions, page, skill, server: {story}"
    );
    assert_eq!(trial.state("88.1"), "completed", "{story}");
    let stopped = if harness.has_hooks {
        "blocked"
    } else {
        "in_progress"
    };
    assert_eq!(trial.state("87.1"), stopped, "{story}");
    trial.handoff(&["verify"]).success();
    assert_eq!(trial.processes(), [""; 0]);
}
