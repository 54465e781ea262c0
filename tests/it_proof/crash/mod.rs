//! Every crash: the system calls of each kind of write are traced, and what a crash of the process
//! or a power cut may leave after each of them is made, audited, and written to again.
//!
//! A killed process leaves all of its calls up to some moment. A power cut may also lose what was
//! not written through to the disk, in any order (`disk`). With `core.fsync=committed`, nothing that
//! was acknowledged may be lost then; without it, what is lost is found, told, and put right by the
//! command that is printed.

mod disk;
mod trace;

use std::fs;
use std::path::{Path, PathBuf};

use test_support::contracts::{opening, prepared};
use test_support::dice::Dice;
use test_support::proof::Proof;
use test_support::{TestEnvironment, repository_kind};

use disk::Disk;
use trace::{CALLS, Trace};

/// A kind of write: what comes before it, and its arguments.
struct Kind {
    name: &'static str,
    before: &'static [&'static [&'static str]],
    args: &'static [&'static str],
}

/// The files that the arguments name, in the folder above the repository.
const FILES: [&str; 4] = ["1.xml", "2.xml", "3.xml", "9.xml"];

const SEND: &[&str] = &["send", "../1.xml"];
const CLAIM: &[&str] = &["claim", "1.1", "--as", "prep-agent"];
const BLOCK: &[&str] = &[
    "block",
    "1.1",
    "--as",
    "prep-agent",
    "--reason",
    "which port?",
    "--needs",
    "port",
];

const REJECT: &[&str] = &["reject", "1.1", "--as", "prep-agent", "--reason", "no"];
const CANCEL: &[&str] = &["cancel", "1", "--as", "issue-manager", "--reason", "no"];
const PAUSE: &[&str] = &["pause", "1", "--as", "orchestrator", "--reason", "no"];
const ARCHIVE: &[&str] = &["archive", "1"];

const KINDS: [Kind; 15] = [
    Kind {
        name: "init",
        before: &[],
        args: &["init"],
    },
    Kind {
        name: "send",
        before: &[&["init"]],
        args: SEND,
    },
    Kind {
        name: "claim",
        before: &[&["init"], SEND],
        args: CLAIM,
    },
    Kind {
        name: "hand on",
        before: &[&["init"], SEND, CLAIM],
        args: &["send", "../2.xml", "--as", "prep-agent"],
    },
    Kind {
        name: "extend",
        before: &[&["init"], SEND, CLAIM],
        args: &["extend", "1.1", "--as", "prep-agent"],
    },
    Kind {
        name: "block",
        before: &[&["init"], SEND, CLAIM],
        args: BLOCK,
    },
    Kind {
        name: "answer",
        before: &[&["init"], SEND, CLAIM, BLOCK],
        args: &["answer", "1.1", "port=80", "--as", "issue-manager"],
    },
    Kind {
        name: "annotate",
        before: &[&["init"], SEND],
        args: &[
            "annotate",
            "1.1",
            "--note",
            "looked at",
            "--as",
            "prep-agent",
        ],
    },
    Kind {
        name: "fail, with unfinished work",
        before: &[&["init"], SEND, CLAIM],
        args: &[
            "fail",
            "1.1",
            "--as",
            "prep-agent",
            "--message",
            "no disk",
            "--recoverable",
            "--attach",
            "../1.xml",
            "--snapshot",
        ],
    },
    Kind {
        name: "import",
        before: &[&["init"], SEND],
        args: &["import", "../3.xml"],
    },
    Kind {
        name: "protocol set",
        before: &[&["init"], SEND],
        args: &["protocol", "set", "issue-to-pr", "evidence", "off"],
    },
    Kind {
        name: "pause",
        before: &[&["init"], SEND],
        args: PAUSE,
    },
    Kind {
        name: "resume",
        before: &[&["init"], SEND, PAUSE],
        args: &["reopen", "1", "--as", "orchestrator", "--reason", "yes"],
    },
    Kind {
        name: "archive",
        before: &[&["init"], SEND, REJECT, CANCEL],
        args: ARCHIVE,
    },
    Kind {
        name: "reopen an archived issue",
        before: &[&["init"], SEND, REJECT, CANCEL, ARCHIVE],
        args: &["reopen", "1", "--as", "issue-manager", "--reason", "yes"],
    },
];

/// A write that was traced.
struct Traced {
    name: String,
    env: TestEnvironment,
    before: Disk,
    trace: Trace,
    /// The commits of the branch, the oldest first, and how many there were before.
    commits: Vec<String>,
    had: usize,
    shared: bool,
    synced: bool,
}

fn commits(env: &TestEnvironment, repo: &Path) -> Vec<String> {
    let args = ["rev-list", "--reverse", "handoffs"];
    let listed = env.git_any(repo, &args).stdout;
    listed.lines().map(str::to_owned).collect()
}

/// Traces a kind of write, in a ledger with or without a remote.
fn traced(kind: &Kind, shared: bool, synced: bool) -> Traced {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    for (name, contract) in FILES
        .iter()
        .zip([opening(1), prepared(1), opening(3), opening(9)])
    {
        env.file(name, contract);
    }
    fs::write(repo.join("unfinished.txt"), "half of it\n").unwrap();
    if synced {
        env.git(&repo, &["config", "core.fsync", "committed"]);
    }
    env.git(&repo, &["config", "gc.auto", "0"]);
    if shared {
        env.git(env.root(), &["init", "-q", "--bare", "server.git"]);
        env.git(&repo, &["remote", "add", "origin", "../server.git"]);
    }
    let init: &[&str] = if shared {
        &["init", "--remote", "origin"]
    } else {
        &["init"]
    };
    let real = |args: &'static [&'static str]| if args == ["init"] { init } else { args };
    for args in kind.before {
        env.handoff(real(args)).success();
    }
    let had = commits(&env, &repo).len();
    let before = Disk::read(env.root());
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("trace");
    let program = test_support::program();
    let mut command = env.command("strace");
    command.args([
        "-f",
        "-y",
        "-xx",
        "-s",
        "10000000",
        "-e",
        "signal=none",
        "-e",
        CALLS,
        "-o",
    ]);
    command.arg(&output).arg(program).args(real(kind.args));
    env.run(command, kind.args, None).success();
    let text = fs::read_to_string(output).unwrap();
    let trace = Trace::read(env.root(), &repo, &before, &text);
    let read = before.after_kill(&trace.ops);
    let is = Disk::read(env.root());
    let (read, is) = (read.contents(), is.contents());
    let differs = |path: &&&Path| read.get(*path) != is.get(*path);
    let differing: Vec<&&Path> = read.keys().chain(is.keys()).filter(differs).collect();
    assert!(
        differing.is_empty(),
        "{}: the trace lacks {differing:?}",
        kind.name
    );
    Traced {
        name: kind.name.to_owned(),
        commits: commits(&env, &repo),
        env,
        before,
        trace,
        had,
        shared,
        synced,
    }
}

/// What a crash left.
struct State<'a> {
    of: &'a Traced,
    told: String,
    folder: tempfile::TempDir,
    acknowledged: bool,
    is_cut: bool,
}

impl<'a> State<'a> {
    fn new(of: &'a Traced, disk: &Disk, at: usize, how: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        disk.write(folder.path());
        let (total, shared) = (of.trace.ops.len(), of.shared);
        let told = format!("{} (shared {shared}), {how} after {at} of {total}", of.name);
        let acknowledged = at >= of.trace.acknowledged;
        let is_cut = how != "killed";
        Self {
            of,
            told,
            folder,
            acknowledged,
            is_cut,
        }
    }

    fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn run(&self, args: &[&str]) -> test_support::Ran {
        self.of.env.handoff_in(&self.repo(), args)
    }

    /// Runs a command that must succeed; a lock that a power cut left, or git's processes on the
    /// server, is removed as it is told.
    #[track_caller]
    fn runs(&self, args: &[&str]) {
        let mut ran = self.run(args);
        if ran.status == 7 && self.is_cut {
            let lock = ran.stderr.split(' ').find(|word| word.contains(".lock"));
            fs::remove_file(lock.unwrap().lines().next().unwrap()).unwrap();
            ran = self.run(args);
        }
        if ran.stderr.contains("its branch stays locked") {
            let server = self.folder.path().join("server.git");
            let lock = repository_kind::lock_of(&server, "refs/heads/handoffs");
            fs::remove_file(lock).unwrap();
            ran = self.run(&["sync"]);
        }
        if [8, 9, 10].contains(&ran.status)
            && !self.of.synced
            && ran.stderr.contains("fetch --repair")
        {
            self.runs(&["fetch", "--repair"]);
            ran = self.run(if ran.status == 8 { &["sync"] } else { args });
        }
        assert_eq!(ran.status, 0, "{}: {}", self.told, ran.shown);
    }

    /// Whether there is a ledger, here or at the remote.
    fn has_ledger(&self) -> bool {
        !commits(&self.of.env, &self.repo()).is_empty()
    }

    /// Whether the power cut took, at the remote too, objects of the ledger that was just being
    /// started. Then nobody has it.
    fn is_lost_at_the_remote(&self) -> bool {
        if !self.is_cut || self.of.synced || !self.of.shared || self.of.had > 0 {
            return false;
        }
        let server = self.folder.path().join("server.git");
        let is_there = |what: &str| {
            let object = format!("refs/heads/handoffs{what}");
            self.of
                .env
                .git_any(&server, &["rev-parse", "--verify", &object])
                .status
                == 0
        };
        let objects = ["rev-list", "--objects", "refs/heads/handoffs"];
        is_there("") && self.of.env.git_any(&server, &objects).status != 0
    }

    /// Asserts that everything acknowledged is there and sound.
    fn assert_kept(&self) {
        let of = self.of;
        let here = commits(&of.env, &self.repo());
        let told = &self.told;
        assert!(of.commits.starts_with(&here), "{told}: other commits");
        assert!(
            here.len() >= of.had,
            "{told}: {} of {} commits",
            here.len(),
            of.had
        );
        if self.acknowledged {
            assert_eq!(
                here.len(),
                of.commits.len(),
                "{told}: an acknowledged step is lost"
            );
        }
        if self.has_ledger() {
            self.runs(&["verify"]);
        }
        let fsck = of
            .env
            .git_any(&self.repo(), &["fsck", "--strict", "--no-dangling"]);
        assert_eq!(fsck.status, 0, "{told}: {}", fsck.shown);
    }

    /// Whether git had named a table before its end was on the disk. Nothing was acknowledged then.
    fn is_between_tables(&self) -> bool {
        repository_kind::is_reftable()
            && !self.acknowledged
            && self
                .run(&["verify"])
                .stderr
                .contains("git keeps its refs there")
    }

    /// Whether the power cut took the tables of refs at the remote, which writes nothing through.
    fn has_lost_remote(&self) -> bool {
        let server = self.folder.path().join("server.git");
        let refs = || self.of.env.git_any(&server, &["for-each-ref"]);
        self.of.shared && repository_kind::is_reftable() && refs().status != 0
    }

    /// Asserts that a lock which a killed git left is named, and removes it as it is told to.
    fn assert_lock_is_named(&self) {
        let lock = self.repo().join(".git/reftable/tables.list.lock");
        if !lock.exists() {
            return;
        }
        let ran = self.run(&["send", "../9.xml"]);
        let is_named = ran.status == 7 && ran.stderr.contains("tables.list.lock");
        assert!(is_named, "{}: {}", self.told, ran.shown);
        fs::remove_file(lock).unwrap();
    }

    /// Asserts that the next command works, and leaves a sound ledger.
    fn assert_goes_on(&self) {
        if !self.has_ledger() {
            let remote: &[&str] = &["--remote", "origin"];
            let init = if self.of.shared {
                [&["init"], remote].concat()
            } else {
                vec!["init"]
            };
            if self.is_lost_at_the_remote() {
                assert_eq!(self.run(&init).status, 10, "{}", self.told);
                return;
            }
            self.runs(&init);
        }
        self.assert_lock_is_named();
        self.runs(&["send", "../9.xml"]);
        self.runs(&["verify"]);
    }

    /// Asserts that damage is told with the command that puts it right, and that this does.
    fn assert_repairable(&self) -> bool {
        let ran = self.run(&["verify"]);
        if ran.status == 0 || !self.has_ledger() && ran.status == 9 {
            return false;
        }
        if repository_kind::is_reftable() && ran.stderr.contains("git keeps its refs there") {
            // git itself has lost its refs.
            return true;
        }
        let is_damaged = ran.stderr.contains("fetch --repair");
        if !is_damaged && ran.stdout.contains("history.rewritten") {
            // The move of the branch is lost, and what was noted of it is not.
            self.runs(&["verify", "--accept-rewritten"]);
            self.assert_goes_on();
            return true;
        }
        let told = &self.told;
        assert!(is_damaged, "{told}: {}", ran.shown);
        if self.of.had == 0 {
            // The ledger was just being started: there is nothing to put back.
            return true;
        }
        self.runs(&["fetch", "--repair"]);
        if self.run(&["verify"]).status != 0 {
            self.runs(&["verify", "--accept-rewritten"]);
        }
        self.assert_goes_on();
        true
    }
}

#[derive(Default)]
struct Counts {
    killed: u64,
    cut: u64,
    repaired: u64,
}

fn killed(of: &Traced, at: usize, counts: &mut Counts) {
    let disk = of.before.after_kill(&of.trace.ops[..at]);
    let state = State::new(of, &disk, at, "killed");
    state.assert_kept();
    state.assert_goes_on();
    counts.killed += 1;
}

fn cut_off(of: &Traced, dice: &mut Dice, counts: &mut Counts) {
    let ops = &of.trace.ops;
    let at = usize::try_from(dice.below(ops.len() as u64 + 1)).unwrap();
    let reordered = dice.percent(50);
    let server = of.env.root().join("server.git");
    let disk = of
        .before
        .after_power_cut(&ops[..at], reordered, &server, dice);
    let how = format!(
        "power cut (written through {}, reordered {reordered})",
        of.synced
    );
    let state = State::new(of, &disk, at, &how);
    if state.has_lost_remote() {
        return;
    }
    if of.synced && !state.is_between_tables() {
        state.assert_kept();
        state.assert_goes_on();
    } else if state.assert_repairable() {
        counts.repaired += 1;
    } else {
        state.assert_goes_on();
    }
    counts.cut += 1;
}

#[test]
fn prove_that_every_crash_leaves_a_sound_ledger() {
    let mut proof = Proof::new("crashes", KINDS.len() as u64);
    let mut all = Vec::new();
    let mut counts = Counts::default();
    while let Some(seed) = proof.case() {
        let mut dice = Dice::new(seed);
        let in_turn = |kind: usize, turn: usize| {
            let kind = &KINDS[kind % KINDS.len()];
            traced(kind, turn % 2 == 1, turn / 2 % 2 == 1)
        };
        // The long form traces every kind with and without a remote and `core.fsync`, the short
        // one each kind in one of these ways.
        if proof.is_long() {
            while all.len() < 4 * KINDS.len() {
                let traced = in_turn(all.len(), all.len() / KINDS.len());
                (0..=traced.trace.ops.len()).for_each(|at| killed(&traced, at, &mut counts));
                all.push(traced);
            }
        } else {
            let number = usize::try_from(seed).unwrap();
            all = vec![in_turn(number, number)];
        }
        let of = dice.one(&all);
        if dice.percent(30) {
            let at = usize::try_from(dice.below(of.trace.ops.len() as u64 + 1)).unwrap();
            killed(of, at, &mut counts);
        } else {
            cut_off(of, &mut dice, &mut counts);
        }
    }
    // Some one in ten is; the short form has some ten of them.
    assert!(
        counts.repaired > 0 || counts.cut < 200,
        "no state was damaged"
    );
    let Counts {
        killed,
        cut,
        repaired,
    } = counts;
    proof.passed(&[
        ("states after a kill", killed),
        ("states after a power cut", cut),
        ("of them repaired", repaired),
    ]);
}
