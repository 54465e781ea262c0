use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use handoff::base::ids::IssueKey;
use handoff::base::{Moment, ObjectId};
use handoff::git::Repository;
use handoff::ledger::attention::{of_survey, protocols};
use handoff::ledger::{IssueSurvey, Ledger, Snapshot, Survey};
use handoff::model::Refusal;
use handoff_report::report::{Frame, Report, ReportError, Wanted, Written};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::filter::Conditions;
use crate::args::{moment, reference};
use crate::context::Context;
use crate::environment::now;
use crate::exit;
use crate::failure::{ErrorCode, Failure, chain};
use crate::output::replace::replace_with;
use crate::output::{Answer, Output, counted, counted_as};
use crate::render::{policies, policies_text, policy_line};
use crate::view::Look;

/// The default file name.
const DEFAULT: &str = "handoff-report.html";

/// Write a page about the ledger: what needs attention, and each issue
///
/// One self-contained HTML file: what needs attention, with which agent, since when,
/// why, and what to do; open work by agent; throughput and cycle time; a timeline; and
/// a section for each issue with its route, times, failures and contracts. It loads
/// nothing else, and is readable without scripts.
///
/// Every issue is counted and listed. Open issues have a section, and so have the most
/// recently changed ones, up to 20,000 handoffs.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff report
  git handoff report --output report.html
  git handoff report --issue 123 --issue 124 --output review.html
  git handoff report --where 'title~csv and state=failed' --output csv.html
  git handoff report --since 7d --output - | gzip > week.html.gz")]
pub(crate) struct Arguments {
    /// Write to this file, replacing it atomically; `-` is standard output. By default
    /// handoff-report.html here, which is then opened if a terminal asked for it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    wanted: WantedArguments,
}

/// What the page covers.
#[derive(Args)]
pub(super) struct WantedArguments {
    /// Only this issue; can be repeated
    #[arg(long, value_name = "ISSUE", value_parser = reference::issue)]
    issue: Vec<IssueKey>,
    /// Among completed issues, give a section only to those with a step since this time:
    /// 2026-03-04, 2026-03-04T05:06:07Z, or how long ago: 7d
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    since: Option<Moment>,
    /// Give every issue a section, however many there are
    #[arg(long)]
    all: bool,
    /// Show at most this many issues: what is open first, then what moved last
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    #[command(flatten)]
    which: Conditions,
}

impl WantedArguments {
    /// The named issues.
    pub(super) fn named(&self) -> &[IssueKey] {
        &self.issue
    }

    /// The selection for the page: the named issues, or those with a handoff that meets the
    /// conditions.
    fn wanted(&self, tip: &Snapshot<'_>, survey: &Survey) -> Result<Wanted, Failure> {
        let query = self.which.query(tip)?;
        let mut only = (!self.issue.is_empty()).then(|| self.issue.clone());
        if !query.is_empty() {
            let all = || survey.issues.iter().map(|issue| issue.key).collect();
            let mut fitting = Vec::new();
            for key in only.unwrap_or_else(all) {
                let mut records = tip.issue(&key)?.records()?;
                query.retain(tip, &mut records)?;
                if !records.is_empty() {
                    fitting.push(key);
                }
            }
            only = Some(fitting);
        }
        Ok(Wanted {
            only,
            query: query.to_string(),
            since: self.since,
            all: self.all,
            limit: self.limit,
        })
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository_to_survey()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let wanted = &self.wanted;
        let frame = Frame {
            name: name(&repository),
            live: false,
        };
        let file = self.output.as_deref().unwrap_or(Path::new(DEFAULT));
        if file == Path::new("-") {
            if output.is_json() {
                let text = "standard output can hold the page or one JSON document, not both";
                return Err(Failure::usage(text).hint("give --output a file"));
            }
            let mut out = ToOutput {
                output,
                failed: None,
            };
            let written = write(&ledger, &tip, wanted, &frame, &mut out);
            return match out.failed {
                Some(failure) => Err(failure),
                None => written.map(drop),
            };
        }
        let written = replace_with(file, |mut out| {
            write(&ledger, &tip, wanted, &frame, &mut out)
        })?;
        output.answer(&ReportView {
            file: file.display().to_string(),
            commit: tip.commit(),
            written,
        })?;
        if self.output.is_none() && output.is_on_terminal() {
            open(file);
        }
        Ok(())
    }
}

/// Opens a page in the user's browser; ignores errors, since the name was printed.
fn open(file: &Path) {
    let program = if cfg!(windows) {
        "explorer"
    } else if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut command = Command::new(program);
    command
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    drop(command.spawn());
}

/// A page that was written.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Report")]
pub(crate) struct ReportView {
    /// the page's file, as given
    file: String,
    /// the ledger commit that it shows
    commit: ObjectId,
    #[serde(flatten)]
    written: Written,
}

impl Answer for ReportView {
    fn text(&self, _: &Look) -> String {
        let (shown, written) = (&self.file, &self.written);
        let stuck = match written.attention {
            0 => "nothing needs attention".to_owned(),
            many => counted_as(many, "thing", [" needs attention", "s need attention"]),
        };
        let mut text = format!(
            "{shown}: {} with {}; {stuck}\n",
            counted(written.issues, "issue"),
            counted(written.handoffs, "handoff"),
        );
        let left_out = written.issues - written.sections;
        if left_out > 0 {
            text += &format!(
                "{} listed without a section; --all gives every issue one\n",
                counted_as(left_out, "of the issues", [" is", " are"])
            );
        }
        text
    }
}

/// Writes the page about the ledger at a commit.
///
/// # Errors
/// A [`Failure`] if a requested issue does not exist, the ledger can't be read,
/// or the page can't be written.
pub(super) fn write(
    ledger: &Ledger<'_>,
    tip: &Snapshot<'_>,
    wanted: &WantedArguments,
    frame: &Frame,
    out: &mut impl Write,
) -> Result<Written, Failure> {
    let threads = Context::threads();
    let survey = ledger.survey(tip, threads)?;
    if let Some(key) = wanted
        .named()
        .iter()
        .find(|key| survey.issues.get(key).is_none())
    {
        return Err(Refusal::no_issue(key).into());
    }
    let wanted = wanted.wanted(tip, &survey)?;
    let protocols = protocols(tip, now()?)?;
    let issues: Vec<IssueSurvey<'_>> = survey.issues.iter().collect();
    let stuck = of_survey(tip, &survey, &protocols, now()?)?;
    let report = Report::of(
        (&survey, &issues),
        stuck,
        &protocols,
        ledger.branch(),
        &wanted,
        now()?,
    );
    let policy = policies_text(&policies(tip)?);
    let halts = tip
        .manifest()
        .paused
        .iter()
        .map(|halt| format!(" · {halt}"));
    let halts: String = halts.collect();
    report
        .under(policy_line(&policy).trim().to_owned() + &halts)
        .write(tip, frame, threads, out)
        .map_err(|error| match error {
            ReportError::Ledger(error) => error.into(),
            ReportError::Write(_) => {
                let text = chain(&error);
                Failure::new(ErrorCode::Output, text)
                    .hint("check that there is free space and that this user may write there")
            }
        })
}

/// The name of the folder that the repository is in.
pub(super) fn name(repository: &Repository) -> String {
    let folder = repository.workdir().unwrap_or_else(|| {
        let path = repository.common_dir();
        if path.ends_with(".git") {
            path.parent().unwrap_or(path)
        } else {
            path
        }
    });
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Standard output as a `Write`.
struct ToOutput<'o> {
    output: &'o mut Output,
    failed: Option<Failure>,
}

impl Write for ToOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.output.stream(bytes) {
            Ok(true) => Ok(bytes.len()),
            // The reader has closed the pipe.
            Ok(false) => {
                self.failed = Some(Failure::reported(exit::DONE));
                Err(io::ErrorKind::BrokenPipe.into())
            }
            Err(failure) => {
                self.failed = Some(failure);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
