//! The result of a write.

use std::ops::Deref;

use handoff::base::finding::Finding;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::continued;
use handoff::base::{ObjectId, short_id};
use handoff::ledger::Done;
use handoff::model::view::commands::{held_back, next_agent, next_steps};
use handoff::model::{
    Artifact, Change, Evidence, FailureContext, Handoff, IssueStatus, IssueSummary, NotApplicable,
    Receipt, ReviewFinding, Verdict, issue_folder,
};
use handoff::protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::{absent, claims, headline, kept};
use crate::contracts::onward::NextContract;
use crate::environment::now;
use crate::failure::Failure;
use crate::output::{Answer, BEGIN, Output};
use crate::view::Look;

/// What was written.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Written")]
pub struct WrittenView<'a> {
    /// the contract's path in the ledger's tree
    path: String,
    /// the commit that was written; null if nothing was
    commit: Option<ObjectId>,
    /// the ledger had this step already, and nothing was written
    repeated: bool,
    /// each handoff that the commit changed
    transitions: &'a [Change],
    /// the commands that can continue the work from here; replace the words in capitals
    next: Vec<String>,
    /// findings that did not prevent the step
    warnings: &'a [Finding],
    #[serde(skip)]
    pushed: Option<&'a str>,
    /// Whose turn it is.
    #[serde(skip)]
    turn: &'a AgentName,
    /// Whether the next step is to resume the issue.
    #[serde(skip)]
    is_held_back: bool,
    /// Whether another agent than the one that acted gives the next command.
    #[serde(skip)]
    is_named: bool,
    /// The branch that the completed issue's code is merged into already.
    #[serde(skip)]
    merged_into: Option<String>,
    #[serde(skip)]
    receipt: &'a Receipt,
    /// The text instead, for a write about the whole issue.
    #[serde(skip)]
    instead: Option<String>,
}

/// The effect of a write on one handoff.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Receipt")]
pub struct ReceiptView<'a> {
    /// the handoff
    handoff: Handoff,
    /// its issue
    issue: IssueSummary,
    #[serde(flatten)]
    written: WrittenView<'a>,
    /// its contract's digest, of the bytes as sent
    contract_sha256: &'a str,
    /// where the kept files are, if the newest transition is a failure or gave the work back
    context: Option<&'a FailureContext>,
    /// the files that the contract delivered
    artifacts: &'a [Artifact],
    /// the results of checking the contract's statements
    evidence: &'a [Evidence],
    /// the places of the contract that do not apply, each with the reason
    not_applicable: &'a [NotApplicable],
    /// its sender's actions against its role
    violations: &'a [String],
}

impl<'a> ReceiptView<'a> {
    /// The receipt of a write.
    ///
    /// # Errors
    /// A [`Failure`] of usage if the environment sets an invalid date.
    pub fn new(done: &'a Done, output: &Output) -> Result<Self, Failure> {
        let record = &done.receipt.record;
        Ok(Self {
            handoff: Handoff::new(record, now()?),
            issue: IssueSummary::from(&done.receipt.issue),
            written: WrittenView::new(done, output),
            contract_sha256: &record.contract.sha256,
            context: record.latest().and_then(|t| t.context.as_ref()),
            artifacts: &record.artifacts,
            evidence: &record.evidence,
            not_applicable: &record.not_applicable,
            violations: &record.violations,
        })
    }

    /// Sets a text in place of the handoff's.
    pub fn with_text(mut self, text: String) -> Self {
        self.written.instead = Some(text);
        self
    }

    /// Sets the next command, and the agent that gives it.
    pub fn with_next(mut self, next: &str, turn: &'a AgentName, output: &Output) -> Self {
        self.written.turn = turn;
        self.written.next = vec![output.command(next)];
        self
    }

    /// Names the agent that gives the next command: another than the one that acted.
    pub fn for_another(mut self) -> Self {
        self.written.is_named = true;
        self
    }

    /// Sets the branch that the completed issue's code is merged into already.
    pub fn merged_into(&mut self, base: Option<String>) {
        self.written.merged_into = base;
    }

    /// Sets the command that resumes what is held back.
    pub fn held_back(mut self, next: &str, output: &Output) -> Self {
        self.written.is_held_back = true;
        let turn = self.written.turn;
        self.with_next(next, turn, output)
    }
}

impl<'a> Deref for ReceiptView<'a> {
    type Target = WrittenView<'a>;

    fn deref(&self) -> &WrittenView<'a> {
        &self.written
    }
}

impl<'a> WrittenView<'a> {
    /// The receipt of a successful request.
    pub fn new(done: &'a Done, output: &Output) -> Self {
        let receipt = &done.receipt;
        let record = &receipt.record;
        let carried = output.carried().map(|carried| carried.after(record));
        let mut carried = carried.unwrap_or_default();
        // What waits is for whichever worker takes it next.
        carried.is_worker_named &= record.state != State::Pending;
        let next = next_steps(&done.receipt);
        let next = next.iter().map(|next| carried.command(next)).collect();
        let folder = issue_folder(&receipt.issue.issue);
        Self {
            path: format!("{folder}/{}", record.contract.file),
            commit: done.commit,
            repeated: receipt.repeated,
            transitions: &receipt.changes,
            next,
            warnings: &done.warnings,
            pushed: done.pushed.as_deref(),
            turn: next_agent(&done.receipt),
            is_named: false,
            is_held_back: held_back(&done.receipt).is_some(),
            merged_into: None,
            receipt,
            instead: None,
        }
    }

    /// Sets the next commands.
    pub fn with_commands(mut self, commands: &[String], output: &Output) -> Self {
        let commands = commands.iter().map(|command| output.command(command));
        self.next = commands.collect();
        self
    }

    /// Prints the warnings: findings that did not prevent the write.
    pub fn say_warnings(&self, output: &mut Output) {
        for finding in self.warnings {
            output.say(crate::output::render(finding).trim_end());
        }
    }

    /// Prints the warnings and the next commands.
    pub fn say_next(&self, output: &mut Output) {
        self.say_next_contracts(&[], output);
    }

    /// Prints the warnings, then these contracts as next steps with their titles, and the other
    /// commands.
    pub fn say_next_contracts(&self, contracts: &[NextContract], output: &mut Output) {
        self.say_warnings(output);
        let record = &self.receipt.record;
        let is_own = record.latest().is_some_and(|last| last.by == *self.turn);
        // The caller's part is done if another agent makes the next step.
        let first = match record.state {
            _ if self.is_held_back => "to resume it:".to_owned(),
            state if state == State::Pending || self.is_named || !is_own => {
                format!("next, for {}:", self.turn)
            }
            // The agent chooses between outcomes.
            _ if contracts.iter().filter(|c| c.send.is_some()).count() > 1 => {
                "choose one:".to_owned()
            }
            _ => "next:".to_owned(),
        };
        let is_other = |next: &&String| contracts.iter().all(|c| c.command != **next);
        let others = self.next.iter().filter(is_other).cloned();
        // `send` asks a person; an agent gets all fields in one block.
        let is_person = output.is_on_terminal();
        // Other contracts that only report a failure are left to `block` and `fail`.
        let offered = contracts.iter().enumerate();
        let offered = offered.filter(|(place, next)| *place == 0 || !next.only_reports);
        let sends = offered.map(|(_, next)| {
            let command = match next.send {
                Some(_) if is_person => &next.asks,
                Some(_) => &next.sets,
                None => &next.command,
            };
            let fields: &[String] = if is_person { &[] } else { &next.fields };
            let title = continued(&next.title);
            (format!("{command}   # {title}"), fields)
        });
        let others = others.map(|other| (other, &[][..]));
        let mut rest: Vec<&str> = contracts
            .iter()
            .skip(2)
            .filter(|c| c.usual)
            .map(|c| c.to.as_str())
            .collect();
        rest.dedup();
        let rest = match &rest[..] {
            [] => String::new(),
            rest => format!("; else to {} (`git handoff {BEGIN}`)", rest.join(", ")),
        };
        for (i, (step, fields)) in sends.chain(others).take(2).enumerate() {
            let (word, rest) = match i {
                0 => (&*first, ""),
                _ => ("  or:", &*rest),
            };
            output.say(&format!("{word} {step}{rest}"));
            for field in fields {
                output.say(&format!("    {}", continued(field)));
            }
        }
    }
}

impl Answer for ReceiptView<'_> {
    fn text(&self, _: &Look) -> String {
        self.outcome()
    }
}

/// What follows the last approval of an issue.
pub fn merge_is_left(key: &IssueKey) -> String {
    format!("the merge is left, once `git handoff gate {key}` exits 0")
}

/// The findings that an approval drops, as they were skipped.
fn dropped(receipt: &Receipt) -> String {
    let Receipt { record, issue, .. } = receipt;
    let is_dropped = |one: &&ReviewFinding| {
        one.skipped && one.resolved_by.as_ref() == Some(&record.id) && record.transitions.len() == 1
    };
    let dropped = issue.findings.iter().filter(is_dropped);
    dropped
        .map(|one| format!("  {}\n", continued(&one.line())))
        .collect()
}

/// The worker that lost a handoff by a takeover, and how it learns of it.
pub fn taken_from(receipt: &Receipt) -> Option<String> {
    let record = &receipt.record;
    let is_own = |change: &Change| change.id == record.id;
    let [.., before, last] = &record.transitions[..] else {
        return None;
    };
    if receipt.repeated || !receipt.changes.iter().any(is_own) {
        return None;
    }
    let is_taken = last.from == Some(State::InProgress) && last.by != before.by;
    let worker = before.worker.as_ref().filter(|_| is_taken)?;
    let by = &before.by;
    Some(format!(
        "{by} (worker {worker}), which held it, is told at its next command"
    ))
}

impl WrittenView<'_> {
    /// The result as text.
    pub fn outcome(&self) -> String {
        if let Some(text) = &self.instead {
            return text.clone();
        }
        let Receipt { record, issue, .. } = self.receipt;
        let mut text = format!("{}\n", headline(record));
        for change in self.transitions.iter().filter(|c| c.id != record.id) {
            text += &format!("  {change}\n");
        }
        if !record.violations.is_empty() {
            let done = continued(&record.violations.join(", "));
            text += &format!(
                "  recorded as a violation: the role of {} does not allow {done}; the work goes to {}\n",
                record.from, record.to
            );
        }
        if let Some(context) = record.latest().and_then(|t| t.context.as_ref()) {
            text += &format!("  {}\n", continued(&kept(record, context)));
        }
        for missing in record.artifacts.iter().filter(|a| a.sha256.is_none()) {
            let path = continued(&missing.path);
            text += &format!("  delivered {path}: no such file here, so it was not checked\n");
        }
        if let Some(branch) = self.pushed {
            text += &format!("  pushed {} to origin\n", continued(branch));
        }
        // Statements name their own commits.
        let says_nothing_else = record.evidence.is_empty() && record.transitions.len() == 1;
        if let Some(code) = record.code.as_ref().filter(|_| says_nothing_else) {
            let (branch, commit) = (continued(&code.branch), short_id(&code.commit));
            text += &format!("  about {branch} at {}\n", continued(&commit));
        }
        if !record.evidence.is_empty() && record.transitions.len() == 1 {
            text += &format!("  statements: {}\n", continued(&claims(&record.evidence)));
        }
        if !record.not_applicable.is_empty() && record.transitions.len() == 1 {
            text += &absent(&record.not_applicable);
        }
        if let Some(lease) = &record.lease {
            let end = lease.expires_at.map(|end| format!("held until {}, ", end));
            text += &format!(
                "  {}token {}, worker {}\n",
                end.unwrap_or_default(),
                lease.token,
                lease.worker
            );
        }
        if let Some(at) = record.not_before {
            text += &format!("  not before {}\n", at);
        }
        text += &dropped(self.receipt);
        let is_end = |change: &Change| change.id == record.id && change.to == State::Completed;
        if issue.status == IssueStatus::Completed && self.transitions.iter().any(is_end) {
            let key = &issue.issue;
            let left = match &self.merged_into {
                Some(base) => format!("no work is left in it; its code is on {base} already"),
                None if self.receipt.approves_merge && record.code.is_some() => merge_is_left(key),
                None => "no work is left in it".to_owned(),
            };
            text += &format!("  issue {key} is complete: {left}\n");
        }
        if let Some(paused) = &issue.paused {
            text += &format!("  issue {} is {paused}\n", issue.issue);
        }
        if let Some(told) = taken_from(self.receipt) {
            text += &format!("  {told}\n");
        }
        match self.commit {
            Some(commit) => text += &format!("  commit {}\n", commit.short()),
            None => match &record.lease {
                // A repeated claim by the same worker, or an extension without effect.
                Some(lease) if self.repeated => {
                    let since = lease.since;
                    text += &format!("  you already hold it since {since}; nothing was written\n");
                }
                _ => {
                    text += "  already in the ledger, in the state above; nothing was written\n";
                    text += &self.as_it_was();
                }
            },
        }
        text
    }

    /// The remark on a repeated contract that was contradicted when it was first sent: nothing was
    /// checked again, and how to do so.
    fn as_it_was(&self) -> String {
        let record = &self.receipt.record;
        let (id, from) = (&record.id, &record.from);
        let is_contradicted = |one: &Evidence| one.result == Verdict::Contradicted;
        if record.transitions.len() > 1 || !record.evidence.iter().any(is_contradicted) {
            return String::new();
        }
        format!(
            "  it was compared with the repository as it was then; as it is now: \
             git handoff show {id} --contract | git handoff check -\n  \
             to record that: git handoff cancel {id} --as {from} --reason WHY, then send it again\n"
        )
    }
}
