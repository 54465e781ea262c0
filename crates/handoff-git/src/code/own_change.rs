//! Whether two commits bring the same change to the base branch. `git` compares them, in a store of
//! its own next to this repository's objects: what is missing here is fetched into that store, and
//! goes with it. No ref, file or setting of the repository changes.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use handoff_base::{ObjectFormat, ObjectId, short_id};
use tempfile::TempDir;

use crate::process::{self, Ended, git_alone};
use crate::remote::FETCHING;
use crate::repository::Repository;

/// How long one call of git may take, with what it fetches.
const PATIENCE: Duration = Duration::from_secs(120);

/// The tree without entries, whose attributes are none.
const EMPTY_TREE: [&str; 2] = [
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
];

/// Commits of the code, compared.
pub struct CodeStore {
    git_dir: PathBuf,
    directory: PathBuf,
    /// The objects of the repository.
    objects: PathBuf,
    /// What is fetched and computed.
    own: TempDir,
    /// Where to fetch what is missing, and whether that is a configured remote.
    remote: Option<(String, bool)>,
    empty_tree: &'static str,
    base: Option<ObjectId>,
    is_shallow: bool,
}

impl CodeStore {
    /// A store for the repository, which fetches from this remote, if there is one. Where the remote
    /// does not say what its default branch is, this is the base: the one that is known here.
    ///
    /// # Errors
    /// Any I/O error of the folder for temporary files.
    pub fn new(repository: &Repository, remote: Option<&str>) -> std::io::Result<Self> {
        let is_named = |name: &str| repository.config(&format!("remote.{name}.url")).is_some();
        let base = repository.base_branch();
        let base = base.and_then(|branch| repository.base_code(&branch).ok()?);
        let git_dir = repository.path().to_owned();
        Ok(Self {
            directory: repository.workdir().unwrap_or(&git_dir).to_owned(),
            objects: repository.common_dir().join("objects"),
            own: tempfile::tempdir()?,
            remote: remote.map(|name| (name.to_owned(), is_named(name))),
            empty_tree: match repository.format() {
                ObjectFormat::Sha256 => EMPTY_TREE[1],
                _ => EMPTY_TREE[0],
            },
            base: base.and_then(|base| base.commit.parse().ok()),
            is_shallow: repository.is_shallow(),
            git_dir,
        })
    }

    /// The commit of the base branch: the remote's default branch, else the base that is known here.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn base(&self) -> Result<ObjectId, String> {
        let listed = match &self.remote {
            Some((name, _)) => self.done(
                self.git("ls-remote", false)
                    .args(["--quiet", "--", name, "HEAD"]),
            ),
            None => Err(String::new()),
        };
        let of_remote = |listed: &str| listed.split_whitespace().next()?.parse().ok();
        let found = listed.as_deref().ok().and_then(of_remote).or(self.base);
        found.ok_or_else(|| match listed {
            Err(why) if !why.is_empty() => format!("the base branch is not known: {why}"),
            _ => "the base branch is not known here".to_owned(),
        })
    }

    /// Fetches those of these commits that are missing, with their history, but without files.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn ensure(&self, commits: &[ObjectId]) -> Result<(), String> {
        if self.is_shallow {
            return Err("the history is cut off here: `git fetch --unshallow`".to_owned());
        }
        let missing: Vec<String> = commits
            .iter()
            .filter(|id| !self.has(**id))
            .map(ObjectId::to_string)
            .collect();
        let Some(first) = missing.first() else {
            return Ok(());
        };
        let not_here = |why: &str| Err(format!("commit {} is not here{why}", short_id(first)));
        let Some((name, _)) = &self.remote else {
            return not_here("");
        };
        let mut command = self.git("fetch", true);
        command.args(FETCHING).args(["--quiet", "--", name]);
        match self.done(command.args(&missing)) {
            Ok(_) => Ok(()),
            Err(why) => not_here(&format!(", and can't be fetched: {why}")),
        }
    }

    /// Whether what a commit adds to the base is what another one adds, exactly: merged cleanly with
    /// the base that the second one has, the first gives the second one's files.
    ///
    /// # Errors
    /// Why not, or what is missing to tell, in words.
    pub fn ensure_same_change(
        &self,
        base: ObjectId,
        approved: ObjectId,
        head: ObjectId,
    ) -> Result<(), String> {
        self.ensure(&[base, approved, head])?;
        let tree = self.tree(head)?;
        let fork = self.fork(base, head)?;
        if fork == head {
            // Nothing is left to merge; only the same files are what was approved.
            let same = self.tree(approved)? == tree;
            let other = || format!("commit {} is on the base branch already", head.short());
            return if same { Ok(()) } else { Err(other()) };
        }
        let before = self.fork(base, approved)?;
        if before == approved {
            let short = approved.short();
            return Err(format!("commit {short} is on the base branch already"));
        }
        let mut command = self.git("merge-tree", true);
        command.args(["--write-tree", "--no-messages", "--name-only"]);
        command.arg(format!("--merge-base={before}"));
        let ended = self.run(command.args([fork.to_string(), approved.to_string()]))?;
        let output = String::from_utf8_lossy(&ended.stdout);
        match ended.status.code() {
            Some(0) if output.trim() == tree => Ok(()),
            Some(0 | 1) => Err(self.what_differs(base, approved, head)?),
            _ => Err(format!("git can't merge them: {}", ended.complaint())),
        }
    }

    /// Whether a commit changes nothing since it left the base but the paths that one of these
    /// patterns matches, in which `**` stands for any folders.
    ///
    /// # Errors
    /// What is missing to tell, in words.
    pub fn changes_only(
        &self,
        base: ObjectId,
        head: ObjectId,
        patterns: &[String],
    ) -> Result<bool, String> {
        self.ensure(&[base, head])?;
        let fork = self.fork(base, head)?;
        let mut command = self.git("diff-tree", true);
        command.args(["-r", "--quiet", "--no-renames", "--no-ext-diff"]);
        command.args([fork.to_string(), head.to_string()]).arg("--");
        for pattern in patterns {
            command.arg(format!(":(top,exclude,glob){pattern}"));
        }
        let same = self.answer(&mut command);
        same.map_err(|complaint| format!("git can't compare them: {complaint}"))
    }

    /// Whether a commit is in the history of another.
    ///
    /// # Errors
    /// What is missing to tell, in words.
    pub fn contains(&self, tip: ObjectId, commit: ObjectId) -> Result<bool, String> {
        self.ensure(&[tip, commit])?;
        let mut command = self.git("merge-base", false);
        command.args(["--is-ancestor", &commit.to_string(), &tip.to_string()]);
        self.answer(&mut command)
    }

    /// The refs of the remote that a pattern matches, with their commits.
    ///
    /// # Errors
    /// Why they can't be listed, in words.
    pub fn remote_refs(&self, pattern: &str) -> Result<Vec<(String, ObjectId)>, String> {
        let Some((name, _)) = &self.remote else {
            return Err("the ledger has no remote".to_owned());
        };
        let mut command = self.git("ls-remote", false);
        let listed = self.done(command.args(["--quiet", "--", name, pattern]))?;
        let parts = listed.lines().filter_map(|line| line.split_once('\t'));
        Ok(parts
            .filter_map(|(id, name)| Some((name.to_owned(), id.parse().ok()?)))
            .collect())
    }

    /// In what another commit differs from the approved one: the commit that did it, in words.
    fn what_differs(
        &self,
        base: ObjectId,
        approved: ObjectId,
        head: ObjectId,
    ) -> Result<String, String> {
        let short = head.short();
        if !self.contains(head, approved)? {
            return Ok(format!("commit {short} does not bring the same changes"));
        }
        let added = |merges: &str| {
            let mut command = self.git("rev-list", false);
            command.args(["--topo-order", "--abbrev-commit", "--abbrev=10", merges]);
            command.args([head.to_string(), format!("^{approved}"), format!("^{base}")]);
            self.done(&mut command)
        };
        let own = added("--no-merges")?;
        let more = own.lines().count().saturating_sub(1);
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if let Some(oldest) = own.lines().last() {
            return Ok(format!("commit {oldest}{more} came after it"));
        }
        let merges = added("--merges")?;
        let merge = merges.lines().next().unwrap_or(&short);
        Ok(format!("the merge {merge} changes more than it merges"))
    }

    /// The commit at which another one left the base branch.
    fn fork(&self, base: ObjectId, commit: ObjectId) -> Result<ObjectId, String> {
        let mut command = self.git("merge-base", false);
        command.args(["--all", &base.to_string(), &commit.to_string()]);
        let ended = self.run(&mut command)?;
        let found = String::from_utf8_lossy(&ended.stdout);
        let mut found = found.lines();
        match (found.next().map(str::parse), found.next()) {
            (Some(Ok(fork)), None) => Ok(fork),
            (Some(_), Some(_)) => Err(format!(
                "commit {} and the base branch were merged crosswise, so that its own changes are not known",
                commit.short()
            )),
            _ if matches!(ended.status.code(), Some(0 | 1)) => Err(format!(
                "commit {} and the base branch have no commit in common",
                commit.short()
            )),
            _ => Err(ended.complaint()),
        }
    }

    fn tree(&self, commit: ObjectId) -> Result<String, String> {
        let mut command = self.git("rev-list", false);
        command.args(["--no-walk", "--no-commit-header", "--format=%T"]);
        let printed = self.done(command.arg(commit.to_string()))?;
        Ok(printed.trim().to_owned())
    }

    fn has(&self, commit: ObjectId) -> bool {
        let mut command = self.git("cat-file", false);
        command.args(["-e", &format!("{commit}^{{commit}}")]);
        self.done(&mut command).is_ok()
    }

    /// The git command; `completes` fetches what it reads and lacks.
    fn git(&self, verb: &str, completes: bool) -> Command {
        let mut command = git_alone(&self.git_dir, None);
        command.args(["-c", "maintenance.auto=false"]);
        if let Some((name, true)) = self.remote.as_ref().filter(|(name, _)| !name.contains('=')) {
            // The filter is of this call, and not kept as the remote's.
            command.args(["-c", &format!("remote.{name}.promisor={completes}")]);
            command.args(["-c", &format!("remote.{name}.partialCloneFilter=tree:0")]);
        }
        command.arg(verb).current_dir(&self.directory);
        command.env("GIT_OBJECT_DIRECTORY", self.own.path());
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.objects);
        // What a merge does is not for the files of a commit to say.
        command.env("GIT_ATTR_SOURCE", self.empty_tree);
        command.env("LC_ALL", "C").env_remove("LANGUAGE");
        command.env("GIT_TERMINAL_PROMPT", "0");
        command
    }

    fn run(&self, command: &mut Command) -> Result<Ended, String> {
        let command = std::mem::replace(command, Command::new("git"));
        let ended = process::run_until(Some(Instant::now() + PATIENCE), command, None);
        ended.map_err(|error| error.to_string())
    }

    /// Whether git says yes.
    fn answer(&self, command: &mut Command) -> Result<bool, String> {
        let ended = self.run(command)?;
        match ended.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(ended.complaint()),
        }
    }

    /// What git prints.
    fn done(&self, command: &mut Command) -> Result<String, String> {
        let ended = self.run(command)?;
        if ended.status.success() {
            Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
        } else {
            Err(ended.complaint())
        }
    }
}
