use std::ops::Range;
use std::path::Path;

use clap::{Args, ValueEnum};
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::IssueKey;
use handoff_base::text::continued;
use handoff_contract::Input;
use handoff_git::Repository;
use handoff_github::annotations::{Annotation, commands};
use handoff_ledger::Offer;
use handoff_model::Review;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::contracts::against::Against;
use crate::contracts::input;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output, counted, render};
use crate::view::Look;

/// Check contracts and report every finding
///
/// Records nothing, and needs no ledger: without one, the built-in protocols apply. Exits 1 if a
/// contract has a fault, and 6 if a file does not exist. Whether the contract may be sent right
/// now (who holds the issue) is decided by `send`.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff check contract.xml
  git handoff check --format github handoffs/*.xml   (annotations on GitHub)
  generate-contract | git handoff check - --json")]
pub(crate) struct Arguments {
    /// The contracts, as XML, JSON or Markdown; - reads standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// The output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    format: Format,
    /// Treat a contract that names no issue as one about this issue
    #[arg(long, value_name = "ISSUE")]
    issue: Option<String>,
    /// The protocol to check against; by default the issue's, or the first
    /// under which the contract is complete
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
}

/// How findings are reported.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// One JSON document, like --json
    Json,
    /// Workflow commands that GitHub turns into annotations
    Github,
}

/// Contracts that were checked.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "Checked")]
pub(crate) struct CheckView {
    /// each file
    files: Vec<FileView>,
    /// warnings and notes
    findings: Vec<Finding>,
}

/// A file that was checked.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CheckedFile")]
struct FileView {
    /// its name as given
    file: String,
    /// its contract's type
    contract_type: Option<String>,
    /// its issue; null if it names none
    issue: Option<IssueKey>,
    /// Which of the findings are in it.
    #[serde(skip)]
    found: Range<usize>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let issue: Option<IssueKey> = self.issue.as_deref().map(str::parse).transpose()?;
        let repository = context.repository().ok();
        let protocol = self.protocol.as_deref().map(str::parse).transpose()?;
        let against = Against::choose(context, repository.as_deref(), protocol.as_ref())?;
        let (agent, worker) = match &repository {
            Some(repository) => (context.agent(repository)?, context.worker(repository)?),
            None => (None, None),
        };
        let worker = worker.map(|worker| worker.id);
        let mut checked = CheckView::default();
        let mut verdict = exit::DONE;
        for name in &self.files {
            let review = match input::contract(context, name) {
                Ok(bytes) => {
                    let offer = Offer {
                        input: &Input::read(&bytes),
                        agent: agent.as_ref(),
                        issue: issue.as_ref(),
                        protocol: protocol.as_ref(),
                        answers: None,
                        replaces: None,
                        token: None,
                        allow: &[],
                        reports: None,
                        imported: None,
                    };
                    against.review_claims(&offer, worker.as_ref())?
                }
                Err(failure) => {
                    verdict = verdict.max(failure.exit);
                    let missing = Finding::error(FindingCode::InputNotFound, "", failure.message);
                    Review::refused(match failure.findings {
                        found if found.is_empty() => vec![missing],
                        found => found,
                    })
                }
            };
            checked.add(name, review);
        }
        let exit = match verdict {
            // A missing file is not a contract with a fault.
            exit::NOT_FOUND => exit::NOT_FOUND,
            _ => exit::NO,
        };
        if self.format == Format::Json {
            output.as_json();
        }
        if self.format == Format::Github && !output.is_json() {
            let found = checked.findings.iter();
            let found = found.map(|finding| annotation(finding, repository.as_deref()));
            output.raw(commands(&found.collect::<Vec<_>>()).as_bytes())?;
        } else if checked.is_complete() || !output.is_json() {
            output.answer(&checked)?;
        } else {
            let faults = counted(errors(&checked.findings), "fault");
            return Err(Failure::new(ErrorCode::CheckFailed, format!("{faults} found"))
                .exit(exit)
                .hint("fix what the findings name and check again; `git handoff explain CODE` explains each")
                .findings(checked.findings));
        }
        if checked.is_complete() {
            Ok(())
        } else {
            Err(Failure::reported(exit))
        }
    }
}

impl CheckView {
    fn add(&mut self, name: &str, review: Review) {
        let start = self.findings.len();
        let findings = review.findings.into_iter();
        self.findings.extend(findings.map(|finding| Finding {
            file: Some(name.to_owned()),
            ..finding
        }));
        self.files.push(FileView {
            file: name.to_owned(),
            contract_type: review.kind,
            issue: review.contract.map(|contract| contract.issue),
            found: start..self.findings.len(),
        });
    }

    fn is_complete(&self) -> bool {
        errors(&self.findings) == 0
    }
}

impl Answer for CheckView {
    fn text(&self, _: &Look) -> String {
        let of_file = |file: &FileView| {
            let name = continued(&file.file);
            let kind = file.contract_type.as_deref().unwrap_or("contract");
            let findings = &self.findings[file.found.clone()];
            let verdict = match errors(findings) {
                0 => "complete".to_owned(),
                faults => counted(faults, "fault"),
            };
            let findings: String = findings.iter().map(render).collect();
            format!("{name}: {verdict} ({kind})\n{findings}")
        };
        self.files.iter().map(of_file).collect()
    }
}

fn errors(findings: &[Finding]) -> usize {
    // A gate is not counted: it only sums up other faults.
    let faults = findings.iter().filter(|f| f.is_error());
    faults.filter(|f| !f.code.is_gate()).count()
}

/// A finding as an annotation of its file. GitHub expects its path relative to the repository's
/// root.
fn annotation(finding: &Finding, repository: Option<&Repository>) -> Annotation {
    let file = finding.file.as_deref().unwrap_or_default();
    let within = repository.and_then(|repository| repository.path_within(Path::new(file)));
    Annotation::in_file(finding, within.unwrap_or_else(|| file.to_owned()))
}
