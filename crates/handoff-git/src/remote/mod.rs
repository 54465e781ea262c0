//! A remote branch, read and written through the `git` command, so that the user's credentials, ssh
//! and proxies work.

mod messages;
mod outcome;

pub use messages::{masked, tells_of_damage};
pub use outcome::{Pushed, RemoteError};

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use handoff_base::ObjectId;

use crate::objects::Grown;
use crate::process::{self, Ended, Patience, ProcessError, git, git_alone};
use crate::repository::Repository;

/// How much history to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The commits since the known one, or everything if there is none.
    Missing,
    /// Only the last commit.
    Tip,
    /// Everything, even if it was shallow before.
    All,
}

/// Which objects of the fetched commits to request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// The new ones.
    New,
    /// All, even those that git assumes to be here: a partial clone may have commits without their
    /// content.
    All,
    /// Those that this clone's filter includes.
    Filtered,
}

/// What a request for objects excludes below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Nothing.
    Everything,
    /// All blobs.
    Folders,
    /// Everything deeper than two folders.
    TwoLevels,
}

/// How often to ask again if the remote reports no branch.
const TRIES: usize = 2;

/// How often a fetch waits for a lock on local refs; below, how long each time.
const LOCKED: usize = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// The options of every fetch.
pub(super) const FETCHING: [&str; 8] = [
    "--refmap=",
    "--no-tags",
    "--no-prune",
    "--no-write-fetch-head",
    "--no-write-commit-graph",
    "--no-recurse-submodules",
    "--no-auto-gc",
    // Without it, git does not check for a rewritten branch.
    "--show-forced-updates",
];

/// A filter that excludes nothing. git marks fetched objects, and what they reference, as promised
/// only if a filter was used: new objects may reference older ones that are missing.
const NO_LIMIT: &str = "--filter=blob:limit=2g";

/// A branch of a remote repository.
pub struct Remote {
    git_dir: PathBuf,
    directory: Option<PathBuf>,
    name: String,
    refname: String,
    grown: Grown,
    durable_refs: Option<String>,
    /// The lock file of a garbage collection.
    collection: PathBuf,
    /// Whether this repository is a partial clone of it.
    is_promised: bool,
}

impl Remote {
    /// Addresses a remote by name, URL or path.
    pub fn new(repository: &Repository, name: &str, refname: &str) -> Self {
        let is_named = repository.config(&format!("remote.{name}.url")).is_some();
        // A configured URL is relative to the repository, any other to the current folder.
        let directory = is_named.then(|| repository.workdir().unwrap_or(repository.path()));
        Self {
            git_dir: repository.path().to_owned(),
            directory: directory.map(Path::to_owned),
            name: name.to_owned(),
            refname: refname.to_owned(),
            grown: repository.grown.clone(),
            durable_refs: repository.durable_refs.clone(),
            collection: repository.collection(),
            is_promised: repository.is_promised_by(name),
        }
    }

    /// The remote branch's commit; `None` if it does not exist.
    ///
    /// # Errors
    /// [`RemoteError`] when it can't be determined in time.
    pub fn tip(&self, patience: &Patience<'_>) -> Result<Option<ObjectId>, RemoteError> {
        let mut command = self.git("ls-remote");
        command.args(["--quiet", "--", &self.name, &self.refname]);
        let output = self.run(command, patience)?;
        let output = String::from_utf8_lossy(&output);
        let ends = |line: &&str| line.split('\t').nth(1) == Some(&self.refname);
        let Some(line) = output.lines().find(ends) else {
            return if self.has_branch(patience)? {
                Err(broken_off())
            } else {
                Ok(None)
            };
        };
        let id = line.split('\t').next().and_then(|id| id.parse().ok());
        id.map(Some).ok_or(RemoteError::Answer)
    }

    /// Fetches the branch and moves the ref `tracking` to it. Returns whether the branch exists.
    /// `known` is the current commit of `tracking`.
    ///
    /// # Errors
    /// [`RemoteError::Rewritten`] if the branch is not a descendant of `known`, and other
    /// [`RemoteError`]s when it can't be fetched in time; `tracking` is then unchanged.
    pub fn track(
        &self,
        tracking: &str,
        known: Option<ObjectId>,
        depth: Depth,
        contents: Contents,
        patience: &Patience<'_>,
    ) -> Result<bool, RemoteError> {
        let mut tries = 0;
        let mut waits = 0;
        while tries < TRIES {
            // With `--quiet`, git would not report a rewritten branch.
            let mut command = self.fetching();
            command.args(match contents {
                Contents::Filtered => None,
                _ if self.is_promised => Some(NO_LIMIT),
                Contents::New | Contents::All => Some("--no-filter"),
            });
            command.args(known.map(|id| format!("--negotiation-tip={id}")));
            command.args(match depth {
                Depth::Missing => None,
                Depth::Tip => Some("--depth=1"),
                // The greatest depth that deepens nothing; one more would deepen every branch.
                Depth::All => Some("--depth=2147483646"),
            });
            command.args((contents == Contents::All).then_some("--refetch"));
            command.args(["--", &self.name, &format!("{}:{tracking}", self.refname)]);
            let ended = self.ended(command, None, patience)?;
            if messages::is_cut_off(&ended.stderr) {
                return Err(RemoteError::Shallow);
            }
            if ended.status.success() {
                self.grown.note();
                return Ok(true);
            }
            let lines = messages::lines(&ended.stderr);
            // With reftables, any process that updates a ref blocks git's fetch.
            if messages::is_locked(&lines) && waits < LOCKED {
                waits += 1;
                std::thread::sleep(PAUSE);
                continue;
            }
            tries += 1;
            if messages::is_rewritten(&lines) {
                let branch = self.refname.trim_start_matches("refs/heads/").to_owned();
                return Err(RemoteError::Rewritten { branch });
            }
            if !messages::is_missing(&self.refname, &lines) {
                return Err(messages::of_contact(&lines));
            }
            if !self.has_branch(patience)? {
                return Ok(false);
            }
        }
        Err(broken_off())
    }

    /// Fetches the branch's commits without moving a ref. With `anew`, also those assumed to be
    /// here.
    ///
    /// # Errors
    /// [`RemoteError`] when they can't be fetched in time.
    pub fn bring(&self, anew: bool, patience: &Patience<'_>) -> Result<(), RemoteError> {
        let mut command = self.fetching();
        command.args(anew.then_some("--refetch"));
        command.args(["--quiet", "--", &self.name, &self.refname]);
        self.run(command, patience)?;
        self.grown.note();
        Ok(())
    }

    /// Fetches objects that a partial clone lacks: those added since a commit, or, without one, all
    /// of the tip.
    ///
    /// # Errors
    /// [`RemoteError`] when they can't be fetched in time.
    pub fn fill(
        &self,
        tip: ObjectId,
        since: Option<ObjectId>,
        patience: &Patience<'_>,
    ) -> Result<(), RemoteError> {
        let mut asked_for = None;
        loop {
            let missing = self.missing(tip, since, patience)?;
            let Some(first) = missing.first() else {
                return Ok(());
            };
            if asked_for == Some(*first) {
                let message = format!("the remote does not send object {first}");
                return Err(RemoteError::Failed { message });
            }
            asked_for = Some(*first);
            self.fetch_objects(&missing, Below::Everything, patience)?;
        }
    }

    /// Whether this repository lacks objects of `tip`: those added since a commit, or any.
    ///
    /// # Errors
    /// [`RemoteError`] when it can't be determined in time.
    pub fn lacks(
        &self,
        tip: ObjectId,
        since: Option<ObjectId>,
        patience: &Patience<'_>,
    ) -> Result<bool, RemoteError> {
        Ok(!self.missing(tip, since, patience)?.is_empty())
    }

    /// The missing objects: of those added since a commit, or of the tip alone.
    fn missing(
        &self,
        tip: ObjectId,
        since: Option<ObjectId>,
        patience: &Patience<'_>,
    ) -> Result<Vec<ObjectId>, RemoteError> {
        let mut command = self.git("rev-list");
        command.args(["--objects", "--no-object-names", "--missing=print"]);
        command.args(match since {
            Some(since) => [tip.to_string(), format!("^{since}")],
            None => ["--no-walk".to_owned(), tip.to_string()],
        });
        let listed = self.run(command, patience)?;
        let listed = String::from_utf8_lossy(&listed);
        let missing = listed.lines().filter_map(|line| line.strip_prefix('?'));
        // Truncated output may end within an id, which then does not parse.
        Ok(missing.filter_map(|id| id.parse().ok()).collect())
    }

    /// Fetches objects with everything below them, even if they are already here.
    ///
    /// # Errors
    /// [`RemoteError`] when they can't be fetched in time, or the remote does not support the
    /// filter.
    pub fn fetch_objects(
        &self,
        wanted: &[ObjectId],
        below: Below,
        patience: &Patience<'_>,
    ) -> Result<(), RemoteError> {
        // A remote assumes that a client has all ancestors of the commits it announces.
        let mut command = self.git_with("fetch", &["fetch.negotiationAlgorithm=noop"]);
        command.args(FETCHING);
        command.arg(match below {
            Below::Everything => "--no-filter",
            Below::Folders => "--filter=blob:none",
            Below::TwoLevels => "--filter=tree:2",
        });
        command.args(["--stdin", "--", &self.name]);
        let requested: String = wanted.iter().map(|id| format!("{id}\n")).collect();
        let ended = self.ended(command, Some(requested.into_bytes()), patience)?;
        if !ended.status.success() {
            return Err(messages::of_contact(&messages::lines(&ended.stderr)));
        }
        self.grown.note();
        Ok(())
    }

    /// Pushes a commit to the branch, which must be its ancestor (fast-forward).
    ///
    /// # Errors
    /// [`RemoteError`]. After [`RemoteError::Failed`], [`RemoteError::TimedOut`] and
    /// [`RemoteError::Interrupted`] the branch may have moved all the same.
    pub fn push(&self, commit: ObjectId, patience: &Patience<'_>) -> Result<Pushed, RemoteError> {
        match self.push_once(commit, patience) {
            // A concurrent garbage collection can remove an object file under git.
            Err(RemoteError::Failed { message }) if tells_of_damage(&message) => {
                self.push_once(commit, patience)
            }
            outcome => outcome,
        }
    }

    /// Pushes an agent's code: like [`Self::push`], but with the user's own hooks.
    ///
    /// # Errors
    /// [`RemoteError`], as for [`Self::push`].
    pub fn push_code(
        &self,
        commit: ObjectId,
        agent: &str,
        patience: &Patience<'_>,
    ) -> Result<Pushed, RemoteError> {
        let mut command = self.set_up(git(&self.git_dir, None), "push", &[]);
        command.env("GIT_HANDOFF_AGENT", agent);
        self.pushed(command, commit, patience)
    }

    fn push_once(&self, commit: ObjectId, patience: &Patience<'_>) -> Result<Pushed, RemoteError> {
        let mut command = self.git("push");
        command.args(["--no-verify", "--no-signed"]);
        self.pushed(command, commit, patience)
    }

    fn pushed(
        &self,
        mut command: Command,
        commit: ObjectId,
        patience: &Patience<'_>,
    ) -> Result<Pushed, RemoteError> {
        command.args([
            "--porcelain",
            "--no-follow-tags",
            "--recurse-submodules=no",
            "--",
            &self.name,
            &format!("{commit}:{}", self.refname),
        ]);
        let ended = self.ended(command, None, patience)?;
        if !ended.status.success() {
            return messages::of_push(&self.refname, &ended.stdout, &ended.stderr);
        }
        messages::of_pushed(&self.refname, &ended.stdout)
    }

    /// Asks again whether the branch exists: git takes a response that was truncated within its
    /// headers for an empty repository.
    fn has_branch(&self, patience: &Patience<'_>) -> Result<bool, RemoteError> {
        for _ in 0..TRIES {
            let mut command = self.git("ls-remote");
            command.args(["--quiet", "--", &self.name, "refs/heads/*"]);
            let listed = self.run(command, patience)?;
            if !listed.is_empty() {
                let listed = String::from_utf8_lossy(&listed);
                let mut names = listed.lines().filter_map(|line| line.split('\t').nth(1));
                return Ok(names.any(|name| name == self.refname));
            }
        }
        Ok(false)
    }

    fn fetching(&self) -> Command {
        let mut command = self.git("fetch");
        command.args(FETCHING);
        command
    }

    fn git(&self, verb: &str) -> Command {
        self.git_with(verb, &[])
    }

    fn git_with(&self, verb: &str, settings: &[&str]) -> Command {
        // Fetches and pushes move none of the user's refs, so the user's hooks have nothing to
        // check.
        self.set_up(git_alone(&self.git_dir, None), verb, settings)
    }

    fn set_up(&self, mut command: Command, verb: &str, settings: &[&str]) -> Command {
        command.args(["-c", "color.remote=never"]);
        let durable = self.durable_refs.iter().map(String::as_str);
        for setting in settings.iter().copied().chain(durable) {
            command.args(["-c", setting]);
        }
        if verb == "fetch" {
            // A collection would remove loose objects that no ref reaches yet; a pack is protected
            // from it.
            if self.collection.exists() {
                command.args(["-c", "fetch.unpackLimit=1"]);
            }
        }
        // A mirror remote refuses to push single refs.
        if self.directory.is_some() && !self.name.contains('=') {
            let mirror = format!("remote.{}.mirror=false", self.name);
            command.args(["-c", &mirror]);
        }
        command.arg(verb);
        command.args(process::pinned_pack(verb, &self.name));
        // Its messages are parsed.
        command.env("LC_ALL", "C").env_remove("LANGUAGE");
        command.env("GIT_TERMINAL_PROMPT", "0");
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    /// Runs git and returns its output.
    fn run(&self, command: Command, patience: &Patience<'_>) -> Result<Vec<u8>, RemoteError> {
        let ended = self.ended(command, None, patience)?;
        if ended.status.success() {
            Ok(ended.stdout)
        } else {
            Err(messages::of_contact(&messages::lines(&ended.stderr)))
        }
    }

    fn ended(
        &self,
        command: Command,
        input: Option<Vec<u8>>,
        patience: &Patience<'_>,
    ) -> Result<Ended, RemoteError> {
        process::ensure_addresses(&self.git_dir)
            .map_err(|message| RemoteError::Redirected { message })?;
        process::run(command, input, patience).map_err(|error| match error {
            ProcessError::NoStart(source) => RemoteError::NoGit(source),
            ProcessError::TimedOut => RemoteError::TimedOut,
            ProcessError::Interrupted => RemoteError::Interrupted,
        })
    }
}

fn broken_off() -> RemoteError {
    RemoteError::Failed {
        message: "its answer broke off".to_owned(),
    }
}
