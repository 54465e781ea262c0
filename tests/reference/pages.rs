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

use super::{clause, generated, meaning};
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

Every command with its options, in a line each. `git handoff help COMMAND` has the long form, with examples; `git handoff` alone says
where you are and what to do next. [Codes](codes.md#exit-codes) lists the exit codes.

";

/// How many commands have an option in the same words before these are said once.
const MANY: usize = 3;

fn commands() -> String {
    let mut command = crate::command();
    command.build();
    let mut page = generated("the command line's definition") + COMMANDS;
    for (group, names) in GROUPS {
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("[`{name}`](#{name})"))
            .collect();
        writeln!(page, "- {group}: {}", names.join(", ")).unwrap();
    }
    let mut count = BTreeMap::new();
    count_rows(&command, &mut count);
    let many = shared(&count);
    let all = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let all: Vec<String> = all.map(whole).collect();
    let of_many: Vec<String> = many.values().cloned().collect();
    for (heading, rows) in [
        ("Options of every command", all),
        ("Shared options", of_many),
    ] {
        let rows = rows.concat();
        write!(
            page,
            "\n## {heading}\n\n|option|meaning|\n|---|---|\n{rows}"
        )
        .unwrap();
    }
    for name in GROUPS.iter().flat_map(|(_, names)| *names) {
        page += &section(command.find_subcommand(name).unwrap(), "##", &many);
    }
    page
}

/// The arguments that a command does not have in common with all others.
fn own(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id().as_str() != "help")
}

/// How many commands have an option in the same words, for those of a command and of all below it.
fn count_rows(command: &Command, count: &mut BTreeMap<String, (String, usize)>) {
    for option in own(command).filter(|arg| !arg.is_positional()) {
        let long = option.get_long().unwrap().to_owned();
        count.entry(whole(option)).or_insert((long, 0)).1 += 1;
    }
    named(command).for_each(|sub| count_rows(sub, count));
}

/// The row of each option that many commands have, in the words that most of them have.
fn shared(count: &BTreeMap<String, (String, usize)>) -> BTreeMap<String, String> {
    let mut many: Vec<_> = count
        .iter()
        .filter(|(_, (_, count))| *count >= MANY)
        .collect();
    many.sort_by_key(|(_, (_, count))| *count);
    many.into_iter()
        .map(|(row, (long, _))| (long.clone(), row.clone()))
        .collect()
}

/// The commands below this one, in their order, without clap's own.
fn named(command: &Command) -> impl Iterator<Item = &Command> {
    let all = command.get_subcommands();
    all.filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
}

/// A command, and those below it.
fn section(command: &Command, level: &str, many: &BTreeMap<String, String>) -> String {
    let path = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let name = path.trim_start_matches("git handoff ");
    let about = prose(&text(command.get_about()));
    let mut page = format!("\n{level} `{name}`\n\n{}.", about.trim_end_matches('.'));
    let aliases = command.get_visible_aliases();
    let aliases: Vec<String> = aliases.map(|alias| format!("`{alias}`")).collect();
    if !aliases.is_empty() {
        write!(page, " Also: {}.", aliases.join(", ")).unwrap();
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage
        .trim()
        .trim_start_matches("Usage: ")
        .replace("[OPTIONS] ", "");
    let usage = usage.trim_end_matches(" [OPTIONS]");
    writeln!(page, "\n`{usage}`").unwrap();
    let is_shared =
        |arg: &&Arg| arg.get_long().and_then(|long| many.get(long)) == Some(&whole(arg));
    let (shared, others): (Vec<&Arg>, Vec<&Arg>) = own(command).partition(is_shared);
    if !(shared.is_empty() && others.is_empty()) {
        page += "\n|option|meaning|\n|---|---|\n";
    }
    page.extend(
        others
            .into_iter()
            .map(|arg| row(arg, |help| clause(help, 14))),
    );
    if !shared.is_empty() {
        let names = shared.into_iter().filter_map(Arg::get_long);
        let names: Vec<String> = names.map(|name| format!("`--{name}`")).collect();
        writeln!(page, "|{}|[shared](#shared-options)|", names.join(", ")).unwrap();
    }
    for sub in named(command) {
        page += &section(sub, &format!("{level}#"), many);
    }
    page
}

/// An argument with its meaning in full.
fn whole(argument: &Arg) -> String {
    row(argument, str::to_owned)
}

/// An argument with what is told of its meaning.
fn row(argument: &Arg, told: impl Fn(&str) -> String) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let takes_values = argument.get_action().takes_values();
    let values = names.iter().filter(|_| takes_values);
    let values: String = values.map(|name| format!(" <{name}>")).collect();
    let mut shown: Vec<String> = Vec::new();
    shown.extend(argument.get_short().map(|short| format!("-{short}")));
    shown.extend(argument.get_long().map(|long| format!("--{long}")));
    let shown = format!("{}{values}", shown.join(", ")).replace('|', "\\|");
    let help = text(argument.get_long_help().or(argument.get_help()));
    let (meant, default) = help.split_once(" [").unwrap_or((&help, ""));
    let mut about = told(meant);
    if !default.is_empty() {
        write!(about, "; {}", default.trim_end_matches(']')).unwrap();
    }
    let choices = argument.get_possible_values();
    let choices = choices.iter().filter(|_| takes_values);
    let choices: Vec<String> = choices
        .map(|choice| format!("`{}`", choice.get_name()))
        .collect();
    if !choices.is_empty() {
        write!(about, ": {}", choices.join(", ")).unwrap();
    }
    let defaults = argument
        .get_default_values()
        .iter()
        .filter(|_| takes_values);
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() {
        write!(about, "; default: `{}`", defaults.join(", ")).unwrap();
    }
    format!("|`{}`|{}|\n", shown.trim(), cell(&about))
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

Every error, finding and exit code, in a line each. What to do is printed with each; `git handoff explain CODE` has it too, with the cause in
full and an example. Programs branch on codes; a published one keeps its meaning.

- An **error** ends a command: with `--json` it is `error.code`, and the process exits with its number. After 2 to 7 the ledger is unchanged, but
  for leases that ran out; `import` keeps the steps that were not refused.
- A **finding** is one fault in what was checked, with its place and its `fix`.
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
Found by `protocol check`, `add` and `update`, `init`, and with the error `protocol_broken`. The place is a JSON Pointer or a file.
"
        }
        "Findings in hooks" => {
            "
Found by `hooks status` and `agents doctor`, and with the errors `hooks_refused` and `agents_refused`. The place is the file.
"
        }
        "Findings in ledgers" => {
            "
Found by `verify`, with the error `ledger_damaged`: [recovering](recovery.md).
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
        let (before, after) = match kind {
            "Errors" => ("exit|", ""),
            "Exit codes" => ("", "what to do|"),
            _ => ("", ""),
        };
        let columns = format!("|code|{before}what is wrong|{after}");
        let rule = "---|".repeat(columns.matches('|').count() - 1);
        write!(
            page,
            "\n## {kind}\n{}\n{columns}\n|{rule}\n",
            found_by(kind)
        )
        .unwrap();
        for code in of_kind {
            let exits: Vec<String> = code.exit.iter().map(u8::to_string).collect();
            let exits = exits.join(",") + if exits.is_empty() { "" } else { "|" };
            let [cause, cure] = [code.cause, code.cure].map(|text| cell(&brief(text)));
            let cure = if after.is_empty() {
                String::new()
            } else {
                cure + "|"
            };
            writeln!(page, "|`{}`|{exits}{cause}|{cure}", code.code).unwrap();
        }
    }
    page
}

/// The first clause of an explanation, of a long one as far as `explain` has to say the rest.
fn brief(text: &str) -> String {
    let most = 11;
    let text = clause(text, most);
    let is_long = text.split_whitespace().count() > most;
    match text
        .rsplit_once(", or ")
        .filter(|(before, _)| is_long && !before.ends_with('`'))
    {
        Some((before, _)) => format!("{before} …"),
        None => text,
    }
}

const METRICS: &str = "\
# Metrics and alerts

[Views, traces and events](observability.md#metrics) says how they are measured, [JSON](json.md#metrics) describes the other figures.

## OpenMetrics

What `git handoff metrics --format openmetrics` prints: gauges, and for each distribution a histogram and a summary of exact quantiles. Each
sample has the label `protocol`, except those about this clone: refused steps and the last audit.

|family|meaning|
|---|---|
";

const WATCHED: &str = "
## What an alert can watch

|metric|counts|
|---|---|
";

const ALERTS: &str = "
## Alerts of the built-in protocols

An alarm that is printed says what to do.

|alert|severity|fires when|in|
|---|---|---|---|
";

fn metrics(definitions: &Map<String, Value>) -> String {
    let mut page = generated("what the program prints and the protocols in templates") + METRICS;
    let all = families();
    for same in all.chunk_by(|a, b| a[2] == b[2]) {
        let kinds: Vec<&str> = same.iter().map(|[_, kind, _]| kind.as_str()).collect();
        assert!([&["gauge"][..], &["histogram", "summary"]].contains(&&kinds[..]));
        let names: Vec<String> = same.iter().map(|[name, ..]| format!("`{name}`")).collect();
        writeln!(page, "|{}|{}|", names.join(", "), meaning(&same[0][2])).unwrap();
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
            writeln!(page, "||{window}|").unwrap();
            before = window;
        }
        let about = meaning(known["description"].as_str().unwrap());
        writeln!(page, "|`{name}`|{about}|").unwrap();
    }
    page += ALERTS;
    let mut rows: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, protocol) in built_in_protocols() {
        for alert in protocol.definition().alerts.iter() {
            let severity = alert.severity.as_str();
            let row = format!("|`{}`|{severity}|{}|", alert.name, fires_when(alert));
            match rows.iter_mut().find(|(known, _)| *known == row) {
                Some((_, protocols)) => protocols.push(name),
                None => rows.push((row, vec![name])),
            }
        }
    }
    for (row, protocols) in rows {
        writeln!(page, "{row}{}|", protocols.join(", ")).unwrap();
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
