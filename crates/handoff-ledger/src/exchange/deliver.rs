//! One contract of a foreign folder as steps: the claims that its sender must make first, and the
//! sending.

use std::collections::HashMap;

use chrono::{DateTime, FixedOffset};
use handoff_base::ObjectId;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_contract::Input;
use handoff_git::blob_id;
use handoff_model::{Contract, EventArgs, Update, View};
use handoff_protocol::{Event, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::fault::Fault;
use super::pending::to_claim;
use super::{ExchangeError, Source};
use crate::contract_match::{ContractMatch, Offer, accepted, issues_of, senders};
use crate::error::LedgerError;
use crate::sending::Origin;
use crate::session::{Session, SetTime};
use crate::snapshot::{Rules, Snapshot};
use crate::tally::Work;
use crate::write::{Done, Ledger};

/// What to import, and how.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// The format to read; detected by default.
    pub source: Option<Source>,
    /// The issue of contracts that name none.
    pub issue: Option<IssueKey>,
    /// The sender of contracts that name none.
    pub agent: Option<AgentName>,
}

/// An item that the ledger has, either new or from before.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ImportedItem")]
pub struct Item {
    /// Its path in the folder, with the line (`steps.jsonl:12`) or location
    /// (`handoff_log.json#/handoff_log/3`) if the file has several items.
    pub file: String,
    /// The handoff that it is about; null if it is about none.
    pub handoff: Option<HandoffId>,
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
    /// The number of commits made.
    pub commits: usize,
}

/// The state of an import.
pub(super) struct Importer<'a, 'r> {
    pub(super) ledger: &'a mut Ledger<'r>,
    pub(super) session: Session,
    pub(super) issue: Option<IssueKey>,
    agent: Option<AgentName>,
    at: SetTime,
    /// For contracts that were encountered: the handoffs that had them before the import, and how
    /// many of these are accounted for.
    met: HashMap<(IssueKey, ObjectId), (Vec<u32>, usize)>,
    pub(super) report: Imported,
}

/// A contract to deliver.
pub(super) struct Delivery<'a> {
    /// Its file, as reported.
    pub(super) file: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) claimed: bool,
}

impl<'a, 'r> Importer<'a, 'r> {
    pub(super) fn new(
        ledger: &'a mut Ledger<'r>,
        session: Session,
        wanted: Import,
        source: Source,
    ) -> Self {
        // Steps made elsewhere do not belong to the trace of the importing agent.
        let worker = session.worker.clone();
        let (session, at) = session.instead_of(worker, None, None).timed();
        session.tally.begin(Work::Importing, None);
        Self {
            ledger,
            session,
            issue: wanted.issue,
            agent: wanted.agent,
            at,
            met: HashMap::new(),
            report: Imported {
                source,
                imported: Vec::new(),
                skipped: Vec::new(),
                refused: Vec::new(),
                commits: 0,
            },
        }
    }

    /// Sets the time of the steps that follow.
    pub(super) fn set_time(&self, at: DateTime<FixedOffset>) {
        self.at.set(Some(at));
    }

    pub(super) fn refuse(&mut self, file: &str, fault: Fault) {
        let file = file.to_owned();
        self.report.refused.push(Refused { file, fault });
    }

    pub(super) fn skip(&mut self, file: &str, handoff: Option<HandoffId>) {
        let file = file.to_owned();
        self.report.skipped.push(Item { file, handoff });
    }

    /// Records the result for an item that the ledger accepted.
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
        self.report.imported.push(Item { file, handoff });
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
    ) -> Result<ContractMatch<'r>, LedgerError> {
        let offer = Offer {
            input,
            agent: None,
            issue: self.issue.as_ref(),
            protocol: None,
            answers: None,
            token: None,
            allow: &[],
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
        let senders = senders(&found.rules, &offer);
        let in_state = |state| issues_of(tip, &senders, state);
        if named || !in_state(State::InProgress)?.is_empty() {
            return Ok(found);
        }
        // The sender will claim the work that waits for it, so that is where it works.
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

    /// Sends a contract after its sender has claimed what it continues. Returns whether the ledger
    /// has it now.
    ///
    /// # Errors
    /// [`ExchangeError`] if the ledger can't be read or written.
    pub(super) fn deliver(&mut self, delivery: &Delivery<'_>) -> Result<bool, ExchangeError> {
        let file = delivery.file;
        self.session.tally.add(1);
        match self.try_deliver(delivery) {
            Ok((number, key, done)) => {
                let id = HandoffId::new(key, number);
                match done {
                    Some(done) => self.took(file, &done, id.clone()),
                    None => self.skip(file, Some(id.clone())),
                }
                if delivery.claimed {
                    self.claim_new(file, &id)?;
                }
                Ok(true)
            }
            Err(error) => self.failed(file, error).map(|()| false),
        }
    }

    fn try_deliver(
        &mut self,
        delivery: &Delivery<'_>,
    ) -> Result<(u32, IssueKey, Option<Done>), LedgerError> {
        let bytes = delivery.bytes;
        let input = &Input::read(bytes);
        let tip = self.ledger.tip()?;
        let ContractMatch { rules, review } = self.match_contract(&tip, input)?;
        let mut contract = accepted(review)?;
        // An issue that was derived from the ledger's state may be a different one by now: the
        // contract belongs where it went before.
        if !names_issue(&rules, &contract)
            && self.issue.is_none()
            && let Some(key) = tip.sent_anywhere(bytes, contract.from.as_slice())?
            && self.is_there(&tip, &key, bytes)?
        {
            contract.issue = key;
        }
        let key = contract.issue.clone();
        if let Some(number) = self.account(&tip, &key, bytes)? {
            return Ok((number, key, None));
        }
        for id in to_claim(&tip, &rules, &contract)? {
            if let Some(agent) = &contract.from {
                self.claim(agent, &id)?;
            }
        }
        let protocol = &rules.protocol().definition().name;
        let offer = Offer {
            input,
            agent: contract.from.as_ref().or(self.agent.as_ref()),
            issue: Some(&key),
            protocol: Some(protocol),
            answers: None,
            token: None,
            allow: &[],
            reports: None,
        };
        let done = self
            .ledger
            .send_with(&self.session, &offer, Origin::Foreign)?;
        Ok((done.receipt.record.id.number(), key, Some(done)))
    }

    /// The handoffs that had a contract before the import, and how many of them are accounted for.
    fn known(
        &mut self,
        tip: &Snapshot<'r>,
        key: &IssueKey,
        bytes: &[u8],
    ) -> Result<&mut (Vec<u32>, usize), LedgerError> {
        let id = blob_id(bytes)?;
        let mut before = tip.issue(key)?.sent_as(id);
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

    fn claim(&mut self, agent: &AgentName, id: &HandoffId) -> Result<(), LedgerError> {
        let claim = Update::change(id.number(), Event::Claim, EventArgs::default());
        let done = self
            .ledger
            .update(&self.session, agent, id.issue(), &claim)?;
        self.report.commits += usize::from(done.commit.is_some());
        Ok(())
    }

    /// Claims a new handoff for its receiver if it was never claimed.
    fn claim_new(&mut self, file: &str, id: &HandoffId) -> Result<(), ExchangeError> {
        let tip = self.ledger.tip()?;
        let record = tip.issue(id.issue())?.record(id.number())?;
        let new = record.filter(|r| r.state == State::Pending && r.transitions.len() == 1);
        if let Some(record) = new
            && let Err(error) = self.claim(&record.to, id)
        {
            self.failed(file, error)?;
        }
        Ok(())
    }
}

/// Whether a contract itself names its issue.
pub(super) fn names_issue(rules: &Rules<'_>, contract: &Contract) -> bool {
    let kind = rules.protocol().contract_type(&contract.kind);
    let at = kind.and_then(|kind| rules.protocol().field(kind, |f| &f.issue));
    at.is_some_and(|at| contract.value.pointer(at).is_some())
}
