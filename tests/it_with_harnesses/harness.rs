//! The programs that run agents: how each is installed, pointed at the stand-in, and started.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use test_support::TestEnvironment;
use test_support::files::write;
use test_support::tools::Tools;

pub(crate) struct Harness {
    pub(crate) title: &'static str,
    /// Its command, and the name of its profile.
    pub(crate) name: &'static str,
    /// Its name for `git handoff agents install`.
    pub(crate) installed_as: &'static str,
    /// Whose server it reads too, where its own entry is for an editor.
    pub(crate) with_server: &'static [&'static str],
    /// The folder of `tests` with its packages.
    packages: &'static str,
    /// The program within the folder of its packages; `*` stands for the machine's kind.
    program: &'static str,
    /// Whether CI must have it.
    pub(crate) is_required: bool,
    /// Whether it has hooks for a session's start and stop.
    pub(crate) has_hooks: bool,
    /// Whether its profile lets an agent commit and hand on by commands; else it writes files only.
    pub(crate) by_command: bool,
    /// Whether it goes on asking a provider that says "too many requests", as long as it may.
    pub(crate) retries_for_ever: bool,
    session: &'static [&'static str],
}

const HARNESS: Harness = Harness {
    title: "",
    name: "",
    installed_as: "",
    with_server: &[],
    packages: "",
    program: "",
    is_required: false,
    has_hooks: true,
    by_command: true,
    retries_for_ever: false,
    session: &[],
};

pub(crate) static CLAUDE: Harness = Harness {
    title: "Claude Code",
    name: "claude",
    installed_as: "claude-code",
    packages: "harness-tools/claude-code",
    // The package's own program would have to be put there by a script of the package.
    program: "@anthropic-ai/claude-code-*/claude",
    is_required: true,
    session: &["--allowedTools", "Bash,mcp__git-handoff", "-p"],
    ..HARNESS
};

pub(crate) static CODEX: Harness = Harness {
    title: "Codex",
    name: "codex",
    installed_as: "codex",
    packages: "harness-tools/codex",
    program: ".bin/codex",
    is_required: true,
    by_command: false,
    session: &[
        "exec",
        "--trust",
        "--dangerously-bypass-hook-trust",
        "--sandbox",
        "danger-full-access",
    ],
    ..HARNESS
};

pub(crate) static OPENCODE: Harness = Harness {
    title: "opencode",
    name: "opencode",
    installed_as: "opencode",
    packages: "harness-tools/opencode",
    program: "opencode-*/bin/opencode",
    is_required: true,
    has_hooks: false,
    retries_for_ever: true,
    session: &["run"],
    ..HARNESS
};

pub(crate) static COPILOT: Harness = Harness {
    title: "Copilot CLI",
    name: "copilot",
    installed_as: "copilot",
    with_server: &["claude-code"],
    packages: "harness-tools/copilot",
    program: ".bin/copilot",
    session: &["--allow-all-tools", "--trust-folder", "-p"],
    ..HARNESS
};

pub(crate) static GEMINI: Harness = Harness {
    title: "Gemini CLI",
    name: "gemini",
    installed_as: "gemini",
    packages: "harness-tools/gemini",
    program: ".bin/gemini",
    session: &["--approval-mode", "yolo", "-p"],
    ..HARNESS
};

pub(crate) static QWEN: Harness = Harness {
    title: "Qwen Code",
    name: "qwen",
    installed_as: "qwen",
    packages: "harness-tools/qwen",
    program: ".bin/qwen",
    session: &["--approval-mode", "yolo", "-p"],
    ..HARNESS
};

impl Harness {
    /// Its program.
    ///
    /// # Errors
    /// Why it can't be had.
    pub(crate) fn program(&self) -> Result<PathBuf, String> {
        let folder = Tools::new(self.packages).install()?.join("node_modules");
        let Some((before, after)) = self.program.split_once('*') else {
            return Ok(folder.join(self.program));
        };
        let (parent, prefix) = before.rsplit_once('/').unwrap_or((".", before));
        let has_prefix = |name: &str| name.starts_with(prefix);
        let entries = fs::read_dir(folder.join(parent)).map_err(|e| e.to_string())?;
        let entries = entries
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(has_prefix));
        let programs = entries.map(|entry| entry.path().join(after.trim_start_matches('/')));
        // Of two, the one for older processors, which has the longer name.
        let program = programs.filter(|path| path.is_file()).max();
        program.ok_or_else(|| "its packages have no program for this machine".to_owned())
    }

    /// Prepares the home for it: its program is `bin/NAME`, and its model is at the address.
    pub(crate) fn prepare(&self, env: &TestEnvironment, address: &str) {
        let bin = env.root().join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(env.root().join("tmp")).unwrap();
        symlink(self.program().unwrap(), bin.join(self.name)).unwrap();
        let home = env.root().join("home");
        // Shells that some of them start for a command read it.
        let path = format!("export PATH='{}'\n", path(env));
        write(&home.join(".bash_profile"), path);
        let put = |name: &str, text: String| write(&home.join(name), text);
        match self.name {
            "claude" => put(
                ".claude/settings.json",
                json!({"env": {
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "3", "DISABLE_AUTOUPDATER": "1",
                    // A server that starts slowly is waited for.
                    "MCP_CONNECTION_NONBLOCKING": "false", "MCP_TIMEOUT": "120000",
                }})
                .to_string(),
            ),
            "codex" => put(
                ".codex/config.toml",
                format!(
                    "model = \"gpt-5-codex\"\nmodel_provider = \"stand-in\"\n[model_providers.stand-in]\n\
                     name = \"stand-in\"\nbase_url = \"{address}/v1\"\nenv_key = \"OPENAI_API_KEY\"\n\
                     wire_api = \"responses\"\nrequest_max_retries = 2\nstream_max_retries = 2\n"
                ),
            ),
            "opencode" => {
                // Else it tries to fetch the list of models, which takes some seconds.
                put(".cache/opencode/models.json", "{}".to_owned());
                put(
                ".config/opencode/opencode.json",
                json!({
                    "model": "local/stand-in", "small_model": "local/stand-in", "autoupdate": false, "share": "disabled",
                    "provider": {"local": {
                        "npm": "@ai-sdk/openai-compatible",
                        "options": {"baseURL": format!("{address}/v1"), "apiKey": "dummy"},
                        "models": {"stand-in": {
                            "name": "stand-in", "tool_call": true, "limit": {"context": 200_000, "output": 8000},
                        }},
                    }},
                })
                .to_string(),
                );
            }
            "gemini" | "qwen" => put(
                &format!(".{}/settings.json", self.name),
                json!({
                    "security": {"auth": {"selectedType": if self.name == "qwen" { "openai" } else { "gemini-api-key" }}},
                    "general": {"disableAutoUpdate": true, "maxAttempts": 4},
                    // It has two kinds of retries within each other: these wait for minutes.
                    "model": {"generationConfig": {"maxRetries": 0}}, "privacy": {"usageStatisticsEnabled": false},
                    "telemetry": {"enabled": false},
                    // Qwen Code offers the tools of servers only once they are searched for.
                    "tools": {"toolSearch": {"enabled": false}},
                })
                .to_string(),
            ),
            _ => {}
        }
    }

    /// What it reads from the environment.
    pub(crate) fn variables(&self, address: &str) -> Vec<(&'static str, String)> {
        let v1 = format!("{address}/v1");
        let dummy = || "dummy".to_owned();
        match self.name {
            "claude" => vec![
                ("ANTHROPIC_BASE_URL", address.to_owned()),
                ("ANTHROPIC_API_KEY", dummy()),
            ],
            "codex" => vec![("OPENAI_API_KEY", dummy())],
            "copilot" => vec![
                ("COPILOT_OFFLINE", "true".to_owned()),
                ("COPILOT_PROVIDER_BASE_URL", v1),
                ("COPILOT_PROVIDER_API_KEY", dummy()),
                ("COPILOT_PROVIDER_WIRE_API", "completions".to_owned()),
                ("COPILOT_MODEL", "gpt-5".to_owned()),
            ],
            "gemini" => vec![
                ("GOOGLE_GEMINI_BASE_URL", address.to_owned()),
                ("GEMINI_API_KEY", dummy()),
                ("GEMINI_MODEL", "gemini-2.5-pro".to_owned()),
            ],
            "qwen" => vec![
                ("OPENAI_BASE_URL", v1),
                ("OPENAI_API_KEY", dummy()),
                ("OPENAI_MODEL", "stand-in".to_owned()),
            ],
            _ => Vec::new(),
        }
    }

    /// A session as a person starts one, with this to do, that asks nobody for permission.
    pub(crate) fn session(&self, command: &mut Command, prompt: &str) {
        command.args(self.session).arg(prompt);
        // A folder that nobody trusted has no hooks, server or tools.
        if matches!(self.name, "gemini" | "qwen") {
            command.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
        }
    }
}

/// The path of commands: the harness, the program itself, the machine's.
pub(crate) fn path(env: &TestEnvironment) -> String {
    let program = Path::new(test_support::program()).parent().unwrap();
    let machine = env::var("PATH").unwrap_or_default();
    format!(
        "{}:{}:{machine}",
        env.root().join("bin").display(),
        program.display()
    )
}
