//! Programs that run agents, with a stand-in for the model: what `git handoff agents install` writes
//! reaches the model, `git handoff work` has them do an issue, and knows what went wrong.
//!
//! Each test runs where only loopback can be reached. A program that can't be had is left out, which
//! is said; with CI set, that is a failure for those that must be there.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

mod agent;
mod faults;
mod harness;
mod issue;
mod model;
mod network;
mod reach;
mod trial;
mod wire;

use harness::Harness;

/// Runs a test, of this name, of a program.
#[allow(clippy::print_stderr, reason = "what is left out is said")]
fn run(harness: &'static Harness, name: &str, test: fn(&'static Harness)) {
    if network::is_alone() {
        return test(harness);
    }
    let missing = harness.program().err();
    let missing = missing.or_else(|| network::missing().map(str::to_owned));
    if let Some(why) = missing {
        let title = harness.title;
        let must = harness.is_required && std::env::var_os("CI").is_some();
        assert!(!must, "{title} can't be had: {why}");
        eprintln!("NOT RUN: {title}: {why}");
        return;
    }
    network::run_alone(name);
}

/// The same tests for each program.
macro_rules! harnesses {
    ($($module:ident: $harness:ident,)*) => {$(
        mod $module {
            #[test]
            fn what_is_installed_reaches_the_model() {
                let name = concat!(stringify!($module), "::what_is_installed_reaches_the_model");
                crate::run(&crate::harness::$harness, name, crate::reach::installed);
            }

            #[test]
            fn its_profile_does_an_issue() {
                let name = concat!(stringify!($module), "::its_profile_does_an_issue");
                crate::run(&crate::harness::$harness, name, crate::issue::whole);
            }

            #[test]
            fn a_provider_that_refuses_is_no_failed_attempt() {
                let name = concat!(stringify!($module), "::a_provider_that_refuses_is_no_failed_attempt");
                crate::run(&crate::harness::$harness, name, crate::faults::refusals);
            }

            #[test]
            fn a_run_that_does_nothing_or_hangs_has_failed() {
                let name = concat!(stringify!($module), "::a_run_that_does_nothing_or_hangs_has_failed");
                crate::run(&crate::harness::$harness, name, crate::faults::idle);
            }

            #[test]
            fn a_worker_that_was_interrupted_or_killed_goes_on() {
                let name = concat!(stringify!($module), "::a_worker_that_was_interrupted_or_killed_goes_on");
                crate::run(&crate::harness::$harness, name, crate::faults::cut_off);
            }
        }
    )*};
}

harnesses! {
    claude: CLAUDE,
    codex: CODEX,
    opencode: OPENCODE,
    copilot: COPILOT,
    gemini: GEMINI,
    qwen: QWEN,
}
