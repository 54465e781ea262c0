use std::collections::{BTreeMap, BTreeSet};

use anstyle::{AnsiColor, Style};
use clap::Args;
use clap::builder::PossibleValuesParser;
use handoff::base::ids::IssueKey;
use handoff::base::text::{continued, word};
use handoff::base::{Moment, ObjectId, to_second};
use handoff::git::{Commit, Repository};
use handoff::ledger::{DEEPEN, Snapshot};
use handoff::model::trailers::unfolded;
use handoff::model::{Refusal, StepEvent, View, issue_folder, trailers};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::filter::ensure_agent;
use crate::args::remote::AskArgs;
use crate::args::{duration, moment as moments};
use crate::context::fresh::{Fresh, Reading};
use crate::context::{Context, fresh};
use crate::failure::{ErrorCode, Failure};
use crate::output::page::{Page, PageArgs};
use crate::output::{Answer, Output};
use crate::render::rows::WORKER;
use crate::view::Look;

/// Show the audit trail: every step, newest first
///
/// A line has the commit, when the step was made, by which agent, and by which of its workers where the
/// list has several of them, how long the handoff waited or was held, and what happened and why. This is
/// the branch's history; the equivalent git command is printed below it. The ledger's remote is asked first. All filters must match.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff log 123
  git handoff log --event fail,expire --since 7d
  git handoff log 123 --author reviewer-agent --oneline
  git handoff log -n 20 --json")]
pub(crate) struct Arguments {
    /// The issue; all issues by default
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    /// Only steps of this agent
    #[arg(long, value_name = "AGENT")]
    author: Option<String>,
    /// Only steps made since then: 2026-03-04T05:06:07Z, a date, or how long ago: 7d
    #[arg(long, value_name = "TIME", value_parser = moments::parse)]
    since: Option<Moment>,
    /// Only steps made before this time
    #[arg(long, value_name = "TIME", value_parser = moments::parse)]
    until: Option<Moment>,
    /// Only these events, separated by commas
    #[arg(
        long,
        value_name = "EVENT",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(StepEvent::all().map(StepEvent::as_str)),
    )]
    event: Vec<String>,
    /// Show only each step's commit and subject
    #[arg(long)]
    oneline: bool,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    asks: AskArgs,
}

/// The minimum length of an abbreviated commit in `--after`.
const SHORTEST: usize = 7;

/// A page of the history.
#[derive(Default)]
struct Steps {
    steps: Vec<StepView>,
    /// Whether there may be more after them.
    more: bool,
    /// Whether older ones are not in this clone.
    cut_off: bool,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        if let (Some(since), Some(until)) = (self.since, self.until)
            && since >= until
        {
            let text = format!("no step is between {since} and {until}: --since must be earlier");
            return Err(Failure::usage(text));
        }
        output.paged();
        let repository = context.repository()?;
        let reading = context.fresh(&repository, self.asks.offline, output)?;
        let Reading { ledger, tip, fresh } = reading;
        let key: Option<IssueKey> = self.issue.as_deref().map(str::parse).transpose()?;
        let most = self.page.most(output);
        // The first commit's author is a person.
        let own = |name: &String| -> Result<String, Failure> {
            Ok(tip.own_name(name)?.map_or(name.clone(), String::from))
        };
        let author = self.author.as_ref().map(own).transpose()?;
        let author = author.as_deref();
        let found = self.steps(&repository, &tip, (key.as_ref(), author), most)?;
        let Steps {
            steps,
            more,
            cut_off,
        } = found.ok_or_else(|| self.page.gone(output))?;
        if key.is_some() && cut_off {
            let text = "this clone does not have all of the ledger's history";
            return Err(Failure::new(ErrorCode::Shallow, text).hint(DEEPEN));
        }
        if let (Some(author), []) = (author, &steps[..]) {
            ensure_agent(&tip, author)?;
        }
        let is_cut = (more || self.page.limit.is_some()) && most < usize::MAX;
        let most = is_cut.then_some(most);
        let command = self.git_command(ledger.branch(), (key.as_ref(), author), most);
        let last = steps.last().filter(|_| more);
        let cursor = last.map(|step| step.commit.short());
        let page = Page::new(None, steps.len(), cursor, output);
        output.answer(&LogView {
            steps,
            git: &command,
            cut_off,
            oneline: self.oneline,
            page,
            fresh: fresh.clone(),
        })?;
        fresh::say(fresh.as_ref(), output);
        if cut_off {
            output.say(&format!("older steps are not in this clone: {DEEPEN}"));
        }
        output.say(&format!("the same with git: {command}"));
        Ok(())
    }

    /// The steps that match every filter, newest first, up to a limit; `None` if the cursor's step
    /// is missing. The walk ends as soon as no other step can match.
    fn steps(
        &self,
        repository: &Repository,
        tip: &Snapshot<'_>,
        (key, author): (Option<&IssueKey>, Option<&str>),
        most: usize,
    ) -> Result<Option<Steps>, Failure> {
        // An issue stores the number of its steps.
        let mut left = match key {
            None => usize::MAX,
            Some(key) => {
                let no_issue = || Refusal::no_issue(key);
                let issue = tip.issue(key)?.issue()?.ok_or_else(no_issue)?;
                usize::try_from(issue.steps).unwrap_or(usize::MAX)
            }
        };
        let mut found = Steps::default();
        let mut after = self.page.after.as_deref();
        for id in repository.first_parents(tip.commit()) {
            let id = id?;
            found.more = left > 0 && found.steps.len() >= most;
            if left == 0 || found.more {
                return Ok(after.is_none().then_some(found));
            }
            let commit = repository.commit(id)?;
            // A step is never recorded before its own time, nor before the previous step.
            let recorded = to_second(commit.committer.at);
            if self.since.is_some_and(|since| recorded < since) {
                return Ok(after.is_none().then_some(found));
            }
            let is_skipped = after.is_some();
            after =
                after.filter(|after| after.len() < SHORTEST || !id.to_string().starts_with(*after));
            let step = StepView::new(commit);
            if key.is_some_and(|key| step.issue.as_deref() != Some(key.as_str())) {
                continue;
            }
            // Not a step of the issue itself.
            if step.event.as_deref() != Some(StepEvent::Unarchive.as_str()) {
                left -= 1;
            }
            if !is_skipped && self.wants(&step, author) {
                found.steps.push(step);
            }
        }
        let complete = found.steps.len() >= most || key.is_some() && left == 0;
        found.cut_off = !complete && repository.is_cut_off(tip.commit())?;
        Ok(after.is_none().then_some(found))
    }

    fn wants(&self, step: &StepView, author: Option<&str>) -> bool {
        let has = |event: &String| step.event.as_ref() == Some(event);
        author.is_none_or(|name| name == step.author)
            && self.since.is_none_or(|since| step.at >= since)
            && self.until.is_none_or(|until| step.at < until)
            && (self.event.is_empty() || self.event.iter().any(has))
    }

    /// The git command that shows the same steps.
    fn git_command(
        &self,
        branch: &str,
        (key, author): (Option<&IssueKey>, Option<&str>),
        most: Option<usize>,
    ) -> String {
        let mut words = vec!["git log".to_owned()];
        words.extend(most.map(|most| format!("-n {most}")));
        let author = author.map(|name| format!("^{name} <"));
        words.extend(author.map(|name| format!("--author={}", word(&name))));
        let times = [("since", self.since), ("until", self.until)];
        let times = times.into_iter().filter_map(|(name, at)| Some((name, at?)));
        words.extend(times.map(|(name, at)| format!("--{name}={}", at.rfc3339())));
        let events = self.event.iter();
        words.extend(events.map(|event| format!("--grep='^Event: {event}$'")));
        words.extend(self.oneline.then(|| "--oneline".to_owned()));
        words.push(match &self.page.after {
            Some(after) => format!("{after}^"),
            None => word(branch).into_owned(),
        });
        words.extend(key.map(|key| format!("-- {}", issue_folder(key))));
        words.join(" ")
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
    #[serde(flatten)]
    page: Page,
    /// whether the remote was asked first; null if the ledger has no remote
    fresh: Option<Fresh>,
    /// Whether to show only commits and subjects.
    #[serde(skip)]
    oneline: bool,
}

impl Answer for LogView<'_> {
    fn text(&self, look: &Look) -> String {
        let mut workers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for step in &self.steps {
            let workers = workers.entry(&step.author).or_default();
            workers.extend(step.worker.as_deref());
        }
        let rows = self.steps.iter().map(|step| {
            // Persons act under one agent's name, and so do several workers of an agent.
            let is_one_of_several = workers[step.author.as_str()].len() > 1;
            step.row(look, self.oneline, is_one_of_several)
        });
        look.table(&rows.collect::<Vec<_>>()) + self.page.text()
    }
}

/// A step.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LoggedStep")]
struct StepView {
    /// the commit
    commit: ObjectId,
    /// when
    at: Moment,
    /// the agent; for the ledger's first commit, the person who started it
    author: String,
    /// the worker that made it: of an approval, the person's; null if the step has none
    worker: Option<String>,
    /// who ran the program
    committer: String,
    /// the first line of the commit's message
    subject: String,
    /// the handoff's id
    id: Option<String>,
    /// the issue's key
    issue: Option<String>,
    /// each change: `87.2 in_progress..failed`, or `87 completed..open` for a reopened issue
    transitions: Vec<String>,
    /// what happened: `send`, an event of the lifecycle, `decide`, `annotate`, `reopen`,
    /// `give_up`, `archive` or `unarchive`
    event: Option<String>,
    /// why, or what was said
    reason: Option<String>,
    /// the failure's code
    failure_code: Option<String>,
    /// which attempt it is
    attempt: Option<u64>,
    /// how long the handoff could be claimed before it was
    waited_seconds: Option<u64>,
    /// how long its holder held it
    held_seconds: Option<u64>,
    /// the issue's pull request
    pull_request: Option<String>,
    /// the counts of a review: `critical=1, important=2`
    findings: Option<String>,
    /// what a protocol checks less: `signers, schema.draft`
    #[serde(skip_serializing_if = "Option::is_none")]
    weaker: Option<String>,
}

impl StepView {
    fn new(commit: Commit) -> Self {
        let trailers = trailers(&commit.message);
        let values = |name: &'static str| {
            let named = trailers.iter().filter(move |(n, _)| *n == name);
            named.map(|(_, value)| unfolded(value))
        };
        let value = |name| values(name).next();
        let number = |name| value(name)?.parse().ok();
        let subject = commit.message.lines().next().unwrap_or_default();
        Self {
            commit: commit.id,
            at: to_second(commit.author.at),
            subject: subject.to_owned(),
            id: value("Handoff-Id"),
            issue: value("Issue"),
            transitions: values("Transition").collect(),
            event: value("Event"),
            reason: value("Reason").or_else(|| value("Rationale")),
            failure_code: value("Failure-Code"),
            attempt: number("Attempt"),
            waited_seconds: number("Waited-Seconds"),
            held_seconds: number("Held-Seconds"),
            pull_request: value("Pull-Request"),
            findings: value("Findings"),
            weaker: value("Weaker"),
            worker: value("Worker"),
            author: commit.author.name,
            committer: commit.committer.name,
        }
    }

    /// A row of the table; on a terminal, with styles.
    fn row(&self, look: &Look, oneline: bool, names_worker: bool) -> Vec<String> {
        let short = self.commit.short();
        let (commit, author) = if look.is_for_terminal() {
            let (yellow, bold) = (AnsiColor::Yellow.on_default(), Style::new().bold());
            let author = look.cell(&self.author);
            (
                format!("{yellow}{short}{yellow:#}"),
                format!("{bold}{author}{bold:#}"),
            )
        } else {
            (short, continued(&self.author))
        };
        let worker = self.worker.as_ref().filter(|_| names_worker);
        let worker = worker.map(|worker| format!(" ({})", look.cut(&look.cell(worker), WORKER)));
        let who = author + &worker.unwrap_or_default();
        let mut subject = self.subject.clone();
        subject += &self.also_opened();
        if let Some(weaker) = &self.weaker {
            subject += &format!("; checks less: {weaker}");
        }
        // The subject of a step about more than one issue lacks it.
        if let Some(reason) = self.reason.as_ref().filter(|_| self.issue.is_none()) {
            subject += &format!(": {reason}");
        }
        let subject = look.cell(&subject);
        if oneline {
            return vec![commit, subject];
        }
        vec![commit, look.time(self.at), who, self.took(), subject]
    }

    /// The other handoffs that the step opened: its subject names one.
    fn also_opened(&self) -> String {
        let opened = |transition: &String| {
            let (id, change) = transition.split_once(' ')?;
            let is_other = self.id.as_deref() != Some(id) && change.starts_with("none..");
            is_other.then(|| id.to_owned())
        };
        let opened: Vec<String> = self.transitions.iter().filter_map(opened).collect();
        match &opened[..] {
            [] => String::new(),
            opened => format!("; with {}", opened.join(", ")),
        }
    }

    /// How long the handoff waited, or was held.
    fn took(&self) -> String {
        let shown = |word: &str, seconds: u64| {
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            format!("{word} {}", duration::shown(seconds))
        };
        let waited = self.waited_seconds.map(|s| shown("waited", s));
        let held = self.held_seconds.map(|s| shown("held", s));
        waited.or(held).unwrap_or_default()
    }
}
