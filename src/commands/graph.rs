use anstyle::{AnsiColor, Style};
use clap::{ArgGroup, Args, ValueEnum};
use handoff::base::Moment;
use handoff::base::ids::IssueKey;
use handoff::ledger::{Ledger, ProtocolError, Snapshot};
use handoff::model::{Refusal, View};
use handoff_graph as graph;
use handoff_graph::{Graph, Mark};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::moment;
use crate::context::Context;
use crate::environment::now;
use crate::failure::{ErrorCode, Failure};
use crate::output::page::Cut;
use crate::output::{Answer, Output};
use crate::view::Look;

/// The width of a drawing without a terminal, in columns.
const COLUMNS: usize = 80;

/// Draw an issue's history, a protocol's routes, or an issue's tasks
///
/// Of an issue: which agent handed off to which, how long it took, what failed, where the work
/// looped back, and where it is now. Of a protocol: its routes, how often each was taken, and the
/// median times until work was claimed and of the work itself; also the forbidden routes, and
/// why. Of tasks: what each is part of, what it waits for, and which can be claimed.
#[derive(Args)]
#[command(group = ArgGroup::new("subject").args(["issue", "protocol"]))]
#[command(after_help = "Examples:
  git handoff graph 123
  git handoff graph 123 --format mermaid     (for a comment or a page on GitHub)
  git handoff graph --tasks 123
  git handoff graph --protocol               (the one that new issues follow)
  git handoff graph --protocol issue-to-pr --since 30d")]
pub(crate) struct Arguments {
    /// The issue; by default the branch's
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    /// Draw the issue's tasks
    #[arg(long, conflicts_with = "protocol")]
    tasks: bool,
    /// Draw a protocol in force here; without a name, the one that new issues follow
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    protocol: Option<Option<String>>,
    /// Count only what was sent since then: 2026-03-04T05:06:07Z, a date, or how long ago: 7d
    #[arg(long, value_name = "TIME", value_parser = moment::parse, requires = "protocol", conflicts_with = "issue")]
    since: Option<Moment>,
    /// The output format; with --json, the nodes and edges as data
    #[arg(long, value_name = "FORMAT", default_value = "terminal")]
    format: Format,
}

/// The format of a drawing.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines of text
    Terminal,
    /// Mermaid, which GitHub renders
    Mermaid,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = match &self.protocol {
            None => context.repository()?,
            Some(_) => context.repository_to_survey()?,
        };
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let now = now()?;
        let graph = match &self.protocol {
            Some(name) => self.of_protocol(&ledger, &tip, name.clone(), now)?,
            None => {
                let key = context.issue_or_here(self.issue.as_deref(), &repository, &tip)?;
                self.of_issue(&tip, &key, now)?
            }
        };
        if self.format == Format::Terminal {
            output.paged();
        }
        let (format, cut) = (self.format, Cut::of(output));
        output.answer(&GraphView { graph, format, cut })
    }

    fn of_issue(&self, tip: &Snapshot<'_>, key: &IssueKey, now: Moment) -> Result<Graph, Failure> {
        let folder = tip.issue(key)?;
        let none = || Refusal::no_issue(key);
        let issues = folder.survey()?.ok_or_else(none)?;
        let survey = issues.iter().next().ok_or_else(none)?;
        if !self.tasks {
            let rules = tip.rules(survey.protocol.as_str())?;
            return Ok(graph::issue_graph(&survey, rules.protocol(), now));
        }
        let issue = folder.issue()?.ok_or_else(none)?;
        if issue.tasks.is_empty() {
            let text = format!("issue {key} has no tasks");
            let hint = format!("`git handoff graph {key}` draws its handoffs");
            return Err(Failure::new(ErrorCode::NoTasks, text).hint(hint));
        }
        Ok(graph::task_graph(&issue, &survey, now))
    }

    fn of_protocol(
        &self,
        ledger: &Ledger<'_>,
        tip: &Snapshot<'_>,
        name: Option<String>,
        now: Moment,
    ) -> Result<Graph, Failure> {
        let name = name.unwrap_or_else(|| tip.manifest().default_protocol.to_string());
        let known = tip.protocols()?;
        if !known.contains(&name) {
            return Err(ProtocolError::Unknown { name, known }.into());
        }
        let rules = tip.rules(&name)?;
        let survey = ledger.survey(tip, Context::threads())?;
        let protocol = rules.protocol();
        Ok(graph::protocol_graph(
            protocol,
            survey.issues.iter(),
            self.since,
            now,
        ))
    }
}

/// A graph, to be drawn.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(crate) struct GraphView {
    graph: Graph,
    #[serde(skip)]
    format: Format,
    #[serde(skip)]
    cut: Cut,
}

impl Answer for GraphView {
    fn text(&self, look: &Look) -> String {
        match self.format {
            Format::Terminal => {
                let text = drawn(&self.graph, look);
                let lines: Vec<&str> = text.split_inclusive('\n').collect();
                let (shown, rest) = self.cut.rows(&lines);
                shown.concat() + &rest
            }
            Format::Mermaid => graph::mermaid(&self.graph),
        }
    }
}

/// A graph as lines of text.
pub(super) fn drawn(graph: &Graph, look: &Look) -> String {
    let text = graph::terminal(graph, look.width(COLUMNS), &painted);
    if look.is_ascii() {
        graph::ascii(&text)
    } else {
        text
    }
}

/// A text in the color of its mark.
fn painted(mark: Mark, text: &str) -> String {
    let style = match mark {
        Mark::None | Mark::Waiting => return text.to_owned(),
        Mark::Done => AnsiColor::Green.on_default(),
        Mark::Claimable => AnsiColor::Yellow.on_default(),
        Mark::Working => AnsiColor::Blue.on_default(),
        Mark::Blocked => AnsiColor::Magenta.on_default(),
        Mark::Late => AnsiColor::Red.on_default(),
        Mark::Failed => AnsiColor::Red.on_default(),
        Mark::Dropped => Style::new().dimmed(),
    };
    format!("{style}{text}{style:#}")
}
