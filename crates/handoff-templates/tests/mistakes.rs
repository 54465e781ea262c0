//! Mistakes of a protocol's author are found in a folder, each with its place and what to write
//! instead; what is built in and shown has none.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use handoff_base::finding::Finding;
use handoff_model::{ProtocolScope, check_protocol_for};
use handoff_templates::{BUILT_IN, Folder, built_in, check_folder, relay};

type Files = Vec<(String, Vec<u8>)>;

fn files(name: &str) -> Files {
    let agents = ["writer", "editor", "printer"].map(|agent| agent.parse().unwrap());
    let own = || relay(&name.parse().unwrap(), &agents);
    built_in(name).unwrap_or_else(own).into_files()
}

/// The findings but notes, after these replacements in the protocol's files.
fn found(files: &Files) -> Vec<Finding> {
    let mut found = check_folder(files);
    found.retain(|finding| finding.is_error() || finding.fix.is_some());
    found.retain(|finding| finding.code.to_string() != "protocol.claims");
    found
}

fn replace(files: &mut Files, path: &str, from: &str, to: &str) -> String {
    let (_, bytes) = files.iter_mut().find(|(known, _)| known == path).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(text.contains(from), "{path} has no {from}");
    let text = text.replacen(from, to, 1);
    *bytes = text.clone().into_bytes();
    text
}

#[test]
fn what_is_built_in_and_shown_has_no_mistake() {
    for name in BUILT_IN.into_iter().chain(["press"]) {
        assert_eq!(found(&files(name)), [], "{name}");
    }
    for example in ["bakery", "works"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples/protocols")
            .join(example);
        let files = Folder::read(&path).unwrap().into_files();
        assert_eq!(found(&files), [], "{example}");
    }
}

const DEFINITION: &str = "protocol.json";
const SCHEMA: &str = "schemas/writer-to-editor.schema.json";
const TEMPLATE: &str = "templates/writer-to-editor.json";

/// Mistakes in the relay of writer, editor and printer: a file; a part of it, and what replaces it;
/// what the finding points at, says and proposes.
const MISTAKES: [[&str; 6]; 46] = [
    [
        DEFINITION,
        r#""success": "completed","#,
        r#""success": "completed", "success": "failed","#,
        r#""success": "failed""#,
        "`success` stands twice in one object, first in line 8, column 24",
        "keep one",
    ],
    [
        DEFINITION,
        r#"{"state": "blocked"}"#,
        r#"{"state": "blocked", "state": "blocked"}"#,
        r#""state": "blocked"}"#,
        "`state` stands twice",
        "keep one",
    ],
    [
        SCHEMA,
        r#""const": "success""#,
        r#""const": "success" , "const": "success""#,
        r#""const": "success"}"#,
        "`const` stands twice in one object, first in line 13",
        "keep one",
    ],
    [
        TEMPLATE,
        r#""from":"#,
        r#""from": "x", "from":"#,
        r#""from": "w"#,
        "`from` stands twice",
        "keep one",
    ],
    [
        SCHEMA,
        r#""required": ["#,
        r#""requierd": ["#,
        r#"["issue""#,
        "`requierd` is not a keyword of JSON Schema",
        "did you mean `required`?",
    ],
    [
        SCHEMA,
        "minLength",
        "minLenght",
        r#"1, "maxLength": 1000,"#,
        "`minLenght` is not a keyword",
        "did you mean `minLength`?",
    ],
    [
        SCHEMA,
        "pattern",
        "patern",
        r#""^[A-Za-z"#,
        "`patern` is not a keyword",
        "did you mean `pattern`?",
    ],
    [
        SCHEMA,
        "additionalProperties",
        "additonalProperties",
        "false",
        "`additonalProperties` is not a keyword",
        "did you mean `additionalProperties`?",
    ],
    [
        SCHEMA,
        r#"{"name": "handoff"}"#,
        r#"{"nmae": "handoff"}"#,
        r#""handoff""#,
        "`nmae` is not a key of `xml`",
        "did you mean `name`?",
    ],
    [
        SCHEMA,
        r#"{"name": "handoff"}"#,
        r#"{"name": "handoff", "x-jsn": false}"#,
        "false}",
        "`x-jsn` is not a key of `xml`",
        "did you mean `x-json`?",
    ],
    [
        SCHEMA,
        r#""maxLength": 10000,"#,
        r#""maxLength": 10000, "x-json": true,"#,
        "true,",
        "`x-json` belongs in `xml`",
        r#"write {"xml": {"x-json": true}}"#,
    ],
    [
        SCHEMA,
        r#""maxLength": 10000,"#,
        r#""maxLength": 10000, "colour": "red","#,
        r#""red""#,
        "`colour` is not a keyword",
        "leave it out",
    ],
    [
        SCHEMA,
        r#""status", "summary"]"#,
        r#""status", "sumary"]"#,
        r#""sumary""#,
        "`sumary` is required, and not among the `properties`",
        "did you mean `summary`?",
    ],
    [
        SCHEMA,
        r#"["Titles are printed as slugs"]"#,
        r#"["Titles", 17]"#,
        "17]",
        "the example `17` is not valid here: `type` refuses it",
        "give one that `type` accepts",
    ],
    [
        SCHEMA,
        r#"["Titles are printed as slugs"]"#,
        r#"[""]"#,
        r#"""]"#,
        r#"the example `""` is not valid here: `minLength` refuses it"#,
        "give one that `minLength` accepts",
    ],
    [
        SCHEMA,
        r#""const": "writer"}"#,
        r#""enum": ["writer"], "examples": ["writr"]}"#,
        r#""writr""#,
        r#"the example `"writr"` is not valid here: `enum`"#,
        "give one",
    ],
    [
        SCHEMA,
        r#""pattern": "#,
        r#""default": "a b", "pattern": "#,
        r#""a b""#,
        r#"the example `"a b"` is not valid here: `pattern`"#,
        "give one",
    ],
    [
        DEFINITION,
        r#""to": "printer""#,
        r#""to": "priner""#,
        r#""priner""#,
        "no agent is called `priner`",
        "did you mean `printer`?",
    ],
    [
        DEFINITION,
        r#"["printer-to-end"]"#,
        r#"["printer-to-edn"]"#,
        r#""printer-to-edn""#,
        "no contract type is called",
        "did you mean `printer-to-end`?",
    ],
    [
        DEFINITION,
        r#"["/details"]"#,
        r#"["/detials"]"#,
        r#""/detials""#,
        "no schema has a field `/detials`",
        "did you mean `/details`?",
    ],
    [
        DEFINITION,
        r#""code": "/code""#,
        r#""code": "/cod""#,
        r#"{"code": "/cod""#,
        "`/cod` is a field that schemas/error.schema.json does not have",
        "did you mean `/code`?",
    ],
    [
        DEFINITION,
        r#"{"state": "blocked"}"#,
        r#"{"status": ["sucess"]}"#,
        r#""sucess""#,
        "`sucess` is not a word in `words.status`",
        "did you mean `success`?",
    ],
    [
        DEFINITION,
        r#", "failure": "failed""#,
        "",
        r#"{"success""#,
        "`error` allows the status `failure`, which words.status does not have",
        "say there which state it means",
    ],
    [
        SCHEMA,
        r#""const": "success""#,
        r#""enum": ["success", "sucess"]"#,
        "",
        "`writer-to-editor` allows the status `sucess`, which words.status does not have",
        "did you mean `success`?",
    ],
    [
        DEFINITION,
        r#"{"state": "dead"}"#,
        r#"{"state": "dea"}"#,
        r#""dea""#,
        "unknown variant `dea`",
        "did you mean `dead`?",
    ],
    [
        DEFINITION,
        r#""handoffs": 50"#,
        r#""handofs": 50"#,
        r#""handofs""#,
        "unknown field `handofs`",
        "did you mean `handoffs`?",
    ],
    [
        DEFINITION,
        r#""action": "escalate","#,
        r#""action": "escalate", "to": "orchestator","#,
        r#""orchestator""#,
        "no agent is called",
        "did you mean `orchestrator`?",
    ],
    [
        DEFINITION,
        r#""alerts": ["#,
        r#""alerts": [{"need": "blocked", "tell": ["sendr"]}, "#,
        r#""sendr""#,
        "`sendr` is neither an agent nor one of",
        "did you mean `sender`?",
    ],
    [
        DEFINITION,
        r#""alerts":"#,
        r#""requirements": {"edited": {"title": "x", "shown_by": ["editor-to-printer", "editor-to-prnter"]}}, "alerts":"#,
        r#""editor-to-prnter""#,
        "no contract type is called",
        "did you mean `editor-to-printer`?",
    ],
    [
        DEFINITION,
        r#"["TIMEOUT"]"#,
        r#"["TIMEOOT"]"#,
        r#""TIMEOOT""#,
        "no failure has the code `TIMEOOT`",
        "did you mean `TIMEOUT`?",
    ],
    [
        DEFINITION,
        r#"["editor-to-printer"]}"#,
        r#"["editor-to-printer"], "via": "orchestrator"}"#,
        r#""orchestrator"}"#,
        "no route leads from `orchestrator` to `printer`",
        "add a route from `orchestrator` to `printer`",
    ],
    [
        TEMPLATE,
        r#""status": "success""#,
        r#""status": "succes""#,
        r#""succes""#,
        "`/status` does not fit schemas/writer-to-editor.schema.json: `succes` must be `success`",
        "write what the schema accepts",
    ],
    [
        TEMPLATE,
        r#""from": "writer""#,
        r#""from": "editor""#,
        r#""editor""#,
        "`/from` does not fit schemas/writer-to-editor.schema.json: `editor` must be `writer`",
        "write what the schema accepts",
    ],
    [
        TEMPLATE,
        r#""{{fill: what was done, in one line}}""#,
        r#""""#,
        r#""""#,
        "`/summary` does not fit schemas/writer-to-editor.schema.json: the text is empty",
        "write what the schema accepts",
    ],
    [
        TEMPLATE,
        r#""details": "#,
        r#""detials": "#,
        r#""{{fill: anything"#,
        "`/detials` is a field that schemas/writer-to-editor.schema.json does not have",
        "did you mean `details`?",
    ],
    [
        SCHEMA,
        r#""properties": {"#,
        r#""properties": {"word": {"type": "string", "minLength": 100, "maxLength": 10}, "#,
        "100,",
        "no value is valid here: `minLength` is 100, and `maxLength` is 10",
        "lower `minLength`, or raise `maxLength`",
    ],
    [
        SCHEMA,
        r#""properties": {"#,
        r#""properties": {"pages": {"type": "integer", "minimum": 3, "exclusiveMaximum": 3}, "#,
        "3, ",
        "no value is valid here: `minimum` is 3, and `exclusiveMaximum` is 3",
        "lower `minimum`",
    ],
    [
        SCHEMA,
        r#""properties": {"#,
        r#""properties": {"list": {"type": "array", "minItems": 3, "maxItems": 2}, "#,
        "3, ",
        "no value is valid here: `minItems` is 3, and `maxItems` is 2",
        "lower `minItems`",
    ],
    [
        SCHEMA,
        r#""properties": {"#,
        r#""properties": {"word": {"enum": ["a", "b"], "pattern": "^c"}, "#,
        r#"["a", "b"]"#,
        r#"no value is valid here: `pattern` refuses `"a"`"#,
        "give one that `pattern` accepts",
    ],
    [
        SCHEMA,
        r#""const": "success""#,
        r#""enum": []"#,
        "[]}",
        "no value is valid here: `enum` lists none",
        "list the values",
    ],
    [
        SCHEMA,
        r#""type": "string", "minLength""#,
        r#""type": "strng", "minLength""#,
        r#""strng""#,
        "`strng` is not a type of JSON Schema",
        "did you mean `string`?",
    ],
    [
        DEFINITION,
        r#""facts":"#,
        r#""consistency": [{"name": "one", "compare": {"same": ["/sumary", "/details"]}}], "facts":"#,
        r#""/sumary""#,
        "no schema has a field `/sumary`",
        "did you mean `/summary`?",
    ],
    [
        DEFINITION,
        r#""facts":"#,
        r#""consistency": [{"name": "one", "compare": {"same": ["fact:summary/en", "/details"]}}], "facts":"#,
        r#""fact:summary/en""#,
        "no contract states the part `/en` of fact `summary`",
        "correct it, or compare the whole `fact:summary`",
    ],
    [
        DEFINITION,
        r#"{"from": "printer""#,
        r#"{"from": "editor", "to": "printer", "contracts": ["editor-to-printer"]}, {"from": "printer""#,
        r#"["editor-to-printer"]}, "#,
        "`editor-to-printer` goes from `editor` to `printer` by another route already",
        "leave it out here",
    ],
    [
        DEFINITION,
        r#""handoffs": 50"#,
        r#""handoffs": "50""#,
        r#""50""#,
        r#"invalid type: string "50", expected a whole number"#,
        "write it without the quotes",
    ],
    [
        DEFINITION,
        r#""kind": "orchestrator""#,
        r#""kind": "boss""#,
        r#""boss""#,
        "unknown variant `boss`",
        "use one of these",
    ],
];

/// What only warns: it may be meant, and refuses nothing.
const WARNED: [&str; 3] = ["`colour`", "no failure", "`editor-to-printer` goes"];

/// Whether the finding is the only one, at this place in the file.
fn told(files: &Files, text: &str, [path, at, message, fix]: [&str; 4]) {
    let all = found(files);
    let mut matching = all.iter().filter(|one| one.message.starts_with(message));
    let Some(finding) = matching.next() else {
        panic!("{message}: {all:#?}");
    };
    let errors = all.iter().filter(|one| one.is_error() && *one != finding);
    assert_eq!(errors.count(), 0, "{all:#?}");
    assert!(
        finding
            .fix
            .as_ref()
            .is_some_and(|told| told.starts_with(fix)),
        "{finding:#?}"
    );
    let is_in_definition = path == DEFINITION || finding.path.starts_with('/');
    assert!(is_in_definition || finding.path == path, "{finding:#?}");
    let warns = WARNED
        .iter()
        .any(|start| finding.message.starts_with(start));
    assert_eq!(finding.is_error(), !warns, "{finding:#?}");
    let (line, column) = (finding.line.unwrap(), finding.column.unwrap());
    let own = files.iter().find(|(known, _)| known == DEFINITION).unwrap();
    let own = str::from_utf8(&own.1).unwrap();
    let text = if finding.path.starts_with('/') {
        own
    } else {
        text
    };
    let line = text.lines().nth(line as usize - 1).unwrap();
    let here: String = line.chars().skip(column as usize - 1).collect();
    assert!(
        here.starts_with(at)
            || ["unknown ", "invalid type"]
                .iter()
                .any(|start| message.starts_with(start)),
        "{finding:#?}: {here}"
    );
}

#[test]
fn each_mistake_is_found_with_its_place_and_what_is_meant() {
    for [path, right, wrong, at, message, fix] in MISTAKES {
        let mut files = files("press");
        let text = replace(&mut files, path, right, wrong);
        told(&files, &text, [path, at, message, fix]);
    }
}

/// What is recorded was not checked for mistakes of an author: it stays valid.
#[test]
fn what_is_on_record_stays_valid() {
    for [path, right, wrong, _, message, _] in MISTAKES {
        let mut files = files("press");
        replace(&mut files, path, right, wrong);
        let later = [
            "is not a key",
            "stands twice in one object",
            "belongs in",
            "required, and",
            "the example",
            "no failure",
            "no route",
            "does not fit",
            "is a field that schemas/writer",
            "no value is valid",
            "no contract states",
            "by another route",
            "which words.status does not have",
        ];
        if later.iter().any(|text| message.contains(text)) {
            for scope in [ProtocolScope::OnRecord, ProtocolScope::Setting] {
                let found = check_protocol_for(&files, scope);
                assert!(!found.iter().any(Finding::is_error), "{found:#?}");
            }
        }
    }
}

#[test]
fn a_code_that_the_protocol_does_not_list_is_refused() {
    let listed = |code: &str| {
        let mut files = files("press");
        let errors = format!(
            r#""blocked": "blocked"}}, "errors": {{"{code}": {{"meaning": "x", "recovery": "y"}}}}"#
        );
        replace(&mut files, DEFINITION, r#""blocked": "blocked"}"#, &errors);
        let text = replace(
            &mut files,
            DEFINITION,
            r#"["TIMEOUT"]"#,
            r#"["LIBEL", "FAILED"]"#,
        );
        (files, text)
    };
    assert_eq!(found(&listed("LIBEL").0), []);
    let (files, _) = listed("LIBLE");
    let all = found(&files);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert!(all[0].is_error());
    assert_eq!(all[0].fix.as_deref(), Some("did you mean `LIBLE`?"));
}

#[test]
fn a_limit_below_the_usual_way_is_found() {
    let limited = |name: &str, most: u32| {
        let mut files = files(name);
        let (_, bytes) = files
            .iter_mut()
            .find(|(path, _)| path == DEFINITION)
            .unwrap();
        let mut definition: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        definition["limits"]["handoffs"] = most.into();
        let text = serde_json::to_string_pretty(&definition).unwrap();
        *bytes = text.clone().into_bytes();
        (files, text)
    };
    for (name, least, way) in [
        ("issue-to-pr", 5, "end of an issue"),
        ("task-breakdown", 3, "contract `execution-to-planning`"),
    ] {
        let (files, text) = limited(name, 2);
        let message =
            format!("the usual way to the {way} takes {least} handoffs, more than the limit of 2");
        let fix = format!("allow {least} at least");
        told(&files, &text, [DEFINITION, "2", &message, &fix]);
        let enough = found(&limited(name, least).0);
        let is_told = enough.iter().any(|one| one.message.contains("usual way"));
        assert!(!is_told, "{name}: {enough:#?}");
        let setting = check_protocol_for(&files, ProtocolScope::Setting);
        assert!(!setting.iter().any(Finding::is_error), "{setting:#?}");
    }
}

/// A deciding agent needs to be made to decide; work that goes round needs a limit.
#[test]
fn routes_that_lead_round_are_found() {
    let with_type = |to: &str, route: &str| {
        let mut files = files("press");
        let add = |files: &mut Files, path: &str, from: &str| {
            let file = files.iter().find(|(known, _)| known == from).unwrap();
            let text = String::from_utf8(file.1.clone()).unwrap();
            let (sender, receiver) = to.split_once("-to-").unwrap();
            let text = text
                .replace("\"editor\"", "RECEIVER")
                .replace("\"writer\"", &format!("\"{sender}\""))
                .replace("RECEIVER", &format!("\"{receiver}\""));
            files.push((path.to_owned(), text.into_bytes()));
        };
        add(&mut files, &format!("schemas/{to}.schema.json"), SCHEMA);
        add(&mut files, &format!("templates/{to}.json"), TEMPLATE);
        let kind = format!(r#"{{"type": "{to}", "title": "x"}}, {{"type": "printer-to-end""#);
        replace(
            &mut files,
            DEFINITION,
            r#"{"type": "printer-to-end""#,
            &kind,
        );
        replace(
            &mut files,
            DEFINITION,
            r#"{"from": "printer""#,
            &format!(r#"{route}, {{"from": "printer""#),
        );
        files
    };
    let route = r#"{"from": "editor", "to": "writer", "contracts": ["editor-to-writer"]}"#;
    let mut files = with_type("editor-to-writer", route);
    assert_eq!(found(&files), []);
    replace(&mut files, DEFINITION, ",\n    \"handoffs\": 50", "");
    let fix = "limit it in `limits`";
    let round = "work can go round for ever: editor → writer → editor";
    let all = found(&files);
    let [finding] = &all[..] else {
        panic!("{all:#?}");
    };
    assert!(!finding.is_error());
    assert_eq!(finding.message, round);
    assert!(
        finding
            .fix
            .as_ref()
            .is_some_and(|told| told.starts_with(fix))
    );
    // Any of these limits bounds it.
    for limit in [
        r#""deadline_seconds": 600"#,
        r#""rounds": {"again": {"contracts": ["editor-to-writer"], "most": 3}}"#,
        r#""cycle": {"reason": "/summary", "among": 9, "most": 3}"#,
    ] {
        let mut files = files.clone();
        let retry = format!(r#"{limit}, "retry""#);
        replace(&mut files, DEFINITION, r#""retry""#, &retry);
        assert_eq!(found(&files), [], "{limit}");
    }
    // Through a deciding agent.
    let route =
        r#"{"from": "orchestrator", "to": "printer", "contracts": ["orchestrator-to-printer"]}"#;
    let mut files = with_type("orchestrator-to-printer", route);
    let via = r#"["editor-to-printer"], "via": "orchestrator"}"#;
    replace(&mut files, DEFINITION, r#"["editor-to-printer"]}"#, via);
    assert_eq!(found(&files), []);
    let text = replace(
        &mut files,
        DEFINITION,
        r#""kind": "orchestrator""#,
        r#""kind": "human""#,
    );
    let message = "`orchestrator` is of kind `human`: only an orchestrator has to decide first";
    told(
        &files,
        &text,
        [
            DEFINITION,
            r#""orchestrator"}"#,
            message,
            "make `orchestrator` the orchestrator",
        ],
    );
}

/// What is not parsed is told with the place in its own file.
#[test]
fn what_is_not_json_is_found_at_its_place() {
    for (path, from) in [
        (DEFINITION, "\"name\""),
        (SCHEMA, "\"xml\""),
        (TEMPLATE, "\"from\""),
    ] {
        let mut files = files("press");
        let text = replace(&mut files, path, from, &format!(",{from}"));
        told(
            &files,
            &text,
            [path, "", "it is not JSON: ", "look at the commas"],
        );
    }
}

/// One mistake is one fault: what only follows from it has another cure.
#[test]
fn what_only_follows_from_a_fault_is_not_told() {
    for ([path, right, wrong], message) in [
        (
            [SCHEMA, r#""const": "writer""#, r#""const": "writr""#],
            "a contract of type `writer-to-editor` can't name `writer`",
        ),
        (
            [DEFINITION, r#""handoffs": 50"#, r#""handoffs": 0"#],
            "a limit of 0 leaves room for nothing",
        ),
        (
            [DEFINITION, r#""kind": "end""#, r#""kind": "fin""#],
            "unknown variant `fin`",
        ),
        (
            [DEFINITION, r#"{"id": "editor""#, r#"{"id": "the editor""#],
            "agent name \"the editor\"",
        ),
        (
            [
                DEFINITION,
                r#""contracts": [
    {"#,
                r#""contract": [
    {"#,
            ],
            "unknown field `contract`",
        ),
        (
            [DEFINITION, r#""opens": true"#, r#""open": true"#],
            "unknown field `open`",
        ),
        (
            [
                SCHEMA,
                r#""type": "string", "minLength": 1, "maxLength": 1000,"#,
                r#""type": "int", "minLength": 1,"#,
            ],
            "`int` is not a type of JSON Schema",
        ),
        (
            [DEFINITION, r#""type": "writer-to-editor""#, r#""type": 5"#],
            "invalid type: integer `5`",
        ),
    ] {
        let mut files = files("press");
        replace(&mut files, path, right, wrong);
        let all = found(&files);
        assert_eq!(all.len(), 1, "{all:#?}");
        assert!(all[0].message.starts_with(message), "{all:#?}");
    }
    // Nothing else goes the way of a type whose schema names other agents.
    let mut files = files("press");
    let types = r#"["writer-to-editor", "editor-to-printer"]"#;
    replace(&mut files, DEFINITION, r#"["writer-to-editor"]"#, types);
    let all = found(&files);
    let codes: Vec<String> = all.iter().map(|one| one.code.to_string()).collect();
    assert_eq!(codes, ["protocol.route", "protocol.route"], "{all:#?}");
}

/// Findings are raised, answered and settled by types of their own.
#[test]
fn findings_that_stay_and_answers_that_come_first_are_found() {
    let mut files = files("review");
    let changed = replace(&mut files, DEFINITION, r#""settles": true, "#, "");
    let all = found(&files);
    let [finding] = &all[..] else {
        panic!("{all:#?}");
    };
    assert!(!finding.is_error());
    assert!(finding.message.starts_with("no type settles findings"));
    let line = finding.line.unwrap() as usize;
    assert!(changed.lines().nth(line - 1).unwrap().contains("raises"));
    let settles = r#""title": "Approved", "#;
    let again = format!(r#"{settles}"settles": true, "#);
    replace(&mut files, DEFINITION, settles, &again);
    assert_eq!(found(&files), []);
    let schema = "schemas/work.schema.json";
    let list = r#""type": "array",
      "maxItems""#;
    let least = format!(r#""minItems": 1, {list}"#);
    let text = replace(&mut files, schema, list, &least);
    let message = "`work` opens an issue, which has no findings yet, and schemas/work.schema.json requires an answer in `/findings`";
    told(
        &files,
        &text,
        [DEFINITION, "", message, "let the list be empty"],
    );
}

#[test]
fn a_type_that_no_route_has_is_told_beside_other_faults_of_routes() {
    let mut files = files("press");
    replace(
        &mut files,
        DEFINITION,
        r#""to": "printer""#,
        r#""to": "priner""#,
    );
    let (end, other) = (r#"["printer-to-end"]"#, r#"["editor-to-printer"]"#);
    replace(&mut files, DEFINITION, end, other);
    let told = |all: &[Finding]| -> Vec<String> {
        let told = all.iter().map(|one| format!("{} {}", one.path, one.code));
        told.collect()
    };
    let all = [
        "/contracts/2 protocol.unused_type",
        "/routes/1/to protocol.unknown_agent",
        "/routes/2/contracts protocol.route",
        "/routes/2/contracts protocol.route",
    ];
    assert_eq!(told(&found(&files)), all);
    // A misspelt name may be its.
    replace(&mut files, DEFINITION, other, r#"["printer-to-edn"]"#);
    assert!(!told(&found(&files)).concat().contains("unused"));
}

#[test]
fn a_file_that_nothing_names_is_told_or_is_the_missing_one() {
    let mut files = files("press");
    let (old, text) = ("schemas/old.schema.json", b"{\"type\": \"object\"}");
    files.push((old.to_owned(), text.to_vec()));
    files.push(("templates/old.json".to_owned(), b"{}".to_vec()));
    let all = found(&files);
    let [schema, template] = &all[..] else {
        panic!("{all:#?}");
    };
    assert_eq!((&*schema.path, schema.is_error()), (old, false));
    assert_eq!(
        schema.message,
        "no contract type has this schema: nothing uses it"
    );
    assert_eq!(template.path, "templates/old.json");
    // One that can't be read is told as such.
    let mut faulty = files.clone();
    replace(&mut faulty, old, "{", "");
    let codes = found(&faulty);
    let codes = codes.iter().map(|one| (one.path.clone(), one.is_error()));
    let told = [(old, true), ("templates/old.json", false)];
    let told = told.map(|(path, is_error)| (path.to_owned(), is_error));
    assert_eq!(codes.collect::<Vec<_>>(), told);
    // With the definition, it may be a name that can't be read.
    let mut broken = files.clone();
    replace(&mut broken, DEFINITION, "\"name\"", ",\"name\"");
    assert_eq!(found(&broken).len(), 1);
    // A document has a schema, too; a contract that names schemas may name any.
    let documents =
        format!(r#""documents": {{"old": {{"title": "x", "schema": "{old}"}}}}, "facts""#);
    let mut used = files.clone();
    replace(&mut used, DEFINITION, "\"facts\"", &documents);
    assert_eq!(found(&used), std::slice::from_ref(template));
    let mut named = files.clone();
    let data = r#"{"type": "error", "named_schemas": [{"data": "/details", "schema": "/code"}]"#;
    replace(&mut named, DEFINITION, r#"{"type": "error""#, data);
    assert_eq!(found(&named), std::slice::from_ref(template));
    // A type that was renamed in the definition alone.
    let mut renamed = self::files("press");
    let (was, is) = (r#""type": "error""#, r#""type": "errors""#);
    replace(&mut renamed, DEFINITION, was, is);
    replace(&mut renamed, DEFINITION, r#"["error"]"#, r#"["errors"]"#);
    let cures: Vec<Option<String>> = found(&renamed).into_iter().map(|one| one.fix).collect();
    let cure = |file, key| format!("rename {file}, which no type has, or name it as `{key}`");
    let cures_of = [
        cure("schemas/error.schema.json", "schema"),
        cure("templates/error.json", "template"),
    ];
    assert_eq!(cures, cures_of.map(Some));
}

#[test]
fn faults_come_in_the_order_of_the_files() {
    let mut files = files("press");
    for [path, right, wrong] in [
        [TEMPLATE, r#""details": "#, r#""detials": "#],
        [SCHEMA, r#""const": "success""#, r#""enum": []"#],
        [SCHEMA, "\"pattern\"", "\"patern\""],
        [DEFINITION, r#"["/details"]"#, r#"["/detials"]"#],
        [DEFINITION, r#""to": "printer""#, r#""to": "priner""#],
        [DEFINITION, r#""version": "1.0.0""#, r#""version": "1 0""#],
    ] {
        replace(&mut files, path, right, wrong);
    }
    let all = found(&files);
    let order: Vec<(bool, &str, Option<u32>)> = all
        .iter()
        .map(|one| {
            let is_own = !one.path.starts_with('/');
            let path = if is_own { &*one.path } else { "" };
            (is_own, path, one.line)
        })
        .collect();
    assert_eq!(order.len(), 6, "{all:#?}");
    assert!(order.is_sorted(), "{order:#?}");
}

/// A person finds nothing to do with work that only goes aside.
#[test]
fn an_agent_without_a_way_to_the_end_is_found() {
    let mut files = files("press");
    replace(
        &mut files,
        DEFINITION,
        r#"{"from": "printer", "to": "end", "contracts": ["printer-to-end"]}"#,
        r#"{"from": "editor", "to": "end", "contracts": ["printer-to-end"]}"#,
    );
    for path in [
        "schemas/printer-to-end.schema.json",
        "templates/printer-to-end.json",
    ] {
        let file = files.iter_mut().find(|(known, _)| known == path).unwrap();
        let text = String::from_utf8(file.1.clone()).unwrap();
        file.1 = text.replace("\"printer\"", "\"editor\"").into_bytes();
    }
    let all = found(&files);
    let [finding] = &all[..] else {
        panic!("{all:#?}");
    };
    assert!(!finding.is_error());
    assert_eq!(finding.path, "/agents/2");
    assert_eq!(
        (finding.message.as_str(), finding.fix.as_deref()),
        (
            "nothing that `printer` may send leads to the end of an issue",
            Some("add a route from `printer`, such as back to `editor`"),
        )
    );
}

#[test]
fn a_signer_that_is_no_agent_is_found() {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPo8Xv7Q5r0kqhTYkA7mBl3RSFhkzIpM5dEZ0n1bTqXm";
    let list = format!("# keys\nwritr,editor {key}\n*,!printer,robin@example.com {key}\n");
    let mut files = files("press");
    files.push(("allowed_signers".to_owned(), list.into_bytes()));
    let all = found(&files);
    let [finding, others @ ..] = &all[..] else {
        panic!("nothing was found");
    };
    assert_eq!((finding.line, finding.is_error()), (Some(2), false));
    assert_eq!(finding.fix.as_deref(), Some("did you mean `writer`?"));
    assert!(
        others
            .iter()
            .all(|one| one.code.to_string() == "signers.no_key")
    );
}

/// Whatever is found says what to do.
#[test]
fn each_fault_has_a_cure() {
    for (right, wrong) in [
        (r#""handoffs": 50"#, r#""handoffs": 0"#),
        (
            r#""longest_lease_seconds": 86400"#,
            r#""longest_lease_seconds": 1"#,
        ),
        (r#""name": "press""#, r#""name": "the press""#),
        (r#", "opens": true"#, ""),
    ] {
        let mut files = files("press");
        replace(&mut files, DEFINITION, right, wrong);
        let all = check_folder(&files);
        assert!(all.iter().any(Finding::is_error));
        assert!(all.iter().all(|finding| finding.fix.is_some()), "{all:#?}");
    }
}
