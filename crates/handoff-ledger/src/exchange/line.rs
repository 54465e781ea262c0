//! One step of a ledger as one line of `steps.jsonl`.
//!
//! The first line is a header with a version; reading an unknown one is an
//! error that says so.

use chrono::{DateTime, FixedOffset};
use handoff_base::Code;
use handoff_base::ids::{AgentName, IssueKey};
use handoff_contract::{Allowance, Format};
use handoff_model::{Artifact, Delivery, Evidence, MAX_TEXT, TraceParent, Update, layout};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The file's name.
pub(super) const STEPS: &str = "steps.jsonl";
/// The version of its form.
pub(super) const VERSION: u64 = 1;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// The version of the form: 1.
    pub(super) version: u64,
    /// The protocol that new issues of the ledger are bound to.
    pub(super) default_protocol: AgentName,
    /// The only issue that was exported, if not all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) issue: Option<IssueKey>,
}

/// A line's version, whatever else is in it.
#[derive(Deserialize)]
pub(super) struct Versioned {
    pub(super) version: u64,
}

/// What a step changes: each of them has its own steps, numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// An issue.
    Issue(IssueKey),
    /// A protocol in force.
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

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    /// The issue; none for what governs or is shared by all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) issue: Option<IssueKey>,
    /// Its number among the steps of the issue, the protocol or the document.
    pub(super) step: u32,
    /// When, with the zone it was recorded in.
    #[serde(with = "zoned")]
    pub(super) at: DateTime<FixedOffset>,
    /// The agent; for a protocol, who ran the program.
    pub(super) by: String,
    /// The trace that it was made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) traceparent: Option<TraceParent>,
    /// The event from outside that it carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) delivery: Option<Delivery>,
    /// What was asked for.
    pub(super) request: LineRequest,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LineRequest {
    /// A contract was sent.
    Send(Send),
    /// A protocol was put in force.
    Protocol(Protocol),
    /// A shared document was set.
    Document(Document),
    /// Anything else.
    #[serde(untagged)]
    Update(Update),
}

impl<'de> Deserialize<'de> for LineRequest {
    /// By the member's name, so that an error says what is wrong with that member.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let one = value.as_object().filter(|members| members.len() == 1);
        let member = one.and_then(|members| members.iter().next());
        let read = match member {
            Some((name, send)) if name == "send" => Send::deserialize(send).map(Self::Send),
            Some((name, protocol)) if name == "protocol" => {
                Protocol::deserialize(protocol).map(Self::Protocol)
            }
            Some((name, document)) if name == "document" => {
                Document::deserialize(document).map(Self::Document)
            }
            _ => Update::deserialize(&value).map(Self::Update),
        };
        read.map_err(D::Error::custom)
    }
}

/// A contract that was sent, and what was gathered for it then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Send {
    /// Its file, from the folder of `steps.jsonl`.
    pub(super) contract: String,
    /// Its format.
    pub(super) format: Format,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
    /// The protocol it follows.
    pub(super) protocol: AgentName,
    /// Where the code branch stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<Code>,
    /// The files that it delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) artifacts: Vec<Artifact>,
    /// What was found of its claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) evidence: Vec<Evidence>,
    /// The number of the request that it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answers: Option<u32>,
    /// What it holds that was allowed although it looks like a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) allowed_secrets: Vec<Allowance>,
}

/// A protocol that was put in force, or that the ledger started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Protocol {
    /// Its name.
    pub(super) name: AgentName,
    /// The folder of its files, from the folder of `steps.jsonl`.
    pub(super) folder: String,
    /// All of its files, by path in that folder.
    pub(super) files: Vec<Named>,
}

/// A file by its name and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    /// Its path.
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
    /// Its name.
    pub(super) name: AgentName,
    /// Its file, from the folder of `steps.jsonl`.
    pub(super) file: String,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
}

impl Line {
    /// What it changes; none where it does not say.
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

    /// What is wrong with a line that has the right form: what no command could
    /// have asked for.
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
                let mut code = send.code.iter().flat_map(|code| [&code.commit, &code.tree]);
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

    /// The same step, wherever its files are. A protocol counts by its files:
    /// each ledger was started at a time of its own, by someone of its own.
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

    /// 10000-01-01: git takes years of four digits, since 1970.
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
        // A commit holds whole seconds.
        at.with_nanosecond(0)
            .filter(|at| (0..END).contains(&at.timestamp()))
            .ok_or_else(|| D::Error::custom("no commit can have this date"))
    }
}
