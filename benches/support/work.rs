//! A team at work: issues in flight, each advanced by `ledger::plan`.

use std::convert::Infallible;
use std::rc::Rc;

use chrono::{DateTime, FixedOffset};
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::{Edit, to_second};
use handoff::contract::Format;
use handoff::git::Person;
use handoff::model::{
    DaySpending, EventArgs, Issue, PlannedStep, Record, Request, SendOptions, SendRequest, Step,
    Update, View, plan, record_file,
};
use handoff::protocol::{Event, Policy};

use super::contracts::{Samples, Stage};

/// The start of the work; each step takes a second, so that no lease expires within an issue.
const START: i64 = 1_767_261_600;

/// How many issues are in flight at any time.
const IN_FLIGHT: usize = 40;

/// A step with its author.
pub struct Planned {
    pub step: PlannedStep,
    pub author: Person,
    pub sends: bool,
    pub contract: Option<Vec<u8>>,
}

/// One issue, in memory.
struct InMemory {
    number: u32,
    key: IssueKey,
    issue: Option<Issue>,
    records: Vec<Record>,
    contracts: Vec<Vec<u8>>,
    stages: std::vec::IntoIter<Stage>,
    claimed: bool,
}

impl View<Infallible> for InMemory {
    fn shared_issue(&self) -> Result<Option<Rc<Issue>>, Infallible> {
        Ok(self.issue.clone().map(Rc::new))
    }

    fn shared_record(&self, number: u32) -> Result<Option<Rc<Record>>, Infallible> {
        let found = self.records.get(number as usize - 1).cloned();
        Ok(found.map(Rc::new))
    }

    fn sent_before(&self, bytes: &[u8]) -> Result<Vec<u32>, Infallible> {
        let found = self.contracts.iter().rposition(|sent| sent == bytes);
        Ok(found.map(|at| at as u32 + 1).into_iter().collect())
    }

    fn spent_on(&self, _day: &str) -> Result<Option<DaySpending>, Infallible> {
        Ok(None)
    }

    fn contract(&self, record: &Record) -> Result<Rc<[u8]>, Infallible> {
        let at = record.id.number() as usize - 1;
        Ok(self.contracts[at].as_slice().into())
    }
}

impl InMemory {
    fn new(number: u32) -> Self {
        Self {
            number,
            key: number.to_string().parse().unwrap(),
            issue: None,
            records: Vec::new(),
            contracts: Vec::new(),
            stages: Stage::all(number).into_iter(),
            claimed: true,
        }
    }

    fn is_done(&self) -> bool {
        self.stages.len() == 0
    }

    fn step(&mut self, samples: &Samples, at: DateTime<FixedOffset>) -> Planned {
        let sends = self.claimed;
        let contract = sends.then(|| {
            let stage = self.stages.next().unwrap();
            // One issue in three speaks JSON, the others XML.
            let format = if self.number.is_multiple_of(3) {
                Format::Json
            } else {
                Format::Xml
            };
            samples.review(&samples.text(stage, self.number, format))
        });
        let (name, request): (AgentName, Request) = match &contract {
            Some(contract) => (
                contract
                    .from
                    .clone()
                    .expect("the contract names its sender"),
                Request::Send(SendOptions::default()),
            ),
            None => {
                let last = self.records.last().unwrap();
                let claim = Update::change(last.id.number(), Event::Claim, EventArgs::default());
                (last.to.clone(), Request::Update(claim))
            }
        };
        let sent = contract.as_ref().map(|contract| SendRequest {
            contract,
            code: None,
            artifacts: &[],
            policy: Policy::Off,
        });
        let step = Step {
            worker: Some("bench".parse().unwrap()),
            ..Step::new(name.clone(), to_second(at), request)
        };
        let planned = plan(&samples.protocol, &self.key, self, &step, sent.as_ref());
        let step = match planned {
            Ok(handoff::model::Planned::Write(step)) => *step,
            Ok(_) => panic!("issue {}: the step was taken before", self.key),
            Err(stop) => panic!("issue {}: the step is refused: {stop:?}", self.key),
        };
        let contract = contract.map(|c| c.bytes);
        for change in &step.receipt.changes {
            let path = record_file(&change.id);
            let written = step.files.iter().find(|(p, _)| *p == path);
            let Some((_, Edit::Bytes(bytes))) = written else {
                panic!("issue {}: the record is not written", self.key);
            };
            let record: Record = serde_json::from_slice(bytes).unwrap();
            let at = change.id.number() as usize - 1;
            self.records.truncate(self.records.len().max(at));
            match self.records.get_mut(at) {
                Some(old) => *old = record,
                None => self.records.push(record),
            }
        }
        self.contracts.extend(contract.clone());
        self.issue = Some(step.receipt.issue.clone());
        self.claimed = !sends;
        let author = Person::new(name.as_str(), &format!("{name}@handoff.invalid"), at);
        Planned {
            step,
            author,
            sends,
            contract,
        }
    }
}

/// An endless run of legal steps, [`IN_FLIGHT`] issues at a time.
pub struct Work {
    samples: Samples,
    in_flight: Vec<InMemory>,
    next_issue: u32,
    chance: u64,
    steps: i64,
}

impl Work {
    pub fn new() -> Self {
        Self {
            samples: Samples::new(),
            in_flight: Vec::new(),
            next_issue: 1,
            chance: 7,
            steps: 0,
        }
    }

    fn next_time(&mut self) -> DateTime<FixedOffset> {
        self.steps += 1;
        DateTime::from_timestamp(START + self.steps, 0)
            .unwrap()
            .fixed_offset()
    }

    /// The next step of an issue chosen by a fixed rule.
    pub fn next_step(&mut self) -> Planned {
        let at = self.next_time();
        // Any mixing function will do; this one is Knuth's.
        self.chance = self
            .chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let chosen = (self.chance >> 33) as usize % IN_FLIGHT;
        if chosen >= self.in_flight.len() {
            self.in_flight.push(InMemory::new(self.next_issue));
            self.next_issue += 1;
        }
        let chosen = chosen.min(self.in_flight.len() - 1);
        let planned = self.in_flight[chosen].step(&self.samples, at);
        if self.in_flight[chosen].is_done() {
            self.in_flight[chosen] = InMemory::new(self.next_issue);
            self.next_issue += 1;
        }
        planned
    }

    /// An issue's first steps, one second after the other.
    pub fn first_steps(&mut self, issue: u32, count: usize) -> Vec<Planned> {
        let mut issue = InMemory::new(issue);
        let mut step = |_| {
            let at = self.next_time();
            issue.step(&self.samples, at)
        };
        (0..count).map(&mut step).collect()
    }

    /// The step that opens this issue, whatever else happened.
    pub fn opening(&mut self, issue: u32) -> Planned {
        let at = DateTime::from_timestamp(START - 60, 0)
            .unwrap()
            .fixed_offset();
        InMemory::new(issue).step(&self.samples, at)
    }
}
