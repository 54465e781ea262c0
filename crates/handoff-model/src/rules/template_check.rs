//! Finds required fields that a contract type's template lacks, so that printed commands lack them,
//! and placeholders with misspelt names.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::push_part;
use handoff_base::text::closest;
use handoff_base::words;
use handoff_protocol::BASE;
use serde_json::Value;

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

/// Warnings about placeholders in the template at `path` whose names are nearly a fact's, or one
/// that is filled.
pub(crate) fn misspelt(path: &str, template: &Value, facts: &BTreeSet<&str>) -> Vec<Finding> {
    let mut known = facts.clone();
    known.extend([BASE, "fill", "fill by send"]);
    for filled in Filled::ALL {
        known.insert(filled.as_str());
    }
    let mut found = Vec::new();
    let mut left = vec![template];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => left.extend(members.values()),
            Value::Array(entries) => left.extend(entries),
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
                    let finding = Finding::warning(FindingCode::ProtocolTemplate, path, text);
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
    let place = |name: &str| {
        let mut place = at.to_owned();
        push_part(&mut place, name);
        place
    };
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
