//! Settings that name programs, pinned for as long as agents run: an agent can write the repository's
//! configuration, and git would run for the worker what it names there.

use std::path::Path;
use std::sync::OnceLock;

use git2::{Config, ConfigLevel};

/// What a worker pins.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// The settings that every git command gets, by key.
    pub settings: Vec<(String, String)>,
    /// Where the repository's own configuration has its remotes, as `key=value`: git can't be told to ignore that, so a
    /// remote is not contacted while it differs.
    pub addresses: Vec<String>,
}

static PINNED: OnceLock<Pins> = OnceLock::new();

/// Pins this for every later git command. The first call counts.
pub fn pin(pins: Pins) {
    let _ = PINNED.set(pins);
}

/// What is pinned.
pub fn pins() -> Option<&'static Pins> {
    PINNED.get()
}

fn settings() -> &'static [(String, String)] {
    pins().map_or(&[], |pins| pins.settings.as_slice())
}

/// The pinned settings, as options of git.
pub fn pinned() -> impl Iterator<Item = String> {
    let is_option = |name: &str| PACKS.iter().any(|(key, _)| is_of(name, key));
    let settings = settings().iter().filter(move |(name, _)| !is_option(name));
    settings.flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")])
}

/// The programs that git runs on the other side: of several settings git takes the first, so these
/// are options of the command.
pub(crate) const PACKS: [(&str, &str); 2] = [
    ("uploadpack", "git-upload-pack"),
    ("receivepack", "git-receive-pack"),
];

fn is_of(name: &str, key: &str) -> bool {
    name.starts_with("remote.") && name.rsplit_once('.').is_some_and(|(_, last)| last == key)
}

/// The option of a command that contacts a remote, for the program on the other side.
pub fn pinned_pack(verb: &str, remote: &str) -> Option<String> {
    let (key, option) = match verb {
        "push" => ("receivepack", "--receive-pack"),
        "fetch" | "ls-remote" => ("uploadpack", "--upload-pack"),
        _ => return None,
    };
    let wanted = format!("remote.{remote}.{key}");
    let mut found = settings().iter().filter(|(name, _)| *name == wanted);
    found
        .next()
        .map(|(_, program)| format!("{option}={program}"))
}

/// Where a repository's own configuration has its remotes, with what redirects them.
pub(crate) fn addresses(git_dir: &Path, common_dir: &Path) -> Result<Vec<String>, git2::Error> {
    let mut found = Vec::new();
    for file in [
        common_dir.join("config"),
        common_dir.join("config.worktree"),
        git_dir.join("config.worktree"),
    ] {
        if !file.is_file() {
            continue;
        }
        let mut config = Config::new()?;
        config.add_file(&file, ConfigLevel::Local, false)?;
        let mut entries = config.entries(None)?;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let key = String::from_utf8_lossy(entry.name_bytes()).into_owned();
            let last = key.rsplit_once('.').map_or("", |(_, last)| last);
            let is_address = match key.split_once('.') {
                Some(("remote", _)) => ["url", "pushurl", "vcs"].contains(&last),
                Some(("url", _)) => true,
                _ => ["core.gitproxy", "handoff.remote"].contains(&key.as_str()),
            };
            if is_address && entry.has_value() {
                let value = String::from_utf8_lossy(entry.value_bytes()).into_owned();
                found.push(format!("{key}={value}"));
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Refuses to contact a remote whose address is another one than when it was pinned. What an agent
/// added as a remote of its own does not count.
///
/// # Errors
/// The entry that differs, as a sentence.
pub fn ensure_addresses(git_dir: &Path) -> Result<(), String> {
    let Some(pins) = pins() else { return Ok(()) };
    let common_dir = match std::fs::read_to_string(git_dir.join("commondir")) {
        Ok(common) => git_dir.join(common.trim_end_matches('\n')),
        Err(_) => git_dir.to_owned(),
    };
    let found = addresses(git_dir, &common_dir).map_err(|error| error.message().to_owned())?;
    let name = |one: &str| {
        let key = one.split_once('=').map_or("", |(key, _)| key);
        key.starts_with("remote.")
            .then(|| key.rsplit_once('.').map_or("", |(name, _)| name).to_owned())
    };
    let is_new = |one: &str| {
        name(one).is_some_and(|new| {
            !pins
                .addresses
                .iter()
                .any(|old| name(old).as_ref() == Some(&new))
        })
    };
    let found: Vec<&str> = found
        .iter()
        .map(String::as_str)
        .filter(|one| !is_new(one))
        .collect();
    let before: Vec<&str> = pins.addresses.iter().map(String::as_str).collect();
    let added = found.iter().find(|one| !before.contains(one));
    let missing = || before.iter().find(|one| !found.contains(one));
    let Some(entry) = added.or_else(missing) else {
        return Ok(());
    };
    let key = entry.split_once('=').map_or("", |(key, _)| key);
    Err(format!(
        "{key} was changed in .git/config after the worker started"
    ))
}
