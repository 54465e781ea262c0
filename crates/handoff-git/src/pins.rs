//! What a worker pins before its agents run.

use crate::process::{PACKS, Pins, addresses};
use crate::program::{Program, ProgramError, Setting};
use crate::repository::Repository;

/// Which settings are read.
const NAMES: &str =
    r"^(core\.(sshcommand|askpass)|gpg\..+|credential\..+|protocol\..+|remote\..+)$";

/// What to pin: what git would run, trust and push to now, with git's defaults spelled out. `git -c`
/// can't express names with `=`: such a helper for credentials is not run at all. `ssh` and `askpass` are the commands that
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
        settings.push((keys[0].to_owned(), value));
    };
    pin(&["core.sshcommand"], ssh);
    pin(&["core.askpass"], askpass);
    pin(&["gpg.openpgp.program", "gpg.program"], "gpg");
    pin(&["gpg.x509.program"], "gpgsm");
    pin(&["gpg.ssh.program"], "ssh-keygen");
    pin(&["gpg.ssh.defaultkeycommand"], "");
    pin(&["protocol.ext.allow", "protocol.allow"], "never");
    let remotes = repository.remotes();
    for name in &remotes {
        let key = |last: &str| format!("remote.{name}.{last}");
        for (name, program) in PACKS {
            pin(&[&key(name)], program);
        }
        // With a refspec, git refuses to push such a remote.
        if !name.contains('=') {
            pin(&[&key("mirror")], "false");
        }
    }
    // An empty one clears the list.
    settings.push(("credential.helper".to_owned(), String::new()));
    let is_helper = |one: &&Setting| {
        one.key.starts_with("credential.") && one.key.ends_with(".helper") && !one.key.contains('=')
    };
    settings.extend(found.iter().filter(is_helper).map(|one| {
        let value = one.value.clone().unwrap_or_default();
        (one.key.clone(), value)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::programs;
    use crate::process::{pin, pinned, pinned_pack};
    use crate::repository::Repository;

    #[test]
    fn the_programs_of_a_remote_with_an_equals_sign_in_its_name_are_pinned() {
        let dir = tempfile::tempdir().unwrap();
        let inner = git2::Repository::init(dir.path()).unwrap();
        let mut config = inner.config().unwrap();
        config.set_str("remote.a=b.url", "../b").unwrap();
        config
            .set_str("remote.a=b.receivepack", "own-receive")
            .unwrap();
        let repository = Repository::of(inner).unwrap();
        pin(programs(&repository, "ssh", "").unwrap());
        config.set_str("remote.a=b.uploadpack", "evil").unwrap();
        assert_eq!(
            [pinned_pack("fetch", "a=b"), pinned_pack("push", "a=b")],
            [
                Some("--upload-pack=git-upload-pack".to_owned()),
                Some("--receive-pack=own-receive".to_owned())
            ]
        );
        assert!(pinned().all(|word| !word.contains("a=b")));
    }
}
