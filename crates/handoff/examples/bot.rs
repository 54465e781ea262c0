//! A bot: takes the most urgent work that waits for an agent, and completes it.
//!
//! `cargo run -p handoff --example bot -- AGENT`, in a repository with a ledger.

use std::error::Error;

use handoff::{AgentName, DEFAULT_BRANCH, Event, EventArgs, Ledger, Target, Update};

/// Does one piece of work; returns a line about it.
pub(crate) fn work(agent: &AgentName) -> Result<String, Box<dyn Error>> {
    let repository = handoff::open()?;
    let mut ledger = Ledger::new(&repository, DEFAULT_BRANCH)?;
    let session = handoff::session("Bot", "bot@example.com", "bot".parse()?);
    let none = EventArgs::default();
    let claimed = ledger.claim(&session, agent, &Target::Next, Event::Claim, &none)?;
    let record = claimed.receipt.record;
    // A real bot works here; one that hands the work on calls `Ledger::send` with a contract.
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
