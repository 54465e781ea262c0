//! Many writers at once, and locks that stay.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Output, Stdio};

use serde_json::Value;
use test_support::contracts::{opening, prepared};
use test_support::team::{at_once, commits};
use test_support::{TestEnvironment, repository_kind, stored};

fn start(env: &TestEnvironment, args: &[String]) -> Child {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = env.program(&args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn start_at(env: &TestEnvironment, now: i64, args: &[String]) -> Child {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = env.program(&args);
    for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        command.env(name, format!("@{now} +0000"));
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(|&arg| arg.to_owned()).collect()
}

fn send(env: &TestEnvironment, issue: u32) -> Vec<String> {
    let file = env.file(&format!("{issue}.xml"), opening(issue));
    words(&["send", &file, "--json"])
}

fn count(outputs: &[Output], status: i32) -> usize {
    outputs
        .iter()
        .filter(|o| o.status.code() == Some(status))
        .count()
}

fn ids(data: &Value) -> BTreeSet<String> {
    let handoffs = data["handoffs"].as_array().unwrap();
    handoffs
        .iter()
        .map(|h| h["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Puts a file where the writers' queue would be: only the compare-and-swap is
/// left to keep them apart.
fn without_queue(env: &TestEnvironment) {
    let queue = env.repo().join(".git/handoff");
    let _ = fs::remove_dir_all(&queue);
    fs::write(queue, "").unwrap();
}

fn said(outputs: &[Output]) -> String {
    let show = |o: &Output| {
        format!(
            "{:?} {}{}",
            o.status.code(),
            String::from_utf8_lossy(&o.stdout),
            String::from_utf8_lossy(&o.stderr)
        )
    };
    outputs.iter().map(show).collect()
}

#[test]
fn sixteen_senders_lose_nothing() {
    let env = TestEnvironment::with_ledger();
    for round in 0..3 {
        if round == 1 {
            without_queue(&env);
        }
        let all: Vec<_> = (1..=16).map(|n| send(&env, round * 100 + n)).collect();
        let ended = at_once(&env, &all);
        assert_eq!(count(&ended, 0), 16, "{}", said(&ended));
        assert_eq!(commits(&env), 1 + 16 * (round as usize + 1));
    }
    let mut expected = BTreeSet::new();
    for round in 0..3 {
        expected.extend((1..=16).map(|n| format!("{}.1", round * 100 + n)));
    }
    assert_eq!(ids(&env.data(&["status", "--limit", "0"])), expected);
    env.assert_sound();
}

#[test]
fn sixteen_claims_of_one_handoff_have_one_winner() {
    let env = TestEnvironment::with_ledger();
    for issue in 1..=3 {
        if issue == 2 {
            without_queue(&env);
        }
        env.send(opening(issue)).success();
        let before = commits(&env);
        let claim = |n: u32| {
            words(&[
                "claim",
                &format!("{issue}.1"),
                "--as",
                "prep-agent",
                "--json",
                &format!("--worker=worker-{n}"),
            ])
        };
        let ended = at_once(&env, &(0..16).map(claim).collect::<Vec<_>>());
        assert_eq!(
            (count(&ended, 0), count(&ended, 5)),
            (1, 15),
            "{}",
            said(&ended)
        );
        for lost in ended.iter().filter(|o| !o.status.success()) {
            let document: Value = serde_json::from_slice(&lost.stdout).unwrap();
            assert_eq!(document["error"]["code"], "already_claimed");
        }
        assert_eq!(commits(&env), before + 1);
    }
    env.assert_sound();
}

#[test]
fn sixteen_that_take_the_next_of_ten_get_ten_different_ones() {
    let env = TestEnvironment::with_ledger();
    for issue in 1..=10 {
        env.send(opening(issue)).success();
    }
    let next = words(&["claim", "--next", "--as", "prep-agent", "--json"]);
    let ended = at_once(&env, &vec![next; 16]);
    assert_eq!(
        (count(&ended, 0), count(&ended, 6)),
        (10, 6),
        "{}",
        said(&ended)
    );
    let winners = ended.iter().filter(|o| o.status.success());
    let taken: BTreeSet<String> = winners
        .map(|o| serde_json::from_slice::<Value>(&o.stdout).unwrap())
        .map(|document| {
            document["data"]["handoff"]["id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(taken.len(), 10);
    assert_eq!(
        ids(&env.data(&["list", "--limit", "0", "--state", "in_progress"])),
        taken
    );
    env.assert_sound();
}

#[test]
fn the_same_contract_by_eight_at_once_is_one_commit() {
    let env = TestEnvironment::with_ledger();
    let ended = at_once(&env, &vec![send(&env, 87); 8]);
    assert_eq!(count(&ended, 0), 8, "{}", said(&ended));
    assert_eq!(commits(&env), 2);
    env.claim("87", "prep-agent").success();
    let file = env.file("next.xml", prepared(87));
    let ended = at_once(&env, &vec![words(&["send", &file, "--json"]); 8]);
    assert_eq!(count(&ended, 0), 8, "{}", said(&ended));
    assert_eq!(commits(&env), 4);
    env.assert_sound();
}

#[test]
fn eight_that_start_the_ledger_start_one() {
    for _ in 0..3 {
        let env = TestEnvironment::with_repository();
        let ended = at_once(&env, &vec![words(&["init"]); 8]);
        assert_eq!(count(&ended, 0), 8, "{}", said(&ended));
        assert_eq!(commits(&env), 1);
        env.assert_sound();
    }
}

#[test]
fn a_lock_that_a_killed_writer_left_is_cleared_away() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let lock = repository_kind::lock_of(&env.repo().join(".git"), "refs/heads/handoffs");
    let queue = env.repo().join(".git/handoff/queue.lock");
    assert_eq!(fs::read_to_string(&queue).unwrap(), "");
    // What a writer leaves that is killed before, and after, the lock is filled.
    let commit = "0123456789abcdef0123456789abcdef01234567";
    for text in [String::new(), format!("{commit}\n")] {
        if repository_kind::is_reftable() {
            // There, a lock does not say whose it is.
            break;
        }
        fs::write(&queue, commit).unwrap();
        fs::write(&lock, text).unwrap();
        env.handoff(&["cancel", "87", "--as", "issue-manager"])
            .success();
        env.send(opening(87)).success();
        assert_eq!(fs::read_to_string(&queue).unwrap(), "");
    }
    // Another program's lock is not ours to remove, whatever was announced.
    fs::write(&queue, commit).unwrap();
    fs::write(&lock, "fedcba9876543210fedcba9876543210fedcba98\n").unwrap();
    env.claim("87", "prep-agent").exits(7);
    assert!(lock.exists());
    fs::remove_file(&lock).unwrap();
    env.assert_sound();
}

#[test]
fn a_lock_that_stays_is_named_within_the_patience() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let tip = env.tip();
    let lock = repository_kind::lock_of(&env.repo().join(".git"), "refs/heads/handoffs");
    fs::write(&lock, "").unwrap();
    let ran = env.claim("87", "prep-agent").exits(7);
    let named = env.filtered(&lock.to_string_lossy());
    insta::assert_snapshot!(ran.shown.replace(&named, "[lock]"), @"
    $ git handoff claim 87 --as prep-agent
    --- stderr
    error: the branch stayed locked by [lock]
    hint: nothing was written; wait for the git process that holds it, then run the command again. If no git runs on any machine that shares the disk (`pgrep -a git`), and it is not new (`ls -l [lock]`), it is stale: `rm [lock]`
    --- exit 7
    ");
    assert_eq!(env.tip(), tip);
    // Reading does not wait for it.
    env.handoff(&["status"]).success();
    fs::remove_file(&lock).unwrap();
    env.claim("87", "prep-agent").success();
}

#[test]
fn a_lock_that_goes_is_waited_for() {
    let env = TestEnvironment::with_ledger();
    let lock = repository_kind::lock_of(&env.repo().join(".git"), "refs/heads/handoffs");
    fs::write(&lock, "").unwrap();
    let mut child = start(&env, &send(&env, 87));
    // Each time that it tries, it notes in the queue what it is about to publish.
    let queue = env.repo().join(".git/handoff/queue.lock");
    while fs::read_to_string(&queue).unwrap().is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it does not wait");
    }
    fs::remove_file(&lock).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", said(&[ended]));
}

#[test]
fn a_branch_that_cannot_be_written_is_an_error_of_the_environment() {
    if repository_kind::is_reftable() {
        // No file can be in the way there.
        return;
    }
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--branch", "team/handoffs"])
        .success();
    let repo = env.repo();
    env.git(&repo, &["pack-refs", "--all"]);
    let folder = repo.join(".git/refs/heads/team");
    let _ = fs::remove_dir_all(&folder);
    fs::write(&folder, "in the way").unwrap();
    let ran = env.send(opening(87)).exits(9);
    assert!(
        ran.stderr.starts_with("error: ") && ran.stderr.contains("hint: "),
        "{}",
        ran.shown
    );
    fs::remove_file(&folder).unwrap();
    env.send(opening(87)).success();
}

#[test]
fn a_heartbeat_and_a_reaper_at_once_have_one_outcome() {
    let env = TestEnvironment::with_ledger();
    env.pace(0);
    for issue in 1..=4_usize {
        if issue == 3 {
            without_queue(&env);
        }
        env.send(opening(u32::try_from(issue).unwrap())).success();
        let id = format!("{issue}.1");
        let claim = ["claim", &id, "--as", "prep-agent", "--lease", "1h"];
        let token = env.data(&claim)["handoff"]["token"].to_string();
        let before = commits(&env);
        // Half of them think that it is too late, by clocks an hour apart.
        let now = env.now();
        let extend = [
            "extend",
            &id,
            "--as",
            "prep-agent",
            "--token",
            &token,
            "--lease",
            "9h",
            "--json",
        ];
        let extend = words(&extend);
        let holder = issue % 2;
        let all: Vec<Child> = (0..16)
            .map(|number| {
                if number % 2 == holder {
                    start_at(&env, now + 1800, &extend)
                } else {
                    start_at(&env, now + 3601, &words(&["reap", "--json"]))
                }
            })
            .collect();
        let ended: Vec<Output> = all
            .into_iter()
            .map(|child| child.wait_with_output().unwrap())
            .collect();
        let record = stored(&env.data(&["show", &id]));
        let documents = |parity: usize| {
            let all = ended
                .iter()
                .enumerate()
                .filter(move |(n, _)| n % 2 == parity);
            all.map(|(_, o)| serde_json::from_slice::<Value>(&o.stdout).unwrap())
        };
        let reaped: usize = documents(1 - holder)
            .map(|document| document["data"]["handoffs"].as_array().unwrap().len())
            .sum();
        let steps = record["transitions"].as_array().unwrap();
        let expired = steps.iter().filter(|step| step["to"] == "failed").count();
        assert_eq!(reaped, expired, "{}", said(&ended));
        assert_eq!(commits(&env), before + 1, "{}", said(&ended));
        match &record["state"] {
            // The heartbeat came first, and the reapers found nothing.
            state if state == "in_progress" => {
                assert_eq!(reaped, 0, "{record:#}");
                assert!(documents(holder).all(|document| document["ok"] == true));
            }
            // The reaper came first: a heartbeat by a slower clock changes nothing.
            state if state == "failed" => {
                assert_eq!(reaped, 1, "{record:#}");
                for document in documents(holder) {
                    assert_eq!(document["ok"], false, "{document:#}");
                    assert!(document["error"]["hint"].is_string(), "{document:#}");
                }
                for (_, late) in ended.iter().enumerate().filter(|(n, _)| n % 2 == holder) {
                    assert_eq!(late.status.code(), Some(5), "{}", said(&ended));
                }
            }
            other => panic!("{other}"),
        }
    }
    env.assert_sound();
}

#[test]
fn two_that_fail_one_handoff_at_once_keep_one_attempt() {
    let env = TestEnvironment::with_ledger();
    for issue in 1..=4 {
        if issue == 3 {
            without_queue(&env);
        }
        env.send(opening(issue)).success();
        let id = format!("{issue}.1");
        env.claim(&id, "prep-agent").success();
        fs::write(env.repo().join("work.txt"), format!("work on {issue}\n")).unwrap();
        let before = commits(&env);
        let fail = ["fail", &id, "--as", "prep-agent", "--message", "x"];
        let fail = words(&[&fail[..], &["--snapshot", "--json"]].concat());
        let ended = at_once(&env, &vec![fail; 8]);
        assert_eq!(count(&ended, 0), 8, "{}", said(&ended));
        let documents = ended
            .iter()
            .map(|o| serde_json::from_slice::<Value>(&o.stdout).unwrap());
        let first = documents.filter(|document| document["data"]["repeated"] == false);
        assert_eq!(first.count(), 1, "{}", said(&ended));
        assert_eq!(commits(&env), before + 1);
        let kept = env.data(&["restore", &id])["kept"].take();
        assert_eq!(kept["snapshot"]["files"][0]["path"], "work.txt");
    }
    env.assert_sound();
}
