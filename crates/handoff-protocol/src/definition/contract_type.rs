//! What one kind of contract must contain, and what sending one does.

use std::collections::BTreeMap;

use handoff_base::ids::AgentName;
use serde::{Deserialize, Serialize};

use super::evidence::Claims;
use super::fields::Fields;
use super::tasks::TaskFields;
use super::timing::TimeField;
use crate::lifecycle::Event;

/// What a sender's own handoff becomes when it sends a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The sender finished.
    Complete,
    /// The sender failed.
    Fail,
    /// The sender is blocked.
    Block,
}

impl Outcome {
    /// The lifecycle event that this outcome is.
    pub fn event(self) -> Event {
        match self {
            Self::Complete => Event::Complete,
            Self::Fail => Event::Fail,
            Self::Block => Event::Block,
        }
    }
}

/// What a field must say: one text, one of several, or, as `*`, anything.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub enum Words {
    /// This text.
    One(String),
    /// One of these.
    Any(Vec<String>),
}

impl Words {
    /// The texts, of which one must be there.
    pub fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Any(texts) => texts,
        }
    }

    /// Says whether a field with this text is as it must be.
    pub fn accept(&self, text: &str) -> bool {
        self.texts().iter().any(|t| t == "*" || t == text)
    }

    /// Says whether no text fits both.
    pub fn excludes(&self, other: &Self) -> bool {
        let any = |words: &Self| words.texts().iter().any(|t| t == "*");
        !any(self) && !any(other) && !self.texts().iter().any(|t| other.accept(t))
    }
}

/// Where a contract holds data for which it names the schema: a JSON Pointer
/// each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedSchema {
    /// The data.
    pub data: String,
    /// The file's name in the protocol's `schemas` folder.
    pub schema: String,
}

/// Where a request says what its answer must deliver: a JSON Pointer each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedFields {
    /// The kind of artifact.
    pub artifact_type: String,
    /// The name of the artifact's schema in the protocol's `schemas` folder.
    pub schema: String,
    /// Its path, in which `{timestamp}` stands for digits.
    pub destination: String,
}

/// Where a contract names the files that it delivers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactFields {
    /// A list with one entry for each; without it there is one, in the contract
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// The file's path, from the entry.
    pub path: String,
    /// The kind of artifact, from the entry.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The kinds that are files of the repository; all of them, if this is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// Where a contract lists what its sender lacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFields {
    /// The list, with one entry for each input.
    pub list: String,
    /// The input's name, from the entry.
    pub key: String,
    /// What kind of value it is, from the entry.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What it is for, from the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the work waits for it, from the entry; it does, if that is not
    /// said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<String>,
}

/// Inputs without which an answer is not good enough.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CriticalInputs {
    /// Where an answer lists what it could not provide.
    pub at: String,
    /// The inputs that must not be among them.
    pub keys: Vec<String>,
    /// What becomes of the request if one is.
    pub outcome: Outcome,
}

/// Where a contract says what went wrong: a JSON Pointer each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureFields {
    /// A short, stable word; or, without a leading `/`, the word itself.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// More of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Whether another attempt may succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoverable: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_action: Option<String>,
}

/// What one kind of contract must contain.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractType {
    /// The type's name, unique in its protocol.
    #[serde(rename = "type")]
    pub name: String,
    /// What it says, in a few words; the summary of a contract that has none.
    pub title: String,
    /// The XML root element, and the key of the wrapped JSON form.
    pub root: String,
    /// Discriminating fields: a JSON Pointer and the text found there, for
    /// types that share a route.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Words>,
    /// The formats that it may have, if not all of the protocol's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
    /// Where the envelope's fields are in this type, if elsewhere.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub fields: Fields,
    /// The types of the requests that it answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// Whether it is only recorded, and moves nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub note: bool,
    /// The sender of a contract that does not name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implied_from: Option<AgentName>,
    /// The receiver of a contract that does not name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implied_to: Option<AgentName>,
    /// Where a contract of this type says in one line what it is about, if not
    /// in the envelope's summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Where it says what went wrong, for types that fail or block their
    /// sender's handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureFields>,
    /// The JSON Schema's file, relative to the protocol's folder.
    pub schema: String,
    /// The XML Schema's file, where contracts may be XML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xsd: Option<String>,
    /// The skeleton's file.
    pub template: String,
    /// Status words that make the sender's own handoff something else than
    /// completed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outcome: BTreeMap<String, Outcome>,
    /// Data that is checked against a schema that the contract names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_schemas: Vec<NamedSchema>,
    /// What an answer to it must deliver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expects: Option<ExpectedFields>,
    /// The files that it delivers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<ArtifactFields>,
    /// Where it says how often it may be retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<String>,
    /// Where it says how long it takes until it is retried for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_delay: Option<TimeField>,
    /// Where it says by how much each further delay is longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_multiplier: Option<String>,
    /// Where it says how long its receiver may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeField>,
    /// Where it lists what its sender lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<InputFields>,
    /// Fields that must name an agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Where it lists what its sender did, which the sender's role must allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<String>,
    /// Inputs that an answer must not leave open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_inputs: Option<CriticalInputs>,
    /// Where it names, by its own id, the contract that it is about: the one
    /// that its sender works on, or the one that this is about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// For the values of a field, the status words that the contract which the
    /// sender works on must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub after: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// The tasks that it opens or completes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskFields>,
    /// Where it says what can be checked against the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claims>,
}

impl ContractType {
    /// Says whether it may be written in this format, as far as the type says.
    pub fn has_format(&self, format: &str) -> bool {
        self.formats.is_empty() || self.formats.iter().any(|f| f == format)
    }

    /// Says whether it needs a route: an answer goes back on the request's, and
    /// a note moves nothing.
    pub fn travels(&self) -> bool {
        self.answers.is_empty() && !self.note
    }
}

fn is_empty(fields: &Fields) -> bool {
    fields.given().next().is_none()
}
