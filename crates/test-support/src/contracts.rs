//! Contracts for whole workflows, derived from the valid samples.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// A contract's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Xml,
    Json,
}

/// The folder of a protocol's valid samples.
pub fn folder(protocol: &str) -> PathBuf {
    crate::project()
        .join("tests/samples")
        .join(protocol)
        .join("valid")
}

/// A valid sample of a protocol, byte for byte.
pub fn valid(protocol: &str, file: &str) -> String {
    fs::read_to_string(folder(protocol).join(file)).unwrap()
}

/// A valid sample of a protocol as a value, with members replaced by JSON Pointer.
pub fn value(protocol: &str, name: &str, members: &[(&str, Value)]) -> Value {
    let text = valid(protocol, &format!("{name}.json"));
    with(serde_json::from_str(&text).unwrap(), members)
}

/// A value with members replaced by JSON Pointer.
pub fn with(mut value: Value, members: &[(&str, Value)]) -> Value {
    for (pointer, member) in members {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap()[name] = member.clone();
    }
    value
}

/// A sample of issue-to-pr by name, for another issue with its own branch, workspace and port.
pub fn sample(name: &str, format: Format, issue: u32) -> String {
    let extension = match format {
        Format::Xml => "xml",
        Format::Json => "json",
    };
    let text = valid("issue-to-pr", &format!("{name}.{extension}"));
    let (was, is) = match format {
        Format::Xml => (
            "<issue_number>87<".to_owned(),
            format!("<issue_number>{issue}<"),
        ),
        Format::Json => (
            "\"issue_number\": 87".to_owned(),
            format!("\"issue_number\": {issue}"),
        ),
    };
    assert!(text.contains(&was), "{name} names no issue");
    text.replace(&was, &is)
        .replace("issues/87", &format!("issues/{issue}"))
        .replace("enhancement/87-", &format!("enhancement/{issue}-"))
        .replace("parcel-desk-87", &format!("parcel-desk-{issue}"))
        .replace("4187", &(4100 + issue).to_string())
}

/// The contract that opens an issue.
pub fn opening(issue: u32) -> String {
    sample("issue-manager-to-prep-agent", Format::Xml, issue)
}

/// The contract that follows it.
pub fn prepared(issue: u32) -> String {
    sample("prep-agent-to-implementer-agent", Format::Xml, issue)
}

/// The implementer's report of an error to the orchestrator.
pub fn implementer_error(format: Format, issue: u32) -> String {
    sample("error", format, issue)
        .replace("prep-agent", "implementer-agent")
        .replace("blocked", "failure")
}

/// The fixer's second round, which differs from the first.
pub fn second_fix(format: Format, issue: u32) -> String {
    sample("fixer-agent-to-reviewer-agent", format, issue)
        .replace("in batches of 500", "in batches of 200")
}
