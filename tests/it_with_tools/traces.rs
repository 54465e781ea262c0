//! `export otlp`, decoded by the official protobuf definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use test_support::contracts::{Format, opening};
use test_support::time::{RESEARCH, TRACE, WRITER, answers, asks, traced};
use test_support::workflow::completed;
use test_support::{TestEnvironment, stored};

const REMOTE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A span, with its attributes by name.
#[derive(Clone, Debug)]
struct Span {
    raw: Value,
    attributes: BTreeMap<String, Value>,
}

impl Span {
    fn new(raw: &Value) -> Self {
        Self {
            raw: raw.clone(),
            attributes: told(raw),
        }
    }

    fn text(&self, field: &str) -> &str {
        self.raw[field].as_str().unwrap_or_default()
    }

    fn time(&self, field: &str) -> i64 {
        self.text(field).parse::<i64>().unwrap() / 1_000_000_000
    }

    fn seconds(&self) -> i64 {
        self.time("endTimeUnixNano") - self.time("startTimeUnixNano")
    }

    fn list(&self, field: &str) -> Vec<Value> {
        self.raw[field].as_array().cloned().unwrap_or_default()
    }

    /// The spans of links that say this.
    fn links(&self, why: &str) -> Vec<String> {
        let links = self.list("links").into_iter();
        let links = links.filter(|link| told(link)["git_handoff.link"] == why);
        links
            .map(|link| link["spanId"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Attributes by name, none of which is there twice.
fn told(of: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for attribute in of["attributes"].as_array().into_iter().flatten() {
        let (_, value) = attribute["value"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        let key = attribute["key"].as_str().unwrap().to_owned();
        assert!(found.insert(key, value.clone()).is_none(), "{attribute}");
    }
    found
}

/// How many handoffs the ledger has.
fn handoffs(env: &TestEnvironment) -> usize {
    let names = ["ls-tree", "-r", "--name-only", "handoffs", "--", "issues"];
    let names = env.git(&env.repo(), &names);
    let is_record = |name: &&str| {
        let name = name.rsplit('/').next().unwrap();
        name.len() == 9 && name.ends_with(".json") && name.starts_with(|c: char| c.is_ascii_digit())
    };
    names.lines().filter(is_record).count()
}

fn exported(env: &TestEnvironment, args: &[&str]) -> String {
    let all = [&["export", "otlp"], args].concat();
    env.handoff(&all).success().stdout
}

/// The spans of all documents, as decoded.
fn decoded(text: &str) -> Vec<Span> {
    let documents = crate::decoded("read-otlp.py", text);
    assert_eq!(documents.len(), text.lines().count());
    let scopes = documents.iter().flat_map(|document| {
        let [resource] = &document["resourceSpans"].as_array().unwrap()[..] else {
            panic!("{document}");
        };
        let [scope] = &resource["scopeSpans"].as_array().unwrap()[..] else {
            panic!("{document}");
        };
        assert_eq!(told(&resource["resource"])["service.name"], "git-handoff");
        assert_eq!(scope["scope"]["name"], "git-handoff");
        scope["spans"].as_array().unwrap()
    });
    scopes.map(Span::new).collect()
}

fn spans(env: &TestEnvironment, args: &[&str]) -> Vec<Span> {
    decoded(&exported(env, args))
}

fn named<'s>(spans: &'s [Span], name: &str) -> Vec<&'s Span> {
    spans.iter().filter(|s| s.text("name") == name).collect()
}

/// The span of a handoff.
fn of<'s>(spans: &'s [Span], id: &str) -> &'s Span {
    let is =
        |s: &&Span| s.text("name").starts_with("handoff ") && s.attributes["git_handoff.id"] == id;
    spans.iter().find(is).unwrap()
}

/// The parts of a handoff's span, in order.
fn parts<'s>(spans: &'s [Span], id: &str) -> Vec<&'s Span> {
    let own = of(spans, id).text("spanId");
    let of_it = |s: &&Span| s.text("parentSpanId") == own;
    spans.iter().filter(of_it).collect()
}

/// Ids are unique, parents are there and last as long as their parts, times run on.
#[track_caller]
fn assert_whole(spans: &[Span]) {
    let mut known = BTreeMap::new();
    for span in spans {
        let key = (
            span.text("traceId").to_owned(),
            span.text("spanId").to_owned(),
        );
        assert_eq!((key.0.len(), key.1.len()), (32, 16));
        assert!(span.seconds() >= 0, "{span:?}");
        assert!(known.insert(key, span).is_none(), "twice: {span:?}");
    }
    for span in spans {
        assert_eq!(span.raw["kind"], "SPAN_KIND_INTERNAL");
        let trace = span.text("traceId").to_owned();
        let parent = span.text("parentSpanId");
        if parent.is_empty() {
            continue;
        }
        let parent = known[&(trace.clone(), parent.to_owned())];
        let (from, to) = ("startTimeUnixNano", "endTimeUnixNano");
        assert!(parent.time(from) <= span.time(from), "{span:?} {parent:?}");
        assert!(parent.time(to) >= span.time(to), "{span:?} {parent:?}");
        for link in span.list("links") {
            if told(&link)["git_handoff.link"] != "made_in" {
                assert_eq!(link["traceId"], trace);
                let linked = (trace.clone(), link["spanId"].as_str().unwrap().to_owned());
                assert!(known.contains_key(&linked), "{link}");
            }
        }
    }
}

#[test]
fn an_issue_is_a_trace_of_its_handoffs_and_their_parts() {
    let env = completed(|_| Format::Xml);
    let text = exported(&env, &[]);
    assert_eq!(text.lines().count(), 1);
    let spans = decoded(&text);
    assert_whole(&spans);
    let roots: Vec<&Span> = spans
        .iter()
        .filter(|s| s.text("parentSpanId").is_empty())
        .collect();
    let [root] = roots[..] else {
        panic!("{roots:?}");
    };
    assert_eq!(root.text("name"), "invoke_workflow issue-to-pr");
    assert_eq!(root.attributes["gen_ai.operation.name"], "invoke_workflow");
    assert_eq!(root.attributes["gen_ai.workflow.name"], "issue-to-pr");
    assert_eq!(root.attributes["gen_ai.conversation.id"], "87");
    assert_eq!(root.attributes["git_handoff.status"], "completed");
    assert!(!root.attributes.contains_key("git_handoff.open"));
    // What the ledger says of each handoff.
    let count = handoffs(&env);
    assert_eq!(root.attributes["git_handoff.handoffs"], count.to_string());
    for number in 1..=count {
        let id = format!("87.{number}");
        let record = stored(&env.data(&["show", &id]));
        let span = of(&spans, &id);
        assert_eq!(span.text("parentSpanId"), root.text("spanId"));
        assert_eq!(span.attributes["git_handoff.from"], record["from"]);
        assert_eq!(span.attributes["git_handoff.to"], record["to"]);
        assert_eq!(span.attributes["git_handoff.state"], record["state"]);
        // The last one names no parties, and so it tells of none.
        let own = |name: &str| span.attributes.get(name).cloned();
        let parties = ["handoff.source_agent", "handoff.target_agent"].map(own);
        let named = ["from", "to"].map(|party| Some(record[party].clone()));
        let is_last = record["contract_type"] == "workflow-complete";
        assert_eq!(parties, if is_last { [None, None] } else { named });
        let follows = record["follows"].as_str();
        let wanted = follows.map(|id| of(&spans, id).text("spanId").to_owned());
        assert_eq!(span.links("follows"), Vec::from_iter(wanted), "{id}");
    }
    // It waited a minute, was worked on for a minute, and ended.
    let own = parts(&spans, "87.1");
    let names: Vec<&str> = own.iter().map(|s| s.text("name")).collect();
    assert_eq!(names, ["pending", "invoke_agent prep-agent"]);
    assert_eq!(own[1].attributes["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(own[1].attributes["gen_ai.agent.name"], "prep-agent");
    assert_eq!(
        own[0].seconds() + own[1].seconds(),
        of(&spans, "87.1").seconds()
    );
    assert!(!own[0].attributes.contains_key("gen_ai.operation.name"));
}

#[test]
fn retries_loops_and_what_follows_are_linked() {
    let env = completed(|_| Format::Xml);
    let spans = spans(&env, &[]);
    // The implementer failed, and was asked again.
    let own = parts(&spans, "87.2");
    let work: Vec<&&Span> = own
        .iter()
        .filter(|s| s.text("name").starts_with("invoke_agent"))
        .collect();
    assert_eq!(work.len(), 2);
    assert_eq!(work[1].links("attempt_before"), [work[0].text("spanId")]);
    assert_eq!(work[0].raw["status"]["code"], "STATUS_CODE_ERROR");
    assert!(
        !work[0].raw["status"]["message"]
            .as_str()
            .unwrap()
            .is_empty()
    );
    let record = stored(&env.data(&["show", "87.2"]));
    let failed = record["transitions"].as_array().unwrap().iter();
    let failed = failed.filter_map(|t| t["failure"]["code"].as_str()).next();
    assert_eq!(work[0].attributes["error.type"], failed.unwrap());
    assert!(work[1].raw.get("status").is_none(), "{:?}", work[1]);
    // What came of it in the end was no error.
    assert!(of(&spans, "87.2").raw.get("status").is_none());
    // Work that goes back to an agent that had it: to the reviewer, and the fixer again.
    let mut loops = BTreeSet::new();
    for span in spans.iter().filter(|s| !s.links("returns_to").is_empty()) {
        let [before] = &span.links("returns_to")[..] else {
            panic!("{span:?}");
        };
        let before = spans.iter().find(|s| s.text("spanId") == before).unwrap();
        assert_eq!(
            span.attributes["git_handoff.to"],
            before.attributes["git_handoff.to"]
        );
        loops.insert(span.attributes["git_handoff.to"].as_str().unwrap());
    }
    assert_eq!(
        loops,
        BTreeSet::from(["fixer-agent", "reviewer-agent", "validator-agent"])
    );
}

#[test]
fn ids_are_the_same_at_each_export_and_others_in_another_ledger() {
    let env = completed(|_| Format::Xml);
    assert_eq!(exported(&env, &[]), exported(&env, &[]));
    let ids = |text: &str| -> Vec<(String, String)> {
        let each = decoded(text).into_iter();
        each.map(|s| (s.text("traceId").to_owned(), s.text("spanId").to_owned()))
            .collect()
    };
    // What happens later gets ids of its own, and changes none.
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let before = ids(&exported(&env, &[]));
    env.claim("87.1", "prep-agent").success();
    let after = ids(&exported(&env, &[]));
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), before.len() + 1);
    env.wait_minutes(9);
    let other = TestEnvironment::with_repository();
    other.wait_minutes(1);
    other.handoff(&["init"]).success();
    other.send(opening(87)).success();
    assert_ne!(ids(&exported(&other, &[]))[0].0, before[0].0);
}

#[test]
fn what_has_not_ended_is_told_as_it_stands() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    env.wait_minutes(60);
    let spans = spans(&env, &[]);
    assert_whole(&spans);
    let open: Vec<&str> = spans
        .iter()
        .filter(|s| s.attributes.get("git_handoff.open") == Some(&json!(true)))
        .map(|s| s.text("name"))
        .collect();
    let kind = of(&spans, "87.1").text("name");
    assert_eq!(
        open,
        [
            "invoke_workflow issue-to-pr",
            kind,
            "invoke_agent prep-agent"
        ]
    );
    for span in &spans {
        let is_open = span.attributes.contains_key("git_handoff.open");
        assert_eq!(span.time("endTimeUnixNano") == env.now(), is_open);
    }
    // A clock that was set back ends nothing before it began.
    env.wait_minutes(-600);
    assert_whole(&decoded(&exported(&env, &[])));
    assert_eq!(exported(&env, &["--completed"]), "");
}

#[test]
fn a_trace_has_the_attributes_and_events_that_the_delegation_protocol_names() {
    let env = test_support::time::own("delegation", |_| {});
    env.pace(6);
    let missing = json!([
        {"key": "market", "expectedType": "string", "description": "Which"},
        {"key": "year", "expectedType": "number", "description": "When"}
    ]);
    env.send(asks(WRITER, RESEARCH, &[("/missingInputs", missing)]))
        .success();
    env.claim(&traced(1), RESEARCH).success();
    let provided = json!({"market": "north", "year": 2026});
    let more = [
        ("/providedInputs", provided),
        ("/executionTimeMs", json!(1234)),
    ];
    env.send(answers(RESEARCH, "resolved", &more)).success();
    env.send(asks(WRITER, "human", &[])).success();
    let spans = spans(&env, &[]);
    assert_whole(&spans);
    let request = of(&spans, &traced(1));
    // The issue's key is the trace that the agents have.
    assert_eq!(request.text("traceId"), TRACE.replace('-', ""));
    let reason = test_support::time::sample("delegation", "request", &[])["reason"].clone();
    for (name, value) in [
        ("handoff.trace_id", json!(TRACE)),
        ("handoff.source_agent", json!(WRITER)),
        ("handoff.target_agent", json!(RESEARCH)),
        ("handoff.reason", reason.clone()),
        ("handoff.status", json!("resolved")),
        ("handoff.execution_time_ms", json!("1234")),
        ("handoff.inputs_provided", json!("2")),
        ("handoff.inputs_missing", json!("2")),
    ] {
        assert_eq!(request.attributes.get(name), Some(&value), "{name}");
    }
    let events = |span: &Span| -> Vec<(String, BTreeMap<String, Value>)> {
        let each = span.list("events").into_iter();
        each.map(|e| (e["name"].as_str().unwrap().to_owned(), told(&e)))
            .collect()
    };
    let all = events(request);
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["handoff.request", "handoff.response"]);
    assert_eq!(all[0].1["source"], WRITER);
    assert_eq!(all[0].1["target"], RESEARCH);
    assert_eq!(all[0].1["reason"], reason);
    assert_eq!(all[1].1["traceId"], TRACE);
    assert_eq!(all[1].1["status"], "resolved");
    assert_eq!(all[1].1["executionTimeMs"], "1234");
    // A person is asked: that is an escalation.
    let asked = events(of(&spans, &traced(3)));
    let names: Vec<&str> = asked.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["handoff.request", "handoff.human_escalation"]);
    let told: Vec<&str> = asked[1].1.keys().map(String::as_str).collect();
    assert_eq!(told, ["priority", "reason", "reasonDetail", "traceId"]);
    // The answer is a handoff too, linked to its request.
    let answer = of(&spans, &traced(2));
    assert_eq!(answer.links("answers"), [request.text("spanId")]);
    assert!(events(answer).is_empty());
}

#[test]
fn every_protocol_s_life_is_a_whole_trace() {
    for protocol in test_support::team::BUILT_IN {
        let env = test_support::exchange::lived(protocol);
        let text = exported(&env, &[]);
        let spans = decoded(&text);
        assert_whole(&spans);
        let handoffs = spans
            .iter()
            .filter(|s| s.text("name").starts_with("handoff "));
        assert_eq!(handoffs.count(), self::handoffs(&env), "{protocol}");
        for span in spans
            .iter()
            .filter(|s| s.text("name").starts_with("handoff "))
        {
            let failed = ["failed", "dead", "rejected"];
            let state = span.attributes["git_handoff.state"].as_str().unwrap();
            let is_error = span.raw["status"]["code"] == "STATUS_CODE_ERROR";
            assert_eq!(is_error, failed.contains(&state), "{protocol} {span:?}");
        }
        for (name, state) in [("blocked", "blocked"), ("pending", "pending")] {
            for span in named(&spans, name) {
                assert_eq!(span.attributes["git_handoff.state"], state);
            }
        }
    }
}

#[test]
fn a_step_s_own_trace_is_linked_where_the_work_was_done() {
    let env = TestEnvironment::with_ledger();
    let within = |args: &[&str], input: &str, span: &str| {
        let mut command = env.program(args);
        command.env("TRACEPARENT", REMOTE.replace("00f067aa0ba902b7", span));
        env.run(command, args, Some(input.as_bytes())).success();
    };
    within(&["send", "-"], &opening(87), "00000000000000aa");
    within(
        &["claim", "87.1", "--as", "prep-agent"],
        "",
        "00000000000000bb",
    );
    within(
        &["complete", "87.1", "--as", "prep-agent"],
        "",
        "00000000000000cc",
    );
    let spans = spans(&env, &[]);
    assert_eq!(of(&spans, "87.1").links("made_in"), ["00000000000000aa"]);
    let work = named(&spans, "invoke_agent prep-agent")[0];
    assert_eq!(
        work.links("made_in"),
        ["00000000000000bb", "00000000000000cc"]
    );
    let link = &work.list("links")[0];
    assert_eq!(link["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    // Sampled, and known to be another process's.
    assert_eq!(link["flags"], 0x301);
    assert_eq!(told(link)["git_handoff.event"], "claim");
}

#[test]
fn what_is_asked_for_is_what_is_written_to_a_file_too() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.wait_minutes(3 * 24 * 60);
    env.send(opening(88)).success();
    let issues = |args: &[&str]| -> Vec<String> {
        let text = exported(&env, args);
        let roots = decoded(&text).into_iter();
        let roots = roots.filter(|s| s.text("parentSpanId").is_empty());
        roots
            .map(|s| {
                s.attributes["git_handoff.issue"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(issues(&[]), ["87", "88"]);
    assert_eq!(issues(&["--issue", "87"]), ["87"]);
    assert_eq!(issues(&["--since", "1d"]), ["88"]);
    assert_eq!(issues(&["--since", "2026-03-01"]), ["87", "88"]);
    env.handoff(&["export", "otlp", "--issue", "99"]).exits(6);
    env.handoff(&["export", "otlp", "--since", "never"])
        .exits(2);
    let path = env.root().join("traces.jsonl");
    let path = path.to_str().unwrap();
    env.pace(0);
    let ran = env.handoff(&["export", "otlp", "--output", path, "--json"]);
    let data = ran.success().json()["data"].clone();
    assert_eq!((&data["issues"], &data["lines"]), (&json!(2), &json!(2)));
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(text, exported(&env, &[]));
    assert_eq!(data["spans"], decoded(&text).len());
    let left = |dir: &Path| fs::read_dir(dir).unwrap().count();
    let before = left(env.root());
    // One that can't be written leaves the old one, and nothing beside it.
    let nowhere = env.root().join("none/traces.jsonl");
    env.handoff(&["export", "otlp", "--output", nowhere.to_str().unwrap()])
        .exits(9);
    assert_eq!(left(env.root()), before);
}

#[test]
fn a_dash_is_standard_output() {
    let env = TestEnvironment::with_ledger();
    env.pace(0);
    env.send(opening(87)).success();
    let printed = env.handoff(&["export", "otlp"]).success().stdout;
    let ran = env.handoff(&["export", "otlp", "--output", "-"]).success();
    assert_eq!(ran.stdout, printed);
    assert!(!env.repo().join("-").exists());
    env.handoff(&["export", "otlp", "-o", "traces.jsonl"])
        .success();
    let file = std::fs::read_to_string(env.repo().join("traces.jsonl")).unwrap();
    assert_eq!(file, printed);
}

#[test]
fn an_export_into_a_folder_still_is_one() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let dir = env.repo().join("otlp");
    env.handoff(&["export", "--format", "files", "otlp"])
        .success();
    assert!(dir.join("steps.jsonl").is_file());
    env.handoff(&["export"]).exits(2);
    env.handoff(&["export", "--format", "files"]).exits(2);
    env.handoff(&["export", "--format", "files", "otlp", "--push"])
        .exits(2);
}

/// Every attribute, event and link that the documents list is one that is told.
#[test]
fn what_is_told_is_described() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observability.md");
    let text = fs::read_to_string(path).unwrap();
    let section = text.split("\n## Traces\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("|`"));
    let described: BTreeSet<&str> = rows
        .flat_map(|row| {
            row.trim_start_matches('|')
                .split('|')
                .next()
                .unwrap()
                .split('`')
                .skip(1)
                .step_by(2)
        })
        .collect();
    let mut met = BTreeSet::new();
    for protocol in test_support::team::BUILT_IN {
        for span in spans(&test_support::exchange::lived(protocol), &[]) {
            met.extend(span.attributes.keys().cloned());
            for event in span.list("events") {
                met.insert(event["name"].as_str().unwrap().to_owned());
            }
            for link in span.list("links") {
                met.insert(told(&link)["git_handoff.link"].as_str().unwrap().to_owned());
            }
        }
    }
    for name in &met {
        assert!(described.contains(name.as_str()), "{name} in {described:?}");
    }
    assert!(met.len() > 30, "{met:?}");
}

/// Every fault that `protocol check` knows of `traces`, with its place.
#[test]
fn faults_of_what_a_protocol_says_of_traces_are_told() {
    let env = TestEnvironment::with_repository();
    let one = |event: Value| json!({ "events": [event] });
    for (i, (traces, found)) in [
        (
            json!({"attributes": {"x": "reason"}}),
            "protocol.pointer /traces/attributes/x",
        ),
        (
            json!({"attributes": {"x": "/nowhere"}}),
            "protocol.unknown_field /traces/attributes/x",
        ),
        (
            json!({"attributes": {"x": {"count": "/nowhere"}}}),
            "protocol.unknown_field /traces/attributes/x",
        ),
        (
            json!({"attributes": {"gen_ai.agent.name": "/reason"}}),
            "protocol.trace /traces/attributes",
        ),
        (
            json!({"attributes": {"a name": "/reason"}}),
            "protocol.trace /traces/attributes",
        ),
        (
            one(json!({"name": "", "contracts": ["request"]})),
            "protocol.trace /traces/events/0/name",
        ),
        (
            one(json!({"name": "asked", "contracts": []})),
            "protocol.trace /traces/events/0/contracts",
        ),
        (
            one(json!({"name": "asked", "contracts": ["letter"]})),
            "protocol.unknown_type /traces/events/0/contracts/0",
        ),
        (
            one(json!({"name": "asked", "contracts": ["request"], "when": {"/nowhere": "x"}})),
            "protocol.unknown_field /traces/events/0/when",
        ),
        (
            one(
                json!({"name": "asked", "contracts": ["request"], "attributes": {"y": "/nowhere"}}),
            ),
            "protocol.unknown_field /traces/events/0/attributes/y",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = test_support::team::Folder::copy(&env, "delegation", &format!("copy{i}"));
        folder.define(|definition| definition["traces"] = traces.clone());
        let args = ["protocol", "check", &folder.path(), "--json"];
        let refused = test_support::team::Refused::of(&env.handoff(&args));
        let [finding] = &refused.findings[..] else {
            panic!("{traces}: {:?}", refused.findings);
        };
        assert!(
            finding.to_string().starts_with(found),
            "{traces}: {finding}"
        );
    }
}

/// A ledger whose protocol came into force before there were traces is exported.
#[test]
fn a_protocol_without_traces_has_them_all_the_same() {
    let env = test_support::time::own("issue-to-pr", |definition| {
        definition.as_object_mut().unwrap().shift_remove("traces");
    });
    env.send(opening(87)).success();
    let spans = spans(&env, &[]);
    assert_whole(&spans);
    let span = of(&spans, "87.1");
    assert_eq!(span.attributes["git_handoff.to"], "prep-agent");
    assert!(!span.attributes.contains_key("handoff.target_agent"));
}
