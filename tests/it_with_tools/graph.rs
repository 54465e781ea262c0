//! Drawings of issues, protocols and tasks, read by the programs that draw them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use chrono::TimeDelta;
use handoff::base::Moment;
use handoff::base::ids::AgentName;
use handoff::ledger::{ChangeSurvey, HandoffSurvey, IssueSurvey};
use handoff::model::{Issue, IssueStatus};
use handoff::protocol::{Event, Protocol, State};
use handoff::templates::built_in;
use handoff_graph as graph;
use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::contracts::opening;
use test_support::team::{Folder, Refused, run};
use test_support::tools::WEB;
use test_support::{TestEnvironment, program, project};

use crate::ledgers::{
    TRACE, asked, begun, broken_down, called, completed, evaluated, failed, five_parts, hostile,
    with_any_names,
};

/// What a command draws, without the command.
#[track_caller]
fn drawn(env: &TestEnvironment, args: &[&str]) -> String {
    let all = [&["graph"], args].concat();
    env.handoff(&all).success().stdout
}

/// What the real Mermaid finds in each picture.
fn read(pictures: &[String]) -> Vec<Value> {
    let input = serde_json::to_string(pictures).unwrap();
    let output = WEB.run("read-mermaid.mjs", &[], &input);
    let answers: Vec<Value> = serde_json::from_str(&output).unwrap();
    assert_eq!(answers.len(), pictures.len());
    for (answer, picture) in answers.iter().zip(pictures) {
        assert_eq!(answer.get("error"), None, "{answer:#}\n{picture}");
    }
    answers
}

/// Asserts that Mermaid finds in its picture the nodes and edges of the data.
#[track_caller]
fn assert_drawn(data: &Value, mermaid: &Value) {
    let list = |value: &Value| value.as_array().unwrap().clone();
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    for node in list(&mermaid["nodes"]) {
        assert_eq!(node["link"], Value::Null);
        found.insert(node["id"].as_str().unwrap().to_owned(), node);
    }
    found.remove("remarks");
    let known = list(&data["nodes"]);
    assert_eq!(found.len(), known.len());
    for node in &known {
        let label = found[node["id"].as_str().unwrap()]["label"]
            .as_str()
            .unwrap();
        // What keeps signs apart that would be a formula together takes no room.
        let label = label.replace('\u{200b}', "");
        let first = label.split("<br>").next().unwrap();
        let name = shown(node["name"].as_str().unwrap());
        assert!(
            first.ends_with(&name) || name.is_empty(),
            "{name:?} in {first:?}"
        );
    }
    let waits: Vec<Value> = list(&data["edges"])
        .into_iter()
        .filter(|edge| edge["kind"] == "dependency")
        .map(|edge| edge["to"].clone())
        .collect();
    let mut ways: Vec<(String, String)> = Vec::new();
    for edge in list(&data["edges"]) {
        if edge["kind"] != "part" || !waits.contains(&edge["to"]) {
            let end = |key: &str| edge[key].as_str().unwrap().to_owned();
            ways.push((end("from"), end("to")));
        }
    }
    let drawn: Vec<(String, String)> = list(&mermaid["edges"])
        .iter()
        .map(|edge| {
            let end = |key: &str| edge[key].as_str().unwrap().to_owned();
            (end("from"), end("to"))
        })
        .collect();
    assert_eq!(drawn, ways);
}

/// A name as every drawing shows it.
fn shown(name: &str) -> String {
    let misleading = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
    let name = name.trim().replace(['\n', '\t'], " ");
    let chars = name.chars().map(|c| {
        if misleading(c) {
            c.escape_unicode().to_string()
        } else {
            c.to_string()
        }
    });
    chars.collect()
}

/// Drawings in Mermaid, compared with their data.
#[track_caller]
fn assert_all_agree(env: &TestEnvironment, subjects: &[&[&str]]) {
    let picture = |subject: &&[&str]| drawn(env, &[subject, &["--format", "mermaid"][..]].concat());
    let pictures: Vec<String> = subjects.iter().map(picture).collect();
    for (subject, mermaid) in subjects.iter().zip(read(&pictures)) {
        let data = env.data(&[&["graph"], *subject].concat());
        assert_drawn(&data, &mermaid);
    }
}

#[test]
fn an_issue_reads_like_a_story() {
    let env = completed();
    assert_snapshot!(drawn(&env, &["87"]), @"
    issue 87 (issue-to-pr): completed, 12 handoffs

      issue-manager
      │  prep-agent
      │  │  implementer-agent
      │  │  │  orchestrator
      │  │  │  │  reviewer-agent
      │  │  │  │  │  fixer-agent
      │  │  │  │  │  │  validator-agent
      │  │  │  │  │  │  │  closer-agent
      │  │  │  │  │  │  │  │  workflow-complete
      │  │  │  │  │  │  │  │  │
      ├──▶  │  │  │  │  │  │  │   1 ✓ Dispatchers ask for the…  waited 7m, worked 7m
      │  ├──▶  │  │  │  │  │  │   2 ✓ attempt 2 Workspace r…  waited 21m, worked 14m
      │  │  │  │  │  │  │  │  │     ✗ failed with RegistryUnreachable: The package
      │  │  │  │  │  │  │  │  │       registry does not answer
      │  │  ├──▶  │  │  │  │  │   3 ✓ The package registry d…  waited 7m, worked 14m
      │  │  ├─────▶  │  │  │  │   4 ✓ The history page stream…  waited 7m, worked 7m
      │  │  │  │  ├──▶  │  │  │   5 ✓ Review asks for changes   waited 7m, worked 7m
      │  │  │  │  ◀──┤  │  │  │   6 ✓ Fixes ready for review    waited 7m, worked 7m
      │  │  │  │  ├─────▶  │  │   7 ✓ Both findings are answe…  waited 7m, worked 7m
      │  │  │  │  │  ◀──┤  │  │   8 ✓ Validation failed         waited 7m, worked 7m
      │  │  │  │  ◀──┤  │  │  │   9 ✓ Fixes ready for review    waited 7m, worked 7m
      │  │  │  │  ├─────▶  │  │   10 ✓ Both findings are answ…  waited 7m, worked 7m
      │  │  │  │  │  │  ├──▶  │   11 ✓ Merged                   waited 7m, worked 7m
      │  │  │  │  │  │  │  ├──▶   12 ✓ Delivery history can be downloaded as CSV

      ↻ 1 loop: reviewer-agent → fixer-agent → reviewer-agent (5–6)
      ↻ 1 loop: reviewer-agent → validator-agent → fixer-agent → reviewer-agent
        (7–9)
      failed validations: 1
      rounds of changes: 1
    ");
    // One definition of a round.
    let rounds = env.data(&["graph", "87"])["rounds"].clone();
    assert_eq!(
        rounds,
        json!({"failed validations": 1, "rounds of changes": 1})
    );
    let counted = env.data(&["metrics"])["rounds"].clone();
    for round in counted.as_array().unwrap() {
        let own = &rounds[round["name"].as_str().unwrap()];
        assert_eq!(own.as_u64().unwrap_or(0), round["most"], "{round}");
    }
    assert_snapshot!(drawn(&env, &["87", "--format", "mermaid"]), @r#"
    ---
    title: "issue 87 (issue-to-pr): completed, 12 handoffs"
    ---
    flowchart LR
      n0["issue-manager"]
      n1["prep-agent"]
      n2["implementer-agent"]
      n3{{"orchestrator"}}
      n4["reviewer-agent"]
      n5["fixer-agent"]
      n6["validator-agent"]
      n7["closer-agent"]
      n8(["workflow-complete"])
      n0 -->|"1 ✓<br/>waited 7m, worked 7m"| n1
      n1 -->|"2 ✓<br/>waited 21m, worked 14m<br/>✗ failed once before"| n2
      n2 -->|"error<br/>3 ✓<br/>waited 7m, worked 14m"| n3
      n2 -->|"4 ✓<br/>waited 7m, worked 7m"| n4
      n4 -->|"5 ✓<br/>waited 7m, worked 7m"| n5
      n5 -->|"6, 9 ×2 ✓<br/>waited 14m, worked 14m"| n4
      n4 -->|"7, 10 ×2 ✓<br/>waited 14m, worked 14m"| n6
      n6 -->|"8 ✓<br/>waited 7m, worked 7m"| n5
      n6 -->|"11 ✓<br/>waited 7m, worked 7m"| n7
      n7 -->|"12 ✓"| n8
      remarks["↻ 1 loop#58; reviewer-agent → fixer-agent → reviewer-agent<br/>↻ 1 loop#58; reviewer-agent → validator-agent → fixer-agent → reviewer-agent<br/>failed validations#58; 1<br/>rounds of changes#58; 1"]
      style remarks fill:none,stroke:none
    "#);
}

#[test]
fn a_drawing_needs_no_more_than_ascii() {
    let picture = drawn(&five_parts(), &["environment"]) + &drawn(&completed(), &["--protocol"]);
    let plain = graph::ascii(&picture);
    assert!(plain.is_ascii(), "{plain}");
    assert_eq!(plain.chars().count(), picture.chars().count());
    let line = plain.lines().find(|line| line.contains("3 +")).unwrap();
    assert!(
        line.starts_with("  |   |--->    3 + valves: Task broken down"),
        "{line}"
    );
}

#[test]
fn what_failed_stands_out_and_the_place_of_the_work_is_marked() {
    assert_snapshot!(drawn(&failed(), &["87"]), @"
    issue 87 (issue-to-pr): open, 3 handoffs

      issue-manager
      │   prep-agent
      │   │   implementer-agent
      │   │   │   orchestrator
      │   │   │   │
      ├───▶   │   │    1 ✓ Dispatchers ask for their delivery…  waited 7m, worked 7m
      │   ├───▶   │    2 ✗ failed Workspace ready               waited 7m, worked 7m
      │   │   │   │      ✗ failed with RegistryUnreachable: The package registry
      │   │   │   │        does not answer
      │   │   ├───▶    3 ○ pending The package registry does not answer    waited 7m
      │   │   ◆   │    here: implementer-agent: 2 ✗ failed for 7m
      │   │   │   ◆    here: orchestrator: 3 ○ pending for 7m
    ");
}

#[test]
fn work_that_may_go_on_is_with_whoever_may_send() {
    let env = begun(2);
    run(&env, "complete 87 --as prep-agent");
    assert_snapshot!(drawn(&env, &["87"]), @"
    issue 87 (issue-to-pr): open, 1 handoff

      issue-manager
      │   prep-agent
      │   │
      ├───▶    1 ✓ Dispatchers ask for their delivery history…  waited 7m, worked 7m
      │   ◆    here: prep-agent: may send on from 1
    ");
    // Once it is over it is nowhere.
    assert!(!drawn(&completed(), &["87"]).contains("here:"));
}

#[test]
fn requests_and_their_answers_are_pairs() {
    let env = asked();
    assert_snapshot!(drawn(&env, &[TRACE]), @"
    issue 5a1c7e90-0b2d-4f38-9c64-d07e1f2a3b4c (delegation): open, 8 handoffs

      document_generator
      │   research_agent
      │   │   validator
      │   │   │   orchestrator
      │   │   │   │
      ├───▶   │   │    1 ✓ Depths of berth 4                    waited 1s, worked 1s
      ◀┄┄┄┤   │   │    2 ✓ response to 1: Answer to a request for help
      ├───────▶   │    3 ✓ Read chapter 2                       waited 1s, worked 4s
      │   │   ├───▶    4 ✓ Which tide table counts?             waited 1s, worked 1s
      │   │   ◀┄┄┄┤    5 ✓ response to 4: Answer to a request for help
      ◀┄┄┄┄┄┄┄┤   │    6 ✓ response to 3: Answer to a request for help
      ├───▶   │   │    7 ✗ failed Currents of berth 4           waited 1s, worked 1s
      │   │   │   │      ✗ failed with NOT_RESOLVED: Answer to a request for help
      ◀┄┄┄┤   │   │    8 ✓ response to 7: Answer to a request for help
      │   ◆   │   │    here: research_agent: 7 ✗ failed for 1s
    ");
    let edges = env.data(&["graph", TRACE])["edges"].clone();
    let edges: Vec<String> = edges
        .as_array()
        .unwrap()
        .iter()
        .map(|e| {
            format!(
                "{} {}→{} {} {}",
                e["kind"], e["from"], e["to"], e["handoffs"], e["notes"]
            )
        })
        .map(|line| line.replace('"', ""))
        .collect();
    assert_snapshot!(edges.join("\n"), @"
    handoff n0→n1 [1,7] null
    answer n1→n0 [2,8] [answers 1, 7]
    handoff n0→n2 [3] null
    handoff n2→n3 [4] null
    answer n3→n2 [5] [answers 4]
    answer n2→n0 [6] [answers 3]
    ");
}

#[test]
fn work_that_another_takes_over_goes_on_from_there() {
    let env = asked();
    run(
        &env,
        &format!("reassign {TRACE}.7 --to validator --as orchestrator --reason ill"),
    );
    assert_snapshot!(drawn(&env, &[TRACE]), @"
    issue 5a1c7e90-0b2d-4f38-9c64-d07e1f2a3b4c (delegation): open, 8 handoffs

      document_generator
      │   research_agent
      │   │   validator
      │   │   │   orchestrator
      │   │   │   │
      ├───▶   │   │    1 ✓ Depths of berth 4                    waited 1s, worked 1s
      ◀┄┄┄┤   │   │    2 ✓ response to 1: Answer to a request for help
      ├───────▶   │    3 ✓ Read chapter 2                       waited 1s, worked 4s
      │   │   ├───▶    4 ✓ Which tide table counts?             waited 1s, worked 1s
      │   │   ◀┄┄┄┤    5 ✓ response to 4: Answer to a request for help
      ◀┄┄┄┄┄┄┄┤   │    6 ✓ response to 3: Answer to a request for help
      ├───▶   │   │    7 ○ pending attempt 2 Currents of bert…  waited 2s, worked 1s
      │   │   │   │      ✗ failed with NOT_RESOLVED: Answer to a request for help
      │   ├┄┄┄▶   │      reassigned to validator
      ◀┄┄┄┤   │   │    8 ✓ response to 7: Answer to a request for help
      │   │   ◆   │    here: validator: 7 ○ pending for 1s
    ");
    assert_all_agree(&env, &[&[TRACE]]);
}

#[test]
fn a_protocol_shows_how_its_ways_were_used() {
    let env = asked();
    assert_snapshot!(drawn(&env, &["--protocol"]), @"
    protocol delegation: 8 handoffs in 1 issue

    document_generator
      ├━━▶ research_agent      ×2     waited 1s      worked 1s
      │     request; opens issues
      ├━━▶ validator           ×1     waited 1s      worked 4s
      │     request; opens issues
      └──▷ orchestrator        never taken  request; opens issues
    validator
      ├──▷ document_generator  never taken  request; opens issues
      ├━━▶ orchestrator        ×1     waited 1s      worked 1s
      │     request; opens issues
      ├┄┄▶ document_generator  ×1  response
      └┄┄✗ research_agent      forbidden
            a check judges what is there; what is missing is for the document's
            writer to ask for
    research_agent
      ├──▷ orchestrator        never taken  request; opens issues
      ├┄┄▶ document_generator  ×2  response
      └┄┄✗ document_generator  forbidden
            research answers documents and does not start them
    orchestrator (orchestrator)
      └┄┄▶ validator           ×1  response
    any agent
      └──▷ human               never taken  request; opens issues

    Times are medians: from the sending until it was taken up, and of work that has
    ended.
    ");
    assert_snapshot!(drawn(&env, &["--protocol", "delegation", "--format", "mermaid"]), @r#"
    ---
    title: "protocol delegation: 8 handoffs in 1 issue"
    ---
    flowchart LR
      n0["document_generator<br/>Writes documents"]
      n1["validator<br/>Checks documents"]
      n2["research_agent<br/>Finds what documents need"]
      n3{{"orchestrator<br/>Takes over where no specialist can help, and asks users"}}
      n4[/"human<br/>Decides what agents must not or cannot decide"/]
      n5("any agent")
      n0 ==>|"request<br/>×2 ✗ 1 failed<br/>median#58; waited 1s, worked 1s<br/>opens issues"| n2
      n0 ==>|"request<br/>×1<br/>median#58; waited 1s, worked 4s<br/>opens issues"| n1
      n0 -->|"request<br/>opens issues"| n3
      n1 -->|"request<br/>opens issues"| n0
      n1 ==>|"request<br/>×1<br/>median#58; waited 1s, worked 1s<br/>opens issues"| n3
      n2 -->|"request<br/>opens issues"| n3
      n5 -->|"request<br/>opens issues"| n4
      n2 -.->|"response<br/>×2"| n0
      n3 -.->|"response<br/>×1"| n1
      n1 -.->|"response<br/>×1"| n0
      n2 -.-x|"✗ research answers documents and does<br/>not start them"| n0
      n1 -.-x|"✗ a check judges what is there#59; what is<br/>missing is for the document#39;s writer to<br/>ask for"| n2
      linkStyle 2,3,5,6 stroke:#8c959f,stroke-width:1px
      linkStyle 10,11 stroke:#cf222e
    "#);
    let env = completed();
    let route = |data: &Value, from: &str, to: &str| {
        let nodes = data["nodes"].as_array().unwrap();
        let id = |name: &str| &nodes.iter().find(|n| n["name"] == name).unwrap()["id"];
        let mut edges = data["edges"].as_array().unwrap().iter();
        let edge = edges
            .find(|e| e["from"] == *id(from) && e["to"] == *id(to))
            .unwrap();
        (
            edge["count"].clone(),
            edge["waited_seconds"].clone(),
            edge["worked_seconds"].clone(),
        )
    };
    let data = env.data(&["graph", "--protocol"]);
    let fixes = route(&data, "fixer-agent", "reviewer-agent");
    assert_eq!(fixes, (json!(2), json!(420), json!(420)));
    // Taken up at once, failed, and worked on once more.
    let prepared = route(&data, "prep-agent", "implementer-agent");
    assert_eq!(prepared, (json!(1), json!(420), json!(840)));
    let errors = route(&data, "any agent", "orchestrator");
    assert_eq!(errors, (json!(1), json!(420), json!(840)));
    // Only what was sent since then counts.
    let late = env.data(&["graph", "--protocol", "--since", "2026-03-02T11:00:00Z"]);
    assert_eq!(route(&late, "prep-agent", "implementer-agent").0, 0);
    assert_eq!(route(&late, "validator-agent", "closer-agent").0, 1);
}

#[test]
fn a_contract_that_another_decides_on_first_counts_for_its_own_route() {
    let data = evaluated();
    let data = data.data(&["graph", "--protocol"]);
    let nodes = data["nodes"].as_array().unwrap();
    let name = |id: &Value| nodes.iter().find(|n| n["id"] == *id).unwrap()["name"].clone();
    let taken = data["edges"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|edge| edge["count"] != 0)
        .map(|edge| {
            format!(
                "{} → {} {}",
                name(&edge["from"]),
                name(&edge["to"]),
                edge["count"]
            )
        })
        .map(|line| line.replace('"', ""));
    assert_eq!(
        taken.collect::<Vec<_>>(),
        [
            "ResearchGPT → DesignGPT 2",
            "DesignGPT → ImplementationGPT 1",
            "MetaGPT → ResearchGPT 1",
            "MetaGPT → DesignGPT 1",
            "MetaGPT → USER 1",
        ]
    );
}

#[test]
fn whom_a_contract_is_for_is_drawn_where_another_decides_first() {
    let env = evaluated();
    let issue = env.data(&["graph", "ferry-71"]);
    let meant = issue["steps"].as_array().unwrap().iter();
    let meant: Vec<String> = meant
        .filter_map(|step| {
            Some(format!(
                "{} {}",
                step["number"],
                step["meant_for"].as_str()?
            ))
        })
        .collect();
    assert!(!meant.is_empty(), "{issue:#}");
    let terminal = drawn(&env, &["ferry-71"]);
    let mermaid = drawn(&env, &["ferry-71", "--format", "mermaid"]);
    for one in &meant {
        let (number, agent) = one.split_once(' ').unwrap();
        assert!(terminal.contains(&format!("for {agent}:")), "{terminal}");
        let note = format!("{number} for {agent}");
        assert!(mermaid.contains(&note), "{mermaid}");
    }
}

#[test]
fn a_lease_that_ran_out_is_no_healthy_work() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    assert!(drawn(&env, &["87"]).contains("1 ◐ in progress"));
    env.wait(86_400);
    let terminal = drawn(&env, &["87"]);
    assert!(terminal.contains("1 ! lease ran out"), "{terminal}");
    assert!(!terminal.contains('◐'), "{terminal}");
    let mermaid = drawn(&env, &["87", "--format", "mermaid"]);
    assert!(mermaid.contains("#33; lease ran out"), "{mermaid}");
    assert!(mermaid.contains("classDef late"), "{mermaid}");
    let data = env.data(&["graph", "87"]);
    assert_eq!(
        (&data["steps"][0]["mark"], &data["edges"][0]["late"]),
        (&json!("late"), &json!(1))
    );
    // Of tasks too.
    let env = five_parts();
    env.wait(30 * 86_400);
    let tasks = drawn(&env, &["--tasks", "environment"]);
    assert!(tasks.contains("lease ran out, with"), "{tasks}");
    assert!(tasks.contains(" late"), "{tasks}");
}

#[test]
fn tasks_show_what_they_wait_for_and_which_are_ready() {
    let env = five_parts();
    assert_snapshot!(drawn(&env, &["--tasks", "environment"]), @"
    tasks of issue environment: 1 of 7 done, 2 ready

    ◐ 021: broken down, with task-orchestrator (environment.1)
      ├─ ✓ valves: done (environment.3)
      ├─ ◐ pumps: execution-guardian works on it (environment.4)
      │    after valves ✓
      ├─ ○ sensors: ready for execution-guardian (environment.5)
      │    after valves ✓
      ├─ ◌ alarms: waits (environment.6)
      │    after pumps ◐, sensors ○
      └─ ◌ manual: waits (environment.7)
           after alarms ◌
    ○ 022: ready for task-orchestrator (environment.2)
    ");
    assert_snapshot!(drawn(&env, &["--tasks", "environment", "--format", "mermaid"]), @r##"
    ---
    title: "tasks of issue environment: 1 of 7 done, 2 ready"
    ---
    flowchart TB
      subgraph g0["parts of 021#58; 1 of 5 done"]
        n2["✓ valves<br/>done #40;environment.3#41;"]
        n3["◐ pumps<br/>execution-guardian works on it #40;environment.4#41;"]
        n4["○ sensors<br/>ready for execution-guardian #40;environment.5#41;"]
        n5["◌ alarms<br/>waits #40;environment.6#41;"]
        n6["◌ manual<br/>waits #40;environment.7#41;"]
      end
      n0["◐ 021<br/>broken down, with task-orchestrator #40;environment.1#41;"]
      n1["○ 022<br/>ready for task-orchestrator #40;environment.2#41;"]
      n0 -.- n2
      n2 --> n3
      n2 --> n4
      n3 --> n5
      n4 --> n5
      n5 --> n6
      classDef done fill:#dafbe1,stroke:#1a7f37,color:#1f2328
      class n2 done
      classDef ready fill:#fff8c5,stroke:#9a6700,color:#1f2328
      class n1,n4 ready
      classDef waiting fill:#f6f8fa,stroke:#57606a,color:#1f2328
      class n5,n6 waiting
      classDef working fill:#ddf4ff,stroke:#0969da,color:#1f2328,stroke-width:3px
      class n0,n3 working
    "##);
}

#[test]
fn mermaid_reads_what_is_drawn_under_every_protocol() {
    assert_all_agree(&completed(), &[&["87"], &["--protocol"]]);
    assert_all_agree(&failed(), &[&["87"]]);
    assert_all_agree(&called(), &[&["loan-list"], &["--protocol"]]);
    assert_all_agree(&asked(), &[&[TRACE], &["--protocol"]]);
    assert_all_agree(&evaluated(), &[&["ferry-71"], &["--protocol"]]);
    let tasks = five_parts();
    assert_all_agree(
        &tasks,
        &[
            &["environment"],
            &["--tasks", "environment"],
            &["--protocol"],
        ],
    );
}

#[test]
fn names_of_tasks_are_only_names() {
    let names = hostile();
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let on = i.checked_sub(1).map(|before| names[before].as_str());
        parts.push((name, on.into_iter().filter(|_| i % 3 != 0).collect()));
    }
    let parts: Vec<(&str, &[&str])> = parts
        .iter()
        .map(|(name, on)| (*name, on.as_slice()))
        .collect();
    let env = broken_down(with_any_names(), "a \"whole\" --> [end] <b>", &parts);
    assert_all_agree(&env, &[&["--tasks", "environment"], &["environment"]]);
    let text = drawn(&env, &["--tasks", "environment"]);
    let lines = text.lines().count();
    let controls = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(controls), "{text}");
    assert!(lines > names.len() / 2 && text.contains("日本語"), "{text}");
}

#[test]
fn words_of_a_protocol_are_only_words() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "delegation", "words");
    let all = hostile().join(" ");
    folder.define(|definition| {
        let routes = definition["routes"].as_array_mut().unwrap();
        let forbidden = routes
            .iter_mut()
            .find(|route| route.get("forbidden").is_some());
        forbidden.unwrap()["forbidden"] = all.clone().into();
        // A role is one line of characters that are seen.
        let seen = |c: &char| !c.is_control() && !handoff::base::text::is_misleading(*c);
        definition["agents"][0]["role"] = all.chars().filter(seen).collect::<String>().into();
    });
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    assert_all_agree(&env, &[&["--protocol"]]);
    let mermaid = drawn(&env, &["--protocol", "--format", "mermaid"]);
    let read = read(&[mermaid]).remove(0);
    assert_eq!(read["config"].get("securityLevel"), None, "{read:#}");
}

#[test]
fn a_long_issue_is_still_a_picture() {
    let agents: [AgentName; 3] =
        ["reviewer-agent", "fixer-agent", "b"].map(|name| name.parse().unwrap());
    let [reviewer, fixer, other] = &agents;
    let start = Moment::from_timestamp_millis(1_772_442_000_000).unwrap();
    let at = |number: u32, seconds: i64| {
        start + TimeDelta::minutes(i64::from(number)) + TimeDelta::seconds(seconds)
    };
    let change = |at: Moment, event: Option<Event>, to: State| ChangeSurvey {
        details: None,
        at,
        by: fixer.borrowed(),
        event,
        to,
        receiver: None,
        failure: None,
        reason: None,
        ran_out_at: None,
        traceparent: None,
        keys: Vec::new(),
    };
    let summaries: Vec<String> = (0..=1000).map(|number| format!("Round {number}")).collect();
    let handoffs = (1_u32..=1000)
        .zip(&summaries[1..])
        .map(|(number, summary)| {
            let (from, to, contract_type) = match number % 2 {
                0 => (reviewer, fixer, "reviewer-agent-to-fixer-agent"),
                _ => (fixer, reviewer, "fixer-agent-to-reviewer-agent"),
            };
            HandoffSurvey {
                number,
                contract_type,
                from: from.borrowed(),
                to: to.borrowed(),
                sent_to: to.borrowed(),
                intended: None,
                state: State::Completed,
                priority: None,
                status: None,
                summary,
                follows: (number > 1).then(|| number - 1),
                answers: None,
                replaces: None,
                task: None,
                waits_for: Vec::new(),
                attempt: 1,
                not_before: None,
                expires_at: None,
                lease_seconds: None,
                contradicted: 0,
                violations: 0,
                usage: Vec::new(),
                changes: vec![
                    change(at(number, 0), None, State::Pending),
                    change(at(number, 20), Some(Event::Claim), State::InProgress),
                    change(at(number, 60), Some(Event::Complete), State::Completed),
                ],
            }
        });
    let issue = IssueSurvey {
        key: "9".parse().unwrap(),
        title: "t",
        protocol: "issue-to-pr".parse().unwrap(),
        status: IssueStatus::Open,
        opened_at: Moment::default(),
        counts_since: Moment::default(),
        updated_at: Moment::default(),
        completed_at: None,
        paused: None,
        steps: 1000,
        reopened: 0,
        counts_after: 0,
        why_reopened: None,
        rounds: Vec::new(),
        unfollowed: vec![1000],
        awaiting: vec![(1000, other.clone())],
        decisions: Vec::new(),
        findings: 0,
        unsettled: 0,
        spent: handoff::model::Spending::new(),
        handoffs: handoffs.collect(),
    };
    let folder = built_in("issue-to-pr").unwrap();
    let protocol = Protocol::load(folder.file("protocol.json").unwrap()).unwrap();
    let now = issue.handoffs[999].changes[2].at;
    let picture = graph::issue_graph(&issue, &protocol, now);
    assert_eq!((picture.nodes.len(), picture.edges.len()), (2, 2));
    assert_eq!(picture.steps.len(), 1000);
    assert_snapshot!(graph::mermaid(&picture), @r#"
    ---
    title: "issue 9 (issue-to-pr): open, 1000 handoffs"
    ---
    flowchart LR
      n0["➤ fixer-agent<br/>may send on from 1000"]
      n1["reviewer-agent"]
      n0 -->|"1, 3 … 999 ×500 ✓<br/>waited 2h 46m, worked 5h 33m"| n1
      n1 -->|"2, 4 … 1000 ×500 ✓<br/>waited 2h 46m, worked 5h 33m"| n0
      remarks["↻ 500 loops#58; fixer-agent → reviewer-agent → fixer-agent"]
      style remarks fill:none,stroke:none
      classDef ready fill:#fff8c5,stroke:#9a6700,color:#1f2328
      class n0 ready
    "#);
    let text = graph::terminal(&picture, 80, &|_, text| text.to_owned());
    assert!(text.lines().count() < 60, "{text}");
    let end: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains('⋮'))
        .collect();
    assert_snapshot!([end[0]].iter().chain(&end[28..]).copied().collect::<Vec<_>>().join("\n"), @"
    │   │    ⋮ 960 more: `git handoff list --issue 9`
    ◀───┤    998 ✓ Round 998                                waited 20s, worked 40s
    ├───▶    999 ✓ Round 999                                waited 20s, worked 40s
    ◀───┤    1000 ✓ Round 1000                              waited 20s, worked 40s
    ◆   │    here: fixer-agent: may send on from 1000

    ↻ 500 loops: fixer-agent → reviewer-agent → fixer-agent (1–2, 3–4, 5–6, 7–8,
      …)

    fixer-agent → reviewer-agent: 1, 3 … 999 ×500 ✓, waited 2h 46m, worked 5h 33m
    reviewer-agent → fixer-agent: 2, 4 … 1000 ×500 ✓, waited 2h 46m, worked 5h 33m
    ");
    read(&[graph::mermaid(&picture)]);
}

#[test]
fn many_tasks_are_cut_down_to_what_mermaid_takes() {
    // Each waits for the three before it, and has as long a name as there may be.
    let name = |i: usize| format!("{i:03}{}", "\"<>".repeat(41));
    let tasks: Vec<Value> = (0..500usize)
        .map(|i| {
            let on: Vec<String> = (i.saturating_sub(3)..i).map(name).collect();
            json!({"id": name(i), "parent": "whole", "handoff": format!("9.{}", i + 1),
                "depends_on": on, "state": if i < 400 { "completed" } else { "pending" }})
        })
        .collect();
    let issue = json!({"version": 4, "issue": "9", "title": "t", "protocol": "task-breakdown", "status": "open",
        "opened_at": "2026-03-02T09:00:00Z", "updated_at": "2026-03-02T09:00:00Z", "handoffs": 500,
        "steps": 500, "open": [], "tasks": tasks, "facts": {}});
    let issue: Issue = serde_json::from_value(issue).unwrap();
    let survey = IssueSurvey::of(&issue, &[]);
    let picture = graph::task_graph(&issue, &survey, issue.opened_at);
    assert_eq!(picture.nodes.len(), 500);
    let text = graph::mermaid(&picture);
    let found = read(&[text]).remove(0);
    let nodes = found["nodes"].as_array().unwrap();
    let remarks = nodes.iter().find(|node| node["id"] == "remarks").unwrap();
    assert_snapshot!(remarks["label"].as_str().unwrap(), @"200 of 500 not drawn<br>1004 of 1494 edges not drawn");
    // What is not done yet is all there.
    let id = |i: usize| format!("n{i}");
    assert!((400..500).all(|i| nodes.iter().any(|node| node["id"] == id(i))));
    let edges = found["edges"].as_array().unwrap();
    let drawn = |from: usize, to: usize| {
        let mut edges = edges.iter();
        edges.any(|edge| edge["from"] == id(from) && edge["to"] == id(to))
    };
    assert!((403..500).all(|i| (i - 3..i).all(|on| drawn(on, i))));
    let told = graph::terminal(&picture, 80, &|_, text| text.to_owned());
    assert!(
        told.contains("400 done") && told.lines().count() < 600,
        "{told}"
    );
}

#[test]
fn what_is_not_there_is_said() {
    let env = failed();
    let said = |args: &[&str]| {
        let ran = env.handoff(&[&["graph", "--json"], args].concat());
        let refused = Refused::of(&ran);
        format!(
            "{} {}: {} ({})",
            refused.exit, refused.code, refused.message, refused.hint
        )
    };
    assert_snapshot!(said(&["9"]), @"6 no_issue: there is no issue 9 (`git handoff list` shows every issue)");
    assert_snapshot!(said(&["--tasks", "87"]), @"6 no_tasks: issue 87 has no tasks (`git handoff graph 87` draws its handoffs)");
    assert_snapshot!(said(&["--protocol", "delegation"]), @"6 no_protocol: the ledger has no protocol delegation (the ledger has: issue-to-pr; `git handoff protocol add` puts another in force)");
    assert_snapshot!(said(&["--protocol", "--since", "soon"]), @r#"2 usage: invalid value 'soon' for '--since <TIME>': "soon" is not a time: write 2026-03-04, 2026-03-04T05:06:07Z, or how long ago: 7d (see `git handoff graph -h`)"#);
    for wrong in [
        &[][..],
        &["87", "--protocol", "x"],
        &["--tasks"],
        &["87", "--since", "2026-01-01"],
    ] {
        env.handoff(&[&["graph"], wrong].concat()).exits(2);
    }
    // Nothing was sent yet.
    let env = TestEnvironment::with_ledger();
    assert!(drawn(&env, &["--protocol"]).contains("0 handoffs in 0 issues"));
}

#[test]
fn drawings_change_nothing() {
    let env = five_parts();
    let before = (env.tip(), env.git(&env.repo(), &["status", "--porcelain"]));
    for args in [
        &["environment"][..],
        &["--tasks", "environment"],
        &["--protocol"],
    ] {
        drawn(&env, args);
    }
    assert_eq!(
        (env.tip(), env.git(&env.repo(), &["status", "--porcelain"])),
        before
    );
}

#[test]
fn the_example_in_the_document_is_what_is_drawn() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observability.md");
    let document = fs::read_to_string(path).unwrap();
    let args = ["--tasks", "environment"];
    let command = format!("$ git handoff graph {}\n", args.join(" "));
    let block = format!("```text\n{command}{}```\n", drawn(&five_parts(), &args));
    assert!(
        document.contains(&block),
        "docs/observability.md lacks\n{block}"
    );
}

#[test]
fn the_drawings_of_the_readme_are_what_the_program_prints() {
    let mut pictures = Command::new(project().join("scripts/pictures"));
    let ran = pictures.args([program(), "--check"]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
}
