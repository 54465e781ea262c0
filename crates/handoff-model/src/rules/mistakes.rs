//! Finds mistakes of a protocol's author that nothing refuses: repeated keys, keywords that no
//! schema has, examples that their own schema refuses, work that goes round for ever.
//!
//! They are looked for in a folder only: what is in force stays valid.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::pointer::{escaped_part, under};
use handoff_base::text::{closest, cut};
use handoff_contract::{Form, KEYWORDS, decides, matches_nothing, scan};
use handoff_protocol::{
    AgentKind, ConsistencyRule, Definition, Effect, FactRule, Protocol, Route, RunFailure, Subject,
    schema_has, schema_values,
};
use serde_json::{Map, Value, json};

use crate::contract::still_at_work;
use crate::layout::DEFINITION;
use crate::record::{NOT_ACKNOWLEDGED, ROLE_VIOLATION, TIMED_OUT, UNSPECIFIED};
use crate::rules::contradictions::{excludes, fewest, held, is_required};
use crate::rules::protocol_check::{TYPES, line_and_column, position};
use crate::rules::template_check::binding;

/// The keywords that limit one number from both sides.
const BOUNDS: [(&str, &str); 8] = [
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
    ("minimum", "maximum"),
    ("minimum", "exclusiveMaximum"),
    ("exclusiveMinimum", "maximum"),
    ("exclusiveMinimum", "exclusiveMaximum"),
];

/// The keywords that limit values of these types alone.
const LIMITED: [(&[&str], &[&str]); 3] = [
    (&["minLength", "maxLength", "pattern"], &["string"]),
    (
        &[
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ],
        &["number", "integer"],
    ),
    (&["minItems", "maxItems", "uniqueItems"], &["array"]),
];

/// The keys of the keyword `xml`.
const XML: [&str; 7] = [
    "attribute",
    "name",
    "namespace",
    "nodeType",
    "prefix",
    "wrapped",
    "x-json",
];

/// Adds the keys that an object has twice, of which the last one would count; and takes away the
/// parser's finding about them.
pub(super) fn repeated_keys(files: &[(String, Vec<u8>)], found: &mut Vec<Finding>) {
    for (path, bytes) in files.iter().filter(|(path, _)| path.ends_with(".json")) {
        // Only of text that is parsed, its depth is known.
        let Ok(text) = str::from_utf8(bytes) else {
            continue;
        };
        if serde_json::from_slice::<Value>(bytes).is_err() {
            continue;
        }
        let mut first: BTreeMap<String, usize> = BTreeMap::new();
        let mut repeated = Vec::new();
        scan::walk(text, &mut |at, offset, seen| {
            let scan::Seen::Key { key, again } = seen else {
                return;
            };
            if again {
                repeated.push((key.to_owned(), at.to_owned(), offset));
            } else {
                first.insert(at.to_owned(), offset);
            }
        });
        for (key, at, offset) in repeated {
            let before = first
                .get(&at)
                .and_then(|before| line_and_column(text, *before));
            let mut message = format!("`{key}` stands twice in one object");
            if let Some((line, column)) = before {
                message += &format!(", first in line {line}, column {column}");
            }
            let place = if path == DEFINITION { &at } else { path };
            let mut finding = Finding::error(FindingCode::JsonDuplicateKey, place, message);
            (finding.line, finding.column) = line_and_column(text, offset).unzip();
            found.retain(|other| {
                let is_same = other.code == FindingCode::ProtocolSyntax
                    && path == DEFINITION
                    && other.line == finding.line
                    && at.starts_with(&other.path);
                !is_same
            });
            found.push(finding.fix("keep one: of two, only the last would count"));
        }
    }
}

/// The mistakes in a file, if it is a schema.
pub(super) fn schema_mistakes((path, bytes): &(String, Vec<u8>)) -> Vec<Finding> {
    let is_schema = path.starts_with("schemas/") && path.ends_with(".json");
    let root = serde_json::from_slice::<Value>(bytes).ok();
    let Some(root) = root.filter(|_| is_schema) else {
        return Vec::new();
    };
    let mut reader = SchemaReader {
        path,
        bytes,
        root: &root,
        found: Vec::new(),
    };
    reader.schema(&root, "");
    reader.found
}

struct SchemaReader<'s> {
    path: &'s str,
    bytes: &'s [u8],
    root: &'s Value,
    found: Vec<Finding>,
}

impl SchemaReader<'_> {
    fn add(&mut self, at: &str, severity: Severity, text: String) -> &mut Finding {
        let mut finding = Finding::error(FindingCode::ProtocolSchema, self.path, text);
        finding.severity = severity;
        (finding.line, finding.column) = position(self.bytes, at).unzip();
        self.found.push(finding);
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    fn schema(&mut self, node: &Value, at: &str) {
        let Some(members) = node.as_object() else {
            return;
        };
        for (key, value) in members {
            let at = under(at, key);
            self.keyword(key, value, &at);
            match (value, Form::of(key)) {
                (_, Form::Schema) => self.schema(value, &at),
                (Value::Object(named), Form::SchemaMap) => {
                    for (name, schema) in named {
                        self.schema(schema, &under(&at, name));
                    }
                }
                (Value::Array(list), Form::Schemas) => {
                    for (i, schema) in list.iter().enumerate() {
                        self.schema(schema, &under(&at, &i.to_string()));
                    }
                }
                (Value::Array(list), _) if key == "examples" => {
                    for (i, value) in list.iter().enumerate() {
                        self.example(members, value, &under(&at, &i.to_string()));
                    }
                }
                (Value::Array(list), _) if key == "enum" => self.without_value(members, list, &at),
                (Value::Array(names), Form::Texts) => self.required(members, names, &at),
                (Value::Object(keys), _) if key == "xml" => {
                    for key in keys.keys().filter(|key| !XML.contains(&&***key)) {
                        self.unknown(key, &XML, &under(&at, key), "a key of `xml`");
                    }
                }
                _ if key == "default" => self.example(members, value, &at),
                _ if key == "const" => {
                    self.without_value(members, std::slice::from_ref(value), &at);
                }
                _ => {}
            }
        }
        self.bounds(members, at);
        self.idle(members, at);
        self.unmatched(members, at);
    }

    /// Warns about a pattern for which no text is found, and no value stands beside it.
    fn unmatched(&mut self, members: &Map<String, Value>, at: &str) {
        let has_value = ["const", "enum", "examples", "default"];
        let pattern = members.get("pattern").and_then(Value::as_str);
        let Some(pattern) =
            pattern.filter(|_| !has_value.iter().any(|key| members.contains_key(*key)))
        else {
            return;
        };
        if matches_nothing(pattern) {
            let text = format!(
                "no text was found that the pattern `{}` matches",
                cut(pattern, 60)
            );
            let fix = "correct it, or give `examples` that it matches";
            self.add(&under(at, "pattern"), Severity::Warning, text).fix = Some(fix.to_owned());
        }
    }

    /// Warns about a limit on values of another type than the schema's.
    fn idle(&mut self, members: &Map<String, Value>, at: &str) {
        let types = match members.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        // An unknown type is reported already.
        if types.iter().any(|kind| !TYPES.contains(kind)) {
            return;
        }
        for (keys, limited) in LIMITED {
            if types.iter().any(|kind| limited.contains(kind)) {
                continue;
            }
            for key in keys.iter().filter(|key| members.contains_key(**key)) {
                let (of, types) = (limited[0], types.join(" or "));
                let text =
                    format!("`{key}` says nothing here: it limits a {of}, and the type is {types}");
                let fix = format!("leave it out, or make the type {of}");
                self.add(&under(at, key), Severity::Warning, text).fix = Some(fix);
            }
        }
    }

    /// Reports a minimum above its maximum.
    fn bounds(&mut self, members: &Map<String, Value>, at: &str) {
        for (least, most) in BOUNDS {
            let values = [least, most].map(|key| members.get(key).and_then(Value::as_f64));
            let [Some(from), Some(to)] = values else {
                continue;
            };
            let is_open = [least, most].iter().any(|key| key.starts_with("ex"));
            if from > to || is_open && from >= to {
                let shown = [least, most].map(|key| format!("`{key}` is {}", members[key]));
                let text = format!("no value is valid here: {}", shown.join(", and "));
                let fix = format!("lower `{least}`, or raise `{most}`");
                self.add(&under(at, least), Severity::Error, text).fix = Some(fix);
            }
        }
    }

    /// Reports a list of allowed values each of which another keyword beside it refuses.
    fn without_value(&mut self, members: &Map<String, Value>, list: &[Value], at: &str) {
        let refused = list.iter().map(|value| self.refused(members, value));
        let refused: Option<Vec<&String>> = refused.collect();
        if let (Some(keys), Some(value)) = (refused, list.first()) {
            let (shown, key) = (cut(&value.to_string(), 40), keys[0]);
            let text = format!("no value is valid here: `{key}` refuses `{shown}`");
            let fix = format!("give one that `{key}` accepts, or change `{key}`");
            self.add(at, Severity::Error, text).fix = Some(fix);
        }
    }

    /// Reports a keyword that JSON Schema does not have: it would check nothing.
    fn keyword(&mut self, key: &str, value: &Value, at: &str) {
        let mut groups = KEYWORDS.iter();
        if groups.any(|(_, names)| names.contains(&key)) {
            return;
        }
        let groups = KEYWORDS.iter().filter(|(form, _)| form.takes(value));
        let of_kind: Vec<&str> = groups.flat_map(|(_, names)| *names).copied().collect();
        if closest(key, ["x-json"]).is_some() {
            let text = format!("`{key}` belongs in `xml`, and says nothing here");
            let fix = "write {\"xml\": {\"x-json\": true}}";
            self.add(at, Severity::Error, text).fix = Some(fix.to_owned());
            return;
        }
        self.unknown(key, &of_kind, at, "a keyword of JSON Schema");
    }

    fn unknown(&mut self, key: &str, known: &[&str], at: &str, what: &str) {
        let text = format!("`{key}` is not {what}, so that it says nothing");
        if let Some(known) = closest(key, known.iter().copied()) {
            let fix = format!("did you mean `{known}`?");
            self.add(at, Severity::Error, text).fix = Some(fix);
        } else if !key.starts_with("x-") {
            let fix = "leave it out, or begin its name with `x-`";
            self.add(at, Severity::Warning, text).fix = Some(fix.to_owned());
        }
    }

    /// The keyword that refuses a value, by itself.
    fn refused<'m>(&self, members: &'m Map<String, Value>, value: &Value) -> Option<&'m String> {
        let refuses = |(key, given): &(&String, &Value)| {
            let mut alone = json!({(**key).clone(): given, "$defs": self.root["$defs"]});
            if alone["$defs"].is_null() {
                alone["$defs"] = json!({});
            }
            !accepts(&alone, value)
        };
        // `additionalProperties` and the like depend on other keywords.
        let alone = members.iter().filter(|(key, _)| {
            let depends = [
                "additionalProperties",
                "contains",
                "else",
                "items",
                "then",
                "$defs",
            ];
            !(depends.contains(&&***key) || key.starts_with("unevaluated"))
        });
        { alone }.find(refuses).map(|(key, _)| key)
    }

    /// Reports an example that another keyword beside it refuses.
    fn example(&mut self, members: &Map<String, Value>, value: &Value, at: &str) {
        if let Some(key) = self.refused(members, value) {
            let shown = cut(&value.to_string(), 40);
            let text = format!("the example `{shown}` is not valid here: `{key}` refuses it");
            let fix = format!("give one that `{key}` accepts, or change `{key}`");
            self.add(at, Severity::Error, text).fix = Some(fix);
        }
    }

    /// Reports required members that the schema does not describe.
    fn required(&mut self, members: &Map<String, Value>, names: &[Value], at: &str) {
        let Some(Value::Object(known)) = members.get("properties") else {
            return;
        };
        let is_object = members.get("type").is_some_and(|kind| kind == "object");
        let is_closed = members.get("additionalProperties") == Some(&Value::Bool(false))
            && !members.contains_key("patternProperties");
        for (i, name) in names.iter().enumerate() {
            let Some(name) = name.as_str().filter(|name| !known.contains_key(*name)) else {
                continue;
            };
            let is_near = closest(name, known.keys().map(String::as_str)).is_some();
            if is_closed || is_object && is_near {
                let text = format!("`{name}` is required, and not among the `properties`");
                let finding = self.add(&under(at, &i.to_string()), Severity::Error, text);
                *finding = finding
                    .clone()
                    .meant(name, known.keys().map(String::as_str));
            }
        }
    }
}

/// Whether a schema of one keyword accepts a value; if that can't be decided, it does.
pub(super) fn accepts(schema: &Value, value: &Value) -> bool {
    decides(schema, value).unwrap_or(true)
}

/// Routes that lead nowhere or round for ever, and decisions about failures that never happen.
pub(super) fn route_mistakes(protocol: &Protocol, schemas: &[Option<Value>]) -> Vec<Finding> {
    let mut found = unheard(protocol);
    found.extend(never_sent(protocol, schemas));
    found.extend(unlisted_status(protocol, schemas));
    found.extend(endless(protocol));
    found.extend(repeated_routes(protocol.definition()));
    found.extend(never_reached(protocol));
    found.extend(too_slow(protocol));
    found.extend(apart_from_itself(protocol));
    found.extend(never_started(protocol.definition(), schemas));
    found.extend(never_settled(protocol.definition()));
    found.extend(answers_nothing(protocol.definition(), schemas));
    found.extend(unknown_codes(protocol, schemas));
    found.extend(unknown_fields(protocol, schemas));
    found
}

/// Reports a limit of handoffs below what the usual way to the end takes or, without an end, to a
/// contract.
pub(super) fn too_few(protocol: &Protocol) -> Option<Finding> {
    let definition = protocol.definition();
    let most = definition.limits.as_ref()?.handoffs?;
    let fewest = fewest(protocol, true);
    let ends = |route: &Route| protocol.is_kind(route.to.as_str(), AgentKind::End);
    let routes = definition.routes.iter().filter(|route| route.from != "*");
    let least = routes.filter_map(|route| {
        let least = held(&fewest, route)? + u32::from(!ends(route));
        Some((ends(route), least, route.contracts.first()?))
    });
    let least: Vec<(bool, u32, &String)> = least.collect();
    let end = least
        .iter()
        .filter(|(ends, ..)| *ends)
        .map(|(_, least, _)| *least)
        .min();
    let (what, least) = match end {
        Some(least) => ("end of an issue".to_owned(), least),
        None => {
            let (_, least, kind) = least.iter().max_by_key(|(_, least, _)| *least)?;
            (format!("contract `{kind}`"), *least)
        }
    };
    let at = "/limits/handoffs";
    let text = format!(
        "the usual way to the {what} takes {least} handoffs, more than the limit of {most}"
    );
    let finding = Finding::error(FindingCode::ProtocolLimit, at, text);
    let fix = format!("allow {least} at least, and more for what goes round or is retried");
    (least > most).then(|| finding.fix(fix))
}

/// Warns about limits on some handoffs of an issue above that on all of them: never reached.
fn never_reached(protocol: &Protocol) -> Vec<Finding> {
    let limits = protocol.definition().limits.as_ref();
    let Some((limits, all)) = limits.and_then(|limits| Some((limits, limits.handoffs?))) else {
        return Vec::new();
    };
    let item = limits
        .item
        .iter()
        .map(|item| ("item/handoffs".to_owned(), item.handoffs));
    let cycle = limits
        .cycle
        .iter()
        .map(|cycle| ("cycle/most".to_owned(), cycle.most));
    // Further attempts are no further handoffs.
    let rounds = limits.rounds.iter().filter(|(_, round)| !round.attempts);
    let rounds =
        rounds.map(|(name, round)| (format!("rounds/{}/most", escaped_part(name)), round.most));
    let some = item.chain(cycle).chain(rounds);
    let found = some.filter(|(_, most)| *most > all).map(|(at, most)| {
        let text = format!("the limit of {most} is never reached: an issue has {all} handoffs at most, by `limits.handoffs`");
        let finding = Finding::warning(FindingCode::ProtocolLimit, format!("/limits/{at}"), text);
        finding.fix(format!("lower it to {all} or less, or raise `limits.handoffs`"))
    });
    found.collect()
}

/// Warns about a pause between two contracts that is longer than an issue may take.
fn too_slow(protocol: &Protocol) -> Option<Finding> {
    let limits = protocol.definition().limits.as_ref()?;
    let (wait, end) = (limits.cooldown_seconds?, limits.deadline_seconds?);
    let text = format!(
        "between two contracts of the same agents {wait} s must pass, and an issue has {end} s, by `limits.deadline_seconds`: no second one can be sent"
    );
    let at = "/limits/cooldown_seconds";
    let finding = Finding::warning(FindingCode::ProtocolLimit, at, text);
    (wait >= end).then(|| finding.fix("shorten it, or raise `limits.deadline_seconds`"))
}

/// Warns about requirements that set a contract apart from contracts of its own type alone.
fn apart_from_itself(protocol: &Protocol) -> Vec<Finding> {
    let requirements = protocol.definition().requirements.iter();
    let found = requirements.filter(|(_, one)| {
        let is_own = |kind: &String| one.shown_by.contains(kind);
        let is_shown = one.approved_by.is_empty() && !one.apart_from.is_empty();
        is_shown && one.apart_from.iter().all(is_own)
    });
    let found = found.map(|(name, one)| {
        let kinds = one.apart_from.join("` and `");
        let text = format!(
            "`{kinds}` meets requirement `{name}`, and is set apart from itself: who sent what it is about is not compared"
        );
        let at = format!("/requirements/{}/apart_from", escaped_part(name));
        let finding = Finding::warning(FindingCode::ProtocolRequirement, at, text);
        finding.fix("name the types whose senders must not meet it, such as those of `undone_by`")
    });
    found.collect()
}

/// Reports status words with which no contract is accepted, if a type allows no others.
fn never_sent(protocol: &Protocol, schemas: &[Option<Value>]) -> Vec<Finding> {
    let definition = protocol.definition();
    let mut types: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (kind, schema) in definition.contracts.iter().zip(schemas) {
        let status = protocol.field(kind, |fields| &fields.status);
        let Some((at, schema)) = status.zip(schema.as_ref()) else {
            continue;
        };
        let words = schema_values(schema, at).filter(|_| is_required(schema, at));
        let mut words = words.unwrap_or_default();
        // A word at which no other rule looks may stand beside these.
        let asked = kind.when.get(at);
        words.retain(|word| asked.is_none_or(|asked| asked.accept(word)));
        let is_refused = |word: &String| still_at_work(protocol, kind, word);
        if words.iter().all(is_refused) {
            for word in words {
                types.entry(word).or_default().push(&kind.name);
            }
        }
    }
    let found = types.into_iter().map(|(word, types)| {
        let (state, types) = (definition.words.status[&word], types.join("` and `"));
        let text = format!(
            "every contract of type `{types}` would be refused: its status `{word}` is {state}, which says that its sender is still at work"
        );
        let at = format!("/words/status/{}", escaped_part(&word));
        let finding = Finding::error(FindingCode::ProtocolUnreachableState, at, text);
        finding.fix("make it `completed`: who sends the contract has done its part")
    });
    found.collect()
}

/// Reports status words that a schema lists and the protocol does not: a contract with one would
/// complete what its sender holds.
fn unlisted_status(protocol: &Protocol, schemas: &[Option<Value>]) -> Vec<Finding> {
    let definition = protocol.definition();
    let listed = &definition.words.status;
    let mut types: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (kind, schema) in definition.contracts.iter().zip(schemas) {
        let status = protocol.field(kind, |fields| &fields.status);
        let Some((at, schema)) = status.zip(schema.as_ref()).filter(|_| !kind.note) else {
            continue;
        };
        let asked = kind.when.get(at);
        let words = schema_values(schema, at).into_iter().flatten();
        let words = words.filter(|word| asked.is_none_or(|asked| asked.accept(word)));
        for word in words.filter(|word| !listed.contains_key(word)) {
            types.entry(word).or_default().push(&kind.name);
        }
    }
    let found = types.into_iter().map(|(word, types)| {
        let allow = if types.len() == 1 { "allows" } else { "allow" };
        let text = format!(
            "`{}` {allow} the status `{word}`, which words.status does not have: it would count as completed",
            types.join("` and `")
        );
        let finding = Finding::error(FindingCode::ProtocolUnknownStatus, "/words/status", text);
        match closest(&word, listed.keys().map(String::as_str)) {
            Some(known) => finding.fix(format!("did you mean `{known}`?")),
            None => finding.fix("say there which state it means, or leave it out of the schema"),
        }
    });
    found.collect()
}

/// Warns about findings that no type settles: they stay answered.
fn never_settled(definition: &Definition) -> Option<Finding> {
    let mut types = definition.contracts.iter();
    let raises = types.position(|kind| kind.raises.is_some())?;
    let settles = definition.contracts.iter().any(|kind| kind.settles);
    let text = "no type settles findings, so that they stay answered, never resolved";
    let at = format!("/contracts/{raises}/raises");
    let finding = Finding::warning(FindingCode::ProtocolFindings, at, text);
    (!settles).then(|| finding.fix("add `\"settles\": true` to the type that approves the work"))
}

/// Reports types that open an issue and must answer findings there, before any is raised.
fn answers_nothing(definition: &Definition, schemas: &[Option<Value>]) -> Vec<Finding> {
    let types = definition.contracts.iter().zip(schemas).enumerate();
    let found = types.filter_map(|(i, (kind, schema))| {
        let (fields, schema) = kind.fixes.as_ref().zip(schema.as_ref())?;
        let mut routes = definition.routes.iter().filter(|route| route.opens);
        routes.find(|route| route.contracts.contains(&kind.name))?;
        let at = fields.list.as_str();
        let some = |node: &&Value| node["minItems"].as_u64().is_some_and(|least| least > 0);
        let must = is_required(schema, at) && binding(schema, at).iter().any(some);
        let names = fields.finding.as_deref().filter(|_| must)?;
        let entry = format!("{at}/*");
        let named = binding(schema, &entry).into_iter().any(|node| {
            let mut alone = node.clone();
            alone["$defs"] = schema["$defs"].clone();
            is_required(&alone, names)
        });
        let text = format!(
            "`{}` opens an issue, which has no findings yet, and {} requires an answer in `{at}`",
            kind.name, kind.schema
        );
        let path = format!("/contracts/{i}/fixes");
        let finding = Finding::error(FindingCode::ProtocolFindings, path, text);
        named.then(|| finding.fix("let the list be empty, without `minItems`"))
    });
    found.collect()
}

/// Warns about rounds that no contract starts, as their schemas exclude what `when` asks for.
fn never_started(definition: &Definition, schemas: &[Option<Value>]) -> Vec<Finding> {
    let rounds = definition.limits.iter().flat_map(|limits| &limits.rounds);
    let found = rounds.filter_map(|(name, round)| {
        let types = definition.contracts.iter().zip(schemas);
        let mut types = types
            .filter(|(kind, _)| round.contracts.contains(&kind.name))
            .peekable();
        types.peek()?;
        let is_excluded = types.all(|(_, schema)| {
            schema
                .as_ref()
                .is_some_and(|schema| excludes(schema, &round.when))
        });
        let text = format!(
            "round `{name}` is never counted: none of its contracts can have what its `when` asks"
        );
        let at = format!("/limits/rounds/{}/when", escaped_part(name));
        let finding = Finding::warning(FindingCode::ProtocolLimit, at, text);
        is_excluded
            .then(|| finding.fix("ask for values that the schema lists, or leave `when` out"))
    });
    found.collect()
}

/// Reports routes whose deciding agent can't decide, or can't send on.
fn unheard(protocol: &Protocol) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for route in protocol.definition().routes.iter() {
        let Some(via) = &route.via else { continue };
        let (from, to) = (via.as_str(), route.to.as_str());
        let agent = protocol.agent(from);
        let Some(agent) = agent.filter(|_| from != to && from != route.from) else {
            continue;
        };
        let at = route.place("via");
        if agent.kind != AgentKind::Orchestrator && protocol.lead().is_none() {
            let text = format!(
                "`{via}` is of kind `{}`: only an orchestrator has to decide first, and there is none",
                agent.kind.as_str()
            );
            let finding = Finding::error(FindingCode::ProtocolRoute, &at, text);
            found.push(finding.fix(format!(
                "make `{via}` the orchestrator, or leave `via` out and add routes from and to it"
            )));
        }
        // What it sends itself goes directly.
        if protocol.routes(from, to).next().is_none() {
            let text = format!("no route leads from `{via}` to `{to}`, so that nothing gets there");
            let finding = Finding::error(FindingCode::ProtocolRoute, &at, text);
            found.push(finding.fix(format!("add a route from `{via}` to `{to}`")));
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|finding| seen.insert((finding.path.clone(), finding.message.clone())));
    found
}

/// Warns about work that can go round among agents of which none decides, without a limit.
fn endless(protocol: &Protocol) -> Option<Finding> {
    let definition = protocol.definition();
    let limits = definition.limits.clone().unwrap_or_default();
    let is_limited = limits.count_all()
        || limits.deadline_seconds.is_some()
        || limits.loops.is_some()
        || !limits.budgets.is_empty();
    if is_limited {
        return None;
    }
    let rounds = limits.rounds.values().flat_map(|round| &round.contracts);
    let rounds: BTreeSet<&String> = rounds.collect();
    let works = |name: &str| protocol.is_kind(name, AgentKind::Specialist);
    let is_free = |route: &&Route| {
        let is_counted = route.contracts.iter().all(|kind| rounds.contains(kind));
        let is_kept = route.from == route.to.as_str();
        !is_counted && !is_kept && route.via.is_none() && works(route.to.as_str())
    };
    let routes: Vec<&Route> = definition.routes.iter().filter(is_free).collect();
    let next = |from: &str| {
        let leaves =
            |route: &&&Route| route.from == from || route.from == "*" && route.to.as_str() != from;
        let leaving: Vec<&Route> = routes.iter().filter(leaves).copied().collect();
        leaving
    };
    let agents = definition.agents.iter().map(|agent| agent.id.as_str());
    let mut left: BTreeSet<&str> = agents.filter(|agent| works(agent)).collect();
    while let Some(ends) = left
        .iter()
        .find(|agent| !next(agent).iter().any(|r| left.contains(r.to.as_str())))
        .copied()
    {
        left.remove(ends);
    }
    // From any agent that is left, one comes to another that is left, and so back.
    let mut path: Vec<(&str, &Route)> = Vec::new();
    let mut here = *left.first()?;
    while !path.iter().any(|(agent, _)| *agent == here) {
        let leaving = next(here);
        let route = leaving
            .into_iter()
            .find(|route| left.contains(route.to.as_str()))?;
        path.push((here, route));
        here = route.to.as_str();
    }
    let start = path.iter().position(|(agent, _)| *agent == here)?;
    let round = path[start..].iter().map(|(agent, _)| *agent);
    let round: Vec<&str> = round.chain([here]).collect();
    let at = path[start].1.place("from");
    let text = format!("work can go round for ever: {}", round.join(" → "));
    let finding = Finding::warning(FindingCode::ProtocolLimit, at, text);
    Some(finding.fix(
        "limit it in `limits`: `\"handoffs\": 50` for an issue, or `rounds` with these contracts",
    ))
}

/// Warns about agents that get work of which nothing that they may send comes to the end.
pub(super) fn stuck(protocol: &Protocol) -> Vec<Finding> {
    let definition = protocol.definition();
    if !definition.has_end() {
        return Vec::new();
    }
    let routes = &definition.routes;
    let agents = definition.agents.iter();
    let ends = agents.filter(|agent| agent.kind == AgentKind::End);
    let mut out: BTreeSet<&str> = ends.map(|agent| agent.id.as_str()).collect();
    let asked = definition.contracts.iter().flat_map(|kind| &kind.answers);
    let asked: BTreeSet<&String> = asked.collect();
    let is_asked = |route: &Route| route.contracts.iter().any(|kind| asked.contains(kind));
    let mut before = 0;
    while before < out.len() {
        before = out.len();
        for route in routes.iter() {
            let (from, to) = (route.from.as_str(), route.to.as_str());
            if out.contains(to) && from == "*" {
                return Vec::new();
            } else if out.contains(to) {
                out.insert(from);
            } else if is_asked(route) && out.contains(from) {
                out.insert(to);
            }
        }
    }
    // An end that no route reaches is reported already.
    if out.len()
        == definition
            .agents
            .iter()
            .filter(|a| a.kind == AgentKind::End)
            .count()
    {
        return Vec::new();
    }
    let gets = |agent: &str| routes.iter().find(|route| route.to.as_str() == agent);
    let agents = definition.agents.iter().enumerate();
    let stuck = agents.filter_map(|(i, agent)| {
        let id = agent.id.as_str();
        let is_out = agent.kind != AgentKind::Specialist || out.contains(id);
        let route = gets(id).filter(|_| !is_out)?;
        let text = format!("nothing that `{id}` may send leads to the end of an issue");
        let back = match route.from.as_str() {
            from if out.contains(from) => format!("back to `{from}`"),
            _ => "towards the end".to_owned(),
        };
        let at = format!("/agents/{i}");
        let finding = Finding::warning(FindingCode::ProtocolRoute, at, text);
        Some(finding.fix(format!("add a route from `{id}`, such as {back}")))
    });
    stuck.collect()
}

/// Warns about a route that is there twice.
fn repeated_routes(definition: &Definition) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for route in definition.routes.iter() {
        let (from, to) = (&route.from, &route.to);
        for kind in &route.contracts {
            if !seen.insert((from.as_str(), to.as_str(), kind.as_str())) {
                let text =
                    format!("`{kind}` goes from `{from}` to `{to}` by another route already");
                let at = route.place("contracts");
                let finding = Finding::warning(FindingCode::ProtocolRoute, at, text);
                found.push(finding.fix("leave it out here: only the first of two routes counts"));
            }
        }
    }
    found
}

/// Reports fields that a rule for events of GitHub fills, and that its contract does not have.
fn unknown_fields(protocol: &Protocol, schemas: &[Option<Value>]) -> Vec<Finding> {
    let definition = protocol.definition();
    let mut found = Vec::new();
    for (i, rule) in definition.event_rules().iter().enumerate() {
        let (key, contract) = match &rule.effect {
            Some(Effect::Send(contract)) => ("send", contract),
            Some(Effect::Draft(contract)) => ("draft", contract),
            _ => continue,
        };
        let mut types = definition.contracts.iter().zip(schemas);
        let Some((_, Some(schema))) = types.find(|(kind, _)| kind.name == contract.contract) else {
            continue;
        };
        for pointer in contract.fields.keys().filter(|at| !schema_has(schema, at)) {
            let text = format!("`{pointer}` is a field that the contract does not have");
            let part = escaped_part(pointer);
            let at = format!("/github/rules/{i}/do/{key}/fields/{part}");
            let finding = Finding::error(FindingCode::ProtocolUnknownField, at, text);
            found.push(meant_field(finding, pointer, [schema]));
        }
    }
    found.extend(never_applied(definition, schemas));
    found
}

/// Reports fields of a consistency rule that none of the types in its `of` has.
fn never_applied(definition: &Definition, schemas: &[Option<Value>]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, rule) in definition.consistency.iter().enumerate() {
        found.extend(unknown_parts(definition, schemas, i, rule));
        let types = definition.contracts.iter().zip(schemas);
        let own = types.filter(|(kind, _)| rule.of.contains(&kind.name));
        let Some(own) = own
            .map(|(_, schema)| schema.as_ref())
            .collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        for (part, pointer) in rule.placed().filter(|_| !own.is_empty()) {
            // What no schema has is reported already.
            let has = |schema: &&Value| schema_has(schema, pointer);
            if own.iter().any(has) || !schemas.iter().flatten().any(|s| has(&s)) {
                continue;
            }
            let text = format!(
                "`{pointer}` is a field that no contract of type {} has, so that rule `{}` never applies",
                rule.of.join(" or "),
                rule.name
            );
            let at = format!("/consistency/{i}/{part}");
            let finding = Finding::error(FindingCode::ProtocolUnknownField, at, text);
            found.push(meant_field(finding, pointer, own.iter().copied()));
        }
    }
    found
}

/// Reports parts of facts that no contract states.
fn unknown_parts(
    definition: &Definition,
    schemas: &[Option<Value>],
    i: usize,
    rule: &ConsistencyRule,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (j, term) in rule.compare.terms().into_iter().enumerate() {
        let Subject::Fact(name, part) = term.subject() else {
            continue;
        };
        let noted = definition.event_rules();
        let is_noted = noted.iter().any(|rule| rule.facts.contains_key(name));
        let Some(FactRule::Last(at) | FactRule::Newest { at, .. }) =
            definition.facts.get(name).map(|fact| &fact.rule)
        else {
            continue;
        };
        let states = |schema: &Value| {
            at.iter()
                .any(|at| schema_has(schema, &format!("{at}{part}")))
        };
        let mut known = schemas.iter();
        if !part.is_empty() && !is_noted && !known.any(|one| one.as_ref().is_none_or(states)) {
            let text = format!("no contract states the part `{part}` of fact `{name}`");
            let at = format!("/consistency/{i}/compare/{}/{j}", rule.compare.as_str());
            let finding = Finding::error(FindingCode::ProtocolUnknownField, at, text);
            found.push(finding.fix(format!("correct it, or compare the whole `fact:{name}`")));
        }
    }
    found
}

/// Adds the field that is meant by an unknown one.
pub(super) fn meant_field<'s>(
    finding: Finding,
    pointer: &str,
    schemas: impl IntoIterator<Item = &'s Value>,
) -> Finding {
    fn add(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let at = under(at, name);
            add(schema, &at, found);
            found.insert(at);
        }
    }
    let mut known = BTreeSet::new();
    schemas
        .into_iter()
        .for_each(|schema| add(schema, "", &mut known));
    finding.meant(pointer, known.iter().map(String::as_str))
}

/// Reports codes in decisions that no failure has.
fn unknown_codes(protocol: &Protocol, schemas: &[Option<Value>]) -> Vec<Finding> {
    let definition = protocol.definition();
    let listed = &definition.words.errors;
    let own = [UNSPECIFIED, TIMED_OUT, NOT_ACKNOWLEDGED, ROLE_VIOLATION];
    let mut known: BTreeSet<String> = own.map(str::to_owned).into();
    known.extend(listed.keys().cloned());
    for (kind, schema) in definition.contracts.iter().zip(schemas) {
        let Some(failure) = &kind.failure else {
            continue;
        };
        match schema.as_ref().filter(|_| failure.code.starts_with('/')) {
            Some(schema) => {
                known.extend(schema_values(schema, &failure.code).into_iter().flatten())
            }
            None => drop(known.insert(failure.code.clone())),
        }
    }
    if listed.is_empty() {
        let runs = RunFailure::ALL.into_iter();
        known.extend(runs.map(|run| run.as_str().to_owned()));
    }
    let mut found = Vec::new();
    for (i, rule) in definition.decisions.iter().enumerate() {
        for (j, code) in rule.when.codes.iter().enumerate() {
            let names = || known.iter().map(String::as_str);
            // Without a list, agents may give any code.
            let is_open = listed.is_empty() && closest(code, names()).is_none();
            if known.contains(code) || is_open {
                continue;
            }
            let text = format!("no failure has the code `{code}`");
            let at = format!("/decisions/{i}/when/codes/{j}");
            let mut finding = Finding::error(FindingCode::ProtocolErrorCode, at, text);
            if listed.is_empty() {
                finding.severity = Severity::Warning;
            }
            found.push(finding.meant(code, names()));
        }
    }
    found
}
