//! Finds what a contract type's template has or lacks, so that every command printed from it would be
//! refused: required fields, constants, placeholders with misspelt names.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::{lookup, parts, under};
use handoff_base::text::closest;
use handoff_base::words;
use handoff_contract::{MAX_FINDINGS, Schema, Source};
use handoff_protocol::BASE;
use serde_json::{Map, Value};

use crate::rules::protocol_check::position;

/// The maximum number of subschemas examined for one value.
const MOST_PARTS: usize = 64;

/// The place of each required field that a template lacks.
pub(crate) fn lacking(schema: &Value, template: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(schema, vec![schema], template, "", &mut found);
    found
}

words! {
    /// What fills a placeholder of this name in a template, besides facts.
    pub enum Filled {
        /// The code branch.
        Branch = "branch",
        /// The ids of its commits.
        CommitIds = "commit_ids",
        /// Its commits, with their subjects.
        Commits = "commits",
        /// How many were added since the newest contract.
        CommitsAdded = "commits_added",
        /// How many sibling tasks are completed.
        CompletedCount = "completed_count",
        /// How long the issue has been open.
        CycleTime = "cycle_time",
        /// The files that the branch changes.
        FilesChanged = "files_changed",
        /// An answer to each open finding.
        Fixes = "fixes",
        /// The sender.
        From = "from",
        /// Its phase.
        FromPhase = "from_phase",
        /// An answer to each question.
        Given = "given",
        /// The issue: a number, if it is one.
        Issue = "issue",
        /// Its page.
        IssueUrl = "issue_url",
        /// Its key.
        Key = "key",
        /// The commit that merged the branch.
        MergeSha = "merge_sha",
        /// The time.
        Now = "now",
        /// The task that the task is a part of.
        ParentTask = "parent_task",
        /// How many sibling tasks are not completed.
        RemainingCount = "remaining_count",
        /// How often the held handoff was retried.
        Retries = "retries",
        /// The tasks with the same parent.
        Siblings = "siblings",
        /// Those that are completed.
        SiblingsComplete = "siblings_complete",
        /// The others.
        SiblingsPending = "siblings_pending",
        /// The task.
        Task = "task",
        /// The receiver.
        To = "to",
        /// Its phase.
        ToPhase = "to_phase",
        /// The worktree of the code branch.
        WorkspacePath = "workspace_path",
        /// Its kind.
        WorkspaceType = "workspace_type",
    }
}

/// Constants of a template that its schema refuses in every contract.
pub(crate) fn unfit(
    (path, bytes): (&str, &[u8]),
    (schema_path, schema): (&str, &Value),
    compiled: &Schema,
) -> Vec<Finding> {
    let Ok(source) = Source::parse(bytes) else {
        return Vec::new();
    };
    let checked = compiled.check(&source, None);
    let is_certain = |finding: &Finding| {
        let at = finding.path.as_str();
        let closed = finding.code == FindingCode::FieldUnknown;
        let Some(value) = lookup(&checked.value, at).filter(|_| !closed) else {
            return false;
        };
        let refuses = |node: &&Value| {
            let mut alone = (**node).clone();
            if let Some(own) = schema.get("$defs") {
                alone["$defs"] = own.clone();
            }
            Schema::compile(&alone).is_ok_and(|alone| !alone.accepts(value))
        };
        !is_open(value) && binding(schema, at).iter().any(refuses)
    };
    let findings = checked.findings.iter().filter(|one| is_certain(one));
    let named = findings.map(|finding| {
        let at = &finding.path;
        let text = format!("`{at}` does not fit {schema_path}: {}", finding.message);
        let mut fault = Finding::error(FindingCode::ProtocolTemplate, path, text);
        (fault.line, fault.column) = (finding.line, finding.column);
        fault.fix("write what the schema accepts, or change the schema")
    });
    named.collect()
}

/// Fields of a template that no contract may have.
pub(crate) fn unknown(
    (path, bytes): (&str, &[u8]),
    (schema_path, schema): (&str, &Value),
) -> Vec<Finding> {
    let template: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let mut found = Vec::new();
    let mut left = vec![(String::new(), &template)];
    while let Some((at, value)) = left.pop() {
        match value {
            Value::Object(members) => {
                let nodes = binding(schema, &at);
                let closed = nodes.iter().find(|node| {
                    node["additionalProperties"] == false && node["patternProperties"].is_null()
                });
                for (name, member) in members {
                    let place = under(&at, name);
                    let known = closed.map(|node| &node["properties"]);
                    if let Some(known) = known.filter(|known| known.get(name).is_none()) {
                        let text = format!("`{place}` is a field that {schema_path} does not have");
                        let mut fault = Finding::error(FindingCode::ProtocolTemplate, path, text);
                        // No more are listed.
                        if found.len() < MAX_FINDINGS {
                            (fault.line, fault.column) = position(bytes, &place).unzip();
                        }
                        let known = known.as_object().into_iter().flat_map(Map::keys);
                        found.push(fault.meant(name, known.map(String::as_str)));
                    }
                    left.push((place, member));
                }
            }
            Value::Array(entries) => {
                let entries = entries.iter().enumerate();
                left.extend(entries.map(|(i, entry)| (under(&at, &i.to_string()), entry)));
            }
            _ => {}
        }
    }
    found
}

/// Whether a part of a template is still filled.
fn is_open(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(is_open),
        Value::Array(entries) => entries.iter().any(is_open),
        Value::String(text) => text.contains("{{"),
        _ => false,
    }
}

/// The subschemas that apply at a pointer in every case.
pub(crate) fn binding<'s>(schema: &'s Value, pointer: &str) -> Vec<&'s Value> {
    parts(pointer).fold(applying(schema, vec![schema]), |here, part| {
        let is_item = part == "*" || part.parse::<usize>().is_ok();
        let own = here.into_iter().filter_map(|node| {
            let items = node.get("items").filter(|_| node["prefixItems"].is_null());
            let member = node["properties"].get(&part);
            member.or(items.filter(|_| is_item))
        });
        applying(schema, own.collect())
    })
}

/// Warnings about placeholders in the template at `path` whose names are nearly a fact's, or one
/// that is filled.
pub(crate) fn misspelt((path, bytes): (&str, &[u8]), facts: &BTreeSet<&str>) -> Vec<Finding> {
    let template: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let mut known = facts.clone();
    known.extend([BASE, "fill", "fill by send"]);
    for filled in Filled::ALL {
        known.insert(filled.as_str());
    }
    let mut found = Vec::new();
    let mut left = vec![(String::new(), &template)];
    while let Some((at, value)) = left.pop() {
        match value {
            Value::Object(members) => {
                left.extend(
                    members
                        .iter()
                        .map(|(name, member)| (under(&at, name), member)),
                );
            }
            Value::Array(entries) => {
                let entries = entries.iter().enumerate();
                left.extend(entries.map(|(i, entry)| (under(&at, &i.to_string()), entry)));
            }
            Value::String(text) => {
                let name = text
                    .strip_prefix("{{")
                    .and_then(|text| text.split_once(": "));
                let name = name.map(|(name, _)| name);
                let Some(name) = name.filter(|name| !known.contains(name)) else {
                    continue;
                };
                if let Some(known) = closest(name, known.iter().copied()) {
                    let text = format!(
                        "nothing is known as `{name}`, so that `{{{{{name}: …}}}}` is not filled"
                    );
                    let mut finding = Finding::warning(FindingCode::ProtocolTemplate, path, text);
                    (finding.line, finding.column) = position(bytes, &at).unzip();
                    found.push(finding.fix(format!("did you mean `{known}`?")));
                }
            }
            _ => {}
        }
    }
    found
}

fn walk(root: &Value, schemas: Vec<&Value>, value: &Value, at: &str, found: &mut Vec<String>) {
    let parts = applying(root, schemas);
    let place = |name: &str| under(at, name);
    match value {
        Value::Object(members) => {
            let required = parts.iter().filter_map(|part| part["required"].as_array());
            for name in required.flatten().filter_map(Value::as_str) {
                let place = place(name);
                if !members.contains_key(name) && !found.contains(&place) {
                    found.push(place);
                }
            }
            for (name, member) in members {
                let own = parts.iter().map(|part| &part["properties"][name]);
                walk(root, own.collect(), member, &place(name), found);
            }
        }
        Value::Array(entries) => {
            for (i, entry) in entries.iter().enumerate() {
                let own = parts.iter().map(|part| &part["items"]);
                walk(root, own.collect(), entry, &place(&i.to_string()), found);
            }
        }
        _ => {}
    }
}

/// The subschemas that apply to a value in every case: these, the ones they refer to, and those in
/// `allOf`.
fn applying<'s>(root: &'s Value, schemas: Vec<&'s Value>) -> Vec<&'s Value> {
    let mut parts: Vec<&Value> = Vec::new();
    let mut left = schemas;
    while let Some(part) = left.pop().filter(|_| parts.len() < MOST_PARTS) {
        if !part.is_object() || parts.iter().any(|known| std::ptr::eq(*known, part)) {
            continue;
        }
        parts.push(part);
        let reference = part["$ref"].as_str().and_then(|r| r.strip_prefix('#'));
        left.extend(reference.and_then(|pointer| root.pointer(pointer)));
        left.extend(part["allOf"].as_array().into_iter().flatten());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::lacking;
    use serde_json::json;

    #[test]
    fn what_is_required_anywhere_is_missed() {
        let schema = json!({
            "required": ["a", "list", "inner"],
            "properties": {
                "list": {"items": {"$ref": "#/$defs/entry"}},
                "inner": {"allOf": [{"required": ["x/y"]}], "required": ["z"]},
                "text": {"required": ["never"]},
            },
            "anyOf": [{"required": ["one"]}, {"required": ["other"]}],
            "if": {}, "then": {"required": ["sometimes"]},
            "$defs": {"entry": {"required": ["b", "c"]}},
        });
        let template = json!({"list": [{"b": "{{fill: b}}"}, "{{fill: an entry}}"], "inner": {"z": 1}, "text": "{{fill: it}}"});
        assert_eq!(
            lacking(&schema, &template),
            ["/a", "/list/0/c", "/inner/x~1y"]
        );
        let round = json!({"$ref": "#", "required": ["a"]});
        assert_eq!(lacking(&round, &json!({})), ["/a"]);
    }
}
