//! One step of a ledger as one line of `steps.jsonl`.
//!
//! The first line is a header with a version; reading an unknown one is an
//! error that says so.

use chrono::{DateTime, FixedOffset};
use handoff_base::Code;
use handoff_base::ids::{AgentName, IssueKey};
use handoff_contract::{Allowance, Format};
use handoff_model::{Artifact, Delivery, Evidence, MAX_TEXT, Told, TraceParent, layout};
use handoff_protocol::{Action, Event};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    pub(super) request: Asked,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Asked {
    /// A contract was sent.
    Send(Send),
    /// A handoff's state was changed.
    Change(Change),
    /// A handoff was decided about, and stayed as it was.
    Decide(Decide),
    /// A note was added.
    Annotate(Annotate),
    /// A completed issue was opened again.
    Reopen(Reopen),
    /// A protocol was put in force.
    Protocol(Protocol),
    /// A shared document was set.
    Document(Document),
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

/// A change of one handoff's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// The handoff's number in the issue.
    pub(super) handoff: u32,
    /// What happened to it.
    pub(super) event: Event,
    /// What went with it.
    #[serde(default)]
    pub(super) told: Box<Told>,
}

/// What was decided about a handoff, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decide {
    /// The handoff's number in the issue.
    pub(super) handoff: u32,
    /// What is to be done.
    pub(super) action: Action,
    /// Why.
    pub(super) why: String,
}

/// A note that corrects what was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Annotate {
    /// The handoff's number in the issue; none, where it is about all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) handoff: Option<u32>,
    /// What is so.
    pub(super) note: String,
    /// What is known by it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) facts: Map<String, Value>,
}

/// Why an issue was opened again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reopen {
    /// Why.
    pub(super) reason: String,
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
            (Asked::Protocol(p), None) => Some(Key::Protocol(p.name.clone())),
            (Asked::Document(d), None) => Some(Key::Document(d.protocol.clone(), d.name.clone())),
            (Asked::Protocol(_) | Asked::Document(_), Some(_)) | (_, None) => None,
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
        let told = |text: &String| !text.trim().is_empty() && text.len() <= MAX_TEXT;
        match &self.request {
            Asked::Send(send) => {
                let mut digests = send.artifacts.iter().filter_map(|a| a.sha256.as_ref());
                let code = send.code.iter().flat_map(|code| [&code.commit, &code.tree]);
                let right = digests.all(|d| hex(d, &[64])) && { code }.all(|c| hex(c, &[40, 64]));
                (!right).then_some("a digest or a commit is none")
            }
            Asked::Change(change) => {
                let told_of = &change.told;
                let failure = told_of.failure.iter().flat_map(|failure| {
                    let more = [&failure.details, &failure.suggested_action];
                    [&failure.code, &failure.message]
                        .into_iter()
                        .chain(more.into_iter().flatten())
                });
                let why = told_of.decision.iter().map(|(_, why)| why);
                let more = told_of.progress.iter().chain(why);
                let mut texts = told_of.reason.iter().chain(failure).chain(more);
                let right = texts.all(told);
                (!right).then_some("a text is empty, or too long to be kept")
            }
            Asked::Decide(decide) => {
                (!told(&decide.why)).then_some("a text is empty, or too long to be kept")
            }
            Asked::Annotate(annotate) => {
                (!told(&annotate.note)).then_some("a text is empty, or too long to be kept")
            }
            Asked::Reopen(reopen) => {
                (!told(&reopen.reason)).then_some("a text is empty, or too long to be kept")
            }
            Asked::Protocol(protocol) => {
                let mut paths: Vec<&str> = protocol.files.iter().map(|f| f.path.as_str()).collect();
                paths.sort_unstable();
                let twice = paths.windows(2).any(|two| two[0] == two[1]);
                let right = !twice && paths.into_iter().all(layout::is_protocol_file);
                (!right).then_some("a file has no place in a protocol's folder")
            }
            Asked::Document(_) => None,
        }
    }

    /// The same step, wherever its files are. A protocol counts by its files:
    /// each ledger was started at a time of its own, by someone of its own.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let bare = |line: &Self| {
            let mut line = line.clone();
            match &mut line.request {
                Asked::Send(send) => send.contract.clear(),
                Asked::Document(document) => document.file.clear(),
                Asked::Protocol(protocol) => {
                    protocol.folder.clear();
                    protocol.files.sort_by(|a, b| a.path.cmp(&b.path));
                    line.by.clear();
                    line.at = DateTime::default();
                }
                Asked::Change(_) | Asked::Decide(_) | Asked::Annotate(_) | Asked::Reopen(_) => {}
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
