//! The agents' moves: opening issues, claiming, and choosing what comes next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use handoff::base::ids::{AgentName, IssueKey};
use handoff::contract::{Schema, matching};
use handoff::ledger::{LedgerError, Target};
use handoff::model::{EventArgs, Issue, IssueStatus, Record, Refusal, Update, View};
use handoff::protocol::{
    AgentKind, Ends, Event, Outcome, Route, State, schema_nodes, schema_values,
};
use serde_json::{Value, json};

use super::Trial;
use super::contract::{Ask, Sent};
use handoff_cli::failure::{ErrorCode, Failure};

/// The maximum number of moves in one issue.
const MOST_MOVES: usize = 200;

/// A form of issue keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// A number with a prefix.
    Numbered(String),
    /// What a pattern matches, by a number.
    Matching(String),
    /// The listed ones.
    Listed(Vec<String>),
    /// A UUID.
    Uuid,
}

impl KeyForm {
    /// The key of an issue; `None` if the form has no more.
    fn key(&self, number: u32) -> Option<IssueKey> {
        let before = number.saturating_sub(1);
        match self {
            Self::Numbered(text) => format!("{text}{number}").parse().ok(),
            Self::Matching(pattern) => {
                let texts = matching(pattern, before.into()).into_iter();
                texts.filter_map(|text| text.parse().ok()).next()
            }
            Self::Listed(keys) => keys.get(usize::try_from(before).ok()?)?.parse().ok(),
            Self::Uuid => format!("00000000-0000-4000-8000-{number:012}").parse().ok(),
        }
    }
}

/// What an agent does with a handoff that it holds.
pub(super) enum Move {
    /// Sends a contract.
    Send(Ask),
    /// Completes it.
    Complete,
    /// Does nothing more.
    Stop,
}

impl Trial<'_> {
    /// Opens a new issue with the protocol's first opening contract.
    ///
    /// # Errors
    /// Why it can't be opened.
    pub(super) fn open(&mut self) -> Result<Sent, Failure> {
        self.open_with(|_| true)
    }

    /// Opens a new issue with the first opening contract of an accepted type.
    ///
    /// # Errors
    /// Why it can't be opened.
    pub(super) fn open_with(&mut self, is_type: impl Fn(&str) -> bool) -> Result<Sent, Failure> {
        self.issues += 1;
        let (from, to, kind) = self.opening(is_type).ok_or_else(nothing_opens)?;
        let mut refused = None;
        for form in self.key_forms(&kind) {
            let Some(issue) = form.key(self.issues) else {
                refused = refused.or(Some(no_key(&form)));
                continue;
            };
            let ask = Ask {
                issue,
                from: from.clone(),
                to: to.clone(),
                kind: kind.clone(),
                answers: None,
                fixed: Vec::new(),
            };
            match self.send(&ask) {
                Ok(sent) => {
                    self.key_form = Some(form);
                    return Ok(sent);
                }
                Err(failure) => refused = refused.or(Some(failure)),
            }
        }
        Err(refused.unwrap_or_else(nothing_opens))
    }

    /// The sender, receiver and type of the first opening contract of an accepted type.
    pub(super) fn opening(
        &self,
        is_type: impl Fn(&str) -> bool,
    ) -> Option<(AgentName, AgentName, String)> {
        let routes = self.protocol.definition().routes.iter();
        let mut found = routes.filter(|route| route.opens).filter_map(|route| {
            let agents = self.protocol.agent_names().into_iter();
            let other = agents.filter(|name| *name != route.to.as_str());
            let from = match route.from.as_str() {
                "*" => other.take(1).next()?,
                from => from,
            };
            let from: AgentName = from.parse().ok()?;
            let mut kinds = route.contracts.iter();
            let kind = kinds.find(|kind| is_type(kind) && self.is_usual(kind))?;
            Some((from, route.to.clone(), kind.clone()))
        });
        found.next()
    }

    /// The forms of issue keys to try.
    fn key_forms(&self, kind: &str) -> Vec<KeyForm> {
        if let Some(known) = &self.key_form {
            return vec![known.clone()];
        }
        let kind = self.kind(kind);
        let at = self.protocol.field(kind, |f| &f.issue);
        let found = at.zip(self.schemas.get(&kind.schema));
        let nodes = found.map_or_else(Vec::new, |(at, schema)| schema_nodes(schema, at));
        if let Some(keys) = found.and_then(|(at, schema)| schema_values(schema, at)) {
            return vec![KeyForm::Listed(keys.into_iter().collect())];
        }
        let patterns = nodes.iter().filter_map(|node| node["pattern"].as_str());
        let matching = patterns.map(|pattern| KeyForm::Matching(pattern.to_owned()));
        let shown = nodes.iter().filter_map(|node| node["examples"].as_array());
        let numbered = shown.flatten().filter_map(|value| {
            let text = value.as_str()?;
            let stem = text.trim_end_matches(|c: char| c.is_ascii_digit());
            (stem.len() < text.len()).then(|| KeyForm::Numbered(stem.to_owned()))
        });
        // The form that the author's examples have comes first: if all fail, the first refusal is
        // reported.
        let mut forms: Vec<KeyForm> = numbered.chain(matching).collect();
        let usual = ["", "example-"].map(|stem| KeyForm::Numbered(stem.to_owned()));
        forms.extend(usual);
        forms.push(KeyForm::Uuid);
        // A key has to pass the schemas of all types.
        forms.sort_by_cached_key(|form| form.key(1).is_none_or(|key| !self.is_key(&key)));
        forms
    }

    /// Whether each contract type that has the issue's key allows this one.
    fn is_key(&self, key: &IssueKey) -> bool {
        let mut kinds = self.protocol.definition().contracts.iter();
        kinds.all(|kind| {
            let at = self.protocol.field(kind, |f| &f.issue);
            let found = at.zip(self.schemas.get(&kind.schema));
            let nodes = found.map_or_else(Vec::new, |(at, schema)| schema_nodes(schema, at));
            let mut patterns = nodes.iter().filter_map(|node| node.get("pattern"));
            patterns.all(|pattern| {
                let schema = Schema::compile(&json!({ "pattern": pattern }));
                schema.is_ok_and(|schema| schema.accepts(&json!(key)))
            })
        })
    }

    /// The usual contract type of a route: in the protocol's first format, neither a note nor a
    /// failure report.
    fn usual(&self, route: &Route) -> Option<String> {
        let kinds = route.contracts.iter();
        let mut usual = kinds.filter(|name| self.is_usual(name));
        usual.next().cloned()
    }

    fn is_usual(&self, name: &str) -> bool {
        let Some(kind) = self.protocol.contract_type(name) else {
            return false;
        };
        let first = self.protocol.definition().formats.first();
        let schema = self.schemas.get(&kind.schema);
        let words = self.protocol.field(kind, |f| &f.status).zip(schema);
        let words = words.and_then(|(at, schema)| schema_values(schema, at));
        let completes =
            |word: &String| self.protocol.outcome(kind, Some(word)) == Outcome::Complete;
        !kind.note
            && first.is_none_or(|format| kind.has_format(format))
            && words.is_none_or(|words| words.iter().any(completes))
    }

    /// The current state of an issue.
    pub(super) fn issue(&self, key: &IssueKey) -> Result<Issue, Failure> {
        let tip = self.ledger.tip()?;
        let issue = tip.issue(key)?.issue()?;
        issue.ok_or_else(|| Refusal::no_issue(key).into())
    }

    /// Claims a handoff for its receiver.
    pub(super) fn claim(&mut self, record: &Record, worker: &str) -> Result<Record, LedgerError> {
        self.wait(1);
        self.act_as(&record.to, worker);
        let target = Target::Handoff(record.id.clone());
        let args = EventArgs::default();
        let done = self
            .ledger
            .claim(&self.session, &record.to, &target, Event::Claim, &args)?;
        self.steps += 1;
        Ok(done.receipt.record)
    }

    /// Applies an event to a handoff.
    pub(super) fn apply(
        &mut self,
        record: &Record,
        agent: &AgentName,
        event: Event,
        args: EventArgs,
    ) -> Result<Record, Failure> {
        self.wait(1);
        self.act_as(agent, "1");
        let update = Update::change(record.id.number(), event, args);
        let issue = record.id.issue();
        let done = self.ledger.update(&self.session, agent, issue, &update)?;
        self.steps += 1;
        Ok(done.receipt.record)
    }

    /// Claims the pending handoffs of an issue and makes the moves that `choose` returns, until
    /// nothing is left to do.
    ///
    /// # Errors
    /// The refusal of a move.
    pub(super) fn walk(
        &mut self,
        key: &IssueKey,
        choose: &mut dyn FnMut(&Self, &Record) -> Move,
    ) -> Result<Issue, Failure> {
        for _ in 0..MOST_MOVES {
            let issue = self.issue(key)?;
            if issue.status != IssueStatus::Open {
                return Ok(issue);
            }
            let Some(held) = self.claim_any(&issue)? else {
                return Ok(issue);
            };
            match choose(self, &held) {
                Move::Send(ask) => drop(self.send(&ask)?),
                Move::Complete => {
                    let agent = held.to.clone();
                    self.apply(&held, &agent, Event::Complete, EventArgs::default())?;
                }
                Move::Stop => break,
            }
        }
        self.issue(key)
    }

    /// Claims the first claimable handoff of an issue.
    fn claim_any(&mut self, issue: &Issue) -> Result<Option<Record>, Failure> {
        let pending = issue
            .open
            .iter()
            .filter(|open| open.state == State::Pending);
        for open in pending {
            let tip = self.ledger.tip()?;
            let Some(record) = tip.issue(&issue.issue)?.record(open.id.number())? else {
                continue;
            };
            match self.claim(&record, "1") {
                Ok(claimed) => return Ok(Some(claimed)),
                // The handoff waits for others.
                Err(LedgerError::Refused(Refusal::Queue(_))) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// An agent's usual move: it answers a request, reports on a task, hands on to an agent not
    /// visited yet, or ends the issue.
    pub(super) fn usual_move(&self, held: &Record, seen: &BTreeSet<AgentName>) -> Move {
        if let Some(ask) = self.answer(held) {
            return Move::Send(ask);
        }
        let agent = held.to.as_str();
        if let Some(intended) = &held.intended
            && let Some(ask) = self.send_along(held, |route| route.to == *intended)
        {
            return Move::Send(ask);
        }
        let is_new = |route: &Route| {
            let to = &route.to;
            let ends = self.protocol.is_kind(to.as_str(), AgentKind::End);
            !seen.contains(to) && !self.protocol.steps_in(to) && !ends
        };
        if let Some(ask) = self.send_along(held, is_new) {
            return Move::Send(ask);
        }
        let report = self.protocol.reports_to(agent, &held.from);
        if let Some((to, kind)) = report.filter(|_| held.task.is_some()) {
            return Move::Send(ask(held, to, &kind.name));
        }
        let is_end = |name: &str| self.protocol.is_kind(name, AgentKind::End);
        let closes = self.protocol.ends() == Ends::ClosingContract;
        match self.toward(held, &is_end).filter(|_| closes) {
            Some(ask) => Move::Send(ask),
            None => Move::Complete,
        }
    }

    /// The usual answer to a request; `None` if it is not a request.
    pub(super) fn answer(&self, held: &Record) -> Option<Ask> {
        let answers = self.protocol.answers_to(&held.contract_type).into_iter();
        let mut usual = answers.filter(|kind| self.is_usual(&kind.name));
        let kind = usual.next()?;
        Some(Ask {
            answers: Some(held.id.number()),
            ..ask(held, &held.from, &kind.name)
        })
    }

    /// The contract for the first matching route.
    fn send_along(&self, held: &Record, fits: impl Fn(&Route) -> bool) -> Option<Ask> {
        let routes = self.protocol.routes_from(held.to.as_str());
        let mut routes: Vec<&Route> = routes.filter(|route| fits(route)).collect();
        // Routes that open issues come last.
        routes.sort_by_key(|route| route.opens);
        let mut routes = routes.into_iter();
        routes.find_map(|route| Some(ask(held, &route.to, &self.usual(route)?)))
    }

    /// The contract that brings work nearer to a goal agent on the shortest path, without agents
    /// that step in if possible.
    pub(super) fn toward(&self, held: &Record, is_goal: &dyn Fn(&str) -> bool) -> Option<Ask> {
        let from = held.to.as_str();
        let first = self.first_hop(from, is_goal, false);
        let first = first.or_else(|| self.first_hop(from, is_goal, true))?;
        let direct = |route: &Route| route.via.is_none() && route.to == first;
        let via = |route: &Route| route.via.as_ref() == Some(&first);
        self.send_along(held, direct)
            .or_else(|| self.send_along(held, via))
    }

    fn first_hop(
        &self,
        from: &str,
        is_goal: &dyn Fn(&str) -> bool,
        with_all: bool,
    ) -> Option<AgentName> {
        let mut hops: BTreeMap<AgentName, AgentName> = BTreeMap::new();
        let mut next: VecDeque<AgentName> = VecDeque::from([from.parse().ok()?]);
        while let Some(agent) = next.pop_front() {
            for route in self.protocol.routes_from(agent.as_str()) {
                let to = route.via.as_ref().unwrap_or(&route.to);
                let is_open = with_all || !self.protocol.steps_in(to) || is_goal(to.as_str());
                if hops.contains_key(to) || !is_open || self.usual(route).is_none() {
                    continue;
                }
                let first = hops.get(&agent).unwrap_or(to).clone();
                if is_goal(to.as_str()) {
                    return Some(first);
                }
                hops.insert(to.clone(), first);
                next.push_back(to.clone());
            }
        }
        None
    }
}

/// A contract about the handoff that an agent holds.
pub(super) fn ask(held: &Record, to: &AgentName, kind: &str) -> Ask {
    Ask {
        issue: held.id.issue().clone(),
        from: held.to.clone(),
        to: to.clone(),
        kind: kind.to_owned(),
        answers: None,
        fixed: Vec::<(String, Value)>::new(),
    }
}

fn no_key(form: &KeyForm) -> Failure {
    let text = match form {
        KeyForm::Listed(keys) => {
            let keys = keys.join("`, `");
            format!("its schema allows no more issue keys than `{keys}`")
        }
        _ => "no issue key was found that its schema allows".to_owned(),
    };
    Failure::new(ErrorCode::ProtocolUnexpected, text)
}

fn nothing_opens() -> Failure {
    Failure::new(
        ErrorCode::ProtocolUnexpected,
        "no usual contract opens an issue",
    )
}
