use std::num::NonZero;

use chrono::Duration;
use clap::Args;
use handoff::base::Moment;
use handoff::base::ids::IssueKey;
use handoff::ledger::{ArchiveRequest, ArchivedTogether, Snapshot, end_of_second};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{duration, moment as moments};
use crate::context::Context;
use crate::environment::now;
use crate::failure::{ErrorCode, Failure};
use crate::output::page::{ROWS, rest};
use crate::output::{Answer, Output, counted};
use crate::view::{Look, columns};

/// Take issues that ended long ago out of the ledger's newest state
///
/// Their folders stay in history, and an index says where: every command finds them there, and one
/// that writes to an issue brings it back first. An issue is archived only if it is completed or
/// cancelled. There is one commit for at most 2,000 issues. Without a time, each
/// protocol's own rule says how old an issue must be.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff archive --older 90d --dry-run
  git handoff archive --before 2026-02-01
  git handoff archive 123")]
pub(crate) struct Arguments {
    /// Only these issues; by default all that ended
    #[arg(value_name = "ISSUE")]
    issues: Vec<String>,
    /// Only issues last written to before this time: 2026-03-04, 2026-03-04T05:06:07Z, or how long
    /// ago: 90d
    #[arg(long, value_name = "TIME", value_parser = moments::parse)]
    before: Option<Moment>,
    /// Only issues last written to longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "before")]
    older: Option<std::time::Duration>,
    /// Archive at most this many, those first that ended first
    #[arg(long, value_name = "COUNT")]
    limit: Option<NonZero<usize>>,
    /// Only say what would be archived
    #[arg(long)]
    dry_run: bool,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let issues: Vec<IssueKey> = self
            .issues
            .iter()
            .map(|key| key.parse())
            .collect::<Result<_, _>>()?;
        let now = now()?;
        let given = self.before(now)?;
        let repository = context.repository_to_survey()?;
        let (mut ledger, session) = context.writer(&repository, output)?;
        let mut requests = match given {
            None if issues.is_empty() => by_protocol(&ledger.tip()?, now)?,
            before => vec![ArchiveRequest {
                before: before.unwrap_or_else(|| end_of_second(now)),
                issues,
                protocol: None,
                limit: None,
            }],
        };
        let mut steps = Vec::new();
        for request in &mut requests {
            let count = counted_in(&steps);
            request.limit = self.limit.map(|most| most.get().saturating_sub(count));
            if self.dry_run {
                steps.extend(ledger.would_archive(request)?);
            } else if let Err(error) = ledger.archive(&session, request, &mut steps) {
                output.follow(&ledger);
                return Err(half_way(error.into(), steps));
            }
        }
        output.follow(&ledger);
        if steps.is_empty() {
            return Err(nothing(&requests));
        }
        let mut view = ArchiveView::new(self.dry_run, steps);
        view.rest = rest(view.count, &output.typed(&["--json"]));
        output.answer(&view)
    }

    /// The moment before which issues are archived, if one is given.
    fn before(&self, now: Moment) -> Result<Option<Moment>, Failure> {
        if let Some(before) = self.before.filter(|before| *before > now) {
            let text = format!("{before} is in the future");
            return Err(Failure::usage(text).hint("say a time that has passed"));
        }
        Ok(self.before.or(self.older.map(|older| earlier(now, older))))
    }
}

fn earlier(now: Moment, by: std::time::Duration) -> Moment {
    let by = Duration::from_std(by).unwrap_or_default();
    now.checked_sub_signed(by).unwrap_or_default()
}

/// The requests for each protocol in force that has a rule for archiving.
fn by_protocol(tip: &Snapshot<'_>, now: Moment) -> Result<Vec<ArchiveRequest>, Failure> {
    let mut requests = Vec::new();
    for name in tip.protocols()? {
        let rules = tip.rules(&name)?;
        let definition = rules.protocol().definition();
        let after = definition
            .limits
            .as_ref()
            .and_then(|time| time.archive_after_seconds);
        requests.extend(after.map(|seconds| ArchiveRequest {
            before: earlier(now, std::time::Duration::from_secs(seconds)),
            issues: Vec::new(),
            protocol: Some(definition.name.clone()),
            limit: None,
        }));
    }
    if !requests.is_empty() {
        return Ok(requests);
    }
    let text = "no protocol here says when issues are archived";
    Err(Failure::new(ErrorCode::NothingToArchive, text)
        .hint("say how old they must be: `git handoff archive --older 90d`; `git handoff protocol set NAME time.archive_after_seconds SECONDS` says it for good"))
}

fn counted_in(steps: &[ArchivedTogether]) -> usize {
    steps.iter().map(|step| step.issues.len()).sum()
}

/// Adds to a failure the steps that were made before it.
fn half_way(failure: Failure, steps: Vec<ArchivedTogether>) -> Failure {
    let view = ArchiveView::new(false, steps);
    let done = (view.count > 0).then(|| format!("archived {}", counted(view.count, "issue")));
    failure.half_way(done, &view)
}

/// The failure if there is no issue to archive.
fn nothing(requests: &[ArchiveRequest]) -> Failure {
    let text = match requests {
        [one] if !one.issues.is_empty() => "these issues are archived already".to_owned(),
        [one] => {
            let before = one.before;
            format!("no issue in the ledger's newest state ended before {before}")
        }
        _ => "no issue in the ledger's newest state ended as long ago as its protocol says"
            .to_owned(),
    };
    Failure::new(ErrorCode::NothingToArchive, text)
        .hint("nothing was written; `git handoff status` shows what is open")
}

/// The archived issues.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Archive")]
pub(crate) struct ArchiveView {
    /// whether nothing was written
    dry_run: bool,
    /// how many issues were archived
    count: usize,
    /// the steps that archived them
    steps: Vec<ArchivedTogether>,
    /// The command that lists the issues that the text omits.
    #[serde(skip)]
    rest: String,
}

impl ArchiveView {
    fn new(dry_run: bool, steps: Vec<ArchivedTogether>) -> Self {
        Self {
            dry_run,
            count: counted_in(&steps),
            steps,
            rest: String::new(),
        }
    }
}

impl Answer for ArchiveView {
    fn text(&self, look: &Look) -> String {
        let count = counted(self.count, "issue");
        if self.dry_run {
            let issues = self.steps.iter().flat_map(|step| &step.issues);
            let rows = issues.take(ROWS).map(|issue| {
                vec![
                    issue.key.to_string(),
                    issue.status.as_str().to_owned(),
                    look.time(issue.updated_at),
                    look.cell(&issue.title),
                ]
            });
            let rows = columns(&rows.collect::<Vec<_>>());
            return format!("{rows}would archive {count}\n{}", self.rest);
        }
        let mut text = format!("archived {count}\n");
        for step in &self.steps {
            if let Some(commit) = step.commit {
                let here = counted(step.issues.len(), "issue");
                let before = step.before;
                text += &format!(
                    "  commit {}: {here} that ended before {before}\n",
                    commit.short()
                );
            }
        }
        text
    }
}
