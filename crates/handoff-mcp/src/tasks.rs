//! Tasks: calls that wait for other agents, with results that the client fetches later.
//!
//! In version 2025-11-25, the client requests a task and fetches its result with `tasks/result`.
//! From 2026-07-28 on, tasks are an extension: if the client supports it, each call that waits
//! becomes a task, and `tasks/get` returns its result.

use std::time::{Duration, Instant};

use chrono::SecondsFormat;
use handoff::base::Moment;
use handoff::base::text::quoted;
use serde_json::{Value, json};

use super::message::{Answer, INVALID_PARAMS, error, response};
use handoff_cli::context::worker::random_worker;
use handoff_cli::environment::system_time;

/// The extension's name.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The default time limit of a call that is a task.
pub(super) const WAIT: &str = "30m";

/// The maximum lifetime of a task.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The suggested polling interval, in milliseconds.
const POLL: u64 = 1_000;

/// The number of tasks on a page of the list.
const PAGE: usize = 100;

/// The forms of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Part of version 2025-11-25.
    Requested,
    /// The extension.
    Extension,
}

/// The tasks of a connection, the oldest first.
#[derive(Default)]
pub(super) struct Tasks {
    all: Vec<Task>,
}

struct Task {
    id: String,
    created: Moment,
    updated: Moment,
    begin: Instant,
    kept: Duration,
    state: State,
    /// The requests that wait for its result.
    waiting: Vec<Value>,
}

enum State {
    Working,
    Cancelled,
    Over(Answer),
}

impl Tasks {
    /// Adds a task that expires after this many milliseconds. Returns its id.
    pub(super) fn add(&mut self, kept: Option<u64>) -> String {
        let id = random_worker("task");
        let now = system_time();
        self.all.push(Task {
            id: id.clone(),
            created: now,
            updated: now,
            begin: Instant::now(),
            kept: kept.map_or(KEPT, |kept| Duration::from_millis(kept).min(KEPT)),
            state: State::Working,
            waiting: Vec::new(),
        });
        id
    }

    /// Drops expired tasks. Returns those that were still running.
    pub(super) fn expire(&mut self) -> Vec<String> {
        let is_old = |task: &mut Task| task.begin.elapsed() > task.kept && task.waiting.is_empty();
        let old = self.all.extract_if(.., is_old);
        let running = old.filter(|task| matches!(task.state, State::Working));
        running.map(|task| task.id).collect()
    }

    /// A task in the client's format.
    pub(super) fn shown(&self, id: &Value, form: Form) -> Answer {
        Ok(self.find(id)?.shown(form))
    }

    /// A page of the tasks.
    pub(super) fn list(&self, cursor: Option<&str>) -> Answer {
        let begin = cursor.map_or(Ok(0), str::parse::<usize>);
        let begin = begin.map_err(|_| error(INVALID_PARAMS, "the cursor is invalid"))?;
        let page = self.all.iter().skip(begin).take(PAGE);
        let page: Vec<Value> = page.map(|task| task.shown(Form::Requested)).collect();
        let mut list = json!({ "tasks": page });
        if begin.saturating_add(PAGE) < self.all.len() {
            list["nextCursor"] = (begin + PAGE).to_string().into();
        }
        Ok(list)
    }

    /// A task's result; `None` if the request is answered later.
    pub(super) fn result(&mut self, id: &Value, request: Value) -> Result<Option<Value>, Value> {
        let task = self.find_mut(id)?;
        match task.result() {
            Some(answer) => answer.map(Some),
            None => {
                task.waiting.push(request);
                Ok(None)
            }
        }
    }

    /// Ends a task. Returns the responses to requests that wait for its result.
    pub(super) fn finish(&mut self, id: &str, answer: Answer) -> Vec<Value> {
        match self.find_mut(&id.into()) {
            Ok(task) => task.end(State::Over(answer)),
            Err(_) => Vec::new(),
        }
    }

    /// Cancels a task. Returns the responses to requests that wait for its result.
    ///
    /// # Errors
    /// The error to answer if there is no such task, or it has ended.
    pub(super) fn cancel(&mut self, id: &Value) -> Result<Vec<Value>, Value> {
        let task = self.find_mut(id)?;
        match task.state {
            State::Working => Ok(task.end(State::Cancelled)),
            _ => Err(error(INVALID_PARAMS, "the task has ended")),
        }
    }

    /// Whether a task has ended.
    pub(super) fn is_over(&self, id: &Value) -> Result<bool, Value> {
        Ok(!matches!(self.find(id)?.state, State::Working))
    }

    /// Drops a request that waits for a result.
    pub(super) fn forget(&mut self, request: &Value) {
        for task in &mut self.all {
            task.waiting.retain(|waiting| waiting != request);
        }
    }

    fn find(&self, id: &Value) -> Result<&Task, Value> {
        let found = self.all.iter().find(|task| *id == task.id);
        found.ok_or_else(|| unknown(id))
    }

    fn find_mut(&mut self, id: &Value) -> Result<&mut Task, Value> {
        let found = self.all.iter_mut().find(|task| *id == task.id);
        found.ok_or_else(|| unknown(id))
    }
}

fn unknown(id: &Value) -> Value {
    let id = id.as_str().map_or_else(|| id.to_string(), quoted);
    error(INVALID_PARAMS, format!("there is no task {id}"))
}

impl Task {
    fn end(&mut self, state: State) -> Vec<Value> {
        self.state = state;
        self.updated = system_time();
        let waiting = std::mem::take(&mut self.waiting);
        let answers = waiting
            .into_iter()
            .filter_map(|id| Some(response(Some(id), self.result()?)));
        answers.collect()
    }

    fn shown(&self, form: Form) -> Value {
        let status = match &self.state {
            State::Working => "working",
            State::Cancelled => "cancelled",
            State::Over(Err(_)) => "failed",
            State::Over(Ok(result)) if form == Form::Requested && result["isError"] == true => {
                "failed"
            }
            State::Over(Ok(_)) => "completed",
        };
        let at = |moment: Moment| moment.to_rfc3339_opts(SecondsFormat::Millis, true);
        let kept = u64::try_from(self.kept.as_millis()).unwrap_or(u64::MAX);
        let (ttl, poll) = match form {
            Form::Requested => ("ttl", "pollInterval"),
            Form::Extension => ("ttlMs", "pollIntervalMs"),
        };
        let mut shown = json!({
            "taskId": self.id,
            "status": status,
            "createdAt": at(self.created),
            "lastUpdatedAt": at(self.updated),
            (ttl): kept,
            (poll): POLL,
        });
        match &self.state {
            State::Over(Ok(result)) if form == Form::Extension => shown["result"] = result.clone(),
            State::Over(Err(error)) if form == Form::Extension => shown["error"] = error.clone(),
            _ => {}
        }
        shown
    }

    /// The response that the call would have had without a task, with the task's id; `None` while
    /// it runs.
    fn result(&self) -> Option<Answer> {
        match &self.state {
            State::Working => None,
            State::Cancelled => Some(Err(error(INVALID_PARAMS, "the task was cancelled"))),
            State::Over(Err(error)) => Some(Err(error.clone())),
            State::Over(Ok(result)) => {
                let mut result = result.clone();
                result["_meta"]["io.modelcontextprotocol/related-task"] =
                    json!({ "taskId": self.id });
                Some(Ok(result))
            }
        }
    }
}
