//! A change of a protocol that lets a contract pass which was refused is called weaker: each change is
//! played on the samples of its protocol and their mutants, and compared with what `loosened` says.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use handoff::base::finding::Finding;
use handoff::contract::{Input, Schema};
use handoff::model::{ProtocolFiles, Review, Schemas, Strictness, loosened, review, weaker};
use handoff::protocol::{Policy, Protocol};
use handoff::templates::built_in;
use serde_json::Value;
use test_support::proof;

use crate::mutations::{Chance, mutants, vocabulary, walk};
use crate::rules::Rules;

/// How many changes of each protocol are played, in the short form.
const CHANGES: usize = 60;

/// How many refused contracts of a type are played at most.
const PLAYED: usize = 60;

/// The keywords of a schema that refuse.
const REFUSES: [&str; 12] = [
    "additionalProperties",
    "const",
    "enum",
    "format",
    "items",
    "maxLength",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "required",
    "type",
];

/// The schemas of a protocol that is in memory.
struct InMemory<'a> {
    files: &'a ProtocolFiles,
    /// By path; those that a change leaves as they are come from the version before.
    compiled: RefCell<BTreeMap<String, Rc<Schema>>>,
}

impl Schemas for InMemory<'_> {
    type Error = String;

    fn file(&self, path: &str) -> Result<Rc<Schema>, String> {
        if let Some(known) = self.compiled.borrow().get(path) {
            return Ok(Rc::clone(known));
        }
        let schema = Rc::new(Schema::compile(&read(self.files, path)?).map_err(|e| e.to_string())?);
        self.compiled
            .borrow_mut()
            .insert(path.to_owned(), Rc::clone(&schema));
        Ok(schema)
    }

    fn names(&self) -> Result<Vec<String>, String> {
        let paths = self.files.iter().map(|(path, _)| path);
        let names =
            paths.filter_map(|path| path.strip_prefix("schemas/")?.strip_suffix(".schema.json"));
        Ok(names.map(str::to_owned).collect())
    }
}

fn read(files: &ProtocolFiles, path: &str) -> Result<Value, String> {
    let found = files.iter().find(|(known, _)| known == path);
    let (_, bytes) = found.ok_or_else(|| format!("no {path}"))?;
    serde_json::from_slice(bytes).map_err(|e| e.to_string())
}

/// What a version of a protocol accepts.
struct Judge<'a> {
    protocol: Protocol,
    schemas: InMemory<'a>,
}

impl<'a> Judge<'a> {
    /// None if the files are no protocol.
    fn of(files: &'a ProtocolFiles, before: Option<(&ProtocolFiles, &Self)>) -> Option<Self> {
        let definition = read(files, "protocol.json").ok()?;
        let protocol = Protocol::load(definition.to_string().as_bytes()).ok()?;
        let mut compiled = BTreeMap::new();
        if let Some((old, judge)) = before {
            compiled.clone_from(&judge.schemas.compiled.borrow());
            compiled.retain(|path, _| read(files, path) == read(old, path));
        }
        let compiled = RefCell::new(compiled);
        let schemas = InMemory { files, compiled };
        Some(Self { protocol, schemas })
    }

    fn review(&self, contract: &[u8]) -> Option<Review> {
        review(&self.protocol, &self.schemas, &Input::read(contract), None).ok()
    }

    fn accepts(&self, contract: &[u8]) -> bool {
        let judged = self.review(contract);
        judged.is_some_and(|judged| !judged.findings.iter().any(Finding::is_error))
    }
}

/// The place of a change, and the files after it.
type Changed = (String, Vec<(String, Vec<u8>)>);

/// One node of a file taken away, or its number, word or truth changed: the file's path, the place, and the files.
fn changed(files: &ProtocolFiles, chance: &mut Chance) -> Option<Changed> {
    let json: Vec<usize> = (0..files.len())
        .filter(|i| {
            files[*i].0 == "protocol.json"
                || files[*i].0.starts_with("schemas/") && files[*i].0.ends_with(".json")
        })
        .collect();
    // Every second change is one of the definition.
    let file = match chance.next() % 2 {
        0 => *json.iter().find(|i| files[**i].0 == "protocol.json")?,
        _ => json[pick(chance, json.len())],
    };
    let mut value: Value = serde_json::from_slice(&files[file].1).ok()?;
    let mut places = Vec::new();
    let is_schema = files[file].0 != "protocol.json";
    walk(&value, "", &mut |pointer, _| {
        let refuses = |word: &&str| pointer.contains(&format!("/{word}"));
        if !is_schema || REFUSES.iter().any(refuses) {
            places.push(pointer.to_owned());
        }
    });
    let place = places.swap_remove(pick(chance, places.len()));
    let (parent, key) = place.rsplit_once('/')?;
    let name = key.replace("~1", "/").replace("~0", "~");
    let is_taken = !chance.next().is_multiple_of(3);
    let node = value.pointer_mut(&place)?;
    match node {
        Value::Number(number) if !is_taken => {
            *node = (number.as_f64()? * 2.0).round().max(1.0).into()
        }
        Value::Bool(is) if !is_taken => *node = (!*is).into(),
        _ => match value.pointer_mut(parent)? {
            Value::Object(members) => drop(members.shift_remove(&name)),
            Value::Array(entries) => drop(entries.remove(name.parse().ok()?)),
            _ => return None,
        },
    }
    let mut new = files.to_vec();
    new[file].1 = value.to_string().into_bytes();
    Some((format!("{}{place}", files[file].0), new))
}

fn pick(chance: &mut Chance, of: usize) -> usize {
    usize::try_from(chance.next() % u64::try_from(of).unwrap()).unwrap()
}

#[test]
fn what_lets_a_refused_contract_pass_is_called_weaker() {
    let times = usize::try_from(proof::times()).unwrap();
    let (mut let_pass, mut unsaid) = (0, Vec::new());
    for rules in Rules::all() {
        let mut chance = Chance(1);
        let folder = built_in(rules.name).unwrap();
        let files = folder.into_files();
        let before = Judge::of(&files, None).unwrap();
        let words = vocabulary(&rules);
        let mut refused: Vec<Vec<u8>> = rules
            .samples("invalid")
            .into_iter()
            .map(|s| s.bytes)
            .collect();
        for sample in rules
            .samples("valid")
            .iter()
            .filter(|sample| sample.is_json())
        {
            let value: Value = serde_json::from_slice(&sample.bytes).unwrap();
            let all = mutants(&value, &words);
            refused.extend(
                all.iter()
                    .map(|mutant| mutant.value.to_string().into_bytes()),
            );
        }
        let mut by_kind: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        while !refused.is_empty() {
            let contract = refused.swap_remove(pick(&mut chance, refused.len()));
            let kind = before.review(&contract).and_then(|judged| judged.kind);
            let same = by_kind.entry(kind.unwrap_or_default()).or_default();
            if same.len() < PLAYED && !before.accepts(&contract) {
                same.push(contract);
            }
        }
        for _ in 0..CHANGES * times {
            let Some((place, new)) = changed(&files, &mut chance) else {
                continue;
            };
            let Some(after) = Judge::of(&new, Some((&files, &before))) else {
                continue;
            };
            // A schema judges the contracts of its type.
            let kinds = after.protocol.definition().contracts.iter();
            let mut own = kinds
                .filter(|kind| place.starts_with(&kind.schema))
                .map(|kind| &kind.name)
                .peekable();
            let played: Vec<&Vec<u8>> = match own.peek() {
                Some(_) => own.filter_map(|kind| by_kind.get(kind)).flatten().collect(),
                None => by_kind
                    .values()
                    .flat_map(|all| all.iter().take(PLAYED / 6))
                    .collect(),
            };
            if !played.iter().any(|contract| after.accepts(contract)) {
                continue;
            }
            let_pass += 1;
            let strictness = |protocol| Strictness {
                protocol,
                is_signed: false,
            };
            let said = weaker(
                strictness(&after.protocol),
                strictness(&before.protocol),
                Policy::Enforce,
            );
            if said.is_empty() && loosened(&new, &files).is_empty() {
                unsaid.push(format!("{}: {place}", rules.name));
            }
        }
    }
    assert!(
        unsaid.is_empty(),
        "weaker, and not called so:\n{}",
        unsaid.join("\n")
    );
    assert!(let_pass > 20, "only {let_pass} changes let anything pass");
}
