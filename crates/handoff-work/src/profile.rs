//! Profiles: how agents' programs are run, what they may do and how to read their output. The
//! program contains some as data; a file of roles may define its own, from scratch or based on one.

use std::collections::BTreeMap;

use handoff::base::text::quoted;
use serde::Deserialize;

use super::recognition::{Denial, Pattern, Sign, program};
use super::usage::UsageRule;

/// The built-in profiles.
const SHIPPED: &str = include_str!("profiles.toml");

/// How much an agent may do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// Edit the files of its folder, and run the commands that are allowed.
    Edit,
    /// Everything that its user may do.
    Full,
}

impl std::str::FromStr for Rights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "edit" => Ok(Self::Edit),
            "full" => Ok(Self::Full),
            _ => Err("rights are edit or full".to_owned()),
        }
    }
}

impl Rights {
    fn name(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Full => "full",
        }
    }
}

/// Who commits the changes that are uncommitted when a contract arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Commits {
    /// The worker.
    Worker,
    #[default]
    /// The agent.
    Agent,
}

/// How to pass a program its rights.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RightsRule {
    /// The words for {rights} in the command; {allow} stands for the allowed commands.
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// The form of an allowed command: {command}. In `words`, each gets words of its own unless
    /// `join` is given.
    #[serde(default)]
    each: Vec<String>,
    join: Option<String>,
    /// Whether every command may run, so that none has to be allowed.
    #[serde(default)]
    every_command: bool,
}

/// The place in a program's user configuration that names variables it reads.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedVariables {
    /// The file: `~/` is the home folder, `$NAME/` the folder in a variable.
    pub(super) file: String,
    /// The group `name` is a variable's name.
    pub(super) pattern: Pattern,
}

/// A profile as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    #[serde(rename = "title")]
    _title: Option<String>,
    /// The profile that this one is based on.
    extends: Option<String>,
    #[serde(default)]
    pub(super) command: Vec<String>,
    /// More words at the end of the command.
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, String>,
    /// The variables that reach the agent, as names or with a `*` at the end.
    #[serde(default)]
    pub(super) env: Vec<String>,
    #[serde(default)]
    pub(super) env_named_in: Vec<NamedVariables>,
    pub(super) commit: Option<Commits>,
    /// The default rights of a role.
    pub(super) default_rights: Option<Rights>,
    /// By the name of the rights.
    #[serde(default)]
    rights: BTreeMap<String, RightsRule>,
    /// The commands that its agents may run.
    #[serde(default)]
    pub(super) allow: Vec<String>,
    #[serde(default)]
    pub(super) needs_person: Vec<Pattern>,
    #[serde(default)]
    pub(super) denied: Vec<Denial>,
    #[serde(default)]
    pub(super) unavailable: Vec<Sign>,
    #[serde(default)]
    pub(super) usage: Vec<UsageRule>,
}

/// A role's rights as words for its program.
#[derive(Default)]
pub(super) struct Granted {
    /// The words that replace {rights}.
    pub(super) words: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
}

/// The profiles of a file, and the built-in ones.
pub(super) struct Profiles {
    own: BTreeMap<String, Profile>,
    shipped: BTreeMap<String, Profile>,
}

impl Profiles {
    pub(super) fn new(own: BTreeMap<String, Profile>) -> Result<Self, String> {
        let shipped = toml::from_str(SHIPPED).map_err(|error| error.to_string())?;
        Ok(Self { own, shipped })
    }

    /// The names of the built-in ones.
    #[cfg(test)]
    pub(super) fn shipped_names(&self) -> Vec<String> {
        self.shipped.keys().cloned().collect()
    }

    /// A profile, with what it extends.
    ///
    /// # Errors
    /// Why the profile can't be used.
    pub(super) fn get(&self, name: &str) -> Result<Profile, String> {
        let mut chain = vec![name.to_owned()];
        let mut profile = self.entry(name)?.clone();
        while let Some(base) = profile.extends.take() {
            if chain.contains(&base) {
                chain.push(base);
                return Err(format!(
                    "profile {} extends itself: {}",
                    quoted(name),
                    chain.join(" → ")
                ));
            }
            let below = self.entry(&base).map_err(|why| {
                format!("profile {} extends {}: {why}", quoted(name), quoted(&base))
            })?;
            profile = profile.on_top_of(below.clone());
            chain.push(base);
        }
        profile
            .ensure()
            .map_err(|why| format!("profile {}: {why}", quoted(name)))?;
        Ok(profile)
    }

    fn entry(&self, name: &str) -> Result<&Profile, String> {
        let found = self.own.get(name).or_else(|| self.shipped.get(name));
        found.ok_or_else(|| {
            let names: Vec<&str> = self
                .own
                .keys()
                .chain(self.shipped.keys())
                .map(String::as_str)
                .collect();
            format!(
                "there is no profile {}; there are {}",
                quoted(name),
                names.join(", ")
            )
        })
    }

    /// Completes a custom command whose program has a built-in profile: adds that profile's
    /// variables, and its output rules unless the command has its own.
    pub(super) fn recognize(&self, profile: &mut Profile, command: &[String]) {
        let program = program(command);
        let known = self.shipped.values().find(|known| {
            !program.is_empty() && super::recognition::program(&known.command) == program
        });
        let Some(known) = known.cloned() else { return };
        // Duplicate names do no harm.
        profile.env.extend(known.env);
        profile.env_named_in.extend(known.env_named_in);
        or(&mut profile.unavailable, known.unavailable);
        or(&mut profile.usage, known.usage);
        if profile.needs_person.is_empty() && profile.denied.is_empty() {
            profile.needs_person = known.needs_person;
        }
        or(&mut profile.denied, known.denied);
    }
}

fn or<T>(own: &mut Vec<T>, base: Vec<T>) {
    if own.is_empty() {
        *own = base;
    }
}

impl Profile {
    /// The profile's own values, and those of the base where it has none. Lists of names are
    /// joined.
    fn on_top_of(self, base: Self) -> Self {
        let mut all = base;
        if !self.command.is_empty() {
            all.command = self.command;
        }
        all.extends = all.extends.take();
        all.args.extend(self.args);
        all.variables.extend(self.variables);
        all.env.extend(self.env);
        all.env_named_in.extend(self.env_named_in);
        all.commit = self.commit.or(all.commit);
        all.default_rights = self.default_rights.or(all.default_rights);
        all.rights.extend(self.rights);
        all.allow.extend(self.allow);
        all.needs_person.extend(self.needs_person);
        all.denied.splice(..0, self.denied);
        all.unavailable.splice(..0, self.unavailable);
        all.usage.splice(..0, self.usage);
        all
    }

    fn ensure(&self) -> Result<(), String> {
        if self.command.is_empty() {
            return Err("it has no `command`, and extends none that has one".to_owned());
        }
        let named = self.env_named_in.iter().map(|named| &named.pattern);
        let mut patterns = self.needs_person.iter().chain(named);
        patterns.try_for_each(Pattern::ensure)?;
        self.unavailable.iter().try_for_each(Sign::ensure)?;
        self.denied.iter().try_for_each(Denial::ensure)?;
        self.usage.iter().try_for_each(UsageRule::ensure)?;
        self.env.iter().try_for_each(|name| ensure_variable(name))?;
        let level = self
            .rights
            .keys()
            .find(|name| name.parse::<Rights>().is_err());
        match level {
            Some(name) => Err(format!(
                "{} is not a right; there are edit and full",
                quoted(name)
            )),
            None => Ok(()),
        }
    }

    /// A role's rights, in the words of its program.
    ///
    /// # Errors
    /// Why the program can't be given them.
    pub(super) fn grant(
        &self,
        wanted: Option<Rights>,
        allow: &[String],
        shown: &str,
    ) -> Result<Granted, String> {
        let Some(rights) = wanted.or(self.default_rights) else {
            if allow.is_empty() {
                return Ok(Granted::default());
            }
            return Err(format!(
                "{shown} has no option for allowed commands: write it into its command, or extend a profile that can"
            ));
        };
        let Some(rule) = self.rights.get(rights.name()) else {
            let others: Vec<String> = self.rights.keys().map(|name| quoted(name)).collect();
            return Err(if others.is_empty() {
                format!(
                    "{shown} has no option for rights: write them into its command, or extend a profile that can"
                )
            } else {
                format!(
                    "{shown} has no rights {}: it can be run with {}",
                    quoted(rights.name()),
                    others.join(" or ")
                )
            });
        };
        let has_place = self.command.iter().any(|word| word == "{rights}");
        if !has_place && !rule.words.is_empty() {
            if wanted.is_none() && allow.is_empty() {
                return Ok(Granted::default());
            }
            return Err(format!(
                "{shown} has a command without the word {{rights}}, where its rights go"
            ));
        }
        if rights == Rights::Edit
            && rule.each.is_empty()
            && !rule.every_command
            && !allow.is_empty()
        {
            return Err(format!(
                "{shown} can't be told single commands to allow: it needs rights = \"full\""
            ));
        }
        let mut commands: Vec<&String> = Vec::new();
        for command in self.allow.iter().chain(allow) {
            ensure_command(command)?;
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        Ok(rule.granted(&commands))
    }
}

impl RightsRule {
    fn granted(&self, commands: &[&String]) -> Granted {
        let written = |command: &&String| {
            let words = self.each.iter();
            let words = words.map(|word| word.replace("{command}", command));
            words.collect::<Vec<String>>()
        };
        let all: Vec<String> = commands.iter().flat_map(written).collect();
        let joined = all.join(self.join.as_deref().unwrap_or(" "));
        let mut words = Vec::new();
        for word in &self.words {
            if word == "{allow}" && self.join.is_none() {
                words.extend(all.iter().cloned());
            } else {
                words.push(word.replace("{allow}", &joined));
            }
        }
        let variables = self.variables.iter();
        let variables =
            variables.map(|(name, value)| (name.clone(), value.replace("{allow}", &joined)));
        Granted {
            words,
            variables: variables.collect(),
        }
    }
}

/// Refuses text that is not the beginning of a single command: programs would read it as a pattern,
/// and a shell as several commands.
pub(super) fn ensure_command(command: &str) -> Result<(), String> {
    if is_command(command) {
        return Ok(());
    }
    Err(format!(
        "allow {} is not the beginning of one command, such as \"cargo test\": letters, digits and . _ / @ = + : -",
        quoted(command)
    ))
}

pub(super) fn is_command(command: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || " ._/@=+:-".contains(c);
    !command.is_empty() && command.trim() == command && command.chars().all(is_right)
}

/// Refuses text that is neither a variable's name nor a prefix with a `*`.
pub(super) fn ensure_variable(name: &str) -> Result<(), String> {
    let bare = name.strip_suffix('*').unwrap_or(name);
    let is_right = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = bare.chars().all(is_right) && bare.starts_with(|c: char| !c.is_ascii_digit());
    if is_name {
        return Ok(());
    }
    Err(format!(
        "env {} is not a variable's name: letters, digits and _, with a * at the end for all that begin so",
        quoted(name)
    ))
}

/// Whether a variable is listed.
pub(super) fn is_listed(name: &str, listed: &[String]) -> bool {
    listed.iter().any(|one| match one.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => one == name,
    })
}
