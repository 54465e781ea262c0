use std::path::PathBuf;

use chrono::TimeDelta;
use clap::{Args, ValueEnum};
use handoff::base::text::{continued, grouped};
use handoff::base::{Moment, ObjectId};
use handoff::ledger::attention::{of_survey, protocols};
use handoff::protocol::State;
use handoff_report::metrics::{By, Figures, Group, Metrics, UsageFigures, sums};
use handoff_report::openmetrics::openmetrics;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{duration, moment as moments};
use crate::context::Context;
use crate::environment::now;
use crate::failure::Failure;
use crate::local::local;
use crate::output::page::Cut;
use crate::output::replace::is_stdout;
use crate::output::{Answer, Output, document, replace};
use crate::view::Look;

/// Count handoffs, their outcomes and how long they took
///
/// Every figure is computed from the ledger's newest state. A refused contract
/// leaves nothing in the ledger: refused contracts and the findings of the last
/// audit come from this clone's own notes. The time of anything that has not
/// ended runs until now. `help json.md` describes every figure.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff metrics
  git handoff metrics --since 7d --by agent
  git handoff metrics --format openmetrics --output /tmp/handoff.prom")]
pub(crate) struct Arguments {
    /// Count only what was sent since then: 2026-03-04T05:06:07Z, a date, or how long ago: 7d
    #[arg(long, value_name = "TIME", value_parser = moments::parse)]
    since: Option<Moment>,
    /// Add a row for each of these
    #[arg(long, value_name = "WHAT")]
    by: Option<Rows>,
    /// The output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// Write to this file, replacing it atomically; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What the rows group by.
#[derive(Clone, Copy, ValueEnum)]
enum Rows {
    /// The agent that has the handoffs
    Agent,
    /// Sender and receiver
    Route,
    /// The contract's type
    Type,
    /// The protocol
    Protocol,
    /// The issue
    Issue,
}

impl From<Rows> for By {
    fn from(rows: Rows) -> Self {
        match rows {
            Rows::Agent => Self::Agent,
            Rows::Route => Self::Route,
            Rows::Type => Self::Type,
            Rows::Protocol => Self::Protocol,
            Rows::Issue => Self::Issue,
        }
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// One document, as with --json
    Json,
    /// For Prometheus
    Openmetrics,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let as_json = output.is_json() || self.format == Format::Json;
        if output.is_json() && self.format == Format::Openmetrics {
            let text = "--json and --format openmetrics cannot be combined";
            return Err(Failure::usage(text).hint("leave one out"));
        }
        let repository = context.repository_to_survey()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let now = now()?;
        let by = self.by.map(By::from);
        let survey = ledger.survey(&tip, Context::threads())?;
        let rules = protocols(&tip, now)?;
        let stuck = of_survey(&tip, &survey, &rules, now)?;
        let metrics = Metrics::of(
            (&survey, stuck),
            &rules,
            &local(&ledger, &tip, now)?,
            self.since,
            by,
            now,
        );
        let mut view = MetricsView {
            commit: tip.commit(),
            at: now,
            since: self.since,
            by,
            metrics,
            cut: Cut::default(),
        };
        let file = self.output.as_ref().filter(|path| !is_stdout(path));
        let text = match self.format {
            _ if as_json => document(&view),
            Format::Openmetrics => openmetrics(&view.metrics, by),
            Format::Table | Format::Json if file.is_none() => {
                output.paged();
                view.cut = Cut::of(output);
                return output.answer(&view);
            }
            Format::Table | Format::Json => view.text(&Look::plain(now)),
        };
        match file {
            Some(path) => replace::replace(path, text.as_bytes()),
            None => output.raw(text.as_bytes()),
        }
    }
}

/// All metrics.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Metrics")]
pub(crate) struct MetricsView {
    /// the ledger commit that was read
    commit: ObjectId,
    /// now: anything that has not ended is measured up to this time
    at: Moment,
    /// the time of `--since`
    since: Option<Moment>,
    /// what `groups` are; null without `--by`
    by: Option<By>,
    #[serde(flatten)]
    metrics: Metrics,
    #[serde(skip)]
    cut: Cut,
}

impl Answer for MetricsView {
    fn text(&self, look: &Look) -> String {
        table(self, look)
    }
}

/// The name of an additional count, and its value.
type Beside = (&'static str, fn(&Figures) -> u64);

/// Counts that get a column only if one is not zero.
const BESIDE: [Beside; 3] = [
    ("notes", |figures| figures.notes),
    ("refused", |figures| figures.contracts_refused),
    ("violations", |figures| figures.violations),
];

fn table(view: &MetricsView, look: &Look) -> String {
    let metrics = &view.metrics;
    let mut text = String::new();
    if let Some(since) = view.since {
        text += &format!("since {since}\n\n");
    }
    text += &look.table(&figures(metrics));
    let mut section = |title: &[&str], rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            let head = title.iter().map(|&cell| cell.to_owned()).collect();
            let (shown, rest) = view.cut.rows(&rows);
            let all: Vec<Vec<String>> = std::iter::once(head).chain(shown.to_vec()).collect();
            text += &format!("\n{}{rest}", look.table(&all));
        }
    };
    section(
        &["time", "count", "average", "p50", "p95", "p99", "longest"],
        times(&metrics.figures),
    );
    if let Some(by) = view.by {
        let (title, rows) = groups(&metrics.groups, by);
        section(&title, rows);
    }
    section(
        &["rounds of an issue", "average", "most", "limit"],
        rounds(metrics),
    );
    section(
        &["agent", "open", "waiting", "working", "blocked", "failed"],
        agents(metrics),
    );
    section(
        &["usage", "input", "cached", "output", "turns", "cost"],
        usage(metrics),
    );
    section(&["stuck", "why", "with", "since", ""], stuck(metrics, look));
    text
}

/// The title and rows of `--by`.
fn groups(groups: &[Group], by: By) -> (Vec<&'static str>, Vec<Vec<String>>) {
    // A row may have no handoffs, only these counts.
    let some = |count: fn(&Figures) -> u64| groups.iter().any(|g| count(&g.figures) > 0);
    let more: Vec<Beside> = BESIDE
        .into_iter()
        .filter(|(_, count)| some(*count))
        .collect();
    let mut title = vec![
        by.as_str(),
        "handoffs",
        "completed",
        "failures",
        "retries",
        "success",
        "acknowledged",
        "average",
        "p95",
        "waiting",
        "working",
    ];
    title.extend(more.iter().map(|(name, _)| *name));
    let rows = groups.iter().map(|row| {
        let counts = more
            .iter()
            .map(|(_, count)| count(&row.figures).to_string());
        let cells = group(&row.name, &row.figures).into_iter();
        cells.chain(counts).collect()
    });
    (title, rows.collect())
}

fn rounds(metrics: &Metrics) -> Vec<Vec<String>> {
    let rows = metrics.rounds.iter().map(|round| {
        let average = round
            .average
            .map_or_else(none, |average| format!("{average:.1}"));
        let (most, limit) = (round.most.to_string(), round.limit.to_string());
        vec![continued(&round.name), average, most, limit]
    });
    rows.collect()
}

fn agents(metrics: &Metrics) -> Vec<Vec<String>> {
    let rows = metrics.agents.iter().map(|agent| {
        let lengths = [
            agent.waiting_seconds,
            agent.working_seconds,
            agent.blocked_seconds,
            agent.failed_seconds,
        ];
        let head = [agent.agent.to_string(), agent.open.to_string()];
        head.into_iter()
            .chain(lengths.map(duration::shown))
            .collect()
    });
    rows.collect()
}

/// Usage in total, and by agent, model and day; empty if none was reported.
fn usage(metrics: &Metrics) -> Vec<Vec<String>> {
    fn model(one: &UsageFigures) -> String {
        match (one.provider.as_str(), one.model.as_str()) {
            ("", "") => "no model named".to_owned(),
            ("", name) | (name, "") => name.to_owned(),
            (provider, model) => format!("{provider}/{model}"),
        }
    }
    let all = sums(&metrics.usage, |_| "all".to_owned());
    let agents = sums(&metrics.usage, |one| format!("by {}", one.agent));
    let models = sums(&metrics.usage, |one| {
        format!("of {}", continued(&model(one)))
    });
    let days = sums(&metrics.usage, |one| format!("on {}", one.day));
    let rows = all.into_iter().chain(agents).chain(models).chain(days);
    let rows = rows.map(|(name, sum)| {
        let counts = [
            sum.input_tokens,
            sum.cached_tokens,
            sum.output_tokens,
            sum.turns,
        ];
        let cost = sum
            .cost
            .iter()
            .map(|(currency, cost)| format!("{cost} {currency}"));
        let cost: Vec<String> = cost.collect();
        let cost = if cost.is_empty() {
            none()
        } else {
            cost.join(", ")
        };
        let counts = counts.map(grouped);
        std::iter::once(name).chain(counts).chain([cost]).collect()
    });
    rows.collect()
}

fn stuck(metrics: &Metrics, look: &Look) -> Vec<Vec<String>> {
    let rows = metrics.stuck.iter().map(|stuck| {
        vec![
            stuck.id.to_string(),
            stuck.need.title().to_owned(),
            stuck.turn.to_string(),
            look.time(stuck.since),
            look.cell(&stuck.why),
        ]
    });
    rows.collect()
}

/// The text for a missing measurement.
fn none() -> String {
    "-".to_owned()
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(none, |share| format!("{:.1}", share * 100.0))
}

/// Each figure with its unit.
fn figures(metrics: &Metrics) -> Vec<Vec<String>> {
    let figures = &metrics.figures;
    let mut rows = vec![["figure", "value", "unit"].map(str::to_owned).to_vec()];
    let mut row = |name: &str, value: String, unit: &str| {
        rows.push(vec![name.to_owned(), value, unit.to_owned()]);
    };
    let unit = |count, noun: &str| format!("{noun}{}", if count == 1 { "" } else { "s" });
    let handoffs = figures.handoffs;
    row("handoffs", handoffs.to_string(), &unit(handoffs, "handoff"));
    row(
        "  notes",
        figures.notes.to_string(),
        &unit(figures.notes, "contract"),
    );
    for state in State::ALL {
        let count = figures.states.get(&state).copied().unwrap_or(0);
        row(
            &format!("  {state}"),
            count.to_string(),
            &unit(count, "handoff"),
        );
    }
    for (name, count, noun) in [
        ("failures", figures.failures, "attempt"),
        ("timeouts", figures.timeouts, "attempt"),
        ("retries", figures.retries, "attempt"),
        ("escalated", figures.escalated, "handoff"),
        ("contradicted", figures.contradicted, "statement"),
        ("violations", figures.violations, "action"),
        ("cycles blocked here", figures.cycles_blocked, "contract"),
        ("refused here", figures.contracts_refused, "contract"),
        ("  contradicted", figures.contracts_contradicted, "contract"),
    ] {
        row(name, count.to_string(), &unit(count, noun));
    }
    let corruption = metrics.corruption.as_ref();
    let faults = corruption.map_or_else(none, |audited| audited.faults.to_string());
    row("corruption", faults, "faults");
    row("success rate", percent(figures.success_rate), "%");
    row(
        "acknowledgment rate",
        percent(figures.acknowledgment_rate),
        "%",
    );
    if let Some(issues) = &figures.issues {
        row("issues open", issues.open.to_string(), "issues");
        row("issues completed", issues.completed.to_string(), "issues");
    }
    if metrics.rejected_steps > 0 {
        row(
            "rejected at a sync",
            metrics.rejected_steps.to_string(),
            "steps",
        );
    }
    rows
}

/// The durations.
fn times(figures: &Figures) -> Vec<Vec<String>> {
    let cycle = figures.issues.as_ref().map(|issues| &issues.cycle_seconds);
    let all = [
        ("handoff: sent to end", Some(&figures.duration_seconds)),
        (
            "handoff: sent to claim",
            Some(&figures.acknowledgment_seconds),
        ),
        ("failure to next claim", Some(&figures.recovery_seconds)),
        ("issue: opened to completed", cycle),
    ];
    let rows = all.into_iter().filter_map(|(name, found)| {
        let found = found?;
        let quantiles = [found.p50, found.p95, found.p99, found.longest];
        let head = [
            name.to_owned(),
            found.count.to_string(),
            average(found.average),
        ];
        let quantiles = quantiles.map(|found| found.map_or_else(none, length));
        Some(head.into_iter().chain(quantiles).collect())
    });
    rows.collect()
}

#[allow(clippy::cast_possible_truncation)]
fn average(seconds: Option<f64>) -> String {
    let average = seconds.map(|seconds| (seconds * 1000.0).round() as i64);
    average.map_or_else(none, |short| length(TimeDelta::milliseconds(short)))
}

/// A time, to the second, or to the millisecond if it is shorter.
fn length(time: TimeDelta) -> String {
    match time.num_milliseconds() {
        short @ 1..1000 => format!("{short} ms"),
        _ => duration::shown(time.num_seconds()),
    }
}

fn group(name: &str, figures: &Figures) -> Vec<String> {
    let completed = figures.states.get(&State::Completed).copied().unwrap_or(0);
    let duration = &figures.duration_seconds;
    let counts = [
        figures.handoffs,
        completed,
        figures.failures,
        figures.retries,
    ];
    let mut row = vec![continued(name)];
    row.extend(counts.map(|count| count.to_string()));
    let rates = [figures.success_rate, figures.acknowledgment_rate];
    row.extend(rates.map(|share| match share {
        Some(_) => format!("{} %", percent(share)),
        None => none(),
    }));
    row.push(average(duration.average));
    row.push(duration.p95.map_or_else(none, length));
    row.extend([figures.waiting_seconds, figures.working_seconds].map(duration::shown));
    row
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    #[test]
    fn an_average_is_rounded_like_the_longest() {
        let longest = super::length(TimeDelta::milliseconds(1_600));
        assert_eq!(super::average(Some(1.6)), longest);
    }
}
