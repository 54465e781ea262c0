//! GitHub workflows in `.github/workflows/` that record events and gate pull requests, and the
//! rulesets that protect them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use handoff::base::codes::ErrorCode;
use handoff::base::explained::{Explained, Explanation};
use handoff::base::hint;
use handoff::base::ledger_names::{DEFAULT_BRANCH, status_name, suffix, title};
use handoff::base::text::continued;
use handoff::git::{leads_out, read_regular};
use thiserror::Error;

/// The folder of workflows and rulesets in a repository.
const FOLDER: &str = ".github";

/// The placeholder line for the action, which each repository replaces.
pub const ACTION: &str = "uses: OWNER/git-handoff/action@0000000000000000000000000000000000000000";

/// The GitHub environment with the agents' key.
pub const ENVIRONMENT: &str = "handoff-agents";

/// The lines in templates that name the default branch.
const USUAL_LEDGER: &str = "LEDGER: handoffs";
const USUAL_REF: &str = "\"refs/heads/handoffs\"";

/// The older artifact actions that GitHub Enterprise Server supports in place of newer ones.
const ON_SERVER: [(&str, &str); 4] = [
    ("upload-artifact v7.0.0", "upload-artifact v3.2.1-node20"),
    (
        "upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f",
        "upload-artifact@c24449f33cd45d4826c6702db7e49f7cdb9b551d",
    ),
    (
        "download-artifact v8.0.1",
        "download-artifact v3.1.0-node20",
    ),
    (
        "download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c",
        "download-artifact@ad191675b41f6a5b46da9a048cb6893812da158b",
    ),
];

/// The workflow that runs agents, which is only written if it is asked for.
const AGENTS: &str = "workflows/handoff-agent.yml";

/// The workflows and rulesets, by file name.
const WORKFLOWS: [(&str, &str); 7] = [
    (AGENTS, include_str!("../github/handoff-agent.yml")),
    (
        "workflows/handoff-audit.yml",
        include_str!("../github/handoff-audit.yml"),
    ),
    (
        "workflows/handoff-gate.yml",
        include_str!("../github/handoff-gate.yml"),
    ),
    (
        "workflows/handoff-intake.yml",
        include_str!("../github/handoff-intake.yml"),
    ),
    (
        "workflows/handoff-verify.yml",
        include_str!("../github/handoff-verify.yml"),
    ),
    (
        "ruleset-gate.json",
        include_str!("../github/ruleset-gate.json"),
    ),
    (
        "ruleset-ledger.json",
        include_str!("../github/ruleset-ledger.json"),
    ),
];

/// Why workflows could not be written or removed.
#[derive(Debug, Error)]
pub enum WorkflowError {
    /// Another file has this name.
    #[error("{0} is there already, and is another file")]
    Taken(String),
    /// The path leads through a link out of the working tree.
    #[error("{0} leads out of the working tree, or into a git directory")]
    Link(String),
    /// A file can't be read, written or removed.
    #[error("{path} can't be used")]
    Io {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Explained for WorkflowError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Taken(path) => ErrorCode::AgentsRefused.hint(hint!(
                "no workflow was written; rename {} or merge the two by hand",
                continued(path)
            )),
            Self::Link(_) => ErrorCode::AgentsRefused.hint(
                "no workflow was written; remove the link, or put a file in its place, and run the same command again",
            ),
            Self::Io { .. } => {
                ErrorCode::AgentsFile.hint("check it with `ls -ld`, and run the same command again")
            }
        }
    }
}

/// A file, and whether it was changed.
#[derive(Debug, PartialEq, Eq)]
pub struct WorkflowFile {
    /// Its path in the repository.
    pub path: String,
    /// Whether it was written or removed just now.
    pub changed: bool,
    /// The replaced lines: before and after.
    pub replaced: Vec<(String, String)>,
}

/// Writes the workflows and rulesets that a working tree lacks, for this ledger's branch, whose name
/// is in those of the files if it is not the default one; nothing
/// is written if a name is taken. `action` is the action to use, as
/// `OWNER/REPOSITORY/action@COMMIT`; existing files change only in the lines that use another one.
/// `with_agents` adds the workflow that runs agents; `is_server` selects the artifact actions that
/// GitHub Enterprise Server supports.
///
/// # Errors
/// [`WorkflowError`]: a name is taken by another file, or a file can't be written.
pub fn install(
    root: &Path,
    action: Option<&str>,
    branch: &str,
    with_agents: bool,
    is_server: bool,
) -> Result<Vec<WorkflowFile>, WorkflowError> {
    let mut files = Vec::new();
    let mut texts = Vec::new();
    for (usual, template) in WORKFLOWS {
        let name = &*file_name(usual, branch);
        let template = &*of_branch(template, branch);
        let found = read(root, name)?;
        if found
            .as_ref()
            .is_some_and(|found| !is_named(found, template))
        {
            return Err(WorkflowError::Taken(path_of(name)));
        }
        let (mut replaced, mut text) = (Vec::new(), None);
        match (found, action) {
            (None, _) if usual != AGENTS || with_agents => {
                let template = if is_server {
                    &on_server(template)
                } else {
                    template
                };
                text = Some(match action {
                    Some(action) => template.replace(ACTION, &format!("uses: {action}")),
                    None => template.to_owned(),
                });
            }
            (Some(found), Some(action)) => {
                let new = pinned(&found, action, &mut replaced);
                text = Some(new).filter(|_| !replaced.is_empty());
            }
            _ => {}
        }
        files.push(WorkflowFile {
            path: path_of(name),
            changed: text.is_some(),
            replaced,
        });
        texts.push((name.to_owned(), text));
    }
    for (name, text) in &texts {
        if let Some(text) = text {
            let file = file_of(root, name);
            let folder = file.parent().unwrap_or(root);
            let done = fs::create_dir_all(folder).and_then(|()| fs::write(&file, text));
            done.map_err(|source| fault(name, source))?;
        }
    }
    Ok(files)
}

/// The name of a template's file for a ledger on this branch.
fn file_name(usual: &str, branch: &str) -> String {
    let (stem, extension) = usual.rsplit_once('.').unwrap_or((usual, ""));
    format!("{stem}{}.{extension}", suffix('-', branch))
}

/// A template for the ledger on this branch, which shares no file, name, group, label or cache with another one.
fn of_branch(template: &str, branch: &str) -> String {
    if branch == DEFAULT_BRANCH {
        return template.to_owned();
    }
    let parts = template.split("handoff-").map(|part| {
        let end = part.find(|c: char| !c.is_ascii_lowercase());
        let (name, rest) = part.split_at(end.unwrap_or(part.len()));
        let own = match name {
            "agent" | "audit" | "gate" | "intake" | "verify" => suffix('-', branch),
            // Caches are found by the beginnings of their keys.
            "verified" => suffix('@', branch) + "@",
            _ => String::new(),
        };
        format!("{name}{own}{rest}")
    });
    let mut text = parts.collect::<Vec<_>>().join("handoff-");
    // Quoted: YAML reads some words as numbers or booleans.
    let quoted = |name: &str| serde_json::Value::from(name).to_string();
    for name in ["handoff gate", "Handoff gate", "Handoff ledger"] {
        text = text.replace(&quoted(name), &quoted(&title(name, branch)));
    }
    for name in ["agent", "audit", "gate", "intake", "verify"].map(|name| format!("handoff {name}"))
    {
        let line = format!("\nname: {}\n", quoted(&title(&name, branch)));
        text = text.replace(&format!("\nname: {name}\n"), &line);
    }
    text.replace("`handoff gate`", &format!("`{}`", status_name(branch)))
        .replace("'handoff'", &format!("'handoff{}'", suffix('-', branch)))
        .replace("`handoff`", &format!("`handoff{}`", suffix('-', branch)))
        .replace(USUAL_LEDGER, &format!("LEDGER: {}", quoted(branch)))
        .replace(USUAL_REF, &quoted(&format!("refs/heads/{branch}")))
}

/// Replaces the artifact actions by those that GitHub Enterprise Server supports.
fn on_server(text: &str) -> String {
    let pairs = ON_SERVER.iter();
    pairs.fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
}

/// A workflow that uses this action in place of another one; adds the changed lines to `replaced`.
fn pinned(text: &str, action: &str, replaced: &mut Vec<(String, String)>) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let (indent, used) = line.split_once("uses: ")?;
        let used = used.trim_end();
        let (place, commit) = used
            .split_once(' ')
            .unwrap_or((used, ""))
            .0
            .split_once('@')?;
        let is_ours = place.ends_with("/action") && place.split('/').count() == 3;
        let is_plain = indent.trim_start_matches(['-', ' ']).is_empty();
        if !(is_ours && is_plain) || action == format!("{place}@{commit}") {
            return None;
        }
        let new = line.replacen(&format!("{place}@{commit}"), action, 1);
        replaced.push((line.trim().to_owned(), new.trim().to_owned()));
        Some(new)
    });
    let lines: Vec<Option<String>> = lines.collect();
    let both = text.split_inclusive('\n').zip(lines);
    both.map(|(old, new)| new.unwrap_or_else(|| old.to_owned()))
        .collect()
}

/// The paths of this ledger's workflows and rulesets, whether they are there or not.
pub fn paths(branch: &str) -> impl Iterator<Item = String> + '_ {
    let names = WORKFLOWS.iter().map(|(name, _)| *name);
    let names = names.chain(["workflows/handoff-pages.yml"]);
    names.map(move |name| path_of(&file_name(name, branch)))
}

/// The paths of workflows that still have the placeholder `OWNER` for the action.
///
/// # Errors
/// [`WorkflowError`] if a file can't be read.
pub fn without_action(root: &Path, branch: &str) -> Result<Vec<String>, WorkflowError> {
    let mut found = Vec::new();
    for (name, _) in WORKFLOWS {
        let name = file_name(name, branch);
        if read(root, &name)?.is_some_and(|text| text.contains(ACTION)) {
            found.push(path_of(&name));
        }
    }
    Ok(found)
}

/// Removes the workflows and rulesets of this ledger that are unmodified, apart from the action's location.
///
/// # Errors
/// [`WorkflowError`] if a file can't be read or removed.
pub fn uninstall(root: &Path, branch: &str) -> Result<Vec<WorkflowFile>, WorkflowError> {
    let mut removed = Vec::new();
    for (name, template) in WORKFLOWS {
        let name = file_name(name, branch);
        // Files outside of the working tree are not ours.
        let found = match read(root, &name) {
            Err(WorkflowError::Link(_)) => None,
            found => found?,
        };
        let is_ours = found.is_some_and(|found| is_ours(&found, &of_branch(template, branch)));
        if is_ours {
            fs::remove_file(file_of(root, &name)).map_err(|source| fault(&name, source))?;
        }
        removed.push(WorkflowFile {
            path: path_of(&name),
            changed: is_ours,
            replaced: Vec::new(),
        });
    }
    // An emptied folder stays if it can't be removed or is not empty.
    let folder = root.join(FOLDER);
    for folder in [folder.join("workflows"), folder] {
        if !leads_out(&folder, root) {
            let _ = fs::remove_dir(folder);
        }
    }
    Ok(removed)
}

/// Whether a file contains a template's name; it may have been modified.
fn is_named(text: &str, template: &str) -> bool {
    let is_name = |line: &&str| {
        line.trim_start()
            .trim_start_matches('"')
            .starts_with("name")
    };
    let name = template.lines().find(is_name);
    name.is_some_and(|name| text.lines().any(|line| line == name))
}

/// Whether a file equals a template, apart from the action's location.
fn is_ours(text: &str, template: &str) -> bool {
    let mut lines = text.lines();
    let is_same = template.lines().all(|line| {
        let found = lines.next().unwrap_or_default();
        let start = found.trim_start();
        found == line
            || found == on_server(line)
            || line.contains(ACTION) && start.starts_with("uses: ")
    });
    is_same && lines.next().is_none()
}

fn path_of(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

fn file_of(root: &Path, name: &str) -> PathBuf {
    root.join(FOLDER).join(name)
}

fn read(root: &Path, name: &str) -> Result<Option<String>, WorkflowError> {
    let file = file_of(root, name);
    if leads_out(&file, root) {
        return Err(WorkflowError::Link(path_of(name)));
    }
    match read_regular(&file) {
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(fault(name, source)),
    }
}

fn fault(name: &str, source: io::Error) -> WorkflowError {
    let path = path_of(name);
    WorkflowError::Io { path, source }
}
