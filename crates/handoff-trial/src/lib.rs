//! Plays a protocol in a scratch ledger, which is deleted afterwards: with the real engine,
//! simulated agents and a simulated clock.
//!
//! `contract` writes the agents' contracts: it fills templates with values that the schema allows
//! (`values`), and varies refused ones until they are accepted or no candidates are left. `play`
//! makes the agents' moves, and `scenarios` plays the situations that a protocol must handle.

mod conditions;
mod contract;
mod play;
mod scenarios;
mod scratch;
mod values;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, FixedOffset, TimeDelta};
use handoff::base::ids::AgentName;
use handoff::base::{Moment, ObjectFormat};
use handoff::git::Repository;
use handoff::ledger::{
    Clock, DEFAULT_BRANCH, Founding, Ledger, LedgerError, ProtocolError, Session,
};
use handoff::protocol::{Policy, Protocol, SIGNERS};
use serde_json::Value;

use contract::{Choices, Way};
use handoff_cli::failure::{ErrorCode, Failure};
use play::KeyForm;

pub use scenarios::{Load, Played, Scenario};

/// Candidate values for a place of a schema, the likeliest first.
pub fn values(schema: &Value, pointer: &str) -> Vec<Value> {
    let unique = "example-7";
    values::Values { schema, unique }.at(pointer)
}

/// The URL of the simulated code repository, for templates.
const ORIGIN: &str = "https://github.com/example/example.git";

/// A simulated pull request.
const PULL_REQUEST: &str = "https://github.com/example/example/pull/1";

/// The start of a trial, in Unix seconds, years before today.
const BEGIN: i64 = 1_577_869_200;

/// A clock that advances only between steps.
struct SetClock(Cell<DateTime<FixedOffset>>);

impl Clock for SetClock {
    fn author(&self) -> DateTime<FixedOffset> {
        self.0.get()
    }

    fn committer(&self) -> DateTime<FixedOffset> {
        self.0.get()
    }
}

/// A protocol in a scratch ledger.
struct Trial<'r> {
    repository: &'r Repository,
    ledger: Ledger<'r>,
    session: Session,
    clock: Rc<SetClock>,
    protocol: Protocol,
    /// The schemas, by path in the protocol's folder.
    schemas: BTreeMap<String, Value>,
    /// The accepted values, by contract.
    learned: BTreeMap<Way, Choices>,
    key_form: Option<KeyForm>,
    issues: u32,
    steps: u32,
}

/// Plays a protocol that `protocol check` accepts.
///
/// # Errors
/// A [`Failure`] if the scratch ledger can't be created; the protocol's faults are in the
/// scenarios.
pub fn play(files: &[(String, Vec<u8>)], issues: u32) -> Result<Played, Failure> {
    let folder = scratch::folder().map_err(|error| {
        let text = format!("no temporary folder can be made: {error}");
        Failure::new(ErrorCode::FolderUnwritable, text)
    })?;
    let repository =
        Repository::create_scratch(folder.path(), ObjectFormat::Sha1).map_err(LedgerError::from)?;
    repository
        .set_config("remote.origin.url", ORIGIN)
        .map_err(LedgerError::from)?;
    let mut trial = Trial::new(&repository, files)?;
    trial.scenarios(issues)
}

impl<'r> Trial<'r> {
    fn new(repository: &'r Repository, files: &[(String, Vec<u8>)]) -> Result<Self, Failure> {
        let files: Vec<(String, Vec<u8>)> = files
            .iter()
            // Nobody here has the keys.
            .filter(|(path, _)| path != SIGNERS)
            .map(|(path, bytes)| (path.clone(), without_evidence(path, bytes)))
            .collect();
        let definition = files.iter().find(|(path, _)| path == "protocol.json");
        let protocol = Protocol::load(definition.map_or(&[][..], |(_, bytes)| bytes))
            .map_err(|findings| LedgerError::from(ProtocolError::Refused(findings)))?;
        let schemas = files
            .iter()
            .filter(|(path, _)| path.starts_with("schemas/"));
        let schemas = schemas
            .filter_map(|(path, bytes)| Some((path.clone(), serde_json::from_slice(bytes).ok()?)));
        let start = DateTime::from_timestamp(BEGIN, 0).unwrap_or_default();
        let clock = Rc::new(SetClock(Cell::new(start.fixed_offset())));
        let mut trial = Self {
            repository,
            ledger: Ledger::new(repository, DEFAULT_BRANCH)?,
            session: session(Rc::clone(&clock)),
            clock,
            schemas: schemas.collect(),
            learned: BTreeMap::new(),
            key_form: None,
            issues: 0,
            steps: 0,
            protocol,
        };
        let founding = Founding {
            protocol: trial.protocol.definition().name.clone(),
            evidence: Policy::Off,
            files,
            readme: String::new(),
        };
        trial.ledger.init(&trial.session, &founding)?;
        Ok(trial)
    }

    /// Advances the clock.
    fn wait(&self, seconds: u64) {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let now = self.clock.0.get();
        let later = TimeDelta::try_seconds(seconds).and_then(|by| now.checked_add_signed(by));
        self.clock.0.set(later.unwrap_or(now));
    }

    /// Advances the clock to a moment.
    fn wait_until(&self, at: Moment) {
        let left = at - self.now();
        self.wait(u64::try_from(left.num_seconds()).unwrap_or(0) + 1);
    }

    fn now(&self) -> Moment {
        Moment::from(self.clock.0.get())
    }

    /// From now on, steps are made by this worker of an agent.
    fn act_as(&mut self, agent: &AgentName, worker: &str) {
        let name = agent.as_str().trim_start_matches('@');
        self.session.worker = format!("{name}-{worker}").parse().ok();
    }
}

/// A protocol's file with evidence disabled: no claim about the repository is true here.
fn without_evidence(path: &str, bytes: &[u8]) -> Vec<u8> {
    if path == "protocol.json"
        && let Ok(Value::Object(mut definition)) = serde_json::from_slice(bytes)
        && definition.shift_remove("evidence").is_some()
    {
        return Value::Object(definition).to_string().into_bytes();
    }
    bytes.to_vec()
}

fn session(clock: Rc<SetClock>) -> Session {
    Session {
        clock,
        name: "Trial".to_owned(),
        worker: None,
        agent: None,
        email: "trial@handoff.invalid".to_owned(),
        patience: Duration::from_secs(5),
        offline: false,
        began: SystemTime::now(),
        wall: SystemTime::now,
        jitter: |below| below / 2,
        sign: false,
        traceparent: None,
        usage: Vec::new(),
        delivery: None,
        quarantined: false,
        is_run: false,
        tally: Arc::default(),
    }
}
