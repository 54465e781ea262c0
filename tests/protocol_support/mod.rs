//! The built-in protocols and their sample contracts.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};

use git_handoff::finding::{Finding, Severity};
use git_handoff::ledger::{Review, review};
use git_handoff::protocol::{ContractType, Protocol};
use git_handoff::templates::{BUILT_IN, FolderSchemas, built_in};
use serde_json::Value;

/// The protocol whose contracts may be XML.
pub const NAME: &str = "issue-to-pr";

/// A built-in protocol with its schemas.
pub struct Rules {
    pub name: &'static str,
    pub protocol: Protocol,
    schemas: FolderSchemas,
}

impl Rules {
    /// The protocol whose contracts may be XML.
    pub fn new() -> Self {
        Self::of(NAME)
    }

    pub fn of(name: &'static str) -> Self {
        let folder = built_in(name).unwrap();
        let protocol = Protocol::load(folder.file("protocol.json").unwrap()).unwrap();
        Self {
            name,
            protocol,
            schemas: FolderSchemas::new(folder),
        }
    }

    pub fn all() -> impl Iterator<Item = Self> {
        BUILT_IN.into_iter().map(Self::of)
    }

    pub fn review(&self, bytes: &[u8]) -> Review {
        review(&self.protocol, &self.schemas, bytes, None).unwrap()
    }

    /// The JSON Schema of a contract type.
    pub fn schema(&self, kind: &str) -> Value {
        self.file(&self.protocol.contract_type(kind).unwrap().schema)
    }

    /// A JSON file of the protocol's folder.
    pub fn file(&self, path: &str) -> Value {
        let folder = built_in(self.name).unwrap();
        serde_json::from_slice(folder.file(path).unwrap()).unwrap()
    }

    /// The formats that a contract type may have.
    pub fn formats(&self, kind: &ContractType) -> Vec<String> {
        let formats = self.protocol.definition().formats.iter();
        formats.filter(|f| kind.has_format(f)).cloned().collect()
    }

    /// The samples in `valid` or `invalid`, by name.
    pub fn samples(&self, folder: &str) -> Vec<Sample> {
        let path = root().join("tests/samples").join(self.name).join(folder);
        let mut samples: Vec<Sample> = fs::read_dir(path)
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
        assert!(samples.len() > 15, "{} {folder} has its samples", self.name);
        samples
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

    pub fn is_json(&self) -> bool {
        self.name.ends_with(".json")
    }

    /// The format that the name's ending stands for.
    pub fn format(&self) -> &str {
        self.name.rsplit('.').next().unwrap()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }
}

/// The samples of the protocol whose contracts may be XML.
pub fn samples(folder: &str) -> Vec<Sample> {
    Rules::new().samples(folder)
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
