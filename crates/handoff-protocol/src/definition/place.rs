//! The places in contracts that a contract type names, as one list for the checks.

use super::contract_type::ContractType;
use super::evidence::Claims;
use super::tasks::TaskFields;

/// A place in contracts that a member of a contract type names.
pub struct Place<'d> {
    /// The member's path in the definition.
    pub at: String,
    /// The JSON Pointer as written.
    pub pointer: &'d str,
    /// What the pointer is relative to: the first entry of a list, standing for all; else empty.
    base: String,
    /// The JSON types that may be there; any, if empty.
    pub types: &'static [&'static str],
}

impl Place<'_> {
    /// The pointer from the contract's root.
    pub fn whole(&self) -> String {
        format!("{}{}", self.base, self.pointer)
    }

    /// The pointer of the entry that the pointer is relative to; empty for the contract's root.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Whether the pointer may be empty, for the entry itself.
    pub fn is_in_entry(&self) -> bool {
        !self.base.is_empty()
    }
}

type Types = &'static [&'static str];

const ANY: Types = &[];
const BOOLEAN: Types = &["boolean"];
const COUNT: Types = &["integer", "number"];
const COUNTABLE: Types = &["integer", "number", "array"];
const INTEGER: Types = &["integer"];
const LIST: Types = &["array"];
const NUMBER: Types = &["number", "integer"];
const SHARE: Types = &["number", "integer", "string"];
const TEXT: Types = &["string"];

/// The list of places while it is built.
struct Listed<'d>(Vec<Place<'d>>);

impl<'d> Listed<'d> {
    fn add(&mut self, at: impl Into<String>, pointer: Option<&'d str>, types: Types) {
        let (at, base) = (at.into(), String::new());
        self.0.extend(pointer.map(|pointer| Place {
            at,
            pointer,
            base,
            types,
        }));
    }

    /// Adds a list, and the places relative to its entries.
    fn list(&mut self, name: &str, list: &'d str, inside: &[(&str, Option<&'d String>)]) {
        let base = format!("{list}/0");
        for (key, pointer) in inside {
            self.0.extend(pointer.map(|pointer| Place {
                at: format!("{name}/{key}"),
                pointer,
                base: base.clone(),
                types: ANY,
            }));
        }
    }
}

impl ContractType {
    /// Every place that the type names, except the envelope's.
    pub fn places(&self) -> Vec<Place<'_>> {
        let mut all = Listed(Vec::new());
        for (key, fields) in [
            ("when", self.when.keys().collect::<Vec<_>>()),
            ("after", self.after.keys().collect()),
        ] {
            fields
                .into_iter()
                .for_each(|pointer| all.add(key, Some(pointer), ANY));
        }
        for (key, pointer, types) in [
            ("summary", &self.summary, ANY),
            ("max_retries", &self.max_retries, INTEGER),
            ("retry_multiplier", &self.retry_multiplier, NUMBER),
            ("about", &self.about, ANY),
            ("actions", &self.actions, LIST),
            ("violations", &self.violations, LIST),
            ("recommends", &self.recommends, ANY),
        ] {
            all.add(key, pointer.as_deref(), types);
        }
        for (key, time) in [
            ("timeout/at", &self.timeout),
            ("acknowledge/at", &self.acknowledge),
            ("retry_delay/at", &self.retry_delay),
        ] {
            all.add(key, time.as_ref().map(|time| &*time.at), NUMBER);
        }
        if let Some(failure) = &self.failure {
            all.add(
                "failure",
                Some(&*failure.code).filter(|code| code.starts_with('/')),
                ANY,
            );
            all.add("failure", Some(&failure.message), ANY);
            for optional in [
                &failure.details,
                &failure.recoverable,
                &failure.suggested_action,
            ] {
                all.add("failure", optional.as_deref(), ANY);
            }
            all.add("failure", failure.retry_available.as_deref(), BOOLEAN);
        }
        self.work(&mut all);
        self.reviews(&mut all);
        for mut place in self.claims.iter().flat_map(Claims::places) {
            place.at = format!("claims/{}", place.at);
            all.0.push(place);
        }
        all.0
    }

    /// The places of data, artifacts, tasks and missing inputs.
    fn work<'d>(&'d self, all: &mut Listed<'d>) {
        for (i, named) in self.named_schemas.iter().enumerate() {
            all.add(format!("named_schemas/{i}/data"), Some(&named.data), ANY);
            all.add(
                format!("named_schemas/{i}/schema"),
                Some(&named.schema),
                ANY,
            );
        }
        if let Some(expected) = &self.expects {
            all.add("expects/artifact_type", Some(&expected.artifact_type), ANY);
            all.add("expects/schema", Some(&expected.schema), ANY);
            all.add("expects/destination", Some(&expected.destination), ANY);
        }
        if let Some(artifacts) = &self.artifacts {
            let inside = [
                ("path", Some(&artifacts.path)),
                ("type", artifacts.kind.as_ref()),
            ];
            match &artifacts.list {
                Some(list) => {
                    all.add("artifacts/list", Some(list), LIST);
                    all.list("artifacts", list, &inside);
                }
                None => inside.into_iter().for_each(|(key, pointer)| {
                    all.add(format!("artifacts/{key}"), pointer.map(String::as_str), ANY)
                }),
            }
        }
        for (i, pointer) in self.agents.iter().enumerate() {
            all.add(format!("agents/{i}"), Some(pointer), ANY);
        }
        all.add(
            "critical_inputs/at",
            self.critical_inputs.as_ref().map(|critical| &*critical.at),
            LIST,
        );
        for (key, pointer) in self.tasks.iter().flat_map(TaskFields::given) {
            let types: Types = match key {
                "parent" | "completes" | "start" => TEXT,
                "dependencies" | "titles" => &["object"],
                "weights" => LIST,
                "groups" => &["array", "string"],
                // A message's bullets parse as an object, and a list within a bullet as text.
                _ => &["array", "object", "string"],
            };
            all.add(format!("tasks/{key}"), Some(pointer), types);
        }
        if let Some(inputs) = &self.inputs {
            all.add("inputs/list", Some(&inputs.list), LIST);
            let optional = [&inputs.kind, &inputs.description, &inputs.blocking];
            let [kind, description, blocking] = optional.map(Option::as_ref);
            let inside = [
                ("key", Some(&inputs.key)),
                ("type", kind),
                ("description", description),
                ("blocking", blocking),
            ];
            all.list("inputs", &inputs.list, &inside);
        }
    }

    /// The places of findings, answers and their commits.
    fn reviews<'d>(&'d self, all: &mut Listed<'d>) {
        if let Some(raised) = &self.raises {
            all.add("raises/list", Some(&raised.list), ANY);
            all.list(
                "raises",
                &raised.list,
                &[
                    ("text", Some(&raised.text)),
                    ("location", raised.location.as_ref()),
                    ("severity", raised.severity.as_ref()),
                    ("finding", raised.finding.as_ref()),
                ],
            );
        }
        if let Some(fixes) = &self.fixes {
            all.add("fixes/list", Some(&fixes.list), ANY);
            all.list(
                "fixes",
                &fixes.list,
                &[
                    ("text", Some(&fixes.text)),
                    ("location", fixes.location.as_ref()),
                    ("finding", fixes.finding.as_ref()),
                    ("commit", fixes.commit.as_ref()),
                    ("skipped", fixes.skipped.as_ref()),
                ],
            );
        }
        if let Some(given) = &self.given {
            all.add("given/at", Some(&given.at), ANY);
            all.list(
                "given",
                &given.at,
                &[("key", given.key.as_ref()), ("value", given.value.as_ref())],
            );
        }
        let commit = self
            .reviews
            .as_ref()
            .and_then(|reviews| reviews.commit.as_deref());
        all.add("reviews/commit", commit, ANY);
    }
}

impl Claims {
    /// The place of every claim.
    pub fn places(&self) -> Vec<Place<'_>> {
        let mut all = Listed(Vec::new());
        for (key, pointer, types) in [
            ("branch", &self.branch, TEXT),
            ("base", &self.base, TEXT),
            ("files_changed", &self.files_changed, COUNTABLE),
            ("commits_added", &self.commits_added, COUNT),
            ("tests_added", &self.tests_added, COUNT),
            ("coverage", &self.coverage, SHARE),
        ] {
            all.add(key, pointer.as_deref(), types);
        }
        if let Some(commits) = &self.commits {
            all.add("commits/list", Some(&commits.list), LIST);
            let inside = [
                ("id", commits.id.as_ref()),
                ("message", commits.message.as_ref()),
            ];
            all.list("commits", &commits.list, &inside);
            let inside = all.0.iter_mut().filter(|place| place.is_in_entry());
            inside.for_each(|place| place.types = TEXT);
        }
        if let Some(merge) = &self.merge {
            all.add("merge/commit", Some(&merge.commit), TEXT);
            all.add("merge/strategy", merge.strategy.as_deref(), TEXT);
        }
        for (name, pointer) in self.tests.iter().flat_map(super::TestsClaim::given) {
            let types: Types = match name {
                "passing" => BOOLEAN,
                "text" => TEXT,
                _ => COUNT,
            };
            all.add(format!("tests/{name}"), Some(pointer), types);
        }
        all.0
    }
}
