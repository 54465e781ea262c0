//! A remote, and two clones that share its ledger.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use test_support::contracts::opening;
use test_support::remote::{assert_whole, bare, clone, served, tip};
use test_support::{Ran, TestEnvironment};

const SERVER: &str = "server.git";
const OTHER: &str = "other";

/// A bare repository, which is `origin` to the clones `repo` and `other`.
pub(crate) struct Clones {
    pub(crate) env: TestEnvironment,
    pub(crate) bare: PathBuf,
    pub(crate) other: PathBuf,
}

impl Clones {
    /// Makes them, with a ledger that both have.
    pub(crate) fn new() -> Self {
        Self::under(&[])
    }

    /// Makes them; the first clone starts the ledger with these arguments.
    pub(crate) fn under(init: &[&str]) -> Self {
        let kind = format!("clones{}", init.concat());
        Self::prepared(&kind, || Self::unprepared().started(init))
    }

    /// A copy of those that are made once in a run of tests.
    pub(crate) fn prepared(kind: &str, make: impl FnOnce() -> Self) -> Self {
        let env = TestEnvironment::prepared(kind, || make().env);
        let (bare, other) = (served(&env).join(SERVER), env.root().join(OTHER));
        Self { env, bare, other }
    }

    /// Makes them; both reach the bare repository by an address.
    pub(crate) fn through(env: TestEnvironment, bare: PathBuf, address: &str) -> Self {
        Self::reaching(env, bare, address).started(&[])
    }

    /// Makes them without a ledger.
    pub(crate) fn without_ledger() -> Self {
        Self::prepared("clones-without-ledger", Self::unprepared)
    }

    fn unprepared() -> Self {
        let env = TestEnvironment::with_repository();
        let bare = bare(&env, SERVER);
        let address = bare.to_str().unwrap().to_owned();
        Self::reaching(env, bare, &address)
    }

    fn started(self, init: &[&str]) -> Self {
        let join = ["init", "--remote", "origin"];
        self.env.handoff(&[&join, init].concat()).success();
        self.there(&join).success();
        self
    }

    fn reaching(env: TestEnvironment, bare: PathBuf, address: &str) -> Self {
        env.git(&env.repo(), &["remote", "add", "origin", address]);
        env.git(&env.repo(), &["push", "-q", "origin", "main"]);
        let other = clone(&env, address, OTHER);
        Self { env, bare, other }
    }

    /// Runs the program in the other clone.
    pub(crate) fn there(&self, args: &[&str]) -> Ran {
        self.env.handoff_in(&self.other, args)
    }

    /// Sends a contract from a clone.
    pub(crate) fn send(&self, clone: &Path, contract: &str, more: &[&str]) -> Ran {
        let args = [&["send", "-"], more].concat();
        let mut command = self.env.program(&args);
        command.current_dir(clone);
        command.env("GIT_HANDOFF_WORKER", test_support::worker_of(clone));
        self.env.run(command, &args, Some(contract.as_bytes()))
    }

    /// Sends the contract that opens an issue.
    pub(crate) fn open(&self, clone: &Path, issue: u32, more: &[&str]) -> Ran {
        self.send(clone, &opening(issue), more)
    }

    /// Where a ref is in one of the repositories; empty where it is not there.
    pub(crate) fn at(&self, repository: &Path, name: &str) -> String {
        let args = ["rev-parse", "--verify", "-q", name];
        self.env.git_any(repository, &args).stdout.trim().to_owned()
    }

    /// Where the ledger's branch is in one of them.
    pub(crate) fn tip(&self, repository: &Path) -> String {
        tip(&self.env, repository)
    }

    /// The commits of the remote's ledger after one, the oldest first.
    pub(crate) fn published_since(&self, commit: &str) -> Vec<String> {
        let range = format!("{commit}..handoffs");
        let shown = self.env.git(&self.bare, &["rev-list", "--reverse", &range]);
        shown.lines().map(str::to_owned).collect()
    }

    /// Has both clones reach the repository by another address.
    pub(crate) fn move_to(&self, address: &str) {
        for clone in [&self.env.repo(), &self.other] {
            self.env
                .git(clone, &["remote", "set-url", "origin", address]);
        }
    }

    /// Takes the remote out of reach.
    pub(crate) fn take_away(&self) {
        fs::rename(&self.bare, self.env.root().join("away.git")).unwrap();
    }

    /// Brings it back.
    pub(crate) fn bring_back(&self) {
        fs::rename(self.env.root().join("away.git"), &self.bare).unwrap();
    }

    /// The ledger passes its own audit and git's, in a clone and on the remote.
    #[track_caller]
    pub(crate) fn assert_sound(&self, clone: &Path) {
        for repository in [clone, &self.bare] {
            self.env.handoff_in(repository, &["verify"]).success();
            assert_whole(&self.env, repository);
        }
    }

    /// All three repositories have the same ledger, which passes every check.
    #[track_caller]
    pub(crate) fn assert_together(&self) {
        let there = self.tip(&self.bare);
        assert!(!there.is_empty());
        for clone in [&self.env.repo(), &self.other] {
            assert_eq!(self.tip(clone), there, "{}", clone.display());
            self.assert_sound(clone);
        }
    }
}

/// Whether a process has the queue's file open: it waits there, or it is its turn.
pub(crate) fn is_in_queue(child: &Child) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", child.id()));
    let open = open.into_iter().flatten().flatten();
    let mut targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.any(|target| target.ends_with("handoff/remote.lock"))
}
