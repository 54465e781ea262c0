//! The files that contracts deliver: which they are, whether they are what was
//! asked for, and what they hold.

use std::fs::File;
use std::io::Read;

use handoff_base::finding::Finding;
use handoff_base::text::quoted;
use handoff_contract::Source;
use handoff_git::Repository;
use handoff_protocol::ContractType;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::intake::{Schemas, scalar};
use super::record::{Artifact, Expected, hexadecimal};
use super::semantic::named_schema;

/// A file that a contract names.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// Its path, as the contract has it.
    pub(super) path: String,
    /// The kind of artifact, where the contract says it.
    kind: Option<String>,
    /// Where in the contract its path is, a JSON Pointer.
    pub(super) at: String,
    /// Where its kind is.
    kind_at: String,
    /// Whether it is a file of the repository, by its kind.
    pub(super) is_file: bool,
}

/// The files that a contract names.
pub(super) fn delivered(kind: &ContractType, value: &Value) -> Vec<Named> {
    let Some(fields) = &kind.artifacts else {
        return Vec::new();
    };
    let one = |entry: &Value, inside: &str| {
        let kind_at = fields.kind.as_deref().unwrap_or_default();
        let kind = fields
            .kind
            .as_ref()
            .and_then(|at| scalar(entry.pointer(at)?));
        Some(Named {
            path: scalar(entry.pointer(&fields.path)?)?,
            is_file: fields.files.is_empty()
                || kind.as_ref().is_some_and(|k| fields.files.contains(k)),
            kind,
            at: format!("{inside}{}", fields.path),
            kind_at: format!("{inside}{kind_at}"),
        })
    };
    let Some(list) = &fields.list else {
        return one(value, "").into_iter().collect();
    };
    let entries = value.pointer(list).and_then(Value::as_array);
    let entries = entries.into_iter().flatten().enumerate();
    entries
        .filter_map(|(i, entry)| one(entry, &format!("{list}/{i}")))
        .collect()
}

/// How what a contract delivers differs from what was asked for; paths are JSON
/// Pointers.
pub(super) fn unfit(expected: &Expected, kind: &ContractType, value: &Value) -> Vec<Finding> {
    let delivered = delivered(kind, value);
    let Some(file) = delivered.first() else {
        let at = kind.artifacts.as_ref().map_or("", |fields| &fields.path);
        let text = format!(
            "the request expects a {}, and nothing is delivered",
            quoted(&expected.artifact_type)
        );
        return vec![Finding::error("artifact.missing", at, text)];
    };
    let mut found = Vec::new();
    if let Some(kind) = file.kind.as_ref().filter(|k| **k != expected.artifact_type) {
        let (kind, wanted) = (quoted(kind), quoted(&expected.artifact_type));
        let text = format!("the request expects a {wanted}, not a {kind}");
        found.push(Finding::error("artifact.type", &file.kind_at, text));
    }
    if !is_at(&file.path, &expected.destination) {
        let (path, wanted) = (quoted(&file.path), quoted(&expected.destination));
        let text = format!("the request expects the artifact at {wanted}, not at {path}");
        let fix = "{timestamp} stands for the time in digits, such as 1705147532000";
        found.push(Finding::error("artifact.destination", &file.at, text).fix(fix));
    }
    found
}

/// Says whether a path is one that a destination stands for: `{timestamp}` is
/// one or more characters of a time, as digits or as in RFC 3339.
fn is_at(path: &str, destination: &str) -> bool {
    let mut parts = destination.split("{timestamp}");
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else {
        return false;
    };
    for part in parts {
        let time = |c: char| c.is_ascii_digit() || "-:.TZ+".contains(c);
        let longest = rest.find(|c| !time(c)).unwrap_or(rest.len());
        // The shortest time after which the rest fits is enough: no part of a
        // destination begins with a time of its own.
        let fits = (1..=longest).find_map(|length| {
            let after = rest.get(length..)?.strip_prefix(part)?;
            (!part.is_empty() || length == longest).then_some(after)
        });
        match fits {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// The largest artifact that is checked against a schema, in bytes.
const MAX_CHECKED: u64 = handoff_contract::MAX_BYTES as u64;

/// Looks at the files that a contract names: what they hold, and whether the
/// one that was asked for is as its schema wants it.
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
                let text = format!("{} is no file of the working tree", file.path);
                let finding = Finding::error("artifact.schema", &file.at, text);
                found.push(finding.fix("deliver a plain file inside the repository"));
            }
            let Named { path, .. } = file;
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
            found.push(Finding::error("artifact.schema", &file.at, text));
            continue;
        }
        let mut start = Vec::new();
        // A file that can't be read to its end is one that is not there.
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
                let finding = Finding::error("artifact.schema", &file.at, text);
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

/// The size of a file and its SHA-256, in hexadecimal; none if it can't be read
/// to its end.
pub(super) fn digest_of(file: &mut File) -> Option<(u64, String)> {
    read_whole(file, |_| {})
}

/// Reads a file, and shows each piece of it.
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

#[cfg(test)]
mod tests {
    use super::is_at;

    #[test]
    fn a_destination_stands_for_paths_with_a_time_in_them() {
        let wanted = "out/comp-{timestamp}.json";
        for path in [
            "out/comp-1705147532000.json",
            "out/comp-2026-01-13T10:05:32Z.json",
        ] {
            assert!(is_at(path, wanted), "{path}");
        }
        for path in [
            "out/comp-.json",
            "out/comp-12.json.bak",
            "x/out/comp-12.json",
            "out/comp-ab.json",
            "out/comp-{timestamp}.json",
        ] {
            assert!(!is_at(path, wanted), "{path}");
        }
        assert!(is_at("a/b", "a/b") && !is_at("a/c", "a/b"));
        assert!(is_at("run-12", "run-{timestamp}") && !is_at("run-12x", "run-{timestamp}"));
    }
}
