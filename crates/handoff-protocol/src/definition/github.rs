//! Rules for GitHub's events: which events concern which issue, and the step that each causes.

use handoff_base::words;
use std::collections::BTreeMap;

use handoff_base::ids::AgentName;
use handoff_base::pointer::select;
use handoff_macros::apply;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The rules for GitHub's events.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Github {
    /// The rules; every one that matches is applied, in order.
    #[serde(default)]
    pub rules: Vec<EventRule>,
    /// How branches are named, such as `{type}/{issue}-*`; by default `12`, `issue-12`,
    /// `feature/12-title`, `copilot/fix-12`.
    #[serde(default)]
    pub branches: Vec<String>,
    /// The repositories that the ledger serves, if they are several, such as `octo/web`, and what the keys
    /// of their issues begin with: with `web-`, issue 12 there is `web-12`. What comes from another one
    /// changes nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub repositories: BTreeMap<String, String>,
}

words! {
    /// A kind of event that rules can match, by GitHub's name for it.
    pub enum EventKind {
        /// An issue changed.
        Issues = "issues",
        /// Somebody commented on an issue or a pull request.
        IssueComment = "issue_comment",
        /// A pull request changed.
        PullRequest = "pull_request",
        /// A pull request was reviewed.
        PullRequestReview = "pull_request_review",
        /// A workflow ran.
        WorkflowRun = "workflow_run",
        /// The checks of a commit ran.
        CheckSuite = "check_suite",
        /// Something outside GitHub set the status of a commit.
        Status = "status",
    }
}

/// Fact: the newest commit of a pull request's branch.
pub const HEAD: &str = "head";

/// Fact: the state of the noted pull request, `open` or `closed`.
pub const PULL_REQUEST_STATE: &str = "pr_state";

/// Fact: who changed the issue on GitHub, stated with the change itself.
pub const CHANGED_BY: &str = "changed_by";

/// Fact: the branch that the issue's work is merged into.
pub const BASE: &str = "base";

/// Fact: the code branch.
pub const BRANCH: &str = "branch";

/// Fact: the number of the issue's pull request.
pub const PULL_REQUEST: &str = "pr_number";

impl EventKind {
    /// The fact that states since when the facts of such an event have held.
    pub fn since_fact(self) -> String {
        format!("{}_at", self.as_str())
    }

    /// The kind of the event that GitHub calls so.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "issues" => Self::Issues,
            "issue_comment" => Self::IssueComment,
            // The same event, for workflows that run on the base branch.
            "pull_request" | "pull_request_target" => Self::PullRequest,
            "pull_request_review" => Self::PullRequestReview,
            "workflow_run" => Self::WorkflowRun,
            "check_suite" => Self::CheckSuite,
            "status" => Self::Status,
            _ => return None,
        })
    }
}

words! {
    /// What a person may do in a repository, as GitHub says it; each can do what those before can.
    pub enum Permission {
        /// Nothing, or what everybody can.
        None = "none",
        /// Read and comment.
        Read = "read",
        /// Manage issues and pull requests.
        Triage = "triage",
        /// Push.
        Write = "write",
        /// Manage the repository.
        Maintain = "maintain",
        /// Everything.
        Admin = "admin",
    }
}

/// A rule for events.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventRule {
    /// Its name, in lower-case letters, digits and `-`; with the delivery, it identifies an effect.
    pub name: String,
    /// Its events, each with actions (all, if empty): `issues`, `issue_comment`, `pull_request`
    /// (and `…_target`), `pull_request_review`, `workflow_run`, `check_suite`, `status`.
    pub on: BTreeMap<EventKind, Vec<String>>,
    /// Pointers into the payload, with the required value or several; `null` is missing, `*` any
    /// item.
    #[serde(default)]
    pub when: BTreeMap<String, Condition>,
    /// Whether it applies to branches of other repositories, which prove nothing here; by default
    /// not.
    #[serde(default)]
    pub forks: bool,
    /// What the author of a comment or review must be permitted, as `--permission` proves.
    pub needs: Option<Permission>,
    /// The agent in whose name the step is recorded.
    #[serde(rename = "as")]
    pub agent: AgentName,
    /// A note on the issue, as by `annotate`.
    pub note: Option<String>,
    /// Facts for the note, by the names of skeletons, if the payload has them.
    #[serde(default)]
    pub facts: BTreeMap<String, Source>,
    /// Whether only facts that differ from what is known are noted.
    #[serde(default)]
    pub only_changes: bool,
    /// What else is done: see below.
    #[serde(default, rename = "do", deserialize_with = "effect")]
    pub effect: Option<Effect>,
}

/// Reads an effect; `"pause"` is short for one without exceptions.
fn effect<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Effect>, D::Error> {
    struct Reader;
    impl<'de> Visitor<'de> for Reader {
        type Value = Effect;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an effect, such as \"answer\" or {\"send\": …}")
        }

        fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Effect, E> {
            match word {
                "pause" => Ok(Effect::Pause(PauseRule::default())),
                word => Effect::deserialize(word.into_deserializer()),
            }
        }

        fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Effect, M::Error> {
            Effect::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(Reader).map(Some)
}

/// The value that a payload must have at one place.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a text, a number, true, false or null, or a list of them"
)]
pub enum Condition {
    /// One of these values.
    Among(Vec<Value>),
    /// This value.
    Is(Value),
}

impl Condition {
    /// The accepted values; `null` also accepts a missing value.
    pub fn values(&self) -> &[Value] {
        match self {
            Self::Among(values) => values,
            Self::Is(value) => std::slice::from_ref(value),
        }
    }

    /// Whether any value found at a pointer is accepted.
    pub fn holds(&self, found: &[&Value]) -> bool {
        match found {
            [] => self.values().contains(&Value::Null),
            found => found.iter().any(|value| self.values().contains(value)),
        }
    }
}

words! {
    /// A command in a comment or a review: a line `/handoff COMMAND …`.
    pub enum Command {
        /// Answers an open question.
        Answer = "answer",
        /// Approves what a handoff hands on, in the name of a person.
        Approve = "approve",
        /// Gives failed or dead work another attempt.
        Retry = "retry",
        /// Gives a handoff to another agent.
        Assign = "assign",
        /// Withdraws a handoff.
        Cancel = "cancel",
        /// Changes nothing; the comment about the issue is written again.
        Status = "status",
    }
}

/// An effect besides the note.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
#[schemars(transform = with_short_pause)]
pub enum Effect {
    /// Sends a contract if the event and the ledger provide all of it; otherwise drafts it. If the
    /// agent has not taken up yet what it would go on from, that is claimed for it.
    Send(ContractRule),
    /// Drafts a contract for the agent to finish.
    Draft(ContractRule),
    /// Carries out the commands in a comment or a review (`/handoff retry`, …) that are in this list,
    /// if the author is permitted to write to the repository: `answer`, `approve` (in the name of the
    /// rule's agent if it is a person, else of the protocol's only person), `retry`, `assign`,
    /// `cancel`, `status`.
    Commands(Vec<Command>),
    /// The same as the commands `answer` and `status`.
    Answer,
    /// Reopens a completed or cancelled issue, or resumes a paused one.
    Reopen,
    /// Pauses the issue: nobody is handed its work until it is reopened.
    Pause(PauseRule),
    /// Cancels the open handoffs.
    Cancel,
}

/// A pause, which `"pause"` stands for if it has no members.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseRule {
    /// The agents that go on all the same.
    #[serde(default)]
    pub except: Vec<AgentName>,
}

schemars::generated! {
    /// Adds the short form of a pause to the schema of effects.
    fn with_short_pause(schema: &mut schemars::Schema) {
        if let Some(serde_json::Value::Array(forms)) = schema.get_mut("oneOf") {
            forms.push(serde_json::json!({"type": "string", "const": "pause"}));
        }
    }
}

impl Effect {
    /// The commands that it carries out.
    pub fn commands(&self) -> &[Command] {
        match self {
            Self::Commands(commands) => commands,
            Self::Answer => &[Command::Answer, Command::Status],
            _ => &[],
        }
    }
}

/// A contract with the values to take from an event.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContractRule {
    /// Its type.
    pub contract: String,
    /// The agent to send it to.
    pub to: AgentName,
    /// Values from the payload, by their place in the contract.
    #[serde(default)]
    pub fields: BTreeMap<String, Source>,
    /// What opens an issue if the event lacks something.
    pub unfinished: Option<Unfinished>,
}

/// A contract from the rule's agent to itself, which opens the issue with what the event has: the
/// agent goes on from it with the rule's own contract. What changes until then is noted on it; and
/// once nothing is missing any more, the rule's contract is sent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unfinished {
    /// Its type, with the same places; its summary says what is missing.
    pub contract: String,
    /// The place of the list of what is missing.
    pub missing: String,
    /// The actions of events that open an issue; all, if empty.
    #[serde(default)]
    pub actions: Vec<String>,
}

impl Unfinished {
    /// Whether an event with this action opens an issue.
    pub fn begins_with(&self, action: Option<&str>) -> bool {
        self.actions.is_empty()
            || action.is_some_and(|action| self.actions.iter().any(|a| a == action))
    }
}

/// The source of a value in a payload.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a JSON Pointer or {\"at\": POINTER or a list of them, …}"
)]
pub enum Source {
    /// The value at this JSON Pointer.
    At(String),
    /// The value that this rule selects.
    Rule(Box<SourceRule>),
}

/// How to select a value from a payload.
#[apply(
    Vec => #[serde(default)],
    BTreeMap => #[serde(default)],
)]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceRule {
    /// The pointers, with `*` for every item; the first that finds something.
    pub at: Vec<String>,
    /// The part: `value` (of a text its first line, 1,000 characters), `line` (the first of a
    /// Markdown text), `text` (4,000 characters), `items` (of lists, 200) or `each` (all places).
    #[serde(default)]
    pub take: Take,
    /// Only the text under the first heading of one of these words.
    pub under: Vec<String>,
    /// Words before a text of `map`: `priority` for `priority: high`, `priority/high`.
    pub prefixes: Vec<String>,
    /// The value for each text, in any case; others do not count.
    pub map: BTreeMap<String, Value>,
    /// The value if the payload has none.
    pub default: Option<Value>,
}

/// The part of a payload's value to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Take {
    /// A number or a boolean unchanged; a text as one line.
    #[default]
    Value,
    /// The first non-empty line of a text.
    Line,
    /// All of a text.
    Text,
    /// The items of a text's lists.
    Items,
    /// Every value, in a list.
    Each,
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
    /// Whether it matches an event of this kind and action.
    pub fn is_about(&self, kind: EventKind, action: Option<&str>) -> bool {
        let actions = self.on.get(&kind);
        let named = |actions: &Vec<String>| {
            actions.is_empty() || action.is_some_and(|action| actions.iter().any(|a| a == action))
        };
        actions.is_some_and(named)
    }

    /// The first pointer at which a payload does not match, if any.
    pub fn unmet(&self, payload: &Value) -> Option<&str> {
        let mut unmet = self
            .when
            .iter()
            .filter(|(pointer, condition)| !condition.holds(&select(payload, pointer)));
        unmet.next().map(|(pointer, _)| pointer.as_str())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Condition, Effect, EventRule};
    use serde_json::json;

    #[test]
    fn a_pause_has_a_short_form() {
        let read = |effect: serde_json::Value| {
            let rule = json!({"name": "n", "on": {}, "as": "a", "do": effect});
            serde_json::from_value::<EventRule>(rule)
        };
        let except = |effect| match read(effect).unwrap().effect {
            Some(Effect::Pause(pause)) => pause.except.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(except(json!("pause")), 0);
        assert_eq!(except(json!({"pause": {}})), 0);
        assert_eq!(except(json!({"pause": {"except": ["a", "b"]}})), 2);
        let text = read(json!("stop")).unwrap_err().to_string();
        assert!(text.contains("unknown variant `stop`"), "{text}");
        assert!(read(json!({"pause": {"but": []}})).is_err());
    }

    #[test]
    fn what_is_not_there_is_null() {
        let among: Condition = serde_json::from_value(json!(["open", null])).unwrap();
        assert!(among.holds(&[]) && among.holds(&[&json!(null)]) && among.holds(&[&json!("open")]));
        let is: Condition = serde_json::from_value(json!(false)).unwrap();
        assert!(is.holds(&[&json!(false)]) && !is.holds(&[]) && !is.holds(&[&json!(true)]));
    }
}
