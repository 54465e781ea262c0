//! The required content of a contract type, and the effect of sending one.

use std::collections::BTreeMap;

use handoff_base::ids::AgentName;
use handoff_macros::apply;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::Claims;
use super::fields::Fields;
use super::findings::{FixFields, RaisedFields, ReviewFields};
use super::tasks::TaskFields;
use super::timing::TimeField;
use crate::lifecycle::Event;

/// The outcome of the sender's own handoff when it sends a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The sender finished.
    Complete,
    /// The sender failed.
    Fail,
    /// The sender is blocked.
    Block,
    /// The sender had nothing to do, or left it out: its handoff is completed, the contract meets and
    /// settles nothing, and skips the findings that it could have answered.
    Skip,
}

impl Outcome {
    /// The lifecycle event for this outcome.
    pub fn event(self) -> Event {
        match self {
            Self::Complete | Self::Skip => Event::Complete,
            Self::Fail => Event::Fail,
            Self::Block => Event::Block,
        }
    }
}

/// What a field must contain: a given text, one of several, or anything (`*`).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub enum Words {
    /// This text.
    One(String),
    /// One of these.
    Any(Vec<String>),
}

impl Words {
    /// The accepted texts.
    pub fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Any(texts) => texts,
        }
    }

    /// Whether a field with this text matches.
    pub fn accept(&self, text: &str) -> bool {
        self.texts().iter().any(|t| t == "*" || t == text)
    }

    /// Whether no text matches both.
    pub fn excludes(&self, other: &Self) -> bool {
        let any = |words: &Self| words.texts().iter().any(|t| t == "*");
        !any(self) && !any(other) && !self.texts().iter().any(|t| other.accept(t))
    }
}

/// The places of data with its own schema in a contract, as JSON Pointers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedSchema {
    /// The data.
    pub data: String,
    /// The file's name in the protocol's `schemas` folder.
    pub schema: String,
}

/// The places where a request states what its answer must deliver, as JSON Pointers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedFields {
    /// The kind of artifact.
    pub artifact_type: String,
    /// The artifact's schema in the protocol's `schemas` folder.
    pub schema: String,
    /// Its path, with `{timestamp}` in place of digits.
    pub destination: String,
}

/// The places where a contract names the files that it delivers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactFields {
    /// A list with one entry per file; else the contract is the entry.
    pub list: Option<String>,
    /// The file's path, relative to the entry.
    pub path: String,
    /// The kind of artifact, relative to the entry.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The kinds that are files of the repository; all, if empty.
    #[serde(default)]
    pub files: Vec<String>,
    /// The actions that a kind of artifact shows, beside those listed.
    #[serde(default)]
    pub actions: BTreeMap<String, Vec<String>>,
}

/// The places where a contract lists the inputs that its sender lacks.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputFields {
    /// The list, with one entry per input; the other pointers are relative to it.
    pub list: String,
    /// The input's name; empty if the entry is the name.
    pub key: String,
    /// The kind of value, relative to the entry.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// What it is used for, relative to the entry.
    pub description: Option<String>,
    /// Whether the work waits for it, by default yes. Such an input becomes a question.
    pub blocking: Option<String>,
}

/// The places where an answer gives what was asked.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenFields {
    /// An object by the questions' keys, or a list of answers.
    pub at: String,
    /// The question's key, relative to the entry of a list.
    pub key: Option<String>,
    /// The answer, relative to the entry of a list.
    pub value: Option<String>,
    /// The status words of answers that must give everything; all, if empty.
    #[serde(default)]
    pub complete: Vec<String>,
}

/// Inputs that an answer must provide.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CriticalInputs {
    /// The place where an answer lists inputs it could not provide; what `given` lacks counts.
    pub at: String,
    /// The inputs that must not be in that list.
    pub keys: Vec<String>,
    /// The outcome of the request if one of them is missing.
    pub outcome: Outcome,
}

/// The places where a contract reports a failure, as JSON Pointers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureFields {
    /// A short, stable code; without a leading `/`, the code itself.
    pub code: String,
    /// A one-sentence message.
    pub message: String,
    /// More about it.
    pub details: Option<String>,
    /// Whether another attempt may succeed.
    pub recoverable: Option<String>,
    /// What to do about it.
    pub suggested_action: Option<String>,
    /// Whether there is another attempt; `false` ends the retries.
    pub retry_available: Option<String>,
}

/// A file of other systems whose content is a contract, when it is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForeignFile {
    /// An entry of `handoff_log.json`.
    LogEntry,
    /// A `handoff-failed.json`.
    HandoffFailed,
}

/// The required content of a contract type.
#[apply(
    Vec => #[serde(default)],
    BTreeMap => #[serde(default)],
)]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContractType {
    /// The type's name, unique in its protocol.
    #[serde(rename = "type")]
    pub name: String,
    /// Its meaning in a few words; the summary of a contract without one.
    pub title: String,
    /// The XML root element, and the wrapped JSON form's key; by default `handoff`.
    #[serde(default = "usual_root")]
    pub root: String,
    /// Fields that identify the type: pointer, and a text, texts, or `*` for any.
    pub when: BTreeMap<String, Words>,
    /// The formats that it may have, if not all.
    pub formats: Vec<String>,
    /// The places of the envelope's fields in this type, if different.
    #[serde(default)]
    pub fields: Fields,
    /// The types of requests that it answers: it goes back to the requester, without a route.
    pub answers: Vec<String>,
    /// Whether it is only recorded, and moves nothing.
    #[serde(default)]
    pub note: bool,
    /// The word for it in a log of handoffs; by default the type's name.
    pub trigger: Option<String>,
    /// For a note: the other systems' file that it comes from and becomes.
    pub foreign: Option<ForeignFile>,
    /// The sender of a contract that does not name one.
    pub implied_from: Option<AgentName>,
    /// The receiver of a contract that does not name one.
    pub implied_to: Option<AgentName>,
    /// The place of a one-line summary, if not the envelope's.
    pub summary: Option<String>,
    /// The places of failure details, for types that fail or block.
    pub failure: Option<FailureFields>,
    /// The JSON Schema's file in the protocol's folder; by default `schemas/TYPE.schema.json`, with
    /// `_` for other signs.
    #[serde(default)]
    pub schema: String,
    /// The XML Schema's file, if contracts may be XML.
    pub xsd: Option<String>,
    /// The skeleton's file; `templates/TYPE.json`, if not given.
    #[serde(default)]
    pub template: String,
    /// A document's examples, in which a value may list its choices: SHA-256 of each as JSON with
    /// sorted keys, without spaces.
    pub examples: Vec<String>,
    /// Status words that do something else here than their state says: `failed` and `dead` fail,
    /// `blocked` blocks, others complete. `skip` completes and meets nothing.
    pub outcome: BTreeMap<String, Outcome>,
    /// Data that is checked against a schema that the contract names.
    pub named_schemas: Vec<NamedSchema>,
    /// The places where it states what its answer must deliver.
    pub expects: Option<ExpectedFields>,
    /// The places of the files that it delivers; their digests are recorded.
    pub artifacts: Option<ArtifactFields>,
    /// The place of its maximum number of retries.
    pub max_retries: Option<String>,
    /// The place of the delay before its first retry.
    pub retry_delay: Option<TimeField>,
    /// The place of the factor by which each further delay grows.
    pub retry_multiplier: Option<String>,
    /// The place of its receiver's time: the length of the lease.
    pub timeout: Option<TimeField>,
    /// The place of the time in which an agent, not a person, must claim it.
    pub acknowledge: Option<TimeField>,
    /// The places where it lists the inputs that its sender lacks.
    pub inputs: Option<InputFields>,
    /// Fields that must name an agent.
    pub agents: Vec<String>,
    /// The place of the agent that its sender recommends next.
    pub recommends: Option<String>,
    /// The place of its sender's actions. A forbidden one fails its work (`ROLE_VIOLATION`), for
    /// the orchestrator.
    pub actions: Option<String>,
    /// The place of what the other contract's sender did against its role: that contract failed.
    pub violations: Option<String>,
    /// The places where it gives what its sender was asked, which is checked.
    pub given: Option<GivenFields>,
    /// Inputs that an answer must provide.
    pub critical_inputs: Option<CriticalInputs>,
    /// The place of the id of the contract that it is about.
    pub about: Option<String>,
    /// For values of a field, the status words that the sender's work must have.
    pub after: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// The tasks that it opens or completes.
    pub tasks: Option<TaskFields>,
    /// The places where it lists findings that have to be answered.
    pub raises: Option<RaisedFields>,
    /// The places where it answers findings.
    pub fixes: Option<FixFields>,
    /// What says which commit it is about, if it is a review.
    pub reviews: Option<ReviewFields>,
    /// Whether it approves: refused while a finding is open or disputed; resolves the others.
    #[serde(default)]
    pub settles: bool,
    /// The places of statements that are [checked](evidence.md) against the repository.
    pub claims: Option<Claims>,
}

fn usual_root() -> String {
    "handoff".to_owned()
}

impl ContractType {
    /// The default file names of a type: its schema and its template.
    pub fn usual_files(name: &str) -> [String; 2] {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let name: String = name
            .chars()
            .map(|c| if plain(c) { c } else { '_' })
            .collect();
        [
            format!("schemas/{name}.schema.json"),
            format!("templates/{name}.json"),
        ]
    }

    /// Fills in the default file names that the definition leaves out.
    pub(crate) fn name_files(&mut self) {
        let [schema, template] = Self::usual_files(&self.name);
        for (file, usual) in [(&mut self.schema, schema), (&mut self.template, template)] {
            if file.is_empty() {
                *file = usual;
            }
        }
    }

    /// Whether the type accepts this format; one that lists none accepts all.
    pub fn has_format(&self, format: &str) -> bool {
        self.formats.is_empty() || self.formats.iter().any(|f| f == format)
    }

    /// Whether a contract of this type needs a route. An answer goes back along the request's
    /// route, and a note changes no state.
    pub fn travels(&self) -> bool {
        self.answers.is_empty() && !self.note
    }
}
