//! Two machines and a server whose clocks are wrong: they jump ahead and back, are days apart, count
//! a second twice as at a leap second, and pass the ends of 31 and 32 bits and of the year 9999.
//!
//! `faketime` sets the system's clock of each command. Whatever the clocks say, what was
//! acknowledged is on the remote, times of recording never fall, and no lease is taken by a clock
//! that has not passed its end. A server with hooks lets no time in that is a day ahead of its own.
//! At last, a machine whose clock is right goes on.
#![allow(
    clippy::disallowed_methods,
    reason = "clocks are set against the real one"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde_json::Value;
use test_support::contracts::{opening, prepared};
use test_support::dice::Dice;
use test_support::proof::Proof;
use test_support::remote::{assert_whole, clone, hook, origin};
use test_support::{Ran, TestEnvironment, program};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The right time at first: a minute before the leap second at the end of 2016.
const START: i64 = 1_483_228_740;

/// What jumps go to: the ends of what 0, 31 and 32 bits and git's years count, and this side of them.
const ENDS: [i64; 8] = [
    -1,
    0,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    253_402_300_798,
    253_402_300_800,
];

/// What a wrong clock may lead to: the errors that also a race or a mistake leads to.
const EXPECTED: [&str; 6] = [
    "backdated",
    "illegal_transition",
    "lease_lost",
    "nothing_to_claim",
    "remote_refused",
    "usage",
];

/// A handoff that a machine was told to have claimed, and when the lease ends.
struct Claimed {
    id: String,
    machine: usize,
    ends: i64,
}

struct World {
    env: TestEnvironment,
    bare: PathBuf,
    folders: [PathBuf; 2],
    /// In seconds since 1970.
    clocks: [i64; 2],
    /// The right time.
    now: i64,
    guarded: bool,
    issues: u32,
    claimed: Vec<Claimed>,
    commits: Vec<String>,
    codes: BTreeMap<String, u64>,
}

/// `faketime` and its arguments for a clock that says this.
fn faketime(clock: i64) -> [String; 4] {
    let ahead = clock - Utc::now().timestamp();
    [
        "faketime",
        "--exclude-monotonic",
        "-f",
        &format!("{ahead:+}s"),
    ]
    .map(str::to_owned)
}

fn seconds(time: &Value) -> i64 {
    let time = time.as_str().unwrap();
    DateTime::parse_from_rfc3339(time).unwrap().timestamp()
}

impl World {
    /// A remote with a ledger, and two clones; a guarded one has the server's hook, whose clock is right.
    fn new(guarded: bool) -> Self {
        let env = TestEnvironment::with_repository();
        env.pace(0);
        let bare = origin(&env);
        let address = bare.to_str().unwrap();
        let folders = ["first", "second"].map(|name| clone(&env, address, name));
        let world = Self {
            bare,
            folders,
            clocks: [START; 2],
            now: START,
            guarded,
            issues: 0,
            claimed: Vec::new(),
            commits: Vec::new(),
            codes: BTreeMap::new(),
            env,
        };
        for machine in [0, 1] {
            let init = ["init", "--remote", "origin", "--evidence", "off"];
            world.run(machine, START, &init).success();
        }
        world
    }

    /// Runs the program on a machine when its clock says this.
    fn run(&self, machine: usize, clock: i64, args: &[&str]) -> Ran {
        if self.guarded {
            let clock = faketime(self.now).join(" ");
            let line = format!(
                "unset LD_PRELOAD FAKETIME FAKETIME_SHARED\nexec {clock} {} hook pre-receive",
                program()
            );
            hook(&self.bare, "pre-receive", &line);
        }
        let [faketime, rest @ ..] = faketime(clock);
        let mut command = self.env.command(faketime);
        let folder = &self.folders[machine];
        command.args(rest).arg(program()).args(args);
        command
            .current_dir(folder)
            .env("GIT_HANDOFF_WORKER", format!("machine-{machine}"))
            .env_remove("GIT_AUTHOR_DATE")
            .env_remove("GIT_COMMITTER_DATE");
        self.env.run(command, args, None)
    }

    /// Lets some time pass, and a clock jump at times.
    fn tick(&mut self, dice: &mut Dice) {
        let passed = i64::try_from(dice.below(20 * 60)).unwrap();
        self.now += passed;
        for clock in &mut self.clocks {
            *clock += passed;
            let off = *clock - self.now;
            *clock = match dice.below(100) {
                0..60 => *clock,
                60..70 => self.now,
                70..74 => *clock - 1,
                74..78 => *clock + HOUR,
                78..82 => *clock - HOUR,
                82..85 => self.now + DAY,
                85..88 => self.now - DAY,
                88..91 => *clock + 2 * DAY,
                91..94 => *clock - 2 * DAY,
                94..97 => *clock + off,
                _ => *dice.one(&ENDS),
            };
        }
    }

    /// Has a machine do something, and looks at what it is told.
    fn act(&mut self, dice: &mut Dice) {
        let machine = usize::from(dice.percent(50));
        let clock = self.clocks[machine];
        let mine = self.claimed.iter().rev().find(|c| c.machine == machine);
        let mine = mine.map(|claimed| claimed.id.clone());
        let line = match (dice.below(100), mine) {
            (0..30, _) => {
                self.issues += 1;
                let name = format!("open-{}.xml", self.issues);
                self.env.file(&name, opening(self.issues));
                format!("send ../{name}")
            }
            (30..50, Some(id)) => {
                let issue = id.split_once('.').unwrap().0.to_owned();
                let name = format!("on-{issue}.xml");
                self.env.file(&name, prepared(issue.parse().unwrap()));
                format!("send ../{name} --as prep-agent")
            }
            (50..60, Some(id)) => format!("extend {id} --as prep-agent"),
            (60..70, Some(id)) => format!("complete {id} --as prep-agent"),
            (70..80, _) => "reap".to_owned(),
            (80..90, _) => "status".to_owned(),
            _ => "claim --next --as prep-agent --lease 1h".to_owned(),
        };
        let mut args: Vec<&str> = line.split(' ').collect();
        args.push("--json");
        let ran = self.run(machine, clock, &args);
        let document: Value = serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|_| panic!("at {clock}, right is {}: {}", self.now, ran.shown));
        if ran.status != 0 {
            let code = document["error"]["code"].as_str().unwrap();
            let told = || format!("at {clock}, right is {}: {}", self.now, ran.shown);
            assert!(EXPECTED.contains(&code), "{}", told());
            *self.codes.entry(code.to_owned()).or_default() += 1;
            return;
        }
        *self.codes.entry("ok".to_owned()).or_default() += 1;
        self.acknowledged(machine, args[0], &document["data"]);
    }

    /// Notes what is done: the receipts of a write.
    fn acknowledged(&mut self, machine: usize, verb: &str, data: &Value) {
        let receipts = match verb {
            "status" => Vec::new(),
            "reap" => data["handoffs"].as_array().unwrap().clone(),
            _ => vec![data.clone()],
        };
        for receipt in receipts {
            self.commits
                .extend(receipt["commit"].as_str().map(str::to_owned));
            let handoff = if verb == "reap" {
                &receipt
            } else {
                &receipt["handoff"]
            };
            let id = handoff["id"].as_str().unwrap().to_owned();
            let had = self.claimed.iter().position(|claimed| claimed.id == id);
            let had = had.map(|at| self.claimed.swap_remove(at));
            if let Some(had) = had.filter(|had| had.machine != machine || verb == "reap") {
                // It began a moment after its clock was set.
                let clock = self.clocks[machine] + 5;
                assert!(clock >= had.ends, "{id} was taken at {clock}: {receipt}");
            }
            if handoff["state"] == "in_progress" {
                let ends = seconds(&handoff["expires_at"]);
                self.claimed.push(Claimed { id, machine, ends });
            }
        }
    }

    /// Sets all clocks right, and asserts that everything is there and goes on.
    fn settle(&mut self) {
        let git = |args: &[&str]| self.env.git(&self.bare, args);
        let dates = git(&["log", "--reverse", "--format=%ct", "handoffs"]);
        let dates: Vec<i64> = dates.lines().map(|date| date.parse().unwrap()).collect();
        // Older steps may be imported after the first. A date that is not credible limits no step
        // after it.
        let mut first = i64::MAX;
        for date in dates[1..].iter().rev() {
            let is_credible = *date <= first.saturating_add(DAY - 60);
            assert!(!is_credible || *date <= first, "{date}: {dates:?}");
            first = first.min(*date);
        }
        if self.guarded {
            assert!(dates.iter().all(|date| *date <= self.now + DAY + 60));
        }
        let kept = git(&["rev-list", "handoffs"]);
        for commit in &self.commits {
            assert!(kept.contains(commit), "{commit} was acknowledged");
        }
        assert_whole(&self.env, &self.bare);
        for machine in [0, 1] {
            self.issues += 1;
            let name = format!("open-{}.xml", self.issues);
            self.env.file(&name, opening(self.issues));
            let send = ["send", &format!("../{name}")];
            self.run(machine, self.now, &send).success();
            // Dates far ahead are named, and nothing else is wrong.
            let audit = self.run(machine, self.now, &["verify", "--json"]).json();
            let found = audit["data"]["findings"].as_array().unwrap();
            let is_date = |finding: &Value| finding["code"] == "step.postdated";
            assert!(found.iter().all(is_date), "{audit:#}");
        }
    }
}

#[test]
fn prove_that_wrong_clocks_lose_nothing() {
    let mut proof = Proof::new("clocks", 2);
    let (mut commands, mut codes) = (0, BTreeMap::<String, u64>::new());
    while let Some(seed) = proof.case() {
        let mut dice = Dice::new(seed);
        let mut world = World::new(seed % 2 == 0);
        for _ in 0..20 {
            world.tick(&mut dice);
            world.act(&mut dice);
            commands += 1;
        }
        world.settle();
        for (code, count) in world.codes {
            *codes.entry(code).or_default() += count;
        }
    }
    let told: Vec<String> = codes
        .iter()
        .map(|(code, n)| format!("{n} {code}"))
        .collect();
    let told = format!("commands ({})", told.join(", "));
    proof.passed(&[(&told, commands)]);
}
