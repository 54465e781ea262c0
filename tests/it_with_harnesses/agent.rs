//! The agent that the stand-in plays: what it does in its turns, and how it hands on what a prompt
//! of `git handoff work` gave it.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::wire::{ASIDE, Reply, Request, Tool};

/// What all that it says begins with.
pub(crate) const SAYS: &str = "The stand-in: ";

/// What it does in a turn.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// Runs a command in a shell.
    Shell(String),
    /// Writes a file.
    Write(String, String),
    /// Calls a tool of a server.
    Tool(&'static str, Value),
    Say(String),
    /// The provider refuses, with this status; after how many seconds it is worth another try.
    Refuse(u16, Option<u32>),
    /// No answer comes.
    Hang,
}

/// A turn of a list, by how many turns it had; after its end, it says so.
pub(crate) fn script(turns: &[Turn], request: &Request) -> Turn {
    let turn = turns.get(request.turns).cloned();
    turn.unwrap_or_else(|| Turn::Say("that was all.".to_owned()))
}

/// A turn as an answer, with the tools that the program offers.
///
/// # Errors
/// If it offers none for it.
pub(crate) fn reply(turn: &Turn, request: &Request, number: u64) -> Result<Reply, String> {
    let id = format!("call_{number}");
    match turn {
        Turn::Say(said) => Ok(Reply::Say(format!("{SAYS}{said}"))),
        Turn::Shell(line) => shell(line, request, id),
        Turn::Write(path, text) => write(path, text, request, id),
        Turn::Tool(name, arguments) => server(name, arguments, request, id),
        Turn::Refuse(..) | Turn::Hang => Err(format!("{turn:?} is not an answer")),
    }
}

fn find(request: &Request, names: &[&str]) -> Option<Tool> {
    let has = |name: &&str| request.tools.iter().find(|tool| tool.name == **name);
    names.iter().find_map(has).cloned()
}

/// The first of these names that the tool has an argument of.
fn argument<'a>(tool: &Tool, names: &[&'a str]) -> Option<&'a str> {
    let properties = &tool.schema["properties"];
    let has = |name: &&&str| properties.get(**name).is_some();
    names.iter().find(has).copied()
}

/// Arguments that the tool must have, whatever is asked of it.
fn required(tool: &Tool) -> Map<String, Value> {
    let mut arguments = Map::new();
    let names = tool.schema["required"].as_array().into_iter().flatten();
    for name in names.filter_map(Value::as_str) {
        let value = match tool.schema["properties"][name]["type"].as_str() {
            Some("boolean") => json!(false),
            Some("integer" | "number") => json!(60_000),
            _ => json!("what the stand-in does"),
        };
        arguments.insert(name.to_owned(), value);
    }
    arguments
}

fn offered(request: &Request) -> String {
    let names: Vec<&str> = request.tools.iter().map(|t| t.name.as_str()).collect();
    names.join(", ")
}

fn shell(line: &str, request: &Request, id: String) -> Result<Reply, String> {
    let names = [
        "Bash",
        "bash",
        "exec_command",
        "shell_command",
        "shell",
        "run_shell_command",
    ];
    let none = || format!("no shell is offered: {}", offered(request));
    let tool = find(request, &names).ok_or_else(none)?;
    let name = argument(&tool, &["command", "cmd"]).ok_or_else(|| tool.schema.to_string())?;
    let mut arguments = required(&tool);
    let is_list = tool.schema["properties"][name]["type"] == "array";
    let line = if is_list {
        json!(["bash", "-lc", line])
    } else {
        json!(line)
    };
    arguments.insert(name.to_owned(), line);
    // Else it is answered before the command has ended.
    if let Some(name) = argument(&tool, &["yield_time_ms"]) {
        arguments.insert(name.to_owned(), json!(30_000));
    }
    Ok(Reply::Call {
        id,
        tool,
        arguments: arguments.into(),
    })
}

fn write(path: &str, text: &str, request: &Request, id: String) -> Result<Reply, String> {
    let Some(tool) = find(request, &["Write", "write_file", "write", "create"]) else {
        return shell(&written(path, text), request, id);
    };
    let mut arguments = required(&tool);
    let names: [(&[&str], &str); 2] = [
        (&["file_path", "filePath", "absolute_path", "path"], path),
        (&["content", "file_text"], text),
    ];
    for (names, value) in names {
        let name = argument(&tool, names).ok_or_else(|| tool.schema.to_string())?;
        arguments.insert(name.to_owned(), json!(value));
    }
    Ok(Reply::Call {
        id,
        tool,
        arguments: arguments.into(),
    })
}

/// A command that writes a file.
fn written(path: &str, text: &str) -> String {
    format!("cat > \"{path}\" <<'THE-END'\n{text}\nTHE-END")
}

/// A tool of a server, whose names programs prefix. Claude Code offers it after a search.
fn server(name: &str, arguments: &Value, request: &Request, id: String) -> Result<Reply, String> {
    let offers = |tool: &&Tool| tool.name.ends_with(name);
    if let Some(tool) = request.tools.iter().find(offers) {
        return Ok(Reply::Call {
            id,
            tool: tool.clone(),
            arguments: arguments.clone(),
        });
    }
    let none = || format!("no {name} is offered: {}", offered(request));
    let tool = find(request, &["ToolSearch"]).ok_or_else(none)?;
    let told = request.told();
    let end = told.find(name).ok_or_else(none)? + name.len();
    let whole = told[..end].rsplit(|c: char| c.is_whitespace() || "`\",(".contains(c));
    let whole = whole.into_iter().next().unwrap_or_default();
    let found = format!("\"tool_name\":\"{whole}\"");
    if request.results.iter().any(|result| result.contains(&found)) {
        return Err(format!("{whole} was searched for and is not offered"));
    }
    Ok(Reply::Call {
        id: format!("{ASIDE}_{id}"),
        tool,
        arguments: json!({"query": format!("select:{whole}"), "max_results": 5}),
    })
}

/// An agent of the protocol issue-to-pr that does what `git handoff work` tells it.
pub(crate) struct Obedient {
    /// Whether it commits, pushes and hands on by commands. Else it only writes files.
    pub(crate) by_command: bool,
    /// The commit by which the branch came to `main`.
    pub(crate) merged: Option<String>,
}

impl Obedient {
    pub(crate) fn turn(&self, request: &Request) -> Turn {
        let told = request.told();
        let Some(role) = role(&told) else {
            return Turn::Say("no role was given to me.".to_owned());
        };
        let mut turns = Vec::new();
        let file = match role {
            "implementer-agent" => Some(("export.py", "def as_csv(rows):\n    return rows\n")),
            "fixer-agent" => Some(("test_export.py", "def test_empty():\n    assert True\n")),
            _ => None,
        };
        if let Some((name, text)) = file {
            turns.push(put(&told, name, text));
            if self.by_command {
                turns.push(Turn::Shell(format!(
                    "git add {name} && git commit -q -m 'Add {name}'"
                )));
            }
        }
        if self.by_command && role == "validator-agent" {
            turns.push(Turn::Shell("git fetch -q origin".to_owned()));
        }
        turns.push(self.hand_on(role, &told));
        script(&turns, request)
    }

    fn hand_on(&self, role: &str, told: &str) -> Turn {
        let to = receiver(role, told);
        // Both ways are taken by who may take both.
        let by_command = self.by_command && role != "fixer-agent" && role != "prep-agent";
        if by_command {
            let to = format!("--to {to} ");
            let is_it =
                |line: &&str| line.contains("git handoff send --issue ") && line.contains(&to);
            let mut lines = told.lines().skip_while(|line| !is_it(line));
            let Some(line) = lines.next() else {
                return Turn::Say(format!("no command hands on {to}"));
            };
            let fields = lines.take_while(|line| line.starts_with("    "));
            let set: String = fields.filter_map(|field| self.setting(field)).collect();
            let line = &line[line.find("git handoff").unwrap_or_default()..];
            let line = line.split("   #").next().unwrap_or_default();
            let line = line.replace("--set FIELD=VALUE…", &set);
            return Turn::Shell(self.filled(&line));
        }
        let Some(skeleton) = skeleton(told, to) else {
            return Turn::Say(format!("no contract is for {to}"));
        };
        put(told, CONTRACT, &self.filled(&skeleton))
    }

    /// The option for a field that is listed beneath a command.
    fn setting(&self, field: &str) -> Option<String> {
        let (name, about) = field.trim().split_once(": ")?;
        let name = name.split(" (").next()?;
        let value = if about.starts_with('{') {
            self.filled(about)
        } else {
            self.value(name.rsplit('.').next()?)
        };
        Some(format!(" --set {name}='{value}'"))
    }

    /// Fills in what only the agent knows; what `send` fills in stays open.
    fn filled(&self, text: &str) -> String {
        const OPEN: &str = "{{fill: ";
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(OPEN) {
            out.push_str(&rest[..at]);
            let name = name_before(&out);
            out.push_str(&self.value(&name));
            rest = &rest[at..];
            let end = rest.find("}}").map_or(rest.len(), |end| end + 2);
            rest = &rest[end..];
        }
        out + rest
    }

    fn value(&self, name: &str) -> String {
        let value = match name {
            "workspace_type" => "worktree",
            "port" => "3000",
            "branch" => "handoff/87",
            "tests_added" | "important_count" => "1",
            "critical_count" | "suggestion_count" => "0",
            "review_iterations" | "total_commits" => "2",
            "severity" => "important",
            "location" => "export.py:2",
            "pr_number" => "13",
            "pr_url" => "https://github.com/quayside/parcel-desk/pull/13",
            "merge_status" => "merged",
            "merge_strategy" => "merge",
            "merge_sha" => self.merged.as_deref().unwrap_or_default(),
            "dev_server" => "n/a: a library",
            "coverage" => "n/a: not measured",
            "tests" | "lint" | "type_check" | "security" | "build" => "passed",
            _ => "done by the stand-in",
        };
        value.to_owned()
    }
}

/// The name that a place has: the last word before it, of an element, a member or a field.
fn name_before(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let text = text.trim_end_matches(|c| !is_word(c));
    let name = text.rsplit(|c| !is_word(c)).next();
    name.unwrap_or_default().to_owned()
}

/// The agent that a prompt is for.
pub(crate) fn role(told: &str) -> Option<&'static str> {
    [
        "prep-agent",
        "implementer-agent",
        "reviewer-agent",
        "fixer-agent",
        "validator-agent",
        "closer-agent",
    ]
    .into_iter()
    .find(|role| told.contains(&format!("You are {role}")))
}

/// Whom it hands on to: a review finds something once.
fn receiver(role: &str, told: &str) -> &'static str {
    match role {
        "prep-agent" => "implementer-agent",
        "implementer-agent" | "fixer-agent" => "reviewer-agent",
        "reviewer-agent" if told.contains("<from>fixer-agent</from>") => "validator-agent",
        "reviewer-agent" => "fixer-agent",
        "validator-agent" => "closer-agent",
        _ => "workflow-complete",
    }
}

/// The contract to fill in: of the fenced blocks with open places, the one for this agent, or the
/// last one.
fn skeleton(told: &str, to: &str) -> Option<String> {
    let mut blocks = Vec::new();
    let mut block: Option<(&str, String)> = None;
    for line in told.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match &mut block {
            None if ticks >= 3 => block = Some((&line[..ticks], String::new())),
            None => {}
            Some((fence, text)) if line == *fence => {
                blocks.push(std::mem::take(text));
                block = None;
            }
            Some((_, text)) => writeln!(text, "{line}").unwrap_or_default(),
        }
    }
    blocks.retain(|text| text.contains("{{fill") && text.trim_start().starts_with(['<', '{']));
    let of = format!("<to>{to}</to>");
    let is_it = |text: &&String| text.contains(&of);
    blocks.iter().find(is_it).or(blocks.last()).cloned()
}

/// The file for the contract, in the worktree.
const CONTRACT: &str = ".git-handoff/contract";

/// Writes a file of the worktree, by its whole path where the prompt names that of the contract.
fn put(told: &str, name: &str, text: &str) -> Turn {
    let mut words = told.split(|c: char| c.is_whitespace() || "`'\",;()".contains(c));
    let worktree = words.find_map(|word| {
        let word = word.trim_end_matches(['.', ':']);
        word.strip_suffix(CONTRACT).filter(|w| w.starts_with('/'))
    });
    match worktree {
        Some(worktree) => Turn::Write(format!("{worktree}{name}"), text.to_owned()),
        None if name == CONTRACT => Turn::Shell(written("$GIT_HANDOFF_CONTRACT", text)),
        None => Turn::Shell(written(name, text)),
    }
}
