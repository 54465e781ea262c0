//! Steps that were made offline: made again on the remote's state, in order, once.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use test_support::contracts::{opening, prepared};
use test_support::remote::{origin, tip};
use test_support::repository_kind::{is_reftable, lock_of};
use test_support::team::Folder;
use test_support::time::{RESEARCH, WRITER, asks, traced};
use test_support::{Ran, TestEnvironment, stored};

use crate::clones::Clones;
use test_support::files::script;

/// What is done in the first clone (here) and in the other (there).
impl Clones {
    fn here(&self, args: &[&str]) -> Ran {
        self.env.handoff(args)
    }

    fn send_here(&self, contract: &str, more: &[&str]) -> Ran {
        self.send(&self.env.repo(), contract, more)
    }

    fn send_there(&self, contract: &str, more: &[&str]) -> Ran {
        self.send(&self.other, contract, more)
    }

    fn data(ran: &Ran) -> Value {
        ran.json()["data"].clone()
    }

    /// The subjects of the remote's commits, the oldest first, without the first.
    fn steps(&self) -> Vec<String> {
        let args = ["log", "--reverse", "--format=%s", "handoffs"];
        let shown = self.env.git(&self.bare, &args);
        shown.lines().skip(1).map(str::to_owned).collect()
    }

    /// Puts a program named git before the real one, in a folder for the PATH.
    fn git_that(&self, lines: &str) -> String {
        let folder = self.env.root().join("bin");
        fs::create_dir_all(&folder).unwrap();
        let found = std::process::Command::new("sh")
            .args(["-c", "command -v git"])
            .output()
            .unwrap();
        let real = String::from_utf8(found.stdout).unwrap();
        let text = format!("#!/bin/sh\nreal() {{ {} \"$@\"; }}\n{lines}\n", real.trim());
        script(&folder.join("git"), text);
        folder.to_str().unwrap().to_owned()
    }

    /// Runs the program with that git, however it ends.
    fn with_git(&self, clone: &Path, folder: &str, args: &[&str], input: Option<&str>) -> Ran {
        let mut command = self.env.program(args);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{folder}:{path}"));
        command.current_dir(clone);
        command.env("GIT_HANDOFF_WORKER", test_support::worker_of(clone));
        self.env.run(command, args, input.map(str::as_bytes))
    }
}

/// Steps about different issues go together, each with its id.
#[test]
fn a_sync_that_is_killed_as_its_branch_moves_raises_no_alarm() {
    if is_reftable() {
        return;
    }
    let team = Clones::new();
    let branch = team.other.join(".git/refs/heads/handoffs");
    let place = || fs::read(&branch).unwrap_or_default();
    for round in 0..6 {
        let [own, others] = [10, 50].map(|first| opening(first + round));
        team.send_there(&own, &["--offline"]).exits(8);
        team.send_here(&others, &[]).success();
        let before = place();
        let mut sync = team.env.program(&["sync"]);
        sync.current_dir(&team.other).stderr(Stdio::null());
        let mut sync = sync.stdout(Stdio::null()).spawn().unwrap();
        while sync.try_wait().unwrap().is_none() && place() == before {}
        let _ = sync.kill();
        sync.wait().unwrap();
        for _ in 0..2 {
            let doctor = team.there(&["doctor"]);
            assert!(!doctor.stdout.contains("error ledger"), "{}", doctor.shown);
            team.there(&["sync"]).success();
        }
    }
}

#[test]
fn who_is_offline_is_told_that_others_may_have_more() {
    let team = Clones::new();
    team.send_here(&opening(7), &[]).success();
    let claim = ["claim", "7.1", "--as", "prep-agent"];
    team.there(&[&claim[..], &["--offline"]].concat())
        .exits(6)
        .says("`git handoff fetch` brings those of other clones");
    let once = team.there(&["watch", "--once", "--offline"]).success();
    once.says("--all starts with the first");
    team.there(&claim).success();
}

#[test]
fn what_was_made_again_is_no_rewritten_branch() {
    let team = Clones::new();
    team.send_here(&opening(7), &[]).success();
    team.there(&["sync"]).success();
    let claim = ["claim", "7.1", "--as", "prep-agent", "--offline"];
    team.there(&claim).exits(8);
    team.there(&["verify"]).success();
    team.send_here(&opening(8), &[]).success();
    team.there(&["sync"]).success();
    let gate = team.there(&["gate", "7"]).exits(1);
    assert!(gate.stdout.contains("not approved"), "{}", gate.shown);
    assert!(!gate.stdout.contains("not sound"), "{}", gate.shown);
    let audit = ["verify", "--incremental", "--json"];
    let before = Clones::data(&team.there(&audit).success());
    assert_eq!(
        (&before["commits"], &before["tip"]),
        (&json!(2), &json!(tip(&team.env, &team.bare)))
    );
    let again = Clones::data(&team.there(&audit).success());
    assert_eq!(again["commits"], 0);
    team.there(&["doctor"]).success();
}

#[test]
fn a_step_that_is_made_again_keeps_its_milliseconds() {
    let pair = Clones::new();
    let args = ["send", "-", "--offline"];
    let mut command = pair.env.program(&args);
    command.env("GIT_AUTHOR_DATE", "2026-03-10T09:00:00.250Z");
    command.env("GIT_COMMITTER_DATE", "2026-03-10T09:00:00Z");
    let offline = pair.env.run(command, &args, Some(opening(1).as_bytes()));
    offline.exits(8);
    pair.env.wait_minutes(60 * 24 * 8);
    pair.send_there(&opening(2), &[]).success();
    pair.here(&["sync"]).success();
    let record = stored(&pair.env.data(&["show", "1.1"]));
    assert_eq!(record["transitions"][0]["at"], "2026-03-10T09:00:00.250Z");
    pair.env.assert_sound();
}

#[test]
fn what_a_clone_lost_since_it_was_recorded_is_told_with_what_brings_it_back() {
    let pair = Clones::new();
    let before = pair.tip(&pair.env.repo());
    pair.send_here(&opening(1), &["--offline"]).exits(8);
    let lost = pair.tip(&pair.env.repo());
    // As a fetch does in a mirror.
    let (env, repo) = (&pair.env, pair.env.repo());
    env.git(&repo, &["update-ref", "refs/heads/handoffs", &before]);
    let bring_back = format!("git update-ref refs/heads/handoffs {lost} {before}");
    let told = pair.here(&["sync"]).exits(10);
    told.says("and this clone are in sync")
        .says("commits were removed");
    let told = pair.here(&["sync", "--json"]).exits(10).json();
    assert_eq!(told["error"]["code"], "ledger_damaged");
    let hint = told["error"]["hint"].as_str().unwrap();
    assert!(hint.contains(&bring_back), "{hint}");
    let args: Vec<&str> = bring_back.split(' ').skip(1).collect();
    env.git(&repo, &args);
    pair.here(&["sync"]).success();
    assert_eq!(pair.tip(&pair.bare), lost);
    pair.there(&["sync"]).success();
    pair.assert_together();
}

#[test]
fn what_two_clones_did_offline_comes_together() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &["--offline"]).exits(8);
    pair.here(&["claim", "1", "--as", "prep-agent", "--offline"])
        .exits(8);
    pair.send_here(&prepared(1), &["--offline"]).exits(8);
    pair.send_there(&opening(2), &["--offline"]).exits(8);
    pair.there(&["claim", "2", "--as", "prep-agent", "--offline"])
        .exits(8);
    let first = pair.tip(&pair.env.repo());
    let sent = pair.here(&["sync", "--json"]).success();
    let data = Clones::data(&sent);
    assert_eq!((&data["sent"], &data["made_again"]), (&json!(3), &json!(0)));
    assert_eq!(
        pair.tip(&pair.bare),
        first,
        "nobody was first: the commits stay as they are"
    );
    let data = Clones::data(&pair.there(&["sync", "--json"]).success());
    assert_eq!(
        [&data["sent"], &data["made_again"], &data["brought"]],
        [&json!(2), &json!(2), &json!(3)]
    );
    assert_eq!(data["renamed"], json!([]));
    pair.here(&["sync"]).success();
    assert_eq!(
        pair.steps(),
        [
            "1.1 sent to prep-agent: Dispatchers ask for their delivery history as a file",
            "1.1 claimed, until 13:11",
            "1.2 sent to implementer-agent: Export delivery history as CSV",
            "2.1 sent to prep-agent: Dispatchers ask for their delivery history as a file",
            "2.1 claimed, until 13:14",
        ]
    );
    pair.assert_together();
    // A step keeps the time at which it was made.
    let times = |clone: &Path, rev: &str| pair.env.git(clone, &["log", "-1", "--format=%at", rev]);
    let offline = pair
        .env
        .git(&pair.other, &["reflog", "--format=%H", "handoffs"]);
    let before: Vec<&str> = offline.lines().skip(1).take(1).collect();
    assert_eq!(
        times(&pair.other, before[0]),
        times(&pair.other, "handoffs")
    );
}

/// A number that was taken meanwhile: the handoff gets the next one, and what follows goes with it.
#[test]
fn a_handoff_whose_number_was_taken_gets_the_next_one() {
    let pair = Clones::under(&["--protocol", "delegation"]);
    pair.env.pace(6);
    pair.send_here(&asks(WRITER, RESEARCH, &[]), &[]).success();
    pair.there(&["fetch"]).success();
    let other = |reason: &str| asks(WRITER, "validator", &[("/reason", reason.into())]);
    pair.send_here(&other("validation_failure"), &[]).success();
    let offline = pair
        .send_there(&other("expertise_mismatch"), &["--offline", "--json"])
        .exits(8);
    assert_eq!(offline.json()["data"]["handoff"]["id"], traced(2));
    pair.there(&["claim", &traced(2), "--as", "validator", "--offline"])
        .exits(8);
    pair.there(&[
        "annotate",
        &traced(2),
        "--as",
        "validator",
        "--note",
        "mine",
        "--offline",
    ])
    .exits(8);
    let data = Clones::data(&pair.there(&["sync", "--json"]).success());
    assert_eq!(
        data["renamed"],
        json!([{ "was": traced(2), "is": traced(3) }])
    );
    let states = |id: &str| Clones::data(&pair.there(&["show", id, "--json"]).success());
    assert_eq!(states(&traced(2))["handoff"]["state"], "pending");
    assert_eq!(states(&traced(3))["handoff"]["state"], "in_progress");
    let message = pair
        .env
        .git(&pair.other, &["log", "-1", "--format=%B", "handoffs"]);
    assert!(
        message.contains(&format!("Handoff-Id: {}\n", traced(3))),
        "{message}"
    );
    assert!(message.contains("Synced-From: "), "{message}");
    pair.here(&["sync"]).success();
    pair.assert_together();
}

/// A clone that fetched all refs has the refused steps of others, and does not list them as its own.
fn are_of_no_other_clone(pair: &Clones, name: &str) {
    let bare = pair.bare.to_str().unwrap();
    let refs = "+refs/handoff/rejected/*:refs/handoff/rejected/*";
    pair.env.git(&pair.other, &["push", "-q", bare, refs]);
    pair.env.git(&pair.env.repo(), &["fetch", "-q", bare, refs]);
    let listed = Clones::data(&pair.here(&["refused", "--json"]).success());
    assert_eq!(listed["rejected"], json!([]));
    pair.here(&["refused", "retry", name]).exits(6);
}

/// What the new state refuses is kept with the reason, and everything that rests on it.
#[test]
fn what_is_refused_is_kept_until_someone_decides() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &[]).success();
    pair.there(&["fetch"]).success();
    pair.here(&[
        "reject",
        "1.1",
        "--as",
        "prep-agent",
        "--reason",
        "not mine",
    ])
    .success();
    pair.there(&["claim", "1", "--as", "prep-agent", "--offline"])
        .exits(8);
    pair.send_there(&prepared(1), &["--offline"]).exits(8);
    pair.there(&["claim", "1.2", "--as", "implementer-agent", "--offline"])
        .exits(8);
    let own = pair.tip(&pair.other);
    let ran = pair.there(&["sync", "--json"]).exits(5);
    assert_eq!(ran.json()["error"]["code"], "rejected");
    let rejected = ran.json()["data"]["rejected"].as_array().unwrap().clone();
    let reasons: Vec<&str> = rejected
        .iter()
        .map(|r| r["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons.len(), 3, "{reasons:#?}");
    assert!(reasons[0].contains("rejected"), "{reasons:#?}");
    assert_eq!(reasons[2], "it depends on a step of 1.2 that was refused");
    pair.assert_together();
    let kept = "3 steps made here were refused and are kept: `git handoff refused`\n";
    pair.there(&[]).success().says(kept);

    // Nothing of it is gone.
    let refs = pair.env.git(
        &pair.other,
        &[
            "for-each-ref",
            "--format=%(refname)",
            "refs/handoff/rejected",
        ],
    );
    assert_eq!(refs.lines().count(), 3, "{refs}");
    let kept = pair.env.git(
        &pair.other,
        &[
            "for-each-ref",
            "--format=%(*objectname)",
            "refs/handoff/rejected",
        ],
    );
    assert!(kept.contains(&own), "{kept}");
    let listed = Clones::data(&pair.there(&["refused", "--json"]).success());
    assert_eq!(listed["rejected"].as_array().unwrap().len(), 3);
    let name = |n: usize| rejected[n]["name"].as_str().unwrap();
    are_of_no_other_clone(&pair, name(1));
    let shown = Clones::data(
        &pair
            .there(&["refused", "show", name(1), "--json"])
            .success(),
    );
    assert_eq!(shown["contract"], prepared(1));

    // Nothing has changed, so it is refused again, and stays.
    let tip = pair.tip(&pair.bare);
    assert_eq!(pair.there(&["refused", "retry", name(1)]).status, 4);
    pair.there(&["refused", "retry", name(2)]).exits(5);
    pair.there(&["refused", "drop", name(0)]).success();
    pair.there(&["refused", "drop", name(0)]).exits(6);
    assert_eq!(pair.tip(&pair.bare), tip);
    // What it continued is over; what its sender has now is something else.
    let again = opening(1).replace("</handoff>", "<!-- again --></handoff>");
    pair.send_here(&again, &[]).success();
    pair.there(&["claim", "1.2", "--as", "prep-agent"])
        .success();
    let tip = pair.tip(&pair.bare);
    let retried = pair
        .there(&["refused", "retry", name(1), "--json"])
        .exits(5);
    assert_eq!(retried.json()["error"]["code"], "other_handoff");
    assert_eq!(pair.tip(&pair.bare), tip);
    pair.there(&["refused", "drop", name(1)]).success();
    pair.there(&["refused", "drop", name(2)]).success();
    let listed = Clones::data(&pair.there(&["refused", "--json"]).success());
    assert_eq!(listed["rejected"], json!([]));
    pair.here(&["sync"]).success();
    pair.assert_together();
}

/// A refused step that the ledger takes later.
#[test]
fn a_refused_step_is_taken_once_it_is_legal() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &[]).success();
    pair.there(&["fetch"]).success();
    pair.here(&["claim", "1", "--as", "prep-agent"]).success();
    pair.there(&["claim", "1", "--as", "prep-agent", "--offline"])
        .exits(8);
    let ran = pair.there(&["sync", "--json"]).exits(5);
    let name = ran.json()["data"]["rejected"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    pair.here(&[
        "fail",
        "1.1",
        "--as",
        "prep-agent",
        "--message",
        "the disk is full",
    ])
    .success();
    pair.here(&["retry", "1.1", "--as", "prep-agent"]).success();
    pair.env.wait_minutes(60);
    pair.there(&["refused", "retry", &name]).success();
    let shown = Clones::data(&pair.there(&["show", "1.1", "--json"]).success());
    assert_eq!(shown["handoff"]["state"], "in_progress");
    let listed = Clones::data(&pair.there(&["refused", "--json"]).success());
    assert_eq!(listed["rejected"], json!([]));
    pair.here(&["sync"]).success();
    pair.assert_together();
}

/// Whoever is killed between the push and the end of a sync has not lost or doubled anything.
#[test]
fn a_sync_that_is_killed_is_finished_by_the_next_one() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &[]).success();
    for issue in 2..5 {
        pair.send_there(&opening(issue), &["--offline"]).exits(8);
        let note = [
            "annotate",
            &issue.to_string(),
            "--as",
            "prep-agent",
            "--note",
            "seen",
            "--offline",
        ];
        pair.there(&note).exits(8);
    }
    let before = pair.tip(&pair.other);
    let git = pair.git_that(
        "case \" $* \" in *' push '*) real \"$@\" >/dev/null 2>&1; kill -9 $PPID; exit 1;; esac\nreal \"$@\"",
    );
    let killed = pair.with_git(&pair.other, &git, &["sync"], None);
    assert_ne!(killed.status, 0, "{}", killed.shown);
    assert_eq!(
        pair.tip(&pair.other),
        before,
        "it was killed before its own branch moved"
    );
    assert_eq!(pair.steps().len(), 7, "the remote has it all");
    // A step made meanwhile, on the old line.
    pair.there(&[
        "annotate",
        "4",
        "--as",
        "prep-agent",
        "--note",
        "later",
        "--offline",
    ])
    .exits(8);
    let data = Clones::data(&pair.there(&["sync", "--json"]).success());
    assert_eq!(
        data["made_again"], 1,
        "the others were there already: {data}"
    );
    assert_eq!(data["rejected"], json!([]));
    pair.here(&["sync"]).success();
    assert_eq!(pair.steps().len(), 8);
    pair.assert_together();
}

/// A write whose push went through and whose process was killed is found by the next.
#[test]
fn a_write_that_is_killed_after_its_push_is_found() {
    let pair = Clones::new();
    let git = pair.git_that(
        "case \" $* \" in *' push '*) real \"$@\" >/dev/null 2>&1; kill -9 $PPID; exit 1;; esac\nreal \"$@\"",
    );
    let contract = opening(1);
    let killed = pair.with_git(&pair.env.repo(), &git, &["send", "-"], Some(&contract));
    assert_ne!(killed.status, 0);
    let again = pair.send_here(&contract, &["--json"]).success();
    assert_eq!(again.json()["data"]["repeated"], true);
    pair.there(&["sync"]).success();
    assert_eq!(pair.steps().len(), 1);
    pair.assert_together();
}

/// An answer that is lost: the push went through, and git could not tell.
#[test]
fn a_push_without_an_answer_is_looked_up() {
    let pair = Clones::new();
    let lost = "real \"$@\" >/dev/null 2>&1; echo 'fatal: the remote end hung up unexpectedly' >&2; exit 128";
    let git = pair.git_that(&format!(
        "case \" $* \" in *' push '*) {lost};; esac\nreal \"$@\""
    ));
    pair.with_git(&pair.env.repo(), &git, &["send", "-"], Some(&opening(1)))
        .success();
    // And where the remote can't be asked afterwards, the very commit is recorded here.
    let once = pair.env.root().join("pushed");
    let git = pair.git_that(&format!(
        "case \" $* \" in *' push '*) touch {0}; {lost};; *' fetch '*) test -e {0} && {{ echo 'fatal: unable to connect' >&2; exit 128; }};; esac\nreal \"$@\"",
        once.display()
    ));
    let args = ["send", "-", "--json"];
    let ran = pair
        .with_git(&pair.env.repo(), &git, &args, Some(&opening(2)))
        .exits(8);
    assert_eq!(ran.json()["data"]["commit"], pair.tip(&pair.bare));
    let data = Clones::data(&pair.here(&["sync", "--json"]).success());
    assert_eq!(data["made_again"], 0);
    pair.there(&["sync"]).success();
    assert_eq!(pair.steps().len(), 2);
    pair.assert_together();
}

/// That an older step arrived after all says nothing of the one that is sent now.
#[test]
fn what_arrived_is_not_taken_for_another_step() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &["--offline"]).exits(8);
    // The first push arrives, and its answer is lost; the second one comes too late.
    let (first, second) = (
        pair.env.root().join("first"),
        pair.env.root().join("second"),
    );
    let lost = "real \"$@\" >/dev/null 2>&1; echo 'fatal: the remote end hung up unexpectedly' >&2; exit 128";
    let late = format!(
        "(cd {} && PATH={} git-handoff annotate 1 --as prep-agent --note first >/dev/null 2>&1)",
        pair.other.display(),
        std::env::var("PATH").unwrap()
            + ":"
            + Path::new(test_support::program())
                .parent()
                .unwrap()
                .to_str()
                .unwrap(),
    );
    let git = pair.git_that(&format!(
        "case \" $* \" in *' push '*) if test ! -e {0}; then touch {0}; {lost}; elif test ! -e {1}; then touch {1}; {late}; fi;; esac\nreal \"$@\"",
        first.display(),
        second.display(),
    ));
    let args = ["send", "-", "--json"];
    let ran = pair.with_git(&pair.env.repo(), &git, &args, Some(&opening(2)));
    let data = Clones::data(&ran.success());
    assert!(second.exists());
    assert_eq!(data["commit"], pair.tip(&pair.bare));
    pair.there(&["sync"]).success();
    assert_eq!(
        pair.steps(),
        [
            "1.1 sent to prep-agent: Dispatchers ask for their delivery history as a file",
            "1 annotated: first",
            "2.1 sent to prep-agent: Dispatchers ask for their delivery history as a file",
        ]
    );
    pair.assert_together();
}

/// A step that the remote took is taken, whatever becomes of one that another process
/// recorded offline in the same clone at that moment.
#[test]
fn a_step_that_is_there_is_told_as_taken() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &[]).success();
    // The remote takes one more push, and a step is recorded here meanwhile.
    let once = pair.env.root().join("once");
    let hook = pair.bare.join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let text = format!(
        "#!/bin/sh\ntest -e {0} && {{ echo not today >&2; exit 1; }}\ntouch {0}\n",
        once.display()
    );
    script(&hook, text);
    let git = pair.git_that(&format!(
        "case \" $* \" in *' push '*) test -e {0} || (PATH={1}; git-handoff annotate 1 --as prep-agent --note offline --offline >/dev/null 2>&1);; esac\nreal \"$@\"",
        once.display(),
        std::env::var("PATH").unwrap() + ":" + Path::new(test_support::program()).parent().unwrap().to_str().unwrap(),
    ));
    let args = ["claim", "1", "--as", "prep-agent", "--json"];
    let ran = pair.with_git(&pair.env.repo(), &git, &args, None).success();
    assert_eq!(ran.json()["data"]["commit"], pair.tip(&pair.bare));
    // The other one waits here, and goes when the remote takes it.
    pair.here(&["sync"]).exits(4).says("not today");
    fs::remove_file(&hook).unwrap();
    let data = Clones::data(&pair.here(&["sync", "--json"]).success());
    assert_eq!(data["made_again"], 1);
    pair.there(&["sync"]).success();
    assert_eq!(pair.steps().len(), 3);
    pair.assert_together();
}

/// Two clones make the very same commit in the same second: one of them was first.
#[test]
fn the_same_claim_in_the_same_second_has_one_winner() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &[]).success();
    pair.there(&["fetch"]).success();
    // Its first fetch happens before the other claim, its push after it.
    let git = pair.git_that(&format!(
        "case \" $* \" in *' push '*) test -e {0} || {{ touch {0}; cd {1} && PATH={2} GIT_HANDOFF_WORKER=repo git-handoff claim 1 --as prep-agent >/dev/null || exit 3; cd - >/dev/null; }};; esac\nreal \"$@\"",
        pair.env.root().join("claimed").display(),
        pair.env.repo().display(),
        std::env::var("PATH").unwrap() + ":" + Path::new(test_support::program()).parent().unwrap().to_str().unwrap(),
    ));
    let args = ["claim", "1", "--as", "prep-agent", "--json"];
    let ran = pair.with_git(&pair.other, &git, &args, None).exits(5);
    assert_eq!(ran.json()["error"]["code"], "already_claimed");
    pair.there(&["sync"]).success();
    assert_eq!(pair.steps().len(), 2);
    pair.assert_together();
}

/// Whatever happens, no push is forced.
#[test]
fn nothing_is_forced() {
    let pair = Clones::new();
    let log = pair.env.root().join("pushes");
    let git = pair.git_that(&format!(
        "case \" $* \" in *' push '*|*' fetch '*) echo \"$*\" >> {};; esac\nreal \"$@\"",
        log.display()
    ));
    pair.send_here(&opening(1), &[]).success();
    pair.send_there(&opening(2), &["--offline"]).exits(8);
    pair.with_git(&pair.other, &git, &["sync"], None).success();
    pair.with_git(&pair.other, &git, &["send", "-"], Some(&opening(3)))
        .success();
    let said = fs::read_to_string(&log).unwrap();
    assert_eq!(
        said.lines().filter(|l| l.contains(" push ")).count(),
        2,
        "{said}"
    );
    assert!(
        !said.contains("--force") && !said.contains('+') && !said.contains(" -f"),
        "{said}"
    );
}

/// The remote went back, or was written anew: nothing is built on it.
#[test]
fn a_rewritten_remote_is_not_followed() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &[]).success();
    let (tip, parent) = (pair.tip(&pair.bare), "handoffs~1");
    pair.env
        .git(&pair.bare, &["update-ref", "refs/heads/handoffs", parent]);
    let ran = pair.send_here(&opening(2), &["--json"]).exits(10);
    assert_eq!(ran.json()["error"]["code"], "remote_rewritten");
    assert_eq!(pair.tip(&pair.env.repo()), tip);
    pair.here(&["sync"]).exits(10);
    pair.here(&["fetch"]).exits(10);
    pair.env
        .git(&pair.bare, &["update-ref", "-d", "refs/heads/handoffs"]);
    let ran = pair.send_here(&opening(2), &["--json"]).exits(10);
    assert_eq!(ran.json()["error"]["code"], "remote_gone");
    assert_eq!(pair.tip(&pair.env.repo()), tip);
}

/// Two ledgers that began apart are not mixed.
#[test]
fn another_ledger_is_not_taken_for_this_one() {
    let pair = Clones::new();
    let env = &pair.env;
    env.git(env.root(), &["clone", "-q", "served/server.git", "third"]);
    let third = env.root().join("third");
    // As in a clone that was made before there was a ledger.
    let told = ["update-ref", "-d", "refs/remotes/origin/handoffs"];
    env.git(&third, &told);
    // A remote that does not answer cannot say that it has one.
    let address = env.git(&third, &["config", "remote.origin.url"]);
    let reach = |address: &str| {
        env.git(&third, &["remote", "set-url", "origin", address]);
    };
    reach("/nowhere");
    env.handoff_in(&third, &["init"]).success();
    reach(address.trim());
    let own = pair.tip(&third);
    let ran = env
        .handoff_in(&third, &["init", "--remote", "origin", "--json"])
        .exits(10);
    assert_eq!(ran.json()["error"]["code"], "unrelated");
    assert_eq!(pair.tip(&third), own);
    let configured = env.git_any(&third, &["config", "handoff.remote"]);
    assert_eq!(configured.status, 1, "nothing was set");
}

/// Two clones start a ledger at once: they have one.
#[test]
fn two_clones_start_one_ledger() {
    let env = TestEnvironment::with_repository();
    let bare = origin(&env);
    for round in 0..5 {
        let names = [format!("a{round}"), format!("b{round}")];
        let started: Vec<_> = names
            .iter()
            .map(|name| {
                env.git(env.root(), &["clone", "-q", bare.to_str().unwrap(), name]);
                let mut command = env.program(&["init", "--remote", "origin"]);
                command.current_dir(env.root().join(name));
                command.spawn().unwrap()
            })
            .collect();
        for mut child in started {
            assert!(child.wait().unwrap().success());
        }
        let tip = |name: &Path| env.git(name, &["rev-parse", "handoffs"]);
        assert_eq!(tip(&env.root().join(&names[0])), tip(&bare));
        assert_eq!(tip(&env.root().join(&names[1])), tip(&bare));
        env.git(&bare, &["update-ref", "-d", "refs/heads/handoffs"]);
    }
}

/// Protocols and documents change offline, too.
#[test]
fn what_all_issues_share_is_synced() {
    let pair = Clones::new();
    let folder = Folder::copy(&pair.env, "delegation", "theirs");
    pair.there(&["protocol", "add", &folder.path(), "--offline"])
        .exits(8);
    pair.send_here(&opening(1), &[]).success();
    let data = Clones::data(&pair.there(&["sync", "--json"]).success());
    assert_eq!(data["made_again"], 1);
    pair.here(&["sync"]).success();
    pair.here(&["protocol", "show", "delegation"]).success();
    // The same again, in another clone: there is nothing to do.
    pair.here(&["protocol", "add", &folder.path()]).success();
    pair.assert_together();
}

/// What was kept of a failure comes along, whatever the handoff's number.
#[test]
fn failures_with_all_that_was_kept_are_synced() {
    let pair = Clones::under(&["--protocol", "delegation"]);
    pair.env.pace(6);
    pair.send_here(&asks(WRITER, RESEARCH, &[]), &[]).success();
    pair.there(&["fetch"]).success();
    let other = |reason: &str| asks(WRITER, "validator", &[("/reason", reason.into())]);
    pair.send_here(&other("validation_failure"), &[]).success();
    pair.send_there(&other("expertise_mismatch"), &["--offline"])
        .exits(8);
    pair.there(&["claim", &traced(2), "--as", "validator", "--offline"])
        .exits(8);
    fs::write(pair.other.join("unfinished.txt"), "half of it\n").unwrap();
    let id = traced(2);
    let release = [
        "release",
        &id,
        "--as",
        "validator",
        "--reason",
        "full",
        "--snapshot",
        "--offline",
    ];
    pair.there(&release).exits(8);
    pair.there(&["claim", &id, "--as", "validator", "--offline"])
        .exits(8);
    fs::write(pair.other.join("unfinished.txt"), "all of it\n").unwrap();
    let log = pair.env.file("build.log", "it failed\n");
    pair.there(&[
        "fail",
        &traced(2),
        "--as",
        "validator",
        "--message",
        "broken",
        "--snapshot",
        "--attach",
        &log,
        "--offline",
    ])
    .exits(8);
    let data = Clones::data(&pair.there(&["sync", "--json"]).success());
    assert_eq!(data["rejected"], json!([]));
    pair.here(&["sync"]).success();
    pair.assert_together();
    for (which, kept) in [("--claim", "half of it\n"), ("--attempt", "all of it\n")] {
        let into = pair.env.root().join(which);
        let place = into.to_str().unwrap();
        pair.here(&["restore", &traced(3), which, "1", "--worktree", place])
            .success();
        let restored = fs::read_to_string(into.join("unfinished.txt"));
        assert_eq!(restored.unwrap(), kept);
    }
}

/// A clock that is hours behind, or ahead: order is the branch's, and nothing is refused for it.
#[test]
fn clocks_may_be_hours_apart() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &[]).success();
    pair.there(&["fetch"]).success();
    pair.env.wait(-5 * 3600);
    pair.there(&[
        "annotate",
        "1",
        "--as",
        "prep-agent",
        "--note",
        "behind",
        "--offline",
    ])
    .exits(8);
    pair.env.wait(10 * 3600);
    pair.here(&["annotate", "1", "--as", "prep-agent", "--note", "ahead"])
        .success();
    pair.env.wait(-5 * 3600);
    pair.there(&["sync"]).success();
    pair.there(&["annotate", "1", "--as", "prep-agent", "--note", "after"])
        .success();
    pair.here(&["sync"]).success();
    assert_eq!(pair.steps().len(), 4);
    pair.assert_together();
}

/// A lock that a killed process left on the remote: it is told, and the step is not lost.
#[test]
fn a_lock_that_was_left_on_the_remote_is_told() {
    let pair = Clones::new();
    let lock = lock_of(&pair.bare, "refs/heads/handoffs");
    fs::write(&lock, "").unwrap();
    let ran = pair.send_here(&opening(1), &["--json"]).exits(8);
    let message = ran.json()["error"]["message"].to_string();
    assert!(message.contains("stays locked"), "{message}");
    pair.here(&["sync"]).exits(8);
    fs::remove_file(&lock).unwrap();
    pair.here(&["sync"]).success();
    pair.there(&["sync"]).success();
    assert_eq!(pair.steps().len(), 1);
    pair.assert_together();
}

/// The same when the ledger is started: it is here, and goes there later.
#[test]
fn a_lock_on_the_remote_does_not_hold_up_the_start_of_a_ledger() {
    let env = TestEnvironment::with_repository();
    let bare = origin(&env);
    let lock = lock_of(&bare, "refs/heads/handoffs");
    fs::write(&lock, "").unwrap();
    let init = ["init", "--remote", "origin", "--json"];
    let ran = env.handoff(&init).exits(8);
    let message = ran.json()["error"]["message"].to_string();
    assert!(message.contains("stays locked"), "{message}");
    fs::remove_file(&lock).unwrap();
    env.handoff(&["sync"]).success();
    assert_eq!(tip(&env, &bare), env.tip());
}

/// Who moves the tracking ref has its turn, so that a lock that stays is nobody's.
#[test]
fn a_lock_that_was_left_on_the_tracking_ref_is_removed() {
    if is_reftable() {
        // One lock is for all refs there, and may be anybody's.
        return;
    }
    let pair = Clones::new();
    let git = pair.env.repo().join(".git");
    let lock = git.join("refs/handoff/remotes/origin/handoffs.lock");
    for issue in 1..3 {
        fs::write(&lock, "").unwrap();
        pair.send_here(&opening(issue), &[]).success();
        assert!(!lock.exists());
    }
    pair.there(&["sync"]).success();
    pair.assert_together();
}

/// A lock of the branch here: the step is there, and where this clone stays behind is told.
#[test]
fn a_lock_of_this_clones_branch_is_told_with_a_step_that_is_there() {
    let pair = Clones::new();
    let lock = lock_of(&pair.env.repo().join(".git"), "refs/heads/handoffs");
    fs::write(&lock, "").unwrap();
    let ran = pair.send_here(&opening(1), &[]);
    if is_reftable() {
        // Nothing can be fetched there.
        assert_ne!(ran.status, 0);
        return;
    }
    ran.success()
        .says("this clone's branch is locked: `git handoff doctor` says");
    let named = lock.to_str().unwrap();
    let doctor = pair.here(&["doctor"]).exits(1).stdout;
    assert!(doctor.contains(&format!("`rm {named}`")), "{doctor}");
    fs::remove_file(&lock).unwrap();
    pair.here(&["sync"]).success();
    pair.there(&["sync"]).success();
    assert_eq!(pair.steps().len(), 1);
    pair.assert_together();
    // The one by which git follows the remote.
    let lock = pair
        .env
        .repo()
        .join(".git/refs/remotes/origin/handoffs.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    fs::write(&lock, "").unwrap();
    let doctor = pair.here(&["doctor"]).exits(1).stdout;
    assert!(doctor.contains(lock.to_str().unwrap()), "{doctor}");
}

/// Who lost a claim does not finish, fail or hand on what the winner holds.
#[test]
fn what_rests_on_a_refused_claim_is_not_done_on_anothers() {
    let pair = Clones::new();
    for issue in 1..4 {
        pair.send_here(&opening(issue), &[]).success();
    }
    pair.there(&["fetch"]).success();
    for issue in ["1", "2", "3"] {
        pair.there(&["claim", issue, "--as", "prep-agent", "--offline"])
            .exits(8);
    }
    let as_prep = ["--as", "prep-agent", "--offline"];
    pair.send_there(&prepared(1), &["--offline"]).exits(8);
    pair.there(&[&["complete", "2.1"][..], &as_prep].concat())
        .exits(8);
    pair.there(&[&["fail", "3.1", "--message", "no space"][..], &as_prep].concat())
        .exits(8);
    for issue in ["1", "2", "3"] {
        pair.here(&["claim", issue, "--as", "prep-agent"]).success();
    }
    // A write that comes upon it stops, and says so, in JSON as well.
    let stopped = pair.send_there(&opening(9), &["--json"]).exits(5);
    let document = stopped.json();
    assert_eq!(document["error"]["code"], "rejected");
    let rejected = document["data"]["rejected"].as_array().unwrap();
    assert_eq!(rejected.len(), 6, "{rejected:#?}");
    assert_eq!(pair.steps().len(), 6, "nothing of it was done");
    pair.send_there(&opening(9), &[]).success();
    for issue in ["1.1", "2.1", "3.1"] {
        let shown = Clones::data(&pair.there(&["show", issue, "--json"]).success());
        assert_eq!(shown["handoff"]["state"], "in_progress", "{issue}");
    }
    pair.send_here(&prepared(1), &[]).success();
    pair.there(&["sync"]).success();
    pair.assert_together();
}

/// Two claims that are equal to the second, one of them offline: one of them was first.
#[test]
fn equal_claims_have_one_winner_also_where_one_is_made_offline() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &[]).success();
    pair.there(&["fetch"]).success();
    pair.env.pace(0);
    pair.there(&["claim", "1", "--as", "prep-agent", "--offline"])
        .exits(8);
    pair.here(&["claim", "1", "--as", "prep-agent"]).success();
    let synced = pair.there(&["sync", "--json"]).exits(5);
    let rejected = &synced.json()["data"]["rejected"];
    assert_eq!(rejected.as_array().unwrap().len(), 1, "{rejected}");
    pair.assert_together();
}

/// One step that a hook of the remote refuses holds up none of the others.
#[test]
fn what_a_hook_refuses_is_kept_and_the_rest_goes_on() {
    let pair = Clones::new();
    for issue in 1..4 {
        pair.send_there(&opening(issue), &["--offline"]).exits(8);
    }
    let note = [
        "annotate",
        "2",
        "--as",
        "prep-agent",
        "--note",
        "seen",
        "--offline",
    ];
    pair.there(&note).exits(8);
    let hook = pair.bare.join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let text = "#!/bin/sh\nwhile read old new ref; do\n  git log --format=%B $old..$new | grep -q '^Issue: 2$' && { echo 'issue 2 is frozen'; exit 1; }\ndone\nexit 0\n";
    script(&hook, text);
    let refused = pair.send_there(&opening(4), &["--json"]).exits(4);
    assert_eq!(refused.json()["error"]["code"], "remote_refused");
    assert_eq!(pair.steps(), [""; 0]);
    let synced = pair.there(&["sync", "--set-aside", "--json"]).exits(5);
    let data = &synced.json()["data"];
    assert_eq!(data["sent"], 2, "{data}");
    let reasons: Vec<&str> = data["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["reason"].as_str().unwrap())
        .collect();
    assert!(reasons[0].contains("issue 2 is frozen"), "{reasons:?}");
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    pair.send_there(&opening(4), &[]).success();
    pair.here(&["sync"]).success();
    assert_eq!(pair.steps().len(), 3);
    pair.assert_together();
}

/// What plain git put on the branch is judged before it is sent.
#[test]
fn a_commit_that_is_no_step_is_not_sent() {
    let pair = Clones::new();
    pair.send_here(&opening(1), &["--offline"]).exits(8);
    let repo = pair.env.repo();
    let tree = [
        "commit-tree",
        "-p",
        "handoffs",
        "-m",
        "evil",
        "handoffs^{tree}",
    ];
    let evil = pair.env.git(&repo, &tree);
    pair.env
        .git(&repo, &["update-ref", "refs/heads/handoffs", evil.trim()]);
    let synced = pair.here(&["sync", "--json"]).exits(5);
    let data = &synced.json()["data"];
    assert_eq!(data["rejected"][0]["commit"], evil.trim());
    assert_eq!(data["sent"], 1);
    pair.there(&["sync"]).success();
    pair.assert_together();
}

/// A password in the remote's address is nobody's to read.
#[test]
fn a_password_in_an_address_is_not_shown() {
    let pair = Clones::new();
    let address = "http://bot:hunter2@127.0.0.1:9/ledger.git";
    let repo = pair.env.repo();
    pair.env.git(&repo, &["config", "handoff.remote", address]);
    let sent = pair.send_here(&opening(1), &["--timeout", "5s"]).exits(8);
    assert!(
        sent.stderr.contains("http://***@127.0.0.1:9"),
        "{}",
        sent.shown
    );
    for args in [
        &["status", "--json"][..],
        &["status"],
        &["sync", "--json"],
        &["fetch"],
        &["refused", "--json"],
        &["wait", "--inbox", "--as", "fixer-agent", "--timeout", "2s"],
        &["watch", "--once"],
    ] {
        let ran = pair.here(args);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!said.contains("hunter2"), "{said}");
    }
    assert!(!sent.stderr.contains("hunter2"), "{}", sent.stderr);
}

/// A refused step about a contract that the other clone had sent as well: it is tried again
/// on the handoff that has this contract.
#[test]
fn a_refused_step_finds_the_contract_that_was_there_already() {
    let pair = Clones::new();
    pair.send_there(&opening(1), &["--offline"]).exits(8);
    pair.there(&["claim", "1", "--as", "prep-agent", "--offline"])
        .exits(8);
    pair.send_here(&opening(1), &[]).success();
    pair.here(&["claim", "1", "--as", "prep-agent"]).success();
    let synced = pair.there(&["sync", "--json"]).exits(5);
    let rejected = synced.json()["data"]["rejected"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(rejected.len(), 1, "{rejected:#?}");
    let name = rejected[0]["name"].as_str().unwrap();
    let refused = pair.there(&["refused", "retry", name, "--json"]).exits(5);
    assert_eq!(refused.json()["error"]["code"], "already_claimed");
    let fail = ["fail", "1.1", "--as", "prep-agent", "--message", "no space"];
    pair.here(&fail).success();
    pair.here(&["retry", "1.1", "--as", "prep-agent"]).success();
    pair.env.wait_minutes(60);
    pair.there(&["refused", "retry", name]).success();
    let shown = Clones::data(&pair.there(&["show", "1.1", "--json"]).success());
    assert_eq!(shown["handoff"]["state"], "in_progress");
    pair.here(&["sync"]).success();
    pair.assert_together();
}

/// Who takes a protocol pays for its schemas with every command.
#[test]
fn a_protocol_that_needs_too_much_is_not_taken_from_a_remote() {
    let pair = Clones::new();
    let env = &pair.env;
    pair.send_here(&opening(1), &[]).success();
    let mut definitions = json!({"d40": {"type": "string"}});
    for i in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        definitions[format!("d{i}")] = json!({"allOf": [next, next]});
    }
    let bomb = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    let file = env.file("bomb.json", bomb.to_string());
    let git = |words: &[&str]| env.git(&pair.bare, words).trim().to_owned();
    let blob = git(&["hash-object", "-w", &file]);
    git(&["read-tree", "handoffs"]);
    let entry = format!("100644,{blob},protocols/issue-to-pr/schemas/bomb.json");
    git(&["update-index", "--add", "--cacheinfo", &entry]);
    let tree = git(&["write-tree"]);
    let commit = git(&["commit-tree", &tree, "-p", "handoffs", "-m", "More rules"]);
    git(&["update-ref", "refs/heads/handoffs", &commit]);
    let before = pair.tip(&pair.other);
    for words in [
        &["fetch"][..],
        &["sync"],
        &["claim", "1.1", "--as", "prep-agent"],
    ] {
        let refused = pair.there(words).exits(10);
        assert!(
            refused.stderr.contains("schemas/bomb.json"),
            "{}",
            refused.shown
        );
    }
    assert_eq!(pair.tip(&pair.other), before);
    let status = pair.there(&["status"]).success();
    assert!(!status.stdout.contains("bomb"), "{}", status.shown);
}
