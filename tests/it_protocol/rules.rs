//! The built-in protocols and their sample contracts.

use std::fs;
use std::path::{Path, PathBuf};

use handoff::base::finding::{Finding, Severity};
use handoff::contract::Input;
use handoff::model::{Review, review};
use handoff::protocol::{ContractType, Protocol};
use handoff::templates::{BUILT_IN, FolderSchemas, built_in};
use serde_json::Value;

/// The protocol whose contracts may be XML.
pub(crate) const NAME: &str = "issue-to-pr";

/// A built-in protocol with its schemas.
pub(crate) struct Rules {
    pub(crate) name: &'static str,
    pub(crate) protocol: Protocol,
    schemas: FolderSchemas,
}

impl Rules {
    /// The protocol whose contracts may be XML.
    pub(crate) fn new() -> Self {
        Self::of(NAME)
    }

    pub(crate) fn of(name: &'static str) -> Self {
        let folder = built_in(name).unwrap();
        let protocol = Protocol::load(folder.file("protocol.json").unwrap()).unwrap();
        Self {
            name,
            protocol,
            schemas: FolderSchemas::new(folder),
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        BUILT_IN.into_iter().map(Self::of)
    }

    pub(crate) fn review(&self, bytes: &[u8]) -> Review {
        review(&self.protocol, &self.schemas, &Input::read(bytes), None).unwrap()
    }

    /// The JSON Schema of a contract type.
    pub(crate) fn schema(&self, kind: &str) -> Value {
        self.file(&self.protocol.contract_type(kind).unwrap().schema)
    }

    /// A JSON file of the protocol's folder.
    pub(crate) fn file(&self, path: &str) -> Value {
        let folder = built_in(self.name).unwrap();
        serde_json::from_slice(folder.file(path).unwrap()).unwrap()
    }

    /// The formats that a contract type may have.
    pub(crate) fn formats(&self, kind: &ContractType) -> Vec<String> {
        let formats = self.protocol.definition().formats.iter();
        formats.filter(|f| kind.has_format(f)).cloned().collect()
    }

    /// The samples in `valid` or `invalid`, by name.
    pub(crate) fn samples(&self, folder: &str) -> Vec<Sample> {
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
        assert!(samples.len() > 5, "{} {folder} has its samples", self.name);
        samples
    }
}

/// One sample contract.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Sample {
    pub(crate) fn is_xml(&self) -> bool {
        self.name.ends_with(".xml")
    }

    pub(crate) fn is_json(&self) -> bool {
        self.name.ends_with(".json")
    }

    /// The format that the name's ending stands for.
    pub(crate) fn format(&self) -> &str {
        self.name.rsplit('.').next().unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }
}

/// The samples of the protocol whose contracts may be XML.
pub(crate) fn samples(folder: &str) -> Vec<Sample> {
    Rules::new().samples(folder)
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// A finding in one line: `code line:column path: message (fix)`.
pub(crate) fn line(finding: &Finding) -> String {
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
