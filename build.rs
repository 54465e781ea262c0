//! Embeds the build's identity (`--version --verbose`), and links the program at a fixed address on
//! Linux: relocating 23,000 pointers took a third of each process's start-up. `docs/security.md`
//! says what this costs; `GIT_HANDOFF_RELOCATABLE=1` disables it.

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
    // The output folder's path names the profile: PROFILE itself has only two values.
    let output = PathBuf::from(given("OUT_DIR"));
    let profile = output.ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.unwrap_or_default().display();
    println!("cargo::rustc-env=GIT_HANDOFF_PROFILE={profile}");
    println!("cargo::rustc-env=GIT_HANDOFF_TARGET={}", given("TARGET"));
    let commit = commit(&given("CARGO_MANIFEST_DIR"), &given("PROFILE"));
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env={COMMIT}={commit}");
}

/// The commit being built: the given one, the one that cargo packaged, or the checked-out one.
/// Omitted in development builds, which would otherwise be rebuilt for each commit.
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
