//! The spans of one issue.

use handoff::base::Moment;
use handoff::base::ids::IssueKey;
use handoff::contract::Input;
use handoff::ledger::{
    ChangeSurvey, HandoffSurvey, IssueSurvey, LedgerError, Snapshot, UsageSurvey,
};
use handoff::model::{
    Contract, Issue, IssueStatus, Record, Spent, TraceParent, View, review_imported,
};
use handoff::protocol::{Event as Happened, State, Traces};
use serde_json::Value;

use super::Origin;
use super::encoding::{Attributes, ERROR, Event, INTERNAL, Link, Span, Status, nanos};
use super::ids::TraceId;
use handoff_graph::times::{Spell, spells};

use crate::events::escalations;

/// An issue, with the trace data of its contracts.
#[derive(Debug)]
pub struct Traced {
    issue: Issue,
    records: Vec<Record>,
    /// In the order of the handoffs.
    contracts: Vec<ContractTrace>,
}

/// One contract's attributes and events.
#[derive(Clone, Debug, Default)]
struct ContractTrace {
    attributes: Attributes,
    events: Vec<Event>,
}

impl Traced {
    /// Reads an issue; `None` if it does not exist.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn read(tip: &Snapshot<'_>, key: &IssueKey) -> Result<Option<Self>, LedgerError> {
        let folder = tip.issue(key)?;
        let Some(issue) = folder.issue()? else {
            return Ok(None);
        };
        let rules = tip.rules(issue.protocol.as_str())?;
        let traces = rules.protocol().definition().traces.as_ref();
        let records = folder.records()?;
        let escalations = escalations(&IssueSurvey::of(&issue, &records), Some(rules.protocol()));
        let mut contracts = Vec::with_capacity(records.len());
        for record in &records {
            let Some(traces) = traces else {
                contracts.push(ContractTrace::default());
                continue;
            };
            let bytes = folder.contract(record)?;
            let (input, imported) = (Input::read(&bytes), record.imported.as_ref());
            let review = review_imported(rules.protocol(), &rules, &input, Some(key), imported)?;
            let at = record.sent_at().unwrap_or(issue.opened_at);
            let own = |(_, number): &&(Moment, u32)| *number == record.id.number();
            let escalated: Vec<Moment> = escalations.iter().filter(own).map(|e| e.0).collect();
            let found = review
                .contract
                .map(|contract| contract_trace(traces, &contract, at, &escalated));
            contracts.push(found.unwrap_or_default());
        }
        Ok(Some(Self {
            issue,
            records,
            contracts,
        }))
    }
}

/// Extracts the data that the protocol's trace rules name from a contract, with the time it was
/// sent and the times at which it reached a person.
fn contract_trace(
    traces: &Traces,
    contract: &Contract,
    at: Moment,
    escalated: &[Moment],
) -> ContractTrace {
    let read = |values: &std::collections::BTreeMap<String, handoff::protocol::TraceValue>| {
        let mut attributes = Attributes::default();
        for (name, value) in values {
            attributes.add_some(name, value.read(&contract.value));
        }
        attributes
    };
    let events = traces
        .events
        .iter()
        .filter(|event| event.is(&contract.kind, &contract.value));
    let events = events.flat_map(|event| {
        let times = if event.escalates {
            escalated
        } else {
            std::slice::from_ref(&at)
        };
        times.iter().map(|at| Event {
            time_unix_nano: nanos(*at),
            name: event.name.clone(),
            attributes: read(&event.attributes).0,
        })
    });
    ContractTrace {
        attributes: read(&traces.attributes),
        events: events.collect(),
    }
}

/// The spans of an issue: its own first, then each handoff's with its periods. Open spans end now.
pub fn spans(origin: &Origin, traced: &Traced, now: Moment) -> Vec<Span> {
    let issue = IssueSurvey::of(&traced.issue, &traced.records);
    let trace = Trace {
        id: TraceId::of(&origin.ledger, &issue.key),
        issue: &issue,
        contracts: &traced.contracts,
        // If the clock was set back, spans must not end before they were recorded.
        now: now.max(issue.updated_at),
    };
    let mut spans = vec![trace.root()];
    for (handoff, contract) in issue.handoffs.iter().zip(&traced.contracts) {
        trace.handoff(handoff, contract, &mut spans);
    }
    spans
}

struct Trace<'a> {
    id: TraceId,
    issue: &'a IssueSurvey<'a>,
    contracts: &'a [ContractTrace],
    now: Moment,
}

impl Trace<'_> {
    fn span(&self, id: String, parent: Option<String>, name: String) -> Span {
        Span {
            trace_id: self.id.digits(),
            span_id: id,
            parent_span_id: parent,
            name,
            kind: INTERNAL,
            start_time_unix_nano: String::new(),
            end_time_unix_nano: String::new(),
            attributes: Vec::new(),
            events: Vec::new(),
            links: Vec::new(),
            status: None,
        }
    }

    /// Sets the start and end. An open span ends now, and none ends before its start.
    fn lasts(
        &self,
        span: &mut Span,
        attributes: &mut Attributes,
        since: Moment,
        until: Option<Moment>,
    ) {
        if until.is_none() {
            attributes.add("git_handoff.open", true);
        }
        span.start_time_unix_nano = nanos(since);
        span.end_time_unix_nano = nanos(until.unwrap_or(self.now).max(since));
    }

    fn of_handoff(&self, number: u32) -> String {
        self.id.span(number, "")
    }

    fn link(&self, span: String, why: &str) -> Link {
        let mut attributes = Attributes::default();
        attributes.add("git_handoff.link", why);
        Link {
            trace_id: self.id.digits(),
            span_id: span,
            attributes: attributes.0,
            flags: 0,
        }
    }

    fn root(&self) -> Span {
        let issue = self.issue;
        let name = format!("invoke_workflow {}", issue.protocol);
        let mut span = self.span(self.of_handoff(0), None, name);
        let mut attributes = Attributes::default();
        attributes.add("gen_ai.operation.name", "invoke_workflow");
        attributes.add("gen_ai.workflow.name", issue.protocol.as_str());
        attributes.add("gen_ai.conversation.id", issue.key.as_str());
        attributes.add("git_handoff.issue", issue.key.as_str());
        attributes.add("git_handoff.protocol", issue.protocol.as_str());
        attributes.add("git_handoff.status", issue.status.as_str());
        attributes.add("git_handoff.handoffs", issue.handoffs.len());
        if issue.reopened > 0 {
            attributes.add("git_handoff.reopened", issue.reopened);
        }
        let until = match issue.status {
            IssueStatus::Open => None,
            IssueStatus::Completed | IssueStatus::Cancelled => {
                issue.completed_at.or(Some(issue.updated_at))
            }
        };
        self.lasts(&mut span, &mut attributes, issue.opened_at, until);
        span.attributes = attributes.0;
        span
    }

    fn handoff(
        &self,
        handoff: &HandoffSurvey<'_>,
        contract: &ContractTrace,
        spans: &mut Vec<Span>,
    ) {
        let id = self.issue.id(handoff).to_string();
        let name = format!("handoff {}", handoff.contract_type);
        let own = self.of_handoff(handoff.number);
        let mut span = self.span(own.clone(), Some(self.of_handoff(0)), name);
        let mut attributes = Attributes::default();
        attributes.add("git_handoff.id", id.as_str());
        attributes.add("git_handoff.issue", self.issue.key.as_str());
        attributes.add("git_handoff.protocol", self.issue.protocol.as_str());
        attributes.add("git_handoff.contract_type", handoff.contract_type);
        attributes.add("git_handoff.from", handoff.from.as_str());
        attributes.add("git_handoff.to", handoff.to.as_str());
        attributes.add("git_handoff.state", handoff.state.as_str());
        attributes.add("git_handoff.attempt", handoff.attempt);
        attributes.add("git_handoff.summary", handoff.summary);
        attributes.add_some("git_handoff.priority", handoff.priority);
        attributes.add_some("git_handoff.task", handoff.task);
        attributes.add("gen_ai.conversation.id", self.issue.key.as_str());
        attributes.0.extend(usage(handoff, 0).0);
        self.contract_data(handoff, contract, &mut span, &mut attributes);
        self.relations(handoff, &mut span);
        let last = handoff.changes.last();
        let since = handoff.sent_at().unwrap_or(self.issue.opened_at);
        let until = last.filter(|c| c.to.is_terminal()).map(|c| c.at);
        self.lasts(&mut span, &mut attributes, since, until);
        if matches!(handoff.state, State::Failed | State::Dead | State::Rejected) {
            let mut why = handoff.changes.iter().rev();
            let why = why.find(|c| c.failure.is_some() || c.to == State::Rejected);
            fails(&mut span, &mut attributes, why.or(last));
        }
        span.attributes = attributes.0;
        let (periods, elsewhere) = self.periods(handoff, &own, &id);
        for change in elsewhere {
            links(&mut span, change);
        }
        spans.push(span);
        spans.extend(periods);
    }

    /// Adds the data of the handoff's contract and of its answers, and its decisions.
    fn contract_data(
        &self,
        handoff: &HandoffSurvey<'_>,
        contract: &ContractTrace,
        span: &mut Span,
        attributes: &mut Attributes,
    ) {
        let answers = self.issue.handoffs.iter().zip(self.contracts);
        let answers = answers.filter(|(other, _)| other.answers == Some(handoff.number));
        let answers = answers.map(|(_, contract)| contract);
        // The newest answer's attributes take precedence.
        let all = std::iter::once(contract).chain(answers.clone().rev());
        for attribute in all.flat_map(|contract| &contract.attributes.0) {
            if attributes.0.iter().all(|known| known.key != attribute.key) {
                attributes.0.push(attribute.clone());
            }
        }
        // The events of an answer are on the span of its request.
        let own = handoff.answers.is_none().then_some(contract);
        let events = own.into_iter().chain(answers);
        span.events
            .extend(events.flat_map(|contract| contract.events.iter().cloned()));
        let decisions = self.issue.decisions.iter();
        for decision in decisions.filter(|d| d.number == handoff.number) {
            let mut attributes = Attributes::default();
            attributes.add("git_handoff.action", decision.action.as_str());
            span.events.push(Event {
                time_unix_nano: nanos(decision.at),
                name: "git_handoff.decision".to_owned(),
                attributes: attributes.0,
            });
        }
    }

    /// Links a handoff's span to those of the handoffs that it relates to.
    fn relations(&self, handoff: &HandoffSurvey<'_>, span: &mut Span) {
        let relations = [
            (handoff.follows, "follows"),
            (handoff.answers, "answers"),
            (self.returns_to(handoff), "returns_to"),
        ];
        for (other, why) in relations {
            let link = other.map(|number| self.link(self.of_handoff(number), why));
            span.links.extend(link);
        }
    }

    /// The spans of a handoff's periods, and the events that no period of work begins or ends with.
    fn periods<'h>(
        &self,
        handoff: &'h HandoffSurvey<'h>,
        parent: &str,
        id: &str,
    ) -> (Vec<Span>, Vec<&'h ChangeSurvey<'h>>) {
        let mut elsewhere: Vec<&ChangeSurvey<'_>> = handoff.changes.iter().collect();
        let mut periods = Vec::new();
        let mut attempt_before: Option<String> = None;
        for (index, spell) in spells(handoff).iter().enumerate() {
            let is_work = spell.state == State::InProgress;
            if is_work {
                let own = [Some(spell.began_by), spell.ended_by].into_iter().flatten();
                elsewhere.retain(|change| !own.clone().any(|own| std::ptr::eq(*change, own)));
            } else if spell
                .ended_by
                .is_some_and(|c| c.event == Some(Happened::Exhaust))
            {
                // The next period is `dead`, whose span reports this failure.
                continue;
            }
            let span_id = self.id.span(handoff.number, &index.to_string());
            let mut period = self.period(spell, span_id, parent, id);
            if is_work {
                let token = claim_number(handoff, spell.began_by);
                period.attributes.extend(usage(handoff, token).0);
                let before = attempt_before.replace(period.span_id.clone());
                let link = before.map(|before| self.link(before, "attempt_before"));
                period.links.extend(link);
            }
            periods.push(period);
        }
        (periods, elsewhere)
    }

    /// A period in one state.
    fn period(&self, spell: &Spell<'_>, id: String, parent: &str, handoff: &str) -> Span {
        let agent = spell.agent.as_str();
        let is_work = spell.state == State::InProgress;
        let title = if is_work {
            format!("invoke_agent {agent}")
        } else {
            spell.state.as_str().to_owned()
        };
        let mut span = self.span(id, Some(parent.to_owned()), title);
        let mut attributes = Attributes::default();
        if is_work {
            attributes.add("gen_ai.operation.name", "invoke_agent");
            attributes.add("gen_ai.agent.name", agent);
        }
        attributes.add("gen_ai.conversation.id", self.issue.key.as_str());
        attributes.add("git_handoff.id", handoff);
        attributes.add("git_handoff.state", spell.state.as_str());
        attributes.add("git_handoff.agent", agent);
        self.lasts(&mut span, &mut attributes, spell.since, spell.until);
        if is_work {
            links(&mut span, spell.began_by);
            if let Some(ended_by) = spell.ended_by {
                links(&mut span, ended_by);
                if ended_by.to == State::Failed {
                    fails(&mut span, &mut attributes, Some(ended_by));
                }
            }
        }
        span.attributes = attributes.0;
        span
    }

    /// The receiver's earlier handoff, if the work returns to it.
    fn returns_to(&self, handoff: &HandoffSurvey<'_>) -> Option<u32> {
        let mut before = self.issue.handoff(handoff.follows?)?;
        // Only go back to older handoffs: a tampered record could lead around in a circle.
        while let Some(next) = before.follows.filter(|next| *next < before.number) {
            before = self.issue.handoff(next)?;
            if before.sent_to == handoff.sent_to {
                return Some(before.number);
            }
        }
        None
    }
}

/// Marks a span as failed.
fn fails(span: &mut Span, attributes: &mut Attributes, why: Option<&ChangeSurvey<'_>>) {
    let code = why.and_then(|change| {
        let expired = change.event == Some(Happened::Expire);
        change.failure.or(expired.then_some("TIMEOUT"))
    });
    attributes.add_some("error.type", code);
    let reason = why.and_then(|change| change.reason.as_deref());
    let message = [code, reason].into_iter().flatten();
    span.status = Some(Status {
        code: ERROR,
        message: message.collect::<Vec<_>>().join(": "),
    });
}

/// Links a span to the agent's own span in which an event was caused, if it was recorded.
fn links(span: &mut Span, change: &ChangeSurvey<'_>) {
    let Some(parent) = change.traceparent else {
        return;
    };
    let (trace_id, span_id) = (parent.trace_id(), parent.span_id());
    let is_known = |link: &Link| link.trace_id == trace_id && link.span_id == span_id;
    if span.links.iter().any(is_known) {
        return;
    }
    let mut attributes = Attributes::default();
    attributes.add("git_handoff.link", "made_in");
    let event: Value = change.event.map_or("send", Happened::as_str).into();
    attributes.add("git_handoff.event", event);
    span.links.push(Link {
        trace_id,
        span_id,
        attributes: attributes.0,
        flags: flags(parent),
    });
}

/// The trace's flags, with the bit for a remote parent.
fn flags(parent: TraceParent) -> u32 {
    const HAS_IS_REMOTE: u32 = 0x100;
    const IS_REMOTE: u32 = 0x200;
    u32::from(parent.flags()) | HAS_IS_REMOTE | IS_REMOTE
}

/// The number of the claim that a period began with; 0 if it did not begin with a claim.
fn claim_number(handoff: &HandoffSurvey<'_>, began_by: &ChangeSurvey<'_>) -> u32 {
    let claims = |change: &&ChangeSurvey<'_>| change.event.is_some_and(Happened::is_claim);
    if !claims(&began_by) {
        return 0;
    }
    let before = handoff
        .changes
        .iter()
        .take_while(|change| !std::ptr::eq(*change, began_by));
    u32::try_from(before.filter(claims).count() + 1).unwrap_or(u32::MAX)
}

/// The usage of a claim, with attribute names of the GenAI conventions where they exist.
fn usage(handoff: &HandoffSurvey<'_>, token: u32) -> Attributes {
    let own: Vec<_> = handoff
        .usage
        .iter()
        .filter(|usage| usage.token == token)
        .collect();
    let mut attributes = Attributes::default();
    let Some(first) = own.first() else {
        return attributes;
    };
    let only = |text: &'static str, name: for<'u> fn(&UsageSurvey<'u>) -> &'u str| {
        let value = name(first);
        let same = !value.is_empty() && own.iter().all(|usage| name(usage) == value);
        same.then(|| (text, value.to_owned()))
    };
    let names = [
        only("gen_ai.provider.name", |usage| usage.provider),
        only("gen_ai.response.model", |usage| usage.model),
    ];
    for (name, value) in names.into_iter().flatten() {
        attributes.add(name, value);
    }
    let mut sum = Spent::default();
    own.iter().for_each(|usage| sum.add(&usage.spent));
    attributes.add("gen_ai.usage.input_tokens", sum.input_tokens);
    attributes.add("gen_ai.usage.output_tokens", sum.output_tokens);
    attributes.add("gen_ai.usage.cache_read.input_tokens", sum.cached_tokens);
    for (currency, cost) in &sum.cost {
        let name = format!("git_handoff.cost.{}", currency.as_str().to_lowercase());
        attributes.add(&name, f64::from(*cost));
    }
    attributes
}
