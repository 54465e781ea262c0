//! The samples of the built-in protocols: what is complete, what is refused, and in which words.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

use handoff::base::finding::{Finding, FindingCode};
use handoff::contract::write_message;
use roxmltree::{Document, Node};
use serde_json::{Map, Value, json};

use crate::rules::{Rules, Sample, line, samples};

/// The contract type that a sample's name mentions.
fn named_type(rules: &Rules, name: &str) -> Option<String> {
    let types = rules.protocol.definition().contracts.iter();
    let mentioned = types.filter(|c| name.contains(&c.name));
    mentioned.map(|c| c.name.clone()).max_by_key(String::len)
}

#[test]
fn valid_samples_are_complete_and_of_the_type_they_are_named_for() {
    for rules in Rules::all() {
        let mut types = BTreeSet::new();
        for sample in rules.samples("valid") {
            let name = format!("{} {}", rules.name, sample.name);
            let review = rules.review(&sample.bytes);
            let findings: Vec<String> = review.findings.iter().map(line).collect();
            assert!(review.is_complete(), "{name}: {findings:#?}");
            let kind = review.kind.unwrap();
            if let Some(named) = named_type(&rules, &sample.name) {
                assert_eq!(kind, named, "{name}");
            }
            types.insert((kind, sample.format().to_owned()));
            // Only a contract that names no issue, and a request that says it is
            // being worked on, leave something to say.
            let noted = |f: &String| {
                f.starts_with("note envelope.issue") || f.starts_with("warning status.claimed")
            };
            assert!(findings.iter().all(noted), "{name}: {findings:#?}");
            let unnamed = findings
                .iter()
                .any(|f| f.starts_with("note envelope.issue"));
            assert_eq!(review.contract.is_none(), unnamed, "{name}");
            if let Some(contract) = review.contract {
                let document = handoff::contract::unwrapped(&sample.bytes);
                assert_eq!(contract.bytes, document, "{name}");
            }
        }
        for kind in &rules.protocol.definition().contracts {
            for format in rules.formats(kind) {
                // A message that holds a whole contract is a way to send any of them.
                let embedded = format == "md" && kind.has_format("json");
                assert!(
                    embedded || types.contains(&(kind.name.clone(), format.clone())),
                    "{}: no sample of {} in {format}",
                    rules.name,
                    kind.name
                );
            }
        }
    }
}

#[test]
fn both_formats_of_a_type_hold_the_same_value() {
    let rules = Rules::new();
    for kind in &rules.protocol.definition().contracts {
        let values: Vec<Value> = samples("valid")
            .iter()
            .filter(|s| {
                s.name == format!("{}.xml", kind.name) || s.name == format!("{}.json", kind.name)
            })
            .map(|s| rules.review(&s.bytes).contract.unwrap().value)
            .collect();
        assert_eq!(values.len(), 2, "{}", kind.name);
        assert_eq!(values[0], values[1], "{}", kind.name);
    }
}

#[test]
fn invalid_samples_are_refused_for_what_they_are_named_for() {
    for rules in Rules::all() {
        let mut shown = String::new();
        for sample in rules.samples("invalid") {
            let review = rules.review(&sample.bytes);
            assert!(!review.is_complete(), "{} must be refused", sample.name);
            assert!(review.contract.is_none(), "{}", sample.name);
            let mut places = BTreeSet::new();
            for finding in &review.findings {
                writeln!(shown, "{}: {}", sample.name, line(finding)).unwrap();
                // A gate speaks of the whole contract, and says what else is found.
                if !finding.code.is_gate() && finding.is_error() {
                    let place = (finding.path.clone(), finding.line, finding.column);
                    assert!(places.insert(place), "{} is said twice", sample.name);
                }
            }
        }
        insta::assert_snapshot!(format!("invalid-{}", rules.name), shown);
    }
}

/// A schema with its reference followed, if it is one; the keywords beside the reference are kept.
fn followed<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// Every required field that the value has, as a JSON Pointer.
fn required_in_json(root: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    let schema = followed(root, schema);
    if let Value::Object(members) = value {
        let required = schema["required"].as_array();
        for key in required.into_iter().flatten().filter_map(Value::as_str) {
            assert!(members.contains_key(key), "{at} has {key}");
            out.push(format!("{at}/{key}"));
        }
        for (key, member) in members {
            let patterns = schema["patternProperties"].as_object();
            let own = schema["properties"].get(key);
            let other = Some(&schema["additionalProperties"]).filter(|s| s.is_object());
            let mut patterns = patterns.into_iter().flat_map(|p| p.values());
            if let Some(schema) = own.or_else(|| patterns.next()).or(other) {
                let key = key.replace('~', "~0").replace('/', "~1");
                required_in_json(root, schema, member, &format!("{at}/{key}"), out);
            }
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        required_in_json(root, &schema["items"], item, &format!("{at}/{index}"), out);
    }
}

/// Every required field of a contract, and of what it holds by schemas that it names.
fn required(rules: &Rules, kind: &str, value: &Value, inside: &str) -> Vec<String> {
    let schema = rules.schema(kind);
    let mut found = Vec::new();
    required_in_json(&schema, &schema, value, inside, &mut found);
    for named in &rules.protocol.contract_type(kind).unwrap().named_schemas {
        let data = value.pointer(&named.data).unwrap();
        let name = value.pointer(&named.schema).unwrap().as_str().unwrap();
        let schema = rules.file(&format!("schemas/{name}"));
        let at = format!("{inside}{}", named.data);
        required_in_json(&schema, &schema, data, &at, &mut found);
    }
    found
}

/// The value without what a pointer points to.
fn without(value: &Value, pointer: &str) -> Value {
    let mut less = value.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    let parent = less.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    parent.shift_remove(&key).unwrap();
    less
}

/// Every required field of an element: its path, and its bytes in the source.
fn required_in_xml(
    root: &Value,
    schema: &Value,
    element: Node<'_, '_>,
    at: &str,
    out: &mut Vec<(String, Range<usize>)>,
) {
    let schema = followed(root, schema);
    let children = |parent: Node<'_, '_>, name: &str| -> Vec<Range<usize>> {
        let named = parent.children().filter(|c| c.has_tag_name(name));
        named.map(|c| c.range()).collect()
    };
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (key, own) in schema["properties"].as_object().into_iter().flatten() {
        let needed = required.contains(&key.as_str());
        let target = followed(root, own);
        let node_type = own["xml"]["nodeType"].as_str();
        let node_type = node_type.or(target["xml"]["nodeType"].as_str());
        let name = own["xml"]["name"].as_str().unwrap_or(key);
        match node_type {
            Some("attribute") => {
                if needed {
                    let attribute = element.attributes().find(|a| a.name() == name).unwrap();
                    out.push((format!("{at}/@{name}"), attribute.range()));
                }
            }
            Some("text") => {
                if needed {
                    let whole = inside(element);
                    out.push((at.to_owned(), whole));
                }
            }
            _ => {
                let found = children(element, name);
                assert!(!needed || found.len() == 1, "{at} has {name}");
                if needed {
                    out.push((format!("{at}/{name}"), found[0].clone()));
                }
                let Some(child) = element.children().find(|c| c.has_tag_name(name)) else {
                    continue;
                };
                let path = format!("{at}/{name}");
                if target["type"] == "array" {
                    assert_eq!(node_type, Some("element"), "the protocol wraps its lists");
                    let item = &target["items"];
                    let item_name = item["xml"]["name"].as_str().unwrap_or("item");
                    let items = child.children().filter(Node::is_element);
                    for (index, node) in items.enumerate() {
                        assert!(node.has_tag_name(item_name));
                        let path = format!("{path}/{item_name}[{}]", index + 1);
                        required_in_xml(root, item, node, &path, out);
                    }
                } else {
                    required_in_xml(root, own, child, &path, out);
                }
            }
        }
    }
}

/// What stands between the tags of an element.
fn inside(element: Node<'_, '_>) -> Range<usize> {
    let range = element.range();
    let source = &element.document().input_text()[range.clone()];
    let mut quote = None;
    let open = source.find(|c| match (quote, c) {
        (None, '"' | '\'') => {
            quote = Some(c);
            false
        }
        (Some(q), c) if q == c => {
            quote = None;
            false
        }
        (None, '>') => true,
        _ => false,
    });
    range.start + open.unwrap() + 1..range.start + source.rfind("</").unwrap()
}

/// The member of a JSON document that holds the contract: its pointer.
fn wrapper(rules: &Rules, document: &Value) -> String {
    let members = document.as_object().unwrap();
    match members.iter().next() {
        Some((key, value)) if members.len() == 1 && value.is_object() => {
            assert!(rules.protocol.roots().contains(&key.as_str()));
            format!("/{key}")
        }
        _ => String::new(),
    }
}

/// Asserts that a document is refused because this field is missing, and for nothing else but what
/// follows from it.
fn assert_missing(rules: &Rules, what: &str, path: &str, bytes: &[u8]) {
    let review = rules.review(bytes);
    let findings: Vec<String> = review.findings.iter().map(line).collect();
    assert!(!review.is_complete(), "{what} without {path} is refused");
    // Without the one field that tells the file of another system, it is taken for another type.
    if path.ends_with("/failed_at") {
        return;
    }
    let follows = |f: &Finding| {
        // A gate says what else is found, and tasks are compared with those that are missing.
        f.code.is_gate() || f.code.as_str().starts_with("task.")
            // What holds a party is missing with it.
            || f.path.starts_with(&format!("{path}/"))
            // Where the type can't be told, what would tell another one is missing as well.
            || f.path != path && f.fix.as_ref().is_some_and(|f| f.starts_with("a contract of type "))
    };
    let errors = review.findings.iter().filter(|f| f.is_error());
    let errors: Vec<_> = errors.filter(|f| !follows(f)).collect();
    let [only] = errors[..] else {
        panic!("{what} without {path} has one fault: {findings:#?}");
    };
    let gates = rules.protocol.definition().gates();
    let gated = |f: &Finding| f.code == FindingCode::GateRequiredFields;
    assert!(
        gates.is_empty()
            || only.code == FindingCode::MarkdownTitle
            || review.findings.iter().any(gated),
        "{what} {path}: {findings:#?}"
    );
    // The title of a message has both parties or none.
    let title = only.code == FindingCode::MarkdownTitle && ["/from", "/to"].contains(&path);
    assert!(title || only.path == path, "{what} {path}: {findings:#?}");
    assert!(
        title || [FindingCode::FieldMissing, FindingCode::FieldLength].contains(&only.code),
        "{what}: {findings:#?}"
    );
    assert!(
        only.line.is_some() && only.column.is_some(),
        "{what} {path}"
    );
}

#[test]
fn without_any_one_required_field_a_json_contract_is_refused_naming_it() {
    for rules in Rules::all() {
        let mut taken = 0;
        let samples = rules.samples("valid");
        for sample in samples.iter().filter(|s| s.is_json()) {
            let document: Value = serde_json::from_slice(&sample.bytes).unwrap();
            let inside = wrapper(&rules, &document);
            let kind = rules.review(&sample.bytes).kind.unwrap();
            let value = document.pointer(&inside).unwrap();
            let required = required(&rules, &kind, value, &inside);
            assert!(!required.is_empty(), "{}", sample.name);
            for pointer in required {
                let less = without(&document, &pointer);
                let bytes = serde_json::to_vec_pretty(&less).unwrap();
                let what = format!("{} {}", rules.name, sample.name);
                assert_missing(&rules, &what, &pointer, &bytes);
                taken += 1;
            }
        }
        assert!(taken > 50, "{} {taken}", rules.name);
    }
}

#[test]
fn without_any_one_required_field_a_message_is_refused_naming_it() {
    let mut taken = 0;
    for rules in Rules::all() {
        for sample in rules.samples("valid") {
            let review = rules.review(&sample.bytes);
            let kind = review.kind.unwrap();
            if sample.format() != "md"
                || rules
                    .protocol
                    .contract_type(&kind)
                    .unwrap()
                    .has_format("json")
            {
                continue;
            }
            let source = handoff::contract::Source::parse(&sample.bytes).unwrap();
            let schema = handoff::contract::Schema::compile(&rules.schema(&kind)).unwrap();
            let value = schema.check(&source, None).value;
            let whole = rules.review(write_message(&value, schema.shape()).as_bytes());
            assert!(whole.is_complete(), "{}", sample.name);
            for pointer in required(&rules, &kind, &value, "") {
                let text = write_message(&without(&value, &pointer), schema.shape());
                assert_missing(&rules, &sample.name, &pointer, text.as_bytes());
                taken += 1;
            }
        }
    }
    assert!(taken > 50, "{taken}");
}

#[test]
fn without_any_one_required_field_an_xml_contract_is_refused_naming_it() {
    let mut taken = 0;
    for rules in Rules::all() {
        for sample in rules.samples("valid").iter().filter(|s| s.is_xml()) {
            let text = sample.text().trim_start_matches('\u{feff}');
            let document = Document::parse(text).unwrap();
            let root = document.root_element();
            let kind = rules.review(&sample.bytes).kind.unwrap();
            let schema = rules.schema(&kind);
            let mut required = Vec::new();
            let at = format!("/{}", root.tag_name().name());
            required_in_xml(&schema, &schema, root, &at, &mut required);
            assert!(!required.is_empty(), "{}", sample.name);
            for (path, range) in required {
                let less = format!("{}{}", &text[..range.start], &text[range.end..]);
                let what = format!("{} {}", rules.name, sample.name);
                assert_missing(&rules, &what, &path, less.as_bytes());
                taken += 1;
            }
        }
    }
    assert!(taken > 300, "{taken}");
}

#[test]
fn bare_and_wrapped_json_are_the_same_contract() {
    for rules in Rules::all() {
        let samples = rules.samples("valid");
        for sample in samples.iter().filter(|s| s.is_json()) {
            let document: Value = serde_json::from_slice(&sample.bytes).unwrap();
            let review = rules.review(&sample.bytes);
            let kind = review.kind.unwrap();
            let root = rules.protocol.contract_type(&kind).unwrap().root.clone();
            let inside = wrapper(&rules, &document);
            let bare = document.pointer(&inside).unwrap().clone();
            let wrapped = json!({ root: bare.clone() });
            for form in [bare, wrapped] {
                let again = rules.review(&serde_json::to_vec(&form).unwrap());
                assert!(again.is_complete(), "{}", sample.name);
                assert_eq!(again.kind.as_ref(), Some(&kind), "{}", sample.name);
                let value = |review: &Option<handoff::model::Contract>| {
                    review.as_ref().map(|contract| contract.value.clone())
                };
                assert_eq!(
                    value(&again.contract),
                    value(&review.contract),
                    "{}",
                    sample.name
                );
            }
        }
    }
}

/// Every enumeration of a schema with a member that lists the others, as a JSON Pointer.
fn listings(schema: &Value, at: &str, out: &mut Vec<(String, String)>) {
    let members: &Map<String, Value> = match schema["properties"].as_object() {
        Some(members) => members,
        None => return,
    };
    for (key, own) in members {
        let at = format!("{at}/{key}");
        let texts = own["enum"].as_array().into_iter().flatten();
        let lists = texts.filter_map(Value::as_str).filter(|t| t.contains('|'));
        out.extend(lists.map(|list| (at.clone(), list.to_owned())));
        listings(own, &at, out);
    }
}

#[test]
fn a_value_that_lists_the_choices_is_refused() {
    let rules = Rules::new();
    let mut shown = Vec::new();
    for kind in &rules.protocol.definition().contracts {
        let mut found = Vec::new();
        listings(&rules.schema(&kind.name), "", &mut found);
        let samples = samples("valid");
        let of = |extension: &str| -> &Sample {
            let name = format!("{}.{extension}", kind.name);
            samples.iter().find(|s| s.name == name).unwrap()
        };
        for (pointer, list) in found {
            let mut value: Value = serde_json::from_slice(&of("json").bytes).unwrap();
            *value.pointer_mut(&pointer).unwrap() = list.clone().into();
            let text = of("xml").text();
            let document = Document::parse(text).unwrap();
            let name = pointer.rsplit('/').next().unwrap();
            let element = document
                .descendants()
                .find(|n| n.has_tag_name(name))
                .unwrap();
            let place = element.first_child().unwrap().range();
            let xml = format!("{}{list}{}", &text[..place.start], &text[place.end..]);
            for bytes in [serde_json::to_vec_pretty(&value).unwrap(), xml.into_bytes()] {
                let review = rules.review(&bytes);
                assert!(review.contract.is_none(), "{pointer}");
                shown.extend(review.findings.iter().map(line));
            }
        }
    }
    insta::assert_snapshot!(shown.join("\n"), @"
    field.undecided 7:11 /type: `feature|bug|enhancement|refactor|chore` lists all the choices: pick one (use one of: feature, bug, enhancement, refactor, chore)
    field.undecided 7:3 /handoff/type: `feature|bug|enhancement|refactor|chore` lists all the choices: pick one (use one of: feature, bug, enhancement, refactor, chore)
    field.undecided 8:15 /priority: `critical|high|medium|low` lists all the choices: pick one (use one of: critical, high, medium, low)
    field.undecided 8:3 /handoff/priority: `critical|high|medium|low` lists all the choices: pick one (use one of: critical, high, medium, low)
    field.undecided 8:21 /workspace_type: `worktree|in-place|cloud` lists all the choices: pick one (use one of: worktree, in-place, cloud)
    field.undecided 8:3 /handoff/workspace_type: `worktree|in-place|cloud` lists all the choices: pick one (use one of: worktree, in-place, cloud)
    ");
}

/// Where no protocol is named, a contract with faults is judged by the one that it seems to follow.
#[test]
fn a_refused_contract_is_told_what_its_own_protocol_finds() {
    use handoff::model::{Review, first_match};
    let all: Vec<Rules> = Rules::all().collect();
    let (mut own, mut others) = (0, Vec::new());
    for rules in &all {
        for sample in rules.samples("invalid") {
            let matches = all
                .iter()
                .map(|rules| Ok::<_, ()>(rules.review(&sample.bytes)));
            let matched = first_match(matches).unwrap().unwrap();
            let lines = |review: &Review| review.findings.iter().map(line).collect::<Vec<_>>();
            let expected = lines(&rules.review(&sample.bytes));
            if lines(&matched) == expected {
                own += 1;
            } else {
                others.push(format!("{} {}", rules.name, sample.name));
            }
        }
    }
    insta::assert_snapshot!(others.join("\n"), @"
    issue-to-pr empty-object.json
    issue-to-pr wrapped-by-other-root.json
    delegation missing-decision-confidence.json
    ");
    assert!(own > 500, "{own}");
}
