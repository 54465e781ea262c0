//! A stand-in for git-handoff that records how hooks call it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TestEnvironment;
use crate::files::script;

/// A stand-in for git-handoff in hooks: it records its arguments in `called` and its standard input
/// in `input`, and fails while a file `refuse` exists.
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

    /// Its recorded calls, one per line; clears them.
    pub fn called(&self) -> String {
        let path = self.folder.join("called");
        let called = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        called
    }

    /// The standard input of its last call.
    pub fn input(&self) -> String {
        fs::read_to_string(self.folder.join("input")).unwrap()
    }

    pub fn refuse(&self) {
        fs::write(self.folder.join("refuse"), "").unwrap();
    }
}

/// A git that claims another version, and otherwise behaves normally.
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
