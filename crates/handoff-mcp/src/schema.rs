//! Derives tools' schemas from their commands' clap definitions.

use std::any::TypeId;
use std::sync::LazyLock;

use clap::builder::ValueRange;
use clap::{Arg, ArgAction, Command};
use serde_json::{Map, Value, json};

use super::verbs::{self, Effect, ToolSet, Verb};

/// The server's own options, which calls can't override. Calls can't name the ledger's branch at
/// all: an agent would mistake it for its working branch.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    /// The acting agent.
    pub agent: Option<String>,
    /// The ledger's branch.
    pub branch: Option<String>,
    /// The server's worker id, unless the environment or the configuration sets one.
    pub worker: Option<String>,
    /// Its tools.
    pub tools: ToolSet,
}

/// The property for a contract's text.
pub(super) const CONTRACT: &str = "contract";
/// The property for the acting agent, which is also clap's name for it.
pub(super) const AGENT: &str = "as";
/// The property for the receiver of a contract that is built from values.
pub(super) const TO: &str = "to";
/// The parts of help texts about standard input, which are dropped: a call has none.
const STDIN: [&str; 2] = ["; - reads standard input", " (- reads standard input)"];

/// The kind of value that an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Present or absent.
    Flag,
    /// One value.
    One,
    /// Any number of values.
    Many,
}

/// The kind of value that an argument takes.
pub(super) fn kind(argument: &Arg) -> Kind {
    let most = argument
        .get_num_args()
        .map_or(1, |range: ValueRange| range.max_values());
    match argument.get_action() {
        ArgAction::SetTrue => Kind::Flag,
        ArgAction::Append => Kind::Many,
        _ if most > 1 => Kind::Many,
        _ => Kind::One,
    }
}

/// The property name of an argument.
pub(super) fn property(argument: &Arg) -> String {
    let name = argument
        .get_long()
        .unwrap_or_else(|| argument.get_id().as_str());
    name.replace('-', "_")
}

/// The clap definition of a tool's command.
pub(super) fn command(verb: &Verb) -> Option<&'static Command> {
    static ALL: LazyLock<Command> = LazyLock::new(|| (crate::commands().definition)());
    let mut words = verb.words.iter();
    words.try_fold(&*ALL, |command, word| command.find_subcommand(word))
}

/// The arguments that a tool accepts.
pub(super) fn arguments(verb: &Verb) -> impl Iterator<Item = &'static Arg> {
    let all = command(verb).into_iter().flat_map(Command::get_arguments);
    all.filter(|argument| verb.has(argument))
}

/// The schemas of the server's tools, in the table's order.
pub(super) fn tools(fixed: &Fixed) -> Value {
    let known = verbs::of(fixed.tools)
        .filter_map(|verb| command(verb).map(|command| tool(verb, command, fixed)));
    known.collect()
}

fn tool(verb: &Verb, command: &Command, fixed: &Fixed) -> Value {
    let about = command.get_about().map(ToString::to_string);
    let mut annotations = json!({ "readOnlyHint": verb.effect == Effect::Reads });
    // Hints with default values are left out.
    if verb.effect != Effect::Reads {
        annotations["destructiveHint"] = false.into();
    }
    if verb.effect == Effect::WritesOnce {
        annotations["idempotentHint"] = true.into();
    }
    annotations["openWorldHint"] = false.into();
    json!({
        "name": verb.name(),
        "description": about.unwrap_or_default(),
        "inputSchema": input(verb, fixed),
        // A full schema in every tool would be too long: docs/json.md has it.
        "outputSchema": { "type": "object" },
        "annotations": annotations,
    })
}

fn input(verb: &Verb, fixed: &Fixed) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in arguments(verb) {
        let name = property(argument);
        let takes_text = verb.contract == Some(argument.get_id().as_str());
        if takes_text {
            let text = "The contract itself, in place of a file";
            properties.insert(
                CONTRACT.to_owned(),
                json!({ "type": "string", "description": text }),
            );
        } else if argument.is_required_set() {
            required.push(Value::from(name.clone()));
        }
        properties.insert(name, value(argument, verb));
    }
    if fixed.agent.is_none() {
        let text = "Acting agent";
        properties.insert(
            AGENT.to_owned(),
            json!({ "type": "string", "description": text }),
        );
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// The schema of an argument.
fn value(argument: &Arg, verb: &Verb) -> Value {
    let mut schema = match kind(argument) {
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::One => single(argument),
        Kind::Many => json!({ "type": "array", "items": single(argument) }),
    };
    if kind(argument) != Kind::Flag {
        let preset = verb
            .preset
            .filter(|(id, _)| argument.get_id().as_str() == *id);
        let defaults = argument.get_default_values().iter();
        let default = defaults.filter_map(|value| value.to_str()).next();
        if let Some(default) = preset.map(|(_, value)| value).or(default) {
            schema["default"] = default.into();
        }
    }
    if let Some(help) = argument.get_help() {
        let words = help.to_string();
        let words: Vec<&str> = words.split_whitespace().collect();
        let words = STDIN
            .iter()
            .fold(words.join(" "), |words, about| words.replace(about, ""));
        // Arguments that nearly every tool has get a short description.
        let brief = words.split(',').next().filter(|_| argument.is_global_set());
        schema["description"] = brief.unwrap_or(&words).into();
    }
    schema
}

fn single(argument: &Arg) -> Value {
    let unsigned = [TypeId::of::<u32>(), TypeId::of::<usize>()];
    let is_unsigned = unsigned
        .iter()
        .any(|id| argument.get_value_parser().type_id() == *id);
    let words: Vec<String> = argument
        .get_possible_values()
        .iter()
        .map(|value| value.get_name().to_owned())
        .collect();
    match (is_unsigned, &words[..]) {
        (true, _) => json!({ "type": "integer" }),
        (false, []) => json!({ "type": "string" }),
        (false, words) => json!({ "type": "string", "enum": words }),
    }
}
