use anstyle::AnsiColor;
use clap::Args;
use handoff_base::ids::IssueKey;
use handoff_base::text::plain;
use handoff_base::{Moment, ObjectId, moment, to_second};
use handoff_git::Commit;
use handoff_model::{Refusal, View, issue_folder, trailers};
use handoff_protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{DEEPEN, ErrorCode, Failure};
use crate::output::{Answer, Output};
use crate::view::Look;

/// Show the audit trail: every step, newest first
///
/// This is the branch's history; the equivalent git command is printed below
/// it.
#[derive(Args)]
#[command(after_help = "Examples:\n  git handoff log 123\n  git handoff log -n 20 --json")]
pub(crate) struct Arguments {
    /// The issue; all issues by default
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    /// Show at most this many steps
    #[arg(short = 'n', long, value_name = "COUNT")]
    limit: Option<usize>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let key: Option<IssueKey> = self.issue.as_deref().map(str::parse).transpose()?;
        let mut command = format!("git log {}", ledger.branch());
        let mut wanted = self.limit.unwrap_or(usize::MAX);
        if let Some(key) = &key {
            command = format!("git log {} -- {}", ledger.branch(), issue_folder(key));
            let no_issue = || Refusal::no_issue(key);
            let issue = tip.issue(key)?.issue()?.ok_or_else(no_issue)?;
            // The issue records how many steps it has: the walk ends with the last.
            wanted = wanted.min(usize::try_from(issue.steps).unwrap_or(usize::MAX));
        }
        let mut steps = Vec::new();
        for id in repository.first_parents(tip.commit()) {
            if steps.len() >= wanted {
                break;
            }
            let step = StepView::new(repository.commit(id?)?);
            if key.is_none() || step.issue.as_deref() == key.as_ref().map(IssueKey::as_str) {
                steps.push(step);
            }
        }
        let cut_off = steps.len() < wanted && repository.is_cut_off(tip.commit())?;
        if key.is_some() && cut_off {
            let text = "this clone does not have all of the ledger's history";
            return Err(Failure::new(ErrorCode::Shallow, text).hint(DEEPEN));
        }
        output.answer(&LogView {
            steps,
            git: &command,
            cut_off,
        })?;
        if cut_off {
            output.say(&format!("older steps are not in this clone: {DEEPEN}"));
        }
        output.say(&format!("the same with git: {command}"));
        Ok(())
    }
}

/// The audit trail.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Log")]
pub(crate) struct LogView<'a> {
    /// each step, the newest first
    steps: Vec<StepView>,
    /// the git command that shows the same
    git: &'a str,
    /// older steps are not in this clone
    cut_off: bool,
}

impl Answer for LogView<'_> {
    fn text(&self, look: &Look) -> String {
        if look.is_for_terminal() {
            let rows: Vec<_> = self.steps.iter().map(|step| step.row(look)).collect();
            return look.table(&rows);
        }
        let line = |step: &StepView| {
            let (short, time) = (step.commit.short(), look.time(step.at));
            format!("{short} {time} {}\n", plain(&step.subject))
        };
        self.steps.iter().map(line).collect()
    }
}

/// A step.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LoggedStep")]
struct StepView {
    /// the commit
    commit: ObjectId,
    /// when
    #[serde(with = "moment")]
    #[schemars(with = "Moment")]
    at: Moment,
    /// the agent; for the ledger's first commit, the person who started it
    author: String,
    /// who ran the program
    committer: String,
    /// the first line of the commit's message
    subject: String,
    /// the handoff
    handoff: Option<String>,
    /// the issue
    issue: Option<String>,
    /// each change: `87.2 in_progress..failed`, or `87 completed..open` for a reopened issue
    transitions: Vec<String>,
    /// The first line of the message's body.
    #[serde(skip)]
    summary: String,
}

impl StepView {
    fn new(commit: Commit) -> Self {
        let trailers = trailers(&commit.message);
        let values = |name: &'static str| {
            let named = trailers.iter().filter(move |(n, _)| *n == name);
            named.map(|(_, value)| (*value).to_owned())
        };
        let mut lines = commit.message.lines();
        let subject = lines.next().unwrap_or_default().to_owned();
        let is_trailer = |line: &str| trailers.iter().any(|(name, _)| line.starts_with(name));
        let summary = lines.find(|line| !line.is_empty());
        let summary = summary.filter(|line| !is_trailer(line)).unwrap_or_default();
        Self {
            commit: commit.id,
            at: to_second(commit.author.at),
            subject,
            handoff: values("Handoff-Id").next(),
            issue: values("Issue").next(),
            transitions: values("Transition").collect(),
            summary: summary.to_owned(),
            author: commit.author.name,
            committer: commit.committer.name,
        }
    }

    /// A row for a terminal: its subject, split into columns if `git handoff` wrote it, and its
    /// summary.
    fn row(&self, look: &Look) -> Vec<String> {
        let style = AnsiColor::Yellow.on_default();
        let id = format!("{style}{}{style:#}", self.commit.short());
        let time = look.time(self.at);
        let Some((handoff, route, state)) = parts(&self.subject) else {
            let none = String::new();
            let subject = look.cell(&self.subject);
            return vec![id, time, none.clone(), none.clone(), none, subject];
        };
        let route = look.cell(route).replace('→', look.arrow());
        let (handoff, state) = (look.heading(&look.cell(handoff)), look.state(state));
        vec![id, time, handoff, state, route, look.cell(&self.summary)]
    }
}

/// The handoff, its sender and receiver, and its state, from a step's subject.
fn parts(subject: &str) -> Option<(&str, &str, State)> {
    let (rest, word) = subject.rsplit_once(": ")?;
    let (handoff, route) = rest.split_once(' ')?;
    let state = State::ALL.into_iter().find(|s| s.as_str() == word)?;
    Some((handoff, route, state))
}
