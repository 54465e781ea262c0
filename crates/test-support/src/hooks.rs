//! git's hooks in real repositories, and ledger steps made with plain git.

use std::fs;
use std::path::{Path, PathBuf};

use crate::contracts::{Format, opening};
use crate::files::script;
use crate::workflow::completed;
use crate::{Ran, TestEnvironment};

/// The hooks that run in a clone.
pub const LOCAL: [&str; 4] = [
    "pre-commit",
    "commit-msg",
    "pre-push",
    "reference-transaction",
];

/// Installs hooks into a repository's hooks folder.
pub fn install(git_dir: &Path, names: &[&str]) {
    for name in names {
        let text = fs::read(crate::project().join("hooks").join(name)).unwrap();
        script(&git_dir.join("hooks").join(name), text);
    }
}

/// A ledger with every kind of step.
pub fn every_step() -> TestEnvironment {
    TestEnvironment::prepared("every-step", made_with_every_step)
}

fn made_with_every_step() -> TestEnvironment {
    let format = |round: usize| match round % 2 {
        0 => Format::Json,
        _ => Format::Xml,
    };
    let env = completed(format);
    let run = |args: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        env.handoff(&args).success();
    };
    run("reopen 87 --as closer-agent --reason again");
    env.send(opening(88)).success();
    run("claim 88.1 --as prep-agent");
    run("extend 88.1 --as prep-agent --progress half");
    let log = env.file("build.log", "line\n".repeat(3));
    run(&format!(
        "fail 88.1 --as prep-agent --message broken --attach {log}"
    ));
    run("retry 88.1 --as issue-manager");
    run("claim 88.1 --as prep-agent --lease 10m");
    run("block 88.1 --as prep-agent --reason where");
    run("answer 88.1 there --as issue-manager");
    run("claim 88.1 --as prep-agent --lease 10m");
    env.wait_minutes(20);
    run("reap");
    run("retry 88.1 --as issue-manager");
    run("claim 88.1 --as prep-agent");
    for issue in [89, 90, 91] {
        env.send(opening(issue)).success();
    }
    run("reject 89.1 --as prep-agent --reason mine-not");
    run("cancel 90.1 --as issue-manager --reason over");
    run("claim 91.1 --as prep-agent");
    run("fail 91.1 --as prep-agent --message broken");
    run("next 91 --as orchestrator --apply");
    update_protocol(&env);
    env.assert_sound();
    env
}

/// Updates the protocol to a new version.
pub fn update_protocol(env: &TestEnvironment) {
    let folder = env.root().join("protocol");
    let copied = folder.to_str().unwrap();
    env.handoff(&["protocol", "copy", "issue-to-pr", copied])
        .success();
    let path = folder.join("protocol.json");
    let text = fs::read_to_string(&path).unwrap();
    let version = "\"version\": \"";
    assert!(text.contains(version));
    fs::write(&path, text.replacen(version, "\"version\": \"9.", 1)).unwrap();
    env.handoff(&["protocol", "update", copied]).success();
}

/// A clone with its ledger checked out in a linked worktree, and all hooks active.
pub struct Desk {
    pub env: TestEnvironment,
    pub ledger: PathBuf,
    /// The commits to reproduce here, the oldest first.
    pub steps: Vec<Original>,
}

/// A commit made by the tool.
pub struct Original {
    pub id: String,
    pub author: [String; 3],
    pub message: String,
}

impl Desk {
    /// Starts with only the first commits of the source ledger.
    pub fn new(source: &TestEnvironment, begun: usize) -> Self {
        let env = TestEnvironment::with_repository();
        let from = source.repo();
        let from = from.to_str().unwrap();
        env.git(
            &env.repo(),
            &["fetch", "-q", from, "handoffs:refs/source/handoffs"],
        );
        let listed = env.git(
            &env.repo(),
            &["rev-list", "--reverse", "refs/source/handoffs"],
        );
        let original = |id: &str| {
            let show =
                |form: &str| env.git(&env.repo(), &["log", "-1", &format!("--format={form}"), id]);
            let author = ["%an", "%ae", "@%at +0000"].map(|form| show(form).trim().to_owned());
            Original {
                id: id.to_owned(),
                author,
                message: show("%B").trim_end().to_owned() + "\n",
            }
        };
        let steps: Vec<Original> = listed.lines().map(original).collect();
        let ledger = env.root().join("ledger");
        let at = ledger.to_str().unwrap();
        match begun.checked_sub(1) {
            // `worktree add --orphan` is newer than the oldest supported git.
            None => {
                let add = ["worktree", "add", "-q", "--detach", at];
                env.git(&env.repo(), &add);
                env.git(&ledger, &["checkout", "-q", "--orphan", "handoffs"]);
                env.git(&ledger, &["rm", "-q", "-r", "-f", "--ignore-unmatch", "."])
            }
            Some(last) => {
                let tip = &steps[last].id;
                env.git(&env.repo(), &["branch", "handoffs", tip]);
                env.git(&env.repo(), &["worktree", "add", "-q", at, "handoffs"])
            }
        };
        install(&env.repo().join(".git"), &LOCAL);
        Self { env, ledger, steps }
    }

    /// Copies a step's files into the worktree and the index.
    pub fn stage(&self, step: &Original) {
        self.env
            .git(&self.ledger, &["read-tree", "--reset", "-u", &step.id]);
    }

    /// Commits what is staged with this author and further options.
    pub fn commit(&self, author: &[String; 3], message: &str, options: &[&str]) -> Ran {
        self.commit_with(&[], author, message, options)
    }

    /// Commits what is staged, without hooks.
    pub fn force(&self, author: &[String; 3], message: &str) -> Ran {
        let off = ["-c", "core.hooksPath=/dev/null"];
        self.commit_with(&off, author, message, &["--allow-empty"])
    }

    fn commit_with(
        &self,
        before: &[&str],
        author: &[String; 3],
        message: &str,
        options: &[&str],
    ) -> Ran {
        let mut command = self.env.command("git");
        let args = [before, &["commit", "-q", "-F", "-"], options].concat();
        command
            .args(&args)
            .env("GIT_AUTHOR_NAME", &author[0])
            .env("GIT_AUTHOR_EMAIL", &author[1])
            .env("GIT_AUTHOR_DATE", &author[2])
            .current_dir(&self.ledger);
        self.env.run(command, &args, Some(message.as_bytes()))
    }

    /// Writes a file of the ledger and stages it.
    pub fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        crate::files::write(&self.ledger.join(path), bytes);
        self.env.git(&self.ledger, &["add", "-f", path]);
    }

    pub fn tip(&self) -> String {
        self.env.tip()
    }
}

/// A bare repository with these hooks, as a clone's `origin`.
pub fn server(env: &TestEnvironment, hooks: &[&str]) -> PathBuf {
    let path = env.root().join("server.git");
    env.git(
        env.root(),
        &["init", "-q", "--bare", path.to_str().unwrap()],
    );
    install(&path, hooks);
    env.git(
        &env.repo(),
        &["remote", "add", "origin", path.to_str().unwrap()],
    );
    path
}
