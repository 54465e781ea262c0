//! A hermetic environment: a temporary folder, real git, the real program, a cleared environment,
//! and a clock that only tests advance.

#[cfg(unix)]
pub mod agents;
pub mod collector;
pub mod contracts;
pub mod dice;
pub mod events;
pub mod exchange;
#[cfg(unix)]
pub mod failure;
pub mod files;
#[cfg(unix)]
pub mod hooks;
pub mod mcp;
mod output_schema;
mod prepared;
pub mod proof;
#[cfg(unix)]
pub mod remote;
pub mod repository_kind;
#[cfg(unix)]
pub mod running;
#[cfg(unix)]
pub mod stand_in;
pub mod tamper;
pub mod team;
#[cfg(unix)]
pub mod terminal;
pub mod time;
pub mod tools;
pub mod workflow;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub use output_schema::{shape, stored, stored_issue};

/// 2026-03-02T09:00:00Z, a Monday morning.
const START: i64 = 1_772_442_000;

/// The project's folder.
pub fn project() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap()
}

/// The folder that cargo builds into: the test binary is in its `deps`.
fn built() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
        let own = std::env::current_exe().unwrap();
        own.ancestors().nth(2).unwrap().to_owned()
    });
    &BUILT
}

/// The program, which cargo builds before its package's tests.
pub fn program() -> &'static str {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let name = format!("git-handoff{}", std::env::consts::EXE_SUFFIX);
        built().join(name)
    });
    PROGRAM.to_str().unwrap()
}

/// Longer than any success takes, even on a busy machine; ends hanging tests.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Polls until a condition holds.
#[track_caller]
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A folder with a home and repositories, and its own clock.
pub struct TestEnvironment {
    _folder: TempDir,
    root: PathBuf,
    now: AtomicI64,
    pace: AtomicI64,
}

/// A command's output and exit status.
pub struct Ran {
    args: Vec<String>,
    pub shown: String,
    pub stdout: String,
    pub stderr: String,
    pub status: i32,
}

impl Drop for TestEnvironment {
    fn drop(&mut self) {
        if repository_kind::is_reftable() && !thread::panicking() {
            repository_kind::assert_no_ref_is_a_file(&self.root);
        }
    }
}

impl TestEnvironment {
    /// Creates an environment without a repository.
    pub fn new() -> Self {
        let env = Self::empty();
        fs::create_dir(env.root.join("home")).unwrap();
        let config = "[user]\n\tname = Robin Doe\n\temail = robin@example.com\n\
                      [init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n";
        let config = config.to_owned() + repository_kind::config();
        fs::write(env.root.join("home/.gitconfig"), config).unwrap();
        env
    }

    fn empty() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("handoff-")
            .tempdir()
            .unwrap();
        Self {
            root: folder.path().canonicalize().unwrap(),
            _folder: folder,
            now: AtomicI64::new(START),
            pace: AtomicI64::new(60),
        }
    }

    /// A copy of an environment that is created once per test run. It has a repository; paths in
    /// the copy's text files are adjusted.
    pub fn prepared(kind: &str, make: impl FnOnce() -> Self) -> Self {
        let env = Self::empty();
        let clock = "clock";
        let make = |to: &Path| {
            let made = make();
            files::copy(&made.root, to);
            let pace = made.pace.load(Ordering::Relaxed);
            let then = serde_json::to_string(&(made.now(), pace, &made.root)).unwrap();
            fs::write(to.join(clock), then).unwrap();
        };
        prepared::copy(kind, make, &env.root);
        let clock = env.root.join(clock);
        let then = serde_json::from_slice(&fs::read(&clock).unwrap()).unwrap();
        let (now, pace, root): (i64, i64, String) = then;
        fs::remove_file(clock).unwrap();
        files::rename_in(&env.root, &root, env.root.to_str().unwrap());
        // The index has the originals' file stats, not the copies'.
        for entry in fs::read_dir(&env.root).unwrap() {
            let path = entry.unwrap().path();
            if path.join(".git/index").exists() {
                env.git(&path, &["update-index", "-q", "--refresh"]);
            }
        }
        env.now.store(now, Ordering::Relaxed);
        env.pace(pace);
        env
    }

    /// Creates an environment with a repository `repo` that has one commit.
    pub fn with_repository() -> Self {
        Self::prepared("repository", || {
            let env = Self::new();
            env.git(&env.root, &["init", "-q", "repo"]);
            fs::write(env.repo().join("README.md"), "# Parcel desk\n").unwrap();
            env.git(&env.repo(), &["add", "."]);
            env.git(&env.repo(), &["commit", "-q", "-m", "Start"]);
            env
        })
    }

    /// Creates an environment with a repository that has a ledger.
    pub fn with_ledger() -> Self {
        Self::prepared("ledger", || {
            let env = Self::with_repository();
            env.handoff(&["init", "--evidence", "off"]).success();
            env
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn repo(&self) -> PathBuf {
        self.root.join("repo")
    }

    /// Advances the clock.
    pub fn wait_minutes(&self, minutes: i64) {
        self.wait(minutes * 60);
    }

    /// Advances the clock by seconds; backwards if negative.
    pub fn wait(&self, seconds: i64) {
        self.now.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Sets by how many seconds each command advances the clock.
    pub fn pace(&self, seconds: i64) {
        self.pace.store(seconds, Ordering::Relaxed);
    }

    /// The environment's time, in Unix seconds.
    pub fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Writes a file in the root folder and returns its path.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.root.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A command in the repository and this environment, after the clock advanced by the pace (a
    /// minute by default). Its worker has a fixed name.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let pace = self.pace.load(Ordering::Relaxed);
        let now = self.now.fetch_add(pace, Ordering::Relaxed) + pace;
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", built().display());
        let home = self.root.join("home");
        let repo = self.repo();
        let dir = if repo.is_dir() { &repo } else { &self.root };
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", &home)
            // In memory, if the tests are: scratch repositories are made and deleted in it.
            .env("TMPDIR", std::env::temp_dir())
            .env("GIT_CONFIG_GLOBAL", home.join(".gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_DATE", format!("@{now} +0000"))
            .env("GIT_COMMITTER_DATE", format!("@{now} +0000"))
            .env("GIT_CEILING_DIRECTORIES", &self.root)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_HANDOFF_WORKER", "repo")
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .current_dir(dir)
            .stdin(Stdio::null());
        repository_kind::set(&mut command);
        command
    }

    /// Runs the shell blocks of a project document in order, as one script that stops at the first
    /// failure; returns its output.
    ///
    /// # Panics
    /// If the script fails, or the document has no such block.
    pub fn follow(&self, document: &str) -> String {
        let text = fs::read_to_string(project().join(document)).unwrap();
        let blocks = text.split("\n```sh\n").skip(1);
        let blocks: Vec<&str> = blocks.map(|b| b.split("\n```\n").next().unwrap()).collect();
        assert!(!blocks.is_empty(), "{document} has no shell block");
        let script = self.root.join("followed.sh");
        fs::write(&script, format!("set -eu\n{}\n", blocks.join("\n"))).unwrap();
        let mut command = self.command("sh");
        // With one pipe for both, output stays in order.
        let run = format!("exec 2>&1; . {}", script.display());
        let ran = command.args(["-c", &run]).output().unwrap();
        let printed = String::from_utf8(ran.stdout).unwrap();
        assert!(ran.status.success(), "{document}:\n{printed}");
        printed
    }

    /// The program, not started yet.
    pub fn program(&self, args: &[&str]) -> Command {
        let mut command = self.command(program());
        command.args(args);
        command
    }

    /// Runs `git handoff` with these arguments in the repository.
    pub fn handoff(&self, args: &[&str]) -> Ran {
        self.run(self.program(args), args, None)
    }

    /// Runs `git handoff` in another folder.
    pub fn handoff_in(&self, dir: &Path, args: &[&str]) -> Ran {
        let mut command = self.program(args);
        command.current_dir(dir);
        repository_kind::name_bare(&mut command, dir);
        command.env("GIT_HANDOFF_WORKER", worker_of(dir));
        self.run(command, args, None)
    }

    /// Runs `git handoff` with this standard input.
    pub fn handoff_with(&self, args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        self.run(self.program(args), args, Some(input.as_ref()))
    }

    /// Sends a contract.
    pub fn send(&self, contract: impl AsRef<[u8]>) -> Ran {
        self.handoff_with(&["send", "-"], contract)
    }

    /// Claims as an agent.
    pub fn claim(&self, id: &str, agent: &str) -> Ran {
        self.handoff(&["claim", id, "--as", agent])
    }

    /// The data of a command's JSON document, which must report success.
    pub fn data(&self, args: &[&str]) -> Value {
        let mut all = args.to_vec();
        all.push("--json");
        let mut document = self.handoff(&all).success().json();
        assert_eq!(document["schema"], "git-handoff/2");
        assert_eq!(document["ok"], true);
        document["data"].take()
    }

    /// Runs a command to its end and collects its output.
    pub fn run(&self, mut command: Command, args: &[&str], input: Option<&[u8]>) -> Ran {
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take();
        let output = thread::scope(|scope| {
            if let (Some(stdin), Some(input)) = (stdin.take(), input) {
                // If the reader stops early, writing fails harmlessly.
                scope.spawn(move || {
                    let mut stdin = stdin;
                    let _ = stdin.write_all(input);
                });
            }
            child.wait_with_output().unwrap()
        });
        self.ran(args, &output)
    }

    fn ran(&self, args: &[&str], output: &Output) -> Ran {
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = output.status.code().unwrap_or(-1);
        let quote = |arg: &&str| {
            if arg.contains(' ') {
                format!("'{arg}'")
            } else {
                (*arg).to_owned()
            }
        };
        let words: Vec<String> = args.iter().map(quote).collect();
        let mut shown = format!("$ git handoff {}\n{stdout}", words.join(" "));
        if !stderr.is_empty() {
            shown += &format!("--- stderr\n{stderr}");
        }
        if status != 0 {
            shown += &format!("--- exit {status}\n");
        }
        Ran {
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            shown: self.filtered(&shown),
            stdout,
            stderr,
            status,
        }
    }

    /// Text with this folder's name, commit ids and digests replaced.
    pub fn filtered(&self, text: &str) -> String {
        let text = text.replace(self.root.to_str().unwrap(), "[root]");
        let mut out = String::with_capacity(text.len());
        let mut word = String::new();
        for c in text.chars().chain(['\0']) {
            if c.is_ascii_alphanumeric() {
                word.push(c);
                continue;
            }
            let hex = word.bytes().all(|b| b"0123456789abcdef".contains(&b));
            match word.len() {
                10 | 40 if hex => out.push_str("[commit]"),
                64 if hex && self.is_object(&word) => out.push_str("[commit]"),
                64 if hex => out.push_str("[sha256]"),
                _ => out.push_str(&word),
            }
            word.clear();
            out.push(c);
        }
        out.pop();
        out
    }

    /// Whether a repository here has an object with this id, which may also be a digest.
    fn is_object(&self, id: &str) -> bool {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut folders = entries.map(|entry| entry.path());
        repository_kind::is_sha256() && folders.any(|folder| self.has_object(&folder, id))
    }

    /// Whether a folder's repository has an object; asks git only if there is no loose object of
    /// that name.
    fn has_object(&self, folder: &Path, id: &str) -> bool {
        let own = folder.join(".git");
        let git_dir = if own.is_dir() { &own } else { folder };
        let objects = git_dir.join("objects");
        if objects.join(&id[..2]).join(&id[2..]).is_file() {
            return true;
        }
        let is_filled =
            |folder: &Path| fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
        let has_others = objects.join("info/alternates").exists();
        if !own.is_file() && !has_others && !is_filled(&objects.join("pack")) {
            return false;
        }
        let mut git = self.command("git");
        git.args(["cat-file", "-e", id]).current_dir(folder);
        repository_kind::name_bare(&mut git, folder);
        // Without this, a partial clone would fetch the object.
        git.env("GIT_NO_LAZY_FETCH", "1");
        self.now
            .fetch_sub(self.pace.load(Ordering::Relaxed), Ordering::Relaxed);
        // The folder may be removed meanwhile.
        git.output().is_ok_and(|output| output.status.success())
    }

    /// Runs git, which must succeed; returns its output.
    pub fn git(&self, dir: &Path, args: &[&str]) -> String {
        let ran = self.git_any(dir, args);
        assert_eq!(ran.status, 0, "git {args:?}: {}", ran.stderr);
        ran.stdout
    }

    /// Runs git, whatever its exit code.
    pub fn git_any(&self, dir: &Path, args: &[&str]) -> Ran {
        let mut command = self.command("git");
        command.args(args).current_dir(dir);
        repository_kind::name_bare(&mut command, dir);
        let output = command.output().unwrap();
        self.ran(args, &output)
    }

    /// The tip of the ledger's branch.
    pub fn tip(&self) -> String {
        let args = ["rev-parse", "--verify", "-q", "refs/heads/handoffs"];
        self.git_any(&self.repo(), &args).stdout.trim().to_owned()
    }

    /// Asserts that the ledger passes its own audit and `git fsck`.
    pub fn assert_sound(&self) {
        let verify = self.handoff(&["verify"]);
        assert_eq!(verify.status, 0, "{}", verify.shown);
        let fsck = self.git_any(&self.repo(), &["fsck", "--strict", "--no-dangling"]);
        assert_eq!(fsck.status, 0, "{}{}", fsck.stdout, fsck.stderr);
        assert!(!fsck.stderr.contains("warning"), "{}", fsck.stderr);
    }
}

/// The worker id in a folder: the name of its worktree or repository.
pub fn worker_of(dir: &Path) -> String {
    let is_root = |dir: &&Path| dir.join(".git").exists() || dir.join("HEAD").exists();
    let root = dir.ancestors().find(is_root).unwrap_or(dir);
    let name = root.file_name().unwrap().to_str().unwrap();
    name.trim_start_matches('.').replace(' ', "-")
}

impl Ran {
    /// Asserts that it succeeded.
    #[track_caller]
    pub fn success(self) -> Self {
        self.exits(0)
    }

    /// Asserts an exit code.
    #[track_caller]
    pub fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}", self.shown);
        self
    }

    /// Asserts that the error output contains a text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.shown.contains(text), "no {text:?} in:\n{}", self.shown);
        self
    }

    /// Standard output as one JSON document, validated against the command's schema.
    #[track_caller]
    pub fn json(&self) -> Value {
        let value = match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("{error}:\n{}", self.shown),
        };
        output_schema::check(&self.args, &value);
        value
    }

    /// Standard output as lines of JSON, each validated against the command's schema.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines().map(|line| {
            let value = serde_json::from_str(line).unwrap();
            output_schema::check(&self.args, &value);
            value
        });
        lines.collect()
    }
}
