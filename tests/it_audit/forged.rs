//! Records that say more of a contract's claims than was found, committed through plain git; and imports.

use std::fs;

use crate::desk::{BRANCH, Desk, fixed, implemented, merged};
use crate::keys::{self, put, raw};
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::opening;

/// Rewrites the newest commit of the ledger: the records that it wrote are changed, in both places.
fn forge(desk: &Desk, id: &str, change: impl FnOnce(&mut Value)) {
    let record = format!(
        "issues/87/00/87/{:04}.json",
        id[3..].parse::<u32>().unwrap()
    );
    let worktree = desk.env.root().join("forgery");
    let path = worktree.to_str().unwrap();
    desk.git(&["worktree", "add", "-q", "--detach", path, "handoffs"]);
    let git = |args: &[&str]| desk.env.git(&worktree, args).trim().to_owned();
    let stored = fs::read(worktree.join(&record)).unwrap();
    let mut value: Value = serde_json::from_slice(&stored).unwrap();
    change(&mut value);
    let mut text = serde_json::to_vec_pretty(&value).unwrap();
    text.push(b'\n');
    let open = git(&["ls-files", "open/"]);
    let end = format!(".{id}.json");
    let open = open.lines().find(|path| path.ends_with(&end));
    for file in [Some(record.as_str()), open].into_iter().flatten() {
        fs::write(worktree.join(file), &text).unwrap();
    }
    git(&["add", "-A"]);
    git(&[
        "commit",
        "-q",
        "--amend",
        "--no-edit",
        "--no-verify",
        "--reset-author",
    ]);
    let author = format!("{0} <{0}@handoff.invalid>", value["from"].as_str().unwrap());
    let date = value["transitions"][0]["at"].as_str().unwrap().to_owned();
    git(&[
        "commit",
        "-q",
        "--amend",
        "--no-edit",
        "--author",
        &author,
        "--date",
        &date,
    ]);
    let forged = git(&["rev-parse", "HEAD"]);
    desk.git(&["worktree", "remove", "--force", path]);
    desk.git(&["update-ref", "refs/heads/handoffs", &forged]);
}

/// What the audit finds: codes, each once.
fn damage(desk: &Desk) -> Vec<String> {
    let found = desk
        .env
        .handoff(&["verify", "--json", "--accept-rewritten"])
        .exits(10)
        .json();
    let findings = found["error"]["findings"].as_array().unwrap();
    assert!(
        findings.iter().all(|f| f["commit"].is_string()),
        "{findings:?}"
    );
    let text = |f: &Value| {
        format!(
            "{}: {}",
            f["code"].as_str().unwrap(),
            f["message"].as_str().unwrap()
        )
    };
    let mut found: Vec<String> = findings.iter().map(text).collect();
    found.dedup();
    found
}

/// A desk that warns, where the implementer sent this.
fn sent(contract: &str) -> Desk {
    let desk = Desk::new("warn");
    desk.work();
    desk.env.send(contract).success();
    desk
}

/// Makes one check of a record say that it passed.
fn passed(record: &mut Value, check: &str) {
    let evidence = record["evidence"].as_array_mut().unwrap();
    let entry = evidence.iter_mut().find(|e| e["check"] == check).unwrap();
    entry["result"] = "passed".into();
    // The order of the others is part of the stored form.
    entry.as_object_mut().unwrap().shift_remove("reason");
}

#[test]
fn an_amended_commit_without_a_change_is_sound() {
    // The tests below find what they forged, not how.
    let desk = sent(&implemented(9, &["1234567"]));
    forge(&desk, "87.3", |_| {});
    let args = ["verify", "--accept-rewritten"];
    desk.env.handoff(&args).success();
}

#[test]
fn a_check_that_is_said_to_have_passed_is_made_again() {
    for check in ["commits", "files_changed"] {
        let desk = sent(&implemented(9, &["1234567"]));
        forge(&desk, "87.3", |record| passed(record, check));
        let found = damage(&desk);
        let start = format!("evidence.forged: the record says that the check {check} passed: ");
        assert!(
            found.len() == 1 && found[0].starts_with(&start),
            "{found:?}"
        );
    }
}

#[test]
fn other_commits_than_the_ledgers_own_are_found() {
    let desk = sent(&implemented(2, &["1234567"]));
    desk.commit("main", &[("a.txt", "1\n")], "elsewhere");
    let other = desk.git(&["rev-parse", "main"]);
    forge(&desk, "87.3", |record| {
        passed(record, "commits");
        record["evidence"][1]["tip"] = other.clone().into();
    });
    let found = damage(&desk);
    assert!(
        found[0].contains("another commit than the branch's"),
        "{found:?}"
    );
}

#[test]
fn a_count_from_another_commit_than_was_handed_over_is_found() {
    let desk = Desk::new("warn");
    let [first, second] = desk.work();
    desk.reviewed(&[&first, &second]);
    desk.commit(
        BRANCH,
        &[("src/export.py", "safe rows\n")],
        "export: formulas",
    );
    desk.env.send(fixed(2)).success();
    assert!(
        desk.check("87.5", "commits_added")
            .starts_with("contradicted")
    );
    forge(&desk, "87.5", |record| {
        passed(record, "commits_added");
        record["evidence"][0]["since"] = first.clone().into();
    });
    let found = damage(&desk);
    assert!(
        found[0].contains("another commit than the one that was handed over"),
        "{found:?}"
    );
}

#[test]
fn a_merge_that_is_said_to_have_passed_is_made_again() {
    let desk = Desk::new("warn");
    let [first, second] = desk.work();
    desk.approved(&[&first, &second]);
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["merge", "-q", "--no-ff", "--no-edit", BRANCH]);
    let merge = desk.git(&["rev-parse", "main"]);
    desk.env.send(merged(&merge, "squash")).success();
    forge(&desk, "87.5", |record| passed(record, "merge"));
    let found = damage(&desk);
    assert!(found[0].starts_with("evidence.forged"), "{found:?}");
}

#[test]
fn a_merge_that_was_judged_at_an_older_state_is_found() {
    let desk = Desk::new("warn");
    let [first, second] = desk.work();
    desk.approved(&[&first, &second]);
    desk.commit("main", &[("meanwhile.txt", "1\n")], "meanwhile");
    desk.git(&["merge", "-q", "--squash", BRANCH]);
    desk.git(&["commit", "-q", "-m", "all of it"]);
    let squash = desk.git(&["rev-parse", "HEAD"]);
    desk.env.send(merged(&squash, "squash")).success();
    forge(&desk, "87.5", |record| {
        record["evidence"][0]["tip"] = first.into();
    });
    let found = damage(&desk);
    assert!(
        found[0].ends_with("merge passed: it was judged at an older commit than the branch's"),
        "{found:?}"
    );
}

#[test]
fn a_report_that_was_never_given_is_found() {
    let desk = Desk::new("warn");
    desk.work();
    desk.env.send(desk.done(2)).success();
    forge(&desk, "87.3", |record| passed(record, "coverage"));
    assert_eq!(
        damage(&desk),
        ["evidence.forged: the record says that the check coverage passed: no report is recorded"]
    );
}

#[test]
fn a_file_that_the_branch_never_had_so_is_found() {
    let desk = Desk::with("warn", |protocol| {
        protocol["contracts"][2]["artifacts"] = json!({"path": "/data/report"});
    });
    desk.work();
    let report = "<data><report>src/export.py</report></data></handoff>";
    desk.env
        .send(desk.done(2).replace("</handoff>", report))
        .success();
    let artifact = desk.env.data(&["show", "87.3"])["record"]["artifacts"][0].take();
    assert_eq!(artifact["committed"], true);
    forge(&desk, "87.3", |record| {
        record["artifacts"][0]["sha256"] = "0".repeat(64).into();
    });
    let found = damage(&desk);
    assert!(
        found
            .iter()
            .any(|f| f.contains("src/export.py is not so in commit")),
        "{found:?}"
    );
}

#[test]
fn a_step_without_the_checks_that_are_demanded_is_no_step() {
    for (name, forged) in [
        ("evidence", Value::Null),
        ("policy", "enforce".into()),
        ("reason", Value::Null),
    ] {
        let desk = sent(&implemented(9, &["1234567"]));
        forge(&desk, "87.3", |record| match name {
            "evidence" => drop(record.as_object_mut().unwrap().shift_remove(name)),
            "reason" => drop(
                record["evidence"][1]
                    .as_object_mut()
                    .unwrap()
                    .shift_remove(name),
            ),
            _ => record["evidence"][1][name] = forged,
        });
        let found = damage(&desk);
        assert!(
            found.iter().any(|f| f.starts_with("step.illegal: ")),
            "{name}: {found:?}"
        );
    }
    // And one that records what nothing demands.
    let desk = Desk::new("off");
    desk.env.send(implemented(9, &["1234567"])).success();
    forge(&desk, "87.3", |record| {
        record["evidence"] = json!([{"check": "commits", "policy": "warn", "result": "passed"}]);
    });
    assert!(
        damage(&desk)
            .iter()
            .any(|f| f.starts_with("step.illegal: "))
    );
}

#[cfg(feature = "exchange")]
#[test]
fn what_was_found_goes_with_an_export_and_foreign_contracts_are_not_checked() {
    let desk = Desk::new("warn");
    desk.work();
    desk.env.send(desk.done(9)).success();
    let out = desk.env.root().join("out");
    let out = out.to_str().unwrap();
    desk.env
        .handoff(&["export", "--format", "files", out])
        .success();
    let record = test_support::stored(&desk.env.data(&["show", "87.3"]));
    for (policy, from, to) in [("warn", "contradicted", "contradicted"), ("off", "", "")] {
        let other = TestEnvironment::with_repository();
        other.handoff(&["init", "--evidence", policy]).success();
        other.handoff(&["import", out]).success();
        let again = test_support::stored(&other.data(&["show", "87.3"]));
        if policy == "warn" {
            assert_eq!(again["evidence"], record["evidence"], "{from} {to}");
        } else {
            assert_eq!(again.get("evidence"), None);
        }
        other.assert_sound();
    }
    // Without the steps they are contracts from anywhere.
    fs::remove_file(format!("{out}/steps.jsonl")).unwrap();
    let other = TestEnvironment::with_repository();
    other.handoff(&["init", "--evidence", "enforce"]).success();
    other.handoff(&["import", out]).success();
    let again = other.data(&["show", "87.3"])["record"]["evidence"].take();
    let again = again.as_array().unwrap();
    assert_eq!(again.len(), 5);
    assert!(
        again
            .iter()
            .all(|e| e["result"] == "skipped" && e["reason"] == "imported")
    );
    other.assert_sound();
}

#[test]
fn a_fact_that_is_not_its_writers_to_note_is_found() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let fact = format!("head={}", "1".repeat(40));
    let note = [
        "annotate",
        "87",
        "--as",
        "maintainer",
        "--note",
        "n",
        "--fact",
        &fact,
    ];
    env.handoff(&note).success();
    let noted = raw(&env, &env.tip());
    assert_eq!(noted.matches("maintainer").count(), 3, "{noted}");
    put(&env, &noted.replace("maintainer", "implementer-agent"));
    let found = keys::damage(&env);
    assert!(
        found.contains("step.illegal") && found.contains("cannot note the fact head"),
        "{found}"
    );
}
