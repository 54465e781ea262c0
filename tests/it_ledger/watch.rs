//! Following the ledger, and going on where one left off.

use rustix::process::Signal;
use serde_json::Value;
use test_support::contracts::{Format, opening, prepared};
use test_support::running::Running;
use test_support::workflow::completed;
use test_support::{TestEnvironment, until};

fn parsed(text: &str) -> Vec<Value> {
    let line = |line| serde_json::from_str(line).unwrap();
    text.lines().map(line).collect()
}

/// What a watch that ends by itself prints.
fn told(env: &TestEnvironment, args: &[&str]) -> Vec<Value> {
    let all = [&["watch", "--once"], args].concat();
    env.handoff(&all).success().lines()
}

fn texts(lines: &[Value], field: &str) -> Vec<String> {
    let text = |line: &Value| {
        let found = line.pointer(&format!("/{field}")).and_then(Value::as_str);
        found.unwrap_or("-").to_owned()
    };
    lines.iter().map(text).collect()
}

/// A watch, which says on standard error when it has begun.
fn watching(env: &TestEnvironment) -> Running {
    Running::of(env.program(&["watch"])).waits()
}

#[test]
fn a_whole_ledger_is_told_transition_by_transition() {
    let env = completed(|_| Format::Xml);
    let lines = told(&env, &["--all"]);
    assert_eq!(lines[0]["kind"], "ledger");
    for line in &lines {
        assert_eq!(line["schema"], "git-handoff/2");
    }
    // What the commits' own trailers say, in their order.
    let format = "--format=%(trailers:key=Transition,valueonly)";
    let said = env.git(&env.repo(), &["log", "--reverse", format, "handoffs"]);
    let mut said: Vec<&str> = said.lines().filter(|l| !l.is_empty()).collect();
    let shown: Vec<String> = lines
        .iter()
        .skip(1)
        .map(|l| {
            let word = |field: &str| l[field].as_str().unwrap_or("none").to_owned();
            format!(
                "{} {}..{}",
                l["handoff"]["id"].as_str().unwrap(),
                word("from"),
                word("to")
            )
        })
        .collect();
    let mut shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    assert_eq!(shown.len(), said.len());
    // Within a commit, handoffs come in the order of their numbers.
    said.sort_unstable();
    shown.sort_unstable();
    assert_eq!(shown, said);
    let commits = env.git(&env.repo(), &["rev-list", "--reverse", "handoffs"]);
    let mut named = texts(&lines, "commit");
    named.dedup();
    assert_eq!(named, commits.lines().collect::<Vec<_>>());
    let sent = lines.iter().find(|l| l["handoff"]["id"] == "87.2").unwrap();
    assert_eq!(sent["event"], "send");
    assert_eq!(sent["handoff"]["from"], "prep-agent");
    assert_eq!(sent["handoff"]["to"], "implementer-agent");
    assert_eq!(sent["by"], "prep-agent");
}

#[test]
fn each_commits_lines_are_counted_and_each_commit_can_be_resumed_from() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    env.send(prepared(87)).success();
    let all = told(&env, &["--all"]);
    let counts: Vec<_> = all
        .iter()
        .map(|l| (l["n"].clone(), l["of"].clone()))
        .collect();
    let counts: Vec<(u64, u64)> = counts
        .iter()
        .map(|(n, of)| (n.as_u64().unwrap(), of.as_u64().unwrap()))
        .collect();
    // The start, the opening, the claim, and the relay with its two transitions.
    assert_eq!(counts, [(1, 1), (1, 1), (1, 1), (1, 2), (2, 2)]);
    assert_eq!(texts(&all[3..], "handoff/id"), ["87.1", "87.2"]);
    assert_eq!(texts(&all[3..], "to"), ["completed", "pending"]);
    for (i, line) in all.iter().enumerate() {
        let commit = line["commit"].as_str().unwrap();
        let after = told(&env, &["--from", commit]);
        let end = i + 1 + usize::from(i == 3);
        assert_eq!(after, all[end..], "after line {i}");
        assert_eq!(told(&env, &["--from", &commit[..12]]), after);
    }
    // Without a beginning, only what is new.
    assert!(told(&env, &[]).is_empty());
}

#[test]
fn lines_can_be_asked_for_by_issue_and_by_agent() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.send(opening(88)).success();
    env.claim("87.1", "prep-agent").success();
    env.send(prepared(87)).success();
    let one = told(&env, &["87", "--all"]);
    assert_eq!(texts(&one, "handoff/issue"), ["87", "87", "87", "87"]);
    let mine = told(&env, &["--all", "--agent", "implementer-agent"]);
    assert_eq!(texts(&mine, "handoff/id"), ["87.2"]);
    assert_eq!((&mine[0]["n"], &mine[0]["of"]), (&1.into(), &1.into()));
    env.handoff(&["watch", "99", "--once"]).exits(6);
}

#[test]
fn what_is_no_transition_is_told_as_what_it_is() {
    let env = completed(|_| Format::Xml);
    let before = env.tip();
    let reopen = [
        "reopen",
        "87",
        "--as",
        "orchestrator",
        "--reason",
        "one more",
    ];
    env.handoff(&reopen).success();
    env.handoff(&["protocol", "add", "directive"]).success();
    let lines = told(&env, &["--from", &before]);
    assert_eq!(texts(&lines, "kind"), ["issue", "protocol"]);
    assert_eq!(lines[0]["issue"]["key"], "87");
    assert_eq!(lines[0]["reason"], "one more");
    assert_eq!(lines[1]["name"], "directive");
}

#[test]
fn a_watch_tells_what_happens_meanwhile() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let mut watch = watching(&env);
    env.claim("87.1", "prep-agent").success();
    let line = watch.line();
    assert_eq!(
        (&line["handoff"]["id"], &line["to"]),
        (&"87.1".into(), &"in_progress".into())
    );
    env.git(&env.repo(), &["pack-refs", "--all"]);
    env.send(opening(88)).success();
    assert_eq!(watch.line()["handoff"]["id"], "88.1");
    watch.signal(Signal::TERM);
    assert_eq!(watch.ends(0), (String::new(), String::new()));
    let watch = watching(&env);
    watch.interrupt();
    watch.ends(0);
}

#[test]
fn nothing_is_lost_or_told_twice_however_often_a_watch_is_resumed() {
    const WRITERS: u32 = 4;
    const EACH: u32 = 8;
    let env = TestEnvironment::with_ledger();
    let mut seen: Vec<Value> = Vec::new();
    let mut from = env.tip();
    std::thread::scope(|scope| {
        for writer in 1..=WRITERS {
            let env = &env;
            scope.spawn(move || {
                for number in 1..=EACH {
                    let issue = writer * 100 + number;
                    env.send(opening(issue)).success();
                    env.claim(&format!("{issue}.1"), "prep-agent").success();
                    env.send(prepared(issue)).success();
                }
            });
        }
        let expected = (WRITERS * EACH * 4) as usize;
        while seen.len() < expected {
            let mut watch = Running::silent(env.program(&["watch", "--from", &from]));
            // Some of what comes, and then it is ended amid the rest.
            for _ in 0..7.min(expected - seen.len()) {
                seen.push(watch.line());
            }
            watch.signal(Signal::TERM);
            let (rest, _) = watch.ends(0);
            seen.extend(parsed(&rest));
            let last = seen.last().unwrap();
            assert_eq!(last["n"], last["of"], "it ends with a whole commit");
            last["commit"].as_str().unwrap().clone_into(&mut from);
        }
    });
    let all = told(&env, &["--all"]);
    assert_eq!(seen, all[1..]);
    env.assert_sound();
}

#[test]
fn a_watch_ends_when_nobody_reads() {
    let env = completed(|_| Format::Xml);
    // One that is printing, and one that has nothing to print.
    let mut printing = Running::silent(env.program(&["watch", "--all"]));
    printing.line();
    for mut watch in [printing, watching(&env)] {
        drop(watch.lines);
        let mut status = None;
        until("it ends", || {
            status = watch.child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.and_then(|s| s.code()), Some(0));
    }
}

#[test]
fn a_commit_that_is_not_in_the_history_is_refused() {
    let env = TestEnvironment::with_ledger();
    let refused = |args: &[&str], status: i32, code: &str| {
        let all = [&["watch", "--once", "--json"], args].concat();
        let ran = env.handoff(&all).exits(status);
        assert_eq!(ran.stdout.lines().count(), 1, "one line: {}", ran.shown);
        assert_eq!(ran.json()["error"]["code"], code);
    };
    refused(&["--from", "main"], 10, "not_in_history");
    refused(
        &["--from", "0123456789abcdef0123456789abcdef01234567"],
        6,
        "no_commit",
    );
    refused(&["--from", "nothing"], 6, "no_commit");
    refused(&["--from", "HEAD:README.md"], 6, "no_commit");
    env.handoff(&["watch", "--from", "HEAD", "--all"]).exits(2);
}

#[test]
fn a_branch_that_is_rewritten_or_deleted_ends_the_watch() {
    let env = TestEnvironment::with_ledger();
    let root = env.tip();
    env.send(opening(87)).success();
    let watch = watching(&env);
    env.git(&env.repo(), &["update-ref", "refs/heads/handoffs", &root]);
    let (_, stderr) = watch.ends(10);
    assert!(
        stderr.contains("is not in the branch's history"),
        "{stderr}"
    );

    let watch = watching(&env);
    env.git(&env.repo(), &["update-ref", "-d", "refs/heads/handoffs"]);
    let (_, stderr) = watch.ends(9);
    assert!(
        stderr.contains(&format!("git handoff watch --from {root}")),
        "{stderr}"
    );
    env.handoff(&["watch", "--once"]).exits(9);
}

#[test]
fn a_shallow_clone_is_watched_from_where_it_begins() {
    let env = completed(|_| Format::Xml);
    let url = format!("file://{}", env.repo().display());
    let args = [
        "clone",
        "-q",
        "--depth=3",
        "-b",
        "handoffs",
        &url,
        "shallow",
    ];
    env.git(env.root(), &args);
    let shallow = env.root().join("shallow");
    env.git(&shallow, &["checkout", "-q", "--detach"]);
    let ran = env.handoff_in(&shallow, &["watch", "--all", "--once", "--json"]);
    assert_eq!(ran.exits(6).json()["error"]["code"], "shallow");
    let ran = env.handoff_in(&shallow, &["watch", "--from", "handoffs~1", "--once"]);
    assert_eq!(
        parsed(&ran.success().stdout),
        told(&env, &["--from", "handoffs~1"])
    );
}
