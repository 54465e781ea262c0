//! Roles: which agent is run by which command, and within which bounds. They come from the command
//! line, or from a file that a team keeps with its code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use handoff_base::ids::AgentName;
use handoff_base::text::quoted;
use handoff_git::Repository;
use regex::Regex;
use serde::Deserialize;

use super::usage::UsageRule;
use crate::args::duration;
use crate::environment;
use crate::failure::{ErrorCode, Failure};

/// The profiles that the program ships.
const SHIPPED: &str = include_str!("profiles.toml");

/// One agent, and how it is run.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    pub(crate) agent: AgentName,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) profile: Option<String>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) commits: Commits,
    pub(crate) setup: Option<Setup>,
    pub(crate) branches: Vec<String>,
    /// What the end of its output holds if a person has to decide something.
    pub(crate) needs_person: Vec<Regex>,
    /// Where its output tells what it used.
    pub(super) usage: Vec<UsageRule>,
    pub(crate) bounds: Bounds,
}

/// What a role's runs are bounded by.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// How many may run at a time.
    pub(crate) jobs: usize,
    /// How long one may take; without, as long as the lease is extended.
    pub(crate) time: Option<Duration>,
    /// How long its processes have to end after they were asked to.
    pub(crate) grace: Duration,
    /// How often the command is run again with the findings about its contract.
    pub(crate) mend: u32,
    /// Whether its commits are pushed.
    pub(crate) pushes: bool,
    /// Whether it works in the repository's own working tree.
    pub(crate) in_place: bool,
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
    /// Finds the program that the command names, before anything is claimed. One that is given by a
    /// path is found from this folder, not from a worktree's.
    ///
    /// # Errors
    /// A usage [`Failure`] if it can't be run.
    pub(crate) fn find_command(&mut self) -> Result<(), Failure> {
        let name = self.command[0].clone();
        let Some(found) = environment::found_by_shell(&name) else {
            let text = format!(
                "{} can't be run for {}: there is no such program",
                quoted(&name),
                self.agent
            );
            return Err(Failure::usage(text)
                .advice("nothing was claimed; name a program on the PATH, or its path"));
        };
        if name.contains('/') {
            self.command[0] = found.to_string_lossy().into_owned();
        }
        Ok(())
    }

    /// Refuses to work in place where that can't be.
    ///
    /// # Errors
    /// A usage [`Failure`].
    pub(crate) fn ensure_room(&self, repository: &Repository) -> Result<(), Failure> {
        if !self.bounds.in_place {
            return Ok(());
        }
        if repository.workdir().is_none() {
            return Err(
                Failure::usage("a bare repository has no files to work on in place")
                    .advice("leave --in-place out: each piece of work gets a worktree"),
            );
        }
        if self.bounds.jobs > 1 {
            return Err(Failure::usage(format!(
                "{} jobs can't share one working tree",
                self.bounds.jobs
            ))
            .advice("leave --in-place or --jobs out"));
        }
        Ok(())
    }

    /// Whether it works in the repository's own working tree.
    pub(crate) fn is_in_place(&self) -> bool {
        self.bounds.in_place
    }
}

/// SHIM
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commits {
    Worker,
    Agent,
}
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) command: Vec<String>,
    pub(crate) time: Duration,
}
pub(crate) struct Given<'a> {
    pub(crate) prompt: &'a str,
    pub(crate) prompt_file: &'a Path,
    pub(crate) budget: Option<f64>,
    pub(crate) folder: &'a Path,
}
#[derive(PartialEq, Eq)]
pub(crate) enum PromptBy {
    Stdin,
    Word,
}
pub(crate) struct Unavailable {
    pub(crate) reason: String,
    pub(crate) retry_after: Option<Duration>,
}
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) rule: Option<String>,
}
impl Role {
    pub(crate) fn program(&self) -> String {
        self.command[0].clone()
    }
    pub(crate) fn profile_name(&self) -> String {
        self.profile.clone().unwrap_or_else(|| self.program())
    }
    pub(crate) fn words(&self, given: &Given<'_>) -> (Vec<String>, PromptBy) {
        let mut by = PromptBy::Stdin;
        let words = self.command.iter().map(|word| {
            if word.contains("{prompt}") || word.contains("{prompt_file}") {
                by = PromptBy::Word;
            }
            let word = word.replace("{prompt_file}", &given.prompt_file.to_string_lossy());
            word.replace("{prompt}", given.prompt)
        });
        let words = words.collect();
        (words, by)
    }
    pub(crate) fn passes(&self, _: &str) -> bool {
        true
    }
    pub(crate) fn unavailable(&self, exit: Option<i32>, tail: &str) -> Option<Unavailable> {
        (exit == Some(75)).then(|| Unavailable {
            reason: tail.lines().last().unwrap_or_default().to_owned(),
            retry_after: None,
        })
    }
    pub(crate) fn question(&self, tail: &str) -> Option<Question> {
        self.needs_person.iter().find_map(|pattern| {
            let found = pattern.find(tail)?;
            let start = tail[..found.start()].rfind('\n').map_or(0, |at| at + 1);
            let text = tail[start..].lines().next()?.chars().take(500).collect();
            Some(Question { text, rule: None })
        })
    }
}

/// A file with roles.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RolesFile {
    /// The folder for worktrees, from the file's own.
    worktrees: Option<PathBuf>,
    #[serde(default, rename = "role")]
    roles: Vec<RoleEntry>,
    #[serde(default)]
    profile: BTreeMap<String, Profile>,
}

#[derive(Deserialize)]
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
}

/// How an agent that people use is run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    #[serde(rename = "title")]
    _title: Option<String>,
    command: Vec<String>,
    #[serde(default)]
    needs_person: Vec<String>,
    #[serde(default)]
    usage: Vec<UsageRule>,
}

/// The roles of a file, and the folder that it names for worktrees.
///
/// # Errors
/// A usage [`Failure`] with the place of what is wrong.
pub(crate) fn of_file(
    path: &Path,
    bounds: &Bounds,
) -> Result<(Vec<Role>, Option<PathBuf>), Failure> {
    let shown = path.display();
    let wrong = |why: &str| {
        Failure::usage(format!("{shown} is no file of roles: {why}"))
            .hint("`git handoff work -h` shows one")
    };
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::new(ErrorCode::NoFile, format!("{shown} can't be read: {error}"))
            .advice("nothing was claimed; name the file with the roles")
    })?;
    let file: RolesFile =
        toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end()))?;
    if file.roles.is_empty() {
        return Err(wrong("it has no [[role]]"));
    }
    let mut roles = Vec::new();
    for entry in file.roles {
        roles.push(
            entry
                .role(bounds, &file.profile)
                .map_err(|why| wrong(&why))?,
        );
    }
    let beside = path.parent().unwrap_or(Path::new(""));
    Ok((roles, file.worktrees.map(|folder| beside.join(folder))))
}

/// A role from the command line.
///
/// # Errors
/// A usage [`Failure`] if there is no command.
pub(crate) fn of_command(
    agent: AgentName,
    command: &[String],
    profile: Option<&str>,
    bounds: &Bounds,
) -> Result<Role, Failure> {
    let entry = RoleEntry {
        agent: agent.to_string(),
        command: Some(command.to_vec()).filter(|command| !command.is_empty()),
        profile: profile.map(str::to_owned),
        jobs: None,
        time: None,
        grace: None,
        mend: None,
        push: None,
        in_place: None,
    };
    let is_named = entry.profile.is_some();
    entry.role(bounds, &BTreeMap::new()).map_err(|why| {
        Failure::usage(why).hint(if is_named {
            "`git handoff work -h` names the profiles; a file of roles may have its own"
        } else {
            "give it after two dashes: `git handoff work --as AGENT -- COMMAND`"
        })
    })
}

impl RoleEntry {
    fn role(self, bounds: &Bounds, own: &BTreeMap<String, Profile>) -> Result<Role, String> {
        let agent: AgentName = self.agent.parse().map_err(|error| format!("{error}"))?;
        let profile = self
            .profile
            .as_deref()
            .map(|name| profile(name, own))
            .transpose()?;
        let command = self
            .command
            .or(profile.as_ref().map(|profile| profile.command.clone()));
        let command = command.filter(|command| command.iter().any(|word| !word.is_empty()));
        let command = command.ok_or_else(|| format!("no command is given for {agent}"))?;
        let pattern = |text: &String| {
            Regex::new(text).map_err(|error| format!("needs_person {}: {error}", quoted(text)))
        };
        let needs_person = profile
            .iter()
            .flat_map(|profile| &profile.needs_person)
            .map(pattern);
        let time = |text: Option<String>| text.as_deref().map(duration::parse).transpose();
        let jobs = self.jobs.unwrap_or(bounds.jobs);
        if jobs == 0 {
            return Err(format!("{agent} has 0 jobs; at least 1 has to run"));
        }
        Ok(Role {
            profile: self.profile,
            variables: BTreeMap::new(),
            commits: Commits::Agent,
            setup: None,
            branches: Vec::new(),
            needs_person: needs_person.collect::<Result<_, String>>()?,
            usage: profile.map_or_else(Vec::new, |profile| profile.usage),
            bounds: Bounds {
                jobs,
                time: time(self.time)?.or(bounds.time),
                grace: time(self.grace)?.unwrap_or(bounds.grace),
                mend: self.mend.unwrap_or(bounds.mend),
                pushes: self.push.unwrap_or(bounds.pushes),
                in_place: self.in_place.unwrap_or(bounds.in_place),
            },
            agent,
            command,
        })
    }
}

/// A profile by its name: one of the file, or one that the program ships.
fn profile(name: &str, own: &BTreeMap<String, Profile>) -> Result<Profile, String> {
    let shipped: BTreeMap<String, Profile> =
        toml::from_str(SHIPPED).map_err(|error| error.to_string())?;
    let found = own.get(name).or_else(|| shipped.get(name)).cloned();
    found.ok_or_else(|| {
        let names: Vec<&str> = own
            .keys()
            .chain(shipped.keys())
            .map(String::as_str)
            .collect();
        format!(
            "there is no profile {}; there are {}",
            quoted(name),
            names.join(", ")
        )
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::super::usage::UsageRule;
    use super::{Bounds, Profile, SHIPPED, of_command};

    /// Where a profile that ships finds what was used.
    pub(in crate::work) fn rules(name: &str) -> Vec<UsageRule> {
        let mut shipped: BTreeMap<String, Profile> = toml::from_str(SHIPPED).expect("it is TOML");
        shipped.remove(name).expect("it ships").usage
    }

    /// What ends a run of each agent that had to ask a person, and of one that had not.
    const ENDS: [(&str, &str, &str); 3] = [
        (
            "claude",
            r#"{"type":"result","permission_denials":[{"tool_name":"Bash","tool_input":{}}]}"#,
            r#"{"type":"result","permission_denials":[]}"#,
        ),
        (
            "codex",
            r#"{"id":"0","msg":{"type":"exec_approval_request","command":["rm"]}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":5}}"#,
        ),
        (
            "opencode",
            r#"{"type":"permission.asked","properties":{"permission":"edit"}}"#,
            r#"{"type":"step_finish","part":{"reason":"stop"}}"#,
        ),
    ];

    #[test]
    fn every_profile_that_ships_can_be_run_and_knows_when_a_person_is_needed() {
        let shipped: BTreeMap<String, Profile> = toml::from_str(SHIPPED).expect("it is TOML");
        assert_eq!(shipped.len(), 6);
        for name in shipped.keys() {
            let agent = "reviewer".parse().expect("a name");
            let role = of_command(agent, &[], Some(name), &Bounds::default());
            let role = role.unwrap_or_else(|failure| panic!("{name}: {}", failure.message));
            assert!(!role.needs_person.is_empty(), "{name}");
            let needs = |end: &str| {
                role.needs_person
                    .iter()
                    .any(|pattern| pattern.is_match(end))
            };
            for (_, asked, done) in ENDS.iter().filter(|(of, _, _)| of == name) {
                assert!(needs(asked) && !needs(done), "{name}");
            }
        }
    }
}
