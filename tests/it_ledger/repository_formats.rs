//! Repositories of every kind that git makes: how objects are named, how refs are kept, and what
//! speeds git up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::contracts::opening;
#[cfg(feature = "exchange")]
use test_support::exchange::{exported, import, lived, refused};
use test_support::remote::assert_whole;
use test_support::team::at_once;
use test_support::{TestEnvironment, repository_kind};

/// A new repository of a format, with one commit.
fn repository(env: &TestEnvironment, name: &str, format: &str) -> PathBuf {
    let format = format!("--object-format={format}");
    env.git(env.root(), &["init", "-q", &format, name]);
    let repo = env.root().join(name);
    env.git(&repo, &["commit", "-q", "--allow-empty", "-m", "Start"]);
    repo
}

#[cfg(feature = "exchange")]
/// Every line of every file of issues, with its path.
fn lines(env: &TestEnvironment, repo: &Path) -> String {
    env.git(repo, &["grep", "", "handoffs", "--", "issues", "open"])
}

#[test]
fn a_ledger_of_sha256_is_shared_audited_and_packed() {
    let env = TestEnvironment::new();
    let repo = repository(&env, "repo", "sha256");
    let server = repository(&env, "server", "sha256");
    env.git(
        &repo,
        &["remote", "add", "origin", server.to_str().unwrap()],
    );
    env.handoff(&["init", "--remote", "origin", "--evidence", "off"])
        .success();
    env.handoff_in(&server, &["hooks", "install"]).success();
    for issue in 1..=3 {
        env.send(opening(issue)).success();
    }
    env.git(
        env.root(),
        &["clone", "-q", server.to_str().unwrap(), "other"],
    );
    let other = env.root().join("other");
    env.handoff_in(&other, &["init", "--remote", "origin"])
        .success();
    env.handoff_in(&other, &["claim", "2.1", "--as", "prep-agent"])
        .success();
    env.claim("2.1", "prep-agent").exits(5);
    env.git(&repo, &["gc", "-q", "--prune=now"]);
    // A step made offline is made again on what came meanwhile, and names the commit it was.
    let offline = env.file("4.xml", opening(4));
    env.handoff_in(&other, &["send", &offline, "--offline"])
        .exits(8);
    env.send(opening(5)).success();
    env.handoff_in(&other, &["sync"]).success();
    env.handoff(&["sync"]).success();
    let newest = env.git(
        &repo,
        &[
            "log",
            "-1",
            "--format=%(trailers:key=Synced-From,valueonly)",
            "handoffs",
        ],
    );
    assert_eq!(newest.trim().len(), 64);
    for repo in [&repo, &other, &server] {
        env.handoff_in(repo, &["verify"]).success();
        assert_whole(&env, repo);
        let tip = env.git(repo, &["rev-parse", "handoffs"]);
        assert_eq!(tip.trim().len(), 64);
    }
    // A step that is not one is refused at the gate of the server.
    env.git(
        &repo,
        &["worktree", "add", "-q", "--detach", "../tree", "handoffs"],
    );
    let tree = env.root().join("tree");
    env.git(
        &tree,
        &[
            "commit",
            "-q",
            "--no-verify",
            "--allow-empty",
            "-m",
            "By hand",
        ],
    );
    let push = ["push", "-q", "--no-verify", "origin", "HEAD:handoffs"];
    let ran = env.git_any(&tree, &push);
    assert_ne!(ran.status, 0);
    assert!(
        ran.stderr.contains("not made of legal steps"),
        "{}",
        ran.stderr
    );
}

#[cfg(feature = "exchange")]
#[test]
fn a_ledger_goes_from_one_format_to_the_other_and_back() {
    let env = TestEnvironment::new();
    let repo = repository(&env, "repo", "sha1");
    env.handoff(&["init", "--evidence", "off"]).success();
    for issue in 1..=2 {
        env.send(opening(issue)).success();
    }
    env.claim("2.1", "prep-agent").success();
    env.handoff(&["cancel", "1", "--as", "issue-manager", "--reason", "twice"])
        .success();
    let own = lines(&env, &repo);
    let mut from = repo;
    for (name, format) in [("longer", "sha256"), ("shorter", "sha1")] {
        let folder = env.root().join(name);
        let folder = folder.to_str().unwrap();
        env.handoff_in(&from, &["export", "--format", "files", folder])
            .success();
        let to = repository(&env, &format!("in-{name}"), format);
        env.handoff_in(&to, &["init", "--evidence", "off"])
            .success();
        let (data, status) = import(&env, &to, Path::new(folder), &[]);
        assert_eq!((refused(&data), status), (Vec::<String>::new(), 0));
        assert_eq!(lines(&env, &to), own);
        env.handoff_in(&to, &["verify"]).success();
        from = to;
    }
}

#[cfg(feature = "exchange")]
#[test]
fn what_was_kept_of_a_failure_does_not_come_into_another_format() {
    let env = lived("issue-to-pr");
    let folder = exported(&env, "folders", "out");
    let other = if repository_kind::is_sha256() {
        "sha1"
    } else {
        "sha256"
    };
    let repo = repository(&env, "other", other);
    env.handoff_in(&repo, &["init", "--evidence", "off"])
        .success();
    let (data, status) = import(&env, &repo, &folder, &[]);
    assert_eq!(status, 3);
    let said = data["refused"].to_string();
    assert!(said.contains("objects of another format"), "{said}");
    env.handoff_in(&repo, &["verify"]).success();
}

#[test]
fn a_remote_of_the_other_format_is_refused_before_anything_is_written() {
    let env = TestEnvironment::new();
    for (own, other) in [("sha1", "sha256"), ("sha256", "sha1")] {
        for is_empty in [true, false] {
            let name = format!("{own}-{is_empty}");
            let repo = repository(&env, &name, own);
            let server = repository(&env, &format!("{name}-server"), other);
            if is_empty {
                env.git(&server, &["branch", "-m", "other"]);
                env.git(&server, &["update-ref", "-d", "refs/heads/other"]);
            }
            let url = server.to_str().unwrap();
            env.git(&repo, &["remote", "add", "origin", url]);
            env.handoff_in(&repo, &["init", "--remote", "origin"])
                .exits(9)
                .says("the remote uses another object format");
            assert_eq!(
                env.git(
                    &repo,
                    &["for-each-ref", "refs/heads/handoffs", "refs/handoff"]
                ),
                ""
            );
            assert_eq!(env.git_any(&repo, &["config", "handoff.remote"]).stdout, "");
            // A ledger that was set up without it, too.
            env.handoff_in(&repo, &["init"]).success();
            env.git(&repo, &["config", "handoff.remote", "origin"]);
            let tip = env.git(&repo, &["rev-parse", "handoffs"]);
            let contract = env.file("87.xml", opening(87));
            let ran = env.handoff_in(&repo, &["send", &contract]).exits(9);
            assert!(
                ran.stderr.contains("hint: nothing was written"),
                "{}",
                ran.shown
            );
            assert_eq!(env.git(&repo, &["rev-parse", "handoffs"]), tip);
            env.handoff_in(&repo, &["sync"]).exits(9);
        }
    }
}

/// Opens, claims, fails and reads in a repository; the failure keeps a file that is not committed.
fn live(env: &TestEnvironment, repo: &Path, issue: u32) {
    let run = |args: &[&str]| env.handoff_in(repo, args).success();
    let contract = env.file(&format!("{issue}.xml"), opening(issue));
    let id = format!("{issue}.1");
    run(&["send", &contract]);
    run(&["claim", &id, "--as", "prep-agent"]);
    fs::write(repo.join("unfinished"), format!("{issue}\n")).unwrap();
    let fail = [
        "fail",
        &id,
        "--as",
        "prep-agent",
        "--message",
        "stuck",
        "--snapshot",
    ];
    run(&fail);
    let kept = env.root().join(format!("kept-{issue}"));
    let kept = kept.to_str().unwrap();
    run(&["restore", &id, "--worktree", kept]);
    let file = fs::read_to_string(Path::new(kept).join("unfinished")).unwrap();
    assert_eq!(file, format!("{issue}\n"));
    run(&["status"]);
    run(&["verify"]);
}

#[test]
fn what_speeds_git_up_or_saves_space_changes_nothing() {
    type Shape = (&'static str, &'static [&'static [&'static str]]);
    let shapes: &[Shape] = &[
        (
            "configuration of each worktree",
            &[
                &["config", "extensions.worktreeConfig", "true"],
                &["config", "--worktree", "core.abbrev", "9"],
            ],
        ),
        (
            "objects that are precious",
            &[
                &["config", "core.repositoryFormatVersion", "1"],
                &["config", "extensions.preciousObjects", "true"],
            ],
        ),
        (
            "an index of many packs, with bitmaps",
            &[
                &["repack", "-q", "-d"],
                &["commit", "-q", "--allow-empty", "-m", "More"],
                &["repack", "-q", "-d"],
                &["multi-pack-index", "write", "--bitmap", "--no-progress"],
            ],
        ),
        (
            "a pack of what nothing leads to",
            &[
                &["commit", "-q", "--allow-empty", "-m", "Lost"],
                &["reset", "-q", "--hard", "HEAD~"],
                &["reflog", "expire", "--expire=now", "--all"],
                &["repack", "-q", "-d", "--cruft"],
            ],
        ),
        (
            "a graph of commits with filters",
            &[&[
                "commit-graph",
                "write",
                "--reachable",
                "--changed-paths",
                "--no-progress",
            ]],
        ),
        ("refs packed", &[&["pack-refs", "--all"]]),
        (
            "a sparse index",
            &[&["sparse-checkout", "init", "--cone", "--sparse-index"]],
        ),
        (
            "a cache of untracked files, and a split index",
            &[
                &["config", "core.untrackedCache", "true"],
                &["update-index", "--untracked-cache"],
                &["update-index", "--split-index"],
            ],
        ),
        (
            "many files, as git's own settings for them",
            &[
                &["config", "feature.manyFiles", "true"],
                &["update-index", "--index-version", "4"],
            ],
        ),
    ];
    for (_, commands) in shapes {
        let env = TestEnvironment::with_ledger();
        let repo = env.repo();
        fs::create_dir_all(repo.join("src")).unwrap();
        fs::write(repo.join("src/lib"), "").unwrap();
        env.git(&repo, &["add", "."]);
        env.git(&repo, &["commit", "-q", "-m", "Files"]);
        live(&env, &repo, 1);
        for command in *commands {
            env.git(&repo, command);
        }
        live(&env, &repo, 2);
        env.git(&repo, &["gc", "-q"]);
        live(&env, &repo, 3);
        env.assert_sound();
    }
}

#[test]
fn objects_of_another_repository_are_read_and_not_written() {
    for how in [&["--shared"][..], &["--reference", "repo", "--no-local"]] {
        let env = TestEnvironment::with_ledger();
        live(&env, &env.repo(), 1);
        let clone = [&["clone", "-q"][..], how, &["repo", "borrowing"]].concat();
        env.git(env.root(), &clone);
        let borrowing = env.root().join("borrowing");
        assert!(borrowing.join(".git/objects/info/alternates").exists());
        let count = || env.git(&env.repo(), &["count-objects", "-v"]);
        let before = count();
        env.handoff_in(&borrowing, &["init", "--remote", "origin"])
            .success();
        env.git(&borrowing, &["config", "handoff.remote", ""]);
        env.git(&borrowing, &["config", "--unset", "handoff.remote"]);
        live(&env, &borrowing, 2);
        assert_eq!(count(), before);
        assert_whole(&env, &borrowing);
    }
}

#[test]
fn a_worktree_by_relative_paths_is_one() {
    let env = TestEnvironment::with_ledger();
    let (repo, linked) = (env.repo(), env.root().join("linked"));
    let own = repo.join(".git/worktrees/linked");
    env.git(&repo, &["worktree", "add", "-q", "-b", "side", "../linked"]);
    env.git(&linked, &["commit", "-q", "--allow-empty", "-m", "Beside"]);
    // What `git worktree add --relative-paths` writes since 2.48.
    let there = "gitdir: ../repo/.git/worktrees/linked\n";
    fs::write(linked.join(".git"), there).unwrap();
    fs::write(own.join("gitdir"), "../../../../linked/.git\n").unwrap();
    let head = env.git(&linked, &["rev-parse", "HEAD"]);
    assert_ne!(head, env.git(&repo, &["rev-parse", "HEAD"]));
    live(&env, &linked, 1);
    let restored = env.root().join("kept-1");
    assert_eq!(env.git(&restored, &["rev-parse", "HEAD"]), head);
    assert!(!repo.join("unfinished").exists());
    // Its worker is not that of the main one.
    let unnamed = |dir: &Path, args: &[&str]| {
        let mut command = env.program(args);
        command.env_remove("GIT_HANDOFF_WORKER").current_dir(dir);
        env.run(command, args, None)
    };
    env.send(opening(2)).success();
    unnamed(&linked, &["claim", "2.1", "--as", "prep-agent"]).success();
    unnamed(&repo, &["claim", "2.1", "--as", "prep-agent"]).exits(5);
    unnamed(&linked, &["extend", "2.1", "--as", "prep-agent"]).success();
    let worker = |git_dir: &Path| fs::read_to_string(git_dir.join("handoff/worker")).unwrap();
    assert_ne!(worker(&own), worker(&repo.join(".git")));
    // The ledger's branch is not moved under a worktree that has it checked out.
    env.git(&linked, &["checkout", "-q", "handoffs"]);
    env.send(opening(3)).exits(9).says("linked");
    env.git(&linked, &["checkout", "-q", "side"]);
    // git before 2.48 refuses what such a worktree makes of the repository; the program reads it,
    // unless its refs are in tables.
    env.git(&repo, &["config", "core.repositoryFormatVersion", "1"]);
    let extension = ["config", "extensions.relativeWorktrees"];
    env.git(&repo, &[&extension[..], &["true"]].concat());
    let is_known = env.git_any(&linked, &["status"]).status == 0;
    for dir in [&repo, &linked] {
        let ran = env.handoff_in(dir, &["show", "2.1"]);
        if !is_known && repository_kind::is_reftable() {
            ran.exits(9).says("relativeworktrees");
        } else {
            ran.success().says("in_progress");
        }
    }
    if is_known {
        live(&env, &linked, 4);
    }
    let config = repo.join(".git/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("relativeWorktrees = true", "")).unwrap();
    env.assert_sound();
}

#[test]
fn a_clone_that_began_with_a_bundle_is_like_any_other() {
    let env = TestEnvironment::with_ledger();
    live(&env, &env.repo(), 1);
    env.git(
        &env.repo(),
        &["bundle", "create", "-q", "../all.bundle", "--all"],
    );
    let bundle = format!("--bundle-uri={}/all.bundle", env.root().display());
    env.git(
        env.root(),
        &["clone", "-q", &bundle, "--no-local", "repo", "clone"],
    );
    let clone = env.root().join("clone");
    env.handoff_in(&clone, &["init", "--remote", "origin"])
        .success();
    env.git(&env.repo(), &["checkout", "-q", "--detach"]);
    live(&env, &clone, 2);
    env.handoff(&["verify"]).success();
    assert_whole(&env, &clone);
}

#[test]
fn what_git_3_makes_by_default_has_a_ledger() {
    if !repository_kind::git_knows_tables() {
        return;
    }
    let env = TestEnvironment::new();
    let config = "[safe]\n\tbareRepository = explicit\n[init]\n\tdefaultBranch = main\n\
                  \tdefaultObjectFormat = sha256\n\tdefaultRefFormat = reftable\n";
    let path = env.root().join("home/.gitconfig");
    let own = fs::read_to_string(&path).unwrap();
    fs::write(&path, own + config).unwrap();
    // Of the environment's own formats, or of git's when those are the newest.
    let made = |name: &str, bare: bool| {
        let mut command = env.command("git");
        command.current_dir(env.root());
        command
            .env_remove("GIT_DEFAULT_HASH")
            .env_remove("GIT_DEFAULT_REF_FORMAT");
        command
            .args(["init", "-q", name])
            .args(bare.then_some("--bare"));
        assert!(command.status().unwrap().success());
        env.root().join(name)
    };
    let (server, repo) = (made("server", true), made("repo", false));
    assert_eq!(
        env.git(&repo, &["rev-parse", "--show-object-format"]),
        "sha256\n"
    );
    assert_eq!(
        env.git(&repo, &["rev-parse", "--show-ref-format"]),
        "reftable\n"
    );
    env.git(&repo, &["commit", "-q", "--allow-empty", "-m", "Start"]);
    env.git(
        &repo,
        &["remote", "add", "origin", server.to_str().unwrap()],
    );
    env.git(&repo, &["push", "-q", "origin", "main"]);
    env.handoff(&["init", "--remote", "origin", "--hooks", "--evidence", "off"])
        .success();
    let mut unnamed = env.program(&["hooks", "install"]);
    unnamed.current_dir(&server);
    env.run(unnamed, &["hooks", "install"], None)
        .exits(9)
        .says("safe.bareRepository");
    let mut named = env.program(&["hooks", "install"]);
    named.env("GIT_DIR", &server);
    env.run(named, &["hooks", "install"], None).success();
    live(&env, &repo, 1);
    let clone = ["clone", "-q", server.to_str().unwrap(), "other"];
    env.git(env.root(), &clone);
    let other = env.root().join("other");
    env.handoff_in(&other, &["init", "--remote", "origin"])
        .success();
    live(&env, &other, 2);
    env.handoff(&["fetch", "--repair"]).success();
    env.git(&repo, &["worktree", "add", "-q", "-b", "side", "../linked"]);
    live(&env, &env.root().join("linked"), 3);
    env.handoff(&["demo"]).success();
    env.git(&repo, &["gc", "-q", "--prune=now"]);
    env.assert_sound();
}

#[test]
fn very_many_refs_beside_the_ledger_change_nothing() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    let head = env.git(&repo, &["rev-parse", "HEAD"]);
    let line = |number: u32| format!("create refs/tags/many/{number} {}\n", head.trim());
    let lines: String = (0..5_000).map(line).collect();
    let args = ["update-ref", "--stdin"];
    env.run(git_in(&env, &repo, &args), &args, Some(lines.as_bytes()))
        .success();
    env.git(&repo, &["pack-refs", "--all"]);
    live(&env, &repo, 1);
    // Somebody moves the branch meanwhile, and somebody else holds its lock.
    let lock = repository_kind::lock_of(&repo.join(".git"), "refs/heads/handoffs");
    fs::write(&lock, "").unwrap();
    env.send(opening(2)).exits(7).says("stayed locked by");
    fs::remove_file(lock).unwrap();
    let sends: Vec<Vec<String>> = (3..9)
        .map(|issue| {
            let contract = env.file(&format!("{issue}.xml"), opening(issue));
            vec!["send".to_owned(), contract]
        })
        .collect();
    let ended = at_once(&env, &sends);
    assert_eq!(ended.iter().filter(|ran| ran.status.success()).count(), 6);
    env.assert_sound();
    let tags = env.git(&repo, &["for-each-ref", "--format=x", "refs/tags/many"]);
    assert_eq!(tags.lines().count(), 5_000);
}

fn git_in(env: &TestEnvironment, repo: &Path, args: &[&str]) -> Command {
    let mut command = env.command("git");
    command.args(args).current_dir(repo);
    command
}

/// The files and folders below a folder whose mode lacks some of these bits of a folder's; a file
/// needs none to be run, and none to be written: objects are not.
fn kept_from_others(folder: &Path, bits: u32, found: &mut Vec<String>) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        let needed = if metadata.is_dir() {
            bits
        } else {
            bits & 0o444
        };
        if metadata.permissions().mode() & needed != needed {
            found.push(path.display().to_string());
        }
        if metadata.is_dir() {
            kept_from_others(&path, bits, found);
        }
    }
}

#[test]
fn what_users_share_has_the_modes_that_git_gives_it() {
    for (shared, bits) in [("group", 0o070), ("world", 0o075), ("0640", 0o050)] {
        let env = TestEnvironment::new();
        let (work, notify) = if cfg!(feature = "all") {
            let work = "! \"$0\" work --as prep-agent --once -- sh -c 'exit 75'";
            (work, "\"$0\" notify --exec true --once")
        } else {
            ("true", "true")
        };
        let script = format!(
            "umask 077 && git init -q --bare --shared=$1 hub.git && cd hub.git && \
            export GIT_DIR=. && git config core.logAllRefUpdates true && \
            base=$(git commit-tree -m base $(git mktree < /dev/null)) && git update-ref refs/heads/main $base && \
            \"$0\" init --evidence off && \"$0\" send - && \"$0\" hooks install && \
            export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.bareRepository GIT_CONFIG_VALUE_0=all && \
            {work} && \
            \"$0\" claim --next --as prep-agent && \"$0\" block 1.1 --as prep-agent --reason why && \
            {notify} && \
            object=objects/$(git rev-parse handoffs | sed 's,..,&/,') && chmod u+w $object && \
            head -c 20 $object > cut && cat cut > $object && chmod 444 $object && \
            \"$0\" fetch --repair --give-up"
        );
        let mut command = env.command("sh");
        command.current_dir(env.root());
        let args = ["-c", &script, test_support::program(), shared];
        command.args(args);
        let ran = env.run(command, &args, Some(opening(1).as_bytes()));
        ran.success();
        let mut found = Vec::new();
        let hub = env.root().join("hub.git");
        let has_tables = hub.join("reftable").exists();
        let refs = if has_tables { "reftable" } else { "logs" };
        for folder in ["objects", "refs", refs, "handoff", "hooks"] {
            kept_from_others(&hub.join(folder), bits, &mut found);
        }
        for kept in ["work/pauses.json", "work/worktrees/1.json", "notify"] {
            let is_there = hub.join("handoff").join(kept).exists();
            assert_eq!(is_there, cfg!(feature = "all"), "{kept}");
        }
        assert_eq!(found, [""; 0], "{shared}");
    }
}
