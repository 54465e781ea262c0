//! The effects of rules besides notes and commands: contracts, pausing, cancelling and reopening.

use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::pointer::parts;
use handoff_base::to_millisecond;
use handoff_contract::Input;
use handoff_ledger::attention::of_folder;
use handoff_ledger::{ContractError, LedgerError, Offer, Rules};
use handoff_model::{EventArgs, IssueStatus, Update, View, turn};
use handoff_protocol::{ContractRule, ContractType, Event as Happens, EventRule, Protocol, State};
use handoff_templates::{known, left_to_fill, skeleton, usual_format, written};
use serde_json::{Map, Value};

use super::outcome::{Carried, Draft, EventContext, Left};
use super::payload::Event;
use super::values::{facts, says, value, why_cut};

/// An event that is being carried out.
pub(super) struct Work<'w, 'a, 'r> {
    pub(super) context: &'w mut EventContext<'a, 'r>,
    pub(super) event: &'w Event,
    /// The issue, and all that the event is about.
    pub(super) key: IssueKey,
    pub(super) issues: Vec<IssueKey>,
    pub(super) pull_request: Option<u64>,
    pub(super) rules: Rules<'r>,
    pub(super) carried: Carried,
}

pub(super) fn opens(protocol: &Protocol, from: &AgentName, contract: &ContractRule) -> bool {
    let mut routes = protocol.routes(from.as_str(), contract.to.as_str());
    routes.any(|route| route.opens && route.contracts.contains(&contract.contract))
}

impl Work<'_, '_, '_> {
    /// Sends a contract, or drafts it.
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
        let Some(kind) = protocol.contract_type(&contract.contract).cloned() else {
            return Ok(());
        };
        let opens = opens(&protocol, &rule.agent, contract);
        if let Some(why) = self.out_of_turn(&rule.agent, opens)? {
            return self.not_unless_had(rule, "sent", &delivery, why);
        }
        let value = self.filled(rule, contract, &kind)?;
        let ends = (&rule.agent, &contract.to);
        let format = usual_format(&protocol, Some(&kind));
        let text = written(&self.rules, &kind, &value, format, ends)?;
        let missing: Vec<Left> = left_to_fill(&value)
            .into_iter()
            .map(|(path, asked)| Left { path, asked })
            .collect();
        let mut draft = Draft {
            contract_type: kind.name,
            from: rule.agent.clone(),
            to: contract.to.clone(),
            format,
            text,
            missing,
            findings: Vec::new(),
        };
        let payload = self.event.payload();
        let fields = contract.fields.iter();
        let short: Vec<String> = fields
            .filter_map(|(place, source)| Some(format!("{place}: {}", why_cut(source, payload)?)))
            .collect();
        for why in &short {
            self.not(rule, format!("not all of it is in the draft: {why}"));
        }
        if !send || !draft.missing.is_empty() || !short.is_empty() {
            let places: Vec<&str> = draft.missing.iter().map(|left| &*left.path).collect();
            if send && !places.is_empty() {
                let why = format!(
                    "the event does not provide all of the contract: {}",
                    places.join(", ")
                );
                self.not(rule, why);
            }
            self.begin(rule, draft);
            return Ok(());
        }
        let named = protocol.name().parse::<AgentName>().ok();
        let offer = Offer {
            input: &Input::read(draft.text.as_bytes()),
            agent: Some(&rule.agent),
            issue: Some(&self.key),
            protocol: named.as_ref(),
            answers: None,
            replaces: None,
            token: None,
            allow: &[],
            reports: None,
            imported: None,
        };
        let session = self.context.session.delivering(delivery);
        match self.context.ledger.send(&session, &offer) {
            // People's text need not fit the contract; then an agent has to write it.
            Err(LedgerError::Contract(ContractError::Invalid(findings))) => {
                self.not(rule, "what the event says does not fit the contract");
                draft.findings = findings;
                self.begin(rule, draft);
                Ok(())
            }
            done => self.took(rule, "sent", Map::new(), done),
        }
    }

    /// Keeps a draft, unless another rule began one.
    fn begin(&mut self, rule: &EventRule, draft: Draft) {
        match &self.carried.draft {
            None => self.carried.draft = Some(draft),
            Some(first) => {
                let why = format!("a draft of {} was already started", first.contract_type);
                self.not(rule, why);
            }
        }
    }

    /// Why it is not an agent's turn to send, if it is not.
    fn out_of_turn(&self, agent: &AgentName, opens: bool) -> Result<Option<String>, LedgerError> {
        let tip = self.context.ledger.tip()?;
        let folder = tip.issue(&self.key)?;
        let Some(issue) = folder.issue()? else {
            return Ok((!opens).then(|| "the ledger does not have this issue yet".to_owned()));
        };
        if issue.status != IssueStatus::Open {
            let status = issue.status.as_str();
            return Ok(Some(format!("the issue is {status} in the ledger")));
        }
        if opens {
            // A rejected or cancelled opening can be sent again.
            let turned_down = [State::Rejected, State::Cancelled];
            let last = folder.record(issue.handoffs)?;
            let is_over = last.is_some_and(|last| turned_down.contains(&last.state));
            let anew = issue.open.is_empty() && (is_over || !issue.reopened.is_empty());
            return Ok((!anew).then(|| "the ledger has this issue already".to_owned()));
        }
        if let Some(why) = self.outdated(&issue) {
            return Ok(Some(why));
        }
        // Only what it holds goes on while the issue is paused.
        let is_paused = issue.held_back(agent).is_some();
        let has = |state: State| match state {
            State::InProgress => true,
            State::Pending => !is_paused,
            _ => false,
        };
        let open = issue.open.iter();
        let open = open.filter(|o| o.to == *agent && has(o.state));
        let unfollowed = issue.unfollowed.iter().filter(|_| !is_paused);
        for id in open.map(|open| &open.id).chain(unfollowed) {
            let record = folder.record(id.number())?.filter(|r| r.to == *agent);
            if let Some(record) = record {
                return Ok(self.misses(&issue, &record));
            }
        }
        Ok(Some(format!("{agent} holds nothing in the issue now")))
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
        let now = to_millisecond(self.context.session.clock.author());
        let (from, to) = (&rule.agent, &contract.to);
        let protocol = self.rules.protocol();
        let mut known = known(
            ledger.repository(),
            protocol,
            &folder,
            from,
            to,
            (None, now),
        )?;
        // The program runs elsewhere than the agent works.
        known.remove("workspace_path");
        known.extend(facts(rule, self.event));
        let mut value = skeleton(&self.rules, kind, &known)?;
        for (pointer, source) in &contract.fields {
            if let Some(found) = self::value(source, self.event.payload()) {
                put(&mut value, pointer, found);
            }
        }
        Ok(value)
    }

    /// Opens the issue again, or notes that it is open.
    pub(super) fn reopen(&mut self, rule: &EventRule) -> Result<(), LedgerError> {
        let delivery = self.part(rule, "reopen")?;
        if self.had(rule, "reopened", &delivery)? {
            return self.goes_on_with();
        }
        let Some(issue) = self.issue()? else {
            self.not(rule, "the ledger does not have this issue");
            return Ok(());
        };
        let ended_at = match issue.status {
            IssueStatus::Open => None,
            IssueStatus::Completed => issue.completed_at,
            IssueStatus::Cancelled => issue.given_up.last().map(|given_up| given_up.at),
        };
        let happened_at = self.event.happened_at();
        if happened_at.is_none() || issue.status != IssueStatus::Open && ended_at > happened_at {
            let status = issue.status.as_str();
            let why = format!(
                "the issue was {status} in the ledger after that, or it does not say when it was"
            );
            self.not(rule, why);
            return Ok(());
        }
        let session = self.context.session.delivering(delivery);
        let reopen = Update::Reopen {
            reason: "reopened on GitHub".to_owned(),
            said_at: happened_at,
        };
        let ledger = &mut self.context.ledger;
        let done = ledger.update(&session, &rule.agent, &self.key, &reopen);
        self.took(rule, "reopened", Map::new(), done)?;
        self.goes_on_with()
    }

    /// Finds the command by which the work of an open issue goes on.
    fn goes_on_with(&mut self) -> Result<(), LedgerError> {
        let tip = self.context.ledger.tip()?;
        let folder = tip.issue(&self.key)?;
        let open = folder
            .issue()?
            .filter(|issue| issue.status == IssueStatus::Open && issue.paused.is_none());
        let Some(issue) = open else {
            return Ok(());
        };
        let protocol = self.rules.protocol();
        let now = to_millisecond(self.context.session.clock.author());
        let needed = of_folder(&folder, protocol, now)?.into_iter().next();
        let next = needed.map(|one| one.next).or_else(|| {
            let turn = turn(protocol, &issue, None, &[])?;
            let open = issue
                .open
                .iter()
                .find(|open| Some(&open.id) == turn.handoff.as_ref())?;
            Some(match open.state {
                State::Pending => format!("git handoff claim {} --as {}", open.id, turn.agent),
                _ => format!("git handoff prime --as {}", turn.agent),
            })
        });
        self.carried.next = next;
        Ok(())
    }

    /// Pauses the issue, except for these agents.
    pub(super) fn pause(
        &mut self,
        rule: &EventRule,
        except: &[AgentName],
    ) -> Result<(), LedgerError> {
        let delivery = self.part(rule, "pause")?;
        if self.had(rule, "paused", &delivery)? {
            return Ok(());
        }
        let Some(issue) = self.issue()? else {
            self.not(rule, "the ledger does not have this issue");
            return Ok(());
        };
        if issue.status != IssueStatus::Open {
            let status = issue.status.as_str();
            self.not(rule, format!("the issue is {status} in the ledger"));
            return Ok(());
        }
        let Some(said_at) = self.event.happened_at() else {
            self.not(rule, "it does not say when it was");
            return Ok(());
        };
        let session = self.context.session.delivering(delivery);
        let pause = Update::Pause {
            reason: why_paused(self.event),
            except: except.to_vec(),
            said_at: Some(said_at),
        };
        let ledger = &mut self.context.ledger;
        let done = ledger.update(&session, &rule.agent, &self.key, &pause);
        self.took(rule, "paused", Map::new(), done)
    }

    /// Cancels every open handoff of the issue.
    pub(super) fn cancel(&mut self, rule: &EventRule) -> Result<(), LedgerError> {
        let Some(issue) = self.issue()? else {
            self.not(rule, "the ledger does not have this issue");
            return Ok(());
        };
        let Some(said_at) = self.event.happened_at() else {
            self.not(rule, "it does not say when it was");
            return Ok(());
        };
        let before = self.carried.did.len();
        // Those that an earlier delivery cancelled come first in the outcome.
        for number in 1..=issue.handoffs {
            let part = self.part(rule, &format!("cancel-{number}"))?;
            self.had(rule, "cancelled", &part)?;
        }
        for open in &issue.open {
            let part = self.part(rule, &format!("cancel-{}", open.id.number()))?;
            // A task's parts are cancelled with it.
            let now = self.issue()?;
            let is_open = now.is_some_and(|now| now.open.iter().any(|o| o.id == open.id));
            if issue.delivered(&part).is_some() || !is_open {
                continue;
            }
            let args = EventArgs {
                reason: Some("the issue was closed on GitHub as not planned".to_owned()),
                said_at: Some(said_at),
                ..EventArgs::default()
            };
            let session = self.context.session.delivering(part);
            let cancel = Update::change(open.id.number(), Happens::Cancel, args);
            let ledger = &mut self.context.ledger;
            let done = ledger.update(&session, &rule.agent, &self.key, &cancel);
            self.took(rule, "cancelled", Map::new(), done)?;
        }
        if issue.open.is_empty() && self.carried.did.len() == before {
            self.not(rule, "nothing is open in the issue");
        }
        Ok(())
    }
}

/// What an event says of its issue, as the reason of a pause.
fn why_paused(event: &Event) -> String {
    let text = |place| event.text(place).and_then(says);
    let action = event.action().unwrap_or("changed");
    let (done, place) = match (action, event.text("/issue/state_reason")) {
        ("closed", Some("completed")) => ("closed as completed", "/issue/html_url"),
        ("closed", Some("not_planned")) => ("closed as not planned", "/issue/html_url"),
        ("closed", Some("duplicate")) => ("closed as a duplicate", "/issue/html_url"),
        ("transferred", _) => (
            "transferred to another repository",
            "/changes/new_issue/html_url",
        ),
        // Nothing is at its address any more.
        ("deleted", _) => ("deleted", ""),
        (action, _) => (action, "/issue/html_url"),
    };
    let place = Some(place).filter(|place| !place.is_empty()).and_then(text);
    let place = place.map(|place| format!(", {place}")).unwrap_or_default();
    format!("{done} on GitHub{place}")
}

/// Sets the value at a JSON Pointer, unless something else than an object is in the way.
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
