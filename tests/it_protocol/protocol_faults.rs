//! Every fault of a protocol that `protocol check` knows, one at a time.

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::team::{BUILT_IN, Folder, Refused};

/// Sets a value, adds one at the end of a list, or takes one away.
fn change(definition: &mut Value, pointer: &str, value: &Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match definition.pointer_mut(parent).unwrap() {
        Value::Object(members) if value.is_null() => drop(members.shift_remove(key).unwrap()),
        Value::Object(members) => drop(members.insert(key.to_owned(), value.clone())),
        Value::Array(items) if key == "-" => items.push(value.clone()),
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
        other => panic!("{pointer}: {other}"),
    }
}

#[test]
fn every_fault_of_a_protocol_is_told_with_its_place() {
    let table: Vec<(&str, Vec<(&str, Value)>)> = vec![
        ("issue-to-pr", vec![("/format", json!(2))]),
        ("issue-to-pr", vec![("/formats", json!([]))]),
        ("issue-to-pr", vec![("/formats/1", json!("yaml"))]),
        ("issue-to-pr", vec![("/fields/at", json!("timestamp"))]),
        ("issue-to-pr", vec![("/fields/summary", json!("/a~2"))]),
        ("issue-to-pr", vec![("/fields/from", json!(null))]),
        ("issue-to-pr", vec![("/fields/to", json!(null))]),
        (
            "issue-to-pr",
            vec![("/fields/new_issue", json!("not a key"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/0/fields", json!({"at": "when"}))],
        ),
        (
            "issue-to-pr",
            vec![("/agents/1/id", json!("issue-manager"))],
        ),
        (
            "issue-to-pr",
            vec![("/agents/1/aliases", json!(["issue-manager"]))],
        ),
        (
            "issue-to-pr",
            vec![
                ("/agents/1/allowed", json!(["branch"])),
                ("/agents/1/forbidden", json!(["branch"])),
            ],
        ),
        (
            "issue-to-pr",
            vec![("/words/priorities/1", json!("critical"))],
        ),
        ("issue-to-pr", vec![("/contracts/1/type", json!("error"))]),
        (
            "issue-to-pr",
            vec![("/contracts/0/root", json!("hand off"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/0/when", json!({"type": "x"}))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/8/summary", json!("error"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/8/failure/details", json!("details"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/0/schema", json!("../x.json"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/0/template", json!("/etc/x.json"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/0/xsd", json!("schemas/.x.xsd"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/9/implied_from", json!("nobody"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/9/implied_to", json!("nobody"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/8/outcome", json!({"gone": "fail"}))],
        ),
        (
            "issue-to-pr",
            vec![("/requirements/approved/shown_by", json!([]))],
        ),
        (
            "issue-to-pr",
            vec![("/requirements/approved/status", json!(["fine"]))],
        ),
        (
            "issue-to-pr",
            vec![(
                "/requirements/approved/undone_by/0",
                json!("reviewer-agent-to-validator-agent"),
            )],
        ),
        (
            "issue-to-pr",
            vec![(
                "/requirements/completed",
                json!({"title": "x", "shown_by": ["error"]}),
            )],
        ),
        ("issue-to-pr", vec![("/routes/1/from", json!("nobody"))]),
        ("issue-to-pr", vec![("/routes/1/to", json!("nobody"))]),
        ("issue-to-pr", vec![("/routes/1/via", json!("nobody"))]),
        ("issue-to-pr", vec![("/routes/1/via", json!("prep-agent"))]),
        (
            "issue-to-pr",
            vec![("/routes/1/from", json!("workflow-complete"))],
        ),
        ("issue-to-pr", vec![("/routes/1/contracts", json!([]))]),
        (
            "issue-to-pr",
            vec![("/routes/1/contracts/-", json!("letter"))],
        ),
        (
            "issue-to-pr",
            vec![
                ("/routes/0/opens", json!(false)),
                ("/routes/10/opens", json!(false)),
            ],
        ),
        (
            "issue-to-pr",
            vec![(
                "/routes/7/contracts/-",
                json!("reviewer-agent-to-fixer-agent"),
            )],
        ),
        (
            "issue-to-pr",
            vec![(
                "/forbidden",
                json!([{"from": "nobody", "to": "noone", "reason": "x"}]),
            )],
        ),
        (
            "issue-to-pr",
            vec![(
                "/forbidden",
                json!([{"from": "fixer-agent", "to": "reviewer-agent", "reason": "x"}]),
            )],
        ),
        (
            "issue-to-pr",
            vec![("/facts/branch", json!({"last": ["branch"]}))],
        ),
        ("issue-to-pr", vec![("/facts/branch", json!({"sum": []}))]),
        (
            "issue-to-pr",
            vec![("/facts/review_iterations", json!({"count": ["letter"]}))],
        ),
        (
            "issue-to-pr",
            vec![(
                "/agents/-",
                json!({"id": "idler", "role": "Waits", "kind": "specialist"}),
            )],
        ),
        (
            "issue-to-pr",
            vec![(
                "/routes/4/contracts",
                json!(["reviewer-agent-to-fixer-agent"]),
            )],
        ),
        ("issue-to-pr", vec![("/contracts/0/formats", json!(["md"]))]),
        (
            "issue-to-pr",
            vec![("/contracts/8/answers", json!(["error"]))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/8/answers", json!(["letter"]))],
        ),
        ("issue-to-pr", vec![("/limits/loops", json!("x"))]),
        (
            "issue-to-pr",
            vec![("/routes/1/from", json!(["prep-agent", "nobody"]))],
        ),
        ("issue-to-pr", vec![("/routes/1/to", json!(["no name"]))]),
        ("issue-to-pr", vec![("/routes/1/to", json!(7))]),
        (
            "issue-to-pr",
            vec![("/facts/total_commits/exclusive", json!(true))],
        ),
        (
            "issue-to-pr",
            vec![("/facts/port", json!({"exclusive": true}))],
        ),
        ("issue-to-pr", vec![("/alerts/0", json!("dead"))]),
        (
            "issue-to-pr",
            vec![("/alerts/0", json!({"name": "dead", "metric": "dead"}))],
        ),
        (
            "issue-to-pr",
            vec![(
                "/documents",
                json!({"map": {"title": "Map", "schema": "../map.json"}}),
            )],
        ),
        (
            "issue-to-pr",
            vec![(
                "/contracts/8/after",
                json!({"/status": {"failure": ["gone"]}}),
            )],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/0/schema", json!("schemas/gone.schema.json"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/0/template", json!("templates/gone.json"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/0/xsd", json!("schemas/gone.xsd"))],
        ),
        (
            "issue-to-pr",
            vec![(
                "/documents",
                json!({"map": {"title": "Map", "schema": "schemas/map.json"}}),
            )],
        ),
        ("issue-to-pr", vec![("/fields/branch", json!("/bough"))]),
        (
            "issue-to-pr",
            vec![("/contracts/0/fields", json!({"at": "/moment"}))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/0/when", json!({"/colour": "red"}))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/8/summary", json!("/error/text"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/8/failure/code", json!("/error/code"))],
        ),
        (
            "issue-to-pr",
            vec![("/facts/branch", json!({"last": ["/branch", "/bough"]}))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/8/outcome", json!({"ready": "fail"}))],
        ),
        (
            "issue-to-pr",
            vec![("/words/status/parked", json!("blocked"))],
        ),
        (
            "issue-to-pr",
            vec![("/contracts/0/fields", json!({"from": "/sender"}))],
        ),
        (
            "orchestrator-specialist",
            vec![("/contracts/0/named_schemas/0/data", json!("data"))],
        ),
        (
            "orchestrator-specialist",
            vec![("/contracts/0/named_schemas/0/schema", json!("/input/form"))],
        ),
        (
            "orchestrator-specialist",
            vec![("/contracts/0/expects/artifact_type", json!("type"))],
        ),
        (
            "orchestrator-specialist",
            vec![(
                "/contracts/0/expects/destination",
                json!("/expected_output/place"),
            )],
        ),
        (
            "orchestrator-specialist",
            vec![("/contracts/1/artifacts/path", json!("path"))],
        ),
        (
            "orchestrator-specialist",
            vec![("/contracts/1/artifacts/list", json!("/outputs"))],
        ),
        (
            "orchestrator-specialist",
            vec![("/contracts/0/max_retries", json!("retries"))],
        ),
        (
            "orchestrator-specialist",
            vec![("/contracts/0/max_retries", json!("/retry_policy/most"))],
        ),
        (
            "orchestrator-specialist",
            vec![("/words/errors/VALIDATION_FAILED/runs", json!(["SIGNAL"]))],
        ),
        (
            "orchestrator-specialist",
            vec![("/limits/longest_run_seconds", json!(0))],
        ),
        (
            "orchestrator-specialist",
            vec![("/contracts/1/note", json!(true))],
        ),
        (
            "orchestrator-specialist",
            vec![("/routes/0/contracts/-", json!("response"))],
        ),
        (
            "orchestrator-specialist",
            vec![(
                "/contracts/2/when",
                json!({"/status": ["completed", "failed"]}),
            )],
        ),
        (
            "delegation",
            vec![("/contracts/1/critical_inputs/at", json!("open"))],
        ),
        (
            "delegation",
            vec![("/contracts/1/critical_inputs/at", json!("/open"))],
        ),
        ("delegation", vec![("/contracts/2/agents", json!(["who"]))]),
        ("delegation", vec![("/contracts/2/agents", json!(["/who"]))]),
        (
            "delegation",
            vec![("/contracts/1/answers", json!(["letter"]))],
        ),
        (
            "directive",
            vec![("/contracts/0/actions", json!("actions"))],
        ),
        ("directive", vec![("/contracts/0/actions", json!("/deeds"))]),
        (
            "directive",
            vec![("/contracts/1/after", json!({"/verdict": {}}))],
        ),
        ("directive", vec![("/agents/3/kind", json!("specialist"))]),
        (
            "directive",
            vec![("/contracts/0/artifacts/path", json!("/where"))],
        ),
        (
            "task-breakdown",
            vec![("/contracts/1/tasks/groups", json!("groups"))],
        ),
        (
            "task-breakdown",
            vec![("/contracts/1/tasks/parent", json!("/data/parent"))],
        ),
        (
            "task-breakdown",
            vec![("/fields/new_issue", json!("/data/none"))],
        ),
    ];
    let env = TestEnvironment::new();
    let mut text = String::new();
    for protocol in BUILT_IN {
        let folder = Folder::copy(&env, protocol, protocol);
        let original = folder.read("protocol.json");
        let rows = table.iter().filter(|(name, _)| *name == protocol);
        for (_, changes) in rows {
            let mut definition = original.clone();
            for (pointer, value) in changes {
                change(&mut definition, pointer, value);
            }
            folder.write("protocol.json", definition.to_string());
            let args = ["protocol", "check", &folder.path(), "--json"];
            let (pointer, value) = &changes[0];
            let ran = env.handoff(&args);
            assert_eq!(ran.status, 1, "{pointer} = {value}: {}", ran.shown);
            let refused = Refused::of(&ran);
            text += &format!("{protocol} {pointer} = {value}\n");
            for finding in refused.findings {
                text += &format!("  {finding}\n");
            }
        }
    }
    insta::assert_snapshot!(text, @r#"
    issue-to-pr /format = 2
      protocol.format /format: form 2 of protocol.json is not known; this program reads 1
    issue-to-pr /formats = []
      protocol.format /formats: there is no format that a contract may have; use xml, json, md
    issue-to-pr /formats/1 = "yaml"
      protocol.format /formats/1: `yaml` is not a contract format; use xml, json, md
    issue-to-pr /fields/at = "timestamp"
      protocol.pointer /fields/at: `timestamp` is not a JSON Pointer to a field, such as /from
    issue-to-pr /fields/summary = "/a~2"
      protocol.pointer /fields/summary: `/a~2` is not a JSON Pointer to a field, such as /from
      protocol.unknown_field /fields/summary: no schema has a field `/a~2`
    issue-to-pr /fields/from = null
      protocol.field /contracts/0/fields/from: nothing says where `issue-manager-to-prep-agent` has its `from`
      protocol.field /contracts/1/fields/from: nothing says where `prep-agent-to-implementer-agent` has its `from`
      protocol.field /contracts/2/fields/from: nothing says where `implementer-agent-to-reviewer-agent` has its `from`
      protocol.field /contracts/3/fields/from: nothing says where `reviewer-agent-to-fixer-agent` has its `from`
      protocol.field /contracts/4/fields/from: nothing says where `reviewer-agent-to-validator-agent` has its `from`
      protocol.field /contracts/5/fields/from: nothing says where `fixer-agent-to-reviewer-agent` has its `from`
      protocol.field /contracts/6/fields/from: nothing says where `validator-agent-to-closer-agent` has its `from`
      protocol.field /contracts/7/fields/from: nothing says where `validator-agent-to-fixer-agent` has its `from`
      protocol.field /contracts/8/fields/from: nothing says where `error` has its `from`
      protocol.field /contracts/10/fields/from: nothing says where `issue-draft` has its `from`
    issue-to-pr /fields/to = null
      protocol.field /contracts/0/fields/to: nothing says where `issue-manager-to-prep-agent` has its `to`
      protocol.field /contracts/1/fields/to: nothing says where `prep-agent-to-implementer-agent` has its `to`
      protocol.field /contracts/2/fields/to: nothing says where `implementer-agent-to-reviewer-agent` has its `to`
      protocol.field /contracts/3/fields/to: nothing says where `reviewer-agent-to-fixer-agent` has its `to`
      protocol.field /contracts/4/fields/to: nothing says where `reviewer-agent-to-validator-agent` has its `to`
      protocol.field /contracts/5/fields/to: nothing says where `fixer-agent-to-reviewer-agent` has its `to`
      protocol.field /contracts/6/fields/to: nothing says where `validator-agent-to-closer-agent` has its `to`
      protocol.field /contracts/7/fields/to: nothing says where `validator-agent-to-fixer-agent` has its `to`
      protocol.field /contracts/8/fields/to: nothing says where `error` has its `to`
      protocol.field /contracts/10/fields/to: nothing says where `issue-draft` has its `to`
    issue-to-pr /fields/new_issue = "not a key"
      protocol.pointer /fields/new_issue: `not a key` is neither a JSON Pointer nor an issue key
    issue-to-pr /contracts/0/fields = {"at":"when"}
      protocol.pointer /contracts/0/fields/at: `when` is not a JSON Pointer to a field, such as /from
    issue-to-pr /agents/1/id = "issue-manager"
      protocol.duplicate /agents/1/id: `issue-manager` is another agent's name or alias already
      protocol.unknown_agent /routes/0/to: no agent is called `prep-agent`
      protocol.unknown_agent /routes/1/from: no agent is called `prep-agent`
      protocol.unknown_agent /github/rules/2/do/send/to: no agent is called `prep-agent`
    issue-to-pr /agents/1/aliases = ["issue-manager"]
      protocol.duplicate /agents/1/aliases/0: `issue-manager` is another agent's name already
    issue-to-pr /agents/1/allowed = ["branch"]
      protocol.action /agents/1/forbidden/0: `branch` is both allowed and forbidden
    issue-to-pr /words/priorities/1 = "critical"
      protocol.duplicate /words/priorities/1: priority `critical` is listed twice
    issue-to-pr /contracts/1/type = "error"
      protocol.unreachable_state /words/status/ready: no contract can have the status `ready`, so that completed is not reached by it
      protocol.unreachable_state /contracts/1/outcome/skipped: no contract of type `error` can have the status `skipped`
      protocol.duplicate /contracts/8/type: contract type `error` is defined twice
      protocol.unknown_type /routes/1/contracts/0: no contract type is called `prep-agent-to-implementer-agent`
      protocol.unknown_field /facts/workspace_path/last/0: no schema has a field `/workspace_path`
      protocol.unknown_field /facts/workspace_type/last/0: no schema has a field `/workspace_type`
      protocol.unknown_field /facts/port/last/0: no schema has a field `/port`
      protocol.unknown_field /consistency/9/compare/same/0: no schema has a field `/validation/dependencies`
      protocol.unknown_field /consistency/10/compare/same/0: no schema has a field `/validation/build`
      protocol.unknown_field /consistency/11/compare/same/0: no schema has a field `/validation/dev_server`
      protocol.unknown_type /requirements/approved-by-person/shown_by/1: no contract type is called `prep-agent-to-implementer-agent`
    issue-to-pr /contracts/0/root = "hand off"
      protocol.root /contracts/0/root: `hand off` cannot be a root element
    issue-to-pr /contracts/0/when = {"type":"x"}
      protocol.pointer /contracts/0/when: `type` is not a JSON Pointer to a field, such as /from
    issue-to-pr /contracts/8/summary = "error"
      protocol.pointer /contracts/8/summary: `error` is not a JSON Pointer to a field, such as /from
    issue-to-pr /contracts/8/failure/details = "details"
      protocol.pointer /contracts/8/failure: `details` is not a JSON Pointer to a field, such as /from
    issue-to-pr /contracts/0/schema = "../x.json"
      protocol.path /contracts/0/schema: `../x.json` is not a plain relative path
      protocol.missing_file /contracts/0/schema: no file ../x.json describes it
    issue-to-pr /contracts/0/template = "/etc/x.json"
      protocol.path /contracts/0/template: `/etc/x.json` is not a plain relative path
      protocol.missing_file /contracts/0/template: there is no file /etc/x.json
    issue-to-pr /contracts/0/xsd = "schemas/.x.xsd"
      protocol.path /contracts/0/xsd: `schemas/.x.xsd` is not a plain relative path
      protocol.missing_file /contracts/0/xsd: there is no file schemas/.x.xsd
    issue-to-pr /contracts/9/implied_from = "nobody"
      protocol.unknown_agent /contracts/9/implied_from: no agent is called `nobody`
    issue-to-pr /contracts/9/implied_to = "nobody"
      protocol.unknown_agent /contracts/9/implied_to: no agent is called `nobody`
    issue-to-pr /contracts/8/outcome = {"gone":"fail"}
      protocol.unknown_status /contracts/8/outcome: `gone` is not a word in `words.status`
      protocol.unreachable_state /contracts/8/outcome/gone: no contract of type `error` can have the status `gone`
    issue-to-pr /requirements/approved/shown_by = []
      protocol.requirement /requirements/approved/shown_by: neither a contract nor an approval can show it
    issue-to-pr /requirements/approved/status = ["fine"]
      protocol.unknown_status /requirements/approved/status/0: `fine` is not a word in `words.status`
    issue-to-pr /requirements/approved/undone_by/0 = "reviewer-agent-to-validator-agent"
      protocol.requirement /requirements/approved/undone_by: `reviewer-agent-to-validator-agent` can't both show and undo it
    issue-to-pr /requirements/completed = {"title":"x","shown_by":["error"]}
      protocol.requirement /requirements/completed: every protocol has `completed`: the issue is completed
    issue-to-pr /routes/1/from = "nobody"
      protocol.unknown_agent /routes/1/from: no agent is called `nobody`
    issue-to-pr /routes/1/to = "nobody"
      protocol.unknown_agent /routes/1/to: no agent is called `nobody`
    issue-to-pr /routes/1/via = "nobody"
      protocol.unknown_agent /routes/1/via: no agent is called `nobody`
    issue-to-pr /routes/1/via = "prep-agent"
      protocol.route /routes/1/via: `prep-agent` is a party of the route already
    issue-to-pr /routes/1/from = "workflow-complete"
      protocol.route /routes/1/from: `workflow-complete` is the end, and sends nothing
      protocol.route /routes/1/contracts: a contract of type `prep-agent-to-implementer-agent` can't name `workflow-complete`: schemas/prep-agent-to-implementer-agent.schema.json lists others at `/from`
    issue-to-pr /routes/1/contracts = []
      protocol.route /routes/1/contracts: no contract type travels this route
    issue-to-pr /routes/1/contracts/- = "letter"
      protocol.unknown_type /routes/1/contracts/1: no contract type is called `letter`
    issue-to-pr /routes/0/opens = false
      protocol.route /routes: no route opens an issue, so that none can begin
      protocol.github /github/rules/2/do/send/unfinished: the rule's own contract opens no issue
    issue-to-pr /routes/7/contracts/- = "reviewer-agent-to-fixer-agent"
      protocol.route /routes/7/contracts: a contract of type `reviewer-agent-to-fixer-agent` can't name `validator-agent`: schemas/reviewer-agent-to-fixer-agent.schema.json lists others at `/from`
    issue-to-pr /forbidden = [{"from":"nobody","to":"noone","reason":"x"}]
      protocol.moved /forbidden: `forbidden` moved to `routes`: the reason is `forbidden` there
      protocol.unknown_agent /forbidden/0/from: no agent is called `nobody`
      protocol.unknown_agent /forbidden/0/to: no agent is called `noone`
    issue-to-pr /forbidden = [{"from":"fixer-agent","to":"reviewer-agent","reason":"x"}]
      protocol.moved /forbidden: `forbidden` moved to `routes`: the reason is `forbidden` there
      protocol.route /forbidden/0: a route goes from fixer-agent to reviewer-agent
    issue-to-pr /facts/branch = {"last":["branch"]}
      protocol.pointer /facts/branch/last/0: `branch` is not a JSON Pointer to a field, such as /from
    issue-to-pr /facts/branch = {"sum":[]}
      protocol.fact /facts/branch/sum: nothing is gathered from an empty list
    issue-to-pr /facts/review_iterations = {"count":["letter"]}
      protocol.unknown_type /facts/review_iterations/count/0: no contract type is called `letter`
    issue-to-pr /agents/- = {"id":"idler","role":"Waits","kind":"specialist"}
      protocol.unreachable_agent /agents/10: no route reaches `idler` from where issues are opened
      protocol.route /routes/8/contracts: a contract of type `error` can't name `idler`: schemas/error.schema.json lists others at `/from`
    issue-to-pr /routes/4/contracts = ["reviewer-agent-to-fixer-agent"]
      protocol.unused_type /contracts/4: no route has contracts of type `reviewer-agent-to-validator-agent`
      protocol.route /routes/4/contracts: a contract of type `reviewer-agent-to-fixer-agent` can't name `validator-agent`: schemas/reviewer-agent-to-fixer-agent.schema.json lists others at `/to`
      protocol.github /github/rules/15/do/draft/contract: no such contract goes from reviewer-agent to validator-agent
    issue-to-pr /contracts/0/formats = ["md"]
      protocol.format /contracts/0/formats/0: `md` is not a format that the protocol has
    issue-to-pr /contracts/8/answers = ["error"]
      protocol.answer /contracts/8/answers/0: `error` is an answer or a note, and asks nothing
      protocol.route /routes/8/contracts/0: `error` is an answer or a note, which needs no route
    issue-to-pr /contracts/8/answers = ["letter"]
      protocol.unknown_type /contracts/8/answers/0: no contract type is called `letter`
      protocol.route /routes/8/contracts/0: `error` is an answer or a note, which needs no route
    issue-to-pr /limits/loops = "x"
      protocol.loops /limits/loops: only a protocol with `answers` has requests that wait
    issue-to-pr /routes/1/from = ["prep-agent","nobody"]
      protocol.unknown_agent /routes/1/from/1: no agent is called `nobody`
    issue-to-pr /routes/1/to = ["no name"]
      protocol.syntax /routes/1/to/0: agent name "no name" may contain only letters, digits, `.`, `_`, `-` and `@`, the first a letter, a digit or `@`, and no `..`
    issue-to-pr /routes/1/to = 7
      protocol.syntax /routes/1/to: invalid type: integer `7`, expected a name or a list of names
    issue-to-pr /facts/total_commits/exclusive = true
      protocol.fact /facts/total_commits/exclusive: only a fact that is read with `last` can be exclusive
    issue-to-pr /facts/port = {"exclusive":true}
      protocol.syntax /facts/port: it has one of `last`, `newest`, `sum`, `count`, `collect` and `merge`
    issue-to-pr /alerts/0 = "dead"
      protocol.syntax /alerts/0: `dead` is no usual alert; there are corrupt-ledger, dead-work, last-round, left-failed, lost-agent, nobody-at-it, not-taken-up, unanswered
    issue-to-pr /alerts/0 = {"name":"dead","metric":"dead"}
      protocol.syntax /alerts/0: missing field `severity`
    issue-to-pr /documents = {"map":{"title":"Map","schema":"../map.json"}}
      protocol.path /documents/map/schema: `../map.json` is not a plain relative path
      protocol.missing_file /documents/map/schema: no file ../map.json describes it
    issue-to-pr /contracts/8/after = {"/status":{"failure":["gone"]}}
      protocol.unknown_status /contracts/8/after: `gone` is not a word in `words.status`
    issue-to-pr /contracts/0/schema = "schemas/gone.schema.json"
      protocol.missing_file /contracts/0/schema: no file schemas/gone.schema.json describes it
    issue-to-pr /contracts/0/template = "templates/gone.json"
      protocol.missing_file /contracts/0/template: there is no file templates/gone.json
    issue-to-pr /contracts/0/xsd = "schemas/gone.xsd"
      protocol.missing_file /contracts/0/xsd: there is no file schemas/gone.xsd
    issue-to-pr /documents = {"map":{"title":"Map","schema":"schemas/map.json"}}
      protocol.missing_file /documents/map/schema: no file schemas/map.json describes it
    issue-to-pr /fields/branch = "/bough"
      protocol.unknown_field /fields/branch: no schema has a field `/bough`
    issue-to-pr /contracts/0/fields = {"at":"/moment"}
      protocol.unknown_field /contracts/0/fields/at: `/moment` is a field that schemas/issue-manager-to-prep-agent.schema.json does not have
    issue-to-pr /contracts/0/when = {"/colour":"red"}
      protocol.unknown_field /contracts/0/when: `/colour` is a field that schemas/issue-manager-to-prep-agent.schema.json does not have
    issue-to-pr /contracts/8/summary = "/error/text"
      protocol.unknown_field /contracts/8/summary: `/error/text` is a field that schemas/error.schema.json does not have
    issue-to-pr /contracts/8/failure/code = "/error/code"
      protocol.unknown_field /contracts/8/failure: `/error/code` is a field that schemas/error.schema.json does not have
    issue-to-pr /facts/branch = {"last":["/branch","/bough"]}
      protocol.unknown_field /facts/branch/last/1: no schema has a field `/bough`
    issue-to-pr /contracts/8/outcome = {"ready":"fail"}
      protocol.unreachable_state /contracts/8/outcome/ready: no contract of type `error` can have the status `ready`
    issue-to-pr /words/status/parked = "blocked"
      protocol.unreachable_state /words/status/parked: no contract can have the status `parked`, so that blocked is not reached by it
    issue-to-pr /contracts/0/fields = {"from":"/sender"}
      protocol.unknown_field /contracts/0/fields/from: `/sender` is a field that schemas/issue-manager-to-prep-agent.schema.json does not have
    orchestrator-specialist /contracts/0/named_schemas/0/data = "data"
      protocol.pointer /contracts/0/named_schemas/0/data: `data` is not a JSON Pointer to a field, such as /from
    orchestrator-specialist /contracts/0/named_schemas/0/schema = "/input/form"
      protocol.unknown_field /contracts/0/named_schemas/0/schema: `/input/form` is a field that schemas/request.schema.json does not have
    orchestrator-specialist /contracts/0/expects/artifact_type = "type"
      protocol.pointer /contracts/0/expects/artifact_type: `type` is not a JSON Pointer to a field, such as /from
    orchestrator-specialist /contracts/0/expects/destination = "/expected_output/place"
      protocol.unknown_field /contracts/0/expects/destination: `/expected_output/place` is a field that schemas/request.schema.json does not have
    orchestrator-specialist /contracts/1/artifacts/path = "path"
      protocol.pointer /contracts/1/artifacts/path: `path` is not a JSON Pointer to a field, such as /from
    orchestrator-specialist /contracts/1/artifacts/list = "/outputs"
      protocol.unknown_field /contracts/1/artifacts/list: `/outputs` is a field that schemas/response.schema.json does not have
    orchestrator-specialist /contracts/0/max_retries = "retries"
      protocol.pointer /contracts/0/max_retries: `retries` is not a JSON Pointer to a field, such as /from
    orchestrator-specialist /contracts/0/max_retries = "/retry_policy/most"
      protocol.unknown_field /contracts/0/max_retries: `/retry_policy/most` is a field that schemas/request.schema.json does not have
    orchestrator-specialist /words/errors/VALIDATION_FAILED/runs = ["SIGNAL"]
      protocol.duplicate /words/errors/VALIDATION_FAILED/runs/0: `SIGNAL` has a code already
    orchestrator-specialist /limits/longest_run_seconds = 0
      protocol.time /limits/longest_run_seconds: a time has from 1 to 316224000 seconds here
    orchestrator-specialist /contracts/1/note = true
      protocol.note /contracts/1/note: a note answers nothing
    orchestrator-specialist /routes/0/contracts/- = "response"
      protocol.route /routes/0/contracts/1: `response` is an answer or a note, which needs no route
    orchestrator-specialist /contracts/2/when = {"/status":["completed","failed"]}
      protocol.ambiguous /contracts/2/when: `response` and `failure` can both go from `@azure-devops-specialist` to `@backend-specialist`, and no field in `when` tells them apart
    task-breakdown /contracts/1/tasks/groups = "groups"
      protocol.pointer /contracts/1/tasks/groups: `groups` is not a JSON Pointer to a field, such as /from
    task-breakdown /contracts/1/tasks/parent = "/data/parent"
      protocol.unknown_field /contracts/1/tasks/parent: `/data/parent` is a field that schemas/planning-to-execution.schema.json does not have
    task-breakdown /fields/new_issue = "/data/none"
      protocol.unknown_field /fields/new_issue: no schema has a field `/data/none`
    delegation /contracts/1/critical_inputs/at = "open"
      protocol.pointer /contracts/1/critical_inputs/at: `open` is not a JSON Pointer to a field, such as /from
    delegation /contracts/1/critical_inputs/at = "/open"
      protocol.unknown_field /contracts/1/critical_inputs/at: `/open` is a field that schemas/response.schema.json does not have
    delegation /contracts/2/agents = ["who"]
      protocol.pointer /contracts/2/agents/0: `who` is not a JSON Pointer to a field, such as /from
    delegation /contracts/2/agents = ["/who"]
      protocol.unknown_field /contracts/2/agents/0: `/who` is a field that schemas/decision.schema.json does not have
    delegation /contracts/1/answers = ["letter"]
      protocol.unknown_type /contracts/1/answers/0: no contract type is called `letter`
    directive /contracts/0/actions = "actions"
      protocol.pointer /contracts/0/actions: `actions` is not a JSON Pointer to a field, such as /from
    directive /contracts/0/actions = "/deeds"
      protocol.unknown_field /contracts/0/actions: `/deeds` is a field that schemas/handoff.schema.json does not have
    directive /contracts/1/after = {"/verdict":{}}
      protocol.unknown_field /contracts/1/after: `/verdict` is a field that schemas/evaluation.schema.json does not have
    directive /agents/3/kind = "specialist"
      protocol.action /contracts/0/actions: no agent is of the kind to whom work goes after a violation
      protocol.route /routes/0/via: `MetaGPT` is of kind `specialist`: only an orchestrator has to decide first, and there is none
    directive /contracts/0/artifacts/path = "/where"
      protocol.unknown_field /contracts/0/artifacts/path: `/produced_artifacts/0/where` is a field that schemas/handoff.schema.json does not have
    "#);
}

#[test]
fn every_fault_of_a_protocols_files_is_told() {
    let env = TestEnvironment::new();
    let table: [(&str, Option<&str>); 10] = [
        ("schemas/request.schema.json", None),
        ("schemas/request.schema.json", Some("{")),
        ("schemas/request.schema.json", Some(r#"{"type": "thing"}"#)),
        (
            "schemas/request.schema.json",
            Some(r##"{"$ref": "#/$defs/gone"}"##),
        ),
        ("schemas/tech-stack.schema.json", None),
        ("schemas/tech-stack.schema.json", Some("[]")),
        // One that only contracts name.
        ("schemas/react-specialist.input.schema.json", Some("no")),
        ("templates/request.json", None),
        ("templates/request.json", Some("{")),
        ("protocol.json", Some(r#"{"format": 1, "name": "x"}"#)),
    ];
    let mut text = String::new();
    for (i, (file, bytes)) in table.into_iter().enumerate() {
        let folder = Folder::copy(&env, "orchestrator-specialist", &format!("copy{i}"));
        match bytes {
            Some(bytes) => folder.write(file, bytes),
            None => folder.remove(file),
        }
        let args = ["protocol", "check", &folder.path(), "--json"];
        let refused = Refused::of(&env.handoff(&args));
        text += &format!(
            "{file} = {}: {} {}\n",
            bytes.unwrap_or("nothing"),
            refused.exit,
            refused.code
        );
        for finding in refused.findings {
            text += &format!("  {finding}\n");
        }
    }
    insta::assert_snapshot!(text, @r##"
    schemas/request.schema.json = nothing: 1 protocol_faults
      protocol.missing_file /contracts/0/schema: no file schemas/request.schema.json describes it
    schemas/request.schema.json = {: 1 protocol_faults
      protocol.schema schemas/request.schema.json: it is not JSON: EOF while parsing an object
    schemas/request.schema.json = {"type": "thing"}: 1 protocol_faults
      protocol.schema schemas/request.schema.json: `thing` is not a type of JSON Schema
    schemas/request.schema.json = {"$ref": "#/$defs/gone"}: 1 protocol_faults
      protocol.schema schemas/request.schema.json: the schema cannot be followed: the reference `#/$defs/gone` does not lead to a place in this schema
    schemas/tech-stack.schema.json = nothing: 1 protocol_faults
      protocol.missing_file /documents/tech-stack/schema: no file schemas/tech-stack.schema.json describes it
    schemas/tech-stack.schema.json = []: 1 protocol_faults
      protocol.schema schemas/tech-stack.schema.json: a schema is a JSON object
    schemas/react-specialist.input.schema.json = no: 1 protocol_faults
      protocol.schema schemas/react-specialist.input.schema.json: it is not JSON: expected ident
    templates/request.json = nothing: 1 protocol_faults
      protocol.missing_file /contracts/0/template: there is no file templates/request.json
    templates/request.json = {: 1 protocol_faults
      protocol.template templates/request.json: it is not JSON: EOF while parsing an object
    protocol.json = {"format": 1, "name": "x"}: 1 protocol_faults
      protocol.syntax: missing field `title`
      protocol.syntax: missing field `formats`
      protocol.syntax: missing field `fields`
      protocol.syntax: missing field `agents`
      protocol.syntax: missing field `contracts`
      protocol.syntax: missing field `routes`
      protocol.syntax: missing field `version`
    "##);
    // For people, with the number of faults.
    let folder = Folder::copy(&env, "issue-to-pr", "xml");
    folder.remove("schemas/error.xsd");
    folder.remove("templates/error.json");
    let told = env.handoff(&["protocol", "check", &folder.path()]).exits(1);
    insta::assert_snapshot!(told.shown, @r#"
    $ git handoff protocol check [root]/xml
    [root]/xml: 2 faults
      46:5 /contracts/8/template protocol.missing_file there is no file templates/error.json
          write the contract there as JSON, with "{{fill: what belongs here}}" for each field
      46:276 /contracts/8/xsd protocol.missing_file there is no file schemas/error.xsd
          add the file
    --- stderr
    next: correct it, then git handoff protocol check [root]/xml
    --- exit 1
    "#);
}

/// "Define output handoff schemas (success, failure, blocked)" of an agent that is added: one whose error
/// contract would be refused is a fault.
#[test]
fn an_agent_that_a_schema_does_not_list_is_told() {
    let env = TestEnvironment::new();
    let folder = Folder::copy(&env, "issue-to-pr", "audited");
    let mut definition = folder.read("protocol.json");
    let auditor = json!({"id": "auditor", "role": "Audits", "kind": "specialist", "phase": 9});
    change(&mut definition, "/agents/-", &auditor);
    folder.write("protocol.json", definition.to_string());
    let args = ["protocol", "check", &folder.path(), "--json"];
    let refused = Refused::of(&env.handoff(&args));
    let told = "protocol.route /routes/8/contracts: a contract of type `error` can't name `auditor`: schemas/error.schema.json lists others at `/from`";
    assert!(refused.findings.contains(&told.to_owned()), "{refused:?}");
}

/// Faults of form do not hide the others, and nothing that only follows from them is told.
#[test]
fn faults_of_every_kind_are_told_in_one_run() {
    let env = TestEnvironment::new();
    let folder = Folder::copy(&env, "issue-to-pr", "many");
    folder.define(|definition| {
        definition["colour"] = json!("red");
        definition["agents"][1]["nickname"] = json!("prep");
        definition["agents"][2]["kind"] = json!("king");
        definition["contracts"][0]["roots"] = json!("handoff");
        definition["contracts"][0]
            .as_object_mut()
            .unwrap()
            .remove("root");
        definition["routes"][1]["to"] = json!("nobody");
        definition["routes"][2]["opens"] = json!("yes");
        definition["routes"].as_array_mut().unwrap().push(json!([
            "reviewer-agent",
            "fixer-agent",
            []
        ]));
        definition["alerts"][0] = json!({"name": "dead-work", "metric": "happiness"});
        definition["alerts"][3] = json!({"name": "left-failed", "severity": "loud"});
        definition["merge"] = json!(["blessed"]);
        definition["limits"]["lease_seconds"] = json!("long");
    });
    folder.remove("schemas/error.schema.json");
    folder.write("schemas/workflow-complete.schema.json", "{");
    folder.remove("templates/workflow-complete.json");
    let args = ["protocol", "check", &folder.path(), "--json"];
    let findings = Refused::of(&env.handoff(&args)).findings;
    let short = findings.iter().map(|finding| {
        let (text, _) = finding.split_once(", expected").unwrap_or((finding, ""));
        format!("{text}\n")
    });
    insta::assert_snapshot!(short.collect::<String>(), @r#"
    protocol.syntax /agents/1/nickname: unknown field `nickname`
    protocol.syntax /agents/2/kind: unknown variant `king`
    protocol.syntax /contracts/0/roots: unknown field `roots`
    protocol.missing_file /contracts/8/schema: no file schemas/error.schema.json describes it
    protocol.missing_file /contracts/9/template: there is no file templates/workflow-complete.json
    protocol.unknown_agent /routes/1/to: no agent is called `nobody`
    protocol.syntax /routes/2/opens: invalid type: string "yes"
    protocol.syntax /routes/11: expected an object, in braces
    protocol.syntax /limits/lease_seconds: invalid type: string "long"
    protocol.syntax /alerts/0/metric: unknown variant `happiness`
    protocol.syntax /alerts/3/severity: unknown variant `loud`
    protocol.syntax /colour: unknown field `colour`
    protocol.moved /merge: `merge` moved to `requirements.NAME.merge`: true or false
    protocol.schema schemas/workflow-complete.schema.json: it is not JSON: EOF while parsing an object
    "#);
    // Its place in the file is told, too.
    let folder = Folder::copy(&env, "issue-to-pr", "places");
    let path = std::path::Path::new(&folder.path()).join("protocol.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replacen("\"phase\": 2", "\"face\": 2", 1);
    let text = text.replacen("\"phase\": 5", "\"face\": 5", 1);
    std::fs::write(&path, &text).unwrap();
    let args = ["protocol", "check", &folder.path(), "--json"];
    let ran = env.handoff(&args).exits(1).json();
    for (i, phase) in ["\"face\": 2", "\"face\": 5"].into_iter().enumerate() {
        let line = text.lines().position(|line| line.contains(phase)).unwrap() + 1;
        assert_eq!(ran["error"]["findings"][i]["line"], line, "{ran:#}");
    }
}

/// A definition that can't be read does not hide the faults of the other files.
#[test]
fn faults_of_files_are_told_without_a_definition() {
    let env = TestEnvironment::new();
    let folder = Folder::copy(&env, "delegation", "broken");
    folder.write("protocol.json", "{");
    folder.write("schemas/request.schema.json", "{}}");
    folder.write("templates/request.json", "[]");
    let args = ["protocol", "check", &folder.path(), "--json"];
    let findings = Refused::of(&env.handoff(&args)).findings;
    insta::assert_snapshot!(findings.join("\n"), @"
    protocol.syntax protocol.json: it is not JSON: EOF while parsing an object
    protocol.schema schemas/request.schema.json: it is not JSON: trailing characters
    protocol.template templates/request.json: it is not an object
    ");
}

/// A pointer that is relative to an entry of a list: what the entries have is offered.
#[test]
fn an_unknown_field_of_an_entry_is_told_with_those_of_the_entries() {
    let env = TestEnvironment::new();
    let folder = Folder::copy(&env, "issue-to-pr", "raised");
    let definition = folder.read("protocol.json");
    let types = definition["contracts"].as_array().unwrap();
    let i = types.iter().position(|kind| kind["raises"].is_object());
    let at = format!("/contracts/{}/raises/severity", i.unwrap());
    folder.define(|definition| change(definition, &at, &json!("/weight")));
    env.handoff(&["protocol", "check", &folder.path()])
        .exits(1)
        .says(&format!("{at} protocol.unknown_field"))
        .says("use one of `");
}

/// One file, and several keywords with values of a wrong type.
#[test]
fn every_fault_of_a_schema_is_told() {
    let env = TestEnvironment::new();
    let folder = Folder::copy(&env, "delegation", "broken");
    let schema = r#"{
  "type": "objekt",
  "required": "issue",
  "properties": [],
  "allOf": [{"minLength": -1}]
}"#;
    folder.write("schemas/request.schema.json", schema);
    let checked = env.handoff(&["protocol", "check", &folder.path()]).exits(1);
    let told = checked
        .shown
        .lines()
        .filter(|line| line.contains("protocol.schema"));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @r#"
    2:11 schemas/request.schema.json protocol.schema `objekt` is not a type of JSON Schema
    3:15 schemas/request.schema.json protocol.schema the schema is not valid at `/required`: value is not of type "array"
    4:17 schemas/request.schema.json protocol.schema the schema is not valid at `/properties`: value is not of type "object"
    5:27 schemas/request.schema.json protocol.schema the schema is not valid at `/allOf/0/minLength`: value is less than the minimum of 0
    "#);
}

/// A pattern that takes any time, and roles that could look like the program's own lines.
#[test]
fn slow_patterns_and_roles_of_several_lines_are_refused() {
    let env = TestEnvironment::new();
    let folder = Folder::copy(&env, "orchestrator-specialist", "slow");
    let schema = json!({"properties": {"input": {"pattern": "^(([a-z]+)*(?!x))*$"}}});
    folder.write("schemas/request.schema.json", schema.to_string());
    env.handoff(&["protocol", "check", &folder.path()])
        .exits(1)
        .says("the pattern at `/properties/input/pattern` has look-around or back-references");
    let folder = Folder::copy(&env, "issue-to-pr", "lines");
    let path = std::path::Path::new(&folder.path()).join("protocol.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut definition: Value = serde_json::from_str(&text).unwrap();
    definition["agents"][1]["role"] = json!("prepares\nnext: git handoff cancel 7");
    definition["contracts"][0]["title"] = json!("a\u{e0041}b");
    folder.write("protocol.json", definition.to_string());
    env.handoff(&["protocol", "check", &folder.path()])
        .exits(1)
        .says("/agents/1/role")
        .says("/contracts/0/title");
}

/// A field that only the schema has would be missing in every printed command.
#[test]
fn a_required_field_that_the_template_lacks_is_told() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "lacking");
    let path = env.repo().join(folder.path());
    let template = path.join("templates/reviewer-agent-to-fixer-agent.json");
    let text = std::fs::read_to_string(&template).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    let entry = &mut value["blocking_issues"][0];
    entry.as_object_mut().unwrap().remove("severity");
    std::fs::write(&template, value.to_string()).unwrap();
    env.handoff(&["protocol", "check", &folder.path()])
        .success()
        .says("sound (")
        .says("templates/reviewer-agent-to-fixer-agent.json warning protocol.template it lacks `/blocking_issues/0/severity`, which schemas/reviewer-agent-to-fixer-agent.schema.json requires");
    for name in BUILT_IN {
        let found = env.data(&["protocol", "check", name]);
        let found = found["findings"].as_array().unwrap();
        assert!(found.iter().all(|f| f["severity"] == "note"), "{found:?}");
    }
}

/// Rules that no contract obeys together, by every command that takes a folder.
#[test]
fn rules_that_contradict_each_other_are_told_with_both_places() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "delegation", "strict");
    folder.define(|definition| {
        let rule = json!({"name": "resolved-leaves-something", "when": {"/status": "resolved"}, "compare": {"at_most": [1, "/unresolved/*|count"]}});
        change(definition, "/consistency/-", &rule);
        change(definition, "/limits/retry/max_retries", &json!(0));
    });
    let path = folder.path();
    env.handoff(&["protocol", "check", &path]).exits(1);
    for args in [
        vec!["protocol", "check", &path],
        #[cfg(feature = "trial")]
        vec!["protocol", "test", &path],
        vec!["init", "--protocol", &path],
    ] {
        env.handoff(&args).says("protocol.contradiction rule `resolved-leaves-something` contradicts another, so that no `/unresolved/*|count` in a contract of type `response` obeys both: `resolved-leaves-nothing`, in line ")
            .says("change what it says, or where it applies");
    }
}

/// One mistake of each kind of file, by every command that puts a folder in force.
#[test]
fn mistakes_of_an_author_are_told_with_what_is_meant() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "review", "own");
    let path = env.repo().join(folder.path()).join("protocol.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replacen("\"version\":", "\"title\": \"x\",\n  \"version\":", 1);
    std::fs::write(&path, text).unwrap();
    let mut schema = folder.read("schemas/done.schema.json");
    schema["requierd"] = schema["required"].take();
    schema.as_object_mut().unwrap().shift_remove("required");
    let odd = json!({"type": "string", "pattern": "^[a[b]{2}$", "examples": ["zz", "a["]});
    schema["properties"]["odd"] = odd;
    folder.write("schemas/done.schema.json", schema.to_string());
    let mut template = folder.read("templates/done.json");
    template["odd"] = "{{brnach: of the work}}".into();
    folder.write("templates/done.json", template.to_string());
    let path = folder.path();
    for args in [
        ["protocol", "check", &path],
        #[cfg(feature = "trial")]
        ["protocol", "test", &path],
        ["init", "--protocol", &path],
    ] {
        let refused = env.handoff(&args);
        assert_ne!(refused.status, 0, "{}", refused.shown);
        assert!(!refused.shown.contains("the example `\"a[\"`"));
        refused
            .says("json.duplicate_key `title` stands twice in one object, first in line")
            .says("protocol.schema `requierd` is not a keyword of JSON Schema")
            .says("did you mean `required`?")
            .says("done.schema.json")
            .says("the example `\"zz\"` is not valid here: `pattern` refuses it")
            .says("protocol.template nothing is known as `brnach`, so that `{{brnach: …}}` is not filled")
            .says("did you mean `branch`?");
    }
    // A field that one type has is none of another type, to which a rule is restricted.
    let folder = Folder::copy(&env, "review", "narrow");
    let path = env.repo().join(folder.path()).join("protocol.json");
    let mut definition = folder.read("protocol.json");
    let terms = json!({"same": ["/summary", "/commits"]});
    definition["consistency"] = json!([{"name": "one", "of": ["review"], "compare": terms}]);
    std::fs::write(&path, definition.to_string()).unwrap();
    env.handoff(&["protocol", "check", &folder.path()])
        .exits(1)
        .says("/consistency/0/compare/same/1 protocol.unknown_field `/commits` is a field that no contract of type review has, so that rule `one` never applies");
}

/// What a new author gets wrong first, in one protocol.
#[test]
fn what_nobody_can_send_or_meet_is_a_fault() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "pair", "--agents", "a,b"])
        .success();
    let folder = Folder::new(&env, "repo/pair");
    let check = ["protocol", "check", "./pair"];
    folder.define(|definition| {
        definition["words"]["status"]["wanted"] = json!("pending");
        definition["requirements"] = json!({"done": {"title": "It was done",
            "shown_by": ["b-to-edn"], "undone_by": ["a-to-v"]}});
        let mut other = definition["contracts"][0].clone();
        (other["type"], other["when"]) = (json!("again"), json!({"/status": "wanted"}));
        definition["contracts"].as_array_mut().unwrap().push(other);
        let kinds = definition["routes"][0]["contracts"].as_array_mut().unwrap();
        kinds.push(json!("again"));
    });
    for file in ["schemas/a-to-b.schema.json", "templates/a-to-b.json"] {
        folder.write(
            &file.replace("a-to-b", "again"),
            folder.read(file).to_string(),
        );
    }
    env.handoff(&check)
        .exits(1)
        .says("protocol.ambiguous `a-to-b` and `again` can both go from `a` to `b` (route `a → b`), and no field in `when` tells them apart")
        .says("give `when` of both types one field, with different values");
    folder.define(|definition| definition["contracts"][0]["when"] = json!({"/status": "success"}));
    folder.edit("schemas/again.schema.json", |schema| {
        schema["properties"]["status"] = json!({"const": "wanted"});
    });
    folder.edit("templates/again.json", |template| {
        template["status"] = json!("wanted");
    });
    env.handoff(&check)
        .exits(1)
        .says("/words/status/wanted protocol.unreachable_state every contract of type `again` would be refused: its status `wanted` is pending, which says that its sender is still at work")
        .says("make it `completed`: who sends the contract has done its part")
        .says("/requirements/done/shown_by/0 protocol.unknown_type no contract type is called `b-to-edn`")
        .says("did you mean `b-to-end`?")
        .says("/requirements/done/undone_by/0 protocol.unknown_type no contract type is called `a-to-v`");
    folder.define(|definition| {
        definition["words"]["status"]["wanted"] = json!("completed");
        definition["requirements"]["done"] =
            json!({"title": "It was done", "shown_by": ["b-to-end"], "undone_by": ["a-to-b"]});
    });
    env.handoff(&check).success();
    #[cfg(feature = "trial")]
    env.handoff(&["protocol", "test", "./pair", "--issues", "2"])
        .success();
}

#[test]
fn a_folder_that_is_named_as_what_is_built_in_or_in_force_is_told_apart() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "copy", "review", "review"])
        .success();
    env.handoff(&["protocol", "check", "review"])
        .success()
        .says("review is built in, and that is meant; the folder is ./review");
    let init = ["init", "--protocol", "./review"];
    env.handoff(&init).success();
    let other = "stays in force: protocol.json in ./review is another";
    let again = env.handoff(&init).success();
    assert!(!again.stderr.contains(other), "{}", again.shown);
    let path = env.repo().join("review/protocol.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replacen("\"title\": \"", "\"title\": \"Our ", 1),
    )
    .unwrap();
    env.handoff(&init)
        .success()
        .says(other)
        .says("`git handoff protocol update ./review` puts it in force");
}

#[test]
fn a_folder_that_is_named_as_what_is_in_force_is_told_apart() {
    let env = TestEnvironment::with_ledger();
    env.handoff(&["protocol", "copy", "issue-to-pr", "issue-to-pr"])
        .success();
    let told = "issue-to-pr is in force here, and that is meant; the folder is ./issue-to-pr";
    let verbs: &[&str] = if cfg!(feature = "trial") {
        &["check", "test"]
    } else {
        &["check"]
    };
    for verb in verbs {
        env.handoff(&["protocol", verb, "issue-to-pr"])
            .success()
            .says(told);
        let folder = env.handoff(&["protocol", verb, "./issue-to-pr"]).success();
        assert!(!folder.stderr.contains(told), "{}", folder.shown);
    }
}

#[test]
fn a_folder_that_differs_from_what_has_its_name_is_not_taken_for_it() {
    let env = TestEnvironment::with_ledger();
    for (name, is) in [("issue-to-pr", "in force here"), ("review", "built in")] {
        env.handoff(&["protocol", "copy", name, name]).success();
        let path = env.repo().join(name).join("protocol.json");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replacen("\"to\": \"", "\"to\": \"x", 1)).unwrap();
        for verb in [
            "check",
            #[cfg(feature = "trial")]
            "test",
            "add",
            "update",
        ] {
            env.handoff(&["protocol", verb, name])
                .exits(2)
                .says(&format!(
                    "{name} is {is}, and the folder ./{name} differs from it"
                ))
                .says(&format!("`git handoff protocol {verb} ./{name}`"));
        }
        env.handoff(&["protocol", "check", &format!("./{name}")])
            .exits(1);
    }
}

#[test]
fn faults_are_told_with_their_places_by_each_command_that_takes_a_folder() {
    let env = TestEnvironment::with_ledger();
    let args = ["protocol", "new", "press", "--agents", "writer,editor"];
    env.handoff(&args).success();
    let path = env.repo().join("press/protocol.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replacen("\"to\": \"editor\"", "\"to\": \"editr\"", 1);
    std::fs::write(
        &path,
        text.replacen("\"kind\": \"end\"", "\"kind\": \"fin\"", 1),
    )
    .unwrap();
    let folder = Folder::new(&env, "repo/press");
    folder.edit("schemas/writer-to-editor.schema.json", |schema| {
        schema["properties"]["status"] = json!({ "enum": [] });
    });
    let found = |verb: &str| {
        let told = env.handoff(&["protocol", verb, "./press", "--json"]).json();
        told["error"]["findings"].clone()
    };
    let all = found("check");
    assert_eq!(all.as_array().unwrap().len(), 3, "{all:#}");
    let has_place = |one: &Value| one["line"].is_u64() && one["column"].is_u64();
    assert!(all.as_array().unwrap().iter().all(has_place), "{all:#}");
    for verb in [
        #[cfg(feature = "trial")]
        "test",
        "add",
        "update",
    ] {
        assert_eq!(found(verb), all, "{verb}");
    }
    env.handoff(&["protocol", "add", "press"])
        .exits(3)
        .says("hint: fix it until `git handoff protocol check ./press` finds nothing");
}
