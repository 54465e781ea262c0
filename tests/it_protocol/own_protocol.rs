//! docs/own-protocol.md, run as it stands.

use std::fs;
use std::path::Path;

use test_support::TestEnvironment;

/// The shell blocks of a document, in order.
fn blocks(document: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut rest = document;
    while let Some((_, after)) = rest.split_once("\n```sh\n") {
        let (block, after) = after.split_once("\n```\n").unwrap();
        blocks.push(block.to_owned());
        rest = after;
    }
    blocks
}

/// Runs what the document shows, as one shell script.
fn followed() -> TestEnvironment {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("docs/own-protocol.md")).unwrap();
    let blocks = blocks(&document);
    assert!(blocks.len() >= 6);
    let env = TestEnvironment::with_repository();
    let script = env.root().join("followed.sh");
    fs::write(&script, format!("set -eu\n{}\n", blocks.join("\n"))).unwrap();
    let ran = env.command("sh").arg(&script).output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(ran.status.success(), "{said}");
    for told in [
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
        "updated protocol issue-to-pr from 1.2.0 to 1.3.0",
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
