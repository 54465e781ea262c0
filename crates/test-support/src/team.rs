//! Helpers for tests of whole protocols: sending, refusals, states, and concurrent processes.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use serde_json::Value;

use crate::{Ran, TestEnvironment};

/// The built-in protocols.
pub const BUILT_IN: [&str; 5] = [
    "issue-to-pr",
    "orchestrator-specialist",
    "task-breakdown",
    "delegation",
    "directive",
];

/// A repository whose ledger has this protocol. If its agents have only half a minute to claim,
/// each command takes a second.
pub fn with_protocol(name: &str) -> TestEnvironment {
    TestEnvironment::prepared(name, || {
        let env = TestEnvironment::with_repository();
        env.handoff(&["init", "--protocol", name, "--evidence", "off"])
            .success();
        if name == "task-breakdown" {
            env.pace(1);
        }
        env
    })
}

/// Sends a contract that must be accepted; returns the answer's data.
#[track_caller]
pub fn sent(env: &TestEnvironment, contract: impl AsRef<[u8]>) -> Value {
    let ran = env.handoff_with(&["send", "-", "--json"], contract);
    ran.success().json()["data"].take()
}

/// Runs a command that must succeed.
#[track_caller]
pub fn run(env: &TestEnvironment, line: &str) -> Ran {
    let args: Vec<&str> = line.split(' ').collect();
    env.handoff(&args).success()
}

/// A refusal: exit code, error code, and each finding as `code path: message`.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    pub exit: i32,
    pub code: String,
    pub message: String,
    pub hint: String,
    pub findings: Vec<String>,
}

impl Refused {
    #[track_caller]
    pub fn of(ran: &Ran) -> Self {
        assert_ne!(ran.status, 0, "{}", ran.shown);
        let document = ran.json();
        assert_eq!(document["ok"], false, "{}", ran.shown);
        let error = &document["error"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings = error["findings"].as_array().unwrap();
        let line = |f: &Value| {
            let place = match text(&f["path"]) {
                none if none.is_empty() => none,
                path => format!(" {path}"),
            };
            format!("{}{place}: {}", text(&f["code"]), text(&f["message"]))
        };
        Self {
            exit: ran.status,
            code: text(&error["code"]),
            message: text(&error["message"]),
            hint: text(&error["hint"]),
            findings: findings.iter().map(line).collect(),
        }
    }

    /// Exit code and error code.
    pub fn says(&self) -> (i32, &str) {
        (self.exit, &self.code)
    }

    /// The codes of the findings.
    pub fn codes(&self) -> Vec<&str> {
        let codes = self.findings.iter().map(|f| f.split([' ', ':']).next());
        codes.map(Option::unwrap).collect()
    }
}

/// Sends a contract that must be refused without a trace.
#[track_caller]
pub fn refused(env: &TestEnvironment, args: &[&str], contract: impl AsRef<[u8]>) -> Refused {
    let before = env.tip();
    let mut all = vec!["send", "-", "--json"];
    all.extend(args);
    let refused = Refused::of(&env.handoff_with(&all, contract));
    assert_eq!(env.tip(), before, "a refusal writes nothing");
    refused
}

/// Runs a command that must be refused without a trace.
#[track_caller]
pub fn refused_command(env: &TestEnvironment, line: &str) -> Refused {
    let before = env.tip();
    let mut args: Vec<&str> = line.split(' ').collect();
    args.push("--json");
    let refused = Refused::of(&env.handoff(&args));
    assert_eq!(env.tip(), before, "a refusal writes nothing");
    refused
}

/// An issue's handoffs by `status`, one line each: `N state with AGENT`.
#[track_caller]
pub fn states(env: &TestEnvironment, issue: &str) -> Vec<String> {
    let data = env.data(&["status", issue]);
    let handoffs = data["handoffs"].as_array().unwrap();
    let line = |h: &Value| {
        let text = |key: &str| h[key].as_str().unwrap().to_owned();
        let id = text("id");
        let number = id.rsplit('.').next().unwrap();
        format!("{number} {} with {}", text("state"), text("to"))
    };
    handoffs.iter().map(line).collect()
}

/// The record of a handoff.
#[track_caller]
pub fn record(env: &TestEnvironment, id: &str) -> Value {
    crate::stored(&env.data(&["show", id]))
}

/// How many commits the ledger has.
pub fn commits(env: &TestEnvironment) -> usize {
    commits_in(env, &env.repo())
}

/// How many commits the ledger of a repository has.
pub fn commits_in(env: &TestEnvironment, repo: &Path) -> usize {
    let count = env.git(repo, &["rev-list", "--count", "handoffs"]);
    count.trim().parse().unwrap()
}

/// The values of a trailer in the newest commit.
pub fn trailers(env: &TestEnvironment, name: &str) -> Vec<String> {
    let format = format!("--format=%(trailers:key={name},valueonly)");
    let shown = env.git(&env.repo(), &["log", "-1", &format, "handoffs"]);
    let lines = shown.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// Starts all commands before waiting for any.
pub fn at_once(env: &TestEnvironment, all: &[Vec<impl AsRef<OsStr>>]) -> Vec<Output> {
    let start = |args: &Vec<_>| -> Child {
        let mut command = env.program(&[]);
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<Child> = all.iter().map(start).collect();
    let end = |child: Child| child.wait_with_output().unwrap();
    children.into_iter().map(end).collect()
}

/// The sorted exit codes.
pub fn exits(outputs: &[Output]) -> Vec<i32> {
    let mut codes: Vec<i32> = outputs.iter().filter_map(|o| o.status.code()).collect();
    codes.sort_unstable();
    codes
}

/// Their output, for assertion messages.
pub fn said(outputs: &[Output]) -> String {
    let show = |o: &Output| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!(
            "{:?} {}{}",
            o.status.code(),
            text(&o.stdout),
            text(&o.stderr)
        )
    };
    outputs.iter().map(show).collect()
}

/// A copy of a built-in protocol, to be edited.
pub struct Folder<'e> {
    env: &'e TestEnvironment,
    name: String,
}

impl<'e> Folder<'e> {
    /// A new folder.
    pub fn new(env: &'e TestEnvironment, name: &str) -> Self {
        let name = name.to_owned();
        Self { env, name }
    }

    pub fn copy(env: &'e TestEnvironment, protocol: &str, name: &str) -> Self {
        let folder = Self::new(env, name);
        env.handoff(&["protocol", "copy", protocol, &folder.path()])
            .success();
        folder
    }

    pub fn path(&self) -> String {
        let path = self.env.root().join(&self.name);
        path.to_str().unwrap().to_owned()
    }

    pub fn write(&self, file: &str, bytes: impl AsRef<[u8]>) {
        crate::files::write(&Path::new(&self.path()).join(file), bytes);
    }

    pub fn read(&self, file: &str) -> Value {
        let bytes = fs::read(Path::new(&self.path()).join(file)).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    pub fn remove(&self, file: &str) {
        fs::remove_file(Path::new(&self.path()).join(file)).unwrap();
    }

    /// Edits one of its JSON files.
    pub fn edit(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let mut value = self.read(file);
        change(&mut value);
        self.write(file, value.to_string());
    }

    /// Edits its definition.
    pub fn define(&self, change: impl FnOnce(&mut Value)) {
        self.edit("protocol.json", change);
    }

    /// Adds it to the ledger, or updates it.
    pub fn put(&self, action: &str) -> Ran {
        self.env.handoff(&["protocol", action, &self.path()])
    }

    /// Runs such a command, which must be refused without a trace.
    #[track_caller]
    pub fn refused(&self, action: &str) -> Refused {
        let before = self.env.tip();
        let args = ["protocol", action, &self.path(), "--json"];
        let refused = Refused::of(&self.env.handoff(&args));
        assert_eq!(self.env.tip(), before);
        refused
    }
}
