//! A bot: takes the most urgent work that waits for an agent, and completes it.
//!
//! `cargo run -p handoff-ledger --example bot -- AGENT`, in a repository with a ledger.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::SystemTime;

use chrono::{DateTime, FixedOffset, Utc};
use handoff_base::ids::AgentName;
use handoff_git::Repository;
use handoff_ledger::{Clock, DEFAULT_BRANCH, Ledger, Session, Target};
use handoff_model::{EventArgs, Update};
use handoff_protocol::Event;

/// The library has no clock of its own.
struct SystemClock;

impl Clock for SystemClock {
    fn author(&self) -> DateTime<FixedOffset> {
        Utc::now().fixed_offset()
    }

    fn committer(&self) -> DateTime<FixedOffset> {
        self.author()
    }
}

/// Does one piece of work; returns a line about it.
pub(crate) fn work(agent: &AgentName) -> Result<String, Box<dyn Error>> {
    let repository = Repository::open_here()?;
    let mut ledger = Ledger::new(&repository, DEFAULT_BRANCH)?;
    let clock = Rc::new(SystemClock);
    let jitter = |below: u64| RandomState::new().hash_one(below) % below.max(1);
    let session = Session {
        worker: Some("bot".parse()?),
        ..Session::new(clock, ("Bot", "bot@example.com"), SystemTime::now, jitter)
    };
    let none = EventArgs::default();
    let claimed = ledger.claim(&session, agent, &Target::Next, Event::Claim, &none)?;
    let record = claimed.receipt.record;
    // Here the work is done; a bot that hands it on calls `Ledger::send` with a contract.
    let update = Update::change(record.id.number(), Event::Complete, none);
    ledger.update(&session, agent, record.id.issue(), &update)?;
    Ok(format!("completed {}: {}", record.id, record.summary))
}

#[allow(dead_code, reason = "a test calls `work`")]
#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let agent = std::env::args().nth(1).ok_or("name the agent")?;
    println!("{}", work(&agent.parse()?)?);
    Ok(())
}
