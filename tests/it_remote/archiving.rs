//! Clones that archive at once, or while another works on the same issue, and a remote that refuses
//! what one of them archived.

use insta::assert_snapshot;
use test_support::Ran;
use test_support::contracts::opening;
use test_support::remote::{assert_whole, hook, unhook};
use test_support::team::Folder;

use crate::clones::Clones;

const BEFORE: [&str; 3] = ["archive", "--older", "1m"];
const REOPEN: [&str; 6] = ["reopen", "1", "--as", "issue-manager", "--reason", "yes"];

/// Two clones of a ledger in which issues 1 and 2 were given up, an hour ago, and 3 is open.
fn ended() -> Clones {
    let team = Clones::new();
    let repo = team.env.repo();
    for issue in 1..=3 {
        team.open(&repo, issue, &[]).success();
    }
    for issue in ["1", "2"] {
        give_up(&team, issue);
    }
    team.env.wait_minutes(60);
    team.there(&["sync"]).success();
    team
}

fn give_up(team: &Clones, issue: &str) {
    let id = format!("{issue}.1");
    let reject = ["reject", &id, "--as", "prep-agent", "--reason", "no"];
    team.env.handoff(&reject).success();
    let cancel = ["cancel", issue, "--as", "issue-manager", "--reason", "no"];
    team.env.handoff(&cancel).success();
}

/// Runs one command in the first clone and one in the other, at once.
fn at_once(team: &Clones, here: &[&str], there: &[&str]) -> [Ran; 2] {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| team.there(there));
        [team.env.handoff(here), other.join().unwrap()]
    })
}

/// The places of an issue at the remote: its folder, its line in the index, or both.
fn places(team: &Clones, issue: u32) -> Vec<String> {
    let list = ["ls-tree", "-r", "--name-only", "handoffs"];
    let files = team.env.git(&team.bare, &list);
    let own = [
        format!("archived/{issue:02}/00.jsonl"),
        format!("issues/{issue:02}/00/{issue}/issue.json"),
    ];
    let is_own = |path: &&str| own.iter().any(|own| own == path);
    files.lines().filter(is_own).map(str::to_owned).collect()
}

/// Both clones and the remote have one sound ledger, in which each issue is in one place.
#[track_caller]
fn assert_one_ledger(team: &Clones) {
    team.env.handoff(&["sync"]).success();
    team.there(&["sync"]).success();
    team.assert_together();
    for repository in [&team.env.repo(), &team.other, &team.bare] {
        assert_whole(&team.env, repository);
    }
    for issue in 1..=3 {
        assert_eq!(places(team, issue).len(), 1, "{issue}");
    }
}

/// Has a push to the remote arrive after somebody else moved the branch to this commit.
fn overtake(team: &Clones, commit: &str) {
    let script = format!(
        "unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n\
         [ -e overtaken ] && exit 0\n\
         touch overtaken\n\
         git update-ref refs/heads/handoffs {commit}"
    );
    let _ = std::fs::remove_file(team.bare.join("overtaken"));
    hook(&team.bare, "pre-receive", &script);
}

/// A commit that the other clone made meanwhile; the remote has it, on no branch of the ledger.
fn made_meanwhile(team: &Clones, args: &[&str]) -> String {
    team.there(&[args, &["--offline"]].concat()).exits(8);
    let parked = "handoffs:refs/heads/parked";
    team.env.git(&team.other, &["push", "-q", "origin", parked]);
    team.at(&team.other, "refs/heads/handoffs")
}

#[test]
fn a_remote_that_refuses_it_has_nothing_of_it_and_takes_it_later() {
    let team = ended();
    let state = || [&team.env.repo(), &team.bare].map(|at| team.env.git(at, &["for-each-ref"]));
    let before = state();
    hook(
        &team.bare,
        "pre-receive",
        "echo 'no archiving today'; exit 1",
    );
    let refused = team.env.handoff(&BEFORE).exits(4);
    assert_eq!(refused.stdout, "");
    assert_snapshot!(refused.stderr, @"
    error: origin refused: a hook of the remote refused it
       remote.hook no archiving today
    hint: nothing was written; fix what the hook reports, then run the command again. If it refused a step made offline, `git handoff sync --set-aside` sets that step aside and continues with the rest
    ");
    assert_eq!(state(), before, "neither has the step, nor any other ref");
    // A step that is only here is told as that, and goes with the next one.
    team.env
        .handoff(&[&BEFORE[..], &["--offline"]].concat())
        .exits(8);
    team.env.handoff(&["sync"]).exits(4);
    assert_eq!(state()[1], before[1]);
    unhook(&team.bare, "pre-receive");
    assert_one_ledger(&team);
    assert_eq!(places(&team, 1), ["archived/01/00.jsonl"]);
}

#[test]
fn what_was_archived_before_a_refusal_is_told() {
    let team = ended();
    let (env, repo) = (&team.env, team.env.repo());
    let folder = Folder::copy(env, "issue-to-pr", "second");
    folder.define(|definition| definition["name"] = "second".into());
    folder.put("add").success();
    team.open(&repo, 4, &["--protocol", "second"]).success();
    give_up(&team, "4");
    for name in ["issue-to-pr", "second"] {
        env.handoff(&["protocol", "set", name, "archive", "60"])
            .success();
    }
    env.wait_minutes(60);
    // The second of two steps is refused.
    let once = "[ -e once ] && echo 'one is enough' && exit 1; touch once";
    hook(&team.bare, "pre-receive", once);
    let refused = env.handoff(&["archive"]).exits(4);
    assert_snapshot!(refused.stderr, @"
    error: archived 2 issues, but not the rest: origin refused: a hook of the remote refused it
       remote.hook one is enough
    hint: what was recorded stays; once the cause is gone, run the command again; see `git handoff explain remote_refused`
    ");
    assert_eq!(team.tip(&repo), team.tip(&team.bare));
    assert_eq!(places(&team, 1), ["archived/01/00.jsonl"]);
    assert_eq!(places(&team, 4), ["issues/04/00/4/issue.json"]);
    let refused = env.handoff(&["archive", "--json"]).exits(4).json();
    assert_eq!(refused["data"].as_object(), None, "nothing was archived");
    unhook(&team.bare, "pre-receive");
    let rest = env.data(&["archive"]);
    assert_eq!(rest["count"], 1);
    assert_eq!(places(&team, 4), ["archived/04/00.jsonl"]);
    assert_one_ledger(&team);
}

#[test]
fn two_clones_that_archive_at_once_archive_once() {
    for named in [false, true] {
        let team = ended();
        let args: &[&str] = if named {
            &["archive", "1", "2"]
        } else {
            &BEFORE
        };
        let before = team.tip(&team.bare);
        let ran = at_once(&team, args, args);
        let mut exits = ran.each_ref().map(|ran| ran.status);
        exits.sort_unstable();
        assert_eq!(exits, [0, 6], "{}{}", ran[0].shown, ran[1].shown);
        assert_eq!(team.published_since(&before).len(), 1);
        assert_one_ledger(&team);
        assert_eq!(places(&team, 2), ["archived/02/00.jsonl"]);
    }
}

#[test]
fn of_one_that_archives_and_one_that_writes_to_the_issue_both_get_what_is_right() {
    let note = [
        "annotate",
        "1",
        "--as",
        "prep-agent",
        "--note",
        "look again",
    ];
    let send = ["send", "../anew.xml"];
    let anew = opening(1).replace("</summary>", " again</summary>");
    // An issue that was given up takes no contract, whoever is first.
    let (written, ended_too) = ("issues/01/00/1/issue.json", "archived/01/00.jsonl");
    for (write, exit, place) in [
        (&REOPEN[..], 0, written),
        (&note, 0, written),
        (&send, 4, ended_too),
    ] {
        let team = ended();
        team.env.file("anew.xml", &anew);
        let [archived, wrote] = at_once(&team, &BEFORE, write);
        wrote.exits(exit);
        // Issue 2 is archived in any case.
        archived.success();
        assert_one_ledger(&team);
        assert_eq!(places(&team, 2), ["archived/02/00.jsonl"]);
        assert_eq!(places(&team, 1), [place]);
    }
}

/// What the other clone published while the first one made its step decides what becomes of it.
#[test]
fn a_step_that_was_overtaken_is_planned_again() {
    let send = ["send", "../9.xml"];
    let archive_1 = ["archive", "1"];
    for (here, there, exit, says, in_tip) in [
        (&archive_1[..], &REOPEN[..], 4, "issue 1 is open", true),
        (
            &archive_1,
            &archive_1,
            6,
            "these issues are archived already",
            false,
        ),
        (&archive_1, &send, 0, "archived 1 issue", false),
        (&BEFORE, &REOPEN, 0, "archived 1 issue", true),
        (&REOPEN, &BEFORE, 0, "", true),
        (&send, &BEFORE, 0, "9.1", false),
    ] {
        let team = ended();
        team.env.file("9.xml", opening(9));
        let commit = made_meanwhile(&team, there);
        overtake(&team, &commit);
        let ran = team.env.handoff(here).exits(exit).says(says);
        assert!(team.bare.join("overtaken").exists(), "{}", ran.shown);
        unhook(&team.bare, "pre-receive");
        team.env
            .git(&team.bare, &["update-ref", "-d", "refs/heads/parked"]);
        assert_one_ledger(&team);
        let place = if in_tip {
            "issues/01/00/1/issue.json"
        } else {
            "archived/01/00.jsonl"
        };
        assert_eq!(places(&team, 1), [place], "{here:?} after {there:?}");
    }
}
