//! Settings that name programs, pinned for as long as agents run: an agent can write the repository's
//! configuration, and git would run for the worker what it names there.

use std::sync::OnceLock;

use crate::program::{Program, ProgramError, Setting, Version};
use crate::repository::Repository;

static PINNED: OnceLock<Vec<String>> = OnceLock::new();

/// The first version in which an empty value clears a list of addresses.
const CLEARS_ADDRESSES: Version = Version {
    major: 2,
    minor: 46,
};

/// Which settings are read.
const NAMES: &str =
    r"^(core\.(sshcommand|askpass)|gpg\..+|credential\..+|protocol\..+|remote\..+)$";

/// Pins settings, each as `key=value`: every later git command gets them. The first call counts.
pub fn pin(settings: Vec<String>) {
    let _ = PINNED.set(settings);
}

/// All pinned settings.
pub fn all_pinned() -> &'static [String] {
    PINNED.get().map_or(&[], Vec::as_slice)
}

/// The pinned settings, as options of git.
pub fn pinned() -> impl Iterator<Item = &'static str> {
    let is_option = |setting: &&String| PACKS.iter().any(|(key, _)| is_of(setting, key));
    let settings = all_pinned().iter().filter(move |one| !is_option(one));
    settings.flat_map(|setting| ["-c", setting.as_str()])
}

/// The programs that git runs on the other side: of several settings git takes the first, so these
/// are options of the command.
const PACKS: [(&str, &str); 2] = [
    ("uploadpack", "git-upload-pack"),
    ("receivepack", "git-receive-pack"),
];

fn is_of(setting: &str, key: &str) -> bool {
    let name = setting.split_once('=').map_or("", |(name, _)| name);
    name.starts_with("remote.") && name.rsplit_once('.').is_some_and(|(_, last)| last == key)
}

/// The option of a command that contacts a remote, for the program on the other side.
pub fn pinned_pack(verb: &str, remote: &str) -> Option<String> {
    let (key, option) = match verb {
        "push" => ("receivepack", "--receive-pack"),
        "fetch" | "ls-remote" => ("uploadpack", "--upload-pack"),
        _ => return None,
    };
    let start = format!("remote.{remote}.{key}=");
    let mut found = all_pinned()
        .iter()
        .filter_map(|one| one.strip_prefix(&start));
    found.next().map(|program| format!("{option}={program}"))
}

/// The settings to pin: what git would run, trust and push to now, with git's defaults spelled out.
/// Not covered: `url.*.insteadOf`, and names with `=`, which `git -c` can't express. `ssh` and
/// `askpass` are the commands that the environment names for them, where no setting does.
///
/// # Errors
/// [`ProgramError`] when git can't read its configuration.
pub fn programs(
    repository: &Repository,
    ssh: &str,
    askpass: &str,
) -> Result<Vec<String>, ProgramError> {
    let git = Program::new(repository);
    let (_, version) = git.version()?;
    let found = git.settings(NAMES)?;
    let last = |keys: &[&str]| {
        let named = |one: &&Setting| keys.iter().any(|key| one.key == *key);
        found.iter().rev().find(named)?.value.clone()
    };
    let mut pins = Vec::new();
    let mut pin = |keys: &[&str], otherwise: &str| {
        let value = last(keys).unwrap_or_else(|| otherwise.to_owned());
        pins.push(format!("{}={value}", keys[0]));
    };
    pin(&["core.sshcommand"], ssh);
    pin(&["core.askpass"], askpass);
    pin(&["gpg.openpgp.program", "gpg.program"], "gpg");
    pin(&["gpg.x509.program"], "gpgsm");
    pin(&["gpg.ssh.program"], "ssh-keygen");
    pin(&["gpg.ssh.defaultkeycommand"], "");
    pin(&["protocol.ext.allow", "protocol.allow"], "never");
    let remotes = repository.remotes();
    let remotes = || remotes.iter().filter(|name| !name.contains('='));
    for name in remotes() {
        let key = |last: &str| format!("remote.{name}.{last}");
        for (name, program) in PACKS {
            pin(&[&key(name)], program);
        }
        pin(&[&key("mirror")], "false");
    }
    let mut pin_list = |empty: String, is_listed: &dyn Fn(&str) -> bool| {
        pins.push(format!("{empty}="));
        let listed = found.iter().filter(|one| is_listed(&one.key));
        let listed = listed.filter(|one| !one.key.contains('='));
        pins.extend(listed.map(|one| {
            let value = one.value.as_deref().unwrap_or_default();
            format!("{}={value}", one.key)
        }));
    };
    pin_list("credential.helper".to_owned(), &|key| {
        key.starts_with("credential.") && key.ends_with(".helper")
    });
    if version >= CLEARS_ADDRESSES {
        for name in remotes() {
            let key = format!("remote.{name}.pushurl");
            pin_list(key.clone(), &|one| one == key);
        }
    }
    Ok(pins)
}
