//! The places of tasks in contracts, and the states of tasks.

use handoff_base::words;
use schemars::JsonSchema;
use serde::Deserialize;

/// The places where a contract opens or completes tasks, as JSON Pointers. A list of tasks is an
/// array of names or an object with the names as keys.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFields {
    /// The task that the others are part of.
    pub parent: Option<String>,
    /// The tasks that are handed over, each as a handoff.
    pub opens: Option<String>,
    /// Their titles, by names that end with theirs, unless `opens` has them.
    pub titles: Option<String>,
    /// A list with one entry for each of them.
    pub weights: Option<String>,
    /// For each of them, the tasks that must be done first.
    pub dependencies: Option<String>,
    /// All of them, in the order of handing out.
    pub order: Option<String>,
    /// The one of them that is handed out first.
    pub start: Option<String>,
    /// Lists of tasks that can be done at once, or a text.
    pub groups: Option<String>,
    /// The task that the sender has done.
    pub completes: Option<String>,
    /// All tasks with the same parent.
    pub siblings: Option<String>,
}

words! {
    /// The state of a task.
    pub enum TaskState {
        /// It was not handed over yet.
        None = "none",
        /// It was handed over and waits to be claimed.
        Pending = "pending",
        /// It was broken down, and its parts are worked on.
        BrokenDown = "broken_down",
        /// An agent works on it.
        InProgress = "in_progress",
        /// It is done.
        Completed = "completed",
        /// It failed, and may get another attempt.
        Failed = "failed",
        /// It waits for an answer.
        Blocked = "blocked",
        /// It failed for the last time.
        Dead = "dead",
        /// Its receiver turned it down.
        Rejected = "rejected",
        /// It was given up.
        Cancelled = "cancelled",
    }
}

impl TaskState {
    /// Whether an agent works on the task, or it is done.
    pub fn is_begun(self) -> bool {
        matches!(self, Self::BrokenDown | Self::InProgress | Self::Completed)
    }
}

impl TaskFields {
    /// Every pointer that is set, by its key.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("parent", &self.parent),
            ("opens", &self.opens),
            ("titles", &self.titles),
            ("weights", &self.weights),
            ("dependencies", &self.dependencies),
            ("order", &self.order),
            ("start", &self.start),
            ("groups", &self.groups),
            ("completes", &self.completes),
            ("siblings", &self.siblings),
        ];
        all.into_iter()
            .filter_map(|(key, pointer)| Some((key, pointer.as_deref()?)))
    }
}
