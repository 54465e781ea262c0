//! The tools that read traces and events, as their projects publish them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use test_support::installed;

/// The folder with the tools, which `scripts/trace-tools` fills once.
fn tools() -> &'static Path {
    static TOOLS: OnceLock<PathBuf> = OnceLock::new();
    TOOLS.get_or_init(|| installed("trace-tools"))
}

/// What one of the scripts of `tests/trace-tools` reads in a text: a document a line.
#[track_caller]
pub(crate) fn read(script: &str, text: &str) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/trace-tools")
        .join(script);
    let mut child = Command::new(tools().join("venv/bin/python"))
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = text.to_owned();
    let writer = std::thread::spawn(move || {
        // A reader that fails says why itself.
        let _ = stdin.write_all(text.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let parsed = lines.lines().map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().unwrap()
}
