//! A field of clones around one repository, its agents, what is done to them, and
//! the account of what they were told.
#![expect(clippy::print_stderr)]

mod account;
mod agent;
mod chaos;
pub(crate) mod judge;
mod processes;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::Duration;

use test_support::dice::Dice;
use test_support::remote::{Daemon, Proxy, address, bare};
use test_support::{TestEnvironment, repository_kind};

pub(crate) use account::Account;
use agent::Agent;
use chaos::Made;

/// How much of it there is.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) clones: u64,
    /// How many steps each agent takes; there are two in each clone.
    pub(crate) steps: u64,
}

/// One clone, and how it reaches the repository.
pub(crate) struct Clone {
    pub(crate) name: String,
    /// Its worktrees, the main one first.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) is_shallow: bool,
    /// By how many seconds its clock is off.
    offset: i64,
    line: Line,
    /// How many steps take place while the remote cannot be reached.
    absences: Mutex<u32>,
    /// What is the user's there.
    before: Vec<String>,
}

/// A way to the repository, which can be cut.
enum Line {
    /// A link to it.
    Path(PathBuf),
    /// A proxy before its server.
    Proxy(Proxy),
}

/// All of it.
pub(crate) struct Field {
    env: Option<TestEnvironment>,
    seed: u64,
    pub(crate) bare: PathBuf,
    pub(crate) clones: Vec<Clone>,
    daemon: Option<Daemon>,
    /// Where the remote's branch ever was.
    pub(crate) tips: Mutex<BTreeSet<String>>,
    /// Steps are taken while it is read; it is written to while a lock is cleared away.
    gate: RwLock<()>,
    /// How often that was.
    pub(crate) freed: AtomicU32,
    made: Made,
    /// How many connections the proxies broke, which are gone in the end.
    broken: usize,
    shared: Shared,
}

/// What the agents know of each other's work.
#[derive(Default)]
struct Shared {
    issues: AtomicU32,
    ids: Mutex<Vec<String>>,
}

impl Field {
    pub(crate) fn new(plan: &Plan) -> Self {
        let env = TestEnvironment::with_repository();
        env.pace(20);
        let bare = bare(&env, "server.git");
        let repo = env.repo();
        for setting in ["receive.fsckObjects", "transfer.fsckObjects"] {
            env.git(&bare, &["config", setting, "true"]);
        }
        env.handoff_in(&bare, &["hooks", "install", "--server"])
            .success();
        // After the judge that stays: it refuses once for each time that it is told to.
        let hook = bare.join("hooks/pre-receive");
        let script = fs::read_to_string(&hook).unwrap();
        let more =
            "if rm refuse 2>/dev/null; then echo no >>refused; echo 'not today' >&2; exit 1; fi\n";
        fs::write(&hook, script + more).unwrap();
        let path = bare.to_str().unwrap().to_owned();
        env.git(&repo, &["remote", "add", "origin", &path]);
        env.git(&repo, &["push", "-q", "origin", "main"]);
        env.handoff(&["init", "--remote", "origin"]).success();
        let daemon = Daemon::start(&env);
        let mut field = Self {
            env: Some(env),
            seed: plan.seed,
            bare,
            clones: Vec::new(),
            daemon: Some(daemon),
            tips: Mutex::default(),
            gate: RwLock::default(),
            freed: AtomicU32::new(0),
            made: Made::default(),
            broken: 0,
            shared: Shared::default(),
        };
        let mut dice = Dice::new(plan.seed);
        for number in 0..usize::try_from(plan.clones).unwrap() {
            let clone = field.clone(number, &mut dice);
            field.clones.push(clone);
        }
        field
    }

    pub(crate) fn env(&self) -> &TestEnvironment {
        self.env.as_ref().unwrap()
    }

    fn clone(&self, number: usize, dice: &mut Dice) -> Clone {
        let env = self.env();
        let name = format!("clone-{number}");
        let folder = env.root().join(&name);
        let port = self.daemon.as_ref().unwrap().port;
        let (line, to) = match number % 2 {
            0 => {
                let link = env.root().join(format!("link-{number}"));
                symlink(&self.bare, &link).unwrap();
                let to = link.to_str().unwrap().to_owned();
                (Line::Path(link), to)
            }
            _ => {
                let proxy = Proxy::start(port);
                let to = address("git", proxy.port, "server.git");
                (Line::Proxy(proxy), to)
            }
        };
        // Depth counts for no path, but for an address.
        let is_shallow = number % 4 == 1;
        let depth: &[&str] = if is_shallow { &["--depth=1"] } else { &[] };
        let args = [&["clone", "-q", "--branch=main"], depth, &[&to, &name]].concat();
        env.git(env.root(), &args);
        let person = format!("Person {number}");
        env.git(&folder, &["config", "user.name", &person]);
        let email = format!("person-{number}@example.com");
        env.git(&folder, &["config", "user.email", &email]);
        let mut folders = vec![folder.clone()];
        if number % 4 == 2 {
            let linked = env.root().join(format!("linked-{number}"));
            let path = linked.to_str().unwrap();
            env.git(&folder, &["worktree", "add", "-q", "-b", "side", path]);
            folders.push(linked);
        }
        for folder in &folders {
            fs::write(folder.join("README.md"), "# Changed\n").unwrap();
            fs::write(folder.join("staged.txt"), "staged\n").unwrap();
            env.git(folder, &["add", "staged.txt"]);
            fs::write(folder.join("staged.txt"), "and changed\n").unwrap();
        }
        const HOURS: i64 = 6;
        // The first two are as far apart as can be.
        let offset = match number {
            0 => -HOURS * 3600,
            1 => HOURS * 3600,
            _ => i64::try_from(dice.below(2 * 6 * 3600)).unwrap() - HOURS * 3600,
        };
        let mut clone = Clone {
            name,
            folders,
            is_shallow,
            offset,
            line,
            absences: Mutex::default(),
            before: Vec::new(),
        };
        let args = ["init", "--remote", "origin"];
        let command = self.program(&clone, 0, &args);
        env.run(command, &args, None).success();
        clone.before = self.bystanders(&clone);
        clone
    }

    /// The program in one of a clone's worktrees, by the clone's clock.
    fn program(&self, clone: &Clone, folder: usize, args: &[&str]) -> Command {
        let env = self.env();
        let mut command = env.program(args);
        let now = env.now() + clone.offset;
        for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            command.env(name, format!("@{now} +0000"));
        }
        command.current_dir(&clone.folders[folder % clone.folders.len()]);
        // Its worktrees act as one worker, as if the configuration named it.
        command.env(
            "GIT_HANDOFF_WORKER",
            test_support::worker_of(&clone.folders[0]),
        );
        command
    }

    /// What is the user's in a clone: `HEAD`, index and files of each worktree, the
    /// branches and tags.
    pub(crate) fn bystanders(&self, clone: &Clone) -> Vec<String> {
        let env = self.env();
        let mut found = Vec::new();
        for folder in &clone.folders {
            for args in [
                &["rev-parse", "--symbolic-full-name", "HEAD"][..],
                &["ls-files", "--stage", "--debug"],
                &["--no-optional-locks", "status", "--porcelain"],
                &["--no-optional-locks", "diff"],
            ] {
                found.push(env.git(folder, args));
            }
        }
        let folder = &clone.folders[0];
        let args = ["for-each-ref", "refs/heads", "refs/tags"];
        let refs = env.git(folder, &args);
        let refs = refs
            .lines()
            .filter(|line| !line.ends_with("\trefs/heads/handoffs"));
        found.extend(refs.map(str::to_owned));
        found
    }

    /// Lets all agents work while everything breaks; returns what they were told.
    pub(crate) fn run(&mut self, plan: &Plan) -> Account {
        let account = Account::default();
        let over = AtomicBool::new(false);
        let field = &*self;
        thread::scope(|scope| {
            scope.spawn(|| field.watch(&over));
            scope.spawn(|| chaos::keep_going(field, &over));
            let agents: Vec<_> = (0..2 * field.clones.len())
                .map(|number| {
                    let mut agent = Agent::new(field, &account, number, plan.seed);
                    scope.spawn(move || agent.work(plan.steps))
                })
                .collect();
            let ended: Vec<_> = agents
                .into_iter()
                .map(thread::ScopedJoinHandle::join)
                .collect();
            over.store(true, Ordering::SeqCst);
            for ended in ended {
                if let Err(panic) = ended {
                    std::panic::resume_unwind(panic);
                }
            }
        });
        account
    }

    /// Notes where the remote's branch is.
    fn watch(&self, over: &AtomicBool) {
        while !over.load(Ordering::SeqCst) {
            // While it is packed, it does not move.
            let at = repository_kind::now_at(&self.bare, "refs/heads/handoffs");
            if at.len() == repository_kind::digits() {
                self.tips.lock().unwrap().insert(at);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends every fault, waits for what still runs, and brings all clones together.
    pub(crate) fn heal(&mut self) {
        self.daemon = None;
        for number in 0..self.clones.len() {
            let clone = &mut self.clones[number];
            let to = match &clone.line {
                Line::Path(link) => link.clone(),
                // The proxy goes, and with it what hangs there.
                Line::Proxy(proxy) => {
                    self.broken += proxy.broken();
                    self.bare.clone()
                }
            };
            if matches!(clone.line, Line::Proxy(_)) {
                clone.line = Line::Path(to.clone());
            }
            let folder = self.clones[number].folders[0].clone();
            let args = ["remote", "set-url", "origin", to.to_str().unwrap()];
            self.env().git(&folder, &args);
        }
        processes::wait_for_none(self.env(), &[]);
        let _ = fs::remove_file(self.bare.join("refuse"));
        chaos::clear_locks(self);
        let mut rounds = 0;
        loop {
            rounds += 1;
            assert!(rounds < 10, "the clones do not come together");
            let mut moved = false;
            for clone in &self.clones {
                let args = ["sync", "--timeout", "5m", "--json"];
                let ran = self.env().run(self.program(clone, 0, &args), &args, None);
                assert!(
                    [0, 5].contains(&ran.status),
                    "{}: {}",
                    clone.name,
                    ran.shown
                );
                let document = ran.json();
                let data = &document["data"];
                moved |= ran.status == 5 || data["sent"] != 0 || data["brought"] != 0;
            }
            if !moved {
                break;
            }
        }
        processes::wait_for_none(self.env(), &[]);
    }

    /// The faults that were made.
    pub(crate) fn faults(&self) -> [(&'static str, usize); 6] {
        let count = |number: &AtomicU32| number.load(Ordering::SeqCst) as usize;
        let refused = fs::read_to_string(self.bare.join("refused"));
        [
            ("killed", count(&self.made.killed)),
            ("git killed", count(&self.made.git_killed)),
            ("remote absent", count(&self.made.absent)),
            ("tidied up", count(&self.made.tidied)),
            ("broken connections", self.broken),
            (
                "refused pushes",
                refused.map_or(0, |text| text.lines().count()),
            ),
        ]
    }

    /// Lets go of the folder.
    pub(crate) fn passed(mut self) {
        drop(self.env.take());
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        self.daemon = None;
        if thread::panicking()
            && let Some(env) = self.env.take()
        {
            eprintln!(
                "failed with seed {}; kept: {}",
                self.seed,
                env.root().display()
            );
            std::mem::forget(env);
        }
    }
}
