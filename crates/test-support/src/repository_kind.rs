//! The kind of repository that tests create: object format and ref storage.
//!
//! `GIT_HANDOFF_TEST_REPOSITORIES` chooses one of four for a whole run: `sha1-files` is the default.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The object format and the ref storage.
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

/// Whether git supports reftables.
pub fn git_knows_tables() -> bool {
    git_is_at_least(2, 45)
}

/// Whether git has at least this version.
pub fn git_is_at_least(major: u32, minor: u32) -> bool {
    let printed = git(Path::new("."), &["version"]);
    let mut numbers = printed
        .split([' ', '.'])
        .filter_map(|word| word.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(major), Some(minor))
}

/// The number of digits of an object id.
pub fn digits() -> usize {
    if is_sha256() { 64 } else { 40 }
}

/// Further user configuration: with Git 3.0's default formats, also its default for bare
/// repositories, which must be named explicitly.
pub(crate) fn config() -> &'static str {
    if is_by_name() {
        "[safe]\n\tbareRepository = explicit\n"
    } else {
        ""
    }
}

/// Whether bare repositories must be named explicitly.
pub fn is_by_name() -> bool {
    is_sha256() && is_reftable()
}

/// Names a folder's repository to a command, if it is bare and must be named.
pub fn name_bare(command: &mut Command, dir: &Path) {
    let is_bare = dir.join("HEAD").is_file() && dir.join("objects").is_dir();
    if is_by_name() && is_bare && !dir.ends_with(".git") {
        command.env("GIT_DIR", dir);
    }
}

/// Makes git create repositories of this kind.
pub(crate) fn set(command: &mut Command) {
    command.env("GIT_DEFAULT_HASH", &KIND.0);
    command.env("GIT_DEFAULT_REF_FORMAT", &KIND.1);
}

/// Asserts that no repository with reftables below a folder has a loose ref, which git would
/// ignore.
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
        // The file that keeps git versions without reftables away.
        assert!(
            names.iter().all(|name| name == "heads"),
            "{names:?} in {}",
            folder.display()
        );
        // A killed git may not have created it yet.
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

/// The lock file for updates of a ref.
pub fn lock_of(git_dir: &Path, refname: &str) -> PathBuf {
    if is_reftable() {
        git_dir.join("reftable/tables.list.lock")
    } else {
        git_dir.join(format!("{refname}.lock"))
    }
}

/// Every ref in a git directory with reftables, including HEAD, one per line, except those with
/// these prefixes. Refs that are files are covered by comparing files.
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

/// A ref's value in reftables or its loose file; empty if it has neither.
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
