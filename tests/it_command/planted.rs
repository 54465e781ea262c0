//! What somebody put into a repository makes the program neither write into a git directory nor run
//! anything.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use insta::assert_snapshot;
use test_support::TestEnvironment;

/// Every file of a git directory that says what git runs.
fn what_git_runs(env: &TestEnvironment) -> Vec<(String, Vec<u8>)> {
    let git = env.repo().join(".git");
    let mut found = vec![("config".to_owned(), fs::read(git.join("config")).unwrap())];
    for entry in fs::read_dir(git.join("hooks")).into_iter().flatten() {
        let path = entry.unwrap().path();
        found.push((path.display().to_string(), fs::read(&path).unwrap()));
    }
    found.sort();
    found
}

#[test]
fn agents_are_not_set_up_through_a_link_into_a_git_directory() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    let known = what_git_runs(&env);
    let hooks = repo.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::create_dir_all(repo.join("vendor.git/objects")).unwrap();
    fs::create_dir_all(repo.join("vendor.git/refs")).unwrap();
    for file in ["HEAD", "config"] {
        fs::write(repo.join("vendor.git").join(file), "").unwrap();
    }
    let refused = |link: &str, to: &str| {
        let link = repo.join(link);
        symlink(to, &link).unwrap();
        let ran = env
            .handoff(&["agents", "install", "claude-code", "gemini"])
            .exits(9);
        fs::remove_file(link).unwrap();
        env.filtered(&ran.stderr)
    };
    assert_snapshot!(refused("GEMINI.md", ".git/config"), @"
    error: nothing was changed: 1 file is in the way
      GEMINI.md agents.link GEMINI.md leads into the git directory [root]/repo/.git
          remove the link, or put a file in its place
    hint: fix what the findings name, and run the same command again; see `git handoff explain agents_refused`
    ");
    for (link, to) in [
        ("GEMINI.md", ".git/hooks/post-checkout"),
        ("GEMINI.md", "vendor.git/config"),
        (".claude", ".git/hooks"),
        (".claude", "vendor.git"),
    ] {
        refused(link, to);
    }
    assert_eq!(what_git_runs(&env), known);
    assert!(!repo.join("GEMINI.md").exists() && !repo.join(".claude").exists());
    env.handoff(&["agents", "install", "claude-code", "gemini"])
        .success();
}

#[test]
fn no_output_goes_through_a_link_into_a_git_directory() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    let known = what_git_runs(&env);
    symlink(".git/config", repo.join("out")).unwrap();
    symlink(".git/hooks/post-commit", repo.join("none")).unwrap();
    symlink(".git", repo.join("folder")).unwrap();
    for args in [
        vec!["report", "--output", "out"],
        vec!["report", "--output", "folder/config"],
        vec!["metrics", "--format", "openmetrics", "--output", "out"],
        vec!["github", "summary", "--output", "out"],
        vec!["github", "summary", "--output", "none"],
        vec!["protocol", "copy", "issue-to-pr", "folder/mine"],
        vec!["export", "--format", "archive", "folder/mine"],
    ] {
        let ran = env.handoff(&args);
        assert_eq!(ran.status, 9, "{}", ran.shown);
        assert!(
            ran.stderr.contains("leads into the git directory"),
            "{}",
            ran.shown
        );
    }
    assert_eq!(what_git_runs(&env), known);
    // A link elsewhere is a user's own.
    symlink("../elsewhere.html", repo.join("report.html")).unwrap();
    env.handoff(&["report", "--output", "report.html"])
        .success();
}

/// A bare repository in the folder of another, which names programs to run.
fn embedded(env: &TestEnvironment, ran: &Path) -> std::path::PathBuf {
    let bare = env.repo().join("assets/vendor.git");
    env.git(
        &env.repo(),
        &["init", "-q", "--bare", bare.to_str().unwrap()],
    );
    let program = env.file(
        "program",
        format!("#!/bin/sh\ntouch '{}'\nexit 1\n", ran.display()),
    );
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for (name, value) in [
        ("gpg.program", &*program),
        ("core.sshCommand", &program),
        ("commit.gpgSign", "true"),
        ("user.signingKey", "key"),
        ("remote.origin.url", "ssh://localhost/desk.git"),
        ("handoff.remote", "origin"),
        // What it says of itself does not count.
        ("safe.bareRepository", "all"),
    ] {
        env.git(&bare, &["config", name, value]);
    }
    bare
}

#[test]
fn a_bare_repository_that_a_clone_brought_is_refused_as_git_refuses_it() {
    let env = TestEnvironment::with_repository();
    let ran = env.root().join("ran");
    let bare = embedded(&env, &ran);
    let inside = bare.join("refs");
    let explicit = |dir: &Path, args: &[&str]| {
        let mut command = env.program(args);
        command.current_dir(dir).env("GIT_CONFIG_COUNT", "1");
        command.env("GIT_CONFIG_KEY_0", "safe.bareRepository");
        command.env("GIT_CONFIG_VALUE_0", "explicit");
        env.run(command, args, None)
    };
    let said = explicit(&bare, &["init"]).exits(9);
    assert_snapshot!(env.filtered(&said.stderr), @"
    error: [root]/repo/assets/vendor.git/ is a bare repository, and git's safe.bareRepository is `explicit`
    hint: if you trust it, name it: `git --git-dir=[root]/repo/assets/vendor.git/ handoff status`
    ");
    for dir in [&bare, &inside] {
        for args in [
            &["init"][..],
            &["status"],
            &["sync"],
            &["fetch"],
            &["verify"],
        ] {
            explicit(dir, args).exits(9);
        }
    }
    assert!(!ran.exists());
    // What belongs to a working tree, and what is named, is allowed.
    explicit(&env.repo(), &["init"]).success();
    explicit(&env.repo().join(".git"), &["status"]).success();
    env.git(&env.repo(), &["commit", "-q", "--allow-empty", "-m", "One"]);
    env.git(&env.repo(), &["worktree", "add", "-q", "../beside"]);
    explicit(&env.root().join("beside"), &["status"]).success();
    explicit(&env.repo().join(".git/worktrees/beside"), &["status"]).success();
    // Without the setting, and for whoever names it, it is a repository as any other.
    let asked = env.handoff_in(&bare, &["status"]);
    assert!(
        !asked.stderr.contains("safe.bareRepository"),
        "{}",
        asked.shown
    );
    let mut command = env.program(&["status"]);
    command.current_dir(&bare).env("GIT_DIR", ".");
    command.env("GIT_CONFIG_COUNT", "1");
    command.env("GIT_CONFIG_KEY_0", "safe.bareRepository");
    command.env("GIT_CONFIG_VALUE_0", "explicit");
    let named = env.run(command, &["status"], None);
    assert!(
        !named.stderr.contains("safe.bareRepository"),
        "{}",
        named.shown
    );
}

/// Links out of the working tree, and pipes in the place of files.
#[test]
fn what_is_installed_stays_in_the_working_tree_and_waits_for_nobody() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    let elsewhere = env.root().join("elsewhere");
    fs::create_dir_all(elsewhere.join("workflows")).unwrap();
    let commands: [&[&str]; 3] = [
        &["init", "--github"],
        &["agents", "install", "claude-code", "codex"],
        &["uninstall"],
    ];
    symlink(&elsewhere, repo.join(".github")).unwrap();
    let ran = env.handoff(commands[0]).exits(9);
    assert!(
        ran.stderr.contains("leads out of the working tree"),
        "{}",
        ran.shown
    );
    env.handoff(commands[2]).success();
    assert!(
        elsewhere.join("workflows").is_dir(),
        "it is not ours to remove"
    );
    assert_eq!(
        fs::read_dir(elsewhere.join("workflows")).unwrap().count(),
        0
    );
    fs::remove_file(repo.join(".github")).unwrap();
    // Nor where a folder is a link to what is not there yet.
    symlink("../nowhere", repo.join(".claude")).unwrap();
    let ran = env.handoff(commands[1]).exits(9);
    assert!(ran.stderr.contains("nothing was changed"), "{}", ran.shown);
    assert!(!env.root().join("nowhere").exists());
    fs::remove_file(repo.join(".claude")).unwrap();
    // A file that has another name elsewhere is replaced, not written to.
    let other = env.file("other", "not ours");
    fs::hard_link(&other, repo.join("AGENTS.md")).unwrap();
    env.handoff(commands[1]).success();
    env.handoff(commands[2]).success();
    assert_eq!(fs::read_to_string(&other).unwrap(), "not ours");
    fs::remove_file(repo.join("AGENTS.md")).unwrap();
    fs::create_dir_all(repo.join(".github/workflows")).unwrap();
    for path in [
        "AGENTS.md",
        "CLAUDE.md",
        ".mcp.json",
        ".github/workflows/handoff-verify.yml",
        ".pre-commit-config.yaml",
        "lefthook.yml",
    ] {
        let pipe = repo.join(path);
        fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for command in commands
            .iter()
            .chain(&[&["hooks", "install"][..], &["agents", "doctor"]])
        {
            // However it ends, it ends.
            let ran = env.handoff(command);
            assert!(ran.status < 100, "{path}: {}", ran.shown);
        }
        fs::remove_file(pipe).unwrap();
    }
}
