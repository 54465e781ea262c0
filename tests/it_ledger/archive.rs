//! Issues that ended leave the tip, are found in history, and come back.

use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::contracts::{Format, opening, sample};
use test_support::team::{Folder, at_once, commits, exits, with_protocol};
use test_support::workflow::completed;
use test_support::{TestEnvironment, exchange};

/// Opens an issue and gives it up.
fn end(env: &TestEnvironment, issue: u32) {
    env.send(opening(issue)).success();
    let id = format!("{issue}.1");
    let reject = ["reject", &id, "--as", "prep-agent", "--reason", "no"];
    env.handoff(&reject).success();
    let issue = issue.to_string();
    let cancel = ["cancel", &issue, "--as", "issue-manager", "--reason", "no"];
    env.handoff(&cancel).success();
}

/// A ledger in which issue 87 was completed three days ago, and 88 and 90 are open.
fn with_completed() -> TestEnvironment {
    let env = completed(|_| Format::Xml);
    env.wait_minutes(3 * 24 * 60);
    env.send(opening(88)).success();
    env.send(opening(90)).success();
    env
}

/// The paths at the tip below a folder.
fn paths(env: &TestEnvironment, folder: &str) -> String {
    let list = ["ls-tree", "-r", "--name-only", "handoffs", folder];
    env.git(&env.repo(), &list)
}

fn sound(env: &TestEnvironment) {
    env.assert_sound();
    let fsck = env.git_any(&env.repo(), &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(fsck.status, 0, "{}{}", fsck.stdout, fsck.stderr);
}

#[test]
fn ended_issues_leave_the_tip_and_an_index_says_where_they_are() {
    let env = with_completed();
    let parent = env.tip();
    let mut text = String::new();
    let mut ran = |args: &[&str], exit| {
        text += &env.handoff(args).exits(exit).shown;
    };
    ran(&["archive"], 6);
    ran(&["archive", "--older", "90d"], 6);
    ran(&["archive", "--before", "2036-01-01"], 2);
    ran(&["archive", "88"], 4);
    ran(&["archive", "89"], 6);
    ran(&["archive", "87", "--older", "5d"], 4);
    ran(&["archive", "--older", "2d", "--limit", "0"], 2);
    ran(&["archive", "--older", "2d", "--dry-run"], 0);
    assert_eq!(env.tip(), parent, "nothing was written");
    ran(&["archive", "--older", "2d"], 0);
    ran(&["archive", "--older", "2d"], 6);
    ran(&["archive", "87"], 6);
    assert_snapshot!(text, @"
    $ git handoff archive
    --- stderr
    error: no protocol here says when issues are archived
    hint: say how old they must be: `git handoff archive --older 90d`; `git handoff protocol set NAME time.archive_after_seconds SECONDS` says it for good
    --- exit 6
    $ git handoff archive --older 90d
    --- stderr
    error: no issue in the ledger's newest state ended before 2025-12-05 09:35:00Z
    hint: nothing was written; `git handoff status` shows what is open
    --- exit 6
    $ git handoff archive --before 2036-01-01
    --- stderr
    error: 2036-01-01 00:00:00Z is in the future
    hint: say a time that has passed; see `git handoff archive -h`
    --- exit 2
    $ git handoff archive 88
    --- stderr
    error: cannot archive: issue 88 is open
    hint: nothing was written; `git handoff status 88` shows what it waits for
    --- exit 4
    $ git handoff archive 89
    --- stderr
    error: there is no issue 89
    hint: `git handoff list` shows every issue
    --- exit 6
    $ git handoff archive 87 --older 5d
    --- stderr
    error: cannot archive: issue 87 was last written to at 2026-03-02 09:30:00Z, which is not before 2026-02-28 09:39:00Z
    hint: nothing was written; leave out the time to archive it all the same; see `git handoff explain not_archivable`
    --- exit 4
    $ git handoff archive --older 2d --limit 0
    --- stderr
    error: invalid value '0' for '--limit <COUNT>': number would be zero for non-zero type

    For more information, see `git handoff archive -h`.
    --- exit 2
    $ git handoff archive --older 2d --dry-run
    87  completed  2026-03-02 09:30:00Z  Export delivery history as CSV
    would archive 1 issue
    $ git handoff archive --older 2d
    archived 1 issue
      commit [commit]: 1 issue that ended before 2026-03-03 09:43:00Z
    $ git handoff archive --older 2d
    --- stderr
    error: no issue in the ledger's newest state ended before 2026-03-03 09:44:00Z
    hint: nothing was written; `git handoff status` shows what is open
    --- exit 6
    $ git handoff archive 87
    --- stderr
    error: these issues are archived already
    hint: nothing was written; `git handoff status` shows what is open
    --- exit 6
    ");
    assert_eq!(paths(&env, "issues/87/"), "");
    assert_eq!(paths(&env, "archived/"), "archived/87/00.jsonl\n");
    let index = env.git(&env.repo(), &["show", "handoffs:archived/87/00.jsonl"]);
    let line: Value = serde_json::from_str(&index).unwrap();
    assert_eq!(line["issue"], "87");
    assert_eq!(line["status"], "completed");
    assert_eq!(line["commit"], json!(parent));
    let tree = ["rev-parse", &format!("{parent}:issues/87/00/87")];
    assert_eq!(line["tree"], env.git(&env.repo(), &tree).trim());
    let trailers = "--format=%s%n%(trailers:only,unfold)%an";
    let log = env.git(&env.repo(), &["log", "-1", trailers, "handoffs"]);
    assert_snapshot!(log, @r"
    Archive 1 issue that ended before 2026-03-03T09:43:00Z
    Event: archive
    Archived-Issues: 1
    Archived-Before: 2026-03-03T09:43:00Z
    Robin Doe
    ");
    sound(&env);
}

#[test]
fn every_command_finds_an_archived_issue_as_it_was() {
    let env = with_completed();
    let commands: &[&[&str]] = &[
        &["show", "87.5"],
        &["show", "87.5", "--contract"],
        &["show", "87.5", "--json"],
        &["status", "87", "--json"],
        &["context", "87"],
        &["context", "87", "--json"],
        &["list", "--issue", "87"],
        &["gate", "--issue", "87", "--require", "completed"],
        #[cfg(feature = "report")]
        &["graph", "87"],
        #[cfg(feature = "report")]
        &["metrics", "--json"],
        &["inbox", "--as", "closer-agent"],
        &["log", "87", "--json"],
        &["watch", "--all", "--once", "--json", "87"],
        &[
            "new",
            "--issue",
            "87",
            "--from",
            "issue-manager",
            "--to",
            "prep-agent",
        ],
        &["next", "87"],
        &["verify", "87", "--json"],
    ];
    let answers = || -> Vec<(i32, String)> {
        let answer = |args: &&[&str]| {
            let ran = env.handoff(args);
            (ran.status, ran.stdout)
        };
        commands.iter().map(answer).collect()
    };
    // The clock does not move, so that ages are the same.
    env.pace(0);
    let before = answers();
    env.handoff(&["archive", "--older", "2d"]).success();
    for ((args, was), is) in commands.iter().zip(before).zip(answers()) {
        if args[0] == "verify" {
            // The step that archived it is about it too.
            assert_eq!(is.0, 0, "{}", is.1);
            continue;
        }
        let is = (is.0, is.1.replace(&env.tip(), "TIP"));
        let tip = env.git(&env.repo(), &["rev-parse", "handoffs~1"]);
        let was = (was.0, was.1.replace(tip.trim(), "TIP"));
        assert_eq!(is, was, "{args:?}");
    }
    let all = env.data(&["list"]);
    assert_eq!(all["handoffs"].as_array().unwrap().len(), 2);
    let all = env.data(&["list", "--archived"]);
    assert!(all["handoffs"].as_array().unwrap().len() > 10);
    #[cfg(feature = "report")]
    {
        let page = env.root().join("report.html");
        env.handoff(&["report", "--issue", "87", "-o", page.to_str().unwrap()])
            .success();
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains("Export delivery history as CSV"));
    }
    // git's own history of the folder goes on to where it left the tip.
    let args = [
        "log",
        "--format=%s",
        "-1",
        "handoffs",
        "--",
        "issues/87/00/87",
    ];
    let last = env.git(&env.repo(), &args);
    assert!(
        last.starts_with("Archive 1 issue that ended before"),
        "{last}"
    );
    let log = env.data(&["log", "--event", "archive"]);
    assert_eq!(log["steps"].as_array().unwrap().len(), 1);
    let followed = env
        .handoff(&["watch", "--all", "--once", "--json"])
        .success();
    let last = followed.lines().pop().unwrap();
    assert_eq!(last["kind"], "archive");
    assert_eq!(last["by"], "Robin Doe");
}

#[test]
fn a_step_on_an_archived_issue_brings_it_back_first() {
    let env = with_completed();
    env.handoff(&["archive", "--older", "2d"]).success();
    let archived = commits(&env);
    // What is refused, or is there already, writes nothing.
    let closed = sample("workflow-complete", Format::Xml, 87);
    env.send(&closed).success().says("already");
    env.send(opening(87)).success().says("already");
    env.send(sample("issue-manager-to-prep-agent", Format::Json, 87))
        .exits(4)
        .says("completed");
    env.handoff(&["claim", "87.3", "--as", "fixer-agent"])
        .exits(4);
    assert_eq!(commits(&env), archived);
    assert_eq!(paths(&env, "issues/87/"), "");
    let reopen = [
        "reopen",
        "87",
        "--as",
        "closer-agent",
        "--reason",
        "reverted",
    ];
    env.handoff(&reopen).success();
    assert_eq!(commits(&env), archived + 2);
    assert_eq!(paths(&env, "archived"), "");
    let log = env.git(
        &env.repo(),
        &["log", "-1", "--format=%s%n%(trailers)%an", "handoffs~1"],
    );
    let before = env.git(&env.repo(), &["rev-parse", "handoffs~3"]);
    assert_snapshot!(log.replace(before.trim(), "[before]"), @r"
    Bring issue 87 back from the archive
    Event: unarchive
    Issue: 87
    Archived-Commit: [before]
    Robin Doe
    ");
    let steps = env.data(&["log", "87"])["steps"].clone();
    let opened = steps.as_array().unwrap().last().unwrap()["event"].clone();
    assert_eq!(opened, "send", "the first step of the issue is still shown");
    // It is an issue like any other: it goes on, ends and is archived again.
    env.handoff(&["cancel", "87", "--as", "issue-manager", "--reason", "no"])
        .success();
    env.handoff(&["archive", "87"]).success();
    env.handoff(&["annotate", "87", "--as", "closer-agent", "--note", "see 90"])
        .success();
    assert_eq!(paths(&env, "archived"), "");
    sound(&env);
}

#[test]
fn issues_that_share_a_file_of_the_index_come_and_go_one_by_one() {
    let env = TestEnvironment::with_ledger();
    for issue in [10_042, 30_042, 20_042] {
        end(&env, issue);
    }
    for issue in ["20042", "30042", "10042"] {
        env.handoff(&["archive", issue]).success();
    }
    let index = || -> Vec<String> {
        let file = paths(&env, "archived/");
        let file = format!("handoffs:{}", file.trim());
        let text = env.git(&env.repo(), &["show", &file]);
        let key = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["issue"].as_str().unwrap().to_owned()
        };
        text.lines().map(key).collect()
    };
    assert_eq!(index(), ["10042", "20042", "30042"]);
    let reopen = [
        "reopen",
        "20042",
        "--as",
        "issue-manager",
        "--reason",
        "yes",
    ];
    env.handoff(&reopen).success();
    assert_eq!(index(), ["10042", "30042"]);
    // The oldest go first.
    let cancel = ["cancel", "20042", "--as", "issue-manager", "--reason", "no"];
    env.handoff(&cancel).success();
    end(&env, 40_042);
    env.wait_minutes(60);
    let one = env.data(&["archive", "--older", "1m", "--limit", "1"]);
    assert_eq!(one["count"], 1);
    assert_eq!(one["steps"][0]["issues"][0]["key"], "20042");
    sound(&env);
}

#[test]
fn of_those_who_archive_and_reopen_at_once_none_undoes_the_other() {
    for _ in 0..4 {
        let env = with_completed();
        let archive = ["archive", "--older", "2d", "--json"].map(str::to_owned);
        let reopen = ["reopen", "87", "--as", "closer-agent", "--reason", "again"];
        let reopen = reopen.map(str::to_owned).to_vec();
        let done = at_once(&env, &[archive.to_vec(), reopen, archive.to_vec()]);
        // The reopening is made, whoever comes first.
        assert_eq!(done[1].status.code(), Some(0));
        assert!(exits(&done).iter().all(|code| [0, 6].contains(code)));
        assert_eq!(env.data(&["status", "87"])["issue"]["status"], "open");
        assert_eq!(paths(&env, "archived"), "");
        sound(&env);
    }
}

#[cfg(feature = "exchange")]
#[test]
fn an_export_has_the_steps_of_archived_issues() {
    let env = with_completed();
    env.handoff(&["archive", "--older", "2d"]).success();
    let reopen = ["reopen", "87", "--as", "closer-agent", "--reason", "again"];
    env.handoff(&reopen).success();
    env.handoff(&["cancel", "87", "--as", "issue-manager", "--reason", "no"])
        .success();
    env.handoff(&["archive", "87"]).success();
    let dir = env.root().join("exported");
    let dir = dir.to_str().unwrap();
    env.handoff(&["export", "--format", "files", dir]).success();
    let again = env.root().join("again");
    std::fs::create_dir(&again).unwrap();
    env.git(&again, &["init", "-q"]);
    env.handoff_in(&again, &["init"]).success();
    env.handoff_in(&again, &["import", dir]).success();
    env.handoff_in(&again, &["verify"]).success();
    let here = env
        .handoff(&["show", "87.9", "--contract"])
        .success()
        .stdout;
    let there = env
        .handoff_in(&again, &["show", "87.9", "--contract"])
        .success();
    assert_eq!(here, there.stdout);
    let cancelled = env.handoff_in(&again, &["status", "87", "--json"]).json();
    assert_eq!(cancelled["data"]["issue"]["status"], "cancelled");
    // An import into the ledger itself knows what is archived.
    let tip = env.tip();
    env.handoff(&["import", dir]).success();
    assert_eq!(env.tip(), tip);
}

#[test]
fn a_checked_out_branch_and_a_repository_that_cannot_be_written_are_refused() {
    let env = with_completed();
    let tip = env.tip();
    let worktree = env.root().join("ledger");
    let add = [
        "worktree",
        "add",
        "-q",
        worktree.to_str().unwrap(),
        "handoffs",
    ];
    env.git(&env.repo(), &add);
    env.handoff(&["archive", "--older", "2d"])
        .exits(9)
        .says("checked out");
    assert_eq!(env.tip(), tip);
}

#[test]
fn a_protocol_says_when_its_issues_are_archived() {
    let env = with_completed();
    let set = [
        "protocol",
        "set",
        "issue-to-pr",
        "time.archive_after_seconds",
        "172800",
    ];
    env.handoff(&set).success();
    let done = env.data(&["archive"]);
    assert_eq!(done["count"], 1);
    assert_eq!(done["steps"][0]["issues"][0]["key"], "87");
    env.handoff(&["archive"]).exits(6).says("no issue");
    env.handoff(&[
        "protocol",
        "set",
        "issue-to-pr",
        "time.archive_after_seconds",
        "0",
    ])
    .exits(3)
    .says("a time has from 1");
    env.handoff(&[
        "protocol",
        "set",
        "issue-to-pr",
        "time.archive_after_seconds",
        "default",
    ])
    .success();
    env.handoff(&["archive"]).exits(6).says("no protocol here");
    sound(&env);
}

#[test]
fn who_has_yet_to_be_told_is_told_no_more_until_the_issue_comes_back() {
    let env = with_protocol("delegation");
    env.pace(1);
    let trace = "7b1c9f52-0d3e-4f38-9c64-d07e1f2a3b4c";
    let mut request = exchange::sample("delegation", "request");
    request["traceId"] = json!(trace);
    let mut answer = exchange::sample("delegation", "response");
    answer["traceId"] = json!(trace);
    let asker = request["sourceAgent"].as_str().unwrap();
    let to = request["handoffTo"].as_str().unwrap();
    answer["respondingAgent"] = json!(to);
    let id = format!("{trace}.1");
    env.send(request.to_string()).success();
    env.handoff(&["claim", &id, "--as", to, "--lease", "1h"])
        .success();
    env.send(answer.to_string()).success();
    let waits = paths(&env, "awaiting/");
    assert!(waits.contains(asker), "{waits}");
    let told = || {
        let inbox = env.data(&["inbox", "--as", asker]);
        inbox["attention"].as_array().unwrap().len()
    };
    assert_eq!(told(), 1);
    env.handoff(&["archive", trace]).success();
    assert_eq!(paths(&env, "awaiting/"), "");
    assert_eq!(told(), 0, "it is no open work");
    let reopen = ["reopen", trace, "--as", to, "--reason", "wrong"];
    let note = ["annotate", trace, "--as", to, "--note", "it was wrong"];
    if env.handoff(&reopen).status != 0 {
        env.handoff(&note).success();
    }
    let back = env.git(
        &env.repo(),
        &["show", "--format=%s", "--name-only", "handoffs~1"],
    );
    assert!(back.starts_with("Bring issue"), "{back}");
    assert!(back.contains(waits.trim()), "{back}");
    sound(&env);
}

#[test]
fn a_time_that_is_not_one_is_refused_and_nothing_is_written() {
    let env = with_completed();
    let tip = env.tip();
    let mut text = String::new();
    let mut ran = |args: &[&str]| {
        let args = [&["archive"], args].concat();
        text += env.handoff(&args).exits(2).stderr.lines().next().unwrap();
        text += "\n";
    };
    ran(&["--older", "0s"]);
    ran(&["--older", "-5d"]);
    ran(&["--older", "90"]);
    ran(&["--older", "11y"]);
    ran(&["--older", "soon"]);
    ran(&["--older", ""]);
    ran(&["--before", "yesterday"]);
    ran(&["--before", "2026-02-30"]);
    ran(&["--before", "2026-03-02T25:00:00Z"]);
    ran(&["--before", ""]);
    ran(&["--before", "2036-01-01"]);
    ran(&["--before", "2026-03-02", "--older", "2d"]);
    ran(&["--before", "2026-03-02", "--limit", "-1"]);
    ran(&["8 7"]);
    assert_snapshot!(text, @r#"
    error: invalid value '0s' for '--older <DURATION>': "0s" is zero; a duration must be longer
    error: unexpected argument '-5' found
    error: invalid value '90' for '--older <DURATION>': "90" is not a duration (time unit needed, for example 90sec or 90ms): write 90s, 15m or 2h
    error: invalid value '11y' for '--older <DURATION>': "11y" is longer than ten years
    error: invalid value 'soon' for '--older <DURATION>': "soon" is not a duration (expected number at 0): write 90s, 15m or 2h
    error: invalid value '' for '--older <DURATION>': "" is not a duration (value was empty): write 90s, 15m or 2h
    error: invalid value 'yesterday' for '--before <TIME>': "yesterday" is not a time: write 2026-03-04, 2026-03-04T05:06:07Z, or how long ago: 7d
    error: invalid value '2026-02-30' for '--before <TIME>': "2026-02-30" is not a time: write 2026-03-04, 2026-03-04T05:06:07Z, or how long ago: 7d
    error: invalid value '2026-03-02T25:00:00Z' for '--before <TIME>': "2026-03-02T25:00:00Z" is not a time: write 2026-03-04, 2026-03-04T05:06:07Z, or how long ago: 7d
    error: invalid value '' for '--before <TIME>': "" is not a time: write 2026-03-04, 2026-03-04T05:06:07Z, or how long ago: 7d
    error: 2036-01-01 00:00:00Z is in the future
    error: the argument '--before <TIME>' cannot be used with '--older <DURATION>'
    error: unexpected argument '-1' found
    error: issue key "8 7" may contain only letters, digits, `_` and `-`, the first a letter or digit
    "#);
    assert_eq!(env.tip(), tip);
    // The earliest of all times is one.
    env.handoff(&["archive", "--before", "0001-01-01"]).exits(6);
    env.handoff(&["archive", "--older", "10y"]).exits(6);
    assert_eq!(env.tip(), tip);
    sound(&env);
}

#[test]
fn a_rule_about_archiving_that_is_not_one_comes_into_no_ledger() {
    let env = with_completed();
    let folder = Folder::copy(&env, "issue-to-pr", "rules");
    folder.define(|definition| definition["version"] = json!("9.0.0"));
    for rule in [
        json!({"archive_after_seconds": 0}),
        json!({"archive_after_seconds": -1}),
        json!({"archive_after_seconds": 1.5}),
        json!({"archive_after_seconds": "90d"}),
        json!({"archive_after_seconds": 400_000_000}),
        json!({"archive_after_seconds": 1e300}),
        json!({"archive_after": 86_400}),
        json!(86_400),
    ] {
        folder.define(|definition| {
            definition["limits"] = rule.clone();
            // One of them is about rounds.
            definition["alerts"] = json!([]);
        });
        let refused = folder.refused("update");
        assert_eq!(refused.says(), (3, "protocol_refused"), "{rule}");
        // Beside it, a warning about rounds that nothing limits.
        let found = &refused.findings;
        let mut limits = found.iter().filter(|one| one.contains(" /limits"));
        assert!(limits.next().is_some() && found.len() < 3, "{found:?}");
    }
    // A rule that says nothing is one, and so is none.
    for (patch, rule) in [
        json!({}),
        json!({"archive_after_seconds": null}),
        json!(null),
    ]
    .into_iter()
    .enumerate()
    {
        folder.define(|definition| {
            definition["version"] = json!(format!("9.0.{patch}"));
            definition["limits"] = rule;
        });
        folder.put("update").success();
        env.handoff(&["archive"]).exits(6).says("no protocol here");
    }
    sound(&env);
}
