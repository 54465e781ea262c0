//! Finds installations that would silently not work; each finding has a fix.

use std::path::{Path, PathBuf};

use handoff::base::finding::{Finding, FindingCode, Severity};
use handoff::contract::edit;
use serde_json::Value;

use super::placement::{TEXT_FILE, installed_names, place};
use super::{Acts, Harness, Hooks, SKILL, calls_us, guide, leftovers};

/// Facts that only the command line can provide.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The root of the worktree.
    pub root: PathBuf,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The program found on the harness's PATH, with its version.
    pub program: Option<(PathBuf, Option<String>)>,
    /// This program's version.
    pub version: String,
    /// The agent set in the environment.
    pub agent: Option<String>,
    /// The agents of the ledger; `None` without a ledger.
    pub agents: Option<Vec<String>>,
    /// The version that a harness's program on the PATH reports.
    pub harness_program: Option<String>,
    /// Installed paths that git ignores.
    pub ignored: Vec<String>,
}

/// Checks a harness's installation.
pub fn examine(harness: &Harness, around: &Surroundings) -> Vec<Finding> {
    let mut examination = Examination {
        harness,
        around,
        install: format!("`git handoff agents install {}`", harness.name),
        found: Vec::new(),
    };
    examination.program();
    examination.instructions();
    examination.skill();
    examination.hooks();
    examination.switches();
    examination.files();
    examination.version();
    examination.consents();
    examination.found
}

struct Examination<'a> {
    harness: &'a Harness,
    around: &'a Surroundings,
    /// The command that installs this version's files.
    install: String,
    found: Vec<Finding>,
}

impl<'a> Examination<'a> {
    fn error(&mut self, code: FindingCode, path: &str, text: impl Into<String>, fix: &str) {
        self.found.push(Finding::error(code, path, text).fix(fix));
    }

    /// Adds an error that reinstalling fixes.
    fn reinstall(&mut self, code: FindingCode, path: &str, text: impl Into<String>) {
        let fix = self.install.clone();
        self.error(code, path, text, &fix);
    }

    fn warn(&mut self, code: FindingCode, path: &str, text: &str, fix: &str) {
        self.found.push(Finding {
            severity: Severity::Warning,
            ..Finding::error(code, path, text).fix(fix)
        });
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        handoff::git::read_regular(&self.around.root.join(path)).ok()
    }

    fn program(&mut self) {
        match &self.around.program {
            None => self.error(
                FindingCode::AgentsProgram,
                "",
                "git-handoff is not on the PATH here, and hooks without it do nothing",
                "add its folder to the PATH that the harness is started with",
            ),
            Some((path, version)) if version.as_deref() != Some(&self.around.version) => {
                let shown = version.as_deref().unwrap_or("something else");
                let (path, own) = (path.display(), &self.around.version);
                self.error(
                    FindingCode::AgentsVersion,
                    "",
                    format!("{path} is {shown}, and this is {own}"),
                    "put the one that is meant first on the PATH",
                );
            }
            Some(_) => {}
        }
        if self.around.agents.is_none() {
            self.error(
                FindingCode::AgentsNoLedger,
                "",
                "there is no ledger here, and hooks say nothing",
                "`git handoff status` says how to start one, or to take over a remote's",
            );
        }
    }

    fn instructions(&mut self) {
        let mut names = installed_names(&self.around.root);
        names.insert(self.harness.name.clone());
        let path = place(self.harness, &self.around.root, &names);
        let import = self.harness.import.as_deref();
        let import = import.filter(|_| path == self.harness.instructions);
        let bytes = self.read(path).unwrap_or_default();
        match guide::names(&bytes) {
            Err(fault) => {
                let text = format!("the block has no clear boundaries: {fault}");
                let fix = format!(
                    "put the missing line back, or take the block out by hand, then {}",
                    self.install
                );
                self.error(FindingCode::AgentsMarker, path, text, &fix);
            }
            Ok(names)
                if !names
                    .as_ref()
                    .is_some_and(|names| names.contains(&self.harness.name)) =>
            {
                self.reinstall(
                    FindingCode::AgentsBlock,
                    path,
                    "it has no block for this harness",
                );
            }
            Ok(_) if !guide::is_current(&bytes, import) => {
                let text = "its block is not the one that this version writes";
                self.reinstall(FindingCode::AgentsBlock, path, text);
            }
            Ok(_) if import.is_some() => {
                let text = self.read(TEXT_FILE).unwrap_or_default();
                if !guide::is_same(&text, &guide::imported()) {
                    let text = "it is not the text that this version writes";
                    self.reinstall(FindingCode::AgentsBlock, TEXT_FILE, text);
                }
            }
            Ok(_) => {}
        }
    }

    fn skill(&mut self) {
        let Some(path) = &self.harness.skill else {
            return;
        };
        match self.read(path) {
            Some(bytes) if guide::is_same(&bytes, SKILL) => {}
            Some(_) => {
                let text = "the skill is not the one that this version writes";
                self.reinstall(FindingCode::AgentsSkill, path, text);
            }
            None => self.reinstall(FindingCode::AgentsSkill, path, "the skill is missing"),
        }
    }

    fn hooks(&mut self) {
        let Some(Hooks { file, .. }) = &self.harness.hooks else {
            return;
        };
        match read_text(&self.around.root.join(file)).map(|text| edit::read(&text)) {
            None => self.reinstall(FindingCode::AgentsEntry, file, "there are no hooks"),
            Some(Err(fault)) => {
                let text = format!("the harness can't read it: {fault}");
                let fix = format!("fix it, then {}", self.install);
                self.error(FindingCode::AgentsConfig, file, text, &fix);
            }
            Some(Ok(config)) => {
                let agent = self.entries(file, &config);
                self.agent(file, agent.or_else(|| self.around.agent.clone()));
            }
        }
    }

    /// Checks that each hook is present once and unmodified. Returns the agent named in them.
    fn entries(&mut self, file: &str, config: &Value) -> Option<String> {
        let mut agent = None;
        for hook in self.harness.entries(&Acts::default()) {
            let key = hook.at.last().copied().unwrap_or_default();
            let mut calls = hook.handlers(config);
            calls.retain(|(_, handler)| calls_us(handler));
            let acts = calls.iter().find_map(|(_, handler)| hook.acts(handler));
            let expected = self
                .harness
                .entries(acts.as_ref().unwrap_or(&Acts::default()));
            let expected = expected.iter().find(|wanted| wanted.at == hook.at);
            let expected = expected.map(|wanted| wanted.handler());
            match calls[..] {
                [] => {
                    let text = format!("`{key}` has no hook that calls git-handoff");
                    self.reinstall(FindingCode::AgentsEntry, file, text);
                }
                [(_, one)] if Some(one) == expected => {}
                [(_, one)] if hook.acts(one).is_some() => {
                    let text =
                        format!("the hook under `{key}` is not the one that this version writes");
                    self.reinstall(FindingCode::AgentsEntry, file, text);
                }
                [_] => {
                    let text = format!("the hook under `{key}` was changed by hand");
                    let fix = format!("take it out, then {}", self.install);
                    self.error(FindingCode::AgentsEntry, file, text, &fix);
                }
                _ => {
                    let text = format!("`{key}` has several hooks that call git-handoff");
                    self.error(FindingCode::AgentsEntry, file, text, "take out all but one");
                }
            }
            agent = agent.or(acts.and_then(|acts| acts.agent));
        }
        agent
    }

    /// Checks that sessions have an agent that the ledger knows.
    fn agent(&mut self, file: &str, agent: Option<String>) {
        match (&agent, &self.around.agents) {
            (None, _) => self.error(
                FindingCode::AgentsNoAgent,
                file,
                "no agent is named here, and a session without one is told nothing",
                "set GIT_HANDOFF_AGENT where the session is started, or install with --as AGENT",
            ),
            (Some(agent), Some(known)) if !known.contains(agent) => {
                let text = format!("no protocol of the ledger knows {agent}");
                let fix = format!("use one of: {}", known.join(", "));
                self.error(FindingCode::AgentsNoAgent, file, text, &fix);
            }
            _ => {}
        }
    }

    /// Looks for settings that disable all hooks of the harness.
    fn switches(&mut self) {
        for switch in &self.harness.switches {
            let path = match (switch.file.strip_prefix("~/"), &self.around.home) {
                (Some(rest), Some(home)) => home.join(rest),
                (Some(_), None) => continue,
                (None, _) => self.around.root.join(&switch.file),
            };
            let Some(text) = read_text(&path) else {
                continue;
            };
            let key = switch.key.as_ref().is_some_and(|key| {
                serde_json::from_str::<Value>(&text).is_ok_and(|value| value[key.as_str()] == true)
            });
            let line = switch.line.as_ref().is_some_and(|wanted| {
                let plain =
                    |line: &str| line.split('#').next().unwrap_or_default().replace(' ', "");
                text.lines().any(|line| plain(line) == plain(wanted))
            });
            if key || line {
                let setting = switch.key.as_ref().or(switch.line.as_ref());
                let setting = setting.map(String::as_str).unwrap_or_default();
                let text = format!("`{setting}` switches every hook off");
                let fix = "take it out, if hooks are to run";
                self.error(FindingCode::AgentsDisabled, &switch.file, text, fix);
            }
        }
    }

    /// Compares the harness's version with the tested one.
    fn version(&mut self) {
        let (Some(program), Some(said)) = (&self.harness.program, &self.around.harness_program)
        else {
            return;
        };
        let own = said.split_whitespace().find_map(version);
        if own.is_some_and(|own| Some(own) < version(&program.tried)) {
            let (name, tried) = (&program.name, &program.tried);
            let first = said.lines().next().unwrap_or_default();
            let text =
                format!("`{name}` on the PATH is {first}, older than {tried}, which was tried");
            let fix = format!("update it to {tried} or later");
            self.warn(FindingCode::AgentsHarness, "", &text, &fix);
        }
    }

    /// Reports consents that a person has not given yet.
    fn consents(&mut self) {
        let harness: &'a Harness = self.harness;
        let home = self.around.home.as_deref();
        let has_server = harness.mcp.as_ref().is_some_and(|mcp| {
            let text = read_text(&self.around.root.join(&mcp.file)).unwrap_or_default();
            text.contains("git-handoff")
        });
        for consent in &harness.consents {
            let applies = has_server || !consent.server;
            if applies && !consent.is_given(&self.around.root, home) {
                self.warn(FindingCode::AgentsConsent, "", &consent.text, &consent.fix);
            }
        }
    }

    /// Looks for installed files that git ignores, and for leftover temporary files.
    fn files(&mut self) {
        let harness: &'a Harness = self.harness;
        for path in harness.files() {
            if self.around.ignored.iter().any(|ignored| ignored == path) {
                self.warn(
                    FindingCode::AgentsIgnored,
                    path,
                    "git ignores it: other clones and the cloud do not get it",
                    "take it out of .gitignore if others should have it",
                );
            }
            for leftover in leftovers::beside(&self.around.root.join(path)) {
                let shown = leftover
                    .strip_prefix(&self.around.root)
                    .unwrap_or(&leftover);
                let fix = format!("{} takes it away", self.install);
                let text = "a process that was killed left it";
                self.warn(
                    FindingCode::AgentsLeftover,
                    &shown.to_string_lossy(),
                    text,
                    &fix,
                );
            }
        }
    }
}

/// Whether anything is installed for a harness.
pub fn is_installed(harness: &Harness, root: &Path) -> bool {
    installed_names(root).contains(&harness.name) || has_hook(harness, root)
}

fn has_hook(harness: &Harness, root: &Path) -> bool {
    let text = harness.hooks.as_ref().map(|hooks| root.join(&hooks.file));
    let text = text.and_then(|path| read_text(&path)).unwrap_or_default();
    let Ok(config) = edit::read(&text) else {
        return false;
    };
    let hooks = harness.entries(&Acts::default());
    hooks.iter().any(|hook| {
        let mut found = hook.handlers(&config).into_iter();
        found.any(|(_, handler)| hook.acts(handler).is_some())
    })
}

/// A version's numbers, parsed from a word such as `v1.2.3`.
fn version(word: &str) -> Option<[u64; 3]> {
    let plain = word.trim_start_matches('v').trim_end_matches('.');
    let plain = plain.split(['-', '+']).next().unwrap_or_default();
    let numbers: Result<Vec<u64>, _> = plain.split('.').map(str::parse).collect();
    numbers.ok()?.try_into().ok()
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(handoff::git::read_regular(path).ok()?).ok()
}
