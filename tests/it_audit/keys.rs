//! Keys made by ssh-keygen, protocols that list them, and commits in their stored form.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use test_support::{Ran, TestEnvironment, repository_kind};

/// The branch of the ledger.
pub(crate) const BRANCH: &str = "refs/heads/handoffs";

/// Makes a key and returns its line in a public key file.
pub(crate) fn key(env: &TestEnvironment, name: &str, kind: &[&str]) -> String {
    make_key(env, name, kind, "");
    fs::read_to_string(env.root().join(format!("{name}.pub"))).unwrap()
}

/// Makes a key that a passphrase protects.
pub(crate) fn make_key(env: &TestEnvironment, name: &str, kind: &[&str], passphrase: &str) {
    let mut command = env.command("ssh-keygen");
    command.args(["-q", "-N", passphrase, "-C", name, "-f"]);
    command.arg(env.root().join(name)).arg("-t").args(kind);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

pub(crate) fn ed25519(env: &TestEnvironment, name: &str) -> String {
    key(env, name, &["ed25519"])
}

/// Where the file of a key is.
pub(crate) fn path(env: &TestEnvironment, key: &str) -> String {
    env.root().join(key).to_str().unwrap().to_owned()
}

/// A folder with the usual protocol and this list, in this version.
pub(crate) fn protocol(env: &TestEnvironment, version: &str, signers: &str) -> String {
    let folder = env.root().join(format!("protocol-{version}"));
    let shown = folder.to_str().unwrap().to_owned();
    env.handoff(&["protocol", "copy", "issue-to-pr", &shown])
        .success();
    let file = folder.join("protocol.json");
    let text = fs::read_to_string(&file).unwrap();
    let mut definition: Value = serde_json::from_str(&text).unwrap();
    definition["version"] = version.into();
    fs::write(file, serde_json::to_string_pretty(&definition).unwrap()).unwrap();
    fs::write(folder.join("allowed_signers"), signers).unwrap();
    shown
}

/// A ledger whose protocol has this list.
pub(crate) fn start(env: &TestEnvironment, signers: &str) {
    let folder = protocol(env, "1.0.0", signers);
    env.handoff(&["init", "--protocol", &folder]).success();
}

/// A ledger in which issue-manager, prep-agent and Robin have a key each, of those names.
pub(crate) fn team() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    let lines = [
        ("issue-manager", "manager"),
        ("prep-agent@handoff.invalid", "prep"),
        ("robin@example.com", "robin"),
    ];
    let lines = lines.map(|(who, name)| format!("{who} {}", ed25519(&env, name)));
    start(&env, &lines.concat());
    env
}

/// Runs the program as somebody whose git signs with this key, but only where it has to.
pub(crate) fn with_key(env: &TestEnvironment, key: &str, args: &[&str], input: &str) -> Ran {
    let key = path(env, &format!("{key}.pub"));
    let settings = [("gpg.format", "ssh"), ("user.signingKey", &*key)];
    with_settings(env, &settings, args, input)
}

/// Runs the program with settings of git's in the environment.
pub(crate) fn with_settings(
    env: &TestEnvironment,
    settings: &[(&str, &str)],
    args: &[&str],
    input: &str,
) -> Ran {
    let mut command = env.program(args);
    set(&mut command, settings);
    env.run(command, args, Some(input.as_bytes()))
}

/// Sets git's settings in the environment of a command.
pub(crate) fn set(command: &mut Command, settings: &[(&str, &str)]) {
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (number, (name, value)) in settings.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), name);
        command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
}

/// Has git sign with this key, for everybody in the repository.
pub(crate) fn use_key(env: &TestEnvironment, key: &str) {
    let key = path(env, &format!("{key}.pub"));
    for (name, value) in [("gpg.format", "ssh"), ("user.signingKey", &*key)] {
        env.git(&env.repo(), &["config", name, value]);
    }
}

/// Writes a program into the root folder.
pub(crate) fn script(env: &TestEnvironment, name: &str, text: &str) -> String {
    let path = env.file(name, format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The findings of a refusal, which must have this exit code and error code.
#[track_caller]
pub(crate) fn findings(ran: Ran, exit: i32, code: &str) -> String {
    let answer = ran.exits(exit).json();
    assert_eq!(answer["error"]["code"], code, "{answer:#}");
    listed(&answer)
}

/// The findings of `verify`, which must have some.
#[track_caller]
pub(crate) fn damage(env: &TestEnvironment) -> String {
    findings(env.handoff(&["verify", "--json"]), 10, "ledger_damaged")
}

fn listed(answer: &Value) -> String {
    let found = answer["error"]["findings"].as_array().unwrap();
    let one = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap().to_owned();
        format!("{} {}", text("code"), without_prints(&text("message")))
    };
    found.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// A text without the fingerprints of keys.
pub(crate) fn without_prints(text: &str) -> String {
    let word = |word: &str| match word.strip_prefix("SHA256:") {
        Some(print) => format!("SHA256:…{}", print.get(43..).unwrap_or_default()),
        None => word.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// A commit as it is stored.
pub(crate) fn raw(env: &TestEnvironment, commit: &str) -> String {
    env.git(&env.repo(), &["cat-file", "commit", commit])
}

/// The header of a signature in the repositories of this run.
pub(crate) fn header() -> &'static str {
    if repository_kind::is_sha256() {
        "gpgsig-sha256"
    } else {
        "gpgsig"
    }
}

/// A commit without its signature, and that as it stands in the header.
pub(crate) fn parts(raw: &str) -> (String, String) {
    let Some(from) = raw.find(&format!("{} ", header())) else {
        return (raw.to_owned(), String::new());
    };
    let end = raw[from..].find("-----END SSH SIGNATURE-----\n").unwrap();
    let end = from + end + "-----END SSH SIGNATURE-----\n".len();
    (
        format!("{}{}", &raw[..from], &raw[end..]),
        raw[from..end].to_owned(),
    )
}

/// Puts a signature, as it stands in a header, into a commit.
pub(crate) fn signed(payload: &str, signature: &str) -> String {
    let (header, message) = payload.split_once("\n\n").unwrap();
    format!("{header}\n{signature}\n{message}")
}

/// Signs a commit with ssh-keygen and these options, as it stands in a header.
pub(crate) fn signature(
    env: &TestEnvironment,
    key: &str,
    options: &[&str],
    payload: &str,
) -> String {
    let file = env.file("payload", payload);
    let _ = fs::remove_file(format!("{file}.sig"));
    let mut command = env.command("ssh-keygen");
    command.args(["-q", "-Y", "sign", "-f", &path(env, key)]);
    command.args(options).arg(&file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let armored = fs::read_to_string(format!("{file}.sig")).unwrap();
    let lines = armored.trim_end().replace('\n', "\n ");
    format!("{} {lines}\n", header())
}

/// Writes a commit and moves the branch to it, as in a clone that saw no other.
pub(crate) fn put(env: &TestEnvironment, raw: &str) {
    let file = env.file("commit", raw);
    let write = ["hash-object", "-t", "commit", "-w", "--literally", &file];
    let id = env.git(&env.repo(), &write);
    env.git(&env.repo(), &["update-ref", BRANCH, id.trim()]);
    forget(env);
}

/// Forgets what this clone saw of the branch.
pub(crate) fn forget(env: &TestEnvironment) {
    let _ = fs::remove_dir_all(env.repo().join(".git/handoff"));
}

/// How many commits of the branch git verifies with this list.
pub(crate) fn good_for_git(env: &TestEnvironment, signers: &Path) -> usize {
    let setting = format!("gpg.ssh.allowedSignersFile={}", signers.display());
    let args = ["-c", &setting, "log", "--format=%G?", BRANCH];
    let said = env.git(&env.repo(), &args);
    said.lines().filter(|line| *line == "G").count()
}

/// Where the list of a protocol's folder is.
pub(crate) fn list(env: &TestEnvironment, version: &str) -> PathBuf {
    env.root()
        .join(format!("protocol-{version}/allowed_signers"))
}
