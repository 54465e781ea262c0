//! What a bare repository's hooks refuse and let pass: the quarantined objects of a push are judged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use test_support::contracts::{opening, prepared};
use test_support::hooks::{Desk, server};
use test_support::{Ran, TestEnvironment};

/// A clone without hooks, and a bare repository with this one, which has the ledger up to 87.1.
fn pushed(hook: &str) -> (TestEnvironment, std::path::PathBuf) {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let bare = server(&env, &[hook]);
    env.git(&env.repo(), &["push", "-q", "origin", "main", "handoffs"]);
    (env, bare)
}

fn push(env: &TestEnvironment, args: &[&str]) -> Ran {
    env.git_any(&env.repo(), &[&["push", "-q", "origin"], args].concat())
}

fn tip(env: &TestEnvironment, bare: &Path) -> String {
    env.git(bare, &["rev-parse", "refs/heads/handoffs"])
}

/// Every file of a repository, by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
                found.insert(name.to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn legal_steps_arrive_and_nothing_else_moves_the_ledger() {
    for hook in ["pre-receive", "update"] {
        let (env, bare) = pushed(hook);
        env.claim("87.1", "prep-agent").success();
        env.send(prepared(87)).success();
        assert_eq!(push(&env, &["handoffs"]).status, 0, "{hook}");
        assert_eq!(tip(&env, &bare).trim(), env.tip(), "{hook}");
        for (args, code) in [
            (&[":handoffs"][..], "branch.deleted"),
            (&["-f", "handoffs~1:handoffs"], "history.rewritten"),
            (&["-f", "main:handoffs"], "history.rewritten"),
        ] {
            let ran = push(&env, args);
            assert_eq!(ran.status, 1, "{hook}: {args:?}");
            assert!(
                ran.stderr.contains(code),
                "{hook}: {args:?}: {}",
                ran.stderr
            );
            assert_eq!(tip(&env, &bare).trim(), env.tip(), "{hook}: {args:?}");
        }
        // Other refs are nobody's business.
        let others = ["-f", "main~0:refs/heads/work", "main:refs/tags/one"];
        assert_eq!(push(&env, &others).status, 0, "{hook}");
        assert_eq!(push(&env, &[":work"]).status, 0, "{hook}");
        env.git(&bare, &["fsck", "--strict"]);
    }
}

/// The branch that the ledger's name leads to is guarded like the ledger's.
#[test]
fn a_symbolic_name_of_the_ledger_opens_no_way_round() {
    for hook in ["pre-receive", "update"] {
        let (env, bare) = pushed(hook);
        env.git(&bare, &["branch", "real", "handoffs"]);
        env.git(
            &bare,
            &["symbolic-ref", "refs/heads/handoffs", "refs/heads/real"],
        );
        let before = env.git(&bare, &["rev-parse", "refs/heads/real"]);
        for args in [&["-f", "main:real"][..], &[":real"]] {
            let ran = push(&env, args);
            assert_eq!(ran.status, 1, "{hook}: {args:?}: {}", ran.shown);
            let now = env.git(&bare, &["rev-parse", "refs/heads/real"]);
            assert_eq!(now, before, "{hook}: {args:?}");
        }
    }
}

#[test]
fn a_refusal_names_commit_path_and_field_and_leaves_nothing_behind() {
    let source = TestEnvironment::with_ledger();
    source.send(opening(87)).success();
    source.claim("87.1", "prep-agent").success();
    source.send(prepared(87)).success();
    let desk = Desk::new(&source, 3);
    let env = &desk.env;
    let bare = server(env, &["pre-receive"]);
    env.git(
        &env.repo(),
        &["push", "-q", "--no-verify", "origin", "handoffs"],
    );
    let before = files(&bare);
    let step = &desk.steps[3];
    desk.stage(step);
    let path = "issues/87/00/87/0002-prep-agent-to-implementer-agent.xml";
    let text = fs::read_to_string(desk.ledger.join(path)).unwrap();
    let (start, rest) = text.split_once("<status>").unwrap();
    let (_, end) = rest.split_once("</status>").unwrap();
    desk.put(path, format!("{start}{end}"));
    assert_eq!(desk.force(&step.author, &step.message).status, 0);
    let refused = env.git_any(
        &env.repo(),
        &["push", "-q", "--no-verify", "origin", "handoffs"],
    );
    assert_eq!(refused.status, 1);
    let said: Vec<&str> = refused.stderr.lines().map(str::trim_end).collect();
    assert_snapshot!(env.filtered(&said.join("\n")), @"
    remote: error: branch handoffs is the ledger, and this move is not made of legal steps
    remote:   [commit] 1:1 issues/87/00/87/0002-prep-agent-to-implementer-agent.xml field.missing /handoff/status: `status` is missing
    remote: hint: the branch was not moved. Use `git handoff` (send, claim, complete, annotate …), whose steps pass; a step made by hand must be exactly what the program would have written: `git handoff help hooks.md`
    To [root]/server.git
     ! [remote rejected] handoffs -> handoffs (pre-receive hook declined)
    error: failed to push some refs to '[root]/server.git'
    ");
    assert_eq!(
        files(&bare),
        before,
        "nothing is written where a push is refused"
    );
}

#[test]
fn a_new_ledger_is_audited_from_its_first_commit_on() {
    let env = TestEnvironment::with_ledger();
    let bare = server(&env, &["pre-receive"]);
    env.send(opening(87)).success();
    let (sound, repo) = (env.tip(), env.repo());
    let start = env.git(&repo, &["rev-parse", "handoffs~1"]);
    let tree = format!("{sound}^{{tree}}");
    // The same files, and a message of its own.
    let forged = env.git(
        &repo,
        &["commit-tree", "-m", "x", "-p", start.trim(), &tree],
    );
    let forged = format!("{}:refs/heads/handoffs", forged.trim());
    let refused = push(&env, &[&forged]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("commit.message"),
        "{}",
        refused.stderr
    );
    let other = push(&env, &["main:refs/heads/handoffs"]);
    assert!(
        other.stderr.contains("ledger.json is missing"),
        "{}",
        other.stderr
    );
    assert_eq!(push(&env, &["handoffs"]).status, 0);
    assert_eq!(tip(&env, &bare).trim(), sound);
}

#[test]
fn many_steps_arrive_at_once_and_one_that_is_wrong_is_found_among_them() {
    let (env, bare) = pushed("pre-receive");
    for issue in 100..220 {
        env.send(opening(issue)).success();
    }
    let repo = env.repo();
    assert_eq!(push(&env, &["handoffs~40:handoffs"]).status, 0);
    let sound = tip(&env, &bare);
    // One commit in the middle is left out; what follows it is made again as it was.
    let listed = env.git(&repo, &["rev-list", "--reverse", "handoffs~40..handoffs"]);
    let mut parent = sound.trim().to_owned();
    for (number, id) in listed.lines().enumerate() {
        let message = match number {
            17 => "x".to_owned(),
            _ => env.git(&repo, &["log", "-1", "--format=%B", id]),
        };
        let show = |form: &str| env.git(&repo, &["log", "-1", &format!("--format={form}"), id]);
        let mut command = env.command("git");
        command
            .args([
                "commit-tree",
                "-p",
                &parent,
                &format!("{id}^{{tree}}"),
                "-F",
                "-",
            ])
            .env("GIT_AUTHOR_NAME", show("%an").trim())
            .env("GIT_AUTHOR_EMAIL", show("%ae").trim())
            .env("GIT_AUTHOR_DATE", format!("@{} +0000", show("%at").trim()));
        let made = env.run(
            command,
            &[],
            Some(format!("{}\n", message.trim_end()).as_bytes()),
        );
        parent = made.success().stdout.trim().to_owned();
    }
    let refused = push(&env, &[&format!("{parent}:refs/heads/handoffs")]);
    assert_eq!(refused.status, 1);
    assert_eq!(
        refused.stderr.matches("commit.message").count(),
        1,
        "{}",
        refused.stderr
    );
    assert_eq!(tip(&env, &bare), sound);
    assert_eq!(push(&env, &["handoffs"]).status, 0);
}

#[test]
fn a_name_that_stands_for_the_ledger_is_the_ledger() {
    let (env, bare) = pushed("pre-receive");
    env.git(
        &bare,
        &["symbolic-ref", "refs/heads/alias", "refs/heads/handoffs"],
    );
    let refused = push(&env, &["-f", "main:alias"]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("history.rewritten"),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_server_says_which_branch_is_the_ledger() {
    let (env, bare) = pushed("pre-receive");
    env.git(&bare, &["config", "handoff.branch", "other"]);
    assert_eq!(push(&env, &["-f", "main:handoffs"]).status, 0);
    let refused = push(&env, &["main:other"]);
    assert_eq!(refused.status, 1);
}

#[test]
fn nothing_is_written_into_a_push_that_is_being_received() {
    let (env, bare) = pushed("pre-receive");
    let hook = "#!/bin/sh\ngit handoff claim 87.1 --as prep-agent --json\n";
    fs::write(bare.join("hooks/pre-receive"), hook).unwrap();
    env.send(opening(88)).success();
    let before = tip(&env, &bare);
    let refused = push(&env, &["handoffs"]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("\"quarantine\""),
        "{}",
        refused.stderr
    );
    assert_eq!(tip(&env, &bare), before);
}
