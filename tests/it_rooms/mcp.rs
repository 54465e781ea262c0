//! The server of the Model Context Protocol: on the wire, in both eras.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared};
use test_support::mcp::{HANDSHAKE, STATELESS, Wire, document, meta};
use test_support::workflow::completed;

/// Each tool in a line: what it does, and its arguments; those that must stand have a mark.
fn outline(tools: &Value) -> String {
    let mut shown = String::new();
    for tool in tools.as_array().unwrap() {
        let hints = &tool["annotations"];
        assert_eq!(hints["openWorldHint"], false);
        let does = match (&hints["readOnlyHint"], &hints["idempotentHint"]) {
            (Value::Bool(true), Value::Null) => "reads",
            (Value::Bool(false), Value::Bool(true)) => "writes once",
            (Value::Bool(false), Value::Null) => "writes",
            other => panic!("{other:?}"),
        };
        let schema = &tool["inputSchema"];
        let needed: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|name| name.as_str().unwrap())
            .collect();
        let arguments: Vec<String> = schema["properties"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, about)| {
                let mark = if needed.contains(&name.as_str()) {
                    "!"
                } else {
                    ""
                };
                let kind = match about["type"].as_str().unwrap() {
                    "string" if about.get("enum").is_some() => {
                        let words = about["enum"].as_array().unwrap();
                        let words: Vec<&str> = words.iter().map(|w| w.as_str().unwrap()).collect();
                        format!(":{}", words.join("|"))
                    }
                    "string" => String::new(),
                    "array" => "[]".to_owned(),
                    kind => format!(":{kind}"),
                };
                let default = about.get("default").map(|default| format!("={default}"));
                format!("{name}{mark}{kind}{}", default.unwrap_or_default())
            })
            .collect();
        let name = tool["name"].as_str().unwrap();
        shown += &format!("{name} ({does}): {}\n", arguments.join(" "));
    }
    shown
}

#[test]
fn the_tools_are_the_verbs() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::new(&env, &[]);
    let listed = wire.result("tools/list", json!({}));
    insta::assert_snapshot!(outline(&listed["tools"]), @r#"
    handoff_prime (reads): offline:boolean as
    handoff_inbox (reads): limit:integer after offline:boolean as
    handoff_claim (writes): id next:boolean lease take_over:boolean reason offline:boolean as
    handoff_new (reads): issue! from to! type format:xml|json|md protocol as
    handoff_check (reads): contract files[] issue protocol as
    handoff_send (writes once): contract file to set[] type issue protocol answers token:integer allow_secret[] tests[] coverage[] offline:boolean as
    handoff_extend (writes): id lease progress usage token:integer offline:boolean as
    handoff_complete (writes): id! reason token:integer offline:boolean as
    handoff_fail (writes): id! message! code="FAILED" details recoverable:boolean suggested_action attach[] snapshot:boolean allow_secret[] usage token:integer offline:boolean as
    handoff_block (writes): id! reason! needs[] token:integer offline:boolean as
    handoff_reject (writes): id! reason! offline:boolean as
    handoff_cancel (writes): id reason offline:boolean as
    handoff_answer (writes): id! answer![] allow_secret[] offline:boolean as
    handoff_retry (writes): id reason with allow_secret[] offline:boolean as
    handoff_reassign (writes): id to! reason offline:boolean as
    handoff_pause (writes): issue except[] reason! offline:boolean as
    handoff_reopen (writes): issue! reason! offline:boolean as
    handoff_annotate (writes): id! note fact[] offline:boolean as
    handoff_restore (writes): id! attempt:integer claim:integer worktree new_branch attachments as
    handoff_status (reads): issue idle:boolean limit:integer after as
    handoff_show (reads): id! as
    handoff_context (reads): issue limit:integer after as
    handoff_list (reads): issue since until agent state[] type limit:integer after as
    handoff_log (reads): issue author since until event[] oneline:boolean limit:integer after as
    handoff_next (writes): issue apply:boolean task between[] offline:boolean as
    handoff_wait (reads): targets[] inbox:boolean any:boolean blocked:boolean timeout="50s" offline:boolean as
    handoff_verify (reads): issue since incremental:boolean limit:integer after as
    handoff_gate (reads): issue require[] head as
    handoff_graph (reads): issue tasks:boolean protocol since as
    handoff_metrics (reads): since by:agent|route|type|protocol|issue as
    handoff_alerts (reads): issue severity:info|warning|critical="info" offline:boolean as
    handoff_reap (writes once): offline:boolean as
    handoff_sync (writes once): set_aside:boolean as
    handoff_fetch (writes once): full:boolean as
    handoff_refused_list (reads): limit:integer after as
    handoff_refused_show (reads): name! as
    handoff_refused_retry (writes): name! as
    handoff_protocol_list (reads): as
    handoff_protocol_show (reads): name type as
    handoff_document_list (reads): as
    handoff_document_show (reads): name! as
    handoff_explain (reads): code as
    "#);
    let mut again = Wire::stateless(&env, &[]).result("tools/list", json!({}));
    let all = again["tools"].as_array_mut().unwrap();
    let wait = all.iter_mut().find(|tool| tool["name"] == "handoff_wait");
    wait.unwrap()["execution"] = json!({ "taskSupport": "optional" });
    assert_eq!(
        listed["tools"], again["tools"],
        "the same in each era, in the same order"
    );
}

#[test]
fn every_tool_is_small_and_its_schemas_are_json_schema() {
    let env = TestEnvironment::with_ledger();
    let listed = Wire::new(&env, &[]).result("tools/list", json!({}));
    let known = git_handoff::command();
    for tool in listed["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let mut command = &known;
        for word in name.strip_prefix("handoff_").unwrap().split('_') {
            command = command.find_subcommand(word).unwrap();
        }
        let about = command.get_about().unwrap().to_string();
        assert_eq!(tool["description"], about);
        for part in ["inputSchema", "outputSchema"] {
            let schema = &tool[part];
            assert!(jsonschema::meta::is_valid(schema), "{name}: {schema}");
            assert_eq!(schema["type"], "object");
            let made = jsonschema::draft202012::new(schema);
            assert!(made.is_ok(), "{name}: {schema}");
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        assert!(tool.to_string().len() < 2_000, "{name}");
    }
    // A model reads all of it at the start of each session.
    let all = listed["tools"].to_string().len();
    assert!(all < 29_000, "{all} bytes");
}

/// The tools of a server that is started so: their names, and how many bytes they take.
fn tools(env: &TestEnvironment, args: &[&str]) -> (Vec<String>, usize) {
    let mut command = env.program(&[&["mcp"], args].concat());
    command.stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped());
    let mut wire = Wire::of(command);
    wire.shake_hands(HANDSHAKE);
    let listed = wire.result("tools/list", json!({}));
    let names = listed["tools"].as_array().unwrap().iter();
    let names = names.map(|tool| tool["name"].as_str().unwrap().to_owned());
    (names.collect(), listed["tools"].to_string().len())
}

#[test]
fn a_server_has_the_tools_that_it_is_started_with() {
    let env = TestEnvironment::with_ledger();
    let (workers, size) = tools(&env, &[]);
    insta::assert_snapshot!(workers.join(" "), @"handoff_prime handoff_claim handoff_new handoff_check handoff_send handoff_extend handoff_complete handoff_fail handoff_block handoff_answer handoff_annotate handoff_show handoff_context handoff_wait handoff_explain");
    // What docs/mcp.md says of it.
    assert!((12_000..13_000).contains(&size), "{size} bytes");
    assert_eq!(tools(&env, &["--tools", "worker"]).0, workers);
    let (leads, _) = tools(&env, &["--tools", "orchestrator"]);
    assert!(workers.iter().all(|name| leads.contains(name)));
    insta::assert_snapshot!(
        leads.iter().filter(|name| !workers.contains(name)).map(String::as_str).collect::<Vec<_>>().join(" "),
        @"handoff_inbox handoff_reject handoff_cancel handoff_retry handoff_reassign handoff_pause handoff_reopen handoff_restore handoff_status handoff_list handoff_log handoff_next handoff_gate handoff_alerts handoff_reap handoff_sync"
    );
    let all = Wire::new(&env, &[]).result("tools/list", json!({}));
    let reading = all["tools"].as_array().unwrap().iter();
    let reading = reading.filter(|tool| tool["annotations"]["readOnlyHint"] == true);
    let reading: Vec<&str> = reading.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools(&env, &["--tools", "read"]).0, reading);

    let mut wire = Wire::new(&env, &["--tools", "read"]);
    let mut told = |name: &str| {
        let error = wire.error("tools/call", json!({ "name": name, "arguments": {} }));
        assert_eq!(error["code"], -32602, "{error}");
        error["message"].as_str().unwrap().to_owned()
    };
    insta::assert_snapshot!(["handoff_claim", "claim", "x"].map(&mut told).join("\n"), @"
    this server has the tools of `--tools read`, and handoff_claim is not one of them: `git handoff claim` is its command for a shell
    unknown tool: claim; it is called handoff_claim
    unknown tool: x
    ");
    let said = wire.result("server/discover", json!({ "_meta": meta(STATELESS) }));
    assert!(
        !said["instructions"]
            .as_str()
            .unwrap()
            .contains("handoff_send")
    );
    env.assert_sound();
}

#[test]
fn what_comes_next_is_told_as_a_call_and_nothing_that_others_wrote_is_changed() {
    let env = TestEnvironment::with_ledger();
    let title = "Run `git handoff cancel 87.1` or git handoff fail 87.1 --message x";
    let contract = opening(87).replace("Export delivery history as CSV", title);
    assert!(contract.contains(title));
    env.send(&contract).success();
    let mut wire = Wire::new(&env, &["--tools", "worker", "--as", "prep-agent"]);
    let primed = wire.data("prime", json!({}));
    let page = primed["text"].as_str().unwrap();
    let commands = |line: &&str| line.contains("handoff_") || line.contains("git handoff");
    let steps = page.lines().filter(commands);
    insta::assert_snapshot!(steps.collect::<Vec<_>>().join("\n"), @r#"
    - 87.1 from issue-manager, priority "medium": "Run `git handoff cancel 87.1` or git handoff fail 87.1 --message x"
    1. handoff_claim {"id":"87.1"}   # claim it; then do the work
    2. handoff_send {"issue":"87","to":"implementer-agent","set":["FIELD=VALUE…"]}   # once it is done: "Workspace ready"; then your part is done
    If it takes longer than the lease: handoff_extend {"id":"87.1"}
    If you lack something: handoff_block {"id":"87.1","reason":"what you lack"}
    If it can't be done now: handoff_fail {"id":"87.1","message":"what went wrong","recoverable":true,"snapshot":true}
    A refused command says why, and what to run instead; `handoff_explain {"code":"CODE"}` says more. Do not stop while you hold a handoff.
    `handoff_send` fills in what the issue and the repository tell. The whole contract: git handoff new --issue 87 --from prep-agent --to implementer-agent; all its fields: git handoff protocol show issue-to-pr --type prep-agent-to-implementer-agent
    - "Agent failed or is blocked": handoff_new {"issue":"87","from":"prep-agent","to":"orchestrator"}
    "#);
    let claimed = wire.data("claim", json!({ "next": true }));
    assert_eq!(claimed["handoff"]["title"], title);
    assert_eq!(claimed["contract"]["text"], contract);
    let block = json!({ "id": "87.1", "reason": title, "needs": ["key:text"] });
    assert_eq!(wire.data("block", block)["reason"], Value::Null);
    // What no tool of the server does, or only another agent may do, stays a command.
    let mut lead = Wire::new(&env, &["--tools", "orchestrator", "--as", "orchestrator"]);
    let next = lead.data("next", json!({ "issue": "87" }));
    insta::assert_snapshot!(next["commands"].to_string(), @r#"["handoff_answer {\"id\":\"87.1\",\"answer\":[\"key=VALUE\"]}"]"#);
    let refused = lead.document("extend", json!({ "id": "87.1" }));
    insta::assert_snapshot!(refused["error"]["hint"].as_str().unwrap(), @r#"only prep-agent can; see `handoff_show {"id":"87.1"}`"#);
    let shown = lead.data("show", json!({ "id": "87.1" }));
    assert_eq!(shown["handoff"]["title"], title);
    let given = lead.document(
        "annotate",
        json!({ "id": "87.1", "note": "n", "fact": ["x"] }),
    );
    insta::assert_snapshot!(given["error"]["hint"].as_str().unwrap(), @"write it as NAME=VALUE, such as `fact: pr_number=72`; see the input schema of `handoff_annotate`");
    env.assert_sound();
}

/// What a shell is told, with the commands that an agent is told as tools; nothing else may differ.
fn in_the_words_of_tools(by_shell: &mut Value, by_tool: &Value) {
    match (by_shell, by_tool) {
        (Value::Object(shell), Value::Object(tool)) => {
            for (name, value) in shell {
                in_the_words_of_tools(value, tool.get(name).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(shell), Value::Array(tool)) => {
            for (value, told) in shell.iter_mut().zip(tool) {
                in_the_words_of_tools(value, told);
            }
        }
        (Value::String(shell), Value::String(tool)) => {
            let has_command = ["git handoff ", "--"].iter().any(|c| shell.contains(c));
            if has_command && (tool.contains("handoff_") || tool.contains("`as`")) {
                shell.clone_from(tool);
            }
        }
        _ => {}
    }
}

/// What a tool answers and what the command line answers, without what depends on when it is asked.
fn assert_same(
    wire: &mut Wire,
    env: &TestEnvironment,
    tool: &str,
    arguments: Value,
    args: &[&str],
) {
    let mut by_tool = wire.document(tool, arguments);
    let mut by_shell = env.handoff(&[&["--json"], args].concat()).json();
    for document in [&mut by_tool, &mut by_shell] {
        if let Some(waited) = document.pointer_mut("/data/waited_ms") {
            *waited = Value::Null;
        }
    }
    in_the_words_of_tools(&mut by_shell, &by_tool);
    assert_eq!(by_tool, by_shell, "{tool} and {args:?}");
}

#[test]
fn a_tool_says_what_the_command_line_says() {
    let env = completed(|_| Format::Xml);
    env.pace(0);
    env.send(opening(88)).success();
    let contract = env.file("contract.xml", prepared(88));
    let broken = "<handoff><from>prep-agent</from></handoff>";
    let broken_file = env.file("broken.xml", broken);
    let mut wire = Wire::new(&env, &[]);
    let mut tried = BTreeSet::new();
    for (tool, arguments, args) in [
        (
            "prime",
            json!({ "as": "prep-agent" }),
            &["prime", "--as", "prep-agent"][..],
        ),
        (
            "inbox",
            json!({ "as": "prep-agent" }),
            &["inbox", "--as", "prep-agent"][..],
        ),
        ("inbox", json!({}), &["inbox"]),
        ("status", json!({}), &["status"]),
        ("status", json!({ "issue": "88" }), &["status", "88"]),
        ("status", json!({ "issue": 88 }), &["status", "88"]),
        ("status", json!({ "idle": true }), &["status", "--idle"]),
        ("status", json!({ "issue": "404" }), &["status", "404"]),
        (
            "status",
            json!({ "issue": "--json" }),
            &["status", "--", "--json"],
        ),
        ("show", json!({ "id": "87.1" }), &["show", "87.1"]),
        ("show", json!({ "id": "87.99" }), &["show", "87.99"]),
        ("context", json!({ "issue": "87" }), &["context", "87"]),
        (
            "list",
            json!({ "state": ["pending", "failed"] }),
            &["list", "--state", "pending", "--state", "failed"],
        ),
        (
            "list",
            json!({ "state": ["nonsense"] }),
            &["list", "--state=nonsense"],
        ),
        ("log", json!({ "limit": 3 }), &["log", "--limit", "3"]),
        (
            "log",
            json!({ "issue": "87", "limit": "2" }),
            &["log", "87", "--limit", "2"],
        ),
        ("next", json!({ "issue": "88" }), &["next", "88"]),
        ("wait", json!({ "targets": ["87"] }), &["wait", "87"]),
        (
            "wait",
            json!({ "targets": ["88.1"], "timeout": "1s" }),
            &["wait", "88.1", "--timeout", "1s"],
        ),
        ("verify", json!({}), &["verify"]),
        ("verify", json!({ "issue": "88" }), &["verify", "88"]),
        ("gate", json!({ "issue": "88" }), &["gate", "--issue", "88"]),
        ("graph", json!({ "issue": "87" }), &["graph", "87"]),
        (
            "graph",
            json!({ "protocol": "issue-to-pr" }),
            &["graph", "--protocol=issue-to-pr"],
        ),
        (
            "metrics",
            json!({ "by": "agent" }),
            &["metrics", "--by", "agent"],
        ),
        (
            "alerts",
            json!({ "severity": "critical" }),
            &["alerts", "--severity", "critical"],
        ),
        (
            "new",
            json!({ "issue": "88", "from": "prep-agent", "to": "implementer-agent" }),
            &[
                "new",
                "--issue",
                "88",
                "--from",
                "prep-agent",
                "--to",
                "implementer-agent",
            ],
        ),
        (
            "new",
            json!({ "issue": "88", "to": "closer-agent", "as": "prep-agent" }),
            &[
                "new",
                "--issue",
                "88",
                "--to",
                "closer-agent",
                "--as",
                "prep-agent",
            ],
        ),
        (
            "check",
            json!({ "files": [contract.clone()] }),
            &["check", &contract],
        ),
        (
            "check",
            json!({ "files": [broken_file.clone()] }),
            &["check", &broken_file],
        ),
        ("protocol_list", json!({}), &["protocol", "list"]),
        ("protocol_show", json!({}), &["protocol", "show"]),
        (
            "protocol_show",
            json!({ "name": "delegation" }),
            &["protocol", "show", "delegation"],
        ),
        ("document_list", json!({}), &["document", "list"]),
        (
            "explain",
            json!({ "code": "no_agent" }),
            &["explain", "no_agent"],
        ),
        (
            "document_show",
            json!({ "name": "none" }),
            &["document", "show", "none"],
        ),
        ("refused_list", json!({}), &["refused", "list"]),
        (
            "refused_show",
            json!({ "name": "none" }),
            &["refused", "show", "none"],
        ),
        ("sync", json!({}), &["sync"]),
        ("fetch", json!({}), &["fetch"]),
        ("reap", json!({}), &["reap"]),
    ] {
        assert_same(&mut wire, &env, tool, arguments, args);
        tried.insert(tool.to_owned());
    }
    let same = wire.document("check", json!({ "contract": broken }));
    let mut by_shell = env.handoff_with(&["check", "-", "--json"], broken).json();
    in_the_words_of_tools(&mut by_shell, &same);
    assert_eq!(same, by_shell);
    let listed = wire.result("tools/list", json!({}));
    let reading = listed["tools"].as_array().unwrap().iter();
    for tool in reading.filter(|tool| tool["annotations"]["readOnlyHint"] == true) {
        let name = tool["name"].as_str().unwrap();
        assert!(tried.contains(&name["handoff_".len()..]), "{tool}");
    }
}

#[test]
fn a_round_over_the_protocol_is_the_round_by_shell() {
    let [by_tool, by_shell] = [(), ()].map(|()| {
        let env = TestEnvironment::with_ledger();
        env.pace(0);
        env.send(opening(87)).success();
        env
    });
    assert_eq!(by_tool.tip(), by_shell.tip());
    let env = &by_tool;
    let mut wire = Wire::new(env, &["--as", "prep-agent"]);
    let claimed = wire.data("claim", json!({ "next": true }));
    assert_eq!(claimed["handoff"]["state"], "in_progress");
    let new = json!({ "issue": "87", "to": "implementer-agent" });
    let skeleton = wire.data("new", new)["text"].take();
    let refused = wire.document("send", json!({ "contract": skeleton }));
    assert_eq!(refused["error"]["code"], "contract_refused");
    assert!(!refused["error"]["findings"].as_array().unwrap().is_empty());
    let contract = prepared(87);
    assert_eq!(
        wire.document("check", json!({ "contract": contract }))["ok"],
        true
    );
    let sent = wire.data("send", json!({ "contract": contract }));
    assert_eq!(sent["handoff"]["id"], "87.2");
    let again = wire.data("send", json!({ "contract": contract }));
    assert_eq!(
        again["handoff"]["id"], sent["handoff"]["id"],
        "the first receipt again"
    );
    assert_eq!(again["commit"], Value::Null, "nothing was written");

    let agent = ["--as", "prep-agent"];
    by_shell
        .handoff(&[&["claim", "--next"], &agent[..]].concat())
        .success();
    by_shell.handoff_with(&["send", "-"], &contract).success();
    assert_eq!(by_tool.tip(), by_shell.tip(), "the very same commits");
    by_tool.assert_sound();
    let (rest, code, said) = wire.end();
    assert_eq!((rest.len(), code, said.as_str()), (0, Some(0), ""));
}

#[test]
fn calls_take_their_turns_in_the_order_in_which_they_came() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::new(&env, &[]);
    let send = wire.ask_for("send", json!({ "contract": opening(87) }));
    let claim = wire.ask_for("claim", json!({ "id": "87.1", "as": "prep-agent" }));
    let onward = wire.ask_for("send", json!({ "contract": prepared(87) }));
    for id in [send, claim, onward] {
        assert_eq!(document(&wire.answer(id))["ok"], true);
    }
    env.assert_sound();
}

#[test]
fn requests_with_the_same_id_are_all_answered() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::new(&env, &[]);
    let params = json!({ "name": "handoff_explain" });
    let call = json!({ "jsonrpc": "2.0", "id": 1.0, "method": "tools/call", "params": params });
    wire.text(&format!("{call}\n{call}\n"));
    for _ in 0..2 {
        assert_eq!(wire.read()["id"], 1, "as a whole number");
    }
}

#[test]
fn what_is_asked_before_the_input_ends_is_answered() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::new(&env, &[]);
    let ids = [88, 89, 90].map(|issue| wire.ask_for("send", json!({ "contract": opening(issue) })));
    let (rest, code, _) = wire.end();
    assert_eq!(code, Some(0));
    let answered: Vec<i64> = rest.iter().map(|m| m["id"].as_i64().unwrap()).collect();
    assert_eq!(answered, ids);
    assert!(rest.iter().all(|message| document(message)["ok"] == true));
    assert_eq!(env.data(&["list"])["handoffs"].as_array().unwrap().len(), 3);
}

#[test]
fn wrong_arguments_are_told_as_wrong_usage() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::new(&env, &[]);
    let mut shown = String::new();
    for (tool, arguments) in [
        ("claim", json!({})),
        ("wait", json!({ "timeout": "1s" })),
        ("graph", json!({})),
        ("alerts", json!({ "severity": "high" })),
        ("show", json!({})),
        ("show", json!({ "id": ["87.1"] })),
        ("show", json!({ "id": "87.1", "branch": "main" })),
        ("show", json!({ "id": "87.1", "contract": true })),
        ("send", json!({})),
        ("send", json!({ "contract": "<a/>", "file": "a.xml" })),
        ("send", json!({ "contract": 7 })),
        ("status", json!({ "idle": "yes" })),
        ("log", json!({ "limit": "many" })),
        (
            "claim",
            json!({ "id": "87.1", "next": true, "as": "prep-agent" }),
        ),
        ("claim", json!({ "next": true })),
        ("claim", json!({ "next": true, "as": "no agent" })),
    ] {
        let document = wire.document(tool, arguments.clone());
        let error = &document["error"];
        let [code, message, hint] = ["code", "message", "hint"].map(|name| error[name].as_str());
        shown += &format!(
            "{tool} {arguments}\n  {}: {}\n  {}\n",
            code.unwrap(),
            message.unwrap(),
            hint.unwrap_or("-")
        );
    }
    insta::assert_snapshot!(shown, @r#"
    claim {}
      usage: handoff_claim lacks `id`
      give `id`, or `next: true`; see `handoff_explain {"code":"usage"}`
    wait {"timeout":"1s"}
      usage: handoff_wait lacks `targets`
      give `targets`, or `inbox: true`; see `handoff_explain {"code":"usage"}`
    graph {}
      usage: no issue is named, and none has the branch main
      name the issue: `handoff_list` shows each
    alerts {"severity":"high"}
      usage: `severity` of handoff_alerts can't be "high"
      it can be info, warning, critical; see `handoff_explain {"code":"usage"}`
    show {}
      usage: handoff_show lacks `id`
      give `id`; see `handoff_explain {"code":"usage"}`
    show {"id":["87.1"]}
      usage: `id` of handoff_show is not a text or a number
      see the input schema of handoff_show; see `handoff_explain {"code":"usage"}`
    show {"id":"87.1","branch":"main"}
      usage: handoff_show has no argument "branch"
      its arguments are: id, as; see `handoff_explain {"code":"usage"}`
    show {"id":"87.1","contract":true}
      usage: handoff_show has no argument "contract"
      its arguments are: id, as; see `handoff_explain {"code":"usage"}`
    send {}
      usage: handoff_send: the text is missing
      give the text as `contract`, or a path as `file`; see `handoff_explain {"code":"usage"}`
    send {"contract":"<a/>","file":"a.xml"}
      usage: `contract` and `file` say the same
      leave one of them out; see `handoff_explain {"code":"usage"}`
    send {"contract":7}
      usage: `contract` of handoff_send is not a text
      see the input schema of handoff_send; see `handoff_explain {"code":"usage"}`
    status {"idle":"yes"}
      usage: `idle` of handoff_status is not true or false
      see the input schema of handoff_status; see `handoff_explain {"code":"usage"}`
    log {"limit":"many"}
      usage: `limit` of handoff_log can't be "many": invalid digit found in string
      see the input schema of handoff_log; see `handoff_explain {"code":"usage"}`
    claim {"id":"87.1","next":true,"as":"prep-agent"}
      usage: `next` and `id` exclude each other
      leave one of them out; see `handoff_explain {"code":"usage"}`
    claim {"next":true}
      no_agent: say which agent you are
      with `as` AGENT, GIT_HANDOFF_AGENT, or `git config handoff.agent AGENT`; agents are: issue-manager, prep-agent, implementer-agent, reviewer-agent, fixer-agent, validator-agent, closer-agent, orchestrator, maintainer
    claim {"next":true,"as":"no agent"}
      usage: agent name "no agent" may contain only letters, digits, `.`, `_`, `-` and `@`, the first a letter, a digit or `@`, and no `..`
      see the input schema of `handoff_claim`
    "#);
}

#[test]
fn a_server_for_one_agent_acts_as_no_other() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let mut wire = Wire::new(&env, &["--as", "prep-agent"]);
    let listed = wire.result("tools/list", json!({}));
    for tool in listed["tools"].as_array().unwrap() {
        assert!(
            tool["inputSchema"]["properties"].get("as").is_none(),
            "{tool}"
        );
    }
    let other = wire.document("claim", json!({ "id": "87.1", "as": "reviewer-agent" }));
    insta::assert_snapshot!(serde_json::to_string_pretty(&other).unwrap(), @r#"
    {
      "schema": "git-handoff/2",
      "ok": false,
      "error": {
        "code": "other_agent",
        "message": "this server acts as prep-agent alone, not as \"reviewer-agent\"",
        "hint": "leave `as` out; another agent has a server of its own; see `handoff_explain {\"code\":\"other_agent\"}`",
        "findings": []
      }
    }
    "#);
    // Whose contract it is does not say who sends it.
    let foreign = wire.document("send", json!({ "contract": opening(88) }));
    assert_eq!(foreign["ok"], false, "{foreign}");
    let same = wire.data("claim", json!({ "id": "87.1", "as": "prep-agent" }));
    assert_eq!(same["handoff"]["state"], "in_progress");
    let held = wire.data("inbox", json!({}));
    assert_eq!(held["agent"], "prep-agent");
    assert_eq!(env.handoff(&["mcp", "--as", "no agent"]).status, 2);
}

#[test]
fn of_two_servers_that_claim_one_handoff_one_has_it() {
    let env = TestEnvironment::with_ledger();
    for issue in 1..=10 {
        env.send(opening(issue)).success();
        let mut wires = ["one", "two"].map(|worker| Wire::new(&env, &["--worker", worker]));
        let claim = json!({ "id": format!("{issue}.1"), "as": "prep-agent" });
        let asked = wires
            .each_mut()
            .map(|wire| wire.ask_for("claim", claim.clone()));
        let mut won = 0;
        for (wire, id) in wires.iter_mut().zip(asked) {
            let document = document(&wire.answer(id));
            won += i32::from(document["ok"] == true);
            if document["ok"] == false {
                assert!(document["error"]["hint"].is_string(), "{document}");
            }
        }
        assert_eq!(won, 1);
    }
    env.assert_sound();
}

#[test]
fn who_waits_holds_up_nobody() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let mut wire = Wire::new(&env, &[]);
    let wait = wire.ask_for("wait", json!({ "targets": ["87.1"], "timeout": "1h" }));
    wire.data("claim", json!({ "id": "87.1", "as": "prep-agent" }));
    wire.data("complete", json!({ "id": "87.1", "as": "prep-agent" }));
    let waited = document(&wire.answer(wait));
    assert_eq!(waited["data"]["targets"][0]["outcome"], "completed");
}

#[test]
fn a_wait_that_is_cancelled_ends_and_its_place_is_free() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let mut wire = Wire::new(&env, &[]);
    // More than may wait at a time: the last of them wait for a place.
    let waits =
        [(); 20].map(|()| wire.ask_for("wait", json!({ "targets": ["87.1"], "timeout": "1h" })));
    for id in &waits {
        let params = json!({ "requestId": id, "reason": "never mind" });
        wire.write(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
        );
    }
    let ended = wire.document("wait", json!({ "targets": ["87.1"], "timeout": "10ms" }));
    assert_eq!(ended["error"]["code"], "timed_out");
    let (rest, code, _) = wire.end();
    assert_eq!(
        (rest.len(), code),
        (0, Some(0)),
        "nobody is told what nobody waits for: {rest:?}"
    );
}

/// The state of a task once it has ended.
#[track_caller]
fn ended(wire: &mut Wire, task: &Value) -> Value {
    for _ in 0..200 {
        let shown = wire.result("tasks/get", json!({ "taskId": task }));
        if shown["status"] != "working" {
            return shown;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{task} does not end");
}

#[test]
fn a_wait_is_a_task_if_the_client_asks_for_one() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let mut wire = Wire::new(&env, &["--as", "prep-agent"]);
    let call = |name: &str, arguments: Value, task: Value| {
        let name = format!("handoff_{name}");
        json!({ "name": name, "arguments": arguments, "task": task })
    };
    let begin = |wire: &mut Wire, timeout: &str| {
        let arguments = json!({ "targets": ["87.1"], "timeout": timeout });
        wire.result(
            "tools/call",
            call("wait", arguments, json!({ "ttl": 60_000 })),
        )["task"]
            .take()
    };
    let task = begin(&mut wire, "1m");
    assert_eq!(task["status"], "working");
    assert_eq!([&task["ttl"], &task["pollInterval"]], [60_000, 1_000]);
    let id = &task["taskId"];
    // It holds nobody up, and whoever asks for its result waits for it.
    let result = wire.ask("tasks/result", json!({ "taskId": id }));
    wire.data("claim", json!({ "id": "87.1" }));
    wire.data("complete", json!({ "id": "87.1" }));
    let mut result = wire.answer(result)["result"].take();
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
        *id
    );
    result.as_object_mut().unwrap().remove("_meta");
    let document = &result["structuredContent"];
    assert_eq!(
        (&document["ok"], &result["isError"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(ended(&mut wire, id)["status"], "completed");
    // One that ran into its time has failed, and says so as the call would have.
    env.send(opening(88)).success();
    let late = json!({ "targets": ["88.1"], "timeout": "100ms" });
    let late = wire.result("tools/call", call("wait", late, json!({})))["task"]["taskId"].take();
    assert_eq!(ended(&mut wire, &late)["status"], "failed");
    let result = wire.result("tasks/result", json!({ "taskId": late }));
    assert_eq!(result["structuredContent"]["error"]["code"], "timed_out");
    // One that is cancelled has no result.
    let third = json!({ "targets": ["88.1"] });
    let third = wire.result("tools/call", call("wait", third, json!({})))["task"]["taskId"].take();
    let asked = wire.ask("tasks/result", json!({ "taskId": third }));
    let cancelled = wire.result("tasks/cancel", json!({ "taskId": third }));
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(wire.answer(asked)["error"]["code"], -32602);
    let listed = wire.result("tasks/list", json!({}));
    let listed: Vec<&Value> = listed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["status"])
        .collect();
    assert_eq!(listed, ["completed", "failed", "cancelled"]);
    for (method, params, code) in [
        ("tasks/cancel", json!({ "taskId": third }), -32602),
        ("tasks/get", json!({ "taskId": "none" }), -32602),
        ("tasks/get", json!({}), -32602),
        ("tasks/list", json!({ "cursor": "x" }), -32602),
        ("tasks/update", json!({ "taskId": id }), -32601),
        (
            "tools/call",
            call("show", json!({ "id": "87.1" }), json!({})),
            -32601,
        ),
    ] {
        assert_eq!(
            wire.error(method, params.clone())["code"],
            code,
            "{method} {params}"
        );
    }
    // The end of the input ends what still waits.
    begin(&mut wire, "10m");
    let (rest, code, said) = wire.end();
    assert_eq!((rest.len(), code, said.as_str()), (0, Some(0), ""));
    // A client of an older version is not told of tasks, and gets none.
    let mut older = Wire::silent(&env, &[]);
    let said = older.shake_hands("2025-06-18");
    assert_eq!(said["capabilities"].get("tasks"), None);
    let params = call("wait", json!({ "targets": ["87.1"] }), json!({}));
    assert_eq!(older.result("tools/call", params)["isError"], false);
    assert_eq!(older.error("tasks/list", json!({}))["code"], -32601);
}

#[test]
fn a_wait_is_a_task_for_a_client_that_knows_the_extension() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let mut wire = Wire::stateless(&env, &["--as", "prep-agent"]);
    let said = wire.result("server/discover", json!({}));
    let extension = "io.modelcontextprotocol/tasks";
    assert_eq!(said["capabilities"]["extensions"][extension], json!({}));
    // Who does not declare it gets no task, whatever it sends.
    let plain = json!({ "name": "handoff_wait", "arguments": { "targets": ["87.1"], "timeout": "100ms" }, "task": {} });
    assert_eq!(wire.result("tools/call", plain)["resultType"], "complete");
    let refused = wire.error("tasks/get", json!({ "taskId": "x" }));
    assert_eq!(refused["code"], -32021);
    assert_eq!(
        refused["data"]["requiredCapabilities"]["extensions"][extension],
        json!({})
    );
    wire.declare(extension);
    let wait = json!({ "name": "handoff_wait", "arguments": { "targets": ["87.1"] } });
    let task = wire.result("tools/call", wait.clone());
    assert_eq!([&task["resultType"], &task["status"]], ["task", "working"]);
    assert_eq!(
        [&task["ttlMs"], &task["pollIntervalMs"]],
        [86_400_000, 1_000]
    );
    let id = json!({ "taskId": task["taskId"] });
    assert_eq!(
        wire.result("tasks/update", id.clone())["resultType"],
        "complete"
    );
    wire.data("claim", json!({ "id": "87.1" }));
    wire.data("complete", json!({ "id": "87.1" }));
    let over = ended(&mut wire, &task["taskId"]);
    assert_eq!(
        [&over["resultType"], &over["status"]],
        ["complete", "completed"]
    );
    assert_eq!(over["result"]["resultType"], "complete");
    assert_eq!(over["result"]["structuredContent"]["ok"], true);
    // To cancel what has ended is no fault, and changes nothing.
    assert_eq!(
        wire.result("tasks/cancel", id.clone())["resultType"],
        "complete"
    );
    assert_eq!(wire.result("tasks/get", id)["status"], "completed");
    env.send(opening(88)).success();
    let other = json!({ "name": "handoff_wait", "arguments": { "targets": ["88.1"] } });
    let other = json!({ "taskId": wire.result("tools/call", other)["taskId"] });
    wire.result("tasks/cancel", other.clone());
    assert_eq!(wire.result("tasks/get", other)["status"], "cancelled");
    assert_eq!(wire.error("tasks/result", json!({}))["code"], -32601);
    assert_eq!(wire.error("tasks/list", json!({}))["code"], -32601);
}

#[test]
fn waits_end_when_the_input_does() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let mut wire = Wire::new(&env, &[]);
    let wait = wire.ask_for("wait", json!({ "targets": ["87.1"], "timeout": "1h" }));
    wire.data("status", json!({}));
    let (rest, code, _) = wire.end();
    assert_eq!(code, Some(0));
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["id"], wait);
    assert_eq!(document(&rest[0])["error"]["code"], "interrupted");
}

#[test]
fn a_step_that_is_cancelled_is_whole() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::new(&env, &[]);
    for issue in 1..=20 {
        let id = wire.ask_for("send", json!({ "contract": opening(issue) }));
        let params = json!({ "requestId": id });
        wire.write(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
        );
    }
    // The turn comes when all of them are over.
    let listed = wire.data("list", json!({}));
    let made = listed["handoffs"].as_array().unwrap().len();
    let (_, code, _) = wire.end();
    assert_eq!(code, Some(0));
    assert_eq!(
        env.data(&["list"])["handoffs"].as_array().unwrap().len(),
        made
    );
    for issue in 1..=20 {
        env.send(opening(issue)).success();
    }
    assert_eq!(
        env.data(&["list"])["handoffs"].as_array().unwrap().len(),
        20
    );
    env.assert_sound();
}

#[test]
fn the_server_ends_when_nobody_reads() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::new(&env, &[]);
    wire.read_no_more();
    wire.ask_for("send", json!({ "contract": opening(87) }));
    assert_eq!(wire.ended().code(), Some(0));
    assert_eq!(env.data(&["list"])["handoffs"].as_array().unwrap().len(), 1);
    env.assert_sound();

    // Not even the first answer, in either era, nor what is wrong with a request.
    let first = json!({ "protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    for (method, params) in [
        ("initialize", first),
        ("initialize", json!({})),
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("tools/list", json!({ "_meta": meta(STATELESS) })),
        ("server/discover", json!({ "_meta": meta(STATELESS) })),
    ] {
        let mut wire = Wire::silent(&env, &[]);
        wire.read_no_more();
        wire.ask(method, params);
        let (rest, code, said) = wire.outcome();
        assert_eq!(
            (rest.len(), code, said.as_str()),
            (0, Some(0), ""),
            "{method}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_also_after_a_wait() {
    use std::os::unix::process::ExitStatusExt;
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let mut wire = Wire::new(&env, &[]);
    wire.document("wait", json!({ "targets": ["87.1"], "timeout": "10ms" }));
    let id = rustix::process::Pid::from_raw(i32::try_from(wire.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert_eq!(wire.ended().signal(), Some(15));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_waits_and_leaves_nothing_half_done() {
    use std::os::unix::process::ExitStatusExt;
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let mut wire = Wire::new(&env, &[]);
    let wait = wire.ask_for("wait", json!({ "targets": ["87.1"], "timeout": "1h" }));
    let send = wire.ask_for("send", json!({ "contract": opening(88) }));
    assert_eq!(document(&wire.answer(send))["ok"], true);
    let id = rustix::process::Pid::from_raw(i32::try_from(wire.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert_eq!(document(&wire.answer(wait))["error"]["code"], "interrupted");
    assert_eq!(wire.ended().signal(), Some(15));
    env.assert_sound();
}

#[test]
fn both_eras_are_spoken() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::silent(&env, &[]);
    let own = wire.shake_hands("2025-06-18");
    assert_eq!(own["protocolVersion"], "2025-06-18");
    assert_eq!(own["serverInfo"]["name"], "git-handoff");
    assert_eq!(own["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(own["capabilities"], json!({ "tools": {}, "resources": {} }));
    wire.data("status", json!({}));
    let ping = wire.result("ping", json!({}));
    assert_eq!(ping, json!({}));

    // A version without a handshake is not one to shake hands on.
    let own = Wire::silent(&env, &[]).shake_hands(STATELESS);
    assert_eq!(own["protocolVersion"], HANDSHAKE);
    // Nor is one that there is not: whoever shakes hands decides what to do with the answer.
    let own = Wire::silent(&env, &[]).shake_hands("1999-01-01");
    assert_eq!(own["protocolVersion"], HANDSHAKE);

    let mut wire = Wire::stateless(&env, &[]);
    let found = wire.result("server/discover", json!({}));
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(STATELESS)), "{found}");
    assert!(versions.contains(&json!(HANDSHAKE)), "{found}");
    assert_eq!(found["instructions"], own["instructions"]);
    wire.data("status", json!({}));
    let listed = wire.result("tools/list", json!({}));
    assert_eq!(listed["resultType"], "complete");
    let error = wire.error("ping", json!({}));
    assert_eq!(
        error["code"], -32601,
        "there is no ping without a handshake"
    );

    // The first request may be a call.
    Wire::stateless(&env, &[]).data("status", json!({}));
}

#[test]
fn what_is_no_request_of_the_protocol_is_told_or_passed_by() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::silent(&env, &[]);
    // Before anything else: what is no request, and one that says nothing of itself.
    wire.line("");
    wire.line("nonsense");
    wire.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let error = wire.error("tools/list", json!({}));
    assert_eq!(error["code"], -32602);
    let unknown = json!({ "_meta": meta("2030-01-01") });
    let error = wire.error("tools/list", unknown);
    assert_eq!(error["code"], -32022);
    assert_eq!(error["data"]["requested"], "2030-01-01");
    assert!(
        error["data"]["supported"]
            .as_array()
            .unwrap()
            .contains(&json!(STATELESS))
    );
    // No era began yet: what is no request is still passed by.
    wire.result("server/discover", json!({ "_meta": meta(STATELESS) }));
    wire.result("ping", json!({}));
    wire.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);

    wire.shake_hands(HANDSHAKE);
    wire.line("{\"jsonrpc\":\"2.0\",\"id\":1,");
    wire.line(r#"{"foo":"bar"}"#);
    let error = wire.read();
    assert_eq!(error["error"]["code"], -32600, "{error}");
    assert_eq!(wire.error("tools/nonsense", json!({}))["code"], -32601);
    assert_eq!(wire.error("prompts/list", json!({}))["code"], -32601);
    assert_eq!(
        wire.error("prompts/get", json!({ "name": "x" }))["code"],
        -32601
    );
    let unknown = wire.error("tools/call", json!({ "name": "init", "arguments": {} }));
    assert_eq!(unknown["code"], -32602);
    assert_eq!(unknown["message"], "unknown tool: init");
    wire.data("status", json!({}));
    let (rest, code, said) = wire.end();
    assert_eq!((rest.len(), code, said.as_str()), (0, Some(0), ""));
}

#[test]
fn what_is_wrong_with_a_request_is_told_to_whoever_asked() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::silent(&env, &[]);
    let mut shown = String::new();
    let mut tell = |wire: &mut Wire, line: &str| {
        wire.line(line);
        let told = wire.read();
        let [code, message] = ["code", "message"].map(|name| &told["error"][name]);
        shown += &format!("{line}\n  {}: {code} {message}\n", told["id"]);
    };
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
    ] {
        tell(&mut wire, line);
    }
    wire.shake_hands(HANDSHAKE);
    for line in [
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":"x"}"#,
        r#"{"id":5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":5}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"[{"jsonrpc":"2.0","id":5,"method":"ping"}]"#,
        r#"{"jsonrpc":"2.0","id":8,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":5}}"#,
        r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"handoff_status","arguments":[]}}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"resources/list","params":5}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"nonsense","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":{"_meta":5}}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"ping","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"handoff_explain","arguments":{"code":"a","code":"b"}}}"#,
    ] {
        tell(&mut wire, line);
    }
    insta::assert_snapshot!(shown, @r#"
    {"jsonrpc":"2.0","id":1,"method":"initialize"}
      1: -32602 "the params are wrong: initialize needs `protocolVersion`, a text, `capabilities`, an object, and `clientInfo`, an object with `name` and `version`"
    {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
      1: -32602 "the params are wrong: initialize needs `protocolVersion`, a text, `capabilities`, an object, and `clientInfo`, an object with `name` and `version`"
    {"jsonrpc":"2.0","id":7,"method":"ping","params":[]}
      7: -32602 "`params` is not an object: ping needs nothing"
    {"jsonrpc":"2.0","id":7,"method":"ping","params":[]}
      7: -32602 "`params` is not an object: ping needs nothing"
    {"jsonrpc":"2.0","id":"x","method":"tools/call","params":"x"}
      "x": -32602 "`params` is not an object: tools/call needs `name`, a text, and may have `arguments` and `task`, objects"
    {"id":5,"method":"ping"}
      5: -32600 "`jsonrpc` is not \"2.0\""
    {"jsonrpc":"2.0","id":5}
      5: -32600 "there is no `method`, a text"
    {"jsonrpc":"2.0","id":null,"method":"ping"}
      null: -32600 "`id` is neither a text nor a whole number"
    {"jsonrpc":"2.0","id":1.5,"method":"ping"}
      null: -32600 "`id` is neither a text nor a whole number"
    [{"jsonrpc":"2.0","id":5,"method":"ping"}]
      null: -32600 "a message is an object"
    {"jsonrpc":"2.0","id":8,"method":"tools/call"}
      8: -32602 "the params are wrong: tools/call needs `name`, a text, and may have `arguments` and `task`, objects"
    {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":5}}
      8: -32602 "the params are wrong: tools/call needs `name`, a text, and may have `arguments` and `task`, objects"
    {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"handoff_status","arguments":[]}}
      8: -32602 "the params are wrong: tools/call needs `name`, a text, and may have `arguments` and `task`, objects"
    {"jsonrpc":"2.0","id":9,"method":"resources/read","params":{}}
      9: -32602 "the params are wrong: resources/read needs `uri`, a text"
    {"jsonrpc":"2.0","id":9,"method":"resources/list","params":5}
      9: -32602 "`params` is not an object: resources/list may have `cursor`, a text"
    {"jsonrpc":"2.0","id":9,"method":"nonsense","params":[]}
      9: -32602 "`params` is not an object"
    {"jsonrpc":"2.0","id":9,"method":"ping","params":{"_meta":5}}
      9: -32600 "`_meta` is no object"
    {"jsonrpc":"2.0","id":9,"method":"ping","method":"tools/list"}
      9: -32600 "a member is given twice"
    {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"handoff_explain","arguments":{"code":"a","code":"b"}}}
      9: -32600 "a member is given twice"
    "#);
    // A notification is never answered, and neither is an answer that nobody asked for.
    wire.line(r#"{"jsonrpc":"2.0","method":"ping","params":[]}"#);
    wire.data("status", json!({}));
    let (rest, code, said) = wire.end();
    assert_eq!((rest.len(), code, said.as_str()), (0, Some(0), ""));
}

#[test]
fn a_line_that_is_too_long_is_told_so_and_the_next_is_answered() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::new(&env, &[]);
    let long = "a".repeat(17 << 20);
    for (line, id) in [
        (
            format!(r#"{{"jsonrpc":"2.0","id":70,"method":"ping","params":{{"a":"{long}"}}}}"#),
            json!(70),
        ),
        (
            format!(r#"{{"method":"ping","params":{{"a":"{long}"}},"jsonrpc":"2.0","id":"x"}}"#),
            json!("x"),
        ),
        (long, Value::Null),
    ] {
        wire.line(&line);
        let told = wire.read();
        assert_eq!(told["id"], id);
        assert_eq!(told["error"]["code"], -32600);
        assert_eq!(
            told["error"]["message"],
            "a line may have 16777216 bytes, and this one has more"
        );
        wire.data("status", json!({}));
    }
    // What is as long as it may be is taken.
    let begin = r#"{"jsonrpc":"2.0","id":71,"method":"ping","params":{"a":""#;
    let rest = (16 << 20) - begin.len() - 3;
    wire.line(&format!("{begin}{}\"}}}}", "a".repeat(rest)));
    assert_eq!(wire.answer(71)["result"], json!({}));
}

#[test]
fn the_last_line_needs_no_end() {
    let env = TestEnvironment::with_ledger();
    let ping = json!({ "jsonrpc": "2.0", "id": 70, "method": "ping" });
    let mut wire = Wire::new(&env, &[]);
    wire.text(&ping.to_string());
    let (rest, code, said) = wire.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(
        (&rest[0]["id"], &rest[0]["result"]),
        (&json!(70), &json!({}))
    );
}

#[test]
fn a_server_without_a_ledger_says_so_with_each_call() {
    let env = TestEnvironment::with_repository();
    let mut wire = Wire::new(&env, &[]);
    let none = wire.document("status", json!({}));
    assert_eq!(none["error"]["code"], "no_ledger");
    env.handoff(&["init"]).success();
    wire.data("status", json!({}));
    let env = TestEnvironment::new();
    let none = Wire::new(&env, &[]).document("status", json!({}));
    assert_eq!(none["error"]["code"], "repository");
    // Another folder, and another branch, are said when it is started.
    let env = TestEnvironment::with_ledger();
    env.handoff(&["init", "--branch", "other"]).success();
    let mut command = env.program(&[
        "-C",
        env.repo().to_str().unwrap(),
        "--branch",
        "other",
        "mcp",
        "--tools",
        "read",
    ]);
    command.current_dir(env.root());
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut wire = Wire::of(command);
    wire.shake_hands(HANDSHAKE);
    assert_eq!(wire.data("status", json!({}))["branch"], "other");
}

#[test]
fn the_ledger_is_read_as_resources() {
    let env = TestEnvironment::with_ledger();
    env.pace(0);
    let contract = opening(87);
    env.send(&contract).success();
    env.send(opening(12)).success();
    let mut wire = Wire::new(&env, &[]);
    let listed = wire.result("resources/list", json!({}));
    let uris: Vec<&str> = listed["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap())
        .collect();
    assert_eq!(
        uris,
        [
            "handoff://ledger",
            "handoff://protocol/issue-to-pr",
            "handoff://issue/12",
            "handoff://issue/87",
        ]
    );
    let templates = wire.result("resources/templates/list", json!({}));
    insta::assert_snapshot!(
        templates["resourceTemplates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| format!("{} {}", t["uriTemplate"].as_str().unwrap(), t["mimeType"]))
            .collect::<Vec<_>>()
            .join("\n"),
        @r#"
    handoff://issue/{key} "application/json"
    handoff://issue/{key}/context "application/json"
    handoff://handoff/{id} "application/json"
    handoff://handoff/{id}/contract null
    handoff://protocol/{name} "application/json"
    "#
    );
    let mut read = |uri: &str| {
        let mut result = wire.result("resources/read", json!({ "uri": uri }));
        let contents = result["contents"][0].take();
        assert_eq!(contents["uri"], uri);
        contents
    };
    for (uri, args) in [
        ("handoff://ledger", &["status"][..]),
        ("handoff://issue/87", &["status", "87"]),
        ("handoff://issue/87/context", &["context", "87"]),
        ("handoff://handoff/87.1", &["show", "87.1"]),
        (
            "handoff://protocol/issue-to-pr",
            &["protocol", "show", "issue-to-pr"],
        ),
    ] {
        let contents = read(uri);
        assert_eq!(contents["mimeType"], "application/json");
        let said: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
        let by_shell = env.handoff(&[args, &["--json"]].concat()).success().json();
        assert_eq!(said, by_shell, "{uri}");
    }
    let bytes = read("handoff://handoff/87.1/contract");
    assert_eq!(bytes["mimeType"], "application/xml");
    assert_eq!(bytes["text"], contract, "byte for byte");

    for (uri, code) in [
        ("handoff://issue/404", -32002),
        ("handoff://handoff/87.9/contract", -32002),
        ("handoff://protocol/none", -32002),
        ("handoff://nothing", -32002),
        ("file:///etc/passwd", -32002),
        ("handoff://issue/no%20key", -32602),
    ] {
        let error = wire.error("resources/read", json!({ "uri": uri }));
        assert_eq!(error["code"], code, "{uri}: {error}");
        assert_eq!(error["data"]["ok"], false, "{uri}: {error}");
        assert_eq!(error["data"]["error"]["message"], error["message"], "{uri}");
        assert!(error["data"]["error"]["hint"].is_string(), "{uri}: {error}");
    }
    let mut wire = Wire::stateless(&env, &[]);
    let error = wire.error("resources/read", json!({ "uri": "handoff://issue/404" }));
    assert_eq!(error["code"], -32602);
    assert_eq!(error["data"]["error"]["code"], "no_issue");
}

#[test]
fn a_long_list_of_resources_comes_in_pages() {
    let env = TestEnvironment::with_ledger();
    let mut wire = Wire::new(&env, &[]);
    let open: Vec<i64> = (1..=120)
        .map(|issue| wire.ask_for("send", json!({ "contract": opening(issue) })))
        .collect();
    for id in open {
        assert_eq!(document(&wire.answer(id))["ok"], true);
    }
    let (mut seen, mut cursor, mut pages) = (BTreeSet::new(), Value::Null, 0);
    loop {
        let params = match &cursor {
            Value::Null => json!({}),
            cursor => json!({ "cursor": cursor }),
        };
        let page = wire.result("resources/list", params);
        let resources = page["resources"].as_array().unwrap();
        assert!(resources.len() <= 100);
        for resource in resources {
            assert!(seen.insert(resource["uri"].as_str().unwrap().to_owned()));
        }
        pages += 1;
        match page.get("nextCursor") {
            None => break,
            Some(next) => cursor = next.clone(),
        }
    }
    assert_eq!((pages, seen.len()), (2, 122));
    let error = wire.error("resources/list", json!({ "cursor": "nonsense" }));
    assert_eq!(error["code"], -32602);
}

/// Who calls a server need not be allowed what its user may do.
#[test]
fn files_outside_of_the_working_tree_are_neither_read_nor_written() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    let secret = env.file("id_ed25519", "private");
    std::fs::write(env.repo().join("build.log"), "it broke").unwrap();
    for (to, link) in [
        (&*secret, "link"),
        ("..", "up"),
        (".git", "git"),
        ("/proc/self", "proc"),
    ] {
        std::os::unix::fs::symlink(to, env.repo().join(link)).unwrap();
    }
    let mut wire = Wire::new(&env, &["--tools", "all"]);
    for path in [
        &*secret,
        "../id_ed25519",
        "link",
        "up/id_ed25519",
        "proc/environ",
        "./../id_ed25519",
        ".git/config",
        ".GIT/config",
        "git/config",
    ] {
        let call = json!({ "id": "87.1", "as": "prep-agent", "message": "m", "attach": [path] });
        let refused = wire.document("fail", call);
        assert_eq!(refused["error"]["code"], "usage", "{path}: {refused}");
    }
    let call = json!({ "id": "87.1", "as": "prep-agent", "message": "m", "recoverable": true, "snapshot": true, "attach": ["build.log"] });
    assert_eq!(wire.data("fail", call)["handoff"]["state"], "failed");
    for (argument, path) in [
        ("worktree", "../out"),
        ("attachments", "../out"),
        ("attachments", ".git/hooks"),
        ("attachments", "git/hooks"),
        ("attachments", "up/out"),
        ("worktree", "up/out"),
        ("worktree", "a/../../out"),
        ("worktree", ".GIT/x"),
    ] {
        let refused = wire.document("restore", json!({ "id": "87.1", argument: path }));
        assert_eq!(refused["error"]["code"], "usage", "{path}: {refused}");
    }
    assert!(!env.root().join("out").exists());
    let inside = json!({ "id": "87.1", "attachments": "logs" });
    assert_eq!(wire.data("restore", inside)["attachments_written"], 1);
    let inside = json!({ "id": "87.1", "worktree": "again/here" });
    wire.data("restore", inside);
    let readme = env.repo().join("again/here/build.log");
    assert_eq!(std::fs::read_to_string(readme).unwrap(), "it broke");
}
