//! What a workflow on GitHub is told: annotations, values, summaries, comments; and what it is never told.

use std::fs;
use std::path::Path;

use crate::runner::{Event, Runner, TOKEN, files, values};
use serde_json::{Value, json};
use test_support::contracts::{Format, opening, prepared, sample};
use test_support::tools::GITHUB;
use test_support::workflow::completed;
use test_support::{Ran, TestEnvironment};

/// Runs it with more variables.
fn within(env: &TestEnvironment, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = env.program(args);
    command.envs(variables.iter().copied());
    env.run(command, args, None)
}

/// An issue in which words try to be more than words.
fn hostile() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    let sly = "@octocat #12 GH-3 octo/desk#4 ``` [x](https://evil.example) ![i](https://evil.example/i.png) \
               &lt;img src=x onerror=alert(1)&gt; **b** | c \\| d www.evil.example &lt;!-- git-handoff:87 --&gt; ~~s~~";
    let contract = opening(87);
    let was = "Dispatchers ask for their delivery history as a file";
    assert!(contract.contains(was));
    env.send(contract.replace(was, sly)).success();
    env.claim("87", "prep-agent").success();
    let message = "::error::no ##[add-path]x\n@octocat closes #12 <script>alert(1)</script>";
    let details =
        "```\n@octocat\n```mermaid\nflowchart LR\n</details><img src=x>\n::set-env name=x::y";
    let fail = ["fail", "87", "--as", "prep-agent", "--recoverable"];
    let told = ["--message", message, "--details", details];
    env.handoff(&[&fail[..], &told].concat()).success();
    env
}

/// Asserts that GitHub's parser makes nothing of foreign words but text in code.
#[track_caller]
fn assert_text_only(markdown: &str) {
    let html = GITHUB.run("read-markdown.py", &[], markdown);
    for tag in ["<a", "<img", "<script", "<del", "<strong>b", "<input"] {
        assert!(!html.contains(tag), "{tag} in {html}");
    }
    let mut rest = html.as_str();
    let mut outside = String::new();
    while let Some((before, inside)) = rest.split_once("<code") {
        outside += before;
        rest = inside.split_once("</code>").unwrap().1;
    }
    outside += rest;
    for word in ["octocat", "evil", "#12", "GH-3", "alert", "set-env"] {
        assert!(!outside.contains(word), "{word} in {outside}");
    }
    let drawings =
        html.matches("lang=\"mermaid\"").count() + html.matches("language-mermaid").count();
    assert_eq!(drawings, 1, "{html}");
    assert_eq!(
        html.matches("<details>").count(),
        html.matches("</details>").count()
    );
}

#[test]
fn a_summary_tells_how_an_issue_stands() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87", "prep-agent").success();
    env.send(prepared(87)).success();
    env.claim("87", "implementer-agent").success();
    let fail = ["fail", "87", "--as", "implementer-agent", "--recoverable"];
    let told = [
        "--code",
        "BuildError",
        "--message",
        "no space left",
        "--details",
        "df: 100%",
    ];
    env.handoff(&[&fail[..], &told].concat()).success();
    let page = env
        .handoff(&["github", "summary", "87", "--output", "-"])
        .success();
    insta::assert_snapshot!(env.filtered(&page.stdout), @r#"
    ## Issue `87`: open

    With `implementer-agent`. Next: **retry**, by `orchestrator` with 87.2: `87.2 is failed (BuildError): its agent says that another attempt may succeed`.

    - **87.2 failed**, `implementer-agent`: `no space left`. Give it another attempt in a comment:

      ```text
      /handoff retry 87.2
      ```

    - Required of a merge (no commit of an open pull request is known): ✗ not `approved`: `nobody sent reviewer-agent-to-validator-agent`

    2 handoffs, protocol `issue-to-pr`, ledger at `[commit]`.

    ### Needs attention

    | Handoff | What | Whose turn | Since | Why | Command |
    |---|---|---|---|---|---|
    | 87.2 | ! failed | `orchestrator` | 2026-03-02 09:09:00Z | `no space left` | `git handoff retry 87.2 --as orchestrator --reason WHY` |

    ### Failures

    - 87.2, attempt 1, 2026-03-02 09:09:00Z, `implementer-agent`: `BuildError` `no space left`
      <details><summary>Details</summary>

      ```text
      df: 100%
      ```

      </details>

    ### What happened

    ```mermaid
    ---
    title: "issue 87 (issue-to-pr): open, 2 handoffs"
    ---
    flowchart LR
      n0["issue-manager"]
      n1["prep-agent"]
      n2["➤ implementer-agent<br/>2 ✗ failed for 1m"]
      n0 -->|"1 ✓<br/>waited 1m, worked 1m"| n1
      n1 -->|"2 ✗ failed<br/>waited 1m, worked 1m"| n2
      classDef failed fill:#ffebe9,stroke:#cf222e,color:#1f2328,stroke-width:3px
      class n2 failed
      linkStyle 1 stroke:#cf222e,stroke-width:3px
    ```

    ### Handoffs, the newest first

    | Handoff | From | To | Contract | State | Sent | Waited | Worked | About |
    |---|---|---|---|---|---|---|---|---|
    | 87.2 | `prep-agent` | `implementer-agent` | `prep-agent-to-implementer-agent` | ✗ failed | 2026-03-02 09:07:00Z | 1m | 1m | `Workspace ready` |
    | 87.1 | `issue-manager` | `prep-agent` | `issue-manager-to-prep-agent` | ✓ completed | 2026-03-02 09:05:00Z | 1m | 1m | `Dispatchers ask for their delivery history as a file` |
    "#);
    let ledger = env
        .handoff(&["github", "summary", "--output", "-"])
        .success();
    insta::assert_snapshot!(env.filtered(&ledger.stdout), @"
    ## Handoffs on `handoffs`

    1 issue, 0 of them completed; 1 handoff open: 1 failed. Commit `[commit]`.

    ### Needs attention: 1

    | Handoff | What | Whose turn | Since | Why | Command |
    |---|---|---|---|---|---|
    | 87.2 | ! failed | `orchestrator` | 2026-03-02 09:09:00Z | `no space left` | `git handoff retry 87.2 --as orchestrator --reason WHY` |

    ### Open

    | Handoff | From | To | State | Sent | About |
    |---|---|---|---|---|---|
    | 87.2 | `prep-agent` | `implementer-agent` | ✗ failed | 2026-03-02 09:07:00Z | `Workspace ready` |
    ");
    let none = env
        .handoff(&["github", "summary", "88", "--output", "-"])
        .success();
    assert_eq!(
        none.stdout,
        "## Issue `88`\n\nThe ledger does not have it.\n\n"
    );
}

#[test]
fn a_comment_says_first_what_matters() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87", "prep-agent").success();
    let ask = [
        "block",
        "87.1",
        "--as",
        "prep-agent",
        "--reason",
        "which port?",
    ];
    let needs = ["--needs", "port:integer=the port of the test server"];
    env.handoff(&[&ask[..], &needs].concat()).success();
    let report = ["--report", "https://octo.github.io/desk/"];
    let body = env
        .handoff(&[&["github", "comment", "87"][..], &report].concat())
        .success();
    let (first, rest) = body.stdout.split_once("<details>").unwrap();
    insta::assert_snapshot!(env.filtered(first), @"
    <!-- git-handoff:87 -->
    ## Issue `87`: open

    With `prep-agent`. Next: **ask**, by `orchestrator` with 87.1: `87.1 is blocked: the agent cannot go on without an answer`.

    - **87.1 asks**, `prep-agent`: `which port?`; `port`: `the port of the test server`. Answer in a comment:

      ```text
      /handoff answer 87.1 port=INTEGER
      ```

    - Required of a merge (no commit of an open pull request is known): ✗ not `approved`: `nobody sent reviewer-agent-to-validator-agent`

    1 handoff, protocol `issue-to-pr`, ledger at `[commit]`. [The report](https://octo.github.io/desk/#i-87)
    ");
    assert!(
        rest.contains("```mermaid") && rest.trim_end().ends_with("</details>"),
        "{rest}"
    );

    // The lines that it offers are taken, once their places are filled in.
    let line = first.lines().find(|line| line.contains("/handoff answer"));
    let answer = line.unwrap().trim().replace("INTEGER", "8080");
    let payload = test_support::events::comment(&env, test_support::events::issue(87), &answer);
    let told = test_support::events::event(&env, "issue_comment", &payload);
    assert_eq!(told["commands"][0]["accepted"], true, "{told:#}");

    // What was not counted stays to be seen until it is.
    env.wait_minutes(1);
    let mut stranger =
        test_support::events::comment(&env, test_support::events::issue(87), "/handoff cancel");
    stranger["comment"]["id"] = json!(5);
    stranger["comment"]["author_association"] = json!("NONE");
    test_support::events::event(&env, "issue_comment", &stranger);
    let body = || env.handoff(&["github", "comment", "87"]).success().stdout;
    assert!(
        body().contains("- Not counted: `A comment by maintainer has no effect"),
        "{}",
        body()
    );
    test_support::events::permitted(&env, "issue_comment", &stranger, "write");
    assert!(!body().contains("Not counted"), "{}", body());
    for address in [
        "javascript:alert(1)",
        "https://x.example/)[y](z",
        "https://a b",
    ] {
        let args = ["github", "comment", "87", "--report", address];
        env.handoff(&args).exits(2).says("it is not an address");
    }
}

#[test]
fn a_comment_names_open_findings_and_the_cost() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87", "prep-agent").success();
    env.send(prepared(87)).success();
    env.claim("87", "implementer-agent").success();
    env.send(sample(
        "implementer-agent-to-reviewer-agent",
        Format::Xml,
        87,
    ))
    .success();
    env.claim("87", "reviewer-agent").success();
    let usage = json!([{"model": "m", "input_tokens": 1200, "output_tokens": 300, "cost": 0.42, "currency": "USD"}]);
    let usage = env.file("usage.json", usage.to_string());
    let review = env.file(
        "review.xml",
        sample("reviewer-agent-to-fixer-agent", Format::Xml, 87),
    );
    env.handoff(&["send", &review, "--usage", &usage]).success();
    let body = env.handoff(&["github", "comment", "87"]).success().stdout;
    let (first, _) = body.split_once("<details>").unwrap();
    insta::assert_snapshot!(env.filtered(first), @"
    <!-- git-handoff:87 -->
    ## Issue `87`: open

    With `fixer-agent`. Next: **advance**, by `fixer-agent` with 87.4: `no other agent can act`.

    - 87.4 for `fixer-agent`: `Review asks for changes`
    - Required of a merge (no commit of an open pull request is known): ✗ not `approved`: `87.4 (reviewer-agent-to-fixer-agent) by reviewer-agent asks for changes; it waits for fixer-agent`
    - 2 open findings: `F1 (critical, src/export/csv.py:58): A cell that begins with = is run as a formula by spreadsheets`, `F2 (important, src/history/views.py:133): The whole result is held in memory`

    4 handoffs, 0.42 USD, 1,500 tokens, protocol `issue-to-pr`, ledger at `[commit]`.
    ");
}

#[test]
fn foreign_words_are_nothing_but_text() {
    let env = hostile();
    let page = env
        .handoff(&["github", "summary", "87", "--output", "-"])
        .success();
    assert!(page.stdout.contains("@octocat"));
    assert_text_only(&page.stdout);
    let comment = env.handoff(&["github", "comment", "87"]).success();
    assert!(
        comment
            .stdout
            .starts_with("<!-- git-handoff:87 -->\n## Issue `87`: open\n")
    );
    assert_text_only(&comment.stdout);
    let ledger = env
        .handoff(&["github", "summary", "--output", "-"])
        .success();
    let html = GITHUB.run("read-markdown.py", &[], &ledger.stdout);
    assert!(!html.contains("<a") && !html.contains("<img"), "{html}");
    // What is no value is no output.
    let values = values(
        &env.handoff(&["github", "output", "87", "--output", "-"])
            .success()
            .stdout,
    );
    for (name, value) in &values {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._,".contains(c);
        assert!(value.chars().all(is_plain), "{name}: {value}");
    }
}

#[test]
fn values_are_added_to_the_file_that_the_runner_names() {
    let env = hostile();
    let file = env.file("output", "before=1");
    let told = [("GITHUB_OUTPUT", file.as_str())];
    within(&env, &told, &["github", "output", "87"]).success();
    within(&env, &told, &["github", "output", "88"]).success();
    let text = fs::read_to_string(&file).unwrap();
    let found = values(&text);
    assert_eq!(found["before"], "1");
    assert_eq!(found["exists"], "false");
    assert_eq!(found["state"], "open");
    assert_eq!(found["holder"], "prep-agent");
    assert_eq!(found["next_action"], "retry");
    assert_eq!(found["gate"], "false");
    assert_eq!(found["unmet"], "approved");
    assert_eq!(found["last_id"], "87.1");
    assert_eq!(found["last_state"], "failed");
    assert_eq!(found["commit"], env.tip());
    // Each end is another word, and a long one.
    let ends: Vec<&str> = text
        .lines()
        .filter_map(|l| Some(l.split_once("<<")?.1))
        .collect();
    let mut once = ends.clone();
    once.sort_unstable();
    once.dedup();
    assert!(ends.len() > 15 && once.len() == ends.len() && ends.iter().all(|e| e.len() == 32));
    // The same as data, and no file is touched.
    let data = env.data(&["github", "output", "87"]);
    assert_eq!(data["open_ids"], "87.1");
    let ledger = env.data(&["github", "output"]);
    assert_eq!(ledger["failed"], "1");
    assert_eq!(ledger["attention"], "1");

    let done = completed(|_| Format::Xml);
    let data = done.data(&["github", "output", "87"]);
    assert_eq!(data["state"], "completed");
    assert_eq!(
        [&data["holder"], &data["next_action"], &data["next_agent"]],
        ["", "", ""]
    );
    assert_eq!(data["gate"], "true");
}

#[test]
fn without_a_workflow_it_says_where_to() {
    let env = hostile();
    for verb in ["output", "summary"] {
        let none = env.handoff(&["github", verb, "87"]).exits(2);
        none.says("this is not a step of a workflow")
            .says("--output FILE");
        let nowhere = env.root().join("none/x");
        let told = ["github", verb, "87", "--output", nowhere.to_str().unwrap()];
        env.handoff(&told).exits(9).says("cannot write");
    }
    env.handoff(&["github", "comment", "88"]).exits(6);
    // A requirement that the issue's protocol does not know is not met: a workflow asks about any issue.
    let blessed = ["--require", "blessed", "--output", "-"];
    let page = env.handoff(&[&["github", "summary", "87"][..], &blessed].concat());
    assert!(
        page.success()
            .stdout
            .contains(": ✗ not `blessed`: `protocol issue-to-pr has no such requirement`")
    );
    env.handoff(&[
        "github", "output", "87", "--head", "nothing", "--output", "-",
    ])
    .exits(6);
}

/// An issue whose page is longer than a comment may be.
fn long() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let details = "0123456789abcdef ".repeat(300);
    for _ in 0..24 {
        env.wait_minutes(24 * 60);
        env.claim("87", "prep-agent").success();
        let fail = [
            "fail",
            "87",
            "--as",
            "prep-agent",
            "--recoverable",
            "--message",
            "no",
        ];
        env.handoff(&[&fail[..], &["--details", &details]].concat())
            .success();
        let as_lead = ["87", "--as", "orchestrator", "--reason", "again"];
        let retried = env.handoff(&[&["retry"][..], &as_lead].concat());
        if retried.status != 0 {
            env.handoff(&[&["retry"][..], &as_lead].concat()).success();
        }
    }
    env
}

#[test]
fn pages_stay_within_what_github_takes() {
    let env = long();
    let comment = env.data(&["github", "comment", "87"]);
    let body = comment["body"].as_str().unwrap();
    assert!(
        body.len() <= 65_536 && body.len() > 60_000,
        "{}",
        body.len()
    );
    assert!(
        body.contains("_Left out, for GitHub takes no more: "),
        "{body}"
    );
    assert!(
        comment["left_out"][0]
            .as_str()
            .unwrap()
            .ends_with(" of 24 failures")
    );

    let whole = env.data(&["github", "summary", "87"]);
    assert_eq!(whole["left_out"], json!([]));
    let size = usize::try_from(whole["bytes"].as_u64().unwrap()).unwrap();
    assert!(size > 90_000);
    // With what is in the file already.
    for there in [0, 1_000_000, (1 << 20) - 2_000, (1 << 20) - 10, 1 << 20] {
        let file = env.file("summary", "x".repeat(there));
        let told = [("GITHUB_STEP_SUMMARY", file.as_str())];
        let ran = within(&env, &told, &["github", "summary", "87"]).success();
        let after = fs::read(&file).unwrap().len();
        assert!(after <= (1 << 20).max(there + 1), "{there}: {after}");
        assert_eq!(
            ran.stderr.contains("left out: "),
            there + size > 1 << 20,
            "{}",
            ran.shown
        );
    }
    // Nothing is added where nothing has room, not even of an issue that is not there.
    for issue in ["87", "88"] {
        let file = env.file("summary", "x".repeat(1 << 20));
        let told = [("GITHUB_STEP_SUMMARY", file.as_str())];
        within(&env, &told, &["github", "summary", issue]).success();
        assert_eq!(fs::read(&file).unwrap().len(), 1 << 20);
    }
}

#[test]
fn a_page_does_not_begin_within_a_block_of_code() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    for (there, end) in [
        ("```text\nlog", "log\n```\n\n## Issue"),
        ("- a\n  ~~~~ sh\n  ~~~\n", "  ~~~\n  ~~~~\n\n## Issue"),
        ("```\nlog\n```\n", "```\n## Issue"),
        ("``` a ` b\n", "b\n## Issue"),
        ("    ```\n", "```\n## Issue"),
    ] {
        let file = env.file("summary", there);
        let told = [("GITHUB_STEP_SUMMARY", file.as_str())];
        within(&env, &told, &["github", "summary", "87"]).success();
        let page = fs::read_to_string(&file).unwrap();
        assert!(page.contains(end), "{page}");
        let html = GITHUB.run("read-markdown.py", &[], &page);
        assert!(html.contains("<h2"), "{html}");
    }
    // Its fence counts, too.
    let begun = format!("```\n{}", "x".repeat((1 << 20) - 2_000));
    let file = env.file("summary", begun);
    let told = [("GITHUB_STEP_SUMMARY", file.as_str())];
    within(&env, &told, &["github", "summary", "87"]).success();
    assert!(fs::read(&file).unwrap().len() <= 1 << 20);
}

#[test]
#[cfg(target_os = "linux")]
fn a_device_is_not_read() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    for (verb, variable) in [
        ("output", "GITHUB_OUTPUT"),
        ("summary", "GITHUB_STEP_SUMMARY"),
    ] {
        for (device, status) in [("/dev/zero", 0), ("/dev/null", 0), ("/dev/full", 9)] {
            let ran = within(&env, &[(variable, device)], &["github", verb, "87"]);
            assert_eq!(ran.status, status, "{}", ran.shown);
        }
    }
}

#[test]
fn the_comment_that_is_there_is_found() {
    let env = hostile();
    let comment = |id: u64, login: &str, body: &str| json!({ "id": id, "user": { "login": login }, "body": body });
    let own = env.handoff(&["github", "comment", "87"]).success().stdout;
    let bot = "github-actions[bot]";
    let old = own.replacen("\n", "\nOld\n", 1);
    let pages = format!(
        "{}\n{}",
        json!([comment(1, "mallory", &own), comment(2, bot, "hello")]),
        json!([comment(3, bot, &old), comment(4, "desk[bot]", &own)])
    );
    let list = env.file("comments.json", pages);
    let file = env.root().join("comment.md");
    let file = file.to_str().unwrap();
    let args = [
        "github",
        "comment",
        "87",
        "--existing",
        &list,
        "--output",
        file,
    ];
    assert_eq!(env.handoff(&args).success().stdout, "3\n");
    assert_eq!(
        fs::read_to_string(file).unwrap().lines().next(),
        own.lines().next()
    );
    let by = [&args[..], &["--author", "desk[bot]"]].concat();
    assert_eq!(env.handoff(&by).success().stdout, "4\n");
    env.file("comments.json", "[]\n[]");
    assert_eq!(env.handoff(&args).success().stdout, "");
    env.file("comments.json", r#"{"message":"Not Found"}"#);
    env.handoff(&args)
        .exits(3)
        .says("it is not a list of comments")
        .says("but an answer that says \"Not Found\"");
    fs::remove_file(&list).unwrap();
    env.handoff(&args).exits(6).says("cannot be read");
    // From a pipe, and by a login that is written otherwise.
    let piped = [
        &args[..3],
        &["--existing", "-", "--author", "GitHub-Actions[Bot]"],
        &args[5..],
    ];
    let found = env.handoff_with(&piped.concat(), json!([comment(3, bot, &own)]).to_string());
    assert_eq!(found.success().stdout, "3\n");
    let none = env.handoff_with(&piped.concat(), "null");
    none.exits(3)
        .says("standard input: it is not a list of comments")
        .says("`null`");
}

#[test]
fn findings_become_annotations() {
    let env = hostile();
    let gate = env
        .handoff(&["gate", "--issue", "87", "--format", "github"])
        .exits(1);
    insta::assert_snapshot!(gate.shown, @"
    $ git handoff gate --issue 87 --format github
    ::error title=not approved::nobody sent reviewer-agent-to-validator-agent
    ✗ not approved: nobody sent reviewer-agent-to-validator-agent
    --- exit 1
    ");
    let none = env
        .handoff(&["gate", "--issue", "88", "--format", "github"])
        .exits(6);
    insta::assert_snapshot!(none.shown, @"
    $ git handoff gate --issue 88 --format github
    ::error title=no_issue::there is no issue 88%0A`git handoff list` shows every issue
    --- exit 6
    ");
    let sound = env.handoff(&["verify", "--format", "github"]).success();
    assert!(!sound.stdout.contains("::") && sound.stdout.contains("is sound"));
    env.wait_minutes(60 * 24 * 30);
    let alerts = env.handoff(&["alerts", "--format", "github"]).exits(1);
    assert!(
        alerts.stdout.lines().all(|line| line.starts_with("::")),
        "{}",
        alerts.shown
    );
    assert!(
        alerts.stdout.contains("::warning title="),
        "{}",
        alerts.shown
    );
    // The document is the answer where it is asked for.
    let both = env
        .handoff(&["gate", "--issue", "87", "--format", "github", "--json"])
        .exits(1);
    assert_eq!(both.json()["error"]["code"], "gate_closed");

    // A record that somebody changed by hand, and more files than are shown.
    let tree = env.root().join("ledger");
    env.git(
        &env.repo(),
        &["worktree", "add", "-q", "--detach", "../ledger", "handoffs"],
    );
    let record = tree.join("issues/87/00/87/0001.json");
    let record = if record.exists() {
        record
    } else {
        find(&tree, "0001.json")
    };
    let text = fs::read_to_string(&record)
        .unwrap()
        .replace("prep-agent", "fixer-agent");
    fs::write(&record, text).unwrap();
    for n in 0..14 {
        fs::write(tree.join(format!("::error::{n}, 100%")), "").unwrap();
    }
    env.git(&tree, &["add", "."]);
    env.git(&tree, &["commit", "-q", "-m", "By hand"]);
    let forged = env.git(&tree, &["rev-parse", "HEAD"]);
    env.git(
        &env.repo(),
        &["update-ref", "refs/heads/handoffs", forged.trim()],
    );
    let damaged = env.handoff(&["verify", "--format", "github"]).exits(10);
    let errors: Vec<&str> = damaged
        .stdout
        .lines()
        .filter(|l| l.starts_with("::error "))
        .collect();
    assert!(
        errors.len() <= 10 && !errors.is_empty(),
        "{}",
        damaged.shown
    );
    assert!(
        !damaged
            .stdout
            .lines()
            .any(|l| l.trim_start().starts_with("::error::"))
    );
    assert!(
        damaged.stdout.contains("the ledger is damaged: "),
        "{}",
        damaged.shown
    );

    let wrong = sample("issue-manager-to-prep-agent", Format::Xml, 87).replace("medium", "::x%\r");
    let file = env.file("a,b:c.xml", wrong);
    let checked = env
        .handoff(&["check", &file, "--format", "github"])
        .exits(3);
    assert!(
        checked.stdout.starts_with("::error file="),
        "{}",
        checked.shown
    );
    assert!(
        checked.stdout.contains("/a%2Cb%3Ac.xml,line=8,col="),
        "{}",
        checked.shown
    );
    // GitHub counts from the repository's root, wherever that is asked.
    let within = env.repo().join("desk/in");
    fs::create_dir_all(&within).unwrap();
    fs::copy(&file, within.join("x.xml")).unwrap();
    for (name, path) in [("x.xml", "desk/in/x.xml"), ("../none.xml", "desk/none.xml")] {
        let checked = env.handoff_in(&within, &["check", name, "--format", "github"]);
        let begins = format!("::error file={path},");
        assert!(checked.stdout.starts_with(&begins), "{}", checked.shown);
    }
}

fn find(folder: &Path, name: &str) -> std::path::PathBuf {
    let mut found = files(folder).into_iter().map(|(path, _)| path);
    found
        .find(|path| path.file_name().unwrap() == name)
        .unwrap()
}

#[test]
fn chatter_in_a_workflow_holds_no_command() {
    let env = hostile();
    let variables = [("GITHUB_ACTIONS", "true")];
    let sly = "87\n::error::sly ##[add-path]/tmp";
    let ran = within(&env, &variables, &["status", sly]).exits(2);
    let commands =
        |text: &str| text.lines().any(|l| l.trim_start().starts_with("::")) || text.contains("##[");
    assert!(!commands(&ran.stderr), "{}", ran.stderr);
    let ran = within(
        &env,
        &variables,
        &["fail", "87", "--as", sly, "--message", "x"],
    );
    assert!(ran.status != 0 && !commands(&ran.stderr), "{}", ran.stderr);
}

#[test]
fn no_token_is_printed_or_kept() {
    let env = hostile();
    let variables = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_TOKEN", TOKEN),
        ("GH_TOKEN", TOKEN),
        ("ACTIONS_RUNTIME_TOKEN", TOKEN),
        ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", TOKEN),
    ];
    let mut said = String::new();
    let address = format!("https://x-access-token:{TOKEN}@127.0.0.1:9/owner/desk");
    let file = env.root().join("page");
    let file = file.to_str().unwrap();
    let mut run = |args: &[&str]| {
        let ran = within(&env, &variables, args);
        said += &ran.stdout;
        said += &ran.stderr;
        ran.status
    };
    assert_eq!(run(&["github", "output", "87", "--output", file]), 0);
    assert_eq!(run(&["github", "summary", "87", "--output", file]), 0);
    assert_eq!(run(&["github", "comment", "87", "--output", file]), 0);
    assert_eq!(run(&["verify", "--format", "github"]), 0);
    assert_eq!(run(&["gate", "--issue", "87", "--format", "github"]), 1);
    assert_eq!(
        run(&["retry", "87", "--as", "orchestrator", "--reason", "again"]),
        0
    );
    env.wait_minutes(24 * 60);
    assert_eq!(run(&["claim", "87", "--as", "prep-agent"]), 0);
    let fail = [
        "fail",
        "87",
        "--as",
        "prep-agent",
        "--message",
        "no",
        "--snapshot",
    ];
    assert_eq!(run(&fail), 0);
    // A remote that can't be reached, whose address has the token in it.
    env.git(&env.repo(), &["config", "handoff.remote", &address]);
    for args in [
        &["fetch"][..],
        &["sync"],
        &["status"],
        &["github", "output", "87", "--output", "-"],
    ] {
        run(args);
    }
    let opening = env.file("opening.xml", opening(89));
    assert_eq!(run(&["send", &opening]), 8);
    env.git(&env.repo(), &["config", "--unset", "handoff.remote"]);
    assert!(!said.contains(TOKEN), "{said}");
    for (path, bytes) in files(env.root()) {
        let holds = bytes.windows(TOKEN.len()).any(|w| w == TOKEN.as_bytes());
        assert!(!holds, "{}", path.display());
    }
    // Objects are packed: what they say, too.
    let all = env.git(
        &env.repo(),
        &["cat-file", "--batch", "--batch-all-objects", "--buffer"],
    );
    assert!(!all.contains(TOKEN));
}

#[test]
fn a_whole_run_of_the_action_keeps_no_token() {
    let env = hostile();
    let runner = Runner::new(env);
    let repo = runner.env.repo();
    runner
        .env
        .git(&repo, &["push", "-q", "../owner/desk", "handoffs"]);
    let run = runner.run("handoff-audit.yml", &Event::new("schedule", 1, json!({})));
    run.job("audit", "success").job("tell", "skipped");
    assert!(!run.log.contains(TOKEN) && !run.summary.contains(TOKEN));
    for (path, bytes) in runner.written() {
        let holds = bytes.windows(TOKEN.len()).any(|w| w == TOKEN.as_bytes());
        assert!(!holds, "{}", path.display());
    }
    let report = runner.env.root().join("artifacts/handoffs/handoffs.html");
    let report = fs::read_to_string(report).unwrap();
    assert!(report.starts_with("<!doctype html>"), "{}", &report[..40]);
    let _: Value = runner.kept("comments.json");
}
