//! Sending a contract: who may send it, what happens to the handoff that the sender held, and the
//! new handoff.

use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::pointer::select;
use handoff_base::text::summary_line;
use handoff_base::{Code, Edit, ObjectId};
use handoff_protocol::{AgentKind, ContractType, Ends, Event, Outcome, OwnRetry, State, Style};
use serde_json::Value;

use crate::contract::Contract;
use crate::contract::artifacts::delivered;
use crate::contract::consistency::{self, Ground};
use crate::contract::evidence::demanded;
use crate::decision::note_fact;
use crate::layout;
use crate::planner::holder::{Holder, held};
use crate::planner::{Changed, Planner, trail};
use crate::record::not_applicable::not_applicable;
use crate::record::{
    Artifact, ContractFile, Contradiction, Expected, Failure, Issue, IssueStatus, Question,
    ROLE_VIOLATION, Record, Transition, UNSPECIFIED, VERSION, View, violation,
};
use crate::refusal::{ContractRefusal, Correction, QueueRefusal, Refusal, RoleRefusal};
use crate::step::message::Account;
use crate::step::{EventArgs, Planned, PlannedStep, SendRequest, Stop};
use crate::value::scalar;

/// A contract sent on from the handoff that its sender held.
struct SentOn<'a> {
    kind: &'a ContractType,
    contract: &'a Contract,
    /// The id of the new handoff.
    id: &'a HandoffId,
    /// The sender's violations of its role.
    violations: &'a [String],
    /// Whether it goes to an agent of kind `end`.
    ends: bool,
}

/// What happens to the handoff that a sender held.
#[derive(Default)]
struct Left {
    /// The handoffs whose state changes.
    touched: Vec<Record>,
    /// The handoff itself, if it continues with a changed lease.
    quiet: Vec<Record>,
    /// The account of how it ended, if it did.
    released: Option<Account>,
    /// The handoff itself, if only its usage was reported.
    reported: Option<Record>,
}

impl<E, V: View<E>> Planner<'_, E, V> {
    pub(super) fn send(
        &self,
        issue: Option<Issue>,
        send: &SendRequest<'_>,
    ) -> Result<Planned, Stop<E>> {
        let contract = send.contract;
        let kind = self
            .protocol
            .contract_type(&contract.kind)
            .expect("the contract was reviewed under this protocol");
        let from = contract.sender(&self.step.by);
        if &self.step.by != from {
            return Err(RoleRefusal::NotTheSender {
                agent: self.step.by.clone(),
                from: from.clone(),
            }
            .into());
        }
        if let Some(issue) = issue.as_ref().filter(|i| i.protocol != contract.protocol) {
            return Err(ContractRefusal::OtherProtocol {
                issue: self.key.clone(),
                protocol: issue.protocol.clone(),
            }
            .into());
        }
        if let Some(number) = self.options().replaces {
            let planned = self.correct(issue, send, kind, from, number);
            return self.demanding(planned, send, kind, from);
        }
        let holder = Holder {
            agent: from,
            worker: self.step.worker.as_ref(),
        };
        let held = match &issue {
            Some(issue) => held(
                self.view,
                issue,
                kind,
                contract,
                self.options().answers,
                holder,
            )?,
            None => None,
        };
        let held = held.map(|held| accused(kind, contract, held));
        let planned = if !kind.answers.is_empty() {
            self.answer(issue, send, kind, from, held)
        } else if kind.note {
            self.note(issue, send, kind, from)
        } else {
            self.hand_on(issue, send, kind, from, held)
        };
        self.demanding(planned, send, kind, from)
    }

    /// Adds to a plan the evidence checks that its contract demands, or to a refusal all other
    /// findings.
    fn demanding(
        &self,
        planned: Result<Planned, Stop<E>>,
        send: &SendRequest<'_>,
        kind: &ContractType,
        from: &AgentName,
    ) -> Result<Planned, Stop<E>> {
        let mut planned = planned.map_err(|stop| self.with_every_misfit(stop, send, kind, from))?;
        if let Planned::Write(step) = &mut planned {
            step.demanded = demanded(self.protocol, send.policy, send.contract);
        }
        Ok(planned)
    }

    /// Records a contract that changes no state.
    fn note(
        &self,
        issue: Option<Issue>,
        send: &SendRequest<'_>,
        kind: &ContractType,
        from: &AgentName,
    ) -> Result<Planned, Stop<E>> {
        if let Some(issue) = &issue {
            // The same note from another agent is not a repeat.
            let sent = self.view.sent_before(&send.contract.bytes);
            for number in sent.map_err(Stop::Unreadable)? {
                let earlier = self.record(&self.id(number))?;
                if earlier.from == *from {
                    let receipt = self.repeated(earlier, issue.clone());
                    return Ok(Planned::Repeat(Box::new(receipt)));
                }
            }
            self.ensure_id_free(issue, send.contract)?;
            // Where issues end by themselves, a note does not resume one.
            if self.protocol.ends() == Ends::ClosingContract {
                self.ensure_open(issue)?;
            }
        }
        let mut issue = match issue {
            Some(issue) => issue,
            None => self.opened(send.contract)?,
        };
        self.take_id(&mut issue, send.contract);
        let named = send.contract.to.as_ref();
        let to = named
            .or(kind.implied_to.as_ref())
            .or_else(|| self.protocol.lead())
            .unwrap_or(from)
            .clone();
        let state = State::Completed;
        let mut new = self.begin(&mut issue, send, None, to, state)?;
        self.report_usage(&mut new)?;
        let account = self.sent_account(&new, kind, send.contract);
        self.written(issue, vec![new], send, &account)
    }

    /// Sends work on from the handoff that its sender holds: a relay's next step, or a request.
    fn hand_on(
        &self,
        issue: Option<Issue>,
        send: &SendRequest<'_>,
        kind: &ContractType,
        from: &AgentName,
        basis: Option<Record>,
    ) -> Result<Planned, Stop<E>> {
        let contract = send.contract;
        let calls = self.protocol.definition().style() == Style::Call;
        if let Some(issue) = &issue {
            if let Some(earlier) = self.sent_before(issue, kind, contract, basis.as_ref())? {
                let receipt = self.repeated(earlier, issue.clone());
                return Ok(Planned::Repeat(Box::new(receipt)));
            }
            self.ensure_not_taken_over(issue, from, basis.as_ref(), self.options().token)?;
            // Refuse a different contract with a known id before anything else.
            self.ensure_id_free(issue, contract)?;
        }
        let named = contract.to.as_ref().or_else(|| self.protocol.lead());
        let to = named.unwrap_or(from).clone();
        let mut issue = self.admit(issue, send, from, &to, basis.as_ref())?;
        self.take_id(&mut issue, contract);
        self.fits_basis(kind, contract, basis.as_ref())?;
        if calls {
            self.ensure_no_loop(&issue, from, &to, basis.as_ref())?;
        }
        self.fits_tasks(&issue, kind, contract, from)?;
        self.follow_findings(&mut issue, kind, contract)?;
        self.within_limits(&mut issue, contract, from, &to, basis.as_ref())?;

        let follows = basis.as_ref().map(|held| held.id.clone());
        let violations = self.violations(kind, contract, from);
        let number = issue.handoffs + 1;
        let id = self.id(number);
        let ends = self.protocol.is_kind(to.as_str(), AgentKind::End);
        let sent = SentOn {
            kind,
            contract,
            id: &id,
            violations: &violations,
            ends,
        };
        let about = code(Some(kind), contract, &issue, basis.as_ref(), send.code);
        let Left {
            mut touched,
            mut quiet,
            released,
            reported,
        } = match basis {
            Some(held) => self.leave(&mut issue, held, &sent)?,
            None => Left::default(),
        };
        let closes = ends && violations.is_empty();
        let state = if closes {
            self.complete_issue(&mut issue, &mut touched, &id)?;
            State::Completed
        } else {
            State::Pending
        };
        let first = self.first_receiver(from, &to, &contract.kind, &violations);
        if released.is_none() {
            self.ensure_nothing_failed(kind, contract, from, &first)?;
        }
        let intended = (first != to && violations.is_empty()).then(|| to.clone());
        let to = first;
        let known = touched.iter().chain(&quiet);
        let held = known.into_iter().find(|r| Some(&r.id) == follows.as_ref());
        let mut new = self.begin(&mut issue, send, held, to, state)?;
        if follows.is_none() {
            self.report_usage(&mut new)?;
        }
        quiet.extend(reported);
        new.code = about;
        new.follows = follows;
        new.intended = intended;
        new.violations = violations;
        if calls {
            expect_answer(&mut new, kind, contract);
        }
        let account = self.outcome_account(&new, kind, contract, released);
        let file = new.contract.file.clone();
        let mut changed = Changed {
            quiet,
            ..Changed::of(issue, id, touched)
        };
        self.open_tasks(&mut changed, kind, contract, new)?;
        self.follow_tasks(&mut changed)?;
        self.with_contract(changed, &file, contract, &account)
    }

    /// Ends the sender's handoff with the outcome that the contract states, or keeps it.
    fn leave(
        &self,
        issue: &mut Issue,
        mut held: Record,
        sent: &SentOn<'_>,
    ) -> Result<Left, Stop<E>> {
        let SentOn {
            kind, contract, id, ..
        } = *sent;
        let calls = self.protocol.definition().style() == Style::Call;
        let mut left = Left::default();
        issue.unfollowed.retain(|id| *id != held.id);
        let is_news = self.report_usage(&mut held)?;
        let keeps = calls || self.breaks_down(kind, contract, &held);
        if !keeps && !sent.ends {
            ensure_parts_done(&held)?;
        }
        if held.state == State::InProgress && !keeps {
            left.released = Some(self.release(&mut held, kind, contract, id, sent.violations)?);
            left.touched.extend(self.superseded(issue, &held, id)?);
            left.touched.push(held);
            return Ok(left);
        }
        if keeps && !calls {
            left.touched.extend(self.reports_on(issue, &held, id)?);
            if self.hold(&mut held) {
                left.quiet.push(held);
                return Ok(left);
            }
        }
        left.reported = is_news.then_some(held);
        Ok(left)
    }

    /// Completes an issue with its closing contract, and cancels its open handoffs.
    fn complete_issue(
        &self,
        issue: &mut Issue,
        touched: &mut Vec<Record>,
        sent: &HandoffId,
    ) -> Result<(), Stop<E>> {
        let held: Vec<_> = touched.iter().map(|r| r.id.clone()).collect();
        for open in issue.open.clone() {
            if !held.contains(&open.id) {
                let mut record = self.record(&open.id)?;
                self.withdraw(&mut record, sent)?;
                touched.push(record);
            }
        }
        issue.status = IssueStatus::Completed;
        issue.completed_at = Some(self.step.at);
        issue.unfollowed.clear();
        Ok(())
    }

    /// A step that changes these handoffs, the last of which is new.
    pub(super) fn written(
        &self,
        issue: Issue,
        records: Vec<Record>,
        send: &SendRequest<'_>,
        account: &Account,
    ) -> Result<Planned, Stop<E>> {
        let new = records.last().expect("a contract begins a handoff");
        let (subject, file) = (new.id.clone(), new.contract.file.clone());
        let changed = Changed::of(issue, subject, records);
        self.with_contract(changed, &file, send.contract, account)
    }

    /// A step with these changes and the file of the sent contract.
    fn with_contract(
        &self,
        mut changed: Changed,
        file: &str,
        contract: &Contract,
        account: &Account,
    ) -> Result<Planned, Stop<E>> {
        self.await_somebody(&mut changed)?;
        let mut step: PlannedStep = self.commit(changed, account)?;
        let path = layout::in_issue(self.key, file);
        step.files.push((path, Edit::Bytes(contract.bytes.clone())));
        Ok(Planned::Write(Box::new(step)))
    }

    /// Creates the handoff of a contract. Refuses a contract that contradicts the issue's facts;
    /// adds the facts that it states.
    pub(super) fn begin(
        &self,
        issue: &mut Issue,
        send: &SendRequest<'_>,
        held: Option<&Record>,
        to: AgentName,
        state: State,
    ) -> Result<Record, Stop<E>> {
        let contract = send.contract;
        let from = contract.sender(&self.step.by);
        let contradictions = self.contradictions(issue, send, held)?;
        let told = (contract.kind.as_str(), &contract.value, issue.handoffs == 0);
        let stated = self.protocol.gather(&mut issue.facts, told);
        for answer in &mut issue.answers {
            answer.outdate(&stated);
        }
        let known = issue.facts.get("priority").and_then(Value::as_str);
        let priority = contract.priority.clone().or(known.map(str::to_owned));
        if let Some(title) = &contract.title {
            issue.title.clone_from(title);
        }
        let number = issue.handoffs + 1;
        issue.handoffs = number;
        let kind = self.protocol.contract_type(&contract.kind);
        let named = kind.map_or_else(Vec::new, |kind| delivered(kind, &contract.value));
        let is_named = |a: &&Artifact| named.iter().any(|n| n.path == a.path);
        Ok(Record {
            version: VERSION,
            contradictions,
            not_applicable: not_applicable(&contract.value),
            id: self.id(number),
            title: issue.title.clone(),
            protocol: issue.protocol.clone(),
            imported: contract.imported.clone(),
            contract_type: contract.kind.clone(),
            from: from.clone(),
            state,
            priority,
            status: contract.status.clone(),
            summary: self.told_summary(kind, contract),
            contract_id: contract.id.clone(),
            contract: ContractFile::new(
                layout::contract_name(number, from, &to, contract.format),
                contract.format,
                &contract.bytes,
            ),
            to,
            intended: None,
            recommended: kind
                .and_then(|kind| self.recommended(kind, contract))
                .filter(|agent| contract.to.as_ref() != Some(agent)),
            follows: None,
            answers: None,
            replaces: None,
            task: None,
            waits_for: Vec::new(),
            parts: Vec::new(),
            expects: None,
            artifacts: send.artifacts.iter().filter(is_named).cloned().collect(),
            evidence: Vec::new(),
            max_retries: None,
            retry: None,
            timeout_seconds: kind
                .and_then(|k| k.timeout.as_ref())
                .and_then(|field| field.read(&contract.value))
                .filter(|seconds| *seconds > 0),
            acknowledge_seconds: kind
                .and_then(|k| k.acknowledge.as_ref())
                .and_then(|field| field.read(&contract.value))
                .filter(|seconds| *seconds > 0),
            missing: kind.map_or_else(Vec::new, |kind| lacks(kind, &contract.value)),
            session: contract.session.clone(),
            violations: Vec::new(),
            code: code(kind, contract, issue, held, send.code),
            attempt: 1,
            redriven_at: None,
            not_before: None,
            acknowledge_by: None,
            lease: None,
            progress: Vec::new(),
            usage: Vec::new(),
            transitions: vec![Transition {
                allowed_secrets: contract.allowed_secrets.clone(),
                traceparent: self.step.traceparent,
                worker: self.step.worker.clone(),
                ..Transition::new(self.step.at, self.step.by.clone(), state)
            }],
        })
    }

    /// The contradictions that its rules only warn about; others refuse the contract.
    fn contradictions(
        &self,
        issue: &Issue,
        send: &SendRequest<'_>,
        held: Option<&Record>,
    ) -> Result<Vec<Contradiction>, Stop<E>> {
        let contract = send.contract;
        let kind = self.protocol.contract_type(&contract.kind);
        let kind = kind.expect("the contract was reviewed under this protocol");
        let ground = Ground {
            definition: self.protocol.definition(),
            issue: Some(issue),
            view: self.view,
            worker: self.step.worker.as_ref(),
            // An imported contract's attempts were made elsewhere.
            held: held.filter(|_| contract.imported.is_none()),
            replaces: self.options().replaces,
            at: self.step.at,
            is_proved: self.step.delivery.is_some(),
        };
        let value = &contract.value;
        let known = consistency::known(self.protocol, kind, value, &ground);
        let broken = known.map_err(Stop::Unreadable)?;
        if broken.iter().any(|broken| broken.finding.is_error()) {
            let by = &self.step.by;
            let may = |fact: &str| ground.definition.may_note(fact, by, ground.is_proved);
            let mut facts = broken.iter().flat_map(consistency::Broken::facts);
            let others = facts.find(|fact| !may(fact));
            let asks = held.zip(others).map(|(held, fact)| {
                let note = note_fact(self.protocol, self.key, fact);
                let (id, agent) = (held.id.clone(), by.clone());
                Box::new(Correction { id, agent, note })
            });
            drop(facts);
            return Err(ContractRefusal::Inconsistent {
                issue: self.key.clone(),
                asks,
                findings: broken.into_iter().map(|broken| broken.finding).collect(),
            }
            .into());
        }
        let broken = broken.into_iter().map(Contradiction::from);
        Ok(broken.chain(contract.contradictions.clone()).collect())
    }

    /// Ends the handoff that a sender held, with the outcome that its contract states; returns the
    /// account of that.
    fn release(
        &self,
        held: &mut Record,
        kind: &ContractType,
        contract: &Contract,
        sent: &HandoffId,
        violations: &[String],
    ) -> Result<Account, Refusal> {
        let seconds = self.held_seconds(held);
        let ended = |held: &Record| Account {
            held: seconds,
            ..trail::account(held)
        };
        if violations.is_empty() {
            let outcome = self.protocol.outcome(kind, contract.status.as_deref());
            let args = self.outcome_args(outcome, kind, contract)?;
            self.advance(held, outcome.event(), Some(sent), &args)?;
            return Ok(ended(held));
        }
        let failure = Failure {
            code: ROLE_VIOLATION.to_owned(),
            message: violation(&held.to, violations),
            details: None,
            recoverable: true,
            suggested_action: None,
            no_retry: false,
            run: None,
        };
        let args = EventArgs {
            failure: Some(failure),
            ..EventArgs::default()
        };
        self.advance(held, Event::Fail, Some(sent), &args)?;
        Ok(ended(held))
    }

    /// A contract's summary, beginning with the status if its sender skipped the work.
    fn told_summary(&self, kind: Option<&ContractType>, contract: &Contract) -> String {
        let word = contract.status.as_deref().zip(kind);
        match word.filter(|(word, kind)| self.protocol.outcome(kind, Some(word)) == Outcome::Skip) {
            Some((word, _)) => summary_line(&format!("{word}: {}", contract.summary)),
            None => contract.summary.clone(),
        }
    }

    /// What is recorded when a sender's work fails or is blocked: the contract's failure fields,
    /// else its summary.
    fn outcome_args(
        &self,
        outcome: Outcome,
        kind: &ContractType,
        contract: &Contract,
    ) -> Result<EventArgs, Refusal> {
        let mut args = EventArgs::default();
        if matches!(outcome, Outcome::Fail | Outcome::Block) {
            args.failure = self.reported(contract.failure.as_ref())?;
        }
        if args.failure.is_some() {
            // The failure's message is the reason.
        } else if outcome == Outcome::Fail {
            args.failure = Some(Failure {
                code: UNSPECIFIED.to_owned(),
                message: contract.summary.clone(),
                details: None,
                recoverable: true,
                suggested_action: None,
                no_retry: false,
                run: None,
            });
        } else if outcome == Outcome::Block {
            args.reason = Some(contract.summary.clone());
        }
        if outcome == Outcome::Block {
            args.questions = lacks(kind, &contract.value);
        }
        Ok(args)
    }

    /// Refuses a contract that reports a failure or a block if its sender holds nothing: a success
    /// would be recorded. If an agent that decides receives it first, it is allowed.
    fn ensure_nothing_failed(
        &self,
        kind: &ContractType,
        contract: &Contract,
        from: &AgentName,
        first: &AgentName,
    ) -> Result<(), ContractRefusal> {
        let outcome = self.protocol.outcome(kind, contract.status.as_deref());
        if outcome.event() == Event::Complete || self.protocol.steps_in(first) {
            return Ok(());
        }
        Err(ContractRefusal::NothingFailed {
            issue: self.key.clone(),
            agent: from.clone(),
            status: contract.status.clone().unwrap_or_default().into(),
        })
    }

    /// The agent that a contract's sender recommends as the next receiver.
    fn recommended(&self, kind: &ContractType, contract: &Contract) -> Option<AgentName> {
        let name = scalar(contract.value.pointer(kind.recommends.as_deref()?)?)?;
        Some(self.protocol.agent(&name)?.id.clone())
    }

    /// What a contract shows that its sender did against its role.
    pub(super) fn violations(
        &self,
        kind: &ContractType,
        contract: &Contract,
        from: &AgentName,
    ) -> Vec<String> {
        let Some(agent) = self.protocol.agent(from.as_str()) else {
            return Vec::new();
        };
        let done = kind.actions.as_deref();
        let done = done.and_then(|at| contract.value.pointer(at)?.as_array());
        let done = done.into_iter().flatten().filter_map(Value::as_str);
        let has = |list: &[String], action: &str| list.iter().any(|a| a == action);
        let mut found: Vec<String> = done
            .filter(|action| {
                has(&agent.forbidden, action)
                    || !agent.allowed.is_empty() && !has(&agent.allowed, action)
            })
            .map(str::to_owned)
            .collect();
        // Actions that the artifacts show, although the contract does not list them.
        let shown = kind.artifacts.iter().flat_map(|fields| {
            let kinds = fields.kind.iter().zip(&fields.list);
            let kinds =
                kinds.flat_map(|(at, list)| select(&contract.value, &format!("{list}/*{at}")));
            let kinds = kinds.into_iter().filter_map(Value::as_str);
            kinds.filter_map(|kind| fields.actions.get(kind)).flatten()
        });
        for action in shown {
            if has(&agent.forbidden, action) && !found.contains(action) {
                found.push(action.clone());
            }
        }
        found
    }

    /// Who receives a contract first: after a violation the orchestrator, else the deciding agent
    /// of its route, if it has one.
    pub(super) fn first_receiver(
        &self,
        from: &AgentName,
        to: &AgentName,
        kind: &str,
        violations: &[String],
    ) -> AgentName {
        if let Some(lead) = self.protocol.lead().filter(|_| !violations.is_empty()) {
            return lead.clone();
        }
        let mut routes = self.protocol.routes(from.as_str(), to.as_str());
        let route = routes.find(|r| r.contracts.iter().any(|c| c == kind));
        let via = route.and_then(|r| r.via.as_ref());
        via.filter(|via| *via != from).unwrap_or(to).clone()
    }

    /// The failed or blocked handoff that the held report was about: when the receiver of the
    /// report sends on, the new handoff replaces it.
    fn superseded(
        &self,
        issue: &Issue,
        held: &Record,
        sent: &HandoffId,
    ) -> Result<Option<Record>, Stop<E>> {
        // Usually that handoff has ended, and its record need not be read.
        let is_open = |id: &&HandoffId| issue.open.iter().any(|open| open.id == **id);
        let Some(reported) = held.follows.as_ref().filter(is_open) else {
            return Ok(None);
        };
        let mut record = self.record(reported)?;
        let by_report = |t: &Transition| t.sent.as_ref() == Some(&held.id);
        let stands = [State::Failed, State::Blocked, State::Dead];
        if !stands.contains(&record.state) || !record.latest().is_some_and(by_report) {
            return Ok(None);
        }
        self.withdraw(&mut record, sent)?;
        Ok(Some(record))
    }
}

/// The held handoff, with the violations by its sender that the contract reports.
fn accused(kind: &ContractType, contract: &Contract, mut held: Record) -> Record {
    let found = kind.violations.as_deref();
    let found = found.and_then(|at| contract.value.pointer(at)?.as_array());
    for action in found.into_iter().flatten().filter_map(Value::as_str) {
        if held.violations.iter().all(|known| known != action) {
            held.violations.push(action.to_owned());
        }
    }
    held
}

/// Refuses to end a handoff whose task was broken down while its parts are open.
pub(super) fn ensure_parts_done(held: &Record) -> Result<(), QueueRefusal> {
    if held.parts.is_empty() {
        return Ok(());
    }
    Err(QueueRefusal::PartsRun {
        id: held.id.clone(),
        parts: held.parts.clone(),
    })
}

/// What a request says that its answer must deliver.
fn expected(kind: &ContractType, value: &Value) -> Option<Expected> {
    let fields = kind.expects.as_ref()?;
    let text = |at: &str| scalar(value.pointer(at)?);
    Some(Expected {
        artifact_type: text(&fields.artifact_type)?,
        schema: text(&fields.schema)?,
        destination: text(&fields.destination)?,
    })
}

/// The commit that a review is about: the one that it names, else the one that its sender was
/// shown.
pub fn reviewed_commit(
    kind: &ContractType,
    contract: &Contract,
    issue: Option<&Issue>,
    held: Option<&Record>,
) -> Option<String> {
    let named = contract.reviewed_commit(kind);
    let named = named.map(str::to_ascii_lowercase);
    named.or_else(|| shown_commit(kind, issue, held))
}

/// The commit that a review's sender was shown: the newest that an event noted since the work was
/// sent, else the work's own.
pub fn shown_commit(
    kind: &ContractType,
    issue: Option<&Issue>,
    held: Option<&Record>,
) -> Option<String> {
    let held = held?;
    let noted = kind.reviews.as_ref()?.fact.as_ref().and_then(|fact| {
        let notes = issue?.annotations.iter().rev();
        let mut since = notes.filter(|note| Some(note.at) >= held.sent_at());
        let noted = since.find_map(|note| note.facts.get(fact)?.as_str())?;
        let is_id = noted.parse::<ObjectId>().is_ok();
        is_id.then(|| noted.to_ascii_lowercase())
    });
    noted.or_else(|| Some(held.code.as_ref()?.commit.clone()))
}

/// The code that a contract is about: for a review, the reviewed commit, if one is known; otherwise
/// the tip of its branch when it was sent.
fn code(
    kind: Option<&ContractType>,
    contract: &Contract,
    issue: &Issue,
    held: Option<&Record>,
    sent_with: Option<&Code>,
) -> Option<Code> {
    let Some(kind) = kind.filter(|kind| kind.reviews.is_some()) else {
        return sent_with.cloned();
    };
    let commit = reviewed_commit(kind, contract, Some(issue), held)?;
    let known = [sent_with, held.and_then(|held| held.code.as_ref())];
    let mut known = known.into_iter().flatten();
    let branch = known.clone().next()?.branch.clone();
    let tree = known.find(|code| code.commit == commit);
    let tree = tree.and_then(|code| code.tree.clone());
    Some(Code {
        branch,
        commit,
        tree,
    })
}

/// The inputs that a contract's sender lacks.
pub(super) fn lacks(kind: &ContractType, value: &Value) -> Vec<Question> {
    let Some(fields) = &kind.inputs else {
        return Vec::new();
    };
    let entries = value.pointer(&fields.list).and_then(Value::as_array);
    let entries = entries.into_iter().flatten();
    let question = |entry: &Value| {
        let text = |at: &Option<String>| scalar(entry.pointer(at.as_deref()?)?);
        let blocking = fields
            .blocking
            .as_deref()
            .and_then(|at| entry.pointer(at)?.as_bool());
        Some(Question {
            key: scalar(entry.pointer(&fields.key)?)?,
            kind: text(&fields.kind),
            description: text(&fields.description),
            optional: blocking == Some(false),
        })
    };
    entries.filter_map(question).collect()
}

/// The retry settings of a contract.
fn own_retry(kind: &ContractType, value: &Value) -> Option<OwnRetry> {
    let delay = kind.retry_delay.as_ref();
    let multiplier = kind.retry_multiplier.as_deref();
    let own = OwnRetry {
        initial_seconds: delay.and_then(|field| field.read(value)),
        multiplier: multiplier.and_then(|at| value.pointer(at)?.as_number().cloned()),
    };
    (own != OwnRetry::default()).then_some(own)
}

/// Records what a request expects of its answer, and its retry settings.
pub(super) fn expect_answer(new: &mut Record, kind: &ContractType, contract: &Contract) {
    new.expects = expected(kind, &contract.value);
    let retries = kind.max_retries.as_deref();
    let retries = retries.and_then(|at| contract.value.pointer(at)?.as_u64());
    new.max_retries = retries.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    new.retry = own_retry(kind, &contract.value);
}
