//! Explains invalid arguments of a call in terms of its tool.

use std::ffi::OsString;

use clap::Arg;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use handoff::base::text::quoted;

use super::schema::{Kind, arguments, kind, property};
use super::verbs::Verb;
use handoff_cli::failure::Failure;

/// The failure for arguments that clap rejected; `None` if clap's own message is good enough.
pub(super) fn misused(verb: &Verb, error: &clap::Error, line: &[OsString]) -> Option<Failure> {
    let tool = verb.name();
    let named = |kind| texts(error, kind).iter().map(|a| names(verb, a)).collect();
    let about: Vec<String> = named(ContextKind::InvalidArg);
    let first = about.first()?;
    let failure = match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let others = instead(verb, line);
            let ways: Vec<&str> = [first]
                .into_iter()
                .chain(&others)
                .map(String::as_str)
                .collect();
            let hint = match &about[..] {
                [_] => format!("give {}", ways.join(", or ")),
                all => format!("give {}", all.join(" and ")),
            };
            Failure::usage(format!("{tool} lacks {}", about.join(" and "))).hint(hint)
        }
        ErrorKind::ArgumentConflict => {
            let other: Vec<String> = named(ContextKind::PriorArg);
            let text = format!("{first} and {} exclude each other", other.join(", "));
            Failure::usage(text).hint("leave one of them out")
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let value = texts(error, ContextKind::InvalidValue).concat();
            let mut value = quoted(&value);
            handoff_cli::output::mask(&mut value, line);
            let why = std::error::Error::source(error);
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            let text = format!("{first} of {tool} can't be {value}{why}");
            match &texts(error, ContextKind::ValidValue)[..] {
                [] => Failure::usage(text).hint(super::line::see_schema(verb)),
                known => Failure::usage(text).hint(format!("it can be {}", known.join(", "))),
            }
        }
        _ => return None,
    };
    Some(failure)
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Replaces clap's names of arguments in a message by properties.
fn names(verb: &Verb, written: &str) -> String {
    let named = |part: &str| {
        let is_it = |argument: &&Arg| match part.strip_prefix("--") {
            Some(option) => argument.get_long() == option.split([' ', '=']).next(),
            None => value_name(argument) == part.trim_matches(['<', '>', '[', ']', '.']),
        };
        let found = arguments(verb).find(is_it);
        found.map(|argument| format!("`{}`", property(argument)))
    };
    let parts: Option<Vec<String>> = written.split('|').map(named).collect();
    parts.map_or_else(|| format!("`{written}`"), |parts| parts.join(" or "))
}

/// The name of an argument's value in clap's messages.
fn value_name(argument: &Arg) -> String {
    let stated = argument.get_value_names().and_then(<[_]>::first);
    let own = || argument.get_id().as_str().to_uppercase();
    stated.map_or_else(own, ToString::to_string)
}

/// The flags that can be given instead of a missing argument.
fn instead(verb: &Verb, line: &[OsString]) -> Vec<String> {
    let flags = arguments(verb).filter(|argument| kind(argument) == Kind::Flag);
    let flags = flags.filter(|argument| {
        let Some(long) = argument.get_long() else {
            return false;
        };
        let mut line = line.to_vec();
        let end = line
            .iter()
            .position(|word| word == "--")
            .unwrap_or(line.len());
        line.insert(end, format!("--{long}").into());
        (crate::commands().accepts)(&line)
    });
    flags
        .map(|flag| format!("`{}: true`", property(flag)))
        .collect()
}
