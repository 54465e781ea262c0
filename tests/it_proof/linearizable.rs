//! What eight clones of one remote are told of the same handoffs, while connections break and
//! processes are killed, is what one ledger would have told them one after the other.
//!
//! Each history is kept as JSON Lines, a call in each line, and the verdict in the last.

mod checker;
mod register;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::contracts::{opening, prepared};
use test_support::dice::Dice;
use test_support::proof::Proof;
use test_support::remote::{Daemon, Direction, Fault, Proxy, address, origin};
use test_support::{TestEnvironment, stored};

use checker::{Operation, linearized};
use register::{Answer, Call, Handoff, Register, Worker};

const CLONES: u8 = 8;
/// About how many issues they make their calls.
const ISSUES: u32 = 2;
const AGENTS: [&str; 2] = ["prep-agent", "implementer-agent"];

/// The remote, its clones, and how each reaches it.
struct Field {
    env: TestEnvironment,
    clones: Vec<(PathBuf, Proxy)>,
    _daemon: Daemon,
    started: Instant,
    history: Mutex<Vec<Operation>>,
}

fn name(clone: Worker) -> String {
    format!("clone-{clone}")
}

impl Field {
    fn new() -> Self {
        let env = TestEnvironment::with_repository();
        env.pace(0);
        origin(&env);
        let args = ["init", "--remote", "origin", "--evidence", "off"];
        env.handoff(&args).success();
        for issue in 1..=ISSUES {
            env.file(&format!("open-{issue}.xml"), opening(issue));
            env.file(&format!("on-{issue}.xml"), prepared(issue));
        }
        let daemon = Daemon::start(&env);
        let clones = (0..CLONES).map(|number| {
            let proxy = Proxy::start(daemon.port);
            let to = address("git", proxy.port, "server.git");
            let folder = test_support::remote::clone(&env, &to, &name(number));
            env.handoff_in(&folder, &["init", "--remote", "origin"])
                .success();
            (folder, proxy)
        });
        let clones = clones.collect();
        Self {
            env,
            clones,
            _daemon: daemon,
            started: Instant::now(),
            history: Mutex::default(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap()
    }

    fn command(&self, clone: Worker, args: &[&str]) -> Command {
        let mut command = self.env.program(args);
        command
            .current_dir(&self.clones[usize::from(clone)].0)
            .env("GIT_HANDOFF_WORKER", name(clone))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Makes so many calls that the seed draws, among faults.
    fn work(&self, clone: Worker, seed: u64, calls: usize) {
        let mut dice = Dice::new(seed * 100 + u64::from(clone));
        let mut usual = Duration::from_millis(100);
        let mut last = None;
        for made in 0..calls {
            let (issue, call) = self.choose(clone, &mut dice, last.filter(|_| made > 0));
            self.break_something(clone, &mut dice);
            let span = u64::try_from(usual.as_micros()).unwrap();
            let kill = dice
                .percent(8)
                .then(|| Duration::from_micros(dice.below(span)));
            let started = self.now();
            if let Some(answer) = self.call(clone, issue, call, kill) {
                let ended = self.now();
                if kill.is_none() {
                    usual = Duration::from_micros(ended - started);
                }
                let operation = Operation {
                    clone,
                    issue,
                    started,
                    ended,
                    call,
                    answer,
                };
                self.history.lock().unwrap().push(operation);
                last = Some(operation);
            }
        }
    }

    /// What a clone asks for: mostly what may follow from what it was told last.
    fn choose(&self, clone: Worker, dice: &mut Dice, last: Option<Operation>) -> (u32, Call) {
        let any = 1 + u32::try_from(dice.below(u64::from(ISSUES))).unwrap();
        let Some(last) = last else {
            return (any, Call::Open);
        };
        let done = matches!(last.answer, Answer::Done { .. } | Answer::Unknown);
        let held = match last.call {
            Call::Claim(at, _) | Call::TakeOver(at, _) if done => Some(at),
            _ => None,
        };
        let issue = if held.is_some() { last.issue } else { any };
        let begun = |o: &&Operation| o.issue == issue && matches!(o.call, Call::SendOn(_));
        let history = self.history.lock().unwrap();
        let mut began = history.iter().filter(begun);
        let is_on = began.any(|o| !matches!(o.answer, Answer::Refused));
        let at = held.unwrap_or(usize::from(is_on && dice.percent(75)));
        let call = match dice.below(100) {
            0..45 if held == Some(0) => Call::SendOn(clone),
            0..70 if held.is_some() => Call::Complete(at, clone),
            0..5 => Call::Open,
            5..12 => Call::SendOn(clone),
            12..20 => Call::Complete(at, clone),
            20..45 => Call::TakeOver(at, clone),
            _ => Call::Claim(at, clone),
        };
        (issue, call)
    }

    /// Lets one of the next connections break, at times.
    fn break_something(&self, clone: Worker, dice: &mut Dice) {
        let way = *dice.one(&[Direction::Up, Direction::Down]);
        let fault = match dice.below(100) {
            0..75 => Fault::None,
            75..80 => Fault::Refuse,
            _ => Fault::Cut(way, 200 + dice.below(2500)),
        };
        // The first connection reads, the second writes.
        let faults = [Fault::None, fault];
        let first = usize::from(dice.percent(30));
        self.clones[usize::from(clone)].1.next(&faults[first..]);
    }

    /// Makes a call, which may be killed after a while; `None` if its answer says nothing of the
    /// remote, and it did nothing.
    fn call(
        &self,
        clone: Worker,
        issue: u32,
        call: Call,
        kill: Option<Duration>,
    ) -> Option<Answer> {
        let line = match call {
            Call::Open => format!("send ../open-{issue}.xml"),
            Call::SendOn(_) => format!("send ../on-{issue}.xml"),
            Call::Claim(at, _) => format!("claim {issue}.{} --as {}", at + 1, AGENTS[at]),
            Call::TakeOver(at, _) => {
                let (number, agent) = (at + 1, AGENTS[at]);
                format!("claim {issue}.{number} --as {agent} --take-over --reason gone")
            }
            Call::Complete(at, _) => format!("complete {issue}.{} --as {}", at + 1, AGENTS[at]),
            Call::Read => unreachable!("it is not made here"),
        };
        let mut args: Vec<&str> = line.split(' ').collect();
        args.extend(["--json", "--timeout", "10s"]);
        let mut child = self.command(clone, &args).spawn().unwrap();
        if let Some(kill) = kill {
            thread::sleep(kill);
            // It may be over.
            let _ = child.kill();
        }
        let output = child.wait_with_output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let (data, error) = (&document["data"], &document["error"]);
        let said = |word: &str| error.to_string().contains(word);
        let judged_here = said("this is what is known here");
        let token = data["handoff"]["token"]
            .as_u64()
            .map(|token| u32::try_from(token).unwrap());
        match (output.status.code(), error["code"].as_str()) {
            (Some(0), _) if data["repeated"] == true => Some(Answer::Repeated { token }),
            (Some(0), _) => Some(Answer::Done { token }),
            // Before anything was done, an earlier step of this clone was refused.
            (Some(_), Some("rejected" | "renamed")) => None,
            (Some(4..=6), _) if judged_here => None,
            (Some(4..=6), Some(_)) => Some(Answer::Refused),
            (None | Some(7..=9), _) => Some(Answer::Unknown),
            _ => panic!(
                "{line}: {}{document}",
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }

    /// Ends all faults, has every clone bring what it kept, and reads each issue.
    fn read(&self) {
        for (_, proxy) in &self.clones {
            proxy.heal();
        }
        for clone in (0..CLONES).chain([0]) {
            let output = self.command(clone, &["sync"]).output().unwrap();
            let status = output.status.code();
            assert!([Some(0), Some(5)].contains(&status), "{output:?}");
        }
        for issue in 1..=ISSUES {
            let handoff = |number: usize| {
                let id = format!("{issue}.{number}");
                let output = self.command(0, &["show", &id, "--json"]).output().unwrap();
                let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
                found(&stored(&shown["data"]))
            };
            let is = Register([handoff(1), handoff(2)]);
            let (call, answer) = (Call::Read, Answer::Is(is));
            let (clone, started, ended) = (0, self.now(), self.now());
            let operation = Operation {
                clone,
                issue,
                started,
                ended,
                call,
                answer,
            };
            self.history.lock().unwrap().push(operation);
        }
    }
}

/// What a record says.
fn found(record: &Value) -> Handoff {
    let worker = |value: &Value| value.as_str().map(|w| w["clone-".len()..].parse().unwrap());
    let last = || record["transitions"].as_array().unwrap().last().unwrap();
    match record["state"].as_str() {
        None => Handoff::None,
        Some("pending") => Handoff::Pending,
        Some("in_progress") => Handoff::Held {
            worker: worker(&record["lease"]["worker"]).unwrap(),
            token: u32::try_from(record["lease"]["token"].as_u64().unwrap()).unwrap(),
        },
        Some("completed") => {
            let by_contract = !last()["sent"].is_null();
            let by = worker(&last()["worker"]).filter(|_| !by_contract);
            Handoff::Completed { by }
        }
        Some(state) => panic!("{state}"),
    }
}

/// Where the histories are kept.
fn kept() -> PathBuf {
    let folder = std::env::temp_dir().join("handoff-histories");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Writes a history and whether it is linearizable; the file's name.
fn keep(seed: u64, history: &[Operation], orders: &[Option<Vec<usize>>]) -> PathBuf {
    let path = kept().join(format!("{seed}.jsonl"));
    let mut file = fs::File::create(&path).unwrap();
    for operation in history {
        writeln!(file, "{}", json!(operation)).unwrap();
    }
    writeln!(file, "{}", json!({"seed": seed, "linearized": orders})).unwrap();
    path
}

#[test]
fn prove_that_what_clones_are_told_is_linearizable() {
    let mut proof = Proof::new("linearizable", 1);
    let calls_each = if proof.is_long() { 14 } else { 5 };
    let (mut calls, mut unknown, mut histories) = (0, 0, 0);
    while let Some(seed) = proof.case() {
        let field = Field::new();
        thread::scope(|scope| {
            for clone in 0..CLONES {
                let field = &field;
                scope.spawn(move || field.work(clone, seed, calls_each));
            }
        });
        field.read();
        let mut history = field.history.lock().unwrap().clone();
        history.sort_by_key(|operation| (operation.issue, operation.started));
        let of = |issue| history.iter().copied().filter(move |o| o.issue == issue);
        let orders = (1..=ISSUES).map(|issue| linearized(&of(issue).collect::<Vec<_>>()));
        let orders: Vec<_> = orders.collect();
        let path = keep(seed, &history, &orders);
        let is_linear = orders.iter().all(Option::is_some);
        assert!(is_linear, "seed {seed}: {}", path.display());
        let outcomes = history.iter().filter(|o| o.answer == Answer::Unknown);
        unknown += u64::try_from(outcomes.count()).unwrap();
        calls += u64::try_from(history.len()).unwrap();
        histories += u64::from(ISSUES);
    }
    let kept = kept().display().to_string();
    let histories_in = format!("histories, kept in {kept}");
    proof.passed(&[
        ("calls", calls),
        ("of them with an unknown outcome", unknown),
        (&histories_in, histories),
    ]);
}

/// A history of one issue, each call with its start and end.
fn history(calls: &[(u64, u64, Call, Answer)]) -> Vec<Operation> {
    let operation = |&(started, ended, call, answer)| Operation {
        clone: 0,
        issue: 1,
        started,
        ended,
        call,
        answer,
    };
    calls.iter().map(operation).collect()
}

#[test]
fn the_checker_refuses_what_no_order_explains() {
    let (done, refused) = (Answer::Done { token: None }, Answer::Refused);
    let claimed = Answer::Done { token: Some(1) };
    let open = (0, 1, Call::Open, done);
    let is = |history: &[Operation]| linearized(history).is_some();
    // Two workers hold it.
    let both = [
        open,
        (2, 9, Call::Claim(0, 1), claimed),
        (3, 8, Call::Claim(0, 2), claimed),
    ];
    assert!(!is(&history(&both)));
    // A claim was acknowledged and is lost.
    let nothing = Register([Handoff::Pending, Handoff::None]);
    let lost = [
        open,
        (2, 3, Call::Claim(0, 1), claimed),
        (5, 6, Call::Read, Answer::Is(nothing)),
    ];
    assert!(!is(&history(&lost)));
    // One was refused although the other had not begun.
    let early = [
        open,
        (2, 3, Call::Claim(0, 1), refused),
        (4, 5, Call::Claim(0, 2), claimed),
    ];
    assert!(!is(&history(&early)));
    // At the same time, either may be first.
    let at_once = [
        open,
        (2, 5, Call::Claim(0, 1), refused),
        (4, 5, Call::Claim(0, 2), claimed),
    ];
    assert!(is(&history(&at_once)));
    // An unknown outcome may come late, or never.
    let unknown = (2, 3, Call::Claim(0, 1), Answer::Unknown);
    assert!(is(&history(&[
        open,
        unknown,
        (4, 5, Call::Claim(0, 2), claimed)
    ])));
    assert!(is(&history(&[
        open,
        unknown,
        (4, 5, Call::Claim(0, 2), refused)
    ])));
    // But not before it was asked for.
    let before = [
        open,
        (2, 3, Call::Claim(0, 2), refused),
        (4, 5, Call::Claim(0, 1), Answer::Unknown),
    ];
    assert!(!is(&history(&before)));
}
