//! docs/own-protocol.md, run as it stands.

use std::os::unix::fs::symlink;

use test_support::{TestEnvironment, project};

/// Runs what the document shows, as one shell script.
fn followed() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    // Where a user has a checkout of the program.
    symlink(project(), env.repo().join("git-handoff")).unwrap();
    let said = env.follow("docs/own-protocol.md");
    for told in [
        "press: writer, editor, printer, orchestrator, end",
        "writer → editor → printer → end",
        "steps per second",
        "added protocol press 1.0.0",
        "press: sound (9 files)",
        "two-desks: sound",
        "issue tides: completed (two-desks, 4 handoffs",
        "updated protocol two-desks from 1.0.0 to 1.1.0",
        "held until 2026-03-02 09:24:00Z, token 1, worker repo",
        "retry: dunes.1 is failed (LOST): an article has three attempts",
        "nobody else edits (exit 4)",
        "writer → editor: dead",
        "fall_back: slander.1 is dead (LIBEL): the article needs a person\n  editor: not with us\n  Call the writer",
        "bakery: sound",
        "TOO_HOT: all black",
        "w-1.1 in_progress..completed",
        "labels/label-1767225600.json: 17 bytes, sha256 ",
        "works: sound",
        "task shed: completed (yard.1)",
        "task roof of shed: completed (yard.4, after walls)",
        "audited: sound",
        "updated protocol issue-to-pr from 1.8.0 to 1.9.0",
        "security-auditor → fixer-agent",
        "there is no such commit (exit 3)",
        "commits passed",
        "paths passed",
        "the ledger is sound",
    ] {
        assert!(said.contains(told), "{told}:\n{said}");
    }
    env
}

#[test]
fn the_document_can_be_followed_to_its_end() {
    let env = followed();
    // The shipped files are not touched by the copy.
    assert!(env.repo().join("audited/protocol.json").is_file());
    env.git(&env.repo(), &["fsck", "--strict"]);
}
