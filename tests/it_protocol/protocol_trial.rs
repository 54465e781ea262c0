//! `protocol test`: protocols that are played.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::team::{BUILT_IN, Folder};

/// The scenarios of a protocol that is played, which must all go as they should.
#[track_caller]
fn played(env: &TestEnvironment, name: &str) -> Value {
    let data = env.data(&["protocol", "test", name, "--issues", "3"]);
    for scenario in data["scenarios"].as_array().unwrap() {
        assert_eq!(scenario["ok"], true, "{name}: {scenario:#}");
    }
    assert_eq!(data["load"]["issues"], 3, "{data:#}");
    data
}

/// What the scenarios say, a line each.
fn told(data: &Value) -> String {
    let scenarios = data["scenarios"].as_array().unwrap().iter();
    let lines = scenarios.map(|scenario| {
        let text = |key: &str| scenario[key].as_str().unwrap().to_owned();
        format!("{}: {}\n", text("name"), text("about"))
    });
    lines.collect()
}

#[test]
fn every_built_in_protocol_stands_every_scenario() {
    let env = TestEnvironment::new();
    let mut text = String::new();
    for name in BUILT_IN {
        text += &format!("{name}\n{}", told(&played(&env, name)));
    }
    insta::assert_snapshot!(text, @"
    issue-to-pr
    the usual way: issue-manager → prep-agent → implementer-agent → reviewer-agent → fixer-agent → reviewer-agent → validator-agent → closer-agent → workflow-complete
    a wrong receiver is refused: issue-manager → implementer-agent: route_refused
    unclaimed work is not handed on: not_claimed
    an incomplete contract is refused: without /requirements: contract_refused
    claimed work is not claimed again: already_claimed
    failed validations are limited to 5: limit_reached
    merge conflicts are limited to 10: limit_reached
    rounds of changes are limited to 5: limit_reached
    failed work is retried until it is dead: dead after 4 attempts, then redriven
    every other type of contract can be sent: error, issue-draft
    many issues: 3 issues, 45 steps
    orchestrator-specialist
    the usual way: @frontend-specialist → @react-specialist
    a wrong receiver is refused: @frontend-specialist → @backend-specialist: route_refused
    unclaimed work is not handed on: not_claimed
    an incomplete contract is refused: without /retry_policy: contract_refused
    claimed work is not claimed again: already_claimed
    failed work is retried until it is dead: dead after 2 attempts, then redriven
    every other type of contract can be sent: failure
    many issues: 3 issues, 9 steps
    task-breakdown
    the usual way: environment-architect → task-orchestrator → execution-guardian → task-orchestrator
    a wrong receiver is refused: environment-architect → execution-guardian: route_refused
    unclaimed work is not handed on: not_claimed
    an incomplete contract is refused: without /data: contract_refused
    claimed work is not claimed again: already_claimed
    failed work is retried until it is dead: dead after 5 attempts, then redriven
    every other type of contract can be sent: there is none
    many issues: 3 issues, 21 steps
    delegation
    the usual way: document_generator → research_agent
    a wrong receiver is refused: document_generator may send to every agent
    unclaimed work is not handed on: not_claimed
    an incomplete contract is refused: without /priority: contract_refused
    claimed work is not claimed again: already_claimed
    work that goes round reaches a limit: cycle after 2
    failed work is retried until it is dead: dead after 3 attempts, then redriven
    every other type of contract can be sent: there is none
    many issues: 3 issues, 9 steps
    directive
    the usual way: ResearchGPT → MetaGPT → DesignGPT → MetaGPT → ImplementationGPT → MetaGPT → workflow-end
    a wrong receiver is refused: ResearchGPT → USER: route_refused
    unclaimed work is not handed on: not_claimed
    an incomplete contract is refused: without /session_id: contract_refused
    claimed work is not claimed again: already_claimed
    retries of failed work are limited to 3: limit_reached
    failed work is retried until it is dead: dead after 4 attempts, then redriven
    every other type of contract can be sent: user-input
    many issues: 3 issues, 33 steps
    ");
}

/// A contract's own number of retries, without `limits.retry`: nothing dies of it.
#[test]
fn examples_stand_every_scenario() {
    let env = TestEnvironment::with_repository();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/protocols");
    let bakery = format!("{examples}/bakery");
    let text = told(&played(&env, &bakery));
    let spent = "failed work is retried until it is dead: retries_spent after 2 attempts\n";
    assert!(text.contains(spent), "{text}");
    env.handoff(&["init", "--protocol", &bakery]).success();
    let order = [
        "--set",
        "order=w-1",
        "--set",
        "wanted=1",
        "--set",
        "urgency=now",
        "--set",
        "note=rolls",
    ];
    let send = [
        "send", "--issue", "w-1", "--to", "oven-1", "--as", "counter",
    ];
    env.handoff(&[&send[..], &order].concat()).success();
    for (oven, next) in [
        ("oven-1", "retry w-1.1 --as counter"),
        ("oven-2", "next w-1"),
    ] {
        env.handoff(&["claim", "w-1.1", "--as", oven]).success();
        let fail = [
            "fail",
            "w-1.1",
            "--as",
            oven,
            "--code",
            "TOO_HOT",
            "--message",
            "hot",
        ];
        env.handoff(&fail)
            .success()
            .says(&format!(": git handoff {next}"));
        let other = [
            "reassign", "w-1.1", "--to", "oven-2", "--as", "counter", "--reason", "x",
        ];
        if oven == "oven-1" {
            env.handoff(&other).success();
        }
    }
}

#[test]
fn a_new_protocol_stands_every_scenario() {
    let env = TestEnvironment::with_repository();
    env.handoff(&[
        "protocol",
        "new",
        "press",
        "--agents",
        "writer,editor,printer",
    ])
    .success();
    insta::assert_snapshot!(told(&played(&env, "press")), @"
    the usual way: writer → editor → printer → end
    a wrong receiver is refused: writer → printer: route_refused
    unclaimed work is not handed on: not_claimed
    an incomplete contract is refused: without /summary: contract_refused
    claimed work is not claimed again: already_claimed
    work that goes round reaches a limit: no way leads back
    failed work is retried until it is dead: dead after 4 attempts, then redriven
    every other type of contract can be sent: error
    many issues: 3 issues, 15 steps
    ");
    let new = "desk,scout,coder,critic,mender,judge,clerk";
    env.handoff(&[
        "protocol",
        "new",
        "studio",
        "--from",
        "issue-to-pr",
        "--agents",
        new,
    ])
    .success();
    played(&env, "./studio");
    // XML only, and the one in force.
    let folder = Folder::new(&env, "repo/press");
    folder.define(|definition| definition["formats"] = json!(["xml"]));
    env.handoff(&["init", "--protocol", "./press"]).success();
    let before = env.tip();
    fs::remove_dir_all(folder.path()).unwrap();
    played(&env, "press");
    assert_eq!(env.tip(), before);
}

/// It draws the routes, and runs no other program: there is none on the PATH. It leaves nothing behind, and
/// removes what a run that was killed left a day ago.
#[test]
fn a_trial_needs_nothing_and_leaves_nothing() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "pair", "--agents", "a,b"])
        .success();
    let temporary = env.root().join("temporary");
    let names = [
        "git-handoff-trial-old",
        "git-handoff-trial-new",
        "other-old",
    ];
    for name in names {
        fs::create_dir_all(temporary.join(name).join("objects")).unwrap();
    }
    let yesterday = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
    for name in [names[0], names[2]] {
        let folder = fs::File::open(temporary.join(name)).unwrap();
        folder.set_modified(yesterday).unwrap();
    }
    let args = ["protocol", "test", "repo/pair", "--issues", "2"];
    let mut command = env.program(&args);
    command.current_dir(env.root());
    command.env("PATH", &temporary).env("TMPDIR", &temporary);
    let ran = env.run(command, &args, None).success();
    ran.says("a → b").says("steps per second");
    let left = fs::read_dir(&temporary).unwrap();
    let left: BTreeSet<OsString> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, BTreeSet::from([names[1].into(), names[2].into()]));
}

#[test]
fn what_is_unexpected_is_told() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "pair", "--agents", "a,b"])
        .success();
    let folder = Folder::new(&env, "repo/pair");
    // No value is known for this.
    folder.edit("schemas/a-to-b.schema.json", |schema| {
        schema["properties"]["summary"] = json!({"type": "string", "pattern": "^Ticket [A-Z]{3}$",
            "not": {"pattern": "A$"}});
    });
    let ran = env.handoff(&["protocol", "test", "pair"]).exits(1);
    ran.says("UNEXPECTED")
        .says("no value was found for /summary of a-to-b from a to b")
        .says("give it `examples` in schemas/a-to-b.schema.json");
    let ran = env
        .handoff(&["protocol", "test", "pair", "--json"])
        .exits(1);
    let document = ran.json();
    assert_eq!(document["error"]["code"], "protocol_unexpected");
    assert_eq!(document["data"]["scenarios"][0]["ok"], false);
    assert_eq!(document["data"]["load"], Value::Null);
    folder.edit("schemas/a-to-b.schema.json", |schema| {
        schema["properties"]["summary"]["examples"] = json!(["Ticket ABC"]);
    });
    played(&env, "pair");
}

/// Examples are no cure for answers to findings before there are any.
#[test]
fn a_list_of_answers_must_be_allowed_to_be_empty() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "review", "own");
    folder.edit("schemas/work.schema.json", |schema| {
        let list = &mut schema["properties"]["findings"];
        list["minItems"] = json!(1);
        list["items"]["required"] = json!(["text"]);
    });
    env.handoff(&["protocol", "test", &folder.path()])
        .exits(1)
        .says("the list is empty; no finding is open then: let `/findings` be empty, without `minItems`, in schemas/work.schema.json");
    folder.edit("schemas/work.schema.json", |schema| {
        schema["properties"]["findings"]["minItems"] = json!(0);
    });
    played(&env, &folder.path());
    // A list that is optional, and not in the template, holds answers once there are findings.
    folder.edit("schemas/work.schema.json", |schema| {
        let required = schema["required"].as_array_mut().unwrap();
        required.retain(|name| name != "findings");
    });
    folder.edit("templates/work.json", |template| {
        template.as_object_mut().unwrap().remove("findings");
    });
    played(&env, &folder.path());
}

/// A field that decides the receiver, and rules about the entries of a list: values are found, or
/// the field that decides is named.
#[test]
fn values_that_conditions_and_rules_ask_for_are_found() {
    let env = TestEnvironment::with_repository();
    let args = [
        "protocol",
        "new",
        "press",
        "--agents",
        "writer,editor,printer",
    ];
    env.handoff(&args).success();
    let folder = Folder::new(&env, "repo/press");
    folder.edit("schemas/writer-to-editor.schema.json", |schema| {
        schema["properties"]["pages"] =
            json!({"type": "array", "minItems": 1, "items": {"type": "string"}});
        schema["required"]
            .as_array_mut()
            .unwrap()
            .push(json!("pages"));
    });
    folder.edit("templates/writer-to-editor.json", |template| {
        template["pages"] = json!(["{{fill: a page}}"]);
    });
    folder.edit("schemas/editor-to-printer.schema.json", |schema| {
        let properties = &mut schema["properties"];
        properties["to"] = json!({"enum": ["printer", "writer"]});
        properties["a_grade"] = json!({"enum": ["x", "y", "z"]});
        properties["verdict"] = json!({"enum": ["print", "again"]});
        properties["score"] = json!({"type": "integer", "minimum": 1, "maximum": 9});
        properties["faults"] = json!({"type": "array", "items": {"type": "object",
            "required": ["page", "weight"], "properties": {
            "page": {"type": "string"}, "weight": {"enum": ["high", "low"]}}}});
        let needed = ["a_grade", "verdict", "score", "faults"].map(Value::from);
        schema["required"].as_array_mut().unwrap().extend(needed);
        schema["if"] = json!({"properties": {"verdict": {"const": "print"}}});
        schema["then"] = json!({"properties": {"to": {"const": "printer"}}});
        schema["else"] = json!({"properties": {"to": {"const": "writer"}}});
    });
    folder.edit("templates/editor-to-printer.json", |template| {
        template["to"] = json!("{{to: who gets it}}");
        for field in ["a_grade", "verdict", "score"] {
            template[field] = json!("{{fill: it}}");
        }
        template["faults"] = json!([{"page": "{{fill: its page}}", "weight": "{{fill: it}}"}]);
    });
    folder.define(|definition| {
        let back = json!({"from": "editor", "to": "writer", "contracts": ["editor-to-printer"]});
        definition["routes"].as_array_mut().unwrap().push(back);
        definition["facts"]["pages"] = json!({"last": ["/pages"]});
        definition["limits"]["rounds"] =
            json!({"DRAFTS": {"contracts": ["writer-to-editor"], "most": 3}});
        let (of, print) = (json!(["editor-to-printer"]), json!({"/verdict": "print"}));
        definition["consistency"] = json!([
            {"name": "nothing-high", "of": of, "when": print,
             "compare": {"same": ["/faults/*/weight|is high|count", 0]}},
            {"name": "scores-seven", "of": of, "when": print, "compare": {"at_most": [7, "/score"]}},
            {"name": "known-pages", "of": of, "compare": {"subset_of": ["/faults/*/page", "fact:pages"]}}
        ]);
    });
    let data = played(&env, "press");
    let told = told(&data);
    assert!(told.contains("writer → editor → printer → end"), "{told}");
    assert!(
        told.contains("DRAFTS are limited to 3: limit_reached"),
        "{told}"
    );
    folder.edit("schemas/editor-to-printer.schema.json", |schema| {
        schema["then"] = schema["else"].clone();
    });
    env.handoff(&["protocol", "test", "press"])
        .exits(1)
        .says("no value was found for /to of editor-to-printer from editor to printer: ")
        .says("; /verdict decides it: give that `examples`, or change the condition, in schemas/editor-to-printer.schema.json");
}

/// Keys of issues have a pattern: the field at fault is named, once.
#[test]
fn a_field_at_fault_is_named_however_issues_are_called() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "pair", "--agents", "a,b"])
        .success();
    let folder = Folder::new(&env, "repo/pair");
    folder.edit("schemas/a-to-b.schema.json", |schema| {
        schema["properties"]["issue"] =
            json!({"type": "string", "pattern": "^art-[0-9]+$", "examples": ["art-12"]});
        schema["properties"]["summary"] = json!({"type": "string", "pattern": "^Ticket [A-Z]{3}$",
            "not": {"pattern": "A$"}});
    });
    let ran = env.handoff(&["protocol", "test", "pair", "--json"]);
    insta::assert_snapshot!(told(&ran.exits(1).json()["data"]), @"
    the usual way: contract_refused: no value was found for /summary of a-to-b from a to b: `example-1` must match ^Ticket [A-Z]{3}$; give it `examples` in schemas/a-to-b.schema.json
    everything else: no issue can be opened
    ");
    folder.edit("schemas/a-to-b.schema.json", |schema| {
        schema["properties"]["summary"]["examples"] = json!(["Ticket ABC"]);
    });
    for schema in ["schemas/b-to-end.schema.json", "schemas/error.schema.json"] {
        folder.edit(schema, |schema| {
            schema["properties"]["issue"] = json!({"type": "string", "pattern": "^art-[0-9]+$"});
        });
    }
    played(&env, "pair");
}

/// A key and a text with a pattern of their own need no `examples`; a list of keys may be too short.
#[test]
fn keys_and_texts_are_made_from_their_patterns() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "pair", "--agents", "a,b"])
        .success();
    let folder = Folder::new(&env, "repo/pair");
    let schemas = ["a-to-b", "b-to-end", "error"].map(|name| format!("schemas/{name}.schema.json"));
    let of_keys = |key: Value| {
        for schema in &schemas {
            folder.edit(schema, |schema| schema["properties"]["issue"] = key.clone());
        }
    };
    folder.edit(&schemas[0], |schema| {
        schema["properties"]["summary"] = json!({"type": "string", "pattern": "^Ticket [A-Z]{3}$"});
    });
    for (pattern, examples) in [
        ("^[a-z]{3,20}$", json!(["tides"])),
        ("^[a-z]{3,20}$", json!([])),
        ("^[A-Z]{2}-[0-9]{4}$", json!(["AB-0001"])),
    ] {
        of_keys(json!({"type": "string", "pattern": pattern, "examples": examples}));
        played(&env, "pair");
    }
    of_keys(json!({"enum": ["tides", "moon"]}));
    env.handoff(&["protocol", "test", "pair"])
        .exits(1)
        .says("its schema allows no more issue keys than `moon`, `tides`");
}

/// A limit of one attempt at the work that opens an issue, next to rounds of the same agents.
#[test]
fn a_limit_of_attempts_is_played() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "pair", "--agents", "a,b"])
        .success();
    let folder = Folder::new(&env, "repo/pair");
    for file in ["schemas/a-to-b.schema.json", "templates/a-to-b.json"] {
        let text = folder.read(file).to_string();
        let kind = |kind: &str, from: &str, to: &str| {
            let file = file.replace("a-to-b", kind);
            let mut value: Value = serde_json::from_str(&text).unwrap();
            let parties = match value.get("properties") {
                Some(_) => [json!({ "const": from }), json!({ "const": to })],
                None => [json!(from), json!(to)],
            };
            let [from, to] = parties;
            let fields = match value.get_mut("properties") {
                Some(fields) => fields,
                None => &mut value,
            };
            (fields["from"], fields["to"]) = (from, to);
            fields["kind"] = if file.starts_with("schemas") {
                json!({ "const": kind })
            } else {
                json!(kind)
            };
            folder.write(&file, value.to_string());
        };
        kind("a-to-b", "a", "b");
        kind("back", "b", "a");
        kind("again", "a", "b");
    }
    folder.define(|definition| {
        let contracts = definition["contracts"].as_array_mut().unwrap();
        contracts[0]["when"] = json!({"/kind": "a-to-b"});
        for kind in ["back", "again"] {
            contracts.push(json!({"type": kind, "title": kind, "when": {"/kind": kind}}));
        }
        let routes = definition["routes"].as_array_mut().unwrap();
        routes.push(json!({"from": "b", "to": "a", "contracts": ["back"]}));
        routes.push(json!({"from": "a", "to": "b", "contracts": ["again"]}));
        definition["limits"]["rounds"] = json!({
            "attempts at a draft": {"contracts": ["a-to-b"], "attempts": true, "most": 1},
            "edit rounds": {"contracts": ["back"], "most": 3},
        });
    });
    insta::assert_snapshot!(told(&played(&env, "pair")), @"
    the usual way: a → b → end
    a wrong receiver is refused: a → end: route_refused
    unclaimed work is not handed on: not_claimed
    an incomplete contract is refused: without /summary: contract_refused
    claimed work is not claimed again: already_claimed
    attempts at a draft are limited to 1: limit_reached
    edit rounds are limited to 3: limit_reached
    work that goes round reaches a limit: limit_reached
    failed work is retried until it is dead: retries_spent after 1 attempts
    every other type of contract can be sent: error
    many issues: 3 issues, 9 steps
    ");
    // The only one of the route's types that opens an issue is the usual one.
    let started = env.handoff(&["init", "--protocol", "pair"]).success();
    started
        .says("next: git handoff send --issue N --to b --type a-to-b --as a --set summary=TEXT\n");
    let prime = env.handoff(&["prime", "--as", "a"]).success().stdout;
    assert!(!prime.contains("again"), "{prime}");
    let send = ["send", "--issue", "7", "--to", "b", "--as", "a"];
    let send = [
        &send[..],
        &[
            "--set",
            "summary=S",
            "--set",
            "details=D",
            "--set",
            "status=success",
        ],
    ];
    env.handoff(&send.concat()).success();
    let record = env.data(&["show", "7.1"]);
    assert_eq!(record["handoff"]["contract_type"], "a-to-b", "{record:#}");
}

/// A protocol without a fault, in which an agent can't bring its work to the end.
#[test]
fn work_that_never_ends_is_told() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "pair", "--agents", "a,b"])
        .success();
    let folder = Folder::new(&env, "repo/pair");
    folder.define(|definition| definition["routes"][1]["from"] = json!("a"));
    folder.edit("schemas/b-to-end.schema.json", |schema| {
        schema["properties"]["from"] = json!({"const": "a"});
    });
    folder.edit("templates/b-to-end.json", |template| {
        template["from"] = json!("a")
    });
    env.handoff(&["protocol", "check", "pair"]).success();
    env.handoff(&["protocol", "test", "pair"])
        .exits(1)
        .says("after a → b, the issue does not end: nothing in it is open");
}

/// What is refused for another reason than the one that a scenario is about was not played; what the
/// protocol has nothing of was not either, and is no fault.
#[test]
fn what_is_refused_for_another_reason_was_not_played() {
    let env = TestEnvironment::with_repository();
    env.handoff(&[
        "protocol",
        "new",
        "press",
        "--agents",
        "writer,editor,printer",
    ])
    .success();
    let folder = Folder::new(&env, "repo/press");
    let text = env
        .handoff(&["protocol", "test", "press", "--issues", "1"])
        .success()
        .stdout;
    let line = |text: &str, about: &str| -> String {
        let mut lines = text.lines().filter(|line| line.contains(about));
        let words = lines.next().unwrap().split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    let round = line(&text, "goes round");
    assert_eq!(
        round,
        "not played work that goes round reaches a limit no way leads back"
    );
    folder.edit("schemas/editor-to-printer.schema.json", |schema| {
        schema["properties"]["summary"] = json!({"type": "string", "pattern": "^[a-z]{4}$"});
        schema["properties"]["details"] = json!({"type": "integer", "minimum": 1});
        let required = schema["required"].as_array_mut().unwrap();
        required.push(json!("details"));
    });
    folder.define(|definition| {
        definition["consistency"] = json!([{"name": "odd", "of": ["editor-to-printer"],
            "compare": {"same": ["/summary", "/details"]}}]);
    });
    folder.edit("templates/editor-to-printer.json", |template| {
        template["details"] = json!("{{fill: a number}}");
    });
    env.handoff(&["protocol", "check", "press"]).success().says(
        "rule `odd` can hardly hold: `/summary` is a text that is no number, and `/details` a number",
    );
    folder.define(|definition| {
        definition["consistency"][0]["of"] = json!(["writer-to-editor", "editor-to-printer"]);
    });
    let ran = env
        .handoff(&["protocol", "test", "press", "--json"])
        .exits(1);
    let scenarios = ran.json()["data"]["scenarios"].clone();
    for scenario in scenarios.as_array().unwrap() {
        let refused = scenario["about"].as_str().unwrap().contains("`odd`");
        assert!(!refused || scenario["ok"] == false, "{scenario:#}");
    }
}

#[test]
fn a_protocol_with_faults_is_not_played() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "pair", "--agents", "a,b"])
        .success();
    Folder::new(&env, "repo/pair").remove("templates/error.json");
    env.handoff(&["protocol", "test", "pair"])
        .exits(1)
        .says("pair is not sound")
        .says("git handoff protocol check ./pair");
    env.handoff(&["protocol", "test", "nothing"]).exits(6);
}
