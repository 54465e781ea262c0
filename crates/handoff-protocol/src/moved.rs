//! Keys of `protocol.json` that were moved, and what stands for them now.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::parts;
use serde_json::{Map, Value, json};

/// Each earlier key, and where it is now.
const MOVED: [(&str, &str); 11] = [
    ("archive", "moved to `time.archive_after_seconds`"),
    ("budgets", "moved to `limits.budgets`"),
    ("ends", "left out: an agent of kind `end` says it"),
    (
        "exclusive",
        "moved to `facts.NAME.exclusive`: true or false",
    ),
    ("gates", "left out: a protocol with `tasks` has every gate"),
    (
        "leases",
        "moved to `time`: `seconds` is `lease_seconds` there",
    ),
    ("loops", "moved to `limits.loops`: the reason as a text"),
    ("merge", "moved to `requirements.NAME.merge`: true or false"),
    ("on_record", "moved to `limits.on_record`"),
    ("trail", "moved to `traces`"),
    (
        "turns",
        "left out: who may send contracts with `tasks` says it",
    ),
];

/// The times that have other names, by their earlier ones in `leases`.
const TIMES: [(&str, &str); 3] = [
    ("seconds", "lease_seconds"),
    ("longest_seconds", "longest_lease_seconds"),
    ("person_seconds", "person_lease_seconds"),
];

/// Says of a finding about an unknown key where that key is now.
pub(crate) fn named(mut finding: Box<Finding>) -> Box<Finding> {
    let key: Vec<String> = parts(&finding.path).collect();
    let moved = MOVED.iter().find(|(old, _)| [*old] == key[..]);
    if let Some((old, now)) = moved.filter(|_| finding.message.starts_with("unknown field ")) {
        finding.code = FindingCode::ProtocolMoved;
        finding.message = format!("`{old}` is {now}");
        if now.starts_with("moved") {
            finding.message = format!("`{old}` {now}");
        }
    }
    finding
}

/// A definition with each moved key in its place; `None` if it has none of them.
pub fn renewed(definition: &[u8]) -> Option<Vec<u8>> {
    let mut value: Map<String, Value> = serde_json::from_slice(definition).ok()?;
    let mut moved = false;
    for (key, _) in MOVED {
        if let Some(old) = value.shift_remove(key) {
            moved = true;
            put(&mut value, key, old);
        }
    }
    moved.then(|| serde_json::to_vec_pretty(&value).ok())?
}

/// Puts what an earlier key had where it belongs.
fn put(definition: &mut Map<String, Value>, key: &str, old: Value) {
    match (key, old) {
        ("leases", Value::Object(times)) => {
            for (name, seconds) in times {
                let known = TIMES.iter().find(|(earlier, _)| *earlier == name);
                let name = known.map_or(&*name, |(_, now)| now);
                member(definition, &["time"]).insert(name.to_owned(), seconds);
            }
        }
        ("archive", Value::Object(mut archive)) => {
            let after = archive.remove("after_seconds").unwrap_or_default();
            member(definition, &["time"]).insert("archive_after_seconds".to_owned(), after);
        }
        ("loops", Value::Object(mut loops)) => {
            let reason = loops.remove("reason").unwrap_or_default();
            member(definition, &["limits"]).insert("loops".to_owned(), reason);
        }
        ("budgets" | "on_record", old) => {
            member(definition, &["limits"]).insert(key.to_owned(), old);
        }
        ("trail", Value::Object(trail)) => member(definition, &["traces"]).extend(trail),
        ("exclusive" | "merge", Value::Array(names)) => {
            let list = if key == "merge" {
                "requirements"
            } else {
                "facts"
            };
            for name in names.iter().filter_map(Value::as_str) {
                if definition
                    .get(list)
                    .is_some_and(|of| of.get(name).is_some())
                {
                    member(definition, &[list, name]).insert(key.to_owned(), json!(true));
                }
            }
        }
        _ => {}
    }
}

/// The object at a path, which is made if there is none.
fn member<'d>(definition: &'d mut Map<String, Value>, path: &[&str]) -> &'d mut Map<String, Value> {
    let Some((first, rest)) = path.split_first() else {
        return definition;
    };
    let value = definition.entry(*first).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    member(value.as_object_mut().expect("it was made one"), rest)
}
