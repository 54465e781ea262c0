//! A ledger under each protocol, with rounds, failures, requests and tasks, for drawings.

use serde_json::{Value, json};

use test_support::TestEnvironment;
use test_support::contracts::Format;
use test_support::contracts::value;
use test_support::team::{Folder, run, sent, with_protocol};
use test_support::workflow::{run as play, workflow};

/// An issue that went to its end: 87, after a failure, two reviews and a validation.
pub(crate) fn completed() -> TestEnvironment {
    begun(usize::MAX)
}

/// The same issue after so many steps.
pub(crate) fn begun(steps: usize) -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.pace(420);
    let mut all = workflow(|_| Format::Xml);
    all.truncate(steps);
    play(&env, &all);
    env
}

/// The same issue while its first implementation needs attention after a failure.
pub(crate) fn failed() -> TestEnvironment {
    begun(5)
}

/// Requests to specialists: one that fails, is tried again and delivers, in issue
/// `loan-list`.
pub(crate) fn called() -> TestEnvironment {
    let env = with_protocol("orchestrator-specialist");
    let react = "@react-specialist";
    let of = |name: &str| {
        let mut value = value("orchestrator-specialist", name, &[]);
        value["handoff_id"] = "loan-list".into();
        if name == "failure" {
            value["source"]["agent_id"] = "@frontend-specialist".into();
            value["target"]["agent_id"] = react.into();
        }
        value.to_string()
    };
    sent(&env, of("request"));
    env.claim("loan-list.1", react).success();
    sent(&env, of("failure"));
    env
}

/// Agents that ask one another, in issue [`TRACE`]: a request within a request, and one
/// that waits for a person.
pub(crate) fn asked() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    env.pace(1);
    env.handoff(&["init", "--protocol", "delegation"]).success();
    let ask = |from: &str, to: &str, about: &str| {
        let mut value = value("delegation", "request", &[]);
        value["traceId"] = TRACE.into();
        value["sourceAgent"] = from.into();
        value["handoffTo"] = to.into();
        value["contextForTarget"]["summary"] = about.into();
        value["sourceContext"]["documentType"] = from.into();
        let data = sent(&env, value.to_string());
        env.claim(data["handoff"]["id"].as_str().unwrap(), to)
            .success();
    };
    let answer = |from: &str, status: &str| {
        let mut value = value("delegation", "response-least", &[]);
        value["traceId"] = TRACE.into();
        value["respondingAgent"] = from.into();
        value["status"] = status.into();
        if status == "resolved" {
            value["providedInputs"] = json!({"tide_tables": {}});
        }
        sent(&env, value.to_string());
    };
    ask("document_generator", "research_agent", "Depths of berth 4");
    answer("research_agent", "resolved");
    ask("document_generator", "validator", "Read chapter 2");
    ask("validator", "orchestrator", "Which tide table counts?");
    answer("orchestrator", "resolved");
    answer("validator", "partial");
    ask(
        "document_generator",
        "research_agent",
        "Currents of berth 4",
    );
    answer("research_agent", "failed");
    env
}

/// The issue of [`asked`].
pub(crate) const TRACE: &str = "5a1c7e90-0b2d-4f38-9c64-d07e1f2a3b4c";

/// Work that is evaluated each time, in issue `ferry-71`: research goes back once, and
/// the design waits for a person.
pub(crate) fn evaluated() -> TestEnvironment {
    let env = with_protocol("directive");
    let work = |id: &str, from: &str, to: &str, status: &str| {
        let missing = match status {
            "blocked" => json!([{"required": "Whether foot passengers book ahead",
                "reason": "Decides what a crossing has to count", "blocking": true}]),
            _ => json!([]),
        };
        let contract = json!({"handoff_id": id, "from_agent": from, "to_agent": to,
            "timestamp": "2026-03-02T08:00:00Z", "status": status, "produced_artifacts": [],
            "assumptions": [], "missing_inputs": missing, "recommended_next_agent": to,
            "context_summary": format!("{id} is {status}"), "kb_updates_proposed": false,
            "session_id": "ferry-71"});
        sent(&env, contract.to_string());
    };
    let decide = |about: &str, to: &str, what: &str| {
        let mut decision = json!({"handoff_id": about, "from_agent": "MetaGPT", "to_agent": to,
            "timestamp": "2026-03-02T08:10:00Z", "decision": what,
            "rationale": format!("{about} was read: {what}"), "session_id": "meta-1"});
        match what {
            "ask" => decision["questions"] = json!(["Do foot passengers book ahead?"]),
            "retry" => decision["instructions"] = json!("Count them at the gate."),
            _ => {}
        }
        sent(&env, decision.to_string());
    };
    work("research-1", "ResearchGPT", "DesignGPT", "failed");
    run(&env, "claim ferry-71 --as MetaGPT");
    decide("research-1", "ResearchGPT", "retry");
    run(&env, "claim ferry-71 --as ResearchGPT");
    work("research-2", "ResearchGPT", "DesignGPT", "success");
    run(&env, "claim ferry-71 --as MetaGPT");
    decide("research-2", "DesignGPT", "advance");
    run(&env, "claim ferry-71 --as DesignGPT");
    work("design-1", "DesignGPT", "ImplementationGPT", "blocked");
    run(&env, "claim ferry-71.5 --as MetaGPT");
    decide("design-1", "USER", "ask");
    env
}

/// Tasks in issue `environment`: `whole` is in as many parts as there are, each with those
/// it waits for; the first of them is done where it waits for none.
pub(crate) fn broken_down(
    env: TestEnvironment,
    whole: &str,
    parts: &[(&str, &[&str])],
) -> TestEnvironment {
    let contract = json!({"handoff_type": "environment_to_planning",
        "timestamp": "2026-03-02T06:15:00Z", "from_agent": "environment-architect",
        "to_agent": "task-orchestrator", "data": {"task_ids": [whole, "022"],
            "difficulties": [8.0, 7.5], "template_used": "greenhouse",
            "assumptions_made": ["Valves answer within a second"], "confidence_score": 0.7}});
    sent(&env, contract.to_string());
    run(&env, "claim environment.1 --as task-orchestrator");
    let ids: Vec<&str> = parts.iter().map(|(id, _)| *id).collect();
    let graph = parts.iter().map(|(id, on)| ((*id).to_owned(), json!(on)));
    let graph: serde_json::Map<String, Value> = graph.collect();
    let contract = json!({"handoff_type": "planning_to_execution",
        "timestamp": "2026-03-02T06:40:00Z", "from_agent": "task-orchestrator",
        "to_agent": "execution-guardian", "data": {"parent_task_id": whole, "subtask_ids": ids,
            "dependency_graph": graph, "execution_order": ids, "parallel_groups": []}});
    sent(&env, contract.to_string());
    run(&env, "claim environment.3 --as execution-guardian");
    let contract = json!({"handoff_type": "execution_to_planning",
        "timestamp": "2026-03-02T07:20:00Z", "from_agent": "execution-guardian",
        "to_agent": "task-orchestrator", "data": {"completed_task_id": ids[0],
            "parent_task_id": whole, "execution_metrics": {"duration": "15 minutes",
                "confidence_final": 0.95, "gates_passed": ["valve closes"],
                "checkpoints_created": 2}}});
    sent(&env, contract.to_string());
    env
}

/// A task in five parts: one is done, one worked on, one ready, two wait.
pub(crate) fn five_parts() -> TestEnvironment {
    let parts: [(&str, &[&str]); 5] = [
        ("valves", &[]),
        ("pumps", &["valves"]),
        ("sensors", &["valves"]),
        ("alarms", &["pumps", "sensors"]),
        ("manual", &["alarms"]),
    ];
    let env = broken_down(with_protocol("task-breakdown"), "021", &parts);
    run(&env, "claim environment.4 --as execution-guardian");
    env
}

/// A ledger in which tasks may have any name.
pub(crate) fn with_any_names() -> TestEnvironment {
    fn loosen(schema: &mut Value) {
        match schema {
            Value::Object(fields) => {
                fields.remove("pattern");
                fields.values_mut().for_each(loosen);
            }
            Value::Array(items) => items.iter_mut().for_each(loosen),
            _ => {}
        }
    }
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "task-breakdown", "free");
    for schema in [
        "environment-to-planning",
        "planning-to-execution",
        "execution-to-planning",
    ] {
        folder.edit(&format!("schemas/{schema}.schema.json"), loosen);
    }
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    env.pace(1);
    env
}

/// Names that try to be more than names where they are drawn.
pub(crate) fn hostile() -> Vec<String> {
    let names = [
        "end",
        "--",
        "a --> b",
        "a\"b",
        "a]b",
        "\" ]; n99 [label=\"x",
        "\"]; n98[\"x",
        "<script>alert(1)</script>",
        "</text><image href=x onerror=alert(1)>",
        "click n0 href \"javascript:alert(1)\"",
        "%%{init: {\"securityLevel\": \"loose\"}}%%",
        "%% a comment",
        "`code` and **bold**",
        "1. one",
        "- an item",
        "#quot; &lt;b&gt; #35;",
        "style x:y#z;",
        "classDef x fill:#f00;",
        "subgraph g0",
        "n0",
        "graph TD",
        "$$x^2$$",
        "fa:fa-car",
        "日本語",
        "🚢 é ß ﬂ°°60¶ß",
        "line\nbreak",
        "tab\there",
        "\u{202e}backwards",
        "\\N \\L \\ \\\"",
        "--- title: x",
        ":::done",
        "x@{ shape: circle }",
        "|x| {{x}} ((x)) [/x/] >x]",
        "~~~ & ;",
        "___x___",
        "\u{a0}",
        "{a|b}|<p>c",
    ];
    names.iter().map(|name| (*name).to_owned()).collect()
}
