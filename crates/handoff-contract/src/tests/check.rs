//! Tests what a schema finds, and how values are written.

use serde_json::{Value, json};

use super::schema;
use crate::{Schema, SchemaError, Shape, ShapeError, Source, write_json, write_xml};

/// Checks a text; returns every finding as `line:column code path: message (fix)`.
fn check(text: &str) -> (Value, Vec<String>) {
    let schema = Schema::compile(&schema()).unwrap();
    let trusted = Schema::compile_trusted(&super::schema()).unwrap();
    let source = Source::parse(text.as_bytes()).unwrap();
    let root = source.root(&["handoff"]).filter(|_| text.starts_with('{'));
    let checked = schema.check(&source, root.as_deref());
    let again = trusted.check(&source, root.as_deref());
    assert_eq!(checked.findings, again.findings);
    let shown = checked
        .findings
        .iter()
        .map(|f| {
            let fix = f
                .fix
                .as_deref()
                .map(|fix| format!(" ({fix})"))
                .unwrap_or_default();
            let (line, column) = (f.line.unwrap_or(0), f.column.unwrap_or(0));
            format!("{line}:{column} {} {}: {}{fix}", f.code, f.path, f.message)
        })
        .collect();
    (checked.value, shown)
}

const GOOD: &str = r#"<handoff xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="x.xsd">
  <!-- who -->
  <from>imple<!-- -->menter<![CDATA[ & co]]></from>
  <to>reviewer</to>
  <count> +12 </count>
  <ratio>1.50</ratio>
  <done>1</done>
  <tag>a</tag>
  <tag> b </tag>
  <label-text>x</label-text>
  <commits>
    <commit sha="abcd">one
two</commit>
    <commit sha="ef01"/>
  </commits>
  <checks><build>passing</build></checks>
  <tree><name>r</name><child><name>s</name></child></tree>
  <extra k="v"><x>1</x><x>2</x><y/></extra>
</handoff>"#;

#[test]
fn xml_maps_to_the_value() {
    let (value, findings) = check(GOOD);
    assert_eq!(findings, [""; 0]);
    let expected = json!({
        "from": "implementer & co", "to": "reviewer", "count": 12, "ratio": 1.5, "done": true,
        "tag": ["a", " b "], "label": "x",
        "commits": [{"sha": "abcd", "message": "one\ntwo"}, {"sha": "ef01", "message": ""}],
        "checks": {"build": "passing"},
        "tree": {"name": "r", "child": [{"name": "s"}]},
        "extra": {"@k": "v", "x": ["1", "2"], "y": ""}
    });
    assert_eq!(value, expected);
    let written = write_json(&json!({ "handoff": expected }));
    assert_eq!(check(&written), (expected, Vec::new()));
}

#[test]
fn xml_findings_have_places_and_cures() {
    let text = r#"<handoff extra="1">
  stray
  <from></from>
  <from>again</from>
  <too>reviewer</too>
  <count>many</count>
  <at>yesterday</at>
  <branch>UPPER</branch>
  <done>yes<b/></done>
  <tag>a</tag><tag>b</tag><tag>c</tag><tag>d</tag>
  <commits>
    <commit sha="abcd">x</commit>
    <commit sha="nope" by="me">y</commit>
    <commit>z</commit>
    <change/>
  </commits>
  <checks><lint>ok</lint></checks>
  <label>x</label>
</handoff>"#;
    let (_, findings) = check(text);
    insta::assert_snapshot!(findings.join("\n"), @r#"
    1:1 field.missing /handoff/to: `to` is missing (add `<to>reviewer|closer</to>`)
    1:10 field.unknown /handoff/@extra: the attribute `extra` is unknown here (write it as the element `<extra>`)
    2:3 xml.unexpected_text /handoff: `handoff` holds elements, not text such as `stray`
    3:3 field.length /handoff/from: the text is empty
    4:3 field.repeated /handoff/from: `from` is given more than once (keep one of them)
    5:3 field.unknown /handoff/too: `too` is unknown here (did you mean `to`?)
    6:3 field.type /handoff/count: expected a whole number, not `many` (How many files changed)
    7:3 field.format /handoff/at: `yesterday` is not a valid date-time (write it like 2026-01-31T12:00:00Z)
    8:3 field.pattern /handoff/branch: `UPPER` must match ^[a-z/-]+$
    9:3 field.type /handoff/done: expected true or false, not `yes`
    9:12 xml.unexpected_element /handoff/done: `done` holds text, not elements such as `b` (write < as &lt; if it is meant as text)
    10:3 field.length /handoff/tag: the list has more than 3 items
    13:13 field.pattern /handoff/commits/commit[2]/@sha: `nope` must match ^[0-9a-f]{4,40}$
    13:24 field.unknown /handoff/commits/commit[2]/@by: the attribute `by` is unknown here (remove it)
    14:5 field.missing /handoff/commits/commit[3]/@sha: `sha` is missing (add the attribute `sha="…"`)
    15:5 field.unknown /handoff/commits/change: `commits` holds `commit` elements, not `change` (write `<commit>…</commit>`)
    17:3 field.missing /handoff/checks/build: `build` is missing (add `<build>passing|failing</build>`)
    18:3 field.unknown /handoff/label: the element `label` is unknown here (write it as the element `<label-text>`)
    "#);
}

#[test]
fn json_findings_have_places_and_cures() {
    let text = r#"{"handoff": {
  "from": "", "to": "Reviewer",
  "count": 1.5,
  "commits": [{"sha": "abcd", "message": "m"}, {"sha": "zz", "extra": {"a": [1]}}],
  "checks": {}, "brnch": "x", "done": "true"
}}"#;
    let (_, findings) = check(text);
    insta::assert_snapshot!(findings.join("\n"), @r#"
    2:11 field.length /handoff/from: the text is empty
    2:21 field.value /handoff/to: `Reviewer` is not one of `reviewer`, `closer` (did you mean `reviewer`?)
    3:12 field.type /handoff/count: expected a whole number, not `1.5` (How many files changed)
    4:48 field.missing /handoff/commits/1/message: `message` is missing (add `"message": "…"`)
    4:56 field.pattern /handoff/commits/1/sha: `zz` must match ^[0-9a-f]{4,40}$
    4:71 field.unknown /handoff/commits/1/extra: `extra` is unknown here (remove it)
    5:13 field.missing /handoff/checks/build: `build` is missing (add `"build": "passing|failing"`)
    5:26 field.unknown /handoff/brnch: `brnch` is unknown here (did you mean `branch`?)
    5:39 field.type /handoff/done: expected true or false, not the text `true` (write it without the quotes)
    "#);
}

#[test]
fn a_quoted_value_is_told_from_the_value() {
    let schema = Schema::compile(&json!({"properties": {
        "no": {"const": false}, "either": {"enum": [true, false]}, "word": {"enum": ["1", 1]}
    }}))
    .unwrap();
    let text = r#"{"no": "false", "either": "true", "word": "1"}"#;
    let checked = schema.check(&Source::parse(text.as_bytes()).unwrap(), None);
    let shown: Vec<_> = checked
        .findings
        .iter()
        .map(|f| {
            let fix = f.fix.as_deref().unwrap_or_default();
            format!("{} {}: {} ({fix})", f.code, f.path, f.message)
        })
        .collect();
    let expected = [
        "field.value /no: the text `false` is not the value false (write it without the quotes)",
        "field.value /either: the text `true` is not the value true (write it without the quotes)",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn unfilled_places_are_said_once() {
    let text = "<handoff><from>a</from><to>{{fill: who reads it}}</to><count>{{fill}}</count>\
        <commits><commit sha='{{fill: id}}'>m</commit></commits></handoff>";
    let (_, findings) = check(text);
    assert_eq!(
        findings,
        [
            "1:24 field.unfilled /handoff/to: this place is not filled in yet (write here: who reads it)",
            "1:55 field.unfilled /handoff/count: this place is not filled in yet (replace the mark by the value)",
            "1:95 field.unfilled /handoff/commits/commit[1]/@sha: this place is not filled in yet (write here: id)",
        ]
    );
    let (_, findings) = check(r#"{"from":"a","to":"{{fill: who}}","count":1,"commits":[]}"#);
    assert_eq!(
        findings,
        ["1:18 field.unfilled /to: this place is not filled in yet (write here: who)"]
    );
}

#[test]
fn alternatives_show_the_nearest() {
    let schema = json!({
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind", "n"]},
            {"properties": {"kind": {"const": "b"}, "m": {"type": "string"}}, "required": ["kind", "m"]}
        ]
    });
    let schema = Schema::compile(&schema).unwrap();
    let source = Source::parse(b"<h><kind>a</kind><n>x</n></h>").unwrap();
    let findings = schema.check(&source, None).findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(
        (findings[0].code.as_str(), &*findings[0].path),
        ("field.type", "/h/n")
    );
    let source = Source::parse(b"<h><kind>c</kind></h>").unwrap();
    let findings = schema.check(&source, None).findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(
        (findings[0].code.as_str(), &*findings[0].path),
        ("field.invalid", "/h")
    );
}

#[test]
fn findings_are_bounded() {
    let many: String = (0..40_000).map(|i| format!("<u{i}/>")).collect();
    let (_, findings) = check(&format!("<handoff>{many}</handoff>"));
    assert_eq!(findings.len(), crate::MAX_FINDINGS + 1);
    assert!(
        findings
            .last()
            .unwrap()
            .ends_with("more faults are not listed"),
        "{:?}",
        findings.last()
    );
    let many = "<from/>".repeat(40_000);
    let (_, findings) = check(&format!("<handoff>{many}</handoff>"));
    assert_eq!(findings.len(), crate::MAX_FINDINGS + 1);
    assert!(
        findings
            .last()
            .unwrap()
            .contains("more faults are not listed")
    );
}

#[test]
fn shown_values_are_shortened() {
    let long = "x".repeat(10_000);
    let (_, findings) = check(&format!(
        "<handoff><from>{long}</from><to>{long}</to><count>{long}</count><{long}/></handoff>"
    ));
    for finding in findings {
        let message = finding.split_once(": ").unwrap().1;
        assert!(message.len() < 300, "{message}");
    }
}

#[test]
fn xml_is_written_as_people_write_it() {
    let schema = Schema::compile(&schema()).unwrap();
    let value = json!({
        "from": "a <b> & \"c\" ]]>\r\n", "to": "closer", "count": 0, "tag": ["x", "y"], "label": "",
        "commits": [{"sha": "abcd", "message": " m\t"}],
        "tree": {"name": "r", "child": []},
        "extra": {"@k": "a\"\n", "x": ["1", "2"], "z": {"#text": "t", "@i": "1", "b": ""}}
    });
    let text = write_xml(&value, schema.shape(), "handoff");
    insta::assert_snapshot!(text, @r##"
    <handoff>
      <from>a &lt;b&gt; &amp; "c" ]]&gt;&#13;
    </from>
      <to>closer</to>
      <count>0</count>
      <tag>x</tag>
      <tag>y</tag>
      <label-text/>
      <commits>
        <commit sha="abcd"> m	</commit>
      </commits>
      <tree>
        <name>r</name>
      </tree>
      <extra k="a&quot;&#10;">
        <x>1</x>
        <x>2</x>
        <z i="1">t<b/></z>
      </extra>
    </handoff>
    "##);
    let source = Source::parse(text.as_bytes()).unwrap();
    assert_eq!(
        write_xml(&json!({}), schema.shape(), "handoff"),
        "<handoff/>\n"
    );
    let mut expected = value;
    expected["tree"] = json!({"name": "r"});
    assert_eq!(schema.check(&source, None).value, expected);
}

#[test]
fn bad_schemas_are_refused() {
    let shape = |schema: Value| Shape::from_schema(&schema).unwrap_err();
    let endless = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}});
    assert!(matches!(shape(endless), ShapeError::Endless { .. }));
    assert!(matches!(
        shape(json!({"$ref": "#"})),
        ShapeError::Endless { .. }
    ));
    assert!(matches!(
        shape(json!({"not": {"$ref": "#"}})),
        ShapeError::Endless { .. }
    ));
    assert!(matches!(
        shape(json!({"properties": {"a": {"$ref": "other.json"}}})),
        ShapeError::Reference { .. }
    ));
    assert!(matches!(
        shape(json!({"properties": {"a b": {}}})),
        ShapeError::Name { .. }
    ));
    let same = json!({"properties": {"a": {}, "b": {"xml": {"name": "a"}}}});
    assert!(matches!(shape(same), ShapeError::Ambiguous { .. }));
    let mixed = json!({"properties": {"a": {"type": "string"}, "b": {"type": "string", "xml": {"nodeType": "text"}}}});
    assert!(matches!(shape(mixed), ShapeError::Unsupported { .. }));
    let nested =
        json!({"properties": {"a": {"type": "array", "items": {"type": "array", "items": {}}}}});
    assert!(matches!(shape(nested), ShapeError::Unsupported { .. }));
    for key in ["$ref", "$dynamicRef"] {
        let anchored = json!({"contains": {key: "#a", "$anchor": "a"}});
        assert!(matches!(shape(anchored), ShapeError::Reference { .. }));
    }
    let within = json!({"$defs": {"a": {"$id": "b", "$ref": "#"}}});
    assert!(matches!(shape(within), ShapeError::Reference { .. }));
    let mut deep = json!({});
    for i in 0..1000 {
        deep[format!("d{i}")] = json!({"$ref": format!("#/$defs/d{}", i + 1)});
    }
    deep["d1000"] = json!({});
    assert!(matches!(
        shape(json!({"$ref": "#/$defs/d0", "$defs": deep})),
        ShapeError::TooLarge
    ));
    let compile = |schema: Value| Schema::compile(&schema).unwrap_err();
    assert!(matches!(
        compile(json!({"type": "sting"})),
        SchemaError::Invalid { .. }
    ));
    assert!(matches!(
        compile(json!({"type": "string", "format": "date-tme"})),
        SchemaError::Invalid { .. }
    ));
    assert!(matches!(compile(json!(true)), SchemaError::NotAnObject));
    assert!(matches!(
        compile(json!({"pattern": "("})),
        SchemaError::Invalid { .. }
    ));
}

#[test]
fn missing_places_are_named() {
    let schema = Schema::compile(&schema()).unwrap();
    let place = |text: &str, wrapper, pointer: &str| {
        let source = Source::parse(text.as_bytes()).unwrap();
        let place = source.place(schema.shape(), wrapper, pointer);
        (place.path, place.line.unwrap(), place.column.unwrap())
    };
    let at = |path: &str, line, column| (path.to_owned(), line, column);
    assert_eq!(
        place(GOOD, None, "/commits/1/sha"),
        at("/handoff/commits/commit[2]/@sha", 14, 13)
    );
    assert_eq!(
        place(GOOD, None, "/commits/0/message"),
        at("/handoff/commits/commit[1]", 12, 24)
    );
    assert_eq!(
        place(GOOD, None, "/commits/7/sha"),
        at("/handoff/commits/commit[8]/@sha", 11, 3)
    );
    assert_eq!(place(GOOD, None, "/tag/1"), at("/handoff/tag[2]", 9, 3));
    assert_eq!(
        place(GOOD, None, "/label"),
        at("/handoff/label-text", 10, 3)
    );
    assert_eq!(
        place(GOOD, None, "/checks/lint"),
        at("/handoff/checks/lint", 16, 3)
    );
    assert_eq!(
        place(GOOD, None, "/extra/x/1"),
        at("/handoff/extra/x[2]", 18, 24)
    );
    assert_eq!(
        place(GOOD, None, "/extra/@k"),
        at("/handoff/extra/@k", 18, 10)
    );
    assert_eq!(place(GOOD, None, ""), at("/handoff", 1, 1));
    let json = "{\"handoff\": {\n  \"a\\\"b\": [1, {\"c\": \"]\"}], \"commits\": []}}";
    assert_eq!(
        place(json, Some("handoff"), "/a\"b/1/c"),
        at("/handoff/a\"b/1/c", 2, 21)
    );
    assert_eq!(
        place(json, Some("handoff"), "/commits/3/sha"),
        at("/handoff/commits/3/sha", 2, 39)
    );
    assert_eq!(
        place(json, Some("handoff"), "/none"),
        at("/handoff/none", 1, 13)
    );
}

#[test]
fn trusted_schemas_find_the_same() {
    let mut schema = json!({
        "required": ["id", "list", "a"],
        "unevaluatedProperties": false,
        "dependentRequired": {"a": ["b"]},
        "properties": {
            "id": {"$ref": "#/$defs/id", "maxLength": 3},
            "day": {"$ref": "#/$defs/day"},
            "list": {"prefixItems": [{"const": 1}], "items": {"type": "integer"}, "contains": {"const": 7}},
            "if": {"type": "string"}
        },
        "if": {"properties": {"id": {"const": "x"}}},
        "then": {"required": ["day"]},
        "allOf": [{"properties": {"a": {"exclusiveMinimum": 3}}}],
        "$defs": {
            "id": {"type": "string", "format": "uuid"},
            "day": {"anchored": true, "type": "string", "format": "date"}
        }
    });
    let values = [
        json!({"id": "abcd", "day": "x", "list": [2, "y"], "a": 3, "z": 1}),
        json!({"id": "x", "list": [1, 7], "a": 4, "b": 1}),
        json!({"id": 5, "list": [7], "if": 1}),
    ];
    for id in [
        None,
        Some("https://schemas.invalid/note.json"),
        Some("note"),
    ] {
        if let Some(id) = id {
            schema["$id"] = id.into();
        }
        let full = Schema::compile(&schema).unwrap();
        let trusted = Schema::compile_trusted(&schema).unwrap();
        for value in &values {
            let text = write_json(value);
            let source = Source::parse(text.as_bytes()).unwrap();
            let findings = full.check(&source, None).findings;
            assert!(findings.len() > 1, "{findings:?}");
            assert_eq!(findings, trusted.check(&source, None).findings);
        }
    }
}

#[test]
fn blanks_are_the_same_without_an_expression() {
    let schema = json!({"type": "object", "additionalProperties": {"pattern": "[^ \\t\\n\\r]"}});
    let full = Schema::compile(&schema).unwrap();
    let trusted = Schema::compile_trusted(&schema).unwrap();
    for (text, is_valid) in [
        ("", false),
        (" \t\r\n", false),
        ("x", true),
        (" \u{e9}", true),
        ("\u{a0}", true),
        ("\u{3000}\n", true),
    ] {
        let text = write_json(&json!({"a": text, "b": 3}));
        let source = Source::parse(text.as_bytes()).unwrap();
        let checked = trusted.check(&source, None);
        assert_eq!(checked.is_valid(), is_valid, "{text}");
        assert_eq!(checked.findings, full.check(&source, None).findings);
    }
}

#[test]
fn references_outside_are_refused() {
    for outside in [
        "https://schemas.invalid/other.json",
        "file:///etc/passwd",
        "other.json#/a",
    ] {
        let schema = json!({"type": "object", "propertyNames": {"$ref": outside}});
        assert!(Schema::compile(&schema).is_err(), "{outside}");
        assert!(Schema::compile_trusted(&schema).is_err(), "{outside}");
    }
}

#[test]
fn maps_of_any_key_are_typed() {
    let each = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let lists = json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}});
    let schema = json!({"type": "object", "properties": {"each": each, "lists": lists}});
    let schema = Schema::compile(&schema).unwrap();
    let value = json!({"each": {"a": 1, "b": -2}, "lists": {"x": [true], "y": [false, true]}});
    let text = write_xml(&value, schema.shape(), "h");
    let source = Source::parse(text.as_bytes()).unwrap();
    let checked = schema.check(&source, None);
    assert_eq!(
        (checked.value, checked.findings),
        (value, Vec::new()),
        "{text}"
    );
    let source =
        Source::parse(b"<h><lists><x>1</x><x>no</x></lists><each><a/></each></h>").unwrap();
    let findings = schema.check(&source, None).findings;
    let paths: Vec<_> = findings.iter().map(|finding| &*finding.path).collect();
    assert_eq!(paths, ["/h/lists/x[2]", "/h/each/a"]);
}

#[test]
fn mixed_and_alternative_schemas_have_a_shape() {
    let schema = json!({
        "allOf": [
            {"$ref": "#/$defs/base"},
            {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
        ],
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "size": {"type": "number"}}, "required": ["size"]},
            {"properties": {"kind": {"const": "b"}, "flag": {"enum": [true]}}, "required": ["flag"]}
        ],
        "unevaluatedProperties": false,
        "$defs": {"base": {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}}
    });
    let schema = Schema::compile(&schema).unwrap();
    for (text, value) in [
        (
            "<h><kind>a</kind><n>1</n><size>2.5</size></h>",
            json!({"kind": "a", "n": 1, "size": 2.5}),
        ),
        (
            "<h><kind>b</kind><n>1</n><flag>true</flag></h>",
            json!({"kind": "b", "n": 1, "flag": true}),
        ),
    ] {
        let checked = schema.check(&Source::parse(text.as_bytes()).unwrap(), None);
        assert_eq!((checked.value, checked.findings), (value, Vec::new()));
    }
    let source = Source::parse(b"<h><kind>b</kind><n>1</n></h>").unwrap();
    let findings = schema.check(&source, None).findings;
    assert_eq!(findings[0].path, "/h/flag", "{findings:?}");
}

#[test]
fn a_value_that_lists_the_choices_is_refused() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {
            "size": {"enum": ["s", "m", "l", "s|m|l"]},
            "sets": {"type": "array", "items": {"enum": ["a", "b", "c", "a|b"]}},
            "part": {"type": "array", "items": {"$ref": "#"}},
        },
        "additionalProperties": {"enum": ["x", "y", "x|y"]}
    }))
    .unwrap();
    let shown = |text: &str| -> Vec<String> {
        let checked = schema.check(&Source::parse(text.as_bytes()).unwrap(), None);
        let shown = |f: &handoff_base::finding::Finding| {
            format!("{:?} {} {}: {}", f.severity, f.code, f.path, f.message)
        };
        checked.findings.iter().map(shown).collect()
    };
    // A member that combines only some of the others may be meant as a value.
    let text = r#"{"size": "m", "sets": ["a|b"], "part": [{"size": "s|m|l"}], "z": "x|y"}"#;
    let expected = [
        "Error field.undecided /part/0/size: `s|m|l` lists all the choices: pick one",
        "Error field.undecided /z: `x|y` lists all the choices: pick one",
    ];
    assert_eq!(shown(text), expected);
    // A text elsewhere that is exactly such a list was copied from a template.
    assert_eq!(
        shown(r#"{"part": [{"note": "x|y"}, {"size": "m"}]}"#),
        ["Error field.undecided /part/0/note: `x|y` lists all the choices: pick one"]
    );
    assert_eq!(
        shown(r#"{"size": "xl"}"#),
        ["Error field.value /size: `xl` is not one of `s`, `m`, `l`"]
    );
}

#[test]
fn a_list_without_the_item_that_it_must_hold_is_told_which() {
    let schema = json!({
        "type": "object",
        "properties": {
            "weights": {"$ref": "#/$defs/weights", "description": "How heavy each task is."},
            "low": {"type": "array", "contains": {"exclusiveMaximum": 0.5}},
            "steps": {"allOf": [{"contains": {"type": "string", "const": "build"}}]},
            "a/b": {"type": "array", "xml": {"name": "ab", "nodeType": "element"}, "contains": {"maximum": 2}},
            "pairs": {"type": "array", "contains": {"type": "object", "required": ["left"]}},
            "twice": {"type": "array", "contains": {"exclusiveMinimum": 3}, "minContains": 2}
        },
        "$defs": {"weights": {"type": "array", "items": {"type": "number"}, "contains": {"minimum": 7}}}
    });
    let text = r#"{
  "weights": [1, 6.5],
  "low": [1],
  "steps": [],
  "a/b": [3],
  "pairs": [{"right": 1}],
  "twice": [4, 1]
}"#;
    let source = Source::parse(text.as_bytes()).unwrap();
    let [full, trusted] = [Schema::compile(&schema), Schema::compile_trusted(&schema)]
        .map(|schema| schema.unwrap().check(&source, None).findings);
    assert_eq!(full, trusted);
    let shown: Vec<String> = full
        .iter()
        .map(|f| {
            let line = f.line.unwrap_or(0);
            let fix = f.fix.as_deref().unwrap_or_default();
            format!("{line} {} {}: {} ({fix})", f.code, f.path, f.message)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "2 field.value /weights: no item of the list is at least 7 (How heavy each task is)",
            "3 field.value /low: no item of the list is less than 0.5 ()",
            "4 field.value /steps: no item of the list is `build` ()",
            "5 field.value /a~1b: no item of the list is at most 2 ()",
            "6 field.value /pairs: the list does not hold the items that it must hold ()",
            "7 field.value /twice: the list does not hold the items that it must hold ()",
        ]
    );
}

/// Patterns that are not linear or too large are refused with their place; equivalent linear ones
/// are accepted.
#[test]
fn patterns_that_may_take_any_time_are_refused() {
    for (pattern, place) in [
        ("^(([a-z]+)*(?!x))*$", "/properties/a/pattern"),
        ("(?<=a)b", "/properties/a/pattern"),
        (r"(a)\1", "/properties/a/pattern"),
        ("(ab{200}){200}", "/properties/a/pattern"),
    ] {
        let schema = json!({"properties": {"a": {"pattern": pattern}}});
        let refused = Schema::compile(&schema).unwrap_err();
        assert!(
            matches!(&refused, SchemaError::Pattern { path } if path == place),
            "{pattern}: {refused:?}"
        );
        // A schema in force fails closed.
        if let Ok(trusted) = Schema::compile_trusted(&schema) {
            let source = Source::parse(br#"{"a": "aa"}"#).unwrap();
            assert!(!trusted.check(&source, None).is_valid(), "{pattern}");
        }
    }
    let named = json!({"patternProperties": {"^(?=a)": {}}});
    let refused = Schema::compile(&named).unwrap_err();
    assert!(matches!(&refused, SchemaError::Pattern { path } if path == "/patternProperties"));
    // Inside a value, `pattern` is not a keyword.
    let value = json!({"properties": {"pattern": {"const": {"pattern": "(?=a)"}}}});
    Schema::compile(&value).unwrap();
    let nested = json!({"properties": {"a": {"pattern": "^(([a-z]+)*)*$"}}});
    let schema = Schema::compile_trusted(&nested).unwrap();
    let long = json!({"a": "a".repeat(200_000) + "1"}).to_string();
    let checked = schema.check(&Source::parse(long.as_bytes()).unwrap(), None);
    assert!(!checked.is_valid());
}

/// A document that needs hundreds of pattern matches per text is refused.
#[test]
fn patterns_have_a_budget_for_each_document() {
    let patterns = (0..200).map(|n| json!({"pattern": format!("^a*(b{{{n}}})?$")}));
    let schema = json!({"properties": {"a": {"items": {"allOf": patterns.collect::<Vec<_>>()}}}});
    let schema = Schema::compile_trusted(&schema).unwrap();
    let check = |texts: usize| {
        let value = json!({"a": vec!["a".repeat(1000); texts]}).to_string();
        schema.check(&Source::parse(value.as_bytes()).unwrap(), None)
    };
    let over = check(12);
    assert_eq!(over.findings.len(), 1);
    assert_eq!(
        over.findings[0].code,
        handoff_base::finding::FindingCode::InputTooLarge
    );
    // The budget is per document.
    assert!(check(2).is_valid());
}

/// Definitions that each refer twice to the next one, by a keyword.
fn doubling(keyword: &str, levels: usize) -> serde_json::Value {
    let next = |level: usize| json!({"$ref": format!("#/$defs/a{}", level + 1)});
    let twice = |level| match keyword {
        "if" => json!({"if": next(level), "then": next(level), "else": next(level)}),
        "not" => json!({"not": next(level), "allOf": [next(level)]}),
        "properties" => {
            json!({"properties": {"x": next(level)}, "additionalProperties": next(level)})
        }
        "dependentSchemas" => json!({keyword: {"x": next(level), "y": next(level)}}),
        "unevaluatedProperties" => json!({"allOf": [next(level)], keyword: next(level)}),
        "items" => json!({"items": next(level), "contains": next(level)}),
        _ => json!({keyword: [next(level), next(level)]}),
    };
    let defs = (0..levels).map(|level| (format!("a{level}"), twice(level)));
    let mut defs: serde_json::Map<_, _> = defs.collect();
    defs.insert(format!("a{levels}"), json!({"type": "integer"}));
    json!({"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": defs})
}

const DOUBLING: [&str; 9] = [
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "not",
    "properties",
    "dependentSchemas",
    "unevaluatedProperties",
    "items",
];

/// A schema whose definitions double at each level is refused before compilation.
#[test]
fn a_schema_that_takes_any_time_is_refused() {
    for keyword in DOUBLING {
        let schema = doubling(keyword, 40);
        for compiled in [Schema::compile(&schema), Schema::compile_trusted(&schema)] {
            let refused = compiled.unwrap_err();
            assert!(
                matches!(refused, SchemaError::TooLarge),
                "{keyword}: {refused:?}"
            );
        }
        Schema::compile(&doubling(keyword, 4)).unwrap();
    }
    // A long chain would overflow the stack.
    let chain = |length: usize| {
        let next = |i: usize| json!({"properties": {"x": {"$ref": format!("#/$defs/a{}", i + 1)}}});
        let mut defs: serde_json::Map<_, _> =
            (0..length).map(|i| (format!("a{i}"), next(i))).collect();
        defs.insert(format!("a{length}"), json!({}));
        Schema::compile(&json!({"$ref": "#/$defs/a0", "$defs": defs}))
    };
    assert!(matches!(chain(5_000), Err(SchemaError::TooLarge)));
    assert!(chain(100).is_ok());
}

/// Small schemas whose steps double with each level of the value.
#[test]
fn a_document_has_a_budget_of_steps() {
    let same = json!({"$ref": "#/$defs/a"});
    let inner = |keyword: &str| match keyword {
        "items" => json!({"items": same, "contains": same}),
        // All alternatives are tried, because none holds.
        "anyOf" => {
            json!({keyword: [{"properties": {"x": same}}, {"additionalProperties": same}], "type": "object"})
        }
        _ => json!({keyword: [{"properties": {"x": same}}, {"additionalProperties": same}]}),
    };
    for keyword in ["allOf", "anyOf", "oneOf", "items"] {
        let schema = json!({"properties": {"x": same}, "$defs": {"a": inner(keyword)}});
        let schema = Schema::compile(&schema).unwrap();
        let check = |levels: usize| {
            let is_list = keyword == "items";
            let (open, close) = if is_list {
                ("[", "]")
            } else {
                ("{\"x\":", "}")
            };
            let inside = format!("{}1{}", open.repeat(levels), close.repeat(levels));
            // A contract is an object.
            let text = format!("{{\"x\":{inside}}}");
            schema.check(&Source::parse(text.as_bytes()).unwrap(), None)
        };
        let deep = check(60);
        let codes: Vec<_> = deep.findings.iter().map(|finding| finding.code).collect();
        assert_eq!(
            codes,
            [handoff_base::finding::FindingCode::InputTooLarge],
            "{keyword}"
        );
        let flat = check(3);
        assert!(
            flat.findings.iter().all(|f| f.code != codes[0]),
            "{keyword}"
        );
    }
}

/// The deepest evaluation ends before a thread's stack does.
#[test]
fn the_deepest_evaluation_fits_a_threads_stack() {
    for keyword in ["allOf", "anyOf", "oneOf", "if"] {
        // Each level of the value passes thirty schemas.
        let mut steps = serde_json::Map::new();
        for step in 0..30 {
            let next = json!({"$ref": format!("#/$defs/s{}", step + 1)});
            let next = if keyword == "if" {
                json!({"if": {"type": "object"}, "then": next})
            } else {
                json!({keyword: [next]})
            };
            steps.insert(format!("s{step}"), next);
        }
        steps.insert(
            "s30".to_owned(),
            json!({"properties": {"x": {"$ref": "#/$defs/s0"}}}),
        );
        let schema = json!({"$ref": "#/$defs/s0", "$defs": steps});
        let text = format!("{}1{}", "{\"x\":".repeat(62), "}".repeat(62));
        let evaluated = std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(move || {
                let schema = Schema::compile(&schema).unwrap();
                let found = schema.check(&Source::parse(text.as_bytes()).unwrap(), None);
                found.findings.iter().map(|f| f.code).collect::<Vec<_>>()
            });
        let codes = evaluated.unwrap().join().unwrap();
        assert_eq!(
            codes,
            [handoff_base::finding::FindingCode::InputTooLarge],
            "{keyword}"
        );
    }
}

/// All patterns of a schema share one limit on compiled size.
#[test]
fn many_large_patterns_are_refused() {
    let patterns = |count: usize| {
        let own = (0..count).map(|n| {
            (
                format!("a{n}"),
                json!({"pattern": format!("^(ab{{99}}){{90}}{n}$")}),
            )
        });
        json!({"properties": own.collect::<serde_json::Map<_, _>>()})
    };
    Schema::compile(&patterns(20)).unwrap();
    let refused = Schema::compile(&patterns(2_000)).unwrap_err();
    assert!(
        matches!(refused, SchemaError::Pattern { .. }),
        "{refused:?}"
    );
}
