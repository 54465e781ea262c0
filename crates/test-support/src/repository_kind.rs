//! The kind of repository that the tests make: how it names objects, and how it keeps refs.
//!
//! `GIT_HANDOFF_TEST_REPOSITORIES` chooses one of four for a whole run: `sha1-files` is the default.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The name of a format for objects, and of one for refs.
static KIND: LazyLock<(String, String)> = LazyLock::new(|| {
    let named = std::env::var("GIT_HANDOFF_TEST_REPOSITORIES");
    let named = named.unwrap_or_else(|_| "sha1-files".to_owned());
    let (objects, refs) = named
        .split_once('-')
        .expect("a format for objects and one for refs");
    (objects.to_owned(), refs.to_owned())
});

pub fn is_sha256() -> bool {
    KIND.0 == "sha256"
}

pub fn is_reftable() -> bool {
    KIND.1 == "reftable"
}

/// Whether git can keep refs in tables.
pub fn git_knows_tables() -> bool {
    git_is_at_least(2, 45)
}

/// Whether git has this version, or a later one.
pub fn git_is_at_least(major: u32, minor: u32) -> bool {
    let printed = git(Path::new("."), &["version"]);
    let mut numbers = printed
        .split([' ', '.'])
        .filter_map(|word| word.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(major), Some(minor))
}

/// How many digits an id has.
pub fn digits() -> usize {
    if is_sha256() { 64 } else { 40 }
}

/// What the configuration of the user has beside the kind: with the formats that Git 3.0 makes by
/// default, its other default, by which bare repositories are used only by name.
pub(crate) fn config() -> &'static str {
    if is_by_name() {
        "[safe]\n\tbareRepository = explicit\n"
    } else {
        ""
    }
}

/// Whether bare repositories are used only by name.
pub fn is_by_name() -> bool {
    is_sha256() && is_reftable()
}

/// Names the repository of a folder to a command that runs there, if it is bare and has to be named.
pub fn name_bare(command: &mut Command, dir: &Path) {
    let is_bare = dir.join("HEAD").is_file() && dir.join("objects").is_dir();
    if is_by_name() && is_bare && !dir.ends_with(".git") {
        command.env("GIT_DIR", dir);
    }
}

/// Lets a git that makes a repository make it of this kind.
pub(crate) fn set(command: &mut Command) {
    command.env("GIT_DEFAULT_HASH", &KIND.0);
    command.env("GIT_DEFAULT_REF_FORMAT", &KIND.1);
}

/// Asserts that no repository below a folder that keeps its refs in tables has a file for a ref,
/// which git would never see.
#[track_caller]
pub(crate) fn assert_no_ref_is_a_file(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != "objects" {
            assert_no_ref_is_a_file(&path);
        }
    }
    if folder.join("reftable").is_dir() && folder.join("HEAD").is_file() {
        let refs = fs::read_dir(folder.join("refs")).into_iter().flatten();
        let names: Vec<OsString> = refs.map(|entry| entry.unwrap().file_name()).collect();
        // The file by which git keeps those away that know no tables.
        assert!(
            names.iter().all(|name| name == "heads"),
            "{names:?} in {}",
            folder.display()
        );
        // A git that was killed may not have made it yet.
        let heads = fs::metadata(folder.join("refs/heads"));
        assert!(
            heads.map_or(true, |heads| heads.is_file()),
            "{}",
            folder.display()
        );
        let head = fs::read_to_string(folder.join("HEAD")).unwrap();
        assert_eq!(head, "ref: refs/heads/.invalid\n");
        assert!(!folder.join("packed-refs").exists());
    }
}

/// The lock under which a ref of a git directory is changed.
pub fn lock_of(git_dir: &Path, refname: &str) -> PathBuf {
    if is_reftable() {
        git_dir.join("reftable/tables.list.lock")
    } else {
        git_dir.join(format!("{refname}.lock"))
    }
}

/// Every ref of a git directory that keeps them in tables, with HEAD, one a line, but for those
/// whose names begin so. Refs that are files are left to who compares files.
pub fn refs_in_tables(git_dir: &Path, but: &[&str]) -> String {
    if !is_reftable() {
        return String::new();
    }
    let head = git(git_dir, &["symbolic-ref", "HEAD"]);
    let refs = git(
        git_dir,
        &["for-each-ref", "--format=%(refname) %(objectname)"],
    );
    let is_kept = |line: &&str| !but.iter().any(|start| line.starts_with(start));
    let refs: Vec<&str> = refs.lines().filter(is_kept).collect();
    format!("{head}{}", refs.join("\n"))
}

/// Where a ref of a git directory is, if it is in tables or has a file of its own; else nothing.
pub fn now_at(git_dir: &Path, refname: &str) -> String {
    let text = if is_reftable() {
        git(git_dir, &["rev-parse", "--verify", "-q", refname])
    } else {
        fs::read_to_string(git_dir.join(refname)).unwrap_or_default()
    };
    text.trim().to_owned()
}

fn git(git_dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    let ran = command.arg("--git-dir").arg(git_dir).args(args).output();
    String::from_utf8(ran.unwrap().stdout).unwrap()
}
