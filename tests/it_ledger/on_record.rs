//! Refused contracts that a protocol keeps on record.

use serde_json::{Value, json};
use test_support::team::commits;
use test_support::time::{
    RESEARCH, TRACE, WRITER, added, asks, assert_goes_there_and_back, done, own, traced,
};
use test_support::{TestEnvironment, stored_issue};

/// Agents that delegate, in a protocol that keeps these kinds on record.
fn keeping(kinds: &Value) -> TestEnvironment {
    let env = own("delegation", |p| p["limits"]["on_record"] = kinds.clone());
    env.pace(6);
    env
}

fn about(to: &str, item: &str, reason: &str) -> String {
    let item = ("/sourceContext/documentType", json!(item));
    asks(WRITER, to, &[item, ("/reason", json!(reason))])
}

/// Sends a contract that is refused; the exit code, the error, and the subjects of new commits.
fn refused(env: &TestEnvironment, contract: &str) -> (i32, Value, Vec<String>) {
    let (ran, new) = added(env, || env.handoff_with(&["send", "-", "--json"], contract));
    (ran.status, ran.json()["error"].take(), new)
}

fn kept(env: &TestEnvironment) -> Vec<Value> {
    let issue = stored_issue(&env.data(&["status", TRACE]));
    issue["refusals"].as_array().cloned().unwrap_or_default()
}

const REASONS: [&str; 3] = [
    "missing_required_input",
    "validation_failure",
    "expertise_mismatch",
];

/// Three handoffs about one item.
fn full(kinds: &Value) -> TestEnvironment {
    let env = keeping(kinds);
    let all = ["validator", "orchestrator", RESEARCH];
    for (to, reason) in all.into_iter().zip(REASONS) {
        env.send(about(to, "tender", reason)).success();
    }
    env
}

#[test]
fn a_limit_is_on_record_for_every_clone() {
    let env = full(&json!(["limits"]));
    let before = done(&env, &format!("show {}", traced(1))).stdout;
    assert!(!before.contains("was refused"), "{before}");
    let (exit, error, new) = refused(&env, &about("validator", "tender", REASONS[2]));
    assert_eq!((exit, &error["code"]), (4, &json!("limit_reached")));
    let message = error["message"].as_str().unwrap();
    let said = format!("this is on record in issue {TRACE}");
    assert!(message.ends_with(&said), "{message}");
    let subject = format!("{WRITER}: {TRACE} refused {WRITER}, limit_reached: ");
    assert!(new.len() == 1 && new[0].starts_with(&subject), "{new:?}");
    let known = kept(&env);
    assert_eq!(known.len(), 1);
    assert_eq!(known[0]["by"], WRITER);
    assert_eq!(known[0]["kind"], "limits");
    assert_eq!(known[0]["why"], "3 handoffs about one item");
    // No state changed, and what comes next is as it was.
    assert_eq!(env.data(&["status", TRACE])["record"]["handoffs"], 3);
    env.git(env.root(), &["clone", "-q", "repo", "clone"]);
    let clone = env.root().join("clone");
    env.git(&clone, &["branch", "handoffs", "origin/handoffs"]);
    for line in [
        vec!["status", TRACE],
        vec!["show", &traced(1)],
        vec!["log", TRACE],
    ] {
        let told = env.handoff_in(&clone, &line).success().stdout;
        let wanted = if line[0] == "log" {
            "refused"
        } else {
            "was refused for a limit"
        };
        assert!(told.contains(wanted), "{line:?}: {told}");
    }
    env.assert_sound();
    let folder = env.root().join("own");
    assert_goes_there_and_back(&env, folder.to_str().unwrap());
}

#[test]
fn the_same_refusal_is_recorded_once_and_the_newest_fifty_are_kept() {
    let env = full(&json!(["limits"]));
    let one = about("validator", "tender", REASONS[2]);
    assert_eq!(refused(&env, &one).2.len(), 1);
    let before = commits(&env);
    for _ in 0..3 {
        assert_eq!(refused(&env, &one).0, 4);
    }
    assert_eq!(commits(&env), before);
    // Another agent's refusal in between makes it news.
    let other = one.replace(
        &format!("\"sourceAgent\":\"{WRITER}\""),
        "\"sourceAgent\":\"validator\"",
    );
    let other = other.replace(
        "\"handoffTo\":\"validator\"",
        "\"handoffTo\":\"orchestrator\"",
    );
    env.pace(0);
    done(&env, &format!("claim {} --as validator", traced(1)));
    for _ in 0..26 {
        assert_eq!(refused(&env, &other).2.len(), 1);
        assert_eq!(refused(&env, &one).2.len(), 1);
    }
    let known = kept(&env);
    assert_eq!(known.len(), 50);
    assert_eq!(
        (&known[48]["by"], &known[49]["by"]),
        (&json!("validator"), &json!(WRITER))
    );
    env.assert_sound();
}

#[test]
fn only_the_kinds_that_the_protocol_names_are_on_record() {
    let env = full(&json!([]));
    let before = commits(&env);
    let (exit, error, _) = refused(&env, &about("validator", "tender", REASONS[2]));
    assert_eq!(exit, 4);
    assert!(!error["message"].as_str().unwrap().contains("on record"));
    assert_eq!(commits(&env), before);

    let env = full(&json!(["cycles", "refused_contracts"]));
    assert_eq!(
        refused(&env, &about("validator", "tender", REASONS[2]))
            .2
            .len(),
        0
    );
    // Two of the last three go the same way for the same reason.
    let env = keeping(&json!(["cycles"]));
    for item in ["one", "two"] {
        env.send(about(RESEARCH, item, REASONS[0])).success();
    }
    let (exit, error, new) = refused(&env, &about(RESEARCH, "three", REASONS[0]));
    assert_eq!((exit, &error["code"], new.len()), (4, &json!("cycle"), 1));
    assert_eq!(kept(&env)[0]["kind"], "cycles");
    env.assert_sound();
}

#[test]
fn a_refused_contract_is_on_record_without_its_content_and_never_with_a_secret() {
    let env = full(&json!(["refused_contracts"]));
    let wrong = about(RESEARCH, "annex", "no such reason");
    let (exit, _, new) = refused(&env, &wrong);
    assert_eq!((exit, new.len()), (3, 1));
    let known = kept(&env);
    assert_eq!(known[0]["code"], "contract_refused");
    assert!(
        known[0]["why"].as_str().unwrap().starts_with("field."),
        "{known:?}"
    );
    let file = env.git(&env.repo(), &["show", "handoffs"]);
    assert!(!file.contains("no such reason"), "{file}");
    // An issue that does not exist gets none.
    let elsewhere = wrong.replace(TRACE, "0e9d8c7b-6a5f-4e3d-8c2b-1a0f9e8d7c6b");
    assert_eq!(refused(&env, &elsewhere).2.len(), 0);
    let before = commits(&env);
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let secret = asks(
        WRITER,
        RESEARCH,
        &[
            ("/reason", json!("no such reason")),
            ("/reasonDetail", json!(token)),
        ],
    );
    assert_eq!(refused(&env, &secret).0, 3);
    assert_eq!(commits(&env), before);
    env.assert_sound();
}
