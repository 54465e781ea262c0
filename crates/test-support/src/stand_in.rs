//! Hooks at work: a program in git-handoff's place that keeps what it was given.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TestEnvironment;
use crate::files::script;

/// A program that stands in for git-handoff when git runs hooks: it keeps its arguments in `called`
/// and its standard input in `input`, and refuses while there is a file `refuse`.
pub struct StandIn {
    pub folder: PathBuf,
}

impl StandIn {
    pub fn new(env: &TestEnvironment) -> Self {
        let folder = env.root().join("stand-in");
        let here = folder.display();
        script(
            &folder.join("git-handoff"),
            format!(
                "#!/bin/sh\necho \"$*\" >>'{here}/called'\ncat >'{here}/input'\n\
                 test ! -e '{here}/refuse' || {{ echo refused >&2; exit 1; }}\n"
            ),
        );
        Self { folder }
    }

    /// A git command that finds the stand-in.
    pub fn git(&self, env: &TestEnvironment, dir: &Path, args: &[&str]) -> Command {
        let mut command = env.command("git");
        let path = std::env::var("PATH").unwrap();
        command
            .args(args)
            .current_dir(dir)
            .env("PATH", format!("{}:{path}", self.folder.display()));
        command
    }

    /// What it was called with so far, a line for each call; forgets it.
    pub fn called(&self) -> String {
        let path = self.folder.join("called");
        let called = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        called
    }

    /// What it read when it was called last.
    pub fn input(&self) -> String {
        fs::read_to_string(self.folder.join("input")).unwrap()
    }

    pub fn refuse(&self) {
        fs::write(self.folder.join("refuse"), "").unwrap();
    }
}

/// A git that says that it is of another version, and is the usual one otherwise.
pub fn git_of_version(env: &TestEnvironment, version: &str) -> PathBuf {
    let folder = env.root().join(format!("git-{version}"));
    let path = std::env::var("PATH").unwrap();
    let git = std::env::split_paths(&path)
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file());
    script(
        &folder.join("git"),
        format!(
            "#!/bin/sh\nfor word do test \"$word\" != version || {{ echo git version {version}; exit; }}; done\n\
             exec '{}' \"$@\"\n",
            git.unwrap().display()
        ),
    );
    folder
}
