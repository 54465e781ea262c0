//! A remote, and two clones that share its ledger.

use std::fs;
use std::path::{Path, PathBuf};

use test_support::{Ran, TestEnvironment};

/// A bare repository `bare.git`, which is `origin` to the clones `repo` and `other`.
pub(crate) struct Clones {
    pub(crate) env: TestEnvironment,
    pub(crate) bare: PathBuf,
    pub(crate) other: PathBuf,
}

impl Clones {
    /// Makes them, with a ledger that both have.
    pub(crate) fn new() -> Self {
        Self::under(&["init", "--remote", "origin"])
    }

    /// Makes them; the first clone starts the ledger with these arguments.
    pub(crate) fn under(init: &[&str]) -> Self {
        let clones = Self::without_ledger();
        clones.env.handoff(init).success();
        let there = ["init", "--remote", "origin"];
        clones.there(&there).success();
        clones
    }

    /// Makes them without a ledger.
    pub(crate) fn without_ledger() -> Self {
        let env = TestEnvironment::with_repository();
        let (bare, other) = (env.root().join("bare.git"), env.root().join("other"));
        env.git(env.root(), &["init", "-q", "--bare", "bare.git"]);
        let address = bare.to_str().unwrap();
        env.git(&env.repo(), &["remote", "add", "origin", address]);
        env.git(&env.repo(), &["push", "-q", "origin", "main"]);
        env.git(env.root(), &["clone", "-q", address, "other"]);
        Self { env, bare, other }
    }

    /// Runs a command in the other clone.
    pub(crate) fn there(&self, args: &[&str]) -> Ran {
        self.env.handoff_in(&self.other, args)
    }

    /// Where a ref is in one of the repositories; empty where it is not there.
    pub(crate) fn at(&self, repository: &Path, name: &str) -> String {
        let args = ["rev-parse", "--verify", "-q", name];
        self.env.git_any(repository, &args).stdout.trim().to_owned()
    }

    /// Where the ledger's branch is in one of them.
    pub(crate) fn tip(&self, repository: &Path) -> String {
        self.at(repository, "refs/heads/handoffs")
    }

    /// The commits of the remote's ledger after one, the oldest first.
    pub(crate) fn published_since(&self, commit: &str) -> Vec<String> {
        let range = format!("{commit}..handoffs");
        let shown = self.env.git(&self.bare, &["rev-list", "--reverse", &range]);
        shown.lines().map(str::to_owned).collect()
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
            let fsck = ["fsck", "--strict", "--no-dangling"];
            let fsck = self.env.git_any(repository, &fsck);
            assert_eq!(fsck.status, 0, "{}{}", fsck.stdout, fsck.stderr);
        }
    }
}
