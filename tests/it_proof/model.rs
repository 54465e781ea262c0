//! The planner as a state machine: whatever agents ask for in an issue, in any order and at any
//! time, the invariants of `invariants.rs` hold after each step, under each built-in protocol.
//!
//! A request is drawn from a number and the state that it meets. So a walk is a list of numbers, and
//! one that breaks an invariant is shortened by leaving out what it does not need.

mod act;
mod invariants;
mod recorded;
mod state;
mod world;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use handoff::base::Moment;
use handoff::model::{EventArgs, LeaseRefusal, Planned, Refusal, Stop, Update};
use handoff::protocol::{Event, State as Lifecycle};
use test_support::dice::Dice;
use test_support::proof::Proof;
use test_support::team::BUILT_IN;

use act::{Act, Asked, Chooser};
use invariants::Taken;
use state::State;
use world::World;

/// How many requests a walk makes.
const WALK: usize = 60;

/// What the walks came by.
#[derive(Default)]
struct Seen {
    requests: u64,
    steps: u64,
    refused: u64,
    repeated: u64,
    states: HashSet<u64>,
    shapes: HashSet<u64>,
    /// How often each kind of request was written.
    written: BTreeMap<String, u64>,
    lifecycle: BTreeSet<Lifecycle>,
    /// Each request and what came of it, if that is told.
    trace: Option<Vec<String>>,
}

/// An invariant that a walk broke, and how.
struct Broken {
    invariant: &'static str,
    how: String,
}

/// Makes the requests that these numbers draw, one after the other.
fn walk(world: &World, numbers: &[u64], seen: &mut Seen) -> Result<(), Broken> {
    let mut state = State::default();
    let mut now: Moment = "2026-03-02T09:00:00Z".parse().unwrap();
    for number in numbers {
        let dice = Dice::new(*number);
        let mut chooser = Chooser {
            world,
            state: &state,
            dice,
        };
        now += chooser.pause();
        let mut act = chooser.act(now);
        seen.requests += 1;
        let mut planned = act.plan(world, &state);
        if let Err(Stop::Refused(Refusal::Lease(LeaseRefusal::Overdue(id)))) = &planned {
            // The ledger records that first.
            seen.tell(|| format!("{}: overdue", act.line(world)));
            let update = Update::change(id.number(), Event::Expire, EventArgs::default());
            act = Act {
                agent: state.records[id.number() as usize - 1].to.clone(),
                worker: None,
                traceparent: None,
                usage: Vec::new(),
                delivery: None,
                asked: Asked::Update(update),
                ..act
            };
            planned = act.plan(world, &state);
        }
        seen.tell(|| {
            let line = act.line(world);
            match &planned {
                Ok(Planned::Write(_)) => line,
                Ok(Planned::Repeat(_)) => format!("{line}: repeated"),
                Err(stop) => format!("{line}: {stop:?}"),
            }
        });
        match planned {
            Ok(Planned::Write(step)) => {
                let broken = |invariant| move |how| Broken { invariant, how };
                let written = state.after(&step.files);
                let after = written.map_err(broken("each file reads back"))?;
                let (before, step) = (&state, &*step);
                let taken = Taken {
                    world,
                    before,
                    after: &after,
                    act: &act,
                    step,
                };
                for (name, holds) in invariants::ALL {
                    holds(&taken).map_err(broken(name))?;
                }
                seen.note(&act.name(world), &after);
                state = after;
            }
            Ok(Planned::Repeat(_)) => seen.repeated += 1,
            Err(_) => seen.refused += 1,
        }
    }
    Ok(())
}

impl Seen {
    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(line());
        }
    }

    fn note(&mut self, name: &str, state: &State) {
        self.steps += 1;
        self.states.insert(state.digest);
        self.shapes.insert(state.shape());
        *self.written.entry(name.to_owned()).or_default() += 1;
        self.lifecycle.extend(state.records.iter().map(|r| r.state));
    }
}

/// The same, with a panic as a broken invariant too.
fn try_walk(world: &World, numbers: &[u64], seen: &mut Seen) -> Result<(), Broken> {
    let walked = catch_unwind(AssertUnwindSafe(|| walk(world, numbers, seen)));
    walked.unwrap_or_else(|_| {
        let how = "see above".to_owned();
        let invariant = "no panic";
        Err(Broken { invariant, how })
    })
}

/// The shortest walk found that breaks the same invariant.
fn shortened(world: &World, mut numbers: Vec<u64>, invariant: &str) -> Vec<u64> {
    let mut size = numbers.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < numbers.len() {
            let mut fewer = numbers.clone();
            fewer.drain(at..numbers.len().min(at + size));
            match try_walk(world, &fewer, &mut Seen::default()) {
                Err(same) if same.invariant == invariant => numbers = fewer,
                _ => at += size,
            }
        }
        size /= 2;
    }
    numbers
}

/// Tells of the shortest walk that breaks the same invariant.
fn fail(world: &World, numbers: Vec<u64>, broken: Broken, seed: u64) -> ! {
    let numbers = shortened(world, numbers, broken.invariant);
    let mut seen = Seen {
        trace: Some(Vec::new()),
        ..Seen::default()
    };
    let again = try_walk(world, &numbers, &mut seen);
    let Broken { invariant, how } = again.err().unwrap_or(broken);
    let trace = seen.trace.unwrap_or_default().join("\n");
    let protocol = world.protocol.name();
    panic!("{invariant} under {protocol}, seed {seed}: {how}\nafter {numbers:?}:\n{trace}");
}

#[test]
fn prove_that_the_planner_keeps_its_invariants() {
    let mut proof = Proof::new("model", 60);
    let worlds = BUILT_IN.map(World::new);
    let mut seen = Seen::default();
    while let Some(seed) = proof.case() {
        let which = usize::try_from(seed).unwrap() % worlds.len();
        let world = &worlds[which];
        let mut dice = Dice::new(seed);
        let numbers: Vec<u64> = (0..WALK).map(|_| dice.below(1 << 31)).collect();
        if let Err(broken) = try_walk(world, &numbers, &mut seen) {
            fail(world, numbers, broken, seed);
        }
    }
    seen.assert_busy();
    proof.passed(&seen.counts());
}

impl Seen {
    /// The walks went everywhere.
    fn assert_busy(&self) {
        for state in Lifecycle::ALL {
            assert!(self.lifecycle.contains(&state), "nothing was {state}");
        }
        let own = ["decide", "annotate", "give up", "reopen", "pause", "refuse"];
        let events = Event::ALL.into_iter().filter(|e| *e != Event::Exhaust);
        for name in events.map(Event::as_str).chain(own) {
            assert!(
                self.written.contains_key(name),
                "no {name}: {:?}",
                self.written
            );
        }
    }

    fn counts(&self) -> [(&'static str, u64); 6] {
        let count = |set: &HashSet<u64>| u64::try_from(set.len()).unwrap();
        [
            ("requests", self.requests),
            ("steps", self.steps),
            ("refused", self.refused),
            ("repeated", self.repeated),
            ("distinct states", count(&self.states)),
            ("states apart from times and texts", count(&self.shapes)),
        ]
    }
}
