//! Programs from npm and PyPI that tests run, and that are not part of the project.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{built, project};

pub static AGENT: Tools = Tools::new("agent-tools");
pub static GITHUB: Tools = Tools::new("github-tools");
pub static HOOK: Tools = Tools::new("hook-tools");
pub static MCP: Tools = Tools::new("mcp-tools");
pub static METRICS: Tools = Tools::new("metrics-tools");
pub static PACKAGE: Tools = Tools::new("package-tools");
pub static TRACE: Tools = Tools::new("trace-tools");
pub static WEB: Tools = Tools::new("web-tools");
pub static WORKFLOW: Tools = Tools::new("workflow-tools");

/// The packages and scripts of a folder in `tests`, at pinned versions.
pub struct Tools {
    name: &'static str,
    folder: OnceLock<PathBuf>,
}

impl Tools {
    /// The packages of the folder `tests/NAME`.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            folder: OnceLock::new(),
        }
    }

    /// The folder with `node_modules` and `venv`, which `scripts/test-tools` fills once.
    pub fn folder(&self) -> &Path {
        self.folder.get_or_init(|| {
            let installed = self.install();
            installed.unwrap_or_else(|why| panic!("{} can't be installed:\n{why}", self.name))
        })
    }

    /// Fills the folder, unless that has been done.
    ///
    /// # Errors
    /// What `scripts/test-tools` printed, if it failed.
    pub fn install(&self) -> Result<PathBuf, String> {
        let folder = built().join("../tmp").join(self.name);
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        // Other tests may need it at the same time.
        let lock = File::create(folder.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        let mut command = Command::new(project().join("scripts/test-tools"));
        let output = command.arg(self.name).arg(&folder).output().unwrap();
        if output.status.success() {
            Ok(folder)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// A script run by the packages' Python or by node, with the packages' folder as its first
    /// argument.
    pub fn command(&self, script: &str) -> Command {
        let path = project().join("tests").join(self.name).join(script);
        if script.ends_with(".py") {
            let mut command = Command::new(self.folder().join("venv/bin/python"));
            command.arg(path);
            command
        } else {
            let mut command = Command::new("node");
            command.arg(path).arg(self.folder());
            command
        }
    }

    /// Runs a script with this standard input; returns its output.
    #[track_caller]
    pub fn run(&self, script: &str, args: &[&str], input: &str) -> String {
        let mut command = self.command(script);
        command.args(args);
        answer(command, input)
    }
}

/// Runs a program with this standard input; it must succeed without error output. Returns its
/// output.
#[track_caller]
pub fn answer(mut command: Command, input: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // A reader that fails reports why itself.
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    });
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stderr.is_empty(),
        "{command:?}: {stderr}\n{input}"
    );
    String::from_utf8(output.stdout).unwrap()
}
