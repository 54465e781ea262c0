//! Repositories that name their objects by SHA-256.

use std::path::{Path, PathBuf};

use test_support::contracts::opening;
use test_support::exchange::{exported, import, lived, refused};
use test_support::remote::assert_whole;
use test_support::{TestEnvironment, repository_kind};

/// A new repository of a format, with one commit.
fn repository(env: &TestEnvironment, name: &str, format: &str) -> PathBuf {
    let format = format!("--object-format={format}");
    env.git(env.root(), &["init", "-q", &format, name]);
    let repo = env.root().join(name);
    env.git(&repo, &["commit", "-q", "--allow-empty", "-m", "Start"]);
    repo
}

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
