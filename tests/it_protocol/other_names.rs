//! An agent's other name works wherever its own does, and what is printed has its own.

use serde_json::json;
use test_support::TestEnvironment;
use test_support::team::{run, sent, with_protocol};

use crate::tasks::{broken_down, done};

/// Runs these lines in two ledgers, where `AGENT` is the agent's own name, and another one. Both are
/// told the same.
#[track_caller]
fn same(ledger: impl Fn() -> TestEnvironment, (own, other): (&str, &str), lines: &[&str]) {
    let (one, two) = (ledger(), ledger());
    for line in lines {
        let ran = [(&one, own), (&two, other)].map(|(env, name)| {
            let words: Vec<String> = line.split(' ').map(|w| w.replace("AGENT", name)).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ran = env.handoff(&words);
            let told = [&ran.stdout, &ran.stderr].map(|text| env.filtered(text));
            (ran.status, told)
        });
        let [by_own, by_other] = ran;
        assert_eq!(by_own, by_other, "{line}");
        assert_ne!(by_own.0, 2, "{line}: {by_own:?}");
    }
}

const GUARDIAN: (&str, &str) = ("execution-guardian", "Execution Guardian");

#[test]
fn each_command_takes_an_agents_other_name() {
    same(
        broken_down,
        GUARDIAN,
        &[
            #[cfg(feature = "agents")]
            "prime --as AGENT",
            "inbox --as AGENT",
            "wait --inbox --as AGENT",
            #[cfg(feature = "notify")]
            "notify --for AGENT --exec cat --once",
            "claim --next --as AGENT",
            #[cfg(feature = "agents")]
            "prime --as AGENT",
            "inbox --as AGENT --json",
            "extend environment.3 --as AGENT",
            "annotate environment.3 --as AGENT --note halfway",
            "new --issue environment --to task-orchestrator --as AGENT",
            "new --issue environment --from AGENT --to task-orchestrator",
            "new --issue environment --from task-orchestrator --to AGENT",
            "block environment.3 --as AGENT --needs pump --reason which",
            "answer environment.3 --as task-orchestrator pump=A",
            "claim environment.3 --as AGENT",
            "fail environment.3 --as AGENT --message broken",
            "list --agent AGENT",
            "list --agent AGENT --json",
            "log --author AGENT",
            "watch --all --once --agent AGENT",
            "next environment --between AGENT,task-orchestrator",
            "pause environment --except AGENT --reason supper --as task-orchestrator",
            "reassign environment.3 --to AGENT --as task-orchestrator",
            "send --issue environment --to AGENT --as task-orchestrator",
            "reject environment.4 --as AGENT --reason no",
            "cancel environment.4 --as AGENT --reason no",
            "release environment.4 --as AGENT --reason later",
            "complete environment.4 --as AGENT",
            "retry environment.3 --as AGENT",
            #[cfg(feature = "work")]
            "work --as AGENT --list",
            "status",
            "verify",
        ],
    );
}

#[test]
fn a_contract_is_sent_by_an_agents_other_name() {
    let env = broken_down();
    run(&env, "claim environment.3 --as execution-guardian");
    let args = ["send", "-", "--as", "Execution Guardian", "--json"];
    let ran = env.handoff_with(&args, done("021", "021_1")).success();
    assert_eq!(ran.json()["data"]["handoff"]["from"], "execution-guardian");
    let refused = env.handoff(&["inbox", "--as", "Execution Warden"]).exits(2);
    assert!(refused.stderr.contains("agent name"), "{}", refused.shown);
}

#[test]
fn a_name_that_is_an_agents_own_elsewhere_is_not_another_name() {
    let opened = || {
        let env = with_protocol("directive");
        let contract = json!({
            "handoff_id": "research-1",
            "from_agent": "ResearchGPT",
            "to_agent": "DesignGPT",
            "timestamp": "2026-03-02T08:00:00Z",
            "status": "success",
            "produced_artifacts": [],
            "assumptions": [],
            "missing_inputs": [],
            "recommended_next_agent": "DesignGPT",
            "context_summary": "what the ferry needs",
            "kb_updates_proposed": false,
            "session_id": "ferry-71",
        });
        sent(&env, contract.to_string());
        env
    };
    let lines = [
        "claim --next --as AGENT",
        #[cfg(feature = "agents")]
        "prime --as AGENT",
        "inbox --as AGENT",
        "list --agent AGENT",
        "log --author AGENT",
    ];
    same(opened, ("MetaGPT", "METAGPT"), &lines);
    // Another protocol has an agent that is called so.
    let env = opened();
    let args = ["protocol", "new", "ours", "--agents", "METAGPT,writer"];
    env.handoff(&args).success();
    run(&env, "protocol add ours");
    let inbox = env.data(&["inbox", "--as", "METAGPT"]);
    assert_eq!(inbox["agent"], "METAGPT");
}
