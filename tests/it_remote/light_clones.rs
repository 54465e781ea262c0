//! Clones that have only a part of their remote: depth 1, one branch, no blobs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use test_support::contracts::opening;
use test_support::{Ran, TestEnvironment};

/// A remote `origin.git` with code, tags and a ledger with these issues, which
/// `repo` made.
fn with_remote(issues: u32) -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    for n in 1..=3 {
        let file = format!("{n}.txt");
        std::fs::write(repo.join(&file), format!("{n}\n")).unwrap();
        env.git(&repo, &["add", "."]);
        env.git(&repo, &["commit", "-q", "-m", &file]);
        env.git(&repo, &["tag", &format!("v{n}")]);
        env.git(&repo, &["branch", &format!("topic-{n}")]);
    }
    env.git(env.root(), &["init", "-q", "--bare", "origin.git"]);
    let origin = env.root().join("origin.git");
    env.git(&origin, &["config", "uploadpack.allowFilter", "true"]);
    env.git(&repo, &["remote", "add", "origin", &address(&env)]);
    env.git(&repo, &["push", "-q", "origin", "--all"]);
    env.git(&repo, &["push", "-q", "origin", "--tags"]);
    env.handoff(&["init", "--remote", "origin"]).success();
    for issue in 1..=issues {
        env.send(opening(issue)).success();
    }
    env
}

fn address(env: &TestEnvironment) -> String {
    format!("file://{}", env.root().join("origin.git").display())
}

/// The kinds of clones, each with what makes it.
const KINDS: [(&str, &[&str]); 7] = [
    ("full", &["clone", "-q"]),
    (
        "shallow",
        &["clone", "-q", "--depth=1", "--single-branch", "-b", "main"],
    ),
    (
        "shallow-all",
        &["clone", "-q", "--depth=1", "--no-single-branch"],
    ),
    ("blobless", &["clone", "-q", "--filter=blob:none"]),
    (
        "blobless-shallow",
        &["clone", "-q", "--filter=blob:none", "--depth=1"],
    ),
    ("treeless", &["clone", "-q", "--filter=tree:0"]),
    ("checkout", &[]),
];

fn is_partial(kind: &str) -> bool {
    kind == "treeless" || kind.starts_with("blobless")
}

/// Makes a clone of this kind, which does not know of the ledger yet.
fn clone(env: &TestEnvironment, kind: &str) -> PathBuf {
    let (_, args) = KINDS.iter().find(|(name, _)| *name == kind).unwrap();
    let folder = env.root().join(kind);
    if args.is_empty() {
        // As a workflow's checkout does it: one commit, fetched by its id.
        let main = env.git(&env.repo(), &["rev-parse", "main"]);
        let wanted = format!("+{}:refs/remotes/origin/main", main.trim());
        env.git(env.root(), &["init", "-q", kind]);
        env.git(&folder, &["remote", "add", "origin", &address(env)]);
        let fetch = ["fetch", "-q", "--no-tags", "--depth=1", "origin", &wanted];
        env.git(&folder, &fetch);
        let checkout = ["checkout", "-q", "-B", "main", "refs/remotes/origin/main"];
        env.git(&folder, &checkout);
    } else {
        let mut args = args.to_vec();
        let address = address(env);
        args.extend([address.as_str(), kind]);
        env.git(env.root(), &args);
    }
    folder
}

/// A clone that has the ledger of its remote.
fn with_ledger(env: &TestEnvironment, kind: &str) -> PathBuf {
    let folder = clone(env, kind);
    env.git(&folder, &["config", "handoff.remote", "origin"]);
    env.handoff_in(&folder, &["fetch"]).success();
    folder
}

fn send_in(env: &TestEnvironment, folder: &Path, issue: u32) -> Ran {
    let contract = env.file("contract.xml", opening(issue));
    env.handoff_in(folder, &["send", &contract])
}

/// The objects that are here, without asking the remote for any.
fn objects(env: &TestEnvironment, folder: &Path) -> BTreeSet<String> {
    let args = [
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(objectname)",
        "--unordered",
    ];
    env.git(folder, &args).lines().map(str::to_owned).collect()
}

/// What is the user's: every ref that is not the ledger's, HEAD, the index, and where
/// their history is cut off.
fn users(env: &TestEnvironment, folder: &Path) -> (String, String, Vec<u8>, String) {
    let refs = env.git(folder, &["for-each-ref"]);
    // A push moves the remote-tracking branch of what it pushed, where there is one.
    let own = |line: &&str| !line.ends_with("/handoffs") && !line.contains("refs/handoff/");
    let refs = refs.lines().filter(own).collect::<Vec<_>>().join("\n");
    let head = std::fs::read_to_string(folder.join(".git/HEAD")).unwrap();
    let index = std::fs::read(folder.join(".git/index")).unwrap();
    let history = env.git(folder, &["rev-list", "HEAD"]);
    (refs, head, index, history)
}

/// How many commits of the ledger are here.
fn depth(env: &TestEnvironment, folder: &Path) -> u32 {
    let count = env.git(folder, &["rev-list", "--count", "handoffs"]);
    count.trim().parse().unwrap()
}

#[test]
fn every_kind_of_clone_reads_and_writes() {
    let env = with_remote(3);
    for (number, (kind, _)) in (10..).zip(KINDS) {
        let folder = clone(&env, kind);
        let before = users(&env, &folder);
        // The remote's number of commits, before this clone adds to them.
        let there = depth(&env, &env.root().join("origin.git"));
        match number % 2 {
            0 => env.handoff_in(&folder, &["init", "--remote", "origin"]),
            _ => {
                env.git(&folder, &["config", "handoff.remote", "origin"]);
                env.handoff_in(&folder, &["fetch"])
            }
        }
        .success();
        let is_cut = ["shallow", "shallow-all", "blobless-shallow", "checkout"].contains(&kind);
        let here = depth(&env, &folder);
        assert_eq!(here, if is_cut { 1 } else { there }, "{kind}");
        // Nothing is asked for on the way any more; a partial clone gets what it reads.
        let is_partial = is_partial(kind);
        let read = |args: &[&str]| {
            let mut command = env.program(args);
            command.current_dir(&folder);
            if !is_partial {
                command.env("PATH", "/nowhere");
            }
            env.run(command, args, None).success()
        };
        for issue in 1..=3 {
            read(&["status", &issue.to_string()]).says("prep-agent");
            read(&["show", &format!("{issue}.1")]);
        }
        read(&["context", "2", "--as", "prep-agent"]);
        read(&["inbox", "--as", "prep-agent"]).says("3.1");
        send_in(&env, &folder, number).success();
        let id = format!("{number}.1");
        env.handoff_in(&folder, &["claim", &id, "--as", "prep-agent"])
            .success();
        // The others see it, and go on with it.
        let repo = env.repo();
        let worker = test_support::worker_of(&folder);
        let fail = ["fail", &id, "--as", "prep-agent", "--reason", "no way"];
        env.handoff(&[&fail[..], &["--worker", &worker]].concat())
            .success();
        env.handoff_in(&folder, &["fetch"]).success();
        env.handoff_in(&folder, &["show", &id])
            .success()
            .says("failed");
        assert_eq!(depth(&env, &folder), here + 3, "{kind}: the boundary stays");
        assert_eq!(users(&env, &folder), before, "{kind}");
        assert_eq!(
            env.git(&folder, &["rev-parse", "handoffs"]),
            env.git(&repo, &["rev-parse", "handoffs"])
        );
        let fsck = env.git_any(&folder, &["fsck", "--strict", "--no-dangling"]);
        assert_eq!(fsck.status, 0, "{kind}: {}{}", fsck.stdout, fsck.stderr);
    }
    env.assert_sound();
}

#[test]
fn fetch_brings_the_ledger_and_nothing_else() {
    let env = with_remote(2);
    for (kind, _) in KINDS.iter().filter(|(kind, _)| *kind != "full") {
        let folder = clone(&env, kind);
        // What came to the remote after the clone, and is not asked for.
        let repo = env.repo();
        let topic = format!("after-{kind}");
        std::fs::write(repo.join(&topic), "more\n").unwrap();
        env.git(&repo, &["checkout", "-q", "-b", &topic]);
        env.git(&repo, &["add", "."]);
        env.git(&repo, &["commit", "-q", "-m", &topic]);
        env.git(&repo, &["tag", &format!("tag-{kind}")]);
        env.git(&repo, &["push", "-q", "origin", &topic, "--tags"]);
        let before = objects(&env, &folder);
        env.git(&folder, &["config", "handoff.remote", "origin"]);
        env.handoff_in(&folder, &["fetch"]).success();
        let after = objects(&env, &folder);
        let ledger = env.git(
            &env.root().join("origin.git"),
            &["rev-list", "--objects", "--no-object-names", "handoffs"],
        );
        let ledger: BTreeSet<String> = ledger.lines().map(str::to_owned).collect();
        let more: Vec<&String> = after.difference(&before).collect();
        // The one that has every branch's tip has the ledger's already.
        assert_eq!(more.is_empty(), *kind == "shallow-all", "{kind}");
        assert!(more.iter().all(|id| ledger.contains(*id)), "{kind}");
        // A second one brings nothing at all.
        env.handoff_in(&folder, &["fetch"])
            .success()
            .says("nothing new");
        assert_eq!(objects(&env, &folder), after, "{kind}");
        env.git(&repo, &["checkout", "-q", "main"]);
    }
}

#[test]
fn what_needs_history_says_so_and_names_the_command() {
    let env = with_remote(2);
    let first = env.git(&env.repo(), &["rev-list", "--max-parents=0", "handoffs"]);
    for kind in ["shallow", "checkout", "blobless-shallow"] {
        let folder = with_ledger(&env, kind);
        let before = users(&env, &folder);
        let told = "git handoff fetch --full";
        env.handoff_in(&folder, &["log"]).success().says(told);
        env.handoff_in(&folder, &["log", "1"]).exits(6).says(told);
        let verify = env.handoff_in(&folder, &["verify"]);
        if is_partial(kind) {
            verify.exits(9).says(told);
        } else {
            verify
                .success()
                .says("what this clone has of the ledger is sound")
                .says(told);
        }
        #[cfg(feature = "exchange")]
        env.handoff_in(&folder, &["export", "out", "--format", "log"])
            .exits(6)
            .says(told);
        let watch = ["watch", "--from", first.trim()];
        env.handoff_in(&folder, &watch).exits(6);
        env.handoff_in(&folder, &["watch", "--all"])
            .exits(6)
            .says(told);
        let tip = env.git(&folder, &["rev-parse", "handoffs"]);
        let by = ["--as", "maintainer", "--reason", "x"];
        let quarantine = [&["verify", "--quarantine", tip.trim()], &by[..]].concat();
        env.handoff_in(&folder, &quarantine).exits(6).says(told);
        env.handoff_in(&folder, &["fetch", "--full"]).success();
        assert_eq!(depth(&env, &folder), 3, "{kind}");
        // Only the ledger has its history now.
        assert_eq!(users(&env, &folder), before, "{kind}");
        assert!(folder.join(".git/shallow").exists(), "{kind}");
        let log = env.handoff_in(&folder, &["log", "--json"]).success().json();
        assert_eq!(log["data"]["cut_off"], false, "{kind}");
        env.handoff_in(&folder, &["log", "1"]).success();
        let verify = env.handoff_in(&folder, &["verify"]).success();
        assert!(
            verify.stdout.starts_with("the ledger is sound"),
            "{}",
            verify.shown
        );
        #[cfg(feature = "exchange")]
        env.handoff_in(&folder, &["export", "out", "--format", "log"])
            .success();
    }
}

#[test]
fn a_full_clone_never_becomes_shallow() {
    let env = with_remote(1);
    let folder = with_ledger(&env, "full");
    for args in [&["fetch", "--full"][..], &["fetch"], &["sync"]] {
        env.handoff_in(&folder, args).success();
        assert!(!folder.join(".git/shallow").exists(), "{args:?}");
    }
}

#[test]
fn a_fetch_of_the_users_own_leaves_no_holes() {
    for kind in ["blobless", "treeless"] {
        let env = with_remote(2);
        let folder = with_ledger(&env, kind);
        env.handoff_in(&folder, &["fetch", "--full"]).success();
        // Others go on, and the user fetches everything, without blobs.
        env.claim("1.1", "prep-agent").success();
        env.send(opening(3)).success();
        env.git(&folder, &["fetch", "-q"]);
        env.handoff_in(&folder, &["claim", "3.1", "--as", "prep-agent"])
            .success();
        env.claim("2.1", "prep-agent").success();
        env.git(&folder, &["fetch", "-q"]);
        env.handoff_in(&folder, &["fetch"]).success();
        let mut command = env.program(&["status"]);
        command.current_dir(&folder).env("PATH", "/nowhere");
        env.run(command, &["status"], None).success();
        env.handoff_in(&folder, &["verify"])
            .success()
            .says("the ledger is sound");
    }
}

#[test]
fn what_a_partial_clone_lacks_is_told_as_that() {
    for kind in ["blobless", "treeless"] {
        let env = with_remote(2);
        let folder = clone(&env, kind);
        let branch = [
            "update-ref",
            "refs/heads/handoffs",
            "refs/remotes/origin/handoffs",
        ];
        env.git(&folder, &branch);
        let told = "git handoff fetch";
        env.handoff_in(&folder, &["status"])
            .exits(9)
            .says("was made without some objects")
            .says(told);
        let verify = env
            .handoff_in(&folder, &["verify", "--json"])
            .exits(9)
            .json();
        assert_eq!(verify["error"]["code"], "left_out");
        // As it says.
        env.git(&folder, &["config", "handoff.remote", "origin"]);
        env.handoff_in(&folder, &["fetch"]).success();
        env.handoff_in(&folder, &["status"]).success().says("1.1");
        env.handoff_in(&folder, &["fetch", "--full"]).success();
        env.handoff_in(&folder, &["verify"])
            .success()
            .says("the ledger is sound");
    }
}

#[test]
fn a_linked_worktree_of_a_light_clone_is_one_too() {
    let env = with_remote(2);
    for kind in ["shallow", "blobless-shallow"] {
        let folder = clone(&env, kind);
        env.git(&folder, &["config", "handoff.remote", "origin"]);
        let linked = env.root().join(format!("linked-{kind}"));
        let add = ["worktree", "add", "-q", "--detach"];
        let mut add = add.to_vec();
        add.push(linked.to_str().unwrap());
        env.git(&folder, &add);
        env.handoff_in(&linked, &["fetch"]).success();
        assert_eq!(depth(&env, &linked), 1, "{kind}");
        send_in(&env, &linked, if kind == "shallow" { 7 } else { 8 }).success();
        env.handoff_in(&linked, &["log", "1"])
            .exits(6)
            .says("git handoff fetch --full");
        env.handoff_in(&linked, &["fetch", "--full"]).success();
        env.handoff_in(&linked, &["log", "1"]).success();
        env.handoff_in(&linked, &["verify"])
            .success()
            .says("the ledger is sound");
    }
}

#[test]
fn a_quarantine_whose_commit_is_cut_off_is_not_called_damage() {
    let env = with_remote(1);
    let repo = env.repo();
    let stray = [
        "commit-tree",
        "handoffs^{tree}",
        "-p",
        "handoffs",
        "-m",
        "x",
    ];
    let stray = env.git(&repo, &stray);
    let stray = stray.trim();
    env.git(
        &repo,
        &["push", "-q", "origin", &format!("{stray}:handoffs")],
    );
    env.send(opening(2)).success();
    let by = ["--as", "maintainer", "--reason", "x"];
    let quarantine = [&["verify", "--quarantine", stray], &by[..]].concat();
    env.handoff(&quarantine).success();
    let folder = clone(&env, "shallow");
    env.git(&folder, &["config", "handoff.remote", "origin"]);
    // The quarantine, and nothing before it but the commit that it stands on.
    let ledger = "+refs/heads/handoffs:refs/heads/handoffs";
    env.git(&folder, &["fetch", "-q", "--depth=2", "origin", ledger]);
    let told = "git handoff fetch --full";
    env.handoff_in(&folder, &["verify"])
        .exits(9)
        .says("cut off")
        .says(told);
    env.handoff_in(&folder, &["doctor"]).success().says(told);
    let claim = ["claim", "2.1", "--as", "prep-agent"];
    env.handoff_in(&folder, &claim).success();
    env.handoff_in(&folder, &["fetch", "--full"]).success();
    env.handoff_in(&folder, &["verify"]).success();
}
