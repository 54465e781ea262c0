//! Imports one contract of a foreign folder: the claims that its sender must make first, and the
//! send.

use std::collections::HashMap;
use std::time::Instant;

use chrono::{DateTime, FixedOffset};
use handoff::base::finding::FindingCode;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::{Moment, ObjectId};
use handoff::contract::Input;
use handoff::git::blob_id;
use handoff::ledger::{
    ContractMatch, Done, Ledger, LedgerError, Offer, Rules, Session, SetTime, Snapshot, Work,
    WriteError, accepted,
};
use handoff::model::{Contract, EventArgs, ImportSource, Record, SendOptions, Update, View};
use handoff::protocol::{Event, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::fault::Fault;
use super::folders::shows;
use super::pending::{is_elsewhere, to_claim};
use super::shared_folder::SharedFolder;
use super::{ExchangeError, Source};

/// What to import, and how.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// The format to read; detected by default.
    pub source: Option<Source>,
    /// The issue of contracts that name none.
    pub issue: Option<IssueKey>,
    /// The sender of contracts that name none.
    pub agent: Option<AgentName>,
    /// The only import profile to apply; by default each of a protocol's, in turn.
    pub profile: Option<AgentName>,
}

/// An item that the ledger has, either new or from before.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ImportedItem")]
pub struct Item {
    /// Its path in the folder, with the line (`steps.jsonl:12`) or location
    /// (`handoff_log.json#/handoff_log/3`) if the file has several items.
    pub file: String,
    /// The id of the handoff that it is about; null if it is about none.
    pub id: Option<HandoffId>,
}

/// An item that was not imported.
#[derive(Debug)]
pub struct Refused {
    /// Its file, and its line if the file has several items.
    pub file: String,
    /// Why.
    pub fault: Fault,
}

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// The format that was read.
    pub source: Source,
    /// The items that were written.
    pub imported: Vec<Item>,
    /// The items that the ledger already had.
    pub skipped: Vec<Item>,
    /// The items that were refused.
    pub refused: Vec<Refused>,
    /// The files of the folder that were not read.
    pub left_out: Vec<String>,
    /// The number of commits made.
    pub commits: usize,
}

/// The lengths of a report's lists, to roll it back.
pub(super) struct Mark([usize; 4]);

impl Imported {
    pub(super) fn mark(&self) -> Mark {
        let lists = (self.imported.len(), self.skipped.len(), self.refused.len());
        Mark([lists.0, lists.1, lists.2, self.commits])
    }

    pub(super) fn take_back(&mut self, mark: &Mark) {
        let [imported, skipped, refused, commits] = mark.0;
        self.imported.truncate(imported);
        self.skipped.truncate(skipped);
        self.refused.truncate(refused);
        self.commits = commits;
    }
}

/// The state of an import.
pub(super) struct Importer<'a, 'r> {
    pub(super) ledger: &'a mut Ledger<'r>,
    pub(super) session: Session,
    pub(super) issue: Option<IssueKey>,
    pub(super) agent: Option<AgentName>,
    profile: Option<AgentName>,
    at: SetTime,
    /// For each contract seen: the handoffs that had it before the import, and how many of these
    /// are accounted for.
    met: HashMap<(IssueKey, ObjectId), (Vec<u32>, usize)>,
    /// The index of the exchanged folder, if there is one.
    pub(super) known: Option<SharedFolder>,
    pub(super) report: Imported,
}

#[derive(Default)]
pub(super) struct Delivery {
    /// Its file, as reported.
    pub(super) file: String,
    pub(super) bytes: Vec<u8>,
    /// When it was written; `None` stands for now.
    pub(super) at: Option<DateTime<FixedOffset>>,
    /// When the work that it ends was claimed, or the handoff itself.
    pub(super) claimed_at: Option<DateTime<FixedOffset>>,
    /// Whether its receiver works on it in another system.
    pub(super) claimed: bool,
    /// The request whose state the file shows.
    pub(super) about: Option<RequestKey>,
    /// The whole file, of which the contract may be a part.
    pub(super) file_bytes: Vec<u8>,
}

impl Delivery {
    pub(super) fn new(file: &str, bytes: Vec<u8>) -> Self {
        let file = file.to_owned();
        Self {
            file,
            file_bytes: bytes.clone(),
            bytes,
            ..Self::default()
        }
    }
}

/// Why work that is in progress in another system is blocked here: nobody holds it in this ledger.
const ELSEWHERE: &str = "imported while it was in progress elsewhere; answer it to have it \
                         claimed here, or import its outcome";

/// The answer that unblocks it, given with the outcome.
const OUTCOME: &str = "its outcome is imported";

/// A request's movement in another system, by its file's current folder.
pub(super) struct Movement {
    /// The file, and when the request was claimed.
    pub(super) delivery: Delivery,
    pub(super) key: RequestKey,
    /// The index of its folder, 0 or 1.
    pub(super) state: usize,
    /// Its current contract, if it was corrected.
    pub(super) corrected: Option<Vec<u8>>,
}

/// A protocol and the id of a contract under it.
pub(super) type RequestKey = (String, String);

/// The index of the folder for work in progress.
pub(super) const IN_PROGRESS: usize = 1;

/// The reason for retrying a failed request.
const AGAIN: &str = "retried elsewhere";

/// The reason for releasing work that was in progress elsewhere.
const GIVEN_BACK: &str = "given back elsewhere";

/// The reason for a claim before the retry delay is over.
const EARLY: &str = "taken up elsewhere before the delay was over";

/// The reason for a claim at this time, if it is before the delay is over.
fn too_early(record: &Record, at: DateTime<FixedOffset>) -> Option<String> {
    let waits = record.waits_until(Moment::from(at));
    waits.map(|_| EARLY.to_owned())
}

/// The newest request with this id in the ledger.
pub(super) fn request_in(
    tip: &Snapshot<'_>,
    (protocol, id): &RequestKey,
) -> Result<Option<Record>, LedgerError> {
    let Ok(key) = id.parse::<IssueKey>() else {
        return Ok(None);
    };
    let folder = tip.issue(&key)?;
    let Some(issue) = folder
        .issue()?
        .filter(|issue| issue.protocol.as_str() == protocol)
    else {
        return Ok(None);
    };
    let rules = tip.rules(protocol)?;
    let ids = issue.contract_ids.iter().filter(|(kind, _)| {
        let kind = rules.protocol().contract_type(kind);
        kind.is_some_and(|kind| kind.answers.is_empty())
    });
    let number = ids.filter_map(|(_, ids)| ids.get(id)).max();
    number.map_or(Ok(None), |number| folder.record(*number))
}

impl<'a, 'r> Importer<'a, 'r> {
    pub(super) fn new(
        ledger: &'a mut Ledger<'r>,
        session: Session,
        wanted: Import,
        source: Source,
    ) -> Self {
        // Steps made elsewhere do not belong to the importing agent's trace.
        let (session, at) = Session {
            traceparent: None,
            usage: Vec::new(),
            delivery: None,
            ..session
        }
        .timed();
        session.tally.begin(Work::Importing, None);
        Self {
            ledger,
            session,
            issue: wanted.issue,
            agent: wanted.agent,
            profile: wanted.profile,
            at,
            met: HashMap::new(),
            known: None,
            report: Imported {
                source,
                imported: Vec::new(),
                skipped: Vec::new(),
                refused: Vec::new(),
                left_out: Vec::new(),
                commits: 0,
            },
        }
    }

    /// Sets the time of the following steps.
    pub(super) fn set_time(&self, at: DateTime<FixedOffset>) {
        self.at.set(Some(at));
    }

    pub(super) fn refuse(&mut self, file: &str, fault: Fault) {
        let file = file.to_owned();
        self.report.refused.push(Refused { file, fault });
    }

    pub(super) fn skip(&mut self, file: &str, handoff: Option<HandoffId>) {
        let file = file.to_owned();
        self.report.skipped.push(Item { file, id: handoff });
    }

    /// Records that the ledger accepted an item.
    pub(super) fn took(&mut self, file: &str, done: &Done, handoff: HandoffId) {
        match done.commit {
            Some(_) => {
                self.report.commits += 1;
                self.imported(file, Some(handoff));
            }
            None => self.skip(file, Some(handoff)),
        }
    }

    pub(super) fn imported(&mut self, file: &str, handoff: Option<HandoffId>) {
        let file = file.to_owned();
        self.report.imported.push(Item { file, id: handoff });
    }

    /// Reports a ledger error about this item.
    ///
    /// # Errors
    /// [`ExchangeError`] if it would affect every other item too.
    pub(super) fn failed(&mut self, file: &str, error: LedgerError) -> Result<(), ExchangeError> {
        let fault = Fault::of(error)?;
        self.refuse(file, fault);
        Ok(())
    }

    /// The protocol and the issue of a contract. `--issue` applies to contracts that name none.
    pub(super) fn match_contract(
        &self,
        tip: &Snapshot<'r>,
        input: &Input<'_>,
        imported: &ImportSource,
    ) -> Result<ContractMatch<'r>, LedgerError> {
        let offer = Offer {
            input,
            agent: None,
            issue: self.issue.as_ref(),
            protocol: None,
            options: &SendOptions::imported(imported),
            reports: None,
        };
        let found = tip.match_contract(&offer)?;
        if self.issue.is_some() {
            if found.review.contract.is_some() {
                return Ok(found);
            }
            let issue = None;
            let own = tip.match_contract(&Offer { issue, ..offer })?;
            let better = own.review.contract.is_some();
            return Ok(if better { own } else { found });
        }
        let named = match &found.review.contract {
            Some(contract) => names_issue(&found.rules, contract),
            None => !found.review.is_complete(),
        };
        let in_state = |state| found.issues_of_sender(tip, &offer, state);
        if named || !in_state(State::InProgress)?.is_empty() {
            return Ok(found);
        }
        // The import will claim the work that waits for the sender, so the contract belongs there.
        let waiting = in_state(State::Pending)?;
        let own = &found.review.new_issue;
        let key = match &waiting[..] {
            [only] => Some(only),
            several => several.iter().find(|key| Some(*key) == own.as_ref()),
        };
        match key {
            Some(key) => {
                let issue = Some(key);
                tip.match_contract(&Offer { issue, ..offer })
            }
            None => Ok(found),
        }
    }

    /// Matches a file's contract as it is, else by the first import profile that accepts it. If none
    /// does, the match has the findings of the most lenient profile.
    pub(super) fn match_file(
        &self,
        tip: &Snapshot<'r>,
        input: &Input<'_>,
        file: &str,
    ) -> Result<(ContractMatch<'r>, ImportSource), LedgerError> {
        let mut imported = ImportSource {
            file: file.to_owned(),
            profile: None,
            unknown: Vec::new(),
        };
        let mut best = self.match_contract(tip, input, &imported)?;
        let profiles: Vec<AgentName> = {
            let known = best.rules.protocol().definition().imports.keys();
            let wanted = |name: &&AgentName| self.profile.as_ref().is_none_or(|only| only == *name);
            known.filter(wanted).cloned().collect()
        };
        for name in profiles {
            if best.review.contract.is_some() {
                break;
            }
            let lenient = ImportSource {
                profile: Some(name),
                ..imported.clone()
            };
            let found = self.match_contract(tip, input, &lenient)?;
            if found.review.contract.is_some()
                || found.review.findings.len() < best.review.findings.len()
            {
                (best, imported) = (found, lenient);
            }
        }
        Ok((best, imported))
    }

    /// Imports one item: its contracts one after the other, each after its sender has claimed what
    /// it continues. Either all of it is imported or nothing. Returns whether the ledger has it now.
    pub(super) fn deliver(&mut self, item: &[Delivery]) -> Result<bool, ExchangeError> {
        let Some(last) = item.last() else {
            return Ok(false);
        };
        self.session.tally.add(item.len());
        let mut results = Vec::new();
        let made = self.together(&last.file, |importer| {
            results.clear();
            for delivery in item {
                results.push(importer.try_deliver(delivery)?);
            }
            Ok(())
        })?;
        if made.is_none() {
            return Ok(false);
        }
        for (delivery, (id, is_new)) in item.iter().zip(results) {
            if is_new {
                self.imported(&delivery.file, Some(id));
            } else {
                self.skip(&delivery.file, Some(id));
            }
        }
        Ok(true)
    }

    /// Makes steps that are published together; if one is refused, reports it for this file, makes
    /// none, and returns `None`.
    fn together<T>(
        &mut self,
        file: &str,
        mut make: impl FnMut(&mut Self) -> Result<T, LedgerError>,
    ) -> Result<Option<T>, ExchangeError> {
        let start = Instant::now();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let together = self.ledger.begin_together()?;
            let commits = self.report.commits;
            let made = match make(self) {
                Ok(made) => made,
                Err(error) => {
                    self.ledger.take_back(&together);
                    self.report.commits = commits;
                    return self.failed(file, error).map(|()| None);
                }
            };
            if self.ledger.publish_together(&self.session, &together)? {
                return Ok(Some(made));
            }
            self.report.commits = commits;
            if start.elapsed() >= self.session.patience {
                return Err(LedgerError::from(WriteError::Contended(attempts)).into());
            }
            self.session.back_off(attempts);
        }
    }

    /// Imports a file that moved: its request was claimed, released or retried. Returns whether the
    /// ledger has it now.
    pub(super) fn follow(&mut self, moved: &Movement) -> Result<bool, ExchangeError> {
        self.session.tally.add(1);
        let file = moved.delivery.file.as_str();
        let made = self.together(file, |importer| {
            let before = importer.report.commits;
            let id = importer.make_moved(moved)?;
            Ok((id, importer.report.commits > before))
        })?;
        match made {
            Some((Ok(id), true)) => self.imported(file, Some(id)),
            Some((Ok(id), false)) => self.skip(file, Some(id)),
            Some((Err(fault), _)) => {
                self.refuse(file, fault);
                return Ok(false);
            }
            None => return Ok(false),
        }
        Ok(true)
    }

    fn make_moved(&mut self, moved: &Movement) -> Result<Result<HandoffId, Fault>, LedgerError> {
        let tip = self.ledger.tip()?;
        let Some(record) = request_in(&tip, &moved.key)? else {
            let text = "the ledger does not have its request any more";
            return Ok(Err(Fault::unreadable(FindingCode::ImportRequest, text)));
        };
        let is_begun = moved.state == IN_PROGRESS;
        let record = if is_begun {
            self.lapsed(record, moved.delivery.claimed_at)?
        } else {
            record
        };
        let id = record.id.clone();
        match record.state {
            State::Pending if !is_begun => {}
            State::InProgress | State::Blocked if is_begun => {}
            State::Pending => {
                let claimed = record.transitions.iter().rev();
                let mut claimed = claimed.filter(|t| t.event.is_some_and(Event::is_claim));
                // A claim no newer than the recorded one is a stale copy.
                let is_old = claimed.next().is_some_and(|last| {
                    let at = moved.delivery.claimed_at;
                    at.is_none_or(|at| at.timestamp() <= last.at.fixed_offset().timestamp())
                });
                if self.known.is_some() || !is_old {
                    self.hold_back(&record, &moved.delivery)?;
                }
            }
            State::Blocked if is_elsewhere(&record) => {
                self.time(id.issue(), None)?;
                let args = EventArgs::because(GIVEN_BACK);
                self.change(&record.from, &id, Event::Answer, args)?;
            }
            State::Failed if self.known.is_some() => {
                let id = self.retry(&tip, &record, moved)?;
                let again = self.ledger.tip()?.issue(id.issue())?.record(id.number())?;
                if let Some(again) = again.filter(|_| is_begun) {
                    self.hold_back(&again, &moved.delivery)?;
                }
                return Ok(Ok(id));
            }
            state => {
                let text = format!("the ledger has {id} as {}", state.words());
                return Ok(Err(Fault::unreadable(FindingCode::ImportState, text)));
            }
        }
        Ok(Ok(id))
    }

    /// Retries a failed request: with its own contract, or with the corrected one in the file.
    fn retry(
        &mut self,
        tip: &Snapshot<'r>,
        record: &Record,
        moved: &Movement,
    ) -> Result<HandoffId, LedgerError> {
        let id = record.id.clone();
        self.time(id.issue(), None)?;
        let Some(bytes) = &moved.corrected else {
            self.change(&record.from, &id, Event::Retry, EventArgs::because(AGAIN))?;
            return Ok(id);
        };
        let input = &Input::read(bytes);
        let (ContractMatch { rules, review }, imported) =
            self.match_file(tip, input, &moved.delivery.file)?;
        let contract = accepted(review)?;
        let offer = Offer {
            input,
            agent: contract.from.as_ref().or(self.agent.as_ref()),
            issue: Some(id.issue()),
            protocol: Some(&rules.protocol().definition().name),
            options: &SendOptions {
                replaces: Some(id.number()),
                ..SendOptions::imported(&imported)
            },
            reports: None,
        };
        let done = self.ledger.send_foreign(&self.session, &offer)?;
        self.report.commits += usize::from(done.commit.is_some());
        Ok(done.receipt.record.id)
    }

    /// A request; if it was claimed elsewhere after its deadline, records the expiry first.
    fn lapsed(
        &mut self,
        record: Record,
        claimed_at: Option<DateTime<FixedOffset>>,
    ) -> Result<Record, LedgerError> {
        if self.known.is_none() || record.state != State::Pending {
            return Ok(record);
        }
        let id = record.id.clone();
        let since = self.time(id.issue(), claimed_at)?;
        if record.is_expired(Moment::from(since)) {
            self.time(id.issue(), None)?;
            let expired = self.ledger.record_expiry(&self.session, &id)?;
            self.report.commits += usize::from(expired.is_some());
        }
        let again = self.ledger.tip()?.issue(id.issue())?.record(id.number())?;
        Ok(again.unwrap_or(record))
    }

    /// Retries a failed request whose outcome belongs to another attempt.
    fn retry_answered(
        &mut self,
        tip: &Snapshot<'r>,
        (rules, contract): (&Rules<'r>, &Contract),
        delivery: &Delivery,
    ) -> Result<(), LedgerError> {
        let kind = rules.protocol().contract_type(&contract.kind);
        let (Some(kind), Some(id)) = (kind, &contract.id) else {
            return Ok(());
        };
        if self.known.is_none() || kind.answers.is_empty() {
            return Ok(());
        }
        let key = (rules.protocol().name().to_owned(), id.clone());
        let Some(asked) = request_in(tip, &key)? else {
            return Ok(());
        };
        let failed = self.lapsed(asked, delivery.claimed_at.or(delivery.at))?;
        if failed.state == State::Failed {
            self.time(failed.id.issue(), None)?;
            let args = EventArgs::because(AGAIN);
            self.change(&failed.from, &failed.id, Event::Retry, args)?;
        }
        Ok(())
    }

    /// Whether a file is as it was when it was written or imported.
    pub(super) fn knows(&self, file: &str, bytes: &[u8]) -> bool {
        let known = self.known.as_ref();
        known.is_some_and(|known| known.knows(file, bytes))
    }

    /// Records that the ledger has a file's content, and which state of a request it shows.
    pub(super) fn note(
        &mut self,
        file: &str,
        bytes: &[u8],
        about: Option<RequestKey>,
    ) -> Result<(), ExchangeError> {
        if self.known.is_none() {
            return Ok(());
        }
        let tip = self.ledger.tip()?;
        let record = match &about {
            Some(key) => request_in(&tip, key)?,
            None => None,
        };
        if let Some(known) = &mut self.known {
            known.took(file, bytes, record.map(|record| shows(&record)));
        }
        Ok(())
    }

    /// Reports an imported item that issues share; `commit` is `None` if it existed.
    pub(super) fn put(&mut self, file: &str, commit: Option<ObjectId>) {
        if commit.is_some() {
            self.report.commits += 1;
            self.imported(file, None);
        } else {
            self.skip(file, None);
        }
    }

    /// Imports a document that all issues share, by protocol and name.
    pub(super) fn document(
        &mut self,
        file: &str,
        agent: &AgentName,
        (protocol, name): (&AgentName, &AgentName),
        bytes: &[u8],
    ) -> Result<(), ExchangeError> {
        self.at.set(None);
        let ledger = &mut self.ledger;
        match ledger.put_document(&self.session, agent, protocol, name, bytes) {
            Ok(commit) => {
                self.put(file, commit);
                self.note(file, bytes, None)?;
            }
            Err(error) => self.failed(file, error)?,
        }
        Ok(())
    }

    /// Sends a contract; returns its handoff, and whether it is new.
    fn try_deliver(&mut self, delivery: &Delivery) -> Result<(HandoffId, bool), LedgerError> {
        let bytes = &delivery.bytes[..];
        let input = &Input::read(bytes);
        let tip = self.ledger.tip()?;
        let (ContractMatch { rules, review }, imported) =
            self.match_file(&tip, input, &delivery.file)?;
        let mut contract = accepted(review)?;
        // An issue that was derived from the ledger's state may differ by now: the contract belongs
        // to its earlier issue.
        if !names_issue(&rules, &contract)
            && self.issue.is_none()
            && let Some(key) = tip.sent_anywhere(bytes, contract.from.as_slice())?
            && self.is_there(&tip, &key, bytes)?
        {
            contract.issue = key;
        }
        let key = contract.issue.clone();
        if let Some(number) = self.account(&tip, &key, bytes)? {
            return Ok((HandoffId::new(key, number), false));
        }
        self.retry_answered(&tip, (&rules, &contract), delivery)?;
        let tip = self.ledger.tip()?;
        for record in to_claim(&tip, &rules, &contract)? {
            self.take_up(&rules, &record, delivery)?;
        }
        self.time(&key, delivery.at)?;
        let protocol = &rules.protocol().definition().name;
        let offer = Offer {
            input,
            agent: contract.from.as_ref().or(self.agent.as_ref()),
            issue: Some(&key),
            protocol: Some(protocol),
            options: &SendOptions::imported(&imported),
            reports: None,
        };
        let done = self.ledger.send_foreign(&self.session, &offer)?;
        self.report.commits += usize::from(done.commit.is_some());
        let record = done.receipt.record;
        if delivery.claimed && record.state == State::Pending && record.transitions.len() == 1 {
            self.hold_back(&record, delivery)?;
        }
        Ok((record.id, done.commit.is_some()))
    }

    /// Claims the handoff that a contract continues, at the time of its sender's claim.
    fn take_up(
        &mut self,
        rules: &Rules<'r>,
        record: &Record,
        delivery: &Delivery,
    ) -> Result<(), LedgerError> {
        let (id, to) = (&record.id, &record.to);
        if record.state == State::Blocked {
            self.time(id.issue(), delivery.claimed_at.or(delivery.at))?;
            self.change(&record.from, id, Event::Answer, EventArgs::because(OUTCOME))?;
        }
        // Without a start time, an answer ends work that began when it was requested.
        let asked = record.sent_at().map(|at| at.fixed_offset());
        let answers = record.contract_id.is_some() && delivery.at.is_some();
        let since = delivery.claimed_at.or(asked.filter(|_| answers));
        let since = self.time(id.issue(), since.or(delivery.at))?;
        // The lease lasts until the work is sent on, however long that took.
        let own = rules
            .protocol()
            .lease_seconds(to.as_str(), record.timeout_seconds);
        let needed = delivery.at.map(|end| (end - since).num_seconds() + 1);
        let needed = needed.and_then(|needed| u64::try_from(needed).ok());
        let lease = needed.filter(|needed| own.is_some_and(|own| own < *needed));
        let args = EventArgs {
            lease,
            reason: too_early(record, since),
            ..EventArgs::default()
        };
        self.change(to, id, Event::Claim, args)
    }

    /// Blocks work that is in progress elsewhere: it was claimed, but nobody holds it here.
    fn hold_back(&mut self, record: &Record, delivery: &Delivery) -> Result<(), LedgerError> {
        let (id, to) = (&record.id, &record.to);
        let since = self.time(id.issue(), delivery.claimed_at.or(delivery.at))?;
        let args = EventArgs {
            reason: too_early(record, since),
            ..EventArgs::default()
        };
        self.change(to, id, Event::Claim, args)?;
        // The clock may have advanced.
        self.at.set(Some(since));
        self.change(to, id, Event::Block, EventArgs::because(ELSEWHERE))
    }

    /// Sets the time of an issue's next step: the given one, but neither before the issue's last
    /// step nor in the future. Returns it.
    fn time(
        &mut self,
        key: &IssueKey,
        at: Option<DateTime<FixedOffset>>,
    ) -> Result<DateTime<FixedOffset>, LedgerError> {
        self.at.set(None);
        let now = self.session.clock.author();
        let Some(at) = at.filter(|at| at.timestamp() > 0) else {
            return Ok(now);
        };
        let issue = self.ledger.tip()?.issue(key)?.issue()?;
        let last = issue.map(|issue| issue.updated_at.with_timezone(at.offset()));
        let at = last.map_or(at, |last| last.max(at)).min(now);
        self.at.set(Some(at));
        Ok(at)
    }

    fn change(
        &mut self,
        agent: &AgentName,
        id: &HandoffId,
        event: Event,
        arguments: EventArgs,
    ) -> Result<(), LedgerError> {
        let update = Update::change(id.number(), event, arguments);
        let done = self
            .ledger
            .update(&self.session, agent, id.issue(), &update)?;
        self.report.commits += usize::from(done.commit.is_some());
        Ok(())
    }

    /// The handoffs that had a contract before the import, and how many are accounted for.
    fn known(
        &mut self,
        tip: &Snapshot<'r>,
        key: &IssueKey,
        bytes: &[u8],
    ) -> Result<&mut (Vec<u32>, usize), LedgerError> {
        let id = blob_id(bytes, tip.repository().format())?;
        let mut before = tip.issue(key)?.sent_before(bytes)?;
        before.sort_unstable();
        let entry = self.met.entry((key.clone(), id));
        Ok(entry.or_insert((before, 0)))
    }

    fn is_there(
        &mut self,
        tip: &Snapshot<'r>,
        key: &IssueKey,
        bytes: &[u8],
    ) -> Result<bool, LedgerError> {
        let (before, accounted) = self.known(tip, key, bytes)?;
        Ok(before.len() > *accounted)
    }

    /// The handoff that a contract made before the import, unless another item accounts for it.
    fn account(
        &mut self,
        tip: &Snapshot<'r>,
        key: &IssueKey,
        bytes: &[u8],
    ) -> Result<Option<u32>, LedgerError> {
        let (before, accounted) = self.known(tip, key, bytes)?;
        let number = before.get(*accounted).copied();
        *accounted += usize::from(number.is_some());
        Ok(number)
    }
}

pub(super) fn names_issue(rules: &Rules<'_>, contract: &Contract) -> bool {
    let kind = rules.protocol().contract_type(&contract.kind);
    let at = kind.and_then(|kind| rules.protocol().field(kind, |f| &f.issue));
    at.is_some_and(|at| contract.value.pointer(at).is_some())
}
