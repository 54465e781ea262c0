//! A real ledger, and tools to tamper with it through git's plumbing.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub const BRANCH: &str = "refs/heads/handoffs";

/// A repository with a ledger, in its own environment.
pub struct Ledger {
    dir: TempDir,
    path: PathBuf,
}

/// A commit in its stored form.
#[derive(Clone, Debug)]
pub struct Commit {
    pub id: String,
    pub tree: String,
    pub parents: Vec<String>,
    pub author: String,
    pub committer: String,
    pub message: String,
}

/// An edit of a tree: a path with its new mode and bytes, or `None` to remove it.
pub struct Edit<'a>(pub &'a str, pub Option<(&'a str, Vec<u8>)>);

/// An [`Edit`] with owned path and mode.
type OwnedEdit = (String, Option<(String, Vec<u8>)>);

pub fn set(path: &str, bytes: impl Into<Vec<u8>>) -> Edit<'_> {
    Edit(path, Some(("100644", bytes.into())))
}

pub fn remove(path: &str) -> Edit<'_> {
    Edit(path, None)
}

/// A sample contract, about this issue.
pub fn contract(name: &str, issue: u32) -> String {
    crate::contracts::sample(name, crate::contracts::Format::Xml, issue)
}

/// The folder of an issue with a two-digit number.
pub fn folder(issue: u32) -> String {
    format!("issues/{issue}/00/{issue}")
}

impl Ledger {
    fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        let path = dir.path().join("repository");
        fs::create_dir(&path).unwrap();
        Self { dir, path }
    }

    /// A copy of every test's initial ledger; its commits, oldest first:
    ///
    /// 0 start · 1 87.1 sent · 2 88.1 sent · 3 87.1 claimed · 4 87.2 sent · 5 88.1 claimed ·
    /// 6 87.2 claimed · 7 87.3 sent · 8 88.2 sent · 9 89.1 sent
    pub fn new() -> Self {
        let ledger = Self::empty();
        let make = |to: &Path| crate::files::copy(&Self::made().path, to);
        crate::prepared::copy("tampered", make, &ledger.path);
        ledger
    }

    fn made() -> Self {
        let ledger = Self::empty();
        ledger.git(&["init", "-q", "-b", "main"]);
        ledger.handoff(0, &["init", "--evidence", "off"], "");
        let send = |minute, name: &str, issue: u32| {
            ledger.handoff(minute, &["send", "-"], &contract(name, issue));
        };
        let claim = |minute, id: &str, agent: &str| {
            ledger.handoff(minute, &["claim", id, "--as", agent], "");
        };
        send(1, "issue-manager-to-prep-agent", 87);
        send(2, "issue-manager-to-prep-agent", 88);
        claim(3, "87.1", "prep-agent");
        send(4, "prep-agent-to-implementer-agent", 87);
        claim(5, "88.1", "prep-agent");
        claim(6, "87.2", "implementer-agent");
        send(7, "implementer-agent-to-reviewer-agent", 87);
        send(8, "prep-agent-to-implementer-agent", 88);
        send(9, "issue-manager-to-prep-agent", 89);
        ledger
    }

    /// A clone made by git, with these options.
    pub fn clone_with(&self, options: &[&str]) -> Self {
        let clone = Self::empty();
        let url = format!("file://{}", self.path.display());
        let mut args = vec!["clone", "-q", "--bare", "--branch", "handoffs"];
        args.extend(options);
        args.extend([&*url, "."]);
        clone.git(&args);
        clone
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn command(&self, program: &str) -> Command {
        let own = Path::new(crate::program()).parent().unwrap();
        let others = std::env::var_os("PATH").unwrap();
        let all = std::iter::once(own.to_owned()).chain(std::env::split_paths(&others));
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::join_paths(all).unwrap())
            .env("HOME", self.dir.path().join("home"))
            .env("TMPDIR", std::env::temp_dir())
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_HANDOFF_WORKER", "repo")
            .env("TZ", "UTC")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Tester")
            .env("GIT_AUTHOR_EMAIL", "tester@example.org")
            .env("GIT_COMMITTER_NAME", "Tester")
            .env("GIT_COMMITTER_EMAIL", "tester@example.org")
            .env("GIT_AUTHOR_DATE", "2026-03-04T06:00:00Z")
            .env("GIT_COMMITTER_DATE", "2026-03-04T06:00:00Z")
            .current_dir(&self.path);
        crate::repository_kind::set(&mut command);
        command
    }

    fn run(mut command: Command, input: &[u8]) -> Output {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program without input may have exited already.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// Runs git with this input and optional index; returns its output.
    pub fn git_raw(&self, args: &[&str], index: Option<&Path>, input: &[u8]) -> Vec<u8> {
        let mut command = self.command("git");
        if let Some(index) = index {
            command.env("GIT_INDEX_FILE", index);
        }
        command.args(args);
        let output = Self::run(command, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {errors}");
        output.stdout
    }

    /// Runs git; returns its output without the final line break.
    pub fn git(&self, args: &[&str]) -> String {
        let output = self.git_raw(args, None, b"");
        String::from_utf8(output).unwrap().trim_end().to_owned()
    }

    /// Runs git, whatever its exit code; returns the exit code and stderr.
    pub fn git_any(&self, args: &[&str]) -> (i32, String) {
        let mut command = self.command("git");
        command.args(args);
        let output = Self::run(command, b"");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), stderr)
    }

    /// Runs the program at a minute of the day; it must succeed.
    pub fn handoff(&self, minute: u32, args: &[&str], input: &str) {
        let mut command = self.command(crate::program());
        let date = format!("2026-03-04T05:{minute:02}:00Z");
        command.env("GIT_AUTHOR_DATE", &date);
        command.env("GIT_COMMITTER_DATE", &date);
        command.args(args);
        let output = Self::run(command, input.as_bytes());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
    }

    /// Runs `verify`; returns its exit code and output.
    pub fn verify(&self, args: &[&str]) -> (i32, Value) {
        let mut command = self.command(crate::program());
        command.args(["verify", "--json"]).args(args);
        let output = Self::run(command, b"");
        let errors = String::from_utf8_lossy(&output.stderr);
        let answer = serde_json::from_slice(&output.stdout);
        let answer = answer.unwrap_or_else(|e| panic!("{e}: {errors}"));
        (output.status.code().unwrap(), answer)
    }

    /// The findings of `verify`, which must report damage: one per line, with the commit's number
    /// from 0.
    pub fn damage(&self, args: &[&str]) -> Vec<String> {
        let (code, answer) = self.verify(args);
        assert_eq!(code, 10, "{answer:#}");
        assert_eq!(answer["ok"], false);
        let numbers: HashMap<String, usize> = self
            .history()
            .into_iter()
            .enumerate()
            .map(|(number, id)| (id, number))
            .collect();
        let findings = answer["error"]["findings"].as_array().unwrap();
        assert!(!findings.is_empty());
        findings
            .iter()
            .map(|finding| {
                let commit = finding["commit"].as_str();
                let number = commit.and_then(|id| numbers.get(id));
                let shown = number.map_or("?".to_owned(), ToString::to_string);
                let text = |key: &str| finding[key].as_str().unwrap().to_owned();
                let path = Some(text("path")).filter(|p| !p.is_empty());
                let path = path.map(|path| format!(" {path}")).unwrap_or_default();
                assert!(!text("message").is_empty());
                format!("{shown} {}{path}", text("code"))
            })
            .collect()
    }

    /// Asserts that the audit has no findings.
    pub fn assert_sound(&self, args: &[&str]) -> Value {
        let (code, answer) = self.verify(args);
        assert_eq!(code, 0, "{answer:#}");
        assert_eq!(answer["data"]["findings"], serde_json::json!([]));
        answer["data"].clone()
    }

    fn history(&self) -> Vec<String> {
        let mut command = self.command("git");
        command.args(["rev-list", "--first-parent", "--reverse", BRANCH]);
        // In a damaged repository, only commits that git can list count.
        let output = Self::run(command, b"");
        let listed = String::from_utf8(output.stdout).unwrap();
        listed.lines().map(str::to_owned).collect()
    }

    /// Every commit of the ledger, oldest first.
    pub fn commits(&self) -> Vec<Commit> {
        self.history().iter().map(|id| self.commit(id)).collect()
    }

    pub fn commit(&self, id: &str) -> Commit {
        let raw = self.git_raw(&["cat-file", "commit", id], None, b"");
        let raw = String::from_utf8(raw).unwrap();
        let (header, message) = raw.split_once("\n\n").unwrap();
        let fields = |name: &str| -> Vec<String> {
            let prefix = format!("{name} ");
            let values = header.lines().filter_map(|l| l.strip_prefix(&prefix));
            values.map(str::to_owned).collect()
        };
        Commit {
            id: id.to_owned(),
            tree: fields("tree").remove(0),
            parents: fields("parent"),
            author: fields("author").remove(0),
            committer: fields("committer").remove(0),
            message: message.to_owned(),
        }
    }

    pub fn tip(&self) -> Commit {
        self.commit(&self.git(&["rev-parse", BRANCH]))
    }

    /// Writes a commit, and returns its id.
    pub fn write(&self, commit: &Commit) -> String {
        let mut raw = format!("tree {}\n", commit.tree);
        for parent in &commit.parents {
            raw += &format!("parent {parent}\n");
        }
        raw += &format!(
            "author {}\ncommitter {}\n\n",
            commit.author, commit.committer
        );
        raw += &commit.message;
        let args = ["hash-object", "-t", "commit", "-w", "--stdin"];
        let id = self.git_raw(&args, None, raw.as_bytes());
        String::from_utf8(id).unwrap().trim().to_owned()
    }

    /// Moves the branch in a fresh clone, which has seen no other value.
    pub fn set_branch(&self, id: &str) {
        self.git(&["update-ref", BRANCH, id]);
        self.forget();
    }

    /// Makes the clone forget the branch's values that it has seen.
    pub fn forget(&self) {
        let common = self.git(&["rev-parse", "--git-common-dir"]);
        for note in ["seen", "verified"] {
            let _ = fs::remove_dir_all(self.path.join(&common).join("handoff").join(note));
        }
    }

    /// A tree with these edits.
    pub fn edited(&self, tree: &str, edits: &[Edit<'_>]) -> String {
        let index = self.dir.path().join("index");
        let _ = fs::remove_file(&index);
        let git = |args: &[&str], input: &[u8]| -> String {
            let output = self.git_raw(args, Some(&index), input);
            String::from_utf8(output).unwrap().trim().to_owned()
        };
        git(&["read-tree", tree], b"");
        for Edit(path, to) in edits {
            match to {
                Some((mode, bytes)) => {
                    let id = git(&["hash-object", "-w", "--stdin"], bytes);
                    let info = format!("{mode},{id},{path}");
                    git(&["update-index", "--add", "--cacheinfo", &info], b"");
                }
                None => {
                    git(&["update-index", "--force-remove", path], b"");
                }
            }
        }
        git(&["write-tree"], b"")
    }

    /// Adds a commit with these edits, as anybody could with plain git.
    pub fn add(&self, edits: &[Edit<'_>]) {
        let tip = self.tip();
        let someone = "Someone <someone@example.org> 1772604000 +0000".to_owned();
        let id = self.write(&Commit {
            id: String::new(),
            tree: self.edited(&tip.tree, edits),
            parents: vec![tip.id],
            author: someone.clone(),
            committer: someone,
            message: "A small change\n".to_owned(),
        });
        self.set_branch(&id);
    }

    /// Rewrites history from a commit on: `change` gets each commit with its number and new
    /// parents.
    pub fn rewrite(&self, from: usize, mut change: impl FnMut(usize, &mut Commit)) {
        let commits = self.commits();
        let mut parent = from.checked_sub(1).map(|at| commits[at].id.clone());
        for (number, commit) in commits.iter().enumerate().skip(from) {
            let mut commit = commit.clone();
            commit.parents = parent.into_iter().collect();
            change(number, &mut commit);
            parent = Some(self.write(&commit));
        }
        self.set_branch(&parent.unwrap());
    }

    /// Rewrites history so that these commits follow each other, each one's changes applied to the
    /// tree before it; they must touch different files.
    pub fn replay(&self, after: usize, numbers: &[usize]) {
        let commits = self.commits();
        let mut parent = commits[after].clone();
        for &number in numbers {
            let commit = &commits[number];
            let before = &commits[number - 1];
            let changes = self.git(&[
                "diff-tree",
                "-r",
                "--no-renames",
                &before.tree,
                &commit.tree,
            ]);
            let mut edits: Vec<OwnedEdit> = Vec::new();
            for line in changes.lines() {
                let (meta, path) = line.split_once('\t').unwrap();
                let parts: Vec<&str> = meta.split(' ').collect();
                let new = (parts[4] != "D").then(|| {
                    let bytes = self.git_raw(&["cat-file", "blob", parts[3]], None, b"");
                    (parts[1].to_owned(), bytes)
                });
                edits.push((path.to_owned(), new));
            }
            let edits: Vec<Edit<'_>> = edits
                .iter()
                .map(|(path, new)| Edit(path, new.as_ref().map(|(m, b)| (&**m, b.clone()))))
                .collect();
            let mut next = commit.clone();
            next.tree = self.edited(&parent.tree, &edits);
            next.parents = vec![parent.id.clone()];
            next.id = self.write(&next);
            parent = next;
        }
        self.set_branch(&parent.id);
    }

    /// A file's content at the tip.
    pub fn file(&self, path: &str) -> String {
        let bytes = self.git_raw(
            &["cat-file", "blob", &format!("{BRANCH}:{path}")],
            None,
            b"",
        );
        String::from_utf8(bytes).unwrap()
    }

    /// The path of a handoff's entry in a commit, among open entries or those that need attention.
    #[track_caller]
    pub fn entry_in(&self, commit: &str, id: &str) -> String {
        let names = self.git(&["ls-tree", "-r", "--name-only", commit, "open/", "awaiting/"]);
        let mut names = names.lines();
        let is_it = |name: &&str| {
            let end = name.rsplit('/').next().unwrap().strip_suffix(".json");
            end.is_some_and(|end| end == id || end.ends_with(&format!(".{id}")))
        };
        let found = names.find(is_it);
        found
            .unwrap_or_else(|| panic!("{id} has no entry in {commit}"))
            .to_owned()
    }

    /// The path of a handoff's entry at the tip.
    #[track_caller]
    pub fn entry(&self, id: &str) -> String {
        self.entry_in(BRANCH, id)
    }

    /// The path of a loose object.
    pub fn loose(&self, id: &str) -> PathBuf {
        let objects = if self.path.join(".git").is_dir() {
            self.path.join(".git/objects")
        } else {
            self.path.join("objects")
        };
        objects.join(&id[..2]).join(&id[2..])
    }
}
