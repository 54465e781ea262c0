//! The generated pages of docs that are not about the fields of types: commands from their
//! definitions, codes from the words and exit codes of the program, metrics from what is printed.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use handoff::base::codes;
use handoff::base::{ObjectFormat, ObjectId};
use handoff::ledger::attention::Protocols;
use handoff::ledger::{Issues, Survey};
use handoff::protocol::{Alert, Measure, Metric, Protocol, Side};
use handoff::templates::{BUILT_IN, built_in};
use handoff_report::metrics::{Local, Metrics};
use handoff_report::openmetrics::openmetrics;
use serde_json::{Map, Value};

use super::{generated, meaning};
use crate::commands::GROUPS;

/// Adds the pages; the definitions are those of `protocol.json`.
pub(super) fn files(definitions: &Map<String, Value>, files: &mut BTreeMap<PathBuf, String>) {
    for (name, page) in [
        ("commands.md", commands()),
        ("codes.md", explained()),
        ("metrics.md", metrics(definitions)),
    ] {
        files.insert(format!("docs/{name}").into(), page);
    }
}

const COMMANDS: &str = "\
# Commands

What `git handoff COMMAND -h` prints, for every command, with the examples that a test runs. `git handoff` alone says where you are and what
to do next.
";

fn commands() -> String {
    let mut command = crate::command();
    command.build();
    let mut page = generated("the command line's definition") + COMMANDS;
    for (group, names) in GROUPS {
        write!(
            page,
            "\n**{group}**\n\n| command | what it does |\n|---|---|\n"
        )
        .unwrap();
        for name in *names {
            let about = text(command.find_subcommand(name).unwrap().get_about());
            let about = cell(&about);
            writeln!(page, "| [`{name}`](#git-handoff-{name}) | {about} |").unwrap();
        }
    }
    page += "\n## Exit codes\n\n| exit | meaning |\n|---|---|\n";
    for code in codes::all().filter(|code| code.kind == "Exit codes") {
        writeln!(page, "| {} | {} |", code.code, code.cause).unwrap();
    }
    page += "\n## Options of every command\n\n";
    page += &table(command.get_arguments().filter(|a| a.is_global_set()));
    for name in GROUPS.iter().flat_map(|(_, names)| *names) {
        page += &section(command.find_subcommand(name).unwrap(), "##");
    }
    page
}

/// The commands below this one, in their order, without clap's own.
fn named(command: &Command) -> impl Iterator<Item = &Command> {
    let all = command.get_subcommands();
    all.filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
}

/// A command, and those below it.
fn section(command: &Command, level: &str) -> String {
    let path = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut page = format!("\n{level} `{path}`\n\n");
    let about = command.get_long_about().or(command.get_about());
    page += &prose(&text(about));
    page.push('\n');
    let aliases: Vec<String> = command
        .get_visible_aliases()
        .map(|alias| format!("`{alias}`"))
        .collect();
    if !aliases.is_empty() {
        writeln!(page, "\nAlso: {}.", aliases.join(", ")).unwrap();
    }
    let usage = command.clone().render_usage().to_string();
    writeln!(page, "\n```text\n{}\n```", usage.trim()).unwrap();
    let own =
        |arg: &&Arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id().as_str() != "help";
    if command.get_arguments().any(|arg| own(&arg)) {
        page += &format!("\n{}", table(command.get_arguments().filter(own)));
    }
    if let Some(examples) = command.get_after_help() {
        writeln!(page, "\n```text\n{}\n```", examples.to_string().trim_end()).unwrap();
    }
    for sub in named(command) {
        page += &section(sub, &format!("{level}#"));
    }
    page
}

/// Arguments with what they mean.
fn table<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut rows = "| argument | meaning |\n|---|---|\n".to_owned();
    for argument in arguments {
        let names = argument.get_value_names().unwrap_or_default();
        let takes_values = argument.get_action().takes_values();
        let values = names.iter().filter(|_| takes_values);
        let values: String = values.map(|name| format!(" <{name}>")).collect();
        let mut shown: Vec<String> = Vec::new();
        shown.extend(argument.get_short().map(|short| format!("-{short}")));
        shown.extend(argument.get_long().map(|long| format!("--{long}")));
        let shown = format!("{}{values}", shown.join(", "));
        let help = argument.get_long_help().or(argument.get_help());
        let mut about = text(help);
        let choices: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|_| takes_values)
            .map(|choice| match choice.get_help() {
                Some(help) => format!("`{}`: {help}", choice.get_name()),
                None => format!("`{}`", choice.get_name()),
            })
            .collect();
        if !choices.is_empty() {
            about += &format!(". One of {}", choices.join("; "));
        }
        let defaults: Vec<String> = argument
            .get_default_values()
            .iter()
            .filter(|_| takes_values)
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        if !defaults.is_empty() {
            about += &format!(". Default: {}", defaults.join(", "));
        }
        writeln!(rows, "| `{}` | {} |", shown.trim(), cell(&about)).unwrap();
    }
    rows
}

fn text(styled: Option<&StyledStr>) -> String {
    styled.map(ToString::to_string).unwrap_or_default()
}

/// Help as a page's text: placeholders are no markup.
fn prose(text: &str) -> String {
    let mut shown = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number > 0 {
            shown.push('`');
        }
        if number % 2 == 0 {
            shown += &part.replace('<', "&lt;").replace('>', "&gt;");
        } else {
            shown += part;
        }
    }
    shown
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    prose(&line).replace('|', "\\|")
}

const CODES: &str = "\
# Codes

Every error, finding and exit code: its cause, an example, and what to do about it. `git handoff explain CODE` prints the same, and
`git handoff explain` lists them all. Codes are public: programs branch on them, and a published code keeps its meaning.

- An **error** ends a command. With `--json` it is `error.code`, and the process exits with the code listed here. After exit 2 to 7
  the ledger is unchanged, except that every write first records the leases of the issue that ran out. `import` takes many steps:
  those that were not refused stay.
- A **finding** is one fault in the input that was checked, with its place. Its `fix` is more exact than the cure here.
";

/// What precedes the codes of a kind.
fn found_by(kind: &str) -> &'static str {
    match kind {
        "Findings in contracts" => {
            "
Found by `check` and `send`. `verify` reports them for contracts committed by hand.
"
        }
        "Findings in protocols" => {
            "
Found by `protocol check`, `protocol add`, `protocol update` and `init`, and with the error `protocol_broken`, in a ledger. The place is a
JSON Pointer into `protocol.json`, or a file in the folder.
"
        }
        "Findings in hooks" => {
            "
Found by `hooks status`, and by `hooks install` and `hooks uninstall` with the error `hooks_refused`. Findings in harnesses come from
`agents doctor`, and from `agents install` and `agents uninstall` with the error `agents_refused`. The place is the file.
"
        }
        "Findings in ledgers" => {
            "
Found by `verify`, with the error `ledger_damaged`. The program fixes nothing: find out who changed what, and fetch the branch from a clone
in which `git handoff verify` finds nothing.
"
        }
        _ => "",
    }
}

/// What `explain` knows.
fn explained() -> String {
    let mut page = generated("the codes of handoff-base") + CODES;
    let all: Vec<_> = codes::all().collect();
    for of_kind in all.chunk_by(|a, b| a.kind == b.kind) {
        let kind = of_kind[0].kind;
        write!(page, "\n## {kind}\n{}", found_by(kind)).unwrap();
        for code in of_kind {
            write!(page, "\n### `{}`\n\n", code.code).unwrap();
            if !code.exit.is_empty() {
                let exits: Vec<String> = code.exit.iter().map(u8::to_string).collect();
                writeln!(page, "- exit: {}", exits.join(", ")).unwrap();
            }
            writeln!(page, "- cause: {}", code.cause).unwrap();
            writeln!(page, "- example: {}", code.example).unwrap();
            writeln!(page, "- cure: {}", code.cure).unwrap();
        }
    }
    page
}

const METRICS: &str = "\
# Metrics and alerts

[Views, traces and events](observability.md#metrics) says how they are measured, [JSON](json.md#metrics) describes the other figures.

## OpenMetrics

What `git handoff metrics --format openmetrics` prints: gauges, and for each distribution a histogram and a summary of exact quantiles. Each
sample has the label `protocol`, except those about this clone: refused steps and the last audit.

| family | meaning |
|---|---|
";

const WATCHED: &str = "
## What an alert can watch

| metric | counts |
|---|---|
";

const ALERTS: &str = "
## Alerts of the built-in protocols

An alarm that is printed says what to do.

| alert | severity | fires when | in |
|---|---|---|---|
";

fn metrics(definitions: &Map<String, Value>) -> String {
    let mut page = generated("what the program prints and the protocols in templates") + METRICS;
    let all = families();
    for same in all.chunk_by(|a, b| a[2] == b[2]) {
        let kinds: Vec<&str> = same.iter().map(|[_, kind, _]| kind.as_str()).collect();
        assert!([&["gauge"][..], &["histogram", "summary"]].contains(&&kinds[..]));
        let names: Vec<String> = same.iter().map(|[name, ..]| format!("`{name}`")).collect();
        writeln!(page, "| {} | {} |", names.join(", "), meaning(&same[0][2])).unwrap();
    }
    page += WATCHED;
    let mut before = "";
    for known in definitions["Metric"]["oneOf"].as_array().unwrap() {
        let name = known["const"].as_str().unwrap();
        let metric: Metric = serde_json::from_value(known["const"].clone()).unwrap();
        let window = match metric.measure() {
            Measure::Events => "`within_seconds`:",
            Measure::WaitStatus => "for `longer_than_seconds`:",
            Measure::Times => "`within_seconds`, the average or a `quantile`:",
            Measure::Share if metric == Metric::AcknowledgmentRate => {
                "`within_seconds`, of what could be claimed for `longer_than_seconds`:"
            }
            Measure::Share => "`within_seconds`, a share:",
            Measure::Level => "now:",
        };
        if window != before {
            writeln!(page, "| | {window} |").unwrap();
            before = window;
        }
        let about = meaning(known["description"].as_str().unwrap());
        writeln!(page, "| `{name}` | {about} |").unwrap();
    }
    page += ALERTS;
    let mut rows: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, protocol) in built_in_protocols() {
        for alert in &protocol.definition().alerts {
            let severity = alert.severity.as_str();
            let row = format!("| `{}` | {severity} | {} |", alert.name, fires_when(alert));
            match rows.iter_mut().find(|(known, _)| *known == row) {
                Some((_, protocols)) => protocols.push(name),
                None => rows.push((row, vec![name])),
            }
        }
    }
    for (row, protocols) in rows {
        writeln!(page, "{row} {} |", protocols.join(", ")).unwrap();
    }
    page
}

/// When an alert fires, in words.
fn fires_when(alert: &Alert) -> String {
    let threshold = alert.threshold().unwrap();
    let side = match threshold.side {
        Side::Above => ">",
        Side::AtLeast => "≥",
        Side::Below => "<",
        Side::AtMost => "≤",
    };
    let quantile = alert.quantile.as_ref();
    let quantile = quantile.map_or_else(String::new, |quantile| format!(", quantile {quantile},"));
    let mut text = format!(
        "`{}`{quantile} {side} {}",
        alert.metric.as_str(),
        threshold.value
    );
    let length = |seconds: u64| humantime::format_duration(std::time::Duration::from_secs(seconds));
    if let Some(seconds) = alert.within_seconds {
        write!(text, " within {}", length(seconds)).unwrap();
    }
    if let Some(seconds) = alert.longer_than_seconds {
        write!(text, " for longer than {}", length(seconds)).unwrap();
    }
    text
}

fn built_in_protocols() -> impl Iterator<Item = (&'static str, Protocol)> {
    BUILT_IN.into_iter().map(|name| {
        let folder = built_in(name).unwrap();
        let protocol = Protocol::load(folder.file("protocol.json").unwrap()).unwrap();
        (name, protocol)
    })
}

/// Name, type and help of each family, as they are printed of a ledger without a handoff.
fn families() -> Vec<[String; 3]> {
    let survey = Survey {
        tip: ObjectId::zero(ObjectFormat::Sha1),
        issues: Issues::default(),
    };
    let protocols: Protocols = built_in_protocols()
        .map(|(name, protocol)| (name.parse().unwrap(), protocol))
        .collect();
    let now = handoff::base::Moment::default();
    let metrics = Metrics::of(
        (&survey, Vec::new()),
        &protocols,
        &Local::default(),
        None,
        None,
        now,
    );
    let mut families: Vec<[String; 3]> = Vec::new();
    for line in openmetrics(&metrics, None).lines() {
        let Some((what, rest)) = line.strip_prefix("# ").and_then(|l| l.split_once(' ')) else {
            continue;
        };
        let (name, value) = rest.split_once(' ').unwrap();
        match what {
            "TYPE" => families.push([name.into(), value.into(), String::new()]),
            "UNIT" => {}
            _ => families.last_mut().unwrap()[2] = value.into(),
        }
    }
    families
}
