//! What belongs to the user is never touched: working tree, index, HEAD, other
//! refs; and a reading command touches nothing at all.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use test_support::contracts::{Format, implementer_error, opening, prepared};
use test_support::files::script;
use test_support::{TestEnvironment, repository_kind};

/// Files by path: mode, time and bytes.
type Files = BTreeMap<PathBuf, (u32, i64, Vec<u8>)>;

/// Every file under a folder, but not what `leave` names.
fn files(dir: &Path, leave: &dyn Fn(&Path) -> bool) -> Files {
    let mut found = Files::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if leave(path.strip_prefix(dir).unwrap()) {
                continue;
            }
            let bytes = match meta.file_type() {
                kind if kind.is_dir() => {
                    dirs.push(path.clone());
                    Vec::new()
                }
                kind if kind.is_symlink() => fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes(),
                _ => fs::read(&path).unwrap(),
            };
            // A folder's time changes with what is written beneath it.
            let time = if meta.is_dir() {
                0
            } else {
                meta.mtime() * 1_000_000_000 + meta.mtime_nsec()
            };
            let path = path.strip_prefix(dir).unwrap().to_owned();
            found.insert(path, (meta.mode(), time, bytes));
        }
    }
    found
}

/// What a write may change in the git directory.
fn is_the_ledgers(path: &Path) -> bool {
    let owned = [
        "objects",
        "handoff",
        "refs/heads/handoffs",
        "logs/refs/heads/handoffs",
    ];
    // Refs in tables are compared one by one.
    owned.iter().any(|own| path.starts_with(own))
        || repository_kind::is_reftable() && path.starts_with("reftable")
}

/// The user's side of a repository.
#[derive(PartialEq, Eq, Debug)]
struct Users {
    tree: Files,
    git: Files,
    refs: String,
    status: String,
}

/// One shape of repository, and where commands run in it.
struct Place {
    name: &'static str,
    env: TestEnvironment,
    here: PathBuf,
    worktree: Option<PathBuf>,
    git_dir: PathBuf,
}

impl Place {
    fn new(name: &'static str) -> Self {
        let env = TestEnvironment::with_repository();
        let repo = env.repo();
        let mut place = Self {
            name,
            here: repo.clone(),
            worktree: Some(repo.clone()),
            git_dir: repo.join(".git"),
            env,
        };
        match name {
            "bare" => {
                let bare = place.env.root().join("bare.git");
                place.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
                (place.here, place.git_dir, place.worktree) = (bare.clone(), bare, None);
                return place;
            }
            "linked" => {
                let linked = place.env.root().join("linked");
                place.git(&[
                    "worktree",
                    "add",
                    "-q",
                    "-b",
                    "side",
                    linked.to_str().unwrap(),
                ]);
                (place.here, place.worktree) = (linked.clone(), Some(linked));
            }
            "unborn" => {
                fs::remove_dir_all(&repo).unwrap();
                place.env.git(place.env.root(), &["init", "-q", "repo"]);
            }
            _ => {}
        }
        place.make_dirty(name == "unborn");
        if name == "subfolder" {
            place.here = repo.join("src/deep");
        }
        place
    }

    fn git(&self, args: &[&str]) -> String {
        self.env.git(&self.here, args)
    }

    /// Every kind of change that a working tree can have.
    fn make_dirty(&self, unborn: bool) {
        let at = |name: &str| self.here.join(name);
        fs::create_dir_all(at("src/deep")).unwrap();
        for name in [
            "modified",
            "staged",
            "both",
            "deleted",
            "gone",
            "renamed",
            "mode",
            "src/deep/kept",
        ] {
            fs::write(at(name), format!("{name}\n")).unwrap();
        }
        fs::write(at(".gitignore"), "*.log\n").unwrap();
        self.git(&["add", "."]);
        if !unborn {
            self.git(&["commit", "-q", "-m", "Files"]);
            fs::write(at("modified"), "stashed\n").unwrap();
            self.git(&["stash", "-q"]);
            self.git(&["branch", "other"]);
            self.git(&["tag", "-a", "-m", "One", "v1"]);
            self.git(&["update-ref", "refs/notes/x", "HEAD"]);
            self.git(&["rm", "-q", "deleted"]);
            self.git(&["mv", "renamed", "moved"]);
        }
        fs::write(at("modified"), "changed\n").unwrap();
        fs::write(at("staged"), "staged anew\n").unwrap();
        fs::write(at("both"), "staged\n").unwrap();
        self.git(&["add", "staged", "both"]);
        fs::write(at("both"), "and changed\n").unwrap();
        fs::remove_file(at("gone")).unwrap();
        fs::write(at("untracked"), "new\n").unwrap();
        fs::write(at("ignored.log"), "x\n").unwrap();
        fs::write(at("intent"), "to add\n").unwrap();
        self.git(&["add", "-N", "intent"]);
        fs::set_permissions(at("mode"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("modified", at("link")).unwrap();
        // A time that differs from the index's: a refresh would show.
        let kept = fs::File::options()
            .write(true)
            .open(at("src/deep/kept"))
            .unwrap();
        kept.set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
    }

    fn users(&self) -> Users {
        let mut status = String::new();
        if let Some(worktree) = &self.worktree {
            let args = [
                "--no-optional-locks",
                "status",
                "--porcelain=v2",
                "--branch",
                "--show-stash",
                "--ignored",
            ];
            status = self.env.git(worktree, &args);
        }
        let refs = self.env.git_any(&self.git_dir, &["for-each-ref"]).stdout;
        let others = refs
            .lines()
            .filter(|line| !line.ends_with("refs/heads/handoffs"));
        let head = self.env.git_any(&self.git_dir, &["symbolic-ref", "HEAD"]);
        let logs = ["HEAD", "refs/heads/main", "refs/stash"].map(|name| {
            self.env
                .git_any(&self.git_dir, &["reflog", "show", name])
                .stdout
        });
        let mut git = files(&self.git_dir, &is_the_ledgers);
        // The folders above the branch and its log may be new.
        git.retain(|_, (mode, _, _)| *mode & 0o170_000 != 0o040_000);
        Users {
            git,
            tree: self
                .worktree
                .as_ref()
                .map(|tree| files(tree, &|p| p == Path::new(".git")))
                .unwrap_or_default(),
            refs: others
                .chain([&*head.stdout])
                .chain(logs.iter().map(|log| &**log))
                .collect(),
            status,
        }
    }

    /// Runs a command and compares the user's side before and after it.
    fn check(&self, args: &[&str], input: Option<&str>, reads: bool) {
        // Up to where an audit went is noted beside the repository's own files.
        let noted = |path: &Path| path.starts_with("handoff") && args.contains(&"verify");
        let everything = || files(&self.git_dir, &noted);
        let (before, all) = (self.users(), everything());
        let mut command = self.env.program(args);
        command.current_dir(&self.here);
        repository_kind::name_bare(&mut command, &self.here);
        let ran = self
            .env
            .run(command, args, input.map(str::as_bytes))
            .success();
        let now_all = everything();
        let now = self.users();
        let name = self.name;
        assert_eq!(now.status, before.status, "{name}: {}", ran.shown);
        assert_eq!(now.refs, before.refs, "{name}: {}", ran.shown);
        same(&before.tree, &now.tree, name, &ran.shown);
        same(&before.git, &now.git, name, &ran.shown);
        if reads {
            same(&all, &now_all, name, &ran.shown);
        } else {
            assert_ne!(all, now_all, "{name}: nothing was written by {}", ran.shown);
        }
    }
}

#[track_caller]
fn same(before: &Files, after: &Files, name: &str, shown: &str) {
    for path in before.keys().chain(after.keys()) {
        let path_shown = path.display();
        assert_eq!(
            before.get(path),
            after.get(path),
            "{name}: {path_shown} changed by {shown}"
        );
    }
}

fn commands_leave_everything_alone(name: &'static str) {
    let place = Place::new(name);
    let write = |args: &[&str]| place.check(args, None, false);
    let send = |contract: &str| place.check(&["send", "-"], Some(contract), false);
    let read = |args: &[&str]| place.check(args, None, true);
    let error = implementer_error(Format::Xml, 87);
    let contract = place.env.file("contract.xml", opening(87));

    read(&["check", &contract]);
    write(&["init"]);
    read(&["init"]);
    send(&opening(87));
    write(&["claim", "87.1", "--as", "prep-agent"]);
    write(&["block", "87.1", "--as", "prep-agent", "--reason", "which?"]);
    write(&["answer", "87.1", "that", "--as", "issue-manager"]);
    write(&["claim", "--next", "--as", "prep-agent"]);
    send(&prepared(87));
    write(&["claim", "87", "--as", "implementer-agent"]);
    send(&error);
    write(&["retry", "87.2", "--as", "orchestrator"]);
    write(&["claim", "87.2", "--as", "implementer-agent"]);
    write(&[
        "fail",
        "87.2",
        "--as",
        "implementer-agent",
        "--message",
        "x",
    ]);
    write(&["cancel", "87.2", "--as", "prep-agent"]);
    write(&["reject", "87.3", "--as", "orchestrator", "--reason", "x"]);
    send(&opening(88));
    write(&["claim", "88", "--as", "prep-agent"]);
    write(&["complete", "88.1", "--as", "prep-agent"]);

    for args in [
        &["status"][..],
        &["status", "87", "--json"],
        &["show", "87.2"],
        &["show", "87.2", "--contract"],
        &["context", "87"],
        &["inbox", "--as", "prep-agent"],
        &["list"],
        &["list", "--state", "pending"],
        &["log"],
        &["log", "87"],
        &["verify"],
        &[
            "new",
            "--issue",
            "87",
            "--from",
            "reviewer-agent",
            "--to",
            "fixer-agent",
        ],
        &[
            "new",
            "--issue",
            "87",
            "--from",
            "fixer-agent",
            "--to",
            "reviewer-agent",
            "--format",
            "json",
        ],
        &["check", &contract],
    ] {
        read(args);
    }
    // A repeated request reads, but for the queue's lock file.
    let all = files(&place.git_dir, &|_| false);
    place
        .env
        .handoff_in(&place.here, &["send", &contract])
        .success()
        .says("nothing was written");
    same(
        &all,
        &files(&place.git_dir, &|_| false),
        name,
        "a repeated send",
    );
    place.env.handoff_in(&place.here, &["verify"]).success();
}

#[test]
fn in_a_normal_repository() {
    commands_leave_everything_alone("normal");
}

#[test]
fn in_a_bare_repository() {
    commands_leave_everything_alone("bare");
}

#[test]
fn in_a_linked_worktree() {
    commands_leave_everything_alone("linked");
}

#[test]
fn in_a_subfolder() {
    commands_leave_everything_alone("subfolder");
}

#[test]
fn in_a_repository_without_commits() {
    commands_leave_everything_alone("unborn");
}

#[test]
fn a_head_that_would_start_the_ledgers_branch() {
    let env = TestEnvironment::with_repository();
    let head = ["symbolic-ref", "HEAD", "refs/heads/handoffs"];
    env.git(&env.repo(), &head);
    let hint = "symbolic-ref HEAD refs/heads/main`";
    env.handoff(&["init"]).exits(9).says(hint);
    let main = ["symbolic-ref", "HEAD", "refs/heads/main"];
    env.git(&env.repo(), &main);
    env.handoff(&["init"]).success();
}

/// A write is refused, names the folder, and changes nothing.
fn refused(env: &TestEnvironment, checked_out: &Path) {
    let tip = env.tip();
    let folder = checked_out.to_str().unwrap();
    let hint = format!(
        "git -C {} checkout --detach",
        handoff::base::text::word(folder)
    );
    let claim = ["claim", "87.1", "--as", "prep-agent"];
    for ran in [
        env.send(opening(88)),
        env.handoff(&claim),
        env.handoff_in(checked_out, &claim),
    ] {
        assert!(ran.stderr.contains(&hint), "{}", ran.shown);
        ran.exits(9).says("is checked out at");
    }
    let doctor = env.handoff(&["doctor"]).exits(1);
    assert!(doctor.stdout.contains(&hint), "{}", doctor.shown);
    assert_eq!(env.tip(), tip);
}

#[test]
fn no_write_under_a_checked_out_ledger() {
    for linked in [false, true] {
        let env = TestEnvironment::with_ledger();
        env.send(opening(87)).success();
        let folder = if linked {
            let folder = env.root().join("ledger tree");
            env.git(
                &env.repo(),
                &[
                    "worktree",
                    "add",
                    "-q",
                    folder.to_str().unwrap(),
                    "handoffs",
                ],
            );
            folder
        } else {
            env.git(&env.repo(), &["checkout", "-q", "handoffs"]);
            env.repo()
        };
        refused(&env, &folder);
        // Reading goes on, and a commit there undoes nothing.
        env.handoff(&["status"]).success().says("1 pending");
        env.git(&folder, &["commit", "-q", "--allow-empty", "-m", "By hand"]);
        let kept = env.git(&env.repo(), &["diff", "--stat", "handoffs~1", "handoffs"]);
        assert_eq!(kept, "");
        env.git(&folder, &["reset", "-q", "--hard", "HEAD~1"]);
        // What the hint says helps.
        env.git(&folder, &["checkout", "-q", "--detach"]);
        env.claim("87.1", "prep-agent").success();
        env.git(&folder, &["commit", "-q", "--allow-empty", "-m", "By hand"]);
        env.assert_sound();
    }
}

#[test]
fn no_ledger_on_the_branch_that_a_new_repository_is_about_to_start() {
    let env = TestEnvironment::new();
    env.git(env.root(), &["init", "-q", "-b", "handoffs", "repo"]);
    env.handoff(&["init"]).exits(9).says("is checked out at");
    env.handoff(&["init", "--branch", "ledger"]).success();
    env.send(opening(87)).success().says("87.1 issue-manager");
    let refs = env.git(&env.repo(), &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/ledger\n");
}

#[test]
fn a_worktree_that_is_gone_is_in_no_ones_way() {
    let env = TestEnvironment::with_ledger();
    let folder = env.root().join("gone");
    env.git(
        &env.repo(),
        &[
            "worktree",
            "add",
            "-q",
            folder.to_str().unwrap(),
            "handoffs",
        ],
    );
    fs::remove_dir_all(&folder).unwrap();
    env.send(opening(87)).success();
}

fn hook(git_dir: &Path, name: &str, body: &str) {
    let path = git_dir.join("hooks").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    script(&path, format!("#!/bin/sh\n{body}\n"));
}

#[test]
fn a_commit_whose_hook_sends_is_the_users_alone() {
    for linked in [false, true] {
        let env = TestEnvironment::with_ledger();
        let mut folder = env.repo();
        if linked {
            folder = env.root().join("linked");
            env.git(
                &env.repo(),
                &[
                    "worktree",
                    "add",
                    "-q",
                    "-b",
                    "side",
                    folder.to_str().unwrap(),
                ],
            );
        }
        let body = "env | grep ^GIT_ > $HOME/environment\nexec git handoff send $HOME/contract.xml";
        hook(&env.repo().join(".git"), "pre-commit", body);
        fs::write(env.root().join("home/contract.xml"), opening(87)).unwrap();
        fs::write(folder.join("a"), "a\n").unwrap();
        fs::write(folder.join("b"), "b\n").unwrap();
        env.git(&folder, &["add", "a", "b"]);
        // A partial commit runs its hook under another index.
        env.git(&folder, &["commit", "-q", "-m", "Only a", "--", "a"]);
        let seen = fs::read_to_string(env.root().join("home/environment")).unwrap();
        assert!(seen.contains("GIT_INDEX_FILE="), "{seen}");
        let shown = env.git(&folder, &["show", "--name-only", "--format=%s", "HEAD"]);
        assert_eq!(shown, "Only a\n\na\n");
        assert_eq!(env.git(&folder, &["status", "--porcelain"]), "A  b\n");
        let listed = env.handoff(&["list"]).success();
        assert!(
            listed.stdout.starts_with("87.1  pending"),
            "{}",
            listed.shown
        );
        env.assert_sound();
    }
}

#[test]
fn the_repository_that_git_names_is_the_one() {
    let env = TestEnvironment::with_ledger();
    let elsewhere = env.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let index = env.root().join("other-index");
    let args = ["send", "-"];
    let mut command = env.program(&args);
    command
        .current_dir(&elsewhere)
        .env("GIT_DIR", env.repo().join(".git"))
        .env("GIT_WORK_TREE", &elsewhere)
        .env("GIT_INDEX_FILE", &index);
    env.run(command, &args, Some(opening(87).as_bytes()))
        .success();
    assert!(!index.exists());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    env.handoff(&["status", "87"]).success();
}

#[test]
fn nothing_is_written_while_a_push_is_received() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let bare = env.root().join("bare.git");
    env.git(
        &env.repo(),
        &["clone", "-q", "--bare", ".", bare.to_str().unwrap()],
    );
    let body =
        "git handoff claim 87.1 --as prep-agent > $HOME/said 2>&1\necho $? >> $HOME/said\nexit 0";
    hook(&bare, "pre-receive", body);
    let tip = env.git(&bare, &["rev-parse", "handoffs"]);
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "More"],
    );
    env.git(&env.repo(), &["push", "-q", bare.to_str().unwrap(), "main"]);
    let said = fs::read_to_string(env.root().join("home/said")).unwrap();
    insta::assert_snapshot!(said, @"
    error: objects are in quarantine here (a push is being received, or GIT_OBJECT_DIRECTORY is set), and the ledger's could be lost
    hint: see `git handoff explain quarantine`
    9
    ");
    assert_eq!(env.git(&bare, &["rev-parse", "handoffs"]), tip);
    // A hook that reads is welcome, and sees what is being pushed.
    hook(
        &bare,
        "pre-receive",
        "git handoff verify > $HOME/said 2>&1 || exit 1",
    );
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "More"],
    );
    env.git(&env.repo(), &["push", "-q", bare.to_str().unwrap(), "main"]);
    let said = fs::read_to_string(env.root().join("home/said")).unwrap();
    assert!(said.starts_with("the ledger is sound"), "{said}");
    let args = ["claim", "87.1", "--as", "prep-agent"];
    env.handoff_in(&bare, &args).success();
}

#[test]
fn no_write_under_a_rebase_of_the_ledger() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let other = env.root().join("other");
    env.git(
        &env.repo(),
        &["worktree", "add", "-q", other.to_str().unwrap(), "handoffs"],
    );
    let mut rebase = env.command("git");
    rebase
        .current_dir(&other)
        .env("GIT_SEQUENCE_EDITOR", "sed -i s/pick/edit/");
    rebase.args(["rebase", "-q", "-i", "HEAD~1"]);
    assert!(rebase.output().unwrap().status.success());
    // HEAD is detached now, and the branch is set when the rebase ends.
    env.claim("87", "prep-agent").exits(9).says("other");
    env.git(&other, &["rebase", "--abort"]);
    env.claim("87", "prep-agent").exits(9);
    env.git(
        &env.repo(),
        &["worktree", "remove", "--force", other.to_str().unwrap()],
    );
    env.claim("87", "prep-agent").success();
    env.assert_sound();
}
