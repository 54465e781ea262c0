//! An agent: it takes steps by chance, and is killed at times.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::account::{Account, Act, Told};
use super::chaos::{Troubles, Victim};
use super::{Field, processes};
use test_support::contracts::{opening, prepared};
use test_support::dice::Dice;

const PREP: &str = "prep-agent";
const IMPLEMENTER: &str = "implementer-agent";

pub(crate) struct Agent<'f> {
    field: &'f Field,
    account: &'f Account,
    number: usize,
    clone: usize,
    dice: Dice,
    troubles: Troubles,
    /// Whether a kill came too late and is to be made up for, and how many in a row did.
    is_owed: bool,
    late: u32,
    /// What it holds, as far as it knows, and as whom.
    held: Vec<(String, &'static str)>,
    markers: u32,
    /// How long its last commands took, roughly.
    usual: Duration,
}

/// A step to be taken.
#[derive(Clone, Default)]
struct Step {
    args: Vec<String>,
    marker: Option<String>,
    is_claim: bool,
}

impl Step {
    fn new(args: &[&str], marker: Option<String>) -> Self {
        Self {
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            marker,
            is_claim: false,
        }
    }
}

impl<'f> Agent<'f> {
    pub(crate) fn new(field: &'f Field, account: &'f Account, number: usize, seed: u64) -> Self {
        let own = seed.wrapping_mul(1000) + u64::try_from(number).unwrap();
        Self {
            field,
            account,
            number,
            clone: number % field.clones.len(),
            dice: Dice::new(own),
            troubles: Troubles(Dice::new(own ^ 0xbad)),
            is_owed: false,
            late: 0,
            held: Vec::new(),
            markers: 0,
            usual: Duration::from_millis(300),
        }
    }

    pub(crate) fn work(&mut self, steps: u64) {
        for _ in 0..steps {
            let step = self.choose();
            let told = self.take(&step);
            // Who heard nothing sends the same again: it counts once.
            let is_repeatable = ["send", "annotate"].contains(&&step.args[0][..]);
            if told == Told::Nothing && is_repeatable && self.dice.percent(60) {
                self.take(&step);
            }
            match self.dice.below(100) {
                0..8 => self.sync(1),
                8..12 => self.sync(2),
                12..16 => self.look(),
                16..24 => self.retry_refused(),
                _ => {}
            }
        }
        while self.is_owed {
            self.sync(1);
        }
    }

    fn marker(&mut self, kind: &str) -> String {
        self.markers += 1;
        format!("{kind}-{}x{}z", self.number, self.markers)
    }

    fn choose(&mut self) -> Step {
        let known = self.field.shared.ids.lock().unwrap().clone();
        let is_known = !known.is_empty();
        match self.dice.below(100) {
            0..24 => self.opening(),
            24..40 => {
                let agent = *self.dice.one(&[PREP, PREP, IMPLEMENTER]);
                let step = Step::new(&["claim", "--next", "--as", agent], None);
                Step {
                    is_claim: true,
                    ..step
                }
            }
            // Several at once go for the same.
            40..52 if is_known => {
                let id = known.iter().rev().take(4).collect::<Vec<_>>();
                let id = (*self.dice.one(&id)).clone();
                let agent = if id.ends_with(".1") {
                    PREP
                } else {
                    IMPLEMENTER
                };
                let step = Step::new(&["claim", &id, "--as", agent], None);
                Step {
                    is_claim: true,
                    ..step
                }
            }
            52..66 if is_known => {
                let id = self.dice.one(&known).clone();
                let marker = self.marker("did");
                let args = ["annotate", &id, "--as", PREP, "--note", &marker];
                Step::new(&args, Some(marker.clone()))
            }
            66..72 if is_known => {
                let id = self.dice.one(&known).clone();
                let marker = self.marker("did");
                let args = ["retry", &id, "--as", "orchestrator", "--reason", &marker];
                Step::new(&args, Some(marker.clone()))
            }
            _ if !self.held.is_empty() => self.go_on(),
            _ => self.opening(),
        }
    }

    /// Sends the contract that opens an issue, which may be open already.
    fn opening(&mut self) -> Step {
        let issues = &self.field.shared.issues;
        let issue = if self.dice.percent(75) {
            issues.fetch_add(1, Ordering::SeqCst) + 1
        } else {
            issues.load(Ordering::SeqCst).max(1)
        };
        let marker = self.marker("sent");
        let contract = opening(issue).replace("Dispatchers ask", &marker);
        self.sending(contract, marker)
    }

    fn sending(&self, contract: String, marker: String) -> Step {
        assert!(contract.contains(&marker));
        let name = format!("{marker}.xml");
        let path = self.field.env().file(&name, contract);
        Step::new(&["send", &path], Some(marker))
    }

    /// Does something with what it holds.
    fn go_on(&mut self) -> Step {
        let (id, agent) = self.dice.one(&self.held).clone();
        match self.dice.below(100) {
            0..35 if agent == PREP => {
                let issue = id.split('.').next().unwrap().parse().unwrap();
                let marker = self.marker("sent");
                let contract = prepared(issue).replace("212 packages", &marker);
                self.held.retain(|held| held.0 != id);
                self.sending(contract, marker)
            }
            35..60 => {
                let marker = self.marker("did");
                let args = ["extend", &id, "--as", agent, "--lease", "9h", "--progress"];
                Step::new(&[&args[..], &[&marker]].concat(), Some(marker.clone()))
            }
            n => {
                let (verb, option) = if n < 80 {
                    ("complete", "--reason")
                } else {
                    ("fail", "--message")
                };
                let marker = self.marker("did");
                self.held.retain(|held| held.0 != id);
                let args = [verb, &id, "--as", agent, option, &marker];
                Step::new(&args, Some(marker.clone()))
            }
        }
    }

    /// Takes a step, and notes what it was told.
    fn take(&mut self, step: &Step) -> Told {
        let mut args: Vec<&str> = step.args.iter().map(String::as_str).collect();
        args.extend(["--json", "--timeout", "8s"]);
        if self.dice.percent(18) {
            args.push("--offline");
        }
        let (told, document) = self.run(&args);
        let handoff = &document["data"]["handoff"];
        let (id, commit) = (handoff["id"].as_str(), &document["data"]["commit"]);
        if let (Told::Published | Told::Recorded, Some(id)) = (&told, id) {
            if step.is_claim {
                let agent = if handoff["to"] == PREP {
                    PREP
                } else {
                    IMPLEMENTER
                };
                self.held.push((id.to_owned(), agent));
            }
            let mut ids = self.field.shared.ids.lock().unwrap();
            if step.args[0] == "send" && !ids.iter().any(|known| known == id) {
                ids.push(id.to_owned());
            }
        }
        self.account.note(Act {
            clone: self.clone,
            what: args.join(" "),
            marker: step.marker.clone(),
            told: told.clone(),
            commit: commit.as_str().map(str::to_owned),
            is_claim: step.is_claim,
        });
        told
    }

    /// Brings its clone and the remote together, in this many processes at once.
    fn sync(&mut self, times: usize) {
        let mut other = self.dice.clone();
        other.below(7);
        let args = ["sync", "--json", "--timeout", "8s"];
        thread::scope(|scope| {
            if times > 1 {
                let (field, account) = (self.field, self.account);
                let mut twin = Agent::new(field, account, self.number, 0);
                twin.troubles = Troubles(other);
                scope.spawn(move || twin.run(&args));
            }
            self.run(&args);
        });
    }

    /// Reads, which never fails where there is a ledger.
    fn look(&mut self) {
        let clone = &self.field.clones[self.clone];
        for args in [
            &["status", "--limit", "0", "--json"][..],
            &["refused", "--limit", "0", "--json"],
        ] {
            let command = self.field.program(clone, self.number, args);
            self.field.env().run(command, args, None).success();
        }
    }

    /// Tries one of its clone's refused steps again, which may be taken now.
    fn retry_refused(&mut self) {
        let clone = &self.field.clones[self.clone];
        let args = ["refused", "--limit", "0", "--json"];
        let command = self.field.program(clone, self.number, &args);
        let ran = self.field.env().run(command, &args, None).success();
        let kept = ran.json()["data"]["rejected"].take();
        let kept = kept.as_array().unwrap();
        if !kept.is_empty() {
            let name = self.dice.one(kept)["name"].as_str().unwrap().to_owned();
            self.run(&["refused", "retry", &name, "--json", "--timeout", "8s"]);
        }
    }

    /// Runs a command, which may be killed, or its git; returns what it told.
    fn run(&mut self, args: &[&str]) -> (Told, Value) {
        let field = self.field;
        let gate = field.gate.read().unwrap();
        let clone = &field.clones[self.clone];
        let mut command = field.program(clone, self.number, args);
        command
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut victim, trouble) = self.troubles.draw();
        let span = u64::try_from(self.usual.as_micros()).unwrap();
        let mut pause = Duration::from_micros(self.dice.below(span.max(1)));
        if victim.is_none() && self.is_owed {
            // Sooner each time, until it is soon enough.
            victim = Some(Victim::Tool);
            pause /= 1 << self.late.min(16);
        }
        let start = Instant::now();
        let mut dice = self.troubles.0.clone();
        let output = field.troubled(clone, trouble, &mut dice, || {
            let mut child = command.spawn().unwrap();
            if let Some(victim) = victim {
                thread::sleep(pause);
                self.kill(&mut child, victim);
            }
            child.wait_with_output().unwrap()
        });
        drop(gate);
        if victim.is_none() {
            self.usual = (self.usual * 3 + start.elapsed().min(Duration::from_secs(2))) / 4;
        }
        let said = format!(
            "{} {args:?}: {:?}\n{}{}",
            clone.name,
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        // Half a document tells nothing.
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let code = document["error"]["code"].as_str().unwrap_or_default();
        let told = match (output.status.code(), output.status.signal()) {
            (None, Some(9)) if document["ok"] == true => Told::Published,
            (None, Some(9)) if code == "not_published" => Told::Recorded,
            (None, Some(9)) => Told::Nothing,
            (Some(0), _) if document["ok"] == true => Told::Published,
            (Some(8), _) if code == "not_published" => Told::Recorded,
            (Some(status @ (4 | 5 | 6 | 7 | 9)), _) if !code.is_empty() => {
                Told::Refused(status, code.to_owned())
            }
            _ => panic!("{said}"),
        };
        (told, document)
    }

    /// Kills a command, or what git it runs, or notes that it has yet to.
    fn kill(&mut self, child: &mut Child, victim: Victim) {
        let pid = Pid::from_child(child);
        let made = &self.field.made;
        let mut is_over = || child.try_wait().unwrap().is_some();
        if let Victim::Git { .. } = victim {
            // It runs git sooner or later, where it has to do with the remote.
            while !is_over() {
                if processes::kill_children(pid) {
                    made.git_killed.fetch_add(1, Ordering::SeqCst);
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
        if victim == (Victim::Git { and_tool: false }) {
            return;
        }
        if is_over() {
            self.is_owed = true;
            self.late += 1;
            return;
        }
        (self.is_owed, self.late) = (false, 0);
        // It was not waited for: its id is no other's.
        let _ = kill_process(pid, Signal::KILL);
        made.killed.fetch_add(1, Ordering::SeqCst);
    }
}
