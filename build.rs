//! Says which build this is (`--version --verbose`), and links the program at a fixed address on Linux:
//! a third of its start-up was the relocation of 23,000 pointers, in each process. `docs/security.md`
//! says what that gives up; `GIT_HANDOFF_RELOCATABLE=1` builds it otherwise.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const RELOCATABLE: &str = "GIT_HANDOFF_RELOCATABLE";
const COMMIT: &str = "GIT_HANDOFF_COMMIT";

fn main() {
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let is_fixed = target("OS") == "linux" && target("ENV") == "gnu";
    if is_fixed && env::var_os(RELOCATABLE).is_none() {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-env-changed={RELOCATABLE}");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    println!("cargo::rerun-if-changed=build.rs");

    let given = |name: &str| env::var(name).unwrap_or_default();
    // The folder of the profile has this build's output: PROFILE itself knows two.
    let output = PathBuf::from(given("OUT_DIR"));
    let profile = output.ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.unwrap_or_default().display();
    println!("cargo::rustc-env=GIT_HANDOFF_PROFILE={profile}");
    println!("cargo::rustc-env=GIT_HANDOFF_TARGET={}", given("TARGET"));
    let commit = commit(&given("CARGO_MANIFEST_DIR"), &given("PROFILE"));
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env={COMMIT}={commit}");
}

/// The commit that is built: as it was given, as cargo wrote it into the package, or the one that is
/// checked out. A development build does not say it: each commit would build it again.
fn commit(folder: &str, profile: &str) -> Option<String> {
    if let Ok(commit) = env::var(COMMIT) {
        return Some(commit);
    }
    let folder = Path::new(folder);
    if let Ok(package) = fs::read_to_string(folder.join(".cargo_vcs_info.json")) {
        let (_, rest) = package.split_once("\"sha1\": \"")?;
        return Some(rest.split('"').next()?.to_owned());
    }
    if profile != "release" || !folder.join(".git").exists() {
        return None;
    }
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(folder).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    let log = folder.join(git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    git(&["rev-parse", "HEAD"])
}
