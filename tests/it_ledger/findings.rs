//! Findings of reviews: each has an id, is answered, and is settled before the work is approved.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, sample, value};
use test_support::team::{Folder, refused, run, sent};

const REVIEW: &str = "reviewer-agent-to-fixer-agent";
const FIX: &str = "fixer-agent-to-reviewer-agent";
const APPROVAL: &str = "reviewer-agent-to-validator-agent";
const FAILED: &str = "validator-agent-to-fixer-agent";

/// A sample in JSON, with some members replaced.
fn json_of(name: &str, members: &[(&str, Value)]) -> String {
    value("issue-to-pr", name, members).to_string()
}

/// Issue 87, whose reviewer is at work.
fn in_review() -> TestEnvironment {
    TestEnvironment::prepared("findings-in-review", || {
        let env = TestEnvironment::with_ledger();
        for (agent, contract) in [
            ("", "issue-manager-to-prep-agent"),
            ("prep-agent", "prep-agent-to-implementer-agent"),
            ("implementer-agent", "implementer-agent-to-reviewer-agent"),
        ] {
            if !agent.is_empty() {
                env.claim("87", agent).success();
            }
            env.send(sample(contract, Format::Xml, 87)).success();
        }
        env.claim("87", "reviewer-agent").success();
        env
    })
}

/// The same, with two findings of the review, which its fixer works on.
fn in_fixing() -> TestEnvironment {
    let env = in_review();
    sent(&env, sample(REVIEW, Format::Xml, 87));
    env.claim("87", "fixer-agent").success();
    env
}

/// The same, with the fixes, which the reviewer looks at.
fn in_second_review() -> TestEnvironment {
    let env = in_fixing();
    sent(&env, sample(FIX, Format::Xml, 87));
    env.claim("87", "reviewer-agent").success();
    env
}

/// The findings of issue 87: id and state of each.
fn findings(env: &TestEnvironment) -> Vec<String> {
    let known = env.data(&["status", "87"])["issue"]["findings"].take();
    let text = |f: &Value, key: &str| f[key].as_str().unwrap().to_owned();
    let line = |f: &Value| format!("{} {}", text(f, "id"), text(f, "state"));
    known.as_array().into_iter().flatten().map(line).collect()
}

/// The lines about findings in a text.
fn lines(text: &str) -> String {
    let lines = text.lines().filter(|line| line.contains("- F"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_finding_is_raised_answered_and_resolved() {
    let env = in_review();
    assert!(findings(&env).is_empty());
    sent(&env, sample(REVIEW, Format::Xml, 87));
    assert_eq!(findings(&env), ["F1 open", "F2 open"]);
    let claimed = env.claim("87", "fixer-agent").success().stdout;
    assert_snapshot!(lines(&claimed), @"");
    sent(&env, sample(FIX, Format::Json, 87));
    assert_eq!(findings(&env), ["F1 answered", "F2 answered"]);
    let claimed = env.claim("87", "reviewer-agent").success().stdout;
    assert_snapshot!(lines(&claimed), @"");
    assert_eq!(lines(&run(&env, "context 87").stdout), lines(&claimed));
    let work = env.data(&["prime", "--as", "reviewer-agent"])["work"].take();
    assert_eq!(work["findings"][0]["answered_by"], "87.5");
    sent(&env, sample(APPROVAL, Format::Xml, 87));
    assert_eq!(findings(&env), ["F1 resolved", "F2 resolved"]);
    assert_snapshot!(lines(&run(&env, "status 87").stdout), @"");
    // What is settled is not brought up again with the work.
    let claimed = env.claim("87", "validator-agent").success().stdout;
    assert_eq!(lines(&claimed), "");
    sent(&env, sample(FAILED, Format::Xml, 87));
    assert_eq!(
        findings(&env),
        ["F1 resolved", "F2 resolved", "F3 open", "F4 open"]
    );
    let report = env.root().join("report.html");
    run(&env, &format!("report --out {}", report.display()));
    let report = fs::read_to_string(report).unwrap();
    assert!(report.contains("finding F3 (test): "), "{report}");
    env.assert_sound();
}

#[test]
fn each_finding_needs_an_answer() {
    let env = in_fixing();
    let mut fixes = value("issue-to-pr", FIX, &[])["fixes_applied"].take();
    let all = fixes.as_array_mut().unwrap();
    let short = refused(
        &env,
        &[],
        json_of(FIX, &[("/fixes_applied", json!([all[0]]))]),
    );
    assert_eq!(short.says(), (4, "findings_refused"));
    assert_snapshot!(short.findings.join("\n"), @"");
    // Nobody found anything there, and there is no third finding.
    all.push(json!({"location": "src/export/csv.py:59", "description": "Tidied"}));
    all.push(json!({"location": "src/export/csv.py:58", "finding": "F3", "description": "Tidied"}));
    let odd = refused(&env, &[], json_of(FIX, &[("/fixes_applied", fixes)]));
    assert_eq!(odd.says(), (4, "findings_refused"));
    assert_snapshot!(odd.findings.join("\n"), @"");
}

#[test]
fn a_finding_is_fixed_in_a_commit_or_skipped_with_the_reason() {
    let env = in_fixing();
    let fixes = json!([
        {"location": "src/export/cells.py:4", "finding": "F1", "commit": "5e1d0c9",
         "description": "Cells are quoted where they are made"},
        {"location": "src/history/views.py:133", "skipped": true,
         "description": "The export has at most 500 rows, which the issue says"},
    ]);
    sent(&env, json_of(FIX, &[("/fixes_applied", fixes)]));
    assert_snapshot!(lines(&run(&env, "status 87").stdout), @"");
    // In XML as well; nothing is skipped without a reason.
    let env = in_fixing();
    let contract = sample(FIX, Format::Xml, 87);
    let marked = contract.replace(
        "location=\"src/export/csv.py:58\"",
        "location=\"src/export/csv.py:58\" finding=\"F1\" skipped=\"true\"",
    );
    assert_ne!(contract, marked);
    sent(&env, marked);
    let known = env.data(&["status", "87"])["issue"]["findings"].take();
    assert_eq!(
        (&known[0]["skipped"], &known[1]["skipped"]),
        (&json!(true), &Value::Null)
    );
    env.assert_sound();
}

#[test]
fn a_fixer_begins_with_the_open_findings() {
    let env = in_fixing();
    let new = "new fixer-agent-to-reviewer-agent --issue 87 --format json";
    let mut skeleton: Value = serde_json::from_str(&run(&env, new).stdout).unwrap();
    assert_snapshot!(format!("{:#}", skeleton["fixes_applied"]), @"");
    let xml = run(&env, "new fixer-agent-to-reviewer-agent --issue 87").stdout;
    assert!(xml.contains("finding=\"F2\""), "{xml}");
    for fix in skeleton["fixes_applied"].as_array_mut().unwrap() {
        fix["description"] = json!("Fixed");
    }
    skeleton["commits_added"] = json!(1);
    for (member, known) in [
        (
            "pr_url",
            json!("https://github.com/quayside/parcel-desk/pull/91"),
        ),
        ("pr_number", json!(91)),
    ] {
        assert_eq!(skeleton[member], known);
    }
    sent(&env, skeleton.to_string());
    assert_eq!(findings(&env), ["F1 answered", "F2 answered"]);
}

#[test]
fn an_answer_can_be_disputed_until_it_does() {
    let env = in_second_review();
    // The first is raised again in other words, the second in its own; the third is new.
    let issues = json!([
        {"location": "src/export/csv.py:58", "severity": "critical", "finding": "F1",
         "description": "A cell that begins with + is run as well"},
        {"location": "src/history/views.py:133", "severity": "important",
         "description": "The whole result is held in memory"},
        {"location": "src/export/csv.py:70", "severity": "important",
         "description": "The file is left open"},
    ]);
    let counts = [
        ("/blocking_issues", issues),
        ("/critical_count", json!(1)),
        ("/important_count", json!(2)),
    ];
    sent(&env, json_of(REVIEW, &counts));
    assert_eq!(findings(&env), ["F1 disputed", "F2 disputed", "F3 open"]);
    let claimed = env.claim("87", "fixer-agent").success().stdout;
    assert_snapshot!(lines(&claimed), @"");
    // The same answers leave the third open.
    let again = refused(
        &env,
        &[],
        sample(FIX, Format::Json, 87).replace("500", "50"),
    );
    assert_eq!(again.codes(), ["finding.open"]);
    let fixes = json!([
        {"location": "src/export/csv.py:58", "finding": "F1", "description": "+ is quoted too"},
        {"location": "src/history/views.py:133", "description": "Rows are streamed"},
        {"location": "src/export/csv.py:70", "description": "It is closed"},
    ]);
    sent(&env, json_of(FIX, &[("/fixes_applied", fixes)]));
    env.claim("87", "reviewer-agent").success();
    sent(&env, sample(APPROVAL, Format::Xml, 87));
    assert_eq!(
        findings(&env),
        ["F1 resolved", "F2 resolved", "F3 resolved"]
    );
    // Nobody raised a ninth.
    let env = in_second_review();
    let issues = json!([{"location": "a.py:1", "severity": "critical", "finding": "F9", "description": "Again"}]);
    let contract = json_of(
        REVIEW,
        &[("/blocking_issues", issues), ("/important_count", json!(0))],
    );
    assert_eq!(refused(&env, &[], contract).codes(), ["finding.unknown"]);
    env.assert_sound();
}

#[test]
fn what_is_open_prevents_the_approval() {
    let env = in_review();
    sent(&env, sample(REVIEW, Format::Xml, 87));
    // The work goes back to the reviewer without an answer to what was found.
    run(&env, "reassign 87.4 --to reviewer-agent --as orchestrator");
    env.claim("87.4", "reviewer-agent").success();
    let early = refused(&env, &[], sample(APPROVAL, Format::Xml, 87));
    assert_eq!(early.says(), (4, "findings_refused"));
    assert_snapshot!(early.findings.join("\n"), @"");
    assert_snapshot!(early.hint, @"");
}

#[test]
fn a_review_that_is_turned_down_raises_nothing() {
    let env = in_review();
    sent(&env, sample(REVIEW, Format::Xml, 87));
    run(&env, "reject 87.4 --as fixer-agent --reason stale");
    assert_eq!(findings(&env), ["F1 withdrawn", "F2 withdrawn"]);
    let issues = json!([{"location": "src/export/csv.py:58", "severity": "critical",
        "description": "A cell that begins with = is run as a formula by spreadsheets"}]);
    let one = [("/blocking_issues", issues), ("/important_count", json!(0))];
    sent(&env, json_of(REVIEW, &one));
    assert_eq!(findings(&env), ["F1 open", "F2 withdrawn"]);
    // Fixes that are turned down answer nothing, and an approval settles nothing then.
    env.claim("87", "fixer-agent").success();
    sent(&env, sample(FIX, Format::Xml, 87));
    run(&env, "reject 87 --as reviewer-agent --reason unbuilt");
    assert_eq!(findings(&env), ["F1 open", "F2 withdrawn"]);
    sent(&env, sample(FIX, Format::Json, 87));
    env.claim("87", "reviewer-agent").success();
    sent(&env, sample(APPROVAL, Format::Xml, 87));
    assert_eq!(findings(&env), ["F1 resolved", "F2 withdrawn"]);
    run(&env, "reject 87 --as validator-agent --reason early");
    assert_eq!(findings(&env), ["F1 answered", "F2 withdrawn"]);
    env.assert_sound();
}

#[test]
fn findings_without_a_place_are_answered_by_id_or_by_all_fixes() {
    let failing = || {
        let env = in_second_review();
        sent(&env, sample(APPROVAL, Format::Xml, 87));
        env.claim("87", "validator-agent").success();
        sent(&env, sample(FAILED, Format::Xml, 87));
        env.claim("87", "fixer-agent").success();
        env
    };
    let env = failing();
    let fix = |entry: Value| json_of(FIX, &[("/fixes_applied", json!([entry]))]);
    let by_id = fix(json!({"location": "a.py:1", "finding": "F3", "description": "Zero rows"}));
    assert_eq!(refused(&env, &[], by_id).codes(), ["finding.open"]);
    // The text of the fourth begins with this place.
    let by_place = fix(json!({"location": "src/export/csv.py:12", "description": "Removed"}));
    assert_eq!(refused(&env, &[], by_place).codes(), ["finding.open"]);
    sent(
        &env,
        fix(json!({"location": "src/ranges.py:9", "description": "Both"})),
    );
    assert_eq!(findings(&env)[2..], ["F3 answered", "F4 answered"]);
    env.assert_sound();
}

#[test]
fn findings_go_to_another_ledger() {
    let env = in_second_review();
    let file = env.root().join("issues.jsonl");
    run(&env, &format!("export --out {}", file.display()));
    let known = env.data(&["status", "87"])["issue"]["findings"].take();
    let other = TestEnvironment::with_repository();
    let there = other.root().join("issues.jsonl");
    fs::copy(&file, &there).unwrap();
    run(&other, &format!("import {}", there.display()));
    let same = other.data(&["status", "87"])["issue"]["findings"].take();
    assert_eq!(same, known);
    assert_eq!(same[1]["state"], "answered");
    other.assert_sound();
}

#[test]
fn an_own_protocol_says_where_its_findings_are() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init"]).success();
    let folder = Folder::copy(&env, "issue-to-pr", "own");
    let kind = |p: &mut Value, name: &str| -> usize {
        let kinds = p["contracts"].as_array().unwrap();
        kinds.iter().position(|k| k["type"] == name).unwrap()
    };
    let faults = |change: &dyn Fn(&mut Value)| {
        folder.define(|p| {
            p["name"] = json!("own");
            change(p);
        });
        folder.refused("add").findings.join("\n")
    };
    let mut shown = String::new();
    let original = folder.read("protocol.json");
    let cases: [&dyn Fn(&mut Value); 5] = [
        &|p| {
            let i = kind(p, REVIEW);
            p["contracts"][i]["settles"] = json!(true);
        },
        &|p| {
            let i = kind(p, FIX);
            p["contracts"][i].as_object_mut().unwrap().remove("fixes");
        },
        &|p| {
            for name in [REVIEW, FAILED] {
                let i = kind(p, name);
                p["contracts"][i].as_object_mut().unwrap().remove("raises");
            }
        },
        &|p| {
            let i = kind(p, FIX);
            p["contracts"][i]["fixes"] = json!({"list": "/fixes_applied", "text": "/description"});
        },
        &|p| {
            let i = kind(p, REVIEW);
            p["contracts"][i]["raises"]["text"] = json!("/words");
        },
    ];
    for case in cases {
        folder.write("protocol.json", original.to_string());
        shown += &faults(case);
        shown += "\n\n";
    }
    assert_snapshot!(shown, @"");
}
