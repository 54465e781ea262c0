//! Who may send what: the checks that can refuse a contract.

use std::collections::BTreeMap;

use handoff_base::ids::AgentName;
use handoff_base::text::quoted;
use handoff_protocol::{ContractType, Ends, State, Style};

use crate::contract::Contract;
use crate::decision::{not_working, standing_status};
use crate::planner::Planner;
use crate::planner::answer_content::meant;
use crate::record::{Issue, IssueStatus, Record, Spending, VERSION, View};
use crate::refusal::{ContractRefusal, LeaseRefusal, Refusal, RequestRefusal, StateRefusal};
use crate::step::{SendRequest, Stop};
use crate::value::scalar;

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Refuses a contract that names another one than the sender works on, a decision that the
    /// status of the sender's work rules out, and an answer that lacks a requested value.
    pub(super) fn fits_basis(
        &self,
        kind: &ContractType,
        contract: &Contract,
        basis: Option<&Record>,
    ) -> Result<(), Stop<E>> {
        let Some(held) = basis else {
            return Ok(());
        };
        let status = standing_status(self.protocol, held).unwrap_or_default();
        let status = status.to_owned();
        let about = kind.about.as_deref();
        let about = about.and_then(|at| Some((at, scalar(contract.value.pointer(at)?)?)));
        if let Some((pointer, own)) = about {
            let meant = meant(self.view, self.protocol, held)?;
            if meant.contract_id.as_ref() != Some(&own) {
                return Err(ContractRefusal::NotAbout {
                    field: pointer.trim_start_matches('/').into(),
                    value: quoted(&own).into(),
                    id: held.id.clone(),
                    known: meant.contract_id.unwrap_or_default().into(),
                }
                .into());
            }
        }
        for (pointer, rules) in &kind.after {
            let Some(value) = contract.value.pointer(pointer).and_then(scalar) else {
                continue;
            };
            let fits = |words: &Vec<String>| words.contains(&status);
            if rules.get(&value).is_some_and(|words| !fits(words)) {
                let fitting = rules.iter().filter(|(_, words)| fits(words));
                let fitting = fitting.map(|(value, _)| value.clone()).collect();
                return Err(ContractRefusal::NotAfter {
                    field: pointer.trim_start_matches('/').into(),
                    value: quoted(&value).into(),
                    id: held.id.clone(),
                    status: match held
                        .fault()
                        .filter(|_| held.status.as_ref() != Some(&status))
                    {
                        Some(fault) => {
                            format!("{status} whatever its contract says: {fault}").into()
                        }
                        None => status.into(),
                    },
                    fitting,
                }
                .into());
            }
        }
        self.gives(kind, contract, held)
    }

    /// Refuses a request to an agent that waits for the sender.
    pub(super) fn ensure_no_loop(
        &self,
        issue: &Issue,
        from: &AgentName,
        to: &AgentName,
        basis: Option<&Record>,
    ) -> Result<(), Stop<E>> {
        let limits = self.protocol.definition().limits.as_ref();
        let Some(reason) = limits.and_then(|limits| limits.loops.as_ref()) else {
            return Ok(());
        };
        // A sender that holds nothing may still have an open request from the receiver.
        let waiting = issue
            .open
            .iter()
            .filter(|open| basis.is_none() && open.to == *from);
        for open in waiting {
            let asked = self.record(&open.id)?;
            if asked.from == *to {
                return Err(RequestRefusal::Loop {
                    from: from.clone(),
                    to: to.clone(),
                    id: asked.id,
                    reason: reason.clone(),
                }
                .into());
            }
        }
        let mut request = basis.cloned();
        while let Some(waiting) = request {
            // Once answered, a request is no longer waited for.
            if waiting.from == *to && !waiting.state.is_terminal() {
                return Err(RequestRefusal::Loop {
                    from: from.clone(),
                    to: to.clone(),
                    id: waiting.id,
                    reason: reason.clone(),
                }
                .into());
            }
            request = match &waiting.follows {
                Some(id) => Some(self.record(id)?),
                None => None,
            };
        }
        Ok(())
    }

    /// Refuses an id that another contract of this type has. The same bytes may be sent again if
    /// there is reason to; other bytes only if the first contract was rejected or cancelled, so
    /// that nothing depends on it.
    pub(super) fn ensure_id_free(&self, issue: &Issue, contract: &Contract) -> Result<(), Stop<E>> {
        let ids = issue.contract_ids.get(&contract.kind);
        let taken = contract.id.as_ref().and_then(|own| ids?.get_key_value(own));
        let Some((own, number)) = taken else {
            return Ok(());
        };
        let sent = self.view.sent_before(&contract.bytes);
        if sent.map_err(Stop::Unreadable)?.contains(number) {
            return Ok(());
        }
        let state = self.shared_record(&self.id(*number))?.state;
        if matches!(state, State::Rejected | State::Cancelled) {
            return Ok(());
        }
        Err(ContractRefusal::IdTaken {
            contract_id: quoted(own),
            id: self.id(*number),
            failed: state == State::Failed,
        }
        .into())
    }

    /// Records the id for the handoff that is created next.
    pub(super) fn take_id(&self, issue: &mut Issue, contract: &Contract) {
        if let Some(own) = &contract.id {
            let ids = issue.contract_ids.entry(contract.kind.clone()).or_default();
            ids.insert(own.clone(), issue.handoffs + 1);
        }
    }

    pub(super) fn ensure_open(&self, issue: &Issue) -> Result<(), StateRefusal> {
        let person = || {
            let mut people = self.protocol.definition().people();
            people.next().unwrap_or(&self.step.by).clone()
        };
        match issue.status {
            IssueStatus::Open => Ok(()),
            IssueStatus::Completed => Err(StateRefusal::Completed(self.key.clone(), person())),
            IssueStatus::Cancelled => Err(StateRefusal::Cancelled(self.key.clone(), person())),
        }
    }

    /// The number of the newest handoff that was sent with the same bytes.
    pub(super) fn sent(&self, contract: &Contract) -> Result<Option<u32>, Stop<E>> {
        let sent = self.view.sent_before(&contract.bytes);
        Ok(sent.map_err(Stop::Unreadable)?.first().copied())
    }

    /// The handoff that a contract merely repeats: the newest one with the same bytes. `None` if
    /// there is a reason to send them again: the sender sends on from a newer handoff, or from the
    /// same one after it was retried or reopened, or its successor was rejected or cancelled.
    pub(super) fn sent_before(
        &self,
        issue: &Issue,
        kind: &ContractType,
        contract: &Contract,
        basis: Option<&Record>,
    ) -> Result<Option<Record>, Stop<E>> {
        let Some(number) = self.sent(contract)? else {
            return Ok(None);
        };
        let earlier = self.record(&self.id(number))?;
        let turned_down = [State::Rejected, State::Cancelled].contains(&earlier.state);
        let again = match basis {
            // In a call, sending a request does not change what the sender holds.
            _ if self.protocol.definition().style() == Style::Call => turned_down,
            // After a plan, the sender still holds its task. A report is about one task, whatever
            // else its sender holds.
            Some(held) if self.breaks_down(kind, contract, held) => {
                self.plan_turned_down(issue, kind, contract)?
            }
            Some(held) if kind.tasks.as_ref().is_some_and(|t| t.completes.is_some()) => {
                earlier.follows.as_ref() == Some(&held.id)
            }
            Some(held) => held.id.number() > number || earlier.follows.as_ref() == Some(&held.id),
            None => {
                let reopened = issue.reopened.last().is_some_and(|r| number <= r.handoffs);
                issue.status == IssueStatus::Open
                    && issue.open.is_empty()
                    && (turned_down || reopened)
            }
        };
        Ok((!again).then_some(earlier))
    }

    /// Refuses a contract whose sender may not send now; opens the issue for its first contract.
    pub(super) fn admit(
        &self,
        issue: Option<Issue>,
        send: &SendRequest<'_>,
        from: &AgentName,
        to: &AgentName,
        basis: Option<&Record>,
    ) -> Result<Issue, Stop<E>> {
        let contract = send.contract;
        let opens = self
            .protocol
            .opens(from.as_str(), to.as_str(), &contract.kind);
        let Some(issue) = issue else {
            if !opens {
                return Err(StateRefusal::not_opened(self.key, self.protocol).into());
            }
            return self.opened(contract);
        };
        let issue = self.resume(issue, contract, opens)?;
        if basis.is_some() || opens && self.protocol.definition().style() == Style::Call {
            return Ok(issue);
        }
        if opens && issue.open.is_empty() {
            // The issue starts over: work that was completed before no longer awaits a successor.
            let unfollowed = Vec::new();
            return Ok(Issue {
                unfollowed,
                ..issue
            });
        }
        let mine = issue.open.iter().rev().find(|open| open.to == *from);
        let Some(open) = mine else {
            return Err(self.not_held(&issue, from, self.options().token)?.into());
        };
        let record = self.record(&open.id)?;
        Err(not_working((self.protocol, &issue), &record, from, self.step.at).into())
    }

    /// Refuses an ended issue. But one that ended because nothing was open is resumed by a contract
    /// that may open an issue.
    fn resume(
        &self,
        mut issue: Issue,
        contract: &Contract,
        opens: bool,
    ) -> Result<Issue, StateRefusal> {
        let ended_by_itself =
            self.protocol.ends() == Ends::NothingOpen && issue.status == IssueStatus::Completed;
        if opens && ended_by_itself && !self.is_one_request(&contract.kind) {
            issue.status = IssueStatus::Open;
            issue.completed_at = None;
        }
        self.ensure_open(&issue)?;
        Ok(issue)
    }

    /// Why a sender without an open handoff may not send: it lost its lease, or it held nothing.
    pub(super) fn not_held(
        &self,
        issue: &Issue,
        from: &AgentName,
        token: Option<u32>,
    ) -> Result<LeaseRefusal, Stop<E>> {
        for number in (1..=issue.handoffs).rev() {
            let record = self.shared_record(&self.id(number))?;
            if self.claim_end(&record).is_some()
                && let Err(lost) = self.ensure_lease_held(&record, token)
            {
                return Ok(lost);
            }
        }
        Ok(LeaseRefusal::not_held(issue, from))
    }

    /// Refuses a sender that lost the lease of the handoff it sends on from, or that names another
    /// claim of it.
    pub(super) fn ensure_not_taken_over(
        &self,
        issue: &Issue,
        from: &AgentName,
        basis: Option<&Record>,
        token: Option<u32>,
    ) -> Result<(), Stop<E>> {
        let other = |held: &Record| token.is_some_and(|token| token != held.claims());
        if let Some(held) = basis.filter(|held| held.lease.is_some() || other(held)) {
            return Ok(self.ensure_lease_held(held, token)?);
        }
        if basis.is_some() || issue.held_by(from).next().is_some() {
            return Ok(());
        }
        for open in issue.open.iter().rev() {
            let record = self.shared_record(&open.id)?;
            if self.claim_end(&record).is_some() {
                self.ensure_lease_held(&record, token)?;
            }
        }
        Ok(())
    }

    /// The issue that a contract opens.
    pub(super) fn opened(&self, contract: &Contract) -> Result<Issue, Stop<E>> {
        if let Some(other) = self.view.twin().map_err(Stop::Unreadable)? {
            let key = self.key.clone();
            return Err(Refusal::from(RequestRefusal::Twin { key, other }).into());
        }
        Ok(Issue {
            version: VERSION,
            issue: self.key.clone(),
            title: contract.summary.clone(),
            protocol: contract.protocol.clone(),
            status: IssueStatus::Open,
            opened_at: self.step.at,
            updated_at: self.step.at,
            completed_at: None,
            handoffs: 0,
            steps: 0,
            open: Vec::new(),
            unfollowed: Vec::new(),
            awaiting: Vec::new(),
            to_tell: Vec::new(),
            given_up: Vec::new(),
            reopened: Vec::new(),
            paused: None,
            resumed: Vec::new(),
            counted: Vec::new(),
            decisions: Vec::new(),
            answers: Vec::new(),
            findings: Vec::new(),
            refusals: Vec::new(),
            annotations: Vec::new(),
            deliveries: Vec::new(),
            tasks: Vec::new(),
            contract_ids: BTreeMap::new(),
            spent: Spending::new(),
            facts: serde_json::Map::new(),
        })
    }
}
