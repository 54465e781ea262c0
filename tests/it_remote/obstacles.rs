//! A disk that is full, a repository that may only be read, and locks that were
//! left over: each is told, nothing is half-written, and once it is gone the same
//! command works.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::killing::{Bystanders, unfinished};
use serde_json::Value;
use test_support::contracts::opening;
use test_support::failure::AGENT;
use test_support::proof::times;
use test_support::repository_kind::{is_reftable, lock_of};
use test_support::{Ran, TestEnvironment};

/// A ledger in which each of the [commands] has something to do.
fn busy() -> TestEnvironment {
    TestEnvironment::prepared("busy", made_busy)
}

fn made_busy() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    unfinished(&env);
    env.file("build.log", "line\n".repeat(100));
    env.file("contract.xml", opening(1));
    for issue in 2..=6 {
        env.send(opening(issue)).success();
    }
    for issue in 3..=5 {
        env.claim(&format!("{issue}.1"), AGENT).success();
    }
    let fail = ["fail", "5.1", "--as", AGENT, "--message", "x", "--snapshot"];
    env.handoff(&fail).success();
    env.send(opening(7)).success();
    env.handoff(&["reject", "7.1", "--as", AGENT, "--reason", "no"])
        .success();
    env.handoff(&["cancel", "7", "--as", "issue-manager", "--reason", "no"])
        .success();
    env.handoff(&["claim", "6.1", "--as", AGENT, "--lease", "1s"])
        .success();
    env
}

const SEND: usize = 0;
const RESTORES: [usize; 2] = [5, 6];

/// Every kind of write; a place to restore to is new at each call.
fn commands(env: &TestEnvironment, call: &str) -> Vec<Vec<String>> {
    let at = |name: &str| env.root().join(name).to_str().unwrap().to_owned();
    let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    vec![
        words(&format!("send {}", at("contract.xml"))),
        words("claim 2.1 --as prep-agent"),
        words("extend 3.1 --as prep-agent --lease 9h"),
        words(&format!(
            "fail 4.1 --as prep-agent --message x --snapshot --attach {}",
            at("build.log")
        )),
        words("reap"),
        words(&format!(
            "restore 5.1 --worktree {}",
            at(&format!("again-{call}"))
        )),
        words(&format!("restore 5.1 --new-branch again-{call}")),
        words("archive 7"),
    ]
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// What a restore that failed may leave.
const OWN: [&str; 3] = [
    ".git/worktrees/",
    ".git/refs/heads/again-",
    ".git/logs/refs/heads/again-",
];

/// Runs every command against an obstacle, and again without it.
fn each_is_refused_and_works_again(
    hindered: impl Fn(&TestEnvironment, &[&str]) -> Ran,
    lifted: impl Fn(&TestEnvironment),
    what: &str,
) {
    let env = busy();
    let bystanders = Bystanders::note(&env, &OWN);
    let tip = env.tip();
    // `doctor` finds it before a step does, and leaves nothing behind.
    let free = env.handoff(&["doctor"]).exits(1);
    assert!(!free.stdout.contains("error git"), "{}", free.shown);
    let files = || std::collections::BTreeSet::from_iter(below(&env.repo().join(".git")));
    let before = files();
    let told = format!("error git: {what}: ");
    hindered(&env, &["doctor"]).exits(1).says(&told);
    lifted(&env);
    let again = env.handoff(&["doctor"]).exits(1);
    assert_eq!(again.stdout, free.stdout);
    assert!(files() == before, "doctor leaves something behind");
    for args in commands(&env, "hindered") {
        let ran = hindered(&env, &strs(&args)).exits(9);
        assert_eq!(ran.stdout, "", "{}", ran.shown);
        let line = ran.stderr.lines().next().unwrap_or_default();
        assert!(
            line.starts_with(&format!("error: {what}: ")),
            "{}",
            ran.shown
        );
        assert!(ran.stderr.contains("\nhint: "), "{}", ran.shown);
        assert_eq!(env.tip(), tip);
    }
    lifted(&env);
    bystanders.assert_untouched();
    env.assert_sound();
    for args in commands(&env, "free") {
        env.handoff(&strs(&args)).success();
    }
    bystanders.assert_untouched();
    env.assert_sound();
}

/// Runs a command that can write no byte to any file, as where a disk is full.
fn without_space(env: &TestEnvironment, args: &[&str]) -> Ran {
    let mut command = env.command("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
        .arg(test_support::program())
        .args(args);
    env.run(command, args, None)
}

#[test]
fn where_nothing_can_be_written_each_write_says_so() {
    each_is_refused_and_works_again(
        without_space,
        |_| {},
        "files this large are not allowed here",
    );
}

#[test]
fn what_to_do_is_said() {
    let env = busy();
    let all = commands(&env, "x");
    let send = without_space(&env, &strs(&all[SEND]));
    insta::assert_snapshot!(send.stderr, @"
    error: files this large are not allowed here: failed to write out file: File too large
    hint: nothing was acknowledged; see `ulimit -f` and the file system's limits, then run the command again; see `git handoff explain git`
    ");
    let restore = without_space(&env, &strs(&all[RESTORES[0]]));
    insta::assert_snapshot!(env.filtered(&restore.stderr), @r#"
    error: files this large are not allowed here: "[root]/repo/.git/worktrees/again-x/locked" cannot be written: File too large (os error 27)
    hint: see `ulimit -f` and the file system's limits, and restore it to another place: what was written so far stays; see `git handoff explain restore`
    "#);
    // What is told can be told to programs too.
    let mut args = strs(&all[SEND]);
    args.push("--json");
    let document = without_space(&env, &args).exits(9).json();
    assert_eq!(document["error"]["code"], "git");
}

/// A shell in a mount namespace of its own, where the system gives one.
fn namespace(env: &TestEnvironment, script: &str) -> Option<Command> {
    ["-rm", "-m"].into_iter().find_map(|how| {
        let shell = |script: &str| {
            let mut command = env.command("unshare");
            command.args([how, "sh", "-c", script, "sh"]);
            command
        };
        let probed = shell("mount -t tmpfs none /mnt").output();
        let works = probed.is_ok_and(|ran| ran.status.success());
        works.then(|| shell(script))
    })
}

/// The repository is put on a disk of its own, of which so many KiB are free;
/// `free` then says what there was after space was made again.
const ON_A_FULL_DISK: &str = r#"
    repo=$1 left=$2 binary=$3; shift 3
    cp -a "$repo" "$repo.copy"
    mount -t tmpfs -o size=16m none "$repo" && cp -a "$repo.copy/." "$repo" && cd "$repo" || exit 99
    tip=$(git rev-parse handoffs)
    dd if=/dev/zero of=.git/fill bs=64k 2>/dev/null
    dd if=/dev/zero of=.git/fill bs=1k oflag=append conv=notrunc 2>/dev/null
    truncate -s "-${left}k" .git/fill
    "$binary" "$@"; status=$?
    rm .git/fill
    {
        "$binary" verify && git fsck --strict --no-dangling || exit 98
        [ "$status" = 0 ] || [ "$tip" = "$(git rev-parse handoffs)" ] || exit 97
        [ -z "$(find .git -name '*.lock' ! -path '*/handoff/*' ! -path '*/worktrees/*')" ] || exit 96
        case $1 in restore) ;; *) "$binary" "$@" || case $? in 5|6) ;; *) exit 95 ;; esac ;; esac
        git status --porcelain | cksum
    } >"$repo.after" 2>&1
    exit "$status"
"#;

/// Where the system gives mount namespaces, as to root and in most containers.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_at_any_point_costs_nothing_that_was_acknowledged() {
    let all = [0, 4, 12, 20, 32, 48];
    for left in all.into_iter().step_by(if times() > 1 { 1 } else { 2 }) {
        let env = busy();
        let mut states = std::collections::BTreeSet::new();
        for (at, args) in commands(&env, "x").iter().enumerate() {
            let Some(mut command) = namespace(&env, ON_A_FULL_DISK) else {
                return;
            };
            command
                .arg(env.repo())
                .arg(left.to_string())
                .arg(test_support::program())
                .args(args);
            let ran = env.run(command, &strs(args), None);
            let after = fs::read_to_string(env.root().join("repo.after")).unwrap_or_default();
            match ran.status {
                0 if left > 0 => {}
                9 => {
                    // git does not say why it can't write a table.
                    let tables = "reftable: transaction failure";
                    if !is_reftable() || !ran.stderr.contains(tables) {
                        let full = "No space left on device";
                        assert!(ran.stderr.contains(full), "{left}: {}{after}", ran.shown);
                        let what = "error: the disk is full: ";
                        assert!(ran.stderr.starts_with(what), "{left}: {}", ran.shown);
                    }
                    assert!(ran.stderr.contains("hint: "), "{}", ran.shown);
                }
                _ => panic!("{left}, {at}: {}{after}", ran.shown),
            }
            states.insert(after.lines().last().unwrap_or_default().to_owned());
            fs::remove_dir_all(env.root().join("repo.copy")).unwrap();
            let _ = fs::remove_dir_all(env.root().join("again-x"));
        }
        assert_eq!(states.len(), 1, "the worktree changed: {states:?}");
    }
}

/// Everything below a folder, files and folders.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    let mut at = 0;
    while at < found.len() {
        if found[at].symlink_metadata().unwrap().is_dir() {
            let entries = fs::read_dir(&found[at]).unwrap();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
        at += 1;
    }
    found
}

/// Sets or clears who may write to the repository; everyone may read it.
fn writable(env: &TestEnvironment, is: bool) {
    for path in below(&env.repo().join(".git")) {
        let mode = path.metadata().unwrap().permissions().mode();
        let mode = (mode | 0o444 | ((mode & 0o100) / 0o100 * 0o111)) & !0o222;
        let mode = if is { mode | 0o200 } else { mode };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// As a user whom permissions bind: who runs the tests, or else nobody.
fn may_only_read(env: &TestEnvironment, args: &[&str]) -> Ran {
    writable(env, false);
    let probe = env.repo().join(".git/probe");
    let is_bound = fs::write(&probe, "").is_err();
    let mut command = env.program(args);
    if !is_bound {
        fs::remove_file(probe).unwrap();
        let binary = env.root().join("git-handoff");
        if !binary.exists() {
            fs::copy(test_support::program(), &binary).unwrap();
            fs::set_permissions(env.root(), fs::Permissions::from_mode(0o755)).unwrap();
            let config = env.root().join("home/.gitconfig");
            let text = fs::read_to_string(&config).unwrap() + "[safe]\n\tdirectory = *\n";
            fs::write(config, text).unwrap();
        }
        command = env.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(binary).args(args);
    }
    let ran = env.run(command, args, None);
    writable(env, true);
    ran
}

#[test]
fn who_may_only_read_is_told_so_and_reads() {
    each_is_refused_and_works_again(may_only_read, |_| {}, "this user may not write there");
    let env = busy();
    may_only_read(&env, &["status"])
        .success()
        .says("2.1  pending");
    may_only_read(&env, &["show", "5.1"]).success();
    may_only_read(&env, &["verify"]).success();
}

/// Where the system gives mount namespaces, as to root and in most containers.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_mounted_read_only_is_read() {
    const READ_ONLY: &str = r#"
        repo=$1; shift
        mount --bind "$repo" "$repo" && mount -o remount,ro,bind "$repo" && cd "$repo" || exit 99
        exec "$@"
    "#;
    let hindered = |env: &TestEnvironment, args: &[&str]| {
        let mut command = namespace(env, READ_ONLY).unwrap();
        command.arg(env.repo());
        command.arg(test_support::program()).args(args);
        env.run(command, args, None)
    };
    let env = busy();
    if namespace(&env, "").is_none() {
        return;
    }
    hindered(&env, &["status"]).success().says("2.1  pending");
    hindered(&env, &["verify"]).success();
    let what = "the file system is mounted read-only";
    each_is_refused_and_works_again(hindered, |_| {}, what);
}

#[test]
fn a_lock_of_the_branch_that_stays_stops_what_writes_to_it_and_no_more() {
    let env = busy();
    let tip = env.tip();
    let lock = lock_of(&env.repo().join(".git"), "refs/heads/handoffs");
    fs::write(&lock, "").unwrap();
    let shown = env.filtered(&lock.to_string_lossy());
    let told = env.handoff(&["doctor"]).exits(1);
    let told = told.says(&format!("error git: the branch stayed locked by {shown}"));
    told.says(&format!("it is stale: `rm {shown}`"));
    let all = commands(&env, "x");
    let children: Vec<_> = all
        .iter()
        .map(|args| {
            let mut command = env.program(&strs(args));
            command.arg("--json");
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for (at, child) in children.into_iter().enumerate() {
        let ended = child.wait_with_output().unwrap();
        let document: Value = serde_json::from_slice(&ended.stdout).unwrap();
        // A new branch takes the one lock that all refs have in tables.
        let takes_it = is_reftable() && all[at].contains(&"--new-branch".to_owned());
        if RESTORES.contains(&at) && !takes_it {
            assert_eq!(document["ok"], true, "{document:#}");
            continue;
        }
        assert_eq!(ended.status.code(), Some(7), "{document:#}");
        let error = &document["error"];
        assert_eq!(error["code"], "locked");
        assert!(error["message"].as_str().unwrap().contains(".lock"));
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.starts_with("nothing was written; wait for the git process"));
        assert!(hint.contains("If no git runs"), "{hint}");
    }
    assert_eq!(env.tip(), tip);
    assert!(lock.exists(), "it may be someone's");
    fs::remove_file(&lock).unwrap();
    for args in commands(&env, "free") {
        env.handoff(&strs(&args)).success();
    }
    env.assert_sound();
}

#[test]
fn locks_of_other_things_and_a_queue_that_was_left_are_in_nobodys_way() {
    let env = busy();
    let git = env.repo().join(".git");
    let locks = ["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock"];
    for name in locks {
        fs::write(git.join(name), "").unwrap();
    }
    let queue = git.join("handoff/queue.lock");
    for (call, left) in ["no commit at all, and far too long for one; ", ""]
        .iter()
        .enumerate()
    {
        fs::write(&queue, left.repeat(9)).unwrap();
        if call == 0 {
            for args in commands(&env, "x") {
                env.handoff(&strs(&args)).success();
            }
        }
        env.send(opening(100 + u32::try_from(call).unwrap()))
            .success();
        assert_eq!(fs::read(&queue).unwrap(), b"");
    }
    for name in locks {
        assert!(git.join(name).exists(), "{name} may be someone's");
        fs::remove_file(git.join(name)).unwrap();
    }
    env.assert_sound();
}
