//! Sample contracts of `issue-to-pr`, filled with an issue's number.
#![allow(clippy::too_many_lines, reason = "the sample contracts are one table")]

use handoff::base::ids::IssueKey;
use handoff::contract::{Format, Input, write_json, write_xml};
use handoff::model::{Contract, Schemas, review};
use handoff::protocol::Protocol;
use handoff::templates::{FolderSchemas, built_in};
use serde_json::{Value, json};

/// A kind of contract in the life of an issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Open,
    Prepare,
    Implement,
    Review(u32),
    Fix(u32),
    Approve,
    Merge,
    Complete,
}

impl Stage {
    /// The stages of an issue: eight handoffs, or ten when every other issue needs a second review.
    pub fn all(issue: u32) -> Vec<Self> {
        let mut stages = vec![Self::Open, Self::Prepare, Self::Implement];
        for round in 1..=1 + issue % 2 {
            stages.extend([Self::Review(round), Self::Fix(round)]);
        }
        stages.extend([Self::Approve, Self::Merge, Self::Complete]);
        stages
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Open => "issue-manager-to-prep-agent",
            Self::Prepare => "prep-agent-to-implementer-agent",
            Self::Implement => "implementer-agent-to-reviewer-agent",
            Self::Review(_) => "reviewer-agent-to-fixer-agent",
            Self::Fix(_) => "fixer-agent-to-reviewer-agent",
            Self::Approve => "reviewer-agent-to-validator-agent",
            Self::Merge => "validator-agent-to-closer-agent",
            Self::Complete => "workflow-complete",
        }
    }

    fn value(self, n: u32) -> Value {
        let pr = n + 100_000;
        let issue_url = format!("https://github.com/lanternworks/tide-table/issues/{n}");
        let pr_url = format!("https://github.com/lanternworks/tide-table/pull/{pr}");
        let branch = format!("fix/{n}-clock-shift");
        let priority = ["critical", "high", "medium", "low"][n as usize % 4];
        let sha = |salt: u32| {
            format!(
                "{:010x}",
                u64::from(n).wrapping_mul(0x9e37_79b9) ^ u64::from(salt)
            )
        };
        let mut value = match self {
            Self::Open => json!({
                "issue_url": issue_url, "issue_number": n,
                "issue_title": format!("Tide times are off by an hour at harbour {n}"),
                "type": "bug", "priority": priority,
                "summary": format!("Harbour {n} shows low water an hour early after the clocks change"),
                "requirements": [
                    "Times are stored in UTC and shown in the harbour's zone",
                    "The day of the change has 23 or 25 hours",
                    "A test covers both changes of a year"
                ]
            }),
            Self::Prepare => json!({
                "issue_url": issue_url, "issue_number": n, "branch": branch,
                "workspace_path": format!("/srv/desk/tide-table-{n}"), "workspace_type": "worktree",
                "port": 4000 + n % 1000, "status": "ready",
                "validation": {
                    "dependencies": "147 packages from the lock file",
                    "build": "clean in 38 s", "dev_server": "answers"
                }
            }),
            Self::Implement => json!({
                "issue_url": issue_url, "issue_number": n, "pr_url": pr_url, "pr_number": pr,
                "branch": branch, "summary": format!("Harbour {n} computes in UTC and shows in its own zone"),
                "files_changed": 5 + n % 7, "tests_added": 4 + n % 9, "coverage": "91.5%",
                "commits": [
                    {"sha": sha(1), "message": "times: keep UTC until they are shown"},
                    {"sha": sha(2), "message": "zones: one table for all harbours"},
                    {"sha": sha(3), "message": "test: both changes of a year"}
                ]
            }),
            Self::Review(round) => json!({
                "pr_url": pr_url, "pr_number": pr, "issue_number": n,
                "review_status": "changes_requested",
                "critical_count": 1, "important_count": 1, "suggestion_count": 2 + round,
                "blocking_issues": [
                    {"location": format!("src/zones.rs:{}", 40 + round), "severity": "critical",
                     "description": "A harbour without a zone stops the whole page"},
                    {"location": format!("src/show.rs:{}", 110 + round), "severity": "important",
                     "description": "The hour that comes twice is shown once"}
                ]
            }),
            Self::Fix(round) => json!({
                "pr_url": pr_url, "pr_number": pr, "issue_number": n, "status": "ready-for-re-review",
                "fixes_applied": [
                    {"location": format!("src/zones.rs:{}", 40 + round),
                     "description": "A harbour without a zone is shown in UTC, and marked"},
                    {"location": format!("src/show.rs:{}", 110 + round),
                     "description": "Both hours are listed, each with its offset"}
                ],
                "commits_added": 2
            }),
            Self::Approve => json!({
                "pr_url": pr_url, "pr_number": pr, "issue_number": n, "review_status": "approved",
                "critical_count": 0, "important_count": 0,
                "summary": "Every finding is answered; nothing blocks"
            }),
            Self::Merge => json!({
                "pr_url": pr_url, "pr_number": pr, "issue_number": n, "merge_status": "merged",
                "merge_sha": sha(4), "merge_strategy": "squash",
                "validation_summary": {
                    "tests": "all 214 green", "coverage": "91.8%", "lint": "no warnings",
                    "type_check": "no errors", "security": "nothing found"
                }
            }),
            Self::Complete => json!({
                "issue_number": n, "issue_url": issue_url, "pr_number": pr, "pr_url": pr_url,
                "status": "completed", "cycle_time": "9 hours",
                "summary": format!("Harbour {n} is right on the days the clocks change"),
                "metrics": {
                    "review_iterations": 2 + n % 2, "total_commits": 5, "tests_added": 4 + n % 9,
                    "coverage": "91.8%"
                },
                "actions_taken": ["Closed the issue", "Removed the workspace"]
            }),
        };
        if let Some((from, to)) = self.kind().split_once("-to-") {
            let fields = value.as_object_mut().unwrap();
            fields.shift_insert(0, "from".to_owned(), from.into());
            fields.shift_insert(1, "to".to_owned(), to.into());
        }
        value
    }
}

/// The protocol with its schemas compiled, and the contracts it accepts.
pub struct Samples {
    pub protocol: Protocol,
    pub schemas: FolderSchemas,
}

impl Samples {
    pub fn new() -> Self {
        let folder = built_in("issue-to-pr").unwrap();
        let protocol = Protocol::load(folder.file("protocol.json").unwrap()).unwrap();
        Self {
            protocol,
            schemas: FolderSchemas::new(folder),
        }
    }

    /// A contract's text.
    pub fn text(&self, stage: Stage, issue: u32, format: Format) -> String {
        let kind = self.protocol.contract_type(stage.kind()).unwrap();
        let value = stage.value(issue);
        match format {
            Format::Json => write_json(&value),
            _ => {
                let schema = self.schemas.schema(kind).unwrap();
                write_xml(&value, schema.shape(), self.root(stage))
            }
        }
    }

    fn root(&self, stage: Stage) -> &'static str {
        if stage == Stage::Complete {
            "workflow-complete"
        } else {
            "handoff"
        }
    }

    /// Checks a text like `send` does.
    pub fn review(&self, text: &str) -> Contract {
        let reviewed = review(
            &self.protocol,
            &self.schemas,
            &Input::read(text.as_bytes()),
            None::<&IssueKey>,
        )
        .unwrap();
        reviewed
            .contract
            .unwrap_or_else(|| panic!("{:#?}\n{text}", reviewed.findings))
    }
}
