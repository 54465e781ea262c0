//! Creates protocols: a relay between given agents, or a copy of another protocol with renamed
//! agents.

use std::collections::BTreeMap;

use handoff_base::ids::AgentName;
use handoff_contract::edit::{self, EditError};
use handoff_model::layout::DEFINITION;
use include_dir::Dir;
use serde_json::json;

use super::builtin::{Folder, TEMPLATES};

/// The template folder of a relay, with placeholders in double braces. A file with `{{file}}` in
/// its path is repeated for each route; in other files, lines with `{{agent}}` are repeated for
/// each agent, and lines with `{{from}}` for each route.
const RELAY: &str = "new";

/// The agent that handles a relay's failures, and its end.
pub const ADDED: [&str; 2] = ["orchestrator", END];

const END: &str = "end";

/// The definition's template: with placeholders it is not JSON, so it has another name.
const UNFILLED: &str = "relay.json";

/// A route of a relay.
struct Leg<'a> {
    from: &'a str,
    to: &'a str,
    opens: bool,
}

/// A relay: each agent hands its work to the next, and the last to the end.
pub fn relay(name: &AgentName, agents: &[AgentName]) -> Folder {
    let names: Vec<&str> = agents.iter().map(AgentName::as_str).collect();
    let receivers = names.iter().skip(1).chain([&END]);
    let legs = names.iter().zip(receivers).enumerate();
    let legs: Vec<Leg<'_>> = legs
        .map(|(i, (from, to))| Leg {
            from,
            to,
            opens: i == 0,
        })
        .collect();
    let listed: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let whole = [
        ("{{name}}", name.to_string()),
        (
            "{{first}}",
            names.first().copied().unwrap_or(END).to_owned(),
        ),
        ("{{last}}", names.last().copied().unwrap_or(END).to_owned()),
        ("{{phases}}", names.len().to_string()),
        ("{{agents}}", listed.join(", ")),
    ];
    let mut files = Vec::new();
    for (path, text) in relay_files() {
        let text = filled(text, &whole);
        if path.contains("{{file}}") {
            let each = legs.iter().map(Leg::values);
            files.extend(each.map(|leg| (filled(path, &leg), filled(&text, &leg))));
        } else {
            let path = if path == UNFILLED { DEFINITION } else { path };
            files.push((path.to_owned(), repeated(&text, &names, &legs)));
        }
    }
    Folder::of(files)
}

/// An agent's name in a form for file names.
pub fn file_part(agent: &str) -> String {
    agent.replace('@', "_")
}

/// The relay's template files, with their paths in the protocol's folder.
fn relay_files() -> Vec<(&'static str, &'static str)> {
    fn within(dir: &'static Dir<'static>, found: &mut Vec<(&'static str, &'static str)>) {
        let files = dir.files().filter_map(|file| {
            let path = file.path().strip_prefix(RELAY).ok()?.to_str()?;
            Some((path, file.contents_utf8()?))
        });
        found.extend(files);
        dir.dirs().for_each(|dir| within(dir, found));
    }
    let mut found = Vec::new();
    TEMPLATES
        .get_dir(RELAY)
        .into_iter()
        .for_each(|dir| within(dir, &mut found));
    found
}

impl Leg<'_> {
    fn values(&self) -> [(&'static str, String); 4] {
        let [from, to] = [self.from, self.to].map(file_part);
        let opens = if self.opens { ", \"opens\": true" } else { "" };
        [
            ("{{from}}", self.from.to_owned()),
            ("{{to}}", self.to.to_owned()),
            ("{{file}}", format!("{from}-to-{to}")),
            ("{{opens}}", opens.to_owned()),
        ]
    }
}

fn filled(text: &str, values: &[(&str, String)]) -> String {
    let replace = |text: String, (key, value): &(&str, String)| text.replace(key, value);
    values.iter().fold(text.to_owned(), replace)
}

/// Repeats the lines for agents and routes.
fn repeated(text: &str, agents: &[&str], legs: &[Leg<'_>]) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        if line.contains("{{agent}}") {
            for (i, agent) in agents.iter().enumerate() {
                let values = [
                    ("{{agent}}", (*agent).to_owned()),
                    ("{{phase}}", (i + 1).to_string()),
                ];
                out += &filled(line, &values);
            }
        } else if line.contains("{{from}}") {
            legs.iter()
                .for_each(|leg| out += &filled(line, &leg.values()));
        } else {
            out += line;
        }
    }
    out
}

/// Copies a protocol under another name, at its first version, with agents renamed: wherever a name
/// occurs as a whole word, in files and file names.
///
/// # Errors
/// [`EditError`] if its definition can't be edited.
pub fn renamed(
    files: &[(String, Vec<u8>)],
    name: &AgentName,
    agents: &BTreeMap<&str, &str>,
) -> Result<Folder, EditError> {
    let mut copied = Vec::new();
    for (path, bytes) in files {
        let text = String::from_utf8_lossy(bytes);
        let mut text = with_words(&text, agents);
        if path == DEFINITION {
            for (key, value) in [("name", name.as_str()), ("version", "1.0.0")] {
                let is_key = |own: Option<&str>, _: &_| own == Some(key);
                text = edit::replace(&text, &[], is_key, &json!(value))?.unwrap_or(text);
            }
        }
        copied.push((with_words(path, agents), text));
    }
    Ok(Folder::of(copied))
}

/// Replaces words, all at once. Names may contain hyphens and be extended with hyphens, so only an
/// adjacent letter, digit or `_` makes it another word.
fn with_words(text: &str, words: &BTreeMap<&str, &str>) -> String {
    let mut longest_first: Vec<(&str, &str)> =
        words.iter().map(|(old, new)| (*old, *new)).collect();
    longest_first.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
    let goes_on = |c: char| c.is_alphanumeric() || c == '_' || c == '@';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(next) = rest.chars().next() {
        let found = longest_first.iter().find(|(old, _)| {
            let after = rest.strip_prefix(old);
            after.is_some_and(|after| !after.starts_with(goes_on))
        });
        let taken = match found.filter(|_| !before.is_some_and(goes_on)) {
            Some((old, new)) => {
                out += new;
                old.len()
            }
            None => {
                out.push(next);
                next.len_utf8()
            }
        };
        before = rest[..taken].chars().next_back();
        rest = &rest[taken..];
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use super::{relay, renamed, with_words};

    #[test]
    fn a_relay_has_a_route_from_each_agent_to_the_next() {
        let agents = ["@one", "two"].map(|name| name.parse().unwrap());
        let folder = relay(&"pair".parse().unwrap(), &agents);
        let paths: Vec<String> = folder
            .clone()
            .into_files()
            .into_iter()
            .map(|f| f.0)
            .collect();
        assert_eq!(
            paths,
            [
                "protocol.json",
                "schemas/_one-to-two.schema.json",
                "schemas/error.schema.json",
                "schemas/two-to-end.schema.json",
                "templates/_one-to-two.json",
                "templates/error.json",
                "templates/two-to-end.json",
            ]
        );
        for (path, bytes) in folder.into_files() {
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            assert!(value.is_object(), "{path}");
        }
    }

    #[test]
    fn whole_words_are_replaced_at_once() {
        let words = BTreeMap::from([("a", "b"), ("b", "a"), ("a-x", "long")]);
        assert_eq!(
            with_words("a to b-to-a, a-x, ab _a a_ @a (a)", &words),
            "b to a-to-b, long, ab _a a_ @a (b)"
        );
    }

    #[test]
    fn a_copy_has_another_name_and_other_agents() {
        let definition =
            br#"{"format": 1, "name": "a", "version": "7.0", "agents": [{"id": "a"}]}"#;
        let files = [
            ("protocol.json".to_owned(), definition.to_vec()),
            ("schemas/a-to-b.json".to_owned(), b"{}".to_vec()),
        ];
        let copy = renamed(
            &files,
            &"own".parse().unwrap(),
            &BTreeMap::from([("a", "c")]),
        )
        .unwrap();
        assert_eq!(copy.file("schemas/c-to-b.json"), Some(&b"{}"[..]));
        let text = String::from_utf8(copy.file("protocol.json").unwrap().to_vec()).unwrap();
        assert_eq!(
            text,
            r#"{"format": 1, "name": "own", "version": "1.0.0", "agents": [{"id": "c"}]}"#
        );
    }
}
