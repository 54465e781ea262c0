//! What a worker pins before its agents run.

use crate::process::{PACKS, Pins, addresses};
use crate::program::{Program, ProgramError, Setting};
use crate::repository::Repository;

/// Which settings are read.
const NAMES: &str =
    r"^(core\.(sshcommand|askpass)|gpg\..+|credential\..+|protocol\..+|remote\..+)$";

/// What to pin: what git would run, trust and push to now, with git's defaults spelled out. Not
/// covered: names with `=`, which `git -c` can't express. `ssh` and `askpass` are the commands that
/// the environment names for them, where no setting does.
///
/// # Errors
/// [`ProgramError`] when git can't read its configuration.
pub fn programs(repository: &Repository, ssh: &str, askpass: &str) -> Result<Pins, ProgramError> {
    let git = Program::new(repository);
    let found = git.settings(NAMES)?;
    let last = |keys: &[&str]| {
        let named = |one: &&Setting| keys.iter().any(|key| one.key == *key);
        found.iter().rev().find(named)?.value.clone()
    };
    let mut settings = Vec::new();
    let mut pin = |keys: &[&str], otherwise: &str| {
        let value = last(keys).unwrap_or_else(|| otherwise.to_owned());
        settings.push(format!("{}={value}", keys[0]));
    };
    pin(&["core.sshcommand"], ssh);
    pin(&["core.askpass"], askpass);
    pin(&["gpg.openpgp.program", "gpg.program"], "gpg");
    pin(&["gpg.x509.program"], "gpgsm");
    pin(&["gpg.ssh.program"], "ssh-keygen");
    pin(&["gpg.ssh.defaultkeycommand"], "");
    pin(&["protocol.ext.allow", "protocol.allow"], "never");
    let remotes = repository.remotes();
    for name in remotes.iter().filter(|name| !name.contains('=')) {
        let key = |last: &str| format!("remote.{name}.{last}");
        for (name, program) in PACKS {
            pin(&[&key(name)], program);
        }
        pin(&[&key("mirror")], "false");
    }
    // An empty one clears the list.
    settings.push("credential.helper=".to_owned());
    let is_helper = |one: &&Setting| {
        one.key.starts_with("credential.") && one.key.ends_with(".helper") && !one.key.contains('=')
    };
    settings.extend(found.iter().filter(is_helper).map(|one| {
        let value = one.value.as_deref().unwrap_or_default();
        format!("{}={value}", one.key)
    }));
    let message = |error: git2::Error| ProgramError::Failed {
        message: error.message().to_owned(),
    };
    let addresses = addresses(repository.path(), repository.common_dir()).map_err(message)?;
    Ok(Pins {
        settings,
        addresses,
    })
}
