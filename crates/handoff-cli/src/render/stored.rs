//! A stored handoff, and everything shown of it.

use std::rc::Rc;

use handoff::base::Code;
use handoff::base::ids::HandoffId;
use handoff::base::text::{fenced, plain};
use handoff::git::Repository;
use handoff::ledger::attention::{Attention, of_record};
use handoff::ledger::{ContractText, Ledger, OtherProtocol, Snapshot, changes_of};
use handoff::model::view::commands::{ActionOption, options};
use handoff::model::{
    Annotation, Detail, Handoff, Issue, IssueSummary, Record, Refusal, RefusedContract, View,
};
use handoff::protocol::{Definition, Need};
use schemars::JsonSchema;
use serde::Serialize;

use super::advice::{claimed_offline, options_text};
use super::attention::attention_text;
use crate::environment::now;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::render;
use crate::view::Look;

/// A handoff as stored in the ledger.
pub struct Stored {
    /// Its issue.
    pub issue: Issue,
    /// Its record.
    pub record: Record,
    /// Its contract.
    pub contract: Rc<[u8]>,
}

impl Stored {
    /// Reads a handoff.
    ///
    /// # Errors
    /// A [`Failure`] if there is none, or it can't be read.
    pub fn read(tip: &Snapshot<'_>, id: &HandoffId) -> Result<Self, Failure> {
        let folder = tip.issue(id.issue())?;
        let Some(issue) = folder.current_issue()? else {
            let issue = id.issue().clone();
            return Err(Refusal::no_issue(&issue).into());
        };
        let record = folder
            .record(id.number())?
            .ok_or_else(|| Refusal::no_handoff(id))?;
        let contract = folder.contract(&record)?;
        Ok(Self {
            issue,
            record,
            contract,
        })
    }

    /// Its view.
    pub fn view(self, ledger: &Ledger<'_>, tip: &Snapshot<'_>) -> Result<ShowView, Failure> {
        let Self {
            issue,
            record,
            contract,
        } = self;
        let now = now()?;
        let rules = tip.rules(record.protocol.as_str())?;
        let folder = tip.issue(record.id.issue())?;
        let options = options(rules.protocol(), &folder, &record, now)?;
        let mut awaiting = issue.awaiting.iter().filter(|one| one.id == record.id);
        let awaited = awaiting.next().map(|one| &one.agent);
        let mut attention = of_record(tip, &record, awaited, rules.protocol(), now)?;
        attention
            .iter_mut()
            .try_for_each(|one| say_how_to_read(tip, one))?;
        let summary = IssueSummary::from(&issue);
        // Refused attempts of its agents since it was sent.
        let mut refusals = issue.refusals;
        let sent = record.sent_at();
        refusals.retain(|refused| {
            [&record.from, &record.to].contains(&&refused.by) && Some(refused.at) >= sent
        });
        let mut notes = issue.annotations;
        notes.retain(|note| note.id.as_ref().is_none_or(|id| *id == record.id));
        Ok(ShowView {
            handoff: Handoff::new(&record, now),
            other_protocol: tip.other_protocol(&record.protocol)?,
            policy: render::in_force(tip, record.protocol.as_str())?,
            unpublished: ledger.lacks_claim(&record)?,
            issue: summary,
            refusals,
            annotations: notes,
            attention,
            options,
            contract: ContractText {
                text: String::from_utf8_lossy(&contract).into_owned(),
            },
            record: Detail(record),
        })
    }
}

/// The command that shows a handoff's code, as an addition to what asks for its approval.
///
/// # Errors
/// A [`Failure`] if history can't be read.
pub fn to_read(
    repository: &Repository,
    issue: (&Issue, &Definition),
    code: &Code,
) -> Result<String, Failure> {
    Ok(match diff(repository, issue, code)? {
        Ok(diff) => format!("; read it first: `{diff}`"),
        Err(why) => format!("; {why}"),
    })
}

/// The command that shows a handoff's code, or why none does.
fn diff(
    repository: &Repository,
    issue: (&Issue, &Definition),
    code: &Code,
) -> Result<Result<String, String>, Failure> {
    let changes = changes_of(repository, issue, code)?;
    Ok(changes.map(|(from, to)| format!("git diff {} {}", from.short(), to.short())))
}

/// Adds how to read the code, if this asks for its approval.
///
/// # Errors
/// A [`Failure`] if something can't be read.
pub fn say_how_to_read(tip: &Snapshot<'_>, asked: &mut Attention) -> Result<(), Failure> {
    if asked.need == Need::Unapproved {
        let Stored { issue, record, .. } = Stored::read(tip, &asked.id)?;
        let rules = tip.rules(record.protocol.as_str())?;
        if let Some(code) = &record.code {
            let issue = (&issue, rules.protocol().definition());
            let diff = diff(tip.repository(), issue, code)?;
            asked.read = Some(diff.unwrap_or_else(|why| why));
        }
    }
    Ok(())
}

/// A handoff.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Show")]
pub struct ShowView {
    /// the handoff
    handoff: Handoff,
    /// its issue
    issue: IssueSummary,
    /// what else is stored of it
    record: Detail<Record>,
    /// its protocol, if it is not the ledger's default one
    #[serde(skip_serializing_if = "Option::is_none")]
    other_protocol: Option<OtherProtocol>,
    /// how its protocol treats statements that the repository contradicts, and what was set in it
    policy: String,
    /// the remote that does not have its claim yet, which was made here offline
    unpublished: Option<String>,
    /// contracts of its sender and receiver that were refused since it was sent, if the protocol
    /// wants them on record
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refusals: Vec<RefusedContract>,
    /// the notes about it and about the whole issue
    annotations: Vec<Annotation>,
    /// whom it needs, and why; null if nobody
    attention: Option<Attention>,
    /// what the protocol allows for a handoff that needs attention
    options: Vec<ActionOption>,
    /// its contract
    contract: ContractText,
}

impl ShowView {
    /// Everything but the contract.
    pub fn about(&self, look: &Look) -> String {
        let unpublished = self.unpublished.as_ref();
        let unpublished = unpublished.map(|remote| format!("  {}\n", claimed_offline(remote)));
        let paused = self
            .issue
            .paused
            .as_ref()
            .map(|paused| format!("  the issue is {paused}\n"));
        // The options say what else it may need.
        let hindrance = self
            .attention
            .as_ref()
            .filter(|one| one.need.is_hindrance());
        let hindrance = hindrance.map(|one| {
            let text = attention_text(std::slice::from_ref(one), (1, 1, ""), look);
            format!("\n{}\n", text.trim_end())
        });
        format!(
            "{}{}{}{}{}{}{}",
            render::record_text(&self.record.0, look),
            paused.unwrap_or_default(),
            render::other_protocol(self.other_protocol.as_ref()) + &self.policy_line(),
            unpublished.unwrap_or_default() + &render::refusals_text(&self.refusals, look),
            render::notes_text(&self.annotations),
            hindrance.unwrap_or_default(),
            options_text(&self.options),
        )
    }

    /// The policy, shown beside verdicts if the record has any.
    fn policy_line(&self) -> String {
        let has_verdicts = !self.record.0.evidence.is_empty();
        let policy = Some(&self.policy).filter(|_| has_verdicts);
        policy.map_or_else(String::new, |policy| render::policy_line(policy))
    }

    /// The contract's text, escaped.
    pub fn contract_text(&self) -> String {
        plain(&self.contract.text)
    }
}

impl ShowView {
    /// Completes the commands of its options.
    pub fn complete(&mut self, output: &Output) {
        for option in &mut self.options {
            option.command = output.command(&option.command);
        }
        output.complete(self.attention.as_mut_slice());
    }
}

impl Answer for ShowView {
    fn text(&self, look: &Look) -> String {
        let about = look.sentences(&self.about(look));
        let contract = fenced(
            &self.contract.text,
            self.record.0.contract.format.extension(),
        );
        format!("{about}\n{contract}")
    }
}
