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
        "press: sound (9 files)",
        "added protocol press 1.0.0",
        "fact `pages` of issue tides, by tides.1 from writer, is 3 (rule `same-pages`)",
        "the rule refuses it (exit 4)",
        "issue tides: completed (press, 3 handoffs",
        "updated protocol press from 1.0.0 to 1.1.0",
        "✓ edited: tides.2",
        "there is no such commit (exit 3)",
        "statement commits passed",
        "statement paths passed",
        "held until 2026-03-02 09:24:00Z, token 1, worker repo",
        "writer → editor: dead",
        "fall_back: moon.1 is dead (LIBEL): no attempt is left\n  editor: not with us\n  Read the failures",
        "nobody else edits (exit 4)",
        "bakery: sound",
        "TOO_HOT: all black",
        "w-1.1 in_progress..completed",
        "labels/label-1767225600.json: 17 bytes, sha256 ",
        "works: sound",
        "task shed: completed (yard.1)",
        "task roof of shed: completed (yard.4, after walls)",
        "audited: sound",
        "updated protocol issue-to-pr from 1.9.0 to 1.10.0",
        "security-auditor → fixer-agent",
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
