//! What tests of pictures and pages need of the web, installed once.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use test_support::installed;

/// The folder in whose `node_modules` the packages of tests/web-tools are, which
/// `scripts/web-tools` fills once.
pub(crate) fn tools() -> &'static Path {
    static TOOLS: OnceLock<PathBuf> = OnceLock::new();
    TOOLS.get_or_init(|| installed("web-tools"))
}

/// Runs a script of tests/web-tools with node, which gets the folder of [`tools`] as its first
/// argument and a text on standard input; returns what it printed.
#[track_caller]
pub(crate) fn node(script: &str, args: &[&str], input: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web-tools");
    let mut command = Command::new("node");
    command.arg(path.join(script)).arg(tools()).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}");
    String::from_utf8(output.stdout).unwrap()
}
