use std::num::NonZero;
use std::thread;

use clap::Args;
use handoff::base::ObjectId;
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::quoted;
use handoff::git::{LEFT_OUT, REPAIR};
use handoff::ledger::{
    Audit, AuditScope, BranchError, Ledger, LedgerError, OtherProtocol, Quarantine, Tally,
};
use handoff::model::{Refusal, View};
use handoff_cli::output::annotations::Annotation;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::moment;
use crate::args::text::{self, OptionalReason};
use crate::context::Context;
use crate::environment::{self, now};
use crate::exit;
use crate::failure::{ErrorCode, Failure, Hint, hint};
use crate::output::annotations::Format;
use crate::output::page::{Page, PageArgs};
use crate::output::{Answer, Output, annotations};
use crate::render::{self, audit};
use crate::view::Look;

/// Replay every step from its contract, and report each that is not legal
///
/// Each commit of the ledger is run through the protocol again, on the state before
/// it, and must have written exactly what such a step writes: files, message,
/// trailers, author, dates. Signatures, delivered files and statements that were checked
/// are checked again. Continues past damage, and reports all of it. Exits 10 if the
/// ledger is damaged.
///
/// This clone remembers which history it has verified, so that a branch that was
/// rewritten or lost its last commits is reported, and so that --incremental can
/// continue from there.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff verify
  git handoff verify 123 --json
  git handoff verify --incremental         (only commits since the last time)
  git handoff verify --since 2026-03-01    (or a commit, or 2d)
  git handoff verify --quarantine 3f2a9c1 --as maintainer --reason 'by hand'
  git handoff verify --format github       (annotations in a GitHub workflow)")]
pub(crate) struct Arguments {
    /// Verify only the commits that touch this issue, or the rules that all issues share
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    /// Verify only commits after this one of the history, or since a time: a date, or how long ago
    #[arg(long, value_name = "COMMIT|TIME")]
    since: Option<String>,
    /// Verify only commits after the last that this clone verified; all of them if none was
    #[arg(long, conflicts_with = "since")]
    incremental: bool,
    /// Accept the branch as it is, although this clone saw another history of it
    #[arg(long, conflicts_with_all = ["since", "incremental"])]
    accept_rewritten: bool,
    /// Take back a commit that is not a step, on record: its content does not count any more. A person signs that off
    #[arg(long, value_name = "COMMIT", requires = "reason", conflicts_with_all = ["issue", "since", "incremental"])]
    quarantine: Option<String>,
    /// With --quarantine: also undo the later steps that stand on it
    #[arg(long, requires = "quarantine")]
    with_later: bool,
    #[command(flatten)]
    why: OptionalReason,
    /// The output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    format: Format,
    #[command(flatten)]
    page: PageArgs,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let is_github = self.format.is_github(output);
        output.paged();
        let repository = context.repository()?;
        self.take_back(context, output)?;
        let ledger = context.ledger(&repository)?;
        let key: Option<IssueKey> = self.issue.as_deref().map(str::parse).transpose()?;
        if let Some(key) = &key {
            let known = ledger.tip().and_then(|tip| tip.issue(key)?.issue());
            if matches!(known, Ok(None)) {
                return Err(Refusal::no_issue(key).into());
            }
        }
        let since = match &self.since {
            Some(text) => since(&ledger, text)?,
            None if self.incremental => ledger.verified(),
            None => None,
        };
        let tally = Tally::default();
        let scope = AuditScope {
            issue: key.as_ref(),
            since,
            tally: Some(&tally),
            now: environment::system_time(),
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let audited = || ledger.audit(scope, threads, self.accept_rewritten);
        let mut audit = output.during(&tally, audited)?;
        // A branch without any handoff was never a ledger, so it is not a damaged one.
        if audit.handoffs == 0
            && since.is_none()
            && let Err(error @ LedgerError::Branch(BranchError::NotALedger(_))) = ledger.tip()
        {
            return Err(error.into());
        }
        let changed = ledger
            .tip()
            .and_then(|tip| tip.changed_artifacts(key.as_ref()));
        match changed {
            Ok(found) => audit.findings.extend(found),
            // Unreadable objects were reported already.
            Err(_) if !audit.is_clean() => {}
            Err(error) => return Err(error.into()),
        }
        ledger.note_audit(&audit, scope, now()?);
        let is_left_out = |f: &Finding| f.code == FindingCode::ObjectLeftOut;
        let is_left_out = audit.findings.iter().any(is_left_out);
        if is_github && !is_left_out {
            return annotated(&audit, output);
        }
        let (verdict, hint) = (audit::verdict(&audit), hint_for(&audit.findings, &ledger));
        let is_clean = audit.is_clean();
        let page = self.cut(&mut audit, output)?;
        let other_protocols = other_protocols(&ledger, key.as_ref());
        let about = (ledger.branch(), key.as_ref());
        let view = VerifyView {
            report: audit::report(&verdict, &audit, &repository, about)
                + page.text()
                + &other_protocols
                    .iter()
                    .map(|other| render::other_protocol(Some(other)))
                    .collect::<String>(),
            other_protocols,
            audit: &audit,
            page,
        };
        if is_clean {
            return output.answer(&view);
        }
        // What a partial clone left out can't be verified.
        if is_left_out {
            let text = "parts of the ledger are not in this clone, and cannot be verified here";
            let failure = Failure::new(ErrorCode::LeftOut, text).hint(LEFT_OUT);
            let failure = failure.data(&view);
            return Err(failure.findings(audit.findings));
        }
        let mut failure = Failure::new(ErrorCode::LedgerDamaged, verdict).hint(hint);
        if output.is_json() {
            failure = failure.data(&view).findings(audit.findings);
        } else {
            output.answer(&view)?;
        }
        Err(failure)
    }

    /// Quarantines the named commit.
    fn take_back(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let Some(commit) = &self.quarantine else {
            return Ok(());
        };
        let repository = context.repository()?;
        let by = context.acting_agent(&repository)?;
        // It may be a commit that another clone found.
        let (mut ledger, session) = context.writer(&repository, output)?;
        let unknown = || {
            let text = format!("{} is no commit here", quoted(commit));
            Failure::new(ErrorCode::NoCommit, text).hint("`git handoff verify` names each")
        };
        let request = Quarantine {
            by,
            reason: text::kept(self.why.reason.as_deref().unwrap_or_default())?,
            commit: repository.commit_named(commit)?.ok_or_else(unknown)?,
            with_later: self.with_later,
        };
        let (later, written) = ledger.quarantine(&session, &request)?;
        let stray = request.commit.short();
        output.say(&match written {
            None => format!("commit {stray} was quarantined already; nothing was written"),
            Some(step) => format!(
                "commit {stray} does not count any more; commit {}",
                step.short()
            ),
        });
        if !later.is_empty() {
            let later: Vec<String> = later.iter().map(|id| id.short()).collect();
            output.say(&format!(
                "nor does what stood on it; make it again: {}",
                later.join(", ")
            ));
        }
        Ok(())
    }

    /// Keeps the findings of one page; the cursor is a finding's number.
    fn cut(&self, audit: &mut Audit, output: &Output) -> Result<Page, Failure> {
        let mut numbered: Vec<_> = (1..).zip(std::mem::take(&mut audit.findings)).collect();
        let name = |(number, _): &(usize, Finding)| number.to_string();
        let page = self.page.cut(&mut numbered, name, output)?;
        audit.findings = numbered.into_iter().map(|(_, finding)| finding).collect();
        Ok(page)
    }
}

/// Prints the findings as annotations of a workflow.
fn annotated(audit: &Audit, output: &mut Output) -> Result<(), Failure> {
    let remarks: Vec<Annotation> = audit.findings.iter().map(Annotation::in_ledger).collect();
    annotations::show(output, &remarks, &format!("{}\n", audit::verdict(audit)))?;
    if audit.is_clean() {
        Ok(())
    } else {
        Err(Failure::reported(exit::INTEGRITY))
    }
}

/// The result of an audit.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Verify")]
pub(crate) struct VerifyView<'a> {
    #[serde(flatten)]
    audit: &'a Audit,
    #[serde(flatten)]
    page: Page,
    /// the issue's protocol, if it is not the ledger's default one; of a whole ledger, its protocols
    /// that are unsigned while the default one is not
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_protocols: Vec<OtherProtocol>,
    #[serde(skip)]
    report: String,
}

impl Answer for VerifyView<'_> {
    fn text(&self, _: &Look) -> String {
        self.report.clone()
    }
}

/// Remarks on the protocol of an issue, or on all. Omits what can't be read, which was reported
/// already.
fn other_protocols(ledger: &Ledger<'_>, issue: Option<&IssueKey>) -> Vec<OtherProtocol> {
    let found = || -> Result<Vec<OtherProtocol>, LedgerError> {
        let tip = ledger.tip()?;
        if let Some(key) = issue {
            let issue = tip.issue(key)?.issue()?;
            let other = issue.map(|issue| tip.other_protocol(&issue.protocol));
            return Ok(other.transpose()?.flatten().into_iter().collect());
        }
        let names = tip.protocols()?;
        let names = names
            .iter()
            .filter_map(|name| name.parse::<AgentName>().ok());
        let others = names.filter_map(|name| tip.other_protocol(&name).transpose());
        let mut others = others.collect::<Result<Vec<_>, _>>()?;
        others.retain(|other| other.unsigned);
        Ok(others)
    };
    found().unwrap_or_default()
}

/// The commit after which history is verified: the named one, or the last one before a time.
fn since(ledger: &Ledger<'_>, text: &str) -> Result<Option<ObjectId>, Failure> {
    if let Some(time) = moment::read(text)? {
        return Ok(ledger.last_before(time)?);
    }
    let found = ledger.commit_named(text)?;
    found.map(Some).ok_or_else(|| {
        let text = format!("{} is neither a commit of a ledger nor a time", quoted(text));
        Failure::new(ErrorCode::NoCommit, text)
            .hint("use a commit that `git handoff log` shows, a date such as 2026-03-01, or how long ago: 2d")
    })
}

/// The cure of a damaged ledger.
fn hint_for(findings: &[Finding], ledger: &Ledger<'_>) -> Hint {
    if let Some(fix) = findings
        .iter()
        .rev()
        .find_map(|finding| cure(finding, ledger))
    {
        return fix;
    }
    "nothing was changed: compare with another clone's branch before you write to this one".into()
}

/// The cure of an audit's finding.
pub(super) fn cure(finding: &Finding, ledger: &Ledger<'_>) -> Option<Hint> {
    use FindingCode::{HistoryBroken, HistoryRewritten, ObjectLeftOut, ObjectUnreadable};
    if [HistoryBroken, ObjectUnreadable].contains(&finding.code) {
        return Some(REPAIR.into());
    }
    if [HistoryRewritten, ObjectLeftOut].contains(&finding.code) || !finding.is_error() {
        return None;
    }
    let commit: ObjectId = finding.commit.as_deref()?.parse().ok()?;
    let parents = ledger.repository().commit(commit).ok()?.parents;
    parents.first()?;
    let now = environment::system_time();
    ledger
        .is_stray(commit, now)
        .ok()
        .filter(|is_stray| *is_stray)?;
    let person = signer(ledger).unwrap_or("PERSON".to_owned());
    Some(hint!(
        "compare with another clone; `git handoff verify --quarantine {} --as {} --reason WHY` takes what is not a step back, on record",
        commit.short(),
        person
    ))
}

/// The person who signs a quarantine.
fn signer(ledger: &Ledger<'_>) -> Option<String> {
    let rules = ledger.tip().ok()?.default_rules().ok()?;
    let protocol = rules.protocol();
    let person = protocol.definition().people().next().or(protocol.lead());
    person.map(ToString::to_string)
}
