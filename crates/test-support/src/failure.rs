//! Failed handoffs with unfinished work, and bit-for-bit comparison of worktrees.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::contracts::opening;
use crate::files::{chmod, write};
use crate::{Ran, TestEnvironment};

pub const AGENT: &str = "prep-agent";

/// An environment in which prep-agent holds 87.1.
pub fn held() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    hold(&env);
    env
}

pub fn hold(env: &TestEnvironment) {
    env.send(opening(87)).success();
    env.claim("87.1", AGENT).success();
}

/// Fails 87.1 from a folder, with further arguments.
pub fn fail_in(env: &TestEnvironment, dir: &Path, more: &[&str]) -> Ran {
    let mut args = vec!["fail", "87.1", "--as", AGENT, "--message", "out of time"];
    args.extend(more);
    env.handoff_in(dir, &args)
}

pub fn fail(env: &TestEnvironment, more: &[&str]) -> Ran {
    fail_in(env, &env.repo(), more)
}

/// Restores 87.1 into a folder beside the repository; returns the folder.
pub fn restore(env: &TestEnvironment, name: &str) -> PathBuf {
    let dir = env.root().join(name);
    env.handoff(&["restore", "87.1", "--worktree", dir.to_str().unwrap()])
        .success();
    dir
}

/// A path with a name of arbitrary bytes.
pub fn raw(dir: &Path, name: &[u8]) -> PathBuf {
    dir.join(OsStr::from_bytes(name))
}

/// A path's kind and content, as git sees it.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    File { executable: bool, bytes: Vec<u8> },
    Link(Vec<u8>),
}

/// Every file of a worktree by path; folders count by their content.
pub fn walk(dir: &Path) -> BTreeMap<String, Kind> {
    fn into(dir: &Path, prefix: &[u8], found: &mut BTreeMap<Vec<u8>, Kind>) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_vec();
            if prefix.is_empty() && name == b".git" {
                continue;
            }
            let path = [prefix, &name].concat();
            let metadata = entry.path().symlink_metadata().unwrap();
            if metadata.is_dir() {
                into(&entry.path(), &[&path[..], b"/"].concat(), found);
            } else if metadata.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                found.insert(path, Kind::Link(target.into_os_string().into_vec()));
            } else {
                let executable = metadata.permissions().mode() & 0o100 != 0;
                let bytes = fs::read(entry.path()).unwrap();
                found.insert(path, Kind::File { executable, bytes });
            }
        }
    }
    let mut found = BTreeMap::new();
    into(dir, b"", &mut found);
    let shown = |path: Vec<u8>| path.escape_ascii().to_string();
    found
        .into_iter()
        .map(|(path, kind)| (shown(path), kind))
        .collect()
}

/// The output of `git status` with every untracked file, and the index's content.
pub fn git_state(env: &TestEnvironment, dir: &Path) -> (String, String) {
    let status = [
        "--no-optional-locks",
        "status",
        "--porcelain=v1",
        "-z",
        "-uall",
    ];
    let index = ["ls-files", "-z", "-s", "-t"];
    (env.git(dir, &status), env.git(dir, &index))
}

/// Asserts that two worktrees are equal.
#[track_caller]
pub fn assert_same(env: &TestEnvironment, dir: &Path, other: &Path) {
    let (a, b) = (walk(dir), walk(other));
    let names = a.keys().chain(b.keys());
    let differ: Vec<_> = names.filter(|name| a.get(*name) != b.get(*name)).collect();
    assert!(differ.is_empty(), "{differ:?}");
    assert_eq!(git_state(env, dir), git_state(env, other));
}

/// The bytes and modification time of a worktree's index.
pub fn index_of(env: &TestEnvironment, dir: &Path) -> (Vec<u8>, std::time::SystemTime) {
    let path = env.git(
        dir,
        &["rev-parse", "--path-format=absolute", "--git-path", "index"],
    );
    let path = Path::new(path.trim());
    (
        fs::read(path).unwrap(),
        path.metadata().unwrap().modified().unwrap(),
    )
}

/// Commits files on which every kind of change is possible.
pub fn base(env: &TestEnvironment, dir: &Path) {
    for name in [
        "changed.txt",
        "deleted.txt",
        "staged.txt",
        "both.txt",
        "moded.sh",
        "typed.txt",
        "to-folder",
        "from-folder/a",
        "from-folder/b",
        "cached.txt",
        "gone/deep/er.txt",
        "staged-gone.txt",
        "empty.txt",
        "same.txt",
        "reverted.txt",
    ] {
        write(&dir.join(name), format!("base of {name}\n"));
    }
    symlink("same.txt", dir.join("link")).unwrap();
    symlink("from-folder", dir.join("folder-link")).unwrap();
    write(&dir.join(".gitignore"), "*.ignored\nbuild/\n");
    env.git(dir, &["add", "-A"]);
    env.git(dir, &["commit", "-q", "-m", "Base"]);
}

/// Makes every kind of change.
pub fn change(env: &TestEnvironment, dir: &Path) {
    write(&dir.join("changed.txt"), "changed\n");
    fs::remove_file(dir.join("deleted.txt")).unwrap();
    write(&dir.join("staged.txt"), "staged\r\n");
    write(&dir.join("both.txt"), "first\n");
    write(&dir.join("reverted.txt"), "first\n");
    write(&dir.join("added.txt"), "added\n");
    write(&dir.join("added-gone.txt"), "added\n");
    chmod(&dir.join("moded.sh"), 0o755);
    env.git(dir, &["rm", "-q", "staged-gone.txt"]);
    env.git(dir, &["rm", "-q", "--cached", "cached.txt"]);
    env.git(
        dir,
        &[
            "add",
            "staged.txt",
            "both.txt",
            "added.txt",
            "added-gone.txt",
            "reverted.txt",
        ],
    );
    write(&dir.join("both.txt"), "second\n");
    write(&dir.join("reverted.txt"), "base of reverted.txt\n");
    fs::remove_file(dir.join("added-gone.txt")).unwrap();
    fs::remove_file(dir.join("typed.txt")).unwrap();
    symlink("/nowhere/at/all", dir.join("typed.txt")).unwrap();
    fs::remove_file(dir.join("to-folder")).unwrap();
    write(&dir.join("to-folder/inside.txt"), "inside\n");
    fs::remove_dir_all(dir.join("from-folder")).unwrap();
    write(&dir.join("from-folder"), "a file now\n");
    fs::remove_file(dir.join("folder-link")).unwrap();
    write(&dir.join("folder-link/x"), "a folder now\n");
    fs::remove_dir_all(dir.join("gone")).unwrap();
    write(&dir.join("empty.txt"), "");
    fs::remove_file(dir.join("link")).unwrap();
    symlink("changed.txt", dir.join("link")).unwrap();
    write(&dir.join("new/empty"), "");
    write(&dir.join("new/binary"), [0_u8, 159, 146, 150, 255, 13, 10]);
    write(&dir.join("new/run.sh"), "#!/bin/sh\n");
    chmod(&dir.join("new/run.sh"), 0o755);
    symlink("../no/such", dir.join("new/dangling")).unwrap();
    symlink(OsStr::from_bytes(b"\xff\xfe"), dir.join("new/odd-target")).unwrap();
    write(&raw(dir, b"new/\xff\xfe-name"), "not UTF-8\n");
    write(&raw(dir, b"new/two\nlines\t\"quoted\" 100%"), "control\n");
    write(&raw(dir, b"-n"), "dash\n");
    write(&raw(dir, "grün ä".as_bytes()), "accents\n");
    write(&dir.join("...dots"), "dots\n");
    write(&dir.join("intended.txt"), "intended\n");
    env.git(dir, &["add", "-N", "intended.txt"]);
    write(&dir.join("sub/.gitattributes"), "* text\n");
    write(
        &dir.join(".gitmodules"),
        "[submodule \"../../x\"]\n\tpath = -evil\n\turl = -x\n",
    );
    write(&dir.join(".mailmap"), "x\n");
    write(&dir.join("git~2"), "short name\n");
    write(&dir.join("%2egit"), "looks encoded\n");
    write(&dir.join("back\\slash"), "backslash\n");
    write(&dir.join("not.ignored"), "ignored\n");
    write(&dir.join("build/out"), "ignored\n");
}

/// Removes ignored files, which are never kept.
pub fn clean(dir: &Path) {
    fs::remove_file(dir.join("not.ignored")).unwrap();
    fs::remove_dir_all(dir.join("build")).unwrap();
}
