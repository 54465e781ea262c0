use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use handoff::base::Moment;
use handoff::base::ids::IssueKey;
use handoff::base::text::continued;
use handoff::ledger::{LedgerError, Snapshot};
use handoff::model::{Refusal, View};
use handoff_report::otlp::{Origin, Span, Traced, spans};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{duration, moment, reference};
use crate::context::Context;
use crate::environment;
use crate::failure::{ErrorCode, Failure};
use crate::output::replace::is_stdout;
use crate::output::{self, Output, counted, replace};
use crate::view::Look;
use handoff_http::collector::{Answer, Collector, Endpoint};

/// Write issues as OTLP JSON lines, or push them to a collector
///
/// Each issue is a trace, each handoff a span in it, and each period of waiting,
/// working or needing attention a span in that. Ids are the same in every export.
/// A span that has not ended gets the current time as its end, and the attribute
/// `git_handoff.open`; --completed leaves such issues out.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff export otlp > traces.jsonl
  git handoff export otlp --issue 123 --output traces.jsonl
  git handoff export otlp --since 7d --completed --push http://localhost:4318
  git handoff export otlp --push          (to OTEL_EXPORTER_OTLP_ENDPOINT)

Headers, such as a collector's key, come from OTEL_EXPORTER_OTLP_HEADERS.
A collector behind https:// needs a git-handoff built with `--features https`.")]
pub(crate) struct Arguments {
    /// Only this issue
    #[arg(long, value_name = "ISSUE", value_parser = reference::issue)]
    issue: Option<IssueKey>,
    /// Only issues with a step since this date or time, or this long ago (7d)
    #[arg(long, value_name = "WHEN", value_parser = moment::parse)]
    since: Option<Moment>,
    /// Only completed issues
    #[arg(long)]
    completed: bool,
    /// Write to this file atomically; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Push to this address; by default the one in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
    /// or OTEL_EXPORTER_OTLP_ENDPOINT
    #[arg(long, value_name = "URL", num_args = 0..=1, conflicts_with = "output")]
    push: Option<Option<String>>,
    /// The time limit for the whole push
    #[arg(long, value_name = "DURATION", requires = "push", value_parser = duration::parse)]
    #[arg(default_value = "30s")]
    timeout: Duration,
}

/// The maximum number of spans per document.
const MOST: usize = 1000;

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let tip = context.tip(&repository)?;
        if let Some(key) = &self.issue
            && tip.issue(key)?.issue()?.is_none()
        {
            return Err(Refusal::no_issue(key).into());
        }
        let origin = Origin::new(&tip, &environment::service_name())?;
        if let Some(url) = &self.push {
            return self.push(&tip, &origin, url.as_deref(), output);
        }
        output.only_reads();
        if let Some(path) = self.output.as_ref().filter(|path| !is_stdout(path)) {
            let count = replace::replace_with(path, |file| {
                self.lines(&tip, &origin, |line| {
                    let written = file.write_all(line.as_bytes());
                    written.map(|()| true).map_err(|error| {
                        let text = format!("cannot write {}: {error}", path.display());
                        Failure::new(ErrorCode::Output, text)
                    })
                })
            })?;
            return output.answer(&TracesFileView {
                output: path.display().to_string(),
                count,
                lines: count.documents,
            });
        }
        output.one_line_each();
        self.lines(&tip, &origin, |line| output.stream(line.as_bytes()))
            .map(drop)
    }

    /// The keys of the candidate issues; numbers are in numeric order.
    fn keys(&self, tip: &Snapshot<'_>) -> Result<Vec<IssueKey>, LedgerError> {
        match &self.issue {
            Some(key) => Ok(vec![key.clone()]),
            None => tip.issues(),
        }
    }

    /// Passes the spans of each selected issue to `take`, until it returns false.
    fn each(
        &self,
        tip: &Snapshot<'_>,
        origin: &Origin,
        mut take: impl FnMut(Vec<Span>) -> Result<bool, Failure>,
    ) -> Result<usize, Failure> {
        let now = environment::now()?;
        let mut issues = 0;
        for key in self.keys(tip)? {
            let Some(issue) = tip.issue(&key)?.issue()? else {
                continue;
            };
            let is_late = self.since.is_some_and(|since| issue.updated_at < since);
            if is_late || self.completed && issue.completed_at.is_none() {
                continue;
            }
            let Some(traced) = Traced::read(tip, &key)? else {
                continue;
            };
            issues += 1;
            if !take(spans(origin, &traced, now))? {
                break;
            }
        }
        Ok(issues)
    }

    /// One line for each issue; several if its spans don't fit into one document.
    fn lines(
        &self,
        tip: &Snapshot<'_>,
        origin: &Origin,
        mut write: impl FnMut(&str) -> Result<bool, Failure>,
    ) -> Result<Count, Failure> {
        let mut count = Count::default();
        count.issues = self.each(tip, origin, |spans| {
            for some in spans.chunks(MOST) {
                let mut line = origin.document(some);
                line.push('\n');
                count.spans += some.len();
                count.documents += 1;
                if !write(&line)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        Ok(count)
    }

    fn push(
        &self,
        tip: &Snapshot<'_>,
        origin: &Origin,
        url: Option<&str>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let endpoint = Endpoint::named(url)?;
        let mut collector = Collector::new(endpoint, self.timeout)?;
        let mut count = Count::default();
        let mut all = Answer::default();
        let mut send = |spans: &[Span], count: &mut Count| -> Result<(), Failure> {
            all.add(collector.send(&origin.document(spans))?);
            count.spans += spans.len();
            count.documents += 1;
            Ok(())
        };
        let mut waiting: Vec<Span> = Vec::new();
        let issues = self.each(tip, origin, |spans| {
            waiting.extend(spans);
            while waiting.len() >= MOST {
                let rest = waiting.split_off(MOST);
                send(&waiting, &mut count)?;
                waiting = rest;
            }
            Ok(true)
        })?;
        count.issues = issues;
        if !waiting.is_empty() {
            send(&waiting, &mut count)?;
        }
        let shown = collector.shown();
        let view = TracesPushView {
            endpoint: &shown,
            count,
            requests: count.documents,
            rejected_spans: all.rejected,
            message: &all.message,
        };
        if all.rejected > 0 {
            let rejected = counted(usize::try_from(all.rejected).unwrap_or(usize::MAX), "span");
            let text = format!("{shown} rejected {rejected}: {}", all.message);
            let failure = Failure::new(ErrorCode::CollectorRejected, text);
            return Err(failure
                .hint("the collector accepted the other spans, and would reject these again")
                .data(&view));
        }
        if !all.message.is_empty() {
            output.say(&format!("{shown} says: {}", continued(&all.message)));
        }
        output.answer(&view)
    }
}

/// The exported amount.
#[derive(Clone, Copy, Default, Serialize, JsonSchema)]
struct Count {
    /// how many issues
    issues: usize,
    /// how many spans
    spans: usize,
    #[serde(skip)]
    documents: usize,
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (issues, spans) = (counted(self.issues, "issue"), counted(self.spans, "span"));
        write!(f, "{issues} as {spans}")
    }
}

/// Traces that were written to a file.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TracesFile")]
pub(crate) struct TracesFileView {
    /// the file
    output: String,
    #[serde(flatten)]
    count: Count,
    /// how many lines
    lines: usize,
}

impl output::Answer for TracesFileView {
    fn text(&self, _: &Look) -> String {
        format!("wrote {} to {}\n", self.count, self.output)
    }
}

/// Traces that were sent to a collector.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TracesPush")]
pub(crate) struct TracesPushView<'a> {
    /// where they were sent
    endpoint: &'a str,
    #[serde(flatten)]
    count: Count,
    /// how many requests were made
    requests: usize,
    /// how many spans the collector rejected
    rejected_spans: u64,
    /// the collector's explanation or warning; empty if there is none
    message: &'a str,
}

impl output::Answer for TracesPushView<'_> {
    fn text(&self, _: &Look) -> String {
        format!("sent {} to {}\n", self.count, self.endpoint)
    }
}
