//! Reads the files that contracts deliver.

use std::fs::File;
use std::io::Read;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::hexadecimal;
use handoff_base::text::quoted;
use handoff_contract::Source;
use handoff_git::Repository;
use handoff_model::artifacts::{NamedFile, delivered};
use handoff_model::semantic::named_schema;
use handoff_model::{Artifact, Expected, Schemas};
use handoff_protocol::ContractType;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The maximum size of an artifact that is checked against a schema, in bytes.
const MAX_CHECKED: u64 = handoff_contract::MAX_BYTES as u64;

/// Reads the files that a contract names, and checks the requested one against its schema.
pub(super) fn gather<S: Schemas>(
    repository: &Repository,
    schemas: &S,
    expected: Option<&Expected>,
    kind: &ContractType,
    value: &Value,
) -> Result<(Vec<Artifact>, Vec<Finding>), S::Error> {
    let mut artifacts: Vec<Artifact> = Vec::new();
    let mut found = Vec::new();
    for (i, file) in delivered(kind, value).into_iter().enumerate() {
        if artifacts.iter().any(|known| known.path == file.path) {
            continue;
        }
        let Some(mut opened) = repository.open_file(&file.path) else {
            if expected.is_some() && i == 0 && repository.leads_somewhere(&file.path) {
                let text = format!("{} is not a file of the working tree", file.path);
                let finding = Finding::error(FindingCode::ArtifactSchema, &file.at, text);
                found.push(finding.fix("deliver a plain file inside the repository"));
            }
            let NamedFile { path, .. } = file;
            let (bytes, sha256) = (None, None);
            artifacts.push(Artifact {
                path,
                bytes,
                sha256,
                committed: false,
            });
            continue;
        };
        let size = opened.metadata().map_or(0, |about| about.len());
        if expected.is_some() && i == 0 && size > MAX_CHECKED {
            let text = format!(
                "{} has {size} bytes, and at most {MAX_CHECKED} are checked",
                file.path
            );
            found.push(Finding::error(FindingCode::ArtifactSchema, &file.at, text));
            continue;
        }
        let mut start = Vec::new();
        // A file that can't be read completely counts as missing.
        let read = read_whole(&mut opened, |chunk| {
            if (start.len() + chunk.len()) as u64 <= MAX_CHECKED {
                start.extend_from_slice(chunk);
            }
        });
        if let Some(expected) = expected.filter(|_| i == 0 && read.is_some())
            && let Ok(schema) = named_schema(schemas, &expected.schema)?
        {
            let faults = match Source::parse(&start) {
                Ok(source) => schema.check(&source, None).findings,
                Err(findings) => findings,
            };
            found.extend(faults.into_iter().filter(Finding::is_error).map(|fault| {
                let place = match &*fault.path {
                    "" => String::new(),
                    path => format!(" {path}"),
                };
                let text = format!("{}:{place} {}", file.path, fault.message);
                let finding = Finding::error(FindingCode::ArtifactSchema, &file.at, text);
                finding.fix(format!(
                    "the request wants it as {} says",
                    quoted(&expected.schema)
                ))
            }));
        }
        artifacts.push(Artifact {
            path: file.path,
            bytes: read.as_ref().map(|(size, _)| *size),
            sha256: read.map(|(_, sha256)| sha256),
            committed: false,
        });
    }
    Ok((artifacts, found))
}

/// The size of a file and its SHA-256, in hexadecimal; `None` if it can't be read completely.
pub(super) fn digest_of(file: &mut File) -> Option<(u64, String)> {
    read_whole(file, |_| {})
}

/// Reads a file and passes each chunk on.
fn read_whole(file: &mut File, mut show: impl FnMut(&[u8])) -> Option<(u64, String)> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    let mut size: u64 = 0;
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Some((size, hexadecimal(&hash.finalize()))),
            Ok(count) => {
                hash.update(&chunk[..count]);
                size += count as u64;
                show(&chunk[..count]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}
