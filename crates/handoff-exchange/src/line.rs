//! One step of a ledger as one line of `steps.jsonl`.
//!
//! The first line is a header with a version; reading an unknown version is an error.

use chrono::{DateTime, FixedOffset, Offset, Utc};
use handoff::base::Moment;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::contract::Format;
use handoff::ledger::Gathered;
use handoff::model::{MAX_TEXT, Request, Step, Update, layout};
use handoff_macros::skip_serializing_none;
use serde::{Deserialize, Serialize};

pub(super) const STEPS: &str = "steps.jsonl";
/// The version of the format.
pub(super) const VERSION: u64 = 1;

/// 10000-01-01: git supports four-digit years from 1970 on.
const END: i64 = 253_402_300_800;

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

/// The subject of a step; steps are numbered per subject, from 1.
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

/// A step with the files that it added, whose paths are relative to the folder of `steps.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    Issue(Box<IssueLine>),
    Protocol(ProtocolLine),
    Document(DocumentLine),
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IssueLine {
    pub(super) key: IssueKey,
    /// Its number among the steps of the issue.
    pub(super) number: u32,
    /// The zone that it was recorded in, in minutes east of UTC.
    #[serde(default, skip_serializing_if = "is_utc")]
    pub(super) zone: i32,
    pub(super) step: Step,
    /// The contract that it sent.
    pub(super) contract: Option<SentContract>,
}

/// A contract that was sent, with the data gathered for it at that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SentContract {
    pub(super) file: String,
    pub(super) format: Format,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
    pub(super) protocol: AgentName,
    #[serde(default)]
    pub(super) gathered: Gathered,
}

/// A protocol that was put in force, including the ledger's first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProtocolLine {
    pub(super) name: AgentName,
    /// Its number among the versions of the protocol.
    pub(super) number: u32,
    pub(super) at: Moment,
    /// The zone that it was recorded in, in minutes east of UTC.
    #[serde(default, skip_serializing_if = "is_utc")]
    pub(super) zone: i32,
    /// The person who ran the program.
    pub(super) by: String,
    /// The folder of its files.
    pub(super) folder: String,
    /// All of its files, with paths in that folder.
    pub(super) files: Vec<Named>,
}

/// A file's path and digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub(super) path: String,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
}

/// A shared document that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DocumentLine {
    /// The protocol whose issues share it.
    pub(super) protocol: AgentName,
    pub(super) name: AgentName,
    /// Its number among the versions of the document.
    pub(super) number: u32,
    pub(super) at: Moment,
    /// The zone that it was recorded in, in minutes east of UTC.
    #[serde(default, skip_serializing_if = "is_utc")]
    pub(super) zone: i32,
    pub(super) by: AgentName,
    pub(super) file: String,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_utc(zone: &i32) -> bool {
    *zone == 0
}

impl Line {
    pub(super) fn key(&self) -> Key {
        match self {
            Self::Issue(line) => Key::Issue(line.key.clone()),
            Self::Protocol(line) => Key::Protocol(line.name.clone()),
            Self::Document(line) => Key::Document(line.protocol.clone(), line.name.clone()),
        }
    }

    /// Its number among the steps of its subject.
    pub(super) fn number(&self) -> u32 {
        match self {
            Self::Issue(line) => line.number,
            Self::Protocol(line) => line.number,
            Self::Document(line) => line.number,
        }
    }

    /// The time, in the zone it was recorded in; `None` if a commit can't store it.
    pub(super) fn at(&self) -> Option<DateTime<FixedOffset>> {
        let (at, zone) = match self {
            Self::Issue(line) => (line.step.at, line.zone),
            Self::Protocol(line) => (line.at, line.zone),
            Self::Document(line) => (line.at, line.zone),
        };
        let zone = match zone {
            0 => Utc.fix(),
            minutes => FixedOffset::east_opt(minutes.checked_mul(60)?)?,
        };
        let at = at.with_timezone(&zone);
        (0..END).contains(&at.timestamp()).then_some(at)
    }

    /// The fault of a well-formed line whose request no command could have made.
    pub(super) fn fault(&self) -> Option<&'static str> {
        if self.at().is_none() {
            return Some("no commit can have this date");
        }
        let hex = |text: &String, lengths: &[usize]| {
            lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
        };
        match self {
            Self::Issue(line) => match (&line.step.request, &line.contract) {
                (Request::Send(_), Some(contract)) => {
                    let Gathered {
                        code, artifacts, ..
                    } = &contract.gathered;
                    let mut digests = artifacts.iter().filter_map(|a| a.sha256.as_ref());
                    let code = code.iter();
                    let mut code = code
                        .flat_map(|c| [Some(&c.commit), c.tree.as_ref()])
                        .flatten();
                    let right = digests.all(|d| hex(d, &[64])) && code.all(|c| hex(c, &[40, 64]));
                    (!right).then_some("a digest or a commit is invalid")
                }
                (Request::Update(update), None) => {
                    let kept = |text: &str| !text.trim().is_empty() && text.len() <= MAX_TEXT;
                    let right = update.texts().into_iter().all(kept);
                    (!right).then_some("a text is empty, or too long to be kept")
                }
                (Request::Send(_), None) => Some("the contract is missing"),
                (Request::Update(_), Some(_)) => Some("the request sends no contract"),
            },
            Self::Protocol(protocol) => {
                let mut paths: Vec<&str> = protocol.files.iter().map(|f| f.path.as_str()).collect();
                paths.sort_unstable();
                let twice = paths.windows(2).any(|two| two[0] == two[1]);
                let right = !twice && paths.into_iter().all(layout::is_protocol_file);
                (!right).then_some("a file has no place in a protocol's folder")
            }
            Self::Document(_) => None,
        }
    }

    /// The update of a handoff, if it is one.
    pub(super) fn update(&self) -> Option<&Update> {
        match self {
            Self::Issue(line) => line.step.request.update(),
            Self::Protocol(_) | Self::Document(_) => None,
        }
    }

    /// Whether both are the same step, regardless of their files' paths. Protocols are compared
    /// only by their files, since each ledger was started at another time by another person.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let bare = |line: &Self| {
            let mut line = line.clone();
            match &mut line {
                Self::Issue(line) => {
                    let contract = line.contract.iter_mut();
                    contract.for_each(|contract| contract.file.clear());
                }
                Self::Document(document) => document.file.clear(),
                Self::Protocol(protocol) => {
                    protocol.folder.clear();
                    protocol.files.sort();
                    protocol.by.clear();
                    (protocol.at, protocol.zone) = (Moment::default(), 0);
                }
            }
            line
        };
        bare(self) == bare(other)
    }
}
