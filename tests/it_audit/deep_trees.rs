//! Trees that nest deeper than any path of a working tree can: they are damage, and nothing that
//! reads them comes to the end of its stack.

use std::path::Path;

use test_support::tamper::{BRANCH, Ledger, folder};

/// More than git itself follows (`core.maxTreeDepth`), unless it is told to.
const DEEP: usize = 5_000;

/// A folder in a folder, this many times, and a file in the last one.
fn path(below: &str, levels: usize) -> String {
    format!("{below}{}file", "a/".repeat(levels))
}

/// A ledger whose newest commit has a deep tree below a path.
fn deep(below: &str) -> Ledger {
    let ledger = Ledger::new();
    ledger.git(&["config", "core.maxTreeDepth", "10000"]);
    let tip = ledger.tip().id;
    let stream = format!(
        "commit {BRANCH}\ncommitter Someone <someone@example.org> 1772604000 +0000\ndata 6\nDeeper\n\
         from {tip}\nM 100644 inline {}\ndata 1\nx\n",
        path(below, DEEP)
    );
    ledger.git_raw(&["fast-import", "--quiet"], None, stream.as_bytes());
    ledger.forget();
    ledger
}

/// Runs a command of the program; its exit code, and what it says on stderr.
fn handoff(ledger: &Ledger, args: &[&str]) -> (i32, String) {
    ledger.git_any(&[&["handoff"], args].concat())
}

#[test]
fn an_audit_finds_them_wherever_they_are() {
    for below in [
        "",
        &format!("{}/", folder(87)),
        "protocols/issue-to-pr/",
        "open/prep-agent/",
    ] {
        let ledger = deep(below);
        let damage = ledger.damage(&[]);
        assert!(damage.len() <= 2, "{below}: {damage:?}");
        // They are named where they begin, and not followed.
        let named = damage[0].starts_with("10 ") && damage[0].len() < 80;
        assert!(named, "{below}: {damage:?}");
    }
}

#[test]
fn a_server_refuses_them() {
    let ledger = deep(&format!("{}/", folder(87)));
    let good = format!("{BRANCH}~1");
    let server = Ledger::new();
    server.git(&["config", "core.maxTreeDepth", "10000"]);
    let hooks = server.path().join(".git/hooks");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/pre-receive");
    std::fs::create_dir_all(&hooks).unwrap();
    std::fs::copy(script, hooks.join("pre-receive")).unwrap();
    let url = server.path().to_str().unwrap();
    let (code, said) = ledger.git_any(&["push", "-q", url, &format!("{BRANCH}:{BRANCH}")]);
    assert_ne!(code, 0);
    assert!(said.contains("not made of legal steps"), "{said}");
    assert_eq!(server.tip().id, ledger.git(&["rev-parse", &good]));
}

#[test]
fn readers_go_by_them() {
    let ledger = deep(&format!("{}/", folder(87)));
    for args in [
        &["show", "87"][..],
        &["show", "87.1"],
        &["status"],
        &["list"],
        &["inbox", "--as", "reviewer-agent"],
        &["context", "87"],
        #[cfg(feature = "report")]
        &["metrics"],
        &["next", "87"],
    ] {
        let (code, said) = handoff(&ledger, args);
        assert_eq!(code, 0, "{args:?}: {said}");
    }
}

#[test]
fn a_clone_that_fetches_them_goes_on() {
    let remote = deep("open/prep-agent/");
    let ledger = Ledger::new();
    ledger.git(&["config", "core.maxTreeDepth", "10000"]);
    let claim = ["claim", "88.2", "--as", "implementer-agent"];
    ledger.handoff(10, &claim, "");
    ledger.git(&["config", "handoff.remote", remote.path().to_str().unwrap()]);
    let (code, said) = handoff(&ledger, &["sync"]);
    assert_eq!((code, said.as_str()), (0, ""));
}

#[test]
fn work_that_is_too_deep_is_not_kept_and_what_is_kept_is_given_back() {
    let ledger = Ledger::new();
    ledger.git(&["commit", "-q", "--allow-empty", "-m", "Begin"]);
    ledger.handoff(10, &["claim", "87.3", "--as", "reviewer-agent"], "");
    let blob = ledger.git_raw(&["hash-object", "-w", "--stdin"], None, b"x");
    let blob = String::from_utf8(blob).unwrap();
    let stage = |levels: usize| {
        ledger.git(&["read-tree", "HEAD"]);
        let info = format!("100644,{},{}", blob.trim(), path("", levels));
        ledger.git(&["update-index", "--add", "--cacheinfo", &info]);
    };
    let fail = [
        "fail",
        "87.3",
        "--as",
        "reviewer-agent",
        "--reason",
        "no",
        "--snapshot",
    ];
    stage(DEEP);
    let (code, said) = handoff(&ledger, &fail);
    assert_eq!(code, 9, "{said}");
    assert!(
        said.starts_with("error: git failed: a tree is nested deeper"),
        "{said}"
    );
    stage(2_000);
    assert_eq!(handoff(&ledger, &fail).0, 0);
    let worktree = ledger.path().join("../restored");
    let restore = ["restore", "87.3", "--worktree", worktree.to_str().unwrap()];
    assert_eq!(handoff(&ledger, &restore).0, 0);
    let listed = ledger.git(&["-C", worktree.to_str().unwrap(), "ls-files", "--stage"]);
    assert!(listed.ends_with(&path("", 2_000)), "{listed}");
    ledger.assert_sound(&[]);
}
