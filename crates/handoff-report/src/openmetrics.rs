//! Metrics in the OpenMetrics text format, for Prometheus and its node exporter.
//!
//! Counts are gauges, not counters: each run counts anew, and the numbers shrink if the ledger is
//! shortened.

use std::fmt::Write;

use super::metrics::{
    BUCKETS, By, Distribution, Figures, Group, Metrics, RoundFigures, seconds, sums,
};
use handoff::protocol::Need;

/// Formats metrics, labelled by protocol, and by `by` if rows are grouped.
pub fn openmetrics(metrics: &Metrics, by: Option<By>) -> String {
    let rows = match by {
        None | Some(By::Protocol) => &metrics.protocols,
        Some(_) => &metrics.groups,
    };
    let mut page = Page {
        text: String::new(),
        label: by.filter(|by| *by != By::Protocol).map(By::as_str),
        rows,
    };
    page.counts();
    page.rates();
    page.times();
    page.issues();
    let mut text = page.text;
    ledger(&mut text, metrics);
    text += "# EOF\n";
    text
}

/// A family's name, its help text, and its value.
type Named<F, T> = (&'static str, &'static str, fn(&F) -> T);

struct Page<'m> {
    text: String,
    label: Option<&'static str>,
    rows: &'m [Group],
}

impl Page<'_> {
    fn labels(&self, row: &Group) -> String {
        let mut labels = format!("protocol=\"{}\"", label_value(row.protocol.as_str()));
        if let Some(label) = self.label {
            labels += &format!(",{label}=\"{}\"", label_value(&row.name));
        }
        labels
    }

    /// A gauge with a sample for each row that has a value.
    fn gauge(
        &mut self,
        name: &str,
        unit: &str,
        help: &str,
        value: impl Fn(&Figures) -> Option<f64>,
    ) {
        head(&mut self.text, name, "gauge", unit, help);
        for row in self.rows {
            if let Some(value) = value(&row.figures) {
                let labels = self.labels(row);
                sample(&mut self.text, name, &labels, value);
            }
        }
    }

    fn counts(&mut self) {
        let name = "git_handoff_handoffs";
        let help = "Handoffs that were sent, by the state that they are in now.";
        head(&mut self.text, name, "gauge", "", help);
        for row in self.rows {
            for (state, count) in &row.figures.states {
                let labels = format!("{},state=\"{state}\"", self.labels(row));
                sample(&mut self.text, name, &labels, number(*count));
            }
        }
        let counts: [Named<Figures, u64>; 10] = [
            ("notes", "Notes: contracts that nobody claims.", |f| f.notes),
            ("failures", "Attempts that failed.", |f| f.failures),
            (
                "timeouts",
                "Attempts whose lease, or time to claim them, ran out.",
                |f| f.timeouts,
            ),
            ("retries", "Further attempts at what failed.", |f| f.retries),
            ("escalated", "Handoffs that came to a person.", |f| {
                f.escalated
            }),
            (
                "contradicted_claims",
                "Statements of contracts that the repository contradicts.",
                |f| f.contradicted,
            ),
            ("violations", "What agents did against their roles.", |f| {
                f.violations
            }),
            (
                "cycles_blocked",
                "Contracts that this clone refused because they would have gone in circles.",
                |f| f.cycles_blocked,
            ),
            (
                "contracts_refused",
                "Contracts that this clone refused.",
                |f| f.contracts_refused,
            ),
            (
                "contracts_contradicted",
                "Refused contracts that the repository contradicts.",
                |f| f.contracts_contradicted,
            ),
        ];
        for (name, help, count) in counts {
            let name = format!("git_handoff_{name}");
            self.gauge(&name, "", help, |figures| Some(number(count(figures))));
        }
    }

    fn rates(&mut self) {
        self.gauge(
            "git_handoff_success_ratio",
            "ratio",
            "Completed handoffs as a share of completed, failed, dead and rejected ones.",
            |figures| figures.success_rate,
        );
        self.gauge(
            "git_handoff_acknowledgment_ratio",
            "ratio",
            "How much of what was sent was ever claimed.",
            |figures| figures.acknowledgment_rate,
        );
    }

    /// A histogram, and its exact quantiles.
    fn distribution(
        &mut self,
        name: &str,
        help: &str,
        of: impl Fn(&Figures) -> Option<&Distribution>,
    ) {
        let family = format!("git_handoff_{name}_seconds");
        head(&mut self.text, &family, "histogram", "seconds", help);
        for row in self.rows {
            let Some(found) = of(&row.figures) else {
                continue;
            };
            let labels = self.labels(row);
            let bucket = format!("{family}_bucket");
            for (end, upto) in BUCKETS.into_iter().zip(found.buckets) {
                let labels = format!("{labels},le=\"{end}.0\"");
                sample(&mut self.text, &bucket, &labels, whole(upto));
            }
            let infinite = format!("{labels},le=\"+Inf\"");
            sample(&mut self.text, &bucket, &infinite, whole(found.count));
            totals(&mut self.text, &family, &labels, found);
        }
        let family = format!("git_handoff_{name}_quantiles_seconds");
        head(&mut self.text, &family, "summary", "seconds", help);
        for row in self.rows {
            let Some(found) = of(&row.figures) else {
                continue;
            };
            let labels = self.labels(row);
            let quantiles = [("0.5", found.p50), ("0.95", found.p95), ("0.99", found.p99)];
            for (quantile, length) in quantiles {
                let labels = format!("{labels},quantile=\"{quantile}\"");
                if let Some(length) = length {
                    sample(&mut self.text, &family, &labels, seconds::number(length));
                }
            }
            totals(&mut self.text, &family, &labels, found);
        }
    }

    fn times(&mut self) {
        self.distribution(
            "duration",
            "From the sending of a handoff to its end.",
            |f| Some(&f.duration_seconds),
        );
        self.distribution(
            "acknowledgment",
            "From the sending of a handoff to its first claim.",
            |f| Some(&f.acknowledgment_seconds),
        );
        self.distribution(
            "recovery",
            "From a failure to the claim that took the work up again.",
            |f| Some(&f.recovery_seconds),
        );
        let spent: [Named<Figures, i64>; 4] = [
            ("waiting", "How long handoffs waited to be claimed.", |f| {
                f.waiting_seconds
            }),
            ("working", "How long handoffs were worked on.", |f| {
                f.working_seconds
            }),
            ("blocked", "How long handoffs lacked an answer.", |f| {
                f.blocked_seconds
            }),
            (
                "failed",
                "Time from a failure to the claim that resumed the work.",
                |f| f.failed_seconds,
            ),
        ];
        for (name, help, length) in spent {
            let name = format!("git_handoff_{name}_seconds");
            self.gauge(&name, "seconds", help, |figures| {
                Some(as_number(length(figures)))
            });
        }
    }

    fn issues(&mut self) {
        if self.rows.iter().all(|row| row.figures.issues.is_none()) {
            return;
        }
        let name = "git_handoff_issues";
        head(
            &mut self.text,
            name,
            "gauge",
            "",
            "Issues, by whether they are worked on.",
        );
        for row in self.rows {
            let Some(issues) = &row.figures.issues else {
                continue;
            };
            for (status, count) in [("open", issues.open), ("completed", issues.completed)] {
                let labels = format!("{},status=\"{status}\"", self.labels(row));
                sample(&mut self.text, name, &labels, number(count));
            }
        }
        self.distribution(
            "cycle",
            "From the opening of an issue to its completion.",
            |f| f.issues.as_ref().map(|issues| &issues.cycle_seconds),
        );
    }
}

/// Metrics without groups: agents, rounds, the audit.
fn ledger(text: &mut String, metrics: &Metrics) {
    let name = "git_handoff_agent_seconds";
    let help = "Where the time of an agent's handoffs went.";
    head(text, name, "gauge", "seconds", help);
    for agent in &metrics.agents {
        for (doing, length) in [
            ("waiting", agent.waiting_seconds),
            ("working", agent.working_seconds),
            ("blocked", agent.blocked_seconds),
            ("failed", agent.failed_seconds),
        ] {
            let (protocol, agent) = (agent.protocol.as_str(), agent.agent.as_str());
            let labels = format!(
                "protocol=\"{}\",agent=\"{}\",spent=\"{doing}\"",
                label_value(protocol),
                label_value(agent)
            );
            sample(text, name, &labels, as_number(length));
        }
    }
    usage(text, metrics);
    let rounds: [Named<RoundFigures, Option<f64>>; 2] = [
        (
            "average",
            "How many rounds an issue had, on average.",
            |r| r.average,
        ),
        ("most", "How many rounds an issue had, at most.", |r| {
            Some(number(r.most))
        }),
    ];
    for (name, help, value) in rounds {
        let name = format!("git_handoff_rounds_{name}");
        head(text, &name, "gauge", "", help);
        for round in &metrics.rounds {
            let labels = format!(
                "protocol=\"{}\",rounds=\"{}\"",
                label_value(round.protocol.as_str()),
                label_value(&round.name)
            );
            if let Some(value) = value(round) {
                sample(text, &name, &labels, value);
            }
        }
    }
    let name = "git_handoff_stuck";
    head(text, name, "gauge", "", "What needs attention, by reason.");
    for (protocol, needs) in &metrics.stuck_in {
        for need in Need::ALL {
            let count = needs.get(&need).copied().unwrap_or(0);
            let labels = format!(
                "protocol=\"{}\",need=\"{}\"",
                label_value(protocol.as_str()),
                need.as_str()
            );
            sample(text, name, &labels, whole(count));
        }
    }
    let name = "git_handoff_rejected_steps";
    let help = "Steps that were made offline, were refused, and wait for a decision.";
    head(text, name, "gauge", "", help);
    sample(text, name, "", whole(metrics.rejected_steps));
    let name = "git_handoff_corruption";
    head(
        text,
        name,
        "gauge",
        "",
        "Faults that the last audit in this clone found.",
    );
    if let Some(audited) = &metrics.corruption {
        sample(text, name, "", number(audited.faults));
    }
}

/// What work took, by agent and model.
fn usage(text: &mut String, metrics: &Metrics) {
    let by_model = sums(&metrics.usage, |one| {
        (&one.protocol, &one.agent, &one.provider, &one.model)
    });
    let labelled = by_model
        .iter()
        .map(|((protocol, agent, provider, model), sum)| {
            let labels = format!(
                "protocol=\"{}\",agent=\"{}\",provider=\"{}\",model=\"{}\"",
                label_value(protocol.as_str()),
                label_value(agent.as_str()),
                label_value(provider),
                label_value(model)
            );
            (labels, sum)
        });
    let labelled: Vec<_> = labelled.collect();
    let name = "git_handoff_usage_tokens";
    head(
        text,
        name,
        "gauge",
        "",
        "Tokens that models read and wrote, as agents reported them.",
    );
    for (labels, sum) in &labelled {
        for (kind, count) in [
            ("input", sum.input_tokens),
            ("output", sum.output_tokens),
            ("cached", sum.cached_tokens),
        ] {
            sample(
                text,
                name,
                &format!("{labels},type=\"{kind}\""),
                number(count),
            );
        }
    }
    let name = "git_handoff_usage_cost";
    head(
        text,
        name,
        "gauge",
        "",
        "What models cost, as agents reported it, by currency.",
    );
    for (labels, sum) in &labelled {
        for (currency, cost) in &sum.cost {
            let labels = format!("{labels},currency=\"{currency}\"");
            sample(text, name, &labels, f64::from(*cost));
        }
    }
}

fn head(text: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    *text += &format!("# TYPE {name} {kind}\n");
    if !unit.is_empty() {
        *text += &format!("# UNIT {name} {unit}\n");
    }
    *text += &format!("# HELP {name} {help}\n");
}

fn sample(text: &mut String, name: &str, labels: &str, value: f64) {
    let labels = match labels {
        "" => String::new(),
        labels => format!("{{{labels}}}"),
    };
    // Writing to a string can't fail.
    let _ = writeln!(text, "{name}{labels} {value}");
}

/// The sum and count that end a histogram and a summary.
fn totals(text: &mut String, family: &str, labels: &str, found: &Distribution) {
    let (sum, count) = (seconds::number(found.sum), whole(found.count));
    sample(text, &format!("{family}_sum"), labels, sum);
    sample(text, &format!("{family}_count"), labels, count);
}

/// Escapes a label's value.
fn label_value(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[allow(clippy::cast_precision_loss)]
fn number(count: u64) -> f64 {
    count as f64
}

#[allow(clippy::cast_precision_loss)]
fn whole(count: usize) -> f64 {
    count as f64
}

#[allow(clippy::cast_precision_loss)]
fn as_number(length: i64) -> f64 {
    length as f64
}
