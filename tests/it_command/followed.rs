//! What a newcomer follows, run as it stands: README.md and docs/tutorial.md, each in order in one
//! folder.

use test_support::TestEnvironment;

#[test]
fn the_flow_of_the_readme_works_in_an_empty_folder() {
    let env = TestEnvironment::new();
    let printed = env.follow("README.md");
    for part in [
        "12.1 issue-manager → prep-agent: pending",
        "12.1 issue-manager → prep-agent: in_progress",
        "12.2 prep-agent → implementer-agent: pending\n  12.1 in_progress..completed",
        "issue 12: open (issue-to-pr, 2 handoffs",
        "the ledger is sound: 4 commits, 2 handoffs",
    ] {
        assert!(printed.contains(part), "{part}:\n{printed}");
    }
}

#[test]
fn the_tutorial_can_be_followed_to_its_end() {
    let env = TestEnvironment::new();
    let printed = env.follow("docs/tutorial.md");
    for part in [
        // A skeleton is not complete, a second session is too late, and nine files are a lie.
        "/issue_title field.unfilled",
        "12.2 has been claimed by implementer-agent (worker repo)",
        "exit 5",
        "evidence.files_changed the contract says 9 files, and 1 are changed",
        "exit 3",
        "12.3 implementer-agent → reviewer-agent: pending\n  12.2 in_progress..completed",
        "12.4 reviewer-agent → validator-agent: failed",
        "retry: 12.4 is failed (FAILED): its agent says that another attempt may succeed",
        "\ntests 1 to 40 are done\n",
        "handoff-report.html: 1 issue with 4 handoffs; nothing needs attention",
        "the ledger is sound",
        ".claude/rules/git-handoff.md: created",
        "took over the ledger of origin on branch handoffs, protocol issue-to-pr",
        "fetched 1 commit from origin",
        "the test server is back",
    ] {
        assert!(printed.contains(part), "{part}:\n{printed}");
    }
    let clone = env.root().join("parcels");
    env.git(&clone, &["fsck", "--strict"]);
}
