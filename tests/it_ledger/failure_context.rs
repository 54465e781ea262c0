//! What `fail` keeps, what it refuses to keep, and who is shown it.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::failure::*;
use test_support::files::{chmod, write};

const FOLDER: &str = "issues/87/00/87/0001-failure/1";

/// A file of the ledger's newest commit.
fn stored(env: &TestEnvironment, path: &str) -> String {
    env.git(
        &env.repo(),
        &["cat-file", "blob", &format!("handoffs:{FOLDER}/{path}")],
    )
}

fn stored_json(env: &TestEnvironment, path: &str) -> Value {
    serde_json::from_str(&stored(env, path)).unwrap()
}

/// Asserts that a failure is refused and leaves nothing behind, not even an object.
#[track_caller]
fn refuses(env: &TestEnvironment, more: &[&str], status: i32, says: &[&str]) {
    let objects = || env.git(&env.repo(), &["count-objects", "-v"]);
    let before = (env.tip(), objects());
    let mut ran = fail(env, more).exits(status);
    for text in says {
        ran = ran.says(text);
    }
    ran.says("nothing was written");
    assert_eq!((env.tip(), objects()), before);
}

#[test]
fn a_failure_keeps_the_error_the_machine_and_where_the_code_stood() {
    let env = held();
    let ran = fail(
        &env,
        &["--code", "FAILED", "--details", "more", "--recoverable"],
    )
    .success();
    ran.says(&format!("kept in {FOLDER}"));
    let mut kept = stored_json(&env, "failure.json");
    let (commit, tree) = ("rev-parse HEAD", "rev-parse HEAD^{tree}");
    let git = |args: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        env.git(&env.repo(), &args).trim().to_owned()
    };
    let host = kept["host"].take();
    assert_eq!(host["os"], "linux");
    assert!(host["arch"].is_string());
    let version = kept["tools"]["git"].take();
    let git_version = env.git(&env.repo(), &["--version"]);
    assert_eq!(
        format!("git version {}", version.as_str().unwrap()),
        git_version.trim()
    );
    assert_eq!(
        kept,
        json!({
            "version": 4,
            "handoff": "87.1",
            "attempt": 1,
            "at": kept["at"],
            "by": AGENT,
            "error": {
                "code": "FAILED",
                "message": "out of time",
                "details": "more",
                "recoverable": true,
            },
            "host": null,
            "tools": {"git": null, "git-handoff": env!("CARGO_PKG_VERSION")},
            "code": { "branch": "main", "commit": git(commit), "tree": git(tree) },
        })
    );
    let context = env.data(&["show", "87.1"])["record"]["transitions"][2]["context"].clone();
    let tree = git(&format!("rev-parse handoffs:{FOLDER}"));
    assert_eq!(
        context,
        json!({ "folder": "0001-failure/1", "tree": tree, "files": 0, "bytes": 0 })
    );
    env.assert_sound();
}

#[test]
fn the_same_failure_again_writes_nothing_even_if_the_work_went_on() {
    let env = held();
    write(&env.repo().join("work.txt"), "work\n");
    fail(&env, &["--snapshot"]).success();
    let tip = env.tip();
    write(&env.repo().join("work.txt"), "more work\n");
    fail(&env, &["--snapshot"])
        .success()
        .says("nothing was written");
    assert_eq!(env.tip(), tip);
}

#[test]
fn the_worktree_and_its_index_are_only_read() {
    let env = held();
    let repo = env.repo();
    base(&env, &repo);
    change(&env, &repo);
    // What git would take as a reason to write the index anew.
    write(&repo.join("same.txt"), "base of same.txt\n");
    let before = (
        walk(&repo),
        index_of(&env, &repo),
        env.git(&repo, &["for-each-ref", "refs/heads/main"]),
    );
    fail(&env, &["--snapshot"]).success();
    assert_eq!(
        before,
        (
            walk(&repo),
            index_of(&env, &repo),
            env.git(&repo, &["for-each-ref", "refs/heads/main"])
        )
    );
    assert!(!repo.join(".git/index.lock").exists());
}

#[test]
fn a_snapshot_can_be_browsed() {
    let env = held();
    let repo = env.repo();
    base(&env, &repo);
    change(&env, &repo);
    fail(&env, &["--snapshot"]).success();
    assert_eq!(stored(&env, "worktree/changed.txt"), "changed\n");
    assert_eq!(stored(&env, "worktree/both.txt"), "second\n");
    assert_eq!(stored(&env, "staged/both.txt"), "first\n");
    assert_eq!(stored(&env, "worktree/sub/%2egitattributes"), "* text\n");
    let manifest = stored_json(&env, "snapshot.json");
    let paths = |list: &str| -> Vec<String> {
        let files = manifest[list].as_array().unwrap().iter();
        files
            .map(|f| f["path"].as_str().or(f.as_str()).unwrap().to_owned())
            .collect()
    };
    let files = paths("files");
    assert!(files.contains(&"new/%ff%fe-name".to_owned()), "{files:?}");
    assert!(
        files.contains(&"new/two%0alines%09\"quoted\" 100%25".to_owned()),
        "{files:?}"
    );
    assert!(
        !files
            .iter()
            .any(|f| f.contains("ignored") || f.starts_with("build")),
        "{files:?}"
    );
    assert!(!files.contains(&"same.txt".to_owned()));
    assert_eq!(paths("removed"), ["cached.txt", "staged-gone.txt"]);
    assert_eq!(paths("intended"), ["intended.txt"]);
    let deleted = paths("deleted");
    assert_eq!(
        deleted,
        [
            "added-gone.txt",
            "deleted.txt",
            "folder-link",
            "from-folder/a",
            "from-folder/b",
            "gone/deep/er.txt",
            "staged-gone.txt",
            "to-folder"
        ]
    );
    let listed = env.git(&repo, &["ls-tree", "-r", &format!("handoffs:{FOLDER}")]);
    let modes: Vec<&str> = listed.lines().map(|line| &line[..6]).collect();
    assert!(
        ["100644", "100755", "120000"]
            .iter()
            .all(|m| modes.contains(m))
    );
}

#[test]
fn attached_files_are_kept_whatever_they_are_called() {
    let env = held();
    fs::create_dir(env.root().join("other")).unwrap();
    let one = env.file("build.log", "one\n");
    let two = env.file("other/build.log", [0, 255]);
    let hidden = env.file(".gitmodules", "[x]\n");
    let empty = env.file("empty", "");
    let script = env.file("run.sh", "#!/bin/sh\n");
    chmod(script.as_ref(), 0o755);
    symlink(&one, env.root().join("link.log")).unwrap();
    let link = env.root().join("link.log");
    let link = link.to_str().unwrap();
    let mut args = Vec::new();
    // The same name, as file systems compare them that compose accents.
    let (composed, other) = (env.file("é", "1"), env.file("e\u{301}", "2"));
    for file in [
        &one, &two, &hidden, &empty, &script, link, &composed, &other,
    ] {
        args.extend(["--attach", file]);
    }
    fail(&env, &args).success();
    env.assert_sound();
    let kept = stored_json(&env, "failure.json");
    let names: Vec<&str> = kept["attachments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "build.log",
            "2-build.log",
            "%252egitmodules",
            "empty",
            "run.sh",
            "link.log",
            "é",
            "2-e\u{301}"
        ]
    );
    assert_eq!(kept["attachments"][4]["mode"], "100755");
    let dir = env.root().join("out");
    env.handoff(&["restore", "87.1", "--attachments", dir.to_str().unwrap()])
        .success();
    assert_eq!(fs::read(dir.join("2-build.log")).unwrap(), [0, 255]);
    assert_eq!(fs::read(dir.join("link.log")).unwrap(), b"one\n");
}

#[test]
fn what_cannot_be_attached_is_named() {
    let env = held();
    fs::create_dir(env.root().join("folder")).unwrap();
    symlink("folder", env.root().join("to-folder")).unwrap();
    symlink("/dev/null", env.root().join("to-device")).unwrap();
    let _socket = UnixListener::bind(env.root().join("socket")).unwrap();
    let mut pipe = env.command("mkfifo");
    assert!(
        pipe.arg(env.root().join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let large = File::create(env.root().join("large.log")).unwrap();
    large.set_len(10 * 1024 * 1024 + 1).unwrap();
    for (name, why) in [
        ("folder", "it is a folder"),
        ("to-folder", "it is a folder"),
        ("to-device", "it is a device, a pipe or a socket"),
        ("socket", "it is a device, a pipe or a socket"),
        ("pipe", "it is a device, a pipe or a socket"),
        ("large.log", "it has 10485761 bytes; the limit is 10485760"),
    ] {
        let path = env.root().join(name);
        refuses(&env, &["--attach", path.to_str().unwrap()], 3, &[name, why]);
    }
    refuses(
        &env,
        &["--attach", "/dev/zero"],
        3,
        &["/dev/zero", "a device"],
    );
    refuses(
        &env,
        &["--attach", "no/such.log"],
        6,
        &["no/such.log", "no such file"],
    );
}

#[test]
fn what_a_snapshot_cannot_hold_is_named() {
    let env = held();
    let repo = env.repo();
    let say = "leave out --snapshot";
    let large = File::create(repo.join("core.dump")).unwrap();
    large.set_len(10 * 1024 * 1024 + 1).unwrap();
    let text = ["core.dump", "10485761 bytes", "exclude", say];
    refuses(&env, &["--snapshot"], 3, &text);
    fs::remove_file(repo.join("core.dump")).unwrap();

    for n in 0..11 {
        let file = File::create(repo.join(format!("part-{n}"))).unwrap();
        file.set_len(10 * 1024 * 1024 - n).unwrap();
    }
    refuses(
        &env,
        &["--snapshot"],
        3,
        &["104857600 bytes together", "part-0", say],
    );
    for n in 0..11 {
        fs::remove_file(repo.join(format!("part-{n}"))).unwrap();
    }

    for n in 0..=10_000 {
        write(&repo.join(format!("node_modules/{n}")), "");
    }
    let text = ["10001 files", "at most 10000", "node_modules", say];
    refuses(&env, &["--snapshot"], 3, &text);
    fs::remove_dir_all(repo.join("node_modules")).unwrap();

    let nested = |text: &str| {
        refuses(
            &env,
            &["--snapshot"],
            3,
            &[text, "a nested repository", say],
        )
    };
    env.git(&repo, &["init", "-q", "vendor/other"]);
    nested("vendor/other");
    env.git(
        &repo.join("vendor/other"),
        &["commit", "-q", "--allow-empty", "-m", "Start"],
    );
    nested("vendor/other");
    write(&repo.join("vendor/beside.txt"), "beside\n");
    nested("vendor/other");
    env.git(&repo, &["worktree", "add", "-q", "--detach", "linked"]);
    write(&repo.join(".git/info/exclude"), "vendor\n");
    nested("linked");
    env.git(&repo, &["worktree", "remove", "linked"]);
    fs::remove_dir_all(repo.join("vendor")).unwrap();

    fail(&env, &["--snapshot"]).success();
    env.assert_sound();
}

#[test]
fn a_bare_repository_has_no_work_to_keep() {
    let env = held();
    let bare = env.root().join("bare.git");
    env.git(env.root(), &["clone", "-q", "--bare", "repo", "bare.git"]);
    fail_in(&env, &bare, &["--snapshot", "--worker", "repo"])
        .exits(3)
        .says("a bare repository has no working tree")
        .says("leave out --snapshot");
    fail_in(&env, &bare, &["--worker", "repo"]).success();
}

#[test]
fn submodules_are_left_alone_until_they_differ() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    let module = env.root().join("module");
    env.git(env.root(), &["init", "-q", "module"]);
    env.git(&module, &["commit", "-q", "--allow-empty", "-m", "Start"]);
    let allow = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
    ];
    env.git(
        &repo,
        &[&allow[..], &[module.to_str().unwrap(), "sub"]].concat(),
    );
    env.git(&repo, &["commit", "-q", "-m", "Module"]);
    hold(&env);
    write(&repo.join("sub/new.txt"), "new\n");
    let text = [
        "submodule \"sub\" differs from HEAD",
        "leave out --snapshot",
    ];
    refuses(&env, &["--snapshot"], 3, &text);
    fs::remove_file(repo.join("sub/new.txt")).unwrap();
    env.git(
        &repo.join("sub"),
        &["commit", "-q", "--allow-empty", "-m", "More"],
    );
    refuses(&env, &["--snapshot"], 3, &text);
    env.git(&repo, &["add", "sub"]);
    refuses(&env, &["--snapshot"], 3, &text);
    env.git(&repo, &["reset", "-q"]);
    env.git(&repo.join("sub"), &["reset", "-q", "--hard", "HEAD~"]);
    write(&repo.join("work.txt"), "work\n");
    fail(&env, &["--snapshot"]).success();
    let restored = restore(&env, "restored");
    assert_eq!(git_state(&env, &restored), git_state(&env, &repo));
}

#[test]
fn an_index_of_another_form_is_read_and_a_damaged_one_refused() {
    for form in [
        &["update-index", "--split-index"][..],
        &["sparse-checkout", "init", "--cone", "--sparse-index"],
    ] {
        let env = held();
        let repo = env.repo();
        write(&repo.join("folder/file"), "committed\n");
        env.git(&repo, &["add", "."]);
        env.git(&repo, &["commit", "-q", "-m", "Folder"]);
        env.git(&repo, form);
        write(&repo.join("work.txt"), "work\n");
        write(&repo.join("staged.txt"), "staged\n");
        env.git(&repo, &["add", "staged.txt"]);
        let index = fs::read(repo.join(".git/index")).unwrap();
        fail(&env, &["--snapshot"]).success();
        assert_eq!(fs::read(repo.join(".git/index")).unwrap(), index);
        let restored = restore(&env, "restored");
        let states = [&restored, &repo].map(|dir| env.git(dir, &["status", "--porcelain"]));
        assert_eq!(states[0], states[1]);
    }
    let env = held();
    let index = env.repo().join(".git/index");
    let whole = fs::read(&index).unwrap();
    fs::write(&index, "not an index at all, and longer than its checksum").unwrap();
    refuses(
        &env,
        &["--snapshot"],
        3,
        &["index cannot be read", "git status"],
    );
    fs::write(&index, whole).unwrap();
    fail(&env, &["--snapshot"]).success();
}

#[test]
fn what_the_protocol_refuses_keeps_nothing() {
    let env = held();
    write(&env.repo().join("work.txt"), "work\n");
    let objects = || env.git(&env.repo(), &["count-objects"]);
    let before = objects();
    let args = [
        "fail",
        "87.1",
        "--as",
        "fixer-agent",
        "--message",
        "no",
        "--snapshot",
    ];
    env.handoff(&args).exits(4);
    let args = [
        "fail",
        "87.2",
        "--as",
        AGENT,
        "--message",
        "no",
        "--snapshot",
    ];
    env.handoff(&args).exits(6);
    assert_eq!(objects(), before);
}

#[test]
fn the_next_claim_is_shown_all_of_it() {
    let env = held();
    write(&env.repo().join("work.txt"), "work\n");
    let long = "x".repeat(99) + "\n";
    let log = env.file("build.log", long.repeat(100) + "the last line\n");
    let image = env.file("screen.png", [0, 1, 2]);
    fail(&env, &["--snapshot", "--attach", &log, "--attach", &image]).success();
    let shown = env.handoff(&["show", "87.1"]).success();
    shown
        .says(&format!("kept in {FOLDER}, with 3 files"))
        .says("git handoff restore 87.1");
    env.handoff(&["retry", "87.1", "--as", "orchestrator", "--reason", "again"])
        .success();
    env.wait_minutes(24 * 60);
    let args = ["claim", "87.1", "--as", AGENT];
    let text = env.handoff(&args).success();
    text.says("FAILED: out of time")
        .says("attempt 1 failed")
        .says("on branch main at")
        .says("attached build.log, 10014 bytes, the last 4014 of them:")
        .says("    | the last line\n")
        .says("attached screen.png, 3 bytes, not text")
        .says("work.txt (5 bytes)")
        .says("restore it: git handoff restore 87.1 --attempt 1 --worktree DIR");
}

#[test]
fn the_next_claim_tells_programs_too() {
    let env = held();
    write(&env.repo().join("work.txt"), "work\n");
    fail(&env, &["--snapshot"]).success();
    env.handoff(&["retry", "87.1", "--as", "orchestrator", "--reason", "again"])
        .success();
    env.wait_minutes(24 * 60);
    let data = env.data(&["claim", "87.1", "--as", AGENT]);
    let failure = &data["failures"][0];
    assert_eq!(failure["attempt"], 1);
    assert_eq!(failure["error"]["message"], "out of time");
    assert_eq!(failure["kept"]["path"], FOLDER);
    assert_eq!(failure["kept"]["snapshot"]["files"][0]["path"], "work.txt");
    assert_eq!(
        failure["kept"]["restore"],
        "git handoff restore 87.1 --attempt 1 --worktree DIR"
    );
}

/// Replaces the newest commit by one in which a tree was edited.
fn tamper(env: &TestEnvironment, index: &[&[&str]]) {
    let repo = env.repo();
    let run = |args: &[&str]| {
        let mut command = env.command("git");
        command
            .args(args)
            .env("GIT_INDEX_FILE", env.root().join("tampered-index"));
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    run(&["read-tree", "handoffs"]);
    for args in index {
        run(args);
    }
    let tree = run(&["write-tree"]);
    let commit = env.git(&repo, &["cat-file", "commit", "handoffs"]);
    let old = commit.lines().next().unwrap();
    let file = env.file(
        "tampered-commit",
        commit.replace(old, &format!("tree {tree}")),
    );
    let commit = run(&["hash-object", "-t", "commit", "-w", &file]);
    run(&["update-ref", "refs/heads/handoffs", &commit]);
}

#[test]
fn a_tampered_folder_is_found() {
    let env = held();
    write(&env.repo().join("work.txt"), "work\n");
    fail(&env, &["--snapshot"]).success();
    env.assert_sound();
    let tip = env.tip();
    let evil = env.file("evil", "evil\n");
    let blob = env.git(&env.repo(), &["hash-object", "-w", &evil]);
    let path = format!("{FOLDER}/worktree/work.txt");
    let entry = format!("100644,{},{path}", blob.trim());
    tamper(&env, &[&["update-index", "--cacheinfo", &entry]]);
    env.handoff(&["verify"])
        .exits(10)
        .says("failure.altered")
        .says(FOLDER);
    // It is the tree of the record that is restored.
    let dir = restore(&env, "restored");
    assert_eq!(fs::read(dir.join("work.txt")).unwrap(), b"work\n");

    env.git(&env.repo(), &["update-ref", "refs/heads/handoffs", &tip]);
    let everything = format!("{FOLDER}/worktree/work.txt");
    tamper(&env, &[&["update-index", "--force-remove", &everything]]);
    env.handoff(&["verify"]).exits(10).says("failure.altered");

    env.git(&env.repo(), &["update-ref", "refs/heads/handoffs", &tip]);
    let entry = format!("100644,{},issues/87/00/87/0001-failure/2/x", blob.trim());
    tamper(&env, &[&["update-index", "--add", "--cacheinfo", &entry]]);
    env.handoff(&["verify"])
        .exits(10)
        .says("file.stray")
        .says("0001-failure/2");
}

/// Writes a folder of a failure with a manifest of one's own, and a record that
/// names it.
fn forge(env: &TestEnvironment, edit: impl Fn(&mut Value), files: &[(&str, &str, &str)]) {
    let mut manifest = stored_json(env, "snapshot.json");
    edit(&mut manifest);
    let manifest = env.file("manifest", serde_json::to_string(&manifest).unwrap());
    let hash = |file: &str| {
        env.git(&env.repo(), &["hash-object", "-w", file])
            .trim()
            .to_owned()
    };
    let mut cache = vec![format!("100644,{},{FOLDER}/snapshot.json", hash(&manifest))];
    for (mode, path, bytes) in files {
        let file = env.file("forged", bytes);
        cache.push(format!("{mode},{},{FOLDER}/{path}", hash(&file)));
    }
    let add: Vec<[&str; 4]> = cache
        .iter()
        .map(|entry| ["update-index", "--add", "--cacheinfo", entry.as_str()])
        .collect();
    let add: Vec<&[&str]> = add.iter().map(|args| &args[..]).collect();
    let old = env.git(&env.repo(), &["rev-parse", &format!("handoffs:{FOLDER}")]);
    tamper(env, &add);
    let new = env.git(&env.repo(), &["rev-parse", &format!("handoffs:{FOLDER}")]);
    let record = "issues/87/00/87/0001.json";
    let text = env.git(
        &env.repo(),
        &["cat-file", "blob", &format!("handoffs:{record}")],
    );
    let text = env.file("record", text.replace(old.trim(), new.trim()));
    let entry = format!("100644,{},{record}", hash(&text));
    tamper(env, &[&["update-index", "--cacheinfo", &entry]]);
}

#[test]
fn a_forged_snapshot_writes_nothing_outside_its_folder() {
    let blob = |env: &TestEnvironment, text: &str| {
        let file = env.file("blob", text);
        env.git(&env.repo(), &["hash-object", "-w", &file])
            .trim()
            .to_owned()
    };
    let file = |blob: &str, path: &str, stored: &str, mode: &str| json!({"path": path, "mode": mode, "bytes": 5, "blob": blob, "stored": stored});
    let env = held();
    write(&env.repo().join("work.txt"), "work\n");
    fail(&env, &["--snapshot"]).success();
    let dir = env.root().join("restored");
    let args = ["restore", "87.1", "--worktree", dir.to_str().unwrap()];
    let evil = blob(&env, "evil\n");
    for path in [
        "../escaped",
        "/tmp/escaped-handoff",
        "a/../../escaped",
        ".git/hooks/x",
        "a/.GIT/x",
        "git~1",
        "GIT~1/config",
        ".git.",
        ".git::$INDEX_ALLOCATION",
        ".g\u{200c}it",
        "",
        "a//b",
    ] {
        let forged = json!([file(&evil, path, "worktree/evil", "100644")]);
        forge(
            &env,
            |m| {
                m["files"] = forged.clone();
                m["deleted"] = json!([]);
            },
            &[("100644", "worktree/evil", "evil\n")],
        );
        env.handoff(&args).exits(10).says("leads out of the folder");
        assert!(
            !dir.exists() && !env.root().join("escaped").exists(),
            "{path:?}"
        );
        forge(
            &env,
            |m| {
                m["files"] = json!([]);
                m["deleted"] = json!([path]);
            },
            &[],
        );
        env.handoff(&args).exits(10).says("leads out of the folder");
    }
    // A link that is put in the way of the file after it.
    fs::create_dir(env.root().join("target")).unwrap();
    let target = env.root().join("target");
    let target = target.to_str().unwrap();
    let link = blob(&env, target);
    forge(
        &env,
        |m| {
            m["files"] = json!([
                file(&link, "a", "worktree/link", "120000"),
                file(&evil, "a/evil", "worktree/evil", "100644"),
            ]);
            m["deleted"] = json!([]);
        },
        &[
            ("120000", "worktree/link", target),
            ("100644", "worktree/evil", "evil\n"),
        ],
    );
    env.handoff(&args).exits(10).says("through a link");
    assert_eq!(fs::read_dir(target).unwrap().count(), 0);
    // What lies half restored is refused, and another place is not.
    env.handoff(&args).exits(5).says("already exists");
    // A manifest that names another object than the one beside it.
    forge(
        &env,
        |m| m["files"] = json!([file(&evil, "a", "worktree/work.txt", "100644")]),
        &[],
    );
    let other = env.root().join("other");
    let args = ["restore", "87.1", "--worktree", other.to_str().unwrap()];
    env.handoff(&args)
        .exits(10)
        .says("is not what was recorded");
    assert!(!other.exists());
}

#[test]
fn secrets_in_attached_files_do_not_enter() {
    let env = held();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let log = env.file("build.log", format!("fetching\ntoken: {secret}\n"));
    let objects = || env.git(&env.repo(), &["count-objects", "-v"]);
    let before = (env.tip(), objects());
    let ran = fail(&env, &["--attach", &log]).exits(3).says("build.log");
    assert!(!ran.shown.contains(&secret), "{}", ran.shown);
    assert_eq!((env.tip(), objects()), before);
    fail(&env, &["--attach", &log, "--allow-secret", "github-pat"]).success();
    let allowed =
        env.data(&["show", "87.1"])["record"]["transitions"][2]["allowed_secrets"].clone();
    assert_eq!(allowed[0]["rule"], "github-pat");
    env.assert_sound();
}

/// A summary drops what is not seen; a name is kept like what is in the file.
#[test]
fn split_secrets_and_those_in_names_do_not_enter() {
    let env = held();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let before = env.tip();
    let split = format!("see {}\u{200b}{}", &secret[..9], &secret[9..]);
    for option in ["--message", "--details"] {
        let args = [
            "fail",
            "87.1",
            "--as",
            "prep-agent",
            option,
            &split,
            "--message",
            "x",
        ];
        let count = if option == "--message" { 6 } else { 8 };
        env.handoff(&args[..count]).exits(3).says("github-pat");
    }
    let named = env.file(&format!("{secret}.log"), "nothing\n");
    let ran = fail(&env, &["--attach", &named])
        .exits(3)
        .says("github-pat");
    assert!(!ran.stderr.contains(&secret), "{}", ran.stderr);
    fs::write(env.repo().join(format!("{secret}.txt")), "half done\n").unwrap();
    let ran = fail(&env, &["--snapshot"]).exits(3).says("github-pat");
    assert!(!ran.shown.contains(&secret), "{}", ran.shown);
    assert_eq!(env.tip(), before);
}

#[test]
fn secrets_in_unfinished_work_do_not_enter() {
    let env = held();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    fs::write(env.repo().join("deploy.env"), format!("TOKEN={secret}\n")).unwrap();
    fs::write(env.repo().join("work.txt"), "half done\n").unwrap();
    let objects = || env.git(&env.repo(), &["count-objects", "-v"]);
    let before = (env.tip(), objects());
    let ran = fail(&env, &["--snapshot"]).exits(3).says("deploy.env");
    assert!(!ran.shown.contains(&secret), "{}", ran.shown);
    assert_eq!((env.tip(), objects()), before);
    // What is staged, and taken out of the file again, would be kept as well.
    env.git(&env.repo(), &["add", "deploy.env"]);
    fs::write(env.repo().join("deploy.env"), "TOKEN=\n").unwrap();
    fail(&env, &["--snapshot"]).exits(3).says("deploy.env");
    let release = [
        "release",
        "87.1",
        "--as",
        AGENT,
        "--reason",
        "full",
        "--snapshot",
    ];
    env.handoff(&release).exits(3).says("deploy.env");
    assert_eq!(env.tip(), before.0);
    fail(
        &env,
        &["--snapshot", "--allow-secret", "github-pat@deploy.env"],
    )
    .success();
    let transitions = env.data(&["show", "87.1"])["record"]["transitions"].clone();
    let failed = transitions.as_array().unwrap().last().unwrap();
    assert_eq!(failed["allowed_secrets"][0]["rule"], "github-pat");
    env.assert_sound();
}

#[cfg(feature = "exchange")]
#[test]
fn what_was_kept_goes_out_and_comes_in_with_the_ledger() {
    let env = held();
    base(&env, &env.repo());
    change(&env, &env.repo());
    fail(&env, &["--snapshot"]).success();
    let out = env.root().join("out");
    let out = out.to_str().unwrap();
    env.handoff(&["export", "--format", "files", out]).success();
    env.git(env.root(), &["init", "-q", "other"]);
    let other = env.root().join("other");
    env.handoff_in(&other, &["init"]).success();
    env.handoff_in(&other, &["import", out]).success();
    let issues = |dir: &std::path::Path| env.git(dir, &["rev-parse", "handoffs:issues"]);
    assert_eq!(issues(&other), issues(&env.repo()));
    env.handoff_in(&other, &["verify"]).success();
    assert_eq!(
        env.git_any(&other, &["fsck", "--strict", "--no-dangling"])
            .status,
        0
    );

    // Bytes that are not those of their name come in nowhere.
    let id = env.git(
        &env.repo(),
        &[
            "rev-parse",
            &format!("handoffs:{FOLDER}/worktree/changed.txt"),
        ],
    );
    let (start, rest) = id.trim().split_at(2);
    let object = format!("{out}/shared/objects/{start}/{rest}");
    let import = |says: &str| {
        let third = env.root().join("third");
        env.git(env.root(), &["init", "-q", "third"]);
        env.handoff_in(&third, &["init"]).success();
        env.handoff_in(&third, &["import", out]).exits(3).says(says);
        env.handoff_in(&third, &["verify"]).success();
        assert_eq!(
            env.git_any(&third, &["fsck", "--strict", "--no-dangling"])
                .status,
            0
        );
        fs::remove_dir_all(third).unwrap();
    };
    fs::write(&object, "evil\n").unwrap();
    import("is another object");
    fs::remove_file(&object).unwrap();
    import("is not there");
}

#[test]
fn a_worktree_that_is_written_to_is_kept_whole_or_refused() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let env = held();
    base(&env, &env.repo());
    let repo = env.repo();
    let done = AtomicBool::new(false);
    // A fault must end the writer too.
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    // What a build writes: each version of a file replaces the one before. Some are as long as what
    // is committed, so that they have to be hashed to be told from it.
    let version = |n: usize| format!("version {n:011}\n").repeat(1 + n % 7);
    assert_eq!(version(7).len(), "base of changed.txt\n".len());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !done.load(Ordering::Relaxed) {
                n += 1;
                let new = repo.join("build/new");
                write(&new, version(n));
                fs::rename(&new, repo.join(["changed.txt", "out.txt"][n % 2])).unwrap();
                let _ = fs::remove_file(repo.join(format!("part-{}", n.wrapping_sub(3))));
                write(&repo.join(format!("part-{n}")), "part\n");
            }
        });
        let ends = Ends(&done);
        let mut ended = Vec::new();
        for round in 0..8 {
            if round > 0 {
                let issue = 100 + round;
                env.send(opening(issue)).success();
                env.claim(&format!("{issue}.1"), AGENT).success();
            }
            let id = if round == 0 {
                "87.1".to_owned()
            } else {
                format!("{}.1", 100 + round)
            };
            let args = ["fail", &id, "--as", AGENT, "--message", "x", "--snapshot"];
            let ran = env.handoff(&args);
            match ran.status {
                0 => {}
                3 => drop(
                    ran.says("changes while it is read")
                        .says("nothing was written"),
                ),
                _ => panic!("{}", ran.shown),
            }
            ended.push(id);
        }
        drop(ends);
        // Whatever was kept is one version of each file; what was refused can be kept now.
        for id in ended {
            let dir = env.root().join(&id);
            let args = ["fail", &id, "--as", AGENT, "--message", "x", "--snapshot"];
            env.handoff(&args).success();
            let args = ["restore", &id, "--worktree", dir.to_str().unwrap()];
            env.handoff(&args).success();
            for name in ["changed.txt", "out.txt"] {
                let Ok(text) = fs::read_to_string(dir.join(name)) else {
                    continue;
                };
                let number = text
                    .lines()
                    .next()
                    .and_then(|line| line.strip_prefix("version "));
                match number {
                    Some(number) => assert_eq!(text, version(number.parse().unwrap())),
                    None => assert_eq!(text, "base of changed.txt\n"),
                }
            }
        }
    });
    env.assert_sound();
}

#[test]
fn uncommitted_files_that_are_not_kept_are_counted() {
    let kept = "not kept";
    let env = held();
    write(&env.repo().join("sub/new.txt"), b"new");
    fail(&env, &[])
        .success()
        .says("1 uncommitted file was not kept, only here: `fail --snapshot` keeps such files");
    env.handoff(&["restore", "87.1", "--attempt", "1"])
        .success()
        .says("nothing of the work was kept: `fail` keeps it with --snapshot");
    let env = held();
    assert!(!fail(&env, &[]).success().shown.contains(kept));
    let env = held();
    write(&env.repo().join("new.txt"), b"new");
    write(&env.repo().join("other.txt"), b"other");
    assert!(!fail(&env, &["--snapshot"]).success().shown.contains(kept));
    let restored = env.handoff(&["restore", "87.1"]).success();
    assert!(
        !restored.shown.contains("nothing of the work"),
        "{}",
        restored.shown
    );
    let env = held();
    write(&env.repo().join("new.txt"), b"new");
    write(&env.repo().join("other.txt"), b"other");
    fail(&env, &[])
        .success()
        .says("2 uncommitted files were not kept");
}

#[test]
fn a_snapshot_is_of_the_working_tree_of_its_worker() {
    let env = held();
    let (repo, linked) = (env.repo(), env.root().join("linked"));
    let path = linked.to_str().unwrap();
    env.git(&repo, &["worktree", "add", "-q", "--detach", path]);
    write(&linked.join("here.txt"), "1\n");
    let own = repo.join(".git/worktrees/linked/handoff");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("worker"), "tree-1\n").unwrap();
    let take = [
        "claim",
        "87.1",
        "--as",
        AGENT,
        "--take-over",
        "--reason",
        "moved",
    ];
    let mut claim = env.program(&take);
    claim.current_dir(&linked).env_remove("GIT_HANDOFF_WORKER");
    env.run(claim, &take, None).success();
    fail_in(&env, &repo, &["--snapshot", "--worker", "tree-1"])
        .exits(2)
        .says("--snapshot would keep those of this working tree")
        .says("/linked handoff fail 87.1 --snapshot");
    fail_in(&env, &linked, &["--snapshot", "--worker", "tree-1"]).success();
    env.assert_sound();
}
