//! One step of a ledger as one line of `steps.jsonl`.
//!
//! The first line is a header with a version; reading an unknown version is an error.

use chrono::{DateTime, FixedOffset};
use handoff_base::Code;
use handoff_base::ids::{AgentName, IssueKey, WorkerId};
use handoff_contract::Format;
use handoff_model::{
    Artifact, Delivery, Evidence, MAX_TEXT, ModelUsage, SendOptions, TraceParent, Update, layout,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_with::skip_serializing_none;

pub(super) const STEPS: &str = "steps.jsonl";
/// The version of the format.
pub(super) const VERSION: u64 = 1;

/// The header, on the first line.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) version: u64,
    /// The protocol of the ledger's new issues.
    pub(super) default_protocol: AgentName,
    /// The only issue that was exported; `None` if all were.
    pub(super) issue: Option<IssueKey>,
}

/// The version in a line, whatever else it contains.
#[derive(Deserialize)]
pub(super) struct Versioned {
    pub(super) version: u64,
}

/// The subject of a step; each subject numbers its steps from 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Issue(IssueKey),
    /// An active protocol.
    Protocol(AgentName),
    /// A document that the issues of a protocol share.
    Document(AgentName, AgentName),
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Issue(key) => write!(f, "issue {key}"),
            Self::Protocol(name) => write!(f, "protocol {name}"),
            Self::Document(protocol, name) => write!(f, "document {name} of protocol {protocol}"),
        }
    }
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    /// The issue; `None` for a protocol or a document.
    pub(super) issue: Option<IssueKey>,
    /// Its number among the steps of its subject.
    pub(super) step: u32,
    /// The time, with the zone it was recorded in.
    #[serde(with = "zoned")]
    pub(super) at: DateTime<FixedOffset>,
    /// The agent; for a protocol, the person who ran the program.
    pub(super) by: String,
    /// The worker that made it as that agent.
    pub(super) worker: Option<WorkerId>,
    /// The trace that it belongs to.
    pub(super) traceparent: Option<TraceParent>,
    /// What the work took, as far as it was reported with the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) usage: Vec<ModelUsage>,
    /// The outside event that it carried out.
    pub(super) delivery: Option<Delivery>,
    pub(super) request: LineRequest,
}

/// What a step requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LineRequest {
    Send(Send),
    /// A protocol was activated.
    Protocol(Protocol),
    Document(Document),
    /// Any other update.
    #[serde(untagged)]
    Update(Update),
}

impl<'de> Deserialize<'de> for LineRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RequestVisitor)
    }
}

/// Reads by the member's name, so that an error is about that member, and refuses a second one.
struct RequestVisitor;

impl<'de> Visitor<'de> for RequestVisitor {
    type Value = LineRequest;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object with one member, the request")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<LineRequest, M::Error> {
        let Some(name) = map.next_key::<String>()? else {
            return Err(M::Error::invalid_length(0, &self));
        };
        match name.as_str() {
            "send" => map.next_value().map(LineRequest::Send),
            "protocol" => map.next_value().map(LineRequest::Protocol),
            "document" => map.next_value().map(LineRequest::Document),
            _ => {
                let name = Some(name);
                let rest = MapAccessDeserializer::new(NamedMember { name, map });
                Update::deserialize(rest).map(LineRequest::Update)
            }
        }
    }
}

/// A map whose first name was read already.
struct NamedMember<M> {
    name: Option<String>,
    map: M,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for NamedMember<M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        match self.name.take() {
            Some(name) => seed.deserialize(name.into_deserializer()).map(Some),
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.map.next_value_seed(seed)
    }
}

/// A contract that was sent, with the data gathered for it at that time.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Send {
    /// Its file, relative to the folder of `steps.jsonl`.
    pub(super) contract: String,
    pub(super) format: Format,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
    pub(super) protocol: AgentName,
    /// The tip of the code branch.
    pub(super) code: Option<Code>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) artifacts: Vec<Artifact>,
    /// The evidence for its statements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) evidence: Vec<Evidence>,
    /// How it was sent.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub(super) options: SendOptions,
}

fn is_plain(options: &SendOptions) -> bool {
    *options == SendOptions::default()
}

/// A protocol that was activated, including the one the ledger started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Protocol {
    pub(super) name: AgentName,
    /// The folder of its files, relative to the folder of `steps.jsonl`.
    pub(super) folder: String,
    /// All of its files, with paths in that folder.
    pub(super) files: Vec<Named>,
}

/// A file's path and digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub(super) path: String,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
}

/// A shared document that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// The protocol whose issues share it.
    pub(super) protocol: AgentName,
    pub(super) name: AgentName,
    /// Its file, relative to the folder of `steps.jsonl`.
    pub(super) file: String,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
}

impl Line {
    /// The subject of the step; `None` if the line does not name it.
    pub(super) fn key(&self) -> Option<Key> {
        match (&self.request, &self.issue) {
            (LineRequest::Protocol(p), None) => Some(Key::Protocol(p.name.clone())),
            (LineRequest::Document(d), None) => {
                Some(Key::Document(d.protocol.clone(), d.name.clone()))
            }
            (LineRequest::Protocol(_) | LineRequest::Document(_), Some(_)) | (_, None) => None,
            (_, Some(key)) => Some(Key::Issue(key.clone())),
        }
    }

    /// What is wrong with a well-formed line: a request that no command could have made.
    pub(super) fn fault(&self) -> Option<&'static str> {
        if self.key().is_none() {
            return Some("the step is not about what its request is about");
        }
        let hex = |text: &String, lengths: &[usize]| {
            lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
        };
        match &self.request {
            LineRequest::Send(send) => {
                let mut digests = send.artifacts.iter().filter_map(|a| a.sha256.as_ref());
                let code = send.code.iter();
                let mut code = code
                    .flat_map(|c| [Some(&c.commit), c.tree.as_ref()])
                    .flatten();
                let right = digests.all(|d| hex(d, &[64])) && code.all(|c| hex(c, &[40, 64]));
                (!right).then_some("a digest or a commit is none")
            }
            LineRequest::Update(update) => {
                let kept = |text: &str| !text.trim().is_empty() && text.len() <= MAX_TEXT;
                let right = update.texts().into_iter().all(kept);
                (!right).then_some("a text is empty, or too long to be kept")
            }
            LineRequest::Protocol(protocol) => {
                let mut paths: Vec<&str> = protocol.files.iter().map(|f| f.path.as_str()).collect();
                paths.sort_unstable();
                let twice = paths.windows(2).any(|two| two[0] == two[1]);
                let right = !twice && paths.into_iter().all(layout::is_protocol_file);
                (!right).then_some("a file has no place in a protocol's folder")
            }
            LineRequest::Document(_) => None,
        }
    }

    /// Whether both are the same step, regardless of the paths of their files. Protocols are
    /// compared by their files only, since each ledger was started at another time by another
    /// person.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let bare = |line: &Self| {
            let mut line = line.clone();
            match &mut line.request {
                LineRequest::Send(send) => send.contract.clear(),
                LineRequest::Document(document) => document.file.clear(),
                LineRequest::Protocol(protocol) => {
                    protocol.folder.clear();
                    protocol.files.sort_by(|a, b| a.path.cmp(&b.path));
                    line.by.clear();
                    line.at = DateTime::default();
                }
                LineRequest::Update(_) => {}
            }
            line
        };
        bare(self) == bare(other)
    }
}

mod zoned {
    use chrono::{DateTime, FixedOffset, Timelike};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// 10000-01-01: git supports four-digit years from 1970 on.
    const END: i64 = 253_402_300_800;

    pub(super) fn serialize<S: Serializer>(
        at: &DateTime<FixedOffset>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.serialize_str(&at.to_rfc3339())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<DateTime<FixedOffset>, D::Error> {
        let text = String::deserialize(d)?;
        let at = DateTime::parse_from_rfc3339(&text).map_err(D::Error::custom)?;
        // Records have no more than milliseconds.
        at.with_nanosecond(at.timestamp_subsec_millis() * 1_000_000)
            .filter(|at| (0..END).contains(&at.timestamp()))
            .ok_or_else(|| D::Error::custom("no commit can have this date"))
    }
}

#[cfg(test)]
mod tests {
    use super::LineRequest;

    #[test]
    fn a_request_is_one_member_with_each_of_its_own_once() {
        let read = |text: &str| serde_json::from_str::<LineRequest>(text).is_ok();
        assert!(read(r#"{"reopen": {"reason": "reverted"}}"#));
        assert!(read(r#"{"change": {"handoff": 1, "event": "claim"}}"#));
        for text in [
            "{}",
            "[]",
            r#"{"reopen": {"reason": "a"}, "reopen": {"reason": "b"}}"#,
            r#"{"reopen": {"reason": "a"}, "send": {}}"#,
            r#"{"reopen": {"reason": "a", "reason": "b"}}"#,
            r#"{"reopen": {"reason": "a", "why": "b"}}"#,
            r#"{"forget": {"reason": "a"}}"#,
        ] {
            assert!(!read(text), "{text}");
        }
    }
}
