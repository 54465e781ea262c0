//! Commands of the program and of git as separate processes, so that a failure or a kill of one
//! does not affect other work.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use handoff::base::ObjectId;
use handoff::base::ids::{AgentName, WorkerId};
use handoff::git::{Repository, ensure_addresses, pinned_pack};
use serde_json::Value;

use super::checkout::Checkout;
use handoff_cli::environment::{self, MARK};
use handoff_cli::failure::ErrorCode;
use handoff_cli::process::ProcessGroup;

/// The variables that point git to another repository than that of the current folder.
const LEADING: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// Programs that a repository's configuration may name, disabled: an agent may have written it. The
/// user's configuration stays in force, and so do credentials and ssh.
const OFF: [&str; 8] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The git commands that read no file of a working tree, and so run no filter.
const PLAIN: [&str; 8] = [
    "config",
    "fetch",
    "for-each-ref",
    "push",
    "rev-list",
    "rev-parse",
    "symbolic-ref",
    "update-ref",
];

/// The longest chain of symbolic refs, as in git.
const MOST_HOPS: usize = 5;

/// The variable with the file for a contract.
pub(super) const CONTRACT: &str = "GIT_HANDOFF_CONTRACT";

/// The agent and worker that run a command.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) agent: AgentName,
    pub(super) worker: WorkerId,
}

/// Runs commands in one repository.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// The program's own file.
    own: PathBuf,
    /// The default folder of commands.
    folder: PathBuf,
    /// The worktree's own git directory, as it was created.
    git_dir: Option<PathBuf>,
    /// Whether the default folder is a bare repository, which git may only take if it is named.
    is_bare: bool,
    /// More variables.
    variables: Vec<(String, String)>,
    /// The ledger's branch, if the command line named one.
    branch: Option<String>,
    /// The mark of its processes, by which they are found if this one is killed.
    mark: Option<String>,
}

/// The answer of a command of the program.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) exit: u8,
    /// The answer, or the error.
    document: Value,
}

impl Said {
    /// The answer's data.
    pub(super) fn data(&self) -> &Value {
        &self.document["data"]
    }

    /// The error code; empty without an error.
    pub(super) fn code(&self) -> &str {
        self.document["error"]["code"].as_str().unwrap_or_default()
    }

    /// Whether a retry may succeed: the remote was busy or absent, or another's offline steps had a
    /// different result, which is reported once.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self.exit, 7 | 9) || matches!(self.code(), "rejected" | "renamed")
    }

    /// Whether a limit of the protocol is reached.
    pub(super) fn is_at_limit(&self) -> bool {
        let limits = [ErrorCode::LimitReached, ErrorCode::Cycle];
        limits.iter().any(|limit| limit.as_str() == self.code())
    }

    pub(super) fn hint(&self) -> &str {
        self.document["error"]["hint"].as_str().unwrap_or_default()
    }

    /// The error, in one line.
    pub(super) fn message(&self) -> &str {
        self.document["error"]["message"]
            .as_str()
            .unwrap_or("no reason was given")
    }

    /// The findings of a refusal, one a line.
    pub(super) fn findings(&self) -> String {
        let findings = self.document["error"]["findings"].as_array();
        let line = |finding: &Value| {
            let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
            let fix = Some(text("fix")).filter(|fix| !fix.is_empty());
            let fix = fix.map_or(String::new(), |fix| format!(" ({fix})"));
            let place = Some(text("path")).filter(|path| !path.is_empty());
            let place = place.map_or(String::new(), |path| format!("{path} "));
            format!("- {place}{}: {}{fix}\n", text("code"), text("message"))
        };
        findings.into_iter().flatten().map(line).collect()
    }
}

impl Program {
    /// Runs commands in this repository; `branch` is the ledger's, if one was named.
    ///
    /// # Errors
    /// The system's error, if the program's path is unknown.
    pub(super) fn new(repository: &Repository, branch: Option<&str>) -> io::Result<Self> {
        let root = repository.workdir();
        Ok(Self {
            own: std::env::current_exe()?,
            folder: root.unwrap_or(repository.path()).to_owned(),
            git_dir: None,
            is_bare: root.is_none(),
            variables: Vec::new(),
            branch: branch.map(str::to_owned),
            mark: None,
        })
    }

    /// The folder in which commands run.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The program's own file.
    pub(super) fn own(&self) -> &Path {
        &self.own
    }

    /// The identity of a worktree of this repository in which no agent has worked yet.
    ///
    /// # Errors
    /// Why it is not a worktree, as a sentence.
    pub(super) fn checkout(&self, path: &Path) -> Result<Checkout, String> {
        let clone = Repository::open_here().map_err(|error| error.to_string())?;
        Checkout::of(clone.common_dir(), path)
    }

    /// A program whose commands run in a worktree, whatever its `.git` names by now.
    pub(super) fn within(&self, checkout: &Checkout) -> Self {
        Self {
            folder: checkout.path.clone(),
            git_dir: Some(checkout.git_dir.clone()),
            ..self.clone()
        }
    }

    /// The branch that is checked out, without `refs/heads/`; `None` with a detached HEAD.
    pub(super) fn branch(&self) -> Option<String> {
        let clone = Repository::open_here().ok()?;
        let mut name = self.head();
        // An agent may have made its branch a symbolic ref to another one.
        for _ in 0..MOST_HOPS {
            match clone.symbolic_target(&name).ok()? {
                Some(next) => name = next,
                None => break,
            }
        }
        Some(name.strip_prefix("refs/heads/")?.to_owned())
    }

    /// The object of HEAD, or of a ref by its full name.
    pub(super) fn resolve(&self, name: &str) -> Option<String> {
        // Read without a git process, since these are read at each step.
        let head = self.head();
        let name = if name == "HEAD" { &head } else { name };
        let found = Repository::open_here().ok()?.resolve(name);
        Some(found.ok()??.to_string())
    }

    /// Whether the commit of a ref is in the history of another one, both by their full names.
    pub(super) fn is_in_history(&self, name: &str, of: &str) -> bool {
        let Ok(clone) = Repository::open_here() else {
            return false;
        };
        let commit = |name| clone.resolve(name).ok().flatten();
        let known = commit(name).zip(commit(of));
        known.is_some_and(|(commit, of)| clone.is_in_history(commit, of).unwrap_or(false))
    }

    /// Whether a branch here or of a remote is at a commit.
    pub(super) fn is_tip(&self, commit: &str) -> bool {
        let (Ok(clone), Ok(commit)) = (Repository::open_here(), commit.parse::<ObjectId>()) else {
            return false;
        };
        let mut names = ["refs/heads/", "refs/remotes/"]
            .into_iter()
            .flat_map(|folder| clone.ref_names(folder).unwrap_or_default());
        names.any(|name| clone.resolve(&name).ok().flatten() == Some(commit))
    }

    /// The name of this worktree's HEAD for every worktree of the clone (gitrevisions(7)).
    fn head(&self) -> String {
        let name = self.git_dir.as_deref().and_then(Path::file_name);
        name.map_or_else(
            || "HEAD".to_owned(),
            |name| format!("worktrees/{}/HEAD", name.to_string_lossy()),
        )
    }

    /// The full names of the refs below these folders, such as `refs/heads/`.
    pub(super) fn refs(&self, folders: &[&str]) -> Vec<String> {
        let Ok(clone) = Repository::open_here() else {
            return Vec::new();
        };
        let names = folders.iter().map(|folder| clone.ref_names(folder));
        names.flat_map(Result::unwrap_or_default).collect()
    }

    /// A program that sets these variables, too.
    pub(super) fn with(&self, variables: &[(String, String)]) -> Self {
        Self {
            variables: variables.to_vec(),
            ..self.clone()
        }
    }

    /// A program whose processes have this group's mark.
    pub(super) fn marked(&self, group: &ProcessGroup) -> Self {
        Self {
            mark: Some(group.mark.clone()),
            ..self.clone()
        }
    }

    /// Runs a command of the program.
    pub(super) fn run(&self, actor: &Actor, words: &[&str]) -> Said {
        let output = self.start(&self.own, &self.words(actor, words, true), Stdio::null());
        match output {
            Ok(output) => Said {
                exit: output
                    .status
                    .code()
                    .and_then(|code| u8::try_from(code).ok())
                    .unwrap_or(u8::MAX),
                document: serde_json::from_slice(&output.stdout).unwrap_or_default(),
            },
            Err(error) => Said {
                exit: u8::MAX,
                document: serde_json::json!({"error": {"message": error.to_string()}}),
            },
        }
    }

    /// Pushes one branch, never by force. If the remote is not known to have it, it is created
    /// there, never moved.
    ///
    /// # Errors
    /// What git says, in one line.
    pub(super) fn push(&self, remote: &str, branch: &str) -> Result<(), String> {
        let name = format!("refs/heads/{branch}");
        let (refspec, lease) = (
            format!("{name}:{name}"),
            format!("--force-with-lease={name}:"),
        );
        let known = format!("refs/remotes/{remote}/{branch}");
        let mut words = vec!["push", "--quiet", "--no-follow-tags"];
        words.push("--recurse-submodules=no");
        let is_known = self.resolve(&known).is_some();
        if !is_known {
            words.push(&lease);
        }
        words.extend([remote, &refspec]);
        self.git(&words)?;
        // git updates the tracking ref only if the remote's configured refspec covers it.
        if !is_known
            && let Some(at) = self.resolve(&name)
            && self.resolve(&known).as_ref() != Some(&at)
        {
            let _ = self.git(&["update-ref", &known, &at]);
        }
        Ok(())
    }

    /// Runs git.
    ///
    /// # Errors
    /// git's message, in one line.
    pub(super) fn git(&self, words: &[&str]) -> Result<String, String> {
        let printed = self.git_bytes(words, Stdio::null())?;
        let text = String::from_utf8_lossy(&printed);
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// Runs git with this standard input. Returns its output.
    ///
    /// # Errors
    /// git's message, in one line.
    pub(super) fn git_bytes(&self, words: &[&str], input: Stdio) -> Result<Vec<u8>, String> {
        let output = self.start_git(words, input)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said: Vec<&str> = said
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        Err(format!("`git {}`: {}", words.join(" "), said.join("; ")))
    }

    /// Runs git for a command whose exit code is a result.
    ///
    /// # Errors
    /// Why it can't be run.
    pub(super) fn git_output(&self, words: &[&str]) -> Result<Output, String> {
        self.start_git(words, Stdio::null())
    }

    fn start_git(&self, words: &[&str], input: Stdio) -> Result<Output, String> {
        let off = OFF.iter().flat_map(|setting| ["-c", setting]);
        let mut all: Vec<String> = off.map(str::to_owned).collect();
        all.extend(handoff::git::pinned());
        if let [verb, rest @ ..] = words {
            all.push((*verb).to_owned());
            all.extend(rest.iter().find_map(|word| pinned_pack(verb, word)));
            all.extend(rest.iter().map(|word| (*word).to_owned()));
            if ["fetch", "push", "ls-remote"].contains(verb) {
                ensure_addresses_here()?;
            }
        }
        let mut git = self.clone();
        if !words.first().is_some_and(|word| PLAIN.contains(word)) {
            git.variables.extend(self.drivers_off());
        }
        let output = git.start(Path::new("git"), &all, input);
        output.map_err(|error| format!("git cannot be started: {error}"))
    }

    /// Variables that disable the filters and merge drivers of the repository's own configuration;
    /// a file with such a driver is in conflict.
    fn drivers_off(&self) -> Vec<(String, String)> {
        // Most configurations name none, which takes no process to see.
        if !self.may_have_drivers() {
            return Vec::new();
        }
        let words = [
            "config",
            "--show-scope",
            "--name-only",
            "-z",
            "--get-regexp",
            r"^(filter|merge)\..*\.",
        ];
        let known = self.git(&words).unwrap_or_default();
        let mut fields = known.split('\0');
        let mut names = BTreeSet::new();
        while let (Some(scope), Some(key)) = (fields.next(), fields.next()) {
            let name = key.rsplit_once('.');
            if let Some((name, _)) = name.filter(|_| ["local", "worktree"].contains(&scope)) {
                names.insert(name.to_owned());
            }
        }
        let off = |name: String| {
            let keys: &[_] = if name.starts_with("merge.") {
                &[("driver", "false")]
            } else {
                &[
                    ("clean", ""),
                    ("smudge", ""),
                    ("process", ""),
                    ("required", "false"),
                ]
            };
            let keys = keys.iter();
            let all = keys.map(|(key, value)| (format!("{name}.{key}"), (*value).to_owned()));
            all.collect::<Vec<_>>()
        };
        config_variables(names.into_iter().flat_map(off), true)
    }

    /// Whether the repository's own configuration could have filters and merge drivers: it has such a
    /// section, or includes other files.
    fn may_have_drivers(&self) -> bool {
        let Ok(clone) = Repository::open_here() else {
            return true;
        };
        let own = self.git_dir.as_deref().unwrap_or(clone.path());
        let common = clone.common_dir();
        let mut files = [
            common.join("config"),
            common.join("config.worktree"),
            own.join("config.worktree"),
        ]
        .into_iter();
        files.any(|file| match fs::read(file) {
            Ok(text) => {
                let text = text.to_ascii_lowercase();
                let mut sections = [&b"[filter"[..], b"[merge", b"[include"].into_iter();
                sections.any(|name| text.windows(name.len()).any(|part| part == name))
            }
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        })
    }

    fn words(&self, actor: &Actor, words: &[&str], json: bool) -> Vec<String> {
        let mut all: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let options = [
            "--as",
            actor.agent.as_str(),
            "--worker",
            actor.worker.as_str(),
        ];
        all.extend(options.map(str::to_owned));
        if let Some(branch) = &self.branch {
            all.extend(["--branch".to_owned(), branch.clone()]);
        }
        if json {
            all.push("--json".to_owned());
        }
        all
    }

    fn start(&self, program: &Path, words: &[String], input: Stdio) -> io::Result<Output> {
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.folder).stdin(input);
        alone(&mut command);
        // A worker that an agent starts is not part of the agent's run.
        command.env_remove(CONTRACT);
        command.envs(environment::pinned_variable());
        // Some of git's messages are parsed.
        command.env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE");
        if let Some(git_dir) = &self.git_dir {
            command.env("GIT_DIR", git_dir);
            command.env("GIT_WORK_TREE", &self.folder);
        } else if self.is_bare {
            command.env("GIT_DIR", &self.folder);
        }
        if let Some(mark) = &self.mark {
            command.env(MARK, mark);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.output()
    }
}

/// Makes a command use its folder's repository with the commits as they are, ask for no input, and
/// ignore the terminal's signals to this process.
pub(super) fn alone(command: &mut Command) {
    // An agent may have added a replacement for an object, to mislead a reviewer.
    command.env("GIT_NO_REPLACE_OBJECTS", "1");
    command.env("GIT_GRAFT_FILE", "/dev/null/none");
    for name in LEADING {
        command.env_remove(name);
    }
    command.env("GIT_TERMINAL_PROMPT", "0");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Refuses to contact a remote whose address was changed since the worker started.
///
/// # Errors
/// What was changed.
pub(super) fn ensure_addresses_here() -> Result<(), String> {
    let clone = Repository::open_here().map_err(|error| error.to_string())?;
    ensure_addresses(clone.common_dir())
}

/// Settings as variables for git, after those of the worker's environment if it `has_existing`.
/// Configuration settings as environment variables for git, numbered after the existing ones.
pub(super) fn config_variables(
    settings: impl Iterator<Item = (String, String)>,
    has_existing: bool,
) -> Vec<(String, String)> {
    let mut there = environment::variables().filter(|(name, _)| name == "GIT_CONFIG_COUNT");
    let there = there.find_map(|(_, count)| count.to_str()?.parse::<usize>().ok());
    let mut count = there.filter(|_| has_existing).unwrap_or_default();
    let mut variables = Vec::new();
    for (key, value) in settings {
        variables.push((format!("GIT_CONFIG_KEY_{count}"), key));
        variables.push((format!("GIT_CONFIG_VALUE_{count}"), value));
        count += 1;
    }
    if !variables.is_empty() {
        variables.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string()));
    }
    variables
}

/// A path as an argument of git.
pub(super) fn word(path: &Path) -> String {
    AsRef::<OsStr>::as_ref(path).to_string_lossy().into_owned()
}
