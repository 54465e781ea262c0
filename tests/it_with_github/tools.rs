//! What the tests of GitHub need beside Rust and git, installed once.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use test_support::installed;

/// The folder that `scripts/github-tools` fills once: `node_modules` and `venv`.
pub(crate) fn tools() -> &'static Path {
    static TOOLS: OnceLock<PathBuf> = OnceLock::new();
    TOOLS.get_or_init(|| installed("github-tools"))
}

/// Runs a script of tests/github-tools: with node, which gets the folder of [`tools`] as its first
/// argument, or with Python; returns what it printed.
#[track_caller]
pub(crate) fn script(name: &str, args: &[&str], input: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/github-tools");
    let mut command = match name.ends_with(".py") {
        true => Command::new(tools().join("venv/bin/python")),
        false => Command::new("node"),
    };
    command.arg(path.join(name));
    if !name.ends_with(".py") {
        command.arg(tools());
    }
    command.args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A YAML file as data. YAML takes the key `on` for true.
pub(crate) fn yaml(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&script("read-yaml.py", &[], &text)).unwrap()
}
