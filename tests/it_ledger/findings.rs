//! Findings of reviews: each has an id, is answered, and is settled before the work is approved.

use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::contracts::{Format, sample, value};
use test_support::team::{Folder, Refused, refused, run, sent};
use test_support::{Ran, TestEnvironment};

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
        send_up_to_review(&env);
        env
    })
}

/// Sends what comes before the review, which its reviewer then works on.
fn send_up_to_review(env: &TestEnvironment) {
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
}

/// A contract type of a protocol.
fn of_type<'p>(protocol: &'p mut Value, name: &str) -> &'p mut Value {
    let kinds = protocol["contracts"].as_array_mut().unwrap();
    kinds.iter_mut().find(|kind| kind["type"] == name).unwrap()
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
    findings_of(env, "87")
}

fn findings_of(env: &TestEnvironment, issue: &str) -> Vec<String> {
    let known = env.data(&["status", issue])["record"]["findings"].take();
    let text = |f: &Value, key: &str| f[key].as_str().unwrap().to_owned();
    let line = |f: &Value| format!("{} {}", text(f, "id"), text(f, "state"));
    known.as_array().into_iter().flatten().map(line).collect()
}

/// The lines about findings in a text.
fn lines(text: &str) -> String {
    let lines = text.lines().filter(|line| line.contains("- F"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(feature = "agents")]
#[test]
fn a_finding_is_raised_answered_and_resolved() {
    let env = in_review();
    assert!(findings(&env).is_empty());
    sent(&env, sample(REVIEW, Format::Xml, 87));
    assert_eq!(findings(&env), ["F1 open", "F2 open"]);
    let claimed = env.claim("87", "fixer-agent").success().stdout;
    assert_snapshot!(lines(&claimed), @"
    - F1 (critical, src/export/csv.py:58): A cell that begins with = is run as a formula by spreadsheets; open
    - F2 (important, src/history/views.py:133): The whole result is held in memory; open
    ");
    sent(&env, sample(FIX, Format::Json, 87));
    assert_eq!(findings(&env), ["F1 answered", "F2 answered"]);
    let claimed = env.claim("87", "reviewer-agent").success().stdout;
    assert_snapshot!(lines(&claimed), @"
    - F1 (critical, src/export/csv.py:58): A cell that begins with = is run as a formula by spreadsheets; answered by 87.5: Cells that could be formulas are prefixed with a quote
    - F2 (important, src/history/views.py:133): The whole result is held in memory; answered by 87.5: Rows are read and sent in batches of 500
    ");
    assert_eq!(lines(&run(&env, "context 87").stdout), lines(&claimed));
    let work = env.data(&["prime", "--as", "reviewer-agent"])["work"].take();
    assert_eq!(work["findings"][0]["answered_by"], "87.5");
    sent(&env, sample(APPROVAL, Format::Xml, 87));
    assert_eq!(findings(&env), ["F1 resolved", "F2 resolved"]);
    assert_snapshot!(lines(&run(&env, "status 87").stdout), @"
    - F1 (critical, src/export/csv.py:58): A cell that begins with = is run as a formula by spreadsheets; answered by 87.5: Cells that could be formulas are prefixed with a quote; resolved by 87.6
    - F2 (important, src/history/views.py:133): The whole result is held in memory; answered by 87.5: Rows are read and sent in batches of 500; resolved by 87.6
    ");
    // What is settled is not brought up again with the work.
    let claimed = env.claim("87", "validator-agent").success().stdout;
    assert_eq!(lines(&claimed), "");
    sent(&env, sample(FAILED, Format::Xml, 87));
    assert_eq!(
        findings(&env),
        ["F1 resolved", "F2 resolved", "F3 open", "F4 open"]
    );
    #[cfg(feature = "report")]
    {
        let report = run(&env, "report --output -").stdout;
        assert!(report.contains("finding F3 (test): "), "{report}");
    }
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
    assert_snapshot!(short.findings.join("\n"), @"finding.open /fixes_applied: F2 (important, src/history/views.py:133), raised in 87.4, is not answered: The whole result is held in memory");
    let contract = json_of(FIX, &[("/fixes_applied", json!([all[0]]))]);
    let checked = env.handoff_with(&["check", "-", "--json"], contract);
    assert_eq!(Refused::of(&checked.exits(4)).findings, short.findings);
    // Nobody found anything there, and there is no third finding.
    all.push(json!({"location": "src/export/csv.py:59", "description": "Tidied"}));
    all.push(json!({"location": "src/export/csv.py:58", "finding": "F3", "description": "Tidied"}));
    let odd = refused(&env, &[], json_of(FIX, &[("/fixes_applied", fixes)]));
    assert_eq!(odd.says(), (4, "findings_refused"));
    assert_snapshot!(odd.findings.join("\n"), @r#"
    finding.unknown /fixes_applied/2/location: the issue has no finding at "src/export/csv.py:59"; open: F1 (critical, src/export/csv.py:58); F2 (important, src/history/views.py:133)
    finding.unknown /fixes_applied/3/finding: the issue has no finding "F3"; open: F1 (critical, src/export/csv.py:58); F2 (important, src/history/views.py:133)
    "#);
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
    assert_snapshot!(lines(&run(&env, "status 87").stdout), @"
    - F1 (critical, src/export/csv.py:58): A cell that begins with = is run as a formula by spreadsheets; answered by 87.5 in 5e1d0c9: Cells are quoted where they are made
    - F2 (important, src/history/views.py:133): The whole result is held in memory; skipped by 87.5: The export has at most 500 rows, which the issue says
    ");
    // In XML as well; nothing is skipped without a reason.
    let env = in_fixing();
    let contract = sample(FIX, Format::Xml, 87);
    let marked = contract.replace(
        "location=\"src/export/csv.py:58\"",
        "location=\"src/export/csv.py:58\" finding=\"F1\" skipped=\"true\"",
    );
    assert_ne!(contract, marked);
    sent(&env, marked);
    let known = env.data(&["status", "87"])["record"]["findings"].take();
    assert_eq!(
        (&known[0]["skipped"], &known[1]["skipped"]),
        (&json!(true), &Value::Null)
    );
    env.assert_sound();
}

/// `| `skipped` | Agent skipped (e.g., no fixes needed) |`: the fixer's contract goes back to the
/// reviewer, who sees that nothing was fixed, and why.
#[test]
fn a_fixer_may_skip_all_of_them() {
    let env = in_fixing();
    let xml = sample(FIX, Format::Xml, 87);
    let (before, rest) = xml.split_once("<fixes_applied>").unwrap();
    let (_, after) = rest.split_once("</commits_added>").unwrap();
    let why = "<summary>Both are meant so</summary>";
    let skipped = format!("{before}{why}{after}").replace("ready-for-re-review", "skipped");
    // What is ready says what was fixed.
    let ready = skipped.replace("skipped", "success");
    assert_eq!(
        refused(&env, &[], ready).codes(),
        ["field.missing", "field.missing"]
    );
    let sent = sent(&env, skipped);
    assert_eq!(sent["handoff"]["to"], "reviewer-agent");
    assert_eq!(sent["handoff"]["summary"], "skipped: Both are meant so");
    assert_snapshot!(lines(&env.claim("87", "reviewer-agent").success().stdout), @"
    - F1 (critical, src/export/csv.py:58): A cell that begins with = is run as a formula by spreadsheets; skipped by 87.5: Both are meant so
    - F2 (important, src/history/views.py:133): The whole result is held in memory; skipped by 87.5: Both are meant so
    ");
    env.assert_sound();
}

#[test]
fn a_fixer_begins_with_the_open_findings() {
    let env = in_fixing();
    let new = "new --issue 87 --from fixer-agent --to reviewer-agent --format json";
    let mut skeleton: Value = serde_json::from_str(&run(&env, new).stdout).unwrap();
    assert_snapshot!(format!("{:#}", skeleton["fixes_applied"]), @r#"
    [
      {
        "location": "src/export/csv.py:58",
        "description": "{{fill: what was done about F1}}",
        "finding": "F1"
      },
      {
        "location": "src/history/views.py:133",
        "description": "{{fill: what was done about F2}}",
        "finding": "F2"
      }
    ]
    "#);
    let xml = run(
        &env,
        "new --issue 87 --from fixer-agent --to reviewer-agent --format xml",
    )
    .stdout;
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
    assert_snapshot!(lines(&claimed), @"
    - F1 (critical, src/export/csv.py:58): A cell that begins with = is run as a formula by spreadsheets; answered by 87.5: Cells that could be formulas are prefixed with a quote; disputed by 87.6: A cell that begins with + is run as well
    - F2 (important, src/history/views.py:133): The whole result is held in memory; answered by 87.5: Rows are read and sent in batches of 500; disputed by 87.6
    - F3 (important, src/export/csv.py:70): The file is left open; open
    ");
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
    // A protocol in which the fixer need not say what was done about each.
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "own");
    folder.define(|p| {
        let fixes = of_type(p, FIX).as_object_mut().unwrap().remove("fixes");
        let mut fixes = fixes.unwrap();
        fixes["list"] = json!("/commits");
        fixes["text"] = json!("/message");
        fixes["location"] = json!("/sha");
        for key in ["finding", "commit", "skipped"] {
            fixes.as_object_mut().unwrap().remove(key);
        }
        of_type(p, "implementer-agent-to-reviewer-agent")["fixes"] = fixes;
    });
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    send_up_to_review(&env);
    sent(&env, sample(REVIEW, Format::Xml, 87));
    env.claim("87", "fixer-agent").success();
    sent(&env, sample(FIX, Format::Xml, 87));
    env.claim("87", "reviewer-agent").success();
    let early = refused(&env, &[], sample(APPROVAL, Format::Xml, 87));
    assert_eq!(early.says(), (4, "findings_refused"));
    assert_snapshot!(early.findings.join("\n"), @"
    finding.open /handoff: F1 (critical, src/export/csv.py:58), raised in 87.4, prevents the approval: A cell that begins with = is run as a formula by spreadsheets
    finding.open /handoff: F2 (important, src/history/views.py:133), raised in 87.4, prevents the approval: The whole result is held in memory
    ");
    assert_snapshot!(early.hint, @"see the findings and what became of them: `git handoff status 87`");
    env.assert_sound();
}

#[test]
fn a_finding_outlives_the_review_that_its_receiver_turns_down() {
    let env = in_review();
    sent(&env, sample(REVIEW, Format::Xml, 87));
    run(&env, "reject 87.4 --as fixer-agent --reason stale");
    assert_eq!(findings(&env), ["F1 open", "F2 open"]);
    // Nobody else approves over it, in the reviewer's place; the reviewer may raise it again, or not.
    let issues = json!([{"location": "src/export/csv.py:58", "severity": "critical",
        "description": "A cell that begins with = is run as a formula by spreadsheets"}]);
    let one = [("/blocking_issues", issues), ("/important_count", json!(0))];
    sent(&env, json_of(REVIEW, &one));
    assert_eq!(findings(&env), ["F1 open", "F2 open"]);
    // Fixes that are turned down answer nothing, and an approval settles nothing then.
    env.claim("87", "fixer-agent").success();
    sent(&env, sample(FIX, Format::Xml, 87));
    run(&env, "reject 87 --as reviewer-agent --reason unbuilt");
    assert_eq!(findings(&env), ["F1 open", "F2 open"]);
    sent(&env, sample(FIX, Format::Json, 87));
    env.claim("87", "reviewer-agent").success();
    sent(&env, sample(APPROVAL, Format::Xml, 87));
    assert_eq!(findings(&env), ["F1 resolved", "F2 resolved"]);
    run(&env, "reject 87 --as validator-agent --reason early");
    assert_eq!(findings(&env), ["F1 answered", "F2 answered"]);
    env.assert_sound();
}

#[test]
fn who_raised_a_finding_or_a_person_takes_it_back() {
    // Its sender withdraws the review.
    let env = in_review();
    sent(&env, sample(REVIEW, Format::Xml, 87));
    run(&env, "cancel 87.4 --as reviewer-agent --reason misread");
    assert_eq!(findings(&env), ["F1 withdrawn", "F2 withdrawn"]);
    // A person turns it down.
    let env = in_review();
    sent(&env, sample(REVIEW, Format::Xml, 87));
    run(&env, "reject 87.4 --as maintainer --reason wanted");
    assert_eq!(findings(&env), ["F1 withdrawn", "F2 withdrawn"]);
    // The reviewer approves after all, once its review was turned down.
    let env = in_review();
    sent(&env, sample(REVIEW, Format::Xml, 87));
    run(&env, "reject 87.4 --as fixer-agent --reason stale");
    sent(&env, sample(APPROVAL, Format::Xml, 87));
    assert_eq!(findings(&env), ["F1 withdrawn", "F2 withdrawn"]);
    env.assert_sound();
}

#[test]
fn findings_without_a_place_are_answered_one_by_one() {
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
    // One fix that names none answers neither of the two.
    let both = fix(json!({"location": "src/ranges.py:9", "description": "Both"}));
    assert_eq!(
        refused(&env, &[], both).codes(),
        ["finding.open", "finding.open"]
    );
    // As many fixes as are left need no name.
    let fixes = json!([
        {"location": "a.py:1", "finding": "F3", "description": "Zero rows"},
        {"location": "src/ranges.py:9", "description": "Removed"},
    ]);
    sent(&env, json_of(FIX, &[("/fixes_applied", fixes)]));
    assert_eq!(findings(&env)[2..], ["F3 answered", "F4 answered"]);
    let shown = run(&env, "status 87").stdout;
    assert!(shown.contains("answered by 87.8: Removed"), "{shown}");
    env.assert_sound();
}

/// What answers one finding is no answer to another, with or without a location.
#[test]
fn an_answer_to_one_finding_answers_no_other() {
    let env = TestEnvironment::with_repository();
    let init = ["init", "--protocol", "review", "--evidence", "off"];
    env.handoff(&init).success();
    let finding =
        |text: &str, at: &str| format!(r#"findings={{"severity":"blocking","text":"{text}"{at}}}"#);
    let at = r#","location":"a:1""#;
    let [first, second, third] = [
        finding("first", at),
        finding("second", ""),
        finding("third", ""),
    ];
    hand(
        &env,
        "maintainer",
        "coder",
        &["summary=s", &first, &second, &third],
    )
    .success();
    env.claim("7", "coder").success();
    for answered in ["F1", "F2"] {
        let answer = format!(r#"findings={{"text":"done","finding":"{answered}"}}"#);
        let set = ["branch=one", "commits=1a2b3c4", "summary=s", &answer];
        let ran = hand(&env, "coder", "reviewer", &set).exits(4);
        ran.says("F3 (blocking), raised in 7.1, is not answered");
    }
    assert_eq!(findings_of(&env, "7"), ["F1 open", "F2 open", "F3 open"]);
}

#[cfg(feature = "exchange")]
#[test]
fn findings_go_to_another_ledger() {
    let env = in_second_review();
    let known = env.data(&["status", "87"])["record"]["findings"].take();
    let log = env.root().join("log");
    run(&env, &format!("export --format log {}", log.display()));
    let there = test_support::exchange::fresh(&env, "there", "issue-to-pr");
    let log = log.to_str().unwrap();
    env.handoff_in(&there, &["import", log]).success();
    let shown = env.handoff_in(&there, &["status", "87", "--json"]);
    let same = shown.success().json()["data"]["record"]["findings"].take();
    assert_eq!(same, known);
    assert_eq!(same[1]["state"], "answered");
}

#[test]
fn an_own_protocol_says_where_its_findings_are() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init"]).success();
    let folder = Folder::copy(&env, "issue-to-pr", "own");
    let faults = |change: &dyn Fn(&mut Value)| {
        folder.define(|p| {
            p["name"] = json!("own");
            change(p);
        });
        folder.refused("add").findings.join("\n")
    };
    let mut shown = String::new();
    let original = folder.read("protocol.json");
    let cases: [&dyn Fn(&mut Value); 6] = [
        &|p| of_type(p, REVIEW)["settles"] = json!(true),
        &|p| {
            of_type(p, FIX).as_object_mut().unwrap().remove("fixes");
        },
        &|p| {
            for name in [REVIEW, FAILED] {
                of_type(p, name).as_object_mut().unwrap().remove("raises");
            }
        },
        &|p| of_type(p, FIX)["fixes"] = json!({"list": "/fixes_applied", "text": "/description"}),
        &|p| of_type(p, REVIEW)["raises"]["text"] = json!("/words"),
        &|p| of_type(p, REVIEW)["reviews"] = json!({}),
    ];
    for case in cases {
        folder.write("protocol.json", original.to_string());
        shown += &faults(case);
        shown += "\n\n";
    }
    assert_snapshot!(shown, @"
    protocol.findings /contracts/3/settles: a type has one of `raises`, `fixes` and `settles`, not also `raises`

    protocol.findings /contracts/3/raises: no type answers findings with `fixes`
    protocol.findings /contracts/7/raises: no type answers findings with `fixes`

    protocol.findings /contracts/4/settles: no type raises findings with `raises`
    protocol.findings /contracts/5/fixes: no type raises findings with `raises`
    protocol.findings /contracts/6/settles: no type raises findings with `raises`

    protocol.findings /contracts/5/fixes: nothing says which finding an entry answers: `location` or `finding`

    protocol.unknown_field /contracts/3/raises/text: `/blocking_issues/0/words` is a field that schemas/reviewer-agent-to-fixer-agent.schema.json does not have

    protocol.findings /contracts/3/reviews: nothing says which commit it is: `commit` or `fact`
    ");
}

/// A protocol whose list of answers is optional, and not in its template, asks for them all the same.
#[test]
fn answers_are_asked_for_where_the_list_is_optional() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "review", "own");
    folder.edit("schemas/work.schema.json", |schema| {
        let required = schema["required"].as_array_mut().unwrap();
        required.retain(|name| name != "findings");
    });
    folder.edit("templates/work.json", |template| {
        template.as_object_mut().unwrap().remove("findings");
    });
    let init = ["init", "--protocol", &folder.path(), "--evidence", "off"];
    env.handoff(&init).success();
    let finding = |text: &str| format!(r#"findings={{"severity":"blocking","text":"{text}"}}"#);
    let [first, second] = [finding("first"), finding("second")];
    hand(&env, "maintainer", "coder", &["summary=s", &first, &second]).success();
    let claimed = env.claim("7", "coder").success();
    claimed.says(r#"    findings (once for each entry): {"text":"{{fill: what was done about F1}}","finding":"F1"}"#);
    let work = ["branch=one", "commits=1a2b3c4", "summary=s"];
    let refused = hand(&env, "coder", "reviewer", &work).exits(3);
    refused
        .says("field.unfilled what was done about F2")
        .says("give --set findings.0.text, --set findings.1.text");
    let answer = r#"findings={"finding":"F1","text":"done"}"#;
    let refused = hand(&env, "coder", "reviewer", &[&work[..], &[answer]].concat()).exits(4);
    refused.says(r#"such as `--set findings='{"finding":"F2","text":"WHAT WAS DONE"}'`"#);
    let other = r#"findings={"finding":"F2","text":"done"}"#;
    hand(
        &env,
        "coder",
        "reviewer",
        &[&work[..], &[answer, other]].concat(),
    )
    .success();
    assert_eq!(findings_of(&env, "7"), ["F1 answered", "F2 answered"]);
    env.assert_sound();
}

/// A person's approval settles no objection of somebody else.
#[test]
fn an_approval_names_the_findings_beside_it() {
    let env = in_second_review();
    let approve = ["approve", "87.5", "--as", "maintainer"];
    let ran = env.handoff(&approve).success();
    for finding in ["F1", "F2"] {
        let told = format!("not settled yet: {finding} (");
        assert!(ran.stdout.contains(&told), "{}", ran.shown);
    }
    assert_eq!(findings(&env).len(), 2);
    assert!(findings(&env).iter().all(|one| one.ends_with(" answered")));
}

/// A round that raises only suggestions ends the review: they go with the approval.
#[test]
fn a_review_of_suggestions_alone_is_the_approval() {
    let env = TestEnvironment::with_repository();
    let init = ["init", "--protocol", "review", "--evidence", "off"];
    env.handoff(&init).success();
    let work = ["branch=fix-7", "summary=Done", "commits=1a2b3c4"];
    hand(&env, "coder", "reviewer", &work).success();
    env.claim("7.1", "reviewer").success();
    let suggestion = "findings={\"severity\":\"suggestion\",\"text\":\"A shorter name\"}";
    hand(&env, "reviewer", "coder", &["summary=Nearly", suggestion])
        .exits(3)
        .says("A review that has only suggestions is `done`");
    hand(&env, "reviewer", "end", &["summary=Good", suggestion]).success();
    assert_eq!(env.data(&["status", "7"])["issue"]["status"], "completed");
    env.assert_sound();
}

/// Issue 7 of the protocol `review`, whose coder has one finding to answer about the only commit.
fn one_finding() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    commit(&env, "The parcels as CSV");
    hand(&env, "coder", "reviewer", &["branch=csv", "summary=Done"]).success();
    env.claim("7", "reviewer").success();
    hand(&env, "reviewer", "coder", &["summary=Nearly", HEADER]).success();
    env.claim("7", "coder").success();
    env
}

const HEADER: &str =
    r#"findings={"severity":"blocking","text":"No header","location":"parcels.csv:1"}"#;

fn commit(env: &TestEnvironment, message: &str) {
    let commit = ["commit", "-q", "--allow-empty", "-m", message];
    env.git(&env.repo(), &commit);
}

/// Sends a contract about issue 7 that has these fields.
fn hand(env: &TestEnvironment, from: &str, to: &str, set: &[&str]) -> Ran {
    let set = set.iter().flat_map(|one| ["--set", one]);
    let head = ["send", "--issue", "7", "--to", to, "--as", from];
    env.handoff(&head.into_iter().chain(set).collect::<Vec<_>>())
}

/// What opens an issue reviews nothing, although it is of the same type as a review.
#[test]
fn an_issue_that_was_never_reviewed_counts_no_review() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    commit(&env, "The parcels as CSV");
    hand(&env, "maintainer", "coder", &["summary=Wanted", HEADER]).success();
    let known = |env: &TestEnvironment| env.claim("7", "coder").success().shown;
    let shown = known(&env);
    assert!(!shown.contains("reviews: "), "{shown}");
    let skipped = r#"findings={"finding":"F1","text":"There is one","skipped":true}"#;
    let set = ["branch=csv", "summary=Done", skipped];
    hand(&env, "coder", "reviewer", &set).success();
    env.claim("7", "reviewer").success();
    let more = r#"findings={"severity":"blocking","text":"No footer","location":"parcels.csv:9"}"#;
    hand(&env, "reviewer", "coder", &["summary=Nearly", more]).success();
    let inbox = env.handoff(&["inbox", "--as", "coder"]).success();
    inbox.says("Findings to fix: F2, No footer (Wanted)");
    let shown = known(&env);
    assert!(shown.contains("reviews: 1"), "{shown}");
    env.assert_sound();
}

/// Findings given by index and whole are all recorded, or the request is refused.
#[test]
fn findings_given_in_two_ways_are_all_recorded() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    commit(&env, "The parcels as CSV");
    hand(&env, "coder", "reviewer", &["branch=csv", "summary=Done"]).success();
    env.claim("7", "reviewer").success();
    let [text, severity] = ["findings.0.text=First", "findings.0.severity=blocking"];
    let refused = hand(&env, "reviewer", "coder", &["summary=x", HEADER, text]);
    refused.exits(2).says(
        "findings.0.text is given twice: as \"First\" and in the entry findings={\"severity\"",
    );
    hand(
        &env,
        "reviewer",
        "coder",
        &["summary=x", text, severity, HEADER],
    )
    .success();
    assert_eq!(findings_of(&env, "7"), ["F1 open", "F2 open"]);
    env.assert_sound();
}

/// What is said to be fixed must be in a commit; what is not to be fixed needs none.
#[test]
fn a_fix_without_a_commit_is_refused_where_no_commits_are_counted() {
    let env = one_finding();
    let fixed = [
        "summary=Fixed",
        r#"findings={"finding":"F1","text":"It has one"}"#,
    ];
    hand(&env, "coder", "reviewer", &fixed)
        .exits(3)
        .says("/findings evidence.commits_added it lists fixes, and no commit was added to csv since the review of")
        .says("of a finding that needs no commit, say that it is skipped\n");
    env.git(&env.repo(), &["switch", "-q", "--detach"]);
    commit(&env, "The header");
    hand(&env, "coder", "reviewer", &fixed)
        .exits(3)
        .says("HEAD is detached here, with commits that are not on csv: `git switch -C csv`");
    env.git(&env.repo(), &["switch", "-q", "-C", "csv"]);
    hand(&env, "coder", "reviewer", &fixed).success();
    env.assert_sound();
    // Under `warn` its sender is told at once.
    let env = one_finding();
    let warn = ["protocol", "set", "review", "evidence.policy", "warn"];
    env.handoff(&[&warn[..], &["--weaker"]].concat()).success();
    let told = hand(&env, "coder", "reviewer", &fixed).success();
    let text = "no commit was added to csv since the review of";
    assert!(told.stderr.contains(text), "{}", told.shown);
    env.assert_sound();
}

#[test]
fn what_was_skipped_is_not_raised_again_without_new_code() {
    let skipped = [
        "summary=As it is",
        r#"findings={"finding":"F1","skipped":true,"text":"The reader wants none"}"#,
    ];
    let in_second_review = || {
        let env = one_finding();
        hand(&env, "coder", "reviewer", &skipped).success();
        env.claim("7", "reviewer").success();
        env
    };
    let again = ["summary=Still", HEADER];
    let env = in_second_review();
    hand(&env, "reviewer", "coder", &again)
        .exits(4)
        .says("No header; skipped by 7.3: The reader wants none, and no commit came since")
        .says("`git handoff block 7.3 --as reviewer --reason 'Must F1 be fixed?'`");
    // Also by its id. Other findings are none of this.
    let named = r#"findings={"severity":"blocking","text":"It needs one","finding":"F1"}"#;
    hand(&env, "reviewer", "coder", &["summary=Still", named])
        .exits(4)
        .says("skipped by 7.3");
    let other = r#"findings={"severity":"blocking","text":"No unit","location":"parcels.csv:1"}"#;
    hand(&env, "reviewer", "coder", &["summary=More", other]).success();
    env.assert_sound();
    // A person decides that it counts.
    let env = in_second_review();
    let block = ["block", "7.3", "--as", "reviewer", "--reason", "Must F1?"];
    env.handoff(&block).success();
    let answer = ["answer", "7.3", "--as", "maintainer", "Yes"];
    env.handoff(&answer).success();
    env.claim("7", "reviewer").success();
    hand(&env, "reviewer", "coder", &again).success();
    assert_eq!(findings_of(&env, "7"), ["F1 disputed"]);
    // New code may make it so.
    let env = in_second_review();
    commit(&env, "The header moves");
    let reviewed = env.git(&env.repo(), &["rev-parse", "csv"]);
    let fact = format!("reviewed_commit={}", reviewed.trim());
    let note = [
        "annotate",
        "7",
        "--as",
        "maintainer",
        "--fact",
        &fact,
        "--note",
        "Newer",
    ];
    env.handoff(&note).success();
    hand(&env, "reviewer", "coder", &again).success();
    env.assert_sound();
}

/// The members of an entry are given one by one; what an agent is told to give is enough.
#[test]
fn an_answer_is_given_member_by_member() {
    let env = one_finding();
    commit(&env, "The header");
    let answer = |value: &str| hand(&env, "coder", "reviewer", &["summary=Fixed", value]);
    let missing = hand(&env, "coder", "reviewer", &["summary=Fixed"]).exits(3);
    missing.says("hint: give --set findings.0.text; ");
    answer("findings=It has one")
        .exits(2)
        .says("findings is of type object, not \"It has one\"")
        .says("give each member by itself: --set findings.0.text;");
    answer(r#"findings={"text":"It has one""#)
        .exits(2)
        .says("findings is not valid JSON: EOF while parsing an object at line 1");
    answer(r#"findings={"text":"It has one"}"#)
        .exits(3)
        .says("give --set findings.0.finding; ");
    answer("findings.0.text=It has one").success();
    env.assert_sound();
}

/// Work on a branch of its own that is checked out is not left behind unsaid.
#[test]
fn work_on_another_branch_than_the_issues_is_not_left_behind() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    commit(&env, "The parcels as CSV");
    hand(&env, "coder", "reviewer", &["branch=csv", "summary=Done"]).success();
    env.claim("7", "reviewer").success();
    hand(&env, "reviewer", "coder", &["summary=No", HEADER]).success();
    env.claim("7", "coder").success();
    commit(&env, "The tests");
    env.git(&env.repo(), &["switch", "-q", "-c", "header"]);
    let fixed = [
        "summary=Fixed",
        r#"findings={"finding":"F1","text":"There"}"#,
    ];
    commit(&env, "The header");
    let tip = env.tip();
    hand(&env, "coder", "reviewer", &fixed)
        .exits(3)
        .says("header, which is checked out here, has 1 commit that csv, the branch of issue 7, lacks")
        .says("`git switch csv` and `git merge header` take them over; without them, add `--set branch=csv`");
    assert_eq!(env.tip(), tip);
    // Where another working tree has the branch, git refuses to switch to it.
    env.git(&env.repo(), &["worktree", "add", "-q", "../tree", "csv"]);
    hand(&env, "coder", "reviewer", &fixed)
        .exits(3)
        .says("written; `git -C [root]/tree merge header` takes them over; without them");
    env.git(&env.repo(), &["-C", "../tree", "merge", "-q", "header"]);
    hand(&env, "coder", "reviewer", &fixed).success();
}

/// What is checked out may be another issue's: then its branch is not filled in, and it is said why.
#[cfg(feature = "agents")]
#[test]
fn the_branch_of_another_issue_is_not_filled_in() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    commit(&env, "The parcels as CSV");
    hand(&env, "coder", "reviewer", &["branch=csv", "summary=Done"]).success();
    let opens = "send --issue 8 --to coder --as maintainer --set summary=Wanted";
    let words = opens.split(' ').chain(["--set", HEADER]);
    let words: Vec<&str> = words.collect();
    let (more, answer) = (
        ["--issue", "8", "--to", "reviewer", "--as", "coder"],
        r#"findings={"finding":"F1","text":"There"}"#,
    );
    env.handoff(&words).success();
    env.claim("8", "coder").success();
    let others = |issue: &str| {
        let shown = run(&env, "prime --as coder").success().stdout;
        assert!(shown.contains("branch: "), "{shown}");
        let send = ["--set", "summary=Done", "--set", answer];
        let ran = env
            .handoff(&[&["send"], &more[..], &send].concat())
            .exits(3);
        ran.says(&format!(
            "which is checked out here, is the branch of issue {issue}"
        ))
        .says("check out the branch of issue 8, or name it with --set branch=NAME");
    };
    others("7");
    // Also if the other issue has ended, or has given the branch its name only.
    env.claim("7", "reviewer").success();
    hand(&env, "reviewer", "end", &["summary=Good"]).success();
    others("7");
    env.git(&env.repo(), &["switch", "-q", "-c", "fix/7-more"]);
    others("7");
    env.git(&env.repo(), &["switch", "-q", "-c", "fix/8-header", "main"]);
    commit(&env, "The header");
    let send = ["--set", "summary=Done", "--set", answer];
    env.handoff(&[&["send"], &more[..], &send].concat())
        .success();
    env.assert_sound();
}

/// Issue 87, whose implementer is at work on a branch that prep-agent named.
fn in_work() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(sample("issue-manager-to-prep-agent", Format::Xml, 87))
        .success();
    env.claim("87", "prep-agent").success();
    env.send(sample("prep-agent-to-implementer-agent", Format::Xml, 87))
        .success();
    env.claim("87", "implementer-agent").success();
    env
}

/// Work on another branch than the issue's goes on it, and a branch may have to be fetched.
#[test]
fn work_on_another_branch_has_a_way_on() {
    let env = in_work();
    let git = |args: &[&str]| env.git(&env.repo(), args);
    let send = "send --issue 87 --to reviewer-agent --as implementer-agent --set summary=s --set tests_added=1 \
        --set coverage=80% --set pr_number=5 --set pr_url=https://github.com/quayside/parcel-desk/pull/5";
    let send: Vec<&str> = send.split_whitespace().collect();
    let branch = "enhancement/87-csv-export";
    git(&["remote", "add", "origin", "nowhere"]);
    env.handoff(&send)
        .exits(3)
        .says("there is no branch \"enhancement/87-csv-export\" here, or where origin was fetched last")
        .says("fetch it: `git fetch origin`; if nobody pushed it, make it: `git switch -c");
    git(&["remote", "remove", "origin"]);
    git(&["branch", branch]);
    git(&["switch", "-q", "-c", "mine"]);
    commit(&env, "The export");
    let way = format!("what is on mine comes with `git switch {branch}` and `git merge mine`");
    env.handoff(&send).exits(3).says(&way);
    git(&["switch", "-q", branch]);
    git(&["merge", "-q", "mine"]);
    env.handoff(&send).success();
    env.assert_sound();
}

/// If an earlier contract named the wrong branch, its agent asks a person, who notes the right one.
#[test]
fn a_fact_that_only_a_person_corrects_is_asked_about() {
    let env = in_work();
    let name = "implementer-agent-to-reviewer-agent";
    let contract = || json_of(name, &[("/branch", json!("mine"))]);
    let wrong = refused(&env, &[], contract());
    assert_eq!(wrong.says(), (4, "inconsistent"));
    let ask = "git handoff block 87.2 --as implementer-agent --reason";
    assert!(wrong.hint.contains(ask), "{}", wrong.hint);
    run(&env, &format!("{} mine", &ask["git handoff ".len()..]))
        .says("next, for orchestrator: git handoff answer 87.2 ANSWER --as orchestrator");
    run(
        &env,
        "annotate 87 --as maintainer --fact branch=mine --note right",
    );
    run(&env, "answer 87.2 noted --as maintainer");
    env.claim("87", "implementer-agent").success();
    sent(&env, contract());
    env.assert_sound();
}
