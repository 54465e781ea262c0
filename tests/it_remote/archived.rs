//! Light clones of a ledger whose ended issues are archived: they work with what is in the tip, and
//! fetch an archived issue when it is needed.

use std::path::{Path, PathBuf};

use test_support::contracts::{opening, prepared};
use test_support::remote::{Access, Http, assert_whole, served};
use test_support::{TestEnvironment, repository_kind};

/// A remote with a ledger in which issues 1 to 3 ended and 4 to 6 are open; its address.
fn with_remote(env: &TestEnvironment) -> String {
    let origin = served(env).join("origin.git");
    let path = origin.to_str().unwrap();
    env.git(env.root(), &["init", "-q", "--bare", path]);
    env.git(&origin, &["config", "uploadpack.allowFilter", "true"]);
    let address = format!("file://{path}");
    env.git(&env.repo(), &["remote", "add", "origin", &address]);
    env.handoff(&["init", "--remote", "origin", "--evidence", "off"])
        .success();
    for issue in 1..=6 {
        env.send(opening(issue)).success();
    }
    for issue in ["1", "2", "3"] {
        let id = format!("{issue}.1");
        env.handoff(&["reject", &id, "--as", "prep-agent", "--reason", "no"])
            .success();
        env.handoff(&["cancel", issue, "--as", "issue-manager", "--reason", "no"])
            .success();
    }
    address
}

/// The kinds of light clones.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Bare,
    Fetched,
    Blobless,
    Treeless,
}

const KINDS: [Kind; 4] = [Kind::Bare, Kind::Fetched, Kind::Blobless, Kind::Treeless];

fn clone(env: &TestEnvironment, address: &str, kind: Kind, name: &str) -> PathBuf {
    let folder = env.root().join(name);
    let options: &[&str] = match kind {
        Kind::Bare => &[
            "--depth=1",
            "--bare",
            "--single-branch",
            "--branch=handoffs",
        ],
        Kind::Blobless => &["--filter=blob:none", "--bare", "--branch=handoffs"],
        Kind::Treeless => &["--filter=tree:0", "--bare", "--branch=handoffs"],
        Kind::Fetched => &[],
    };
    if kind == Kind::Fetched {
        env.git(env.root(), &["init", "-q", name]);
        env.git(&folder, &["remote", "add", "origin", address]);
    } else {
        let clone = [&["clone", "-q"], options, &[address, name]].concat();
        env.git(env.root(), &clone);
    }
    env.git(&folder, &["config", "handoff.remote", "origin"]);
    let fetch: &[&str] = match kind {
        Kind::Fetched => &["fetch", "--shallow"],
        _ => &["fetch"],
    };
    env.handoff_in(&folder, fetch).success();
    folder
}

/// Whether an object is here, without asking the remote for it.
fn has(env: &TestEnvironment, folder: &Path, id: &str) -> bool {
    let mut command = env.command("git");
    command.args(["cat-file", "-e", id]).current_dir(folder);
    repository_kind::name_bare(&mut command, folder);
    command.env("GIT_NO_LAZY_FETCH", "1");
    env.run(command, &["cat-file"], None).status == 0
}

/// Claims an issue's first handoff, sends it on, and asks the gate.
fn work(env: &TestEnvironment, folder: &Path, issue: u32) {
    let id = format!("{issue}.1");
    let open = env.file("open.xml", opening(issue));
    let onward = env.file("onward.xml", prepared(issue));
    let issue = issue.to_string();
    env.handoff_in(folder, &["send", &open]).success();
    env.handoff_in(folder, &["claim", &id, "--as", "prep-agent"])
        .success();
    env.handoff_in(folder, &["send", &onward]).success();
    let gate = ["gate", "--issue", &issue, "--require", "completed"];
    env.handoff_in(folder, &gate).exits(1);
}

#[test]
fn a_light_clone_works_and_fetches_archived_issues_when_they_are_needed() {
    let env = TestEnvironment::with_repository();
    let address = with_remote(&env);
    let before = clone(&env, &address, Kind::Bare, "before");
    work(&env, &before, 10);
    let folder = "handoffs:issues/01/00/1";
    let tree = env.git(&env.repo(), &["rev-parse", folder]);
    let tree = tree.trim();
    env.handoff(&["archive", "1", "2", "3"]).success();
    work(&env, &before, 11);
    for (number, kind) in (20..).zip(KINDS) {
        let folder = clone(&env, &address, kind, &format!("{kind:?}"));
        work(&env, &folder, number);
        let is_shallow = [Kind::Bare, Kind::Fetched].contains(&kind);
        if is_shallow {
            assert!(!has(&env, &folder, tree), "{kind:?}");
            // What can't be had is said, with where it is.
            let said = env.handoff_in(&folder, &["status", "1", "--offline"]);
            let said = said.exits(9).stderr;
            assert!(said.contains(&format!("git fetch origin {tree}")), "{said}");
        }
        env.handoff_in(&folder, &["show", "1.1"])
            .success()
            .says("rejected");
        assert!(has(&env, &folder, tree), "{kind:?}");
        // Nothing is asked for on the way any more.
        let args = ["show", "1.1", "--contract"];
        let mut command = env.program(&args);
        command.current_dir(&folder).env("PATH", "/nowhere");
        repository_kind::name_bare(&mut command, &folder);
        let shown = env.run(command, &args, None).success().stdout;
        assert_eq!(shown, opening(1));
        // The issue comes back, without the folder being here, and goes on.
        let reopen = ["reopen", "2", "--as", "issue-manager", "--reason", "yes"];
        env.handoff_in(&folder, &reopen).success();
        env.handoff_in(&folder, &["status", "2"]).success();
        env.handoff(&["sync"]).success();
        let give_up = ["cancel", "2", "--as", "issue-manager", "--reason", "no"];
        env.handoff(&give_up).success();
        env.handoff(&["archive", "2"]).success();
        env.handoff_in(&folder, &["fetch"]).success();
        #[cfg(feature = "report")]
        env.handoff_in(&folder, &["metrics", "--json"]).success();
        if is_shallow {
            assert_whole(&env, &folder);
        }
    }
    env.handoff(&["verify"]).success();
}

#[test]
fn without_a_remote_it_is_said_where_the_folder_is() {
    let env = TestEnvironment::with_repository();
    let address = with_remote(&env);
    env.handoff(&["archive", "1"]).success();
    let folder = clone(&env, &address, Kind::Bare, "light");
    env.git(&folder, &["config", "--unset", "handoff.remote"]);
    let said = env.handoff_in(&folder, &["show", "1.1"]).exits(9).shown;
    assert!(said.contains("has no remote"), "{said}");
    assert!(said.contains("git config handoff.remote"), "{said}");
    // The remote is gone.
    env.git(&folder, &["config", "handoff.remote", "origin"]);
    let moved = served(&env).join("moved.git");
    std::fs::rename(served(&env).join("origin.git"), &moved).unwrap();
    let said = env.handoff_in(&folder, &["show", "1.1"]).exits(9).shown;
    assert!(said.contains("git fetch origin "), "{said}");
    // What is in the tip needs nobody.
    env.handoff_in(&folder, &["show", "4.1"]).success();
}

#[test]
fn an_archived_issue_is_fetched_over_http() {
    let env = TestEnvironment::with_repository();
    with_remote(&env);
    env.handoff(&["archive", "1", "2"]).success();
    let server = Http::start(&env, Access::Open);
    let address = server.address("origin.git");
    let folder = clone(&env, &address, Kind::Bare, "light");
    env.handoff_in(&folder, &["show", "1.1"]).success();
    env.handoff_in(&folder, &["context", "2"]).success();
}

#[test]
fn archiving_offline_is_made_again_on_the_remotes_state() {
    let env = TestEnvironment::with_repository();
    let address = with_remote(&env);
    let other = clone(&env, &address, Kind::Fetched, "other");
    env.handoff(&["archive", "1", "2", "--offline"]).exits(8);
    let reopen = ["reopen", "2", "--as", "issue-manager", "--reason", "yes"];
    env.handoff_in(&other, &reopen).success();
    env.handoff(&["sync"]).success();
    let index = ["ls-tree", "-r", "--name-only", "origin/handoffs"];
    env.git(
        &env.repo(),
        &[
            "fetch",
            "-q",
            "origin",
            "handoffs:refs/remotes/origin/handoffs",
        ],
    );
    let files = env.git(&env.repo(), &index);
    assert!(files.contains("archived/01/00.jsonl"), "{files}");
    assert!(!files.contains("archived/02/00.jsonl"), "{files}");
    assert!(files.contains("issues/02/00/2/issue.json"), "{files}");
    // And the other way round: here it is reopened, there archived.
    env.handoff_in(&other, &["fetch"]).success();
    let cancel = ["cancel", "2", "--as", "issue-manager", "--reason", "no"];
    env.handoff(&cancel).success();
    env.handoff_in(&other, &["fetch"]).success();
    let again = [&reopen[..], &["--offline"]].concat();
    env.handoff_in(&other, &again).exits(8);
    env.handoff(&["archive", "2"]).success();
    env.handoff_in(&other, &["sync"]).success();
    env.handoff(&["sync"]).success();
    let status = env.data(&["status", "2"]);
    assert_eq!(status["issue"]["status"], "open");
    // An offline step that brings an issue back is made again too.
    env.handoff_in(
        &other,
        &[
            "reopen",
            "1",
            "--as",
            "issue-manager",
            "--reason",
            "yes",
            "--offline",
        ],
    )
    .exits(8);
    env.send(opening(30)).success();
    env.handoff_in(&other, &["sync"]).success();
    env.handoff(&["sync"]).success();
    assert_eq!(env.data(&["status", "1"])["issue"]["status"], "open");
    env.handoff(&["verify"]).success();
}
