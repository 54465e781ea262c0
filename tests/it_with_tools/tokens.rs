//! What tests of agents' harnesses need, installed once.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use test_support::installed;

/// The folder in whose `node_modules` the packages of tests/agent-tools are, which
/// `scripts/agent-tools` fills once.
pub(crate) fn tools() -> &'static Path {
    static TOOLS: OnceLock<PathBuf> = OnceLock::new();
    TOOLS.get_or_init(|| installed("agent-tools"))
}

/// How many tokens each text has, by a real tokenizer: the larger count of two encodings.
#[track_caller]
pub(crate) fn tokens(texts: &[String]) -> Vec<usize> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent-tools");
    let mut command = Command::new("node");
    command.arg(path.join("count-tokens.mjs")).arg(tools());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = serde_json::to_string(texts).unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "count-tokens: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}
