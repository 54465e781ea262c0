use clap::Args;
use handoff::base::Code;
use handoff::base::ids::{AgentName, HandoffId};
use handoff::base::text::continued;
use handoff::ledger::{Done, Session, Snapshot};
use handoff::model::{Annotation, Approval, Record, Refusal, Update, View};
use handoff::protocol::Identity;

use crate::args::text;
use crate::context::{Context, commit_id, handoff_id, one_commit};
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;
use crate::render::receipt::ReceiptView;

/// Approve what a handoff hands on, as a person
///
/// Only an agent of kind `human` can approve. No state changes: a requirement with `approved_by` asks
/// for it, and `git handoff gate` checks that; with `merge` reported merges, too. The approval is of the commit that the handoff
/// is about, or of the one that --head names. `git handoff reject` takes it back, and tells why.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff approve 123.4 --as maintainer
  git handoff approve 123.4 --as maintainer --note 'tried it on the test server'
  git handoff approve 123.4 --as maintainer --head HEAD
  git handoff gate 123 --require approved-by-person")]
pub(crate) struct Arguments {
    /// The handoff, or the issue for the one that is open in it, else its newest
    #[arg(value_name = "ID")]
    id: String,
    /// What to say with it
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_aliases = ["message", "reason"],
        visible_short_alias = 'm'
    )]
    note: Option<String>,
    /// The commit that is approved; by default the one that the handoff is about
    #[arg(long, value_name = "COMMIT")]
    head: Option<String>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let note = self.note.as_deref().map(text::kept).transpose()?;
        let repository = context.repository()?;
        let head = self.head.as_deref();
        let head = head.map(|text| {
            let id = one_commit(&repository, text)?;
            commit_id(&repository, &id.to_string())
        });
        let head = head.transpose()?;
        let tree = head.map(|head| repository.commit(head)).transpose()?;
        let tree = tree.map(|commit| commit.tree.to_string());
        let agent = context.acting_agent(&repository)?;
        let (mut ledger, session) = context.writer(&repository, output)?;
        let tip = ledger.tip()?;
        let id = handoff_id(&tip, &self.id, Some(&agent))?;
        let folder = tip.issue(id.issue())?;
        let record = folder.record(id.number())?;
        let record = record.ok_or_else(|| Refusal::no_handoff(&id))?;
        if let Some(own) = record.code.as_ref().filter(|_| head.is_none()) {
            let rules = tip.rules(record.protocol.as_str())?;
            match ledger.unseen(&tip, rules.protocol(), own, "") {
                Some(unseen) if unseen.is_error() => {
                    let failure = Failure::new(ErrorCode::NoCommit, unseen.message);
                    return Err(failure.hint(unseen.fix.unwrap_or_default()));
                }
                unseen => unseen.iter().for_each(|one| output.say(&one.message)),
            }
        }
        let code = head.map(|head| Code {
            branch: branch(&tip, &record).unwrap_or_else(|| head.to_string()),
            commit: head.to_string(),
            tree,
        });
        let approve = Update::Annotate {
            handoff: Some(id.number()),
            note: note.unwrap_or_default(),
            facts: serde_json::Map::new(),
            approval: Some(Approval {
                approved: true,
                code,
            }),
        };
        let done = ledger.update(&session, &agent, id.issue(), &approve)?;
        output.follow(&ledger);
        let mut text = said(&done, &agent).unwrap_or_default();
        if let Some((requirement, sent)) = kept_apart(&ledger.tip()?, &record, &session)? {
            text = format!(
                "recorded; does not count: for {requirement}, the same worker sent {sent}\n{text}  a person is a worker of their own: \
                 git handoff approve {id} --as {agent} --worker NAME\n"
            );
        }
        output.answer(&ReceiptView::new(&done, output)?.with_text(text))
    }
}

/// The requirement for which an approval by this session's worker does not count, and the handoff
/// that the worker sent.
fn kept_apart(
    tip: &Snapshot<'_>,
    approved: &Record,
    session: &Session,
) -> Result<Option<(String, HandoffId)>, Failure> {
    let rules = tip.rules(approved.protocol.as_str())?;
    let records = tip.issue(approved.id.issue())?.records()?;
    let of_worker = |record: &&Record| {
        let sent = record.transitions.first();
        sent.is_some_and(|sent| sent.worker.is_some() && sent.worker == session.worker)
    };
    let asked = rules.protocol().definition().requirements.iter();
    let mut asked =
        asked.filter(|(_, one)| !one.approved_by.is_empty() && one.apart_by == Identity::Worker);
    Ok(asked.find_map(|(name, one)| {
        let mut own = records.iter().filter(of_worker);
        let sent = own.find(|record| one.apart_from.contains(&record.contract_type))?;
        Some((name.clone(), sent.id.clone()))
    }))
}

/// The code branch of a handoff.
fn branch(tip: &Snapshot<'_>, record: &Record) -> Option<String> {
    if let Some(code) = &record.code {
        return Some(code.branch.clone());
    }
    let issue = tip.issue(record.id.issue()).ok()?.issue().ok()??;
    Some(issue.facts.get("branch")?.as_str()?.to_owned())
}

/// The text about this person's approval or rejection, if the step recorded one.
pub(super) fn said(done: &Done, by: &AgentName) -> Option<String> {
    let receipt = &done.receipt;
    let id = &receipt.record.id;
    let mut notes = receipt.issue.annotations.iter().rev();
    let own = |note: &&Annotation| note.by == *by && note.id.as_ref() == Some(id);
    let note = notes.find(|note| note.approval.is_some() && own(note))?;
    let approval = note.approval.as_ref()?;
    let done_so = continued(&approval.done());
    let mut text = match done.commit {
        Some(commit) => format!("{id} {done_so} by {by}\n  commit {}\n", commit.short()),
        None => format!("{id} is already {done_so} by {by}; nothing was written\n"),
    };
    let findings = receipt.issue.findings.iter();
    for finding in findings.filter(|finding| approval.approved && !finding.state.is_settled()) {
        text += &format!("  not settled yet: {}\n", continued(&finding.line()));
    }
    if !approval.approved {
        text += &format!("  the gate stays closed to this code until {by} approves it\n");
    }
    Some(text)
}
