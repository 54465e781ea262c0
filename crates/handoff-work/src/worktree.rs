//! Worktrees for agents: one per issue, reused by its later roles, outside the repository's files.
//!
//! A worktree is locked while it is in use. Unique work is never removed: a worktree with
//! unfinished work of another handoff is set aside, and so is one that is no longer the original
//! (`checkout`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use handoff::base::ids::{HandoffId, IssueKey};
use handoff::git::{Repository, replace};
use serde::{Deserialize, Serialize};

use super::checkout::Checkout;
use super::program::{Actor, Program, word};
use handoff_cli::process::ProcessGroup;
use handoff_cli::process::locked;

/// Lock reasons of worktrees that git, `restore` or this program has not finished with.
const ADDING: &str = "initializing";
const RESTORING: &str = "a restore that has not finished";
const REMOVING: &str = "a removal that has not finished";

/// How long to wait for a worktree that another worker is only examining.
const LOOKING: Duration = Duration::from_secs(1);

/// How long to wait for other work on the same branch to end.
const ENDING: Duration = Duration::from_secs(60);

/// The worktrees of a clone.
#[derive(Clone, Debug)]
pub(super) struct Worktrees {
    pub(super) program: Program,
    folder: PathBuf,
    /// The folder of their locks and notes.
    notes: PathBuf,
}

/// A worktree in use.
#[derive(Debug)]
pub(super) struct Worktree {
    pub(super) checkout: Checkout,
    /// Whether it has work of an earlier attempt.
    pub(super) has_earlier_work: bool,
    /// Whether it was just created, so that it must be set up.
    pub(super) is_new: bool,
    /// Its name among this clone's worktrees.
    pub(super) name: String,
    /// Held until the work there ends.
    _lock: File,
}

/// The request for a worktree.
pub(super) struct Wanted<'a> {
    pub(super) id: &'a HandoffId,
    pub(super) actor: &'a Actor,
    /// The branch; created from the base if it does not exist.
    pub(super) branch: &'a str,
    /// Whether its newest commit is only read.
    pub(super) detached: bool,
    /// The commit with which the work was sent.
    pub(super) sent: Option<&'a str>,
    /// Whether the ledger has unfinished work of an earlier attempt.
    pub(super) restores: bool,
    /// The remote that the code is pushed to.
    pub(super) remote: Option<&'a str>,
    /// The start of a new branch.
    pub(super) base: &'a str,
    /// Whether the base's newest commit is needed, too.
    pub(super) brings_base: bool,
    /// Whether to wait until other work on the same issue has ended.
    pub(super) waits: bool,
}

/// A prepared worktree.
struct Prepared {
    checkout: Checkout,
    has_earlier_work: bool,
    is_new: bool,
}

/// Why there is no worktree.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The branch is checked out where a person works.
    CheckedOut(String),
    /// Agents may not write to the branch, for this reason.
    Refused(String),
    /// Anything else, as a sentence.
    Other(String),
}

/// The stored note about a worktree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Remembered {
    pub(super) issue: IssueKey,
    pub(super) path: PathBuf,
    /// The last handoff worked on there.
    pub(super) last: HandoffId,
    /// Its identity when it was created; `None` until then.
    pub(super) checkout: Option<Checkout>,
    /// The branches that runs there created for its issue.
    #[serde(default)]
    pub(super) made: Vec<String>,
    /// The branch of each handoff begun there.
    #[serde(default)]
    begun: BTreeMap<HandoffId, String>,
}

/// An existing worktree.
pub(super) struct Found {
    pub(super) remembered: Remembered,
    name: String,
}

impl Worktrees {
    /// The worktrees of a clone in this folder.
    pub(super) fn new(program: &Program, folder: PathBuf, work_folder: &Path) -> Self {
        Self {
            program: program.clone(),
            folder,
            notes: work_folder.join("worktrees"),
        }
    }

    /// These worktrees, with processes that have this group's mark.
    pub(super) fn marked(&self, group: &ProcessGroup) -> Self {
        Self {
            program: self.program.marked(group),
            ..self.clone()
        }
    }

    /// Opens the worktree for a piece of work.
    ///
    /// # Errors
    /// [`Trouble`]; nothing existing was changed then.
    pub(super) fn open(&self, wanted: &Wanted<'_>) -> Result<Worktree, Trouble> {
        let failed = |error: std::io::Error, path: &Path| {
            Trouble::Other(format!("{} can't be written: {error}", path.display()))
        };
        fs::create_dir_all(&self.folder).map_err(|error| failed(error, &self.folder))?;
        let key = wanted.id.issue();
        // First the worktree in which the same work was begun, then the first free one.
        let begun = self.names().into_iter().filter(|name| {
            let remembered = self.remembered(name);
            remembered.is_some_and(|remembered| remembered.last == *wanted.id)
        });
        let others = (1..).map(|number| match number {
            1 => key.to_string(),
            _ => format!("{key}.{number}"),
        });
        for name in begun.chain(others) {
            let is_issues = name == key.as_str();
            let patience = if wanted.waits && is_issues {
                ENDING
            } else {
                LOOKING
            };
            let lock = self
                .lock_soon(&name, patience)
                .map_err(|error| failed(error, &self.notes))?;
            let Some(lock) = lock else { continue };
            let path = self.folder.join(&name);
            let known = self.remembered(&name).filter(|known| known.path == path);
            let mut remembered = Remembered {
                issue: key.clone(),
                last: wanted.id.clone(),
                checkout: known.as_ref().and_then(|known| known.checkout.clone()),
                begun: known
                    .as_ref()
                    .map(|known| known.begun.clone())
                    .unwrap_or_default(),
                made: known.map_or_else(Vec::new, |known| known.made),
                path: path.clone(),
            };
            // Write the note before the worktree exists: without a note, nobody would remove it.
            if is_empty(&path) {
                remembered.checkout = None;
                let noted = self.remember(&name, &remembered);
                noted.map_err(|error| failed(error, &self.notes))?;
            }
            let had = self.has_branch(wanted.branch);
            let Some(found) = self.prepare(wanted, &name, &path)? else {
                continue;
            };
            if !had && !wanted.detached {
                remembered.made.push(wanted.branch.to_owned());
            }
            remembered.checkout = Some(found.checkout.clone());
            let branch = wanted.branch.to_owned();
            remembered.begun.insert(wanted.id.clone(), branch);
            let noted = self.remember(&name, &remembered);
            noted.map_err(|error| failed(error, &self.notes))?;
            return Ok(Worktree {
                checkout: found.checkout,
                has_earlier_work: found.has_earlier_work,
                is_new: found.is_new,
                name,
                _lock: lock,
            });
        }
        unreachable!("numbers do not end")
    }

    /// Prepares the worktree at a path; `None` if it can't be used for this work.
    fn prepare(
        &self,
        wanted: &Wanted<'_>,
        name: &str,
        path: &Path,
    ) -> Result<Option<Prepared>, Trouble> {
        if is_empty(path) {
            return self.create(wanted, path).map(Some);
        }
        // Without a finished note, a person may have created the worktree in this folder.
        let is_made = self
            .noted(name)
            .is_some_and(|known| known.checkout.is_some());
        let Some(known) = self.remembered(name).filter(|known| known.path == path) else {
            return Ok(None);
        };
        let checkout = known.checkout.filter(|checkout| checkout.repair().is_ok());
        let Some(checkout) = checkout else {
            return Ok(None);
        };
        if !is_whole(&checkout) {
            // The process was killed while it created or removed the worktree: no work was done
            // there since.
            self.discard(name, path)?;
            return self.create(wanted, path).map(Some);
        }
        let within = self.program.within(&checkout);
        let head = within.branch();
        if !is_made && head.is_some_and(|head| head != wanted.branch) {
            return Ok(None);
        }
        let found = |has_earlier_work| Prepared {
            checkout: checkout.clone(),
            has_earlier_work,
            is_new: !is_made,
        };
        let is_other = known.last != *wanted.id;
        let is_sparse = checkout.git_dir.join("info/sparse-checkout").exists();
        if is_other && !is_sparse {
            // An agent may have marked files in its index as unchanged: rebuild it.
            if renew_index(&checkout, &within).is_err() {
                return Ok(None);
            }
        }
        if !self.loses(&checkout).is_empty() {
            if !is_other {
                return Ok(Some(found(true)));
            }
            // Keep the unfinished work, but release the branch, which is needed elsewhere. If that
            // fails, the next step reports it.
            let _ = self.let_go(&checkout);
            return Ok(None);
        }
        if wanted.restores || (is_other && is_sparse) {
            // Mark the removal: whoever finds the worktree half removed can then discard it.
            let words = ["worktree", "lock", "--reason", REMOVING, &word(path)];
            self.program.git(&words).map_err(Trouble::Other)?;
            self.discard(name, path)?;
            return self.create(wanted, path).map(Some);
        }
        self.check_out(wanted, &within)?;
        Ok(Some(found(false)))
    }

    /// Removes a worktree with its content. If a folder is there afterwards, it is another one.
    fn discard(&self, name: &str, path: &Path) -> Result<(), Trouble> {
        let words = ["worktree", "remove", "--force", "--force", &word(path)];
        self.program.git(&words).map_err(Trouble::Other)?;
        let Some(known) = self.noted(name) else {
            return Ok(());
        };
        let noted = self.remember(
            name,
            &Remembered {
                checkout: None,
                ..known
            },
        );
        noted.map_err(|error| Trouble::Other(error.to_string()))
    }

    /// Creates a new worktree.
    fn create(&self, wanted: &Wanted<'_>, folder: &Path) -> Result<Prepared, Trouble> {
        let path = word(folder);
        let made = |has_earlier_work| {
            let checkout = self.program.checkout(folder).map_err(Trouble::Other)?;
            Ok(Prepared {
                checkout,
                has_earlier_work,
                is_new: true,
            })
        };
        if wanted.restores {
            let id = wanted.id.to_string();
            let said = self
                .program
                .run(wanted.actor, &["restore", &id, "--worktree", &path]);
            if said.exit == 0 {
                let made: Prepared = made(true)?;
                // If the branch has moved since, the restored work stays on its own commit.
                let _ = self.check_out(wanted, &self.program.within(&made.checkout));
                return Ok(made);
            }
        }
        let mut words = vec!["worktree", "add", "--quiet"];
        let start = self.start(wanted);
        match (wanted.detached, self.has_branch(wanted.branch)) {
            (true, _) => words.extend(["--detach", &path, &start]),
            (false, true) => words.extend([path.as_str(), wanted.branch]),
            (false, false) => words.extend(["--no-track", "-b", wanted.branch, &path, &start]),
        }
        let begins = format!("{start}^{{commit}}");
        let verifies = ["rev-parse", "--verify", "--quiet", &begins];
        if self.program.resolve(&start).is_none() && self.program.git(&verifies).is_err() {
            let why = format!("{start}, where its branch begins, names no commit here");
            return Err(Trouble::Other(why));
        }
        let added = self.program.git(&words).or_else(|error| {
            if !error.contains("already registered") {
                return Err(error);
            }
            // Somebody deleted the worktree's folder: remove git's entry.
            self.program
                .git(&["worktree", "remove", "--force", &path])?;
            self.program.git(&words)
        });
        let added = added.map(drop);
        added.or_else(|error| self.take_branch(&error, wanted, (&self.program, &words)))?;
        let made: Prepared = made(false)?;
        self.follow(wanted, &self.program.within(&made.checkout));
        Ok(made)
    }

    /// Checks out the wanted commit in a clean worktree.
    fn check_out(&self, wanted: &Wanted<'_>, within: &Program) -> Result<(), Trouble> {
        let start = self.start(wanted);
        if !wanted.detached && within.branch().as_deref() == Some(wanted.branch) {
            self.follow(wanted, within);
            return Ok(());
        }
        let words = match (wanted.detached, self.has_branch(wanted.branch)) {
            (true, _) => vec!["switch", "--quiet", "--detach", &start],
            (false, true) => vec!["switch", "--quiet", wanted.branch],
            (false, false) => vec![
                "switch",
                "--quiet",
                "--no-track",
                "-c",
                wanted.branch,
                &start,
            ],
        };
        let switched = within.git(&words).map(drop);
        switched.or_else(|error| self.take_branch(&error, wanted, (within, &words)))?;
        self.follow(wanted, within);
        Ok(())
    }

    /// Takes a branch that git says is checked out elsewhere: from this program's worktrees once
    /// they are unused, never from a person's.
    fn take_branch(
        &self,
        error: &str,
        wanted: &Wanted<'_>,
        (within, words): (&Program, &[&str]),
    ) -> Result<(), Trouble> {
        let phrases = ["already used by worktree at '", "already checked out at '"];
        let other = phrases.iter().find_map(|phrase| error.split_once(phrase));
        let Some(other) = other.and_then(|(_, after)| after.split('\'').next()) else {
            return Err(Trouble::Other(error.to_owned()));
        };
        let path = Path::new(other);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let known = self.remembered(&name);
        let known = known.filter(|known| known.path == path || is_same(&known.path, path));
        let Some(known) = known.and_then(|known| known.checkout) else {
            return Err(Trouble::CheckedOut(other.to_owned()));
        };
        let begun = Instant::now();
        // Usually another agent, which sent this work, is about to end.
        while begun.elapsed() < ENDING {
            if let Ok(Some(_lock)) = self.lock(&name) {
                self.let_go(&known).map_err(Trouble::Other)?;
                return within.git(words).map(drop).map_err(Trouble::Other);
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(Trouble::Other(format!(
            "branch {} is in use in {other}",
            wanted.branch
        )))
    }

    /// Detaches the HEAD of a worktree, without touching the folder, which may have been replaced.
    fn let_go(&self, checkout: &Checkout) -> Result<(), String> {
        let git_dir = word(&checkout.git_dir);
        let at = |words: &[&str]| {
            let all = [&["--git-dir", git_dir.as_str()], words].concat();
            self.program.git(&all)
        };
        let head = at(&["rev-parse", "--verify", "HEAD"])?;
        at(&["update-ref", "--no-deref", "HEAD", &head]).map(drop)
    }

    /// Moves the branch to the remote's commit, unless it has commits that the remote lacks.
    fn follow(&self, wanted: &Wanted<'_>, within: &Program) {
        let Some(remote) = wanted.remote.filter(|_| !wanted.detached) else {
            return;
        };
        let theirs = format!("refs/remotes/{remote}/{}", wanted.branch);
        let at = self.program.resolve(&theirs);
        if at.is_some()
            && at != within.resolve("HEAD")
            && within.branch().is_some()
            && within.has_none_of_its_own("HEAD", remote)
        {
            // If changed files are in the way, the branch stays.
            let _ = within.git(&["reset", "--quiet", "--keep", &theirs]);
        }
    }

    pub(super) fn has_branch(&self, branch: &str) -> bool {
        self.has_ref(&format!("refs/heads/{branch}"))
    }

    fn has_ref(&self, name: &str) -> bool {
        self.program.resolve(name).is_some()
    }

    /// The commit to start from: the local branch if it has commits that the remote lacks, else the
    /// remote's branch; for a new branch, the base.
    fn start(&self, wanted: &Wanted<'_>) -> String {
        let theirs = wanted.remote.and_then(|remote| {
            if wanted.brings_base {
                let branches = [wanted.branch, name_on(remote, wanted.base)];
                if self.fetch(remote, &branches).is_ok() {
                    return self.tracking(remote, wanted.branch);
                }
                // The remote lacks one of them, and git fetched neither.
                self.refresh(remote, wanted.base);
            }
            self.fetched(remote, wanted.branch)
        });
        let own = Some(format!("refs/heads/{}", wanted.branch));
        let own = own.filter(|_| self.has_branch(wanted.branch));
        match (own, theirs) {
            (Some(own), Some(theirs)) => {
                let remote = wanted.remote.unwrap_or_default();
                let has = |branch: &str| {
                    let sent = wanted
                        .sent
                        .map(|sent| ["rev-list", "--count", sent, "--not", branch]);
                    let lacks = sent.and_then(|words| self.program.git(&words).ok());
                    lacks.is_some_and(|lacks| lacks == "0")
                };
                // To read, prefer the branch with the sent commit: the local one may be another of
                // the same name.
                let is_other = wanted.detached && !has(&own) && has(&theirs);
                if is_other || self.program.has_none_of_its_own(&own, remote) {
                    theirs
                } else {
                    own
                }
            }
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => self.start_of(wanted.base, wanted.remote),
        }
    }

    /// A base's commit: the remote's newest, else the local one.
    fn start_of(&self, base: &str, remote: Option<&str>) -> String {
        if let Some(remote) = remote {
            self.refresh(remote, base);
        }
        self.known_start(base, remote)
    }

    /// A base's commit: the remote's as last seen, else the local one.
    pub(super) fn known_start(&self, base: &str, remote: Option<&str>) -> String {
        let theirs = remote.and_then(|remote| self.tracking(remote, name_on(remote, base)));
        theirs.unwrap_or_else(|| base.to_owned())
    }

    /// The default base of work: the remote's main branch, else the branch that the repository has
    /// checked out.
    pub(super) fn base(&self, remote: Option<&str>) -> String {
        let main = self.main(remote).or_else(|| self.program.branch());
        main.unwrap_or_else(|| "HEAD".to_owned())
    }

    /// The name of the remote's main branch, if known here.
    pub(super) fn main(&self, remote: Option<&str>) -> Option<String> {
        let remote = remote?;
        let main = Repository::open_here().ok()?.base_branch_on(remote)?;
        let is_here = || self.tracking(remote, &main);
        is_here().or_else(|| self.fetched(remote, &main))?;
        Some(format!("{remote}/{main}"))
    }

    /// Fetches a remote's branch.
    pub(super) fn refresh(&self, remote: &str, branch: &str) {
        // If the remote is unreachable, what was fetched before is used.
        let _ = self.fetch(remote, &[name_on(remote, branch)]);
    }

    /// The tracking ref of a remote's branch, fetched if possible; `None` if there is none.
    fn fetched(&self, remote: &str, branch: &str) -> Option<String> {
        let _ = self.fetch(remote, &[branch]);
        self.tracking(remote, branch)
    }

    /// The tracking ref of a remote's branch, if there is one.
    fn tracking(&self, remote: &str, branch: &str) -> Option<String> {
        Some(format!("refs/remotes/{remote}/{branch}")).filter(|tracking| self.has_ref(tracking))
    }

    /// Fetches a remote's branches into their tracking refs.
    fn fetch(&self, remote: &str, branches: &[&str]) -> Result<(), String> {
        let refspec = |branch| format!("+refs/heads/{branch}:refs/remotes/{remote}/{branch}");
        let refspecs: Vec<String> = branches.iter().map(refspec).collect();
        let mut words = vec!["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        words.extend(["--no-recurse-submodules", remote]);
        words.extend(refspecs.iter().map(String::as_str));
        self.program.git(&words).map(drop)
    }

    /// Whether runs created a branch for an issue.
    pub(super) fn made(&self, issue: &IssueKey, branch: &str) -> bool {
        let all = self.all();
        let mut own = all.iter().filter(|found| found.remembered.issue == *issue);
        own.any(|found| found.remembered.made.iter().any(|made| made == branch))
    }

    /// The branch on which a handoff was begun here.
    pub(super) fn begun_on(&self, id: &HandoffId) -> Option<String> {
        let all = self.all().into_iter();
        all.filter_map(|found| found.remembered.begun.get(id).cloned())
            .next_back()
    }

    /// The branches of work begun here, with their issues.
    pub(super) fn branches_begun(&self) -> BTreeSet<(IssueKey, String)> {
        let own = |found: Found| {
            let issue = found.remembered.issue;
            let branches = found.remembered.begun.into_values();
            branches.map(move |branch| (issue.clone(), branch))
        };
        self.all().into_iter().flat_map(own).collect()
    }

    /// The branches of the repository and of its remotes, with their whole names.
    pub(super) fn branches(&self) -> BTreeSet<String> {
        let all = self.program.refs(&["refs/heads/", "refs/remotes/"]);
        all.into_iter().collect()
    }

    /// Remembers the branch that a run left its worktree on, if the run created it: neither this
    /// clone nor a remote had a branch of that name.
    pub(super) fn note_made(
        &self,
        worktree: &Worktree,
        before: &BTreeSet<String>,
        remote: Option<&str>,
    ) {
        let Some(branch) = self.program.within(&worktree.checkout).branch() else {
            return;
        };
        let name = format!("refs/heads/{branch}");
        let end = format!("/{branch}");
        let is_remotes =
            |known: &String| known.starts_with("refs/remotes/") && known.ends_with(&end);
        if before.contains(&name) || before.iter().any(is_remotes) {
            return;
        }
        let is_there = |remote| {
            let found = self.program.git(&["ls-remote", "--heads", remote, &name]);
            !found.is_ok_and(|found| found.is_empty())
        };
        let known = self.remembered(&worktree.name);
        // If the remote has the branch, only a person can allow agents to write to it.
        if let (Some(mut known), false) = (known, remote.is_some_and(is_there)) {
            known.made.push(branch);
            let _ = self.remember(&worktree.name, &known);
        }
    }

    /// The names of the noted worktrees.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.notes).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| {
            let name = entry.file_name();
            Some(name.to_str()?.strip_suffix(".json")?.to_owned())
        };
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort();
        names
    }

    /// Every worktree that this program created here.
    pub(super) fn all(&self) -> Vec<Found> {
        let found = |name: String| {
            let remembered = self.remembered(&name)?;
            Some(Found { remembered, name })
        };
        self.names().into_iter().filter_map(found).collect()
    }

    /// Locks an unused worktree while the result is held.
    pub(super) fn free(&self, found: &Found) -> Option<File> {
        self.lock(&found.name).ok().flatten()
    }

    /// The unique work of a worktree, which removing it would lose.
    pub(super) fn loses(&self, checkout: &Checkout) -> Vec<String> {
        if let Err(why) = checkout.check() {
            return if checkout.path.exists() {
                vec![why]
            } else {
                Vec::new()
            };
        }
        let within = self.program.within(checkout);
        let mut loses = Vec::new();
        let words = [
            "status",
            "--porcelain",
            "--untracked-files=normal",
            "--ignore-submodules=dirty",
        ];
        match within.git(&words) {
            Ok(changed) if changed.is_empty() => {}
            Ok(changed) => loses.push(handoff_cli::output::counted(
                changed.lines().count(),
                "uncommitted file",
            )),
            Err(error) => loses.push(error),
        }
        if within.has_unreferenced_head() {
            loses.push("commits that no branch has".to_owned());
        }
        loses
    }

    /// Removes an unused worktree, with unique work only if `may_lose`.
    pub(super) fn remove(&self, found: &Found, may_lose: bool) -> Result<(), String> {
        let path = word(&found.remembered.path);
        let checkout = found.remembered.checkout.as_ref();
        if let Some(checkout) = checkout.filter(|checkout| checkout.path.exists()) {
            checkout.repair()?;
            let force: &[&str] = if may_lose { &["--force"] } else { &[] };
            let words = [&["worktree", "remove"], force, &[path.as_str()]].concat();
            self.program.git(&words)?;
        }
        let _ = fs::remove_file(self.notes.join(format!("{}.json", found.name)));
        let _ = fs::remove_file(self.notes.join(format!("{}.lock", found.name)));
        // The folder is removed with the last worktree.
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }

    /// Locks a worktree, waiting for others that examine or leave it.
    fn lock_soon(&self, name: &str, patience: Duration) -> std::io::Result<Option<File>> {
        let begun = Instant::now();
        loop {
            let lock = self.lock(name)?;
            if lock.is_some() || begun.elapsed() > patience {
                return Ok(lock);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn lock(&self, name: &str) -> std::io::Result<Option<File>> {
        locked(&self.notes.join(format!("{name}.lock")))
    }

    /// The note about a worktree. If its worker was killed before it noted the identity, the
    /// current one is taken: no agent has worked there yet.
    fn remembered(&self, name: &str) -> Option<Remembered> {
        let known = self.noted(name)?;
        if known.checkout.is_some() || is_empty(&known.path) {
            return Some(known);
        }
        let checkout = self.program.checkout(&known.path).ok();
        Some(Remembered { checkout, ..known })
    }

    fn noted(&self, name: &str) -> Option<Remembered> {
        let bytes = fs::read(self.notes.join(format!("{name}.json"))).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn remember(&self, name: &str, remembered: &Remembered) -> std::io::Result<()> {
        let note = self.notes.join(format!("{name}.json"));
        replace(&note, serde_json::to_string(remembered)?.as_bytes())
    }
}

impl Program {
    /// Whether HEAD is detached at a commit that no branch or tag contains.
    pub(super) fn has_unreferenced_head(&self) -> bool {
        // A checked-out branch contains it. Usually a branch is at it, which takes no process to
        // see.
        if self.branch().is_some() || self.resolve("HEAD").is_some_and(|head| self.is_tip(&head)) {
            return false;
        }
        let mut words = vec!["for-each-ref", "--contains", "HEAD", "--count=1"];
        words.extend(["refs/heads", "refs/remotes", "refs/tags"]);
        self.git(&words).is_ok_and(|holders| holders.is_empty())
    }

    /// Whether every commit of a branch is known to be on a remote.
    pub(super) fn has_none_of_its_own(&self, branch: &str, remote: &str) -> bool {
        let name = match branch {
            "HEAD" => self.branch(),
            _ => branch.strip_prefix("refs/heads/").map(str::to_owned),
        };
        let theirs = name.and_then(|name| self.resolve(&format!("refs/remotes/{remote}/{name}")));
        if theirs.is_some() && theirs == self.resolve(branch) {
            return true;
        }
        let remotes = format!("--remotes={remote}");
        let count = self.git(&["rev-list", "--count", branch, "--not", &remotes]);
        count.is_ok_and(|count| count == "0")
    }
}

/// Rebuilds the index from HEAD without file stats, so that git compares every file's content.
fn renew_index(checkout: &Checkout, within: &Program) -> Result<(), String> {
    match fs::remove_file(checkout.git_dir.join("index")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
        _ => within.git(&["read-tree", "HEAD"]).map(drop),
    }
}

/// A branch's name on a remote, of which it may be named as a branch.
fn name_on<'a>(remote: &str, branch: &'a str) -> &'a str {
    let place = branch.strip_prefix(remote);
    place
        .and_then(|rest| rest.strip_prefix('/'))
        .unwrap_or(branch)
}

/// Whether two paths lead to one folder.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(one).is_some() && real(one) == real(other)
}

/// Whether a path does not exist, or is an empty folder.
fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).map_or(!path.exists(), |mut entries| entries.next().is_none())
}

/// Whether a worktree is complete. The caller holds its lock, so nobody is creating or removing it.
fn is_whole(checkout: &Checkout) -> bool {
    let reason = fs::read_to_string(checkout.git_dir.join("locked")).unwrap_or_default();
    ![ADDING, RESTORING, REMOVING].contains(&reason.trim())
}
