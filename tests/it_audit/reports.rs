//! Test and coverage reports beside what contracts say.

use std::fs;
use std::path::Path;

use crate::desk::{BRANCH, Desk, merged};
use insta::assert_snapshot;
use serde_json::Value;
use test_support::{Ran, TestEnvironment, stored};

const LCOV: &str = "SF:src/export.py\nLF:200\nLH:177\nend_of_record\n";
const COBERTURA: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n\
    <coverage line-rate=\"0.885\" lines-covered=\"177\" lines-valid=\"200\"/>\n";
const GREEN: &str =
    "<testsuites><testsuite><testcase name=\"a\"/><testcase name=\"b\"/></testsuite></testsuites>";
const RED: &str = "<testsuite><testcase name=\"c\"><failure>no</failure></testcase></testsuite>";

/// A desk whose implementer is done, and its contract as a file; it says 88.5%.
fn implemented_at(policy: &str) -> (Desk, String) {
    let desk = Desk::new(policy);
    let commits = desk.work();
    let contract = desk.env.file(
        "contract.xml",
        desk.implemented(2, &[&commits[0], &commits[1]]),
    );
    (desk, contract)
}

#[test]
fn coverage_is_compared_with_lcov_and_with_cobertura() {
    for report in [LCOV, COBERTURA] {
        let (desk, contract) = implemented_at("enforce");
        let report = desk.env.file("coverage", report);
        desk.env
            .handoff(&["send", &contract, "--coverage", &report])
            .success();
        assert_eq!(desk.check("87.3", "coverage"), "passed");
        let record = stored(&desk.env.data(&["show", "87.3"]));
        let file = &record["evidence"][4]["files"][0];
        assert_eq!(file["name"], report);
        assert_eq!(file["sha256"].as_str().unwrap().len(), 64);
        desk.env.assert_sound();
    }
}

#[test]
fn coverage_that_the_report_does_not_bear_out_is_refused() {
    let (desk, contract) = implemented_at("enforce");
    let report = desk.env.file("lcov.info", LCOV.replace("177", "150"));
    let tip = desk.env.tip();
    let ran = desk
        .env
        .handoff(&["send", &contract, "--coverage", &report]);
    assert_snapshot!(ran.exits(3).shown, @r#"
    $ git handoff send [root]/contract.xml --coverage [root]/lcov.info
    --- stderr
    error: the repository contradicts the contract
      12:3 /handoff/coverage evidence.coverage the contract says "88.5%", and the report 75.00%
          say what the report says, or give the report of this run
    hint: nothing was written; make the repository match the contract, or correct the contract, and send it again; see `git handoff explain evidence_contradicted`
    --- exit 3
    "#);
    assert_eq!(desk.env.tip(), tip);
    // Several are summed.
    let rest = desk.env.file(
        "rest.info",
        "SF:b\nLF:100\nLH:116\nend_of_record\n".replace("116", "100"),
    );
    let ran = desk
        .env
        .handoff(&["send", &contract, "--coverage", &report, &rest]);
    ran.exits(3).says("83.33%");
}

/// Sends the validator's contract with these words about its tests; that they may tell of failures is
/// allowed here.
fn validated(policy: &str, words: &str, reports: &[&str]) -> (Desk, Ran) {
    let desk = Desk::with(policy, |protocol| {
        let rules = protocol["consistency"].as_array_mut().unwrap();
        rules.retain(|rule| rule["name"] != "merged-with-passing-tests");
    });
    let [first, second] = desk.work();
    desk.approved(&[&first, &second]);
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["merge", "-q", "--no-ff", "--no-edit", BRANCH]);
    let commit = desk.git(&["rev-parse", "HEAD"]);
    let contract = merged(&commit, "merge").replace("all 431 green", words);
    let contract = desk.env.file("contract.xml", contract);
    let mut args = vec!["send".to_owned(), contract];
    for (i, report) in reports.iter().enumerate() {
        args.extend([
            "--tests".to_owned(),
            desk.env.file(&format!("junit-{i}.xml"), report),
        ]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ran = desk.env.handoff(&args);
    (desk, ran)
}

#[test]
fn words_about_tests_are_compared_with_the_reports_together() {
    let (desk, ran) = validated("enforce", "passed (2/2)", &[GREEN]);
    ran.success();
    assert_eq!(desk.check("87.5", "tests"), "passed");
    let (desk, ran) = validated("enforce", "1 of 3 failed", &[GREEN, RED]);
    ran.success();
    assert_eq!(desk.check("87.5", "tests"), "passed");
    desk.env.assert_sound();
    for words in ["all green", "passed (3/3)", "2 passed"] {
        let (_, ran) = validated("enforce", words, &[GREEN, RED]);
        ran.exits(3)
            .says("evidence.tests")
            .says("3 tests: 2 passed, 1 failed, 0 skipped");
    }
    let (desk, ran) = validated("warn", "all green", &[GREEN, RED]);
    ran.success().says("warning evidence.tests");
    assert!(desk.check("87.5", "tests").starts_with("contradicted: "));
}

#[test]
fn a_number_beside_a_word_is_that_count() {
    const SKIP: &str = "<testsuite><testcase name=\"d\"><skipped/></testcase></testsuite>";
    const ONE: &str = "<testsuite><testcase name=\"a\"/></testsuite>";
    for words in [
        "1 failed, 1 passed, 1 skipped in 2.31s",
        "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured",
        "node 20: 1 failed, 1 passed",
    ] {
        let (desk, ran) = validated("enforce", words, &[ONE, RED, SKIP]);
        ran.success();
        assert_eq!(desk.check("87.5", "tests"), "passed");
    }
    let (_, ran) = validated("enforce", "1 passed, 0 failed", &[RED]);
    assert_snapshot!(ran.exits(3).stderr, @r#"
    error: the repository contradicts the contract
      11:5 /handoff/validation_summary/tests evidence.tests the contract says "1 passed, 0 failed", and the report has 1 test: 0 passed, 1 failed, 0 skipped; "1 passed": the report says 0
          say what the report says, or give the report of this run
    hint: nothing was written; make the repository match the contract, or correct the contract, and send it again; see `git handoff explain evidence_contradicted`
    "#);
}

#[test]
fn without_a_report_nothing_is_said_of_tests() {
    let (desk, ran) = validated("enforce", "all 431 green", &[]);
    ran.success();
    assert_eq!(
        desk.check("87.5", "tests"),
        "skipped: no test report was given"
    );
    assert_eq!(
        desk.check("87.5", "coverage"),
        "skipped: no coverage report was given"
    );
}

#[test]
fn what_is_no_report_is_refused_whatever_the_policy() {
    for policy in ["enforce", "off"] {
        let (desk, contract) = implemented_at(policy);
        let tip = desk.env.tip();
        for (option, text, why) in [
            ("--tests", "{}", "it is not a JUnit report"),
            ("--tests", "<testsuite>", "line 1: "),
            (
                "--tests",
                "<!DOCTYPE a [<!ENTITY b \"c\">]><testsuite/>",
                "declarations of its own",
            ),
            ("--coverage", "nothing", "it is not a coverage report"),
            (
                "--coverage",
                "<coverage line-rate=\"2\"/>",
                "line-rate is \"2\", not a number",
            ),
            (
                "--coverage",
                "SF:a\nLF:1\nLH:5\nend_of_record\nSF:b\nLF:9\nLH:2\nend_of_record\n",
                "it says that 5 of 1 lines were run",
            ),
            (
                "--coverage",
                "SF:a\nend_of_record\n",
                "it lists no coverable lines",
            ),
            (
                "--coverage",
                "<coverage lines-covered=\"5\" lines-valid=\"1\"/>",
                "it says that 5 of 1 lines were run",
            ),
            (
                "--coverage",
                "<coverage line-rate=\"1\" lines-covered=\"0\" lines-valid=\"0\"/>",
                "it lists no coverable lines",
            ),
        ] {
            let report = desk.env.file("report", text);
            let ran = desk.env.handoff(&["send", &contract, option, &report]);
            ran.exits(3).says(why).says("--coverage");
        }
        let ran = desk
            .env
            .handoff(&["send", &contract, "--tests", "none.xml"]);
        ran.exits(6);
        assert_eq!(desk.env.tip(), tip);
    }
}

#[test]
fn an_answer_says_whether_its_tests_pass() {
    let env = TestEnvironment::with_repository();
    let init = [
        "init",
        "--protocol",
        "orchestrator-specialist",
        "--evidence",
        "enforce",
    ];
    env.handoff(&init).success();
    let sample = |name: &str| {
        let folder = "tests/samples/orchestrator-specialist/valid";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        fs::read_to_string(path.join(format!("{name}.json"))).unwrap()
    };
    env.send(sample("request")).success();
    env.handoff(&["claim", "--next", "--as", "@react-specialist"])
        .success();
    let response = sample("response");
    let contract = env.file("response.json", &response);
    env.handoff(&["send", &contract])
        .exits(3)
        .says("evidence.artifacts");
    let response: Value = serde_json::from_str(&response).unwrap();
    let artifact = env
        .repo()
        .join(response["output"]["artifact_path"].as_str().unwrap());
    fs::create_dir_all(artifact.parent().unwrap()).unwrap();
    let file = r#"{"path": "src/LoanList.tsx", "summary": "The list"}"#;
    let text = format!(
        r#"{{"artifact_id": "a-1", "artifact_type": "react-components", "files": [{file}]}}"#
    );
    fs::write(&artifact, text).unwrap();
    let (red, green) = (env.file("red.xml", RED), env.file("green.xml", GREEN));
    let ran = env.handoff(&["send", &contract, "--tests", &red]);
    ran.exits(3)
        .says("the contract says \"true\"")
        .says("1 failed");
    env.handoff(&["send", &contract, "--tests", &green])
        .success()
        .says("passed artifacts, tests");
    env.assert_sound();
}

#[test]
fn added_tests_are_compared_with_the_report_or_listed_as_unchecked() {
    let (desk, contract) = implemented_at("enforce");
    let report = desk.env.file("junit.xml", GREEN);
    // The contract says 15.
    let ran = desk
        .env
        .handoff(&["send", &contract, "--tests", &report])
        .exits(3);
    ran.says("evidence.tests_added the contract says \"15\", and the report has only 2 tests");
    let two = fs::read_to_string(&contract)
        .unwrap()
        .replace(">15<", ">2<");
    fs::write(&contract, two).unwrap();
    desk.env
        .handoff(&["send", &contract, "--tests", &report])
        .success();
    assert_eq!(
        desk.check("87.3", "tests_added"),
        "skipped: a report does not say which of its tests are new"
    );
    desk.env.assert_sound();

    let (desk, contract) = implemented_at("enforce");
    desk.env.handoff(&["send", &contract]).success();
    assert_eq!(
        desk.check("87.3", "tests_added"),
        "skipped: no test report was given"
    );
}

#[test]
fn coverage_that_does_not_apply_is_skipped_for_its_reason_unless_a_report_has_one() {
    let (desk, contract) = implemented_at("enforce");
    let text = fs::read_to_string(&contract).unwrap();
    fs::write(&contract, text.replace("88.5%", "n/a: only documents")).unwrap();
    let report = desk.env.file("lcov.info", LCOV);
    let ran = desk
        .env
        .handoff(&["send", &contract, "--coverage", &report])
        .exits(3);
    ran.says("the contract says \"n/a: only documents\", and the report 88.50%");
    desk.env.handoff(&["send", &contract]).success();
    assert_eq!(
        desk.check("87.3", "coverage"),
        "skipped: the contract says that it does not apply: only documents"
    );
    desk.env.assert_sound();
}
