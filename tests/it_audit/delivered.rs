//! Files that contracts deliver: there when they are sent, and the same when they are taken up.

use std::fs;

use crate::desk::{BRANCH, Desk};
use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::TestEnvironment;

const REPORT: &str = "docs/report.md";

/// A desk whose implementer delivers a report, and the contract that does.
fn with_report(policy: &str) -> (Desk, String) {
    let desk = Desk::with(policy, |protocol| {
        protocol["contracts"][2]["artifacts"] = json!({"path": "/data/report"});
    });
    desk.work();
    let contract = delivering(&desk, 2);
    (desk, contract)
}

/// The contract that delivers the report, with all that the branch has.
fn delivering(desk: &Desk, files: u32) -> String {
    desk.done(files).replace(
        "</handoff>",
        &format!("<data><report>{REPORT}</report></data></handoff>"),
    )
}

fn put(desk: &Desk, text: &str) {
    let path = desk.env.repo().join(REPORT);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn artifact(desk: &Desk) -> Value {
    desk.env.data(&["show", "87.3"])["record"]["artifacts"][0].take()
}

#[test]
fn a_file_that_is_not_there_is_refused_or_warned_of() {
    let (desk, contract) = with_report("enforce");
    let found = desk.refused(&contract, &["evidence.artifacts"]);
    assert_snapshot!(found.join("\n"), @r#"/handoff/data/report there is no file "docs/report.md""#);
    let (desk, contract) = with_report("warn");
    desk.env
        .send(&contract)
        .success()
        .says("warning evidence.artifacts");
    assert!(desk.check("87.3", "artifacts").starts_with("contradicted"));
    // What was not there when it was sent need not be there later.
    desk.env.claim("87.3", "reviewer-agent").success();
    desk.env.assert_sound();
}

#[test]
fn a_file_that_changed_before_it_was_taken_up_is_named() {
    for (policy, exit) in [("enforce", 3), ("warn", 0), ("off", 0)] {
        let (desk, contract) = with_report(policy);
        put(&desk, "all well\n");
        desk.env.send(&contract).success();
        assert_eq!(artifact(&desk).get("committed"), None);
        desk.env.assert_sound();
        put(&desk, "all very well\n");
        let verify = desk.env.handoff(&["verify"]);
        let tip = desk.env.tip();
        let claim = desk.env.claim("87.3", "reviewer-agent").exits(exit);
        match policy {
            "enforce" => {
                assert_snapshot!(claim.shown, @"
                $ git handoff claim 87.3 --as reviewer-agent
                --- stderr
                error: a delivered file was changed or removed
                  docs/report.md artifact.changed 87.3 delivered it with the sha256 [sha256], and now it has [sha256]
                      bring back the file that implementer-agent delivered, or reject the handoff
                hint: nothing was written; restore what was delivered, or reject the handoff with `git handoff reject ID --reason WHY --as reviewer-agent`
                --- exit 3
                ");
                assert_eq!(desk.env.tip(), tip, "nothing is written");
                verify.exits(10).says("error").says("artifact.changed");
                put(&desk, "all well\n");
                desk.env.assert_sound();
                desk.env.claim("87.3", "reviewer-agent").success();
            }
            "warn" => {
                claim.says("warning artifact.changed");
                verify.success();
            }
            _ => assert!(!claim.shown.contains("artifact.changed")),
        }
        // What was taken up is its receiver's to change.
        put(&desk, "as the reviewer has it\n");
        desk.env.assert_sound();
    }
}

#[test]
fn a_file_that_is_gone_is_named() {
    let (desk, contract) = with_report("enforce");
    put(&desk, "all well\n");
    desk.env.send(&contract).success();
    fs::remove_file(desk.env.repo().join(REPORT)).unwrap();
    desk.env
        .claim("87.3", "reviewer-agent")
        .exits(3)
        .says("artifact.missing");
    let next = ["claim", "--next", "--as", "reviewer-agent"];
    desk.env.handoff(&next).exits(3).says("artifact.missing");
    // Another clone may have it: that is no damage of the ledger.
    let told = desk.env.handoff(&["verify", "--json"]).success().json();
    let finding = &told["data"]["findings"][0];
    assert_eq!(finding["severity"], "warning");
    assert_eq!(finding["code"], "artifact.missing");
    assert_eq!(finding["path"], REPORT);
    assert_eq!(finding["commit"], desk.env.tip());
}

#[test]
fn a_committed_file_is_looked_for_on_its_branch() {
    let (desk, _) = with_report("enforce");
    desk.commit(BRANCH, &[(REPORT, "all well\n")], "report");
    let contract = delivering(&desk, 3);
    desk.git(&["checkout", "-q", "main"]);
    desk.env.send(&contract).success();
    assert_eq!(artifact(&desk)["committed"], true);
    desk.env.assert_sound();
    // Another working tree has another file there.
    put(&desk, "something else\n");
    desk.env.assert_sound();
    fs::remove_file(desk.env.repo().join(REPORT)).unwrap();
    desk.commit(BRANCH, &[(REPORT, "all very well\n")], "report again");
    desk.env
        .claim("87.3", "reviewer-agent")
        .exits(3)
        .says("artifact.changed")
        .says("git show");
    desk.git(&["reset", "-q", "--hard", "HEAD~1"]);
    desk.env.claim("87.3", "reviewer-agent").success();
}

#[test]
fn a_clone_without_the_file_is_told_and_its_ledger_is_sound() {
    let (desk, contract) = with_report("enforce");
    put(&desk, "all well\n");
    desk.env.send(&contract).success();
    desk.git(&["clone", "-q", ".", "../other"]);
    let other = desk.env.root().join("other");
    desk.env
        .git(&other, &["branch", "handoffs", "origin/handoffs"]);
    let verify = desk.env.handoff_in(&other, &["verify"]);
    verify.success().says("artifact.missing").says("warning");
    // A file that is there and differs is told as before.
    fs::create_dir(other.join("docs")).unwrap();
    fs::write(other.join(REPORT), "all very well\n").unwrap();
    let verify = desk.env.handoff_in(&other, &["verify"]);
    verify.exits(10).says("artifact.changed");
}

#[test]
fn only_files_need_to_be_there() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "directive", "--evidence", "enforce"])
        .success();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let sample = "tests/samples/directive/valid/handoff-every-kind-of-artifact.json";
    let contract = fs::read_to_string(folder.join(sample)).unwrap();
    let refused = env
        .handoff_with(&["send", "-", "--json"], &contract)
        .exits(3)
        .json();
    let findings = refused["error"]["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0]["path"], "/produced_artifacts/0/location");
    fs::create_dir(env.repo().join("docs")).unwrap();
    fs::write(env.repo().join("docs/chart.md"), "bars\n").unwrap();
    env.send(&contract).success();
    env.assert_sound();
}
