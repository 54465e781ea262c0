//! Contracts for whole workflows, made from the valid samples.

use std::fs;

/// A contract's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Xml,
    Json,
}

/// A sample by its name, about another issue.
pub fn sample(name: &str, format: Format, issue: u32) -> String {
    let extension = match format {
        Format::Xml => "xml",
        Format::Json => "json",
    };
    let folder = crate::project().join("tests/samples/issue-to-pr/valid");
    let text = fs::read_to_string(folder.join(format!("{name}.{extension}"))).unwrap();
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
