use anstream::adapter::strip_str;
use anstyle::AnsiColor;
use clap::{Args, ValueEnum};
use handoff::base::Moment;
use handoff::base::ids::IssueKey;
use handoff::base::text::{continued, word};
use handoff::ledger::UnpushedCode;
use handoff::ledger::attention::protocols;
use handoff::model::Refusal;
use handoff::protocol::{Level, Side};
use handoff::templates::BUILT_IN;
use handoff_cli::output::annotations::Annotation;
use handoff_report::alerts::{Firing, firing};
use schemars::JsonSchema;
use serde::Serialize;

use super::status::unpushed_text;
use crate::args::duration;
use crate::args::remote::AskArgs;
use crate::context::Context;
use crate::context::fresh::{Fresh, Reading};
use crate::environment::now;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::local::local;
use crate::output::annotations::Format;
use crate::output::{Answer, Output, annotations, counted_as};
use crate::view::Look;

/// Report crossed thresholds: since when, by what, and what to do
///
/// Exits 1 if a threshold is crossed, 0 if none is, and 6 if no protocol has any. Each protocol
/// defines its own thresholds (`alerts` in protocol.json); `help metrics.md` describes what
/// each metric counts and what the built-in protocols watch. What waits for a person is listed at
/// once under every protocol: work that was escalated, past its deadline or out of budget.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff alerts
  git handoff alerts --severity critical --json
  git handoff alerts --issue 123      (one issue only)
  git handoff alerts --format github  (annotations in a GitHub workflow)")]
pub(crate) struct Arguments {
    /// Evaluate this issue only
    #[arg(long, value_name = "ISSUE")]
    issue: Option<String>,
    /// Report only alerts of at least this severity
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    severity: Weight,
    /// The output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    format: Format,
    #[command(flatten)]
    asks: AskArgs,
}

/// The severity of an alert.
#[derive(Clone, Copy, ValueEnum)]
enum Weight {
    /// Worth a look
    Info,
    /// Something is going wrong
    Warning,
    /// Work stops or is lost
    Critical,
}

impl From<Weight> for Level {
    fn from(weight: Weight) -> Self {
        match weight {
            Weight::Info => Self::Info,
            Weight::Warning => Self::Warning,
            Weight::Critical => Self::Critical,
        }
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let is_github = self.format.is_github(output);
        let repository = context.repository_to_survey()?;
        let Reading { ledger, tip, fresh } =
            context.fresh(&repository, self.asks.offline, output)?;
        let fault = fresh.as_ref().and_then(Fresh::fault);
        let now = now()?;
        let key: Option<IssueKey> = self.issue.as_deref().map(str::parse).transpose()?;
        let mut rules = protocols(&tip, now)?;
        let issues = match &key {
            None => ledger.survey(&tip, Context::threads())?.issues,
            Some(key) => {
                let issues = tip.issue(key)?.survey()?;
                let issues = issues.ok_or_else(|| Refusal::no_issue(key))?;
                rules.keep(|name| issues.iter().any(|issue| issue.protocol == *name));
                issues
            }
        };
        let least = Level::from(self.severity);
        let mut firing = firing(
            &issues,
            &rules,
            &local(&ledger, &tip, now)?,
            key.as_ref(),
            now,
        );
        firing.retain(|alert| alert.severity >= least);
        let without = rules
            .iter()
            .filter(|(_, p)| p.definition().alerts.is_empty());
        let without: Vec<&str> = without.map(|(name, _)| name.as_str()).collect();
        let remote = ledger.beside_remote()?;
        let view = AlertsView {
            unpublished: remote.map_or(0, |remote| remote.unpublished),
            unpushed: ledger.unpushed_code(&tip)?,
            remote_fault: fault,
            at: now,
            firing,
            without_alerts: &without,
        };
        if fault.is_none() && view.firing.is_empty() && without.len() == rules.len() {
            let which = without.join(", ");
            let text = format!("nothing is watched: no thresholds are set in {which}");
            let hints: Vec<String> = without.iter().map(|name| to_watch(name)).collect();
            let failure = Failure::new(ErrorCode::NoAlerts, text);
            return Err(failure.hint(hints.join("; ")).data(&view));
        }
        for name in &without {
            output.say(&format!(
                "protocol {name} has no alerts: {}",
                to_watch(name)
            ));
        }
        output.paged();
        if fault.is_none() && view.firing.is_empty() {
            return output.answer(&view);
        }
        if is_github {
            let look = output.look(now);
            let remarks = view.firing.iter().map(|alert| remark(alert, &look));
            let remarks: Vec<Annotation> = remarks.collect();
            annotations::show(output, &remarks, "")?;
            return Err(Failure::reported(exit::NO));
        }
        if output.is_json() {
            let count = view.firing.len();
            let crossed = || counted_as(count, "threshold", [" is crossed", "s are crossed"]);
            let text = fault.map_or_else(crossed, str::to_owned);
            let failure = Failure::new(ErrorCode::Alert, text);
            return Err(failure
                .hint("the `action` of each says what to do")
                .data(&view));
        }
        output.answer(&view)?;
        Err(Failure::reported(exit::NO))
    }
}

/// The crossed thresholds.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Alerts")]
pub(crate) struct AlertsView<'a> {
    /// now
    at: Moment,
    /// each crossed threshold, the most severe first
    firing: Vec<Firing>,
    /// how many commits of the ledger are here and not on its remote, as last seen
    unpublished: usize,
    /// the code of open issues that is only here, as far as is known here
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unpushed: Vec<UnpushedCode>,
    /// what is wrong with the remote's ledger: it was rewritten, or is none
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_fault: Option<&'a str>,
    /// protocols in force that have no `alerts`
    without_alerts: &'a [&'a str],
}

impl Answer for AlertsView<'_> {
    fn text(&self, look: &Look) -> String {
        let mut text: String = self.firing.iter().map(|alert| shown(alert, look)).collect();
        if self.firing.is_empty() {
            text += "no threshold is crossed\n";
        }
        if let Some(fault) = self.remote_fault {
            text += &format!("{}: `git handoff fetch` says more\n", continued(fault));
        }
        if self.unpublished > 0 {
            let steps = counted_as(self.unpublished, "step", [" is", "s are"]);
            text += &format!("{steps} only here, and not on the remote: `git handoff sync`\n");
        }
        text += &unpushed_text(&self.unpushed);
        look.sentences(&text)
    }
}

fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name)
}

/// How to add alerts to a protocol.
fn to_watch(name: &str) -> String {
    if is_built_in(name) {
        format!(
            "`git handoff protocol update {}` adopts those of the built-in protocol, or add `alerts` to your own (`git handoff help protocols.md`)",
            word(name)
        )
    } else {
        format!("add `alerts` to {name} (`git handoff help protocols.md`)")
    }
}

/// How many handoffs an alert lists before it only counts the rest.
const NAMED: usize = 8;

fn shown(alert: &Firing, look: &Look) -> String {
    let style = match alert.severity {
        Level::Critical => AnsiColor::Red.on_default().bold(),
        Level::Warning => AnsiColor::Yellow.on_default(),
        Level::Info => AnsiColor::Blue.on_default(),
    };
    let side = match alert.side {
        Side::Above => "above",
        Side::AtLeast => "not below",
        Side::Below => "below",
        Side::AtMost => "not above",
    };
    let of = match alert.quantile {
        Some(quantile) if quantile >= 1.0 => ", the longest".to_owned(),
        Some(quantile) => format!(", p{}", quantile * 100.0),
        None if alert.unit == "seconds" => ", the average".to_owned(),
        None => String::new(),
    };
    let long = |seconds: u64| duration::shown(i64::try_from(seconds).unwrap_or(i64::MAX));
    let within = alert.within_seconds.map(|w| format!(" within {}", long(w)));
    let longer = alert
        .longer_than_seconds
        .map(|l| format!(" for longer than {}", long(l)));
    let mut text = format!(
        "{style}{}{style:#} {}: {}{of}{}{} is {}, {side} {} ({})\n",
        alert.severity.as_str(),
        alert.name,
        alert.metric.as_str(),
        longer.unwrap_or_default(),
        within.unwrap_or_default(),
        amount(alert.value, alert.unit),
        amount(alert.threshold, alert.unit),
        alert.protocol,
    );
    let ago = duration::shown((look.now() - alert.since).num_seconds());
    text += &format!("  since {} ({ago})\n", alert.since);
    let ids = alert.ids.iter().map(ToString::to_string);
    let mut ids: Vec<String> = ids.collect();
    if ids.is_empty() {
        ids = alert
            .keys
            .iter()
            .map(|key| format!("issue {key}"))
            .collect();
    }
    if !ids.is_empty() {
        let more = ids.len().saturating_sub(NAMED);
        ids.truncate(NAMED);
        text += &format!("  {}", ids.join(", "));
        if more > 0 {
            text += &format!(", and {more} more");
        }
        text.push('\n');
    }
    text + &format!("  {}\n", continued(&alert.action))
}

fn remark(alert: &Firing, look: &Look) -> Annotation {
    let text = strip_str(&shown(alert, look)).to_string();
    Annotation::new(alert.severity.into(), alert.name.clone(), text.trim_end())
}

/// A value with its unit, as text.
#[allow(clippy::cast_possible_truncation)]
fn amount(value: f64, unit: &str) -> String {
    match unit {
        "seconds" if value.fract() == 0.0 => duration::shown(value as i64),
        "seconds" if value < 10.0 => format!("{}s", (value * 1000.0).round() / 1000.0),
        "seconds" => format!("{value:.1}s"),
        "ratio" => format!("{:.1} %", value * 100.0),
        _ => value.to_string(),
    }
}
