//! What follows from GitHub's events: which of them say something about an issue, what it
//! is, and which agent's step it becomes.

use std::collections::BTreeMap;

use handoff_base::ids::AgentName;
use handoff_base::pointer::parts;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What follows from GitHub's events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Github {
    /// The rules; every one that applies to an event is carried out, in this order.
    pub rules: Vec<EventRule>,
}

/// A kind of event that rules can be about, by the name that GitHub has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Something happened to an issue.
    Issues,
    /// Something was said on an issue or on a pull request.
    IssueComment,
    /// Something happened to a pull request.
    PullRequest,
    /// A pull request was reviewed.
    PullRequestReview,
    /// A workflow ran.
    WorkflowRun,
    /// The checks of a commit ran.
    CheckSuite,
}

impl EventKind {
    /// The kind of an event, from its name.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "issues" => Self::Issues,
            "issue_comment" => Self::IssueComment,
            // The same event, for a workflow of the base branch.
            "pull_request" | "pull_request_target" => Self::PullRequest,
            "pull_request_review" => Self::PullRequestReview,
            "workflow_run" => Self::WorkflowRun,
            "check_suite" => Self::CheckSuite,
            _ => return None,
        })
    }

    /// GitHub's name for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Issues => "issues",
            Self::IssueComment => "issue_comment",
            Self::PullRequest => "pull_request",
            Self::PullRequestReview => "pull_request_review",
            Self::WorkflowRun => "workflow_run",
            Self::CheckSuite => "check_suite",
        }
    }
}

/// What follows from events that have something in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRule {
    /// Its name, in the protocol its own.
    pub name: String,
    /// The events that it is about, each with the actions; with all, if it names none.
    pub on: BTreeMap<EventKind, Vec<String>>,
    /// What the payload must say at a JSON Pointer, in which `*` is every item of a list.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Condition>,
    /// Whether it is also about what comes from another repository than this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forks: bool,
    /// The agent whose step it is.
    #[serde(rename = "as")]
    pub agent: AgentName,
    /// What is noted beside the issue, together with the facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The facts, by the names that skeletons have for them, and where the payload has
    /// them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Source>,
    /// What else is done.
    #[serde(default, rename = "do", skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

/// What a payload must say at one place.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a text, a number, true, false or null, or a list of them"
)]
pub enum Condition {
    /// One of these.
    Among(Vec<Value>),
    /// This.
    Is(Value),
}

impl Condition {
    /// The values that are right; null is also what is not there.
    pub fn values(&self) -> &[Value] {
        match self {
            Self::Among(values) => values,
            Self::Is(value) => std::slice::from_ref(value),
        }
    }

    /// Says whether one of what a pointer leads to is right.
    pub fn holds(&self, found: &[&Value]) -> bool {
        match found {
            [] => self.values().contains(&Value::Null),
            found => found.iter().any(|value| self.values().contains(value)),
        }
    }
}

/// What is done beside what is noted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Effect {
    /// Sends a contract, if the event and the ledger say all of it; else it is a draft.
    Send(ContractRule),
    /// Begins a contract, for the agent to finish.
    Draft(ContractRule),
    /// Answers what is asked, if someone who may write to the repository says so.
    Answer,
    /// Opens a completed issue again.
    Reopen,
    /// Withdraws what is open.
    Cancel,
}

/// A contract, and what an event says of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractRule {
    /// Its type.
    pub contract: String,
    /// The agent that it goes to.
    pub to: AgentName,
    /// What the payload has, by the place in the contract: a JSON Pointer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Source>,
}

/// Where a payload has a value.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a JSON Pointer or {\"at\": POINTER or a list of them, …}"
)]
pub enum Source {
    /// At this JSON Pointer.
    At(String),
    /// As this says.
    Rule(Box<SourceRule>),
}

/// How a value is had from a payload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRule {
    /// The JSON Pointers, in which `*` is every item of a list; the first that leads to
    /// something counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// What is taken of it.
    #[serde(default)]
    pub take: Take,
    /// Of a text, only what stands under a heading that says one of these words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under: Vec<String>,
    /// The value for each text; what is not among them does not count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub map: BTreeMap<String, Value>,
    /// The value where the payload has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// What is taken of what a payload has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Take {
    /// A number, true or false as it is; a text as one line.
    #[default]
    Value,
    /// The first line of a text that says something.
    Line,
    /// The items of a text's lists.
    Items,
}

impl Source {
    /// The JSON Pointers.
    pub fn pointers(&self) -> &[String] {
        match self {
            Self::At(pointer) => std::slice::from_ref(pointer),
            Self::Rule(rule) => &rule.at,
        }
    }
}

impl EventRule {
    /// Says whether it is about events of a kind with an action.
    pub fn is_about(&self, kind: EventKind, action: Option<&str>) -> bool {
        let actions = self.on.get(&kind);
        let named = |actions: &Vec<String>| {
            actions.is_empty() || action.is_some_and(|action| actions.iter().any(|a| a == action))
        };
        actions.is_some_and(named)
    }

    /// The first place at which a payload does not say what it must, and what is there.
    pub fn unmet(&self, payload: &Value) -> Option<&str> {
        let mut unmet = self
            .when
            .iter()
            .filter(|(pointer, condition)| !condition.holds(&select(payload, pointer)));
        unmet.next().map(|(pointer, _)| pointer.as_str())
    }
}

/// What a JSON Pointer leads to, in which `*` is every item of a list.
pub fn select<'v>(value: &'v Value, pointer: &str) -> Vec<&'v Value> {
    let mut here = vec![value];
    for part in parts(pointer) {
        let below = |value: &'v Value| -> Vec<&'v Value> {
            match value {
                Value::Array(items) if part == "*" => items.iter().collect(),
                Value::Array(items) => {
                    let item = part.parse::<usize>().ok().and_then(|at| items.get(at));
                    item.into_iter().collect()
                }
                Value::Object(members) => members.get(&part).into_iter().collect(),
                _ => Vec::new(),
            }
        };
        here = here.into_iter().flat_map(below).collect();
    }
    here
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Condition, select};
    use serde_json::json;

    #[test]
    fn a_pointer_can_lead_to_every_item() {
        let value = json!({"labels": [{"name": "bug"}, {"name": "high"}, 3], "x": {"*": 1}});
        assert_eq!(
            select(&value, "/labels/*/name"),
            [&json!("bug"), &json!("high")]
        );
        assert_eq!(select(&value, "/labels/1/name"), [&json!("high")]);
        assert_eq!(select(&value, "/x/*"), [&json!(1)]);
        assert!(select(&value, "/labels/name").is_empty());
    }

    #[test]
    fn what_is_not_there_is_null() {
        let among: Condition = serde_json::from_value(json!(["open", null])).unwrap();
        assert!(among.holds(&[]) && among.holds(&[&json!(null)]) && among.holds(&[&json!("open")]));
        let is: Condition = serde_json::from_value(json!(false)).unwrap();
        assert!(is.holds(&[&json!(false)]) && !is.holds(&[]) && !is.holds(&[&json!(true)]));
    }
}
