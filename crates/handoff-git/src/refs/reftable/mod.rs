//! Refs in tables, which libgit2 does not know: it would write a file that git never sees.
//!
//! `git update-ref` writes them, with its locks, its compaction and its log. They are read here,
//! without a process: `tables.list` names the tables, and of several that have a ref the last one
//! counts.

mod table;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use git2::{ErrorClass, ErrorCode};
use handoff_base::{ObjectFormat, ObjectId};

use self::table::{Record, Table, TableError};
use super::LOGGED;
use super::git_command::{git, run, update_ref};
use crate::error::{GitError, PublishError};
use crate::repository::Repository;
use crate::repository::{RefStore, RefUpdate, Target};

/// The folder of the tables.
const FOLDER: &str = "reftable";

/// Their list, and the lock under which it is written anew.
const LIST: &str = "reftable/tables.list";
const LOCK: &str = "reftable/tables.list.lock";

/// How often the list is read again when a table of it is gone: git compacts them meanwhile.
const READS: usize = 100;

/// How long a change is tried while another process changes a ref, whichever it is. Who may wait
/// longer tries again.
const PATIENCE: Duration = Duration::from_millis(300);

/// How often it is tried when nothing shows why git refused: the lock may be gone already.
const UNEXPLAINED: u32 = 10;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// Tables of the repository, and of the worktree if it is a linked one.
pub(super) struct RefTables {
    shared: Stack,
    own: Option<Stack>,
}

impl RefTables {
    pub(super) fn new(common_dir: &Path, git_dir: &Path, format: ObjectFormat) -> Self {
        let is_linked = common_dir != git_dir;
        Self {
            shared: Stack::new(common_dir, format),
            own: is_linked.then(|| Stack::new(git_dir, format)),
        }
    }

    /// Writes the tables that have a ref through to the disk, if writes wait for it: git 2.47
    /// writes the end of a table after it has waited for the rest.
    fn write_through(&self, repository: &Repository, refname: &str) -> Result<(), GitError> {
        if repository.durable_refs.is_none() {
            return Ok(());
        }
        let stack = self.stack_of(refname);
        for (name, table) in stack.tables()? {
            let written = table.write_through();
            written.map_err(|error| stack.unreadable(&name, &error))?;
        }
        let folder = stack.git_dir.join(FOLDER);
        let written = fs::File::open(folder).and_then(|folder| folder.sync_all());
        written.map_err(|error| {
            GitError::of_system(&format!("{FOLDER} cannot be written through: {error}"))
        })
    }

    /// The tables that have a ref: each worktree has those of its own.
    fn stack_of(&self, refname: &str) -> &Stack {
        let folders = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"];
        let is_own =
            !refname.starts_with("refs/") || folders.iter().any(|f| refname.starts_with(f));
        self.own.as_ref().filter(|_| is_own).unwrap_or(&self.shared)
    }
}

impl RefStore for RefTables {
    fn read(&self, _: &Repository, refname: &str) -> Result<Option<Target>, GitError> {
        self.stack_of(refname).read(refname)
    }

    fn list(&self, _: &Repository, prefix: &str) -> Result<Vec<(String, Target)>, GitError> {
        self.stack_of(prefix).list(prefix)
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
                self.write_through(repository, update.refname)?;
                return Ok(());
            }
            let now = self.read(repository, update.refname)?;
            // git also fails when it changed the ref and then could not compact the tables. Another
            // process may have made the same commit: then git found the ref elsewhere.
            let is_elsewhere = ended.complaint().contains("cannot lock ref '");
            if now == update.to.map(Target::Id) && !is_elsewhere {
                self.write_through(repository, update.refname)?;
                return Ok(());
            }
            if now != update.from.map(Target::Id) {
                return Err(PublishError::Moved);
            }
            // Objects that no ref led to, a `git gc` may have removed.
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

    fn discardable(&self, _: &Repository, folder: &str) -> io::Result<Vec<String>> {
        let found = self.shared.list(&format!("{folder}/"));
        let found = found.map_err(io::Error::other)?;
        Ok(found.into_iter().map(|(refname, _)| refname).collect())
    }

    fn discard(&self, repository: &Repository, refname: &str) -> Result<(), PublishError> {
        match self.shared.read(refname)? {
            Some(Target::Id(at)) => repository.delete_ref(refname, at),
            Some(Target::Symbolic(_)) | None => Ok(()),
        }
    }

    /// git prints the entries that there are, and fails at the first one beyond them.
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
        // The oldest first, since those after it move up.
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

    /// Nothing: the lock does not say whose it is, and its holder may be on another machine or in
    /// another container.
    fn remove_abandoned_lock(&self, _: &Repository, _: &str, _: &str) {}

    fn head_of(&self, git_dir: &Path) -> Option<String> {
        let found = Stack::new(git_dir, self.shared.format).read("HEAD");
        match found.ok()?? {
            Target::Symbolic(name) => Some(name),
            Target::Id(_) => None,
        }
    }

    fn start_head(
        &self,
        repository: &Repository,
        git_dir: &Path,
        head: &Target,
    ) -> Result<(), GitError> {
        // Whoever does not know tables finds a HEAD that leads nowhere, as git writes it.
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

/// Tables with their names, the newest last.
type Tables = Vec<(String, Rc<Table>)>;

/// The tables below a git directory.
struct Stack {
    git_dir: PathBuf,
    format: ObjectFormat,
    /// Those that were read last, with their names: a table never changes.
    opened: RefCell<Tables>,
}

impl Stack {
    fn new(git_dir: &Path, format: ObjectFormat) -> Self {
        Self {
            git_dir: git_dir.to_owned(),
            format,
            opened: RefCell::default(),
        }
    }

    fn read(&self, refname: &str) -> Result<Option<Target>, GitError> {
        for (name, table) in self.tables()?.iter().rev() {
            let found = table.find(refname.as_bytes());
            match found.map_err(|error| self.unreadable(name, &error))? {
                Some(Record::Is(target)) => return Ok(Some(target)),
                Some(Record::Deleted) => return Ok(None),
                None => {}
            }
        }
        Ok(None)
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, Target)>, GitError> {
        let mut found = BTreeMap::new();
        for (name, table) in self.tables()? {
            let read = table.visit(prefix.as_bytes(), |refname, record| {
                let is_below = refname.starts_with(prefix.as_bytes());
                if is_below {
                    found.insert(String::from_utf8_lossy(refname).into_owned(), record);
                }
                is_below
            });
            read.map_err(|error| self.unreadable(&name, &error))?;
        }
        let found = found
            .into_iter()
            .filter_map(|(refname, record)| match record {
                Record::Is(target) => Some((refname, target)),
                Record::Deleted => None,
            });
        Ok(found.collect())
    }

    /// The tables as they are now, the newest last.
    fn tables(&self) -> Result<Tables, GitError> {
        let mut missing = String::new();
        for again in 0..READS {
            if again > 0 {
                thread::sleep(Duration::from_millis(1));
            }
            match self.listed()? {
                Ok(tables) => return Ok(tables),
                Err(name) => missing = name,
            }
        }
        Err(self.unreadable(&missing, &TableError::Missing))
    }

    /// The tables that the list names, or the name of one that is gone.
    fn listed(&self) -> Result<Result<Tables, String>, GitError> {
        let names = match fs::read_to_string(self.git_dir.join(LIST)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The folder is the first thing that git makes.
                if !self.git_dir.join(FOLDER).exists() {
                    return Err(self.unreadable("", &TableError::AgentFailed));
                }
                String::new()
            }
            read => read.map_err(|error| self.unreadable("tables.list", &error.into()))?,
        };
        let folder = self.git_dir.join(FOLDER);
        // A repository that is being made has no table, until it has a HEAD.
        let is_lost = names.is_empty() && has_table(&folder);
        if is_lost || !names.lines().all(is_table_name) {
            return Err(self.unreadable("tables.list", &TableError::Corrupted));
        }
        let mut tables = Vec::new();
        for name in names.lines() {
            let known = self.opened.borrow();
            let known = known.iter().find(|(known, _)| known == name);
            let table = match known {
                Some((_, table)) => Rc::clone(table),
                None => match Table::open(&folder.join(name), self.format) {
                    Ok(table) => Rc::new(table),
                    Err(TableError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                        return Ok(Err(name.to_owned()));
                    }
                    Err(error) => return Err(self.unreadable(name, &error)),
                },
            };
            tables.push((name.to_owned(), table));
        }
        self.opened.replace(tables.clone());
        Ok(Ok(tables))
    }

    fn unreadable(&self, name: &str, error: &TableError) -> GitError {
        let mut path = self.git_dir.join(FOLDER);
        if !matches!(error, TableError::AgentFailed) {
            path.push(name);
        }
        let text = format!("{}: {error}", path.display());
        match error {
            TableError::Io(_) => GitError::of_system(&text),
            TableError::Newer(_) => GitError::unreadable_table(reference_error(text), true),
            TableError::Corrupted | TableError::Missing | TableError::AgentFailed => {
                GitError::unreadable_table(reference_error(text), false)
            }
        }
    }
}

/// Whether this can be the name of a table: two numbers, something random and an ending.
fn is_table_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    name.strip_suffix(".ref")
        .is_some_and(|name| name.chars().all(plain))
}

fn has_table(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.path().extension().is_some_and(|end| end == "ref"))
}

fn reference_error(text: String) -> git2::Error {
    git2::Error::new(ErrorCode::GenericError, ErrorClass::Reference, text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;
    use std::fs;
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use handoff_base::ObjectFormat;

    use super::{RefTables, Stack};
    use crate::repository::Target;

    /// Runs git in a folder, with these lines on its input, and returns what it prints.
    fn git(dir: &Path, args: &[&str], input: &str) -> String {
        let mut command = Command::new("git");
        command.current_dir(dir).args(args);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
            command.env(format!("{name}_NAME"), "Tester");
            command.env(format!("{name}_EMAIL"), "tester@example.org");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = command.spawn().unwrap();
        let mut stdin = running.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        let ended = running.wait_with_output().unwrap();
        assert!(ended.status.success(), "git {args:?}");
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Whether git can keep refs in tables: since 2.45.
    fn git_knows_tables() -> bool {
        let version = git(Path::new("."), &["version"], "");
        let mut numbers = version.split([' ', '.']);
        let mut number = || numbers.find_map(|word| word.parse::<u32>().ok());
        (number(), number()) >= (Some(2), Some(45))
    }

    /// All refs by git, each with the ref that it names or its id.
    fn git_command(dir: &Path) -> BTreeMap<String, String> {
        let format = "--format=%(refname) %(if)%(symref)%(then)%(symref)%(else)%(objectname)%(end)";
        let printed = git(dir, &["for-each-ref", format], "");
        let pairs = printed.lines().map(|line| line.split_once(' ').unwrap());
        pairs
            .map(|(name, at)| (name.to_owned(), at.to_owned()))
            .collect()
    }

    fn shown(target: &Target) -> String {
        match target {
            Target::Id(id) => id.to_string(),
            Target::Symbolic(name) => name.clone(),
        }
    }

    fn assert_reads_what_git_reads(dir: &Path, format: ObjectFormat) {
        let stack = Stack::new(&dir.join(".git"), format);
        let expected = git_command(dir);
        let found = stack.list("refs/").unwrap();
        let listed = found.iter().map(|(name, at)| (name.clone(), shown(at)));
        assert_eq!(listed.collect::<BTreeMap<_, _>>(), expected);
        for (name, at) in &expected {
            assert_eq!(shown(&stack.read(name).unwrap().unwrap()), *at, "{name}");
            let other = format!("{name}x");
            let is_known = expected.contains_key(&other);
            assert_eq!(stack.read(&other).unwrap().is_some(), is_known, "{other}");
        }
        let some = stack.list("refs/tags/1").unwrap();
        let below = expected
            .keys()
            .filter(|name| name.starts_with("refs/tags/1"));
        assert!(some.iter().map(|(name, _)| name).eq(below));
        assert_eq!(stack.read("refs/").unwrap(), None);
        assert_eq!(stack.read("refs/zzz").unwrap(), None);
    }

    #[test]
    fn tables_are_read_as_git_reads_them() {
        if !git_knows_tables() {
            return;
        }
        for (format, name, block) in [
            (ObjectFormat::Sha1, "sha1", "4096"),
            (ObjectFormat::Sha1, "sha1", "256"),
            (ObjectFormat::Sha256, "sha256", "4096"),
            (ObjectFormat::Sha256, "sha256", "65536"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path();
            let format_argument = format!("--object-format={name}");
            let init = [
                "init",
                "-q",
                "-b",
                "main",
                "--ref-format=reftable",
                &format_argument,
                ".",
            ];
            git(dir, &init, "");
            git(dir, &["config", "reftable.blockSize", block], "");
            git(dir, &["commit", "-q", "--allow-empty", "-m", "One"], "");
            assert_reads_what_git_reads(dir, format);
            let head = git(dir, &["rev-parse", "HEAD"], "");
            let head = head.trim();
            git(dir, &["tag", "-a", "-m", "annotated", "annotated"], "");
            git(
                dir,
                &[
                    "symbolic-ref",
                    "refs/remotes/origin/HEAD",
                    "refs/heads/main",
                ],
                "",
            );
            for round in 0..6 {
                let numbers = (0..700).map(|number| number * 7 % 1000 + round);
                let lines: String = numbers
                    .map(|number| format!("update refs/tags/{number}/{} {head}\n", number % 13))
                    .collect();
                git(dir, &["update-ref", "--stdin"], &lines);
                let gone = round * 3 + 1;
                let gone = format!("delete refs/tags/{gone}/{}\n", gone % 13);
                git(dir, &["update-ref", "--stdin"], &gone);
                assert_reads_what_git_reads(dir, format);
            }
            git(dir, &["pack-refs", "--all"], "");
            assert_reads_what_git_reads(dir, format);
        }
    }

    #[test]
    fn a_worktree_has_a_head_of_its_own() {
        if !git_knows_tables() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("main");
        fs::create_dir(&dir).unwrap();
        git(
            &dir,
            &["init", "-q", "-b", "main", "--ref-format=reftable"],
            "",
        );
        git(&dir, &["commit", "-q", "--allow-empty", "-m", "One"], "");
        git(
            &dir,
            &["worktree", "add", "-q", "-b", "other", "../linked"],
            "",
        );
        let common = dir.join(".git");
        let linked = common.join("worktrees/linked");
        let refs = RefTables::new(&common, &linked, ObjectFormat::Sha1);
        let head = |stack: &Stack| stack.read("HEAD").unwrap();
        let branch = |name: &str| Some(Target::Symbolic(format!("refs/heads/{name}")));
        assert_eq!(head(refs.stack_of("HEAD")), branch("other"));
        assert_eq!(head(refs.stack_of("refs/heads/main")), branch("main"));
    }

    #[test]
    fn what_is_damaged_is_an_error_and_never_read() {
        if !git_knows_tables() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        git(
            dir,
            &["init", "-q", "-b", "main", "--ref-format=reftable", "."],
            "",
        );
        git(dir, &["commit", "-q", "--allow-empty", "-m", "One"], "");
        git(dir, &["pack-refs", "--all"], "");
        let list = dir.join(".git/reftable/tables.list");
        let names = fs::read_to_string(&list).unwrap();
        let table = dir.join(".git/reftable").join(names.trim());
        let whole = fs::read(&table).unwrap();
        let read = |format: ObjectFormat| {
            let read = Stack::new(&dir.join(".git"), format).read("refs/heads/main");
            read.map(|found| found.map(|target| shown(&target)))
        };
        let expected = read(ObjectFormat::Sha1).unwrap();
        assert!(expected.is_some());
        assert!(read(ObjectFormat::Sha256).is_err());
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            fs::write(&table, &damaged).unwrap();
            // Blocks have no checksum: what is there may name another object, which is then missing.
            let _ = read(ObjectFormat::Sha1);
            fs::write(&table, &whole[..at]).unwrap();
            assert!(read(ObjectFormat::Sha1).is_err(), "cut at {at}");
        }
        let mut newer = whole.clone();
        newer[4] = 3;
        fs::write(&table, &newer).unwrap();
        let said = read(ObjectFormat::Sha1).unwrap_err().to_string();
        assert!(said.contains("version 3"), "{said}");
        fs::write(&table, &whole).unwrap();
        for text in ["", "nothing\n", "../../config\n", "\u{0}\u{0}"] {
            fs::write(&list, text).unwrap();
            assert!(read(ObjectFormat::Sha1).is_err(), "{text:?}");
        }
        fs::remove_file(&list).unwrap();
        assert!(read(ObjectFormat::Sha1).is_err());
        fs::remove_dir_all(dir.join(".git/reftable")).unwrap();
        assert!(read(ObjectFormat::Sha1).is_err());
    }
}
