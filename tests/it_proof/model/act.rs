//! Random requests, legal and illegal, that lead somewhere often enough.

use std::convert::Infallible;

use chrono::TimeDelta;
use handoff::base::ids::{AgentName, WorkerId};
use handoff::base::{Amount, Code, Currency, Moment};
use handoff::model::Approval;
use handoff::model::{
    Contract, Delivery, EventArgs, Evidence, Failure, FailureContext, IssueStatus, ModelUsage,
    Planned, Question, Record, Request, SendOptions, SendRequest, Step, Stop, TraceParent, Update,
    layout, plan,
};
use handoff::protocol::{Action, Event, OnRecord, Policy, RunFailure, State as Lifecycle};
use serde_json::{Map, Value, json};
use test_support::dice::Dice;

use super::state::State;
use super::world::World;

/// The workers that there are.
pub(crate) const WORKERS: [&str; 3] = ["desk", "shelf", "van"];

const ACTIONS: [Action; 9] = [
    Action::Advance,
    Action::Ask,
    Action::Retry,
    Action::Reassign,
    Action::ProceedPartial,
    Action::Skip,
    Action::FallBack,
    Action::Escalate,
    Action::Terminate,
];

/// Who asks for what, and when.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Act {
    pub(crate) agent: AgentName,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) at: Moment,
    pub(crate) traceparent: Option<TraceParent>,
    pub(crate) usage: Vec<ModelUsage>,
    pub(crate) delivery: Option<Delivery>,
    pub(crate) asked: Asked,
}

/// An owned [`Request`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    Send(Box<Sending>),
    Update(Update),
}

/// A contract and what goes with it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sending {
    pub(crate) bytes: Vec<u8>,
    pub(crate) code: Option<Code>,
    pub(crate) answers: Option<u32>,
    pub(crate) replaces: Option<u32>,
    pub(crate) token: Option<u32>,
}

impl Act {
    /// The step that it is.
    pub(crate) fn step(&self) -> Step {
        let request = match &self.asked {
            Asked::Update(update) => Request::Update(update.clone()),
            Asked::Send(sending) => Request::Send(SendOptions {
                answers: sending.answers,
                replaces: sending.replaces,
                token: sending.token,
                ..SendOptions::default()
            }),
        };
        Step {
            worker: self.worker.clone(),
            traceparent: self.traceparent,
            usage: self.usage.clone(),
            delivery: self.delivery.clone(),
            ..Step::new(self.agent.clone(), self.at, request)
        }
    }

    /// What the planner makes of it.
    pub(crate) fn plan(&self, world: &World, state: &State) -> Result<Planned, Stop<Infallible>> {
        let contract = match &self.asked {
            Asked::Update(_) => None,
            Asked::Send(sending) => Some(SendRequest {
                contract: world.contract(&sending.bytes).unwrap(),
                code: sending.code.as_ref(),
                artifacts: &[],
                policy: Policy::Off,
            }),
        };
        let (protocol, key) = (&world.protocol, &world.key);
        let mut planned = plan(protocol, key, state, &self.step(), contract.as_ref())?;
        if let Planned::Write(step) = &mut planned {
            let demanded = step.demanded.iter();
            let skipped = |&(check, policy)| Evidence::skipped(check, policy, "modelled");
            step.prove(demanded.map(skipped).collect())?;
        }
        Ok(planned)
    }

    /// What it is, for a trace.
    pub(crate) fn name(&self, world: &World) -> String {
        match &self.asked {
            Asked::Send(sending) => {
                let contract = world.contract(&sending.bytes).unwrap();
                format!("send {}", contract.kind)
            }
            Asked::Update(Update::Change { event, .. }) => event.to_string(),
            Asked::Update(Update::Decide { .. }) => "decide".to_owned(),
            Asked::Update(Update::Annotate { .. }) => "annotate".to_owned(),
            Asked::Update(Update::GiveUp { .. }) => "give up".to_owned(),
            Asked::Update(Update::Reopen { .. }) => "reopen".to_owned(),
            Asked::Update(Update::Pause { .. }) => "pause".to_owned(),
            Asked::Update(Update::Set { .. }) => "set".to_owned(),
            Asked::Update(Update::Refuse { .. }) => "refuse".to_owned(),
        }
    }

    /// All of it in one line, for a trace.
    pub(crate) fn line(&self, world: &World) -> String {
        let worker = self.worker.as_ref().map_or("-", WorkerId::as_str);
        let who = format!("{} {}@{worker}", self.at.format("%m-%d %T%.3f"), self.agent);
        let mut line = match &self.asked {
            Asked::Update(update) => format!("{who}: {}", json!(update)),
            Asked::Send(sending) => {
                let contract = world.contract(&sending.bytes).unwrap();
                let Contract {
                    from,
                    to,
                    status,
                    id,
                    ..
                } = contract;
                let parts = json!([from, to, status, id, sending.answers, sending.replaces]);
                format!("{who}: {} {parts}", self.name(world))
            }
        };
        if let Some(delivery) = &self.delivery {
            line += &format!(" for {}/{}", delivery.id.as_str(), delivery.part.as_str());
        }
        line
    }
}

/// Draws requests in one state.
pub(crate) struct Chooser<'a> {
    pub(crate) world: &'a World,
    pub(crate) state: &'a State,
    pub(crate) dice: Dice,
}

impl Chooser<'_> {
    /// How far the clock goes on before the next request.
    pub(crate) fn pause(&mut self) -> TimeDelta {
        let below = |dice: &mut Dice, limit| i64::try_from(dice.below(limit)).unwrap();
        match self.dice.below(100) {
            0..50 => TimeDelta::milliseconds(below(&mut self.dice, 1000)),
            50..90 => TimeDelta::seconds(below(&mut self.dice, 8)),
            90..97 => TimeDelta::seconds(below(&mut self.dice, 400)),
            97..99 => TimeDelta::minutes(below(&mut self.dice, 300)),
            _ => TimeDelta::hours(below(&mut self.dice, 100)),
        }
    }

    /// The next request.
    pub(crate) fn act(&mut self, at: Moment) -> Act {
        let issue = self.state.issue.as_ref();
        let (sends, changes) = match issue.map(|issue| issue.status) {
            None => (97, 98),
            Some(IssueStatus::Open) => (45, 92),
            Some(_) => (40, 45),
        };
        let (agent, worker, asked) = match self.dice.below(100) {
            draw if draw < sends => self.sending(),
            draw if draw < changes => self.change(at),
            _ => self.other(),
        };
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let traced = self.dice.percent(5).then(|| trace.parse().unwrap());
        let delivery = self.dice.percent(6).then(|| Delivery {
            id: format!("d-{}", self.dice.below(5)).parse().unwrap(),
            part: format!("part-{}", self.dice.below(2)).parse().unwrap(),
        });
        Act {
            agent,
            worker,
            at,
            traceparent: traced,
            usage: self.usage(),
            delivery,
            asked,
        }
    }

    /// Now and then, what the work took so far.
    fn usage(&mut self) -> Vec<ModelUsage> {
        let models = if self.dice.percent(30) {
            1 + self.dice.below(2)
        } else {
            0
        };
        let usage = (0..models).map(|model| ModelUsage {
            model: Some(format!("model-{model}")),
            input_tokens: Some(self.dice.below(200)),
            output_tokens: self.dice.percent(80).then(|| self.dice.below(100)),
            cost: Amount::try_from(0.01).ok(),
            currency: Currency::try_from("USD".to_owned()).ok(),
            ..ModelUsage::default()
        });
        usage.collect()
    }

    fn anybody(&mut self) -> AgentName {
        self.dice.one(&self.world.agents).clone()
    }

    /// The worker that holds a handoff, mostly; else any, or none.
    fn worker(&mut self, of: Option<&Record>) -> Option<WorkerId> {
        let lease = of.and_then(|record| record.lease.as_ref());
        match lease {
            Some(lease) if self.dice.percent(85) => Some(lease.worker.clone()),
            _ if self.dice.percent(97) => Some(self.dice.one(&WORKERS).parse().unwrap()),
            _ => None,
        }
    }

    fn number(&mut self) -> u32 {
        let handoffs = u64::try_from(self.state.records.len()).unwrap();
        u32::try_from(1 + self.dice.below(handoffs + 1)).unwrap()
    }

    fn record(&self, number: u32) -> Option<&Record> {
        let at = number.checked_sub(1)? as usize;
        self.state.records.get(at).map(AsRef::as_ref)
    }

    /// A handoff, mostly an open one.
    fn handoff(&mut self) -> u32 {
        let open = self.state.records.iter().filter(|r| !r.state.is_terminal());
        let open: Vec<u32> = open.map(|record| record.id.number()).collect();
        if !open.is_empty() && self.dice.percent(85) {
            *self.dice.one(&open)
        } else {
            self.number()
        }
    }

    /// The token of the newest claim, or another.
    fn token(&mut self, of: Option<&Record>) -> Option<u32> {
        let newest = of.map_or(0, Record::claims);
        let off = u32::try_from(self.dice.below(2)).unwrap();
        self.dice.percent(20).then(|| newest.saturating_sub(off))
    }

    fn sending(&mut self) -> (AgentName, Option<WorkerId>, Asked) {
        let works = |r: &&Record| r.state == Lifecycle::InProgress;
        let records = self.state.records.iter().map(AsRef::as_ref);
        let mut at_work: Vec<&Record> = records.filter(works).collect();
        let issue = self.state.issue.as_deref();
        let left = issue.into_iter().flat_map(|issue| &issue.unfollowed);
        let state = self.state;
        at_work.extend(left.map(|id| &*state.records[id.number() as usize - 1]));
        let held = (!at_work.is_empty()).then(|| (*self.dice.one(&at_work)).clone());
        let held = held.filter(|_| self.dice.percent(90));
        let fits = |contract: &&Contract| match (&held, issue) {
            (Some(held), _) => contract.from.as_ref().is_none_or(|from| *from == held.to),
            (None, None) => self.opens(contract),
            (None, Some(_)) => true,
        };
        let mut fitting: Vec<&Contract> = self.world.contracts.iter().filter(fits).collect();
        if fitting.is_empty() {
            fitting = self.world.contracts.iter().collect();
        }
        let contract = *self.dice.one(&fitting);
        let agent = match &contract.from {
            Some(from) if self.dice.percent(97) => from.clone(),
            _ => held
                .as_ref()
                .map_or_else(|| self.anybody(), |held| held.to.clone()),
        };
        let code = self.dice.percent(30).then(|| Code {
            branch: "fix/desk".to_owned(),
            commit: format!("{:040x}", self.dice.below(9)),
            tree: self.dice.percent(50).then(|| "1".repeat(40)),
        });
        let sending = Sending {
            bytes: contract.bytes.clone(),
            code,
            answers: self.dice.percent(5).then(|| self.number()),
            replaces: self.dice.percent(4).then(|| self.number()),
            token: self.token(held.as_ref()),
        };
        let worker = self.worker(held.as_ref());
        (agent, worker, Asked::Send(Box::new(sending)))
    }

    fn opens(&self, contract: &Contract) -> bool {
        let (Some(from), Some(to)) = (&contract.from, &contract.to) else {
            return true;
        };
        let mut routes = self.world.protocol.routes(from.as_str(), to.as_str());
        routes.any(|route| route.opens && route.contracts.contains(&contract.kind))
    }

    fn change(&mut self, at: Moment) -> (AgentName, Option<WorkerId>, Asked) {
        let number = self.handoff();
        let record = self.record(number).cloned();
        let record = record.as_ref();
        // What ends work is rare.
        let often = |event: Event| match event {
            Event::Cancel | Event::Reject => 1,
            Event::Claim => 12,
            _ => 4,
        };
        let accepted = record.into_iter().flat_map(|r| r.state.accepts());
        let accepted = accepted.flat_map(|event| std::iter::repeat_n(event, often(event)));
        let accepted: Vec<Event> = accepted.collect();
        let event = if accepted.is_empty() || self.dice.percent(10) {
            *self.dice.one(&Event::ALL)
        } else {
            *self.dice.one(&accepted)
        };
        let agent = match record {
            Some(record) if event.is_receivers() && self.dice.percent(93) => record.to.clone(),
            Some(record) => {
                let lead = self.world.protocol.lead().unwrap_or(&record.from).clone();
                let any = self.anybody();
                let some = [record.from.clone(), record.to.clone(), lead, any];
                self.dice.one(&some).clone()
            }
            None => self.anybody(),
        };
        let args = self.arguments(record, event, at);
        let worker = self.worker(record);
        (
            agent,
            worker,
            Asked::Update(Update::change(number, event, args)),
        )
    }

    fn arguments(&mut self, record: Option<&Record>, event: Event, at: Moment) -> EventArgs {
        let mut args = EventArgs {
            token: self
                .token(record)
                .filter(|_| event.is_holders() || event == Event::Cancel),
            ..EventArgs::default()
        };
        if self.dice.percent(5) {
            let ago = i64::try_from(self.dice.below(600)).unwrap();
            args.said_at = Some(at - TimeDelta::seconds(ago));
        }
        let reason = self.dice.percent(75).then(|| self.text());
        match event {
            Event::Claim | Event::Extend => {
                let lease = *self.dice.one(&[1, 5, 60, 3600, 1 << 40]);
                args.lease = self.dice.percent(30).then_some(lease);
                if event == Event::Extend {
                    args.progress = self.dice.percent(60).then(|| self.text());
                }
            }
            Event::Fail => {
                args.failure = self.dice.percent(85).then(|| self.failure());
                args.context = record
                    .filter(|_| self.dice.percent(20))
                    .and_then(|record| self.context(record, event));
            }
            Event::Block => {
                args.reason = reason;
                let keys = self.dice.below(3);
                args.questions = (0..keys).map(|n| self.question(n)).collect();
            }
            Event::Answer => {
                args.reason = reason;
                let asked = record.map_or(&[][..], Record::questions);
                let asked = asked.iter().map(|question| question.key.clone());
                if self.dice.percent(80) {
                    args.values = asked.map(|key| (key, json!("8080"))).collect();
                }
            }
            Event::Reassign => {
                args.reason = reason;
                args.receiver = self.dice.percent(95).then(|| self.anybody());
            }
            Event::Retry => {
                args.reason = reason;
                let jitter = u32::try_from(self.dice.below(1200)).unwrap();
                args.jitter = self.dice.percent(30).then_some(jitter);
            }
            Event::Release => {
                args.reason = reason;
                let after = *self.dice.one(&[1, 30, 3600, 1 << 40]);
                args.after = self.dice.percent(30).then_some(after);
                args.progress = self.dice.percent(30).then(|| self.text());
                args.context = record
                    .filter(|_| self.dice.percent(20))
                    .and_then(|record| self.context(record, event));
            }
            Event::Complete => args.reason = reason.filter(|_| self.dice.percent(20)),
            _ => args.reason = reason,
        }
        if self.dice.percent(4) {
            self.add_strays(&mut args);
        }
        let decided = [
            Event::Retry,
            Event::Reassign,
            Event::Answer,
            Event::Cancel,
            Event::Redrive,
        ];
        if decided.contains(&event) && self.dice.percent(20) {
            args.decision = Some((*self.dice.one(&ACTIONS), self.text()));
        }
        args
    }

    /// Adds arguments that may belong to other events.
    fn add_strays(&mut self, args: &mut EventArgs) {
        match self.dice.below(7) {
            0 => args.receiver = Some(self.anybody()),
            1 => args.failure = Some(self.failure()),
            2 => args.questions = vec![self.question(7)],
            3 => args.values = Map::from_iter([("port_7".to_owned(), json!(1))]),
            4 => args.progress = Some(self.text()),
            5 => args.after = Some(7),
            _ => args.lease = Some(7),
        }
    }

    fn text(&mut self) -> String {
        let texts = [
            "The scale is broken",
            "A courier waits",
            "Résumé, \"quoted\"\nline two",
            "three\n\n.\n  lines, Issue: 9\nEvent: send\n",
            " 計量器が壊れた \u{202e}right\u{1b}[2J to left\t",
            "C:\\users\\u{41} עברית 👩\u{200d}💻",
        ];
        (*self.dice.one(&texts)).to_owned()
    }

    fn failure(&mut self) -> Failure {
        let known = &self.world.protocol.definition().words.errors;
        let mut codes: Vec<&str> = known.keys().map(String::as_str).collect();
        codes.extend(["FAILED", "TIMEOUT", "BuildError"]);
        let code = (*self.dice.one(&codes)).to_owned();
        Failure {
            code,
            message: self.text(),
            details: self.dice.percent(20).then(|| "more".to_owned()),
            recoverable: self.dice.percent(70),
            suggested_action: self.dice.percent(20).then(|| "look".to_owned()),
            no_retry: self.dice.percent(10),
            run: self
                .dice
                .percent(20)
                .then(|| *self.dice.one(&RunFailure::ALL)),
        }
    }

    fn context(&mut self, record: &Record, event: Event) -> Option<FailureContext> {
        let other = layout::kept_folder(record.id.number(), event, 1 + record.attempt);
        Some(FailureContext {
            folder: other
                .filter(|_| self.dice.percent(10))
                .or(record.kept_folder(event))?,
            tree: format!("{:040x}", 1 + self.dice.below(9)),
            files: 2,
            bytes: 10,
        })
    }

    fn question(&mut self, number: u64) -> Question {
        Question {
            key: format!("port_{number}"),
            kind: self.dice.percent(50).then(|| "text".to_owned()),
            description: self.dice.percent(50).then(|| self.text()),
            optional: self.dice.percent(30),
        }
    }

    /// What changes no handoff.
    fn other(&mut self) -> (AgentName, Option<WorkerId>, Asked) {
        let text = self.text();
        let issue = self.state.issue.as_ref();
        let is_open = issue.is_some_and(|issue| issue.status == IssueStatus::Open);
        let is_paused = issue.is_some_and(|issue| issue.paused.is_some());
        let update = match self.dice.below(7) {
            // Most of what can happen can't while it is paused.
            0..4 if is_paused => Update::Reopen {
                reason: text,
                said_at: None,
            },
            0 if is_open => Update::GiveUp { reason: text },
            0 | 1 => Update::Reopen {
                reason: text,
                said_at: None,
            },
            6 => Update::Pause {
                reason: text,
                except: (0..self.dice.below(3)).map(|_| self.anybody()).collect(),
                said_at: None,
            },
            2 => Update::Decide {
                handoff: self.number(),
                action: *self.dice.one(&ACTIONS),
                why: text,
            },
            3 => Update::Refuse {
                kind: *self.dice.one(&[
                    OnRecord::Limits,
                    OnRecord::Cycles,
                    OnRecord::RefusedContracts,
                ]),
                code: "invalid_contract".to_owned(),
                why: "It is incomplete".to_owned(),
            },
            4 => Update::Annotate {
                handoff: Some(self.number()),
                note: text,
                facts: Map::new(),
                approval: Some(Approval {
                    approved: self.dice.percent(60),
                    code: None,
                }),
            },
            _ => {
                let mut facts: Map<String, Value> = Map::new();
                if self.dice.percent(30) {
                    facts.insert("priority".to_owned(), json!("high"));
                }
                Update::Annotate {
                    handoff: self.dice.percent(60).then(|| self.number()),
                    note: text,
                    facts,
                    approval: None,
                }
            }
        };
        (self.anybody(), self.worker(None), Asked::Update(update))
    }
}
