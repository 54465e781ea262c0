use std::ops::Range;
use std::path::Path;

use clap::{Args, ValueEnum};
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::text::continued;
use handoff::contract::Input;
use handoff::git::Repository;
use handoff::ledger::{ContractError, ContractMatch, Ledger, LedgerError, Offer, Session};
use handoff::model::{Refusal, Review};
use handoff::protocol::Check;
use handoff_cli::output::annotations::{Annotation, Weight, commands};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::context::writer::tell_news;
use crate::contracts::against::Against;
use crate::contracts::attempt::{ComposeArgs, OfferArgs, Options, attempt};
use crate::contracts::compose::{Composer, issue_held};
use crate::contracts::input;
use crate::contracts::skeleton::Wanted;
use crate::failure::Failure;
use crate::output::{Answer, Output, counted, render};
use crate::view::Look;

/// Do what `send` does, but write nothing
///
/// Reports what `send` would do with each contract now: the same findings, the same refusals, the
/// same exit code, for the agent of --as or of the contract. With several files, each is checked
/// alone, and the exit code is that of the first one that would be refused.
///
/// With --contract-only, and where there is no ledger, only the document is judged: its form, its
/// route, its statements against each other. Without a ledger, the built-in protocols apply.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff check contract.xml
  git handoff check --to implementer-agent --as prep-agent \\
      --set dependencies=installed --set build='12 passed' \\
      --set dev_server=running --set port=4000
  git handoff check --contract-only --format github handoffs/*.xml
  generate-contract | git handoff check - --json")]
pub(crate) struct Arguments {
    /// The contracts, or the fields for --to; - reads standard input
    #[arg(value_name = "FILE", required_unless_present = "to")]
    files: Vec<String>,
    #[command(flatten)]
    compose: ComposeArgs,
    /// Judge only the document, not whether it may be sent now
    #[arg(long)]
    contract_only: bool,
    /// The output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    format: Format,
    #[command(flatten)]
    offer: OfferArgs,
}

/// The name of a contract that is in no file.
const COMPOSED: &str = "contract";

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

/// The checked contracts.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "Checked")]
pub(crate) struct CheckView {
    /// each file
    files: Vec<FileView>,
    /// warnings and notes
    findings: Vec<Finding>,
    /// whether only the documents were judged, not whether they may be sent now
    contract_only: bool,
}

/// A file that was checked.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CheckedFile")]
struct FileView {
    /// its name as given
    file: String,
    /// its contract's type
    contract_type: Option<String>,
    /// its issue's key; null if it names none
    issue: Option<IssueKey>,
    /// the id of the handoff that it would begin, or that it began; null if only the document was
    /// judged
    id: Option<HandoffId>,
    /// The range of its findings.
    #[serde(skip)]
    found: Range<usize>,
    /// Why it would be refused.
    #[serde(skip)]
    refusal: Option<Failure>,
    /// What the refusal came before.
    #[serde(skip)]
    unjudged: Option<&'static str>,
}

/// How a contract is judged.
enum Judge<'r> {
    /// As `send` would.
    Sending(Box<Ledger<'r>>, Box<Session>),
    /// Only as a document.
    Document(Against<'r>),
}

#[derive(Default)]
struct Verdict {
    kind: Option<String>,
    issue: Option<IssueKey>,
    handoff: Option<HandoffId>,
    findings: Vec<Finding>,
    refusal: Option<Failure>,
    unjudged: Option<&'static str>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository().ok();
        let repository = repository.as_deref();
        let agent = match repository {
            Some(repository) => context.agent(repository)?,
            None => None,
        };
        let mut options = self.offer.read(context, agent)?;
        let mut judge = self.judge(context, repository, options.protocol.as_ref(), output)?;
        let mut checked = CheckView {
            contract_only: matches!(judge, Judge::Document(_)),
            ..CheckView::default()
        };
        let composed = self.compose.to.as_ref();
        let composed = composed.map(|to| self.composed(context, to, &mut options));
        let read = |name| (name, input::contract(context, name));
        let contracts = match composed.transpose()? {
            Some(contract) => vec![(COMPOSED, Ok(contract.into_bytes()))],
            None => self.files.iter().map(|name| read(name.as_str())).collect(),
        };
        for (name, contract) in contracts {
            let verdict = match contract {
                Ok(bytes) => judge.verdict(&options.offer(&Input::read(&bytes)))?,
                Err(failure) => Verdict::unread(failure),
            };
            checked.add(name, verdict);
        }
        self.report(checked, repository, output)
    }

    /// The contract that `send` would write to an agent.
    fn composed(
        &self,
        context: &Context,
        to: &str,
        options: &mut Options,
    ) -> Result<String, Failure> {
        let fields = match &self.files[..] {
            [] => None,
            [fields] => Some(fields.as_str()),
            _ => {
                return Err(Failure::usage(
                    "with --to, FILE is the fields of one contract",
                ));
            }
        };
        let repository = context.repository()?;
        let (tip, from) = (
            context.tip(&repository)?,
            context.acting_agent(&repository)?,
        );
        let key = match options.issue.take() {
            Some(key) => key,
            None => issue_held(context, &repository, &tip, &from)?,
        };
        let to = context.named(&repository, to)?;
        let set = self.compose.values(context, fields)?;
        let wanted = Wanted {
            kind: self.compose.kind.as_deref(),
            protocol: options.protocol.as_ref(),
            set: &set,
            ..Wanted::new(&from, &to)
        };
        let worker = context.worker(&repository)?;
        let worker = worker.as_ref().map(|worker| &worker.id);
        let text = Composer::new(&repository, &tip, wanted, &key, worker)?.complete()?;
        options.issue = Some(key);
        Ok(text)
    }

    fn judge<'r>(
        &self,
        context: &Context,
        repository: Option<&'r Repository>,
        protocol: Option<&AgentName>,
        output: &mut Output,
    ) -> Result<Judge<'r>, Failure> {
        if let (false, Some(repository)) = (self.contract_only, repository) {
            let ledger = context.ledger(repository)?;
            if ledger.tip_id()?.is_some() {
                let (ledger, session) = context.writer_apart(repository, output)?;
                // The check itself reports what can't be read.
                let _ = tell_news(&ledger, false, output);
                return Ok(Judge::Sending(Box::new(ledger), Box::new(session)));
            }
        }
        let against = Against::choose(context, repository, protocol)?;
        Ok(Judge::Document(against))
    }

    fn report(
        &self,
        mut checked: CheckView,
        repository: Option<&Repository>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        if self.format == Format::Json {
            output.as_json();
        }
        let refused = checked.files.iter().filter(|f| f.refusal.is_some()).count();
        let is_for_github = self.format == Format::Github && !output.is_json();
        if is_for_github {
            let found = checked.findings.iter();
            let found =
                found.map(|f| Annotation::in_file(f, placed(f.file.as_deref(), repository)));
            let refused = checked.refused_alone().map(|(file, refusal)| Annotation {
                file: Some(placed(Some(file), repository)),
                ..Annotation::new(Weight::Error, refusal.word(), &refusal.message)
            });
            output.raw(commands(&found.chain(refused).collect::<Vec<_>>()).as_bytes())?;
        } else if refused == 0 || !output.is_json() {
            output.answer(&checked)?;
        }
        let refusals = checked.files.iter_mut().filter_map(|f| f.refusal.take());
        let Some(first) = { refusals }.next() else {
            return Ok(());
        };
        if is_for_github || !output.is_json() {
            return Err(Failure::reported(first.exit));
        }
        let message = match refused {
            1 => first.message,
            more => format!(
                "{} would be refused; the first: {}",
                counted(more, "contract"),
                first.message
            ),
        };
        Err(Failure {
            message,
            findings: checked.findings,
            ..first
        })
    }
}

impl Judge<'_> {
    /// Judges a contract.
    ///
    /// # Errors
    /// A [`Failure`] if the ledger, the repository or a schema can't be read.
    fn verdict(&mut self, offer: &Offer<'_>) -> Result<Verdict, Failure> {
        let (ledger, session) = match self {
            Self::Sending(ledger, session) => (ledger, session),
            Self::Document(against) => return Ok(Verdict::of_document(against.review(offer)?)),
        };
        let checked = attempt(ledger, session, offer, |ledger, session, offer| {
            ledger.check(session, offer)
        })?;
        Ok(match checked {
            Ok(done) => {
                let record = done.receipt.record;
                Verdict {
                    kind: Some(record.contract_type),
                    issue: Some(record.id.issue().clone()),
                    handoff: Some(record.id),
                    findings: done.warnings,
                    ..Verdict::default()
                }
            }
            Err(error) => {
                let found = ledger.tip()?.match_contract(offer)?;
                let unjudged = unjudged(&error, &found, offer)?;
                let review = found.review;
                let mut failure = Failure::from(error);
                Verdict {
                    unjudged,
                    kind: review.kind,
                    issue: review.contract.map(|contract| contract.issue),
                    handoff: None,
                    findings: std::mem::take(&mut failure.findings),
                    refusal: Some(failure),
                }
            }
        })
    }
}

impl Verdict {
    fn of_document(review: Review) -> Self {
        let refused = || LedgerError::from(ContractError::Invalid(Vec::new()));
        Self {
            refusal: (!review.is_complete()).then(|| Failure::from(refused())),
            kind: review.kind,
            issue: review.contract.map(|contract| contract.issue),
            findings: review.findings,
            ..Self::default()
        }
    }

    fn unread(mut failure: Failure) -> Self {
        let found = std::mem::take(&mut failure.findings);
        let missing = || Finding::error(FindingCode::InputNotFound, "", failure.message.clone());
        Self {
            findings: match found {
                found if found.is_empty() => vec![missing()],
                found => found,
            },
            refusal: Some(failure),
            ..Self::default()
        }
    }
}

impl CheckView {
    /// The files that would be refused for a reason other than their findings.
    fn refused_alone(&self) -> impl Iterator<Item = (&str, &Failure)> {
        let refused = self
            .files
            .iter()
            .filter_map(|f| Some((f, f.refusal.as_ref()?)));
        refused
            .filter(|(f, _)| errors(&self.findings[f.found.clone()]) == 0)
            .map(|(f, refusal)| (f.file.as_str(), refusal))
    }

    fn add(&mut self, name: &str, verdict: Verdict) {
        let start = self.findings.len();
        let findings = verdict.findings.into_iter();
        self.findings.extend(findings.map(|finding| Finding {
            file: Some(name.to_owned()),
            ..finding
        }));
        self.files.push(FileView {
            file: name.to_owned(),
            contract_type: verdict.kind,
            issue: verdict.issue,
            id: verdict.handoff,
            found: start..self.findings.len(),
            refusal: verdict.refusal,
            unjudged: verdict.unjudged,
        });
    }
}

impl Answer for CheckView {
    fn text(&self, _: &Look) -> String {
        let of_file = |file: &FileView| {
            let name = continued(&file.file);
            let kind = file.contract_type.as_deref().unwrap_or("contract");
            let findings = &self.findings[file.found.clone()];
            let (verdict, why) = match (&file.refusal, errors(findings)) {
                (None, _) => ("complete".to_owned(), String::new()),
                (Some(refusal), 0) => {
                    let why = format!("  {}\n  hint: {}\n", refusal.message, refusal.next());
                    ("refused".to_owned(), why)
                }
                (Some(_), faults) => (counted(faults, "fault"), String::new()),
            };
            let findings: String = findings.iter().map(render).collect();
            let more = file
                .unjudged
                .map(|what| format!("  more may follow: {what} was not judged yet\n"));
            let more = more.unwrap_or_default();
            format!("{name}: {verdict} ({kind})\n{why}{findings}{more}")
        };
        let mut text: String = self.files.iter().map(of_file).collect();
        if self.contract_only {
            text += "only the document was judged, not whether it may be sent now\n";
        }
        text
    }
}

/// The layers that lack what they need to judge a contract: whether it may be sent now, and what the
/// repository says.
fn unjudged(
    error: &LedgerError,
    found: &ContractMatch<'_>,
    offer: &Offer<'_>,
) -> Result<Option<&'static str>, LedgerError> {
    const STEP: &str = "whether it may be sent now";
    const CODE: &str = "what the repository says of it";
    const BOTH: &str = "whether it may be sent now, and what the repository says of it,";
    let of_refusal = |refusal: &Refusal| refusal.is_before_work().then_some(CODE);
    let error = match error {
        LedgerError::Contract(error) => error,
        LedgerError::Refused(refusal) => return Ok(of_refusal(refusal)),
        _ => return Ok(None),
    };
    Ok(match error {
        ContractError::Evidence(_) | ContractError::Delivered(_) => None,
        ContractError::Gate { refusal, .. } => of_refusal(refusal),
        ContractError::Invalid(faults) => {
            let of_code = |f: &&Finding| Check::ALL.iter().any(|check| check.code() == f.code);
            let own: Vec<Finding> = faults.iter().filter(|f| !of_code(f)).cloned().collect();
            let sound = found.soundness(offer.input, &own)?;
            let is_refused = faults.iter().any(|f| f.code == FindingCode::StepRefused);
            match (sound.step, sound.code && !is_refused) {
                (true, true) => None,
                (true, false) => Some(CODE),
                (false, true) => Some(STEP),
                (false, false) => Some(BOTH),
            }
        }
        _ => Some(BOTH),
    })
}

fn errors(findings: &[Finding]) -> usize {
    // A gate's refusal is not counted: it only sums up other faults.
    let faults = findings.iter().filter(|f| f.is_error());
    faults.filter(|f| !f.code.is_gate()).count()
}

/// A file's path for a GitHub annotation: relative to the repository's root.
fn placed(file: Option<&str>, repository: Option<&Repository>) -> String {
    let file = file.unwrap_or_default();
    let within = repository.and_then(|repository| repository.path_within(Path::new(file)));
    within.unwrap_or_else(|| file.to_owned())
}
