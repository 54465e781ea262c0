//! Whole lives of issues, by chance: people and agents act, and what GitHub tells of it arrives shuffled, doubled, late, and
//! through runs that are killed or meet. In the end the ledger, the check and the comments are what a model says.
//!
//! A life is random but for its seed. `LIVES=1000` plays so many, `LIVES_SEED` begins with another one: a failure prints
//! its seed and all that happened.

mod agents;
mod delivery;
mod hub;
mod judge;
mod model;
mod said;
mod walk;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use test_support::dice::Dice;

use delivery::Mail;
use hub::Hub;

/// The lives of the short form.
const SHORT: u64 = 8;

/// The issue whose life it is, and another one that some pull requests close with it.
const ISSUE: u64 = 87;
const OTHER: u64 = 88;

/// One life: what is simulated, what is on its way, and all that happened, as lines.
struct Life {
    dice: Dice,
    hub: Hub,
    mail: Mail,
    /// How often agents act, beside what people do.
    diligence: u64,
    /// Whether some runs are those of the workflow's own file.
    by_workflow: bool,
    /// Whether each run asks GitHub how things are now, as the workflow's do.
    asks: bool,
    log: Vec<String>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let hub = Hub::new(&mut dice);
        let diligence = *dice.one(&[20, 60, 150]);
        let by_workflow = dice.percent(8);
        let asks = dice.percent(30);
        Self {
            dice,
            hub,
            diligence,
            by_workflow,
            asks,
            mail: Mail::default(),
            log: Vec::new(),
        }
    }

    fn play(&mut self) {
        self.open_issues();
        let mut left = 16 + self.dice.below(30);
        while left > 0 {
            left -= 1;
            let was_completed = self.hub.model.completed.is_some();
            self.act();
            if !was_completed && self.hub.model.completed.is_some() {
                left = 6;
            }
            self.send_out();
            while self.dice.percent(45) && self.deliver_one() {}
        }
        self.deliver_all();
        self.judge();
    }
}

fn set(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

#[test]
#[expect(clippy::print_stderr)]
fn a_life_ends_as_it_would_have_in_order() {
    let first = set("LIVES_SEED").unwrap_or(1);
    let count = set("LIVES").unwrap_or(if set("LIVES_SEED").is_some() {
        1
    } else {
        SHORT
    });
    let start = Instant::now();
    let mut deliveries = 0;
    let (mut failed, mut completed, mut again) = (Vec::new(), 0, 0);
    for seed in first..first + count {
        let mut life = Life::new(seed);
        let played = catch_unwind(AssertUnwindSafe(|| life.play()));
        deliveries += life.mail.deliveries();
        completed += u64::from(life.hub.model.completed.is_some());
        again += u64::from(life.hub.model.again(ISSUE).is_some());
        if let Err(panic) = played {
            eprintln!(
                "LIVES_SEED={seed} failed; what happened:\n{}",
                life.log.join("\n")
            );
            // The short form ends at the first one; the long form says how many there are.
            if count <= SHORT {
                resume_unwind(panic);
            }
            failed.push(seed);
        }
    }
    let seconds = start.elapsed().as_secs();
    eprintln!(
        "{count} lives, {completed} of them to the end and {again} reopened after it, {deliveries} deliveries, {seconds} s; failed: {failed:?}"
    );
    assert!(
        failed.is_empty(),
        "the seeds of lives that failed: {failed:?}"
    );
}
