//! Events of a single handoff: who may cause them, and their other effects.

use handoff_base::Edit;
use handoff_base::ids::AgentName;
use handoff_base::text::quoted;
use handoff_protocol::{ContractType, Ends, Event, IllegalEvent, State};
use serde_json::Map;

use crate::decision::{answer, answer_command, decides, is_to_decide, needed};
use crate::layout;
use crate::planner::findings::undo;
use crate::planner::send::ensure_parts_done;
use crate::planner::tasks::is_part;
use crate::planner::{Changed, Planner, illegal, trail};
use crate::record::{
    AnswerGiven, Approval, Failure, FailureContext, Issue, NOT_ACKNOWLEDGED, Record, TIMED_OUT,
    UNSPECIFIED, View,
};
use crate::refusal::{
    QueueRefusal, Refusal, RequestRefusal, RetryRefusal, RoleRefusal, StateRefusal,
};
use crate::step::answers::Asked;
use crate::step::{EventArgs, Planned, Stop, answers};

/// How many answers the issue's file keeps; older ones are in the records of its handoffs.
const ANSWERS: usize = 50;

impl<E, V: View<E>> Planner<'_, E, V> {
    pub(super) fn change(
        &self,
        mut issue: Issue,
        number: u32,
        event: Event,
        args: &EventArgs,
    ) -> Result<Planned, Stop<E>> {
        let mut record = self.record(&self.id(number))?;
        let mut args = args.clone();
        self.name_run(&mut args);
        let args = &args;
        if self.is_repeated(&record, event, args) {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        if event == Event::Reject && self.disapproves(&record) {
            let no = Approval {
                approved: false,
                code: None,
            };
            let why = args.reason.as_deref().unwrap_or_default();
            return self.approve(issue, number, (why, &Map::new()), &no);
        }
        // An agent that may cancel only as the receiver must hold the lease.
        if event.is_holders() || event == Event::Cancel && self.cancels_as_receiver(&record) {
            self.ensure_lease_held(&record, args.token)?;
        }
        self.authorize(&record, event)?;
        ensure_not_outdated(&record, event, args)?;
        if event == Event::Extend {
            return self.extend(issue, record, args);
        }
        let mut args = args.clone();
        args.failure = match event {
            Event::Expire => Some(self.expired(&record)?),
            _ => self.reported(args.failure.as_ref())?,
        };
        let folder = match (args.context.as_ref(), record.kept_folder(event)) {
            (Some(context), Some(folder)) => Some(self.kept(&record, context, &folder)?),
            _ => None,
        };
        self.ensure_handed_out(&issue, &record, event)?;
        self.ensure_allowed(&issue, &record, event, &args)?;
        if event.is_claim() {
            self.within_budgets(&issue, &record)?;
        }
        if event.is_holders() {
            self.report_usage(&mut record)?;
        }
        if event == Event::Reassign {
            let receiver = args.receiver.as_ref().unwrap_or(&record.to).clone();
            self.reassign(&issue, &mut record, &receiver)?;
        }
        if matches!(event, Event::Retry | Event::Reassign) && record.state != State::Pending {
            self.count_attempt(&mut issue, &record);
        }
        let resumed = self.go_on_after(&mut issue, event);
        let held = self.held_seconds(&record);
        let waited = self.waited_seconds(&issue, &record, event)?;
        self.advance(&mut record, event, None, &args)?;
        self.follow_up(&mut issue, &record, event)?;
        if let Some((action, why)) = &args.decision {
            self.decided(&mut issue, &record.id, *action, why);
        }
        let mut account = trail::account(&record);
        (account.waited, account.held) = (waited, held);
        let decided = args.decision.as_ref().map(|(_, why)| why);
        account.reason = account.reason.or_else(|| decided.cloned());
        let cancelled = match event {
            Event::Cancel => self.cancel_parts(&mut record, &args)?,
            _ => Vec::new(),
        };
        if event == Event::Answer {
            self.keep_answer(&mut issue, &record, &args);
        }
        let subject = record.id.clone();
        let mut changed = Changed::of(issue, subject, [vec![record], cancelled].concat());
        self.follow_tasks(&mut changed)?;
        self.await_somebody(&mut changed)?;
        let mut step = self.commit(changed, &account)?;
        step.files.extend(folder);
        step.files.extend(resumed);
        Ok(Planned::Write(Box::new(step)))
    }

    /// Updates which work awaits a successor: completed work, and work whose successor was rejected
    /// or cancelled.
    fn follow_up(&self, issue: &mut Issue, record: &Record, event: Event) -> Result<(), Stop<E>> {
        let whole = record.task.as_ref().filter(|task| task.parent.is_none());
        match event {
            // A task that was broken down was followed by its parts, and its completion settles
            // those.
            Event::Complete if let Some(whole) = whole => {
                let mut tasks = issue.tasks.iter();
                issue.unfollowed.retain(|id| {
                    !tasks.any(|t| t.handoff == *id && t.parent.as_ref() == Some(&whole.id))
                });
            }
            Event::Complete if self.is_followed(&record.to) => {
                issue.unfollowed.push(record.id.clone());
            }
            // The receiver of a report sends nothing on, so the work continues with the reporting
            // agent.
            Event::Complete if self.protocol.ends() == Ends::ClosingContract => {
                self.give_back(issue, record)?;
            }
            // The sender may send again from what it had completed.
            Event::Reject | Event::Cancel => {
                let is_taken_back = record.is_taken_back(self.protocol);
                undo(&mut issue.findings, record, is_taken_back);
                self.give_back(issue, record)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes the work that a handoff was sent on from await a successor again.
    fn give_back(&self, issue: &mut Issue, record: &Record) -> Result<(), Stop<E>> {
        if let Some(id) = &record.follows
            && self.shared_record(id)?.state == State::Completed
            && !issue.unfollowed.contains(id)
        {
            issue.unfollowed.push(id.clone());
        }
        Ok(())
    }

    /// Whether work that this agent completes needs a successor: the agent can send on, unless it
    /// steps in and issues end without a closing contract.
    fn is_followed(&self, agent: &AgentName) -> bool {
        let decides = self.protocol.ends() == Ends::NothingOpen && self.protocol.steps_in(agent);
        !decides && !self.protocol.receivers(agent.as_str()).is_empty()
    }

    /// Keeps an answer in the issue, for every agent that works on it later.
    fn keep_answer(&self, issue: &mut Issue, record: &Record, args: &EventArgs) {
        let mut newest = record.transitions.iter().rev();
        let blocked = newest.find(|t| t.event == Some(Event::Block));
        issue.answers.push(AnswerGiven {
            at: self.step.at,
            by: self.step.by.clone(),
            id: record.id.clone(),
            asked: blocked.and_then(|t| t.reason.clone()),
            questions: record.questions().to_vec(),
            text: args.reason.clone(),
            values: args.values.clone(),
            outdated: Vec::new(),
        });
        let over = issue.answers.len().saturating_sub(ANSWERS);
        issue.answers.drain(..over);
    }

    /// The folder that saves the context of this attempt or claim.
    fn kept(
        &self,
        record: &Record,
        kept: &FailureContext,
        folder: &str,
    ) -> Result<(String, Edit), RetryRefusal> {
        match kept.tree.parse() {
            Ok(tree) if kept.folder == folder => {
                let path = layout::in_issue(self.key, folder);
                Ok((path, Edit::Folder(tree)))
            }
            _ => Err(RetryRefusal::OtherAttempt {
                id: record.id.clone(),
                attempt: record.attempt,
            }),
        }
    }

    /// Whether this event was the last one and had the same arguments; for a claim, whether it
    /// still holds.
    fn is_repeated(&self, record: &Record, event: Event, args: &EventArgs) -> bool {
        if event == Event::Claim {
            return self.holds(record);
        }
        // The token must be that of the newest claim, or the caller means an earlier one.
        let own = args.token.is_none_or(|token| token == record.claims());
        let by_worker = event.is_holders() || event == Event::TakeOver;
        own && record.latest().is_some_and(|last| {
            last.event == Some(event)
                && last.by == self.step.by
                && (!by_worker || last.worker.as_ref() == self.step.worker.as_ref())
                && last.sent.is_none()
                && last.reason == args.reason
                && last.questions == args.questions
                && last.values == args.values
                && last.receiver == args.receiver
                && args
                    .after
                    .is_none_or(|after| record.not_before == Some(last.at.later(after)))
                && same_failure(last.failure.as_ref(), args.failure.as_ref())
        })
    }

    /// Refuses an event that the lifecycle allows, but the contract, the tasks, the protocol or the
    /// time does not.
    pub(super) fn ensure_allowed(
        &self,
        issue: &Issue,
        record: &Record,
        event: Event,
        args: &EventArgs,
    ) -> Result<(), Refusal> {
        let id = record.id.clone();
        if record.state == State::Blocked
            && let Err(illegal) = record.state.on(event)
        {
            let answer = Some(answer(record, &decides(self.protocol, issue, record)));
            return Err(StateRefusal::Illegal {
                id,
                illegal,
                answer,
            }
            .into());
        }
        if event.is_claim() || event == Event::Block {
            self.ensure_few_transitions(record)?;
        }
        if event.is_claim() || event == Event::Expire {
            self.ensure_not_paused(issue, &record.to)?;
        }
        Err(match event {
            Event::Claim if !record.waits_for.is_empty() => {
                let waits_for = record.waits_for.clone();
                QueueRefusal::Waits { id, waits_for }.into()
            }
            // With a reason, the work was already begun elsewhere and can't wait.
            Event::Claim if args.reason.is_some() => return Ok(()),
            Event::Claim => match record.waits_until(self.step.at) {
                Some(not_before) => QueueRefusal::TooEarly { id, not_before }.into(),
                None => return Ok(()),
            },
            Event::TakeOver => return Ok(self.ensure_can_take_over(record, args)?),
            Event::Complete | Event::Fail | Event::Block | Event::Release
                if !record.parts.is_empty() =>
            {
                return Ok(ensure_parts_done(record)?);
            }
            Event::Release => return Ok(self.ensure_can_release(record, args)?),
            Event::Complete if record.state == State::InProgress => {
                match self.unfinished(issue, record) {
                    Some(refusal) => refusal.into(),
                    None => return Ok(()),
                }
            }
            Event::Answer if record.state == State::Blocked => {
                let questions = record.questions();
                let asked = Asked { id: &id, questions };
                let findings = answers::faults(asked, &args.values);
                let words = args.reason.is_some() && args.values.is_empty();
                if findings.is_empty() || words && answers::can_be_words(questions) {
                    return Ok(());
                }
                let command = answer_command(&id, &needed(questions));
                RequestRefusal::AnswerUnfit {
                    id,
                    command,
                    findings,
                }
                .into()
            }
            Event::Retry | Event::Redrive | Event::Reassign if record.state != State::Pending => {
                let spent = self.why_spent(record).filter(|_| event == Event::Retry);
                let rounds = || issue.attempts_spent(self.protocol, &record.contract_type);
                let why = spent.or_else(|| rounds().filter(|_| !self.is_person()));
                match why {
                    Some(why) => RetryRefusal::Spent { id, why }.into(),
                    None => return Ok(()),
                }
            }
            // It is part of the step of a failure, and can't be requested.
            Event::Exhaust => illegal(
                record,
                IllegalEvent {
                    state: record.state,
                    event,
                },
            ),
            _ => return Ok(()),
        })
    }

    /// Why only a contract can complete this handoff, if that is so.
    fn unfinished(&self, issue: &Issue, record: &Record) -> Option<RequestRefusal> {
        let (id, to) = (record.id.clone(), record.to.clone());
        let names = |kind: &ContractType| kind.name.clone();
        let answers = self.protocol.answers_to(&record.contract_type);
        if !answers.is_empty() {
            return Some(RequestRefusal::NeedsAnswer {
                types: answers.into_iter().map(names).collect(),
                from: record.from.clone(),
                id,
                to,
            });
        }
        let parent = record.task.as_ref().and_then(|task| task.parent.clone());
        if let Some(task) = parent.filter(|_| is_part(issue, &id))
            && let Some((receiver, kind)) =
                self.protocol.reports_to(record.to.as_str(), &record.from)
        {
            return Some(RequestRefusal::NeedsReport {
                id,
                from: to,
                to: receiver.clone(),
                task: task.into(),
                kind: kind.name.as_str().into(),
            });
        }
        is_to_decide(self.protocol, record).then(|| RequestRefusal::NeedsDecision {
            id,
            agent: to,
            to: record.successor().cloned(),
        })
    }

    /// Gives a handoff to another agent that its sender could have sent it to.
    fn reassign(
        &self,
        issue: &Issue,
        record: &mut Record,
        receiver: &AgentName,
    ) -> Result<(), Stop<E>> {
        let basis = record.follows.as_ref();
        let basis = basis.map(|id| self.record(id)).transpose()?;
        self.ensure_no_loop(issue, &record.from, receiver, basis.as_ref())?;
        let others = self.others_for(record);
        if !others.contains(&receiver) {
            return Err(RetryRefusal::NotAssignable {
                id: record.id.clone(),
                agent: receiver.clone(),
                others: others.into_iter().cloned().collect(),
                to: Box::new(record.to.clone()),
                state: record.state,
                is_person: self.protocol.is_person(receiver.as_str()),
            }
            .into());
        }
        record.to = receiver.clone();
        Ok(())
    }

    /// A handoff that is given to another agent, with what else is set of its issue; `None` if that
    /// was so already.
    pub(super) fn reassigned(
        &self,
        issue: &mut Issue,
        (number, receiver): &(u32, AgentName),
        reason: &str,
    ) -> Result<Option<Record>, Stop<E>> {
        let (event, mut record) = (Event::Reassign, self.record(&self.id(*number))?);
        let args = EventArgs {
            receiver: Some(receiver.clone()),
            ..EventArgs::because(reason)
        };
        if self.is_repeated(&record, event, &args) {
            return Ok(None);
        }
        self.authorize(&record, event)?;
        ensure_not_outdated(&record, event, &args)?;
        self.ensure_allowed(issue, &record, event, &args)?;
        self.reassign(issue, &mut record, receiver)?;
        if record.state != State::Pending {
            self.count_attempt(issue, &record);
        }
        self.advance(&mut record, event, None, &args)?;
        Ok(Some(record))
    }

    /// The other agents to which the handoff's sender could have sent its contract.
    fn others_for<'a>(&'a self, record: &'a Record) -> Vec<&'a AgentName> {
        self.protocol.others_for(
            record.from.as_str(),
            record.to.as_str(),
            &record.contract_type,
        )
    }

    /// Sets the code of a failed run: the protocol's code for that kind of failure; the kind itself
    /// if the protocol defines no codes.
    fn name_run(&self, args: &mut EventArgs) {
        let Some(failure) = &mut args.failure else {
            return;
        };
        let Some(run) = failure.run else { return };
        let codes = &self.protocol.definition().words.errors;
        let mut known = codes.iter().filter(|(_, code)| code.runs.contains(&run));
        failure.code = match known.next() {
            Some((code, _)) => code.clone(),
            None if codes.is_empty() => run.as_str().to_owned(),
            None => UNSPECIFIED.to_owned(),
        };
        // Stored only if the code does not say it already.
        failure.run = Some(run).filter(|run| run.as_str() != failure.code);
    }

    /// A failure, completed by the protocol's defaults for its code.
    pub(super) fn reported(
        &self,
        failure: Option<&Failure>,
    ) -> Result<Option<Failure>, RetryRefusal> {
        let codes = &self.protocol.definition().words.errors;
        let own = [UNSPECIFIED, TIMED_OUT, NOT_ACKNOWLEDGED];
        let Some(failure) = failure.filter(|_| !codes.is_empty()) else {
            return Ok(failure.cloned());
        };
        let mut failure = failure.clone();
        let Some(known) = codes.get(&failure.code) else {
            if own.contains(&failure.code.as_str()) {
                return Ok(Some(failure));
            }
            return Err(RetryRefusal::UnknownCode {
                code: quoted(&failure.code),
                protocol: self.protocol.name().to_owned(),
                codes: codes.keys().cloned().collect(),
            });
        };
        let advice = failure.suggested_action.get_or_insert_default();
        if advice.is_empty() {
            advice.clone_from(&known.recovery);
        }
        Ok(Some(failure))
    }

    /// Refuses an event that the actor is not allowed to cause.
    fn authorize(&self, record: &Record, event: Event) -> Result<(), RoleRefusal> {
        let name = &self.step.by;
        let may = if event.is_receivers() {
            *name == record.to || event == Event::Reject && self.is_person()
        } else if event == Event::Answer {
            // In a request from an agent to itself, the sender can't answer.
            *name == record.from && *name != record.to || self.leads()
        } else {
            self.may_decide(record)
        };
        if may {
            return Ok(());
        }
        Err(RoleRefusal::NotYours {
            id: record.id.clone(),
            agent: name.clone(),
            is_person: self.is_person(),
            event,
            to: record.to.clone(),
        })
    }

    /// Whether the actor may decide about a handoff.
    pub(super) fn may_decide(&self, record: &Record) -> bool {
        let name = &self.step.by;
        *name == record.to || *name == record.from || self.leads()
    }

    /// Whether the actor may cancel a held handoff only in its role as the receiver.
    fn cancels_as_receiver(&self, record: &Record) -> bool {
        let name = &self.step.by;
        record.lease.is_some() && *name == record.to && *name != record.from && !self.leads()
    }

    /// Whether the actor, an orchestrator or a person, may decide about everything.
    pub(super) fn leads(&self) -> bool {
        self.protocol.steps_in(&self.step.by)
    }
}

/// Refuses an event that was said before the question or the handoff that it would apply to.
fn ensure_not_outdated(
    record: &Record,
    event: Event,
    args: &EventArgs,
) -> Result<(), StateRefusal> {
    let since = match event {
        Event::Answer => record.latest().map(|t| t.at),
        _ => record.sent_at(),
    };
    match (since, args.said_at) {
        (Some(since), Some(said_at)) if since > said_at => Err(StateRefusal::SaidBefore {
            id: record.id.clone(),
            since,
            said_at,
        }),
        _ => Ok(()),
    }
}

/// Whether a failure is the same as one reported before, apart from the protocol's defaults.
fn same_failure(known: Option<&Failure>, now: Option<&Failure>) -> bool {
    match (known, now) {
        (Some(known), Some(now)) if now.suggested_action.is_none() => {
            let suggested_action = None;
            *now == Failure {
                suggested_action,
                ..known.clone()
            }
        }
        _ => known == now,
    }
}
