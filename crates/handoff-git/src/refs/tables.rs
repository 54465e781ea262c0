//! Reftables, which libgit2 does not support: it would write a loose file that git never reads. All
//! access goes through git, with its locks, compaction and logs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use git2::{ErrorClass, ErrorCode};
use handoff_base::ObjectId;

use super::LOGGED;
use super::git_command::{self, git, run, update_ref};
use crate::error::{GitError, PublishError};
use crate::process::Ended;
use crate::repository::Repository;
use crate::repository::{RefStore, RefUpdate, Target};

/// The folder of the tables.
const FOLDER: &str = "reftable";

/// The list of tables, which every ref update rewrites; below, its lock.
const LIST: &str = "reftable/tables.list";
const LOCK: &str = "reftable/tables.list.lock";

/// How often the list is read again if a listed table is gone, because git compacts meanwhile.
const READS: usize = 100;

/// How long an update is retried while another process updates any ref. Callers may retry for
/// longer.
const PATIENCE: Duration = Duration::from_millis(300);

/// How often it is retried if nothing shows why git refused: the lock may be free already.
const UNEXPLAINED: u32 = 10;

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Refs in reftables, with a cache of what git read.
#[derive(Default)]
pub(super) struct RefTables {
    known: RefCell<Known>,
}

/// Cached refs, valid as long as the lists of tables are unchanged.
#[derive(Default)]
struct Known {
    lists: Vec<u8>,
    refs: BTreeMap<String, Option<Target>>,
}

impl RefTables {
    /// Syncs the tables to disk, if writes are synced: git 2.47 writes a table's footer after it
    /// has synced the rest.
    fn write_through(&self, repository: &Repository) -> Result<(), GitError> {
        if repository.durable_refs.is_none() {
            return Ok(());
        }
        let folder = repository.common_dir().join(FOLDER);
        let sync = |path: &Path| fs::File::open(path).and_then(|file| file.sync_all());
        let sync_all = || {
            let names = fs::read_to_string(repository.common_dir().join(LIST))?;
            names.lines().try_for_each(|name| sync(&folder.join(name)))
        };
        let try_once = |_| match sync_all() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                thread::sleep(Duration::from_millis(1));
                None
            }
            done => Some(done),
        };
        let written = (0..READS).find_map(try_once).unwrap_or_else(sync_all);
        let written = written.and_then(|()| sync(&folder));
        written.map_err(|error| {
            GitError::of_system(&format!("{FOLDER} cannot be written through: {error}"))
        })
    }
}

impl RefStore for RefTables {
    fn read(&self, repository: &Repository, refname: &str) -> Result<Option<Target>, GitError> {
        let lists = lists(repository)?;
        let mut known = self.known.borrow_mut();
        if known.lists != lists {
            *known = Known {
                lists,
                refs: BTreeMap::new(),
            };
        }
        if let Some(target) = known.refs.get(refname) {
            return Ok(target.clone());
        }
        let target = read(repository, refname)?;
        known.refs.insert(refname.to_owned(), target.clone());
        Ok(target)
    }

    fn list(
        &self,
        repository: &Repository,
        prefix: &str,
    ) -> Result<Vec<(String, Target)>, GitError> {
        lists(repository)?;
        let found = list(repository, prefix)?;
        if found.is_empty() {
            // git lists nothing if it can't read a table.
            self.read(repository, "HEAD")?;
        }
        Ok(found)
    }

    fn update(&self, repository: &Repository, update: &RefUpdate<'_>) -> Result<(), PublishError> {
        let lock = repository.common_dir().join(LOCK);
        let start = Instant::now();
        let mut unexplained = 0;
        loop {
            let ended = update_ref(repository, update)?;
            if ended.is_of_old_git() {
                return Err(GitError::of_git(&ended).into());
            }
            if ended.status.success() {
                self.write_through(repository)?;
                return Ok(());
            }
            let now = self.read(repository, update.refname)?;
            // git also fails if it updated the ref but could not compact the tables. Another
            // process may have made the same commit: then git found the ref elsewhere.
            let is_elsewhere = ended.complaint().contains("cannot lock ref '");
            if now == update.to.map(Target::Id) && !is_elsewhere {
                self.write_through(repository)?;
                return Ok(());
            }
            if now != update.from.map(Target::Id) {
                return Err(PublishError::Moved);
            }
            // A concurrent `git gc` may have removed unreachable objects.
            repository.put_back_lost()?;
            if !lock.exists() {
                unexplained += 1;
            } else if start.elapsed() > PATIENCE {
                return Err(PublishError::Locked(lock));
            }
            if unexplained == UNEXPLAINED {
                return Err(
                    GitError::of_system(&format!("git says: {}", ended.complaint())).into(),
                );
            }
            thread::sleep(PAUSE);
        }
    }

    fn discardable(&self, repository: &Repository, folder: &str) -> io::Result<Vec<String>> {
        let found = self.list(repository, &format!("{folder}/"));
        let found = found.map_err(io::Error::other)?;
        Ok(found.into_iter().map(|(refname, _)| refname).collect())
    }

    fn discard(&self, repository: &Repository, refname: &str) -> Result<(), PublishError> {
        match self.read(repository, refname)? {
            Some(Target::Id(at)) => repository.delete_ref(refname, at),
            Some(Target::Symbolic(_)) | None => Ok(()),
        }
    }

    /// git prints the existing entries, and fails at the first one beyond them.
    fn logged(&self, repository: &Repository, refname: &str) -> Vec<ObjectId> {
        let mut command = git(repository, repository.path());
        command.arg("rev-parse");
        command.args((0..LOGGED).map(|at| format!("{refname}@{{{at}}}")));
        let printed = run(command, None).map(|ended| ended.stdout);
        let printed = String::from_utf8_lossy(&printed.unwrap_or_default()).into_owned();
        let values = printed.lines().map_while(|line| line.parse().ok());
        values.collect()
    }

    fn forget_logged(
        &self,
        repository: &Repository,
        refname: &str,
        lost: &[ObjectId],
    ) -> io::Result<()> {
        let logged = self.logged(repository, refname);
        // The oldest first: deleting one shifts the later ones.
        let gone = logged.iter().enumerate().rev();
        let gone = gone.filter(|(_, id)| lost.contains(id));
        let entries = gone.map(|(at, _)| format!("{refname}@{{{at}}}"));
        for entry in entries {
            let mut command = git(repository, repository.path());
            command.args(["reflog", "delete", "--rewrite", &entry]);
            let ended = run(command, None).map_err(io::Error::other)?;
            if !ended.status.success() {
                return Err(io::Error::other(ended.complaint()));
            }
        }
        Ok(())
    }

    /// Does nothing: the lock does not name its holder, which may be on another machine or in
    /// another container.
    fn remove_abandoned_lock(&self, _: &Repository, _: &str, _: &str) {}

    fn checked_out_at(&self, repository: &Repository, refname: &str) -> Option<PathBuf> {
        let mut command = git(repository, repository.path());
        command.args(["worktree", "list", "--porcelain", "-z"]);
        let printed = command.output().ok()?.stdout;
        let branch = format!("branch {refname}");
        if !printed
            .split(|&b| b == 0)
            .any(|line| line == branch.as_bytes())
        {
            return None;
        }
        // Finds the worktree even where git does not know its path.
        repository.worktree_where(|git_dir| {
            let mut command = git(repository, git_dir);
            command.args(["symbolic-ref", "-q", "HEAD"]);
            let asked = run(command, None);
            asked.is_ok_and(|asked| printed_by(&asked) == refname)
        })
    }

    fn start_head(
        &self,
        repository: &Repository,
        git_dir: &Path,
        head: &Target,
    ) -> Result<(), GitError> {
        // For programs without reftable support, HEAD dangles, as git writes it.
        let files = [
            ("HEAD", "ref: refs/heads/.invalid\n"),
            ("refs/heads", "this repository uses the reftable format\n"),
        ];
        let made = ["reftable", "refs"].map(|name| fs::create_dir_all(git_dir.join(name)));
        let made = made.into_iter().collect::<io::Result<()>>();
        let made = files.iter().fold(made, |made, (name, text)| {
            made.and_then(|()| fs::write(git_dir.join(name), text))
        });
        made.map_err(|error| GitError::unwritable(git_dir, &error))?;
        let mut command = git(repository, git_dir);
        match head {
            Target::Id(id) => command.args(["update-ref", "--no-deref", "HEAD", &id.to_string()]),
            Target::Symbolic(name) => command.args(["symbolic-ref", "HEAD", name]),
        };
        let ended = run(command, None)?;
        if ended.status.success() {
            Ok(())
        } else {
            Err(GitError::of_git(&ended))
        }
    }

    fn is_gits_alone(&self) -> bool {
        true
    }

    fn watched(&self, _: &str) -> PathBuf {
        LIST.into()
    }
}

/// The lists of the repository's and the worktree's tables.
fn lists(repository: &Repository) -> Result<Vec<u8>, GitError> {
    let [shared, own] = [repository.common_dir(), repository.path()].map(|dir| dir.join(LIST));
    let mut lists = match fs::read(&shared) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(|error| {
            GitError::of_system(&format!("{} cannot be read: {error}", shared.display()))
        })?,
    };
    // git treats an empty list as absent, as before a new repository has a HEAD.
    let is_new = || {
        let tables = fs::read_dir(repository.common_dir().join(FOLDER));
        tables.is_ok_and(|mut tables| !tables.any(is_table))
    };
    if lists.is_empty() && !is_new() {
        return Err(damaged(&shared, "it is missing or empty"));
    }
    lists.extend(fs::read(own).unwrap_or_default());
    Ok(lists)
}

fn is_table(entry: io::Result<fs::DirEntry>) -> bool {
    entry.is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "ref"))
}

/// Reads a ref through git.
fn read(repository: &Repository, refname: &str) -> Result<Option<Target>, GitError> {
    if refname.starts_with("refs/") {
        let found = list(repository, refname)?.into_iter();
        let mut found = found.filter(|(name, _)| name == refname);
        if let Some((_, target)) = found.next() {
            return Ok(Some(target));
        }
    }
    // Unlisted: names that are not refs, dangling refs, and refs in a table that git can't read.
    let ask = |args: &[&str]| {
        let mut command = git(repository, repository.path());
        command.args(args).arg(refname);
        run(command, None)
    };
    let asked = ask(&["symbolic-ref", "-q"])?;
    match asked.status.code() {
        Some(0) => return Ok(Some(Target::Symbolic(printed_by(&asked)))),
        Some(1) if refname.starts_with("refs/") => return Ok(None),
        Some(1) => {}
        _ => return Err(unreadable(repository, &asked)),
    }
    let asked = ask(&["rev-parse", "-q", "--verify"])?;
    Ok(printed_by(&asked).parse().ok().map(Target::Id))
}

fn printed_by(ended: &Ended) -> String {
    String::from_utf8_lossy(&ended.stdout).trim_end().to_owned()
}

/// Lists refs through git.
fn list(repository: &Repository, prefix: &str) -> Result<Vec<(String, Target)>, GitError> {
    git_command::list(repository, prefix, |ended| unreadable(repository, ended))
}

/// The error for tables that git can't read: damage, unless it never got that far. git 2.47 may
/// crash on a truncated table.
fn unreadable(repository: &Repository, ended: &Ended) -> GitError {
    const DIED: i32 = 128;
    let error = GitError::of_git(ended);
    let is_refused =
        error.is_about_old_git() || ended.complaint().contains("unknown repository extension");
    if is_refused || ended.status.code().is_some_and(|code| code != DIED) {
        return error;
    }
    damaged(&repository.common_dir().join(FOLDER), &error.to_string())
}

fn damaged(path: &Path, why: &str) -> GitError {
    let text = format!("{}: {why}", path.display());
    let error = git2::Error::new(ErrorCode::GenericError, ErrorClass::Reference, text);
    GitError::damaged_tables(error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::path::Path;
    use std::process::{Command, Output};

    use crate::repository::{Repository, Target};

    fn git_any(dir: &Path, args: &[&str]) -> Output {
        let mut command = Command::new("git");
        command.current_dir(dir).args(args);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
            command.env(format!("{name}_NAME"), "Tester");
            command.env(format!("{name}_EMAIL"), "tester@example.org");
        }
        command.output().unwrap()
    }

    /// Runs git in a folder and returns its output.
    fn git(dir: &Path, args: &[&str]) -> String {
        let ended = git_any(dir, args);
        assert!(ended.status.success(), "git {args:?}: {ended:?}");
        String::from_utf8(ended.stdout).unwrap().trim().to_owned()
    }

    /// A repository with one commit and reftables; `None` if git is older than 2.45.
    fn of_tables() -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().unwrap();
        let init = ["init", "-q", "-b", "main", "--ref-format=reftable", "repo"];
        if !git_any(folder.path(), &init).status.success() {
            return None;
        }
        let repo = folder.path().join("repo");
        git(&repo, &["commit", "-q", "--allow-empty", "-m", "One"]);
        Some(folder)
    }

    fn opened(dir: &Path) -> Repository {
        libgit2_options::allow_extensions();
        Repository::of(git2::Repository::open(dir).unwrap()).unwrap()
    }

    #[test]
    fn a_ref_says_what_git_says_also_after_a_change() {
        let Some(folder) = of_tables() else { return };
        let repo = folder.path().join("repo");
        let repository = opened(&repo);
        let read = |name: &str| repository.refs.read(&repository, name).unwrap();
        let symbolic = |name: &str| Some(Target::Symbolic(name.to_owned()));
        let id = |spec: &str| {
            Some(Target::Id(
                git(&repo, &["rev-parse", spec]).parse().unwrap(),
            ))
        };
        assert_eq!(read("HEAD"), symbolic("refs/heads/main"));
        assert_eq!(read("refs/heads/main"), id("main"));
        assert_eq!(read("refs/heads/other"), None);
        git(&repo, &["commit", "-q", "--allow-empty", "-m", "Two"]);
        git(&repo, &["branch", "other"]);
        git(
            &repo,
            &["symbolic-ref", "refs/heads/alias", "refs/heads/main"],
        );
        git(
            &repo,
            &["symbolic-ref", "refs/heads/astray", "refs/heads/none"],
        );
        git(&repo, &["tag", "-a", "-m", "annotated", "annotated"]);
        git(&repo, &["branch", "below/one"]);
        assert_eq!(read("refs/heads/main"), id("main"));
        assert_eq!(read("refs/heads/other"), id("other"));
        assert_eq!(read("refs/heads/alias"), symbolic("refs/heads/main"));
        assert_eq!(read("refs/heads/astray"), symbolic("refs/heads/none"));
        assert_eq!(read("refs/tags/annotated"), id("annotated"));
        assert_eq!(read("refs/heads/below"), None);
        git(&repo, &["checkout", "-q", "--detach"]);
        assert_eq!(read("HEAD"), id("main"));
        let listed = repository.list_refs("refs/heads/").unwrap();
        let listed: Vec<&str> = listed
            .iter()
            .map(|(name, _)| &name["refs/heads/".len()..])
            .collect();
        assert_eq!(listed, ["alias", "below/one", "main", "other"]);
        assert!(repository.list_refs("refs/remotes/").unwrap().is_empty());
        git(&repo, &["branch", "-q", "-D", "other"]);
        assert_eq!(read("refs/heads/other"), None);
    }

    #[test]
    fn a_worktree_has_a_head_of_its_own() {
        let Some(folder) = of_tables() else { return };
        let (repo, linked) = (folder.path().join("repo"), folder.path().join("linked"));
        git(
            &repo,
            &["worktree", "add", "-q", "-b", "other", "../linked"],
        );
        let [main, other] = [&repo, &linked].map(|dir| opened(dir));
        let head = |of: &Repository| of.symbolic_target("HEAD").unwrap().unwrap();
        assert_eq!(head(&main), "refs/heads/main");
        assert_eq!(head(&other), "refs/heads/other");
        for repository in [&main, &other] {
            let at = |branch: &str| {
                let path = repository.checked_out_at(&format!("refs/heads/{branch}"));
                path.map(|path| path.canonicalize().unwrap())
            };
            assert_eq!(at("main"), Some(repo.canonicalize().unwrap()));
            assert_eq!(at("other"), Some(linked.canonicalize().unwrap()));
            assert_eq!(at("third"), None);
        }
        git(&linked, &["checkout", "-q", "-b", "third"]);
        assert_eq!(head(&other), "refs/heads/third");
        assert!(main.checked_out_at("refs/heads/other").is_none());
        fs::remove_dir_all(&linked).unwrap();
        assert!(main.checked_out_at("refs/heads/third").is_none());
    }

    #[test]
    fn what_is_damaged_is_an_error_and_never_a_missing_ref() {
        let Some(folder) = of_tables() else { return };
        let repo = folder.path().join("repo");
        git(&repo, &["branch", "second"]);
        git(&repo, &["pack-refs", "--all"]);
        let tables = repo.join(".git/reftable");
        let list = tables.join("tables.list");
        let names = fs::read_to_string(&list).unwrap();
        let table = tables.join(names.trim());
        let whole = fs::read(&table).unwrap();
        let assert_damaged = |told: &str| {
            let repository = opened(&repo);
            for name in ["refs/heads/main", "refs/heads/none", "HEAD"] {
                let error = repository.refs.read(&repository, name).unwrap_err();
                assert!(error.is_damage(), "{told}, {name}: {error}");
            }
            repository.list_refs("refs/none/").unwrap_err();
        };
        for cut in (0..whole.len()).step_by(7) {
            fs::remove_file(&table).unwrap();
            fs::write(&table, &whole[..cut]).unwrap();
            assert_damaged(&format!("cut at {cut}"));
        }
        let mut newer = whole.clone();
        newer[4] = 3;
        fs::write(&table, &newer).unwrap();
        assert_damaged("a newer version");
        fs::write(&table, &whole).unwrap();
        for text in ["", "nothing.ref\n", "../../config\n", "\0\0"] {
            fs::write(&list, text).unwrap();
            assert_damaged(text);
        }
        fs::remove_file(&list).unwrap();
        assert_damaged("no list");
        fs::remove_dir_all(&tables).unwrap();
        assert_damaged("no folder");
    }
}
