//! What git does to refs in several transactions, each of which a hook is asked about by itself: it
//! renames branches, and packs refs.

use std::fs;

use insta::assert_snapshot;
use test_support::contracts::opening;
use test_support::hooks::{LOCAL, install};
use test_support::{TestEnvironment, repository_kind};

/// A repository with a ledger of some steps and all local hooks.
fn hooked() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    install(&env.repo().join(".git"), &LOCAL);
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    env
}

/// Whether refs are in tables, which git renames and packs without asking a hook.
fn asks_no_hook() -> bool {
    repository_kind::is_reftable()
}

/// The log of a ref, empty where there is none.
fn log(env: &TestEnvironment, name: &str) -> String {
    let path = env.repo().join(".git/logs/refs").join(name);
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
#[cfg(target_os = "linux")]
fn a_branch_that_is_renamed_to_the_ledgers_name_stays() {
    if asks_no_hook() {
        return;
    }
    for logged in ["true", "false"] {
        let env = hooked();
        let repo = env.repo();
        env.git(&repo, &["config", "core.logAllRefUpdates", logged]);
        env.git(&repo, &["config", "alias.rename", "branch -M"]);
        env.git(&repo, &["checkout", "-q", "-b", "work"]);
        env.git(&repo, &["commit", "-q", "--allow-empty", "-m", "Work"]);
        let work = env.git(&repo, &["rev-parse", "work"]);
        let (tip, logs) = (env.tip(), log(&env, "heads/work"));
        assert_eq!(logs.is_empty(), logged == "false");
        for args in [
            &["branch", "-M", "work", "handoffs"][..],
            &["branch", "-M", "handoffs"],
            &["branch", "-f", "--move", "work", "handoffs"],
            &["rename", "work", "handoffs"],
        ] {
            let ran = env.git_any(&repo, args);
            assert_eq!(ran.status, 128, "{args:?}");
            assert!(
                ran.stderr.contains(
                    "branch.deleted branch handoffs would be deleted to make way for branch work"
                ),
                "{args:?}: {}",
                ran.stderr
            );
            assert_eq!(env.tip(), tip, "{args:?}");
            assert_eq!(env.git(&repo, &["rev-parse", "work"]), work, "{args:?}");
            assert_eq!(log(&env, "heads/work"), logs, "{args:?}");
            assert_eq!(log(&env, ".tmp-renamed-log"), "", "{args:?}");
        }
        // Any other name is free.
        env.git(&repo, &["branch", "-M", "work", "other"]);
        env.git(&repo, &["branch", "-c", "other", "work"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn no_branch_is_renamed_to_be_a_ledger_that_it_is_not() {
    if asks_no_hook() {
        return;
    }
    let env = hooked();
    let repo = env.repo();
    let tip = env.tip();
    env.git(&repo, &["branch", "copy", "handoffs"]);
    env.git(&repo, &["branch", "older", "handoffs~1"]);
    let off = ["-c", "core.hooksPath=/dev/null", "branch", "-D", "handoffs"];
    env.git(&repo, &off);
    for name in ["main", "older"] {
        let ran = env.git_any(&repo, &["branch", "-m", name, "handoffs"]);
        assert_eq!(ran.status, 128, "{name}");
        assert!(ran.stderr.contains("history.rewritten"), "{}", ran.stderr);
        env.git(
            &repo,
            &["rev-parse", "--verify", &format!("refs/heads/{name}")],
        );
    }
    assert_eq!(env.tip(), "");
    env.git(&repo, &["branch", "-m", "copy", "handoffs"]);
    assert_eq!(env.tip(), tip);
    env.assert_sound();
}

#[test]
fn the_ledgers_log_comes_back_where_its_renaming_is_refused() {
    if asks_no_hook() {
        return;
    }
    let env = hooked();
    let repo = env.repo();
    // git writes the log, where the branch has one.
    let logs = log(&env, "heads/handoffs");
    assert!(!logs.is_empty());
    for args in [
        &["branch", "-m", "handoffs", "other"][..],
        &["branch", "-M", "handoffs", "main2"],
    ] {
        let ran = env.git_any(&repo, args);
        assert_eq!(ran.status, 128, "{args:?}");
        assert!(ran.stderr.contains("branch.deleted"), "{}", ran.stderr);
        assert_eq!(log(&env, "heads/handoffs"), logs, "{args:?}");
        assert_eq!(log(&env, ".tmp-renamed-log"), "", "{args:?}");
    }
    env.git(&repo, &["branch", "-c", "main", "copy"]);
}

#[test]
fn a_branch_that_lost_its_name_is_told_by_its_commit() {
    if asks_no_hook() {
        return;
    }
    let env = hooked();
    let repo = env.repo();
    // The command does not say that the ledger is meant.
    env.git(&repo, &["checkout", "-q", "handoffs"]);
    env.git(&repo, &["checkout", "-q", "main"]);
    env.git(&repo, &["branch", "work"]);
    let ran = env.git_any(&repo, &["branch", "-M", "work", "@{-1}"]);
    assert_eq!(ran.status, 128);
    assert_snapshot!(env.filtered(&ran.stderr), @"
    error: branch handoffs is the ledger, and this move is not made of legal steps
       branch.deleted branch handoffs would be deleted, with everything it records
    hint: the branch was not moved. Use `git handoff` (send, claim, complete, annotate …), whose steps pass; a step made by hand must be exactly what the program would have written: `git handoff help hooks.md`. The branch that git began to rename has lost its name: `git branch NAME [commit]` brings it back; its log is logs/refs/.tmp-renamed-log in the git directory, and belongs in logs/refs/heads/NAME. git may have changed files before it ran this hook: see `git status`
    fatal: ref updates aborted by hook
    ");
    let commit = env.git(&repo, &["rev-parse", "main"]);
    let way = format!("`git branch NAME {}` brings it back", commit.trim());
    assert!(ran.stderr.contains(&way), "{}", ran.stderr);
}

/// Has something happen between git and the hook that is installed: lines of a shell script, which
/// find what git says in `$input`.
fn meanwhile(env: &TestEnvironment, lines: &str) {
    let hooks = env.repo().join(".git/hooks");
    let (hook, own) = (hooks.join("reference-transaction"), hooks.join("installed"));
    if !own.exists() {
        fs::copy(&hook, &own).unwrap();
    }
    let script = format!(
        "#!/bin/sh\ninput=$(cat)\nif [ \"$1\" = prepared ]; then\n{lines}\nfi\n\
         printf '%s\\n' \"$input\" | \"$0/../installed\" \"$@\"\n"
    );
    fs::write(&hook, script.replace("$0/..", hooks.to_str().unwrap())).unwrap();
}

#[test]
fn refs_are_packed_while_the_ledger_moves_on() {
    if asks_no_hook() {
        return;
    }
    let env = hooked();
    let repo = env.repo();
    meanwhile(
        &env,
        "git handoff extend 87.1 --as prep-agent --progress more >&2 || exit 1",
    );
    let before = env.tip();
    env.git(&repo, &["pack-refs", "--all"]);
    let after = env.tip();
    assert_ne!(before, after);
    meanwhile(&env, ":");
    let packed = fs::read_to_string(repo.join(".git/packed-refs")).unwrap();
    assert!(packed.contains(&before), "{packed}");
    // A move is refused as before, whoever moves on meanwhile, and with refs that are packed.
    for args in [
        &["update-ref", "refs/heads/handoffs", &before][..],
        &["branch", "-f", "handoffs", "main"],
        &["fetch", "-q", ".", "+main:handoffs"],
    ] {
        let ran = env.git_any(&repo, args);
        assert_ne!(ran.status, 0, "{args:?}");
        assert!(ran.stderr.contains("history.rewritten"), "{}", ran.stderr);
        assert_eq!(env.tip(), after, "{args:?}");
    }
    env.assert_sound();
}

#[test]
fn refs_are_packed_while_others_hold_the_lock_for_a_moment() {
    let env = hooked();
    let repo = env.repo();
    let none = "0".repeat(40);
    meanwhile(
        &env,
        &format!(
            "case $input in *'{none} refs/heads/handoffs'*)\n\
             : >.git/packed-refs.lock; (sleep 0.1; rm .git/packed-refs.lock) >/dev/null 2>&1 & ;;\nesac"
        ),
    );
    let tip = env.tip();
    env.git(&repo, &["pack-refs", "--all"]);
    assert!(!repo.join(".git/refs/heads/handoffs").exists());
    assert_eq!(env.tip(), tip);
    // Whoever deletes it holds the lock all the time.
    meanwhile(&env, ":");
    for args in [
        &["branch", "-D", "handoffs"][..],
        &["update-ref", "-d", "refs/heads/handoffs"],
    ] {
        let ran = env.git_any(&repo, args);
        assert_ne!(ran.status, 0, "{args:?}");
        assert!(ran.stderr.contains("branch.deleted"), "{}", ran.stderr);
        assert_eq!(env.tip(), tip, "{args:?}");
    }
}

#[test]
fn refs_are_packed_while_branches_come_and_go() {
    let env = hooked();
    let repo = env.repo();
    let rounds = 20;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..rounds {
                let name = format!("passing-{round}");
                env.git(&repo, &["branch", &name]);
                // The lock of the packed refs may be taken.
                env.git_any(&repo, &["branch", "-D", &name]);
            }
        });
        for _ in 0..rounds {
            env.handoff(&["extend", "87.1", "--as", "prep-agent"])
                .success();
            let ran = env.git_any(&repo, &["pack-refs", "--all"]);
            assert!(!ran.stderr.contains("the ledger"), "{}", ran.stderr);
        }
    });
    env.assert_sound();
}
