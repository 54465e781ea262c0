//! Mistakes of a protocol's author are found in a folder, each with its place and what to write
//! instead; what is built in and shown has none.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use handoff_base::finding::Finding;
use handoff_model::{ProtocolScope, check_protocol, check_protocol_for};
use handoff_templates::{BUILT_IN, Folder, built_in, relay};

type Files = Vec<(String, Vec<u8>)>;

fn files(name: &str) -> Files {
    let agents = ["writer", "editor", "printer"].map(|agent| agent.parse().unwrap());
    let own = || relay(&name.parse().unwrap(), &agents);
    built_in(name).unwrap_or_else(own).into_files()
}

/// The findings but notes, after these replacements in the protocol's files.
fn found(files: &Files) -> Vec<Finding> {
    let mut found = check_protocol(files);
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
const MISTAKES: [[&str; 6]; 29] = [
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
        r#""const": "success", "const": "failed""#,
        r#""const": "failed""#,
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
        "`/cod` is a field that the schema does not have",
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
];

/// What only warns: it may be meant, and refuses nothing.
const WARNED: [&str; 3] = [
    "`colour`",
    "no contract type is called `editor-to-prnter`",
    "no failure",
];

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
    assert!(path == DEFINITION || finding.path == path, "{finding:#?}");
    let warns = WARNED
        .iter()
        .any(|start| finding.message.starts_with(start));
    assert_eq!(finding.is_error(), !warns, "{finding:#?}");
    let (line, column) = (finding.line.unwrap(), finding.column.unwrap());
    let line = text.lines().nth(line as usize - 1).unwrap();
    let here: String = line.chars().skip(column as usize - 1).collect();
    assert!(
        here.starts_with(at) || message.starts_with("unknown "),
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
        assert_eq!(found(&limited(name, least).0), [], "{name}");
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
