//! Programs that run until something happens.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::TestEnvironment;

/// A program that waits or watches.
pub struct Running {
    pub child: Child,
    pub lines: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
    /// Its stderr output before it waited.
    stderr: String,
    is_waiting: bool,
}

impl Running {
    /// Starts the program in a folder; returns once it reports that it waits, or has exited.
    pub fn start(env: &TestEnvironment, folder: &Path, args: &[&str]) -> Self {
        let mut command = env.program(args);
        command.current_dir(folder);
        command.env("GIT_HANDOFF_WORKER", crate::worker_of(folder));
        Self::of(command)
    }

    pub fn of(command: Command) -> Self {
        let mut running = Self::silent(command);
        let mut line = String::new();
        while !running.is_waiting && running.errors.read_line(&mut line).unwrap() > 0 {
            running.is_waiting = line.starts_with("waiting for changes of ");
            if !running.is_waiting {
                running.stderr += &line;
            }
            line.clear();
        }
        running
    }

    /// Starts a program that does not report when it waits.
    pub fn silent(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            lines: BufReader::new(child.stdout.take().unwrap()),
            errors: BufReader::new(child.stderr.take().unwrap()),
            child,
            stderr: String::new(),
            is_waiting: false,
        }
    }

    /// Asserts that it waits.
    #[track_caller]
    pub fn waits(mut self) -> Self {
        assert!(self.is_waiting, "it does not wait: {}", self.stderr);
        self.still_runs();
        self
    }

    /// Asserts that it still runs.
    #[track_caller]
    pub fn still_runs(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended too soon");
    }

    /// Its next line, as JSON.
    #[track_caller]
    pub fn line(&mut self) -> Value {
        let mut text = String::new();
        self.lines.read_line(&mut text).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Whether it has a file open.
    pub fn has_open(&self, name: &str) -> bool {
        let open = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        let open = open.into_iter().flatten().flatten();
        let mut targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| target.ends_with(name))
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Waits for its exit: its status, the rest of stdout, and all of stderr except the waiting
    /// report.
    pub fn end(mut self) -> (ExitStatus, String, String) {
        let (mut stdout, mut stderr) = (String::new(), self.stderr);
        self.lines.read_to_string(&mut stdout).unwrap();
        self.errors.read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap(), stdout, stderr)
    }

    /// Waits for its exit, with this exit code; returns the rest of stdout and stderr.
    #[track_caller]
    pub fn ends(self, status: i32) -> (String, String) {
        let (ended, stdout, stderr) = self.end();
        assert_eq!(ended.code(), Some(status), "{stdout}{stderr}");
        (stdout, stderr)
    }
}
