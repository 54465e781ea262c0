//! A clone whose own step was the remote's last presumes that it still is: it pushes without a look,
//! and tells nobody what it only presumed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::Ran;
use test_support::contracts::{opening, prepared};
use test_support::remote::{hook, unhook};
use test_support::team::at_once;

use crate::clones::Clones;

/// What a command did with the remote.
#[derive(Debug, PartialEq, Eq)]
struct Contact {
    looks: usize,
    pushes: usize,
}

const LOOKED: Contact = Contact {
    looks: 1,
    pushes: 1,
};

const PRESUMED: Contact = Contact {
    looks: 0,
    pushes: 1,
};

/// It presumed, and what came of that was not enough.
const PRESUMED_IN_VAIN: Contact = Contact {
    looks: 1,
    pushes: 2,
};

/// Runs the program in a clone.
fn run(team: &Clones, clone: &Path, args: &[&str], input: Option<&str>) -> (Ran, Contact) {
    let trace = team.env.root().join("trace");
    let _ = fs::remove_file(&trace);
    let mut command = team.env.program(args);
    command.current_dir(clone);
    command.env("GIT_TRACE2_EVENT", &trace);
    command.env("GIT_HANDOFF_WORKER", test_support::worker_of(clone));
    let ran = team.env.run(command, args, input.map(str::as_bytes));
    let text = fs::read_to_string(&trace).unwrap_or_default();
    let starts = |verb: &str| {
        let starts = text.lines().filter(|l| l.contains(r#""event":"start""#));
        starts.filter(|line| line.contains(verb)).count()
    };
    let contact = Contact {
        looks: starts(r#""--no-write-fetch-head""#),
        pushes: starts(r#""--no-follow-tags""#),
    };
    (ran, contact)
}

fn open(team: &Clones, issue: u32) -> (Ran, Contact) {
    run(
        team,
        &team.env.repo(),
        &["send", "-"],
        Some(&opening(issue)),
    )
}

/// Two clones of which the first would presume at its next write: it opened issues 1 and 2.
fn presuming() -> Clones {
    let team = Clones::new();
    for issue in [1, 2] {
        let (sent, contact) = open(&team, issue);
        sent.success();
        assert_eq!(contact, LOOKED);
    }
    team
}

fn note(team: &Clones) -> PathBuf {
    let folder = fs::read_dir(team.env.repo().join(".git/handoff")).unwrap();
    let mut paths = folder.map(|entry| entry.unwrap().path());
    let is_group = |path: &PathBuf| path.to_str().unwrap().contains("/group-");
    paths.find(is_group).unwrap()
}

fn code(ran: &Ran) -> Value {
    ran.json()["error"]["code"].clone()
}

#[test]
fn a_lone_clone_looks_at_its_first_two_steps_and_then_now_and_then() {
    let team = presuming();
    let (repo, before) = (team.env.repo(), team.tip(&team.bare));
    let (sent, contact) = open(&team, 3);
    sent.success();
    assert_eq!(contact, PRESUMED);
    let claim = ["claim", "--next", "--as", "prep-agent", "--json"];
    let (claimed, contact) = run(&team, &repo, &claim, None);
    assert_eq!(claimed.success().json()["data"]["id"], "1.1");
    assert_eq!(contact, PRESUMED);
    // It may look now, for others to have their chance.
    let (sent, contact) = open(&team, 4);
    sent.success();
    assert_eq!(contact.pushes, 1);
    let extend = ["extend", "1", "--as", "prep-agent", "--lease", "9h"];
    let complete = ["complete", "1.1", "--as", "prep-agent"];
    let annotate = ["annotate", "1", "--as", "prep-agent", "--note", "done"];
    let mut looks = contact.looks;
    for args in [&extend[..], &complete, &annotate] {
        let (changed, contact) = run(&team, &repo, args, None);
        changed.success();
        assert_eq!(contact.pushes, 1, "{args:?}");
        looks += contact.looks;
    }
    assert!(looks < 3, "{looks}");
    assert_eq!(team.published_since(&before).len(), 6);
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn commands_that_read_or_synchronize_never_presume() {
    let team = presuming();
    for args in [
        &["sync"][..],
        &["fetch"],
        &["status"],
        &["inbox", "--as", "prep-agent"],
    ] {
        let (read, contact) = run(&team, &team.env.repo(), args, None);
        read.success();
        assert_eq!(contact.looks, 1, "{args:?}");
    }
    team.open(&team.other, 3, &[]).success();
    let (shown, _) = run(&team, &team.env.repo(), &["status", "--json"], None);
    assert_eq!(
        shown.success().json()["data"]["handoffs"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn what_another_clone_claimed_is_refused_for_that_reason() {
    let team = presuming();
    let there = ["claim", "1.1", "--as", "prep-agent", "--json"];
    let holder = team.there(&there).success().json()["data"]["commit"].clone();
    let claim = ["claim", "1.1", "--as", "prep-agent", "--json"];
    let (refused, contact) = run(&team, &team.env.repo(), &claim, None);
    assert_eq!(code(&refused.exits(5)), "already_claimed");
    let looked_after = Contact {
        looks: 1,
        pushes: 1,
    };
    assert_eq!(contact, looked_after);
    assert_eq!(holder, team.tip(&team.bare));
    team.assert_together();
    // Once it was wrong, it looks.
    for issue in [3, 4, 5] {
        let (sent, contact) = open(&team, issue);
        sent.success();
        assert_eq!(contact, LOOKED);
    }
}

#[test]
fn what_only_the_remote_has_counts() {
    let team = presuming();
    let repo = team.env.repo();
    // The sender's claim.
    let claim = ["claim", "1.1", "--as", "prep-agent", "--worker", "prep"];
    team.there(&claim).success();
    let send = ["send", "-", "--worker", "prep"];
    let (sent, contact) = run(&team, &repo, &send, Some(&prepared(1)));
    sent.success();
    assert_eq!(contact, LOOKED, "a refusal is not pushed");
    team.there(&["sync"]).success();
    team.assert_together();

    // The issue.
    let team = presuming();
    team.open(&team.other, 3, &[]).success();
    let claim = ["claim", "3", "--as", "prep-agent"];
    run(&team, &team.env.repo(), &claim, None).0.success();

    // Which of an issue's handoffs is open.
    let team = presuming();
    team.there(&["claim", "1", "--as", "prep-agent"]).success();
    team.send(&team.other, &prepared(1), &[]).success();
    let claim = ["claim", "1", "--as", "implementer-agent", "--json"];
    let (claimed, _) = run(&team, &team.env.repo(), &claim, None);
    assert_eq!(claimed.success().json()["data"]["id"], "1.2");

    // The same where the presumed one could be cancelled.
    let team = presuming();
    team.there(&["claim", "1", "--as", "prep-agent"]).success();
    team.send(&team.other, &prepared(1), &[]).success();
    let cancel = ["cancel", "1", "--as", "prep-agent", "--json"];
    let (cancelled, contact) = run(&team, &team.env.repo(), &cancel, None);
    assert_eq!(cancelled.success().json()["data"]["id"], "1.2");
    assert!(contact.looks == 1, "{contact:?}");
}

#[test]
fn that_nothing_is_to_be_done_is_never_presumed() {
    let send = ["send", "-", "--json"];
    // The other clone sent it.
    let team = presuming();
    team.open(&team.other, 3, &[]).success();
    let (sent, _) = run(&team, &team.env.repo(), &send, Some(&opening(3)));
    let sent = sent.success().json()["data"].take();
    assert_eq!(
        (&sent["id"], &sent["repeated"]),
        (&"3.1".into(), &true.into())
    );
    assert_eq!(team.tip(&team.env.repo()), team.tip(&team.bare));

    // The other clone withdrew it.
    let team = presuming();
    team.there(&["cancel", "2.1", "--as", "issue-manager"])
        .success();
    let (sent, contact) = run(&team, &team.env.repo(), &send, Some(&opening(2)));
    let sent = sent.success().json()["data"].take();
    assert_eq!(
        (&sent["id"], &sent["repeated"]),
        (&"2.2".into(), &false.into())
    );
    assert_eq!(contact, LOOKED);
    team.there(&["sync"]).success();
    team.assert_together();

    // Nobody did anything.
    let team = presuming();
    let (sent, contact) = run(&team, &team.env.repo(), &send, Some(&opening(2)));
    assert_eq!(sent.success().json()["data"]["repeated"], true);
    let looked = Contact {
        looks: 1,
        pushes: 0,
    };
    assert_eq!(contact, looked);
}

#[test]
fn a_refused_contract_is_noted_once() {
    let team = presuming();
    let broken = opening(3)
        .replace("<issue_title>", "<title>")
        .replace("</issue_title>", "</title>");
    assert_ne!(broken, opening(3));
    let (refused, contact) = run(&team, &team.env.repo(), &["send", "-"], Some(&broken));
    refused.exits(3);
    assert_eq!(contact.looks, 1);
    let notes = team
        .env
        .repo()
        .join(".git/handoff/refused/refs/heads/handoffs");
    let notes = fs::read_to_string(notes).unwrap();
    assert_eq!(notes.lines().count(), 1, "{notes}");
}

#[test]
fn clones_that_take_turns_presume_in_vain_at_most_once() {
    let team = Clones::new();
    let mut in_vain = 0;
    let mut issue = 0;
    for _ in 0..4 {
        for clone in [team.env.repo(), team.other.clone()] {
            for _ in 0..2 {
                issue += 1;
                let (sent, contact) = run(&team, &clone, &["send", "-"], Some(&opening(issue)));
                sent.success();
                assert!(contact.looks == 1, "{contact:?}");
                in_vain += contact.pushes - 1;
            }
        }
    }
    assert_eq!(in_vain, 2, "each of them once");
    for clone in [team.env.repo(), team.other.clone()] {
        for _ in 0..3 {
            issue += 1;
            let (sent, contact) = run(&team, &clone, &["send", "-"], Some(&opening(issue)));
            sent.success();
            assert_eq!(contact, LOOKED);
        }
    }
    team.env.handoff(&["sync"]).success();
    team.assert_together();
}

#[test]
fn many_writers_of_a_clone_that_presumes_lose_nothing_to_another() {
    let team = presuming();
    let before = team.tip(&team.bare);
    team.open(&team.other, 3, &[]).success();
    let send = |issue: u32| {
        let file = team.env.file(&format!("{issue}.xml"), opening(issue));
        vec!["send".to_owned(), file]
    };
    let all: Vec<_> = (4..=11).map(send).collect();
    for ended in at_once(&team.env, &all) {
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{said}");
    }
    assert_eq!(team.published_since(&before).len(), 9);
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn a_note_that_is_old_or_spoiled_lets_nobody_presume() {
    let team = presuming();
    let old = |text: &str| text.rsplit_once(' ').unwrap().0.to_owned();
    let spoiled = |text: &str| format!("{} nonsense", old(text));
    let negative = |text: &str| format!("{} -1", old(text));
    let changes: [&dyn Fn(&str) -> String; 3] = [&old, &spoiled, &negative];
    let mut issue = 2;
    for change in changes {
        let path = note(&team);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, change(&text)).unwrap();
        issue += 1;
        let (sent, contact) = open(&team, issue);
        sent.success();
        assert_eq!(contact, LOOKED, "{}", change(&text));
    }
    fs::remove_file(note(&team)).unwrap();
    let (sent, contact) = open(&team, issue + 1);
    sent.success();
    assert_eq!(contact, LOOKED);
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn a_note_that_lies_costs_a_push() {
    let team = presuming();
    let before = team.tip(&team.bare);
    team.open(&team.other, 3, &[]).success();
    let (sent, contact) = open(&team, 4);
    sent.success();
    assert_eq!(contact, PRESUMED_IN_VAIN);
    assert_eq!(team.published_since(&before).len(), 2);
    // The note says that nothing of others came between, although it did.
    team.open(&team.other, 5, &[]).success();
    let text = fs::read_to_string(note(&team)).unwrap();
    let lie = format!("{} 2", text.rsplit_once(' ').unwrap().0);
    fs::write(note(&team), lie).unwrap();
    let (sent, contact) = open(&team, 6);
    sent.success();
    assert_eq!(contact, PRESUMED_IN_VAIN);
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn what_is_made_while_the_remote_is_away_is_recorded_here() {
    let team = presuming();
    let repo = team.env.repo();
    team.take_away();
    let claim = ["claim", "9.1", "--as", "prep-agent"];
    let (refused, _) = run(&team, &repo, &claim, None);
    refused.exits(6).says("origin is out of reach");
    let (sent, _) = open(&team, 3);
    sent.exits(8).says("recorded here, but not on origin: ");
    let (claimed, _) = run(&team, &repo, &["claim", "3.1", "--as", "prep-agent"], None);
    claimed.exits(8);
    team.bring_back();
    let before = team.tip(&team.bare);
    let (sent, contact) = open(&team, 4);
    sent.success();
    assert_eq!(contact.looks, 1);
    assert_eq!(team.published_since(&before).len(), 3);
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn steps_that_wait_offline_are_published_first() {
    let team = presuming();
    let before = team.tip(&team.bare);
    team.open(&team.env.repo(), 3, &["--offline"]).exits(8);
    let (sent, contact) = open(&team, 4);
    sent.success();
    assert_eq!(contact.looks, 1);
    assert_eq!(team.published_since(&before).len(), 2);
}

#[test]
fn a_branch_that_went_back_or_is_gone_is_not_restored() {
    for (change, code_there) in [
        (
            &["update-ref", "refs/heads/handoffs", "handoffs~1"][..],
            "remote_rewritten",
        ),
        (&["update-ref", "-d", "refs/heads/handoffs"], "remote_gone"),
    ] {
        let team = presuming();
        team.env.git(&team.bare, change);
        let there = team.at(&team.bare, "refs/heads/handoffs");
        let send = ["send", "-", "--json"];
        let (refused, _) = run(&team, &team.env.repo(), &send, Some(&opening(3)));
        assert_eq!(code(&refused.exits(10)), code_there);
        assert_eq!(team.at(&team.bare, "refs/heads/handoffs"), there);
    }
}

#[test]
fn a_hook_of_the_remote_refuses_a_step_once() {
    let team = presuming();
    let asked = team.env.root().join("asked");
    let script = format!("echo >>'{}'; echo 'not today'; exit 1", asked.display());
    hook(&team.bare, "pre-receive", &script);
    let (refused, contact) = open(&team, 3);
    refused.exits(4).says("not today");
    assert_eq!(contact, PRESUMED);
    assert_eq!(fs::read_to_string(&asked).unwrap().lines().count(), 1);
    unhook(&team.bare, "pre-receive");
    open(&team, 3).0.success();
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn an_answer_that_is_cut_off_leaves_one_step() {
    let team = presuming();
    let before = team.tip(&team.bare);
    // The step arrives, and the push fails all the same.
    let mark = team.env.root().join("mark");
    let script = format!(
        "[ -e '{0}' ] || {{ touch '{0}'; kill -9 $PPID; }}",
        mark.display()
    );
    hook(&team.bare, "post-receive", &script);
    let (sent, _) = open(&team, 3);
    sent.success();
    assert!(mark.exists());
    assert_eq!(team.published_since(&before).len(), 1);
    team.there(&["sync"]).success();
    team.assert_together();
}
