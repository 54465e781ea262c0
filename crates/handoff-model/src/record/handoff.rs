//! `NNNN.json`: the record of a handoff.

use handoff_base::ids::{AgentName, HandoffId, WorkerId};
use handoff_base::{Code, Moment, digest};
use handoff_contract::Format;
use handoff_protocol::{Check, Event, OwnRetry, Protocol, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::record::stored_form::stored;
use crate::record::{
    Contradiction, Evidence, Failure, NotApplicable, Question, Transition, Usage, Verdict,
};

/// The task that a handoff is about.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskName {
    /// Its name.
    pub id: String,
    /// The task that it is part of.
    pub parent: Option<String>,
}

/// What a request requires of its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The kind of artifact.
    pub artifact_type: String,
    /// The name of its schema among the protocol's.
    pub schema: String,
    /// Its path, with `{timestamp}` in place of digits.
    pub destination: String,
}

/// Where an imported handoff comes from.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportSource {
    /// The file, as the import named it.
    pub file: String,
    /// The protocol's import profile by which its contract may lack members.
    pub profile: Option<AgentName>,
    /// The members that its contract lacks: what they would say is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// A file that a contract delivered, as it was when the contract was sent.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Its path in the repository.
    pub path: String,
    /// Its size in bytes; `None` if it was missing.
    pub bytes: Option<u64>,
    /// Its SHA-256, in hexadecimal; `None` if it was missing.
    pub sha256: Option<String>,
    /// Whether the code branch's commit has the same content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub committed: bool,
}

/// The contract file of a handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContractFile {
    /// Its name in the folder.
    pub file: String,
    /// Its format.
    pub format: Format,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

impl ContractFile {
    /// Describes the file of this name with these bytes.
    pub fn new(file: String, format: Format, bytes: &[u8]) -> Self {
        Self {
            file,
            format,
            bytes: bytes.len() as u64,
            sha256: digest(bytes),
        }
    }
}

/// A worker's hold on a handoff.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// The agent that holds it.
    pub holder: AgentName,
    /// The worker of that agent that holds it.
    pub worker: WorkerId,
    /// When it was claimed.
    pub since: Moment,
    /// The number of this claim of the handoff, from 1.
    pub token: u32,
    /// Its length in seconds when it started or was last extended.
    pub seconds: Option<u64>,
    /// When it runs out; never, if the holder waits for others.
    pub expires_at: Option<Moment>,
    /// The holder's latest progress report.
    pub progress: Option<Progress>,
}

/// A progress report of a holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// When it was made.
    pub at: Moment,
    /// The progress made.
    pub text: String,
}

/// `NNNN.json`: one handoff.
#[skip_serializing_none]
#[apply(
    Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")],
)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version of the stored form: 4.
    pub version: u32,
    /// Its id.
    pub id: HandoffId,
    /// The title of its issue when it was sent.
    pub title: String,
    /// The protocol that governs it.
    pub protocol: AgentName,
    /// Where it comes from, if it was imported from another system's files.
    pub imported: Option<ImportSource>,
    /// The contract's type.
    pub contract_type: String,
    /// The sender.
    pub from: AgentName,
    /// The receiver.
    pub to: AgentName,
    /// Its state.
    pub state: State,
    /// The protocol's priority word, the contract's own or the issue's.
    pub priority: Option<String>,
    /// The status of its contract, in the protocol's own words.
    pub status: Option<String>,
    /// One line about it.
    pub summary: String,
    /// The contract's own id.
    pub contract_id: Option<String>,
    /// The contract.
    pub contract: ContractFile,
    /// The receiver that its contract names, if another agent decides first.
    pub intended: Option<AgentName>,
    /// The agent that its sender recommends for what follows, if it is not the receiver that its
    /// contract names.
    pub recommended: Option<AgentName>,
    /// The handoff that its sender held.
    pub follows: Option<HandoffId>,
    /// The request that it answers.
    pub answers: Option<HandoffId>,
    /// The failed handoff whose contract it corrects, and whose attempts it goes on counting.
    pub replaces: Option<HandoffId>,
    /// The task that it is about.
    pub task: Option<TaskName>,
    /// Handoffs that must be completed before it can be claimed.
    pub waits_for: Vec<HandoffId>,
    /// The open handoffs of the parts of its task, and of the reports on them: until they end, it
    /// waits for them.
    pub parts: Vec<HandoffId>,
    /// What its answer must deliver.
    pub expects: Option<Expected>,
    /// The files that its contract delivered.
    pub artifacts: Vec<Artifact>,
    /// The statements of its contract and the results of their checks.
    pub evidence: Vec<Evidence>,
    /// What it contradicts, where the protocol's rules only warn.
    pub contradictions: Vec<Contradiction>,
    /// The places of its contract that do not apply, each with the reason.
    pub not_applicable: Vec<NotApplicable>,
    /// The number of retries it may have.
    pub max_retries: Option<u32>,
    /// The retry delay that its contract sets.
    pub retry: Option<OwnRetry>,
    /// The time that its contract gives the receiver, in seconds.
    pub timeout_seconds: Option<u64>,
    /// The time in which its contract wants it claimed, in seconds.
    pub acknowledge_seconds: Option<u64>,
    /// The inputs that its sender lacks.
    pub missing: Vec<Question>,
    /// The location of its sender's session.
    pub session: Option<String>,
    /// Role violations of its sender.
    pub violations: Vec<String>,
    /// The tip of the code branch when it was sent.
    pub code: Option<Code>,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The number of the first attempt since it was redriven.
    pub redriven_at: Option<u32>,
    /// When it can be claimed again, while it waits for another attempt.
    pub not_before: Option<Moment>,
    /// When it fails unless it was claimed before, while it waits for its receiver.
    pub acknowledge_by: Option<Moment>,
    /// The current lease, if an agent works on it.
    pub lease: Option<Lease>,
    /// The newest progress reports of its holders, the oldest first; they stay when the lease is
    /// over.
    pub progress: Vec<Progress>,
    /// What work on it took, as its workers reported it: an entry for each claim of it.
    pub usage: Vec<Usage>,
    /// Every transition, the oldest first.
    #[serde_with(skip_apply)]
    pub transitions: Vec<Transition>,
}

/// The longest text that a step may carry besides its contract, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;

/// The number of progress reports that a record keeps, and their total length in bytes.
const REPORTS: usize = 20;
const REPORTED: usize = MAX_TEXT;

impl Record {
    /// Adds a progress report; the oldest are dropped if there are too many.
    pub fn report(&mut self, progress: Progress) {
        self.progress.push(progress);
        let mut length = 0;
        let fits = |p: &&Progress| {
            length += p.text.len();
            length <= REPORTED
        };
        let newest = self.progress.iter().rev().take(REPORTS);
        let kept = newest.take_while(fits).count().max(1);
        self.progress.drain(..self.progress.len() - kept);
    }

    /// When it was sent.
    pub fn sent_at(&self) -> Option<Moment> {
        self.transitions.first().map(|t| t.at)
    }

    /// What its sender did against its role, in one sentence.
    pub fn violation(&self) -> Option<String> {
        let done = &self.violations;
        (!done.is_empty()).then(|| violation(&self.from, done))
    }

    /// Why the work is not good, whatever its sender says: a violation of the role, a file that it
    /// should deliver and does not, or a change where its role may not make one.
    pub fn fault(&self) -> Option<String> {
        let is_missing = |one: &&Evidence| {
            matches!(one.check, Check::Artifacts | Check::Paths)
                && one.result == Verdict::Contradicted
        };
        let missing = || self.evidence.iter().find(is_missing)?.reason.clone();
        self.violation().or_else(missing)
    }

    /// The agent that takes over next if the deciding agent agrees.
    pub fn successor(&self) -> Option<&AgentName> {
        self.recommended.as_ref().or(self.intended.as_ref())
    }

    /// What it is about among handoffs of other issues: the title, or the text about its
    /// task, because the parts of a task share the title.
    pub fn subject(&self) -> &str {
        self.task.as_ref().map_or(&self.title, |_| &self.summary)
    }

    /// Its status, if its sender skipped the work: then its summary begins with that.
    pub fn skipped(&self) -> Option<&str> {
        let word = self.status.as_deref()?;
        let rest = self.summary.strip_prefix(word)?;
        rest.starts_with(": ").then_some(word)
    }

    /// What its sender asks the receiver or lacks, while that can still be given.
    pub fn asked(&self) -> &[Question] {
        match self.state {
            State::Pending | State::InProgress => &self.missing,
            _ => &[],
        }
    }

    /// The takeover by which its worker holds it, if it was not claimed in the usual way.
    pub fn taken_over(&self) -> Option<&Transition> {
        let last = self.latest().filter(|_| self.state == State::InProgress)?;
        Some(last).filter(|last| last.event == Some(Event::TakeOver))
    }

    /// The agent under which it was cancelled: its receiver, if that was working on it and somebody
    /// else cancelled it.
    pub fn cancelled_under(&self) -> Option<&AgentName> {
        let cancel = self.latest().filter(|t| t.event == Some(Event::Cancel))?;
        let was_held = cancel.from == Some(State::InProgress);
        Some(&self.to).filter(|to| was_held && cancel.by != **to)
    }

    /// Whether it was rejected or cancelled.
    pub fn is_turned_down(&self) -> bool {
        [State::Rejected, State::Cancelled].contains(&self.state)
    }

    /// Whether it was turned down by its sender or by a person. Its receiver turns down the work, and
    /// not what its sender objects to.
    pub fn is_taken_back(&self, protocol: &Protocol) -> bool {
        let last = self.latest().map(|last| &last.by);
        let ends = |by: &AgentName| *by == self.from || protocol.is_person(by.as_str());
        self.is_turned_down() && last.is_some_and(ends)
    }

    /// Its newest transition. Running out of attempts counts as part of the failure before it.
    pub fn latest(&self) -> Option<&Transition> {
        let mut newest = self.transitions.iter().rev();
        newest.find(|t| t.event != Some(Event::Exhaust))
    }

    /// The same without the claims that were given back, as if nobody had made them.
    pub fn latest_tried(&self) -> Option<&Transition> {
        let mut newest = self.transitions.iter().rev();
        let mut latest = newest.find(|t| t.event != Some(Event::Exhaust))?;
        while latest.event == Some(Event::Release) {
            newest.find(|t| t.event == Some(Event::Claim))?;
            latest = newest.next()?;
        }
        Some(latest)
    }

    /// The questions of the blocked agent.
    pub fn questions(&self) -> &[Question] {
        let mut newest = self.transitions.iter().rev();
        let blocked = newest.find(|t| t.event == Some(Event::Block));
        blocked.map_or(&[], |t| &t.questions)
    }

    /// Why it is in its state: the failure, the reason that was given, or the first question. `None`
    /// if work goes on or is done.
    pub fn reason(&self) -> Option<&str> {
        self.latest().filter(|_| self.state.is_stopped())?.why()
    }

    /// Why it failed, if its last attempt failed.
    pub fn failure(&self) -> Option<&Failure> {
        let stands = matches!(self.state, State::Failed | State::Dead);
        self.latest().filter(|_| stands)?.failure.as_ref()
    }

    /// The number of retries since it was sent or redriven.
    pub fn retries(&self) -> u32 {
        // A tampered record may hold any numbers.
        self.attempt.saturating_sub(self.redriven_at.unwrap_or(1))
    }

    /// Whether this agent completed it.
    pub fn is_completed_by(&self, agent: &AgentName) -> bool {
        self.to == *agent && self.state == State::Completed
    }

    /// The number of claims and takeovers, which is the token of the newest one.
    pub fn claims(&self) -> u32 {
        let claimed = |t: &&Transition| t.event.is_some_and(Event::is_claim);
        let claims = self.transitions.iter().filter(claimed).count();
        u32::try_from(claims).unwrap_or(u32::MAX)
    }

    /// When its time runs out: the holder's lease, or the time to claim it.
    pub fn expires_at(&self) -> Option<Moment> {
        match self.state {
            State::Pending => self.acknowledge_by,
            State::InProgress => self.lease.as_ref()?.expires_at,
            _ => None,
        }
    }

    /// When it had to be claimed, if it failed because nobody did.
    pub fn unacknowledged(&self) -> Option<Moment> {
        self.failure()?;
        let waited = |t: &&Transition| t.from == Some(State::Pending);
        self.latest().filter(waited)?.ran_out_at
    }

    /// The start and the end of its pause before another attempt.
    pub fn pause(&self) -> Option<(Moment, Moment)> {
        Some((self.latest()?.at, self.not_before?))
    }

    /// What it waits for in vain: a handoff that ended without being completed, by its state. It
    /// can't start until its task is planned again.
    pub fn waits_in_vain(
        &self,
        state: impl Fn(&HandoffId) -> Option<State>,
    ) -> Option<(&HandoffId, State)> {
        let ended = [State::Rejected, State::Cancelled, State::Dead];
        let mut before = self
            .waits_for
            .iter()
            .filter(|_| self.state == State::Pending);
        before.find_map(|id| Some((id, state(id).filter(|state| ended.contains(state))?)))
    }

    /// When it can be claimed, if that is later.
    pub fn waits_until(&self, at: Moment) -> Option<Moment> {
        let pause = self.pause().filter(|pause| lasts(*pause, at))?;
        Some(pause.1)
    }

    /// How often it was given new attempts once it was dead.
    pub(crate) fn redriven(&self) -> u32 {
        let events = self.transitions.iter().map(|change| change.event);
        let redriven = events.filter(|event| *event == Some(Event::Redrive));
        u32::try_from(redriven.count()).unwrap_or(u32::MAX)
    }

    /// Whether the holder's lease or the time to claim it ran out, even if nobody has recorded that
    /// yet.
    pub fn is_expired(&self, at: Moment) -> bool {
        self.expires_at().is_some_and(|end| end <= at)
    }

    /// Why it may not be retried any more if it failed with this code: its agent says so, or the
    /// protocol does.
    pub(crate) fn why_spent(&self, protocol: &Protocol, code: Option<&str>) -> Option<String> {
        if self.failure().is_some_and(|failure| failure.no_retry) {
            return Some(format!("{} says that there is no further attempt", self.to));
        }
        protocol.why_spent(code, self.retries(), self.max_retries)
    }
}

/// A violation of an agent's role, in one sentence.
pub(crate) fn violation(agent: &AgentName, done: &[String]) -> String {
    format!("{agent} attempted {}", done.join(", "))
}

/// Whether a pause is not over yet. A clock that was set back does not make it longer.
pub fn lasts((since, end): (Moment, Moment), at: Moment) -> bool {
    end > at && since - at < end - since
}

stored!(Record);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::{Progress, REPORTED, REPORTS, Record};
    use handoff_base::Moment;

    fn record() -> Record {
        let contract = json!({"file": "f", "format": "json", "bytes": 1, "sha256": ""});
        serde_json::from_value(json!({
            "version": 4, "id": "7.1", "title": "", "protocol": "p", "contract_type": "t",
            "from": "a", "to": "b", "state": "pending", "summary": "", "contract": contract,
            "attempt": 1, "transitions": [],
        }))
        .unwrap()
    }

    #[test]
    fn the_newest_reports_are_kept_within_bounds() {
        let at = Moment::default();
        let mut record = record();
        let mut say = |text: String| {
            record.report(Progress { at, text });
            record.progress.clone()
        };
        for i in 0..=REPORTS {
            say(i.to_string());
        }
        let kept = say("last".to_owned());
        assert_eq!(kept.len(), REPORTS);
        assert_eq!((&*kept[0].text, &*kept[REPORTS - 1].text), ("2", "last"));
        let kept = say("x".repeat(REPORTED));
        assert_eq!(kept.len(), 1);
        assert_eq!(say("y".to_owned()).len(), 1);
    }
}
