//! Lists end: each is cut, and read on from where it was cut, by its cursor.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::team::{commits, sent};

/// Opens these issues, in one process. Of the first, each second is claimed.
fn open(env: &TestEnvironment, issues: RangeInclusive<u32>, claimed: u32) {
    let dir = env.root().join(format!("from-{}", issues.start()));
    fs::create_dir_all(&dir).unwrap();
    let mut lines = vec![json!({ "version": 1, "default_protocol": "issue-to-pr" })];
    // Sent in the same second: their order is that of their numbers.
    let at = "2026-01-05T10:00:00+00:00";
    for issue in issues {
        let file = format!("{issue}.xml");
        fs::write(dir.join(&file), opening(issue)).unwrap();
        let sha256 = handoff::base::digest(opening(issue).as_bytes());
        let step = |by: &str, request: &Value| json!({ "at": at, "by": by, "worker": "elsewhere", "request": request });
        let send = step("issue-manager", &json!({ "send": {} }));
        let contract =
            json!({ "file": file, "format": "xml", "sha256": sha256, "protocol": "issue-to-pr" });
        let key = issue.to_string();
        lines.push(
            json!({ "issue": { "key": key, "number": 1, "step": send, "contract": contract } }),
        );
        if issue <= claimed {
            let claim = json!({ "change": { "handoff": 1, "event": "claim", "arguments": { "lease": 14_400 } } });
            let step = step("prep-agent", &claim);
            lines.push(json!({ "issue": { "key": key, "number": 2, "step": step } }));
        }
    }
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(dir.join("steps.jsonl"), lines).unwrap();
    env.handoff(&["import", dir.to_str().unwrap()]).success();
}

fn ledger(issues: u32) -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    open(&env, 1..=issues, 7);
    env
}

/// What a list's rows are called, in the members that have them.
fn names(data: &Value, lists: &[&str], name: &str) -> Vec<String> {
    let rows = lists
        .iter()
        .flat_map(|list| data[*list].as_array().unwrap());
    let name = |row: &Value| row[name].as_str().unwrap().to_owned();
    rows.map(name).collect()
}

/// All pages of a list, by its cursor.
fn pages(env: &TestEnvironment, command: &[&str], list: &str, name: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut args = command.to_vec();
        if let Some(cursor) = &cursor {
            args.extend(["--after", cursor]);
        }
        let data = env.data(&args);
        pages.push(names(&data, &[list], name));
        let Some(next) = data["cursor"].as_str() else {
            assert!(data["cursor"].is_null(), "{data}");
            return pages;
        };
        cursor = Some(next.to_owned());
    }
}

#[test]
fn each_list_is_read_whole_by_its_cursor() {
    let env = ledger(123);
    let ids: Vec<String> = (1..=123).map(|issue| format!("{issue}.1")).collect();
    for command in [
        &["list"][..],
        &["list", "--state", "pending", "--state", "in_progress"],
        &["status"],
        &["inbox", "--as", "prep-agent"],
    ] {
        let pages = pages(&env, command, "handoffs", "id");
        let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
        assert_eq!(sizes, [50, 50, 23], "{command:?}");
        assert_eq!(pages.concat(), ids, "{command:?}");
        let data = env.data(command);
        assert_eq!(data["total"], 123, "{command:?}");
        let whole = env.data(&[command, &["--limit", "0"]].concat());
        assert_eq!(names(&whole, &["handoffs"], "id"), ids, "{command:?}");
        assert!(whole["cursor"].is_null(), "{command:?}");
    }
    let log = pages(&env, &["log", "-n", "60"], "steps", "commit");
    let sizes: Vec<usize> = log.iter().map(Vec::len).collect();
    assert_eq!(sizes, [60, 60, commits(&env) - 120]);
    let all: BTreeSet<String> = log.concat().into_iter().collect();
    assert_eq!(all.len(), commits(&env), "each step once");
    let of_issue = pages(&env, &["log", "3", "-n", "1"], "steps", "subject");
    assert_eq!(of_issue.len(), 2, "{of_issue:?}");
}

#[test]
fn a_text_ends_with_its_count_and_the_command_for_the_rest() {
    let env = ledger(123);
    for (command, rows) in [
        ("list", 123),
        ("status", 123),
        ("inbox --as prep-agent", 123),
        ("log", commits(&env)),
        ("list --issue 3", 1),
    ] {
        let mut command = format!("git handoff {command}");
        let mut seen = 0;
        loop {
            let args: Vec<&str> = command.split(' ').skip(2).collect();
            let text = env.handoff(&args).success().stdout;
            // A row begins with an id or a commit.
            let is_log = command.contains(" log");
            let is_row = |line: &&str| {
                line.starts_with(|c: char| c.is_ascii_hexdigit())
                    && (line.contains(" → ") || is_log && !line.contains(" shown; "))
            };
            let table: Vec<&str> = text.lines().filter(|l| l.contains(" shown; ")).collect();
            let shown = text.lines().filter(is_row).count();
            seen += shown;
            let Some(line) = table.first() else {
                break;
            };
            assert_eq!(shown, 50, "{text}");
            if !command.contains(" log") {
                assert!(line.starts_with("50 of 123 shown; the rest: "), "{line}");
            }
            assert_eq!(text.lines().last(), Some(*line), "{text}");
            line.split("the rest: ")
                .nth(1)
                .unwrap()
                .clone_into(&mut command);
        }
        assert_eq!(seen, rows, "{command}");
    }
}

#[test]
fn rows_that_come_between_two_pages_repeat_none() {
    let env = ledger(80);
    for command in [&["list"][..], &["status"], &["inbox", "--as", "prep-agent"]] {
        let first = env.data(command);
        let newest = env.data(&["list", "--limit", "0"])["total"]
            .as_u64()
            .unwrap()
            + 1;
        sent(&env, opening(u32::try_from(newest).unwrap()));
        let cursor = first["cursor"].as_str().unwrap();
        let rest = env.data(&[command, &["--after", cursor]].concat());
        let mut seen = names(&first, &["handoffs"], "id");
        seen.extend(names(&rest, &["handoffs"], "id"));
        let all: Vec<String> = (1..=newest).map(|issue| format!("{issue}.1")).collect();
        assert_eq!(seen, all, "{command:?}");
        assert_eq!(rest["total"], newest);
    }
}

#[test]
fn a_cursor_that_no_row_has_is_refused_with_the_command_for_the_first_page() {
    let env = ledger(3);
    for (command, first) in [
        (&["list", "--after", "9.1"][..], "git handoff list"),
        (&["status", "--after", "x"], "git handoff status"),
        (
            &["inbox", "--as", "prep-agent", "--after=9.1"],
            "git handoff inbox --as prep-agent",
        ),
        (&["log", "--after", "0000"], "git handoff log"),
        (&["verify", "--after", "1"], "git handoff verify"),
        (
            &["protocol", "list", "--after", "x"],
            "git handoff protocol list",
        ),
        (&["refused", "--after", "x"], "git handoff refused"),
    ] {
        let ran = env.handoff(command).exits(2);
        let hint = format!("start with the first page: `{first}`");
        assert!(ran.stderr.contains(&hint), "{}", ran.shown);
    }
    let empty = env.data(&["list", "--after", "3.1"]);
    assert_eq!(
        (&empty["handoffs"], &empty["total"]),
        (&json!([]), &json!(3))
    );
}

#[test]
fn what_needs_somebody_is_cut_too() {
    let env = TestEnvironment::with_ledger();
    open(&env, 1..=70, 70);
    env.wait_minutes(60 * 24);
    let data = env.data(&["status"]);
    let attention = |data: &Value| data["attention"].as_array().unwrap().len();
    assert_eq!(
        (attention(&data), &data["attention_total"]),
        (50, &json!(70))
    );
    let cursor = data["cursor"].as_str().unwrap();
    let rest = env.data(&["status", "--after", cursor]);
    assert_eq!(
        (attention(&rest), &rest["attention_total"]),
        (0, &json!(70))
    );
    assert_eq!(attention(&env.data(&["status", "--limit", "0"])), 70);
    let text = env.handoff(&["status"]).success().stdout;
    assert!(
        text.contains("  and 65 more (--limit 0 lists all)\n"),
        "{text}"
    );
    assert!(text.lines().count() < 130, "{text}");
    // Tables of figures have no pages.
    #[cfg(feature = "report")]
    {
        let by_issue = ["metrics", "--by", "issue"];
        let text = env.handoff(&by_issue).success().stdout;
        let rest = "50 of 70 shown; the rest: git handoff metrics --by issue --json";
        let cut = text.lines().filter(|line| *line == rest);
        assert_eq!(cut.count(), 2, "the issues and what is stuck: {text}");
        assert_eq!(env.data(&by_issue)["groups"].as_array().unwrap().len(), 70);
    }
    // What a step did is listed only once.
    let reaped = env.handoff(&["reap"]).success();
    let last = reaped.stdout.lines().last().unwrap();
    let rest = "git handoff log --event expire";
    assert_eq!(last, format!("50 of 70 shown; the rest: {rest}"));
    let steps = env.data(&["log", "--event", "expire", "--limit", "0"]);
    assert_eq!(steps["steps"].as_array().unwrap().len(), 70);
}
