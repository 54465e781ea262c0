//! Processes that are killed at any moment: a hundred and more, in every kind of
//! write. What was acknowledged stands, the ledger is whole, the next command
//! needs no help, and nothing of the user's has changed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::killing::{Acknowledged, Bystanders, Killer, unfinished};
use serde_json::Value;
use test_support::contracts::opening;
use test_support::failure::{AGENT, assert_same};
use test_support::files::write;
use test_support::team::{Folder, commits};
use test_support::{TestEnvironment, repository_kind, stored};

/// Shoots at a command and then runs it again, to its end: it is told what it
/// was told before, if it was told anything.
#[track_caller]
fn shoot_and_repeat(
    env: &TestEnvironment,
    killer: &mut Killer,
    stand: &mut Acknowledged,
    args: &[&str],
) -> (Option<Value>, Value) {
    let all = [args, &["--json"]].concat();
    let told = killer.shoot(env.program(&all), true);
    let again = env.data(args);
    if let Some(told) = &told {
        stand.note(told);
        assert_eq!(again["repeated"], true, "{args:?} was acknowledged");
        for member in ["id", "state", "attempt", "token", "context"] {
            assert_eq!(again[member], told[member], "{args:?}: {member}");
        }
    }
    if again["repeated"] == false {
        stand.note(&again);
    }
    (told, again)
}

fn held(env: &TestEnvironment, issue: u32) -> String {
    env.send(opening(issue)).success();
    let id = format!("{issue}.1");
    env.claim(&id, AGENT).success();
    id
}

#[test]
fn senders_that_are_killed_lose_nothing_that_was_acknowledged() {
    let env = TestEnvironment::with_ledger();
    unfinished(&env);
    let bystanders = Bystanders::note(&env, &[]);
    let (mut killer, mut stand) = (Killer::new(1, 30), Acknowledged::default());
    let mut issue = 0;
    while killer.goes_on() {
        issue += 1;
        let file = env.file("contract.xml", opening(issue));
        shoot_and_repeat(&env, &mut killer, &mut stand, &["send", &file]);
        bystanders.assert_untouched();
        if issue % 20 == 0 {
            stand.stand(&env);
        }
    }
    stand.stand(&env);
    // Each contract is there, and each once.
    assert_eq!(commits(&env), 1 + issue as usize);
    let status = env.data(&["status", "--limit", "0"]);
    let handoffs = status["handoffs"].as_array().unwrap();
    assert_eq!(handoffs.len(), issue as usize);
    killer.finish(stand.count());
}

#[test]
fn claims_that_are_killed_are_held_by_who_was_told_so() {
    let env = TestEnvironment::with_ledger();
    unfinished(&env);
    let bystanders = Bystanders::note(&env, &[]);
    let (mut killer, mut stand) = (Killer::new(2, 25), Acknowledged::default());
    let mut issue = 0;
    while killer.goes_on() {
        issue += 1;
        env.send(opening(issue)).success();
        let id = format!("{issue}.1");
        let args = ["claim", &id, "--as", AGENT, "--json"];
        let told = killer.shoot(env.program(&args), true);
        // Who was not told claims again, and is shown what it has if it has it.
        let again = env.handoff(&args);
        let record = stored(&env.data(&["show", &id]));
        let data = match (&told, again.status) {
            (told, 0) if again.json()["data"]["repeated"] == true => told.clone(),
            (None, 0) => Some(again.json()["data"].take()),
            _ => panic!("{}", again.shown),
        };
        if let Some(data) = &data {
            stand.note(data);
            assert_eq!(record["lease"]["token"], data["handoff"]["token"]);
        }
        let lease = (&record["lease"]["holder"], &record["lease"]["token"]);
        assert_eq!(lease, (&AGENT.into(), &1.into()));
        bystanders.assert_untouched();
        if issue % 20 == 0 {
            stand.stand(&env);
        }
    }
    stand.stand(&env);
    assert_eq!(commits(&env), 1 + 2 * issue as usize);
    killer.finish(stand.count());
}

#[test]
fn failures_whose_recording_is_killed_keep_all_of_the_work_or_none() {
    let env = TestEnvironment::with_ledger();
    // What git packs on its own changes files of its own, whenever it is due.
    env.git(&env.repo(), &["config", "gc.auto", "0"]);
    unfinished(&env);
    let (mut killer, mut stand) = (Killer::new(3, 25), Acknowledged::default());
    let mut issue = 0;
    while killer.goes_on() {
        issue += 1;
        let id = held(&env, issue);
        let work = env.repo().join("new/work");
        write(&work, format!("work on {issue}\n").repeat(2_000));
        let log = format!("log of {issue}\n").repeat(500);
        let attached = env.file("build.log", &log);
        let bystanders = Bystanders::note(&env, &[]);
        let args = [
            "fail",
            &id,
            "--as",
            AGENT,
            "--message",
            "out of time",
            "--snapshot",
            "--attach",
            &attached,
        ];
        let (_, again) = shoot_and_repeat(&env, &mut killer, &mut stand, &args);
        assert_eq!(again["handoff"]["state"], "failed");
        bystanders.assert_untouched();
        if issue % 20 == 0 {
            stand.stand(&env);
            let dir = env.root().join(format!("work-{issue}"));
            let logs = env.root().join(format!("logs-{issue}"));
            let args = [
                "restore",
                &id,
                "--worktree",
                text(&dir),
                "--attachments",
                text(&logs),
            ];
            env.handoff(&args).success();
            assert_same(&env, &env.repo(), &dir);
            assert_eq!(fs::read_to_string(logs.join("build.log")).unwrap(), log);
        }
    }
    stand.stand(&env);
    assert_eq!(commits(&env), 1 + 3 * issue as usize);
    killer.finish(stand.count());
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What git keeps about a worktree, once git takes it for one.
fn registered(env: &TestEnvironment, dir: &Path) -> Option<PathBuf> {
    let all = fs::read_dir(env.repo().join(".git/worktrees")).ok()?;
    let mut folders = all.map(|entry| entry.unwrap().path());
    let link = format!("{}/.git\n", dir.display());
    folders.find(|own| fs::read_to_string(own.join("gitdir")).is_ok_and(|found| found == link))
}

#[test]
fn restores_that_are_killed_leave_their_own_folder_and_branch_at_most() {
    let env = TestEnvironment::with_ledger();
    unfinished(&env);
    let id = held(&env, 87);
    env.handoff(&["fail", &id, "--as", AGENT, "--message", "x", "--snapshot"])
        .success();
    let tip = env.tip();
    let own = [
        ".git/worktrees/",
        ".git/refs/heads/again-",
        ".git/logs/refs/heads/again-",
    ];
    let bystanders = Bystanders::note(&env, &own);
    let mut killer = Killer::new(4, 30);
    let (mut told, mut made, mut number, mut half_way) = (0, Vec::new(), 0, 0);
    // A busy machine may hit the moment only later.
    while killer.goes_on() || half_way == 0 && number < 250 {
        number += 1;
        let dir = env.root().join(format!("restored-{number}"));
        let branch = format!("again-{number}");
        let mut args = vec!["restore", &id, "--worktree", text(&dir), "--json"];
        if number % 2 == 0 {
            args.extend(["--new-branch", &branch]);
        }
        // Its git is killed with it, or goes on alone for a moment.
        let with_children = number % 5 != 0;
        let done = killer.shoot(env.program(&args), with_children);
        if done.is_some() {
            told += 1;
            let own = registered(&env, &dir).unwrap();
            assert!(!own.join("locked").exists());
        }
        let is_locked = |own: PathBuf| own.join("locked").exists();
        half_way += usize::from(registered(&env, &dir).is_some_and(is_locked));
        made.push((dir, done.is_some()));
        bystanders.assert_untouched();
        assert_eq!(env.tip(), tip);
        if number % 20 == 0 {
            // The next one needs no help.
            let dir = env.root().join(format!("whole-{number}"));
            env.handoff(&["restore", &id, "--worktree", text(&dir)])
                .success();
            assert_same(&env, &env.repo(), &dir);
            env.assert_sound();
        }
    }
    // A worktree is whole, or else git takes it for locked, or for none.
    let mut cut = 0;
    for (dir, told) in &made {
        match registered(&env, dir) {
            Some(own) if !own.join("locked").exists() => assert_same(&env, &env.repo(), dir),
            _ if *told => panic!("{} was acknowledged", dir.display()),
            Some(_) => {
                cut += 1;
                let args = ["restore", &id, "--worktree", text(dir)];
                env.handoff(&args).exits(5).says("nothing was changed");
            }
            None => {}
        }
    }
    assert!(cut > 0, "none was killed half-way");
    env.assert_sound();
    bystanders.assert_untouched();
    killer.finish(told);
}

#[test]
fn heartbeats_decisions_and_reaping_that_are_killed_need_no_help() {
    let env = TestEnvironment::with_ledger();
    unfinished(&env);
    env.pace(1);
    let bystanders = Bystanders::note(&env, &[]);
    let (mut killer, mut stand) = (Killer::new(5, 25), Acknowledged::default());
    let mut issue = 0;
    while killer.goes_on() {
        issue += 1;
        let id = held(&env, issue);
        let key = issue.to_string();
        // A heartbeat.
        let args = ["extend", &id, "--as", AGENT, "--lease", "5h", "--json"];
        let told = killer.shoot(env.program(&args), true);
        if let Some(told) = &told {
            stand.note(told);
        }
        let record = stored(&env.data(&["show", &id]));
        if let Some(told) = &told {
            assert_eq!(record["lease"]["expires_at"], told["handoff"]["expires_at"]);
        }
        env.data(&args[..6]);
        env.wait_minutes(6 * 60);
        // Its lease runs out, and that is recorded once.
        let told = killer.shoot(env.program(&["reap", "--json"]), true);
        let again = env.data(&["reap"]);
        let count = |data: &Value| data["handoffs"].as_array().unwrap().len();
        let recorded = told.as_ref().map_or(0, count) + count(&again);
        assert!(
            recorded <= 1 && (told.is_none() || recorded == 1),
            "{recorded}"
        );
        let record = stored(&env.data(&["show", &id]));
        assert_eq!(record["state"], "failed");
        // What becomes of it is decided once.
        let args = ["next", &key, "--apply", "--as", "orchestrator"];
        let all = [&args[..], &["--json"]].concat();
        let told = killer.shoot(env.program(&all), true);
        if let Some(told) = &told {
            assert_eq!(told["action"], "retry", "{told:#}");
            stand.note(&told["applied"]);
        }
        let record = stored(&env.data(&["show", &id]));
        let is_retried = record["state"] == "pending";
        assert!(is_retried || (told.is_none() && record["state"] == "failed"));
        if !is_retried {
            let ran = env.handoff(&args);
            // Where refs are in tables, a git that goes on alone may still end it.
            let is_late = repository_kind::is_reftable() && ran.status == 6;
            assert!(is_late || ran.status == 0, "{}", ran.shown);
        }
        let history = env.data(&["show", &id])["record"]["transitions"].take();
        let to = |state: &str| {
            let all = history.as_array().unwrap().iter();
            all.filter(|step| step["to"] == state).count()
        };
        assert_eq!((to("failed"), to("pending")), (1, 2), "{history:#}");
        bystanders.assert_untouched();
        if issue % 20 == 0 {
            stand.stand(&env);
        }
    }
    stand.stand(&env);
    killer.finish(stand.count());
}

/// Two issues that were given up, each under a protocol that says when they are archived: what
/// archives them makes two steps.
fn ended_under_two_protocols(env: &TestEnvironment) {
    let folder = Folder::copy(env, "issue-to-pr", "second");
    folder.define(|definition| definition["name"] = "second".into());
    folder.put("add").success();
    for (issue, protocol) in [(1, "issue-to-pr"), (2, "second")] {
        let after = ["protocol", "set", protocol, "archive", "60"];
        env.handoff(&after).success();
        let open = ["send", "-", "--protocol", protocol];
        env.handoff_with(&open, opening(issue)).success();
        let (id, key) = (format!("{issue}.1"), issue.to_string());
        env.handoff(&["reject", &id, "--as", AGENT, "--reason", "no"])
            .success();
        give_up(env, &key);
    }
}

fn give_up(env: &TestEnvironment, key: &str) {
    env.handoff(&["cancel", key, "--as", "issue-manager", "--reason", "no"])
        .success();
}

/// The folders of issues and the files of the index at the tip.
fn places(env: &TestEnvironment) -> Vec<String> {
    let list = ["ls-tree", "-r", "--name-only", "handoffs"];
    let files = env.git(&env.repo(), &list);
    let own = |path: &&str| path.ends_with("/issue.json") || path.starts_with("archived/");
    files.lines().filter(own).map(str::to_owned).collect()
}

#[test]
fn archiving_that_is_killed_is_finished_by_the_next_run() {
    let env = TestEnvironment::with_ledger();
    unfinished(&env);
    ended_under_two_protocols(&env);
    let bystanders = Bystanders::note(&env, &[]);
    let (mut killer, mut stand) = (Killer::new(6, 25), Acknowledged::default());
    let (mut rounds, mut half_way) = (0, 0);
    // A busy machine may hit the moment between two steps only later.
    while killer.goes_on() || half_way == 0 && rounds < 250 {
        rounds += 1;
        env.wait_minutes(5);
        let told = killer.shoot(env.program(&["archive", "--json"]), true);
        for step in told
            .iter()
            .flat_map(|told| told["steps"].as_array().unwrap())
        {
            stand.note(step);
        }
        // Each issue is in one place, whenever it was killed.
        let left = places(&env);
        assert_eq!(left.len(), 2, "{left:?}");
        let archived = left.iter().filter(|path| path.starts_with("archived/"));
        let archived = archived.count();
        assert!(told.is_none() || archived == 2, "{left:?}");
        half_way += usize::from(archived == 1);
        let next = env.handoff(&["archive"]);
        next.exits(if archived == 2 { 6 } else { 0 });
        let all = ["archived/01/00.jsonl", "archived/02/00.jsonl"];
        assert_eq!(places(&env), all);
        // One of them is brought back, and the other; what is killed in between is made up for.
        for key in ["1", "2"] {
            let reopen = ["reopen", key, "--as", "issue-manager", "--reason", "yes"];
            let args = [&reopen[..], &["--json"]].concat();
            let told = killer.shoot(env.program(&args), true);
            told.iter().for_each(|told| stand.note(told));
            let status = env.data(&["status", key])["issue"]["status"].take();
            assert!(told.is_none() || status == "open", "{status}");
            if status != "open" {
                env.handoff(&reopen).success();
            }
            give_up(&env, key);
        }
        bystanders.assert_untouched();
        if rounds % 15 == 0 {
            stand.stand(&env);
        }
    }
    stand.stand(&env);
    assert!(half_way > 0, "none was killed between two steps");
    killer.finish(stand.count());
}
