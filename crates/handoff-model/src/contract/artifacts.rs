//! The files that contracts deliver, and whether they match the request.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::text::quoted;
use handoff_protocol::ContractType;
use serde_json::Value;

use crate::record::Expected;
use crate::value::scalar;

/// A file that a contract names.
#[derive(Clone, Debug)]
pub struct NamedFile {
    /// Its path, as the contract gives it.
    pub path: String,
    /// The kind of artifact, if the contract states it.
    kind: Option<String>,
    /// The place of its path in the contract, a JSON Pointer.
    pub at: String,
    /// The place of its kind.
    kind_at: String,
    /// Whether its kind is a file of the repository.
    pub is_file: bool,
}

/// The files named in a contract.
pub fn delivered(kind: &ContractType, value: &Value) -> Vec<NamedFile> {
    let Some(fields) = &kind.artifacts else {
        return Vec::new();
    };
    let one = |entry: &Value, inside: &str| {
        let kind_at = fields.kind.as_deref().unwrap_or_default();
        let kind = fields
            .kind
            .as_ref()
            .and_then(|at| scalar(entry.pointer(at)?));
        Some(NamedFile {
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

/// How a contract's artifacts differ from what the request asks for; paths are JSON Pointers.
pub fn unfit(expected: &Expected, kind: &ContractType, value: &Value) -> Vec<Finding> {
    let delivered = delivered(kind, value);
    let Some(file) = delivered.first() else {
        let at = kind.artifacts.as_ref().map_or("", |fields| &fields.path);
        let text = format!(
            "the request expects a {}, and nothing is delivered",
            quoted(&expected.artifact_type)
        );
        return vec![Finding::error(FindingCode::ArtifactMissing, at, text)];
    };
    let mut found = Vec::new();
    if let Some(kind) = file.kind.as_ref().filter(|k| **k != expected.artifact_type) {
        let (kind, wanted) = (quoted(kind), quoted(&expected.artifact_type));
        let text = format!("the request expects a {wanted}, not a {kind}");
        found.push(Finding::error(
            FindingCode::ArtifactType,
            &file.kind_at,
            text,
        ));
    }
    if !is_at(&file.path, &expected.destination) {
        let (path, wanted) = (quoted(&file.path), quoted(&expected.destination));
        let text = format!("the request expects the artifact at {wanted}, not at {path}");
        let fix = "{timestamp} stands for the time in digits, such as 1705147532000";
        found.push(Finding::error(FindingCode::ArtifactDestination, &file.at, text).fix(fix));
    }
    found
}

/// Whether a path matches a destination, in which `{timestamp}` stands for a time in digits or RFC
/// 3339.
fn is_at(path: &str, destination: &str) -> bool {
    let mut parts = destination.split("{timestamp}");
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else {
        return false;
    };
    for part in parts {
        let time = |c: char| c.is_ascii_digit() || "-:.TZ+".contains(c);
        let longest = rest.find(|c| !time(c)).unwrap_or(rest.len());
        // The first length that fits is right: no part of a destination begins like a timestamp.
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
