//! Prints what is open, and with whom. `cargo run -p handoff --example open_work`
#![allow(clippy::print_stdout)]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let repository = handoff::open()?;
    let ledger = handoff::Ledger::new(&repository, handoff::DEFAULT_BRANCH)?;
    for listed in ledger.tip()?.open()? {
        println!("{}  {}", listed.id, listed.to);
    }
    Ok(())
}
