use clap::Args;
use handoff::base::Code;
use handoff::base::ids::AgentName;
use handoff::base::text::{continued, word};
use handoff::ledger::{Done, Ledger, Snapshot, merge_left};
use handoff::model::{
    Annotation, Approval, Record, Refusal, Stop, Update, View, kept_apart, required, said_by_worker,
};

use crate::args::text;
use crate::context::{Context, commit_id, handoff_id, one_commit};
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;
use crate::render::receipt::{ReceiptView, merge_is_left};

/// Approve what a handoff hands on, as a person
///
/// Only an agent of kind `human` can approve. No state changes: a requirement with `approved_by` asks
/// for it, and `git handoff gate` checks that; with `merge` reported merges, too. The approval is of the commit that the handoff
/// is about, or of the one that --head names. `git handoff reject` takes it back, and tells why. To
/// overrule findings, `reject` the review, or `cancel` it once it is claimed.
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
            ensure_here((&ledger, &tip), (&record, own), &agent, output)?;
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
        let before = merge_met(&tip, &record)?;
        let done = ledger.update(&session, &agent, id.issue(), &approve)?;
        output.follow(&ledger);
        let mut text = said(&done, &agent).unwrap_or_default();
        let rules = tip.rules(record.protocol.as_str())?;
        let requirements = rules.protocol().definition().requirements.iter();
        let mut asks = requirements.filter(|(_, one)| !one.approved_by.is_empty());
        if asks.clone().all(|(_, one)| !one.merge) && before == merge_met(&ledger.tip()?, &record)?
        {
            text += "  recorded, but no merge under its protocol asks for it";
            let key = id.issue();
            text += &asks.next().map_or_else(String::new, |(name, _)| {
                format!(
                    "; this does: git handoff gate {key} --require {}\n  \
                     for all merges: git handoff protocol set {} {} true",
                    word(name),
                    rules.protocol().definition().name,
                    word(&format!("requirements.{name}")),
                )
            });
            text += "\n";
        }
        let own = session.worker.as_ref();
        let apart = own.map(|own| kept_apart(&folder, rules.protocol(), own));
        if let Some((requirement, sent)) = apart.transpose()?.flatten() {
            text = format!(
                "recorded; does not count: for {requirement}, the same worker sent {sent}\n{text}  a person is a worker of their own: \
                 git handoff approve {id} --as {agent} --worker NAME\n"
            );
        }
        let tip = ledger.tip()?;
        let is_last = before.contains(&false) && !merge_met(&tip, &record)?.contains(&false);
        if is_last
            && merge_left(&tip, &tip.issue(id.issue())?, &done.receipt.issue, &rules)?.is_some()
        {
            text += &format!("  {}\n", merge_is_left(id.issue()));
        }
        output.answer(&ReceiptView::new(&done, output)?.with_text(text))
    }
}

/// Refuses to approve a commit that is not here, but could be.
fn ensure_here(
    (ledger, tip): (&Ledger<'_>, &Snapshot<'_>),
    (record, own): (&Record, &Code),
    agent: &AgentName,
    output: &mut Output,
) -> Result<(), Failure> {
    let rules = tip.rules(record.protocol.as_str())?;
    let (id, there) = (&record.id, format!("origin/{}", own.branch));
    let again = format!(
        "read what is there now, and approve that: `git handoff approve {id} --as {agent} --head {}`",
        word(&there)
    );
    match ledger.unseen(tip, rules.protocol(), (own, ""), Some(again)) {
        Some(unseen) if unseen.is_error() => {
            let failure = Failure::new(ErrorCode::NoCommit, unseen.message);
            return Err(failure.hint(unseen.fix.unwrap_or_default()));
        }
        unseen => unseen.iter().for_each(|one| output.say(&one.message)),
    }
    Ok(())
}

/// Which requirements of a merge are met.
fn merge_met(tip: &Snapshot<'_>, record: &Record) -> Result<Vec<bool>, Failure> {
    let (key, folder) = (record.id.issue(), tip.issue(record.id.issue())?);
    let rules = tip.rules(record.protocol.as_str())?;
    let all = required(&folder, key, rules.protocol(), &[], None, said_by_worker);
    match all {
        Ok(all) => Ok(all.iter().map(|one| one.met).collect()),
        Err(Stop::Unreadable(error)) => Err(error.into()),
        Err(Stop::Refused(refusal)) => Err(refusal.into()),
    }
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
