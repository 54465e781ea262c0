//! Keys of `protocol.json` that were moved or removed, and what replaces them.

use std::fmt::Write as _;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::{escaped_part, parts};
use serde_json::{Map, Value, json};

/// Former keys with their replacements.
const MOVED: [(&str, &str); 21] = [
    ("archive", "moved to `limits.archive_after_seconds`"),
    (
        "attention",
        "moved to `alerts`: an entry with `need` and `tell` for each",
    ),
    (
        "briefing",
        "moved to `facts.NAME.briefing`: a number, which orders them",
    ),
    ("budgets", "moved to `limits.budgets`"),
    ("ends", "left out: an agent of kind `end` says it"),
    ("errors", "moved to `words.errors`"),
    (
        "exclusive",
        "moved to `facts.NAME.exclusive`: true or false",
    ),
    (
        "forbidden",
        "moved to `routes`: the reason is `forbidden` there",
    ),
    ("gates", "left out: a protocol with `tasks` has every gate"),
    (
        "leases",
        "moved to `limits`: `seconds` is `lease_seconds` there",
    ),
    ("loops", "moved to `limits.loops`: the reason as a text"),
    ("merge", "moved to `requirements.NAME.merge`: true or false"),
    ("on_record", "moved to `limits.on_record`"),
    ("opinions", "moved to `facts.FACT.opinions`"),
    ("priorities", "moved to `words.priorities`"),
    ("retry", "moved to `limits.retry`"),
    ("status", "moved to `words.status`"),
    (
        "style",
        "left out: it is a call if a contract type has `answers`, else a relay",
    ),
    ("time", "moved to `limits`"),
    ("trail", "moved to `traces`"),
    (
        "turns",
        "left out: who may send contracts with `tasks` says it",
    ),
];

/// Durations that were renamed, by their former key in `leases`.
const TIMES: [(&str, &str); 3] = [
    ("seconds", "lease_seconds"),
    ("longest_seconds", "longest_lease_seconds"),
    ("person_seconds", "person_lease_seconds"),
];

fn moved(key: &str) -> Option<String> {
    let (_, now) = MOVED.iter().find(|(old, _)| *old == key)?;
    let is = if now.starts_with("moved") { "" } else { "is " };
    Some(format!("`{key}` {is}{now}"))
}

/// If the finding is about a former key, makes it say what replaced the key.
pub(crate) fn named(mut finding: Box<Finding>) -> Box<Finding> {
    let key: Vec<String> = parts(&finding.path).collect();
    let text = match &key[..] {
        [key] if finding.message.starts_with("unknown field ") => moved(key),
        _ => None,
    };
    if let Some(text) = text {
        (finding.code, finding.message) = (FindingCode::ProtocolMoved, text);
        finding.fix = None;
    }
    finding
}

/// A definition converted from an earlier form.
pub struct Renewed {
    /// The definition.
    pub definition: Vec<u8>,
    /// The moves: current path, former path.
    moves: Vec<(String, String)>,
    /// The former keys that were converted.
    keys: Vec<&'static str>,
}

impl Renewed {
    /// The path in the definition as written, before the conversion.
    pub fn as_written(&self, place: &str) -> String {
        let under = |now: &str| {
            let rest = place.strip_prefix(now)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        };
        let moves = self.moves.iter();
        let known =
            moves.filter_map(|(now, old)| Some((now.len(), format!("{old}{}", under(now)?))));
        let nearest = known.max_by_key(|(length, _)| *length);
        nearest.map_or_else(|| place.to_owned(), |(_, old)| old)
    }

    /// A finding for each former key, naming its replacement.
    pub fn findings(&self) -> impl Iterator<Item = Finding> {
        self.keys.iter().filter_map(|key| {
            let (code, at) = (FindingCode::ProtocolMoved, format!("/{key}"));
            Some(Finding::error(code, at, moved(key)?))
        })
    }
}

/// Converts a definition that contains former keys; `None` if it contains none.
pub fn renewed(definition: &[u8]) -> Option<Renewed> {
    let mut mover = Mover {
        definition: serde_json::from_slice(definition).ok()?,
        moves: Vec::new(),
    };
    let mut keys = Vec::new();
    for (key, _) in MOVED {
        let old = mover.definition.get(key).cloned();
        // A key whose value can't be converted is reported as unknown.
        if old.is_some_and(|old| mover.put(key, old).is_some()) {
            mover.definition.shift_remove(key);
            keys.push(key);
        }
    }
    (!keys.is_empty()).then_some(())?;
    Some(Renewed {
        definition: serde_json::to_vec_pretty(&mover.definition).ok()?,
        moves: mover.moves,
        keys,
    })
}

struct Mover {
    definition: Map<String, Value>,
    moves: Vec<(String, String)>,
}

impl Mover {
    /// Moves the value of a former key to its current place; `None` if the value is not of the
    /// former form.
    fn put(&mut self, key: &str, old: Value) -> Option<()> {
        match (key, old) {
            (_, Value::Null) => {}
            ("ends" | "gates" | "turns", _) => {}
            ("style", Value::String(style)) => {
                let types = self.definition.get("contracts")?.as_array()?.iter();
                let mut answers = types.filter_map(|kind| kind.get("answers")?.as_array());
                let calls = answers.any(|answers| !answers.is_empty());
                return (style == if calls { "call" } else { "relay" }).then_some(());
            }
            ("leases" | "time", Value::Object(times)) => self.put_times(key, times),
            ("archive", Value::Object(mut archive)) => {
                let after = archive.remove("after_seconds").unwrap_or_default();
                let old = [key, "after_seconds"];
                self.set(&["limits"], "archive_after_seconds", after, &old);
            }
            ("loops", Value::Object(mut loops)) => {
                let reason = loops.remove("reason").unwrap_or_default();
                self.set(&["limits"], key, reason, &[key, "reason"]);
            }
            ("budgets" | "on_record" | "retry", old) => self.set(&["limits"], key, old, &[key]),
            ("errors" | "status", Value::Object(words)) => {
                for (word, meaning) in words {
                    self.set(&["words", key], &word, meaning, &[key, &word]);
                }
            }
            ("priorities", old) => self.set(&["words"], key, old, &[key]),
            ("trail", Value::Object(trail)) => {
                for (name, old) in trail {
                    self.set(&["traces"], &name, old, &[key, &name]);
                }
            }
            ("exclusive" | "merge", Value::Array(names)) => {
                let list = if key == "merge" {
                    "requirements"
                } else {
                    "facts"
                };
                for (i, name) in names.iter().enumerate() {
                    let name = name.as_str()?;
                    let of = self.definition.get(list);
                    if of.is_some_and(|of| of.get(name).is_some()) {
                        self.set(&[list, name], key, json!(true), &[key, &i.to_string()]);
                    }
                }
            }
            ("briefing", Value::Array(names)) => {
                for (i, name) in names.iter().enumerate() {
                    let old = [key, &i.to_string()];
                    self.set(&["facts", name.as_str()?], key, json!(i + 1), &old);
                }
            }
            ("opinions", Value::Array(opinions)) => {
                for (i, mut one) in opinions.into_iter().enumerate() {
                    let fact = one.as_object_mut()?.shift_remove("fact")?;
                    self.set(&["facts", fact.as_str()?], key, one, &[key, &i.to_string()]);
                }
            }
            ("forbidden", Value::Array(routes)) => {
                for (i, mut route) in routes.into_iter().enumerate() {
                    let (i, members) = (i.to_string(), route.as_object_mut()?);
                    if let Some(reason) = members.shift_remove("reason") {
                        members.insert(key.to_owned(), reason);
                    }
                    let inner = [("forbidden", &[key, &i, "reason"][..])];
                    self.push("routes", route, &[key, &i], &inner)?;
                }
            }
            ("attention", Value::Object(told)) => {
                for (need, told) in told {
                    let (old, entry) = ([key, &*need], json!({"need": need, "tell": told}));
                    self.push("alerts", entry, &old, &[("tell", &old)])?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn put_times(&mut self, key: &str, times: Map<String, Value>) {
        for (name, seconds) in times {
            let known = TIMES
                .iter()
                .find(|(old, _)| key == "leases" && *old == name);
            let now = known.map_or(&*name, |(_, now)| now);
            self.set(&["limits"], now, seconds, &[key, &name]);
        }
    }

    /// Sets a member of the object at a path, creating the object if it is missing.
    fn set(&mut self, path: &[&str], name: &str, value: Value, old: &[&str]) {
        let mut object = &mut self.definition;
        for part in path {
            let inner = object.entry(*part).or_insert(Value::Null);
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            object = inner.as_object_mut().expect("it was made one");
        }
        object.insert(name.to_owned(), value);
        self.moves
            .push((pointer(&[path, &[name]].concat()), pointer(old)));
    }

    /// Appends an entry to a list and records where its members were written.
    fn push(
        &mut self,
        list: &str,
        entry: Value,
        old: &[&str],
        inner: &[(&str, &[&str])],
    ) -> Option<()> {
        let entries = self.definition.entry(list).or_insert_with(|| json!([]));
        let entries = entries.as_array_mut()?;
        let at = pointer(&[list, &entries.len().to_string()]);
        entries.push(entry);
        let inner = inner.iter();
        let inner = inner.map(|(name, old)| (format!("{at}/{name}"), pointer(old)));
        self.moves.extend(inner);
        self.moves.push((at, pointer(old)));
        Some(())
    }
}

fn pointer(parts: &[&str]) -> String {
    parts.iter().fold(String::new(), |mut at, part| {
        _ = write!(at, "/{}", escaped_part(part));
        at
    })
}
