//! Answering a request: the effect on the request, and the handoff back to its requester.

use handoff_base::ids::AgentName;
use handoff_protocol::{ContractType, Event, State};

use crate::contract::Contract;
use crate::contract::artifacts::unfit;
use crate::decision::not_working;
use crate::planner::answer_content::left_open;
use crate::planner::holder::answers;
use crate::planner::{Planner, trail};
use crate::record::{Failure, Issue, Question, Record, View};
use crate::refusal::{Refusal, RequestRefusal};
use crate::step::message::Account;
use crate::step::{EventArgs, Planned, SendRequest, Stop};

/// The failure code of a request whose answer gives none.
const NOT_RESOLVED: &str = "NOT_RESOLVED";

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Answers the request that a sender works on, if any.
    pub(super) fn answer(
        &self,
        issue: Option<Issue>,
        send: &SendRequest<'_>,
        kind: &ContractType,
        from: &AgentName,
        request: Option<Record>,
    ) -> Result<Planned, Stop<E>> {
        let contract = send.contract;
        let none = || Refusal::no_issue(self.key);
        let mut issue = issue.ok_or_else(none)?;
        if let Some(number) = self.sent(contract)? {
            let earlier = self.record(&self.id(number))?;
            // The same answer is not a repeat if its sender has claimed the request, or another
            // one, since it was sent, or if it names the request.
            let again = request.as_ref().is_some_and(|request| {
                let taken_up_since = request.lease.as_ref().is_none_or(|lease| {
                    let is_own = self
                        .step
                        .worker
                        .as_ref()
                        .is_none_or(|own| lease.worker == *own);
                    is_own && earlier.sent_at().is_none_or(|sent| lease.since > sent)
                });
                taken_up_since
                    || self.options().answers.is_some()
                    || earlier.answers.as_ref() == Some(&request.id)
            });
            if !again {
                let receipt = self.repeated(earlier, issue);
                return Ok(Planned::Repeat(Box::new(receipt)));
            }
        }
        self.ensure_not_taken_over(&issue, from, request.as_ref(), self.options().token)?;
        let Some(mut request) = request else {
            return Err(self.unanswerable(&issue, kind, send, from)?.into());
        };
        self.ensure_open(&issue)?;
        self.gives(kind, contract, &request)?;
        let (event, why) = self.verdict(kind, contract, &request);
        if event == Event::Complete
            && let Some(expected) = &request.expects
        {
            let findings = unfit(expected, kind, &contract.value);
            if !findings.is_empty() {
                let issue = self.key.clone();
                return Err(RequestRefusal::Unfit { issue, findings }.into());
            }
        }
        let failure = (event == Event::Fail).then(|| {
            contract.failure.clone().unwrap_or_else(|| Failure {
                code: NOT_RESOLVED.to_owned(),
                message: contract.summary.clone(),
                details: None,
                recoverable: true,
                suggested_action: None,
                no_retry: false,
                run: None,
            })
        });
        let mut args = EventArgs {
            failure: self.reported(failure.as_ref())?,
            ..EventArgs::default()
        };
        if event == Event::Block {
            args.reason = why;
            args.questions = open_questions(kind, contract, &request);
        }
        let id = self.id(issue.handoffs + 1);
        let held = self.held_seconds(&request);
        self.report_usage(&mut request)?;
        self.advance(&mut request, event, Some(&id), &args)?;
        let (to, state) = (request.from.clone(), State::Completed);
        let mut new = self.begin(&mut issue, send, Some(&request), to, state)?;
        new.follows = Some(request.id.clone());
        new.answers = Some(request.id.clone());
        // The step is about the request, and the answer says how it ended.
        let account = Account {
            held,
            summary: Some(new.summary.clone()),
            findings: self.findings(contract),
            ..trail::account(&request)
        };
        self.written(issue, vec![request, new], send, &account)
    }

    /// Whether a request of this type is a whole issue: the issue's key is the request's own id.
    pub(super) fn is_one_request(&self, kind: &str) -> bool {
        let kind = self.protocol.contract_type(kind);
        kind.is_some_and(|kind| {
            let own = self.protocol.field(kind, |f| &f.id);
            own.is_some() && own == self.protocol.field(kind, |f| &f.issue)
        })
    }

    /// What an answer does to its request, and why, if it blocks it.
    fn verdict(
        &self,
        kind: &ContractType,
        contract: &Contract,
        request: &Record,
    ) -> (Event, Option<String>) {
        let outcome = self.protocol.outcome(kind, contract.status.as_deref());
        if let Some(critical) = kind.critical_inputs.as_ref()
            && outcome.event() == Event::Complete
        {
            let open = left_open(kind, contract, request);
            let keys = open.iter().map(|question| question.key.as_str());
            let keys: Vec<&str> = keys
                .filter(|k| critical.keys.iter().any(|c| c == k))
                .collect();
            if !keys.is_empty() {
                let why = format!("without a critical input: {}", keys.join(", "));
                return (critical.outcome.event(), Some(why));
            }
        }
        let why = contract.failure.as_ref().map(|f| f.message.clone());
        (
            outcome.event(),
            why.or_else(|| Some(contract.summary.clone())),
        )
    }

    /// Why there is nothing to answer.
    fn unanswerable(
        &self,
        issue: &Issue,
        kind: &ContractType,
        send: &SendRequest<'_>,
        from: &AgentName,
    ) -> Result<Refusal, Stop<E>> {
        let contract = send.contract;
        for open in issue.open.iter().rev().filter(|open| open.to == *from) {
            let record = self.record(&open.id)?;
            if answers(kind, contract, &record) {
                return Ok(not_working((self.protocol, issue), &record, from, self.step.at).into());
            }
        }
        for number in (1..=issue.handoffs).rev() {
            let record = self.record(&self.id(number))?;
            if record.to == *from && record.state.is_terminal() && answers(kind, contract, &record)
            {
                let answer = record.latest().and_then(|t| t.sent.clone());
                return Ok(match answer {
                    Some(answer) => {
                        let (id, state) = (record.id, record.state);
                        RequestRefusal::Answered { id, state, answer }.into()
                    }
                    None => not_working((self.protocol, issue), &record, from, self.step.at).into(),
                });
            }
        }
        Ok(self.not_held(issue, from, self.options().token)?.into())
    }
}

/// The questions that remain for a request after an answer that leaves it open. If critical inputs
/// are missing, the other questions become optional.
fn open_questions(kind: &ContractType, contract: &Contract, request: &Record) -> Vec<Question> {
    let mut open = left_open(kind, contract, request);
    if open.is_empty() {
        return request.missing.clone();
    }
    let critical = kind.critical_inputs.iter().flat_map(|c| &c.keys);
    let is_critical = |q: &Question| critical.clone().any(|key| *key == q.key);
    if kind.given.is_some() && open.iter().any(is_critical) {
        for question in &mut open {
            question.optional |= !is_critical(question);
        }
    }
    open
}
