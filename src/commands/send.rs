use clap::Args;
use handoff::base::Moment;
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::continued;
use handoff::contract::Input;
use handoff::git::Repository;
use handoff::ledger::attention::{Attention, of_folder};
use handoff::ledger::{
    ContractError, Ledger, LedgerError, Offer, RefusalReason, Session, Snapshot, approved_merge,
};
use handoff::model::{Issue, IssueStatus};
use handoff::protocol::Need;

use super::sync::say_unpushed;
use crate::context::Context;
use crate::context::left_for_worker::{CONTRACT_FILE, LeftForWorker};
use crate::context::writer::catch_up;
use crate::contracts::asking::{self, Question, Turn};
use crate::contracts::attempt::{ComposeArgs, OfferArgs, Options, attempt};
use crate::contracts::by_send;
use crate::contracts::compose::{Composer, issue_held};
use crate::contracts::draft::{Draft, Remarks, about_finding, about_findings};
use crate::contracts::input;
use crate::contracts::onward::{NextContract, Onward};
use crate::contracts::settings::Setting;
use crate::contracts::skeleton::{Format, Wanted};
use crate::contracts::usage::UsageReport;
use crate::environment::now;
use crate::exit;
use crate::failure::{Failure, hint};
use crate::output::Output;
use crate::render::receipt::ReceiptView;

/// Send a contract that hands work to another agent
///
/// Checks the contract and records one commit: the handoff that the sender held is completed (or failed
/// or blocked, if the contract says so), and a new one waits for its receiver. A sender must have
/// claimed what it received. Sending the same contract again prints the first receipt.
///
/// `{{fill by send: …}}` is filled in from the repository and the issue: commits, files, the merge. A
/// byte order mark and a Markdown fence around the contract are removed.
///
/// With --to, the contract is written here: what is known is filled in; --set, or FILE, gives the rest.
/// On a terminal, you are asked for what is missing, even for --to; elsewhere it is listed. --edit opens
/// the contract in the editor, and again with the findings if it is refused.
///
/// In a run of `work` whose sandbox forbids to record it, the contract is checked and left for the
/// worker.
///
/// Where the protocol requires it, statements are checked against the repository first: branch,
/// commits, counts, the merge, artifacts. A shared ledger's `send` first pushes the code branch that
/// the contract names.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff send contract.xml
  git handoff send --to implementer-agent --as prep-agent \\
      --set dependencies=installed --set build='12 passed' \\
      --set dev_server=running --set port=4000
  git handoff send --to fixer-agent --as reviewer-agent \\
      --set critical_count=1 --set important_count=0 \\
      --set suggestion_count=0 \\
      --set blocking_issues.0.location=src/csv.rs:12 \\
      --set blocking_issues.0.severity=critical \\
      --set blocking_issues.0.description='a comma ends the name'
  generate-contract | git handoff send -
  git handoff send error.xml --issue 123      (a contract that names no issue)
  git handoff send contract.xml --tests target/junit.xml --coverage lcov.info")]
pub(crate) struct Arguments {
    /// The contract, or with --to its fields as a JSON object; - reads standard input
    #[arg(value_name = "FILE")]
    file: Option<String>,
    #[command(flatten)]
    compose: ComposeArgs,
    /// Its format; by default the type's or the protocol's first
    #[arg(long, value_name = "FORMAT", requires = "to")]
    format: Option<Format>,
    /// Open it in the editor before it is sent
    #[arg(long, requires = "to")]
    edit: bool,
    #[command(flatten)]
    offer: OfferArgs,
    #[command(flatten)]
    usage: UsageReport,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let (mut ledger, mut session) = context.requester(&repository, output)?;
        session.usage = self.usage.read(context)?;
        let agent = context.agent(&repository)?;
        let left = context.left_for_worker(&mut ledger, &session);
        let has_more = self.offer.has_more() || self.edit || self.usage.is_given();
        let unpushed = || context.left_until_pushed(&ledger).filter(|_| !has_more);
        if let Some(left) = left.or_else(unpushed) {
            return self.leave(&left, context, (&mut ledger, &session), output);
        }
        let mut options = self.offer.read(context, agent)?;
        if let (Some(file), None) = (&self.file, &self.compose.to) {
            let bytes = input::contract(context, file)?;
            let input = Input::read(&bytes);
            let offer = options.offer(&input);
            return deliver(&mut ledger, &session, &offer, None, output);
        }
        let asks = self.file.is_none() && !self.edit && asking::is_possible(context, output);
        if self.compose.to.is_none() && !asks {
            return Err(nothing_to_send());
        }
        let from = context.acting_agent(&repository)?;
        let tip = ledger.tip()?;
        let key = match options.issue.take() {
            Some(key) => key,
            None => issue_held(context, &repository, &tip, &from)?,
        };
        options.issue = Some(key.clone());
        let (to, kind) = match &self.compose.to {
            Some(to) => (context.named(&repository, to)?, self.compose.kind.clone()),
            None => chosen(context, (&repository, &tip), &from, &key, output)?,
        };
        let given = self.compose.values(context, self.file.as_deref())?;
        let mut wanted = Wanted {
            kind: kind.as_deref(),
            format: self.format,
            protocol: options.protocol.as_ref(),
            set: &given,
            ..Wanted::new(&from, &to)
        };
        let mut answers = Vec::new();
        if asks {
            let target = (&mut ledger, &session);
            answers = asked_values(target, &options, wanted, &key, output)?;
            wanted.set = &answers;
        }
        let was_asked = answers.len() > given.len();
        let composer = Composer::new(&repository, &tip, wanted, &key, session.worker.as_ref())?;
        if self.edit {
            let (draft, text, remarks) = composer.draft()?;
            let edited = (&draft, text, remarks);
            return deliver_edited(&mut ledger, &session, &options, edited, output);
        }
        let text = composer.complete()?;
        if was_asked {
            output.say(&text);
            let question = "Send it? (Enter: yes; e: in the editor first; n: no)";
            match &*asking::answer(question, ASKS, output)? {
                "" | "y" | "yes" => {}
                "e" => {
                    let edited = (&composer.new_draft()?, text, Remarks::new());
                    return deliver_edited(&mut ledger, &session, &options, edited, output);
                }
                _ => return Err(Failure::usage("nothing was sent").hint(ASKS)),
            }
        }
        let input = Input::read(text.as_bytes());
        let offer = options.offer(&input);
        let sent = deliver(&mut ledger, &session, &offer, Some(&composer), output);
        match sent {
            Err(failure) if was_asked => {
                let draft = composer.new_draft()?;
                draft.keep(&text)?;
                Err(kept_in(&draft, failure))
            }
            sent => sent,
        }
    }

    /// Leaves the contract for the worker, after the checks that are possible before the work is
    /// committed.
    fn leave(
        &self,
        left: &LeftForWorker,
        context: &Context,
        (ledger, session): (&mut Ledger<'_>, &Session),
        output: &mut Output,
    ) -> Result<(), Failure> {
        if self.offer.has_more() || self.edit || self.usage.is_given() {
            let text = "only a contract can be left for the worker here, without other options";
            return Err(Failure::usage(text).hint("give FILE, or --to and --set, and nothing more"));
        }
        let (repository, tip) = (ledger.repository(), ledger.tip()?);
        let mut options = self.offer.read(context, context.agent(repository)?)?;
        let issue = options.issue.take();
        let issue = issue.unwrap_or_else(|| left.issue().clone());
        left.ensure_issue(&issue)?;
        options.issue = Some(issue.clone());
        let bytes = match (&self.file, &self.compose.to) {
            (Some(file), None) => input::contract(context, file)?,
            (_, Some(to)) => {
                let from = context.acting_agent(repository)?;
                let to = context.named(repository, to)?;
                let worker = context.worker(repository)?;
                let set = self.compose.values(context, self.file.as_deref())?;
                let wanted = Wanted {
                    kind: self.compose.kind.as_deref(),
                    format: self.format,
                    protocol: options.protocol.as_ref(),
                    set: &set,
                    ..Wanted::new(&from, &to)
                };
                let composer = Composer::new(
                    repository,
                    &tip,
                    wanted,
                    &issue,
                    worker.as_ref().map(|worker| &worker.id),
                )?;
                composer.before_work()?.into_bytes()
            }
            (None, None) => return Err(nothing_to_send()),
        };
        let written = Input::read(&bytes);
        let offer = options.offer(&written);
        let open = by_send::open_places(&tip, &offer)?;
        let is_open = |found: &Finding| {
            found.code == FindingCode::FieldUnfilled && open.contains(&found.path)
        };
        match ledger.check(session, &offer) {
            Err(LedgerError::Contract(ContractError::Invalid(mut findings))) => {
                findings.retain(|found| !is_open(found));
                if findings.iter().any(|f| f.is_error() && !f.code.is_gate()) {
                    return Err(LedgerError::from(ContractError::Invalid(findings)).into());
                }
            }
            // The worker commits after the run.
            Ok(_) | Err(LedgerError::Contract(ContractError::Evidence(_))) => {}
            Err(error) => return Err(error.into()),
        }
        let text = String::from_utf8_lossy(written.bytes());
        left.leave(CONTRACT_FILE, &text, output)
    }
}

/// The hint if questions were not answered.
const ASKS: &str = "`git handoff send --to AGENT --set FIELD=VALUE` asks nothing";

fn nothing_to_send() -> Failure {
    Failure::usage("say what to send: a FILE, or --to AGENT").hint(hint!(
        "`git handoff prime` prints the command for your work; on a terminal, `git handoff send` asks"
    ))
}

/// The receiver and the type of a contract; asks if there are several.
fn chosen(
    context: &Context,
    (repository, tip): (&Repository, &Snapshot<'_>),
    from: &AgentName,
    issue: &IssueKey,
    output: &mut Output,
) -> Result<(AgentName, Option<String>), Failure> {
    let held = tip.held_by(from)?;
    let work = held.iter().find(|record| record.id.issue() == issue);
    let rules = match work {
        Some(work) => tip.rules(work.protocol.as_str())?,
        None => tip.default_rules()?,
    };
    let onward = Onward {
        repository,
        tip,
        rules: &rules,
        several: false,
        holds_several: held.len() > 1,
        carried: &context.carried_at(repository, tip),
        now: now()?,
    };
    let all = onward.contracts(from, work)?;
    let title = |next: &NextContract| format!("{}: {}", next.to, continued(&next.title));
    let titles: Vec<String> = all.iter().map(title).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let place = match titles.len() {
        0 => return Err(nothing_to_send()),
        1 => 0,
        _ => asking::choice("What do you send?", &titles, ASKS, output)?,
    };
    let next = &all[place];
    Ok((next.to.clone(), Some(next.contract_type.clone())))
}

/// Asks for each value that a contract needs, again if an answer is refused. A value that may turn
/// out to be unnecessary can be postponed.
fn asked_values(
    (ledger, session): (&mut Ledger<'_>, &Session),
    options: &Options,
    wanted: Wanted<'_>,
    issue: &IssueKey,
    output: &mut Output,
) -> Result<Vec<Setting>, Failure> {
    let (mut set, mut later) = (wanted.set.to_vec(), Vec::new());
    let mut list = None;
    loop {
        let (repository, tip) = (ledger.repository(), ledger.tip()?);
        let wanted = Wanted {
            set: &set,
            ..wanted
        };
        let worker = session.worker.as_ref();
        let composer = Composer::new(repository, &tip, wanted, issue, worker)?;
        let left = composer.so_far()?.1;
        let Some(question) = Question::next(&left, &later, list.as_ref()) else {
            return Ok(set);
        };
        let asked = composer.question(&question.pointer, &question.about)?;
        let typed = asking::answer(&format!("{asked}{}", question.if_empty()), ASKS, output)?;
        if typed.is_empty() {
            match question.turn {
                Turn::First => later.push(question.pointer),
                Turn::More => list = None,
                Turn::Last => output.say("this value is needed"),
            }
            continue;
        }
        let setting = Setting::at(&question.pointer, &typed);
        let more = [&set[..], &[setting]].concat();
        let wanted = Wanted {
            set: &more,
            ..wanted
        };
        let composer = Composer::new(repository, &tip, wanted, issue, worker)?;
        let text = match composer.so_far() {
            Ok((text, _)) => text,
            Err(failure) => {
                output.say(&failure.message);
                continue;
            }
        };
        let input = Input::read(text.as_bytes());
        let checked = ledger.check(session, &options.offer(&input));
        let mut findings =
            checked.map_or_else(|error| Failure::from(error).findings, |_| Vec::new());
        composer.name_fields(&mut findings);
        findings.retain(|found| question.refuses(found));
        match findings.first() {
            Some(found) => output.say(&about_finding(found)),
            None => {
                list = question.list(list);
                set = more;
            }
        }
    }
}

/// Sends a contract from the editor, until it is accepted or given up.
fn deliver_edited(
    ledger: &mut Ledger<'_>,
    session: &Session,
    options: &Options,
    (draft, mut text, mut remarks): (&Draft, String, Remarks),
    output: &mut Output,
) -> Result<(), Failure> {
    loop {
        let edited = draft.edit(&text, &remarks)?;
        let input = Input::read(edited.as_bytes());
        let offer = options.offer(&input);
        match deliver(ledger, session, &offer, None, output) {
            Ok(()) => {
                draft.delete();
                return Ok(());
            }
            Err(failure) if edited == text || !is_refusal(&failure) => {
                return Err(kept_in(draft, failure));
            }
            Err(failure) => {
                remarks = about_findings(&failure);
                text = edited;
            }
        }
    }
}

/// The failure to send a draft, with the file that keeps it.
fn kept_in(draft: &Draft, failure: Failure) -> Failure {
    let kept = draft.path().display();
    let message = format!("{}; the draft is kept in {kept}", failure.message);
    Failure { message, ..failure }
}

/// Whether the failure refuses the contract, so that a changed one may be accepted.
fn is_refusal(failure: &Failure) -> bool {
    matches!(failure.exit, exit::CONTRACT | exit::PROTOCOL)
}

/// Sends a contract in an open ledger, with the values filled in that are left to `send`, and
/// prints its receipt. Findings name the options of `send` if it wrote the contract.
pub(super) fn deliver(
    ledger: &mut Ledger<'_>,
    session: &Session,
    offer: &Offer<'_>,
    composer: Option<&Composer<'_>>,
    output: &mut Output,
) -> Result<(), Failure> {
    catch_up(ledger, session, output)?;
    let sent = attempt(ledger, session, offer, |ledger, session, offer| {
        ledger.send(session, offer)
    })?;
    let mut done = match sent {
        Ok(done) => done,
        Err(error) => {
            let failure = refused(ledger, session, offer, error);
            return Err(match composer {
                Some(composer) => composer.with_settings(failure),
                None => failure,
            });
        }
    };
    if let Some(composer) = composer {
        composer.name_fields(&mut done.warnings);
    }
    output.follow(ledger);
    let mut receipt = ReceiptView::new(&done, output)?;
    if done.receipt.approves_merge {
        receipt.merged_into(merged_into(ledger, &done.receipt.issue)?);
    }
    let unapproved = unapproved(ledger, &done.receipt.issue)?;
    if let Some(needed) = &unapproved {
        receipt = receipt.with_next(&needed.next, &needed.turn, output);
    }
    output.answer(&receipt)?;
    if ledger.unpublished().is_some() {
        say_unpushed(ledger, output)?;
    }
    if let Some(needed) = &unapproved {
        output.say(&format!("{} is {}", needed.id, needed.why));
    }
    receipt.say_next(output);
    Ok(())
}

/// The branch that an issue's approved code is merged into already, if this step completed it.
fn merged_into(ledger: &mut Ledger<'_>, issue: &Issue) -> Result<Option<String>, Failure> {
    let tip = ledger.tip()?;
    let rules = tip.rules(issue.protocol.as_str())?;
    let approved = approved_merge(&tip, &tip.issue(&issue.issue)?, issue, &rules)?;
    Ok(approved.and_then(|(merge, is_merged)| is_merged.then_some(merge.base)))
}

/// The approval by a person that an issue lacks which this step completed, if it needs one.
fn unapproved(ledger: &mut Ledger<'_>, issue: &Issue) -> Result<Option<Attention>, Failure> {
    if issue.status != IssueStatus::Completed {
        return Ok(None);
    }
    let tip = ledger.tip()?;
    let rules = tip.rules(issue.protocol.as_str())?;
    let needed = of_folder(&tip.issue(&issue.issue)?, rules.protocol(), now()?)?;
    Ok(needed.into_iter().find(|one| one.need == Need::Unapproved))
}

/// The failure of a refused contract. It is noted in this clone, and recorded in the ledger if the
/// protocol requires that.
fn refused(
    ledger: &mut Ledger<'_>,
    session: &Session,
    offer: &Offer<'_>,
    error: LedgerError,
) -> Failure {
    let reason = RefusalReason::of(&error);
    let mut failure = Failure::from(error);
    if !is_refusal(&failure) {
        return failure;
    }
    let at = Moment::from(session.clock.author());
    let note = ledger.note_refused(session, offer, failure.word(), &failure.findings, at);
    if let (Some(note), Some(reason)) = (note, reason) {
        let words = match ledger.put_on_record(session, &note, &reason) {
            Ok(None) => return failure,
            Ok(Some(issue)) => format!("this is on record in issue {issue}"),
            Err(error) => format!("this could not be put on record: {error}"),
        };
        failure.message += &format!("; {words}");
    }
    failure
}
