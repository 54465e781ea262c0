//! Agents' harnesses: files in a repository that tell agents about the ledger.
//!
//! Which harness reads which file is data, in `templates/agents/harnesses.json`. `json` edits a
//! configuration in place, `guide` edits the marked block of an instructions file, `placement`
//! decides which files have one, `table` edits a server in TOML, `plan` computes and applies
//! changes, `leftovers` finds temporary files, `consent` checks what a person must allow, `doctor`
//! diagnoses an installation. Nothing here reads a ledger.

mod consent;
mod doctor;
mod guide;
mod leftovers;
mod placement;
mod plan;
mod table;

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use consent::Consent;

pub use doctor::{Surroundings, examine, is_installed};
pub use plan::{Action, AgentsError, Change, Plan};

use handoff::base::ids::AgentName;
use handoff::base::text::quoted_word;

const SKILL: &str = include_str!("../../agents/SKILL.md");

/// A harness: which files it reads, and their format.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Harness {
    /// Its name on the command line.
    pub name: String,
    /// Its product name.
    pub title: String,
    /// The instructions file that it reads.
    pub instructions: String,
    /// The import line for its instructions file, if other harnesses also read that file.
    import: Option<String>,
    /// The conditions under which it also reads `AGENTS.md`.
    agents_md: Option<AgentsMd>,
    /// The path of its skill.
    pub skill: Option<String>,
    /// The configuration of its hooks.
    pub hooks: Option<Hooks>,
    /// The configuration of its MCP servers.
    pub mcp: Option<Mcp>,
    /// The hook output that adds text to a new session.
    #[serde(default)]
    start: Value,
    /// The hook output that makes the agent continue.
    #[serde(default)]
    stop: Value,
    /// Settings that disable its hooks.
    #[serde(default)]
    switches: Vec<Switch>,
    /// Its program, and the tested version.
    pub program: Option<HarnessProgram>,
    /// What a person must allow.
    #[serde(default)]
    consents: Vec<Consent>,
    /// A required step that no file can show.
    pub note: Option<String>,
}

/// A harness's program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HarnessProgram {
    /// Its name on the PATH.
    pub name: String,
    /// The version that the installed files were tested with.
    tried: String,
}

/// The conditions under which a harness also reads `AGENTS.md`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentsMd {
    /// Instructions files of its own that may import it.
    pages: Vec<String>,
    /// Whether it reads `AGENTS.md` if none of these files exists.
    alone: bool,
}

/// The configuration file of a harness's hooks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hooks {
    /// The file's path.
    pub file: String,
    /// The file's content without any hook.
    empty: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    event: Event,
    /// The keys that lead to the list of hooks.
    at: Vec<String>,
    value: Value,
}

/// The configuration file of a harness's MCP servers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// The file's path.
    pub file: String,
    /// The keys that lead to the servers.
    at: Vec<String>,
    value: Value,
    /// Members that the harness requires; if they were missing, it would add them itself.
    #[serde(default)]
    with: Map<String, Value>,
}

impl Mcp {
    /// Whether the file is TOML; else it is JSON.
    fn is_toml(&self) -> bool {
        self.file.ends_with(".toml")
    }
}

/// A setting that disables hooks: a key that is true, or a line of text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    file: String,
    key: Option<String>,
    line: Option<String>,
}

/// When a harness runs a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A session starts.
    SessionStart,
    /// The agent is about to stop.
    Stop,
}

impl Event {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session-start",
            Self::Stop => "stop",
        }
    }
}

/// Every supported harness.
pub static HARNESSES: LazyLock<Vec<Harness>> = LazyLock::new(|| {
    let table = include_str!("../../agents/harnesses.json");
    serde_json::from_str(table).expect("the table ships with the program, and a test reads it")
});

impl Harness {
    /// Finds a harness by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        HARNESSES.iter().find(|harness| harness.name == name)
    }

    /// The files that are installed for this harness, except the configuration of MCP servers.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let hooks = self.hooks.as_ref().map(|hooks| &hooks.file);
        let files = [Some(&self.instructions), self.skill.as_ref(), hooks];
        files.into_iter().flatten().map(String::as_str)
    }

    /// The output of a hook that passes a text to the agent.
    pub fn answer(&self, event: Event, text: &str) -> Value {
        let form = match event {
            Event::SessionStart => &self.start,
            Event::Stop => &self.stop,
        };
        filled(form, "{{text}}", text)
    }

    /// Whether the agent was already kept from stopping, by the hook's input.
    pub fn kept_before(input: &Value) -> Kept {
        let status = input["status"].as_str().unwrap_or("completed");
        let session = ["session_id", "sessionId"];
        let session = session.iter().find_map(|key| input[*key].as_str());
        match (input.get("stop_hook_active"), input.get("loop_count")) {
            _ if status != "completed" => Kept::Perhaps,
            (Some(active), None) if *active == false => Kept::No,
            (None, Some(count)) if *count == 0 => Kept::No,
            (Some(active), Some(count)) if *active == false && *count == 0 => Kept::No,
            (None, None) => match session.filter(|id| !id.is_empty()) {
                Some(id) => Kept::Ask(id.to_owned()),
                None => Kept::Perhaps,
            },
            _ => Kept::Perhaps,
        }
    }

    /// A hook's command. It does nothing if the program is missing, because the hook is shared with
    /// people who may not have it, and never fails: a program without this command must not block
    /// anybody.
    fn command(&self, event: Event, acts: &Acts) -> String {
        let call = format!("{CALL} {} {}", self.name, event.name());
        let options = acts.options().into_iter();
        let options: String = options
            .map(|(option, value)| match option {
                BRANCH => format!(" {option} {}", quoted_word(value)),
                option => format!(" {option} {value}"),
            })
            .collect();
        format!("{BEFORE}{call}{options} || :; fi")
    }

    /// The agent and branch in a command, if this or an earlier version wrote it.
    fn acts_in(&self, event: Event, command: &str) -> Option<Acts> {
        let call = format!("{BEFORE}{CALL} {} {} ", self.name, event.name());
        let rest = command.strip_prefix(&call)?;
        let (options, branch) = match rest.split_once("--branch '") {
            Some((options, branch)) => (options, branch.strip_suffix("' || :; fi")),
            None => (rest, None),
        };
        let agent = options.trim_start().strip_prefix("--as ");
        let agent = agent.map(|rest| rest.split([' ', ';']).next().unwrap_or_default());
        let acts = Acts {
            agent: agent.and_then(|agent| agent.parse::<AgentName>().ok().map(|a| a.to_string())),
            branch: branch.map(|branch| branch.replace("'\\''", "'")),
        };
        let earlier = acts.agent.as_ref();
        let earlier = earlier.map_or_else(String::new, |agent| format!(" --as {agent}"));
        let is_ours =
            command == self.command(event, &acts) || command == format!("{call}{earlier}; fi");
        is_ours.then_some(acts)
    }

    /// Its expected hooks, with the keys of their lists.
    fn entries(&self, acts: &Acts) -> Vec<ExpectedHook<'_>> {
        let entries = self.hooks.iter().flat_map(|hooks| &hooks.entries);
        let expected = entries.map(|entry| ExpectedHook {
            harness: self,
            event: entry.event,
            at: entry.at.iter().map(String::as_str).collect(),
            entry: filled(
                &entry.value,
                "{{command}}",
                &self.command(entry.event, acts),
            ),
        });
        expected.collect()
    }

    fn server(&self, acts: &Acts) -> Option<(&Mcp, Value)> {
        let mcp = self.mcp.as_ref()?;
        let mut server = mcp.value.clone();
        // Some harnesses take the program and its arguments as one list.
        for list in ["args", "command"] {
            if let Some(Value::Array(arguments)) = server.get_mut(list) {
                for (option, value) in acts.options() {
                    arguments.extend([Value::from(option), Value::from(value)]);
                }
            }
        }
        Some((mcp, server))
    }

    /// Whether a server is exactly as this program writes it.
    fn is_our_server(&self, server: &Value) -> bool {
        let arguments = server["args"].as_array().or(server["command"].as_array());
        let after = |option: &str| {
            let arguments = arguments?;
            let at = arguments.iter().position(|a| a == option)?;
            arguments.get(at + 1)?.as_str().map(str::to_owned)
        };
        let acts = Acts {
            agent: after(AGENT),
            branch: after(BRANCH),
        };
        self.server(&acts).is_some_and(|(_, own)| own == *server)
    }
}

/// Whether an agent that is about to stop was already made to continue once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// No.
    No,
    /// Perhaps: let it stop, or it might run forever.
    Perhaps,
    /// Only the caller's memory of this session, by its id, can tell.
    Ask(String),
}

/// The agent and branch written into hooks and servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acts {
    /// The agent's name.
    pub agent: Option<String>,
    /// The ledger's branch.
    pub branch: Option<String>,
}

const AGENT: &str = "--as";
const BRANCH: &str = "--branch";

impl Acts {
    fn options(&self) -> Vec<(&'static str, &str)> {
        let all = [(AGENT, &self.agent), (BRANCH, &self.branch)];
        let named = all.into_iter();
        named
            .filter_map(|(option, value)| Some((option, value.as_deref()?)))
            .collect()
    }
}

/// A hook as this version writes it.
struct ExpectedHook<'a> {
    harness: &'a Harness,
    event: Event,
    /// The keys that lead to its list.
    at: Vec<&'a str>,
    entry: Value,
}

/// The key of a group's handlers.
const GROUP: &str = "hooks";

impl ExpectedHook<'_> {
    /// The part with the command: the entry itself, or the only handler of its group.
    fn handler(&self) -> &Value {
        self.entry.get(GROUP).map_or(&self.entry, |list| &list[0])
    }

    /// The agent and branch in a handler, if this program wrote it.
    fn acts(&self, handler: &Value) -> Option<Acts> {
        let known = self.handler().as_object()?;
        let members = handler.as_object()?;
        let is_known = members.keys().all(|key| known.contains_key(key));
        let mut commands = members.values().filter_map(Value::as_str);
        commands
            .find_map(|text| self.harness.acts_in(self.event, text))
            .filter(|_| is_known)
    }

    /// Whether an entry contains nothing but our handler.
    fn is_whole(&self, entry: &Value) -> bool {
        match (self.entry.get(GROUP), entry.get(GROUP)) {
            (None, _) => self.acts(entry).is_some(),
            (Some(_), Some(Value::Array(list))) => {
                let alone = entry.as_object().is_some_and(|group| group.len() == 1);
                alone && list.len() == 1 && self.acts(&list[0]).is_some()
            }
            _ => false,
        }
    }

    /// The handlers under the hook's keys in a configuration, each with the keys that lead to its
    /// list.
    fn handlers<'v>(&self, config: &'v Value) -> Vec<(Vec<String>, &'v Value)> {
        let list = self
            .at
            .iter()
            .try_fold(config, |value, key| value.get(*key));
        let list = list.and_then(Value::as_array).into_iter().flatten();
        let path: Vec<String> = self.at.iter().map(|key| (*key).to_owned()).collect();
        let mut found = Vec::new();
        for (number, entry) in list.enumerate() {
            match entry.get(GROUP).and_then(Value::as_array) {
                Some(group) if self.entry.get(GROUP).is_some() => {
                    let path = [&path[..], &[number.to_string(), GROUP.to_owned()]].concat();
                    found.extend(group.iter().map(|handler| (path.clone(), handler)));
                }
                _ => found.push((path.clone(), entry)),
            }
        }
        found
    }
}

/// The beginning of each of our commands; below, the call in it.
const BEFORE: &str = "if command -v git-handoff >/dev/null 2>&1; then ";
const CALL: &str = "git-handoff agents hook";

/// Whether an entry calls the program, even in a form that this program never wrote.
fn calls_us(entry: &Value) -> bool {
    match entry {
        Value::String(text) => text.contains(CALL),
        Value::Array(items) => items.iter().any(calls_us),
        Value::Object(members) => members.values().any(calls_us),
        _ => false,
    }
}

/// Replaces the placeholder of a template.
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
    use super::{Acts, Event, HARNESSES, Harness, Kept};
    use serde_json::json;

    #[test]
    fn the_table_of_harnesses_is_whole() {
        assert_eq!(HARNESSES.len(), 12);
        for harness in HARNESSES.iter() {
            for event in [Event::SessionStart, Event::Stop] {
                let answer = harness.answer(event, "a text").to_string();
                assert_eq!(harness.hooks.is_some(), answer.contains("\"a text\""));
            }
        }
    }

    #[test]
    fn only_what_is_written_here_is_ours() {
        for (agent, branch) in [
            (None, None),
            (Some("fixer-agent"), None),
            (None, Some("it's --as x; fi")),
            (Some("fixer-agent"), Some("team/handoffs")),
        ] {
            let acts = Acts {
                agent: agent.map(str::to_owned),
                branch: branch.map(str::to_owned),
            };
            for harness in HARNESSES.iter() {
                for expected in harness.entries(&acts) {
                    assert_eq!(expected.at.len(), 2, "{}", harness.name);
                    assert!(expected.is_whole(&expected.entry), "{}", expected.entry);
                    assert_eq!(expected.acts(expected.handler()), Some(acts.clone()));
                    let own = harness.command(expected.event, &acts);
                    for other in [format!("./notify.sh; {own}"), format!("{own}; ./notify.sh")] {
                        assert_eq!(harness.acts_in(expected.event, &other), None, "{other}");
                    }
                }
                if let Some((_, server)) = harness.server(&acts) {
                    assert!(harness.is_our_server(&server), "{server}");
                    let mut other = server;
                    other["env"] = json!({ "A": "b" });
                    assert!(!harness.is_our_server(&other));
                }
            }
        }
        let earlier = |agent: &str| {
            let call = "git-handoff agents hook codex stop ";
            format!("if command -v git-handoff >/dev/null 2>&1; then {call}{agent}; fi")
        };
        let codex = Harness::find("codex").map(|harness| {
            let acts = |agent| harness.acts_in(Event::Stop, &earlier(agent));
            [acts(""), acts(" --as x"), acts(" --as x; y")].map(|acts| acts.map(|a| a.agent))
        });
        assert_eq!(codex, Some([Some(None), Some(Some("x".to_owned())), None]));
    }

    #[test]
    fn nobody_is_kept_for_ever() {
        for input in [
            json!({}),
            json!(null),
            json!([1]),
            json!({ "stop_hook_active": true }),
            json!({ "stop_hook_active": "true", "session_id": "a" }),
            json!({ "stop_hook_active": 1 }),
            json!({ "loop_count": 1, "status": "completed" }),
            json!({ "loop_count": 0, "status": "aborted" }),
            json!({ "session_id": "" }),
        ] {
            assert_eq!(Harness::kept_before(&input), Kept::Perhaps, "{input}");
        }
        let asks = Harness::kept_before(&json!({ "sessionId": "a" }));
        assert_eq!(asks, Kept::Ask("a".to_owned()));
        for input in [
            json!({ "stop_hook_active": false, "session_id": "a" }),
            json!({ "loop_count": 0, "status": "completed" }),
        ] {
            assert_eq!(Harness::kept_before(&input), Kept::No, "{input}");
        }
    }
}
