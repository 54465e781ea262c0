//! Steps that are signed with OpenPGP keys, by a real gpg.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::keys::{damage, findings, protocol, put, raw, script, start};
use insta::assert_snapshot;
use tempfile::TempDir;
use test_support::contracts::opening;
use test_support::{Ran, TestEnvironment};

/// A key ring, in a folder whose name is short enough for the agent's socket. Its agent ends with it.
struct Ring {
    folder: TempDir,
    path: PathBuf,
}

impl Ring {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("g").tempdir().unwrap();
        let path = folder.path().to_owned();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder, path }
    }

    fn command(&self, env: &TestEnvironment, program: &str) -> Command {
        let mut command = env.command(program);
        command.env("GNUPGHOME", &self.path);
        command
    }

    fn gpg(&self, env: &TestEnvironment, args: &[&str]) -> String {
        let mut command = self.command(env, "gpg");
        command.args(["--batch", "--quiet", "--yes", "--pinentry-mode", "loopback"]);
        command.args(["--passphrase", ""]).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Makes a key that is valid for a time, and returns its fingerprint.
    fn key(&self, env: &TestEnvironment, name: &str, valid: &str) -> String {
        let time = format!("--faked-system-time={}", env.now());
        let who = format!("{name} <{name}@example.com>");
        self.gpg(
            env,
            &[&time, "--quick-gen-key", &who, "ed25519", "sign", valid],
        );
        let listed = self.gpg(env, &["--with-colons", "--list-keys", name]);
        let print = listed
            .lines()
            .find(|line| line.starts_with("fpr:"))
            .unwrap();
        print.split(':').nth(9).unwrap().to_owned()
    }

    /// Runs the program with this ring and a key, by whatever gpg.
    fn run(&self, env: &TestEnvironment, key: &str, args: &[&str], input: &str) -> Ran {
        env.git(&env.repo(), &["config", "user.signingKey", key]);
        let mut command = self.command(env, test_support::program());
        command.args(args);
        env.run(command, args, Some(input.as_bytes()))
    }

    fn verify(&self, env: &TestEnvironment) -> Ran {
        self.run(env, "none", &["verify", "--json"], "")
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut end = Command::new("gpgconf");
        end.env("GNUPGHOME", self.folder.path());
        let _ = end.args(["--kill", "all"]).output();
    }
}

/// Has gpg live at the time of the test, as the program does.
fn in_time(env: &TestEnvironment) {
    let gpg = script(
        env,
        "gpg-in-time",
        "exec gpg --faked-system-time=$(echo $GIT_COMMITTER_DATE | tr -dc '0-9 ' | cut -d' ' -f1) \"$@\"",
    );
    env.git(&env.repo(), &["config", "gpg.program", &gpg]);
}

#[test]
fn a_step_is_signed_with_the_key_that_is_listed() {
    let (env, ring) = (TestEnvironment::with_repository(), Ring::new());
    in_time(&env);
    let (manager, other) = (
        ring.key(&env, "manager", "never"),
        ring.key(&env, "other", "never"),
    );
    start(
        &env,
        &format!(
            "issue-manager openpgp {}\nprep-agent openpgp {other}\n",
            manager.to_lowercase()
        ),
    );
    let tip = env.tip();
    let args = ["send", "-", "--json"];
    let refused = |key: &str| {
        let found = findings(
            ring.run(&env, key, &args, &opening(1)),
            4,
            "signature_refused",
        );
        assert_eq!(env.tip(), tip);
        found.replace(&other, "OTHER")
    };
    assert_snapshot!(refused("other"), @"signature.other_agent the step is issue-manager's, and is signed with OTHER, a key of prep-agent");
    assert!(refused("nobody").starts_with("signature.missing"));
    ring.run(&env, "manager", &args, &opening(1)).success();
    ring.verify(&env).success();
    let mut git = ring.command(&env, "git");
    let checked = git.args(["verify-commit", "handoffs"]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    // The same commit, altered; and the signature of another one.
    let stored = raw(&env, &env.tip());
    put(&env, &stored.replace("Robin Doe", "Robin Roe"));
    let found = findings(ring.verify(&env), 10, "ledger_damaged");
    assert_snapshot!(found, @"signature.bad the signature is not one of this commit");
    put(&env, &stored);
    // Who does not have the key can't say whose it is.
    let found = findings(Ring::new().verify(&env), 10, "ledger_damaged");
    assert!(
        found.starts_with("signature.unverified gpg does not have the key "),
        "{found}"
    );
    env.git(&env.repo(), &["config", "gpg.program", "/nowhere/gpg"]);
    let found = damage(&env);
    assert!(
        found.starts_with("signature.unverified the signature could not be verified: "),
        "{found}"
    );
}

#[test]
fn a_subkey_signs_for_its_key() {
    let (env, ring) = (TestEnvironment::with_repository(), Ring::new());
    in_time(&env);
    let time = format!("--faked-system-time={}", env.now());
    let primary = ring.key(&env, "manager", "never");
    ring.gpg(
        &env,
        &[
            &time,
            "--quick-add-key",
            &primary,
            "ed25519",
            "sign",
            "never",
        ],
    );
    start(&env, &format!("issue-manager openpgp {primary}\n"));
    ring.run(&env, "manager", &["send", "-"], &opening(1))
        .success();
    ring.verify(&env).success();
}

#[test]
fn a_key_that_ran_out_signed_what_it_signed_before() {
    let (env, ring) = (TestEnvironment::with_repository(), Ring::new());
    in_time(&env);
    let key = ring.key(&env, "manager", "1d");
    start(&env, &format!("issue-manager openpgp {key}\n"));
    let args = ["send", "-", "--json"];
    ring.run(&env, "manager", &args, &opening(1)).success();
    let step = raw(&env, &env.tip());
    env.wait_minutes(2 * 24 * 60);
    ring.verify(&env).success();
    let tip = env.tip();
    let late = ring.run(&env, "manager", &args, &opening(2));
    assert!(findings(late, 4, "signature_refused").starts_with("signature.missing"));
    assert_eq!(env.tip(), tip);
    // Made all the same, by a clock that was turned back for gpg alone.
    let early = script(
        &env,
        "gpg-early",
        &format!(
            "exec gpg --faked-system-time={} \"$@\"",
            env.now() - 47 * 3600
        ),
    );
    env.git(&env.repo(), &["config", "gpg.program", &early]);
    ring.run(&env, "manager", &["send", "-"], &opening(2))
        .success();
    in_time(&env);
    let found = findings(ring.verify(&env), 10, "ledger_damaged");
    assert_snapshot!(found.replace(&key, "KEY"), @"signature.not_valid the step is issue-manager's, and its key KEY expired at 2026-03-03 09:04:00Z");
    put(&env, &step);
    ring.verify(&env).success();
}

#[test]
fn a_revoked_key_shows_nothing_any_more() {
    let (env, ring) = (TestEnvironment::with_repository(), Ring::new());
    in_time(&env);
    let key = ring.key(&env, "manager", "never");
    start(&env, &format!("issue-manager openpgp {key}\n"));
    ring.run(&env, "manager", &["send", "-"], &opening(1))
        .success();
    ring.verify(&env).success();
    let kept = ring.path.join(format!("openpgp-revocs.d/{key}.rev"));
    let certificate = fs::read_to_string(kept)
        .unwrap()
        .replace(":-----BEGIN", "-----BEGIN");
    let file = env.file("revoked", certificate);
    ring.gpg(&env, &["--import", &file]);
    let found = findings(ring.verify(&env), 10, "ledger_damaged");
    assert!(found.starts_with("signature.not_valid the key "), "{found}");
}

#[test]
fn both_kinds_of_keys_stand_in_one_list() {
    let (env, ring) = (TestEnvironment::with_repository(), Ring::new());
    in_time(&env);
    let key = ring.key(&env, "manager", "never");
    let prep = crate::keys::ed25519(&env, "prep");
    start(
        &env,
        &format!("issue-manager openpgp {key}\nprep-agent,robin@example.com {prep}"),
    );
    ring.run(&env, "manager", &["send", "-"], &opening(1))
        .success();
    crate::keys::with_key(&env, "prep", &["claim", "1.1", "--as", "prep-agent"], "").success();
    // From now on with dates.
    let lines = format!(
        "issue-manager valid-before=\"20260301Z\" openpgp {key}\nprep-agent,robin@example.com {prep}"
    );
    let folder = protocol(&env, "1.1.0", &lines);
    crate::keys::with_key(&env, "prep", &["protocol", "update", &folder], "").success();
    let late = ring.run(&env, "manager", &["send", "-", "--json"], &opening(2));
    assert_snapshot!(findings(late, 4, "signature_refused").replace(&key, "KEY"), @"signature.not_valid the step is issue-manager's, and is dated 2026-03-02 09:16:00Z; its key KEY is valid until 2026-03-01 00:00:00Z");
    ring.verify(&env).success();
}
