//! Figures of real ledgers, compared with what was counted by hand.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use test_support::contracts::{Format, opening, prepared};
use test_support::team::{refused, with_protocol};
use test_support::time::{RESEARCH, TRACE, WRITER, answers, asks, done, own, traced};
use test_support::tools::{METRICS, answer};
use test_support::workflow::completed;
use test_support::{TestEnvironment, stored_issue};

/// Issue 87: prepared, then failed, tried again, blocked, answered, and worked on; with the seconds
/// that pass between the steps.
fn worked() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.pace(0);
    env.send(opening(87)).success();
    env.wait(60);
    done(&env, "claim 87.1 --as prep-agent");
    env.wait(600);
    env.send(prepared(87)).success();
    for (seconds, line) in [
        (30, "claim 87.2 --as implementer-agent"),
        (
            100,
            "fail 87.2 --as implementer-agent --message no --recoverable",
        ),
        (50, "retry 87.2 --as orchestrator --reason again"),
        (20, "claim 87.2 --as implementer-agent"),
        (
            1000,
            "block 87.2 --as implementer-agent --reason 'which port?'",
        ),
        (300, "answer 87.2 8080 --as orchestrator"),
        (10, "claim 87.2 --as implementer-agent"),
    ] {
        env.wait(seconds);
        done(&env, line);
    }
    env.wait(40);
    env
}

fn metrics(env: &TestEnvironment, args: &[&str]) -> Value {
    env.data(&[&["metrics"], args].concat())
}

fn times(count: u64, all: &[i64]) -> Value {
    let sorted = |index: usize| all.get(index).copied();
    let sum: i64 = all.iter().sum();
    #[allow(clippy::cast_precision_loss)]
    let average = (count > 0).then(|| sum as f64 / count as f64);
    let last = all.len().saturating_sub(1);
    json!({
        "count": count, "sum": sum, "average": average,
        "p50": sorted(last / 2), "p95": sorted(last), "p99": sorted(last), "longest": sorted(last),
    })
}

#[test]
fn figures_are_what_was_done() {
    let env = worked();
    let all = metrics(&env, &[]);
    let figures = &all["figures"];
    let states = json!({
        "pending": 0, "in_progress": 1, "completed": 1, "failed": 0, "blocked": 0, "rejected": 0,
        "cancelled": 0, "dead": 0,
    });
    let expected = json!({
        "handoffs": 2, "notes": 0, "states": states,
        "failures": 1, "timeouts": 0, "retries": 1, "escalated": 0, "contradicted": 0,
        "violations": 0, "cycles_blocked": 0, "contracts_refused": 0, "contracts_contradicted": 0,
        "success_rate": 1.0, "acknowledgment_rate": 1.0,
        "duration_seconds": times(1, &[660]),
        "acknowledgment_seconds": times(2, &[30, 60]),
        "recovery_seconds": times(1, &[70]),
        "waiting_seconds": 60 + 30 + 20 + 10,
        "working_seconds": 600 + 100 + 1000 + 40,
        "blocked_seconds": 300, "failed_seconds": 50,
        "usage": { "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "turns": 0, "cost": {} },
        "issues": { "open": 1, "completed": 0, "cycle_seconds": times(0, &[]) },
    });
    assert_eq!(*figures, expected, "{figures:#}");
    let spent = |agent: &str, open, waiting, working, blocked, failed| {
        json!({
            "protocol": "issue-to-pr", "agent": agent, "open": open, "waiting_seconds": waiting,
            "working_seconds": working, "blocked_seconds": blocked, "failed_seconds": failed,
        })
    };
    let agents = json!([
        spent("implementer-agent", 1, 60, 1140, 300, 50),
        spent("prep-agent", 0, 60, 600, 0, 0),
    ]);
    assert_eq!(all["agents"], agents);
    assert_eq!(all["stuck"], json!([]));
    assert_eq!(all["corruption"], Value::Null);
    assert_eq!(all["commit"], env.tip());
}

#[test]
fn what_ran_out_is_a_timeout_and_stuck() {
    let env = worked();
    env.wait(14_400);
    let stuck = metrics(&env, &[])["stuck"].clone();
    assert_eq!(stuck[0]["need"], "lease_ran_out", "{stuck:#}");
    done(&env, "reap");
    let figures = metrics(&env, &[])["figures"].clone();
    assert_eq!(
        (&figures["failures"], &figures["timeouts"]),
        (&json!(2), &json!(1))
    );
    // One completed, one failed.
    assert_eq!(figures["success_rate"], 0.5);
}

#[test]
fn an_empty_ledger_has_no_rates_and_no_quantiles() {
    let env = TestEnvironment::with_ledger();
    let all = metrics(&env, &[]);
    let figures = &all["figures"];
    assert_eq!(figures["handoffs"], 0);
    for name in ["success_rate", "acknowledgment_rate"] {
        assert_eq!(figures[name], Value::Null, "{name}");
    }
    assert_eq!(figures["duration_seconds"], times(0, &[]));
    for args in [&["metrics"][..], &["metrics", "--by", "issue"]] {
        let table = env.handoff(args).success().stdout;
        assert!(!table.contains("NaN"), "{table}");
        assert!(table.contains("success rate         -"), "{table}");
    }
    let text = env.handoff(&["metrics", "--format", "openmetrics"]);
    let text = text.success().stdout;
    assert!(
        !text.contains("NaN") && !text.contains("quantile=\""),
        "{text}"
    );
    assert_well_formed(&text);
}

#[test]
fn since_counts_what_was_sent_from_then_on() {
    let env = worked();
    env.send(opening(88)).success();
    env.wait(10);
    let count = |since: &str| metrics(&env, &["--since", since])["figures"]["handoffs"].clone();
    assert_eq!(count("10s"), 1);
    assert_eq!(count("9s"), 0);
    assert_eq!(count("1h"), 3);
    assert_eq!(count("2026-03-02"), 3);
    assert_eq!(count("2026-03-03"), 0);
    assert_eq!(count("2026-03-02T09:11:00Z"), 2);
    // What was sent in time counts with all that became of it; the rest of its issue does not.
    let later = metrics(&env, &["--since", "2026-03-02T09:11:00Z"]);
    assert_eq!(later["figures"]["failures"], 1);
    assert_eq!(later["figures"]["duration_seconds"], times(0, &[]));
    env.handoff(&["metrics", "--since", "soon"])
        .exits(2)
        .says("how long ago");
    env.handoff(&["list", "--since", "10s"])
        .success()
        .says("88.1");
}

#[test]
fn rows_are_for_each() {
    let env = worked();
    env.send(opening(88)).success();
    let rows = |by: &str| {
        let all = metrics(&env, &["--by", by]);
        assert_eq!(all["by"], by);
        let groups = all["groups"].as_array().unwrap().clone();
        let row = |g: &Value| {
            let count = g["figures"]["handoffs"].as_u64().unwrap();
            (g["name"].as_str().unwrap().to_owned(), count)
        };
        let shown = env.handoff(&["metrics", "--by", by]).success().stdout;
        for group in &groups {
            assert!(shown.contains(group["name"].as_str().unwrap()), "{shown}");
            assert_eq!(group["protocol"], "issue-to-pr");
            let whole = ["protocol", "issue"].contains(&by);
            assert_eq!(group["figures"]["issues"].is_object(), whole, "{by}");
        }
        groups.iter().map(row).collect::<Vec<_>>()
    };
    let named = |all: &[(&str, u64)]| -> Vec<(String, u64)> {
        all.iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect()
    };
    assert_eq!(
        rows("agent"),
        named(&[("implementer-agent", 1), ("prep-agent", 2)])
    );
    assert_eq!(
        rows("route"),
        named(&[
            ("issue-manager → prep-agent", 2),
            ("prep-agent → implementer-agent", 1)
        ])
    );
    assert_eq!(
        rows("type"),
        named(&[
            ("issue-manager-to-prep-agent", 2),
            ("prep-agent-to-implementer-agent", 1)
        ])
    );
    assert_eq!(rows("protocol"), named(&[("issue-to-pr", 3)]));
    assert_eq!(rows("issue"), named(&[("87", 2), ("88", 1)]));
}

#[test]
fn a_pull_request_has_a_cycle_time_and_rounds() {
    let env = completed(|_| Format::Xml);
    let all = metrics(&env, &[]);
    let issue = stored_issue(&env.data(&["status", "87"]));
    let length = test_support::time::seconds_between(&issue["opened_at"], &issue["completed_at"]);
    let issues = &all["figures"]["issues"];
    assert_eq!(
        (&issues["open"], &issues["completed"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(issues["cycle_seconds"], times(1, &[length]));
    let round = |name: &str| {
        json!({
            "protocol": "issue-to-pr", "name": name, "issues": 1, "average": 1.0, "most": 1, "limit": 5,
        })
    };
    let conflicts = json!({
        "protocol": "issue-to-pr", "name": "merge conflicts", "issues": 1, "average": 0.0, "most": 0, "limit": 10,
    });
    let rounds = json!([
        round("failed validations"),
        conflicts,
        round("rounds of changes")
    ]);
    assert_eq!(all["rounds"], rounds);
    // What closes the issue only tells that it is closed.
    assert_eq!(all["figures"]["notes"], 1);
    assert_eq!(all["figures"]["acknowledgment_rate"], 1.0);
}

#[test]
fn what_comes_to_a_person_is_escalated_once_a_step() {
    let env = with_protocol("delegation");
    env.pace(1);
    let escalated = |env: &TestEnvironment| metrics(env, &[])["figures"]["escalated"].clone();
    // Answered with a status that blocks.
    env.send(asks(WRITER, RESEARCH, &[])).success();
    env.claim(&traced(1), RESEARCH).success();
    assert_eq!(escalated(&env), 0);
    env.send(answers(
        RESEARCH,
        "escalated",
        &[("/unresolved", json!(["scope"]))],
    ))
    .success();
    assert_eq!(escalated(&env), 1);
    // Sent to a person.
    env.wait(10);
    env.send(asks(
        WRITER,
        "human",
        &[("/reason", json!("requires_human_decision"))],
    ))
    .success();
    assert_eq!(escalated(&env), 2);
    let all = metrics(&env, &["--by", "agent"]);
    let people = all["groups"].as_array().unwrap().iter();
    let people: Vec<&Value> = people.filter(|g| g["name"] == "human").collect();
    assert_eq!(people[0]["figures"]["escalated"], 1, "{all:#}");
    // An answer is a handoff that is told, and was never to be taken up.
    assert_eq!(all["figures"]["notes"], 1);
    assert_eq!(all["figures"]["handoffs"], 3);
}

/// The file of notes about what was refused.
fn notes(env: &TestEnvironment) -> PathBuf {
    env.repo().join(".git/handoff/refused/refs/heads/handoffs")
}

#[test]
fn what_was_refused_is_noted_here_and_nowhere_else() {
    let env = with_protocol("delegation");
    env.pace(1);
    env.send(asks(WRITER, "validator", &[])).success();
    env.claim(&traced(1), "validator").success();
    let before = env.tip();
    // Back to who waits for it; on no route; incomplete; unreadable.
    let back = asks("validator", WRITER, &[]);
    assert_eq!(refused(&env, &[], &back).says(), (4, "loop"));
    let forbidden = asks("validator", RESEARCH, &[]);
    assert_eq!(refused(&env, &[], &forbidden).says(), (4, "route_refused"));
    let marked = asks(WRITER, RESEARCH, &[("/contextForTarget/summary", json!(7))]);
    assert_eq!(refused(&env, &[], &marked).says(), (3, "contract_refused"));
    assert_eq!(refused(&env, &[], "{").says(), (3, "contract_refused"));
    assert_eq!(env.tip(), before);
    // Wrong usage, and checking, are no refused contracts.
    env.handoff(&["send", "missing.json"]).exits(6);
    env.handoff_with(&["check", "-"], "{").exits(3);
    let figures = metrics(&env, &[])["figures"].clone();
    assert_eq!(
        (&figures["cycles_blocked"], &figures["contracts_refused"]),
        (&json!(1), &json!(4)),
        "{figures:#}"
    );
    let text = fs::read_to_string(notes(&env)).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(
        lines[0],
        json!({
            "at": lines[0]["at"], "code": "loop", "issue": TRACE, "from": "validator", "to": WRITER,
            "protocol": "delegation", "contract_type": "request", "bytes": back.len(),
        })
    );
    assert_eq!(lines[2]["findings"], json!(["field.type"]), "{text}");
    assert_eq!(lines[3]["issue"], Value::Null);
    // A refused contract counts with its sender; what can't be told of it, in no group.
    let groups = metrics(&env, &["--by", "agent"])["groups"].clone();
    let of = |name: &str| {
        let group = groups
            .as_array()
            .unwrap()
            .iter()
            .find(|g| g["name"] == name);
        group.map(|g| g["figures"]["contracts_refused"].clone())
    };
    assert_eq!(of("validator"), Some(json!(2)));
    assert_eq!(of(WRITER), Some(json!(1)));
    // No row is there without what it is there for.
    let shown = env.handoff(&["metrics", "--by", "agent"]).success().stdout;
    let table = shown
        .split("\n\n")
        .find(|t| t.starts_with("agent") && t.contains("retries "))
        .unwrap();
    let mut lines = table.lines();
    assert!(
        lines.next().unwrap().trim_end().ends_with("refused"),
        "{table}"
    );
    let row = lines.find(|line| line.starts_with("validator")).unwrap();
    assert!(row.trim_end().ends_with(" 2"), "{table}");
    // Another clone refused nothing.
    env.git(env.root(), &["clone", "-q", "repo", "other"]);
    let other = env.root().join("other");
    env.git(&other, &["branch", "-q", "handoffs", "origin/handoffs"]);
    let data = env
        .handoff_in(&other, &["metrics", "--json"])
        .success()
        .json();
    assert_eq!(data["data"]["figures"]["contracts_refused"], 0);
    let none = metrics(&env, &["--since", "1s"]);
    assert_eq!(none["figures"]["contracts_refused"], 0);
}

#[test]
fn what_is_refused_as_the_repository_contradicts_it_is_counted() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    let contract = |summary: &str| {
        let (issue, from, to) = ("7", "coder", "reviewer");
        let commits = ["d".repeat(40)];
        json!({
            "issue": issue, "from": from, "to": to, "branch": "nowhere", "commits": commits,
            "summary": summary, "findings": [],
        })
    };
    let said = refused(&env, &[], contract("Done").to_string());
    assert_eq!(said.says(), (3, "evidence_contradicted"));
    // It is told and counted beside other faults, too.
    let said = refused(&env, &[], contract("").to_string());
    assert_eq!(said.says(), (3, "contract_refused"));
    refused(&env, &[], "{");
    let figures = metrics(&env, &[])["figures"].clone();
    assert_eq!(
        (
            &figures["contradicted"],
            &figures["contracts_refused"],
            &figures["contracts_contradicted"]
        ),
        (&json!(0), &json!(3), &json!(2)),
        "{figures:#}"
    );
    let shown = env.handoff(&["metrics"]).success().stdout;
    let rows: Vec<String> = shown
        .lines()
        .skip_while(|line| !line.starts_with("refused here"))
        .take(2)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        rows,
        ["refused here 3 contracts", "contradicted 2 contracts"]
    );
}

#[test]
fn a_note_holds_no_contract_and_no_secret() {
    let env = TestEnvironment::with_ledger();
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let secret = opening(87).replace(
        "<requirements>",
        &format!("<requirements><requirement>{token}</requirement>"),
    );
    assert_ne!(secret, opening(87));
    let said = refused(&env, &[], &secret);
    assert_eq!(said.exit, 3, "{}", said.message);
    let text = fs::read_to_string(notes(&env)).unwrap();
    let note: Value = serde_json::from_str(&text).unwrap();
    assert!(!text.contains("ghp_"), "{text}");
    assert_eq!(note["contract_type"], "issue-manager-to-prep-agent");
    assert_eq!(note["issue"], Value::Null);
}

#[test]
fn notes_are_bounded_and_never_in_the_way() {
    let env = TestEnvironment::with_ledger();
    refused(&env, &[], "<handoff/>");
    let line = fs::read_to_string(notes(&env)).unwrap();
    // What can't be read is passed by.
    fs::write(notes(&env), format!("not a note\n{}", line.repeat(8000))).unwrap();
    refused(&env, &[], "<handoff/>");
    let lines = fs::read_to_string(notes(&env)).unwrap().lines().count();
    assert_eq!(lines, 1000);
    assert_eq!(metrics(&env, &[])["figures"]["contracts_refused"], 1000);
    // Where no note can be left, the refusal is the same.
    fs::remove_file(notes(&env)).unwrap();
    fs::create_dir(notes(&env)).unwrap();
    let said = refused(&env, &[], "<handoff/>");
    assert_eq!(said.says(), (3, "contract_refused"));
    assert_eq!(metrics(&env, &[])["figures"]["contracts_refused"], 0);
}

#[test]
fn corruption_is_what_the_last_audit_found() {
    let env = worked();
    assert_eq!(metrics(&env, &[])["corruption"], Value::Null);
    done(&env, "verify");
    let sound = metrics(&env, &[])["corruption"].clone();
    assert_eq!((&sound["faults"], &sound["codes"]), (&json!(0), &json!([])));
    assert_eq!(sound["commit"], env.tip());
    // A commit that is not a ledger step.
    let tree = [
        "commit-tree",
        "-p",
        "handoffs",
        "-m",
        "x",
        "handoffs^{tree}",
    ];
    let commit = env.git(&env.repo(), &tree);
    let good = env.tip();
    env.git(
        &env.repo(),
        &["update-ref", "refs/heads/handoffs", commit.trim()],
    );
    let told = env.handoff(&["verify", "--json"]).exits(10).json();
    let found = metrics(&env, &[])["corruption"].clone();
    let codes = told["error"]["findings"].as_array().unwrap();
    assert_eq!(found["faults"], codes.len());
    assert_eq!(found["codes"][0], codes[0]["code"]);
    env.git(&env.repo(), &["update-ref", "refs/heads/handoffs", &good]);
    // One issue that is sound says nothing of the others.
    env.handoff(&["verify", "87"]).success();
    assert_eq!(metrics(&env, &[])["corruption"], found);
    env.handoff(&["verify"]).success();
    assert_eq!(metrics(&env, &[])["corruption"]["faults"], 0);
}

/// Both readers take it; the families that the strict one finds.
#[track_caller]
fn assert_well_formed(text: &str) -> Value {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]);
    answer(promtool, text);
    serde_json::from_str(&METRICS.run("read-openmetrics.py", &[], text)).unwrap()
}

/// The value of a family's sample with these labels.
fn value(families: &Value, family: &str, name: &str, labels: &Value) -> Option<f64> {
    let samples = families[family]["samples"].as_array()?.iter();
    let mut fitting = samples.filter(|s| s[0] == name && s[1] == *labels);
    fitting.next()?[2].as_f64()
}

#[test]
fn prometheus_and_the_strict_reader_read_the_same_figures() {
    let env = worked();
    env.send(opening(88)).success();
    for by in ["agent", "route", "type", "protocol", "issue"] {
        let args = ["metrics", "--format", "openmetrics", "--by", by];
        assert_well_formed(&env.handoff(&args).success().stdout);
    }
    let text = env.handoff(&["metrics", "--format", "openmetrics"]);
    let families = assert_well_formed(&text.success().stdout);
    let protocol = json!({ "protocol": "issue-to-pr" });
    let at = |family: &str, end: &str, more: Value| {
        let mut labels = protocol.clone();
        let members = labels.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let family = format!("git_handoff_{family}");
        value(&families, &family, &format!("{family}{end}"), &labels)
    };
    assert_eq!(at("handoffs", "", json!({"state": "pending"})), Some(1.0));
    assert_eq!(at("failures", "", json!({})), Some(1.0));
    assert_eq!(at("success_ratio", "", json!({})), Some(1.0));
    assert_eq!(
        at("duration_seconds", "_bucket", json!({"le": "300.0"})),
        Some(0.0)
    );
    assert_eq!(
        at("duration_seconds", "_bucket", json!({"le": "900.0"})),
        Some(1.0)
    );
    assert_eq!(at("duration_seconds", "_sum", json!({})), Some(660.0));
    let p95 = json!({"quantile": "0.95"});
    assert_eq!(at("acknowledgment_quantiles_seconds", "", p95), Some(60.0));
    let agent = json!({"agent": "implementer-agent", "spent": "blocked"});
    assert_eq!(at("agent_seconds", "", agent), Some(300.0));
    assert_eq!(at("issues", "", json!({"status": "open"})), Some(2.0));
    for (name, family) in families.as_object().unwrap() {
        let unit = family["unit"].as_str().unwrap();
        assert!(unit.is_empty() || name.ends_with(unit), "{name}");
        let timed = family["type"] == "histogram" || family["type"] == "summary";
        assert!(!timed || unit == "seconds", "{name}");
    }
    // Not before an audit.
    let corruption = |families: &Value| families["git_handoff_corruption"]["samples"].clone();
    assert_eq!(corruption(&families), json!([]));
    done(&env, "verify");
    let text = env.handoff(&["metrics", "--format", "openmetrics"]).stdout;
    let families = assert_well_formed(&text);
    assert_eq!(corruption(&families)[0][2], 0.0);
}

#[test]
fn every_protocol_in_force_has_samples_of_its_own() {
    let env = worked();
    env.handoff(&["protocol", "add", "delegation"]).success();
    let args = ["metrics", "--format", "openmetrics"];
    let text = env.handoff(&args).success().stdout;
    let families = assert_well_formed(&text);
    let of = |family: &str, labels: Value| value(&families, family, family, &labels);
    let pending = json!({ "protocol": "delegation", "state": "pending" });
    assert_eq!(of("git_handoff_handoffs", pending), Some(0.0));
    let idle = json!({ "protocol": "delegation", "need": "dead" });
    assert_eq!(of("git_handoff_stuck", idle), Some(0.0));
    env.wait(86_400);
    let text = env.handoff(&args).success().stdout;
    let families = assert_well_formed(&text);
    let of = |family: &str, labels: Value| value(&families, family, family, &labels);
    let late = json!({ "protocol": "issue-to-pr", "need": "lease_ran_out" });
    assert_eq!(of("git_handoff_stuck", late), Some(1.0));
    // Only what is of the clone, and of no protocol, has no such label.
    for (name, family) in families.as_object().unwrap() {
        for sample in family["samples"].as_array().unwrap() {
            let is_of_clone = name == "git_handoff_rejected_steps";
            assert_eq!(sample[1]["protocol"].is_string(), !is_of_clone, "{sample}");
        }
    }
}

#[test]
fn a_dash_is_standard_output() {
    let env = worked();
    let args = ["metrics", "--format", "openmetrics"];
    let text = env.handoff(&args).success().stdout;
    let ran = env.handoff(&[&args[..], &["--output", "-"]].concat());
    assert_eq!(ran.success().stdout, text);
    assert!(!env.repo().join("-").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn only_what_did_something_says_that_it_stays_done() {
    let env = worked();
    let full = |args: &[&str]| {
        let mut command = env.program(args);
        command.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(9));
        String::from_utf8(output.stderr).unwrap()
    };
    let stays = "what was done stays done";
    for args in [
        &["metrics"][..],
        &["list"],
        &["graph", "87"],
        &["export", "otlp"],
    ] {
        let said = full(args);
        assert!(said.contains("the answer cannot be written:"), "{said}");
        assert!(!said.contains(stays), "{said}");
    }
    let said = full(&["extend", "87.2", "--as", "implementer-agent"]);
    assert!(said.contains(stays), "{said}");
}

#[test]
fn labels_are_escaped() {
    let name = "back\\slash \"quoted\"\nand more";
    let env = own("issue-to-pr", |p| {
        let rounds = p["limits"]["rounds"].as_object_mut().unwrap();
        let round = rounds["rounds of changes"].clone();
        rounds.insert(name.to_owned(), round);
    });
    env.send(opening(87)).success();
    let text = env.handoff(&["metrics", "--format", "openmetrics"]);
    let families = assert_well_formed(&text.success().stdout);
    let labels = json!({ "protocol": "issue-to-pr", "rounds": name });
    let family = "git_handoff_rounds_most";
    assert_eq!(value(&families, family, family, &labels), Some(0.0));
}

#[test]
fn a_file_is_replaced_at_once_for_whoever_reads_it() {
    let env = worked();
    let path = env.root().join("handoff.prom");
    let write = || {
        let file = path.to_str().unwrap();
        let args = ["metrics", "--format", "openmetrics", "--output", file];
        let ran = env.handoff(&args).success();
        assert_eq!(ran.stdout, "");
    };
    write();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let stop = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !stop.load(Ordering::Relaxed) {
                let text = fs::read_to_string(&path).unwrap();
                assert!(text.ends_with("# EOF\n"), "half a file: {text}");
                seen += 1;
            }
            seen
        });
        for _ in 0..20 {
            write();
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(seen > 20, "{seen} reads");
    assert_eq!(mode(&path), 0o640);
    // Nothing is left beside it.
    let beside = fs::read_dir(env.root()).unwrap();
    let names = beside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| name.contains(".new")).collect();
    assert_eq!(left, Vec::<String>::new());

    // Every format goes there; a link stays one.
    let link = env.root().join("link");
    symlink(&path, &link).unwrap();
    let link = link.to_str().unwrap();
    env.handoff(&["metrics", "--json", "--output", link])
        .success();
    let document: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(document["data"]["figures"]["handoffs"], 2);
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
    env.handoff(&["metrics", "--output", link]).success();
    assert!(fs::read_to_string(&path).unwrap().starts_with("figure"));

    let nowhere = env.root().join("nowhere/handoff.prom");
    let args = ["metrics", "--output", nowhere.to_str().unwrap(), "--json"];
    let failed = env.handoff(&args).exits(9).json();
    assert_eq!(failed["error"]["code"], "output");
    let both = ["metrics", "--json", "--format", "openmetrics"];
    env.handoff(&both).exits(2);
}

#[test]
fn counting_writes_nothing() {
    let env = worked();
    let before = env.git(&env.repo(), &["for-each-ref"]);
    for args in [&["metrics"][..], &["metrics", "--by", "issue"], &["alerts"]] {
        env.handoff(args).success();
    }
    assert_eq!(env.git(&env.repo(), &["for-each-ref"]), before);
    env.assert_sound();
}
