//! Remotes for tests: bare repositories, and local servers that run until they are dropped.

mod http;
mod proxy;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::TestEnvironment;

pub use http::{Access, Http};
pub use proxy::{Direction, Fault, Proxy};

/// Creates a bare repository below `served`, the folder that servers serve.
pub fn bare(env: &TestEnvironment, name: &str) -> PathBuf {
    let path = served(env).join(name);
    env.git(
        env.root(),
        &["init", "-q", "--bare", path.to_str().unwrap()],
    );
    path
}

/// Creates a bare repository as the environment repository's `origin`, and pushes `main` there.
pub fn origin(env: &TestEnvironment) -> PathBuf {
    let bare = bare(env, "server.git");
    let path = bare.to_str().unwrap();
    env.git(&env.repo(), &["remote", "add", "origin", path]);
    env.git(&env.repo(), &["push", "-q", "origin", "main"]);
    bare
}

/// The folder that servers serve.
pub fn served(env: &TestEnvironment) -> PathBuf {
    env.root().join("served")
}

/// Clones a repository into its own folder in the environment.
pub fn clone(env: &TestEnvironment, address: &str, name: &str) -> PathBuf {
    let folder = env.root().join(name);
    env.git(env.root(), &["clone", "-q", address, name]);
    folder
}

/// Puts a hook into a repository.
pub fn hook(repository: &Path, name: &str, script: &str) {
    let path = repository.join("hooks").join(name);
    crate::files::script(&path, format!("#!/bin/sh\n{script}\n"));
}

/// Takes a hook away.
pub fn unhook(repository: &Path, name: &str) {
    fs::remove_file(repository.join("hooks").join(name)).unwrap();
}

/// Gives git a user's credentials for any URL.
pub fn log_in(env: &TestEnvironment, user: &str, password: &str) {
    let helper = format!("!f() {{ echo username={user}; echo password={password}; }}; f");
    env.git(
        env.root(),
        &["config", "--global", "credential.helper", &helper],
    );
}

/// A port on which nothing listens.
pub fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// `git daemon`, killed with all its children when dropped.
pub struct Daemon {
    child: Child,
    pub port: u16,
}

impl Daemon {
    /// Serves the environment's folder; anybody may push.
    pub fn start(env: &TestEnvironment) -> Self {
        Self::with(env, &["--enable=receive-pack"])
    }

    /// Serves the environment's folder with further options of `git daemon`.
    pub fn with(env: &TestEnvironment, options: &[&str]) -> Self {
        // Another process may take the port first.
        for _ in 0..20 {
            let port = closed_port();
            let mut command = env.command("git");
            command
                .arg("daemon")
                .args(options)
                .args(["--export-all", "--reuseaddr", "--listen=127.0.0.1"])
                .arg(format!("--port={port}"))
                .arg(format!("--base-path={}", served(env).display()))
                .current_dir(env.root())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0);
            let mut daemon = Self {
                child: command.spawn().unwrap(),
                port,
            };
            while daemon.child.try_wait().unwrap().is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return daemon;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        panic!("git daemon does not start");
    }

    pub fn address(&self, name: &str) -> String {
        address("git", self.port, name)
    }

    /// Kills it with its children.
    pub fn kill(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        // It may have exited by itself.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The URL of a repository behind a port.
pub fn address(scheme: &str, port: u16, name: &str) -> String {
    format!("{scheme}://127.0.0.1:{port}/{name}")
}

/// Asserts that a repository passes `git fsck`.
pub fn assert_whole(env: &TestEnvironment, repository: &Path) {
    let fsck = env.git_any(repository, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(fsck.status, 0, "{}{}", fsck.stdout, fsck.stderr);
    assert!(!fsck.stderr.contains("warning"), "{}", fsck.stderr);
}

/// The ledger's branch of a repository; empty if there is none.
pub fn tip(env: &TestEnvironment, repository: &Path) -> String {
    let args = ["rev-parse", "--verify", "-q", "refs/heads/handoffs"];
    env.git_any(repository, &args).stdout.trim().to_owned()
}
