//! Hooks are guests: what is put in comes out again, and what is the user's stays.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use test_support::files::{chmod, script};
use test_support::hooks::LOCAL;
use test_support::repository_kind;
use test_support::stand_in::{StandIn, git_of_version};
use test_support::{Ran, TestEnvironment};

/// Every file and link in a folder, with its mode and bytes; git's samples left out.
fn files(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let metadata = entry.path().symlink_metadata().unwrap();
        if !name.ends_with(".sample") {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            found.insert(name, (metadata.permissions().mode() & 0o7777, bytes));
        }
    }
    found
}

/// Runs the program with another folder first on the PATH.
fn handoff_with_path(env: &TestEnvironment, first: &Path, args: &[&str]) -> Ran {
    let mut command = env.program(args);
    let path = command
        .get_envs()
        .find(|(name, _)| *name == "PATH")
        .and_then(|(_, value)| Some(value?.to_str()?.to_owned()))
        .unwrap();
    command.env("PATH", format!("{}:{path}", first.display()));
    env.run(command, args, None)
}

/// What `hooks status --json` says: state, who calls the program, and the findings' codes, by hook.
fn states(ran: &Ran) -> String {
    let document = ran.json();
    let mut text = String::new();
    for hook in document["data"]["hooks"].as_array().unwrap() {
        let codes: Vec<&str> = hook["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["code"].as_str().unwrap())
            .collect();
        let by = hook["by"].as_str().unwrap_or("-");
        let word = |name: &str| hook[name].as_str().unwrap().to_owned();
        text += &format!(
            "{} {} {by} {}\n",
            word("hook"),
            word("state"),
            codes.join(" ")
        );
    }
    text
}

/// What `hooks status` shows, whatever git and wherever the program is.
fn shown_status(env: &TestEnvironment, args: &[&str]) -> String {
    let shown = env.handoff(args).success().shown;
    let version = env.git(env.root(), &["version"]);
    let folder = Path::new(test_support::program()).parent().unwrap();
    shown
        .replace(version.trim().trim_start_matches("git version "), "[git]")
        .replace(folder.to_str().unwrap(), "[bin]")
}

fn status(env: &TestEnvironment) -> String {
    states(&env.handoff(&["hooks", "status", "--json"]).success())
}

#[test]
fn hooks_come_and_go() {
    let env = TestEnvironment::with_repository();
    let folder = env.repo().join(".git/hooks");
    let config = fs::read(env.repo().join(".git/config")).unwrap();
    let dry = env.handoff(&["hooks", "install", "--files", "pre-commit", "--dry-run"]);
    insta::assert_snapshot!(dry.success().shown, @r#"
    $ git handoff hooks install --files pre-commit --dry-run
    pre-commit: would create [root]/repo/.git/hooks/pre-commit
      @@ line 1 @@
      +#!/bin/sh
      +# >>> git-handoff >>>
      +# `git handoff hooks install` writes these lines anew, `git handoff hooks uninstall` takes them out.
      +# This file was made for it: `uninstall` removes the file if nothing is added.
      +if command -v git-handoff >/dev/null 2>&1; then
      +git-handoff hook pre-commit "$@" || exit 1
      +else
      +if [ "$(git symbolic-ref -q HEAD)" = "refs/heads/$(git config handoff.branch || echo handoffs)" ]; then
      +echo 'pre-commit: this concerns the branch of the ledger, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2
      +exit 1
      +fi
      +echo 'pre-commit: git-handoff is not on the PATH: staged contracts are not checked' >&2
      +fi
      +# <<< git-handoff <<<
    this is a dry run: nothing was written
    "#);
    assert_eq!(files(&folder), BTreeMap::new());
    insta::assert_snapshot!(env.handoff(&["hooks", "install", "--files"]).success().shown, @"
    $ git handoff hooks install --files
    pre-commit: created [root]/repo/.git/hooks/pre-commit
    commit-msg: created [root]/repo/.git/hooks/commit-msg
    pre-push: created [root]/repo/.git/hooks/pre-push
    reference-transaction: created [root]/repo/.git/hooks/reference-transaction
    ");
    let installed = files(&folder);
    for (name, (mode, _)) in &installed {
        assert_eq!(*mode, 0o755, "{name}");
    }
    insta::assert_snapshot!(shown_status(&env, &["hooks", "status"]), @"
    $ git handoff hooks status
    hooks are in [root]/repo/.git/hooks
    git [git] finds [bin]/git-handoff
    pre-commit             installed  by a block in the hook's file
    commit-msg             installed  by a block in the hook's file
    pre-push               installed  by a block in the hook's file
    reference-transaction  installed  by a block in the hook's file
    ");
    let again = env.handoff(&["hooks", "install", "--files"]).success();
    assert!(
        again.stdout.ends_with("nothing to change\n"),
        "{}",
        again.shown
    );
    assert_eq!(files(&folder), installed);
    env.handoff(&["hooks", "uninstall", "--dry-run"]).success();
    assert_eq!(files(&folder), installed);
    insta::assert_snapshot!(env.handoff(&["hooks", "uninstall"]).success().shown, @"
    $ git handoff hooks uninstall
    pre-commit: removed, since nothing else was in it, [root]/repo/.git/hooks/pre-commit
    commit-msg: removed, since nothing else was in it, [root]/repo/.git/hooks/commit-msg
    pre-push: removed, since nothing else was in it, [root]/repo/.git/hooks/pre-push
    reference-transaction: removed, since nothing else was in it, [root]/repo/.git/hooks/reference-transaction
    ");
    assert_eq!(files(&folder), BTreeMap::new());
    env.handoff(&["hooks", "uninstall"])
        .success()
        .says("nothing to change");
    assert_eq!(fs::read(env.repo().join(".git/config")).unwrap(), config);
}

#[test]
fn a_users_hook_sees_everything_that_git_says_and_stays_as_it_was() {
    let env = TestEnvironment::with_repository();
    let stand_in = StandIn::new(&env);
    let server = env.root().join("server.git");
    env.git(env.root(), &["init", "-q", "--bare", "server.git"]);
    let repo = env.repo();
    let kept = |name: &str| env.root().join(name);
    for (round, (first, end)) in [
        ("#!/bin/sh\n", "exit 0\n"),
        ("#!/usr/bin/env bash\n# Ours.\nset -eu\n", "exec true"),
        ("#!/bin/sh -e\n", ""),
        ("", "exit 0"),
    ]
    .into_iter()
    .enumerate()
    {
        let push = format!(
            "{first}echo \"$*\" >>'{0}'\ncat >>'{0}'\n{end}",
            kept("push").display()
        );
        let receive = format!("{first}cat >>'{}'\n{end}", kept("receive").display());
        let pushes = repo.join(".git/hooks/pre-push");
        let receives = server.join("hooks/pre-receive");
        script(&pushes, &push);
        chmod(&pushes, 0o750);
        // Another's, where the test may give files away.
        let _ = chown(&pushes, Some(1), Some(1));
        let owner = || {
            let found = pushes.metadata().unwrap();
            (found.uid(), found.gid())
        };
        let before = owner();
        script(&receives, &receive);
        env.handoff(&["hooks", "install", "--files", "pre-push"])
            .success();
        env.handoff_in(&server, &["hooks", "install", "--files", "pre-receive"])
            .success();
        assert_eq!(files(&repo.join(".git/hooks"))["pre-push"].0, 0o750);
        assert_eq!(owner(), before);
        // More than a pipe holds.
        let head = env.git(&repo, &["rev-parse", "HEAD"]);
        let refs: String = (0..900)
            .map(|n| format!("create refs/heads/r{round}/{n:060} {head}"))
            .collect();
        let mut command = env.command("git");
        command.args(["update-ref", "--stdin"]);
        env.run(command, &[], Some(refs.as_bytes())).success();
        let pushed = format!("refs/heads/r{round}/*:refs/heads/r{round}/*");
        let mut command = stand_in.git(&env, &repo, &["push", "-q", "../server.git", &pushed]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");

        assert_eq!(
            stand_in.called(),
            "hook pre-push ../server.git ../server.git\nhook pre-receive\n"
        );
        let received = fs::read_to_string(kept("receive")).unwrap();
        assert_eq!(received.lines().count(), 900);
        assert!(received.len() > 1 << 16);
        assert_eq!(stand_in.input(), received);
        let said = fs::read_to_string(kept("push")).unwrap();
        let (arguments, lines) = said.split_once('\n').unwrap();
        assert_eq!(arguments, "../server.git ../server.git");
        assert_eq!(lines.lines().count(), 900);
        let ends =
            |line: &str| line.ends_with(&format!(" {}", "0".repeat(repository_kind::digits())));
        assert!(lines.lines().all(ends));
        for name in ["push", "receive"] {
            fs::remove_file(kept(name)).unwrap();
        }

        // Nothing to push: git still runs the hook, with nothing on standard input.
        let mut command = stand_in.git(&env, &repo, &["push", "-q", "../server.git", &pushed]);
        assert!(command.output().unwrap().status.success());
        assert_eq!(stand_in.input(), "");
        let said = fs::read_to_string(kept("push")).unwrap();
        assert_eq!(said, "../server.git ../server.git\n");
        fs::remove_file(kept("push")).unwrap();
        stand_in.called();

        env.handoff(&["hooks", "uninstall"]).success();
        env.handoff_in(&server, &["hooks", "uninstall"]).success();
        let expected = (0o750, push.into_bytes());
        assert_eq!(files(&repo.join(".git/hooks"))["pre-push"], expected);
        assert_eq!(owner(), before);
        assert_eq!(fs::read(&receives).unwrap(), receive.into_bytes());
        fs::remove_file(&pushes).unwrap();
    }
}

#[test]
fn what_the_program_refuses_does_not_happen() {
    let env = TestEnvironment::with_repository();
    let stand_in = StandIn::new(&env);
    let repo = env.repo();
    let own = env.root().join("own");
    for name in ["pre-commit", "commit-msg", "reference-transaction"] {
        let text = format!("#!/bin/sh\necho {name} \"$1\" >>'{}'\n", own.display());
        script(&repo.join(".git/hooks").join(name), text);
    }
    env.handoff(&["hooks", "install"]).success();
    let commit = |message: &str| {
        let args = ["commit", "-q", "--allow-empty", "-m", message];
        stand_in.git(&env, &repo, &args).output().unwrap()
    };
    assert!(commit("One").status.success());
    let called = stand_in.called();
    assert!(called.starts_with("hook pre-commit\nhook commit-msg .git/COMMIT_EDITMSG\n"));
    assert!(
        called.contains("hook reference-transaction prepared\n"),
        "{called}"
    );
    // Each phase comes to the user's hook, the one that counts also to the program.
    assert!(!called.contains("committed"), "{called}");
    let said = fs::read_to_string(&own).unwrap();
    for told in [
        "pre-commit \n",
        "commit-msg .git/COMMIT_EDITMSG\n",
        "reference-transaction prepared\n",
        "reference-transaction committed\n",
    ] {
        assert!(said.contains(told), "{told} in {said}");
    }
    let head = env.git(&repo, &["rev-parse", "HEAD"]);
    stand_in.refuse();
    fs::remove_file(&own).unwrap();
    let refused = commit("Two");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("refused"));
    // A ref that is moved by plumbing.
    let args = ["update-ref", "refs/heads/other", "HEAD"];
    let refused = stand_in.git(&env, &repo, &args).output().unwrap();
    assert!(!refused.status.success());
    assert!(!repo.join(".git/refs/heads/other").exists());
    assert_eq!(env.git(&repo, &["rev-parse", "HEAD"]), head);
}

#[test]
fn where_no_branch_moves_the_program_is_not_started() {
    let env = TestEnvironment::with_repository();
    let stand_in = StandIn::new(&env);
    let repo = env.repo();
    let hook = repo.join(".git/hooks/reference-transaction");
    let fetch = |name: &str| {
        let args = ["fetch", "-q", ".", &format!("main:refs/{name}")];
        let ran = stand_in.git(&env, &repo, &args).output().unwrap();
        assert!(ran.status.success());
    };
    let git = |args: &[&str]| {
        let ran = stand_in.git(&env, &repo, args).output().unwrap();
        assert!(ran.status.success());
    };
    // The script, and the block in a hook that reads as well.
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/reference-transaction");
    script(&hook, fs::read(shipped).unwrap());
    fetch("foo/one");
    assert_eq!(stand_in.called(), "");
    fetch("heads/one");
    assert_eq!(stand_in.called(), "hook reference-transaction prepared\n");
    assert!(stand_in.input().ends_with(" refs/heads/one\n"));
    let own = env.root().join("own");
    script(&hook, format!("#!/bin/sh\ncat >>'{}'\n", own.display()));
    let args = ["hooks", "install", "--files", "reference-transaction"];
    env.handoff(&args).success();
    fetch("foo/two");
    assert_eq!(stand_in.called(), "");
    fetch("heads/two");
    assert_eq!(stand_in.called(), "hook reference-transaction prepared\n");
    let told = fs::read_to_string(own).unwrap();
    git(&[
        "fetch",
        "-q",
        "--atomic",
        ".",
        "main:refs/foo/a",
        "main:refs/heads/b",
    ]);
    let input = stand_in.input();
    assert!(
        input.contains(" refs/foo/a\n") && input.contains(" refs/heads/b\n"),
        "{input}"
    );
    for name in ["refs/foo/two", "refs/heads/two"] {
        let prepared_and_committed = told.matches(name).count();
        assert_eq!(prepared_and_committed, 2, "{told}");
    }
}

#[test]
fn without_the_program_only_the_ledgers_branch_stands_still() {
    for way in ["shipped", "block", "configuration"] {
        let env = TestEnvironment::with_ledger();
        let repo = env.repo();
        let path = std::env::var("PATH").unwrap();
        let plain = |args: &[&str]| {
            let mut command = env.command("git");
            command.args(args).current_dir(&repo).env("PATH", &path);
            env.run(command, args, None)
        };
        env.git(env.root(), &["init", "-q", "--bare", "server.git"]);
        env.git(&repo, &["remote", "add", "origin", "../server.git"]);
        let server = env.root().join("server.git");
        env.git(&repo, &["worktree", "add", "-q", "../ledger", "handoffs"]);
        match way {
            "shipped" => {
                test_support::hooks::install(&repo.join(".git"), &LOCAL);
                test_support::hooks::install(&server, &["pre-receive"]);
            }
            "block" => {
                let args = ["hooks", "install", "--files"];
                let mut command = env.program(&args);
                command.env("PATH", &path);
                let ran = env.run(command, &args, None).success();
                let warned = "warning: git-handoff is not on the PATH";
                assert!(ran.stderr.starts_with(warned), "{}", ran.stderr);
                let server = env.handoff_in(&server, &["hooks", "install", "--files"]);
                server.success();
            }
            // Run as a git that knows them would: by a shell, with the arguments appended.
            _ => {
                let new = git_of_version(&env, "2.54.0");
                handoff_with_path(&env, &new, &["hooks", "install"]).success();
                for hook in LOCAL {
                    let key = format!("hook.handoff-{hook}.command");
                    let command = env.git(&repo, &["config", &key]);
                    let text = format!("#!/bin/sh\n{} \"$@\"\n", command.trim_end());
                    script(&repo.join(".git/hooks").join(hook), text);
                }
                test_support::hooks::install(&server, &["pre-receive"]);
            }
        }
        fs::write(repo.join("file.txt"), "one").unwrap();
        for args in [
            &["add", "file.txt"][..],
            &["commit", "-q", "-m", "One"],
            &["commit", "-q", "--amend", "-m", "One again"],
            &["switch", "-q", "-c", "work"],
            &["push", "-q", "origin", "work"],
            &["branch", "-m", "work", "other"],
            &["branch", "handoffs-too"],
            &["tag", "one"],
        ] {
            let ran = plain(args);
            assert_eq!(ran.status, 0, "{way} {args:?}: {}", ran.stderr);
            let warned = ran.stderr.contains(
                "pre-commit: git-handoff is not on the PATH: staged contracts are not checked",
            );
            assert_eq!(
                warned,
                args[0] == "commit",
                "{way} {args:?}: {}",
                ran.stderr
            );
        }
        fs::write(repo.join("file.txt"), "two").unwrap();
        plain(&["stash", "-q"]).success();
        plain(&["switch", "-q", "main"]).success();
        plain(&["stash", "pop", "-q"]).success();
        let tip = env.tip();
        let is_refused = |ran: Ran, hook: &str| {
            assert_ne!(ran.status, 0, "{way} {hook}");
            let told = format!(
                "{hook}: this concerns the branch of the ledger, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again."
            );
            assert!(ran.stderr.contains(&told), "{way} {hook}: {}", ran.stderr);
        };
        is_refused(
            plain(&["update-ref", "refs/heads/handoffs", "main"]),
            "reference-transaction",
        );
        is_refused(
            plain(&["update-ref", "-d", "refs/heads/handoffs"]),
            "reference-transaction",
        );
        is_refused(plain(&["push", "-q", "origin", "handoffs"]), "pre-push");
        is_refused(plain(&["push", "-q", "origin", "--all"]), "pre-push");
        let unchecked = plain(&["push", "-q", "--no-verify", "origin", "handoffs"]);
        is_refused(unchecked, "pre-receive");
        let commit = [
            "-C",
            "../ledger",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ];
        is_refused(plain(&commit), "pre-commit");
        // A ledger with another name, of which the configuration tells.
        env.git(&repo, &["config", "handoff.branch", "work/ledger"]);
        plain(&["branch", "other-branch"]).success();
        is_refused(plain(&["branch", "work/ledger"]), "reference-transaction");
        env.git(&repo, &["config", "--unset", "handoff.branch"]);
        // Where code branches are guarded, nobody can tell whose they are.
        env.git(&repo, &["config", "handoff.pushGuard", "true"]);
        let guarded = plain(&["push", "-q", "origin", "main"]);
        assert_ne!(guarded.status, 0);
        let told = "pre-push: handoff.pushGuard is on, and git-handoff is not on the PATH.";
        assert!(guarded.stderr.contains(told), "{way}: {}", guarded.stderr);
        assert_eq!(env.tip(), tip);
    }
}

#[test]
fn a_hooks_own_lines_see_everything_without_the_program_too() {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    let own = env.root().join("own");
    for hook in ["pre-push", "reference-transaction"] {
        let lines = format!("#!/bin/sh\ncat >>'{}'\n", own.display());
        script(&repo.join(".git/hooks").join(hook), lines);
    }
    env.handoff(&["hooks", "install", "--files"]).success();
    env.git(env.root(), &["init", "-q", "--bare", "server.git"]);
    let mut command = env.command("git");
    let args = ["push", "-q", "../server.git", "HEAD:refs/heads/work"];
    command.args(args).current_dir(&repo);
    command.env("PATH", std::env::var("PATH").unwrap());
    env.run(command, &args, None).success();
    let told = fs::read_to_string(own).unwrap();
    assert!(told.contains(" refs/heads/work "), "{told}");
}

#[test]
fn status_says_that_the_program_is_missing() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["hooks", "install", "--files", "pre-commit"])
        .success();
    let mut command = env.program(&["hooks", "status", "--json"]);
    command.env("PATH", std::env::var("PATH").unwrap());
    let ran = env.run(command, &[], None).success();
    assert!(ran.json()["data"]["program"].is_null());
    assert!(states(&ran).contains("pre-commit broken block hook.no_program\n"));
}

/// The commands in a text: what is between backticks.
fn commands(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_advice_for_a_hooks_path_ends_with_hooks_that_run() {
    for value in ["", "/dev/null", ".githooks", "../shared hooks", "~/hooks"] {
        let env = TestEnvironment::with_ledger();
        let repo = env.repo();
        env.git(&repo, &["config", "core.hooksPath", value]);
        let run = |line: &str| {
            let mut command = env.program(&[]);
            let path = command.get_envs().find(|(name, _)| *name == "PATH");
            let path = path.and_then(|(_, path)| path).unwrap().to_owned();
            command = env.command("sh");
            command
                .args(["-c", line])
                .current_dir(&repo)
                .env("PATH", path);
            env.run(command, &[line], None)
        };
        let refused = run("git handoff hooks install --files").exits(9);
        let (_, hint) = refused.stderr.split_once("hint: ").unwrap();
        let advised = commands(hint);
        assert!(!advised.is_empty(), "{value:?}: {hint}");
        for line in &advised {
            run(line).success();
        }
        let shown = env.handoff(&["hooks", "status", "--json"]).success();
        let installed = LOCAL
            .map(|hook| format!("{hook} installed block \n"))
            .concat();
        assert_eq!(states(&shown), installed, "{value:?}: {advised:?}");
        // They run: a contract that is not complete is refused.
        fs::write(repo.join("contract.xml"), "<handoff/>").unwrap();
        let ran = run("git add contract.xml && git commit -q -m Contract");
        assert_eq!(ran.status, 1, "{value:?}");
        assert!(
            ran.stderr.contains("contract.xml"),
            "{value:?}: {}",
            ran.stderr
        );
        run("git handoff hooks install --files --into-hooks-path")
            .success()
            .says("nothing to change");
    }
}

#[test]
fn what_status_advises_for_a_hooks_path_installs_the_hook() {
    for value in ["", "/dev/null", ".githooks"] {
        let env = TestEnvironment::with_ledger();
        let repo = env.repo();
        // Installed before someone set the path.
        env.handoff(&["hooks", "install", "--files", "pre-commit"])
            .success();
        env.git(&repo, &["config", "core.hooksPath", value]);
        let shown = env
            .handoff(&["hooks", "status", "--json", "pre-commit"])
            .success();
        let finding = shown.json()["data"]["hooks"][0]["findings"][0].clone();
        assert_eq!(finding["code"], "hook.elsewhere", "{value:?}");
        let fix = finding["fix"].as_str().unwrap().to_owned();
        let (last, before) = {
            let mut all = commands(&fix);
            all.retain(|line| !line.starts_with("git handoff hook "));
            (all.pop(), all)
        };
        let mut lines = before;
        lines.extend(last);
        for line in lines {
            let words: Vec<&str> = line.split(' ').skip(1).collect();
            match words[0] {
                "handoff" => drop(env.handoff(&words[1..])),
                _ => drop(env.git(&repo, &words)),
            }
        }
        assert!(
            status(&env).starts_with("pre-commit installed block \n"),
            "{value:?}: {fix}"
        );
    }
}

#[test]
fn a_folder_that_husky_writes_is_left_to_husky() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    env.git(&repo, &["config", "core.hooksPath", ".husky/_"]);
    for more in [&[][..], &["--into-hooks-path"]] {
        let args = [&["hooks", "install", "--files", "pre-commit"], more].concat();
        let refused = env.handoff(&args).exits(9);
        assert!(
            refused.stderr.contains("hook.managed"),
            "{}",
            refused.stderr
        );
        assert!(!repo.join(".husky").exists());
    }
    let line = "git-handoff hook pre-commit\n";
    test_support::files::write(&repo.join(".husky/pre-commit"), line);
    // Refs are not husky's.
    let args = [
        "hooks",
        "install",
        "--files",
        "--into-hooks-path",
        "reference-transaction",
    ];
    env.handoff(&args).success();
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_changes() {
    let env = TestEnvironment::with_repository();
    let folder = env.repo().join(".git/hooks");
    let block = "# >>> git-handoff >>>\ntrue\n";
    let end = "# <<< git-handoff <<<\n";
    let cases: [(&str, String); 6] = [
        (
            "pre-commit",
            "#!/usr/bin/env python3\nprint(1)\n".to_owned(),
        ),
        ("commit-msg", "\x7fELF\0\0\0".to_owned()),
        ("pre-push", format!("#!/bin/sh\necho 1\n{block}echo 2\n")),
        (
            "reference-transaction",
            format!("#!/bin/sh\n{block}{end}{block}{end}"),
        ),
        ("pre-receive", "#!/bin/sh\r\necho 1\r\n".to_owned()),
        ("update", format!("#!/bin/sh\necho 1\n{end}")),
    ];
    for (name, text) in &cases {
        script(&folder.join(name), text);
    }
    let before = files(&folder);
    let all: Vec<&str> = cases.iter().map(|(name, _)| *name).collect();
    let install = [&["hooks", "install", "--files"], &all[..]].concat();
    insta::assert_snapshot!(env.filtered(&env.handoff(&install).exits(9).stderr), @"
    error: nothing was changed: 6 hooks are in the way
      [root]/repo/.git/hooks/pre-commit hook.not_shell it is a script for `python3`, not for a shell
          have it call `git handoff hook pre-commit` with its arguments and its standard input, and refuse when that fails
      [root]/repo/.git/hooks/commit-msg hook.not_shell it is a program, not a script
          have it call `git handoff hook commit-msg` with its arguments and its standard input, and refuse when that fails
      3:1 [root]/repo/.git/hooks/pre-push hook.unclosed_block the block that begins here has no end: the line that ends it is missing
          fix the markers in an editor, so that they enclose the block's lines and nothing of yours, and run the same again
      5:1 [root]/repo/.git/hooks/reference-transaction hook.second_block a second block begins here; there is one already
          fix the markers in an editor, so that they enclose the block's lines and nothing of yours, and run the same again
      [root]/repo/.git/hooks/pre-receive hook.not_shell its first line ends with CR LF, so that no Unix runs it
          have it call `git handoff hook pre-receive` with its arguments and its standard input, and refuse when that fails
      3:1 [root]/repo/.git/hooks/update hook.unopened_block a block ends here that does not begin: the line that begins it is missing above
          fix the markers in an editor, so that they enclose the block's lines and nothing of yours, and run the same again
    hint: see `git handoff explain hooks_refused`
    ");
    insta::assert_snapshot!(env.filtered(&env.handoff(&["hooks", "uninstall"]).exits(9).stderr), @"
    error: nothing was changed: 3 hooks are in the way
      3:1 [root]/repo/.git/hooks/pre-push hook.unclosed_block the block that begins here has no end: the line that ends it is missing
          fix the markers in an editor, so that they enclose the block's lines and nothing of yours, and run the same again
      5:1 [root]/repo/.git/hooks/reference-transaction hook.second_block a second block begins here; there is one already
          fix the markers in an editor, so that they enclose the block's lines and nothing of yours, and run the same again
      3:1 [root]/repo/.git/hooks/update hook.unopened_block a block ends here that does not begin: the line that begins it is missing above
          fix the markers in an editor, so that they enclose the block's lines and nothing of yours, and run the same again
    hint: see `git handoff explain hooks_refused`
    ");
    assert_eq!(files(&folder), before);
    insta::assert_snapshot!(status(&env), @"
    pre-commit missing - hook.not_shell
    commit-msg missing - hook.not_shell
    pre-push broken block hook.unclosed_block
    reference-transaction broken block hook.second_block
    update broken block hook.unopened_block
    ");
    let call = "#!/usr/bin/env python3\nimport subprocess, sys\n\
                sys.exit(subprocess.call(['git-handoff', 'hook', 'pre-commit'] + sys.argv[1:]))\n";
    script(&folder.join("pre-commit"), call);
    assert!(
        status(&env).starts_with("pre-commit installed hand"),
        "{}",
        status(&env)
    );

    for name in all {
        fs::remove_file(folder.join(name)).unwrap();
    }
    script(&env.root().join("shared"), "#!/bin/sh\n");
    symlink(env.root().join("shared"), folder.join("pre-commit")).unwrap();
    script(&folder.join("commit-msg"), "#!/bin/sh\n");
    chmod(&folder.join("commit-msg"), 0o644);
    script(&folder.join("pre-push"), "#!/bin/sh\n");
    chmod(&folder.join("pre-push"), 0o555);
    fs::create_dir(folder.join("reference-transaction")).unwrap();
    let before = files(&folder);
    insta::assert_snapshot!(env.filtered(&env.handoff(&["hooks", "install", "--files"]).exits(9).stderr), @r#"
    error: nothing was changed: 4 hooks are in the way
      [root]/repo/.git/hooks/pre-commit hook.symlink it is a link to [root]/shared, which others may share
          have that script call `git handoff hook pre-commit "$@"`, or put a file of its own in the link's place
      [root]/repo/.git/hooks/commit-msg hook.not_executable it is not executable, so that git passes it by
          make it executable if all of it should run, or move it away, and run the same again
      [root]/repo/.git/hooks/pre-push hook.read_only the file may not be written to
          find out who made it read-only, and make it writable if that may be
      [root]/repo/.git/hooks/reference-transaction hook.not_a_file it is not a regular file
          move it away
    hint: see `git handoff explain hooks_refused`
    "#);
    assert_eq!(files(&folder), before);
    assert_eq!(fs::read(env.root().join("shared")).unwrap(), b"#!/bin/sh\n");
    // A link to the project's own script is as good as a block.
    fs::remove_file(folder.join("pre-commit")).unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/pre-commit");
    symlink(own, folder.join("pre-commit")).unwrap();
    env.handoff(&["hooks", "install", "--files", "pre-commit"])
        .success()
        .says("is called in your own lines");
    assert!(status(&env).starts_with("pre-commit installed hand \n"));
    fs::remove_file(folder.join("pre-commit")).unwrap();
    fs::create_dir(folder.join("pre-commit")).unwrap();
    let document = env
        .handoff(&["hooks", "install", "--files", "--json"])
        .exits(9)
        .json();
    assert_eq!(document["error"]["code"], "hooks_refused");
    assert_eq!(document["error"]["findings"].as_array().unwrap().len(), 4);
}

#[test]
fn a_hooks_path_is_followed_and_never_set() {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    env.handoff(&["hooks", "install", "--files", "pre-commit"])
        .success();
    let set = |value: &str| env.git(&repo, &["config", "core.hooksPath", value]);
    // In the working tree, where a commit takes it to others; from a folder below as well.
    set(".githooks");
    fs::create_dir(repo.join("sub")).unwrap();
    let config = fs::read(repo.join(".git/config")).unwrap();
    let refused = env.handoff_in(
        &repo.join("sub"),
        &["hooks", "install", "--files", "pre-commit"],
    );
    insta::assert_snapshot!(env.filtered(&refused.exits(9).stderr), @"
    error: nothing was changed: 1 hook is in the way
      [root]/repo/.githooks/pre-commit hook.elsewhere core.hooksPath is .githooks (file:[root]/repo/.git/config), so that hooks are in [root]/repo/.githooks, which is not in this repository's git directory
          if that folder may be changed, say so with --into-hooks-path
    hint: `git handoff hooks install --files pre-commit --into-hooks-path` does it in that folder
    ");
    assert!(!repo.join(".githooks").exists());
    insta::assert_snapshot!(shown_status(&env, &["hooks", "status", "pre-commit"]), @"
    $ git handoff hooks status pre-commit
    hooks are in [root]/repo/.githooks (core.hooksPath, file:[root]/repo/.git/config)
    git [git] finds [bin]/git-handoff
    pre-commit  missing
      [root]/repo/.git/hooks/pre-commit hook.elsewhere git passes it by: core.hooksPath is .githooks (file:[root]/repo/.git/config), so that hooks are in [root]/repo/.githooks, which is not in this repository's git directory
          have the hooks there call `git handoff hook pre-commit`, or `git handoff hooks install pre-commit --into-hooks-path`
    ");
    let consent = [
        "hooks",
        "install",
        "--files",
        "pre-commit",
        "--into-hooks-path",
    ];
    env.handoff_in(&repo.join("sub"), &consent).success();
    assert_eq!(files(&repo.join(".githooks")).len(), 1);
    assert!(!repo.join("sub/.githooks").exists());
    let stand_in = StandIn::new(&env);
    let args = ["commit", "-q", "--allow-empty", "-m", "One"];
    stand_in.git(&env, &repo, &args).output().unwrap();
    assert_eq!(stand_in.called(), "hook pre-commit\n");
    env.handoff(&["hooks", "uninstall", "pre-commit"])
        .exits(9)
        .says("--into-hooks-path");
    env.handoff(&["hooks", "uninstall", "pre-commit", "--into-hooks-path"])
        .success();
    assert_eq!(files(&repo.join(".githooks")), BTreeMap::new());
    // What git passed by is taken out as well.
    assert_eq!(files(&repo.join(".git/hooks")), BTreeMap::new());
    assert_eq!(fs::read(repo.join(".git/config")).unwrap(), config);

    // In the home folder, where all repositories have theirs.
    env.git(&repo, &["config", "--unset", "core.hooksPath"]);
    env.git(&repo, &["config", "--global", "core.hooksPath", "~/hooks"]);
    env.handoff(&["hooks", "install", "--files"])
        .exits(9)
        .says("[root]/home/hooks");
    env.handoff(&consent).success();
    assert_eq!(files(&env.root().join("home/hooks")).len(), 1);

    // In the git directory, it is this repository's own.
    set(repo.join(".git/our-hooks").to_str().unwrap());
    env.handoff(&["hooks", "install", "--files"]).success();
    assert_eq!(files(&repo.join(".git/our-hooks")).len(), 4);
    // Where someone switched hooks off.
    env.git(&repo, &["config", "core.hooksPath", "/dev/null"]);
    env.handoff(&["hooks", "install", "--files"])
        .exits(9)
        .says("hook.elsewhere");
    assert!(status(&env).starts_with("pre-commit missing - hook.missing\n"));
    // A link that leads elsewhere is no own folder.
    env.git(&repo, &["config", "core.hooksPath", ".git/linked"]);
    symlink(env.root().join("home/hooks"), repo.join(".git/linked")).unwrap();
    env.handoff(&["hooks", "install", "--files"])
        .exits(9)
        .says("hook.elsewhere");
}

#[test]
fn worktrees_share_hooks_and_bare_repositories_have_others() {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    let linked = env.root().join("linked");
    env.git(&repo, &["worktree", "add", "-q", linked.to_str().unwrap()]);
    env.handoff_in(&linked, &["hooks", "install", "--files"])
        .success();
    assert_eq!(files(&repo.join(".git/hooks")).len(), 4);
    assert_eq!(
        status(&env),
        states(&env.handoff_in(&linked, &["hooks", "status", "--json"]))
    );
    let stand_in = StandIn::new(&env);
    let args = ["commit", "-q", "--allow-empty", "-m", "One"];
    stand_in.git(&env, &linked, &args).output().unwrap();
    assert!(stand_in.called().starts_with("hook pre-commit\n"));

    // A git directory elsewhere, with a file in its place.
    let args = ["init", "-q", "--separate-git-dir", "kept", "apart"];
    env.git(env.root(), &args);
    env.handoff_in(&env.root().join("apart"), &["hooks", "install", "--files"])
        .success();
    assert_eq!(files(&env.root().join("kept/hooks")).len(), 4);

    env.git(env.root(), &["init", "-q", "--bare", "server.git"]);
    let server = env.root().join("server.git");
    fs::remove_dir_all(server.join("hooks")).unwrap();
    env.handoff_in(&server, &["hooks", "install", "--files"])
        .success();
    let installed = files(&server.join("hooks"));
    assert_eq!(installed.keys().collect::<Vec<_>>(), ["pre-receive"]);
    env.handoff_in(&server, &["hooks", "install", "--files", "update"])
        .success();
    let push = |to: &str| {
        let args = ["push", "-q", "--no-verify", "../server.git", to];
        stand_in.git(&env, &repo, &args).output().unwrap()
    };
    stand_in.called();
    assert!(push("HEAD:refs/heads/one").status.success());
    let zeros = "0".repeat(repository_kind::digits());
    let head = env.git(&repo, &["rev-parse", "HEAD"]);
    assert_eq!(
        stand_in.called(),
        format!("hook pre-receive\nhook update refs/heads/one {zeros} {head}")
    );
    stand_in.refuse();
    assert!(!push("HEAD:refs/heads/two").status.success());
    assert!(!server.join("refs/heads/two").exists());
    env.handoff_in(&server, &["hooks", "install", "--files", "pre-commit"])
        .success();
    let said = states(&env.handoff_in(&server, &["hooks", "status", "--json"]));
    insta::assert_snapshot!(said, @"
    pre-commit broken block hook.never
    pre-receive installed block 
    update installed block
    ");
    env.handoff(&["hooks", "install", "--files", "--server"])
        .success();
    assert_eq!(files(&repo.join(".git/hooks")).len(), 5);
}

#[test]
fn git_that_has_hooks_in_its_configuration_takes_them_from_there() {
    let env = TestEnvironment::with_repository();
    let new = git_of_version(&env, "2.54.0");
    let repo = env.repo();
    let config = || fs::read_to_string(repo.join(".git/config")).unwrap();
    let before = config();
    let folder = repo.join(".git/hooks");
    // What would be in the way of a file is not in the way here.
    script(&folder.join("pre-commit"), "#!/usr/bin/env python3\n");
    env.git(&repo, &["config", "core.hooksPath", ".githooks"]);
    let run = |args: &[&str]| handoff_with_path(&env, &new, args);
    insta::assert_snapshot!(run(&["hooks", "install", "--dry-run"]).success().shown, @r#"
    $ git handoff hooks install --dry-run
    pre-commit: would set in git's configuration
      +hook.handoff-pre-commit.command = git_handoff() {
      +  if command -v git-handoff >/dev/null 2>&1; then exec git-handoff hook pre-commit "$@"; fi
      +  if [ "$(git symbolic-ref -q HEAD)" = "refs/heads/$(git config handoff.branch || echo handoffs)" ]; then
      +  echo 'pre-commit: this concerns the branch of the ledger, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2
      +  exit 1
      +  fi
      +  echo 'pre-commit: git-handoff is not on the PATH: staged contracts are not checked' >&2
      +  }; git_handoff
      +hook.handoff-pre-commit.event = pre-commit
    commit-msg: would set in git's configuration
      +hook.handoff-commit-msg.command = git_handoff() {
      +  if command -v git-handoff >/dev/null 2>&1; then exec git-handoff hook commit-msg "$@"; fi
      +  if [ "$(git symbolic-ref -q HEAD)" = "refs/heads/$(git config handoff.branch || echo handoffs)" ]; then
      +  echo 'commit-msg: this concerns the branch of the ledger, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2
      +  exit 1
      +  fi
      +  }; git_handoff
      +hook.handoff-commit-msg.event = commit-msg
    pre-push: would set in git's configuration
      +hook.handoff-pre-push.command = git_handoff() {
      +  if command -v git-handoff >/dev/null 2>&1; then exec git-handoff hook pre-push "$@"; fi
      +  git_handoff_input=$(cat)
      +  case $git_handoff_input in
      +  *" refs/heads/$(git config handoff.branch || echo handoffs) "*) echo 'pre-push: this concerns the branch of the ledger, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2
      +  exit 1
      +  ;;
      +  *' refs/heads/'*) if [ "$(git config --bool handoff.pushGuard)" = true ]; then
      +  echo 'pre-push: handoff.pushGuard is on, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2
      +  exit 1
      +  fi ;;
      +  esac
      +  }; git_handoff
      +hook.handoff-pre-push.event = pre-push
    reference-transaction: would set in git's configuration
      +hook.handoff-reference-transaction.command = git_handoff() {
      +  [ "$1" = prepared ] || exit 0
      +  if command -v git-handoff >/dev/null 2>&1; then exec git-handoff hook reference-transaction "$@"; fi
      +  git_handoff_input=$(cat)
      +  case "$git_handoff_input
      +  " in *" refs/heads/$(git config handoff.branch || echo handoffs)
      +  "*)
      +  echo 'reference-transaction: this concerns the branch of the ledger, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2
      +  exit 1
      +  ;;
      +  esac
      +  }; git_handoff
      +hook.handoff-reference-transaction.event = reference-transaction
    this is a dry run: nothing was written
    "#);
    run(&["hooks", "install"]).success();
    let written = config();
    let hooks = written.split_once("hooksPath").unwrap().1;
    // git names the format of a repository there.
    let formats = hooks
        .split_inclusive('\n')
        .skip_while(|line| !line.starts_with("[extensions]"));
    let formats = formats.enumerate();
    let formats = formats.take_while(|(at, line)| *at == 0 || !line.starts_with('['));
    let formats: String = formats.map(|(_, line)| line).collect();
    let hooks = hooks.replace(&formats, "");
    insta::assert_snapshot!(&hooks, @r#"
     = .githooks
    [hook "handoff-pre-commit"]
    	command = "git_handoff() {\nif command -v git-handoff >/dev/null 2>&1; then exec git-handoff hook pre-commit \"$@\"; fi\nif [ \"$(git symbolic-ref -q HEAD)\" = \"refs/heads/$(git config handoff.branch || echo handoffs)\" ]; then\necho 'pre-commit: this concerns the branch of the ledger, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2\nexit 1\nfi\necho 'pre-commit: git-handoff is not on the PATH: staged contracts are not checked' >&2\n}; git_handoff"
    	event = pre-commit
    [hook "handoff-commit-msg"]
    	command = "git_handoff() {\nif command -v git-handoff >/dev/null 2>&1; then exec git-handoff hook commit-msg \"$@\"; fi\nif [ \"$(git symbolic-ref -q HEAD)\" = \"refs/heads/$(git config handoff.branch || echo handoffs)\" ]; then\necho 'commit-msg: this concerns the branch of the ledger, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2\nexit 1\nfi\n}; git_handoff"
    	event = commit-msg
    [hook "handoff-pre-push"]
    	command = "git_handoff() {\nif command -v git-handoff >/dev/null 2>&1; then exec git-handoff hook pre-push \"$@\"; fi\ngit_handoff_input=$(cat)\ncase $git_handoff_input in\n*\" refs/heads/$(git config handoff.branch || echo handoffs) \"*) echo 'pre-push: this concerns the branch of the ledger, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2\nexit 1\n;;\n*' refs/heads/'*) if [ \"$(git config --bool handoff.pushGuard)\" = true ]; then\necho 'pre-push: handoff.pushGuard is on, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2\nexit 1\nfi ;;\nesac\n}; git_handoff"
    	event = pre-push
    [hook "handoff-reference-transaction"]
    	command = "git_handoff() {\n[ \"$1\" = prepared ] || exit 0\nif command -v git-handoff >/dev/null 2>&1; then exec git-handoff hook reference-transaction \"$@\"; fi\ngit_handoff_input=$(cat)\ncase \"$git_handoff_input\n\" in *\" refs/heads/$(git config handoff.branch || echo handoffs)\n\"*)\necho 'reference-transaction: this concerns the branch of the ledger, and git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.' >&2\nexit 1\n;;\nesac\n}; git_handoff"
    	event = reference-transaction
    "#);
    run(&["hooks", "install"])
        .success()
        .says("nothing to change");
    assert_eq!(config(), written);
    assert_eq!(files(&folder).len(), 1);
    insta::assert_snapshot!(states(&run(&["hooks", "status", "--json"]).success()), @"
    pre-commit installed configuration 
    commit-msg installed configuration 
    pre-push installed configuration 
    reference-transaction installed configuration
    ");

    env.git(&repo, &["config", "hook.handoff-pre-push.enabled", "false"]);
    env.git(
        &repo,
        &["config", "hook.handoff-commit-msg.command", "true"],
    );
    insta::assert_snapshot!(states(&run(&["hooks", "status", "--json"]).success()), @"
    pre-commit installed configuration 
    commit-msg outdated configuration hook.outdated
    pre-push broken configuration hook.disabled
    reference-transaction installed configuration
    ");
    env.git(
        &repo,
        &["config", "--unset", "hook.handoff-pre-push.enabled"],
    );
    run(&["hooks", "install"]).success();
    assert_eq!(config(), written);
    // An older git, of which there may be another on the machine, runs none of them.
    let old = git_of_version(&env, "2.53.1");
    let old = handoff_with_path(&env, &old, &["hooks", "status", "--json"]);
    insta::assert_snapshot!(states(&old.success()), @"
    pre-commit missing - hook.old_git
    commit-msg missing - hook.old_git
    pre-push missing - hook.old_git
    reference-transaction missing - hook.old_git
    ");

    run(&["hooks", "uninstall"]).success();
    env.git(&repo, &["config", "--unset", "core.hooksPath"]);
    assert_eq!(config(), before);
    fs::remove_file(folder.join("pre-commit")).unwrap();
    run(&["hooks", "install", "--files"]).success();
    assert_eq!(config(), before);
    assert_eq!(files(&folder).len(), 4);
    // What is in files already stays there.
    run(&["hooks", "install"])
        .success()
        .says("nothing to change");
    let ancient = git_of_version(&env, "2.27.1");
    let said = states(&handoff_with_path(
        &env,
        &ancient,
        &["hooks", "status", "--json"],
    ));
    assert!(
        said.contains("reference-transaction broken block hook.old_git\n"),
        "{said}"
    );
    assert!(said.contains("pre-push installed block \n"), "{said}");
}

#[test]
fn lines_of_ones_own_that_stop_nothing_are_told() {
    let env = TestEnvironment::with_repository();
    let folder = env.repo().join(".git/hooks");
    let call = "git handoff hook";
    script(
        &folder.join("pre-commit"),
        format!("#!/bin/sh\nexit 0\n{call} pre-commit\n"),
    );
    script(
        &folder.join("commit-msg"),
        format!("#!/bin/sh\n{call} commit-msg \"$1\" || true\n"),
    );
    script(
        &env.root().join("shared"),
        format!("#!/bin/sh\n{call} pre-push \"$@\" || :\n"),
    );
    symlink(env.root().join("shared"), folder.join("pre-push")).unwrap();
    let before = files(&folder);
    insta::assert_snapshot!(shown_status(&env, &["hooks", "status"]), @"
    $ git handoff hooks status
    hooks are in [root]/repo/.git/hooks
    git [git] finds [bin]/git-handoff
    pre-commit             broken   by your own lines
      2:1 [root]/repo/.git/hooks/pre-commit hook.early_exit the script ends here, before the lines that call the program
          move the lines that call the program to right below the first line
    commit-msg             broken   by your own lines
      2:1 [root]/repo/.git/hooks/commit-msg hook.ignored the exit code of the call is ignored, so it can't stop git
          take the `||` and what follows out of the line, or write `|| exit 1`
    pre-push               broken   by your own lines
      2:1 [root]/repo/.git/hooks/pre-push hook.ignored the exit code of the call is ignored, so it can't stop git
          take the `||` and what follows out of the line, or write `|| exit 1`
    reference-transaction  missing
      [root]/repo/.git/hooks/reference-transaction hook.missing nothing calls the program
          `git handoff hooks install reference-transaction`
    ");
    let refused = env.handoff(&["hooks", "install", "--files"]).exits(9);
    insta::assert_snapshot!(env.filtered(&refused.stderr), @"
    error: nothing was changed: 3 hooks are in the way
      2:1 [root]/repo/.git/hooks/pre-commit hook.early_exit the script ends here, before the lines that call the program
          move the lines that call the program to right below the first line
      2:1 [root]/repo/.git/hooks/commit-msg hook.ignored the exit code of the call is ignored, so it can't stop git
          take the `||` and what follows out of the line, or write `|| exit 1`
      2:1 [root]/repo/.git/hooks/pre-push hook.ignored the exit code of the call is ignored, so it can't stop git
          take the `||` and what follows out of the line, or write `|| exit 1`
    hint: see `git handoff explain hooks_refused`
    ");
    assert_eq!(files(&folder), before);
    // A commit goes through, as was said.
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Nothing stops it"],
    );
    script(
        &folder.join("pre-commit"),
        format!("#!/bin/sh\n{call} pre-commit || exit 1\nexit 0\n"),
    );
    env.handoff(&["hooks", "install", "--files", "pre-commit"])
        .success()
        .says("is called in your own lines");
}

#[test]
fn status_says_why_a_hook_would_not_run() {
    let env = TestEnvironment::with_repository();
    let folder = env.repo().join(".git/hooks");
    env.handoff(&["hooks", "install", "--files"]).success();
    let edit = |name: &str, change: &dyn Fn(&str) -> String| {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, change(&text)).unwrap();
    };
    chmod(&folder.join("pre-commit"), 0o644);
    edit("commit-msg", &|text| {
        text.replace("#!/bin/sh\n", "#!/bin/sh\nexit 0\n")
    });
    edit("pre-push", &|text| text.replace("exec <<", "exec 3<<"));
    let hand = "#!/bin/sh\n# git-handoff hook update\nexec git handoff hook reference-transaction \"$@\"\n";
    fs::write(folder.join("reference-transaction"), hand).unwrap();
    script(&folder.join("update"), hand);
    insta::assert_snapshot!(shown_status(&env, &["hooks", "status"]), @"
    $ git handoff hooks status
    hooks are in [root]/repo/.git/hooks
    git [git] finds [bin]/git-handoff
    pre-commit             broken     by a block in the hook's file
      [root]/repo/.git/hooks/pre-commit hook.not_executable it is not executable, so that git passes it by
          make it executable if all of it should run, or move it away, and run the same again
    commit-msg             broken     by a block in the hook's file
      2:1 [root]/repo/.git/hooks/commit-msg hook.early_exit the script ends here, before the block
          move the block to right below the first line
    pre-push               outdated   by a block in the hook's file
      2:1 [root]/repo/.git/hooks/pre-push warning hook.outdated the block is not the one that this version writes
          `git handoff hooks install pre-push`
    reference-transaction  installed  by your own lines
    ");
    let refused = env.handoff(&["hooks", "install", "--files"]).exits(9);
    assert!(refused.stderr.contains("hook.not_executable"));
    assert!(refused.stderr.contains("hook.early_exit"));
    // What another version wrote is brought up to date; lines of the user's own stay.
    fs::remove_file(folder.join("pre-commit")).unwrap();
    fs::remove_file(folder.join("commit-msg")).unwrap();
    let ran = env.handoff(&["hooks", "install", "--files"]).success();
    insta::assert_snapshot!(env.filtered(&ran.stdout), @"
    pre-commit: created [root]/repo/.git/hooks/pre-commit
    commit-msg: created [root]/repo/.git/hooks/commit-msg
    pre-push: brought up to date [root]/repo/.git/hooks/pre-push
    reference-transaction: is called in your own lines, which stay: [root]/repo/.git/hooks/reference-transaction
    ");
    insta::assert_snapshot!(status(&env), @"
    pre-commit installed block 
    commit-msg installed block 
    pre-push installed block 
    reference-transaction installed hand
    ");
    env.handoff(&["hooks", "uninstall"]).success();
    let left = files(&folder);
    assert_eq!(
        left.keys().collect::<Vec<_>>(),
        ["reference-transaction", "update"]
    );
    assert_eq!(left["reference-transaction"].1, hand.as_bytes());
}
