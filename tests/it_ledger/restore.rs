//! Unfinished work that comes back bit for bit, and what never does harm.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use test_support::TestEnvironment;
use test_support::failure::*;
use test_support::files::{chmod, write};
#[cfg(feature = "agents")]
use test_support::time::assert_goes_there_and_back;

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
    fail_in(
        &env,
        &linked.join("new"),
        &["--snapshot", "--worker", "repo"],
    )
    .success();
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

/// What restore says of a folder beside the repository.
fn try_restore(env: &TestEnvironment, name: &str) -> test_support::Ran {
    let dir = env.root().join(name);
    env.handoff(&["restore", "87.1", "--worktree", dir.to_str().unwrap()])
}

#[test]
fn nothing_that_exists_is_overwritten() {
    let env = held();
    base(&env, &env.repo());
    change(&env, &env.repo());
    fail(&env, &["--snapshot"]).success();
    let refs = || env.git(&env.repo(), &["for-each-ref"]);
    let before = refs();
    write(&env.root().join("full/mine.txt"), "mine\n");
    fs::create_dir(env.root().join("empty")).unwrap();
    write(&env.root().join("file"), "mine\n");
    symlink("empty", env.root().join("link")).unwrap();
    symlink("nowhere", env.root().join("dangling")).unwrap();
    for name in ["full", "file", "link", "dangling", "repo"] {
        try_restore(&env, name)
            .exits(5)
            .says("already exists")
            .says("nothing was changed");
    }
    for name in ["main", "handoffs"] {
        let new = env.root().join("new");
        let args = ["restore", "87.1", "--new-branch", name];
        let exists = format!("branch {name} already exists");
        env.handoff(&args).exits(5).says(&exists);
        let args = [&args[..], &["--worktree", new.to_str().unwrap()]].concat();
        env.handoff(&args).exits(5).says(&exists);
        assert!(!new.exists());
    }
    for name in ["-x", "HEAD", "a..b", ""] {
        let name = format!("--new-branch={name}");
        env.handoff(&["restore", "87.1", &name])
            .exits(2)
            .says("is not a valid branch name");
    }
    assert_eq!(
        fs::read(env.root().join("full/mine.txt")).unwrap(),
        b"mine\n"
    );
    assert_eq!(fs::read_dir(env.root().join("empty")).unwrap().count(), 0);
    assert_eq!(refs(), before);
    try_restore(&env, "empty").success();
    assert_eq!(refs(), before);
}

#[test]
fn a_branch_has_the_work_in_one_commit() {
    let env = held();
    base(&env, &env.repo());
    change(&env, &env.repo());
    fail(&env, &["--snapshot"]).success();
    let before = git_state(&env, &env.repo());
    let ran = env
        .handoff(&["restore", "87.1", "--new-branch", "work"])
        .success();
    ran.says("a branch does not record what was staged");
    assert_eq!(git_state(&env, &env.repo()), before);
    let show = |what: &str| env.git(&env.repo(), &["log", "-1", "--format=%an%n%s", what]);
    assert_eq!(
        show("work"),
        "prep-agent\nUnfinished work of 87.1, attempt 1\n"
    );
    assert_eq!(
        env.git(&env.repo(), &["rev-parse", "work^"]),
        env.git(&env.repo(), &["rev-parse", "main"])
    );
    // What git takes into a commit is what was there.
    for name in [
        "changed.txt",
        "new/binary",
        "from-folder",
        "to-folder/inside.txt",
        "empty.txt",
    ] {
        let blob = env.git(&env.repo(), &["rev-parse", &format!("work:{name}")]);
        let here = env.git(&env.repo(), &["hash-object", "--no-filters", name]);
        assert_eq!(blob, here, "{name}");
    }
    for name in ["deleted.txt", "staged-gone.txt", "gone", "from-folder/a"] {
        let found = env.git_any(
            &env.repo(),
            &["rev-parse", "-q", "--verify", &format!("work:{name}")],
        );
        assert_ne!(found.status, 0, "{name}");
    }
}

#[test]
fn without_a_place_it_is_told_what_there_is() {
    let env = held();
    base(&env, &env.repo());
    write(&env.repo().join("changed.txt"), "changed\n");
    fs::remove_file(env.repo().join("deleted.txt")).unwrap();
    env.handoff(&["restore", "87.1"])
        .exits(6)
        .says("no attempt of 87.1 failed");
    env.handoff(&["restore", "87.2"])
        .exits(6)
        .says("no handoff 87.2");
    let log = env.file("build.log", "line one\nline two\n");
    fail(&env, &["--snapshot", "--attach", &log]).success();
    let ran = env.handoff(&["restore", "87.1"]).success();
    ran.says("changed.txt (8 bytes)")
        .says("deleted.txt (deleted)")
        .says("attached build.log, 18 bytes:\n      | line one\n      | line two\n")
        .says("restore it: git handoff restore 87.1 --attempt 1 --worktree DIR");
    env.handoff(&["restore", "87.1", "--attempt", "2"])
        .exits(6)
        .says("known are: attempt 1");
    let data = env.data(&["restore", "87.1"]);
    assert_eq!(data["kept"]["snapshot"]["files"][0]["path"], "changed.txt");
    assert_eq!(data["kept"]["snapshot"]["deleted"][0], "deleted.txt");
    assert_eq!(
        data["kept"]["attachments"][0]["tail"],
        "line one\nline two\n"
    );
    let dir = env.root().join("logs");
    let args = ["restore", "87.1", "--attachments", dir.to_str().unwrap()];
    env.handoff(&args).success();
    assert_eq!(
        fs::read(dir.join("build.log")).unwrap(),
        b"line one\nline two\n"
    );
    env.handoff(&args).exits(5).says("already exists");
}

#[test]
fn each_attempt_keeps_its_own_work() {
    let env = held();
    let file = env.repo().join("work.txt");
    write(&file, "first\n");
    fail(&env, &["--snapshot"]).success();
    env.handoff(&["retry", "87.1", "--as", "orchestrator", "--reason", "again"])
        .success();
    env.wait_minutes(24 * 60);
    env.claim("87.1", AGENT)
        .success()
        .says("work.txt (6 bytes)");
    write(&file, "second\n");
    fail(&env, &["--snapshot", "--code", "FAILED"]).success();
    let read = |args: &[&str], name: &str| {
        let dir = env.root().join(name);
        let all = [
            &["restore", "87.1", "--worktree", dir.to_str().unwrap()],
            args,
        ]
        .concat();
        env.handoff(&all).success();
        fs::read_to_string(dir.join("work.txt")).unwrap()
    };
    assert_eq!(read(&["--attempt", "1"], "one"), "first\n");
    assert_eq!(read(&["--attempt", "2"], "two"), "second\n");
    assert_eq!(read(&[], "newest"), "second\n");
    env.assert_sound();
}

#[test]
fn an_unfinished_merge_goes_on_in_the_new_worktree() {
    let env = held();
    let repo = env.repo();
    base(&env, &repo);
    env.git(&repo, &["checkout", "-q", "-b", "other"]);
    write(&repo.join("changed.txt"), "theirs\n");
    write(&repo.join("theirs.txt"), "new\n");
    env.git(&repo, &["rm", "-q", "both.txt"]);
    env.git(&repo, &["add", "-A"]);
    env.git(&repo, &["commit", "-q", "-m", "Theirs"]);
    env.git(&repo, &["checkout", "-q", "main"]);
    write(&repo.join("changed.txt"), "ours\n");
    write(&repo.join("both.txt"), "ours\n");
    env.git(&repo, &["commit", "-q", "-am", "Ours"]);
    assert_ne!(env.git_any(&repo, &["merge", "other"]).status, 0);
    fail(&env, &["--snapshot"]).success();
    env.assert_sound();
    let restored = restore(&env, "restored");
    assert_same(&env, &repo, &restored);
    assert!(git_state(&env, &restored).0.contains("UU changed.txt"));
    env.git(&restored, &["add", "-A"]);
    env.git(&restored, &["commit", "-q", "--no-edit"]);
    let parents = env.git(&restored, &["log", "-1", "--format=%P"]);
    assert_eq!(parents.split_whitespace().count(), 2);
}

#[test]
fn a_rebase_is_named_and_its_files_come_back() {
    let env = held();
    let repo = env.repo();
    base(&env, &repo);
    env.git(&repo, &["checkout", "-q", "-b", "other"]);
    write(&repo.join("changed.txt"), "theirs\n");
    env.git(&repo, &["commit", "-q", "-am", "Theirs"]);
    env.git(&repo, &["checkout", "-q", "main"]);
    write(&repo.join("changed.txt"), "ours\n");
    env.git(&repo, &["commit", "-q", "-am", "Ours"]);
    assert_ne!(env.git_any(&repo, &["rebase", "other"]).status, 0);
    fail(&env, &["--snapshot"]).success();
    let dir = env.root().join("restored");
    let args = ["restore", "87.1", "--worktree", dir.to_str().unwrap()];
    env.handoff(&args)
        .success()
        .says("a rebase was in progress and is not restored");
    assert_same(&env, &repo, &dir);
}

#[test]
fn work_before_the_first_commit_comes_back() {
    let env = TestEnvironment::new();
    env.git(env.root(), &["init", "-q", "repo"]);
    env.handoff(&["init"]).success();
    hold(&env);
    write(&env.repo().join("staged.txt"), "staged\n");
    env.git(&env.repo(), &["add", "."]);
    write(&env.repo().join("new.txt"), "new\n");
    fail(&env, &["--snapshot"]).success();
    let dir = env.root().join("restored");
    let args = ["restore", "87.1", "--worktree", dir.to_str().unwrap()];
    env.handoff(&args).success().says("none yet");
    assert_same(&env, &env.repo(), &dir);
    env.assert_sound();
}

#[test]
fn hidden_changes_come_back_hidden() {
    let env = held();
    let repo = env.repo();
    base(&env, &repo);
    env.git(
        &repo,
        &[
            "update-index",
            "--assume-unchanged",
            "changed.txt",
            "deleted.txt",
            "same.txt",
        ],
    );
    env.git(
        &repo,
        &["update-index", "--skip-worktree", "both.txt", "staged.txt"],
    );
    write(&repo.join("changed.txt"), "hidden change\n");
    write(&repo.join("both.txt"), "hidden too\n");
    fs::remove_file(repo.join("deleted.txt")).unwrap();
    fail(&env, &["--snapshot"]).success();
    let restored = restore(&env, "restored");
    let (a, b) = (walk(&repo), walk(&restored));
    assert_eq!(a, b);
    assert_eq!(git_state(&env, &repo).0, git_state(&env, &restored).0);
    let listed = env.git(
        &restored,
        &["ls-files", "-v", "changed.txt", "both.txt", "deleted.txt"],
    );
    assert_eq!(listed, "S both.txt\nh changed.txt\nh deleted.txt\n");
}

#[test]
fn a_sparse_checkout_comes_back_whole() {
    let env = held();
    let repo = env.repo();
    base(&env, &repo);
    env.git(
        &repo,
        &[
            "sparse-checkout",
            "set",
            "--no-cone",
            "/changed.txt",
            "/.gitignore",
        ],
    );
    write(&repo.join("changed.txt"), "changed\n");
    assert!(!repo.join("both.txt").exists());
    fail(&env, &["--snapshot"]).success();
    let dir = env.root().join("restored");
    let args = ["restore", "87.1", "--worktree", dir.to_str().unwrap()];
    env.handoff(&args)
        .success()
        .says("files that a sparse checkout had left out are restored too");
    assert_eq!(git_state(&env, &dir).0, " M changed.txt\0");
    assert_eq!(
        fs::read(dir.join("both.txt")).unwrap(),
        b"base of both.txt\n"
    );
}

#[test]
fn no_hook_runs_and_only_the_place_is_written() {
    let env = held();
    let repo = env.repo();
    base(&env, &repo);
    change(&env, &repo);
    fail(&env, &["--snapshot"]).success();
    let hook = repo.join(".git/hooks/post-checkout");
    write(
        &hook,
        format!("#!/bin/sh\ntouch {}/ran\n", env.root().display()),
    );
    chmod(&hook, 0o755);
    let before = (
        walk(&repo),
        index_of(&env, &repo),
        env.git(&repo, &["for-each-ref"]),
    );
    restore(&env, "restored");
    assert!(!env.root().join("ran").exists());
    assert_eq!(
        before,
        (
            walk(&repo),
            index_of(&env, &repo),
            env.git(&repo, &["for-each-ref"])
        )
    );
}

/// Clones nothing but the ledger.
fn clone_ledger(env: &TestEnvironment, name: &str) -> std::path::PathBuf {
    let url = format!("file://{}", env.repo().display());
    let dir = env.root().join(name);
    let dir_text = dir.to_str().unwrap();
    env.git(
        env.root(),
        &[
            "clone",
            "-q",
            "--single-branch",
            "--branch",
            "handoffs",
            &url,
            dir_text,
        ],
    );
    dir
}

#[test]
fn another_machine_goes_on_with_nothing_but_the_ledger() {
    let env = held();
    let repo = env.repo();
    base(&env, &repo);
    change(&env, &repo);
    fail(&env, &["--snapshot"]).success();
    env.handoff(&[
        "retry",
        "87.1",
        "--as",
        "orchestrator",
        "--reason",
        "elsewhere",
    ])
    .success();
    env.wait_minutes(24 * 60);
    let clone = clone_ledger(&env, "clone");
    env.git(&clone, &["checkout", "-q", "--detach"]);
    let claimed = env
        .handoff_in(&clone, &["claim", "87.1", "--as", AGENT])
        .success();
    claimed.says("restore it: git handoff restore 87.1 --attempt 1 --worktree DIR");
    let dir = env.root().join("elsewhere");
    let args = ["restore", "87.1", "--worktree", dir.to_str().unwrap()];
    let ran = env.handoff_in(&clone, &args).success();
    ran.says("the history of its commit")
        .says("no parents replaces it");
    clean(&repo);
    assert_same(&env, &repo, &dir);
    let tree = |dir: &Path| env.git(dir, &["rev-parse", "HEAD^{tree}"]);
    assert_eq!(tree(&dir), tree(&repo));
    let fsck = env.git_any(&clone, &["fsck", "--strict"]);
    assert_eq!(fsck.status, 0, "{}", fsck.stderr);
}

#[test]
fn commits_that_were_never_pushed_come_back_as_they_were() {
    let env = TestEnvironment::with_repository();
    let origin = env.root().join("origin.git");
    env.git(env.root(), &["clone", "-q", "--bare", "repo", "origin.git"]);
    env.git(
        &env.repo(),
        &["remote", "add", "origin", origin.to_str().unwrap()],
    );
    env.git(&env.repo(), &["fetch", "-q", "origin"]);
    env.handoff(&["init"]).success();
    hold(&env);
    for n in 1..=3 {
        write(&env.repo().join(format!("unpushed-{n}.txt")), "unpushed\n");
        env.git(&env.repo(), &["add", "-A"]);
        env.git(
            &env.repo(),
            &["commit", "-q", "-m", &format!("Unpushed {n}")],
        );
    }
    // A commit that changes nothing has its parent's tree.
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Empty"],
    );
    write(&env.repo().join("unpushed-1.txt"), "changed\n");
    fail(&env, &["--snapshot"]).success();
    env.assert_sound();
    env.git(&env.repo(), &["push", "-q", "origin", "handoffs"]);
    let clone = env.root().join("clone");
    env.git(
        env.root(),
        &["clone", "-q", origin.to_str().unwrap(), "clone"],
    );
    env.git(&clone, &["branch", "-q", "handoffs", "origin/handoffs"]);
    let head = env.git(&env.repo(), &["rev-parse", "HEAD"]);
    assert_ne!(
        env.git_any(&clone, &["cat-file", "-e", head.trim()]).status,
        0
    );
    let dir = env.root().join("elsewhere");
    let args = [
        "restore",
        "87.1",
        "--worktree",
        dir.to_str().unwrap(),
        "--new-branch",
        "went-on",
    ];
    env.handoff_in(&clone, &args).success();
    assert_eq!(env.git(&dir, &["rev-parse", "HEAD"]), head);
    assert_same(&env, &env.repo(), &dir);
    assert_eq!(env.git_any(&clone, &["fsck", "--strict"]).status, 0);
}

#[test]
fn a_published_base_comes_with_the_ledger_too() {
    let env = TestEnvironment::with_repository();
    write(&env.repo().join("second.txt"), "second\n");
    env.git(&env.repo(), &["add", "-A"]);
    env.git(&env.repo(), &["commit", "-q", "-m", "Second"]);
    let origin = env.root().join("origin.git");
    env.git(env.root(), &["clone", "-q", "--bare", "repo", "origin.git"]);
    env.git(
        &env.repo(),
        &["remote", "add", "origin", origin.to_str().unwrap()],
    );
    env.git(&env.repo(), &["fetch", "-q", "origin"]);
    env.handoff(&["init"]).success();
    hold(&env);
    write(&env.repo().join("new.txt"), "new\n");
    fail(&env, &["--snapshot"]).success();
    env.git(&env.repo(), &["push", "-q", "origin", "handoffs"]);
    let clone = env.root().join("clone");
    let url = format!("file://{}", origin.display());
    let only = [
        "clone",
        "-q",
        "--single-branch",
        "--branch",
        "handoffs",
        &url,
        "clone",
    ];
    env.git(env.root(), &only);
    let dir = env.root().join("elsewhere");
    let args = ["restore", "87.1", "--worktree", dir.to_str().unwrap()];
    env.handoff_in(&clone, &args).success();
    assert_same(&env, &env.repo(), &dir);
    // The base's own parents are not there: a commit with the same files stands for it.
    let tree = |dir: &Path| env.git(dir, &["rev-parse", "HEAD^{tree}"]);
    assert_eq!(tree(&dir), tree(&env.repo()));
    assert_eq!(env.git(&dir, &["rev-list", "--count", "HEAD"]).trim(), "1");
    // Where the history is, so is the commit itself.
    let whole = env.root().join("whole");
    env.git(env.root(), &["clone", "-q", &url, "whole"]);
    env.git(&whole, &["branch", "-q", "handoffs", "origin/handoffs"]);
    let dir = env.root().join("there");
    let args = ["restore", "87.1", "--worktree", dir.to_str().unwrap()];
    env.handoff_in(&whole, &args).success();
    let head = |dir: &Path| env.git(dir, &["rev-parse", "HEAD"]);
    assert_eq!(head(&dir), head(&env.repo()));
}

#[test]
fn a_folder_that_became_a_link_to_its_own_files_is_seen() {
    let env = held();
    let repo = env.repo();
    base(&env, &repo);
    // By size, times and inode the file behind the link is the one of the index.
    fs::rename(repo.join("from-folder"), repo.join("moved")).unwrap();
    symlink("moved", repo.join("from-folder")).unwrap();
    fail(&env, &["--snapshot"]).success();
    let restored = restore(&env, "restored");
    assert_same(&env, &repo, &restored);
}

#[test]
fn a_file_of_the_same_size_written_with_the_index_is_seen() {
    // libgit2 reads no split index: git makes a plain copy of it.
    for is_split in [false, true] {
        let env = held();
        let repo = env.repo();
        if is_split {
            env.git(&repo, &["update-index", "--split-index"]);
        }
        for round in 0..20 {
            let name = format!("racy-{round}.txt");
            write(&repo.join(&name), "one\n");
            env.git(&repo, &["add", "-A"]);
            write(&repo.join(&name), "two\n");
        }
        fail(&env, &["--snapshot"]).success();
        let restored = restore(&env, "restored");
        assert_same(&env, &repo, &restored);
    }
}

#[test]
fn from_a_bare_clone_and_with_git_set_to_another_index() {
    let env = held();
    base(&env, &env.repo());
    change(&env, &env.repo());
    // As in a hook: the index that git names is not the worktree's own.
    let other = env.root().join("other-index");
    let inside = |args: &[&str]| {
        let mut command = env.program(args);
        command
            .env("GIT_DIR", env.repo().join(".git"))
            .env("GIT_WORK_TREE", env.repo())
            .env("GIT_INDEX_FILE", env.repo().join(".git/index"));
        env.run(command, args, None)
    };
    let index = index_of(&env, &env.repo());
    let args = [
        "fail",
        "87.1",
        "--as",
        AGENT,
        "--message",
        "x",
        "--snapshot",
    ];
    inside(&args).success();
    clean(&env.repo());
    let dir = env.root().join("from-a-hook");
    let args = ["restore", "87.1", "--worktree", dir.to_str().unwrap()];
    let mut command = env.program(&args);
    command
        .env("GIT_DIR", env.repo().join(".git"))
        .env("GIT_INDEX_FILE", &other);
    env.run(command, &args, None).success();
    assert_eq!(index_of(&env, &env.repo()), index);
    assert!(!other.exists());
    assert_same(&env, &env.repo(), &dir);
    // A bare clone has no worktree of its own, and can have linked ones.
    env.git(env.root(), &["clone", "-q", "--bare", "repo", "bare.git"]);
    let bare = env.root().join("bare.git");
    let dir = env.root().join("from-bare");
    let args = [
        "restore",
        "87.1",
        "--worktree",
        dir.to_str().unwrap(),
        "--new-branch",
        "work",
    ];
    env.handoff_in(&bare, &args).success();
    assert_same(&env, &env.repo(), &dir);
    assert_eq!(env.git(&dir, &["branch", "--show-current"]), "work\n");
    env.git(&bare, &["fsck", "--strict", "--no-dangling"]);
}

/// The worktrees that git lists, without the repository's own.
fn listed(env: &TestEnvironment) -> String {
    let shown = env.git(&env.repo(), &["worktree", "list", "--porcelain"]);
    let linked: Vec<&str> = shown.split("\n\n").skip(1).collect();
    env.filtered(&linked.join("\n\n"))
}

#[test]
fn a_restored_worktree_is_one_of_gits_own() {
    let env = held();
    base(&env, &env.repo());
    change(&env, &env.repo());
    fail(&env, &["--snapshot"]).success();
    for name in ["one", "deep/below/one", "grün ä", "..."] {
        restore(&env, name);
    }
    insta::assert_snapshot!(listed(&env), @"
    worktree [root]/...
    HEAD [commit]
    detached

    worktree [root]/deep/below/one
    HEAD [commit]
    detached

    worktree [root]/grün ä
    HEAD [commit]
    detached

    worktree [root]/one
    HEAD [commit]
    detached
    ");
    // One that is gone is known until git forgets it.
    let one = env.root().join("one");
    fs::remove_dir_all(&one).unwrap();
    let ran = try_restore(&env, "one").exits(5);
    insta::assert_snapshot!(ran.shown, @"
    $ git handoff restore 87.1 --worktree [root]/one
    --- stderr
    error: git knows a worktree at [root]/one, which is gone
    hint: nothing was changed; name another folder, or run `git worktree prune` to remove the records of worktrees that are gone
    --- exit 5
    ");
    env.git(&env.repo(), &["worktree", "prune"]);
    assert!(!one.exists());
    restore(&env, "one");
    for name in ["one", "deep/below/one", "grün ä", "..."] {
        let dir = env.root().join(name);
        env.git(
            &env.repo(),
            &["worktree", "remove", "-f", dir.to_str().unwrap()],
        );
    }
    assert_eq!(listed(&env), "");
    env.assert_sound();
}

#[cfg(feature = "agents")]
#[test]
fn work_that_is_given_back_is_kept_for_the_next_claim() {
    let env = held();
    let file = env.repo().join("work.txt");
    let args = ["--as", AGENT, "--reason", "the context is full"];
    let release = |more: &[&str]| env.handoff(&[&["release", "87.1"], &args[..], more].concat());
    let claim = || env.claim("87.1", AGENT).success();
    // Nothing is uncommitted, and there is no remote.
    release(&["--snapshot"])
        .success()
        .says("there was nothing to keep: no uncommitted files");
    assert!(!claim().shown.contains("given back"));

    write(&file, "first\n");
    release(&[])
        .success()
        .says("1 uncommitted file was not kept, only here: `release --snapshot` keeps such files");
    claim();
    release(&["--snapshot", "--progress", "3 of 7 tests pass"])
        .success()
        .says("kept in issues/87/00/87/0001-release/3, with 1 file of 6 bytes");
    let tip = env.tip();
    release(&["--snapshot", "--progress", "3 of 7 tests pass"]).success();
    assert_eq!(env.tip(), tip, "the same again writes nothing");
    env.handoff(&["prime", "--as", AGENT])
        .says("has kept work (`git handoff restore 87.1 --claim 3 --worktree DIR`)");
    claim()
        .says("87.1, claim 3 was given back: the context is full")
        .says("work.txt (6 bytes)")
        .says("restore it: git handoff restore 87.1 --claim 3 --worktree DIR");

    // What is given back again, and what fails in the same attempt and in later ones, is kept beside it.
    write(&file, "second\n");
    release(&["--snapshot"]).success();
    claim();
    write(&file, "third\n");
    fail(&env, &["--snapshot"]).success();
    let retry = || {
        env.handoff(&["retry", "87.1", "--as", "orchestrator", "--reason", "again"])
            .success();
        env.wait_minutes(24 * 60);
        claim();
    };
    retry();
    fail(&env, &["--code", "FAILED"]).success();
    retry();
    env.handoff(&["prime", "--as", AGENT])
        .says("attempt 1 failed: \"out of time\"; what it left: `git handoff restore 87.1 --attempt 1 --worktree DIR`")
        .says("attempt 2 failed");
    env.handoff(&["show", "87.1"])
        .says("`git handoff restore 87.1 --claim 4`")
        .says("`git handoff restore 87.1 --attempt 1`");
    let read = |name: &str, which: &[&str]| {
        let dir = env.root().join(name);
        let place = ["restore", "87.1", "--worker", "repo", "--worktree"];
        let place = [&place[..], &[dir.to_str().unwrap()]].concat();
        env.handoff(&[&place, which].concat())
            .success()
            .says(&format!(
                "next: git -C [root]/{name} switch -c NEW-BRANCH\n"
            ))
            .says(&format!(
                "next: cd [root]/{name} && git handoff prime --as {AGENT} --worker repo\nnext: git -C [root]/repo merge NEW-BRANCH      (once the work is committed there; what is uncommitted there goes aside first: `git -C [root]/repo stash -u`)\n"
            ));
        fs::read_to_string(dir.join("work.txt")).unwrap()
    };
    assert_eq!(read("one", &["--claim", "3"]), "first\n");
    assert_eq!(read("two", &["--claim", "4"]), "second\n");
    assert_eq!(read("three", &["--attempt", "1"]), "third\n");
    assert_eq!(read("newest", &[]), "third\n");
    env.handoff(&["restore", "87.1", "--claim", "1"])
        .exits(6)
        .says("claim 1 of 87.1 was not given back with its work")
        .says("known are: claim 3, claim 4, attempt 1, attempt 2");
    env.assert_sound();
    assert_goes_there_and_back(&env, "issue-to-pr");
}
