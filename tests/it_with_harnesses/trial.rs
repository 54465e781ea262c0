//! A repository with a remote, a ledger, and what a harness reads; work that waits for prep-agent.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use test_support::contracts::opening;
use test_support::remote::origin;
use test_support::{Ran, TestEnvironment};

use crate::harness::{Harness, path};
use crate::model::Model;

pub(crate) struct Trial {
    pub(crate) harness: &'static Harness,
    pub(crate) model: Model,
    pub(crate) env: TestEnvironment,
    pub(crate) server: PathBuf,
}

impl Trial {
    /// With these options of `agents install`.
    pub(crate) fn new(harness: &'static Harness, options: &[&str]) -> Self {
        let env = TestEnvironment::with_repository();
        let server = origin(&env);
        let model = Model::start();
        harness.prepare(&env, &model.address);
        let trial = Self {
            harness,
            model,
            env,
            server,
        };
        trial.handoff(&["init", "--remote", "origin"]).success();
        let mut args = vec!["agents", "install", harness.installed_as];
        args.extend(options);
        trial.handoff(&args).success();
        let repo = trial.env.repo();
        // Gemini CLI's commands do not see what a user has configured for all repositories.
        for (key, value) in [
            ("user.name", "Robin Doe"),
            ("user.email", "robin@example.com"),
        ] {
            trial.env.git(&repo, &["config", key, value]);
        }
        trial.env.git(&repo, &["add", "-A"]);
        trial
            .env
            .git(&repo, &["commit", "-q", "-m", "What agents read"]);
        trial.env.git(&repo, &["push", "-q", "origin", "main"]);
        trial
    }

    /// A command of this trial, by the true clock.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.env.command(program);
        command
            .env_remove("GIT_AUTHOR_DATE")
            .env_remove("GIT_COMMITTER_DATE")
            .env("PATH", path(&self.env))
            .env("TMPDIR", self.env.root().join("tmp"))
            .env("TERM", "dumb")
            .envs(self.harness.variables(&self.model.address));
        command
    }

    /// `git handoff` with these arguments.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = self.command(test_support::program());
        command.args(args);
        command
    }

    pub(crate) fn handoff(&self, args: &[&str]) -> Ran {
        self.env.run(self.program(args), args, None)
    }

    /// The data of a command's document.
    pub(crate) fn data(&self, args: &[&str]) -> Value {
        let all = [args, &["--json"]].concat();
        self.handoff(&all).success().json()["data"].take()
    }

    /// Opens an issue: its first handoff waits for prep-agent.
    pub(crate) fn open(&self, issue: u32) {
        let args = ["send", "-"];
        let contract = opening(issue);
        let ran = self
            .env
            .run(self.program(&args), &args, Some(contract.as_bytes()));
        ran.success();
    }

    /// The state of a handoff.
    pub(crate) fn state(&self, id: &str) -> String {
        let record = self.data(&["show", id]);
        let state = &record["handoff"]["state"];
        state.as_str().unwrap_or_default().to_owned()
    }

    /// The processes of this trial that still run, by their command lines.
    pub(crate) fn processes(&self) -> Vec<String> {
        let root = self.env.root().to_str().unwrap();
        let home = format!("HOME={root}/home");
        let read = |path: PathBuf| {
            let bytes = fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let folders = processes.map(|process| process.path());
        let own = folders.filter(|folder| {
            let is_it = |variable: &str| variable == home;
            read(folder.join("environ")).split('\0').any(is_it)
        });
        let lines = own.map(|folder| read(folder.join("cmdline")).replace('\0', " "));
        lines.filter(|line| !line.is_empty()).collect()
    }
}
