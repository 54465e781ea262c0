//! The XML Schemas of the built-in protocols that are made from their JSON Schemas.
//!
//! An XML Schema says what an editor needs: the elements, which of them may be left out, and the
//! values of each. Where it can't say what the JSON Schema says (a condition, members of any name),
//! it allows more; it never refuses what the JSON Schema allows.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use handoff::protocol::Protocol;
use handoff::templates::built_in;
use serde_json::{Map, Value};

/// The protocols whose XML Schemas are made here. Those of `issue-to-pr`, with attributes and
/// mixed content, are written by hand.
const MADE: [&str; 4] = [
    "orchestrator-specialist",
    "task-breakdown",
    "delegation",
    "directive",
];

/// The path of each XML Schema, and its text.
pub(super) fn files(files: &mut BTreeMap<PathBuf, String>) {
    for name in MADE {
        let folder = built_in(name).unwrap();
        let protocol = Protocol::load(folder.file("protocol.json").unwrap()).unwrap();
        for kind in &protocol.definition().contracts {
            let Some(xsd) = &kind.xsd else {
                continue;
            };
            let schema: Value = serde_json::from_slice(folder.file(&kind.schema).unwrap()).unwrap();
            let file = kind.schema.strip_prefix("schemas/").unwrap();
            let to = xsd.strip_prefix("schemas/").unwrap();
            let text = Xsd::of(&schema).write(&kind.root, &kind.name, name, file);
            files.insert(Path::new("schemas").join(name).join(to), text);
        }
    }
}

struct Xsd<'s> {
    root: &'s Value,
    /// The definitions that elements refer to as types, and whether there is free content.
    used: BTreeSet<&'s str>,
    open: bool,
    out: String,
}

impl<'s> Xsd<'s> {
    fn of(root: &'s Value) -> Self {
        Self {
            root,
            used: BTreeSet::new(),
            open: false,
            out: String::new(),
        }
    }

    fn write(mut self, element: &str, kind: &str, protocol: &str, file: &str) -> String {
        let about = self.root["description"].as_str().unwrap_or_default();
        self.out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!-- Contract type {kind} of the protocol {protocol}, made from {file}.\n\
             \x20    {about}\n\
             \x20    Children may come in any order. What {file} asks beyond this is checked too. -->\n\
             <xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">\n"
        );
        self.element(1, element, self.root, "");
        let mut written = BTreeSet::new();
        while let Some(name) = self.used.difference(&written).next().copied() {
            written.insert(name);
            let own = &self.root["$defs"][name];
            self.out.push('\n');
            self.simple(1, own, &format!(" name=\"{name}\""));
        }
        if self.open {
            self.out += "\n  <!-- Members of any name. -->\n  \
                <xs:complexType name=\"members\">\n    <xs:sequence>\n      \
                <xs:any namespace=\"##local\" processContents=\"skip\" minOccurs=\"0\" maxOccurs=\"unbounded\"/>\n    \
                </xs:sequence>\n  </xs:complexType>\n";
        }
        self.out += "</xs:schema>\n";
        self.out
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.out += &"  ".repeat(depth);
        self.out += text;
        self.out.push('\n');
    }

    /// A schema with what it refers to; its own keywords come first.
    fn followed(&self, schema: &Value) -> Map<String, Value> {
        let mut all = schema.as_object().cloned().unwrap_or_default();
        while let Some(Value::String(reference)) = all.remove("$ref") {
            let referred = self
                .root
                .pointer(reference.trim_start_matches('#'))
                .unwrap();
            for (key, value) in referred.as_object().unwrap() {
                all.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        all
    }

    /// Declares an element; `times` is how often it may occur.
    fn element(&mut self, depth: usize, name: &str, schema: &'s Value, times: &str) {
        let all = self.followed(schema);
        let start = format!("<xs:element name=\"{name}\"");
        if all.get("xml").is_some_and(|xml| xml["x-json"] == true) {
            self.line(depth, "<!-- Its text is JSON. -->");
            return self.line(depth, &format!("{start} type=\"xs:string\"{times}/>"));
        }
        if all.contains_key("properties") && is_false(all.get("additionalProperties")) {
            self.line(depth, &format!("{start}{times}>"));
            self.line(depth + 1, "<xs:complexType>");
            self.line(depth + 2, "<xs:all>");
            // The members are the schema's own, or those of the definition that it refers to.
            let owner = self.owner(schema, "properties");
            let required = all.get("required").and_then(Value::as_array);
            let required: Vec<&str> = required
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            for (key, member) in owner["properties"].as_object().unwrap() {
                let optional = !required.contains(&key.as_str());
                let times = if optional { " minOccurs=\"0\"" } else { "" };
                let xml = self
                    .followed(member)
                    .get("xml")
                    .cloned()
                    .unwrap_or_default();
                self.element(
                    depth + 3,
                    xml["name"].as_str().unwrap_or(key),
                    member,
                    times,
                );
            }
            self.line(depth + 2, "</xs:all>");
            self.line(depth + 1, "</xs:complexType>");
            return self.line(depth, "</xs:element>");
        }
        match kind(&all) {
            "object" => {
                self.open = true;
                self.line(depth, &format!("{start} type=\"members\"{times}/>"));
            }
            "array" => self.array(depth, &start, schema, &all, times),
            _ => self.scalar(depth, &start, schema, &all, times),
        }
    }

    /// The schema with a keyword: this one, or the one that it refers to.
    fn owner(&self, schema: &'s Value, keyword: &str) -> &'s Value {
        let mut owner = schema;
        while owner.get(keyword).is_none() {
            let reference = owner["$ref"].as_str().unwrap();
            owner = self
                .root
                .pointer(reference.trim_start_matches('#'))
                .unwrap();
        }
        owner
    }

    fn array(
        &mut self,
        depth: usize,
        start: &str,
        schema: &'s Value,
        all: &Map<String, Value>,
        times: &str,
    ) {
        assert_eq!(
            all["xml"]["nodeType"], "element",
            "{start}: a list is an element"
        );
        let item = &self.owner(schema, "items")["items"];
        let xml = self.followed(item).get("xml").cloned().unwrap_or_default();
        let least = all.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        self.line(depth, &format!("{start}{times}>"));
        self.line(depth + 1, "<xs:complexType>");
        self.line(depth + 2, "<xs:sequence>");
        let times = format!(" minOccurs=\"{least}\" maxOccurs=\"unbounded\"");
        self.element(
            depth + 3,
            xml["name"].as_str().unwrap_or("item"),
            item,
            &times,
        );
        self.line(depth + 2, "</xs:sequence>");
        self.line(depth + 1, "</xs:complexType>");
        self.line(depth, "</xs:element>");
    }

    fn scalar(
        &mut self,
        depth: usize,
        start: &str,
        schema: &'s Value,
        all: &Map<String, Value>,
        times: &str,
    ) {
        let reference = schema["$ref"]
            .as_str()
            .and_then(|r| r.strip_prefix("#/$defs/"));
        // Only a description may stand beside a reference to a type.
        let alone = schema.as_object().is_some_and(|own| {
            own.keys()
                .all(|key| ["$ref", "description", "xml"].contains(&key.as_str()))
        });
        if let Some(name) = reference.filter(|_| alone) {
            self.used.insert(name);
            return self.line(depth, &format!("{start} type=\"{name}\"{times}/>"));
        }
        if facets(all).is_empty() {
            let base = base(all);
            return self.line(depth, &format!("{start} type=\"{base}\"{times}/>"));
        }
        self.line(depth, &format!("{start}{times}>"));
        self.simple(depth + 1, schema, "");
        self.line(depth, "</xs:element>");
    }

    /// Declares a type of text.
    fn simple(&mut self, depth: usize, schema: &Value, name: &str) {
        let all = self.followed(schema);
        if let Some(about) = all.get("description").filter(|_| !name.is_empty()) {
            let about = about.as_str().unwrap().replace("--", "-");
            self.line(depth, &format!("<!-- {about}. -->"));
        }
        self.line(depth, &format!("<xs:simpleType{name}>"));
        self.line(
            depth + 1,
            &format!("<xs:restriction base=\"{}\">", base(&all)),
        );
        for (facet, value) in facets(&all) {
            let value = escaped(&value);
            self.line(depth + 2, &format!("<xs:{facet} value=\"{value}\"/>"));
        }
        self.line(depth + 1, "</xs:restriction>");
        self.line(depth, "</xs:simpleType>");
    }
}

fn is_false(value: Option<&Value>) -> bool {
    value == Some(&Value::Bool(false))
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('"', "&quot;")
}

/// The JSON type of a value, if there is only one.
fn kind(all: &Map<String, Value>) -> &str {
    match all.get("type") {
        Some(Value::String(kind)) => kind,
        Some(_) => "several",
        None => "string",
    }
}

fn base(all: &Map<String, Value>) -> &'static str {
    match kind(all) {
        "integer" => "xs:integer",
        "number" => "xs:double",
        "boolean" => "xs:boolean",
        _ => "xs:string",
    }
}

/// The limits of a value, as far as an XML Schema has them.
fn facets(all: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let words = all
        .get("enum")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    for word in words.iter().chain(all.get("const")) {
        // A word of another type has several forms.
        let Some(word) = word.as_str() else {
            return Vec::new();
        };
        found.push(("enumeration", word.to_owned()));
    }
    let limits: &[_] = match kind(all) {
        "string" => &[("minLength", "minLength"), ("maxLength", "maxLength")],
        "integer" | "number" => &[
            ("minimum", "minInclusive"),
            ("exclusiveMinimum", "minExclusive"),
            ("maximum", "maxInclusive"),
        ],
        _ => &[],
    };
    for (keyword, facet) in limits {
        found.extend(all.get(*keyword).map(|limit| (*facet, limit.to_string())));
    }
    let pattern = all.get("pattern").and_then(Value::as_str).and_then(pattern);
    found.extend(pattern.map(|pattern| ("pattern", pattern)));
    found
}

/// A pattern as an XML Schema has it: it is about the whole text. `None` if it has parts that an
/// XML Schema lacks.
fn pattern(own: &str) -> Option<String> {
    let start = own.strip_prefix('^');
    let inner = start.unwrap_or(own);
    let end = inner.strip_suffix('$').filter(|rest| !rest.ends_with('\\'));
    let inner = end.unwrap_or(inner);
    let plain = inner
        .replace("[^", "[")
        .replace("\\$", "")
        .replace("\\^", "");
    let classes_only = plain.contains(['^', '$']) && !plain.contains("_$");
    if classes_only
        || ["(?", "\\b", "\\B", "\\/", "\\x", "\\u"]
            .iter()
            .any(|part| inner.contains(part))
    {
        return None;
    }
    let any = "[\\s\\S]*";
    let before = if start.is_some() { "" } else { any };
    let after = if end.is_some() { "" } else { any };
    // Only as a whole may alternatives stand beside something.
    let inner = if inner.contains('|') {
        format!("({inner})")
    } else {
        inner.to_owned()
    };
    Some(format!("{before}{inner}{after}"))
}
