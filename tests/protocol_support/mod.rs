//! The built-in protocol and its sample contracts.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};

use git_handoff::finding::{Finding, Severity};
use git_handoff::ledger::{Review, review};
use git_handoff::protocol::Protocol;
use git_handoff::templates::{FolderSchemas, built_in};
use serde_json::Value;

pub const NAME: &str = "issue-to-pr";

/// The built-in protocol with its schemas.
pub struct Rules {
    pub protocol: Protocol,
    schemas: FolderSchemas,
}

impl Rules {
    pub fn new() -> Self {
        let folder = built_in(NAME).unwrap();
        let protocol = Protocol::load(folder.file("protocol.json").unwrap()).unwrap();
        Self {
            protocol,
            schemas: FolderSchemas::new(folder),
        }
    }

    pub fn review(&self, bytes: &[u8]) -> Review {
        review(&self.protocol, &self.schemas, bytes, None).unwrap()
    }

    /// The JSON Schema of a contract type.
    pub fn schema(&self, kind: &str) -> Value {
        let file = &self.protocol.contract_type(kind).unwrap().schema;
        let folder = built_in(NAME).unwrap();
        serde_json::from_slice(folder.file(file).unwrap()).unwrap()
    }
}

/// One sample contract.
pub struct Sample {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Sample {
    pub fn is_xml(&self) -> bool {
        self.name.ends_with(".xml")
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }
}

/// The samples in `valid` or `invalid`, by name.
pub fn samples(folder: &str) -> Vec<Sample> {
    let mut samples: Vec<Sample> =
        fs::read_dir(root().join("tests/samples").join(NAME).join(folder))
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                Sample {
                    name: path.file_name().unwrap().to_str().unwrap().to_owned(),
                    bytes: fs::read(&path).unwrap(),
                }
            })
            .collect();
    samples.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(samples.len() > 50, "{folder} has its samples");
    samples
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// A finding in one line: `code line:column path: message (fix)`.
pub fn line(finding: &Finding) -> String {
    let place = match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("{line}:{column}"),
        _ => "-".to_owned(),
    };
    let weight = match finding.severity {
        Severity::Error => "",
        Severity::Warning => "warning ",
        Severity::Note => "note ",
    };
    let path = if finding.path.is_empty() {
        "-"
    } else {
        &finding.path
    };
    let fix = finding.fix.as_ref().map(|fix| format!(" ({fix})"));
    format!(
        "{weight}{} {place} {path}: {}{}",
        finding.code,
        finding.message,
        fix.unwrap_or_default()
    )
}
