//! Compares two commits by the change that each brings to the base branch. `git` runs in a
//! temporary repository that borrows this one's objects, without the user's settings, attributes,
//! drivers, replacements and grafts. Missing objects are fetched into it, and deleted with it.
//! Nothing in the user's repository changes.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use handoff_base::{ObjectFormat, ObjectId, short_id};
use tempfile::TempDir;

use crate::error::GitError;
use crate::process::{self, Ended, git_alone};
use crate::remote::FETCHING;
use crate::repository::Repository;

/// The time limit of one git call, including what it fetches.
const PATIENCE: Duration = Duration::from_secs(120);

/// The maximum number of commits replayed.
const MOST_REPLAYED: usize = 300;

/// Environment variables of the user that could affect the result.
const OF_THE_USER: [&str; 14] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXTERNAL_DIFF",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_DEFAULT_HASH",
];

/// The empty tree, which has no attributes, by object format.
const EMPTY_TREE: [&str; 2] = [
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
];

/// A temporary object store for comparing commits.
pub struct CodeStore {
    git_dir: PathBuf,
    directory: PathBuf,
    /// The user's object folder, which it borrows from.
    objects: PathBuf,
    /// The temporary repository for fetched and computed objects.
    own: TempDir,
    /// The remote to fetch missing objects from, and whether it is a configured one.
    remote: Option<(String, bool)>,
    empty_tree: &'static str,
    base: Option<ObjectId>,
    is_shallow: bool,
}

impl CodeStore {
    /// Creates a store that fetches from this remote, if there is one. The base known in this clone
    /// is the fallback for the remote's default branch.
    ///
    /// # Errors
    /// [`GitError`] if the folder for temporary files can't be written.
    pub fn new(repository: &Repository, remote: Option<&str>) -> Result<Self, GitError> {
        let is_named = |name: &str| repository.config(&format!("remote.{name}.url")).is_some();
        let base = repository.base_branch();
        let base = base.and_then(|branch| repository.base_code(&branch).ok()?);
        let git_dir = repository.path().to_owned();
        let own = tempfile::tempdir().map_err(|error| GitError::of_system(&error.to_string()))?;
        Repository::create_scratch(own.path(), repository.format())?;
        Ok(Self {
            directory: repository.workdir().unwrap_or(&git_dir).to_owned(),
            objects: repository.common_dir().join("objects"),
            own,
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

    /// The commit of the base branch: the remote's default branch, else the base known in this
    /// clone.
    ///
    /// # Errors
    /// A message that says what is missing.
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

    /// The commit of a base branch: the remote's, else `here`.
    ///
    /// # Errors
    /// A message that says what is missing.
    pub fn branch(&self, name: &str, here: Option<ObjectId>) -> Result<ObjectId, String> {
        let full = format!("refs/heads/{name}");
        let listed = self.remote_refs(&full);
        let mut listed = listed.iter().flatten();
        let there = listed.find(|(found, _)| *found == full).map(|(_, id)| *id);
        let unknown = || format!("the base branch {name} is not known here");
        there.or(here).ok_or_else(unknown)
    }

    /// Fetches the missing ones among these commits, with history but without blobs.
    ///
    /// # Errors
    /// A message that says what is missing.
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

    /// Checks that two commits bring exactly the same change to the base: the first, merged cleanly
    /// with the second one's base, gives the second one's tree.
    ///
    /// # Errors
    /// A message that says how they differ, or what is missing.
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
            // Already merged: there is no change to compare, so the trees must be equal.
            let same = self.tree(approved)? == tree;
            let other = || format!("commit {} is on the base branch already", head.short());
            return if same { Ok(()) } else { Err(other()) };
        }
        let before = self.fork(base, approved)?;
        if before == approved {
            let short = approved.short();
            return Err(format!("commit {short} is on the base branch already"));
        }
        let merged = self.merged(before, fork, approved)?;
        if merged.as_deref() != Some(&*tree) {
            return Err(self.what_differs(base, approved, head)?);
        }
        if self.is_replayed(base, head)? {
            return Ok(());
        }
        Err(undone_by_rebase(head))
    }

    /// Whether a merge by rebase gives the commit's tree, too: it drops merge commits, with
    /// whatever they changed. True if every way to rebase conflicts (onto the fork point, or onto
    /// the base with or without the commits that it has already). False if there are too many
    /// commits to replay.
    ///
    /// # Errors
    /// A message that says what is missing.
    pub fn is_replayed(&self, base: ObjectId, head: ObjectId) -> Result<bool, String> {
        self.ensure(&[base, head])?;
        let range = format!("{base}...{head}");
        let listed = |kinds: &[&str]| {
            let order = ["--topo-order", "--reverse", "--parents", "--right-only"];
            let words = [&order, kinds, &[&range]].concat();
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            let ended = self.compared("rev-list", &words)?;
            if ended.status.success() {
                Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
            } else {
                Err(ended.complaint())
            }
        };
        if listed(&["--merges"])?.is_empty() {
            return Ok(true);
        }
        let own = listed(&["--no-merges"])?;
        let has_parent = |line: &str| line.contains(' ');
        if own.lines().count() > MOST_REPLAYED || !own.lines().all(has_parent) {
            return Ok(false);
        }
        let fork = self.fork(base, head)?;
        if let Some(tree) = self.replayed(fork, &own)? {
            return Ok(tree == self.tree(head)?);
        }
        let merged = self.merged(fork, base, head)?;
        let new = listed(&["--no-merges", "--cherry-pick"])?;
        for commits in [own, new] {
            let tree = self.replayed(base, &commits)?;
            if tree.is_some() && tree != merged {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Replays commits, listed with their parents, onto another one and returns the resulting tree;
    /// `None` on a conflict.
    fn replayed(&self, onto: ObjectId, commits: &str) -> Result<Option<String>, String> {
        let id = |text: &str| text.parse::<ObjectId>().map_err(|error| error.to_string());
        let mut tip = onto;
        for line in commits.lines() {
            let (commit, parent) = line.split_once(' ').unwrap_or_default();
            let Some(tree) = self.merged(id(parent)?, tip, id(commit)?)? else {
                return Ok(None);
            };
            tip = self.committed(&tree, tip)?;
        }
        self.tree(tip).map(Some)
    }

    /// Commits a tree, to be merged.
    fn committed(&self, tree: &str, parent: ObjectId) -> Result<ObjectId, String> {
        let mut command = self.alone("commit-tree");
        command.args(["-m", "merged", "-p", &parent.to_string(), tree]);
        let id = self.done(&mut command)?;
        id.trim().parse().map_err(|error| format!("{error}"))
    }

    /// The tree of a clean merge of two commits with this merge base, an ancestor of `theirs`;
    /// `None` on a conflict.
    fn merged(
        &self,
        ancestor: ObjectId,
        ours: ObjectId,
        theirs: ObjectId,
    ) -> Result<Option<String>, String> {
        // Git 2.39 can't be told a merge base: give it one that it finds.
        let ours = self.committed(&self.tree(ours)?, ancestor)?;
        let mut words = vec!["--write-tree".to_owned(), "--no-messages".to_owned()];
        words.extend([
            "--name-only".to_owned(),
            ours.to_string(),
            theirs.to_string(),
        ]);
        let ended = self.compared("merge-tree", &words)?;
        match ended.status.code() {
            Some(0) => {
                let output = String::from_utf8_lossy(&ended.stdout);
                Ok(Some(output.trim().to_owned()))
            }
            Some(1) => Ok(None),
            _ => Err(format!("git can't merge them: {}", ended.complaint())),
        }
    }

    /// Runs a git command that reads files; if it fails, fetches missing ones and runs it again.
    fn compared(&self, verb: &str, words: &[String]) -> Result<Ended, String> {
        let ended = self.run(self.alone(verb).args(words))?;
        let is_answer = matches!(ended.status.code(), Some(0 | 1));
        if is_answer || self.remote.is_none() {
            return Ok(ended);
        }
        // Run only to fetch what it reads: its output may depend on the user's settings.
        self.run(self.git(verb, true).args(words))?;
        self.run(self.alone(verb).args(words))
    }

    /// Whether a commit changes only files whose paths satisfy `accepts`, since its fork point, and
    /// a merge by rebase gives the same tree. Links and submodules never satisfy it.
    ///
    /// # Errors
    /// A message that says what is missing.
    pub fn changes_only(
        &self,
        base: ObjectId,
        head: ObjectId,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<bool, String> {
        self.ensure(&[base, head])?;
        let fork = self.fork(base, head)?;
        let options = [
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--ignore-submodules=none",
        ];
        let mut words = options.map(str::to_owned).to_vec();
        words.extend([fork.to_string(), head.to_string()]);
        let ended = self.compared("diff-tree", &words)?;
        if !ended.status.success() {
            return Err(format!("git can't compare them: {}", ended.complaint()));
        }
        let output = String::from_utf8_lossy(&ended.stdout);
        let mut parts = output.split_terminator('\0');
        let is_file = |mode: &str| mode.starts_with("100") || mode == "000000";
        while let (Some(change), Some(path)) = (parts.next(), parts.next()) {
            let mut modes = change.trim_start_matches(':').split(' ').take(2);
            if !modes.all(is_file) || !accepts(path) {
                return Ok(false);
            }
        }
        self.is_replayed(base, head)
    }

    /// Whether a commit is an ancestor of another.
    ///
    /// # Errors
    /// A message that says what is missing.
    pub fn contains(&self, tip: ObjectId, commit: ObjectId) -> Result<bool, String> {
        self.ensure(&[tip, commit])?;
        let mut command = self.alone("merge-base");
        command.args(["--is-ancestor", &commit.to_string(), &tip.to_string()]);
        self.answer(&mut command)
    }

    /// The remote's refs that match a pattern, with their commits.
    ///
    /// # Errors
    /// A message that says why they can't be listed.
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

    /// How another commit differs from the approved one, as a sentence that names the responsible
    /// commit.
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
            let mut command = self.alone("rev-list");
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

    fn fork(&self, base: ObjectId, commit: ObjectId) -> Result<ObjectId, String> {
        let mut command = self.alone("merge-base");
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
        let mut command = self.alone("rev-list");
        command.args(["--no-walk", "--no-commit-header", "--format=%T"]);
        let printed = self.done(command.arg(commit.to_string()))?;
        Ok(printed.trim().to_owned())
    }

    fn has(&self, commit: ObjectId) -> bool {
        let mut command = self.alone("cat-file");
        command.args(["-e", &format!("{commit}^{{commit}}")]);
        self.done(&mut command).is_ok()
    }

    /// The git command in the user's repository; `completes` lets it fetch missing objects.
    fn git(&self, verb: &str, completes: bool) -> Command {
        let mut command = git_alone(&self.git_dir, None);
        command.args(["-c", "maintenance.auto=false"]);
        if let Some((name, true)) = self.remote.as_ref().filter(|(name, _)| !name.contains('=')) {
            // The filter applies to this call only; it is not stored as the remote's.
            command.args(["-c", &format!("remote.{name}.promisor={completes}")]);
            command.args(["-c", &format!("remote.{name}.partialCloneFilter=tree:0")]);
        }
        command.arg(verb).current_dir(&self.directory);
        if let Some((name, _)) = &self.remote {
            command.args(process::pinned_pack(verb, name));
        }
        command.env("GIT_OBJECT_DIRECTORY", self.own.path().join("objects"));
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.objects);
        command.env("LC_ALL", "C").env_remove("LANGUAGE");
        command.env("GIT_TERMINAL_PROMPT", "0");
        command
    }

    /// The git command in the temporary repository, where only objects matter.
    fn alone(&self, verb: &str) -> Command {
        let mut command = git_alone(self.own.path(), None);
        for setting in ["core.attributesFile=/dev/null", "core.commitGraph=false"] {
            command.args(["-c", setting]);
        }
        command.args([
            "-c",
            "user.name=gate",
            "-c",
            "user.email=gate@handoff.invalid",
        ]);
        command.arg(verb).current_dir(self.own.path());
        for name in OF_THE_USER {
            command.env_remove(name);
        }
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1");
        for when in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            command.env(when, "@0 +0000");
        }
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.objects);
        // Attributes in a commit's files must not affect a merge.
        command.env("GIT_ATTR_SOURCE", self.empty_tree);
        command.env("LC_ALL", "C").env_remove("LANGUAGE");
        command
    }

    fn run(&self, command: &mut Command) -> Result<Ended, String> {
        process::ensure_addresses(&self.git_dir)?;
        let command = std::mem::replace(command, Command::new("git"));
        let ended = process::run_until(Some(Instant::now() + PATIENCE), command, None);
        ended.map_err(|error| error.to_string())
    }

    /// Whether a git command answers yes, by its exit code.
    fn answer(&self, command: &mut Command) -> Result<bool, String> {
        let ended = self.run(command)?;
        match ended.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(ended.complaint()),
        }
    }

    /// The output of a git command.
    fn done(&self, command: &mut Command) -> Result<String, String> {
        let ended = self.run(command)?;
        if ended.status.success() {
            Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
        } else {
            Err(ended.complaint())
        }
    }
}

/// The message about a commit whose tree changes when a rebase drops its merges.
pub fn undone_by_rebase(head: ObjectId) -> String {
    format!(
        "a rebase merge would drop a merge commit of {} and change files",
        head.short()
    )
}
