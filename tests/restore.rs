//! Unfinished work that comes back bit for bit, and what never does harm.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod failure_support;
mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use failure_support::*;
use support::TestEnvironment;

#[test]
fn every_kind_of_change_comes_back_bit_for_bit() {
    let env = held();
    let repo = env.repo();
    base(&env, &repo);
    change(&env, &repo);
    fail(&env, &["--snapshot"]).success();
    env.assert_sound();
    let restored = restore(&env, "restored");
    clean(&repo);
    assert_same(&env, &repo, &restored);
    assert_eq!(
        env.git(&restored, &["diff", "--cached"]),
        env.git(&repo, &["diff", "--cached"])
    );
    env.assert_sound();
}

#[test]
fn a_linked_worktree_on_a_branch_comes_back_from_a_folder_in_it() {
    let env = held();
    base(&env, &env.repo());
    let linked = env.root().join("linked");
    env.git(
        &env.repo(),
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "topic",
            linked.to_str().unwrap(),
        ],
    );
    change(&env, &linked);
    fail_in(&env, &linked.join("new"), &["--snapshot"]).success();
    let dir = env.root().join("again");
    let args = [
        "restore",
        "87",
        "--worktree",
        dir.to_str().unwrap(),
        "--new-branch",
        "again",
    ];
    env.handoff(&args).success();
    clean(&linked);
    assert_same(&env, &linked, &dir);
    assert_eq!(env.git(&dir, &["branch", "--show-current"]).trim(), "again");
    let head = |dir: &Path| env.git(dir, &["rev-parse", "HEAD"]);
    assert_eq!(head(&dir), head(&linked));
    env.assert_sound();
}
