//! Builds the command line and standard input for a call.

use std::ffi::OsString;

use clap::Arg;
use handoff::base::text::quoted;
use serde_json::Value;

use super::message::Object;
use super::schema::{AGENT, CONTRACT, Fixed, Kind, TO, arguments, kind, property};
use super::verbs::Verb;
use handoff_cli::failure::{ErrorCode, Failure};

/// A command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its arguments, including the program's name.
    pub(super) arguments: Vec<OsString>,
    pub(super) input: Vec<u8>,
}

impl Line {
    /// The command line for these words, acting as `agent`, with the server's own options.
    pub(super) fn new(words: &[&str], agent: Option<&str>, fixed: &Fixed) -> Self {
        let mut arguments: Vec<OsString> = vec!["git-handoff".into(), "--json".into()];
        let (branch, worker) = (fixed.branch.as_deref(), fixed.worker.as_deref());
        for (option, value) in [("--as", agent), ("--branch", branch), ("--worker", worker)] {
            arguments.extend(value.map(|value| format!("{option}={value}").into()));
        }
        arguments.extend(words.iter().map(OsString::from));
        Self {
            arguments,
            input: Vec::new(),
        }
    }

    /// The command line for a call of a tool.
    ///
    /// # Errors
    /// A [`Failure`] of usage if an argument is unknown to the tool, has the wrong type, or names
    /// another agent than the server's.
    pub(super) fn of_call(verb: &Verb, given: &Object, fixed: &Fixed) -> Result<Self, Failure> {
        let known: Vec<&Arg> = arguments(verb).collect();
        refuse_unknown(verb, &known, given)?;
        let agent = acting(given, fixed.agent.as_deref())?;
        let mut line = Self::new(verb.words, agent.as_deref(), fixed);
        let mut positionals = Vec::new();
        for argument in known {
            let name = property(argument);
            let values = match given.get(&name) {
                Some(value) => values(verb, argument, &name, value)?,
                None => preset(verb, argument),
            };
            match argument.get_long() {
                Some(long) if kind(argument) == Kind::Flag => {
                    line.arguments
                        .extend(values.iter().map(|_| format!("--{long}").into()));
                }
                Some(long) => {
                    let stated = values.iter().map(|value| format!("--{long}={value}"));
                    line.arguments.extend(stated.map(OsString::from));
                }
                None => positionals.push((argument, values)),
            }
        }
        line.arguments.push("--".into());
        for (argument, values) in positionals {
            let takes_text = verb.contract == Some(argument.get_id().as_str());
            let text = given.get(CONTRACT).filter(|_| takes_text);
            let other = property(argument);
            match text {
                Some(_) if !values.is_empty() => {
                    let text = format!("`{CONTRACT}` and `{other}` say the same");
                    return Err(Failure::usage(text).hint("leave one of them out"));
                }
                Some(Value::String(text)) => {
                    line.input = text.clone().into_bytes();
                    line.arguments.push("-".into());
                }
                Some(_) => return Err(not_a(verb, CONTRACT, "a text")),
                None if takes_text && values.is_empty() && !given.contains_key(TO) => {
                    let text = format!("{}: the text is missing", verb.name());
                    let hint = format!("give the text as `{CONTRACT}`, or a path as `{other}`");
                    return Err(Failure::usage(text).hint(hint));
                }
                None => line
                    .arguments
                    .extend(values.into_iter().map(OsString::from)),
            }
        }
        Ok(line)
    }
}

fn refuse_unknown(verb: &Verb, known: &[&Arg], given: &Object) -> Result<(), Failure> {
    let own = known.iter().map(|argument| property(argument));
    let text = verb.contract.map(|_| CONTRACT.to_owned());
    let everywhere = [AGENT.to_owned()];
    let names: Vec<String> = text.into_iter().chain(own).chain(everywhere).collect();
    match given.keys().find(|name| !names.contains(name)) {
        None => Ok(()),
        Some(other) => {
            let text = format!("{} has no argument {}", verb.name(), quoted(other));
            Err(Failure::usage(text).hint(format!("its arguments are: {}", names.join(", "))))
        }
    }
}

/// The acting agent: the server's, else the call's.
///
/// # Errors
/// A [`Failure`] of usage if they differ.
fn acting(given: &Object, fixed: Option<&str>) -> Result<Option<String>, Failure> {
    let requested = match given.get(AGENT) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.as_str()),
        Some(_) => return Err(Failure::usage(format!("{AGENT} is not a text"))),
    };
    match (fixed, requested) {
        (Some(fixed), Some(requested)) if fixed != requested => {
            let text = format!(
                "this server acts as {fixed} alone, not as {}",
                quoted(requested)
            );
            Err(Failure::new(ErrorCode::OtherAgent, text).hint(format!(
                "leave `{AGENT}` out; another agent has a server of its own"
            )))
        }
        (fixed, requested) => Ok(fixed.or(requested).map(str::to_owned)),
    }
}

fn preset(verb: &Verb, argument: &Arg) -> Vec<String> {
    let named = |(id, _): &(&str, &str)| argument.get_id().as_str() == *id;
    let preset = verb.preset.filter(named);
    preset
        .into_iter()
        .map(|(_, value)| value.to_owned())
        .collect()
}

/// Converts a value to words of the command line.
fn values(verb: &Verb, argument: &Arg, name: &str, value: &Value) -> Result<Vec<String>, Failure> {
    // A caller may pass a number where a text is expected.
    let single = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let (found, wanted) = match (kind(argument), value) {
        (_, Value::Null) => (Some(Vec::new()), ""),
        (Kind::Flag, Value::Bool(is_set)) => (Some(vec![String::new(); (*is_set).into()]), ""),
        (Kind::Flag, _) => (None, "true or false"),
        (Kind::Many, Value::Array(values)) => (
            values.iter().map(single).collect::<Option<Vec<_>>>(),
            "a list of texts",
        ),
        (Kind::Many, value) => (single(value).map(|one| vec![one]), "a list of texts"),
        (Kind::One, value) => (single(value).map(|one| vec![one]), "a text or a number"),
    };
    found.ok_or_else(|| not_a(verb, name, wanted))
}

fn not_a(verb: &Verb, name: &str, wanted: &str) -> Failure {
    let text = format!("`{name}` of {} is not {wanted}", verb.name());
    Failure::usage(text).hint(see_schema(verb))
}

pub(super) fn see_schema(verb: &Verb) -> String {
    format!("see the input schema of {}", verb.name())
}
