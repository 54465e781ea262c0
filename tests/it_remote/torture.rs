//! Many clones of one ledger, agents in each, and everything that can go wrong
//! beside them: what was acknowledged is on the remote once, or refused with a
//! reason, and every repository is whole.
//!
//! A run is random but for its seed. `scripts/torture` runs it for as long as one
//! likes; see there for what can be set. Whom to kill is read from /proc.
#![expect(clippy::print_stderr)]

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::torture_field::{Field, Plan, judge};

fn set(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

#[test]
fn what_was_acknowledged_stands_whatever_breaks() {
    let long = set("TORTURE_MINUTES").map(|minutes| Duration::from_secs(60 * minutes));
    let first = set("TORTURE_SEED").unwrap_or(6);
    let start = Instant::now();
    let mut seed = first;
    loop {
        let plan = Plan {
            seed,
            clones: set("TORTURE_CLONES").unwrap_or(4),
            steps: set("TORTURE_STEPS").unwrap_or(14),
        };
        eprintln!("seed {seed}: {plan:?}");
        let mut field = Field::new(&plan);
        let account = field.run(&plan);
        field.heal();
        judge::judge(&field, &account);
        let freed = field.freed.load(Ordering::SeqCst);
        eprintln!(
            "seed {seed}: {}, locks freed {freed} times; {:?}",
            account.summary(),
            field.faults()
        );
        account.assert_busy();
        for (fault, count) in field.faults() {
            assert!(count > 0, "no {fault}");
        }
        field.passed();
        seed += 1;
        if long.is_none_or(|long| start.elapsed() >= long) {
            break;
        }
    }
}
