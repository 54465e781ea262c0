//! Waiting for what other clones do: the remote is looked at beside the ledger here.

use std::fs;

use crate::clones::Clones;
use serde_json::Value;
use test_support::contracts::opening;
use test_support::files::script;
use test_support::running::Running;
use test_support::{TestEnvironment, until};

/// So rarely that no test sees a second look.
const RARELY: [&str; 2] = ["--poll", "1h"];
const OFTEN: [&str; 2] = ["--poll", "100ms"];

const COMPLETE: [&str; 6] = ["complete", "87.1", "--as", "prep-agent", "--reason", "done"];

/// Who claimed it, for the other clone.
const HOLDER: [&str; 2] = ["--worker", "repo"];

/// Clones in which prep-agent, in the first, has claimed 87.1.
fn claimed() -> Clones {
    let clones = Clones::new();
    clones.env.send(opening(87)).success();
    clones.env.claim("87.1", "prep-agent").success();
    clones
}

/// A wait in the other clone.
fn waiting(clones: &Clones, args: &[&str]) -> Running {
    let all = [&["wait", "--timeout", "120s"], args].concat();
    Running::start(&clones.env, &clones.other, &all)
}

const TRACKING: &str = "refs/handoff/remotes/origin/handoffs";

#[test]
fn a_wait_sees_what_another_clone_does_and_leaves_it_fetched() {
    let clones = claimed();
    let wait = waiting(&clones, &[&["87.1"][..], &OFTEN].concat()).waits();
    clones.env.handoff(&COMPLETE).success();
    let (stdout, stderr) = wait.ends(0);
    assert!(stdout.contains("87.1 issue-manager → prep-agent: completed"));
    assert_eq!(stderr, "");
    assert_eq!(clones.tip(&clones.other), clones.tip(&clones.bare));
    assert_eq!(clones.at(&clones.other, TRACKING), clones.tip(&clones.bare));
    clones.assert_sound(&clones.other);
}

#[test]
fn what_a_wait_found_can_be_claimed_at_once() {
    let clones = Clones::new();
    let inbox = ["--inbox", "--as", "prep-agent"];
    let wait = waiting(&clones, &[&inbox[..], &OFTEN].concat()).waits();
    clones.env.send(opening(87)).success();
    let (stdout, stderr) = wait.ends(0);
    assert!(stdout.starts_with("87.1 "), "{stdout}");
    assert_eq!(stderr, "next: git handoff claim --next --as prep-agent\n");
    let claim = ["claim", "--next", "--as", "prep-agent"];
    clones.there(&claim).success().says("87.1 issue-manager");
    assert_eq!(clones.tip(&clones.other), clones.tip(&clones.bare));
}

#[test]
fn steps_made_here_end_the_wait_whether_published_or_not() {
    for offline in [false, true] {
        let clones = claimed();
        clones.there(&["fetch"]).success();
        let wait = waiting(&clones, &[&["87.1"][..], &RARELY].concat()).waits();
        let mode: &[&str] = if offline { &["--offline"] } else { &[] };
        let ran = clones.there(&[&COMPLETE[..], &HOLDER, mode].concat());
        ran.exits(if offline { 8 } else { 0 });
        let (stdout, _) = wait.ends(0);
        assert!(stdout.contains("prep-agent: completed"), "{stdout}");
    }
}

#[test]
fn with_the_remote_out_of_reach_the_ledger_here_is_waited_for() {
    let clones = claimed();
    clones.there(&["fetch"]).success();
    clones.take_away();
    let wait = waiting(&clones, &["87.1", "--poll", "50ms"]).waits();
    let json = [
        "wait",
        "87.1",
        "--timeout",
        "120s",
        "--poll",
        "50ms",
        "--json",
    ];
    let mut json = clones.env.program(&json);
    json.current_dir(&clones.other);
    let json = Running::silent(json);
    clones.there(&[&COMPLETE[..], &HOLDER].concat()).exits(8);
    wait.ends(0);
    let (stdout, _) = json.ends(0);
    let document: Value = serde_json::from_str(&stdout).unwrap();
    let trouble = document["data"]["trouble"].as_str().unwrap();
    assert!(trouble.starts_with("git says: fatal: "), "{trouble}");
    assert_eq!(document["data"]["commit"], clones.tip(&clones.other));
    // What can only be there is waited for until the remote is back.
    clones.bring_back();
    clones.env.send(opening(88)).success();
    clones.env.claim("88.1", "prep-agent").success();
    let block = ["block", "88.1", "--as", "prep-agent", "--reason", "which?"];
    clones.env.handoff(&block).success();
    clones.take_away();
    let wait = waiting(&clones, &["88.1", "--poll", "50ms", "--blocked"]).waits();
    clones.bring_back();
    let (_, stderr) = wait.ends(1);
    let told = "origin cannot be read, trying on: git says: fatal: ";
    assert_eq!(stderr.matches(told).count(), 1, "{stderr}");
}

#[test]
fn where_only_one_side_counts_the_other_is_not_asked() {
    let clones = claimed();
    clones.there(&["fetch"]).success();
    // Here alone: nothing is asked of the remote.
    clones.env.handoff(&COMPLETE).success();
    let short = ["--timeout", "300ms"];
    let here = [&["wait", "87.1", "--offline"][..], &short].concat();
    clones.there(&here).exits(7).says("87.1 is in_progress");
    clones.there(&["wait", "87.1"]).success();
    // There alone: what is only here does not count.
    clones.there(&["fetch"]).success();
    clones.env.send(opening(88)).success();
    let claim = ["claim", "88.1", "--as", "prep-agent", "--offline"];
    let cancel = ["cancel", "88.1", "--as", "issue-manager", "--reason", "no"];
    clones.there(&["fetch"]).success();
    clones.there(&claim).exits(8);
    clones
        .there(&[&cancel[..], &["--offline"]].concat())
        .exits(8);
    let there = [&["wait", "88.1", "--remote", "origin"][..], &short].concat();
    clones.there(&there).exits(7).says("88.1 is pending");
    clones.there(&["wait", "88.1"]).exits(1);
    clones.there(&["sync"]).success();
    clones.there(&there).exits(1);
    for args in [
        &["wait", "88.1", "--offline", "--remote", "origin"][..],
        &["wait", "88.1", "--offline", "--poll", "1s"],
        &["watch", "--offline", "--poll", "1s"],
    ] {
        clones.there(args).exits(2);
    }
}

#[test]
fn a_clone_that_has_nothing_of_the_ledger_waits_too() {
    let clones = Clones::without_ledger();
    let other = &clones.other;
    clones
        .env
        .git(other, &["config", "handoff.remote", "origin"]);
    clones.there(&["wait", "87"]).exits(9).says("has no branch");
    clones
        .env
        .handoff(&["init", "--remote", "origin"])
        .success();
    clones.there(&["wait", "87.1"]).exits(6);
    let inbox = ["--inbox", "--as", "prep-agent"];
    let wait = waiting(&clones, &[&inbox[..], &OFTEN].concat()).waits();
    clones.env.send(opening(87)).success();
    wait.ends(0);
    let claim = ["claim", "--next", "--as", "prep-agent"];
    clones.there(&claim).success().says("87.1 issue-manager");
}

#[test]
fn a_remote_that_was_rewritten_or_lost_its_branch_ends_the_wait() {
    for (change, code) in [
        (
            &["update-ref", "refs/heads/handoffs", "handoffs~1"][..],
            "remote_rewritten",
        ),
        (&["update-ref", "-d", "refs/heads/handoffs"], "remote_gone"),
    ] {
        let clones = claimed();
        clones.there(&["fetch"]).success();
        let wait = waiting(&clones, &[&["87.1"][..], &OFTEN].concat()).waits();
        clones.env.git(&clones.bare, change);
        wait.ends(10);
        let json = clones.there(&["wait", "87.1", "--json"]).exits(10).json();
        assert_eq!(json["error"]["code"], code);
    }
}

/// A `git` that notes every look at a remote, and lets none pass before it may.
fn counting_git(env: &TestEnvironment) -> (String, impl Fn() -> usize) {
    let bin = env.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let (looks, may) = (env.root().join("looks"), env.root().join("may"));
    let path = std::env::var("PATH").unwrap();
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in\n*' ls-remote '*) echo look >> '{}'\n\
         while [ ! -e '{}' ]; do sleep 0.02; done;;\nesac\nPATH='{path}' exec git \"$@\"\n",
        looks.display(),
        may.display(),
    );
    script(&bin.join("git"), text);
    let count = move || fs::read_to_string(&looks).map_or(0, |text| text.lines().count());
    (format!("{}:{path}", bin.display()), count)
}

#[test]
fn one_look_serves_all_who_wait_in_a_clone() {
    const WAITING: usize = 6;
    let clones = claimed();
    let (path, looks) = counting_git(&clones.env);
    let linked = clones.env.root().join("linked");
    let add = ["worktree", "add", "-q", linked.to_str().unwrap()];
    clones.env.git(&clones.other, &add);
    clones.env.handoff(&COMPLETE).success();
    let all: Vec<Running> = (0..WAITING)
        .map(|i| {
            let args = [&["wait", "87.1", "--timeout", "120s"][..], &RARELY].concat();
            let mut command = clones.env.program(&args);
            let folder = if i % 2 == 0 { &clones.other } else { &linked };
            command.current_dir(folder).env("PATH", &path);
            Running::silent(command)
        })
        .collect();
    for one in &all {
        until("it looks or waits for who does", || {
            one.has_open("handoff/look.lock")
        });
    }
    until("one looks", || looks() > 0);
    assert_eq!(looks(), 1, "one looks, and the others wait for it");
    fs::write(clones.env.root().join("may"), "").unwrap();
    for one in all {
        one.ends(0);
    }
    assert!(looks() < WAITING, "{} looks", looks());
}

/// A watch in the other clone that has begun.
fn watching(clones: &Clones, args: &[&str]) -> Running {
    Running::start(&clones.env, &clones.other, &[&["watch"], args].concat()).waits()
}

/// What a watch in the other clone prints that ends by itself.
fn told(clones: &Clones, args: &[&str]) -> Vec<String> {
    let ran = clones.there(&[&["watch", "--once"], args].concat());
    commits(&ran.success().stdout)
}

/// The commits of lines, each once.
fn commits(lines: &str) -> Vec<String> {
    let commit = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["commit"].as_str().unwrap().to_owned()
    };
    let mut found: Vec<String> = lines.lines().map(commit).collect();
    found.dedup();
    found
}

#[test]
fn a_watch_tells_the_steps_of_all_clones_each_once() {
    let clones = Clones::new();
    let start = clones.tip(&clones.bare);
    let mut watch = watching(&clones, &OFTEN);
    clones.env.send(opening(87)).success();
    let mut seen = vec![watch.line()];
    let claim = ["claim", "87.1", "--as", "prep-agent"];
    clones.there(&claim).success();
    seen.push(watch.line());
    clones
        .env
        .handoff(&[&COMPLETE[..], &["--worker", "other"]].concat())
        .success();
    clones.env.send(opening(88)).success();
    seen.extend([watch.line(), watch.line()]);
    watch.interrupt();
    let (rest, _) = watch.ends(0);
    assert_eq!(rest, "", "nothing is told twice");
    let seen: Vec<&str> = seen.iter().map(|l| l["commit"].as_str().unwrap()).collect();
    assert_eq!(seen, clones.published_since(&start));
    for (i, commit) in seen.iter().enumerate() {
        assert_eq!(told(&clones, &["--from", commit]), seen[i + 1..]);
    }
}

#[test]
fn a_step_made_offline_is_told_once_it_is_published() {
    let clones = claimed();
    clones.there(&["fetch"]).success();
    let start = clones.tip(&clones.bare);
    let mut watch = watching(&clones, &RARELY);
    clones
        .there(&[&COMPLETE[..], &HOLDER, &["--offline"]].concat())
        .exits(8);
    let recorded = clones.tip(&clones.other);
    // Someone else is first, so that the step becomes another commit.
    clones.env.send(opening(88)).success();
    let watch = {
        clones.there(&["sync"]).success();
        let first = watch.line();
        let second = watch.line();
        let expected = clones.published_since(&start);
        assert_eq!(expected.len(), 2);
        assert_eq!(
            [&first["commit"], &second["commit"]],
            [&expected[0], &expected[1]]
        );
        assert_eq!(
            (&second["handoff"]["id"], &second["event"]),
            (&"87.1".into(), &"complete".into())
        );
        assert!(!expected.contains(&recorded), "it was made again");
        watch
    };
    watch.interrupt();
    assert_eq!(watch.ends(0).0, "");
}

#[test]
fn a_watch_of_this_clone_goes_on_after_what_sync_made_again() {
    let clones = claimed();
    clones.there(&["fetch"]).success();
    let mut watch = watching(&clones, &["--offline"]);
    clones
        .there(&[&COMPLETE[..], &HOLDER, &["--offline"]].concat())
        .exits(8);
    assert_eq!(watch.line()["event"], "complete");
    let start = clones.tip(&clones.bare);
    clones.env.send(opening(88)).success();
    clones.there(&["sync"]).success();
    let lines = [watch.line(), watch.line()];
    let told = lines
        .each_ref()
        .map(|line| line["commit"].as_str().unwrap());
    assert_eq!(told[..], clones.published_since(&start));
    watch.interrupt();
    assert_eq!(watch.ends(0).0, "");
}

#[test]
fn a_watch_that_cannot_read_the_remote_says_so() {
    let clones = claimed();
    clones.there(&["fetch"]).success();
    let all = clones.published_since(&clones.at(&clones.bare, "handoffs~2"));
    let from = ["--from", &all[0]];
    clones.take_away();
    let ran = clones.there(&[&["watch", "--once"][..], &from].concat());
    assert_eq!(commits(&ran.stdout), all[1..], "{}", ran.shown);
    ran.exits(9)
        .says("error: cannot get the ledger from origin: git says");
    let json = ["watch", "--once", "--json"];
    let failure = clones.there(&json).exits(9).json();
    assert_eq!(failure["error"]["code"], "remote_unreachable");
    let here = [&["--offline"][..], &from].concat();
    assert_eq!(told(&clones, &here), all[1..]);
    // It goes on by itself once the remote is back.
    let mut watch = watching(&clones, &["--poll", "50ms"]);
    clones.bring_back();
    clones.env.handoff(&COMPLETE).success();
    assert_eq!(watch.line()["event"], "complete");
    watch.interrupt();
    watch.ends(0);
}
