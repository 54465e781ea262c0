//! The fields of contracts that a new version of a protocol checks less or more than before.

use std::collections::BTreeSet;

use handoff::base::pointer::under;
use handoff::model::layout::DEFINITION;
use handoff::model::{ProtocolFiles, loosened};
use handoff::protocol::Protocol;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The depth to which fields are compared.
const DEEP: usize = 8;

/// The depth to which references are followed.
const FOLLOWED: usize = 4;

/// The fields of a contract type whose schema an update changed; `*` stands for every entry of a list.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct ChangedFields {
    /// the contract type
    contract: String,
    /// those that are checked less
    #[serde(skip_serializing_if = "Vec::is_empty")]
    less: Vec<String>,
    /// those that are checked more, but for newly required ones
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<String>,
}

impl ChangedFields {
    /// The contract type, and its fields in words.
    pub(super) fn line(&self) -> String {
        let told = [("less", &self.less), ("more", &self.more)].into_iter();
        let told = told.filter(|(_, fields)| !fields.is_empty());
        let told = told.map(|(word, fields)| format!("checks {word}: {}", fields.join(", ")));
        format!("{} {}", self.contract, told.collect::<Vec<_>>().join("; "))
    }
}

/// The fields of the contract types of both versions.
pub(super) fn changed_fields(new: &ProtocolFiles, old: &ProtocolFiles) -> Vec<ChangedFields> {
    let file = |files: &ProtocolFiles, path: &str| {
        let found = files.iter().find(|(known, _)| known == path);
        found.map(|(_, bytes)| bytes.clone()).unwrap_or_default()
    };
    let (written, before) = (file(new, DEFINITION), file(old, DEFINITION));
    let (Ok(is), Ok(was)) = (Protocol::load(&written), Protocol::load(&before)) else {
        return Vec::new();
    };
    let kinds = is.definition().contracts.iter();
    let found = kinds.filter_map(|kind| {
        let known = was.contract_type(&kind.name)?;
        let schema = |files, path: &str| -> Option<Value> {
            let root = serde_json::from_slice(&file(files, path)).ok()?;
            Some(inlined(&root, &root, FOLLOWED))
        };
        let mut compared = Compared {
            definition: &before,
            found: ChangedFields {
                contract: kind.name.clone(),
                ..ChangedFields::default()
            },
        };
        let [is, was] = [schema(new, &kind.schema)?, schema(old, &known.schema)?];
        compared.members("", [&is, &was], DEEP);
        let found = compared.found;
        (!found.less.is_empty() || !found.more.is_empty()).then_some(found)
    });
    found.collect()
}

/// A schema with what it refers to in place of references, down to a depth.
fn inlined(root: &Value, schema: &Value, deep: usize) -> Value {
    match schema {
        Value::Object(members) if deep > 0 => {
            let target = members.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|at| root.pointer(at.strip_prefix('#')?));
            let target = target.map(|target| inlined(root, target, deep - 1));
            let mut all = match target {
                Some(Value::Object(target)) => target,
                _ => Map::new(),
            };
            let is_followed = !all.is_empty();
            let own = members.iter().filter(|(key, _)| {
                !(is_followed && *key == "$ref" || ["$defs", "definitions"].contains(&&***key))
            });
            all.extend(own.map(|(key, value)| (key.clone(), inlined(root, value, deep))));
            Value::Object(all)
        }
        Value::Array(list) => list.iter().map(|one| inlined(root, one, deep)).collect(),
        other => other.clone(),
    }
}

struct Compared<'d> {
    /// The definition in force, whose rules read fields.
    definition: &'d [u8],
    found: ChangedFields,
}

impl Compared<'_> {
    /// Compares the members that two objects' schemas describe, the new one's first.
    fn members(&mut self, at: &str, [is, was]: [&Value; 2], deep: usize) {
        if deep == 0 || is == was {
            return;
        }
        let names = |of: &Value| -> BTreeSet<String> {
            let members = of["properties"].as_object().into_iter().flatten();
            members.map(|(name, _)| name.clone()).collect()
        };
        for name in names(is).union(&names(was)) {
            let at = under(at, name);
            let [own, before] = [is, was].map(|of| of["properties"].get(name));
            let required = [is, was].map(|of| requires(of, name));
            match (own, before) {
                (Some(own), Some(before)) => {
                    // What is newly required is told as such.
                    let is_required = required == [true, true];
                    let own_field = member(name, own, is_required);
                    self.field(&at, [&own_field, &member(name, before, required[1])]);
                    self.members(&at, [own, before], deep - 1);
                    self.entries(&at, [own, before], deep - 1);
                }
                (Some(_), None) if required[0] => {}
                // An object that was closed refused it, and another one took any.
                (Some(_), None) => self.add(is_closed(was), at),
                (None, _) => self.add(!is_closed(is), at),
            }
        }
    }

    fn add(&mut self, is_less: bool, at: String) {
        let list = if is_less {
            &mut self.found.less
        } else {
            &mut self.found.more
        };
        if !list.contains(&at) {
            list.push(at);
        }
    }

    /// Compares the entries of two lists' schemas.
    fn entries(&mut self, at: &str, both: [&Value; 2], deep: usize) {
        let at = format!("{at}/*");
        let [is, was] = both.map(|of| of.get("items").cloned().unwrap_or(Value::Bool(true)));
        let alone = |items: &Value| {
            let mut items = items.clone();
            if let Some(members) = items.as_object_mut() {
                members.shift_remove("properties");
                members.shift_remove("required");
            }
            json!({ "items": items })
        };
        self.field(&at, [&alone(&is), &alone(&was)]);
        self.members(&at, [&is, &was], deep);
    }

    /// Adds a field by what its schemas accept, the new one's first.
    fn field(&mut self, at: &str, [is, was]: [&Value; 2]) {
        if is == was {
            return;
        }
        let files = |schema: &Value| {
            let schema = (
                "schemas/field.schema.json".to_owned(),
                schema.to_string().into(),
            );
            [(DEFINITION.to_owned(), self.definition.to_owned()), schema]
        };
        let (is, was) = (files(is), files(was));
        if !loosened(&is, &was).is_empty() {
            self.add(true, at.to_owned());
        }
        if !loosened(&was, &is).is_empty() {
            self.add(false, at.to_owned());
        }
    }
}

fn requires(object: &Value, name: &str) -> bool {
    let required = object["required"].as_array().into_iter().flatten();
    required.into_iter().any(|one| one == name)
}

fn is_closed(object: &Value) -> bool {
    object["additionalProperties"] == false && object["patternProperties"].is_null()
}

/// The schema of an object with one member, whose own members and entries are left out.
fn member(name: &str, schema: &Value, is_required: bool) -> Value {
    let mut schema = schema.clone();
    if let Some(members) = schema.as_object_mut() {
        for key in ["properties", "required", "items"] {
            members.shift_remove(key);
        }
    }
    let mut one = json!({ "properties": { name: schema } });
    if is_required {
        one["required"] = json!([name]);
    }
    one
}
