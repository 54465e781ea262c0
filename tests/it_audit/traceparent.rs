//! The trace that a step was made in: recorded, kept wherever the step goes, and
//! covered by the audit.

use serde_json::Value;
use test_support::contracts::{opening, prepared};
use test_support::tamper::{Ledger, folder, set};
use test_support::{Ran, TestEnvironment};

const FIRST: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const SECOND: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Runs a command where the environment names a trace.
fn within(env: &TestEnvironment, trace: &str, args: &[&str], input: Option<&str>) -> Ran {
    let mut command = env.program(args);
    command.env("TRACEPARENT", trace);
    env.run(command, args, input.map(str::as_bytes))
}

/// The traces of a handoff's transitions.
fn recorded(env: &TestEnvironment, id: &str) -> Vec<Option<String>> {
    let data = env.data(&["show", id]);
    let transitions = data["record"]["transitions"].as_array().unwrap();
    let trace = |t: &Value| t["traceparent"].as_str().map(str::to_owned);
    transitions.iter().map(trace).collect()
}

fn some(trace: &str) -> Option<String> {
    Some(trace.to_owned())
}

#[test]
fn each_change_that_a_step_makes_names_its_trace() {
    let env = TestEnvironment::with_ledger();
    within(&env, FIRST, &["send", "-"], Some(&opening(87))).success();
    env.claim("87.1", "prep-agent").success();
    within(&env, SECOND, &["send", "-"], Some(&prepared(87))).success();
    // Sending onward completed what the sender held, in the same trace.
    assert_eq!(recorded(&env, "87.1"), [some(FIRST), None, some(SECOND)]);
    assert_eq!(recorded(&env, "87.2"), [some(SECOND)]);
    let watched = env.handoff(&["watch", "--once", "--all", "87"]).success();
    let line = |line| serde_json::from_str::<Value>(line).unwrap();
    let named: Vec<Value> = watched.stdout.lines().map(line).collect();
    let named: Vec<Option<&str>> = named.iter().map(|l| l["traceparent"].as_str()).collect();
    let second = Some(SECOND);
    assert_eq!(named, [Some(FIRST), None, second, second]);
    env.assert_sound();
}

#[test]
fn a_later_version_is_kept_as_the_specification_asks() {
    let env = TestEnvironment::with_ledger();
    let later = format!("{}-and-more", FIRST.replacen("00-", "7a-", 1));
    let ran = within(&env, &later, &["send", "-"], Some(&opening(87))).success();
    assert!(!ran.stderr.contains("TRACEPARENT"), "{}", ran.shown);
    assert_eq!(recorded(&env, "87.1"), [some(FIRST)]);
}

#[test]
fn what_is_no_trace_is_ignored_and_told() {
    for wrong in [
        "nonsense",
        &FIRST.to_uppercase(),
        &FIRST.replacen("00-", "ff-", 1),
        &FIRST.replace("00f067aa0ba902b7", "0000000000000000"),
        "\u{1b}[31m",
    ] {
        let env = TestEnvironment::with_ledger();
        let ran = within(&env, wrong, &["send", "-"], Some(&opening(87))).success();
        let said: Vec<&str> = ran.stderr.lines().collect();
        assert!(said[0].starts_with("TRACEPARENT is ignored: "), "{said:?}");
        assert!(!ran.stderr.contains('\u{1b}'), "{said:?}");
        assert_eq!(recorded(&env, "87.1"), [None]);
    }
    // One that is set and empty is none, and commands that only read don't look.
    let env = TestEnvironment::with_ledger();
    let ran = within(&env, "", &["send", "-"], Some(&opening(87))).success();
    assert!(!ran.stderr.contains("TRACEPARENT"), "{}", ran.shown);
    let ran = within(&env, "nonsense", &["list"], None).success();
    assert_eq!(ran.stderr, "");
}

#[test]
fn sent_again_in_another_trace_it_is_the_same_contract() {
    let env = TestEnvironment::with_ledger();
    within(&env, FIRST, &["send", "-"], Some(&opening(87))).success();
    let tip = env.tip();
    within(&env, SECOND, &["send", "-"], Some(&opening(87))).success();
    within(&env, "", &["send", "-"], Some(&opening(87))).success();
    assert_eq!(env.tip(), tip);
    assert_eq!(recorded(&env, "87.1"), [some(FIRST)]);
}

#[test]
fn whoever_notices_a_lease_that_ran_out_does_not_lend_it_a_trace() {
    let env = test_support::time::own("delegation", |_| {});
    let asks = test_support::time::asks(
        test_support::time::WRITER,
        test_support::time::RESEARCH,
        &[("/timeoutMs", 120_000.into())],
    );
    env.send(&asks).success();
    let id = test_support::time::traced(1);
    env.claim(&id, test_support::time::RESEARCH).success();
    env.wait_minutes(5);
    within(&env, FIRST, &["reap"], None).success();
    assert_eq!(recorded(&env, &id), [None, None, None]);
    env.assert_sound();
}

#[test]
fn an_export_that_is_imported_keeps_it() {
    let env = TestEnvironment::with_ledger();
    within(&env, FIRST, &["send", "-"], Some(&opening(87))).success();
    within(&env, SECOND, &["claim", "87.1", "--as", "prep-agent"], None).success();
    test_support::time::assert_goes_there_and_back(&env, "issue-to-pr");
}

#[cfg(feature = "exchange")]
#[test]
fn who_imports_lends_what_is_imported_no_trace() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let dir = env.root().join("out");
    let dir = dir.to_str().unwrap();
    env.handoff(&["export", "--format", "archive", dir])
        .success();
    env.git(env.root(), &["init", "-q", "other"]);
    let other = env.root().join("other");
    env.handoff_in(&other, &["init"]).success();
    let mut command = env.program(&["import", dir]);
    command.env("TRACEPARENT", FIRST).current_dir(&other);
    env.run(command, &["import", dir], None).success();
    let shown = env.handoff_in(&other, &["show", "87.1", "--json"]);
    assert!(!shown.success().stdout.contains("traceparent"));
}

#[test]
fn a_step_that_is_made_again_at_a_sync_keeps_the_trace_of_its_maker() {
    let env = TestEnvironment::with_repository();
    let bare = env.root().join("bare.git");
    env.git(env.root(), &["init", "-q", "--bare", "bare.git"]);
    let address = bare.to_str().unwrap();
    env.git(&env.repo(), &["remote", "add", "origin", address]);
    env.handoff(&["init", "--remote", "origin"]).success();
    env.git(env.root(), &["clone", "-q", address, "other"]);
    let other = env.root().join("other");
    env.handoff_in(&other, &["init", "--remote", "origin"])
        .success();
    let offline = ["send", "-", "--offline"];
    within(&env, FIRST, &offline, Some(&opening(87))).exits(8);
    // The other clone is first, so that the step is made again.
    let mut command = env.program(&["send", "-"]);
    command.current_dir(&other);
    env.run(command, &["send"], Some(opening(88).as_bytes()))
        .success();
    within(&env, SECOND, &["sync"], None).success();
    assert_eq!(recorded(&env, "87.1"), [some(FIRST)]);
    env.handoff(&["verify"]).success();
}

/// What an auditor is told about a trace that was put in, taken out or changed later.
#[test]
fn a_trace_that_is_altered_is_found() {
    let path = format!("{}/0001.json", folder(89));
    let before = |ledger: &Ledger| serde_json::from_str::<Value>(&ledger.file(&path)).unwrap();
    let ledger = Ledger::new();
    let mut record = before(&ledger);
    record["transitions"][0]["traceparent"] = FIRST.into();
    let text = serde_json::to_string_pretty(&record).unwrap() + "\n";
    ledger.rewrite(9, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &[set(&path, text.clone())]);
    });
    // The open entry is another file than the record now.
    let found = ledger.damage(&[]);
    assert!(
        found.iter().any(|f| f.starts_with("9 open.stale")),
        "{found:?}"
    );

    // By a commit of its own, which is not a ledger step.
    let ledger = Ledger::new();
    let entry = ledger.entry("89.1");
    assert_eq!(ledger.file(&entry), ledger.file(&path));
    ledger.add(&[set(&path, text.clone()), set(&entry, text)]);
    let found = ledger.damage(&[]);
    let altered = [
        format!("10 record.altered {path}"),
        format!("10 open.stale {entry}"),
        "10 commit.message".to_owned(),
    ];
    assert_eq!(found, altered);

    // By the next step, which has no business with it.
    let ledger = Ledger::new();
    let path = format!("{}/0001.json", folder(88));
    let claimed = &ledger.commits()[5];
    let entry = ledger.entry_in(&claimed.id, "88.1");
    let text = ledger.git(&["cat-file", "blob", &format!("{}:{path}", claimed.id)]);
    let mut record: Value = serde_json::from_str(&text).unwrap();
    record["transitions"][0]["traceparent"] = FIRST.into();
    let text = serde_json::to_string_pretty(&record).unwrap() + "\n";
    ledger.rewrite(5, |number, commit| {
        if number == 5 {
            let edits = [set(&path, text.clone()), set(&entry, text.clone())];
            commit.tree = ledger.edited(&commit.tree, &edits);
        }
    });
    let found = ledger.damage(&[]);
    let altered = format!("5 record.altered {path}");
    assert!(found.contains(&altered), "{found:?}");
}

/// A transition that followed from the step can't name another trace than the step.
#[test]
fn a_trace_that_only_a_part_of_the_step_names_is_found() {
    let ledger = Ledger::new();
    let path = format!("{}/0001.json", folder(87));
    let mut record: Value = serde_json::from_str(&ledger.file(&path)).unwrap();
    record["transitions"][2]["traceparent"] = FIRST.into();
    let text = serde_json::to_string_pretty(&record).unwrap() + "\n";
    ledger.rewrite(4, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &[set(&path, text.clone())]);
    });
    let found = ledger.damage(&[]);
    let altered = format!("4 record.altered {path}");
    assert!(found.contains(&altered), "{found:?}");
}

#[test]
fn a_text_that_is_no_trace_is_found_in_a_record() {
    let ledger = Ledger::new();
    let path = format!("{}/0001.json", folder(89));
    let mut record: Value = serde_json::from_str(&ledger.file(&path)).unwrap();
    record["transitions"][0]["traceparent"] = "any".into();
    let text = serde_json::to_string_pretty(&record).unwrap() + "\n";
    let entry = ledger.entry("89.1");
    ledger.rewrite(9, |_, commit| {
        let edits = [set(&path, text.clone()), set(&entry, text.clone())];
        commit.tree = ledger.edited(&commit.tree, &edits);
    });
    let found = ledger.damage(&[]);
    assert!(found.iter().any(|f| f.starts_with("9 ")), "{found:?}");
}
