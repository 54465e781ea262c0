//! The output of `--version --verbose`: the build, and how it was installed.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Whether the arguments request only the verbose version.
pub(crate) fn is_verbose(arguments: &[OsString]) -> bool {
    let is = |names: &[&str]| arguments[1..].iter().any(|a| names.iter().any(|n| a == n));
    arguments.len() == 3 && is(&["--version", "-V"]) && is(&["--verbose"])
}

/// The version and the other properties of the build.
pub(crate) fn details() -> String {
    // Some systems name the symbolic link, not its target.
    let program = std::env::current_exe().and_then(fs::canonicalize);
    let program = program.unwrap_or_default();
    format!(
        "git-handoff {}\ncommit: {}\ntarget: {}\nprofile: {}\ninstalled by: {}\nprogram: {}\n",
        env!("CARGO_PKG_VERSION"),
        env!("GIT_HANDOFF_COMMIT"),
        env!("GIT_HANDOFF_TARGET"),
        env!("GIT_HANDOFF_PROFILE"),
        installed_by(&program).unwrap_or_else(|| "unknown".to_owned()),
        program.display(),
    )
}

/// The installer of a program. Packages share one binary, so each puts a file that names it beside
/// the binary's folder; cargo has its own list there, and gh renames the binary.
fn installed_by(program: &Path) -> Option<String> {
    if program.file_stem()? == "gh-handoff" {
        return Some("gh extension".to_owned());
    }
    let prefix = program.parent()?.parent()?;
    let marker = fs::read_to_string(prefix.join("share/git-handoff/installed-by"));
    match marker {
        Ok(marker) => Some(marker.trim().to_owned()),
        Err(_) => prefix
            .join(".crates.toml")
            .exists()
            .then(|| "cargo".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_installed_a_program_is_read_beside_it() -> std::io::Result<()> {
        let prefix = tempfile::tempdir()?;
        let program = prefix.path().join("bin/git-handoff");
        let by = || installed_by(&program);
        assert_eq!(by(), None);
        fs::write(prefix.path().join(".crates.toml"), "[v1]\n")?;
        assert_eq!(by().as_deref(), Some("cargo"));
        let folder = prefix.path().join("share/git-handoff");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("installed-by"), "npm\n")?;
        assert_eq!(by().as_deref(), Some("npm"));
        let extension = prefix.path().join("bin/gh-handoff.exe");
        assert_eq!(installed_by(&extension).as_deref(), Some("gh extension"));
        Ok(())
    }

    #[test]
    fn only_the_two_flags_ask_for_details() {
        let asks = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            is_verbose(&arguments)
        };
        assert!(asks("git-handoff --version --verbose"));
        assert!(asks("git-handoff --verbose -V"));
        assert!(!asks("git-handoff --version"));
        assert!(!asks("git-handoff --verbose --verbose"));
        assert!(!asks("git-handoff --version --verbose status"));
    }
}
