//! `check` is `send` without the write: in each state it ends alike, and nothing is left behind.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::TestEnvironment;
use test_support::contracts::{opening, prepared};

/// Every file below a folder, with its content.
fn files(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

/// The code, the message and the findings of a refusal.
fn refusal(document: &Value) -> Value {
    let mut error = document["error"].clone();
    for finding in error["findings"].as_array_mut().into_iter().flatten() {
        finding.as_object_mut().unwrap().remove("file");
    }
    error
}

/// Checks a contract, sends it, and insists that both end alike.
#[track_caller]
fn alike(env: &TestEnvironment, contract: &str, options: &[&str], exit: i32) {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    env.pace(0);
    files(&env.repo(), &mut before);
    let checked = [&["check", "-", "--json"][..], options].concat();
    let checked = env.handoff_with(&checked, contract).exits(exit);
    files(&env.repo(), &mut after);
    assert!(before == after, "nothing is written by {}", checked.shown);
    let sent = [&["send", "-", "--json"][..], options].concat();
    let sent = env.handoff_with(&sent, contract).exits(exit);
    let (checked, sent) = (checked.json(), sent.json());
    assert_eq!(refusal(&checked), refusal(&sent));
    if exit == 0 {
        let (file, handoff) = (&checked["data"]["files"][0], &sent["data"]["handoff"]);
        assert_eq!(file["id"], handoff["id"]);
    }
    env.pace(1);
}

#[test]
fn what_check_says_is_what_send_does() {
    let env = TestEnvironment::with_ledger();
    // The working tree gets its worker's id with the first write.
    env.send(opening(86)).success();
    alike(&env, &prepared(87), &[], 4);
    alike(&env, &opening(87).replace("medium", "urgent"), &[], 3);
    alike(&env, &opening(87), &["--as", "fixer-agent"], 4);
    alike(&env, &opening(87), &[], 0);
    alike(&env, &opening(87), &[], 0);
    alike(&env, &prepared(87), &[], 4);
    let claimed = ["claim", "87.1", "--as", "prep-agent", "--lease", "10m"];
    env.handoff(&claimed).success();
    alike(&env, &prepared(87), &["--token", "7"], 5);
    alike(
        &env,
        &prepared(87),
        &["--allow-secret", "aws-access-key"],
        2,
    );
    env.wait_minutes(20);
    // The end of the lease is recorded first, by `send` alone.
    alike(&env, &prepared(87), &[], 5);
    env.handoff(&["retry", "87.1", "--as", "orchestrator"])
        .success();
    env.handoff(&["claim", "87.1", "--as", "prep-agent"])
        .success();
    alike(&env, &prepared(87), &[], 0);
    env.assert_sound();
}

#[test]
fn a_document_can_be_judged_alone() {
    let env = TestEnvironment::with_ledger();
    let early = env.file("early.xml", prepared(87));
    env.handoff(&["check", &early])
        .exits(4)
        .says("issue 87 has not been opened yet");
    let alone = env.handoff(&["check", "--contract-only", &early]).success();
    let last = "only the document was judged, not whether it may be sent now\n";
    assert!(alone.stdout.ends_with(last), "{}", alone.shown);
    // Each file is judged by itself, and the first one that would be refused decides.
    let (faulty, fine) = (
        env.file("faulty.xml", opening(88).replace("medium", "urgent")),
        env.file("fine.xml", opening(89)),
    );
    env.handoff(&["check", &fine, &fine]).success();
    env.handoff(&["check", &fine, &early, &faulty]).exits(4);
    env.handoff(&["check", &fine, &faulty, &early]).exits(3);
}
