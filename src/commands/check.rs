use std::path::Path;

use clap::{Args, ValueEnum};
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::IssueKey;
use handoff_base::text::plain;
use handoff_contract::Input;
use handoff_git::Repository;
use handoff_github::annotations::{Annotation, commands};
use handoff_ledger::Offer;
use handoff_model::Review;
use serde_json::{Value, json};

use crate::context::Context;
use crate::contracts::against::Against;
use crate::contracts::input;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Output, SCHEMA, pretty, render};

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

/// One file and what was found in it.
struct Checked {
    name: String,
    review: Review,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let issue = self
            .issue
            .as_deref()
            .map(str::parse::<IssueKey>)
            .transpose()?;
        let repository = context.repository().ok();
        let protocol = self.protocol.as_deref().map(str::parse).transpose()?;
        let against = Against::choose(context, repository.as_deref(), protocol.as_ref())?;
        let agent = match &repository {
            Some(repository) => context.agent(repository)?,
            None => None,
        };
        let mut checked = Vec::new();
        let mut verdict = exit::DONE;
        for name in &self.files {
            let review = match input::contract(context, name) {
                Ok(bytes) => against.review_claims(&Offer {
                    input: &Input::read(&bytes),
                    agent: agent.as_ref(),
                    issue: issue.as_ref(),
                    protocol: protocol.as_ref(),
                    answers: None,
                    token: None,
                    allow: &[],
                    reports: None,
                })?,
                Err(failure) => {
                    verdict = verdict.max(failure.exit);
                    let missing = Finding::error(FindingCode::InputNotFound, "", failure.message);
                    Review::refused(match failure.findings {
                        found if found.is_empty() => vec![missing],
                        found => found,
                    })
                }
            };
            checked.push(Checked {
                name: name.clone(),
                review,
            });
        }
        let faults: usize = checked.iter().map(|c| errors(&c.review)).sum();
        let json = output.is_json() || self.format == Format::Json;
        let text = match self.format {
            _ if json => document(&checked, faults),
            Format::Github => {
                let found = checked
                    .iter()
                    .flat_map(|c| annotations(c, repository.as_deref()));
                commands(&found.collect::<Vec<_>>())
            }
            _ => checked.iter().map(report).collect(),
        };
        output.raw(text.as_bytes())?;
        match (faults, verdict) {
            (0, _) => Ok(()),
            // A missing file is not a contract with a fault.
            (_, exit::NOT_FOUND) => Err(Failure::reported(exit::NOT_FOUND)),
            _ => Err(Failure::reported(exit::NO)),
        }
    }
}

fn errors(review: &Review) -> usize {
    // A gate is not counted: it only sums up other faults.
    let faults = review.findings.iter().filter(|f| f.is_error());
    faults.filter(|f| !f.code.is_gate()).count()
}

fn report(checked: &Checked) -> String {
    let name = plain(&checked.name);
    let kind = checked.review.kind.as_deref().unwrap_or("contract");
    if checked.review.findings.is_empty() {
        return format!("{name}: complete ({kind})\n");
    }
    let count = errors(&checked.review);
    let mut text = match count {
        0 => format!("{name}: complete ({kind})\n"),
        1 => format!("{name}: 1 fault ({kind})\n"),
        _ => format!("{name}: {count} faults ({kind})\n"),
    };
    text.extend(checked.review.findings.iter().map(render));
    text
}

fn document(checked: &[Checked], faults: usize) -> String {
    let with_file = |checked: &Checked, finding: &Finding| {
        let mut value = json!(finding);
        if let Value::Object(fields) = &mut value {
            fields.insert("file".to_owned(), checked.name.clone().into());
        }
        value
    };
    let findings: Vec<Value> = checked
        .iter()
        .flat_map(|c| c.review.findings.iter().map(|f| with_file(c, f)))
        .collect();
    if faults > 0 {
        let plural = if faults == 1 { "fault" } else { "faults" };
        return pretty(&json!({
            "schema": SCHEMA,
            "ok": false,
            "error": {
                "code": ErrorCode::CheckFailed,
                "message": format!("{faults} {plural} found"),
                "hint": "fix what the findings name and check again; `git handoff explain CODE` explains each",
                "findings": findings,
            },
        }));
    }
    let files: Vec<Value> = checked
        .iter()
        .map(|c| {
            json!({
                "file": c.name,
                "contract_type": c.review.kind,
                "issue": c.review.contract.as_ref().map(|k| k.issue.to_string()),
            })
        })
        .collect();
    let data = json!({ "files": files, "findings": findings });
    pretty(&json!({ "schema": SCHEMA, "ok": true, "data": data }))
}

/// The findings in a contract, as annotations of its file. GitHub expects its path relative to
/// the repository's root.
fn annotations(
    checked: &Checked,
    repository: Option<&Repository>,
) -> impl Iterator<Item = Annotation> {
    let within = repository.and_then(|repository| repository.path_within(Path::new(&checked.name)));
    let file = within.unwrap_or_else(|| checked.name.clone());
    let findings = checked.review.findings.iter();
    findings.map(move |finding| Annotation::in_file(finding, &file))
}
