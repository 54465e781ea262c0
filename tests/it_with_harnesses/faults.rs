//! What goes wrong while `git handoff work` runs an agent, and what it makes of it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rustix::process::Signal;
use serde_json::Value;
use test_support::running::Running;
use test_support::stored;
use test_support::until;

use crate::agent::{Obedient, Turn};
use crate::harness::Harness;
use crate::trial::Trial;

/// The options of a worker that does one piece, of this issue.
fn one<'a>(trial: &Trial, issue: &'a str) -> Vec<&'a str> {
    let mut args = vec!["work", "--as", "prep-agent", "--once", "--json"];
    args.extend(["--profile", trial.harness.name, "--issue", issue]);
    args
}

/// What came of it: the outcome, and why.
fn outcome(trial: &Trial, issue: u32, options: &[&str]) -> (String, String, String) {
    let issue = issue.to_string();
    let args = [one(trial, &issue), options.to_vec()].concat();
    let ran = trial.handoff(&args);
    let story = format!("{}\n{}", trial.model.story(), ran.shown);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{story}"));
    let piece = &document["data"]["pieces"][0];
    let text = |name: &str| piece[name].as_str().unwrap_or_default().to_owned();
    (text("outcome"), text("why"), story)
}

/// Plays the agent that does what it is told.
fn obey(trial: &Trial) {
    let by_command = trial.harness.by_command;
    trial.model.plays(move |request| {
        let merged = None;
        Obedient { by_command, merged }.turn(request)
    });
}

/// A provider that refuses, for good: the work is given back as it was, with what the program said.
/// One that refuses for a while is waited for.
pub(crate) fn refusals(harness: &'static Harness) {
    let trial = Trial::new(harness, &[]);
    let by_command = harness.by_command;
    let mut became = Vec::new();
    let mut stories = String::new();
    // For good, but the last.
    for (issue, status, times) in [
        (11, 401, None),
        (12, 429, None),
        (13, 500, None),
        (14, 529, None),
        (15, 429, Some(2)),
    ] {
        trial.open(issue);
        let refused = AtomicU32::new(0);
        trial.model.plays(move |request| {
            if times.is_none_or(|times| refused.fetch_add(1, Relaxed) < times) {
                return Turn::Refuse(status, Some(1));
            }
            let merged = None;
            Obedient { by_command, merged }.turn(request)
        });
        // One goes on asking for as long as it may.
        let ends = harness.retries_for_ever && status == 429 && times.is_none();
        let options: &[&str] = if ends { &["--time", "40s"] } else { &[] };
        let (outcome, why, story) = outcome(&trial, issue, options);
        let record = stored(&trial.data(&["show", &format!("{issue}.1")]));
        // Codex says it in words.
        let in_words = status == 500 && why.contains("high demand");
        let says = if in_words || why.contains(&status.to_string()) {
            "it says so"
        } else {
            ""
        };
        became.push(format!(
            "{status}: {outcome}, {}, attempt {}, {says}",
            record["state"], record["attempt"]
        ));
        stories += &format!("== {status}: {story}\n");
    }
    let wanted = [
        "401: given_back, \"pending\", attempt 1, it says so",
        "429: given_back, \"pending\", attempt 1, it says so",
        "500: given_back, \"pending\", attempt 1, it says so",
        "529: given_back, \"pending\", attempt 1, it says so",
        "429: handed_on, \"completed\", attempt 1, ",
    ];
    assert_eq!(became, wanted, "{stories}");
    trial.handoff(&["verify"]).success();
    assert_eq!(trial.processes(), [""; 0]);
}

/// The newest failure's code, and the state, of an issue's first handoff.
fn failure(trial: &Trial, issue: u32) -> (String, String) {
    let record = stored(&trial.data(&["show", &format!("{issue}.1")]));
    let transitions = record["transitions"].as_array().unwrap();
    let mut codes = transitions
        .iter()
        .filter_map(|t| t["failure"]["code"].as_str());
    let code = codes.next_back().unwrap_or_default().to_owned();
    (record["state"].as_str().unwrap().to_owned(), code)
}

/// A run that hands nothing on, and one that takes longer than it may, have failed.
pub(crate) fn idle(harness: &'static Harness) {
    let trial = Trial::new(harness, &[]);
    trial.open(21);
    trial
        .model
        .plays(|_| Turn::Say("I have nothing to do.".to_owned()));
    let (nothing, _, story) = outcome(&trial, 21, &[]);
    assert_eq!(nothing, "failed", "{story}");
    let failed = |code: &str| ("failed".to_owned(), code.to_owned());
    assert_eq!(failure(&trial, 21), failed("NOTHING_HANDED_ON"), "{story}");

    trial.open(22);
    trial.model.plays(|_| Turn::Hang);
    let (hung, _, story) = outcome(&trial, 22, &["--time", "10s"]);
    assert_eq!(hung, "failed", "{story}");
    assert_eq!(failure(&trial, 22), failed("TIME_SPENT"), "{story}");
    trial.model.plays(|_| Turn::Hang);
    trial.handoff(&["verify"]).success();
    assert_eq!(trial.processes(), [""; 0]);
}

/// A worker that is interrupted keeps its claim and leaves no process; one that is killed is followed
/// by another, which ends what was left. Both go on as the same attempt.
pub(crate) fn cut_off(harness: &'static Harness) {
    let trial = Trial::new(harness, &[]);
    for (issue, signal) in [(31, Signal::INT), (32, Signal::KILL)] {
        trial.open(issue);
        trial.model.plays(|_| Turn::Hang);
        let text = issue.to_string();
        let args = one(&trial, &text);
        let mut worker = Running::silent(trial.program(&args));
        until("the model is asked", || {
            trial.model.hanging() > 0 || worker.child.try_wait().unwrap().is_some()
        });
        worker.signal(signal);
        let (_, stdout, stderr) = worker.end();
        if signal == Signal::INT {
            assert_eq!(trial.processes(), [""; 0], "{stdout}{stderr}");
        }
        let id = format!("{issue}.1");
        assert_eq!(trial.state(&id), "in_progress", "{stdout}{stderr}");
        obey(&trial);
        let (outcome, _, story) = outcome(&trial, issue, &[]);
        assert_eq!(outcome, "handed_on", "{signal:?}: {story}");
        let record = stored(&trial.data(&["show", &id]));
        assert_eq!(record["attempt"], 1, "{record}");
        assert_eq!(trial.processes(), [""; 0], "{signal:?}: {story}");
    }
    trial.handoff(&["verify"]).success();
}
