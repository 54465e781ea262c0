//! Reads a malformed `protocol.json` as far as possible, so that its other faults are found too.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::{lookup, parts, push_part};
use handoff_base::text::closest;
use serde_json::{Map, Value, json};

use crate::check::faults;
use crate::definition::Definition;
use crate::protocol::{NOT_AN_OBJECT, Protocol, read};

/// The maximum number of bytes to parse while repairing, which bounds the time.
const MOST_BYTES: usize = 64 << 20;

/// A `protocol.json`, read as far as possible.
pub struct Partial {
    /// The protocol, with placeholders for malformed parts; `None` if it can't be repaired.
    pub protocol: Option<Protocol>,
    /// The faults so far, with paths in the repaired definition.
    pub findings: Vec<Finding>,
    /// The replaced, added and removed parts, as paths in the repaired definition.
    repaired: BTreeSet<String>,
    /// The removed list elements, as paths in the definition as written.
    left_out: Vec<String>,
    /// The removed members: the path of their object, and their name.
    unknown: Vec<(String, String)>,
    /// The bytes that may still be parsed.
    budget: usize,
}

impl Partial {
    /// Reads a `protocol.json`.
    pub fn read(bytes: &[u8]) -> Self {
        let mut partial = Self {
            protocol: None,
            findings: Vec::new(),
            repaired: BTreeSet::new(),
            left_out: Vec::new(),
            unknown: Vec::new(),
            budget: MOST_BYTES,
        };
        let first = read(bytes).err();
        let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else {
            partial.findings.extend(first.map(|finding| *finding));
            return partial;
        };
        if !value.is_object() {
            partial.not_an_object(String::new());
            return partial;
        }
        if let Some(definition) = partial.repair(&mut value) {
            partial.findings.extend(faults(&definition));
            partial.protocol = Some(Protocol::of(definition));
        }
        if let Some(first) = first {
            // Faults that exist only in the text, such as a duplicate key, can't be repaired.
            let is_first = |f: &&mut Finding| f.path == first.path && f.message == first.message;
            match partial.findings.iter_mut().find(is_first) {
                Some(found) => *found = *first,
                None => partial.findings.insert(0, *first),
            }
        }
        partial
    }

    /// Repairs a definition until it parses.
    fn repair(&mut self, value: &mut Value) -> Option<Definition> {
        for (at, item) in not_objects(value) {
            self.not_an_object(at.clone());
            *value.pointer_mut(&at)? = item;
            self.repaired.insert(at);
        }
        // The path from which a member was just removed: a fault there follows from that.
        let mut robbed = None;
        loop {
            let finding = match self.read_again(value)? {
                Ok(definition) => return Some(definition),
                Err(finding) => finding,
            };
            let at = finding.path.clone();
            let before = robbed.take();
            let missing = self.add_missing(value, &at);
            if let Some(missing) = missing {
                self.findings.extend(missing);
                continue;
            }
            if before.as_ref() != Some(&at) {
                let mut finding = *finding;
                (finding.line, finding.column) = (None, None);
                finding.path = self.original(&finding.path);
                self.findings.push(finding);
            }
            robbed = self.take_away(value, &at)?;
        }
    }

    fn not_an_object(&mut self, at: String) {
        let finding = Finding::error(FindingCode::ProtocolSyntax, at, NOT_AN_OBJECT);
        self.findings.push(finding);
    }

    /// Parses a repaired definition; `None` once the budget is spent.
    fn read_again(&mut self, value: &Value) -> Option<Result<Definition, Box<Finding>>> {
        let text = value.to_string();
        self.budget = self.budget.checked_sub(text.len())?;
        Some(read(text.as_bytes()))
    }

    /// Adds the required members that an object lacks, if its schema is known; returns a finding
    /// for each but those that are misspelt, or `None` if it lacks none.
    fn add_missing(&mut self, value: &mut Value, at: &str) -> Option<Vec<Finding>> {
        let members = value.pointer_mut(at)?.as_object_mut()?;
        let (mut found, mut lacks) = (Vec::new(), false);
        for (name, stand_in) in stand_in(at).into_iter().flatten() {
            let is_forbidden = name == "contracts" && members.contains_key("forbidden");
            if is_forbidden || members.contains_key(&name) {
                continue;
            }
            lacks = true;
            let mut unknown = self.unknown.iter().filter(|(above, _)| above == at);
            if !unknown.any(|(_, own)| closest(own, [&*name]).is_some()) {
                let text = format!("missing field `{name}`");
                let written = self.original(at);
                let finding = Finding::error(FindingCode::ProtocolSyntax, written, text);
                found.push(finding.fix(format!("add `{name}` here")));
            }
            let mut place = at.to_owned();
            push_part(&mut place, &name);
            self.repaired.insert(place);
            members.insert(name, stand_in);
        }
        lacks.then_some(found)
    }

    /// Replaces or removes a value that can't be parsed; returns the path from which it was
    /// removed, if it was. `None` if it can do neither.
    fn take_away(&mut self, value: &mut Value, at: &str) -> Option<Option<String>> {
        let (above, _) = at.rsplit_once('/')?;
        let key = parts(at).last()?;
        lookup(value, at)?;
        self.repaired.insert(at.to_owned());
        let part_above = stand_in(above).and_then(|mut members| members.remove(&key));
        let whole = stand_in(at).map(Value::Object);
        if let Some(other) = whole.or(part_above) {
            *value.pointer_mut(at)? = other;
            return Some(None);
        }
        // If the member is known, a value of some type parses; if it is unknown, none does.
        let original = value.pointer(at)?.clone();
        for other in [json!(1), json!("x"), json!(false), json!([]), json!({})] {
            *value.pointer_mut(at)? = other;
            let is_read = match self.read_again(value)? {
                Ok(_) => true,
                Err(finding) => !is_within(&finding.path, at),
            };
            if is_read {
                return Some(None);
            }
        }
        *value.pointer_mut(at)? = original;
        match value.pointer_mut(above)? {
            Value::Object(members) => {
                members.shift_remove(&key);
                self.unknown.push((above.to_owned(), key));
            }
            Value::Array(items) => {
                let index: usize = key.parse().ok()?;
                items.remove(index);
                self.left_out.push(self.original(at));
                self.repaired.remove(at);
            }
            _ => return None,
        }
        Some(Some(above.to_owned()))
    }

    /// The path in the definition as written.
    fn original(&self, at: &str) -> String {
        let mut place = String::new();
        for part in parts(at) {
            let mut left_out: Vec<usize> = self
                .left_out
                .iter()
                .filter_map(|gone| gone.strip_prefix(&place)?.strip_prefix('/')?.parse().ok())
                .collect();
            left_out.sort_unstable();
            match part.parse::<usize>() {
                Ok(mut index) if !left_out.is_empty() => {
                    for gone in left_out {
                        index += usize::from(gone <= index);
                    }
                    push_part(&mut place, &index.to_string());
                }
                _ => push_part(&mut place, &part),
            }
        }
        place
    }

    /// Drops the findings that only follow from repairs, and maps the paths of the others to the
    /// definition as written.
    pub fn settle(&self, findings: &mut Vec<Finding>) {
        if self.repaired.is_empty() && self.left_out.is_empty() && self.unknown.is_empty() {
            return;
        }
        findings.retain_mut(|finding| {
            if [FindingCode::ProtocolSyntax, FindingCode::ProtocolMoved].contains(&finding.code) {
                return true;
            }
            if self.follows(finding) {
                return false;
            }
            if finding.path.starts_with('/') {
                finding.path = self.original(&finding.path);
            }
            true
        });
    }

    /// Whether a finding only follows from a repair: it is about the repaired part, or about a name
    /// that may have been defined in it.
    fn follows(&self, finding: &Finding) -> bool {
        use FindingCode as F;
        // Whether the whole list, one of its entries, or one of these members of an entry was
        // repaired.
        let list = |key: &str, members: &[&str]| {
            let repaired = self.repaired.iter().any(|place| {
                let place: Vec<String> = parts(place).collect();
                match &place[..] {
                    [list] | [list, _] => list == key,
                    [list, _, member, ..] => list == key && members.contains(&member.as_str()),
                    [] => false,
                }
            });
            let is_misspelt = |(above, own): &(String, String)| {
                parts(above).next().is_some_and(|list| list == key)
                    && closest(own, members.iter().copied()).is_some()
            };
            repaired || self.unknown.iter().any(is_misspelt)
        };
        let agents = || list("agents", &["id", "aliases"]);
        let kinds = || list("agents", &["id", "aliases", "kind"]);
        let types = || list("contracts", &["type"]);
        let schemas = || list("contracts", &["type", "schema"]);
        let travels = || list("contracts", &["type", "answers", "note"]);
        let routes = || list("routes", &["from", "to", "contracts", "opens", "via"]);
        let fields = || list("fields", &[]);
        // The files of a type are named after it.
        let is_of_type = |place: &String| {
            let entry = place.strip_suffix("/type");
            entry.is_some_and(|entry| is_within(&finding.path, entry))
        };
        // A member that is lacking because its name is misspelt.
        let misspelt = |(above, key): &(String, String)| {
            let name = finding.path.strip_prefix(above);
            let name = name.and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| closest(key, [name]).is_some())
        };
        let within = |place: &String| is_within(&finding.path, place);
        let words = |of: &str| {
            let mut repaired = self.repaired.iter();
            repaired.any(|place| is_within(place, of) || is_within(of, place))
        };
        self.repaired.iter().any(within)
            || self.unknown.iter().any(misspelt)
            || match finding.code {
                F::ProtocolUnknownAgent | F::ProtocolAlert => agents(),
                F::ProtocolUnknownType => types(),
                F::ProtocolUnknownField => schemas(),
                F::ProtocolMissingFile => self.repaired.iter().any(is_of_type),
                F::ProtocolRoute if finding.path == "/routes" => routes(),
                F::ProtocolRoute | F::ProtocolUnreachableAgent | F::ProtocolUnusedType => {
                    kinds() || travels() || routes()
                }
                F::ProtocolAmbiguous => {
                    let told_apart = ["when", "fields", "formats", "root", "foreign"];
                    agents() || travels() || routes() || list("contracts", &told_apart)
                }
                F::ProtocolUnknownStatus => words("/words/status") || types(),
                F::ProtocolUnreachableState => {
                    words("/words/status")
                        || schemas()
                        || fields()
                        || list("contracts", &["fields"])
                }
                F::ProtocolFact | F::ProtocolConsistency => list("facts", &[]),
                F::ProtocolErrorCode => words("/words/errors"),
                F::ProtocolRequirement => list("requirements", &[]) || kinds(),
                F::ProtocolAction => kinds(),
                F::ProtocolFindings => list("contracts", &["type", "raises", "fixes"]),
                F::ProtocolTasks | F::ProtocolLoops => list("contracts", &["type", "answers"]),
                F::ProtocolField => fields(),
                _ => false,
            }
    }
}

/// Whether a path equals another one or is below it.
fn is_within(place: &str, other: &str) -> bool {
    let rest = place.strip_prefix(other);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Every list in place of an object, with a placeholder: serde would accept the list as the
/// object's fields in order.
fn not_objects(definition: &Value) -> Vec<(String, Value)> {
    let lists = ["agents", "contracts", "routes"].into_iter();
    let items = lists.flat_map(|key| {
        let list = definition[key].as_array().into_iter().flatten();
        list.enumerate()
            .map(move |(i, item)| (format!("/{key}/{i}"), item))
    });
    let parts = ["fields", "evidence"].into_iter();
    let parts = parts.filter_map(|key| Some((format!("/{key}"), definition.get(key)?)));
    let types = definition["contracts"].as_array().into_iter().flatten();
    let claims = types
        .enumerate()
        .filter_map(|(i, item)| Some((format!("/contracts/{i}/claims"), item.get("claims")?)));
    let all = items.chain(parts).chain(claims);
    let others = all.filter(|(_, item)| item.is_array() || item.is_null());
    others
        .map(|(at, _)| {
            let members = stand_in(&at).unwrap_or_default();
            (at, Value::Object(members))
        })
        .collect()
}

/// A placeholder with every member that is required at a path, if its schema is known.
fn stand_in(at: &str) -> Option<Map<String, Value>> {
    let place: Vec<String> = parts(at).collect();
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    let unnamed = |n: &str| format!("unnamed-{n}");
    let members = match &place[..] {
        [] => json!({
            "format": 1, "name": "unnamed", "version": "1", "title": "unnamed",
            "formats": ["json"], "fields": {}, "agents": [], "contracts": [], "routes": [],
        }),
        ["agents", n] => json!({"id": unnamed(n), "role": "unnamed", "kind": "specialist"}),
        ["contracts", n] => json!({
            "type": unnamed(n), "title": "unnamed",
        }),
        ["routes", _] => json!({"from": "*", "to": "unnamed", "contracts": []}),
        _ => return None,
    };
    match members {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::Partial;
    use serde_json::json;

    fn told(definition: &serde_json::Value) -> Vec<String> {
        let partial = Partial::read(definition.to_string().as_bytes());
        let mut findings = partial.findings.clone();
        partial.settle(&mut findings);
        let shown = findings.iter().map(|f| {
            let (said, _) = f
                .message
                .split_once(", expected")
                .unwrap_or((&f.message, ""));
            format!("{}: {said}", f.path)
        });
        shown.collect()
    }

    #[test]
    fn faults_of_form_and_others_are_found_together() {
        let definition = json!({
            "format": 1, "name": "x", "version": "1", "title": "t", "formats": ["json"],
            "colour": "red",
            "fields": {"from": "/from", "to": "/to"},
            "agents": [
                {"id": "a", "role": "r", "kind": "specialist", "nickname": "n"},
                {"id": "b", "role": "r", "kind": "king"},
                {"id": "c", "kind": "end"},
            ],
            "contracts": [
                {"type": "c", "title": "t", "root": "r", "schema": "s.json", "template": "t.json", "note": "yes"},
            ],
            "routes": [
                {"from": "a", "to": "b", "contracts": ["c"], "opens": true},
                {"from": "b", "to": "nobody", "contracts": ["letter"]},
            ],
            "limits": {"lease_seconds": "long", "second": 1},
            "alerts": [
                {"name": "one", "metric": "nothing", "above": 0, "severity": "info", "action": "x"},
                {"name": "two", "metric": "dead", "severity": "info", "action": "x"},
            ],
        });
        insta::assert_snapshot!(told(&definition).join("\n"), @r#"
        /colour: unknown field `colour`
        /agents/0/nickname: unknown field `nickname`
        /agents/1/kind: unknown variant `king`
        /agents/2: missing field `role`
        /contracts/0/note: invalid type: string "yes"
        /limits/lease_seconds: invalid type: string "long"
        /limits/second: unknown field `second`
        /alerts/0/metric: unknown variant `nothing`
        /routes/1/to: no agent is called `nobody`
        /routes/1/contracts/0: no contract type is called `letter`
        /alerts/1: it has one of `above`, `at_least`, `below` and `at_most`
        "#);
    }

    #[test]
    fn what_only_follows_from_an_unreadable_part_is_not_told() {
        let sound = json!({
            "format": 1, "name": "x", "version": "1", "title": "t", "formats": ["json"],
            "fields": {"from": "/from", "to": "/to", "status": "/status"},
            "words": {"status": {"done": "completed"}},
            "agents": [
                {"id": "a", "role": "r", "kind": "specialist"},
                {"id": "end", "role": "r", "kind": "end"},
                {"id": "p", "role": "r", "kind": "human"},
            ],
            "contracts": [{"type": "c", "title": "t", "when": {"/w": "c"}}, {"type": "d", "title": "t", "when": {"/w": "d"}}],
            "routes": [{"from": "a", "to": "end", "contracts": ["c", "d"], "opens": true}],
            "requirements": {"seen": {"title": "t", "approved_by": ["person"]}},
        });
        for (at, value) in [
            ("/agents", json!({})),
            ("/agents/0", json!("a")),
            ("/agents/0/id", json!(7)),
            ("/agents/1/kind", json!("fin")),
            ("/agents/2/kind", json!("person")),
            ("/contracts", json!("c")),
            ("/contracts/0", json!("c")),
            ("/contracts/0/type", json!(7)),
            ("/contracts/1/when", json!("d")),
            ("/routes", json!("a to end")),
            ("/routes/0/contracts", json!("c")),
            ("/fields", json!([])),
            ("/words", json!("done")),
            ("/words/status/done", json!("complete")),
        ] {
            let mut definition = sound.clone();
            *definition.pointer_mut(at).unwrap() = value;
            let told = told(&definition);
            assert_eq!(told.len(), 1, "{at}: {told:?}");
            assert!(told[0].starts_with(&format!("{at}: ")), "{told:?}");
        }
        let mut definition = sound.clone();
        definition["requirements"]["seen"] = json!({"title": "t", "shownby": ["c"]});
        let text = "/requirements/seen/shownby: unknown field `shownby`";
        assert_eq!(told(&definition), [text]);
        // A misspelt key is the one that is missing.
        for key in ["agents", "contracts", "routes", "formats"] {
            let mut definition = sound.clone();
            let members = definition.as_object_mut().unwrap();
            let value = members.shift_remove(key).unwrap();
            let misspelt = key.replace('t', "tt");
            members.insert(misspelt.clone(), value);
            let told = told(&definition);
            let text = format!("/{misspelt}: unknown field `{misspelt}`");
            assert_eq!(told, [text]);
        }
    }

    #[test]
    fn nothing_is_made_up_for_what_is_missing() {
        let definition = json!({"format": 1, "name": "x", "routes": [{"from": "a", "to": "b", "contracts": ["c"]}]});
        insta::assert_snapshot!(told(&definition).join("\n"), @"
        : missing field `version`
        : missing field `title`
        : missing field `formats`
        : missing field `fields`
        : missing field `agents`
        : missing field `contracts`
        /routes: no route opens an issue, so that none can begin
        ");
        insta::assert_snapshot!(told(&json!([])).join("\n"), @": expected an object, in braces");
    }
}
