//! git's configuration, where libgit2 would read it differently.

use std::collections::BTreeMap;
use std::io::Write;

use git2::{Config, ConfigLevel, ErrorClass, ErrorCode};
use tempfile::NamedTempFile;

use crate::program::{Program, ProgramError, Setting};

/// Whether git must read the configuration: libgit2 supports fewer `includeIf` conditions, does not
/// follow links in them, and evaluates `onbranch` unreliably on a detached HEAD.
pub(crate) fn is_for_git_only(config: &Config) -> bool {
    let holds = || -> Result<bool, git2::Error> {
        let mut entries = config.entries(None)?;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.name_bytes();
            // A key without a value has nothing to read.
            let value = if entry.has_value() {
                entry.value_bytes()
            } else {
                b""
            };
            let is_elsewhere =
                value.starts_with(b"%(") || (value.starts_with(b"~") && !value.starts_with(b"~/"));
            if name.starts_with(b"includeif.") || (name == b"include.path" && is_elsewhere) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    // If libgit2 fails, git may succeed.
    holds().unwrap_or(true)
}

/// The configuration of the current folder's repository, as git reads it.
///
/// # Errors
/// When git can't read it.
pub(crate) fn read_by_git() -> Result<Config, git2::Error> {
    let settings = Program::here().settings(".").map_err(failed)?;
    // `safe.directory` on the command line can reset the list in the user's files: ask git whether
    // it trusts the repository.
    let is_about_trust = |one: &Setting| one.scope == "command" && one.key == "safe.directory";
    if settings.iter().any(is_about_trust) {
        let refused = |error: ProgramError| {
            git2::Error::new(ErrorCode::Owner, ErrorClass::Config, error.to_string())
        };
        Program::here().git_dir().map_err(refused)?;
    }
    of(&settings)
}

fn failed(error: impl std::error::Error) -> git2::Error {
    git2::Error::new(
        ErrorCode::GenericError,
        ErrorClass::Config,
        error.to_string(),
    )
}

/// Builds a configuration from settings, each at the level of its scope, in temporary files that
/// are deleted at once: libgit2 reads only files.
fn of(settings: &[Setting]) -> Result<Config, git2::Error> {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    // Included settings are listed already.
    let is_include = |key: &str| key == "include.path" || key.starts_with("includeif.");
    for setting in settings.iter().filter(|setting| !is_include(&setting.key)) {
        *texts.entry(&setting.scope).or_default() += &line(setting);
    }
    let mut config = Config::new()?;
    let mut files = Vec::new();
    for (scope, text) in texts {
        let level = match scope {
            "system" => ConfigLevel::System,
            "global" => ConfigLevel::Global,
            "local" => ConfigLevel::Local,
            "worktree" => ConfigLevel::Worktree,
            _ => ConfigLevel::App,
        };
        // Private to this user: settings may contain tokens.
        let mut file = NamedTempFile::new().map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        config.add_file(file.path(), level, false)?;
        files.push(file);
    }
    config.snapshot()
}

/// A setting in the syntax of configuration files.
fn line(setting: &Setting) -> String {
    let quoted = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{}\"", text.replace('\n', "\\n"))
    };
    let (section, name) = setting.key.rsplit_once('.').unwrap_or_default();
    let section = match section.split_once('.') {
        Some((section, part)) => format!("{section} {}", quoted(part)),
        None => section.to_owned(),
    };
    let value = setting.value.as_deref();
    let value = value.map_or_else(String::new, |value| format!(" = {}", quoted(value)));
    format!("[{section}]\n\t{name}{value}\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Setting, of};

    #[test]
    fn settings_come_back_from_memory() {
        let setting = |scope: &str, key: &str, value: Option<&str>| Setting {
            scope: scope.to_owned(),
            origin: String::new(),
            key: key.to_owned(),
            value: value.map(str::to_owned),
        };
        let odd = "a \"b\" \\ c # d ; e\n\tf\r é ";
        let config = of(&[
            setting("command", "user.name", Some("Robin")),
            setting("global", "user.name", Some("Jay")),
            setting("global", "include.path", Some("/nowhere")),
            setting("local", "handoff.sign", None),
            setting("local", r#"filter.A "b".\ ] c.clean"#, Some(odd)),
            setting("local", "remote.origin.url", Some("")),
            setting("local", "remote.origin.fetch", Some("one")),
            setting("local", "remote.origin.fetch", Some("two")),
        ]);
        let config = config.unwrap();
        assert_eq!(config.get_str("user.name"), Ok("Robin"));
        assert_eq!(config.get_bool("handoff.sign"), Ok(true));
        assert_eq!(config.get_str(r#"filter.A "b".\ ] c.clean"#), Ok(odd));
        assert_eq!(config.get_str("remote.origin.url"), Ok(""));
        assert!(config.get_str("include.path").is_err());
        let mut fetched = Vec::new();
        let found = config.multivar("remote.origin.fetch", None).unwrap();
        let keep = |entry: &git2::ConfigEntry<'_>| fetched.push(entry.value().unwrap().to_owned());
        found.for_each(keep).unwrap();
        assert_eq!(fetched, ["one", "two"]);
    }
}
