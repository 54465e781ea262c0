//! What a clone says of its remote: how both lie, what is kept, what to do next.

use std::fs;

use crate::clones::Clones;
use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::contracts::opening;

const CLAIM: [&str; 4] = ["claim", "87.1", "--as", "prep-agent"];

fn status(clones: &Clones) -> (String, Value) {
    let data = clones.there(&["status", "--json"]).success().json()["data"].take();
    (clones.there(&["status"]).success().shown, data)
}

/// How a clone lies to its remote: its name, whether it was seen, what it lacks, what the clone lacks.
fn lies(data: &Value) -> Value {
    let (fresh, remote) = (&data["fresh"], &data["remote"]);
    json!([
        fresh["remote"],
        remote["seen"],
        fresh["unpublished"],
        remote["behind"]
    ])
}

#[cfg(feature = "agents")]
#[test]
fn status_says_how_the_clone_lies_to_its_remote() {
    let clones = Clones::new();
    let (text, data) = status(&clones);
    assert_snapshot!(text, @"
    $ git handoff status
    ledger handoffs at [commit]: no handoff is open
      contracts' statements are checked: warn
    the ledger is up to date with origin
    ");
    let same = json!(["origin", true, 0, 0]);
    assert_eq!((&lies(&data), &data["rejected"]), (&same, &json!([])));

    clones.env.send(opening(87)).success();
    let stale = clones.there(&["status", "--offline"]).success();
    assert!(
        stale
            .stdout
            .contains("no handoff is open\n  contracts' statements are checked: warn\nthe ledger is up to date with origin as last seen\n")
    );
    let (text, data) = status(&clones);
    assert_snapshot!(text, @"
    $ git handoff status
    ledger handoffs at [commit]: 1 pending
      contracts' statements are checked: warn
    87.1  pending  issue-manager → prep-agent  medium  3 minutes ago  Export delivery history as CSV
    the ledger is up to date with origin
    --- stderr
    next, for prep-agent: git handoff claim 87.1 --as prep-agent
    ");
    assert_eq!(lies(&data), same);

    clones
        .there(&[&CLAIM[..], &["--offline"]].concat())
        .exits(8);
    let (text, data) = status(&clones);
    assert_snapshot!(text, @"
    $ git handoff status
    ledger handoffs at [commit]: 1 in_progress
      contracts' statements are checked: warn
    87.1  in_progress  issue-manager → prep-agent  medium  2 minutes ago  worker other: Export delivery history as CSV
    1 step here is not on origin yet: `git handoff sync`
    ");
    assert_eq!(data["fresh"]["unpublished"], 1);

    clones.env.handoff(&CLAIM).success();
    let wait = [
        "wait",
        "87.1",
        "--remote",
        "origin",
        "--timeout",
        "20s",
        "--any",
        "--blocked",
    ];
    let block = ["block", "87.1", "--as", "prep-agent", "--reason", "which?"];
    clones.env.handoff(&block).success();
    clones.there(&wait).exits(1);
    let (text, data) = status(&clones);
    assert_snapshot!(text, @"
    $ git handoff status
    ledger handoffs at [commit]: 1 in_progress
      contracts' statements are checked: warn
    87.1  in_progress  issue-manager → prep-agent  medium  7 minutes ago  worker other: Export delivery history as CSV
    1 step here is not on origin yet, and 2 there not here: `git handoff sync`
    ");
    let apart = json!(["origin", true, 1, 2]);
    assert_eq!(lies(&data), apart);

    clones.there(&["sync"]).exits(5);
    let (text, data) = status(&clones);
    assert_snapshot!(text, @"
    $ git handoff status
    ledger handoffs at [commit]: 1 blocked
      contracts' statements are checked: warn
    needs attention
    ! 87.1 waits for an answer, orchestrator's turn, 6 minutes ago
        | Export delivery history as CSV
        | which?
        next: git handoff answer 87.1 ANSWER --as orchestrator

    87.1  blocked  issue-manager → prep-agent  medium  6 minutes ago  Export delivery history as CSV: which?
    the ledger is up to date with origin
    1 step made here was refused and is kept: `git handoff refused`
    ");
    assert_eq!(lies(&data), same);
    let listed = clones.there(&["refused", "--json"]).success().json();
    assert_eq!(data["rejected"], listed["data"]["rejected"]);
    assert_eq!(data["rejected"][0]["id"], "87.1");

    // No agent stops while a step of this clone waits to be retried or dropped.
    let line = "1 step made here was refused and is kept: `git handoff refused`\n";
    let prime = ["prime", "--as", "closer-agent"];
    let primed = clones.there(&prime).success();
    assert!(primed.stdout.contains(line), "{}", primed.shown);
    assert!(!primed.stdout.contains("you may stop"), "{}", primed.shown);
    let json = clones.there(&[&prime[..], &["--json"]].concat()).success();
    assert_eq!(json.json()["data"]["rejected"], 1);
    let name = data["rejected"][0]["name"].as_str().unwrap();
    clones.there(&["refused", "drop", name]).success();
    let primed = clones.there(&prime).success().says("you may stop");
    assert!(!primed.stdout.contains("offline"), "{}", primed.shown);
}

#[test]
fn status_does_without_a_remote() {
    let clones = Clones::new();
    clones.take_away();
    let told = clones.there(&["status"]).success().says("as last seen");
    assert!(
        told.stderr.contains("Z, origin is out of reach ("),
        "{}",
        told.shown
    );
    clones
        .env
        .git(&clones.other, &["config", "--unset", "handoff.remote"]);
    let (text, data) = status(&clones);
    assert_eq!(data["remote"], json!(null));
    assert!(!text.contains("origin"), "{text}");

    let never = Clones::without_ledger();
    let init = ["init", "--remote", "origin", "--offline"];
    never.there(&init).exits(8);
    let (text, data) = status(&never);
    assert_snapshot!(text, @"
    $ git handoff status
    ledger handoffs at [commit]: no handoff is open
      contracts' statements are checked: warn
    origin has not been reached yet: `git handoff sync`
    ");
    assert_eq!(data["remote"]["seen"], false);
    assert_eq!(data["fresh"]["unpublished"], 1);
}

#[test]
fn a_clone_without_a_ledger_is_led_to_the_remotes() {
    let clones = Clones::without_ledger();
    clones
        .env
        .handoff(&["init", "--remote", "origin"])
        .success();
    clones.env.send(opening(87)).success();
    // Git has brought the branch, and nobody has said yet that it is to be shared.
    clones.env.git(&clones.other, &["fetch", "-q"]);
    let mut shown = clones.there(&["status"]).exits(9).shown;
    shown += &clones.there(&["init"]).exits(5).shown;
    shown += &clones.there(&["doctor"]).exits(1).shown;
    assert_eq!(clones.tip(&clones.other), "");
    clones
        .env
        .git(&clones.other, &["config", "handoff.remote", "origin"]);
    shown += &clones.there(&["context", "87"]).exits(9).shown;
    shown += &clones
        .there(&["inbox", "--as", "fixer-agent"])
        .success()
        .shown;
    assert_eq!(clones.tip(&clones.other), clones.tip(&clones.bare));
    assert_snapshot!(shown, @"
    $ git handoff status
    --- stderr
    error: the repository has no ledger: there is no branch handoffs
    hint: origin has one: `git handoff init --remote origin` takes it over
    --- exit 9
    $ git handoff init
    --- stderr
    error: origin has a ledger on branch handoffs, but this clone has none yet
    hint: nothing was written; `git handoff init --remote origin` takes it over
    --- exit 5
    $ git handoff doctor
    error ledger: the repository has no ledger: there is no branch handoffs
        origin has one: `git handoff init --remote origin` takes it over
    --- exit 1
    $ git handoff context 87
    --- stderr
    error: the repository has no ledger: there is no branch handoffs
    hint: origin has one: `git handoff fetch` takes it over
    --- exit 9
    $ git handoff inbox --as fixer-agent
    nothing waits for fixer-agent
    ");
    clones.assert_sound(&clones.other);

    // A branch of that name that is no ledger, or another branch, is in nobody's way.
    let other = Clones::without_ledger();
    let push = ["push", "-q", "origin", "main:handoffs"];
    other.env.git(&other.env.repo(), &push);
    other.env.git(&other.other, &["fetch", "-q"]);
    other.there(&["init"]).success();
    fs::remove_dir_all(&other.other).unwrap();
}

#[test]
fn a_relative_path_is_the_same_remote_in_every_folder() {
    let clones = Clones::without_ledger();
    let (env, repo) = (&clones.env, clones.env.repo());
    let docs = repo.join("docs");
    fs::create_dir(&docs).unwrap();
    env.handoff(&["init"]).success();
    env.git(&repo, &["config", "handoff.remote", "../served/server.git"]);
    env.send(opening(87)).success();
    assert_eq!(clones.tip(&clones.bare), env.tip());
    let name = clones.bare.canonicalize().unwrap();
    let beside = |unpublished: u32| json!([name, true, unpublished, 0]);
    for folder in [&repo, &docs] {
        let ran = env.handoff_in(folder, &["status", "--json"]).success();
        assert_eq!(lies(&ran.json()["data"]), beside(0));
        let said = env.handoff_in(folder, &["status"]).success().stdout;
        assert!(said.contains("up to date with "), "{said}");
    }
    env.handoff_in(&docs, &CLAIM).success();
    assert_eq!(clones.tip(&clones.bare), env.tip());

    // Nor is it another while nothing is there.
    clones.take_away();
    let block = ["block", "87.1", "--as", "prep-agent", "--reason", "which?"];
    env.handoff_in(&docs, &block).exits(8);
    let ran = env.handoff(&["status", "--json"]).success();
    assert_eq!(lies(&ran.json()["data"]), beside(1));
    clones.bring_back();
    env.handoff_in(&docs, &["sync"]).success();
    let ran = env.handoff(&["status", "--json"]).success();
    assert_eq!(lies(&ran.json()["data"]), beside(0));
    let tracked = env.git(&repo, &["for-each-ref", "refs/handoff/remotes"]);
    assert_eq!(tracked.lines().count(), 1, "{tracked}");
}
