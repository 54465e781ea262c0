//! Contracts that events send or draft.

use handoff::base::Moment;
use handoff::base::finding::Finding;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::pointer::parts;
use handoff::contract::Input;
use handoff::ledger::{ContractError, Done, LedgerError, Offer, Target};
use handoff::model::planner::Holder;
use handoff::model::{
    Annotation, Delivery, EventArgs, Issue, IssueStatus, Record, SendOptions, Update, View,
};
use handoff::protocol::{
    ContractRule, ContractType, Definition, Event as Happens, EventRule, Fact, FactRule, Protocol,
    State, Unfinished,
};
use handoff::templates::{Known, known, left_to_fill, skeleton, usual_format, written};
use serde_json::{Map, Value, json};

use super::carry::update_if;
use super::effects::Work;
use super::outcome::{Draft, Left};
use super::staleness::{News, state_of};
use super::values::{facts, value, why_cut};

/// The prefix of an unfinished issue's summary, before the missing fields.
const MISSING: &str = "Missing: ";

/// How an agent can send its contract.
enum From {
    /// Its agent can send it now.
    Ready,
    /// Only after it claims this handoff, which opened the issue unfinished.
    Unfinished(Box<Record>),
}

pub(super) fn opens(protocol: &Protocol, from: &AgentName, contract: &ContractRule) -> bool {
    protocol.opens(from.as_str(), contract.to.as_str(), &contract.contract)
}

impl Work<'_, '_, '_> {
    /// Sends or drafts a contract.
    pub(super) fn contract(
        &mut self,
        rule: &EventRule,
        contract: &ContractRule,
        send: bool,
    ) -> Result<(), LedgerError> {
        let delivery = self.part(rule, "send")?;
        if self.had(rule, "sent", &delivery)? {
            return Ok(());
        }
        let protocol = self.rules.protocol().clone();
        let Some(kind) = protocol.contract_type(&contract.contract) else {
            return Ok(());
        };
        let opens = opens(&protocol, &rule.agent, contract);
        let from = match self.turn(rule, contract, opens)? {
            Ok(from) => from,
            Err(why) => return self.not_unless_had(rule, "sent", &delivery, why),
        };
        let value = self.filled(rule, contract, kind)?;
        let mut draft = self.draft(rule, kind, &contract.to, &value)?;
        let mut missing = self.cut(contract);
        for why in &missing {
            self.not(rule, format!("not all of it is in the draft: {why}"));
        }
        let asked = draft.missing.iter();
        missing.extend(asked.map(|left| format!("{}: {}", field(&left.path), left.asked)));
        if send && missing.is_empty() {
            draft.findings = self.faults(&draft, &from)?;
        }
        if !draft.findings.is_empty() {
            // People's text may not fit the contract's schema: then an agent has to write it.
            self.not(rule, "what the event says does not fit the contract");
            let root = format!("/{}/", kind.root);
            missing.extend(draft.findings.iter().map(|found| {
                let path = found.path.strip_prefix(&root).unwrap_or(&found.path);
                format!("{}: {}", field(path), found.message)
            }));
        }
        if send && missing.is_empty() {
            return self.send(rule, &draft, from);
        }
        if send && !draft.missing.is_empty() {
            let places: Vec<&str> = draft.missing.iter().map(|left| &*left.path).collect();
            let places = places.join(", ");
            let why = format!("the event does not provide all of the contract: {places}");
            self.not(rule, why);
        }
        if let Some(unfinished) = contract.unfinished.as_ref().filter(|_| send) {
            self.leave(rule, contract, (unfinished, from), &missing)?;
        }
        self.begin(rule, draft);
        Ok(())
    }

    /// Sends a complete contract; its sender first claims the handoff that it continues.
    fn send(&mut self, rule: &EventRule, draft: &Draft, from: From) -> Result<(), LedgerError> {
        let token = match from {
            From::Ready => None,
            From::Unfinished(record) => match self.take_up(rule, *record)? {
                Ok(done) => Some(done.receipt.record.claims()),
                refused => return self.took(rule, "sent", Map::new(), refused),
            },
        };
        let delivery = self.part(rule, "send")?;
        let done = self.offer(&rule.agent, &draft.text, token, delivery);
        self.took(rule, "sent", Map::new(), done)
    }

    /// Claims the handoff that a contract continues, or takes it over from an interrupted run of
    /// this delivery. The inner result is the ledger's.
    fn take_up(
        &mut self,
        rule: &EventRule,
        record: Record,
    ) -> Result<Result<Done, LedgerError>, LedgerError> {
        let (target, event, args) = taking_up(&record);
        let part = match event {
            Happens::TakeOver => "take-over",
            _ => "claim",
        };
        let session = self.context.session.delivering(self.part(rule, part)?);
        let ledger = &mut self.context.ledger;
        Ok(ledger.claim(&session, &rule.agent, &target, event, &args))
    }

    /// Sends a document in an agent's name.
    fn offer(
        &mut self,
        agent: &AgentName,
        text: &str,
        token: Option<u32>,
        delivery: Delivery,
    ) -> Result<Done, LedgerError> {
        let session = self.context.session.delivering(delivery);
        let protocol = self.rules.protocol().name().parse::<AgentName>().ok();
        let input = Input::read(text.as_bytes());
        let parties = (Some(agent), protocol.as_ref());
        let options = claimed_by(token);
        let offer = offered(&input, &self.key, parties, &options);
        self.context.ledger.send(&session, &offer)
    }

    /// The faults of a document as a contract of its issue.
    fn faults(&mut self, draft: &Draft, from: &From) -> Result<Vec<Finding>, LedgerError> {
        let protocol = self.rules.protocol().name().parse::<AgentName>().ok();
        let input = Input::read(draft.text.as_bytes());
        let parties = (Some(&draft.from), protocol.as_ref());
        let options = SendOptions::default();
        let offer = offered(&input, &self.key, parties, &options);
        let review = self.context.ledger.tip()?.match_contract(&offer)?.review;
        if review.holds_secrets() {
            return Err(ContractError::Secret(review.findings).into());
        }
        let mut faults = review.findings;
        faults.retain(Finding::is_error);
        // Rehearse claim and send: a handoff is claimed only if its contract can be sent.
        if let (true, From::Unfinished(record)) = (faults.is_empty(), from) {
            let session = self.context.session;
            let (target, event, args) = taking_up(record);
            let sent = self.context.ledger.rehearse(|ledger| {
                let claimed = ledger.claim(session, &draft.from, &target, event, &args)?;
                let options = &claimed_by(Some(claimed.receipt.record.claims()));
                ledger.send(session, &Offer { options, ..offer })
            });
            if let Err(LedgerError::Refused(mut refusal)) = sent
                && let Some(misfits) = refusal.misfits()
            {
                faults.append(misfits);
            }
        }
        Ok(faults)
    }

    /// Leaves an incomplete issue to the agent that finishes it: opens it, or notes the missing
    /// fields on its first handoff.
    fn leave(
        &mut self,
        rule: &EventRule,
        contract: &ContractRule,
        (unfinished, from): (&Unfinished, From),
        missing: &[String],
    ) -> Result<(), LedgerError> {
        match from {
            From::Ready if self.issue()?.is_some() => Ok(()),
            From::Ready if !unfinished.begins_with(self.event.action()) => {
                self.not(rule, "such an event opens no issue that lacks something");
                Ok(())
            }
            From::Ready => self.open_unfinished(rule, contract, unfinished, missing),
            From::Unfinished(record) => self.note_missing(rule, contract, &record, missing),
        }
    }

    fn open_unfinished(
        &mut self,
        rule: &EventRule,
        contract: &ContractRule,
        unfinished: &Unfinished,
        missing: &[String],
    ) -> Result<(), LedgerError> {
        let protocol = self.rules.protocol().clone();
        let Some(kind) = protocol.contract_type(&unfinished.contract) else {
            return Ok(());
        };
        let fields = contract.fields.iter();
        let whole = fields.filter(|(_, source)| why_cut(source, self.event.payload()).is_none());
        let opening = ContractRule {
            contract: unfinished.contract.clone(),
            to: rule.agent.clone(),
            fields: whole
                .map(|(at, source)| (at.clone(), source.clone()))
                .collect(),
            unfinished: None,
        };
        let mut value = self.filled(rule, &opening, kind)?;
        put(&mut value, &unfinished.missing, json!(missing));
        let summary = kind.summary.as_ref();
        if let Some(place) = summary.or(protocol.definition().fields.summary.as_ref()) {
            put(&mut value, place, json!(names(missing)));
        }
        let draft = self.draft(rule, kind, &opening.to, &value)?;
        let faults = self.faults(&draft, &From::Ready)?;
        if let Some(fault) = faults.first() {
            self.not(
                rule,
                format!("the issue is not opened: {}: {}", fault.path, fault.message),
            );
            return Ok(());
        }
        let delivery = self.part(rule, "send")?;
        let done = self.offer(&rule.agent, &draft.text, None, delivery);
        self.took(rule, "sent", Map::new(), done)
    }

    /// Notes the missing fields and the known values, if this event changes them.
    fn note_missing(
        &mut self,
        rule: &EventRule,
        contract: &ContractRule,
        record: &Record,
        missing: &[String],
    ) -> Result<(), LedgerError> {
        let session = self.context.session.delivering(self.part(rule, "note")?);
        let (note, stated) = (names(missing), self.stated(contract));
        let definition = self.rules.protocol().definition();
        let news = News {
            event: self.event,
            protocol: self.rules.protocol(),
            pull_request: self.pull_request,
            now: self.now(),
        };
        let (mut facts, mut why) = (Map::new(), None);
        let decide = |issue: &Issue| {
            why = news.outdated(issue);
            facts.clone_from(&stated);
            facts.retain(|name, value| {
                let known = issue.fact(definition, name);
                known.is_none_or(|known| known.value != value)
            });
            let mut notes = issue.annotations.iter().rev();
            let said = notes.find(|note| {
                note.id.as_ref() == Some(&record.id) && note.note.starts_with(MISSING)
            });
            let last = said.map_or(&record.summary, |last| &last.note);
            if facts.is_empty() && *last == note {
                why = Some("the missing fields are noted already".to_owned());
            }
            facts.extend(state_of(news.event, Some((issue, definition))));
            why.is_none().then(|| Update::Annotate {
                handoff: Some(record.id.number()),
                note: note.clone(),
                facts: facts.clone(),
                approval: None,
            })
        };
        let ledger = &mut self.context.ledger;
        let done = update_if(ledger, &session, &rule.agent, &self.key, decide);
        self.took_note(rule, facts, done, why)
    }

    /// The event's values for a contract's fields, by the names of the facts that these state.
    fn stated(&self, contract: &ContractRule) -> Map<String, Value> {
        let payload = self.event.payload();
        let definition = self.rules.protocol().definition();
        let fields = contract.fields.iter();
        let named = fields.filter_map(|(place, source)| {
            let name = fact_at(definition, place).filter(|_| why_cut(source, payload).is_none())?;
            Some((name.to_owned(), value(source, payload)?))
        });
        named.collect()
    }

    /// Keeps a draft, unless another rule made one.
    fn begin(&mut self, rule: &EventRule, draft: Draft) {
        match &self.carried.draft {
            None => self.carried.draft = Some(draft),
            Some(first) => {
                let why = format!("a draft of {} was already started", first.contract_type);
                self.not(rule, why);
            }
        }
    }

    /// How an agent can send its contract now, or why it can't.
    fn turn(
        &self,
        rule: &EventRule,
        contract: &ContractRule,
        opens: bool,
    ) -> Result<Result<From, String>, LedgerError> {
        let agent = &rule.agent;
        let tip = self.context.ledger.tip()?;
        let folder = tip.issue(&self.key)?;
        let Some(issue) = folder.issue()? else {
            let why = "the ledger does not have this issue yet".to_owned();
            return Ok(if opens { Ok(From::Ready) } else { Err(why) });
        };
        if issue.status != IssueStatus::Open {
            let status = issue.status.as_str();
            return Ok(Err(format!("the issue is {status} in the ledger")));
        }
        if opens {
            // A rejected or cancelled first contract can be sent again.
            let turned_down = [State::Rejected, State::Cancelled];
            let last = folder.record(issue.handoffs)?;
            let is_over = last.is_some_and(|last| turned_down.contains(&last.state));
            if issue.open.is_empty() && (is_over || !issue.reopened.is_empty()) {
                return Ok(Ok(From::Ready));
            }
            return self.unfinished(&issue, rule, contract);
        }
        if let Some(why) = self.outdated(&issue) {
            return Ok(Err(why));
        }
        // While the issue is paused, only held work continues.
        let is_paused = issue.held_back(agent).is_some();
        let open = issue.open.iter();
        let open = open.filter(|open| open.to == *agent && issue.goes_on(open));
        let unfollowed = issue.unfollowed.iter().filter(|_| !is_paused);
        for id in open.map(|open| &open.id).chain(unfollowed) {
            let record = folder.record(id.number())?.filter(|r| r.to == *agent);
            if let Some(record) = record {
                return Ok(self.misses(&issue, &record).map_or(Ok(From::Ready), Err));
            }
        }
        Ok(Err(format!("{agent} holds nothing in the issue now")))
    }

    /// The handoff that opened the issue unfinished, if this event can continue it.
    fn unfinished(
        &self,
        issue: &Issue,
        rule: &EventRule,
        contract: &ContractRule,
    ) -> Result<Result<From, String>, LedgerError> {
        let known = || Err("the ledger has this issue already".to_owned());
        let mut open = issue.open.iter().filter(|open| open.to == rule.agent);
        let (Some(open), Some(unfinished)) = (open.next(), &contract.unfinished) else {
            return Ok(known());
        };
        let tip = self.context.ledger.tip()?;
        let record = tip.issue(&self.key)?.record(open.id.number())?;
        let Some(record) = record.filter(|r| r.contract_type == unfinished.contract) else {
            return Ok(known());
        };
        if let Some(why) = self.outdated(issue) {
            return Ok(Err(why));
        }
        let id = &record.id;
        let claimed = issue.delivered(&self.part(rule, "claim")?).is_some();
        let why = match record.state {
            State::Pending if issue.held_back(&rule.agent).is_some() => {
                "the issue is paused".to_owned()
            }
            State::Pending => return Ok(Ok(From::Unfinished(Box::new(record)))),
            State::InProgress if claimed => return Ok(Ok(From::Unfinished(Box::new(record)))),
            State::InProgress => format!("{} works on it: {id}", rule.agent),
            state => format!("{id} is {}", state.as_str()),
        };
        Ok(Err(why))
    }

    /// The draft of a contract with these values, for its sender to finish.
    fn draft(
        &self,
        rule: &EventRule,
        kind: &ContractType,
        to: &AgentName,
        value: &Value,
    ) -> Result<Draft, LedgerError> {
        let format = usual_format(self.rules.protocol(), Some(kind));
        let text = written(&self.rules, kind, value, format, (&rule.agent, to))?;
        let left = left_to_fill(value).into_iter();
        Ok(Draft {
            contract_type: kind.name.clone(),
            from: rule.agent.clone(),
            to: to.clone(),
            format,
            text,
            missing: left.map(|(path, asked)| Left { path, asked }).collect(),
            findings: Vec::new(),
        })
    }

    /// Fills in a contract from the ledger, the repository and the event.
    fn filled(
        &self,
        rule: &EventRule,
        contract: &ContractRule,
        kind: &ContractType,
    ) -> Result<Value, LedgerError> {
        let ledger = &*self.context.ledger;
        let tip = ledger.tip()?;
        let folder = tip.issue(&self.key)?;
        let now = Moment::from(self.context.session.clock.author());
        let (from, to) = (&rule.agent, &contract.to);
        let protocol = self.rules.protocol();
        let branch = (None, now);
        let by = Holder {
            agent: from,
            worker: None,
        };
        let of = (&tip, &self.key);
        let mut known = known(ledger.repository(), protocol, of, by, to, branch)?;
        // This program does not run in the agent's workspace.
        known.remove("workspace_path");
        if let Some(issue) = folder.issue()? {
            self.forget_earlier(&issue, contract, &mut known);
        }
        known.extend(facts(rule, self.event));
        let mut value = skeleton(&self.rules, kind, &known)?;
        for (pointer, source) in &contract.fields {
            if let Some(found) = self::value(source, self.event.payload()) {
                put(&mut value, pointer, found);
            }
        }
        Ok(value)
    }

    /// Drops values that earlier events gave an unfinished issue: if this event lacks them, they
    /// were removed. Values noted by agents or people stay.
    fn forget_earlier(&self, issue: &Issue, contract: &ContractRule, known: &mut Known) {
        if contract.unfinished.is_none() {
            return;
        }
        let definition = self.rules.protocol().definition();
        let is_noted = |note: &Annotation| note.event.is_none();
        for name in contract
            .fields
            .keys()
            .filter_map(|at| fact_at(definition, at))
        {
            let note = issue.fact(definition, name).and_then(|fact| fact.note);
            if !note.is_some_and(is_noted) {
                known.remove(name);
            }
        }
    }

    /// The fields whose values are truncated, each with the reason.
    fn cut(&self, contract: &ContractRule) -> Vec<String> {
        let payload = self.event.payload();
        let fields = contract.fields.iter();
        let cut = fields.filter_map(|(place, source)| {
            Some(format!("{}: {}", field(place), why_cut(source, payload)?))
        });
        cut.collect()
    }
}

/// The options to send under the claim with this token.
fn claimed_by(token: Option<u32>) -> SendOptions {
    SendOptions {
        token,
        ..SendOptions::default()
    }
}

fn offered<'o>(
    input: &'o Input<'o>,
    issue: &'o IssueKey,
    (agent, protocol): (Option<&'o AgentName>, Option<&'o AgentName>),
    options: &'o SendOptions,
) -> Offer<'o> {
    Offer {
        input,
        agent,
        issue: Some(issue),
        protocol,
        options,
        reports: None,
    }
}

/// The field that a JSON Pointer leads into.
fn field(pointer: &str) -> &str {
    let mut parts = pointer.split('/').filter(|part| !part.is_empty());
    parts.next().unwrap_or("contract")
}

/// The fact that contracts state at a place.
fn fact_at<'d>(definition: &'d Definition, place: &str) -> Option<&'d str> {
    let states = |fact: &Fact| matches!(&fact.rule, FactRule::Last(places) if places.iter().any(|at| at == place));
    let mut facts = definition.facts.iter();
    let found = facts.find(|(_, rule)| states(rule));
    found.map(|(name, _)| name.as_str())
}

/// The missing fields in one line.
fn names(missing: &[String]) -> String {
    let names = missing.iter().filter_map(|one| one.split(':').next());
    let mut names: Vec<&str> = names.collect();
    names.dedup();
    format!("{MISSING}{}", names.join(", "))
}

/// Sets the value at a JSON Pointer, unless something other than an object is in the way.
fn put(value: &mut Value, pointer: &str, new: Value) {
    let mut here = value;
    let mut parts = parts(pointer).peekable();
    while let Some(part) = parts.next() {
        let Value::Object(members) = here else { return };
        if parts.peek().is_none() {
            members.insert(part, new);
            return;
        }
        here = members
            .entry(part)
            .or_insert_with(|| Value::Object(Map::new()));
    }
}

/// The event that claims a handoff, or takes it over from an interrupted run.
fn taking_up(record: &Record) -> (Target, Happens, EventArgs) {
    let event = match record.state {
        State::InProgress => Happens::TakeOver,
        _ => Happens::Claim,
    };
    let args = EventArgs {
        reason: (event == Happens::TakeOver).then(|| "its run broke off".to_owned()),
        ..EventArgs::default()
    };
    (Target::Handoff(record.id.clone()), event, args)
}
