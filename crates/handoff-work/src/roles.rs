//! Roles: which command runs which agent, and within which limits. They come from the command line,
//! or from a file that a team stores with its code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use handoff::base::ids::AgentName;
use handoff::base::text::quoted;
use handoff::git::Repository;
use serde::Deserialize;

pub use super::profile::{Commits, Rights};
use super::profile::{
    NamedVariables, Profile, Profiles, ensure_command, ensure_variable, is_command, is_listed,
};
use super::recognition::{self, Denial, Denied, Pattern, Sign};
pub use super::recognition::{Question, Unavailable};
pub use super::usage::UsageRule;
use handoff_cli::args::duration;
use handoff_cli::environment;
use handoff_cli::failure::{ErrorCode, Failure};

/// The variables that reach every agent; a `*` at the end makes a name a prefix.
const BASE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_*",
    // Network access.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    // The committer.
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    // Folders of toolchains.
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOFLAGS",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_USER_HOME",
    "ANDROID_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "NVM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "RBENV_ROOT",
    "GEM_HOME",
    "DOTNET_ROOT",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
];

/// The default time limit of the command for a new worktree.
const SETUP_TIME: Duration = Duration::from_secs(15 * 60);

/// One agent, and how it is run.
#[derive(Clone, Debug)]
pub struct Role {
    /// The agent.
    pub agent: AgentName,
    /// The name of its profile; roles of one profile pause together.
    pub profile: Option<String>,
    /// The program and its arguments, with placeholders for the values of a run.
    command: Vec<String>,
    /// The variables that are set for the agent.
    pub variables: BTreeMap<String, String>,
    /// Who commits its work.
    pub commits: Commits,
    /// The command that prepares a worktree.
    pub setup: Option<Setup>,
    /// Patterns of branches that its agent may write to, besides the issue's own; {issue} is its
    /// key.
    pub branches: Vec<String>,
    /// Where its output has the usage.
    pub usage: Vec<UsageRule>,
    /// The limits of a run.
    pub bounds: Bounds,
    /// The variables that reach the agent, besides those that reach all.
    env: Vec<String>,
    allow: Vec<String>,
    needs_person: Vec<Pattern>,
    denied: Vec<Denial>,
    unavailable: Vec<Sign>,
}

/// A command that is run in a new worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Its time limit.
    pub time: Duration,
}

/// The values that replace the placeholders of a command.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The prompt.
    pub prompt: &'a str,
    /// A file with the prompt.
    pub prompt_file: &'a Path,
    /// The file for the command's usage report, as in `GIT_HANDOFF_USAGE`.
    pub usage_file: &'a Path,
    /// Its budget, in USD.
    pub budget: Option<f64>,
    /// Where it runs.
    pub folder: &'a Path,
}

/// How a command gets its prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptBy {
    /// On standard input.
    Stdin,
    /// In a word, as text or as the name of its file.
    Word,
}

/// The limits of a role's runs.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The maximum number at a time.
    pub jobs: usize,
    /// The time limit of one; `None` is as long as the lease is extended.
    pub time: Option<Duration>,
    /// How long its processes have to end after they were asked to.
    pub grace: Duration,
    /// How often the command is run again with the findings about its contract.
    pub mend: u32,
    /// Whether its commits are pushed.
    pub pushes: bool,
    /// Whether it works in the repository's own working tree.
    pub in_place: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            jobs: 1,
            time: None,
            grace: Duration::from_secs(10),
            mend: 1,
            pushes: true,
            in_place: false,
        }
    }
}

impl Role {
    /// The command's words. An option whose placeholder has no value is omitted.
    pub fn words(&self, given: &Given<'_>) -> (Vec<String>, PromptBy) {
        let budget = given.budget.map(|budget| format!("{budget:.2}"));
        let file = given.prompt_file.to_string_lossy();
        let usage = given.usage_file.to_string_lossy();
        let folder = given.folder.to_string_lossy();
        let mut by = PromptBy::Stdin;
        let mut words: Vec<String> = Vec::new();
        for word in &self.command {
            if word.contains("{budget}") && budget.is_none() {
                let is_option = words.last().is_some_and(|before| before.starts_with('-'));
                if is_option && !word.starts_with('-') {
                    words.pop();
                }
                continue;
            }
            if word.contains("{prompt}") || word.contains("{prompt_file}") {
                by = PromptBy::Word;
            }
            let word = word.replace("{budget}", budget.as_deref().unwrap_or_default());
            let word = word.replace("{folder}", &folder);
            let word = word.replace("{usage_file}", &usage);
            // Replace the prompt last: placeholders in its text must stay.
            let word = word.replace("{prompt_file}", &file);
            words.push(word.replace("{prompt}", given.prompt));
        }
        (words, by)
    }

    /// The file name of the role's program.
    pub fn program(&self) -> &str {
        recognition::program(&self.command)
    }

    /// The name under which roles with the same profile or program pause together.
    pub fn profile_name(&self) -> String {
        let profile = self.profile.as_deref();
        profile.unwrap_or_else(|| self.program()).to_owned()
    }

    /// Whether a variable of the worker's environment reaches the agent.
    pub fn passes(&self, name: &str) -> bool {
        let is_base = BASE.iter().any(|one| match one.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => *one == name,
        });
        is_base || is_listed(name, &self.env)
    }

    /// Why the run could not take place, if its end says so; then the attempt did not fail.
    pub fn unavailable(&self, exit: Option<i32>, tail: &str) -> Option<Unavailable> {
        let now = environment::system_time();
        recognition::unavailable(&self.unavailable, &self.command, (exit, tail), now)
    }

    /// What a person has to decide, if its end says so.
    pub fn question(&self, tail: &str) -> Option<Question> {
        if let Some(denied) = recognition::denied(&self.denied, tail) {
            return Some(self.about(&denied));
        }
        self.needs_person.iter().find_map(|pattern| {
            let found = pattern.find(tail)?;
            let start = tail[..found.start()].rfind('\n').map_or(0, |at| at + 1);
            let line = tail[start..].lines().next()?;
            Some(Question {
                text: line.chars().take(500).collect(),
                rule: None,
            })
        })
    }

    /// The question about a denied action, with the rule that would allow it.
    fn about(&self, denied: &Denied) -> Question {
        let command = denied.command.as_deref().map(handoff::base::text::one_line);
        let text = match &command {
            Some(command) => format!("{}: {command}", denied.tool),
            None => denied.tool.clone(),
        };
        let tool = denied.tool.to_lowercase();
        let is_shell = ["bash", "shell", "command"]
            .iter()
            .any(|name| tool.contains(name));
        let needed = command
            .filter(|_| is_shell)
            .and_then(|command| beginnings(&command));
        let needed = needed.map(|needed| {
            let is_new = |one: &String| !self.allow.iter().any(|known| begins(one, known));
            needed.into_iter().filter(is_new).collect::<Vec<_>>()
        });
        let rule = match needed.filter(|needed| !needed.is_empty()) {
            None if is_shell && denied.command.is_none() => "allow = [\"COMMAND\"]".to_owned(),
            Some(needed) => {
                let listed: Vec<String> = needed.iter().map(|one| format!("\"{one}\"")).collect();
                format!("allow = [{}]", listed.join(", "))
            }
            None => "rights = \"full\"".to_owned(),
        };
        Question {
            text: text.chars().take(500).collect(),
            rule: Some(rule),
        }
    }

    /// Finds the command's program before anything is claimed. A path is relative to this folder,
    /// not to a worktree.
    ///
    /// # Errors
    /// A usage [`Failure`] if it can't be run.
    pub fn find_command(&mut self) -> Result<(), Failure> {
        let name = self.command[0].clone();
        let behind = self.program().to_owned();
        let missing = |name: &str| {
            let is_file = name.contains('/') && Path::new(name).is_file();
            let why = if is_file {
                "it is not executable"
            } else {
                "there is no such program"
            };
            let text = format!("{} can't be run for {}: {why}", quoted(name), self.agent);
            Failure::usage(text)
                .hint("nothing was claimed; name a program on the PATH, or its path")
        };
        let Some(found) = environment::found_by_shell(&name) else {
            return Err(missing(&name));
        };
        // Also check the program that `env` runs: `env` itself would fail at each piece of work.
        let path = self.command.iter().find(|word| word.ends_with(&behind));
        if let Some(path) = path.filter(|path| **path != name)
            && environment::found_by_shell(path).is_none()
        {
            return Err(missing(path));
        }
        if name.contains('/') {
            self.command[0] = found.to_string_lossy().into_owned();
        }
        Ok(())
    }

    /// Refuses to work in the repository's own tree if there is none, or if several runs would
    /// share it.
    ///
    /// # Errors
    /// A usage [`Failure`].
    pub fn ensure_room(&self, repository: &Repository) -> Result<(), Failure> {
        if !self.bounds.in_place {
            return Ok(());
        }
        if repository.workdir().is_none() {
            return Err(
                Failure::usage("a bare repository has no files to work on in place")
                    .hint("leave --in-place out: each piece of work gets a worktree"),
            );
        }
        if self.bounds.jobs > 1 {
            return Err(Failure::usage(format!(
                "{} jobs can't share one working tree",
                self.bounds.jobs
            ))
            .hint("leave --in-place or --jobs out"));
        }
        Ok(())
    }

    /// Whether it works in the repository's own working tree.
    pub fn is_in_place(&self) -> bool {
        self.bounds.in_place
    }
}

/// The commands of a shell line, each as program and subcommand; `None` if the line can't be
/// parsed.
fn beginnings(line: &str) -> Option<Vec<String>> {
    let (mut parts, mut quote) = (vec![String::new()], None);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if "&|;\n".contains(c) => parts.push(String::new()),
            None => {}
        }
        let is_end = quote.is_none() && "&|;\n".contains(c);
        if let Some(part) = parts.last_mut().filter(|_| !is_end) {
            part.push(c);
        }
    }
    let mut found: Vec<String> = Vec::new();
    for part in parts
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty())
    {
        let mut words = part.split_whitespace();
        let program = words.next()?;
        let is_name = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_alphabetic())
                && word
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
        };
        let subcommand = words.next().filter(|word| is_name(word));
        let beginning = subcommand.map_or(program.to_owned(), |word| format!("{program} {word}"));
        if !is_command(&beginning) || program.contains('=') {
            return None;
        }
        if !found.contains(&beginning) {
            found.push(beginning);
        }
    }
    Some(found)
}

/// Whether a command begins with the words of another one.
fn begins(command: &str, with: &str) -> bool {
    let rest = command.strip_prefix(with);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RolesFile {
    /// The folder for worktrees, relative to the file's.
    worktrees: Option<PathBuf>,
    setup: Option<SetupEntry>,
    /// Variables that reach every agent of the file.
    #[serde(default)]
    env: Vec<String>,
    /// Branches that every agent of the file may write to.
    #[serde(default)]
    branches: Vec<String>,
    #[serde(default, rename = "role")]
    roles: Vec<RoleEntry>,
    #[serde(default)]
    profile: BTreeMap<String, Profile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetupEntry {
    command: Vec<String>,
    time: Option<String>,
}

impl SetupEntry {
    fn setup(self) -> Result<Setup, String> {
        if self.command.iter().all(|word| word.is_empty()) {
            return Err("setup has no command".to_owned());
        }
        let time = self.time.as_deref().map(duration::parse).transpose();
        let time = time.map_err(|why| format!("setup: {why}"))?;
        Ok(Setup {
            command: self.command,
            time: time.unwrap_or(SETUP_TIME),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleEntry {
    agent: String,
    command: Option<Vec<String>>,
    profile: Option<String>,
    jobs: Option<usize>,
    time: Option<String>,
    grace: Option<String>,
    mend: Option<u32>,
    push: Option<bool>,
    in_place: Option<bool>,
    commit: Option<Commits>,
    rights: Option<Rights>,
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    branches: Vec<String>,
}

/// The command line's additions to every role.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    /// Variables that reach the agents.
    pub env: Vec<String>,
    /// Commands that they may run.
    pub allow: Vec<String>,
    /// The rights of the agents.
    pub rights: Option<Rights>,
}

/// The roles of a file, and its folder for worktrees.
///
/// # Errors
/// A usage [`Failure`] with the position of the fault.
pub fn of_file(
    path: &Path,
    bounds: &Bounds,
    extra: &Extra,
) -> Result<(Vec<Role>, Option<PathBuf>), Failure> {
    let shown = path.display();
    let wrong = |why: &str| {
        Failure::usage(format!("{shown} is not a file of roles: {why}"))
            .hint("nothing was claimed; `git handoff work -h` shows one")
    };
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::new(ErrorCode::NoFile, format!("{shown} can't be read: {error}"))
            .hint("nothing was claimed; name the file with the roles")
    })?;
    // Some editors put a byte order mark at the beginning.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut file: RolesFile =
        toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end()))?;
    if file.roles.is_empty() {
        return Err(wrong("it has no [[role]]"));
    }
    let setup = file.setup.take().map(SetupEntry::setup).transpose();
    let setup = setup.map_err(|why| wrong(&why))?;
    let profiles = Profiles::new(file.profile).map_err(|why| wrong(&why))?;
    let mut roles = Vec::new();
    for mut entry in file.roles {
        entry.env.extend(file.env.iter().cloned());
        entry.branches.extend(file.branches.iter().cloned());
        let mut role = entry
            .role(bounds, &profiles, extra)
            .map_err(|why| wrong(&why))?;
        role.setup.clone_from(&setup);
        roles.push(role);
    }
    let beside = path.parent().unwrap_or(Path::new(""));
    Ok((roles, file.worktrees.map(|folder| beside.join(folder))))
}

/// A role from the command line.
///
/// # Errors
/// A usage [`Failure`] if there is no command.
pub fn of_command(
    agent: AgentName,
    command: &[String],
    profile: Option<&str>,
    bounds: &Bounds,
    extra: &Extra,
) -> Result<Role, Failure> {
    let entry = RoleEntry {
        agent: agent.to_string(),
        command: Some(command.to_vec()).filter(|command| !command.is_empty()),
        profile: profile.map(str::to_owned),
        ..RoleEntry::default()
    };
    let is_named = entry.profile.is_some();
    let made = Profiles::new(BTreeMap::new()).and_then(|all| entry.role(bounds, &all, extra));
    made.map_err(|why| {
        Failure::usage(why).hint(if is_named {
            "`git handoff work -h` names the profiles; a file of roles may have its own"
        } else {
            "give it after two dashes: `git handoff work --as AGENT -- COMMAND`"
        })
    })
}

impl RoleEntry {
    fn role(self, bounds: &Bounds, profiles: &Profiles, extra: &Extra) -> Result<Role, String> {
        let agent: AgentName = self.agent.parse().map_err(|error| format!("{error}"))?;
        let name = self.profile.as_deref();
        let mut profile = name.map(|name| profiles.get(name)).transpose()?;
        let own = self.command.is_some();
        let mut profile = profile.take().unwrap_or_default();
        if let Some(command) = self.command {
            profile.command = command;
        }
        if profile.command.iter().all(|word| word.is_empty()) {
            return Err(format!("no command is given for {agent}"));
        }
        let command = profile.command.clone();
        profiles.recognize(&mut profile, &command);
        let of = |why: String| format!("{agent}: {why}");
        let allow = [self.allow, extra.allow.clone()].concat();
        let shown = match name.filter(|_| !own) {
            Some(name) => format!("profile {name}"),
            None => format!("the command {}", quoted(recognition::program(&command))),
        };
        let rights = extra.rights.or(self.rights);
        allow
            .iter()
            .try_for_each(|one| ensure_command(one))
            .map_err(of)?;
        let granted = profile.grant(rights, &allow, &shown).map_err(of)?;
        let mut env = [self.env, extra.env.clone()].concat();
        env.iter()
            .try_for_each(|one| ensure_variable(one))
            .map_err(of)?;
        env.extend(profile.env);
        env.extend(profile.env_named_in.iter().flat_map(named_variables));
        let mut variables = profile.variables;
        variables.extend(granted.variables);
        let time = |text: Option<String>| text.as_deref().map(duration::parse).transpose();
        let jobs = self.jobs.unwrap_or(bounds.jobs);
        if jobs == 0 {
            return Err(format!("{agent} has 0 jobs; at least 1 has to run"));
        }
        Ok(Role {
            profile: self.profile,
            command: with_rights(command, &granted.words, profile.args),
            variables,
            commits: self.commit.or(profile.commit).unwrap_or_default(),
            setup: None,
            branches: self.branches,
            usage: profile.usage,
            bounds: Bounds {
                jobs,
                time: time(self.time)?.or(bounds.time),
                grace: time(self.grace)?.unwrap_or(bounds.grace),
                mend: self.mend.unwrap_or(bounds.mend),
                pushes: self.push.unwrap_or(bounds.pushes),
                in_place: self.in_place.unwrap_or(bounds.in_place),
            },
            env,
            allow: [profile.allow, allow].concat(),
            needs_person: profile.needs_person,
            denied: profile.denied,
            unavailable: profile.unavailable,
            agent,
        })
    }
}

/// The command with the words for its rights in it, and more words at its end.
fn with_rights(command: Vec<String>, rights: &[String], args: Vec<String>) -> Vec<String> {
    let mut words = Vec::new();
    for word in command {
        if word == "{rights}" {
            words.extend(rights.iter().cloned());
        } else {
            words.push(word);
        }
    }
    words.extend(args);
    words
}

/// The variables that a program's own configuration names.
fn named_variables(named: &NamedVariables) -> Vec<String> {
    /// The maximum size of that configuration, in bytes.
    const LARGEST: u64 = 1024 * 1024;
    let path = match named.file.split_once('/') {
        Some(("~", rest)) => environment::home().map(|home| home.join(rest)),
        Some((folder, rest)) if folder.starts_with('$') => {
            environment::folder(&folder[1..]).map(|folder| folder.join(rest))
        }
        _ => None,
    };
    let small = |path: &PathBuf| {
        let found = fs::metadata(path);
        found.is_ok_and(|found| found.is_file() && found.len() <= LARGEST)
    };
    let text = path
        .filter(small)
        .and_then(|path| fs::read_to_string(path).ok())
        .unwrap_or_default();
    let all = named.pattern.all(&text);
    let names = all.filter_map(|found| Some(found.name("name")?.as_str().to_owned()));
    names
        .filter(|name| ensure_variable(name).is_ok() && !name.ends_with('*'))
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::super::profile::Profiles;
    use super::super::usage::UsageRule;
    use super::{
        Bounds, Commits, Extra, Given, PromptBy, Rights, Role, beginnings, of_command, of_file,
    };

    fn made(profile: Option<&str>, command: &[&str], extra: &Extra) -> Result<Role, String> {
        let agent = "reviewer".parse().expect("a name");
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let made = of_command(agent, &command, profile, &Bounds::default(), extra);
        made.map_err(|failure| failure.message.clone())
    }

    /// A role with a built-in profile.
    pub(crate) fn role(name: &str) -> Role {
        made(Some(name), &[], &Extra::default()).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    /// The usage rules of a built-in profile.
    pub(crate) fn rules(name: &str) -> Vec<UsageRule> {
        role(name).usage
    }

    /// For each agent: the end of a run that had to ask a person, the question and its rule, and
    /// the end of a run that did not.
    const ENDS: &[(&str, &str, &str, &str, &str)] = &[
        (
            "claude",
            r#"{"type":"result","permission_denials":[{"tool_name":"Bash","tool_input":{"command":"cd sub && git add x.rs && cargo test --lib | tail -3"}}]}"#,
            "Bash: cd sub && git add x.rs && cargo test --lib | tail -3",
            r#"allow = ["cd sub", "cargo test", "tail"]"#,
            r#"{"type":"result","permission_denials":[]}"#,
        ),
        (
            "claude",
            r#"{"type":"result","permission_denials":[{"tool_name":"WebFetch","tool_input":{"url":"https://example.com"}}]}"#,
            "WebFetch: https://example.com",
            r#"rights = "full""#,
            r#"{"type":"result"}"#,
        ),
        (
            "codex",
            r#"{"id":"0","msg":{"type":"exec_approval_request","command":["rm"]}}"#,
            r#"{"id":"0","msg":{"type":"exec_approval_request","command":["rm"]}}"#,
            "",
            r#"{"type":"turn.completed","usage":{"input_tokens":5}}"#,
        ),
        (
            "copilot",
            "✗ run a command (shell)\n  │ cargo test --lib\n  └ Permission denied because no interactive user response was available. Retry\n",
            "shell: cargo test --lib",
            r#"allow = ["cargo test"]"#,
            "✗ run a command (shell)\n  │ cargo test --lib\n  └ Failed with exit code 9\n",
        ),
        (
            "gemini",
            "Error executing tool run_shell_command: Tool execution denied by policy.\n",
            "run_shell_command",
            r#"allow = ["COMMAND"]"#,
            "Error executing tool run_shell_command: no such file\n",
        ),
        (
            "qwen",
            r#"{"type":"result","permission_denials":[{"tool_name":"run_shell_command","tool_input":{"command":"echo $HOME"}}]}"#,
            "run_shell_command: echo $HOME",
            r#"allow = ["echo"]"#,
            r#"{"type":"result","permission_denials":[]}"#,
        ),
        (
            "opencode",
            r#"{"type":"tool_use","part":{"tool":"bash","state":{"status":"error","input":{"command":"cargo test --lib"},"error":"The user has specified a rule which prevents you from using this specific tool call."}}}"#,
            "bash: cargo test --lib",
            r#"allow = ["cargo test"]"#,
            r#"{"type":"tool_use","part":{"tool":"bash","state":{"status":"error","input":{"command":"cargo test"},"error":"it timed out"}}}"#,
        ),
        (
            "opencode",
            r#"{"type":"permission.asked","properties":{"permission":"edit"}}"#,
            r#"{"type":"permission.asked","properties":{"permission":"edit"}}"#,
            "",
            r#"{"type":"step_finish","part":{"reason":"stop"}}"#,
        ),
    ];

    #[test]
    fn every_profile_that_ships_can_be_run_and_knows_when_a_person_is_needed() {
        let all = Profiles::new(BTreeMap::new()).expect("they are TOML");
        assert_eq!(all.shipped_names().len(), 7);
        for name in all.shipped_names() {
            let role = role(&name);
            assert_eq!(role.program(), name);
            assert!(
                !role.needs_person.is_empty() || !role.denied.is_empty(),
                "{name}"
            );
            assert!(
                !role.command.iter().any(|word| word == "{rights}"),
                "{name}"
            );
        }
        for (name, asked, text, rule, done) in ENDS {
            let question = role(name)
                .question(asked)
                .unwrap_or_else(|| panic!("{name}"));
            assert_eq!(question.text, *text);
            assert_eq!(question.rule.unwrap_or_default(), *rule, "{name}");
            assert_eq!(role(name).question(done), None, "{name}");
        }
    }

    #[test]
    fn what_a_role_may_run_is_said_once_and_each_program_told_in_its_own_words() {
        let allowing = |rights| Extra {
            allow: vec!["cargo test".to_owned()],
            rights,
            ..Extra::default()
        };
        let shown = |name: &str, extra: &Extra| {
            let role = made(Some(name), &[], extra).unwrap_or_else(|why| panic!("{why}"));
            let variables = role.variables.values().cloned().collect::<Vec<_>>();
            [role.command, variables].concat().join(" ")
        };
        let edit = Some(Rights::Edit);
        for (name, wanted) in [
            ("claude", "Bash(git handoff:*),Bash(cargo test:*) --max"),
            ("codex", "--sandbox workspace-write -"),
            (
                "copilot",
                "--allow-tool=shell(git handoff:*) --allow-tool=shell(cargo test:*)",
            ),
            (
                "gemini",
                "run_shell_command(git show),run_shell_command(cargo test)",
            ),
            (
                "qwen",
                "run_shell_command(git handoff) run_shell_command(cargo test)",
            ),
            (
                "opencode",
                r#""cargo test":"allow","cargo test *":"allow"}}"#,
            ),
        ] {
            let told = shown(name, &allowing(edit));
            assert!(told.contains(wanted), "{name}: {told}");
            let full = shown(name, &allowing(Some(Rights::Full)));
            assert!(!full.contains("cargo test"), "{name}: {full}");
        }
        let refused = |name: Option<&str>, command: &[&str], extra: &Extra| {
            made(name, command, extra).expect_err("it is refused")
        };
        let why = refused(Some("amp"), &[], &allowing(None));
        assert!(
            why.starts_with("reviewer: profile amp has no option for allowed commands"),
            "{why}"
        );
        let why = refused(None, &["./own.sh"], &allowing(edit));
        assert!(
            why.starts_with("reviewer: the command \"own.sh\" has no option for rights"),
            "{why}"
        );
        let odd = Extra {
            allow: vec!["rm *),Bash(".to_owned()],
            ..Extra::default()
        };
        let why = refused(Some("claude"), &[], &odd);
        assert!(why.contains("is not the beginning of one command"), "{why}");
        let odd = Extra {
            env: vec!["A=B".to_owned()],
            ..Extra::default()
        };
        let why = refused(Some("claude"), &[], &odd);
        assert!(
            why.contains("env \"A=B\" is not a variable's name"),
            "{why}"
        );
    }

    #[test]
    fn the_places_of_a_command_are_filled_and_options_without_a_value_left_out() {
        let given = |budget| Given {
            prompt: "Do {folder} \"now\"",
            prompt_file: Path::new("/tmp/p/prompt.md"),
            usage_file: Path::new("/tmp/p/usage.json"),
            budget,
            folder: Path::new("/tmp/w"),
        };
        let (words, by) = role("claude").words(&given(Some(2.5)));
        assert_eq!(by, PromptBy::Stdin);
        assert_eq!(words[words.len() - 2..], ["--max-budget-usd", "2.50"]);
        let (words, _) = role("claude").words(&given(None));
        assert!(
            !words.iter().any(|word| word.contains("budget")),
            "{words:?}"
        );
        let command = [
            "./own",
            "--limit={budget}",
            "-v",
            "{prompt}",
            "{folder}/x",
            "{prompt_file}",
        ];
        let own = made(None, &command, &Extra::default()).expect("it is one");
        let (words, by) = own.words(&given(None));
        assert_eq!(by, PromptBy::Word);
        let wanted = [
            "./own",
            "-v",
            "Do {folder} \"now\"",
            "/tmp/w/x",
            "/tmp/p/prompt.md",
        ];
        assert_eq!(words, wanted);
    }

    #[test]
    fn only_listed_variables_reach_an_agent() {
        let extra = Extra {
            env: vec!["DATABASE_URL".to_owned(), "APP_*".to_owned()],
            ..Extra::default()
        };
        let claude = made(Some("claude"), &[], &extra).expect("it is one");
        for name in [
            "PATH",
            "LC_ALL",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CONFIG_DIR",
            "DATABASE_URL",
            "APP_X",
            "https_proxy",
        ] {
            assert!(claude.passes(name), "{name}");
        }
        for name in [
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "SSH_AUTH_SOCK",
            "OPENAI_API_KEY",
            "GIT_DIR",
            "LC",
            "APP",
        ] {
            assert!(!claude.passes(name), "{name}");
        }
        // A custom command gets what its program's built-in profile knows.
        let own = made(None, &["env", "A=B", "/opt/bin/gemini"], &Extra::default());
        let own = own.expect("it is one");
        assert!(own.passes("GEMINI_API_KEY") && !own.passes("ANTHROPIC_API_KEY"));
        assert!(!own.unavailable.is_empty() && !own.usage.is_empty());
        let plain = made(None, &["./own.sh"], &Extra::default()).expect("it is one");
        assert!(!plain.passes("GEMINI_API_KEY") && plain.unavailable.is_empty());
        assert_eq!(
            (plain.commits, role("codex").commits),
            (Commits::Agent, Commits::Worker)
        );
    }

    #[test]
    fn a_file_says_what_differs_from_a_profile_and_what_is_wrong_has_its_place() {
        let folder = tempfile::tempdir().expect("there is one");
        let path = folder.path().join("roles.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).expect("it is written");
            let made = of_file(&path, &Bounds::default(), &Extra::default());
            made.map(|(roles, _)| roles)
                .map_err(|failure| failure.message.clone())
        };
        let text = "\u{feff}env = [\"TEAM_*\"]\nbranches = [\"release/*\"]\nsetup = {command = [\"make\", \"deps\"]}\n\
            [[role]]\nagent = \"a\"\nprofile = \"ours\"\nallow = [\"make\"]\nenv = [\"KEY\"]\nbranches = [\"docs/{issue}\"]\n\
            [profile.ours]\nextends = \"mine\"\nargs = [\"--model\", \"m\"]\n\
            [profile.mine]\nextends = \"claude\"\nallow = [\"cargo test\"]\nenv = [\"SCCACHE_DIR\"]\ncommit = \"worker\"\n";
        let roles = read(text).expect("it is one");
        let role = &roles[0];
        for name in ["TEAM_X", "KEY", "SCCACHE_DIR", "ANTHROPIC_API_KEY"] {
            assert!(role.passes(name), "{name}");
        }
        let command = role.command.join(" ");
        assert!(
            command.contains("Bash(git handoff:*),Bash(cargo test:*),Bash(make:*)"),
            "{command}"
        );
        assert!(command.ends_with("--model m"), "{command}");
        assert_eq!(role.commits, Commits::Worker);
        assert_eq!(role.branches, ["docs/{issue}", "release/*"]);
        let setup = role.setup.as_ref().expect("it has one");
        assert_eq!(
            (setup.command.join(" "), setup.time.as_secs()),
            ("make deps".to_owned(), 900)
        );
        assert_eq!(role.profile.as_deref(), Some("ours"));
        let of_profile =
            |profile: &str| format!("[[role]]\nagent = \"a\"\nprofile = \"x\"\n{profile}");
        for (text, why) in [
            (
                "[[role]]\nagent = \"a\"\nprofil = \"claude\"\n".to_owned(),
                "line 3, column 1",
            ),
            (
                of_profile("[profile.x]\nextends = \"x\"\n"),
                "profile \"x\" extends itself: x → x",
            ),
            (
                of_profile("[profile.x]\nextends = \"y\"\n[profile.y]\nextends = \"x\"\n"),
                "profile \"x\" extends itself: x → y → x",
            ),
            (
                of_profile("[profile.x]\nextends = \"nobody\"\n"),
                "profile \"x\" extends \"nobody\": there is no profile",
            ),
            (
                of_profile("[profile.x]\nenv = [\"A\"]\n"),
                "profile \"x\": it has no `command`",
            ),
            (
                of_profile("[profile.x]\nextends = \"claude\"\nalow = [\"x\"]\n"),
                "unknown field `alow`",
            ),
            (
                of_profile("[profile.x]\nextends = \"claude\"\nneeds_person = ['(']\n"),
                "unclosed group",
            ),
            (
                of_profile("[profile.x]\nextends = \"claude\"\nusage = [{cost = \"usd\"}]\n"),
                "\"usd\" is not a place",
            ),
            (
                of_profile("[profile.x]\nextends = \"claude\"\nrights.most = {}\n"),
                "\"most\" is not a right",
            ),
        ] {
            let told = read(&text).expect_err("it is refused");
            assert!(
                told.contains("is not a file of roles") && told.contains(why),
                "{why}: {told}"
            );
        }
    }

    #[test]
    fn the_commands_of_a_line_are_named_by_their_beginnings() {
        let shown = |line: &str| beginnings(line).map(|found| found.join(", "));
        for (line, wanted) in [
            ("cargo test --lib", Some("cargo test")),
            (
                "npm run 'a && b'; git push -q origin HEAD",
                Some("npm run, git push"),
            ),
            ("./x.sh | tail -3", Some("./x.sh, tail")),
            ("A=1 make", None),
            ("$TOOL x", None),
            ("(cd a)", None),
        ] {
            assert_eq!(shown(line).as_deref(), wanted, "{line}");
        }
    }
}
