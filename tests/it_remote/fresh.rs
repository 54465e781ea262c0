//! What reading commands show is what the remote has, or they say that it may
//! not be; and a clone without a ledger is told how to take one over.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::contracts::opening;
use test_support::files::script;
use test_support::remote::{Daemon, Direction, Fault, Proxy};
use test_support::running::Running;
use test_support::workflow::{Step, workflow};
use test_support::{Ran, TestEnvironment, until};

use crate::clones::Clones;

const PRIME: [&str; 3] = ["prime", "--as", "prep-agent"];
const INBOX: [&str; 3] = ["inbox", "--as", "prep-agent"];

/// The four that ask the remote first.
const READS: [&[&str]; 4] = [&PRIME, &INBOX, &["next", "87"], &["status"]];

/// Clones in which both have an issue; in the first, it was then cancelled, and another sent.
fn behind() -> Clones {
    let clones = Clones::new();
    clones.env.send(opening(87)).success();
    clones.there(&["fetch"]).success();
    clones.env.send(opening(88)).success();
    clones
}

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [args, more].concat()
}

/// The `fresh` of a document in the other clone.
fn fresh(clones: &Clones, args: &[&str]) -> Value {
    let mut document = clones.there(&with(args, &["--json"])).success().json();
    document["data"]["fresh"].take()
}

/// A text without the times of today.
fn untimed(ran: &Ran) -> String {
    let at = |rest: &str| rest.len() > 20 && rest.starts_with("2") && rest.as_bytes()[19] == b'Z';
    let mut parts = ran.shown.split("as of ");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let part = if at(part) { &part[20..] } else { part };
        text += &format!("as of [time]{part}");
    }
    text
}

#[test]
fn every_role_in_a_clone_that_is_behind_is_told_of_its_work() {
    let clones = Clones::under(&["--evidence", "off"]);
    let (env, mut told) = (&clones.env, 0);
    for step in workflow(|_| test_support::contracts::Format::Xml) {
        let Step::Send(contract) = &step else {
            let Step::Run(args) = step else { continue };
            env.handoff(args).success();
            continue;
        };
        let sent = env
            .handoff_with(&["send", "-", "--json"], contract)
            .success();
        let receipt = sent.json()["data"].take();
        if receipt["handoff"]["state"] != "pending" {
            continue;
        }
        let id = receipt["handoff"]["id"].as_str().unwrap();
        let to = receipt["handoff"]["to"].as_str().unwrap();
        // Each asks for itself: what the one before it fetched is taken away again.
        let (before, tracked) = (
            clones.tip(&clones.other),
            clones.at(&clones.other, TRACKING),
        );
        for args in [
            &["prime", "--as", to][..],
            &["inbox", "--as", to],
            &["next", "87"],
            &["status"],
            &["show", id],
            &["--as", to],
        ] {
            env.git(
                &clones.other,
                &["update-ref", "refs/heads/handoffs", &before],
            );
            env.git(&clones.other, &["update-ref", TRACKING, &tracked]);
            let ran = clones.there(args).success();
            if args[0] == "next" {
                assert_eq!(ran.stdout, env.handoff(args).success().stdout);
            } else {
                assert!(ran.stdout.contains(id), "{id}: {}", ran.shown);
            }
            assert!(!ran.stdout.contains("you may stop"), "{}", ran.shown);
            assert!(!ran.stderr.contains("origin"), "{}", ran.shown);
            assert_eq!(clones.tip(&clones.other), clones.tip(&clones.bare));
        }
        told += 1;
    }
    assert!(told >= 9, "{told}");
    let page = clones.there(&["prime", "--as", "closer-agent"]).success();
    assert!(
        page.stdout.contains("nothing waits for you: you may stop"),
        "{}",
        page.shown
    );
    clones.assert_sound(&clones.other);
}

const TRACKING: &str = "refs/handoff/remotes/origin/handoffs";

#[test]
fn who_does_not_ask_says_so() {
    let clones = behind();
    let config = |value: &str| {
        let set = ["config", "handoff.fresh", value];
        clones.env.git(&clones.other, &set);
    };
    let mut pages = Vec::new();
    for off in [false, true] {
        config(if off { "false" } else { "true" });
        let more: &[&str] = if off { &[] } else { &["--offline"] };
        age(&clones);
        for args in READS {
            let args = with(args, more);
            let ran = clones.there(&args).success();
            let text = &ran.shown;
            let told = "as of 2001-09-09 01:46:40Z, origin was not asked\n";
            assert!(ran.stderr.ends_with(told), "{text}");
            assert!(!ran.stdout.contains("88.1"), "{text}");
            let data = fresh(&clones, &args);
            assert_eq!(
                (&data["asked"], &data["trouble"]),
                (&json!(false), &json!(null))
            );
            assert_eq!(data["remote"], "origin");
            assert_eq!(data["as_of"], "2001-09-09T01:46:40Z");
        }
        let idle = clones.there(&with(&["prime", "--as", "closer-agent"], more));
        let idle = idle.success().stdout;
        assert!(!idle.contains("you may stop"), "{idle}");
        let top: Vec<&str> = idle.lines().skip(3).take(5).collect();
        pages.push(top.join("\n"));
    }
    assert_eq!(pages[0], pages[1]);
    assert_snapshot!(pages[0], @r#"
    Not the newest state: "as of 2001-09-09 01:46:40Z, origin was not asked"

    You hold nothing, and nothing waits for you here. Whether "origin" has work for you is not known: run `git handoff fetch`, then prime again.

    To wait for work: git handoff wait --inbox --as closer-agent
    "#);
    config("true");
    for args in READS {
        let data = fresh(&clones, args);
        assert_eq!(
            (&data["asked"], &data["trouble"]),
            (&json!(true), &json!(null))
        );
    }
    assert_eq!(clones.tip(&clones.other), clones.tip(&clones.bare));

    // Without a remote, nothing is said of one.
    clones
        .env
        .git(&clones.other, &["config", "--unset", "handoff.remote"]);
    for args in READS {
        let ran = clones.there(args).success();
        assert!(!ran.stderr.contains("as of"), "{}", ran.shown);
        assert_eq!(fresh(&clones, args), json!(null));
    }
}

/// Breaks the remote in each way, and puts it right again.
#[test]
fn a_remote_that_fails_in_any_way_fails_no_reading() {
    let clones = behind();
    let (env, bare) = (&clones.env, &clones.bare);
    let git = |args: &[&str]| env.git(bare, args);
    let newest = clones.tip(bare);
    let url = |address: &str| env.git(&clones.other, &["remote", "set-url", "origin", address]);
    let gone = |clones: &Clones, reason: &str| {
        for args in READS {
            let ran = clones.there(args).success();
            let text = untimed(&ran);
            assert!(text.contains("as of [time]"), "{text}");
            assert!(ran.stderr.contains(reason), "{text}");
            assert!(!ran.stdout.contains("88.1"), "{text}");
            let data = fresh(clones, args);
            assert_eq!(data["asked"], true);
            assert!(!data["trouble"].as_str().unwrap().is_empty(), "{data}");
        }
        let page = clones.there(&["prime", "--as", "closer-agent"]).success();
        assert!(!page.stdout.contains("you may stop"), "{}", page.shown);
        assert!(
            page.stdout.contains("run `git handoff fetch`"),
            "{}",
            page.shown
        );
        // A wrong answer says that it rests on what is here.
        let missing = clones.there(&["next", "99"]).exits(6);
        assert!(missing.stderr.contains(reason), "{}", missing.shown);
    };
    clones.take_away();
    gone(&clones, "origin is out of reach (fatal: ");
    clones.bring_back();

    git(&["update-ref", "-d", "refs/heads/handoffs"]);
    gone(&clones, "origin no longer has the ledger's branch handoffs");
    // Another history, which nobody follows by himself.
    git(&["update-ref", "refs/heads/handoffs", "refs/heads/main"]);
    gone(&clones, "origin refused");
    git(&["update-ref", "refs/heads/handoffs", &newest]);

    url("https://***@127.0.0.1:1/no.git");
    gone(&clones, "origin is out of reach (");
    env.git(&clones.other, &["config", "remote.origin.url", "-x"]);
    gone(&clones, "origin is out of reach (");
    url(bare.to_str().unwrap());
    clones.there(&PRIME).success().says("88.1");
}

#[test]
fn a_server_that_never_answers_is_given_up_soon() {
    let clones = behind();
    let daemon = Daemon::start(&clones.env);
    let proxy = Proxy::start(daemon.port);
    let address = format!("git://127.0.0.1:{}/server.git", proxy.port);
    clones
        .env
        .git(&clones.other, &["remote", "set-url", "origin", &address]);
    proxy.always(Fault::Stall(Direction::Down, 0));
    for args in READS {
        let start = Instant::now();
        let ran = clones.there(args).success();
        assert!(start.elapsed() < Duration::from_secs(15), "{}", ran.shown);
        let text = untimed(&ran);
        assert!(
            text.contains("as of [time], origin is out of reach ("),
            "{text}"
        );
    }
    // Interrupted while it asks, it ends at once, as by any signal, and git with it.
    let running = {
        let mut command = clones.env.program(&PRIME);
        command.current_dir(&clones.other);
        let carried = proxy.carried().len();
        let running = Running::silent(command);
        until("it asks", || proxy.carried().len() > carried);
        running
    };
    running.interrupt();
    let (ended, stdout, stderr) = running.end();
    assert_eq!((ended.code(), &stdout[..], &stderr[..]), (None, "", ""));
    proxy.heal();
    clones.there(&PRIME).success().says("88.1");
}

/// A `git` that notes every fetch, and lets none pass before it may.
fn counting_git(env: &TestEnvironment) -> (String, impl Fn() -> usize) {
    let bin = env.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let (looks, may) = (env.root().join("looks"), env.root().join("may"));
    let path = std::env::var("PATH").unwrap();
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in\n*' update-ref '*) ;;\n*' ls-remote '*|*' fetch '*) echo look >> '{}'\n\
         while [ ! -e '{}' ]; do sleep 0.02; done;;\nesac\nPATH='{path}' exec git \"$@\"\n",
        looks.display(),
        may.display(),
    );
    script(&bin.join("git"), text);
    let count = move || fs::read_to_string(&looks).map_or(0, |text| text.lines().count());
    (format!("{}:{path}", bin.display()), count)
}

#[test]
fn one_fetch_serves_all_who_ask_at_the_same_time() {
    const ASKING: usize = 6;
    let clones = behind();
    let (path, looks) = counting_git(&clones.env);
    let linked = clones.env.root().join("linked");
    let add = ["worktree", "add", "-q", linked.to_str().unwrap()];
    clones.env.git(&clones.other, &add);
    let start = |i: usize| {
        let mut command = clones.env.program(READS[i % 2]);
        let folder = if i.is_multiple_of(3) {
            &linked
        } else {
            &clones.other
        };
        command.current_dir(folder).env("PATH", &path);
        Running::silent(command)
    };
    let first = start(0);
    until("one asks", || looks() > 0);
    let rest: Vec<Running> = (1..ASKING).map(start).collect();
    for one in &rest {
        until("it waits for who asks", || {
            one.has_open("handoff/look.lock")
        });
    }
    assert_eq!(looks(), 1, "one asks, and the others wait for it");
    fs::write(clones.env.root().join("may"), "").unwrap();
    for one in rest.into_iter().chain([first]) {
        let (stdout, stderr) = one.ends(0);
        assert!(stdout.contains("88.1"), "{stdout}{stderr}");
    }
    // The first one's began before they did, so it does not count for them; one of theirs does.
    assert!(looks() <= 2, "{} fetches", looks());
    // Without a remote, or where it is turned off, nothing is started.
    for (key, value) in [("handoff.fresh", "false"), ("handoff.remote", "")] {
        clones.env.git(&clones.other, &["config", key, value]);
        let before = looks();
        start(1).ends(0);
        assert_eq!(looks(), before);
    }
}

#[test]
fn a_branch_that_cannot_move_is_read_as_the_remote_has_it() {
    let clones = behind();
    let before = clones.tip(&clones.other);
    clones
        .env
        .git(&clones.other, &["checkout", "-q", "handoffs"]);
    for args in READS {
        let ran = clones.there(args).success();
        assert!(!ran.stderr.contains("origin"), "{}", ran.shown);
    }
    clones.there(&PRIME).says("88.1");
    assert_eq!(clones.tip(&clones.other), before);
}

#[test]
fn steps_that_are_only_here_are_told_and_stay() {
    let clones = behind();
    let claim = ["claim", "87.1", "--as", "prep-agent", "--offline"];
    clones.there(&claim).exits(8);
    let here = clones.tip(&clones.other);
    let told = "1 step here is not on origin, and 1 there not here: git handoff sync\n";
    for args in [&READS[..3], &[&["status", "87"]]].concat() {
        let ran = clones.there(args).success();
        assert!(ran.stderr.ends_with(told), "{}", ran.shown);
        assert!(!ran.stdout.contains("88.1"), "{}", ran.shown);
        let data = fresh(&clones, args);
        assert_eq!([&data["unpublished"], &data["left_out"]], [1, 1]);
    }
    let page = clones.there(&["prime", "--as", "closer-agent"]).success();
    assert!(
        page.stdout
            .contains("run `git handoff sync`, then prime again"),
        "{}",
        page.shown
    );
    assert_eq!(clones.tip(&clones.other), here);
    clones.there(&["sync"]).success();
    clones.there(&PRIME).success().says("88.1");
    clones.assert_sound(&clones.other);
}

#[test]
fn what_woke_a_wait_is_seen_by_the_next_command() {
    let clones = behind();
    let show = |id: &str| clones.there(&["show", id, "--offline"]);
    show("88.1").exits(6);
    clones
        .there(&["wait", "--inbox", "--as", "prep-agent"])
        .success();
    show("88.1").success();
    clones.env.send(opening(89)).success();
    clones.there(&["watch", "--once"]).success();
    show("89.1").success();
    // So it is after a bad end, on one side only, and when the time is up.
    for (issue, more) in [(90, &[][..]), (91, &["--remote", "origin"])] {
        clones.env.send(opening(issue)).success();
        let id = format!("{issue}.1");
        let cancel = ["cancel", &id, "--as", "issue-manager", "--reason", "no"];
        clones.env.handoff(&cancel).success();
        clones.there(&with(&["wait", &id], more)).exits(1);
        show(&id).success();
    }
    clones.env.send(opening(92)).success();
    until("a wait whose time was up has fetched", || {
        clones.there(&["wait", "92.1", "--timeout", "1s"]);
        show("92.1").status == 0
    });
    // Not where the remote is not to be asked, or where steps are only here.
    clones.env.send(opening(93)).success();
    let timed = ["wait", "92.1", "--timeout", "1s"];
    clones.there(&with(&timed, &["--offline"])).exits(7);
    show("93.1").exits(6);
    let claim = ["claim", "87.1", "--as", "prep-agent", "--offline"];
    clones.there(&claim).exits(8);
    let here = clones.tip(&clones.other);
    clones.there(&timed).exits(7);
    assert_eq!(clones.tip(&clones.other), here);
}

/// A clone of what the clones share, made by git alone with these options.
fn cloned(clones: &Clones, name: &str, options: &[&str]) -> std::path::PathBuf {
    let folder = clones.env.root().join(name);
    let address = format!("file://{}", clones.bare.display());
    let args = [&["clone", "-q"], options, &[&address, name]].concat();
    clones.env.git(clones.env.root(), &args);
    folder
}

#[test]
fn a_new_clone_is_told_the_one_command_that_takes_the_ledger_over() {
    let clones = behind();
    let env = &clones.env;
    for (name, options) in [
        ("whole", &[][..]),
        ("single", &["--single-branch"]),
        ("renamed", &["-o", "hub", "--single-branch"]),
    ] {
        let folder = cloned(&clones, name, options);
        let remote = if name == "renamed" { "hub" } else { "origin" };
        let takeover = format!("git handoff init --remote {remote}");
        let there = |args: &[&str]| env.handoff_in(&folder, args);
        let hint = format!("hint: {remote} has one: `{takeover}` takes it over\n");
        for args in [
            &["status"][..],
            &PRIME,
            &["show", "87.1"],
            &["claim", "--next", "--as", "prep-agent"],
            &["wait", "87.1"],
            &["verify"],
        ] {
            let ran = there(args).exits(9);
            assert!(ran.stderr.ends_with(&hint), "{}", ran.shown);
        }
        for args in [&["fetch"][..], &["sync"]] {
            let ran = there(args).exits(2);
            assert!(ran.stderr.ends_with(&hint), "{}", ran.shown);
        }
        // The program alone says the same.
        let alone = there(&[]).success().stdout;
        let here = format!("a repository without a ledger; {remote} has one\nnext: {takeover}\n");
        assert!(alone.contains(&here), "{alone}");
        // Where every session begins, no remote is asked, and nothing fails.
        let start = there(&with(&PRIME, &["--quiet"])).success().stdout;
        let hook = ["agents", "hook", "claude-code", "session-start"];
        let hooked = there(&hook).success().stdout;
        for said in [start, hooked] {
            assert_eq!(said.contains(&takeover), name == "whole", "{said}");
        }
        let refused = there(&["init"]).exits(5);
        let hint = format!("hint: nothing was written; `{takeover}` takes it over\n");
        assert!(refused.stderr.ends_with(&hint), "{}", refused.shown);
        assert_eq!(clones.tip(&folder), "");
        let words: Vec<&str> = takeover.split(' ').skip(2).collect();
        there(&words)
            .success()
            .says("took over the ledger")
            .says("next: git handoff prime --as AGENT\n");
        assert_eq!(clones.tip(&folder), clones.tip(&clones.bare));
        there(&["claim", "88.1", "--as", "nobody"]).exits(4);
        there(&PRIME).success().says("88.1");
    }
    // Where the remote is configured already, it is another command.
    let folder = cloned(&clones, "configured", &["--single-branch"]);
    env.git(&folder, &["config", "handoff.remote", "origin"]);
    let ran = env.handoff_in(&folder, &["context", "87"]).exits(9);
    let hint = "hint: origin has one: `git handoff fetch` takes it over\n";
    assert!(ran.stderr.ends_with(hint), "{}", ran.shown);
    let alone = env.handoff_in(&folder, &[]).success();
    alone.says("origin has one\nnext: git handoff fetch\n");
    env.handoff_in(&folder, &["fetch"]).success();
    env.handoff_in(&folder, &["show", "87.1"]).success();
}

#[test]
fn where_no_remote_has_a_ledger_or_it_does_not_answer_one_can_be_started() {
    let clones = Clones::without_ledger();
    let there = |args: &[&str]| clones.there(args);
    let start = "start one with `git handoff init --protocol review`";
    there(&["status"]).exits(9).says(start);
    there(&["init"]).success();

    let clones = behind();
    let folder = cloned(&clones, "offline", &["--single-branch"]);
    let there = |args: &[&str]| clones.env.handoff_in(&folder, args);
    // Nobody is asked offline, nor by what git's own hooks run.
    there(&with(&PRIME, &["--offline"])).exits(9).says(start);
    clones.take_away();
    let ran = there(&["status"]).exits(9).says(start);
    assert!(!ran.stderr.contains("fatal"), "{}", ran.shown);
    there(&["init"]).success();
    assert!(Path::new(&folder).is_dir());
}

#[test]
fn a_harness_is_told_what_the_remote_has() {
    let clones = behind();
    let hook = |event: &str, agent: &str| {
        let args = ["agents", "hook", "claude-code", event, "--as", agent];
        let mut command = clones.env.program(&args);
        command.current_dir(&clones.other);
        let input = br#"{"stop_hook_active": false}"#;
        clones.env.run(command, &args, Some(input)).success().stdout
    };
    let page = hook("session-start", "prep-agent");
    assert!(page.contains("88.1"), "{page}");
    assert_eq!(hook("stop", "prep-agent"), "");
    // Claimed in the other clone; the same agent stops in this one.
    clones.env.claim("88.1", "prep-agent").success();
    let kept = hook("stop", "prep-agent");
    assert!(kept.contains("still hold 88.1"), "{kept}");
    clones.env.send(opening(89)).success();
    clones.take_away();
    let page = hook("session-start", "closer-agent");
    assert!(page.contains("origin is out of reach"), "{page}");
    assert!(!page.contains("you may stop"), "{page}");
}

#[test]
fn what_was_fetched_a_moment_ago_is_enough_where_the_remote_is_not_to_be_asked() {
    let clones = behind();
    let set = ["config", "handoff.fresh", "false"];
    clones.env.git(&clones.other, &set);
    age(&clones);
    let prime = || {
        clones
            .there(&["prime", "--as", "closer-agent"])
            .success()
            .stdout
    };
    assert!(!prime().contains("you may stop"), "{}", prime());
    clones.there(&["fetch"]).success();
    assert!(prime().contains("you may stop"), "{}", prime());
}

/// Makes the other clone's last look at the remote one of long ago.
fn age(clones: &Clones) {
    for name in ["look.lock", "remote.lock"] {
        let path = clones.other.join(".git/handoff").join(name);
        let Ok(note) = fs::read_to_string(&path) else {
            continue;
        };
        if let Some((_, rest)) = note.split_once(' ') {
            fs::write(&path, format!("{} {rest}", "1000000000000000000")).unwrap();
        }
    }
}

#[test]
fn a_gate_judges_by_what_the_remote_has() {
    let clones = Clones::under(&["--protocol", "review"]);
    let git = |args: &[&str]| drop(clones.env.git(&clones.other, args));
    git(&["switch", "-q", "-c", "csv"]);
    git(&["commit", "-q", "--allow-empty", "-m", "The parcels as CSV"]);
    git(&["push", "-q", "origin", "csv"]);
    for line in [
        "send --issue 7 --to reviewer --as coder --set branch=csv --set summary=Done",
        "claim 7 --as reviewer",
        "send --issue 7 --to end --as reviewer --set summary=Good --offline",
        "gate 7 --offline",
        "sync",
        "gate 7",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let ran = clones.there(&words);
        if line.starts_with("send") && line.ends_with("--offline") {
            ran.exits(8);
            let closed = clones.there(&["gate", "7"]).exits(1);
            closed
                .says("✗ not published: 1 step of it is only here")
                .says("`git handoff sync` sends it");
        } else {
            ran.success();
        }
    }
    clones.env.handoff(&["fetch"]).success();
    let reject = ["reject", "7.2", "--as", "maintainer", "--reason", "no"];
    clones.env.handoff(&reject).success();
    let told = |ran: Ran, text: &str| {
        assert_eq!(ran.shown.matches(text).count(), 1, "{}", ran.shown);
    };
    for reads in [&["gate", "7"][..], &["list"], &["log"]] {
        let ran = clones.there(&with(reads, &["--offline"])).success();
        told(ran, "Z, origin was not asked");
    }
    clones.there(&["log"]).success().says("disapproved");
    clones.there(&["gate", "7"]).exits(1).says("disapproved");
    clones.take_away();
    told(
        clones.there(&["gate", "7"]).exits(1),
        "origin is out of reach (",
    );
}
