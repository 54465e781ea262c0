use clap::Args;
use handoff::base::codes;
use handoff::base::text::quoted;
use handoff::templates::BUILT_IN;

use super::{GROUPS, explain, protocol, words};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// Print the help of a command, a task, a code or a built-in protocol, or a page
///
/// Without TOPIC, prints what `git handoff -h` does. A task is a word of the headings of `--all`, such
/// as `share`. A page is a file of `docs/`, such as `gate.md`; `own-protocol` is how to write a protocol, and
/// `keys` and `protocol.json` are its keys, or name one, such as `limits`; `findings` is how reviews name what is
/// to do.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff help --all
  git handoff help protocol set
  git handoff help share
  git handoff help lease_lost
  git handoff help gate.md       (a page of docs/)
  git handoff help own-protocol  (its first steps; own-protocol.md has all)
  git handoff help routes        (a key of protocol.json; keys has all)")]
pub(crate) struct Arguments {
    /// A command, task, page, built-in protocol, or a code that was printed
    #[arg(value_name = "TOPIC", conflicts_with = "all")]
    topic: Vec<String>,
    /// List every command by task, with the options that all have and the exit codes
    #[arg(long)]
    all: bool,
}

/// The pages of the documentation, by name.
macro_rules! pages {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../docs/", $name, ".md")))),*]
    };
}

/// Every page for users: `decisions` is the record of those who develop the program.
const PAGES: &[(&str, &str)] = pages! {
    "agents" "architecture" "built-in" "codes" "commands" "evidence" "exchange"
    "failures" "gate" "github" "guarantees" "hooks" "housekeeping" "install" "introduction" "json"
    "markdown" "mcp" "metrics" "observability" "own-protocol" "performance" "protocol-keys"
    "protocols" "recovery" "reliability" "remotes" "repositories" "rules" "scale" "security"
    "signatures" "tutorial" "work"
};

/// The page of the keys of protocol.json.
const KEYS: &str = "protocol-keys";

/// Topics that are a page, or sections of pages under these headings.
const TOPICS: [(&str, &str, &str); 6] = [
    ("keys", KEYS, ""),
    ("own-protocol", "own-protocol", "# A protocol of your own"),
    (
        "own-protocol",
        "own-protocol",
        "## The first fifteen minutes",
    ),
    ("stuck", "recovery", ""),
    ("findings", "built-in", "## review"),
    ("findings", "own-protocol", "## Findings of reviews"),
];

/// The text of a page: by its file, by its name, or by a topic.
fn page(topic: &str) -> Option<String> {
    let file = topic.trim_start_matches("docs/").trim_end_matches(".md");
    let known = TOPICS.iter().filter(|(name, ..)| *name == topic);
    let sections: Vec<String> = known
        .filter_map(|(_, page, heading)| section(page, heading))
        .collect();
    match &sections[..] {
        [] => section(file, ""),
        sections => Some(sections.join("\n")),
    }
}

/// A page, or its section under a heading.
fn section(name: &str, heading: &str) -> Option<String> {
    let (_, text) = PAGES.iter().find(|(page, _)| *page == name)?;
    // A generated page begins with a comment.
    let text = &text[text.find("# ")?..];
    let below = || Some(text.find(&format!("\n{heading}\n"))? + 1);
    let from = text.starts_with(heading).then_some(0).or_else(below);
    let from = from.filter(|_| !heading.is_empty());
    let section = &text[from.unwrap_or(0)..];
    let to = section.find("\n## ").filter(|_| from.is_some());
    Some(section[..to.map_or(section.len(), |at| at + 1)].to_owned())
}

/// The keys of protocol.json, or one of them with the members of its type.
fn keys(topic: &str) -> Option<String> {
    let all = section(KEYS, "## The protocol")?;
    let (rows, types) = all.split_once("\n\n`")?;
    if topic == "protocol.json" {
        return Some(format!("{rows}\n"));
    }
    let is_own = |row: &&str| {
        let name = row.strip_prefix("|`").and_then(|rest| rest.split_once('`'));
        name.is_some_and(|(name, _)| name == topic)
    };
    let row = rows.lines().find(is_own)?;
    let kind = row.split('|').nth(2)?;
    let members = if let Some((_, anchor)) = kind.split_once("(#") {
        let heading = anchor.split(')').next()?.replace('-', " ");
        let (_, page) = PAGES.iter().find(|(page, _)| *page == KEYS)?;
        let is_own = |line: &&str| {
            let title = line.strip_prefix("## ");
            title.is_some_and(|title| title.eq_ignore_ascii_case(&heading))
        };
        section(KEYS, page.lines().find(is_own)?)
    } else {
        let mut types = types.split("\n\n`");
        let name = kind.split('`').nth(1);
        let own = types.find(|own| own.split('`').next() == name);
        own.map(|own| format!("`{}\n", own.trim_end()))
    };
    let members = members.map(|members| format!("\n{members}"));
    Some(format!("{row}\n{}", members.unwrap_or_default()))
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let mut root = if self.all {
            crate::full_command()
                .disable_version_flag(true)
                .max_term_width(200)
                .term_width(200)
        } else {
            crate::command()
        };
        root.build();
        let found = self
            .topic
            .iter()
            .try_fold(&mut root, |command, word| command.find_subcommand_mut(word));
        if let Some(command) = found {
            // Each of all commands and options has one line.
            let help = if self.all {
                command.render_help()
            } else {
                command.render_long_help()
            };
            return output.raw(help.to_string().as_bytes());
        }
        let topic = self.topic.join(" ");
        let is_task = |group: &&(&str, &[&str])| {
            let mut words = group.0.split(' ');
            words.any(|word| word.eq_ignore_ascii_case(&topic))
        };
        if let Some(group) = GROUPS.iter().find(is_task) {
            let listed = words::listed(&crate::command(), [*group]);
            return output.raw(listed.as_bytes());
        }
        // What a code begins with too, is a topic first; `explain` has the codes.
        if let Some(page) = page(&topic).or_else(|| keys(&topic)) {
            return output.raw(page.as_bytes());
        }
        if BUILT_IN.contains(&&*topic) {
            return protocol::show(context, output, Some(&topic), None);
        }
        if codes::all().any(|code| code.code.starts_with(&topic)) {
            return explain::Arguments::of(topic).run(context, output);
        }
        let tasks = GROUPS
            .iter()
            .filter_map(|(group, _)| group.trim_start_matches("For ").split(' ').next());
        let tasks: Vec<String> = tasks.map(str::to_lowercase).collect();
        let pages: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
        let failure = Failure::usage(format!("no help is about {}", quoted(&topic)));
        Err(failure.hint(format!(
            "name a command of `git handoff help --all`, a code, a built-in protocol, a task: {}; or a page: keys, findings, {}",
            tasks.join(", "),
            pages.join(", ")
        )))
    }
}
