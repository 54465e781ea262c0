//! Harnesses of agents: what is written into a repository so that an agent there knows of the
//! ledger.
//!
//! Which harness reads what from where is data, in `templates/agents/harnesses.json`. `json`
//! edits a configuration without touching the rest of its text, `guide` is the marked block in a
//! file of instructions, `plan` says what changes and carries it out, `doctor` says what would
//! not run. Nothing here knows of ledgers.

mod doctor;
mod guide;
mod json;
mod plan;

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

pub use doctor::{Surroundings, examine};
pub use plan::{Action, AgentsError, Change, Plan};

/// The text of the skill.
const SKILL: &str = include_str!("../../templates/agents/SKILL.md");

/// A harness: which files it reads, and in which form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Harness {
    /// Its name in commands.
    pub name: String,
    /// Its own name.
    pub title: String,
    /// The file of instructions that it reads.
    pub instructions: String,
    /// Where it looks for the skill.
    #[serde(default)]
    pub skill: Option<String>,
    /// Its hooks.
    #[serde(default)]
    pub hooks: Option<Hooks>,
    /// Where it takes MCP servers from.
    #[serde(default)]
    pub mcp: Option<Mcp>,
    /// What a hook answers to add a text when a session begins.
    #[serde(default)]
    start: Value,
    /// What a hook answers to have the agent go on.
    #[serde(default)]
    stop: Value,
    /// What switches its hooks off.
    #[serde(default)]
    switches: Vec<Switch>,
    /// What else is needed, which no file shows.
    #[serde(default)]
    pub note: Option<String>,
}

/// The file that a harness takes hooks from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hooks {
    /// Its path.
    pub file: String,
    /// What it is without hooks.
    empty: String,
    entries: Vec<Entry>,
}

/// A hook in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    event: Event,
    /// The keys that lead to the list of such hooks.
    at: Vec<String>,
    value: Value,
}

/// Where a harness takes MCP servers from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// The file.
    pub file: String,
    /// The keys that lead to the servers.
    at: Vec<String>,
    value: Value,
}

/// What switches hooks off: a key that is true, or a line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    file: String,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    line: Option<String>,
}

/// When a harness runs a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A session begins.
    SessionStart,
    /// The agent is about to stop.
    Stop,
}

impl Event {
    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session-start",
            Self::Stop => "stop",
        }
    }
}

/// Every harness.
pub static HARNESSES: LazyLock<Vec<Harness>> = LazyLock::new(|| {
    let table = include_str!("../../templates/agents/harnesses.json");
    serde_json::from_str(table).expect("the table ships with the program, and a test reads it")
});

impl Harness {
    /// Finds one by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        HARNESSES.iter().find(|harness| harness.name == name)
    }

    /// What a hook prints so that the harness gives this text to the agent.
    pub fn answer(&self, event: Event, text: &str) -> Value {
        let form = match event {
            Event::SessionStart => &self.start,
            Event::Stop => &self.stop,
        };
        filled(form, "{{text}}", text)
    }

    /// Says whether the agent goes on already because a hook had it go on, or was made to stop:
    /// then it may stop.
    pub fn may_stop(input: &Value) -> bool {
        let loops = input["loop_count"].as_u64().unwrap_or(0);
        let status = input["status"].as_str().unwrap_or("completed");
        input["stop_hook_active"] == true || loops > 0 || status != "completed"
    }

    /// The command of a hook. Where the program is missing, it does nothing: the hook is shared
    /// with people who may not have it.
    fn command(&self, event: Event, agent: Option<&str>) -> String {
        let agent = agent.map(|agent| format!(" --as {agent}"));
        let call = format!(
            "{CALL} {} {}{}",
            self.name,
            event.name(),
            agent.unwrap_or_default()
        );
        format!("if command -v git-handoff >/dev/null 2>&1; then {call}; fi")
    }

    /// The entries of its hooks, and where they belong.
    fn entries(&self, agent: Option<&str>) -> Vec<(Vec<&str>, Value)> {
        let entries = self.hooks.iter().flat_map(|hooks| &hooks.entries);
        let entry = |entry: &'_ Entry| {
            let command = self.command(entry.event, agent);
            filled(&entry.value, "{{command}}", &command)
        };
        entries
            .map(|e| (e.at.iter().map(String::as_str).collect(), entry(e)))
            .collect()
    }
}

/// What every hook of ours calls.
const CALL: &str = "git-handoff agents hook";

/// Says whether an entry of a configuration is one of ours.
fn is_ours(entry: &Value) -> bool {
    match entry {
        Value::String(text) => text.contains(CALL),
        Value::Array(items) => items.iter().any(is_ours),
        Value::Object(members) => members.values().any(is_ours),
        _ => false,
    }
}

/// The agent that an entry of ours names.
fn agent_of(entry: &Value) -> Option<String> {
    match entry {
        Value::String(text) => {
            let (_, rest) = text.split_once(CALL)?.1.split_once(" --as ")?;
            let end = rest.find([';', ' ']).unwrap_or(rest.len());
            Some(rest[..end].to_owned())
        }
        Value::Array(items) => items.iter().find_map(agent_of),
        Value::Object(members) => members.values().find_map(agent_of),
        _ => None,
    }
}

/// A form with a text in its place.
fn filled(form: &Value, mark: &str, text: &str) -> Value {
    match form {
        Value::String(own) if own == mark => text.into(),
        Value::Array(items) => items.iter().map(|item| filled(item, mark, text)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let filled = members.map(|(name, value)| (name.clone(), filled(value, mark, text)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, HARNESSES, Harness, agent_of, is_ours};
    use serde_json::json;

    #[test]
    fn the_table_of_harnesses_is_whole() {
        assert_eq!(HARNESSES.len(), 5);
        for harness in HARNESSES.iter() {
            for event in [Event::SessionStart, Event::Stop] {
                let answer = harness.answer(event, "a text").to_string();
                assert_eq!(harness.hooks.is_some(), answer.contains("\"a text\""));
            }
            for (at, entry) in harness.entries(Some("fixer-agent")) {
                assert_eq!(at.len(), 2, "{}", harness.name);
                assert!(is_ours(&entry), "{entry}");
                assert_eq!(agent_of(&entry).as_deref(), Some("fixer-agent"));
            }
        }
    }

    #[test]
    fn nobody_is_kept_for_ever() {
        for input in [
            json!({ "stop_hook_active": true }),
            json!({ "loop_count": 1, "status": "completed" }),
            json!({ "loop_count": 0, "status": "aborted" }),
        ] {
            assert!(Harness::may_stop(&input), "{input}");
        }
        for input in [json!({}), json!(null), json!({ "stop_hook_active": false })] {
            assert!(!Harness::may_stop(&input), "{input}");
        }
    }
}
