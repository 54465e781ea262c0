//! Findings about an installation that would silently do nothing, each with its fix.

use std::path::{Path, PathBuf};

use handoff_base::finding::{Finding, FindingCode, Severity};
use serde_json::Value;

use super::{Acts, Harness, calls_us, guide, json, leftovers};

/// What only the command line knows.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The root of the worktree.
    pub root: PathBuf,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The program found on the harness's PATH, and its version.
    pub program: Option<(PathBuf, Option<String>)>,
    /// This program's version.
    pub version: String,
    /// The agent set in the environment.
    pub agent: Option<String>,
    /// The agents of the ledger; `None` without a ledger.
    pub agents: Option<Vec<String>>,
    /// Installed paths that git ignores.
    pub ignored: Vec<String>,
}

/// Checks a harness's installation.
pub fn examine(harness: &Harness, around: &Surroundings) -> Vec<Finding> {
    let mut found = Vec::new();
    let name = &harness.name;
    let install = format!("`git handoff agents install {name}`");
    let read = |path: &str| std::fs::read(around.root.join(path)).ok();
    let mut say = |code: FindingCode, path: &str, text: String, fix: String| {
        found.push(Finding::error(code, path, text).fix(fix));
    };
    match &around.program {
        None => say(
            FindingCode::AgentsProgram,
            "",
            "git-handoff is not on the PATH here, and hooks without it do nothing".to_owned(),
            "add its folder to the PATH that the harness is started with".to_owned(),
        ),
        Some((path, version)) if version.as_deref() != Some(&around.version) => {
            let shown = version.as_deref().unwrap_or("something else");
            say(
                FindingCode::AgentsVersion,
                "",
                format!(
                    "{} is {shown}, and this is {}",
                    path.display(),
                    around.version
                ),
                "put the one that is meant first on the PATH".to_owned(),
            );
        }
        Some(_) => {}
    }
    if around.agents.is_none() {
        say(
            FindingCode::AgentsNoLedger,
            "",
            "there is no ledger here, and hooks say nothing".to_owned(),
            "`git handoff init` starts one, `git handoff fetch` brings a remote's".to_owned(),
        );
    }
    let path = harness.instructions.as_str();
    let bytes = read(path).unwrap_or_default();
    match guide::names(&bytes) {
        Err(fault) => say(
            FindingCode::AgentsMarker,
            path,
            format!("the block can't be told from the rest: {fault}"),
            format!("put the missing line back, or take the block out by hand, then {install}"),
        ),
        Ok(names) if !names.as_ref().is_some_and(|names| names.contains(name)) => say(
            FindingCode::AgentsBlock,
            path,
            "it has no block for this harness".to_owned(),
            install.clone(),
        ),
        Ok(_) if !guide::is_current(&bytes) => say(
            FindingCode::AgentsBlock,
            path,
            "its block is not the one that this version writes".to_owned(),
            install.clone(),
        ),
        Ok(_) => {}
    }
    if let Some(path) = &harness.skill {
        match read(path) {
            Some(bytes) if guide::is_skill(&bytes) => {}
            Some(_) => say(
                FindingCode::AgentsSkill,
                path,
                "the skill is not the one that this version writes".to_owned(),
                install.clone(),
            ),
            None => say(
                FindingCode::AgentsSkill,
                path,
                "the skill is missing".to_owned(),
                install.clone(),
            ),
        }
    }
    if let Some(hooks) = &harness.hooks {
        let text = read(&hooks.file).and_then(|bytes| String::from_utf8(bytes).ok());
        match text.as_deref().map(json::read) {
            None => say(
                FindingCode::AgentsEntry,
                &hooks.file,
                "there are no hooks".to_owned(),
                install.clone(),
            ),
            Some(Err(fault)) => say(
                FindingCode::AgentsConfig,
                &hooks.file,
                format!("the harness can't read it: {fault}"),
                format!("fix it, then {install}"),
            ),
            Some(Ok(config)) => entries(harness, &hooks.file, &config, around, &install, &mut say),
        }
    }
    switched_off(harness, around, &mut say);
    let mut warn = |code: FindingCode, path: &str, text: &str, fix: String| {
        let warning = Finding {
            severity: Severity::Warning,
            ..Finding::error(code, path, text.to_owned())
        };
        found.push(warning.fix(fix));
    };
    for path in harness.files() {
        if around.ignored.iter().any(|ignored| ignored == path) {
            warn(
                FindingCode::AgentsIgnored,
                path,
                "git ignores it: other clones and the cloud do not get it",
                "take it out of .gitignore if others should have it".to_owned(),
            );
        }
        for leftover in leftovers::beside(&around.root.join(path)) {
            let shown = leftover.strip_prefix(&around.root).unwrap_or(&leftover);
            warn(
                FindingCode::AgentsLeftover,
                &shown.to_string_lossy(),
                "a process that was killed left it",
                format!("{install} takes it away"),
            );
        }
    }
    found
}

/// Whether anything is installed for a harness.
pub fn is_installed(harness: &Harness, root: &Path) -> bool {
    let guide = std::fs::read(root.join(&harness.instructions)).unwrap_or_default();
    let is_named = |names: Option<Vec<String>>| names.is_some_and(|n| n.contains(&harness.name));
    let in_guide = guide::names(&guide).is_ok_and(is_named);
    in_guide || has_hook(harness, root)
}

fn has_hook(harness: &Harness, root: &Path) -> bool {
    let text = harness.hooks.as_ref().map(|hooks| root.join(&hooks.file));
    let text = text.and_then(|path| read_text(&path)).unwrap_or_default();
    let Ok(config) = json::read(&text) else {
        return false;
    };
    let places = harness.entries(&Acts::default());
    let mut places = places.iter();
    places.any(|place| {
        let mut found = place.handlers(&config).into_iter();
        found.any(|(_, handler)| place.acts(handler).is_some())
    })
}

/// Checks that each hook is there, once and unmodified, and that the ledger knows its agent.
fn entries(
    harness: &Harness,
    file: &str,
    config: &Value,
    around: &Surroundings,
    install: &str,
    say: &mut impl FnMut(FindingCode, &str, String, String),
) {
    let mut named = None;
    for place in harness.entries(&Acts::default()) {
        let key = place.at.last().copied().unwrap_or_default();
        let mut calls = place.handlers(config);
        calls.retain(|(_, handler)| calls_us(handler));
        let acts = calls.iter().find_map(|(_, handler)| place.acts(handler));
        let expected = harness.entries(acts.as_ref().unwrap_or(&Acts::default()));
        let expected = expected.iter().find(|wanted| wanted.at == place.at);
        let expected = expected.map(|wanted| wanted.handler());
        match calls[..] {
            [] => say(
                FindingCode::AgentsEntry,
                file,
                format!("`{key}` has no hook that calls git-handoff"),
                install.to_owned(),
            ),
            [(_, one)] if Some(one) == expected => {}
            [(_, one)] if place.acts(one).is_some() => say(
                FindingCode::AgentsEntry,
                file,
                format!("the hook under `{key}` is not the one that this version writes"),
                install.to_owned(),
            ),
            [_] => say(
                FindingCode::AgentsEntry,
                file,
                format!("the hook under `{key}` was changed by hand"),
                format!("take it out, then {install}"),
            ),
            _ => say(
                FindingCode::AgentsEntry,
                file,
                format!("`{key}` has several hooks that call git-handoff"),
                "take out all but one".to_owned(),
            ),
        }
        named = named.or(acts.and_then(|acts| acts.agent));
    }
    let agent = named.or_else(|| around.agent.clone());
    match (&agent, &around.agents) {
        (None, _) => say(
            FindingCode::AgentsNoAgent,
            file,
            "no agent is named here, and a session without one is told nothing".to_owned(),
            "set GIT_HANDOFF_AGENT where the session is started, or install with --as AGENT"
                .to_owned(),
        ),
        (Some(agent), Some(known)) if !known.contains(agent) => say(
            FindingCode::AgentsNoAgent,
            file,
            format!("no protocol of the ledger knows {agent}"),
            format!("use one of: {}", known.join(", ")),
        ),
        _ => {}
    }
}

fn switched_off(
    harness: &Harness,
    around: &Surroundings,
    say: &mut impl FnMut(FindingCode, &str, String, String),
) {
    for switch in &harness.switches {
        let path = match (switch.file.strip_prefix("~/"), &around.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => continue,
            (None, _) => around.root.join(&switch.file),
        };
        let Some(text) = read_text(&path) else {
            continue;
        };
        let key = switch.key.as_ref().is_some_and(|key| {
            serde_json::from_str::<Value>(&text).is_ok_and(|value| value[key.as_str()] == true)
        });
        let line = switch.line.as_ref().is_some_and(|wanted| {
            let plain = |line: &str| line.split('#').next().unwrap_or_default().replace(' ', "");
            text.lines().any(|line| plain(line) == plain(wanted))
        });
        if key || line {
            let what = switch.key.as_ref().or(switch.line.as_ref());
            let what = what.map(String::as_str).unwrap_or_default();
            say(
                FindingCode::AgentsDisabled,
                &switch.file,
                format!("`{what}` switches every hook off"),
                "take it out, if hooks are to run".to_owned(),
            );
        }
    }
}

fn read_text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
