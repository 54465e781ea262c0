//! Partial clones, without blobs or without trees: a command fetches what it reads, in few requests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use test_support::contracts::{opening, prepared};
use test_support::files::script;
use test_support::{Ran, TestEnvironment};

/// How many issues the ledger has.
const ISSUES: u32 = 60;

const KINDS: [(&str, &str); 2] = [("blobless", "blob:none"), ("treeless", "tree:0")];

/// A remote with a ledger of many issues, which `repo` made.
fn with_remote() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    for issue in 1..=ISSUES {
        env.send(opening(issue)).success();
    }
    env.git(env.root(), &["init", "-q", "--bare", "origin.git"]);
    let origin = env.root().join("origin.git");
    env.git(&origin, &["config", "uploadpack.allowFilter", "true"]);
    env.git(&env.repo(), &["remote", "add", "origin", &address(&env)]);
    env.git(&env.repo(), &["push", "-q", "origin", "main", "handoffs"]);
    env.git(&env.repo(), &["config", "handoff.remote", "origin"]);
    counted(&env);
    env
}

fn address(env: &TestEnvironment) -> String {
    format!("file://{}", env.root().join("origin.git").display())
}

/// A script that serves a fetch and notes each pack that it sends.
fn counted(env: &TestEnvironment) {
    let (pack, serve) = (env.root().join("pack.sh"), env.root().join("serve.sh"));
    let noted = env.root().join("packs");
    let (pack_path, noted) = (pack.display(), noted.display());
    script(
        &serve,
        format!(
            "#!/bin/sh\nexec git -c uploadpack.packObjectsHook={pack_path} upload-pack \"$@\"\n"
        ),
    );
    script(
        &pack,
        format!("#!/bin/sh\necho pack >>{noted}\nexec \"$@\"\n"),
    );
}

/// How often the remote was asked for objects since the last call.
fn requests(env: &TestEnvironment) -> usize {
    let noted = env.root().join("packs");
    let packs = fs::read_to_string(&noted).unwrap_or_default();
    let _ = fs::remove_file(noted);
    packs.lines().count()
}

/// A fresh clone whose fetches are counted.
fn clone(env: &TestEnvironment, filter: &str, name: &str) -> PathBuf {
    let folder = env.root().join(name);
    let _ = fs::remove_dir_all(&folder);
    let filter = format!("--filter={filter}");
    env.git(env.root(), &["clone", "-q", &filter, &address(env), name]);
    let served = env.root().join("serve.sh").display().to_string();
    env.git(&folder, &["config", "remote.origin.uploadpack", &served]);
    env.git(&folder, &["config", "handoff.remote", "origin"]);
    requests(env);
    folder
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

/// The file with an issue's state, and its first contract, by the ends of their names.
const STATE: &str = "/issue.json";
const CONTRACT: &str = "/1-issue-manager-to-prep-agent.xml";

/// Of how many issues a file is here.
fn issues_here(env: &TestEnvironment, folder: &Path, file: &str) -> usize {
    let here = objects(env, folder);
    let list = ["ls-tree", "-r", "handoffs", "issues/"];
    let listed = env.git(&env.root().join("origin.git"), &list);
    let files = listed.lines().filter(|line| line.ends_with(file));
    let is_here = |line: &&str| line.split([' ', '\t']).any(|word| here.contains(word));
    files.filter(is_here).count()
}

/// Runs a command that can run no `git`.
fn without_git(env: &TestEnvironment, folder: &Path, args: &[&str]) -> Ran {
    let mut command = env.program(args);
    command.current_dir(folder).env("PATH", "/nowhere");
    env.run(command, args, None)
}

#[track_caller]
fn assert_sound(env: &TestEnvironment, folder: &Path) {
    let fsck = env.git_any(folder, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(fsck.status, 0, "{}{}", fsck.stdout, fsck.stderr);
    env.handoff_in(folder, &["verify"]).exits(9);
    let doctor = env.handoff_in(folder, &["doctor"]).success();
    doctor
        .says("note ledger: parts of it are not in this clone")
        .says("`git handoff fetch --full` gets all of them");
    env.handoff_in(folder, &["fetch", "--full"]).success();
    env.handoff_in(folder, &["verify"])
        .success()
        .says("the ledger is sound");
}

#[test]
fn what_one_issue_needs_comes_in_few_requests_and_little_else() {
    let env = with_remote();
    env.file("61.xml", opening(61));
    env.file("7.xml", prepared(7));
    let note = [
        "annotate",
        "7",
        "--as",
        "prep-agent",
        "--note",
        "look again",
    ];
    for (kind, filter) in KINDS {
        for args in [
            &["show", "7.1"][..],
            &["show", "7.1", "--contract"],
            &["context", "7"],
            &["status", "7"],
            &["log", "7"],
            &["gate", "--issue", "7", "--require", "completed"],
            &[
                "new",
                "--issue",
                "7",
                "--from",
                "prep-agent",
                "--to",
                "implementer-agent",
            ],
            &["claim", "7.1", "--as", "prep-agent"],
            &["claim", "--next", "--as", "prep-agent"],
            &note,
            &["send", "../61.xml"],
        ] {
            let folder = clone(&env, filter, kind);
            env.handoff_in(&folder, &["fetch"]).success();
            let ran = env.handoff_in(&folder, args);
            ran.exits(i32::from(args[0] == "gate"));
            let packs = requests(&env);
            assert!(packs <= 3, "{kind} {args:?}: {packs} requests");
            for file in [STATE, CONTRACT] {
                let here = issues_here(&env, &folder, file);
                assert!(here <= 2, "{kind} {args:?}: {here} of {ISSUES} issues");
            }
            // It is all here now.
            if ["show", "context", "log"].contains(&args[0]) {
                without_git(&env, &folder, args).success();
            }
            // The next clone finds the remote as it was.
            let before = ["update-ref", "refs/heads/handoffs", &env.tip()];
            env.git(&env.root().join("origin.git"), &before);
        }
    }
}

#[test]
fn a_command_that_reads_every_issue_gets_them_together() {
    let env = with_remote();
    for (kind, filter) in KINDS {
        for (args, all) in [
            (&["status"][..], false),
            (&["inbox", "--as", "prep-agent"], false),
            (&["list"], true),
            #[cfg(feature = "report")]
            (&["metrics"], true),
            (&["status", "--idle"], true),
            (&["archive", "--older", "1d"], true),
        ] {
            let folder = clone(&env, filter, kind);
            env.handoff_in(&folder, &["fetch"]).success();
            let ran = env.handoff_in(&folder, args);
            ran.exits(if args[0] == "archive" { 6 } else { 0 });
            let packs = requests(&env);
            assert!(packs <= 4, "{kind} {args:?}: {packs} requests");
            let here = issues_here(&env, &folder, STATE);
            assert_eq!(
                here,
                if all { ISSUES as usize } else { 0 },
                "{kind} {args:?}"
            );
        }
    }
}

#[test]
fn the_work_on_an_issue_goes_on_with_what_others_did() {
    let env = with_remote();
    for ((kind, filter), issue) in KINDS.into_iter().zip([70, 80]) {
        let folder = clone(&env, filter, kind);
        let send = |contract: String| {
            let file = env.file("contract.xml", contract);
            env.handoff_in(&folder, &["send", &file]).success();
        };
        // Nothing was fetched before.
        send(opening(issue));
        let id = format!("{issue}.1");
        env.handoff_in(&folder, &["claim", &id, "--as", "prep-agent"])
            .success();
        requests(&env);
        for other in 1..=3 {
            env.send(opening(issue + other)).success();
        }
        for id in [format!("{}.1", issue + 1), format!("{}.1", issue - 30)] {
            env.claim(&id, "prep-agent").success();
        }
        send(opening(issue + 5));
        // What others did came with the look at the remote.
        let packs = requests(&env);
        assert!(packs <= 2, "{kind}: {packs}");
        // The branch that a contract states is compared with those of all open issues.
        send(prepared(issue));
        let packs = requests(&env);
        assert!(packs <= 3, "{kind}: {packs}");
        // What others did is here too if the user's own fetch brought it without its contents.
        env.send(opening(issue + 4)).success();
        env.git(&folder, &["fetch", "-q"]);
        requests(&env);
        let next = format!("{}.1", issue + 4);
        env.handoff_in(&folder, &["claim", &next, "--as", "prep-agent"])
            .success();
        let packs = requests(&env);
        assert!(packs <= 3, "{kind}: {packs}");
        let here = issues_here(&env, &folder, CONTRACT);
        assert!(here < 12, "{kind}: {here}");
        assert_sound(&env, &folder);
        env.handoff(&["sync"]).success();
    }
    env.assert_sound();
}

#[test]
fn a_remote_that_only_leaves_out_files_serves_too() {
    let env = with_remote();
    let origin = env.root().join("origin.git");
    env.git(&origin, &["config", "uploadpackfilter.tree.maxDepth", "0"]);
    let folder = clone(&env, "tree:0", "treeless");
    env.handoff_in(&folder, &["fetch"]).success();
    env.handoff_in(&folder, &["show", "7.1"]).success();
    assert!(requests(&env) <= 3);
    assert_eq!(issues_here(&env, &folder, STATE), 1);
}

#[test]
fn what_can_not_be_fetched_is_told_and_what_is_here_is_read() {
    let env = with_remote();
    for (kind, filter) in KINDS {
        let folder = clone(&env, filter, kind);
        env.handoff_in(&folder, &["fetch"]).success();
        env.handoff_in(&folder, &["show", "7.1"]).success();
        let away = env.root().join("away.git");
        fs::rename(env.root().join("origin.git"), &away).unwrap();
        let told = |args: &[&str]| {
            let ran = env.handoff_in(&folder, args).exits(9);
            ran.says("was made without some objects")
                .says("git handoff fetch --full");
        };
        told(&["show", "8.1"]);
        told(&["status", "8", "--offline"]);
        told(&["claim", "8.1", "--as", "prep-agent", "--offline"]);
        #[cfg(feature = "report")]
        told(&["metrics"]);
        env.handoff_in(&folder, &["show", "7.1"]).success();
        let claim = ["claim", "7.1", "--as", "prep-agent", "--offline"];
        env.handoff_in(&folder, &claim).exits(8);
        fs::rename(away, env.root().join("origin.git")).unwrap();
        env.handoff_in(&folder, &["show", "8.1"]).success();
        // What was made offline comes to the remote.
        env.handoff_in(&folder, &["sync"]).success();
        let before = ["update-ref", "refs/heads/handoffs", &env.tip()];
        assert_sound(&env, &folder);
        env.git(&env.root().join("origin.git"), &before);
    }
}
