//! A network that has loopback only: a test runs again in a process that has no other.

use std::env;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use rustix::process::getuid;

/// Set in the process that has such a network.
const ALONE: &str = "GIT_HANDOFF_TEST_ALONE";

/// Whether this process has loopback only.
pub(crate) fn is_alone() -> bool {
    env::var_os(ALONE).is_some()
}

/// Why no process can have such a network here; none if it can.
pub(crate) fn missing() -> Option<&'static str> {
    static MISSING: LazyLock<Option<String>> = LazyLock::new(|| {
        let probe = in_own_network("true").stdin(Stdio::null()).output();
        let output = match probe {
            Ok(output) if output.status.success() => return None,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("unshare: {error}"),
        };
        Some(format!("there is no network of its own: {output}"))
    });
    MISSING.as_deref()
}

/// A command in a network of its own.
fn in_own_network(program: &str) -> Command {
    let mut command = Command::new("unshare");
    let options = if getuid().is_root() { "-n" } else { "-rn" };
    let script = "ip link set lo up && exec \"$0\" \"$@\"";
    command.args([options, "sh", "-c", script, program]);
    command
}

/// Runs a test of this binary there, which must succeed.
pub(crate) fn run_alone(test: &str) {
    let own = env::current_exe().unwrap();
    let mut command = in_own_network(own.to_str().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1");
    // Codex's sandbox has a `/dev` of its own, in which nothing below `/dev/shm` is found.
    if env::temp_dir().starts_with("/dev") {
        command.env("TMPDIR", "/tmp");
    }
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success() && stdout.contains("1 passed");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(passed, "{stdout}{stderr}");
}
