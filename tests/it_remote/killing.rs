//! Commands that are killed at random points, and what must not have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use test_support::TestEnvironment;
use test_support::files::write;
use test_support::proof::times;
use test_support::repository_kind::refs_in_tables;

/// Kills commands until enough of them died of it.
pub(crate) struct Killer {
    wanted: u32,
    killed: u32,
    ended: u32,
    random: u64,
    /// How long the last command took that was spared: a kill falls in that time.
    usual: Duration,
    /// How much of that time is used; less for each kill that came too late.
    part: f64,
}

/// One command of so many is spared, which shows how long they take at present.
const SPARED: u32 = 8;

impl Killer {
    /// One that kills so many in the short form.
    pub(crate) fn new(seed: u64, wanted: u32) -> Self {
        Self {
            wanted: wanted * times(),
            killed: 0,
            ended: 0,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            usual: Duration::ZERO,
            part: 1.0,
        }
    }

    /// Says whether there is more to kill.
    pub(crate) fn goes_on(&self) -> bool {
        assert!(
            self.killed + self.ended < 8 * self.wanted,
            "only {} of {} were killed in time",
            self.killed,
            self.killed + self.ended
        );
        self.killed < self.wanted
    }

    /// How many there were.
    pub(crate) fn shots(&self) -> u32 {
        self.killed + self.ended
    }

    /// Insists that the kills fell before and after what the commands did.
    pub(crate) fn finish(self, acknowledged: usize) {
        assert!(self.killed >= self.wanted);
        assert!(
            self.ended >= self.wanted / 20,
            "only {} of {} ended before they were killed",
            self.ended,
            self.shots()
        );
        assert!(acknowledged > 0);
    }

    fn pause(&mut self) -> Duration {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let part = f64::from(u32::try_from(self.random >> 33).unwrap()) / f64::from(u32::MAX >> 1);
        self.usual.mul_f64(self.part * part)
    }

    /// Runs a command with `--json` and kills it, with its children or alone;
    /// returns what it acknowledged, if it came to that.
    #[track_caller]
    pub(crate) fn shoot(&mut self, mut command: Command, with_children: bool) -> Option<Value> {
        command
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let is_spared = self.shots().is_multiple_of(SPARED);
        let pause = self.pause();
        let start = Instant::now();
        let child = command.spawn().unwrap();
        let pid = Pid::from_child(&child);
        if !is_spared {
            std::thread::sleep(pause);
            let _ = if with_children {
                kill_process_group(pid, Signal::KILL)
            } else {
                kill_process(pid, Signal::KILL)
            };
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match (output.status.code(), output.status.signal()) {
            (Some(0), _) if is_spared => {
                self.ended += 1;
                (self.usual, self.part) = (start.elapsed(), 1.0);
            }
            (Some(0), _) => {
                self.ended += 1;
                self.part /= 2.0;
            }
            (None, Some(9)) => self.killed += 1,
            other => panic!(
                "{other:?}: {}{said}",
                String::from_utf8_lossy(&output.stdout)
            ),
        }
        // Half a document acknowledges nothing.
        let mut document: Value = serde_json::from_slice(&output.stdout).ok()?;
        assert_eq!(document["ok"], true, "{document:#}");
        Some(document["data"].take())
    }
}

/// Commits that were acknowledged.
#[derive(Default)]
pub(crate) struct Acknowledged(BTreeSet<String>);

impl Acknowledged {
    pub(crate) fn note(&mut self, data: &Value) {
        let commit = data["commit"].as_str().unwrap();
        self.0.insert(commit.to_owned());
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// All of them stand, and the ledger is whole.
    #[track_caller]
    pub(crate) fn stand(&self, env: &TestEnvironment) {
        env.assert_sound();
        let all = env.git(&env.repo(), &["rev-list", "handoffs"]);
        let all: BTreeSet<&str> = all.lines().collect();
        let lost: Vec<_> = self.0.iter().filter(|c| !all.contains(&c[..])).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    }
}

/// Everything in the repository that is not the ledger's: files, index, `HEAD`,
/// configuration and other refs, byte for byte.
pub(crate) struct Bystanders {
    root: PathBuf,
    but: Vec<String>,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl Bystanders {
    /// Notes what is there, but for what begins so.
    pub(crate) fn note(env: &TestEnvironment, but: &[&str]) -> Self {
        let own = [
            ".git/objects/",
            ".git/handoff/",
            ".git/refs/heads/handoffs",
            ".git/logs/refs/heads/handoffs",
            ".git/reftable/",
        ];
        let but = own.iter().chain(but).map(|&name| name.to_owned());
        let mut noted = Self {
            root: env.repo(),
            but: but.collect(),
            before: BTreeMap::new(),
        };
        noted.before = noted.read();
        assert!(noted.before.contains_key(Path::new(".git/index")));
        noted
    }

    /// Insists that it is there, and nothing else.
    #[track_caller]
    pub(crate) fn assert_untouched(&self) {
        let now = self.read();
        let names = self.before.keys().chain(now.keys());
        let differ: BTreeSet<_> = names
            .filter(|name| self.before.get(*name) != now.get(*name))
            .collect();
        assert!(differ.is_empty(), "changed: {differ:?}");
    }

    fn read(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let refs = self
            .but
            .iter()
            .filter_map(|name| name.strip_prefix(".git/"));
        let refs = refs_in_tables(&self.root.join(".git"), &refs.collect::<Vec<_>>());
        found.insert(PathBuf::from(".git/reftable"), refs.into_bytes());
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.root.join(&folder)).unwrap() {
                let entry = entry.unwrap();
                let name = folder.join(entry.file_name());
                let is_dir = entry.file_type().unwrap().is_dir();
                let text = format!("{}{}", name.display(), if is_dir { "/" } else { "" });
                if self.but.iter().any(|but| text.starts_with(but)) {
                } else if is_dir {
                    folders.push(name);
                } else {
                    let bytes = fs::read(entry.path()).unwrap();
                    found.insert(name, bytes);
                }
            }
        }
        found
    }
}

/// Leaves unfinished work in the worktree: staged, changed, new and deleted.
pub(crate) fn unfinished(env: &TestEnvironment) {
    let repo = env.repo();
    for number in 0..12 {
        write(
            &repo.join(format!("kept/{number}")),
            format!("base {number}\n"),
        );
    }
    env.git(&repo, &["add", "."]);
    env.git(&repo, &["commit", "-q", "-m", "Base"]);
    env.git(&repo, &["tag", "v1"]);
    env.git(&repo, &["branch", "topic"]);
    for number in 0..6 {
        write(
            &repo.join(format!("kept/{number}")),
            format!("changed {number}\n"),
        );
        write(
            &repo.join(format!("new/{number}")),
            format!("new {number}\n"),
        );
    }
    env.git(&repo, &["add", "kept/0", "kept/1", "new/0"]);
    write(&repo.join("kept/1"), "changed again\n");
    fs::remove_file(repo.join("kept/11")).unwrap();
}
