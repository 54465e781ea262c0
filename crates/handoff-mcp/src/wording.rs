//! Rewrites commands in a document as tool calls.
//!
//! Messages name shell commands. If the server has an equivalent tool, they are rewritten to name
//! the tool and its arguments. Only the program's own sentences and commands are rewritten, never
//! text from a contract; other commands stay.

use clap::Arg;
use handoff::base::hint::{Command, Hint, Part, end_of_command};
use serde_json::{Map, Value};

use super::schema::{AGENT, CONTRACT, Fixed, Kind, arguments, kind, property};
use super::verbs::{self, Verb};

/// The prefix of a shell command.
const PROGRAM: &str = "git handoff ";

/// Members whose values are commands, or lists of them.
const COMMANDS: [&str; 5] = ["command", "commands", "next", "restore", "send"];

/// Members to search for such members.
const BELOW: [&str; 10] = [
    "applied",
    "attempts",
    "attention",
    "contracts",
    "cut",
    "decided",
    "handoffs",
    "kept",
    "options",
    "others",
];

/// Rewrites for the tools of a server.
pub(super) struct Wording<'a> {
    fixed: &'a Fixed,
    /// The tool whose answer is rewritten; `None` for a resource.
    pub(super) verb: Option<&'static Verb>,
}

impl<'a> Wording<'a> {
    pub(super) fn of_tool(verb: &'static Verb, fixed: &'a Fixed) -> Self {
        let verb = Some(verb);
        Self { fixed, verb }
    }

    pub(super) fn of_resource(fixed: &'a Fixed) -> Self {
        Self { fixed, verb: None }
    }

    /// Rewrites a document, and adds the error's hint.
    pub(super) fn told(&self, mut document: Value, hint: Option<Hint>) -> Value {
        if let Some(error) = document.get_mut("error").and_then(Value::as_object_mut) {
            if let Some(Value::String(text)) = error.get_mut("message") {
                *text = self.sentence(Hint::from(&text));
            }
            if let Some(hint) = hint {
                error.insert("hint".to_owned(), self.sentence(hint).into());
            }
            let findings = error.get_mut("findings").and_then(Value::as_array_mut);
            for finding in findings.into_iter().flatten() {
                if let Some(Value::String(fix)) = finding.get_mut("fix") {
                    *fix = self.sentence(Hint::from(&fix));
                }
            }
        }
        if let Some(data) = document.get_mut("data").and_then(Value::as_object_mut) {
            self.members(data);
            let is_page = self.verb.is_some_and(|verb| verb.words == ["prime"]);
            if let Some(Value::String(page)) = data.get_mut("text").filter(|_| is_page) {
                *page = self.page(page);
            }
        }
        document
    }

    fn members(&self, members: &mut Map<String, Value>) {
        for (name, value) in members {
            match value {
                Value::String(text) if COMMANDS.contains(&name.as_str()) => self.replace(text),
                Value::Array(items) if COMMANDS.contains(&name.as_str()) => {
                    for item in items {
                        if let Value::String(text) = item {
                            self.replace(text);
                        }
                    }
                }
                Value::Array(items) if BELOW.contains(&name.as_str()) => {
                    items
                        .iter_mut()
                        .filter_map(Value::as_object_mut)
                        .for_each(|m| self.members(m));
                }
                Value::Object(members) if BELOW.contains(&name.as_str()) => self.members(members),
                _ => {}
            }
        }
    }

    fn replace(&self, text: &mut String) {
        if let Some(call) = self.call(&Command::from(&**text)) {
            *text = call;
        }
    }

    /// Rewrites the commands and options in a sentence.
    fn sentence(&self, sentence: Hint) -> String {
        let parts = sentence.parts.iter().map(|part| match part {
            Part::Text(text) => self.text(text),
            Part::Command(command) => match self.call(command) {
                Some(call) if command.to_string().ends_with(" -h") => {
                    format!("the input schema of `{call}`")
                }
                Some(call) => format!("`{call}`"),
                None => format!("`{command}`"),
            },
            Part::Again(name, value) => self.text(&format!("add {name} {value}")),
        });
        parts.collect()
    }

    fn text(&self, text: &str) -> String {
        let spans = text.split('`').enumerate().map(|(at, span)| {
            if at % 2 == 0 {
                return self.words(span);
            }
            let option = self.option(span);
            format!("`{}`", option.as_deref().unwrap_or(span))
        });
        spans.collect()
    }

    /// Rewrites the options in words outside of backticks as properties; quoted text stays.
    fn words(&self, text: &str) -> String {
        let mut quoted = false;
        let word = |word: &str| {
            let was_quoted = quoted;
            quoted ^= word.matches('"').count() % 2 == 1;
            let end = word.find(|c: char| !c.is_ascii_lowercase() && c != '-');
            let (option, after) = word.split_at(end.unwrap_or(word.len()));
            match self.option(option).filter(|_| !was_quoted) {
                Some(name) => format!("`{name}`{after}"),
                None => word.to_owned(),
            }
        };
        text.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }

    /// Rewrites an option with its value as a property with its value.
    fn option(&self, text: &str) -> Option<String> {
        let (option, value) = match text.split_once([' ', '=']) {
            Some((option, value)) => (option, format!(": {value}")),
            None => (text, String::new()),
        };
        let long = option.strip_prefix("--")?;
        let is_agent = long == AGENT && self.fixed.agent.is_none();
        let own = || arguments(self.verb?).find(|argument| argument.get_long() == Some(long));
        let name = if is_agent {
            AGENT.to_owned()
        } else {
            property(own()?)
        };
        Some(name + &value)
    }

    /// Rewrites the page of `prime`: any line may contain a command, outside of quotes and fences.
    fn page(&self, page: &str) -> String {
        let mut fence: Option<&str> = None;
        let mut told = String::new();
        for line in page.lines() {
            let mark = &line[..line.len() - line.trim_start_matches('`').len()];
            match fence {
                Some(open) if open == line => fence = None,
                None if mark.len() >= 3 => fence = Some(mark),
                _ => {}
            }
            if fence.is_some() {
                told += line;
            } else {
                told += &self.line(line);
            }
            told.push('\n');
        }
        told
    }

    fn line(&self, line: &str) -> String {
        let (mut told, mut rest) = (String::new(), line);
        while let Some(at) = rest
            .find(['"', '`'])
            .into_iter()
            .chain(rest.find(PROGRAM))
            .min()
        {
            told += &rest[..at];
            rest = &rest[at..];
            let end = if let Some(quoted) = rest.strip_prefix('"') {
                1 + end_of_quote(quoted)
            } else if let Some(after) = rest.strip_prefix('`') {
                let end = end_of_command(after);
                let span = &after[..end];
                told.push('`');
                told += &self
                    .call(&Command::from(span))
                    .or_else(|| self.name(span))
                    .unwrap_or_else(|| span.to_owned());
                rest = &after[end..];
                told += if rest.is_empty() { "" } else { "`" };
                rest = rest.strip_prefix('`').unwrap_or(rest);
                continue;
            } else {
                let command = &rest[..end_of_line(rest, told.starts_with('('))];
                let call = self.call(&Command::from(command));
                told += &call.unwrap_or_else(|| command.to_owned());
                rest = &rest[command.len()..];
                continue;
            };
            told += &rest[..end];
            rest = &rest[end..];
        }
        told + rest
    }

    /// Rewrites the bare name of a command.
    fn name(&self, word: &str) -> Option<String> {
        let words = [word.to_owned()];
        verbs::of_words(&words, self.fixed.tools).map(|(verb, _)| verb.name())
    }

    /// Rewrites a shell command as a tool call: name and JSON arguments. `None` if this server has
    /// no equivalent tool.
    fn call(&self, command: &Command) -> Option<String> {
        let words = command.words();
        let (program, words) = words.split_at_checked(2)?;
        let is_own = program == ["git", "handoff"];
        let (verb, rest) = verbs::of_words(words, self.fixed.tools).filter(|_| is_own)?;
        if rest == ["-h"] {
            return Some(verb.name());
        }
        let given = self.given(verb, rest)?;
        if given.is_empty() {
            return Some(verb.name());
        }
        Some(format!("{} {}", verb.name(), Value::Object(given)))
    }

    /// The call arguments equivalent to a command's words.
    fn given(&self, verb: &Verb, words: &[String]) -> Option<Map<String, Value>> {
        let (mut given, mut rest) = (Map::new(), words.iter());
        let mut positionals = arguments(verb).filter(|argument| argument.is_positional());
        let mut many: Option<&Arg> = None;
        while let Some(word) = rest.next() {
            let Some(option) = word.strip_prefix("--") else {
                let argument = many.or_else(|| positionals.next())?;
                many = Some(argument).filter(|argument| kind(argument) == Kind::Many);
                let takes_text = verb.contract == Some(argument.get_id().as_str());
                if takes_text && word == "-" {
                    given.insert(CONTRACT.to_owned(), "…".into());
                } else {
                    put(&mut given, argument, word);
                }
                continue;
            };
            let (long, value) = match option.split_once('=') {
                Some((long, value)) => (long, Some(value)),
                None => (option, None),
            };
            let own = arguments(verb).find(|argument| argument.get_long() == Some(long));
            if let Some(flag) = own.filter(|argument| kind(argument) == Kind::Flag) {
                given.insert(property(flag), true.into());
                continue;
            }
            let value = value.or_else(|| rest.next().map(String::as_str))?;
            let is_servers = |own: &Option<String>| own.as_deref() == Some(value);
            match (own, long) {
                (Some(argument), _) => put(&mut given, argument, value),
                (None, "as") if is_servers(&self.fixed.agent) => {}
                (None, "as") if self.fixed.agent.is_none() => {
                    given.insert(AGENT.to_owned(), value.into());
                }
                (None, "worker") if is_servers(&self.fixed.worker) => {}
                (None, "branch") if is_servers(&self.fixed.branch) => {}
                _ => return None,
            }
        }
        Some(given)
    }
}

/// Adds a value to an argument.
fn put(given: &mut Map<String, Value>, argument: &Arg, value: &str) {
    let name = property(argument);
    match (kind(argument), given.get_mut(&name)) {
        (Kind::Many, Some(Value::Array(values))) => values.push(value.into()),
        (Kind::Many, _) => drop(given.insert(name, vec![value].into())),
        _ => drop(given.insert(name, value.into())),
    }
}

/// The offset after a quoted text's closing quote.
fn end_of_quote(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// The end of a command on its own line: before a remark, or the enclosing parenthesis.
fn end_of_line(text: &str, in_parentheses: bool) -> usize {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted && text[at..].starts_with("   # ") => return at,
            _ => {}
        }
    }
    let end = if in_parentheses { ")" } else { "" };
    text.strip_suffix(end).unwrap_or(text).len()
}
