//! What the ledger holds is what git shows: commits, trailers, plain files.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, sample};
use test_support::workflow::completed;

#[test]
fn context_accumulates_what_the_contracts_said() {
    let env = completed(|_| Format::Json);
    let context = env.data(&["context", "87"]);
    let issue = &context["issue"];
    assert_eq!(issue["status"], "completed");
    assert_eq!(context["record"]["handoffs"], 12);
    let facts = json!({
        "issue_url": "https://github.com/quayside/parcel-desk/issues/87",
        "issue_title": "Export delivery history as CSV",
        "type": "enhancement",
        "priority": "medium",
        "branch": "enhancement/87-csv-export",
        "workspace_path": "/srv/desk/parcel-desk-87",
        "pr_url": "https://github.com/quayside/parcel-desk/pull/91",
        "pr_number": 91,
        "merge_sha": "e60b8d1f7a2c",
        "coverage": "89.1%",
        "tests_added": 15,
        "total_commits": 7,
        "review_iterations": 3,
        "requirements": [
            "The history page offers a download as CSV",
            "Columns follow the order on screen",
            "An export of 50,000 rows takes less than ten seconds",
        ],
        "port": 4187,
        "workspace_type": "worktree",
    });
    assert_eq!(context["known"], facts);
    assert_eq!(context["latest"]["merge_strategy"], "rebase");
    assert_eq!(context["latest"]["port"], 4187);
    let handoffs = context["handoffs"].as_array().unwrap();
    assert_eq!(handoffs.len(), 12);
    assert_eq!(
        handoffs[2]["contract"]["error"]["type"],
        "RegistryUnreachable"
    );
    assert_eq!(handoffs[1]["state"], "completed");
    assert_eq!(handoffs[1]["attempt"], 2);
}

#[test]
fn git_tells_the_same_story() {
    let env = completed(|_| Format::Xml);
    let repo = env.repo();
    let log = |format: &str, path: &[&str]| {
        let format = format!("--format={format}");
        let mut args = vec!["log", "--reverse", &format, "handoffs"];
        args.extend(path);
        env.git(&repo, &args)
    };
    let folder = ["--", "issues/87/00/87"];
    insta::assert_snapshot!(log("%an <%ae> | %cn | %ad | %s", &[]), @"
    Robin Doe <robin@example.com> | Robin Doe | Mon Mar 2 09:04:00 2026 +0000 | Start the ledger
    issue-manager <issue-manager@handoff.invalid> | Robin Doe | Mon Mar 2 09:05:00 2026 +0000 | 87.1 sent to prep-agent: Dispatchers ask for their delivery history as a file
    prep-agent <prep-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:06:00 2026 +0000 | 87.1 claimed, until 13:06
    prep-agent <prep-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:07:00 2026 +0000 | 87.2 sent to implementer-agent: Export delivery history as CSV
    implementer-agent <implementer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:08:00 2026 +0000 | 87.2 claimed, until 13:08
    implementer-agent <implementer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:09:00 2026 +0000 | 87.2 failed: RegistryUnreachable: The package registry does not answer
    orchestrator <orchestrator@handoff.invalid> | Robin Doe | Mon Mar 2 09:10:00 2026 +0000 | 87.3 claimed, until 13:10
    orchestrator <orchestrator@handoff.invalid> | Robin Doe | Mon Mar 2 09:11:00 2026 +0000 | 87.2 retried, attempt 2: the registry is back
    orchestrator <orchestrator@handoff.invalid> | Robin Doe | Mon Mar 2 09:12:00 2026 +0000 | 87.3 completed: retried
    implementer-agent <implementer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:13:00 2026 +0000 | 87.2 claimed, until 13:13
    implementer-agent <implementer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:14:00 2026 +0000 | 87.4 sent to reviewer-agent: The history page streams its rows as CSV
    reviewer-agent <reviewer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:15:00 2026 +0000 | 87.4 claimed, until 13:15
    reviewer-agent <reviewer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:16:00 2026 +0000 | 87.5 sent to fixer-agent: critical=1, important=1, suggestion=5
    fixer-agent <fixer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:17:00 2026 +0000 | 87.5 claimed, until 13:17
    fixer-agent <fixer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:18:00 2026 +0000 | 87.6 sent to reviewer-agent: Export delivery history as CSV
    reviewer-agent <reviewer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:19:00 2026 +0000 | 87.6 claimed, until 13:19
    reviewer-agent <reviewer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:20:00 2026 +0000 | 87.7 sent to validator-agent: Both findings are answered; nothing else blocks
    validator-agent <validator-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:21:00 2026 +0000 | 87.7 claimed, until 13:21
    validator-agent <validator-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:22:00 2026 +0000 | 87.8 sent to fixer-agent: failures=2
    fixer-agent <fixer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:23:00 2026 +0000 | 87.8 claimed, until 13:23
    fixer-agent <fixer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:24:00 2026 +0000 | 87.9 sent to reviewer-agent: Export delivery history as CSV
    reviewer-agent <reviewer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:25:00 2026 +0000 | 87.9 claimed, until 13:25
    reviewer-agent <reviewer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:26:00 2026 +0000 | 87.10 sent to validator-agent: Both findings are answered; nothing else blocks
    validator-agent <validator-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:27:00 2026 +0000 | 87.10 claimed, until 13:27
    validator-agent <validator-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:28:00 2026 +0000 | 87.11 sent to closer-agent: Export delivery history as CSV
    closer-agent <closer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:29:00 2026 +0000 | 87.11 claimed, until 13:29
    closer-agent <closer-agent@handoff.invalid> | Robin Doe | Mon Mar 2 09:30:00 2026 +0000 | 87.12 sent to workflow-complete: Delivery history can be downloaded as CSV
    ");
    // One issue's history is its folder's.
    assert_eq!(
        log("%s", &folder).lines().count() + 1,
        log("%s", &[]).lines().count()
    );

    // The tool's trail and git's are one.
    let steps = env.data(&["log", "87"]);
    let told: Vec<String> = steps["steps"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|s| {
            format!(
                "{} {} {}",
                s["commit"].as_str().unwrap(),
                s["author"].as_str().unwrap(),
                s["subject"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(told.join("\n"), log("%H %an %s", &folder).trim_end());
    let command = steps["git"]
        .as_str()
        .unwrap()
        .split(' ')
        .skip(1)
        .collect::<Vec<_>>();
    assert_eq!(command, ["log", "handoffs", "--", "issues/87/00/87"]);

    // Trailers, as git reads them.
    let trailers = |rev: &str| {
        let message = env.git(&repo, &["log", "-1", "--format=%B", rev]);
        let file = env.file("message", message);
        env.filtered(&env.git(&repo, &["interpret-trailers", "--parse", &file]))
    };
    insta::assert_snapshot!(trailers("handoffs"), @"
    Handoff-Id: 87.12
    Issue: 87
    From: closer-agent
    To: workflow-complete
    Transition: 87.11 in_progress..completed
    Transition: 87.12 none..completed
    Contract-Type: workflow-complete
    Contract-Sha256: [sha256]
    Protocol: issue-to-pr
    Event: send
    By: closer-agent
    Worker: repo
    At: 2026-03-02T09:30:00Z
    Held-Seconds: 60
    Pull-Request: 91
    ");
    insta::assert_snapshot!(trailers("handoffs~4"), @"
    Handoff-Id: 87.10
    Issue: 87
    From: reviewer-agent
    To: validator-agent
    Transition: 87.9 in_progress..completed
    Transition: 87.10 none..pending
    Contract-Type: reviewer-agent-to-validator-agent
    Contract-Sha256: [sha256]
    Protocol: issue-to-pr
    Event: send
    By: reviewer-agent
    Worker: repo
    At: 2026-03-02T09:26:00Z
    Held-Seconds: 60
    Findings: critical=0, important=0
    Pull-Request: 91
    ");

    // Everything is readable at the tip, in plain files.
    let files = env.git(
        &repo,
        &[
            "ls-tree",
            "-r",
            "--name-only",
            "handoffs",
            "issues/",
            "open/",
        ],
    );
    insta::assert_snapshot!(files, @"
    issues/87/00/87/0001-issue-manager-to-prep-agent.xml
    issues/87/00/87/0001.json
    issues/87/00/87/0002-prep-agent-to-implementer-agent.xml
    issues/87/00/87/0002.json
    issues/87/00/87/0003-implementer-agent-to-orchestrator.xml
    issues/87/00/87/0003.json
    issues/87/00/87/0004-implementer-agent-to-reviewer-agent.xml
    issues/87/00/87/0004.json
    issues/87/00/87/0005-reviewer-agent-to-fixer-agent.xml
    issues/87/00/87/0005.json
    issues/87/00/87/0006-fixer-agent-to-reviewer-agent.xml
    issues/87/00/87/0006.json
    issues/87/00/87/0007-reviewer-agent-to-validator-agent.xml
    issues/87/00/87/0007.json
    issues/87/00/87/0008-validator-agent-to-fixer-agent.xml
    issues/87/00/87/0008.json
    issues/87/00/87/0009-fixer-agent-to-reviewer-agent.xml
    issues/87/00/87/0009.json
    issues/87/00/87/0010-reviewer-agent-to-validator-agent.xml
    issues/87/00/87/0010.json
    issues/87/00/87/0011-validator-agent-to-closer-agent.xml
    issues/87/00/87/0011.json
    issues/87/00/87/0012-closer-agent-to-workflow-complete.xml
    issues/87/00/87/0012.json
    issues/87/00/87/issue.json
    ");
    let path = "issues/87/00/87/0005-reviewer-agent-to-fixer-agent.xml";
    let kept = env.git(&repo, &["show", &format!("handoffs:{path}")]);
    let sent = sample("reviewer-agent-to-fixer-agent", Format::Xml, 87);
    assert_eq!(kept, sent);
    let shown = env
        .handoff(&["show", "87.5", "--contract"])
        .success()
        .stdout;
    assert_eq!(shown, sent);
    let digest: String = Sha256::digest(sent.as_bytes())
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let record = env.data(&["show", "87.5"]);
    assert_eq!(record["record"]["contract"]["sha256"], digest);
    let mirrored = env.git(&repo, &["show", "handoffs:issues/87/00/87/0005.json"]);
    let mirrored: Value = serde_json::from_str(&mirrored).unwrap();
    assert_eq!(mirrored, test_support::stored(&record));
}

#[test]
fn open_handoffs_have_an_entry_with_their_record() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.send(opening(88)).success();
    env.claim("88", "prep-agent").success();
    let entries = env.git(
        &env.repo(),
        &["ls-tree", "-r", "--name-only", "handoffs", "open/"],
    );
    insta::assert_snapshot!(entries, @"
    open/prep-agent/held.medium.issue-to-pr.20260302T090600000.20260302T130700000.88.1.json
    open/prep-agent/ready.medium.issue-to-pr.20260302T090500000.-.87.1.json
    ");
    let held = entries.lines().find(|name| name.contains("held")).unwrap();
    let blob = |path: &str| env.git(&env.repo(), &["rev-parse", &format!("handoffs:{path}")]);
    assert_eq!(blob(held), blob("issues/88/00/88/0001.json"));
}
